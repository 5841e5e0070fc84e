"""Triangles of polygons: order, orientation, and every polygon covered exactly once."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hdwarp.stage.triangulate import triangulate

SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)


def flat(points2) -> np.ndarray:
    points2 = np.asarray(points2, np.float32)
    return np.concatenate([points2, np.zeros((len(points2), 1), np.float32)], axis=1)


def area(points) -> float:
    p = np.asarray(points, np.float64)
    q = np.roll(p, -1, axis=0)
    return 0.5 * float((p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]).sum())


def signed_areas(points, corners) -> np.ndarray:
    a, b, c = (np.asarray(points, np.float64)[corners[:, k], :2] for k in range(3))
    u, v = b - a, c - a
    return 0.5 * (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])


def covers_once(points) -> bool:
    """No triangle points the other way and the areas add up: together that is covering once."""
    corners, face = triangulate(points, [len(points)], np.arange(len(points)))
    assert len(corners) == len(points) - 2
    assert (face == 0).all()
    assert sorted(set(corners.ravel().tolist())) == list(range(len(points)))
    areas = signed_areas(points, corners)
    whole = area(points[:, :2])
    return bool((areas >= -1e-9 * abs(whole)).all()) and areas.sum() == pytest.approx(whole, rel=1e-9)


def test_a_fan_like_hydras():
    """(v0, v1, v2), (v0, v2, v3) for a quad; a pentagon has one more."""
    corners, face = triangulate(SQUARE, [4], [0, 1, 2, 3])
    assert corners.tolist() == [[0, 1, 2], [0, 2, 3]]
    pentagon = flat([(np.cos(t), np.sin(t)) for t in np.linspace(0, 2 * np.pi, 5, endpoint=False)])
    corners, _ = triangulate(pentagon, [5], np.arange(5))
    assert corners.tolist() == [[0, 1, 2], [0, 2, 3], [0, 3, 4]]
    assert corners.dtype == face.dtype == np.int32


def test_corners_count_along_the_face_vertex_indices():
    """Corner numbers are positions in faceVertexIndices, not point numbers; faces keep their authored order and number."""
    points = flat([(0, 0), (1, 0), (1, 1), (0, 1), (2, 0), (2, 1)])
    corners, face = triangulate(points, [3, 4, 3], [0, 1, 2, 1, 4, 5, 2, 0, 2, 3])
    assert face.tolist() == [0, 1, 1, 2]
    assert corners.tolist() == [[0, 1, 2], [3, 4, 5], [3, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize("reflex", range(4))
def test_a_concave_quad_is_cut_at_its_reflex_corner(reflex):
    """An arrow head, its notch at any of the four corners: area 0.5 * 2 * 3 - 0.5 * 2 * 1 = 2."""
    arrow = np.roll(np.array([(0, 1), (1, 0), (0, 3), (-1, 0)], float), reflex, axis=0)
    assert covers_once(flat(arrow))
    assert area(arrow) == pytest.approx(2.0)


def test_left_handed_swaps_the_last_two_corners():
    corners, _ = triangulate(SQUARE, [4], [0, 1, 2, 3], flip=True)
    assert corners.tolist() == [[0, 2, 1], [0, 3, 2]]
    corners, _ = triangulate(np.tile(SQUARE, (2, 1)), [4, 4], np.arange(8), flip=np.array([False, True]))
    assert corners.tolist() == [[0, 1, 2], [0, 2, 3], [4, 6, 5], [4, 7, 6]]


def test_holes_and_small_faces_have_no_triangles_but_count():
    points = np.tile(SQUARE, (2, 1))
    corners, face = triangulate(points, [4, 2, 0, 4, 1], [0, 1, 2, 3, 0, 1, 4, 5, 6, 7, 0], holes=[0])
    assert face.tolist() == [3, 3]
    assert corners.tolist() == [[6, 7, 8], [6, 8, 9]]


def test_nothing_gives_nothing():
    corners, face = triangulate(np.zeros((0, 3)), [], [])
    assert corners.shape == (0, 3)
    assert face.shape == (0,)


CONCAVE = {
    "L": [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)],
    "C with corners on lines": [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (2, 1), (2, 2), (3, 2), (3, 3), (0, 3), (0, 2), (0, 1)],
    "bridge to a hole": [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0), (1, 1), (1, 3), (3, 3), (3, 1), (1, 1)],
    "star": [((1.0 if k % 2 else 0.4) * np.cos(k * np.pi / 5), (1.0 if k % 2 else 0.4) * np.sin(k * np.pi / 5)) for k in range(10)],
}


@pytest.mark.parametrize("name", CONCAVE)
def test_concave_polygons_are_covered_exactly_once(name):
    """A fan would cover the notches too."""
    assert covers_once(flat(CONCAVE[name]))


@pytest.mark.parametrize("seed", range(20))
def test_random_star_shaped_polygons(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    angle, radius = np.linspace(0, 2 * np.pi, n, endpoint=False), rng.uniform(0.2, 1.0, n)
    assert covers_once(flat(np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1)))


def test_a_concave_polygon_in_any_plane_keeps_its_side():
    """The L, turned about an axis and far from the origin: the triangles' area vectors add up to the face's."""
    axis = np.array([0.36, 0.48, 0.8])
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    rotation = np.eye(3) + np.sin(2.0) * k + (1 - np.cos(2.0)) * k @ k
    points = flat(CONCAVE["L"]).astype(float) @ rotation.T + 100.0
    corners, _ = triangulate(points.astype(np.float32), [6], np.arange(6))
    a, b, c = (points[corners[:, j]] for j in range(3))
    vectors = 0.5 * np.cross(b - a, c - a)
    assert vectors.sum(axis=0) == pytest.approx(3.0 * rotation[:, 2], abs=1e-3)
    assert np.linalg.norm(vectors, axis=1).sum() == pytest.approx(3.0, rel=1e-3)


def test_degenerate_polygons_still_give_n_minus_2_triangles():
    """All corners in one place, or on one line: no area to cover, and no exception."""
    for points in (np.zeros((6, 3), np.float32), flat([(k, 0) for k in range(6)])):
        corners, _ = triangulate(points, [6], np.arange(6))
        assert len(corners) == 4


def test_a_polygon_that_crosses_itself_ends():
    points = flat(np.random.default_rng(1).random((500, 2)))
    corners, _ = triangulate(points, [500], np.arange(500))
    assert len(corners) == 498


TOUCHING = {  # polygons that touch themselves, and their area
    "spike": ([(-1, -1), (0, -1), (0.3, -5), (0, -1), (1, -1), (1, 1), (-1, 1)], 4.0),
    "bent spike": ([(-1, -1), (0, -1), (0, -2), (1, -3), (0, -2), (0, -1), (1, -1), (1, 1), (-1, 1)], 4.0),
    "spike that comes back half way": ([(0, 0), (2, 0), (4, 0), (2, 0), (2, 2), (0, 2)], 4.0),
    "spike over the edge": ([(0, 0), (4, 0), (2, 0), (2, 2), (1, 3), (0, 2)], 5.0),
    "slit": ([(-1, -1), (0, -1), (0, 0.5), (0, -1), (1, -1), (1, 1), (-1, 1)], 4.0),
    "squares that touch": ([(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (0, 1), (0, 0), (-1, 0)], 2.0),
    "squares on a string": ([(-1, -1), (0, -1), (0, 0), (1, 1), (2, 1), (2, 2), (1, 2), (1, 1), (0, 0), (-1, 0)], 2.0),
    "hole that touches": ([(0, 0), (4, 0), (4, 4), (0, 4), (0, 0), (1, 2), (2, 1)], 14.5),
    "three at one corner": ([(0, 0), (2, -1), (2, 1), (0, 0), (1, 2), (-1, 2), (0, 0), (-2, 1), (-2, -1)], 6.0),
}


@pytest.mark.parametrize("start", [0, 1, 2, 5])
@pytest.mark.parametrize("name", TOUCHING)
def test_polygons_that_touch_themselves_are_covered_once(name, start):
    """What a spike adds has no area; an ear across the corner where parts meet would count outside and inside twice."""
    corners, whole = TOUCHING[name]
    points = flat(np.roll(np.array(corners, float), -start, axis=0))
    assert area(points[:, :2]) == pytest.approx(whole)
    triangles, _ = triangulate(points, [len(points)], np.arange(len(points)))
    assert len(triangles) == len(points) - 2
    assert np.abs(signed_areas(points, triangles)).sum() == pytest.approx(whole)


def test_triangles_around_a_slit_use_its_tip():
    """It is a corner like others: what varies over the face has a value of its own there."""
    points = flat(TOUCHING["slit"][0])
    corners, _ = triangulate(points, [7], np.arange(7))
    assert (signed_areas(points, corners)[(corners == 2).any(axis=1)] > 0.0).any()


@pytest.mark.parametrize("seed", range(40))
def test_stars_with_spikes_slits_and_attached_triangles(seed):
    """Along rays from the centre, in whole numbers, so that what is meant to touch does."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 12))
    angle, radius = np.linspace(0, 2 * np.pi, n, endpoint=False), rng.uniform(0.5, 1.0, n)
    outline = []
    for x, y in np.round(np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1) * 512) * 2:
        outline.append((x, y))
        what = rng.integers(0, 5)
        if what == 1:  # spike
            outline += [(1.5 * x, 1.5 * y), (x, y)]
        elif what == 2:  # slit
            outline += [(0.5 * x, 0.5 * y), (x, y)]
        elif what == 3:  # a thin triangle outside
            outline += [(1.5 * x + 0.1 * y, 1.5 * y - 0.1 * x), (1.5 * x - 0.1 * y, 1.5 * y + 0.1 * x), (x, y)]
        elif what == 4:  # a thin triangle outside, on a string
            outline += [
                (1.5 * x, 1.5 * y),
                (2 * x + 0.1 * y, 2 * y - 0.1 * x),
                (2 * x - 0.1 * y, 2 * y + 0.1 * x),
                (1.5 * x, 1.5 * y),
                (x, y),
            ]
    points = flat(np.roll(np.array(outline), int(rng.integers(len(outline))), axis=0))
    triangles, _ = triangulate(points, [len(points)], np.arange(len(points)))
    assert np.abs(signed_areas(points, triangles)).sum() == pytest.approx(area(points[:, :2]), rel=1e-6)


@pytest.mark.parametrize("shape", ["gear", "comb", "spiral"])
def test_large_concave_polygons_take_no_quadratic_time(shape):
    """20,000 corners; comparing each with each in Python would take minutes."""
    n = 20_000
    if shape == "gear":
        angle, radius = np.linspace(0, 2 * np.pi, n, endpoint=False), np.where(np.arange(n) % 2, 1.0, 0.5)
        points = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1)
    elif shape == "comb":
        x = np.repeat(np.arange(n // 2), 2) + np.tile([0.0, 0.5], n // 2)
        teeth = np.stack((x, np.tile([1.0, 0.1], n // 2)), axis=1)[::-1]
        points = np.concatenate(([[-1.0, -1.0], [n // 2, -1.0]], teeth))
    else:
        t = np.linspace(0, 20 * np.pi, n // 2)
        direction = np.stack((np.cos(t), np.sin(t)), axis=1)
        points = np.concatenate((direction * (2.5 + t)[:, None], (direction * (1.0 + t)[:, None])[::-1]))
    start = time.perf_counter()
    assert covers_once(flat(points))
    assert time.perf_counter() - start < 20.0
