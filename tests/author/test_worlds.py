"""Copies of replicated worlds written as prims, found again by USD's own XformCache."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade
from scipy.spatial.transform import Rotation

import hdwarp
from hdwarp.author.worlds import author_worlds
from hdwarp.errors import ArgumentError
from hdwarp.stage.transforms import rigid
from hdwarp.stage.worlds import resolve_worlds

NOW = Usd.TimeCode.EarliestTime()


def make_stage(metres_per_unit=1.0, up="Z", root="/World/envs/env_0", root_type="Xform"):
    """A prototype with a cube, a body that carries a camera, and a material outside of it."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, metres_per_unit)
    UsdGeom.SetStageUpAxis(stage, up)
    for above in Sdf.Path(root).GetParentPath().GetPrefixes():
        UsdGeom.Xform.Define(stage, above)
    stage.DefinePrim(root, root_type)
    cube = UsdGeom.Cube.Define(stage, f"{root}/box")
    UsdGeom.XformCommonAPI(cube).SetTranslate((1.0, 2.0, 3.0))
    hand = UsdGeom.Xform.Define(stage, f"{root}/hand").GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(hand)
    UsdGeom.Camera.Define(stage, f"{root}/hand/cam")
    UsdGeom.Sphere.Define(stage, f"{root}/hand/ball")
    material = UsdShade.Material.Define(stage, "/Looks/red")
    UsdShade.MaterialBindingAPI.Apply(cube.GetPrim()).Bind(material)
    return stage


def resolve(specs, stage):
    return resolve_worlds(specs, stage, NOW)


def world(stage, path):
    """(4, 4) column vectors in scene units."""
    return np.array(UsdGeom.XformCache(NOW).GetLocalToWorldTransform(stage.GetPrimAtPath(path))).T


def placed(placement, metres_per_unit, linear):
    """Where a root of this scale and shear, (3, 3) before the rotation, comes to stand; scene units."""
    matrix = placement.copy()
    matrix[:3, 3] /= metres_per_unit
    matrix[:3, :3] = matrix[:3, :3] @ linear
    return matrix


def transform_of(stage, path, **ops):
    api = UsdGeom.XformCommonAPI(stage.GetPrimAtPath(path))
    for name, value in ops.items():
        getattr(api, f"Set{name}")(value)


XFORMS = np.stack([np.eye(4)] * 4)
for _k, _matrix in enumerate(XFORMS):
    _matrix[:3, :3] = Rotation.from_rotvec((0.1 * _k, 0.3, -0.2 * _k)).as_matrix()
    _matrix[:3, 3] = (3.0 * _k, -_k, 0.5)


@pytest.mark.parametrize("metres_per_unit", [1.0, 0.01])
@pytest.mark.parametrize("awkward", [False, True], ids=["plain", "awkward"])
@pytest.mark.parametrize("up", ["Y", "Z"])
@pytest.mark.parametrize("options", [{}, {"spacing": (2.0, 3.0)}, {"xforms": XFORMS}], ids=["none", "spacing", "xforms"])
def test_copies_stand_at_their_placements(metres_per_unit, awkward, up, options):
    """Awkward: parents turned, scaled and far away, a scaled root that was placed by several ops."""
    stage = make_stage(metres_per_unit, up)
    scale = np.eye(3)
    if awkward:
        transform_of(stage, "/World/envs", Translate=(500.0, -70.0, 3.0), Rotate=(20.0, 40.0, 60.0), Scale=(2.0, 2.0, 2.0))
        transform_of(stage, "/World/envs/env_0", Translate=(1.0, 5.0, 2.0), Rotate=(0.0, 30.0, 10.0), Scale=(1.0, -3.0, 0.5))
        before = world(stage, "/World/envs/env_0")
        scale = rigid(before)[:3, :3].T @ before[:3, :3]  # x keeps its direction: a mirror shows in the scale of y or z
    (group,) = resolve(hdwarp.replicate("/World/envs/env_0", 4, **options), stage)
    author_worlds(stage, [group])
    for k in range(4):
        root = f"/World/envs/env_{k}"
        expected = placed(group.placements[k], metres_per_unit, scale)
        tolerance = 1e-9 * max(1.0, np.abs(expected).max())
        assert world(stage, root) == pytest.approx(expected, abs=tolerance)
        box = np.eye(4)
        box[:3, 3] = (1.0, 2.0, 3.0)
        assert world(stage, f"{root}/box") == pytest.approx(expected @ box, abs=10 * tolerance)


def test_copies_are_instances_of_one_prototype():
    stage = make_stage()
    author_worlds(stage, resolve(hdwarp.replicate("/World/envs/env_0", 5, spacing=3.0), stage))
    copies = [stage.GetPrimAtPath(f"/World/envs/env_{k}") for k in range(1, 5)]
    assert all(copy.IsInstance() and copy.GetTypeName() == "Xform" for copy in copies)
    assert len({copy.GetPrototype().GetPath() for copy in copies}) == 1
    for copy in copies:
        for name in ("hand", "hand/cam", "box"):
            assert copy.GetPrimAtPath(name).IsInstanceProxy()
        assert copy.GetPrimAtPath("hand").HasAPI(UsdPhysics.RigidBodyAPI)
        assert copy.GetPrimAtPath("hand/cam").IsA(UsdGeom.Camera)
        bound, _ = UsdShade.MaterialBindingAPI(copy.GetPrimAtPath("box")).ComputeBoundMaterial()
        assert bound.GetPath() == "/Looks/red"  # internal references keep targets outside of the prototype
    assert not stage.GetPrimAtPath("/World/envs/env_0").IsInstance()


def test_writing_twice_is_writing_once():
    stage = make_stage(0.01)
    transform_of(stage, "/World/envs/env_0", Translate=(1.0, 5.0, 2.0), Scale=(1.0, 3.0, 0.5))
    groups = resolve(hdwarp.replicate("/World/envs/env_0", 4, spacing=2.0), stage)
    author_worlds(stage, groups)
    text = stage.GetRootLayer().ExportToString()
    author_worlds(stage, groups)
    assert stage.GetRootLayer().ExportToString() == text
    author_worlds(stage, resolve(hdwarp.replicate("/World/envs/env_0", 4, spacing=5.0), stage))  # and moves what it wrote
    assert world(stage, "/World/envs/env_3")[:2, 3] == pytest.approx((250.0, 250.0))


def test_the_first_world_is_the_prototype():
    """Left as it is where it stands right; else moved, time samples and reset of the stack included."""
    stage = make_stage()
    transform_of(stage, "/World/envs", Translate=(1.0, 0.0, 0.0))
    prim = stage.GetPrimAtPath("/World/envs/env_0")
    author_worlds(stage, resolve(hdwarp.replicate("/World/envs/env_0", 2), stage))
    assert not prim.GetAttribute("xformOp:transform")
    op = UsdGeom.Xformable(prim).AddTransformOp()
    op.Set(Gf.Matrix4d(1.0), 1.0)
    op.Set(Gf.Matrix4d(1.0).SetTranslate((0, 0, 4)), 2.0)
    UsdGeom.Xformable(prim).SetResetXformStack(True)
    author_worlds(stage, resolve(hdwarp.replicate("/World/envs/env_0", 2, xforms=XFORMS[1:3]), stage))
    for code in (NOW, Usd.TimeCode(2.0)):
        cache = UsdGeom.XformCache(code)
        for k in range(2):
            matrix = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(f"/World/envs/env_{k}"))).T
            assert matrix == pytest.approx(XFORMS[k + 1], abs=1e-12)


@pytest.mark.parametrize("root_type", ["Scope", ""])
def test_roots_that_have_no_transform(root_type):
    stage = make_stage(root_type=root_type)
    transform_of(stage, "/World/envs", Rotate=(0.0, 0.0, 90.0))
    author_worlds(stage, resolve(hdwarp.replicate("/World/envs/env_0", 2, xforms=XFORMS[:2]), stage))
    for k in range(2):
        assert world(stage, f"/World/envs/env_{k}/hand") == pytest.approx(XFORMS[k], abs=1e-12)


def test_missing_parents_are_made():
    stage = make_stage(root="/Robot")
    stage.OverridePrim("/Fleet/over")
    author_worlds(stage, resolve(hdwarp.replicate("/Robot", 3, xforms=XFORMS[:3], label="/Fleet/over/at_{}/robot"), stage))
    assert stage.GetPrimAtPath("/Fleet").GetTypeName() == stage.GetPrimAtPath("/Fleet/over").GetTypeName() == "Scope"
    assert stage.GetPrimAtPath("/Fleet/over/at_1").GetTypeName() == "Xform"
    assert not stage.GetPrimAtPath("/Fleet/over/at_0")
    assert world(stage, "/Fleet/over/at_2/robot") == pytest.approx(XFORMS[2], abs=1e-12)


def test_edit_targets_and_other_stages():
    """Written to the session layer of another stage with the same prims; the scene's own is untouched."""
    stage = make_stage()
    groups = resolve(hdwarp.replicate("/World/envs/env_0", 3, spacing=1.0), stage)
    other = Usd.Stage.Open(stage.GetRootLayer(), Sdf.Layer.CreateAnonymous())
    text = stage.GetRootLayer().ExportToString()
    other.SetEditTarget(other.GetSessionLayer())
    author_worlds(other, groups)
    assert stage.GetRootLayer().ExportToString() == text
    assert not stage.GetPrimAtPath("/World/envs/env_1")
    assert world(other, "/World/envs/env_2/hand")[:3, 3] == pytest.approx((0.5, -0.5, 0.0))


def test_a_stronger_layer_is_named():
    stage = make_stage()
    groups = resolve(hdwarp.replicate("/World/envs/env_0", 2, spacing=1.0), stage)
    stage.SetEditTarget(stage.GetSessionLayer())
    transform_of(stage, "/World/envs/env_0", Translate=(9.0, 9.0, 9.0))
    stage.SetEditTarget(stage.GetRootLayer())
    with pytest.raises(ArgumentError, match="</World/envs/env_0> .*stronger"):
        author_worlds(stage, groups)


def test_several_prototypes():
    stage = make_stage()
    UsdGeom.Sphere.Define(stage, "/World/ball_0/s")
    UsdGeom.Cube.Define(stage, "/World/authored")
    specs = [
        hdwarp.replicate("/World/envs/env_0", 2, spacing=1.0),
        hdwarp.authored_worlds("/World/authored"),
        hdwarp.replicate("/World/ball_0", 2),
    ]
    author_worlds(stage, resolve(specs, stage))
    assert stage.GetPrimAtPath("/World/envs/env_1").IsInstance()
    assert stage.GetPrimAtPath("/World/ball_4").IsInstance()  # world 4: its label has the number of the world
    assert len(stage.GetPrimAtPath("/World").GetChildren()) == 4
    author_worlds(stage, resolve(hdwarp.authored_worlds("/World/authored"), stage))  # nothing to do


def refused(stage, specs, match):
    groups = resolve(specs, stage)
    text = stage.GetRootLayer().ExportToString()
    with pytest.raises(ArgumentError, match=match):
        author_worlds(stage, groups)
    assert stage.GetRootLayer().ExportToString() == text


def test_labels_that_are_taken_are_refused():
    stage = make_stage()
    UsdGeom.Cube.Define(stage, "/World/envs/env_3")
    refused(stage, hdwarp.replicate("/World/envs/env_0", 8), "</World/envs/env_3> is a prim .Cube")
    refused(make_stage(root="/env_2"), hdwarp.replicate("/env_2", 4), "</env_2> is the prototype itself")


def test_prims_that_stay_behind_are_refused():
    """A replicated copy takes them along; an authored one would not."""
    stage = make_stage()
    UsdGeom.Cube.Define(stage, "/World/envs/env_0/fixed").SetResetXformStack(True)
    refused(stage, hdwarp.replicate("/World/envs/env_0", 2), "</World/envs/env_0/fixed> has !resetXformStack!")


def test_labels_where_nothing_can_be_written_are_refused():
    stage = make_stage()
    UsdGeom.Cube.Define(stage, "/World/other/box")
    stage.DefinePrim("/World/instance").GetReferences().AddInternalReference("/World/other")
    stage.GetPrimAtPath("/World/instance").SetInstanceable(True)
    UsdGeom.Xform.Define(stage, "/World/off").GetPrim().SetActive(False)
    stage.CreateClassPrim("/World/abstract")
    UsdGeom.Xform.Define(stage, "/World/flat")
    transform_of(stage, "/World/flat", Scale=(1.0, 1.0, 0.0))
    for parent, said in (("instance", "an instance"), ("off", "inactive"), ("abstract", "a class"), ("flat", "singular")):
        refused(stage, hdwarp.replicate("/World/envs/env_0", 2, label=f"/World/{parent}/env_{{}}"), said)
    both = [hdwarp.replicate("/World/envs/env_0", 2, label="/World/other/env_{}"), hdwarp.authored_worlds("/World/other")]
    refused(stage, both, "inside </World/other>")
    inside = [hdwarp.replicate("/World/envs/env_0", 2, label="/World/x_{}"), hdwarp.replicate("/World/other", 2, label="/World/x_1/y_{}")]
    refused(stage, inside, "inside </World/x_1>")
    refused(stage, hdwarp.replicate("/World/instance/box", 2), "inside an instance")
    with pytest.raises(ArgumentError, match="no prototype </World/envs/env_0>"):
        author_worlds(Usd.Stage.CreateInMemory(), resolve(hdwarp.replicate("/World/envs/env_0", 2), stage))


def test_a_scene_draws_all_copies():
    """Four balls of radius 1 on a grid 6 m apart, each copy with its box: the ball of copy k is seen from straight above it."""
    stage = make_stage()
    groups = resolve(hdwarp.replicate("/World/envs/env_0", 4, spacing=6.0), stage)
    author_worlds(stage, groups)
    camera = hdwarp.author.add_camera(stage, "/Above", fov=1.0)
    scene = hdwarp.Scene(stage, device="cpu")
    assert len(scene.bodies) == 4
    for k in range(4):
        x, y = groups[0].placements[k, :2, 3]
        hdwarp.author.look_at(camera, eye=(x, y, 10.0), target=(x, y, 0.0))
        scene.sync()
        frame = hdwarp.render(scene, "/Above", resolution=(33, 33), aovs=["primId", "distance_to_camera"])
        assert frame.prim_path(16, 16) == f"/World/envs/env_{k}/hand/ball"
        assert frame["distance_to_camera"][16, 16] == pytest.approx(9.0, abs=1e-3)
    scene.close()


@pytest.mark.parametrize("how", ["reference", "sublayer", "instance"])
def test_prototypes_that_come_from_elsewhere(how):
    """What stands at the prototype's path by way of other layers is what the copies refer to."""
    source = make_stage()
    asset = source.GetRootLayer()
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    if how == "sublayer":
        stage.GetRootLayer().subLayerPaths.append(asset.identifier)
    elif how == "reference":
        stage.DefinePrim("/World").GetReferences().AddReference(asset.identifier, "/World")
    else:
        prim = stage.DefinePrim("/World/envs/env_0")
        prim.GetReferences().AddReference(asset.identifier, "/World/envs/env_0")
        prim.SetInstanceable(True)
    author_worlds(stage, resolve(hdwarp.replicate("/World/envs/env_0", 3, xforms=XFORMS[:3]), stage))
    for k in range(3):
        assert world(stage, f"/World/envs/env_{k}/hand/cam") == pytest.approx(XFORMS[k], abs=1e-12)
        assert stage.GetPrimAtPath(f"/World/envs/env_{k}").IsInstance() is (k > 0 or how == "instance")
