"""trace.triangles: the triangles of a leaf against a tile: set up 16 at a time, then cover 16 pixels at a time. Warp functions only.

Everything about a triangle is affine over the tile: f(x, y) = f[0] + f[1] x + f[2] y. Three edge functions say whether a pixel is inside
(all >= 0), the key says how near (1/t, or -t in orthographic views: the larger the nearer). An edge function changes its sign, and nothing
else, when the neighbour walks the edge the other way: no pixel falls between two triangles.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import vec16f
from hdwarp.trace.layers import is_seen_already
from hdwarp.trace.pixels import BLOCKS_X, vec16i
from hdwarp.trace.rays import LAST_X, LAST_Y, Screen, TileRays

DISMISSED = wp.constant(-1)
NO_KEY = wp.constant(-3.0e38)  # farther than any far end of a clip range


@wp.func
def edge_function(a: wp.vec3f, b: wp.vec3f, sign: wp.float32, rays: TileRays, affine: wp.bool) -> wp.vec3f:
    """Twice the volume spanned by the ray and the edge from ``a`` to ``b``, times ``sign``."""
    edge = (b - a) * sign
    moment = wp.cross(a + b, edge)
    f = wp.vec3f(wp.dot(moment, rays.direction), wp.dot(moment, rays.direction_dx), wp.dot(moment, rays.direction_dy))
    if affine:  # the origin moves from pixel to pixel
        lever = edge + edge
        f = wp.vec3f(
            f[0],
            f[1] + wp.dot(lever, wp.cross(rays.origin_dx, rays.direction)),
            f[2] + wp.dot(lever, wp.cross(rays.origin_dy, rays.direction)),
        )
    return f


@wp.func
def key_function(
    normal: wp.vec3f, distance: wp.float32, facing: wp.float32, rays: TileRays, affine: wp.bool, orthographic: wp.bool
) -> wp.vec3f:
    """The key over the tile of the plane normal . p = distance; ``facing``: normal . direction."""
    r = 1.0 / distance
    f = wp.vec3f(facing * r, wp.dot(normal, rays.direction_dx) * r, wp.dot(normal, rays.direction_dy) * r)
    if affine:
        q = 1.0 / facing
        g = wp.vec3f(-distance * q - rays.shift, wp.dot(normal, rays.origin_dx) * q, wp.dot(normal, rays.origin_dy) * q)
        f = wp.vec3f(wp.where(orthographic, g[0], f[0]), wp.where(orthographic, g[1], f[1]), wp.where(orthographic, g[2], f[2]))
    return f


@wp.func
def at(f: wp.vec3f, x: wp.float32, y: wp.float32) -> wp.float32:
    return f[0] + f[1] * x + f[2] * y


@wp.func
def highest(f: wp.vec3f) -> wp.float32:
    """The largest value over the pixels of a tile, rounded as at the pixel where it is taken."""
    return at(f, wp.where(f[1] > 0.0, LAST_X, 0.0), wp.where(f[2] > 0.0, LAST_Y, 0.0))


@wp.func
def smallest(a: wp.float32, b: wp.float32, c: wp.float32) -> wp.float32:
    ab = wp.where(b < a, b, a)
    return wp.where(c < ab, c, ab)


@wp.func
def greatest(a: wp.float32, b: wp.float32, c: wp.float32) -> wp.float32:
    ab = wp.where(b > a, b, a)
    return wp.where(c > ab, c, ab)


@wp.func
def inside_of(f: wp.vec3f, g: wp.vec3f, h: wp.vec3f, x: wp.float32, y: wp.float32) -> wp.float32:
    """>= 0 where a pixel is inside all three edges."""
    return smallest(at(f, x, y), at(g, x, y), at(h, x, y))


@wp.func
def candidate(f: wp.vec3f, g: wp.vec3f, h: wp.vec3f, key: wp.vec3f, near: wp.float32, x: wp.float32, y: wp.float32) -> wp.float32:
    """The key of a triangle with edges f, g, h at a pixel; NO_KEY where the triangle is not, or is nearer than the clip range."""
    k = at(key, x, y)
    k = wp.where(inside_of(f, g, h, x, y) >= 0.0, k, NO_KEY)
    return wp.where(k <= near, k, NO_KEY)


@wp.func
def cover(
    f: wp.vec3f,
    g: wp.vec3f,
    h: wp.vec3f,
    key: wp.vec3f,
    box: wp.vec4i,
    slot: wp.int32,
    rank: wp.int32,
    triangle: wp.int32,
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    peel: wp.bool,
    behind_ranks: wp.array[vec16i],
    behind_triangles: wp.array[vec16i],
) -> wp.bool:
    """Let a triangle win the pixels of the tile where it is the nearest. ``box``: pixels it may cover, x from, x to, y from, y to.
    True if anywhere it is as near as what is there: a tie for `settle`."""
    ties = vec16i()
    for block_y in range(box[2] >> 2, (box[3] >> 2) + 1):
        for block_x in range(box[0] >> 2, (box[1] >> 2) + 1):
            block = (block_y * BLOCKS_X + block_x) & 7  # never negative: Warp's negative indices cost
            left, top = float(block_x * 4), float(block_y * 4)
            near = near_keys[block]
            old_keys = keys[block]
            old_slots = slots[block]
            new_keys = vec16f()
            new_slots = vec16i()
            behind_rank = behind_ranks[block]
            behind_triangle = behind_triangles[block]
            for p in range(16):
                k = candidate(f, g, h, key, near[p], left + float(p & 3), top + float(p >> 2))
                if peel:
                    k = wp.where(is_seen_already(k, near[p], rank, triangle, behind_rank[p], behind_triangle[p]), NO_KEY, k)
                best = old_keys[p]
                tied = ties[p]
                old_slot = old_slots[p]
                ties[p] = wp.where(k == best, 1, tied)
                new_keys[p] = wp.where(k > best, k, best)
                new_slots[p] = wp.where(k > best, slot, old_slot)
            keys[block] = new_keys
            slots[block] = new_slots
    tie = wp.int32(0)
    for p in range(16):
        tie |= ties[p]
    return tie != 0


@wp.func
def settle(
    f: wp.vec3f,
    g: wp.vec3f,
    h: wp.vec3f,
    key: wp.vec3f,
    slot: wp.int32,
    rank: wp.int32,
    slot_triangle: wp.array[wp.int32],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    ranks: wp.array[vec16i],
    peel: wp.bool,
    behind_ranks: wp.array[vec16i],
    behind_triangles: wp.array[vec16i],
):
    """Where a triangle is exactly as near as what is there, the lower instance rank wins, then the lower triangle; rarely needed.
    ``slots`` are those of the triangle's own instance, -1 where another one, of ``ranks``, or none is seen."""
    for block in range(8):
        left, top = float((block % BLOCKS_X) * 4), float((block // BLOCKS_X) * 4)
        near = near_keys[block]
        best = keys[block]
        seen = slots[block]
        other = ranks[block]
        behind_rank = behind_ranks[block]
        behind_triangle = behind_triangles[block]
        for p in range(16):
            k = candidate(f, g, h, key, near[p], left + float(p & 3), top + float(p >> 2))
            if peel:
                k = wp.where(is_seen_already(k, near[p], rank, slot_triangle[slot], behind_rank[p], behind_triangle[p]), NO_KEY, k)
            if k == best[p]:
                wins = rank < other[p]
                if seen[p] >= 0:
                    wins = slot_triangle[slot] < slot_triangle[seen[p]]
                if wins:
                    slots[block][p] = slot


@wp.func
def trace_leaf(
    leaf_vertices: wp.array[vec16f],
    slot_triangle: wp.array[wp.int32],
    leaf: wp.int32,
    used: wp.int32,
    rays: TileRays,
    screen: Screen,
    key_floor: wp.float32,
    rank: wp.int32,
    single_sided: wp.bool,
    affine: wp.bool,
    orthographic: wp.bool,
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    ranks: wp.array[vec16i],
    peel: wp.bool,
    behind_ranks: wp.array[vec16i],
    behind_triangles: wp.array[vec16i],
) -> wp.bool:
    """The triangles of a leaf against the tile: 16 are set up and most of them dismissed side by side, what remains is drawn one by one.
    False if no pixel can have changed."""
    row = 9 * leaf
    ax = leaf_vertices[row]
    ay = leaf_vertices[row + 1]
    az = leaf_vertices[row + 2]
    bx = leaf_vertices[row + 3]
    by = leaf_vertices[row + 4]
    bz = leaf_vertices[row + 5]
    cx = leaf_vertices[row + 6]
    cy = leaf_vertices[row + 7]
    cz = leaf_vertices[row + 8]
    f0, f1, f2 = vec16f(), vec16f(), vec16f()
    g0, g1, g2 = vec16f(), vec16f(), vec16f()
    h0, h1, h2 = vec16f(), vec16f(), vec16f()
    k0, k1, k2 = vec16f(), vec16f(), vec16f()
    from_x, to_x, from_y, to_y = vec16i(), vec16i(), vec16i(), vec16i()
    for lane in range(16):
        a = wp.vec3f(ax[lane], ay[lane], az[lane]) - rays.origin
        b = wp.vec3f(bx[lane], by[lane], bz[lane]) - rays.origin
        c = wp.vec3f(cx[lane], cy[lane], cz[lane]) - rays.origin
        normal = wp.cross(b - a, c - a)
        distance = wp.dot(normal, a)
        facing = wp.dot(normal, rays.direction)
        side = distance  # > 0: the rays see the back
        if affine:
            side = wp.where(orthographic, facing, distance)
        sign = wp.where(side < 0.0, -1.0, 1.0)
        f = edge_function(a, b, sign, rays, affine)
        g = edge_function(b, c, sign, rays, affine)
        h = edge_function(c, a, sign, rays, affine)
        key = key_function(normal, distance, facing, rays, affine, orthographic)
        wa = wp.dot(screen.depth, a)
        wb = wp.dot(screen.depth, b)
        wc = wp.dot(screen.depth, c)
        if affine:
            wa, wb, wc = wa + screen.constant, wb + screen.constant, wc + screen.constant
        ra, rb, rc = 1.0 / wa, 1.0 / wb, 1.0 / wc
        xa, xb, xc = wp.dot(screen.across, a) * ra, wp.dot(screen.across, b) * rb, wp.dot(screen.across, c) * rc
        ya, yb, yc = wp.dot(screen.down, a) * ra, wp.dot(screen.down, b) * rb, wp.dot(screen.down, c) * rc
        x0 = wp.ceil(smallest(xa, xb, xc) - screen.margin)
        x1 = wp.floor(greatest(xa, xb, xc) + screen.margin)
        y0 = wp.ceil(smallest(ya, yb, yc) - screen.margin)
        y1 = wp.floor(greatest(ya, yb, yc) + screen.margin)
        # A triangle that reaches behind the camera has no box on the screen.
        crosses = not (smallest(wa, wb, wc) > 1.0e-4 * greatest(wa, wb, wc))
        x0 = wp.where(crosses or x0 < 0.0, 0.0, x0)
        y0 = wp.where(crosses or y0 < 0.0, 0.0, y0)
        x1 = wp.where(crosses or x1 > LAST_X, LAST_X, x1)
        y1 = wp.where(crosses or y1 > LAST_Y, LAST_Y, y1)
        key_top = highest(key)
        useful = wp.abs(1.0 / side) < 1.0e37 and wp.abs(side) < 1.0e37  # neither degenerate nor overflowing nor NaN
        useful = useful and highest(f) >= 0.0 and highest(g) >= 0.0 and highest(h) >= 0.0
        useful = useful and key_top + 1.0e-6 * wp.abs(key_top) >= key_floor
        useful = useful and x0 <= x1 and y0 <= y1
        useful = useful and not (single_sided and side > 0.0)
        # Most of the tiny triangles fall between the pixels: look at all four where there are no more.
        a00 = inside_of(f, g, h, x0, y0)
        a10 = inside_of(f, g, h, x1, y0)
        a01 = inside_of(f, g, h, x0, y1)
        a11 = inside_of(f, g, h, x1, y1)
        deepest = greatest(wp.where(a00 > a10, a00, a10), a01, a11)
        useful = useful and (deepest >= 0.0 or x1 - x0 > 1.0 or y1 - y0 > 1.0)
        f0[lane] = f[0]
        f1[lane] = f[1]
        f2[lane] = f[2]
        g0[lane] = g[0]
        g1[lane] = g[1]
        g2[lane] = g[2]
        h0[lane] = h[0]
        h1[lane] = h[1]
        h2[lane] = h[2]
        k0[lane] = key[0]
        k1[lane] = key[1]
        k2[lane] = key[2]
        from_x[lane] = wp.where(useful, int(x0), DISMISSED)
        to_x[lane] = int(x1)
        from_y[lane] = int(y0)
        to_y[lane] = int(y1)
    changed = wp.bool(False)
    for i in range(used):
        lane = i & 15
        if from_x[lane] != DISMISSED:
            f = wp.vec3f(f0[lane], f1[lane], f2[lane])
            g = wp.vec3f(g0[lane], g1[lane], g2[lane])
            h = wp.vec3f(h0[lane], h1[lane], h2[lane])
            key = wp.vec3f(k0[lane], k1[lane], k2[lane])
            box = wp.vec4i(from_x[lane], to_x[lane], from_y[lane], to_y[lane])
            slot = 16 * leaf + lane
            triangle = wp.int32(0)
            if peel:
                triangle = slot_triangle[slot]
            if cover(f, g, h, key, box, slot, rank, triangle, near_keys, keys, slots, peel, behind_ranks, behind_triangles):
                settle(f, g, h, key, slot, rank, slot_triangle, near_keys, keys, slots, ranks, peel, behind_ranks, behind_triangles)
            changed = True
    return changed
