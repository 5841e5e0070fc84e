"""stage.tubes: segments and widths -> MeshGeometry of round tubes, and what ribbons have in common with them. NumPy only."""

from __future__ import annotations

import numpy as np

from hdwarp.errors import Diagnostics
from hdwarp.stage import curve_pieces
from hdwarp.stage.columns import GeometryKind, MeshGeometry
from hdwarp.stage.curve_bases import Pieces, Segments, linear_bezier
from hdwarp.stage.transforms import LARGEST
from hdwarp.stage.widths import Widths


def tubes(segments: Segments, points: np.ndarray, widths: Widths, path: str, diagnostics: Diagnostics) -> MeshGeometry | None:
    """``points`` (V, 3) float32, all or more than the curves have."""
    which = sound_segments(segments, points, widths, path, diagnostics)
    if not len(which):
        return None
    pieces = with_radii(segments, points, widths, which)
    pieces = pieces.take((pieces.control[:, :, 3] > 0.0).any(axis=1))
    run, closed = runs(segments, which)
    parts = [_part(chunk, run, closed) for chunk in curve_pieces.chunks(pieces, run)]
    if not any(len(segment) for segment, _, _ in parts):
        report_nothing(path, diagnostics)
        return None
    segment, control, codes = (np.concatenate([part[k] for part in parts]) for k in range(3))
    radii = np.maximum(control[:, 3], 0.0)  # a cubic may swing below
    return geometry_of(segments, segment, control[:, :3], radii, codes, GeometryKind.TUBES)


def _part(pieces: Pieces, run: np.ndarray, closed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(segment (n,), control points and radii (4 n, 4) float32, code (n,)) of whole runs of ``pieces``."""
    cut = curve_pieces.cut(pieces, run, closed, turn=curve_pieces.TURN, radius=3)
    pieces, codes = curve_pieces.with_balls(cut, curve_pieces.joints(cut))
    return pieces.segment, pieces.control.astype(np.float32).reshape(-1, 4), codes


def report_nothing(path: str, diagnostics: Diagnostics) -> None:
    diagnostics.note(path, "no-length", "no segment of the curves has both a length and a width; nothing is drawn for them")


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
    radii = 0.5 * widths.values[:, None]
    by_vertex = widths.interpolation == "vertex"
    columns = [points.astype(np.float64), radii if by_vertex else None, extra]
    pieces = segments.pieces(np.concatenate([segments.fitted(column) for column in columns if column is not None], axis=1), which)
    if not by_vertex:
        both = pieces.control[:, :, :3], along(segments, pieces, widths.interpolation, radii), pieces.control[:, :, 3:]
        pieces.control = np.concatenate(both, axis=2)
    return pieces


def along(segments: Segments, pieces: Pieces, interpolation: str, values: np.ndarray) -> np.ndarray:
    """(n, 4, k) on ``pieces`` of values (m, k) that are "constant", "uniform" or "varying"."""
    if interpolation == "varying":
        ends = values[segments.ends()[pieces.segment]]
        at = [ends[:, 0] + (ends[:, 1] - ends[:, 0]) * share[:, None] for share in (pieces.start, pieces.end)]
        return linear_bezier(at[0], at[1])
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
