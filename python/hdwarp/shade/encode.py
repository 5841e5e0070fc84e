"""shade.encode: linear light to 8-bit sRGB, exactly rounded, with tables instead of powers so that lanes stay SIMD code."""

from __future__ import annotations

import functools

import numpy as np
import warp as wp

from hdwarp.tables.textures import srgb_decode

_BINS = 4096  # finer than the closest two thresholds, so a bin holds at most one


def srgb_encode(linear: np.ndarray) -> np.ndarray:
    """The sRGB curve on [0, 1], in float64; values outside are clamped."""
    linear = np.clip(np.asarray(linear, np.float64), 0.0, 1.0)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-12) ** (1 / 2.4) - 0.055)


def srgb_bytes(linear: np.ndarray) -> np.ndarray:
    """uint8 of ``srgb_encode(linear)``, rounded half up."""
    return np.floor(srgb_encode(linear) * 255 + 0.5).astype(np.uint8)


def _tables() -> tuple[np.ndarray, np.ndarray]:
    """(least byte in each bin, linear value from which each byte holds): float32 thresholds, the first number that rounds up."""
    thresholds = srgb_decode((np.arange(256) - 0.5) / 255)
    rounded = thresholds.astype(np.float32)
    rounded = np.where(rounded < thresholds, np.nextafter(rounded, np.float32(np.inf)), rounded)
    rounded[0] = -np.inf
    thresholds = np.append(rounded, np.float32(np.inf)).astype(np.float32)
    starts = (np.arange(_BINS + 1) / _BINS).astype(np.float32)
    return (np.searchsorted(thresholds, starts, side="right") - 1).astype(np.int32), thresholds


@wp.struct
class SrgbTables:
    """Made once a device by `srgb_tables`."""

    least: wp.array[wp.int32]
    threshold: wp.array[wp.float32]


@functools.cache
def _srgb_tables(alias: str) -> SrgbTables:
    least, thresholds = _tables()
    tables = SrgbTables()
    tables.least = wp.array(least, dtype=wp.int32, device=alias)
    tables.threshold = wp.array(thresholds, dtype=wp.float32, device=alias)
    return tables


def srgb_tables(device: wp.Device | str) -> SrgbTables:
    """The tables `srgb_byte` reads, on ``device``."""
    return _srgb_tables(wp.get_device(device).alias)


@wp.func
def srgb_byte(linear: wp.float32, tables: SrgbTables) -> wp.int32:
    """0..255: the sRGB encoding of ``linear``, clamped and rounded half up; 0 for NaN."""
    value = wp.where(linear > 0.0, linear, 0.0)
    value = wp.where(value < 1.0, value, 1.0)
    least = tables.least[wp.int32(value * float(_BINS))]
    return least + wp.where(value >= tables.threshold[least + 1], 1, 0)


@wp.func
def rgba_bytes(colour: wp.vec4f, tables: SrgbTables) -> wp.vec4ub:
    """A premultiplied linear colour, unpremultiplied and encoded; alpha stays linear."""
    alpha = colour[3]
    scale = wp.where(alpha > 0.0, 1.0 / alpha, 0.0)
    whole = wp.int32(wp.where(alpha > 0.0, wp.where(alpha < 1.0, alpha, 1.0), 0.0) * 255.0 + 0.5)
    return wp.vec4ub(
        wp.uint8(srgb_byte(colour[0] * scale, tables)),
        wp.uint8(srgb_byte(colour[1] * scale, tables)),
        wp.uint8(srgb_byte(colour[2] * scale, tables)),
        wp.uint8(whole),
    )
