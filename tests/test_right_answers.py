"""Whole renders against closed forms: known cameras, walls, spheres and cubes. No number here comes from this renderer."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom

import hdwarp

PLANE, RANGE = "distance_to_image_plane", "distance_to_camera"


def empty_stage(metres: float = 1.0) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, metres)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    return stage


def pinhole(stage: Usd.Stage, fx: float, width: int, height: int, path: str = "/camera", position=(0, 0, 0)) -> UsdGeom.Camera:
    """fx = fy in pixels, principal point in the middle."""
    camera = UsdGeom.Camera.Define(stage, path)
    camera.CreateFocalLengthAttr(fx / 10)
    camera.CreateHorizontalApertureAttr(width / 10)
    camera.CreateVerticalApertureAttr(height / 10)
    camera.CreateClippingRangeAttr(Gf.Vec2f(0.01, 1e6))
    camera.AddTranslateOp().Set(Gf.Vec3d(*position))
    return camera


def wall(stage: Usd.Stage, path: str, size: float, place) -> UsdGeom.Mesh:
    mesh = UsdGeom.Mesh.Define(stage, path)
    half = size / 2
    mesh.CreatePointsAttr([(-half, -half, 0), (half, -half, 0), (half, half, 0), (-half, half, 0)])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    mesh.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*place))
    return mesh


def solid(stage: Usd.Stage, kind, path: str, place, **attributes):
    shape = kind.Define(stage, path)
    for name, value in attributes.items():
        shape.GetPrim().GetAttribute(name).Set(value)
    shape.AddTranslateOp().Set(Gf.Vec3d(*place))
    return shape


def look(stage, width=640, height=480, aovs=(PLANE,), device="cpu", **options):
    return hdwarp.render(stage, "/camera", resolution=(width, height), aovs=list(aovs), device=device, **options)


@pytest.mark.parametrize(
    ("focal", "aperture", "size", "fx", "hfov"),
    [
        (24, 20.955, (640, 480), 732.999284, 47.168554),
        (50, 20.955, (256, 256), 610.832737, 23.670166),
        (28, 36.0, (100, 100), 77.777778, np.degrees(1.142675)),
    ],
)
def test_intrinsics_of_known_cameras(focal, aperture, size, fx, hfov, device):
    stage = empty_stage()
    camera = UsdGeom.Camera.Define(stage, "/camera")
    camera.CreateFocalLengthAttr(focal)
    camera.CreateHorizontalApertureAttr(aperture)
    camera.CreateVerticalApertureAttr(aperture * size[1] / size[0])
    frame = look(stage, *size, device=device)
    assert frame.K[0, 0] == pytest.approx(fx, rel=1e-6) == frame.K[1, 1]
    assert (frame.K[0, 2], frame.K[1, 2]) == pytest.approx((size[0] / 2, size[1] / 2))
    assert np.degrees(2 * np.arctan(size[0] / 2 / frame.K[0, 0])) == pytest.approx(hfov, rel=1e-5)


@pytest.mark.parametrize(
    ("hfov", "width", "height", "corner"), [(90, 640, 480, 6.396294), (60, 640, 480, 4.929928), (90, 128, 96, 4 * 1.592256)]
)
def test_wall_at_four_metres(hfov, width, height, corner, device):
    """f.3 27 to 29: planar depth 4 everywhere, the corner ray longer; every point back on the wall within 1e-5 m."""
    stage = empty_stage()
    pinhole(stage, width / 2 / np.tan(np.radians(hfov / 2)), width, height)
    wall(stage, "/wall", 100.0, (0, 0, -4))
    frame = look(stage, width, height, aovs=(PLANE, RANGE, "position"), device=device)
    np.testing.assert_allclose(frame[PLANE], 4.0, rtol=0, atol=1e-5)
    assert frame[RANGE][0, 0] == pytest.approx(corner, rel=1e-6)
    points = frame.points()
    assert np.abs(points[..., 2] + 4.0).max() < 1e-5
    np.testing.assert_allclose(frame["position"] + frame.origin, points, atol=1e-5)


def test_ten_thousand_kilometres_from_the_origin(device):
    stage = empty_stage()
    pinhole(stage, 320, 64, 48, position=(1e7, -1e7, 1e7))
    wall(stage, "/wall", 100.0, (1e7, -1e7, 1e7 - 10))
    frame = look(stage, 64, 48, device=device)
    np.testing.assert_allclose(frame[PLANE], 10.0, rtol=0, atol=1e-3)
    assert np.abs(frame.points()[..., 2] - (1e7 - 10)).max() < 1e-3


def test_inside_a_sphere_every_ray_is_its_radius(device):
    """f.3 30"""
    stage = empty_stage()
    pinhole(stage, 100, 128, 96)
    solid(stage, UsdGeom.Sphere, "/sphere", (0, 0, 0), radius=10.0)
    frame = look(stage, 128, 96, aovs=(RANGE, "normal"), device=device)
    np.testing.assert_allclose(frame[RANGE], 10.0, rtol=1e-6)
    outward = frame.points() / 10.0
    np.testing.assert_allclose(frame["normal"], outward, atol=1e-5)  # as authored: not turned to the viewer


@pytest.mark.parametrize(("row", "depth"), [(300, 8.264463), (360, 4.149378), (479, 2.087683)])
def test_ground_below_a_level_camera(row, depth, device):
    """f.3 33: K 500, cy 240, ground 1 m below: depth = 500 / (row + 0.5 - 240)."""
    stage = empty_stage()
    pinhole(stage, 500, 640, 480)
    ground = wall(stage, "/ground", 1000.0, (0, -1, 0))
    ground.AddRotateXOp().Set(-90.0)
    frame = look(stage, device=device)
    assert frame[PLANE][row, 320] == pytest.approx(depth, rel=2e-6)
    assert np.isinf(frame[PLANE][:240]).all()


def test_sphere_on_the_axis(device):
    """f.3 34 and 37: r 0.5 at 5 m, and r 0.2 one metre ahead."""
    stage = empty_stage()
    pinhole(stage, 500, 640, 480)
    solid(stage, UsdGeom.Sphere, "/sphere", (0, 0, -5), radius=0.5)
    frame = look(stage, aovs=(PLANE, RANGE), device=device)
    assert frame[RANGE][240, 320] == pytest.approx(4.500045, abs=1e-6)
    assert frame[PLANE][240, 320] == pytest.approx(4.500041, abs=1e-6)
    hit = np.isfinite(frame[PLANE])
    assert frame[PLANE][hit].max() < 4.95 + 1e-6
    assert frame[RANGE][hit].max() < 4.974937 + 1e-6
    stage = empty_stage()
    pinhole(stage, 500, 641, 481)
    solid(stage, UsdGeom.Sphere, "/sphere", (0, 0, -1), radius=0.2)
    assert look(stage, 641, 481, device=device)[PLANE][240, 320] == pytest.approx(0.8, abs=1e-6)


def test_mask_of_the_unit_cube(device):
    """f.4 40: columns 264 to 375, rows 184 to 295."""
    stage = empty_stage()
    pinhole(stage, 500, 640, 480)
    solid(stage, UsdGeom.Cube, "/cube", (0, 0, -5), size=1.0)
    frame = look(stage, aovs=(PLANE, "primId"), device=device)
    expected = np.zeros((480, 640), bool)
    expected[184:296, 264:376] = True
    assert np.array_equal(frame["primId"] == 0, expected)
    np.testing.assert_allclose(frame[PLANE][expected], 4.5, atol=1e-6)


def test_mask_of_the_sphere(device):
    """f.4 43: 7920 pixels, columns 270 to 369, rows 190 to 289."""
    stage = empty_stage()
    pinhole(stage, 500, 640, 480)
    solid(stage, UsdGeom.Sphere, "/sphere", (0, 0, -5), radius=0.5)
    rows, columns = np.nonzero(look(stage, aovs=("primId",), device=device)["primId"] == 0)
    assert len(rows) == 7920
    assert (columns.min(), columns.max(), rows.min(), rows.max()) == (270, 369, 190, 289)


@pytest.mark.parametrize(
    ("near", "far", "z", "depth"),
    [(1, 101, 10, 0.909), (0.1, 100, 5, 0.980980981), (1, 1e6, 10, 0.9000009), (2, 50, 2, 0.0), (2, 50, 50, 1.0)],
)
def test_depth_as_hydra_has_it(near, far, z, depth, device):
    """(g) 7: f (z - n) / (z (f - n)); both ends of the clip range included."""
    stage = empty_stage()
    camera = pinhole(stage, 50, 64, 48)
    camera.GetClippingRangeAttr().Set(Gf.Vec2f(near, far))
    wall(stage, "/wall", 10000.0, (0, 0, -z))
    frame = look(stage, 64, 48, aovs=("depth", "cameraDepth"), device=device)
    np.testing.assert_allclose(frame["depth"], depth, atol=2e-7)
    np.testing.assert_allclose(frame["cameraDepth"], z, rtol=1e-6)


def test_camera_depth_is_in_scene_units(device):
    stage = empty_stage(metres=0.01)
    pinhole(stage, 50, 64, 48)
    wall(stage, "/wall", 10000.0, (0, 0, -400))
    frame = look(stage, 64, 48, aovs=("cameraDepth", PLANE), device=device)
    np.testing.assert_allclose(frame["cameraDepth"], 400.0, rtol=1e-6)
    np.testing.assert_allclose(frame[PLANE], 4.0, rtol=1e-6)


def test_first_pixel_of_a_default_camera(device):
    """(g) 9: 1920x1080, expandAperture: a wall at depth 10 has ray length 10.47451993 at the first pixel."""
    stage = empty_stage()
    UsdGeom.Camera.Define(stage, "/camera")
    wall(stage, "/wall", 1000.0, (0, 0, -10))
    frame = look(stage, 1920, 1080, aovs=(RANGE, "Peye"), device=device)
    assert frame[RANGE][0, 0] == pytest.approx(10.47451993, rel=1e-6)
    assert frame[RANGE][539, 959] == pytest.approx(10.0000002, rel=1e-7)
    np.testing.assert_allclose(frame["Peye"][0, 0], 10 * np.array([-0.27169486, 0.15276642, -1]), rtol=1e-6)


def test_rotated_camera_pose(device):
    """(g) 20: translate (1, 2, 3), then rotateXYZ (0, 90, 0): forward (-1, 0, 0)."""
    stage = empty_stage()
    camera = UsdGeom.Camera.Define(stage, "/camera")
    camera.AddTranslateOp().Set(Gf.Vec3d(1, 2, 3))
    camera.AddRotateXYZOp().Set(Gf.Vec3f(0, 90, 0))
    pose = look(stage, 8, 8, device=device).world_from_camera
    np.testing.assert_allclose(-pose[:3, 2], (-1, 0, 0), atol=1e-12)
    # Gf's view matrix multiplies rows: its fourth row (3, -2, -1, 1) is the translation column here.
    np.testing.assert_allclose(np.linalg.inv(pose)[:3, 3], (3, -2, -1), atol=1e-12)
    np.testing.assert_allclose(pose[:3, 3], (1, 2, 3), atol=1e-12)


@pytest.mark.parametrize("samples", [4, 9])
def test_samples_average_colour_and_leave_the_truth_alone(samples, device):
    """A wall's edge through the middle of a pixel column: alpha is the covered part, ids are those of the pixel's centre."""
    stage = empty_stage()
    pinhole(stage, 10, 10, 10)
    wall(stage, "/wall", 10.0, (5.0 + 0.02, 0, -10))  # covers x >= 0.02 at depth 10, where a pixel is one metre wide
    one = look(stage, 10, 10, aovs=("color", "primId"), device=device)
    many = look(stage, 10, 10, aovs=("color", "primId"), samples=samples, device=device)
    assert np.array_equal(one["primId"], many["primId"])
    stage.GetPrimAtPath("/wall").GetAttribute("xformOp:translate").Set(Gf.Vec3d(5.0 + 0.5, 0, -10))
    side = round(samples**0.5)
    covered = sum((i + 0.5) / side > 0.5 for i in range(side)) / side
    alpha = look(stage, 10, 10, aovs=("color",), samples=samples, device=device)["color"][5, :, 3]
    assert alpha[:5].tolist() == [0.0] * 5
    if side % 2 == 0:  # with odd grids the edge runs through the middle sample
        assert alpha[5] == pytest.approx(covered)
    assert alpha[6:] == pytest.approx(1.0)


def test_grazing_ground_agrees_with_the_ideal_camera(device):
    """A level camera 1 m above a 10 km ground: depth = f / (row + 0.5 - cy) also 500 m out, where a ray falls 2 mm a metre."""
    stage = empty_stage()
    pinhole(stage, 500, 640, 480)
    wall(stage, "/ground", 10000.0, (0, -1, 0)).AddRotateXOp().Set(-90.0)
    depth = look(stage, device=device)[PLANE][:, 320]
    rows = np.arange(240, 480)
    np.testing.assert_allclose(depth[240:], 500 / (rows + 0.5 - 240), rtol=1e-6)
