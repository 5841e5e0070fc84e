"""tables.domes: what domes look like, on the device: pictures, how to light by them and to draw directions; pictures of rect lights too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.stage.looks import Image, Light, LightKind, Texture
from hdwarp.tables import dome_maths
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import GLOSSY_LEVELS, DomeTables
from hdwarp.tables.textures import srgb_decode

_WIDEST = 512  # texels across or up the picture of a rect light
_TYPES = {
    "image": wp.int32,
    "cells": wp.vec3i,
    "chances": wp.float32,
    "picture_start": wp.int32,
    "picture_size": wp.vec2i,
    "texels": wp.vec3f,
}
_BRIGHTEST = 1e30

DomeKey = tuple[Image | None, bool, str]  # image, whether it is sRGB-encoded, projection


@dataclass(slots=True, eq=False)
class _Dome:
    pictures: list[np.ndarray]  # the dome, then blurred, then its irradiance
    cells: tuple[int, int]
    chances: np.ndarray


class DomeTable:
    """`DomeTables` of a scene: each image is looked at once, whatever number of lights has it; all is kept while some light does."""

    def __init__(self, device: wp.Device) -> None:
        self._arrays = {name: GrowingArray(dtype, device) for name, dtype in _TYPES.items()}
        self._domes: dict[DomeKey, _Dome] = {}
        self._mips: dict[DomeKey, list[np.ndarray]] = {}
        self._dome_rows: dict[DomeKey, int] = {}
        self._picture_rows: dict[DomeKey, int] = {}

    def __len__(self) -> int:
        return len(self._dome_rows)

    @property
    def columns(self) -> DomeTables:
        columns = DomeTables()
        for name, growing in self._arrays.items():
            setattr(columns, name, growing.array)
        return columns

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in self._arrays.values()]

    def device_arrays(self) -> list[wp.array]:
        return [growing.array for growing in self._arrays.values()]

    def dome(self, light: Light) -> int:
        """Row of a light, -1 for what is no dome."""
        return self._dome_rows[_key(light)] if light.kind is LightKind.DOME else -1

    def picture(self, light: Light) -> int:
        """First picture of a rect light, -1 without."""
        return self._picture_rows[_key(light)] if light.kind is LightKind.RECT and light.texture is not None else -1

    def sync(self, lights: Iterable[Light]) -> bool:
        """Hold what ``lights`` look like; whether anything is new."""
        lights = list(lights)
        domes = dict.fromkeys(_key(light) for light in lights if light.kind is LightKind.DOME)
        rects = dict.fromkeys(_key(light) for light in lights if light.kind is LightKind.RECT and light.texture is not None)
        if list(domes) == list(self._domes) and list(rects) == list(self._mips):
            return False
        self._domes = {key: self._domes.get(key) or _dome(key) for key in domes}
        self._mips = {key: self._mips.get(key) or _mips(key) for key in rects}
        self._write()
        return True

    def _write(self) -> None:
        pictures: list[np.ndarray] = []
        columns: dict[str, list] = {"image": [], "cells": [], "chances": []}
        end = 0
        self._dome_rows = {key: row for row, key in enumerate(self._domes)}
        for dome in self._domes.values():
            columns["image"].append([len(pictures)])
            columns["cells"].append([[*dome.cells, end]])
            columns["chances"].append(dome.chances)
            end += len(dome.chances)
            pictures += dome.pictures
        self._picture_rows = {}
        for key, mips in self._mips.items():
            self._picture_rows[key] = len(pictures)
            pictures += mips
        sizes = [picture.shape[0] * picture.shape[1] for picture in pictures]
        columns["picture_start"] = [np.cumsum([0, *sizes[:-1]])] if pictures else []
        columns["picture_size"] = [[picture.shape[1], picture.shape[0]] for picture in pictures]
        columns["picture_size"] = [np.array(columns["picture_size"])] if pictures else []
        columns["texels"] = [picture.reshape(-1, 3) for picture in pictures]
        for name, parts in columns.items():
            if parts:
                self._arrays[name].write(0, np.concatenate([np.asarray(part) for part in parts]))


def _key(light: Light) -> DomeKey:
    texture = light.texture
    if texture is None:
        return None, False, "latlong"
    return texture.image, _is_srgb(texture), light.projection


def _is_srgb(texture: Texture) -> bool:
    return texture.image.srgb if texture.colour_space == "auto" else texture.colour_space == "sRGB"


def linear_pixels(image: Image, srgb: bool) -> np.ndarray:
    """(H, W, 3) float32, linear, finite, 0 or more."""
    pixels = image.pixels[..., :3]
    if pixels.dtype == np.uint8:
        codes = np.arange(256) / 255.0
        return (srgb_decode(codes) if srgb else codes).astype(np.float32)[pixels]
    return np.clip(np.nan_to_num(pixels.astype(np.float32), posinf=_BRIGHTEST, neginf=0.0), 0.0, _BRIGHTEST)


def _dome(key: DomeKey) -> _Dome:
    image, srgb, projection = key
    pixels = np.ones((1, 1, 3), np.float32) if image is None else linear_pixels(image, srgb)
    latlong = dome_maths.as_latlong(pixels, projection)
    cells, chances = dome_maths.chances(latlong)
    sizes = dome_maths.GLOSSY_SIZES[: int(GLOSSY_LEVELS)]
    blurred = [dome_maths.glossy(latlong, (k + 1) / len(sizes), *size) for k, size in enumerate(sizes)]
    return _Dome([latlong, *blurred, dome_maths.irradiance(latlong)], cells, chances)


def _mips(key: DomeKey) -> list[np.ndarray]:
    """The picture of a rect light, and ever smaller ones, to 1 x 1."""
    image, srgb, _ = key
    pixels = linear_pixels(image, srgb)
    height, width = pixels.shape[:2]
    mips = [dome_maths.resized(pixels, min(width, _WIDEST), min(height, _WIDEST))]
    while max(mips[-1].shape[:2]) > 1:
        height, width = mips[-1].shape[:2]
        mips.append(dome_maths.resized(mips[-1], max(width // 2, 1), max(height // 2, 1)))
    return mips
