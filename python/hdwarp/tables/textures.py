"""tables.textures: images on the device in one pool of words, and a row a texture: an image with its wrap modes and coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import warp as wp

from hdwarp.delegate.rows import RowMap
from hdwarp.errors import Error
from hdwarp.stage.columns import MATERIAL_INPUTS, WRAPS, Image, Material, Texture
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import BYTES, FLOATS, HALVES, PRIMVAR, TextureColumns

_STORAGE = {1: BYTES, 2: HALVES, 4: FLOATS}  # by bytes a component
_MOST_WORDS = 2**31 - 1
_AS_GIVEN = {  # columns that are fields of Texture
    "channel": wp.int32,
    "scale": wp.vec4f,
    "bias": wp.vec4f,
    "st_linear": wp.vec4f,
    "st_offset": wp.vec2f,
    "st_fallback": wp.vec2f,
    "fallback": wp.vec4f,
}
_NUMBERS = ("start", "width", "height", "storage", "srgb", "wrap_s", "wrap_t", "st", "tile_start", "tile_count")
_TYPES = dict.fromkeys(_NUMBERS, wp.int32) | _AS_GIVEN


def srgb_decode(encoded: np.ndarray) -> np.ndarray:
    """Linear values of sRGB-encoded ones on [0, 1], in float64; values outside are clamped."""
    encoded = np.clip(np.asarray(encoded, np.float64), 0.0, 1.0)
    return np.where(encoded <= 12.92 * 0.0031308, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def _tiles(texture: Texture) -> list[Texture | None]:
    """What each UDIM tile shows, laid from (0, 0) to (1, 1); [] of a texture that is one image."""
    tile = replace(texture, wrap_s="clamp", wrap_t="clamp", tiles=())
    return [None if image is None else replace(tile, image=image) for image in texture.tiles]


class TextureTable:
    """The textures of all materials of a scene. Each image is held once, whatever number of textures shows it; rows and words of what no
    material uses any more are used again."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.sets: list[str] = []  # names of the primvars that textures are laid by; a set stays when its last texture goes
        self.values: list[str] = []  # the same of primvars that are shown themselves
        self.inputs: dict[str, frozenset[int]] = {}  # of MATERIAL_INPUTS that some material has a texture of: sets that these are laid by
        self._arrays = {name: GrowingArray(dtype, device) for name, dtype in ({"words": wp.uint32, "tile_row": wp.int32} | _TYPES).items()}
        self._linear: wp.array | None = None
        self._forget()

    def _forget(self) -> None:
        self._rows, self._images, self._tiles = RowMap(), RowMap(), RowMap()  # Texture -> row, Image -> words, Texture -> its tiles

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> TextureColumns:
        columns = TextureColumns()
        for name, growing in self._arrays.items():
            setattr(columns, name, growing.array)
        if self._linear is None:
            self._linear = wp.array(srgb_decode(np.arange(256) / 255), dtype=wp.float32, device=self.device)
        columns.linear = self._linear
        return columns

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in self._arrays.values()]

    def device_arrays(self) -> list[wp.array]:
        return [growing.array for growing in self._arrays.values()]

    def row(self, texture: Texture | None) -> int:
        """-1 for none."""
        return -1 if texture is None else self._rows[texture]

    def sync(self, materials: Mapping[int, Material]) -> bool:
        """Hold the textures of ``materials``, and no others; whether all have other rows now. Raises Error for more than 8 GiB of them."""
        whole = dict.fromkeys(texture for m in materials.values() for texture in m.textures.values())
        used = dict.fromkeys(tile for texture in whole for tile in _tiles(texture) if tile is not None) | whole  # tiles have rows before
        images = {texture.image for texture in used if not texture.tiles}
        for rows, kept in ((self._rows, used), (self._images, images), (self._tiles, used)):
            for key in [key for key in rows if key not in kept]:
                rows.remove(key)
        restarts = any(rows.allocator.is_sparse for rows in (self._rows, self._images, self._tiles))
        if restarts:
            self._forget()
            for growing in self._arrays.values():
                growing.reset()
        for texture in used:
            if texture not in self._rows:
                self._write(texture)
        laid: dict[str, set[int]] = {}
        for name, texture in {pair for m in materials.values() for pair in m.textures.items()}:
            laid.setdefault(name, set()).update([self.sets.index(texture.st)] if texture.image is not None else [])
        self.inputs = {name: frozenset(laid[name]) for name in MATERIAL_INPUTS if name in laid}
        return restarts

    def _write(self, texture: Texture) -> None:
        image, tiles, tile_start = texture.image, _tiles(texture), 0
        srgb = texture.colour_space == "sRGB" or (texture.colour_space == "auto" and image is not None and image.srgb)
        if tiles:
            tile_start = self._tiles.insert(texture, len(tiles))
            self._arrays["tile_row"].write(tile_start, np.array([self.row(tile) for tile in tiles]))
        sets = self.values if image is None else self.sets
        if texture.st not in sets:
            sets.append(texture.st)
        row = np.array([self._rows.insert(texture)])
        values = {
            "start": 0 if tiles or image is None else self._start(image),
            "width": 0 if image is None else image.pixels.shape[1],
            "height": 0 if image is None else image.pixels.shape[0],
            "storage": PRIMVAR if image is None else _STORAGE[image.pixels.itemsize],
            "srgb": srgb,
            "wrap_s": WRAPS.index(texture.wrap_s),
            "wrap_t": WRAPS.index(texture.wrap_t),
            "st": sets.index(texture.st),
            "tile_start": tile_start,
            "tile_count": len(tiles),
        } | {name: getattr(texture, name) for name in _AS_GIVEN}
        for name, value in values.items():
            self._arrays[name].write_rows(row, np.array([value]))

    def _start(self, image: Image) -> int:
        """First word of an image, which is uploaded where it is new."""
        if image in self._images:
            return self._images[image]
        words = np.ascontiguousarray(image.pixels).reshape(-1).view(np.uint32)
        start = self._images.insert(image, len(words))
        if self._images.allocator.size > _MOST_WORDS:
            raise Error("the textures of the scene take more than 8 GiB, which is all that they can. Make images smaller")
        self._arrays["words"].write(start, words)
        return start
