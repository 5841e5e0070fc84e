"""trace.view_rays: views whose rays are given one by one -> their part of the visibility record: in packets from one point, or singly."""

from __future__ import annotations

import functools

import numpy as np
import warp as wp

from hdwarp.launch import LANE_OPTIONS, launch
from hdwarp.tables.structs import (
    GIVEN,
    SCATTERED,
    TILE_HEIGHT,
    TILE_WIDTH,
    ClipPlane,
    InstanceColumns,
    MeshColumns,
    Peel,
    RayColumns,
    TopLevel,
    ViewRow,
    Visibility,
)
from hdwarp.trace.bundles import RayBundle, RayBundles, RayHits, limit_keys, packets_of
from hdwarp.trace.found import Found, Variant, WorldRay, nothing_found
from hdwarp.trace.free import trace_free
from hdwarp.trace.jobs import SceneKinds, find_view
from hdwarp.trace.nodes import STACK
from hdwarp.trace.pixel_rays import PIXELS, SCALAR_OPTIONS, start_depth
from hdwarp.trace.pixels import CLIP_SLACK
from hdwarp.trace.rays import narrow, widen
from hdwarp.trace.traversal import trace_world_ray


@wp.func
def in_world(view: ViewRow, v: wp.vec3f) -> wp.vec3d:
    """A direction of the sensor's frame in the frame of the view's world."""
    return view.direction_dx * wp.float64(v[0]) + view.direction_dy * wp.float64(v[1]) + view.direction * wp.float64(v[2])


@wp.func
def planar_range(near: wp.float32, far: wp.float32, start: wp.float64, rate: wp.float64) -> wp.vec2f:
    """What a range of planar depth leaves of a ray whose depth at t is start + t rate."""
    low, high = (wp.float64(near) - start) / rate, (wp.float64(far) - start) / rate
    inside = start >= wp.float64(near) and start <= wp.float64(far)
    level = wp.vec2f(0.0, wp.where(inside, wp.inf, -1.0))
    forward = wp.vec2f(wp.float32(low), wp.float32(high))
    return wp.where(rate == wp.float64(0.0), level, wp.where(rate > wp.float64(0.0), forward, wp.vec2f(forward[1], forward[0])))


@wp.func
def cut_given_ray(view: ViewRow, planes: wp.array[ClipPlane], origin: wp.vec3f, direction: wp.vec3f, found: Found) -> Found:
    """Narrow the range of a ray (in the sensor's frame; unit in the world) to what the view's clip planes leave."""
    for i in range(view.plane_count):
        offset, rate = planes[view.first_plane + i].offset, planes[view.first_plane + i].rate
        normal = wp.vec3f(wp.float32(rate[1]), wp.float32(rate[2]), wp.float32(rate[0]))
        a, b = wp.float32(offset[0]) + wp.dot(normal, origin), wp.dot(normal, direction)  # kept: a key + b >= 0
        bound = -b / a
        slack = CLIP_SLACK * wp.abs(bound)
        found.near_key = wp.where(a < 0.0 and bound + slack < found.near_key, bound + slack, found.near_key)
        found.key = wp.where(a > 0.0 and bound - slack > found.key, bound - slack, found.key)
        found.key = wp.where(a == 0.0 and b < 0.0, wp.inf, found.key)
    return found


@functools.cache
def view_ray_kernel(kinds: SceneKinds, peel: bool, lanes: bool) -> wp.Kernel:
    """The kernel for scenes of these kinds; ``peel`` as for `packet.trace_kernel`. ``lanes``: made for the CPU, where a job takes a tile;
    else for CUDA, where it takes a pixel (and right on both)."""
    HAS_MESH, HAS_SHAPES, HAS_SWEPT, PEEL, LANES = kinds.mesh, kinds.shapes, kinds.swept, peel, lanes
    RUN = int(PIXELS) if lanes else 1
    PARTS = int(PIXELS) // RUN

    @wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS if lanes else SCALAR_OPTIONS)
    def trace_view_rays(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        view_count: wp.int32,
        least: wp.int32,  # GIVEN: all views with given rays; SCATTERED: those that packets are not for
        rays: RayColumns,
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
        tile_job = job // PARTS
        if PEEL:
            if marked.tiles[tile_job] == 0:
                return
        which = find_view(views, view_count, tile_job)
        if views[which].masked != 0 or views[which].rays < least:
            return
        view = views[which]
        tile = tile_job - view.first_tile
        if tile >= view.tiles_x * view.tiles_y:
            return
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        stack_depth = wp.zeros(shape=(STACK,), dtype=wp.float32)
        variant = Variant()
        variant.mesh = HAS_MESH
        variant.shapes = HAS_SHAPES
        variant.swept = HAS_SWEPT
        variant.orthographic = False
        variant.lanes = LANES
        variant.any_hit = False
        variant.peel = PEEL
        for i in range(RUN):
            pixel = (job - tile_job * PARTS) * RUN + i
            x = (tile % view.tiles_x) * TILE_WIDTH + pixel % TILE_WIDTH
            y = (tile // view.tiles_x) * TILE_HEIGHT + pixel // TILE_WIDTH
            record = view.record + y * TILE_WIDTH * view.tiles_x + x
            wanted = wp.bool(True)
            if PEEL:
                wanted = marked.pixels[record] != 0 and out.instance[record] >= 0
            if wanted:
                found = nothing_found(0.0, wp.inf)
                if x < view.width and y < view.height:
                    number = view.first_ray + y * view.width + x
                    origin, direction = rays.origins[number], rays.directions[number]
                    ray = WorldRay()
                    ray.hides = view.hides
                    ray.culls = view.culls
                    ray.origin = view.eye + in_world(view, origin)
                    along = in_world(view, direction)
                    size = wp.length(along)  # 1 but for scaled cameras
                    if size > wp.float64(0.0) and wp.isfinite(ray.origin) and wp.isfinite(size):
                        ray.exact_direction = along / size
                        ray.direction = narrow(ray.exact_direction)
                        limits = wp.vec2f(view.near, view.far)
                        if view.radial == 0:
                            start = wp.dot(view.origin_dx, ray.origin - view.eye)
                            limits = planar_range(view.near, view.far, start, wp.dot(view.origin_dx, ray.exact_direction))
                        near_key, far_key = limit_keys(limits[0], limits[1], 1.0)
                        found = nothing_found(near_key, far_key)
                        if view.plane_count > 0:
                            found = cut_given_ray(view, planes, origin, narrow(widen(direction) / size), found)
                        if PEEL:
                            owner = out.instance[record]
                            if out.key[record] <= found.near_key:
                                found.near_key = out.key[record]
                                source = instances.source[owner]
                                found.behind_rank = instances.rank[source]
                                if instances.geometry[source] >= 0:
                                    found.behind_triangle = meshes.slot_triangle[out.slot[record]]
                        near = start_depth(found.near_key, False)
                        if found.key <= found.near_key:
                            root, other = view.root, view.global_root
                            found = trace_world_ray(
                                meshes, instances, top, root, other, view.global_offset, ray, near, variant, stack, stack_depth, found
                            )
                out.slot[record] = found.slot
                out.instance[record] = found.instance
                out.key[record] = found.key

    return trace_view_rays


@wp.kernel(enable_backward=False, module="unique")
def _bundles_of_views(views: wp.array[ViewRow], packets: wp.int32, tile_height: wp.int32, out: wp.array[RayBundle]):
    """A bundle a view; masked where packets are not for its rays. One at a pose that is none looks into no tree."""
    i = wp.tid()
    view = views[i]
    bundle = RayBundle()
    bundle.root = -1
    bundle.global_root = -1
    bundle.turn = wp.identity(n=3, dtype=wp.float64)
    turn = wp.matrix_from_cols(view.direction_dx, view.direction_dy, view.direction)
    volume = wp.abs(wp.determinant(turn))
    if wp.isfinite(view.eye) and volume > wp.float64(1.0e-30) and volume < wp.float64(1.0e30):
        bundle.origin = view.eye
        bundle.turn = turn
        bundle.root = view.root
        bundle.global_root = view.global_root
    bundle.global_offset = view.global_offset
    bundle.near = view.near
    bundle.far = view.far
    bundle.first_ray = view.first_ray
    bundle.columns = view.width
    bundle.rows = view.height
    bundle.tile_height = tile_height
    bundle.first_packet = i * packets
    bundle.output = view.record
    bundle.pitch = TILE_WIDTH * view.tiles_x
    bundle.masked = wp.where(view.masked == 0 and view.rays == GIVEN, 0, 1)
    bundle.hides = view.hides
    bundle.culls = view.culls
    out[i] = bundle


class ViewRayTracer:
    """Traces the given rays of a list of views; made once, with the bundles it works on."""

    def __init__(self, view_count: int, height: int, width: int, tile_count: int, device: wp.Device) -> None:
        """All views are ``height`` x ``width`` pixels, (0, 0) the first."""
        self._view_count, self._tile_count, self._device = view_count, tile_count, device
        self._tile_height, self._packets = packets_of((height, width))
        rows = wp.array(np.zeros(max(view_count, 1), RayBundle.numpy_dtype()), dtype=RayBundle, device=device)
        self._bundles = RayBundles(rows, view_count, view_count * self._packets, view_count * height * width)

    def trace(
        self,
        views: wp.array,
        rays: RayColumns,
        meshes: MeshColumns,
        instances: InstanceColumns,
        top: TopLevel,
        visibility: Visibility,
        *,
        kinds: SceneKinds,
        planes: wp.array,
        peel: Peel | None = None,
        singly: bool = False,
    ) -> None:
        """Fill the visibility record of the views with given rays that are not masked; see `packet.trace`. On the CPU rays that start at
        their sensor go in packets; all others, and with ``singly`` or ``peel`` all, one by one. Device work only.

        Keys are 1 / distance [m]. Pixels without a ray see nothing; a near end that is not in front of the far one leaves nothing to see.
        """
        device, tables = self._device, (meshes, instances, top)
        singly = singly or peel is not None or device.is_cuda
        if not singly:
            inputs = [views, self._packets, self._tile_height]
            wp.launch(_bundles_of_views, dim=self._view_count, inputs=inputs, outputs=[self._bundles.rows], device=device)
            hits = RayHits()
            hits.slot, hits.instance, hits.key = visibility.slot, visibility.instance, visibility.key
            trace_free(self._bundles, rays.directions, *tables, hits, kinds=kinds, device=device)
        kernel = view_ray_kernel(kinds, peel is not None, device.is_cpu)
        inputs = [views, self._view_count, GIVEN if singly else SCATTERED, rays, *tables, planes, Peel() if peel is None else peel]
        jobs = 1 if device.is_cpu else int(PIXELS)
        launch(kernel, jobs * self._tile_count, inputs, [visibility], device=device, grain=4 * jobs)


__all__ = ["ViewRayTracer", "view_ray_kernel"]
