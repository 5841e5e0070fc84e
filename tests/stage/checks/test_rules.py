"""Each rule: a stage that breaks it, where and what is then told, and its neighbour that keeps it."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from hdwarp.stage.checks.run import FAILED, RULES, UNREADABLE
from hdwarp.stage.checks.upstream import NO_VALIDATORS


class Case(NamedTuple):
    code: str
    path: str  # of the first prim or property told
    cure: str  # part of it
    broken: str
    kept: str


BALL = 'def Sphere "Ball"\n{\n    double3 xformOp:translate = (0, 0, -5)\n    uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
TRIANGLE = "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 2]\npoint3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]\n"


def camera(
    lens: str = "focalLength = 0.5 horizontalAperture = 0.36 verticalAperture = 0.24", clip: str = "(0.1, 100)", more: str = ""
) -> str:
    values = lens.split()
    lines = "".join(f"float {name} = {value}\n" for name, value in zip(values[::3], values[2::3], strict=True))
    return f'def Camera "Camera"\n{{\n{lines}float2 clippingRange = {clip}\n{more}\n}}\n{BALL}'


def move(x: float, y: float, z: float) -> str:
    return f'double3 xformOp:translate = ({x}, {y}, {z})\nuniform token[] xformOpOrder = ["xformOp:translate"]\n'


def product(*lines: str, settings: str = "rel products = </World/Product>", more: str = "", size: str = "(90, 60)") -> str:
    resolution = f"uniform int2 resolution = {size}" if size else ""
    text = "\n".join(("rel camera = </World/Camera>", resolution, *lines))
    render_settings = f'def RenderSettings "Settings"\n{{\n{settings}\n}}\n' if settings else ""
    return camera() + f'def RenderProduct "Product"\n{{\n{text}\n}}\n{render_settings}{more}'


def labelled(name: str, *labels: str, api: bool = True, kind: str = "Cube", below: str = "") -> str:
    schema = '(prepend apiSchemas = ["SemanticsLabelsAPI:class"])' if api else ""
    words = ", ".join(f'"{label}"' for label in labels)
    values = f"token[] semantics:labels:class = [{words}]" if labels else ""
    return f'def {kind} "{name}" {schema}\n{{\n{values}\n{below}\n}}\n'


def twin(name: str, target: str = "Product") -> str:
    second = f'def RenderProduct "Second"\n{{\nrel camera = </World/Camera>\nuniform token productName = "{name}"\n}}\n'
    settings = f"rel products = [</World/Product>, </World/{target}>]\nuniform int2 resolution = (90, 60)"
    return product('uniform token productName = "a.exr"', settings=settings, more=second)


def var(source: str) -> str:
    kind = 'uniform token sourceType = "primvar"'
    return product("rel orderedVars = </World/Var>", more=f'def RenderVar "Var"\n{{\nuniform string sourceName = "{source}"\n{kind}\n}}\n')


def material(inside: str, name: str = "Material", api: str = "") -> str:
    return f'def Material "{name}" {api}\n{{\n{inside}\n}}\n'


SURFACE = (
    "token outputs:surface.connect = </World/Material/Shader.outputs:surface>\n"
    'def Shader "Shader"\n{\nuniform token info:id = "UsdPreviewSurface"\ntoken outputs:surface\n}\n'
)
BINDING_API = '(prepend apiSchemas = ["MaterialBindingAPI"])'


def bound(target: str, api: str = BINDING_API) -> str:
    return material(SURFACE) + f'def Xform "Group" {api}\n{{\nrel material:binding = <{target}>\n}}\n{BALL}'


def texture(file: str) -> str:
    reader = f'def Shader "Texture"\n{{\nuniform token info:id = "UsdUVTexture"\nasset inputs:file = @{file}@\n}}\n'
    return material(SURFACE + reader)


def header(unit: str = "metersPerUnit = 1", axis: str = 'upAxis = "Z"', default: str = 'defaultPrim = "World"') -> str:
    return f'#usda 1.0\n(\n{unit}\n{axis}\n{default}\n)\ndef Xform "World"\n{{\n{BALL}\n}}\n'


def sized(radius: float) -> str:
    return f'def Sphere "Ball"\n{{\ndouble radius = {radius}\n}}\n'


CASES = (
    # 24 and 20.955 are millimetres; in a scene of metres lens values are decimetres: 0.24 and 0.20955.
    Case("camera-lens-scale", "/World/Camera", "focalLength = 0.24, horizontalAperture = 0.20955", camera("focalLength = 24"), camera()),
    # 0.024 m and 20.955 mm, where decimetres are asked for.
    Case(
        "camera-lens-mixed",
        "/World/Camera",
        "focalLength = 0.24, horizontalAperture = 0.20955, verticalAperture = 0.152908",
        camera("focalLength = 0.024"),
        camera("focalLength = 0.24 horizontalAperture = 0.20955 verticalAperture = 0.152908"),
    ),
    # A lens of 10,000 km is none, in whatever unit; 2 atan(0.5 x 0.36 / 0.0158) is 169.97 degrees.
    Case(
        "camera-field-of-view",
        "/World/Camera",
        "nearer to 0.434558",  # 0.18 / tan(22.5 degrees)
        camera("focalLength = 1e8 horizontalAperture = 0.36 verticalAperture = 0.24"),
        camera("focalLength = 0.0158 horizontalAperture = 0.36 verticalAperture = 0.24"),
    ),
    Case("camera-near-zero", "/World/Camera", "author clippingRange = (0.0", camera(clip="(0, 100)"), camera(clip="(0.001, 100)")),
    # The ball reaches from 4 to 6.
    Case("camera-clip-hides-all", "/World/Camera", "author clippingRange = (2, 100)", camera(clip="(6.5, 100)"), camera(clip="(5.9, 100)")),
    Case("camera-sees-nothing", "/World/Camera", "towards (0, 0, -5)", camera(more=move(0, 0, -7)), camera(more=move(0, 0, -3.5))),
    # The whole is 2 m wide, and a picture is 0.72 times as wide as it is far: at 3 km that is a thousandth of it.
    Case(
        "camera-far-away",
        "/World/Camera",
        "scene units from the scene",
        camera(clip="(1, 1e5)", more=move(0, 0, 3000)),
        camera(clip="(1, 1e5)", more=move(0, 0, 200)),
    ),
    Case(
        "camera-inside",
        "/World/Camera",
        "move it out",
        camera(more=move(0, 0, -4.5)) + f'def Cube "Far"\n{{\n{move(0, 0, -30)}}}\n',
        camera(more=move(0, 0, -3.9)) + f'def Cube "Far"\n{{\n{move(0, 0, -30)}}}\n',
    ),
    # The aperture is 3 : 2. expandAperture makes a square picture of it half as high again.
    Case("product-aspect", "/World/Product", "a resolution of (90, 60)", product(size="(90, 90)"), product()),
    Case(
        "product-distorted",
        "/World/Product",
        "a resolution of (90, 60)",
        product('uniform token aspectRatioConformPolicy = "adjustPixelAspectRatio"', size="(90, 90)"),
        product('uniform token aspectRatioConformPolicy = "adjustPixelAspectRatio"'),
    ),
    Case(
        "product-pixel-aspect",
        "/World/Product",
        "author pixelAspectRatio = 1",
        product("uniform float pixelAspectRatio = 2", size="(45, 60)"),
        product("uniform float pixelAspectRatio = 1"),
    ),
    Case(
        "product-without-resolution",
        "/World/Product",
        "uniform int2 resolution",
        product(size=""),
        product(settings="rel products = </World/Product>\nuniform int2 resolution = (90, 60)", size=""),
    ),
    Case("product-unlisted", "/World/Product", "</World/Settings>", product(settings="rel products = []"), product()),
    Case("product-same-name", "/World/Product", "of its own", twin("a.exr", "Second"), twin("b.exr", "Second")),
    Case(
        "render-var-primvar",
        "/World/Var",
        "author primvars:heat",
        var("heat"),
        var("heat") + 'def Cube "Hot"\n{\nfloat primvars:heat = 3\n}\n',
    ),
    Case("label-empty", "/World/A", '["A"]', labelled("A"), labelled("A", "crate")),
    Case("label-not-applied", "/World/A", "SemanticsLabelsAPI:class", labelled("A", "crate", api=False), labelled("A", "crate")),
    Case(
        "label-without-geometry",
        "/World/A",
        "holds the geometry",
        labelled("A", "crate", kind="Xform"),
        labelled("A", "crate", kind="Xform", below='def Cube "Box"\n{\n}'),
    ),
    Case(
        "label-spelling",
        "/World/C",
        "author 'tool_box'",
        labelled("A", "tool_box") + labelled("B", "tool_box") + labelled("C", "Tool-Box"),
        labelled("A", "tool_box") + labelled("B", "tool_box") + labelled("C", "wheel_2"),
    ),
    Case(
        "label-missing", "/World/Ball", "SemanticsLabelsAPI", labelled("A", "crate") + BALL, labelled("A", "crate") + labelled("B", "ball")
    ),
    Case("material-without-surface", "/World/Material", "outputs:surface.connect", material(""), material(SURFACE)),
    Case("material-missing", "/World/Group", "path of a Material", bound("/World/Ball"), bound("/World/Material")),
    Case("material-binding-api", "/World/Group", "MaterialBindingAPI", bound("/World/Material", api=""), bound("/World/Material")),
    Case("asset-unresolved", "/World/Material/Texture.inputs:file", "mend the path", texture("./gone.png"), texture("./stage_0.usda")),
    Case("stage-meters-per-unit", "/", "metersPerUnit = 0.01", header(unit=""), header()),
    Case("stage-up-axis", "/", 'upAxis = "Y"', header(axis=""), header()),
    Case("stage-default-prim", "/", 'defaultPrim = "World"', header(default='defaultPrim = "world"'), header()),
    # A ball of radius r is 2 sqrt(3) r across, corner to corner of its box.
    Case("scene-size", "/", "metersPerUnit = 1000 if it counts in kilometres", sized(2e-4), sized(4e-4)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_a_broken_rule_is_told_with_path_and_cure(case, found):
    told = [item for item in found(case.broken) if item.code == case.code]
    assert [item.paths[0] for item in told] == [case.path]
    assert case.cure in told[0].cure
    assert told[0].message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_its_neighbour_is_not(case, found):
    told = found(case.kept)
    assert case.code not in [item.code for item in told]
    assert "check-failed" not in [item.code for item in told]


def test_every_rule_has_a_case():
    elsewhere = {"layer-meters-per-unit", FAILED.code, UNREADABLE.code, NO_VALIDATORS.code}
    assert {case.code for case in CASES} | elsewhere == {rule.code for rule in RULES}
    assert len({rule.code for rule in RULES}) == len(RULES)
