"""tables.dome_maths: pictures of domes in NumPy: laid out as latlong, integrated over the sphere, blurred. No device, no records.

A latlong picture has row 0 at the pole (+y); its middle is +z, a quarter to the left of it +x.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

IRRADIANCE_SIZE = (128, 65)
GLOSSY_SIZES = ((64, 32), (32, 16), (16, 8), (16, 8))  # of roughness 1/4, 1/2, 3/4, 1
_FINEST = 1024  # texels across a latlong picture
_CELLS = (256, 128)  # most of them that directions are drawn from
_BLURRED_FROM = (128, 64)
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def resized(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """(height, width, ...) averages over the area of each texel of an image (H, W, ...), float64."""
    for axis, count in ((0, height), (1, width)):
        size = image.shape[axis]
        if size == count:
            continue
        if size % count == 0:  # whole texels
            shape = *image.shape[:axis], count, size // count, *image.shape[axis + 1 :]
            image = image.reshape(shape).mean(axis=axis + 1, dtype=np.float64)
            continue
        sums = np.concatenate([np.zeros_like(image.take([0], axis), np.float64), np.cumsum(image, axis=axis, dtype=np.float64)], axis)
        edges = np.linspace(0.0, size, count + 1)
        low = np.minimum(edges.astype(np.int64), size - 1)
        part = (edges - low).reshape([-1 if a == axis else 1 for a in range(image.ndim)])
        at_edges = sums.take(low, axis) * (1.0 - part) + sums.take(low + 1, axis) * part
        image = np.diff(at_edges, axis=axis) * (count / size)
    return np.asarray(image, np.float64)


def directions(width: int, height: int) -> np.ndarray:
    """(height, width, 3): where the middles of texels of a latlong picture are."""
    lat = np.pi / 2 - (np.arange(height)[:, None] + 0.5) * (np.pi / height)
    lon = np.pi - (np.arange(width)[None] + 0.5) * (2 * np.pi / width)
    lat, lon = np.broadcast_arrays(lat, lon)
    return np.stack([np.sin(lon) * np.cos(lat), np.sin(lat), np.cos(lon) * np.cos(lat)], axis=-1)


def solid_angles(width: int, height: int) -> np.ndarray:
    """(height,): of a texel in each row; they add up to 4 pi."""
    return -np.diff(np.sin(np.pi / 2 - np.linspace(0.0, np.pi, height + 1))) * (2 * np.pi / width)


def as_latlong(image: np.ndarray, projection: str) -> np.ndarray:
    """The latlong picture of an image (H, W, 3). Balls have +z in their middle and +x to its left; beyond their rim is what is behind."""
    height, width = image.shape[:2]
    if projection == "latlong":
        return resized(image, min(width, _FINEST), min(height, _FINEST // 2))
    across = int(min(max(2 * width, 2), _FINEST))
    d = directions(across, max(across // 2, 1))
    away = np.arccos(np.clip(d[..., 2], -1.0, 1.0))
    radius = away / np.pi if projection == "angular" else np.sin(away / 2)
    side = np.hypot(d[..., 0], d[..., 1])
    unit = d[..., :2] / np.where(side > 0.0, side, 1.0)[..., None]
    s, t = 0.5 - 0.5 * radius * unit[..., 0], 0.5 - 0.5 * radius * unit[..., 1]
    return _bilinear(image, s * width - 0.5, t * height - 0.5)


def _bilinear(image: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    height, width = image.shape[:2]
    x, y = np.clip(x, 0.0, width - 1.0), np.clip(y, 0.0, height - 1.0)
    i, j = np.minimum(x.astype(np.int64), max(width - 2, 0)), np.minimum(y.astype(np.int64), max(height - 2, 0))
    fx, fy = (x - i)[..., None], (y - j)[..., None]
    right, below = np.minimum(i + 1, width - 1), np.minimum(j + 1, height - 1)
    above = image[j, i] * (1 - fx) + image[j, right] * fx
    return above * (1 - fy) + (image[below, i] * (1 - fx) + image[below, right] * fx) * fy


def chances(latlong: np.ndarray) -> tuple[tuple[int, int], np.ndarray]:
    """((cells across, down), numbers as in `DomeTables.chances`): directions in proportion to luminance. All alike where all is black."""
    height, width = latlong.shape[:2]
    cells = resized(latlong @ _LUMINANCE, min(width, _CELLS[0]), min(height, _CELLS[1]))
    cells = np.maximum(cells, 0.0)
    down, across = cells.shape
    angle = solid_angles(across, down)
    if not cells.max() > 0.0:
        cells = np.ones_like(cells)
    weight = cells / cells.max() * angle[:, None]
    rows = weight.sum(axis=1)
    above = np.concatenate([[0.0], np.cumsum(rows)]) / rows.sum()
    empty = rows <= 0.0
    inside = np.concatenate([np.zeros((down, 1)), np.cumsum(np.where(empty[:, None], 1.0, weight), axis=1)], axis=1)
    inside /= inside[:, -1:]
    density = weight / weight.sum() / angle[:, None]
    return (across, down), np.concatenate([above, inside.reshape(-1), density.reshape(-1)])


def glossy(latlong: np.ndarray, roughness: float, width: int, height: int) -> np.ndarray:
    """(height, width, 3): what a mirror of GGX roughness shows that is looked at straight on (normal = view = reflection): averages of
    radiance by D(h) n.l (Karis 2013). ``width`` divides that of what is averaged."""
    alpha2 = roughness**4
    rows = np.pi / 2 - (np.arange(height) + 0.5) * (np.pi / height)
    return _averages(latlong, rows, width, lambda cosine: np.maximum(cosine, 0.0) / ((1.0 + cosine) / 2.0 * (alpha2 - 1.0) + 1.0) ** 2)


def irradiance(latlong: np.ndarray) -> np.ndarray:
    """(65, 128, 3): what falls on a surface of normal n that nothing shadows. Rows go from pole to pole, both ends included: n is seldom
    anything but the pole's on floors."""
    width, height = IRRADIANCE_SIZE
    rows = np.linspace(np.pi / 2, -np.pi / 2, height)
    return np.pi * _averages(latlong, rows, width, lambda cosine: np.maximum(cosine, 0.0))


def _averages(latlong: np.ndarray, rows: np.ndarray, width: int, weight: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """(rows, width, 3): means of a picture about directions at latitudes ``rows``, by a weight of the cosine to them."""
    across, down = _BLURRED_FROM
    source = resized(latlong, across, down)
    lat_from = np.pi / 2 - (np.arange(down) + 0.5) * (np.pi / down)
    step = across // width
    # Middles of wide texels lie between those of narrow ones: that shift is in the kernel.
    lon = (np.arange(across) + (step - 1) / 2) * (2 * np.pi / across)
    upward = np.sin(rows)[:, None, None] * np.sin(lat_from)[None, :, None]
    cosine = upward + np.cos(rows)[:, None, None] * np.cos(lat_from)[None, :, None] * np.cos(lon)
    kernel = weight(cosine) * solid_angles(across, down)[None, :, None]
    kernel /= kernel.sum(axis=(1, 2), keepdims=True)
    # result[i] = sum over k of kernel[i - k] source[k], by Fourier's theorem; what is wanted are its values at multiples of `step`.
    found = np.einsum("tfk,fkc->tkc", np.fft.rfft(kernel, axis=2), np.fft.rfft(source, axis=1))
    return np.fft.irfft(found, n=across, axis=1)[:, ::step]
