"""Lights as very many small pieces, in float64: what falls on a plane is summed over those that face it and are above its horizon."""

from __future__ import annotations

import numpy as np

from hdwarp.stage.looks import LightKind


def middles(count: int) -> np.ndarray:
    return (np.arange(count) + 0.5) / count


def pieces(kind: LightKind, size, linear, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(count * count, 3) points about the light's centre, and the vector areas there, which point to where the light shines."""
    u, v = (x.ravel() for x in np.meshgrid(middles(count), middles(count), indexing="ij"))
    zero = 0.0 * u
    if kind == LightKind.RECT:
        points = np.stack([(u - 0.5) * size[0], (v - 0.5) * size[1], zero], axis=-1)
        areas = np.stack([zero, zero, zero - size[0] * size[1]], axis=-1)
    elif kind == LightKind.DISK:
        radius, turn = size[0] * np.sqrt(u), 2 * np.pi * v
        points = np.stack([radius * np.cos(turn), radius * np.sin(turn), zero], axis=-1)
        areas = np.stack([zero, zero, zero - np.pi * size[0] ** 2], axis=-1)
    elif kind == LightKind.SPHERE:
        z, turn = 2 * u - 1, 2 * np.pi * v
        out = np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], axis=-1)
        points, areas = size[0] * out, 4 * np.pi * size[0] ** 2 * out
    else:
        turn = 2 * np.pi * v
        out = np.stack([zero, np.cos(turn), np.sin(turn)], axis=-1)
        points = np.stack([(u - 0.5) * size[0], zero, zero], axis=-1) + size[1] * out
        areas = 2 * np.pi * size[1] * size[0] * out
    linear = np.asarray(linear, np.float64)
    normals_through = abs(np.linalg.det(linear)) * np.linalg.inv(linear).T
    return points @ linear.T, areas @ normals_through.T / count**2


def irradiance(kind: LightKind, size, linear, to_light, n, count: int = 300) -> float:
    """E / L. The shapes are flat or convex, so a piece that faces the place is seen from it."""
    if kind == LightKind.LINE:
        axis = np.asarray(linear, np.float64)[:, 0] * size[0]
        points = np.asarray(to_light) + (middles(count * count)[:, None] - 0.5) * axis
        square = (points**2).sum(axis=1)
        widths = np.linalg.norm(np.cross(axis, points), axis=1) / np.sqrt(square) / count**2
        return float((widths * np.maximum(points @ n, 0.0) / square**1.5).sum())
    if kind == LightKind.DISTANT:
        axis = np.asarray(linear, np.float64)[:, 2]
        axis = axis / np.linalg.norm(axis)
        u, v = (x.ravel() for x in np.meshgrid(middles(count), middles(count)))
        cosine = 1 - u * (1 - size[0])
        side = np.cross(axis, [0.3, -0.5, 0.8])
        side /= np.linalg.norm(side)
        sine = np.sqrt(1 - cosine**2)[:, None]
        ways = cosine[:, None] * axis + sine * (
            np.outer(np.cos(2 * np.pi * v), side) + np.outer(np.sin(2 * np.pi * v), np.cross(axis, side))
        )
        return float(2 * np.pi * (1 - size[0]) * np.maximum(ways @ n, 0.0).mean())
    points, areas = pieces(kind, size, linear, count)
    points = points + np.asarray(to_light)
    square = (points**2).sum(axis=1)
    facing, above = np.maximum(-(points * areas).sum(axis=1), 0.0), np.maximum(points @ n, 0.0)
    return float((facing * above / square**2).sum())
