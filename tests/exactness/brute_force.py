"""Small stages of triangles, seen by cameras whose rays are written down here, and a float64 caster for them. Lengths in metres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade, Vt

import hdwarp

PLANE = "distance_to_image_plane"


@dataclass(frozen=True)
class Eye:
    """A camera: pose (columns right, up, back), image size, pixels per unit of slope (or per metre, orthographic)."""

    turn: np.ndarray
    place: np.ndarray
    width: int = 64
    height: int = 48
    focal: float = 55.0
    orthographic: bool = False
    near: float = 1e-3
    far: float = 1e6

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """(h, w, 3) float64 starts and directions of depth 1 through the pixels' centres."""
        y, x = np.mgrid[: self.height, : self.width] + 0.5
        x, y = (x - self.width / 2) / self.focal, (self.height / 2 - y) / self.focal
        across = np.stack([x, y, 0 * x], -1)
        if self.orthographic:
            return self.place + across @ self.turn.T, np.broadcast_to(-self.turn[:, 2], across.shape)
        return np.broadcast_to(self.place, across.shape), (across - [0, 0, 1]) @ self.turn.T


def rotation(rng: np.random.Generator) -> np.ndarray:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def look_at(place, target, up=(0.0, 0.0, 1.0)) -> np.ndarray:
    back = np.asarray(place, float) - np.asarray(target, float)
    back /= np.linalg.norm(back)
    right = np.cross(up, back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back], 1)


def around(rng: np.random.Generator, distance: float = 4.0, **options) -> Eye:
    """An eye that looks at the origin from anywhere."""
    turn = rotation(rng)
    return Eye(turn, turn[:, 2] * distance, **options)


def soup(rng: np.random.Generator, count: int, size: float = 0.5) -> np.ndarray:
    """(count, 3, 3) float32 random triangles about the origin."""
    return (rng.uniform(-1, 1, (count, 1, 3)) + rng.normal(size=(count, 3, 3)) * size).astype(np.float32)


# Stages.


def new_stage() -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    return stage


def place(prim: UsdGeom.Xformable, linear: np.ndarray | None, translation=(0.0, 0.0, 0.0)) -> None:
    matrix = np.eye(4)
    matrix[:3, :3] = np.eye(3) if linear is None else linear
    matrix[:3, 3] = translation
    prim.AddTransformOp().Set(Gf.Matrix4d(*matrix.T.ravel().tolist()))


def add_mesh(stage, path: str, triangles: np.ndarray, linear=None, translation=(0.0, 0.0, 0.0), *, double_sided=True, faces=None):
    """Triangles (n, 3, 3), each with points of its own; or ``triangles`` as (points, 3) with ``faces`` (n, 3)."""
    mesh = UsdGeom.Mesh.Define(stage, path)
    points = np.asarray(triangles, np.float32).reshape(-1, 3)
    corners = np.arange(len(points)) if faces is None else np.asarray(faces).ravel()
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(corners) // 3, 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(corners.astype(np.int32)))
    mesh.CreateSubdivisionSchemeAttr("none")
    mesh.CreateDoubleSidedAttr(double_sided)
    if linear is not None or np.any(translation):
        place(mesh, linear, translation)
    return mesh


def add_camera(stage, eye: Eye, path: str = "/camera", planes=()) -> UsdGeom.Camera:
    """Lens values are tenths of a unit: a focal length of 10 is one metre, and pixels are 1 / focal metres there."""
    camera = UsdGeom.Camera.Define(stage, path)
    camera.CreateFocalLengthAttr(10.0)
    camera.CreateHorizontalApertureAttr(10.0 * eye.width / eye.focal)
    camera.CreateVerticalApertureAttr(10.0 * eye.height / eye.focal)
    camera.CreateClippingRangeAttr(Gf.Vec2f(eye.near, eye.far))
    if eye.orthographic:
        camera.CreateProjectionAttr("orthographic")
    if len(planes):
        camera.CreateClippingPlanesAttr([Gf.Vec4f(*map(float, plane)) for plane in planes])
    place(camera, eye.turn, eye.place)
    return camera


def add_material(stage, path: str, **inputs: object) -> UsdShade.Material:
    """A UsdPreviewSurface; ``inputs``: floats and colours."""
    material = UsdShade.Material.Define(stage, path)
    shader = UsdShade.Shader.Define(stage, path + "/surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    for name, value in inputs.items():
        kind = Sdf.ValueTypeNames.Float if isinstance(value, float) else Sdf.ValueTypeNames.Color3f
        shader.CreateInput(name, kind).Set(value)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    return material


def bind(prim: Usd.Prim, material: UsdShade.Material) -> None:
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material)


def look(stage, eye: Eye, aovs=(PLANE, "primId", "triangleId"), **options):
    return hdwarp.render(stage, "/camera", resolution=(eye.width, eye.height), aovs=list(aovs), device="cpu", **options)


# Casting.


def crossings(eye: Eye, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(h, w, n) float64: t of every pixel's ray with every triangle's plane, how far inside all edges it is there (< 0: outside; in
    units of the triangle), and the direction's side: > 0 where the ray sees the triangle's back."""
    starts, directions = eye.rays()
    shape = (*starts.shape[:2], len(triangles))
    t, margin, side = np.empty(shape), np.empty(shape), np.empty(shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i, (a, b, c) in enumerate(np.asarray(triangles, np.float64)):
            n = np.cross(b - a, c - a)
            facing = directions @ n
            t[..., i] = ((a - starts) @ n) / facing
            p = starts + directions * t[..., i, None]
            weights = [np.cross(v - u, p - u) @ n / (n @ n) for u, v in ((a, b), (b, c), (c, a))]
            margin[..., i] = np.minimum(np.minimum(weights[0], weights[1]), weights[2])
            side[..., i] = facing
    return t, margin, side


def first(eye: Eye, triangles: np.ndarray, keep=None, *, blur: float = 3e-4, depth: float = 3e-5):
    """(triangle, t, unsure), (h, w) each, -1 and inf where nothing is hit. ``keep``: (t, triangle index) -> signed room, >= 0 where a
    crossing counts. Unsure: within ``blur`` of an edge, or of the end of what counts, or of another surface, in front of the hit."""
    t, margin, side = crossings(eye, triangles)
    room = np.full(t.shape, np.inf)
    starts, directions = eye.rays()
    for i in range(t.shape[-1] if keep is not None else 0):
        room[..., i] = keep(starts + directions * t[..., i, None], i, side[..., i])
    with np.errstate(invalid="ignore"):
        ahead = np.isfinite(t) & (t >= eye.near) & (t <= eye.far)
        hit = ahead & (margin >= 0) & (room >= 0)
        depths = np.where(hit, t, np.inf)
        number = np.argmin(depths, -1)
        best = np.take_along_axis(depths, number[..., None], -1)[..., 0]
        near_edge = (np.abs(margin) < blur) & (room > -blur) | (np.abs(room) < blur) & (margin > -blur)
        reach = (best * (1 + depth))[..., None]
        unsure = (ahead & near_edge & (t <= reach)).any(-1)
        others = hit & (t > best[..., None]) & (t <= reach)
        unsure |= others.any(-1)
    return np.where(np.isfinite(best), number, -1), best, unsure


def compare(frame, expected, *, share: float = 0.05, tolerance: float = 2e-5, starts=(0,)) -> None:
    """A frame's hits, triangles and depths against `first`, where rounding does not decide. ``starts``: number of the first triangle of
    each prim, by primId."""
    number, t, unsure = expected
    assert unsure.mean() <= share
    hit = frame["primId"] >= 0
    found = np.where(hit, np.asarray(starts)[frame["primId"]] + frame["triangleId"], -1)
    assert np.array_equal(found[~unsure], number[~unsure])
    both = ~unsure & hit
    assert both.any()
    np.testing.assert_allclose(frame[PLANE][both], t[both], rtol=tolerance)


# Geometry that is hard to trace: (points (p, 3) float32, faces (n, 3)).


class Pile:
    """Boxes and balls put together to one mesh."""

    def __init__(self) -> None:
        self.points: list[np.ndarray] = []
        self.faces: list[np.ndarray] = []
        self.count = 0

    def add(self, points: np.ndarray, faces: np.ndarray) -> None:
        self.points.append(points)
        self.faces.append(faces + self.count)
        self.count += len(points)

    def box(self, centre, half, turn=None) -> None:
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * half
        quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
        self.add((corners if turn is None else corners @ turn.T) + centre, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]))

    def ball(self, centre, linear, n: int = 9) -> None:
        points, faces = ball(n)
        self.add(points @ linear.T + centre, faces)

    def mesh(self) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate(self.points).astype(np.float32), np.concatenate(self.faces)


def ball(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A closed sphere of n - 1 rings and 2 n columns, its seam and poles welded."""
    u, v = np.meshgrid(np.linspace(0, np.pi, n), np.arange(2 * n) * np.pi / n, indexing="ij")
    points = np.stack([np.sin(u) * np.cos(v), np.sin(u) * np.sin(v), np.cos(u)], -1)
    points[0], points[-1] = points[0, 0], points[-1, 0]
    i, j = (a.ravel() for a in np.mgrid[: n - 1, : 2 * n])
    a, b = i * 2 * n + j, i * 2 * n + (j + 1) % (2 * n)
    faces = np.concatenate([np.stack([a, a + 2 * n, b], -1), np.stack([b, a + 2 * n, b + 2 * n], -1)])
    return points.reshape(-1, 3), faces


def architecture(rng: np.random.Generator, cells: int, beams: int, balls: int) -> tuple[np.ndarray, np.ndarray]:
    """A floor of rooms 4 m wide with doors, thin beams under the ceiling, dense clutter."""
    pile, size = Pile(), 4.0 * cells - 2.0
    for i in range(cells):
        for j in range(cells):
            pile.box((i * 4, j * 4, -0.1), (2, 2, 0.1))
            pile.box((i * 4 + 2, j * 4, 1.5), (0.05, 2 if (i + j) % 2 else 0.8, 1.5))
            pile.box((i * 4, j * 4 + 2, 1.5), (2 if i * j % 2 else 0.8, 0.05, 1.5))
    for _ in range(beams):
        angle = rng.uniform(0, 2 * np.pi) * (rng.random() < 0.3)
        c, s = np.cos(angle), np.sin(angle)
        half = rng.permutation([rng.uniform(3, 9), 0.03, 0.03]) if rng.random() < 0.9 else (0.03, 0.03, 1.5)
        pile.box(rng.uniform((0, 0, 2.4), (size, size, 3.2)), half, np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]))
    for _ in range(balls):
        pile.ball(rng.uniform((0, 0, 0.2), (size, size, 1.5)), rotation(rng) * rng.uniform(0.05, 0.5), 17)
    return pile.mesh()


def needles(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Triangles two metres long and down to a ten-thousandth wide."""
    start, along = rng.uniform(-1, 1, (count, 3)), rng.normal(size=(count, 3))
    across = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-4, -1, (count, 1))
    points = np.stack([start - along, start + along, start + along + across], 1)
    return points.reshape(-1, 3).astype(np.float32), np.arange(3 * count).reshape(-1, 3)


def huge_and_tiny(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Triangles about the origin, from a millimetre to ten kilometres; the huge ones lie behind."""
    sizes = 10.0 ** rng.uniform(-3, 4, count)
    points = rng.normal(size=(count, 3, 3)) * sizes[:, None, None] + rng.uniform(-1, 1, (count, 1, 3))
    points[..., 2] -= 1.5 * sizes[:, None]
    return points.reshape(-1, 3).astype(np.float32), np.arange(3 * count).reshape(-1, 3)


def edge_angle(corners: np.ndarray, start: np.ndarray, direction: np.ndarray) -> float:
    """Angle [rad] between a ray and the nearest edge of a triangle, float64."""
    direction = direction / np.linalg.norm(direction)
    nearest = np.inf
    for a, b in zip(corners - start, np.roll(corners, -1, 0) - start, strict=True):
        s = np.linspace(0.0, 1.0, 2)
        for _ in range(5):  # the angle along an edge has one minimum: close in on it
            s = np.linspace(s[0], s[-1], 65)
            p = a + (b - a) * s[:, None]
            angles = np.linalg.norm(np.cross(p, direction), axis=-1) / np.maximum(p @ direction, 1e-30)
            k = int(np.argmin(angles))
            s = s[[max(k - 1, 0), min(k + 1, 64)]]
        nearest = min(nearest, float(angles.min()))
    return nearest
