"""stage.normals: smooth vertex normals of polygon meshes, computed when somebody looks. NumPy only."""

from __future__ import annotations

from collections.abc import Callable
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


def smooth_normals(points: np.ndarray, counts: np.ndarray, indices: np.ndarray, faces: np.ndarray, flip: np.ndarray) -> np.ndarray:
    """(P, 3) float32 unit normals, zero where no face counts.

    Hydra's weighting: each corner of a polygon adds the cross product of its two edges, so large faces and right angles weigh more.
    ``faces`` (F,) bool: which faces count (holes do, for the surface goes on under them); ``flip`` (F,) bool: left-handed ones.
    """
    starts = np.cumsum(counts) - counts
    corner_counts = np.where(faces, counts, 0)
    total = int(corner_counts.sum())
    begins = np.cumsum(corner_counts) - corner_counts
    corner = np.arange(total) + np.repeat(starts - begins, corner_counts)
    used = np.flatnonzero(corner_counts)
    first, last = begins[used], begins[used] + corner_counts[used] - 1
    following, before = np.arange(total) + 1, np.arange(total) - 1
    following[last], before[first] = first, last

    at = indices[corner]
    p = points[at].astype(np.float64)
    a, b = p[following] - p, p[before] - p
    if flip.any():
        a[np.repeat(flip, corner_counts)] *= -1.0
    total_normal = np.empty((len(points), 3))
    for axis, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):  # the cross product by components, summed where it is made
        total_normal[:, axis] = np.bincount(at, a[:, j] * b[:, k] - a[:, k] * b[:, j], len(points))
    length = np.linalg.norm(total_normal, axis=1, keepdims=True)
    return (total_normal / np.where(length > 0.0, length, 1.0)).astype(np.float32)
