"""trace.free_triangles: triangles and shapes against a packet whose rays lie anywhere in its tile. Warp functions only.

A packet of rays from one point, or ``parallel`` ones, is a tile (see trace.rays) whose pixels lie anywhere: ray i at (x, y) in [0, 15] x
[0, 7]. All that is
affine over a tile stays affine, and cracks stay shut. Rays come in four blocks of 16.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import MeshColumns, vec16f
from hdwarp.trace.instances import NO_CHILD, ObjectFrame, mesh_reach, prefetch_leaf, prefetch_node
from hdwarp.trace.nodes import push_children
from hdwarp.trace.pixels import depth_of, key_of, lowest_key, take_won, vec16i
from hdwarp.trace.rays import LAST_X, LAST_Y, ExactRays, Screen, TileRays, exact_direction, exact_origin, frustum_of, place, screen_of
from hdwarp.trace.shapes import MISS, shape_interval
from hdwarp.trace.triangles import candidate, edge_function, greatest, highest, key_function, smallest

PACKET_BLOCKS = wp.constant(4)


@wp.func
def overlaps(bounds: wp.vec4f, x0: wp.float32, x1: wp.float32, y0: wp.float32, y1: wp.float32) -> wp.bool:
    return x0 <= bounds[1] and x1 >= bounds[0] and y0 <= bounds[3] and y1 >= bounds[2]


@wp.func
def cover_free(
    f: wp.vec3f,
    g: wp.vec3f,
    h: wp.vec3f,
    key: wp.vec3f,
    blocks: wp.int32,
    slot: wp.int32,
    any_hit: wp.bool,
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
) -> wp.bool:
    """Let a triangle win the rays where it is the nearest; ``blocks``: a bit for every block it may cover. True if anywhere it is as near
    as what is there: a tie for `settle_free`. ``any_hit``: a ray that hits is done, nothing is nearer."""
    ties = vec16i()
    for block in range(PACKET_BLOCKS):
        if ((blocks >> block) & 1) != 0:
            x = xs[block]
            y = ys[block]
            near = near_keys[block]
            old_keys = keys[block]
            old_slots = slots[block]
            new_keys = vec16f()
            new_slots = vec16i()
            for p in range(16):
                k = candidate(f, g, h, key, near[p], x[p], y[p])
                best = old_keys[p]
                old_slot = old_slots[p]
                tied = ties[p]
                ties[p] = wp.where(k == best, 1, tied)
                if any_hit:
                    new_keys[p] = wp.where(k >= best, wp.inf, best)
                    new_slots[p] = wp.where(k >= best, slot, old_slot)
                else:
                    new_keys[p] = wp.where(k > best, k, best)
                    new_slots[p] = wp.where(k > best, slot, old_slot)
            keys[block] = new_keys
            slots[block] = new_slots
    tie = wp.int32(0)
    for p in range(16):
        tie |= ties[p]
    return tie != 0 and not any_hit


@wp.func
def settle_free(
    f: wp.vec3f,
    g: wp.vec3f,
    h: wp.vec3f,
    key: wp.vec3f,
    slot: wp.int32,
    rank: wp.int32,
    slot_triangle: wp.array[wp.int32],
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    ranks: wp.array[vec16i],
):
    """Where a triangle is exactly as near as what is there, the lower instance rank wins, then the lower triangle; rarely needed.
    ``slots`` are those of the triangle's own instance, -1 where another one, of ``ranks``, or none is seen."""
    for block in range(PACKET_BLOCKS):
        x = xs[block]
        y = ys[block]
        near = near_keys[block]
        best = keys[block]
        seen = slots[block]
        other = ranks[block]
        for p in range(16):
            if candidate(f, g, h, key, near[p], x[p], y[p]) == best[p]:
                wins = rank < other[p]
                if seen[p] >= 0:
                    wins = slot_triangle[slot] < slot_triangle[seen[p]]
                if wins:
                    slots[block][p] = slot


@wp.func
def trace_leaf_free(
    leaf_vertices: wp.array[vec16f],
    slot_triangle: wp.array[wp.int32],
    leaf: wp.int32,
    used: wp.int32,
    rays: TileRays,
    screen: Screen,
    key_floor: wp.float32,
    rank: wp.int32,
    single_sided: wp.bool,
    parallel: wp.bool,
    any_hit: wp.bool,
    bounds: wp.array[wp.vec4f],
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    ranks: wp.array[vec16i],
) -> wp.bool:
    """The triangles of a leaf against the packet: 16 are set up and most of them dismissed side by side, what remains is drawn one by one.
    ``bounds``: x from, to, y from, to of each block's rays. False if no ray can have changed."""
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
    bounds_0 = bounds[0]
    bounds_1 = bounds[1]
    bounds_2 = bounds[2]
    bounds_3 = bounds[3]
    f0, f1, f2 = vec16f(), vec16f(), vec16f()
    g0, g1, g2 = vec16f(), vec16f(), vec16f()
    h0, h1, h2 = vec16f(), vec16f(), vec16f()
    k0, k1, k2 = vec16f(), vec16f(), vec16f()
    blocks = vec16i()
    for lane in range(16):
        a = wp.vec3f(ax[lane], ay[lane], az[lane]) - rays.origin
        b = wp.vec3f(bx[lane], by[lane], bz[lane]) - rays.origin
        c = wp.vec3f(cx[lane], cy[lane], cz[lane]) - rays.origin
        normal = wp.cross(b - a, c - a)
        distance = wp.dot(normal, a)
        facing = wp.dot(normal, rays.direction)
        side = wp.where(parallel, facing, distance)  # > 0: the rays see the back
        sign = wp.where(side < 0.0, -1.0, 1.0)
        f = edge_function(a, b, sign, rays, parallel)
        g = edge_function(b, c, sign, rays, parallel)
        h = edge_function(c, a, sign, rays, parallel)
        key = key_function(normal, distance, facing, rays, parallel, parallel)
        wa = wp.dot(screen.depth, a)
        wb = wp.dot(screen.depth, b)
        wc = wp.dot(screen.depth, c)
        if parallel:
            wa, wb, wc = wa + screen.constant, wb + screen.constant, wc + screen.constant  # nothing but it
        ra, rb, rc = 1.0 / wa, 1.0 / wb, 1.0 / wc
        xa, xb, xc = wp.dot(screen.across, a) * ra, wp.dot(screen.across, b) * rb, wp.dot(screen.across, c) * rc
        ya, yb, yc = wp.dot(screen.down, a) * ra, wp.dot(screen.down, b) * rb, wp.dot(screen.down, c) * rc
        # A triangle that reaches behind the plane through the origin has no box on the screen.
        crosses = not (smallest(wa, wb, wc) > 1.0e-4 * greatest(wa, wb, wc))
        x0 = wp.where(crosses, 0.0, smallest(xa, xb, xc) - screen.margin)
        x1 = wp.where(crosses, LAST_X, greatest(xa, xb, xc) + screen.margin)
        y0 = wp.where(crosses, 0.0, smallest(ya, yb, yc) - screen.margin)
        y1 = wp.where(crosses, LAST_Y, greatest(ya, yb, yc) + screen.margin)
        mask = wp.where(overlaps(bounds_0, x0, x1, y0, y1), 1, 0)
        mask += wp.where(overlaps(bounds_1, x0, x1, y0, y1), 2, 0)
        mask += wp.where(overlaps(bounds_2, x0, x1, y0, y1), 4, 0)
        mask += wp.where(overlaps(bounds_3, x0, x1, y0, y1), 8, 0)
        key_top = highest(key)
        useful = wp.abs(1.0 / side) < 1.0e37 and wp.abs(side) < 1.0e37  # neither degenerate nor overflowing nor NaN
        useful = useful and highest(f) >= 0.0 and highest(g) >= 0.0 and highest(h) >= 0.0
        useful = useful and key_top + 1.0e-6 * wp.abs(key_top) >= key_floor
        useful = useful and not (single_sided and side > 0.0)
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
        blocks[lane] = wp.where(useful, mask, 0)
    changed = wp.bool(False)
    for i in range(used):
        lane = i & 15
        if blocks[lane] != 0:
            f = wp.vec3f(f0[lane], f1[lane], f2[lane])
            g = wp.vec3f(g0[lane], g1[lane], g2[lane])
            h = wp.vec3f(h0[lane], h1[lane], h2[lane])
            key = wp.vec3f(k0[lane], k1[lane], k2[lane])
            slot = 16 * leaf + lane
            if cover_free(f, g, h, key, blocks[lane], slot, any_hit, xs, ys, near_keys, keys, slots):
                settle_free(f, g, h, key, slot, rank, slot_triangle, xs, ys, near_keys, keys, slots, ranks)
            changed = True
    return changed


@wp.func
def trace_mesh_free(
    meshes: MeshColumns,
    mesh: wp.int32,
    frame: ObjectFrame,
    near: wp.float32,
    parallel: wp.bool,
    any_hit: wp.bool,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    floor: wp.int32,
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
) -> wp.float32:
    """The triangles of one instance, by its mesh's tree. The stack is free from ``floor`` on. Returns the lowest key of the packet."""
    rays = frame.rays
    root = meshes.root[mesh]
    if root < 0:
        return key_floor
    reach = wp.float32(0.0)
    if parallel:
        reach = mesh_reach(meshes, root, rays.origin)
    screen = screen_of(rays, reach, parallel, parallel)
    frustum = place(frustum_of(screen), rays.origin)
    for block in range(PACKET_BLOCKS):
        mine[block] = vec16i(-1)
    near -= rays.shift
    far = depth_of(key_floor, parallel) - rays.shift
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
                leaf = -1 - node
                changed = trace_leaf_free(
                    meshes.leaf_vertices,
                    meshes.slot_triangle,
                    leaf,
                    meshes.leaf_count[leaf],
                    rays,
                    screen,
                    key_floor,
                    frame.rank,
                    frame.single_sided,
                    parallel,
                    any_hit,
                    bounds,
                    xs,
                    ys,
                    near_keys,
                    keys,
                    mine,
                    ranks,
                )
                if changed:
                    touched = True
                    key_floor = lowest_key(keys, PACKET_BLOCKS)
                    far = depth_of(key_floor, parallel) - rays.shift
                    if any_hit and key_floor == wp.inf:
                        size = floor
    if touched:
        take_won(frame.row, frame.rank, PACKET_BLOCKS, mine, slots, owners, ranks)
    return key_floor


@wp.func
def trace_shape_free(
    kind: wp.int32,
    shapes: wp.array[wp.vec4f],
    source: wp.int32,
    frame: ObjectFrame,
    rays: ExactRays,
    parallel: wp.bool,
    any_hit: wp.bool,
    xs: wp.array[vec16f],
    ys: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
) -> wp.float32:
    """An analytic shape against every ray. Its front is where a ray enters; the exit is seen where the entry is cut off, if its back is
    drawn. Returns the lowest key of the packet."""
    for block in range(PACKET_BLOCKS):
        x = xs[block]
        y = ys[block]
        near = near_keys[block]
        best = keys[block]
        slot = slots[block]
        owner = owners[block]
        rank = ranks[block]
        entries = vec16f()
        exits = vec16f()
        for p in range(16):
            column, line = wp.float64(x[p]), wp.float64(y[p])
            origin = exact_origin(rays, column, line, parallel)
            interval = shape_interval(kind, shapes, source, origin, exact_direction(rays, column, line))
            entries[p] = wp.float32(interval[0] + rays.shift)
            exits[p] = wp.float32(interval[1] + rays.shift)
        for p in range(16):
            entry, exit = entries[p], exits[p]
            entry_key, exit_key = key_of(entry, parallel), key_of(exit, parallel)
            entry_counts = entry_key <= near[p] and (parallel or entry > 0.0)
            exit_counts = exit_key <= near[p] and (parallel or exit > 0.0) and not frame.single_sided
            key = wp.where(entry_counts, entry_key, exit_key)
            hit = entry <= exit and (entry_counts or exit_counts)
            wins = hit and (key > best[p] or (key == best[p] and frame.rank < rank[p]))
            best[p] = wp.where(wins, wp.where(any_hit, wp.inf, key), best[p])
            slot[p] = wp.where(wins, wp.where(entry_counts, 0, 1), slot[p])
            owner[p] = wp.where(wins, frame.row, owner[p])
            rank[p] = wp.where(wins, frame.rank, rank[p])
        keys[block] = best
        slots[block] = slot
        owners[block] = owner
        ranks[block] = rank
    return lowest_key(keys, PACKET_BLOCKS)
