"""Worlds: every copy is its prototype, bit for bit; worlds do not see each other, all see what is global."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from tests.sensors.world_stages import (
    AOVS,
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
EXEMPT = ("worldId",)


@pytest.fixture
def stage() -> Usd.Stage:
    stage = empty_stage()
    add_ground(stage)
    add_overview(stage)
    add_environment(stage, ENV)
    return stage


def open_worlds(stage, device, *worlds) -> hdwarp.Scene:
    return hdwarp.Scene(stage, device=device, worlds=list(worlds))


def same(ours: dict, theirs: dict, view: int, other: int, but=EXEMPT) -> None:
    for name in ours:
        if name not in but:
            assert np.array_equal(ours[name][view], theirs[name][other], equal_nan=True), name


def test_bodies_know_their_articulation(stage, device):
    UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath(f"{ENV}/robot"))
    body(stage, "/World/loose")
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=2)) as scene:
        assert scene.bodies.articulation == ["", *["/World/envs/env_0/robot"] * 2, *["/World/envs/env_1/robot"] * 2]


def test_tables_of_a_replicated_scene(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3, spacing=4.0)) as scene:
        assert scene.worlds.count == 3
        assert scene.worlds.origin.tolist() == [[-2, -2, 0], [-2, 2, 0], [2, -2, 0]]
        assert scene.worlds.label == [f"/World/envs/env_{i}" for i in range(3)]
        per_world = ["above", "robot/hand/wrist"]
        assert scene.cameras.label == ["/World/overview", *(f"/World/envs/env_{i}/{name}" for i in range(3) for name in per_world)]
        assert scene.cameras.world.tolist() == [-1, 0, 0, 1, 1, 2, 2]
        assert scene.cameras.world_start.tolist() == [0, 1, 3, 5, 7]
        assert scene.bodies.label == [f"/World/envs/env_{i}/{name}" for i in range(3) for name in ("robot", "robot/hand")]
        assert scene.bodies.world.tolist() == [0, 0, 1, 1, 2, 2]
        assert scene.bodies.world_start.tolist() == [0, 0, 2, 4, 6]
        assert scene.cameras.body.numpy().tolist() == [-1, -1, 1, -1, 3, -1, 5]
        np.testing.assert_array_equal(scene.bodies.pose[:2], scene.bodies.pose[4:])
        assert scene.sites.label == [f"/World/envs/env_{i}/robot/hand/tip" for i in range(3)]
        assert scene.sites.body.tolist() == [1, 3, 5]
        np.testing.assert_allclose(scene.sites.transform[:, :3], [[0, 0, 0.1]] * 3, atol=1e-12)
        assert scene.lights.label == [f"/World/envs/env_{i}/light" for i in range(3)]
        np.testing.assert_allclose(scene.lights.transform[:, :3], [[0, 1, 2]] * 3, atol=1e-12)
        assert scene.prim_path(scene.index.prim_paths.index(f"{ENV}/lamp"), 2) == "/World/envs/env_2/lamp"
        assert scene.prim_path(scene.index.prim_paths.index("/World/ground"), 2) == "/World/ground"
        with pytest.raises(ArgumentError, match="3 worlds"):
            scene.prim_path(0, 3)


@pytest.mark.parametrize("count", [5, 64])
def test_each_world_is_its_single_world_render(count, device, stage):
    """Body poses of its own in every world; the same pose alone gives the same bits, ids included."""
    turns = [Gf.Rotation(Gf.Vec3d(0, 0, 1), 25.0 * i).GetQuat() for i in range(count)]
    xforms = [(3.0 * (i % 8), -2.5 * (i // 8), 0.1 * i, *turn.GetImaginary(), turn.GetReal()) for i, turn in enumerate(turns)]
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=count, xforms=xforms)) as scene:
        poses = random_poses(scene, 1)
        sensor, ours = pictures(scene, state_of(scene, poses), "*/wrist")
        assert sensor.view_world.numpy().tolist() == list(range(count))
        assert len(np.unique(ours["distance_to_image_plane"].reshape(count, -1), axis=0)) == count
        for world in (0, 1, count // 2, count - 1):
            with open_worlds(stage, device, hdwarp.replicate(ENV, count=1, xforms=[xforms[world]])) as single:
                state = state_of(single, poses[2 * world : 2 * world + 2])
                _, alone = pictures(single, state, "*/wrist")
            same(ours, alone, world, 0)
            seen = ours["worldId"][world]
            assert set(np.unique(seen)) == {-1, world}


def test_worlds_where_the_stage_stands_are_the_plain_scene(stage, device):
    """An environment at the origin: what a scene without worlds shows, to the bit."""
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=4)) as scene, hdwarp.Scene(stage, device=device) as plain:
        assert scene.index.prim_paths == plain.index.prim_paths
        poses = random_poses(plain, 3)
        _, ours = pictures(scene, state_of(scene, np.tile(poses, (4, 1))), "*")
        _, theirs = pictures(plain, state_of(plain, poses), "*")
        views = scene.cameras.label
        for view, label in enumerate(["/World/overview"] * 4 + views[1:]):
            name = label.split("/")[-1]
            other = next(i for i, path in enumerate(plain.cameras.label) if path.endswith(name))
            same(ours, theirs, view, other)


def test_permuted_worlds_are_permuted_images(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=6, spacing=3.0)) as scene:
        poses = random_poses(scene, 2).reshape(6, 2, 7)
        order = np.random.default_rng(0).permutation(6)
        _, ours = pictures(scene, state_of(scene, poses.reshape(-1, 7)), "*/wrist", ("distance_to_image_plane", "primId", "bodyId"))
        _, other = pictures(scene, state_of(scene, poses[order].reshape(-1, 7)), "*/wrist", ("distance_to_image_plane", "primId", "bodyId"))
    # The ground is level and wide: which part of it a world has does not show.
    for name in ours:
        np.testing.assert_allclose(other[name], ours[name][order], rtol=1e-6, atol=1e-6)


def test_worlds_do_not_see_each_other_and_all_see_what_is_global(stage, device):
    """All copies stand in one place: each sees itself, and the ground once."""
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3)) as scene:
        poses = scene.bodies.pose.copy()
        poses[2:4, 0] += 30.0  # world 1's robot has left the picture
        _, ours = pictures(scene, state_of(scene, poses), "*/above")
    paths = scene_paths(stage)
    ground, cube = paths.index("/World/ground"), paths.index(f"{ENV}/robot/frame/cube")
    assert all((ours["primId"][w] == ground).any() for w in range(3))
    assert [(ours["primId"][w] == cube).any() for w in range(3)] == [True, False, True]
    same(ours, ours, 0, 2)


def scene_paths(stage) -> list[str]:
    with hdwarp.Scene(stage, device="cpu") as plain:
        return plain.index.prim_paths


def authored(stage, device, **spec) -> tuple[hdwarp.Scene, Usd.Stage]:
    """The same worlds written out as prims."""
    other = Usd.Stage.Open(stage.Flatten())
    with hdwarp.Scene(other, device=device, worlds=[hdwarp.replicate(ENV, **spec)]) as scene:
        scene.worlds.author(other)
    return hdwarp.Scene(other, device=device, worlds=[hdwarp.authored_worlds("/World/envs/env_*")]), other


@pytest.mark.parametrize("turned", [False, True])
def test_replicated_and_authored_worlds_show_the_same(stage, device, turned):
    """The copies written to a stage by `worlds.author` and read back as prims: the same pictures, with ids of their own."""
    places = [(0, 0, 0), (5, 1, 0.5), (-4, 2, 0)]
    quaternions = [Gf.Rotation(Gf.Vec3d(0, 0, 1), 35.0 * i).GetQuat() if turned else Gf.Quatd(1) for i in range(3)]
    xforms = [(*place, *q.GetImaginary(), q.GetReal()) for place, q in zip(places, quaternions, strict=True)]
    scene = open_worlds(stage, device, hdwarp.replicate(ENV, count=3, xforms=xforms))
    written, _ = authored(stage, device, count=3, xforms=xforms)
    with scene, written:
        assert scene.cameras.label == written.cameras.label
        assert scene.bodies.label == written.bodies.label
        np.testing.assert_allclose(scene.worlds.origin, written.worlds.origin, atol=1e-12)
        np.testing.assert_allclose(scene.bodies.pose, written.bodies.pose, atol=1e-6)
        aovs = ("distance_to_image_plane", "primId", "worldId", "normal")
        one, ours = pictures(scene, None, "*", aovs)
        _, theirs = pictures(written, None, "*", aovs)
        worlds = one.view_world.numpy()
        for view in range(one.view_count):
            np.testing.assert_allclose(ours["distance_to_image_plane"][view], theirs["distance_to_image_plane"][view], rtol=1e-5)
            np.testing.assert_array_equal(ours["worldId"][view], theirs["worldId"][view])
            np.testing.assert_allclose(ours["normal"][view], theirs["normal"][view], atol=1e-5)
            for prim in np.unique(ours["primId"][view]):
                where = ours["primId"][view] == prim
                there = {written.prim_path(int(i), -1) for i in np.unique(theirs["primId"][view][where])}
                assert there == {scene.prim_path(int(prim), int(worlds[view]))}
        poses = random_poses(scene, 4)
        _, ours = pictures(scene, state_of(scene, poses), "*/wrist", aovs)
        _, theirs = pictures(written, state_of(written, poses), "*/wrist", aovs)
        np.testing.assert_allclose(ours["distance_to_image_plane"], theirs["distance_to_image_plane"], rtol=1e-5)


def test_views_of_mixed_worlds_come_by_row_and_world(stage, device):
    """Two prototypes, one of them without a camera above, and a global camera."""
    add_environment(stage, "/World/other", at=(0, 20, 0), cameras=False, seed=5)
    camera(stage, "/World/other/robot/hand/wrist", (0, 0, 1))
    worlds = hdwarp.replicate(ENV, count=2), hdwarp.replicate("/World/other", count=2, label="/World/others/other_{}")
    with open_worlds(stage, device, *worlds) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(8, 6))
        rows, seen = sensor.view_camera.numpy().tolist(), sensor.view_world.numpy().tolist()
        views = [(scene.cameras.label[row], world) for row, world in zip(rows, seen, strict=True)]
        assert views == [
            *(("/World/overview", world) for world in range(4)),
            ("/World/envs/env_0/above", 0),
            ("/World/envs/env_0/robot/hand/wrist", 0),
            ("/World/envs/env_1/above", 1),
            ("/World/envs/env_1/robot/hand/wrist", 1),
            ("/World/other/robot/hand/wrist", 2),
            ("/World/others/other_3/robot/hand/wrist", 3),
        ]
        some = hdwarp.SensorCamera(scene, cameras=["/World/overview", "*/wrist"], worlds=[3, 1], resolution=(8, 6))
        assert some.view_world.numpy().tolist() == [1, 3, 1, 3]
        with pytest.raises(ArgumentError, match="worlds 0 to 3"):
            hdwarp.SensorCamera(scene, cameras="*", worlds=[4], resolution=(8, 6))
        with pytest.raises(ArgumentError, match="in the worlds"):
            hdwarp.SensorCamera(scene, cameras="*/above", worlds=[2], resolution=(8, 6))


def test_a_missing_camera_is_a_view_less(device):
    """Worlds authored as prims, world 1 without a wrist camera; env_2 comes before env_10."""
    stage = empty_stage()
    for number in (0, 2, 10):
        add_environment(stage, f"/World/envs/env_{number}", at=(3.0 * number, 0, 0), seed=number)
    stage.RemovePrim("/World/envs/env_2/robot/hand/wrist")
    with open_worlds(stage, device, hdwarp.authored_worlds("/World/envs/env_*")) as scene:
        assert scene.worlds.label == [f"/World/envs/env_{i}" for i in (0, 2, 10)]
        sensor, ours = pictures(scene, None, "*/wrist")
        assert sensor.view_world.numpy().tolist() == [0, 2]
        for view, world in enumerate((0, 2)):
            paths = {scene.prim_path(int(i)) for i in np.unique(ours["primId"][view]) if i >= 0}
            assert paths and all(path.startswith(scene.worlds.label[world] + "/") for path in paths)


def test_cameras_of_env_0_alone_are_in_all_authored_worlds(device):
    stage = empty_stage()
    for number in range(3):
        add_environment(stage, f"/World/envs/env_{number}", at=(4.0 * number, 0, 0), turn=30.0 * number, cameras=number == 0)
    with open_worlds(stage, device, hdwarp.authored_worlds("/World/envs/env_*")) as scene:
        assert len(scene.cameras.label) == 6
        sensor, ours = pictures(scene, None, "*/wrist", ("distance_to_image_plane", "primId"))
        assert sensor.view_world.numpy().tolist() == [0, 1, 2]
        for world in (1, 2):  # each sees its own environment from its own hand
            np.testing.assert_allclose(ours["distance_to_image_plane"][world], ours["distance_to_image_plane"][0], rtol=1e-5)
        stage.GetPrimAtPath("/World/envs/env_0/robot/hand/wrist").GetAttribute("focalLength").Set(9.0)
        scene.sync()
        _, wider = pictures(scene, None, "*/wrist", ("distance_to_image_plane", "primId"))
        assert not np.array_equal(wider["primId"][2], ours["primId"][2])
        camera(stage, "/World/envs/env_2/own", (0, 0, 2))  # now another world has cameras: each has its own
        scene.sync()
        assert scene.cameras.label == [*(f"/World/envs/env_0/{name}" for name in ("above", "robot/hand/wrist")), "/World/envs/env_2/own"]


def test_masked_views_and_worlds_keep_every_byte(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=4)) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras=["/World/overview", "*/wrist"], resolution=(21, 13))
        out, state = sensor.allocate(AOVS), scene.state()
        sensor.update(state, out)
        whole = {name: array.numpy().copy() for name, array in out.items()}
        for kind in ("view_mask", "world_mask"):
            count = sensor.view_count if kind == "view_mask" else 4
            on = np.arange(count) % 2 == 0
            for array in out.values():
                array.fill_(7)
            before = {name: array.numpy().copy() for name, array in out.items()}
            sensor.update(state, out, **{kind: wp.array(on, dtype=wp.bool, device=scene.device)})
            lit = on if kind == "view_mask" else on[sensor.view_world.numpy()]
            for name, array in out.items():
                for view in range(sensor.view_count):
                    expected = whole[name][view] if lit[view] else before[name][view]
                    assert array.numpy()[view].tobytes() == expected.tobytes(), (kind, name, view)


CHANGES = {
    "transform": lambda pose: pose + np.array([0.1, 0.05, 0.3, 0, 0, 0, 0]),
    "focal_length": lambda length: length * 0.6,
    "aperture": lambda sides: sides * 1.5,
    "aperture_offset": lambda offset: offset + 0.004,
    "clipping_range": lambda _: (1.3, 1.5),
    "axes": lambda _: np.diag([1.0, 0.5, 1.0]),
}


@pytest.mark.parametrize("column", CHANGES)
def test_a_written_camera_column_changes_its_views_alone(stage, device, column):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=4, spacing=3.0)) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(24, 18))
        out, state = sensor.allocate(["distance_to_image_plane", "primId"]), scene.state()
        sensor.update(state, out)
        before = {name: array.numpy().copy() for name, array in out.items()}
        row = scene.cameras.label.index("/World/envs/env_2/robot/hand/wrist")
        values = getattr(scene.cameras, column).numpy().copy()
        values[row] = CHANGES[column](values[row])
        getattr(scene.cameras, column).assign(values)
        sensor.update(state, out)
        changed = [not np.array_equal(out["distance_to_image_plane"].numpy()[v], before["distance_to_image_plane"][v]) for v in range(12)]
        assert [v for v in range(12) if changed[v]] == [v for v in range(12) if sensor.view_camera.numpy()[v] == row]


def test_posing_needs_no_refit_by_hand(stage, device):
    """Every update poses what it is given, also after another sensor's, and `None` is the stage again, exactly."""
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3)) as scene:
        one, other = (hdwarp.SensorCamera(scene, cameras=name, resolution=(24, 18)) for name in ("*/wrist", "/World/overview"))
        first, second = one.allocate(AOVS), other.allocate(AOVS)
        one.update(None, first)
        start = {name: array.numpy().copy() for name, array in first.items()}
        a, b = (state_of(scene, random_poses(scene, seed)) for seed in (1, 2))
        one.update(a, first)
        at_a = {name: array.numpy().copy() for name, array in first.items()}
        other.update(b, second)
        one.update(a, first)
        assert all(np.array_equal(first[name].numpy(), at_a[name], equal_nan=True) for name in first)
        one.update(None, first)
        assert all(np.array_equal(first[name].numpy(), start[name], equal_nan=True) for name in first)
        one.update(a, first, pose=False)  # the caller says that the scene is posed: it is at the stage's poses, the cameras are not
        assert not np.array_equal(first["primId"].numpy(), start["primId"])


def test_global_cameras_stay_where_they_are_on_the_stage(stage, device):
    """World w's environment is elsewhere on the stage: the overview sees it there."""
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=4, spacing=(4.0, 2.0))) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/World/overview", resolution=(8, 8))
        poses = sensor.compute_view_transforms().numpy()
        np.testing.assert_allclose(poses[:, :3] + scene.worlds.origin, [(0, 0, 9)] * 4, atol=1e-6)
        out = sensor.allocate(["position", "primId"])
        sensor.update(None, out)
        for world in range(4):
            hits = out["position"].numpy()[world] + scene.worlds.origin[world]
            ground = out["primId"].numpy()[world] == scene.index.prim_paths.index("/World/ground")
            np.testing.assert_allclose(hits[ground][:, 2], 0.0, atol=1e-5)


@pytest.mark.parametrize("convention", ["opengl", "ros", "world"])
def test_world_poses_are_written_back_as_mounts(stage, device, convention):
    """The pose set is the pose reported, body or none, and the picture is that of a camera authored there."""
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3, spacing=3.0)) as scene:
        state = state_of(scene, random_poses(scene, 6))
        for pattern in ("*/wrist", "*/above"):
            sensor = hdwarp.SensorCamera(scene, cameras=pattern, resolution=(24, 18))
            rng = np.random.default_rng(1)
            places = rng.uniform(-0.3, 0.3, (3, 3)) + (0, 0, 2.5)
            quaternions = rng.normal(size=(3, 4))
            sensor.set_world_poses(places, quaternions, state=state, convention=convention)
            poses = sensor.compute_view_transforms(state).numpy()
            np.testing.assert_allclose(poses[:, :3], places, atol=1e-5)
            from hdwarp.stage.conventions import convert_orientation

            unit = np.roll(quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True), -1, axis=1)
            expected = convert_orientation(unit, convention, "opengl")
            turned = np.abs(np.sum(expected * poses[:, 3:], axis=1))
            np.testing.assert_allclose(turned, 1.0, atol=1e-5)
            given = wp.array(poses, dtype=wp.transformf, device=scene.device)
            out, override = sensor.allocate(["distance_to_image_plane"]), sensor.allocate(["distance_to_image_plane"])
            sensor.update(state, out)
            sensor.update(state, override, camera_transforms=given)
            np.testing.assert_allclose(*(a["distance_to_image_plane"].numpy() for a in (out, override)), rtol=1e-4)


def test_reported_poses_set_again_change_nothing(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3)) as scene:
        state = state_of(scene, random_poses(scene, 8))
        sensor = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(24, 18))
        before = sensor.compute_view_transforms(state)
        sensor.set_world_poses(before, state=state)
        np.testing.assert_allclose(sensor.compute_view_transforms(state).numpy(), before.numpy(), atol=1e-6)


def test_a_render_of_the_scene_is_of_the_stage_whatever_sensors_have_posed(stage, device):
    for worlds in (None, [hdwarp.replicate(ENV, count=2)]):
        with hdwarp.Scene(stage, device=device, worlds=worlds) as scene:
            label = f"{ENV}/above"
            before = hdwarp.render(scene, label, aovs=["distance_to_image_plane", "primId"], resolution=(40, 30))
            pictures(scene, state_of(scene, random_poses(scene, 3)), "*/wrist")
            after = hdwarp.render(scene, label, aovs=["distance_to_image_plane", "primId"], resolution=(40, 30))
            for name in before.aovs:
                np.testing.assert_array_equal(before[name], after[name])


def test_renders_of_copies_stand_where_they_stand(stage, device):
    """`hdwarp.render` of a copy's camera: its pose and points on the stage, paths of the copy."""
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=4, spacing=(4.0, 2.0))) as scene:
        frame = hdwarp.render(scene, "/World/envs/env_3/above", aovs=["position", "primId"], resolution=(40, 30))
        first = hdwarp.render(scene, f"{ENV}/above", aovs=["position", "primId"], resolution=(40, 30))
        shift = scene.worlds.origin[3] - scene.worlds.origin[0]
        np.testing.assert_allclose(frame.world_from_camera[:3, 3] - first.world_from_camera[:3, 3], shift, atol=1e-9)
        np.testing.assert_allclose(frame.points() - first.points(), np.broadcast_to(shift, (30, 40, 3)), atol=1e-5)
        paths = {frame.prim_path(row, column) for row in range(30) for column in range(40)} - {None}
        assert "/World/envs/env_3/table" in paths
        assert all(path == "/World/ground" or path.startswith("/World/envs/env_3/") for path in paths)
        assert scene.body_path(0, 3) == "/World/envs/env_3/robot" and scene.body_path(-1) is None


def test_copies_do_not_take_paths_of_prims(stage, device):
    """Where there are prims at the paths that copies go by, that is told, at opening and later."""

    def told(scene) -> list[str]:
        return [item.path for item in scene.diagnostics if item.severity == "error" and item.code == "world-label"]

    add_environment(stage, "/World/envs/env_2", at=(9, 9, 0))
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3)) as scene:
        assert told(scene) == ["/World/envs/env_2"]
        stage.RemovePrim("/World/envs/env_2")
        scene.sync()
        assert told(scene) == []
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3, label="/World/copies/copy_{}")) as scene:
        assert scene.worlds.label == [ENV, "/World/copies/copy_1", "/World/copies/copy_2"]
        stage.DefinePrim("/World/copies/copy_2", "Xform")
        scene.sync()
        assert told(scene) == ["/World/copies/copy_2"]


def test_world_poses_name_what_is_wrong(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=2)) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras=["/World/overview", "*/wrist"], resolution=(8, 6))
        places, turns = np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]])
        sensor.set_world_poses(places, turns, views=[3])
        for arguments, options, match in (
            ((places, turns), {}, "one camera"),
            ((places, turns), {"views": [9]}, "do not exist"),
            ((places, turns), {"views": [2, 3]}, r"\(2, 3\)"),
            ((places * np.nan, turns), {"views": [2]}, "not finite"),
            ((places, turns * 0), {"views": [2]}, "no quaternion"),
            ((places, turns), {"views": [2], "convention": "cv"}, "convention"),
        ):
            with pytest.raises(ArgumentError, match=match):
                sensor.set_world_poses(*arguments, **options)


def test_excluded_bodies_and_prims_are_not_seen(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=2)) as scene:
        paths = scene.index.prim_paths
        cube, finger, lamp = (paths.index(f"{ENV}/{name}") for name in ("robot/frame/cube", "robot/hand/finger", "lamp"))

        def seen(**options) -> list[set]:
            sensor, planes = pictures(scene, None, "*", ("primId",), (64, 48), worlds=[1], **options)
            return {scene.cameras.label[row].split("/")[-1]: set(np.unique(planes["primId"][v]).tolist()) for v, row in rows(sensor)}

        def rows(sensor):
            return enumerate(sensor.view_camera.numpy().tolist())

        everything = seen()
        assert {cube, finger, lamp} <= everything["above"] and finger in everything["wrist"]
        assert not seen(exclude="*/robot")["above"] & {cube}
        assert finger in seen(exclude=f"{ENV}/robot")["above"]  # the hand is a body of its own
        assert not seen(exclude=["*/robot*", "*/lamp"])["above"] & {cube, finger, lamp}
        by_camera = seen(exclude={"*/wrist": "*/hand/*", "*/above": "*/lamp"})
        assert finger not in by_camera["wrist"] and finger in by_camera["above"] and lamp not in by_camera["above"]
        assert lamp in by_camera["overview"]
        for wrong, match in (
            ("*/nothing", "matches no body"),
            ({"*/no": "*/lamp"}, "none of the sensor's cameras"),
            (3, "expected a pattern"),
        ):
            with pytest.raises(ArgumentError, match=match):
                seen(exclude=wrong)


def test_an_exclusion_follows_the_stage(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=2)) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/above", resolution=(64, 48), exclude="*/lamp*")
        out = sensor.allocate(["primId"])
        ball = UsdGeom.Sphere.Define(stage, f"{ENV}/lamp_too")
        ball.CreateRadiusAttr(0.3)
        ball.AddTranslateOp().Set(Gf.Vec3d(-0.8, -0.5, 0.3))
        scene.sync()
        sensor.update(None, out)
        assert {scene.prim_path(int(i)) for i in np.unique(out["primId"].numpy()) if i >= 0}.isdisjoint({f"{ENV}/lamp", f"{ENV}/lamp_too"})


def test_collision_geometry_is_seen_by_those_who_ask(stage, device):
    hull = UsdGeom.Cube.Define(stage, f"{ENV}/robot/hull")
    hull.CreateSizeAttr(0.6)
    hull.CreatePurposeAttr("guide")
    UsdPhysics.CollisionAPI.Apply(hull.GetPrim())
    UsdPhysics.CollisionAPI.Apply(stage.GetPrimAtPath(f"{ENV}/lamp"))
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=2)) as scene:

        def seen(geometry):
            _, planes = pictures(scene, None, "*/above", ("primId",), (64, 48), geometry=geometry)
            return {scene.prim_path(int(i)).removeprefix(ENV) for i in np.unique(planes["primId"][1]) if i >= 0}

        visual = seen("visual")
        assert "/robot/hull" not in visual and "/lamp" in visual
        assert seen("collision") == {"/robot/hull", "/lamp"}
        assert {"/robot/hull", "/lamp", "/table"} <= seen("all")
        assert seen("visual") == visual
        with pytest.raises(ArgumentError, match="visual, collision, all"):
            seen("physics")


def test_tiles(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=5)) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(24, 18))
        out = sensor.allocate(["color", "rgba8", "primId", "barycentric", "normal"])
        sensor.update(None, out)
        tiles = sensor.tiled(out)
        for name, array in tiles.items():
            assert array.shape == (2 * 18, 3 * 24)
            for view in range(5):
                y, x = 18 * (view // 3), 24 * (view % 3)
                np.testing.assert_array_equal(array.numpy()[y : y + 18, x : x + 24], out[name].numpy()[view])
        again = sensor.tiled(out, into=tiles)
        assert all(again[name] is tiles[name] for name in tiles)
        assert sensor.tiled({"primId": out["primId"]}, columns=5)["primId"].shape == (18, 120)


def test_states_are_of_their_scene(stage, device):
    with (
        open_worlds(stage, device, hdwarp.replicate(ENV, count=2)) as scene,
        open_worlds(stage, device, hdwarp.replicate(ENV, count=2)) as other,
    ):
        sensor = hdwarp.SensorCamera(scene, cameras="*/wrist", resolution=(8, 6))
        out = sensor.allocate(["primId"])
        with pytest.raises(ArgumentError, match="another scene"):
            sensor.update(other.state(), out)
        old = scene.state()
        UsdGeom.Xform.Define(stage, f"{ENV}/later").GetPrim().ApplyAPI("PhysicsRigidBodyAPI")
        stage.RemovePrim(f"{ENV}/robot/frame")
        scene.sync()
        with pytest.raises(ArgumentError, match="new state"):
            sensor.update(old, out)
        sensor.update(scene.state(), out)


def test_a_body_at_no_pose_is_not_there_and_spoils_nothing(stage, device):
    """NaN in the poses of world 1: its robot is gone; what stands there, and the other worlds, are as they were."""
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3)) as scene:
        poses = scene.bodies.pose.copy()
        _, fine = pictures(scene, state_of(scene, poses), "*")
        poses[2:4] = np.nan
        sensor, ours = pictures(scene, state_of(scene, poses), "*")
        cube = scene.index.prim_paths.index(f"{ENV}/robot/frame/cube")
        for view, (row, world) in enumerate(zip(sensor.view_camera.numpy(), sensor.view_world.numpy(), strict=True)):
            if world != 1:
                same(ours, fine, view, view)
            elif scene.cameras.label[row].endswith("above"):
                assert cube not in ours["primId"][view]
                lamp = fine["primId"][view] == scene.index.prim_paths.index(f"{ENV}/lamp")
                assert (ours["primId"][view][lamp] == fine["primId"][view][lamp]).all()
            elif scene.cameras.label[row].endswith("wrist"):
                assert (ours["primId"][view] == -1).all()


def test_world_indices_look_into_other_worlds(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=3)) as scene:
        poses = random_poses(scene, 7)
        state = state_of(scene, poses)
        sensor = hdwarp.SensorCamera(scene, cameras="*/above", resolution=(24, 18))
        out = sensor.allocate(AOVS)
        sensor.update(state, out)
        plain = {name: array.numpy().copy() for name, array in out.items()}
        sensor.update(state, out, world_indices=wp.array([2, 0, 5], dtype=wp.int32, device=scene.device))
        ours = {name: array.numpy() for name, array in out.items()}
        same(ours, plain, 0, 2, but=())
        same(ours, plain, 1, 0, but=())
        assert (ours["primId"][2] == -1).all()  # there is no world 5


def test_bad_worlds_are_named(stage, device):
    for worlds, match in (
        ([hdwarp.replicate("/World/nothing", count=2)], "nothing"),
        ([hdwarp.authored_worlds("/World/envs/robot_*")], "robot_"),
        ([hdwarp.replicate(ENV, count=2), hdwarp.replicate(f"{ENV}/robot", count=2)], "robot"),
        ("all", "replicate"),
    ):
        with pytest.raises(ArgumentError, match=match):
            hdwarp.Scene(stage, device=device, worlds=worlds)


def test_a_camera_that_comes_asks_for_rebind(stage, device):
    with open_worlds(stage, device, hdwarp.replicate(ENV, count=2)) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/robot/*", resolution=(8, 6))
        out = sensor.allocate(["primId"])
        camera(stage, f"{ENV}/robot/second", (0, 0, 1))
        scene.sync()
        with pytest.raises(Error, match=r"rebind\(\)"):
            sensor.update(None, out)
        sensor.rebind()
        assert sensor.view_count == 4
        stage.RemovePrim(f"{ENV}/robot/second")
        stage.RemovePrim(f"{ENV}/robot/hand/wrist")
        scene.sync()
        with pytest.raises(Error, match=r"rebind\(\)"):
            sensor.update(None, sensor.allocate(["primId"]))


def test_the_example_of_the_readme(monkeypatch, tmp_path):
    """256 worlds of the sample robot, as the page has it: every second view is rendered, and all stand differently."""
    root = Path(__file__).resolve().parents[2]
    text = (root / "README.md").read_text(encoding="utf8")
    code = text[text.index("## Many worlds") :].split("```python\n")[1].split("```")[0]
    (tmp_path / "many_worlds_of_the_readme.py").write_text(code, encoding="utf8")  # kernels are read from the files that define them
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(root)
    page = importlib.import_module("many_worlds_of_the_readme")
    seen = page.images["rgba8"].numpy()
    assert seen.shape == (256, 64, 64, 4)
    assert seen[::2, ..., 3].mean(axis=(1, 2)).min() > 100 and not seen[1::2].any()
    assert len({view.tobytes() for view in seen[::2]}) == 128
    assert page.sheet.shape == (960, 1280, 4) and page.sheet[..., 3].mean() > 100
