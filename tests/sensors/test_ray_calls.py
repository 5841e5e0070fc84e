"""Rays given again and again: unbound sensors, what is wrong with rays, and the loop of a simulator."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from tests.sensors.own_rays import ENV, PLANES, RANGE, agree, look, on_device, pinhole, rays_of, same, spinning
from tests.sensors.world_stages import add_ground, empty_stage, random_poses, state_of

import hdwarp
from hdwarp.errors import ArgumentError, Error, NotSupported


def test_an_unbound_sensor_is_a_bound_one(scene, device):
    state = state_of(scene, random_poses(scene, 4))
    bound = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand")
    rays = rays_of(spinning(8, 24))
    bound.set_camera_rays(rays)
    expected = look(bound, state)
    poses, worlds = bound.compute_view_transforms(state), wp.array([0, 1, 2], dtype=wp.int32, device=device)
    for given, resolution in ((rays, None), (on_device(rays, device), (24, 8)), (np.stack([rays] * 3), (24, 8))):
        free = hdwarp.SensorCamera(scene, resolution=resolution, exclude="*/hand")
        call = {"camera_transforms": poses, "camera_rays": given, "world_indices": worlds}
        with pytest.raises(Error, match="first update"):
            _ = free.view_count
        if resolution is None:
            with pytest.raises(Error, match="resolution="):
                free.allocate([RANGE], view_count=3)
            out = bound.allocate(PLANES)
        else:
            with pytest.raises(Error, match="view_count="):
                free.allocate([RANGE])
            out = free.allocate(PLANES, view_count=3)
        for name in call:
            with pytest.raises(ArgumentError, match=f"missing: {name}"):
                free.update(state, out, **{**call, name: None})
        free.update(state, out, **call)
        agree({name: array.numpy() for name, array in out.items()}, expected)  # poses in float32
        assert free.view_count == 3 and (free.width, free.height) == (24, 8)
        with pytest.raises(ArgumentError, match="3 views"):
            free.update(state, out, **{**call, "camera_transforms": wp.zeros(2, dtype=wp.transformf, device=device)})
        with pytest.raises(ArgumentError, match="world_indices"):
            free.update(state, out, **{**call, "world_indices": wp.zeros(2, dtype=wp.int32, device=device)})
        for wrong in (free.set_camera_rays, lambda rays, free=free: free.compute_view_transforms()):
            with pytest.raises(Error, match="unbound"):
                wrong(rays)
        free.update(state, out, **{**call, "world_indices": wp.array([2, 2, 2], dtype=wp.int32, device=device)})
        assert set(np.unique(out["worldId"].numpy())) <= {-1, 2}


def test_wrong_rays_are_named(scene, device):
    cameras = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(8, 6))
    good = rays_of(pinhole(8, 6))
    cases = [
        (good[:5], r"\(5, 8, 1, 2, 3\).*\(6, 8, 1, 2\)"),
        (np.stack([good] * 2), r"\(2, 6, 8, 1, 2, 3\).*3 \((cameras|views)\)"),
        (np.repeat(good, 4, axis=2), "4 rays a pixel.*samples=1"),
        (good[..., :1, :], "expected"),
        (good.astype(str), "numbers"),
        ("rays", "numbers"),
        (None, "numbers"),
        (wp.zeros((6, 8, 1, 2), dtype=wp.vec4f, device=device), "vec3f"),
        (wp.zeros((6, 8, 1, 2, 3)[:4], dtype=wp.float32, device=device), "vec3f"),
        (wp.zeros((6, 8, 2), dtype=wp.vec3f, device=device), r"\(6, 8, 2\)"),
        (wp.zeros((12, 8, 1, 2), dtype=wp.vec3f, device=device), r"\(12, 8, 1, 2\).*3 \((cameras|views)\)"),
        (wp.zeros((7, 8, 1, 2), dtype=wp.vec3f, device=device), r"\(7, 8, 1, 2\)"),
        (wp.zeros((6, 8, 1, 4), dtype=wp.vec3f, device=device)[:, :, :, ::2], "contiguous"),
        (np.zeros((0, 8, 1, 2, 3)), "expected"),
    ]
    out = cameras.allocate([RANGE])
    for rays, match in cases:
        with pytest.raises(ArgumentError, match=match):
            cameras.set_camera_rays(rays)
        if rays is not None:
            with pytest.raises(ArgumentError, match=match):
                cameras.update(None, out, camera_rays=rays)
    with pytest.raises(ArgumentError, match=r"no camera matches '\*/nothing'"):
        cameras.set_camera_rays(good, cameras="*/nothing")
    with pytest.raises(ArgumentError, match="not from both"):
        hdwarp.SensorCamera(scene, cameras="*", sites="*")
    with pytest.raises(ArgumentError, match=r"no site matches '/nothing'; there are: /World/envs/env_0/robot/hand/tip"):
        hdwarp.SensorCamera(scene, sites="/nothing")
    with pytest.raises(ArgumentError, match="bytes"):
        hdwarp.SensorCamera(scene, sites="*").set_camera_rays(np.broadcast_to(np.float32(0), (20000, 20000, 1, 2, 3)))
    sites = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand", resolution=(8, 6))
    with pytest.raises(Error, match="no lens"):
        sites.update(None, sites.allocate([RANGE]))
    with pytest.raises(NotSupported, match="sites"):
        sites.set_world_poses(np.zeros((3, 3)), np.tile([1.0, 0, 0, 0], (3, 1)))
    cameras.set_camera_rays(good)
    sites.set_camera_rays(good)
    for sensor in (cameras, sites):
        for name, error, match in (("depth", ArgumentError, "planar clip"), ("motion", NotSupported, "motion")):
            with pytest.raises(error, match=match):
                sensor.update(None, sensor.allocate([name]))
    with pytest.raises(NotSupported, match="motion"):
        sites.allocate(["motion_vectors"])


@pytest.mark.parametrize("way", ["shared", "each", "call"])
def test_updates_allocate_and_launch_the_same_for_any_number_of_views(room, way, device, monkeypatch):
    counts = []
    for worlds in (1, 256):
        with hdwarp.Scene(room, device=device, worlds=[hdwarp.replicate(ENV, count=worlds)]) as scene:
            sensor = hdwarp.SensorCamera(scene, sites="*/lidar", resolution=(12, 4), exclude="*/robot")
            bundle = rays_of(spinning(4, 12))
            rays = on_device(bundle if way == "shared" else np.stack([bundle] * worlds), device)
            sensor.set_camera_rays(rays)
            out, state = sensor.allocate([RANGE, "primId", "color", "normal"]), scene.state()

            def step(sensor=sensor, rays=rays, out=out, state=state) -> None:
                if way == "call":
                    sensor.update(state, out, camera_rays=rays)
                else:
                    sensor.set_camera_rays(rays)
                    sensor.update(state, out)

            step()
            step()
            addresses = sensor.views.rays.directions.ptr, sensor.views.rays.origins.ptr, id(sensor.views)
            counter = {"launches": 0, "arrays": 0}
            allocator = type(scene.device.get_allocator())
            run, allocate = wp.launch, allocator.allocate if hasattr(allocator, "allocate") else allocator.alloc

            def counted_launch(*args, counter=counter, run=run, **options):
                counter["launches"] += 1
                return run(*args, **options)

            def counted_allocate(*args, counter=counter, allocate=allocate):
                counter["arrays"] += 1
                return allocate(*args)

            with monkeypatch.context() as patch:
                patch.setattr(wp, "launch", counted_launch)
                patch.setattr(allocator, allocate.__name__, counted_allocate)
                wp.zeros(4, dtype=wp.int32, device=device)
                assert counter["arrays"] == 1  # it counts
                step()
                step()
            assert (sensor.views.rays.directions.ptr, sensor.views.rays.origins.ptr, id(sensor.views)) == addresses
            counts.append((counter["launches"], counter["arrays"]))
    assert counts[0] == counts[1]
    assert counts[0][1] == 1


def test_rays_set_again_take_effect_in_place(scene, device):
    sensor = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand", resolution=(12, 4))
    one, other = (on_device(rays_of(spinning(4, 12)[::step]), device) for step in (1, -1))
    sensor.set_camera_rays(one)
    first = look(sensor)
    views = sensor.views
    sensor.set_camera_rays(other)
    assert sensor.views is views
    flipped = look(sensor)
    agree({name: plane[:, ::-1] for name, plane in flipped.items()}, first)
    moved = rays_of(spinning(4, 12), (0.0, 0.0, 0.5))  # no longer from one point
    sensor.set_camera_rays(on_device(moved, device))
    assert sensor.views is views
    fresh = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand", resolution=(12, 4))
    fresh.set_camera_rays(moved)
    same(look(sensor), look(fresh))
    sensor.set_camera_rays(one)
    same(look(sensor), first)


def test_same_bits_for_any_number_of_views(scene):
    """A view among others is that view alone."""
    together = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand")
    alone = hdwarp.SensorCamera(scene, sites="*env_1*/tip", exclude="*/hand")
    rays = rays_of(spinning(10, 50))
    for sensor in (together, alone):
        sensor.set_camera_rays(rays)
    state = state_of(scene, random_poses(scene, 6))
    ours, theirs = look(together, state), look(alone, state)
    same({name: plane[0] for name, plane in theirs.items()}, {name: plane[1] for name, plane in ours.items()})


def test_a_scene_without_sites(device):
    stage = empty_stage()
    add_ground(stage)
    with hdwarp.Scene(stage, device=device) as scene, pytest.raises(ArgumentError, match="no site matches '\\*'; there are: none"):
        hdwarp.SensorCamera(scene, sites="*")
