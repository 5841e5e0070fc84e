"""Colours in other spaces than linear Rec.709: those of materials and primvars, against Gf.ColorSpace."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade

import hdwarp

WORKING = Gf.ColorSpace("lin_rec709_scene")
NAMES = {"srgb_rec709_scene": "srgb_rec709_scene", "lin_ap1_scene": "lin_ap1_scene", "srgb_texture": "srgb_rec709_scene"} | {
    "acescg": "lin_ap1_scene",
    "g22_rec709_scene": "g22_rec709_scene",
}
PAINT = (0.25, 0.5, 0.125)


def expected(space: str, colour=PAINT) -> np.ndarray:
    return np.array(WORKING.Convert(Gf.ColorSpace(NAMES.get(space, space)), Gf.Vec3f(*colour)).GetRGB())


def material(colour: str, above: str = "", more: str = "") -> str:
    return f"""def Scope "looks" {above} {{
        def Material "m" {{
            token outputs:surface.connect = </looks/m/s.outputs:surface>
            {more}
            def Shader "s" {{
                uniform token info:id = "UsdPreviewSurface"
                {colour}
                token outputs:surface
            }}
        }}
    }}
    def Cube "c" (prepend apiSchemas = ["MaterialBindingAPI"]) {{ rel material:binding = </looks/m> }}
    """


def authored(name: str, space: str, value=PAINT, kind: str = "color3f") -> str:
    return f'{kind} {name} = {value} (\ncolorSpace = "{space}"\n)'


@pytest.mark.parametrize("space", NAMES)
@pytest.mark.parametrize(
    ("name", "column"), [("diffuseColor", "diffuse_color"), ("emissiveColor", "emissive_color"), ("specularColor", "specular_color")]
)
def test_inputs_of_a_surface(read, name, column, space):
    found = read(material(authored(f"inputs:{name}", space)))
    assert getattr(found.material("/c"), column) == pytest.approx(tuple(expected(space)), abs=1e-6)
    assert found.codes() == []


def test_the_nearest_of_what_is_above_and_the_attribute_first(read):
    above = '(prepend apiSchemas = ["ColorSpaceAPI"])'
    text = material(f"color3f inputs:diffuseColor = {PAINT}\n{authored('inputs:emissiveColor', 'raw')}", above)
    text = text.replace('def Material "m"', 'uniform token colorSpace:name = "lin_ap1_scene"\ndef Material "m"')
    found = read(text).material("/c")
    assert found.diffuse_color == pytest.approx(tuple(expected("lin_ap1_scene")), abs=1e-6)
    assert found.emissive_color == pytest.approx(PAINT)


def test_an_interface_input_has_its_own_space(read):
    more = authored("inputs:paint", "srgb_rec709_scene")
    found = read(material("color3f inputs:diffuseColor.connect = </looks/m.inputs:paint>", more=more))
    assert found.material("/c").diffuse_color == pytest.approx(tuple(expected("srgb_rec709_scene")), abs=1e-6)


def test_a_constant_of_materialx(read):
    """A color4 keeps its alpha; here its first three numbers drive the base colour."""
    node = f"""def Shader "n" {{
        uniform token info:id = "ND_constant_color3"
        {authored("inputs:value", "acescg")}
        color3f outputs:out
    }}"""
    found = read(material("color3f inputs:diffuseColor.connect = </looks/m/n.outputs:out>", more=node))
    assert found.material("/c").diffuse_color == pytest.approx(tuple(expected("acescg")), abs=1e-6)


def test_a_space_that_the_stage_defines(read):
    """Rec.709's primaries with gamma 2: 0.25 is 0.0625."""
    text = material(authored("inputs:diffuseColor", "mine"), '(prepend apiSchemas = ["ColorSpaceDefinitionAPI:own"])')
    definition = 'uniform token colorSpaceDefinition:own:name = "mine"\nfloat colorSpaceDefinition:own:gamma = 2\n'
    chroma = "".join(
        f"float2 colorSpaceDefinition:own:{name} = {value}\n"
        for name, value in {
            "redChroma": (0.64, 0.33),
            "greenChroma": (0.3, 0.6),
            "blueChroma": (0.15, 0.06),
            "whitePoint": (0.3127, 0.329),
        }.items()
    )
    found = read(text.replace('def Material "m"', f'{definition}{chroma}def Material "m"'))
    assert found.material("/c").diffuse_color == pytest.approx(tuple(np.square(PAINT)), abs=1e-5)


@pytest.mark.parametrize("gamma", ["nan", "0", "-2", "1e30"])
def test_a_definition_without_use_is_told(read, gamma):
    text = material(authored("inputs:diffuseColor", "mine"), '(prepend apiSchemas = ["ColorSpaceDefinitionAPI:own"])')
    definition = f'uniform token colorSpaceDefinition:own:name = "mine"\nfloat colorSpaceDefinition:own:gamma = {gamma}\n'
    found = read(text.replace('def Material "m"', f'{definition}def Material "m"'))
    assert found.material("/c").diffuse_color == pytest.approx(PAINT)
    assert found.codes() == ["color-space"]


def test_what_is_outside_of_rec709_ends_at_its_edge(read):
    found = read(material(authored("inputs:diffuseColor", "lin_ap1_scene", (0, 1, 0)))).material("/c")
    raw = expected("lin_ap1_scene", (0, 1, 0))
    assert raw.min() < -0.05
    assert found.diffuse_color == pytest.approx(tuple(np.maximum(raw, 0.0)), abs=1e-6)


def test_numbers_that_are_no_colours_have_no_space(read):
    text = material(
        f"{authored('inputs:normal', 'srgb_rec709_scene', (0, 0, 1), 'normal3f')}\n{authored('inputs:ior', 'sRGB', 1.25, 'float')}"
    )
    found = read(text)
    assert found.material("/c").ior == 1.25 and found.codes() == []


def test_an_unknown_space_is_told(read):
    found = read(material(authored("inputs:diffuseColor", "lin_nowhere")))
    assert found.material("/c").diffuse_color == pytest.approx(PAINT)
    assert found.codes() == ["color-space"]
    (told,) = found.diagnostics
    assert told.path == "/looks/m" and "'lin_nowhere' of inputs:diffuseColor" in told.message and "lin_ap1_scene" in told.message


@pytest.mark.parametrize("space", NAMES)
@pytest.mark.parametrize("interpolation", ["constant", "vertex"])
def test_display_colours(space, interpolation, device):
    """Seen straight from above, a mesh in another space has the albedo of the colour in linear Rec.709."""
    stage = Usd.Stage.CreateInMemory()
    mesh = UsdGeom.Mesh.Define(stage, "/sheet")
    mesh.CreatePointsAttr([(-9, -9, -5), (9, -9, -5), (9, 9, -5), (-9, 9, -5)])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    primvar = mesh.CreateDisplayColorPrimvar(interpolation)
    primvar.Set([PAINT] * (1 if interpolation == "constant" else 4))
    primvar.GetAttr().SetColorSpace(space)
    UsdGeom.Camera.Define(stage, "/camera")
    frame = hdwarp.render(stage, "/camera", resolution=(8, 6), aovs=["albedo", "primvars:displayColor"], device=device)
    assert frame["albedo"][3, 4, :3] == pytest.approx(expected(space), abs=1e-6)
    assert frame["primvars:displayColor"][3, 4] == pytest.approx(expected(space), abs=1e-6)


def test_spaces_are_followed_when_they_change(device):
    stage = Usd.Stage.CreateInMemory()
    cube = UsdGeom.Cube.Define(stage, "/World/cube")
    cube.AddTranslateOp().Set((0, 0, -5))
    cube.CreateDisplayColorAttr([PAINT])
    looks = stage.DefinePrim("/World/looks")
    paint = UsdShade.Material.Define(stage, "/World/looks/paint")
    shader = UsdShade.Shader.Define(stage, "/World/looks/paint/shader")
    shader.CreateIdAttr("UsdPreviewSurface")
    diffuse = shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
    diffuse.Set(Gf.Vec3f(*PAINT))
    paint.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    UsdGeom.Camera.Define(stage, "/World/camera")
    scene = hdwarp.Scene(stage, device=device)

    def albedo() -> np.ndarray:
        scene.sync()
        return hdwarp.render(scene, "/World/camera", resolution=(8, 6), aovs=["albedo"])["albedo"][3, 4, :3]

    assert albedo() == pytest.approx(PAINT, abs=1e-6)
    cube.GetDisplayColorAttr().SetColorSpace("srgb_rec709_scene")
    assert albedo() == pytest.approx(expected("srgb_rec709_scene"), abs=1e-6)
    cube.GetDisplayColorAttr().ClearColorSpace()
    Usd.ColorSpaceAPI.Apply(stage.GetPrimAtPath("/World")).CreateColorSpaceNameAttr("lin_ap1_scene")
    assert albedo() == pytest.approx(expected("lin_ap1_scene"), abs=1e-6)
    UsdShade.MaterialBindingAPI.Apply(cube.GetPrim()).Bind(paint)
    assert albedo() == pytest.approx(expected("lin_ap1_scene"), abs=1e-6)
    Usd.ColorSpaceAPI.Apply(looks).CreateColorSpaceNameAttr("g22_rec709_scene")
    assert albedo() == pytest.approx(expected("g22_rec709_scene"), abs=1e-6)
    diffuse.GetAttr().SetColorSpace("srgb_rec709_scene")
    assert albedo() == pytest.approx(expected("srgb_rec709_scene"), abs=1e-6)
    diffuse.GetAttr().ClearColorSpace()
    looks.GetAttribute("colorSpace:name").Set("raw")
    assert albedo() == pytest.approx(PAINT, abs=1e-6)
