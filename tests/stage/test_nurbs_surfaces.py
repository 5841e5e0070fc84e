"""NurbsPatch: against closed forms, de Boor's algorithm written out, and what the schema says of primvars, ranges and forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom

from hdwarp.stage import nurbs_surfaces

HALF = math.sqrt(0.5)
CIRCLE = [(1, 0, 1), (1, 1, HALF), (0, 1, 1), (-1, 1, HALF), (-1, 0, 1), (-1, -1, HALF), (0, -1, 1), (1, -1, HALF), (1, 0, 1)]
CIRCLE_KNOTS = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4]
ARC = [(0, -1, 1), (1, -1, HALF), (1, 0, 1), (1, 1, HALF), (0, 1, 1)]  # half a circle, from pole to pole
ARC_KNOTS = [0, 0, 0, 1, 1, 2, 2, 2]


def clamped(count: int, order: int) -> list[float]:
    inner = np.linspace(0, 1, count - order + 2)
    return [*[0.0] * (order - 1), *inner.tolist(), *[1.0] * (order - 1)]


def patch(points, orders, knots, counts, weights=None, **more) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    prim = UsdGeom.NurbsPatch.Define(stage, "/p")
    prim.CreatePointsAttr([Gf.Vec3f(*map(float, p)) for p in points])
    for axis, order, knot, count in zip("UV", orders, knots, counts, strict=True):
        getattr(prim, f"Create{axis}VertexCountAttr")(count)
        getattr(prim, f"Create{axis}OrderAttr")(order)
        getattr(prim, f"Create{axis}KnotsAttr")([float(k) for k in knot])
    if weights is not None:
        prim.CreatePointWeightsAttr([float(w) for w in weights])
    for name, value in more.items():
        prim.GetPrim().GetAttribute(name).Set(value)
    return stage


def revolved(profile, profile_knots, order: int = 3) -> Usd.Stage:
    """A (radius, height, weight) profile about z: u around, v along it."""
    points = [(r * x, r * y, z) for r, z, _ in profile for x, y, _ in CIRCLE]
    weights = [a * b for _, _, a in profile for _, _, b in CIRCLE]
    return patch(points, (3, order), (CIRCLE_KNOTS, profile_knots), (9, len(profile)), weights)


def de_boor(knots, order, control, t):
    """One point of a curve with homogeneous (n, k) control values, by repeated interpolation."""
    n, degree = len(control), order - 1
    span = max(k for k in range(degree, n) if knots[k] <= t and knots[k] < knots[k + 1])
    d = [np.array(control[span - degree + j], float) for j in range(order)]
    for r in range(1, order):
        for j in range(degree, r - 1, -1):
            low, high = knots[j + span - degree], knots[j + 1 + span - r]
            share = (t - low) / (high - low)
            d[j] = (1 - share) * d[j - 1] + share * d[j]
    return d[degree]


def surface_point(case, u, v):
    points, weights = case["points"], case["weights"]
    net = np.c_[np.array(points, float) * np.array(weights)[:, None], weights].reshape(case["counts"][1], case["counts"][0], 4)
    row = [de_boor(case["knots"][0], case["orders"][0], line, u) for line in net]
    x = de_boor(case["knots"][1], case["orders"][1], row, v)
    return x[:3] / x[3]


def random_case(seed: int) -> dict:
    rng = np.random.default_rng(seed)
    orders = tuple(int(i) for i in rng.integers(2, 6, 2))
    counts = tuple(order + int(rng.integers(0, 4)) for order in orders)
    knots = []
    for order, count in zip(orders, counts, strict=True):
        if rng.random() < 0.5:
            knots.append(clamped(count, order))
        else:
            knots.append(np.sort(rng.uniform(0, 1, count + order)).tolist())
    grid = np.stack(np.meshgrid(np.arange(counts[0]), np.arange(counts[1])), axis=-1).reshape(-1, 2)
    points = np.c_[grid, rng.uniform(-1, 1, len(grid))].astype(np.float32)
    weights = rng.uniform(0.3, 3, len(grid)) if rng.random() < 0.5 else np.ones(len(grid))
    return {"points": points, "orders": orders, "knots": knots, "counts": counts, "weights": weights}


def test_a_sphere(read):
    """Every point and normal is exact, poles included; triangles are within 1e-3 of its size, the diagonal of its box."""
    found = read(revolved(ARC, ARC_KNOTS))
    mesh = found.mesh("/p")
    assert np.linalg.norm(mesh.points, axis=1) == pytest.approx(np.ones(len(mesh.points)), abs=2e-7)
    assert mesh.normals.values == pytest.approx(mesh.points, abs=1e-6)
    centres = mesh.points[mesh.triangle_points].mean(axis=1)
    assert 1.0 - np.linalg.norm(centres, axis=1).min() < 1e-3 * 2.0 * math.sqrt(3.0)
    assert len(mesh.triangle_face) < 12_000
    assert found.codes() == []


def test_a_cylinder_has_one_row_of_cells(read):
    mesh = read(revolved([(1, 0, 1), (1, 5, 1)], [0, 0, 1, 1], order=2)).mesh("/p")
    assert np.linalg.norm(mesh.points[:, :2], axis=1) == pytest.approx(np.ones(len(mesh.points)), abs=2e-7)
    assert sorted(set(mesh.points[:, 2].tolist())) == [0.0, 5.0]
    assert mesh.normals.values[:, 2] == pytest.approx(np.zeros(len(mesh.points)), abs=1e-7)


def test_the_seam_of_a_closed_patch_is_closed(read):
    mesh = read(revolved(ARC, ARC_KNOTS)).mesh("/p")
    s = mesh.primvars["st"].values[:, 0]
    assert (mesh.points[s == 0.0] == mesh.points[s == 1.0]).all()


def test_orientation_turns_faces_and_normals(read):
    stage = revolved(ARC, ARC_KNOTS)
    outward = read(stage).mesh("/p")
    UsdGeom.NurbsPatch(stage.GetPrimAtPath("/p")).CreateOrientationAttr("leftHanded")
    inward = read(stage).mesh("/p")
    assert (inward.normals.values == -outward.normals.values).all()
    for mesh, sign in ((outward, 1.0), (inward, -1.0)):
        a, b, c = (mesh.points[mesh.triangle_points[:, k]].astype(float) for k in range(3))
        assert np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0 == pytest.approx(sign * 4.0 / 3.0 * math.pi, rel=2e-3)


@pytest.mark.parametrize("seed", range(25))
def test_points_normals_and_tolerance_against_de_boor(read, seed):
    """Grid points are where de Boor's algorithm has them at the grid's st; normals are across differences of it; in cells the surface is
    within the tolerance of the triangles."""
    case = random_case(seed)
    mesh = read(patch(case["points"], case["orders"], case["knots"], case["counts"], case["weights"])).mesh("/p")
    lows = [case["knots"][k][case["orders"][k] - 1] for k in (0, 1)]
    highs = [case["knots"][k][case["counts"][k]] for k in (0, 1)]
    st = mesh.primvars["st"].values.astype(float)
    rng = np.random.default_rng(seed)
    size = float(np.linalg.norm(np.ptp(mesh.points, axis=0)))
    inner = np.flatnonzero(((st > 0.02) & (st < 0.98)).all(axis=1))
    kinks = [[(k - low) / (high - low) for k in knots] for knots, low, high in zip(case["knots"], lows, highs, strict=True)]

    def at(s, t):
        return surface_point(case, lows[0] + s * (highs[0] - lows[0]), lows[1] + t * (highs[1] - lows[1]))

    for i in rng.choice(inner, min(12, len(inner)), replace=False) if len(inner) else ():
        s, t = st[i]
        assert mesh.points[i] == pytest.approx(at(s, t), abs=2e-5 * size)
        h = 1e-5
        if min(abs(s - k) for k in kinks[0]) < 2 * h or min(abs(t - k) for k in kinks[1]) < 2 * h:
            continue
        normal = np.cross(at(s + h, t) - at(s - h, t), at(s, t + h) - at(s, t - h))
        assert mesh.normals.values[i] == pytest.approx(normal / np.linalg.norm(normal), abs=2e-3)
    worst = 0.0
    for j in rng.choice(len(mesh.triangle_face), min(60, len(mesh.triangle_face)), replace=False):
        corners = mesh.triangle_points[j]
        share = rng.dirichlet((1, 1, 1))
        p, a, b, c = at(*(share @ st[corners])), *mesh.points[corners].astype(float)
        normal = np.cross(b - a, c - a)
        length = np.linalg.norm(normal)
        worst = max(worst, abs(np.dot(p - a, normal)) / length if length > 0 else 0.0)
    assert worst < nurbs_surfaces.TOLERANCE * size


def test_a_polynomial_patch_is_its_polynomial(read):
    """z = (u - v)^2 as a biquadratic Bezier patch: blossoms give the control points."""

    def blossom(a, b):
        return a[0] * a[1] - 0.5 * (a[0] + a[1]) * (b[0] + b[1]) + b[0] * b[1]

    ends = [(0, 0), (0, 1), (1, 1)]
    points = [(sum(a) / 2, sum(b) / 2, blossom(a, b)) for b in ends for a in ends]
    mesh = read(patch(points, (3, 3), ([0, 0, 0, 1, 1, 1],) * 2, (3, 3))).mesh("/p")
    x, y, z = mesh.points.T.astype(float)
    assert z == pytest.approx((x - y) ** 2, abs=1e-6)
    assert mesh.primvars["st"].values == pytest.approx(mesh.points[:, :2], abs=1e-6)
    expected = np.stack((-2 * (x - y), 2 * (x - y), np.ones_like(x)), axis=1)
    assert mesh.normals.values == pytest.approx(expected / np.linalg.norm(expected, axis=1)[:, None], abs=1e-5)


def test_a_flat_patch_is_two_triangles_and_a_roof_has_a_crease(read):
    flat = read(patch([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], (2, 2), ([0, 0, 1, 1],) * 2, (2, 2))).mesh("/p")
    assert (len(flat.points), len(flat.triangle_face)) == (4, 2)
    roof = [(x, y, z) for y in (0, 1) for x, z in ((0, 0), (1, 1), (2, 0))]
    mesh = read(patch(roof, (2, 2), ([0, 0, 1, 2, 2], [0, 0, 1, 1]), (3, 2))).mesh("/p")
    assert len(mesh.points) == 8  # the ridge twice: each side has its own normal
    assert mesh.normals.values[:, 0] == pytest.approx([-HALF, -HALF, HALF, HALF] * 2)
    assert mesh.triangle_face.tolist() == [0, 0, 1, 1]


def test_a_range_cuts_a_part_out(read):
    stage = patch([(0, 0, 0), (4, 0, 0), (0, 1, 0), (4, 1, 0)], (2, 2), ([0, 0, 4, 4], [0, 0, 1, 1]), (2, 2))
    UsdGeom.NurbsPatch(stage.GetPrimAtPath("/p")).CreateURangeAttr(Gf.Vec2d(1, 3))
    mesh = read(stage).mesh("/p")
    assert (mesh.points[:, 0].min(), mesh.points[:, 0].max()) == (1.0, 3.0)
    assert sorted(set(mesh.primvars["st"].values[:, 0].tolist())) == [0.0, 1.0]


def test_a_periodic_patch_closes_smoothly(read):
    """A uniform cubic around: the last three of its control points are the first three again."""
    angle = np.arange(8) * 2 * np.pi / 5
    ring = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    points = [(x, y, z) for z in (0, 1) for x, y in ring]
    stage = patch(points, (4, 2), (list(range(12)), [0, 0, 1, 1]), (8, 2), uForm="periodic")
    found = read(stage)
    mesh, across = found.mesh("/p"), np.flatnonzero(found.mesh("/p").points[:, 2] > 0)[0]
    assert found.codes() == []
    assert (mesh.points[0] == mesh.points[across - 1]).all()
    assert mesh.normals.values[0] == pytest.approx(mesh.normals.values[across - 1], abs=1e-6)
    assert mesh.face_count == 5


# -- primvars -------------------------------------------------------------------------------------------------------------------


def primvar(stage: Usd.Stage, name: str, kind: str, values, indices=None, type_name="float[]") -> None:
    found = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/p")).CreatePrimvar(name, Sdf.ValueTypeNames.Find(type_name), kind)
    found.Set(values)
    if indices is not None:
        found.SetIndices(indices)


def test_vertex_primvars_go_as_the_points_do(read):
    """A primvar that repeats a coordinate stays equal to it, weights and all."""
    case = random_case(3)
    stage = patch(case["points"], case["orders"], case["knots"], case["counts"], case["weights"])
    primvar(stage, "x", "vertex", [float(p[0]) for p in case["points"]])
    mesh = read(stage).mesh("/p")
    assert mesh.primvars["x"].values[:, 0] == pytest.approx(mesh.points[:, 0], abs=1e-5)


def test_varying_and_uniform_primvars_are_by_segment(read):
    """Two segments of a cubic: 3 x 2 corners, values linear between them; uniform ones by segment, which is also what faces are."""
    points = [(x, y, x * x) for y in (0, 1) for x in range(5)]
    stage = patch(points, (4, 2), (clamped(5, 4), [0, 0, 1, 1]), (5, 2))
    primvar(stage, "corner", "varying", [0.0, 1.0, 4.0, 10.0, 11.0, 14.0])
    primvar(stage, "segment", "uniform", [7.0, 9.0])
    primvar(stage, "dyed", "varying", [5.0, 6.0], indices=[0, 0, 0, 1, 1, 1])
    mesh = read(stage).mesh("/p")
    s, t = mesh.primvars["st"].values.T
    assert mesh.primvars["corner"].values[:, 0] == pytest.approx(10 * t + np.where(s < 0.5, 2 * s, 1 + 6 * (s - 0.5)), abs=1e-5)
    assert mesh.primvars["dyed"].values[:, 0] == pytest.approx(5 + t, abs=1e-6)
    assert mesh.face_count == 2
    assert mesh.primvars["segment"].values[:, 0].tolist() == [7.0, 9.0]
    assert (mesh.points[mesh.triangle_points].mean(axis=1)[:, 0] > 2.0).tolist() == (mesh.triangle_face == 1).tolist()


def test_st_is_the_authors_where_there_is_one(read):
    stage = patch([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], (2, 2), ([0, 0, 1, 1],) * 2, (2, 2))
    primvar(stage, "st", "vertex", [Gf.Vec2f(i, 2) for i in range(4)], type_name="texCoord2f[]")
    assert read(stage).mesh("/p").primvars["st"].values.tolist() == [[i, 2] for i in range(4)]


def test_odd_primvars_are_named(read):
    points = [(x, y, x * x) for y in (0, 1) for x in range(5)]
    stage = patch(points, (4, 2), (clamped(5, 4), [0, 0, 1, 1]), (5, 2))
    primvar(stage, "corner", "faceVarying", [0.0] * 8)
    primvar(stage, "points", "varying", [float(i) for i in range(10)])
    primvar(stage, "few", "vertex", [1.0] * 9)
    found = read(stage)
    assert sorted(found.codes("/p")) == ["primvar-count", "primvar-count", "primvar-interpolation"]
    assert sorted(found.mesh("/p").primvars) == ["points", "st"]


# -- what is wrong --------------------------------------------------------------------------------------------------------------


def square() -> Usd.Stage:
    return patch([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], (2, 2), ([0, 0, 1, 1],) * 2, (2, 2))


@pytest.mark.parametrize(
    ("name", "value", "code", "said"),
    [
        ("uVertexCount", 3, "nurbs-knots", "uVertexCount + uOrder are 5"),
        ("uVertexCount", 1, "nurbs-order", "Author 2 or more"),
        ("vOrder", 1, "nurbs-order", "vOrder is 1"),
        ("uKnots", [0.0, 1.0], "nurbs-knots", "outermost knots"),
        ("uKnots", [0.0, 1.0, 0.0, 1.0], "nurbs-knots", "rise"),
        ("uKnots", [0.0, math.nan, 1.0, 1.0], "nurbs-knots", "rise"),
        ("vKnots", [1.0, 1.0, 1.0, 1.0], "nurbs-knots", "no range"),
        ("pointWeights", [1.0, 1.0], "nurbs-weights", "2 values for 4 points"),
        ("pointWeights", [1.0, 0.0, 1.0, 1.0], "nurbs-weights", "holds 0"),
        ("points", [Gf.Vec3f(0)] * 3, "nurbs-points", "3 points"),
        ("points", [Gf.Vec3f(math.nan, 0, 0)] * 4, "points-not-finite", "4 of 4"),
    ],
)
def test_patches_that_cannot_be_drawn(read, name, value, code, said):
    stage = square()
    stage.GetPrimAtPath("/p").GetAttribute(name).Set(value)
    found = read(stage)
    assert found.paths == []
    assert found.codes("/p") == [code]
    assert said in found.message(code)


def test_what_is_left_out_of_a_patch_is_named(read):
    stage = square()
    prim = UsdGeom.NurbsPatch(stage.GetPrimAtPath("/p"))
    prim.CreateTrimCurveCountsAttr([1])
    prim.CreateURangeAttr(Gf.Vec2d(-1, 0.5))
    prim.CreateVFormAttr("closed")
    prim.CreateNormalsAttr([Gf.Vec3f(1, 0, 0)] * 4)
    UsdGeom.Subset.Define(stage, "/p/s").CreateIndicesAttr([0])
    found = read(stage)
    assert sorted(found.codes("/p")) == ["nurbs-form", "nurbs-normals", "nurbs-range", "subset-type", "trim-curves"]
    assert found.mesh("/p").points[:, 0].max() == 0.5
    assert found.mesh("/p").normals.values.tolist() == [[0, 0, 1]] * 4


def test_more_intervals_than_cells_are_told(read):
    count = 700
    points = [(i, y, (i % 2) * 300.0) for y in (0, 1) for i in range(count)]
    found = read(patch(points, (2, 2), (clamped(count, 2), [0, 0, 1, 1]), (count, 2)))
    assert found.codes("/p") == ["nurbs-resolution"]
    assert len(found.mesh("/p").triangle_face) == 2 * nurbs_surfaces.MOST_CELLS
