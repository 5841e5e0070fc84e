"""delegate.previous_points: where the points of one geometry were in another one of the same prim. NumPy only; no USD, no Warp.

Curves are cut into pieces by how they bend, and points come and go, so that what is drawn now need not have been the same items before.
What was authored tells what belongs together: places along a segment, ids or numbers of points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hdwarp.delegate.mesh_content import same_topology
from hdwarp.stage.columns import BALL, GeometryKind, MeshGeometry

_SHARES = (0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0)  # where along a piece of now one looks
_ROUNDING = 1e-6  # of the largest coordinate: by so much do two ways to cut one curve differ


@dataclass(slots=True, eq=False)
class _Places:
    """Which pieces of a geometry of then hold the pieces of now. Pieces of segments that were not there are in none of these."""

    same: np.ndarray  # (n,) pieces of now that are the same part of the same segment as `same_then`
    same_then: np.ndarray
    other: np.ndarray  # (m,) pieces of now that were cut otherwise
    seen: list[tuple[np.ndarray, np.ndarray]]  # for each of `_SHARES`: (pieces of then (m,), how far along them (m,))
    balls: np.ndarray  # pieces of now of which only the first control point counts


def previous_points(before: MeshGeometry | None, now: MeshGeometry | None) -> MeshGeometry | None:
    """The items of ``now`` with the points and radii of ``before``. None where all points are what they were, and where it is not known
    which were which: a surface of other triangles, another number of segments, or of points without ids.

    Items of ``now`` that were not there have the points of now.
    """
    if before is None or now is None or before is now or before.form != now.form:
        return None
    if now.form == GeometryKind.MESH and np.array_equal(before.points, now.points):
        return None
    if same_topology(before, now):
        return None if np.array_equal(before.points, now.points) else before
    if now.form == GeometryKind.MESH or before.is_moved or now.is_moved:  # of a mesh; that a caller moves: not from `points`
        return None
    if not len(before.triangle_face) or not len(now.triangle_face):
        return None
    found = _of_points(before, now) if now.form == GeometryKind.POINTS else _of_curves(before, now)
    return None if found is None or np.array_equal(found.points, now.points) else found


def _of_points(before: MeshGeometry, now: MeshGeometry) -> MeshGeometry | None:
    face = now.triangle_face
    if before.ids is not None and now.ids is not None:
        face = _same_ids(before.ids, now.ids)[face]
    elif before.face_count != now.face_count:
        return None
    item = np.full(before.face_count + 1, -1)  # the last is that of face -1
    item[before.triangle_face] = np.arange(len(before.triangle_face))
    item = item[face]
    there = item >= 0
    points = np.where(there[:, None], before.points[item], now.points)
    return replace(now, points=points, radii=np.where(there, before.radii[item], now.radii))


def _same_ids(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """By each of ``now`` the place of the same id in ``before``; -1: there is none, or either has it more than once."""
    ids, place, times = np.unique(before, return_index=True, return_counts=True)
    _, number, own_times = np.unique(now, return_inverse=True, return_counts=True)
    at = np.minimum(np.searchsorted(ids, now), len(ids) - 1)
    sure = (ids[at] == now) & (times[at] == 1) & (own_times[number.reshape(-1)] == 1)
    return np.where(sure, place[at], -1)


def _of_curves(before: MeshGeometry, now: MeshGeometry) -> MeshGeometry | None:
    """Each piece of now is the cubic through four places of the curve that was: exact where one cubic of then holds them all, and where
    all of the segment was one cubic, however it was cut."""
    places = _locate(before, now)
    if places is None:
        return None
    points = _was(places, before.points, now.points, 2 if now.form == GeometryKind.RIBBONS else 1, _ROUNDING)
    radii = None if now.radii is None else np.maximum(_was(places, before.radii, now.radii, 1, 0.0), 0.0)
    return replace(now, points=points, radii=radii)


def _locate(before: MeshGeometry, now: MeshGeometry) -> _Places | None:
    """None where the curves are others."""
    if (before.face_count, before.corner_count) != (now.face_count, now.corner_count):
        return None
    then = np.flatnonzero((before.pieces & BALL) == 0)
    start_then, size_then = _parts(before.pieces[then])
    start, size = _parts(now.pieces)
    segment_then, segment = before.triangle_face[then], now.triangle_face
    first, last = np.searchsorted(segment_then, segment), np.searchsorted(segment_then, segment, side="right") - 1
    keys = segment_then + start_then

    def row_of(share: float, which: np.ndarray) -> np.ndarray:
        """Rows of ``then`` that hold what is ``share`` along pieces of now: either of two that meet there, which have it alike."""
        place = segment[which] + (start[which] + share * size[which])
        row = np.searchsorted(keys, place, side="right") - 1
        return np.clip(row, first[which], last[which])  # parts of no length have no pieces: the nearest one's end is where they were

    known = np.flatnonzero(first <= last)
    row = row_of(0.0, known)
    if not np.array_equal(before.triangle_points[then[row]], now.triangle_points[known]):
        return None  # as many segments, the curves of other lengths
    is_same = (start_then[row] == start[known]) & (size_then[row] == size[known])
    other, seen = known[~is_same], []
    for share in _SHARES:
        row = row_of(share, other)
        u = (start[other] + share * size[other] - start_then[row]) / size_then[row]
        seen.append((then[row], np.clip(u, 0.0, 1.0)))
    row = row_of(0.0, known[is_same])
    return _Places(known[is_same], then[row], other, seen, np.flatnonzero(now.pieces & BALL))


def _was(places: _Places, values_then: np.ndarray, values: np.ndarray, edges: int, rounding: float) -> np.ndarray:
    """``values`` of now's control points, as they were. Cubics that are as they were but for ``rounding`` keep their bits."""
    shape = -1, edges, 4, values[:1].size
    control, found = values_then.reshape(shape), values.reshape(shape).copy()
    found[places.same] = control[places.same_then]
    moved = _through(*(_at(control[rows], u[:, None, None]) for rows, u in places.seen))
    own = found[places.other]
    moves = np.abs(moved - own).max(axis=(1, 2, 3)) > rounding * np.abs(own).max(axis=(1, 2, 3))
    found[places.other[moves]] = moved[moves]
    found[places.balls] = found[places.balls][:, :, :1]
    return found.reshape(values.shape)


def _parts(pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(where in its segment each piece starts, how much of it it is)."""
    number = pieces >> 4
    size = np.ldexp(1.0, 1 - np.frexp(number.astype(np.float64))[1])
    return number * size - 1.0, size


def _at(control: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(n, e, k) float64 of (n, e, 4, k) cubics at ``u`` (n, 1, 1), by de Casteljau: at 0 and 1 the bits of their ends."""
    row = [control[:, :, i].astype(np.float64) for i in range(4)]
    while len(row) > 1:
        row = [(1.0 - u) * a + u * b for a, b in pairwise(row)]
    return row[0]


def _through(p: np.ndarray, q: np.ndarray, r: np.ndarray, s: np.ndarray) -> np.ndarray:
    """(n, e, 4, k): the cubics that are at ``p`` to ``s`` (n, e, k) at `_SHARES`."""
    one, other = (-5.0 * p + 18.0 * q - 9.0 * r + 2.0 * s) / 6.0, (2.0 * p - 9.0 * q + 18.0 * r - 5.0 * s) / 6.0
    return np.stack((p, one, other, s), axis=2)
