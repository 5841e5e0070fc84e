"""The index driven by hand, without a stage, as a Hydra unit test would: rows stay, ids are ranks, only differences are dirty."""

from __future__ import annotations

import numpy as np
import pytest

from hdwarp.delegate.change_tracker import DirtyBits
from hdwarp.delegate.mesh_content import mesh_sketch, same_mesh
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import Body, GeometryKind, Gprim, Instancer, MeshGeometry, Primvar, StageColumns
from hdwarp.stage.looks import Material


def quad(z: float = 0.0, **extra) -> MeshGeometry:
    points = np.array([(-1, -1, z), (1, -1, z), (1, 1, z), (-1, 1, z)], np.float32)
    corners = np.array([(0, 1, 2), (0, 2, 3)], np.int32)
    return MeshGeometry(points, corners, corners, np.zeros(2, np.int32), 1, 4, **extra)


def at(*places) -> np.ndarray:
    transforms = np.tile(np.eye(4), (len(places), 1, 1))
    transforms[:, :3, 3] = places
    return transforms


def stage(*gprims: Gprim, materials=(), bodies=()) -> StageColumns:
    return StageColumns(1.0, "Y", None, 24.0, gprims=list(gprims), materials=list(materials), bodies=list(bodies))


def sphere(path: str, *places, **extra) -> Gprim:
    return Gprim(path, GeometryKind.SPHERE, None, at(*(places or [(0, 0, 0)])), **extra)


def clean(index: RenderIndex) -> None:
    for table in index.tracker.TABLES:
        index.tracker.clear(table)


def test_ids_are_ranks_in_path_order_whatever_came_first():
    index = RenderIndex()
    index.sync(stage(sphere("/b"), sphere("/d")))
    index.sync(stage(sphere("/d"), sphere("/a"), sphere("/b")))
    assert index.prim_paths == ["/a", "/b", "/d"]
    for path, prim_id in (("/a", 0), ("/b", 1), ("/d", 2)):
        assert index.instances["prim_id"][index.gprim_rows[(path, (), 0)]] == prim_id
    fresh = RenderIndex()
    fresh.sync(stage(sphere("/a"), sphere("/b"), sphere("/d")))
    assert fresh.prim_paths == index.prim_paths


def test_rows_stay_when_other_prims_come_and_go():
    index = RenderIndex()
    index.sync(stage(sphere("/a"), sphere("/m", (0, 0, 0), (1, 0, 0)), sphere("/z")))
    kept = index.gprim_rows.run(("/m", (), 0))
    counts = index.sync(stage(sphere("/b"), sphere("/m", (0, 0, 0), (1, 0, 0))))
    assert index.gprim_rows.run(("/m", (), 0)) == kept
    assert (counts.instances_inserted, counts.instances_removed) == (1, 2)
    assert index.instance_count == 3


def test_only_what_differs_is_dirty():
    index = RenderIndex()
    index.sync(stage(*(sphere(f"/s{i}", (i, 0, 0)) for i in range(9))))
    clean(index)
    unchanged = index.sync(stage(*(sphere(f"/s{i}", (i, 0, 0)) for i in range(9))))
    assert index.tracker.is_clean() and unchanged.instances_changed == 0
    moved = index.sync(stage(*(sphere(f"/s{i}", (i, i == 4, 0)) for i in range(9))))
    assert moved.instances_changed == 1
    assert index.tracker.dirty_rows("instances", DirtyBits.TRANSFORM).tolist() == [index.gprim_rows[("/s4", (), 0)]]


def test_equal_meshes_are_one_row_and_survive_a_new_read():
    index = RenderIndex()

    def mesh(geometry: MeshGeometry) -> Gprim:
        return Gprim("/m", GeometryKind.MESH, geometry, at((0, 0, 0)))

    index.sync(stage(mesh(quad())))
    clean(index)
    counts = index.sync(stage(mesh(quad())))
    assert counts.meshes_inserted == 0 and index.tracker.is_clean()
    counts = index.sync(stage(mesh(quad(z=1.0))))
    assert (counts.meshes_inserted, counts.meshes_removed, counts.meshes_moved) == (0, 0, 1)
    assert len(index.meshes) == 1


@pytest.mark.parametrize(
    "other",
    [
        quad(z=1e-6),
        quad(face_subset=np.array([0], np.int16)),
        quad(normals=Primvar("vertex", np.ones((4, 3), np.float32))),
        quad(primvars={"st": Primvar("vertex", np.ones((4, 2), np.float32))}),
    ],
)
def test_meshes_are_the_same_without_any_difference_that_can_be_seen(other):
    assert same_mesh(quad(), quad()) and mesh_sketch(quad()) == mesh_sketch(quad())
    assert not same_mesh(quad(), other)


def test_the_same_prototype_under_two_instancers_is_two_prims():
    a, b = Instancer("/A", np.array([7, 9])), Instancer("/B", np.array([1]))
    index = RenderIndex()
    index.sync(
        stage(
            sphere("/P", (0, 0, 0), (1, 0, 0), instancer=a, instance_ids=np.array([0, 1], np.int32)),
            sphere("/P", (2, 0, 0), instancer=b, instance_ids=np.array([0], np.int32)),
        )
    )
    assert index.prim_paths == ["/P", "/P"]
    assert index.instance_ids(0, 1) == (9,)
    assert index.instance_ids(1, 0) == (1,)
    assert index.instance_ids(-1, 0) == ()


def test_an_instancer_inside_two_others_is_two_prims_and_ids_go_outermost_first():
    """Inner instances 0..2 of outer instance i have ids 3 i .. 3 i + 2."""
    inner, outers = np.array([5, 6, 7]), [Instancer("/A", np.array([10, 20])), Instancer("/B", np.array([30]))]
    gprims = [
        sphere("/P", *[(i, j, 0) for i in range(len(outer.ids)) for j in range(3)], instancer=Instancer("/I", inner, outer))
        for outer in outers
    ]
    index = RenderIndex()
    index.sync(stage(*gprims))
    assert index.instance_count == 9 and index.prim_paths == ["/P", "/P"]
    assert [index.instance_ids(0, i) for i in range(6)] == [(10, 5), (10, 6), (10, 7), (20, 5), (20, 6), (20, 7)]
    assert [index.instance_ids(1, i) for i in range(3)] == [(30, 5), (30, 6), (30, 7)]


def test_one_prim_drawn_twice_by_one_instancer_loses_nothing():
    """A prototype inside another prototype of the same instancer."""
    instancer = Instancer("/A", np.array([0, 1]))
    index = RenderIndex()
    index.sync(stage(sphere("/P", (0, 0, 0), instancer=instancer), sphere("/P", (1, 0, 0), (2, 0, 0), instancer=instancer)))
    assert index.prim_paths == ["/P", "/P"]
    assert index.instance_count == 3


def test_bodies_and_materials_are_ranked_too():
    index = RenderIndex()
    materials, bodies = [Material("/m/z"), Material("/m/a")], [Body("/r/2", np.eye(4)), Body("/r/1", np.eye(4))]
    index.sync(stage(sphere("/s", material="/m/z", body="/r/2"), materials=materials, bodies=bodies))
    assert index.material_paths == ["/m/a", "/m/z"]
    row = index.gprim_rows[("/s", (), 0)]
    assert index.material_id[index.instances["material"][row]] == 1
    assert index.body_paths[index.instances["body"][row]] == "/r/2"


def test_an_id_out_of_range_is_refused_by_name():
    index = RenderIndex()
    index.sync(stage(sphere("/a")))
    assert index.prim_path(-1) is None
    assert index.prim_path(0) == "/a"
    with pytest.raises(ArgumentError, match="primId 5"):
        index.prim_path(5)


def test_a_mesh_that_one_leaves_and_another_comes_to():
    """In one change: a moves on to other points, b comes with a's old mesh. Both rows live, and go, on their own."""

    def gprim(path: str, height: float) -> Gprim:
        return Gprim(path, GeometryKind.MESH, quad(height), at((0, 0, 0)))

    index = RenderIndex()
    index.insert(gprim("/a", 0.0))
    index.insert(gprim("/a", 1.0), gprim("/b", 0.0))
    index.insert(gprim("/c", 0.0))
    assert len(index.meshes) == 2
    for path in ("/b", "/c", "/a"):
        index.remove(path)
    assert len(index.meshes) == 0
