"""Direct light against Mitsuba 3: the same scenes, authored as USD for hdWarp and as dictionaries for Mitsuba, under every kind of light.

    pip install ".[bench]"
    python tests/bench/compare_mitsuba.py [--spp N] [--only NAME]... [--out FOLDER]

A line a scene: the mean radiance of both and how far apart they are, of blocks of 16 x 16 pixels the median and the largest difference,
relative to the larger of the block and a tenth of the mean. Surfaces are matt (UsdPreviewSurface of ior 1 is Lambert's). Exits with 1
when the mean of a scene is 2 % off, or one of its blocks 10 %; not for scenes `glossy-*`, which are there for information, and not for
blocks lit in several colours by one light, of which hdWarp's shadows (and a picture on a rect light) have but one: COLOURED.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdShade

import hdwarp

WIDTH, HEIGHT, BLOCK = 192, 144, 16
EYE, TARGET, FIELD = (1.0, 2.6, 6.0), (0.0, 0.6, 0.0), 45.0  # [m], [m], degrees across
FAR = 4000.0  # m: where what is infinitely far away stands for Mitsuba
MEAN_LIMIT, BLOCK_LIMIT = 0.02, 0.10
COLOURED = ("rect, in 8 colours", "dome, latlong", "dome, latlong turned", "dome, pole Z")


@dataclass
class Solid:
    """`square` (-1..1 in x and y, facing +Z), `cube` (-1..1), `sphere` (radius 1) or `tube` (radius 1, from z = -1 to 1, open)."""

    kind: str
    matrix: np.ndarray
    albedo: tuple[float, float, float]
    metallic: float = 0.0
    roughness: float | None = None  # None: matt


@dataclass
class Lamp:
    """A light of UsdLux. ``inputs`` by their names without `inputs:`; ``picture``: texels (H, W, 3) of a dome or rect, upper row first."""

    kind: str  # of UsdLux, without "Light"
    matrix: np.ndarray
    inputs: dict = field(default_factory=dict)
    picture: np.ndarray | None = None
    pole: str | None = None  # of DomeLight_1


# -- places ----------------------------------------------------------------------------------------------------------------


def shift(x: float, y: float, z: float) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


def scale(x: float, y: float, z: float) -> np.ndarray:
    return np.diag([x, y, z, 1.0])


def turn(axis: str, degrees: float) -> np.ndarray:
    a, b = [(1, 2), (2, 0), (0, 1)]["xyz".index(axis)]
    matrix, angle = np.eye(4), np.radians(degrees)
    matrix[a, a] = matrix[b, b] = np.cos(angle)
    matrix[b, a], matrix[a, b] = np.sin(angle), -np.sin(angle)
    return matrix


def aimed(place: tuple, target: tuple, roll: float = 0.0) -> np.ndarray:
    """What stands at ``place`` and looks down its -Z at ``target``."""
    back = np.subtract(place, target) / np.linalg.norm(np.subtract(place, target))
    right = np.cross((0.0, 1.0, 0.0) if abs(back[1]) < 0.99 else (0.0, 0.0, -1.0), back)
    right /= np.linalg.norm(right)
    matrix = np.eye(4)
    matrix[:3, 0], matrix[:3, 1], matrix[:3, 2], matrix[:3, 3] = right, np.cross(back, right), back, place
    return matrix @ turn("z", roll)


# -- scenes ----------------------------------------------------------------------------------------------------------------


def room(metallic: float = 0.0, roughness: float | None = None) -> list[Solid]:
    """A floor and a wall, and before it what throws shadows."""
    of_things = {"metallic": metallic, "roughness": roughness}
    return [
        Solid("square", turn("x", -90) @ scale(4, 4, 1), (0.7, 0.7, 0.7)),
        Solid("square", shift(0, 2, -2.5) @ scale(4, 2, 1), (0.3, 0.5, 0.7)),
        Solid("cube", shift(-1.3, 0.5, -0.5) @ turn("y", 30) @ scale(0.4, 0.5, 0.4), (0.8, 0.3, 0.2), **of_things),
        Solid("sphere", shift(0.4, 0.6, 0.2) @ scale(0.6, 0.6, 0.6), (0.8, 0.8, 0.8), **of_things),
        Solid("cube", shift(1.6, 1.0, -1.0) @ turn("y", -20) @ scale(0.15, 1.0, 0.15), (0.2, 0.7, 0.3), **of_things),
        Solid("square", shift(-0.2, 1.9, -0.6) @ turn("x", -80) @ turn("z", 15) @ scale(0.7, 0.4, 1), (0.6, 0.6, 0.2), **of_things),
    ]


def sky(width: int = 512) -> np.ndarray:
    """A latlong picture without any symmetry: a warm lamp, a cold window, a brighter upper half; soft edges."""
    lon = np.pi * (1.0 - 2.0 * (np.arange(width) + 0.5) / width)[None, :, None]
    lat = np.pi * (0.5 - (np.arange(width // 2) + 0.5) / (width // 2))[:, None, None]
    way = np.concatenate(np.broadcast_arrays(np.sin(lon) * np.cos(lat), np.sin(lat), np.cos(lon) * np.cos(lat)), axis=2)

    def spot(direction, sharpness, colour):
        unit = np.array(direction) / np.linalg.norm(direction)
        return np.exp(sharpness * (way @ unit - 1.0))[..., None] * np.array(colour)

    ground = 0.1 + 0.3 / (1.0 + np.exp(-8.0 * way[..., 1:2]))
    return (ground * np.array([0.8, 0.9, 1.0]) + spot((1, 0.8, 0.4), 40.0, (9, 6, 3)) + spot((-1, 0.5, 1.0), 15.0, (1, 2, 4))).astype(
        np.float32
    )


def scenes() -> dict[str, tuple[list[Solid], list[Lamp]]]:
    """By name: what stands there, and what lights it."""
    mosaic = np.array([[(8, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 8)], [(1, 8, 1), (1, 1, 1), (1, 1, 1), (6, 6, 1)]], np.float32)
    slanted = aimed((2.0, 4.0, 3.0), (0, 0, 0))
    above = aimed((1.2, 3.2, 1.0), (0, 0.3, -0.5), roll=20)
    lamps = {
        "distant": [Lamp("Distant", slanted, {"intensity": 3.0, "angle": 0.53, "normalize": True})],
        "distant, 30 degrees": [Lamp("Distant", slanted, {"intensity": 15.0, "angle": 30.0})],
        "point": [Lamp("Sphere", shift(1.0, 3.0, 1.5), {"intensity": 40.0, "radius": 0.3, "treatAsPoint": True})],
        "spot": [
            Lamp(
                "Sphere",
                aimed((1.0, 3.5, 2.0), (0, 0, 0)),
                {"intensity": 90.0, "radius": 0.3, "treatAsPoint": True, "shaping:cone:angle": 24.0},
            )
        ],
        "sphere": [Lamp("Sphere", shift(1.0, 2.6, 1.5), {"intensity": 10.0, "radius": 0.5})],
        "sphere, normalized": [Lamp("Sphere", shift(1, 3, 1.2), {"intensity": 60.0, "radius": 0.25, "normalize": True, "exposure": 1.0})],
        "sphere, half in the floor": [Lamp("Sphere", shift(1.3, 0.1, 1.4), {"intensity": 5.0, "radius": 0.4})],
        "rect": [Lamp("Rect", above, {"intensity": 12.0, "width": 1.2, "height": 0.7})],
        "rect, scaled and normalized": [Lamp("Rect", above @ scale(2, 0.5, 1), {"intensity": 12.0, "width": 0.8, "normalize": True})],
        "rect, upright": [Lamp("Rect", aimed((-2.2, 1.0, 1.5), (1.0, 1.0, 0.0)), {"intensity": 12.0, "width": 1.0, "height": 2.4})],
        "rect, in 8 colours": [Lamp("Rect", above, {"intensity": 2.0, "width": 2.4, "height": 1.2}, mosaic)],
        "disk": [Lamp("Disk", above, {"intensity": 12.0, "radius": 0.6})],
        "disk, stretched": [Lamp("Disk", above @ scale(2, 0.7, 1), {"intensity": 12.0, "radius": 0.5})],
        "cylinder": [Lamp("Cylinder", shift(0, 2.8, 1.2) @ turn("y", 25), {"intensity": 15.0, "length": 1.8, "radius": 0.12})],
        "cylinder, thick": [Lamp("Cylinder", shift(0.4, 2.8, 1.2) @ turn("z", 40), {"intensity": 5.0, "length": 0.8, "radius": 0.4})],
        "dome": [Lamp("Dome", np.eye(4), {"intensity": 0.8})],
        "dome, latlong": [Lamp("Dome", np.eye(4), {}, sky())],
        "dome, latlong turned": [Lamp("Dome", turn("y", 70) @ turn("x", 25), {}, sky())],
        "dome, pole Z": [Lamp("Dome", turn("y", 200), {}, sky(), "Z")],
    }
    found = {name: (room(), light) for name, light in lamps.items()}
    together = [  # Mitsuba's lamps throw shadows: these stand where they are not seen
        Lamp("Distant", aimed((-2.0, 4.0, 3.0), (0, 0, 0)), {"intensity": 1.0, "normalize": True}),
        Lamp("Sphere", shift(3.5, 2.5, 2.5), {"intensity": 10.0, "radius": 0.3}),
        Lamp("Rect", aimed((-3.0, 1.0, 4.5), (0.0, 0.5, 0.0)), {"intensity": 4.0, "height": 2.0}),
        lamps["point"][0],
        Lamp("Dome", np.eye(4), {"intensity": 0.2, "color": (0.5, 0.7, 1.0)}),
    ]
    found["five at once"] = (room(), together)
    for name in ("sphere", "rect", "distant", "dome, latlong"):
        found[f"glossy-metal, {name}"] = (room(metallic=1.0, roughness=0.3), lamps[name])
        found[f"glossy-plastic, {name}"] = (room(roughness=0.3), lamps[name])
    return found


# -- hdWarp ----------------------------------------------------------------------------------------------------------------

_CUBE = [(x, y, z) for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)]
_FACES = [0, 2, 3, 1, 4, 5, 7, 6, 0, 1, 5, 4, 2, 6, 7, 3, 0, 4, 6, 2, 1, 3, 7, 5]


def usd_stage(solids: list[Solid], lamps: list[Lamp], folder: Path) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    types = Sdf.ValueTypeNames
    for k, solid in enumerate(solids):
        path = f"/solid{k}"
        if solid.kind == "sphere":
            prim = UsdGeom.Sphere.Define(stage, path)
            prim.CreateRadiusAttr(1.0)
        else:
            prim = UsdGeom.Mesh.Define(stage, path)
            square = solid.kind == "square"
            prim.CreatePointsAttr([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)] if square else _CUBE)
            prim.CreateFaceVertexIndicesAttr([0, 1, 2, 3] if square else _FACES)
            prim.CreateFaceVertexCountsAttr([4] * (1 if square else 6))
            prim.CreateSubdivisionSchemeAttr("none")
        UsdGeom.Xformable(prim).AddTransformOp().Set(Gf.Matrix4d(solid.matrix.T.tolist()))
        material = UsdShade.Material.Define(stage, f"/look{k}")
        surface = UsdShade.Shader.Define(stage, f"/look{k}/surface")
        surface.CreateIdAttr("UsdPreviewSurface")
        surface.CreateInput("diffuseColor", types.Color3f).Set(Gf.Vec3f(solid.albedo))
        surface.CreateInput("metallic", types.Float).Set(solid.metallic)
        surface.CreateInput("ior", types.Float).Set(1.0 if solid.roughness is None else 1.5)
        surface.CreateInput("roughness", types.Float).Set(1.0 if solid.roughness is None else solid.roughness)
        material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
        UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(material)
    for k, lamp in enumerate(lamps):
        prim = stage.DefinePrim(f"/lamp{k}", f"{lamp.kind}Light{'_1' if lamp.pole else ''}")
        for name, value in lamp.inputs.items():
            if name.startswith("shaping"):
                UsdLux.ShapingAPI.Apply(prim)
            prim.GetAttribute(name if name.startswith("treatAs") else f"inputs:{name}").Set(value)
        if lamp.pole:
            prim.GetAttribute("poleAxis").Set(lamp.pole)
        if lamp.picture is not None:
            import OpenEXR

            file = folder / f"picture{k}.exr"
            OpenEXR.File({}, {"RGB": np.ascontiguousarray(lamp.picture)}).write(str(file))
            prim.GetAttribute("inputs:texture:file").Set(str(file))
        UsdGeom.Xformable(prim).AddTransformOp().Set(Gf.Matrix4d(lamp.matrix.T.tolist()))
    camera = hdwarp.author.add_camera(stage, "/camera", fov=_vertical_field())
    hdwarp.author.look_at(camera, EYE, TARGET)
    return stage


def _vertical_field() -> float:
    return 2.0 * np.arctan(np.tan(np.radians(FIELD) / 2.0) * HEIGHT / WIDTH)


def of_hdwarp(solids: list[Solid], lamps: list[Lamp], folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """(radiance (H, W, 3), whether all of a pixel shows a surface (H, W))."""
    settings = hdwarp.RenderSettings(integrator="preview", light_samples=64)
    stage = usd_stage(solids, lamps, folder)
    frame = hdwarp.render(stage, "/camera", resolution=(WIDTH, HEIGHT), aovs=["color"], samples=16, settings=settings, device="cpu")
    for diagnostic in frame.diagnostics:
        print(f"  {diagnostic}", file=sys.stderr)
    return frame["color"][..., :3], frame["color"][..., 3] > 0.999


# -- Mitsuba ---------------------------------------------------------------------------------------------------------------


def mitsuba_scene(mi, solids: list[Solid], lamps: list[Lamp], spp: int) -> dict:
    def placed(matrix):
        return mi.ScalarTransform4f(np.asarray(matrix, np.float64))

    scene = {
        "type": "scene",
        "integrator": {"type": "direct", "hide_emitters": True},
        "sensor": {
            "type": "perspective",
            "fov": FIELD,
            "fov_axis": "x",
            "to_world": mi.ScalarTransform4f().look_at(origin=EYE, target=TARGET, up=(0, 1, 0)),
            "sampler": {"type": "independent", "sample_count": spp},
            "film": {"type": "hdrfilm", "width": WIDTH, "height": HEIGHT, "pixel_format": "rgb", "rfilter": {"type": "box"}},
        },
    }
    shapes = {"square": "rectangle", "cube": "cube", "sphere": "sphere"}
    for k, solid in enumerate(solids):
        scene[f"solid{k}"] = {"type": shapes[solid.kind], "to_world": placed(solid.matrix), "bsdf": _surface(solid)}
    for k, lamp in enumerate(lamps):
        for j, light in enumerate(_lights(mi, placed, lamp)):
            scene[f"lamp{k}_{j}"] = light
    return scene


def _surface(solid: Solid) -> dict:
    colour = {"type": "rgb", "value": list(solid.albedo)}
    if solid.roughness is None:
        surface = {"type": "diffuse", "reflectance": colour}
    elif solid.metallic:  # UsdPreviewSurface's metals have their colour from all sides
        surface = {"type": "roughconductor", "material": "none", "alpha": solid.roughness**2, "specular_reflectance": colour}
    else:
        surface = {"type": "roughplastic", "int_ior": 1.5, "alpha": solid.roughness**2, "diffuse_reflectance": colour}
        surface["distribution"] = "ggx"
    if solid.metallic and solid.roughness is not None:
        surface["distribution"] = "ggx"
    return {"type": "twosided", "bsdf": surface}


def _lights(mi, placed, lamp: Lamp) -> list[dict]:
    """A light of UsdLux as Mitsuba's, by the formulas of UsdLux's documentation."""
    get, matrix = lamp.inputs.get, lamp.matrix
    radiance = np.array(get("color", (1.0, 1.0, 1.0))) * get("intensity", 1.0) * 2.0 ** get("exposure", 0.0)
    axes = [np.linalg.norm(matrix[:3, k]) for k in range(3)]  # of lamps that are scaled along their own axes
    size = {
        "Distant": lambda: np.pi * np.sin(np.radians(get("angle", 0.53)) / 2.0) ** 2,
        "Sphere": lambda: 4.0 * np.pi * get("radius", 0.5) ** 2,
        "Rect": lambda: get("width", 1.0) * axes[0] * get("height", 1.0) * axes[1],
        "Disk": lambda: np.pi * get("radius", 0.5) ** 2 * axes[0] * axes[1],
        "Cylinder": lambda: 2.0 * np.pi * get("radius", 0.5) * get("length", 1.0),
        "Dome": lambda: 1.0,
    }[lamp.kind]()
    if get("normalize"):
        radiance = radiance / size

    def glow(value):
        return {"type": "area", "radiance": {"type": "rgb", "value": [float(x) for x in value]}}

    over = turn("x", 180)  # Mitsuba's flat shapes shine along +Z
    if lamp.kind == "Distant" and get("angle", 0.53) < 1.0:  # as a sphere it would be half a percent off, in float32
        irradiance = {"type": "rgb", "value": (radiance * np.pi * np.sin(np.radians(get("angle", 0.53)) / 2.0) ** 2).tolist()}
        return [{"type": "directional", "direction": (-matrix[:3, 2]).tolist(), "irradiance": irradiance}]
    if lamp.kind == "Distant":
        radius = FAR * np.sin(np.radians(get("angle", 0.53)) / 2.0)
        return [{"type": "sphere", "center": (matrix[:3, 2] * FAR).tolist(), "radius": float(radius), "emitter": glow(radiance)}]
    if lamp.kind == "Sphere" and get("treatAsPoint"):
        power = {"type": "rgb", "value": (radiance * np.pi * get("radius", 0.5) ** 2).tolist()}
        if "shaping:cone:angle" not in lamp.inputs:
            return [{"type": "point", "position": matrix[:3, 3].tolist(), "intensity": power}]
        angle = get("shaping:cone:angle")
        return [{"type": "spot", "to_world": placed(matrix @ over), "intensity": power, "cutoff_angle": angle, "beam_width": 0.999 * angle}]
    if lamp.kind == "Sphere":
        return [{"type": "sphere", "center": matrix[:3, 3].tolist(), "radius": get("radius", 0.5), "emitter": glow(radiance)}]
    if lamp.kind == "Disk":
        at = matrix @ over @ scale(*[get("radius", 0.5)] * 2, 1.0)
        return [{"type": "disk", "to_world": placed(at), "emitter": glow(radiance)}]
    if lamp.kind == "Cylinder":
        half = get("length", 1.0) / 2.0
        ends = [(matrix @ (x, 0.0, 0.0, 1.0))[:3].tolist() for x in (-half, half)]
        return [{"type": "cylinder", "p0": ends[0], "p1": ends[1], "radius": get("radius", 0.5), "emitter": glow(radiance)}]
    if lamp.kind == "Rect":
        texels = np.ones((1, 1, 3)) if lamp.picture is None else lamp.picture
        rows, columns = texels.shape[:2]
        tile = scale(get("width", 1.0) / 2 / columns, get("height", 1.0) / 2 / rows, 1.0)
        found = []
        for j in range(rows):
            for i in range(columns):  # its lower left corner is at (+X, +Y): seen from where it shines it is upside down
                x = get("width", 1.0) * (0.5 - (i + 0.5) / columns)
                y = get("height", 1.0) * ((j + 0.5) / rows - 0.5)
                at = placed(matrix @ shift(x, y, 0.0) @ over @ tile)
                found.append({"type": "rectangle", "to_world": at, "emitter": glow(radiance * texels[j, i])})
        return found
    if lamp.picture is None:
        return [{"type": "constant", "radiance": {"type": "rgb", "value": radiance.tolist()}}]
    # As UsdLux's, Mitsuba's picture has -Z at its edges, +X a quarter from the left and +Y on top. A pole Z has +Z there, -Y in the middle.
    pole = turn("x", 90) if lamp.pole == "Z" else np.eye(4)
    picture = mi.Bitmap(np.ascontiguousarray(lamp.picture * radiance.astype(np.float32)))
    return [{"type": "envmap", "bitmap": picture, "to_world": placed(matrix @ pole)}]


def of_mitsuba(solids: list[Solid], lamps: list[Lamp], spp: int) -> np.ndarray:
    import mitsuba as mi

    mi.set_variant("scalar_rgb")  # the variants with LLVM ask for one that fits, and take down the process with others
    mi.set_log_level(mi.LogLevel.Error)
    return np.array(mi.render(mi.load_dict(mitsuba_scene(mi, solids, lamps, spp)), seed=1))


# -- both ------------------------------------------------------------------------------------------------------------------


def blocks(image: np.ndarray) -> np.ndarray:
    return image.reshape(HEIGHT // BLOCK, BLOCK, WIDTH // BLOCK, BLOCK, 3).mean(axis=(1, 3))


def compare(ours: np.ndarray, theirs: np.ndarray, seen: np.ndarray) -> tuple[float, float, float, float, float]:
    """(our mean, theirs, how far apart, of blocks the median and the largest difference)."""
    ours, theirs = ours * seen[..., None], theirs * seen[..., None]
    mean = theirs.mean()
    a, b = blocks(ours), blocks(theirs)
    off = np.abs(a - b).max(axis=2) / np.maximum(b.max(axis=2), 0.1 * mean)
    return ours.mean(), mean, ours.mean() / mean - 1.0, float(np.median(off)), float(off.max())


def _picture(ours: np.ndarray, theirs: np.ndarray, mean: float, file: Path) -> None:
    """Ours, theirs and the difference, three times as bright about grey."""
    import PIL.Image

    both = np.concatenate([ours, theirs], axis=1) * (0.25 / mean)
    both = np.clip(both, 0.0, 1.0) ** (1.0 / 2.2)
    apart = np.clip(0.5 + 3.0 * (ours - theirs) * (0.25 / mean), 0.0, 1.0)
    PIL.Image.fromarray((np.concatenate([both, apart], axis=1) * 255).astype(np.uint8)).save(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spp", type=int, default=256, help="samples a pixel of Mitsuba")
    parser.add_argument("--only", action="append", help="a part of the names of scenes")
    parser.add_argument("--out", type=Path, help="folder for pictures: ours, theirs, the difference")
    arguments = parser.parse_args()
    import tempfile

    import warp as wp

    wp.config.log_level = wp.LOG_WARNING
    worst = 0
    print(f"{'scene':32} {'hdWarp':>8} {'Mitsuba':>8} {'apart':>7} | blocks: {'median':>7} {'largest':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (solids, lamps) in scenes().items():
            if arguments.only and not any(part in name for part in arguments.only):
                continue
            ours, seen = of_hdwarp(solids, lamps, Path(folder))
            theirs = of_mitsuba(solids, lamps, arguments.spp)
            mean, other, apart, median, largest = compare(ours, theirs, seen)
            far = abs(apart) > MEAN_LIMIT or (largest > BLOCK_LIMIT and name not in COLOURED)
            worst |= far and not name.startswith("glossy")
            told = " (!)" if far else ""
            print(f"{name:32} {mean:8.4f} {other:8.4f} {apart:+7.2%} | {median:15.2%} {largest:8.2%}{told}", flush=True)
            if arguments.out:
                arguments.out.mkdir(parents=True, exist_ok=True)
                _picture(ours, theirs, other, arguments.out / f"{name.replace(', ', '-').replace(' ', '_')}.png")
    return int(worst)


if __name__ == "__main__":
    raise SystemExit(main())
