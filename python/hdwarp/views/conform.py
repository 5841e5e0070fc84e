"""views.conform: how an aperture falls on pixels: aspect-ratio policies and the data window. NumPy, no USD, no device."""

from __future__ import annotations

import math

from hdwarp.errors import ArgumentError
from hdwarp.stage.spec import ImageSpec

# UsdRender's policies; the index is the number kernels use (views.lens_funcs).
CONFORM_POLICIES = ("expandAperture", "cropAperture", "adjustApertureWidth", "adjustApertureHeight", "adjustPixelAspectRatio")

MAX_SIDE = 65536  # pixels; what is larger is a slip of the hand
MAX_PIXELS = 1 << 30  # pixels of one image are counted in int32


def conform_aperture(
    aperture: tuple[float, float], policy: str, image_aspect: float, pixel_aspect_ratio: float = 1.0
) -> tuple[tuple[float, float], float]:
    """The aperture that fills the image, and the pixels' aspect ratio (changed by adjustPixelAspectRatio alone).

    ``image_aspect`` is that of the image as shown: width / height * pixel_aspect_ratio. An aperture side of 0 follows the image, under
    every policy. Raises ArgumentError for an unknown policy or an aperture that is nowhere above 0.
    """
    width, height = aperture
    if policy not in CONFORM_POLICIES:
        raise ArgumentError(f"aspectRatioConformPolicy is {policy!r}; known: {', '.join(CONFORM_POLICIES)}")
    if min(width, height) < 0.0 or not max(width, height) > 0.0:
        raise ArgumentError(f"the aperture is {width:g} x {height:g}; at least one side must be above 0, the other may be 0")
    if width == 0.0:
        return (height * image_aspect, height), pixel_aspect_ratio
    if height == 0.0:
        return (width, width / image_aspect), pixel_aspect_ratio
    if policy == "adjustPixelAspectRatio":
        return (width, height), pixel_aspect_ratio * (width / height) / image_aspect
    wider = width / height > image_aspect  # the aperture is wider than the image
    if policy == "adjustApertureHeight" or (policy == "expandAperture" and wider) or (policy == "cropAperture" and not wider):
        return (width, width / image_aspect), pixel_aspect_ratio
    return (height * image_aspect, height), pixel_aspect_ratio


def image_aperture(aperture: tuple[float, float], image: ImageSpec) -> tuple[float, float]:
    """The aperture after the image's conform policy: what its full width and height show."""
    aspect = image.image_width / image.image_height * image.pixel_aspect_ratio
    return conform_aperture(aperture, image.aspect_ratio_conform_policy, aspect, image.pixel_aspect_ratio)[0]


def shown_pixel_aspect(aperture: tuple[float, float], image: ImageSpec) -> float:
    """Width over height of the image's pixels as they are to be shown; adjustPixelAspectRatio leaves it to the aperture."""
    aspect = image.image_width / image.image_height * image.pixel_aspect_ratio
    return conform_aperture(aperture, image.aspect_ratio_conform_policy, aspect, image.pixel_aspect_ratio)[1]


def image_spec(
    resolution: tuple[int, int],
    pixel_aspect_ratio: float = 1.0,
    policy: str = "expandAperture",
    data_window_ndc: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0),
) -> ImageSpec:
    """The pixels of an image and of its data window. Raises ArgumentError that says which value is wrong and what would do.

    ``data_window_ndc`` is (x min, y min, x max, y max), y up, (0, 0) the lower left corner of the conformed aperture; what lies outside
    0..1 is overscan. A pixel is in the window if its centre is: the smaller edge counts, the larger does not (UsdRender's rule).
    """
    try:
        width, height = (int(side) for side in resolution)
        whole = (width, height) == tuple(resolution)
    except (TypeError, ValueError, OverflowError):  # no pair of numbers
        whole = False
    if not whole or not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        raise ArgumentError(f"resolution is {resolution!r}; it must be (width, height), whole numbers of pixels from 1 to {MAX_SIDE}")
    if not (math.isfinite(pixel_aspect_ratio) and pixel_aspect_ratio > 0.0):
        raise ArgumentError(f"pixelAspectRatio is {pixel_aspect_ratio:g}; it must be a finite number above 0")
    if policy not in CONFORM_POLICIES:
        raise ArgumentError(f"aspectRatioConformPolicy is {policy!r}; known: {', '.join(CONFORM_POLICIES)}")
    window = tuple(float(value) for value in data_window_ndc)
    if len(window) != 4 or not all(math.isfinite(value) for value in window):
        raise ArgumentError(f"dataWindowNDC is {window}; it must be four finite numbers (x min, y min, x max, y max)")
    x0, x1 = _first_pixel(width, window[0]), _first_pixel(width, window[2])
    bottom, top = _first_pixel(height, window[1]), _first_pixel(height, window[3])  # rows counted upwards
    if x1 <= x0 or top <= bottom:
        raise ArgumentError(f"dataWindowNDC is {_text(window)}: no pixel centre of {width} x {height} is inside; widen it")
    if max(x1 - x0, top - bottom) > MAX_SIDE or (x1 - x0) * (top - bottom) > MAX_PIXELS:
        raise ArgumentError(
            f"the image would have {x1 - x0} x {top - bottom} pixels; the most is {MAX_SIDE} a side and {MAX_PIXELS} in all"
            " (lower resolution, or dataWindowNDC)"
        )
    return ImageSpec(width, height, x0, height - top, x1 - x0, top - bottom, float(pixel_aspect_ratio), policy)


def _first_pixel(count: int, ndc: float) -> int:
    """The first of ``count`` pixels whose centre is not before ``ndc``; also one past the last pixel of a window that ends there."""
    position = count * ndc - 0.5
    nearest = round(position)
    # dataWindowNDC is float32: an edge meant to fall on a pixel centre misses it by rounding, and is put back.
    if abs(position - nearest) <= count * abs(ndc) * 2.0**-23:
        return nearest
    return math.ceil(position)


def _text(window: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in window) + ")"
