"""stage.light_sizes: how large lights are in the world, which is what `normalize` divides by. NumPy only, no prims."""

from __future__ import annotations

import math

import numpy as np

_UNIT = np.eye(3)


def distant_size(angle: float) -> float:
    """UsdLux's sizeFactor of a DistantLight that fills ``angle`` degrees: the irradiance of a surface that faces one of radiance 1."""
    half = min(max(math.radians(angle) / 2, 0.0), math.pi)
    if half == 0.0:
        return 1.0
    sine = math.sin(half) ** 2
    return math.pi * (sine if half <= math.pi / 2 else 2.0 - sine)


def sphere_area(axes: np.ndarray, radius: float) -> float:
    """Area of a sphere under the linear map ``axes`` (3, 3): an ellipsoid. Exact where it stays a sphere, else to about 1e-6."""
    gram = axes.T @ axes
    if np.abs(gram - gram[0, 0] * _UNIT).max() <= 1e-9 * gram[0, 0]:
        return 4.0 * math.pi * radius**2 * float(gram[0, 0])
    lengths = np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0.0))
    z, weights = np.polynomial.legendre.leggauss(64)
    turn = (np.arange(128) + 0.5) * (2.0 * math.pi / 128)
    across = np.sqrt(1.0 - z * z)[:, None]
    normals = np.stack([across * np.cos(turn), across * np.sin(turn), np.broadcast_to(z[:, None], (64, 128))])
    a, b, c = lengths
    stretch = np.linalg.norm(normals * np.array([b * c, a * c, a * b])[:, None, None], axis=0)
    return float(radius**2 * (weights * stretch.mean(axis=1)).sum() * 2.0 * math.pi)


def flat_area(axes: np.ndarray, area: float) -> float:
    """Of what lies at z = 0 and has ``area`` before the map."""
    return area * float(np.linalg.norm(np.cross(axes[:, 0], axes[:, 1])))


def girth(axes: np.ndarray) -> float:
    """Area of a cylinder about x of length and radius 1, without its ends."""
    turn = (np.arange(512) + 0.5) * (2.0 * math.pi / 512)
    tangents = np.outer(axes[:, 1], -np.sin(turn)) + np.outer(axes[:, 2], np.cos(turn))
    return float(np.linalg.norm(np.cross(axes[:, 0], tangents, axis=0), axis=0).mean() * 2.0 * math.pi)


def mesh_area(points: np.ndarray, triangles: np.ndarray, transform: np.ndarray) -> float:
    """``points`` (P, 3), ``triangles`` (T, 3) of them, ``transform`` (4, 4)."""
    corners = (points.astype(np.float64) @ transform[:3, :3].T)[triangles]
    return float(np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum() / 2.0)
