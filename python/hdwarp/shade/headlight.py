"""shade.headlight: colour without lights: the base colour lit from the camera, as Hydra's renderers show an unlit stage."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, pixel_run, visible_instance, world_ray
from hdwarp.shade.encode import SrgbTables, rgba_bytes
from hdwarp.tables.structs import MaterialColumns, ViewRow, Visibility

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
def colour_kernel(lanes: int) -> wp.Kernel:
    """color = exposure * (base * |N . V| + emissive), alpha 1.

    base: the material's diffuse colour; the displayColor primvar where the material says so or where there is no material, else grey.
    N is the shading normal, V points to the camera.
    """
    LANES, BLOCKS = lanes, block_count(lanes)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def colour(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        visibility: Visibility,
        materials: MaterialColumns,
        material_row: wp.array[wp.int32],
        normal: wp.array[wp.vec3f],  # null: no light asked for
        display_color: wp.array[wp.vec3f],  # null where the scene has none
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
        view = views[run.view]
        ray = world_ray(view, run.y)
        for block in range(run.blocks):
            at = run.record + block * LANES
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            hit = ints()
            red, green, blue = floats(), floats(), floats()
            for lane in range(LANES):
                i = visible_instance(visibility, at, lane, low, high)
                hit[lane] = wp.where(i >= 0, 1, 0)
                here = pixel + wp.clamp(lane, low, high - 1)
                material = material_row[here]
                m = wp.max(material, 0)
                base = materials.diffuse_color[m]
                displayed = wp.vec3f(GREY)
                if display_color:
                    displayed = display_color[here]
                own = material >= 0 and materials.uses_display_color[m] == 0
                red[lane] = wp.where(own, base[0], displayed[0])
                green[lane] = wp.where(own, base[1], displayed[1])
                blue[lane] = wp.where(own, base[2], displayed[2])
            if out.albedo:
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        base_colour = wp.vec4f(red[lane], green[lane], blue[lane], 1.0)
                        out.albedo[pixel + lane] = wp.where(hit[lane] != 0, base_colour, clear.albedo)
            if normal:
                start = wp.vec3f(ray.direction + ray.direction_dx * wp.float64(run.x + block * LANES))
                ahead = wp.vec3f(ray.direction_dx)
                for lane in range(LANES):
                    here = pixel + wp.clamp(lane, low, high - 1)
                    material = material_row[here]
                    glow = materials.emissive_color[wp.max(material, 0)]
                    emits = wp.where(material >= 0, view.exposure, 0.0)
                    s = float(lane)
                    dx, dy, dz = start[0] + ahead[0] * s, start[1] + ahead[1] * s, start[2] + ahead[2] * s
                    n = normal[here]
                    facing = wp.abs(n[0] * dx + n[1] * dy + n[2] * dz) / wp.sqrt(dx * dx + dy * dy + dz * dz) * view.exposure
                    red[lane] = red[lane] * facing + glow[0] * emits
                    green[lane] = green[lane] * facing + glow[1] * emits
                    blue[lane] = blue[lane] * facing + glow[2] * emits
                if out.color:
                    for lane in range(LANES):
                        if lane >= low and lane < high:
                            lit = wp.vec4f(red[lane], green[lane], blue[lane], 1.0)
                            out.color[pixel + lane] = wp.where(hit[lane] != 0, lit, clear.color)
                if out.rgba8:
                    for lane in range(LANES):
                        if lane >= low and lane < high:
                            encoded = rgba_bytes(wp.vec4f(red[lane], green[lane], blue[lane], 1.0), srgb)
                            out.rgba8[pixel + lane] = wp.where(hit[lane] != 0, encoded, clear.rgba8)

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
