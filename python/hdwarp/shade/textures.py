"""shade.textures: what a texture shows at (s, t): wrap modes, bilinear between texels, sRGB made linear, UDIM. Colours by texture."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, load_columns, pixel_run, store_components
from hdwarp.shade.filtering import filter_lanes
from hdwarp.tables.structs import BLACK, INPUT_COUNT, MIRROR, MOST_LEVELS, PRIMVAR, REPEAT, TextureColumns, ViewRow
from hdwarp.tables.texels import texel, texel_number

_LARGEST = wp.constant(1.0e30)  # what textures show; so that what is computed with it is finite
_TILES_WIDE = wp.constant(10)  # of UDIM
_EDGE = wp.constant(1.0e-5)  # so far beyond a tile that has no neighbour there it still shows: where interpolated coordinates end


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
def shown_at(textures: TextureColumns, texture: wp.int32, x: wp.int32, y: wp.int32) -> wp.vec4f:
    """Linear RGBA of a texel, ``y`` from the top; 0 outside the image."""
    if x < 0 or y < 0:
        return wp.vec4f()
    storage = textures.storage[texture]
    at = textures.start[texture] + (texel_number(x, y, textures.width[texture]) << storage)
    return texel(textures.words, textures.linear, at, storage, textures.srgb[texture])


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
    lower = shown_at(textures, texture, x0, y0) * (1.0 - along) + shown_at(textures, texture, x1, y0) * along
    upper = shown_at(textures, texture, x0, y1) * (1.0 - along) + shown_at(textures, texture, x1, y1) * along
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
def tile_at(textures: TextureColumns, texture: wp.int32, st: wp.vec2f) -> wp.vec3i:
    """Of UDIM textures: row of the tile that shows ``st``, -1 none, and the tile's lower left corner. An edge where no tile begins belongs
    to the one that ends there."""
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
    if image < 0:
        return wp.vec3i(-1, 0, 0)
    return wp.vec3i(image, wp.int32(u), wp.int32(v))


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
        tile = tile_at(textures, texture, st)
        image = tile[0]
        st = st - wp.vec2f(wp.float32(tile[1]), wp.float32(tile[2]))
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
    displayColor primvar.


    A block is gone through texture by texture, and image by image within UDIM textures: mostly it is one, whose numbers all lanes share.
    """
    LANES, BLOCKS = lanes, block_count(lanes)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    load_pairs, load_triples, load_quads = load_columns(lanes, 2), load_columns(lanes, 3), load_columns(lanes, 4)
    filter_image = filter_lanes(lanes)

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
        st: wp.array[wp.float32],  # flat: a plane of ``pixel_count`` pairs a set of coordinates
        spread: wp.array[wp.float32],  # flat, as `st`: how far it is from pixel to pixel, four numbers each
        values: wp.array[wp.float32],  # flat: planes of primvars that are shown themselves, four numbers each
        pixel_count: wp.int32,
        otherwise: wp.float32,  # what the plane holds elsewhere; < 0: what it does hold (three numbers a pixel)
        width: wp.int32,  # numbers a pixel in the plane
        out: wp.array[wp.float32],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        row, image, mine = ints(), ints(), ints()
        s, t = floats(), floats()
        s_right, t_right, s_below, t_below = floats(), floats(), floats(), floats()
        r, g, b = floats(), floats(), floats()
        for block in range(run.blocks):
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            texture = wp.int32(-1)  # from the highest row down
            for lane in range(LANES):
                material = material_row[pixel + wp.clamp(lane, low, high - 1)]
                found = texture_of[INPUT_COUNT * wp.max(material, 0) + which]
                row[lane] = wp.where(material >= 0, found, -1)
                texture = wp.max(texture, row[lane])
            if texture < 0 and otherwise < 0.0:
                continue
            if otherwise < 0.0:
                held = load_triples(out, low, high, pixel)
                for lane in range(LANES):
                    r[lane] = held[0, lane]
                    g[lane] = held[1, lane]
                    b[lane] = held[2, lane]
            else:
                for lane in range(LANES):
                    r[lane] = otherwise
                    g[lane] = otherwise
                    b[lane] = otherwise
            while texture >= 0:
                by, offset, instead = textures.st_linear[texture], textures.st_offset[texture], textures.st_fallback[texture]
                scale, bias, channel = textures.scale[texture], textures.bias[texture], textures.channel[texture]
                if textures.storage[texture] == PRIMVAR:
                    plain = textures.fallback[texture]
                    carried = load_quads(values, low, high, textures.st[texture] * pixel_count + pixel)
                    for lane in range(LANES):
                        gone = carried[0, lane] != carried[0, lane]
                        red = wp.where(gone, plain[0], carried[0, lane] * scale[0] + bias[0])
                        green = wp.where(gone, plain[1], carried[1, lane] * scale[1] + bias[1])
                        blue = wp.where(gone, plain[2], carried[2, lane] * scale[2] + bias[2])
                        alpha = wp.where(gone, plain[3], carried[3, lane] * scale[3] + bias[3])
                        single = wp.where(channel == 0, red, wp.where(channel == 1, green, wp.where(channel == 2, blue, alpha)))
                        mine_too = row[lane] == texture
                        r[lane] = wp.where(mine_too, wp.clamp(wp.where(channel < 0, red, single), -_LARGEST, _LARGEST), r[lane])
                        g[lane] = wp.where(mine_too, wp.clamp(wp.where(channel < 0, green, single), -_LARGEST, _LARGEST), g[lane])
                        b[lane] = wp.where(mine_too, wp.clamp(wp.where(channel < 0, blue, single), -_LARGEST, _LARGEST), b[lane])
                    following = wp.int32(-1)
                    for lane in range(LANES):
                        following = wp.max(following, wp.where(row[lane] < texture, row[lane], -1))
                    texture = following
                    continue
                tiled = textures.tile_count[texture] > 0
                places = load_pairs(st, low, high, textures.st[texture] * pixel_count + pixel)
                change = load_quads(spread, low, high, textures.st[texture] * pixel_count + pixel)
                for lane in range(LANES):
                    gone = places[0, lane] != places[0, lane]
                    p, q = wp.where(gone, instead[0], places[0, lane]), wp.where(gone, instead[1], places[1, lane])
                    s[lane] = by[0] * p + by[1] * q + offset[0]
                    t[lane] = by[2] * p + by[3] * q + offset[1]
                    s_right[lane] = by[0] * change[0, lane] + by[1] * change[1, lane]
                    t_right[lane] = by[2] * change[0, lane] + by[3] * change[1, lane]
                    s_below[lane] = by[0] * change[2, lane] + by[1] * change[3, lane]
                    t_below[lane] = by[2] * change[2, lane] + by[3] * change[3, lane]
                    image[lane] = wp.where(row[lane] == texture, texture, -1)
                if tiled:
                    plain = textures.fallback[texture]
                    if channel >= 0:
                        plain = wp.vec4f(plain[channel])
                    for lane in range(LANES):
                        if row[lane] == texture:
                            tile = tile_at(textures, texture, wp.vec2f(s[lane], t[lane]))
                            image[lane] = tile[0]
                            s[lane] = s[lane] - wp.float32(tile[1])
                            t[lane] = t[lane] - wp.float32(tile[2])
                            r[lane] = wp.clamp(plain[0], -_LARGEST, _LARGEST)
                            g[lane] = wp.clamp(plain[1], -_LARGEST, _LARGEST)
                            b[lane] = wp.clamp(plain[2], -_LARGEST, _LARGEST)
                one = wp.int32(-1)
                for lane in range(LANES):
                    one = wp.max(one, image[lane])
                while one >= 0:
                    for lane in range(LANES):
                        mine[lane] = wp.where(image[lane] == one, 1, 0)
                    colour = filter_image(
                        textures.words,
                        textures.level_start,
                        MOST_LEVELS * one,
                        textures.levels[one],
                        textures.width[one],
                        textures.height[one],
                        textures.storage[one],
                        textures.srgb[one],
                        textures.wrap_s[one],
                        textures.wrap_t[one],
                        mine,
                        s,
                        t,
                        s_right,
                        t_right,
                        s_below,
                        t_below,
                    )
                    for lane in range(LANES):
                        red = colour[0, lane] * scale[0] + bias[0]
                        green = colour[1, lane] * scale[1] + bias[1]
                        blue = colour[2, lane] * scale[2] + bias[2]
                        alpha = colour[3, lane] * scale[3] + bias[3]
                        single = wp.where(channel == 0, red, wp.where(channel == 1, green, wp.where(channel == 2, blue, alpha)))
                        red = wp.clamp(wp.where(channel < 0, red, single), -_LARGEST, _LARGEST)
                        green = wp.clamp(wp.where(channel < 0, green, single), -_LARGEST, _LARGEST)
                        blue = wp.clamp(wp.where(channel < 0, blue, single), -_LARGEST, _LARGEST)
                        r[lane] = wp.where(image[lane] == one, red, r[lane])
                        g[lane] = wp.where(image[lane] == one, green, g[lane])
                        b[lane] = wp.where(image[lane] == one, blue, b[lane])
                    following = wp.int32(-1)
                    for lane in range(LANES):
                        following = wp.max(following, wp.where(image[lane] < one, image[lane], -1))
                    one = following
                following = wp.int32(-1)
                for lane in range(LANES):
                    following = wp.max(following, wp.where(row[lane] < texture, row[lane], -1))
                texture = following
            store_components(r, g, b, b, width, low, high, pixel, out)

    return shown
