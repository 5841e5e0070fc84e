"""How fast the tracer is, as ratios to Open3D's Embree (`cast_rays`) in the same run, and tree builds to `wp.Mesh`.

    python tests/bench/bench_trace.py [--threads N] [--rounds N] [--only NAME,...]

Runs are interleaved; a line gives the median ratio and, for orientation, the best times. Other renders are added to a case's dictionary.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import warp as wp

_spec = importlib.util.spec_from_file_location("trace_scene", Path(__file__).parents[1] / "trace" / "trace_scene.py")
tools = sys.modules["trace_scene"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tools)

from hdwarp.launch import thread_count  # noqa: E402
from hdwarp.tables import bvh  # noqa: E402
from hdwarp.trace import SceneKinds  # noqa: E402

MESH_ONLY = SceneKinds(mesh=True)
Runs = dict[str, Callable[[], object]]


def interleaved(runs: Runs, rounds: int) -> dict[str, np.ndarray]:
    """Seconds of every round of every run, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: np.array(t) for name, t in times.items()}


def report(case: str, runs: Runs, rounds: int, *, faster: bool = True) -> None:
    """The first run is the measure of the others: how many times faster (or, for builds, how many times as long) they are."""
    times = interleaved(runs, rounds)
    reference, *others = times
    base = times[reference]
    for name in others:
        ratio = np.median(base) / np.median(times[name]) if faster else np.median(times[name]) / np.median(base)
        word = "x as fast as" if faster else "x the time of"
        print(
            f"{case:34s} {name:8s} {ratio:6.2f} {word} {reference} (best {times[name].min() * 1e3:.2f} ms, {base.min() * 1e3:.2f} ms)",
            flush=True,
        )


def embree(points: np.ndarray, triangles: np.ndarray, camera) -> Callable[[], object]:
    import open3d

    scene = open3d.t.geometry.RaycastingScene()
    scene.add_triangles(open3d.core.Tensor(np.asarray(points, np.float32)), open3d.core.Tensor(np.asarray(triangles, np.uint32)))
    shape = (camera.height, camera.width, 3)
    rays = np.concatenate([np.broadcast_to(a, shape) for a in camera.rays()], -1).astype(np.float32)
    tensor, count = open3d.core.Tensor(rays), thread_count()
    return lambda: scene.cast_rays(tensor, nthreads=count)


def mesh_case(points: np.ndarray, triangles: np.ndarray, camera) -> Runs:
    scene = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))], kinds=MESH_ONLY, affine=False)
    return {"Open3D": embree(points, triangles, camera), "trace": scene.tracer([camera])[0]}


def instances_case(width: int, height: int, count: int = 1000) -> Runs:
    """Rotated, scaled instances of 1,056 triangles against their flattened scene."""
    rng = np.random.default_rng(0)
    points, triangles = tools.bumpy_sphere(17)
    places = rng.uniform(-5, 5, (count, 3)) * [1, 1, 0.4]
    instances = [tools.Instance(tools.rotation(rng.normal(size=3), rng.uniform(0, 6)) * rng.uniform(0.2, 0.45), place) for place in places]
    flat = np.concatenate([points @ np.asarray(i.linear).T + i.translation for i in instances])
    faces = np.concatenate([triangles + k * len(points) for k in range(count)])
    camera = tools.perspective(width, height, eye=(9, -7, 4.5), turn=tools.look_at((9, -7, 4.5), (0, 0, 0)))
    scene = tools.Scene([(points, triangles)], instances, kinds=MESH_ONLY, affine=False)
    return {"Open3D": embree(flat, faces, camera), "trace": scene.tracer([camera])[0]}


def architecture() -> tuple[np.ndarray, np.ndarray]:
    """Large floors and walls, thin beams and dense clutter in one mesh of 169k triangles."""
    rng = np.random.default_rng(1)
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    unit = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    faces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7]]
    box = np.array([*faces, [1, 7, 3]])

    def add_box(centre, half, turn=None):
        corners = unit * half
        parts.append(((corners if turn is None else corners @ turn.T) + centre, box))

    for i in range(10):
        for j in range(10):
            add_box([i * 4, j * 4, -0.1], [2, 2, 0.1])
            add_box([i * 4 + 2, j * 4, 1.5], [0.05, 2 if (i + j) % 2 else 0.8, 1.5])
            add_box([i * 4, j * 4 + 2, 1.5], [2 if (i * j) % 2 else 0.8, 0.05, 1.5])
    for _ in range(600):
        turn = tools.rotation((0, 0, 1), rng.uniform(0, 6)) if rng.random() < 0.3 else np.eye(3)
        half = rng.permutation([rng.uniform(3, 9), 0.03, 0.03]) if rng.random() < 0.9 else np.array([0.03, 0.03, 1.5])
        add_box(rng.uniform([0, 0, 2.4], [38, 38, 3.2]), half, turn)
    points, triangles = tools.bumpy_sphere(17)
    for _ in range(150):
        turn = tools.rotation(rng.normal(size=3), rng.uniform(0, 6)) * rng.uniform(0.05, 0.5)
        parts.append((points @ turn.T + rng.uniform([0, 0, 0.2], [38, 38, 1.5]), triangles))
    starts = np.cumsum([0] + [len(p) for p, _ in parts])
    return (
        np.concatenate([p for p, _ in parts]).astype(np.float32),
        np.concatenate([t + s for (_, t), s in zip(parts, starts, strict=False)]).astype(np.int32),
    )


def build_case(n: int) -> Runs:
    points, triangles = tools.bumpy_sphere(n)
    on_device = wp.array(points, dtype=wp.vec3f, device="cpu")
    corners, flat = wp.array(triangles, dtype=wp.vec3i, device="cpu"), wp.array(triangles.ravel(), dtype=wp.int32, device="cpu")
    start = np.array([0, len(triangles)]), np.array([0])
    built = bvh.build_meshes(on_device, corners, *start, device="cpu")
    return {
        "wp.Mesh": lambda: wp.Mesh(on_device, flat, bvh_constructor="sah"),
        "build": lambda: bvh.build_meshes(on_device, corners, *start, device="cpu"),
        "refit": lambda: bvh.refit_meshes(built, on_device),
    }


def many_views_case() -> Runs:
    """256 views of 64 x 64 of ten shapes in one launch; Open3D once a view of the same size on a box mesh, for scale only."""
    rng = np.random.default_rng(2)
    instances = [
        tools.Instance(tools.random_affine(rng, mirrored=False) * 0.3, rng.uniform(-1, 1, 3), kind=tools.SPHERE + k % 2) for k in range(10)
    ]
    scene = tools.Scene([], instances, kinds=SceneKinds(mesh=False, shapes=True), affine=False)
    cameras = []
    for _ in range(256):
        eye = rng.normal(size=3)
        eye *= 4 / np.linalg.norm(eye)
        cameras.append(tools.perspective(64, 64, eye=eye, turn=tools.look_at(eye, (0, 0, 0))))
    points, triangles = tools.bumpy_sphere(17)
    one = embree(points, triangles, cameras[0])
    return {"Open3D": lambda: [one() for _ in range(256)], "trace": scene.tracer(cameras)[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, help="threads on both sides; default: all cores")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default="", help="names of cases, comma separated")
    options = parser.parse_args()
    wp.config.quiet = True
    inside, above = ((17.13, 16.87, 1.57), (30, 25, 1.2)), ((-8, -8, 14), (18, 18, 0))
    cases: dict[str, Callable[[], Runs]] = {
        "sphere-25k": lambda: mesh_case(*tools.bumpy_sphere(80), tools.perspective(640, 480)),
        "sphere-638k": lambda: mesh_case(*tools.bumpy_sphere(400), tools.perspective(640, 480)),
        "sphere-638k-1080p": lambda: mesh_case(*tools.bumpy_sphere(400), tools.perspective(1920, 1080)),
        "instances-1000": lambda: instances_case(640, 480),
        "instances-1000-1080p": lambda: instances_case(1920, 1080),
        **{
            f"architecture-{name}": lambda eye=eye, at=at: mesh_case(
                *architecture(), tools.perspective(640, 480, eye=eye, turn=tools.look_at(eye, at))
            )
            for name, (eye, at) in (("inside", inside), ("above", above))
        },
        "views-256x64x64": many_views_case,
    }
    builds = {"build-25k": 80, "build-638k": 400}
    chosen = [name for name in options.only.split(",") if name]
    with tools.threads(options.threads):
        print(f"{thread_count()} threads, {options.rounds} rounds")
        for name, make in cases.items():
            if not chosen or name in chosen:
                report(name, make(), options.rounds)
        for name, n in builds.items():
            if not chosen or name in chosen:
                report(name, build_case(n), max(options.rounds // 2, 3), faster=False)


if __name__ == "__main__":
    main()
