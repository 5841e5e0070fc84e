"""Sheets of cloth for tests of points and primvars that a caller sets, and pictures of them."""

from __future__ import annotations

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, Vt

import hdwarp

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
