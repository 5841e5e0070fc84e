"""stage.worlds: what a script says of worlds, found on a stage: root prims, their poses, and cameras authored in one world for all."""

from __future__ import annotations

import difflib
import fnmatch
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom

from hdwarp.errors import ArgumentError, Diagnostics
from hdwarp.stage.columns import Body, Camera, WorldGroup
from hdwarp.stage.facts import GEOMETRY, Category, categorise
from hdwarp.stage.open import metres_per_unit
from hdwarp.stage.transforms import columns_from_gf, in_metres, rigid, usable
from hdwarp.stage.traverse import is_populated
from hdwarp.worlds import MAX_WORLDS, AuthoredWorlds, Replicate, is_glob

_POPULATED = Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)
_SEEN = {*GEOMETRY, Category.SHAPE, Category.POINT_INSTANCER, Category.CAMERA, Category.LIGHT, Category.UNSUPPORTED}
_SEEN_APIS = {
    *("PhysicsRigidBodyAPI", "LightAPI", "MeshLightAPI", "VolumeLightAPI"),
    *("HdWarpSiteAPI", "NewtonSiteAPI", "MjcSiteAPI"),
}
_REGULAR = re.compile(r"\.[*+]|\][*+]|\\[dw]|[()|$^]")  # no prim's name has any of these
_GONE = Gf.Matrix4d(1.0)
_MOST_NAMES = 8  # in a message


def resolve_worlds(specs: object, stage: Usd.Stage, time: Usd.TimeCode) -> list[WorldGroup]:
    """The worlds that ``specs`` ask for, one or a sequence of `replicate` and `authored_worlds`, numbered in their order.

    The worlds of one `authored_worlds` are in natural order, whatever the order of its patterns. ``time``: when the prototypes stand where
    their copies' heights, orientations or whole poses are taken from. Raises ArgumentError for what is not on the stage, holds nothing, or
    overlaps; the message names what was given and what there is.
    """
    if isinstance(specs, Replicate | AuthoredWorlds):
        specs = [specs]
    if isinstance(specs, str) or not isinstance(specs, Sequence):
        raise ArgumentError(f"worlds is {specs!r}; {_expected(specs)}")
    if not specs:
        raise ArgumentError("worlds is empty; leave it out for one world that holds the whole stage")
    groups: list[WorldGroup] = []
    first = 0
    for number, spec in enumerate(specs):
        if isinstance(spec, Replicate):
            _check_prototype(stage, spec.path)
            placements, stays = _placements(spec, stage, time)
            groups.append(WorldGroup(spec.path, first, placements, spec.label, number, stays))
            first += spec.count
        elif isinstance(spec, AuthoredWorlds):
            for path in _authored_roots(stage, spec):
                groups.append(WorldGroup(path, first, None, path, number))
                first += 1
        else:
            raise ArgumentError(f"worlds[{number}] is {spec!r}; {_expected(spec)}")
    if first > MAX_WORLDS:
        raise ArgumentError(f"worlds asks for {first} worlds; at most {MAX_WORLDS} can be numbered")
    _check_apart(groups)
    return groups


def told_of_worlds(stage: Usd.Stage, groups: Sequence[WorldGroup], bodies: Mapping[str, Body]) -> Diagnostics:
    """What there is to say of the roots of worlds as the stage is now."""
    told = Diagnostics()
    for group in groups:
        prim = stage.GetPrimAtPath(group.root)
        if not prim or not prim.IsActive():
            there = "is not active" if prim else "is not there any more"
            message = f"the root of {'world' if group.count == 1 else 'worlds'} {_numbers(group)} {there}; they are empty"
            told.error(group.root, "world-root", f"{message}. Bring it back, or open the stage anew")
            continue
        above = [path for path in _upwards(group.root) if path != group.root and path in bodies]
        if above:
            message = f"the rigid body <{above[0]}> above the root of worlds {_numbers(group)} does not move what is in them"
            told.warning(group.root, "world-body", f"{message}. Make the root itself, or prims below it, bodies")
    for label in taken_labels(stage, groups)[:10]:
        message = (
            "a copy of a replicated world goes by this path, and there is a prim, which is drawn as well, and picked by the same name."
        )
        told.error(
            label, "world-label", f"{message} Worlds authored as prims are hdwarp.authored_worlds(...); replicate(label=) names copies"
        )
    return told


def _numbers(group: WorldGroup) -> str:
    return str(group.first) if group.count == 1 else f"{group.first} to {group.first + group.count - 1}"


def taken_labels(stage: Usd.Stage, groups: Sequence[WorldGroup]) -> list[str]:
    """Paths that copies go by, and at which there are prims."""
    taken = []
    for group in groups:
        if group.count == 1:
            continue
        parent, _, name = group.label.rpartition("/")
        if "{}" in name:  # all have one parent, whose children are few or known at once
            prim = stage.GetPrimAtPath(parent) if parent else stage.GetPseudoRoot()
            start, end = name.split("{}")
            for child in prim.GetAllChildrenNames() if prim else ():
                number = child[len(start) : len(child) - len(end)]
                if child.startswith(start) and child.endswith(end) and number.isdecimal() and str(int(number)) == number:
                    if group.first < int(number) < group.first + group.count:
                        taken.append(f"{parent}/{child}")
        else:
            labels = [group.root_label(group.first + k) for k in range(1, group.count)]
            taken += [label for label in labels if stage.GetPrimAtPath(label)]
    return sorted(taken, key=natural_key)


def root_poses(stage: Usd.Stage, paths: Sequence[str], time: Usd.TimeCode) -> np.ndarray:
    """(n, 4, 4) float64 rigid world poses [m] of prims; identity for one that is gone.

    Prims that cannot have a transform have their parent's. One whose transform is singular has its place and no rotation.
    """
    xforms = UsdGeom.XformCache(time)
    prims = [stage.GetPrimAtPath(path) for path in paths]
    world = columns_from_gf([xforms.GetLocalToWorldTransform(prim) if prim else _GONE for prim in prims])
    return _rigid_metres(world, metres_per_unit(stage))


def _rigid_metres(world: np.ndarray, metres: float) -> np.ndarray:
    """(n, 4, 4) rigid poses [m] of matrices in scene units."""
    world = in_metres(world, metres)
    finite, invertible = usable(world)
    if invertible.all():
        return rigid(world)
    world = world.copy()
    world[~invertible, :3, :3] = np.eye(3)
    world[~finite, :3, 3] = 0.0
    return rigid(world)


def spread_cameras(cameras: Sequence[Camera], bodies: Mapping[str, Body], groups: Sequence[WorldGroup], poses: np.ndarray) -> list[Camera]:
    """Cameras that only the first world of a spec is authored with, for the others: the additional records, in the order of the worlds.

    Counts for specs of `authored_worlds` where no world but the first has cameras. Each is given to every other world that has the prim
    which carries it, its body or else the world's root, with the same pose relative to that. ``poses``: (len(groups), 4, 4) float64 rigid
    world poses [m] of the groups' roots.
    """
    by_spec: dict[int, list[int]] = defaultdict(list)
    for row, group in enumerate(groups):
        if group.placements is None:
            by_spec[group.spec].append(row)
    by_root = {groups[row].root: row for rows in by_spec.values() for row in rows}
    inside: dict[int, list[Camera]] = defaultdict(list)
    for camera in cameras:
        row = next((by_root[path] for path in _upwards(camera.path) if path in by_root), None)
        if row is not None:
            inside[row].append(camera)
    added = []
    for rows in by_spec.values():
        first, *others = rows
        if first in inside and not any(row in inside for row in others):
            for row in others:
                given = (_in_world(camera, bodies, groups, poses, first, row) for camera in inside[first])
                added.extend(camera for camera in given if camera is not None)
    return added


def _upwards(path: str) -> Iterator[str]:
    """A path and those above it, nearest first."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _in_world(
    camera: Camera, bodies: Mapping[str, Body], groups: Sequence[WorldGroup], poses: np.ndarray, source: int, target: int
) -> Camera | None:
    """The camera of one world in another; None where that has not got the body."""
    old, new = groups[source].root, groups[target].root
    body, from_carrier, to_carrier = camera.body, poses[source], poses[target]
    if body == old or body.startswith(f"{old}/"):
        body = new + body[len(old) :]
        if camera.body not in bodies or body not in bodies:
            return None
        from_carrier, to_carrier = bodies[camera.body].world_from_body, bodies[body].world_from_body
    # A body above the worlds carries all of them: the camera stays with it, and stands in its world as it does in the first.
    path = new + camera.path[len(old) :]
    return replace(
        camera, path=path, source=camera.path, body=body, world_from_camera=_moved(camera.world_from_camera, from_carrier, to_carrier)
    )


def _moved(pose: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """``pose`` relative to the rigid ``source``, put at ``target``. Offsets first: worlds far from the origin keep their digits."""
    turn = target[:3, :3] @ source[:3, :3].T
    moved = np.eye(4)
    moved[:3, :3] = turn @ pose[:3, :3]
    moved[:3, 3] = turn @ (pose[:3, 3] - source[:3, 3]) + target[:3, 3]
    return moved


# -- replicated ---------------------------------------------------------------------------------------------------------------


def _check_prototype(stage: Usd.Stage, path: str) -> None:
    """Raise ArgumentError unless there is something to replicate at ``path``."""
    prim = stage.GetPrimAtPath(path)
    if not prim:
        raise ArgumentError(f"replicate: no prim is at <{path}>; {_there_is(stage, path)}")
    if not prim.IsActive():
        raise ArgumentError(f"replicate: <{path}> is inactive; activate it, or name another prim. {_there_is(stage, path)}")
    if not is_populated(prim):
        said = "abstract (a class)" if prim.IsAbstract() else "not loaded" if not prim.IsLoaded() else "an over that nothing defines"
        raise ArgumentError(f"replicate: <{path}> is {said}; worlds are made of what is drawn. {_there_is(stage, path)}")
    if not _has_something(prim):
        raise ArgumentError(
            f"replicate: <{path}> is a prototype without prims: no geometry, instance, camera, body, site or light is at or below it. "
            + _there_is(stage, path)
        )


def _has_something(prim: Usd.Prim) -> bool:
    """Whether anything at or below a prim could be drawn, carried or seen."""
    categories: dict[str, Category] = {}
    prims = iter(Usd.PrimRange(prim, _POPULATED))
    for below in prims:
        info = below.GetPrimTypeInfo()
        name = info.GetTypeName()
        category = categories.get(name)
        if category is None:
            category = categories[name] = categorise(below, name)[0]
        if category in (Category.SHADING, Category.SUBSET):  # nothing is drawn below these
            prims.PruneChildren()
        elif category in _SEEN or below.IsInstance() or not _SEEN_APIS.isdisjoint(info.GetAppliedAPISchemas()):
            return True
    return False


def _placements(spec: Replicate, stage: Usd.Stage, time: Usd.TimeCode) -> tuple[np.ndarray, tuple[bool, bool, bool, bool]]:
    """(count, 4, 4) where the copies' roots stand [m], and what of that stays where the prototype's root moves (`WorldGroup.stays`)."""
    world = columns_from_gf([UsdGeom.XformCache(time).GetLocalToWorldTransform(stage.GetPrimAtPath(spec.path))])
    if not usable(world)[1][0]:
        raise ArgumentError(f"replicate: the transform of <{spec.path}> is singular or not finite (a scale of 0?); mend its xformOps")
    placements = np.tile(_rigid_metres(world, metres_per_unit(stage)), (spec.count, 1, 1))
    stays = (False, False, False, False)
    if spec.spacing is not None:
        horizontal = [0, 1] if UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.z else [0, 2]
        placements[:, horizontal, 3] = grid(spec.count, spec.spacing)
        stays = (True, 1 in horizontal, 2 in horizontal, False)
    elif spec.xforms is not None and spec.xforms.ndim == 2:
        placements[:, :3, 3] = spec.xforms
        stays = (True, True, True, False)
    elif spec.xforms is not None:
        placements[:] = spec.xforms
        stays = (True, True, True, True)
    return placements, stays


def grid(count: int, spacing: tuple[float, float]) -> np.ndarray:
    """(count, 2) float64 places on a square grid, row by row, the middle of its bounding box at the origin."""
    side = math.isqrt(count - 1) + 1  # ceil(sqrt(count)), exactly
    places = np.stack(np.divmod(np.arange(count), side), axis=1).astype(np.float64)
    return (places - 0.5 * places.max(axis=0)) * spacing


# -- authored -----------------------------------------------------------------------------------------------------------------


def _authored_roots(stage: Usd.Stage, spec: AuthoredWorlds) -> list[str]:
    """Paths of the prims, in natural order."""
    paths: list[str] = []
    for pattern in spec.patterns:
        found = _matches(stage, pattern)
        if not found:
            reads = ": it reads like a regular expression, patterns are those of fnmatch" if _REGULAR.search(pattern) else ""
            raise ArgumentError(f"authored_worlds: {pattern!r} matches no prim{reads}; {_there_is(stage, pattern)}")
        paths += found
    return sorted(paths, key=natural_key)


def _matches(stage: Usd.Stage, pattern: str) -> list[str]:
    """Paths of the populated prims that a pattern matches."""
    above = [("", stage.GetPseudoRoot())]
    names = pattern[1:].split("/")
    for depth, name in enumerate(names):
        last = depth == len(names) - 1
        if not is_glob(name):
            found = [(f"{path}/{name}", prim.GetPrimAtPath(name)) for path, prim in above] if Sdf.Path.IsValidIdentifier(name) else []
            above = [(path, prim) for path, prim in found if prim and is_populated(prim)]
            continue
        matches = re.compile(fnmatch.translate(name)).match
        below = []
        for path, prim in above:
            found = [child for child in prim.GetFilteredChildrenNames(_POPULATED) if matches(child)]
            below += [(f"{path}/{child}", None if last else prim.GetPrimAtPath(child)) for child in found]
        above = below
    return [path for path, _ in above]


def natural_key(path: str) -> tuple:
    """Sorts paths with the numbers in them as numbers: env_2 before env_10."""
    names = (re.split(r"([0-9]+)", name) for name in path.split("/"))
    return tuple(tuple(int(part) if k % 2 else part for k, part in enumerate(parts)) for parts in names), path


# -- both ---------------------------------------------------------------------------------------------------------------------


def _check_apart(groups: Sequence[WorldGroup]) -> None:
    """Raise ArgumentError where roots are the same or lie inside one another: sorted, such are neighbours."""
    roots = sorted(f"{group.root}/" for group in groups)
    for outer, inner in pairwise(roots):
        if inner == outer:
            raise ArgumentError(f"worlds: <{outer[:-1]}> is given twice; a prim belongs to one world (replicate's count makes copies)")
        if inner.startswith(outer):
            raise ArgumentError(f"worlds: <{inner[:-1]}> lies inside <{outer[:-1]}>; a prim belongs to one world, name one of the two")


def _there_is(stage: Usd.Stage, path: str) -> str:
    """What there is beside a path or pattern: children of the deepest prim above it, the likeliest first."""
    prim, names = stage.GetPseudoRoot(), path[1:].split("/")
    while len(names) > 1 and Sdf.Path.IsValidIdentifier(names[0]) and prim.GetPrimAtPath(names[0]):
        prim = prim.GetPrimAtPath(names.pop(0))
    children = prim.GetFilteredChildrenNames(_POPULATED)
    where = "the stage" if prim.IsPseudoRoot() else f"<{prim.GetPath()}>"
    if not children:
        return f"{where} has no prims" if prim.IsPseudoRoot() else f"{where} has no children"
    near = difflib.get_close_matches(names[0], children, _MOST_NAMES, 0.7)
    rest = sorted(set(children) - set(near), key=natural_key)
    shown = [*near, *rest][:_MOST_NAMES]
    more = f", ... ({len(children)} in all)" if len(children) > len(shown) else ""
    return f"{where} has {', '.join(shown)}{more}"


def _expected(given: object) -> str:
    expected = "expected hdwarp.replicate(...), hdwarp.authored_worlds(...) or a list of them"
    if isinstance(given, str):
        call = "replicate" if not is_glob(given) else "authored_worlds"
        return f"{expected}; did you mean hdwarp.{call}({given!r}{', count' if call == 'replicate' else ''})?"
    if isinstance(given, int) and not isinstance(given, bool):
        return f"{expected}; did you mean hdwarp.replicate(path, {given})?"
    return expected
