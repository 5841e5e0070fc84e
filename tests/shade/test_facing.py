"""Smooth normals that turn away from the viewer on faces that are turned to him."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade

import hdwarp


def _colour(degrees: float, device) -> np.ndarray:
    """The middle pixel of a glossy green square that faces the camera, its normals turned by ``degrees``."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/square")
    mesh.CreatePointsAttr([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    mesh.CreateSubdivisionSchemeAttr("none")
    mesh.CreateNormalsAttr([Gf.Vec3f(np.sin(np.radians(degrees)), 0.0, np.cos(np.radians(degrees)))] * 4)
    mesh.SetNormalsInterpolation("vertex")
    material = UsdShade.Material.Define(stage, "/look")
    surface = UsdShade.Shader.Define(stage, "/look/surface")
    surface.CreateIdAttr("UsdPreviewSurface")
    surface.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(0.0, 0.8, 0.0))
    surface.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(0.2)
    material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
    camera = hdwarp.author.add_camera(stage, "/camera", fov=0.1)
    hdwarp.author.look_at(camera, (0, 0, 5), (0, 0, 0))
    return hdwarp.render(stage, "/camera", resolution=(3, 3), aovs=["color"], device=device)["color"][1, 1, :3]


@pytest.mark.parametrize("degrees", [65, 89, 90, 100, 130])
def test_a_face_seen_squarely_shows_no_rim(degrees, device):
    """Half as much of it is taken to face the viewer as of its facet, at least: beyond 60 degrees nothing changes."""
    rim = _colour(degrees, device)
    assert rim == pytest.approx(_colour(60, device), rel=1e-4)
    assert rim[0] < 0.1 * rim[1], "green, not what it mirrors"
