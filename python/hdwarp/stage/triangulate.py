"""stage.triangulate: polygons -> triangles by face corner, in authored face order. NumPy only; knows no USD."""

from __future__ import annotations

import numpy as np

from hdwarp.stage.earclip import clip_ears

_TWICE = 1e-6  # part of a face's area that a fan may cover twice


def triangulate(points, counts, indices, holes=None, flip=False, *, drawn=None) -> tuple[np.ndarray, np.ndarray]:
    """``(corners (T, 3) int32, face (T,) int32)``: face corners (positions in ``indices``) of each triangle, and its authored face.

    points (P, 3), counts (F,), indices (C,) in range with ``counts.sum() == C``. ``holes`` lists faces without triangles, ``drawn``
    (F,) bool switches further faces off, ``flip`` (bool or (F,) bool) says leftHanded: the last two corners of each triangle swap.
    Convex faces are fans like Hydra's, (v0, v1, v2), (v0, v2, v3), ...; a concave quad is cut along its other diagonal, a concave
    polygon is cut into ears, so that every face is covered exactly once and gives ``count - 2`` triangles.
    """
    points = np.asarray(points)
    counts = np.asarray(counts, np.int64)
    indices = np.asarray(indices)
    keep = counts >= 3
    if drawn is not None:
        keep &= drawn
    if holes is not None and len(holes):
        keep[np.asarray(holes)] = False
    if len(counts) and counts.min() == 3 == counts.max() and keep.all():  # triangles already: a quarter of the time of the general way
        corners = np.arange(3 * len(counts), dtype=np.int32).reshape(-1, 3)
        return _turned(corners, np.broadcast_to(np.asarray(flip, bool), counts.shape)), np.arange(len(counts), dtype=np.int32)
    starts = np.cumsum(counts) - counts
    triangles_of = np.where(keep, counts - 2, 0)
    first_triangle = np.cumsum(triangles_of) - triangles_of
    corners = np.empty((int(triangles_of.sum()), 3), np.int32)
    face = np.repeat(np.arange(len(counts), dtype=np.int32), triangles_of)

    three = np.flatnonzero(keep & (counts == 3))
    corners[first_triangle[three]] = starts[three, None] + np.arange(3)
    four = np.flatnonzero(keep & (counts == 4))
    if len(four):
        _cut_quads(points, indices, starts[four], first_triangle[four], corners)
    more = np.flatnonzero(keep & (counts > 4))
    if len(more):
        _cut_polygons(points, indices, counts[more], starts[more], first_triangle[more], corners)

    return _turned(corners, np.broadcast_to(np.asarray(flip, bool), counts.shape)[face]), face


def _turned(corners: np.ndarray, flipped: np.ndarray) -> np.ndarray:
    """Triangles with the last two corners swapped where ``flipped``."""
    if flipped.any():
        corners[flipped] = corners[flipped][:, [0, 2, 1]]
    return corners


def newell_normals(points: np.ndarray, indices: np.ndarray, counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(F, 3) float64 area vectors of polygons (length is twice the area, direction that of counter-clockwise winding)."""
    corner = _ranges(starts, counts)
    following = corner + 1
    ends = np.cumsum(counts) - 1
    following[ends] = starts
    first = np.repeat(points[indices[starts]].astype(np.float64), counts, axis=0)  # relative to a corner: exact far from the origin
    a = points[indices[corner]] - first
    b = points[indices[following]] - first
    return np.add.reduceat(np.cross(a, b), ends + 1 - counts, axis=0)


def _ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """start, start + 1, ... of every (start, count), one after the other."""
    return np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)


def _cut_quads(points, indices, starts, first_triangle, corners) -> None:
    v = points[indices[starts[:, None] + np.arange(4)]].astype(np.float64)
    edge = v[:, 1:] - v[:, :1]
    fan = np.einsum("ij,ij->i", np.cross(edge[:, 0], edge[:, 1]), np.cross(edge[:, 1], edge[:, 2]))
    corners[first_triangle] = starts[:, None] + np.array([0, 1, 2])
    corners[first_triangle + 1] = starts[:, None] + np.array([0, 2, 3])
    bent = np.flatnonzero(fan < 0.0)  # the two halves of the fan face opposite ways: it is concave at v1 or v3, or folded
    if len(bent):
        w = v[bent]
        low = np.cross(w[:, 2] - w[:, 1], w[:, 3] - w[:, 1])
        high = np.cross(w[:, 3] - w[:, 1], w[:, 0] - w[:, 1])
        other = bent[np.einsum("ij,ij->i", low, high) >= 0.0]
        corners[first_triangle[other]] = starts[other, None] + np.array([0, 1, 3])
        corners[first_triangle[other] + 1] = starts[other, None] + np.array([1, 2, 3])


def _cut_polygons(points, indices, counts, starts, first_triangle, corners) -> None:
    normal = newell_normals(points, indices, counts, starts)
    local, convex = _project(points, indices, counts, starts, normal)
    fans = np.flatnonzero(convex)
    step = _ranges(np.ones(len(fans), np.int64), counts[fans] - 2)  # 1 .. count - 2
    base = np.repeat(starts[fans], counts[fans] - 2)
    rows = _ranges(first_triangle[fans], counts[fans] - 2)
    corners[rows] = np.stack((base, base + step, base + step + 1), axis=1)
    offsets = np.cumsum(counts) - counts
    for k in np.flatnonzero(~convex):
        n = int(counts[k])
        ears = clip_ears(local[offsets[k] : offsets[k] + n])
        corners[first_triangle[k] : first_triangle[k] + n - 2] = starts[k] + ears


def _project(points, indices, counts, starts, normal) -> tuple[np.ndarray, np.ndarray]:
    """Corners on their face's plane, counter-clockwise, as one (C, 2) array, and which faces are convex."""
    length = np.linalg.norm(normal, axis=1)
    flat = length <= 0.0  # no area: any cut covers it, a fan does
    n = normal / np.where(flat, 1.0, length)[:, None]
    n[flat] = (0.0, 0.0, 1.0)
    # A basis without a branch on the axis (Duff et al. 2017); u x v = n
    sign = np.copysign(1.0, n[:, 2])
    a = -1.0 / (sign + n[:, 2])
    b = n[:, 0] * n[:, 1] * a
    u = np.stack((1.0 + sign * n[:, 0] ** 2 * a, sign * b, -sign * n[:, 0]), axis=1)
    v = np.stack((b, sign + n[:, 1] ** 2 * a, -n[:, 1]), axis=1)

    corner = _ranges(starts, counts)
    ends = np.cumsum(counts) - 1
    begins = ends + 1 - counts
    position = points[indices[corner]] - np.repeat(points[indices[starts]].astype(np.float64), counts, axis=0)
    of_face = np.repeat(np.arange(len(counts)), counts)
    local = np.stack((np.einsum("ij,ij->i", position, u[of_face]), np.einsum("ij,ij->i", position, v[of_face])), axis=1)

    following = np.arange(len(corner)) + 1
    following[ends] = begins
    edge = local[following] - local
    before = np.arange(len(corner)) - 1
    before[begins] = ends
    arriving, leaving = edge[before], edge
    cross = arriving[:, 0] * leaving[:, 1] - arriving[:, 1] * leaving[:, 0]
    dot = arriving[:, 0] * leaving[:, 0] + arriving[:, 1] * leaving[:, 1]
    size = np.maximum.reduceat(np.abs(local).max(axis=1), begins)
    tolerance = (1e-7 * size * size)[of_face]  # float32 points: corners meant to be straight are not quite
    turn = np.add.reduceat(np.arctan2(cross, dot), begins)  # one full turn; a star that winds twice is not convex
    least = np.minimum.reduceat(np.where(cross >= -tolerance * 1e-3, 1.0, -1.0), begins)
    back = np.minimum.reduceat(np.where((np.abs(cross) <= tolerance) & (dot < 0.0), -1.0, 1.0), begins)  # spikes fold back on themselves
    following = local[np.append(np.arange(1, len(local)), 0)]  # of the last corner of a face anything: the face begins at the origin
    fan = local[:, 0] * following[:, 1] - local[:, 1] * following[:, 0]
    fan[ends] = 0.0
    area = np.add.reduceat(fan, begins)
    once = np.add.reduceat(np.abs(fan), begins) <= (1.0 + _TWICE) * area  # many small turns the wrong way add up
    convex = flat | ((least > 0.0) & (back > 0.0) & (np.abs(turn - 2.0 * np.pi) < 1.0) & once)
    return local, convex
