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
    PARAMS = 1 << 6  # cameras and materials: any parameter
    IDS = 1 << 7  # what is given out for the row (ranks)
    ALL = (1 << 8) - 1


class ChangeTracker:
    """Dirty bits by row for each table."""

    TABLES = ("meshes", "instances", "subsets", "bodies", "materials", "cameras", "sites")

    def __init__(self) -> None:
        self._bits = {table: np.zeros(0, np.uint16) for table in self.TABLES}

    def mark(self, table: str, rows: np.ndarray, bits: DirtyBits) -> None:
        """Add dirty bits to ``rows`` (row numbers)."""
        if len(rows) == 0:
            return
        have, last = self._bits[table], int(np.max(rows))
        if last >= len(have):
            have = np.concatenate([have, np.zeros(max(last + 1 - len(have), len(have), 16), np.uint16)])
            self._bits[table] = have
        have[rows] |= np.uint16(bits)

    def dirty_rows(self, table: str, bits: DirtyBits = DirtyBits.ALL) -> np.ndarray:
        """Row numbers with any of ``bits``, ascending."""
        return np.flatnonzero(self._bits[table] & np.uint16(bits))

    def clean_but_for(self, table: str, bits: DirtyBits) -> list[int]:
        """Row numbers with some of ``bits`` and no others, ascending."""
        have = self._bits[table]
        return np.flatnonzero((have != 0) & ((have & ~np.uint16(bits)) == 0)).tolist()

    def is_clean(self) -> bool:
        return not any(bits.any() for bits in self._bits.values())

    def clear(self, table: str) -> None:
        self._bits[table][:] = 0
