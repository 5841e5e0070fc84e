"""A camera authored in USD and the same from `author.add_camera` are the same row, and the same values are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics

import hdwarp
from hdwarp.errors import ArgumentError

COLUMNS = ("transform", "axes", "body", "lens", "focal_length", "aperture", "aperture_offset", "clipping_range", "exposure")


def new_stage(metres: float, up: str) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, metres)
    UsdGeom.SetStageUpAxis(stage, up)
    robot = UsdGeom.Xform.Define(stage, "/robot")
    robot.AddTranslateOp().Set(Gf.Vec3d(0.5, 0.25, 1.0) / metres)
    robot.AddRotateYOp().Set(90.0)
    UsdPhysics.RigidBodyAPI.Apply(robot.GetPrim())
    UsdGeom.Xform.Define(stage, "/robot/mount").AddRotateXOp().Set(90.0)
    return stage


def rows_of(stage: Usd.Stage, device) -> dict[str, np.ndarray]:
    with hdwarp.Scene(stage, device=device) as scene:
        assert scene.cameras.label == ["/robot/mount/cam"]
        return {name: getattr(scene.cameras, name).numpy() for name in COLUMNS}


@pytest.mark.parametrize("up", ["Y", "Z"])
@pytest.mark.parametrize("metres", [1.0, 0.01, 0.001])
@pytest.mark.parametrize("lens", ["plain", "offset", "one aperture", "defaults", "orthographic"])
def test_rows_are_equal(lens, metres, up, device):
    """Mounted under a non-body Xform of a rigid body: lengths in metres, clip range, mount, body."""
    tenth = 0.1 * metres  # lens values are tenths of a scene unit
    values = {
        "plain": {"focal_length": 0.024, "horizontal_aperture": 0.02, "vertical_aperture": 0.015, "clipping_range": (0.02, 3.0)},
        "offset": {"focal_length": 0.05, "horizontal_aperture": 0.03, "vertical_aperture": 0.02, "horizontal_aperture_offset": 0.001},
        "one aperture": {"focal_length": 0.024, "vertical_aperture": 0.024, "vertical_aperture_offset": -0.002},
        "defaults": {},
        "orthographic": {"lens": "orthographic", "horizontal_aperture": 0.4, "vertical_aperture": 0.3, "clipping_range": (0.5, 9.0)},
    }[lens]
    place = np.eye(4)
    place[:3, 3] = 0.1, 0.2, 0.3
    ours, theirs = new_stage(metres, up), new_stage(metres, up)
    hdwarp.author.add_camera(ours, "/robot/mount/cam", transform=place, **values)

    camera = UsdGeom.Camera.Define(theirs, "/robot/mount/cam")
    camera.AddTranslateOp().Set(Gf.Vec3d(0.1, 0.2, 0.3) / metres)
    near, far = values.get("clipping_range", (0.01, 1e6))
    camera.CreateClippingRangeAttr(Gf.Vec2f(near / metres, far / metres))
    if lens == "orthographic":
        camera.CreateProjectionAttr("orthographic")
        camera.CreateFocalLengthAttr(UsdGeom.Camera.Get(ours, "/robot/mount/cam").GetFocalLengthAttr().Get())  # means nothing
    elif lens == "defaults":  # 45 degrees, vertical
        added = UsdGeom.Camera.Get(ours, "/robot/mount/cam")
        camera.CreateFocalLengthAttr(added.GetFocalLengthAttr().Get())
        camera.CreateHorizontalApertureAttr(0.0)
        camera.CreateVerticalApertureAttr(2.0 * math.tan(math.radians(22.5)) * added.GetFocalLengthAttr().Get())
    else:
        camera.CreateFocalLengthAttr(values["focal_length"] / tenth)
    for name in ("horizontal", "vertical"):
        if lens != "defaults":
            camera.GetPrim().GetAttribute(f"{name}Aperture").Set(values.get(f"{name}_aperture", 0.0) / tenth)
        camera.GetPrim().GetAttribute(f"{name}ApertureOffset").Set(values.get(f"{name}_aperture_offset", 0.0) / tenth)
    ours, theirs = rows_of(ours, device), rows_of(theirs, device)
    for name in COLUMNS:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-6, atol=1e-9, err_msg=name)
    # The mount: Ry(90) of the body is taken off, Rx(90) of the Xform is in it.
    np.testing.assert_allclose(ours["transform"][0, :3], [0.1, -0.3, 0.2], atol=1e-7)
    np.testing.assert_allclose(ours["transform"][0, 3:], [math.sqrt(0.5), 0, 0, math.sqrt(0.5)], atol=1e-7)
    assert ours["body"].tolist() == [0]


@pytest.mark.parametrize(("unit", "focal", "metres"), [(0.01, 50.0, 0.05), (1.0, 24.0, 2.4), (0.001, 35.0, 0.0035)], ids=["cm", "m", "mm"])
def test_units_of_usd_cameras(unit, focal, metres, device):
    """Tenths of a scene unit for the lens, whole ones for the clip range."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, unit)
    camera = UsdGeom.Camera.Define(stage, "/cam")
    camera.CreateFocalLengthAttr(focal)
    with hdwarp.Scene(stage, device=device) as scene:
        np.testing.assert_allclose(scene.cameras.focal_length.numpy(), [metres], rtol=1e-6)
        np.testing.assert_allclose(scene.cameras.aperture.numpy(), [np.array([20.955, 15.2908]) * unit / 10], rtol=1e-6)
        np.testing.assert_allclose(scene.cameras.clipping_range.numpy(), [(unit, 1e6 * unit)], rtol=1e-6)


BAD = {
    "focal length 0": ({"focal_length": 0.0, "vertical_aperture": 0.02}, {"focalLength": 0.0}, "focal"),
    "negative focal length": ({"focal_length": -0.01, "vertical_aperture": 0.02}, {"focalLength": -1.0}, "focal"),
    "no focal length": ({"focal_length": math.nan, "vertical_aperture": 0.02}, {"focalLength": math.nan}, "focal"),
    "negative aperture": ({"focal_length": 0.05, "vertical_aperture": -0.02}, {"verticalAperture": -2.0}, "aperture"),
    "both apertures 0": (
        {"focal_length": 0.05, "horizontal_aperture": 0.0, "vertical_aperture": 0.0},
        {"horizontalAperture": 0.0, "verticalAperture": 0.0},
        "aperture",
    ),
    "endless aperture": ({"focal_length": 0.05, "vertical_aperture": math.inf}, {"verticalAperture": math.inf}, "aperture"),
    "near beyond far": ({"clipping_range": (2.0, 1.0)}, {"clippingRange": Gf.Vec2f(2, 1)}, "clipping"),
    "near behind the camera": ({"clipping_range": (-1.0, 2.0)}, {"clippingRange": Gf.Vec2f(-1, 2)}, "clipping"),
    "near is far": ({"clipping_range": (1.0, 1.0)}, {"clippingRange": Gf.Vec2f(1, 1)}, "clipping"),
    "no clip range": ({"clipping_range": (math.nan, 1.0)}, {"clippingRange": Gf.Vec2f(math.nan, 1)}, "clipping"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_same_values_are_refused(name, device):
    arguments, attributes, word = BAD[name]
    with pytest.raises(ArgumentError, match=f"(?i){word}"):
        hdwarp.author.add_camera(Usd.Stage.CreateInMemory(), "/cam", **arguments)
    stage = Usd.Stage.CreateInMemory()
    prim = UsdGeom.Camera.Define(stage, "/cam").GetPrim()
    for attribute, value in attributes.items():
        prim.GetAttribute(attribute).Set(value)
    with hdwarp.Scene(stage, device=device) as scene:
        assert scene.cameras.label == []
        assert any(item.path == "/cam" and item.severity == "error" and word in item.message.lower() for item in scene.diagnostics)


def test_a_near_plane_at_the_eye_is_none(device):
    """0 is no distance to refuse, by either way."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    hdwarp.author.add_camera(stage, "/a", clipping_range=(0.0, 10.0))
    UsdGeom.Camera.Define(stage, "/b").CreateClippingRangeAttr(Gf.Vec2f(0, 10))
    with hdwarp.Scene(stage, device=device) as scene:
        assert scene.cameras.clipping_range.numpy().tolist() == [[0, 10], [0, 10]]
