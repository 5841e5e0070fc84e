"""aovs.pixel_runs: how resolve kernels deal out pixels: one job is a run of neighbouring pixels of one image row.

On the CPU a run has 16 pixels and starts where the tiles of the full image do, so that a run is a stretch of the visibility record and
loops over its *lanes* become SIMD code. On CUDA a run is one pixel. Both compute a pixel from the same 16-pixel anchor: same bits.
"""

from __future__ import annotations

import warp as wp

from hdwarp.launch import LANE_OPTIONS
from hdwarp.tables.structs import InstanceColumns, ViewRow, Visibility

CPU_LANES = 16
SPHERE_OR_CUBE = 1  # kinds from here on are analytic shapes


def lane_count(device: wp.Device | str) -> int:
    """Pixels a job takes on ``device``."""
    return CPU_LANES if wp.get_device(device).is_cpu else 1


def lane_options(lanes: int) -> dict[str, object]:
    """Compiler options of a kernel over runs of ``lanes`` pixels."""
    return LANE_OPTIONS if lanes > 1 else {"max_unroll": 0}


def runs_per_row(width: int, lanes: int) -> int:
    """Runs that cover a row of ``width`` pixels wherever it starts on the 16-pixel grid."""
    return (width + 30) // 16 * (16 // lanes)


@wp.struct
class PixelRun:
    """Where a job's pixels lie. Lanes ``low`` to ``high`` (exclusive) are inside the image; none is when there is nothing to do."""

    view: wp.int32
    anchor: wp.int32  # x of the full image, a multiple of 16
    lane0: wp.int32  # first lane's distance from the anchor
    y: wp.int32
    record: wp.int32  # visibility record of lane 0
    output: wp.int32  # output pixel of lane 0
    low: wp.int32
    high: wp.int32


@wp.func
def pixel_run(views: wp.array[ViewRow], job: wp.int32, lanes: wp.int32, runs: wp.int32, rows: wp.int32) -> PixelRun:
    """Run ``job`` of images that have at most ``rows`` rows of ``runs`` runs."""
    run = PixelRun()
    line = job // runs
    run.view = line // rows
    row = line - run.view * rows
    view = views[run.view]
    start = (job - line * runs) * lanes  # pixels from the record's left edge
    if view.masked == 0 and row < view.height and start < 16 * view.tiles_x:
        x = 16 * view.tile_x0 + start
        run.anchor = 16 * view.tile_x0 + (start // 16) * 16
        run.lane0 = x - run.anchor
        run.y = view.y0 + row
        run.record = view.record + (run.y - 8 * view.tile_y0) * (16 * view.tiles_x) + start
        run.output = view.output + row * view.width + x - view.x0
        run.low = wp.max(view.x0 - x, 0)
        run.high = wp.min(view.x0 + view.width - x, lanes)
    return run


@wp.struct
class Ray:
    """The rays of a run in some frame: at lane s from the anchor, origin + s * origin_dx and direction + s * direction_dx."""

    origin: wp.vec3d
    origin_dx: wp.vec3d
    direction: wp.vec3d
    direction_dx: wp.vec3d


@wp.func
def world_ray(view: ViewRow, anchor: wp.int32, y: wp.int32) -> Ray:
    """In the frame of the view's world; the view's single precision rows evaluated in double."""
    ray = Ray()
    x, row = wp.float64(anchor), wp.float64(y)
    ray.origin_dx = wp.vec3d(view.origin_dx)
    ray.direction_dx = wp.vec3d(view.direction_dx)
    ray.origin = view.origin + ray.origin_dx * x + wp.vec3d(view.origin_dy) * row
    ray.direction = wp.vec3d(view.direction) + ray.direction_dx * x + wp.vec3d(view.direction_dy) * row
    return ray


@wp.func
def object_ray(ray: Ray, global_offset: wp.vec3d, instances: InstanceColumns, row: wp.int32) -> Ray:
    """``ray`` in the object space of an instance. Positions are subtracted before anything is multiplied: exact far from the origin."""
    inside = Ray()
    object_from_world = wp.inverse(wp.mat33d(instances.world_from_object[row]))
    shift = ray.origin - instances.translation[row]
    if instances.world[row] < 0:
        shift += global_offset
    inside.origin = object_from_world * shift
    inside.origin_dx = object_from_world * ray.origin_dx
    inside.direction = object_from_world * ray.direction
    inside.direction_dx = object_from_world * ray.direction_dx
    return inside


@wp.func
def visible_instance(visibility: Visibility, run: PixelRun, lane: wp.int32) -> wp.int32:
    """Instance row that ``lane`` sees, -1 for a miss and outside the image."""
    row = visibility.instance[run.record + lane]
    return wp.where(lane >= run.low and lane < run.high, row, -1)
