"""What goes wrong in the middle of a session: bad values, things deleted while they are used, calls that fail half way."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from pxr import Gf, Sdf, UsdGeom, Vt
from tests.live import moving
from tests.live.test_live_stage import check, picture

import hdwarp
from hdwarp.errors import Error, StageError
from hdwarp.rendering import render_shot
from hdwarp.scene import Scene
from hdwarp.stage import reader as reader_module
from hdwarp.stage import take, traverse, used_materials
from hdwarp.tables.scene_tables import SceneTables

NAN = float("nan")


@pytest.fixture
def stage():
    """Things of many kinds."""
    stage = moving.new_stage(3)
    for mover in (moving.transform, moving.material):
        mover(stage)
        stage.GetPrimAtPath("/World/mover").SetActive(True)
    moving.rig(stage)
    moving.add_mesh(stage, "/World/sheet")
    instancer = UsdGeom.PointInstancer.Define(stage, "/World/many")
    instancer.CreatePrototypesRel().SetTargets(["/World/calm0"])
    instancer.CreateProtoIndicesAttr([0, 0])
    instancer.CreatePositionsAttr([(0, 2, 0), (0, 3, 0)])
    return stage


BAD = [
    ("/World/calm0", "size", Sdf.ValueTypeNames.Double, NAN),
    ("/World/calm0", "size", Sdf.ValueTypeNames.Double, -1.0),
    ("/World/calm0", "size", Sdf.ValueTypeNames.Double, 1e300),
    ("/World/calm0", "size", Sdf.ValueTypeNames.String, "large"),
    ("/World/calm0", "xformOp:translate", Sdf.ValueTypeNames.Double3, Gf.Vec3d(NAN, 0, 0)),
    ("/World/calm0", "xformOp:translate", Sdf.ValueTypeNames.Double3, Gf.Vec3d(1e200, 0, 0)),
    ("/World/calm0", "xformOp:translate", Sdf.ValueTypeNames.String, "left"),
    ("/World/calm0", "xformOpOrder", Sdf.ValueTypeNames.Int, 3),
    ("/World/sheet", "points", Sdf.ValueTypeNames.Point3fArray, Vt.Vec3fArray([(NAN, 0, 0)] * 4)),
    ("/World/sheet", "points", Sdf.ValueTypeNames.Point3fArray, Vt.Vec3fArray(1)),
    ("/World/sheet", "points", Sdf.ValueTypeNames.Point3fArray, Vt.Vec3fArray([(3e38, -3e38, 0)] * 4)),
    ("/World/sheet", "points", Sdf.ValueTypeNames.StringArray, Vt.StringArray(["a"])),
    ("/World/sheet", "faceVertexIndices", Sdf.ValueTypeNames.IntArray, Vt.IntArray([0, 1, 99, -5, 2, 3])),
    ("/World/sheet", "faceVertexCounts", Sdf.ValueTypeNames.IntArray, Vt.IntArray([2**31 - 1, -3])),
    ("/World/sheet", "primvars:heat", Sdf.ValueTypeNames.FloatArray, Vt.FloatArray([NAN])),
    ("/World/many", "positions", Sdf.ValueTypeNames.Point3fArray, Vt.Vec3fArray([(NAN, 0, 0)] * 2)),
    ("/World/many", "positions", Sdf.ValueTypeNames.Int, 7),
    ("/World/many", "protoIndices", Sdf.ValueTypeNames.IntArray, Vt.IntArray([5, -1])),
    ("/World/many", "scales", Sdf.ValueTypeNames.Float3Array, Vt.Vec3fArray([(0, 0, 0)] * 2)),
    ("/World/Looks/paint/shader", "inputs:diffuseColor", Sdf.ValueTypeNames.String, "red"),
    ("/World/Looks/paint/shader", "inputs:diffuseColor", Sdf.ValueTypeNames.Color3f, Gf.Vec3f(NAN)),
    ("/World/rig/animation", "rotations", Sdf.ValueTypeNames.QuatfArray, Vt.QuatfArray([Gf.Quatf(NAN)] * 2)),
    ("/World/rig/animation", "translations", Sdf.ValueTypeNames.Float3Array, Vt.Vec3fArray(5)),
    ("/World/rig/skeleton", "bindTransforms", Sdf.ValueTypeNames.Matrix4dArray, Vt.Matrix4dArray(2)),
    ("/World", "visibility", Sdf.ValueTypeNames.Token, "maybe"),
    ("/World", "purpose", Sdf.ValueTypeNames.Int, 3),
    ("/cam", "clippingRange", Sdf.ValueTypeNames.Float2, Gf.Vec2f(0.1, 1e6)),
    ("/cam", "horizontalAperture", Sdf.ValueTypeNames.Float, 1e-3),
]


def author(stage, path: str, name: str, kind: Sdf.ValueTypeName, value: object) -> None:
    """On the session layer, whatever type the schema has: clearing that layer takes it back."""
    with Sdf.ChangeBlock():
        spec = Sdf.CreatePrimInLayer(stage.GetSessionLayer(), path)
        Sdf.AttributeSpec(spec, name, kind).default = value


def test_bad_values(stage, device):
    """Each is drawn as a fresh scene draws it, and leaves nothing behind once taken back."""
    with Scene(stage, device=device, time=1) as scene:
        before = picture(scene)
        for path, name, kind, value in BAD:
            author(stage, path, name, kind, value)
            check(scene, 1, path, name, value)
            stage.GetSessionLayer().Clear()
            scene.sync()
        check(scene, 1)
        after = picture(scene)
        assert all(np.array_equal(before[name], after[name], equal_nan=True) for name in before.aovs)


def test_the_camera_in_use_is_deleted(stage, device):
    other = UsdGeom.Camera.Define(stage, "/other")
    with Scene(stage, device=device, time=1) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/cam", resolution=(8, 6))
        out = sensor.allocate(["primId"])
        sensor.update(None, out)
        stage.RemovePrim("/cam")
        sensor.update(None, out)  # until somebody calls sync the scene is as it was
        assert scene.sync().cameras_changed == 1
        with pytest.raises(Error, match=r"rebind\(\)"):
            sensor.update(None, out)
        with pytest.raises(Error, match="no camera matches '/cam'; there are: /other"):
            sensor.rebind()
        with pytest.raises(StageError, match="</cam>"):
            hdwarp.render(stage, "/cam", resolution=(8, 6))
        stage.RemovePrim(other.GetPath())
        UsdGeom.Camera.Define(stage, "/cam")
        scene.sync()
        sensor.rebind()
        sensor.update(None, out)


def test_the_camera_in_use_breaks(stage, device):
    """A camera that cannot make a picture is none until it is mended."""
    with Scene(stage, device=device, time=1) as scene:
        shot_of(scene)
        focal = UsdGeom.Camera.Get(stage, "/cam").GetFocalLengthAttr()
        for bad in (0.0, NAN, -1.0):
            focal.Set(bad)
            scene.sync()
            with pytest.raises(StageError, match="</cam>.*focalLength"):
                shot_of(scene)
        focal.Set(30.0)
        check(scene, 1)


def shot_of(scene: Scene):
    from hdwarp.batch.shots import plan_shot
    from hdwarp.errors import Diagnostics

    return render_shot(scene, plan_shot(scene.stage, "/cam", resolution=(8, 6), aovs=["primId"], diagnostics=Diagnostics()))


def test_edits_while_rendering(stage, device):
    """Another thread edits all the time; pictures are of the last sync, and the next sync has all of it."""
    with Scene(stage, device=device, time=1) as scene:
        before, stop = picture(scene)["distance_to_image_plane"], threading.Event()
        edited = threading.Event()

        def edit() -> None:
            count = 0
            while not stop.is_set():
                UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/calm1")).SetTranslate((0.01 * count, 0, 3))
                UsdGeom.Sphere.Define(stage, f"/World/extra{count % 7}")
                stage.RemovePrim(f"/World/extra{(count + 3) % 7}")
                count += 1
                edited.set()

        thread = threading.Thread(target=edit)
        thread.start()
        try:
            assert edited.wait(10)
            shot = None
            for _ in range(5):
                shot = picture(scene)["distance_to_image_plane"]
                assert np.array_equal(shot, before)
        finally:
            stop.set()
            thread.join()
        check(scene, 1)
        assert not np.array_equal(picture(scene)["distance_to_image_plane"], before)


FAILING = [
    (take, "read_mesh"),
    (traverse, "read_facts"),
    (reader_module.gather, "gather_cameras"),
    (reader_module.gather, "gather_gprims"),
    (reader_module, "dirty_parts"),
    (used_materials, "read_material"),
    (reader_module, "_compare"),
]


@pytest.mark.parametrize(("module", "name"), FAILING, ids=[name for _, name in FAILING])
def test_a_sync_that_fails_half_way(stage, device, module, name, monkeypatch):
    """The scene stays as it was, the next sync has everything, edits and animation of meanwhile included."""
    with Scene(stage, device=device, time=1) as scene:
        scene.sync(5)
        before = picture(scene)
        UsdGeom.Sphere.Define(stage, "/World/new")
        moving.add_mesh(stage, "/World/sheet2", [(x, y, 1) for x, y, _ in moving.SQUARE])
        stage.GetAttributeAtPath("/World/Looks/paint/shader.inputs:diffuseColor").Set((0.5, 0.5, 0.5), 9.0)
        stage.RemovePrim("/World/calm0")

        def fail(*_: object, **__: object) -> None:
            raise MemoryError("not now")

        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(MemoryError, match="not now"):
                scene.sync(9)
        assert scene.time == 5
        after = picture(scene)
        assert all(np.array_equal(before[aov], after[aov], equal_nan=True) for aov in before.aovs)
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/calm1")).SetTranslate((0, 0, 1), 3.0)
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/calm1")).SetTranslate((0, 0, 2), 7.0)
        check(scene, 9)
        for time in (1, 5, 6):
            check(scene, time)


@pytest.mark.parametrize("name", ["_count_kinds", "_sync_trees"])
def test_tables_that_fail_half_way(stage, device, name, monkeypatch):
    with Scene(stage, device=device, time=1) as scene:
        UsdGeom.Sphere.Define(stage, "/World/new")
        with monkeypatch.context() as patch:
            patch.setattr(SceneTables, name, lambda *_: (_ for _ in ()).throw(MemoryError("not now")))
            with pytest.raises(MemoryError, match="not now"):
                scene.sync(5)
        stage.RemovePrim("/World/sheet")
        check(scene, 9)


def test_strict(stage, device):
    """An error is raised, the scene stays as it was; once mended all is as in a scene opened then."""
    with Scene(stage, device=device, time=1, strict=True) as scene:
        before = picture(scene)
        UsdGeom.SetStageMetersPerUnit(stage, 0.5)
        UsdGeom.Sphere.Define(stage, "/World/new")
        stage.GetAttributeAtPath("/World/sheet.faceVertexIndices").Set([0, 1, 99, 0, 2, 3])
        for _ in range(2):  # until it is mended
            with pytest.raises(StageError, match="</World/sheet>"):
                scene.sync(5)
        after = picture(scene)
        assert all(np.array_equal(before[aov], after[aov], equal_nan=True) for aov in before.aovs)
        assert (scene.time, scene.metres_per_unit) == (1, 1.0)
        assert not list(scene.diagnostics) or "faceVertexIndices" not in str(list(scene.diagnostics))
        stage.GetAttributeAtPath("/World/sheet.faceVertexIndices").Set([0, 1, 2, 0, 2, 3])
        check(scene, 5)
        assert scene.metres_per_unit == 0.5


def test_the_framed_view_of_a_failed_sync(stage, device, monkeypatch):
    """Without a camera the view frames what the scene holds, not what a sync that failed had read."""
    stage.RemovePrim("/cam")
    with Scene(stage, device=device, time=1) as scene:
        scene.frame_default_camera(1.0)
        before = scene.cameras.cameras[0].world_from_camera
        UsdGeom.Cube.Define(stage, "/World/huge").CreateSizeAttr(1000.0)
        with monkeypatch.context() as patch:
            patch.setattr(reader_module, "_compare", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                scene.sync()
        scene.frame_default_camera(1.0)
        assert np.array_equal(scene.cameras.cameras[0].world_from_camera, before)
        scene.sync()
        scene.frame_default_camera(1.0)
        assert not np.array_equal(scene.cameras.cameras[0].world_from_camera, before)


@pytest.mark.parametrize("time", ["soon", float("inf"), NAN, [1]])
def test_no_time(stage, device, time):
    with Scene(stage, device=device, time=1) as scene:
        UsdGeom.Sphere.Define(stage, "/World/new")
        with pytest.raises(Error, match="time is"):
            scene.sync(time)
        check(scene, 1)
