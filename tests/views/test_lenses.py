"""The NumPy twins of the lenses against numbers worked out by hand, and the device functions against the twins."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

from hdwarp.stage.columns import Camera
from hdwarp.views import lens_funcs, orthographic, pinhole
from hdwarp.views.conform import CONFORM_POLICIES, conform_aperture, image_spec

UNIT = 0.1  # metersPerUnit 1: lens values are tenths of a metre


def make_camera(focal_length=50.0, aperture=(20.955, 15.2908), offset=(0.0, 0.0), clip=(1.0, 1e6), pose=None, **more):
    return Camera(
        path="/Camera",
        world_from_camera=np.eye(4) if pose is None else pose,
        axes=np.eye(3),
        focal_length=focal_length * UNIT,
        aperture=(aperture[0] * UNIT, aperture[1] * UNIT),
        aperture_offset=(offset[0] * UNIT, offset[1] * UNIT),
        clipping_range=clip,
        **more,
    )


@pytest.mark.parametrize(
    ("policy", "resolution", "fx"),
    [
        ("expandAperture", (1920, 1080), 3531.5353),
        ("cropAperture", (1920, 1080), 4581.2455),
        ("expandAperture", (1024, 1024), 2443.33095),
        ("cropAperture", (1024, 1024), 3348.41866),
        ("expandAperture", (480, 640), 1145.31138),
        ("cropAperture", (480, 640), 2092.76166),
        ("expandAperture", (640, 480), 1527.08184),
        ("expandAperture", (256, 256), 610.832737),
    ],
)
def test_focal_length_in_pixels(policy, resolution, fx):
    K = pinhole.intrinsics(make_camera(), image_spec(resolution, policy=policy))
    assert K[0, 0] == pytest.approx(fx, rel=1e-6)
    assert K[1, 1] == pytest.approx(fx, rel=1e-6)
    assert (K[0, 2], K[1, 2]) == (resolution[0] / 2, resolution[1] / 2)


@pytest.mark.parametrize(
    ("policy", "resolution", "fx"),
    [
        ("adjustApertureHeight", (320, 240), 366.499642),
        ("adjustApertureHeight", (1280, 720), 1465.998569),
        ("adjustApertureHeight", (128, 128), 146.599857),
        ("expandAperture", (1280, 720), 1130.0913),
        ("expandAperture", (640, 480), 732.999284),
    ],
)
def test_a_24_mm_lens(policy, resolution, fx):
    K = pinhole.intrinsics(make_camera(24.0), image_spec(resolution, policy=policy))
    assert K[0, 0] == pytest.approx(fx, rel=1e-7)


def test_fields_of_view_of_a_24_mm_lens():
    K = pinhole.intrinsics(make_camera(24.0), image_spec((640, 480)))
    assert math.degrees(2.0 * math.atan(320.0 / K[0, 0])) == pytest.approx(47.168554, abs=1e-6)
    assert math.degrees(2.0 * math.atan(240.0 / K[1, 1])) == pytest.approx(36.259157, abs=1e-6)
    P = pinhole.projection(make_camera(24.0), image_spec((640, 480)))
    assert (P[0, 0], P[1, 1]) == pytest.approx((2.290623, 3.054164), rel=1e-6)


@pytest.mark.parametrize(("hfov", "size", "fx", "vfov"), [(90.0, (128, 96), 64.0, 73.739795), (60.0, (640, 480), 554.256258, 46.826449)])
def test_horizontal_fields_of_view(hfov, size, fx, vfov):
    camera = make_camera(10.0, (20.0 * math.tan(math.radians(hfov / 2.0)), 0.0))
    K = pinhole.intrinsics(camera, image_spec(size))
    assert K[0, 0] == pytest.approx(fx, rel=1e-8)
    assert math.degrees(2.0 * math.atan(size[1] / 2.0 / K[1, 1])) == pytest.approx(vfov, abs=1e-6)


@pytest.mark.parametrize("width", [320, 100, 240])
def test_a_vertical_field_of_view_holds_at_any_aspect(width):
    camera = make_camera(10.0, (0.0, 20.0 * math.tan(math.radians(22.5))))
    K = pinhole.intrinsics(camera, image_spec((width, 240)))
    assert K[1, 1] == pytest.approx(289.705627, rel=1e-8)
    assert K[0, 0] == pytest.approx(K[1, 1])


def test_aperture_offsets_move_the_principal_point():
    """hAp 20, vAp 10, f 20, offsets (2, -1): window x [-0.4, 0.6], y [-0.3, 0.2]."""
    camera = make_camera(20.0, (20.0, 10.0), (2.0, -1.0), clip=(1.0, 101.0))
    image = image_spec((200, 100))
    K = pinhole.intrinsics(camera, image)
    np.testing.assert_allclose(K, [[200.0, 0.0, 80.0], [0.0, 200.0, 40.0], [0.0, 0.0, 1.0]])
    P = pinhole.projection(camera, image)
    np.testing.assert_allclose(
        [P[0, 0], P[1, 1], P[0, 2], P[1, 2], P[2, 2], P[2, 3], P[3, 2]], [2.0, 4.0, 0.2, -0.2, -1.02, -2.02, -1.0], atol=1e-12
    )
    clip = P @ (0.0, 0.0, -10.0, 1.0)
    np.testing.assert_allclose(clip[:3] / clip[3], (-0.2, 0.2, 0.818), atol=1e-12)
    clip = P @ (1.0, 0.5, -10.0, 1.0)
    np.testing.assert_allclose(clip[:3] / clip[3], (0.0, 0.4, 0.818), atol=1e-12)
    np.testing.assert_allclose(pinhole.project(camera, image, (1.0, 0.5, -10.0))[0], (100.0, 30.0), atol=1e-12)


@pytest.mark.parametrize("offset", [-4.0, 0.0, 4.0])
def test_principal_point_by_hand(offset):
    """offset / aperture * width pixels: 4 of 20 over 100 px is 20 px, to the left when the window moves right."""
    K = pinhole.intrinsics(make_camera(20.0, (20.0, 20.0), (offset, 0.0)), image_spec((100, 100)))
    assert K[0, 2] == pytest.approx(50.0 - offset / 20.0 * 100)


def test_default_projection():
    P = pinhole.projection(make_camera(), image_spec((1000, 1000), policy="adjustPixelAspectRatio"))
    assert (P[0, 0], P[1, 1], P[2, 2], P[2, 3]) == pytest.approx((4.7721308, 6.5398801, -1.000002, -2.000002), rel=1e-7)
    P = pinhole.projection(make_camera(), image_spec((1920, 1080)))
    assert (P[0, 0], P[1, 1]) == pytest.approx((3.678683, 6.539880), rel=1e-6)
    P = pinhole.projection(make_camera(), image_spec((1920, 1080), policy="cropAperture"))
    assert (P[0, 0], P[1, 1]) == pytest.approx((4.772131, 8.483788), rel=1e-6)


@pytest.mark.parametrize(
    ("window", "entries"),
    [
        ((0.25, 0.25, 0.75, 0.75), (7.357365, 13.079760, 0.0, 0.0)),
        ((0.0, 0.0, 0.5, 1.0), (7.357365, 6.539880, -1.0, 0.0)),
        ((0.0, 0.5, 0.5, 1.0), (7.357365, 13.079760, -1.0, 1.0)),
        ((-0.1, -0.1, 1.1, 1.1), (3.065569, 5.449900, 0.0, 0.0)),
    ],
)
def test_projection_of_data_windows(window, entries):
    """1920x1080: the centre, the left half, the top left quarter, ten percent of overscan."""
    P = pinhole.projection(make_camera(), image_spec((1920, 1080), data_window_ndc=window))
    np.testing.assert_allclose([P[0, 0], P[1, 1], P[0, 2], P[1, 2]], entries, rtol=1e-6, atol=1e-6)


def test_wide_pixels():
    """960x1080 pixels twice as wide as high show what 1920x1080 square ones do."""
    np.testing.assert_allclose(
        pinhole.projection(make_camera(), image_spec((960, 1080), 2.0)), pinhole.projection(make_camera(), image_spec((1920, 1080)))
    )


def test_the_corner_ray():
    """1920x1080, expandAperture: pixel (0, 0), and a wall at planar depth 10."""
    coefficients = pinhole.ray_coefficients(make_camera(), image_spec((1920, 1080)))
    np.testing.assert_allclose(coefficients.direction, (-0.27169486, 0.15276642, -1.0), atol=1e-7)
    _, directions = coefficients.rays([[0.5, 0.5], [959.5, 539.5]])
    lengths = 10.0 * np.linalg.norm(directions, axis=-1)
    np.testing.assert_allclose(lengths, (10.47451993, 10.0000002), rtol=1e-7)
    np.testing.assert_allclose(directions[0] / np.linalg.norm(directions[0]), (-0.25938646, 0.14584575, -0.95469769), atol=1e-7)


@pytest.mark.parametrize(
    ("near", "far", "z", "value"), [(1, 101, 10, 0.909), (0.1, 100, 5, 0.980980981), (1, 1e6, 10, 0.9000009), (1, 9, 1, 0), (1, 9, 9, 1)]
)
def test_hydra_depth(near, far, z, value):
    camera = make_camera(clip=(near, far))
    assert pinhole.hydra_depth(camera, z) == pytest.approx(value, abs=1e-8)
    P = pinhole.projection(camera, image_spec((10, 10)))
    clip = P @ (0.0, 0.0, -z, 1.0)
    assert (clip[2] / clip[3] + 1.0) / 2.0 == pytest.approx(value, abs=1e-8)


def test_an_orthographic_window():
    """hAp 100, vAp 50 tenths: 10 x 5 metres; clip 1..11."""
    camera = make_camera(0.0, (100.0, 50.0), clip=(1.0, 11.0), projection="orthographic")
    image = image_spec((100, 50))
    P = orthographic.projection(camera, image)
    np.testing.assert_allclose(np.diag(P), (0.2, 0.4, -0.2, 1.0), atol=1e-12)
    assert P[2, 3] == pytest.approx(-1.2)
    np.testing.assert_allclose((P @ (2.5, 0.0, -6.0, 1.0))[:3], (0.5, 0.0, 0.0), atol=1e-12)
    assert orthographic.hydra_depth(camera, 6.0) == pytest.approx(0.5)
    assert orthographic.intrinsics(camera, image) is None
    coefficients = orthographic.ray_coefficients(camera, image)
    np.testing.assert_allclose(coefficients.origin, (-4.95, 2.45, 0.0))
    np.testing.assert_allclose(coefficients.origin_dx, (0.1, 0.0, 0.0))
    np.testing.assert_allclose(coefficients.origin_dy, (0.0, -0.1, 0.0))


def test_orthographic_offsets_move_the_window():
    camera = make_camera(0.0, (100.0, 50.0), (10.0, -5.0), projection="orthographic")
    pixels, depth = orthographic.project(camera, image_spec((100, 50)), (1.0, -0.5, -3.0))
    np.testing.assert_allclose(pixels, (50.0, 25.0))
    assert depth == pytest.approx(3.0)


# --- properties


@st.composite
def cameras(draw):
    number = st.floats(0.5, 60.0)
    angles = [draw(st.floats(-math.pi, math.pi)) for _ in range(2)]
    (cx, sx), (cy, sy) = ((math.cos(a), math.sin(a)) for a in angles)
    pose = np.eye(4)
    pose[:3, :3] = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]]) @ np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    pose[:3, 3] = [draw(st.floats(-100.0, 100.0)) for _ in range(3)]
    camera = make_camera(draw(number), (draw(number), draw(number)), (draw(st.floats(-5, 5)), draw(st.floats(-5, 5))), pose=pose)
    if draw(st.booleans()):  # scaled or mirrored: upper triangular with last row (0, 0, 1), as stage.cameras makes them
        camera.axes = np.array([[draw(st.sampled_from([-1.0, 0.5, 2.0])), 0.0, 0.1], [0.2, 1.5, -0.1], [0.0, 0.0, 1.0]])
    return dataclasses.replace(camera, projection=draw(st.sampled_from(["perspective", "orthographic"])))


@st.composite
def images(draw):
    edges = [draw(st.floats(-0.5, 0.45)), draw(st.floats(-0.5, 0.45)), draw(st.floats(0.55, 1.5)), draw(st.floats(0.55, 1.5))]
    size = draw(st.integers(10, 400)), draw(st.integers(10, 400))
    return image_spec(size, draw(st.floats(0.3, 3.0)), draw(st.sampled_from(CONFORM_POLICIES)), edges)


@settings(max_examples=150, deadline=None)
@given(cameras(), images(), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.1, 1000.0))
def test_rays_and_projection_are_inverse(camera, image, u, v, depth):
    module = orthographic if camera.projection == "orthographic" else pinhole
    pixel = np.array([u * image.width, v * image.height])
    coefficients = module.ray_coefficients(camera, image)
    origin, direction = coefficients.rays(pixel + (image.x0, image.y0))
    assert coefficients.forward @ direction == pytest.approx(1.0, abs=1e-12)
    back, found = module.project(camera, image, origin + direction * depth)
    np.testing.assert_allclose(back, pixel, atol=1e-6)
    assert found == pytest.approx(depth, rel=1e-9, abs=1e-9)
    # K, where there is one, tells the same ray.
    K = module.intrinsics(camera, image)
    if K is not None:
        ray = np.linalg.inv(K) @ (*pixel, 1.0)
        rotation = camera.world_from_camera[:3, :3]
        np.testing.assert_allclose(rotation @ camera.axes @ (ray * (1.0, -1.0, -1.0)), direction, atol=1e-9)


@settings(max_examples=150, deadline=None)
@given(cameras(), images())
def test_projection_maps_the_data_window_to_the_clip_cube(camera, image):
    module = orthographic if camera.projection == "orthographic" else pinhole
    corners = np.array([[0.0, 0.0], [image.width, image.height]]) + (image.x0, image.y0)
    origins, directions = module.ray_coefficients(camera, image).rays(corners)
    points = origins + directions * 10.0
    pose = camera.world_from_camera
    local = (points - pose[:3, 3]) @ pose[:3, :3] @ np.linalg.inv(camera.axes).T
    clip = np.column_stack([local, np.ones(2)]) @ module.projection(camera, image).T
    np.testing.assert_allclose(clip[:, :2] / clip[:, 3:], [[-1.0, 1.0], [1.0, -1.0]], atol=1e-7)


# --- the device


@wp.kernel(enable_backward=False, module="unique")
def _rays(
    focal: wp.float64,
    aperture: wp.vec2d,
    offset: wp.vec2d,
    size: wp.vec2d,
    pixel_aspect: wp.float64,
    policy: wp.int32,
    is_orthographic: wp.int32,
    position: wp.vec3d,
    rotation: wp.mat33d,
    axes: wp.mat33d,
    out_aperture: wp.array[wp.vec2d],
    out: wp.array[wp.vec3d],
):
    conformed = lens_funcs.conform_aperture(aperture, policy, pixel_aspect * size[0] / size[1])
    rays = lens_funcs.pinhole_rays(focal, conformed, offset, size)
    if is_orthographic == 1:
        rays = lens_funcs.orthographic_rays(conformed, offset, size)
    rays = lens_funcs.place_rays(rays, position, rotation, axes)
    out_aperture[0] = conformed
    out[0] = rays.origin
    out[1] = rays.origin_dx
    out[2] = rays.origin_dy
    out[3] = rays.direction
    out[4] = rays.direction_dx
    out[5] = rays.direction_dy


def _device_rays(camera, image, device):
    aperture = wp.zeros(1, dtype=wp.vec2d, device=device)
    out = wp.zeros(6, dtype=wp.vec3d, device=device)
    pose = camera.world_from_camera
    inputs = [camera.focal_length, wp.vec2d(*camera.aperture), wp.vec2d(*camera.aperture_offset)]
    inputs += [wp.vec2d(image.image_width, image.image_height), image.pixel_aspect_ratio]
    inputs += [CONFORM_POLICIES.index(image.aspect_ratio_conform_policy), int(camera.projection == "orthographic")]
    inputs += [wp.vec3d(*pose[:3, 3]), wp.mat33d(*pose[:3, :3].ravel()), wp.mat33d(*camera.axes.ravel())]
    wp.launch(_rays, dim=1, inputs=inputs, outputs=[aperture, out], device=device)
    return aperture.numpy()[0], out.numpy()


def test_device_functions_equal_their_twins(device):
    random = np.random.default_rng(7)
    for number in range(60):
        pose = np.eye(4)
        pose[:3, :3] = np.linalg.qr(random.normal(size=(3, 3)))[0]
        pose[:3, 3] = random.normal(size=3) * 100.0
        aperture = random.uniform(1.0, 50.0, 2)
        if number % 10 < 2:
            aperture[number % 10] = 0.0
        camera = make_camera(random.uniform(5.0, 90.0), aperture, random.uniform(-5.0, 5.0, 2), pose=pose)
        camera.projection = ("perspective", "orthographic")[number % 2]
        if number % 3 == 0:
            camera.axes = np.array([[-1.5, 0.0, 0.3], [0.2, 0.7, -0.1], [0.0, 0.0, 1.0]])
        size = tuple(int(side) for side in random.integers(1, 2000, 2))
        image = image_spec(size, random.uniform(0.5, 2.0), CONFORM_POLICIES[number % 5])
        found_aperture, found = _device_rays(camera, image, device)
        aspect = image.pixel_aspect_ratio * size[0] / size[1]
        np.testing.assert_allclose(
            found_aperture, conform_aperture(camera.aperture, image.aspect_ratio_conform_policy, aspect)[0], rtol=1e-14
        )
        module = orthographic if camera.projection == "orthographic" else pinhole
        expected = module.ray_coefficients(camera, image)
        np.testing.assert_allclose(found, np.stack(expected[:6]), rtol=1e-11, atol=1e-12)
