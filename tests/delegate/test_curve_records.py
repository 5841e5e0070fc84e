"""Records of points and curves: what kernels would read beyond its end is refused, what differs is told apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hdwarp.delegate.checks import check_record
from hdwarp.delegate.mesh_content import mesh_sketch, same_mesh, same_topology
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.errors import ArgumentError, NotSupported
from hdwarp.stage.columns import STRAIGHT, GeometryKind, Gprim, MeshGeometry, Primvar


def ints(*rows) -> np.ndarray:
    return np.array(rows, np.int32)


def balls(count: int = 2, **other) -> MeshGeometry:
    each = np.repeat(np.arange(count, dtype=np.int32)[:, None], 3, axis=1)
    made = MeshGeometry(np.zeros((count, 3), np.float32), each, each, each[:, 0].copy(), count, count)
    return replace(made, **{"form": GeometryKind.POINTS, "radii": np.ones(count, np.float32), **other})


def tube(**other) -> MeshGeometry:
    line = np.array([(k / 3, 0, 0) for k in range(4)], np.float32)
    made = MeshGeometry(line, ints((1, 1, 0)), ints((1, 1, 0)), ints(0).reshape(1), 1, 2)
    made = replace(made, form=GeometryKind.TUBES, radii=np.full(4, 0.1, np.float32), pieces=ints(16 + STRAIGHT).reshape(1))
    return replace(made, **other)


def ribbon(**other) -> MeshGeometry:
    return replace(tube(form=GeometryKind.RIBBONS, radii=None, points=np.zeros((8, 3), np.float32)), **other)


def gprim(mesh: MeshGeometry, path: str = "/g") -> Gprim:
    return Gprim(path, mesh.form, mesh, np.eye(4)[None])


SMOOTH = Primvar("bezier", np.zeros((4, 1), np.float32))


@pytest.mark.parametrize("mesh", [balls(), balls(0), tube(), ribbon(), tube(primvars={"heat": SMOOTH}), balls(ids=np.array([5, 4]))])
def test_sound_records_are_taken(mesh):
    check_record(gprim(mesh), (Gprim,))


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        (balls(radii=None), r"radii are None; expected \(2,\)"),
        (balls(radii=np.ones(3, np.float32)), "radii are"),
        (balls(points=np.zeros((3, 3), np.float32)), r"points are \(3, 3\); expected \(2, 3\)"),
        (balls(pieces=ints(16, 16)), "pieces are"),
        (balls(ids=np.array([5])), "ids are"),
        (balls(primvars={"heat": Primvar("vertex", np.zeros((2, 1), np.float32))}), "expected one of uniform"),
        (tube(points=np.zeros((3, 3), np.float32)), r"points are \(3, 3\); expected \(4, 3\)"),
        (tube(radii=np.ones(1, np.float32)), "radii are"),
        (tube(pieces=None), "pieces are None"),
        (tube(pieces=ints(3).reshape(1)), "pieces hold 3"),
        (tube(triangle_points=ints((2, 2, 1))), "triangle_points holds 2"),
        (tube(triangle_face=ints(1).reshape(1)), "triangle_face holds 1"),
        (tube(ids=np.array([5])), "ids are"),
        (tube(primvars={"heat": Primvar("bezier", np.zeros((3, 1), np.float32))}), "has 3 values or indices; expected 4"),
        (ribbon(points=np.zeros((4, 3), np.float32)), r"expected \(8, 3\)"),
        (ribbon(radii=np.ones(8, np.float32)), "radii are"),
    ],
)
def test_records_that_lead_beyond_their_ends_are_refused(mesh, said):
    with pytest.raises(ArgumentError, match=said):
        check_record(gprim(mesh), (Gprim,))


def test_kind_and_form_agree():
    with pytest.raises(ArgumentError, match="must be the same"):
        check_record(replace(gprim(tube()), kind=GeometryKind.MESH), (Gprim,))
    with pytest.raises(ArgumentError, match="has a MeshGeometry"):
        check_record(Gprim("/g", GeometryKind.POINTS, None, np.eye(4)[None]), (Gprim,))


def test_what_differs_is_told_apart():
    assert same_mesh(tube(), tube())
    assert mesh_sketch(tube()) == mesh_sketch(tube())
    assert not same_mesh(tube(), tube(radii=np.full(4, 0.2, np.float32)))
    assert same_topology(tube(), tube(radii=np.full(4, 0.2, np.float32)))
    assert not same_topology(tube(), tube(pieces=ints(16).reshape(1)))
    assert not same_mesh(balls(ids=np.array([1, 2])), balls(ids=np.array([2, 1])))
    assert not same_topology(balls(4), tube())


def test_other_radii_keep_the_row():
    """As other points do: the tree is refitted, not built anew."""
    index = RenderIndex()
    index.insert(gprim(balls()))
    row = index.gprim_rows[("/g", (), 0)]
    mesh_row = index.instances["mesh"][row]
    index.insert(gprim(balls(radii=np.full(2, 3.0, np.float32))))
    assert index.instances["mesh"][row] == mesh_row
    assert index.meshes[mesh_row].radii.tolist() == [3.0, 3.0]


def test_points_are_moved_and_curves_are_not():
    index = RenderIndex()
    index.insert(gprim(balls(), "/balls"), gprim(tube(), "/tube"))
    assert index.written.take_points("/balls", (2, 3))
    with pytest.raises(ArgumentError, match=r"have shape \(3, 3\); expected \(2, 3\)$"):
        index.written.take_points("/balls", (3, 3))
    with pytest.raises(NotSupported, match=r"</tube>.*Author them on the stage and call scene.sync\(\)"):
        index.written.take_points("/tube", (4, 3))


def test_a_kind_is_no_plain_number():
    with pytest.raises(ArgumentError, match="kind is 6; expected a GeometryKind"):
        check_record(replace(gprim(balls()), kind=6), (Gprim,))


def test_primvars_of_points_and_curves():
    index = RenderIndex()
    index.insert(gprim(balls(), "/balls"), gprim(tube(), "/tube"))
    for interpolation in (None, "vertex", "varying"):
        index.written.take_primvar("/balls", "heat", (2, 1), interpolation)
        assert index.written.primvar("/balls", "heat").interpolation == "uniform"
    index.written.take_primvar("/tube", "displayColor", (1, 3), None)
    assert index.written.primvar("/tube", "displayColor").interpolation == "constant"
    with pytest.raises(NotSupported, match="interpolation 'varying'; of curves one constant value"):
        index.written.take_primvar("/tube", "heat", (2, 1), "varying")
    with pytest.raises(ArgumentError, match="normals of its own; they can be set of meshes"):
        index.written.take_primvar("/balls", "normals", (2, 3), None)
