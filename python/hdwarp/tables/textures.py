"""tables.textures: images on the device in one pool of words, and a row a texture: an image with its wrap modes and coordinates."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import warp as wp

from hdwarp.delegate.rows import RowMap
from hdwarp.errors import Diagnostic, Error, Severity
from hdwarp.stage.looks import MATERIAL_INPUTS, WRAPS, Image, Material, Texture
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import MOST_LEVELS, PRIMVAR, TextureColumns
from hdwarp.tables.texels import STORAGE, level_sizes, level_words, pyramid, pyramid_words

TEXTURE_BUDGET = 2**31
"""Bytes that the images of a scene may take, their levels included, unless the caller knows better."""

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
_NUMBERS = ("start", "levels", "width", "height", "storage", "srgb", "wrap_s", "wrap_t", "st", "tile_start", "tile_count")
_POOLS = {"words": wp.uint32, "level_start": wp.int32, "tile_row": wp.int32}
_TYPES = dict.fromkeys(_NUMBERS, wp.int32) | _AS_GIVEN
_OF_ONE_TEXEL = ("levels", "width", "height", "wrap_s", "wrap_t", "level_start")


def srgb_decode(encoded: np.ndarray) -> np.ndarray:
    """Linear values of sRGB-encoded ones on [0, 1], in float64; values outside are clamped."""
    encoded = np.clip(np.asarray(encoded, np.float64), 0.0, 1.0)
    return np.where(encoded <= 12.92 * 0.0031308, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def _tiles(texture: Texture) -> list[Texture | None]:
    """What each UDIM tile shows, laid from (0, 0) to (1, 1); [] of a texture that is one image."""
    tile = replace(texture, wrap_s="clamp", wrap_t="clamp", tiles=())
    return [None if image is None else replace(tile, image=image) for image in texture.tiles]


class TextureTable:
    """The textures of all materials of a scene. Each image is held once with its levels, whatever number of textures shows it (twice where
    some say that it is sRGB-encoded and some that it is not); rows and words of what no material uses any more are used again."""

    def __init__(self, device: wp.Device, *, budget: int = TEXTURE_BUDGET) -> None:
        """``budget``: bytes that images may take. Where they would take more, the largest are held at half their size, and again."""
        self.device, self.budget = device, budget
        self.reduced: dict[Image, tuple[int, int]] = {}  # images that are smaller here than they are: (width, height) held
        self.sets: list[str] = []  # names of the primvars that textures are laid by; a set stays when its last texture goes
        self.values: list[str] = []  # the same of primvars that are shown themselves
        self.inputs: dict[str, frozenset[int]] = {}  # of MATERIAL_INPUTS that some material has a texture of: sets that these are laid by
        self._arrays = {name: GrowingArray(dtype, device) for name, dtype in (_POOLS | _TYPES).items()}
        self._of_means = {name: GrowingArray(wp.int32, device) for name in _OF_ONE_TEXEL}
        self._linear: wp.array | None = None
        self._forget()

    def _forget(self) -> None:
        self._rows, self._images, self._tiles = RowMap(), RowMap(), RowMap()  # Texture -> row, its `_image_of` -> words, Texture -> tiles
        self._skips: dict[tuple[Image, bool], int] = {}  # levels that are left out of each of _images, the first first

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> TextureColumns:
        columns = TextureColumns()
        for name, growing in self._arrays.items():
            setattr(columns, name, growing.array)
        columns.linear = self._linear_bytes()
        return columns

    @property
    def mean_columns(self) -> TextureColumns:
        """The same rows, each image (and each tile) of the one texel of its last level: its mean in linear light."""
        columns = self.columns
        for name, growing in self._of_means.items():
            setattr(columns, name, growing.array)
        return columns

    def _linear_bytes(self) -> wp.array:
        if self._linear is None:
            self._linear = wp.array(srgb_decode(np.arange(256) / 255), dtype=wp.float32, device=self.device)
        return self._linear

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [array.ptr for array in self.device_arrays()]

    def device_arrays(self) -> list[wp.array]:
        return [growing.array for arrays in (self._arrays, self._of_means) for growing in arrays.values()]

    def diagnostics(self) -> list[Diagnostic]:
        """What is held smaller than it is, largest files first."""
        told = []
        for image, (width, height) in sorted(self.reduced.items(), key=lambda item: -item[0].pixels.size):
            whole = f"{image.pixels.shape[1]} x {image.pixels.shape[0]}"
            message = f"has {whole} pixels, and is held with {width} x {height}: the images of the scene take more than the budget of"
            message += f" {self.budget / 2**20:,.0f} MiB. Make images smaller, or the budget larger"
            told.append(Diagnostic(image.name, "texture-size", Severity.NOTE, message))
        return told

    def row(self, texture: Texture | None) -> int:
        """-1 for none."""
        return -1 if texture is None else self._rows[texture]

    def sync(self, materials: Mapping[int, Material]) -> bool:
        """Hold the textures of ``materials``, and no others; whether all have other rows now. Raises Error for more than 8 GiB of them."""
        whole = dict.fromkeys(texture for m in materials.values() for texture in m.textures.values())
        used = dict.fromkeys(tile for texture in whole for tile in _tiles(texture) if tile is not None) | whole  # tiles have rows before
        images = dict.fromkeys(_image_of(texture) for texture in used if not texture.tiles and texture.image is not None)
        skips = self._fitting(images)
        for rows, kept in ((self._rows, used), (self._images, images), (self._tiles, used)):
            for key in [key for key in rows if key not in kept]:
                rows.remove(key)
        restarts = any(rows.allocator.is_sparse for rows in (self._rows, self._images, self._tiles))
        restarts |= any(self._skips[key] != skips[key] for key in self._images)
        if restarts:
            self._forget()
            for growing in (*self._arrays.values(), *self._of_means.values()):
                growing.reset()
        self._skips = skips
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
        srgb = image is not None and _image_of(texture)[1]
        if tiles:
            tile_start = self._tiles.insert(texture, len(tiles))
            self._arrays["tile_row"].write(tile_start, np.array([self.row(tile) for tile in tiles]))
        sets = self.values if image is None else self.sets
        if texture.st not in sets:
            sets.append(texture.st)
        row = np.array([self._rows.insert(texture)])
        sizes, starts = [(0, 0)], np.zeros(MOST_LEVELS, np.int32)
        if image is not None:
            sizes = level_sizes(image.pixels.shape[1], image.pixels.shape[0])
            if not tiles:
                key = _image_of(texture)
                sizes = sizes[self._skips[key] :]
                words = [level_words(size, image.pixels.itemsize) for size in sizes[:-1]]
                starts[: len(sizes)] = self._start(key) + np.cumsum([0, *words])
        self._arrays["level_start"].write(MOST_LEVELS * int(row[0]), starts)
        self._of_means["level_start"].write(MOST_LEVELS * int(row[0]), np.full(MOST_LEVELS, starts[len(sizes) - 1]))
        clamp = WRAPS.index("clamp")
        for name, value in {"levels": 1, "width": 1, "height": 1, "wrap_s": clamp, "wrap_t": clamp}.items():
            self._of_means[name].write_rows(row, np.array([value]))
        values = {
            "start": starts[0],
            "levels": len(sizes),
            "width": sizes[0][0],
            "height": sizes[0][1],
            "storage": PRIMVAR if image is None else STORAGE[image.pixels.itemsize],
            "srgb": srgb,
            "wrap_s": WRAPS.index(texture.wrap_s),
            "wrap_t": WRAPS.index(texture.wrap_t),
            "st": sets.index(texture.st),
            "tile_start": tile_start,
            "tile_count": len(tiles),
        } | {name: getattr(texture, name) for name in _AS_GIVEN}
        for name, value in values.items():
            self._arrays[name].write_rows(row, np.array([value]))

    def _start(self, key: tuple[Image, bool]) -> int:
        """First word of an image, which is uploaded where it is new."""
        if key in self._images:
            return self._images[key]
        image, srgb = key
        words = pyramid(image.pixels, srgb, self._linear_bytes(), self.device, skip=self._skips[key])
        start = self._images.insert(key, len(words))
        if self._images.allocator.size > _MOST_WORDS:
            raise Error("the textures of the scene take more than 8 GiB, which is all that they can. Make images smaller")
        self._arrays["words"].write(start, words)
        return start

    def _fitting(self, images: Iterable[tuple[Image, bool]]) -> dict[tuple[Image, bool], int]:
        """How many levels to leave out of each image so that all fit into the budget; `reduced` follows."""
        skips, total, largest, sizes = dict.fromkeys(images, 0), 0, [], {}
        for number, key in enumerate(skips):
            height, width, component = *key[0].pixels.shape[:2], key[0].pixels.itemsize
            sizes[key] = level_sizes(width, height)
            total += 4 * pyramid_words((width, height), component)
            largest.append((-level_words((width, height), component), number, key))
        heapq.heapify(largest)
        while total > self.budget and largest:
            words, number, key = heapq.heappop(largest)
            if skips[key] + 1 == len(sizes[key]):
                continue  # a single texel
            total += 4 * words
            skips[key] += 1
            heapq.heappush(largest, (-level_words(sizes[key][skips[key]], key[0].pixels.itemsize), number, key))
        self.reduced = {key[0]: sizes[key][skip] for key, skip in skips.items() if skip}
        return skips


def _image_of(texture: Texture) -> tuple[Image, bool]:
    """The image, and whether it is sRGB-encoded: its levels are means of linear light."""
    image = texture.image
    return image, image.srgb if texture.colour_space == "auto" else texture.colour_space == "sRGB"
