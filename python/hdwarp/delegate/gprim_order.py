"""delegate.gprim_order: gprims in the order of their keys, which makes primIds and ranks, and the rows of each. NumPy only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable

import numpy as np

from hdwarp.delegate.rows import RowMap
from hdwarp.stage.columns import GprimKey

_FEW = 64  # so many keys are put in their places one by one; more are sorted in together


class GprimOrder:
    """``keys``, sorted; ``paths``, a new list whenever they change; ``start`` and ``count``: (gprims,) int64, the run of rows of each."""

    def __init__(self) -> None:
        self.keys: list[GprimKey] = []
        self.paths: list[str] = []
        self.start = self.count = np.zeros(0, np.int64)

    def update(self, gone: Collection[GprimKey], new: Collection[GprimKey], moved: Iterable[GprimKey], rows: RowMap) -> int:
        """Follow keys that are gone or new, or whose run has moved; the first place that is not as it was."""
        if len(gone) + len(new) > _FEW:
            self.keys = sorted(rows)
            self.paths = [key[0] for key in self.keys]
            self.start, self.count = np.array([rows.run(key) for key in self.keys], np.int64).reshape(-1, 2).T
            return 0
        if gone or new:
            self.paths = list(self.paths)
        places = [self._take(key) for key in gone]
        for key in sorted(new):
            place = bisect_left(self.keys, key)
            self.keys.insert(place, key)
            self.paths.insert(place, key[0])
            start, count = rows.run(key)
            self.start, self.count = np.insert(self.start, place, start), np.insert(self.count, place, count)
            places.append(place)
        for key in moved:
            place = bisect_left(self.keys, key)
            self.start[place], self.count[place] = rows.run(key)
            places.append(place)
        return min(places, default=len(self.keys))

    def _take(self, key: GprimKey) -> int:
        place = bisect_left(self.keys, key)
        del self.keys[place], self.paths[place]
        self.start, self.count = np.delete(self.start, place), np.delete(self.count, place)
        return place

    def pack(self) -> None:
        """Rows are numbered anew, without gaps, in this order: row and rank are one."""
        self.start = np.cumsum(self.count) - self.count

    def ranks(self, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows, primIds, ranks) from place ``first`` on: (n,) int64, int32, int32."""
        start, count = self.start[first:], self.count[first:]
        before, total = int(self.count[:first].sum()), int(count.sum())
        rows = np.repeat(start - (np.cumsum(count) - count), count) + np.arange(total)
        prim_id = np.repeat(np.arange(first, len(self.keys), dtype=np.int32), count)
        return rows, prim_id, np.arange(before, before + total, dtype=np.int32)
