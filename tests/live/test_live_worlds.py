"""A live scene of many worlds: after any edits of its prototypes, the same bits as one opened afresh with the same worlds."""

from __future__ import annotations

import os

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Usd, UsdGeom
from tests.live.live_edits import LiveStage
from tests.live.live_more import RichStage
from tests.live.test_live_stage import said
from tests.sensors.world_stages import add_environment, add_ground, empty_stage, pictures

import hdwarp
import hdwarp.scene

AOVS = ("color", "distance_to_image_plane", "normal", "position", "primId", "instanceId", "elementId", "triangleId", "barycentric")
AOVS = (*AOVS, "materialId", "bodyId", "worldId", "motion")
SEQUENCES = int(os.environ.get("HDWARP_LIVE_SEQUENCES", "30")) // 4  # more of them by night


def worlds_of(rng: np.random.Generator) -> list:
    """Some prims as prototypes of worlds: turned, on a grid, or where they are; what is left is global."""
    turns = rng.normal(size=(3, 4))
    xforms = np.concatenate([rng.uniform(-1, 1, (3, 3)), turns / np.linalg.norm(turns, axis=1, keepdims=True)], axis=1)
    choices = [
        hdwarp.replicate("/World/group", count=3, xforms=xforms),
        hdwarp.replicate("/World/scatter", count=2, spacing=0.5),
        hdwarp.replicate("/World/ball", count=2),
        hdwarp.authored_worlds(["/World/one", "/World/two", "/World/load*"]),
    ]
    return [choices[i] for i in sorted(rng.choice(4, rng.integers(1, 4), replace=False))]


def planes(scene: hdwarp.Scene, poses: np.ndarray | None) -> tuple[list, dict]:
    sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(40, 30))
    state = None
    if poses is not None:
        state = scene.state()
        state.body_q.assign(wp.array(poses, dtype=wp.transformf, device=scene.device))
    out = sensor.allocate(AOVS)
    sensor.update(state, out)
    return [sensor.view_camera.numpy().tolist(), sensor.view_world.numpy().tolist()], {name: array.numpy() for name, array in out.items()}


def assert_same(synced: hdwarp.Scene, fresh: hdwarp.Scene, rng: np.random.Generator, told: str) -> None:
    assert synced.bodies.label == fresh.bodies.label, told
    assert np.array_equal(synced.bodies.pose, fresh.bodies.pose), told
    assert synced.cameras.label == fresh.cameras.label, told
    assert np.array_equal(synced.worlds.origin, fresh.worlds.origin), told
    assert np.array_equal(synced.cameras.transform.numpy(), fresh.cameras.transform.numpy()), told
    for name in ("sites", "lights"):
        ours, theirs = getattr(synced, name), getattr(fresh, name)
        assert ours.label == theirs.label and np.array_equal(ours.transform, theirs.transform), told
        assert np.array_equal(ours.body, theirs.body) and np.array_equal(ours.world, theirs.world), told
    poses = synced.bodies.pose + rng.normal(0, 0.1, synced.bodies.pose.shape).astype(np.float32)
    for given in (None, poses):
        views, ours = planes(synced, given)
        other_views, theirs = planes(fresh, given)
        assert views == other_views, told
        for name in AOVS:
            if name != "motion":  # the fresh one has no frame before
                assert np.array_equal(ours[name], theirs[name], equal_nan=True), f"{name} {told}"
    assert said(synced) == said(fresh), told


def follow(live: LiveStage, steps: int, device: str, monkeypatch, *history: str) -> None:
    history = list(history)
    with hdwarp.Scene(live.stage, device=device, time=live.time, worlds=worlds_of(live.rng)) as synced:
        groups = synced.index.worlds.groups
        monkeypatch.setattr(hdwarp.scene, "resolve_worlds", lambda *_: groups)  # also where a root is gone by then
        for _ in range(steps):
            history += [live.edit() for _ in range(live.rng.integers(1, 4))]
            synced.sync(live.time)
            with hdwarp.Scene(live.stage, device=device, time=live.time, worlds=["as before"]) as fresh:
                assert_same(synced, fresh, live.rng, f"after {history} in {[group.root for group in groups]}")
            done = synced.sync()
            assert not any(getattr(done, name) for name in done.__dataclass_fields__), f"a sync after a sync did {done} after {history}"


@pytest.mark.parametrize("kind", [LiveStage, RichStage])
@pytest.mark.parametrize("seed", range(5000, 5000 + SEQUENCES))
def test_edited_and_opened_afresh_are_the_same(seed, kind, device, monkeypatch):
    follow(kind(seed), 5, device, monkeypatch, f"{kind.__name__} {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LiveStage, RichStage])
@pytest.mark.parametrize("seed", range(6000, 6000 + 10 * SEQUENCES))
def test_long_histories(seed, kind, device, monkeypatch):
    follow(kind(seed), 20, device, monkeypatch, f"{kind.__name__} {seed}")


def test_an_edit_of_the_prototype_is_an_edit_of_all_copies(device):
    """One prim moved: its copies' rows are uploaded, nothing is built."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Xform.Define(stage, "/env")
    for i in range(4):
        UsdGeom.Cube.Define(stage, f"/env/cube_{i}").AddTranslateOp().Set(Gf.Vec3d(2 * i, 0, 0))
    UsdGeom.Sphere.Define(stage, "/ball")
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate("/env", count=50)]) as scene:
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/env/cube_1")).SetTranslate(Gf.Vec3d(0, 3, 0))
        done = scene.sync()
        assert (done.prims_read, done.instances_changed, done.rows_uploaded) == (1, 1, 50)
        assert (done.tlas_built, done.blas_built) == (0, 0)
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/ball")).SetTranslate(Gf.Vec3d(0, 3, 0))
        done = scene.sync()
        assert (done.rows_uploaded, done.tlas_built) == (1, 0)
        assert not any(getattr(scene.sync(), name) for name in done.__dataclass_fields__)


def test_a_root_that_moves_takes_its_worlds_along_or_leaves_them(device):
    """Authored worlds stand where their roots are; copies stay where they were placed, and go with the prototype's root otherwise."""
    stage = Usd.Stage.CreateInMemory()
    for i in range(2):
        UsdGeom.Xform.Define(stage, f"/env_{i}").AddTranslateOp().Set(Gf.Vec3d(4 * i, 0, 0))
        UsdGeom.Cube.Define(stage, f"/env_{i}/cube")
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.authored_worlds("/env_*")]) as scene:
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/env_1")).SetTranslate(Gf.Vec3d(9, 1, 0))
        scene.sync()
        assert scene.worlds.origin.tolist() == [[0, 0, 0], [0.09, 0.01, 0]]  # the stage is in centimetres
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate("/env_1", count=2, spacing=1.0)]) as scene:
        before = scene.worlds.origin.copy()
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/env_1")).SetTranslate(Gf.Vec3d(2, 1, 0))
        scene.sync()
        assert np.array_equal(scene.worlds.origin, before)


PLACED = {
    "nowhere": ({}, [(1, 2, 0.5), (1, 2, 0.5)]),
    "on a grid": ({"spacing": 4.0}, [(0, -2, 0.5), (0, 2, 0.5)]),
    "at positions": ({"xforms": [[5, 0, 0], [9, 0, 1]]}, [(5, 0, 0), (9, 0, 1)]),
    "at poses": ({"xforms": [[5, 0, 0, 0, 0, 0, 1], [9, 0, 1, 0, 0, 1, 0]]}, [(5, 0, 0), (9, 0, 1)]),
}


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("how", ["edited", "turned", "animated", "the parent"])
def test_copies_of_a_root_that_moves_are_those_of_a_fresh_scene(name, how, device):
    """Origins by hand; origins, poses at rest and pictures as a scene opened afterwards has them."""
    options, origins = PLACED[name]
    stage = empty_stage()
    add_ground(stage)
    add_environment(stage, "/World/envs/env_0")
    root = UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/envs/env_0"))
    root.SetTranslate(Gf.Vec3d(0, 0, 0))
    if how == "animated":
        root.SetTranslate(Gf.Vec3d(0, 0, 0), 0.0)
        root.SetTranslate(Gf.Vec3d(1, 2, 0.5), 10.0)
    with hdwarp.Scene(stage, device=device, time=0, worlds=[hdwarp.replicate("/World/envs/env_0", 2, **options)]) as scene:
        if how == "the parent":
            UsdGeom.Xform(stage.DefinePrim("/World/envs", "Xform")).AddTranslateOp().Set(Gf.Vec3d(1, 2, 0.5))
        elif how != "animated":
            root.SetTranslate(Gf.Vec3d(1, 2, 0.5))
            root.SetRotate(Gf.Vec3f(20, -30, 130 if how == "turned" else 0))
        scene.sync(10)
        np.testing.assert_allclose(scene.worlds.origin, origins, atol=1e-12)
        with hdwarp.Scene(stage, device=device, time=10, worlds=[hdwarp.replicate("/World/envs/env_0", 2, **options)]) as fresh:
            assert np.array_equal(scene.worlds.origin, fresh.worlds.origin)
            assert np.array_equal(scene.bodies.pose, fresh.bodies.pose)
            seen = [pictures(each, size=(24, 18))[1] for each in (scene, fresh)]
            for plane in seen[0]:
                np.testing.assert_array_equal(seen[0][plane], seen[1][plane])
