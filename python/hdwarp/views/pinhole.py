"""views.pinhole: the float64 twin of the perspective lens: K, rays, projection. The reference for what kernels compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hdwarp.views.conform import image_aperture
from hdwarp.views.rays import RayCoefficients, camera_from_world

if TYPE_CHECKING:
    from hdwarp.stage.columns import Camera
    from hdwarp.stage.spec import ImageSpec


def focal_and_centre(camera: Camera, image: ImageSpec) -> tuple[float, float, float, float]:
    """(fx, fy, cx, cy) in pixels of the full image: top-left origin, pixel centres at +0.5."""
    width, height = image_aperture(camera.aperture, image)
    fx = image.image_width * camera.focal_length / width
    fy = image.image_height * camera.focal_length / height
    cx = image.image_width * (0.5 - camera.aperture_offset[0] / width)
    cy = image.image_height * (0.5 + camera.aperture_offset[1] / height)
    return fx, fy, cx, cy


def intrinsics(camera: Camera, image: ImageSpec) -> np.ndarray:
    """K, (3, 3), in pixels of the data window (OpenCV: x right, y down). Of a scaled camera: what comes before its `axes`."""
    fx, fy, cx, cy = focal_and_centre(camera, image)
    return np.array([[fx, 0.0, cx - image.x0], [0.0, fy, cy - image.y0], [0.0, 0.0, 1.0]])


def ray_coefficients(camera: Camera, image: ImageSpec) -> RayCoefficients:
    """World-space coefficients [m] for the full image's pixels."""
    fx, fy, cx, cy = focal_and_centre(camera, image)
    rotation, position = camera.world_from_camera[:3, :3], camera.world_from_camera[:3, 3]
    matrix = rotation @ camera.axes
    zero = np.zeros(3)
    return RayCoefficients(
        origin=position.copy(),
        origin_dx=zero,
        origin_dy=zero,
        direction=matrix @ np.array([(0.5 - cx) / fx, (cy - 0.5) / fy, -1.0]),
        direction_dx=matrix @ np.array([1.0 / fx, 0.0, 0.0]),
        direction_dy=matrix @ np.array([0.0, -1.0 / fy, 0.0]),
        forward=-rotation[:, 2],
        right=rotation[:, 0].copy(),
        up=rotation[:, 1].copy(),
        back=rotation[:, 2].copy(),
    )


def project(camera: Camera, image: ImageSpec, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """World points (..., 3) [m] -> pixel positions (..., 2) in the data window and depth (...) [m]; NaN pixels behind the camera."""
    fx, fy, cx, cy = focal_and_centre(camera, image)
    local = camera_from_world(camera, points)
    depth = -local[..., 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        ray = local @ np.linalg.inv(camera.axes).T / np.where(depth > 0.0, depth, np.nan)[..., None]
    pixels = np.stack([cx - image.x0 + fx * ray[..., 0], cy - image.y0 - fy * ray[..., 1]], axis=-1)
    return pixels, depth


def projection(camera: Camera, image: ImageSpec) -> np.ndarray:
    """Hydra's projection matrix of the data window (OpenGL clip space) for column vectors; depth in metres."""
    fx, fy, cx, cy = focal_and_centre(camera, image)
    near, far = camera.clipping_range
    left, right = (image.x0 - cx) / fx, (image.x0 + image.width - cx) / fx
    top, bottom = (cy - image.y0) / fy, (cy - image.y0 - image.height) / fy
    return np.array(
        [
            [2.0 / (right - left), 0.0, (right + left) / (right - left), 0.0],
            [0.0, 2.0 / (top - bottom), (top + bottom) / (top - bottom), 0.0],
            [0.0, 0.0, -(far + near) / (far - near), -2.0 * far * near / (far - near)],
            [0.0, 0.0, -1.0, 0.0],
        ]
    )


def hydra_depth(camera: Camera, depth: np.ndarray) -> np.ndarray:
    """The `depth` AOV, 0 at the near plane and 1 at the far one, of planar depths [m]."""
    near, far = camera.clipping_range
    depth = np.asarray(depth, np.float64)
    return far * (depth - near) / (depth * (far - near))
