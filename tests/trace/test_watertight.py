"""No ray leaks out of a closed mesh: over edges and points, in sheared and mirrored instances, at any size of triangle."""

from __future__ import annotations

import numpy as np
import pytest

WIDTH, HEIGHT = 640, 480


def welded_sphere(tools, n):
    """The bumpy sphere, its seam and poles closed in numbers too."""
    points, triangles = tools.bumpy_sphere(n)
    points = points.reshape(n, 2 * n, 3)
    points[:, -1] = points[:, 0]
    points[0], points[-1] = points[0, 0], points[-1, 0]
    return points.reshape(-1, 3), triangles


def scenes(tools, rng):
    """Closed meshes about the origin: fine, coarse, drawn out to needles, flat as a coin."""
    for n, stretch in ((120, (1, 1, 1)), (400, (1, 1, 1)), (12, (1, 1, 1)), (60, (1, 1, 200)), (60, (100, 100, 1))):
        points, triangles = welded_sphere(tools, n)
        linear = tools.random_affine(rng, mirrored=n == 12)
        yield tools.Scene([((points * stretch).astype(np.float32), triangles)], [tools.Instance(linear)], affine=n != 60)


def leaks(tools, rng, scene, pictures):
    """Rays from inside that hit nothing."""
    missed = 0
    for _ in range(pictures):
        turn = tools.rotation(rng.normal(size=3), rng.uniform(0, 6))
        eye = rng.uniform(-0.05, 0.05, 3)
        missed += (~scene.trace(tools.perspective(WIDTH, HEIGHT, eye=eye, turn=turn, focal=rng.uniform(0.4, 1.5)))[0].hit).sum()
    return missed


def test_three_million_rays(tools):
    rng = np.random.default_rng(1)
    for scene in scenes(tools, rng):
        assert leaks(tools, rng, scene, 2) == 0


@pytest.mark.slow
def test_a_hundred_million_rays(tools):
    rng = np.random.default_rng(2)
    for scene in scenes(tools, rng):
        assert leaks(tools, rng, scene, 66) == 0
