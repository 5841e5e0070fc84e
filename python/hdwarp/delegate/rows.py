"""delegate.rows: stable row numbers for keyed items, host columns, and when there are so few rows left that both are made anew.
NumPy only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np

FEW_ROWS = 4096  # tables of so many rows keep their memory
SPARSE = 4  # others let go of it when fewer than one row in so many is in use


def joined_rows(*rows: np.ndarray) -> np.ndarray:
    """The numbers in any of ``rows``, ascending, each once. Each is sorted, or nearly: merging such runs is what a stable sort is fast at,
    other than hashing, by which np.unique goes about integers."""
    together = [found for found in rows if len(found)]
    if len(together) < 2:
        return together[0] if together else np.zeros(0, np.int64)
    ordered = np.sort(np.concatenate(together), kind="stable")
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]


def is_sparse(used: int, held: int) -> bool:
    """Whether a table with room for ``held`` rows, of which ``used`` are in use, is worth making anew. One made for ``used`` rows is not,
    before far more have come or most of these have gone: around any size rows may come and go without work."""
    return held > FEW_ROWS and SPARSE * used < held


class RowAllocator:
    """Hands out runs of consecutive rows and takes them back; a row number does not change while its item lives, unless all are numbered
    anew (`RowMap.renumber`)."""

    def __init__(self, size: int = 0) -> None:
        """``size``: rows in use from the start."""
        self.size = size  # rows in use lie below; a table needs at least this many
        self.peak = size  # the largest size so far: tables have had room for it
        self._free: dict[int, list[int]] = {}  # run length -> starts of free runs
        self._free_count = 0

    @property
    def is_sparse(self) -> bool:
        """Few rows are in use of those that there were."""
        return is_sparse(self.size - self._free_count, self.peak)

    def allocate(self, count: int) -> int:
        """First row of a run of ``count`` rows."""
        if not self._free_count:
            return self._append(count)
        if not self._free.get(count) and 2 * self._free_count > self.size:
            self._join()
        start = self._reuse(count)
        return self._append(count) if start < 0 else start

    def _append(self, count: int) -> int:
        self.size += count
        self.peak = max(self.peak, self.size)
        return self.size - count

    def release(self, start: int, count: int) -> None:
        if count:
            self._free.setdefault(count, []).append(start)
            self._free_count += count

    def _reuse(self, count: int) -> int:
        """A free run of this very length, else the start of the shortest that is longer; -1 without."""
        lengths = [count] if self._free.get(count) else [length for length, starts in self._free.items() if length > count and starts]
        if not lengths or not count:
            return -1
        length = min(lengths)
        start = self._free[length].pop()
        if not self._free[length]:
            del self._free[length]
        self._free_count -= length
        self.release(start + count, length - count)
        return start

    def _join(self) -> None:
        """Make one run of neighbours, and forget those at the end."""
        runs = sorted((start, length) for length, starts in self._free.items() for start in starts)
        self._free, self._free_count = {}, 0
        joined: list[list[int]] = []
        for start, length in runs:
            if joined and sum(joined[-1]) == start:
                joined[-1][1] += length
            else:
                joined.append([start, length])
        if joined and sum(joined[-1]) == self.size:
            self.size = joined.pop()[0]
        for start, length in joined:
            self.release(start, length)


class RowMap:
    """Key -> run of rows."""

    def __init__(self) -> None:
        self.allocator = RowAllocator()
        self._runs: dict[Hashable, tuple[int, int]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, key: Hashable) -> int:
        return self._runs[key][0]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._runs)

    def get(self, key: Hashable, default: int) -> int:
        """Row of ``key``, ``default`` where it has none."""
        run = self._runs.get(key)
        return default if run is None else run[0]

    def run(self, key: Hashable) -> tuple[int, int]:
        """(first row, row count) of a key."""
        return self._runs[key]

    def insert(self, key: Hashable, count: int = 1) -> int:
        """Row of ``key``: the one it has, or a new one when it is new or its row count changed."""
        old = self._runs.get(key)
        if old is not None:
            if old[1] == count:
                return old[0]
            self.allocator.release(*old)
        start = self.allocator.allocate(count)
        self._runs[key] = (start, count)
        return start

    def remove(self, key: Hashable) -> tuple[int, int]:
        run = self._runs.pop(key)
        self.allocator.release(*run)
        return run

    def rename(self, old: Hashable, new: Hashable) -> None:
        """Give the run of ``old`` to ``new``."""
        self._runs[new] = self._runs.pop(old)

    def renumber(self, keys: Iterable[Hashable]) -> np.ndarray:
        """Give all runs other rows, without gaps, in the order of ``keys``, which are all there are; the old rows, in the order of the
        new."""
        keys = list(keys)
        start, count = np.array([self._runs[key] for key in keys], np.int64).reshape(-1, 2).T
        first = np.cumsum(count) - count
        self._runs = dict(zip(keys, zip(first.tolist(), count.tolist(), strict=True), strict=True))
        self.allocator = RowAllocator(int(count.sum()))
        return np.repeat(start - first, count) + np.arange(self.allocator.size)


class HostColumns:
    """Named NumPy columns of one table, grown together by doubling."""

    def __init__(self, **columns: tuple[np.dtype | type, tuple[int, ...], float]) -> None:
        """``name=(dtype, shape of one row, value of an unused row)``."""
        self._spec = columns
        self._clear()

    def _clear(self) -> None:
        self.capacity = 0
        self._data = {name: np.full((0, *shape), fill, dtype) for name, (dtype, shape, fill) in self._spec.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._data[name]

    def reserve(self, size: int) -> None:
        """Make room for ``size`` rows."""
        if size <= self.capacity:
            return
        capacity = max(16, self.capacity)
        while capacity < size:
            capacity *= 2
        for name, (dtype, shape, fill) in self._spec.items():
            grown = np.full((capacity, *shape), fill, dtype)
            grown[: self.capacity] = self._data[name]
            self._data[name] = grown
        self.capacity = capacity

    def keep(self, rows: np.ndarray) -> None:
        """Hold ``rows`` alone, in this order, from row 0 on; let go of the memory of the others."""
        kept = {name: column[rows] for name, column in self._data.items()}
        self._clear()
        self.reserve(len(rows))
        for name, items in kept.items():
            self._data[name][: len(rows)] = items

    def clear_rows(self, start: int, count: int) -> None:
        for name, (_, _, fill) in self._spec.items():
            self._data[name][start : start + count] = fill
