"""The same picture as Embree draws (through Open3D), edge ties apart; no cracks in a closed mesh."""

from __future__ import annotations

import numpy as np
import pytest

WIDTH, HEIGHT = 640, 480


def embree(open3d, points, triangles, camera):
    """(hit, face, t) images."""
    scene = open3d.t.geometry.RaycastingScene()
    scene.add_triangles(open3d.core.Tensor(np.asarray(points, np.float32)), open3d.core.Tensor(np.asarray(triangles, np.uint32)))
    rays = np.concatenate([np.broadcast_to(a, (HEIGHT, WIDTH, 3)) for a in camera.rays()], -1).astype(np.float32)
    found = scene.cast_rays(open3d.core.Tensor(rays))
    t = found["t_hit"].numpy()
    return np.isfinite(t), found["primitive_ids"].numpy().astype(np.int64), t


def edge_angle(corners, origin, direction):
    """Angle [rad] between a ray and the nearest edge of a triangle, float64."""
    nearest = np.inf
    direction = direction / np.linalg.norm(direction)
    for i in range(3):
        a, b = corners[i] - origin, corners[(i + 1) % 3] - origin
        s = np.linspace(0.0, 1.0, 2)
        for _ in range(4):  # the angle along an edge has one minimum: close in on it
            s = np.linspace(s[0], s[-1], 65)
            p = a + (b - a) * s[:, None]
            angles = np.linalg.norm(np.cross(p, direction), axis=-1) / np.maximum(p @ direction, 1e-30)
            k = int(np.argmin(angles))
            s = s[[max(k - 1, 0), min(k + 1, 64)]]
        nearest = min(nearest, angles.min())
    return nearest


def check(image, face, reference, points, triangles, camera, *, differing=20, depth=3e-5):
    """Masks, faces and depths agree except at ``differing`` pixels at most, and at those the ray passes within 5e-7 rad of an edge of what
    one of the two saw: where its rounded direction, or a rounded vertex, decides."""
    hit, expected, t = reference
    both = image.hit & hit
    assert both.mean() > 0.1
    differs = (image.hit != hit) | (both & (face != expected))
    with np.errstate(invalid="ignore"):
        differs |= both & (np.abs(image.t - t) > depth * t)
    assert differs.sum() <= differing
    origins, directions = (np.broadcast_to(a, (HEIGHT, WIDTH, 3)) for a in camera.rays())
    for y, x in np.argwhere(differs):
        seen = [f[y, x] for f, h in ((face, image.hit), (expected, hit)) if h[y, x]]
        assert min(edge_angle(points[triangles[f]].astype(float), origins[y, x], directions[y, x]) for f in seen) < 5e-7


def test_bumpy_sphere(tools, open3d):
    points, triangles = tools.bumpy_sphere(80)
    camera = tools.perspective(WIDTH, HEIGHT)
    image = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))]).trace(camera)[0]
    check(image, image.triangle, embree(open3d, points, triangles, camera), points, triangles, camera)


def test_from_inside_with_triangles_across_the_camera_plane(tools, open3d):
    points, triangles = tools.bumpy_sphere(8)
    points = points * np.float32([1.0, 1.0, 30.0])
    camera = tools.perspective(WIDTH, HEIGHT, eye=(0.3, 0.2, 0.5), turn=tools.rotation((1, 0.3, 0), 0.5), focal=0.4)
    image = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))]).trace(camera)[0]
    check(image, image.triangle, embree(open3d, points, triangles, camera), points, triangles, camera)


def test_a_hundred_instances(tools, open3d):
    """Against the flattened scene: float32 vertices instead of a float32 transform, so that depths differ a little more."""
    rng = np.random.default_rng(0)
    points, triangles = tools.bumpy_sphere(17)
    instances = [
        tools.Instance(tools.rotation(rng.normal(size=3), rng.uniform(0, 6)) * rng.uniform(0.3, 0.6), rng.uniform(-3, 3, 3) * [1, 1, 0.4])
        for _ in range(100)
    ]
    flat = np.concatenate([points @ np.asarray(i.linear).T + i.translation for i in instances]).astype(np.float32)
    faces = np.concatenate([triangles + k * len(points) for k in range(100)])
    camera = tools.perspective(WIDTH, HEIGHT, eye=(6, -5, 3), turn=tools.look_at((6, -5, 3), (0, 0, 0)))
    image = tools.Scene([(points, triangles)], instances).trace(camera)[0]
    face = image.triangle + image.instance.astype(np.int64) * len(triangles)
    check(image, face, embree(open3d, flat, faces, camera), flat, faces, camera, depth=5e-5)


@pytest.mark.parametrize("affine", [False, True])
def test_a_closed_mesh_has_no_cracks(tools, affine):
    """From inside a closed surface every ray hits: three million rays over edges and points, through a sheared instance."""
    rng = np.random.default_rng(1)
    points, triangles = tools.bumpy_sphere(120)
    size = 240  # weld the seam and the poles: what closes in space must close in numbers
    points = points.reshape(120, size, 3)
    points[:, -1] = points[:, 0]
    points[0], points[-1] = points[0, 0], points[-1, 0]
    scene = tools.Scene([(points.reshape(-1, 3), triangles)], [tools.Instance(tools.random_affine(rng, mirrored=False))], affine=affine)
    for _ in range(10):
        turn = tools.rotation(rng.normal(size=3), rng.uniform(0, 6))
        camera = tools.perspective(WIDTH, HEIGHT, eye=rng.uniform(-0.05, 0.05, 3), turn=turn, focal=0.5)
        assert scene.trace(camera)[0].hit.all()
