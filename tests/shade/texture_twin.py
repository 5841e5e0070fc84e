"""The look-up of textures once more, in float64 NumPy: texels found by the definitions of the wrap modes, not by the kernel's ways."""

from __future__ import annotations

import numpy as np

from hdwarp.shade.encode import srgb_decode


def linear_texels(image) -> np.ndarray:
    """(H, W, 4) float64 linear RGBA."""
    pixels = image.pixels.astype(np.float64)
    if image.pixels.dtype == np.uint8:
        pixels /= 255
    if image.srgb:
        pixels[..., :3] = srgb_decode(pixels[..., :3])
    return pixels


def texel_row(numbers: np.ndarray, size: int, wrap: str) -> np.ndarray:
    """Texel shown at each number of an endless row; -1 none."""
    if wrap == "repeat":
        return np.mod(numbers, size)
    if wrap == "mirror":
        return np.concatenate([np.arange(size), np.arange(size)[::-1]])[np.mod(numbers, 2 * size)]
    if wrap == "clamp":
        return np.clip(numbers, 0, size - 1)
    return np.where((numbers >= 0) & (numbers < size), numbers, -1)


def look_up(texture, st: np.ndarray) -> np.ndarray:
    """(n, 4) float64 of (n, 2): weights of the four texels whose middles are around the point."""
    texels = linear_texels(texture.image)[::-1]  # row 0 at the bottom, as t counts
    height, width = texels.shape[:2]
    black = np.zeros((height + 1, width + 1, 4))  # -1 is the last: nothing
    black[:height, :width] = texels
    place = np.asarray(st, np.float64) * (width, height) - 0.5
    corner = np.floor(place)
    total = np.zeros((len(place), 4))
    for dx in (0, 1):
        for dy in (0, 1):
            at = corner + (dx, dy)
            weight = np.prod(1.0 - np.abs(place - at), axis=1)
            columns = texel_row(at[:, 0].astype(np.int64), width, texture.wrap_s)
            rows = texel_row(at[:, 1].astype(np.int64), height, texture.wrap_t)
            total += weight[:, None] * black[rows, columns]
    return total
