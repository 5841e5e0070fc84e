"""Points and primvars that a caller sets on the device: the pictures of a stage with these values authored."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, Vt
from tests.live.live_edits import LiveStage
from tests.live.live_more import RichStage
from tests.live.test_live_stage import SEQUENCES
from tests.live.test_live_stage import assert_same as assert_equal_scenes

import hdwarp
from hdwarp.errors import ArgumentError, Error
from hdwarp.stage.columns import GeometryKind
from hdwarp.tables import bvh, refit_kernels
from hdwarp.tables import written as written_tables
from hdwarp.views.conform import image_spec
from hdwarp.views.rows import View, ViewTable

SIDE = 13
AOVS = ("distance_to_image_plane", "primId", "instanceId", "elementId", "triangleId", "barycentric", "bodyId", "normal", "Ngeom", "color")
SIZE = (96, 72)


def sheet(side: int = SIDE) -> tuple[np.ndarray, np.ndarray]:
    """(P, 3) points and (T, 3) triangles of a square of 2 x 2 in xy."""
    x, y = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, side))
    points = np.stack([x, y, 0 * x], -1).reshape(-1, 3).astype(np.float32)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1, 1)
    return points, np.concatenate([corner + (0, 1, side + 1), corner + (0, side + 1, side)]).astype(np.int32)


def add_sheet(stage: Usd.Stage, path: str, place=(0, 0, 0), points=None, scheme="catmullClark", quads=False) -> UsdGeom.Mesh:
    authored, triangles = sheet()
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(authored if points is None else points))
    counts, indices = np.full(len(triangles), 3, np.int32), triangles.reshape(-1)
    if quads:
        corner = (np.arange(SIDE - 1)[:, None] * SIDE + np.arange(SIDE - 1)).reshape(-1, 1)
        indices = (corner + (0, 1, SIDE + 1, SIDE)).astype(np.int32).reshape(-1)
        counts = np.full(len(indices) // 4, 4, np.int32)
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(counts))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(indices))
    mesh.CreateSubdivisionSchemeAttr(scheme)
    mesh.AddTranslateOp().Set(Gf.Vec3d(*place))
    return mesh


def new_stage() -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    camera = UsdGeom.Camera.Define(stage, "/cam")
    camera.CreateFocalLengthAttr(30.0)
    camera.CreateClippingRangeAttr((0.1, 1000.0))
    camera.AddTranslateOp().Set((0.3, 0.2, 9))
    return stage


def deformed(seed: int, size: float = 0.3) -> np.ndarray:
    return (sheet()[0] + np.random.default_rng(seed).normal(size=(SIDE * SIDE, 3)) * size).astype(np.float32)


def picture(scene: hdwarp.Scene, aovs=AOVS, state=None) -> dict[str, np.ndarray]:
    sensor = hdwarp.SensorCamera(scene, cameras="/cam", resolution=SIZE)
    out = sensor.allocate(aovs)
    sensor.update(state, out)
    return {name: array.numpy()[0] for name, array in out.items()}


def authored(stage: Usd.Stage, path: str, points: np.ndarray) -> hdwarp.Scene:
    """A scene of a copy of the stage with other points."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.TransferContent(stage.Flatten() if stage.GetPrototypes() else stage.GetRootLayer())
    copy = Usd.Stage.Open(layer)
    UsdGeom.Mesh.Get(copy, path).GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(points)))
    return hdwarp.Scene(copy, device="cpu")


def assert_same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    for name, plane in ours.items():
        if plane.dtype.kind == "i" or name in ("barycentric", "normal", "Ngeom"):
            assert np.array_equal(plane, theirs[name], equal_nan=True), name
        else:
            np.testing.assert_allclose(plane, theirs[name], rtol=1e-6, err_msg=name)
    assert (ours["primId"] >= 0).any()


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


def test_later_calls_allocate_nothing_and_launch_little(device, monkeypatch):
    """What is launched does not grow with the mesh; addresses of all columns stay."""
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/cam", resolution=SIZE)
        out = sensor.allocate(["normal", "color"])
        arrays = [wp.array(deformed(i), dtype=wp.vec3f, device=device) for i in range(3)]
        heat = wp.array(np.linspace(0, 1, len(deformed(0)), dtype=np.float32), device=device)
        scene.set_points("/World/cloth", arrays[0])
        scene.set_primvar("/World/cloth", "heat", heat)
        scene.set_primvar("/World/cloth", "displayColor", arrays[0])
        out |= sensor.allocate(["primvars:heat"])
        sensor.update(None, out)
        version, launches = scene.tables.layout_version, []
        with monkeypatch.context() as patch:
            patch.setattr(type(scene.device.get_allocator()), "allocate", lambda *_: pytest.fail("memory was allocated"))
            for module in (written_tables, bvh):
                original = module.launch
                patch.setattr(module, "launch", lambda kernel, *a, _o=original, **k: (launches.append(kernel.key), _o(kernel, *a, **k)))
            for array in arrays:
                scene.set_points("/World/cloth", array)
                scene.set_primvar("/World/cloth", "heat", heat)
                scene.set_primvar("/World/cloth", "displayColor", array)
                sensor.update(None, out)
        assert scene.tables.layout_version == version
        assert len(launches) == 3 * (4 + 1 + 1 + 2), launches
        assert refit_kernels.fill_leaves.key in launches


@pytest.mark.parametrize("given", ["vec3f", "rows", "numpy", "strided", "interface", "dlpack"])
def test_arrays_of_any_library(given, device):
    points = deformed(4)

    class Interface:
        def __init__(self, name: str) -> None:
            setattr(self, name, getattr(points, name))

    class Dlpack:
        __dlpack__, __dlpack_device__ = points.__dlpack__, points.__dlpack_device__

    wide = np.zeros((len(points), 4), np.float32)
    wide[:, :3] = points
    arrays = {
        "vec3f": lambda: wp.array(points, dtype=wp.vec3f, device=device),
        "rows": lambda: wp.array(points, dtype=wp.float32, device=device),
        "numpy": lambda: points,
        "strided": lambda: wide[:, :3],
        "interface": lambda: Interface("__array_interface__"),
        "dlpack": Dlpack,
    }
    if given in ("interface", "dlpack") and device != "cpu":
        pytest.skip("these are of the host")
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points("/World/cloth", arrays[given]())
        assert_same(picture(scene), picture(authored(stage, "/World/cloth", points)))


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


def test_progressive_pictures_start_over(device):
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    with hdwarp.Scene(stage, device=device) as scene:
        scene.set_points("/World/cloth", deformed(0))
        task = scene.delegate.create_render_pass(samples=4)
        views = scene.delegate.create_views("/cam", SIZE)
        out = {"color": wp.zeros((1, SIZE[1], SIZE[0]), dtype=wp.vec4f, device=device)}
        for _ in range(4):
            task.execute(views, out, progressive=True)
        assert task.is_converged
        scene.set_points("/World/cloth", deformed(1))
        assert not task.is_converged


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


# -- primvars -------------------------------------------------------------------------------------------------------------


def with_primvar(stage: Usd.Stage, name: str, interpolation: str, values: np.ndarray) -> dict[str, np.ndarray]:
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.TransferContent(stage.GetRootLayer())
    copy = Usd.Stage.Open(layer)
    kinds = {1: Sdf.ValueTypeNames.FloatArray, 2: Sdf.ValueTypeNames.Float2Array, 3: Sdf.ValueTypeNames.Color3fArray}
    arrays = {1: Vt.FloatArray, 2: Vt.Vec2fArray, 3: Vt.Vec3fArray}
    width = values.shape[1]
    primvars = UsdGeom.PrimvarsAPI(copy.GetPrimAtPath("/World/cloth"))
    primvars.RemovePrimvar(name)
    flat = values[:, 0] if width == 1 else values
    primvars.CreatePrimvar(name, kinds[width], interpolation).Set(arrays[width].FromNumpy(np.ascontiguousarray(flat)))
    return picture(hdwarp.Scene(copy, device="cpu"), ("color", f"primvars:{name}", "primId"))


@pytest.mark.parametrize(("name", "width"), [("heat", 1), ("heat", 2), ("heat", 3), ("displayColor", 3)])
@pytest.mark.parametrize("interpolation", ["vertex", "uniform", "faceVarying", "constant"])
def test_values_as_if_authored(name, interpolation, width, device):
    stage = new_stage()
    mesh = add_sheet(stage, "/World/cloth")
    other = add_sheet(stage, "/World/same", (1, 0, -1))
    for prim in (mesh, other):
        prim.CreateDisplayColorPrimvar("vertex").Set([(0.2, 0.4, 0.6)] * SIDE**2)
    faces = 2 * (SIDE - 1) ** 2
    count = {"vertex": SIDE**2, "uniform": faces, "faceVarying": 3 * faces, "constant": 1}[interpolation]
    with hdwarp.Scene(stage, device=device) as scene:
        before = picture(scene, ("color", "primId"))
        for frame in range(2):
            values = np.random.default_rng(frame).random((count, width), np.float32)
            scene.set_primvar("/World/cloth", name, wp.array(values, dtype=wp.float32, device=device))
            ours = picture(scene, ("color", f"primvars:{name}", "primId"))
            theirs = with_primvar(stage, name, interpolation, values)
            for plane in ours:
                assert np.array_equal(ours[plane], theirs[plane]), plane
        mesh.GetPrim().GetAttribute("xformOp:translate").Set(Gf.Vec3d(0.1, 0, 0))
        scene.sync()
        ours, theirs = picture(scene, ("color", f"primvars:{name}", "primId")), with_primvar(stage, name, interpolation, values)
        for plane in ours:
            assert np.array_equal(ours[plane], theirs[plane]), plane
        mesh.GetPrim().GetAttribute("xformOp:translate").Set(Gf.Vec3d(0, 0, 0))
        scene.sync()
        scene.set_primvar("/World/cloth", name, None)
        after = picture(scene, ("color", "primId"))
        assert np.array_equal(after["color"], before["color"])
        assert "heat" not in scene.tables.primvar_names()
        assert len(scene.index.meshes) == 1


def test_shape_and_interpolation_may_change(device):
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    UsdGeom.Sphere.Define(stage, "/World/ball").AddTranslateOp().Set((-1.5, 0, 1))
    with hdwarp.Scene(stage, device=device) as scene:
        for values in (np.ones((SIDE**2, 1), np.float32), np.full((1, 2), 2, np.float32), np.full((SIDE**2, 3), 3, np.float32)):
            scene.set_primvar("/World/cloth", "primvars:heat", values)
            scene.set_primvar("/World/ball", "heat", np.full((1, values.shape[1]), 7, np.float32))
            planes = picture(scene, ("primvars:heat", "primId"))
            heat = planes["primvars:heat"].reshape(*planes["primId"].shape, -1)
            assert heat.shape[-1] == values.shape[1]
            for path, value in (("/World/cloth", values[0, 0]), ("/World/ball", 7.0)):
                np.testing.assert_allclose(heat[planes["primId"] == scene.index.prim_paths.index(path)], value, rtol=1e-6)


def test_the_stage_wins_where_it_has_another_value(device):
    stage = new_stage()
    mesh = add_sheet(stage, "/World/cloth")
    mesh.CreateDisplayColorPrimvar("vertex").Set([(0.2, 0.4, 0.6)] * SIDE**2)
    with hdwarp.Scene(stage, device=device) as scene:
        points, red = deformed(1, 0.1), np.tile(np.float32((1, 0, 0)), (SIDE**2, 1))
        scene.set_primvar("/World/cloth", "displayColor", red)
        scene.set_points("/World/cloth", points)
        mesh.GetDisplayColorPrimvar().Set([(0.9, 0.4, 0.6)] * SIDE**2)
        scene.sync()
        assert_same(picture(scene), picture(authored(stage, "/World/cloth", points)))
        scene.set_primvar("/World/cloth", "displayColor", red)
        mesh.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(deformed(2, 0.1)))
        scene.sync()
        planes = picture(scene, ("albedo", "primId"))
        assert (planes["albedo"][planes["primId"] == 0] == (1, 0, 0, 1)).all()


def test_normals_may_be_set(device):
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    with hdwarp.Scene(stage, device=device) as scene:
        for values in (np.tile(np.float32((0, 3, 4)), (SIDE**2, 1)), np.float32([(0, 3, 4)])):
            scene.set_primvar("/World/cloth", "normals", values)
            scene.set_points("/World/cloth", deformed(1, 0.01))
            planes = picture(scene)
            np.testing.assert_allclose(
                planes["normal"][planes["primId"] == 0], np.float32([(0, 0.6, 0.8)]).repeat((planes["primId"] == 0).sum(), 0), atol=1e-6
            )


def test_bad_calls_name_what_was_given_and_what_would_do(device):
    stage = new_stage()
    add_sheet(stage, "/World/cloth")
    UsdGeom.Sphere.Define(stage, "/World/ball")
    points = deformed(0)
    scene = hdwarp.Scene(stage, device=device)
    before = picture(scene)
    for error, call in {
        r"shape \(168, 3\); expected \(169, 3\)": lambda: scene.set_points("/World/cloth", points[:-1]),
        r"shape \(169, 2\); expected \(169, 3\)": lambda: scene.set_points("/World/cloth", points[:, :2]),
        r"float16 of shape \(169, 3\); expected float32": lambda: scene.set_points("/World/cloth", points.astype(np.float16)),
        "given as list; expected": lambda: scene.set_points("/World/cloth", points.tolist()),
        "nothing is drawn at </World>; below it are </World/ball>, </World/cloth>": lambda: scene.set_points("/World", points),
        "</World/ball> is no mesh but a sphere": lambda: scene.set_points("/World/ball", points),
        "nothing is drawn at </no>; the scene draws": lambda: scene.set_points("/no", None),
        r"168 values; expected 169 \(vertex\) or 288 \(uniform\)": lambda: scene.set_primvar("/World/cloth", "heat", points[:-1, :1]),
        "5 components; expected 1 to 4": lambda: scene.set_primvar("/World/cloth", "heat", np.zeros((169, 5), np.float32)),
        r"169 values; expected 288 \(uniform\)": lambda: scene.set_primvar("/World/cloth", "h", points, interpolation="uniform"),
        "interpolation='face'": lambda: scene.set_primvar("/World/cloth", "heat", points, interpolation="face"),
        r"169 values; expected 1 \(constant\)": lambda: scene.set_primvar("/World/ball", "heat", points),
        "name='': expected": lambda: scene.set_primvar("/World/cloth", "", points),
    }.items():  # fmt: skip
        with pytest.raises(ArgumentError, match=error):
            call()
    assert_same(picture(scene), before)
    assert len(scene.index.meshes) == 1
    scene.close()
    for call in (lambda: scene.set_points("/World/cloth", points), lambda: scene.set_primvar("/World/cloth", "heat", points)):
        with pytest.raises(Error, match="the scene is closed"):
            call()


@pytest.mark.parametrize("kind", [LiveStage, RichStage])
@pytest.mark.parametrize("seed", range(max(SEQUENCES // 3, 1)))
def test_edits_between_calls(seed, kind, device):
    """Whatever is edited: the bits of a scene opened afresh that gets the values which are still set."""
    live, history = kind(500 + seed), []
    given: dict[tuple[str, str | None], np.ndarray] = {}

    def give(scene: hdwarp.Scene, path: str, name: str | None) -> None:
        if name is None:
            scene.set_points(path, given[path, name])
        else:
            scene.set_primvar(path, name, given[path, name])

    with hdwarp.Scene(live.stage, device=device, time=live.time) as scene:
        for _ in range(5):
            rows = {path: scene.index.mesh_row(path) for path in scene.index.prim_paths}
            found = {path: scene.index.meshes[row] for path, row in rows.items() if row >= 0}
            meshes = [
                path for path, mesh in found.items() if mesh.form in (GeometryKind.MESH, GeometryKind.POINTS)
            ]  # none of curves can be
            for path in live.rng.choice(meshes, min(3, len(meshes)), replace=False).tolist() if meshes else ():
                name, mesh = [None, "heat", "displayColor"][live.rng.integers(3)], found[path]
                count = mesh.face_count if name and mesh.form is GeometryKind.POINTS else len(mesh.points)
                width = 1 if name == "heat" else 3
                given[path, name] = live.rng.normal(size=(1 if live.chance(0.3) and name else count, width)).astype(np.float32)
                give(scene, path, name)
                history.append(f"set {name or 'points'} of {path}")
            history += [live.edit() for _ in range(live.rng.integers(1, 4))]
            scene.sync(live.time)
            written = scene.index.written
            with hdwarp.Scene(live.stage, device=device, time=live.time) as fresh:
                for path, name in given:
                    if path in written.paths_of_points if name is None else written.primvar(path, name):
                        give(fresh, path, name)
                assert_equal_scenes(scene, fresh, history)
            if given and live.chance(0.3):
                path, name = list(given)[live.rng.integers(len(given))]
                if written.keys(path):
                    scene.set_points(path, None) if name is None else scene.set_primvar(path, name, None)
                    history.append(f"gave back {name or 'points'} of {path}")
