"""Cameras written by hdwarp.author, read back by USD's own Gf.Camera and by stage.cameras."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pxr import Gf, Sdf, Usd, UsdGeom, UsdRender
from scipy.spatial.transform import Rotation

from hdwarp import author
from hdwarp.author.products import DATA_TYPES
from hdwarp.errors import ArgumentError, Diagnostics, NotSupported
from hdwarp.stage.cameras import read_camera
from hdwarp.stage.render_spec import product_for_camera, read_product, read_render_settings
from hdwarp.views import orthographic, pinhole
from hdwarp.views.conform import image_spec


def new_stage(metres_per_unit=1.0, up="Z"):
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, metres_per_unit)
    UsdGeom.SetStageUpAxis(stage, up)
    return stage


@pytest.fixture(params=[1.0, 0.01], ids=["metres", "centimetres"])
def stage(request):
    return new_stage(request.param)


def read(camera):
    diagnostics = Diagnostics()
    matrix = np.array(UsdGeom.XformCache(Usd.TimeCode.EarliestTime()).GetLocalToWorldTransform(camera.GetPrim())).T
    unit = UsdGeom.GetStageMetersPerUnit(camera.GetPrim().GetStage())
    record = read_camera(camera.GetPrim(), Usd.TimeCode.EarliestTime(), matrix, unit, diagnostics)
    diagnostics.raise_errors()
    return record


def image_for(camera, resolution=None):
    """The image of the camera's first product, at a resolution."""
    product = product_for_camera(camera.GetPrim().GetStage(), str(camera.GetPath()))
    if product is None:
        return image_spec(resolution)
    return image_spec(resolution or product.resolution, product.pixel_aspect_ratio, product.aspect_ratio_conform_policy)


def vertical_fov(camera):
    return math.radians(camera.GetCamera(Usd.TimeCode.Default()).GetFieldOfView(Gf.Camera.FOVVertical))


# --- add_camera


def test_nothing_given_is_45_degrees(stage):
    camera = author.add_camera(stage, "/World/Camera")
    assert vertical_fov(camera) == pytest.approx(math.radians(45.0), abs=1e-6)
    assert stage.GetPrimAtPath("/World").GetTypeName() == "Xform"
    assert read(camera).clipping_range == pytest.approx((0.01, 1e6))
    assert not stage.GetPrimAtPath("/Render")


@pytest.mark.parametrize("resolution", [(640, 480), (100, 300), (1920, 1080), (500, 100)])
@pytest.mark.parametrize("with_product", [False, True])
def test_fov_is_vertical_at_any_aspect(stage, resolution, with_product):
    camera = author.add_camera(stage, "/Camera", fov=0.8, resolution=(320, 240) if with_product else None)
    K = pinhole.intrinsics(read(camera), image_for(camera, resolution))
    assert K[1, 1] == pytest.approx(resolution[1] / 2.0 / math.tan(0.4), rel=1e-6)
    assert K[0, 0] == pytest.approx(K[1, 1], rel=1e-9)
    assert vertical_fov(camera) == pytest.approx(0.8, abs=1e-6)  # to every other reader of the stage as well


def test_numbers_of_usds_own_setter(stage):
    """SetPerspectiveFromAspectRatioAndFieldOfView(16/9, 60 degrees, vertical): hFOV 91.492844."""
    camera = author.add_camera(stage, "/Camera", fov=math.radians(60.0), resolution=(1600, 900))
    gf = camera.GetCamera(Usd.TimeCode.Default())
    assert gf.GetFieldOfView(Gf.Camera.FOVHorizontal) == pytest.approx(91.492844, abs=1e-4)
    assert gf.aspectRatio == pytest.approx(16.0 / 9.0, rel=1e-6)


def test_values_are_tenths_of_scene_units(stage):
    unit = UsdGeom.GetStageMetersPerUnit(stage)
    camera = author.add_camera(
        stage,
        "/Camera",
        focal_length=0.024,
        horizontal_aperture=0.036,
        vertical_aperture=0.024,
        horizontal_aperture_offset=0.001,
        vertical_aperture_offset=-0.002,
        clipping_range=(0.1, 50.0),
    )
    found = [
        attribute.Get() for attribute in (camera.GetFocalLengthAttr(), camera.GetHorizontalApertureAttr(), camera.GetVerticalApertureAttr())
    ]
    assert found == pytest.approx([0.24 / unit, 0.36 / unit, 0.24 / unit], rel=1e-6)
    assert tuple(camera.GetClippingRangeAttr().Get()) == pytest.approx((0.1 / unit, 50.0 / unit), rel=1e-6)
    record = read(camera)
    assert record.focal_length == pytest.approx(0.024, rel=1e-6)
    assert record.aperture == pytest.approx((0.036, 0.024), rel=1e-6)
    assert record.aperture_offset == pytest.approx((0.001, -0.002), rel=1e-6)


@pytest.mark.parametrize(("resolution", "fx"), [((320, 240), 366.499642), ((1280, 720), 1465.998569), ((128, 128), 146.599857)])
@pytest.mark.parametrize("with_product", [False, True])
def test_a_24_mm_lens_has_square_pixels_whatever_the_image(stage, resolution, fx, with_product):
    """20.955 mm wide, the height follows."""
    camera = author.add_camera(stage, "/Camera", focal_length=0.024, resolution=(100, 100) if with_product else None)
    K = pinhole.intrinsics(read(camera), image_for(camera, resolution))
    assert (K[0, 0], K[1, 1]) == pytest.approx((fx, fx), rel=1e-6)


def test_orthographic(stage):
    camera = author.add_camera(stage, "/Camera", lens="orthographic", horizontal_aperture=4.0)
    coefficients = orthographic.ray_coefficients(read(camera), image_spec((8, 4)))
    np.testing.assert_allclose(coefficients.origin, (-1.75, 0.75, 0.0), atol=1e-6)
    assert camera.GetProjectionAttr().Get() == "orthographic"


def test_transform_is_a_mount_in_metres(stage):
    """A quarter turn about Z and one metre up, in a parent two metres away: as matrix and as 7 numbers."""
    unit = UsdGeom.GetStageMetersPerUnit(stage)
    body = UsdGeom.Xform.Define(stage, "/Robot/hand")
    body.AddTranslateOp().Set((2.0 / unit, 0.0, 0.0))
    matrix = np.array([[0.0, -1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    half = math.sqrt(0.5)
    for name, transform in (("a", matrix), ("b", (0.0, 0.0, 1.0, 0.0, 0.0, half, half))):
        pose = read(author.add_camera(stage, f"/Robot/hand/{name}", transform=transform)).world_from_camera
        np.testing.assert_allclose(pose[:3, 3], (2.0, 0.0, 1.0), atol=1e-9)
        np.testing.assert_allclose(pose[:3, :3], matrix[:3, :3], atol=1e-9)


def test_attributes_come_back(stage):
    values = {"user:gain": 2.5, "user:channel": 3, "name": "left", "user:offset": (1.0, 2.0, 3.0), "user:curve": np.arange(6.0), "on": True}
    found = read(author.add_camera(stage, "/Camera", attributes={**values, "exposure": 1.0, "user:turn": np.eye(3)})).attributes
    assert set(found) == {*values, "user:turn"}  # exposure is the camera's own
    for name, value in values.items():
        np.testing.assert_array_equal(found[name], value)
    assert UsdGeom.Camera.Get(stage, "/Camera").GetExposureAttr().Get() == 1.0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"fov": 0.0}, "fov"),
        ({"fov": math.pi}, "fov"),
        ({"fov": math.nan}, "fov"),
        ({"fov": 1.0, "focal_length": 0.05}, "not both"),
        ({"fov": 1.0, "horizontal_aperture": 0.02}, "horizontal_aperture"),
        ({"horizontal_aperture": 0.02}, "focal_length"),
        ({"focal_length": -1.0}, "focal_length"),
        ({"focal_length": "wide"}, "focal_length"),
        ({"focal_length": 0.05, "vertical_aperture": -0.1}, "vertical_aperture"),
        ({"clipping_range": (1.0, 1.0)}, "clipping_range"),
        ({"clipping_range": (-0.1, 1.0)}, "clipping_range"),
        ({"clipping_range": 3.0}, "clipping_range"),
        ({"resolution": (0, 480)}, "resolution"),
        ({"resolution": 640}, "resolution"),
        ({"resolution": (10**6, 480)}, "resolution"),
        ({"transform": np.eye(3)}, "transform"),
        ({"transform": np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 2, 3, 1.0]])}, "transpose"),
        ({"transform": Gf.Matrix4d(1.0)}, "Gf.Matrix"),
        ({"transform": np.zeros((4, 4))}, "last row"),
        ({"transform": np.diag([1.0, 1.0, 0.0, 1.0])}, "singular"),
        ({"lens": "orthographic"}, "horizontal_aperture"),
        ({"lens": "orthographic", "vertical_aperture": 1.0, "fov": 1.0}, "fov"),
        ({"attributes": {"no spaces": 1.0}}, "no spaces"),
        ({"attributes": {"user:thing": object()}}, "user:thing"),
        ({"attributes": {"exposure": "bright"}}, "exposure"),
    ],
)
def test_values_that_do_not_go(arguments, match):
    with pytest.raises(ArgumentError, match=match):
        author.add_camera(new_stage(), "/Camera", **arguments)


def test_other_lenses_and_distortion_are_named():
    stage = new_stage()
    with pytest.raises(NotSupported, match="lens='opencvFisheye'"):
        author.add_camera(stage, "/Camera", lens="opencvFisheye")
    camera = author.add_camera(stage, "/Camera")
    with pytest.raises(NotImplementedError, match="opencvPinhole"):
        author.set_intrinsics(camera, np.diag([10.0, 10.0, 1.0]), 10, 10, distortion=("opencvPinhole", [0.1, 0.0, 0.0, 0.0]))
    with pytest.raises(NotSupported, match="skew"):
        author.set_intrinsics(camera, [[10.0, 1.0, 5.0], [0.0, 10.0, 5.0], [0.0, 0.0, 1.0]], 10, 10)


@pytest.mark.parametrize("path", ["Camera", "/", "/World/2cam", "/World.attribute", ""])
def test_paths_that_are_none(path):
    with pytest.raises(ArgumentError, match="prim path"):
        author.add_camera(new_stage(), path)


def test_other_prims_are_not_turned_into_cameras():
    stage = new_stage()
    UsdGeom.Cube.Define(stage, "/Cube")
    with pytest.raises(ArgumentError, match="Cube already"):
        author.add_camera(stage, "/Cube")


# --- set_intrinsics


def test_intrinsics_by_hand():
    """K 229.8, 320 x 240, f 24: apertures 33.420366 and 25.065274."""
    camera = author.add_camera(stage := new_stage(0.01), "/Camera")
    author.set_intrinsics(camera, [[229.8, 0.0, 160.0], [0.0, 229.8, 120.0], [0.0, 0.0, 1.0]], 320, 240, focal_length=0.024)
    assert camera.GetFocalLengthAttr().Get() == pytest.approx(24.0)
    assert camera.GetHorizontalApertureAttr().Get() == pytest.approx(33.420366, rel=1e-7)
    assert camera.GetVerticalApertureAttr().Get() == pytest.approx(25.065274, rel=1e-7)
    assert read_product(stage, "/Render/Camera").resolution == (320, 240)
    # A focal length of a pixel's width, p = 1 / W: f 0.718125, apertures 1 and 0.75.
    author.set_intrinsics(camera, [[229.8, 0.0, 160.0], [0.0, 229.8, 120.0], [0.0, 0.0, 1.0]], 320, 240, focal_length=0.000718125)
    assert camera.GetHorizontalApertureAttr().Get() == pytest.approx(1.0, rel=1e-6)
    assert camera.GetVerticalApertureAttr().Get() == pytest.approx(0.75, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(50.0, 3000.0),
    st.floats(0.5, 2.0),
    st.floats(0.2, 0.8),
    st.floats(0.2, 0.8),
    st.integers(16, 4000),
    st.integers(16, 4000),
    st.booleans(),
)
def test_intrinsics_come_back(fx, ratio, cx, cy, width, height, with_product):
    stage = new_stage(0.01)
    camera = author.add_camera(stage, "/World/Camera", fov=1.0, resolution=(width, height) if with_product else None)
    K = np.array([[fx, 0.0, cx * width], [0.0, fx * ratio, cy * height], [0.0, 0.0, 1.0]])
    author.set_intrinsics(camera, K, width, height)
    image = image_for(camera)
    assert (image.width, image.height) == (width, height)
    # Pixels within 1e-6 of square are written as square; float32 apertures add a little.
    np.testing.assert_allclose(pinhole.intrinsics(read(camera), image), K, rtol=2e-6)


def test_setting_square_pixels_again_undoes_the_policy():
    stage = new_stage()
    camera = author.add_camera(stage, "/Camera")
    for fy in (12.0, 10.0):
        author.set_intrinsics(camera, [[10.0, 0.0, 5.0], [0.0, fy, 5.0], [0.0, 0.0, 1.0]], 10, 10)
        assert pinhole.intrinsics(read(camera), image_for(camera))[1, 1] == pytest.approx(fy, rel=1e-6)
    assert read_product(stage, "/Render/Camera").aspect_ratio_conform_policy == "expandAperture"


def test_intrinsics_hide_time_samples():
    stage = new_stage()
    camera = author.add_camera(stage, "/Camera")
    camera.GetFocalLengthAttr().Set(7.0, 1.0)
    author.set_intrinsics(camera, np.array([[10.0, 0.0, 5.0], [0.0, 10.0, 5.0], [0.0, 0.0, 1.0]]), 10, 10)
    assert pinhole.intrinsics(read(camera), image_spec((10, 10)))[0, 0] == pytest.approx(10.0, rel=1e-6)


@pytest.mark.parametrize(
    ("K", "size"),
    [
        (np.eye(2), (10, 10)),
        (np.full((3, 3), np.nan), (10, 10)),
        (np.diag([-1.0, 1.0, 1.0]), (10, 10)),
        (np.diag([1.0, 1.0, 2.0]), (10, 10)),
        (np.diag([10.0, 10.0, 1.0]), (0, 10)),
    ],
)
def test_matrices_that_are_no_K(K, size):
    stage = new_stage()
    camera = author.add_camera(stage, "/Camera")
    with pytest.raises(ArgumentError):
        author.set_intrinsics(camera, K, *size)


# --- poses

CORNER = (0.17591988, 0.42470818, 0.82047324, 0.33985113)  # xyzw: at (2.5, 2.5, 2.5), looking at the origin, Z up


def orientation(camera):
    return Rotation.from_matrix(read(camera).world_from_camera[:3, :3]).as_quat()


def same_turn(found, expected, atol=1e-7):
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_allclose(found * np.sign(found @ expected), expected, atol=atol)


@pytest.mark.parametrize(
    ("eye", "up", "expected"),
    [
        ((2.5, 2.5, 2.5), "Z", CORNER),
        ((4.0, 0.0, 0.0), "Z", (0.5, 0.5, 0.5, 0.5)),
        ((0.0, -4.0, 0.0), "Z", (0.70710678, 0.0, 0.0, 0.70710678)),
        ((0.0, 0.0, 4.0), "Y", (0.0, 0.0, 0.0, 1.0)),
    ],
)
def test_look_at(stage, eye, up, expected):
    UsdGeom.SetStageUpAxis(stage, up)
    camera = author.add_camera(stage, "/World/Camera")
    author.look_at(camera, eye, (0.0, 0.0, 0.0))
    same_turn(orientation(camera), expected)
    np.testing.assert_allclose(read(camera).world_from_camera[:3, 3], eye)


def test_look_at_matrix():
    stage = new_stage()
    camera = author.add_camera(stage, "/Camera")
    author.look_at(camera, (2.5, 2.5, 2.5), (0.0, 0.0, 0.0))
    expected = [[-0.70710678, -0.40824829, 0.57735027], [0.70710678, -0.40824829, 0.57735027], [0.0, 0.81649658, 0.57735027]]
    np.testing.assert_allclose(read(camera).world_from_camera[:3, :3], expected, atol=1e-8)


@pytest.mark.parametrize(
    ("up_axis", "eye", "picture_up"),
    [("Z", (0, 0, 5), (0, 1, 0)), ("Z", (0, 0, -5), (0, -1, 0)), ("Y", (0, 5, 0), (0, 0, -1)), ("Y", (0, -5, 0), (0, 0, 1))],
)
def test_look_straight_down_and_up(up_axis, eye, picture_up):
    stage = new_stage(up=up_axis)
    camera = author.add_camera(stage, "/Camera")
    author.look_at(camera, eye, (0.0, 0.0, 0.0))
    pose = read(camera).world_from_camera
    np.testing.assert_allclose(-pose[:3, 2], -np.array(eye) / 5.0, atol=1e-12)
    np.testing.assert_allclose(pose[:3, 1], picture_up, atol=1e-12)


def test_look_at_with_another_up():
    stage = new_stage()
    camera = author.add_camera(stage, "/Camera")
    author.look_at(camera, (0.0, 0.0, 5.0), (0.0, 0.0, 0.0), up=(1.0, 0.0, 0.0))
    np.testing.assert_allclose(read(camera).world_from_camera[:3, 1], (1.0, 0.0, 0.0), atol=1e-12)
    author.look_at(camera, (0.0, 5.0, 0.0), (0.0, 0.0, 0.0), up=(0.0, 1.0, 0.0))  # straight along it
    assert np.isfinite(read(camera).world_from_camera).all()


@pytest.mark.parametrize(("eye", "target"), [((1, 2, 3), (1, 2, 3)), ((1, 2), (0, 0, 0)), ((math.nan, 0, 0), (0, 0, 0))])
def test_views_that_are_none(eye, target):
    stage = new_stage()
    camera = author.add_camera(stage, "/Camera")
    with pytest.raises(ArgumentError):
        author.look_at(camera, eye, target)


@pytest.mark.parametrize(
    ("wxyz", "convention"),
    [
        ((0.33985113, 0.17591988, 0.42470818, 0.82047324), "opengl"),
        ((-0.17591989, 0.33985114, 0.82047325, -0.42470819), "ros"),
        ((-0.3647052, -0.27984815, -0.1159169, 0.88047623), "world"),
    ],
)
def test_world_poses(stage, wxyz, convention):
    camera = author.add_camera(stage, "/World/Camera")
    author.set_world_pose(camera, (2.5, 2.5, 2.5), wxyz, convention)
    same_turn(orientation(camera), CORNER)
    np.testing.assert_allclose(read(camera).world_from_camera[:3, 3], (2.5, 2.5, 2.5))


def test_ros_is_the_convention_if_none_is_said():
    stage = new_stage()
    camera = author.add_camera(stage, "/Camera")
    author.set_world_pose(camera, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    np.testing.assert_allclose(-read(camera).world_from_camera[:3, 2], (0.0, 0.0, 1.0), atol=1e-12)  # forward is +Z


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), min_size=11, max_size=11))
def test_parents_are_undone(values):
    """Under turned, scaled, mirrored parents far away, the camera stands where it was told to, unscaled."""
    if np.linalg.norm(values[:4]) < 0.1:
        return
    stage = new_stage(0.01)
    parent = UsdGeom.Xform.Define(stage, "/World")
    parent.AddTranslateOp().Set(Gf.Vec3d(*(1e6 * value for value in values[4:7])))
    parent.AddRotateXYZOp().Set((40.0, 100.0, -30.0))
    parent.AddScaleOp().Set((-2.0, 0.5, 3.0))
    camera = author.add_camera(stage, "/World/Arm/Camera")
    UsdGeom.Xform(stage.GetPrimAtPath("/World/Arm")).AddRotateZOp().Set(33.0)
    author.set_world_pose(camera, values[7:10], values[:4], "opengl")
    record = read(camera)
    np.testing.assert_array_equal(record.axes, np.eye(3))
    np.testing.assert_allclose(record.world_from_camera[:3, 3], values[7:10], atol=1e-9)
    same_turn(orientation(camera), np.array([*values[1:4], values[0]]) / np.linalg.norm(values[:4]), atol=1e-9)


def test_poses_replace_what_was_authored_and_keep_a_reset_stack():
    stage = new_stage()
    UsdGeom.Xform.Define(stage, "/World").AddTranslateOp().Set((5.0, 0.0, 0.0))
    camera = author.add_camera(stage, "/World/Camera")
    camera.AddTranslateOp().Set((1.0, 1.0, 1.0))
    camera.AddRotateXYZOp().Set((10.0, 20.0, 30.0))
    camera.SetResetXformStack(True)
    author.set_world_pose(camera, (1.0, 2.0, 3.0), (1.0, 0.0, 0.0, 0.0), "opengl")
    assert camera.GetResetXformStack()
    np.testing.assert_allclose(read(camera).world_from_camera[:3, 3], (1.0, 2.0, 3.0))


def test_poses_at_times():
    stage = new_stage()
    parent = UsdGeom.Xform.Define(stage, "/World").AddTranslateOp()
    parent.Set((10.0, 0.0, 0.0), 1.0)
    parent.Set((20.0, 0.0, 0.0), 2.0)
    camera = author.add_camera(stage, "/World/Camera")
    for time in (1.0, 2.0):
        author.set_world_pose(camera, (time, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), time=time)
    for time in (1.0, 2.0):
        position = UsdGeom.XformCache(time).GetLocalToWorldTransform(camera.GetPrim()).ExtractTranslation()
        assert position[0] == pytest.approx(time)
    # Without a time: a default value, right where the parents start, and the samples gone.
    author.set_world_pose(camera, (7.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    assert read(camera).world_from_camera[0, 3] == pytest.approx(7.0)


def test_a_parent_without_inverse_is_said():
    stage = new_stage()
    UsdGeom.Xform.Define(stage, "/World").AddScaleOp().Set((0.0, 1.0, 1.0))
    camera = author.add_camera(stage, "/World/Camera")
    with pytest.raises(ArgumentError, match="/World/Camera.*singular"):
        author.look_at(camera, (1.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@pytest.mark.parametrize("camera", [None, "/Camera", UsdGeom.Camera()])
def test_what_is_no_camera(camera):
    with pytest.raises(ArgumentError, match="UsdGeom.Camera"):
        author.look_at(camera, (1.0, 0.0, 0.0), (0.0, 0.0, 0.0))


# --- products


def test_a_resolution_is_a_product(stage):
    camera = author.add_camera(stage, "/World/wrist", resolution=(320, 240))
    product = product_for_camera(stage, "/World/wrist")
    assert (product.path, product.resolution) == ("/Render/wrist", (320, 240))
    spec = read_render_settings(stage)
    assert (spec.path, [item.path for item in spec.products]) == ("/Render/Settings", ["/Render/wrist"])
    assert stage.GetMetadata("renderSettingsPrimPath") == "/Render/Settings"
    assert stage.GetPrimAtPath("/Render").GetTypeName() == "Scope"
    assert camera.GetPath() == "/World/wrist"


def test_cameras_of_one_name_have_products_of_their_own():
    stage = new_stage()
    for path in ("/A/cam", "/B/cam", "/C/cam"):
        author.add_camera(stage, path, resolution=(8, 6))
    found = [product_for_camera(stage, path).path for path in ("/A/cam", "/B/cam", "/C/cam")]
    assert found == ["/Render/cam", "/Render/B_cam", "/Render/C_cam"]
    assert [product.path for product in read_render_settings(stage).products] == found


def test_vars_of_products():
    stage = new_stage()
    camera = author.add_camera(stage, "/Camera")
    author.add_product(stage, "/Render/a", camera, (64, 48), aovs=("color", "distance_to_image_plane", "primId", "primvars:st"))
    author.add_product(
        stage, "/Render/b", "/Camera", (64, 48), aovs={"color": "albedo", "z": "cameraDepth"}, name="b.exr", policy="cropAperture"
    )
    a, b = read_render_settings(stage).products
    assert [(var.name, var.source_name, var.source_type, var.data_type) for var in a.render_vars] == [
        ("color", "color", "raw", "color4f"),
        ("distance_to_image_plane", "distance_to_image_plane", "raw", "float"),
        ("primId", "primId", "raw", "int"),
        ("primvars_st", "st", "primvar", "float3"),
    ]
    assert [(var.name, var.source_name) for var in b.render_vars] == [("color", "albedo"), ("z", "cameraDepth")]
    assert (b.name, b.aspect_ratio_conform_policy) == ("b.exr", "cropAperture")


def test_every_aov_has_a_type_usd_knows():
    stage = new_stage()
    author.add_camera(stage, "/Camera")
    author.add_product(stage, "/Render/P", "/Camera", (4, 4), aovs=list(DATA_TYPES))
    for var in read_product(stage, "/Render/P").render_vars:
        assert Sdf.ValueTypeNames.Find(var.data_type)


def test_settings_that_are_there_are_joined():
    stage = new_stage()
    UsdRender.Settings.Define(stage, "/Mine")
    author.add_camera(stage, "/Camera", resolution=(4, 4))
    assert [product.path for product in read_render_settings(stage, path="/Mine").products] == ["/Render/Camera"]
    assert not stage.GetPrimAtPath("/Render/Settings")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"camera": "/Nobody"}, "add_camera"),
        ({"resolution": (0, 4)}, "resolution"),
        ({"aovs": ["colour"]}, "did you mean 'color'"),
        ({"aovs": {"bad name": "color"}}, "bad name"),
        ({"policy": "stretch"}, "expandAperture"),
        ({"path": "Render/P"}, "prim path"),
    ],
)
def test_products_that_do_not_go(arguments, match):
    stage = new_stage()
    author.add_camera(stage, "/Camera")
    with pytest.raises(ArgumentError, match=match):
        author.add_product(**{"stage": stage, "path": "/Render/P", "camera": "/Camera", "resolution": (4, 4), **arguments})
