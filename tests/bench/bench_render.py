"""Whole renders against Open3D's Embree (`cast_rays`) in the same process, and the whole command against its imports.

    python tests/bench/bench_render.py [--rounds N] [--only NAME,...]

A line a figure: the median ratio of interleaved runs. Renders go through `Scene` and `SensorCamera`, from posed
state to finished planes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import warp as wp
from pxr import Gf, Usd, UsdGeom, Vt

wp.config.log_level = wp.LOG_ERROR

import hdwarp  # noqa: E402

DEPTH = ("distance_to_image_plane",)
FULL = ("distance_to_image_plane", "Ngeom", "primId", "elementId", "barycentric")  # what cast_rays gives, and depth
SAMPLES = Path(__file__).parents[2] / "sample_stages"


def bumpy_sphere(rings: int) -> tuple[np.ndarray, np.ndarray]:
    """(P, 3) points and (T, 3) triangles: 25,122 of them with 80 rings, 637,602 with 400."""
    u, v = np.meshgrid(np.linspace(0, np.pi, rings), np.linspace(0, 2 * np.pi, 2 * rings), indexing="ij")
    radius = 1 + 0.05 * np.sin(20 * u) * np.cos(17 * v)
    points = np.stack([radius * np.sin(u) * np.cos(v), radius * np.sin(u) * np.sin(v), radius * np.cos(u)], -1).reshape(-1, 3)
    quad = np.arange((rings - 1) * (2 * rings - 1))
    first = quad // (2 * rings - 1) * 2 * rings + quad % (2 * rings - 1)
    lower = np.stack([first, first + 1, first + 2 * rings], -1)
    upper = np.stack([first + 1, first + 2 * rings + 1, first + 2 * rings], -1)
    return points.astype(np.float32), np.concatenate([lower, upper]).astype(np.int32)


def mesh_stage(points: np.ndarray, triangles: np.ndarray, width: int, height: int) -> Usd.Stage:
    """The mesh at the origin, a camera three units away whose picture is 10/12 of its height across at depth 1."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/mesh")
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.ravel()))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    camera = UsdGeom.Camera.Define(stage, "/camera")
    camera.AddTranslateOp().Set(Gf.Vec3d(0, 0, 3))
    camera.CreateFocalLengthAttr(12.0)
    camera.CreateHorizontalApertureAttr(10.0 * width / height)
    camera.CreateVerticalApertureAttr(10.0)
    camera.CreateClippingRangeAttr(Gf.Vec2f(0.01, 1000))
    return stage


def embree(points: np.ndarray, triangles: np.ndarray, camera_K: np.ndarray, width: int, height: int):
    import open3d

    scene = open3d.t.geometry.RaycastingScene()
    scene.add_triangles(open3d.core.Tensor(points), open3d.core.Tensor(triangles.astype(np.uint32)))
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    directions = np.stack([(x - camera_K[0, 2]) / camera_K[0, 0], -(y - camera_K[1, 2]) / camera_K[1, 1], -np.ones_like(x)], -1)
    rays = np.concatenate([np.broadcast_to((0.0, 0.0, 3.0), directions.shape), directions], -1).astype(np.float32)
    tensor = open3d.core.Tensor(rays)
    return lambda: scene.cast_rays(tensor)


def renders(name: str, rings: int, width: int, height: int, rounds: int) -> None:
    points, triangles = bumpy_sphere(rings)
    stage = mesh_stage(points, triangles, width, height)
    with hdwarp.Scene(stage, device="cpu") as scene:
        state = scene.state()
        runs = {"Open3D": embree(points, triangles, hdwarp.render(stage, resolution=(width, height), device="cpu").K, width, height)}
        for planes, aovs in (("depth", DEPTH), ("depth + normal + ids + barycentric", FULL), ("colour", ("color",))):
            sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(width, height))
            out = sensor.allocate(aovs)
            runs[planes] = lambda sensor=sensor, out=out: sensor.update(state, out, pose=False)
        report(f"{name}, {len(triangles):,} triangles, {width}x{height}", runs, rounds)


def report(case: str, runs: dict, rounds: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - start)
    base = np.median(times["Open3D"])
    for name, seconds in times.items():
        if name != "Open3D":
            print(f"{case}: {name}: {base / np.median(seconds):.2f} x as fast as Open3D ({np.median(seconds) * 1e3:.1f} ms)", flush=True)


def start(rounds: int) -> None:
    """`hdwarp render` of a small stage with warm caches, against starting Warp and importing Usd."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "import sys; from hdwarp.cli import main; sys.exit(main())", "render"]
        command += [str(SAMPLES / "hello_camera.usda"), "-o", str(Path(folder) / "a.exr"), "--overwrite", "--device", "cpu"]
        imports = [sys.executable, "-c", "import warp; warp.init(); from pxr import Usd"]
        seconds: dict[str, list[float]] = {"command": [], "imports": []}
        for turn in range(rounds + 1):
            for name, arguments in (("command", command), ("imports", imports)):
                begin = time.perf_counter()
                subprocess.run(arguments, check=True, capture_output=True)
                if turn:
                    seconds[name].append(time.perf_counter() - begin)
        ours, base = np.median(seconds["command"]), np.median(seconds["imports"])
        print(f"whole command: {ours:.2f} s; imports alone {base:.2f} s; 1.5 x imports + 0.5 s = {1.5 * base + 0.5:.2f} s", flush=True)


CASES = {
    "large": lambda rounds: renders("bumpy sphere", 400, 640, 480, rounds),
    "small": lambda rounds: renders("bumpy sphere", 80, 640, 480, rounds),
    "hd": lambda rounds: renders("bumpy sphere", 400, 1920, 1080, rounds),
    "start": start,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default=",".join(CASES))
    options = parser.parse_args()
    for name in options.only.split(","):
        CASES[name](options.rounds)


if __name__ == "__main__":
    main()
