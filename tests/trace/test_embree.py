"""The same picture as Embree draws (through Open3D), edge ties apart; no cracks in a closed mesh."""

from __future__ import annotations

import numpy as np
import pytest

WIDTH, HEIGHT = 640, 480


@pytest.fixture(scope="module")
def open3d():
    try:
        import open3d as module
    except (ImportError, OSError) as error:
        pytest.skip(f"Open3D (extra 'bench') does not import here: {error}")
    return module


def embree(open3d, points, triangles, camera):
    """(hit, face, t) images."""
    scene = open3d.t.geometry.RaycastingScene()
    scene.add_triangles(open3d.core.Tensor(np.asarray(points, np.float32)), open3d.core.Tensor(np.asarray(triangles, np.uint32)))
    rays = np.concatenate([np.broadcast_to(a, (HEIGHT, WIDTH, 3)) for a in camera.rays()], -1).astype(np.float32)
    found = scene.cast_rays(open3d.core.Tensor(rays))
    t = found["t_hit"].numpy()
    return np.isfinite(t), found["primitive_ids"].numpy().astype(np.int64), t


def check(image, face, reference, *, masks=0, faces=20, depth=3e-5):
    """At most so many pixels of another mask or face, and those at the same depth: ties."""
    hit, expected, t = reference
    assert (image.hit != hit).sum() <= masks
    both = image.hit & hit
    assert both.mean() > 0.1
    other = both & (face != expected)
    assert other.sum() <= faces
    assert (np.abs(image.t - t)[both] / t[both]).max() < depth


def test_bumpy_sphere(tools, open3d):
    points, triangles = tools.bumpy_sphere(80)
    camera = tools.perspective(WIDTH, HEIGHT)
    image = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))]).trace(camera)[0]
    check(image, image.triangle, embree(open3d, points, triangles, camera))


def test_from_inside_with_triangles_across_the_camera_plane(tools, open3d):
    points, triangles = tools.bumpy_sphere(8)
    points = points * np.float32([1.0, 1.0, 30.0])
    camera = tools.perspective(WIDTH, HEIGHT, eye=(0.3, 0.2, 0.5), turn=tools.rotation((1, 0.3, 0), 0.5), focal=0.4)
    image = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))]).trace(camera)[0]
    check(image, image.triangle, embree(open3d, points, triangles, camera), depth=1e-4)


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
    check(image, image.triangle + image.instance.astype(np.int64) * len(triangles), embree(open3d, flat, faces, camera), masks=2, depth=2e-4)


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
