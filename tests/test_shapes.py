"""Shapes rendered from USD against float64 closed forms, MuJoCo's rays, fine meshes in Open3D, and their own neighbourhood."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom

import hdwarp

_spec = importlib.util.spec_from_file_location("hdwarp_test_shape_forms", Path(__file__).with_name("shape_forms.py"))
forms = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(forms)

SIZES = {
    "Sphere": {"radius": 0.7},
    "Cube": {"size": 1.3},
    "Cylinder": {"radius": 0.6, "height": 1.5},
    "Cylinder_1": {"radiusTop": 0.3, "radiusBottom": 0.7, "height": 1.4},
    "Cone": {"radius": 0.8, "height": 1.6},
    "Capsule": {"radius": 0.4, "height": 1.1},
    "Capsule_1": {"radiusTop": 0.2, "radiusBottom": 0.5, "height": 0.9},
    "Plane": {"width": 1.7, "length": 1.2},
}
AOVS = ("distance_to_image_plane", "Ngeom", "barycentric", "elementId", "triangleId", "primId")
PLANE = "distance_to_image_plane"


def axes_of(type_name: str, axis: str) -> np.ndarray:
    return np.eye(3) if type_name in ("Sphere", "Cube") else (forms.PLANE_AXES if type_name == "Plane" else forms.AXES)[axis]


def place(prim: Usd.Prim, linear, translation) -> None:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[3, :3] = np.asarray(linear).T, translation
    UsdGeom.Xformable(prim).AddTransformOp().Set(Gf.Matrix4d(*matrix.ravel().tolist()))


def add(stage: Usd.Stage, type_name: str, linear=None, translation=(0, 0, 0), *, axis="Z", path="/x", **values) -> Usd.Prim:
    prim = stage.DefinePrim(path, type_name)
    for name, value in values.items():
        prim.GetAttribute(name).Set(value)
    if type_name not in ("Sphere", "Cube"):
        prim.GetAttribute("axis").Set(axis)
    place(prim, np.eye(3) if linear is None else linear, translation)
    return prim


def stage_with_camera(turn, eye, *, orthographic=False, near=0.01, width=64, height=48, opening=0.8) -> Usd.Stage:
    """``opening``: half the picture's width over distance, or in metres."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    camera = UsdGeom.Camera.Define(stage, "/camera")
    camera.CreateProjectionAttr("orthographic" if orthographic else "perspective")
    camera.CreateFocalLengthAttr(10.0)
    camera.CreateHorizontalApertureAttr(20.0 * opening)
    camera.CreateVerticalApertureAttr(20.0 * opening * height / width)
    camera.CreateClippingRangeAttr(Gf.Vec2f(near, 1e6))
    place(camera.GetPrim(), turn, eye)
    return stage


def rays(turn, eye, *, orthographic=False, width=64, height=48, opening=0.8) -> tuple[np.ndarray, np.ndarray]:
    """(h, w, 3) origins and directions, depth 1 along the view, at pixel centres."""
    y, x = np.mgrid[:height, :width] + 0.5
    step = 2 * opening / width
    across = np.stack([(x - width / 2) * step, (height / 2 - y) * step, 0 * x], -1)
    ahead = np.broadcast_to([0.0, 0.0, -1.0], across.shape)
    if orthographic:
        return eye + across @ turn.T, ahead @ turn.T
    return np.broadcast_to(eye, across.shape).astype(float), (across + ahead) @ turn.T


def rotation(rng) -> np.ndarray:
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def tilted(rng) -> np.ndarray:
    """A rotation by half a radian about a random axis."""
    x, y, z = (lambda v: v / np.linalg.norm(v))(rng.normal(size=3))
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(0.5) * k + (1 - np.cos(0.5)) * k @ k


def random_affine(rng, mirrored: bool) -> np.ndarray:
    return rotation(rng) @ np.diag(rng.uniform(0.5, 1.5, 3)) @ rotation(rng) @ np.diag([-1.0 if mirrored else 1.0, 1, 1])


def render(stage, device, aovs=AOVS, width=64, height=48, **options):
    return hdwarp.render(stage, "/camera", resolution=(width, height), aovs=list(aovs), device=device, **options)


@pytest.mark.parametrize("type_name", SIZES)
@pytest.mark.parametrize("orthographic", [False, True])
def test_depth_and_normals_in_closed_form(type_name, orthographic, device):
    """Random affine maps, every axis, half of them mirrored: depth to 1e-5, 1e-4 at grazing angles; normals as authored, outward."""
    rng = np.random.default_rng(3)
    for turn_number in range(6):
        axis = "XYZ"[turn_number % 3]
        linear, translation = random_affine(rng, bool(turn_number % 2)), rng.uniform(-0.2, 0.2, 3)
        turn = rotation(rng)
        eye = turn[:, 2] * 3.0
        options = {"orthographic": orthographic, "opening": 1.5 if orthographic else 0.5}
        stage = stage_with_camera(turn, eye, **options)
        add(stage, type_name, linear, translation, axis=axis, **SIZES[type_name])
        frame = render(stage, device)
        world = linear @ axes_of(type_name, axis)
        parts = forms.surfaces(type_name, **SIZES[type_name])
        expected = forms.first(parts, world, translation, *rays(turn, eye, **options), near=0.01)
        sure, hit = ~expected.unsure, np.isfinite(expected.t)
        assert expected.unsure.mean() < 0.03
        seen = frame["primId"] >= 0
        assert hit.mean() > 0.03
        assert np.array_equal(seen[sure], hit[sure])
        both = seen & hit & sure
        depth = frame[PLANE][both]
        error = np.abs(depth / expected.t[both] - 1)
        assert error[expected.grazing[both] > 0.1].max() < 1e-5
        assert error.max() < 1e-4
        near = np.abs(frame["Ngeom"][both] - expected.normal[both]).max(axis=-1)
        assert np.median(near) < 1e-6
        assert near.max() < 2e-3  # where curvature is high the last bits of the point show
        assert (frame["elementId"][seen] == 0).all()
        assert (frame["triangleId"] == -1).all()


@pytest.mark.parametrize("type_name", [name for name in SIZES if name != "Plane"])
def test_a_camera_inside_sees_the_inside(type_name, device):
    """Every ray hits, at the closed form's depth; normals still point outward; culled, nothing is seen; clipped fronts show the backs."""
    rng = np.random.default_rng(5)
    linear, turn = random_affine(rng, True), rotation(rng)
    eye = np.array([0.01, -0.02, 0.03])
    stage = stage_with_camera(turn, eye, opening=1.2, near=1e-3)
    add(stage, type_name, linear, axis="Y", **SIZES[type_name])
    frame = render(stage, device)
    parts = forms.surfaces(type_name, **SIZES[type_name])
    expected = forms.first(parts, linear @ axes_of(type_name, "Y"), np.zeros(3), *rays(turn, eye, opening=1.2), near=1e-3)
    assert (frame["primId"] == 0).all()
    sure = ~expected.unsure
    np.testing.assert_allclose(frame[PLANE][sure], expected.t[sure], rtol=1e-5)
    np.testing.assert_allclose(frame["Ngeom"][sure], expected.normal[sure], atol=2e-5)
    _, direction = rays(turn, eye, opening=1.2)
    assert ((frame["Ngeom"] * direction).sum(-1) > 0).mean() > 0.99
    culled = render(stage, device, settings=hdwarp.RenderSettings(cull=True))
    assert (culled["primId"] == -1).all()
    outside = turn[:, 2] * 3
    stage = stage_with_camera(turn, outside, opening=0.5, near=3.0)
    add(stage, type_name, linear, axis="Y", **SIZES[type_name])
    frame = render(stage, device)
    expected = forms.first(parts, linear @ axes_of(type_name, "Y"), np.zeros(3), *rays(turn, outside, opening=0.5), near=3.0)
    sure, hit = ~expected.unsure, np.isfinite(expected.t)
    assert np.array_equal((frame["primId"] >= 0)[sure], hit[sure])
    both = sure & hit
    assert (~expected.entering[both]).any()
    np.testing.assert_allclose(frame[PLANE][both], expected.t[both], rtol=1e-5)


def test_planes_are_seen_from_behind_unless_culled(device):
    """doubleSided falls back to true on planes: culling leaves them alone, until false is authored."""
    turn = np.diag([-1.0, 1.0, -1.0])  # looks along +z from below
    for authored, seen in ((None, True), (False, False)):
        stage = stage_with_camera(turn, (0, 0, -2), opening=0.2)
        prim = add(stage, "Plane")
        if authored is not None:
            UsdGeom.Gprim(prim).GetDoubleSidedAttr().Set(authored)
        frame = render(stage, device, settings=hdwarp.RenderSettings(cull=True))
        assert (frame["primId"] >= 0).all() == seen
        assert (render(stage, device)["primId"] >= 0).all()


@pytest.mark.parametrize("type_name", SIZES)
def test_normals_are_gradients_of_depth(type_name, device):
    """The tangent between neighbouring hits is perpendicular to the normal half-way: finite differences of the points themselves."""
    rng = np.random.default_rng(8)
    linear, turn = random_affine(rng, True), rotation(rng)
    stage = stage_with_camera(turn, turn[:, 2] * 3, opening=0.5, width=256, height=256)
    add(stage, type_name, linear, axis="X", **SIZES[type_name])
    frame = render(stage, device, aovs=("Ngeom", "position", "primId"), width=256, height=256)
    points, normals, seen = frame["position"].astype(float), frame["Ngeom"].astype(float), frame["primId"] >= 0
    for axis in (0, 1):
        one, other = (slice(None, -1), slice(1, None))
        a = (one, slice(None)) if axis == 0 else (slice(None), one)
        b = (other, slice(None)) if axis == 0 else (slice(None), other)
        smooth = seen[a] & seen[b] & ((normals[a] * normals[b]).sum(-1) > 0.995)  # no edge between
        with np.errstate(invalid="ignore"):
            step = points[b] - points[a]
            length = np.linalg.norm(step, axis=-1)
            slope = np.abs((step * (normals[a] + normals[b])).sum(-1)) / 2 / length
        assert smooth.sum() > 500
        assert np.quantile(slope[smooth], 0.99) < 3e-3  # curvature jumps where a cap begins
        assert np.median(slope[smooth]) < 1e-4


@pytest.mark.parametrize("type_name", SIZES)
def test_parameters_run_over_the_surface(type_name, device):
    """(s, t) lie in [0, 1]; between neighbouring pixels they change little, but for s at its seam and about the axis, and on a
    cube's edges."""
    rng = np.random.default_rng(9)
    turn = rotation(rng)
    stage = stage_with_camera(turn, turn[:, 2] * 3, opening=0.4, width=400, height=400)
    add(stage, type_name, axis="Z", **SIZES[type_name])
    frame = render(stage, device, aovs=("barycentric", "Ngeom", "primId", "position"), width=400, height=400)
    st, seen = frame["barycentric"].astype(float), frame["primId"] >= 0
    assert (st[seen] >= 0).all()
    assert (st[seen] <= 1).all()
    if type_name == "Cube":
        return
    reach = np.hypot(frame["position"][..., 0], frame["position"][..., 1])
    facing = np.abs((frame["Ngeom"] * turn[:, 2]).sum(-1))
    for one, other in ((np.s_[:-1], np.s_[1:]), (np.s_[:, :-1], np.s_[:, 1:])):
        pair = seen[one] & seen[other] & (np.minimum(facing[one], facing[other]) > 0.25)
        with np.errstate(invalid="ignore"):
            pair &= np.abs(frame["position"][one] - frame["position"][other]).max(axis=-1) < 0.05  # no silhouette between
        along, around = np.abs(st[one] - st[other])[..., 1], np.abs(st[one] - st[other])[..., 0]
        assert along[pair].max() < 0.03
        around = around if type_name == "Plane" else np.minimum(around, 1 - around)
        assert around[pair & (reach[one] > 0.1)].max() < 0.1


def test_parameters_where_they_are_known(device):
    """Looking straight down on a cylinder: in the middle t = 1, half-way to the rim 1 - 1/8; s from +x to +y. From the side t = 1/2."""
    stage = stage_with_camera(np.eye(3), (0, 0, 3.0), orthographic=True, opening=1.0, width=64, height=64)
    add(stage, "Cylinder", radius=1.0, height=2.0)
    st = render(stage, device, aovs=("barycentric",), width=64, height=64)["barycentric"]
    assert st[31, 32, 1] == pytest.approx(1 - 0.25 * np.hypot(0.5, 0.5) / 32, abs=1e-6)
    assert st[31, 48, 1] == pytest.approx(1 - 0.25 * np.hypot(16.5, 0.5) / 32, abs=1e-6)
    assert st[16, 31, 0] == pytest.approx(np.arctan2(15.5, -0.5) / (2 * np.pi), abs=1e-6)
    turn = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # along -x, up is z
    for type_name in ("Cylinder", "Capsule", "Cone"):
        stage = stage_with_camera(turn, (3.0, 0, 0), orthographic=True, opening=1.0, width=65, height=65)
        add(stage, type_name)
        st = render(stage, device, aovs=("barycentric",), width=65, height=65)["barycentric"]
        assert st[32, 32] == pytest.approx((0, 0.5), abs=1e-6)
        if type_name != "Capsule":
            assert st[52, 32, 1] == pytest.approx(0.5 - 0.25 * 20 * 2 / 65, abs=1e-6)
    stage = stage_with_camera(np.eye(3), (0, 0, 3.0), orthographic=True, opening=1.0, width=64, height=32)
    add(stage, "Plane", width=2.0, length=1.0)
    st = render(stage, device, aovs=("barycentric",), width=64, height=32)["barycentric"]
    assert st[16, 0] == pytest.approx((0.5 / 64, 0.5 - 0.5 / 32), abs=1e-6)


def test_an_endless_plane_to_the_horizon_and_beyond_a_kilometre(device):
    """1 m above ground: depth is fy / (row - horizon), exact at every row, the last of them 48 km away; (s, t) go on past 1."""
    turn = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # looks along +y
    width, height, opening = 8, 2000, 0.0001
    stage = stage_with_camera(turn, (0, 0, 1.0), opening=opening * width / height, width=width, height=height)
    prim = add(stage, "Plane", width=2.0, length=4.0)
    prim.CreateAttribute("hdwarp:infinite", Sdf.ValueTypeNames.Bool).Set(True)
    frame = render(stage, device, aovs=(PLANE, "barycentric", "position", "Ngeom"), width=width, height=height)
    depth = frame[PLANE]
    below = (np.arange(height) + 0.5 - height / 2)[:, None] * 2 * opening / height
    wanted = np.broadcast_to(1 / np.maximum(below, 1e-300), depth.shape)
    seen = (below > 0) & (wanted < 1e6)
    assert np.isinf(depth[np.broadcast_to(below < 0, depth.shape)]).all()
    assert np.array_equal(np.isfinite(depth), seen)
    assert wanted[seen].min() > 1000
    np.testing.assert_allclose(depth[seen], wanted[seen], rtol=1e-4)  # tilted by nothing, though the rays graze at 1e-7
    np.testing.assert_allclose(frame["barycentric"][seen][:, 1], 0.5 + frame["position"][seen][:, 1] / 4, rtol=1e-5)
    assert np.abs(frame["position"][seen][:, 2]).max() < 1e-3
    np.testing.assert_allclose(frame["Ngeom"][seen], np.broadcast_to((0.0, 0.0, 1.0), (seen.sum(), 3)), atol=1e-7)


def test_edits_instances_and_bodies(device):
    """A capsule drawn by a point instancer and one carried by a body; a radius edited and read again: only its row changes."""
    stage = stage_with_camera(np.eye(3), (0, 0, 10.0), opening=0.5)
    body = stage.DefinePrim("/body", "Xform")
    body.ApplyAPI("PhysicsRigidBodyAPI")
    place(body, np.eye(3), (0, -2.0, 0))
    capsule = add(stage, "Capsule_1", axis="Y", path="/body/capsule", radiusTop=0.2, radiusBottom=0.5)
    instancer = UsdGeom.PointInstancer.Define(stage, "/many")
    add(stage, "Cylinder", path="/many/proto", radius=0.5, axis="X")
    instancer.CreatePrototypesRel().SetTargets(["/many/proto"])
    instancer.CreateProtoIndicesAttr([0, 0])
    instancer.CreatePositionsAttr([(-2, 1, 0), (2, 1, 0)])
    scene = hdwarp.Scene(stage, device=device)
    camera = hdwarp.SensorCamera(scene, cameras="/camera", resolution=(64, 48))
    state, out = scene.state(), camera.allocate([PLANE, "primId", "instanceId"])
    camera.update(state, out)
    assert set(np.unique(out["instanceId"].numpy())) == {-1, 0, 1}
    ids = out["primId"].numpy()[0]
    assert scene.prim_path(int(ids[37, 32])) == "/body/capsule"
    assert out[PLANE].numpy()[0][37, 32] == pytest.approx(10 - 0.35, abs=0.03)
    capsule.GetAttribute("radiusBottom").Set(0.8)
    capsule.GetAttribute("radiusTop").Set(0.8)
    scene.sync()
    camera.update(scene.state(), out)
    assert out[PLANE].numpy()[0][37, 32] == pytest.approx(10 - 0.8, abs=0.03)
    assert scene.tables.instances.columns().shape.numpy()[scene.index.gprim_rows[scene.index.gprim_order[0]]][1] == 1.0


def test_a_plane_edge_on_is_not_seen(device):
    """Along the surface: no hit, of either kind, in either projection, and what is behind it is seen."""
    turn = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # looks along +y
    for orthographic in (False, True):
        for endless in (False, True):
            stage = stage_with_camera(turn, (0, -5.0, 0), orthographic=orthographic, width=15, height=15, opening=0.2)
            prim = add(stage, "Plane")
            prim.CreateAttribute("hdwarp:infinite", Sdf.ValueTypeNames.Bool).Set(endless)
            add(stage, "Cube", translation=(0, 6, 0), path="/z", size=4.0)
            frame = render(stage, device, width=15, height=15)
            assert (frame["primId"][7] == 1).all()
            np.testing.assert_allclose(frame[PLANE][7], 9.0, rtol=1e-6)


MUJOCO = {
    "Sphere": ("sphere", (0.7,)),
    "Cube": ("box", (0.65, 0.65, 0.65)),
    "Cylinder": ("cylinder", (0.6, 0.75)),
    "Capsule": ("capsule", (0.4, 0.55)),
    "Plane": ("plane", (0.85, 0.6, 0.1)),
    "Ellipsoid": ("ellipsoid", (0.3, 0.5, 0.8)),
}


@pytest.mark.parametrize("name", MUJOCO)
def test_the_rays_of_mujoco(name, device):
    """`mj_ray` on the same shape and pose, inside and outside."""
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
    rng = np.random.default_rng(12)
    geom, size = MUJOCO[name]
    for distance in (2.5, 0.05) if name not in ("Plane", "Cube") else (2.5,):
        linear, translation, turn = rotation(rng), rng.uniform(-0.1, 0.1, 3), rotation(rng)
        eye = turn[:, 2] * distance
        if name == "Plane":
            eye *= np.sign((eye - translation) @ linear[:, 2])
            turn = turn * np.sign(turn[:, 2] @ eye)  # MuJoCo sees planes from the front only
            turn[:, 0] *= np.sign(np.linalg.det(turn))
        w, x, y, z = quaternion(linear)
        pose = f'pos="{" ".join(map(str, translation))}" quat="{w} {x} {y} {z}"'
        geometry = f'<geom type="{geom}" size="{" ".join(map(str, size))}" {pose}/>'
        model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geometry}</worldbody></mujoco>")
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        stage = stage_with_camera(turn, eye, opening=0.5, width=24, height=24, near=1e-3)
        scaled = linear @ np.diag(size) if name == "Ellipsoid" else linear
        values = {"radius": 1.0} if name == "Ellipsoid" else SIZES[name]
        add(stage, "Sphere" if name == "Ellipsoid" else name, scaled, translation, **values)
        depth = render(stage, device, aovs=(PLANE,), width=24, height=24)[PLANE]
        origin, direction = rays(turn, eye, opening=0.5, width=24, height=24)
        wanted, found = np.full(depth.shape, np.inf), np.zeros(1, np.int32)
        for index in np.ndindex(*depth.shape):
            length = np.linalg.norm(direction[index])
            t = mujoco.mj_ray(model, data, origin[index], direction[index] / length, None, 1, -1, found)
            wanted[index] = t / length if t >= 0 else np.inf
        hit = np.isfinite(wanted)
        assert hit.mean() > 0.05
        assert (np.isfinite(depth) != hit).mean() < 0.01
        both = hit & np.isfinite(depth)
        np.testing.assert_allclose(depth[both], wanted[both], rtol=1e-5)


def quaternion(m) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(m).as_quat(scalar_first=True)


@pytest.mark.parametrize("type_name", [name for name in SIZES if name not in ("Sphere", "Cube", "Plane")])
def test_a_fine_mesh_in_open3d(type_name, device, open3d):
    """A surface of revolution of 400 x 300 facets, seen by Embree: as near as its facets are to the shape."""
    rng = np.random.default_rng(2)
    linear, turn = random_affine(rng, False), rotation(rng)
    eye = turn[:, 2] * 3
    stage = stage_with_camera(turn, eye, opening=0.5)
    add(stage, type_name, linear, **SIZES[type_name])
    depth = render(stage, device, aovs=(PLANE,))[PLANE]
    points, triangles = revolved(profile(type_name, **SIZES[type_name]), 400)
    scene = open3d.t.geometry.RaycastingScene()
    scene.add_triangles(open3d.core.Tensor((points @ linear.T).astype(np.float32)), open3d.core.Tensor(triangles.astype(np.uint32)))
    origin, direction = rays(turn, eye, opening=0.5)
    wanted = scene.cast_rays(open3d.core.Tensor(np.concatenate([origin, direction], -1).astype(np.float32)))["t_hit"].numpy()
    hit = np.isfinite(wanted)
    assert hit.mean() > 0.03
    assert (np.isfinite(depth) != hit).mean() < 0.005
    both = hit & np.isfinite(depth)
    error = np.abs(depth[both] / wanted[both] - 1)
    assert np.median(error) < 5e-5
    assert np.quantile(error, 0.99) < 1e-3


def profile(type_name: str, *, height, radius=0.0, radiusTop=None, radiusBottom=None) -> np.ndarray:
    """(n, 2): distance from the axis and z, from the bottom up."""
    low, high = (radius if r is None else r for r in (radiusBottom, radiusTop))
    high = 0.0 if type_name == "Cone" else high
    side = np.stack([np.linspace(low, high, 100), np.linspace(-height / 2, height / 2, 100)], -1)
    if type_name in ("Cylinder", "Cylinder_1", "Cone"):
        return np.concatenate([[[0, -height / 2]], side, [[0, height / 2]]])
    k = (high - low) / height
    bottom, top = (np.hypot(1, k) * r for r in (low, high))
    joint = np.pi / 2 + np.arctan(k)  # angle of the side's normal from the axis
    up, down = np.linspace(np.pi, joint, 100), np.linspace(joint, 0, 100)
    return np.concatenate(
        [
            np.stack([bottom * np.sin(up), k * low - height / 2 + bottom * np.cos(up)], -1),
            side,
            np.stack([top * np.sin(down), k * high + height / 2 + top * np.cos(down)], -1),
        ]
    )


def revolved(outline: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    turn = np.linspace(0, 2 * np.pi, count, endpoint=False)
    points = np.stack(
        [np.outer(outline[:, 0], np.cos(turn)), np.outer(outline[:, 0], np.sin(turn)), np.repeat(outline[:, 1:], count, 1)], -1
    )
    i, j = (a.ravel() for a in np.mgrid[: len(outline) - 1, :count])
    a, b = i * count + j, i * count + (j + 1) % count
    return points.reshape(-1, 3), np.concatenate([np.stack([a, b, b + count], -1), np.stack([a, b + count, a + count], -1)])


@pytest.mark.parametrize("name", ["Sphere", "Cube", "Cylinder", "Capsule"])
@pytest.mark.parametrize("size", [1.0e6, 6.371e6])
def test_a_planet_as_ground(name, size, device):
    """1.7 m above a planet, a box of 2 m at 20 m: every id and, to float32, every distance those of the closed form; nothing sinks in."""
    turn = np.array([[1.0, 0, 0], [0, np.sin(0.09), -np.cos(0.09)], [0, np.cos(0.09), np.sin(0.09)]])  # looks along +y, 5 degrees down
    width, height, eye = 320, 240, np.array([0.0, 0.0, 1.7])
    stage = stage_with_camera(turn, eye, width=width, height=height, opening=0.5)
    add(stage, "Cube", translation=(0, 20, 1.0), path="/box", size=2.0)
    values = {"Sphere": {"radius": size}, "Cube": {"size": 2 * size}}.get(name, {"radius": size, "height": size})
    add(stage, name, translation=(0, 0, -size), path="/planet", axis="X", **values)
    frame = render(stage, device, ("primId", "distance_to_camera"), width, height)
    o, d = rays(turn, eye, width=width, height=height, opening=0.5)
    d = d / np.linalg.norm(d, axis=-1, keepdims=True)
    lower, upper = np.array([-1.0, 19.0, 0.0]) - o, np.array([1.0, 21.0, 2.0]) - o
    near, far = np.minimum(lower / d, upper / d).max(-1), np.maximum(lower / d, upper / d).min(-1)
    box = np.where(near <= far, near, np.inf)
    across = {"Sphere": d, "Cube": d[..., :0]}.get(name, d[..., 1:])
    a, b, c = (across**2).sum(-1), d[..., 2] * (size + 1.7), 1.7 * (2 * size + 1.7)
    with np.errstate(invalid="ignore", divide="ignore"):
        ground = np.where((b < 0) & (b * b >= a * c), c / (-b + np.sqrt(b * b - a * c)), np.inf)
        ground = np.where(d[..., 2] < 0, -1.7 / d[..., 2], np.inf) if name == "Cube" else ground
    t = np.minimum(box, ground)
    expected = np.where(np.isinf(t), -1, np.where(box < ground, 0, 1))
    with np.errstate(invalid="ignore"):
        unsure = (np.abs(box - ground) < 3e-7 * t) | (np.abs(b * b - a * c) < 1e-9 * b * b)  # keys are float32; the very horizon
    assert unsure.mean() < 1e-3
    assert [(expected == k).mean() > 0.01 for k in (-1, 0, 1)] == [True] * 3
    assert np.array_equal(frame["primId"][~unsure], expected[~unsure])
    np.testing.assert_allclose(frame["distance_to_camera"][~unsure], t[~unsure], rtol=2e-7)


@pytest.mark.parametrize("name", ["Sphere", "Cube", "Cylinder", "Cone", "Capsule"])
@pytest.mark.parametrize("scale", [1e-7, 1e-8, 1e-12])
def test_a_sheet_has_no_holes(name, scale, device):
    """Tilted, of radius 2, flattened to nothing, seen from 6 m: rim and depth are those of its middle plane."""
    rng = np.random.default_rng(6)
    for _ in range(3):
        tilt = tilted(rng)
        stage = stage_with_camera(np.eye(3), (0, 0, 6.0), width=120, height=120, opening=0.45)
        values = {"size": 4.0} if name == "Cube" else {"radius": 2.0}
        add(stage, name, tilt @ np.diag([1.0, 1.0, scale]), axis="Z", **values)
        frame = render(stage, device, ("primId", PLANE), 120, 120)
        o, d = rays(np.eye(3), np.array([0, 0, 6.0]), width=120, height=120, opening=0.45)
        o, d = o @ tilt, d @ tilt
        t = -o[..., 2] / d[..., 2]
        x, y = (o + d * t[..., None])[..., :2].transpose(2, 0, 1)
        margin = 2.0 - (np.maximum(np.abs(x), np.abs(y)) if name == "Cube" else np.hypot(x, y))
        sure = np.abs(margin) > 1e-5
        assert np.array_equal((frame["primId"] >= 0)[sure], (margin > 0)[sure])
        seen = frame["primId"] >= 0
        np.testing.assert_allclose(frame[PLANE][seen], t[seen], rtol=1e-6)
