"""Camera.clippingPlanes: what they cut is gone and hides nothing; closed forms, brute force, time samples, device-written planes."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Usd, UsdGeom, Vt

import hdwarp

PLANE = "distance_to_image_plane"


def room_of(eye, planes):
    """Signed room that planes in the camera's space leave at world points."""

    def room(points, *_):
        local = (points - eye.place) @ eye.turn
        with np.errstate(invalid="ignore"):
            return np.min([local @ plane[:3] + plane[3] for plane in np.asarray(planes, float)], axis=0)

    return room


@pytest.mark.parametrize("orthographic", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_random_planes_against_brute_force(brute, seed, orthographic):
    """One to four planes in any direction through the middle of a triangle soup."""
    rng = np.random.default_rng(seed)
    eye = brute.around(rng, orthographic=orthographic, **({"focal": 16.0} if orthographic else {}))
    normals = rng.normal(size=(1 + seed, 3))
    normals[:, 2] = -1.0 - np.abs(normals[:, 2])  # all cut from the front
    planes = [(*n, rng.uniform(-0.3, 0.3) + 4.0 * n[2]) for n in normals]  # about a point 4 m ahead
    triangles = brute.soup(rng, 80)
    stage = brute.new_stage()
    brute.add_mesh(stage, "/soup", triangles)
    brute.add_camera(stage, eye, planes=planes)
    frame = brute.look(stage, eye)
    expected = brute.first(eye, triangles, room_of(eye, planes))
    brute.compare(frame, expected, share=0.15)
    uncut = brute.first(eye, triangles)
    assert (uncut[0] != expected[0]).mean() > 0.05  # the planes matter, and what they cut hides nothing
    assert ((expected[1] > uncut[1]) & np.isfinite(expected[1])).any()


@pytest.mark.parametrize("orthographic", [False, True])
def test_both_sides_of_the_boundary(brute, orthographic):
    """A wall 4 m ahead and planes facing along the view: kept at 4 exactly (a.x + d = 0), cut a little beyond; also from behind."""
    wall = np.array([[[-99, -99, 0], [99, -99, 0], [0, 160, 0]]], float)
    eye = brute.Eye(np.eye(3), np.array([0, 0, 4.0]), orthographic=orthographic)
    for plane, seen in (((0, 0, -1, -4), True), ((0, 0, -1, -4.001), False), ((0, 0, 1, 4), True), ((0, 0, 2, 7.999), False)):
        stage = brute.new_stage()
        brute.add_mesh(stage, "/wall", wall)
        brute.add_camera(stage, eye, planes=[plane])
        assert (brute.look(stage, eye)["primId"] >= 0).all() == seen
        assert (brute.look(stage, eye)["primId"] >= 0).any() == seen


@pytest.mark.parametrize("orthographic", [False, True])
@pytest.mark.parametrize("kind", [UsdGeom.Sphere, UsdGeom.Cube])
def test_a_cut_closed_shape_shows_its_back(brute, kind, orthographic):
    """The front half of a shape of radius 1 at 4 m is cut: its inside is seen at the far root, and its normal is the far one's."""
    stage = brute.new_stage()
    kind.Define(stage, "/shape")
    eye = brute.Eye(np.eye(3), np.array([0, 0, 4.0]), 63, 63, orthographic=orthographic, focal=40.0)
    brute.add_camera(stage, eye, planes=[(0, 0, -1, -4)])
    frame = brute.look(stage, eye, aovs=(PLANE, "Ngeom", "primId"))
    assert frame[PLANE][31, 31] == pytest.approx(5.0, rel=1e-6)
    np.testing.assert_allclose(frame["Ngeom"][31, 31], (0, 0, -1), atol=1e-5)
    hit = frame["primId"] >= 0
    assert (frame[PLANE][hit] >= 4.0 - 1e-5).all()
    starts, directions = eye.rays()
    points = starts + directions * np.where(hit, frame[PLANE], 0)[..., None]
    size = np.linalg.norm(points, axis=-1) if kind is UsdGeom.Sphere else np.abs(points).max(-1)
    np.testing.assert_allclose(size[hit], 1.0, atol=1e-5)


def test_contradicting_planes_leave_nothing_and_many_are_noted(brute):
    """x >= 1 and x <= -1: an empty picture. Sixteen planes cut, a seventeenth is named and ignored."""
    stage = brute.new_stage()
    brute.add_mesh(stage, "/wall", np.array([[[-99, -99, 0], [99, -99, 0], [0, 160, 0]]], float))
    eye = brute.Eye(np.eye(3), np.array([0, 0, 4.0]))
    camera = brute.add_camera(stage, eye, planes=[(1, 0, 0, -1), (-1, 0, 0, -1)])
    assert (brute.look(stage, eye)["primId"] == -1).all()
    around = [(np.cos(a), np.sin(a), 0.0, 1.0) for a in np.arange(16) * 2 * np.pi / 16]  # a tube of radius 1, less what follows
    camera.GetClippingPlanesAttr().Set([Gf.Vec4f(*map(float, plane)) for plane in (*around, (0, 0, 1, 0))])
    frame = brute.look(stage, eye)
    starts, directions = eye.rays()
    at = starts + directions * 4
    inside = np.min([at[..., 0] * p[0] + at[..., 1] * p[1] + p[3] for p in around], axis=0)
    sure = np.abs(inside) > 1e-3
    assert np.array_equal((frame["primId"] >= 0)[sure], (inside >= 0)[sure])
    assert any(item.code == "camera-clipping-planes" and "17" in item.message for item in frame.diagnostics)
    assert not brute.look(with_planes(camera, around), eye).diagnostics


def with_planes(camera: UsdGeom.Camera, planes) -> Usd.Stage:
    camera.GetClippingPlanesAttr().Set([Gf.Vec4f(*map(float, plane)) for plane in planes])
    return camera.GetPrim().GetStage()


def test_far_from_the_origin_the_cut_stays_where_it_is(brute):
    """10,000 km away, a plane 0.1 degrees off the view's axis cuts the same pixels."""
    wall = np.array([[[-99, -99, 0], [99, -99, 0], [0, 160, 0]]], float)
    tilt = np.radians(0.1)
    frames = []
    for offset in (np.zeros(3), np.array([1e7, -2e7, 5e6])):
        stage = brute.new_stage()
        brute.add_mesh(stage, "/wall", wall, np.eye(3), offset)
        eye = brute.Eye(np.eye(3), offset + [0, 0, 4.0])
        brute.add_camera(stage, eye, planes=[(np.cos(tilt), 0, np.sin(tilt), 0)])
        frames.append(brute.look(stage, eye)["primId"])
    assert np.array_equal(*frames)
    assert 0.4 < (frames[0] == 0).mean() < 0.6


def test_time_samples(brute):
    """x >= 0 at time 1, x <= 0 at time 2; a scene that is synced follows."""
    stage = brute.new_stage()
    brute.add_mesh(stage, "/wall", np.array([[[-99, -99, 0], [99, -99, 0], [0, 160, 0]]], float))
    eye = brute.Eye(np.eye(3), np.array([0, 0, 4.0]))
    attribute = brute.add_camera(stage, eye).CreateClippingPlanesAttr()
    for time, sign in ((1, 1.0), (2, -1.0)):
        attribute.Set(Vt.Vec4fArray([Gf.Vec4f(sign, 0, 0, 0)]), time)
    left = np.zeros((48, 64), bool)
    left[:, :32] = True
    for time, expected in ((1, ~left), (2, left)):
        assert np.array_equal(brute.look(stage, eye, time=time)["primId"] == 0, expected)
    scene = hdwarp.Scene(stage, device="cpu", time=1)
    sensor = hdwarp.SensorCamera(scene, cameras="/camera", resolution=(64, 48))
    out = sensor.allocate(["primId"])
    for time, expected in ((1, ~left), (2, left), (1, ~left)):
        scene.sync(time)
        sensor.rebind()
        sensor.update(None, out)
        assert np.array_equal(out["primId"].numpy()[0] == 0, expected)


@wp.kernel
def _turn(counts: wp.array(dtype=wp.int32), planes: wp.array2d(dtype=wp.vec4f)):
    counts[wp.tid()] = 1
    planes[wp.tid(), 0] = wp.vec4f(0.0, 1.0, 0.0, 0.0)


def test_a_kernel_may_write_planes_and_they_follow_the_camera(brute, device):
    """The upper half of each view, whatever pose it is given."""
    stage = brute.new_stage()
    brute.add_mesh(stage, "/wall", np.array([[[-99, -99, 0], [99, -99, 0], [0, 160, 0]]], float))
    eye = brute.Eye(np.eye(3), np.array([0, 0, 4.0]))
    brute.add_camera(stage, eye, "/a")
    brute.add_camera(stage, eye, "/b")
    scene = hdwarp.Scene(stage, device=device)
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(64, 48))
    wp.launch(_turn, dim=2, inputs=[scene.cameras.clipping_plane_count, scene.cameras.clipping_planes], device=device)
    out = sensor.allocate(["primId"])
    rolled = (0.0, 0.0, 2.0, 0.0, 0.0, float(np.sin(0.3)), float(np.cos(0.3)))
    poses = wp.array([(0, 0, 4, 0, 0, 0, 1), rolled], dtype=wp.transformf, device=device)
    sensor.update(None, out, camera_transforms=poses)
    upper = np.zeros((48, 64), bool)
    upper[:24] = True
    for image in out["primId"].numpy():
        assert np.array_equal(image == 0, upper)
    assert scene.cameras.clipping_planes.shape == (2, 16)


def test_cases_of_openusd(shared):
    """A cube at 5 m cut by a plane through the axis: x >= 0 at time 1, x + y / 2 >= 0 at time 2; two cubes and a moving camera without
    planes."""
    folder = shared / "assets" / "openusd"
    (path,) = folder.rglob("testUsdImagingGLClippingPlanes/clippingPlanes.usda")
    options = {"resolution": (320, 180), "aovs": ["primId"], "device": "cpu"}
    whole = hdwarp.render(_without_planes(path), "/World/main_cam", time=1, **options)["primId"] >= 0
    y, x = np.mgrid[:180, :320]
    x, y = x + 0.5 - 160, 90 - y - 0.5
    for time, kept in ((1, x >= 0), (2, x + 0.5 * y >= 0)):
        hit = hdwarp.render(path, "/World/main_cam", time=time, **options)["primId"] >= 0
        assert hit.any()
        assert np.array_equal(hit, whole & kept)
    (path,) = folder.rglob("testUsdImagingGLAnimatedCamera/cameraMoving.usda")
    frames = [hdwarp.render(path, "/World/main_cam", time=time, **options) for time in (1, 2)]
    for frame in frames:
        assert set(np.unique(frame["primId"])) == {-1, 0, 1}
        assert not any("lipping" in item.message for item in frame.diagnostics)
    assert not np.array_equal(frames[0]["primId"], frames[1]["primId"])


def _without_planes(path) -> Usd.Stage:
    stage = Usd.Stage.Open(str(path))
    stage.SetEditTarget(stage.GetSessionLayer())
    attribute = UsdGeom.Camera(stage.GetPrimAtPath("/World/main_cam")).GetClippingPlanesAttr()
    for time in (1, 2):
        attribute.Set(Vt.Vec4fArray([]), time)
    return stage
