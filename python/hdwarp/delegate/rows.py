"""delegate.rows: stable row numbers for keyed items, and host columns that grow. NumPy only."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np


class RowAllocator:
    """Hands out runs of consecutive rows and takes them back; a row number never changes while its item lives."""

    def __init__(self) -> None:
        self.size = 0  # rows in use lie below; a table needs at least this many
        self._free: dict[int, list[int]] = {}  # run length -> starts of free runs
        self._free_count = 0

    def allocate(self, count: int) -> int:
        """First row of a run of ``count`` rows."""
        if not self._free_count:
            self.size += count
            return self.size - count
        if not self._free.get(count) and 2 * self._free_count > self.size:
            self._join()
        start = self._reuse(count)
        if start < 0:
            start = self.size
            self.size += count
        return start

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


class HostColumns:
    """Named NumPy columns of one table, grown together by doubling; rows never move."""

    def __init__(self, **columns: tuple[np.dtype | type, tuple[int, ...], float]) -> None:
        """``name=(dtype, shape of one row, value of an unused row)``."""
        self.capacity = 0
        self._spec = columns
        self._data = {name: np.full((0, *shape), fill, dtype) for name, (dtype, shape, fill) in columns.items()}

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

    def clear_rows(self, start: int, count: int) -> None:
        for name, (_, _, fill) in self._spec.items():
            self._data[name][start : start + count] = fill
