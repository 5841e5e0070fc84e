"""trace.swept_packet: points and curves against the rays of a packet, 16 side by side: of a tile, or of a bundle. Warp functions only.

``blocks`` blocks of 16 rays lie anywhere in a tile: ray p of a block at (xs[block][p], ys[block][p]), ``bounds`` says where a block's are.
What follows of their arguments is as in `trace.pixels`. One item of a leaf is taken at a time, those that no ray can meet left out.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import POINT_LANES, POINTS, TUBES, MeshColumns, vec16f
from hdwarp.trace.instances import NO_CHILD, ObjectFrame, mesh_reach, prefetch_leaf, prefetch_node
from hdwarp.trace.layers import is_seen_already
from hdwarp.trace.nodes import push_children
from hdwarp.trace.pixels import depth_of, key_of, lowest_key, take_won, vec16i
from hdwarp.trace.rays import Screen, TileRays, frustum_of, place, screen_of
from hdwarp.trace.shapes import MISS
from hdwarp.trace.swept import NOWHERE, Tube, leaf_number, leaf_point, tube_of
from hdwarp.trace.swept_crossings import cross_balls, cross_tube, ribbon_keys
from hdwarp.trace.swept_reach import Reach, ball_reach, blocks_met, first_near_end, item_reach, may_meet, root_depth
from hdwarp.trace.triangles import NO_KEY


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
                    key_floor = lowest_key(keys, blocks)
                    far = depth_of(key_floor, orthographic) - rays.shift
                    if any_hit and key_floor == wp.inf:
                        size = floor
    if touched:
        take_won(frame.row, frame.rank, blocks, mine, slots, owners, ranks)
    return key_floor
