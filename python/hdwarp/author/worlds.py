"""author.worlds: the copies of replicated worlds as prims that any tool sees: instanceable references to their prototype."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, Vt

from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import WorldGroup
from hdwarp.stage.open import metres_per_unit, resolve_time
from hdwarp.stage.transforms import columns_from_gf, rigid, usable
from hdwarp.stage.traverse import is_populated
from hdwarp.stage.worlds import root_poses

_OP = "xformOp:transform"
_SAME = 1e-9  # relative to 1 m and to the distance from the origin: what differs by less stands where it should


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """One prim to write."""

    path: Sdf.Path
    local: np.ndarray  # (4, 4) float64 in scene units, column vectors
    prototype: Sdf.Path | None  # None: the prim is the prototype itself
    as_xform: bool  # the prim's own type cannot be moved


def author_worlds(stage: Usd.Stage, groups: Sequence[WorldGroup], *, time: float | Usd.TimeCode | None = None) -> None:
    """Write the copies of replicated worlds into the stage's edit target: at each label an instanceable reference to the prototype.

    ``groups``: from `resolve_worlds`, of this stage or of one with the same prims; authored worlds among them are prims already. A copy's
    transform is one xformOp:transform that puts its root at its placement, the scale of the prototype's root kept. The first world of a
    group is the prototype itself, which is moved if it does not stand at its placement. Parents of labels that do not exist are made.
    Writing again gives the same. ``time``: of the parents' transforms and the prototype's scale, as everywhere.

    Raises ArgumentError, before anything is written, for prototypes that are not there, lie in an instance or hold a prim with
    !resetXformStack!, and for labels at which another prim exists, or below which nothing can be written; and afterwards where a stronger
    layer holds a prim elsewhere.
    """
    replicated = [group for group in groups if group.placements is not None]
    if not replicated:
        return
    at = resolve_time(stage, time)
    labels = {group.root: [group.root_label(group.first + k) for k in range(1, group.count)] for group in replicated}
    _check_labels(stage, groups, labels)
    missing: dict[Sdf.Path, str] = {}
    places: list[_Place] = []
    xforms = UsdGeom.XformCache(at)
    for group in replicated:
        places += _places(stage, group, labels[group.root], xforms, missing)
    target = stage.GetEditTarget()
    with Sdf.ChangeBlock():
        for path, type_name in missing.items():
            spec = _spec(target, path)
            spec.specifier = Sdf.SpecifierDef
            if type_name:
                spec.typeName = type_name
        for place in places:
            _write(target, place)
    _check_written(stage, replicated, labels, at)


# -- what to write, and whether it can be ---------------------------------------------------------------------------------------


def _check_labels(stage: Usd.Stage, groups: Sequence[WorldGroup], labels: dict[str, list[str]]) -> None:
    """Raise ArgumentError for labels that are taken, or that lie inside another world."""
    for root, copies in labels.items():
        prim = stage.GetPrimAtPath(root)
        if not prim or not is_populated(prim):
            raise ArgumentError(f"author_worlds: the stage has no prototype <{root}>; give the stage whose worlds these are")
        if prim.IsInstanceProxy():
            raise ArgumentError(f"author_worlds: the prototype <{root}> lies inside an instance, where no reference leads; uninstance it")
        for label in copies:
            there = stage.GetPrimAtPath(label)
            if there and _is_taken(there, root):
                said = "the prototype itself" if label == root else f"a prim ({there.GetTypeName() or 'without a type'})"
                raise ArgumentError(f"author_worlds: <{label}> is {said} already; choose another label= for the copies of <{root}>")
    ends = sorted(f"{path}/" for path in [group.root for group in groups] + [label for copies in labels.values() for label in copies])
    for outer, inner in pairwise(ends):
        if inner.startswith(outer):
            said = "the root or label of two worlds" if inner == outer else f"inside <{outer[:-1]}>, a world of its own"
            raise ArgumentError(f"author_worlds: <{inner[:-1]}> is {said}; choose another label=")


def _is_taken(prim: Usd.Prim, root: str) -> bool:
    """Whether a prim is something else than a copy of ``root`` written earlier; overs that define nothing are in nobody's way."""
    if not prim.HasDefiningSpecifier() and not prim.IsInstanceProxy():
        return False
    own = Sdf.Reference("", root)
    return not any(own in spec.referenceList.GetAddedOrExplicitItems() for spec in prim.GetPrimStack())


def _places(
    stage: Usd.Stage, group: WorldGroup, labels: Sequence[str], xforms: UsdGeom.XformCache, missing: dict[Sdf.Path, str]
) -> list[_Place]:
    """What to write for one group; parents to be made are added to ``missing``."""
    prim, root = stage.GetPrimAtPath(group.root), Sdf.Path(group.root)
    as_xform = not prim.IsA(UsdGeom.Xformable)
    resets = [found for found in Usd.PrimRange(prim, Usd.TraverseInstanceProxies()) if found != prim and _resets(found)]
    if resets and labels:
        message = f"author_worlds: <{resets[0].GetPath()}> has !resetXformStack!: authored copies of it would all stand where it does"
        raise ArgumentError(f"{message}. Remove that, or keep the copies replicated")
    world = columns_from_gf([xforms.GetLocalToWorldTransform(prim)])
    if not usable(world)[1][0]:
        raise ArgumentError(f"author_worlds: the transform of <{root}> is singular or not finite; mend its xformOps")
    stands, metres = rigid(world)[0], metres_per_unit(stage)
    wanted = group.placements.copy()
    wanted[:, :3, 3] /= metres
    wanted[:, :3, :3] = wanted[:, :3, :3] @ (stands[:3, :3].T @ world[0, :3, :3])  # with the scale and shear of the root
    places = []
    if not _same(root_poses(stage, [group.root], xforms.GetTime()), group.placements[:1])[0]:
        places.append(_Place(root, _below(_parent(stage, root, xforms, missing), wanted[:1], root)[0], None, as_xform))
    parents: dict[Sdf.Path, np.ndarray] = {}
    for label, matrix in zip(labels, wanted[1:], strict=True):
        path = Sdf.Path(label)
        above = path.GetParentPath()
        if above not in parents:
            parents[above] = _parent(stage, path, xforms, missing)
        places.append(_Place(path, _below(parents[above], matrix[None], path)[0], root, as_xform))
    return places


def _resets(prim: Usd.Prim) -> bool:
    """Whether a prim does not go where the prims above it go."""
    return prim.IsA(UsdGeom.Xformable) and UsdGeom.Xformable(prim).GetResetXformStack()


def _parent(stage: Usd.Stage, path: Sdf.Path, xforms: UsdGeom.XformCache, missing: dict[Sdf.Path, str]) -> np.ndarray:
    """(4, 4) world transform of the prim above ``path``, in scene units. What has to be made to get there is added to ``missing``."""
    above = stage.GetPseudoRoot()
    for step in path.GetParentPath().GetPrefixes():
        prim = stage.GetPrimAtPath(step)
        if prim and (not prim.IsActive() or prim.IsAbstract() or prim.IsInstance() or prim.IsInstanceProxy()):
            said = "inactive" if not prim.IsActive() else "a class" if prim.IsAbstract() else "an instance"
            raise ArgumentError(f"author_worlds: <{path}> cannot be written, as <{step}> is {said}; choose another label=")
        if not prim:
            missing[step] = "Xform"
        elif not prim.IsDefined() and not prim.HasDefiningSpecifier():
            missing[step] = "" if prim.GetTypeName() else "Scope"  # of an over, whose xformOps no type has made count so far
        above = prim or above
    return columns_from_gf([xforms.GetLocalToWorldTransform(above)])[0]


def _below(parent: np.ndarray, world: np.ndarray, path: Sdf.Path) -> np.ndarray:
    """World transforms (n, 4, 4) relative to a parent's. Part by part: a parent far away would otherwise cost digits of the rotation."""
    if not usable(parent[None])[1][0]:
        raise ArgumentError(f"author_worlds: the transform above <{path}> is singular or not finite; mend it, or choose another label=")
    inverse = np.linalg.inv(parent[:3, :3])
    local = np.tile(np.eye(4), (len(world), 1, 1))
    local[:, :3, :3] = inverse @ world[:, :3, :3]
    local[:, :3, 3] = (world[:, :3, 3] - parent[:3, 3]) @ inverse.T
    return local


# -- writing --------------------------------------------------------------------------------------------------------------------


def _spec(target: Usd.EditTarget, path: Sdf.Path) -> Sdf.PrimSpec:
    """The prim's spec in the edit target, made if need be."""
    mapped = target.MapToSpecPath(path)
    layer = target.GetLayer()
    spec = None if mapped.isEmpty else layer.GetPrimAtPath(mapped) or Sdf.CreatePrimInLayer(layer, mapped)
    if spec is None:
        raise ArgumentError(f"author_worlds: <{path}> cannot be written to the stage's edit target; choose another")
    return spec


def _write(target: Usd.EditTarget, place: _Place) -> None:
    spec = _spec(target, place.path)
    if place.as_xform:
        spec.typeName = "Xform"
    if place.prototype is not None:
        spec.specifier = Sdf.SpecifierDef
        spec.instanceable = True
        own = Sdf.Reference("", target.MapToSpecPath(place.prototype).StripAllVariantSelections())
        if own not in spec.referenceList.GetAddedOrExplicitItems():
            spec.referenceList.Prepend(own)
    _set(spec, _OP, Sdf.ValueTypeNames.Matrix4d, Gf.Matrix4d(*place.local.T.ravel().tolist()))  # Gf multiplies rows
    _set(spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Vt.TokenArray([_OP]), Sdf.VariabilityUniform)


def _set(
    spec: Sdf.PrimSpec, name: str, type_name: Sdf.ValueTypeName, value: object, variability: Sdf.Variability = Sdf.VariabilityVarying
) -> None:
    """A default value that shows: time samples of the same spec would hide it."""
    attribute = spec.attributes.get(name) or Sdf.AttributeSpec(spec, name, type_name, variability)
    attribute.ClearInfo("timeSamples")
    attribute.default = value


def _check_written(stage: Usd.Stage, groups: Iterable[WorldGroup], labels: dict[str, list[str]], time: Usd.TimeCode) -> None:
    """Raise ArgumentError for prims that do not stand where they were put."""
    for group in groups:
        paths = [group.root, *labels[group.root]]
        same = _same(root_poses(stage, paths, time), group.placements)
        if not same.all():
            path = paths[int(np.argmin(same))]
            raise ArgumentError(
                f"author_worlds: <{path}> was written but does not stand at its place: a stronger layer than the edit target moves it, or"
                " a parent's transform; write to a stronger layer"
            )


def _same(poses: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(n,) which of two times (n, 4, 4) rigid poses agree."""
    scale = np.maximum(1.0, np.abs(wanted[:, :3, 3]).max(axis=1))
    off = np.abs(poses - wanted)
    return (off[:, :3, :3].max(axis=(1, 2)) <= _SAME) & (off[:, :3, 3].max(axis=1) <= _SAME * scale)
