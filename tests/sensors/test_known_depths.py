"""SensorCamera against numbers that were worked out elsewhere: planar and ray depths, clear values and masks, simple depths."""

from __future__ import annotations

import math

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdRender, UsdShade

import hdwarp

PLANAR, RADIAL = "distance_to_image_plane", "distance_to_camera"


def new_stage(up: str = "Z") -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, up)
    return stage


def look(stage: Usd.Stage, device, aovs, size=(3, 3), **options) -> dict[str, np.ndarray]:
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/cam", resolution=size, **options)
        out = sensor.allocate(aovs)
        sensor.update(scene.state(), out)
        return {name: array.numpy()[0] for name, array in out.items()}


def test_ray_depths_are_planar_depths_over_the_cosine(device):
    """Inside a ball of radius 10 every ray is 10 long; planar: 10, 8.3205 at the middles of the edges, 7.2761 in the corners."""
    stage = new_stage()
    UsdGeom.Sphere.Define(stage, "/ball").CreateRadiusAttr(10.0)
    hdwarp.author.add_camera(stage, "/cam", fov=math.pi / 2)
    found = look(stage, device, [PLANAR, RADIAL])
    np.testing.assert_allclose(found[RADIAL], 10.0, rtol=1e-6)
    edge, corner = 10.0 / math.sqrt(1 + 4 / 9), 10.0 / math.sqrt(1 + 8 / 9)
    np.testing.assert_allclose(found[PLANAR], [[corner, edge, corner], [edge, 10.0, edge], [corner, edge, corner]], rtol=1e-6)


def test_clear_values_and_masks(device):
    """Misses hold what the call says, masked views what they held: 42 and 456."""
    stage = new_stage()
    hdwarp.author.add_camera(stage, "/cam")
    hdwarp.author.add_camera(stage, "/other")
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(5, 4))
        out = sensor.allocate([PLANAR, "primId"])
        sensor.update(None, out)
        assert np.isposinf(out[PLANAR].numpy()).all() and (out["primId"].numpy() == -1).all()
        out[PLANAR].fill_(42.0)
        out["primId"].fill_(456)
        mask = wp.array([False, True], dtype=wp.bool, device=scene.device)
        sensor.update(None, out, view_mask=mask, clear={PLANAR: -2.0, "primId": 123})
        assert (out[PLANAR].numpy()[0] == 42.0).all() and (out["primId"].numpy()[0] == 456).all()
        assert (out[PLANAR].numpy()[1] == -2.0).all() and (out["primId"].numpy()[1] == 123).all()
        nowhere = wp.array([-1, 1], dtype=wp.int32, device=scene.device)  # worlds that do not exist are empty
        sensor.update(None, out, world_indices=nowhere, clear={PLANAR: 7.0})
        assert (out[PLANAR].numpy() == 7.0).all()


@pytest.mark.parametrize("up", ["Y", "Z"])
def test_a_box_from_above(up, device):
    """Its top at 0.1, seen from 2: 1.9, and the normal is up; the same from a stage of either up axis."""
    stage = new_stage(up)
    UsdGeom.Cube.Define(stage, "/box").CreateSizeAttr(0.2)
    camera = hdwarp.author.add_camera(stage, "/cam", fov=math.radians(2.0))
    axis = np.array([0.0, 1.0, 0.0] if up == "Y" else [0.0, 0.0, 1.0])
    hdwarp.author.look_at(camera, 2.0 * axis, (0.0, 0.0, 0.0))
    found = look(stage, device, [PLANAR, "normal"], (8, 8))
    np.testing.assert_allclose(found[PLANAR], 1.9, rtol=1e-6)
    np.testing.assert_allclose(found["normal"], np.broadcast_to(axis, (8, 8, 3)), atol=1e-6)


def test_a_ball_behind_glass_that_is_cut_away(device):
    """Radius 0.5 at 3 m: 2.5; a box in front whose opacity is 0 under a threshold does not hide it."""
    stage = new_stage()
    ball = UsdGeom.Sphere.Define(stage, "/ball")
    ball.CreateRadiusAttr(0.5)
    ball.AddTranslateOp().Set(Gf.Vec3d(0, 0, -3))
    box = UsdGeom.Cube.Define(stage, "/box")
    box.CreateSizeAttr(0.5)
    box.AddTranslateOp().Set(Gf.Vec3d(0, 0, -1))
    material = UsdShade.Material.Define(stage, "/glass")
    shader = UsdShade.Shader.Define(stage, "/glass/surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    for name, value in (("opacity", 0.0), ("opacityThreshold", 0.5)):
        shader.CreateInput(name, Sdf.ValueTypeNames.Float).Set(value)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(box.GetPrim()).Bind(material)
    hdwarp.author.add_camera(stage, "/cam", fov=math.radians(0.1))
    np.testing.assert_allclose(look(stage, device, [PLANAR])[PLANAR], 2.5, rtol=1e-5)


def test_a_flat_field_is_hit_everywhere(device):
    """A grid of triangles at z = 1 from z = 5, 16 x 16, 30 degrees: 256 hits, all 4 away along the axis."""
    stage = new_stage()
    side = np.linspace(-4, 4, 9, dtype=np.float32)
    x, y = np.meshgrid(side, side)
    mesh = UsdGeom.Mesh.Define(stage, "/field")
    mesh.CreatePointsAttr(np.stack([x.ravel(), y.ravel(), np.ones(81, np.float32)], axis=1))
    corners = (np.arange(8)[:, None] * 9 + np.arange(8)).ravel()
    faces = np.concatenate([np.stack([corners, corners + 1, corners + 10], 1), np.stack([corners, corners + 10, corners + 9], 1)])
    mesh.CreateFaceVertexIndicesAttr(faces.ravel().astype(np.int32))
    mesh.CreateFaceVertexCountsAttr(np.full(len(faces), 3, np.int32))
    camera = hdwarp.author.add_camera(stage, "/cam", fov=math.radians(30.0))
    hdwarp.author.set_world_pose(camera, (0, 0, 5), (1, 0, 0, 0), "opengl")
    found = look(stage, device, [PLANAR, RADIAL, "primId"], (16, 16))
    assert (found["primId"] == 0).all()
    np.testing.assert_allclose(found[PLANAR], 4.0, rtol=1e-6)
    assert (found[RADIAL] > 3.9).all() and (found[RADIAL] < 4.4).all()


@pytest.mark.parametrize("size", [(640, 480), (128, 128), (320, 90)])
@pytest.mark.parametrize(
    "policy", ["expandAperture", "cropAperture", "adjustApertureWidth", "adjustApertureHeight", "adjustPixelAspectRatio"]
)
def test_the_picture_is_that_of_render_at_that_size(policy, size, device):
    """Conform policy of the product that targets the camera: K of the frame, bits of the planes."""
    stage = new_stage()
    for i, place in enumerate([(0.3, 0.2, -4), (-0.5, -0.4, -5), (0.0, 0.5, -6)]):
        ball = UsdGeom.Sphere.Define(stage, f"/ball_{i}")
        ball.CreateRadiusAttr(0.4 + 0.1 * i)
        ball.AddTranslateOp().Set(Gf.Vec3d(*place))
    camera = UsdGeom.Camera.Define(stage, "/cam")
    camera.CreateHorizontalApertureOffsetAttr(1.5)
    camera.CreateClippingRangeAttr(Gf.Vec2f(0.1, 100))
    product = UsdRender.Product.Define(stage, "/Render/product")
    product.CreateResolutionAttr(Gf.Vec2i(100, 100))
    product.CreateAspectRatioConformPolicyAttr(policy)
    product.CreateCameraRel().SetTargets(["/cam"])
    aovs = [PLANAR, "primId", "color", "normal"]
    frame = hdwarp.render(stage, "/Render/product", resolution=size, aovs=aovs, device=device)
    ours = look(stage, device, aovs, size)
    for name in aovs:
        np.testing.assert_array_equal(ours[name], frame[name], err_msg=name)
