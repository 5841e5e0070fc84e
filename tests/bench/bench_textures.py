"""Colour of a textured mesh that fills the picture against depth alone, one sample a pixel: interleaved medians.

    python tests/bench/bench_textures.py [--rounds N] [--only NAME,...] [--steps]

With ``--steps`` also what each kernel adds: the same picture with the steps of the colour plan taken away from the end.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import PIL.Image
import warp as wp
from bench_render import bumpy_sphere
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade, Vt

wp.config.log_level = wp.LOG_ERROR

import hdwarp  # noqa: E402
from hdwarp.launch import Pipeline, cut  # noqa: E402
from hdwarp.trace import trace_step  # noqa: E402

SIZE = 2048  # texels


def stage_of(rings: int, width: int, height: int, file: Path | None, *, smooth: bool) -> Usd.Stage:
    """The bumpy sphere so near that it fills the picture, laid with ``file`` by angles, a texel a pixel or two."""
    points, triangles = bumpy_sphere(rings)
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/mesh")
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.ravel()))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    if smooth:
        mesh.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(points / np.linalg.norm(points, axis=1, keepdims=True)))
    u, v = np.meshgrid(np.linspace(0, 1, rings), np.linspace(0, 1, 2 * rings), indexing="ij")
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, "vertex")
    primvar.Set(Vt.Vec2fArray.FromNumpy(np.stack([v, u], -1).reshape(-1, 2).astype(np.float32)))
    camera = UsdGeom.Camera.Define(stage, "/camera")
    camera.AddTranslateOp().Set(Gf.Vec3d(0, 1.5, 0))
    camera.AddRotateXOp().Set(-90.0)
    camera.CreateFocalLengthAttr(15.0)
    camera.CreateHorizontalApertureAttr(10.0 * width / height)
    camera.CreateVerticalApertureAttr(10.0)
    if file is not None:
        material = UsdShade.Material.Define(stage, "/m")
        shader = UsdShade.Shader.Define(stage, "/m/s")
        shader.CreateIdAttr("UsdPreviewSurface")
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
        reader = UsdShade.Shader.Define(stage, "/m/r")
        reader.CreateIdAttr("UsdPrimvarReader_float2")
        reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set("st")
        image = UsdShade.Shader.Define(stage, "/m/t")
        image.CreateIdAttr("UsdUVTexture")
        image.CreateInput("file", Sdf.ValueTypeNames.Asset).Set(str(file))
        for wrap in ("wrapS", "wrapT"):
            image.CreateInput(wrap, Sdf.ValueTypeNames.Token).Set("repeat")
        image.CreateInput("st", Sdf.ValueTypeNames.Float2).ConnectToSource(reader.ConnectableAPI(), "result")
        shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).ConnectToSource(image.ConnectableAPI(), "rgb")
        UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
    return stage


def medians(runs: dict, rounds: int) -> dict[str, float]:
    """Milliseconds; a first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: 1e3 * float(np.median(found)) for name, found in times.items()}


def prefixes(sensor: hdwarp.SensorCamera) -> dict:
    """The last plan of a sensor, its steps taken one by one: name of the last step -> a run."""
    plan = next(reversed(sensor._pass._plans.values()))
    record, resolve = plan.record, plan.truth._plan
    step, jobs_per_tile = trace_step(**record._scene())
    bands, runs = record.views.bands, {}
    for count in range(len(resolve.steps.kernels) + 1):
        steps, stretches = resolve.steps.kernels[:count], []
        for first, last in cut(len(bands) - 1, 1, "cpu"):
            tiles, lines = zip(bands[first], bands[last], strict=True)
            of_lines = (lines[0] * resolve.steps.jobs_per_line, lines[1] * resolve.steps.jobs_per_line)
            stretches.append([(tiles[0] * jobs_per_tile, tiles[1] * jobs_per_tile), *[of_lines] * count])
        runs[f"{count}:{([step, *steps])[-1][0].key}"] = Pipeline([step, *steps], stretches, device="cpu").run
    return runs


def measure(name: str, rings: int, width: int, height: int, rounds: int, *, smooth: bool, steps: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.png"
        PIL.Image.fromarray(np.random.default_rng(0).integers(0, 256, (SIZE, SIZE, 3)).astype(np.uint8)).save(file)
        runs, keep = {}, []
        for kind, texture, aovs in (
            ("depth", None, ["distance_to_image_plane"]),
            ("plain colour", None, ["color"]),
            ("textured colour", file, ["color"]),
            ("textured rgba8", file, ["rgba8"]),
        ):
            scene = hdwarp.Scene(stage_of(rings, width, height, texture, smooth=smooth), device="cpu")
            sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(width, height))
            out, state = sensor.allocate(aovs), scene.state()
            runs[kind] = lambda sensor=sensor, out=out, state=state: sensor.update(state, out, pose=False)
            keep.append((scene, sensor))
        found = medians(runs, rounds)
        base = found["depth"]
        print(f"{name}, {width}x{height}: depth {base:.2f} ms", flush=True)
        for kind, milliseconds in list(found.items())[1:]:
            print(f"{name}: {kind}: {milliseconds / base:.2f} x depth alone ({milliseconds:.2f} ms)", flush=True)
        if steps:
            before = 0.0
            for kind, milliseconds in medians(prefixes(keep[2][1]), rounds).items():
                print(f"{name}: {kind}: + {milliseconds - before:.2f} ms", flush=True)
                before = milliseconds
        for scene, _ in keep:
            scene.close()


CASES = {"small": (80, 640, 480), "large": (400, 640, 480), "hd": (400, 1920, 1080)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--smooth", action="store_true", help="with authored normals")
    parser.add_argument("--steps", action="store_true")
    options = parser.parse_args()
    for name in options.only.split(","):
        measure(name, *CASES[name], options.rounds, smooth=options.smooth, steps=options.steps)


if __name__ == "__main__":
    main()
