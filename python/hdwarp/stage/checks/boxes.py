"""stage.checks.boxes: where what is drawn is, as boxes in float64, and what is inside of what. NumPy on the adapter's columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hdwarp.stage.columns import GeometryKind, Gprim, MeshGeometry, StageColumns
from hdwarp.stage.framing import scene_bounds

_MOST = 500_000  # boxes; of more instances the box of all stands for them
_MOST_TRIANGLES = 2_000_000  # of one mesh whose inside is looked for
_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])


@dataclass(slots=True, eq=False)
class _Placed:
    gprims: list[Gprim]  # a row an instance
    lower: np.ndarray  # (n, 3) in object space
    upper: np.ndarray  # (n, 3)
    world_from_object: np.ndarray  # (n, 4, 4), metres


@dataclass(eq=False)
class Boxes:
    """``corners``: (n, 8, 3) world [m], a row an instance, or one row for all. ``complete``: whether all that is drawn is in them."""

    corners: np.ndarray
    complete: bool
    _placed: _Placed | None = None

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(lower, upper) of everything, each (3,), at most as large as boxes of boxes are; None: nothing is drawn."""
        if not len(self.corners):
            return None
        return self.corners.min(axis=(0, 1)), self.corners.max(axis=(0, 1))

    @cached_property
    def size(self) -> float:
        """Length of the diagonal of the bounds [m]; 0 of nothing."""
        return 0.0 if self.bounds is None else float(np.linalg.norm(self.bounds[1] - self.bounds[0]))

    def around(self, point: np.ndarray) -> list[tuple[Gprim, float, float]]:
        """What closed things a world point (3,) [m] is inside of, with the diagonal of the box of each and how far from the point its
        farthest corner is [m]."""
        placed = self._placed
        if placed is None or not len(placed.gprims):
            return []
        try:
            local = np.einsum("nij,j->ni", np.linalg.inv(placed.world_from_object), [*point, 1.0])[:, :3]
        except np.linalg.LinAlgError:
            return []
        held = np.flatnonzero(((local > placed.lower) & (local < placed.upper)).all(axis=1))
        found = []
        for row in held:
            if _is_inside(placed.gprims[row], local[row]):
                corners = self.corners[row]
                size, reach = np.linalg.norm(np.ptp(corners, axis=0)), np.linalg.norm(corners - point, axis=1).max()
                found.append((placed.gprims[row], float(size), float(reach)))
        return found


def boxes_of(columns: StageColumns) -> Boxes:
    """Boxes of all gprims of kinds whose size is known here and finite."""
    drawn = [gprim for gprim in columns.gprims if gprim.mesh is None or len(gprim.mesh.triangle_points)]
    boxes: dict[object, tuple | None] = {}  # by geometry: most of it is drawn often
    known = []
    for gprim in drawn:
        key = gprim.mesh if gprim.mesh is not None else (gprim.kind, gprim.shape)
        if key not in boxes:
            boxes[key] = _object_box(gprim)
        if boxes[key] is not None:
            known.append((gprim, boxes[key]))
    complete = len(known) == len(drawn)
    counts = [len(gprim.transforms) for gprim, _ in known]
    if not sum(counts):
        return Boxes(np.zeros((0, 8, 3)), complete)
    if sum(counts) > _MOST:
        bounds = scene_bounds(columns)
        return Boxes(_box_corners(*bounds)[None] if bounds is not None else np.zeros((0, 8, 3)), complete)
    matrices = np.concatenate([gprim.transforms for gprim, _ in known])
    rows = np.repeat(np.arange(len(known)), counts)
    finite = np.isfinite(matrices).all(axis=(1, 2))
    matrices, rows = matrices[finite], rows[finite]
    lower, upper = (np.array([box[end] for _, box in known])[rows] for end in (0, 1))
    corners = lower[:, None] + (upper - lower)[:, None] * _CORNERS
    world = corners @ matrices[:, :3, :3].swapaxes(1, 2) + matrices[:, None, :3, 3]
    return Boxes(world, complete, _Placed([known[row][0] for row in rows], lower, upper, matrices))


def _box_corners(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return lower + (upper - lower) * _CORNERS


def _object_box(gprim: Gprim) -> tuple[np.ndarray, np.ndarray] | None:
    if gprim.mesh is not None:
        return _mesh_box(gprim.mesh)
    if not all(math.isfinite(number) for number in gprim.shape):
        return None  # it goes on for ever
    if gprim.kind == GeometryKind.CAPSULE:
        lower, upper = _ball_ends(*gprim.shape[:3])
        return np.array([-1.0, -1.0, lower]), np.array([1.0, 1.0, upper])
    reach = {
        GeometryKind.SPHERE: (1.0, 1.0, 1.0),
        GeometryKind.CUBE: (1.0, 1.0, 1.0),
        GeometryKind.PLANE: (1.0, 1.0, 0.0),
        GeometryKind.CONE: (1.0, 1.0, gprim.shape[2]),
    }.get(gprim.kind)
    return None if reach is None else (-np.array(reach), np.array(reach))


def _ball_ends(low: float, high: float, half: float) -> tuple[float, float]:
    """How far down and up the balls reach that close a cone of these radii smoothly: their middles are off its ends."""
    slope = 0.5 * (high - low) / half
    ends = [(z + slope * radius, radius * math.hypot(1.0, slope)) for z, radius in ((-half, low), (half, high))]
    return min(z - radius for z, radius in ends), max(z + radius for z, radius in ends)


def _mesh_box(mesh: MeshGeometry) -> tuple[np.ndarray, np.ndarray]:
    points, reach = mesh.points, 0.0
    if mesh.form != GeometryKind.MESH:  # within the hull of balls
        reach = 0.0 if mesh.radii is None else float(mesh.radii.max())
    elif len(mesh.triangle_points) <= len(points):
        points = points[np.unique(mesh.triangle_points)]
    return points.min(axis=0).astype(np.float64) - reach, points.max(axis=0).astype(np.float64) + reach


def _is_inside(gprim: Gprim, point: np.ndarray) -> bool:
    """Whether a point of object space is inside the closed surface of a shape or mesh; of capsules the part between the balls."""
    x, y, z = point
    if gprim.kind == GeometryKind.SPHERE:
        return bool(x * x + y * y + z * z < 1.0)
    if gprim.kind == GeometryKind.CUBE:
        return True
    if gprim.kind in (GeometryKind.CONE, GeometryKind.CAPSULE):
        low, high, half, _ = gprim.shape
        return bool(abs(z) < half and math.hypot(x, y) < low + (high - low) * (z + half) / (2.0 * half))
    if gprim.kind == GeometryKind.MESH and len(gprim.mesh.triangle_points) <= _MOST_TRIANGLES:
        return abs(_winding(gprim.mesh, point)) > 0.9
    return False


def _winding(mesh: MeshGeometry, point: np.ndarray) -> float:
    """How often the surface goes round a point: 1 or -1 inside a closed one, 0 outside, between for open ones (van Oosterom, Strackee)."""
    a, b, c = (mesh.points[mesh.triangle_points[:, k]].astype(np.float64) - point for k in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    ab, bc, ca = (np.einsum("ni,ni->n", left, right) for left, right in ((a, b), (b, c), (c, a)))
    above = np.einsum("ni,ni->n", a, np.cross(b, c))
    return float(np.arctan2(above, la * lb * lc + ab * lc + bc * la + ca * lb).sum() / (2.0 * np.pi))
