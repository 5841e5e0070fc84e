"""Render buffers: described, mapped, resized; every misuse is named."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.delegate.aov import HD_FORMATS
from hdwarp.delegate.render_buffer import RenderBuffer
from hdwarp.errors import ArgumentError, Error, NotSupported


@pytest.fixture
def buffer(device) -> RenderBuffer:
    return RenderBuffer(device, name="test")


@pytest.mark.parametrize(
    ("format", "shape", "dtype"),
    [
        ("Float32", (3, 5), np.float32),
        ("Float32Vec2", (3, 5, 2), np.float32),
        ("Float32Vec4", (3, 5, 4), np.float32),
        ("UNorm8Vec4", (3, 5, 4), np.uint8),
        ("Int32", (3, 5), np.int32),
    ],
)
def test_maps_to_pixels_of_its_format(buffer, format, shape, dtype):
    buffer.allocate(5, 3, format)
    assert (buffer.width, buffer.height, buffer.depth, buffer.format) == (5, 3, 1, format)
    assert buffer.dtype is HD_FORMATS[format]
    with buffer.mapped() as pixels:
        assert pixels.shape == shape and pixels.dtype == dtype
        assert not pixels.any()
        with pytest.raises(ValueError, match="read-only"):
            pixels[0, 0] = 1
    assert buffer.array.numpy().flags.writeable, "only what map() gives is read-only"


def test_mapping_on_the_cpu_copies_nothing(buffer):
    buffer.allocate(5, 3, wp.float32)
    pixels = buffer.map()
    buffer.array.fill_(7.0)
    assert (pixels == 7.0).all() == buffer.device.is_cpu


def test_several_views_are_layers(buffer):
    buffer.allocate(5, 3, "Int32", depth=2)
    assert buffer.array.shape == (2, 3, 5)
    with buffer.mapped() as pixels:
        assert pixels.shape == (2, 3, 5)


def test_the_address_stays_while_the_description_does(buffer):
    buffer.allocate(5, 3, "Float32")
    address = buffer.array.ptr
    buffer.array.fill_(2.0)
    buffer.allocate(5, 3, "Float32")
    buffer.resize(5, 3)
    buffer.resolve()
    assert buffer.array.ptr == address and (buffer.array.numpy() == 2.0).all()
    buffer.set_converged(True)
    buffer.resize(6, 3)
    assert buffer.array.shape == (1, 3, 6) and not buffer.array.numpy().any() and not buffer.is_converged
    buffer.allocate(6, 3, "Float32", multi_sampled=True)
    assert buffer.is_multi_sampled


def test_maps_are_counted(buffer):
    buffer.allocate(5, 3, "Float32")
    buffer.map()
    buffer.map()
    buffer.unmap()
    assert buffer.is_mapped
    for what in (lambda: buffer.resize(9, 9), buffer.deallocate):
        with pytest.raises(Error, match=r"test is mapped; unmap\(\)"):
            what()
    buffer.unmap()
    assert not buffer.is_mapped
    with pytest.raises(Error, match="not mapped"):
        buffer.unmap()
    buffer.deallocate()
    assert (buffer.width, buffer.height, buffer.depth, buffer.format) == (0, 0, 0, "")


def test_nothing_is_there_before_allocate(buffer):
    for what in (buffer.map, lambda: buffer.array, lambda: buffer.resize(3, 3)):
        with pytest.raises(Error, match=r"test is not allocated; call allocate"):
            what()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((0, 3, "Float32"), ArgumentError, "width=0"),
        ((3, -1, "Float32"), ArgumentError, "height=-1"),
        ((3, 2.5, "Float32"), ArgumentError, "height=2.5"),
        ((True, 3, "Float32"), ArgumentError, "width=True"),
        ((100_000, 3, "Float32"), ArgumentError, "width=100000"),
        ((3, 3, "Float16Vec4"), NotSupported, "Float16Vec4.*Float32Vec4"),
        ((3, 3, wp.float64), ArgumentError, "float64"),
    ],
)
def test_wrong_descriptions_are_named(buffer, arguments, error, says):
    with pytest.raises(error, match=says):
        buffer.allocate(*arguments)


def test_too_much_memory_is_named(buffer):
    with pytest.raises(Error, match=r"bytes and there is not enough memory; lower the resolution"):
        buffer.allocate(65536, 65536, "Float32Vec4", depth=100_000)
    assert buffer.width == 0


def test_a_buffer_for_an_aov_is_as_its_descriptor_says(world):
    color = world.delegate.create_render_buffer("color", 8, 6)
    assert (color.format, color.is_multi_sampled, color.array.shape) == ("Float32Vec4", True, (1, 6, 8))
    assert not world.delegate.create_render_buffer("color", 8, 6, multi_sampled=False).is_multi_sampled
    assert world.delegate.create_render_buffer("depth", 8, 6, format="Float32").format == "Float32"
    with pytest.raises(ArgumentError, match="color has format Float32Vec4, not 'UNorm8Vec4'"):
        world.delegate.create_render_buffer("color", 8, 6, format="UNorm8Vec4")
