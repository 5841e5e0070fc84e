"""stage.ribbons: segments, widths and normals -> MeshGeometry of flat ribbons, either edge of each piece a cubic. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdwarp.errors import Diagnostics
from hdwarp.stage import curve_pieces, tubes
from hdwarp.stage.columns import STRAIGHT, GeometryKind, MeshGeometry
from hdwarp.stage.curve_bases import Pieces, Segments, linear_bezier
from hdwarp.stage.curve_pieces import Cut
from hdwarp.stage.widths import Widths

_SIDES = (-1.0, 1.0)
_TOLERANCE = 0.85e-4  # of the radius, at the three places looked at: edges are within 1e-4 between them too
_LONGEST_MITRE = 2.0  # of the half width
_ALONG = 1e-6  # sine of the angle to the curve below which a normal says nothing


@dataclass(frozen=True, slots=True, eq=False)
class Normals:
    """Which way a ribbon faces. Those of no length say nothing."""

    interpolation: str  # "constant", "uniform", "varying" or "vertex"
    values: np.ndarray  # (n, 3) float64


@dataclass(slots=True, eq=False)
class _End:
    """One end of every piece: where the curve is, and which way across, with their slopes along the piece."""

    along: np.ndarray  # (n, 3) slope of the place
    across: np.ndarray  # (n, 3) unit, N x T; 0 where it has no direction
    turn: np.ndarray  # (n, 3) slope of `across`


@dataclass(slots=True, eq=False)
class _Fit:
    edges: list[np.ndarray]  # two of (n, 4, 3)
    ends: tuple[_End, _End]
    radius: np.ndarray  # (n, 4, 1)
    good: np.ndarray  # (n,) bool: there is a way across


def ribbons(
    segments: Segments, points: np.ndarray, widths: Widths, normals: Normals, path: str, diagnostics: Diagnostics
) -> MeshGeometry | None:
    """As `tubes.tubes`; the front of a ribbon is the side to which its normals point."""
    which = tubes.sound_segments(segments, points, widths, path, diagnostics)
    if not len(which):
        return None
    by_vertex = normals.interpolation == "vertex"
    pieces = tubes.with_radii(segments, points, widths, which, normals.values if by_vertex else None)
    if not by_vertex:
        added = tubes.along(segments, pieces, normals.interpolation, normals.values)
        pieces.control = np.concatenate((pieces.control, added), axis=2)
    pieces = pieces.take((pieces.control[:, :, 3] > 0.0).any(axis=1))
    run, closed = tubes.runs(segments, which)
    parts = [_part(chunk, run, closed) for chunk in curve_pieces.chunks(pieces, run)]
    if not any(len(segment) or lost for segment, _, _, lost in parts):
        tubes.report_nothing(path, diagnostics)
        return None
    lost = sum(part[3] for part in parts)
    if lost:
        message = f"{lost} segments have normals that are zero or along the curve; not drawn there. Author normals across the curve"
        diagnostics.warning(path, "ribbon-normals", message)
    segment, corners, codes = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return tubes.geometry_of(segments, segment, corners, None, codes, GeometryKind.RIBBONS) if len(segment) else None


def _part(pieces: Pieces, run: np.ndarray, closed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(segment (n,), edges (8 n, 3) float32, code (n,), segments that have pieces which cannot be drawn) of whole runs of ``pieces``."""
    cut = curve_pieces.cut(pieces, run, closed, turn=curve_pieces.TURN, radius=3, across=slice(4, 7))
    cut = _refined(cut, run, closed)
    one, other, good = _edges(cut)
    straight = curve_pieces.is_straight(one, None) & curve_pieces.is_straight(other, None)
    for edge in (one, other):
        edge[straight] = linear_bezier(edge[straight, 0], edge[straight, 3])
    kept = cut.pieces.take(good)
    corners = np.concatenate((one, other), axis=1)[good].reshape(-1, 3).astype(np.float32)
    codes = curve_pieces.codes(kept, STRAIGHT * straight[good])
    return kept.segment, corners, codes, len(np.unique(cut.pieces.segment[~good]))


def _refined(cut: Cut, run: np.ndarray, closed: np.ndarray) -> Cut:
    """Pieces halved until the cubics of their edges are where the edges are."""
    pieces, _ = curve_pieces.refined(cut.pieces, _near)
    return Cut(pieces, np.zeros(len(pieces), bool), run[pieces.segment], closed[pieces.segment])


def _near(control: np.ndarray) -> np.ndarray:
    """(n,) bool: whose edges, looked at in three places between their ends, are near enough to their cubics. How far off along the curve
    does not show."""
    fit = _fit(control)
    limit = _TOLERANCE * np.maximum(np.max([control[:, i, 3] for i in range(4)], axis=0), 0.0)
    found = ~fit.good
    near = np.ones(len(control), bool)
    for u in (0.25, 0.5, 0.75):
        weights = (1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u**2 * (1 - u), u**3
        slopes = -3 * (1 - u) ** 2, 3 * (1 - u) * (1 - 3 * u), 3 * u * (2 - 3 * u), 3 * u**2
        there, along = _sum(control, weights), _sum(control[:, :, :3], slopes)
        along /= np.maximum(_norm(along), 1e-300)
        across = _cross(there[:, 4:7], along)
        across *= np.maximum(there[:, 3:4], 0.0) / np.maximum(_norm(across), 1e-300)
        for side, edge in zip(_SIDES, fit.edges, strict=True):
            off = _sum(edge, weights) - (there[:, :3] + side * across)
            off -= along * np.einsum("ni,ni->n", along, off)[:, None]
            near &= _norm(off)[:, 0] <= limit
    return found | near


def _sum(control: np.ndarray, weights: tuple[float, ...]) -> np.ndarray:
    """(n, k) of (n, 4, k): a plain sum is several times faster than a product of tensors."""
    return sum(weight * control[:, i] for i, weight in enumerate(weights))


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, 3), as numpy.cross, faster."""
    (ax, ay, az), (bx, by, bz) = a.T, b.T
    found = np.empty_like(a)
    found[:, 0], found[:, 1], found[:, 2] = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    return found


def _edges(cut: Cut) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(one edge, the other (n, 4, 3), whether there is a way across (n,)) of pieces that meet."""
    fit = _fit(cut.pieces.control)
    _join(cut, fit)
    return fit.edges[0], fit.edges[1], fit.good


def _fit(control: np.ndarray) -> _Fit:
    """Either edge, the curve less and plus its radius across, as a cubic with the places and slopes that it has at both ends of a piece."""
    place, radius = control[:, :, :3], np.maximum(control[:, :, 3:4], 0.0)
    ends = _end(control, 0, 1, 2), _end(control, 3, 2, 1)
    lost = [~end.across.any(axis=1) for end in ends]
    for k, end in enumerate(ends):  # from the other end, where that knows
        end.across[lost[k]] = ends[1 - k].across[lost[k]]
        end.turn[lost[k]] = 0.0
    good = ends[0].across.any(axis=1)
    slopes = 3.0 * (radius[:, 1] - radius[:, 0]), 3.0 * (radius[:, 3] - radius[:, 2])
    edges = []
    for side in _SIDES:
        at = [place[:, 3 * k] + side * radius[:, 3 * k] * ends[k].across for k in (0, 1)]
        by = [ends[k].along + side * (slopes[k] * ends[k].across + radius[:, 3 * k] * ends[k].turn) for k in (0, 1)]
        edges.append(np.stack((at[0], at[0] + by[0] / 3.0, at[1] - by[1] / 3.0, at[1]), axis=1))
    return _Fit(edges, ends, radius, good)


def _end(control: np.ndarray, first: int, second: int, third: int) -> _End:
    sign = 1.0 if first == 0 else -1.0
    a, b, c = (control[:, i, :3] for i in (first, second, third))
    along, curl = 3.0 * sign * (b - a), 6.0 * (c - 2.0 * b + a)
    normal = control[:, first, 4:7]
    turn = 3.0 * sign * (control[:, second, 4:7] - normal)
    size = np.maximum(np.abs(along).max(axis=1, keepdims=True), 1e-300)  # products of lengths neither overflow nor vanish
    step, curl = along / size, curl / size
    across = _cross(normal, step)
    length = _norm(across)
    known = length > _ALONG * _norm(normal) * _norm(step)
    length = np.where(known, length, 1.0)
    across = np.where(known, across / length, 0.0)
    slope = _cross(turn, step) + _cross(normal, curl)
    slope = (slope - across * np.einsum("ni,ni->n", across, slope)[:, None]) / length
    return _End(along, across, np.where(known, slope, 0.0))


def _join(cut: Cut, fit: _Fit) -> None:
    """Have pieces that follow one another share the ends of their edges, which are moved to the mitre where there is an angle. All of
    an edge goes along, so that what is straight stays so."""
    before = cut.before()
    after = np.flatnonzero((before >= 0) & fit.good & fit.good[before])
    before = before[after]
    if not len(after):
        return
    here, there = fit.ends[0].across[after], fit.ends[1].across[before]
    start, end = curve_pieces.tangents(cut.pieces.control)
    normal = cut.pieces.control[after, 0, 4:7]
    mean = _cross(normal, start[after] + end[before])
    length = _norm(mean)
    known = (length > _ALONG * _norm(normal))[:, 0]
    mean = mean / np.where(known[:, None], length, 1.0)
    cosine = np.minimum(np.einsum("ni,ni->n", mean, here), np.einsum("ni,ni->n", mean, there))
    wide = mean / np.maximum(cosine, 1.0 / _LONGEST_MITRE)[:, None]
    place = cut.pieces.control[after, 0, :3]
    for side, edge in zip(_SIDES, fit.edges, strict=True):
        to = np.where(known[:, None], place + side * fit.radius[after, 0] * wide, edge[after, 0])
        _move(edge, after, 0, to)
        _move(edge, before, 3, np.where(known[:, None], to, edge[before, 3]))


def _move(edge: np.ndarray, rows: np.ndarray, end: int, to: np.ndarray) -> None:
    shift = to - edge[rows, end]
    share = (np.arange(4) if end else np.arange(3, -1, -1)) / 3.0
    edge[rows] += shift[:, None] * share[:, None]
    edge[rows, end] = to


def _norm(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ni,ni->n", vectors, vectors))[:, None]
