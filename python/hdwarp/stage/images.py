"""stage.images: asset paths -> decoded images, files inside packages too. What cannot be read is an ImageError with reason and cure."""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import dataclass

import numpy as np
from pxr import Ar, Sdf, Tf

from hdwarp.stage.columns import WRAPS, Image
from hdwarp.stage.open import plain_text

_MOST_TEXELS = 2**28  # of one image: 16384 x 16384; in the table texels are counted by int32
_EXR = b"\x76\x2f\x31\x01"
_PIXAR_WRAP_MODES, _PIXAR_WORLD_TO_SCREEN = 33303, 33305  # TIFF tags
_WRAPS = {name: name for name in WRAPS} | {"periodic": "repeat"}
_GREY = {"L": 255.0, "1": 1.0, "I;16": 65535.0, "I;16B": 65535.0, "I": 65535.0, "F": 1.0}


class ImageError(Exception):
    """Says what is wrong with an asset, and what would cure it."""


@dataclass(frozen=True, slots=True, eq=False)
class ImageFile:
    """What a file holds."""

    image: Image
    screen_from_world: np.ndarray | None  # (4, 4) float64, column vectors: the metadata worldtoscreen; None: it has none
    wraps: tuple[str, str] | None = None  # of WRAPS, along s and t: the metadata wrapmodes; None: it has none


class Images:
    """Reads images: assets of equal content share what they hold, and what has been read is read again only when its file has changed."""

    def __init__(self) -> None:
        self._by_content: dict[bytes, ImageFile] = {}
        self._by_path: dict[str, tuple[float | None, ImageFile]] = {}  # and when the file was modified

    def read(self, asset: Sdf.AssetPath) -> ImageFile:
        """The image an asset attribute names, resolved as USD has resolved it. 8-bit images with colour are taken to be sRGB-encoded, all
        others linear. Raises ImageError."""
        path, resolver = asset.resolvedPath, Ar.GetResolver()
        if not path:
            raise ImageError(f"@{asset.path}@ was not found. Mend the asset path, or put the file there")
        try:
            resolved = Ar.ResolvedPath(path)
            stamp = resolver.GetModificationTimestamp(asset.path, resolved)
            stamp = stamp.GetTime() if stamp.IsValid() else None
            known = self._by_path.get(path)
            if known is not None and known[0] == stamp is not None:
                return known[1]
            opened = resolver.OpenAsset(resolved)
            data = None if opened is None else opened.GetBuffer()
        except Tf.ErrorException as error:
            raise ImageError(f"@{asset.path}@ cannot be opened ({plain_text(error)}). Put a readable file there") from None
        if not data:
            raise ImageError(f"@{asset.path}@ cannot be opened, or is empty. Put a readable file there")
        key = hashlib.blake2b(data, digest_size=16).digest()
        if key not in self._by_content:
            self._by_content[key] = _decoded(bytes(data), asset.path)
        self._by_path[path] = stamp, self._by_content[key]
        return self._by_content[key]

    def keep(self, used: set[Image]) -> None:
        """Let go of all images but ``used``."""
        self._by_content = {key: file for key, file in self._by_content.items() if file.image in used}
        self._by_path = {path: found for path, found in self._by_path.items() if found[1].image in used}


def _decoded(data: bytes, name: str) -> ImageFile:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Pillow, about odd files that it reads nevertheless
            pixels, srgb, matrix, wraps = _decode_exr(data) if data[:4] == _EXR else _decode_other(data)
    except ImageError as error:
        raise ImageError(f"@{name}@ {error}") from None
    except Exception as error:  # decoders meet broken files with errors of any kind
        text = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"@{name}@ cannot be decoded ({text}). Write it anew as PNG, JPEG, TIFF or OpenEXR") from None
    if pixels.dtype != np.uint8:
        largest = np.finfo(pixels.dtype).max
        pixels = np.nan_to_num(pixels, nan=0.0, posinf=largest, neginf=-largest)
    return ImageFile(Image(np.ascontiguousarray(pixels), srgb), _matrix(matrix), _wraps(wraps))


def _check_size(width: int, height: int) -> None:
    if width < 1 or height < 1:
        raise ImageError(f"has {width} x {height} pixels. Put an image there")
    if width * height > _MOST_TEXELS:
        raise ImageError(f"has {width} x {height} pixels, more than {_MOST_TEXELS:,} in all. Make it smaller")


def _matrix(values: object) -> np.ndarray | None:
    """USD and renderers write these matrices for row vectors."""
    if values is None:
        return None
    matrix = np.asarray(values, np.float64).reshape(-1)
    return matrix.reshape(4, 4).T if len(matrix) == 16 else None


def _wraps(value: object) -> tuple[str, str] | None:
    """OpenImageIO's "s,t", or one for both."""
    names = [_WRAPS.get(name.strip(), "") for name in value.split(",")] if isinstance(value, str) else []
    return (names[0], names[-1]) if len(names) in (1, 2) and all(names) else None


def _rgba(channels: list[np.ndarray]) -> np.ndarray:
    """(H, W, 4) of grey, grey and alpha, RGB or RGBA planes of one dtype."""
    colour, alpha = (channels, None) if len(channels) % 2 else (channels[:-1], channels[-1])
    if alpha is None:
        alpha = np.full_like(channels[0], 255 if channels[0].dtype == np.uint8 else 1)
    return np.stack([*(colour * 3 if len(colour) == 1 else colour), alpha], axis=-1)


def _decode_exr(data: bytes) -> tuple[np.ndarray, bool, object, object]:
    """The first part's R, G, B and A, or its Y, or its first channel."""
    import OpenEXR

    header = OpenEXR.File(io.BytesIO(data), header_only=True).parts[0].header
    low, high = header["dataWindow"]
    _check_size(*(int(n) for n in np.asarray(high, np.int64) - np.asarray(low, np.int64) + 1))
    channels = OpenEXR.File(io.BytesIO(data), separate_channels=True).parts[0].channels
    whole = {name: c.pixels for name, c in channels.items() if c.xSampling == 1 and c.ySampling == 1}
    if all(name in whole for name in "RGB"):
        names = ["R", "G", "B"]
    elif whole:
        names = ["Y" if "Y" in whole else next(iter(whole))]
    else:
        raise ImageError("has no channel of full size. Write it with R, G and B")
    planes = [whole[name] for name in (*names, "A") if name in whole]
    half = all(plane.dtype == np.float16 for plane in planes)
    planes = [plane.astype(np.float16 if half else np.float32, copy=False) for plane in planes]
    # OpenImageIO before 2.2 wrote what it was told of worldtoscreen under the other name.
    matrix = next((header[name] for name in ("worldtoscreen", "worldToNDC") if name in header), None)
    return _rgba(planes), False, matrix, header.get("wrapmodes")


def _decode_other(data: bytes) -> tuple[np.ndarray, bool, object, object]:
    import PIL.Image

    try:
        image = PIL.Image.open(io.BytesIO(data))
    except PIL.UnidentifiedImageError:
        raise ImageError("is no image of a format that can be read. Write it as PNG, JPEG, TIFF or OpenEXR") from None
    _check_size(*image.size)
    tags = getattr(image, "tag_v2", {})
    metadata = tags.get(_PIXAR_WORLD_TO_SCREEN), tags.get(_PIXAR_WRAP_MODES)
    if image.mode in _GREY and "transparency" not in image.info:
        grey = np.asarray(image)
        if image.mode in ("L", "1"):
            return _rgba([grey.astype(np.uint8) * (255 if image.mode == "1" else 1)]), False, *metadata
        return _rgba([(grey / _GREY[image.mode]).astype(np.float32)]), False, *metadata
    is_grey = image.mode in ("L", "LA", "La", "1")
    return np.asarray(image.convert("RGBA")), not is_grey, *metadata
