"""shade.textures: what a texture shows at (s, t): wrap modes, bilinear between texels, sRGB made linear, UDIM. Colours by texture."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, pixel_run
from hdwarp.tables.structs import BLACK, FLOATS, HALVES, INPUT_COUNT, MIRROR, PRIMVAR, REPEAT, TextureColumns, ViewRow

_LARGEST = wp.constant(1.0e30)  # what textures show; so that what is computed with it is finite
_TILES_WIDE = wp.constant(10)  # of UDIM
_EDGE = wp.constant(1.0e-5)  # so far beyond a tile that has no neighbour there it still shows: where interpolated coordinates end


@wp.func
def srgb_to_linear(encoded: wp.float32) -> wp.float32:
    """The sRGB curve, which goes on above 1, and below 0 as its mirror image."""
    size = wp.abs(encoded)
    linear = wp.where(size <= 12.92 * 0.0031308, size / 12.92, wp.pow((size + 0.055) / 1.055, 2.4))
    return wp.where(encoded < 0.0, -linear, linear)


@wp.func
def without_srgb(colour: wp.vec4f, srgb: wp.int32) -> wp.vec4f:
    if srgb == 0:
        return colour
    return wp.vec4f(srgb_to_linear(colour[0]), srgb_to_linear(colour[1]), srgb_to_linear(colour[2]), colour[3])


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
    start, storage, srgb = textures.start[texture], textures.storage[texture], textures.srgb[texture]
    if storage == FLOATS:
        at = start + 4 * number
        r, g = wp.cast(textures.words[at], wp.float32), wp.cast(textures.words[at + 1], wp.float32)
        b, a = wp.cast(textures.words[at + 2], wp.float32), wp.cast(textures.words[at + 3], wp.float32)
        return without_srgb(wp.vec4f(r, g, b, a), srgb)
    if storage == HALVES:
        rg, ba = halves(textures.words[start + 2 * number]), halves(textures.words[start + 2 * number + 1])
        return without_srgb(wp.vec4f(rg[0], rg[1], ba[0], ba[1]), srgb)
    word = textures.words[start + number]
    red = wp.int32(word & wp.uint32(255))
    green = wp.int32((word >> wp.uint32(8)) & wp.uint32(255))
    blue = wp.int32((word >> wp.uint32(16)) & wp.uint32(255))
    alpha = wp.float32(word >> wp.uint32(24)) / 255.0
    if srgb != 0:
        return wp.vec4f(textures.linear[red], textures.linear[green], textures.linear[blue], alpha)
    return wp.vec4f(wp.float32(red) / 255.0, wp.float32(green) / 255.0, wp.float32(blue) / 255.0, alpha)


@wp.func
def filtered(textures: TextureColumns, texture: wp.int32, st: wp.vec2f) -> wp.vec4f:
    """Linear RGBA of an image, bilinear between the middles of its texels; (0, 0) is the lower left corner of the image."""
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


@wp.func
def beside(x: wp.float32, cell: wp.float32) -> wp.float32:
    """The cell that ends, or begins, where ``x`` in ``cell`` is; ``cell`` itself away from its edges."""
    within = x - cell
    return wp.where(within < _EDGE, cell - 1.0, wp.where(within > 1.0 - _EDGE, cell + 1.0, cell))


@wp.func
def tile_row(textures: TextureColumns, texture: wp.int32, u: wp.float32, v: wp.float32) -> wp.int32:
    """Row of the UDIM tile from (u, v), both whole, to (u + 1, v + 1); -1 none."""
    if not (u >= 0.0 and u < float(_TILES_WIDE) and v >= 0.0 and v < float(_TILES_WIDE)):
        return -1
    number = wp.int32(u) + _TILES_WIDE * wp.int32(v)
    if number >= textures.tile_count[texture]:
        return -1
    return textures.tile_row[textures.tile_start[texture] + number]


@wp.func
def look_up(textures: TextureColumns, texture: wp.int32, coordinates: wp.vec2f) -> wp.vec4f:
    """What a texture shows where its primvar holds ``coordinates``, NaN where there is no such primvar; linear, all of it finite. One
    channel comes four times."""
    st = coordinates
    if st[0] != st[0]:
        st = textures.st_fallback[texture]
    by = textures.st_linear[texture]
    st = wp.vec2f(by[0] * st[0] + by[1] * st[1], by[2] * st[0] + by[3] * st[1]) + textures.st_offset[texture]
    image = texture
    if textures.tile_count[texture] > 0:
        u, v = wp.floor(st[0]), wp.floor(st[1])
        across, along = beside(st[0], u), beside(st[1], v)
        image = tile_row(textures, texture, u, v)
        if image < 0 and across != u:
            image = tile_row(textures, texture, across, v)
            u = wp.where(image >= 0, across, u)
        if image < 0 and along != v:
            v = along
            image = tile_row(textures, texture, u, v)
            if image < 0 and across != u:
                u = across
                image = tile_row(textures, texture, u, v)
        st = st - wp.vec2f(u, v)
    colour = textures.fallback[texture]
    if image >= 0:
        colour = wp.cw_mul(filtered(textures, image, st), textures.scale[texture]) + textures.bias[texture]
    return as_shown(textures, texture, colour)


@wp.func
def as_shown(textures: TextureColumns, texture: wp.int32, colour: wp.vec4f) -> wp.vec4f:
    """The channel that is shown, four times, or all; finite."""
    shown = colour
    channel = textures.channel[texture]
    if channel >= 0:
        shown = wp.vec4f(colour[channel])
    for k in range(4):
        shown[k] = wp.clamp(shown[k], -_LARGEST, _LARGEST)
    return shown


@wp.func
def value_at(
    textures: TextureColumns,
    texture: wp.int32,
    st: wp.array[wp.vec2f],  # coordinates: a plane of ``pixel_count`` a set, NaN where a surface has no such primvar
    values: wp.array[wp.vec4f],  # primvars that are shown themselves, laid out alike
    pixel_count: wp.int32,
    pixel: wp.int32,
) -> wp.vec4f:
    """What a texture shows at a pixel, as `look_up` does; or the primvar there is in its place."""
    at = textures.st[texture] * pixel_count + pixel
    if textures.storage[texture] != PRIMVAR:
        return look_up(textures, texture, st[at])
    value = values[at]
    if value[0] != value[0]:
        return as_shown(textures, texture, textures.fallback[texture])
    return as_shown(textures, texture, wp.cw_mul(value, textures.scale[texture]) + textures.bias[texture])


@functools.cache
def shown_kernel(lanes: int) -> wp.Kernel:
    """Write what the textures of one input of the materials show of what is seen into a plane: base colours, say, over those of the
    displayColor primvar."""
    LANES, BLOCKS = lanes, block_count(lanes)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def shown(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        material_row: wp.array[wp.int32],
        texture_of: wp.array[wp.int32],  # MaterialColumns.texture
        which: wp.int32,  # the input: its number in MATERIAL_INPUTS
        textures: TextureColumns,
        st: wp.array[wp.vec2f],  # a plane of ``pixel_count`` a set of coordinates
        values: wp.array[wp.vec4f],  # and of primvars that are shown themselves
        pixel_count: wp.int32,
        otherwise: wp.float32,  # what the plane holds elsewhere; < 0: what it does hold
        width: wp.int32,  # numbers a pixel in the plane
        out: wp.array[wp.float32],
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
                    texture = texture_of[INPUT_COUNT * material + which]
                if texture >= 0:
                    colour = value_at(textures, texture, st, values, pixel_count, pixel)
                    for i in range(width):
                        out[width * pixel + i] = colour[i]
                elif otherwise >= 0.0:
                    for i in range(width):
                        out[width * pixel + i] = otherwise

    return shown
