"""stage.earclip: one simple polygon in the plane -> triangles. NumPy only; knows no USD.

Ear clipping walks round the polygon and cuts off every corner whose triangle holds no reflex corner. Which reflex corners lie near
a triangle comes from lists sorted by x and by y, the shorter of the two slices being tested, so that even a polygon of 100,000
corners is cut in seconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

_FEW = 24  # up to so many candidates plain Python beats a NumPy call


def clip_ears(points: np.ndarray) -> np.ndarray:
    """(n - 2, 3) corner numbers, counter-clockwise like the polygon ``points`` (n, 2) float64.

    Corners may repeat or lie on a line (as in a face with a bridge to a hole): the area is still covered exactly once. A polygon that
    crosses itself has no right answer; it is cut somehow, in bounded time.
    """
    n = len(points)
    x, y = points[:, 0].tolist(), points[:, 1].tolist()
    following = [*range(1, n), 0]
    before = [n - 1, *range(n - 1)]
    reflex = _ReflexCorners(points, [i for i in range(n) if _turn(x, y, before[i], i, following[i]) <= 0.0])
    triangles = []
    current, left, since_ear = 0, n, 0
    patience = 0  # 0: proper ears only; 1: corners on a line too; 2: anything, the polygon crosses itself
    while left > 3:
        a, c = before[current], following[current]
        turn = _turn(x, y, a, current, c)
        if patience == 2 or (turn > 0.0 and not reflex.inside(a, current, c)) or (patience == 1 and turn == 0.0):
            triangles.append((a, current, c))
            following[a], before[c] = c, a
            reflex.drop(current)
            left -= 1
            for i in (a, c):
                if i in reflex.members and _turn(x, y, before[i], i, following[i]) > 0.0:
                    reflex.drop(i)
            current = following[c]  # skip one: neighbouring ears in turn would make a fan of slivers
            since_ear, patience = 0, 0
        else:
            current = c
            since_ear += 1
            if since_ear > left:
                patience, since_ear = patience + 1, 0
    triangles.append((before[current], current, following[current]))
    return np.array(triangles, np.int64)


def _turn(x, y, a: int, b: int, c: int) -> float:
    return (x[b] - x[a]) * (y[c] - y[b]) - (y[b] - y[a]) * (x[c] - x[b])


class _ReflexCorners:
    """The corners that can lie in an ear, findable by box. A corner once convex stays convex, so corners are only ever dropped."""

    def __init__(self, points: np.ndarray, members: list[int]) -> None:
        self.points = points
        self.x, self.y = points[:, 0].tolist(), points[:, 1].tolist()
        self.members = set(members)
        self._sort()

    def _sort(self) -> None:
        members = np.fromiter(self.members, np.int64, len(self.members))
        self.sorted_count = len(members)
        self.by = []
        for axis in (0, 1):
            order = members[np.argsort(self.points[members, axis], kind="stable")]
            self.by.append((self.points[order, axis].tolist(), order, order.tolist()))

    def drop(self, corner: int) -> None:
        self.members.discard(corner)
        if 2 * len(self.members) < self.sorted_count:
            self._sort()

    def inside(self, a: int, b: int, c: int) -> bool:
        """Whether a remaining reflex corner lies in the closed triangle, other than at its three corners."""
        if not self.members:
            return False
        x, y = self.x, self.y
        ax, ay, bx, by, cx, cy = x[a], y[a], x[b], y[b], x[c], y[c]
        low_x, high_x, low_y, high_y = min(ax, bx, cx), max(ax, bx, cx), min(ay, by, cy), max(ay, by, cy)
        keys, order, numbers = self.by[0]
        first, last = bisect_left(keys, low_x), bisect_right(keys, high_x)
        if last - first > _FEW:
            y_keys, y_order, y_numbers = self.by[1]
            y_first, y_last = bisect_left(y_keys, low_y), bisect_right(y_keys, high_y)
            if y_last - y_first < last - first:
                first, last, order, numbers = y_first, y_last, y_order, y_numbers
        if last - first > 8 * _FEW:
            candidates = order[first:last]
            px, py = self.points[candidates, 0], self.points[candidates, 1]
            hit = (bx - ax) * (py - ay) - (by - ay) * (px - ax) >= 0.0
            hit &= (cx - bx) * (py - by) - (cy - by) * (px - bx) >= 0.0
            hit &= (ax - cx) * (py - cy) - (ay - cy) * (px - cx) >= 0.0
            near = candidates[hit].tolist()
        else:
            near = numbers[first:last]
        members = self.members
        for p in near:
            if p not in members or p == a or p == b or p == c:
                continue
            px, py = x[p], y[p]
            if (
                (bx - ax) * (py - ay) - (by - ay) * (px - ax) >= 0.0
                and (cx - bx) * (py - by) - (cy - by) * (px - bx) >= 0.0
                and (ax - cx) * (py - cy) - (ay - cy) * (px - cx) >= 0.0
                and (px, py) != (ax, ay)
                and (px, py) != (bx, by)
                and (px, py) != (cx, cy)
            ):
                return True
        return False
