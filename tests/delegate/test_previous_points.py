"""Where curves that were cut otherwise, and points that came and went, were before: against the authored curves themselves, in float64."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Usd, UsdGeom, Vt

from hdwarp.delegate import previous_rows
from hdwarp.delegate.previous_points import previous_points
from hdwarp.delegate.previous_rows import PreviousRows
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.stage.columns import BALL, GeometryKind, Gprim, MeshGeometry, StageChanges, gprim_keys
from hdwarp.stage.reader import read_stage

FROM = {  # Bernstein's coefficients from the vertices of a segment
    "linear": np.array(((3, 0), (2, 1), (1, 2), (0, 3))) / 3,
    "bezier": np.eye(4),
    "bspline": np.array(((1, 4, 1, 0), (0, 4, 2, 0), (0, 2, 4, 0), (0, 1, 4, 1))) / 6,
    "catmullRom": np.array(((0, 6, 0, 0), (-1, 6, 1, 0), (0, 1, 6, -1), (0, 0, 6, 0))) / 6,
}
WIDTH = 0.1


def read(points, counts, basis="bezier", *, widths=(WIDTH,), ribbon=False) -> MeshGeometry:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    prim = UsdGeom.BasisCurves.Define(stage, "/c")
    prim.CreateTypeAttr("linear" if basis == "linear" else "cubic")
    if basis != "linear":
        prim.CreateBasisAttr(basis)
    prim.CreateCurveVertexCountsAttr(counts)
    prim.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.asarray(points, np.float32)))
    prim.CreateWidthsAttr(list(widths))
    prim.SetWidthsInterpolation("constant" if len(widths) == 1 else "vertex")
    if ribbon:
        prim.CreateNormalsAttr([(0, 0, 1)])
        prim.SetNormalsInterpolation("constant")
    return read_stage(stage, Usd.TimeCode.Default()).gprims[0].mesh


def segments(points, counts, basis="bezier") -> np.ndarray:
    """(S, 4, 3) float64 control points of the authored, float32, curves."""
    matrix, step = FROM[basis], 3 if basis == "bezier" else 1
    found, start = [], 0
    for count in counts:
        width = matrix.shape[1]
        firsts = range(start, start + count - width + 1, step)
        found += [matrix @ np.asarray(points, np.float32)[first : first + width].astype(np.float64) for first in firsts]
        start += count
    return np.array(found)


def at(control: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(n, m, 3) of (n, 4, 3) at (n, m)."""
    weights = np.stack(((1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u**2 * (1 - u), u**3), axis=2)
    return weights @ control


def slopes(control: np.ndarray, u: np.ndarray) -> np.ndarray:
    weights = np.stack((-3 * (1 - u) ** 2, 3 * (1 - u) * (1 - 3 * u), 3 * u * (2 - 3 * u), 3 * u**2), axis=2)
    return weights @ control


def spans(mesh: MeshGeometry) -> tuple[np.ndarray, np.ndarray]:
    """(start, size) of each piece in its segment."""
    codes = mesh.pieces.astype(np.int64) >> 4
    level = np.array([int(code).bit_length() - 1 for code in codes])
    return (codes - 2**level) / 2.0**level, 0.5**level


def places(mesh: MeshGeometry) -> np.ndarray:
    """(T, 5) how far along the segment, at five places of each piece; of joints at their start."""
    start, size = spans(mesh)
    return start[:, None] + np.where(mesh.pieces & BALL, 0.0, size)[:, None] * np.linspace(0, 1, 5)


def drawn(mesh: MeshGeometry) -> np.ndarray:
    """(T, edges, 5, 3) points of each piece at `places`."""
    control = mesh.points.astype(np.float64).reshape(len(mesh.pieces), -1, 4, 3)
    u = np.broadcast_to(np.linspace(0, 1, 5), (len(control), 5))
    return np.stack([at(control[:, edge], u) for edge in range(control.shape[1])], axis=1)


def hair(rng, count: int, vertices: int, sway: float) -> np.ndarray:
    """(count * vertices, 3): upright hairs, each bent as far as chance has it, many hardly at all."""
    s = np.linspace(0.0, 1.0, vertices)
    bend = sway * rng.normal(size=(count, 1)) ** 3
    x = np.arange(count)[:, None] * 0.3 + bend * s**2
    return np.stack((x, s - 0.3 * np.abs(bend) * s**3, np.zeros((count, vertices))), axis=2).reshape(-1, 3)


@pytest.mark.parametrize(("basis", "vertices"), [("bezier", 7), ("bspline", 6), ("catmullRom", 5)])
def test_pieces_get_the_place_of_the_same_part_of_the_curve_before(basis, vertices):
    rng = np.random.default_rng(7)
    counts = [vertices] * 60
    then, now = hair(rng, 60, vertices, 0.5), hair(rng, 60, vertices, 0.5)
    before, after = read(then, counts, basis), read(now, counts, basis)
    assert len(before.pieces) != len(after.pieces)
    found = previous_points(before, after)
    assert np.array_equal(found.pieces, after.pieces) and np.array_equal(found.triangle_face, after.triangle_face)
    whole = segments(then, counts, basis)[after.triangle_face]
    np.testing.assert_allclose(drawn(found)[:, 0], at(whole, places(after)), atol=1e-5)  # x up to 18, float32: 1e-6 each
    np.testing.assert_allclose(found.radii, WIDTH / 2, rtol=1e-5)


def test_edges_of_ribbons_get_theirs():
    rng = np.random.default_rng(3)
    counts = [4] * 80
    then, now = hair(rng, 80, 4, 0.3), hair(rng, 80, 4, 0.3)
    before, after = read(then, counts, ribbon=True), read(now, counts, ribbon=True)
    assert before.form is GeometryKind.RIBBONS and len(before.pieces) != len(after.pieces)
    found = previous_points(before, after)
    whole, u = segments(then, counts)[after.triangle_face], places(after)
    along = slopes(whole, u)
    across = np.cross([0, 0, 1], along) / np.linalg.norm(along, axis=2, keepdims=True)
    for edge, side in enumerate((-1, 1)):
        off = drawn(found)[:, edge] - (at(whole, u) + side * WIDTH / 2 * across)
        assert np.abs(off).max() < 2e-2 * WIDTH  # edges are no cubics: within 1e-4 of the radius where they were cut for it
        assert np.median(np.linalg.norm(off, axis=2)) < 1e-4 * WIDTH


def test_some_control_points_move_and_others_rest():
    """Of three hairs of two segments each the second one's tip bends and the third goes aside: what is cut as before has the very bits
    of then, at rest or not."""
    counts = [7, 7, 7]
    then = hair(np.random.default_rng(0), 3, 7, 0.0)
    now = then.copy()
    now[[12, 13], 0] += (0.1, 0.3)
    now[14:] += (0.1, 0.0, 0.7)
    before, after = read(then, counts), read(now, counts)
    found = previous_points(before, after)
    bent = after.triangle_face == 3
    assert bent.sum() > (before.triangle_face == 3).sum()
    assert np.array_equal(found.points.reshape(-1, 4, 3)[~bent], before.points.reshape(-1, 4, 3)[before.triangle_face != 3])
    whole = np.repeat(segments(then, counts)[3:4], bent.sum(), axis=0)
    np.testing.assert_allclose(drawn(found)[bent, 0], at(whole, places(after)[bent]), atol=1e-6)
    assert np.abs(drawn(found) - drawn(after))[bent].max() > 0.1
    back = previous_points(after, before)  # and straight again: of one piece, where there were several
    whole = np.repeat(segments(now, counts)[3:4], (before.triangle_face == 3).sum(), axis=0)
    np.testing.assert_allclose(drawn(back)[before.triangle_face == 3, 0], at(whole, places(before)[before.triangle_face == 3]), atol=1e-6)


def test_joints_go_with_the_start_of_their_piece():
    then, now = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)], [(0, 0, 0), (1, 0.5, 0), (2, 0.5, 0), (3, 0, 0)]
    before, after = read(then, [4], "linear"), read(now, [4], "linear")
    balls = (after.pieces & BALL) != 0
    assert not (before.pieces & BALL).any() and balls.sum() == 2
    found = previous_points(before, after).points.reshape(-1, 4, 3)
    np.testing.assert_array_equal(found[balls], [[(1, 0, 0)] * 4, [(2, 0, 0)] * 4])
    lines = np.array([[(i + k / 3, 0, 0) for k in range(4)] for i in range(3)], np.float32)
    np.testing.assert_allclose(found[~balls], lines, atol=1e-6)


def test_where_only_widths_cut_it_otherwise_it_rests():
    points = [(0, 0, 0), (0.3, 1.0, 0.1), (0.1, 2.1, 0), (0.4, 3.3, 0.3)]
    before, after = read(points, [4], widths=(0.1, 0.1, 0.1, 0.1)), read(points, [4], widths=(0.1, 0.9, 0.1, 0.5))
    assert len(before.pieces) != len(after.pieces)
    assert previous_points(before, after) is None and previous_points(after, before) is None


def test_a_segment_that_was_not_there_rests():
    then, now = hair(np.random.default_rng(1), 3, 4, 0.0), hair(np.random.default_rng(1), 3, 4, 0.4)
    then[5] = np.nan
    before, after = read(then, [4, 4, 4]), read(now, [4, 4, 4])
    assert set(before.triangle_face) == {0, 2}
    found, new = previous_points(before, after), after.triangle_face == 1
    assert np.array_equal(found.points.reshape(-1, 4, 3)[new], after.points.reshape(-1, 4, 3)[new])
    whole = segments(then, [4, 4, 4])[after.triangle_face[~new]]
    np.testing.assert_allclose(drawn(found)[~new, 0], at(whole, places(after)[~new]), atol=1e-6)


def test_other_curves_are_not_matched():
    rng = np.random.default_rng(2)
    points = hair(rng, 1, 11, 0.4)
    before = read(points, [4, 7])
    assert previous_points(before, read(points + 0.1 * np.sin(points), [7, 4])) is None
    assert previous_points(before, read(hair(rng, 1, 15, 0.4), [4, 7, 4])) is None
    assert previous_points(before, read(points + [0.1, 0, 0], [4, 7], ribbon=True)) is None
    assert previous_points(before, read(points, [4, 7])) is None  # at rest
    assert previous_points(None, before) is None
    assert previous_points(before, None) is None


def test_the_same_pieces_keep_the_very_points():
    points = hair(np.random.default_rng(2), 5, 4, 0.2)
    before, after = read(points, [4] * 5), read(points + [0.5, 0, 0], [4] * 5)
    assert previous_points(before, after) is before


# -- points ------------------------------------------------------------------------------------------------------------------------


def balls(centres, *, widths=None, ids=None) -> MeshGeometry:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    prim = UsdGeom.Points.Define(stage, "/p")
    prim.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.asarray(centres, np.float32)))
    prim.CreateWidthsAttr([1.0] * len(centres) if widths is None else widths)
    if ids is not None:
        prim.CreateIdsAttr(ids)
    return read_stage(stage, Usd.TimeCode.Default()).gprims[0].mesh


def test_points_are_known_by_their_ids():
    then = np.arange(12.0).reshape(4, 3)
    before = balls(then, ids=[40, 10, 30, 20], widths=[1.0, 2.0, 3.0, 4.0])
    now = np.arange(15.0).reshape(5, 3) + 100
    found = previous_points(before, balls(now, ids=[20, 50, 10, 40, -7]))
    np.testing.assert_array_equal(found.points, [then[3], now[1], then[1], then[0], now[4]])
    np.testing.assert_array_equal(found.radii, [2.0, 0.5, 1.0, 0.5, 0.5])
    assert previous_points(before, balls(now, ids=[1, 2, 3, 4, 5])) is None


def test_points_that_are_not_drawn_and_ids_that_are_not_one_points():
    then = np.arange(15.0).reshape(5, 3)
    before = balls(then, ids=[1, 2, 2, 3, 4], widths=[1, 1, 1, 0, 1])
    now = then[::-1] + 50
    found = previous_points(before, balls(now, ids=[4, 3, 2, 1, 1]))
    np.testing.assert_array_equal(found.points, [then[4], *now[1:]])  # 3 had no ball, 2 were two, 1 are two


def test_without_ids_points_are_known_by_number_while_there_are_as_many():
    then = np.arange(12.0).reshape(4, 3)
    before, now = balls(then, widths=[1, 0, 1, 1]), then + 50
    found = previous_points(before, balls(now, widths=[1, 1, 0, 1]))
    np.testing.assert_array_equal(found.points, [then[0], now[1], then[3]])
    np.testing.assert_array_equal(previous_points(before, balls(now, ids=[9, 8, 7, 6])).points, [then[0], now[1], then[2], then[3]])
    assert previous_points(before, balls(np.concatenate((now, now)))) is None
    assert previous_points(before, balls(now[:3])) is None


def test_a_million_points_are_matched():
    rng = np.random.default_rng(0)
    ids = rng.permutation(2_000_000)[:1_000_000]
    centres = rng.uniform(-1, 1, (1_000_000, 3)).astype(np.float32)
    order = rng.permutation(1_000_000)[:900_000]
    before = balls(centres, ids=Vt.Int64Array.FromNumpy(ids), widths=[0.1] * 1_000_000)
    after = balls(centres[order] + 1, ids=Vt.Int64Array.FromNumpy(ids[order]), widths=[0.1] * 900_000)
    assert np.array_equal(previous_points(before, after).points, centres[order])


# -- rows --------------------------------------------------------------------------------------------------------------------------


def test_what_two_prims_share_is_matched_once_a_frame(monkeypatch):
    """However often the frame is asked for; and anew where one of the two is another."""
    calls = []
    monkeypatch.setattr(previous_rows, "previous_points", lambda *pair: calls.append(pair) or previous_points(*pair))
    rng = np.random.default_rng(5)
    meshes = [read(hair(rng, 4, 4, 0.5), [4] * 4) for _ in range(3)]
    index = RenderIndex()
    index.previous = PreviousRows()

    def draw(mesh):
        gprims = [Gprim(path, GeometryKind.TUBES, mesh, np.eye(4)[None]) for path in ("/a", "/b")]
        index.apply(StageChanges(gprims=dict(gprim_keys(gprims))))
        return index.previous.moved(index).deformed

    draw(meshes[0])
    index.previous.advance()
    first, second = draw(meshes[1]), index.previous.moved(index).deformed
    assert len(calls) == 1
    assert {id(item[1]) for item in (*first, *second)} == {id(first[0][1])} and len(first) == 2
    np.testing.assert_array_equal(first[0][1].points, previous_points(meshes[0], meshes[1]).points)
    third = draw(meshes[2])
    assert len(calls) == 2
    np.testing.assert_array_equal(third[0][1].points, previous_points(meshes[0], meshes[2]).points)
    index.previous.advance()
    assert not index.previous.moved(index).deformed and len(calls) == 2
