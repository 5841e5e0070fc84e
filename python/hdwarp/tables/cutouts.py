"""tables.cutouts: which instances are cut away by constant opacities below their threshold, whole or in part. NumPy on index rows."""

from __future__ import annotations

import numpy as np

from hdwarp.delegate.render_index import RenderIndex


class Cutouts:
    """``hidden`` (rows,) bool: instances of which nothing is drawn."""

    def __init__(self) -> None:
        self.hidden = np.zeros(0, bool)
        self._partly = np.zeros(0, bool)  # faces of it are cut away, others are not
        self._cut: frozenset[int] | None = None  # rows of materials that cut; None: not looked at yet

    @property
    def are_partial(self) -> bool:
        return bool(self._partly.any())

    def sync(self, index: RenderIndex, rows: np.ndarray) -> np.ndarray:
        """Follow ``rows``; all rows where materials have begun or ceased to cut. Returns the rows that are hidden now and were not, or
        the other way round."""
        size = index.instances.capacity
        if size > len(self.hidden):
            more = np.zeros(size - len(self.hidden), bool)
            self.hidden, self._partly = np.concatenate([self.hidden, more]), np.concatenate([self._partly, more])
        if self._cut is None or len(index.tracker.dirty_rows("materials")):
            cut = frozenset(row for row, material in index.materials.items() if material.is_cut_away)
            if cut != self._cut:
                self._cut, rows = cut, np.arange(size)
        before = self.hidden[rows]
        hidden = partly = np.zeros(len(rows), bool)
        if self._cut:
            hidden, partly = self._look_at(index, rows)
        self.hidden[rows], self._partly[rows] = hidden, partly
        return rows[hidden != before]

    def _look_at(self, index: RenderIndex, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        instances, live = index.instances, index.instances["kind"][rows] >= 0
        cut = np.zeros(max(self._cut) + 2, bool)  # the last for no material
        cut[list(self._cut)] = True

        def cuts(material: np.ndarray) -> np.ndarray:
            return cut[np.where(material < len(cut) - 1, material, -1)]

        own = cuts(instances["material"][rows])
        hidden, partly = own & live, np.zeros(len(rows), bool)
        count = instances["subset_count"][rows]
        for start, slots, by_own in {
            (int(instances["subset_start"][rows[i]]), int(count[i]), bool(own[i])) for i in np.flatnonzero((count > 0) & live)
        }:
            bound = index.subsets["material"][start : start + slots]
            parts = np.where(bound < 0, by_own, cuts(bound))
            these = (count == slots) & (instances["subset_start"][rows] == start) & (own == by_own) & live
            hidden[these] = by_own and parts.all()
            partly[these] = (by_own or parts.any()) and not (by_own and parts.all())
        return hidden, partly
