"""motion: where a surface point was a frame ago, in pixels: closed forms, and float64 projections of the points a frame shows."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Usd, UsdGeom, UsdPhysics, UsdSkel

import hdwarp
from hdwarp.aovs.registry import resolve_var
from hdwarp.errors import ArgumentError
from hdwarp.views import orthographic, pinhole
from hdwarp.views.conform import image_spec

WIDTH, HEIGHT = 160, 120
SIZE = (WIDTH, HEIGHT)


def new_stage(camera_keys=None, *, projection="perspective"):
    """A camera with K 125 (perspective) or pixels of 4 cm (orthographic); ``camera_keys``: translation by time code."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    camera = UsdGeom.Camera.Define(stage, "/camera")
    camera.CreateProjectionAttr(projection)
    camera.CreateFocalLengthAttr(50.0)
    camera.CreateHorizontalApertureAttr(64.0)
    camera.CreateVerticalApertureAttr(48.0)
    camera.CreateClippingRangeAttr(Gf.Vec2f(0.01, 1000))
    op = camera.AddTranslateOp()
    for time, place in (camera_keys or {}).items():
        op.Set(Gf.Vec3d(*place), time)
    return stage


def add_quad(stage, path="/wall", *, half=50.0, depth=5.0, keys=None):
    """A square before the camera; ``keys``: points by time code instead."""
    mesh = UsdGeom.Mesh.Define(stage, path)
    corners = [(-half, -half, -depth), (half, -half, -depth), (half, half, -depth), (-half, half, -depth)]
    mesh.CreatePointsAttr(corners)
    for time, points in (keys or {}).items():
        mesh.GetPointsAttr().Set(points, time)
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    return mesh


def camera_of(stage, time):
    """The camera's record at a time, by way of a scene: for the float64 twins."""
    with hdwarp.Scene(stage, time=time, device="cpu") as scene:
        return scene.cameras.record_of(scene.cameras.label.index("/camera"))


def project(stage, time, points):
    """(H, W, 2) float64 pixel positions of world points by the camera as it is at ``time``."""
    camera = camera_of(stage, time)
    twin = orthographic if camera.projection == "orthographic" else pinhole
    return twin.project(camera, image_spec(SIZE), np.where(np.isfinite(points), points, -1.0))[0]


def centres():
    return np.stack(np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5), axis=-1)


def render(stage, device, time=1.0, **options):
    return hdwarp.render(stage, "/camera", time=time, resolution=SIZE, aovs=["motion", "primId", "position"], device=device, **options)


# -- cameras ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "expected"), [((0.4, 0, 0), (-10.0, 0.0)), ((0, 0.4, 0), (0.0, 10.0)), ((-0.2, -0.2, 0), (5.0, -5.0))])
def test_a_camera_that_moves_along_a_wall(shift, expected, device):
    """K 125, depth 5: 0.4 m is 10 px. To the right, points go left (x < 0); up, they go down (y > 0)."""
    stage = new_stage({0: (0, 0, 0), 1: shift})
    add_quad(stage)
    motion = render(stage, device)["motion"]
    assert motion.shape == (HEIGHT, WIDTH, 2) and motion.dtype == np.float32
    np.testing.assert_allclose(motion, np.broadcast_to(expected, motion.shape), atol=1e-5)


def test_the_right_answer_52(device):
    """K 500, camera +0.1 m in x, planar depth 5: -10 px in u."""
    stage = new_stage({0: (0, 0, 0), 1: (0.1, 0, 0)})
    add_quad(stage)
    frame = hdwarp.render(stage, "/camera", time=1, resolution=(640, 480), aovs=["motion"], device=device)
    assert frame.K[0, 0] == pytest.approx(500.0)
    np.testing.assert_allclose(frame["motion"], np.broadcast_to((-10.0, 0.0), (480, 640, 2)), atol=1e-5)


def test_far_from_the_origin_nothing_is_lost(device):
    """1000 km away, where the world's frame follows what is drawn: a wall that goes 3 m right and a camera that goes 2.6 m with it."""
    stage = new_stage({0: (1e6, 0, 0), 1: (1e6 + 2.6, 0, 0)})
    op = add_quad(stage).AddTranslateOp()
    op.Set(Gf.Vec3d(1e6, 0, 0), 0)
    op.Set(Gf.Vec3d(1e6 + 3.0, 0, 0), 1)
    np.testing.assert_allclose(render(stage, device)["motion"], np.broadcast_to((10.0, 0.0), (HEIGHT, WIDTH, 2)), atol=1e-5)


def test_zoom_moves_pixels_along_rays_from_the_centre(device):
    """Focal length 40 -> 50: a pixel that is d from the centre was 0.8 d from it."""
    stage = new_stage()
    UsdGeom.Camera.Get(stage, "/camera").GetFocalLengthAttr().Set(40.0, 0)
    UsdGeom.Camera.Get(stage, "/camera").GetFocalLengthAttr().Set(50.0, 1)
    add_quad(stage)
    np.testing.assert_allclose(render(stage, device)["motion"], 0.2 * (centres() - (80.0, 60.0)), atol=1e-5)


def test_a_camera_that_turns_moves_pixels_whatever_their_depth(device):
    stage = new_stage()
    turn = UsdGeom.Xformable(stage.GetPrimAtPath("/camera")).AddRotateXYZOp()
    turn.Set(Gf.Vec3f(0, 0, 0), 0)
    turn.Set(Gf.Vec3f(3, -5, 7), 1)
    add_quad(stage, "/far", depth=30.0, half=100.0)
    add_quad(stage, "/near", depth=3.0, half=0.7)
    frame = render(stage, device)
    assert len(np.unique(frame["primId"])) == 2
    expected = centres() - project(stage, 0, frame.points())
    assert np.abs(expected).max() > 10
    np.testing.assert_allclose(frame["motion"], expected, atol=2e-4)


def test_orthographic_views_move_by_metres_whatever_the_depth(device):
    """Pixels of 0.04 m: 0.1 m to the right is -2.5 px, near and far."""
    stage = new_stage({0: (0, 0, 0), 1: (0.1, -0.2, 3.0)}, projection="orthographic")
    camera = UsdGeom.Camera.Get(stage, "/camera")
    camera.GetHorizontalApertureAttr().Set(64.0)
    add_quad(stage, depth=20.0)
    add_quad(stage, "/near", depth=3.0, half=0.7)
    frame = render(stage, device)
    np.testing.assert_allclose(frame["motion"], np.broadcast_to((-2.5, -5.0), (HEIGHT, WIDTH, 2)), atol=1e-4)
    np.testing.assert_allclose(frame["motion"], centres() - project(stage, 0, frame.points()), atol=1e-3)


def test_what_was_behind_the_camera_came_from_nowhere(device):
    """The camera turns about: what it sees now no pixel showed before, which is infinity, not a number that means something else."""
    stage = new_stage()
    turn = UsdGeom.Xformable(stage.GetPrimAtPath("/camera")).AddRotateYOp()
    turn.Set(180.0, 0)
    turn.Set(0.0, 1)
    add_quad(stage, half=1.0)
    frame = render(stage, device)
    seen = frame["primId"] >= 0
    assert seen.any() and not seen.all()
    assert np.all(frame["motion"][seen] == np.inf) and np.all(frame["motion"][~seen] == 0.0)


# -- geometry -----------------------------------------------------------------------------------------------------------------


def test_rigid_shapes_and_meshes_move_as_their_transforms_say(device):
    """A turning, moving cube, ball, cone, capsule and mesh before a moving camera: each pixel's point, taken back by its own transform."""
    stage = new_stage({0: (0, 0, 0), 1: (0.05, 0.02, -0.1)})
    add_quad(stage, depth=9.0)
    kinds = (UsdGeom.Cube, UsdGeom.Sphere, UsdGeom.Cone, UsdGeom.Capsule, UsdGeom.Cylinder)
    for i, kind in enumerate(kinds):
        shape = kind.Define(stage, f"/shape_{i}")
        shape.AddTranslateOp().Set(Gf.Vec3d(-2.4 + 1.2 * i, 0.9, -6), 0)
        shape.GetOrderedXformOps()[0].Set(Gf.Vec3d(-2.3 + 1.2 * i, 1.0, -5.8), 1)
        shape.AddRotateXYZOp().Set(Gf.Vec3f(10, 20, 30), 0)
        shape.GetOrderedXformOps()[1].Set(Gf.Vec3f(20, 10, 40), 1)
        shape.AddScaleOp().Set(Gf.Vec3f(0.4, 0.5, 0.45))
    mesh = add_quad(stage, "/quad", half=0.8, depth=0.0)
    mesh.AddTranslateOp().Set(Gf.Vec3d(0, -1.2, -5), 0)
    mesh.GetOrderedXformOps()[0].Set(Gf.Vec3d(0.1, -1.1, -5.2), 1)
    mesh.AddRotateXYZOp().Set(Gf.Vec3f(0, 40, 0), 0)
    mesh.GetOrderedXformOps()[1].Set(Gf.Vec3f(5, 30, 10), 1)
    frame = render(stage, device)
    points = frame.points()
    for i, path in enumerate(frame.prim_paths):
        mask = frame["primId"] == i
        assert mask.sum() > 100, path
        now, then = (np.array(UsdGeom.XformCache(time).GetLocalToWorldTransform(stage.GetPrimAtPath(path))).T for time in (1.0, 0.0))
        moved = then @ np.linalg.inv(now)
        points[mask] = points[mask] @ moved[:3, :3].T + moved[:3, 3]
    expected = centres() - project(stage, 0, points)
    assert np.abs(expected).max() > 5
    np.testing.assert_allclose(frame["motion"], expected, atol=3e-4)


@pytest.mark.parametrize("offset", [0.0, 3000.0])
def test_a_deforming_mesh_moves_by_its_points(offset, device):
    """A sheet sheared by its height: 0.1 m a metre, at depth 5, while half of another stays. ``offset``: far from the mesh's own origin."""
    stage = new_stage()
    rows, columns = np.meshgrid(np.linspace(-3, 3, 7), np.linspace(-3, 3, 7), indexing="ij")
    points = np.stack([columns.ravel() + offset, rows.ravel(), np.full(49, -5.0)], axis=1)
    sheared = points + np.stack([0.1 * np.maximum(points[:, 1], 0.0), 0 * points[:, 1], 0 * points[:, 1]], axis=1)
    mesh = UsdGeom.Mesh.Define(stage, "/sheet")
    mesh.AddTranslateOp().Set(Gf.Vec3d(-offset, 0, 0))
    mesh.CreatePointsAttr()
    for time, values in ((0, points), (1, sheared)):
        mesh.GetPointsAttr().Set([tuple(p) for p in values], time)
    faces = [(7 * r + c, 7 * r + c + 1, 7 * r + c + 8, 7 * r + c + 7) for r in range(6) for c in range(6)]
    mesh.CreateFaceVertexCountsAttr([4] * 36)
    mesh.CreateFaceVertexIndicesAttr([i for face in faces for i in face])
    frame = render(stage, device)
    y = frame.points()[..., 1]
    seen, upper = frame["primId"] >= 0, y > 0
    assert (seen & upper).sum() > 1000
    assert np.all(frame["motion"][seen & (y < -0.001)] == 0.0)  # those points have not moved: exactly nothing
    expected = np.zeros((HEIGHT, WIDTH, 2))
    expected[..., 0] = np.where(upper, 0.1 * y * 125.0 / 5.0, 0.0)
    atol = 1e-4 if offset == 0.0 else 0.02  # a float32 point at 3000 m is good to 0.12 mm
    np.testing.assert_allclose(frame["motion"][seen], expected[seen], atol=atol)


def test_a_deforming_mesh_that_moves_and_turns(device):
    """Points and transform change together, seen by a camera that moves: each corner's own way, by the weights of the hit."""
    stage = new_stage({0: (0, 0, 0), 1: (0.1, 0, 0.2)})
    then = np.array([(-2, -2, 0), (2, -2, 0.5), (0, 2, 0)])
    now = then + np.array([(0.1, 0, 0.2), (-0.1, 0.2, 0), (0.3, 0.1, -0.2)])
    mesh = UsdGeom.Mesh.Define(stage, "/triangle")
    mesh.CreateFaceVertexCountsAttr([3])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2])
    mesh.CreatePointsAttr()
    mesh.AddTranslateOp().Set(Gf.Vec3d(0, 0, -6), 0)
    mesh.GetOrderedXformOps()[0].Set(Gf.Vec3d(0.2, 0.1, -6.3), 1)
    mesh.AddRotateYOp().Set(0.0, 0)
    mesh.GetOrderedXformOps()[1].Set(8.0, 1)
    for time, values in ((0, then), (1, now)):
        mesh.GetPointsAttr().Set([tuple(p) for p in values], time)
    frame = hdwarp.render(stage, "/camera", time=1, resolution=SIZE, aovs=["motion", "primId", "barycentric"], device=device)
    seen = frame["primId"] >= 0
    weights = np.concatenate([frame["barycentric"], 1.0 - frame["barycentric"].sum(axis=-1, keepdims=True)], axis=-1).astype(float)
    matrix = np.array(UsdGeom.XformCache(0.0).GetLocalToWorldTransform(mesh.GetPrim())).T
    points = weights @ then.astype(np.float32) @ matrix[:3, :3].T + matrix[:3, 3]
    expected = centres() - project(stage, 0, points)
    assert seen.sum() > 2000 and np.abs(expected[seen]).max() > 5
    np.testing.assert_allclose(frame["motion"][seen], expected[seen], atol=5e-4)


def test_a_skinned_mesh_moves_with_its_joint(device):
    """A square bound to a joint that goes 0.2 m right in a frame: 5 px at depth 5."""
    stage = new_stage()
    UsdSkel.Root.Define(stage, "/rig")
    skeleton = UsdSkel.Skeleton.Define(stage, "/rig/skeleton")
    skeleton.CreateJointsAttr(["joint"])
    skeleton.CreateBindTransformsAttr([Gf.Matrix4d(1)])
    skeleton.CreateRestTransformsAttr([Gf.Matrix4d(1)])
    animation = UsdSkel.Animation.Define(stage, "/rig/animation")
    animation.CreateJointsAttr(["joint"])
    animation.CreateRotationsAttr([Gf.Quatf(1)])
    animation.CreateScalesAttr([Gf.Vec3h(1)])
    animation.CreateTranslationsAttr()
    animation.GetTranslationsAttr().Set([Gf.Vec3f(0)], 0)
    animation.GetTranslationsAttr().Set([Gf.Vec3f(0.2, 0, 0)], 1)
    UsdSkel.BindingAPI.Apply(skeleton.GetPrim()).CreateAnimationSourceRel().SetTargets(["/rig/animation"])
    mesh = add_quad(stage, "/rig/mesh", half=1.0)
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets(["/rig/skeleton"])
    binding.CreateJointIndicesPrimvar(False, 1).Set([0, 0, 0, 0])
    binding.CreateJointWeightsPrimvar(False, 1).Set([1.0, 1.0, 1.0, 1.0])
    frame = render(stage, device)
    seen = frame["primId"] >= 0
    assert seen.sum() > 1000
    np.testing.assert_allclose(frame["motion"][seen], np.broadcast_to((5.0, 0.0), (seen.sum(), 2)), atol=1e-4)


def test_one_of_two_meshes_that_shared_their_points_deforms(device):
    """They are one mesh on the device before, two after: the one that stays has not moved, the other has."""
    stage = new_stage()
    for path, x in (("/left", -1.5), ("/right", 1.5)):
        mesh = add_quad(stage, path, half=1.0)
        mesh.AddTranslateOp().Set(Gf.Vec3d(x, 0, 0))
    corners = [Gf.Vec3f(*p) for p in mesh.GetPointsAttr().Get()]
    mesh.GetPointsAttr().Set(corners, 0)
    mesh.GetPointsAttr().Set([p + Gf.Vec3f(0, 0.2, 0) for p in corners], 1)
    frame = render(stage, device)
    left, right = (frame["primId"] == i for i in range(2))
    assert left.any() and np.all(frame["motion"][left] == 0.0)
    np.testing.assert_allclose(frame["motion"][right], np.broadcast_to((0.0, -5.0), (right.sum(), 2)), atol=1e-4)


def test_instances_of_point_instancers_are_known_by_their_authored_ids(device):
    """Three balls; a frame later the first is gone, a new one is there, and the order is another: ids say which one moved how."""
    stage = new_stage()
    instancer = UsdGeom.PointInstancer.Define(stage, "/balls")
    UsdGeom.Sphere.Define(stage, "/balls/ball").CreateRadiusAttr(0.3)
    instancer.CreatePrototypesRel().SetTargets(["/balls/ball"])
    frames = {
        0: {7: (-2, 0, -5), 8: (0, 0, -5), 9: (1, 0, -5)},
        1: {9: (1, 0.4, -5), 8: (0.4, 0, -5), 10: (-1, 0, -5)},
    }
    instancer.CreateProtoIndicesAttr([0, 0, 0])
    instancer.CreateIdsAttr()
    instancer.CreatePositionsAttr()
    for time, balls in frames.items():
        instancer.GetIdsAttr().Set(list(balls), time)
        instancer.GetPositionsAttr().Set([Gf.Vec3f(*p) for p in balls.values()], time)
    frame = hdwarp.render(stage, "/camera", time=1, resolution=SIZE, aovs=["motion", "primId", "instanceId", "position"], device=device)
    points, expected = frame.points(), {}
    for place, name in enumerate(frames[1]):
        mask = frame["instanceId"] == place
        assert mask.sum() > 50
        shift = np.subtract(frames[1][name], frames[0].get(name, frames[1][name]))
        expected[name] = (centres() - project(stage, 0, points - shift))[mask]
        np.testing.assert_allclose(frame["motion"][mask], expected[name], atol=2e-4)
    assert np.all(frame["motion"][frame["instanceId"] == 2] == 0.0)  # the new one
    assert np.abs(expected[8]).max() > 5 and np.abs(expected[9]).max() > 5


def test_native_instances_move_each_by_itself(device):
    stage = new_stage()
    stage.CreateClassPrim("/proto")
    UsdGeom.Cube.Define(stage, "/proto/cube").CreateSizeAttr(1.0)
    for i, (then, now) in enumerate((((-1, 0, -5), (-1, 0, -5)), ((1, 0, -5), (1.2, 0, -5)))):
        prim = stage.DefinePrim(f"/copy_{i}", "Xform")
        prim.GetReferences().AddInternalReference("/proto")
        prim.SetInstanceable(True)
        op = UsdGeom.Xformable(prim).AddTranslateOp()
        op.Set(Gf.Vec3d(*then), 0)
        op.Set(Gf.Vec3d(*now), 1)
    frame = render(stage, device)
    still, moving = (frame["primId"] == i for i in range(2))
    assert still.any() and np.all(frame["motion"][still] == 0.0)
    expected = centres() - project(stage, 0, frame.points() - (0.2, 0, 0))
    np.testing.assert_allclose(frame["motion"][moving], expected[moving], atol=1e-4)


# -- scenes: what "previous" is -----------------------------------------------------------------------------------------------


@pytest.fixture
def live(device):
    """(scene, wall's translate op, sensor, its arrays)."""
    stage = new_stage()
    wall = add_quad(stage, half=1.0)
    op = wall.AddTranslateOp()
    op.Set(Gf.Vec3d(0))
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/camera", resolution=SIZE)
        out = sensor.allocate(["motion", "primId"])
        yield scene, op, sensor, out


def middle(sensor, out, state=None, **options):
    sensor.update(state, out, **options)
    return out["motion"].numpy()[0, HEIGHT // 2, WIDTH // 2].tolist()


def test_each_sync_is_a_frame_and_one_that_changes_nothing_brings_all_to_rest(live):
    scene, op, sensor, out = live
    assert middle(sensor, out) == [0.0, 0.0]
    op.Set(Gf.Vec3d(0.2, 0, 0))
    scene.sync()
    assert middle(sensor, out) == pytest.approx([5.0, 0.0], abs=1e-5)
    assert middle(sensor, out) == pytest.approx([5.0, 0.0], abs=1e-5)  # rendering is no frame
    op.Set(Gf.Vec3d(0.2, 0.2, 0))
    scene.sync()
    assert middle(sensor, out) == pytest.approx([0.0, -5.0], abs=1e-5)
    scene.sync()
    sensor.update(None, out)
    assert np.all(out["motion"].numpy() == 0.0)


def test_several_syncs_of_one_frame(live):
    scene, op, sensor, out = live
    op.Set(Gf.Vec3d(0.1, 0, 0))
    scene.sync()
    op.Set(Gf.Vec3d(0.2, 0, 0))
    scene.sync(advance=False)
    assert middle(sensor, out) == pytest.approx([5.0, 0.0], abs=1e-5)
    op.Set(Gf.Vec3d(0, 0, 0))
    scene.sync(advance=False)
    sensor.update(None, out)
    assert np.all(out["motion"].numpy() == 0.0)  # back where the frame began: to the bit


def test_what_is_new_has_no_previous_place(live):
    """It moves with the camera alone; so does a prim whose row another one had."""
    scene, _, sensor, out = live
    scene.stage.RemovePrim("/wall")
    cube = UsdGeom.Cube.Define(scene.stage, "/cube")
    cube.AddTranslateOp().Set(Gf.Vec3d(0, 0, -6))
    scene.sync()
    assert middle(sensor, out) == [0.0, 0.0] and out["primId"].numpy().max() == 0
    UsdGeom.Xformable(scene.stage.GetPrimAtPath("/camera")).GetOrderedXformOps()[0].Set(Gf.Vec3d(0.2, 0, 0))
    UsdGeom.Sphere.Define(scene.stage, "/ball").AddTranslateOp().Set(Gf.Vec3d(0, 0, -3.5))
    scene.sync()
    assert middle(sensor, out) == pytest.approx([-10.0, 0.0], abs=0.5)  # K 125, 0.2 m, depth 2.5


def test_a_mesh_with_other_triangles_moves_with_its_transform(live):
    scene, op, sensor, out = live
    mesh = UsdGeom.Mesh.Get(scene.stage, "/wall")
    mesh.GetFaceVertexCountsAttr().Set([3, 3])
    mesh.GetFaceVertexIndicesAttr().Set([0, 1, 3, 1, 2, 3])
    op.Set(Gf.Vec3d(0.2, 0, 0))
    scene.sync()
    assert middle(sensor, out) == pytest.approx([5.0, 0.0], abs=1e-5)


def test_nothing_is_kept_until_somebody_asks(device):
    stage = new_stage({0: (0, 0, 0), 1: (0.2, 0, 0)})
    add_quad(stage)
    with hdwarp.Scene(stage, device=device, time=0) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/camera", resolution=SIZE)
        out = sensor.allocate(["primId"])
        sensor.update(None, out)
        scene.sync(1)
        assert scene.tables.previous is None and scene.index.previous is None and sensor.views.previous_rows is None
        scene.keep_previous()
        scene.sync(0)
        out = sensor.allocate(["motion"])
        assert middle(sensor, out) == pytest.approx([5.0, 0.0], abs=1e-5)


def test_device_written_lenses_count_as_before_too(live):
    """A kernel that writes a camera's focal length writes it for both poses: only the stage's edits are motion."""
    scene, _, sensor, out = live
    scene.cameras.focal_length.fill_(8.0)
    sensor.update(None, out)
    assert np.all(out["motion"].numpy() == 0.0)
    UsdGeom.Xformable(scene.stage.GetPrimAtPath("/camera")).GetOrderedXformOps()[0].Set(Gf.Vec3d(0.2, 0, 0))
    scene.sync()
    assert middle(sensor, out) == pytest.approx([-8.0, 0.0], abs=1e-5)  # K 200: what the kernel wrote, now and before


def test_addresses_stay_and_rendering_again_gives_the_same_bits(live):
    scene, op, sensor, out = live
    op.Set(Gf.Vec3d(0.2, 0.1, 0.3))
    scene.sync()
    sensor.update(None, out)
    first, addresses = out["motion"].numpy().copy(), scene.tables.previous.addresses()
    out["motion"].fill_(7.0)
    sensor.update(None, out)
    assert np.array_equal(out["motion"].numpy(), first) and scene.tables.previous.addresses() == addresses
    assert np.abs(first).max() > 1


# -- bodies -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def robot(device):
    """A wall at z = -10; a body at the origin that carries a camera and a ball two metres ahead of it; a camera of the world."""
    stage = new_stage()
    add_quad(stage, depth=10.0)
    body = UsdGeom.Xform.Define(stage, "/robot")
    body.AddTranslateOp().Set(Gf.Vec3d(0))
    UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
    ball = UsdGeom.Sphere.Define(stage, "/robot/ball")
    ball.CreateRadiusAttr(0.25)
    ball.AddTranslateOp().Set(Gf.Vec3d(0, 0, -2))
    eye = UsdGeom.Camera.Define(stage, "/robot/eye")
    for name in ("focalLength", "horizontalAperture", "verticalAperture", "clippingRange"):
        eye.GetPrim().GetAttribute(name).Set(stage.GetPrimAtPath("/camera").GetAttribute(name).Get())
    with hdwarp.Scene(stage, device=device) as scene:
        yield scene


def moved(state, shift=(0, 0, 0), quaternion=(0, 0, 0, 1)):
    other = state.copy()
    pose = other.body_q.numpy().copy()
    pose[:, :3] += shift
    pose[:, 3:] = quaternion
    other.body_q.assign(pose)
    return other


def test_bodies_and_the_cameras_they_carry_move_by_the_earlier_state(robot):
    """The body goes 0.2 m right. For the world's camera the ball does too and the wall rests; for its own the ball rests, the wall goes
    left: K 125, 0.2 m, depth 10: 2.5 px."""
    sensor = hdwarp.SensorCamera(robot, cameras="*", resolution=SIZE)
    out = sensor.allocate(["motion", "primId", "distance_to_image_plane"])
    before = robot.state()
    sensor.update(moved(before, (0.2, 0, 0)), out, previous=before)
    motion, prim, depth = (out[name].numpy() for name in out)
    ball = robot.index.prim_paths.index("/robot/ball")
    world, own = (robot.cameras.label.index(path) for path in ("/camera", "/robot/eye"))
    assert np.all(motion[world][prim[world] != ball] == 0.0)
    mask = prim[world] == ball
    np.testing.assert_allclose(motion[world][mask][:, 0], 0.2 * 125.0 / depth[world][mask], rtol=1e-5)
    np.testing.assert_allclose(motion[own][prim[own] != ball], np.broadcast_to((-2.5, 0.0), ((prim[own] != ball).sum(), 2)), atol=1e-4)
    np.testing.assert_allclose(motion[own][prim[own] == ball], 0.0, atol=1e-4)


def test_a_body_that_turns(robot):
    """About y by 0.1: the ball's points by the rotation, those of its camera's view by the camera's."""
    sensor = hdwarp.SensorCamera(robot, cameras="/camera", resolution=SIZE)
    out = sensor.allocate(["motion", "primId", "position"])
    before, angle = robot.state(), 0.1
    now = moved(before, quaternion=(0, np.sin(angle / 2), 0, np.cos(angle / 2)))
    sensor.update(now, out, previous=before)
    mask = out["primId"].numpy()[0] == robot.index.prim_paths.index("/robot/ball")
    c, s = np.cos(angle), np.sin(angle)
    points = out["position"].numpy()[0].astype(float) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    expected = centres() - project(robot.stage, None, points)
    assert np.abs(expected[mask]).max() > 10
    np.testing.assert_allclose(out["motion"].numpy()[0][mask], expected[mask], atol=5e-4)


def test_no_motion_is_exactly_none(robot):
    """Equal states give 0 to the bit, however odd the pose; so does a state without an earlier one, and the stage's own poses."""
    sensor = hdwarp.SensorCamera(robot, cameras="*", resolution=SIZE)
    out = sensor.allocate(["motion"])
    odd = moved(robot.state(), (0.1, 0.2, 0.3), np.array([0.1, 0.2, 0.3, 0.9]) / np.linalg.norm([0.1, 0.2, 0.3, 0.9]))
    other = moved(robot.state(), (0.3, 0, 0))
    for state, previous in ((odd, odd.copy()), (odd, None), (None, None), (None, robot.state())):
        sensor.update(other, out, previous=robot.state())
        assert np.abs(out["motion"].numpy()).max() > 1
        sensor.update(state, out, previous=previous)
        assert np.all(out["motion"].numpy() == 0.0)


def test_bodies_that_the_stage_moves(robot):
    """Without states a body is where the stage has it, and was where the stage had it, its camera too."""
    sensor = hdwarp.SensorCamera(robot, cameras="*", resolution=SIZE)
    out = sensor.allocate(["motion", "primId"])
    UsdGeom.Xformable(robot.stage.GetPrimAtPath("/robot")).GetOrderedXformOps()[0].Set(Gf.Vec3d(0.2, 0, 0))
    robot.sync()
    world, own = (robot.cameras.label.index(path) for path in ("/camera", "/robot/eye"))
    ball = robot.index.prim_paths.index("/robot/ball")

    def check():
        sensor.update(None, out)
        motion, prim = out["motion"].numpy(), out["primId"].numpy()
        assert np.all(motion[world][prim[world] != ball] == 0.0)
        assert motion[world][prim[world] == ball][:, 0].min() > 10
        np.testing.assert_allclose(motion[own][prim[own] != ball][:, 0], -2.5, atol=1e-4)
        np.testing.assert_allclose(motion[own][prim[own] == ball], 0.0, atol=1e-4)

    check()
    state = robot.state()
    sensor.update(state, out, previous=state)
    assert np.all(out["motion"].numpy() == 0.0)
    check()


def test_views_placed_by_the_call(robot, device):
    """camera_transforms without earlier ones have not moved; with earlier ones they have."""
    sensor = hdwarp.SensorCamera(robot, cameras="/camera", resolution=SIZE)
    out = sensor.allocate(["motion", "primId"])
    now = wp.array([[0.2, 0, 0, 0, 0, 0, 1]], dtype=wp.transformf, device=device)
    then = wp.array([[0, 0, 0, 0, 0, 0, 1]], dtype=wp.transformf, device=device)
    sensor.update(None, out, camera_transforms=now)
    assert np.all(out["motion"].numpy() == 0.0)
    sensor.update(None, out, camera_transforms=now, previous_camera_transforms=then)
    wall = out["primId"].numpy()[0] == robot.index.prim_paths.index("/wall")
    np.testing.assert_allclose(out["motion"].numpy()[0][wall], np.broadcast_to((-2.5, 0.0), (wall.sum(), 2)), atol=1e-5)
    with pytest.raises(ArgumentError, match="previous_camera_transforms"):
        sensor.update(None, out, previous_camera_transforms=wp.zeros(2, dtype=wp.transformf, device=device))
    with pytest.raises(ArgumentError, match="previous is a"):
        sensor.update(None, out, previous=robot.state().body_q)


# -- planes, files ------------------------------------------------------------------------------------------------------------


def test_one_pixel_a_thread_gives_the_same_bits(monkeypatch):
    """The kernel CUDA runs, on the CPU, where everything moves."""
    stage = new_stage({0: (0, 0, 0), 1: (0.1, 0.1, 0)})
    add_quad(stage, keys={0: [(-9, -9, -5), (9, -9, -5), (9, 9, -5), (-9, 9, -5)], 1: [(-9, -9, -5), (9, -9, -6), (9, 8, -5), (-9, 9, -5)]})
    for i in range(5):
        ball = UsdGeom.Sphere.Define(stage, f"/ball_{i}")
        ball.CreateRadiusAttr(0.3)
        ball.AddTranslateOp().Set(Gf.Vec3d(-2 + i, 0, -4), 0)
        ball.GetOrderedXformOps()[0].Set(Gf.Vec3d(-2 + i, 0.1 * i, -4), 1)
    many = render(stage, "cpu")["motion"]
    monkeypatch.setattr("hdwarp.aovs.resolve.lane_count", lambda device: 1)
    assert np.array_equal(render(stage, "cpu")["motion"], many)
    assert np.abs(many).max() > 1


def test_misses_hold_the_clear_value_and_masked_views_keep_theirs(live):
    _, _, sensor, out = live
    sensor.update(None, out, clear={"motion": (3.0, -3.0)})
    motion, seen = out["motion"].numpy()[0], out["primId"].numpy()[0] >= 0
    assert not seen.all() and np.all(motion[~seen] == (3.0, -3.0)) and np.all(motion[seen] == 0.0)


def test_the_frame_before_is_one_frame_before(device):
    """None: timeCodesPerSecond / framesPerSecond time codes before; ``previous`` says otherwise; the default time has none before it."""
    stage = new_stage({0: (0, 0, 0), 10: (2.0, 0, 0)})
    add_quad(stage)
    assert render(stage, device, 5)["motion"][0, 0] == pytest.approx([-5.0, 0.0], abs=1e-5)
    assert render(stage, device, 5, previous=3)["motion"][0, 0] == pytest.approx([-10.0, 0.0], abs=1e-5)
    assert np.all(render(stage, device, 5, previous=5)["motion"] == 0.0)
    assert np.all(render(stage, device, Usd.TimeCode.Default())["motion"] == 0.0)
    assert np.all(render(stage, device, 0)["motion"] == 0.0)
    stage.SetTimeCodesPerSecond(48)
    assert render(stage, device, 5)["motion"][0, 0] == pytest.approx([-10.0, 0.0], abs=1e-5)


def test_omniverse_points_to_where_the_point_was():
    """TargetMotionSD: four channels of which two count; positive where the point went left or up."""
    aov, conversion = resolve_var("TargetMotionSD")
    assert aov == "motion"
    pixels = np.array([[[-10.0, 4.0]]], np.float32)
    assert conversion.apply(pixels).tolist() == [[[10.0, -4.0, 0.0, 0.0]]]
