"""What opening a scene and following its edits cost, as ratios to what USD and Warp need for the same in the same run.

    python tests/bench/bench_live.py [--rounds N] [--only NAME,...]

Runs are interleaved; a line gives the ratio of the medians and, for orientation, the best times. Host and device memory are in bytes.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

import numpy as np
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, Vt

from hdwarp.scene import Scene
from hdwarp.stage.open import resolve_time
from hdwarp.stage.reader import read_stage

GROUP = 1000


def grid(side: int) -> tuple[np.ndarray, np.ndarray]:
    """(P, 3) float32 points and (T, 3) int32 triangles of a square of ``side`` x ``side`` points."""
    x, y = np.meshgrid(np.arange(side, dtype=np.float32), np.arange(side, dtype=np.float32))
    points = np.stack([x, y, np.sin(x * 0.1)], -1).reshape(-1, 3)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1, 1)
    triangles = np.concatenate([corner + (0, 1, side + 1), corner + (0, side + 1, side)]).astype(np.int32)
    return points, triangles


def add_mesh(spec: Sdf.PrimSpec, points: np.ndarray, triangles: np.ndarray) -> None:
    floats, ints = (Sdf.ValueTypeNames.Point3fArray, Vt.Vec3fArray), (Sdf.ValueTypeNames.IntArray, Vt.IntArray)
    for name, (value_type, array_type), values in (
        ("points", floats, points),
        ("faceVertexCounts", ints, np.full(len(triangles), 3, np.int32)),
        ("faceVertexIndices", ints, triangles.reshape(-1)),
    ):
        Sdf.AttributeSpec(spec, name, value_type).default = array_type.FromNumpy(values)


def grouped_stage(count: int, type_name: str, mesh: Callable[[int], tuple[np.ndarray, np.ndarray]] | None = None) -> Usd.Stage:
    """``count`` prims in groups, each with a translation of its own."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    with Sdf.ChangeBlock():
        for group in range(-(-count // GROUP)):
            above = Sdf.PrimSpec(layer, f"g{group}", Sdf.SpecifierDef, "Xform")
            for i in range(min(GROUP, count - group * GROUP)):
                spec = Sdf.PrimSpec(above, f"s{i}", Sdf.SpecifierDef, type_name)
                Sdf.AttributeSpec(spec, "xformOp:translate", Sdf.ValueTypeNames.Double3).default = Gf.Vec3d(i % 30, group % 30, i / 30)
                order = Sdf.AttributeSpec(spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Sdf.VariabilityUniform)
                order.default = Vt.TokenArray(["xformOp:translate"])
                if mesh is not None:
                    add_mesh(spec, *mesh(group * GROUP + i))
    return Usd.Stage.Open(layer)


def read_with_pxr(stage: Usd.Stage) -> None:
    """The arrays and local transforms of all meshes, and nothing else."""
    cache = UsdGeom.XformCache()
    for prim in stage.Traverse():
        if prim.IsA(UsdGeom.Xformable):
            cache.GetLocalTransformation(prim)
        if prim.IsA(UsdGeom.Mesh):
            mesh = UsdGeom.Mesh(prim)
            for attribute in (mesh.GetPointsAttr(), mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr()):
                np.asarray(attribute.Get())


def interleaved(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of every round of every run, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            gc.collect()
            start = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: np.array(t) for name, t in times.items()}


def report(case: str, runs: dict[str, Callable[[], object]], rounds: int, limit: float) -> None:
    """The first run is the measure of the second."""
    base, ours = interleaved(runs, rounds).values()
    reference = next(iter(runs))
    ratio = np.median(ours) / np.median(base)
    best = f"(best {ours.min() * 1e3:.2f} ms, {base.min() * 1e3:.2f} ms)"
    print(f"{case:34s} {ratio:6.2f} x the time of {reference}, {limit:g} wanted {best}", flush=True)


def opening(rounds: int) -> None:
    square = np.array([(0, 1, 2), (0, 2, 3)], np.int32)

    def small(i: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array([(0, 0, i * 1e-3), (1, 0, i * 1e-3), (1, 1, 0), (0, 1, 0)], np.float32), square

    stage = grouped_stage(100_000, "Mesh", small)
    report("open 100,000 small meshes", {"pxr": lambda: read_with_pxr(stage), "ours": lambda: Scene(stage, device="cpu")}, rounds, 3)


def reading(rounds: int) -> None:
    points, triangles = grid(23)
    stage = grouped_stage(1000, "Mesh", lambda i: (points + np.float32(i), triangles))
    time_code = resolve_time(stage, None)
    runs = {"pxr": lambda: read_with_pxr(stage), "ours": lambda: read_stage(stage, time_code)}
    report("read 1 M triangles in 1,000 meshes", runs, 3 * rounds, 3)


def edits(rounds: int) -> None:
    """One edit at a time in a small and a large scene."""
    scenes = [Scene(grouped_stage(count, "Sphere"), device="cpu") for count in (1000, 100_000)]

    def move(scene: Scene) -> Callable[[], object]:
        attribute, places = scene.stage.GetPrimAtPath("/g0/s7").GetAttribute("xformOp:translate"), iter(range(10**9))

        def run() -> None:
            attribute.Set(Gf.Vec3d(next(places), 1, 2))
            scene.sync()

        return run

    def insert_and_remove(scene: Scene) -> Callable[[], object]:
        def run() -> None:
            UsdGeom.Sphere.Define(scene.stage, "/g0/new")
            scene.sync()
            scene.stage.RemovePrim("/g0/new")
            scene.sync()

        return run

    report("one of 100,000 prims moves", {"1,000 prims": move(scenes[0]), "ours": move(scenes[1])}, 20 * rounds, 2)
    both = {"1,000 prims": insert_and_remove(scenes[0]), "ours": insert_and_remove(scenes[1])}
    report("a prim comes and goes in 100,000", both, 2 * rounds, 40)
    start = time.perf_counter()
    for _ in range(1000):
        scenes[1].sync()
    print(f"{'sync of a static scene':34s} {(time.perf_counter() - start) * 1e3:6.1f} microseconds", flush=True)


def instances(rounds: int) -> None:
    count = 1_000_000
    stage = Usd.Stage.CreateInMemory()
    instancer = UsdGeom.PointInstancer.Define(stage, "/I")
    UsdGeom.Sphere.Define(stage, "/I/ball")
    instancer.CreatePrototypesRel().SetTargets(["/I/ball"])
    places = np.random.default_rng(0).uniform(-500, 500, (count, 3)).astype(np.float32)
    instancer.CreatePositionsAttr(Vt.Vec3fArray.FromNumpy(places))
    instancer.CreateProtoIndicesAttr(Vt.IntArray.FromNumpy(np.zeros(count, np.int32)))

    def usd_and_warp() -> None:
        matrices = np.asarray(instancer.ComputeInstanceTransformsAtTime(0.0, 0.0)).reshape(-1, 4, 4)
        at = matrices[:, 3, :3].astype(np.float32)
        wp.Bvh(wp.array(at - 1.0, dtype=wp.vec3f, device="cpu"), wp.array(at + 1.0, dtype=wp.vec3f, device="cpu"))

    report("open 1,000,000 point instances", {"usd + wp.Bvh": usd_and_warp, "ours": lambda: Scene(stage, device="cpu")}, rounds, 2)
    with Scene(stage, device="cpu") as scene:
        print(f"{'device memory of an instance':34s} {scene.tables.device_bytes / count:6.0f} bytes, 250 wanted", flush=True)


def deforming(rounds: int) -> None:
    points, triangles = grid(316)
    stage = Usd.Stage.CreateInMemory()
    mesh = UsdGeom.Mesh.Define(stage, "/cloth")
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.reshape(-1)))
    shapes = [points + np.float32((0, 0, k)) * np.cos(points[:, :1]) for k in range(8)]
    for k, shape in enumerate(shapes):
        mesh.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy(shape), k)
    scene = Scene(stage, device="cpu", time=0.0)
    theirs = wp.Mesh(wp.array(points, dtype=wp.vec3f, device="cpu"), wp.array(triangles.reshape(-1), dtype=wp.int32, device="cpu"))
    turn = iter(range(10**9))

    def warp() -> None:
        theirs.points.numpy()[:] = shapes[next(turn) % 8].copy()
        theirs.refit()

    runs = {"copy + wp.Mesh.refit": warp, "ours": lambda: scene.sync(float(next(turn) % 8))}
    report("100,000 points move", runs, 10 * rounds, 3)


def simulated(rounds: int) -> None:
    """Points that are on the device already, with and without normals to follow, and values of a primvar."""
    points, triangles = grid(316)
    stage = Usd.Stage.CreateInMemory()
    mesh = UsdGeom.Mesh.Define(stage, "/cloth")
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.reshape(-1)))
    shapes = [wp.array(points + np.float32((0, 0, k)) * np.cos(points[:, :1]), dtype=wp.vec3f, device="cpu") for k in range(8)]
    heat = wp.zeros(len(points), dtype=wp.float32, device="cpu")
    scene = Scene(stage, device="cpu")
    theirs = wp.Mesh(wp.array(points, dtype=wp.vec3f, device="cpu"), wp.array(triangles.reshape(-1), dtype=wp.int32, device="cpu"))
    turn = iter(range(10**9))

    def warp() -> None:
        wp.copy(theirs.points, shapes[next(turn) % 8])
        theirs.refit()

    runs = {"copy + wp.Mesh.refit": warp, "ours": lambda: scene.set_points("/cloth", shapes[next(turn) % 8])}
    report("set_points of 100,000", runs, 10 * rounds, 3)
    scene.tables.primvar("normals", 3)
    report("set_points, smooth normals too", runs, 10 * rounds, 4)
    scene.set_primvar("/cloth", "heat", heat)
    scene.tables.primvar("heat")
    runs = {"wp.copy": lambda: wp.copy(heat, heat), "ours": lambda: scene.set_primvar("/cloth", "heat", heat)}
    report("set_primvar of 100,000", runs, 10 * rounds, 50)


CASES = {"opening": opening, "reading": reading, "edits": edits, "instances": instances, "deforming": deforming, "simulated": simulated}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(CASES))
    options = parser.parse_args()
    wp.config.quiet = True
    for name in options.only.split(","):
        CASES[name](options.rounds)


if __name__ == "__main__":
    main()
