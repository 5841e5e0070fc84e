"""User attributes as device columns: a row each in every world, kernels write them, and the stage wins where it says something else."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Sdf, Usd, UsdGeom, UsdPhysics

import hdwarp
from hdwarp.errors import ArgumentError, Error
from hdwarp.scene import SyncCounts
from hdwarp.stage import attributes as stage_attributes

HEAT, LENS = "thermal:surface_temperature", "thermal:lens_k1"
TEXT = """#usda 1.0
( metersPerUnit = 1 )
def Xform "World" {
    def Xform "env_0" {
        def Xform "robot" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {
            custom float newton:thermal:mass = 3
            def Sphere "ball" { double radius = 0.5
                custom float thermal:surface_temperature = 300
                custom color3f thermal:tint = (0.5, 0.25, 1)
                double3 xformOp:translate = (0, 0, -3)
                uniform token[] xformOpOrder = ["xformOp:translate"] }
            def Camera "eye" { custom float thermal:lens_k1 = 0.125
                custom string thermal:maker = "x"
                float2 clippingRange = (0.1, 100) }
            def Xform "tip" (prepend apiSchemas = ["HdWarpSiteAPI"]) { custom float2 thermal:pair = (1, 2) }
            def SphereLight "lamp" { custom int thermal:watts = 40 }
        }
        def Xform "tool" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {}
        def Cube "box" { double size = 0.25
            custom float thermal:surface_temperature = 280
            custom float thermal:surface_temperature.timeSamples = { 1: 280, 3: 290, }
            double3 xformOp:translate = (1, 0, -3)
            uniform token[] xformOpOrder = ["xformOp:translate"] }
    }
    def Camera "overview" { float2 clippingRange = (0.1, 100) }
    def Cube "ground" { double3 xformOp:translate = (0, -9, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"] }
}
"""
BALL, BOX, EYE, ROBOT = ("/World/env_0/" + name for name in ("robot/ball", "box", "robot/eye", "robot"))


@pytest.fixture
def stage() -> Usd.Stage:
    layer = Sdf.Layer.CreateAnonymous(".usda")
    assert layer.ImportFromString(TEXT.replace("{ ", "{\n").replace(" }", "\n}"))
    return Usd.Stage.Open(layer)


@pytest.fixture
def scene(stage, device):
    with hdwarp.Scene(stage, device=device, time=1, worlds=[hdwarp.replicate("/World/env_0", count=4)]) as scene:
        yield scene


@wp.kernel
def set_row(row: int, value: float, column: wp.array[wp.float32]):
    column[row] = value


def write(column: wp.array, row: int, value: float) -> None:
    wp.launch(set_row, dim=1, inputs=[row, value, column], device=column.device)


def rows_of(scene: hdwarp.Scene, path: str) -> list[int]:
    """Device rows of a gprim, by world."""
    prim = scene.index.prim_paths.index(path)
    source, world = scene.instances.rows.copies()
    first = int(np.flatnonzero(scene.index.instances["prim_id"] == prim)[0])
    copies = scene.instances.rows.capacity + np.flatnonzero(source == first)
    assert np.array_equal(world[source == first], range(1, 1 + len(copies)))
    return [first, *copies.tolist()]


def same(column: wp.array, expected: object) -> bool:
    return np.array_equal(column.numpy(), np.asarray(expected, np.float32), equal_nan=True)


def test_values_of_every_table_and_world(scene):
    nan = np.nan
    assert same(scene.cameras.attribute(LENS), [nan, 0.125, 0.125, 0.125, 0.125])  # the overview first: it is global
    assert same(scene.bodies.attribute("thermal:mass"), [3, nan] * 4)  # under Newton's prefix
    assert [label.rpartition("/")[2] for label in scene.bodies.label[:2]] == ["robot", "tool"]
    assert same(scene.sites.attribute("thermal:pair"), [(1, 2)] * 4)
    assert same(scene.lights.attribute("thermal:watts"), [40] * 4)
    heat, tint = scene.instances.attribute(HEAT), scene.instances.attribute("thermal:tint")
    assert [array.dtype for array in (heat, tint, scene.sites.attribute("thermal:pair"))] == [wp.float32, wp.vec3f, wp.vec2f]
    assert heat.shape == (scene.instances.size,) and heat.device == scene.device
    assert heat.numpy()[rows_of(scene, BALL)].tolist() == [300] * 4
    assert heat.numpy()[rows_of(scene, BOX)].tolist() == [280] * 4
    assert np.isfinite(heat.numpy()).sum() == 8  # not the ground, nor rows of nothing
    assert tint.numpy()[rows_of(scene, BALL)].tolist() == [[0.5, 0.25, 1]] * 4
    assert np.isfinite(tint.numpy()).all(axis=1).sum() == 4
    for table, name in ((scene.cameras, LENS), (scene.bodies, "thermal:mass"), (scene.sites, "thermal:pair"), (scene.instances, HEAT)):
        assert table.attribute(name) is table.attribute(name)


def test_what_a_kernel_writes_in_a_world_stays_there(stage, scene):
    lens, heat, mass = scene.cameras.attribute(LENS), scene.instances.attribute(HEAT), scene.bodies.attribute("thermal:mass")
    before = heat.numpy().copy()
    ball = rows_of(scene, BALL)
    write(lens, 3, 0.5)  # world 2: the overview is row 0
    write(heat, ball[2], 310.0)
    write(mass, 4, 7.0)
    expected = before.copy()
    expected[ball[2]] = 310.0
    UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/env_0/robot")).SetTranslate((0, 1, 0))
    stage.GetPrimAtPath(EYE).GetAttribute("focalLength").Set(30.0)
    stage.GetPrimAtPath(BALL).GetAttribute("radius").Set(0.25)
    assert scene.sync().bodies_changed == 1
    assert (
        same(lens, [np.nan, 0.125, 0.125, 0.5, 0.125]) and same(heat, expected) and same(mass, [3, np.nan, 3, np.nan, 7, np.nan, 3, np.nan])
    )
    assert (
        scene.cameras.attribute(LENS) is lens and scene.instances.attribute(HEAT) is heat and scene.bodies.attribute("thermal:mass") is mass
    )


def test_edits_win_where_they_say_something_else(stage, scene):
    heat, mass, lens = scene.instances.attribute(HEAT), scene.bodies.attribute("thermal:mass"), scene.cameras.attribute(LENS)
    ball, box = rows_of(scene, BALL), rows_of(scene, BOX)
    for column, row in ((heat, ball[2]), (heat, box[3]), (mass, 2), (lens, 2)):
        write(column, row, 1.0)
    stage.GetPrimAtPath(BALL).GetAttribute(HEAT).Set(300.0)  # says what it said
    scene.sync()
    assert heat.numpy()[ball].tolist() == [300, 300, 1, 300]
    stage.GetPrimAtPath(BALL).GetAttribute(HEAT).Set(320.0)
    scene.sync()
    assert heat.numpy()[ball].tolist() == [320] * 4 and heat.numpy()[box].tolist() == [280, 280, 280, 1]
    stage.GetPrimAtPath(ROBOT).GetAttribute("newton:thermal:mass").Set(4.0)
    stage.GetPrimAtPath("/World/env_0/tool").CreateAttribute("thermal:mass", Sdf.ValueTypeNames.Double).Set(5.0)
    stage.GetPrimAtPath(EYE).RemoveProperty(LENS)
    scene.sync()
    assert same(mass, [4, 5] * 4) and same(lens, [np.nan] * 5)
    stage.GetPrimAtPath(EYE).CreateAttribute(LENS, Sdf.ValueTypeNames.Float).Set(0.25)
    scene.sync()
    assert same(lens, [np.nan, 0.25, 0.25, 0.25, 0.25]) and scene.cameras.attribute(LENS) is lens


def test_values_follow_time(scene):
    heat = scene.instances.attribute(HEAT)
    ball, box = rows_of(scene, BALL), rows_of(scene, BOX)
    write(heat, ball[1], 1.0)
    write(heat, box[1], 1.0)
    scene.sync(2)
    assert heat.numpy()[box].tolist() == [285] * 4 and heat.numpy()[ball].tolist() == [300, 1, 300, 300]
    scene.sync(9)
    assert heat.numpy()[box].tolist() == [290] * 4


def test_a_column_asked_for_between_the_halves_of_a_sync(stage, scene):
    stage.GetPrimAtPath(BALL).GetAttribute(HEAT).Set(320.0)
    pending = scene.read(3)
    heat = scene.instances.attribute(HEAT)
    assert heat.numpy()[rows_of(scene, BOX)].tolist() == [280] * 4  # the scene is still at time 1
    scene.apply(pending)
    assert heat.numpy()[rows_of(scene, BOX)].tolist() == [290] * 4
    scene.read(1)
    scene.sync(2)  # what was read and not applied is read again
    assert heat.numpy()[rows_of(scene, BOX)].tolist() == [285] * 4


def test_rows_that_move_take_along_what_was_written(stage, scene):
    """A gprim, a body and a camera come before all others; later they go."""
    ball = rows_of(scene, BALL)
    heat, mass, lens = scene.instances.attribute(HEAT), scene.bodies.attribute("thermal:mass"), scene.cameras.attribute(LENS)
    pair = scene.sites.attribute("thermal:pair")
    for column, row in ((heat, ball[2]), (mass, 4), (lens, 3)):
        write(column, row, 1.0)
    pair.assign(np.arange(8, dtype=np.float32).reshape(4, 2))
    new = UsdGeom.Sphere.Define(stage, "/World/env_0/a/new")
    new.GetPrim().CreateAttribute(HEAT, Sdf.ValueTypeNames.Float).Set(250.0)
    UsdPhysics.RigidBodyAPI.Apply(stage.GetPrimAtPath("/World/env_0/a"))
    camera = UsdGeom.Camera.Define(stage, "/World/env_0/a/eye")
    camera.CreateClippingRangeAttr((0.1, 10))
    stage.GetPrimAtPath(BOX).GetAttribute(HEAT).Set(260.0, 1)
    tip = UsdGeom.Xform.Define(stage, "/World/env_0/a/tip")
    tip.GetPrim().AddAppliedSchema("HdWarpSiteAPI")
    scene.sync()
    heat, mass, lens = scene.instances.attribute(HEAT), scene.bodies.attribute("thermal:mass"), scene.cameras.attribute(LENS)
    values = heat.numpy()
    assert values[rows_of(scene, "/World/env_0/a/new")].tolist() == [250] * 4
    assert values[rows_of(scene, BALL)].tolist() == [300, 300, 1, 300] and values[rows_of(scene, BOX)].tolist() == [260] * 4
    assert np.isfinite(values).sum() == 12
    nan = np.nan
    assert same(mass, [nan, 3, nan, nan, 3, nan, nan, 1, nan, nan, 3, nan])
    assert same(lens, [nan, nan, 0.125, nan, 0.125, nan, 1, nan, 0.125])
    assert same(scene.sites.attribute("thermal:pair"), [item for k in range(4) for item in ((nan, nan), (2 * k, 2 * k + 1))])
    stage.RemovePrim("/World/env_0/a")
    scene.sync()
    assert same(scene.bodies.attribute("thermal:mass"), [3, nan, 3, nan, 1, nan, 3, nan])
    assert same(scene.cameras.attribute(LENS), [nan, 0.125, 0.125, 1, 0.125])
    assert scene.instances.attribute(HEAT).numpy()[rows_of(scene, BALL)].tolist() == [300, 300, 1, 300]
    assert np.isfinite(scene.instances.attribute(HEAT).numpy()).sum() == 8


def test_what_is_hidden_and_shown_again_starts_anew(stage, scene):
    """Its attribute is edited while nobody draws it."""
    write(scene.instances.attribute(HEAT), rows_of(scene, BALL)[0], 1.0)
    ball = UsdGeom.Imageable(stage.GetPrimAtPath(BALL))
    ball.MakeInvisible()
    scene.sync()
    assert np.isfinite(scene.instances.attribute(HEAT).numpy()).sum() == 4
    ball.GetPrim().GetAttribute(HEAT).Set(330.0)
    scene.sync()
    ball.MakeVisible()
    scene.sync()
    assert scene.instances.attribute(HEAT).numpy()[rows_of(scene, BALL)].tolist() == [330] * 4


def test_all_prims_go(stage, scene):
    scene.bodies.attribute("thermal:mass")
    scene.cameras.attribute(LENS)
    stage.RemovePrim("/World/env_0/robot")
    stage.RemovePrim("/World/env_0/tool")
    stage.RemovePrim("/World/overview")
    scene.sync()
    assert scene.bodies.attribute("thermal:mass").shape == scene.cameras.attribute(LENS).shape == (0,)


def test_instances_of_an_instancer_keep_their_own(device):
    stage = Usd.Stage.CreateInMemory()
    instancer = UsdGeom.PointInstancer.Define(stage, "/many")
    ball = UsdGeom.Sphere.Define(stage, "/many/ball")
    ball.GetPrim().CreateAttribute("t:k", Sdf.ValueTypeNames.Int).Set(2)
    instancer.CreatePrototypesRel().SetTargets(["/many/ball"])
    instancer.CreateProtoIndicesAttr([0, 0, 0])
    instancer.CreatePositionsAttr([(0, 0, 0), (3, 0, 0), (6, 0, 0)])
    with hdwarp.Scene(stage, device=device) as scene:
        column = scene.instances.attribute("t:k")
        assert column.numpy()[np.isfinite(column.numpy())].tolist() == [2, 2, 2]
        write(column, rows_of(scene, "/many/ball")[0] + 1, 9.0)
        instancer.GetProtoIndicesAttr().Set([0] * 40)
        instancer.GetPositionsAttr().Set([(3 * k, 0, 0) for k in range(40)])
        scene.sync()
        column = scene.instances.attribute("t:k").numpy()
        first = rows_of(scene, "/many/ball")[0]
        assert column[first : first + 40].tolist() == [2, 9] + [2] * 38 and np.isfinite(column).sum() == 40


def test_nothing_is_read_where_nothing_can_have_changed(stage, scene, monkeypatch):
    asked = []
    monkeypatch.setattr(
        stage_attributes, "_read", lambda prim, name, time, read=stage_attributes._read: asked.append(name) or read(prim, name, time)
    )
    scene.instances.attribute(HEAT)
    scene.bodies.attribute("thermal:mass")
    asked.clear()
    assert scene.sync() == SyncCounts() and scene.sync(1) == SyncCounts()
    UsdGeom.XformCommonAPI(stage.GetPrimAtPath(ROBOT)).SetTranslate((0, 1, 0))
    scene.sync()
    assert asked == []
    stage.GetPrimAtPath(BALL).GetAttribute(HEAT).Set(1.0)
    scene.sync()
    assert asked == [HEAT]  # of the ball; once, however many worlds
    asked.clear()
    UsdGeom.Sphere.Define(stage, "/World/other")
    scene.sync()
    assert sorted(asked) == ["thermal:mass"] * 2 + [HEAT] * 4


def test_attributes_of_what_native_instances_share(device):
    """Edits of the class reach all instances, whose prims Usd names by their prototype."""
    stage = Usd.Stage.CreateInMemory()
    value = UsdGeom.Sphere.Define(stage, "/lib/ball").GetPrim().CreateAttribute("t:k", Sdf.ValueTypeNames.Float)
    value.Set(2.0)
    stage.GetPrimAtPath("/lib").SetSpecifier(Sdf.SpecifierClass)
    for path in ("/a", "/b"):
        prim = stage.DefinePrim(path, "Xform")
        prim.GetInherits().AddInherit("/lib")
        prim.SetInstanceable(path == "/a")
    with hdwarp.Scene(stage, device=device) as scene:
        column = scene.instances.attribute("t:k")
        assert column.numpy()[np.isfinite(column.numpy())].tolist() == [2, 2]
        value.Set(3.0)
        scene.sync()
        assert column.numpy()[np.isfinite(column.numpy())].tolist() == [3, 3]


def test_values_that_no_longer_fit_are_told(stage, scene):
    heat, lens = scene.instances.attribute(HEAT), scene.cameras.attribute(LENS)
    for path, name in ((BALL, HEAT), (EYE, LENS)):
        stage.GetPrimAtPath(path).RemoveProperty(name)
        stage.GetPrimAtPath(path).CreateAttribute(name, Sdf.ValueTypeNames.Float3).Set((1, 2, 3))
    stage.GetPrimAtPath(BOX).RemoveProperty(HEAT)
    stage.GetPrimAtPath(BOX).CreateAttribute(HEAT, Sdf.ValueTypeNames.String).Set("hot")
    scene.sync()
    assert np.isnan(heat.numpy()).all() and np.isnan(lens.numpy()).all()
    told = {item.path: item.message for item in scene.diagnostics if item.code == "user-attribute"}
    assert told.keys() == {BALL, BOX, EYE}
    assert "holds 3 numbers now and its column 1" in told[BALL] and "of type string" in told[BOX]
    stage.RemovePrim(EYE)
    for path in (BALL, BOX):
        stage.GetPrimAtPath(path).RemoveProperty(HEAT)
        stage.GetPrimAtPath(path).CreateAttribute(HEAT, Sdf.ValueTypeNames.Float).Set(5.0)
    scene.sync()
    assert [item for item in scene.diagnostics if item.code == "user-attribute"] == []
    assert heat.numpy()[rows_of(scene, BOX)].tolist() == [5] * 4


def test_refused(stage, scene, device):
    for table in (scene.cameras, scene.bodies, scene.instances, scene.sites, scene.lights):
        with pytest.raises(ArgumentError, match="has an attribute 'thermal:nothing'"):
            table.attribute("thermal:nothing")
        with pytest.raises(ArgumentError, match="is no attribute's name"):
            table.attribute(3)
    with pytest.raises(ArgumentError, match="thermal:surface_temperature, thermal:tint"):
        scene.instances.attribute("thermal:nothing")
    with pytest.raises(ArgumentError, match="no camera has.*thermal:lens_k1, thermal:maker"):
        scene.cameras.attribute("thermal:nothing")
    with pytest.raises(ArgumentError, match=f"<{EYE}>: attribute 'thermal:maker' is 'x'; only numbers"):
        scene.cameras.attribute("thermal:maker")
    stage.GetPrimAtPath(ROBOT).CreateAttribute("thermal:maker", Sdf.ValueTypeNames.Token).Set("x")
    with pytest.raises(ArgumentError, match=f"<{ROBOT}>: attribute 'thermal:maker' is of type token"):
        scene.bodies.attribute("thermal:maker")
    tables = [scene.bodies, scene.sites, scene.cameras, scene.instances]
    bodies = tables[0]
    bodies.attribute("thermal:mass")
    scene.close()
    for table in tables:
        with pytest.raises(Error, match="the scene is closed"):
            table.attribute("thermal:mass")
    with pytest.raises(Error, match="read by a Scene"):
        hdwarp.RenderDelegate(device).tables.bodies.attribute("thermal:mass")


@wp.kernel
def temperatures(rows: wp.array3d[wp.int32], heat: wp.array[wp.float32], out: wp.array3d[wp.float32]):
    view, y, x = wp.tid()
    row = rows[view, y, x]
    if row >= 0:
        out[view, y, x] = heat[row]


def test_a_kernel_composes_a_picture_by_instance_row(scene, device):
    """The ball is ahead of each robot's camera; in world 2 it is warmer."""
    sensor = hdwarp.SensorCamera(scene, cameras="*/eye", resolution=(9, 9))
    out = sensor.allocate(["instanceRow"])
    heat = scene.instances.attribute(HEAT)
    write(heat, rows_of(scene, BALL)[2], 310.0)
    sensor.update(scene.state(), out)
    picture = wp.full((4, 9, 9), -1.0, dtype=wp.float32, device=device)
    wp.launch(temperatures, dim=picture.shape, inputs=[out["instanceRow"], heat, picture], device=device)
    assert picture.numpy()[:, 4, 4].tolist() == [300, 300, 310, 300]
    assert picture.numpy()[:, 0, 0].tolist() == [-1] * 4


def test_worlds_authored_as_prims_share_the_values_of_the_first(stage, device):
    """env_1 has no camera prim of its own: its copy of env_0's has that one's attributes."""
    stage.DefinePrim("/World/env_1/robot", "Xform")
    UsdPhysics.RigidBodyAPI.Apply(stage.GetPrimAtPath("/World/env_1/robot"))
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.authored_worlds("/World/env_*")]) as scene:
        assert same(scene.cameras.attribute(LENS), [np.nan, 0.125, 0.125])
        mass = scene.bodies.attribute("thermal:mass")
        assert same(mass, [3, np.nan, np.nan])
        stage.GetPrimAtPath("/World/env_1/robot").CreateAttribute("thermal:mass", Sdf.ValueTypeNames.Float).Set(6.0)
        scene.sync()
        assert same(mass, [3, np.nan, 6])


def test_a_framed_camera_leaves_what_was_written(scene):
    lens = scene.cameras.attribute(LENS)
    write(lens, 3, 0.5)
    scene.frame_default_camera(1.0)
    column = dict(
        zip(zip(scene.cameras.label, scene.cameras.world.tolist(), strict=True), scene.cameras.attribute(LENS).numpy(), strict=True)
    )
    assert [value for (_, world), value in column.items() if world >= 0] == [0.125, 0.125, 0.5, 0.125]
    assert np.isnan([value for (_, world), value in column.items() if world < 0]).all()
