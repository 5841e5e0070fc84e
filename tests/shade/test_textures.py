"""What textures show: by hand, and against the same in float64."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
import warp as wp

from hdwarp.aovs.pixel_runs import lane_count, lane_options
from hdwarp.shade.filtering import filter_lanes, linear_byte
from hdwarp.shade.textures import look_up, shown_kernel
from hdwarp.stage.looks import WRAPS, Image, Material, Texture
from hdwarp.tables.structs import MOST_LEVELS, TextureColumns
from hdwarp.tables.textures import TextureTable, srgb_decode


@wp.kernel
def _sample(textures: TextureColumns, texture: wp.int32, st: wp.array[wp.vec2f], out: wp.array[wp.vec4f]):
    i = wp.tid()
    out[i] = look_up(textures, texture, st[i])


@wp.kernel
def _linear_bytes(bytes_: wp.array[wp.int32], out: wp.array[wp.float32]):
    i = wp.tid()
    out[i] = linear_byte(bytes_[i])


def shown(textures: list[Texture], st, device) -> list[np.ndarray]:
    table = TextureTable(wp.get_device(device))
    table.sync({row: Material(f"/m{row}", textures={"diffuseColor": texture}) for row, texture in enumerate(textures)})
    places, found = wp.array(np.asarray(st, np.float32), dtype=wp.vec2f, device=device), []
    for texture in textures:
        out = wp.empty(len(places), dtype=wp.vec4f, device=device)
        wp.launch(_sample, len(places), [table.columns, table.row(texture), places], [out], device=device)
        found.append(out.numpy())
    return found


def image(dtype=np.uint8, shape=(3, 5), srgb=False, seed=0) -> Image:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (*shape, 4)).astype(np.uint8) if dtype is np.uint8 else rng.normal(size=(*shape, 4)).astype(dtype) * 3
    return Image(pixels, srgb)


def test_corners_and_middles_by_hand(device):
    """A 2 x 2 image, red above green left, blue above white right: texel middles show texels, the middle of all their mean."""
    pixels = np.array([[[255, 0, 0, 255], [0, 0, 255, 255]], [[0, 255, 0, 255], [255, 255, 255, 0]]], np.uint8)
    (found,) = shown([Texture(Image(pixels, False), "st")], [(0.25, 0.75), (0.75, 0.75), (0.25, 0.25), (0.75, 0.25), (0.5, 0.5)], device)
    expected = [(1, 0, 0, 1), (0, 0, 1, 1), (0, 1, 0, 1), (1, 1, 1, 0), (0.5, 0.5, 0.5, 0.75)]
    assert found == pytest.approx(np.array(expected, float), abs=1e-6)


def test_srgb_is_made_linear_before_the_mean_is_taken(device):
    """Half black, half white: 0.5, not the linear value of the middle grey byte; byte 188 alone is 0.5028865."""
    pixels = np.array([[[0, 0, 0, 255], [255, 255, 255, 255]], [[188, 188, 188, 188], [188, 188, 188, 188]]], np.uint8)
    (found,) = shown([Texture(Image(pixels, True), "st")], [(0.5, 0.75), (0.5, 0.25)], device)
    assert found == pytest.approx(np.array([[0.5, 0.5, 0.5, 1.0], [0.5028865, 0.5028865, 0.5028865, 188 / 255]]), abs=1e-6)


@pytest.mark.parametrize(("wrap", "left"), [("black", 0.0), ("clamp", 0.0), ("repeat", 1.0), ("mirror", 0.0)])
def test_beyond_the_left_edge(device, wrap, left):
    """A row of 0 and 1: a quarter of the image left of it."""
    pixels = np.zeros((1, 2, 4), np.float32)
    pixels[0, 1] = 1.0
    found, beyond = shown([Texture(Image(pixels, False), "st", wrap, "clamp")], [(-0.25, 0.5), (1.25, 0.5)], device)[0][:, 0]
    assert (found, beyond) == (left, {"black": 0.0, "clamp": 1.0, "repeat": 0.0, "mirror": 1.0}[wrap])


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_against_float64(twin, device, dtype):
    """Every pair of wrap modes, every storage, images of odd sizes, in and around the image and many repeats away."""
    rng = np.random.default_rng(3)
    st = np.concatenate([rng.uniform(-0.5, 1.5, (300, 2)), rng.uniform(-40, 40, (300, 2)), [[0, 0], [1, 1], [0.5, 1], [-1, 2]]])
    st = st.astype(np.float32)
    images = [image(dtype, shape, dtype is np.uint8 and k % 2 == 1, k) for k, shape in enumerate([(3, 5), (1, 1), (16, 2), (7, 1)])]
    textures = [Texture(one, "st", s, t) for one, s, t in itertools.product(images, WRAPS, WRAPS)]
    for texture, found in zip(textures, shown(textures, st, device), strict=True):
        expected = twin.look_up(texture, st)
        slack = 2e-4 * np.abs(twin.linear_texels(texture.image)).max()  # float32 coordinates 40 repeats away
        assert np.abs(found[:300] - expected[:300]).max() < 1e-2 * slack + 1e-5, texture
        assert np.abs(found - expected).max() < slack, texture


@functools.cache
def _by_lanes(lanes: int) -> wp.Kernel:
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    LANES, look = lanes, filter_lanes(lanes)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def by_lanes(textures: TextureColumns, row: wp.int32, st: wp.array[wp.float32], spread: wp.vec4f, out: wp.array[wp.vec4f]):
        first = wp.tid() * LANES
        s, t = floats(), floats()
        for lane in range(LANES):
            s[lane] = st[2 * (first + lane)]
            t[lane] = st[2 * (first + lane) + 1]
        colour = look(
            textures.words,
            textures.level_start,
            MOST_LEVELS * row,
            textures.levels[row],
            textures.width[row],
            textures.height[row],
            textures.storage[row],
            textures.srgb[row],
            textures.wrap_s[row],
            textures.wrap_t[row],
            ints(1),
            s,
            t,
            floats(spread[0]),
            floats(spread[1]),
            floats(spread[2]),
            floats(spread[3]),
        )
        for lane in range(LANES):
            out[first + lane] = wp.vec4f(colour[0, lane], colour[1, lane], colour[2, lane], colour[3, lane])

    return by_lanes


def shown_by_lanes(texture: Texture, st: np.ndarray, spread: tuple[float, float, float, float], device) -> np.ndarray:
    lanes = lane_count(device)
    table = TextureTable(wp.get_device(device))
    table.sync({0: Material("/m", textures={"diffuseColor": texture})})
    places = wp.array(np.asarray(st, np.float32).reshape(-1), dtype=wp.float32, device=device)
    out = wp.empty(len(st), dtype=wp.vec4f, device=device)
    arguments = [table.columns, table.row(texture), places, wp.vec4f(*spread)]
    wp.launch(_by_lanes(lanes), len(st) // lanes, arguments, [out], device=device)
    return out.numpy()


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_lanes_against_float64(twin, device, dtype):
    """As `test_against_float64`, of pixels that cover less than a texel."""
    rng = np.random.default_rng(3)
    st = np.concatenate([rng.uniform(-0.5, 1.5, (304, 2)), rng.uniform(-40, 40, (300, 2)), [[0, 0], [1, 1], [0.5, 1], [-1, 2]]])
    st = st.astype(np.float32)
    images = [image(dtype, shape, k % 2 == 1, k) for k, shape in enumerate([(3, 5), (1, 1), (16, 2), (7, 1)])]
    for one, s, t in itertools.product(images, WRAPS, WRAPS):
        texture = Texture(one, "st", s, t)
        found, expected = shown_by_lanes(texture, st, (0.01, 0.0, 0.0, 0.01), device), twin.look_up(texture, st)
        if dtype is not np.uint8 and one.srgb:  # the twin's curve ends at 0 and 1
            expected, found = expected[:, 3:], found[:, 3:]
        slack = 2e-4 * np.abs(one.pixels.astype(np.float64)).max() / (255 if dtype is np.uint8 else 1)
        assert np.abs(found[:304] - expected[:304]).max() < 1e-2 * slack + 1e-5, texture
        assert np.abs(found - expected).max() < slack, texture


@pytest.mark.parametrize("spread", [(1.0, 0.0, 0.0, 1.0), (1e8, -1e8, 1e8, 1e8), (np.inf, np.nan, 0.0, 0.0), (50.0, 0.0, 0.0, 0.01)])
@pytest.mark.parametrize("wrap", WRAPS)
def test_whatever_a_pixel_covers_is_within_the_image(device, wrap, spread):
    """All of it, more than float32 can square, no numbers, 100 times as long as wide; places as wild as those."""
    bad = [(np.nan, 0.5), (np.inf, 0.5), (-np.inf, -np.inf), (3e38, -3e38), (1e20, 0.5), (-1e-30, 1.0), (0.99999994, 0.99999994), (0, 0)]
    one = Image(np.full((6, 5, 4), 200, np.uint8), False)
    found = shown_by_lanes(Texture(one, "st", wrap, wrap), bad * 2, spread, device)
    assert np.isfinite(found).all()
    assert (found >= 0).all() and (found <= 200 / 255 + 1e-5).all()
    if wrap != "black":
        assert found == pytest.approx(200 / 255, abs=1e-5)


@pytest.mark.parametrize("wrap", WRAPS)
def test_no_number_of_coordinates_reads_beyond_the_image(device, wrap):
    st = [(np.nan, 0.5), (np.inf, 0.5), (-np.inf, -np.inf), (3e38, -3e38), (1e20, 0.5), (-1e-30, 1.0), (0.99999994, 0.99999994)]
    (found,) = shown([Texture(image(), "st", wrap, wrap)], st, device)
    assert np.isfinite(found).all()
    assert (found >= 0).all() and (found <= 1).all()


def flat(value: float) -> Image:
    return Image(np.full((1, 1, 4), value, np.float32), False)


def test_udim_borders_belong_to_the_tile_that_begins_there(device):
    """Tiles at (0, 0), (1, 0) and (9, 9); an edge where none begins belongs to the one that ends there, rounding included. NaN, infinite
    and huge coordinates are in no tile."""
    tiles = [flat(1.0), flat(2.0), *[None] * 97, flat(9.0)]
    texture = Texture(tiles[0], "st", tiles=tuple(tiles), fallback=(-1.0, -2.0, -3.0, -4.0))
    at = {
        (0.0, 0.0): 1.0,
        (1.0, 0.5): 2.0,
        (np.nextafter(np.float32(1), np.float32(0)), 0.5): 1.0,
        (2.0, 1.0): 2.0,
        (1.0, 1.0): 2.0,
        (-1e-7, -1e-7): 1.0,
        (0.5, 1.0000002): 1.0,
        (2.0000002, -1e-7): 2.0,
        (9.0, 9.0): 9.0,
        (10.0, 10.0): 9.0,
        (8.9999995, 9.5): 9.0,
    }
    holes = [(0.5, 1.001), (-0.001, 0.5), (2.001, 0.5), (10.5, 9.5), (9.5, 10.5), (10.5, 0.5), (1e30, 0.5), (0.5, -3e38), (np.inf, 0.5)]
    (found,) = shown([texture], [*at, *holes], device)
    assert found[: len(at), 0].tolist() == list(at.values())
    assert (found[len(at) :] == (-1.0, -2.0, -3.0, -4.0)).all()
    (found,) = shown([texture], [(np.nan, 0.5)], device)
    assert found[0, 0] == 1.0  # no primvar: the fallback of the coordinates, (0, 0)


def test_what_is_shown_is_finite(device):
    texture = Texture(Image(np.full((1, 1, 4), 3e38, np.float32), False), "st", scale=(1e30, -1e30, 0.0, 1.0), colour_space="sRGB")
    (found,) = shown([texture], [(0.5, 0.5)], device)
    assert np.isfinite(found).all()


def test_srgb_bytes_of_the_kernel_that_has_no_table(device):
    bytes_ = wp.array(np.arange(256), dtype=wp.int32, device=device)
    out = wp.empty(256, dtype=wp.float32, device=device)
    wp.launch(_linear_bytes, 256, [bytes_], [out], device=device)
    assert out.numpy() == pytest.approx(srgb_decode(np.arange(256) / 255), abs=1e-6)
    assert (np.diff(out.numpy()) > 0).all()


def test_shown_colours_compile_to_ptx(tmp_path):
    (path,) = wp.compile_aot_module(shown_kernel(1).module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert "shown" in path.read_text()
