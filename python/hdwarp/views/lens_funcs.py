"""views.lens_funcs: the built-in lenses on the device, in float64: conformed aperture, ray coefficients. Twins: pinhole, orthographic."""

from __future__ import annotations

import warp as wp

from hdwarp.views.conform import CONFORM_POLICIES

EXPAND_APERTURE = wp.constant(CONFORM_POLICIES.index("expandAperture"))
CROP_APERTURE = wp.constant(CONFORM_POLICIES.index("cropAperture"))
ADJUST_APERTURE_WIDTH = wp.constant(CONFORM_POLICIES.index("adjustApertureWidth"))
ADJUST_APERTURE_HEIGHT = wp.constant(CONFORM_POLICIES.index("adjustApertureHeight"))
ADJUST_PIXEL_ASPECT_RATIO = wp.constant(CONFORM_POLICIES.index("adjustPixelAspectRatio"))


@wp.struct
class LensRays:
    """Camera-space coefficients of the rays of a view (tables.structs.ViewRow), before the camera's axes, rotation and position."""

    origin: wp.vec3d
    origin_dx: wp.vec3d
    origin_dy: wp.vec3d
    direction: wp.vec3d
    direction_dx: wp.vec3d
    direction_dy: wp.vec3d


@wp.func
def conform_aperture(aperture: wp.vec2d, policy: wp.int32, image_aspect: wp.float64) -> wp.vec2d:
    """The aperture that fills an image of that aspect (pixel aspect included); a side of 0 follows the image."""
    zero = wp.float64(0.0)
    from_height = wp.vec2d(aperture[1] * image_aspect, aperture[1])
    from_width = wp.vec2d(aperture[0], aperture[0] / image_aspect)
    if aperture[0] == zero:
        return from_height
    if aperture[1] == zero:
        return from_width
    if policy == ADJUST_PIXEL_ASPECT_RATIO:
        return aperture
    wider = aperture[0] / aperture[1] > image_aspect
    if policy == ADJUST_APERTURE_HEIGHT or (policy == EXPAND_APERTURE and wider) or (policy == CROP_APERTURE and not wider):
        return from_width
    return from_height


@wp.func
def pinhole_rays(focal_length: wp.float64, aperture: wp.vec2d, offset: wp.vec2d, image_size: wp.vec2d) -> LensRays:
    """``aperture`` is conformed; ``image_size`` is the full image in pixels. Depth along each direction is 1."""
    half = wp.float64(0.5)
    zero = wp.float64(0.0)
    step = wp.vec2d(aperture[0] / (image_size[0] * focal_length), aperture[1] / (image_size[1] * focal_length))
    rays = LensRays()
    rays.direction = wp.vec3d(
        offset[0] / focal_length + step[0] * (half - half * image_size[0]),
        offset[1] / focal_length - step[1] * (half - half * image_size[1]),
        wp.float64(-1.0),
    )
    rays.direction_dx = wp.vec3d(step[0], zero, zero)
    rays.direction_dy = wp.vec3d(zero, -step[1], zero)
    return rays


@wp.func
def orthographic_rays(aperture: wp.vec2d, offset: wp.vec2d, image_size: wp.vec2d) -> LensRays:
    """``aperture`` is conformed: the window's size in metres; ``image_size`` is the full image in pixels."""
    half = wp.float64(0.5)
    zero = wp.float64(0.0)
    step = wp.vec2d(aperture[0] / image_size[0], aperture[1] / image_size[1])
    rays = LensRays()
    rays.origin = wp.vec3d(offset[0] + step[0] * (half - half * image_size[0]), offset[1] - step[1] * (half - half * image_size[1]), zero)
    rays.origin_dx = wp.vec3d(step[0], zero, zero)
    rays.origin_dy = wp.vec3d(zero, -step[1], zero)
    rays.direction = wp.vec3d(zero, zero, wp.float64(-1.0))
    return rays


@wp.func
def sensor_axes() -> LensRays:
    """For views whose rays are given: the x, y and z axes of camera space as `direction_dx`, `direction_dy` and `direction`."""
    one, zero = wp.float64(1.0), wp.float64(0.0)
    rays = LensRays()
    rays.direction_dx = wp.vec3d(one, zero, zero)
    rays.direction_dy = wp.vec3d(zero, one, zero)
    rays.direction = wp.vec3d(zero, zero, one)
    return rays


@wp.func
def place_rays(rays: LensRays, position: wp.vec3d, rotation: wp.mat33d, axes: wp.mat33d) -> LensRays:
    """Camera space -> the space of position and rotation (columns right, up, back). Then forward = -back, and forward . direction = 1."""
    matrix = rotation * axes
    placed = LensRays()
    placed.origin = position + matrix * rays.origin
    placed.origin_dx = matrix * rays.origin_dx
    placed.origin_dy = matrix * rays.origin_dy
    placed.direction = matrix * rays.direction
    placed.direction_dx = matrix * rays.direction_dx
    placed.direction_dy = matrix * rays.direction_dy
    return placed
