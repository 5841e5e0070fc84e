"""Every stage of the shared assets from every camera, at three times, for four sets of purposes, beside what pxr says is there to be drawn.

`python tests/asset_sweep.py ASSETS --sheet docs/images/assets.png --looks docs/images/looks.png` makes contact sheets."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

import hdwarp

PURPOSES = (("default",), ("default", "render"), ("default", "proxy"), ("default", "render", "proxy", "guide"))
SIZE = (320, 180)
TILE = (272, 153)  # of contact sheets
LOOKS = (  # stages that are about materials, textures and lights: name, camera, the picture that comes with it
    ("testUsdImagingGLPreviewSurface/testPreviewSurfaceTransform2d.usda", None, "testUsdImagingGLPreviewSurface/grid.png"),
    ("testUsdImagingGLUsdUdims/usdUdims.usda", None, "testUsdImagingGLUsdUdims/texture_1001.jpg"),
    ("testUsdImagingGLDomeLight/domeLightZup.usda", "/Scene/FrontCamera", "testUsdImagingGLDomeLight/testImage.png"),
    ("testUsdImagingGLDomeLight/domeLightZup.usda", "/Scene/BackCamera", None),
    ("testUsdviewRenderSettingsEdits/test.usda", None, None),
    ("TextureCoordinateTest/TextureCoordinateTest.usda", None, "TextureCoordinateTest/TextureCoordinateTemplate.png"),
    ("RoughnessTest/RoughnessTest.usdz", None, None),
    ("InterpolationTest/InterpolationTest.usdz", None, None),
    ("Teapot/DrawModes.usd", None, "Teapot/textures/tea_set_01_diff_2k.jpg"),
    ("vehicles/vehicleVariants.usda", None, None),
    ("SubdivisionSurfaces/Creases_SpinningPyramids.usda", None, "SubdivisionSurfaces/Pyramid/thumbnail.png"),
    ("testdata/simple_usd_preview_surface.usda", None, "testdata/checkerboard.png"),
    ("tests/assets/cube_cylinder.usda", None, None),
)


@dataclass
class Look:
    """One stage at one time with one set of purposes, from all of its cameras."""

    name: str
    time: float | None
    purposes: tuple[str, ...]
    expected: set[str]  # paths that pxr says are drawn: gprims, point instancers, models in a draw mode
    drawn: set[str]  # paths in the index, of point instancers too
    told: set[str]  # paths that diagnostics name
    frames: dict[str, hdwarp.Frame] = field(default_factory=dict)  # by camera, "" the framed view


def stage_names(assets: Path) -> list[str]:
    """Stages in the table of MANIFEST.md."""
    rows = [line.split("|")[1].strip() for line in (assets / "MANIFEST.md").read_text().splitlines() if line.startswith("| ")]
    return [row for row in rows if row.rsplit(".", 1)[-1] in ("usd", "usda", "usdc", "usdz")]


def three_times(stage: Usd.Stage) -> list[float | None]:
    """First, middle and last time sample there is; the stage's own start where nothing has samples."""
    samples: set[float] = set()
    for prim in stage.TraverseAll():
        for attribute in prim.GetAuthoredAttributes():
            samples.update(attribute.GetTimeSamples())
    ordered = sorted(samples)
    return [ordered[0], ordered[len(ordered) // 2], ordered[-1]] if len(ordered) > 2 else [*ordered] or [None]


def in_place_of(prim: Usd.Prim) -> Usd.Prim | None:
    """The model at or above a prim that something else is drawn for, by the words of GeomModelAPI; None: there is none."""
    found = None
    while prim and not prim.IsPseudoRoot():
        applied = prim.GetAttribute("model:applyDrawMode").Get() if prim.HasAttribute("model:applyDrawMode") else None
        authored = prim.HasAttribute("model:applyDrawMode") and prim.GetAttribute("model:applyDrawMode").HasAuthoredValue()
        applies = applied if authored else prim.IsComponent()
        if prim.IsModel() and applies and UsdGeom.ModelAPI(prim).ComputeModelDrawMode() in ("origin", "bounds", "cards"):
            found = prim
        prim = prim.GetParent()
    return found


def expected_paths(stage: Usd.Stage, code: Usd.TimeCode, purposes: tuple[str, ...]) -> set[str]:
    """What pxr computes to be visible, of a purpose that is drawn, and a gprim, point instancer or model in a draw mode. What lies below a
    point instancer is drawn by that alone."""
    found = set()
    walk = iter(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)))
    for prim in walk:
        instancer = prim.IsA(UsdGeom.PointInstancer)
        if instancer:
            walk.PruneChildren()
        if not (instancer or prim.IsA(UsdGeom.Gprim)):
            continue
        drawn = in_place_of(prim) or prim
        image = UsdGeom.Imageable(drawn)
        purpose = image.ComputePurpose()
        visible = image.ComputeVisibility(code) != "invisible"
        if purpose != "default" and drawn.HasAPI(UsdGeom.VisibilityAPI):
            visible = visible and image.ComputeEffectiveVisibility(purpose, code) != "invisible"
        if visible and purpose in purposes:
            found.add(str(drawn.GetPath()))
    return found


def drawn_paths(scene: hdwarp.Scene) -> set[str]:
    """Paths of what has rows, point instancers by their own, outermost ones."""
    found = set()
    for gprim in scene.index.gprims.values():
        instancer, path = gprim.instancer, gprim.path
        while instancer is not None:
            path, instancer = instancer.path, instancer.outer
        found.add(path)
    return found


def sweep(assets: Path, names: list[str], size: tuple[int, int] = SIZE, purposes=PURPOSES) -> Iterator[Look]:
    """All looks at the stages ``names``."""
    for name in names:
        stage = Usd.Stage.Open(str(assets / name))
        times = three_times(stage)
        for drawn in purposes:
            scene = hdwarp.Scene(stage, purposes=drawn, time=times[0], device="cpu")
            for number in times:
                scene.sync(number)
                code = scene.time_code
                told = {item.path for item in scene.diagnostics}
                look = Look(name, number, drawn, expected_paths(stage, code, drawn), drawn_paths(scene), told)
                cameras = [c.path for c in scene.index.cameras.values() if c.path.startswith("/")]
                for camera in cameras or [""]:
                    look.frames[camera] = hdwarp.render(scene, camera or None, resolution=size, aovs=["color", "rgba8", "primId"])
                yield look


def silently_missing(look: Look) -> set[str]:
    """What pxr expects, that is not drawn and that no diagnostic names: neither itself, nor what is below a point instancer or a model."""
    return {
        path for path in look.expected - look.drawn if path not in look.told and not any(told.startswith(f"{path}/") for told in look.told)
    }


def seen_alone(stage: Usd.Stage, look: Look, path: str) -> bool:
    """Whether a prim is in the picture that shows it alone, framed: another may stand before it, or lie where it does, in all others."""
    scene = hdwarp.Scene(stage, purposes=look.purposes, time=look.time, mask=[path], device="cpu")
    return bool((hdwarp.render(scene, resolution=(64, 48), aovs=["primId"])["primId"] >= 0).any())


def contact_sheet(assets: Path, out: Path) -> None:
    """A picture of every stage from every camera, named, at the time when most is seen."""
    pictures = []
    for name in stage_names(assets):
        looks = sweep(assets, [name], size=TILE, purposes=[("default", "render")])
        look = max(looks, key=lambda look: sum((frame["primId"] >= 0).sum() for frame in look.frames.values()))
        pictures += [(f"{Path(name).stem} {camera}".strip(), _shown(frame["rgba8"])) for camera, frame in look.frames.items()]
    _write_sheet(pictures, out, columns=7)


def looks_sheet(assets: Path, out: Path) -> None:
    """Stages of `LOOKS` in `preview`, beside the textures and thumbnails that come with them. Those that are very dark or bright by the
    lights they have are exposed anew: "x 8" says by how much."""
    import PIL.Image

    from hdwarp.shade.encode import srgb_bytes

    pictures = []
    for end, camera, beside in LOOKS:
        name = next(name for name in stage_names(assets) if name.endswith(end))
        frame = hdwarp.render(str(assets / name), camera, resolution=TILE, aovs=["color", "primId"], samples=9, device="cpu")
        color = frame["color"]
        bright = float(np.quantile(color[frame["primId"] >= 0][:, :3].max(axis=1), 0.9))
        gain = 1.0 if 0.1 < bright < 2.0 else 2.0 ** round(np.log2(0.6 / bright))
        straight = color[..., :3] / np.maximum(color[..., 3:], 1e-6) * gain
        rgba = np.concatenate([srgb_bytes(straight), np.uint8(color[..., 3:] * 255 + 0.5)], axis=2)
        label = f"{Path(name).stem} {camera or ''}".strip()
        pictures.append((label if gain == 1.0 else f"{label} x {gain:g}", _shown(rgba)))
        if beside:
            file = next(file for file in sorted(assets.rglob(Path(beside).name)) if str(file).endswith(beside))
            there = PIL.Image.open(file).convert("RGBA")
            there.thumbnail(TILE)
            tile = PIL.Image.new("RGBA", TILE, (0, 0, 0, 0))
            tile.paste(there, ((TILE[0] - there.width) // 2, (TILE[1] - there.height) // 2))
            pictures.append((f"    {file.name}, of {Path(name).stem}", _shown(np.array(tile))))
    _write_sheet(pictures, out, columns=5)


def _shown(rgba: np.ndarray) -> np.ndarray:
    """Before dark grey."""
    alpha = rgba[..., 3:].astype(float) / 255
    return (rgba[..., :3] * alpha + np.array([52, 54, 62]) * (1 - alpha)).astype(np.uint8)


def _write_sheet(pictures: list[tuple[str, np.ndarray]], out: Path, columns: int) -> None:
    import PIL.Image
    import PIL.ImageDraw

    rows = -(-len(pictures) // columns)
    width, height = TILE[0] + 4, TILE[1] + 16
    sheet = PIL.Image.new("RGB", (columns * width, rows * height), (250, 250, 250))
    draw = PIL.ImageDraw.Draw(sheet)
    for k, (label, shown) in enumerate(pictures):
        x, y = k % columns * width + 2, k // columns * height + 2
        sheet.paste(PIL.Image.fromarray(shown), (x, y))
        draw.text((x + 2, y + TILE[1] + 1), label[:44], fill=(20, 20, 20))
    out.parent.mkdir(parents=True, exist_ok=True)
    sheet.quantize(255, dither=PIL.Image.Dither.NONE).save(out, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assets", type=Path)
    parser.add_argument("--sheet", type=Path)
    parser.add_argument("--looks", type=Path)
    arguments = parser.parse_args()
    if arguments.sheet:
        contact_sheet(arguments.assets, arguments.sheet)
    if arguments.looks:
        looks_sheet(arguments.assets, arguments.looks)
    if not (arguments.sheet or arguments.looks):
        start, count = time.perf_counter(), 0
        for look in sweep(arguments.assets, stage_names(arguments.assets)):
            count += len(look.frames)
            missing = silently_missing(look)
            if missing or look.drawn - look.expected:
                print(
                    look.name,
                    look.time,
                    look.purposes,
                    "missing",
                    sorted(missing)[:5],
                    "not expected",
                    sorted(look.drawn - look.expected)[:5],
                )
        print(f"{count} pictures in {time.perf_counter() - start:.1f} s")
