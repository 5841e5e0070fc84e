"""The index by hand, prim by prim: what a Hydra unit test would do to HdRenderIndex."""

from __future__ import annotations

import numpy as np
import pytest

from hdwarp.delegate.change_tracker import DirtyBits
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import Body, Camera, GeometryKind, Gprim, Instancer, MeshGeometry, Primvar
from hdwarp.stage.looks import Material


def quad(z: float = 0.0, **extra) -> MeshGeometry:
    points = np.array([(-1, -1, z), (1, -1, z), (1, 1, z), (-1, 1, z)], np.float32)
    corners = np.array([(0, 1, 2), (0, 2, 3)], np.int32)
    return MeshGeometry(points, corners, corners, np.zeros(2, np.int32), 1, 4, **extra)


def at(*place: float) -> np.ndarray:
    transform = np.eye(4)[None].copy()
    transform[0, :3, 3] = place
    return transform


def sphere(path: str, *place: float, **extra) -> Gprim:
    return Gprim(path, GeometryKind.SPHERE, None, at(*(place or (0, 0, 0))), **extra)


def mesh(path: str, geometry: MeshGeometry, *place: float) -> Gprim:
    return Gprim(path, GeometryKind.MESH, geometry, at(*(place or (0, 0, 0))))


def clean(index: RenderIndex) -> None:
    for table in index.tracker.TABLES:
        index.tracker.clear(table)


def test_insert_replace_and_remove():
    index = RenderIndex()
    assert index.insert(sphere("/b"), sphere("/a"), Material("/red"), Camera("/cam", np.eye(4), np.eye(3))).instances_inserted == 2
    assert index.prim_paths == ["/a", "/b"]
    clean(index)
    counts = index.insert(sphere("/b", 1, 2, 3))
    assert (counts.instances_inserted, counts.instances_changed) == (0, 1)
    row = index.gprim_rows[("/b", (), 0)]
    assert index.tracker.dirty_rows("instances").tolist() == [row]
    assert index.tracker.dirty_rows("instances", DirtyBits.TRANSFORM).tolist() == [row]
    for path in ("/a", "/b", "/red", "/cam"):
        index.remove(path)
    assert index.prim_paths == [] == index.material_paths
    assert not index.cameras
    with pytest.raises(ArgumentError, match="</a> is not in the render index"):
        index.remove("/a")


def test_a_mesh_whose_points_move_keeps_its_row():
    index = RenderIndex()
    index.insert(mesh("/a", quad()), mesh("/b", quad()))
    row = index.mesh_row("/a")
    assert row == index.mesh_row("/b")
    clean(index)
    one = index.insert(mesh("/a", quad(1.0)))  # the other still has the old one
    assert (one.meshes_inserted, one.meshes_moved, one.meshes_removed) == (1, 0, 0)
    other = index.insert(mesh("/b", quad(2.0)))  # alone now
    assert (other.meshes_inserted, other.meshes_moved, other.meshes_removed) == (0, 1, 0)
    assert index.mesh_row("/b") == row != index.mesh_row("/a")
    assert index.tracker.dirty_rows("meshes", DirtyBits.POINTS).tolist() == sorted([row, index.mesh_row("/a")])
    back = index.insert(mesh("/b", quad(1.0)))  # equal to what /a has
    assert (back.meshes_removed, index.mesh_row("/b")) == (1, index.mesh_row("/a"))


def test_meshes_that_move_together_stay_one():
    index = RenderIndex()
    index.insert(mesh("/a", quad()), mesh("/b", quad(), 5, 0, 0))
    counts = index.insert(mesh("/a", quad(1.0)), mesh("/b", quad(1.0), 5, 0, 0))
    assert (counts.meshes_moved, counts.meshes_inserted, len(index.meshes)) == (1, 0, 1)


def test_other_triangles_are_another_mesh():
    index = RenderIndex()
    index.insert(mesh("/a", quad()))
    fewer = quad(1.0)
    fewer = MeshGeometry(fewer.points, fewer.triangle_corners[:1], fewer.triangle_points[:1], fewer.triangle_face[:1], 1, 4)
    counts = index.insert(mesh("/a", fewer))
    assert (counts.meshes_inserted, counts.meshes_removed, counts.meshes_moved) == (1, 1, 0)


def test_bodies_are_rows_by_rank_and_instances_follow():
    index = RenderIndex()
    index.insert(Body("/r/2", np.eye(4)), sphere("/r/2/s", body="/r/2"), sphere("/still"))
    row = index.gprim_rows[("/r/2/s", (), 0)]
    assert index.instances["body"][row] == 0 == index.body_row("/r/2")
    clean(index)
    index.insert(Body("/r/1", np.eye(4)))
    assert index.body_paths == ["/r/1", "/r/2"]
    assert index.instances["body"][row] == 1
    assert index.tracker.dirty_rows("instances").tolist() == [row]
    index.remove("/r/2")
    assert index.instances["body"][row] == -1


def test_constants_that_change_are_told_apart_from_those_that_do_not():
    index = RenderIndex()
    red = {"displayColor": np.array([1, 0, 0], np.float32)}
    index.insert(sphere("/s", constants=red), sphere("/t"))
    clean(index)
    index.insert(sphere("/s", constants=dict(red)), sphere("/t"))
    assert index.tracker.is_clean()
    index.insert(sphere("/s", constants={"displayColor": np.array([0, 0, 1], np.float32)}))
    assert index.tracker.dirty_rows("instances", DirtyBits.PRIMVAR).tolist() == [index.gprim_rows[("/s", (), 0)]]


def test_slots_of_subsets_follow_their_materials():
    index = RenderIndex()
    index.insert(Material("/m/a"), Material("/m/b"), sphere("/s", subset_materials=("/m/a", "")), sphere("/t", subset_materials=("/m/b",)))

    def slots(path: str) -> list[int]:
        row = index.gprim_rows[(path, (), 0)]
        start, count = int(index.instances["subset_start"][row]), int(index.instances["subset_count"][row])
        return index.subsets["material"][start : start + count].tolist()

    assert slots("/s") == [index.material_rows["/m/a"], -1]
    index.insert(sphere("/s", subset_materials=("/m/b", "/m/a", "/m/b")))
    assert slots("/s") == [index.material_rows[path] for path in ("/m/b", "/m/a", "/m/b")]
    assert slots("/t") == [index.material_rows["/m/b"]]


def test_materials_and_bodies_may_come_after_what_names_them():
    index = RenderIndex()
    index.insert(sphere("/s", material="/m", body="/b", subset_materials=("/m",)))
    row = index.gprim_rows[("/s", (), 0)]
    assert (index.instances["material"][row], index.instances["body"][row]) == (-1, -1)
    index.insert(Material("/m"), Body("/b", np.eye(4)))
    assert index.instances["material"][row] == index.material_rows["/m"]
    assert index.instances["body"][row] == 0
    index.remove("/m")
    index.insert(Material("/other"))  # in the row that /m had
    start = int(index.instances["subset_start"][row])
    assert (index.instances["material"][row], index.subsets["material"][start]) == (-1, -1)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("garbage", "a str is no record"),
        (Gprim("/s", GeometryKind.SPHERE, None, np.eye(4)), "transforms are"),
        (Gprim("/s", GeometryKind.MESH, None, at(0, 0, 0)), "MeshGeometry"),
        (Gprim("/s", 77, None, at(0, 0, 0)), "GeometryKind"),
        (sphere("/s", instance_ids=np.zeros(3, np.int32)), "3 instance_ids for 1"),
        (mesh("/s", quad(face_subset=np.array([5], np.int16))), "face_subset holds 5"),
        (mesh("/s", quad(normals=Primvar("faceVarying", np.ones((1, 3), np.float32)))), "normals .* has 1"),
        (mesh("/s", quad(normals=Primvar("vertex", np.ones((1, 3), np.float32), np.array([0, 0, 0, 9], np.int32)))), "holds 9"),
        (Camera("/c", np.eye(4), np.eye(3), clipping_planes=np.zeros((5000, 4))), "5000 clipping planes"),
    ],
)
def test_records_that_lead_nowhere_are_refused_and_change_nothing(record, said):
    index = RenderIndex()
    index.insert(sphere("/kept"))
    with pytest.raises(ArgumentError, match=said):
        index.insert(sphere("/new"), record)
    assert index.prim_paths == ["/kept"]


@pytest.mark.parametrize("wrong", [-1, 4, 1000])
def test_triangles_of_points_that_are_not_there(wrong):
    broken = quad()
    broken.triangle_points = np.array([(0, 1, 2), (0, 2, wrong)], np.int32)
    with pytest.raises(ArgumentError, match=f"triangle_points holds {wrong}, outside 0..3"):
        RenderIndex().insert(mesh("/m", broken))


def test_ids_that_are_not_there():
    index = RenderIndex()
    index.insert(sphere("/P", instancer=Instancer("/I", np.array([7])), instance_ids=np.zeros(1, np.int32)))
    assert index.prim_path(0, 0) == "/P"
    assert index.instance_ids(0, 0) == (7,)
    for look in (index.prim_path, index.instance_ids):
        with pytest.raises(ArgumentError, match="instanceId 1 is out of range"):
            look(0, 1)
        with pytest.raises(ArgumentError, match="primId 9 is out of range"):
            look(9, 0)
