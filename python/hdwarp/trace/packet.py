"""trace.packet: the tile-packet tracer: one thread finds what the 128 pixels of a tile see. View rows and tables in, visibility record out.

Pixel arrays of a tile hold eight blocks of 4 x 4 pixels one after the other, so that the innermost loops run over 16 neighbouring numbers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import warp as wp

from hdwarp.launch import LANE_OPTIONS, launch
from hdwarp.tables.bvh import EMPTY_CHILD
from hdwarp.tables.structs import MESH, SPHERE, InstanceColumns, MeshColumns, TopLevel, ViewRow, Visibility, vec16f
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
    screen_of,
    tile_origin,
    world_rays,
)
from hdwarp.trace.shapes import MISS, cube_interval, sphere_interval
from hdwarp.trace.triangles import BLOCKS_X, OUTSIDE, cover, set_up_leaf

PIXELS = wp.constant(128)
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
def start_pixels(
    view: ViewRow,
    rays: TileRays,
    tile_x: wp.int32,
    tile_y: wp.int32,
    near_key: wp.array[wp.float32],
    keys: wp.array[wp.float32],
    slots: wp.array[wp.int32],
    owners: wp.array[wp.int32],
    ranks: wp.array[wp.int32],
):
    """Nothing seen yet: the keys are those of the far end of the clip range. Pixels outside the data window can see nothing."""
    orthographic = view.orthographic != 0
    for k in range(PIXELS):
        x = ((k // 16) % BLOCKS_X) * 4 + (k & 3)
        y = (k // 64) * 4 + ((k >> 2) & 3)
        direction = rays.direction + rays.direction_dx * float(x) + rays.direction_dy * float(y)
        stretch = wp.where(view.radial != 0, wp.sqrt(wp.dot(direction, direction)), 1.0)
        near, far = key_of(view.near / stretch, orthographic), key_of(view.far / stretch, orthographic)
        far = wp.where(orthographic or far > 1.0e-37, far - CLIP_SLACK * wp.abs(far), 1.0e-37)
        column, line = tile_x + x - view.x0, tile_y + y - view.y0
        inside = column >= 0 and column < view.width and line >= 0 and line < view.height
        near_key[k] = near + CLIP_SLACK * wp.abs(near)
        keys[k] = wp.where(inside, far, wp.inf)
        slots[k] = -1
        owners[k] = -1
        ranks[k] = NO_RANK


@wp.func
def lowest(keys: wp.array[wp.float32]) -> wp.float32:
    low = wp.float32(wp.inf)
    for k in range(PIXELS):
        low = wp.where(keys[k] < low, keys[k], low)
    return low


@wp.func
def depth_of(key: wp.float32, orthographic: wp.bool) -> wp.float32:
    """t beyond which nothing can be seen in a tile whose farthest pixel has this key."""
    t = wp.where(orthographic, -key, 1.0 / key)
    return t + DEPTH_SLACK * wp.abs(t)


@wp.func
def trace_mesh(
    meshes: MeshColumns,
    mesh: wp.int32,
    frame: ObjectFrame,
    affine: wp.bool,
    orthographic: wp.bool,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    floor: wp.int32,
    coefficients: wp.array[vec16f],
    near_key: wp.array[wp.float32],
    keys: wp.array[wp.float32],
    slots: wp.array[wp.int32],
    owners: wp.array[wp.int32],
    ranks: wp.array[wp.int32],
    mine: wp.array[wp.int32],
    limits: wp.array[wp.int32],
    key_floor: wp.float32,
) -> wp.float32:
    """The triangles of one instance, by its mesh's tree. The stack is free from ``floor`` on. Returns the lowest key of the tile."""
    rays = frame.rays
    root = meshes.root[mesh]
    if root < 0:
        return key_floor
    reach = wp.float32(0.0)
    if affine and orthographic:
        reach = largest(rays.origin)
        for axis in range(6):
            for c in range(8):
                v = wp.abs(meshes.nodes[6 * root + axis][c])
                reach = wp.where(v < 1.0e30 and v > reach, v, reach)
        reach *= 3.0
    screen = screen_of(rays, reach, affine, orthographic)
    frustum = place(frustum_of(screen), rays.origin)
    for k in range(PIXELS):
        mine[k] = -1
        limits[k] = wp.where(frame.rank < ranks[k], NO_RANK, 0)
    far = depth_of(key_floor, orthographic) - rays.shift
    stack[floor] = root
    stack_depth[floor] = -MISS
    size = floor + 1
    touched = wp.bool(False)
    while size > floor:
        size -= 1
        node = stack[size]
        if stack_depth[size] <= far:
            if node >= 0:
                size = push_children(meshes.nodes, meshes.children, node, frustum, far, stack, stack_depth, size)
            elif node != NO_CHILD:
                leaf = -1 - node
                set_up_leaf(meshes.leaf_vertices, leaf, rays, screen, key_floor, frame.single_sided, affine, orthographic, coefficients)
                changed = wp.bool(False)
                for lane in range(meshes.leaf_count[leaf]):
                    if coefficients[12][lane] < OUTSIDE:
                        slot = 16 * leaf + lane
                        cover(coefficients, lane, slot, meshes.slot_triangle[slot], near_key, keys, mine, limits)
                        changed = True
                if changed:
                    touched = True
                    key_floor = lowest(keys)
                    far = depth_of(key_floor, orthographic) - rays.shift
    if touched:
        for k in range(PIXELS):
            won = mine[k] >= 0
            slots[k] = wp.where(won, mine[k], slots[k])
            owners[k] = wp.where(won, frame.row, owners[k])
            ranks[k] = wp.where(won, frame.rank, ranks[k])
    return key_floor


@wp.func
def trace_shape(
    kind: wp.int32,
    frame: ObjectFrame,
    affine: wp.bool,
    orthographic: wp.bool,
    near_key: wp.array[wp.float32],
    keys: wp.array[wp.float32],
    slots: wp.array[wp.int32],
    owners: wp.array[wp.int32],
    ranks: wp.array[wp.int32],
) -> wp.float32:
    """An analytic shape against every pixel. Its front is where a ray enters; the exit is seen where the entry is cut off, if its back
    is drawn. Returns the lowest key of the tile."""
    rays = frame.rays
    for block in range(8):
        left, top = float((block % BLOCKS_X) * 4), float((block // BLOCKS_X) * 4)
        for p in range(16):
            k = block * 16 + p
            x = left + float(p & 3)
            y = top + float(p >> 2)
            origin = rays.origin
            if affine:
                origin = origin + rays.origin_dx * x + rays.origin_dy * y
            direction = rays.direction + rays.direction_dx * x + rays.direction_dy * y
            interval = wp.vec2f()
            if kind == SPHERE:
                interval = sphere_interval(origin, direction)
            else:
                interval = cube_interval(origin, direction)
            entry, exit = interval[0] + rays.shift, interval[1] + rays.shift
            entry_key, exit_key = key_of(entry, orthographic), key_of(exit, orthographic)
            entry_counts = entry_key <= near_key[k] and (orthographic or entry > 0.0)
            exit_counts = exit_key <= near_key[k] and (orthographic or exit > 0.0) and not frame.single_sided
            key = wp.where(entry_counts, entry_key, exit_key)
            hit = interval[0] <= interval[1] and (entry_counts or exit_counts)
            wins = hit and (key > keys[k] or (key == keys[k] and frame.rank < ranks[k]))
            keys[k] = wp.where(wins, key, keys[k])
            slots[k] = wp.where(wins, 0, slots[k])
            owners[k] = wp.where(wins, frame.row, owners[k])
            ranks[k] = wp.where(wins, frame.rank, ranks[k])
    return lowest(keys)


@wp.func
def store(
    view: ViewRow, tile: wp.int32, keys: wp.array[wp.float32], slots: wp.array[wp.int32], owners: wp.array[wp.int32], out: Visibility
):
    pitch = TILE_WIDTH * view.tiles_x
    base = view.record + (tile // view.tiles_x) * TILE_HEIGHT * pitch + (tile % view.tiles_x) * TILE_WIDTH
    for y in range(TILE_HEIGHT):
        for x in range(TILE_WIDTH):
            k = ((y // 4) * BLOCKS_X + x // 4) * 16 + (y & 3) * 4 + (x & 3)
            at = base + y * pitch + x
            out.slot[at] = slots[k]
            out.instance[at] = owners[k]
            out.key[at] = wp.where(slots[k] >= 0, keys[k], 0.0)


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

        near_key = wp.zeros(shape=(128,), dtype=wp.float32)
        keys = wp.zeros(shape=(128,), dtype=wp.float32)
        slots = wp.zeros(shape=(128,), dtype=wp.int32)
        owners = wp.zeros(shape=(128,), dtype=wp.int32)
        ranks = wp.zeros(shape=(128,), dtype=wp.int32)
        mine = wp.zeros(shape=(128,), dtype=wp.int32)
        limits = wp.zeros(shape=(128,), dtype=wp.int32)
        coefficients = wp.zeros(shape=(16,), dtype=vec16f)
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        stack_depth = wp.zeros(shape=(STACK,), dtype=wp.float32)
        start_pixels(view, rays, tile_x, tile_y, near_key, keys, slots, owners, ranks)
        key_floor = lowest(keys)
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
                        size = push_children(top.nodes, top.children, node, frustum, far, stack, stack_depth, size)
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
                                    AFFINE,
                                    orthographic,
                                    stack,
                                    stack_depth,
                                    size,
                                    coefficients,
                                    near_key,
                                    keys,
                                    slots,
                                    owners,
                                    ranks,
                                    mine,
                                    limits,
                                    key_floor,
                                )
                        if HAS_SHAPES:
                            if kind > MESH:
                                key_floor = trace_shape(kind, frame, AFFINE, orthographic, near_key, keys, slots, owners, ranks)
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
