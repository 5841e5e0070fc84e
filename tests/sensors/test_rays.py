"""Rays of one's own: cameras, sites and unbound sensors that look along rays given one by one, against closed forms and the lenses."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade
from tests.sensors.world_stages import AOVS, add_environment, add_ground, add_overview, body, camera, empty_stage, random_poses, state_of

import hdwarp
from hdwarp.errors import ArgumentError, Error, NotSupported
from hdwarp.launch import launch
from hdwarp.tables.structs import GIVEN, Peel
from hdwarp.trace.view_rays import view_ray_kernel

ENV = "/World/envs/env_0"
RANGE = "distance_to_camera"
PLANES = (*AOVS, RANGE, "cameraDepth", "position", "Peye", "Neye", "rgba8", "albedo", "instanceRow")
IDS = ("primId", "instanceId", "elementId", "triangleId", "materialId", "bodyId", "worldId", "instanceRow")


def rays_of(directions: np.ndarray, origins: object = 0.0) -> np.ndarray:
    """(..., H, W, 1, 2, 3) of directions (..., H, W, 3)."""
    directions = np.asarray(directions, float)
    return np.stack([np.broadcast_to(origins, directions.shape), directions], axis=-2)[..., None, :, :]


def pinhole(width: int, height: int, focal: float = 18.0) -> np.ndarray:
    """(H, W, 3): the rays through the pixels' centres of `world_stages.camera`, not unit."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    x, y = (x / width - 0.5) * 24 / focal, (0.5 - y / height) * 24 / focal * height / width
    return np.stack([x, y, -np.ones_like(x)], axis=-1)


def spinning(channels: int = 16, steps: int = 360) -> np.ndarray:
    """(channels, steps, 3): x forward, y left, z up; from 15 degrees down to 15 up."""
    elevation, azimuth = np.meshgrid(np.radians(np.linspace(-15, 15, channels)), np.radians(np.arange(steps)), indexing="ij")
    return np.stack([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)], axis=-1)


def on_device(rays: np.ndarray, device) -> wp.array:
    """(H, W, S, 2) or (N * H, W, S, 2) vec3f."""
    return wp.array(rays.reshape(-1, *rays.shape[-4:]).astype(np.float32), dtype=wp.vec3f, device=device)


def site(stage: Usd.Stage, path: str, at=(0.0, 0.0, 0.0), turn: float = 0.0) -> None:
    xform = UsdGeom.Xform.Define(stage, path)
    xform.AddTranslateOp().Set(Gf.Vec3d(*at))
    xform.AddRotateZOp().Set(turn)
    xform.GetPrim().AddAppliedSchema("HdWarpSiteAPI")


def look(sensor, state=None, aovs=None, **options) -> dict[str, np.ndarray]:
    """Planes as NumPy arrays; all there are unless told."""
    aovs = [name for name in PLANES if not name.startswith("primvars") or sensor.scene.tables.primvar_names()] if aovs is None else aovs
    out = sensor.allocate(aovs)
    sensor.update(state, out, **options)
    return {name: array.numpy().copy() for name, array in out.items()}


def agree(ours: dict, theirs: dict, *, rtol: float = 1e-6, atol: float = 2e-5) -> None:
    """Equal ids; distances within ``rtol`` (100 times that where a ray grazes), all else within ``atol``."""
    grazes = np.zeros(1, bool)
    if "Neye" in theirs and "Peye" in theirs:
        with np.errstate(invalid="ignore"):
            grazes = np.abs((theirs["Neye"] * theirs["Peye"]).sum(axis=-1)) <= 0.1 * np.linalg.norm(theirs["Peye"], axis=-1)
    for name in ours:
        if name in IDS:
            assert np.array_equal(ours[name], theirs[name]), name
        elif name in (RANGE, "distance_to_image_plane", "cameraDepth"):
            assert np.array_equal(np.isfinite(ours[name]), np.isfinite(theirs[name])), name
            with np.errstate(invalid="ignore"):
                error = np.abs(ours[name] - theirs[name]) / np.abs(theirs[name])
            assert not (error > np.where(grazes, 100 * rtol, rtol)).any(), name
        elif name == "rgba8":
            assert np.abs(ours[name].astype(int) - theirs[name]).max() <= 1
        else:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-6, atol=atol, err_msg=name)


def same(ours: dict, theirs: dict) -> None:
    for name in ours:
        assert np.array_equal(ours[name], theirs[name], equal_nan=True), name


@pytest.fixture
def stage() -> Usd.Stage:
    stage = empty_stage()
    add_ground(stage)
    add_overview(stage)
    add_environment(stage, ENV)
    return stage


@pytest.fixture
def scene(stage, device):
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate(ENV, count=3)]) as scene:
        yield scene


# -- the same as a lens ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", ["planar", "radial"])
@pytest.mark.parametrize("clipping_range", [None, (1.0, 2.2)])
def test_rays_of_the_pixels_centres_are_the_pinhole_camera(scene, clip, clipping_range):
    """From one point in packets (radial), singly (planar): the same ids, the same depth within 1e-6."""
    state, options = state_of(scene, random_poses(scene, 1)), {"resolution": (50, 38), "clip": clip, "clipping_range": clipping_range}
    lens = hdwarp.SensorCamera(scene, cameras=["*/wrist", "*/above"], **options)
    own = hdwarp.SensorCamera(scene, cameras=["*/wrist", "*/above"], **options)
    own.set_camera_rays(rays_of(pinhole(50, 38)))
    ours, theirs = look(own, state), look(lens, state)
    assert len(np.unique(ours["primId"])) > (3 if clipping_range is None else 2)
    agree(ours, theirs)


def test_rays_with_origins_are_the_orthographic_camera(stage, device):
    prim = camera(stage, f"{ENV}/flat", (0.0, 0.0, 3.0))
    prim.CreateProjectionAttr("orthographic")
    prim.GetHorizontalApertureAttr().Set(20.0)  # tenths of a scene unit
    prim.GetVerticalApertureAttr().Set(15.0)
    y, x = np.mgrid[0:30, 0:40] + 0.5
    origins = np.stack([(x / 40 - 0.5) * 2.0, (0.5 - y / 30) * 1.5, 0 * x], axis=-1)
    with hdwarp.Scene(stage, device=device) as scene:
        lens = hdwarp.SensorCamera(scene, cameras="*/flat", resolution=(40, 30))
        own = hdwarp.SensorCamera(scene, cameras="*/flat", resolution=(40, 30))
        own.set_camera_rays(rays_of(np.broadcast_to([0, 0, -1.0], origins.shape), origins))
        agree(look(own), look(lens))


@pytest.mark.parametrize("scale", [(1, 1, 1), (-1, 1, 1), (2, 1, 0.5)])
def test_scaled_and_mirrored_cameras_and_clipping_planes(scale, device):
    """Directions follow the whole matrix, distances are those of the world, and clipping planes cut, as with a lens."""
    stage = empty_stage()
    add_environment(stage, "/World/env", cameras=False)
    add_ground(stage)
    prim = camera(stage, "/World/camera", (0.2, -0.1, 2.0))
    prim.AddScaleOp().Set(Gf.Vec3f(*scale))
    with hdwarp.Scene(stage, device=device) as scene:
        lens, own = (hdwarp.SensorCamera(scene, cameras="*", resolution=(33, 25), clip="radial") for _ in range(2))
        own.set_camera_rays(rays_of(pinhole(33, 25)))
        agree(look(own), look(lens))
        prim.CreateClippingPlanesAttr([Gf.Vec4f(1, 0, 0.2, 0.4), Gf.Vec4f(0, 0, -1, -1.2 * scale[2])])
        scene.sync()
        ours, theirs = look(own), look(lens)
        assert 0.02 < (ours["primId"] < 0).mean() < 0.9
        agree(ours, theirs)


def test_cut_outs_are_looked_through(device):
    """Two sheets that are not there before a ball, all three in packets' reach; and behind a half-cut mesh the ground."""
    stage = empty_stage()
    material = UsdShade.Material.Define(stage, "/World/clear")
    shader = UsdShade.Shader.Define(stage, "/World/clear/surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    shader.CreateInput("opacity", Sdf.ValueTypeNames.Float).Set(0.1)
    shader.CreateInput("opacityThreshold", Sdf.ValueTypeNames.Float).Set(0.5)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    for i, height in enumerate((1.0, 1.5)):
        sheet = UsdGeom.Mesh.Define(stage, f"/World/sheet_{i}")
        sheet.CreatePointsAttr([(-1, -1, height), (1, -1, height), (1, 1, height), (-1, 1, height)])
        sheet.CreateFaceVertexCountsAttr([4])
        sheet.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
        UsdShade.MaterialBindingAPI.Apply(sheet.GetPrim()).Bind(material)
    UsdGeom.Sphere.Define(stage, "/World/ball").CreateRadiusAttr(0.3)
    camera(stage, "/World/camera", (0, 0, 3.0))
    with hdwarp.Scene(stage, device=device) as scene:
        lens, own = (hdwarp.SensorCamera(scene, cameras="*", resolution=(33, 25)) for _ in range(2))
        own.set_camera_rays(rays_of(pinhole(33, 25)))
        ours = look(own)
        agree(ours, look(lens))
        assert set(np.unique(ours["primId"])) == {-1, scene.index.prim_paths.index("/World/ball")}


def test_several_rays_a_pixel(scene):
    """The first is that of all planes but colour, which is the mean of all: here of the lens's own 3 x 3 grid, to rounding."""
    lens = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(24, 18), samples=9)
    own = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(24, 18), samples=9)
    y, x = np.mgrid[0:18, 0:24]
    rays = np.zeros((18, 24, 9, 2, 3))
    for sample, (dx, dy) in enumerate(own._pass._grid):
        right, up = ((x + 0.5 + dx) / 24 - 0.5) * 24 / 18, (0.5 - (y + 0.5 + dy) / 18)
        rays[:, :, sample, 1] = np.stack([right, up, -np.ones_like(right)], axis=-1)
    own.set_camera_rays(rays)
    agree(look(own, aovs=("color", "rgba8", "primId", RANGE)), look(lens, aovs=("color", "rgba8", "primId", RANGE)), atol=1e-4)


# -- lidars -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def room():
    """A room of 8 x 6 x 3 m about the origin, a robot in it in a housing of a ball, a lidar at the ball's middle."""
    stage = empty_stage()
    walls = UsdGeom.Cube.Define(stage, f"{ENV}/room")
    walls.CreateSizeAttr(1.0)
    walls.AddScaleOp().Set(Gf.Vec3f(8, 6, 3))
    robot = body(stage, f"{ENV}/robot", (0.5, -0.25, 0.0))
    UsdGeom.Sphere.Define(stage, f"{robot}/housing").CreateRadiusAttr(0.1)
    site(stage, f"{robot}/lidar", (0.02, 0.01, 0.03), turn=30.0)
    return stage


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
            np.testing.assert_allclose(seen["color"][view, ..., 0], 0.5 * facing, atol=1e-5)  # the headlight shines along the ray
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


# -- what rays may be -----------------------------------------------------------------------------------------------------------------


def test_parallel_rays_against_a_slope(device):
    """A line of 20 parallel rays, each from its own place, onto the plane z = x / 2: from (x, 0, 3) down it is 3 - x / 2 away."""
    stage = empty_stage()
    plane = UsdGeom.Mesh.Define(stage, "/World/slope")
    plane.CreatePointsAttr([(-9, -9, -4.5), (9, -9, 4.5), (9, 9, 4.5), (-9, 9, -4.5)])
    plane.CreateFaceVertexCountsAttr([4])
    plane.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    site(stage, "/World/rail", (0.0, 0.0, 3.0))
    x = np.linspace(-5, 5, 20)
    origins = np.stack([x, 0.1 * x, np.full(20, 0.25)], axis=-1)[None]
    down = np.broadcast_to([0, 0, -2.0], (1, 20, 3))
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, sites="*")
        sensor.set_camera_rays(rays_of(down, origins))
        seen = look(sensor)
        np.testing.assert_allclose(seen[RANGE][0, 0], 3.25 - x / 2, rtol=1e-6)
        np.testing.assert_allclose(seen["distance_to_image_plane"][0, 0], 3 - x / 2, rtol=1e-6)  # from the sensor's own plane
        np.testing.assert_allclose(seen["cameraDepth"][0, 0], 3 - x / 2, rtol=1e-6)
        np.testing.assert_allclose(seen["Peye"][0, 0], np.stack([x, 0.1 * x, x / 2 - 3], axis=-1), atol=1e-6)
        np.testing.assert_allclose(seen["position"][0, 0], np.stack([x, 0.1 * x, x / 2], axis=-1), atol=1e-6)
        np.testing.assert_allclose(seen["Ngeom"][0, 0], np.tile([-1, 0, 2] / np.sqrt(5), (20, 1)), atol=1e-6)
        ranged = hdwarp.SensorCamera(scene, sites="*", clipping_range=(2.0, 4.0))
        ranged.set_camera_rays(rays_of(down, origins))
        t = 3.25 - x / 2
        np.testing.assert_allclose(look(ranged)[RANGE][0, 0], np.where((t >= 2) & (t <= 4), t, np.inf), rtol=1e-6)
        planar = hdwarp.SensorCamera(scene, sites="*", clipping_range=(2.0, 4.0), clip="planar")
        planar.set_camera_rays(rays_of(down, origins))
        depth = 3 - x / 2
        np.testing.assert_allclose(look(planar)[RANGE][0, 0], np.where((depth >= 2) & (depth <= 4), t, np.inf), rtol=1e-6)


def test_no_ray_is_clear_in_every_plane(scene):
    directions = spinning(9, 21)
    directions[::2, ::3] = 0.0
    sensor = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand", resolution=(21, 9), clear={RANGE: -1.0})
    sensor.set_camera_rays(rays_of(directions))
    seen = look(sensor)
    nothing = (directions == 0).all(axis=-1)
    for name, plane in seen.items():
        clear = {RANGE: -1.0, "distance_to_image_plane": np.inf, "cameraDepth": np.inf, "position": np.inf, "Peye": np.inf}
        expected = -1 if name in IDS else clear.get(name, 0)
        assert (plane[:, nothing] == expected).all(), name
    assert (seen["primId"][:, ~nothing] >= 0).any(axis=1).all()


def test_lengths_do_not_matter_and_bad_rays_on_the_device_are_none(scene, device):
    directions = spinning(8, 16)
    reference = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand")
    reference.set_camera_rays(rays_of(directions))
    expected = look(reference)
    lengths = np.exp(np.random.default_rng(0).uniform(-60, 60, directions.shape[:2]))[..., None]
    lengths[2, 3], lengths[4, 4] = 1e-42, 1e38
    sensor = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand")
    sensor.set_camera_rays(rays_of(directions * lengths))
    agree(look(sensor), expected)
    sensor.set_camera_rays(rays_of(directions * 1e200))
    agree(look(sensor), expected)
    for bad in (np.nan, np.inf, -np.inf):
        rays = rays_of(directions)
        rays[1, 2, 0, 1, 0] = bad
        rays[5, 6, 0, 0, 2] = bad
        with pytest.raises(ArgumentError, match=r"2 rays are not finite, the first at \(1, 2, 0\)"):
            sensor.set_camera_rays(rays)
        sensor.set_camera_rays(on_device(rays, device))
        ours = look(sensor)
        assert (ours["primId"][:, [1, 5], [2, 6]] == -1).all() and np.isposinf(ours[RANGE][:, [1, 5], [2, 6]]).all()
        rest = np.ones((8, 16), bool)
        rest[[1, 5], [2, 6]] = False
        agree({name: plane[:, rest] for name, plane in ours.items()}, {name: plane[:, rest] for name, plane in expected.items()})


def test_a_bundle_for_each_site(scene, device):
    """Bundles turned by 0, 40 and 80 degrees; as NumPy array, on the device, for one call, and for some of the sites."""
    base = spinning(6, 18)
    turns = [np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]]) for a in np.radians([0, 40, 80])]
    rays = np.stack([rays_of(base @ turn.T) for turn in turns])
    single = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand")
    alone = []
    for bundle in rays:
        single.set_camera_rays(bundle)
        alone.append(look(single))
    expected = {name: np.stack([alone[i][name][i] for i in range(3)]) for name in PLANES}
    assert not np.allclose(alone[0]["position"], alone[1]["position"])
    sensor = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand", resolution=(18, 6))
    sensor.set_camera_rays(rays)
    same(look(sensor), expected)
    sensor.set_camera_rays(on_device(rays, device))
    same(look(sensor), expected)
    sensor.set_camera_rays(rays[0])
    same(look(sensor), alone[0])
    same(look(sensor, camera_rays=rays), expected)
    same(look(sensor, camera_rays=on_device(rays, device)), expected)
    same(look(sensor, camera_rays=on_device(rays[1], device)), alone[1])
    same(look(sensor), alone[0])  # for that call alone
    sensor.set_camera_rays(rays[[1, 2]], cameras=["*env_1/*", re.compile(r".*env_2/.*")])
    same(look(sensor), expected)
    for _ in range(2):  # what is given last counts
        sensor.set_camera_rays(rays[1], cameras=[0, 2])
        ours = look(sensor)
        same({name: plane[[0, 2]] for name, plane in ours.items()}, {name: plane[[0, 2]] for name, plane in alone[1].items()})
        same({name: plane[1] for name, plane in ours.items()}, {name: plane[1] for name, plane in expected.items()})
        sensor.rebind()
        same(look(sensor), ours)
        sensor.set_camera_rays(rays)
        same(look(sensor), expected)
    fresh = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand", resolution=(18, 6))
    fresh.set_camera_rays(rays[0], cameras=["*env_0/*", "*env_2/*"])
    with pytest.raises(Error, match=r"env_1/.*tip: a site has no lens"):
        fresh.update(None, fresh.allocate([RANGE]))
    same(look(fresh, camera_rays=rays), expected)


def test_some_cameras_of_a_sensor_keep_their_lens(scene):
    """Rays for the cameras above; what looks through its lens has the bits it has alone."""
    state = state_of(scene, random_poses(scene, 2))
    plain = hdwarp.SensorCamera(scene, cameras="*", resolution=(40, 30))
    theirs = look(plain, state)
    mixed = hdwarp.SensorCamera(scene, cameras="*", resolution=(40, 30), clip="radial")
    plain_radial = look(hdwarp.SensorCamera(scene, cameras="*", resolution=(40, 30), clip="radial"), state)
    mixed.set_camera_rays(rays_of(pinhole(40, 30)), cameras="*/above")
    ours = look(mixed, state)
    above = np.array([scene.cameras.label[row].endswith("above") for row in mixed.view_camera.numpy()])
    same({name: plane[~above] for name, plane in ours.items()}, {name: plane[~above] for name, plane in plain_radial.items()})
    agree({name: plane[above] for name, plane in ours.items()}, {name: plane[above] for name, plane in theirs.items()})


def test_clip_ranges_are_those_of_the_cameras(scene):
    """Per view, from the column as it is now."""
    sensor = hdwarp.SensorCamera(scene, cameras="*/above", resolution=(1, 1))
    sensor.set_camera_rays(rays_of(np.array([[[2.0, 1.5, -3.0]]])))
    far = look(sensor)[RANGE][:, 0, 0]
    ranges = scene.cameras.clipping_range.numpy()
    rows = sensor.view_camera.numpy()
    ranges[rows[1]] = (0.0, far[1] * 0.999)
    ranges[rows[2]] = (0.5, far[2] * 1.001)
    scene.cameras.clipping_range.assign(ranges)
    np.testing.assert_array_equal(look(sensor)[RANGE][:, 0, 0], [far[0], np.inf, far[2]])


@pytest.mark.parametrize("own_origins", [False, True])
def test_a_site_at_no_pose_sees_nothing(scene, own_origins):
    """NaN in the pose of world 1's hand: what the pictures held before is gone."""
    sensor = hdwarp.SensorCamera(scene, sites="*/tip", exclude="*/hand")
    sensor.set_camera_rays(rays_of(spinning(9, 20), (0, 0, 0.1 if own_origins else 0)))
    out = sensor.allocate(PLANES)
    sensor.update(None, out)
    before = {name: array.numpy().copy() for name, array in out.items()}
    assert (before["primId"] >= 0).any(axis=(1, 2)).all()
    poses = scene.bodies.pose.copy()
    poses[3, 1] = np.nan
    sensor.update(state_of(scene, poses), out)
    for name, array in out.items():
        assert np.array_equal(array.numpy()[[0, 2]], before[name][[0, 2]]), name
    assert (out["primId"].numpy()[1] == -1).all() and np.isposinf(out[RANGE].numpy()[1]).all()


# -- unbound ------------------------------------------------------------------------------------------------------------------------


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


# -- what is not there, and what is wrong ---------------------------------------------------------------------------------------------


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


# -- the loop of a simulator ------------------------------------------------------------------------------------------------------------


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
