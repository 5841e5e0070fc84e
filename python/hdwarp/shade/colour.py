"""shade.colour: light and surfaces -> color, rgba8 and the planes that colour is made of; and the mean of several samples a pixel."""

from __future__ import annotations

import functools
from typing import Any

import warp as wp

from hdwarp.aovs.pixel_runs import (
    NO_INSTANCE,
    block_count,
    lane_options,
    load_columns,
    pixel_run,
    store_quads,
    store_scalars,
    store_triples,
)
from hdwarp.shade.encode import SrgbTables, rgba_bytes, srgb_byte
from hdwarp.shade.inputs import EMISSIVE, GREY, OPACITY, ROUGHNESS, SurfaceConstants, SurfacePlanes
from hdwarp.tables.structs import ViewRow


@wp.struct
class ColourPlanes:
    """Output arrays, flat over pixels; null where nobody asks."""

    color: wp.array[wp.vec4f]
    rgba8: wp.array[wp.vec4ub]
    albedo: wp.array[wp.vec4f]
    emission: wp.array[wp.vec3f]
    direct: wp.array[wp.vec3f]
    alpha: wp.array[wp.float32]
    roughness: wp.array[wp.float32]


@wp.struct
class ColourClears:
    """What a pixel that sees nothing holds."""

    color: wp.vec4f
    rgba8: wp.vec4ub
    albedo: wp.vec4f
    emission: wp.vec3f
    direct: wp.vec3f
    alpha: wp.float32
    roughness: wp.float32


@functools.cache
def colour_kernel(lanes: int) -> wp.Kernel:
    """color = exposure * (light reflected + emitted), or the base colour alone, unlit; premultiplied by how much of the pixel is covered.

    base: the material's diffuse colour; the displayColor primvar where the material says so or where there is no material, else grey.
    Vector arrays that are read come flat, as SIMD gathers want them.
    """
    LANES, BLOCKS = lanes, block_count(lanes)
    load_triples, load_scalars = load_columns(lanes, 3), load_columns(lanes, 1)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)

    @wp.func
    def store_colours(
        red: Any,
        green: Any,
        blue: Any,
        alpha: Any,
        hit: Any,
        clear: wp.vec4f,
        low: wp.int32,
        high: wp.int32,
        pixel: wp.int32,
        out: wp.array[wp.vec4f],
    ):
        """A value a lane, the clear value where nothing is seen."""
        r, g, b, a = floats(), floats(), floats(), floats()
        for lane in range(LANES):
            r[lane] = wp.where(hit[lane] != 0, red[lane], clear[0])
            g[lane] = wp.where(hit[lane] != 0, green[lane], clear[1])
            b[lane] = wp.where(hit[lane] != 0, blue[lane], clear[2])
            a[lane] = wp.where(hit[lane] != 0, alpha[lane], clear[3])
        store_quads(r, g, b, a, low, high, pixel, out)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def colour(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        seen_instances: wp.array[ints],  # of the visibility record, a block an item
        material_row: wp.array[wp.int32],
        constants: SurfaceConstants,
        planes: SurfacePlanes,
        light: wp.array[wp.float32],  # that is reflected, three a pixel; null: unlit
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
        exposure = views[run.view].exposure
        hit, material, textured, cut, fades = ints(), ints(), ints(), ints(), ints()
        base_r, base_g, base_b, alpha, opaque, rough = floats(), floats(), floats(), floats(), floats(), floats()
        red, green, blue = floats(), floats(), floats()
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
                alpha[lane] = 1.0
            if hits != 0:
                lowest, highest = wp.int32(NO_INSTANCE), wp.int32(-1)
                for lane in range(LANES):
                    found_row = material_row[pixel + wp.clamp(lane, low, high - 1)]
                    material[lane] = wp.where(hit[lane] != 0, found_row, -1)
                    highest = wp.max(highest, material[lane])
                    lowest = wp.min(lowest, wp.where(hit[lane] != 0, found_row, NO_INSTANCE))
                    base_r[lane] = GREY
                    base_g[lane] = GREY
                    base_b[lane] = GREY
                if planes.base:
                    shown = load_triples(planes.base, low, high, pixel)
                    for lane in range(LANES):
                        base_r[lane] = shown[0, lane]
                        base_g[lane] = shown[1, lane]
                        base_b[lane] = shown[2, lane]
                if lowest == highest:  # one material, or none: its numbers are loaded once
                    m = wp.max(highest, 0)
                    one_textured = wp.where(highest >= 0, constants.textured[m], 0)
                    one_rough = wp.where(highest >= 0, constants.roughness[m], 0.5)
                    one_alpha = wp.where(highest >= 0, constants.opacity[m], 1.0)
                    one_glow = wp.vec3f()
                    if highest >= 0:
                        one_glow = wp.vec3f(
                            constants.emissive_color[3 * m], constants.emissive_color[3 * m + 1], constants.emissive_color[3 * m + 2]
                        )
                    one_cut = highest >= 0 and constants.opacity_threshold[m] > 0.0
                    one_fades = highest >= 0 and constants.opacity_mode[m] != 0
                    own = highest >= 0 and constants.uses_display_color[m] == 0
                    red_own, green_own, blue_own = (
                        constants.diffuse_color[3 * m],
                        constants.diffuse_color[3 * m + 1],
                        constants.diffuse_color[3 * m + 2],
                    )
                    for lane in range(LANES):
                        textured[lane] = one_textured
                        rough[lane] = one_rough
                        alpha[lane] = one_alpha
                        r[lane] = one_glow[0]
                        g[lane] = one_glow[1]
                        b[lane] = one_glow[2]
                        cut[lane] = wp.where(one_cut, 1, 0)
                        fades[lane] = wp.where(one_fades, 1, 0)
                    if own:
                        for lane in range(LANES):
                            base_r[lane] = red_own
                            base_g[lane] = green_own
                            base_b[lane] = blue_own
                else:
                    for lane in range(LANES):
                        m = wp.max(material[lane], 0)
                        known = material[lane] >= 0
                        textured[lane] = wp.where(known, constants.textured[m], 0)
                        rough[lane] = wp.where(known, constants.roughness[m], 0.5)
                        alpha[lane] = wp.where(known, constants.opacity[m], 1.0)
                        r[lane] = wp.where(known, constants.emissive_color[3 * m], 0.0)
                        g[lane] = wp.where(known, constants.emissive_color[3 * m + 1], 0.0)
                        b[lane] = wp.where(known, constants.emissive_color[3 * m + 2], 0.0)
                        cut[lane] = wp.where(known and constants.opacity_threshold[m] > 0.0, 1, 0)
                        fades[lane] = wp.where(known and constants.opacity_mode[m] != 0, 1, 0)
                    for lane in range(LANES):
                        m = wp.max(material[lane], 0)
                        own = material[lane] >= 0 and constants.uses_display_color[m] == 0
                        base_r[lane] = wp.where(own, constants.diffuse_color[3 * m], base_r[lane])
                        base_g[lane] = wp.where(own, constants.diffuse_color[3 * m + 1], base_g[lane])
                        base_b[lane] = wp.where(own, constants.diffuse_color[3 * m + 2], base_b[lane])
                if planes.emissive:
                    glow = load_triples(planes.emissive, low, high, pixel)
                    for lane in range(LANES):
                        own = (textured[lane] & EMISSIVE) != 0
                        r[lane] = wp.where(own, glow[0, lane], r[lane])
                        g[lane] = wp.where(own, glow[1, lane], g[lane])
                        b[lane] = wp.where(own, glow[2, lane], b[lane])
                if planes.display_opacity:  # fades all of a surface, as in Hydra
                    faded = load_scalars(planes.display_opacity, low, high, pixel)
                    for lane in range(LANES):
                        own = material[lane] < 0 and faded[0, lane] == faded[0, lane]
                        alpha[lane] = wp.where(own, faded[0, lane], alpha[lane])
                        fades[lane] = wp.where(own, 1, fades[lane])
                if planes.opacity:
                    of_opacity = load_scalars(planes.opacity, low, high, pixel)
                    for lane in range(LANES):
                        alpha[lane] = wp.where((textured[lane] & OPACITY) != 0, of_opacity[0, lane], alpha[lane])
                if planes.roughness:
                    of_roughness = load_scalars(planes.roughness, low, high, pixel)
                    for lane in range(LANES):
                        rough[lane] = wp.where((textured[lane] & ROUGHNESS) != 0, of_roughness[0, lane], rough[lane])
                for lane in range(LANES):
                    alpha[lane] = wp.where(cut[lane] != 0, 1.0, wp.clamp(alpha[lane], 0.0, 1.0))
                    # "presence" fades all of a surface; else what it reflects diffusely has been faded with its light.
                    opaque[lane] = wp.where(fades[lane] != 0, alpha[lane], 1.0) * exposure
                    r[lane] = r[lane] * opaque[lane]
                    g[lane] = g[lane] * opaque[lane]
                    b[lane] = b[lane] * opaque[lane]
            if out.albedo:
                ones = floats(1.0)
                store_colours(base_r, base_g, base_b, ones, hit, clear.albedo, low, high, pixel, out.albedo)
            if out.roughness:
                for lane in range(LANES):
                    red[lane] = wp.where(hit[lane] != 0, rough[lane], clear.roughness)
                store_scalars(red, low, high, pixel, out.roughness)
            if out.alpha:
                for lane in range(LANES):
                    red[lane] = wp.where(hit[lane] != 0, alpha[lane], clear.alpha)
                store_scalars(red, low, high, pixel, out.alpha)
            if out.emission:
                for lane in range(LANES):
                    red[lane] = wp.where(hit[lane] != 0, r[lane], clear.emission[0])
                    green[lane] = wp.where(hit[lane] != 0, g[lane], clear.emission[1])
                    blue[lane] = wp.where(hit[lane] != 0, b[lane], clear.emission[2])
                store_triples(red, green, blue, low, high, pixel, out.emission)
            if light:
                lit = load_triples(light, low, high, pixel)
                for lane in range(LANES):
                    red[lane] = lit[0, lane] * opaque[lane]
                    green[lane] = lit[1, lane] * opaque[lane]
                    blue[lane] = lit[2, lane] * opaque[lane]
                if out.direct:
                    for lane in range(LANES):
                        red[lane] = wp.where(hit[lane] != 0, red[lane], clear.direct[0])
                        green[lane] = wp.where(hit[lane] != 0, green[lane], clear.direct[1])
                        blue[lane] = wp.where(hit[lane] != 0, blue[lane], clear.direct[2])
                    store_triples(red, green, blue, low, high, pixel, out.direct)
                for lane in range(LANES):
                    red[lane] += r[lane]
                    green[lane] += g[lane]
                    blue[lane] += b[lane]
            else:
                for lane in range(LANES):
                    red[lane] = base_r[lane] * alpha[lane]
                    green[lane] = base_g[lane] * alpha[lane]
                    blue[lane] = base_b[lane] * alpha[lane]
            if out.rgba8:
                for lane in range(LANES):
                    part = wp.where(alpha[lane] > 0.0, 1.0 / alpha[lane], 0.0)
                    byte_r[lane] = wp.where(hit[lane] != 0, srgb_byte(red[lane] * part, srgb), wp.int32(clear.rgba8[0]))
                    byte_g[lane] = wp.where(hit[lane] != 0, srgb_byte(green[lane] * part, srgb), wp.int32(clear.rgba8[1]))
                    byte_b[lane] = wp.where(hit[lane] != 0, srgb_byte(blue[lane] * part, srgb), wp.int32(clear.rgba8[2]))
                    byte_a[lane] = wp.where(hit[lane] != 0, wp.int32(alpha[lane] * 255.0 + 0.5), wp.int32(clear.rgba8[3]))
                store_quads(byte_r, byte_g, byte_b, byte_a, low, high, pixel, out.rgba8)
            if out.color:
                store_colours(red, green, blue, alpha, hit, clear.color, low, high, pixel, out.color)

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
