"""Textures of surfaces, from the stage to the pixels, against the same in float64: at the middles and the borders of texels."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Sdf, UsdGeom

import hdwarp
from hdwarp.stage.looks import WRAPS, Image, Texture


@pytest.fixture
def wanted(twin, surfaces):
    """(n, 4): linear texels (H, W, 4) at st (n, 2), by the pixels of the picture where none is given."""

    def look_up(texels: np.ndarray, wrap_s: str = "repeat", wrap_t: str = "repeat", st: np.ndarray | None = None) -> np.ndarray:
        return twin.look_up(Texture(Image(texels, False), "st", wrap_s, wrap_t), surfaces.pixels_st() if st is None else st)

    return look_up


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("other", ["repeat", "useMetadata"])
def test_wrap_modes(surfaces, wanted, tmp_path, device, wrap, other):
    """useMetadata, which is the fallback, is black where the file says nothing."""
    file, pixels = surfaces.image(tmp_path)
    stage = surfaces.square()
    surfaces.diffuse(stage, file, wrapS=wrap, wrapT=other)
    expected = wanted(surfaces.linear(pixels / 255), wrap, "black" if other == "useMetadata" else other)
    assert surfaces.shown(stage, device) == pytest.approx(expected[:, :3], abs=2e-5)


def test_middles_of_texels_show_them(surfaces, tmp_path, device):
    """No twin: the pixel of each texel's middle within the image, and the border between two, which is their mean."""
    file, pixels = surfaces.image(tmp_path)
    stage = surfaces.square()
    surfaces.diffuse(stage, file)
    found = surfaces.shown(stage, device).reshape(surfaces.SIZE, surfaces.SIZE, 3)[::-1]  # rows as t grows
    texels = surfaces.linear(pixels / 255)[::-1, :, :3]
    at = 32 + 4 + 8 * np.arange(4)  # st = 1/8, 3/8, ...; pixel 32 is st = 0
    assert found[np.ix_(at, at)] == pytest.approx(texels, abs=2e-5)
    between = found[np.ix_(at, at[:3] + 4)]
    assert between == pytest.approx((texels[:, :3] + texels[:, 1:]) / 2, abs=2e-5)
    assert found[at, 32] == pytest.approx((texels[:, 0] + texels[:, 3]) / 2, abs=2e-5)  # repeated: the last is beside the first


@pytest.mark.parametrize(("space", "mode", "curved"), [
    ("auto", "RGB", True),
    ("auto", "RGBA", True),
    ("auto", "L", False),
    ("auto", "LA", False),
    ("raw", "RGB", False),
    ("sRGB", "RGB", True),
    ("sRGB", "L", True),
])  # fmt: skip
def test_colour_spaces(surfaces, wanted, tmp_path, device, space, mode, curved):
    file, pixels = surfaces.image(tmp_path, mode=mode)
    stage = surfaces.square()
    surfaces.diffuse(stage, file, sourceColorSpace=space)
    texels = pixels / 255.0
    colour = texels[..., :3] if mode.startswith("RGB") else np.repeat(texels[..., :1], 3, axis=-1)
    rgba = np.concatenate([colour, np.ones((4, 4, 1))], axis=-1)
    assert surfaces.shown(stage, device) == pytest.approx(wanted(surfaces.linear(rgba) if curved else rgba)[:, :3], abs=2e-5)


@pytest.mark.parametrize("space", ["auto", "sRGB"])
def test_float_files_are_linear_unless_they_are_said_to_be_srgb(surfaces, wanted, tmp_path, device, space):
    import OpenEXR

    planes = np.random.default_rng(1).random((3, 4, 4)).astype(np.float32)
    header = {"type": OpenEXR.scanlineimage, "compression": OpenEXR.ZIP_COMPRESSION}
    OpenEXR.File(header, dict(zip("RGB", planes.copy(), strict=True))).write(str(tmp_path / "a.exr"))
    stage = surfaces.square()
    surfaces.diffuse(stage, tmp_path / "a.exr", sourceColorSpace=space)
    rgba = np.concatenate([np.moveaxis(planes, 0, -1), np.ones((4, 4, 1))], axis=-1)
    expected = wanted(surfaces.linear(rgba) if space == "sRGB" else rgba)
    assert surfaces.shown(stage, device) == pytest.approx(expected[:, :3], abs=2e-5)


@pytest.mark.parametrize(("mode", "wraps"), [("black,mirror", ("black", "mirror")), ("periodic", ("repeat", "repeat"))])
def test_wrap_modes_of_a_file(surfaces, wanted, tmp_path, device, mode, wraps):
    """OpenImageIO's metadata wrapmodes; a mode that is authored wins."""
    import OpenEXR

    planes = np.random.default_rng(1).random((3, 4, 4)).astype(np.float32)
    header = {"type": OpenEXR.scanlineimage, "compression": OpenEXR.ZIP_COMPRESSION, "wrapmodes": mode}
    OpenEXR.File(header, dict(zip("RGB", planes.copy(), strict=True))).write(str(tmp_path / "a.exr"))
    rgba = np.concatenate([np.moveaxis(planes, 0, -1), np.ones((4, 4, 1))], axis=-1)
    stage = surfaces.square()
    path = surfaces.diffuse(stage, tmp_path / "a.exr", wrapS="useMetadata", wrapT="useMetadata")
    assert surfaces.shown(stage, device) == pytest.approx(wanted(rgba, *wraps)[:, :3], abs=2e-5)
    surfaces.constant(stage, "wrapS", "token", "clamp", path)
    assert surfaces.shown(stage, device) == pytest.approx(wanted(rgba, "clamp", wraps[1])[:, :3], abs=2e-5)


@pytest.mark.parametrize("output", ["rgb", "r", "g", "b", "a"])
def test_channels_scale_and_bias(surfaces, wanted, tmp_path, device, output):
    """Scale and bias count for linear values; a colour of one channel is grey."""
    file, pixels = surfaces.image(tmp_path)
    stage = surfaces.square()
    scale, bias = (0.5, 2.0, -1.0, 0.25), (0.125, -0.5, 1.0, 0.75)
    surfaces.diffuse(stage, file, output, scale=scale, bias=bias)
    expected = wanted(surfaces.linear(pixels / 255)) * scale + bias
    expected = expected[:, :3] if output == "rgb" else np.repeat(expected[:, "rgba".index(output), None], 3, axis=1)
    assert surfaces.shown(stage, device) == pytest.approx(expected, abs=5e-5)


def test_a_transform_scales_turns_counter_clockwise_and_moves(surfaces, wanted, tmp_path, device):
    file, pixels = surfaces.image(tmp_path)
    stage = surfaces.square()
    path = surfaces.diffuse(stage, file, wrapT="mirror")
    first = surfaces.transform(stage, surfaces.reader(stage), rotation=30.0, scale=(2.0, 0.5), translation=(0.25, -0.75))
    second = surfaces.transform(stage, first, "/m/y", rotation=-100.0, translation=(1.0, 0.0))
    texels = surfaces.linear(pixels / 255)

    def placed(st, degrees, scale, move):
        s, t = (st * scale).T
        turn = np.exp(1j * np.radians(degrees))
        turned = (s + 1j * t) * turn
        return np.stack([turned.real, turned.imag], axis=-1) + move

    st = placed(surfaces.pixels_st(), 30.0, (2.0, 0.5), (0.25, -0.75))
    surfaces.connect(stage, "st", "float2", first, path)
    assert surfaces.shown(stage, device) == pytest.approx(wanted(texels, "repeat", "mirror", st)[:, :3], abs=1e-4)
    surfaces.connect(stage, "st", "float2", second, path)
    st = placed(st, -100.0, 1.0, (1.0, 0.0))
    assert surfaces.shown(stage, device) == pytest.approx(wanted(texels, "repeat", "mirror", st)[:, :3], abs=1e-4)


@pytest.mark.parametrize("fallback", [None, (0.3, 0.6)])
def test_what_has_no_such_primvar_shows_the_readers_fallback(surfaces, wanted, tmp_path, device, fallback):
    """(0, 0) where none is authored. Beside it a square that has the primvar shows all of the image."""
    file, pixels = surfaces.image(tmp_path)
    stage = surfaces.square()
    path = surfaces.diffuse(stage, file)
    moved = surfaces.transform(stage, surfaces.reader(stage, varname="other", fallback=fallback), translation=(0.2, 0.0))
    surfaces.connect(stage, "st", "float2", moved, path)
    at = np.array([fallback or (0.0, 0.0)]) + (0.2, 0.0)
    expected = wanted(surfaces.linear(pixels / 255), st=at)[:, :3]
    assert surfaces.shown(stage, device) == pytest.approx(np.tile(expected, (surfaces.SIZE**2, 1)), abs=2e-5)
    primvar = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/q")).CreatePrimvar("other", Sdf.ValueTypeNames.TexCoord2fArray, "vertex")
    primvar.Set(stage.GetAttributeAtPath("/q.primvars:st").Get())
    expected = wanted(surfaces.linear(pixels / 255), st=surfaces.pixels_st() + (0.2, 0.0))[:, :3]
    assert surfaces.shown(stage, device) == pytest.approx(expected, abs=1e-4)


def test_emitted_light_is_added_to_the_lit_base_colour(surfaces, surface_twin, wanted, tmp_path, device):
    """Seen square on, by the camera's light; albedo has none of it. What is not bound to the material emits nothing."""
    (base, colours), (light, lights) = (surfaces.image(tmp_path, name, seed) for seed, name in enumerate(("a.png", "b.png")))
    stage = surfaces.square()
    path = surfaces.texture(stage, light, surfaces.reader(stage), "/m/e", wrapS="mirror", wrapT="clamp", scale=(3.0, 3.0, 3.0, 1.0))
    surfaces.connect(stage, "emissiveColor", "color3f", f"{path}.outputs:rgb")
    emitted = 3.0 * wanted(surfaces.linear(lights / 255), "mirror", "clamp")[:, :3]
    frame = surfaces.look(stage, device)
    square_on = np.ones(len(emitted))
    assert frame["color"].reshape(-1, 4)[:, :3] == pytest.approx(surface_twin.camera_light(0.0, square_on) + emitted, abs=1e-4)
    assert (frame["albedo"][..., :3] == 0).all()
    surfaces.diffuse(stage, base)
    frame = surfaces.look(stage, device)
    expected = wanted(surfaces.linear(colours / 255))[:, :3]
    assert frame["albedo"].reshape(-1, 4)[:, :3] == pytest.approx(expected, abs=2e-5)
    colour = surface_twin.camera_light(expected, square_on) + emitted
    assert frame["color"].reshape(-1, 4)[:, :3] == pytest.approx(colour, abs=1e-4)
    full = np.clip(colour, 0, 1)
    encoded = np.where(full <= 0.0031308, 12.92 * full, 1.055 * full ** (1 / 2.4) - 0.055) * 255
    assert np.abs(frame["rgba8"].reshape(-1, 4)[:, :3] - encoded).max() < 0.5 + 0.02
    ball = UsdGeom.Sphere.Define(stage, "/ball")
    ball.CreateRadiusAttr(0.5)
    ball.CreateDisplayColorAttr([(0.5, 0.25, 0.125)])
    frame = surfaces.look(stage, device, ("color", "primId", "normal", "emission"))
    on = frame["primId"] == frame.prim_paths.index("/ball")
    lit = surface_twin.camera_light((0.5, 0.25, 0.125), frame["normal"][on][:, 2].astype(np.float64))
    assert on.any() and not frame["emission"][on].any()
    np.testing.assert_allclose(frame["color"][on][:, :3], lit, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("output", "scale", "bias"), [("a", 1.0, 0.0), ("g", -1.0, 1.0)])
def test_opacity_cuts_below_its_threshold(surfaces, wanted, tmp_path, device, output, scale, bias):
    """Through the holes one sees the wall behind; without a threshold the surface is whole: only its colour is blended."""
    file, pixels = surfaces.image(tmp_path)
    stage = surfaces.square()
    path = surfaces.diffuse(stage, file, sourceColorSpace="raw", scale=(1.0, scale, 1.0, 1.0), bias=(0.0, bias, 0.0, 0.0))
    surfaces.connect(stage, "opacity", "float", f"{path}.outputs:{output}")
    wall = UsdGeom.Cube.Define(stage, "/wall")
    wall.CreateDisplayColorAttr([(1, 0, 1)])
    UsdGeom.XformCommonAPI(wall).SetTranslate((0, 0, -5))
    frame = surfaces.look(stage, device)
    assert {frame.prim_paths[k] for k in np.unique(frame["primId"])} == {"/q"}
    assert not [item.path for item in frame.diagnostics if item.code == "opacity"]
    surfaces.constant(stage, "opacityThreshold", "float", 0.4)
    frame = surfaces.look(stage, device)
    opacity = (wanted(pixels / 255.0)[:, "rgba".index(output)] * scale + bias).reshape(frame["primId"].shape)
    sure, there = np.abs(opacity - 0.4) > 1e-4, opacity >= 0.4
    assert 0.2 < there.mean() < 0.9
    assert (frame["primId"] == np.where(there, frame.prim_paths.index("/q"), frame.prim_paths.index("/wall")))[sure].all()
    assert not [item for item in frame.diagnostics if item.code == "opacity"]
    assert frame["albedo"][sure & ~there] == pytest.approx(np.tile([1, 0, 1, 1], ((sure & ~there).sum(), 1)))


@pytest.mark.parametrize("there", [True, False])
def test_holes_too_are_laid_by_the_readers_fallback(surfaces, tmp_path, device, there):
    """On what lacks the primvar: all of it is there, or none, as the one texel at the fallback is; the one at (0, 0) says the opposite."""
    import PIL.Image

    pixels = np.full((2, 2, 4), 255, np.uint8)
    pixels[1, 0, 3], pixels[0, 1, 3] = (0, 255) if there else (255, 0)
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png")
    stage = surfaces.square()
    reader = surfaces.reader(stage, varname="gone", fallback=(0.75, 0.75))
    path = surfaces.texture(stage, tmp_path / "a.png", reader, wrapS="clamp", wrapT="clamp")
    surfaces.connect(stage, "opacity", "float", f"{path}.outputs:a")
    surfaces.constant(stage, "opacityThreshold", "float", 0.5)
    assert ((surfaces.look(stage, device)["primId"] >= 0) == there).all()


def test_a_sensor_sees_that_a_texture_it_shows_begins_to_emit(surfaces, tmp_path, device):
    stage = surfaces.square()
    path = surfaces.diffuse(stage, surfaces.image(tmp_path)[0])
    scene = hdwarp.Scene(stage, device=device)
    sensor = hdwarp.SensorCamera(scene, cameras="/c", resolution=(surfaces.SIZE, surfaces.SIZE))
    out = sensor.allocate(["color", "albedo", "emission"])
    sensor.update(None, out)
    before = out["color"].numpy()[..., :3].copy()
    assert before.max() > 0.1 and not out["emission"].numpy().any()
    surfaces.connect(stage, "emissiveColor", "color3f", f"{path}.outputs:rgb")
    scene.sync()
    sensor.update(None, out)
    shown = out["albedo"].numpy()[..., :3]
    assert shown.max() > 0.1 and (out["emission"].numpy() == shown).all()
    assert out["color"].numpy()[..., :3] == pytest.approx(before + shown, abs=1e-5)
    stage.RemovePrim(path)
    scene.sync()
    sensor.update(None, out)
    assert not out["albedo"].numpy()[..., :3].any() and not out["emission"].numpy().any()


def test_udim_tiles_their_borders_and_holes(surfaces, wanted, tmp_path, device):
    """A tile shows (u, v) to (u + 1, v + 1), edges included, and beyond the middles of its outer texels goes on as they are; where there is
    none the fallback is shown, as it is: unscaled."""
    tiles = {1001: 4, 1002: 2, 1012: 4, 1031: 1}
    texels = {n: surfaces.linear(surfaces.image(tmp_path, f"t.{n}.png", n, size=size)[1] / 255) for n, size in tiles.items()}
    low, high = -0.5 - 1 / 32, 5.5 - 1 / 32  # multiples of 1/16: whole ones too
    stage = surfaces.square(low, high)
    scale, fallback = (0.5, 0.5, 0.5, 1.0), (0.25, 0.5, 0.75, 1.0)
    surfaces.diffuse(stage, tmp_path / "t.<UDIM>.png", scale=scale, fallback=fallback)
    st = surfaces.pixels_st(low, high)
    expected, tiles_there = np.tile(np.array(fallback[:3]), (len(st), 1)), np.zeros(len(st), int)
    for number, image in texels.items():
        v, u = divmod(number - 1001, 10)
        here = ((st >= (u, v)) & (st <= (u + 1, v + 1))).all(axis=1)
        expected[here] = 0.5 * wanted(image, "clamp", "clamp", st[here] - (u, v))[:, :3]
        tiles_there += here
    found, one = surfaces.shown(stage, device), tiles_there < 2  # on borders of two, rounding says which: see test_textures
    edges = (st == np.floor(st)).any(axis=1) & (tiles_there == 1)
    assert edges.sum() > 100 and (~one).sum() > 10 and (tiles_there == 0).sum() > 1000
    assert found[one] == pytest.approx(expected[one], abs=5e-5)


def test_live_edits_are_what_a_fresh_reading_gives(surfaces, tmp_path, device):
    (a, _), (b, _) = (surfaces.image(tmp_path, name, seed) for seed, name in enumerate(("a.png", "b.png")))
    for number in (1001, 1002, 1011):
        surfaces.image(tmp_path, f"t.{number}.png", number)
    stage = surfaces.square()
    UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/q")).CreatePrimvar("uv", Sdf.ValueTypeNames.TexCoord2fArray, "vertex").Set([(0.5, 0)] * 4)
    path = surfaces.diffuse(stage, a)
    light = surfaces.texture(stage, b, surfaces.reader(stage), "/m/e")
    reader, surface = "/m/r", "/m/s"
    moved = surfaces.transform(stage, surfaces.reader(stage), rotation=20.0)
    scene = hdwarp.Scene(stage, device=device)
    start, pictures = surfaces.look(scene, device), []
    edits = {
        "file": lambda: surfaces.constant(stage, "file", "asset", str(b), path),
        "wrap": lambda: surfaces.constant(stage, "wrapS", "token", "mirror", path),
        "colour space": lambda: surfaces.constant(stage, "sourceColorSpace", "token", "raw", path),
        "bias": lambda: surfaces.constant(stage, "bias", "float4", (0.1, 0.2, 0.3, 0.0), path),
        "varname": lambda: surfaces.constant(stage, "varname", "string", "uv", reader),
        "varname of nothing": lambda: surfaces.constant(stage, "varname", "string", "gone", reader),
        "varname back": lambda: surfaces.constant(stage, "varname", "string", "st", reader),
        "st": lambda: surfaces.connect(stage, "st", "float2", moved, path),
        "rotation": lambda: surfaces.constant(stage, "rotation", "float", 70.0, "/m/x"),
        "emission": lambda: surfaces.connect(stage, "emissiveColor", "color3f", f"{light}.outputs:rgb", surface),
        "holes": lambda: surfaces.connect(stage, "opacity", "float", f"{path}.outputs:a", surface),
        "threshold": lambda: surfaces.constant(stage, "opacityThreshold", "float", 0.5, surface),
        "missing": lambda: surfaces.constant(stage, "file", "asset", "gone.png", path),
        "udim": lambda: surfaces.constant(stage, "file", "asset", str(tmp_path / "t.<UDIM>.png"), path),
        "channel": lambda: surfaces.connect(stage, "diffuseColor", "color3f", f"{path}.outputs:g", surface),
        "no emission": lambda: surfaces.connect(stage, "emissiveColor", "color3f", "/m/gone.outputs:rgb", surface),
        "no texture": lambda: stage.RemovePrim(path),
    }
    for name, edit in edits.items():
        edit()
        scene.sync()
        ours, fresh = surfaces.look(scene, device), surfaces.look(stage, device)
        for aov in ("albedo", "color", "rgba8", "primId"):
            assert np.array_equal(ours[aov], fresh[aov]), (name, aov)
        assert [str(item) for item in scene.diagnostics] == [str(item) for item in hdwarp.Scene(stage, device=device).diagnostics], name
        pictures.append(ours["rgba8"].tobytes())
    assert len({start["rgba8"].tobytes(), *pictures}) >= len(edits) - 3  # "varname back" and the like show what was shown before
