"""What skins a mesh comes and goes: blend shapes, the Skeleton of a mesh whose influences are broken."""

from __future__ import annotations

import pytest
from pxr import Gf, Usd, UsdGeom, UsdSkel
from tests.live.test_live_stage import check

import hdwarp
from hdwarp.scene import Scene

SHAPE = "/rig/shapes/up"


@pytest.fixture
def stage() -> Usd.Stage:
    """A triangle at z = 0 that the blend shape `SHAPE`, in full, lifts to z = 1; a camera at z = 12."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    UsdGeom.Camera.Define(stage, "/cam").AddTranslateOp().Set((0, 0, 12))
    UsdSkel.Root.Define(stage, "/rig")
    skeleton = UsdSkel.Skeleton.Define(stage, "/rig/skeleton")
    skeleton.CreateJointsAttr(["root"])
    skeleton.CreateBindTransformsAttr([Gf.Matrix4d(1)])
    skeleton.CreateRestTransformsAttr([Gf.Matrix4d(1)])
    UsdSkel.BindingAPI.Apply(skeleton.GetPrim()).CreateAnimationSourceRel().SetTargets(["/rig/animation"])
    animation = UsdSkel.Animation.Define(stage, "/rig/animation")
    animation.CreateBlendShapesAttr(["up"])
    animation.CreateBlendShapeWeightsAttr([1.0])
    mesh = UsdGeom.Mesh.Define(stage, "/rig/skin")
    mesh.CreatePointsAttr([(-1, -1, 0), (1, -1, 0), (0, 1, 0)])
    mesh.CreateFaceVertexCountsAttr([3])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2])
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets(["/rig/skeleton"])
    binding.CreateBlendShapesAttr(["up"])
    binding.CreateBlendShapeTargetsRel().SetTargets([SHAPE])
    return stage


def shape(stage: Usd.Stage) -> UsdSkel.BlendShape:
    made = UsdSkel.BlendShape.Define(stage, SHAPE)
    made.CreateOffsetsAttr([(0, 0, 1)] * 3)
    return made


def nearest(scene: Scene) -> float:
    check(scene, scene.time)
    plane = "distance_to_image_plane"
    return round(float(hdwarp.render(scene, "/cam", resolution=(32, 24), aovs=[plane])[plane].min()), 5)


def test_a_blend_shape_that_comes_back(stage, device):
    """It, or what is above it, is inactive, in a layer that is cleared, removed and defined again."""
    shape(stage)
    with Scene(stage, device=device) as scene:
        assert nearest(scene) == 11
        for path in (SHAPE, "/rig/shapes"):
            stage.GetPrimAtPath(path).SetActive(False)
            assert nearest(scene) == 12
            stage.GetPrimAtPath(path).SetActive(True)
            assert nearest(scene) == 11
        with Usd.EditContext(stage, stage.GetSessionLayer()):
            stage.GetPrimAtPath(SHAPE).SetActive(False)
        assert nearest(scene) == 12
        stage.GetSessionLayer().Clear()
        assert nearest(scene) == 11
        stage.RemovePrim(SHAPE)
        assert nearest(scene) == 12
        made = shape(stage)
        assert nearest(scene) == 11
        made.GetOffsetsAttr().Set([(0, 0, 3)] * 3)
        assert nearest(scene) == 9


def test_a_blend_shape_that_comes_late(stage, device):
    with Scene(stage, device=device) as scene:
        assert nearest(scene) == 12
        assert "blend-shapes" in [item.code for item in scene.diagnostics]
        shape(stage)
        assert nearest(scene) == 11
        assert "blend-shapes" not in [item.code for item in scene.diagnostics]


def test_a_blend_shape_of_an_instance_comes_late(stage, device):
    """The rig is a native instance: what is missing is missing in its prototype."""
    library = Usd.Stage.CreateInMemory()
    library.GetRootLayer().TransferContent(stage.GetRootLayer())
    main = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(main, 1)
    UsdGeom.Camera.Define(main, "/cam").AddTranslateOp().Set((0, 0, 12))
    rig = main.DefinePrim("/copy")
    rig.GetReferences().AddReference(library.GetRootLayer().identifier, "/rig")
    rig.SetInstanceable(True)
    with Scene(main, device=device) as scene:
        assert nearest(scene) == 12
        shape(library)
        assert nearest(scene) == 11
        library.GetPrimAtPath(SHAPE).SetActive(False)
        assert nearest(scene) == 12
        library.GetPrimAtPath(SHAPE).SetActive(True)
        assert nearest(scene) == 11


def test_broken_influences_and_a_skeleton_that_goes(stage, device):
    """What is told follows, too."""
    shape(stage)
    mesh = stage.GetPrimAtPath("/rig/skin")
    mesh.RemoveProperty("skel:blendShapeTargets")
    with Scene(stage, device=device) as scene:
        assert "joint-influences" in [item.code for item in scene.diagnostics]
        stage.RemovePrim("/rig/skeleton")
        scene.sync()
        with Scene(stage, device=device) as fresh:
            assert [(item.path, item.code) for item in scene.diagnostics] == [(item.path, item.code) for item in fresh.diagnostics]
            assert "skel-binding" in [item.code for item in scene.diagnostics]
