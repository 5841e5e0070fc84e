"""trace.pixel_rays: the visibility record a pixel at a time, for CUDA: view rows and tables -> visibility record.

On a GPU the 32 lanes of a warp are the packet: a thread takes a pixel, a warp 8 x 4 neighbours of a tile. The trees are those of the tile
packets, not `wp.Mesh` and `wp.Bvh`: one build and one refit serve both devices, and what the record promises (hits before the near end
hide nothing, back faces are looked through, ties go to the lower rank, layers are peeled in order) needs a traversal of our own.
"""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.launch import LANE_OPTIONS, launch
from hdwarp.tables.structs import (
    TILE_HEIGHT,
    TILE_WIDTH,
    ClipPlane,
    InstanceColumns,
    MeshColumns,
    Peel,
    TopLevel,
    ViewRow,
    Visibility,
)
from hdwarp.trace.found import Found, Variant, WorldRay, nothing_found
from hdwarp.trace.jobs import SceneKinds, find_view
from hdwarp.trace.nodes import STACK
from hdwarp.trace.pixels import CLIP_SLACK, DEPTH_SLACK, clip_keys
from hdwarp.trace.rays import narrow, tile_origin
from hdwarp.trace.traversal import trace_world_ray

SCALAR_OPTIONS: dict[str, object] = {}
"""``module_options`` of kernels for CUDA: Warp unrolls its loops over the eight boxes of a node, so that they live in registers."""

PIXELS = wp.constant(128)  # of a tile


@wp.func
def at_pixel(f: wp.vec3d, x: wp.int32, y: wp.int32) -> wp.float32:
    return wp.float32(f[0] + f[1] * wp.float64(x) + f[2] * wp.float64(y))


@wp.func
def cut_ray(view: ViewRow, planes: wp.array[ClipPlane], x: wp.int32, y: wp.int32, found: Found) -> Found:
    """Narrow a pixel's clip range to what the view's clip planes leave of its ray: see `pixels.cut_pixels`."""
    orthographic = view.orthographic != 0
    for i in range(view.plane_count):
        here = at_pixel(planes[view.first_plane + i].offset, x, y)
        along = at_pixel(planes[view.first_plane + i].rate, x, y)
        a, b = wp.where(orthographic, -along, here), wp.where(orthographic, here, along)  # kept: a key + b >= 0
        bound = -b / a
        slack = CLIP_SLACK * wp.abs(bound)
        found.near_key = wp.where(a < 0.0 and bound + slack < found.near_key, bound + slack, found.near_key)
        found.key = wp.where(a > 0.0 and bound - slack > found.key, bound - slack, found.key)
        found.key = wp.where(a == 0.0 and b < 0.0, wp.inf, found.key)
    return found


@wp.func
def start_depth(near_key: wp.float32, orthographic: wp.bool) -> wp.float32:
    """t before which nothing can be seen."""
    t = wp.where(orthographic, -near_key, wp.where(near_key > 0.0, 1.0 / near_key, wp.inf))
    return t - DEPTH_SLACK * wp.abs(t)


@functools.cache
def pixel_kernel(kinds: SceneKinds, affine: bool, peel: bool = False, lanes: bool = False) -> wp.Kernel:
    """The kernel for scenes of these kinds; ``affine`` and ``peel`` as for `packet.trace_kernel`. ``lanes``: written for the CPU."""
    HAS_MESH, HAS_SHAPES, HAS_SWEPT, AFFINE, PEEL, LANES = kinds.mesh, kinds.shapes, kinds.swept, affine, peel, lanes

    @wp.kernel(enable_backward=False, module="unique", module_options=LANE_OPTIONS if lanes else SCALAR_OPTIONS)
    def trace_pixels(
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
        tile_job = job // PIXELS
        pixel = job - tile_job * PIXELS
        if PEEL:
            if marked.tiles[tile_job] == 0:
                return
        view = views[find_view(views, view_count, tile_job)]
        tile = tile_job - view.first_tile
        if view.masked != 0 or view.rays != 0 or tile < 0 or tile >= view.tiles_x * view.tiles_y:
            return
        # Four warps a tile, 8 x 4 pixels each.
        x = (tile % view.tiles_x) * TILE_WIDTH + ((pixel >> 5) & 1) * 8 + (pixel & 7)
        y = (tile // view.tiles_x) * TILE_HEIGHT + (pixel >> 6) * 4 + ((pixel >> 3) & 3)
        record = view.record + y * TILE_WIDTH * view.tiles_x + x
        x += view.tile_x0 * TILE_WIDTH
        y += view.tile_y0 * TILE_HEIGHT
        inside = x >= view.x0 and x < view.x0 + view.width and y >= view.y0 and y < view.y0 + view.height

        orthographic = view.orthographic != 0
        ray = WorldRay()
        ray.origin = tile_origin(view, x, y)
        ray.exact_direction = view.direction + view.direction_dx * wp.float64(x) + view.direction_dy * wp.float64(y)
        ray.direction = narrow(ray.exact_direction)
        ray.forward = view.forward
        ray.orthographic = orthographic
        ray.hides = view.hides
        ray.culls = view.culls
        stretch = wp.where(view.radial != 0, wp.length(ray.direction), 1.0)
        near_key, far_key = clip_keys(view, stretch, orthographic)
        found = nothing_found(near_key, far_key)
        if view.plane_count > 0:
            found = cut_ray(view, planes, x, y, found)
        if PEEL:
            owner = out.instance[record]
            if marked.pixels[record] == 0 or owner < 0:
                return
            if out.key[record] <= found.near_key:
                found.near_key = out.key[record]
                source = instances.source[owner]
                found.behind_rank = instances.rank[source]
                if instances.geometry[source] >= 0:
                    found.behind_triangle = meshes.slot_triangle[out.slot[record]]
        variant = Variant()
        variant.mesh = HAS_MESH
        variant.shapes = HAS_SHAPES
        variant.swept = HAS_SWEPT
        variant.orthographic = AFFINE
        variant.lanes = LANES
        variant.any_hit = False
        variant.peel = PEEL
        stack = wp.zeros(shape=(STACK,), dtype=wp.int32)
        stack_depth = wp.zeros(shape=(STACK,), dtype=wp.float32)
        if inside:
            near = start_depth(found.near_key, orthographic)
            root, other = view.root, view.global_root
            found = trace_world_ray(meshes, instances, top, root, other, view.global_offset, ray, near, variant, stack, stack_depth, found)
        out.slot[record] = found.slot
        out.instance[record] = found.instance
        out.key[record] = found.key

    return trace_pixels


def trace_by_pixels(
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
    """What `packet.trace` does, a thread a pixel: it calls this on CUDA. Right on the CPU too, and slow there."""
    inputs = [views, view_count, meshes, instances, top, planes, Peel() if peel is None else peel]
    kernel = pixel_kernel(kinds, affine, peel is not None)
    launch(kernel, PIXELS * tile_count_total, inputs, [visibility], device=device, grain=1024)
