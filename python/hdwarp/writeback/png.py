"""writeback.png: one AOV as a PNG or JPEG. Reads a frame, knows no USD.

PNG keeps colour's alpha (straight), JPEG lies over black. What the picture shows stands in the file's text.
"""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING

import numpy as np

import hdwarp
from hdwarp.writeback.atomic import write_bytes
from hdwarp.writeback.pictures import picture

if TYPE_CHECKING:
    from hdwarp.frame import Frame
    from hdwarp.writeback.display import Display

# Measured at 640x480, CPU time (15 ms of it for making 8-bit sRGB) and size, mean of three shaded RGBA pictures, Pillow 13 with zlib-ng:
# level 0 21 ms 1230 kB; 1 24 ms 110 kB; 3 26 ms 97 kB; 6 (zlib's default) 34 ms 86 kB; 9 144 ms 80 kB. After 3 time grows faster than
# the file shrinks.
PNG_LEVEL = 3
JPEG_QUALITY = 95


def write_png(
    frame: Frame,
    path: str | os.PathLike[str],
    name: str,
    *,
    level: int = PNG_LEVEL,
    display: Display | None = None,
    overwrite: bool = True,
) -> None:
    """One var or AOV of ``frame``; see `pictures` for how it looks. ``level``: 0 (no compression) to 9."""
    write_bytes(path, encode_png(frame, name, level=level, display=display), overwrite=overwrite)


def write_jpeg(
    frame: Frame,
    path: str | os.PathLike[str],
    name: str,
    *,
    quality: int = JPEG_QUALITY,
    display: Display | None = None,
    overwrite: bool = True,
) -> None:
    write_bytes(path, encode_jpeg(frame, name, quality=quality, display=display), overwrite=overwrite)


def encode_png(frame: Frame, name: str, *, level: int = PNG_LEVEL, display: Display | None = None) -> bytes:
    from PIL import Image, PngImagePlugin

    aov, image, reading = _picture(frame, name, display)
    text = PngImagePlugin.PngInfo()
    if reading == "sRGB":
        text.add(b"sRGB", b"\0")  # perceptual; says that the codes are sRGB, not merely that they often are
    elif reading == "linear":
        text.add(b"gAMA", (100_000).to_bytes(4, "big"))  # 1, in 1/100,000
    for key, value in _texts(frame, name, aov, reading).items():
        text.add_text(key, value)
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", pnginfo=text, compress_level=level)
    return buffer.getvalue()


def encode_jpeg(frame: Frame, name: str, *, quality: int = JPEG_QUALITY, display: Display | None = None) -> bytes:
    from PIL import Image

    aov, image, reading = _picture(frame, name, display, opaque=True)
    comment = "\n".join(f"{key}: {value}" for key, value in _texts(frame, name, aov, reading).items())
    buffer = io.BytesIO()
    # No chroma subsampling: it bleeds the colours of ids and labels into each other.
    Image.fromarray(image).save(buffer, "JPEG", quality=quality, subsampling=0, comment=comment.encode("utf8"))
    return buffer.getvalue()


def _picture(frame: Frame, name: str, display: Display | None, *, opaque: bool = False) -> tuple[str, np.ndarray, str]:
    aov, data_type = next(((aov, data_type) for var, aov, data_type in frame.vars if var == name), (name, ""))
    image, reading = picture(frame, aov, data_type, display=display, opaque=opaque)
    return aov, np.ascontiguousarray(image), reading


def _texts(frame: Frame, name: str, aov: str, reading: str) -> dict[str, str]:
    """Keys and values for people and scripts; "Software" is PNG's own key."""
    texts = {
        "Software": f"hdWarp {hdwarp.__version__}",
        "Stage": str(frame.stage),
        "Product": str(frame.product),
        "Camera": str(frame.camera),
        "Variable": name if name != aov else "",
        "AOV": aov,
        "Reading": reading,
        "Time": "" if frame.time is None else f"{frame.time:.17g}",
        "K": "" if frame.K is None else json.dumps(np.asarray(frame.K, np.float64).tolist()),
        "DataWindow": " ".join(str(value) for value in frame.data_window),
        "ImageSize": " ".join(str(value) for value in frame.image_size),
    }
    return {key: value for key, value in texts.items() if value}
