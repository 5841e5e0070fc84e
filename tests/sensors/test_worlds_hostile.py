"""What people tried to break worlds and sensors with: each of these once gave a wrong picture, a crash or silence."""

from __future__ import annotations

import re

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdPhysics, UsdRender
from tests.sensors.world_stages import (
    add_environment,
    add_ground,
    add_overview,
    body,
    camera,
    empty_stage,
    pictures,
    random_poses,
    state_of,
)

import hdwarp
from hdwarp.errors import ArgumentError, Error

ENV = "/World/envs/env_0"
DEPTH = "distance_to_image_plane"


@pytest.fixture
def stage() -> Usd.Stage:
    stage = empty_stage()
    add_ground(stage)
    add_overview(stage)
    add_environment(stage, ENV)
    return stage


def replicated(stage, device, **spec) -> hdwarp.Scene:
    return hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate(ENV, **spec)])


def test_many_global_prims_come_and_go(stage, device):
    """Rows of copies move when the index grows: the trees of worlds follow."""
    with replicated(stage, device, count=3, spacing=3.0) as scene:
        for k in range(70):
            UsdGeom.Sphere.Define(stage, f"/World/far/ball_{k}").AddTranslateOp().Set(Gf.Vec3d(0, 0, -50.0 - k))
            if k in (3, 20, 69):
                scene.sync()
                _, ours = pictures(scene, None, "*")
                with replicated(stage, device, count=3, spacing=3.0) as fresh:
                    _, theirs = pictures(fresh, None, "*")
                assert all(np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours)
        stage.RemovePrim("/World/far")
        scene.sync()
        _, ours = pictures(scene, None, "*")
        with replicated(stage, device, count=3, spacing=3.0) as fresh:
            _, theirs = pictures(fresh, None, "*")
        assert all(np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours)


def test_a_rebind_that_raises_leaves_nothing_stale(stage, device):
    """The excluded prim goes, thousands come: flags are as long as the rows are."""
    with replicated(stage, device, count=2) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/above", resolution=(24, 18), exclude="*/lamp")
        stage.RemovePrim(f"{ENV}/lamp")
        for k in range(300):
            UsdGeom.Sphere.Define(stage, f"/World/far/ball_{k}").AddTranslateOp().Set(Gf.Vec3d(0, 0, -50.0 - k))
        scene.sync()
        with pytest.raises(ArgumentError, match="matches no body"):
            sensor.rebind()
        out = sensor.allocate(["primId"])
        sensor.update(None, out)
        assert len(sensor.views.flags) == scene.index.instances.capacity
        _, plain = pictures(scene, None, "*/above", ("primId",), (24, 18))
        assert np.array_equal(out["primId"].numpy(), plain["primId"])


def test_tiles_go_into_whole_arrays_of_their_images(stage, device):
    with replicated(stage, device, count=4) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(8, 6))
        out = sensor.allocate(["primId"])
        wide = wp.zeros((12, 40), dtype=wp.int32, device=scene.device)
        for options, match in (
            ({"into": {"primId": wide[:, :16]}}, "contiguous"),
            ({"into": {"primId": wide}}, "contiguous"),
            ({"into": {"depth": wide}}, "not among the images"),
            ({"columns": 0}, "columns=0"),
            ({"columns": -1}, "columns=-1"),
            ({"columns": 1.5}, "columns=1.5"),
        ):
            with pytest.raises(ArgumentError, match=match):
                sensor.tiled(out, **options)


def test_a_state_from_before_the_frame_moved_is_refused(device):
    """A scene far from the stage's origin: where its frame lies follows what is drawn; poses held meanwhile would be of elsewhere."""
    stage = empty_stage()
    for k in range(3):
        UsdGeom.Sphere.Define(stage, f"/ball_{k}").AddTranslateOp().Set(Gf.Vec3d(20_000 + 3 * k, 0, 0))
    UsdGeom.Cube.Define(stage, body(stage, "/robot", (20_000, 0, 0)) + "/cube")
    camera(stage, "/cam", (20_000, 0, 9))
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/cam", resolution=(8, 6))
        state, out = scene.state(), sensor.allocate(["primId"])
        sensor.update(state, out)
        for k in range(20):
            UsdGeom.Sphere.Define(stage, f"/more_{k}").AddTranslateOp().Set(Gf.Vec3d(-20_000, 50, 0))
        scene.sync()
        with pytest.raises(ArgumentError, match="take a new state"):
            sensor.update(state, out)
        sensor.update(scene.state(), out)
        assert (out["primId"].numpy() >= 0).any()


def test_hidden_colliders_do_not_move_the_frame(device):
    stage = empty_stage()
    UsdGeom.Sphere.Define(stage, "/ball").AddTranslateOp().Set(Gf.Vec3d(20_000, 0, 0))
    camera(stage, "/cam", (20_000, 0, 9))
    for k in range(9):
        hull = UsdGeom.Cube.Define(stage, f"/hull_{k}")
        hull.AddTranslateOp().Set(Gf.Vec3d(-30_000, 0, 0))
        hull.CreatePurposeAttr("guide")
        UsdPhysics.CollisionAPI.Apply(hull.GetPrim())
    with hdwarp.Scene(stage, device=device) as scene:
        before = scene.worlds.origin.copy()
        hdwarp.SensorCamera(scene, cameras="/cam", resolution=(8, 6), geometry="collision")
        assert np.array_equal(scene.worlds.origin, before)


def test_what_kernels_wrote_to_cameras_outlives_others_that_come(stage, device):
    with replicated(stage, device, count=3) as scene:
        lengths = scene.cameras.focal_length.numpy() * np.linspace(0.5, 1.5, len(scene.cameras)).astype(np.float32)
        scene.cameras.focal_length.assign(lengths)
        labels = list(scene.cameras.label)
        camera(stage, "/World/a_camera", (0, 0, 3))
        camera(stage, f"{ENV}/another", (0, 0, 3))
        scene.sync()
        now = dict(zip(scene.cameras.label, scene.cameras.focal_length.numpy().tolist(), strict=True))
        assert [now[label] for label in labels] == lengths.tolist()


def test_frames_say_what_kernels_wrote(stage, device):
    """`hdwarp.render` of an open scene: K, pose and points go with the picture."""
    with replicated(stage, device, count=2, spacing=3.0) as scene:
        for label in ("/World/overview", "/World/envs/env_1/robot/hand/wrist"):
            row = scene.cameras.label.index(label)
            before = hdwarp.render(scene, label, aovs=["position"], resolution=(40, 30))
            lengths = scene.cameras.focal_length.numpy()
            lengths[row] *= 2
            scene.cameras.focal_length.assign(lengths)
            mounts = scene.cameras.transform.numpy()
            mounts[row, :3] += (0.05, -0.1, 0.2)
            scene.cameras.transform.assign(mounts)
            frame = hdwarp.render(scene, label, aovs=["position", DEPTH], resolution=(40, 30))
            np.testing.assert_allclose(frame.K[0, 0], 2 * before.K[0, 0], rtol=1e-6)
            np.testing.assert_allclose(
                np.linalg.norm(frame.world_from_camera[:3, 3] - before.world_from_camera[:3, 3]), 0.2291288, rtol=1e-5
            )
            in_camera = (np.linalg.inv(frame.world_from_camera) @ np.append(frame.points()[15, 20], 1.0))[:3]
            pixel = frame.K @ (in_camera * (1, -1, -1)) / -in_camera[2]
            np.testing.assert_allclose(pixel[:2], (20.5, 15.5), atol=1e-2)
            np.testing.assert_allclose(-in_camera[2], frame[DEPTH][15, 20], rtol=1e-5)


def test_the_framed_default_view_is_of_world_0(device):
    stage = empty_stage()
    UsdGeom.Cube.Define(stage, "/env/cube")
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate("/env", count=2, xforms=[(100, 0, 0), (0, 50, 0)])]) as scene:
        frame = hdwarp.render(scene, aovs=["primId"], resolution=(16, 16))
        assert (frame["primId"] == 0).sum() > 20
        with pytest.raises(ArgumentError, match="no camera matches"):
            hdwarp.SensorCamera(scene, cameras="*", resolution=(8, 8))  # what was made up is nobody's


def test_copies_stand_still_while_their_root_moves(device):
    """Placed copies do not follow an animated root, and so have no motion, nor has the ground."""
    stage = empty_stage()
    add_ground(stage)
    root = UsdGeom.Xform.Define(stage, "/env").AddTranslateOp()
    root.Set(Gf.Vec3d(0, 0, 0), 0.0)
    root.Set(Gf.Vec3d(2, 1, 0), 1.0)
    UsdGeom.Cube.Define(stage, "/env/cube")
    camera(stage, "/env/cam", (0, 0, 6))
    camera(stage, "/overview", (0, 0, 9))
    with hdwarp.Scene(stage, device=device, time=0.0, worlds=[hdwarp.replicate("/env", count=2, xforms=[(0, 0, 0), (1, 0, 0)])]) as scene:
        scene.keep_previous()
        scene.sync(1.0)
        _, planes = pictures(scene, None, "*", ("motion", "primId"))
        assert (planes["primId"] == scene.index.prim_paths.index("/env/cube")).any()
        assert np.abs(planes["motion"]).max() == 0.0


def test_worlds_that_draw_nothing_go_with_their_roots(device):
    stage = empty_stage()
    UsdGeom.Cube.Define(stage, "/cube")
    for k in range(2):
        UsdGeom.Xform.Define(stage, f"/env_{k}").AddTranslateOp().Set(Gf.Vec3d(5 * k, 0, 0))
        UsdLux.SphereLight.Define(stage, f"/env_{k}/light").AddTranslateOp().Set(Gf.Vec3d(0, 0, 2))
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.authored_worlds("/env_*")]) as scene:
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/env_1")).SetTranslate(Gf.Vec3d(7, 1, 0))
        scene.sync()
        assert scene.worlds.origin.tolist() == [[0, 0, 0], [7, 1, 0]]
        np.testing.assert_allclose(scene.lights.transform[1, :3], (0, 0, 2), atol=1e-12)


def test_global_cameras_look_into_other_worlds_from_where_they_stand(stage, device):
    with replicated(stage, device, count=3, spacing=2.0) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(40, 30))
        state, out = state_of(scene, random_poses(scene, 1)), sensor.allocate([DEPTH, "primId"])
        sensor.update(state, out)
        plain = {name: array.numpy().copy() for name, array in out.items()}
        sensor.update(state, out, world_indices=wp.array([1, 2, 0], dtype=wp.int32, device=scene.device))
        for name in out:
            assert np.array_equal(out[name].numpy(), plain[name][[1, 2, 0]])


@pytest.mark.parametrize("bad", ["position", "quaternion", "no length"])
def test_bodies_without_a_pose_are_not_there(stage, device, bad):
    with replicated(stage, device, count=2) as scene:
        poses = scene.bodies.pose.copy()
        poses[2, {"position": slice(0, 3), "quaternion": slice(3, 7), "no length": slice(3, 7)}[bad]] = (
            0.0 if bad == "no length" else np.nan
        )
        _, planes = pictures(scene, state_of(scene, poses), "*/above", ("primId",))
        cube = scene.index.prim_paths.index(f"{ENV}/robot/frame/cube")
        assert [(planes["primId"][world] == cube).any() for world in range(2)] == [True, False]
        sensor = hdwarp.SensorCamera(scene, cameras="*/above", resolution=(40, 30))
        out = sensor.allocate(["motion"])
        sensor.update(scene.state(), out, previous=state_of(scene, poses))
        assert np.isfinite(out["motion"].numpy()).all()


def test_wrong_arguments_are_named(stage, device):
    with replicated(stage, device, count=2) as scene:
        for cameras in (re.compile("nope.*"), 99, -1, "nope", ["*/above", "nope"], 1.5, []):
            with pytest.raises(ArgumentError, match="no camera matches|expected a pattern|empty"):
                hdwarp.SensorCamera(scene, cameras=cameras, resolution=(8, 6))
        for options, match in (
            ({"clear": 5}, "clear is a int"),
            ({"geometry": ["visual"]}, "geometry"),
            ({"worlds": "0"}, "numbers of worlds"),
            ({"worlds": [0.5]}, "worlds 0 to 1"),
        ):
            with pytest.raises(ArgumentError, match=match):
                hdwarp.SensorCamera(scene, cameras="*/above", resolution=(8, 6), **options)
        for worlds in ([np.int64(1)], np.array([1]), wp.array([1], dtype=wp.int32, device=scene.device), {1}):
            assert hdwarp.SensorCamera(scene, cameras="*/above", resolution=(8, 6), worlds=worlds).view_count == 1
        sensor = hdwarp.SensorCamera(scene, cameras="*/above", resolution=(8, 6))
        out = sensor.allocate([DEPTH, "distance_to_camera"])
        with pytest.raises(ArgumentError, match="one array is given"):
            sensor.update(None, {DEPTH: out[DEPTH], "distance_to_camera": out[DEPTH]})
        with pytest.raises(ArgumentError, match="do not exist"):
            sensor.set_world_poses(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), views=[1.5])
        with pytest.raises(ArgumentError, match="orientations_wxyz is missing"):
            sensor.set_world_poses(np.zeros((2, 3)))
        worlds = scene.worlds
    with pytest.raises(Error, match="closed"):
        worlds.author(stage)


def test_roots_that_go_are_told(stage, device):
    def told(scene, code) -> list[str]:
        return [item.path for item in scene.diagnostics if item.code == code]

    with replicated(stage, device, count=2) as scene:
        assert told(scene, "world-root") == []
        stage.GetPrimAtPath(ENV).SetActive(False)
        scene.sync()
        assert told(scene, "world-root") == [ENV]
        stage.GetPrimAtPath(ENV).SetActive(True)
        scene.sync()
        assert told(scene, "world-root") == []
        UsdPhysics.RigidBodyAPI.Apply(UsdGeom.Xform.Define(stage, "/World/envs").GetPrim())
        scene.sync()
        assert told(scene, "world-body") == [ENV]


def test_binding_thousands_of_worlds_is_quick(device):
    """Not with the square of their number."""
    import time

    stage = empty_stage()
    UsdGeom.Cube.Define(stage, "/env/cube")
    camera(stage, "/env/cam", (0, 0, 4))
    times = {}
    for count in (500, 4000):
        with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate("/env", count=count)]) as scene:
            start = time.process_time()
            hdwarp.SensorCamera(scene, cameras=["*/cam", "/env*"], resolution=(4, 4))
            times[count] = time.process_time() - start
    assert times[4000] < 24 * times[500] + 0.05  # eight times as many; the square would be 64


def test_a_mount_is_the_same_whatever_worlds_there_are(stage, device):
    """Cameras and sites that a body carries, in turned copies: bit by bit, alone, among others, in another order."""
    rng = np.random.default_rng(3)
    turns = rng.normal(size=(6, 4))
    places = np.concatenate([rng.uniform(-9, 9, (6, 3)), turns / np.linalg.norm(turns, axis=1, keepdims=True)], axis=1)

    def mounts(xforms: np.ndarray) -> np.ndarray:
        with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate(ENV, len(xforms), xforms=xforms)]) as scene:
            rows = [row for row, label in enumerate(scene.cameras.label) if label.endswith("/wrist")]
            carried = scene.sites.transform[scene.sites.body >= 0]
            return np.concatenate([scene.cameras.transform.numpy()[rows], carried.astype(np.float64)])

    together = mounts(places).reshape(-1, 6, 7)
    assert np.array_equal(together[:, ::-1], mounts(places[::-1]).reshape(-1, 6, 7))
    for world in range(6):
        assert np.array_equal(together[:, world : world + 1], mounts(places[world : world + 1]).reshape(-1, 1, 7))


MEANT = {
    "a regular expression": (r"/World/envs/env_\d+/.*wrist", r"it reads like a regular expression, which is given as re.compile"),
    "a compiled pattern": (re.compile(r"\*/wrist"), "give the pattern .* as it is, not compiled"),
    "the end of an expression": (re.compile("wrist$"), "has to match whole paths: begin it with '.\\*'"),
    "the end of a path": ("hand/wrist", "has to match whole paths: '\\*/hand/wrist' does"),
    "a label": ("/World/envs/env_{}/wrist", "'{}' is no wildcard, '\\*' is"),
}


@pytest.mark.parametrize("name", MEANT)
def test_patterns_of_the_other_kind_are_told(name, stage, device):
    given, said = MEANT[name]
    with replicated(stage, device, count=2) as scene, pytest.raises(ArgumentError, match=said):
        hdwarp.SensorCamera(scene, cameras=given, resolution=(4, 4))


def test_an_expression_for_authored_worlds_is_told(stage, device):
    with pytest.raises(ArgumentError, match="it reads like a regular expression, patterns are those of fnmatch"):
        hdwarp.Scene(stage, device=device, worlds=[hdwarp.authored_worlds("/World/envs/env_.+")])


def test_rows_are_numbers_in_any_array(stage, device):
    with replicated(stage, device, count=2) as scene:
        assert hdwarp.SensorCamera(scene, cameras=np.array([1, 2]), resolution=(4, 4)).view_count == 2


def test_a_sensor_of_a_stage(stage):
    with pytest.raises(ArgumentError, match="of an open scene, not of a Stage"):
        hdwarp.SensorCamera(stage, cameras="*")


def test_a_camera_that_only_one_world_is_authored_with_has_its_product_in_all(device):
    stage = empty_stage()
    add_environment(stage, "/World/envs/env_0")
    add_environment(stage, "/World/envs/env_1", cameras=False)
    product = UsdRender.Product.Define(stage, "/Render/Product")
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.authored_worlds("/World/envs/env_*")]) as scene:
        source, copy = (next(label for label in scene.cameras.label if label.startswith(f"/World/envs/env_{i}/")) for i in range(2))
    product.CreateCameraRel().SetTargets([source])
    product.CreateResolutionAttr(Gf.Vec2i(20, 10))
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.authored_worlds("/World/envs/env_*")]) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras=copy)
        assert (sensor.width, sensor.height) == (20, 10)
        assert hdwarp.render(scene, copy, aovs=["primId"])["primId"].shape == (10, 20)
        sizes = dict(zip(scene.cameras.label, scene.cameras.resolution.numpy().tolist(), strict=True))
        assert {label for label, size in sizes.items() if size == [20, 10]} == {source, copy} and len(sizes) > 2


def test_a_row_that_leaves_its_world_is_in_no_tree_of_it(device):
    """A prim of a world goes, one that is global comes and takes its row; two prims change worlds: nothing stays where it was."""
    stage = empty_stage()
    add_overview(stage)
    for world in range(2):
        UsdGeom.Xform.Define(stage, f"/World/envs/env_{world}").AddTranslateOp().Set(Gf.Vec3d(1.5, 0.5 * world, 0))
        UsdGeom.Cube.Define(stage, f"/World/envs/env_{world}/still").CreateSizeAttr(0.5)

    def ball(path: str, x: float) -> None:
        UsdGeom.XformCommonAPI(UsdGeom.Sphere.Define(stage, path)).SetTranslate(Gf.Vec3d(x, 1, 0))

    def worlds() -> hdwarp.Scene:
        return hdwarp.Scene(stage, device=device, worlds=[hdwarp.authored_worlds("/World/envs/env_*")])

    planes = ["distance_to_image_plane", "primId", "worldId", "normal"]
    ball("/World/envs/env_0/a", -2)
    ball("/World/envs/env_1/b", -1)
    with worlds() as scene:
        edits = (
            (("/World/envs/env_0/a", "/World/c"),),
            (("/World/c", "/World/envs/env_1/d"), ("/World/envs/env_1/b", "/World/envs/env_0/e")),
            (("/World/envs/env_1/d", "/World/envs/env_0/f"), ("/World/envs/env_0/e", "/World/envs/env_1/g")),
        )
        for moves in edits:
            with Sdf.ChangeBlock():
                for old, new in moves:
                    Sdf.CopySpec(stage.GetRootLayer(), old, stage.GetRootLayer(), new)
                    del stage.GetRootLayer().GetPrimAtPath(Sdf.Path(old).GetParentPath()).nameChildren[old.rpartition("/")[2]]
            scene.sync()
            with worlds() as fresh:
                (_, ours), (_, theirs) = pictures(scene, aovs=planes), pictures(fresh, aovs=planes)
            assert [path for _, new in moves for path in scene.index.prim_paths if path == new] == [new for _, new in moves]
            for name in ours:
                np.testing.assert_array_equal(ours[name], theirs[name], err_msg=f"{name} after {moves}")
