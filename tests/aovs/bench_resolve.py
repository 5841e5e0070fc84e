"""How long the resolve takes at 640x480 on a fabricated record: `HDWARP_THREADS=1 python tests/aovs/bench_resolve.py`.

A tilted wall of 20,000 small triangles, drawn once or as 256 instances: every pixel hits. Prints minima and medians of interleaved runs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import warp as wp

sys.path.insert(0, str(Path(__file__).parent))
import resolve_scene as tools

from hdwarp.aovs.registry import aov_spec
from hdwarp.aovs.resolve import ResolvePlan
from hdwarp.tables import structs

WIDTH, HEIGHT = 640, 480
SETS = {
    "depth": ["distance_to_image_plane"],
    "depth, Ngeom": ["distance_to_image_plane", "Ngeom"],
    "ids": ["primId", "instanceId", "elementId"],
    "depth, Ngeom, ids, barycentric": ["distance_to_image_plane", "Ngeom", "primId", "instanceId", "elementId", "barycentric"],
    "geometric normal": ["normal"],
    "smooth normal": ["normal"],
    "primvars:st (faceVarying)": ["primvars:st"],
    "color, grey": ["color"],
    "color, smooth, displayColor": ["color"],
    "rgba8, grey": ["rgba8"],
}


def wall(per_side: int, cells: int) -> tuple[tools.Setup, dict[str, structs.PrimvarColumns]]:
    """``per_side`` squared instances of a square of ``cells`` squared quads, filling the picture; the record by arithmetic."""
    scene = tools.Scene()
    axis = np.linspace(-1, 1, cells + 1)
    points = np.stack([*np.meshgrid(axis, axis), np.zeros((cells + 1, cells + 1))], axis=-1).reshape(-1, 3)
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    a, b, c, d = first, first + 1, first + cells + 2, first + cells + 1
    mesh = scene.add_mesh(points, np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3))
    turn = tools.rotation((1, 2, 0), 0.3)
    for i in range(per_side**2):
        place = turn @ [2 * (i % per_side + 0.5) / per_side - 1, 2 * (i // per_side + 0.5) / per_side - 1, 0]
        scene.add(tools.MESH, turn / per_side, place, mesh=mesh, prim_id=i)
    view = tools.View(WIDTH, HEIGHT, np.array([0, 0, 3.0]), half_width=0.25)
    setup = tools.Setup.__new__(tools.Setup)
    setup.scene, setup.views, setup.device = scene, [view], "cpu"
    setup.meshes, setup.instances = scene.mesh_columns("cpu"), scene.instance_columns("cpu")
    setup.materials = scene.material_columns("cpu")
    row = view.row()
    setup.rows = wp.array([row], dtype=structs.ViewRow, device="cpu")
    setup.pixel_count, setup.width, setup.height = WIDTH * HEIGHT, WIDTH, HEIGHT
    x, y = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    ahead, dx, dy = (np.array([*getattr(row, name)], float) for name in ("direction", "direction_dx", "direction_dy"))
    local = (ahead + dx * x[..., None] + dy * y[..., None]) @ turn
    origin = view.position @ turn
    t = -origin[2] / local[..., 2]
    u, v = (np.clip((origin[i] + local[..., i] * t + 1) / 2, 0, 1 - 1e-9) * per_side for i in range(2))
    instance = v.astype(int) * per_side + u.astype(int)
    u, v = u % 1 * cells, v % 1 * cells
    slot = 2 * (v.astype(int) * cells + u.astype(int)) + (v % 1 > u % 1)
    setup.visibility = structs.Visibility()
    setup.visibility.slot = wp.array(slot.ravel(), dtype=wp.int32, device="cpu")
    setup.visibility.instance = wp.array(instance.ravel(), dtype=wp.int32, device="cpu")
    setup.visibility.key = wp.array((1 / t).ravel(), dtype=wp.float32, device="cpu")
    rng = np.random.default_rng(0)
    primvars = {
        "normals": scene.primvar("cpu", 3, mesh={0: ("vertex", rng.normal(size=points.shape) * 0.1 + [0, 0, 1], None)}),
        "displayColor": scene.primvar("cpu", 3, mesh={0: ("vertex", rng.uniform(size=points.shape), None)}),
        "st": scene.primvar("cpu", 2, mesh={0: ("faceVarying", rng.uniform(size=(6 * cells**2, 2)), None)}),
    }
    return setup, primvars


def main(repeats: int = 21) -> None:
    for per_side, cells in ((1, 100), (16, 10)):
        setup, primvars = wall(per_side, cells)
        plans, times = {}, {name: [] for name in SETS}
        for label, names in SETS.items():
            used = primvars if "smooth" in label or "st" in label else {}
            pixels = {name: aov_spec(name, components=2 if "st" in label else None).dtype for name in names}
            outputs = {name: wp.zeros(WIDTH * HEIGHT, dtype=dtype, device="cpu") for name, dtype in pixels.items()}
            plans[label] = ResolvePlan(*setup.arguments(used), outputs, device="cpu")
            plans[label].update()
        for _ in range(repeats):
            for label, plan in plans.items():
                start = time.perf_counter()
                plan.update()
                times[label].append(time.perf_counter() - start)
        print(f"{2 * cells**2} triangles, {per_side**2} instances, {WIDTH}x{HEIGHT}, every pixel hits")
        for label, taken in times.items():
            print(f"  {label:32s} best {min(taken) * 1e3:6.2f}  median {np.median(taken) * 1e3:6.2f} ms")


if __name__ == "__main__":
    wp.config.quiet = True
    main()
