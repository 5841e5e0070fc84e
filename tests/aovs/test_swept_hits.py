"""One ray and one point, piece of a tube or of a ribbon: t, how far along, normal, how it has moved; against closed forms in float64."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from hdwarp.aovs.buffers import flat_scalars
from hdwarp.aovs.swept_hits import shift_of_swept, swept_hit, unit_of
from hdwarp.stage.columns import BALL, CAPPED_END, CAPPED_START, GeometryKind

_spec = importlib.util.spec_from_file_location("swept_scene", Path(__file__).parents[1] / "trace" / "swept_scene.py")
swept_scene = sys.modules["swept_scene"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(swept_scene)
Swept, TUBE = swept_scene.Swept, swept_scene.TUBE

NEAR = 1e-4  # how well the record knows t, here: the hits must be better


@wp.kernel(enable_backward=False)
def _hits(
    kind: wp.int32,
    vertices: wp.array[wp.float32],
    slot: wp.array[wp.int32],
    origin: wp.array[wp.vec3d],
    direction: wp.array[wp.vec3d],
    seen: wp.array[wp.float64],
    t: wp.array[wp.float64],
    along: wp.array[wp.float64],
    normal: wp.array[wp.vec3d],
):
    i = wp.tid()
    hit = swept_hit(kind, vertices, slot[i], origin[i], direction[i], seen[i])
    t[i] = hit.t
    along[i] = hit.along
    normal[i] = hit.normal


@wp.kernel(enable_backward=False)
def _shifts(
    kind: wp.int32,
    vertices: wp.array[wp.float32],
    slot: wp.array[wp.int32],
    item: wp.array[wp.int32],
    size: wp.int32,
    p: wp.array[wp.vec3d],
    previous: wp.array[wp.vec3f],
    shift: wp.array[wp.vec3d],
):
    i = wp.tid()
    shift[i] = shift_of_swept(kind, p[i], slot[i], size * item[i], vertices, previous)


@wp.kernel(enable_backward=False)
def _units(v: wp.array[wp.vec3d], out: wp.array[wp.vec3f]):
    out[wp.tid()] = unit_of(v[wp.tid()])


class Items:
    """Points or pieces in leaves, and rays at them."""

    def __init__(self, swept, device):
        self.kind, self.count, self.device = int(swept.form), swept.count, device
        self.bvhs = swept_scene.SweptScene(swept, device=device).bvhs
        items = self.bvhs.slot_triangle.numpy()
        self.slots = np.zeros(swept.count, np.int32)
        self.slots[items[items >= 0]] = np.flatnonzero(items >= 0)

    def array(self, values, dtype):
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.device)

    def hits(self, item, origins, directions, seen):
        """(n,) t, (n,) along, (n, 3) normal of unit length, of rays (n, 3)."""
        origins, directions, seen = np.broadcast_arrays(origins, directions, np.asarray(seen, float)[..., None])
        n = len(origins)
        slots = np.broadcast_to(self.slots[item], n)
        inputs = [self.kind, flat_scalars(self.bvhs.leaf_vertices), self.array(slots, wp.int32)]
        inputs += [self.array(origins, wp.vec3d), self.array(directions, wp.vec3d), self.array(seen[:, 0], wp.float64)]
        out = [wp.empty(n, dtype=dtype, device=self.device) for dtype in (wp.float64, wp.float64, wp.vec3d)]
        wp.launch(_hits, n, inputs, out, device=self.device)
        t, along, normal = (array.numpy() for array in out)
        return t, along, normal / np.linalg.norm(normal, axis=-1, keepdims=True)

    def shifts(self, item, p, previous, size):
        """(n, 3) of points ``p`` (n, 3): where they were, less where they are; ``previous`` points, ``size`` of them an item."""
        n = len(p)
        items = np.broadcast_to(np.asarray(item, np.int32), n)
        inputs = [self.kind, flat_scalars(self.bvhs.leaf_vertices), self.array(self.slots[items], wp.int32), self.array(items, wp.int32)]
        inputs += [size, self.array(p, wp.vec3d), self.array(previous.reshape(-1, 3).astype(np.float32), wp.vec3f)]
        shift = wp.empty(n, dtype=wp.vec3d, device=self.device)
        wp.launch(_shifts, n, inputs, [shift], device=self.device)
        return shift.numpy()


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def lines(rng, through, count=200):
    """Rays of any length of direction that pass ``through`` (n, 3) points, from about 4 away."""
    way = rng.normal(size=(count, 3))
    return through - unit(way) * rng.uniform(3, 5, (count, 1)), way


def cone_entry(origins, directions, at, slope):
    """(n, 2) t where lines enter and leave the cone of radius ``at`` + ``slope`` z about z, in float64."""
    radius, growth = at + slope * origins[:, 2], slope * directions[:, 2]
    a = (directions[:, :2] ** 2).sum(-1) - growth**2
    b = (origins[:, :2] * directions[:, :2]).sum(-1) - radius * growth
    c = (origins[:, :2] ** 2).sum(-1) - radius**2
    root = np.sqrt(b * b - a * c)
    return np.stack([(-b - root) / a, (-b + root) / a], 1)


@pytest.mark.parametrize("slope", [0.0, -0.2], ids=["cylinder", "cone"])
@pytest.mark.parametrize("way", [0, 1], ids=["entering", "leaving"])
def test_the_side_of_a_straight_tube(slope, way, device):
    """Radius 0.4 + slope z, z from -1 to 1: a quadratic. The normal is the gradient of x^2 + y^2 - radius^2; along is (z + 1) / 2."""
    items = Items(swept_scene.tubes(TUBE, 0.4 + slope * TUBE[:, :, 2], 0), device)
    rng = np.random.default_rng(1)
    through = rng.uniform(-1, 1, (200, 3)) * (0.1, 0.1, 0.5)
    origins, directions = lines(rng, through)
    t = cone_entry(origins, directions, 0.4, slope)[:, way]
    p = origins + directions * t[:, None]
    within = (np.abs(p[:, 2]) < 0.99) & np.isfinite(t)
    assert within.sum() > 100
    origins, directions, t, p = origins[within], directions[within], t[within], p[within]
    found, along, normal = items.hits(0, origins, directions, t * (1 + NEAR))
    np.testing.assert_allclose(found, t, rtol=1e-6)
    np.testing.assert_allclose(along, (p[:, 2] + 1) / 2, atol=1e-6)
    expected = np.concatenate([p[:, :2], -slope * (0.4 + slope * p[:, 2:])], -1)
    np.testing.assert_allclose(normal, unit(expected), atol=1e-6)


@pytest.mark.parametrize("end", [0, 1])
def test_the_discs_at_the_ends_of_a_tube(end, device):
    """Level at z = -1 and 1, seen from without; the normal is along the tube, outward."""
    items = Items(swept_scene.tubes(TUBE, np.full((1, 4), 0.5), CAPPED_START | CAPPED_END), device)
    rng = np.random.default_rng(2)
    out = np.array([0, 0, 2.0 * end - 1])
    p = rng.uniform(-0.3, 0.3, (100, 3)) * (1, 1, 0) + out
    directions = rng.normal(size=(100, 3)) * (0.2, 0.2, 0) - out
    t, along, normal = items.hits(0, p - directions * 2.0, directions, np.full(100, 2 + NEAR))
    np.testing.assert_allclose(t, 2.0, rtol=1e-12)
    np.testing.assert_array_equal(along, end)
    np.testing.assert_allclose(normal, np.broadcast_to(out, normal.shape), atol=1e-12)


def test_what_is_beyond_a_tube_stays_where_it_was_seen(device):
    """Half a radius past the end of a tube without discs the steps lead nowhere."""
    items = Items(swept_scene.tubes(TUBE, np.full((1, 4), 0.5), 0), device)
    t, along, _ = items.hits(0, np.array([[3.0, 0, 1.25]]), np.array([[-1.0, 0, 0]]), [2.51])
    assert t[0] == 2.51
    assert along[0] == 1.0


def test_a_bent_tube_is_a_torus(device):
    """36 pieces of a ring of radius 1, 0.3 thick: rays towards the axis of the tube, any piece, side and place. How far along is by the
    angle of the cubic, by bisection."""
    swept = swept_scene.ring()
    items, parts = Items(swept, device), 36
    rng = np.random.default_rng(3)
    piece, share, around = rng.integers(0, parts, 300), rng.uniform(0.02, 0.98, 300), rng.uniform(0, 2 * np.pi, 300)
    control = swept.points.reshape(parts, 4, 3)[piece]

    def middle(u):
        v = 1 - u
        return np.einsum("kn,nkc->nc", np.stack([v**3, 3 * v * v * u, 3 * v * u * u, u**3]), control)

    angle = (piece + share) * 2 * np.pi / parts
    ahead = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], -1)
    low, high = np.zeros(300), np.ones(300)
    for _ in range(50):
        u = (low + high) / 2
        before = (middle(u) * ahead).sum(-1) < 0  # the angle grows with u
        low, high = np.where(before, u, low), np.where(before, high, u)
    out = np.stack([np.cos(angle), np.sin(angle), 0 * angle], -1)
    normal = out * np.cos(around)[:, None] + np.array([0, 0, 1.0]) * np.sin(around)[:, None]
    start = out + normal * 0.5
    t, along, found = items.hits(piece, start, -normal, np.full(300, 0.2 + NEAR))
    np.testing.assert_allclose(t, 0.2, atol=1e-6)
    np.testing.assert_allclose(along, u, atol=1e-5)
    np.testing.assert_allclose(found, normal, atol=1e-5)


@pytest.mark.parametrize("turn", [1, -1], ids=["facing +z", "facing -z"])
def test_a_ribbon_is_the_surface_between_its_edges(turn, device):
    """Lines from y = -1 to 1 at each x from -1 to 1 of height x y: z = x y, a quadratic for each ray. The normal is along x across, whoever
    looks: (-y, -x, 1), or with the edges changed minus that."""
    x = np.linspace(-1, 1, 4)
    edges = np.stack([np.stack([x, 0 * x - turn, -turn * x], -1), np.stack([x, 0 * x + turn, turn * x], -1)])
    items = Items(Swept(GeometryKind.RIBBONS, edges.reshape(-1, 3), None, np.array([16])), device)
    rng = np.random.default_rng(4)
    p = rng.uniform(-0.9, 0.9, (300, 3))
    p[:, 2] = p[:, 0] * p[:, 1]
    directions = rng.normal(size=(300, 3)) * 0.3 - [0, 0, 1.0]
    steep = np.abs((unit(np.stack([-p[:, 1], -p[:, 0], 1 + 0 * p[:, 0]], -1)) * unit(directions)).sum(-1)) > 0.3
    p, directions = p[steep], directions[steep]
    t, along, normal = items.hits(0, p - directions * 3.0, directions, np.full(len(p), 3 + NEAR))
    np.testing.assert_allclose(t, 3.0, rtol=1e-6)
    np.testing.assert_allclose(along, (p[:, 0] + 1) / 2, atol=1e-6)
    np.testing.assert_allclose(normal, turn * unit(np.stack([-p[:, 1], -p[:, 0], 1 + 0 * p[:, 0]], -1)), atol=1e-6)


@pytest.mark.parametrize("leaving", [False, True])
@pytest.mark.parametrize("form", ["point", "joint"])
def test_a_ball(form, leaving, device):
    """b and the discriminant of a sphere; a joint of a tube lies where its piece starts, here at a half of its segment."""
    centre, radius = np.array([0.25, -0.5, 1.0]), 0.75
    if form == "point":
        swept = Swept(GeometryKind.POINTS, centre[None], np.array([radius]))
    else:
        swept = swept_scene.tubes(np.tile(centre, (1, 4, 1)), np.full((1, 4), radius), 0)
        swept.pieces[:] = 16 * 3 + BALL
    rng = np.random.default_rng(5)
    origins, directions = lines(rng, centre + rng.uniform(-0.3, 0.3, (200, 3)))
    dd, b = (directions**2).sum(-1), ((origins - centre) * directions).sum(-1)
    root = np.sqrt(b * b - dd * (((origins - centre) ** 2).sum(-1) - radius**2))
    t = (-b + (root if leaving else -root)) / dd
    found, along, normal = Items(swept, device).hits(0, origins, directions, t * (1 + NEAR))
    np.testing.assert_allclose(found, t, rtol=1e-12)
    np.testing.assert_allclose(normal, (origins + directions * t[:, None] - centre) / radius, atol=1e-12)
    np.testing.assert_array_equal(along, 0.0 if form == "point" else 0.5)


def test_a_ball_that_the_exact_ray_passes_is_hit_where_it_is_nearest(device):
    items = Items(Swept(GeometryKind.POINTS, np.zeros((1, 3)), np.ones(1)), device)
    t, _, normal = items.hits(0, np.array([[3.0, 1.001, 0]]), np.array([[-2.0, 0, 0]]), [1.4])
    assert t[0] == 1.5
    np.testing.assert_allclose(normal[0], (0, 1, 0), atol=1e-12)


@pytest.mark.parametrize("form", ["tube", "ribbon"])
@pytest.mark.parametrize(("parts", "number"), [(1, 0), (2, 1), (8, 5)])
def test_along_counts_through_the_parts_of_a_segment(parts, number, form, device):
    """A quarter of the way along part 5 of 8 is 5.25 / 8 of the segment."""
    code = 16 * (parts + number)
    x = np.linspace(-1, 1, 4)
    if form == "tube":
        swept = swept_scene.tubes(np.stack([x, 0 * x, 0 * x], -1)[None], np.full((1, 4), 0.5), 0)
        swept.pieces[:] = code
        seen = 1.5
    else:
        edges = np.stack([np.stack([x, 0 * x + y, 0 * x], -1) for y in (-1, 1)])
        swept, seen = Swept(GeometryKind.RIBBONS, edges.reshape(-1, 3), None, np.array([code])), 2.0
    _, along, _ = Items(swept, device).hits(0, np.array([[-0.5, 0, 2.0]]), np.array([[0, 0, -1.0]]), [seen])
    assert along[0] == pytest.approx((number + 0.25) / parts, abs=1e-7)


MOVE = np.array([[1.5, 0.25, 0], [-0.5, 1, 0.125], [0, 0.5, 2]]), np.array([1.0, -2, 0.5])


def moved(p):
    return p @ MOVE[0].T + MOVE[1]


def test_points_move_with_their_centres(device):
    centres = np.array([[0, 0, 0], [1, 2, 3.0]])
    items = Items(Swept(GeometryKind.POINTS, centres, np.full(2, 0.5)), device)
    shift = items.shifts([0, 1], centres + [0.5, 0, 0], moved(centres), 1)
    np.testing.assert_allclose(shift, moved(centres) - centres, rtol=1e-12)


def test_tubes_move_with_their_middle_lines(device):
    """What an affine map does to the control points, it does to the point of the line across which a point of the surface lies; a joint
    goes with its centre."""
    rng = np.random.default_rng(6)
    u, around = rng.uniform(0.01, 0.99, 50), rng.uniform(0, 2 * np.pi, 50)
    control = np.array([[0, 0, 0], [0.3, 0, 0.05], [0.6, 0.05, 0.1], [0.9, 0.1, 0.1]]).astype(np.float32).astype(float)
    middle, rate, _ = (v[0] for v in swept_scene.bezier(control[None], u))
    side = unit(np.cross(rate, [0, 0, 1.0]))
    across = side * np.cos(around)[:, None] + np.cross(unit(rate), side) * np.sin(around)[:, None]
    swept = swept_scene.tubes(np.stack([control, control]), np.full((2, 4), 0.1))
    swept.pieces[1] = 16 + BALL
    items = Items(swept, device)
    previous = moved(np.concatenate([control, control]))
    np.testing.assert_allclose(items.shifts(0, middle + 0.1 * across, previous, 4), moved(middle) - middle, atol=1e-6)
    joint = control[0] + unit(rng.normal(size=(5, 3))) * 0.1
    np.testing.assert_allclose(items.shifts(1, joint, previous, 4), np.tile(moved(control[0]) - control[0], (5, 1)), atol=1e-6)


def test_ribbons_move_with_both_edges(device):
    """What an affine map does to the control points, it does to every point of the ribbon."""
    rng = np.random.default_rng(7)
    x = np.linspace(-1, 1, 4)
    edges = np.stack([np.stack([x, 0 * x + y, 0.1 * x * x], -1) for y in (-0.3, 0.3)])
    items = Items(Swept(GeometryKind.RIBBONS, edges.reshape(-1, 3), None, np.array([16])), device)
    u, v = rng.uniform(0.01, 0.99, 50), rng.uniform(0, 1, (50, 1))
    one, other = (swept_scene.bezier(edge[None], u)[0][0] for edge in edges)
    p = one + (other - one) * v
    np.testing.assert_allclose(items.shifts(0, p, moved(edges.reshape(-1, 3)), 8), moved(p) - p, atol=1e-6)


def test_unit_vectors_of_any_size(device):
    """Sizes that float32 does not hold, 1e-140 and 1e140; what has no length points up."""
    v = np.array([[3, 4, 0.0], [3e-140, 0, 4e-140], [0, -3e140, 4e140], [0, 0, 0]])
    out = wp.empty(4, dtype=wp.vec3f, device=device)
    wp.launch(_units, 4, [wp.array(v, dtype=wp.vec3d, device=device)], [out], device=device)
    np.testing.assert_allclose(out.numpy(), [[0.6, 0.8, 0], [0.6, 0, 0.8], [0, -0.6, 0.8], [0, 0, 1]], atol=1e-7)
