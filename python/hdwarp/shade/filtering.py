"""shade.filtering: what images show, by lanes: the look-up of shade.textures for a block of pixels that see one image."""

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import whole_at, word_at
from hdwarp.tables.structs import BLACK, BYTES, HALVES, MIRROR, REPEAT
from hdwarp.tables.texels import squares_across

_SLOPE = wp.constant(1.0 / 12.92)
_BYTE = wp.constant(1.0 / 255.0)
_WHOLE = wp.constant(16777216.0)  # 2^24: floats beyond are even numbers
_MOST_TAPS = wp.constant(8)
_WIDEST = wp.constant(1.0e18)  # squared texels a pixel
_ONE_BITS = wp.constant(0x3F800000)  # of 1.0
_MANTISSA = wp.constant(2.0**-23)
_HALF_BIAS = wp.constant(5.192296858534828e33)  # 2^112: exponents of halves are 112 less than those of floats


@wp.func
def whole_below(x: wp.float32) -> wp.int32:
    """floor of a number within 2^30 of 0; `wp.floor` is a call, lane by lane."""
    i = wp.int32(x)
    return wp.where(wp.float32(i) > x, i - 1, i)


@wp.func
def shown_texel(i: wp.int32, size: wp.int32, wrap: wp.int32) -> wp.int32:
    """`textures.wrapped` without branches and divisions, for ``i`` from -1 to ``size``, or to 2 ``size`` where mirrored; the nearest texel
    in the place of none."""
    again = wp.where(i < 0, i + size, wp.where(i >= size, i - size, i))
    back = wp.where(i < size, i, 2 * size - 1 - i)
    return wp.clamp(wp.where(wrap == REPEAT, again, wp.where(wrap == MIRROR, back, i)), 0, size - 1)


@wp.func
def small_coordinate(x: wp.float32, wrap: wp.int32) -> wp.float32:
    """`textures.within_reach` without branches."""
    number = wp.clamp(wp.where(x == x, x, 0.0), -_WHOLE, _WHOLE)
    once = number - wp.float32(whole_below(number))
    twice = number - 2.0 * wp.float32(whole_below(0.5 * number))
    return wp.clamp(wp.where(wrap == REPEAT, once, wp.where(wrap == MIRROR, twice, number)), -1.0, 2.0)


@wp.func
def half_value(bits: wp.uint32) -> wp.float32:
    """A finite half of its 16 bits, exactly: denormal ones too. In integers and one product, which become SIMD code; casts do not."""
    size = wp.cast((bits & wp.uint32(0x7FFF)) << wp.uint32(13), wp.float32) * _HALF_BIAS
    return wp.where((bits & wp.uint32(0x8000)) != wp.uint32(0), -size, size)


@wp.func
def linear_byte(byte: wp.int32) -> wp.float32:
    """Linear value of an sRGB byte, to 1e-6. A polynomial: three look-ups in a table a texel would be most of the time of the kernel."""
    x = wp.float32(byte) * _BYTE
    curve = 0.37236896 - 0.07608307 * x
    curve = curve * x - 0.79551333
    curve = curve * x + 1.00041854
    curve = curve * x - 0.89069915
    curve = curve * x + 0.86869866
    curve = curve * x + 0.48461708
    curve = curve * x + 0.03533775
    curve = curve * x + 0.00085411215
    return wp.where(byte <= 10, x * _SLOPE, curve)


@functools.cache
def filter_lanes(lanes: int) -> wp.Function:
    """For blocks of ``lanes`` pixels."""
    LANES = lanes
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    colours = wp.types.matrix(shape=(4, lanes), dtype=wp.float32)

    @wp.func
    def curved(encoded: wp.float32) -> wp.float32:
        size = wp.abs(encoded)
        linear = wp.where(size <= 12.92 * 0.0031308, size / 12.92, wp.pow((size + 0.055) / 1.055, 2.4))
        return wp.where(encoded < 0.0, -linear, linear)

    @wp.func
    def without_curve(total: colours) -> colours:
        out = total
        for lane in range(LANES):
            out[0, lane] = curved(total[0, lane])
            out[1, lane] = curved(total[1, lane])
            out[2, lane] = curved(total[2, lane])
        return out

    @wp.func
    def corner(
        words: wp.array[wp.uint32],
        storage: wp.int32,
        srgb: wp.int32,
        at: ints,
        weight: floats,
        total: colours,
    ) -> colours:
        """``total`` and the texels at ``at`` (words) of HALVES or FLOATS, linear, times ``weight``."""
        out, texel = total, colours()
        if storage == HALVES:
            for lane in range(LANES):
                first = word_at(words, at[lane])
                second = word_at(words, at[lane] + 1)
                texel[0, lane] = half_value(first & wp.uint32(0xFFFF))
                texel[1, lane] = half_value(first >> wp.uint32(16))
                texel[2, lane] = half_value(second & wp.uint32(0xFFFF))
                texel[3, lane] = half_value(second >> wp.uint32(16))
        else:
            for lane in range(LANES):
                texel[0, lane] = wp.cast(word_at(words, at[lane]), wp.float32)
                texel[1, lane] = wp.cast(word_at(words, at[lane] + 1), wp.float32)
                texel[2, lane] = wp.cast(word_at(words, at[lane] + 2), wp.float32)
                texel[3, lane] = wp.cast(word_at(words, at[lane] + 3), wp.float32)
        if srgb != 0:
            texel = without_curve(texel)
        for lane in range(LANES):
            out[0, lane] = total[0, lane] + weight[lane] * texel[0, lane]
            out[1, lane] = total[1, lane] + weight[lane] * texel[1, lane]
            out[2, lane] = total[2, lane] + weight[lane] * texel[2, lane]
            out[3, lane] = total[3, lane] + weight[lane] * texel[3, lane]
        return out

    @wp.func
    def bilinear(
        words: wp.array[wp.uint32],
        level_start: wp.array[wp.int32],
        first_level: wp.int32,
        width: wp.int32,
        height: wp.int32,
        storage: wp.int32,
        srgb: wp.int32,
        wrap_s: wp.int32,
        wrap_t: wp.int32,
        s: floats,
        t: floats,
        level: ints,
        share: floats,
        total: colours,
    ) -> colours:
        """``total`` and what levels of an image show at (s, t), bilinear between the middles of their texels, times ``share``."""
        column_0, column_1 = ints(), ints()
        nearer, farther = floats(), floats()
        at_0, at_1, at_2, at_3 = ints(), ints(), ints(), ints()
        weight_0, weight_1, weight_2, weight_3 = floats(), floats(), floats(), floats()
        black_s, black_t = wp.where(wrap_s == BLACK, 1.0, 0.0), wp.where(wrap_t == BLACK, 1.0, 0.0)
        for lane in range(LANES):
            size = wp.max(width >> level[lane], 1)
            x = small_coordinate(s[lane], wrap_s) * wp.float32(size) - 0.5
            i = whole_below(x)
            along = x - wp.float32(i)
            x0, x1 = shown_texel(i, size, wrap_s), shown_texel(i + 1, size, wrap_s)
            nearer[lane] = share[lane] * (1.0 - along) * (1.0 - black_s * wp.where(x0 == i, 0.0, 1.0))
            farther[lane] = share[lane] * along * (1.0 - black_s * wp.where(x1 == i + 1, 0.0, 1.0))
            column_0[lane] = ((x0 >> 2) << 4) + (x0 & 3)  # `texels.texel_number`
            column_1[lane] = ((x1 >> 2) << 4) + (x1 & 3)
        for lane in range(LANES):
            size = wp.max(height >> level[lane], 1)
            squares = squares_across(wp.max(width >> level[lane], 1)) << 4
            y = small_coordinate(t[lane], wrap_t) * wp.float32(size) - 0.5
            j = whole_below(y)
            up = y - wp.float32(j)
            y0, y1 = shown_texel(j, size, wrap_t), shown_texel(j + 1, size, wrap_t)
            lower = (1.0 - up) * (1.0 - black_t * wp.where(y0 == j, 0.0, 1.0))
            upper = up * (1.0 - black_t * wp.where(y1 == j + 1, 0.0, 1.0))
            y0, y1 = size - 1 - y0, size - 1 - y1  # rows are kept from the top
            row_0 = (y0 >> 2) * squares + ((y0 & 3) << 2)
            row_1 = (y1 >> 2) * squares + ((y1 & 3) << 2)
            start = whole_at(level_start, first_level + level[lane])
            at_0[lane] = start + ((row_0 + column_0[lane]) << storage)
            at_1[lane] = start + ((row_0 + column_1[lane]) << storage)
            at_2[lane] = start + ((row_1 + column_0[lane]) << storage)
            at_3[lane] = start + ((row_1 + column_1[lane]) << storage)
            weight_0[lane] = lower * nearer[lane]
            weight_1[lane] = lower * farther[lane]
            weight_2[lane] = upper * nearer[lane]
            weight_3[lane] = upper * farther[lane]
        out = total
        if storage == BYTES:
            if srgb != 0:
                for lane in range(LANES):
                    word = word_at(words, at_0[lane])
                    red = total[0, lane] + weight_0[lane] * linear_byte(wp.int32(word & wp.uint32(255)))
                    green = total[1, lane] + weight_0[lane] * linear_byte(wp.int32((word >> wp.uint32(8)) & wp.uint32(255)))
                    blue = total[2, lane] + weight_0[lane] * linear_byte(wp.int32((word >> wp.uint32(16)) & wp.uint32(255)))
                    alpha = total[3, lane] + weight_0[lane] * (wp.float32(wp.int32(word >> wp.uint32(24))) * _BYTE)
                    word = word_at(words, at_1[lane])
                    red = red + weight_1[lane] * linear_byte(wp.int32(word & wp.uint32(255)))
                    green = green + weight_1[lane] * linear_byte(wp.int32((word >> wp.uint32(8)) & wp.uint32(255)))
                    blue = blue + weight_1[lane] * linear_byte(wp.int32((word >> wp.uint32(16)) & wp.uint32(255)))
                    alpha = alpha + weight_1[lane] * (wp.float32(wp.int32(word >> wp.uint32(24))) * _BYTE)
                    word = word_at(words, at_2[lane])
                    red = red + weight_2[lane] * linear_byte(wp.int32(word & wp.uint32(255)))
                    green = green + weight_2[lane] * linear_byte(wp.int32((word >> wp.uint32(8)) & wp.uint32(255)))
                    blue = blue + weight_2[lane] * linear_byte(wp.int32((word >> wp.uint32(16)) & wp.uint32(255)))
                    alpha = alpha + weight_2[lane] * (wp.float32(wp.int32(word >> wp.uint32(24))) * _BYTE)
                    word = word_at(words, at_3[lane])
                    red = red + weight_3[lane] * linear_byte(wp.int32(word & wp.uint32(255)))
                    green = green + weight_3[lane] * linear_byte(wp.int32((word >> wp.uint32(8)) & wp.uint32(255)))
                    blue = blue + weight_3[lane] * linear_byte(wp.int32((word >> wp.uint32(16)) & wp.uint32(255)))
                    alpha = alpha + weight_3[lane] * (wp.float32(wp.int32(word >> wp.uint32(24))) * _BYTE)
                    out[0, lane] = red
                    out[1, lane] = green
                    out[2, lane] = blue
                    out[3, lane] = alpha
            else:
                for lane in range(LANES):
                    word = word_at(words, at_0[lane])
                    share_of = weight_0[lane] * _BYTE
                    red = total[0, lane] + share_of * wp.float32(wp.int32(word & wp.uint32(255)))
                    green = total[1, lane] + share_of * wp.float32(wp.int32((word >> wp.uint32(8)) & wp.uint32(255)))
                    blue = total[2, lane] + share_of * wp.float32(wp.int32((word >> wp.uint32(16)) & wp.uint32(255)))
                    alpha = total[3, lane] + share_of * wp.float32(wp.int32(word >> wp.uint32(24)))
                    word = word_at(words, at_1[lane])
                    share_of = weight_1[lane] * _BYTE
                    red = red + share_of * wp.float32(wp.int32(word & wp.uint32(255)))
                    green = green + share_of * wp.float32(wp.int32((word >> wp.uint32(8)) & wp.uint32(255)))
                    blue = blue + share_of * wp.float32(wp.int32((word >> wp.uint32(16)) & wp.uint32(255)))
                    alpha = alpha + share_of * wp.float32(wp.int32(word >> wp.uint32(24)))
                    word = word_at(words, at_2[lane])
                    share_of = weight_2[lane] * _BYTE
                    red = red + share_of * wp.float32(wp.int32(word & wp.uint32(255)))
                    green = green + share_of * wp.float32(wp.int32((word >> wp.uint32(8)) & wp.uint32(255)))
                    blue = blue + share_of * wp.float32(wp.int32((word >> wp.uint32(16)) & wp.uint32(255)))
                    alpha = alpha + share_of * wp.float32(wp.int32(word >> wp.uint32(24)))
                    word = word_at(words, at_3[lane])
                    share_of = weight_3[lane] * _BYTE
                    red = red + share_of * wp.float32(wp.int32(word & wp.uint32(255)))
                    green = green + share_of * wp.float32(wp.int32((word >> wp.uint32(8)) & wp.uint32(255)))
                    blue = blue + share_of * wp.float32(wp.int32((word >> wp.uint32(16)) & wp.uint32(255)))
                    alpha = alpha + share_of * wp.float32(wp.int32(word >> wp.uint32(24)))
                    out[0, lane] = red
                    out[1, lane] = green
                    out[2, lane] = blue
                    out[3, lane] = alpha
            return out
        out = corner(words, storage, srgb, at_1, weight_1, corner(words, storage, srgb, at_0, weight_0, total))
        return corner(words, storage, srgb, at_3, weight_3, corner(words, storage, srgb, at_2, weight_2, out))

    @wp.func
    def filtered(
        words: wp.array[wp.uint32],  # of TextureColumns, as the next one
        level_start: wp.array[wp.int32],
        first_level: wp.int32,  # number in `level_start`
        levels: wp.int32,
        width: wp.int32,
        height: wp.int32,
        storage: wp.int32,
        srgb: wp.int32,
        wrap_s: wp.int32,
        wrap_t: wp.int32,
        mine: ints,  # 0: anything will do
        s: floats,
        t: floats,
        s_right: floats,  # how far it is from pixel to pixel
        t_right: floats,
        s_below: floats,
        t_below: floats,
    ) -> colours:
        """Linear RGBA, (4, lanes), of an image at (s, t): the mean of up to 8 places along the longer axis of what the pixel
        covers, each bilinear in the two levels whose texels are about as large as the rest of it; of the image itself where its texels are
        larger."""
        taps, level, here = ints(), ints(), ints()
        s_along, t_along, between, share = floats(), floats(), floats(), floats()
        p, q = floats(), floats()
        most_taps, most_levels = wp.int32(1), wp.int32(1)
        for lane in range(LANES):
            a, b = s_right[lane] * wp.float32(width), t_right[lane] * wp.float32(height)
            c, d = s_below[lane] * wp.float32(width), t_below[lane] * wp.float32(height)
            right, below = a * a + b * b, c * c + d * d
            right, below = wp.where(right < _WIDEST, right, _WIDEST), wp.where(below < _WIDEST, below, _WIDEST)
            longer, shorter = wp.max(right, below), wp.min(right, below)
            s_along[lane] = wp.where(right > below, s_right[lane], s_below[lane])
            t_along[lane] = wp.where(right > below, t_right[lane], t_below[lane])
            n = wp.clamp(wp.int32(wp.sqrt(longer / wp.max(shorter, 1.0))), 1, _MOST_TAPS)
            taps[lane] = wp.where(mine[lane] != 0, n, 1)
            reach = wp.max(longer / wp.float32(n * n), shorter)
            # log2, of 2^k exact and straight between: exponent and mantissa of a float are just that.
            lod = 0.5 * wp.float32(wp.cast(wp.max(reach, 1.0), wp.int32) - _ONE_BITS) * _MANTISSA
            lod = wp.min(lod, wp.float32(levels - 1))
            below_lod = wp.int32(lod)
            # Halfway between two levels they are mixed, near one of them it will do alone: most blocks then look into one only.
            mixed = wp.clamp(2.0 * (lod - wp.float32(below_lod)) - 0.5, 0.0, 1.0)
            level[lane] = below_lod + wp.where(mixed == 1.0, 1, 0)
            between[lane] = wp.where(mine[lane] != 0 and mixed < 1.0, mixed, 0.0)
            most_taps = wp.max(most_taps, taps[lane])
            most_levels = wp.max(most_levels, wp.where(between[lane] > 0.0, 2, 1))
        total = colours()
        for tap in range(most_taps):
            for lane in range(LANES):
                part = 1.0 / wp.float32(taps[lane])
                off = (wp.float32(tap) + 0.5) * part - 0.5
                p[lane] = s[lane] + wp.where(off == 0.0, 0.0, s_along[lane] * off)
                q[lane] = t[lane] + wp.where(off == 0.0, 0.0, t_along[lane] * off)
            for coarser in range(most_levels):
                for lane in range(LANES):
                    part = wp.where(tap < taps[lane], 1.0 / wp.float32(taps[lane]), 0.0)
                    share[lane] = part * wp.where(coarser == 0, 1.0 - between[lane], between[lane])
                    here[lane] = wp.min(level[lane] + coarser, levels - 1)
                total = bilinear(words, level_start, first_level, width, height, storage, srgb, wrap_s, wrap_t, p, q, here, share, total)
        return total

    return filtered
