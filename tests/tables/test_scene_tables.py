"""Device tables follow the render index: appended, reused, reclaimed; exact far from the origin; posed by bodies."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Sdf

from hdwarp.delegate.aov import array_type
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.delegate.render_param import RenderParam
from hdwarp.delegate.render_pass import RenderPass
from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import Body, Camera, GeometryKind, Gprim, MeshGeometry, StageColumns
from hdwarp.tables.meshes import mesh_centre, mesh_scale
from hdwarp.tables.scene_tables import SceneTables
from hdwarp.views.conform import image_spec
from hdwarp.views.rows import View, ViewTable


def wall(size: float = 1.0, centre=(0.0, 0.0, 0.0)) -> MeshGeometry:
    """A square in its xy plane."""
    half = size / 2
    points = np.array([(-half, -half, 0), (half, -half, 0), (half, half, 0), (-half, half, 0)]) + centre
    corners = np.array([(0, 1, 2), (0, 2, 3)], np.int32)
    return MeshGeometry(points.astype(np.float32), corners, corners, np.zeros(2, np.int32), 1, 4)


def at(*place) -> np.ndarray:
    transform = np.eye(4)[None].copy()
    transform[0, :3, 3] = place
    return transform


def camera(place=(0.0, 0.0, 0.0), **extra) -> Camera:
    pose = np.eye(4)
    pose[:3, 3] = place
    values = {"focal_length": 0.05, "aperture": (0.064, 0.048), "clipping_range": (0.01, 1e9)} | extra
    return Camera("/camera", pose, np.eye(3), **values)


def render(columns: StageColumns, device, aovs=("distance_to_image_plane", "primId"), size=(64, 48), index=None, tables=None, body_q=None):
    index, tables = index or RenderIndex(), tables or SceneTables(device)
    index.sync(columns)
    counts = tables.sync(index)
    if body_q is not None:
        body_q = wp.array(body_q, dtype=wp.transformf, device=device)
        tables.pose(body_q)
    else:
        body_q = wp.array(tables.bodies.pose.reshape(-1, 7), dtype=wp.transformf, device=device)
    views = ViewTable([View(0, 0, image_spec(size))], scene_unit=1.0, radial=False, device=tables.device)
    out = {name: wp.zeros((1, size[1], size[0]), dtype=array_type(tables, name), device=device) for name in aovs}
    RenderPass(RenderParam(tables)).execute(views, out, body_q=body_q)
    return {name: array.numpy()[0] for name, array in out.items()}, counts


def stage(gprims, cam=None, bodies=()) -> StageColumns:
    return StageColumns(1.0, "Y", None, 24.0, gprims=list(gprims), cameras=[cam or camera()], bodies=list(bodies))


def mesh(path: str, geometry: MeshGeometry, *place, **extra) -> Gprim:
    return Gprim(path, GeometryKind.MESH, geometry, at(*place), **extra)


def test_a_wall_at_four_metres(device):
    planes, _ = render(stage([mesh("/wall", wall(100.0), 0, 0, -4)]), device)
    np.testing.assert_allclose(planes["distance_to_image_plane"], 4.0, rtol=0, atol=1e-6)


@pytest.mark.parametrize("place", [(1e7, -1e7, 1e7), (12345.678, 0.0, -98765.4321), (0.0, 1e10, 0.0)])
def test_far_from_the_origin_by_transform(place, device):
    """Camera and wall are placed by float64 transforms; 10 m between them stay 10 m."""
    planes, _ = render(stage([mesh("/wall", wall(100.0), place[0], place[1], place[2] - 10.0)], camera(place)), device)
    np.testing.assert_allclose(planes["distance_to_image_plane"], 10.0, rtol=0, atol=1e-5)


def test_far_from_the_origin_by_points(device):
    """The mesh's own points lie at 2**23: whole numbers are exact there, and nothing more is lost."""
    far = 2.0**23
    planes, _ = render(stage([mesh("/wall", wall(100.0, (far, 0, -16.0)), 0, 0, 0)], camera((far, 0.3, 0.0))), device)
    np.testing.assert_allclose(planes["distance_to_image_plane"], 16.0, rtol=0, atol=1e-5)


def test_a_far_scene_and_one_near_the_origin_in_one_stage(device):
    """Instances keep float64 places: a camera 5 km off sees as exactly as one at home."""
    shared = wall(100.0)
    gprims = [mesh("/far", shared, 5000.1, 0, -4.0), mesh("/near", shared, 0, 0, -4)]
    planes, _ = render(stage(gprims, camera((5000.1, 0, 0))), device)
    np.testing.assert_allclose(planes["distance_to_image_plane"], 4.0, rtol=0, atol=1e-6)
    assert set(planes["primId"].ravel().tolist()) == {0}


@pytest.mark.parametrize("seed", range(10))
def test_taking_the_centre_off_a_mesh_is_exact(seed):
    rng = np.random.default_rng(seed)
    offset = rng.normal(size=3) * 10.0 ** rng.uniform(0, 7)
    points = (rng.uniform(-1, 1, (100, 3)) * 10.0 ** rng.uniform(-2, 1) + offset).astype(np.float32)
    centre = mesh_centre(points)
    moved = points.astype(np.float64) - centre
    assert np.array_equal(moved.astype(np.float32).astype(np.float64), moved)


@pytest.mark.parametrize(("size", "scaled"), [(1.0, False), (1e-6, False), (1e6, False), (1e-15, True), (1e20, True), (0.0, False)])
def test_points_of_uncommon_size_are_scaled_without_loss(size, scaled):
    """By a power of two near their size; a few points far beyond do not count."""
    rng = np.random.default_rng(1)
    points = (rng.uniform(-1, 1, (100, 3)) * size).astype(np.float32)
    scale = mesh_scale(points, np.zeros(3))
    assert (scale != 1.0) == scaled
    assert np.log2(scale) % 1.0 == 0.0
    assert np.array_equal((points.astype(np.float64) / scale).astype(np.float32) * scale, points.astype(np.float64))
    assert not scaled or 1e-9 < size / scale < 1e9
    points[:5] = 3e38
    assert size == 0.0 or abs(np.log2(size / mesh_scale(points, np.zeros(3)))) < 35
    assert mesh_scale(np.zeros((0, 3), np.float32), np.zeros(3)) == 1.0


def test_nothing_changed_nothing_done(device):
    index, tables = RenderIndex(), SceneTables(device)
    columns = stage([mesh("/a", wall(), 0, 0, -4)])
    render(columns, device, index=index, tables=tables)
    _, counts = render(columns, device, index=index, tables=tables)
    assert (counts.rows_uploaded, counts.blas_built, counts.tlas_built) == (0, 0, 0)


def test_removed_meshes_are_reclaimed(device):
    """A hundred replacements of one mesh of two leave the arrays a few meshes long."""
    index, tables = RenderIndex(), SceneTables(device)
    for i in range(100):
        columns = stage([mesh("/a", wall(1.0 + i), 0, 0, -4), mesh("/b", wall(0.5), 0, 0, -8)])
        planes, _ = render(columns, device, index=index, tables=tables)
    assert tables.meshes.columns.leaf_count.shape[0] <= 16
    fresh, _ = render(columns, device)
    for name in planes:
        assert np.array_equal(planes[name], fresh[name])


def test_memory_of_meshes_is_let_go_with_them(device):
    def grid(size: float) -> MeshGeometry:
        points = np.random.default_rng(0).uniform(-size, size, (30_000, 3)).astype(np.float32)
        corners = np.arange(30_000, dtype=np.int32).reshape(-1, 3)
        return MeshGeometry(points, corners, corners, np.arange(10_000, dtype=np.int32), 10_000, 30_000)

    index, tables = RenderIndex(), SceneTables(device)
    few = stage([mesh("/w", wall(), 0, 0, -4)])
    alone, _ = render(few, device, index=index, tables=tables)
    before = tables.device_bytes
    render(
        stage([mesh("/w", wall(), 0, 0, -4), *(mesh(f"/m{i}", grid(1.0 + i), i, 0, -9) for i in range(5))]),
        device,
        index=index,
        tables=tables,
    )
    assert tables.device_bytes > before + 3_000_000
    again, _ = render(few, device, index=index, tables=tables)
    assert tables.device_bytes < before + 100_000
    for name in alone:
        assert np.array_equal(alone[name], again[name])


def test_a_mesh_without_triangles_and_an_empty_scene_draw_nothing(device):
    empty = MeshGeometry(*(np.zeros((0, 3), t) for t in (np.float32, np.int32, np.int32)), np.zeros(0, np.int32), 0, 0)
    for columns in (stage([mesh("/m", empty, 0, 0, -4)]), stage([])):
        planes, _ = render(columns, device)
        assert np.isinf(planes["distance_to_image_plane"]).all() and (planes["primId"] == -1).all()


def test_bodies_move_what_they_carry(device):
    """A wall on a body at 4 m: the body moved 2 m back puts the wall at 6 m; a wall without body stays."""
    body = Body("/robot", at(0, 0, -4)[0])
    columns = stage([mesh("/robot/wall", wall(100.0), 0, 0, -4, body="/robot"), mesh("/still", wall(100.0), 0, 0, -9)], bodies=[body])
    planes, _ = render(columns, device, body_q=[[0, 0, -6, 0, 0, 0, 1]])
    np.testing.assert_allclose(planes["distance_to_image_plane"], 6.0, rtol=0, atol=1e-6)
    planes, _ = render(columns, device, body_q=[[0, 0, -60, 0, 0, 0, 1]])
    np.testing.assert_allclose(planes["distance_to_image_plane"], 9.0, rtol=0, atol=1e-6)


def test_triangle_points_by_path_and_id(device):
    """Paths of nothing are refused wherever they sort: before, between and after those that are drawn, above and below them."""
    index, tables = RenderIndex(), SceneTables(device)
    drawn = [mesh("/b", wall(), 0, 0, -4), Gprim("/c", GeometryKind.SPHERE, None, at(0, 0, -9)), mesh("/d/m", wall(9.0), 0, 0, -20)]
    render(stage(drawn), device, index=index, tables=tables)
    for right in ("/b", "/d/m", 0, 2, Sdf.Path("/b"), np.int32(2)):
        assert tables.meshes.triangle_points(right).tolist() == [[0, 1, 2], [0, 2, 3]]
    for wrong in ("", "/", "/a", "/b/x", "/c", "/d", "/d/", "/d/m/x", "/nothing", 1, 3, 7, -1, Sdf.Path("/c"), None):
        with pytest.raises(ArgumentError, match="not a mesh"):
            tables.meshes.triangle_points(wrong)
        assert index.mesh_row(wrong) == -1
