"""trace.packet: the tile-packet tracer: one thread finds what the 128 pixels of a tile see. View rows and tables in, visibility record out.

Pixel arrays of a tile hold eight blocks of 4 x 4 pixels one after the other, so that the innermost loops run over 16 neighbouring numbers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import warp as wp

from hdwarp.launch import LANE_OPTIONS, launch
from hdwarp.tables.bvh import EMPTY_CHILD
from hdwarp.tables.structs import MESH, SPHERE, InstanceColumns, MeshColumns, TopLevel, ViewRow, Visibility, vec8f, vec16f
from hdwarp.trace.nodes import STACK, push_children
from hdwarp.trace.rays import (
    TILE_HEIGHT,
    TILE_WIDTH,
    Frustum,
    TileRays,
    frustum_of,
    largest,
    object_rays,
    place,
    place_exactly,
    ray_direction,
    ray_origin,
    screen_of,
    tile_origin,
    world_rays,
)
from hdwarp.trace.shapes import MISS, cube_interval, sphere_interval
from hdwarp.trace.triangles import BLOCKS_X, trace_leaf, vec16i

BLOCKS = wp.constant(8)
NO_RANK = wp.constant(2**31 - 1)
NO_CHILD = wp.constant(EMPTY_CHILD)
CLIP_SLACK = wp.constant(1.0e-6)  # relative: both ends of the clip range belong to it, whatever rounding says
DEPTH_SLACK = wp.constant(1.0e-5)


@dataclass(frozen=True)
class SceneKinds:
    """What a scene contains; each distinct value compiles one kernel."""

    mesh: bool = True
    shapes: bool = False


@wp.struct
class ObjectFrame:
    """What a tile needs of an instance."""

    rays: TileRays
    row: wp.int32
    rank: wp.int32
    single_sided: wp.bool


@wp.func
def find_view(views: wp.array[ViewRow], view_count: wp.int32, tile: wp.int32) -> wp.int32:
    """The view that a tile job belongs to: the last that begins at or before it."""
    low = wp.int32(0)
    high = wp.int32(view_count)
    while high - low > 1:
        middle = (low + high) // 2
        if views[middle].first_tile <= tile:
            low = middle
        else:
            high = middle
    return low


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
def lowest(keys: wp.array[vec16f]) -> wp.float32:
    """The lowest key of the tile: where it sees farthest."""
    low = keys[0]
    for block in range(1, BLOCKS):
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
def nearest_depth(view: ViewRow) -> wp.float32:
    """t before which nothing can be seen."""
    near = wp.where(view.radial != 0, wp.min(view.near, 0.0), view.near)
    return near - DEPTH_SLACK * wp.abs(near)


@wp.func
def depth_of(key: wp.float32, orthographic: wp.bool) -> wp.float32:
    """t beyond which nothing can be seen in a tile whose farthest pixel has this key."""
    t = wp.where(orthographic, -key, 1.0 / key)
    return t + DEPTH_SLACK * wp.abs(t)


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    const char* p = (const char*)(vertices.data + 9 * leaf);
    for (int i = 0; i < 9; ++i) __builtin_prefetch(p + 64 * i);
#endif
""")
def prefetch_leaf(vertices: wp.array[vec16f], leaf: wp.int32): ...


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    const char* p = (const char*)(nodes.data + 6 * node);
    for (int i = 0; i < 3; ++i) __builtin_prefetch(p + 64 * i);
#endif
""")
def prefetch_node(nodes: wp.array[vec8f], node: wp.int32): ...


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
                )
                if changed:
                    touched = True
                    key_floor = lowest(keys)
                    far = depth_of(key_floor, orthographic) - rays.shift
    if touched:
        for block in range(BLOCKS):
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
def trace_shape(
    kind: wp.int32,
    frame: ObjectFrame,
    affine: wp.bool,
    orthographic: wp.bool,
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    ranks: wp.array[vec16i],
) -> wp.float32:
    """An analytic shape against every pixel. Its front is where a ray enters; the exit is seen where the entry is cut off, if its back
    is drawn. Returns the lowest key of the tile."""
    rays = frame.rays
    for block in range(BLOCKS):
        left, top = float((block % BLOCKS_X) * 4), float((block // BLOCKS_X) * 4)
        near = near_keys[block]
        best = keys[block]
        slot = slots[block]
        owner = owners[block]
        rank = ranks[block]
        entries = vec16f()
        exits = vec16f()
        if kind == SPHERE:
            for p in range(16):
                x, y = left + float(p & 3), top + float(p >> 2)
                interval = sphere_interval(ray_origin(rays, x, y, affine), ray_direction(rays, x, y))
                entries[p] = interval[0]
                exits[p] = interval[1]
        else:
            for p in range(16):
                x, y = left + float(p & 3), top + float(p >> 2)
                interval = cube_interval(ray_origin(rays, x, y, affine), ray_direction(rays, x, y))
                entries[p] = interval[0]
                exits[p] = interval[1]
        for p in range(16):
            entry, exit = entries[p] + rays.shift, exits[p] + rays.shift
            entry_key, exit_key = key_of(entry, orthographic), key_of(exit, orthographic)
            entry_counts = entry_key <= near[p] and (orthographic or entry > 0.0)
            exit_counts = exit_key <= near[p] and (orthographic or exit > 0.0) and not frame.single_sided
            key = wp.where(entry_counts, entry_key, exit_key)
            hit = entries[p] <= exits[p] and (entry_counts or exit_counts)
            wins = hit and (key > best[p] or (key == best[p] and frame.rank < rank[p]))
            best[p] = wp.where(wins, key, best[p])
            slot[p] = wp.where(wins, 0, slot[p])
            owner[p] = wp.where(wins, frame.row, owner[p])
            rank[p] = wp.where(wins, frame.rank, rank[p])
        keys[block] = best
        slots[block] = slot
        owners[block] = owner
        ranks[block] = rank
    return lowest(keys)


_STORE = """
    for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 4; ++x)
            for (int i = 0; i < 4; ++i)
                out.data[base + y * pitch + 4 * x + i] = blocks.data[(y >> 2) * 4 + x].c[4 * (y & 3) + i];
"""


@wp.func_native(_STORE)
def store_ints(blocks: wp.array[vec16i], base: wp.int32, pitch: wp.int32, out: wp.array[wp.int32]):
    """Store a tile, row by row; Warp's own indexing would take half the time of an empty tile."""
    ...


@wp.func_native(_STORE)
def store_floats(blocks: wp.array[vec16f], base: wp.int32, pitch: wp.int32, out: wp.array[wp.float32]): ...


@wp.func
def store(view: ViewRow, tile: wp.int32, keys: wp.array[vec16f], slots: wp.array[vec16i], owners: wp.array[vec16i], out: Visibility):
    pitch = TILE_WIDTH * view.tiles_x
    base = view.record + (tile // view.tiles_x) * TILE_HEIGHT * pitch + (tile % view.tiles_x) * TILE_WIDTH
    store_ints(slots, base, pitch, out.slot)
    store_ints(owners, base, pitch, out.instance)
    store_floats(keys, base, pitch, out.key)


@functools.cache
def trace_kernel(kinds: SceneKinds, affine: bool) -> wp.Kernel:
    """The kernel for scenes of these kinds; ``affine``: orthographic views may be among the views."""
    HAS_MESH, HAS_SHAPES, AFFINE = kinds.mesh, kinds.shapes, affine

    @wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS)
    def trace_tiles(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        view_count: wp.int32,
        meshes: MeshColumns,
        instances: InstanceColumns,
        top: TopLevel,
        out: Visibility,
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        view = views[find_view(views, view_count, job)]
        tile = job - view.first_tile
        if view.masked != 0 or tile < 0 or tile >= view.tiles_x * view.tiles_y:
            return
        orthographic = view.orthographic != 0
        tile_x = (view.tile_x0 + tile % view.tiles_x) * TILE_WIDTH
        tile_y = (view.tile_y0 + tile // view.tiles_x) * TILE_HEIGHT
        rays = world_rays(view, tile_x, tile_y)

        near_keys = wp.zeros(shape=(8,), dtype=vec16f)
        keys = wp.zeros(shape=(8,), dtype=vec16f)
        slots = wp.zeros(shape=(8,), dtype=vec16i)
        owners = wp.zeros(shape=(8,), dtype=vec16i)
        ranks = wp.zeros(shape=(8,), dtype=vec16i)
        mine = wp.zeros(shape=(8,), dtype=vec16i)
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        stack_depth = wp.zeros(shape=(STACK,), dtype=wp.float32)
        start_pixels(view, rays, tile_x, tile_y, near_keys, keys, slots, owners, ranks)
        key_floor = lowest(keys)
        near = nearest_depth(view)
        far = depth_of(key_floor, orthographic)

        for which in range(2):  # the tree of the view's own world, then the global one
            origin = tile_origin(view, tile_x, tile_y)
            root = view.root
            if which == 1:
                origin = origin + view.global_offset
                root = view.global_root
            size = wp.int32(0)
            frustum = Frustum()
            if root >= 0:
                frustum = place_exactly(frustum_of(screen_of(rays, 0.0, AFFINE, orthographic)), origin)
                stack[0] = root
                stack_depth[0] = -MISS
                size = 1
            while size > 0:
                size -= 1
                node = stack[size]
                if stack_depth[size] <= far:
                    if node >= 0:
                        size = push_children(top.nodes, top.children, node, frustum, near, far, stack, stack_depth, size)
                    elif node != NO_CHILD:
                        row = -1 - node
                        frame = ObjectFrame()
                        frame.row = row
                        frame.rank = instances.rank[row]
                        frame.single_sided = instances.cull[row] != 0
                        frame.rays = object_rays(
                            rays,
                            view.forward,
                            origin - instances.translation[row],
                            instances.object_from_world[row],
                            AFFINE,
                            orthographic,
                        )
                        kind = instances.kind[row]
                        if HAS_MESH:
                            if kind == MESH:
                                key_floor = trace_mesh(
                                    meshes,
                                    instances.geometry[row],
                                    frame,
                                    near,
                                    AFFINE,
                                    orthographic,
                                    stack,
                                    stack_depth,
                                    size,
                                    near_keys,
                                    keys,
                                    slots,
                                    owners,
                                    ranks,
                                    mine,
                                    key_floor,
                                )
                        if HAS_SHAPES:
                            if kind > MESH:
                                key_floor = trace_shape(kind, frame, AFFINE, orthographic, near_keys, keys, slots, owners, ranks)
                        far = depth_of(key_floor, orthographic)
        store(view, tile, keys, slots, owners, out)

    return trace_tiles


def trace(
    views: wp.array,
    view_count: int,
    tile_count_total: int,
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    visibility: Visibility,
    *,
    kinds: SceneKinds,
    affine: bool,
    device: wp.Device | str,
) -> None:
    """Fill the visibility record of all views that are not masked.

    ``views``: (view_count,) ViewRow, in the order of their ``first_tile``. ``tile_count_total``: tiles of all views, masked ones
    included. ``kinds``: at least the kinds of geometry in the trees. ``affine``: whether any view is orthographic.
    The clip range includes both ends, with 1e-6 of relative slack. Ranks of the instances that one view sees must differ.
    """
    inputs = [views, view_count, meshes, instances, top]
    launch(trace_kernel(kinds, affine), tile_count_total, inputs, [visibility], device=device, grain=4)
