"""stage.framing: a view of everything, for stages without a camera. NumPy on the adapter's columns; metres, world space."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hdwarp.stage.columns import Camera, GeometryKind, Gprim, MeshGeometry, StageColumns

VERTICAL_FOV = math.radians(45.0)
FOCAL_LENGTH = 0.05  # metres; only its ratio to the aperture shows

_MARGIN = 0.9  # part of the picture the bounds may fill
_EXACT_POINTS = 4_000_000  # up to so many points are moved one by one; beyond, the corners of each mesh's own bounds are
_CHUNK = 1_000_000  # points moved at a time
_CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_SQUARE = _CUBE[::2] * (1.0, 1.0, 0.0)
_SAMPLE = 64  # points a mesh and instance that show whether all is flat

# Right, up and back of the view as the front of the stage sees them: three-quarter from the right and above first, then what shows a
# flat scene that the first view sees edge-on.
_VIEWS = ((0.52, 0.42, 0.74), (-0.74, 0.42, 0.52), (0.36, 0.86, 0.36), (0.74, 0.1, 0.66), (-0.36, 0.6, 0.71))
_EDGE_ON = 0.2  # a flat scene is shown from where the view and its plane make at least about 12 degrees


def default_camera(columns: StageColumns, image_aspect: float) -> Camera:
    """A camera (path "") that has all gprims in view in an image of that aspect (width / height, pixel aspect included).

    It looks from the front right and above, 45 degrees high, the stage's up axis up; a stage with nothing to draw, around its origin."""
    placed = list(_placed(columns.gprims))
    bounds = _bounds(placed)
    lower, upper = bounds if bounds is not None else (-np.ones(3), np.ones(3))
    centre = 0.5 * lower + 0.5 * upper
    half = 0.5 * (upper - lower)
    radius = float(np.linalg.norm(half))
    # A single point has no size: a millimetre. Far off, what float64 places still tell apart.
    radius = max(radius, 1e-12 * float(np.abs(centre).max()), 0.0 if radius > 0.0 else 1e-3)
    rotation = _rotation(placed, columns.up_axis)
    local = (half * _CUBE) @ rotation  # the corners of the bounds: right, up, back
    tangent = math.tan(0.5 * VERTICAL_FOV)
    reach = np.array([tangent * image_aspect, tangent]) * _MARGIN
    distance = float((np.abs(local[:, :2]) / reach + local[:, 2:]).max())
    distance = max(distance, radius + 0.1 * radius)  # outside of what it looks at
    world_from_camera = np.eye(4)
    world_from_camera[:3, :3] = rotation
    world_from_camera[:3, 3] = centre + rotation[:, 2] * distance
    depths = distance - local[:, 2]
    aperture = 2.0 * FOCAL_LENGTH * tangent
    return Camera(
        path="",
        world_from_camera=world_from_camera,
        axes=np.eye(3),
        focal_length=FOCAL_LENGTH,
        aperture=(aperture * image_aspect, aperture),
        clipping_range=(max(0.1 * float(depths.min()), 1e-3 * distance), 10.0 * (distance + radius)),
    )


def scene_bounds(columns: StageColumns) -> tuple[np.ndarray, np.ndarray] | None:
    """World bounds [m] of all gprims, (lower, upper) each (3,) float64, exact but for meshes drawn very often; None: nothing to draw."""
    return _bounds(list(_placed(columns.gprims)))


class _Placed(NamedTuple):
    """A gprim's geometry, points or what stands for them on round shapes, and where it is drawn."""

    points: np.ndarray | None  # (P, 3)
    ends: tuple[tuple[float, float], ...]  # (z, radius) of the balls, or discs, that a round shape is the hull of
    discs: bool
    linear: np.ndarray  # (n, 3, 3)
    position: np.ndarray  # (n, 3)


def _placed(gprims: Sequence[Gprim]) -> Iterator[_Placed]:
    """Everything drawn. What goes on for ever is left out, unless there is nothing else."""
    used: dict[MeshGeometry | None, np.ndarray] = {None: _CUBE}
    finite = [gprim for gprim in gprims if all(math.isfinite(number) for number in gprim.shape)]
    for gprim in finite or gprims:
        transforms = gprim.transforms[np.isfinite(gprim.transforms).all(axis=(1, 2))]
        if not len(transforms):
            continue
        if gprim.mesh not in used:
            used[gprim.mesh] = used_points(gprim.mesh)
        ends = _round_ends(gprim)
        points = None if ends else _SQUARE if gprim.kind == GeometryKind.PLANE else used[gprim.mesh]
        if ends or len(points):
            yield _Placed(points, ends, gprim.kind == GeometryKind.CONE, transforms[:, :3, :3], transforms[:, :3, 3])


def _round_ends(gprim: Gprim) -> tuple[tuple[float, float], ...]:
    low, high, half, _ = gprim.shape
    if gprim.kind == GeometryKind.SPHERE:
        return ((0.0, 1.0),)
    if gprim.kind == GeometryKind.CONE:
        return ((-half, low), (half, high))
    if gprim.kind == GeometryKind.CAPSULE:
        slope = 0.5 * (high - low) / half
        return tuple((z + slope * radius, radius * math.hypot(1.0, slope)) for z, radius in ((-half, low), (half, high)))
    return ()


def _bounds(placed: list[_Placed]) -> tuple[np.ndarray, np.ndarray] | None:
    lows, highs = [], []
    for points, ends, discs, linear, position in placed:
        if points is None:
            unit = np.linalg.norm(linear[:, :, :2] if discs else linear, axis=2)  # how far a ball or disc of radius 1 reaches
            for z, radius in ends:
                centre = position + linear[:, :, 2] * z
                lows.append((centre - unit * radius).min(axis=0))
                highs.append((centre + unit * radius).max(axis=0))
            continue
        if len(points) * len(linear) > _EXACT_POINTS:
            points = _corners(points)
        step = max(_CHUNK // len(points), 1)
        for start in range(0, len(linear), step):
            moved = points @ linear[start : start + step].swapaxes(1, 2)
            offset = position[start : start + step]
            lows.append((moved.min(axis=1) + offset).min(axis=0))
            highs.append((moved.max(axis=1) + offset).max(axis=0))
    return (np.min(lows, axis=0), np.max(highs, axis=0)) if lows else None


def _rotation(placed: list[_Placed], up_axis: str) -> np.ndarray:
    """(3, 3): columns right, up and back of a view that does not see a flat scene edge-on."""
    up = np.array([0.0, 0.0, 1.0]) if up_axis == "Z" else np.array([0.0, 1.0, 0.0])
    right = np.array([1.0, 0.0, 0.0])
    front = np.cross(right, up)  # towards the viewer: +Z with Y up, -Y with Z up
    normal = _flat_normal(placed)
    views = [right * x + up * y + front * z for x, y, z in _VIEWS]
    views = [view / np.linalg.norm(view) for view in views]
    back = next((view for view in views if normal is None or abs(float(view @ normal)) >= _EDGE_ON), views[0])
    across = np.cross(up, back)
    across /= np.linalg.norm(across)
    return np.column_stack([across, np.cross(back, across), back])


def _flat_normal(placed: list[_Placed]) -> np.ndarray | None:
    """The normal of the plane all geometry lies in, None where it does not lie in one."""
    samples = []
    for points, _, _, linear, position in placed:
        points = _CUBE if points is None else points[:: max(len(points) // _SAMPLE, 1)]
        samples.append((points @ linear[:1000].swapaxes(1, 2) + position[:1000, None]).reshape(-1, 3))
    if not samples:
        return None
    cloud = np.concatenate(samples)
    cloud -= cloud.mean(axis=0)
    size = np.abs(cloud).max()
    if not size > 0.0:
        return None
    values, vectors = np.linalg.eigh((cloud / size).T @ (cloud / size))
    return vectors[:, 0] if values[0] <= 1e-4 * values[1] else None


def used_points(mesh: MeshGeometry) -> np.ndarray:
    """(P, 3) float64 points whose hull holds all of a mesh. Those that no triangle uses, bad ones among them, are not in the picture."""
    if mesh.form != GeometryKind.MESH:
        points = mesh.points.astype(np.float64)
        if mesh.radii is None:
            return points
        reach = np.zeros((6, len(points), 3))  # the tips of an octahedron of which the cube about the ball is the box
        for axis in range(3):
            reach[2 * axis, :, axis], reach[2 * axis + 1, :, axis] = mesh.radii, -mesh.radii
        return (points + reach).reshape(-1, 3)
    return mesh.points[np.unique(mesh.triangle_points)].astype(np.float64)


def _corners(points: np.ndarray) -> np.ndarray:
    low, high = points.min(axis=0), points.max(axis=0)
    return np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
