"""A square in the picture of an orthographic camera, whose surface is connected to textures: what pixels show can be said by hand."""

from __future__ import annotations

import numpy as np
import PIL.Image
from pxr import Sdf, Usd, UsdGeom, UsdShade

import hdwarp

SIZE = 96
# st over the picture: multiples of 1/32 at the middles of pixels, so that some are at middles and some at borders of 4 texels to 1.
LOW, HIGH = -1.0 - 1 / 64, 2.0 - 1 / 64
_TYPES = {
    "file": "asset",
    "wrapS": "token",
    "wrapT": "token",
    "sourceColorSpace": "token",
    "scale": "float4",
    "bias": "float4",
    "fallback": "float4",
}


def pixels_st(low: float = LOW, high: float = HIGH, size: int = SIZE) -> np.ndarray:
    """(size * size, 2) float64: st at the middles of pixels, row by row from the top."""
    along = low + (high - low) * (np.arange(size) + 0.5) / size
    return np.stack(np.meshgrid(along, along[::-1]), axis=-1).reshape(-1, 2)


def square(low: float = LOW, high: float = HIGH, name: str = "st") -> Usd.Stage:
    """A stage with camera /c, which sees just the square /q, and the surface /m/s bound to it; primvar ``name`` from low to high."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    camera = UsdGeom.Camera.Define(stage, "/c")
    camera.CreateProjectionAttr("orthographic")
    camera.CreateHorizontalApertureAttr(20.0)
    camera.CreateVerticalApertureAttr(20.0)
    UsdGeom.XformCommonAPI(camera).SetTranslate((0, 0, 5))
    mesh = UsdGeom.Mesh.Define(stage, "/q")
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    mesh.CreatePointsAttr([(x, y, 0) for x, y in corners])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    mesh.CreateSubdivisionSchemeAttr("none")
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar(name, Sdf.ValueTypeNames.TexCoord2fArray, "vertex")
    primvar.Set([(low if x < 0 else high, low if y < 0 else high) for x, y in corners])
    material = UsdShade.Material.Define(stage, "/m")
    surface = UsdShade.Shader.Define(stage, "/m/s")
    surface.CreateIdAttr("UsdPreviewSurface")
    material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
    constant(stage, "diffuseColor", "color3f", (0, 0, 0))
    return stage


def constant(stage: Usd.Stage, name: str, kind: str, value: object, node: str = "/m/s") -> UsdShade.Input:
    found = UsdShade.Shader.Get(stage, node).CreateInput(name, Sdf.ValueTypeNames.Find(kind))
    found.Set(value)
    return found


def _shader(stage: Usd.Stage, path: str, identifier: str, **outputs: str) -> None:
    shader = UsdShade.Shader.Define(stage, path)
    shader.CreateIdAttr(identifier)
    for name, kind in outputs.items():
        shader.CreateOutput(name, Sdf.ValueTypeNames.Find(kind))


def connect(stage: Usd.Stage, name: str, kind: str, source: str, node: str = "/m/s") -> None:
    UsdShade.Shader.Get(stage, node).CreateInput(name, Sdf.ValueTypeNames.Find(kind)).GetAttr().SetConnections([Sdf.Path(source)])


def reader(stage: Usd.Stage, path: str = "/m/r", varname: str = "st", fallback: tuple | None = None) -> str:
    """Path of the output of a UsdPrimvarReader_float2."""
    _shader(stage, path, "UsdPrimvarReader_float2", result="float2")
    constant(stage, "varname", "string", varname, path)
    if fallback is not None:
        constant(stage, "fallback", "float2", fallback, path)
    return f"{path}.outputs:result"


def transform(stage: Usd.Stage, source: str, path: str = "/m/x", **values: object) -> str:
    """Path of the output of a UsdTransform2d of ``source``."""
    _shader(stage, path, "UsdTransform2d", result="float2")
    connect(stage, "in", "float2", source, path)
    for name, value in values.items():
        constant(stage, name, "float" if name == "rotation" else "float2", value, path)
    return f"{path}.outputs:result"


def texture(stage: Usd.Stage, file: object, source: str, path: str = "/m/t", **values: object) -> str:
    """Path of a UsdUVTexture laid by ``source``."""
    _shader(stage, path, "UsdUVTexture", rgb="float3", r="float", g="float", b="float", a="float")
    for name, value in {"file": str(file), **values}.items():
        constant(stage, name, _TYPES[name], value, path)
    connect(stage, "st", "float2", source, path)
    return path


def diffuse(stage: Usd.Stage, file: object, output: str = "rgb", **values: object) -> str:
    """A texture, laid by st and repeated, as the diffuse colour; its path."""
    path = texture(stage, file, reader(stage), **({"wrapS": "repeat", "wrapT": "repeat"} | values))
    connect(stage, "diffuseColor", "color3f", f"{path}.outputs:{output}")
    return path


def look(
    stage: Usd.Stage | hdwarp.Scene, device: object, aovs: tuple[str, ...] = ("albedo", "color", "rgba8", "primId"), **options: object
):
    options |= {} if isinstance(stage, hdwarp.Scene) else {"device": device}
    return hdwarp.render(stage, "/c", resolution=(SIZE, SIZE), aovs=list(aovs), **options)


def shown(stage: Usd.Stage, device: object) -> np.ndarray:
    """(SIZE * SIZE, 3) base colours."""
    return look(stage, device, ("albedo",))["albedo"].reshape(-1, 4)[:, :3]


def image(tmp_path, name: str = "a.png", seed: int = 0, mode: str = "RGBA", size: int = 4) -> tuple[object, np.ndarray]:
    """(file, (size, size, channels) uint8) of random texels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (size, size, len(mode))).astype(np.uint8)
    PIL.Image.fromarray(pixels[..., 0] if mode == "L" else pixels, mode).save(tmp_path / name)
    return tmp_path / name, pixels


def linear(encoded: np.ndarray) -> np.ndarray:
    """The sRGB curve of IEC 61966-2-1 on colours, alpha left as it is."""
    encoded = np.asarray(encoded, np.float64)
    colour = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return np.concatenate([colour[..., :3], encoded[..., 3:]], axis=-1)
