"""The pool of images: what is equal is held once, what is gone makes room, what stays keeps its place."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.stage.columns import Image, Material, Texture
from hdwarp.tables.materials import MaterialTable
from hdwarp.tables.textures import TextureTable


def image(size: int, value: int = 0) -> Image:
    return Image(np.full((size, size, 4), value, np.uint8), False)


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
    assert column(table, "words")[at : at + 4] == [0x05050505] * 4


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
    assert sum(word != 0 for word in column(table, "words")) == 32
    table.sync(materials(raw))
    assert len(table) == 1
    table.sync(materials(raw, udim))
    assert len(table) == 4  # it, and a tile of each image


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
