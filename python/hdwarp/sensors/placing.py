"""sensors.placing: poses of views -> mounts of their cameras, on the device."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.errors import ArgumentError
from hdwarp.stage.conventions import convert_orientation
from hdwarp.tables.cameras import CameraColumns
from hdwarp.tables.structs import WorldColumns
from hdwarp.views.rows import ViewSpec, widen_transform


@wp.kernel(enable_backward=False)
def mount_cameras(
    views: wp.array[wp.int32],
    poses: wp.array[wp.transformf],
    turn: wp.quatf,
    specs: wp.array[ViewSpec],
    worlds: WorldColumns,
    body_q: wp.array[wp.transformf],
    cameras: CameraColumns,
):
    """Write the mounts with which the cameras of ``views`` stand at ``poses`` [m], in the frame of each view's world; ``turn``: the USD
    camera's axes in those of the poses."""
    i = wp.tid()
    view = i
    if views.shape[0] > 0:
        view = views[i]
    spec = specs[view]
    pose = widen_transform(poses[i])
    axes = wp.quatd(wp.float64(turn[0]), wp.float64(turn[1]), wp.float64(turn[2]), wp.float64(turn[3]))
    place = wp.transform_get_translation(pose)
    if spec.from_global != 0:
        place = place + worlds.global_offset[spec.world]
    pose = wp.transformd(place, wp.transform_get_rotation(pose) * axes)
    body = cameras.body[spec.camera]
    if body >= 0:
        pose = wp.transform_multiply(wp.transform_inverse(widen_transform(body_q[body])), pose)
    cameras.transform[spec.camera] = pose


def axes_of(convention: str) -> wp.quatf:
    """The USD camera's axes as a turn of those of ``convention``. Raises ArgumentError for one that is not known."""
    return wp.quatf(*convert_orientation(np.array([0.0, 0.0, 0.0, 1.0]), convention, "opengl").tolist())


def pose_array(positions: object, orientations_wxyz: object, count: int, device: wp.Device) -> wp.array:
    """(count,) transformf of positions (count, 3) [m] and quaternions (count, 4). Raises ArgumentError for other shapes and numbers that
    are none."""
    if orientations_wxyz is None:
        raise ArgumentError("set_world_poses: orientations_wxyz is missing; or give one wp.array[transformf] in place of both")
    places, quaternions = np.asarray(positions, np.float64), np.asarray(orientations_wxyz, np.float64)
    if places.shape != (count, 3) or quaternions.shape != (count, 4):
        given = f"positions {places.shape} and orientations {quaternions.shape}"
        raise ArgumentError(f"set_world_poses: {given}; expected ({count}, 3) and ({count}, 4), w first, for {count} views")
    lengths = np.linalg.norm(quaternions, axis=1)
    if not np.isfinite(places).all() or not np.isfinite(lengths).all() or (lengths < 1e-9).any():
        raise ArgumentError("set_world_poses: a position is not finite, or an orientation is no quaternion")
    rows = np.concatenate([places, np.roll(quaternions / lengths[:, None], -1, axis=1)], axis=1)
    return wp.array(rows.astype(np.float32), dtype=wp.transformf, device=device)
