"""Lights as device rows: worlds, bodies, values that kernels write, links, mesh lights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdPhysics
from tests.stage.conftest import stage_from

import hdwarp
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.errors import ArgumentError
from hdwarp.scene import Scene
from hdwarp.stage.links import MOST_SETS
from hdwarp.stage.looks import Light, LightKind
from hdwarp.tables.scene_tables import SceneTables

ENVS = """
def DistantLight "sun" { float inputs:angle = 10 }
def Xform "env" {
    double3 xformOp:translate = (5, 0, 0); uniform token[] xformOpOrder = ["xformOp:translate"]
    def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {
        double3 xformOp:translate = (0, 2, 0); uniform token[] xformOpOrder = ["xformOp:translate"]
        def RectLight "lamp" {
            double3 xformOp:translate = (0, 0, 1); float3 xformOp:scale = (2, 3, 1)
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"] }
        def Cube "c" { double size = 0.1 }
    }
    def SphereLight "bulb" { float inputs:intensity = 4 }
}
"""


def rows(scene: Scene, name: str) -> np.ndarray:
    return getattr(scene.lights, name).numpy()


def test_rows_are_world_major_globals_first(device):
    with Scene(stage_from(ENVS), device=device, worlds=[hdwarp.replicate("/env", count=3, spacing=10.0)]) as scene:
        lights = scene.lights
        assert lights.label == ["/sun", *(f"{root}/{name}" for root in ("/env", *scene.worlds.label[1:]) for name in ("arm/lamp", "bulb"))]
        assert lights.world.tolist() == [-1, 0, 0, 1, 1, 2, 2]
        assert lights.columns.start.numpy()[:5].tolist() == lights.world_start.tolist() == [0, 1, 3, 5, 7]
        assert rows(scene, "kind").tolist() == [LightKind.DISTANT, *[LightKind.RECT, LightKind.SPHERE] * 3]
        assert lights.columns.body.numpy()[:7].tolist() == lights.body.tolist() == [-1, 0, -1, 1, -1, 2, -1]
        assert rows(scene, "translation")[1::2].tolist() == [[0, 2, 1]] * 3  # from the root of each world
        assert rows(scene, "linear")[1::2] == pytest.approx(np.tile(np.diag([2, 3, 1]), (3, 1, 1)))
        assert rows(scene, "radiance")[2::2].tolist() == [[4, 4, 4]] * 3
        half = math.radians(5)
        assert rows(scene, "size")[0] == pytest.approx([math.cos(half), math.sin(half), math.pi * math.sin(half) ** 2, half])


def test_bodies_carry_lights_without_moving_the_rest(device):
    """A quarter turn about z and a step: (0, 0, 1) of the body stays above it, its x is the world's y. Addresses stay."""
    with Scene(stage_from(ENVS), device=device, worlds=[hdwarp.replicate("/env", count=2, spacing=10.0)]) as scene:
        before, address = rows(scene, "translation").copy(), scene.lights.translation.ptr
        pose = np.array([[1, 2, 3, 0, 0, math.sqrt(0.5), math.sqrt(0.5)], [7, 8, 9, 0, 0, 0, 1]], np.float32)
        scene.tables.pose(wp.array(pose, dtype=wp.transformf, device=device))
        now = rows(scene, "translation")
        assert now[[1, 3]] == pytest.approx(np.array([[1, 2, 4], [7, 8, 10]]))
        assert now[[0, 2, 4]].tolist() == before[[0, 2, 4]].tolist()
        assert rows(scene, "linear")[1] == pytest.approx(np.array([[0, -3, 0], [2, 0, 0], [0, 0, 1]]), abs=1e-6)
        assert scene.lights.translation.ptr == address
        scene.tables.unpose()
        assert rows(scene, "translation").tolist() == before.tolist()


def test_a_sync_puts_carried_lights_back(device):
    stage = stage_from(ENVS)
    with Scene(stage, device=device) as scene:
        before = rows(scene, "translation").copy()
        scene.tables.pose(wp.array([[9, 9, 9, 0, 0, 0, 1]], dtype=wp.transformf, device=device))
        stage.GetPrimAtPath("/env/bulb").GetAttribute("inputs:intensity").Set(5.0)
        scene.sync()
        assert rows(scene, "translation").tolist() == before.tolist()
        scene.tables.pose(wp.array([[9, 9, 9, 0, 0, 0, 1]], dtype=wp.transformf, device=device))
        stage.GetPrimAtPath("/env/arm").RemoveAPI(UsdPhysics.RigidBodyAPI)
        scene.sync()
        assert rows(scene, "translation").tolist() == before.tolist()


def test_what_kernels_write_stays_but_for_what_the_stage_changes(device):
    stage = stage_from(ENVS)
    with Scene(stage, device=device) as scene:
        assert scene.lights.label == ["/env/arm/lamp", "/env/bulb", "/sun"]
        scene.lights.radiance.fill_(wp.vec3f(7.0, 7.0, 7.0))
        scene.lights.diffuse.fill_(0.25)
        version = scene.lights.version
        stage.GetPrimAtPath("/env/bulb").GetAttribute("inputs:intensity").Set(5.0)
        assert scene.sync().lights_changed == 1
        assert scene.lights.version == version + 1
        assert rows(scene, "radiance").tolist() == [[7] * 3, [5] * 3, [7] * 3]
        UsdLux.SphereLight.Define(stage, "/early")  # rows move
        scene.sync()
        assert scene.lights.label[0] == "/early"
        assert rows(scene, "radiance").tolist() == [[1] * 3, [7] * 3, [5] * 3, [7] * 3]
        assert rows(scene, "diffuse").tolist() == [1, 0.25, 0.25, 0.25]
        stage.RemovePrim("/early")
        scene.sync()
        assert rows(scene, "radiance").tolist() == [[7] * 3, [5] * 3, [7] * 3]


def test_versions_count_what_the_stage_says_of_lights(device):
    stage = stage_from(ENVS)
    with Scene(stage, device=device) as scene:
        version, layout = scene.lights.version, scene.tables.layout_version
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/env/arm/c")).SetTranslate((0, 0, 4))
        scene.sync()
        assert scene.lights.version == version
        UsdGeom.Imageable(stage.GetPrimAtPath("/sun")).MakeInvisible()
        scene.sync()
        assert (scene.lights.version, rows(scene, "kind").tolist()) == (version + 1, [LightKind.RECT, LightKind.SPHERE, -1])
        assert scene.tables.layout_version == layout  # nothing has grown
        for i in range(40):
            UsdLux.SphereLight.Define(stage, f"/more{i}")
        scene.sync()
        assert scene.tables.layout_version > layout


def link(stage: Usd.Stage, light: str, *targets: str, name: str = "lightLink") -> None:
    collection = Usd.CollectionAPI(stage.GetPrimAtPath(light), name)
    collection.CreateIncludeRootAttr(False)
    collection.CreateIncludesRel().SetTargets([Sdf.Path(target) for target in targets])


def bits(scene: Scene) -> dict[str, int]:
    column = scene.tables.instances.columns().light_links.numpy()
    return {key[0]: int(column[scene.index.gprim_rows[key]]) for key in scene.index.gprim_order}


def test_links_are_bits_of_instances_and_lights(device):
    stage = stage_from(
        'def Xform "a" { def Cube "one" { }; def Cube "two" { } }\ndef Cube "b" { }\n'
        'def SphereLight "k" { }\ndef SphereLight "l" { }\ndef SphereLight "m" { }'
    )
    link(stage, "/k", "/a")
    link(stage, "/l", "/a/two", "/b")
    link(stage, "/l", "/a", name="shadowLink")
    with Scene(stage, device=device) as scene:
        assert rows(scene, "link").tolist() == [1, 2, 0]
        assert rows(scene, "shadow_link").tolist() == [0, 1, 0]
        assert bits(scene) == {"/a/one": 1, "/a/two": 3, "/b": 2}
        link(stage, "/m", "/b")
        UsdGeom.Cube.Define(stage, "/a/three")
        scene.sync()
        assert rows(scene, "link").tolist() == [1, 2, 4]
        assert bits(scene) == {"/a/one": 1, "/a/three": 1, "/a/two": 3, "/b": 6}
        stage.RemovePrim("/k")
        stage.RemovePrim("/l")
        scene.sync()
        assert bits(scene) == {"/a/one": 0, "/a/three": 0, "/a/two": 0, "/b": 1}


def test_sets_beyond_the_bits_light_everything(device):
    text = "".join(f'def Cube "c{i:02}" {{ }}\ndef SphereLight "l{i:02}" {{ }}\n' for i in range(MOST_SETS + 2))
    stage = stage_from(text)
    for i in range(MOST_SETS + 2):
        link(stage, f"/l{i:02}", f"/c{i:02}")
    with Scene(stage, device=device) as scene:
        assert rows(scene, "link").tolist() == [1 << i for i in range(MOST_SETS)] + [0, 0]
        assert list(bits(scene).values()) == [1 << i for i in range(MOST_SETS)] + [0, 0]
        assert [item.code for item in scene.diagnostics] == ["light-link"]


def test_mesh_lights_know_their_instance_rows(device):
    mesh = """def Mesh "panel" (prepend apiSchemas = ["MeshLightAPI"]) {
        point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0)]; int[] faceVertexCounts = [3]; int[] faceVertexIndices = [0, 1, 2] }"""
    stage = stage_from(f'def Cube "a" {{ }}\ndef Xform "env" {{ def Cube "b" {{ }}; {mesh} }}')
    with Scene(stage, device=device, worlds=[hdwarp.replicate("/env", count=3, spacing=10.0)]) as scene:
        instance, columns = rows(scene, "instance"), scene.tables.instances.columns()
        prim = scene.index.prim_paths.index("/env/panel")
        assert columns.prim_id.numpy()[columns.source.numpy()[instance]].tolist() == [prim] * 3
        assert columns.world.numpy()[instance].tolist() == [0, 1, 2]


def test_lights_by_hand(device):
    """Records of elsewhere than a stage: MJCF's for one."""
    index, tables = RenderIndex(), SceneTables(device)
    index.insert(
        Light("/l", np.eye(4), kind=LightKind.POINT, radiance=(1.0, 2.0, 3.0), cone_angle=0.5, cone_softness=0.5, shadow_distance=4.0)
    )
    tables.sync(index)
    assert tables.lights.radiance.numpy().tolist() == [[1, 2, 3]]
    assert tables.lights.cone.numpy()[0] == pytest.approx([math.cos(0.5), math.cos(0.25), 0, 1])
    assert tables.lights.shadow_reach.numpy()[0].tolist() == [4, 0, 1]
    index.remove("/l")
    tables.sync(index)
    assert (len(tables.lights), tables.lights.columns.start.numpy()[:3].tolist()) == (0, [0, 0, 0])
    with pytest.raises(ArgumentError, match="radiance"):
        index.insert(Light("/l", np.eye(4), radiance=(math.nan, 0.0, 0.0)))


def test_turned_worlds_turn_their_lights(device):
    turn = Gf.Rotation(Gf.Vec3d(0, 0, 1), 90).GetQuat()
    xforms = [(0, 0, 0, 0, 0, 0, 1), (9, 0, 0, *turn.GetImaginary(), turn.GetReal())]
    with Scene(stage_from(ENVS), device=device, worlds=[hdwarp.replicate("/env", count=2, xforms=xforms)]) as scene:
        assert rows(scene, "translation")[[1, 3]] == pytest.approx(np.array([[0, 2, 1], [-2, 0, 1]]), abs=1e-7)
        assert rows(scene, "linear")[3] == pytest.approx(np.array([[0, -3, 0], [2, 0, 0], [0, 0, 1]]), abs=1e-6)
        assert scene.lights.transform[1] == pytest.approx(scene.lights.transform[3])  # where the body has it
