"""sensors.tiles: the images of all views side by side in one."""

from __future__ import annotations

import math

import warp as wp

from hdwarp.errors import ArgumentError
from hdwarp.launch import launch


@wp.kernel(enable_backward=False)
def _lay_tiles(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    source: wp.array[wp.int32],
    words: wp.int32,
    height: wp.int32,
    columns: wp.int32,
    out: wp.array[wp.int32],
):
    """A line of a view a job, ``words`` 32-bit words long."""
    job = first + wp.tid() * step
    if job >= count:
        return
    view = job // height
    line = job - view * height
    target = ((view // columns) * height + line) * columns * words + (view % columns) * words
    for i in range(words):
        out[target + i] = source[job * words + i]


def grid_of(count: int, columns: int | None = None) -> tuple[int, int]:
    """(rows, columns) of tiles for ``count`` views: nearly square unless told. Raises ArgumentError for columns that are no number."""
    if columns is not None and (isinstance(columns, bool) or not isinstance(columns, int) or columns < 1):
        raise ArgumentError(f"columns={columns!r}: expected how many tiles are in a row, 1 or more")
    columns = columns or max(1, math.ceil(math.sqrt(count)))
    return -(-count // columns), columns


def lay_tiles(source: wp.array, out: wp.array, columns: int) -> None:
    """(view, H, W) ``source`` -> (rows * H, columns * W) ``out``: view by view, row by row of tiles; tiles without a view are left."""
    view_count, height, width = source.shape
    words = width * wp.types.type_size_in_bytes(source.dtype) // 4
    flat = [wp.array(ptr=array.ptr, dtype=wp.int32, shape=array.capacity // 4, device=array.device) for array in (source, out)]
    launch(_lay_tiles, view_count * height, [flat[0], words, height, columns], [flat[1]], device=source.device, grain=256)
