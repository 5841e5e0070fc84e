"""stage.curves: BasisCurves, HermiteCurves and NurbsCurves prims -> MeshGeometry of tubes and ribbons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage import curve_bases as bases
from hdwarp.stage import primvars
from hdwarp.stage.columns import MeshGeometry, Primvar
from hdwarp.stage.curve_bases import HermiteSegments, Segments
from hdwarp.stage.facts import Category
from hdwarp.stage.meshes import NO_SUBSETS, RawMesh, deformed, read_points, unit_normals
from hdwarp.stage.nurbs_curve_attributes import read_nurbs_segments
from hdwarp.stage.ribbons import Normals, ribbons
from hdwarp.stage.subsets import Subsets
from hdwarp.stage.tubes import tubes
from hdwarp.stage.widths import read_widths

_SKIPPED = "the curves are skipped"


def read_curves(
    prim: Usd.Prim,
    names: Collection[str],
    varying: Sequence[tuple[str, str]],
    subset_prims: Sequence[Usd.Prim],
    category: Category,
    inherited_normals: np.ndarray | None,
    inherited_widths: np.ndarray | None,
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
    *,
    deform: Callable[[RawMesh], None],
) -> tuple[MeshGeometry, Subsets] | None:
    """What is drawn of a prim of curves: tubes, or with normals ribbons; None, with a diagnostic, where that is nothing. ``deform``: moves
    the points of a skin, and normals that are "vertex".

    A face is a segment, counted through all curves: of NurbsCurves a knot interval that has a length. Segments that use bad points or
    widths are not drawn, nor curves whose vertex count none such can have; the numbers of the others stay.
    """
    points = read_points(prim, names, time)
    counts = _ints(prim, "curveVertexCounts", names, time)
    if not _usable(points, counts, path, diagnostics):
        return None
    segments = _segments(prim, names, category, points, counts, time, path, diagnostics)
    if segments is None:
        return None
    if subset_prims:
        diagnostics.warning(path, "subset-type", "subsets of curves are not supported; they have the prim's material throughout")
    normals = _read_normals(prim, names, varying, inherited_normals, segments, time, path, diagnostics)
    by_vertex = normals is not None and normals.interpolation == "vertex"
    moved, turned = deformed(points, normals if by_vertex else None, deform)
    normals = turned if by_vertex else normals
    if moved is not points and isinstance(segments, HermiteSegments):
        diagnostics.note(path, "skinned-tangents", "its points are skinned, its tangents are as authored. Skin BasisCurves instead")
    widths = read_widths(prim, names, inherited_widths, _counts(segments), time, path, diagnostics)
    if normals is None:
        geometry = tubes(segments, moved, widths, path, diagnostics)
    else:
        geometry = ribbons(segments, moved, widths, _plain(normals), path, diagnostics)
    if geometry is None:
        return None
    if normals is not None:
        geometry.normals = _over_segments(segments, normals)
    for name, interpolated in varying:
        if name not in ("primvars:normals", "primvars:widths"):
            found = _read_primvar(prim, name, interpolated, segments, time, path, diagnostics)
            if found is not None:
                geometry.primvars[name[len(primvars.PREFIX) :]] = _over_segments(segments, found)
    return geometry, NO_SUBSETS


def _counts(segments: Segments) -> dict[str, int]:
    """How many values there are by interpolation. Where the curves do not use all points, values go with the points."""
    return {"uniform": len(segments.counts), "varying": segments.varying_count, "vertex": segments.vertex_count}


def _usable(points: object, counts: object, path: str, diagnostics: Diagnostics) -> bool:
    """Whether there are points and counts; a diagnostic says what else is there."""
    wrong = [value for value in (points, counts) if isinstance(value, str)]
    if wrong:
        diagnostics.error(path, "wrong-type", f"{'; '.join(wrong)}; {_SKIPPED}. Author the types of the schema")
        return False
    lacking = [name for name, value in (("points", points), ("curveVertexCounts", counts)) if value is None or not len(value)]
    if len(lacking) == 2:
        diagnostics.note(path, "empty-curves", "there are no curves at this time; nothing is drawn for it")
    elif lacking:
        diagnostics.error(path, "missing-topology", f"{lacking[0]} have no values; {_SKIPPED}. Author {lacking[0]}")
    return not lacking


def _ints(prim: Usd.Prim, name: str, names: Collection[str], time: Usd.TimeCode) -> np.ndarray | str | None:
    """(n,) int64; None: no value; str: what is wrong with it."""
    value = prim.GetAttribute(name).Get(time) if name in names else None
    if value is None:
        return None
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        return f"{name} holds {type(value).__name__}"
    return array.astype(np.int64)


def _token(prim: Usd.Prim, name: str, names: Collection[str], known: tuple[str, ...], fallback: str, path: str, told: Diagnostics) -> str:
    value = prim.GetAttribute(name).Get() if name in names else None
    if value is not None and value not in known:
        told.warning(path, "curve-type", f"{name} is {value!r}; read as {fallback}. Author one of {', '.join(known)}")
    return value if value in known else fallback


def _segments(
    prim: Usd.Prim, names, category: Category, points: np.ndarray, counts: np.ndarray, time: Usd.TimeCode, path: str, told: Diagnostics
) -> Segments | None:
    """The segments, what is wrong with their counts told; None where a diagnostic says why there are none."""
    if category is Category.NURBS_CURVES:
        segments, rule = read_nurbs_segments(prim, names, counts, len(points), time, path, told), ""
    elif category is Category.HERMITE_CURVES:
        tangents = read_points(prim, names, time, name="tangents")
        if not isinstance(tangents, np.ndarray) or len(tangents) != len(points):
            said = tangents if isinstance(tangents, str) else f"there are {0 if tangents is None else len(tangents)} tangents"
            told.error(path, "curve-tangents", f"{said} for {len(points)} points; {_SKIPPED}. Author one vector3f a point")
            return None
        segments, rule = bases.hermite_segments(counts, tangents), "2 or more"
    else:
        type_ = _token(prim, "type", names, bases.TYPES, "cubic", path, told)
        basis = _token(prim, "basis", names, bases.BASES, "bezier", path, told)
        wrap = _token(prim, "wrap", names, bases.WRAPS, "nonperiodic", path, told)
        segments, rule = bases.basis_segments(counts, type_, basis, wrap, len(points)), bases.count_rule(type_, basis, wrap)
    if segments is not None:
        _report_counts(segments, counts, rule, path, told)
    return segments


def _report_counts(segments: Segments, counts: np.ndarray, rule: str, path: str, diagnostics: Diagnostics) -> None:
    total, there = int(np.maximum(counts, 0).sum()), segments.vertex_count
    bad = np.flatnonzero(~segments.good) if rule else np.flatnonzero(np.cumsum(np.maximum(counts, 0)) > there)
    if len(bad):
        beyond = int(np.maximum(counts[: bad[0] + 1], 0).sum()) > there
        said = f"{len(bad)} of {len(counts)} curves are skipped: curve {bad[0]} has {int(counts[bad[0]])} vertices"
        said += f", and there are {there} points for all curves" if beyond else f" where such a curve has {rule}"
        diagnostics.error(path, "curve-counts", f"{said}. Mend curveVertexCounts")
    if total < there:
        message = f"curveVertexCounts add up to {total} and there are {there} points; the last {there - total} are left out"
        diagnostics.warning(path, "curve-counts", f"{message}. Mend curveVertexCounts")


def _read_normals(
    prim: Usd.Prim, names, varying, inherited: np.ndarray | None, segments: Segments, time: Usd.TimeCode, path: str, told: Diagnostics
) -> Primvar | None:
    """Authored unit normals, "constant" or as authored, not yet over the segments. As of meshes, primvars:normals count first."""
    expected = _counts(segments)
    found: Primvar | None = None
    interpolated = dict(varying).get("primvars:normals")
    if interpolated is not None:
        values = primvars.read_values(prim, "primvars:normals", time, expected, interpolated, path, told)
        found = None if values is None else Primvar(interpolated, *values)
    elif inherited is not None:
        found = Primvar("constant", inherited.reshape(1, -1))
    elif "normals" in names and "primvars:normals" not in names:
        interpolated = prim.GetAttribute("normals").GetMetadata("interpolation") or "vertex"
        values = primvars.read_values(prim, "normals", time, {"constant": 1, **expected}, interpolated, path, told)
        found = None if values is None else Primvar(interpolated, *values)
    return unit_normals(found, path, told) if found is not None and found.values.shape[1] == 3 else None


def _plain(normals: Primvar) -> Normals:
    values = normals.values if normals.indices is None else normals.values[normals.indices]
    return Normals(normals.interpolation, values.astype(np.float64))


def _read_primvar(
    prim: Usd.Prim, name: str, interpolated: str, segments: Segments, time: Usd.TimeCode, path: str, told: Diagnostics
) -> Primvar | None:
    """As authored, not yet over the segments."""
    expected = _counts(segments)
    if interpolated == "varying" and expected["varying"] != expected["vertex"]:
        if primvars.item_count(prim, name, time) == expected["vertex"]:
            message = f"{name} is varying and has a value a vertex, not one an end of a segment ({expected['varying']}); read as vertex"
            told.note(path, "primvar-count", message)
            interpolated = "vertex"
    values = primvars.read_values(prim, name, time, expected, interpolated, path, told)
    return None if values is None else Primvar(interpolated, *values)


def _over_segments(segments: Segments, primvar: Primvar) -> Primvar:
    """By curve, linear along each segment, or in the basis of the points."""
    values, indices = primvar.values, primvar.indices
    if primvar.interpolation == "constant":
        return Primvar("uniform", values, np.zeros(segments.count, np.int32))
    if primvar.interpolation == "uniform":
        curve = segments.curve
        return Primvar("uniform", values, (curve if indices is None else indices[curve]).astype(np.int32))
    if primvar.interpolation == "varying":
        return Primvar("faceVarying", values, indices)
    if segments.is_linear:  # "varying" is the same; what there is no curve for goes
        count = segments.varying_count
        return Primvar("faceVarying", *((values[:count], None) if indices is None else (values, indices[:count])))
    flat = values if indices is None else values[indices]
    return Primvar("bezier", segments.bezier(flat).reshape(-1, flat.shape[1]).astype(np.float32))
