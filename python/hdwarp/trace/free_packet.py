"""trace.free_packet: the rays of a packet: where they lie in their grid, and the tile that holds them. Warp functions only.

A tile is made to measure: its axis is the rays' mean direction, its sides follow the rows of the grid. Rays too far off the axis wait for
a tile of their own.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import vec8f, vec16f
from hdwarp.trace.bundles import RayBundle, RayHits, is_ray, limit_keys, near_unit, turn_direction
from hdwarp.trace.free_triangles import PACKET_BLOCKS
from hdwarp.trace.pixels import NO_RANK, vec16i
from hdwarp.trace.rays import LAST_X, LAST_Y, TileRays, widen

WIDEST = wp.constant(0.5)  # cosine of the widest angle between a packet's axis and its rays; what is beyond takes another turn
NARROWEST = wp.constant(1.0e-4)  # half extent of the narrowest tile that is told apart from a single ray
INSET = wp.constant(0.05)  # of the tile, at its rim: what rounding may do to the place of a ray

NO_RAY, WAITING, ACTIVE, DONE = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)


@wp.struct
class Axes:
    """Axis of a packet and two directions across it; ``members``: rays within the widest angle, of ``waiting``."""

    axis: wp.vec3f
    across: wp.vec3f
    down: wp.vec3f
    members: wp.int32
    waiting: wp.int32


@wp.struct
class Patch:
    """Where the rays of a packet are in their grid: four blocks of ``width`` x ``height`` = 16 rays, ``blocks_x`` side by side."""

    row: wp.int32
    column: wp.int32
    width: wp.int32
    height: wp.int32
    blocks_x: wp.int32
    shift: wp.int32  # width = 1 << shift


@wp.func
def patch_of(bundle: RayBundle, tile: wp.int32) -> Patch:
    patch = Patch()
    tile_width = PACKET_BLOCKS * 16 // bundle.tile_height
    tiles_x = (bundle.columns + tile_width - 1) // tile_width
    patch.row = (tile // tiles_x) * bundle.tile_height
    patch.column = (tile % tiles_x) * tile_width
    patch.height = wp.min(bundle.tile_height, 4)
    patch.width = 16 // patch.height
    patch.blocks_x = tile_width // patch.width
    patch.shift = wp.where(patch.height == 4, 2, wp.where(patch.height == 2, 3, 4))
    return patch


@wp.func
def load_directions(
    bundle: RayBundle,
    patch: Patch,
    directions: wp.array[wp.vec3f],
    dx: wp.array[vec16f],
    dy: wp.array[vec16f],
    dz: wp.array[vec16f],
    state: wp.array[vec16i],
):
    """World directions of a packet, about unit long."""
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        x = vec16f()
        y = vec16f()
        z = vec16f()
        waits = vec16i()
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            r, c = wp.where(r < bundle.rows, r, bundle.rows - 1), wp.where(c < bundle.columns, c, bundle.columns - 1)
            d = directions[bundle.first_ray + r * bundle.columns + c]
            x[p] = d[0]
            y[p] = d[1]
            z[p] = d[2]
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            counts = r < bundle.rows and c < bundle.columns and is_ray(wp.vec3f(x[p], y[p], z[p]))
            waits[p] = wp.where(counts, WAITING, NO_RAY)
            d = near_unit(turn_direction(bundle.turn, wp.vec3f(x[p], y[p], z[p])))
            x[p] = wp.where(counts, d[0], 0.0)
            y[p] = wp.where(counts, d[1], 0.0)
            z[p] = wp.where(counts, d[2], 0.0)
        dx[block] = x
        dy[block] = y
        dz[block] = z
        state[block] = waits


@wp.func
def lane_sum(v: vec16f) -> wp.float32:
    half = vec8f()
    for p in range(8):
        half[p] = v[p] + v[p + 8]
    for p in range(4):
        half[p] = half[p] + half[p + 4]
    return (half[0] + half[1]) + (half[2] + half[3])


@wp.func
def cosine_floor(axis: wp.vec3f, dx: wp.array[vec16f], dy: wp.array[vec16f], dz: wp.array[vec16f], state: wp.array[vec16i]) -> wp.float32:
    """The smallest cosine between an axis and the waiting rays."""
    low = vec16f(2.0)
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        waits = state[block]
        for p in range(16):
            cosine = axis[0] * x[p] + axis[1] * y[p] + axis[2] * z[p]
            low[p] = wp.where(waits[p] == WAITING and cosine < low[p], cosine, low[p])
    lowest = low[0]
    for p in range(1, 16):
        lowest = wp.where(low[p] < lowest, low[p], lowest)
    return lowest


@wp.func
def choose_axes(dx: wp.array[vec16f], dy: wp.array[vec16f], dz: wp.array[vec16f], state: wp.array[vec16i]) -> Axes:
    """An axis with as many waiting rays about it as may be, all if they allow it; those within the widest angle become active."""
    axes = Axes()
    sum_x, sum_y, sum_z = vec16f(), vec16f(), vec16f()
    waiting = vec16i()
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        waits = state[block]
        for p in range(16):
            counts = waits[p] == WAITING
            sum_x[p] = sum_x[p] + wp.where(counts, x[p], 0.0)
            sum_y[p] = sum_y[p] + wp.where(counts, y[p], 0.0)
            sum_z[p] = sum_z[p] + wp.where(counts, z[p], 0.0)
            waiting[p] = waiting[p] + wp.where(counts, 1, 0)
    for p in range(16):
        axes.waiting += waiting[p]
    if axes.waiting == 0:
        return axes
    axes.axis = wp.normalize(wp.vec3f(lane_sum(sum_x), lane_sum(sum_y), lane_sum(sum_z)))
    if not cosine_floor(axes.axis, dx, dy, dz, state) >= WIDEST:
        for ray in range(16 * PACKET_BLOCKS):
            block, p = PACKET_BLOCKS - 1 - ray // 16, 15 - ray % 16
            if state[block][p] == WAITING:
                axes.axis = wp.normalize(wp.vec3f(dx[block][p], dy[block][p], dz[block][p]))
    drift_x, drift_y, drift_z = vec16f(), vec16f(), vec16f()  # how directions change along the rows: a grid is covered best along them
    members = vec16i()
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        waits = state[block]
        for p in range(16):
            cosine = axes.axis[0] * x[p] + axes.axis[1] * y[p] + axes.axis[2] * z[p]
            member = waits[p] == WAITING and cosine >= 0.99 * WIDEST
            weight = wp.where(member, float(p & 3) - 1.5, 0.0)
            drift_x[p] = drift_x[p] + weight * x[p]
            drift_y[p] = drift_y[p] + weight * y[p]
            drift_z[p] = drift_z[p] + weight * z[p]
            members[p] = members[p] + wp.where(member, 1, 0)
            waits[p] = wp.where(member, ACTIVE, waits[p])
        state[block] = waits
    for p in range(16):
        axes.members += members[p]
    drift = wp.vec3f(lane_sum(drift_x), lane_sum(drift_y), lane_sum(drift_z))
    side = drift - axes.axis * wp.dot(axes.axis, drift)
    if wp.length(side) < 1.0e-5 * wp.length(drift) or wp.length(side) < 1.0e-7:
        side = wp.vec3f(0.0, 0.0, 1.0)
        if wp.abs(axes.axis[2]) > 0.7:
            side = wp.vec3f(1.0, 0.0, 0.0)
        side = side - axes.axis * wp.dot(axes.axis, side)
    axes.across = wp.normalize(side)
    axes.down = wp.cross(axes.axis, axes.across)
    return axes


@wp.func
def tile_of(axes: Axes, dx: wp.array[vec16f], dy: wp.array[vec16f], dz: wp.array[vec16f], state: wp.array[vec16i]) -> TileRays:
    """The tile that holds the active rays."""
    low_x, high_x, low_y, high_y = vec16f(1.0e30), vec16f(-1.0e30), vec16f(1.0e30), vec16f(-1.0e30)
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        active = state[block]
        for p in range(16):
            w = 1.0 / (axes.axis[0] * x[p] + axes.axis[1] * y[p] + axes.axis[2] * z[p])
            u = (axes.across[0] * x[p] + axes.across[1] * y[p] + axes.across[2] * z[p]) * w
            v = (axes.down[0] * x[p] + axes.down[1] * y[p] + axes.down[2] * z[p]) * w
            counts = active[p] == ACTIVE
            low_x[p] = wp.where(counts and u < low_x[p], u, low_x[p])
            high_x[p] = wp.where(counts and u > high_x[p], u, high_x[p])
            low_y[p] = wp.where(counts and v < low_y[p], v, low_y[p])
            high_y[p] = wp.where(counts and v > high_y[p], v, high_y[p])
    x0, x1, y0, y1 = low_x[0], high_x[0], low_y[0], high_y[0]
    for p in range(1, 16):
        x0 = wp.where(low_x[p] < x0, low_x[p], x0)
        x1 = wp.where(high_x[p] > x1, high_x[p], x1)
        y0 = wp.where(low_y[p] < y0, low_y[p], y0)
        y1 = wp.where(high_y[p] > y1, high_y[p], y1)
    width = wp.max(x1 - x0, 2.0 * NARROWEST) / (LAST_X - 2.0 * INSET)
    height = wp.max(y1 - y0, 2.0 * NARROWEST) / (LAST_Y - 2.0 * INSET)
    rays = TileRays()
    rays.direction_dx = axes.across * width
    rays.direction_dy = axes.down * height
    left, top = 0.5 * (x0 + x1) - 0.5 * LAST_X * width, 0.5 * (y0 + y1) - 0.5 * LAST_Y * height
    rays.direction = axes.axis + axes.across * left + axes.down * top
    return rays


@wp.func
def settle_places(
    rays: TileRays,
    dx: wp.array[vec16f],
    dy: wp.array[vec16f],
    dz: wp.array[vec16f],
    state: wp.array[vec16i],
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    stretches: wp.array[vec16f],
    bounds: wp.array[wp.vec4f],
):
    """Where in the tile each active ray is, solved in double: the direction at (x, y) is the ray's own times ``stretches``. Bounds a block;
    those of a block without active rays overlap nothing."""
    a, b, c = widen(rays.direction_dx), widen(rays.direction_dy), widen(rays.direction)
    to_x, to_y, to_w = wp.cross(b, c), wp.cross(c, a), wp.cross(a, b)
    volume = wp.dot(to_w, c)
    for block in range(PACKET_BLOCKS):
        x = dx[block]
        y = dy[block]
        z = dz[block]
        active = state[block]
        place_x = vec16f()
        place_y = vec16f()
        stretch = vec16f()
        for p in range(16):
            dx64, dy64, dz64 = wp.float64(x[p]), wp.float64(y[p]), wp.float64(z[p])
            r = wp.float64(1.0) / (to_w[0] * dx64 + to_w[1] * dy64 + to_w[2] * dz64)
            place_x[p] = wp.float32((to_x[0] * dx64 + to_x[1] * dy64 + to_x[2] * dz64) * r)
            place_y[p] = wp.float32((to_y[0] * dx64 + to_y[1] * dy64 + to_y[2] * dz64) * r)
            stretch[p] = wp.float32(volume * r)
        x0, x1, y0, y1 = wp.float32(1.0e30), wp.float32(-1.0e30), wp.float32(1.0e30), wp.float32(-1.0e30)
        for p in range(16):
            counts = active[p] == ACTIVE
            place_x[p] = wp.where(counts, place_x[p], 0.0)
            place_y[p] = wp.where(counts, place_y[p], 0.0)
            stretch[p] = wp.where(counts, stretch[p], 1.0)
            x0 = wp.where(counts and place_x[p] < x0, place_x[p], x0)
            x1 = wp.where(counts and place_x[p] > x1, place_x[p], x1)
            y0 = wp.where(counts and place_y[p] < y0, place_y[p], y0)
            y1 = wp.where(counts and place_y[p] > y1, place_y[p], y1)
        xs[block] = place_x
        ys[block] = place_y
        stretches[block] = stretch
        bounds[block] = wp.vec4f(x0, x1, y0, y1)


@wp.func
def start_rays(
    bundle: RayBundle,
    patch: Patch,
    limits: wp.array[wp.vec2f],
    dx: wp.array[vec16f],
    dy: wp.array[vec16f],
    dz: wp.array[vec16f],
    state: wp.array[vec16i],
    stretches: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
):
    """Nothing hit yet: the keys are those of the far ends. ``stretches`` become distances at t = 1; only active rays can hit anything."""
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        nears = vec16f(bundle.near)
        fars = vec16f(bundle.far)
        if limits.shape[0] > 0:
            for p in range(16):
                r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
                r, c = wp.where(r < bundle.rows, r, bundle.rows - 1), wp.where(c < bundle.columns, c, bundle.columns - 1)
                limit = limits[bundle.first_ray + r * bundle.columns + c]
                nears[p] = limit[0]
                fars[p] = limit[1]
        x = dx[block]
        y = dy[block]
        z = dz[block]
        active = state[block]
        stretch = stretches[block]
        for p in range(16):
            length = stretch[p] * wp.sqrt(x[p] * x[p] + y[p] * y[p] + z[p] * z[p])
            near_key, far_key = limit_keys(nears[p], fars[p], length)
            counts = active[p] == ACTIVE
            stretch[p] = length
            nears[p] = wp.where(counts, near_key, 0.0)
            fars[p] = wp.where(counts, far_key, wp.inf)
        stretches[block] = stretch
        near_keys[block] = nears
        keys[block] = fars
        slots[block] = vec16i(-1)
        owners[block] = vec16i(-1)
        ranks[block] = vec16i(NO_RANK)


@wp.func
def highest_key(keys: wp.array[vec16f]) -> wp.float32:
    high = keys[0]
    for block in range(1, PACKET_BLOCKS):
        other = keys[block]
        for p in range(16):
            high[p] = wp.where(other[p] > high[p], other[p], high[p])
    highest = high[0]
    for p in range(1, 16):
        highest = wp.where(high[p] > highest, high[p], highest)
    return highest


@wp.func
def store_hits(
    bundle: RayBundle,
    patch: Patch,
    more: wp.bool,
    state: wp.array[vec16i],
    stretches: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    hits: RayHits,
):
    """What this turn found; the last turn also stores what was no ray."""
    no_ray = wp.where(more, ACTIVE, NO_RAY)
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        slot = slots[block]
        owner = owners[block]
        key = keys[block]
        stretch = stretches[block]
        result = state[block]
        t = vec16f()
        for p in range(16):
            t[p] = wp.where(slot[p] >= 0, stretch[p] / key[p], wp.inf)
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            if (result[p] == ACTIVE or result[p] == no_ray) and r < bundle.rows and c < bundle.columns:
                output = bundle.output + r * bundle.pitch + c
                hits.slot[output] = slot[p]
                hits.instance[output] = owner[p]
                if hits.t:
                    hits.t[output] = t[p]
                if hits.key:
                    hits.key[output] = 1.0 / t[p]


@wp.func
def store_blocked(
    bundle: RayBundle, patch: Patch, more: wp.bool, state: wp.array[vec16i], slots: wp.array[vec16i], blocked: wp.array[wp.bool]
):
    no_ray = wp.where(more, ACTIVE, NO_RAY)
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        slot = slots[block]
        result = state[block]
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            if (result[p] == ACTIVE or result[p] == no_ray) and r < bundle.rows and c < bundle.columns:
                blocked[bundle.output + r * bundle.columns + c] = slot[p] >= 0
