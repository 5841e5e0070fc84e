"""Tables that let go of memory: rows are numbered anew when most are gone, and nothing that is given out changes by it."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import warp as wp
from pxr import UsdGeom, UsdShade
from tests.delegate.conftest import at
from tests.live import moving
from tests.live.live_edits import LiveStage
from tests.live.live_more import RichStage
from tests.live.test_live_stage import check, follow, picture

import hdwarp
from hdwarp.batch.shots import plan_shot
from hdwarp.delegate import rows
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.errors import Diagnostics
from hdwarp.rendering import render_shot
from hdwarp.scene import Scene
from hdwarp.stage.columns import Body, GeometryKind, Gprim, StageChanges
from hdwarp.tables.scene_tables import SceneTables


@contextlib.contextmanager
def limits(few: int, sparse: int):
    """``few`` rows keep their memory, tables with more give it up when fewer than one in ``sparse`` is in use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "FEW_ROWS", few)
        patch.setattr(rows, "SPARSE", sparse)
        yield


@pytest.fixture
def always():
    """Rows are numbered anew after every edit that leaves a gap."""
    with limits(0, 1):
        yield


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", [LiveStage, RichStage])
@pytest.mark.parametrize("seed", range(12))
def test_edited_and_opened_afresh_are_the_same(seed, kind, device):
    follow(kind(seed), 8, device, f"{kind.__name__} {seed}")


@pytest.mark.slow
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", [LiveStage, RichStage])
@pytest.mark.parametrize("seed", range(3000, 3080))
def test_long_histories(seed, kind, device):
    follow(kind(seed), 25, device, f"{kind.__name__} {seed}")


def cubes(stage, count: int, rng) -> None:
    """Cubes of two materials, every third one a mesh of its own with faces of another material."""
    paint = UsdShade.Material.Get(stage, "/World/Looks/paint") or None
    for _ in range(count):
        path = f"/World/c{int(rng.integers(10**9))}"
        if rng.random() < 0.3:
            prim = moving.add_mesh(stage, path, [(x, y, float(rng.uniform())) for x, y, _ in moving.SQUARE])
            if rng.random() < 0.5:
                part = UsdGeom.Subset.CreateGeomSubset(prim, "part", "face", [1], familyName="materialBind")
                if paint:
                    UsdShade.MaterialBindingAPI.Apply(part.GetPrim()).Bind(paint)
        else:
            prim = UsdGeom.Cube.Define(stage, path)
        UsdGeom.XformCommonAPI(prim).SetTranslate(tuple(float(x) for x in rng.uniform(-4, 4, 3)))
        UsdGeom.XformCommonAPI(prim).SetScale((0.3, 0.3, 0.3))
        if rng.random() < 0.5:
            UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(paint)


@pytest.mark.parametrize("seed", range(4))
def test_many_come_and_most_go(seed, device):
    """Runs of hundreds that grow, shrink and grow again, in any order."""
    rng, stage = np.random.default_rng(seed), moving.new_stage(6)
    moving.material(stage)
    moving.joints(stage)
    with limits(16, 2), Scene(stage, device=device, time=1) as scene:
        for step in range(8):
            there = [p.GetPath() for p in stage.GetPrimAtPath("/World").GetChildren() if p.GetName()[0] == "c" and p.GetName()[1].isdigit()]
            for i in rng.permutation(len(there))[: int(len(there) * rng.choice([0.3, 0.9, 1.0]))]:
                stage.RemovePrim(there[i])
            cubes(stage, int(rng.choice([0, 10, 120])), rng)
            check(scene, 1 + step % 3, seed, step)
        assert scene.index.renumberings > 0


def motion(scene: Scene) -> dict[str, np.ndarray]:
    shot = plan_shot(scene.stage, "/cam", resolution=(64, 48), aovs=["motion", "primId"], diagnostics=Diagnostics())
    frame = render_shot(scene, shot)
    return {name: frame[name] for name in frame.aovs}


def test_motion_goes_on_where_rows_are_numbered_anew(device):
    """Two scenes of one stage: in one rows never change their numbers."""
    stage, rng = moving.new_stage(8), np.random.default_rng(5)
    moving.points(stage)
    cubes_there = [f"/World/calm{i}" for i in range(8)] + [f"/World/calm{i}_mesh" for i in range(1, 8, 2)]
    with Scene(stage, device=device, time=1) as still, Scene(stage, device=device, time=1) as renumbered:
        seen = 0
        for scene in (still, renumbered):
            scene.keep_previous()
        for step in range(6):
            stage.RemovePrim(cubes_there.pop(int(rng.integers(len(cubes_there)))))
            for path in cubes_there[:3]:
                UsdGeom.XformCommonAPI(stage.GetPrimAtPath(path)).SetTranslate(tuple(float(x) for x in rng.uniform(-3, 3, 3)))
            still.sync(1 + 2 * step)
            with limits(0, 1):
                renumbered.sync(1 + 2 * step)
                ours = motion(renumbered)
            theirs = motion(still)
            for name, plane in theirs.items():
                assert np.array_equal(ours[name], plane), (name, step)
            seen += int((theirs["motion"] != 0).any())
            assert renumbered.tables.previous_version >= still.tables.previous_version
        assert seen > 3 and renumbered.index.renumberings > 3 and still.index.renumberings == 0


def placed(scene: Scene) -> dict[str, np.ndarray]:
    """Of all rows that draw, in all worlds, in an order that no row number has a part in."""
    columns, count = scene.instances.columns(), scene.instances.size
    world, source = (getattr(columns, name).numpy()[:count] for name in ("world", "source"))
    of_source = {name: getattr(columns, name).numpy()[source] for name in ("kind", "prim_id", "instance_id", "rank", "body")}
    live = np.flatnonzero(of_source["kind"] >= 0)
    order = live[np.lexsort((of_source["rank"][live], world[live]))]
    places = {name: getattr(columns, name).numpy()[:count][order] for name in ("world_from_object", "translation")}
    return {"world": world[order], **places, **{name: values[order] for name, values in of_source.items()}}


@pytest.mark.parametrize("few", [0, 16])
def test_copies_of_a_prototype_that_shrinks(few, device):
    """3 of 60 prims of a prototype of 8 worlds are left; then there are more again."""
    stage, rng = moving.new_stage(4), np.random.default_rng(2)
    UsdGeom.Xform.Define(stage, "/World/env_0").AddTranslateOp().Set((-3, 0, 0))
    UsdGeom.Camera.Define(stage, "/World/env_0/eye").AddTranslateOp().Set((0.5, 0.5, 5))
    worlds = [hdwarp.replicate("/World/env_0", count=8, spacing=1.5)]

    def add(first: int, last: int) -> None:
        for i in range(first, last):
            cube = UsdGeom.Cube.Define(stage, f"/World/env_0/p{i}")
            cube.AddTranslateOp().Set((0.2 * (i % 6), 0.2 * (i // 6), 0))
            cube.CreateSizeAttr(0.15)

    add(0, 60)
    with limits(few, 2), Scene(stage, device=device, worlds=worlds) as scene:
        many = scene.tables.device_bytes
        for first, kept in ((0, 3), (60, 57), (120, 0), (180, 20)):
            there = [f"/World/env_0/{name}" for name in stage.GetPrimAtPath("/World/env_0").GetChildrenNames() if name != "eye"]
            for i in rng.permutation(len(there))[kept:]:
                stage.RemovePrim(there[i])
            scene.sync()
            with Scene(stage, device=device, worlds=worlds) as fresh:
                assert scene.tables.device_bytes <= 2 * fresh.tables.device_bytes + 1024 * few
                theirs = placed(fresh)
                for name, column in placed(scene).items():
                    assert np.array_equal(column, theirs[name]), (name, first)
                a, b = picture(scene), picture(fresh)
                assert all(np.array_equal(a[name], b[name], equal_nan=True) for name in a.aovs)
                assert scene.tables.device_bytes < many / 4 or kept > 3
            add(first + 60, first + 120)
            scene.sync()


def test_bodies_that_were_posed(device):
    """What bodies carry is posed, and most of the rest goes: the next pose finds the rows that are left."""
    rng, pose = np.random.default_rng(0), np.array([[4, 5, 6, 0, 0, 0.6, 0.8]], np.float32)
    body, poses = Body("/b", at(1, 2, 3)), wp.array(pose, dtype=wp.transformf, device=device)
    gprims = [
        Gprim(f"/p{i}", GeometryKind.CUBE, None, at(*rng.uniform(-5, 5, 3))[None], body="/b" if i % 7 == 0 else "")
        for i in rng.permutation(200).tolist()
    ]
    with limits(16, 2):
        index, tables = RenderIndex(), SceneTables(device)
        index.insert(body, *gprims)
        tables.sync(index)
        tables.pose(poses)
        version = tables.picture_version
        index.apply(StageChanges(gprims=dict.fromkeys(list(index.gprims)[:180])))
        tables.sync(index)
    assert index.renumberings == 1 and tables.instances.size < 64
    assert tables.picture_version == version + 1 and tables.unposed_version == 1
    fresh_index, fresh = RenderIndex(), SceneTables(device)
    fresh_index.insert(body, *index.gprims.values())
    fresh.sync(fresh_index)

    def places(tables: SceneTables, index: RenderIndex) -> list[np.ndarray]:
        columns, by_rank = tables.instances.columns(), np.argsort(index.instances["rank"])[-20:]
        return [getattr(columns, name).numpy()[by_rank] for name in ("world_from_object", "translation")]

    for posed in (False, True):
        if posed:
            tables.pose(poses)
            fresh.pose(poses)
        for ours, theirs in zip(places(tables, index), places(fresh, fresh_index), strict=True):
            assert np.array_equal(ours, theirs)
