"""stage.images: asset paths -> decoded images, files inside packages too. What cannot be read is an ImageError with reason and cure."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass

import numpy as np
from pxr import Ar, Sdf, Tf

from hdwarp.stage.looks import WRAPS, Image
from hdwarp.stage.open import plain_text

_MOST_TEXELS = 2**28  # of one image: 16384 x 16384; in the table texels are counted by int32
_WRAPS = {name: name for name in WRAPS} | {"periodic": "repeat"}


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
            self._by_content[key] = _decoded(bytes(data), str(resolved), asset.path)
        self._by_path[path] = stamp, self._by_content[key]
        return self._by_content[key]

    def keep(self, used: set[Image]) -> None:
        """Let go of all images but ``used``."""
        self._by_content = {key: file for key, file in self._by_content.items() if file.image in used}
        self._by_path = {path: found for path, found in self._by_path.items() if found[1].image in used}


def _decoded(data: bytes, path: str, name: str) -> ImageFile:
    """``path``: where the data may lie as a file."""
    try:
        if os.path.isfile(path) and "?" not in path:  # after which OpenImageIO looks for options
            pixels, srgb, matrix, wraps = _decode(path)
        else:  # its Python binding reads files only
            with tempfile.TemporaryDirectory() as folder:
                file = os.path.join(folder, "image" + re.sub(r"[^.\w]", "", os.path.splitext(name.rstrip("]"))[1]))
                with open(file, "wb") as out:
                    out.write(data)
                pixels, srgb, matrix, wraps = _decode(file)
    except ImageError as error:
        raise ImageError(f"@{name}@ {error}") from None
    except Exception as error:  # decoders meet broken files with errors of any kind
        text = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"@{name}@ cannot be decoded ({text}). Write it anew as PNG, JPEG, TIFF or OpenEXR") from None
    if pixels.dtype != np.uint8:
        largest = np.finfo(pixels.dtype).max
        pixels = np.nan_to_num(pixels, nan=0.0, posinf=largest, neginf=-largest)
    return ImageFile(Image(np.ascontiguousarray(pixels), srgb, name), _matrix(matrix), _wraps(wraps))


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


def _decode(file: str) -> tuple[np.ndarray, bool, object, object]:
    """R, G, B and A of the first image in a file, or its Y, or its first channel, with its alpha. 8-bit integers and halves stay what they
    are, all else becomes float32, integers from 0 to 1."""
    import OpenImageIO

    options = OpenImageIO.ImageSpec()
    options.attribute("oiio:UnassociatedAlpha", 1)  # colours as the file has them
    source = OpenImageIO.ImageInput.open(file, options)
    if source is None:
        raise ImageError(f"is no image that can be read ({_first_line(OpenImageIO.geterror())}). Write it as PNG, JPEG, TIFF or OpenEXR")
    try:
        spec = source.spec()
        _check_size(spec.width, spec.height)
        if spec.deep or spec.depth > 1:
            raise ImageError("holds deep samples or a volume. Write it as a flat image")
        names = list(spec.channelnames)
        if all(name in names for name in "RGB"):
            chosen = [names.index(name) for name in "RGB"]
        else:
            chosen = [names.index("Y") if "Y" in names else 0]
        alpha = names.index("A") if "A" in names else spec.alpha_channel
        if 0 <= alpha < spec.nchannels and alpha not in chosen:
            chosen.append(alpha)
        first, last = min(chosen), max(chosen) + 1
        native = {"uint8": OpenImageIO.UINT8, "half": OpenImageIO.HALF}.get(str(spec.format), OpenImageIO.FLOAT)
        pixels = source.read_image(0, 0, first, last, native)
        if pixels is None:
            raise ImageError(f"cannot be decoded ({_first_line(source.geterror())}). Write it anew as PNG, JPEG, TIFF or OpenEXR")
        # What was told of worldtoscreen has been written to OpenEXR under the other name.
        matrix = next((found for name in ("worldtoscreen", "worldToNDC") if (found := spec.getattribute(name)) is not None), None)
        wraps = spec.getattribute("wrapmodes")
    finally:
        source.close()
    planes = pixels.reshape(spec.height, spec.width, -1)
    return _rgba([planes[..., k - first] for k in chosen]), native == OpenImageIO.UINT8 and len(chosen) >= 3, matrix, wraps


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason is told")
