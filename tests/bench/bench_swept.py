"""How fast points and curves are traced: points as ratios to rays through a `wp.Bvh` over the same balls, curves to Open3D's and our own
triangles of the same tubes. All on equal threads, in the same run.

    python tests/bench/bench_swept.py [--threads N] [--rounds N] [--only NAME,...]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import warp as wp

for _name, _folder in (("swept_scene", "trace"), ("bench_trace", "bench")):
    _spec = importlib.util.spec_from_file_location(_name, Path(__file__).parents[1] / _folder / f"{_name}.py")
    sys.modules[_name] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[_name])
swept_scene, bench = sys.modules["swept_scene"], sys.modules["bench_trace"]
tools = swept_scene.tools

from hdwarp.launch import launch  # noqa: E402
from hdwarp.stage.columns import GeometryKind  # noqa: E402


@wp.kernel(enable_backward=False)
def _balls_by_bvh(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    tree: wp.uint64,
    origin: wp.vec3f,
    directions: wp.array[wp.vec3f],
    centres: wp.array[wp.vec3f],
    radii: wp.array[wp.float32],
    ball: wp.array[wp.int32],
    distance: wp.array[wp.float32],
):
    """What `wp.Bvh` offers: the boxes a ray meets, nearer than the nearest hit so far."""
    i = first + wp.tid() * step
    if i >= count:
        return
    d = wp.normalize(directions[i])
    query = wp.bvh_query_ray(tree, origin, d)
    bound = wp.int32(0)
    best = wp.float32(1.0e30)
    found = wp.int32(-1)
    while wp.bvh_query_next(query, bound, best):
        c = centres[bound] - origin
        b = wp.dot(c, d)
        apart = c - d * b
        inside = radii[bound] * radii[bound] - wp.dot(apart, apart)
        if inside >= 0.0:
            t = b - wp.sqrt(inside)
            if t > 0.0 and t < best:
                best = t
                found = bound
    ball[i] = found
    distance[i] = best


def points_case(count: int) -> bench.Runs:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(count, 3))
    centres *= rng.uniform(0, 1, (count, 1)) ** (1 / 3) / np.linalg.norm(centres, axis=1, keepdims=True)
    radii = rng.uniform(0.2, 0.4, count) * count ** (-1 / 3)
    camera = tools.perspective(640, 480)
    scene = swept_scene.SweptScene(swept_scene.Swept(GeometryKind.POINTS, centres, radii), affine=False)
    centres, radii = centres.astype(np.float32), radii.astype(np.float32)
    lower, upper = (wp.array(centres + sign * radii[:, None], dtype=wp.vec3f, device="cpu") for sign in (-1, 1))
    tree = wp.Bvh(lower, upper, constructor="sah")
    directions = wp.array(camera.rays()[1].reshape(-1, 3).astype(np.float32), dtype=wp.vec3f, device="cpu")
    ball, distance = (wp.empty(len(directions), dtype=dtype, device="cpu") for dtype in (wp.int32, wp.float32))
    balls = wp.array(centres, dtype=wp.vec3f, device="cpu"), wp.array(radii, dtype=wp.float32, device="cpu")

    def query() -> None:
        launch(
            _balls_by_bvh,
            len(directions),
            [tree.id, wp.vec3f(*camera.origin), directions, *balls],
            [ball, distance],
            device="cpu",
            grain=4096,
        )

    return {"wp.Bvh": query, "trace": scene.tracer([camera])[0]}


def curves_case(count: int, along: int, around: int) -> bench.Runs:
    """Tubes against their own triangles, a piece a segment: ``along`` x ``around`` quads of each."""
    points, radii = swept_scene.hairs(np.random.default_rng(0), count)
    camera = tools.perspective(640, 480)
    scene = swept_scene.SweptScene(swept_scene.tubes(points, radii), affine=False)
    vertices, triangles = swept_scene.tessellated(points, radii, along, around)
    meshes = tools.Scene([(vertices, triangles)], [tools.Instance(np.eye(3))], kinds=bench.MESH_ONLY, affine=False)
    size, whole = (memory(built.bvhs) / 2**20 for built in (scene, meshes))
    print(f"    {count} curves: {size:.1f} MiB; {len(triangles)} triangles: {whole:.1f} MiB, {whole / size:.1f}x", flush=True)
    embree = bench.embree(vertices, triangles, camera)
    return {"curves": scene.tracer([camera])[0], "Open3D": embree, "triangles": meshes.tracer([camera])[0]}


def memory(bvhs) -> int:
    """Bytes of what is traced."""
    return sum(array.capacity for array in (bvhs.nodes, bvhs.children, bvhs.leaf_vertices, bvhs.leaf_count, bvhs.slot_triangle))


CASES = {
    "points 100k": lambda: points_case(100_000),
    "points 1M": lambda: points_case(1_000_000),
    "curves 50k, 8 x 8": lambda: curves_case(50_000, 8, 8),
    "curves 50k, 1 triangle each side": lambda: curves_case(50_000, 1, 3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.threads:
        os.environ["HDWARP_THREADS"] = str(arguments.threads)
    for name, case in CASES.items():
        if not arguments.only or any(name.startswith(wanted) for wanted in arguments.only.split(",")):
            bench.report(name, case(), arguments.rounds)


if __name__ == "__main__":
    main()
