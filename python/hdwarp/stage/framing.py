"""stage.framing: a view of everything, for stages without a camera. NumPy on the adapter's columns; metres, world space."""

from __future__ import annotations

import math

import numpy as np

from hdwarp.stage.columns import Camera, GeometryKind, MeshGeometry, StageColumns

VERTICAL_FOV = math.radians(45.0)
FOCAL_LENGTH = 0.05  # metres; only its ratio to the aperture shows

_MARGIN = 0.9  # part of the picture the bounds may fill
_EXACT_POINTS = 4_000_000  # up to so many points are moved one by one; beyond, the corners of each mesh's own bounds are
_SAMPLE = 64  # points a mesh and instance that show whether all is flat

# Right, up and back of the view as the front of the stage sees them: three-quarter from the right and above first, then what shows a
# flat scene that the first view sees edge-on.
_VIEWS = ((0.52, 0.42, 0.74), (-0.74, 0.42, 0.52), (0.36, 0.86, 0.36), (0.74, 0.1, 0.66), (-0.36, 0.6, 0.71))
_EDGE_ON = 0.2  # a flat scene is shown from where the view and its plane make at least about 12 degrees


def default_camera(columns: StageColumns, image_aspect: float) -> Camera:
    """A camera (path "") that has all gprims in view in an image of that aspect (width / height, pixel aspect included).

    It looks from the front right and above, 45 degrees high, the stage's up axis up; a stage with nothing to draw, around its origin."""
    bounds = scene_bounds(columns)
    lower, upper = bounds if bounds is not None else (-np.ones(3), np.ones(3))
    centre = 0.5 * lower + 0.5 * upper
    half = 0.5 * (upper - lower)
    radius = float(np.linalg.norm(half))
    # A single point has no size: as much as float32 still tells apart around it, a millimetre at the origin.
    radius = max(radius, 1e-5 * float(np.abs(centre).max()), 0.0 if radius > 0.0 else 1e-3)
    rotation = _rotation(columns)
    corners = centre + half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    local = (corners - centre) @ rotation  # right, up, back
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
    used = [_used_points(mesh) for mesh in columns.meshes]
    lowers, uppers = [], []
    for gprim in columns.gprims:
        transforms = _finite(gprim.transforms)
        if not len(transforms):
            continue
        linear, position = transforms[:, :3, :3], transforms[:, :3, 3]
        if gprim.kind == GeometryKind.MESH:
            points = used[gprim.mesh]
            if not len(points):
                continue
            if len(points) * len(transforms) > _EXACT_POINTS:
                points = _corners(points)
            # lower and upper of each coordinate in turn: memory for one coordinate of one instance
            low = np.full(3, np.inf)
            high = np.full(3, -np.inf)
            for rows, offset in zip(linear, position, strict=True):
                moved = points @ rows.T
                low = np.minimum(low, moved.min(axis=0) + offset)
                high = np.maximum(high, moved.max(axis=0) + offset)
        else:
            # What a unit sphere or the cube [-1, 1]^3 reaches along each axis.
            reach = np.linalg.norm(linear, axis=2) if gprim.kind == GeometryKind.SPHERE else np.abs(linear).sum(axis=2)
            low, high = (position - reach).min(axis=0), (position + reach).max(axis=0)
        lowers.append(low)
        uppers.append(high)
    if not lowers:
        return None
    return np.min(lowers, axis=0), np.max(uppers, axis=0)


def _rotation(columns: StageColumns) -> np.ndarray:
    """(3, 3): columns right, up and back of a view that does not see a flat scene edge-on."""
    up = np.array([0.0, 0.0, 1.0]) if columns.up_axis == "Z" else np.array([0.0, 1.0, 0.0])
    right = np.array([1.0, 0.0, 0.0])
    front = np.cross(right, up)  # towards the viewer: +Z with Y up, -Y with Z up
    normal = _flat_normal(columns)
    views = [right * x + up * y + front * z for x, y, z in _VIEWS]
    views = [view / np.linalg.norm(view) for view in views]
    back = next((view for view in views if normal is None or abs(float(view @ normal)) >= _EDGE_ON), views[0])
    across = np.cross(up, back)
    across /= np.linalg.norm(across)
    return np.column_stack([across, np.cross(back, across), back])


def _flat_normal(columns: StageColumns) -> np.ndarray | None:
    """The normal of the plane all geometry lies in, None where it does not lie in one."""
    samples = []
    for gprim in columns.gprims:
        transforms = _finite(gprim.transforms)[:1000]
        if gprim.kind == GeometryKind.MESH:
            points = _used_points(columns.meshes[gprim.mesh])
            points = points[:: max(len(points) // _SAMPLE, 1)]
        else:
            points = _corners(np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]))
        if len(transforms) and len(points):
            samples.append((points @ transforms[:, :3, :3].swapaxes(1, 2) + transforms[:, None, :3, 3]).reshape(-1, 3))
    if not samples:
        return None
    points = np.concatenate(samples)
    points = points - points.mean(axis=0)
    size = np.abs(points).max()
    if not size > 0.0:
        return None
    values, vectors = np.linalg.eigh((points / size).T @ (points / size))
    return vectors[:, 0] if values[0] <= 1e-4 * values[1] else None


def _used_points(mesh: MeshGeometry) -> np.ndarray:
    """The points that triangles use: others (bad ones among them) are not in the picture."""
    return mesh.points[np.unique(mesh.triangle_points)].astype(np.float64)


def _corners(points: np.ndarray) -> np.ndarray:
    low, high = points.min(axis=0), points.max(axis=0)
    return np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])


def _finite(transforms: np.ndarray) -> np.ndarray:
    return transforms[np.isfinite(transforms).all(axis=(1, 2))]
