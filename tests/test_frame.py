"""A frame explains itself: planes by AOV and var name, paths, points, files, a layer."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, UsdRender

import hdwarp
from hdwarp import author
from hdwarp.errors import ArgumentError, NotSupported


@pytest.fixture
def stage():
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    ball = UsdGeom.Sphere.Define(stage, "/World/ball")
    ball.AddTranslateOp().Set(Gf.Vec3d(0, 0, -5))
    author.add_camera(stage, "/World/camera", fov=np.radians(60), resolution=(40, 30))
    return stage


def test_planes_by_name_and_what_is_missing(stage):
    frame = hdwarp.render(stage, "/World/camera", aovs=["color", "primId"], device="cpu")
    assert set(frame.aovs) == {"color", "primId"}
    assert "primId" in frame and "normal" not in frame
    with pytest.raises(KeyError, match="color, primId"):
        frame["normal"]
    assert (frame.width, frame.height) == (40, 30)
    assert frame.camera == "/World/camera"


def test_paths_of_pixels(stage):
    frame = hdwarp.render(stage, "/World/camera", aovs=["primId", "instanceId"], device="cpu")
    assert frame.prim_path(15, 20) == "/World/ball"
    assert frame.prim_path(0, 0) is None
    assert frame.instance_ids(15, 20) == ()
    with pytest.raises(ArgumentError, match="outside the 40x30"):
        frame.prim_path(30, 0)
    without = hdwarp.render(stage, "/World/camera", device="cpu")
    with pytest.raises(ArgumentError, match="primId"):
        without.prim_path(0, 0)


@pytest.mark.parametrize("plane", ["distance_to_image_plane", "distance_to_camera", "position"])
def test_points_lie_on_the_sphere(stage, plane):
    frame = hdwarp.render(stage, "/World/camera", aovs=[plane], device="cpu")
    points = frame.points()
    hit = np.isfinite(points).all(axis=-1)
    assert hit.sum() > 20 and np.isposinf(points[~hit]).all()
    np.testing.assert_allclose(np.linalg.norm(points[hit] - (0, 0, -5), axis=-1), 1.0, atol=2e-6)


def test_points_of_a_data_window_and_an_orthographic_camera():
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.Sphere.Define(stage, "/ball").AddTranslateOp().Set(Gf.Vec3d(0, 0, -5))
    author.add_camera(stage, "/camera", lens="orthographic", horizontal_aperture=4.0, vertical_aperture=3.0)
    author.add_product(stage, "/Render/p", "/camera", (40, 30), data_window=(0.25, 0.25, 0.8, 1.1))
    frame = hdwarp.render(stage, "/Render/p", aovs=["distance_to_image_plane"], device="cpu")
    assert frame.K is None
    assert frame.data_window != (0, 0, 40, 30)
    points = frame.points()
    hit = np.isfinite(points).all(axis=-1)
    np.testing.assert_allclose(np.linalg.norm(points[hit] - (0, 0, -5), axis=-1), 1.0, atol=2e-6)


def test_a_data_window_is_a_crop_of_the_full_image(stage):
    author.add_product(stage, "/Render/full", "/World/camera", (41, 31), name="full")
    author.add_product(stage, "/Render/crop", "/World/camera", (41, 31), data_window=(0.3, 0.2, 0.75, 0.9), name="crop")
    aovs = ["color", "distance_to_image_plane", "normal", "primId", "barycentric"]
    full, crop = (hdwarp.render(stage, f"/Render/{name}", aovs=aovs, device="cpu") for name in ("full", "crop"))
    x0, y0, width, height = crop.data_window
    for name in aovs:
        assert np.array_equal(crop[name], full[name][y0 : y0 + height, x0 : x0 + width]), name
    assert crop.K[0, 2] == pytest.approx(full.K[0, 2] - x0) and crop.K[1, 2] == pytest.approx(full.K[1, 2] - y0)


def test_vars_are_found_by_their_prims_name():
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Sphere.Define(stage, "/ball").AddTranslateOp().Set(Gf.Vec3d(0, 0, -5))
    author.add_camera(stage, "/camera")
    product = author.add_product(stage, "/Render/p", "/camera", (16, 12))
    for name, source in (("myDepth", "DistanceToImagePlaneSD"), ("myNormal", "NormalSD")):
        UsdRender.Var.Define(stage, f"/Render/{name}").CreateSourceNameAttr(source)
        UsdRender.Product(product).GetOrderedVarsRel().AddTarget(f"/Render/{name}")
    frame = hdwarp.render(stage, "/Render/p", device="cpu")
    assert frame["myDepth"] is frame.aovs["distance_to_image_plane"]
    assert frame["myNormal"].shape == (12, 16, 4)  # the sensors' convention: a fourth channel of zeros
    assert np.array_equal(frame["myNormal"][..., :3], frame.aovs["normal"])


def test_files_and_a_layer(stage, tmp_path):
    frame = hdwarp.render(stage, "/World/camera", aovs=["color", "primId"], device="cpu")
    frame.save(tmp_path / "a.npz")
    frame.save(tmp_path / "a.exr")
    with np.load(tmp_path / "a.npz") as planes:
        assert np.array_equal(planes["primId"], frame["primId"])
    with pytest.raises(ArgumentError, match="aov"):
        frame.save(tmp_path / "a.png")
    frame.save(tmp_path / "a.{aov}.png")
    assert (tmp_path / "a.color.png").exists() and (tmp_path / "a.primId.png").exists()
    stage.Export(str(tmp_path / "source.usda"))
    frame = hdwarp.render(tmp_path / "source.usda", "/World/camera", device="cpu")
    layer = Usd.Stage.Open(str(frame.to_layer(tmp_path / "results.usda")))
    assert layer.GetPrimAtPath("/World/ball")


def test_clear_values(stage):
    frame = hdwarp.render(
        stage,
        "/World/camera",
        aovs=["distance_to_image_plane", "primId", "color"],
        clear={"distance_to_image_plane": 0.0, "primId": 77, "color": (0.1, 0.2, 0.3, 1.0)},
        device="cpu",
    )
    assert frame["distance_to_image_plane"][0, 0] == 0.0
    assert frame["primId"][0, 0] == 77
    np.testing.assert_allclose(frame["color"][0, 0], (0.1, 0.2, 0.3, 1.0))
    with pytest.raises(ArgumentError, match="normal"):
        hdwarp.render(stage, "/World/camera", clear={"normal": 0}, device="cpu")


def test_clear_values_make_no_hits(stage):
    """0 for "no return" is robotics' habit: a miss stays a miss for points() and prim_path()."""
    for aovs, cleared in ((["distance_to_image_plane"], 0), (["position"], 0), (["distance_to_camera", "primId"], 7)):
        plain = hdwarp.render(stage, "/World/camera", aovs=aovs, device="cpu").points()
        frame = hdwarp.render(stage, "/World/camera", aovs=aovs, clear=dict.fromkeys(aovs, cleared), device="cpu")
        np.testing.assert_array_equal(frame.points(), plain)
    frame = hdwarp.render(stage, "/World/camera", aovs=["primId", "instanceId"], clear={"primId": 99}, device="cpu")
    assert frame.prim_path(0, 0) is None and frame.instance_ids(0, 0) == ()
    assert frame.prim_path(15, 20) == "/World/ball"


@pytest.mark.parametrize("far", [1e5, 1e6, 1e8])
def test_the_default_view_frames_what_is_far_from_the_origin(far):
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Cube.Define(stage, "/cube").AddTranslateOp().Set(Gf.Vec3d(far, -far, far))
    frame = hdwarp.render(stage, resolution=(64, 48), aovs=["primId"], device="cpu")
    assert (frame["primId"] == 0).mean() > 0.1


def test_a_camera_by_name_takes_the_size_of_its_product_but_neither_window_nor_vars(stage):
    author.add_product(stage, "/Render/crop", "/World/camera", (40, 30), aovs=["primId"], data_window=(0.25, 0.25, 0.75, 0.75), name="crop")
    for prim in stage.Traverse():
        if prim.GetTypeName() == "RenderProduct" and prim.GetName() != "crop":
            prim.SetActive(False)
    frame = hdwarp.render(stage, "/World/camera", device="cpu")
    assert (frame.width, frame.height, list(frame.aovs)) == (40, 30, ["color"])
    cropped = hdwarp.render(stage, "/Render/crop", device="cpu")
    assert (cropped.width, cropped.height, list(cropped.aovs)) == (20, 15, ["primId"])


def test_adjusted_pixels_tell_their_aspect():
    """(g) 12: the default camera at 1920x1080 under adjustPixelAspectRatio has pixels 0.77086793 as wide as high."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Camera.Define(stage, "/camera")
    author.add_product(stage, "/Render/p", "/camera", (192, 108), policy="adjustPixelAspectRatio")
    frame = hdwarp.render(stage, "/Render/p", device="cpu")
    assert frame.pixel_aspect_ratio == pytest.approx(0.77086793, rel=1e-6)
    assert frame.pixel_aspect_ratio == pytest.approx(frame.K[1, 1] / frame.K[0, 0], rel=1e-6)


def test_the_default_purpose_is_always_drawn(stage):
    """As in usdrecord: asking for proxies adds them."""
    frame = hdwarp.render(stage, "/World/camera", aovs=["primId"], purposes=["proxy"], device="cpu")
    assert (frame["primId"] == 0).any()


def test_what_later_versions_do_is_refused_by_name(stage):
    for options, word in (
        ({"truth": True}, "truth"),
        ({"complexity": "high"}, "complexity"),
        ({"aovs": ["semantic_segmentation"]}, "semantic_segmentation"),
        ({"settings": "x"}, "x"),
    ):
        with pytest.raises(hdwarp.Error, match=word):
            hdwarp.render(stage, "/World/camera", device="cpu", **options)
    frame = hdwarp.render(stage, "/World/camera", device="cpu")
    with pytest.raises(NotSupported, match="objects"):
        _ = frame.objects
    with pytest.raises(hdwarp.Error, match="integrator='path'"):
        hdwarp.RenderSettings(integrator="path")
