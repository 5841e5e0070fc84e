"""views.rays: what the NumPy twins of the lenses share: affine ray coefficients of a view. float64, metres, no device."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from hdwarp.stage.columns import Camera
    from hdwarp.stage.spec import ImageSpec


class RayCoefficients(NamedTuple):
    """What tables.structs.ViewRow holds: the ray x pixels right of and y below the centre of pixel (0, 0), the full image's top left, is
    origin + origin_dx * x + origin_dy * y, and the same for direction. Its parameter is depth [m]: forward . direction = 1."""

    origin: np.ndarray
    origin_dx: np.ndarray
    origin_dy: np.ndarray
    direction: np.ndarray
    direction_dx: np.ndarray
    direction_dy: np.ndarray
    forward: np.ndarray
    right: np.ndarray
    up: np.ndarray
    back: np.ndarray

    def of_window(self, image: ImageSpec) -> np.ndarray:
        """(6, 3): origin, origin_dx, origin_dy, direction, direction_dx, direction_dy, counted from the data window's first pixel."""
        x, y = image.x0, image.y0
        return np.stack(
            [
                self.origin + self.origin_dx * x + self.origin_dy * y,
                self.origin_dx,
                self.origin_dy,
                self.direction + self.direction_dx * x + self.direction_dy * y,
                self.direction_dx,
                self.direction_dy,
            ]
        )

    def rays(self, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(origins, directions), each (..., 3), for positions (..., 2) in pixels of the full image; pixel (0, 0) has its centre at 0.5."""
        x, y = (np.asarray(pixels, np.float64)[..., i : i + 1] - 0.5 for i in (0, 1))
        return (
            self.origin + self.origin_dx * x + self.origin_dy * y,
            self.direction + self.direction_dx * x + self.direction_dy * y,
        )


def camera_from_world(camera: Camera, points: np.ndarray) -> np.ndarray:
    """World points (..., 3) [m] relative to the camera along its own axes, `axes` still to be undone: z = -depth."""
    pose = camera.world_from_camera
    return (np.asarray(points, np.float64) - pose[:3, 3]) @ pose[:3, :3]
