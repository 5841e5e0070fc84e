"""Curves from USD text: pieces, caps and joints, widths and primvars of every interpolation, and what is wrong with them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, Vt

from hdwarp.delegate.checks import check_record
from hdwarp.errors import Severity
from hdwarp.stage.columns import BALL, CAPPED_END, CAPPED_START, STRAIGHT, GeometryKind
from hdwarp.stage.reader import read_stage

LINE = "point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0)]\nint[] curveVertexCounts = [3]"
LINEAR = 'uniform token type = "linear"'
BEZIER = "point3f[] points = [(0, 0, 0), (1, 1, 0), (2, 1, 0), (3, 0, 0), (4, -1, 0), (5, 0, 0), (6, 0, 0)]\nint[] curveVertexCounts = [7]"
WIDE = 'float[] widths = [0.2] (interpolation = "constant")'


def curves(*body: str, type_name: str = "BasisCurves", name: str = "c") -> str:
    return f'def {type_name} "{name}" {{\n' + "\n".join(body) + "\n}"


def spans(mesh) -> list[tuple[int, float, float, int]]:
    """(segment, start, end, flags) of each piece."""
    found = []
    for segment, code in zip(mesh.triangle_face.tolist(), mesh.pieces.tolist(), strict=True):
        level = (code >> 4).bit_length() - 1
        number = (code >> 4) - (1 << level)
        found.append((segment, number / 2**level, (number + 1) / 2**level, code & 15))
    return found


def control(mesh) -> np.ndarray:
    """(T, 4, 4): x, y, z and radius."""
    return np.concatenate((mesh.points.reshape(-1, 4, 3), mesh.radii.reshape(-1, 4, 1)), axis=2).astype(np.float64)


def at(cubic: np.ndarray, u: np.ndarray | float) -> np.ndarray:
    u = np.asarray(u)[..., None]
    return cubic[0] * (1 - u) ** 3 + cubic[1] * 3 * u * (1 - u) ** 2 + cubic[2] * 3 * u**2 * (1 - u) + cubic[3] * u**3


# -- pieces ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1e19, 1e38, float("inf")])
def test_widths_beyond_all_bounds_are_told(width):
    stage = Usd.Stage.CreateInMemory()
    prim = UsdGeom.BasisCurves.Define(stage, "/C")
    prim.CreateTypeAttr("linear")
    prim.CreateCurveVertexCountsAttr([2])
    prim.CreatePointsAttr([(0, 0, 0), (1, 0, 0)])
    prim.CreateWidthsAttr([width])
    prim.SetWidthsInterpolation("constant")
    told = read_stage(stage, Usd.TimeCode.Default()).diagnostics
    assert [item.code for item in told if item.path == "/C" and item.severity is Severity.ERROR] == ["widths"]


def test_a_bent_line_is_two_tubes_and_a_ball(read):
    found = read(curves(LINEAR, LINE, WIDE))
    gprim, mesh = found.gprim("/c"), found.mesh("/c")
    assert gprim.kind is GeometryKind.TUBES is mesh.form
    assert spans(mesh) == [(0, 0, 1, CAPPED_START | STRAIGHT), (1, 0, 1, BALL), (1, 0, 1, CAPPED_END | STRAIGHT)]
    np.testing.assert_allclose(control(mesh)[0], [[k / 3, 0, 0, 0.1] for k in range(4)], atol=1e-7)
    assert control(mesh)[1, 0].tolist() == pytest.approx([1, 0, 0, 0.1])
    assert (mesh.face_count, mesh.corner_count) == (2, 3)
    assert mesh.triangle_corners.tolist() == mesh.triangle_points.tolist() == [[1, 1, 0], [2, 2, 1], [2, 2, 1]]
    assert mesh.reach == pytest.approx(1.1)
    assert found.codes() == []
    check_record(gprim, (type(gprim),))


def test_a_ring_of_lines_has_balls_and_no_caps(read):
    mesh = read(curves(LINEAR, 'uniform token wrap = "periodic"', LINE, WIDE)).mesh("/c")
    assert [flags for *_, flags in spans(mesh)] == [BALL, STRAIGHT] * 3
    assert mesh.triangle_points[-1].tolist() == [0, 0, 2]


def test_pieces_are_the_curve(read):
    """Placed by what `pieces` says they are the segment itself, and they cover all of it."""
    mesh = read(curves(BEZIER, WIDE)).mesh("/c")
    whole = np.array([(0, 0, 0), (1, 1, 0), (2, 1, 0), (3, 0, 0), (4, -1, 0), (5, 0, 0), (6, 0, 0)], float)
    covered = {0: 0.0, 1: 0.0}
    for (segment, start, end, flags), cubic in zip(spans(mesh), control(mesh), strict=True):
        if flags & BALL:
            continue
        assert start == covered[segment]
        covered[segment] = end
        u = np.linspace(0, 1, 5)
        expected = at(whole[3 * segment : 3 * segment + 4], start + u * (end - start))
        np.testing.assert_allclose(at(cubic[:, :3], u), expected, atol=1e-6)
    assert covered == {0: 1.0, 1: 1.0}
    assert not any(flags & BALL for *_, flags in spans(mesh))  # the tangents (1, -1) and (1, -1) at the joint agree


def test_pieces_turn_little_and_are_even(read):
    hard = "point3f[] points = [(0, 0, 0), (9, 1, 0), (-8, 1, 2), (1, 0, 0)]\nint[] curveVertexCounts = [4]"
    mesh = read(curves(hard, WIDE)).mesh("/c")
    bent = np.array([not flags & (STRAIGHT | BALL) for *_, flags in spans(mesh)])
    edge = np.diff(control(mesh)[bent, :, :3], axis=1)
    length = np.linalg.norm(edge, axis=2)
    assert (length.max(axis=1) <= 2.001 * length.min(axis=1)).all()
    unit = edge / length[:, :, None]
    cosines = np.einsum("nij,nkj->nik", unit, unit)
    assert cosines.min() >= math.cos(math.radians(20.01))
    assert 4 < bent.sum() < 40


def test_a_cusp_becomes_straight_at_the_last_halving(read):
    """Out and back on the same line: at its turning point the tangent is zero, off every dyadic number."""
    cusp = "point3f[] points = [(0, 0, 0), (1, 0, 0), (0.7, 0, 0), (0, 0, 0)]\nint[] curveVertexCounts = [4]"
    mesh = read(curves(cusp, WIDE)).mesh("/c")
    deepest = [(start, end) for _, start, end, flags in spans(mesh) if end - start == 1 / 256 and flags & STRAIGHT]
    assert 1 <= len(deepest) <= 4
    assert any(flags == BALL for *_, flags in spans(mesh))  # and the turn is round
    assert mesh.points[:, 0].max() == pytest.approx(at(np.array([[0.0], [1], [0.7], [0]]), np.linspace(0, 1, 20001)).max(), abs=1e-4)


def test_repeated_points_are_no_segment_to_draw(read):
    twice = "point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 0, 0), (2, 0, 0)]\nint[] curveVertexCounts = [4]"
    mesh = read(curves(LINEAR, twice, WIDE)).mesh("/c")
    assert spans(mesh) == [(0, 0, 1, CAPPED_START | STRAIGHT), (2, 0, 1, CAPPED_END | STRAIGHT)]
    assert mesh.face_count == 3
    nothing = read(curves(LINEAR, "point3f[] points = [(1, 0, 0), (1, 0, 0)]\nint[] curveVertexCounts = [2]", WIDE))
    assert nothing.paths == []
    assert nothing.codes() == ["no-length"]


def test_a_circle_of_four_beziers_is_one_smooth_ring(read):
    k = 4.0 / 3.0 * (math.sqrt(2.0) - 1.0)
    quarter = [(1, 0), (1, k), (k, 1)]
    ring = [(x * c - y * s, x * s + y * c, 0) for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1)) for x, y in quarter]
    text = f'uniform token wrap = "periodic"\npoint3f[] points = {ring}\nint[] curveVertexCounts = [12]'
    mesh = read(curves(text, WIDE)).mesh("/c")
    assert mesh.face_count == 4
    assert [flags for *_, flags in spans(mesh)] == [0] * len(mesh.pieces)
    points = np.concatenate([at(cubic[:, :3], np.linspace(0, 1, 9)) for cubic in control(mesh)])
    radius = np.linalg.norm(points, axis=1)
    assert (radius.min() >= 1.0 - 1e-6) and (radius.max() <= 1.0 + 2.8e-4)  # the known error of this circle: 2.7e-4, outwards


@pytest.mark.parametrize("count", [5, 6])
def test_curves_of_a_bad_count_are_named_and_the_others_keep_their_numbers(read, count):
    points = [(k, (k % 2) * 0.1, 0) for k in range(8 + count)]
    found = read(curves(f"point3f[] points = {points}\nint[] curveVertexCounts = [4, {count}, 4]", WIDE))
    assert found.codes() == ["curve-counts"]
    assert f"curve 1 has {count} vertices where such a curve has 4, 7, 10" in found.message("curve-counts")
    mesh = found.mesh("/c")
    assert sorted(set(mesh.triangle_face.tolist())) == [0, 2]
    np.testing.assert_allclose(control(mesh)[mesh.triangle_face == 2][0, 0, :3], [4 + count, points[4 + count][1], 0])


def test_more_vertices_than_points(read):
    found = read(curves(LINEAR, "point3f[] points = [(0, 0, 0), (1, 0, 0), (2, 0, 0)]\nint[] curveVertexCounts = [2, 2]", WIDE))
    assert "there are 3 points for all curves" in found.message("curve-counts")
    assert found.mesh("/c").triangle_face.tolist() == [0]


def test_fewer_vertices_than_points(read):
    found = read(curves(LINEAR, LINE.replace("[3]", "[2]"), "float[] widths = [0.1, 0.2, 0.3]"))
    assert "the last 1 are left out" in found.message("curve-counts")
    np.testing.assert_allclose(control(found.mesh("/c"))[0, :, 3], np.linspace(0.05, 0.1, 4), atol=1e-7)


def test_bad_points_cost_the_segments_that_use_them(read):
    """Both sides of the gap are closed."""
    text = "point3f[] points = [(0, 0, 0), (1, 0, 0), (nan, 0, 0), (3, 0, 0), (4, 0, 0)]\nint[] curveVertexCounts = [5]"
    found = read(curves(LINEAR, text, WIDE))
    assert spans(found.mesh("/c")) == [(s, 0, 1, CAPPED_START | CAPPED_END | STRAIGHT) for s in (0, 3)]
    assert "2 of 4 segments use 1 points" in found.message("points-not-finite")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "empty-curves"),
        ("point3f[] points = [(0, 0, 0)]", "missing-topology"),
        ("int[] curveVertexCounts = [2]", "missing-topology"),
        ("string points = 'x'\nint[] curveVertexCounts = [2]", "wrong-type"),
        (f'{LINE}\nuniform token basis = "nurbs"', "curve-type"),
    ],
)
def test_what_is_missing_or_wrong_is_named(read, body, code):
    found = read(curves(body))
    assert code in found.codes("/c")


# -- widths ------------------------------------------------------------------------------------------------------------------------

FOUR = "point3f[] points = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 0), (3, 1, 0)]"
FOUR += "\nint[] curveVertexCounts = [4, 4]"


@pytest.mark.parametrize(
    ("widths", "radii"),
    [
        ('float[] widths = [0.2] (interpolation = "constant")', [[0.1] * 4] * 2),
        ('float[] widths = [0.2, 0.4] (interpolation = "uniform")', [[0.1] * 4, [0.2] * 4]),
        ('float[] widths = [0.2, 0.8, 0, 0.6] (interpolation = "varying")', [[0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2, 0.3]]),
        ("float[] widths = [0.2, 0.4, 0.4, 0.2, 0.2, 0.2, 0.4, 0.4]", [[0.1, 0.2, 0.2, 0.1], [0.1, 0.1, 0.2, 0.2]]),
        ('float[] primvars:widths = [0.2, 0.4] (interpolation = "uniform")\nfloat[] widths = [7]', [[0.1] * 4, [0.2] * 4]),
        ('float[] primvars:widths = [0.4, 0.2] (interpolation = "uniform")\nint[] primvars:widths:indices = [1, 1]', [[0.1] * 4] * 2),
    ],
)
def test_widths_of_every_interpolation(read, widths, radii):
    """Vertex widths go by the basis (here Bernstein's own), so what their pieces hold is what their polynomial says."""
    mesh = read(curves(FOUR, widths)).mesh("/c")
    for (segment, start, end, _), cubic in zip(spans(mesh), control(mesh), strict=True):
        u = np.linspace(0, 1, 5)
        expected = at(np.array(radii[segment])[:, None], start + u * (end - start))[:, 0]
        np.testing.assert_allclose(at(cubic, u)[:, 3], expected, atol=1e-6)


def test_missing_widths_are_one_and_said_so(read):
    found = read(curves(FOUR))
    assert [(item.code, item.severity) for item in found.diagnostics] == [("widths", Severity.NOTE)]
    assert found.mesh("/c").radii.tolist() == [0.5] * 8


def test_widths_inherit_as_primvars_do(read):
    found = read(f'def Xform "x" {{\nfloat primvars:widths = 0.4\n{curves(FOUR, "float[] widths = [9]")}\n}}')
    np.testing.assert_allclose(found.mesh("/x/c").radii, 0.2)


@pytest.mark.parametrize(
    ("widths", "radius", "said"),
    [
        ("float[] widths = [0.2, 0.2, 0.2]", 0.5, "drawn 1 wide. Author 1 (constant) or 2 (uniform) or 4 (varying) or 8 (vertex)"),
        ("float[] widths = [0.2]", 0.1, "read as constant"),
        ('float[] widths = [0.2, 0.2] (interpolation = "varying")', 0.1, "read as uniform"),
        ("string widths = 'thick'", 0.5, "Author float[]"),
    ],
)
def test_widths_of_another_count(read, widths, radius, said):
    found = read(curves(FOUR, widths))
    assert said in found.message("widths")
    np.testing.assert_allclose(found.mesh("/c").radii, radius)


@pytest.mark.parametrize("bad", ["-1", "nan", "inf"])
def test_bad_widths_cost_the_segments_that_use_them(read, bad):
    found = read(curves(FOUR, f'float[] widths = [0.2, {bad}] (interpolation = "uniform")'))
    assert found.mesh("/c").triangle_face.tolist() == [0]
    assert "1 of 2 values of widths are negative, NaN or beyond 2e+18" in found.message("widths")


# -- primvars ----------------------------------------------------------------------------------------------------------------------

SPLINE = 'uniform token basis = "bspline"\npoint3f[] points = [(0, 0, 0), (1, 1, 0), (2, 0, 0), (3, 1, 0), (4, 0, 0)]'
SPLINE += "\nint[] curveVertexCounts = [5]"


def test_primvars_of_every_interpolation(read):
    text = """color3f[] primvars:displayColor = [(1, 0, 0)]
    float[] primvars:heat = [7] (interpolation = "uniform")
    float[] primvars:along = [1, 2, 4] (interpolation = "varying")
    float[] primvars:smooth = [0, 6, 0, 12, 0] (interpolation = "vertex")
    float[] primvars:odd = [0, 6] (interpolation = "faceVarying")"""
    found = read(curves(SPLINE, WIDE, text))
    gprim, mesh = found.gprim("/c"), found.mesh("/c")
    assert gprim.constants["displayColor"].tolist() == [1, 0, 0]
    assert (mesh.primvars["heat"].interpolation, mesh.primvars["heat"].indices.tolist()) == ("uniform", [0, 0])
    along = mesh.primvars["along"]
    assert along.interpolation == "faceVarying"
    assert [along.values[mesh.triangle_corners[mesh.triangle_face == s][0], 0].tolist() for s in (0, 1)] == [[2, 2, 1], [4, 4, 2]]
    smooth = mesh.primvars["smooth"]
    assert smooth.interpolation == "bezier"
    np.testing.assert_allclose(smooth.values[:, 0], [4, 4, 2, 3, 3, 4, 8, 8], atol=1e-6)  # (a + 4 b + c) / 6, (4 b + 2 c) / 6, ...
    assert found.codes() == ["primvar-interpolation"]
    check_record(gprim, (type(gprim),))


def test_vertex_primvars_of_lines_are_linear(read):
    mesh = read(curves(LINEAR, LINE, WIDE, 'float[] primvars:heat = [1, 2, 3] (interpolation = "vertex")')).mesh("/c")
    assert mesh.primvars["heat"].interpolation == "faceVarying"
    assert mesh.primvars["heat"].values[mesh.triangle_corners[0], 0].tolist() == [2, 2, 1]


def test_indexed_primvars(read):
    text = 'color3f[] primvars:displayColor = [(1, 0, 0), (0, 1, 0)] (interpolation = "vertex")'
    text += "\nint[] primvars:displayColor:indices = [0, 0, 1, 1, 0]"
    values = read(curves(SPLINE, WIDE, text)).mesh("/c").primvars["displayColor"].values
    np.testing.assert_allclose(values[:4], [[5 / 6, 1 / 6, 0], [4 / 6, 2 / 6, 0], [2 / 6, 4 / 6, 0], [1 / 6, 5 / 6, 0]], atol=1e-6)


def test_varying_primvars_with_a_value_a_vertex(read):
    found = read(curves(SPLINE, WIDE, 'float[] primvars:heat = [0, 6, 0, 12, 0] (interpolation = "varying")'))
    assert found.mesh("/c").primvars["heat"].interpolation == "bezier"
    assert "read as vertex" in found.message("primvar-count")


# -- the other types ---------------------------------------------------------------------------------------------------------------


def test_hermite_curves(read):
    text = "point3f[] points = [(0, 0, 0), (3, 0, 0)]\nvector3f[] tangents = [(3, 0.3, 0), (3, 0.3, 0)]\nint[] curveVertexCounts = [2]"
    found = read(curves(text, WIDE, type_name="HermiteCurves"))
    mesh = found.mesh("/c")
    assert found.codes() == []
    np.testing.assert_allclose(control(mesh)[0, :, :3], [(0, 0, 0), (1, 0.1, 0), (2, -0.1, 0), (3, 0, 0)], atol=1e-6)
    lost = read(curves(text.replace("(3, 0.3, 0), ", ""), WIDE, type_name="HermiteCurves"))
    assert lost.paths == []
    assert "there are 1 tangents for 2 points" in lost.message("curve-tangents")


NURBS = """point3f[] points = [(0, 0, 0), (1, 1, 0), (2, 0, 0), (0, 2, 0), (1, 2, 0)]
int[] curveVertexCounts = [3, 2]
int[] order = [3, 2]
double[] knots = [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]"""


def test_nurbs_curves(read):
    found = read(curves(NURBS, WIDE, type_name="NurbsCurves"))
    mesh = found.mesh("/c")
    assert found.codes() == []
    assert (mesh.face_count, mesh.corner_count) == (2, 4)
    points = np.concatenate([at(cubic[:, :3], np.linspace(0, 1, 4)) for cubic in control(mesh)[mesh.triangle_face == 0]])
    np.testing.assert_allclose(points[:, 1], points[:, 0] * (2 - points[:, 0]) / 2, atol=1e-6)  # the parabola
    assert spans(mesh)[-1] == (1, 0, 1, CAPPED_START | CAPPED_END | STRAIGHT)


@pytest.mark.parametrize(
    ("before", "after", "code", "drawn"),
    [
        ("[3, 2]\nint[] order", "[3, 2]\nint[] ordre", "nurbs-order", []),
        ("order = [3, 2]", "order = [3]", "nurbs-order", []),
        ("order = [3, 2]", "order = [3, 1]", "nurbs-order", [0]),
        ("0, 0, 0, 1, 1, 1", "0, 0, 2, 1, 1, 1", "nurbs-knots", [1]),
        ("0, 0, 0, 1, 1, 1", "0, 0, 0, 0, 1, 1", "nurbs-knots", [1]),
        ("0, 0, 1, 1]", "0, 0]", "nurbs-knots", [0]),
        ("order", "double[] pointWeights = [1, 1, 1, 0, 1]\nint[] order", "nurbs-weights", [0]),
        ("order", "double[] pointWeights = [1, 1]\nint[] order", "nurbs-weights", []),
        ("order", "double2[] ranges = [(5, 9), (0, 1)]\nint[] order", "nurbs-range", [0, 1]),
    ],
)
def test_bad_nurbs_are_named_and_the_other_curves_drawn(read, before, after, code, drawn):
    text = NURBS.replace("int[] order", "order", 1).replace("order", "int[] order", 1) if before == "order" else NURBS
    text = text.replace("int[] order" if before == "order" else before, after, 1)
    found = read(curves(text, WIDE, type_name="NurbsCurves"))
    assert code in found.codes("/c")
    if not drawn:
        assert found.paths == []
        return
    mesh = found.mesh("/c")
    heights = {round(float(y)) for y in mesh.points[:, 1] if y in (0.0, 2.0)}
    assert heights == {(0, 2)[c] for c in drawn}


# -- edits -------------------------------------------------------------------------------------------------------------------------


def test_types_that_derive_from_curves_count_among_them(read):
    assert read(curves(LINEAR, LINE, WIDE)).prim_counts == {"BasisCurves": 1}


def test_subsets_of_curves_are_named(read):
    subset = (
        'def GeomSubset "s" {\nuniform token elementType = "segment"\nuniform token familyName = "materialBind"\nint[] indices = [0]\n}'
    )
    found = read(curves(LINEAR, LINE, WIDE, subset))
    assert found.codes("/c") == ["subset-type"]


def test_fifty_thousand_curves_read_fast(read):
    """Without a loop over curves: a second is many times what it takes, and far from enough for one."""
    import time

    count = 50_000
    rng = np.random.default_rng(0)
    points = rng.random((count, 1, 3)) + np.cumsum(rng.random((count, 4, 3)) * 0.01, axis=1)
    found = read(curves(LINEAR, LINE, WIDE))
    prim = found.stage.GetPrimAtPath("/c")
    prim.RemoveProperty("type")
    prim.GetAttribute("points").Set(Vt.Vec3fArray.FromNumpy(points.reshape(-1, 3).astype(np.float32)))
    prim.GetAttribute("curveVertexCounts").Set(Vt.IntArray.FromNumpy(np.full(count, 4, np.int32)))
    prim.CreateAttribute("basis", Sdf.ValueTypeNames.Token).Set("bspline")
    started = time.process_time()
    mesh = read(found.stage).mesh("/c")
    assert time.process_time() - started < 5.0
    assert mesh.face_count == count
