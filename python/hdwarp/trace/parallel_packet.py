"""trace.parallel_packet: a packet of rays that all go one way from anywhere, as to the sun: the tile that holds them. Warp functions only.

The tile is that of an orthographic view: its axis is the way, ray i lies at (x, y) in it and starts ``s`` along the axis from the bundle's
origin, from which t counts. Rays that start far from the others, for how far they are from the origin, wait for a tile of their own: a wide
tile would place near ones badly.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import vec16f
from hdwarp.trace.bundles import RayBundle, is_ray
from hdwarp.trace.free_packet import ACTIVE, INSET, NO_RAY, WAITING, Axes, Patch
from hdwarp.trace.free_triangles import PACKET_BLOCKS
from hdwarp.trace.pixels import CLIP_SLACK, NO_RANK, vec16i
from hdwarp.trace.rays import LAST_X, LAST_Y, TileRays

APART = wp.constant(0.5)  # how far from the first ray of a tile others may start, of its distance from the bundle's origin
THIN = wp.constant(1.0e-5)  # a tile's least size, of that distance
_NO_TIME = wp.constant(1.0e37)


@wp.func
def load_origins(
    bundle: RayBundle,
    patch: Patch,
    origins: wp.array[wp.vec3f],
    directions: wp.array[wp.vec3f],
    ox: wp.array[vec16f],
    oy: wp.array[vec16f],
    oz: wp.array[vec16f],
    state: wp.array[vec16i],
):
    """Where the rays of a packet start, from the bundle's origin. ``directions`` say only whether there is a ray."""
    for block in range(PACKET_BLOCKS):
        row = patch.row + (block // patch.blocks_x) * patch.height
        column = patch.column + (block % patch.blocks_x) * patch.width
        x, y, z = vec16f(), vec16f(), vec16f()
        waits = vec16i()
        for p in range(16):
            r, c = row + (p >> patch.shift), column + (p & (patch.width - 1))
            inside = r < bundle.rows and c < bundle.columns
            r, c = wp.where(r < bundle.rows, r, bundle.rows - 1), wp.where(c < bundle.columns, c, bundle.columns - 1)
            o, d = origins[bundle.first_ray + r * bundle.columns + c], directions[bundle.first_ray + r * bundle.columns + c]
            counts = inside and is_ray(d) and wp.abs(o[0]) < 1.0e37 and wp.abs(o[1]) < 1.0e37 and wp.abs(o[2]) < 1.0e37
            waits[p] = wp.where(counts, WAITING, NO_RAY)
            x[p] = wp.where(counts, o[0], 0.0)
            y[p] = wp.where(counts, o[1], 0.0)
            z[p] = wp.where(counts, o[2], 0.0)
        ox[block] = x
        oy[block] = y
        oz[block] = z
        state[block] = waits


@wp.func
def choose_near(
    axis: wp.vec3f, ox: wp.array[vec16f], oy: wp.array[vec16f], oz: wp.array[vec16f], state: wp.array[vec16i]
) -> tuple[Axes, wp.float32]:
    """The axis and two directions across it, and how far the first waiting ray is from the bundle's origin; those that start near it become
    active."""
    axes = Axes()
    axes.axis = axis
    side = wp.where(wp.abs(axis[2]) > 0.7, wp.vec3f(1.0, 0.0, 0.0), wp.vec3f(0.0, 0.0, 1.0))
    first = wp.vec3f()
    for ray in range(16 * PACKET_BLOCKS):
        block, p = PACKET_BLOCKS - 1 - ray // 16, 15 - ray % 16
        if state[block][p] == WAITING:
            first = wp.vec3f(ox[block][p], oy[block][p], oz[block][p])
            axes.waiting += 1
    reach = wp.length(first)
    least = APART * APART * reach * reach
    members = vec16i()
    drift_x, drift_y, drift_z = vec16f(), vec16f(), vec16f()  # how starts change along the rows: a grid is covered best along them
    for block in range(PACKET_BLOCKS):
        x = ox[block]
        y = oy[block]
        z = oz[block]
        waits = state[block]
        for p in range(16):
            dx, dy, dz = x[p] - first[0], y[p] - first[1], z[p] - first[2]
            member = waits[p] == WAITING and dx * dx + dy * dy + dz * dz <= least
            weight = wp.where(member, float(p & 3) - 1.5, 0.0)
            drift_x[p] = drift_x[p] + weight * x[p]
            drift_y[p] = drift_y[p] + weight * y[p]
            drift_z[p] = drift_z[p] + weight * z[p]
            members[p] = members[p] + wp.where(member, 1, 0)
            waits[p] = wp.where(member, ACTIVE, waits[p])
        state[block] = waits
    drift = wp.vec3f()
    for p in range(16):
        axes.members += members[p]
        drift = drift + wp.vec3f(drift_x[p], drift_y[p], drift_z[p])
    drift = drift - axis * wp.dot(axis, drift)
    if wp.length(drift) > 1.0e-4 * reach:
        side = drift
    axes.across = wp.normalize(side - axis * wp.dot(axis, side))
    axes.down = wp.cross(axis, axes.across)
    return axes, reach


@wp.func
def parallel_tile(
    axes: Axes,
    reach: wp.float32,
    ox: wp.array[vec16f],
    oy: wp.array[vec16f],
    oz: wp.array[vec16f],
    state: wp.array[vec16i],
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    bounds: wp.array[wp.vec4f],
) -> TileRays:
    """The tile that holds the active rays, its origin from the bundle's, and where each of them is in it. Bounds a block; those of a block
    without active rays overlap nothing."""
    low_x, high_x, low_y, high_y = vec16f(1.0e30), vec16f(-1.0e30), vec16f(1.0e30), vec16f(-1.0e30)
    for block in range(PACKET_BLOCKS):
        x = ox[block]
        y = oy[block]
        z = oz[block]
        active = state[block]
        place_x, place_y = vec16f(), vec16f()
        for p in range(16):
            u = axes.across[0] * x[p] + axes.across[1] * y[p] + axes.across[2] * z[p]
            v = axes.down[0] * x[p] + axes.down[1] * y[p] + axes.down[2] * z[p]
            counts = active[p] == ACTIVE
            low_x[p] = wp.where(counts and u < low_x[p], u, low_x[p])
            high_x[p] = wp.where(counts and u > high_x[p], u, high_x[p])
            low_y[p] = wp.where(counts and v < low_y[p], v, low_y[p])
            high_y[p] = wp.where(counts and v > high_y[p], v, high_y[p])
            place_x[p] = u
            place_y[p] = v
        xs[block] = place_x
        ys[block] = place_y
    x0, x1, y0, y1 = low_x[0], high_x[0], low_y[0], high_y[0]
    for p in range(1, 16):
        x0 = wp.where(low_x[p] < x0, low_x[p], x0)
        x1 = wp.where(high_x[p] > x1, high_x[p], x1)
        y0 = wp.where(low_y[p] < y0, low_y[p], y0)
        y1 = wp.where(high_y[p] > y1, high_y[p], y1)
    least = wp.max(THIN * reach, 1.0e-3 * wp.max(x1 - x0, y1 - y0))
    width = wp.max(wp.max(x1 - x0, least), 1.0e-30) / (LAST_X - 2.0 * INSET)
    height = wp.max(wp.max(y1 - y0, least), 1.0e-30) / (LAST_Y - 2.0 * INSET)
    left, top = 0.5 * (x0 + x1) - 0.5 * LAST_X * width, 0.5 * (y0 + y1) - 0.5 * LAST_Y * height
    across, down = 1.0 / width, 1.0 / height
    for block in range(PACKET_BLOCKS):
        place_x = xs[block]
        place_y = ys[block]
        active = state[block]
        bx0, bx1, by0, by1 = wp.float32(1.0e30), wp.float32(-1.0e30), wp.float32(1.0e30), wp.float32(-1.0e30)
        for p in range(16):
            counts = active[p] == ACTIVE
            place_x[p] = wp.where(counts, (place_x[p] - left) * across, 0.0)
            place_y[p] = wp.where(counts, (place_y[p] - top) * down, 0.0)
            bx0 = wp.where(counts and place_x[p] < bx0, place_x[p], bx0)
            bx1 = wp.where(counts and place_x[p] > bx1, place_x[p], bx1)
            by0 = wp.where(counts and place_y[p] < by0, place_y[p], by0)
            by1 = wp.where(counts and place_y[p] > by1, place_y[p], by1)
        xs[block] = place_x
        ys[block] = place_y
        bounds[block] = wp.vec4f(bx0, bx1, by0, by1)
    rays = TileRays()
    rays.direction = axes.axis
    rays.origin_dx = axes.across * width
    rays.origin_dy = axes.down * height
    rays.origin = axes.across * left + axes.down * top
    return rays


@wp.func
def start_parallel(
    bundle: RayBundle,
    patch: Patch,
    limits: wp.array[wp.vec2f],
    axis: wp.vec3f,
    ox: wp.array[vec16f],
    oy: wp.array[vec16f],
    oz: wp.array[vec16f],
    state: wp.array[vec16i],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
):
    """Nothing hit yet: the keys, -t, are those of the far ends. Only active rays can hit anything."""
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
        x = ox[block]
        y = oy[block]
        z = oz[block]
        active = state[block]
        for p in range(16):
            s = axis[0] * x[p] + axis[1] * y[p] + axis[2] * z[p]
            near, far = s + wp.max(nears[p], 0.0), s + fars[p]
            counts = active[p] == ACTIVE and fars[p] > 0.0  # no number: no range
            nears[p] = wp.where(counts, CLIP_SLACK * wp.abs(near) - near, -wp.inf)
            fars[p] = wp.where(counts, wp.max(-far - CLIP_SLACK * wp.abs(far), -_NO_TIME), wp.inf)
        near_keys[block] = nears
        keys[block] = fars
        slots[block] = vec16i(-1)
        owners[block] = vec16i(-1)
        ranks[block] = vec16i(NO_RANK)
