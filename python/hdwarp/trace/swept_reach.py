"""trace.swept_reach: which rays of a packet may meet a point or a piece of a curve: pixels of the tile, and t. Warp functions only."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import RIBBON_LANES, RIBBON_POINTS, TUBE_LANES, TUBE_POINTS, TUBES, MeshColumns, vec16f
from hdwarp.trace.instances import NO_CHILD
from hdwarp.trace.pixels import depth_of
from hdwarp.trace.rays import LAST_X, LAST_Y, Frustum, Screen
from hdwarp.trace.swept import leaf_number, leaf_point


@wp.struct
class Reach:
    """Where the rays that meet a ball, or several, may be: pixels of the tile, and t."""

    x0: wp.float32
    x1: wp.float32
    y0: wp.float32
    y1: wp.float32
    near: wp.float32
    far: wp.float32


@wp.func
def ball_reach(screen: Screen, centre: wp.vec3f, radius: wp.float32) -> Reach:
    """A bit more than where the rays are that meet a ball; ``centre`` relative to the rays' origin."""
    depth = wp.dot(screen.depth, centre) + screen.constant
    width = radius * wp.sqrt(wp.dot(screen.depth, screen.depth))
    least = depth - width
    scale = 1.0 / depth
    x, y = wp.dot(screen.across, centre) * scale, wp.dot(screen.down, centre) * scale
    to_x, to_y = screen.across - screen.depth * x, screen.down - screen.depth * y
    room = radius / least
    dx, dy = room * wp.sqrt(wp.dot(to_x, to_x)) + screen.margin, room * wp.sqrt(wp.dot(to_y, to_y)) + screen.margin
    in_front = least > 1.0e-4 * (depth + width)  # else it reaches behind the camera, and has no box on the screen
    t = wp.dot(screen.ahead, centre)
    extent = radius * wp.sqrt(wp.dot(screen.ahead, screen.ahead)) + 1.0e-6 * wp.abs(t)
    reach = Reach()
    reach.x0 = wp.where(in_front, x - dx, 0.0)
    reach.x1 = wp.where(in_front, x + dx, LAST_X)
    reach.y0 = wp.where(in_front, y - dy, 0.0)
    reach.y1 = wp.where(in_front, y + dy, LAST_Y)
    reach.near = t - extent
    reach.far = t + extent
    return reach


@wp.func
def joined_reach(a: Reach, b: Reach) -> Reach:
    reach = Reach()
    reach.x0 = wp.min(a.x0, b.x0)
    reach.x1 = wp.max(a.x1, b.x1)
    reach.y0 = wp.min(a.y0, b.y0)
    reach.y1 = wp.max(a.y1, b.y1)
    reach.near = wp.min(a.near, b.near)
    reach.far = wp.max(a.far, b.far)
    return reach


@wp.func
def item_reach(kind: wp.int32, vertices: wp.array[vec16f], leaf: wp.int32, lane: wp.int32, origin: wp.vec3f, screen: Screen) -> Reach:
    """Of a piece of a curve: of its control points."""
    lanes, points, stride = wp.int32(TUBE_LANES), wp.int32(TUBE_POINTS), wp.int32(4)
    if kind != TUBES:
        lanes, points, stride = wp.int32(RIBBON_LANES), wp.int32(RIBBON_POINTS), wp.int32(3)
    reach = Reach()
    for i in range(points):
        radius = wp.float32(0.0)
        if kind == TUBES:
            radius = leaf_number(vertices, leaf, stride * i + 3, lanes, lane)
        here = ball_reach(screen, leaf_point(vertices, leaf, stride * i, lanes, lane) - origin, radius)
        if i == 0:
            reach = here
        else:
            reach = joined_reach(reach, here)
    return reach


@wp.func
def may_meet(reach: Reach, near: wp.float32, far: wp.float32) -> wp.bool:
    on_screen = reach.x1 >= 0.0 and reach.x0 <= LAST_X and reach.y1 >= 0.0 and reach.y0 <= LAST_Y
    return on_screen and reach.far >= near and reach.near <= far


@wp.func
def blocks_met(reach: Reach, blocks: wp.int32, bounds: wp.array[wp.vec4f]) -> wp.int32:
    """A bit for every block that has rays there."""
    mask = wp.int32(0)
    for block in range(blocks):
        b = bounds[block]
        if reach.x0 <= b[1] and reach.x1 >= b[0] and reach.y0 <= b[3] and reach.y1 >= b[2]:
            mask |= 1 << block
    return mask


@wp.func
def first_near_end(near_keys: wp.array[vec16f], blocks: wp.int32, orthographic: wp.bool) -> wp.float32:
    """The farthest of the near ends of a packet's rays: t before which some ray may see nothing."""
    low = vec16f(wp.inf)
    for block in range(blocks):
        key = near_keys[block]
        for p in range(16):
            counts = (orthographic or key[p] > 0.0) and key[p] < low[p]
            low[p] = wp.where(counts, key[p], low[p])
    lowest = low[0]
    for p in range(1, 16):
        lowest = wp.where(low[p] < lowest, low[p], lowest)
    return depth_of(lowest, orthographic)


@wp.func
def root_depth(meshes: MeshColumns, root: wp.int32, frustum: Frustum) -> wp.float32:
    """t before which there is nothing of a tree."""
    x = meshes.nodes[6 * root + frustum.nearest_corner[0]]
    y = meshes.nodes[6 * root + frustum.nearest_corner[1]]
    z = meshes.nodes[6 * root + frustum.nearest_corner[2]]
    depth = wp.float32(wp.inf)
    for c in range(8):
        if meshes.children[root][c] != NO_CHILD:
            depth = wp.min(depth, wp.dot(wp.vec3f(x[c], y[c], z[c]), frustum.ahead) - frustum.ahead_offset)
    return depth


@wp.func
def tile_places(blocks_x: wp.int32, blocks: wp.int32, xs: wp.array[vec16f], ys: wp.array[vec16f], bounds: wp.array[wp.vec4f]):
    """Where the pixels of a tile are: blocks of 4 x 4, ``blocks_x`` side by side."""
    for block in range(blocks):
        left, top = float((block % blocks_x) * 4), float((block // blocks_x) * 4)
        x, y = vec16f(), vec16f()
        for p in range(16):
            x[p] = left + float(p & 3)
            y[p] = top + float(p >> 2)
        xs[block] = x
        ys[block] = y
        bounds[block] = wp.vec4f(left, left + 3.0, top, top + 3.0)
