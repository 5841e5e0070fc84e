"""tables.blending: through which instances shines what is behind them: opacities without threshold, displayOpacity. NumPy alone."""

from __future__ import annotations

import numpy as np

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.stage.columns import Gprim

DISPLAY_OPACITY = "displayOpacity"


class Blending:
    """What of the rows of an index is blended, by materials and by the displayOpacity of what has no material."""

    def __init__(self) -> None:
        self._by_material = np.zeros(0, bool)
        self._by_primvar = np.zeros(0, bool)
        self._sheer: frozenset[int] | None = None  # rows of materials that are blended; None: not looked at yet

    @property
    def by_material(self) -> bool:
        return bool(self._by_material.any())

    @property
    def by_primvar(self) -> bool:
        return bool(self._by_primvar.any())

    def sync(self, index: RenderIndex, rows: np.ndarray) -> None:
        """Follow ``rows``; all rows where materials have begun or ceased to be blended."""
        size = index.instances.capacity
        if size > len(self._by_material):
            more = np.zeros(size - len(self._by_material), bool)
            self._by_material = np.concatenate([self._by_material, more])
            self._by_primvar = np.concatenate([self._by_primvar, more])
        self._by_primvar[rows] = _fade_by_primvar(index, rows)
        if self._sheer is None or len(index.tracker.dirty_rows("materials")):
            sheer = frozenset(row for row, material in index.materials.items() if material.is_blended)
            if sheer != self._sheer:
                self._sheer, rows = sheer, np.arange(size)
        self._by_material[rows] = _are_bound_to(index, rows, self._sheer) if self._sheer else False


def _are_bound_to(index: RenderIndex, rows: np.ndarray, materials: frozenset[int]) -> np.ndarray:
    """(rows,) bool: as a whole or in part."""
    instances, live = index.instances, index.instances["kind"][rows] >= 0
    among = np.zeros(max(materials) + 2, bool)  # the last for no material
    among[list(materials)] = True

    def are_among(material: np.ndarray) -> np.ndarray:
        return among[np.where(material < len(among) - 1, material, -1)]

    found = are_among(instances["material"][rows]) & live
    start, count = instances["subset_start"][rows], instances["subset_count"][rows]
    for first, slots in {(int(start[i]), int(count[i])) for i in np.flatnonzero((count > 0) & live)}:
        if are_among(index.subsets["material"][first : first + slots]).any():
            found |= (start == first) & (count == slots) & live
    return found


def _fade_by_primvar(index: RenderIndex, rows: np.ndarray) -> np.ndarray:
    """(rows,) bool: without a material of its own, and with a displayOpacity that is not 1 everywhere."""
    instances = index.instances
    bare = (instances["kind"][rows] >= 0) & (instances["material"][rows] < 0) & (instances["visual"][rows] != 0)
    prims, which = np.unique(instances["prim_id"][rows], return_inverse=True)
    fades = np.zeros(len(prims), bool)
    keys = index.gprim_order
    for i in np.unique(which[bare]).tolist():
        fades[i] = _fades(index.gprims[keys[prims[i]]])
    return fades[which] & bare


def _fades(gprim: Gprim) -> bool:
    varying = None if gprim.mesh is None else gprim.mesh.primvars.get(DISPLAY_OPACITY)
    found = gprim.constants.get(DISPLAY_OPACITY), gprim.instance_primvars.get(DISPLAY_OPACITY), varying and varying.values
    return any(values is not None and not (values >= 1.0).all() for values in found)
