"""Curves with normals: flat ribbons whose edges are where a closed form has them, and that have no gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.stage.test_curves import LINEAR, WIDE, at, curves, spans

from hdwarp.delegate.checks import check_record
from hdwarp.stage.columns import STRAIGHT, GeometryKind

LINE = "point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0)]\nint[] curveVertexCounts = [3]"
UP = 'normal3f[] normals = [(0, 0, 2)] (interpolation = "constant")'


def edges(mesh) -> tuple[np.ndarray, np.ndarray]:
    """(T, 4, 3) each: that at x = 0 and that at x = 1."""
    both = mesh.points.reshape(-1, 2, 4, 3).astype(np.float64)
    return both[:, 0], both[:, 1]


def test_a_straight_ribbon_is_a_rectangle(read):
    """Along +X with +Z up, across is Z x X = +Y; along x across is the side the normal points to."""
    found = read(curves(LINEAR, "point3f[] points = [(0, 0, 0), (3, 0, 0)]\nint[] curveVertexCounts = [2]", WIDE, UP))
    gprim, mesh = found.gprim("/c"), found.mesh("/c")
    assert gprim.kind is GeometryKind.RIBBONS is mesh.form
    one, other = edges(mesh)
    np.testing.assert_allclose(one[0], [(k, -0.1, 0) for k in range(4)], atol=1e-7)
    np.testing.assert_allclose(other[0], [(k, 0.1, 0) for k in range(4)], atol=1e-7)
    assert np.cross(one[0, 3] - one[0, 0], other[0, 0] - one[0, 0])[2] > 0.0
    assert mesh.radii is None
    assert spans(mesh) == [(0, 0, 1, STRAIGHT)]
    assert (mesh.normals.interpolation, mesh.normals.values.tolist(), mesh.normals.indices.tolist()) == ("uniform", [[0, 0, 1]], [0])
    assert found.codes() == []
    check_record(gprim, (type(gprim),))


def test_a_corner_is_mitred(read):
    """A right angle: the edges meet on its diagonal, and stay as far from the line as the ribbon is wide."""
    mesh = read(curves(LINEAR, LINE, WIDE, UP)).mesh("/c")
    one, other = edges(mesh)
    assert [flags for *_, flags in spans(mesh)] == [STRAIGHT] * 2
    np.testing.assert_allclose([one[0, 3], one[1, 0]], [(1.1, -0.1, 0)] * 2, atol=1e-7)
    np.testing.assert_allclose([other[0, 3], other[1, 0]], [(0.9, 0.1, 0)] * 2, atol=1e-7)
    np.testing.assert_array_equal(one[0, 3], one[1, 0])


def test_the_mitre_of_a_sharp_corner_is_limited(read):
    """Almost back: without a limit the edge would go 57 half widths out."""
    sharp = "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 0.035, 0)]\nint[] curveVertexCounts = [3]"
    mesh = read(curves(LINEAR, sharp, WIDE, UP)).mesh("/c")
    reach = np.linalg.norm(mesh.points.reshape(-1, 3) - (1, 0, 0), axis=1)[[3, 7]]
    assert reach.max() == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("wrap", ["nonperiodic", "periodic", "pinned"])
def test_pieces_of_a_bent_ribbon_share_their_ends(read, wrap):
    text = f'uniform token basis = "catmullRom"\nuniform token wrap = "{wrap}"\npoint3f[] points = '
    text += "[(0, 0, 0), (1, 0, 0), (2, 1, 0), (2, 2, 1), (1, 3, 1), (0, 2, 0)]\nint[] curveVertexCounts = [6]"
    mesh = read(curves(text, WIDE, "normal3f[] normals = [(0, 0, 1), (0, 1, 1), (0, 0, 1), (1, 0, 1), (0, 0, 1), (0, 0, 1)]")).mesh("/c")
    assert len(mesh.pieces) > mesh.face_count
    for edge in edges(mesh):
        np.testing.assert_array_equal(edge[:-1, 3], edge[1:, 0])
        assert (wrap == "periodic") == np.array_equal(edge[-1, 3], edge[0, 0])
    assert mesh.normals.interpolation == "bezier"
    assert mesh.normals.values.shape == (4 * mesh.face_count, 3)


@pytest.mark.parametrize("interpolation", ["vertex", "varying", "uniform", "constant"])
def test_edges_are_where_the_formula_has_them(read, interpolation):
    """P(u) +- r(u) normalize(N(u) x P'(u)) of a cubic, sampled along every piece."""
    points = np.array([(0, 0, 0), (1, 0.5, 0.2), (2, 1.5, -0.2), (3, 1, 0.5)], float)
    normals = np.array([(0, 0, 1), (0, 1, 1), (0.3, 0, 1), (0, -1, 1)], float)
    number = {"vertex": 4, "varying": 2, "uniform": 1, "constant": 1}[interpolation]
    unit = normals[:number] / np.linalg.norm(normals[:number], axis=1, keepdims=True)
    text = f"point3f[] points = {[tuple(p) for p in points.tolist()]}\nint[] curveVertexCounts = [4]"
    text += f'\nnormal3f[] normals = {[tuple(n) for n in normals[:number].tolist()]} (interpolation = "{interpolation}")'
    mesh = read(curves(text, 'float[] widths = [0.2, 0.6] (interpolation = "varying")')).mesh("/c")
    for (_, start, end, _), one, other in zip(spans(mesh), *edges(mesh), strict=True):
        x = np.linspace(0, 1, 9)
        u = start + x * (end - start)
        a, b, c = 3 * np.diff(points, axis=0)
        slope = (1 - u)[:, None] ** 2 * a + 2 * (u * (1 - u))[:, None] * b + u[:, None] ** 2 * c
        normal = at(unit, u) if number == 4 else unit[0] + u[:, None] * (unit[-1] - unit[0])
        across = np.cross(normal, slope)
        across *= ((0.1 + 0.2 * u) / np.linalg.norm(across, axis=1))[:, None]
        for side, edge in ((-1, one), (1, other)):
            off = at(edge, x) - (at(points, u) + side * across)
            share = np.einsum("ij,ij->i", off, slope) / np.einsum("ij,ij->i", slope, slope)
            assert np.abs(off - slope * share[:, None]).max() < 1e-4 * 0.3  # how far along does not show


def test_a_ring_in_its_plane_has_round_edges(read):
    """A circle of four beziers with normals along its axis: radius 1 -+ half the width, outside by the circle's own known error."""
    k = 4.0 / 3.0 * (math.sqrt(2.0) - 1.0)
    quarter = [(1, 0), (1, k), (k, 1)]
    ring = [(x * c - y * s, x * s + y * c, 0) for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1)) for x, y in quarter]
    mesh = read(curves(f'uniform token wrap = "periodic"\npoint3f[] points = {ring}\nint[] curveVertexCounts = [12]', WIDE, UP)).mesh("/c")
    for edge, radius in zip(edges(mesh), (1.1, 0.9), strict=True):
        found = np.linalg.norm(np.concatenate([at(cubic, np.linspace(0, 1, 5)) for cubic in edge]), axis=1)
        assert np.abs(found - radius).max() < 3e-4


def test_normals_along_the_curve_are_told(read):
    text = "point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0)]\nint[] curveVertexCounts = [3]"
    found = read(curves(LINEAR, text, WIDE, 'normal3f[] normals = [(1, 0, 0)] (interpolation = "constant")'))
    assert found.mesh("/c").triangle_face.tolist() == [1]
    assert "1 segments have normals that are zero or along the curve" in found.message("ribbon-normals")
    none = read(curves(LINEAR, LINE, WIDE, 'normal3f[] normals = [(0, 0, 0)] (interpolation = "constant")'))
    assert none.paths == []
    assert none.codes() == ["normal-length", "ribbon-normals"]


def test_primvar_normals_count_first_and_inherit(read):
    sideways = 'normal3f[] primvars:normals = [(0, 1, 0), (0, 1, 0)] (interpolation = "vertex")'
    line = "point3f[] points = [(0, 0, 0), (3, 0, 0)]\nint[] curveVertexCounts = [2]"
    one, _ = edges(read(curves(LINEAR, line, WIDE, UP, sideways)).mesh("/c"))
    np.testing.assert_allclose(one[0, 0], (0, 0, 0.1), atol=1e-7)  # Y x X = -Z
    found = read(f'def Xform "x" {{\nnormal3f primvars:normals = (0, 1, 0)\n{curves(LINEAR, line, WIDE)}\n}}')
    assert found.gprim("/x/c").kind is GeometryKind.RIBBONS


def test_normals_of_another_count_leave_tubes(read):
    found = read(curves(LINEAR, LINE, WIDE, "normal3f[] normals = [(0, 0, 1), (0, 0, 1)]"))
    assert found.gprim("/c").kind is GeometryKind.TUBES
    assert "has 2 values where 3 are expected" in found.message("primvar-count")


def test_varying_normals_of_nurbs(read):
    text = """point3f[] points = [(0, 0, 0), (1, 1, 0), (2, 0, 0)]
    int[] curveVertexCounts = [3]
    int[] order = [3]
    double[] knots = [0, 0, 0, 1, 1, 1]
    normal3f[] normals = [(0, 0, 1), (0, 0, 1)] (interpolation = "varying")"""
    mesh = read(curves(text, WIDE, type_name="NurbsCurves")).mesh("/c")
    one, other = edges(mesh)
    np.testing.assert_allclose(other[0, 0] - one[0, 0], 0.2 * np.array((-1, 1, 0)) / math.sqrt(2), atol=1e-6)
    assert mesh.normals.interpolation == "faceVarying"


def test_edges_of_a_harsh_zigzag_are_within_the_tolerance_everywhere(read):
    """Random bspline points: either edge at 31 places of each piece against P(u) +- r normalize(N x P'(u)), within 1e-4 of the radius.
    Left out: cusps, which are cut as deep as anything is, and what is mitred to them."""
    count, normal = 3000, np.array((0.0, 0.6, 0.8))
    points = np.random.default_rng(1).uniform(-1, 1, (count + 3, 3)).astype(np.float32).astype(np.float64)
    text = f'uniform token basis = "bspline"\nint[] curveVertexCounts = [{count + 3}]\n'
    text += f"point3f[] points = {[tuple(p) for p in points.tolist()]}"
    up = 'normal3f[] normals = [(0, 0.6, 0.8)] (interpolation = "constant")'
    mesh = read(curves(text, 'float[] widths = [0.2] (interpolation = "constant")', up)).mesh("/c")
    segment, start, end, _ = (np.array(column) for column in zip(*spans(mesh), strict=True))
    cusp = end - start == 1 / 256
    sound = ~(cusp | np.roll(cusp, 1) | np.roll(cusp, -1))
    assert sound.mean() > 0.8
    windows = np.stack([points[segment + k] for k in range(4)], axis=1)
    worst = 0.0
    for x in np.linspace(0, 1, 33)[1:-1]:
        u = start + x * (end - start)
        weights = np.stack(((1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, -3 * u**3 + 3 * u**2 + 3 * u + 1, u**3), axis=1) / 6
        slopes = np.stack((-((1 - u) ** 2), 3 * u**2 - 4 * u, -3 * u**2 + 2 * u + 1, u**2), axis=1) / 2
        place, along = (np.einsum("nk,nkj->nj", by, windows) for by in (weights, slopes))
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        across = np.cross(normal, along)
        across *= 0.1 / np.linalg.norm(across, axis=1, keepdims=True)
        bernstein = np.array(((1 - x) ** 3, 3 * x * (1 - x) ** 2, 3 * x**2 * (1 - x), x**3))
        for side, edge in zip((-1, 1), edges(mesh), strict=True):
            off = np.einsum("k,nkj->nj", bernstein, edge) - (place + side * across)
            off -= along * np.einsum("ni,ni->n", along, off)[:, None]
            worst = max(worst, np.linalg.norm(off[sound], axis=1).max())
    assert worst < 1e-4 * 0.1
