"""Inputs of a material that come straight from primvars: what pixels show is the primvar, interpolated, or the reader's fallback."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Sdf, UsdGeom, UsdShade

import hdwarp

CORNERS = np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])  # of the square that `surfaces` draws


def paint(xy: np.ndarray) -> np.ndarray:
    """A field that grows evenly, as what triangles interpolate does."""
    return np.stack([0.5 + 0.25 * xy[:, 0], 0.5 + 0.25 * xy[:, 1], 0.5 - 0.125 * (xy[:, 0] + xy[:, 1])], axis=-1)


def pixels(surfaces) -> np.ndarray:
    along = (np.arange(surfaces.SIZE) + 0.5) / surfaces.SIZE * 2.0 - 1.0
    return np.stack(np.meshgrid(along, along[::-1]), axis=-1).reshape(-1, 2)


def read(stage, kind: str, name: str, drives: str, fallback: object = None, type_name: str = "color3f") -> None:
    """Input ``drives`` of the surface comes from a reader of the primvar ``name``."""
    reader = UsdShade.Shader.Define(stage, f"/m/{kind}")
    reader.CreateIdAttr(f"UsdPrimvarReader_{kind}")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set(name)
    if fallback is not None:
        reader.CreateInput("fallback", Sdf.ValueTypeNames.Find(kind)).Set(fallback)
    reader.CreateOutput("result", Sdf.ValueTypeNames.Find(kind))
    surface = UsdShade.Shader.Get(stage, "/m/s")
    surface.CreateInput(drives, Sdf.ValueTypeNames.Find(type_name)).ConnectToSource(reader.ConnectableAPI(), "result")


def author(stage, name: str, type_name: str, values: object, path: str = "/q") -> None:
    UsdGeom.PrimvarsAPI(stage.GetPrimAtPath(path)).CreatePrimvar(name, Sdf.ValueTypeNames.Find(type_name), "vertex").Set(values)


def test_a_colour_and_an_emission_are_the_primvar(surfaces, surface_twin, device):
    stage = surfaces.square()
    author(stage, "paint", "color3f[]", [tuple(v) for v in paint(CORNERS)])
    read(stage, "float3", "paint", "diffuseColor")
    read(stage, "float4", "paint", "emissiveColor")
    frame = surfaces.look(stage, device)
    expected = paint(pixels(surfaces))
    assert frame["albedo"].reshape(-1, 4)[:, :3] == pytest.approx(expected, abs=1e-5)
    lit = surface_twin.camera_light(expected, np.ones(len(expected)))  # seen straight on
    assert frame["color"].reshape(-1, 4)[:, :3] == pytest.approx(lit + expected, abs=2e-5)


def test_what_lacks_the_primvar_shows_the_fallback(surfaces, device):
    """Also of displayColor, which without a reader's fallback is grey."""
    stage = surfaces.square()
    for name in ("paint", "displayColor"):
        read(stage, "float3", name, "diffuseColor", (0.25, 0.5, 0.75))
        assert surfaces.shown(stage, device) == pytest.approx(np.tile((0.25, 0.5, 0.75), (surfaces.SIZE**2, 1)), abs=1e-6)
    author(stage, "displayColor", "color3f[]", [(1, 0, 0)] * 4)
    assert surfaces.shown(stage, device) == pytest.approx(np.tile((1, 0, 0), (surfaces.SIZE**2, 1)))


def test_opacity_by_a_primvar_cuts(surfaces, device):
    """Where 0.5 + 0.25 x is less than 0.4 there is nothing: left of x = -0.4."""
    stage = surfaces.square()
    author(stage, "solid", "float[]", (0.5 + 0.25 * CORNERS[:, 0]).tolist())
    read(stage, "float", "solid", "opacity", type_name="float")
    surfaces.constant(stage, "opacityThreshold", "float", 0.4)
    seen = surfaces.look(stage, device, ("primId",))["primId"] >= 0
    x = pixels(surfaces)[:, 0].reshape(seen.shape)
    sure = np.abs(x + 0.4) > 1e-3
    assert (seen == (x > -0.4))[sure].all() and 0.2 < seen.mean() < 0.8


def test_live_edits_of_readers_are_what_a_fresh_reading_gives(surfaces, device):
    stage = surfaces.square()
    author(stage, "paint", "color3f[]", [tuple(v) for v in paint(CORNERS)])
    author(stage, "other", "color3f[]", [tuple(v) for v in 1.0 - paint(CORNERS)])
    read(stage, "float3", "paint", "diffuseColor")
    scene = hdwarp.Scene(stage, device=device)
    pictures = [surfaces.look(scene, device, ("albedo",))["albedo"]]
    for name in ("other", "gone", "paint"):
        UsdShade.Shader.Get(stage, "/m/float3").GetInput("varname").Set(name)
        scene.sync()
        pictures.append(surfaces.look(scene, device, ("albedo",))["albedo"])
        assert np.array_equal(pictures[-1], surfaces.look(stage, device, ("albedo",))["albedo"])
    assert np.array_equal(pictures[0], pictures[-1])
    assert not np.array_equal(pictures[0], pictures[1])
