"""Primvars that a caller sets on the device: the pictures of a stage with these values authored."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, Vt
from tests.live.sheets import SIDE, add_sheet, assert_same, authored, deformed, new_stage, picture

import hdwarp


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
