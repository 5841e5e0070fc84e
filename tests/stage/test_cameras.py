"""UsdGeom.Camera prims as records: units, transforms with scale, bad values. Windows are compared with Gf.Camera and its frustum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pxr import Gf, Sdf, Usd, UsdGeom

from hdwarp.errors import Diagnostics, Severity
from hdwarp.stage.cameras import read_camera, read_user_attributes, split_transform
from hdwarp.views import orthographic, pinhole
from hdwarp.views.conform import image_spec

_stages = []  # a prim does not keep its stage alive


def new_stage(metres_per_unit=1.0, up="Y"):
    stage = Usd.Stage.CreateInMemory()
    _stages[:] = [*_stages[-9:], stage]
    UsdGeom.SetStageMetersPerUnit(stage, metres_per_unit)
    UsdGeom.SetStageUpAxis(stage, up)
    return stage


def new_camera(stage, path="/Camera", **values):
    camera = UsdGeom.Camera.Define(stage, path)
    for name, value in values.items():
        camera.GetPrim().GetAttribute(name.replace("__", ":")).Set(value)
    return camera


def read(camera, time=None, diagnostics=None):
    """read_camera as the adapter calls it; diagnostics of severity error fail the test unless they are asked for."""
    time = Usd.TimeCode.Default() if time is None else Usd.TimeCode(time)
    found = Diagnostics() if diagnostics is None else diagnostics
    matrix = np.array(UsdGeom.XformCache(time).GetLocalToWorldTransform(camera.GetPrim())).T
    unit = UsdGeom.GetStageMetersPerUnit(camera.GetPrim().GetStage())
    record = read_camera(camera.GetPrim(), time, matrix, unit, found)
    if diagnostics is None:
        found.raise_errors()
    return record


def codes(diagnostics):
    return [(item.code, item.severity) for item in diagnostics]


@pytest.mark.parametrize(("metres_per_unit", "focal_length"), [(1.0, 2.4), (0.01, 0.024)])
def test_lens_values_are_tenths_of_a_scene_unit(metres_per_unit, focal_length):
    """focalLength 24 is 2.4 scene units."""
    camera = new_camera(new_stage(metres_per_unit), focalLength=24.0, horizontalAperture=36.0, focusDistance=3.0, clippingRange=(2.0, 50.0))
    record = read(camera)
    assert record.focal_length == pytest.approx(focal_length, rel=1e-6)
    assert record.aperture == pytest.approx((3.6 * metres_per_unit, 1.52908 * metres_per_unit), rel=1e-6)
    assert record.focus_distance == pytest.approx(3.0 * metres_per_unit)
    assert record.clipping_range == pytest.approx((2.0 * metres_per_unit, 50.0 * metres_per_unit))
    assert 2.0 * math.atan(record.aperture[0] / (2.0 * record.focal_length)) == pytest.approx(2.0 * math.atan(36.0 / 48.0), rel=1e-6)


def test_field_of_view_of_a_28_mm_lens_on_a_36_mm_sensor():
    record = read(new_camera(new_stage(), focalLength=28.0, horizontalAperture=36.0))
    assert 2.0 * math.atan(record.aperture[0] / (2.0 * record.focal_length)) == pytest.approx(1.142675, abs=1e-6)


def test_default_camera_has_usds_field_of_view():
    record = read(new_camera(new_stage()))
    fov = [math.degrees(2.0 * math.atan(side / (2.0 * record.focal_length))) for side in record.aperture]
    assert fov == pytest.approx((23.670166, 17.387291), abs=1e-4)
    assert record.aperture[0] / record.aperture[1] == pytest.approx(1.3704319, rel=1e-6)
    assert record.projection == "perspective"
    assert record.body == ""
    assert (record.exposure_scale, record.shutter, record.f_stop) == (1.0, (0.0, 0.0), 0.0)


def test_position_is_in_metres_and_rotation_is_columns():
    """translate (1, 2, 3) cm, then a quarter turn about Y: the camera looks along -X."""
    camera = new_camera(new_stage(0.01))
    camera.AddTranslateOp().Set((1.0, 2.0, 3.0))
    camera.AddRotateXYZOp().Set((0.0, 90.0, 0.0))
    record = read(camera)
    np.testing.assert_allclose(record.world_from_camera[:3, 3], (0.01, 0.02, 0.03), atol=1e-12)
    np.testing.assert_allclose(-record.world_from_camera[:3, 2], (-1.0, 0.0, 0.0), atol=1e-12)
    # Gf's view matrix for row vectors, its last row the translation.
    view = np.linalg.inv(record.world_from_camera)
    np.testing.assert_allclose(view[:3, 3] * 100.0, (3.0, -2.0, -1.0), atol=1e-12)
    np.testing.assert_array_equal(record.axes, np.eye(3))


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ({}, 1.0),
        ({"exposure": 1.0}, 2.0),
        ({"exposure": -1.0}, 0.5),
        ({"exposure__iso": 400.0, "exposure__time": 1.0 / 50.0, "exposure__fStop": 2.8}, 0.0102040816),
        ({"exposure__responsivity": 3.0, "exposure": 2.0, "exposure__iso": 200.0, "exposure__time": 0.5, "exposure__fStop": 2.0}, 3.0),
    ],
)
def test_exposure_scale(values, scale):
    assert read(new_camera(new_stage(), **values)).exposure_scale == pytest.approx(scale, rel=1e-6)


def test_an_exposure_without_a_number_is_1_and_said():
    diagnostics = Diagnostics()
    assert read(new_camera(new_stage(), exposure__fStop=0.0), diagnostics=diagnostics).exposure_scale == 1.0
    assert codes(diagnostics) == [("camera-exposure", Severity.WARNING)]


def test_attributes_are_read_at_the_time():
    camera = new_camera(new_stage())
    camera.GetFocalLengthAttr().Set(20.0, 1.0)
    camera.GetFocalLengthAttr().Set(40.0, 3.0)
    assert read(camera, time=2.0).focal_length == pytest.approx(3.0)


# --- transforms with more than a rotation


def test_uniform_scale_leaves_directions_alone():
    """Camera scaled by 2 at z = 10: same rays as unscaled; depth and clip stay true distances."""
    camera = new_camera(new_stage(), clippingRange=(1.0, 100.0))
    camera.AddTranslateOp().Set((0.0, 0.0, 10.0))
    camera.AddScaleOp().Set((2.0, 2.0, 2.0))
    diagnostics = Diagnostics()
    record = read(camera, diagnostics=diagnostics)
    np.testing.assert_array_equal(record.axes, np.eye(3))
    np.testing.assert_allclose(record.world_from_camera[:3, 3], (0.0, 0.0, 10.0))
    assert record.clipping_range == (1.0, 100.0)
    assert codes(diagnostics) == [("camera-scale", Severity.NOTE)]
    assert "by 2:" in next(iter(diagnostics)).message


def test_uniform_scale_widens_an_orthographic_window():
    """A window of 10 units under a scale of 2 shows 20, as in Hydra; depth does not change."""
    camera = new_camera(new_stage(), projection="orthographic", horizontalAperture=100.0, verticalAperture=100.0)
    camera.AddScaleOp().Set((2.0, 2.0, 2.0))
    record = read(camera)
    rays = orthographic.ray_coefficients(record, image_spec((10, 10)))
    np.testing.assert_allclose(rays.origin, (-9.0, 9.0, 0.0), atol=1e-5)
    np.testing.assert_allclose(rays.direction, (0.0, 0.0, -1.0))


def test_a_mirrored_camera_has_a_proper_pose_and_a_mirrored_picture():
    camera = new_camera(new_stage())
    camera.AddScaleOp().Set((-1.0, 1.0, 1.0))
    diagnostics = Diagnostics()
    record = read(camera, diagnostics=diagnostics)
    np.testing.assert_array_equal(record.world_from_camera, np.eye(4))
    np.testing.assert_allclose(record.axes, np.diag([-1.0, 1.0, 1.0]))
    assert "mirrors" in next(iter(diagnostics)).message


def test_a_camera_mirrored_in_depth_looks_the_other_way():
    camera = new_camera(new_stage())
    camera.AddScaleOp().Set((1.0, 1.0, -1.0))
    record = read(camera)
    np.testing.assert_allclose(-record.world_from_camera[:3, 2], (0.0, 0.0, 1.0))


def test_a_float32_rotation_is_no_scale():
    """A matrix written in single precision is not worth a diagnostic, yet its rays are followed."""
    camera = new_camera(new_stage())
    rotation = np.array(Gf.Matrix3d(Gf.Rotation(Gf.Vec3d(1, 2, 3), 40.0))).astype(np.float32).astype(float)
    matrix = Gf.Matrix4d(1.0)
    matrix.SetRotateOnly(Gf.Matrix3d(*rotation.ravel().tolist()))
    camera.AddTransformOp().Set(matrix)
    diagnostics = Diagnostics()
    record = read(camera, diagnostics=diagnostics)
    assert not len(diagnostics)
    pose = record.world_from_camera[:3, :3]
    np.testing.assert_allclose(pose.T @ pose, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(pose @ record.axes, rotation.T / np.linalg.norm(rotation[2]), atol=1e-6)


finite = st.floats(-3.0, 3.0, allow_nan=False)


@settings(max_examples=100, deadline=None)
@given(st.lists(finite, min_size=9, max_size=9), st.booleans())
def test_any_matrix_splits_into_a_rotation_and_axes(values, orthographic_camera):
    matrix = np.array(values).reshape(3, 3)
    if abs(np.linalg.det(matrix)) < 1e-3:
        return
    rotation, axes, full = split_transform(matrix, orthographic_camera)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    np.testing.assert_allclose(rotation @ full, matrix, atol=1e-9)
    np.testing.assert_allclose(axes[2], (0.0, 0.0, 1.0), atol=0.0)  # so that forward . direction is exactly 1
    if not orthographic_camera:
        np.testing.assert_allclose(axes, full / full[2, 2], atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(finite, min_size=9, max_size=9), st.booleans())
def test_pixels_of_a_scaled_camera_are_hydras(values, is_orthographic):
    """Hydra's view matrix is the plain inverse of the camera's transform: a point lands on the same pixel; depth is a true distance."""
    linear = np.array(values).reshape(3, 3)
    if abs(np.linalg.det(linear)) < 1e-2:
        return
    world_from_object = np.eye(4)
    world_from_object[:3, :3], world_from_object[:3, 3] = linear, (1.0, -2.0, 0.5)
    stage = new_stage()
    camera = new_camera(stage, projection="orthographic" if is_orthographic else "perspective", horizontalApertureOffset=3.0)
    record = read_camera(camera.GetPrim(), Usd.TimeCode.Default(), world_from_object, 1.0, Diagnostics())
    module = orthographic if is_orthographic else pinhole
    image = image_spec((40, 30))
    local = np.array([[0.3, -0.2, -4.0, 1.0], [-0.1, 0.05, -2.0, 1.0]])
    world = (local @ world_from_object.T)[:, :3]
    pixels, depth = module.project(record, image, world)
    clip = local @ module.projection(record, image).T
    expected = (clip[:, :2] / clip[:, 3:] * (1.0, -1.0) + 1.0) * 0.5 * (40, 30)
    np.testing.assert_allclose(pixels, expected, rtol=1e-6, atol=1e-6)
    # The planes of equal depth are the camera's: the true distance of the plane z = -4 from the camera.
    normal = np.cross(linear[:, 0], linear[:, 1])
    assert depth[0] == pytest.approx(abs(normal @ (linear @ (0.0, 0.0, 4.0))) / np.linalg.norm(normal), rel=1e-9)
    origins, directions = module.ray_coefficients(record, image).rays(pixels)
    np.testing.assert_allclose(origins + directions * depth[:, None], world, atol=1e-5 * np.abs(world).max())


def test_clipping_planes_are_in_the_rigid_cameras_space():
    """x > 1 unit is cut, in a camera scaled by (2, 1, 1): x > 2 units of the world, 0.02 m."""
    camera = new_camera(new_stage(0.01))
    camera.AddScaleOp().Set((2.0, 1.0, 1.0))
    camera.GetClippingPlanesAttr().Set([(-1.0, 0.0, 0.0, 1.0)])
    plane = read(camera).clipping_planes[0]
    assert plane[:3] @ (0.0199, 0.0, 0.0) + plane[3] > 0.0 > plane[:3] @ (0.0201, 0.0, 0.0) + plane[3]


# --- values that make no picture


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"focalLength": 0.0}, "camera-focal-length"),
        ({"focalLength": -5.0}, "camera-focal-length"),
        ({"focalLength": math.nan}, "camera-not-finite"),
        ({"clippingRange": (10.0, 1.0)}, "camera-clipping-range"),
        ({"clippingRange": (1.0, 1.0)}, "camera-clipping-range"),
        ({"clippingRange": (1.0, math.inf)}, "camera-clipping-range"),
        ({"clippingRange": (-2.0, -1.0)}, "camera-clipping-range"),
        ({"clippingRange": (-1.0, 10.0)}, "camera-clipping-range"),
        ({"horizontalAperture": -1.0}, "camera-aperture"),
        ({"horizontalAperture": 0.0, "verticalAperture": 0.0}, "camera-aperture"),
        ({"projection": "orthographic", "horizontalAperture": 0.0, "verticalAperture": 0.0}, "camera-aperture"),
        ({"verticalApertureOffset": math.inf}, "camera-not-finite"),
    ],
)
def test_values_that_make_no_picture(values, code):
    diagnostics = Diagnostics()
    assert read(new_camera(new_stage(), "/World/Cam", **values), diagnostics=diagnostics) is None
    assert codes(diagnostics) == [(code, Severity.ERROR)]
    item = next(iter(diagnostics))
    assert item.path == "/World/Cam"
    assert "author" in item.message


def test_orthographic_cameras_need_no_focal_length():
    assert read(new_camera(new_stage(), projection="orthographic", focalLength=0.0)) is not None


@pytest.mark.parametrize("scale", [(1.0, 0.0, 1.0), (math.nan, 1.0, 1.0), (0.0, 0.0, 0.0)])
def test_singular_and_broken_transforms(scale):
    camera = new_camera(new_stage())
    camera.AddScaleOp().Set(scale)
    diagnostics = Diagnostics()
    assert read(camera, diagnostics=diagnostics) is None
    assert codes(diagnostics) == [("camera-transform", Severity.ERROR)]


def test_a_tiny_scale_is_not_singular():
    camera = new_camera(new_stage())
    camera.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set((1e-9, 1e-9, 1e-9))
    np.testing.assert_array_equal(read(camera).axes, np.eye(3))


def test_what_is_said_and_still_rendered():
    diagnostics = Diagnostics()
    stage = new_stage()
    camera = new_camera(stage, shutter__open=0.5, shutter__close=-0.5, projection="fisheye")
    record = read(camera, diagnostics=diagnostics)
    assert record.shutter == (0.5, -0.5)
    assert record.projection == "perspective"
    assert {code for code, _ in codes(diagnostics)} == {"camera-projection", "camera-shutter"}
    assert all(severity is not Severity.ERROR for _, severity in codes(diagnostics))


# --- attributes of the user


def test_user_attributes_are_plain_values():
    camera = new_camera(new_stage(), exposure=1.0)
    camera.AddTranslateOp().Set((1.0, 2.0, 3.0))
    prim = camera.GetPrim()
    types = Sdf.ValueTypeNames
    for name, type_name, value in (
        ("user:gain", types.Float, 2.5),
        ("user:name", types.Token, "left"),
        ("user:offset", types.Float3, Gf.Vec3f(1, 2, 3)),
        ("user:turn", types.Quatf, Gf.Quatf(4, 1, 2, 3)),
        ("user:values", types.FloatArray, [1.0, 2.0]),
        ("user:names", types.TokenArray, ["a", "b"]),
        ("user:file", types.Asset, Sdf.AssetPath("x.png")),
        ("plain", types.Bool, True),
    ):
        prim.CreateAttribute(name, type_name).Set(value)
    prim.CreateAttribute("user:unauthored", types.Float)
    found = read_user_attributes(prim, Usd.TimeCode.Default())
    assert set(found) == {"user:gain", "user:name", "user:offset", "user:turn", "user:values", "user:names", "user:file", "plain"}
    assert (found["user:gain"], found["user:name"], found["user:file"], found["plain"]) == (2.5, "left", "x.png", True)
    np.testing.assert_array_equal(found["user:offset"], (1.0, 2.0, 3.0))
    np.testing.assert_array_equal(found["user:turn"], (1.0, 2.0, 3.0, 4.0))  # Warp's order
    np.testing.assert_array_equal(found["user:values"], (1.0, 2.0))
    assert list(found["user:names"]) == ["a", "b"]
    assert all("pxr" not in type(value).__module__ for value in found.values())


# --- against Gf.Camera


number = st.floats(5.0, 60.0)


@settings(max_examples=60, deadline=None)
@given(number, number, number, st.floats(-4.0, 4.0), st.floats(-4.0, 4.0), st.booleans(), st.sampled_from([1.0, 0.01]))
def test_projection_is_gfs(focal_length, width, height, x_offset, y_offset, is_orthographic, metres_per_unit):
    """At the aperture's own aspect the projection is that of Gf.Frustum, lengths in metres."""
    camera = new_camera(
        new_stage(metres_per_unit),
        focalLength=focal_length,
        horizontalAperture=width,
        verticalAperture=height,
        horizontalApertureOffset=x_offset,
        verticalApertureOffset=y_offset,
        clippingRange=(1.0, 101.0),
        projection="orthographic" if is_orthographic else "perspective",
    )
    module = orthographic if is_orthographic else pinhole
    image = image_spec((100, 100), policy="adjustPixelAspectRatio")
    ours = module.projection(read(camera), image)
    theirs = np.array(camera.GetCamera(Usd.TimeCode.Default()).frustum.ComputeProjectionMatrix()).T
    to_units = np.diag([1.0 / metres_per_unit] * 3 + [1.0])
    np.testing.assert_allclose(
        ours @ np.linalg.inv(to_units) * (1.0 if is_orthographic else 1.0 / metres_per_unit), theirs, rtol=2e-5, atol=2e-5
    )
