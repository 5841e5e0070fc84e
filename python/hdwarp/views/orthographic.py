"""views.orthographic: the float64 twin of the orthographic lens: parallel rays, projection. The reference for what kernels compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hdwarp.views.conform import image_aperture
from hdwarp.views.rays import RayCoefficients, camera_from_world

if TYPE_CHECKING:
    from hdwarp.stage.columns import Camera
    from hdwarp.stage.spec import ImageSpec


def intrinsics(camera: Camera, image: ImageSpec) -> None:
    """None: parallel rays have no K."""


def pixel_size(camera: Camera, image: ImageSpec) -> tuple[float, float]:
    """Width and height of a pixel [m], before the camera's `axes`."""
    width, height = image_aperture(camera.aperture, image)
    return width / image.image_width, height / image.image_height


def ray_coefficients(camera: Camera, image: ImageSpec) -> RayCoefficients:
    """World-space coefficients [m] for the full image's pixels; the rays start on the plane through the camera's position."""
    dx, dy = pixel_size(camera, image)
    rotation, position = camera.world_from_camera[:3, :3], camera.world_from_camera[:3, 3]
    matrix = rotation @ camera.axes
    x = camera.aperture_offset[0] + dx * (0.5 - 0.5 * image.image_width)
    y = camera.aperture_offset[1] - dy * (0.5 - 0.5 * image.image_height)
    zero = np.zeros(3)
    return RayCoefficients(
        origin=position + matrix @ np.array([x, y, 0.0]),
        origin_dx=matrix @ np.array([dx, 0.0, 0.0]),
        origin_dy=matrix @ np.array([0.0, -dy, 0.0]),
        direction=matrix @ np.array([0.0, 0.0, -1.0]),
        direction_dx=zero,
        direction_dy=zero,
        forward=-rotation[:, 2],
        right=rotation[:, 0].copy(),
        up=rotation[:, 1].copy(),
        back=rotation[:, 2].copy(),
    )


def project(camera: Camera, image: ImageSpec, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """World points (..., 3) [m] -> pixel positions (..., 2) in the data window and depth (...) [m]."""
    dx, dy = pixel_size(camera, image)
    local = camera_from_world(camera, points)
    window = local @ np.linalg.inv(camera.axes).T
    column = 0.5 * image.image_width + (window[..., 0] - camera.aperture_offset[0]) / dx - image.x0
    row = 0.5 * image.image_height - (window[..., 1] - camera.aperture_offset[1]) / dy - image.y0
    return np.stack([column, row], axis=-1), -local[..., 2]


def projection(camera: Camera, image: ImageSpec) -> np.ndarray:
    """Hydra's projection matrix of the data window (OpenGL clip space) for column vectors; lengths in metres."""
    dx, dy = pixel_size(camera, image)
    near, far = camera.clipping_range
    left = camera.aperture_offset[0] + dx * (image.x0 - 0.5 * image.image_width)
    top = camera.aperture_offset[1] - dy * (image.y0 - 0.5 * image.image_height)
    right, bottom = left + dx * image.width, top - dy * image.height
    return np.array(
        [
            [2.0 / (right - left), 0.0, 0.0, -(right + left) / (right - left)],
            [0.0, 2.0 / (top - bottom), 0.0, -(top + bottom) / (top - bottom)],
            [0.0, 0.0, -2.0 / (far - near), -(far + near) / (far - near)],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def hydra_depth(camera: Camera, depth: np.ndarray) -> np.ndarray:
    """The `depth` AOV, 0 at the near plane and 1 at the far one, of planar depths [m]."""
    near, far = camera.clipping_range
    return (np.asarray(depth, np.float64) - near) / (far - near)
