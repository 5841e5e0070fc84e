"""shade.headlight: colour without lights: the base colour lit from the camera, as Hydra's renderers show an unlit stage."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, load_columns, pixel_run, store_quads, world_ray
from hdwarp.shade.encode import SrgbTables, rgba_bytes, srgb_byte
from hdwarp.tables.structs import ViewRow

GREY = 0.5  # base colour of surfaces with neither material nor displayColor, as in hdEmbree


@wp.struct
class ColourPlanes:
    """Output arrays, flat over pixels; null where nobody asks."""

    color: wp.array[wp.vec4f]
    rgba8: wp.array[wp.vec4ub]
    albedo: wp.array[wp.vec4f]


@wp.struct
class ColourClears:
    """What a pixel that sees nothing holds."""

    color: wp.vec4f
    rgba8: wp.vec4ub
    albedo: wp.vec4f


@functools.cache
def colour_kernel(lanes: int, given: bool = False) -> wp.Kernel:
    """color = exposure * (base * |N . V| + emissive), alpha 1. ``given``: of views whose rays are given, else of those with lenses.

    base: the material's diffuse colour; the displayColor primvar where the material says so or where there is no material, else grey.
    N is the shading normal, V points back along the ray. Vector arrays that are read come flat, as SIMD gathers want them.
    """
    LANES, BLOCKS, GIVEN = lanes, block_count(lanes), given
    load_triples = load_columns(lanes, 3)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)

    @wp.func
    def store_clears(clear: ColourClears, low: wp.int32, high: wp.int32, pixel: wp.int32, out: ColourPlanes):
        """A block in which no pixel sees anything."""
        if out.albedo:
            c = clear.albedo
            store_quads(floats(c[0]), floats(c[1]), floats(c[2]), floats(c[3]), low, high, pixel, out.albedo)
        if out.rgba8:
            r, g, b = ints(wp.int32(clear.rgba8[0])), ints(wp.int32(clear.rgba8[1])), ints(wp.int32(clear.rgba8[2]))
            store_quads(r, g, b, ints(wp.int32(clear.rgba8[3])), low, high, pixel, out.rgba8)
        if out.color:
            c = clear.color
            store_quads(floats(c[0]), floats(c[1]), floats(c[2]), floats(c[3]), low, high, pixel, out.color)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def colour(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        seen_instances: wp.array[ints],  # of the visibility record, a block an item
        uses_display_color: wp.array[wp.int32],
        diffuse_color: wp.array[wp.float32],
        emissive_color: wp.array[wp.float32],
        material_row: wp.array[wp.int32],
        normal: wp.array[wp.float32],  # null: no light asked for
        display_color: wp.array[wp.float32],  # null where the scene has none
        emitted: wp.array[wp.float32],  # by textures, 0 elsewhere; null where the scene has none
        directions: wp.array[wp.float32],  # RayColumns.directions, flat; null without
        srgb: SrgbTables,
        clear: ColourClears,
        out: ColourPlanes,
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        if GIVEN:
            if views[run.view].rays == 0:
                return
        else:
            if views[run.view].rays != 0:
                return
        ray = world_ray(views[run.view], run.y)
        exposure = views[run.view].exposure
        hit = ints()
        material = ints()
        red, green, blue, alpha = floats(), floats(), floats(), floats()
        r, g, b = floats(), floats(), floats()
        byte_r, byte_g, byte_b, byte_a = ints(), ints(), ints(), ints()
        for block in range(run.blocks):
            found = seen_instances[run.record // LANES + block]
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            hits = wp.int32(0)
            for lane in range(LANES):
                hit[lane] = wp.where(found[lane] >= 0 and lane >= low and lane < high, 1, 0)
                hits = hits | hit[lane]
            if hits == 0:
                store_clears(clear, low, high, pixel, out)
                continue
            for lane in range(LANES):
                material[lane] = material_row[pixel + wp.clamp(lane, low, high - 1)]
                red[lane] = GREY
                green[lane] = GREY
                blue[lane] = GREY
            if display_color:
                for lane in range(LANES):
                    here = 3 * (pixel + wp.clamp(lane, low, high - 1))
                    red[lane] = display_color[here]
                    green[lane] = display_color[here + 1]
                    blue[lane] = display_color[here + 2]
            for lane in range(LANES):
                m = wp.max(material[lane], 0)
                own = material[lane] >= 0 and uses_display_color[m] == 0
                red[lane] = wp.where(own, diffuse_color[3 * m], red[lane])
                green[lane] = wp.where(own, diffuse_color[3 * m + 1], green[lane])
                blue[lane] = wp.where(own, diffuse_color[3 * m + 2], blue[lane])
            if out.albedo:
                for lane in range(LANES):
                    r[lane] = wp.where(hit[lane] != 0, red[lane], clear.albedo[0])
                    g[lane] = wp.where(hit[lane] != 0, green[lane], clear.albedo[1])
                    b[lane] = wp.where(hit[lane] != 0, blue[lane], clear.albedo[2])
                    alpha[lane] = wp.where(hit[lane] != 0, 1.0, clear.albedo[3])
                store_quads(r, g, b, alpha, low, high, pixel, out.albedo)
            if normal:
                if GIVEN:
                    start = views[run.view].first_ray + run.y * views[run.view].width + run.x + block * LANES
                    ways = load_triples(directions, low, high, start)
                    right, up, back = views[run.view].direction_dx, views[run.view].direction_dy, views[run.view].direction
                for lane in range(LANES):
                    m = wp.max(material[lane], 0)
                    emits = wp.where(material[lane] >= 0, exposure, 0.0)
                    if GIVEN:
                        wx, wy, wz = wp.float64(ways[0, lane]), wp.float64(ways[1, lane]), wp.float64(ways[2, lane])
                        dx = wp.float32(right[0] * wx + up[0] * wy + back[0] * wz)
                        dy = wp.float32(right[1] * wx + up[1] * wy + back[1] * wz)
                        dz = wp.float32(right[2] * wx + up[2] * wy + back[2] * wz)
                    else:
                        s = wp.float64(run.x + block * LANES + lane)
                        dx = wp.float32(ray.direction[0] + ray.direction_dx[0] * s)
                        dy = wp.float32(ray.direction[1] + ray.direction_dx[1] * s)
                        dz = wp.float32(ray.direction[2] + ray.direction_dx[2] * s)
                    here = 3 * (pixel + wp.clamp(lane, low, high - 1))
                    along = normal[here] * dx + normal[here + 1] * dy + normal[here + 2] * dz
                    facing = wp.abs(along) / wp.sqrt(dx * dx + dy * dy + dz * dz) * exposure
                    red[lane] = red[lane] * facing + emissive_color[3 * m] * emits
                    green[lane] = green[lane] * facing + emissive_color[3 * m + 1] * emits
                    blue[lane] = blue[lane] * facing + emissive_color[3 * m + 2] * emits
                if emitted:
                    for lane in range(LANES):
                        here = 3 * (pixel + wp.clamp(lane, low, high - 1))
                        red[lane] = red[lane] + emitted[here] * exposure
                        green[lane] = green[lane] + emitted[here + 1] * exposure
                        blue[lane] = blue[lane] + emitted[here + 2] * exposure
                if out.rgba8:
                    for lane in range(LANES):
                        byte_r[lane] = wp.where(hit[lane] != 0, srgb_byte(red[lane], srgb), wp.int32(clear.rgba8[0]))
                        byte_g[lane] = wp.where(hit[lane] != 0, srgb_byte(green[lane], srgb), wp.int32(clear.rgba8[1]))
                        byte_b[lane] = wp.where(hit[lane] != 0, srgb_byte(blue[lane], srgb), wp.int32(clear.rgba8[2]))
                        byte_a[lane] = wp.where(hit[lane] != 0, 255, wp.int32(clear.rgba8[3]))
                    store_quads(byte_r, byte_g, byte_b, byte_a, low, high, pixel, out.rgba8)
                if out.color:
                    for lane in range(LANES):
                        red[lane] = wp.where(hit[lane] != 0, red[lane], clear.color[0])
                        green[lane] = wp.where(hit[lane] != 0, green[lane], clear.color[1])
                        blue[lane] = wp.where(hit[lane] != 0, blue[lane], clear.color[2])
                        alpha[lane] = wp.where(hit[lane] != 0, 1.0, clear.color[3])
                    store_quads(red, green, blue, alpha, low, high, pixel, out.color)

    return colour


@functools.cache
def samples_kernel(lanes: int) -> wp.Kernel:
    """Several samples a pixel: sum their colours, or make the mean (``scale`` = 1 / samples) and its 8-bit encoding."""
    LANES, BLOCKS = lanes, block_count(lanes)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def samples(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        keep: wp.float32,  # 0: forget what `total` holds
        sample: wp.array[wp.vec4f],  # null: finish
        total: wp.array[wp.vec4f],
        scale: wp.float32,
        srgb: SrgbTables,
        clear: wp.vec4ub,  # `rgba8` where every sample was fully transparent
        color: wp.array[wp.vec4f],
        rgba8: wp.array[wp.vec4ub],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        for block in range(run.blocks):
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            if sample:
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        here = pixel + lane
                        before = wp.where(keep != 0.0, total[here], wp.vec4f())
                        total[here] = before + sample[here]
            if color:
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        color[pixel + lane] = total[pixel + lane] * scale
            if rgba8:
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        mean = total[pixel + lane] * scale
                        rgba8[pixel + lane] = wp.where(mean[3] > 0.0, rgba_bytes(mean, srgb), clear)

    return samples
