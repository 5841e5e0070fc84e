"""tables.storage: device arrays that grow: addresses are stable up to a capacity."""

from __future__ import annotations

import numpy as np
import warp as wp


def numpy_dtype(dtype: type) -> tuple[np.dtype, tuple[int, ...]]:
    """(scalar dtype, shape of one item) of a Warp scalar, vector or matrix type."""
    if hasattr(dtype, "_wp_scalar_type_"):
        return np.dtype(wp.dtype_to_numpy(dtype._wp_scalar_type_)), tuple(dtype._shape_)
    return np.dtype(wp.dtype_to_numpy(dtype)), ()


class GrowingArray:
    """A one-dimensional Warp array written in pieces. ``array`` always has full capacity; ``size`` items of it are in use."""

    def __init__(self, dtype: type, device: wp.Device, *, fill: float | None = 0) -> None:
        """``fill``: what items hold that were never written; None: anything, for large arrays of which only written items are read."""
        self.dtype, self.device, self.fill = dtype, device, fill
        self._scalar, self._shape = numpy_dtype(dtype)
        self.size = 0
        self.array = self._allocate(1)

    def _allocate(self, capacity: int) -> wp.array:
        if self.fill is None:
            return wp.empty(capacity, dtype=self.dtype, device=self.device)
        filled = np.full((capacity, *self._shape), self.fill, self._scalar)
        return wp.array(filled, dtype=self.dtype, device=self.device)

    def reserve(self, size: int) -> None:
        """Make room for ``size`` items in all; what is held is kept."""
        if size > self.array.shape[0]:
            grown = self._allocate(max(size, 2 * self.array.shape[0]))
            if self.size:
                wp.copy(grown, self.array, count=self.size)
            self.array = grown
        self.size = max(self.size, size)

    def write(self, start: int, items: np.ndarray | wp.array) -> None:
        """Write consecutive items from ``start`` on, growing as needed."""
        count = len(items)
        if count == 0:
            return
        self.reserve(start + count)
        if isinstance(items, np.ndarray):
            items = np.ascontiguousarray(items, self._scalar).reshape(count, *self._shape)
            if self.device.is_cpu:
                self.array.numpy()[start : start + count] = items
                return
            items = wp.array(items, dtype=self.dtype, device="cpu")
        wp.copy(self.array, items, dest_offset=start, count=count)

    def write_rows(self, rows: np.ndarray, items: np.ndarray) -> None:
        """Write ``items[i]`` to row ``rows[i]``; rows ascending."""
        if len(rows) == 0:
            return
        self.reserve(int(rows[-1]) + 1)
        items = np.ascontiguousarray(items, self._scalar).reshape(len(rows), *self._shape)
        if self.device.is_cpu:
            self.array.numpy()[rows] = items
            return
        for run in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(rows) != 1) + 1):  # one copy a run of neighbours
            self.write(int(rows[run[0]]), items[run])

    def clear(self) -> None:
        """Forget all items; the memory is kept."""
        self.size = 0

    def reset(self) -> None:
        """Forget all items, and let go of the memory."""
        self.size = 0
        self.array = self._allocate(1)
