"""shade.layers: what shines through blended surfaces: the colours of the surfaces along a pixel's ray, put one behind the other."""

from __future__ import annotations

import warp as wp

from hdwarp.launch import launch
from hdwarp.shade.encode import SrgbTables, rgba_bytes, srgb_tables
from hdwarp.tables.structs import Peel, ViewRow, Visibility
from hdwarp.trace.jobs import find_view

MAX_BLENDED = 16
"""Blended surfaces of a pixel that are drawn; behind as many, nothing is."""
_ENOUGH = 0.999  # alpha beyond which nothing behind is looked for
_SAME = 1.0e-5  # of the depth: two triangles of a mesh that are no farther apart are seen at their common edge: one surface


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 0})  # 128 copies of a pixel would take long to compile
def _composite(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    views: wp.array[ViewRow],
    view_count: wp.int32,
    layer: wp.array[wp.vec4f],
    begin: wp.int32,
    record: Visibility,
    total: wp.array[wp.vec4f],
    before: Visibility,
    out: Peel,
):
    """Put a tile of ``layer`` behind what there is; mark where more is to be seen, and forget what the others see."""
    job = first + wp.tid() * step
    if job >= count:
        return
    if begin == 0 and out.tiles[job] == 0:
        return
    out.tiles[job] = 0
    view = find_view(views, view_count, job)
    tile = job - views[view].first_tile
    tiles_x = views[view].tiles_x
    if views[view].masked != 0 or tile >= tiles_x * views[view].tiles_y:
        return
    tile_y = tile // tiles_x
    base = views[view].record + tile_y * 128 * tiles_x + (tile - tile_y * tiles_x) * 16
    left = 16 * (views[view].tile_x0 + tile - tile_y * tiles_x) - views[view].x0
    top = 8 * (views[view].tile_y0 + tile_y) - views[view].y0
    found = wp.int32(0)
    for y in range(8):
        for x in range(16):
            pixel = base + y * 16 * tiles_x + x
            column, line = left + x, top + y
            mark = wp.int32(0)
            if column >= 0 and column < views[view].width and line >= 0 and line < views[view].height:
                at = views[view].output + line * views[view].width + column
                value = wp.vec4f()
                if begin == 0:
                    value = total[at]
                row, key = record.instance[pixel], record.key[pixel]
                if row >= 0:
                    apart = wp.abs(key - before.key[pixel]) > _SAME * wp.abs(key)
                    if begin != 0 or apart or row != before.instance[pixel]:
                        value += (1.0 - value[3]) * layer[at]
                    mark = wp.where(value[3] < _ENOUGH, 1, 0)
                total[at] = value
                before.instance[pixel] = row
                before.key[pixel] = key
            out.pixels[pixel] = mark
            found |= mark
            if mark == 0:
                record.instance[pixel] = -1
                record.slot[pixel] = -1
    out.tiles[job] = found


def composite(
    views: wp.array,
    view_count: int,
    tile_count: int,
    layer: wp.array,
    record: Visibility,
    total: wp.array,
    before: Visibility,
    out: Peel,
    *,
    begin: bool,
    device: wp.Device | str,
) -> None:
    """Put ``layer``, (pixels,) vec4f, premultiplied colours of what ``record`` holds, behind ``total``; ``begin``: that starts anew.

    ``out``: pixels through which more is to be seen; ``record`` keeps what these see alone. ``before``: instances and keys of the layer in
    front are kept there. Later layers touch only tiles that ``out`` has marked. Device work only."""
    launch(_composite, tile_count, [views, view_count, layer, int(begin), record], [total, before, out], device=device, grain=256)


@wp.kernel(enable_backward=False, module="unique")
def _give_out(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    views: wp.array[ViewRow],
    height: wp.int32,
    total: wp.array[wp.vec4f],
    srgb: SrgbTables,
    clear: wp.vec4f,
    clear_bytes: wp.vec4ub,
    color: wp.array[wp.vec4f],
    rgba8: wp.array[wp.vec4ub],
):
    job = first + wp.tid() * step
    if job >= count:
        return
    view = job // height
    y = job - view * height
    if views[view].masked != 0 or y >= views[view].height:
        return
    for x in range(views[view].width):
        at = views[view].output + y * views[view].width + x
        value = total[at]
        if value[3] < _ENOUGH:
            value += (1.0 - value[3]) * clear
        if color:
            color[at] = value
        if rgba8:
            rgba8[at] = wp.where(total[at][3] > 0.0, rgba_bytes(value, srgb), clear_bytes)


def give_out(
    views: wp.array,
    view_count: int,
    height: int,
    total: wp.array,
    clear: tuple[wp.vec4f, wp.vec4ub],
    *,
    color: wp.array | None,
    rgba8: wp.array | None,
    device: wp.Device | str,
) -> None:
    """Write ``total`` over the clear value of `color`; `rgba8` is encoded from that, and has its own where nothing is seen. Device work
    only."""
    inputs = [views, height, total, srgb_tables(device), *clear]
    launch(_give_out, view_count * height, inputs, [color, rgba8], device=device)
