"""shade.textures: what a texture shows at (s, t): wrap modes, bilinear between texels, sRGB made linear. Base colours by texture."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, pixel_run
from hdwarp.tables.structs import BLACK, FLOATS, HALVES, MIRROR, REPEAT, SRGB_BYTES, MaterialColumns, TextureColumns, ViewRow


@wp.func
def within_reach(x: wp.float32, wrap: wp.int32) -> wp.float32:
    """A coordinate that shows the same and is small: repeats taken off, -1 to 2 where nothing repeats; NaN is 0."""
    x = wp.where(x == x, x, 0.0)
    if wrap == REPEAT:
        x = x - wp.floor(x)
    elif wrap == MIRROR:
        x = x - 2.0 * wp.floor(0.5 * x)
    return wp.clamp(x, -1.0, 2.0)  # infinite ones end here too


@wp.func
def wrapped(i: wp.int32, size: wp.int32, wrap: wp.int32) -> wp.int32:
    """The texel, of ``size`` in a row, shown as number ``i``; -1: none. ``i``: from a coordinate `within_reach`."""
    if wrap == REPEAT:
        return (i + size) % size
    if wrap == MIRROR:
        j = (i + 2 * size) % (2 * size)
        return wp.where(j < size, j, 2 * size - 1 - j)
    if wrap == BLACK:
        return wp.where(i >= 0 and i < size, i, -1)
    return wp.clamp(i, 0, size - 1)


@wp.func
def halves(word: wp.uint32) -> wp.vec2f:
    low = wp.cast(wp.uint16(word & wp.uint32(0xFFFF)), wp.float16)
    high = wp.cast(wp.uint16(word >> wp.uint32(16)), wp.float16)
    return wp.vec2f(wp.float32(low), wp.float32(high))


@wp.func
def texel(textures: TextureColumns, texture: wp.int32, x: wp.int32, y: wp.int32) -> wp.vec4f:
    """Linear RGBA of a texel, ``y`` from the top; 0 outside the image."""
    if x < 0 or y < 0:
        return wp.vec4f()
    number = y * textures.width[texture] + x
    start, storage = textures.start[texture], textures.storage[texture]
    if storage == FLOATS:
        at = start + 4 * number
        r, g = wp.cast(textures.words[at], wp.float32), wp.cast(textures.words[at + 1], wp.float32)
        b, a = wp.cast(textures.words[at + 2], wp.float32), wp.cast(textures.words[at + 3], wp.float32)
        return wp.vec4f(r, g, b, a)
    if storage == HALVES:
        rg, ba = halves(textures.words[start + 2 * number]), halves(textures.words[start + 2 * number + 1])
        return wp.vec4f(rg[0], rg[1], ba[0], ba[1])
    word = textures.words[start + number]
    red = wp.int32(word & wp.uint32(255))
    green = wp.int32((word >> wp.uint32(8)) & wp.uint32(255))
    blue = wp.int32((word >> wp.uint32(16)) & wp.uint32(255))
    alpha = wp.float32(word >> wp.uint32(24)) / 255.0
    if storage == SRGB_BYTES:
        return wp.vec4f(textures.linear[red], textures.linear[green], textures.linear[blue], alpha)
    return wp.vec4f(wp.float32(red) / 255.0, wp.float32(green) / 255.0, wp.float32(blue) / 255.0, alpha)


@wp.func
def look_up(textures: TextureColumns, texture: wp.int32, st: wp.vec2f) -> wp.vec4f:
    """Linear RGBA of a texture, bilinear between the middles of its texels; (0, 0) is the lower left corner of the image."""
    wrap_s, wrap_t = textures.wrap_s[texture], textures.wrap_t[texture]
    width, height = textures.width[texture], textures.height[texture]
    x = within_reach(st[0], wrap_s) * wp.float32(width) - 0.5
    y = within_reach(st[1], wrap_t) * wp.float32(height) - 0.5
    left, below = wp.floor(x), wp.floor(y)
    along, up = x - left, y - below
    x0, x1 = wrapped(wp.int32(left), width, wrap_s), wrapped(wp.int32(left) + 1, width, wrap_s)
    y0, y1 = wrapped(wp.int32(below), height, wrap_t), wrapped(wp.int32(below) + 1, height, wrap_t)
    y0, y1 = wp.where(y0 < 0, -1, height - 1 - y0), wp.where(y1 < 0, -1, height - 1 - y1)  # counted from the top
    lower = texel(textures, texture, x0, y0) * (1.0 - along) + texel(textures, texture, x1, y0) * along
    upper = texel(textures, texture, x0, y1) * (1.0 - along) + texel(textures, texture, x1, y1) * along
    return lower * (1.0 - up) + upper * up


@functools.cache
def base_colour_kernel(lanes: int) -> wp.Kernel:
    """Write the diffuse textures of what is seen over the plane of the displayColor primvar."""
    LANES, BLOCKS = lanes, block_count(lanes)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def base_colour(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        material_row: wp.array[wp.int32],
        materials: MaterialColumns,
        textures: TextureColumns,
        st: wp.array[wp.vec2f],  # a plane of ``pixel_count`` a set of coordinates
        pixel_count: wp.int32,
        otherwise: wp.float32,  # what the plane holds elsewhere; < 0: what it does hold
        out: wp.array[wp.vec3f],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        for block in range(run.blocks):
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            for lane in range(low, high):
                pixel = run.output + block * LANES + lane
                material = material_row[pixel]
                texture = wp.int32(-1)
                if material >= 0:
                    texture = materials.diffuse_texture[material]
                if texture >= 0:
                    colour = look_up(textures, texture, st[textures.st[texture] * pixel_count + pixel])
                    out[pixel] = wp.vec3f(colour[0], colour[1], colour[2])
                elif otherwise >= 0.0:
                    out[pixel] = wp.vec3f(otherwise)

    return base_colour
