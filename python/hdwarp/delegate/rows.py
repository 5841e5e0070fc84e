"""delegate.rows: stable row numbers for keyed items, and host columns that grow. NumPy only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np


class RowAllocator:
    """Hands out runs of consecutive rows and takes them back; a row number never changes while its item lives."""

    def __init__(self) -> None:
        self.size = 0  # rows ever handed out; a table needs at least this many
        self._free: dict[int, list[int]] = {}  # run length -> starts of free runs

    def allocate(self, count: int) -> int:
        """First row of a run of ``count`` rows."""
        if self._free.get(count):
            return self._free[count].pop()
        start = self.size
        self.size += count
        return start

    def release(self, start: int, count: int) -> None:
        self._free.setdefault(count, []).append(start)


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

    def keys(self) -> Iterable[Hashable]:
        return self._runs.keys()

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

    def keep_only(self, keys: Iterable[Hashable]) -> list[tuple[int, int]]:
        """Remove every key that is not in ``keys``; the runs that became free."""
        gone = self._runs.keys() - set(keys)
        return [self.remove(key) for key in gone]


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
