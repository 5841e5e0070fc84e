"""Pictures against apertures: per cent by hand, and against the aperture that the renderer's own conform policies arrive at."""

from __future__ import annotations

import re

import pytest

from hdwarp.stage.checks.products import shown_change
from hdwarp.views.conform import CONFORM_POLICIES, conform_aperture

STAGE = """def Camera "Camera"
{{
    float focalLength = 0.5
    float horizontalAperture = {aperture[0]}
    float verticalAperture = {aperture[1]}
    float2 clippingRange = (0.1, 100)
}}
def RenderSettings "Settings"
{{
    rel products = </World/Product>
    rel camera = </World/Camera>
    uniform int2 resolution = ({size[0]}, {size[1]})
    uniform float pixelAspectRatio = {pixel}
    uniform token aspectRatioConformPolicy = "{policy}"
}}
def RenderProduct "Product"
{{
}}
"""


def stage(aperture=(0.36, 0.24), size=(100, 100), pixel=1.0, policy="expandAperture") -> str:
    return STAGE.format(aperture=aperture, size=size, pixel=pixel, policy=policy)


@pytest.mark.parametrize(
    ("policy", "aperture", "said"),
    [  # a square picture; 3 : 2 is half as wide again as it, 1 : 2 half as wide
        ("expandAperture", (0.36, 0.24), "50 % more height"),
        ("expandAperture", (0.12, 0.24), "100 % more width"),
        ("cropAperture", (0.36, 0.24), "33.3 % less width"),
        ("cropAperture", (0.12, 0.24), "50 % less height"),
        ("adjustApertureWidth", (0.36, 0.24), "33.3 % less width"),
        ("adjustApertureWidth", (0.12, 0.24), "100 % more width"),
        ("adjustApertureHeight", (0.36, 0.24), "50 % more height"),
        ("adjustApertureHeight", (0.12, 0.24), "50 % less height"),
    ],
)
def test_what_a_policy_shows_is_told_in_per_cent(found, policy, aperture, said):
    (finding,) = found(stage(aperture, policy=policy), only=("product-aspect",))
    assert finding.paths == ("/World/Product",)
    assert said in finding.message


@pytest.mark.parametrize("policy", [name for name in CONFORM_POLICIES if name != "adjustPixelAspectRatio"])
@pytest.mark.parametrize("aspect", [0.3, 0.9, 1.7, 4.0])
def test_it_is_what_the_renderer_shows(policy, aspect):
    aperture = (3.0, 2.0)
    shown, _ = conform_aperture(aperture, policy, aspect)
    side, factor = shown_change(policy, aperture[0] / aperture[1] / aspect)
    changed = (aperture[0] * factor, aperture[1]) if side == "width" else (aperture[0], aperture[1] * factor)
    assert changed == pytest.approx(shown)


@pytest.mark.parametrize(("size", "pixel"), [((100, 100), 1.0), ((1920, 1080), 1.0), ((960, 1080), 2.0), ((100, 100), 0.5)])
@pytest.mark.parametrize("policy", CONFORM_POLICIES)
def test_the_resolution_of_a_cure_fits(found, size, pixel, policy):
    codes = ("product-aspect", "product-distorted")
    (finding,) = found(stage(size=size, pixel=pixel, policy=policy), only=codes)
    width, height = (int(x) for x in re.search(r"resolution of \((\d+), (\d+)\)", finding.cure).groups())
    assert width == size[0]
    assert found(stage(size=(width, height), pixel=pixel, policy=policy), only=codes) == []


def test_distortion_is_that_of_square_pixels(found):
    """3 : 2 on 100 x 100 pixels: they are 1.5 times as wide as high; a circle shown square is 1 / 1.5 as wide, a third too narrow."""
    (finding,) = found(stage(policy="adjustPixelAspectRatio"), only=("product-distorted",))
    assert "1.5 times as wide" in finding.message and "33.3 % too narrow" in finding.message
    (finding,) = found(stage(size=(90, 60), pixel=0.5), only=("product-pixel-aspect",))
    assert "100 % too wide" in finding.message


def test_what_the_reader_tells_of_products_comes_along(found):
    """A settings path that leads nowhere, a product without camera, a var without source, two settings for no product."""
    head = '#usda 1.0\n(\ndefaultPrim = "World"\nmetersPerUnit = 1\nupAxis = "Y"\nrenderSettingsPrimPath = "/Gone"\n)\n'
    body = (
        'def Xform "World"\n{\ndef RenderProduct "Product"\n{\nuniform int2 resolution = (9, 9)\n}\n'
        'def RenderSettings "One"\n{\n}\ndef RenderSettings "Two"\n{\n}\n}\n'
    )
    codes = {(item.code, item.paths[0]) for item in found(head + body)}
    assert {("render-settings", "/Gone"), ("product-without-camera", "/World/Product"), ("product-unlisted", "/World/Product")} <= codes
    both = 'def RenderSettings "One"\n{\n}\ndef RenderSettings "Two"\n{\n}\n'
    assert "several-render-settings" in {item.code for item in found(both)}
    var = stage(size=(90, 60)).replace('"Product"\n{', '"Product"\n{\nrel orderedVars = </World/Var>')
    var += 'def RenderVar "Var"\n{\nuniform string sourceName = "nosuchplane"\n}\n'
    (finding,) = found(var, only=("render-var",))
    assert finding.severity == "error" and finding.paths == ("/World/Var",) and "nosuchplane" in finding.message


def test_products_of_different_settings_may_share_a_file_name(found):
    """A settings prim is chosen for a run; its products alone are rendered together. {product} in a name tells them apart."""

    def products(first: str, second: str, name: str = "a.exr") -> str:
        text = 'def Camera "Camera"\n{\n}\n'
        for product in "PQ":
            text += f'def RenderProduct "{product}"\n{{\nrel camera = </World/Camera>\nuniform token productName = "{name}"\n}}\n'
        for settings, target in (("S", first), ("T", second)):
            text += f'def RenderSettings "{settings}"\n{{\nrel products = [{target}]\n}}\n'
        return text

    one, other, only = "</World/P>", "</World/Q>", ("product-same-name",)
    (finding,) = found(products(f"{one}, {other}", ""), only=only)
    assert finding.paths == ("/World/P", "/World/Q") and "'a.exr' on both" in finding.message
    assert len(found(products("", ""), only=only)) == 1
    assert found(products(one, other), only=only) == []
    assert found(products(f"{one}, {other}", "", "{product}.exr"), only=only) == []
    assert found(products(f"{one}, {other}", "", ""), only=only) == []
