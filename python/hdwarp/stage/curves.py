"""stage.curves: BasisCurves prims -> MeshGeometry of tubes and ribbons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage import curve_bases as bases
from hdwarp.stage import curve_pieces, primvars
from hdwarp.stage.columns import GeometryKind, MeshGeometry, Primvar
from hdwarp.stage.curve_bases import Pieces, Segments
from hdwarp.stage.meshes import NO_SUBSETS, RawMesh, deformed, read_points
from hdwarp.stage.subsets import Subsets
from hdwarp.stage.transforms import LARGEST
from hdwarp.stage.widths import Widths, read_widths

_SKIPPED = "the curves are skipped"
_MOST = 2**31 - 1  # rows that int32 can number


def read_curves(
    prim: Usd.Prim,
    names: Collection[str],
    varying: Sequence[tuple[str, str]],
    subset_prims: Sequence[Usd.Prim],
    inherited_normals: np.ndarray | None,
    inherited_widths: np.ndarray | None,
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
    *,
    deform: Callable[[RawMesh], None],
) -> tuple[MeshGeometry, Subsets] | None:
    """What is drawn of a BasisCurves prim: tubes, or with normals ribbons; None, with a diagnostic, where that is nothing. ``deform``:
    moves the points of a skin."""
    points = read_points(prim, names, time)
    counts = _ints(prim, "curveVertexCounts", names, time)
    if not _usable(points, counts, path, diagnostics):
        return None
    segments = _basis_segments(prim, names, counts, len(points), path, diagnostics)
    if subset_prims:
        diagnostics.warning(path, "subset-type", "subsets of curves are not supported; they have the prim's material throughout")
    points, _ = deformed(points, None, deform)
    widths = read_widths(prim, names, inherited_widths, _counts(segments), time, path, diagnostics)
    geometry = tubes(segments, points, widths, path, diagnostics)
    if geometry is None:
        return None
    geometry.primvars = _primvars(prim, varying, segments, time, path, diagnostics)
    return geometry, NO_SUBSETS


def tubes(segments: Segments, points: np.ndarray, widths: Widths, path: str, diagnostics: Diagnostics) -> MeshGeometry | None:
    """``points`` (V, 3) float32, all or more than the curves have."""
    which = sound_segments(segments, points, widths, path, diagnostics)
    if not len(which):
        return None
    pieces = with_radii(segments, points, widths, which)
    pieces = pieces.take((pieces.control[:, :, 3] > 0.0).any(axis=1))
    run, closed = runs(segments, which)
    cut = curve_pieces.cut(pieces, run, closed, turn=curve_pieces.TUBE_TURN, radius=3)
    if not len(cut.pieces):
        diagnostics.note(path, "no-length", "no segment of the curves has both a length and a width; nothing is drawn for them")
        return None
    pieces, codes = curve_pieces.with_balls(cut, curve_pieces.joints(cut))
    control = pieces.control.astype(np.float32).reshape(-1, 4)
    radii = np.maximum(control[:, 3], 0.0)  # a cubic may swing below
    return geometry_of(segments, pieces.segment, control[:, :3], radii, codes, GeometryKind.TUBES)


def geometry_of(
    segments: Segments, segment: np.ndarray, points: np.ndarray, radii: np.ndarray | None, codes: np.ndarray, form: GeometryKind
) -> MeshGeometry:
    ends = segments.ends()[segment].astype(np.int32)
    corners = ends[:, [1, 1, 0]]
    far = np.abs(points).max(axis=1)
    return MeshGeometry(
        np.ascontiguousarray(points),
        corners,
        corners,
        segment.astype(np.int32),
        segments.count,
        segments.varying_count,
        reach=float((far if radii is None else far + radii).max()),
        form=form,
        radii=radii,
        pieces=codes,
    )


def sound_segments(segments: Segments, points: np.ndarray, widths: Widths, path: str, diagnostics: Diagnostics) -> np.ndarray:
    """Numbers of the segments that can be drawn. What the others use is told; bad widths have been already."""
    finite = (np.abs(points) <= LARGEST).all(axis=1)
    sound = segments.sound(finite)
    lost = int(segments.good[segments.curve].sum() - sound.sum()) if not finite.all() else 0
    if lost:
        message = f"{lost} of {segments.count} segments use {int((~finite).sum())} points that are NaN, infinite or beyond {LARGEST:g}"
        diagnostics.error(path, "points-not-finite", f"{message}; they are not drawn, the others are. Mend the values")
    good = widths.values * 0.5 <= LARGEST
    if not good.all():
        if widths.interpolation == "vertex":
            sound &= segments.sound(good)
        elif widths.interpolation == "varying":
            sound &= good[segments.ends()].all(axis=1)
        else:
            sound &= np.broadcast_to(good, len(segments.counts))[segments.curve]
    return np.flatnonzero(sound)


def with_radii(segments: Segments, points: np.ndarray, widths: Widths, which: np.ndarray, extra: np.ndarray | None = None) -> Pieces:
    """The pieces of the segments ``which``, their radius the fourth component, then what comes of ``extra`` (V, k) at the vertices."""
    columns = [points.astype(np.float64)]
    radii = 0.5 * widths.values
    if widths.interpolation == "vertex":
        columns.append(segments.fitted(radii)[:, None])
    pieces = segments.pieces(np.concatenate(columns, axis=1), which)
    if widths.interpolation != "vertex":
        pieces.control = np.concatenate((pieces.control, along(segments, pieces, widths.interpolation, radii[:, None])), axis=2)
    return pieces


def along(segments: Segments, pieces: Pieces, interpolation: str, values: np.ndarray) -> np.ndarray:
    """(n, 4, k) on ``pieces`` of values (m, k) that are "constant", "uniform" or "varying"."""
    if interpolation == "varying":
        ends = values[segments.ends()[pieces.segment]]
        at = [ends[:, 0] + (ends[:, 1] - ends[:, 0]) * share[:, None] for share in (pieces.start, pieces.end)]
        return bases.linear_bezier(at[0], at[1])
    of_curve = np.broadcast_to(values, (len(segments.counts), values.shape[1]))
    return np.repeat(of_curve[segments.curve[pieces.segment]][:, None], 4, axis=1)


def runs(segments: Segments, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By segment: (number of its run, whether that is a ring), of the segments ``which`` that are drawn, rising. A curve of which a
    segment is missing falls apart; a ring then begins after the gap."""
    there = np.zeros(segments.count, bool)
    there[which] = True
    curve, place = segments.curve, segments.place
    whole = np.bincount(curve[which], minlength=len(segments.counts)) == segments.per_curve
    closed = (whole & segments.closed)[curve]
    follows = np.concatenate(([False], there[:-1])) & (place > 0)
    return np.cumsum(~follows), closed


def _counts(segments: Segments) -> dict[str, int]:
    return {"uniform": len(segments.counts), "varying": segments.varying_count, "vertex": int(segments.counts.sum())}


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


def _basis_segments(prim, names, counts: np.ndarray, point_count: int, path: str, diagnostics: Diagnostics) -> Segments:
    type_ = _token(prim, "type", names, bases.TYPES, "cubic", path, diagnostics)
    basis = _token(prim, "basis", names, bases.BASES, "bezier", path, diagnostics)
    wrap = _token(prim, "wrap", names, bases.WRAPS, "nonperiodic", path, diagnostics)
    segments = bases.basis_segments(counts, type_, basis, wrap, point_count)
    report_counts(segments, counts, bases.count_rule(type_, basis, wrap), point_count, path, diagnostics)
    return segments


def report_counts(segments: Segments, counts: np.ndarray, rule: str, point_count: int, path: str, diagnostics: Diagnostics) -> None:
    if not segments.good.all():
        bad = np.flatnonzero(~segments.good)
        beyond = np.cumsum(segments.counts)[bad[0]] > point_count
        said = f"{len(bad)} of {len(counts)} curves are skipped: curve {bad[0]} has {int(counts[bad[0]])} vertices"
        said += f", and there are {point_count} points for all curves" if beyond else f" where such a curve has {rule}"
        diagnostics.error(path, "curve-counts", f"{said}. Mend curveVertexCounts")
    total = int(segments.counts.sum())
    if total < point_count:
        message = f"curveVertexCounts add up to {total} and there are {point_count} points; the last {point_count - total} are left out"
        diagnostics.warning(path, "curve-counts", message)


def _primvars(prim: Usd.Prim, varying, segments: Segments, time: Usd.TimeCode, path: str, diagnostics: Diagnostics) -> dict[str, Primvar]:
    kept: dict[str, Primvar] = {}
    for name, interpolated in varying:
        if name in ("primvars:normals", "primvars:widths"):
            continue
        primvar = read_primvar(prim, name, interpolated, segments, time, path, diagnostics)
        if primvar is not None:
            kept[name[len(primvars.PREFIX) :]] = primvar
    return kept


def read_primvar(
    prim: Usd.Prim, name: str, interpolated: str, segments: Segments, time: Usd.TimeCode, path: str, diagnostics: Diagnostics
) -> Primvar | None:
    """A primvar over the segments: by curve, linear along each, or in the basis of the points."""
    found = primvars.read_values(prim, name, time, _counts(segments), interpolated, path, diagnostics)
    if found is None:
        return None
    values, indices = found
    if interpolated == "uniform":
        curve = segments.curve
        return Primvar("uniform", values, (curve if indices is None else indices[curve]).astype(np.int32))
    if interpolated == "varying":
        return Primvar("faceVarying", values, indices)
    if segments.is_linear:
        return Primvar("faceVarying", values, indices)
    flat = values if indices is None else values[indices]
    return Primvar("bezier", segments.bezier(flat).reshape(-1, flat.shape[1]).astype(np.float32))
