"""Ambient occlusion: light that comes from all around is less where something near is in its way. The free part, weighted by the cosine,
from two pictures: closed forms say it."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdLux, UsdShade

import hdwarp

SIZE = 32
HALF = 3.0  # of the picture [m]


def stage_of(distance: float = 200.0) -> Usd.Stage:
    """A large floor at z = 0, its material with an occlusion of its own, seen from straight above."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    camera = UsdGeom.Camera.Define(stage, "/c")
    camera.CreateProjectionAttr("orthographic")
    camera.CreateHorizontalApertureAttr(20.0 * HALF)
    camera.CreateVerticalApertureAttr(20.0 * HALF)
    camera.CreateClippingRangeAttr((0.1, 1000.0))
    UsdGeom.XformCommonAPI(camera).SetTranslate((0, 0, distance))
    material = UsdShade.Material.Define(stage, "/m")
    shader = UsdShade.Shader.Define(stage, "/m/s")
    shader.CreateIdAttr("UsdPreviewSurface")
    shader.CreateInput("occlusion", Sdf.ValueTypeNames.Float).Set(1.0)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    floor = add_square(stage, "/floor", [(-500, -500, 0), (500, -500, 0), (500, 500, 0), (-500, 500, 0)])
    UsdShade.MaterialBindingAPI.Apply(floor.GetPrim()).Bind(material)
    return stage


def add_square(stage: Usd.Stage, path: str, points: list[tuple]) -> UsdGeom.Mesh:
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr(points)
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    mesh.CreateSubdivisionSchemeAttr("none")
    return mesh


def look(stage: Usd.Stage, device: str, occlusion: float, asked: bool, integrator: str = "fast", samples: int = 1) -> np.ndarray:
    UsdShade.Shader.Get(stage, "/m/s").GetInput("occlusion").Set(occlusion)
    settings = hdwarp.RenderSettings(integrator=integrator, ambient_occlusion=asked, light_samples=256)
    frame = hdwarp.render(stage, "/c", resolution=(SIZE, SIZE), aovs=["color"], settings=settings, samples=samples, device=device)
    return frame["color"][..., 0].astype(np.float64)


def openness(stage: Usd.Stage, device: str, **options) -> np.ndarray:
    """(SIZE, SIZE): by the floor with all, with none, and with the asked part of the light from around."""
    none, everything, part = (look(stage, device, *how, **options) for how in ((0.0, False), (1.0, False), (1.0, True)))
    assert (everything - none).min() > 0.01
    return (part - none) / (everything - none)


def places() -> tuple[np.ndarray, np.ndarray]:
    along = ((np.arange(SIZE) + 0.5) / SIZE * 2.0 - 1.0) * HALF
    return np.meshgrid(along, along[::-1])


@pytest.mark.parametrize("integrator", ["fast", "preview"])
def test_a_plane_is_open(integrator, device):
    np.testing.assert_allclose(openness(stage_of(), device, integrator=integrator), 1.0, rtol=1e-5)


def test_a_crease_of_90_degrees_is_half_open(device):
    """A wall at x = 0 takes half of all that comes, however near; what is behind it as well."""
    stage = stage_of()
    add_square(stage, "/wall", [(0, -500, 0), (0, 500, 0), (0, 500, 99), (0, -500, 99)])
    found = openness(stage, device)
    assert np.abs(found.mean(axis=0) - 0.5).max() < 0.03
    assert abs(found.mean() - 0.5) < 0.01
    np.testing.assert_array_equal(look(stage, device, 1.0, True), look(stage, device, 1.0, True))
    assert abs(openness(stage, device, samples=4).mean() - 0.5) < 0.01


@pytest.mark.parametrize("light", ["camera", "dome"])
def test_a_ball_on_a_plane(light, device):
    """It is seen from x beside the point it stands on by a form factor of (R / rho)^3, rho^2 = x^2 + R^2; the rest is open."""
    stage = stage_of()
    if light == "dome":
        UsdLux.DomeLight.Define(stage, "/light").CreateIntensityAttr(0.5)
    ball = UsdGeom.Sphere.Define(stage, "/ball")
    UsdGeom.XformCommonAPI(ball).SetTranslate((0, 0, 1.0))
    UsdShade.MaterialBindingAPI.Apply(ball.GetPrim()).Bind(UsdShade.Material.Get(stage, "/m"))
    x, y = places()
    away = np.hypot(x, y)
    error = (openness(stage, device) - (1.0 - (away**2 + 1.0) ** -1.5))[away > 1.2]
    assert np.abs(error).max() < 0.12 and abs(error.mean()) < 0.004 and error.std() < 0.03


def test_what_is_far_does_not_count(device):
    """A roof farther away than half the distance to the camera."""
    stage = stage_of(distance=4.0)
    add_square(stage, "/roof", [(-500, -500, 5), (500, -500, 5), (500, 500, 5), (-500, 500, 5)])
    np.testing.assert_allclose(openness(stage, device), 1.0, rtol=1e-5)
