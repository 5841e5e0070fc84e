"""UsdRender's renderingColorSpace: planes, EXR, NPZ and pictures, against Gf.ColorSpace."""

from __future__ import annotations

import numpy as np
import OpenEXR
import pytest
from PIL import Image
from pxr import Gf, Usd, UsdGeom, UsdRender

import hdwarp

WORKING = Gf.ColorSpace("lin_rec709_scene")
PAINT = (0.25, 0.5, 0.125)
AOVS = ["color", "albedo", "direct", "emission", "primvars:displayColor", "rgba8", "distance_to_image_plane"]


def render(space: str | None, device: str, **options):
    stage = Usd.Stage.CreateInMemory()
    cube = UsdGeom.Cube.Define(stage, "/cube")
    cube.AddTranslateOp().Set((0, 0, -8))
    cube.CreateDisplayColorAttr([PAINT])
    UsdGeom.Camera.Define(stage, "/camera").CreateHorizontalApertureAttr(40.0)
    settings = UsdRender.Settings.Define(stage, "/Render/Settings")
    if space is not None:
        settings.CreateRenderingColorSpaceAttr(space)
    return hdwarp.render(stage, "/camera", resolution=(16, 12), aovs=AOVS, device=device, **options)


def told(frame) -> list:
    return [item for item in frame.diagnostics if item.code == "color-space"]


def into(space: str, colour) -> np.ndarray:
    return np.array(Gf.ColorSpace(space).Convert(WORKING, Gf.Vec3f(*map(float, colour))).GetRGB())


@pytest.mark.parametrize("space", ["lin_ap1_scene", "lin_ap0_scene", "lin_rec2020_scene", "lin_p3d65_scene", "lin_ciexyzd65_scene"])
def test_planes_are_turned_to_it(space, device):
    plain, frame = render(None, device), render(space, device)
    assert (str(plain.color_space), str(frame.color_space)) == ("lin_rec709_scene", space)
    for name in ("color", "albedo", "direct"):
        seen = plain[name][6, 8, :3]
        assert seen.max() > 0.2
        assert frame[name][6, 8, :3] == pytest.approx(into(space, seen), abs=1e-6)
    assert frame["albedo"][6, 8, :3] == pytest.approx(into(space, PAINT), abs=1e-6)
    np.testing.assert_array_equal(frame["color"][..., 3], plain["color"][..., 3])
    for name in ("primvars:displayColor", "rgba8", "distance_to_image_plane"):
        np.testing.assert_array_equal(frame[name], plain[name])
    (item,) = told(frame)
    assert item.severity == "note" and item.path == "/Render/Settings" and space in item.message
    assert told(plain) == []


def test_what_was_missed_is_still_known(device):
    frame = render("acescg", device, clear={"color": (0.3, 0.1, 0.7, 0.0)}, samples=4)
    assert str(frame.color_space) == "lin_ap1_scene"
    assert frame.clear["color"][:3] == pytest.approx(into("lin_ap1_scene", (0.3, 0.1, 0.7)), abs=1e-6)
    frame.arrays.pop("distance_to_image_plane")
    assert frame.missed("color")[0].all() and not frame.missed("color")[6, 8]


def test_files_say_so(tmp_path, device):
    """AP1 as the Academy defines it in the header; PNG is of the same linear Rec.709 as ever."""
    plain, frame = render(None, device), render("lin_ap1_scene", device)
    frame.save(tmp_path / "a.exr")
    frame.save(tmp_path / "a.npz")
    with OpenEXR.File(str(tmp_path / "a.exr"), separate_channels=True) as file:
        headers = {part.name(): dict(part.header) for part in file.parts}
        red = next(part for part in file.parts if part.name() == "color").channels["R"].pixels
    assert headers["color"]["chromaticities"] == pytest.approx((0.713, 0.293, 0.165, 0.83, 0.128, 0.044, 0.32168, 0.33767))
    assert headers["albedo"]["colorInteropID"] == "lin_ap1_scene"
    assert headers["albedo"]["hdwarp/meaning"] == "base colour, unlit, lin_ap1_scene"
    assert headers["rgba8"]["colorInteropID"] == "lin_rec709_scene" and headers["distance_to_image_plane"]["colorInteropID"] == "data"
    np.testing.assert_array_equal(red, frame["color"][..., 0].astype(np.float16))
    archive = np.load(tmp_path / "a.npz")
    assert str(archive["color_space"]) == "lin_ap1_scene"
    np.testing.assert_array_equal(archive["color"], frame["color"])
    for name, one in (("plain", plain), ("turned", frame)):
        one.save(tmp_path / (name + ".{aov}.png"))
    codes = [np.asarray(Image.open(tmp_path / f"{name}.color.png")).astype(int) for name in ("plain", "turned")]
    assert np.abs(codes[0] - codes[1]).max() <= 1 < codes[0].max()


@pytest.mark.parametrize("space", ["srgb_rec709_scene", "lin_nowhere", "g22_ap1_scene"])
def test_what_is_no_linear_space_is_told(space, device):
    frame = render(space, device)
    assert str(frame.color_space) == "lin_rec709_scene"
    (item,) = told(frame)
    assert item.severity == "warning" and space in item.message and "lin_ap1_scene" in item.message
    np.testing.assert_array_equal(frame["color"], render(None, device)["color"])


@pytest.mark.parametrize("space", ["", "raw", "lin_rec709_scene", "lin_rec709"])
def test_nothing_to_turn(space, device):
    frame = render(space, device)
    assert str(frame.color_space) == "lin_rec709_scene" and told(frame) == []
