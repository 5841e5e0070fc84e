"""stage.earclip: one simple polygon in the plane -> triangles. NumPy only; knows no USD.

Ear clipping cuts off corners whose triangle holds no reflex corner. A corner that fails waits for the reflex corner found in its
triangle to go away, and which reflex corners lie near a triangle comes from lists sorted by x and by y, the shorter of the two
slices being tested. Of large polygons `earpeel` has taken what it can before: 100,000 corners are cut in about a second.

Polygons may touch themselves: bridges to holes, slits, spikes, parts that hang together by a corner or an edge. Two corners in one
place then stand for two places side by side, and which side an edge leaves to tells whether it gets into an ear.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque

import numpy as np

from hdwarp.stage.earpeel import peel, put_back, straight_corners

_FEW = 24  # up to so many candidates plain Python beats a NumPy call
_BLOCK = 512  # candidates tested at once, more and more from block to block: where many are inside, the first is soon found
_ALONG = 1e-12  # relative cross product below which two directions are the same


def clip_ears(points: np.ndarray) -> np.ndarray:
    """(n - 2, 3) corner numbers, counter-clockwise like the polygon ``points`` (n, 2) float64.

    Corners may repeat or lie on a line (as in a face with a bridge to a hole): the area is still covered exactly once, and spikes that
    stick out give triangles without area. A polygon that crosses itself has no right answer; it is cut somehow, in bounded time.
    """
    straight = straight_corners(points)
    if straight.any():
        kept = np.flatnonzero(~straight)
        return put_back(kept[clip_ears(points[kept])], straight)
    peeled, ring = peel(points)
    if not len(peeled):
        return _clip(points)
    return np.concatenate((peeled, ring[clip_ears(points[ring])])) if len(ring) else peeled


def _clip(points: np.ndarray) -> np.ndarray:
    n = len(points)
    x, y = points[:, 0].tolist(), points[:, 1].tolist()
    following = [*range(1, n), 0]
    before = [n - 1, *range(n - 1)]
    turns = [_turn(x, y, before[i], i, following[i]) for i in range(n)]
    reflex = _ReflexCorners(points, [i for i in range(n) if turns[i] <= 0.0])
    convex = [i for i in range(n) if turns[i] > 0.0]
    waiting = deque(convex[::2] + convex[1::2])  # every other one first: neighbouring ears in turn would make a fan of slivers
    straight = [i for i in range(n) if turns[i] == 0.0]
    spikes = [i for i in straight if _folds_back(x, y, before[i], i, following[i])]
    touching: dict[int, list[int]] = {}  # ears that wait for an edge at this corner to change
    queued = bytearray(turn > 0.0 for turn in turns)
    blocker_of = [-1] * n
    waits_for: dict[int, list[int]] = {}
    gone = bytearray(n)
    triangles = []
    current = 0
    while len(triangles) < n - 3:
        if spikes:  # what sticks out goes first: cut off, it leaves the outline as it is, and no ear can get across it
            current = spikes.pop()
            if gone[current] or not _sticks_out(x, y, before, current, following):
                continue
        elif waiting:
            current = waiting.popleft()
            queued[current] = 0
            if gone[current]:
                continue
            a, c = before[current], following[current]
            if _turn(x, y, a, current, c) <= 0.0:
                if _turn(x, y, a, current, c) == 0.0:
                    straight.append(current)
                continue
            blocker = reflex.inside(a, current, c)
            if blocker < 0:
                blocker = reflex.crossing(a, current, c, before, following)
                if blocker >= 0:
                    touching.setdefault(blocker, []).append(current)
                    continue
            if blocker >= 0:
                if blocker_of[current] != blocker:
                    blocker_of[current] = blocker
                    waits_for.setdefault(blocker, []).append(current)
                continue
        elif straight:  # no proper ear is left: a corner on a line can go, its triangle has no area
            current = straight.pop()
            if gone[current] or _turn(x, y, before[current], current, following[current]) != 0.0:
                continue
        else:  # the polygon crosses itself
            current = following[current]
            while gone[current]:
                current = following[current]
        a, c = before[current], following[current]
        triangles.append((a, current, c))
        following[a], before[c] = c, a
        gone[current] = 1
        dropped = [current] if current in reflex.members else []
        for i in (a, c):
            turn = _turn(x, y, before[i], i, following[i])
            if turn > 0.0:
                if not queued[i]:
                    queued[i] = 1
                    waiting.append(i)
                if i in reflex.members:
                    dropped.append(i)
            elif turn == 0.0:
                straight.append(i)
                if _folds_back(x, y, before[i], i, following[i]):
                    spikes.append(i)
        for i in (a, current, c):
            for j in touching.pop(i, ()):
                if not queued[j]:
                    queued[j] = 1
                    waiting.append(j)
        for i in dropped:
            reflex.drop(i)
            for j in waits_for.pop(i, ()):
                if blocker_of[j] == i:
                    blocker_of[j] = -1
                    if not queued[j]:
                        queued[j] = 1
                        waiting.append(j)
    last = gone.index(0)
    triangles.append((last, following[last], following[following[last]]))
    return np.array(triangles, np.int64)


def _turn(x, y, a: int, b: int, c: int) -> float:
    return (x[b] - x[a]) * (y[c] - y[b]) - (y[b] - y[a]) * (x[c] - x[b])


def _folds_back(x, y, a: int, b: int, c: int) -> bool:
    """Whether a corner without a turn is the tip of a spike or a slit, or in one place with the corner before or after it."""
    return (x[b] - x[a]) * (x[c] - x[b]) + (y[b] - y[a]) * (y[c] - y[b]) <= 0.0


def _sticks_out(x, y, before: list[int], b: int, following: list[int]) -> bool:
    """Whether a corner that folds back can go at once: a spike, or a double, but not a slit, whose tip the triangles around are to use."""
    a, c = before[b], following[b]
    sx, sy = x[b] - x[a], y[b] - y[a]
    rx, ry = x[c] - x[b], y[c] - y[b]
    if sx * ry - sy * rx != 0.0 or sx * rx + sy * ry > 0.0:
        return False  # its neighbours have changed
    back, forth = rx * rx + ry * ry, sx * sx + sy * sy
    if back == 0.0 or forth == 0.0:
        return True
    d, z = following[c], before[a]
    if back < forth:  # c lies on the way to the tip: beside a slit the outline goes on to the right, beside a spike to the left
        return sx * (y[d] - y[c]) - sy * (x[d] - x[c]) >= 0.0
    if forth < back:
        return rx * (y[z] - y[a]) - ry * (x[z] - x[a]) >= 0.0
    dx, dy, zx, zy = x[d] - x[c], y[d] - y[c], x[z] - x[a], y[z] - y[a]  # the inside, without the spike, is from d counter-clockwise to z
    opening = dx * zy - dy * zx
    after_d, before_z = dx * sy - dy * sx, sx * zy - sy * zx
    if opening > 0.0:
        return not (after_d > 0.0 and before_z > 0.0)
    if opening < 0.0:
        return after_d <= 0.0 and before_z <= 0.0
    return not (after_d > 0.0 and dx * zx + dy * zy < 0.0)


class _ReflexCorners:
    """The corners that can lie in an ear, findable by box. A corner once convex stays convex, so corners are only ever dropped."""

    def __init__(self, points: np.ndarray, members: list[int]) -> None:
        self.points = points
        self.x, self.y = points[:, 0].tolist(), points[:, 1].tolist()
        self.members = set(members)
        self._sort()
        places: dict[tuple[float, float], list[int]] = {}
        for i, place in enumerate(zip(self.x, self.y, strict=True)):
            places.setdefault(place, []).append(i)
        self.together = {i: corners for corners in places.values() if len(corners) > 1 for i in corners}  # corners in one place

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

    def inside(self, a: int, b: int, c: int) -> int:
        """A remaining reflex corner in the closed triangle, other than at its three corners; -1: there is none."""
        if not self.members:
            return -1
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
        if last - first <= 8 * _FEW:
            return self._first(numbers[first:last], a, b, c)
        size = _BLOCK
        while first < last:
            candidates = order[first : min(first + size, last)]
            px, py = self.points[candidates, 0], self.points[candidates, 1]
            hit = (bx - ax) * (py - ay) - (by - ay) * (px - ax) >= 0.0
            hit &= (cx - bx) * (py - by) - (cy - by) * (px - bx) >= 0.0
            hit &= (ax - cx) * (py - cy) - (ay - cy) * (px - cx) >= 0.0
            found = self._first(candidates[hit].tolist(), a, b, c)
            if found >= 0:
                return found
            first += size
            size *= 4
        return -1

    def _first(self, candidates: list[int], a: int, b: int, c: int) -> int:
        x, y, members = self.x, self.y, self.members
        ax, ay, bx, by, cx, cy = x[a], y[a], x[b], y[b], x[c], y[c]
        for p in candidates:
            if p not in members or p in (a, b, c):
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
                return p
        return -1

    def crossing(self, a: int, b: int, c: int, before: list[int], following: list[int]) -> int:
        """A remaining reflex corner in one place with a corner of the triangle, from where an edge gets into it; -1: there is none."""
        if not self.together:
            return -1
        for corner, right, left in ((a, b, c), (b, c, a), (c, a, b)):  # the triangle is to the left of `right`, to the right of `left`
            for p in self.together.get(corner, ()):
                if (
                    p in self.members
                    and p not in (a, b, c)
                    and (self._between(corner, right, left, before[p]) or self._between(corner, right, left, following[p]))
                ):
                    return p
        return -1

    def _between(self, corner: int, right: int, left: int, other: int) -> bool:
        x, y = self.x, self.y
        ox, oy = x[other] - x[corner], y[other] - y[corner]
        rx, ry = x[right] - x[corner], y[right] - y[corner]
        lx, ly = x[left] - x[corner], y[left] - y[corner]
        least = _ALONG * (abs(ox) + abs(oy))
        return rx * oy - ry * ox > least * (abs(rx) + abs(ry)) and ox * ly - oy * lx > least * (abs(lx) + abs(ly))
