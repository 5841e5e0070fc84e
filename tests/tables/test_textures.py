"""The pool of images: what is equal is held once, what is gone makes room, what stays keeps its place."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.stage.looks import Image, Material, Texture
from hdwarp.tables.materials import MaterialTable
from hdwarp.tables.structs import MOST_LEVELS
from hdwarp.tables.textures import TextureTable, srgb_decode


def image(size: int, value: int = 0) -> Image:
    return Image(np.full((size, size, 4), value, np.uint8), False, f"{value}.png")


def materials(*textures) -> dict[int, Material]:
    return {row: Material(f"/m{row}", textures={"diffuseColor": texture}) for row, texture in enumerate(textures)}


def column(table: TextureTable, name: str) -> list[int]:
    return getattr(table.columns, name).numpy().tolist()


def test_textures_of_one_image_share_it(device):
    table, one = TextureTable(wp.get_device(device)), image(4, 7)
    a, b, same = Texture(one, "st"), Texture(one, "st", "repeat", "mirror"), Texture(one, "st")
    table.sync(materials(a, b, same))
    assert len(table) == 2
    assert table.row(a) == table.row(same) != table.row(b)
    assert table.row(None) == -1
    starts, wraps = column(table, "start"), column(table, "wrap_t")
    assert starts[table.row(a)] == starts[table.row(b)]
    assert (wraps[table.row(a)], wraps[table.row(b)]) == (1, 3)
    assert column(table, "words")[:16] == [0x07070707] * 16


def test_sets_of_coordinates_are_numbered_by_name(device):
    table = TextureTable(wp.get_device(device))
    a, b = Texture(image(1), "st"), Texture(image(1), "map1")
    table.sync(materials(a, b))
    sets = column(table, "st")
    assert (table.sets[sets[table.row(a)]], table.sets[sets[table.row(b)]]) == ("st", "map1")


def test_what_is_gone_makes_room_and_what_stays_keeps_its_place(device):
    table = TextureTable(wp.get_device(device))
    kept, gone = Texture(image(8, 1), "st"), Texture(image(8, 2), "st")
    table.sync(materials(gone, kept))
    row, start, addresses = table.row(kept), column(table, "start")[table.row(kept)], table.addresses()
    table.sync(materials(kept))
    new = Texture(image(8, 3), "st")
    assert not table.sync(materials(kept, new))
    assert (table.row(kept), column(table, "start")[row]) == (row, start)
    assert table.addresses() == addresses
    words = column(table, "words")
    at = column(table, "start")[table.row(new)]
    assert words[start : start + 64] == [0x01010101] * 64 and words[at : at + 64] == [0x03030303] * 64


def test_memory_goes_with_most_of_the_images(device):
    table, small = TextureTable(wp.get_device(device)), Texture(image(2, 5), "st")
    table.sync(materials(Texture(image(256), "st"), small))
    before = sum(array.capacity for array in table.device_arrays())
    assert table.sync(materials(small))
    assert sum(array.capacity for array in table.device_arrays()) < before / 100
    at = column(table, "start")[table.row(small)]
    assert column(table, "words")[at : at + 6] == [0x05050505] * 2 + [0] * 2 + [0x05050505] * 2  # in a square of 4 x 4


def test_tiles_and_colour_spaces_share_images(device):
    """Four textures of two images, two of them in tiles: the words of two images; what has gone gives its tiles back."""
    table, a, b = TextureTable(wp.get_device(device)), image(4, 1), image(4, 2)
    udim, raw, other = Texture(a, "st", tiles=(a, None, b, a)), Texture(a, "st", colour_space="raw"), Texture(b, "st", channel=2)
    table.sync(materials(udim, raw, other, Texture(b, "st")))
    start, count = column(table, "tile_start")[table.row(udim)], column(table, "tile_count")[table.row(udim)]
    rows = column(table, "tile_row")[start : start + count]
    assert (count, rows[1], rows[0]) == (4, -1, rows[3])
    starts = column(table, "start")
    assert starts[rows[0]] == starts[table.row(raw)] != starts[rows[2]] == starts[table.row(other)]
    assert sorted({word for word in column(table, "words") if word}) == [0x01010101, 0x02020202]
    assert sum(word != 0 for word in column(table, "words")) == 2 * (16 + 4 + 1)  # texels of two images with their levels
    table.sync(materials(raw))
    assert len(table) == 1
    table.sync(materials(raw, udim))
    assert len(table) == 4  # it, and a tile of each image


def test_levels_are_means_in_linear_light(device):
    """5 x 3 sRGB bytes, then 2 x 1, then one texel: of odd sizes parts of texels count by their area. Alpha is no light."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (3, 5, 4)).astype(np.uint8)
    table, texture = TextureTable(wp.get_device(device)), Texture(Image(pixels, True), "st")
    table.sync(materials(texture))
    row = table.row(texture)
    assert column(table, "levels")[row] == 3
    starts = column(table, "level_start")[MOST_LEVELS * row :][:3]
    words = table.columns.words.numpy()

    def light(held: np.ndarray) -> np.ndarray:
        return np.concatenate([srgb_decode(held[..., :3] / 255), held[..., 3:] / 255], axis=-1)

    def told(light: np.ndarray) -> np.ndarray:
        colour = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
        return 255 * np.concatenate([colour[..., :3], light[..., 3:]], axis=-1)

    shares = np.array([[1, 1, 0.5, 0, 0], [0, 0, 0.5, 1, 1]]) / 2.5
    halved = np.einsum("xw,hwc->xc", shares, light(pixels)) / 3
    first, last = (words[start : start + count].view(np.uint8).reshape(-1, 4) for start, count in zip(starts[1:], (2, 1), strict=True))
    assert np.abs(first - told(halved)).max() < 0.51
    assert np.abs(last - told(light(first).mean(axis=0))).max() < 0.51
    level = words[starts[0] : starts[0] + 32].view(np.uint8).reshape(2, 4, 4, 4)  # two squares, the second of one column
    assert (np.concatenate([level[0], level[1]], axis=1)[:3, :5] == pixels).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_levels_of_floats(device, dtype):
    pixels = np.random.default_rng(2).normal(size=(8, 16, 4)).astype(dtype) * 100
    table, texture = TextureTable(wp.get_device(device)), Texture(Image(pixels, False), "st")
    table.sync(materials(texture))
    row = table.row(texture)
    start = column(table, "level_start")[MOST_LEVELS * row + 1]
    size = 32 * pixels.itemsize
    held = table.columns.words.numpy()[start : start + size].view(dtype).reshape(2, 4, 4, 4)
    mean = pixels.astype(np.float64).reshape(4, 2, 8, 2, 4).mean(axis=(1, 3))
    assert np.concatenate([held[0], held[1]], axis=1) == pytest.approx(mean, abs=0.1 if dtype is np.float16 else 1e-4)
    assert np.isfinite(table.columns.words.numpy()[:start].view(dtype)).all()


def test_the_largest_images_are_halved_until_all_fit(device):
    """64 x 64, 32 x 32 and 8 x 8 texels in 8 KiB, at 4 bytes and a third more: the first is halved, and again, for only one of 32 x 32
    fits."""
    large, middle, small = (Texture(image(size, value), "st") for size, value in ((64, 1), (32, 2), (8, 3)))
    table = TextureTable(wp.get_device(device), budget=8192)
    table.sync(materials(large, middle, small))
    widths = [column(table, "width")[table.row(texture)] for texture in (large, middle, small)]
    assert widths == [16, 32, 8]
    assert table.reduced == {large.image: (16, 16)}
    (told,) = table.diagnostics()
    assert (told.path, told.code) == ("1.png", "texture-size")
    assert "64 x 64 pixels" in told.message and "16 x 16" in told.message
    at = column(table, "start")[table.row(large)]
    assert column(table, "words")[at : at + 16 * 16] == [0x01010101] * 16 * 16
    assert table.sync(materials(large, small))  # there is room now: other words, so all rows anew
    assert column(table, "width")[table.row(large)] == 32
    assert not table.sync(materials(large, small))
    table = TextureTable(wp.get_device(device), budget=0)
    table.sync(materials(large, small))
    assert column(table, "width")[table.row(large)] == column(table, "width")[table.row(small)] == 1


def test_a_texture_takes_the_place_of_a_constant(device):
    """The emitted constant of the row beside it stays."""
    textures, table = TextureTable(wp.get_device(device)), MaterialTable(wp.get_device(device))
    rows = {
        0: Material("/a", emissive_color=(1, 2, 3), textures={"emissiveColor": Texture(image(1), "st")}),
        1: Material("/b", emissive_color=(4, 5, 6)),
    }
    textures.sync(rows)
    assert textures.inputs == {"emissiveColor": frozenset((0,))}
    table.sync(rows, np.arange(2), np.arange(2), textures)
    assert table.columns.emissive_color.numpy()[:2].tolist() == [[0, 0, 0], [4, 5, 6]]
    textures.sync({1: rows[1]})
    assert not textures.inputs
