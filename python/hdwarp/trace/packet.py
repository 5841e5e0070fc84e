"""trace.packet: the tile-packet tracer: a thread finds what the 128 pixels of a tile see. View rows and tables -> visibility record."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.launch import LANE_OPTIONS, Step, launch
from hdwarp.tables.structs import (
    MESH,
    TILE_HEIGHT,
    TILE_WIDTH,
    ClipPlane,
    InstanceColumns,
    MeshColumns,
    Peel,
    TopLevel,
    ViewRow,
    Visibility,
    inverse_of,
    is_shape,
    is_swept,
    vec16f,
)
from hdwarp.trace.instances import NO_CHILD, ObjectFrame, trace_mesh, trace_shape
from hdwarp.trace.jobs import SceneKinds, find_view
from hdwarp.trace.layers import look_behind
from hdwarp.trace.nodes import STACK, push_children
from hdwarp.trace.pixels import BLOCKS, BLOCKS_X, cut_pixels, depth_of, lowest_key, nearest_depth, nearest_left, start_pixels, store, vec16i
from hdwarp.trace.rays import (
    Frustum,
    exact_object_rays,
    exact_world_rays,
    frustum_of,
    object_rays,
    place_exactly,
    screen_of,
    tile_origin,
    world_rays,
)
from hdwarp.trace.shapes import MISS
from hdwarp.trace.swept_packet import trace_swept
from hdwarp.trace.swept_reach import tile_places


@functools.cache
def trace_kernel(kinds: SceneKinds, affine: bool, peel: bool = False) -> wp.Kernel:
    """The kernel for scenes of these kinds; ``affine``: orthographic views may be among the views; ``peel``: it looks behind what marked
    pixels see."""
    HAS_MESH, HAS_SHAPES, HAS_SWEPT, AFFINE, PEEL = kinds.mesh, kinds.shapes, kinds.swept, affine, peel

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
        planes: wp.array[ClipPlane],
        marked: Peel,
        out: Visibility,
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        if PEEL:
            if marked.tiles[job] == 0:
                return
        view = views[find_view(views, view_count, job)]
        tile = job - view.first_tile
        if view.masked != 0 or view.rays != 0 or tile < 0 or tile >= view.tiles_x * view.tiles_y:
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
        if HAS_SWEPT:
            xs = wp.zeros(shape=(8,), dtype=vec16f)
            ys = wp.zeros(shape=(8,), dtype=vec16f)
            bounds = wp.zeros(shape=(8,), dtype=wp.vec4f)
            tile_places(BLOCKS_X, BLOCKS, xs, ys, bounds)
        start_pixels(view, rays, tile_x, tile_y, near_keys, keys, slots, owners, ranks)
        near = nearest_depth(view)
        if view.plane_count > 0:
            cut_pixels(view, planes, tile_x, tile_y, near_keys, keys)
            near = wp.max(near, nearest_left(near_keys, orthographic))
        if PEEL:
            behind_ranks = wp.zeros(shape=(8,), dtype=vec16i)
            behind_triangles = wp.zeros(shape=(8,), dtype=vec16i)
            seen = wp.zeros(shape=(8,), dtype=vec16f)
            look_behind(
                view, tile, marked, meshes, instances, out, mine, seen, near_keys, keys, slots, owners, behind_ranks, behind_triangles
            )
            near = wp.max(near, nearest_left(near_keys, orthographic))
        else:
            behind_ranks = ranks  # not read
            behind_triangles = ranks
        key_floor = lowest_key(keys, BLOCKS)
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
                        source = instances.source[row]
                        flags = instances.flags[source]
                        frame = ObjectFrame()
                        frame.row = row
                        frame.rank = instances.rank[source]
                        frame.single_sided = (flags & view.culls) != 0
                        offset = origin - instances.translation[row]
                        kind = wp.where((flags & view.hides) == 0, instances.kind[source], -1)
                        if HAS_MESH:
                            if kind == MESH:
                                inverse = inverse_of(instances.world_from_object[row])
                                frame.rays = object_rays(rays, view.forward, offset, inverse, AFFINE, orthographic)
                                key_floor = trace_mesh(
                                    meshes,
                                    instances.geometry[source],
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
                                    PEEL,
                                    behind_ranks,
                                    behind_triangles,
                                )
                        if HAS_SWEPT:
                            if is_swept(kind):
                                inverse = inverse_of(instances.world_from_object[row])
                                frame.rays = object_rays(rays, view.forward, offset, inverse, AFFINE, orthographic)
                                key_floor = trace_swept(
                                    kind,
                                    meshes,
                                    instances.geometry[source],
                                    frame,
                                    near,
                                    AFFINE,
                                    orthographic,
                                    False,
                                    stack,
                                    stack_depth,
                                    size,
                                    BLOCKS,
                                    bounds,
                                    xs,
                                    ys,
                                    near_keys,
                                    keys,
                                    slots,
                                    owners,
                                    ranks,
                                    mine,
                                    key_floor,
                                    PEEL,
                                    behind_ranks,
                                    behind_triangles,
                                )
                        if HAS_SHAPES:
                            if is_shape(kind):
                                exact = exact_world_rays(view, tile_x, tile_y)
                                placed = instances.world_from_object[row]
                                exact = exact_object_rays(exact, view.forward, offset, placed, AFFINE, orthographic)
                                key_floor = trace_shape(
                                    kind,
                                    instances.shape,
                                    source,
                                    frame,
                                    exact,
                                    AFFINE,
                                    orthographic,
                                    near_keys,
                                    keys,
                                    slots,
                                    owners,
                                    ranks,
                                    PEEL,
                                    behind_ranks,
                                    behind_triangles,
                                )
                        far = depth_of(key_floor, orthographic)
        store(view, tile, keys, slots, owners, out)

    return trace_tiles


def trace_step(
    views: wp.array,
    view_count: int,
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    visibility: Visibility,
    *,
    kinds: SceneKinds,
    affine: bool,
    planes: wp.array | None = None,
    peel: Peel | None = None,
    device: wp.Device | str,
) -> tuple[Step, int]:
    """(`trace` as a step of a pipeline, its jobs a tile): a tile is a job on the CPU, on CUDA each of its pixels is one."""
    arguments = [views, view_count, meshes, instances, top, planes, Peel() if peel is None else peel, visibility]
    if wp.get_device(device).is_cuda:
        from hdwarp.trace.pixel_rays import PIXELS, pixel_kernel  # declaring its kernels takes time at every start

        return (pixel_kernel(kinds, affine, peel is not None), arguments), int(PIXELS)
    return (trace_kernel(kinds, affine, peel is not None), arguments), 1


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
    planes: wp.array | None = None,
    peel: Peel | None = None,
    device: wp.Device | str,
) -> None:
    """Fill the visibility record of all views that are not masked and have a lens (those with given rays: `trace_view_rays`): in tile
    packets on the CPU, a thread a pixel on CUDA.

    ``views``: (view_count,) ViewRow, in the order of their ``first_tile``. ``tile_count_total``: tiles of all views, masked ones
    included. ``kinds``: at least the kinds of geometry in the trees. ``affine``: whether any view is orthographic.
    ``planes``: the ClipPlane rows of the views, where views have any. ``peel``: instead of what pixels see, find the next surface behind
    what the record holds, at the pixels marked; all others are left as they are. Surfaces on a ray come in the order of (key, rank,
    triangle), each once. Device work only; tiles without a mark return at once.
    The clip range includes both ends, with 1e-6 of relative slack. Ranks of the instances that one view sees must differ.
    The key of a miss means nothing.
    """
    scene = (views, view_count, meshes, instances, top, visibility)
    (kernel, arguments), jobs = trace_step(*scene, kinds=kinds, affine=affine, planes=planes, peel=peel, device=device)
    launch(kernel, jobs * tile_count_total, arguments, device=device, grain=4 * jobs)
