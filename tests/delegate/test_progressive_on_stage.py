"""When progressive pictures of an open stage start over: exactly when an edit can change a pixel."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

import hdwarp

SIZE = (40, 30)
SAMPLES = 4
PLANES = ("color", "rgba8", "primId", "materialId", "bodyId", "depth", "distance_to_camera")


def _material(name: str, colour: str) -> str:
    return f"""
    def Material "{name}" {{
        token outputs:surface.connect = </Looks/{name}/shader.outputs:surface>
        def Shader "shader" {{
            uniform token info:id = "UsdPreviewSurface"
            color3f inputs:diffuseColor = {colour}
            token outputs:surface
        }}
    }}"""


def _placed(x: float, y: float, z: float) -> str:
    return f"""double3 xformOp:translate = ({x}, {y}, {z})
        uniform token[] xformOpOrder = ["xformOp:translate"]"""


STAGE = f"""#usda 1.0
(
    metersPerUnit = 1
)
def Scope "Looks" {{{_material("red", "(0.8, 0.1, 0.1)")}{_material("blue", "(0.1, 0.1, 0.8)")}{_material("a_idle", "(0, 1, 0)")}
}}
def Xform "World" {{
    def Xform "robot" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{
        {_placed(0, 0, -3)}
        def Sphere "ball" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
            rel material:binding = </Looks/red>
        }}
    }}
    def Cube "cube" {{
        {_placed(3, 0, -6)}
        color3f[] primvars:displayColor = [(0.2, 0.6, 0.9)]
        float[] primvars:heat = [1]
    }}
    def Mesh "sheet" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
        int[] faceVertexCounts = [4, 4]
        int[] faceVertexIndices = [0, 1, 4, 3, 1, 2, 5, 4]
        point3f[] points = [(-2, 1, -5), (0, 1, -5), (2, 1, -5), (-2, 2, -5), (0, 2, -5), (2, 2, -5)]
        uniform token subdivisionScheme = "none"
        uniform token subsetFamily:materialBind:familyType = "nonOverlapping"
        def GeomSubset "part" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
            uniform token elementType = "face"
            uniform token familyName = "materialBind"
            int[] indices = [1]
            rel material:binding = </Looks/blue>
        }}
    }}
    def PointInstancer "many" {{
        int[] protoIndices = [0, 0]
        point3f[] positions = [(-3, 0, -5), (-3, -2, -5)]
        rel prototypes = </World/many/dot>
        def Sphere "dot" {{
            double radius = 0.5
        }}
    }}
    def Xform "site" (prepend apiSchemas = ["HdWarpSiteAPI"]) {{
        {_placed(0, 1, 0)}
    }}
    def Xform "walker" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{
        {_placed(0, 5, 0)}
        def Camera "passenger" {{}}
    }}
    def SphereLight "lamp" {{
        float inputs:intensity = 1
    }}
    def Xform "tripod" {{
        {_placed(0, 0, 0)}
        def Camera "cam" {{
            float focalLength = 5
            float horizontalAperture = 10
            float verticalAperture = 7.5
            float2 clippingRange = (0.1, 100)
        }}
    }}
    def Camera "other" {{
        {_placed(1, 1, 1)}
    }}
}}
"""


class Picture:
    """A progressive picture of `/World/tripod/cam`; `edit` changes the stage."""

    def __init__(self, device: str) -> None:
        layer = Sdf.Layer.CreateAnonymous(".usda")
        assert layer.ImportFromString(STAGE)
        self.stage = Usd.Stage.Open(layer)
        self.scene = hdwarp.Scene(self.stage, device=device)
        self.views, self.buffers = self.make(self.scene)
        self.render_pass = self.scene.delegate.create_render_pass(samples=SAMPLES)

    @staticmethod
    def make(scene: hdwarp.Scene):
        delegate = scene.delegate
        buffers = {name: delegate.create_render_buffer(name, *SIZE) for name in PLANES}
        return delegate.create_views("/World/tripod/cam", SIZE), buffers

    def step(self) -> int:
        self.render_pass.execute(self.views, self.buffers, progressive=True)
        return self.scene.delegate.render_stats()["numCompletedSamples"]

    def finish(self) -> list[int]:
        counts = [self.step()]
        while not self.render_pass.is_converged:
            counts.append(self.step())
        return counts

    def edit(self, change) -> None:
        """The scene has to see something, else nothing is tested."""
        version = self.scene.delegate.render_param.scene_version
        change(self.stage)
        self.scene.sync()
        assert (self.scene.delegate.render_param.scene_version > version) == (change not in UNSEEN)

    def pixels(self) -> dict[str, np.ndarray]:
        return {name: buffer.array.numpy().copy() for name, buffer in self.buffers.items()}

    def fresh(self) -> dict[str, np.ndarray]:
        """In one go, by a scene opened on the stage as it is."""
        with hdwarp.Scene(self.stage, device=self.scene.device) as scene:
            views, buffers = self.make(scene)
            scene.delegate.create_render_pass(samples=SAMPLES).execute(views, buffers)
            return {name: buffer.array.numpy().copy() for name, buffer in buffers.items()}


@pytest.fixture
def picture(device):
    picture = Picture(device)
    yield picture
    picture.scene.close()


def assert_same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    for name, plane in ours.items():
        assert np.array_equal(plane, theirs[name], equal_nan=True), name


def move(path: str, *place: float):
    return lambda stage: UsdGeom.XformCommonAPI(stage.GetPrimAtPath(path)).SetTranslate(Gf.Vec3d(*place))


def put(path: str, value: object):
    """Set an attribute that is there."""

    def change(stage: Usd.Stage) -> None:
        attribute = stage.GetAttributeAtPath(path)
        assert attribute, path
        attribute.Set(value)

    return change


def bind(prim: str, material: str):
    return lambda stage: UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath(prim)).Bind(UsdShade.Material.Get(stage, material))


def _use_and_leave(stage: Usd.Stage) -> None:
    """A material that was bound only where nothing is drawn."""
    hidden = UsdGeom.Cube.Define(stage, "/World/hidden")
    hidden.MakeInvisible()
    bind("/World/hidden", "/Looks/a_idle")(stage)


IRRELEVANT = {
    "another camera moves": move("/World/other", 2, 2, 2),
    "another camera's lens": lambda stage: UsdGeom.Camera.Get(stage, "/World/other").GetFocalLengthAttr().Set(80.0),
    "another camera turns orthographic": lambda stage: UsdGeom.Camera.Get(stage, "/World/other").GetProjectionAttr().Set("orthographic"),
    "a camera on a body": move("/World/walker", 0, 6, 0),
    "what no picture reads of the camera": lambda stage: UsdGeom.Camera.Get(stage, "/World/tripod/cam").GetFStopAttr().Set(4.0),
    "a site moves": move("/World/site", 0, 2, 0),
    "a site goes": lambda stage: stage.GetPrimAtPath("/World/site").RemoveAppliedSchema("HdWarpSiteAPI"),
    "a site comes": lambda stage: stage.GetPrimAtPath("/World/tripod").AddAppliedSchema("HdWarpSiteAPI"),
    "a body comes": lambda stage: UsdPhysics.RigidBodyAPI.Apply(UsdGeom.Xform.Define(stage, "/World/zombie").GetPrim()),
    "an unbound material": put("/Looks/a_idle/shader.inputs:diffuseColor", (1, 0, 1)),
    "an unbound material comes": lambda stage: UsdShade.Material.Define(stage, "/Looks/aaa"),
    "an unbound material goes": lambda stage: stage.RemovePrim("/Looks/a_idle"),
    "a hidden prim comes": _use_and_leave,
    "a value that is there": put("/World/many.positions", [(-3, 0, -5), (-3, -2, -5)]),
}
UNSEEN = [IRRELEVANT[name] for name in IRRELEVANT if "unbound" in name or "hidden" in name or "is there" in name]

RELEVANT = {
    "a prim moves": move("/World/cube", 2, 0, -6),
    "a prim is hidden": lambda stage: UsdGeom.Imageable(stage.GetPrimAtPath("/World/cube")).MakeInvisible(),
    "a prim goes": lambda stage: stage.RemovePrim("/World/cube"),
    "a prim comes": lambda stage: UsdGeom.Cube.Define(stage, "/World/a").AddTranslateOp().Set((1, -1, -4)),
    "a body that carries a prim": move("/World/robot", 0.2, 0, -3),
    "points": put("/World/sheet.points", [(-2, 1, -5), (0, 1, -4), (2, 1, -5), (-2, 2, -5), (0, 2, -5), (2, 2.5, -5)]),
    "topology": put("/World/sheet.faceVertexIndices", [0, 1, 4, 3, 2, 5, 4, 3]),
    "a subset's faces": put("/World/sheet/part.indices", [0]),
    "displayColor": put("/World/cube.primvars:displayColor", [(0.9, 0.6, 0.1)]),
    "instances move": put("/World/many.positions", [(-3, 0.5, -5), (-3, -2, -5)]),
    "an instance goes": put("/World/many.protoIndices", [0]),
    "a prototype": put("/World/many/dot.radius", 0.8),
    "a material": put("/Looks/red/shader.inputs:diffuseColor", (0, 1, 0)),
    "a material of a subset": put("/Looks/blue/shader.inputs:diffuseColor", (0, 1, 0)),
    "a material goes": lambda stage: stage.RemovePrim("/Looks/red"),
    "a binding": bind("/World/cube", "/Looks/red"),
    "a first binding": bind("/World/cube", "/Looks/a_idle"),  # all ids of materials are others now
    "a light": put("/World/lamp.inputs:intensity", 7.0),
    "the camera's parent moves": move("/World/tripod", 0, 0.2, 0),
    "the camera moves": move("/World/tripod/cam", 0, 0.2, 0),
    "the camera's lens": put("/World/tripod/cam.focalLength", 6.0),
    "the camera's clipping range": put("/World/tripod/cam.clippingRange", (3, 100)),
    "the camera's exposure": lambda stage: UsdGeom.Camera.Get(stage, "/World/tripod/cam").CreateExposureAttr(1.0),
    "the camera turns orthographic": lambda stage: UsdGeom.Camera.Get(stage, "/World/tripod/cam").GetProjectionAttr().Set("orthographic"),
    "the stage's units": lambda stage: UsdGeom.SetStageMetersPerUnit(stage, 0.5),
}


@pytest.mark.parametrize("change", IRRELEVANT)
def test_goes_on_where_an_edit_changes_nothing_of_it(picture, device, change):
    undisturbed = Picture(device)
    undisturbed.finish()
    assert [picture.step(), picture.step()] == [1, 2]
    picture.edit(IRRELEVANT[change])
    assert picture.finish() == [3, 4]
    assert_same(picture.pixels(), undisturbed.pixels())
    assert_same(picture.pixels(), picture.fresh())
    undisturbed.edit(IRRELEVANT[change])
    assert undisturbed.render_pass.is_converged and undisturbed.step() == SAMPLES and undisturbed.render_pass.is_converged
    undisturbed.scene.close()


@pytest.mark.parametrize("change", RELEVANT)
def test_starts_over_where_an_edit_changes_it(picture, change):
    assert [picture.step(), picture.step()] == [1, 2]
    picture.edit(RELEVANT[change])
    assert picture.finish() == [1, 2, 3, 4]
    assert_same(picture.pixels(), picture.fresh())


@pytest.mark.parametrize("change", RELEVANT)
def test_an_edit_that_changes_it_is_told_before_the_next_call(picture, change):
    picture.finish()
    before = picture.pixels()
    picture.edit(RELEVANT[change])
    assert not picture.render_pass.is_converged
    assert picture.finish() == [1, 2, 3, 4]
    assert any(not np.array_equal(plane, before[name]) for name, plane in picture.pixels().items()), "the edit is seen"
    assert_same(picture.pixels(), picture.fresh())
