"""trace.instances: one mesh instance or analytic shape against a tile. Warp functions only."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.bvh import EMPTY_CHILD
from hdwarp.tables.structs import CAPSULE, CUBE, PLANE, SPHERE, MeshColumns, vec8f, vec16f
from hdwarp.trace.layers import is_seen_already
from hdwarp.trace.nodes import push_children
from hdwarp.trace.pixels import BLOCKS, BLOCKS_X, depth_of, key_of, lowest_key, take_won, vec16i
from hdwarp.trace.rays import ExactRays, TileRays, exact_direction, exact_origin, frustum_of, largest, place, screen_of
from hdwarp.trace.shapes import MISS, capsule_interval, cone_interval, cube_interval, plane_interval, round_of, sphere_interval
from hdwarp.trace.triangles import trace_leaf

NO_CHILD = wp.constant(EMPTY_CHILD)


@wp.struct
class ObjectFrame:
    """What a tile needs of an instance."""

    rays: TileRays  # of meshes, points and curves
    row: wp.int32
    rank: wp.int32
    single_sided: wp.bool


# A leaf is read the moment it is reached, and mostly from far memory: asking for the next one early makes large meshes 10 % faster.
@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    const char* p = (const char*)(vertices.data + 9LL * leaf);
    for (int i = 0; i < 9; ++i) __builtin_prefetch(p + 64 * i);
#endif
""")
def prefetch_leaf(vertices: wp.array[vec16f], leaf: wp.int32): ...


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    const char* p = (const char*)(nodes.data + 6LL * node);
    for (int i = 0; i < 3; ++i) __builtin_prefetch(p + 64 * i);
#endif
""")
def prefetch_node(nodes: wp.array[vec8f], node: wp.int32): ...


@wp.func
def mesh_reach(meshes: MeshColumns, root: wp.int32, origin: wp.vec3f) -> wp.float32:
    """How far from ``origin`` the points of a mesh may be, by its root's boxes."""
    reach = largest(origin)
    for axis in range(6):
        row = meshes.nodes[6 * root + axis]
        for c in range(8):
            v = wp.abs(row[c])
            if v < 1.0e30 and v > reach:
                reach = v
    return 3.5 * reach


@wp.func
def trace_mesh(
    meshes: MeshColumns,
    mesh: wp.int32,
    frame: ObjectFrame,
    near: wp.float32,
    affine: wp.bool,
    orthographic: wp.bool,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    floor: wp.int32,
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
    """The triangles of one instance, by its mesh's tree. The stack is free from ``floor`` on. Returns the lowest key of the tile."""
    rays = frame.rays
    root = meshes.root[mesh]
    if root < 0:
        return key_floor
    reach = wp.float32(0.0)
    if affine and orthographic:
        reach = mesh_reach(meshes, root, rays.origin)
    screen = screen_of(rays, reach, affine, orthographic)
    frustum = place(frustum_of(screen), rays.origin)
    for block in range(BLOCKS):
        mine[block] = vec16i(-1)
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
                leaf = -1 - node
                changed = trace_leaf(
                    meshes.leaf_vertices,
                    meshes.slot_triangle,
                    leaf,
                    meshes.leaf_count[leaf],
                    rays,
                    screen,
                    key_floor,
                    frame.rank,
                    frame.single_sided,
                    affine,
                    orthographic,
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
                    key_floor = lowest_key(keys, BLOCKS)
                    far = depth_of(key_floor, orthographic) - rays.shift
    if touched:
        take_won(frame.row, frame.rank, BLOCKS, mine, slots, owners, ranks)
    return key_floor


@wp.func
def trace_shape(
    kind: wp.int32,
    shapes: wp.array[wp.vec4f],
    source: wp.int32,
    frame: ObjectFrame,
    rays: ExactRays,
    affine: wp.bool,
    orthographic: wp.bool,
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
    peel: wp.bool,
    behind_ranks: wp.array[vec16i],
    behind_triangles: wp.array[vec16i],
) -> wp.float32:
    """An analytic shape against every pixel. Its front is where a ray enters; the exit is seen where the entry is cut off, if its back
    is drawn. Returns the lowest key of the tile."""
    shape = wp.vec4f(1.0)
    if kind > CUBE:
        shape = shapes[source]
    body = round_of(shape)
    width, length = wp.float64(shape[0]), wp.float64(shape[1])
    for block in range(BLOCKS):
        left, top = wp.float64((block % BLOCKS_X) * 4), wp.float64((block // BLOCKS_X) * 4)
        near = near_keys[block]
        best = keys[block]
        slot = slots[block]
        owner = owners[block]
        rank = ranks[block]
        behind_rank = behind_ranks[block]
        behind_triangle = behind_triangles[block]
        entries = vec16f()
        exits = vec16f()
        if kind == SPHERE:
            for p in range(16):
                x, y = left + wp.float64(p & 3), top + wp.float64(p >> 2)
                interval = sphere_interval(exact_origin(rays, x, y, affine), exact_direction(rays, x, y))
                entries[p] = wp.float32(interval[0] + rays.shift)
                exits[p] = wp.float32(interval[1] + rays.shift)
        elif kind == CUBE:
            for p in range(16):
                x, y = left + wp.float64(p & 3), top + wp.float64(p >> 2)
                interval = cube_interval(exact_origin(rays, x, y, affine), exact_direction(rays, x, y))
                entries[p] = wp.float32(interval[0] + rays.shift)
                exits[p] = wp.float32(interval[1] + rays.shift)
        elif kind == PLANE:
            for p in range(16):
                x, y = left + wp.float64(p & 3), top + wp.float64(p >> 2)
                interval = plane_interval(exact_origin(rays, x, y, affine), exact_direction(rays, x, y), width, length)
                entries[p] = wp.float32(interval[0] + rays.shift)
                exits[p] = wp.float32(interval[1] + rays.shift)
        elif kind == CAPSULE:
            for p in range(16):
                x, y = left + wp.float64(p & 3), top + wp.float64(p >> 2)
                interval = capsule_interval(exact_origin(rays, x, y, affine), exact_direction(rays, x, y), body)
                entries[p] = wp.float32(interval[0] + rays.shift)
                exits[p] = wp.float32(interval[1] + rays.shift)
        else:
            for p in range(16):
                x, y = left + wp.float64(p & 3), top + wp.float64(p >> 2)
                interval = cone_interval(exact_origin(rays, x, y, affine), exact_direction(rays, x, y), body)
                entries[p] = wp.float32(interval[0] + rays.shift)
                exits[p] = wp.float32(interval[1] + rays.shift)
        for p in range(16):
            entry, exit = entries[p], exits[p]
            entry_key, exit_key = key_of(entry, orthographic), key_of(exit, orthographic)
            entry_counts = entry_key <= near[p] and (orthographic or entry > 0.0)
            exit_counts = exit_key <= near[p] and (orthographic or exit > 0.0) and not frame.single_sided
            if peel:
                seen = is_seen_already(entry_key, near[p], frame.rank, 0, behind_rank[p], behind_triangle[p])
                entry_counts = entry_counts and not seen
                seen = is_seen_already(exit_key, near[p], frame.rank, 0, behind_rank[p], behind_triangle[p])
                exit_counts = exit_counts and not seen
            key = wp.where(entry_counts, entry_key, exit_key)
            hit = entries[p] <= exits[p] and (entry_counts or exit_counts)
            wins = hit and (key > best[p] or (key == best[p] and frame.rank < rank[p]))
            best[p] = wp.where(wins, key, best[p])
            slot[p] = wp.where(wins, wp.where(entry_counts, 0, 1), slot[p])
            owner[p] = wp.where(wins, frame.row, owner[p])
            rank[p] = wp.where(wins, frame.rank, rank[p])
        keys[block] = best
        slots[block] = slot
        owners[block] = owner
        ranks[block] = rank
    return lowest_key(keys, BLOCKS)
