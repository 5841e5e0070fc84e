"""tables.quaternions: rotation matrices -> quaternions, in float64. NumPy only."""

from __future__ import annotations

import numpy as np


def quaternions_from_matrices(rotations: np.ndarray) -> np.ndarray:
    """(n, 4) unit quaternions (x, y, z, w) of (n, 3, 3) rotation matrices, by the largest of the four components (Shepperd's method)."""
    m = np.asarray(rotations, np.float64)
    trace = np.trace(m, axis1=1, axis2=2)
    largest = np.argmax(np.stack([m[:, 0, 0], m[:, 1, 1], m[:, 2, 2], trace], axis=1), axis=1)
    out = np.empty((len(m), 4))
    for i in range(4):
        rows = np.flatnonzero(largest == i)
        if not len(rows):
            continue
        a, q = m[rows], np.empty((len(rows), 4))
        if i == 3:
            q[:, 0], q[:, 1], q[:, 2] = a[:, 2, 1] - a[:, 1, 2], a[:, 0, 2] - a[:, 2, 0], a[:, 1, 0] - a[:, 0, 1]
            q[:, 3] = 1.0 + trace[rows]
        else:
            j, k = (i + 1) % 3, (i + 2) % 3
            q[:, i] = 1.0 + a[:, i, i] - a[:, j, j] - a[:, k, k]
            q[:, j] = a[:, j, i] + a[:, i, j]
            q[:, k] = a[:, k, i] + a[:, i, k]
            q[:, 3] = a[:, k, j] - a[:, j, k]
        out[rows] = q / np.linalg.norm(q, axis=1, keepdims=True)
    return out
