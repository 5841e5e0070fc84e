"""stage.normals: smooth vertex normals of polygon meshes, computed when somebody looks. NumPy only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hdwarp.stage.columns import Primvar


class Cages:
    """Polygons of some meshes, whose normals are computed together, once, when the first is asked for."""

    def __init__(self, load: Callable[[], tuple[np.ndarray, ...]]) -> None:
        """``load``: gives the arguments of `smooth_normals`."""
        self._load = load

    @cached_property
    def normals(self) -> np.ndarray:
        return smooth_normals(*self._load())

    def polygons(self, points: slice) -> tuple[np.ndarray, ...]:
        """(counts, indices, faces, flip) as `smooth_normals` takes them, of the one mesh that has these points: numbers are its own."""
        _, counts, indices, faces, flip = self._load()
        counts = counts.astype(np.int64)
        used = np.flatnonzero(counts)
        first = indices[(np.cumsum(counts) - counts)[used]]
        here = np.zeros(len(counts), bool)
        here[used] = (first >= points.start) & (first < points.stop)
        return counts[here], indices[np.repeat(here, counts)] - points.start, faces[here], flip[here]


class SmoothNormals(Primvar):
    """The normals of one mesh of `Cages`, a vertex primvar. Depth, ids and positions never ask for them."""

    def __init__(self, cages: Cages, points: slice, content: list[np.ndarray] = ()) -> None:
        """``points``: the mesh's among those of the cages. ``content``: what decides the normals and cannot be told from the triangles."""
        self.interpolation, self.indices = "vertex", None
        self._cages, self._points, self._content = cages, points, content

    @property
    def values(self) -> np.ndarray:
        return self._cages.normals[self._points]

    def content(self) -> list[np.ndarray | None]:
        return list(self._content)

    def fans(self) -> Fans:
        """What the normals are computed from beside the points: see `fans_of`."""
        return fans_of(self._points.stop - self._points.start, *self._cages.polygons(self._points))


def smooth_normals(points: np.ndarray, counts: np.ndarray, indices: np.ndarray, faces: np.ndarray, flip: np.ndarray) -> np.ndarray:
    """(P, 3) float32 unit normals, zero where no face counts.

    Hydra's weighting: each corner of a polygon adds the cross product of its two edges, so large faces and right angles weigh more.
    ``faces`` (F,) bool: which faces count (holes do, for the surface goes on under them); ``flip`` (F,) bool: left-handed ones.
    """
    corner_counts = np.where(faces, counts, 0)
    at, following, before = _corners(counts, corner_counts, indices)
    p = points[at].astype(np.float64)
    a, b = p[following] - p, p[before] - p
    if flip.any():
        a[np.repeat(flip, corner_counts)] *= -1.0
    total_normal = np.empty((len(points), 3))
    for axis, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):  # the cross product by components, summed where it is made
        total_normal[:, axis] = np.bincount(at, a[:, j] * b[:, k] - a[:, k] * b[:, j], len(points))
    length = np.linalg.norm(total_normal, axis=1, keepdims=True)
    return (total_normal / np.where(length > 0.0, length, 1.0)).astype(np.float32)


def _corners(counts: np.ndarray, corner_counts: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(point, following corner, corner before) of each corner of the faces that count: those with ``corner_counts`` above 0."""
    starts = np.cumsum(counts) - counts
    total = int(corner_counts.sum())
    begins = np.cumsum(corner_counts) - corner_counts
    corner = np.arange(total) + np.repeat(starts - begins, corner_counts)
    used = np.flatnonzero(corner_counts)
    first, last = begins[used], begins[used] + corner_counts[used] - 1
    following, before = np.arange(total) + 1, np.arange(total) - 1
    following[last], before[first] = first, last
    return indices[corner], following, before


@dataclass(slots=True, eq=False)
class Fans:
    """The corners around each point of one mesh, in the order in which `smooth_normals` sums them up; those of left-handed faces are
    turned round. All int32."""

    start: np.ndarray  # (P + 1,) where the corners of each point begin
    following: np.ndarray  # (corners,) point after the corner
    before: np.ndarray  # (corners,) point before it
    face: np.ndarray | None  # (corners,) face it is of, counting those that count; None: all of them are triangles
    face_start: np.ndarray | None = None  # (faces + 1,)
    face_points: np.ndarray | None = None  # (corners,) points face by face


def fans_of(point_count: int, counts: np.ndarray, indices: np.ndarray, faces: np.ndarray, flip: np.ndarray) -> Fans:
    """`Fans` of what `smooth_normals` takes, the points excepted."""
    corner_counts = np.where(faces, counts, 0)
    at, following, before = _corners(counts, corner_counts, indices)
    order = np.argsort(at, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=point_count))]).astype(np.int32)
    turned = np.repeat(flip, corner_counts)
    ahead, behind = at[following], at[before]
    ahead, behind = np.where(turned, behind, ahead)[order].astype(np.int32), np.where(turned, ahead, behind)[order].astype(np.int32)
    used = corner_counts[corner_counts > 0]
    if (used == 3).all():
        return Fans(start, ahead, behind, None)
    face = np.repeat(np.arange(len(used), dtype=np.int32), used)[order]
    return Fans(start, ahead, behind, face, np.concatenate([[0], np.cumsum(used)]).astype(np.int32), at.astype(np.int32))
