"""stage.earpeel: many ears of a large polygon at once, round after round. NumPy only; knows no USD.

Ears whose tips are not neighbours do not overlap, and what is left when all are cut off is a polygon again. Which reflex corners lie in
which ears is found with a grid of square cells. What touches itself is left to `earclip`: a corner in one place with another blocks.
"""

from __future__ import annotations

import itertools

import numpy as np

LEAST = 2000  # corners below which rounds do not pay
_PROGRESS = 200  # a round that cuts off less than this part of the corners is the last
_PAIRS = 1 << 20  # of triangles and rows of cells looked at together
_CROWD = 2000  # corners near one triangle beyond which it is not looked at: it waits for another round
_SLACK = 1e-6  # of a cell, against rounding


def peel(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(triangles (t, 3), ring (m,))``: corner numbers of the ears cut off the polygon ``points`` (n, 2) float64, which is
    counter-clockwise, and of what is left, m = n - t; none where all is cut."""
    if len(points) <= LEAST:
        return np.zeros((0, 3), np.int64), np.arange(len(points))
    ring, triangles = np.arange(len(points)), []
    while len(ring) > LEAST:
        p = points[ring]
        before, following = np.roll(p, 1, axis=0), np.roll(p, -1, axis=0)
        arriving, leaving = p - before, following - p
        convex = arriving[:, 0] * leaving[:, 1] - arriving[:, 1] * leaving[:, 0] > 0.0
        if convex.all():
            triangles.append(np.stack((np.full(len(ring) - 2, ring[0]), ring[1:-1], ring[2:]), axis=1))
            ring = ring[:0]
            break
        tips = np.flatnonzero(convex)
        ears = np.zeros(len(ring), bool)
        ears[tips] = ~_blocked(p, tips, np.flatnonzero(~convex))
        chosen = ears.copy()
        chosen[1::2] = False
        if len(ring) % 2:
            chosen[-1] &= not chosen[0]
        chosen |= ears & ~np.roll(chosen, 1) & ~np.roll(chosen, -1) & (np.arange(len(ring)) % 2 == 1)
        if chosen.sum() * _PROGRESS < len(ring):
            break
        at = np.flatnonzero(chosen)
        triangles.append(np.stack((ring[at - 1], ring[at], ring[(at + 1) % len(ring)]), axis=1))
        ring = ring[~chosen]
    return np.concatenate(triangles) if triangles else np.zeros((0, 3), np.int64), ring


def straight_corners(points: np.ndarray) -> np.ndarray:
    """(n,) bool: corners in which the outline goes straight on, of large polygons where there are many: to be left out and put back."""
    arriving = points - np.roll(points, 1, axis=0)
    leaving = np.roll(arriving, -1, axis=0)
    straight = arriving[:, 0] * leaving[:, 1] - arriving[:, 1] * leaving[:, 0] == 0.0
    straight &= np.einsum("ij,ij->i", arriving, leaving) > 0.0
    if len(points) <= LEAST or straight.sum() * _PROGRESS < len(points) or len(points) - straight.sum() < 3:
        straight[:] = False
    return straight


def put_back(triangles: np.ndarray, straight: np.ndarray) -> np.ndarray:
    """``triangles`` (t, 3) of the corners that are not ``straight``, cut so that the others are used: (n - 2, 3)."""
    n = len(straight)
    kept = np.flatnonzero(~straight)
    run = np.diff(np.append(kept, kept[0] + n)) - 1  # straight corners that follow each
    after, length = dict(zip(kept.tolist(), np.roll(kept, -1).tolist(), strict=True)), dict(zip(kept.tolist(), run.tolist(), strict=True))
    following = np.zeros(n, np.int64)
    following[kept] = np.roll(kept, -1)
    has_run = np.zeros(n, bool)
    has_run[kept] = run > 0
    turned = np.roll(triangles, -1, axis=1)
    touched = (has_run[triangles] & (following[triangles] == turned)).any(axis=1)
    found = []
    for triangle in triangles[touched].tolist():
        todo = [triangle]
        for k in range(3):
            a, b = triangle[k], triangle[(k + 1) % 3]
            if after[a] != b or not length[a]:
                continue
            number = next(i for i, t in enumerate(todo) if a in t and b in t)
            t = todo.pop(number)
            c = next(corner for corner in t if corner not in (a, b))
            steps = [a, *((a + 1 + i) % n for i in range(length[a])), b]
            todo += [[p, q, c] for p, q in itertools.pairwise(steps)]
        found += todo
    return np.concatenate((triangles[~touched], np.array(found, np.int64).reshape(-1, 3)))


def _blocked(p: np.ndarray, tips: np.ndarray, reflex: np.ndarray) -> np.ndarray:
    """(len(tips),) bool: whether another of the ``reflex`` corners of ``p`` is in the closed triangle at a tip, or too many are near."""
    low, extent = p.min(axis=0), np.ptp(p, axis=0)
    # Corners lie along curves, many in a cell; a third of what would be right for scattered ones is fastest.
    cell = max(float(np.sqrt(extent[0]) * np.sqrt(extent[1]) / np.sqrt(len(reflex))) / 3.0, float(extent.max()) / 1e6)
    blocked = np.ones(len(tips), bool)
    if not cell > 0.0:
        return blocked
    scaled = (p - low) / cell  # a cell is 1
    columns, rows = (scaled.max(axis=0).astype(np.int64) + 1).tolist()
    number = scaled[reflex].astype(np.int64)
    number = number[:, 1] * columns + number[:, 0]
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(rows * columns + 1))
    corners = np.stack((tips - 1, tips, (tips + 1) % len(p)))
    corners[0] %= len(p)
    triangles = scaled[corners]  # (3, T, 2)
    lowest = np.maximum((triangles[..., 1].min(axis=0) - _SLACK).astype(np.int64), 0)
    heights = np.minimum((triangles[..., 1].max(axis=0) + _SLACK).astype(np.int64), rows - 1) - lowest + 1
    blocked[:] = False
    chunk = np.cumsum(heights) // _PAIRS
    for part in np.split(np.arange(len(tips)), np.flatnonzero(np.diff(chunk)) + 1):
        first, count, of = _near(triangles[:, part], lowest[part], heights[part], starts, columns)
        crowd = np.bincount(of, count, len(part)) > _CROWD
        count = np.where(crowd[of], 0, count)
        used = count > 0
        first, count, of = first[used], count[used], of[used]
        near = order[np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)]
        of = np.repeat(of, count)
        inside = _inside(p, corners[:, part[of]], reflex[near])
        blocked[part[of[inside]]] = True
        blocked[part[crowd]] = True
    return blocked


def _near(triangles: np.ndarray, lowest: np.ndarray, heights: np.ndarray, starts: np.ndarray, columns: int):
    """(first, count, triangle) of the sorted corners in the cells that each triangle reaches, row by row."""
    of = np.repeat(np.arange(len(heights)), heights)
    row = np.arange(len(of)) + np.repeat(lowest - (np.cumsum(heights) - heights), heights)
    ends = triangles[..., 0].min(axis=0) - _SLACK, triangles[..., 0].max(axis=0) + _SLACK
    begin, end = (np.clip(x, 0, columns - 1).astype(np.int64)[of] + row * columns for x in ends)
    some = starts[end + 1] > starts[begin]  # most have none in their whole box
    of, row = of[some], row[some]
    low, high = row - _SLACK, row + 1 + _SLACK
    left, right = np.full(len(of), np.inf), np.full(len(of), -np.inf)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        a, b = triangles[i][of], triangles[j][of]
        rise = b[:, 1] - a[:, 1]
        level = rise == 0.0
        for y, end in ((low, 0.0), (high, 1.0)):
            share = np.where(level, end, np.clip((y - a[:, 1]) / np.where(level, 1.0, rise), 0.0, 1.0))
            at = a + share[:, None] * (b - a)
            there = (at[:, 1] >= low - _SLACK) & (at[:, 1] <= high + _SLACK)
            np.minimum(left, at[:, 0], out=left, where=there)
            np.maximum(right, at[:, 0], out=right, where=there)
    some = right >= left
    begin = np.clip(np.where(some, left, 0.0) - _SLACK, 0, columns - 1).astype(np.int64)
    end = np.clip(np.where(some, right, 0.0) + _SLACK, 0, columns - 1).astype(np.int64)
    first = starts[row * columns + begin]
    return first, np.where(some, starts[row * columns + end + 1] - first, 0), of


def _inside(p: np.ndarray, corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Whether each of ``points`` is in its closed triangle, and is none of its ``corners``."""
    found = (points != corners).all(axis=0)
    q = p[points]
    for i, j in ((0, 1), (1, 2), (2, 0)):
        a, b = p[corners[i]], p[corners[j]]
        found &= (b[:, 0] - a[:, 0]) * (q[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (q[:, 0] - a[:, 0]) >= 0.0
    return found
