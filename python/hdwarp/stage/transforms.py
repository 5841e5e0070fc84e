"""stage.transforms: Gf row matrices -> column-vector float64 NumPy, scene units -> metres. Knows matrices, no prims."""

from __future__ import annotations

import numpy as np
from pxr import Gf, Vt

from hdwarp.stage.conventions import rotations_from_axes

# What float32 tables and kernels draw as it is, in metres: squares of these still have room. Light years and nanometres are well inside.
SMALLEST, LARGEST = 1e-18, 1e18
RANGE = f"from {SMALLEST:g} to {LARGEST:g} m"


def columns_from_gf(matrices: list[Gf.Matrix4d]) -> np.ndarray:
    """(n, 4, 4) column-vector matrices. Gf multiplies rows, so each is transposed; one copy for the whole list."""
    if not matrices:
        return np.zeros((0, 4, 4))
    return np.asarray(Vt.Matrix4dArray(matrices)).transpose(0, 2, 1).copy()


def in_metres(world_from_object: np.ndarray, metres_per_unit: float) -> np.ndarray:
    """Scale the target side: object units stay as authored, world units become metres. The very array where both are the same."""
    if metres_per_unit == 1.0:
        return world_from_object
    scaled = world_from_object.copy()
    scaled[..., :3, :] *= metres_per_unit
    return scaled


def usable(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(finite, invertible) flags of ``(n, 4, 4)`` matrices. Invertible looks at the directions of the axes, not at their lengths,
    so tiny or very uneven scales pass and only collapsed ones fail."""
    finite = np.isfinite(matrices).reshape(*matrices.shape[:-2], 16).all(axis=-1)
    linear = matrices[..., :3, :3] if finite.all() else np.where(finite[..., None, None], matrices, 0.0)[..., :3, :3]
    longest = _longest(linear)  # lengths by way of the longest component: squares neither overflow nor vanish
    unit = linear / np.where(longest > 0.0, longest, 1.0)[..., None, :]
    x, y, z = unit[..., 0, :], unit[..., 1, :], unit[..., 2, :]
    unit /= np.sqrt(np.maximum(x * x + y * y + z * z, 1.0))[..., None, :]
    volume = np.abs(np.einsum("...i,...i->...", unit[..., 0], np.cross(unit[..., 1], unit[..., 2])))
    shortest = np.minimum(np.minimum(longest[..., 0], longest[..., 1]), longest[..., 2])
    return finite, finite & (shortest > 0.0) & (volume > 1e-9)


def _longest(linear: np.ndarray) -> np.ndarray:
    """(..., 3): the largest component of each column of (..., 3, 3), whatever its sign. A row at a time: short axes are slow to reduce."""
    size = np.abs(linear)
    return np.maximum(np.maximum(size[..., 0, :], size[..., 1, :]), size[..., 2, :])


def in_range(world_from_object: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Which of these ``(n, 4, 4)`` matrices [m] place what reaches ``radius`` (one or ``(n,)``, its own units) neither too far off, nor
    too large or too small to be drawn. Those with NaN do not."""
    longest, place = _longest(world_from_object[..., :3, :3]), np.abs(world_from_object[..., :3, 3])
    largest, far = (np.maximum(np.maximum(a[..., 0], a[..., 1]), a[..., 2]) for a in (longest, place))
    smallest = np.minimum(np.minimum(longest[..., 0], longest[..., 1]), longest[..., 2])
    size = largest * radius
    reach = size + far
    sound = (smallest >= SMALLEST) & (largest <= LARGEST) & (reach <= LARGEST)
    return sound & ((size >= SMALLEST) | (radius == 0.0))


def rigid(world_from_object: np.ndarray) -> np.ndarray:
    """The same places and headings ``(..., 4, 4)`` without scale, shear and mirroring: x keeps its direction, y its half plane, z
    completes a right-handed frame. Without shear this is the rotation as authored."""
    result = np.zeros_like(world_from_object)
    result[..., :3, :3] = rotations_from_axes(world_from_object[..., :3, 0], world_from_object[..., :3, 1])
    result[..., :3, 3] = world_from_object[..., :3, 3]
    result[..., 3, 3] = 1.0
    return result
