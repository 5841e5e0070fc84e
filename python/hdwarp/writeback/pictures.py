"""writeback.pictures: an AOV as an 8-bit picture that a person can read. Arrays in, arrays out; knows no file format.

colour is sRGB unless a `display` says otherwise; ids get a colour of their own each, the same in every frame and run; distances are Turbo
over inverse depth (red near, blue far); normals are (n + 1) / 2; positions and other numbers are spread over their bounds; black is where
nothing was hit.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from hdwarp.frame import IN_COLOR_SPACE, turned
from hdwarp.stage.spec import REC709
from hdwarp.writeback import meta

if TYPE_CHECKING:
    from hdwarp.frame import Frame
    from hdwarp.writeback.display import Display

# Turbo (A. Mikhailov, Google, 2019) by the published polynomial of degree five (R. Du, Google, Apache-2.0), lowest power first.
_TURBO = np.array(
    [
        [0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943],
        [0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604],
        [0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973],
    ]
)

_BLOCK = 1 << 14  # pixels that are converted at a time


def picture(
    frame: Frame, name: str, data_type: str = "", *, display: Display | None = None, opaque: bool = False
) -> tuple[np.ndarray, str]:
    """(H, W, 3 or 4) uint8 and one line that says how to read it. Colour keeps its alpha, unpremultiplied, or (``opaque``) lies over
    black; the rest is opaque RGB. ``display``: how linear colour is encoded, None: by sRGB's curve; `rgba8` always is."""
    from hdwarp.writeback.display import Display

    array = frame[name]
    if name == "rgba8":
        return np.ascontiguousarray(over_black(array) if opaque else array), "sRGB"
    if meta.is_colour(name, data_type, array):
        if name in IN_COLOR_SPACE and frame.color_space != REC709:
            array = turned(array, np.linalg.inv(frame.color_space.from_rec709))
        return (display or Display()).encode(array, opaque=opaque)
    if meta.is_integer(array):
        return id_colours(array, background=int(np.asarray(frame.clear.get(name, -1)).flat[0])), "one colour an id, black for none"
    hit = ~frame.missed(name)
    if name in meta.DISTANCES:
        return _distance(array, hit, "scene units" if name == "cameraDepth" else "m")
    if name == "depth":
        return _clip_depth(array, hit)
    if name in meta.NORMALS:
        return _masked(to_8_bits(np.asarray(array, np.float32) * np.float32(0.5) + np.float32(0.5)), hit), "(normal + 1) / 2"
    if name == "barycentric":
        weights = np.concatenate([array, 1.0 - array.sum(axis=-1, keepdims=True)], axis=-1)
        return _masked(to_8_bits(weights), hit), "R, G as in the plane, B = 1 - R - G: on meshes the weights of the triangle's three points"
    if name == "motion":
        return _motion(array, hit)
    return _by_bounds(array, hit, "m" if name in meta.POSITIONS else "")


def to_8_bits(values: np.ndarray) -> np.ndarray:
    """0..1 to 0..255, rounded to nearest; NaN is 0."""
    scaled = np.clip(np.nan_to_num(np.asarray(values, np.float32), nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return (scaled * np.float32(255.0) + np.float32(0.5)).astype(np.uint8)


def srgb_encode(linear: np.ndarray) -> np.ndarray:
    """IEC 61966-2-1: linear light 0..1 to encoded 0..1 (0.5 is 188 of 255, 0.18 is 118)."""
    linear = np.clip(np.nan_to_num(np.asarray(linear, np.float32), nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return np.where(linear <= 0.0031308, linear * np.float32(12.92), np.float32(1.055) * linear ** np.float32(1 / 2.4) - np.float32(0.055))


@functools.cache
def _srgb_table() -> np.ndarray:
    code = np.arange(256) / 255.0
    return np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4).astype(np.float32)


def srgb_decode(codes: np.ndarray) -> np.ndarray:
    """uint8 sRGB codes to linear light."""
    return _srgb_table()[codes]


def encode_colour(colour: np.ndarray) -> np.ndarray:
    """Linear premultiplied (H, W, 3 or 4) to sRGB uint8 with straight alpha, as PNG has it."""
    result = np.empty(colour.shape, np.uint8)
    step = max(1, _BLOCK // max(colour.shape[1], 1))
    for row in range(0, len(colour), step):  # whole, a dozen intermediate arrays would each be asked of the system, page by page
        result[row : row + step] = _encode_rows(colour[row : row + step])
    return result


def _encode_rows(colour: np.ndarray) -> np.ndarray:
    if colour.shape[2] == 3:
        return to_8_bits(srgb_encode(colour))
    return np.concatenate([to_8_bits(srgb_encode(straight_colour(colour))), to_8_bits(colour[..., 3:])], axis=-1)


def straight_colour(colour: np.ndarray) -> np.ndarray:
    """RGB of premultiplied (..., 3 or 4) as it is where the surface covers the pixel."""
    if colour.shape[-1] == 3:
        return colour
    alpha = colour[..., 3:]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Light without coverage (a glow) has no straight form: it stays as it is.
        return np.where(alpha > 0.0, colour[..., :3] / alpha, colour[..., :3])


def over_black(image: np.ndarray) -> np.ndarray:
    """A picture with straight alpha laid over black in linear light, for formats without alpha."""
    if image.shape[2] == 3:
        return image
    return to_8_bits(srgb_encode(srgb_decode(image[..., :3]) * (image[..., 3:] / np.float32(255.0))))


@functools.cache
def turbo_table() -> np.ndarray:
    """(256, 3) uint8, dark blue to dark red."""
    x = np.linspace(0.0, 1.0, 256)
    return to_8_bits(np.stack([np.polynomial.polynomial.polyval(x, row) for row in _TURBO], axis=-1))


def turbo(values: np.ndarray) -> np.ndarray:
    """0..1 (NaN is 0) to Turbo colours."""
    return turbo_table()[to_8_bits(values)]


def id_colours(ids: np.ndarray, *, background: int = -1) -> np.ndarray:
    """A colour an id: a function of the number alone, so it is the same in every frame; negative ids and the background are black."""
    ids = np.asarray(ids)
    if ids.size == 0:
        return np.zeros((*ids.shape, 3), np.uint8)
    lowest, highest = int(ids.min()), int(ids.max())
    if highest - lowest < 1 << 20:
        numbers, index = np.arange(lowest, highest + 1, dtype=np.int64), (ids - lowest).astype(np.int64)
    else:
        numbers, index = np.unique(ids, return_inverse=True)
    colours = _colours_of(numbers.astype(np.int64))
    colours[(numbers < 0) | (numbers == background)] = 0
    return colours[index.reshape(ids.shape)]


def _colours_of(numbers: np.ndarray) -> np.ndarray:
    """Hue by the golden ratio, so that neighbouring ids lie far apart; saturation and value by a hash, never dark."""
    hashed = numbers.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64's finalizer
        hashed = (hashed ^ (hashed >> np.uint64(shift))) * np.uint64(factor)
    hashed ^= hashed >> np.uint64(31)
    hue = numbers * 0.6180339887498949 % 1.0
    saturation = 0.55 + 0.45 * ((hashed & np.uint64(0xFFFF)).astype(np.float64) / 0xFFFF)
    value = 0.65 + 0.35 * ((hashed >> np.uint64(16) & np.uint64(0xFFFF)).astype(np.float64) / 0xFFFF)
    # HSV to RGB: each channel is a trapezoid of the hue.
    sector = (np.array([5.0, 3.0, 1.0]) + hue[:, None] * 6.0) % 6.0
    share = np.clip(np.minimum(sector, 4.0 - sector), 0.0, 1.0)
    return to_8_bits(value[:, None] * (1.0 - saturation[:, None] * share))


def _masked(image: np.ndarray, hit: np.ndarray) -> np.ndarray:
    image[~hit] = 0
    return image


def _distance(array: np.ndarray, hit: np.ndarray, unit: str) -> tuple[np.ndarray, str]:
    hit = hit & np.isfinite(array)
    if not hit.any():
        return np.zeros((*array.shape, 3), np.uint8), "nothing hit"
    values = array[hit].astype(np.float64)
    near, far = float(values.min()), float(values.max())
    if near > 0.0:
        scaled, words = _normalised(1.0 / values, 1.0 / far, 1.0 / near), "inverse distance"
    else:  # an orthographic camera may see what lies beside or behind it
        scaled, words = _normalised(-values, -far, -near), "distance"
    image = np.zeros((*array.shape, 3), np.uint8)
    image[hit] = turbo(scaled)
    return image, f"Turbo over {words}, red {near:.6g} {unit} to blue {far:.6g} {unit}, black for no hit"


def _clip_depth(array: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, str]:
    """Perspective clip depth is linear in inverse distance already."""
    hit = hit & np.isfinite(array)
    if not hit.any():
        return np.zeros((*array.shape, 3), np.uint8), "nothing hit"
    values = array[hit].astype(np.float64)
    near, far = float(values.min()), float(values.max())
    image = np.zeros((*array.shape, 3), np.uint8)
    image[hit] = turbo(_normalised(-values, -far, -near))
    return image, f"Turbo over clip depth, red {near:.6g} to blue {far:.6g}, black for no hit"


def _normalised(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return (values - low) / (high - low) if high > low else np.ones_like(values)


def _motion(array: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, str]:
    """``hit``: what is neither at rest nor known to have been seen is not told from the background: both are grey."""
    known = np.isfinite(array).all(axis=-1)
    finite = np.where(known[..., None], array, 0.0)
    reach = float(np.abs(finite).max(initial=0.0)) or 1.0
    image = np.full((*array.shape[:2], 3), 128, np.uint8)
    image[..., :2] = to_8_bits(0.5 + finite / (2.0 * reach))
    image[~known] = (255, 0, 255)
    said = f"R right, G down, grey at rest, {reach:.6g} px at full strength, magenta where it was behind the camera"
    if not (hit & known & (array == 0.0).all(axis=-1)).any():  # no other plane says what was hit
        return image, f"{said}; misses are grey"
    return _masked(image, hit), f"{said}; black for no hit"


def _by_bounds(array: np.ndarray, hit: np.ndarray, unit: str) -> tuple[np.ndarray, str]:
    """Up to three components as R, G, B, each spread over its own finite bounds; a single one as grey."""
    planes = np.asarray(array[..., None] if array.ndim == 2 else array[..., :3], np.float64)
    hit = hit & np.isfinite(planes).all(axis=-1)
    image = np.zeros((*planes.shape[:2], 3), np.uint8)
    if not hit.any():
        return image, "nothing hit"
    low, high = planes[hit].min(axis=0), planes[hit].max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    scaled = to_8_bits((planes[hit] - low) / span)
    if scaled.shape[1] == 1:
        image[hit] = scaled
    else:
        image[hit, : scaled.shape[1]] = scaled
    after = f" {unit}" if unit else ""
    bounds = ", ".join(f"{letter} {a:.6g} to {b:.6g}{after}" for letter, a, b in zip("RGB", low, high, strict=False))
    return image, f"spread over its bounds: {bounds}; black for no hit"
