"""tables.cutouts: which instances are cut away by opacities below their threshold, whole or in part. NumPy on index rows."""

from __future__ import annotations

import numpy as np

from hdwarp.delegate.render_index import RenderIndex

_SOME, _ALL = 1, 2  # of a surface is cut away


class Cutouts:
    """``hidden`` (rows,) bool: instances of which nothing is drawn."""

    def __init__(self) -> None:
        self.hidden = np.zeros(0, bool)
        self.are_textured = False  # textures of opacity are among what cuts
        self._partly = np.zeros(0, bool)  # faces of it are cut away, others are not, or a texture says where
        self._cut: frozenset[int] | None = None  # rows of materials that cut; None: not looked at yet
        self._holed: frozenset[int] = frozenset()  # rows of materials whose textures do, here and there

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
            holed = frozenset(row for row, material in index.materials.items() if material.has_holes)
            if (cut, holed) != (self._cut, self._holed):
                self._cut, self._holed, rows = cut, holed, np.arange(size)
                self.are_textured = bool(holed)
        before = self.hidden[rows]
        hidden = partly = np.zeros(len(rows), bool)
        if self._cut or self._holed:
            hidden, partly = self._look_at(index, rows)
        self.hidden[rows], self._partly[rows] = hidden, partly
        return rows[hidden != before]

    def _look_at(self, index: RenderIndex, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        instances, live = index.instances, index.instances["kind"][rows] >= 0
        share = np.zeros(max(self._cut | self._holed) + 2, np.int8)  # the last for no material
        share[list(self._holed)] = _SOME
        share[list(self._cut)] = _ALL

        def cuts(material: np.ndarray) -> np.ndarray:
            return share[np.where(material < len(share) - 1, material, -1)]

        own = cuts(instances["material"][rows])
        hidden, partly = (own == _ALL) & live, (own == _SOME) & live
        count = instances["subset_count"][rows]
        for start, slots, by_own in {
            (int(instances["subset_start"][rows[i]]), int(count[i]), int(own[i])) for i in np.flatnonzero((count > 0) & live)
        }:
            bound = index.subsets["material"][start : start + slots]
            parts = np.append(np.where(bound < 0, by_own, cuts(bound)), by_own)
            these = (count == slots) & (instances["subset_start"][rows] == start) & (own == by_own) & live
            hidden[these] = (parts == _ALL).all()
            partly[these] = parts.any() and not (parts == _ALL).all()
        return hidden, partly
