"""The sample stages: they open without errors, pass USD's own validators, and show what they say they show."""

from __future__ import annotations

from pathlib import Path

import pytest
from pxr import Usd, UsdGeom, UsdPhysics, UsdRender, UsdSemantics, UsdUtils, UsdValidation

import hdwarp
from hdwarp.schema_registration import CAMERA_API, is_sensor
from hdwarp.stage.shapes import INFINITE

FOLDER = Path(__file__).resolve().parents[1] / "sample_stages"
SAMPLES = sorted(path.name for path in FOLDER.glob("*.usd*"))


def _open(name: str) -> Usd.Stage:
    return Usd.Stage.Open(str(FOLDER / name))


def test_there_are_samples():
    assert {
        "shapes.usda",
        "workcell.usda",
        "hello_camera.usda",
        "lens_window.usda",
        "instances.usda",
        "materials.usda",
        "mesh_faces.usda",
        "skinned_arm.usda",
        "robot_cell.usda",
        "curves.usda",
        "points.usda",
        "lights.usda",
        "surfaces.usda",
    } <= set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_opens_without_errors_and_says_what_it_shows(name):
    stage = _open(name)
    assert stage.GetCompositionErrors() == []
    assert stage.GetDefaultPrim()
    assert stage.HasAuthoredMetadata("metersPerUnit")
    assert stage.HasAuthoredMetadata("upAxis")
    comment = stage.GetRootLayer().comment
    assert len(comment) > 100
    assert f"hdwarp render sample_stages/{name}" in comment
    assert max(len(line) for line in (FOLDER / name).read_text(encoding="utf8").splitlines()) <= 140


@pytest.mark.skipif(Usd.GetVersion() < (0, 26, 3), reason="usd-core before 26.3 lacks the shader definitions that its validators look up")
@pytest.mark.parametrize("name", SAMPLES)
def test_passes_the_validators_of_usd(name):
    stage = _open(name)
    context = UsdValidation.ValidationContext(UsdValidation.ValidationRegistry().GetOrLoadAllValidators())
    assert [f"{error.GetName()}: {error.GetMessage()}" for error in context.Validate(stage)] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_stands_alone(name):
    layers, assets, unresolved = UsdUtils.ComputeAllDependencies(str(FOLDER / name))
    assert (len(layers), assets, unresolved) == (1, [], [])


@pytest.mark.parametrize("name", SAMPLES)
def test_authored_extents_bound_the_geometry(name):
    stage = _open(name)
    for prim in stage.TraverseAll():
        boundable = UsdGeom.Boundable(prim)
        if boundable and boundable.GetExtentAttr().HasAuthoredValue() and "Broken" not in prim.GetName():
            authored, computed = (
                boundable.GetExtentAttr().Get(),
                UsdGeom.Boundable.ComputeExtentFromPlugins(boundable, Usd.TimeCode.Default()),
            )
            for a, c in zip(authored, computed, strict=True):
                assert tuple(a) == pytest.approx(tuple(c), abs=2e-4), prim.GetPath()


@pytest.mark.parametrize("name", SAMPLES)
def test_only_attributes_of_known_schemas_are_authored(name):
    """A misspelt attribute would be silently ignored by everybody."""
    stage = _open(name)
    for prim in stage.TraverseAll():
        definition = prim.GetPrimDefinition()
        for prop in prim.GetAuthoredProperties():
            free = ("primvars:", "xformOp:", "inputs:", "outputs:", "material:binding", "subsetFamily:")
            known = prop.GetName() in definition.GetPropertyNames() or prop.GetName().startswith(free)
            known |= prop.GetName() == INFINITE and prim.IsA(UsdGeom.Plane)
            assert known, f"{prop.GetPath()} belongs to no schema of the prim"


@pytest.mark.parametrize("name", SAMPLES)
def test_products_have_cameras_and_vars(name):
    stage = _open(name)
    for prim in stage.Traverse():
        if prim.IsA(UsdRender.Product):
            product = UsdRender.Product(prim)
            (camera,) = product.GetCameraRel().GetForwardedTargets()
            assert stage.GetPrimAtPath(camera).IsA(UsdGeom.Camera)
            variables = product.GetOrderedVarsRel().GetForwardedTargets()
            assert variables
            assert all(stage.GetPrimAtPath(path).IsA(UsdRender.Var) for path in variables)


def test_workcell_is_the_scene_its_comment_tells_of():
    stage = _open("workcell.usda")
    links = [prim for prim in stage.GetPrimAtPath("/World/Robot").GetChildren() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert [prim.GetName() for prim in links] == ["Base", "Shoulder", "UpperArm", "Forearm", "Wrist1", "Wrist2", "Tool"]
    labels = [tuple(UsdSemantics.LabelsAPI(prim, "class").GetLabelsAttr().Get()) for prim in links]
    assert len(set(labels)) == len(links), "one labelled object a link"
    cameras = [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Camera)]
    assert len(cameras) == 3
    assert all(prim.HasAPI(CAMERA_API) and is_sensor(prim) for prim in cameras)
    settings = UsdRender.Settings.GetStageRenderSettings(stage)
    assert len(settings.GetProductsRel().GetTargets()) == 3
    assert sum(prim.IsInstance() for prim in stage.Traverse()) == 14
    instancer = UsdGeom.PointInstancer(stage.GetPrimAtPath("/World/Bolts/Instancer"))
    assert instancer.GetInstanceCount() == 24


def test_robot_cell_is_the_scene_its_comment_tells_of():
    stage = _open("robot_cell.usda")
    robot = stage.GetPrimAtPath("/World/envs/env_0/robot")
    assert robot.HasAPI(UsdPhysics.ArticulationRootAPI)
    links = [prim.GetName() for prim in robot.GetChildren() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert links == ["base", "shoulder", "upper_arm", "forearm", "hand"]
    assert UsdGeom.Imageable(robot.GetChild("hand").GetChild("collider")).ComputePurpose() == "guide"
    assert robot.GetChild("upper_arm").GetChild("shell").IsA(UsdGeom.Mesh)
    worlds = [hdwarp.replicate("/World/envs/env_0", count=3)]
    with hdwarp.Scene(str(FOLDER / "robot_cell.usda"), device="cpu", worlds=worlds) as scene:
        assert len(scene.bodies) == 3 * len(links)
        wrist = hdwarp.SensorCamera(scene, cameras="*/hand/bracket/wrist_camera")
        overview = hdwarp.SensorCamera(scene, cameras="/World/overview")
        assert (wrist.view_count, wrist.width, wrist.height) == (3, 128, 128)
        assert (overview.view_count, overview.width, overview.height) == (3, 640, 480)
        assert scene.cameras.world.tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize(
    ("name", "joints_path", "count"),
    [("workcell.usda", "/World/Robot/Joints", 7), ("robot_cell.usda", "/World/envs/env_0/robot/joints", 5)],
)
def test_joints_hold_the_pose_that_the_links_are_written_in(name, joints_path, count):
    """Each joint's two frames meet in the same point, and their axes are parallel: nothing would jump when physics starts."""
    stage = _open(name)
    xforms = UsdGeom.XformCache()
    joints = [UsdPhysics.Joint(prim) for prim in stage.GetPrimAtPath(joints_path).GetChildren()]
    assert len(joints) == count
    for joint in joints:
        frames = []
        for body, position in ((joint.GetBody0Rel(), joint.GetLocalPos0Attr()), (joint.GetBody1Rel(), joint.GetLocalPos1Attr())):
            targets = body.GetTargets()
            matrix = xforms.GetLocalToWorldTransform(stage.GetPrimAtPath(targets[0]) if targets else stage.GetPseudoRoot())
            axis = joint.GetPrim().GetAttribute("physics:axis")
            direction = {"X": (1, 0, 0), "Y": (0, 1, 0), "Z": (0, 0, 1)}[axis.Get() if axis else "Z"]
            frames.append((matrix.Transform(position.Get()), matrix.TransformDir(direction)))
        assert tuple(frames[0][0]) == pytest.approx(tuple(frames[1][0]), abs=2e-4), joint.GetPath()
        assert frames[0][1] * frames[1][1] == pytest.approx(1.0, abs=1e-6), joint.GetPath()


@pytest.mark.parametrize("name", SAMPLES)
def test_renders_all_it_holds(name):
    """Nothing is skipped but what the sample breaks on purpose, and the picture is not empty."""
    size = (240, 135) if name in ("lights.usda", "surfaces.usda") else None  # many shadow rays a pixel
    frame = hdwarp.render(str(FOLDER / name), aovs=("color", "primId"), resolution=size, device="cpu")
    problems = [diagnostic.code for diagnostic in frame.diagnostics if diagnostic.severity is not hdwarp.Severity.NOTE]
    assert problems == (["points-not-finite"] if name == "mesh_faces.usda" else [])
    hit = frame["primId"] >= 0
    assert hit.mean() > 0.2
    assert frame["color"][hit][:, :3].std() > 0.02
    assert (frame["color"][~hit] == 0).all()
