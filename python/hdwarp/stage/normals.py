"""stage.normals: smooth vertex normals of polygon meshes. NumPy only."""

from __future__ import annotations

import numpy as np


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
