"""Render attributes of another type, and blocked ones: named, passed over, and the rest rendered."""

from __future__ import annotations

import pytest

from hdwarp.batch.shots import plan_shots
from hdwarp.errors import Diagnostics, Severity
from hdwarp.stage.render_spec import read_render_settings

STAGE = """
def Camera "cam" {{ }}
def RenderSettings "settings" {{ uniform int2 resolution = (64, 32); rel camera = </cam>; rel products = </product>; {settings} }}
def RenderProduct "product" {{ {product} }}
"""
WRONG = [
    ("resolution", "int resolution = 5", "resolution", (64, 32)),
    ("resolution", "float4 resolution = (1, 2, 3, 4)", "resolution", (64, 32)),
    ("resolution", "float2 resolution = (nan, 2)", "resolution", (64, 32)),
    ("pixelAspectRatio", 'token pixelAspectRatio = "x"', "pixel_aspect_ratio", 1.0),
    ("pixelAspectRatio", "bool pixelAspectRatio = 1", "pixel_aspect_ratio", 1.0),
    ("dataWindowNDC", "int dataWindowNDC = 1", "data_window_ndc", (0.0, 0.0, 1.0, 1.0)),
    ("dataWindowNDC", "double3 dataWindowNDC = (0, 0, 1)", "data_window_ndc", (0.0, 0.0, 1.0, 1.0)),
    ("aspectRatioConformPolicy", "float3 aspectRatioConformPolicy = (1, 2, 3)", "aspect_ratio_conform_policy", "expandAperture"),
    ("disableMotionBlur", 'string[] disableMotionBlur = ["a"]', "disable_motion_blur", False),
    ("instantaneousShutter", "float3 instantaneousShutter = (1, 2, 3)", "disable_motion_blur", False),
    ("disableDepthOfField", 'token disableDepthOfField = "no"', "disable_depth_of_field", False),
    ("productName", "int[] productName = [1]", "name", ""),
    ("productType", "int productType = 1", "product_type", "raster"),
    ("camera", "int camera = 5", "camera", "/cam"),
    ("orderedVars", 'string orderedVars = "x"', "render_vars", ()),
]


@pytest.mark.parametrize(("attribute", "text", "field", "value"), WRONG)
def test_a_product_inherits_what_it_has_of_another_type(attribute, text, field, value, stage_of):
    diagnostics = Diagnostics()
    stage = stage_of(STAGE.format(settings="", product=text))
    (product,) = read_render_settings(stage, diagnostics=diagnostics).products
    assert getattr(product, field) == value
    told = [item for item in diagnostics if item.code == "wrong-type"]
    assert [(item.path, item.severity) for item in told] == [("/product", Severity.WARNING)]
    assert attribute in told[0].message
    assert len(plan_shots(stage, diagnostics=Diagnostics())) == 1


@pytest.mark.parametrize(("attribute", "text", "field", "value"), [row for row in WRONG if row[2] in ("resolution", "pixel_aspect_ratio")])
def test_settings_fall_back_to_the_schema(attribute, text, field, value, stage_of):
    """2048 x 1080 is UsdRender's fallback."""
    diagnostics = Diagnostics()
    stage = stage_of('def Camera "cam" { }\ndef RenderSettings "settings" { rel camera = </cam>; ' + text + " }")
    (product,) = read_render_settings(stage, diagnostics=diagnostics).products
    assert getattr(product, field) == ((2048, 1080) if field == "resolution" else value)
    assert [(item.path, item.code) for item in diagnostics] == [("/settings", "wrong-type")]


def test_blocks_on_settings_are_the_fallbacks(stage_of):
    diagnostics = Diagnostics()
    blocks = "uniform float4 dataWindowNDC = None; uniform float pixelAspectRatio = None; uniform token[] includedPurposes = None; "
    blocks += "uniform token[] materialBindingPurposes = None; uniform bool disableMotionBlur = None"
    text = STAGE.format(settings=blocks, product="").replace("(64, 32)", "None")
    spec = read_render_settings(stage_of(text), diagnostics=diagnostics)
    (product,) = spec.products
    assert (product.resolution, product.pixel_aspect_ratio, product.data_window_ndc) == ((2048, 1080), 1.0, (0.0, 0.0, 1.0, 1.0))
    assert (spec.included_purposes, spec.material_binding_purposes) == (("default", "render"), ("full", ""))
    assert [item for item in diagnostics if item.severity is not Severity.NOTE] == []


def test_blocks_on_a_product_inherit(stage_of):
    spec = read_render_settings(stage_of(STAGE.format(settings="", product="uniform int2 resolution = None")), diagnostics=Diagnostics())
    assert spec.products[0].resolution == (64, 32)


@pytest.mark.parametrize("value", ["int[] {} = [1, 2]", "float {} = 1", 'token {} = "render"'])
@pytest.mark.parametrize("name", ["includedPurposes", "materialBindingPurposes"])
def test_purposes_of_another_type(name, value, stage_of):
    diagnostics = Diagnostics()
    spec = read_render_settings(stage_of(STAGE.format(settings=value.format(name), product="")), diagnostics=diagnostics)
    assert (spec.included_purposes, spec.material_binding_purposes) == (("default", "render"), ("full", ""))
    assert [(item.path, item.code) for item in diagnostics if item.severity is not Severity.NOTE] == [("/settings", "wrong-type")]


def test_no_purposes_at_all_are_none(stage_of):
    spec = read_render_settings(stage_of(STAGE.format(settings="uniform token[] includedPurposes = []", product="")))
    assert spec.included_purposes == ()


def test_products_as_an_attribute_leave_the_products_of_the_stage(stage_of):
    diagnostics = Diagnostics()
    text = STAGE.format(settings='string products = "x"', product="rel camera = </cam>").replace("rel products = </product>; ", "")
    (shot,) = plan_shots(stage_of(text), diagnostics=diagnostics)
    assert shot.product == "/product"
    assert ("/settings", "wrong-type") in [(item.path, item.code) for item in diagnostics]


@pytest.mark.parametrize("value", ["float3 {} = (1, 2, 3)", 'token[] {} = ["a", "b"]', "int {} = 5"])
@pytest.mark.parametrize("name", ["driver:parameters:aov:format", "driver:parameters:aov:name", "sourceName", "dataType", "sourceType"])
def test_a_var_with_parameters_of_another_type(name, value, stage_of):
    """The parameter counts as unauthored. An array has no truth of its own: asking for it raised."""
    diagnostics = Diagnostics()
    var = 'def RenderVar "color" { ' + value.format(name) + ("" if name == "sourceName" else '; string sourceName = "color"') + " }"
    (shot,) = plan_shots(stage_of(STAGE.format(settings="", product="rel orderedVars = </color>") + var), diagnostics=diagnostics)
    assert [(item.name, item.aov) for item in shot.vars] == [("color", "color")]
    assert [(item.path, item.code) for item in diagnostics if item.severity is not Severity.NOTE] == [("/color", "wrong-type")]
    assert name in next(item.message for item in diagnostics if item.code == "wrong-type")


@pytest.mark.parametrize(
    "value", ['token horizontalAperture = "x"', "float2 horizontalAperture = (1, 2)", "float horizontalAperture = nan"]
)
def test_the_aspect_of_a_camera_with_an_aperture_of_another_type(value, stage_of):
    from hdwarp.stage.selection import camera_aspect

    assert camera_aspect(stage_of('def Camera "cam" { ' + value + " }"), "/cam") == pytest.approx(16.0 / 9.0)
