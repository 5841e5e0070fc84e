"""stage.conventions: camera axes as others name them. NumPy only; quaternions are (x, y, z, w).

| name | forward | up | used by |
|---|---|---|---|
| opengl | -Z | +Y | USD, OpenGL, MuJoCo, hdWarp's tables |
| ros | +Z | -Y | ROS optical frames, OpenCV |
| world | +X | +Z | robot bodies |
"""

from __future__ import annotations

import numpy as np

from hdwarp.errors import ArgumentError

# opengl_from_*: columns are the convention's axes in the camera's own.
_OPENGL_FROM = {
    "opengl": np.eye(3),
    "ros": np.diag([1.0, -1.0, -1.0]),
    "world": np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]]),
}
# The same as quaternions.
_OPENGL_FROM_QUATERNION = {
    "opengl": np.array([0.0, 0.0, 0.0, 1.0]),
    "ros": np.array([1.0, 0.0, 0.0, 0.0]),
    "world": np.array([-0.5, 0.5, 0.5, 0.5]),
}
CONVENTIONS = tuple(_OPENGL_FROM)


def opengl_from(convention: str) -> np.ndarray:
    """(3, 3) rotation from a convention's camera axes to USD's. Raises ArgumentError for an unknown name."""
    if convention not in _OPENGL_FROM:
        raise ArgumentError(f"convention is {convention!r}; known: {', '.join(CONVENTIONS)}")
    return _OPENGL_FROM[convention].copy()


def convert_orientation(quaternion: np.ndarray, source: str, target: str) -> np.ndarray:
    """The same camera orientation (..., 4), world from camera axes, told with another convention's axes."""
    opengl_from(source), opengl_from(target)  # names checked
    back = _OPENGL_FROM_QUATERNION[source] * np.array([-1.0, -1.0, -1.0, 1.0])
    return multiply(multiply(np.asarray(quaternion, np.float64), back), _OPENGL_FROM_QUATERNION[target])


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product of quaternions (..., 4): first b, then a."""
    ax, ay, az, aw = np.moveaxis(np.asarray(a, np.float64), -1, 0)
    bx, by, bz, bw = np.moveaxis(np.asarray(b, np.float64), -1, 0)
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def rotation_from_quaternion(quaternion: np.ndarray) -> np.ndarray:
    """(3, 3) rotation of one quaternion, normalised first. Raises ArgumentError if it has no length."""
    q = np.asarray(quaternion, np.float64)
    length = np.linalg.norm(q) if q.shape == (4,) else np.nan
    if not (np.isfinite(length) and length > 1e-9):
        raise ArgumentError(f"orientation is {np.array2string(q)}; it must be four finite numbers, not all 0")
    return rotations_from_unit_quaternions(q / length)


def rotations_from_unit_quaternions(quaternions: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotations of quaternions (..., 4) of length 1."""
    x, y, z, w = np.moveaxis(quaternions, -1, 0)
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotations_from_axes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotations from axes (..., 3) of any length: x keeps its direction, y its half plane, z completes a right-handed frame."""
    x = _unit(x)
    y = _unit(y - x * _dot(x, y))
    return np.stack([x, y, np.cross(x, y)], axis=-1)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(..., 1). Written out, so that one vector rounds as many do."""
    return a[..., 0:1] * b[..., 0:1] + a[..., 1:2] * b[..., 1:2] + a[..., 2:3] * b[..., 2:3]


def _unit(a: np.ndarray) -> np.ndarray:
    return a / np.sqrt(_dot(a, a))
