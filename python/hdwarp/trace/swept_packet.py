"""trace.swept_packet: points and curves against the rays of a packet, 16 side by side: of a tile, or of a bundle. Warp functions only.

``blocks`` blocks of 16 rays lie anywhere in a tile: ray p of a block at (xs[block][p], ys[block][p]), ``bounds`` says where a block's are.
What follows of their arguments is as in `trace.pixels`. One item of a leaf is taken at a time, those that no ray can meet left out.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import POINTS, TUBES, MeshColumns, vec16f
from hdwarp.trace.instances import NO_CHILD, ObjectFrame, mesh_reach, prefetch_leaf, prefetch_node
from hdwarp.trace.layers import is_seen_already
from hdwarp.trace.nodes import push_children
from hdwarp.trace.pixels import depth_of, key_of, vec16i
from hdwarp.trace.rays import LAST_X, LAST_Y, Frustum, Screen, TileRays, frustum_of, place, screen_of
from hdwarp.trace.shapes import MISS
from hdwarp.trace.swept import (
    BALL,
    CAPPED_END,
    CAPPED_START,
    NOWHERE,
    POINT_LANES,
    RIBBON_LANES,
    RIBBON_PARTS,
    RIM,
    SETTLED,
    STEPS,
    STRAIGHT,
    STRAY,
    TUBE_LANES,
    Tube,
    ball_interval,
    cap_interval,
    leaf_number,
    leaf_point,
    part_start,
    ribbon_crossing,
    ribbon_facing,
    ribbon_of,
    ribbon_root,
    ribbon_side,
    tube_of,
    tube_step,
)
from hdwarp.trace.triangles import NO_KEY


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
    lanes, points, stride = wp.int32(TUBE_LANES), wp.int32(4), wp.int32(4)
    if kind != TUBES:
        lanes, points, stride = wp.int32(RIBBON_LANES), wp.int32(8), wp.int32(3)
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
def ray_origin(rays: TileRays, x: wp.float32, y: wp.float32, affine: wp.bool) -> wp.vec3f:
    """Origin of a ray relative to that of the tile's first."""
    origin = wp.vec3f()
    if affine:
        origin = rays.origin_dx * x + rays.origin_dy * y
    return origin


@wp.func
def direction_at(rays: TileRays, x: wp.float32, y: wp.float32) -> wp.vec3f:
    return rays.direction + rays.direction_dx * x + rays.direction_dy * y


@wp.func
def cross_balls(centre: wp.vec3f, radius: wp.float32, rays: TileRays, x: vec16f, y: vec16f, affine: wp.bool, side: wp.float32) -> vec16f:
    """t where 16 rays enter (``side`` -1) or leave (1) a ball; ``side`` * -NOWHERE where they pass by."""
    t = vec16f()
    for p in range(16):
        interval = ball_interval(centre - ray_origin(rays, x[p], y[p], affine), radius, direction_at(rays, x[p], y[p]))
        t[p] = wp.where(side < 0.0, interval[0], interval[1])
    return t


@wp.func
def cross_tube(tube: Tube, rays: TileRays, x: vec16f, y: vec16f, affine: wp.bool, side: wp.float32) -> vec16f:
    """The same for a piece of a tube, its ends included."""
    if (tube.flags & BALL) != 0:
        return cross_balls(tube.a, tube.r[0], rays, x, y, affine, side)
    t, u, moved, inside = vec16f(), vec16f(0.5), vec16f(), vec16f()
    unsettled = vec16i()
    step = wp.int32(0)
    while step < STEPS:
        for p in range(16):
            crossing = tube_step(tube, ray_origin(rays, x[p], y[p], affine), direction_at(rays, x[p], y[p]), u[p], side)
            t[p] = crossing.t
            u[p] = crossing.u
            moved[p] = crossing.moved
            inside[p] = crossing.inside
            unsettled[p] = wp.where(crossing.moved >= SETTLED and crossing.u > -0.05 and crossing.u < 1.05, 1, 0)
        step += 1
        if (tube.flags & STRAIGHT) != 0:
            moved = vec16f(0.0)
            step = STEPS
        if step >= 2:
            more = wp.int32(0)
            for p in range(16):
                more |= unsettled[p]
            if more == 0:
                step = STEPS
    for p in range(16):
        met = inside[p] >= 0.0 and moved[p] < STRAY and u[p] >= -RIM and u[p] <= 1.0 + RIM
        t[p] = wp.where(met, t[p], -side * NOWHERE)
    for which in range(2):
        if (tube.flags & wp.where(which == 0, CAPPED_START, CAPPED_END)) != 0:
            for p in range(16):
                cap = cap_interval(tube, which == 1, ray_origin(rays, x[p], y[p], affine), direction_at(rays, x[p], y[p]))
                if side < 0.0:
                    t[p] = wp.where(cap[0] < t[p], cap[0], t[p])
                else:
                    t[p] = wp.where(cap[1] > t[p], cap[1], t[p])
    return t


@wp.func
def ribbon_keys(
    vertices: wp.array[vec16f],
    leaf: wp.int32,
    lane: wp.int32,
    rays: TileRays,
    x: vec16f,
    y: vec16f,
    near: vec16f,
    affine: wp.bool,
    orthographic: wp.bool,
    single_sided: wp.bool,
) -> vec16f:
    """Keys of 16 rays where they meet a ribbon, in any part of it; NO_KEY where they do not, or before the near end."""
    ribbon = ribbon_of(vertices, leaf, lane, rays.origin)
    best, sides = vec16f(NO_KEY), vec16f()
    for p in range(16):
        sides[p] = ribbon_side(ribbon, ray_origin(rays, x[p], y[p], affine), direction_at(rays, x[p], y[p]), part_start(0))
    for part in range(RIBBON_PARTS):
        low, high = part_start(part), part_start(part + 1)
        met = wp.int32(0)
        for p in range(16):
            side = ribbon_side(ribbon, ray_origin(rays, x[p], y[p], affine), direction_at(rays, x[p], y[p]), high)
            met |= wp.where(side * sides[p] <= 0.0, 1, 0)
            sides[p] = side
        if met != 0:
            for p in range(16):
                origin, direction = ray_origin(rays, x[p], y[p], affine), direction_at(rays, x[p], y[p])
                u = ribbon_root(ribbon, origin, direction, low, high)
                t = ribbon_crossing(ribbon, origin, direction, u)
                key = key_of(t + rays.shift, orthographic)
                counts = t < NOWHERE and (orthographic or t > 0.0) and key <= near[p]
                counts = counts and not (single_sided and ribbon_facing(ribbon, direction, u) > 0.0)
                best[p] = wp.where(counts and key > best[p], key, best[p])
    return best


@wp.func
def trace_swept_item(
    kind: wp.int32,
    meshes: MeshColumns,
    leaf: wp.int32,
    lane: wp.int32,
    mask: wp.int32,
    deep: wp.bool,
    rays: TileRays,
    rank: wp.int32,
    single_sided: wp.bool,
    affine: wp.bool,
    orthographic: wp.bool,
    any_hit: wp.bool,
    blocks: wp.int32,
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    ranks: wp.array[vec16i],
    peel: wp.bool,
    behind_ranks: wp.array[vec16i],
    behind_triangles: wp.array[vec16i],
):
    """Let an item win the rays of the blocks of ``mask`` where it is the nearest. ``deep``: it may reach before the near end, and be seen
    from within."""
    slot = 16 * leaf + lane
    number = meshes.slot_triangle[slot]
    tube = Tube()
    centre, radius = wp.vec3f(), wp.float32(0.0)
    if kind == POINTS:
        centre = leaf_point(meshes.leaf_vertices, leaf, 0, POINT_LANES, lane) - rays.origin
        radius = leaf_number(meshes.leaf_vertices, leaf, 3, POINT_LANES, lane)
    elif kind == TUBES:
        tube = tube_of(meshes.leaf_vertices, leaf, lane, rays.origin)
    for block in range(blocks):
        if ((mask >> block) & 1) != 0:
            x = xs[block]
            y = ys[block]
            near = near_keys[block]
            k = vec16f(NO_KEY)
            if kind == POINTS or kind == TUBES:
                t = vec16f()
                if kind == POINTS:
                    t = cross_balls(centre, radius, rays, x, y, affine, -1.0)
                else:
                    t = cross_tube(tube, rays, x, y, affine, -1.0)
                missed = wp.int32(0)
                for p in range(16):
                    key = key_of(t[p] + rays.shift, orthographic)
                    counts = t[p] < NOWHERE and (orthographic or t[p] > 0.0) and key <= near[p]
                    if peel:
                        seen = is_seen_already(key, near[p], rank, number, behind_ranks[block][p], behind_triangles[block][p])
                        counts = counts and not seen
                    k[p] = wp.where(counts, key, NO_KEY)
                    missed |= wp.where(counts, 0, 1)
                if deep and missed != 0 and not single_sided:
                    if kind == POINTS:
                        t = cross_balls(centre, radius, rays, x, y, affine, 1.0)
                    else:
                        t = cross_tube(tube, rays, x, y, affine, 1.0)
                    for p in range(16):
                        key = key_of(t[p] + rays.shift, orthographic)
                        counts = t[p] > -NOWHERE and (orthographic or t[p] > 0.0) and key <= near[p]
                        if peel:
                            seen = is_seen_already(key, near[p], rank, number, behind_ranks[block][p], behind_triangles[block][p])
                            counts = counts and not seen
                        k[p] = wp.where(counts and k[p] == NO_KEY, key, k[p])
            else:
                k = ribbon_keys(meshes.leaf_vertices, leaf, lane, rays, x, y, near, affine, orthographic, single_sided)
                if peel:
                    for p in range(16):
                        seen = is_seen_already(k[p], near[p], rank, number, behind_ranks[block][p], behind_triangles[block][p])
                        k[p] = wp.where(seen, NO_KEY, k[p])
            best = keys[block]
            mine = slots[block]
            ties = wp.int32(0)
            for p in range(16):
                old = best[p]
                ties |= wp.where(k[p] == old, 1, 0)
                wins = k[p] > old
                if any_hit:
                    wins = k[p] >= old and k[p] > NO_KEY
                best[p] = wp.where(wins, wp.where(any_hit, wp.inf, k[p]), old)
                mine[p] = wp.where(wins, slot, mine[p])
            if ties != 0 and not any_hit:  # exactly as near: the lower rank wins, then the lower item
                for p in range(16):
                    if k[p] == keys[block][p] and k[p] > NO_KEY:
                        wins = rank < ranks[block][p]
                        if mine[p] >= 0:
                            wins = number < meshes.slot_triangle[mine[p]]
                        if wins:
                            mine[p] = slot
            keys[block] = best
            slots[block] = mine


@wp.func
def trace_swept_leaf(
    kind: wp.int32,
    meshes: MeshColumns,
    leaf: wp.int32,
    rays: TileRays,
    screen: Screen,
    near: wp.float32,
    far: wp.float32,
    first_near: wp.float32,
    rank: wp.int32,
    single_sided: wp.bool,
    affine: wp.bool,
    orthographic: wp.bool,
    any_hit: wp.bool,
    blocks: wp.int32,
    bounds: wp.array[wp.vec4f],
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    ranks: wp.array[vec16i],
    peel: wp.bool,
    behind_ranks: wp.array[vec16i],
    behind_triangles: wp.array[vec16i],
) -> wp.bool:
    """The items of a leaf against the packet. ``first_near``: balls that reach before it may be seen from within; infinite: all items may.
    False if none can be met."""
    masks, deeps = vec16i(), vec16i()
    used = meshes.leaf_count[leaf]
    if kind == POINTS:
        row = 9 * leaf
        px = meshes.leaf_vertices[row]
        py = meshes.leaf_vertices[row + 1]
        pz = meshes.leaf_vertices[row + 2]
        radii = meshes.leaf_vertices[row + 3]
        x0, x1, y0, y1 = vec16f(), vec16f(), vec16f(), vec16f()
        for lane in range(16):
            reach = ball_reach(screen, wp.vec3f(px[lane], py[lane], pz[lane]) - rays.origin, radii[lane])
            # Most of the tiny balls fall between the pixels of a tile: those of a bundle may lie anywhere.
            masks[lane] = wp.where(may_meet(reach, near, far) and lane < used, 1, 0)
            deeps[lane] = wp.where(reach.near <= first_near, 1, 0)
            x0[lane] = reach.x0
            x1[lane] = reach.x1
            y0[lane] = reach.y0
            y1[lane] = reach.y1
        for i in range(used):
            lane = i & 15
            if masks[lane] != 0:
                reach = Reach()
                reach.x0 = x0[lane]
                reach.x1 = x1[lane]
                reach.y0 = y0[lane]
                reach.y1 = y1[lane]
                masks[lane] = blocks_met(reach, blocks, bounds)
    else:
        for i in range(used):
            lane = i & 15
            reach = item_reach(kind, meshes.leaf_vertices, leaf, lane, rays.origin, screen)
            if may_meet(reach, near, far):
                masks[lane] = blocks_met(reach, blocks, bounds)
                deeps[lane] = wp.where(first_near == wp.inf, 1, 0)
    changed = wp.bool(False)
    for i in range(used):
        lane = i & 15
        if masks[lane] != 0:
            trace_swept_item(
                kind,
                meshes,
                leaf,
                lane,
                masks[lane],
                deeps[lane] != 0,
                rays,
                rank,
                single_sided,
                affine,
                orthographic,
                any_hit,
                blocks,
                xs,
                ys,
                near_keys,
                keys,
                slots,
                ranks,
                peel,
                behind_ranks,
                behind_triangles,
            )
            changed = True
    return changed


@wp.func
def lowest_of(keys: wp.array[vec16f], blocks: wp.int32) -> wp.float32:
    """The lowest key of a packet: where it sees farthest."""
    low = keys[0]
    for block in range(1, blocks):
        other = keys[block]
        for p in range(16):
            low[p] = wp.where(other[p] < low[p], other[p], low[p])
    lowest = low[0]
    for p in range(1, 16):
        lowest = wp.where(low[p] < lowest, low[p], lowest)
    return lowest


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
def trace_swept(
    kind: wp.int32,
    meshes: MeshColumns,
    mesh: wp.int32,
    frame: ObjectFrame,
    near: wp.float32,
    affine: wp.bool,
    orthographic: wp.bool,
    any_hit: wp.bool,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    floor: wp.int32,
    blocks: wp.int32,
    bounds: wp.array[wp.vec4f],
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
    mine: wp.array[vec16i],
    key_floor: wp.float32,
    peel: wp.bool,
    behind_ranks: wp.array[vec16i],
    behind_triangles: wp.array[vec16i],
) -> wp.float32:
    """The points or curves of one instance, by their tree. The stack is free from ``floor`` on. Returns the lowest key of the packet."""
    rays = frame.rays
    root = meshes.root[mesh]
    if root < 0:
        return key_floor
    reach = wp.float32(0.0)
    if affine and orthographic:
        reach = mesh_reach(meshes, root, rays.origin)
    screen = screen_of(rays, reach, affine, orthographic)
    frustum = place(frustum_of(screen), rays.origin)
    for block in range(blocks):
        mine[block] = vec16i(-1)
    first_near = first_near_end(near_keys, blocks, orthographic) - rays.shift
    if kind != POINTS:  # where a ray is within a tube, it leaves by another piece than it came in
        first_near = wp.where(root_depth(meshes, root, frustum) <= first_near, wp.inf, -wp.inf)
    near -= rays.shift
    far = depth_of(key_floor, orthographic) - rays.shift
    stack[floor] = root
    stack_depth[floor] = -MISS
    size = floor + 1
    touched = wp.bool(False)
    while size > floor:
        size -= 1
        node = stack[size]
        if stack_depth[size] <= far:
            following = stack[wp.max(size - 1, 0)]
            if following < 0:
                prefetch_leaf(meshes.leaf_vertices, -1 - following)
            else:
                prefetch_node(meshes.nodes, following)
            if node >= 0:
                size = push_children(meshes.nodes, meshes.children, node, frustum, near, far, stack, stack_depth, size)
            elif node != NO_CHILD:
                changed = trace_swept_leaf(
                    kind,
                    meshes,
                    -1 - node,
                    rays,
                    screen,
                    near,
                    far,
                    first_near,
                    frame.rank,
                    frame.single_sided,
                    affine,
                    orthographic,
                    any_hit,
                    blocks,
                    bounds,
                    xs,
                    ys,
                    near_keys,
                    keys,
                    mine,
                    ranks,
                    peel,
                    behind_ranks,
                    behind_triangles,
                )
                if changed:
                    touched = True
                    key_floor = lowest_of(keys, blocks)
                    far = depth_of(key_floor, orthographic) - rays.shift
                    if any_hit and key_floor == wp.inf:
                        size = floor
    if touched:
        for block in range(blocks):
            won = mine[block]
            slot = slots[block]
            owner = owners[block]
            rank = ranks[block]
            for p in range(16):
                slot[p] = wp.where(won[p] >= 0, won[p], slot[p])
                owner[p] = wp.where(won[p] >= 0, frame.row, owner[p])
                rank[p] = wp.where(won[p] >= 0, frame.rank, rank[p])
            slots[block] = slot
            owners[block] = owner
            ranks[block] = rank
    return key_floor


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
