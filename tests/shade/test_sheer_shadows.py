"""Light that comes through what is cut away or blended: a square above the camera, and the light above that. What the floor sees of the
light can be said by hand."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdShade

import hdwarp
from hdwarp.shade.sheer import MAX_SURFACES

SIZE = 24
CORNERS = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
PREVIEW = hdwarp.RenderSettings(integrator="preview")


def stage_of(light: str = "distant") -> Usd.Stage:
    """A floor at z = 0 that fills the picture of /c, at z = 0.5 and looking down; what casts shadows is above that."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    camera = UsdGeom.Camera.Define(stage, "/c")
    camera.CreateProjectionAttr("orthographic")
    camera.CreateHorizontalApertureAttr(20.0)
    camera.CreateVerticalApertureAttr(20.0)
    camera.CreateClippingRangeAttr((0.1, 10.0))
    UsdGeom.XformCommonAPI(camera).SetTranslate((0, 0, 0.5))
    add_square(stage, "/floor", 0.0, 4.0)
    if light == "distant":
        made = UsdLux.DistantLight.Define(stage, "/light")  # straight down
        made.CreateAngleAttr(0.0)
        made.CreateIntensityAttr(1.0)
    elif light == "point":
        made = UsdLux.SphereLight.Define(stage, "/light")
        made.CreateTreatAsPointAttr(True)
        made.CreateIntensityAttr(1000.0)
        UsdGeom.XformCommonAPI(made).SetTranslate((0, 0, 8.0))
    else:
        made = UsdLux.RectLight.Define(stage, "/light")
        made.CreateIntensityAttr(10.0)
        UsdGeom.XformCommonAPI(made).SetTranslate((0, 0, 8.0))
    return stage


def add_square(stage: Usd.Stage, path: str, z: float, half: float = 1.0) -> UsdGeom.Mesh:
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr([(half * x, half * y, z) for x, y in CORNERS])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    mesh.CreateSubdivisionSchemeAttr("none")
    return mesh


def add_material(stage: Usd.Stage, path: str, opacity: float, threshold: float = 0.0, mode: str = "transparent") -> UsdShade.Material:
    material = UsdShade.Material.Define(stage, path)
    shader = UsdShade.Shader.Define(stage, path + "/s")
    shader.CreateIdAttr("UsdPreviewSurface")
    shader.CreateInput("opacity", Sdf.ValueTypeNames.Float).Set(opacity)
    shader.CreateInput("opacityThreshold", Sdf.ValueTypeNames.Float).Set(threshold)
    shader.CreateInput("opacityMode", Sdf.ValueTypeNames.Token).Set(mode)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    return material


def bind(mesh: UsdGeom.Mesh, material: UsdShade.Material) -> None:
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)


def read(stage: Usd.Stage, material: str, primvar: str) -> None:
    """The opacity of a material comes from a primvar."""
    reader = UsdShade.Shader.Define(stage, f"{material}/reader")
    reader.CreateIdAttr("UsdPrimvarReader_float")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set(primvar)
    reader.CreateOutput("result", Sdf.ValueTypeNames.Float)
    UsdShade.Shader.Get(stage, f"{material}/s").GetInput("opacity").ConnectToSource(reader.ConnectableAPI(), "result")


def author(mesh: UsdGeom.Mesh, name: str, values: list[float], interpolation: str = "vertex") -> None:
    UsdGeom.PrimvarsAPI(mesh).CreatePrimvar(name, Sdf.ValueTypeNames.FloatArray, interpolation).Set(values)


def look(stage: Usd.Stage, device: str, **options) -> np.ndarray:
    return hdwarp.render(stage, "/c", resolution=(SIZE, SIZE), aovs=["direct"], settings=PREVIEW, device=device, **options)["direct"]


def seen(stage: Usd.Stage, device: str, **options) -> np.ndarray:
    """(SIZE, SIZE): how much of the light the floor sees, by the same stage without what is at /q..."""
    shaded = look(stage, device, **options)
    for prim in stage.GetPseudoRoot().GetChildren():
        if prim.GetName().startswith("q"):
            prim.SetActive(False)
    free = look(stage, device, **options)
    assert free.min() > 0.0
    return (shaded / free).mean(axis=-1)


def across() -> np.ndarray:
    """(SIZE,) x at the middles of pixels."""
    return (np.arange(SIZE) + 0.5) / SIZE * 2.0 - 1.0


@pytest.mark.parametrize("mode", ["transparent", "presence"])
@pytest.mark.parametrize("light", ["distant", "point", "rect"])
def test_blended_surfaces_let_the_rest_through(light, mode, device):
    """One of opacity 0.5 halves the light, another of 0.75 leaves a quarter of that; of every kind of light."""
    stage = stage_of(light)
    for i, opacity in enumerate((0.5, 0.75)):
        bind(add_square(stage, f"/q{i}", 1.0 + i, 6.0), add_material(stage, f"/m{i}", opacity, mode=mode))
    np.testing.assert_allclose(seen(stage, device), 0.125, rtol=1e-4)
    stage.RemovePrim("/q1")
    stage.GetPrimAtPath("/q0").SetActive(True)
    np.testing.assert_allclose(seen(stage, device), 0.5, rtol=1e-4)


def test_a_hole_by_a_primvar_lets_light_through(device):
    """Cut away where 0.5 + 0.5 x < 0.375, left of x = -0.25; the rest casts its shadow."""
    stage = stage_of()
    mesh = add_square(stage, "/q0", 1.0)
    bind(mesh, add_material(stage, "/m0", 1.0, 0.375))
    author(mesh, "solid", [0, 1, 1, 0])
    read(stage, "/m0", "solid")
    np.testing.assert_array_equal(seen(stage, device), np.broadcast_to(np.where(across() < -0.25, 1.0, 0.0), (SIZE, SIZE)))


@pytest.mark.parametrize("threshold", [0.5, 0.0])
def test_holes_of_an_image(threshold, device, tmp_path):
    """Four texels that are there or not, in a turned, scaled and moved instance; blended, the bilinear mix of them."""
    pixels = np.zeros((2, 2, 4), np.uint8)
    pixels[0, 0, 3] = pixels[1, 1, 3] = 255  # above left and below right
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png")
    stage = stage_of()
    mesh = add_square(stage, "/q0", 0.0, 0.25)
    UsdGeom.XformCommonAPI(mesh).SetTranslate((0, 0, 1.5))
    UsdGeom.XformCommonAPI(mesh).SetScale((4, 4, 4))
    UsdGeom.XformCommonAPI(mesh).SetRotate((0, 0, 90))
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, "faceVarying")
    primvar.Set([Gf.Vec2f(0.5 + 0.5 * x, 0.5 + 0.5 * y) for x, y in CORNERS])
    bind(mesh, add_material(stage, "/m0", 1.0, threshold))
    reader = UsdShade.Shader.Define(stage, "/m0/st")
    reader.CreateIdAttr("UsdPrimvarReader_float2")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set("st")
    texture = UsdShade.Shader.Define(stage, "/m0/t")
    texture.CreateIdAttr("UsdUVTexture")
    texture.CreateInput("file", Sdf.ValueTypeNames.Asset).Set(str(tmp_path / "a.png"))
    for name in ("wrapS", "wrapT"):
        texture.CreateInput(name, Sdf.ValueTypeNames.Token).Set("clamp")
    texture.CreateInput("st", Sdf.ValueTypeNames.Float2).ConnectToSource(reader.ConnectableAPI(), "result")
    UsdShade.Shader.Get(stage, "/m0/s").GetInput("opacity").ConnectToSource(texture.ConnectableAPI(), "a")

    x, y = np.meshgrid(across(), across()[::-1])
    u, v = np.clip(0.5 + y, 0.0, 1.0), np.clip(0.5 - x, 0.0, 1.0)  # turned back by 90 degrees, between the middles of texels
    opacity = (1.0 - u) * v + u * (1.0 - v)
    found = seen(stage, device)
    if threshold > 0.0:
        sure = np.abs(opacity - threshold) > 1e-3
        assert sure.mean() > 0.8 and 0.3 < found.mean() < 0.7
        np.testing.assert_array_equal(found[sure], np.where(opacity < threshold, 1.0, 0.0)[sure])
    else:
        np.testing.assert_allclose(found, 1.0 - opacity, atol=2e-3)


@pytest.mark.parametrize(("interpolation", "values"), [("constant", [0.25]), ("vertex", [0, 1, 1, 0]), ("uniform", [0.75])])
def test_display_opacity(interpolation, values, device):
    stage = stage_of()
    author(add_square(stage, "/q0", 1.0), "displayOpacity", values, interpolation)
    opacity = 0.5 + 0.5 * across() if len(values) == 4 else np.full(SIZE, values[0])
    np.testing.assert_allclose(seen(stage, device), np.broadcast_to(1.0 - opacity, (SIZE, SIZE)), atol=1e-3)


def test_as_many_surfaces_as_there_may_be(device):
    """A ray goes through MAX_SURFACES; the next one stops it. Opaque ones always do."""
    stage = stage_of()
    cut = add_material(stage, "/m0", 1.0, 0.5)
    read(stage, "/m0", "solid")
    for i in range(MAX_SURFACES):
        mesh = add_square(stage, f"/q{i}", 1.0 + 0.25 * i)
        bind(mesh, cut)
        author(mesh, "solid", [0.0], "constant")
    assert (seen(stage, device) == 1.0).all()
    for i in range(MAX_SURFACES):
        stage.GetPrimAtPath(f"/q{i}").SetActive(True)
    opaque = add_square(stage, "/q99", 8.0)
    assert (look(stage, device) == 0.0).all()
    opaque.GetPrim().SetActive(False)
    more = add_square(stage, "/q98", 8.0)
    bind(more, cut)
    author(more, "solid", [0.0], "constant")
    assert (look(stage, device) == 0.0).all()


def test_what_is_behind_a_blended_surface_is_lit_through_it(device):
    """The floor seen through a square of opacity 0.5 that is in the light's way as well: half the light, half of which is seen. The square
    itself casts no shadow on itself."""
    stage = stage_of()
    UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/c")).SetTranslate((0, 0, 5.0))
    floor = hdwarp.render(stage, "/c", resolution=(SIZE, SIZE), settings=PREVIEW, device=device)["color"]
    bind(add_square(stage, "/q0", 1.0), add_material(stage, "/m0", 0.5, mode="presence"))
    both = hdwarp.render(stage, "/c", resolution=(SIZE, SIZE), settings=PREVIEW, device=device)["color"]
    stage.GetPrimAtPath("/floor").SetActive(False)
    square = hdwarp.render(stage, "/c", resolution=(SIZE, SIZE), settings=PREVIEW, device=device)["color"]
    np.testing.assert_allclose(both[..., :3], square[..., :3] + 0.25 * floor[..., :3], rtol=1e-3)
    assert (both[..., 3] == 1.0).all()
