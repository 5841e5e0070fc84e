"""The second pose: which rows differ from now, where the device has them, bounds around both poses, nothing where nobody asks."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.delegate.previous_rows import PROJECTION, PreviousRows
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.stage.columns import Body, Camera, GeometryKind, Gprim, Instancer, MeshGeometry, StageChanges, gprim_keys
from hdwarp.tables.scene_tables import SceneTables


def wall(height=0.0) -> MeshGeometry:
    """A unit square, its upper edge lifted by ``height``."""
    points = np.array([(0, 0, 0), (1, 0, 0), (1, 1 + height, 0), (0, 1 + height, 0)], np.float32)
    corners = np.array([(0, 1, 2), (0, 2, 3)], np.int32)
    return MeshGeometry(points, corners, corners, np.zeros(2, np.int32), 1, 4)


def at(*places, turn=0.0) -> np.ndarray:
    transforms = np.tile(np.eye(4), (len(places), 1, 1))
    transforms[:, :2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    transforms[:, :3, 3] = places
    return transforms


def changes(*gprims, **options) -> StageChanges:
    return StageChanges(gprims=dict(gprim_keys(gprims)), **options)


def camera(**extra) -> Camera:
    return Camera("/camera", np.eye(4), np.eye(3), **({"focal_length": 0.05, "aperture": (0.064, 0.048)} | extra))


@pytest.fixture
def world(device):
    """(index, tables) with a mesh, a ball and a camera, kept from the start."""
    index, tables = RenderIndex(), SceneTables(device)
    tables.keep_previous()
    index.apply(
        changes(Gprim("/wall", GeometryKind.MESH, wall(), at((0, 0, -5))), Gprim("/ball", GeometryKind.SPHERE, None, at((3, 0, -5))))
    )
    index.insert(camera())
    tables.sync(index)
    return index, tables


def frame(index, tables, *gprims, **options):
    index.previous.advance()
    index.apply(changes(*gprims, **options))
    return tables.sync(index)


def pose(columns, row):
    return columns.world_from_object.numpy()[row], columns.translation.numpy()[row]


def test_rows_hold_the_place_of_the_frame_before(world):
    index, tables = world
    wall_row, ball_row = (index.gprim_rows[key] for key in sorted(index.gprims, reverse=True))
    frame(index, tables, Gprim("/ball", GeometryKind.SPHERE, None, at((4, 1, -6), turn=0.5)))
    now, then = tables.instances.columns(), tables.previous.columns
    assert pose(now, ball_row)[1].tolist() == [4, 1, -6] and pose(then, ball_row)[1].tolist() == [3, 0, -5]
    assert np.array_equal(pose(then, ball_row)[0], np.eye(3, dtype=np.float32))
    for a, b in zip(pose(now, wall_row), pose(then, wall_row), strict=True):
        assert np.array_equal(a, b)
    version = tables.previous_version
    index.previous.advance()
    tables.sync(index)  # nothing has changed: all is at rest, which is a change of what is drawn
    assert pose(tables.previous.columns, ball_row)[1].tolist() == [4, 1, -6] and tables.previous_version == version + 1
    index.previous.advance()
    tables.sync(index)
    assert tables.previous_version == version + 1


def test_points_of_the_frame_before_only_where_they_differ(world):
    index, tables = world
    row = index.gprim_rows[next(key for key in index.gprims if key[0] == "/wall")]
    assert (tables.previous.columns.point_start.numpy() == -1).all()
    frame(index, tables, Gprim("/wall", GeometryKind.MESH, wall(0.5), at((0, 0, -5))))
    columns = tables.previous.columns
    start = columns.point_start.numpy()[row]
    assert start >= 0 and np.array_equal(columns.points.numpy()[start : start + 4], wall().points)
    frame(index, tables, Gprim("/wall", GeometryKind.MESH, wall(0.5), at((1, 0, -5))))  # read anew, the same points
    assert tables.previous.columns.point_start.numpy()[row] == -1


def test_bodies_that_rest_keep_the_bits_of_now(device):
    index, tables = RenderIndex(), SceneTables(device)
    tables.keep_previous()
    index.insert(Body("/body", np.eye(4)), Gprim("/ball", GeometryKind.SPHERE, None, at((1, 0, 0)), body="/body"))
    tables.sync(index)
    here = wp.array([(0.3, 0.2, 0.1, *np.array([0.1, 0.2, 0.3, 0.9]) / np.sqrt(0.95))], dtype=wp.transformf, device=device)
    there = wp.array([(0, 0, 5, 0, 0, 0, 1)], dtype=wp.transformf, device=device)
    row = index.gprim_rows[next(iter(index.gprims))]
    tables.pose(here)
    tables.pose_previous(here, there)
    assert pose(tables.previous.columns, row)[1].tolist() == [1, 0, 5]
    for previous in (wp.clone(here), None):
        tables.pose_previous(here, there)
        tables.pose_previous(here, previous)
        for a, b in zip(pose(tables.instances.columns(), row), pose(tables.previous.columns, row), strict=True):
            assert np.array_equal(a, b)
    tables.unpose()
    tables.pose_previous(None, None)
    assert pose(tables.previous.columns, row)[1].tolist() == [1, 0, 0]


def test_bounds_around_both_poses(world):
    """Each box holds the points of both poses; rows that rest keep theirs."""
    index, tables = world
    frame(
        index,
        tables,
        Gprim("/wall", GeometryKind.MESH, wall(-0.5), at((2, 0, -5))),
        Gprim("/cube", GeometryKind.CUBE, None, at((9, 0, 0))),
        Gprim("/field", GeometryKind.PLANE, None, at((0, 0, 0)), shape=(3.0e38, 3.0e38, 0.0, 0.0)),
    )
    boxes = [wp.clone(array) for array in tables.instances.bounds]
    tables.previous.sweep(tables.instances, *boxes)
    lower, upper = (array.numpy() for array in boxes)
    rows = {key[0]: index.gprim_rows[key] for key in index.gprims}
    np.testing.assert_allclose(lower[rows["/wall"]], (0, 0, -5), atol=1e-5)
    np.testing.assert_allclose(upper[rows["/wall"]], (3, 1, -5), atol=1e-5)
    for name in ("/ball", "/cube", "/field"):  # at rest, or new
        for swept, own in zip((lower, upper), tables.instances.bounds, strict=True):
            assert np.array_equal(swept[rows[name]], own.numpy()[rows[name]]), name
    frame(index, tables, Gprim("/ball", GeometryKind.SPHERE, None, at((3, 2, -5)) * np.array([2, 2, 2, 1])[:, None]))
    boxes = [wp.clone(array) for array in tables.instances.bounds]
    tables.previous.sweep(tables.instances, *boxes)
    lower, upper = (array.numpy()[rows["/ball"]] for array in boxes)
    np.testing.assert_allclose((lower, upper), ((2, -1, -12), (8, 6, -4)), atol=1e-4)
    assert lower[2] <= -12 and upper[2] >= -4


def test_what_a_frame_changes_twice_was_what_it_was_first():
    index = RenderIndex()
    index.previous = PreviousRows()
    index.apply(changes(Gprim("/ball", GeometryKind.SPHERE, None, at((1, 0, 0)))))
    assert len(index.previous.moved(index).rows) == 0  # new
    index.apply(changes(Gprim("/ball", GeometryKind.SPHERE, None, at((2, 0, 0)))))
    assert len(index.previous.moved(index).rows) == 0  # still new in this frame
    index.previous.advance()
    for x in (3, 4):
        index.apply(changes(Gprim("/ball", GeometryKind.SPHERE, None, at((x, 0, 0)))))
    moved = index.previous.moved(index)
    assert moved.rows.tolist() == [index.gprim_rows[next(iter(index.gprims))]] and moved.transforms[0, :, 3].tolist() == [2, 0, 0]
    index.remove("/ball")
    assert len(index.previous.moved(index).rows) == 0
    index.apply(changes(Gprim("/ball", GeometryKind.SPHERE, None, at((5, 0, 0)))))
    assert index.previous.moved(index).transforms[0, :, 3].tolist() == [2, 0, 0]
    index.apply(changes(Gprim("/ball", GeometryKind.CUBE, None, at((5, 0, 0)))))
    assert len(index.previous.moved(index).rows) == 0  # another thing under the same name


def test_nested_instances_are_known_by_all_their_ids():
    """Two instancers in one another: (outer id, inner id) names an instance; the outer one's order changes."""

    def drawn(outer_ids, inner_ids, numbers):
        outer = Instancer("/outer", np.array(outer_ids))
        inner = Instancer("/outer/inner", np.array(inner_ids), outer)
        ids = np.arange(len(outer_ids) * len(inner_ids), dtype=np.int32)
        return Gprim("/ball", GeometryKind.SPHERE, None, at(*[(n, 0, 0) for n in numbers]), instancer=inner, instance_ids=ids)

    index = RenderIndex()
    index.previous = PreviousRows()
    index.apply(changes(drawn([5, 6], [1, 2], [51, 52, 61, 62])))
    index.previous.advance()
    index.apply(changes(drawn([6, 5, 7], [2, 1], [0, 0, 0, 0, 0, 0])))
    moved = index.previous.moved(index)
    start = index.gprim_rows[next(iter(index.gprims))]
    assert dict(zip((moved.rows - start).tolist(), moved.transforms[:, 0, 3].tolist(), strict=True)) == {0: 62, 1: 61, 2: 52, 3: 51}


def test_a_camera_that_sees_the_same_has_not_changed():
    index = RenderIndex()
    index.previous = PreviousRows()
    index.insert(camera())
    index.previous.advance()
    index.insert(camera(exposure_scale=2.0))
    assert index.previous.camera(camera())[1] == 0
    index.insert(camera(focal_length=0.07))
    before, bits = index.previous.camera(camera(focal_length=0.07))
    assert before.focal_length == 0.05 and PROJECTION[3] == "focal_length" and bits == 8
