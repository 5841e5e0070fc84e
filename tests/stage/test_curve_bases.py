"""Segments of every type, basis and wrap against USD's own counts and direct formulas; NURBS against de Boor and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Usd, UsdGeom

from hdwarp.stage.curve_bases import basis_segments, hermite_segments
from hdwarp.stage.curve_pieces import halved
from hdwarp.stage.nurbs_curves import nurbs_segments

RNG = np.random.default_rng(7)
FORMS = [("linear", "bezier", wrap) for wrap in ("nonperiodic", "periodic", "pinned")]
FORMS += [("cubic", basis, wrap) for basis in ("bezier", "bspline", "catmullRom") for wrap in ("nonperiodic", "periodic", "pinned")]
# Textbook matrices: p(u) = (u^3, u^2, u, 1) M (p0, p1, p2, p3).
MATRICES = {
    "bezier": np.array([[-1, 3, -3, 1], [3, -6, 3, 0], [-3, 3, 0, 0], [1, 0, 0, 0]], float),
    "bspline": np.array([[-1, 3, -3, 1], [3, -6, 3, 0], [-3, 0, 3, 0], [1, 4, 1, 0]], float) / 6.0,
    "catmullRom": np.array([[-1, 3, -3, 1], [2, -5, 4, -1], [-1, 0, 1, 0], [0, 2, 0, 0]], float) / 2.0,
}


def at(control: np.ndarray, u: float) -> np.ndarray:
    """Bernstein's sum of (..., 4, k)."""
    weights = [(1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u**2 * (1 - u), u**3]
    return np.tensordot(weights, control, axes=(0, -2))


def expected(points: np.ndarray, kind: tuple[str, str, str], segment: int, u: float) -> np.ndarray:
    """Written down anew, a vertex at a time."""
    type_, basis, wrap = kind
    n, step = len(points), 3 if basis == "bezier" else 1

    def vertex(i: int) -> np.ndarray:
        if wrap == "periodic":
            return points[i % n]
        if i < 0:
            return 2 * points[0] - points[1]
        return points[i] if i < n else 2 * points[n - 1] - points[n - 2]

    if type_ == "linear":
        return (1 - u) * vertex(segment) + u * vertex(segment + 1)
    first = segment * step - (wrap == "pinned" and basis != "bezier")
    return np.array([u**3, u**2, u, 1.0]) @ MATRICES[basis] @ np.array([vertex(first + i) for i in range(4)])


@pytest.mark.parametrize("kind", FORMS)
def test_every_basis_and_wrap_against_its_formula(kind):
    counts = [7, 4, 10] if kind[2] != "periodic" else [6, 3, 9]
    points = RNG.normal(size=(sum(counts), 3))
    segments = basis_segments(counts, *kind, len(points))
    control = segments.bezier(points)
    curve, place = segments.curve, segments.place
    start = np.cumsum([0, *counts])
    assert segments.count > 0
    for s in range(segments.count):
        own = points[start[curve[s]] : start[curve[s] + 1]]
        for u in (0.0, 0.3, 0.5, 1.0):
            np.testing.assert_allclose(at(control[s], u), expected(own, kind, place[s], u), atol=1e-12)


@pytest.mark.parametrize("kind", FORMS)
def test_segment_counts_are_usds(kind):
    stage = Usd.Stage.CreateInMemory()
    curves = UsdGeom.BasisCurves.Define(stage, "/c")
    for attribute, value in zip((curves.GetTypeAttr(), curves.GetBasisAttr(), curves.GetWrapAttr()), kind, strict=True):
        attribute.Set(value)
    valid = [n for n in range(2, 14) if basis_segments([n], *kind, n).good[0]]
    assert valid
    curves.GetCurveVertexCountsAttr().Set(valid)
    time = Usd.TimeCode.Default()
    segments = basis_segments(valid, *kind, sum(valid))
    assert segments.per_curve.tolist() == list(curves.ComputeSegmentCounts(time))
    assert len(segments.counts) == curves.ComputeUniformDataSize(time)
    assert int(segments.counts.sum()) == curves.ComputeVertexDataSize(time)
    if kind[2] == "pinned" and kind[1] != "bezier":  # USD counts these as if they were not pinned, one value too few at either end
        assert segments.varying_count == curves.ComputeVaryingDataSize(time) + 2 * len(valid)
    elif kind[0] == "linear" and kind[2] == "periodic":  # and here one more than Hydra does: a value a vertex
        assert segments.varying_count == sum(valid)
    else:
        assert segments.varying_count == curves.ComputeVaryingDataSize(time)


@pytest.mark.parametrize(
    ("kind", "vertices", "count"),
    [
        (("cubic", "bezier", "nonperiodic"), 7, 2),
        (("cubic", "bezier", "periodic"), 6, 2),
        (("cubic", "bspline", "nonperiodic"), 6, 3),
        (("cubic", "bspline", "pinned"), 6, 5),
        (("cubic", "catmullRom", "periodic"), 6, 6),
        (("linear", "bezier", "nonperiodic"), 5, 4),
        (("linear", "bezier", "periodic"), 5, 5),
    ],
)
def test_known_segment_counts(kind, vertices, count):
    assert basis_segments([vertices], *kind, vertices).count == count


def test_pinned_curves_pass_through_their_ends_and_others_do_not():
    points = RNG.normal(size=(6, 3))
    for basis in ("bspline", "catmullRom"):
        control = basis_segments([6], "cubic", basis, "pinned", 6).bezier(points)
        np.testing.assert_allclose((control[0, 0], control[-1, 3]), (points[0], points[5]), atol=1e-14)
    plain = basis_segments([6], "cubic", "bspline", "nonperiodic", 6).bezier(points)
    np.testing.assert_allclose(plain[0, 0], (points[0] + 4 * points[1] + points[2]) / 6.0, atol=1e-14)


def test_two_points_make_a_pinned_curve():
    """Its phantoms lie on the line as well: a straight segment, at an even pace."""
    control = basis_segments([2], "cubic", "bspline", "pinned", 2).bezier(np.array([[0.0, 0, 0], [3, 0, 0]]))
    np.testing.assert_allclose(control[0, :, 0], [0, 1, 2, 3], atol=1e-14)


@pytest.mark.parametrize("kind", [form for form in FORMS if form[2] == "periodic"])
def test_rings_close(kind):
    control = basis_segments([6], *kind, 6).bezier(RNG.normal(size=(6, 3)))
    np.testing.assert_allclose(control[-1, 3], control[0, 0], atol=1e-14)
    segments = basis_segments([6], *kind, 6)
    assert segments.ends()[-1].tolist() == [segments.count - 1, 0]


def test_skipped_curves_keep_the_numbers_of_the_others():
    segments = basis_segments([4, 5, 4], "cubic", "bezier", "nonperiodic", 13)
    assert segments.good.tolist() == [True, False, True]
    assert segments.curve.tolist() == [0, 1, 2]
    points = RNG.normal(size=(13, 3))
    np.testing.assert_array_equal(segments.bezier(points)[2], points[9:13])
    assert segments.sound(np.ones(13, bool)).tolist() == [True, False, True]


def test_absurd_counts_take_no_room():
    segments = basis_segments([4, 2**31 - 1, 4, -3], "cubic", "bezier", "nonperiodic", 8)
    assert segments.good.tolist() == [True, False, False, False]
    assert segments.count == 1


def test_segments_that_use_a_bad_vertex():
    good = np.ones(8, bool)
    good[0] = False
    spline = basis_segments([8], "cubic", "bspline", "pinned", 8)
    assert spline.sound(good).tolist() == [False, False] + [True] * 5  # the phantom uses it too, beside segment 1
    good = np.ones(8, bool)
    good[3] = False
    assert basis_segments([8], "linear", "bezier", "nonperiodic", 8).sound(good).tolist() == [True, True, False, False] + [True] * 3


def test_halves_are_the_same_curve():
    points = RNG.normal(size=(13, 3))
    segments = basis_segments([13], "cubic", "bezier", "nonperiodic", 13)
    pieces = segments.pieces(points, np.arange(segments.count))
    for _ in range(3):
        pieces = halved(pieces)
    whole = segments.bezier(points)
    for i in range(len(pieces)):
        for u in (0.0, 0.25, 1.0):
            share = pieces.start[i] + u * (pieces.end[i] - pieces.start[i])
            np.testing.assert_allclose(at(pieces.control[i], u), at(whole[pieces.segment[i]], share), atol=1e-12)


def test_hermite_curves_start_with_their_tangents():
    points, tangents = RNG.normal(size=(2, 5, 3))
    segments = hermite_segments([3, 2], tangents)
    pieces = segments.pieces(points, np.arange(3))
    for piece, (a, b) in enumerate([(0, 1), (1, 2), (3, 4)]):
        u = 0.3
        h = [2 * u**3 - 3 * u**2 + 1, u**3 - 2 * u**2 + u, -2 * u**3 + 3 * u**2, u**3 - u**2]
        hermite = h[0] * points[a] + h[1] * tangents[a] + h[2] * points[b] + h[3] * tangents[b]
        np.testing.assert_allclose(at(pieces.control[piece], u), hermite, atol=1e-13)


# -- NURBS ------------------------------------------------------------------------------------------------------------------------


def de_boor(points: np.ndarray, knots: np.ndarray, degree: int, t: float) -> np.ndarray:
    """By the basis functions' definition, a function at a time."""

    def basis(i: int, p: int) -> float:
        if p == 0:
            return float(knots[i] <= t < knots[i + 1])
        found = 0.0
        if knots[i + p] > knots[i]:
            found += (t - knots[i]) / (knots[i + p] - knots[i]) * basis(i, p - 1)
        if knots[i + p + 1] > knots[i + 1]:
            found += (knots[i + p + 1] - t) / (knots[i + p + 1] - knots[i + 1]) * basis(i + 1, p - 1)
        return found

    return sum(basis(i, degree) * points[i] for i in range(len(points)))


def nurbs(points: np.ndarray, knots: np.ndarray, degree: int, *, weights=None, ranges=None):
    low, high = ranges or (knots[degree], knots[len(points)])
    one = np.array([0])
    made = nurbs_segments(
        np.array([len(points)]),
        one + degree + 1,
        np.asarray(knots, float),
        one,
        np.array([[low, high]]),
        np.array([True]),
        weights,
        len(points),
    )
    return made, made.pieces(points, np.arange(made.count))


def parameter(made, pieces, i: int, u: float) -> float:
    segment = pieces.segment[i]
    share = pieces.start[i] + u * (pieces.end[i] - pieces.start[i])
    return made.begin[segment] + share * (made.end[segment] - made.begin[segment])


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6])
def test_polynomial_curves_of_any_degree(degree):
    """Exact up to 3, elevated where less; above, fitted to 1e-5 of the size."""
    points = RNG.normal(size=(9, 3))
    knots = np.sort(RNG.uniform(0, 4, 9 + degree + 1))
    knots[4 + degree // 2] = knots[3 + degree // 2]  # a double knot inside
    made, pieces = nurbs(points, knots, degree)
    tolerance = 1e-11 if degree <= 3 else 1e-5 * float(np.linalg.norm(np.ptp(points, axis=0)))
    assert made.count == np.count_nonzero(np.diff(knots[degree : len(points) + 1]) > 0)
    assert (len(pieces) == made.count) == (degree <= 3)
    for i in range(len(pieces)):
        for u in (0.01, 0.4, 0.9):
            there = de_boor(points, knots, degree, parameter(made, pieces, i, u))
            assert np.abs(at(pieces.control[i], u) - there).max() <= tolerance


def test_splines_against_scipy():
    interpolate = pytest.importorskip("scipy.interpolate")
    points, knots = RNG.normal(size=(8, 3)), np.concatenate(([0] * 4, [1, 2, 2.5, 3], [4] * 4)).astype(float)
    made, pieces = nurbs(points, knots, 3)
    spline = interpolate.BSpline(knots, points, 3)
    for i in range(len(pieces)):
        np.testing.assert_allclose(at(pieces.control[i], 0.37), spline(parameter(made, pieces, i, 0.37)), atol=1e-12)


def test_a_circle_of_weights_is_round():
    """Nine points, quadratic, weights 1 and cos 45: distance 1 from the middle everywhere, as near as 1e-5 of its size."""
    ring = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0)]
    points = np.array([(x, y, 0.0) for x, y in ring])
    weights = np.where(np.arange(9) % 2, math.sqrt(0.5), 1.0)
    knots = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4], float)
    made, pieces = nurbs(points, knots, 2, weights=weights)
    assert made.count == 4
    for u in np.linspace(0, 1, 9):
        radius = np.linalg.norm(at(pieces.control, u), axis=-1)
        assert np.abs(radius - 1.0).max() <= 1e-5
    quarter = made.bezier(points)  # as primvars go: a cubic a segment, with the circle's own ends and slopes
    np.testing.assert_allclose(quarter[0, 0], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(quarter[0, 1, 0], 1.0, atol=1e-12)


def test_ranges_cut_the_curve():
    points, knots = RNG.normal(size=(6, 3)), np.arange(10.0)
    made, pieces = nurbs(points, knots, 3, ranges=(3.5, 5.25))
    assert made.begin.tolist() == [3.5, 4.0, 5.0]
    assert made.end.tolist() == [4.0, 5.0, 5.25]
    np.testing.assert_allclose(pieces.control[0, 0], de_boor(points, knots, 3, 3.5), atol=1e-12)
    np.testing.assert_allclose(pieces.control[-1, 3], de_boor(points, knots, 3, 5.25), atol=1e-12)
