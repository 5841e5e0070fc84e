"""Sheets of paper under UsdLux's lights, looked at square on by an orthographic camera, and what falls on them by closed forms.

The paper is a UsdPreviewSurface with ior 1, which only scatters evenly: its colour is base / pi times the irradiance.
"""

from __future__ import annotations

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdShade

import hdwarp

BASE = np.array([0.8, 0.5, 0.25])
SIZE = 32
HALF = 1.0  # of the picture [m]
EYE = 5.0  # height of the camera [m]


def matt(stage: Usd.Stage, prim: Usd.Prim, base=BASE, path: str = "/matt", **inputs: float) -> None:
    material = UsdShade.Material.Define(stage, path)
    surface = UsdShade.Shader.Define(stage, f"{path}/surface")
    surface.CreateIdAttr("UsdPreviewSurface")
    surface.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(*map(float, base)))
    for name, value in ({"ior": 1.0} | inputs).items():
        surface.CreateInput(name, Sdf.ValueTypeNames.Float).Set(value)
    material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material)


def quad(stage: Usd.Stage, path: str, low=(-20.0, -20.0), high=(20.0, 20.0), z: float = 0.0) -> Usd.Prim:
    """A matt rectangle in a plane of constant z, its front upwards."""
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr([(low[0], low[1], z), (high[0], low[1], z), (high[0], high[1], z), (low[0], high[1], z)])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    mesh.CreateSubdivisionSchemeAttr("none")
    matt(stage, mesh.GetPrim())
    return mesh.GetPrim()


def empty() -> Usd.Stage:
    """Metres, z up, and the camera /c, which looks down on 2 x 2 m about the origin."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    camera(stage, "/c")
    return stage


def camera(stage: Usd.Stage, path: str, place=(0.0, 0.0, EYE)) -> UsdGeom.Camera:
    made = UsdGeom.Camera.Define(stage, path)
    made.CreateProjectionAttr("orthographic")
    made.CreateHorizontalApertureAttr(20.0 * HALF)
    made.CreateVerticalApertureAttr(20.0 * HALF)
    UsdGeom.XformCommonAPI(made).SetTranslate(Gf.Vec3d(*map(float, place)))
    return made


def paper() -> Usd.Stage:
    """`empty` with the sheet /paper in the plane z = 0."""
    stage = empty()
    quad(stage, "/paper")
    return stage


_TYPES = {bool: "bool", float: "float", int: "float", str: "token", tuple: "color3f"}


def light(stage: Usd.Stage, kind: str, path: str = "/light", place=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0), **inputs: object) -> Usd.Prim:
    """A light that shines down, turned (degrees about x, y, z) and put where it is said; ``inputs`` by their names, ``__`` for a colon."""
    prim = stage.DefinePrim(path, kind)
    UsdGeom.XformCommonAPI(prim).SetTranslate(Gf.Vec3d(*map(float, place)))
    UsdGeom.XformCommonAPI(prim).SetRotate(Gf.Vec3f(*map(float, turn)))
    for name, value in inputs.items():
        if name == "treatAsPoint":
            prim.CreateAttribute(name, Sdf.ValueTypeNames.Bool).Set(value)
            continue
        if name.startswith("shaping__"):
            UsdLux.ShapingAPI.Apply(prim)
        if name.startswith("shadow__"):
            UsdLux.ShadowAPI.Apply(prim)
        attribute = prim.CreateAttribute(f"inputs:{name.replace('__', ':')}", Sdf.ValueTypeNames.Find(_TYPES[type(value)]))
        attribute.Set(value)
    return prim


def point(stage: Usd.Stage, place, intensity: float = 1.0, path: str = "/light", **inputs: object) -> Usd.Prim:
    """A point light that brings ``intensity`` [radiance m^2] at a distance of 1 m: that of a sphere of radius 1 m seen from afar."""
    more = {"radius": 1.0, "treatAsPoint": True, "intensity": intensity / np.pi}
    return light(stage, "SphereLight", path, place, **(more | inputs))


def look(stage, device, integrator: str = "fast", aovs=("color",), size: int = SIZE, camera: str = "/c", **options):
    settings = hdwarp.RenderSettings(integrator=integrator, **options.pop("settings", {}))
    options |= {} if isinstance(stage, hdwarp.Scene) else {"device": device}
    return hdwarp.render(stage, camera, resolution=(size, size), aovs=list(aovs), settings=settings, **options)


def irradiance(stage, device, integrator: str = "fast", **options) -> np.ndarray:
    """(SIZE, SIZE, 3): what falls on the paper, by its colour."""
    return look(stage, device, integrator, **options)["color"][..., :3].astype(np.float64) * np.pi / BASE


def places(size: int = SIZE) -> np.ndarray:
    """(size, size, 3): what the pixels' centres see of the plane z = 0."""
    along = HALF * (2 * (np.arange(size) + 0.5) / size - 1)
    x, y = np.meshgrid(along, -along)
    return np.stack([x, y, np.zeros_like(x)], axis=-1)


# -- closed forms: irradiance of places that face up, per radiance -----------------------------------------------------------


def from_point(at, places: np.ndarray) -> np.ndarray:
    """Per radiance times square metre."""
    way = np.asarray(at, float) - places
    distance = np.linalg.norm(way, axis=-1)
    return np.maximum(way[..., 2], 0.0) / distance**3


def from_sphere(at, radius: float, places: np.ndarray) -> np.ndarray:
    """Of a sphere above the horizon: pi r^2 cos / d^2, as of a point."""
    return np.pi * radius**2 * from_point(at, places)


def from_disk(at, radius: float, places: np.ndarray) -> np.ndarray:
    """Of a disk that faces down: pi times Howell's factor from an element to a parallel disk."""
    way = np.asarray(at, float) - places
    off, height = (way[..., :2] ** 2).sum(axis=-1), way[..., 2] ** 2
    root = np.sqrt((off + height + radius**2) ** 2 - 4 * radius**2 * off)
    return np.pi / 2 * (1 - (off + height - radius**2) / root)


def from_polygon(corners, places: np.ndarray) -> np.ndarray:
    """Lambert's sum over edges, of a polygon above the horizon, from either side."""
    ways = np.asarray(corners, float) - places[..., None, :]
    ways /= np.linalg.norm(ways, axis=-1, keepdims=True)
    total = 0.0
    for k in range(len(corners)):
        a, b = ways[..., k, :], ways[..., (k + 1) % len(corners), :]
        across = np.cross(a, b)
        sine = np.linalg.norm(across, axis=-1)
        total = total + np.arctan2(sine, (a * b).sum(axis=-1)) * across[..., 2] / sine
    return np.abs(total) / 2
