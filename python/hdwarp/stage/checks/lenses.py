"""stage.checks.lenses: are a camera's numbers those of a lens? USD counts in tenths of a scene unit, people in millimetres."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hdwarp.stage.checks.findings import NOTE, WARNING, Check, Finding, Rule
from hdwarp.stage.checks.subject import Subject
from hdwarp.stage.columns import Camera

LENS_SCALE = Rule(
    "camera-lens-scale",
    NOTE,
    "focal length and apertures are tens of times those of any lens: millimetres where the scene has another unit",
)
LENS_MIXED = Rule("camera-lens-mixed", WARNING, "focal length and aperture differ by tens: they count in different units")
FIELD_OF_VIEW = Rule("camera-field-of-view", WARNING, "the field of view is under 1 or over 170 degrees")
NEAR_ZERO = Rule(
    "camera-near-zero", WARNING, "clippingRange begins at 0, which projections of other renderers and the plane depth divide by"
)

NARROWEST, WIDEST = math.radians(1.0), math.radians(170.0)
_FOCAL, _APERTURE = (0.5e-3, 2.5), (0.5e-3, 0.3)  # metres that lenses and sensors have
_USUAL_FOCAL, _USUAL_APERTURE = (1e-3, 1.5), (1e-3, 0.15)
_USUAL_VIEW = (math.radians(10.0), math.radians(120.0))
_UNITS = (("millimetres", 1e-3), ("metres", 1.0), ("centimetres", 1e-2))
_LENS = ("focalLength", "horizontalAperture", "verticalAperture")


def number(value: float) -> str:
    """A value to author: six digits, no more than float32 holds."""
    return f"{value:.6g}"


def field_of_view(focal_length: float, aperture: float) -> float:
    return 2.0 * math.atan2(aperture, 2.0 * focal_length)


def _within(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] <= value <= limits[1]


def _lenses(subject: Subject) -> Iterator[tuple[Camera, float]]:
    """Perspective cameras of which something of the lens is authored, and their larger aperture [m]."""
    for camera in subject.columns.cameras:
        prim = subject.stage.GetPrimAtPath(camera.path)
        if camera.projection == "perspective" and any(prim.GetAttribute(name).HasAuthoredValue() for name in _LENS):
            yield camera, max(camera.aperture)


def lens_scale(subject: Subject) -> Iterator[Finding]:
    tenth = 0.1 * subject.unit
    for camera, aperture in _lenses(subject):
        if _within(camera.focal_length, _FOCAL) and _within(aperture, _APERTURE):
            continue
        if not _within(field_of_view(camera.focal_length, aperture), (NARROWEST, WIDEST)):
            continue  # told as such
        focal = camera.focal_length / tenth
        for name, metres in _UNITS:
            if _within(focal * metres, _USUAL_FOCAL) and _within(aperture / tenth * metres, _USUAL_APERTURE):
                factor = metres / tenth
                values = ", ".join(
                    f"{attribute} = {number(side / tenth * factor)}"
                    for attribute, side in zip(_LENS, (camera.focal_length, *camera.aperture), strict=True)
                    if side > 0.0
                )
                yield LENS_SCALE.broken(
                    camera.path,
                    f"focalLength {number(focal)} is {number(camera.focal_length)} m, for lens values are tenths of a scene unit; it looks"
                    f" like {name}. The field of view is as meant, depth of field and sensor sizes are not",
                    f"author {values}",
                )
                break


def _extreme_lenses(subject: Subject) -> Iterator[tuple[Camera, float, tuple[float, float] | None]]:
    """Cameras that see next to nothing or nearly all, their larger aperture [m], and the factors of `_mixed_units`."""
    for camera, aperture in _lenses(subject):
        if not _within(field_of_view(camera.focal_length, aperture), (NARROWEST, WIDEST)):
            yield camera, aperture, _mixed_units(camera.focal_length, aperture, 0.1 * subject.unit)


def mended_slopes(subject: Subject) -> dict[str, float]:
    """Of the cameras that camera-lens-mixed is told of: half the larger aperture over the focal length, once they count in one unit."""
    return {
        camera.path: 0.5 * aperture * factors[1] / (camera.focal_length * factors[0])
        for camera, aperture, factors in _extreme_lenses(subject)
        if factors is not None
    }


def fields_of_view(subject: Subject) -> Iterator[Finding]:
    tenth = 0.1 * subject.unit
    for camera, aperture, factors in _extreme_lenses(subject):
        focal, degrees = camera.focal_length, math.degrees(field_of_view(camera.focal_length, aperture))
        said = (
            f"focalLength {number(focal / tenth)} and the aperture {number(aperture / tenth)} give a field of view of {degrees:.3g} degrees"
        )
        if factors is None:
            normal = number(0.5 * aperture / math.tan(math.radians(22.5)) / tenth)
            yield FIELD_OF_VIEW.broken(camera.path, said, f"author a focalLength nearer to {normal}, which gives 45 degrees")
            continue
        sides = zip(_LENS, (focal, *camera.aperture), (factors[0], factors[1], factors[1]), strict=True)
        cure = ", ".join(f"{name} = {number(side / tenth * factor)}" for name, side, factor in sides if side > 0.0 and factor != 1.0)
        result = math.degrees(field_of_view(focal * factors[0], aperture * factors[1]))
        yield LENS_MIXED.broken(
            camera.path, f"{said}: they count in different units", f"author {cure} ({result:.3g} degrees), in tenths of a scene unit"
        )


def _mixed_units(focal: float, aperture: float, tenth: float) -> tuple[float, float] | None:
    """Factors that make a usual lens of a focal length and an aperture [m]: each in a unit of its own if that does, else the focal
    length by a power of ten; None: neither does."""
    units = [1.0, *(metres / tenth for _, metres in _UNITS)]
    pairs = [
        (one, other)
        for one in units
        for other in units
        if _within(focal * one, _USUAL_FOCAL) and _within(aperture * other, _USUAL_APERTURE)
    ]
    powers = [(10.0**power, 1.0) for power in range(-5, 6) if power]
    for candidates in (pairs, powers):
        views = {pair: field_of_view(focal * pair[0], aperture * pair[1]) for pair in candidates}
        usual = [pair for pair in candidates if _within(views[pair], _USUAL_VIEW)]
        if usual:
            return min(usual, key=lambda pair, views=views: abs(views[pair] - math.radians(45.0)))
    return None


def near_zero(subject: Subject) -> Iterator[Finding]:
    for camera in subject.columns.cameras:
        near, far = camera.clipping_range
        if camera.projection == "perspective" and near == 0.0:
            size = subject.boxes.size or far
            shown = number(min(max(1e-4 * size, 1e-6), 0.5 * far) / subject.unit)
            yield NEAR_ZERO.broken(
                camera.path,
                "clippingRange begins at 0: the plane depth is 1 everywhere, and renderers that project with it draw nothing",
                f"author clippingRange = ({shown}, {number(far / subject.unit)})",
            )


CHECKS = (Check(lens_scale, (LENS_SCALE,)), Check(fields_of_view, (LENS_MIXED, FIELD_OF_VIEW)), Check(near_zero, (NEAR_ZERO,)))
