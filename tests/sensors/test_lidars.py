"""Sites that look along rays of their own: a lidar in a room, its housing, masks, worlds and what the stage says later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import warp as wp
from pxr import Gf, UsdGeom, UsdPhysics
from tests.sensors.own_rays import ENV, PLANES, RANGE, agree, look, rays_of, same, site, spinning
from tests.sensors.world_stages import random_poses, state_of
from tests.shade.surface_twin import camera_light

import hdwarp
from hdwarp.errors import ArgumentError, Error
from hdwarp.launch import launch
from hdwarp.tables.structs import GIVEN, Peel
from hdwarp.trace.view_rays import view_ray_kernel


def room_ranges(origin: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Distance from inside to the walls."""
    with np.errstate(divide="ignore"):
        return np.min((np.copysign([4.0, 3.0, 1.5], directions) - origin) / np.where(directions == 0, 1e-300, directions), axis=-1)


@pytest.mark.parametrize("options", [{"exclude": "*/robot"}, {"exclude": "*/housing"}, {"clipping_range": (0.16, 100.0)}])
def test_a_lidar_in_a_room(room, options, device):
    """16 x 360 rays of a site on a body, two worlds with other poses: the walls, where they are; the lidar's own housing does not count."""
    with hdwarp.Scene(room, device=device, worlds=[hdwarp.replicate(ENV, count=2)]) as scene:
        poses = random_poses(scene, 3)
        poses[1, :3] += 0.7
        lidar = hdwarp.SensorCamera(scene, sites="*/lidar", **options)
        with pytest.raises(Error, match="set_camera_rays"):
            lidar.allocate([RANGE])
        directions = spinning()
        lidar.set_camera_rays(rays_of(directions))
        assert (lidar.view_count, lidar.height, lidar.width) == (2, 16, 360)
        assert lidar.view_camera.numpy().tolist() == [0, 1] and lidar.view_world.numpy().tolist() == [0, 1]
        assert [scene.sites.label[row] for row in lidar.view_camera.numpy()] == [f"/World/envs/env_{i}/robot/lidar" for i in range(2)]
        state = state_of(scene, poses)
        seen = look(lidar, state, (RANGE, "position", "primId", "distance_to_image_plane", "Ngeom", "color"))
        mounts = lidar.compute_view_transforms(state).numpy()
        for view in range(2):
            turn = np.array(wp.quat_to_matrix(wp.quatf(*mounts[view, 3:].tolist()))).reshape(3, 3).astype(float)
            world = directions @ turn.T
            expected = room_ranges(mounts[view, :3].astype(float), world)
            np.testing.assert_allclose(seen[RANGE][view], expected, rtol=1e-5)
            np.testing.assert_allclose(seen["distance_to_image_plane"][view], expected * -directions[..., 2], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(seen["position"][view], mounts[view, :3] + expected[..., None] * world, atol=2e-5)
            facing = np.abs((seen["Ngeom"][view] * world).sum(axis=-1))
            lit = camera_light(0.5, facing)  # the camera's light shines along the ray
            np.testing.assert_allclose(seen["color"][view, ..., :3], lit, atol=1e-5)
        assert (seen["primId"] == scene.index.prim_paths.index(f"{ENV}/room")).all()
        assert not np.allclose(seen[RANGE][0], seen[RANGE][1])
        bare = hdwarp.SensorCamera(scene, sites="*/lidar")
        bare.set_camera_rays(rays_of(directions))
        assert look(bare, state, (RANGE,))[RANGE].max() < 0.2  # the housing


def test_singly_and_in_packets(scene):
    """The same rays with one origin moved by nothing, and by 1e-30 m, which makes them single rays."""
    state = state_of(scene, random_poses(scene, 5))
    rays = rays_of(spinning(16, 90))
    moved = rays.copy()
    moved[3, 5, 0, 0, 0] = 1e-30
    sensors = [hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand") for _ in range(2)]
    for sensor, given in zip(sensors, (rays, moved), strict=True):
        sensor.set_camera_rays(given)
    ours, theirs = (look(sensor, state) for sensor in sensors)
    assert np.isfinite(ours[RANGE]).mean() > 0.1
    agree(ours, theirs, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("own_origins", [False, True])
def test_the_kernel_for_cuda_finds_the_same(scene, own_origins, device):
    """A thread a ray, run on the CPU: the record that packets, or the kernel with lanes, left."""
    sensor = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand")
    sensor.set_camera_rays(rays_of(spinning(11, 37), (0, 0, 0.1 if own_origins else 0)))
    look(sensor)
    (plan,) = sensor._pass._plans.values()
    tables, record = plan.record._scene(), plan.record.visibility
    before = {name: getattr(record, name).numpy().copy() for name in ("slot", "instance", "key")}
    inputs = [tables["views"], tables["view_count"], GIVEN, sensor.views.rays.columns]
    inputs += [*(tables[name] for name in ("meshes", "instances", "top", "planes")), Peel()]
    launch(view_ray_kernel(tables["kinds"], False, False), 128 * sensor.views.tile_count, inputs, [record], device=device)
    hit = before["instance"] >= 0
    assert hit.any()
    assert np.array_equal(record.instance.numpy(), before["instance"]) and np.array_equal(record.slot.numpy(), before["slot"])
    np.testing.assert_allclose(record.key.numpy()[hit], before["key"][hit], rtol=1e-5)


def test_global_sites_and_masks_and_other_worlds(stage, device):
    """A global site has a view of each world, from where it stands on the stage; what is masked keeps every byte."""
    site(stage, "/World/mast", (0.7, 0.5, 4.0))
    down = rays_of(np.array([[[0, 0, -1.0], [1.0, 0, -1], [-3, 0, -4], [0.02, 0, -1], [0, 0, 1]]]))
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate(ENV, count=3, spacing=3.0)]) as scene:
        sensor = hdwarp.SensorCamera(scene, sites="/World/mast")
        sensor.set_camera_rays(down)
        assert sensor.view_world.numpy().tolist() == [0, 1, 2] and sensor.view_camera.numpy().tolist() == [0, 0, 0]
        seen = look(sensor)
        offset = scene.worlds.origin - scene.worlds.origin[0]
        ball = scene.index.prim_paths.index(f"{ENV}/lamp")
        here = [world for world in range(3) if np.allclose(scene.worlds.origin[world, :2], 0.0)]
        assert [world for world in range(3) if (seen["primId"][world] == ball).any()] == here
        ground = scene.index.prim_paths.index("/World/ground")
        np.testing.assert_allclose(seen[RANGE][seen["primId"] == ground].min(), 4.0, rtol=1e-6)
        assert (seen["primId"][:, 0, 4] == -1).all() and np.isposinf(seen[RANGE][:, 0, 4]).all()
        np.testing.assert_allclose(sensor.compute_view_transforms().numpy()[:, :3], [0.7, 0.5, 4.0] - scene.worlds.origin, atol=1e-6)
        assert len(offset) == 3
        out = sensor.allocate(PLANES)
        for array in out.values():
            array.fill_(7)
        marked = {name: array.numpy().copy() for name, array in out.items()}
        view_mask = wp.array([True, False, True], dtype=wp.bool, device=device)
        sensor.update(None, out, view_mask=view_mask, world_mask=wp.array([True, True, False], dtype=wp.bool, device=device))
        for name, array in out.items():
            assert np.array_equal(array.numpy()[0], seen[name][0], equal_nan=True), name
            assert np.array_equal(array.numpy()[1:], marked[name][1:], equal_nan=True), name
        other = look(sensor, world_indices=wp.array([2, 0, 9], dtype=wp.int32, device=device))
        assert (other["primId"][2] == -1).all() and set(np.unique(other["worldId"][:2])) <= {-1, 0, 2}
        some = hdwarp.SensorCamera(scene, sites="/World/mast", worlds=[2])
        some.set_camera_rays(down)
        same({name: plane[0] for name, plane in look(some).items()}, {name: plane[2] for name, plane in seen.items()})
        tiles = sensor.tiled(out, columns=3)
        assert tiles[RANGE].shape == (1, 15)


def test_sites_follow_the_stage(room, device):
    with hdwarp.Scene(room, device=device, worlds=[hdwarp.replicate(ENV, count=2)]) as scene:
        lidar = hdwarp.SensorCamera(scene, sites="*/lidar*", exclude="*/robot")
        lidar.set_camera_rays(rays_of(spinning(4, 8)))
        before = look(lidar, aovs=(RANGE,))[RANGE]
        room.GetPrimAtPath(f"{ENV}/robot/lidar").GetAttribute("xformOp:translate").Set(Gf.Vec3d(0.02, 0.01, 0.53))
        scene.sync()
        mounts = lidar.compute_view_transforms().numpy()
        assert mounts[:, 2] == pytest.approx([0.53, 0.53])
        assert not np.allclose(look(lidar, aovs=(RANGE,))[RANGE], before)
        site(room, "/World/aaa", (0, 0, 1))  # another one before it: rows move, the sensor's are found
        scene.sync()
        now = look(lidar, aovs=(RANGE,))[RANGE]
        assert lidar.view_camera.numpy().tolist() == [1, 2]
        site(room, f"{ENV}/robot/lidar_too", (0, 0, -0.3))
        scene.sync()
        with pytest.raises(Error, match=r"sites are others now.*lidar_too.*rebind\(\)"):
            lidar.update(None, lidar.allocate([RANGE]))
        lidar.rebind()
        seen = look(lidar, aovs=(RANGE,))[RANGE]  # the newcomer shares the rays
        assert lidar.view_count == 4
        assert np.array_equal(seen[[0, 2]], now)
        room.RemovePrim(f"{ENV}/robot/lidar_too")
        scene.sync()
        with pytest.raises(Error, match=r"went.*rebind\(\)"):
            lidar.compute_view_transforms()
        lidar.rebind()
        assert np.array_equal(look(lidar, aovs=(RANGE,))[RANGE], now)


def test_collision_geometry_and_exclusion_by_site(room, device):
    hull = UsdGeom.Cube.Define(room, f"{ENV}/hull")
    hull.CreateSizeAttr(2.0)
    hull.CreatePurposeAttr("guide")
    UsdPhysics.CollisionAPI.Apply(hull.GetPrim())
    site(room, f"{ENV}/robot/lidar_2", (0, 0, 0.05))
    with hdwarp.Scene(room, device=device, worlds=[hdwarp.replicate(ENV, count=2)]) as scene:

        def seen(**options) -> list[set[str]]:
            sensor = hdwarp.SensorCamera(scene, sites="*/lidar*", **options)
            sensor.set_camera_rays(rays_of(spinning(8, 40)))
            return [{scene.prim_path(int(i)).split("/")[-1] for i in np.unique(view) if i >= 0} for view in look(sensor)["primId"]]

        assert seen() == [{"housing"}] * 4
        assert seen(geometry="collision") == [{"hull"}] * 4
        assert seen(exclude={"*/lidar": "*/housing"}) == [{"room"}, {"housing"}] * 2
        assert seen(geometry="all", exclude="*/robot") == [{"hull"}] * 4
        with pytest.raises(ArgumentError, match="none of the sensor's"):
            seen(exclude={"*/nothing": "*/housing"})


def test_the_example_of_the_readme(monkeypatch):
    """A lidar on a mast in the workcell: ranges where there is something, -1 elsewhere."""
    root = Path(__file__).resolve().parents[2]
    text = (root / "README.md").read_text(encoding="utf8")
    code = text[text.index("### Rays of your own") :].split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(root)
    names: dict = {}
    exec(code, names)
    ranges = names["out"]["distance_to_camera"].numpy()
    assert ranges.shape == (1, 16, 360)
    assert ((ranges == -1) | (ranges > 0.3)).all() and 0.3 < (ranges > 0).mean() < 1
    assert (names["out"]["primId"].numpy() >= 0).sum() == (ranges > 0).sum()
