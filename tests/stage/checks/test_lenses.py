"""Units of lenses: what is told of numbers people do author, and that the values a cure names make the same picture."""

from __future__ import annotations

import math
import re

import pytest

from hdwarp.stage.checks.lenses import field_of_view

CAMERA = """def Camera "Camera"
{{
{lens}
}}
def Sphere "Ball"
{{
    double3 xformOp:translate = (0, 0, -5)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}}
"""


def lens(**values: float) -> str:
    return CAMERA.format(lens="\n".join(f"float {name} = {value}" for name, value in values.items()))


def cured(cure: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"(\w+) = ([\d.e+-]+)", cure)}


def told(findings, code: str):
    return [item for item in findings if item.code == code]


@pytest.mark.parametrize("unit", [1.0, 0.1])
@pytest.mark.parametrize("focal", [8.0, 24.0, 50.0, 200.0])
def test_the_cure_of_a_lens_in_millimetres_is_that_lens_in_tenths_of_the_unit(found, unit, focal):
    """focal mm are focal / 1000 m, and a tenth of the unit is unit / 10 m. At a decimetre 8 mm reads as 80 mm, which is a lens."""
    findings = told(found(lens(focalLength=focal, horizontalAperture=36, verticalAperture=24), unit=unit), "camera-lens-scale")
    if unit == 0.1:  # the aperture reads as 0.36 m, no sensor's
        assert [cured(item.cure) for item in findings] == [
            {"focalLength": pytest.approx(focal / 10.0), "horizontalAperture": pytest.approx(3.6), "verticalAperture": pytest.approx(2.4)}
        ]
        return
    values = cured(findings[0].cure)
    assert values["focalLength"] == pytest.approx(focal / 1000.0 / (unit / 10.0), rel=1e-5)
    assert values["horizontalAperture"] / values["focalLength"] == pytest.approx(36.0 / focal, rel=1e-5)  # the same picture
    again = found(lens(**values), unit=unit)
    assert not told(again, "camera-lens-scale") and not told(again, "camera-lens-mixed")


@pytest.mark.parametrize("unit", [0.01, 0.001, 0.0254])
def test_lenses_in_millimetres_are_right_in_scenes_of_centimetres_and_like_units(found, unit):
    """Of centimetres that is what USD's fallbacks mean; in the others it is a lens all the same, and no one can tell."""
    codes = [item.code for item in found(lens(focalLength=35, horizontalAperture=20.955, verticalAperture=15.2908), unit=unit)]
    assert not [code for code in codes if code.startswith("camera-lens") or code == "camera-field-of-view"]


def test_a_lens_nobody_authored_is_not_complained_of(found):
    """50 and 20.955, USD's fallbacks, are 5 m and 2 m in a scene of metres; but nobody wrote them."""
    assert not told(found(CAMERA.format(lens="")), "camera-lens-scale")


@pytest.mark.parametrize(
    ("unit", "values", "cure"),
    [
        (0.01, {"focalLength": 0.024}, {"focalLength": 24.0}),  # metres beside the fallback's millimetres
        (
            0.01,
            {"focalLength": 24, "horizontalAperture": 0.036, "verticalAperture": 0.024},
            {"horizontalAperture": 36, "verticalAperture": 24},
        ),
        (1.0, {"focalLength": 0.24}, {"horizontalAperture": 0.20955, "verticalAperture": 0.152908}),
    ],
)
def test_of_focal_length_and_aperture_the_one_in_the_other_unit_is_named(found, unit, values, cure):
    (finding,) = told(found(lens(**values), unit=unit), "camera-lens-mixed")
    assert cured(finding.cure) == pytest.approx(cure, rel=1e-5)
    assert not told(found(lens(**{**values, **cured(finding.cure)}), unit=unit), "camera-lens-mixed")


@pytest.mark.parametrize(("degrees", "is_told"), [(0.9, True), (1.1, False), (169.0, False), (171.0, True)])
def test_the_limits_of_the_field_of_view(found, degrees, is_told):
    focal = 0.5 * 36.0 / math.tan(math.radians(0.5 * degrees))
    assert math.degrees(field_of_view(focal, 36.0)) == pytest.approx(degrees)
    codes = {item.code for item in found(lens(focalLength=focal, horizontalAperture=36, verticalAperture=24), unit=0.01)}
    assert bool(codes & {"camera-lens-mixed", "camera-field-of-view"}) == is_told


def test_an_orthographic_camera_has_no_lens(found):
    text = CAMERA.format(lens='uniform token projection = "orthographic"\nfloat horizontalAperture = 50\nfloat focalLength = 0.001')
    text = text.replace("uniform token projection", "token projection")
    assert not [item for item in found(text) if item.code in ("camera-lens-scale", "camera-lens-mixed", "camera-field-of-view")]
