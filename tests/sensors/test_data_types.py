"""Data types of the sensor classes: each with the sign its documents give it."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Usd, UsdGeom

import hdwarp
from hdwarp.aovs.pixel_runs import jobs_per_row
from hdwarp.errors import ArgumentError
from hdwarp.sensors.conversions import data_type_kernel
from hdwarp.sensors.data_types import data_type
from hdwarp.tables.structs import ViewRow


def test_motion_vectors_count_left_and_up():
    """Right answer 52: a camera that moves to the right sends points left: -10 px of `motion`, +10 of `motion_vectors`."""
    row = data_type("motion_vectors")
    assert row.aov == "motion"
    values = row.values(np.array([[[-10.0, 4.0], [0.0, 0.0]]], np.float32))
    assert values.dtype == np.float32 and values.tolist() == [[[10.0, -4.0], [0.0, 0.0]]]
    assert not np.signbit(values[0, 1]).any()


def test_unknown_data_types_are_refused_with_what_there_is():
    with pytest.raises(ArgumentError, match="motion_vectors"):
        data_type("motion_vector")


# -- on the device ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def scene(device):
    """K 500, 640x480. A wall at depth 5, on the right half of the image alone; `/right`'s camera has moved 0.1 m in x, `/still`'s not."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    for name in ("right", "still"):
        camera = UsdGeom.Camera.Define(stage, f"/{name}")
        camera.CreateFocalLengthAttr(50.0)
        camera.CreateHorizontalApertureAttr(64.0)
        camera.CreateVerticalApertureAttr(48.0)
        camera.CreateClippingRangeAttr(Gf.Vec2f(0.01, 1000))
        camera.AddTranslateOp().Set(Gf.Vec3d(0))
    wall = UsdGeom.Mesh.Define(stage, "/wall")
    wall.CreatePointsAttr([(0.1, -50, -5), (50, -50, -5), (50, 50, -5), (0.1, 50, -5)])
    wall.CreateFaceVertexCountsAttr([4])
    wall.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    with hdwarp.Scene(stage, device=device) as scene:
        scene.keep_previous()
        UsdGeom.Xformable(stage.GetPrimAtPath("/right")).GetOrderedXformOps()[0].Set(Gf.Vec3d(0.1, 0, 0))
        scene.sync()
        yield scene


def sensor_of(scene, cameras="/right", resolution=(640, 480), **options):
    return hdwarp.SensorCamera(scene, cameras=cameras, resolution=resolution, **options)


def bits(array):
    return array.numpy().view(np.uint32)


def test_a_camera_that_moves_to_the_right_sends_points_left(scene):
    """Right answer 52, negated: K 500, 0.1 m, depth 5 is +10 px to the left; nothing where nothing is seen."""
    sensor = sensor_of(scene)
    out = sensor.allocate(["motion_vectors"])
    assert out["motion_vectors"].dtype is wp.vec2f and out["motion_vectors"].shape == (1, 480, 640)
    out["motion_vectors"].fill_(77.0)
    sensor.update(None, out)
    vectors = out["motion_vectors"].numpy()[0]
    np.testing.assert_allclose(vectors[:, 320:], np.broadcast_to((10.0, 0.0), (480, 320, 2)), atol=1e-5)
    assert np.all(bits(out["motion_vectors"])[0, :, :320] == 0)  # +0 to the bit, as every component that is zero
    assert not np.signbit(vectors[vectors == 0.0]).any()


@pytest.mark.parametrize("names", [["motion", "motion_vectors"], ["motion_vectors", "primId", "motion"], ["color", "motion_vectors"]])
def test_beside_motion_both_come_from_one_trace(names, scene, monkeypatch):
    sensor = sensor_of(scene, "*", resolution=(61, 47), samples=4)
    out, plain = sensor.allocate(names), sensor.allocate(["motion"])
    sensor.update(None, plain)
    given = []
    execute = sensor._pass.execute
    monkeypatch.setattr(sensor._pass, "execute", lambda views, planes, **how: (given.append(list(planes)), execute(views, planes, **how)))
    for _ in range(2):  # the second time into what the first has left there
        sensor.update(None, out)
        motion = plain["motion"].numpy()
        assert np.abs(motion[0]).max() == pytest.approx(0.1 * 61 / 64 * 50 / 5, rel=1e-5) and np.all(motion[1] == 0.0)
        assert np.array_equal(bits(out["motion_vectors"]), (0.0 - motion).view(np.uint32))
        if "motion" in names:
            assert np.array_equal(bits(out["motion"]), bits(plain["motion"]))
    assert given == [[*(name for name in names if not name.startswith("motion")), "motion"]] * 2


@pytest.mark.parametrize("names", [["motion_vectors"], ["motion", "motion_vectors"]])
@pytest.mark.parametrize("mask", ["view_mask", "world_mask"])
def test_views_that_are_off_keep_their_bytes(names, mask, scene, device):
    """Any bytes, NaN and -0 among them; the view that is on is not turned twice either."""
    sensor = sensor_of(scene, "*", resolution=(61, 47))
    out, alone = sensor.allocate(names), sensor.allocate(names)
    sensor.update(None, alone)
    noise = np.random.default_rng(1).integers(0, 2**32, (2, 47, 61, 2), dtype=np.uint32)
    noise[:, 0, :4] = 0x80000000, 0xFFC00001
    for array in out.values():
        array.assign(noise.view(np.float32))
        assert np.array_equal(bits(array), noise)
    on = [True, False] if mask == "view_mask" else [False]
    for _ in range(2):
        sensor.update(None, out, **{mask: wp.array(on, dtype=wp.bool, device=device)})
    for name, array in out.items():
        assert np.array_equal(bits(array)[1], noise[1]), name
        assert np.array_equal(bits(array)[0], bits(alone[name])[0] if mask == "view_mask" else noise[0]), name


def test_clear_values_are_each_plane_s_own_and_not_negated(scene):
    sensor = sensor_of(scene, clear={"motion_vectors": (3.0, -4.0)})
    out = sensor.allocate(["motion", "motion_vectors"])

    def unseen():
        vectors, motion = (out[name].numpy()[0] for name in ("motion_vectors", "motion"))
        np.testing.assert_allclose(vectors[:, 320:], np.broadcast_to((10.0, 0.0), (480, 320, 2)), atol=1e-5)
        assert np.array_equal(motion[:, 320:], 0.0 - vectors[:, 320:])
        assert len(np.unique(vectors[:, :320].reshape(-1, 2), axis=0)) == 1
        return vectors[0, 0].tolist(), motion[0, 0].tolist()

    sensor.update(None, out)
    assert unseen() == ([3.0, -4.0], [0.0, 0.0])
    sensor.update(None, out, clear={"motion": 5.0, "motion_vectors": 0.0})
    assert unseen() == ([0.0, 0.0], [5.0, 5.0])
    vectors = {"motion_vectors": out["motion_vectors"]}
    sensor.update(None, vectors, clear={"motion_vectors": np.nan})
    assert np.isnan(out["motion_vectors"].numpy()[0, :, :320]).all()


def test_later_updates_allocate_nothing_and_give_the_same_bits(scene, monkeypatch):
    """Device memory, that is. Where nothing moves there is no -0."""
    sensor = sensor_of(scene, "*", resolution=(61, 47))
    out = sensor.allocate(["motion_vectors", "primId"])
    sensor.update(None, out)
    first = bits(out["motion_vectors"]).copy()
    with monkeypatch.context() as patch:
        patch.setattr(type(scene.device.get_allocator()), "allocate", lambda *_: pytest.fail("memory was allocated"))
        with pytest.raises(pytest.fail.Exception):
            wp.zeros(1, device=scene.device)
        sensor.update(None, out)
    assert np.array_equal(bits(out["motion_vectors"]), first)
    scene.sync()
    sensor.update(None, out)
    assert out["primId"].numpy().max() == 0 and not bits(out["motion_vectors"]).any()


def test_one_lane_and_many_give_the_same_bits(device):
    """As CUDA does it, and as the CPU does: pixels of an image that starts anywhere on the grid of tiles."""
    view = ViewRow()
    view.x0, view.y0, view.width, view.height = -21, -3, 37, 11
    view.tile_x0, view.tile_y0, view.tiles_x, view.tiles_y = -2, -1, 3, 2
    views = wp.array([view], dtype=ViewRow, device=device)
    values = np.random.default_rng(2).normal(size=(11 * 37, 2)).astype(np.float32)
    values[::5], values[1::5], values[2::5] = 0.0, -0.0, -3.4028234663852886e38
    source = wp.array(values.ravel(), dtype=wp.float32, device=device)
    expected = (0.0 - values).astype(np.float32)
    expected[2::5] = 7.0
    for lanes in (1, 16):
        if lanes > 1 and device != "cpu":
            continue
        out = wp.zeros(11 * 37, dtype=wp.vec2f, device=device)
        jobs = jobs_per_row(37, lanes)
        arguments = [0, 1, 11 * jobs, views, jobs, 11, -1.0, wp.vec2f(7.0, 7.0), source]
        wp.launch(data_type_kernel(lanes), dim=11 * jobs, inputs=arguments, outputs=[out], device=device)
        assert np.array_equal(bits(out), expected.view(np.uint32))


def test_what_is_wrong_is_named(scene, device):
    sensor = sensor_of(scene, resolution=(8, 6))
    with pytest.raises(ArgumentError, match=r"motion_vector'.*data types: motion_vectors"):
        sensor.allocate(["motion_vector"])
    with pytest.raises(ArgumentError, match=r"out\['motion_vectors'\] is float32.*vec2f"):
        sensor.update(None, {"motion_vectors": wp.zeros((1, 6, 8), dtype=wp.float32, device=device)})
    out = sensor.allocate(["motion_vectors"])
    with pytest.raises(ArgumentError, match="motion_vectors: a clear value of 3 numbers"):
        sensor.update(None, out, clear={"motion_vectors": (1, 2, 3)})
    with pytest.raises(ArgumentError, match="clear names motion, .*: motion_vectors"):
        sensor.update(None, out, clear={"motion": 1.0})
    with pytest.raises(ArgumentError, match="clear names motion, .*: motion_vectors"):
        sensor_of(scene, resolution=(8, 6), clear={"motion": 1.0}).update(None, out)
    with pytest.raises(ArgumentError, match="clear is a list"):
        sensor.update(None, out, clear=["motion_vectors"])
