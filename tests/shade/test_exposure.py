"""The camera's exposure: of light, not of what surfaces are."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Usd, UsdGeom, UsdLux, UsdShade
from pxr.Sdf import ValueTypeNames as Types

import hdwarp

PLANES = ("color", "direct", "emission", "albedo", "alpha", "roughness", "distance_to_camera")
HOW = {  # values of UsdGeom.Camera's attributes: the scale by its ComputeLinearExposureScale, in words
    "compensation": ({"exposure": 2.0}, 4.0),
    "physical": ({"exposure:iso": 200.0, "exposure:time": 0.5, "exposure:fStop": 2.0, "exposure:responsivity": 3.0}, 0.5 * 2.0 * 3.0 / 4.0),
}


def stage(values: dict, lit: bool) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    cube = UsdGeom.Cube.Define(stage, "/cube")
    cube.AddTranslateOp().Set((0, 0, -8))
    paint = UsdShade.Material.Define(stage, "/paint")
    surface = UsdShade.Shader.Define(stage, "/paint/s")
    surface.CreateIdAttr("UsdPreviewSurface")
    surface.CreateInput("diffuseColor", Types.Color3f).Set((0.5, 0.25, 0.125))
    surface.CreateInput("emissiveColor", Types.Color3f).Set((0.25, 0.5, 0.0))
    paint.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(cube.GetPrim()).Bind(paint)
    if lit:
        UsdLux.DistantLight.Define(stage, "/sun").CreateIntensityAttr(50_000.0)
    camera = UsdGeom.Camera.Define(stage, "/camera")
    for name, value in values.items():
        camera.GetPrim().GetAttribute(name).Set(value)
    return stage


@pytest.mark.parametrize("integrator", ["fast", "preview", "unlit"])
@pytest.mark.parametrize("lit", [True, False])
@pytest.mark.parametrize("how", HOW)
def test_light_is_scaled_and_surfaces_are_not(how, lit, integrator, device):
    values, scale = HOW[how]
    assert UsdGeom.Camera(stage(values, lit).GetPrimAtPath("/camera")).ComputeLinearExposureScale() == pytest.approx(scale)
    settings = hdwarp.RenderSettings(integrator=integrator)
    asked = [name for name in PLANES if integrator != "unlit" or name != "direct"]
    plain, exposed = (
        hdwarp.render(stage(given, lit), "/camera", resolution=(16, 12), aovs=asked, settings=settings, device=device)
        for given in ({}, values)
    )
    lights = ("direct", "emission", "color") if integrator != "unlit" else ("emission",)  # unlit, color is the base colour alone
    for name in asked:
        seen, now = np.atleast_1d(plain[name][6, 8]), np.atleast_1d(exposed[name][6, 8])
        assert seen.max() > 0.05, name
        expected = seen * (scale if name in lights else 1.0)
        expected[3:] = seen[3:]  # alpha
        assert now == pytest.approx(expected, rel=1e-6), name
