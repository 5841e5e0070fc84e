"""Real stages and the shared cases: nothing raises, what USD says is drawn is drawn, and it lies where USD says it does."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Usd, UsdGeom, UsdShade, UsdSkel

from hdwarp.stage.columns import StageColumns
from hdwarp.stage.open import open_stage, resolve_time
from hdwarp.stage.reader import read_stage

SUPPORTED = ("Mesh", "Sphere", "Cube")
CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def stage_files(shared) -> list:
    found = sorted((shared / "cases").glob("*.usda"))
    return found + sorted(path for suffix in ("usd", "usda", "usdc", "usdz") for path in (shared / "assets").rglob(f"*.{suffix}"))


def read(path) -> tuple[Usd.Stage, Usd.TimeCode, StageColumns]:
    stage = open_stage(path)
    time = resolve_time(stage, None)
    return stage, time, read_stage(stage, time)


def test_no_stage_raises_and_all_columns_are_sound(shared):
    files = stage_files(shared)
    assert len(files) > 50
    for path in files:
        _, _, columns = read(path)
        assert [gprim.path for gprim in columns.gprims] == sorted(gprim.path for gprim in columns.gprims)
        for mesh in columns.meshes:
            assert np.isfinite(mesh.points).all()
            assert mesh.triangle_points.min() >= 0
            assert mesh.triangle_points.max() < (mesh.corner_count if mesh.pieces is not None else len(mesh.points))
            assert (np.diff(mesh.triangle_face) >= 0).all()
            assert mesh.triangle_corners.max() < mesh.corner_count
        for gprim in columns.gprims:
            assert np.isfinite(gprim.transforms).all()
            assert (gprim.mesh is not None) == gprim.kind.has_geometry
            assert {gprim.material, *gprim.subset_materials} <= {"", *(material.path for material in columns.materials)}
            assert gprim.body in {"", *(body.path for body in columns.bodies)}


def replaced(prim: Usd.Prim, rows: dict) -> bool:
    """Whether a model above is drawn in another mode."""
    while prim and str(prim.GetPath()) not in rows:
        prim = prim.GetParent()
    return bool(prim) and UsdGeom.ModelAPI(prim).ComputeModelDrawMode() != "default"


def test_every_stage_agrees_with_usd_prim_by_prim(shared):
    """Presence, purpose, world bounds and material of every supported gprim outside point instancers."""
    checked = 0
    for path in stage_files(shared):
        stage, time, columns = read(path)
        rows = {gprim.path: gprim for gprim in columns.gprims if gprim.instancer is None}
        told = {item.path for item in columns.diagnostics}
        xforms = UsdGeom.XformCache(time)
        walk = iter(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)))
        for prim in walk:
            if prim.IsA(UsdGeom.PointInstancer):
                walk.PruneChildren()
            if prim.GetTypeName() not in SUPPORTED:
                continue
            name, imageable = str(prim.GetPath()), UsdGeom.Imageable(prim)
            purpose = imageable.ComputePurpose()
            drawn = imageable.ComputeVisibility(time) != "invisible" and purpose in ("default", "render")
            if name not in rows:
                assert not drawn or name in told or replaced(prim, rows), (path, name)
                continue
            assert drawn, (path, name)
            checked += 1
            row = rows[name]
            assert row.purpose == purpose
            material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("full")
            assert row.material == (str(material.GetPath()) if material else "")
            if prim.IsA(UsdGeom.Mesh):
                points = np.asarray(UsdGeom.Mesh(prim).GetPointsAttr().Get(time), np.float64)
                ours = row.mesh.points
                if UsdSkel.Root.Find(prim):  # deformed: test_skinning compares those with what USD bakes
                    continue
            else:
                size = (
                    UsdGeom.Sphere(prim).GetRadiusAttr().Get(time)
                    if prim.IsA(UsdGeom.Sphere)
                    else UsdGeom.Cube(prim).GetSizeAttr().Get(time) / 2
                )
                points, ours = CUBE * size, CUBE
            world = np.array(xforms.GetLocalToWorldTransform(prim))
            expected = (np.c_[points, np.ones(len(points))] @ world)[:, :3] * columns.metres_per_unit
            got = ours @ row.transforms[0][:3, :3].T + row.transforms[0][:3, 3]
            if np.isfinite(points).all():
                assert got == pytest.approx(expected, rel=1e-5, abs=1e-5 * max(1.0, np.abs(expected).max()))
    assert checked > 200


# Stages of supported types only, whose extents USD computes from the geometry itself.
WHOLE = [
    "openusd/pxr/usdImaging/usdImagingGL/testenv/testUsdImagingGLPointInstancer/pi_pi_time.usda",
    "openusd/pxr/usdImaging/usdImagingGL/testenv/testUsdImagingGLPointInstancer/pi_masking.usda",
    "openusd/pxr/usdImaging/usdImagingGL/testenv/testUsdImagingGLInstancing/nestedInstancedCubes.usda",
    "openusd/pxr/usdImaging/usdImagingGL/testenv/testUsdImagingGLInstancing/pi_ni_xform.usda",
]


@pytest.mark.parametrize("name", WHOLE)
def test_world_bounds_of_instancers(shared, name):
    """Nested point instancers, masks, native instances below them: the box around all of it is the one of BBoxCache, turned cubes
    included (corner points of each instance against boxes of boxes: ours can only be inside, and meets it within the turn's slack)."""
    stage, time, columns = read(shared / "assets" / name)
    box = UsdGeom.BBoxCache(time, ["default", "render"]).ComputeWorldBound(stage.GetPseudoRoot()).ComputeAlignedRange()
    corners = (
        np.concatenate([CUBE @ m[:3, :3].T + m[:3, 3] for gprim in columns.gprims for m in gprim.transforms]) / columns.metres_per_unit
    )
    low, high = np.array(box.GetMin()), np.array(box.GetMax())
    slack = 1e-3 * (high - low).max()
    assert (corners.min(axis=0) >= low - slack).all()
    assert (corners.max(axis=0) <= high + slack).all()
    assert corners.min(axis=0) == pytest.approx(low, abs=0.05 * (high - low).max())
    assert corners.max(axis=0) == pytest.approx(high, abs=0.05 * (high - low).max())


def test_case_07_reset(shared):
    _, _, columns = read(shared / "cases" / "07_reset_xform_stack.usda")
    assert columns.gprims[0].transforms[0, :3, 3].tolist() == [0, 0, 0]
    assert columns.cameras[0].world_from_camera[:3, 3].tolist() == [0, 0, 10]


def test_case_09_invisible_ids(shared):
    _, _, columns = read(shared / "cases" / "09_invisible_ids.usda")
    row = columns.gprims[0]
    assert row.instance_ids.tolist() == [0, 1, 2]
    assert row.instancer.ids[row.instance_ids].tolist() == [10, 0, 7]
    assert row.transforms[:, 0, 3].tolist() == [-3.5, -1.5, 0.5]
    assert row.transforms[0, 0, 0] == 0.45


@pytest.mark.parametrize(
    ("purposes", "count"),
    [(("default", "render"), 2), (("default",), 1), (("default", "render", "proxy"), 3), (("default", "render", "proxy", "guide"), 4)],
)
def test_case_10_purpose(shared, purposes, count):
    stage = open_stage(shared / "cases" / "10_purpose.usda")
    assert len(read_stage(stage, resolve_time(stage, None), purposes=purposes).gprims) == count


def test_case_11_bad_points(shared):
    _, _, columns = read(shared / "cases" / "11_nan_point.usda")
    assert [gprim.path for gprim in columns.gprims] == ["/World/BrokenBehindCamera", "/World/Wall"]
    assert columns.gprims[0].mesh.triangle_face.tolist() == [0]


def test_case_12_subsets(shared):
    _, _, columns = read(shared / "cases" / "12_geomsubset_uncovered.usda")
    grid = columns.gprims[0]
    color = {material.path: material.diffuse_color for material in columns.materials}
    colors = [color[m] for m in (grid.subset_materials[0], grid.material, grid.material, grid.subset_materials[1])]
    assert colors == [(1, 0, 0), (0, 1, 0), (0, 1, 0), (0, 0, 1)]
    assert grid.mesh.face_subset.tolist() == [0, -1, -1, 1]
