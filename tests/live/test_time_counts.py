"""Work follows time: of many prims only those are read again that differ, and only what differs of them is uploaded and built."""

from __future__ import annotations

import pytest
from tests.live import moving
from tests.live.test_live_stage import check

from hdwarp.scene import Scene, SyncCounts

STILL = 100
NOTHING = SyncCounts()
# What going to times 5 and 9 comes to, counts that are not named being 0. A mesh whose points move is built once more, to be refitted.
BUILT, REFITTED = {"meshes_moved": 1, "rows_uploaded": 1, "blas_built": 1}, {"meshes_moved": 1, "rows_uploaded": 1, "blas_refitted": 1}
REPLACED = {"meshes_inserted": 1, "meshes_removed": 1, "instances_changed": 1, "rows_uploaded": 1, "blas_built": 1}
MOVED = {"instances_changed": 1, "rows_uploaded": 1}
FOUR = {"instances_changed": 4, "rows_uploaded": 4}
EXPECTED = {
    "transform": ({"prims_read": 2} | MOVED, {"prims_read": 2} | MOVED),
    "rotation": ({"prims_read": 1} | MOVED, {"prims_read": 1} | MOVED),
    "points": ({"prims_read": 1} | BUILT, {"prims_read": 1} | REFITTED),
    "smooth_points": ({"prims_read": 1} | BUILT, {"prims_read": 1} | REFITTED),
    "topology": ({"prims_read": 1} | REPLACED, {"prims_read": 1} | REPLACED),
    "visibility": (
        {"prims_read": 1, "instances_removed": 1, "rows_uploaded": 1},
        {"prims_read": 1, "instances_inserted": 1, "rows_uploaded": 1},
    ),
    "camera": ({"prims_read": 1, "cameras_changed": 1}, {"prims_read": 1, "cameras_changed": 1}),
    "light": ({"prims_read": 1, "lights_changed": 1}, {"prims_read": 1, "lights_changed": 1}),
    "material": ({"materials_changed": 1}, {"materials_changed": 1}),
    "constant_primvar": ({"prims_read": 1} | MOVED, {"prims_read": 1} | MOVED),
    "vertex_primvar": ({"prims_read": 1, "meshes_moved": 1, "rows_uploaded": 1}, {"prims_read": 1, "meshes_moved": 1, "rows_uploaded": 1}),
    "normals": ({"prims_read": 1, "meshes_moved": 1, "rows_uploaded": 1}, {"prims_read": 1, "meshes_moved": 1, "rows_uploaded": 1}),
    "instances": ({"prims_read": 3} | FOUR, {"prims_read": 3} | FOUR),
    "instance_rates": ({"prims_read": 3} | FOUR, {"prims_read": 3} | FOUR),
    "joints": ({"prims_read": 1} | BUILT, {"prims_read": 1} | REFITTED),
    "blend_shapes": ({"prims_read": 2} | BUILT, {"prims_read": 2} | REFITTED),  # the mesh, and the BlendShape below it
}
TREES = ("tlas_built", "tlas_refitted")  # rows whose boxes are new: another test's


def counts(done: SyncCounts) -> dict[str, int]:
    return {name: getattr(done, name) for name in done.__dataclass_fields__ if getattr(done, name) and name not in TREES}


@pytest.mark.parametrize("mover", EXPECTED)
def test_work_follows_what_moves(mover, device):
    stage = moving.new_stage(STILL)
    getattr(moving, mover)(stage)
    with Scene(stage, device=device, time=1) as scene:
        for time, expected in zip((5, 9), EXPECTED[mover], strict=True):
            assert counts(check(scene, time)) == expected
        assert scene.sync(9) == NOTHING
        held = check(scene, 500)  # read again, and found to be the same
        if mover != "instance_rates":
            assert counts(held) in ({}, {"prims_read": EXPECTED[mover][1].get("prims_read")}), held


def test_nothing_moves(device):
    """Nothing is read of a stage without animation, wherever time goes; Default is a time at which everything may differ."""
    with Scene(moving.new_stage(STILL), device=device, time=1) as scene:
        for time in (7, -3, 1e6, 0.25):
            assert scene.sync(time) == NOTHING
            assert scene.time == time
