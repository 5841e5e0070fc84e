"""SensorCamera: all views of a scene's cameras in one launch, posed by a state, into arrays that stay put."""

from __future__ import annotations

import re

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Usd, UsdGeom, UsdPhysics

import hdwarp
from hdwarp.errors import ArgumentError, Error, NotSupported

PLANE = "distance_to_image_plane"


@pytest.fixture
def stage():
    """A wall at z = -10; a robot body at the origin that carries a camera and a ball two metres ahead of it; a camera of the world."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    wall = UsdGeom.Cube.Define(stage, "/World/wall")
    wall.CreateSizeAttr(1.0)
    wall.AddTranslateOp().Set(Gf.Vec3d(0, 0, -10.5))
    wall.AddScaleOp().Set(Gf.Vec3f(1000, 1000, 1))
    robot = UsdGeom.Xform.Define(stage, "/World/robot")
    UsdPhysics.RigidBodyAPI.Apply(robot.GetPrim())
    for path in ("/World/robot/camera", "/World/overview"):
        camera = UsdGeom.Camera.Define(stage, path)
        camera.CreateFocalLengthAttr(50.0)
        camera.CreateHorizontalApertureAttr(64.0)
        camera.CreateVerticalApertureAttr(48.0)
        camera.CreateClippingRangeAttr(Gf.Vec2f(0.01, 1000))
    ball = UsdGeom.Sphere.Define(stage, "/World/robot/arm/ball")
    ball.CreateRadiusAttr(0.25)
    ball.AddTranslateOp().Set(Gf.Vec3d(0, 0, -2))
    return stage


@pytest.fixture
def scene(stage, device):
    with hdwarp.Scene(stage, device=device) as scene:
        yield scene


def test_views_follow_rows_and_patterns(scene):
    both = hdwarp.SensorCamera(scene, cameras="*", resolution=(64, 48))
    assert both.view_count == 2
    assert [scene.cameras.label[i] for i in both.view_camera.numpy()] == ["/World/overview", "/World/robot/camera"]
    assert both.view_world.numpy().tolist() == [0, 0]
    for pattern in ("/World/rob*", re.compile(r".*/robot/camera"), ["/World/robot/camera"], [1], 1):
        assert hdwarp.SensorCamera(scene, cameras=pattern, resolution=(8, 8)).view_camera.numpy().tolist() == [1]
    with pytest.raises(ArgumentError, match=r"/nothing.*overview"):
        hdwarp.SensorCamera(scene, cameras="/nothing")


def test_a_moved_body_moves_its_camera_and_its_shapes(scene):
    """The robot moves 3 m ahead: its camera comes 3 m nearer to the wall, its ball stays where it is for it; the world's camera sees
    the ball 3 m farther."""
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(65, 49))
    out = sensor.allocate([PLANE, "primId"])
    addresses = {name: array.ptr for name, array in out.items()}
    state = scene.state()
    sensor.update(state, out)
    depth = out[PLANE].numpy()
    assert depth.shape == (2, 49, 65)
    assert depth[:, 0, 0] == pytest.approx([10.0, 10.0])
    assert depth[:, 24, 32] == pytest.approx([1.75, 1.75])
    moved = state.copy()
    pose = moved.body_q.numpy()
    pose[0, 2] -= 3.0
    moved.body_q.assign(pose)
    sensor.update(moved, out)
    depth = out[PLANE].numpy()
    assert depth[:, 0, 0] == pytest.approx([10.0, 7.0])
    assert depth[:, 24, 32] == pytest.approx([4.75, 1.75])
    assert {name: array.ptr for name, array in out.items()} == addresses
    before = hdwarp.SensorCamera(hdwarp.Scene(scene.stage, device=scene.device), cameras="*", resolution=(65, 49))
    fresh = before.allocate([PLANE])
    before.update(None, fresh)
    sensor.update(None, out)  # as on the stage, to the bit
    assert np.array_equal(out[PLANE].numpy(), fresh[PLANE].numpy())


def test_one_view_alone_or_among_others_has_the_same_bits(scene):
    aovs = ["color", PLANE, "normal", "primId", "barycentric"]
    together = hdwarp.SensorCamera(scene, cameras="*", resolution=(50, 37))
    out = together.allocate(aovs)
    together.update(scene.state(), out)
    for view, label in enumerate(("/World/overview", "/World/robot/camera")):
        alone = hdwarp.SensorCamera(scene, cameras=label, resolution=(50, 37))
        single = alone.allocate(aovs)
        alone.update(scene.state(), single)
        for name in aovs:
            assert np.array_equal(out[name].numpy()[view], single[name].numpy()[0]), name


def test_masked_views_keep_their_pixels(scene, device):
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(16, 12))
    out = sensor.allocate([PLANE])
    out[PLANE].fill_(-5.0)
    sensor.update(None, out, view_mask=wp.array([False, True], dtype=wp.bool, device=device))
    depth = out[PLANE].numpy()
    assert (depth[0] == -5.0).all() and (depth[1] > 0).all()


def test_camera_transforms_of_a_call(scene, device):
    sensor = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(16, 12))
    out = sensor.allocate([PLANE])
    poses = wp.array([[0.0, 5.0, -6.0, 0.0, 0.0, 0.0, 1.0]], dtype=wp.transformf, device=device)
    sensor.update(None, out, camera_transforms=poses)
    np.testing.assert_allclose(out[PLANE].numpy(), 4.0, atol=1e-5)
    sensor.update(None, out)
    assert out[PLANE].numpy()[0, 0, 0] == pytest.approx(10.0)


def test_a_kernel_may_write_the_lens(scene):
    """Half the focal length: half the pixels for the same ball, in the same sensor at the next update."""
    sensor = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(200, 150))
    out = sensor.allocate(["primId"])
    sensor.update(None, out)
    before = (out["primId"].numpy() == scene.index.prim_paths.index("/World/robot/arm/ball")).sum()
    focal = scene.cameras.focal_length
    focal.assign(focal.numpy() / 2)
    sensor.update(None, out)
    after = (out["primId"].numpy() == scene.index.prim_paths.index("/World/robot/arm/ball")).sum()
    assert before / after == pytest.approx(4.0, rel=0.1)


def test_clip_range_of_the_sensor(scene):
    near = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(9, 9), clipping_range=(5.0, 20.0))
    out = near.allocate([PLANE])
    near.update(None, out)
    assert out[PLANE].numpy()[0, 4, 4] == pytest.approx(10.0)  # the ball is nearer than 5 m and hides nothing
    radial = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(64, 48), clipping_range=(5.0, 10.05), clip="radial")
    out = radial.allocate([PLANE])
    radial.update(None, out)
    depth = out[PLANE].numpy()[0]
    assert np.isfinite(depth[24, 32]) and np.isinf(depth[0, 0])  # the corner ray is longer than 10.05 m


def test_view_transforms(scene, device):
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(8, 8))
    state = scene.state()
    state.body_q.assign(np.array([[1, 2, 3, 0, 0, 0, 1]], np.float32))
    poses = sensor.compute_view_transforms(state).numpy()
    np.testing.assert_allclose(poses[:, :3], [(0, 0, 0), (1, 2, 3)], atol=1e-6)


def test_the_sensor_says_when_it_must_be_bound_again(scene, stage):
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(8, 8))
    out = sensor.allocate([PLANE])
    UsdGeom.Camera.Define(stage, "/World/another")
    scene.sync()
    with pytest.raises(Error, match="rebind"):
        sensor.update(None, out)
    sensor.rebind()
    assert sensor.view_count == 3
    sensor.update(None, sensor.allocate([PLANE]))


def test_moving_cameras_and_lens_edits_need_no_rebind(scene, stage):
    """Only which cameras there are matters: a pose or a lens edited on the stage takes effect at the next update."""
    sensor = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(9, 9))
    out = sensor.allocate([PLANE])
    sensor.update(None, out)
    overview = UsdGeom.Camera(stage.GetPrimAtPath("/World/overview"))
    overview.AddTranslateOp().Set(Gf.Vec3d(0, 5, 1))
    scene.sync()
    sensor.update(None, out)
    assert out[PLANE].numpy()[0, 4, 4] == pytest.approx(11.0)
    overview.GetFocalLengthAttr().Set(500.0)
    scene.sync()
    sensor.update(None, out)
    assert out[PLANE].numpy()[0, 4, 4] == pytest.approx(11.0)


def test_a_closed_scene_is_named(scene):
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(8, 8))
    out = sensor.allocate([PLANE])
    scene.close()
    with pytest.raises(Error, match="closed"):
        sensor.update(None, out)


def test_geometry_edits_need_no_rebind(scene, stage):
    sensor = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(9, 9))
    out = sensor.allocate([PLANE])
    sensor.update(None, out)
    stage.GetPrimAtPath("/World/robot/arm/ball").GetAttribute("radius").Set(0.5)
    scene.sync()
    sensor.update(None, out)
    assert out[PLANE].numpy()[0, 4, 4] == pytest.approx(1.5)


def test_wrong_arrays_are_named(scene, device):
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(8, 8))
    with pytest.raises(ArgumentError, match=r"primId.*float32"):
        sensor.update(None, {"primId": wp.zeros((2, 8, 8), dtype=wp.float32, device=device)})
    with pytest.raises(ArgumentError, match=r"\(1, 8, 8\)"):
        sensor.update(None, {"primId": wp.zeros((1, 8, 8), dtype=wp.int32, device=device)})
    with pytest.raises(ArgumentError, match="view_mask"):
        sensor.update(None, sensor.allocate(["primId"]), view_mask=wp.zeros(5, dtype=wp.bool, device=device))
    with pytest.raises(ArgumentError, match="bytes"):
        hdwarp.SensorCamera(scene, cameras="*", resolution=(20000, 20000)).allocate(["color"])


@pytest.mark.parametrize(
    "options",
    [
        {"ray_function": object()},
        {"ray_mode": hdwarp.RayMode.PRECOMPUTED},
    ],
)
def test_what_later_versions_do_is_refused_by_name(scene, options):
    with pytest.raises(NotSupported, match=next(iter(options))):
        hdwarp.SensorCamera(scene, **({"cameras": "*"} | options))


def test_other_cameras_may_come_and_go(device):
    """The sensor finds its own in their new rows; only where these are others now it asks to be bound anew."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Sphere.Define(stage, "/ball")
    for name, z in (("b", 5.0), ("d", 9.0)):
        UsdGeom.XformCommonAPI(UsdGeom.Camera.Define(stage, f"/{name}")).SetTranslate((0, 0, z))
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/d", resolution=(8, 8))
        out = sensor.allocate(["distance_to_image_plane"])

        def middle() -> float:
            sensor.update(None, out)
            return float(out["distance_to_image_plane"].numpy()[0, 4, 4])

        before = middle()
        UsdGeom.Camera.Define(stage, "/a")
        scene.sync()
        assert middle() == before
        stage.RemovePrim("/a")
        stage.RemovePrim("/b")
        scene.sync()
        assert middle() == before
        assert sensor.compute_view_transforms().numpy()[0, 2] == pytest.approx(0.09)
        stage.RemovePrim("/d")
        scene.sync()
        for look in (middle, sensor.compute_view_transforms):
            with pytest.raises(hdwarp.Error, match=r"/d went.*rebind\(\)"):
                look()


def test_states_without_poses_and_of_other_sizes_are_refused(device):
    from hdwarp.state import State

    stage = Usd.Stage.CreateInMemory()
    UsdPhysics.RigidBodyAPI.Apply(UsdGeom.Xform.Define(stage, "/R").GetPrim())
    UsdGeom.Sphere.Define(stage, "/R/s")
    UsdGeom.Camera.Define(stage, "/R/eye")
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(8, 8))
        out = sensor.allocate(["color"])
        none = wp.zeros(0, dtype=wp.transformf, device=device)
        for state in (State(None, None, 0.0), State(none, None, 0.0), 7):
            with pytest.raises(hdwarp.ArgumentError):
                sensor.update(state, out)
            with pytest.raises(hdwarp.ArgumentError):
                sensor.compute_view_transforms(state)
        with pytest.raises(hdwarp.ArgumentError):
            sensor.compute_view_transforms(scene.state(), out=none)


def test_a_camera_that_cannot_be_rendered_says_why(device):
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Camera.Define(stage, "/cam").CreateFocalLengthAttr(-1.0)
    with hdwarp.Scene(stage, device=device) as scene, pytest.raises(hdwarp.ArgumentError, match="no camera matches.*focalLength is -1"):
        hdwarp.SensorCamera(scene, cameras="/cam")
