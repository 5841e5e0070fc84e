"""Rays of one's own: cameras, sites and unbound sensors that look along rays given one by one, against closed forms and the lenses."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pxr import Gf, Sdf, UsdGeom, UsdShade
from tests.sensors.own_rays import ENV, IDS, PLANES, RANGE, agree, look, on_device, pinhole, rays_of, same, site, spinning
from tests.sensors.world_stages import add_environment, add_ground, camera, empty_stage, random_poses, state_of

import hdwarp
from hdwarp.errors import ArgumentError, Error


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
