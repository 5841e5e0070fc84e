"""delegate.change_tracker: what of each row has changed since the device tables last looked. NumPy only."""

from __future__ import annotations

from enum import IntFlag

import numpy as np


class DirtyBits(IntFlag):
    """Hydra's dirty bits, as far as rows tell them apart."""

    CLEAN = 0
    TRANSFORM = 1 << 0
    POINTS = 1 << 1
    TOPOLOGY = 1 << 2
    PRIMVAR = 1 << 3
    VISIBILITY = 1 << 4  # the row came or went
    MATERIAL = 1 << 5
    PARAMS = 1 << 6  # cameras, lights and materials: any parameter but where they stand
    IDS = 1 << 7  # what is given out for the row (ranks)
    INSTANCER = 1 << 8  # which instance of its point instancer the row is
    ALL = (1 << 9) - 1


class ChangeTracker:
    """Dirty bits by row for each table. What has been marked is listed, so that few marks cost little however many rows there are."""

    TABLES = ("meshes", "instances", "subsets", "bodies", "materials", "cameras", "sites", "lights")

    def __init__(self) -> None:
        self._bits = {table: np.zeros(0, np.uint16) for table in self.TABLES}
        self._marked: dict[str, list[np.ndarray]] = {table: [] for table in self.TABLES}

    def mark(self, table: str, rows: np.ndarray, bits: DirtyBits) -> None:
        """Add dirty bits to ``rows`` (row numbers)."""
        if len(rows) == 0:
            return
        have, last = self._bits[table], int(np.max(rows))
        if last >= len(have):
            have = np.concatenate([have, np.zeros(max(last + 1 - len(have), len(have), 16), np.uint16)])
            self._bits[table] = have
        have[rows] |= np.uint16(bits)
        self._marked[table].append(rows)

    def dirty_rows(self, table: str, bits: DirtyBits = DirtyBits.ALL) -> np.ndarray:
        """Row numbers with any of ``bits``, ascending."""
        rows = self._rows(table)
        return rows[self._bits[table][rows] & np.uint16(bits) != 0]

    def clean_but_for(self, table: str, bits: DirtyBits) -> np.ndarray:
        """Row numbers with some of ``bits`` and no others, ascending."""
        rows = self._rows(table)
        return rows[self._bits[table][rows] & ~np.uint16(bits) == 0]

    def forget_rows(self, table: str) -> None:
        """Rows have other numbers from now on: forget which were marked, and let go of the memory."""
        self._bits[table] = np.zeros(0, np.uint16)
        self._marked[table] = []

    def is_clean(self) -> bool:
        return not any(self._marked.values())

    def clear(self, table: str) -> None:
        if self._marked[table]:
            self._bits[table][self._rows(table)] = 0
            self._marked[table] = []

    def _rows(self, table: str) -> np.ndarray:
        """All rows that were marked, ascending, each once."""
        marked, bits = self._marked[table], self._bits[table]
        if len(marked) > 1 and sum(map(len, marked)) > len(bits) // 16:
            marked[:] = [np.flatnonzero(bits)]
        elif len(marked) > 1 or (marked and not _is_ascending(marked[0])):
            marked[:] = [np.unique(np.concatenate(marked))]
        return np.asarray(marked[0], np.int64) if marked else np.zeros(0, np.int64)


def _is_ascending(rows: np.ndarray) -> bool:
    return bool((np.diff(rows) > 0).all())
