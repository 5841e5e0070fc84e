"""Whether anything lies on rays that all go one way, in packets: against float64 brute force, and the same rays one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import warp as wp

from hdwarp.tables import structs
from hdwarp.trace import SceneKinds, occluded, ray_bundles

SHAPES = 5


@dataclass
class Rays:
    """As the brute-force caster takes them."""

    origin: np.ndarray
    direction: np.ndarray
    near: float = 0.0
    far: float = 1e6
    radial: bool = True
    orthographic: bool = False
    group: int = 0

    def rays(self):
        return self.origin, np.broadcast_to(self.direction, self.origin.shape).astype(float)


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def scene_of(tools, device, seed):
    """Triangles and shapes all around, rotated, sheared and mirrored."""
    rng = np.random.default_rng(seed)
    instances = [
        tools.Instance(tools.random_affine(rng, mirrored=bool(k % 2)), rng.uniform(-2, 2, 3), mesh=int(rng.integers(2))) for k in range(9)
    ]
    for k in range(10):
        linear = tools.random_affine(rng, mirrored=False) * 0.5
        instances.append(tools.Instance(linear, rng.uniform(-2, 2, 3), kind=1 + k % SHAPES, shape=(0.8, 0.5, 0.6, 0)))
    return tools.Scene([tools.soup(rng, 40), tools.soup(rng, 3)], instances, device=device)


def blocked(scene, eye, starts, way, parallel, *, limits=None, there=None, kinds=None):
    """``starts`` (rows, columns, 3) from ``eye``."""
    shape = starts.shape[:2]
    directions = np.broadcast_to(np.asarray(way, np.float32), starts.shape).copy()
    if there is not None:
        directions[~there] = 0.0
    root = int(scene.top.root[0])
    bundles = ray_bundles(eye, shape, root=root, way=np.asarray(way, np.float32)[None], device=scene.device)
    arrays = [scene._array(a.reshape(-1, 3).astype(np.float32), wp.vec3f) for a in (starts, directions)]
    limits = None if limits is None else scene._array(np.asarray(limits, np.float32).reshape(-1, 2), wp.vec2f)
    top = structs.TopLevel()
    top.nodes, top.children = scene.top.nodes, scene.top.children
    options = {"kinds": kinds or scene.kinds, "limits": limits, "device": scene.device, "parallel": parallel}
    return occluded(bundles, *arrays, scene.columns, scene.rows, top, **options).numpy().reshape(shape)


def starts_of(pattern, rng):
    if pattern == "scattered":
        return rng.uniform(-3, 3, (24, 40, 3))
    y, x = np.mgrid[0:40, 0:56] / 20.0 - 1.0
    near = np.stack([x, y, 0.3 * np.sin(3 * x)], -1)
    if pattern == "grid":
        return near
    return np.where(rng.random(x.shape)[..., None] < 0.2, 40.0 * near, near)  # what is seen past an edge is far off


@pytest.mark.parametrize("pattern", ["grid", "edges", "scattered"])
@pytest.mark.parametrize("seed", range(4))
def test_against_brute_force(tools, pattern, seed, device):
    rng = np.random.default_rng(seed)
    scene, eye, way = scene_of(tools, device, seed), rng.uniform(-1, 1, 3), unit(rng.normal(size=3)).astype(np.float32)
    starts = starts_of(pattern, rng).astype(np.float32)
    got = blocked(scene, eye, starts, way, True)
    expected, unsure = scene.cast(Rays(eye + starts.astype(float), way.astype(float)))
    assert unsure.mean() < 0.06
    assert 0.02 < expected.hit.mean() < 0.95
    np.testing.assert_array_equal(got[~unsure], expected.hit[~unsure])


@pytest.mark.parametrize("pattern", ["grid", "edges", "scattered"])
def test_limits_and_gaps_as_one_by_one(tools, pattern, device):
    """Where a ray begins and ends, and whether there is one, is said ray by ray; rounding may decide for a few that just touch an edge."""
    rng = np.random.default_rng(7)
    scene, eye, way = scene_of(tools, device, 3), np.array([0.1, 0.2, -0.3]), unit(np.array([0.3, 0.9, -0.2]))
    starts = starts_of(pattern, rng)
    near = rng.uniform(0, 1, starts.shape[:2])
    limits = np.stack([near, near + rng.uniform(0, 6, near.shape)], -1)
    limits[::5, ::3, 1] = np.inf
    limits[::7, ::4, 1] = np.nan  # no range: never blocked
    there = rng.random(near.shape) < 0.8
    starts[3, 5] = np.nan
    packets = blocked(scene, eye, starts, way, True, limits=limits, there=there)
    singly = blocked(scene, eye, starts, way, False, limits=limits, there=there)
    assert not packets[~there].any() and not packets[3, 5] and not packets[::7, ::4].any()
    assert 0.02 < singly.mean() < 0.9
    assert (packets != singly).mean() < 2e-3


def test_from_a_sphere_and_its_shadow_on_the_floor(tools, device):
    """The shadow that a ball throws straight down is a disc of its radius; a ray that starts on the ball's upper side is free."""
    ball = tools.Instance(np.eye(3) * 0.5, (0.0, 0.0, 2.0), kind=tools.SPHERE)
    scene = tools.Scene([], [ball], device=device)
    y, x = np.mgrid[0:64, 0:64] / 32.0 - 1.0 + 1 / 64
    floor = np.stack([x, y, np.zeros_like(x)], -1)
    r = np.hypot(x, y)
    got = blocked(scene, np.zeros(3), floor, (0.0, 0.0, 1.0), True, kinds=SceneKinds(shapes=True, mesh=False))
    sure = np.abs(r - 0.5) > 1e-4
    np.testing.assert_array_equal(got[sure], (r < 0.5)[sure])
    inside = r < 0.499
    height = 2.0 + np.sqrt(np.maximum(0.25 - r * r, 0.0))
    top = np.where(inside[..., None], np.stack([x, y, height + 1e-4], -1), np.nan)
    assert not blocked(scene, np.zeros(3), top, (0.0, 0.0, 1.0), True, kinds=SceneKinds(shapes=True, mesh=False)).any()
    under = np.where(inside[..., None], np.stack([x, y, 4.0 - height], -1) - (0, 0, 1e-4), np.nan)
    assert blocked(scene, np.zeros(3), under, (0.0, 0.0, 1.0), True, kinds=SceneKinds(shapes=True, mesh=False))[inside].all()
