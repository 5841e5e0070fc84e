"""How fast the tracer is, as ratios to Open3D's Embree (`cast_rays`) in the same run, and tree builds to `wp.Mesh`.

Cases named `guard` compare with `wp.mesh_query_ray` on the same mesh and end with status 1 below their floor: lost compiler flags (a newer
Warp may drop them) show there, as a factor of three, on any machine.

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

from hdwarp.launch import launch, thread_count  # noqa: E402
from hdwarp.tables import bvh, structs  # noqa: E402
from hdwarp.trace import SceneKinds, occluded, ray_bundles, trace_free, trace_rays  # noqa: E402

MESH_ONLY = SceneKinds(mesh=True)
# Cylinder, cone, capsule, capsule of two radii, sphere: (kind, *InstanceColumns.shape).
ROUND_SHAPES = (
    (tools.CONE, 1.0, 1.0, 1.0, 0.0),
    (tools.CONE, 1.0, 0.0, 1.0, 0.0),
    (tools.CAPSULE, 1.0, 1.0, 0.5, 0.0),
    (tools.CAPSULE, 0.9, 0.5, 0.6, 0.0),
    (tools.SPHERE,),
)
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


def report(case: str, runs: Runs, rounds: int, *, faster: bool = True) -> float:
    """The first run is the measure of the others: how many times faster (or, for builds, how many times as long) they are. Returns the
    last ratio."""
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
    return float(ratio)


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


@wp.kernel(enable_backward=False)
def _query_rays(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    mesh: wp.uint64,
    origin: wp.vec3f,
    directions: wp.array[wp.vec3f],
    face: wp.array[wp.int32],
    t: wp.array[wp.float32],
):
    i = first + wp.tid() * step
    if i >= count:
        return
    query = wp.mesh_query_ray(mesh, origin, directions[i], 1.0e30)
    face[i] = wp.where(query.result, query.face, -1)
    t[i] = query.t


def guard_case(n: int) -> Runs:
    """Warp's own single rays against the packets, on the same threads."""
    points, triangles = tools.bumpy_sphere(n)
    camera = tools.perspective(640, 480)
    scene = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))], kinds=MESH_ONLY, affine=False)
    mesh = wp.Mesh(wp.array(points, dtype=wp.vec3f, device="cpu"), wp.array(triangles.ravel(), dtype=wp.int32, device="cpu"))
    directions = wp.array(camera.rays()[1].reshape(-1, 3).astype(np.float32), dtype=wp.vec3f, device="cpu")
    face, t = (wp.empty(len(directions), dtype=dtype, device="cpu") for dtype in (wp.int32, wp.float32))

    def query() -> None:
        launch(_query_rays, len(directions), [mesh.id, wp.vec3f(*camera.origin), directions], [face, t], device="cpu", grain=4096)

    return {"mesh_query_ray": query, "trace": scene.tracer([camera])[0]}


class RayCase:
    """Rays of one bundle on one mesh, for our tracers and for Open3D."""

    def __init__(self, n: int, origin: np.ndarray, directions: np.ndarray, origins: np.ndarray | None = None) -> None:
        import open3d

        points, triangles = tools.bumpy_sphere(n)
        scene = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))], kinds=MESH_ONLY, affine=False)
        top = structs.TopLevel()
        top.nodes, top.children = scene.top.nodes, scene.top.children
        self.bundles = ray_bundles(origin, directions.shape[:2], root=int(scene.top.root[0]), device="cpu")
        self.directions = wp.array(directions.reshape(-1, 3).astype(np.float32), dtype=wp.vec3f, device="cpu")
        self.origins = None if origins is None else wp.array(origins.astype(np.float32), dtype=wp.vec3f, device="cpu")
        self.tables, self.options = (scene.columns, scene.rows, top), {"kinds": MESH_ONLY, "device": "cpu"}
        self.hits, self.blocked = self.bundles.hits(), wp.zeros(directions.size // 3, dtype=wp.bool, device="cpu")
        starts = np.broadcast_to(origin, directions.shape).reshape(-1, 3) + (0 if origins is None else origins)
        rays = np.concatenate([starts, directions.reshape(-1, 3)], -1).astype(np.float32)
        self.caster, self.rays, self.threads = open3d.t.geometry.RaycastingScene(), open3d.core.Tensor(rays), thread_count()
        self.caster.add_triangles(open3d.core.Tensor(points), open3d.core.Tensor(triangles.astype(np.uint32)))

    def open3d(self) -> None:
        self.caster.cast_rays(self.rays, nthreads=self.threads)

    def open3d_occluded(self) -> None:
        self.caster.test_occlusions(self.rays, tnear=0.0, tfar=1e30, nthreads=self.threads)

    def packets(self) -> None:
        trace_free(self.bundles, self.directions, *self.tables, self.hits, **self.options)

    def singly(self) -> None:
        trace_rays(self.bundles, self.origins, self.directions, *self.tables, self.hits, **self.options)

    def occluded(self) -> None:
        occluded(self.bundles, self.origins, self.directions, *self.tables, out=self.blocked, **self.options)


def lidar_case(n: int) -> Runs:
    """A dense lidar from inside: 512 rows of 1024 rays all around, within 60 degrees of the horizon."""
    v, u = np.meshgrid(np.linspace(-1.05, 1.05, 512), np.linspace(-np.pi, np.pi, 1024), indexing="ij")
    case = RayCase(n, np.array([0.3, 0.2, 0.1]), np.stack([np.cos(v) * np.cos(u), np.cos(v) * np.sin(u), np.sin(v)], -1))
    return {"Open3D": case.open3d, "single": case.singly, "free": case.packets}


def pinhole_case(n: int) -> Runs:
    """Rays of a 640 x 480 camera as free directions; half of them miss."""
    camera = tools.perspective(640, 480)
    directions = camera.rays()[1]
    case = RayCase(n, camera.origin, directions / np.linalg.norm(directions, axis=-1, keepdims=True))
    return {"Open3D": case.open3d, "single": case.singly, "free": case.packets}


def shadow_case(n: int) -> Runs:
    """Whether anything lies between a point and what a camera's rays pass: any hit will do."""
    camera = tools.perspective(640, 480)
    directions = camera.rays()[1]
    case = RayCase(n, camera.origin, directions / np.linalg.norm(directions, axis=-1, keepdims=True))
    return {"Open3D": case.open3d_occluded, "occluded": case.occluded}


def incoherent_case(n: int, count: int = 200_000) -> Runs:
    """From random points inside in random directions."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(1, count, 3))
    case = RayCase(n, np.zeros(3), directions / np.linalg.norm(directions, axis=-1, keepdims=True), rng.uniform(-0.5, 0.5, (count, 3)))
    return {"Open3D": case.open3d, "single": case.singly}


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


def many_views_case(shapes: tuple = ((tools.SPHERE,), (tools.CUBE,))) -> Runs:
    """256 views of 64 x 64 of ten shapes in one launch; Open3D once a view of the same size on a box mesh, for scale only."""
    rng = np.random.default_rng(2)
    instances = []
    for k in range(10):
        kind, *shape = shapes[k % len(shapes)]
        linear, place = tools.random_affine(rng, mirrored=False) * 0.3, rng.uniform(-1, 1, 3)
        instances.append(tools.Instance(linear, place, kind=kind, shape=tuple(shape) or (0.0,) * 4))
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
        "views-256x64x64-round": lambda: many_views_case(ROUND_SHAPES),
        **{
            f"{name}-{size}": lambda make=make, n=n: make(n)
            for name, make in (
                ("lidar", lidar_case),
                ("pinhole-rays", pinhole_case),
                ("shadow", shadow_case),
                ("incoherent", incoherent_case),
            )
            for size, n in (("25k", 80), ("638k", 400))
        },
    }
    guards = {"guard-25k": (80, 9.0), "guard-638k": (400, 4.5)}  # floors: half of what is usual, well above what default flags reach
    builds = {"build-25k": 80, "build-638k": 400}
    chosen = [name for name in options.only.split(",") if name]
    lost: list[str] = []
    with tools.threads(options.threads):
        print(f"{thread_count()} threads, {options.rounds} rounds")
        for name, make in cases.items():
            if not chosen or name in chosen:
                report(name, make(), options.rounds)
        for name, (n, floor) in guards.items():
            if (not chosen or name in chosen) and report(name, guard_case(n), options.rounds) < floor:
                lost.append(f"{name}: below {floor} times wp.mesh_query_ray; are the compiler flags accepted (`hdwarp doctor`)?")
        for name, n in builds.items():
            if not chosen or name in chosen:
                report(name, build_case(n), max(options.rounds // 2, 3), faster=False)
    if lost:
        sys.exit("\n".join(lost))


if __name__ == "__main__":
    main()
