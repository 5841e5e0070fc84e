"""trace.single: rays one by one, any origins and directions: bundles and tables -> what each ray hits."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.launch import LANE_OPTIONS, launch
from hdwarp.tables.structs import InstanceColumns, MeshColumns, TopLevel
from hdwarp.trace.bundles import RayBundle, RayBundles, RayHits, bundle_of_ray, is_ray, limit_keys, near_unit, turn_direction
from hdwarp.trace.found import Variant, WorldRay, nothing_found
from hdwarp.trace.jobs import SceneKinds
from hdwarp.trace.nodes import STACK
from hdwarp.trace.pixel_rays import SCALAR_OPTIONS
from hdwarp.trace.pixels import DEPTH_SLACK
from hdwarp.trace.rays import widen
from hdwarp.trace.traversal import trace_world_ray

RUN_LENGTH = 16  # rays that a CPU job takes: setting up the stack once for each of them would cost as much as a short ray


@functools.cache
def ray_kernel(kinds: SceneKinds, any_hit: bool, lanes: bool) -> wp.Kernel:
    """The kernel for scenes of these kinds. ``lanes``: made for the CPU, else for CUDA (and right on both)."""
    HAS_MESH, HAS_SHAPES, HAS_SWEPT, ANY_HIT, LANES = kinds.mesh, kinds.shapes, kinds.swept, any_hit, lanes
    RUN = RUN_LENGTH if lanes else 1

    @wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS if lanes else SCALAR_OPTIONS)
    def trace_single_rays(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        bundles: wp.array[RayBundle],
        bundle_count: wp.int32,
        ray_count: wp.int32,
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
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        stack_depth = wp.zeros(shape=(STACK,), dtype=wp.float32)
        variant = Variant()
        variant.mesh = HAS_MESH
        variant.shapes = HAS_SHAPES
        variant.swept = HAS_SWEPT
        variant.orthographic = False
        variant.lanes = LANES
        variant.any_hit = ANY_HIT
        variant.peel = False
        which = bundle_of_ray(bundles, bundle_count, job * RUN)
        for output in range(job * RUN, wp.min(job * RUN + RUN, ray_count)):
            while which + 1 < bundle_count and bundles[wp.min(which + 1, bundle_count - 1)].output <= output:
                which += 1
            if bundles[which].masked == 0:
                number = bundles[which].first_ray + output - bundles[which].output
                near = bundles[which].near
                far = bundles[which].far
                if limits.shape[0] > 0:
                    near = limits[number][0]
                    far = limits[number][1]
                ray = WorldRay()
                ray.hides = bundles[which].hides
                ray.culls = bundles[which].culls
                ray.origin = bundles[which].origin
                if origins.shape[0] > 0:
                    ray.origin = ray.origin + bundles[which].turn * widen(origins[number])
                length = wp.float32(0.0)
                found = nothing_found(0.0, wp.inf)
                if wp.isfinite(ray.origin) and is_ray(directions[number]):
                    ray.direction = near_unit(turn_direction(bundles[which].turn, directions[number]))
                    ray.exact_direction = widen(ray.direction)
                    length = wp.length(ray.direction)
                    near_key, far_key = limit_keys(near, far, length)
                    start = wp.where(near > 0.0, near / length, 0.0)
                    found = trace_world_ray(
                        meshes,
                        instances,
                        top,
                        bundles[which].root,
                        bundles[which].global_root,
                        bundles[which].global_offset,
                        ray,
                        start - DEPTH_SLACK * start,
                        variant,
                        stack,
                        stack_depth,
                        nothing_found(near_key, far_key),
                    )
                if hits.slot.shape[0] > 0:
                    hits.slot[output] = found.slot
                    hits.instance[output] = found.instance
                    hits.t[output] = wp.where(found.slot >= 0, length / found.key, wp.inf)
                if blocked.shape[0] > 0:
                    blocked[output] = found.slot >= 0

    return trace_single_rays


def trace_rays(
    bundles: RayBundles,
    origins: wp.array | None,
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
    """What rays from anywhere to anywhere hit, one by one: for rays without a common origin, or without order (mirrors, ambient occlusion).

    ``origins``, ``directions``: (rays,) vec3f in the frame of the bundle; no origins: all rays start at their bundle's. ``limits``:
    (rays,) vec2f, near and far [m] of each ray in place of its bundle's. The range includes both ends, with 1e-6 of relative slack;
    what lies outside it hides nothing. ``any_hit``: stop at the first hit found, which need not be the nearest.
    ``hits`` (made if neither it nor ``blocked`` is given) and ``blocked``, (rays of all bundles,) bool, take the results.
    Of hits at the same distance the lower instance rank wins, then the lower triangle. Results do not depend on the number of threads.
    """
    device = wp.get_device(device)
    kernel, run = ray_kernel(kinds, any_hit, device.is_cpu), RUN_LENGTH if device.is_cpu else 1
    rays = [origins, directions, limits]
    return launch_rays(kernel, bundles.ray_count, run, bundles, rays, meshes, instances, top, hits, blocked, device)


def launch_rays(
    kernel: wp.Kernel,
    count: int,
    run: int,
    bundles: RayBundles,
    rays: list[wp.array | None],
    meshes: MeshColumns,
    instances: InstanceColumns,
    top: TopLevel,
    hits: RayHits | None,
    blocked: wp.array | None,
    device: wp.Device,
) -> RayHits | None:
    """Launch a kernel over ``count`` rays or packets, ``run`` of them a job; the hits, made here if there is no place for results."""
    if hits is None and blocked is None:
        hits = bundles.hits()
    inputs = [bundles.rows, bundles.count, count, *rays, meshes, instances, top, blocked]
    launch(kernel, -(-count // run), inputs, [RayHits() if hits is None else hits], device=device, grain=2)
    return hits
