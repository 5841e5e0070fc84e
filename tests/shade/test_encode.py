"""sRGB: known bytes, exact rounding, and the tables' function against the curve."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.shade.encode import SrgbTables, rgba_bytes, srgb_byte, srgb_bytes, srgb_decode, srgb_encode, srgb_tables


@wp.kernel(enable_backward=False)
def _encode(values: wp.array[wp.float32], tables: SrgbTables, out: wp.array[wp.int32]):
    i = wp.tid()
    out[i] = srgb_byte(values[i], tables)


@wp.kernel(enable_backward=False)
def _encode_colours(values: wp.array[wp.vec4f], tables: SrgbTables, out: wp.array[wp.vec4ub]):
    i = wp.tid()
    out[i] = rgba_bytes(values[i], tables)


def encode(values, device):
    values = np.asarray(values, np.float32)
    out = wp.zeros(values.size, dtype=wp.int32, device=device)
    wp.launch(_encode, dim=values.size, inputs=[wp.array(values, device=device), srgb_tables(device)], outputs=[out], device=device)
    return out.numpy()


@pytest.mark.parametrize(
    ("linear", "byte"),
    [
        (0.0, 0),
        (1.0, 255),
        (0.5, 188),
        (0.18, 118),
        (0.0031308, 10),
        (0.001, 3),
        (2.0, 255),
        (-1.0, 0),
        (np.inf, 255),
        (-np.inf, 0),
        (np.nan, 0),
    ],
)
def test_known_values(device, linear, byte):
    assert encode([linear], device)[0] == byte
    if np.isfinite(linear):
        assert srgb_bytes(linear) == byte


def test_every_byte_and_both_sides_of_every_step(device):
    """The decoded middle of two bytes rounds up, the number just below it down."""
    steps = srgb_decode((np.arange(1, 256) - 0.5) / 255)
    above = steps.astype(np.float32)
    above = np.where(above < steps, np.nextafter(above, np.float32(2)), above)
    np.testing.assert_array_equal(encode(above, device), np.arange(1, 256))
    np.testing.assert_array_equal(encode(np.nextafter(above, np.float32(-1)), device), np.arange(255))
    np.testing.assert_array_equal(encode(srgb_decode(np.arange(256) / 255), device), np.arange(256))


def test_the_whole_range_against_the_curve(device):
    values = np.concatenate([np.linspace(0, 1, 200_001), np.logspace(-8, 0, 50_000)]).astype(np.float32)
    np.testing.assert_array_equal(encode(values, device), srgb_bytes(values))


def test_decode_undoes_encode():
    values = np.linspace(0, 1, 1001)
    np.testing.assert_allclose(srgb_decode(srgb_encode(values)), values, atol=1e-9)


def test_alpha_is_taken_out_and_stays_linear(device):
    colours = np.array([[0.25, 0.09, 0, 0.5], [0, 0, 0, 0], [1, 1, 1, 1], [0.3, 0.2, 0.1, 2.0], [0.5, 0.5, 0.5, 0.0]], np.float32)
    out = wp.zeros(len(colours), dtype=wp.vec4ub, device=device)
    given = wp.array(colours, dtype=wp.vec4f, device=device)
    wp.launch(_encode_colours, dim=len(colours), inputs=[given, srgb_tables(device)], outputs=[out], device=device)
    wanted = [[188, 118, 0, 128], [0, 0, 0, 0], [255, 255, 255, 255], [*srgb_bytes([0.15, 0.1, 0.05]), 255], [0, 0, 0, 0]]
    np.testing.assert_array_equal(out.numpy(), wanted)
