"""Scenes of points or curves for the tracer's tests and benchmark: one geometry of one form, its instances, and how it is tessellated."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import warp as wp

from hdwarp.stage.columns import CAPPED_END, CAPPED_START, GeometryKind
from hdwarp.tables import bvh
from hdwarp.trace import SceneKinds
from hdwarp.trace.pixel_rays import trace_by_pixels

if "trace_scene" not in sys.modules:
    _spec = importlib.util.spec_from_file_location("trace_scene", Path(__file__).parent / "trace_scene.py")
    sys.modules["trace_scene"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["trace_scene"])
tools = sys.modules["trace_scene"]

SWEPT = SceneKinds(mesh=False, shapes=False, swept=True)
CAMERAS = ["perspective", "orthographic"]
TUBE = np.array([[[0, 0, -1], [0, 0, -1 / 3], [0, 0, 1 / 3], [0, 0, 1]]], float)


@dataclass(frozen=True)
class Swept:
    """Columns of a MeshGeometry of points or curves."""

    form: GeometryKind
    points: np.ndarray  # (T * points an item, 3)
    radii: np.ndarray | None = None
    pieces: np.ndarray | None = None

    @property
    def count(self) -> int:
        return len(self.points) // self.form.point_count


class SweptScene(tools.Scene):
    """A `Scene` whose one mesh is points or curves."""

    def __init__(self, swept: Swept, instances=None, **options) -> None:
        self.swept = swept
        instances = instances or [tools.Instance(np.eye(3))]
        super().__init__([], instances, kinds=options.pop("kinds", SWEPT), **options)

    def build_meshes(self) -> bvh.MeshBvhs:
        swept = self.swept
        return bvh.build_meshes(
            wp.array(swept.points.astype(np.float32), dtype=wp.vec3f, device=self.device),
            np.zeros((swept.count, 3), np.int32),
            np.array([0, swept.count]),
            np.array([0]),
            device=self.device,
            form=swept.form,
            radii=None if swept.radii is None else swept.radii.astype(np.float32),
            pieces=None if swept.pieces is None else swept.pieces.astype(np.int32),
        )

    def _instance_columns(self):
        columns = super()._instance_columns()
        kinds = np.array([self.swept.form if i.kind == tools.MESH else i.kind for i in self.instances], np.int32)
        columns.kind = self._array(kinds, wp.int32)
        return columns


def bezier(points: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(value, first, second derivative) at ``u`` (m,) of cubics, ``points`` (n, 4, k): (n, m, k) each."""
    p, u = points[:, None, :, :], u[None, :, None]
    v = 1.0 - u
    value = v**3 * p[:, :, 0] + 3 * v * v * u * p[:, :, 1] + 3 * v * u * u * p[:, :, 2] + u**3 * p[:, :, 3]
    rate = 3 * (v * v * (p[:, :, 1] - p[:, :, 0]) + 2 * v * u * (p[:, :, 2] - p[:, :, 1]) + u * u * (p[:, :, 3] - p[:, :, 2]))
    bend = 6 * (v * (p[:, :, 2] - 2 * p[:, :, 1] + p[:, :, 0]) + u * (p[:, :, 3] - 2 * p[:, :, 2] + p[:, :, 1]))
    return value, rate, bend


def tessellated(points: np.ndarray, radii: np.ndarray, along: int, around: int, caps: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of tubes, discs swept along cubics: ``points`` (n, 4, 3), ``radii`` (n, 4)."""
    u = np.linspace(0, 1, along + 1)
    middle, rate, _ = bezier(points, u)
    radius = bezier(radii[..., None], u)[0]
    axis = rate / np.linalg.norm(rate, axis=-1, keepdims=True)
    side = np.cross(axis, np.eye(3)[np.abs(axis).argmin(-1)])
    side /= np.linalg.norm(side, axis=-1, keepdims=True)
    other = np.cross(axis, side)
    # One frame a segment, carried along so that rings do not twist.
    for i in range(1, along + 1):
        carried = side[:, i - 1] - axis[:, i] * (side[:, i - 1] * axis[:, i]).sum(-1, keepdims=True)
        side[:, i] = carried / np.linalg.norm(carried, axis=-1, keepdims=True)
        other[:, i] = np.cross(axis[:, i], side[:, i])
    angle = np.linspace(0, 2 * np.pi, around, endpoint=False)
    ring = middle[:, :, None] + radius[:, :, None] * (
        np.cos(angle)[:, None] * side[:, :, None, :] + np.sin(angle)[:, None] * other[:, :, None, :]
    )
    n = len(points)
    vertices = ring.reshape(-1, 3)
    i, j = np.meshgrid(np.arange(along), np.arange(around), indexing="ij")
    a, b = i * around + j, i * around + (j + 1) % around
    quads = np.stack([a, b, b + around, a, b + around, a + around], -1).reshape(-1, 3)
    triangles = (quads[None] + (np.arange(n) * (along + 1) * around)[:, None, None]).reshape(-1, 3)
    if caps:
        centres = np.concatenate([middle[:, 0], middle[:, -1]])
        first = np.arange(n) * (along + 1) * around
        rings = np.concatenate([first, first + along * around])
        j = np.arange(around)
        number = len(vertices) + np.arange(2 * n)
        fans = np.stack([np.broadcast_to(number[:, None], (2 * n, around)), rings[:, None] + j, rings[:, None] + (j + 1) % around], -1)
        triangles, vertices = np.concatenate([triangles, fans.reshape(-1, 3)]), np.concatenate([vertices, centres])
    return vertices, triangles


def tubes(points: np.ndarray, radii: np.ndarray, flags: int = CAPPED_START | CAPPED_END) -> Swept:
    """Pieces that are whole segments: ``points`` (n, 4, 3), ``radii`` (n, 4)."""
    return Swept(GeometryKind.TUBES, points.reshape(-1, 3), radii.reshape(-1), np.full(len(points), 16 + flags))


def hairs(
    rng: np.random.Generator, count: int, length: float = 0.1, radius: float = 0.002, turn: float = 0.25
) -> tuple[np.ndarray, np.ndarray]:
    """Gently bent cubics in a ball: ``points`` (n, 4, 3), ``radii`` (n, 4)."""
    start = rng.normal(size=(count, 3))
    start *= (rng.uniform(0, 1, (count, 1)) ** (1 / 3)) / np.linalg.norm(start, axis=1, keepdims=True)
    way = rng.normal(size=(count, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    points = [start]
    for _ in range(3):
        way = way + rng.normal(size=(count, 3)) * turn / 4
        way /= np.linalg.norm(way, axis=1, keepdims=True)
        points.append(points[-1] + way * length / 3)
    ends = rng.uniform(0.7, 1.3, (count, 2)) * radius
    return np.stack(points, 1), ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * np.array([0, 1, 2, 3]) / 3


def random_tubes(seed, count=30):
    """Pieces that turn by up to 20 degrees, thick and thin, radii that change: (n, 4, 3), (n, 4)."""
    rng = np.random.default_rng(seed)
    lengths = rng.uniform(0.2, 0.8, count)
    points, _ = hairs(rng, count, 1.0, turn=0.5)
    points = points[:, :1] + (points - points[:, :1]) * lengths[:, None, None]
    ends = lengths[:, None] * 10.0 ** rng.uniform(-2.5, -0.5, (count, 1)) * rng.uniform(0.7, 1.3, (count, 2))
    return points, ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * np.array([0, 1, 2, 3]) / 3


def ring(parts=36, big=1.0, small=0.3, flags=0):
    """A torus about z: as many pieces, their joints exactly as one another's ends."""
    k = 4 / 3 * np.tan(np.pi / 2 / parts)
    angle = np.arange(parts + 1) * 2 * np.pi / parts
    at, along = np.stack([np.cos(angle), np.sin(angle), 0 * angle], -1), np.stack([-np.sin(angle), np.cos(angle), 0 * angle], -1)
    points = np.stack([at[:-1], at[:-1] + k * along[:-1], at[1:] - k * along[1:], at[1:]], 1) * big
    return tubes(points, np.full((parts, 4), small), flags)


def camera_at(kind, width=96, height=64, eye=4.0, turn=None, **options):
    turn = tools.rotation((1, 2, 3), 0.7) if turn is None else turn
    return getattr(tools, kind)(width, height, eye=turn[:, 2] * eye, turn=turn, **options)


def cylinder(camera, radius=0.5, half=1.0):
    """(h, w) t where the rays enter and leave a closed cylinder about z, inf where they pass by: slabs and a quadratic, in float64."""
    o, d = camera.rays()
    o, d = np.broadcast_arrays(o, d)
    a, b = (d[..., :2] ** 2).sum(-1), (o[..., :2] * d[..., :2]).sum(-1)
    root = b * b - a * ((o[..., :2] ** 2).sum(-1) - radius**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        side = (-b + np.array([[-1], [1]])[..., None] * np.sqrt(root)) / a
        ends = np.sort(np.stack([(-half - o[..., 2]) / d[..., 2], (half - o[..., 2]) / d[..., 2]]), axis=0)
        entry, leave = np.maximum(side[0], ends[0]), np.minimum(side[1], ends[1])
        return np.where(entry <= leave, entry, np.inf), np.where(entry <= leave, leave, np.inf)


def traced(scene, camera, way, monkeypatch):
    """By packets of a tile, or by the kernel for CUDA, ray by ray."""
    with monkeypatch.context() as patched:
        if way == "rays":
            patched.setattr(tools, "trace", trace_by_pixels)
        return scene.trace(camera)[0]
