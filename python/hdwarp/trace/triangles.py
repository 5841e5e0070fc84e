"""trace.triangles: the triangles of a leaf against a tile: set up 16 at a time, then cover 16 pixels at a time. Warp functions only.

Everything about a triangle is affine over the tile: f(x, y) = f[0] + f[1] x + f[2] y. Three edge functions say whether a pixel is inside
(all >= 0), the key says how near (1/t, or -t in orthographic views: the larger the nearer). An edge function changes its sign, and nothing
else, when the neighbour walks the edge the other way: no pixel falls between two triangles.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import vec16f
from hdwarp.trace.rays import LAST_X, LAST_Y, Screen, TileRays

BLOCKS_X = wp.constant(4)  # a tile is 4 x 2 blocks of 4 x 4 pixels; pixel arrays hold block after block
COEFFICIENTS = wp.constant(17)
OUTSIDE = wp.constant(1.0e9)  # a pixel no tile has


@wp.func
def load_corner(leaf_vertices: wp.array[vec16f], row: wp.int32, lane: wp.int32, origin: wp.vec3f) -> wp.vec3f:
    return wp.vec3f(
        leaf_vertices[row][lane] - origin[0], leaf_vertices[row + 1][lane] - origin[1], leaf_vertices[row + 2][lane] - origin[2]
    )


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
def highest(f: wp.vec3f) -> wp.float32:
    """The largest value over the pixels of a tile, rounded as at the pixel where it is taken."""
    return f[0] + f[1] * wp.where(f[1] > 0.0, LAST_X, 0.0) + f[2] * wp.where(f[2] > 0.0, LAST_Y, 0.0)


@wp.func
def smallest(a: wp.float32, b: wp.float32, c: wp.float32) -> wp.float32:
    ab = wp.where(b < a, b, a)
    return wp.where(c < ab, c, ab)


@wp.func
def greatest(a: wp.float32, b: wp.float32, c: wp.float32) -> wp.float32:
    ab = wp.where(b > a, b, a)
    return wp.where(c > ab, c, ab)


@wp.func
def set_up_leaf(
    leaf_vertices: wp.array[vec16f],
    leaf: wp.int32,
    rays: TileRays,
    screen: Screen,
    key_floor: wp.float32,
    single_sided: wp.bool,
    affine: wp.bool,
    orthographic: wp.bool,
    coefficients: wp.array[vec16f],
):
    """Coefficients of 16 triangles, a lane a triangle: rows 0..2, 3..5, 6..8 the edges, 9..11 the key, 12..15 the pixels its box covers
    (x from, x to, y from, y to). Lanes that cannot change a pixel of the tile get an empty box."""
    row = 9 * leaf
    for lane in range(16):
        a = load_corner(leaf_vertices, row, lane, rays.origin)
        b = load_corner(leaf_vertices, row + 3, lane, rays.origin)
        c = load_corner(leaf_vertices, row + 6, lane, rays.origin)
        normal = wp.cross(b - a, c - a)
        distance = wp.dot(normal, a)
        facing = wp.dot(normal, rays.direction)
        side = distance  # > 0: the rays see the back
        divisor = distance
        if affine:
            side = wp.where(orthographic, facing, distance)
            divisor = wp.where(orthographic, facing, distance)
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
        useful = wp.abs(1.0 / divisor) < 1.0e37 and wp.abs(divisor) < 1.0e37  # neither degenerate nor overflowing nor NaN
        useful = useful and highest(f) >= 0.0 and highest(g) >= 0.0 and highest(h) >= 0.0
        useful = useful and key_top + 1.0e-6 * wp.abs(key_top) >= key_floor
        useful = useful and x0 <= x1 and y0 <= y1
        useful = useful and not (single_sided and side > 0.0)
        coefficients[0][lane] = f[0]
        coefficients[1][lane] = f[1]
        coefficients[2][lane] = f[2]
        coefficients[3][lane] = g[0]
        coefficients[4][lane] = g[1]
        coefficients[5][lane] = g[2]
        coefficients[6][lane] = h[0]
        coefficients[7][lane] = h[1]
        coefficients[8][lane] = h[2]
        coefficients[9][lane] = key[0]
        coefficients[10][lane] = key[1]
        coefficients[11][lane] = key[2]
        coefficients[12][lane] = wp.where(useful, x0, OUTSIDE)
        coefficients[13][lane] = x1
        coefficients[14][lane] = y0
        coefficients[15][lane] = y1


@wp.func
def cover(
    coefficients: wp.array[vec16f],
    lane: wp.int32,
    slot: wp.int32,
    triangle: wp.int32,
    near_key: wp.array[wp.float32],
    keys: wp.array[wp.float32],
    slots: wp.array[wp.int32],
    limits: wp.array[wp.int32],
):
    """Let one triangle of a leaf win the pixels of the tile where it is the nearest. Of equal keys the lower triangle wins:
    ``limits`` holds, a pixel, below which number a triangle of this instance does."""
    f0 = coefficients[0][lane]
    f1 = coefficients[1][lane]
    f2 = coefficients[2][lane]
    g0 = coefficients[3][lane]
    g1 = coefficients[4][lane]
    g2 = coefficients[5][lane]
    h0 = coefficients[6][lane]
    h1 = coefficients[7][lane]
    h2 = coefficients[8][lane]
    k0 = coefficients[9][lane]
    k1 = coefficients[10][lane]
    k2 = coefficients[11][lane]
    first_x, last_x = int(coefficients[12][lane]) // 4, int(coefficients[13][lane]) // 4
    first_y, last_y = int(coefficients[14][lane]) // 4, int(coefficients[15][lane]) // 4
    for block_y in range(first_y, last_y + 1):
        for block_x in range(first_x, last_x + 1):
            base = (block_y * BLOCKS_X + block_x) * 16
            left, top = float(block_x * 4), float(block_y * 4)
            for p in range(16):
                x = left + float(p & 3)
                y = top + float(p >> 2)
                inside = smallest(f0 + f1 * x + f2 * y, g0 + g1 * x + g2 * y, h0 + h1 * x + h2 * y)
                key = k0 + k1 * x + k2 * y
                best = keys[base + p]
                nearer = key > best or (key == best and triangle < limits[base + p])
                wins = inside >= 0.0 and key <= near_key[base + p] and nearer
                keys[base + p] = wp.where(wins, key, best)
                slots[base + p] = wp.where(wins, slot, slots[base + p])
                limits[base + p] = wp.where(wins, triangle, limits[base + p])
