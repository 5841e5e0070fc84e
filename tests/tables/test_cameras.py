"""Camera rows: what kernels wrote stays unless the stage says something new about that very column."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.stage.columns import Camera
from hdwarp.tables.bodies import BodyTable
from hdwarp.tables.cameras import CameraTable
from hdwarp.tables.worlds import WorldTable


def camera(path: str, x: float = 0.0, **extra) -> Camera:
    pose = np.eye(4)
    pose[0, 3] = x
    return Camera(path, pose, np.eye(3), **({"focal_length": 0.05, "aperture": (0.02, 0.02), "clipping_range": (0.1, 10.0)} | extra))


def sync(table: CameraTable, *cameras: Camera) -> None:
    table.sync(cameras, WorldTable(), BodyTable())


def test_stage_edits_win_only_for_what_they_edit(device):
    table = CameraTable(wp.get_device(device))
    sync(table, camera("/a"), camera("/b"))
    version = table.version
    table.focal_length.assign(np.array([0.1, 0.2], np.float32))  # as a kernel would
    table.clipping_range.assign(np.array([(1, 2), (3, 4)], np.float32))
    sync(table, camera("/a", x=5.0), camera("/b", focal_length=0.07))
    assert table.transform.numpy()[:, 0].tolist() == [5.0, 0.0]
    np.testing.assert_allclose(table.focal_length.numpy(), [0.1, 0.07], rtol=1e-7)
    assert table.clipping_range.numpy().tolist() == [[1, 2], [3, 4]]
    assert table.version == version


def test_what_was_written_goes_with_its_camera(device):
    table = CameraTable(wp.get_device(device))
    sync(table, camera("/b"))
    table.focal_length.assign(np.array([0.1], np.float32))
    sync(table, camera("/b"), camera("/a", focal_length=0.03))
    assert table.label == ["/a", "/b"] and table.version == 2
    np.testing.assert_allclose(table.focal_length.numpy(), [0.03, 0.1], rtol=1e-7)
    sync(table, camera("/b", focal_length=0.07))  # the stage says something else meanwhile
    np.testing.assert_allclose(table.focal_length.numpy(), [0.07], rtol=1e-7)
