"""aovs.pixel_runs: how resolve kernels deal out pixels: a job is a stretch of one image row, taken in blocks of neighbouring pixels.

On the CPU a block has 16 pixels and starts where the tiles of the full image do, so that it lies in one piece in the visibility record;
loops over its *lanes* become SIMD code. On CUDA a job is one pixel. Both compute a pixel from its coordinates alone: same bits.
"""

import functools
from typing import Any

import warp as wp

from hdwarp.launch import LANE_OPTIONS
from hdwarp.tables.structs import InstanceColumns, ViewRow

CPU_LANES = 16
NO_INSTANCE = 2147483647  # above every instance row: the lowest row of a block that sees nothing
_CPU_BLOCKS = 8  # a job: 128 pixels. What a job sets up once (view, object-space rays of its row) is then 1/8 of a block's business


def lane_count(device: wp.Device | str) -> int:
    """Pixels a block has on ``device``."""
    return CPU_LANES if wp.get_device(device).is_cpu else 1


def lane_options(lanes: int) -> dict[str, object]:
    """Compiler options of a kernel over blocks of ``lanes`` pixels."""
    return LANE_OPTIONS if lanes > 1 else {"max_unroll": 0}


def block_count(lanes: int) -> int:
    """Blocks a job takes."""
    return _CPU_BLOCKS if lanes > 1 else 1


def jobs_per_row(width: int, lanes: int) -> int:
    """Jobs that cover a row of ``width`` pixels wherever it starts on the 16-pixel grid."""
    return -(-((width + 30) // 16 * 16) // (lanes * block_count(lanes)))


@wp.struct
class PixelRun:
    """A job's pixels: ``blocks`` blocks, 0 when there is nothing to do. The record is 16-pixel aligned, the image need not be."""

    view: wp.int32
    y: wp.int32  # of the full image
    x: wp.int32  # of the full image, lane 0 of block 0
    left: wp.int32  # first pixel inside the image
    right: wp.int32  # first pixel beyond it
    record: wp.int32  # visibility record of lane 0
    output: wp.int32  # output pixel of lane 0
    blocks: wp.int32


@wp.func
def pixel_run(views: wp.array[ViewRow], job: wp.int32, lanes: wp.int32, blocks: wp.int32, jobs: wp.int32, rows: wp.int32) -> PixelRun:
    """Job ``job`` of images that have at most ``rows`` rows of ``jobs`` jobs."""
    run = PixelRun()
    line = job // jobs
    run.view = line // rows
    row = line - run.view * rows
    start = (job - line * jobs) * lanes * blocks  # pixels from the record's left edge
    height, width = views[run.view].height, views[run.view].width
    pitch = 16 * views[run.view].tiles_x
    if views[run.view].masked == 0 and row < height and start < pitch:
        tile_x0, tile_y0 = views[run.view].tile_x0, views[run.view].tile_y0
        run.x = 16 * tile_x0 + start
        run.y = views[run.view].y0 + row
        run.left = views[run.view].x0
        run.right = run.left + width
        run.record = views[run.view].record + (run.y - 8 * tile_y0) * pitch + start
        run.output = views[run.view].output + row * width + run.x - run.left
        run.blocks = wp.min((wp.min(pitch - start, run.right - run.x) + lanes - 1) // lanes, blocks)
    return run


_STORE = """
    const int lanes = sizeof(a.c) / sizeof(a.c[0]);
    if (low <= 0 && high >= lanes)
        for (int i = 0; i < lanes; ++i) { BODY }
    else
        for (int i = low; i < high; ++i) { BODY }
"""
# Stores of a block's lanes low..high - 1 from output pixel ``pixel`` on. Native: Warp indexes with a stride known only when the kernel
# runs, which makes sixteen guarded stores of what is one.


def _store(target: str, *values: str) -> str:
    return _STORE.replace("BODY", " ".join(f"{target.replace('#', str(k))} = {value};" for k, value in enumerate(values)))


@wp.func_native(_store("out.data[pixel + i]", "a.c[i]"))
def store_scalars(a: Any, low: wp.int32, high: wp.int32, pixel: wp.int32, out: wp.array[Any]): ...


@wp.func_native(_store("out.data[pixel + i].c[#]", "a.c[i]", "b.c[i]"))
def store_pairs(a: Any, b: Any, low: wp.int32, high: wp.int32, pixel: wp.int32, out: wp.array[Any]): ...


@wp.func_native(_store("out.data[pixel + i].c[#]", "a.c[i]", "b.c[i]", "c.c[i]"))
def store_triples(a: Any, b: Any, c: Any, low: wp.int32, high: wp.int32, pixel: wp.int32, out: wp.array[Any]): ...


@wp.func_native(_store("out.data[pixel + i].c[#]", "a.c[i]", "b.c[i]", "c.c[i]", "d.c[i]"))
def store_quads(a: Any, b: Any, c: Any, d: Any, low: wp.int32, high: wp.int32, pixel: wp.int32, out: wp.array[Any]): ...


@wp.func_native(
    "if (width == 3) {"
    + _store("out.data[3 * (pixel + i) + #]", "a.c[i]", "b.c[i]", "c.c[i]")
    + "} else if (width == 2) {"
    + _store("out.data[2 * (pixel + i) + #]", "a.c[i]", "b.c[i]")
    + """} else
        for (int i = low; i < high; ++i) {
            const float all[4] = {a.c[i], b.c[i], c.c[i], d.c[i]};
            for (int k = 0; k < width; ++k)
                out.data[width * (pixel + i) + k] = all[k];
        }
"""
)
def store_components(
    a: Any, b: Any, c: Any, d: Any, width: wp.int32, low: wp.int32, high: wp.int32, pixel: wp.int32, out: wp.array[wp.float32]
):
    """The first ``width`` of four numbers, 1 to 4."""


# Loads whose addresses are plainly base + 4 i: half as many gathers as where Warp multiplies by a stride known when the kernel runs.
@wp.func_native("return words.data[i];")
def word_at(words: wp.array[wp.uint32], i: wp.int32) -> wp.uint32: ...


@wp.func_native("return numbers.data[i];")
def number_at(numbers: wp.array[wp.float32], i: wp.int32) -> wp.float32: ...


@wp.func_native("return wholes.data[i];")
def whole_at(wholes: wp.array[wp.int32], i: wp.int32) -> wp.int32: ...


_LOAD = """
    wp::mat_t<WIDTH, LANES, SCALAR> columns;
    if (low <= 0 && high >= LANES)
        for (int i = 0; i < LANES; ++i) { BODY }
    else
        for (int i = low; i < high; ++i) { BODY }
    return columns;
"""
# The body is written out component by component: of two loops, the compiler takes the inner one, and scatters.


_C_NAMES = {wp.float32: "float", wp.float64: "double", wp.int32: "int"}


@functools.cache
def load_columns(lanes: int, width: int, scalar: type = wp.float32) -> wp.Function:
    """A function that reads what `store_scalars`, `store_pairs` or `store_triples` wrote, the plane given as its numbers: a matrix
    ``(width, lanes)``, 0 outside low..high - 1. ``scalar``: wp.float32, wp.float64 or wp.int32."""
    body = " ".join(f"columns.data[{k}][i] = plane.data[{width} * (pixel + i) + {k}];" for k in range(width))
    code = _LOAD.replace("BODY", body).replace("WIDTH", str(width)).replace("LANES", str(lanes)).replace("SCALAR", _C_NAMES[scalar])
    columns = wp.types.matrix(shape=(width, lanes), dtype=scalar)

    @wp.func_native(code)
    def load(plane: wp.array[scalar], low: wp.int32, high: wp.int32, pixel: wp.int32) -> columns: ...

    return load


@wp.struct
class Ray:
    """The rays of one image row in some frame: at pixel x of the full image, origin + x * origin_dx and direction + x * direction_dx."""

    origin: wp.vec3d
    origin_dx: wp.vec3d
    direction: wp.vec3d
    direction_dx: wp.vec3d


@wp.func
def world_ray(view: ViewRow, y: wp.int32) -> Ray:
    """In the frame of the view's world; the view's coefficients evaluated in double."""
    ray = Ray()
    row = wp.float64(y)
    ray.origin_dx = view.origin_dx
    ray.direction_dx = view.direction_dx
    ray.origin = view.origin + view.origin_dy * row
    ray.direction = view.direction + view.direction_dy * row
    return ray


@wp.func
def sensor_frame(view: ViewRow) -> Ray:
    """The frame that given rays are in: (a, b, c) there is origin + a origin_dx + b direction_dx + c direction in the view's world, and
    with what `object_ray` makes of this, in object space."""
    frame = Ray()
    frame.origin = view.eye
    frame.origin_dx = view.direction_dx
    frame.direction_dx = view.direction_dy
    frame.direction = view.direction
    return frame


@wp.func
def point_within(frame: Ray, a: wp.float64, b: wp.float64, c: wp.float64) -> wp.vec3d:
    """The point (a, b, c) of a `sensor_frame`, in the space that the frame is given in."""
    return frame.origin + frame.origin_dx * a + frame.direction_dx * b + frame.direction * c


@wp.func
def way_within(frame: Ray, a: wp.float64, b: wp.float64, c: wp.float64) -> wp.vec3d:
    """The same of a direction."""
    return frame.origin_dx * a + frame.direction_dx * b + frame.direction * c


@wp.struct
class Line:
    """The ray of one pixel."""

    origin: wp.vec3d
    direction: wp.vec3d


@wp.func
def line_at(ray: Ray, x: wp.float64) -> Line:
    """That of pixel ``x`` of the full image."""
    line = Line()
    line.origin = ray.origin + ray.origin_dx * x
    line.direction = ray.direction + ray.direction_dx * x
    return line


@wp.func
def given_line(frame: Ray, x: wp.float64, y: wp.float64, z: wp.float64, to_x: wp.float64, to_y: wp.float64, to_z: wp.float64) -> Line:
    """That of a given ray, origin and direction in the `sensor_frame`."""
    line = Line()
    line.origin = point_within(frame, x, y, z)
    line.direction = way_within(frame, to_x, to_y, to_z)
    return line


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
