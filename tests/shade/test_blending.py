"""Blended opacity: what lies behind shines through, layer by layer. Squares one behind the other: the over operator says every pixel."""

from __future__ import annotations

import itertools

import numpy as np
import PIL.Image
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade

import hdwarp
from hdwarp.shade.encode import srgb_bytes
from hdwarp.shade.layers import MAX_BLENDED

SIZE = 24
CORNERS = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
RED, GREEN, BLUE = (0.75, 0.125, 0.0), (0.125, 0.5, 0.25), (0.0, 0.25, 1.0)
UNLIT = hdwarp.RenderSettings(integrator="unlit")


def new_stage() -> Usd.Stage:
    """Camera /c looks from z = 5 at just the square from -1 to 1."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    camera = UsdGeom.Camera.Define(stage, "/c")
    camera.CreateProjectionAttr("orthographic")
    camera.CreateHorizontalApertureAttr(20.0)
    camera.CreateVerticalApertureAttr(20.0)
    UsdGeom.XformCommonAPI(camera).SetTranslate((0, 0, 5))
    return stage


def add_square(stage: Usd.Stage, path: str, z: float, half: float = 1.0) -> UsdGeom.Mesh:
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr([(half * x, half * y, z) for x, y in CORNERS])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    mesh.CreateSubdivisionSchemeAttr("none")
    return mesh


def add_material(stage: Usd.Stage, path: str, colour: tuple, opacity: float, mode: str = "", **inputs: float | tuple) -> UsdShade.Material:
    material = UsdShade.Material.Define(stage, path)
    shader = UsdShade.Shader.Define(stage, path + "/s")
    shader.CreateIdAttr("UsdPreviewSurface")
    for name, value in {"diffuseColor": colour, "opacity": opacity, **inputs}.items():
        kind = Sdf.ValueTypeNames.Color3f if isinstance(value, tuple) else Sdf.ValueTypeNames.Float
        shader.CreateInput(name, kind).Set(value)
    if mode:
        shader.CreateInput("opacityMode", Sdf.ValueTypeNames.Token).Set(mode)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    return material


def bind(mesh: UsdGeom.Gprim, material: UsdShade.Material) -> None:
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)


def stack(layers: list[tuple[tuple, float]], mode: str = "", order: list[int] | None = None, **inputs: float | tuple) -> Usd.Stage:
    """(colour, opacity) of squares from front to back, authored in ``order``."""
    stage = new_stage()
    for name, i in enumerate(order or range(len(layers))):
        colour, opacity = layers[i]
        bind(add_square(stage, f"/q{name}", -0.25 * i), add_material(stage, f"/m{name}", colour, opacity, mode, **inputs))
    return stage


def over(layers: list[tuple[tuple, float]]) -> np.ndarray:
    """(4,) float64: premultiplied, front to back."""
    total = np.zeros(4)
    for colour, opacity in layers:
        total += (1.0 - total[3]) * opacity * np.array([*colour, 1.0])
    return total


def look(stage: Usd.Stage | hdwarp.Scene, device: str, aovs: tuple = ("color",), settings: hdwarp.RenderSettings = UNLIT, **options):
    return hdwarp.render(stage, "/c", resolution=(SIZE, SIZE), aovs=list(aovs), settings=settings, device=device, **options)


def first_alpha(stage: Usd.Stage, device: str) -> np.ndarray:
    """The AOV `alpha` by a sensor: for `render` that name stands for the alpha of `color`."""
    sensor = hdwarp.SensorCamera(hdwarp.Scene(stage, device=device), cameras="/c", resolution=(SIZE, SIZE), settings=UNLIT)
    out = sensor.allocate(["alpha"])
    sensor.update(None, out)
    return out["alpha"].numpy()[0]


def check(image: np.ndarray, expected: np.ndarray, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(image, np.broadcast_to(expected, image.shape), atol=tolerance)


@pytest.mark.parametrize("mode", ["", "presence"])
@pytest.mark.parametrize(
    "layers", [[(RED, 0.25), (BLUE, 1.0)], [(RED, 0.5), (GREEN, 0.25), (BLUE, 1.0)], [(RED, 0.1), (GREEN, 0.2), (RED, 0.0), (BLUE, 0.7)]]
)
def test_layers_one_behind_the_other(layers, mode, device):
    """c0 a0 + (1 - a0) (c1 a1 + (1 - a1) ...), also over nothing; bytes are the encoding of the unpremultiplied colour."""
    frame = look(stack(layers, mode), device, ("color", "rgba8"))
    expected = over(layers)
    check(frame["color"], expected)
    assert np.abs(frame["rgba8"][..., :3].astype(int) - srgb_bytes(expected[:3] / expected[3])).max() <= 1
    assert np.abs(frame["rgba8"][..., 3].astype(int) - round(255 * expected[3])).max() <= 1
    assert [item.code for item in frame.diagnostics if item.code == "opacity"] == []


def test_the_order_of_authoring_does_not_count(device):
    layers = [(RED, 0.5), (GREEN, 0.25), (BLUE, 0.75)]
    pictures = [look(stack(layers, order=list(order)), device)["color"] for order in itertools.permutations(range(3))]
    assert all(np.array_equal(picture, pictures[0]) for picture in pictures[1:])
    check(pictures[0], over(layers))


def test_other_planes_are_those_of_the_first_surface(device):
    """Whatever its opacity: as if it were opaque, but for `alpha`, which is its opacity."""
    aovs = ("distance_to_image_plane", "primId", "materialId", "normal", "albedo", "position", "roughness", "color")
    stages = [stack([(RED, opacity), (BLUE, 1.0)], roughness=0.75) for opacity in (0.25, 1.0)]
    clear, solid = (look(stage, device, aovs) for stage in stages)
    for name in aovs[:-1]:
        np.testing.assert_array_equal(clear[name], solid[name])
    assert (clear["primId"] == 0).all() and (clear["roughness"] == 0.75).all()
    assert [np.unique(first_alpha(stage, device)).tolist() for stage in stages] == [[0.25], [1.0]]
    check(solid["color"], np.array([*RED, 1.0]))


@pytest.mark.parametrize("integrator", ["fast", "preview"])
def test_opacity_takes_from_the_matt_part_alone_or_with_presence_from_all(integrator, device):
    """Light that a surface sends on is h + a d: highlights h (and what it emits) stay, all that is matt (d) goes with the opacity a;
    with presence it is a (h + d). Over nothing alpha is the opacity either way."""
    settings = hdwarp.RenderSettings(integrator=integrator)
    inputs = {"roughness": 0.3, "clearcoat": 1.0, "emissiveColor": (0.0, 0.125, 0.0)}
    light = {a: look(stack([(RED, a)], **inputs), device, settings=settings)["color"] for a in (0.0, 0.25, 1.0)}
    matt = light[1.0][..., :3] - light[0.0][..., :3]
    assert matt[..., 0].min() > 0.5 and light[0.0][..., :3].min() > 0.01
    np.testing.assert_allclose(light[0.25][..., :3], light[0.0][..., :3] + 0.25 * matt, rtol=1e-5)
    present = look(stack([(RED, 0.25)], "presence", **inputs), device, settings=settings)["color"]
    np.testing.assert_allclose(present, 0.25 * light[1.0], rtol=1e-5)
    for a, picture in light.items():
        assert (picture[..., 3] == a).all()


def test_light_on_what_is_behind_shines_through(device):
    """Each layer is lit by itself: the over operator on the pictures of one layer alone."""
    settings = hdwarp.RenderSettings(integrator="fast")
    front, back = (look(stack([layer]), device, settings=settings)["color"] for layer in ((RED, 0.25), (BLUE, 1.0)))
    both = look(stack([(RED, 0.25), (BLUE, 1.0)]), device, settings=settings)["color"]
    np.testing.assert_allclose(both, front + (1.0 - front[..., 3:]) * back, atol=1e-6)


def test_more_layers_than_are_drawn(device):
    """The first MAX_BLENDED count, and nothing behind them."""
    layers = [(RED if i % 2 else GREEN, 0.125) for i in range(20)]
    check(look(stack(layers), device)["color"], over(layers[:MAX_BLENDED]))


def test_several_samples_and_bits(device):
    """Nothing varies within the pixels: the mean is the colour. The same bits every time."""
    layers = [(RED, 0.5), (GREEN, 0.25), (BLUE, 1.0)]
    first, averaged = look(stack(layers), device, ("color", "rgba8")), look(stack(layers), device, ("color", "rgba8"), samples=4)
    check(averaged["color"], over(layers))
    np.testing.assert_array_equal(averaged["rgba8"], first["rgba8"])
    for again, samples in ((first, 1), (averaged, 4)):
        np.testing.assert_array_equal(look(stack(layers), device, samples=samples)["color"], again["color"])


def test_cut_outs_behind_blended_surfaces_are_looked_through(device):
    """A square all of whose left half is cut away by a primvar, between a blended and a solid one."""
    stage = stack([(RED, 0.5), (GREEN, 1.0), (BLUE, 1.0)], opacityThreshold=0.0)
    UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/q1")).CreatePrimvar("solid", Sdf.ValueTypeNames.FloatArray, "vertex").Set([0, 1, 1, 0])
    read_opacity(stage, "/m1", "solid")
    UsdShade.Shader.Get(stage, "/m1/s").GetInput("opacityThreshold").Set(0.5)
    image = look(stage, device)["color"]
    check(image[:, : SIZE // 2], over([(RED, 0.5), (BLUE, 1.0)]))
    check(image[:, SIZE // 2 :], over([(RED, 0.5), (GREEN, 1.0)]))


def read_opacity(stage: Usd.Stage, material: str, primvar: str) -> None:
    """The opacity of a material comes from a primvar."""
    reader = UsdShade.Shader.Define(stage, f"{material}/reader")
    reader.CreateIdAttr("UsdPrimvarReader_float")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set(primvar)
    reader.CreateOutput("result", Sdf.ValueTypeNames.Float)
    UsdShade.Shader.Get(stage, f"{material}/s").CreateInput("opacity", Sdf.ValueTypeNames.Float).ConnectToSource(
        reader.ConnectableAPI(), "result"
    )


def across() -> np.ndarray:
    """(SIZE,) x at the middles of pixels."""
    return (np.arange(SIZE) + 0.5) / SIZE * 2.0 - 1.0


def mixed(opacity: np.ndarray) -> np.ndarray:
    """(..., 4): RED of these opacities over BLUE."""
    opacity = opacity[..., None]
    return opacity * np.array([*RED, 1.0]) + (1.0 - opacity) * np.array([*BLUE, 1.0])


def test_opacity_that_varies_over_the_surface(device):
    """0.5 + 0.5 x, from a primvar: nothing at the left edge, all at the right."""
    stage = stack([(RED, 1.0), (BLUE, 1.0)])
    UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/q0")).CreatePrimvar("solid", Sdf.ValueTypeNames.FloatArray, "vertex").Set([0, 1, 1, 0])
    read_opacity(stage, "/m0", "solid")
    opacity = np.broadcast_to(0.5 + 0.5 * across(), (SIZE, SIZE))
    check(look(stage, device)["color"], mixed(opacity), 1e-5)
    check(first_alpha(stage, device), opacity, 1e-5)


def test_opacity_from_an_image(device, tmp_path, surfaces):
    """The alpha of two texels side by side, 51 and 204 of 255: opacity 0.2 to the left, 0.8 to the right, between their middles a ramp."""
    pixels = np.zeros((1, 2, 4), np.uint8)
    pixels[0, :, 3] = 51, 204
    stage = surfaces.square(0.0, 1.0)
    behind = add_square(stage, "/behind", -1.0)
    bind(behind, add_material(stage, "/blue", BLUE, 1.0))
    UsdShade.Shader.Get(stage, "/m/s").GetInput("diffuseColor").Set(RED)
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png")
    texture = surfaces.texture(stage, tmp_path / "a.png", surfaces.reader(stage), wrapS="clamp", wrapT="clamp")
    surfaces.connect(stage, "opacity", "float", f"{texture}.outputs:a")
    opacity = np.clip(0.2 + 0.6 * ((across() + 1.0) * 0.5 - 0.25) / 0.5, 0.2, 0.8)
    check(look(stage, device)["color"], mixed(np.broadcast_to(opacity, (SIZE, SIZE))), 2e-5)


@pytest.mark.parametrize(("interpolation", "values"), [("constant", [0.25]), ("vertex", [0.0, 1.0, 1.0, 0.0])])
def test_display_opacity_of_what_has_no_material(interpolation, values, device):
    """Hydra's rule: it fades all of the surface; a material has an opacity of its own instead."""
    stage = stack([(RED, 1.0), (BLUE, 1.0)])
    for path in ("/q0", "/q1"):
        primvar = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath(path)).CreatePrimvar(
            "displayOpacity", Sdf.ValueTypeNames.FloatArray, interpolation
        )
        primvar.Set(values)
    solid = look(stage, device)["color"]
    check(solid, np.array([*RED, 1.0]))
    mesh = UsdGeom.Mesh.Get(stage, "/q0")
    UsdShade.MaterialBindingAPI(mesh.GetPrim()).UnbindAllBindings()
    mesh.CreateDisplayColorAttr([RED])
    frame = look(stage, device, ("color", "primvars:displayOpacity"))
    opacity = np.broadcast_to(0.25 if len(values) == 1 else 0.5 + 0.5 * across(), (SIZE, SIZE))
    check(frame["color"], mixed(opacity), 1e-5)
    check(first_alpha(stage, device), opacity, 1e-5)
    check(np.squeeze(frame["primvars:displayOpacity"]), opacity, 1e-5)
    assert [item.code for item in frame.diagnostics if "opacity" in item.code] == []
    settings = hdwarp.RenderSettings(integrator="fast")
    shown = look(stage, device, settings=settings)["color"]
    UsdGeom.PrimvarsAPI(mesh).GetPrimvar("displayOpacity").Set([1.0] * len(values))
    front = look(stage, device, settings=settings)["color"]
    mesh.GetVisibilityAttr().Set("invisible")
    back = look(stage, device, settings=settings)["color"]
    np.testing.assert_allclose(shown, opacity[..., None] * front + (1.0 - opacity[..., None]) * back, atol=1e-5)


def test_what_is_behind_nothing_is_the_clear_colour(device):
    """A square in the middle of the picture, over a clear value of the caller's."""
    stage = stack([(RED, 0.25)])
    UsdGeom.Mesh.Get(stage, "/q0").GetPointsAttr().Set([Gf.Vec3f(0.5 * x, 0.5 * y, 0) for x, y in CORNERS])
    ground = np.array([0.0, 0.5, 0.5, 1.0])
    image = look(stage, device, clear={"color": tuple(ground)})["color"]
    check(image[SIZE // 3 : -SIZE // 3, SIZE // 3 : -SIZE // 3], over([(RED, 0.25)]) + 0.75 * ground)
    check(image[:4], ground, 0.0)


def test_live_edits(device):
    """Opaque, blended, opaque again, and a displayOpacity that comes and goes: as freshly read."""
    stage = stack([(RED, 1.0), (BLUE, 1.0)])
    add = add_square(stage, "/bare", 0.5)
    add.CreateDisplayColorAttr([GREEN])
    scene = hdwarp.Scene(stage, device=device)
    sensor = hdwarp.SensorCamera(scene, cameras="/c", resolution=(SIZE, SIZE), settings=UNLIT)
    out = sensor.allocate(["color"])
    for opacity, bare in ((1.0, 0.0), (0.5, 0.25), (0.5, 1.0), (1.0, 0.75), (0.25, 0.5)):
        UsdShade.Shader.Get(stage, "/m0/s").GetInput("opacity").Set(opacity)
        add.CreateDisplayOpacityAttr().Set([bare])
        scene.sync()
        sensor.update(None, out)
        check(out["color"].numpy()[0], over([(GREEN, bare), (RED, opacity), (BLUE, 1.0)]))
        np.testing.assert_array_equal(out["color"].numpy()[0], look(stage, device)["color"])


def test_worlds_and_given_rays(device):
    """Copies of a stack show what the stack shows; so do rays of one's own, and wide lenses."""
    stage = new_stage()
    UsdGeom.Xform.Define(stage, "/w")
    layers = [(RED, 0.5), (GREEN, 0.25), (BLUE, 1.0)]
    for i, (colour, opacity) in enumerate(layers):
        bind(add_square(stage, f"/w/q{i}", -0.25 * i, 9.0), add_material(stage, f"/w/m{i}", colour, opacity))
    camera = UsdGeom.Camera.Define(stage, "/w/c")
    UsdGeom.XformCommonAPI(camera).SetTranslate((0, 0, 5))
    scene = hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate("/w", count=3, spacing=(40.0, 40.0), label="/w{}")])
    sensor = hdwarp.SensorCamera(scene, cameras="*/c", resolution=(SIZE, SIZE), settings=UNLIT)
    out = sensor.allocate(["color", "primId"])
    sensor.update(None, out)
    assert sensor.view_count >= 3
    seen = out["primId"].numpy() >= 0
    check(out["color"].numpy()[seen], over(layers))
    assert seen.reshape(sensor.view_count, -1).all(axis=1).sum() >= 3

    rays = np.zeros((SIZE, SIZE, 1, 2, 3), np.float32)
    rays[..., 0, 0, 0], rays[..., 0, 0, 1] = np.meshgrid(across(), across())
    rays[..., 0, 1, 2] = -1.0
    sensor = hdwarp.SensorCamera(scene, cameras="/w1/c", settings=UNLIT, resolution=(SIZE, SIZE))
    sensor.set_camera_rays(rays)
    out = sensor.allocate(["color"])
    sensor.update(None, out)
    check(out["color"].numpy(), over(layers))
