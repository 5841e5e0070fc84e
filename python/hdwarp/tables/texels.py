"""tables.texels: how images lie in the words of TextureColumns: texels in squares, and levels, each of half the size of the one before.

Squares of 4 x 4 texels lie in one piece, so that neighbours in any direction are near in memory: in 8 bits a square is a cache line.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.launch import launch
from hdwarp.tables.structs import BYTES, FLOATS, HALVES, MOST_LEVELS

STORAGE = {1: int(BYTES), 2: int(HALVES), 4: int(FLOATS)}
"""By bytes a component."""

_LARGEST = wp.constant(3.4028234e38)


@wp.func
def squares_across(width: wp.int32) -> wp.int32:
    return (width + 3) >> 2


@wp.func
def texel_number(x: wp.int32, y: wp.int32, width: wp.int32) -> wp.int32:
    """Which texel of an image of ``width`` is column ``x`` of row ``y``: 16 a square of 4 x 4, those on the edges filled up."""
    return (((y >> 2) * squares_across(width) + (x >> 2)) << 4) + ((y & 3) << 2) + (x & 3)


@wp.func
def srgb_to_linear(encoded: wp.float32) -> wp.float32:
    """The sRGB curve, which goes on above 1, and below 0 as its mirror image."""
    size = wp.abs(encoded)
    linear = wp.where(size <= 12.92 * 0.0031308, size / 12.92, wp.pow((size + 0.055) / 1.055, 2.4))
    return wp.where(encoded < 0.0, -linear, linear)


@wp.func
def linear_to_srgb(linear: wp.float32) -> wp.float32:
    size = wp.abs(linear)
    encoded = wp.where(size <= 0.0031308, size * 12.92, 1.055 * wp.pow(size, 1.0 / 2.4) - 0.055)
    return wp.where(linear < 0.0, -encoded, encoded)


@wp.func
def halves(word: wp.uint32) -> wp.vec2f:
    low = wp.cast(wp.uint16(word & wp.uint32(0xFFFF)), wp.float16)
    high = wp.cast(wp.uint16(word >> wp.uint32(16)), wp.float16)
    return wp.vec2f(wp.float32(low), wp.float32(high))


@wp.func
def word_of_halves(low: wp.float32, high: wp.float32) -> wp.uint32:
    first = wp.cast(wp.float16(wp.clamp(low, -65504.0, 65504.0)), wp.uint16)
    second = wp.cast(wp.float16(wp.clamp(high, -65504.0, 65504.0)), wp.uint16)
    return wp.uint32(first) | (wp.uint32(second) << wp.uint32(16))


@wp.func
def texel(words: wp.array[wp.uint32], linear: wp.array[wp.float32], at: wp.int32, storage: wp.int32, srgb: wp.int32) -> wp.vec4f:
    """Linear RGBA of the texel whose first word is number ``at``. ``linear``: of sRGB bytes."""
    if storage == BYTES:
        word = words[at]
        red = wp.int32(word & wp.uint32(255))
        green = wp.int32((word >> wp.uint32(8)) & wp.uint32(255))
        blue = wp.int32((word >> wp.uint32(16)) & wp.uint32(255))
        alpha = wp.float32(word >> wp.uint32(24)) / 255.0
        if srgb != 0:
            return wp.vec4f(linear[red], linear[green], linear[blue], alpha)
        return wp.vec4f(wp.float32(red) / 255.0, wp.float32(green) / 255.0, wp.float32(blue) / 255.0, alpha)
    if storage == HALVES:
        rg, ba = halves(words[at]), halves(words[at + 1])
        colour = wp.vec4f(rg[0], rg[1], ba[0], ba[1])
    else:
        r, g = wp.cast(words[at], wp.float32), wp.cast(words[at + 1], wp.float32)
        b, a = wp.cast(words[at + 2], wp.float32), wp.cast(words[at + 3], wp.float32)
        colour = wp.vec4f(r, g, b, a)
    if srgb != 0:
        colour = wp.vec4f(srgb_to_linear(colour[0]), srgb_to_linear(colour[1]), srgb_to_linear(colour[2]), colour[3])
    return colour


@wp.func
def write_texel(colour: wp.vec4f, words: wp.array[wp.uint32], at: wp.int32, storage: wp.int32, srgb: wp.int32):
    """What `texel` reads, as near as its storage comes."""
    shown = colour
    if srgb != 0:
        shown = wp.vec4f(linear_to_srgb(colour[0]), linear_to_srgb(colour[1]), linear_to_srgb(colour[2]), colour[3])
    if storage == BYTES:
        word = wp.uint32(0)
        for k in range(4):
            word |= wp.uint32(wp.int32(wp.clamp(shown[k], 0.0, 1.0) * 255.0 + 0.5)) << wp.uint32(8 * k)
        words[at] = word
    elif storage == HALVES:
        words[at] = word_of_halves(shown[0], shown[1])
        words[at + 1] = word_of_halves(shown[2], shown[3])
    else:
        for k in range(4):
            words[at + k] = wp.cast(wp.clamp(shown[k], -_LARGEST, _LARGEST), wp.uint32)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 0})
def halve(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,  # texels of the target, fillers included
    words: wp.array[wp.uint32],
    linear: wp.array[wp.float32],
    source: wp.int32,  # first word of a level of ``width`` x ``height`` texels ...
    width: wp.int32,
    height: wp.int32,
    target: wp.int32,  # ... and of the next
    storage: wp.int32,
    srgb: wp.int32,
):
    """Each texel is the mean, in linear light, of what it covers of the level before: of odd sizes parts of texels count by their area."""
    number = first + wp.tid() * step
    if number >= count:
        return
    new_width, new_height = wp.max(width >> 1, 1), wp.max(height >> 1, 1)
    square, within = number >> 4, number & 15
    squares = squares_across(new_width)
    x, y = 4 * (square % squares) + (within & 3), 4 * (square // squares) + (within >> 2)
    stride = 1 << storage
    if x >= new_width or y >= new_height:
        for k in range(stride):
            words[target + stride * number + k] = wp.uint32(0)
        return
    # In units of 1 / new_width of a texel the target covers x * width to (x + 1) * width, texel i new_width * i to new_width * (i + 1).
    left, right = wp.int64(x) * wp.int64(width), wp.int64(x + 1) * wp.int64(width)
    top, bottom = wp.int64(y) * wp.int64(height), wp.int64(y + 1) * wp.int64(height)
    mean = wp.vec4f()
    for j in range(wp.int32(top / wp.int64(new_height)), wp.int32((bottom - wp.int64(1)) / wp.int64(new_height)) + 1):
        begin = wp.max(wp.int64(j) * wp.int64(new_height), top)
        across = wp.float32(wp.min(wp.int64(j + 1) * wp.int64(new_height), bottom) - begin) / wp.float32(height)
        for i in range(wp.int32(left / wp.int64(new_width)), wp.int32((right - wp.int64(1)) / wp.int64(new_width)) + 1):
            begin = wp.max(wp.int64(i) * wp.int64(new_width), left)
            along = wp.float32(wp.min(wp.int64(i + 1) * wp.int64(new_width), right) - begin) / wp.float32(width)
            mean += texel(words, linear, source + stride * texel_number(i, j, width), storage, srgb) * (across * along)
    write_texel(mean, words, target + stride * number, storage, srgb)


def level_sizes(width: int, height: int) -> list[tuple[int, int]]:
    """(width, height) of an image and of its levels, down to one texel."""
    sizes = [(width, height)]
    while sizes[-1] != (1, 1):
        sizes.append(tuple(max(size // 2, 1) for size in sizes[-1]))
    assert len(sizes) <= MOST_LEVELS
    return sizes


def level_words(size: tuple[int, int], component: int) -> int:
    """Words of a level; ``component``: bytes of one."""
    return component * 16 * -(-size[0] // 4) * -(-size[1] // 4)


def pyramid_words(size: tuple[int, int], component: int) -> int:
    """Words of an image and all its levels."""
    return sum(level_words(one, component) for one in level_sizes(*size))


def in_squares(pixels: np.ndarray) -> np.ndarray:
    """uint32 words of (H, W, 4) pixels."""
    height, width = pixels.shape[:2]
    padded = np.zeros((-(-height // 4) * 4, -(-width // 4) * 4, 4), pixels.dtype)
    padded[:height, :width] = pixels
    squares = padded.reshape(len(padded) // 4, 4, -1, 4, 4).swapaxes(1, 2)
    return np.ascontiguousarray(squares).reshape(-1).view(np.uint32)


def pyramid(pixels: np.ndarray, srgb: bool, linear: wp.array, device: wp.Device, *, skip: int = 0) -> wp.array:
    """(n,) words of the levels of (H, W, 4) pixels, one after another, without the first ``skip``. ``linear``: (256,) of sRGB bytes."""
    height, width, component = *pixels.shape[:2], pixels.itemsize
    sizes = level_sizes(width, height)
    starts = np.cumsum([0] + [level_words(size, component) for size in sizes]).tolist()
    words = wp.empty(starts[-1], dtype=wp.uint32, device=device)
    wp.copy(words, wp.array(in_squares(pixels), dtype=wp.uint32, device="cpu", copy=False))
    for k in range(1, len(sizes)):
        count = level_words(sizes[k], component) // component
        shape = [starts[k - 1], *sizes[k - 1], starts[k], STORAGE[component], int(srgb)]
        launch(halve, count, [words, linear, *shape], device=device, grain=4096)
    return words[starts[skip] :]
