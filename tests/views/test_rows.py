"""View rows on the device against the float64 twins, which are tested against Gf.Camera."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.stage.columns import Body, Camera
from hdwarp.tables.bodies import BodyTable
from hdwarp.tables.cameras import CameraTable
from hdwarp.tables.quaternions import quaternions_from_matrices
from hdwarp.tables.structs import WorldColumns
from hdwarp.tables.worlds import WorldTable
from hdwarp.views import orthographic, pinhole
from hdwarp.views.conform import CONFORM_POLICIES, image_spec
from hdwarp.views.rows import View, ViewTable


def random_rotation(rng) -> np.ndarray:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    return q * np.linalg.det(q)


def random_camera(rng, i: int, **extra) -> Camera:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = random_rotation(rng), rng.normal(size=3) * 10
    return Camera(
        f"/camera{i}",
        pose,
        np.eye(3),
        projection="orthographic" if i % 2 else "perspective",
        focal_length=rng.uniform(0.01, 0.1),
        aperture=tuple(rng.uniform(0.01, 0.05, 2)) if i % 3 else (0.0, rng.uniform(0.01, 0.05)),
        aperture_offset=tuple(rng.normal(size=2) * 0.003),
        clipping_range=(0.1, 50.0),
        **extra,
    )


def worlds(device) -> WorldColumns:
    columns = WorldColumns()
    columns.root = wp.zeros(1, dtype=wp.int32, device=device)
    columns.global_root = wp.full(1, -1, dtype=wp.int32, device=device)
    columns.global_offset = wp.zeros(1, dtype=wp.vec3d, device=device)
    columns.count = 1
    return columns


@pytest.mark.parametrize("policy", CONFORM_POLICIES)
def test_rows_are_the_twins_coefficients(policy, device):
    rng = np.random.default_rng(3)
    device = wp.get_device(device)
    cameras = [random_camera(rng, i) for i in range(8)]
    table = CameraTable(device)
    table.sync(cameras, WorldTable(), BodyTable())
    image = image_spec((64, 48), 1.5, policy, (0.1, -0.2, 0.9, 1.1))
    views = ViewTable([View(row, 0, image) for row in range(8)], scene_unit=100.0, radial=False, device=device)
    views.update(table.columns, worlds(device), wp.zeros(0, dtype=wp.transformf, device=device))
    rows = views.rows.numpy()
    for row, camera in enumerate(cameras):
        twin = orthographic if camera.projection == "orthographic" else pinhole
        expected = twin.ray_coefficients(camera, image)
        for name in expected._fields:
            np.testing.assert_allclose(rows[name][row], getattr(expected, name), rtol=0, atol=3e-7, err_msg=name)
    assert set(rows["scene_unit"].tolist()) == {100.0}


def test_tiles_count_from_the_full_image_also_in_overscan(device):
    """Rows -5..51 of a 48-row image: tile rows -1..6, columns 6..57: tiles 0..3 of 16."""
    device = wp.get_device(device)
    table = CameraTable(device)
    table.sync([random_camera(np.random.default_rng(0), 2)], WorldTable(), BodyTable())
    image = image_spec((64, 48), data_window_ndc=(0.1, -0.1, 0.9, 1.1))
    views = ViewTable([View(0, 0, image)] * 2, scene_unit=1.0, radial=False, device=device)
    views.update(table.columns, worlds(device), wp.zeros(0, dtype=wp.transformf, device=device))
    row = views.rows.numpy()[1]
    assert (row["x0"], row["y0"], row["width"], row["height"]) == (image.x0, image.y0, image.width, image.height)
    assert (row["tile_x0"], row["tile_y0"]) == (image.x0 // 16, image.y0 // 8)
    assert row["tile_y0"] == -1
    assert row["first_tile"] == row["tiles_x"] * row["tiles_y"] == views.tile_count // 2
    assert row["record"] == views.record_size // 2 == row["first_tile"] * 128
    assert row["output"] == image.width * image.height


def test_a_camera_rides_on_its_body(device):
    """World pose = body pose x mount; the body here is turned by 90 degrees about z and moved."""
    device = wp.get_device(device)
    rng = np.random.default_rng(5)
    camera = random_camera(rng, 2)
    body = np.eye(4)
    body[:3, 3] = (1.0, 2.0, 3.0)
    index, bodies, table = RenderIndex(), BodyTable(), CameraTable(device)
    index.insert(Body("/body", body))
    bodies.sync(index, WorldTable())
    table.sync([replace(camera, body="/body")], WorldTable(), bodies)
    views = ViewTable([View(0, 0, image_spec((8, 8)))], scene_unit=1.0, radial=False, device=device)
    half = np.sqrt(0.5)
    moved = wp.array([[5.0, 0.0, 0.0, 0.0, 0.0, half, half]], dtype=wp.transformf, device=device)
    views.update(table.columns, worlds(device), moved)
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    expected = turn @ (camera.world_from_camera[:3, 3] - body[:3, 3]) + (5.0, 0.0, 0.0)
    np.testing.assert_allclose(views.rows.numpy()["origin"][0], expected, atol=1e-6)
    np.testing.assert_allclose(views.rows.numpy()["right"][0], turn @ camera.world_from_camera[:3, 0], atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_quaternions_turn_as_their_matrix_does(seed):
    rotation = random_rotation(np.random.default_rng(seed))
    if seed < 4:  # half turns, where the scalar part is zero
        rotation = np.diag([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)][seed]).astype(float)
    x, y, z, w = quaternions_from_matrices(rotation[None])[0]
    back = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    np.testing.assert_allclose(back, rotation, atol=1e-12)


@pytest.mark.parametrize("window", [(0.0, 0.0, 1.0, 1.0), (0.1, -0.2, 0.9, 1.1), (0.25, 0.3, 0.5, 0.4)])
def test_bands_are_the_tile_rows_of_all_views(window, device):
    """A pixel row of a band lies in that band's tiles: (y0 + row) // 8 of the full image is the tile row."""
    image = image_spec((64, 48), 1.0, CONFORM_POLICIES[0], window)
    views = ViewTable([View(0, 0, image)] * 3, scene_unit=1.0, radial=False, device=wp.get_device(device))
    assert views.bands[0] == (0, 0)
    assert views.bands[-1] == (views.tile_count, 3 * image.height)
    columns = (image.x0 + image.width - 1) // 16 - image.x0 // 16 + 1
    per_view = views.tile_count // 3
    for (tiles, lines), (next_tiles, next_lines) in itertools.pairwise(views.bands):
        assert next_tiles - tiles == columns
        assert next_lines > lines
        view, tile_row = tiles // per_view, tiles % per_view // columns
        for line in range(lines, next_lines):
            assert line // image.height == view
            assert (image.y0 + line % image.height) // 8 - image.y0 // 8 == tile_row
