"""Looking behind what is seen: every layer once, in one order, coincident surfaces too; pixels that are not marked stay as they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

CAMERAS = ("perspective", "orthographic")


def make_camera(tools, kind, **options):
    turn = tools.rotation((1, 2, 3), 0.7)
    options |= {"size": 4.0} if kind == "orthographic" else {}
    return getattr(tools, kind)(eye=turn[:, 2] * 4.0, turn=turn, **options)


def every_layer(tools, scene, camera, count=60):
    """All layers until nothing is left; checks that depths never decrease."""
    images = scene.layers(camera, count)
    assert not images[-1].hit.any()
    for front, behind in itertools.pairwise(images):
        assert (front.hit | ~behind.hit).all()  # what is gone stays gone
        both = behind.hit
        assert (behind.t[both] >= front.t[both]).all()
    return images


@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("seed", range(3))
def test_layers_are_all_hits_of_brute_force_in_order(tools, kind, seed, device):
    """Triangle soups and shapes in sheared and mirrored instances: the set of surfaces on every ray, each exactly once."""
    rng = np.random.default_rng(seed)
    instances = [tools.Instance(tools.random_affine(rng, mirrored=bool(k % 2)), rng.uniform(-1, 1, 3)) for k in range(2)]
    instances += [tools.Instance(np.eye(3) * 0.6, rng.uniform(-1, 1, 3), kind=k) for k in (tools.SPHERE, tools.CUBE)]
    scene = tools.Scene([tools.soup(rng, 25)], instances, device=device)
    camera = make_camera(tools, kind, width=40, height=30)
    images = every_layer(tools, scene, camera)
    origin, direction = camera.rays()
    hits, unsure = np.zeros(camera.rays()[1].shape[:2], int), np.zeros((30, 40), bool)
    nearest = []
    for i in instances:
        for t, margin, _ in scene._crossings(i, origin, direction):
            with np.errstate(invalid="ignore"):
                ahead = (t > 1e-3) & (t < 1e6)
                unsure |= (np.abs(margin) < 3e-4) & ahead
                hits += (margin >= 0) & ahead
                nearest.append(np.where((margin >= 0) & ahead, t, np.inf))
    found = sum(image.hit.astype(int) for image in images)
    assert unsure.mean() < 0.3
    assert hits.max() > 5
    assert np.array_equal(found[~unsure], hits[~unsure])
    ordered = np.sort(nearest, axis=0)
    for image, t in zip(images, ordered, strict=False):
        sure = image.hit & ~unsure
        np.testing.assert_allclose(image.t[sure], t[sure], rtol=3e-5)


@pytest.mark.parametrize("kind", CAMERAS)
def test_coincident_surfaces_come_once_each_by_rank_and_triangle(tools, kind, device):
    """A triangle three times in a mesh, the mesh in four instances, ranks unlike rows: twelve layers in the order of (rank, triangle)."""
    triangle = np.array([[-9, -9, 0.1], [9, -9, 0.2], [0, 12, -0.3]], np.float32)
    mesh = (triangle, np.array([[0, 1, 2]] * 3))
    ranks = [5, 2, 7, 3]
    linear = tools.rotation((3, 1, 2), 0.4)
    scene = tools.Scene([mesh], [tools.Instance(linear, rank=r) for r in ranks], device=device)
    images = scene.layers(make_camera(tools, kind), 12)
    rows = np.argsort(ranks)
    for number, image in enumerate(images[:12]):
        assert (image.instance == rows[number // 3]).all()
        assert (image.triangle == number % 3).all()
        assert image.t.tobytes() == images[0].t.tobytes()
    assert not images[12].hit.any()


def test_coincident_shapes_and_their_two_sides(tools, device):
    """Two equal spheres: both entries by rank, then both exits; the cube's inside is one layer for a camera in it."""
    spheres = [tools.Instance(np.eye(3), kind=tools.SPHERE, rank=r) for r in (1, 0)]
    images = tools.Scene([], spheres, device=device).layers(tools.perspective(15, 15), 4)
    assert [int(image.instance[7, 7]) for image in images] == [1, 0, 1, 0, -1]
    assert [float(image.t[7, 7]) for image in images[:4]] == pytest.approx([2, 2, 4, 4])
    images = tools.Scene([], [tools.Instance(np.eye(3), kind=tools.CUBE)], device=device).layers(
        tools.perspective(15, 15, eye=(0, 0, 0)), 1
    )
    assert images[0].hit.all()
    assert not images[1].hit.any()


@pytest.mark.parametrize("kind", CAMERAS)
def test_only_marked_pixels_change(tools, kind, device):
    """A checkerboard of marks: marked pixels are those of the next layer, the others keep every bit; culled backs are no layer."""
    rng = np.random.default_rng(4)
    instances = [tools.Instance(tools.random_affine(rng, mirrored=False), single_sided=k == 1) for k in range(3)]
    scene = tools.Scene([tools.soup(rng, 40)], instances, device=device)
    camera = make_camera(tools, kind, width=75, height=53, near=3.0)
    marked = (np.add.outer(np.arange(53), np.arange(75)) % 2).astype(np.int32)
    first, second = scene.layers(camera, 1)
    same, part = scene.layers(camera, 1, marked)
    assert same.bits() == first.bits()
    for name in ("triangle", "instance", "t"):
        expected = np.where(marked, getattr(second, name), getattr(first, name))
        assert getattr(part, name).tobytes() == expected.tobytes()


def test_the_layers_of_a_million_coincident_hits_stay_in_bounds(tools):
    """Sixteen-fold instances of a mesh of 400 equal triangles; the bits do not depend on threads."""
    triangle = np.array([[-9, -9, 0], [9, -9, 0], [0, 12, 0]], np.float32)
    scene = tools.Scene([(triangle, np.array([[0, 1, 2]] * 400))], [tools.Instance(np.eye(3)) for _ in range(16)])
    camera = tools.perspective(40, 20)
    bits = []
    for count in (1, 2, 7):
        with tools.threads(count):
            images = scene.layers(camera, 5)
        assert [int(image.triangle[3, 3]) for image in images] == [0, 1, 2, 3, 4, 5]
        bits.append([image.bits() for image in images])
    assert bits[0] == bits[1] == bits[2]
