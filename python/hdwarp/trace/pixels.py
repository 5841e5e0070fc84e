"""trace.pixels: what a tile knows of its 128 pixels, and its place in the visibility record. Warp functions only.

Pixel arrays hold eight blocks of 4 x 4 pixels one after the other, so that the innermost loops run over 16 neighbouring numbers:
``keys`` (the nearest so far; until something is seen the far end of the clip range, infinite outside the data window), ``near_keys``
(the near end of the clip range), ``slots`` and ``owners`` (slot and instance row seen, -1 none: as Visibility), ``ranks`` (of the owner).
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import TILE_HEIGHT, TILE_WIDTH, ClipPlane, ViewRow, Visibility, vec16f
from hdwarp.trace.rays import TileRays, ray_direction

vec16i = wp.types.vector(length=16, dtype=wp.int32)

BLOCKS = wp.constant(8)
BLOCKS_X = wp.constant(4)
NO_RANK = wp.constant(2**31 - 1)
CLIP_SLACK = wp.constant(1.0e-6)  # relative: both ends of the clip range belong to it, whatever rounding says
DEPTH_SLACK = wp.constant(1.0e-5)


@wp.func
def key_of(t: wp.float32, orthographic: wp.bool) -> wp.float32:
    return wp.where(orthographic, -t, 1.0 / t)


@wp.func
def clip_keys(view: ViewRow, stretch: wp.float32, orthographic: wp.bool):
    """Keys of the near and far end of the clip range; ``stretch``: length of the ray's direction where the range is radial, else 1."""
    near, far = key_of(view.near / stretch, orthographic), key_of(view.far / stretch, orthographic)
    if not orthographic:  # nothing is nearer than 0; a range that ends there is empty
        near = wp.where(view.near > 0.0, near, wp.inf)
        far = wp.where(view.far > 0.0, far, wp.inf)
    far = far - CLIP_SLACK * wp.abs(far)
    return near + CLIP_SLACK * wp.abs(near), wp.where(orthographic, wp.max(far, -1.0e37), wp.max(far, 1.0e-37))


@wp.func
def start_pixels(
    view: ViewRow,
    rays: TileRays,
    tile_x: wp.int32,
    tile_y: wp.int32,
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
):
    """Nothing seen yet: the keys are those of the far end of the clip range. Pixels outside the data window can see nothing."""
    orthographic = view.orthographic != 0
    near_key, far_key = clip_keys(view, 1.0, orthographic)
    whole = tile_x >= view.x0 and tile_x + TILE_WIDTH <= view.x0 + view.width
    whole = whole and tile_y >= view.y0 and tile_y + TILE_HEIGHT <= view.y0 + view.height
    for block in range(BLOCKS):
        near_keys[block] = vec16f(near_key)
        keys[block] = vec16f(far_key)
        slots[block] = vec16i(-1)
        owners[block] = vec16i(-1)
        ranks[block] = vec16i(NO_RANK)
        if view.radial != 0 or not whole:
            left, top = (block % BLOCKS_X) * 4, (block // BLOCKS_X) * 4
            nears = vec16f()
            fars = vec16f()
            for p in range(16):
                x, y = left + (p & 3), top + (p >> 2)
                direction = ray_direction(rays, float(x), float(y))
                stretch = wp.where(view.radial != 0, wp.sqrt(wp.dot(direction, direction)), 1.0)
                near, far = clip_keys(view, stretch, orthographic)
                column, line = tile_x + x - view.x0, tile_y + y - view.y0
                inside = column >= 0 and column < view.width and line >= 0 and line < view.height
                nears[p] = near
                fars[p] = wp.where(inside, far, wp.inf)
            near_keys[block] = nears
            keys[block] = fars


@wp.func
def cut_pixels(
    view: ViewRow,
    planes: wp.array[ClipPlane],
    tile_x: wp.int32,
    tile_y: wp.int32,
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
):
    """Narrow every pixel's clip range to what the view's clip planes leave of its ray: offset + t rate >= 0 is linear in the key too."""
    orthographic = view.orthographic != 0
    for i in range(view.plane_count):
        plane = planes[view.first_plane + i]
        x, y = wp.float64(tile_x), wp.float64(tile_y)
        offset = wp.float32(plane.offset[0] + plane.offset[1] * x + plane.offset[2] * y)
        offset_dx, offset_dy = wp.float32(plane.offset[1]), wp.float32(plane.offset[2])
        rate = wp.float32(plane.rate[0] + plane.rate[1] * x + plane.rate[2] * y)
        rate_dx, rate_dy = wp.float32(plane.rate[1]), wp.float32(plane.rate[2])
        for block in range(BLOCKS):
            left, top = float((block % BLOCKS_X) * 4), float((block // BLOCKS_X) * 4)
            nears = near_keys[block]
            fars = keys[block]
            for p in range(16):
                column, line = left + float(p & 3), top + float(p >> 2)
                here, along = offset + offset_dx * column + offset_dy * line, rate + rate_dx * column + rate_dy * line
                a, b = wp.where(orthographic, -along, here), wp.where(orthographic, here, along)  # kept: a key + b >= 0
                bound = -b / a
                slack = CLIP_SLACK * wp.abs(bound)
                nears[p] = wp.where(a < 0.0 and bound + slack < nears[p], bound + slack, nears[p])
                fars[p] = wp.where(a > 0.0 and bound - slack > fars[p], bound - slack, fars[p])
                fars[p] = wp.where(a == 0.0 and b < 0.0, wp.inf, fars[p])
            near_keys[block] = nears
            keys[block] = fars


@wp.func
def lowest_key(keys: wp.array[vec16f], blocks: wp.int32) -> wp.float32:
    """The lowest key of a tile or packet of so many blocks: where it sees farthest."""
    low = keys[0]
    for block in range(1, blocks):
        other = keys[block]
        for p in range(16):
            low[p] = wp.where(other[p] < low[p], other[p], low[p])
    for p in range(8):
        low[p] = wp.where(low[p + 8] < low[p], low[p + 8], low[p])
    for p in range(4):
        low[p] = wp.where(low[p + 4] < low[p], low[p + 4], low[p])
    a, b = wp.min(low[0], low[1]), wp.min(low[2], low[3])
    return wp.min(a, b)


@wp.func
def take_won(
    row: wp.int32,
    rank: wp.int32,
    blocks: wp.int32,
    mine: wp.array[vec16i],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
):
    """Give an instance the pixels that it has won: those where ``mine`` holds a slot of its own, not -1."""
    for block in range(blocks):
        won = mine[block]
        slot = slots[block]
        owner = owners[block]
        other = ranks[block]
        for p in range(16):
            slot[p] = wp.where(won[p] >= 0, won[p], slot[p])
            owner[p] = wp.where(won[p] >= 0, row, owner[p])
            other[p] = wp.where(won[p] >= 0, rank, other[p])
        slots[block] = slot
        owners[block] = owner
        ranks[block] = other


@wp.func
def nearest_left(near_keys: wp.array[vec16f], orthographic: wp.bool) -> wp.float32:
    """t before which nothing can be seen, by the near end that is left to every pixel."""
    high = near_keys[0]
    for block in range(1, BLOCKS):
        other = near_keys[block]
        for p in range(16):
            high[p] = wp.where(other[p] > high[p], other[p], high[p])
    key = high[0]
    for p in range(1, 16):
        key = wp.where(high[p] > key, high[p], key)
    t = wp.where(orthographic, -key, wp.where(key > 0.0, 1.0 / key, wp.inf))
    return t - DEPTH_SLACK * wp.abs(t)


@wp.func
def nearest_depth(view: ViewRow) -> wp.float32:
    """t before which nothing can be seen."""
    near = wp.where(view.radial != 0, wp.min(view.near, 0.0), view.near)
    return near - DEPTH_SLACK * wp.abs(near)


@wp.func
def depth_of(key: wp.float32, orthographic: wp.bool) -> wp.float32:
    """t beyond which nothing can be seen in a tile whose farthest pixel has this key."""
    t = wp.where(orthographic, -key, 1.0 / key)
    return t + DEPTH_SLACK * wp.abs(t)


_STORE = """
    for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 4; ++x)
            for (int i = 0; i < 4; ++i)
                out.data[base + y * pitch + 4 * x + i] = blocks.data[(y >> 2) * 4 + x].c[4 * (y & 3) + i];
"""


@wp.func_native(_STORE)
def store_ints(blocks: wp.array[vec16i], base: wp.int32, pitch: wp.int32, out: wp.array[wp.int32]):
    """Store a tile, row by row; Warp's own indexing would take half the time of an empty tile."""


@wp.func_native(_STORE)
def store_floats(blocks: wp.array[vec16f], base: wp.int32, pitch: wp.int32, out: wp.array[wp.float32]): ...


@wp.func
def store(view: ViewRow, tile: wp.int32, keys: wp.array[vec16f], slots: wp.array[vec16i], owners: wp.array[vec16i], out: Visibility):
    pitch = TILE_WIDTH * view.tiles_x
    base = view.record + (tile // view.tiles_x) * TILE_HEIGHT * pitch + (tile % view.tiles_x) * TILE_WIDTH
    store_ints(slots, base, pitch, out.slot)
    store_ints(owners, base, pitch, out.instance)
    store_floats(keys, base, pitch, out.key)
