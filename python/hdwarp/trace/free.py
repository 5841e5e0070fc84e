"""trace.free: packets of rays from one point, directions free (lidar, wide lenses, point lights): bundles -> what each ray hits."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.launch import LANE_OPTIONS
from hdwarp.tables.structs import MESH, InstanceColumns, MeshColumns, TopLevel, inverse_of, is_shape, is_swept, vec16f
from hdwarp.trace.bundles import RayBundle, RayBundles, RayHits, bundle_of_packet
from hdwarp.trace.free_packet import (
    ACTIVE,
    DONE,
    choose_axes,
    highest_key,
    load_directions,
    patch_of,
    settle_places,
    start_rays,
    store_blocked,
    store_hits,
    tile_of,
)
from hdwarp.trace.free_triangles import PACKET_BLOCKS, trace_mesh_free, trace_shape_free
from hdwarp.trace.instances import NO_CHILD, ObjectFrame
from hdwarp.trace.jobs import SceneKinds
from hdwarp.trace.nodes import STACK, push_children
from hdwarp.trace.parallel_packet import choose_near, load_origins, parallel_tile, start_parallel
from hdwarp.trace.pixels import DEPTH_SLACK, depth_of, lowest_key, vec16i
from hdwarp.trace.rays import Frustum, TileRays, exact_object_rays, frustum_of, object_rays, place_exactly, screen_of, widen, widen_rays
from hdwarp.trace.shapes import MISS
from hdwarp.trace.single import launch_rays, trace_rays
from hdwarp.trace.swept_packet import trace_swept

RUN_LENGTH = 4  # packets a job takes, so that the memory it works in is set up once


@functools.cache
def free_kernel(kinds: SceneKinds, any_hit: bool, parallel: bool = False) -> wp.Kernel:
    """The kernel for scenes of these kinds. ``parallel``: of rays that go their bundle's way from anywhere, else from its origin."""
    HAS_MESH, HAS_SHAPES, HAS_SWEPT, ANY_HIT, RUN = kinds.mesh, kinds.shapes, kinds.swept, any_hit, RUN_LENGTH
    PARALLEL = parallel

    @wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS)
    def trace_packets(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        bundles: wp.array[RayBundle],
        bundle_count: wp.int32,
        packet_count: wp.int32,
        origins: wp.array[wp.vec3f],
        directions: wp.array[wp.vec3f],
        limits: wp.array[wp.vec2f],
        meshes: MeshColumns,
        instances: InstanceColumns,
        top: TopLevel,
        blocked: wp.array[wp.bool],
        hits: RayHits,
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        dx = wp.zeros(shape=(4,), dtype=vec16f)
        dy = wp.zeros(shape=(4,), dtype=vec16f)
        dz = wp.zeros(shape=(4,), dtype=vec16f)
        state = wp.zeros(shape=(4,), dtype=vec16i)
        xs = wp.zeros(shape=(4,), dtype=vec16f)
        ys = wp.zeros(shape=(4,), dtype=vec16f)
        stretches = wp.zeros(shape=(4,), dtype=vec16f)
        bounds = wp.zeros(shape=(4,), dtype=wp.vec4f)
        near_keys = wp.zeros(shape=(4,), dtype=vec16f)
        keys = wp.zeros(shape=(4,), dtype=vec16f)
        slots = wp.zeros(shape=(4,), dtype=vec16i)
        owners = wp.zeros(shape=(4,), dtype=vec16i)
        ranks = wp.zeros(shape=(4,), dtype=vec16i)
        mine = wp.zeros(shape=(4,), dtype=vec16i)
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        stack_depth = wp.zeros(shape=(STACK,), dtype=wp.float32)
        for packet in range(job * RUN, wp.min(job * RUN + RUN, packet_count)):
            bundle = bundles[bundle_of_packet(bundles, bundle_count, packet)]
            patch = patch_of(bundle, packet - bundle.first_packet)
            if PARALLEL:
                load_origins(bundle, patch, origins, directions, dx, dy, dz, state)
            else:
                load_directions(bundle, patch, directions, dx, dy, dz, state)

            more = wp.bool(bundle.masked == 0)
            while more:  # once, unless the rays are spread over more than one tile can hold
                rays = TileRays()
                if PARALLEL:
                    axes, reach = choose_near(bundle.way, dx, dy, dz, state)
                    more = axes.members < axes.waiting
                    if axes.members > 0:
                        rays = parallel_tile(axes, reach, dx, dy, dz, state, xs, ys, bounds)
                    start_parallel(bundle, patch, limits, axes.axis, dx, dy, dz, state, near_keys, keys, slots, owners, ranks)
                    near = -highest_key(near_keys)
                    near -= DEPTH_SLACK * wp.abs(near)
                else:
                    axes = choose_axes(dx, dy, dz, state)
                    more = axes.members < axes.waiting
                    if axes.members > 0:
                        rays = tile_of(axes, dx, dy, dz, state)
                        settle_places(rays, dx, dy, dz, state, xs, ys, stretches, bounds)
                    start_rays(bundle, patch, limits, dx, dy, dz, state, stretches, near_keys, keys, slots, owners, ranks)
                    near = (1.0 - DEPTH_SLACK) / highest_key(near_keys)  # +inf where there is no ray: nothing is visited
                key_floor = lowest_key(keys, PACKET_BLOCKS)
                far = depth_of(key_floor, PARALLEL)

                for which in range(2):  # the tree of the bundle's own world, then the global one
                    origin = bundle.origin + widen(rays.origin)
                    root = bundle.root
                    if which == 1:
                        origin = origin + bundle.global_offset
                        root = bundle.global_root
                    size = wp.int32(0)
                    frustum = Frustum()
                    if root >= 0 and axes.members > 0 and key_floor < wp.inf:
                        frustum = place_exactly(frustum_of(screen_of(rays, 0.0, PARALLEL, PARALLEL)), origin)
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
                                instance = -1 - node
                                frame = ObjectFrame()
                                frame.row = instance
                                source = instances.source[instance]
                                flags = instances.flags[source]
                                frame.rank = instances.rank[source]
                                frame.single_sided = (flags & bundle.culls) != 0
                                offset = origin - instances.translation[instance]
                                kind = wp.where((flags & bundle.hides) == 0, instances.kind[source], -1)
                                if HAS_MESH:
                                    if kind == MESH:
                                        inverse = inverse_of(instances.world_from_object[instance])
                                        frame.rays = object_rays(rays, axes.axis, offset, inverse, PARALLEL, PARALLEL)
                                        key_floor = trace_mesh_free(
                                            meshes,
                                            instances.geometry[source],
                                            frame,
                                            near,
                                            PARALLEL,
                                            ANY_HIT,
                                            stack,
                                            stack_depth,
                                            size,
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
                                        )
                                if HAS_SWEPT:
                                    if is_swept(kind):
                                        inverse = inverse_of(instances.world_from_object[instance])
                                        frame.rays = object_rays(rays, axes.axis, offset, inverse, PARALLEL, PARALLEL)
                                        key_floor = trace_swept(
                                            kind,
                                            meshes,
                                            instances.geometry[source],
                                            frame,
                                            near,
                                            PARALLEL,
                                            PARALLEL,
                                            ANY_HIT,
                                            stack,
                                            stack_depth,
                                            size,
                                            PACKET_BLOCKS,
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
                                            False,
                                            ranks,  # not read
                                            ranks,
                                        )
                                if HAS_SHAPES:
                                    if is_shape(kind):
                                        placed = instances.world_from_object[instance]
                                        exact = exact_object_rays(widen_rays(rays), axes.axis, offset, placed, PARALLEL, PARALLEL)
                                        key_floor = trace_shape_free(
                                            kind,
                                            instances.shape,
                                            source,
                                            frame,
                                            exact,
                                            PARALLEL,
                                            ANY_HIT,
                                            xs,
                                            ys,
                                            near_keys,
                                            keys,
                                            slots,
                                            owners,
                                            ranks,
                                        )
                                far = depth_of(key_floor, PARALLEL)
                                if ANY_HIT and key_floor == wp.inf:
                                    size = 0

                if hits.slot.shape[0] > 0:
                    store_hits(bundle, patch, more, state, stretches, keys, slots, owners, hits)
                if blocked.shape[0] > 0:
                    store_blocked(bundle, patch, more, state, slots, blocked)
                if more:
                    for block in range(PACKET_BLOCKS):
                        for p in range(16):
                            if state[block][p] == ACTIVE:
                                state[block][p] = DONE

    return trace_packets


def trace_free(
    bundles: RayBundles,
    directions: wp.array,
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    hits: RayHits | None = None,
    *,
    kinds: SceneKinds,
    limits: wp.array | None = None,
    any_hit: bool = False,
    blocked: wp.array | None = None,
    device: wp.Device | str,
) -> RayHits | None:
    """What rays from one point a bundle hit, in packets of 64 neighbours of its grid. On CUDA one thread a ray.

    The same as `trace_rays` without origins, several times faster where neighbours have similar directions; a packet whose rays are
    spread over more than 60 degrees about their mean is taken in parts. Parameters and results: see `trace_rays`; with ``any_hit`` the
    hit is some hit within the ray's range, and its t is 0.
    """
    device = wp.get_device(device)
    if device.is_cuda:
        arguments = {"kinds": kinds, "limits": limits, "any_hit": any_hit, "blocked": blocked, "device": device}
        return trace_rays(bundles, None, directions, meshes, instances, top, hits, **arguments)
    rays = [None, directions, limits]
    kernel, count = free_kernel(kinds, any_hit), bundles.packet_count
    return launch_rays(kernel, count, RUN_LENGTH, bundles, rays, meshes, instances, top, hits, blocked, device)


def occluded(
    bundles: RayBundles,
    origins: wp.array | None,
    directions: wp.array,
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    *,
    kinds: SceneKinds,
    limits: wp.array | None = None,
    parallel: bool = False,
    out: wp.array | None = None,
    device: wp.Device | str,
) -> wp.array:
    """(rays of all bundles,) bool: whether anything lies on a ray within its range. For shadows: with the light at a bundle's origin and
    directions from there to the points, rays go in packets; with ``origins`` given, one by one. ``limits``: see `trace_rays`; the far
    limit is the distance to the other end less what self-shadowing asks for. ``parallel``: rays from ``origins`` that all go their bundle's
    `way` go in packets too."""
    device = wp.get_device(device)
    out = wp.zeros(bundles.ray_count, dtype=wp.bool, device=device) if out is None else out
    options = {"kinds": kinds, "limits": limits, "any_hit": True, "blocked": out, "device": device}
    if parallel and device.is_cpu:
        kernel, rays = free_kernel(kinds, True, True), [origins, directions, limits]
        launch_rays(kernel, bundles.packet_count, RUN_LENGTH, bundles, rays, meshes, instances, top, None, out, device)
    elif origins is None:
        trace_free(bundles, directions, meshes, instances, top, **options)
    else:
        trace_rays(bundles, origins, directions, meshes, instances, top, **options)
    return out
