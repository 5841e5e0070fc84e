"""Stages for tests of worlds: an environment with bodies, cameras that they carry, and what stands still in it."""

from __future__ import annotations

import numpy as np
import warp as wp
from pxr import Gf, Usd, UsdGeom, UsdLux, UsdPhysics

import hdwarp

AOVS = ("color", "distance_to_image_plane", "normal", "Ngeom", "primId", "instanceId", "elementId", "triangleId", "barycentric")
AOVS = (*AOVS, "materialId", "bodyId", "worldId", "primvars:displayColor")


def empty_stage(up: str = "Z", metres: float = 1.0) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, up)
    UsdGeom.SetStageMetersPerUnit(stage, metres)
    stage.DefinePrim("/World", "Xform")
    return stage


def add_ground(stage: Usd.Stage, size: float = 60.0) -> None:
    """A square of triangles at height 0, global."""
    ground = UsdGeom.Mesh.Define(stage, "/World/ground")
    ground.CreatePointsAttr([(-size, -size, 0), (size, -size, 0), (size, size, 0), (-size, size, 0)])
    ground.CreateFaceVertexCountsAttr([4])
    ground.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    ground.CreateDisplayColorAttr([(0.4, 0.4, 0.4)])


def add_overview(stage: Usd.Stage, height: float = 9.0) -> None:
    camera = UsdGeom.Camera.Define(stage, "/World/overview")
    camera.AddTranslateOp().Set(Gf.Vec3d(0, 0, height))
    camera.CreateClippingRangeAttr(Gf.Vec2f(0.01, 100))


def camera(stage: Usd.Stage, path: str, at=(0, 0, 0), focal: float = 18.0) -> UsdGeom.Camera:
    prim = UsdGeom.Camera.Define(stage, path)
    prim.AddTranslateOp().Set(Gf.Vec3d(*at))
    prim.CreateFocalLengthAttr(focal)
    prim.CreateHorizontalApertureAttr(24.0)
    prim.CreateVerticalApertureAttr(18.0)
    prim.CreateClippingRangeAttr(Gf.Vec2f(0.01, 100))
    return prim


def body(stage: Usd.Stage, path: str, at=(0, 0, 0)) -> str:
    xform = UsdGeom.Xform.Define(stage, path)
    xform.AddTranslateOp().Set(Gf.Vec3d(*at))
    UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
    return path


def add_environment(stage: Usd.Stage, root: str, *, at=(0.0, 0.0, 0.0), turn: float = 0.0, cameras: bool = True, seed: int = 0) -> None:
    """A table and a lamp that stand still, a robot of two bodies with a wrist camera, a fixed camera above, a site and a light."""
    rng = np.random.default_rng(seed)
    prim = UsdGeom.Xform.Define(stage, root)
    prim.AddTranslateOp().Set(Gf.Vec3d(*at))
    if turn:
        prim.AddRotateZOp().Set(turn)
    table = UsdGeom.Mesh.Define(stage, f"{root}/table")
    points = np.array([(-0.5, -0.4, 0.3), (0.5, -0.4, 0.3), (0.5, 0.4, 0.3), (-0.5, 0.4, 0.3), (0, 0, 0.45)]) + rng.normal(0, 0.02, (5, 3))
    table.CreatePointsAttr(points.astype(np.float32))
    table.CreateFaceVertexCountsAttr([3, 3, 3, 3])
    table.CreateFaceVertexIndicesAttr([0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4])
    table.CreateDisplayColorAttr([tuple(rng.uniform(0.1, 1, 3).tolist())])
    lamp = UsdGeom.Sphere.Define(stage, f"{root}/lamp")
    lamp.CreateRadiusAttr(0.15)
    lamp.AddTranslateOp().Set(Gf.Vec3d(0.7, 0.5, 0.2))
    base = body(stage, f"{root}/robot", (-0.3, 0.1, 0.6))
    UsdGeom.Cube.Define(stage, f"{base}/frame/cube").CreateSizeAttr(0.25)
    UsdGeom.Xformable(stage.DefinePrim(f"{base}/frame", "Xform")).AddRotateXYZOp().Set(Gf.Vec3f(10, 20, 30))
    hand = body(stage, f"{base}/hand", (0.5, 0.0, 0.1))
    capsule = UsdGeom.Capsule.Define(stage, f"{hand}/finger")
    capsule.CreateRadiusAttr(0.05)
    capsule.CreateHeightAttr(0.2)
    if cameras:
        camera(stage, f"{hand}/wrist", (0.0, 0.0, 1.4))
        camera(stage, f"{root}/above", (0.1, 0.0, 3.0))
    site = UsdGeom.Xform.Define(stage, f"{hand}/tip")
    site.AddTranslateOp().Set(Gf.Vec3d(0, 0, 0.1))
    site.GetPrim().AddAppliedSchema("HdWarpSiteAPI")
    light = UsdLux.SphereLight.Define(stage, f"{root}/light")
    light.AddTranslateOp().Set(Gf.Vec3d(0, 1, 2))


def random_poses(scene: hdwarp.Scene, seed: int) -> np.ndarray:
    """(bodies, 7) float32: the stage's poses, each moved and turned a little in its own way."""
    rng, pose = np.random.default_rng(seed), scene.bodies.pose.copy()
    pose[:, :3] += rng.uniform(-0.2, 0.2, (len(pose), 3))
    turn = np.concatenate([rng.normal(0, 0.2, (len(pose), 3)), np.ones((len(pose), 1))], axis=1)
    pose[:, 3:] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    return pose.astype(np.float32)


def state_of(scene: hdwarp.Scene, pose: np.ndarray):
    state = scene.state()
    state.body_q.assign(wp.array(pose, dtype=wp.transformf, device=scene.device))
    return state


def pictures(scene: hdwarp.Scene, state=None, cameras="*", aovs=AOVS, size=(40, 30), **options) -> tuple[hdwarp.SensorCamera, dict]:
    """(sensor, planes as NumPy arrays (view, H, W[, C]))."""
    sensor = hdwarp.SensorCamera(scene, cameras=cameras, resolution=size, **options)
    out = sensor.allocate(aovs)
    sensor.update(state, out)
    return sensor, {name: array.numpy() for name, array in out.items()}
