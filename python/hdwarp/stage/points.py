"""stage.points: Points prims -> MeshGeometry of balls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage import primvars
from hdwarp.stage.columns import GeometryKind, MeshGeometry, Primvar
from hdwarp.stage.meshes import NO_SUBSETS, RawMesh, deformed, read_points, refuse_beyond_int32
from hdwarp.stage.subsets import Subsets, read_subsets
from hdwarp.stage.transforms import LARGEST
from hdwarp.stage.widths import read_widths


def read_balls(
    prim: Usd.Prim,
    names: Collection[str],
    varying: Sequence[tuple[str, str]],
    subset_prims: Sequence[Usd.Prim],
    inherited_widths: np.ndarray | None,
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
    *,
    deform: Callable[[RawMesh], None],
) -> tuple[MeshGeometry, Subsets] | None:
    """The balls of a Points prim, half as wide as its widths; None, with a diagnostic, where there is none. ``deform``: moves the points
    of a skin. Elements are the points as authored; those with a bad place or width have no ball. Subsets are of points."""
    points = read_points(prim, names, time)
    if points is None or isinstance(points, str):
        if points is None:
            diagnostics.note(path, "empty-points", "points have no value at this time; nothing is drawn for it. Author points")
        else:
            diagnostics.error(path, "wrong-type", f"{points}; the prim is skipped. Author point3f[]")
        return None
    count = len(points)
    if not count:
        diagnostics.note(path, "empty-points", "it has no points at this time; nothing is drawn for it")
        return None
    if refuse_beyond_int32({"points": points}, path, diagnostics):
        return None
    points, _ = deformed(points, None, deform)
    expected = {"uniform": 1, "varying": count, "vertex": count}
    widths = read_widths(prim, names, inherited_widths, expected, time, path, diagnostics)
    with np.errstate(over="ignore"):
        radii = np.broadcast_to(0.5 * widths.values, count).astype(np.float32)
    good = (np.abs(points) <= LARGEST).all(axis=1)
    bad_points = count - int(good.sum())
    good &= (radii > 0.0) & (radii <= LARGEST)
    drawn = int(good.sum())
    if drawn < count:
        message = f"{count - drawn} of {count} points are not drawn: {bad_points} are NaN, infinite or beyond {LARGEST:g}"
        message = f"{message}, the others have no width above 0 that can be drawn. Mend points and widths"
        diagnostics.warning(path, "points-not-drawn", message)
    if not drawn:
        return None
    ids = _read_ids(prim, names, count, time, path, diagnostics)
    if "normals" in names or "primvars:normals" in names:
        diagnostics.note(path, "point-normals", "points are drawn as balls, with normals of their own; the authored ones are ignored")
    kept: dict[str, Primvar] = {}
    for name, interpolated in varying:
        if name in ("primvars:normals", "primvars:widths"):
            continue
        primvar = primvars.read_varying(prim, name, interpolated, time, expected, path, diagnostics)
        if primvar is not None:
            of_all = np.zeros(count, np.int32) if primvar.indices is None else np.repeat(primvar.indices, count)
            indices = of_all if primvar.interpolation == "uniform" else primvar.indices
            kept[name[len(primvars.PREFIX) :]] = Primvar("uniform", primvar.values, indices)
    subsets = read_subsets(subset_prims, count, time, path, diagnostics, element="point") if subset_prims else NO_SUBSETS
    face = np.arange(count, dtype=np.int32)
    if drawn < count:
        face, points, radii = face[good], points[good], radii[good]
    triangles = np.repeat(np.arange(drawn, dtype=np.int32)[:, None], 3, axis=1)
    corners = triangles if drawn == count else np.repeat(face[:, None], 3, axis=1)
    geometry = MeshGeometry(
        np.ascontiguousarray(points, np.float32),
        corners,
        triangles,
        face,
        count,
        count,
        None,
        kept,
        subsets.face_subset,
        float((np.abs(points).max(axis=1) + radii).max()),
        form=GeometryKind.POINTS,
        radii=np.ascontiguousarray(radii),
        ids=ids,
    )
    return geometry, subsets


def _read_ids(prim: Usd.Prim, names: Collection[str], count: int, time: Usd.TimeCode, path: str, diagnostics: Diagnostics):
    """(count,) int64; None: there are none, or a diagnostic says what is wrong with them."""
    value = prim.GetAttribute("ids").Get(time) if "ids" in names else None
    if value is None:
        return None
    ids = np.asarray(value)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        diagnostics.warning(path, "point-ids", f"ids holds {type(value).__name__}; they are ignored. Author int64[]")
        return None
    if len(ids) != count:
        diagnostics.warning(path, "point-ids", f"ids has {len(ids)} values for {count} points; they are ignored. Author one a point")
        return None
    return np.ascontiguousarray(ids, np.int64)
