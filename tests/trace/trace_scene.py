"""Small scenes for the tracer's tests and benchmark, and a float64 brute-force ray caster that shares no code with it."""

from __future__ import annotations

import importlib.util
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import warp as wp

from hdwarp.tables import bvh, structs
from hdwarp.trace import SceneKinds, trace

MESH, SPHERE, CUBE, CONE, CAPSULE, PLANE = range(6)
_spec = importlib.util.spec_from_file_location("hdwarp_test_shape_forms", Path(__file__).parents[1] / "shape_forms.py")
forms = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(forms)


# Cameras.


@dataclass(frozen=True)
class Camera:
    """One view: rays of the full image in float64, pixel (0, 0) at its centre; what part of it to trace; the clip range."""

    width: int
    height: int
    origin: np.ndarray
    direction: np.ndarray
    origin_dx: np.ndarray
    origin_dy: np.ndarray
    direction_dx: np.ndarray
    direction_dy: np.ndarray
    forward: np.ndarray
    orthographic: bool = False
    near: float = 1e-3
    far: float = 1e6
    radial: bool = False
    window: tuple[int, int, int, int] | None = None  # x0, y0, width, height
    group: int = 0
    masked: bool = False
    global_group: int = -1
    global_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def with_(self, **changes) -> Camera:
        return replace(self, **changes)

    @property
    def pixels(self) -> tuple[int, int, int, int]:
        return self.window or (0, 0, self.width, self.height)

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """(h, w, 3) origins and directions of the window, from the float32 coefficients the tracer gets."""
        x0, y0, width, height = self.pixels
        y, x = (a[..., None] for a in np.mgrid[y0 : y0 + height, x0 : x0 + width].astype(float))
        f = [
            np.asarray(v, np.float32).astype(float)
            for v in (self.origin_dx, self.origin_dy, self.direction, self.direction_dx, self.direction_dy)
        ]
        return self.origin + f[0] * x + f[1] * y + 0 * x, f[2] + f[3] * x + f[4] * y + 0 * f[0]


def rotation(axis, angle: float) -> np.ndarray:
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def look_at(eye, at, up=(0.0, 0.0, 1.0)) -> np.ndarray:
    """Columns right, up, back."""
    back = np.asarray(eye, float) - np.asarray(at, float)
    back /= np.linalg.norm(back)
    right = np.cross(up, back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back], 1)


def perspective(width=64, height=48, eye=(0.0, 0.0, 3.0), turn=None, focal=1.2, **options) -> Camera:
    """``focal``: focal length over image height."""
    turn = np.eye(3) if turn is None else turn
    step = 1.0 / (height * focal)
    zero = np.zeros(3)
    direction = turn @ np.array([(0.5 - width / 2) * step, (height / 2 - 0.5) * step, -1.0])
    dx, dy = turn @ np.array([step, 0, 0]), turn @ np.array([0, -step, 0])
    return Camera(width, height, np.asarray(eye, float), direction, zero, zero, dx, dy, -turn[:, 2], **options)


def orthographic(width=64, height=48, eye=(0.0, 0.0, 3.0), turn=None, size=3.0, **options) -> Camera:
    """``size``: height of the image [m]."""
    turn = np.eye(3) if turn is None else turn
    step = size / height
    origin = np.asarray(eye, float) + turn @ np.array([(0.5 - width / 2) * step, (height / 2 - 0.5) * step, 0.0])
    dx, dy, zero = turn @ np.array([step, 0, 0]), turn @ np.array([0, -step, 0]), np.zeros(3)
    return Camera(width, height, origin, -turn[:, 2], dx, dy, zero, zero, -turn[:, 2], orthographic=True, **options)


# Geometry.


@dataclass(frozen=True)
class Instance:
    linear: np.ndarray  # (3, 3) world_from_object
    translation: tuple[float, float, float] | np.ndarray = (0.0, 0.0, 0.0)
    kind: int = MESH
    mesh: int = 0
    single_sided: bool = False
    rank: int | None = None  # None: the row
    shape: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def surfaces(self) -> list:
        low, high, half, _ = self.shape
        if self.kind in (SPHERE, CUBE):
            return forms.surfaces("Sphere" if self.kind == SPHERE else "Cube")
        if self.kind == PLANE:
            return [forms.Rectangle((low, high))]
        return forms.surfaces("Cylinder_1" if self.kind == CONE else "Capsule_1", radiusBottom=low, radiusTop=high, height=2 * half)


def bumpy_sphere(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles: n = 80 gives 25,122 triangles, 400 gives 637,602."""
    u, v = np.meshgrid(np.linspace(0, np.pi, n), np.linspace(0, 2 * np.pi, 2 * n), indexing="ij")
    r = 1 + 0.05 * np.sin(20 * u) * np.cos(17 * v)
    points = np.stack([r * np.sin(u) * np.cos(v), r * np.sin(u) * np.sin(v), r * np.cos(u)], -1).reshape(-1, 3)
    i = np.arange((n - 1) * (2 * n - 1))
    q = i // (2 * n - 1) * 2 * n + i % (2 * n - 1)
    triangles = np.concatenate([np.stack([q, q + 1, q + 2 * n], -1), np.stack([q + 1, q + 2 * n + 1, q + 2 * n], -1)])
    return points.astype(np.float32), triangles.astype(np.int32)


def soup(rng: np.random.Generator, count: int, size: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Unconnected random triangles about the origin."""
    points = rng.uniform(-1, 1, (count, 1, 3)) + rng.normal(size=(count, 3, 3)) * size
    return points.reshape(-1, 3).astype(np.float32), np.arange(3 * count, dtype=np.int32).reshape(-1, 3)


def random_affine(rng: np.random.Generator, mirrored: bool) -> np.ndarray:
    """Rotation, non-uniform scale, shear."""
    a = (
        rotation(rng.normal(size=3), rng.uniform(0, 6))
        @ np.diag(rng.uniform(0.3, 1.5, 3))
        @ rotation(rng.normal(size=3), rng.uniform(0, 6))
    )
    return a @ np.diag([-1.0, 1.0, 1.0]) if mirrored else a


# Scenes.


@dataclass
class Image:
    """(h, w) arrays of a view's window; misses are -1 and NaN."""

    triangle: np.ndarray  # of its mesh; on shapes 0 where the ray enters, 1 where it leaves
    instance: np.ndarray
    t: np.ndarray

    @property
    def hit(self) -> np.ndarray:
        return self.instance >= 0

    def bits(self) -> bytes:
        return self.triangle.tobytes() + self.instance.tobytes() + self.t.tobytes()


@contextmanager
def threads(count: int | None):
    """HDWARP_THREADS for the time of a with statement."""
    before = os.environ.get("HDWARP_THREADS")
    if count is not None:
        os.environ["HDWARP_THREADS"] = str(count)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("HDWARP_THREADS", None)
        else:
            os.environ["HDWARP_THREADS"] = before


class Scene:
    """Meshes, instances in groups (worlds), on one device."""

    def __init__(self, meshes, instances, *, groups=None, device="cpu", kinds=None, affine=True) -> None:
        """``meshes``: (points, triangles) each; ``groups``: lists of instance rows, one list by default."""
        self.device, self.affine = device, affine
        self.meshes = [(np.asarray(p, np.float32).reshape(-1, 3), np.asarray(t, np.int32).reshape(-1, 3)) for p, t in meshes]
        self.instances = list(instances)
        self.groups = [list(range(len(self.instances)))] if groups is None else groups
        self.kinds = kinds or SceneKinds(mesh=True, shapes=True)
        self.bvhs = self.build_meshes()
        self.columns = self._mesh_columns()
        self.rows = self._instance_columns()
        self.top = self.build_top_level()

    def build_meshes(self) -> bvh.MeshBvhs:
        points = np.concatenate([p for p, _ in self.meshes]) if self.meshes else np.zeros((0, 3), np.float32)
        triangles = np.concatenate([t for _, t in self.meshes]) if self.meshes else np.zeros((0, 3), np.int32)
        triangle_start = np.cumsum([0] + [len(t) for _, t in self.meshes])
        point_start = np.cumsum([0] + [len(p) for p, _ in self.meshes])[:-1]
        return bvh.build_meshes(
            wp.array(points, dtype=wp.vec3f, device=self.device),
            wp.array(triangles, dtype=wp.vec3i, device=self.device),
            triangle_start,
            point_start,
            device=self.device,
        )

    def _mesh_columns(self) -> structs.MeshColumns:
        columns = structs.MeshColumns()
        for name in ("nodes", "children", "leaf_vertices", "leaf_count", "slot_triangle"):
            setattr(columns, name, getattr(self.bvhs, name))
        columns.root = self._array(self.bvhs.root, wp.int32)
        return columns

    def _instance_columns(self) -> structs.InstanceColumns:
        rows, columns = self.instances, structs.InstanceColumns()
        linear = np.array([i.linear for i in rows], np.float32).reshape(-1, 3, 3)
        columns.world_from_object = self._array(linear, wp.mat33f)
        columns.translation = self._array(np.array([i.translation for i in rows], float).reshape(-1, 3), wp.vec3d)
        columns.kind = self._array(np.array([i.kind for i in rows], np.int32), wp.int32)
        columns.geometry = self._array(np.array([i.mesh if i.kind == MESH else -1 for i in rows], np.int32), wp.int32)
        columns.shape = self._array(np.array([i.shape for i in rows], np.float32).reshape(-1, 4), wp.vec4f)
        columns.rank = self._array(np.array([k if i.rank is None else i.rank for k, i in enumerate(rows)], np.int32), wp.int32)
        columns.flags = self._array(np.array([i.single_sided for i in rows], np.int32), wp.int32)
        columns.source = self._array(np.arange(len(rows), dtype=np.int32), wp.int32)
        return columns

    def bounds(self) -> tuple[wp.array, wp.array]:
        lower, upper = np.zeros((len(self.instances), 3)), np.zeros((len(self.instances), 3))
        mesh_lower, mesh_upper = self.bvhs.lower.astype(float), self.bvhs.upper.astype(float)
        for k, i in enumerate(self.instances):
            lo, hi = (mesh_lower[i.mesh], mesh_upper[i.mesh]) if i.kind == MESH else (-np.ones(3), np.ones(3))
            if i.kind == PLANE and not np.isfinite(i.shape[0]):
                lower[k], upper[k] = -3e38, 3e38
                continue
            if i.kind == CAPSULE:
                lo, hi = lo - [0, 0, i.shape[2] + 1], hi + [0, 0, i.shape[2] + 1]
            if lo[0] > hi[0]:
                lower[k], upper[k] = 1e30, -1e30
                continue
            linear = np.asarray(i.linear, np.float32).astype(float)
            middle, half = linear @ (lo + hi) / 2 + i.translation, np.abs(linear) @ (hi - lo) / 2
            lower[k], upper[k] = middle - half, middle + half
        return self._array(lower.astype(np.float32), wp.vec3f), self._array(upper.astype(np.float32), wp.vec3f)

    def build_top_level(self) -> bvh.TopLevelBvh:
        start = np.cumsum([0] + [len(g) for g in self.groups])
        return bvh.build_top_level(*self.bounds(), start, np.concatenate([*self.groups, []]).astype(np.int32), device=self.device)

    def _array(self, values: np.ndarray, dtype: type) -> wp.array:
        return wp.array(values, dtype=dtype, device=self.device)

    def view_rows(self, cameras: list[Camera]) -> tuple[np.ndarray, int, int]:
        """Rows, tiles and record size."""
        rows = np.zeros(max(len(cameras), 1), dtype=structs.ViewRow.numpy_dtype())
        tiles = pixels = 0
        for i, c in enumerate(cameras):
            x0, y0, width, height = c.pixels
            tile_x0, tile_y0 = x0 // 16, y0 // 8
            tiles_x, tiles_y = (x0 + width - 1) // 16 - tile_x0 + 1, (y0 + height - 1) // 8 - tile_y0 + 1
            values = {
                "origin": c.origin,
                "origin_dx": c.origin_dx,
                "origin_dy": c.origin_dy,
                "direction": c.direction,
                "direction_dx": c.direction_dx,
                "direction_dy": c.direction_dy,
                "forward": c.forward,
                "orthographic": c.orthographic,
                "near": c.near,
                "far": c.far,
                "radial": c.radial,
                "root": self.top.root[c.group] if c.group >= 0 else -1,
                "global_root": self.top.root[c.global_group] if c.global_group >= 0 else -1,
                "global_offset": c.global_offset,
                "x0": x0,
                "y0": y0,
                "width": width,
                "height": height,
                "tile_x0": tile_x0,
                "tile_y0": tile_y0,
                "tiles_x": tiles_x,
                "tiles_y": tiles_y,
                "first_tile": tiles,
                "record": pixels,
                "masked": c.masked,
                "culls": 1,
            }
            for name, value in values.items():
                rows[name][i] = value
            tiles += tiles_x * tiles_y
            pixels += tiles_x * tiles_y * 128
        return rows, tiles, pixels

    def tracer(self, cameras: list[Camera]):
        """(call, rows, record): ``call()`` traces the views into the record, ``call(peel)`` what lies behind it."""
        rows, tiles, pixels = self.view_rows(cameras)
        record = structs.Visibility()
        record.slot = wp.full(pixels, -7, dtype=wp.int32, device=self.device)
        record.instance = wp.full(pixels, -7, dtype=wp.int32, device=self.device)
        record.key = wp.full(pixels, -7.0, dtype=wp.float32, device=self.device)
        views = self._array(rows, structs.ViewRow)
        top = structs.TopLevel()
        top.nodes, top.children = self.top.nodes, self.top.children

        def call(peel: structs.Peel | None = None) -> None:
            options = {"kinds": self.kinds, "affine": self.affine, "peel": peel, "device": self.device}
            trace(views, len(cameras), tiles, self.columns, self.rows, top, record, **options)

        return call, rows, record

    def trace(self, *cameras: Camera, thread_count: int | None = None) -> list[Image]:
        call, rows, record = self.tracer(list(cameras))
        with threads(thread_count):
            call()
        return self.images(cameras, rows, record)

    def layers(self, camera: Camera, count: int, marked: np.ndarray | None = None) -> list[Image]:
        """What the camera sees, then ``count`` times what lies behind that at the pixels ``marked`` (h, w); all without."""
        call, rows, record = self.tracer([camera])
        peel, size = structs.Peel(), len(record.slot)
        pixels = np.ones(size, np.int32)
        if marked is not None:
            pixels.reshape(-1, 16 * rows["tiles_x"][0])[: camera.height, : camera.width] = marked
        peel.pixels = self._array(pixels, wp.int32)
        peel.tiles = self._array(np.ones(size // 128, np.int32), wp.int32)
        call()
        images = [self.images([camera], rows, record)[0]]
        for _ in range(count):
            call(peel)
            images.append(self.images([camera], rows, record)[0])
        return images

    def images(self, cameras, rows: np.ndarray, record: structs.Visibility) -> list[Image]:
        arrays = [a.numpy() for a in (record.slot, record.instance, record.key)]
        slot_triangle = self.columns.slot_triangle.numpy()
        images = []
        for row, camera in zip(rows, cameras, strict=False):
            pitch, size = 16 * row["tiles_x"], 128 * row["tiles_x"] * row["tiles_y"]
            y, x = row["y0"] - 8 * row["tile_y0"], row["x0"] - 16 * row["tile_x0"]
            slot, instance, key = (
                a[row["record"] : row["record"] + size].reshape(-1, pitch)[y : y + row["height"], x : x + row["width"]] for a in arrays
            )
            hit = instance >= 0
            kinds = np.array([i.kind for i in self.instances] + [-1])
            mesh = hit & (kinds[instance] == MESH)
            triangle = np.where(mesh, slot_triangle[np.where(mesh, slot, 0)] if len(slot_triangle) else -1, slot)
            with np.errstate(divide="ignore"):
                t = np.where(hit, -key if camera.orthographic else 1.0 / key, np.float32(np.nan)).astype(np.float32)
            images.append(Image(triangle.astype(np.int32), instance.copy(), t))
        return images

    def cast(self, camera: Camera) -> tuple[Image, np.ndarray]:
        """What the camera sees by brute force in float64, and where that hangs on rounding: pixels near an edge, or with two
        surfaces at the same depth, or at an end of the clip range."""
        origin, direction = camera.rays()
        shape = origin.shape[:2]
        best = np.full(shape, np.inf)
        instance, triangle = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
        unsure = np.zeros(shape, bool)
        stretch = np.linalg.norm(direction, axis=-1) if camera.radial else np.ones(shape)
        near, far = camera.near / stretch, camera.far / stretch
        seen = []
        for k in self.groups[camera.group]:
            for t, margin, number in self._crossings(self.instances[k], origin, direction):
                with np.errstate(invalid="ignore"):
                    inside = (margin >= 0) & (t >= near) & (t <= far)
                    if not camera.orthographic:
                        inside &= t > 0
                    edge = (np.abs(margin) < 2e-4) & (t > near * 0.999 - 1e-3) & (t < far * 1.001)
                    edge |= (margin > -2e-4) & ((np.abs(t - near) < 2e-5 * np.abs(near)) | (np.abs(t - far) < 2e-5 * np.abs(far)))
                    closer = inside & (t < best)
                seen.append((t, inside, edge))
                best = np.where(closer, t, best)
                instance, triangle = np.where(closer, k, instance), np.where(closer, number, triangle)
        for t, inside, edge in seen:
            with np.errstate(invalid="ignore"):
                unsure |= edge & (t <= best * 1.0001 + 1e-4)
                unsure |= inside & (t > best) & (t - best < 2e-5 * np.abs(best) + 1e-6)
        return Image(triangle.astype(np.int32), instance.astype(np.int32), np.where(instance >= 0, best, np.nan)), unsure

    def _crossings(self, i: Instance, origin: np.ndarray, direction: np.ndarray):
        """(t, margin >= 0 inside, triangle) of everything a line meets of an instance."""
        inverse = np.linalg.inv(np.asarray(i.linear, np.float32).astype(float))
        o, d = (origin - i.translation) @ inverse.T, direction @ inverse.T
        with np.errstate(divide="ignore", invalid="ignore"):
            if i.kind != MESH:
                for crossing in forms.crossings(i.surfaces(), o, d):
                    entering = (crossing.normal * d).sum(-1) < 0
                    margin = np.where(~entering, -1.0, crossing.margin) if i.single_sided else crossing.margin
                    yield crossing.t, margin, np.where(entering, 0, 1)
            else:
                points, triangles = self.meshes[i.mesh]
                for number, corners in enumerate(triangles):
                    a, b, c = points[corners].astype(float)
                    n = np.cross(b - a, c - a)
                    facing = d @ n
                    t = ((a - o) @ n) / facing
                    p = o + d * t[..., None]
                    w = [np.cross(y - x, p - x) @ n / (n @ n) for x, y in ((a, b), (b, c), (c, a))]
                    margin = np.minimum(np.minimum(w[0], w[1]), w[2])
                    yield t, np.where(facing > 0, -1.0, margin) if i.single_sided else margin, number


def compare(image: Image, expected: Image, unsure: np.ndarray, *, unsure_share: float = 0.03, tolerance: float = 1e-5) -> None:
    """Same hits and the same depth wherever rounding does not decide."""
    assert unsure.mean() <= unsure_share
    sure = ~unsure
    assert np.array_equal(image.hit[sure], expected.hit[sure])
    assert np.array_equal(image.instance[sure], expected.instance[sure])
    assert np.array_equal(image.triangle[sure], expected.triangle[sure])
    both = image.hit & expected.hit & sure
    assert both.any()
    np.testing.assert_allclose(image.t[both], expected.t[both], rtol=tolerance, atol=tolerance)
