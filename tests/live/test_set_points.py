"""Points that a caller sets on the device: the pictures of a stage with these points authored."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, Vt
from tests.live.sheets import AOVS, SIZE, add_sheet, assert_same, authored, deformed, new_stage, picture, sheet

import hdwarp
from hdwarp.errors import ArgumentError
from hdwarp.views.conform import image_spec
from hdwarp.views.rows import View, ViewTable


@pytest.mark.parametrize("scheme", ["catmullClark", "none"])
@pytest.mark.parametrize("size", [0.05, 0.3, 5.0])
def test_frame_by_frame_the_picture_of_a_stage_with_these_points(scheme, size, device):
    stage = new_stage()
    add_sheet(stage, "/World/cloth", scheme=scheme)
    add_sheet(stage, "/World/other", (0.5, 0.5, -1.0), deformed(99), scheme=scheme)
    with hdwarp.Scene(stage, device=device) as scene:
        still = picture(scene)
        for frame in range(3):
            points = deformed(frame, size)
            scene.set_points("/World/cloth", wp.array(points, dtype=wp.vec3f, device=device))
            assert_same(picture(scene), picture(authored(stage, "/World/cloth", points)))
        scene.set_points("/World/cloth", None)
        assert_same(picture(scene), still)
        assert scene.sync() == type(scene.sync())()


def test_polygons_and_their_normals(device):
    """Quads that stay convex are cut as before; a bad point takes its quads out of the normals around."""
    stage = new_stage()
    add_sheet(stage, "/World/cloth", quads=True)
    points = sheet()[0].copy()
    points[:, 2] = 0.3 * np.sin(3 * points[:, 0]) * np.cos(2 * points[:, 1])
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points("/World/cloth", points)
        ours = picture(scene)
        assert_same(ours, picture(authored(stage, "/World/cloth", points)))
        points[[20, 85]] = np.nan
        scene.set_points("/World/cloth", points)
        ours, theirs = picture(scene), picture(authored(stage, "/World/cloth", points))
        both = (ours["primId"] == 0) & (theirs["primId"] == 0)  # of a quad with a bad point one triangle may be drawn
        assert both.sum() > 0.95 * (ours["primId"] == 0).sum()
        for name in ("elementId", "normal"):
            assert np.array_equal(ours[name][both], theirs[name][both]), name


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e19, 3e38])
def test_triangles_with_bad_points_are_not_drawn(bad, device):
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    points = deformed(1, 0.05)
    points[[7, 80, 81]] = bad, 0.0, bad
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points("/World/cloth", points)
        ours, theirs = picture(scene), picture(authored(stage, "/World/cloth", points))
        for name in ("primId", "elementId", "barycentric", "normal"):
            assert np.array_equal(ours[name], theirs[name]), name
        scene.set_points("/World/cloth", np.full_like(points, bad))
        assert (picture(scene)["primId"] < 0).all()
        scene.set_points("/World/cloth", points)
        assert_same(picture(scene), ours)


def test_equal_meshes_are_parted(device):
    """Two prims and two native instances have one geometry; only the prim named changes."""
    stage = new_stage()
    for i, name in enumerate(("a", "b")):
        add_sheet(stage, f"/World/{name}", (2.2 * i - 1, 1, 0))
    add_sheet(stage, "/Proto/sheet")
    UsdGeom.Imageable(stage.GetPrimAtPath("/Proto/sheet")).CreateVisibilityAttr("inherited")
    stage.OverridePrim("/Proto").SetSpecifier(Sdf.SpecifierClass)
    for i, name in enumerate(("i", "j")):
        prim = UsdGeom.Xform.Define(stage, f"/World/{name}")
        prim.AddTranslateOp().Set((2.2 * i - 1, -1, 0))
        prim.GetPrim().GetReferences().AddInternalReference("/Proto")
        prim.GetPrim().SetInstanceable(True)
    with hdwarp.Scene(stage, device=device) as scene:
        before = picture(scene)
        assert len(scene.index.meshes) == 1
        for path in ("/World/a", "/World/j/sheet"):
            prim = scene.index.prim_paths.index(path)
            scene.set_points(path, deformed(3, 0.1))
            after = picture(scene)
            others = (before["primId"] != prim) & (after["primId"] != prim)
            assert (after["distance_to_image_plane"] != before["distance_to_image_plane"])[~others].any()
            for name in AOVS:
                assert np.array_equal(after[name][others], before[name][others]), name
            scene.set_points(path, None)
            assert_same(picture(scene), before)
        assert len(scene.index.meshes) == 1


def test_instances_of_a_point_instancer_deform_together(device):
    stage = new_stage()
    instancer = UsdGeom.PointInstancer.Define(stage, "/World/many")
    add_sheet(stage, "/World/many/sheet")
    instancer.CreatePrototypesRel().SetTargets(["/World/many/sheet"])
    instancer.CreatePositionsAttr([(-1.5, 0, 0), (1.5, 0, 0), (0, 1.5, 1)])
    instancer.CreateProtoIndicesAttr([0, 0, 0])
    with hdwarp.Scene(stage, device=device) as scene:
        for frame in range(2):
            scene.set_points("/World/many/sheet", deformed(frame))
            assert_same(picture(scene), picture(authored(stage, "/World/many/sheet", deformed(frame))))


def carried() -> Usd.Stage:
    """A body with a sheet 2 m below it; a ball that is global where the robot is a world."""
    stage = new_stage()
    robot = UsdGeom.Xform.Define(stage, "/envs/env_0/robot")
    UsdPhysics.RigidBodyAPI.Apply(robot.GetPrim())
    add_sheet(stage, "/envs/env_0/robot/cloth", (0, 0, -2))
    add_sheet(stage, "/envs/env_0/floor", (0, -1, -4))
    UsdGeom.Sphere.Define(stage, "/ball").AddTranslateOp().Set((0, 0, -6))
    return stage


def test_a_deforming_mesh_that_a_body_carries(device):
    stage, path = carried(), "/envs/env_0/robot/cloth"
    with hdwarp.Scene(stage, device=device) as scene:
        for frame in range(3):
            points = deformed(frame)
            fresh = authored(stage, path, points)
            pictures = []
            for each in (scene, fresh):
                state = each.state()
                pose = state.body_q.numpy()
                pose[0, :3] += (0.3 * frame, 0.2, -frame)
                state.body_q.assign(pose)
                if each is scene and frame:  # also after the pose
                    picture(scene, state=state)
                if each is scene:
                    scene.set_points(path, points)
                pictures.append(picture(each, state=state))
            assert_same(*pictures)


def view_of(scene: hdwarp.Scene, world: int) -> dict[str, np.ndarray]:
    views = ViewTable([View(0, world, image_spec(SIZE))], scene_unit=1.0, radial=False, device=scene.device)
    types = {"distance_to_image_plane": wp.float32, "primId": wp.int32, "barycentric": wp.vec2f, "triangleId": wp.int32}
    out = {name: wp.zeros((1, SIZE[1], SIZE[0]), dtype=dtype, device=scene.device) for name, dtype in types.items()}
    scene.delegate.create_render_pass().execute(views, out)
    return {name: array.numpy()[0] for name, array in out.items()}


def test_copies_in_all_worlds_deform(device):
    stage, path = carried(), "/envs/env_0/robot/cloth"
    UsdGeom.Camera.Define(stage, "/envs/env_0/cam").AddTranslateOp().Set((0, 0, 9))
    stage.RemovePrim("/cam")
    worlds = [hdwarp.replicate("/envs/env_0", count=5, spacing=(3.0, 3.0), label="/envs/env_{}")]
    with hdwarp.Scene(stage, device=device, worlds=worlds) as scene:
        for frame in range(3):
            scene.set_points(path, deformed(frame))
            layer = Sdf.Layer.CreateAnonymous(".usda")
            layer.TransferContent(stage.GetRootLayer())
            copy = Usd.Stage.Open(layer)
            UsdGeom.Mesh.Get(copy, path).GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(deformed(frame)))
            with hdwarp.Scene(copy, device=device, worlds=worlds) as fresh:
                for world in (0, 3, 4):
                    assert_same(view_of(scene, world), view_of(fresh, world))
        with pytest.raises(ArgumentError, match=r"env_3/robot/cloth> is the copy of </envs/env_0/robot/cloth> in world 3"):
            scene.set_points("/envs/env_3/robot/cloth", deformed(0))


def test_what_the_stage_says_later(device):
    """Points stay while other things are edited, and go when the points or the triangles are."""
    stage = new_stage()
    mesh = add_sheet(stage, "/World/cloth")
    points = deformed(5)
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points("/World/cloth", points)
        mesh.GetPrim().GetAttribute("xformOp:translate").Set(Gf.Vec3d(0.2, 0.1, 0.5))
        add_sheet(stage, "/World/more", (1, 1, -2))
        UsdGeom.Sphere.Define(stage, "/World/ball").AddTranslateOp().Set((-1, -1, -3))
        scene.sync()
        assert_same(picture(scene), picture(authored(stage, "/World/cloth", points)))
        mesh.CreateDisplayColorPrimvar("vertex").Set([(0.1, 0.5, 0.9)] * len(points))
        stage.RemovePrim("/World/more")
        scene.sync()
        assert_same(picture(scene), picture(authored(stage, "/World/cloth", points)))
        scene.reader.forget()  # all is read anew, and equal
        scene.sync()
        assert_same(picture(scene), picture(authored(stage, "/World/cloth", points)))
        mesh.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(deformed(6)))
        scene.sync()
        assert_same(picture(scene), picture(hdwarp.Scene(stage, device=device)))
        scene.set_points("/World/cloth", points)
        mesh.GetFaceVertexCountsAttr().Set([3])
        mesh.GetFaceVertexIndicesAttr().Set([0, 12, 150])
        UsdGeom.PrimvarsAPI(mesh).RemovePrimvar("displayColor")
        scene.sync()
        assert_same(picture(scene), picture(hdwarp.Scene(stage, device=device)))
        scene.set_points("/World/cloth", points)
        stage.RemovePrim("/World/cloth")
        scene.sync()
        assert not scene.tables.written._points
        with pytest.raises(ArgumentError, match="nothing is drawn at </World/cloth>"):
            scene.set_points("/World/cloth", points)


def test_points_over_time(device):
    stage = new_stage()
    mesh = add_sheet(stage, "/World/cloth")
    for time in (1, 2):
        mesh.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(deformed(time)), time)
    other = add_sheet(stage, "/World/other", (1, 0, -2))
    for time in (1, 2):
        other.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(deformed(10 + time)), time)
    with hdwarp.Scene(stage, device=device, time=1) as scene:
        scene.sync(2)  # both are refitted together from here on
        scene.set_points("/World/cloth", deformed(7))
        ours = picture(scene)
        scene.sync(2)
        assert_same(picture(scene), ours)
        scene.sync(1)
        assert_same(picture(scene), picture(hdwarp.Scene(stage, device=device, time=1)))


def test_a_rebuild_of_all_meshes_keeps_points(device):
    """Meshes that go make the table start anew; what was set is put back."""
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    for i in range(6):
        add_sheet(stage, f"/World/m{i}", (0, 0, -5), deformed(20 + i))
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points("/World/cloth", deformed(1))
        for i in range(6):
            stage.RemovePrim(f"/World/m{i}")
        scene.sync()
        assert_same(picture(scene), picture(authored(stage, "/World/cloth", deformed(1))))


def test_far_and_tiny_meshes(device):
    """Points on the device are less a centre and over a scale: those of the authored mesh."""
    stage = new_stage()
    points = sheet()[0] + np.float32((4096, 0, 0))
    mesh = add_sheet(stage, "/World/far", (-4096, 0, 0), points)
    moved = deformed(2) + np.float32((4096, 0, 0))
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points(str(mesh.GetPath()), moved)
        ours, theirs = picture(scene), picture(authored(stage, "/World/far", moved))
        assert np.array_equal(ours["primId"], theirs["primId"])
        assert np.array_equal(ours["normal"], theirs["normal"])
        np.testing.assert_allclose(ours["distance_to_image_plane"], theirs["distance_to_image_plane"], rtol=1e-6)


def test_motion_of_points_that_are_set(device):
    """Each sync is a frame: as a mesh whose points the stage moves from sample to sample. Several calls in a frame are one move."""
    stage, keyed = new_stage(), new_stage()
    for each in (stage, keyed):
        add_sheet(each, "/World/cloth", points=deformed(0, 0.1))
        add_sheet(each, "/World/other", (0.5, 0.5, -1.0), deformed(9, 0.1))
    attribute = UsdGeom.Mesh.Get(keyed, "/World/cloth").GetPointsAttr()
    for time in (1, 2, 3):
        attribute.Set(Vt.Vec3fArray.FromNumpy(deformed(time - 1, 0.1)), time)
    with hdwarp.Scene(stage, device=device) as scene, hdwarp.Scene(keyed, device=device, time=1) as fresh:
        for each in (scene, fresh):
            each.keep_previous()
        for time in (2, 3):
            scene.sync()
            scene.set_points("/World/cloth", deformed(77, 0.1))
            scene.sync(advance=False)
            scene.set_points("/World/cloth", deformed(time - 1, 0.1))
            UsdGeom.Sphere.Define(stage, "/World/far").AddTranslateOp().Set((50, 0, time)) if time == 2 else None
            scene.sync(advance=False)
            fresh.sync(time)
            ours, theirs = picture(scene, ("motion", "primId")), picture(fresh, ("motion", "primId"))
            assert np.array_equal(ours["primId"] == 0, theirs["primId"] == 0)
            assert np.array_equal(ours["motion"], theirs["motion"])
            assert ours["motion"][ours["primId"] == 0].any()
        boxes = [wp.clone(array) for array in scene.tables.instances.bounds]
        scene.tables.previous.sweep(scene.tables.instances, *boxes)
        cloth = int(np.flatnonzero(scene.index.instances["prim_id"] == 0)[0])
        both = np.concatenate([deformed(1, 0.1), deformed(2, 0.1)])
        np.testing.assert_allclose(boxes[0].numpy()[cloth], both.min(axis=0), atol=1e-5)
        np.testing.assert_allclose(boxes[1].numpy()[cloth], both.max(axis=0), atol=1e-5)
        scene.sync()
        assert not picture(scene, ("motion",))["motion"].any()
