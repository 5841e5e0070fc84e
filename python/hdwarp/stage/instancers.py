"""stage.instancers: one PointInstancer -> the transform, prototype and id of each instance, checked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pxr import Gf, Sdf, Tf, Usd, UsdGeom, Vt

from hdwarp.errors import Diagnostics
from hdwarp.stage import primvars
from hdwarp.stage.columns import Instancer
from hdwarp.stage.open import plain_text

# Types of the arrays, the schema's first.
_ARRAYS = {
    "positions": ("Vec3fArray", "Vec3dArray", "Vec3hArray"),
    "orientationsf": ("QuatfArray", "QuathArray", "QuatdArray"),
    "orientations": ("QuathArray", "QuatfArray", "QuatdArray"),
    "scales": ("Vec3fArray", "Vec3dArray", "Vec3hArray"),
}
_UNUSED = ("velocities", "accelerations", "angularVelocities")  # Vec3fArrays that place nothing at the time itself


@dataclass(slots=True, eq=False)
class Instances:
    """Rows of one prototype under its instancer. ``world``: (n, 4, 4) from the space the prototype's root sits in, scene units."""

    world: np.ndarray
    ids: np.ndarray  # (n,) int32; nested: outer x inner count + inner
    instancer: Instancer
    primvars: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class InstancerData:
    """A PointInstancer as read. Rows count as in protoIndices; ``prototype`` is -1 for hidden and broken ones."""

    count: int
    prototype: np.ndarray  # (n,) int
    local: np.ndarray  # (n, 4, 4) float64 column vectors: instancer from prototype root, without the root's own transform
    ids: np.ndarray  # (n,) int64
    targets: list[Sdf.Path]
    primvars: dict[str, np.ndarray]
    through: frozenset[str]  # prims whose relationships lead to the targets


def read_instancer(
    prim: Usd.Prim, varying: list[tuple[str, str]], time: Usd.TimeCode, path: str, diagnostics: Diagnostics
) -> InstancerData | None:
    """None, with a diagnostic, where there is nothing to place."""
    instancer = UsdGeom.PointInstancer(prim)
    indices = _integers(instancer.GetProtoIndicesAttr(), time, path, diagnostics)
    if indices is None:
        return None
    count = len(indices)
    arrays = {
        attribute.GetName(): attribute.Get(time) if attribute.HasAuthoredValue() else None
        for attribute in (
            instancer.GetPositionsAttr(),
            instancer.GetOrientationsfAttr(),
            instancer.GetOrientationsAttr(),
            instancer.GetScalesAttr(),
        )
    }
    wrong = [name for name, value in arrays.items() if value is not None and type(value).__name__ not in _ARRAYS[name]]
    for name in wrong:
        effect = "the instancer is skipped" if name == "positions" else "it is ignored"
        diagnostics.error(path, "wrong-type", f"{name} holds {type(arrays[name]).__name__}; {effect}. Author {_ARRAYS[name][0]}")
        arrays[name] = None
    for name in _UNUSED:
        attribute = prim.GetAttribute(name)
        value = attribute.Get(time) if attribute and attribute.HasAuthoredValue() else None
        if value is not None and not isinstance(value, Vt.Vec3fArray):
            diagnostics.error(path, "wrong-type", f"{name} holds {type(value).__name__}; it is ignored. Author Vec3fArray")
    if "positions" in wrong:
        return None
    lengths = {name: 0 if value is None else len(value) for name, value in arrays.items()}
    if lengths["positions"] != count:
        diagnostics.error(
            path,
            "instancer-lengths",
            f"positions has {lengths['positions']} values for {count} protoIndices; the instancer is skipped. Author as many of each",
        )
        return None
    if not count:
        diagnostics.note(path, "empty-instancer", "the point instancer has no instances at this time")
        return None
    ragged = wrong + [name for name, length in lengths.items() if length not in (0, count)]
    for name in ragged[len(wrong) :]:
        diagnostics.error(path, "instancer-lengths", f"{name} has {lengths[name]} values for {count} protoIndices; {name} is ignored")
    targets = instancer.GetPrototypesRel().GetForwardedTargets()
    outside = (indices < 0) | (indices >= len(targets))
    if outside.any():
        limit = f"outside 0..{len(targets) - 1}" if targets else "but the prototypes relationship names no prim"
        diagnostics.error(
            path,
            "proto-indices",
            f"{int(outside.sum())} of {count} protoIndices are {limit} (first: {int(indices[outside][0])}); these instances are skipped",
        )
    ids = _integers(instancer.GetIdsAttr(), time, path, diagnostics, quiet=True)
    if ids is not None and len(ids) != count:
        diagnostics.warning(path, "instancer-lengths", f"ids has {len(ids)} values for {count} protoIndices; ids are the indices instead")
        ids = None
    if ids is None:
        ids = np.arange(count, dtype=np.int64)
    try:
        if ragged or any(value is not None and type(value).__name__ != _ARRAYS[name][0] for name, value in arrays.items()):
            local = _plain_transforms({name: value for name, value in arrays.items() if name not in ragged and lengths[name]}, count)
        else:
            exclude, all_of_them = UsdGeom.PointInstancer.ExcludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
            local = instancer.ComputeInstanceTransformsAtTime(time, time, exclude, all_of_them)
            local = np.asarray(local).reshape(-1, 4, 4).transpose(0, 2, 1)
    except Tf.ErrorException as error:
        diagnostics.error(path, "unreadable", f"{plain_text(error)}; the instancer is skipped")
        return None
    if len(local) != count:
        diagnostics.error(path, "instancer-lengths", "USD computes no instance transforms from these arrays; the instancer is skipped")
        return None
    prototype = np.where(outside, -1, indices)
    hidden = _hidden_ids(instancer, time, path, diagnostics)
    if len(hidden):
        prototype[np.isin(ids, hidden)] = -1
    finite = np.isfinite(local).all(axis=(1, 2))
    if not finite.all():
        number = int((~finite & (prototype >= 0)).sum())
        if number:
            message = f"{number} of {count} instances have positions, orientations or scales that are NaN or infinite; they are skipped"
            diagnostics.error(path, "singular-transform", f"{message}. Mend the values")
        prototype[~finite] = -1
        local = np.where(finite[:, None, None], local, 0.0)
    rate = {}
    expected = dict.fromkeys(("uniform", "varying", "vertex", "faceVarying", "instance"), count)
    for name, interpolated in varying:
        found = primvars.read_values(prim, name, time, expected, interpolated, path, diagnostics)
        if found is not None:
            values, value_indices = found
            rate[name[len(primvars.PREFIX) :]] = values if value_indices is None else values[value_indices]
    return InstancerData(
        count,
        prototype,
        local,
        ids,
        targets,
        rate,
        _prims_between(instancer.GetPrototypesRel()),
    )


def _prims_between(relationship: Usd.Relationship) -> frozenset[str]:
    """The prims whose relationships a relationship is forwarded through, there or not."""
    found, todo, seen = set(), [relationship], set()
    while todo:
        for target in todo.pop().GetTargets():
            if target.IsPropertyPath() and target not in seen:
                seen.add(target)
                found.add(str(target.GetPrimPath()))
                further = relationship.GetStage().GetRelationshipAtPath(target)
                if further:
                    todo.append(further)
    return frozenset(found)


def _plain_transforms(arrays: dict, count: int) -> np.ndarray:
    """Scale, turn, move, from the arrays that fit: USD's own computation is wrong for all where one does not."""
    local = np.tile(np.eye(4), (count, 1, 1))
    for name in ("orientationsf", "orientations"):
        if name in arrays:
            local[:, :3, :3] = [np.array(Gf.Matrix3d(Gf.Quatd(q))).T for q in arrays[name]]
            break
    if "scales" in arrays:
        local[:, :3, :3] *= np.asarray(arrays["scales"])[:, None, :]
    local[:, :3, 3] = np.asarray(arrays["positions"])
    return local


def _hidden_ids(instancer: UsdGeom.PointInstancer, time: Usd.TimeCode, path: str, diagnostics: Diagnostics) -> np.ndarray:
    """Invisible and inactive ids. USD's ComputeMaskAtTime goes by `ids` as authored, even where their number or type is wrong."""
    invisible = _integers(instancer.GetInvisibleIdsAttr(), time, path, diagnostics, quiet=True)
    inactive = instancer.GetPrim().GetMetadata("inactiveIds")
    inactive = np.array([] if inactive is None else inactive.ApplyOperations([]), np.int64)
    return inactive if invisible is None else np.concatenate((invisible, inactive))


def _integers(attribute: Usd.Attribute, time: Usd.TimeCode, path: str, diagnostics: Diagnostics, quiet: bool = False) -> np.ndarray | None:
    value = attribute.Get(time) if attribute.HasAuthoredValue() else None
    if value is None:
        if not quiet:
            diagnostics.note(path, "empty-instancer", f"{attribute.GetName()} has no value at this time; the point instancer draws nothing")
        return None
    array = np.asarray(value)
    if array.size and (array.dtype.kind not in "iu" or array.ndim != 1):
        message = f"{attribute.GetName()} holds {type(value).__name__}, not an array of integers; it is ignored. Author the schema's type"
        diagnostics.error(path, "wrong-type", message)
        return None
    return array.astype(np.int64).reshape(-1)


def place(data: InstancerData, slot: int, world: np.ndarray, outer: Instances | None, path: str) -> Instances | None:
    """The instances of prototype number ``slot``. ``world``: (4, 4), or (m, 4, 4) for an instancer that ``outer`` places m times."""
    rows = np.flatnonzero(data.prototype == slot)
    if not len(rows):
        return None
    local = data.local if len(rows) == data.count else data.local[rows]
    instancer = Instancer(path, data.ids, None if outer is None else outer.instancer)
    values = {name: array[rows] for name, array in data.primvars.items()}
    if outer is None:
        return Instances(world @ local, rows.astype(np.int32), instancer, values)
    m, n = len(world), len(rows)
    placed = (world[:, None] @ local[None]).reshape(m * n, 4, 4)
    ids = (outer.ids.astype(np.int64)[:, None] * data.count + rows).reshape(-1).astype(np.int32)
    values = {name: np.tile(array, (m, 1)) for name, array in values.items()}
    for name, array in outer.primvars.items():
        values.setdefault(name, np.repeat(array, n, axis=0))
    return Instances(placed, ids, instancer, values)
