"""RenderSettings(cull=True): backs of single-sided prims are looked through; what is authored as outside decides, however transformed."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import UsdGeom

import hdwarp

PLANE = "distance_to_image_plane"
CULL = hdwarp.RenderSettings(cull=True)
BIG = np.array([[[-99, -99, 0], [99, -99, 0], [0, 160, 0]]], float)  # its front is +z


def see(brute, stage, cull=True, orthographic=False):
    eye = brute.Eye(np.eye(3), np.array([0, 0, 4.0]), orthographic=orthographic)
    brute.add_camera(stage, eye)
    return brute.look(stage, eye, settings=CULL if cull else None)


@pytest.mark.parametrize("orthographic", [False, True])
@pytest.mark.parametrize("left_handed", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("double_sided", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_which_side_is_the_front(brute, orthographic, left_handed, mirrored, double_sided, turned):
    """A wall at 4 m and one behind it that shows its front. leftHanded turns the wall over, a mirror does not: the prim's outside stays
    where it was authored."""
    stage = brute.new_stage()
    linear = np.diag([-1.0 if mirrored else 1.0, 1.0, 1.0]) @ np.diag([1.0, -1.0, -1.0] if turned else [1.0, 1.0, 1.0])
    wall = brute.add_mesh(stage, "/front", BIG * 3, linear, double_sided=double_sided)
    if left_handed:
        wall.CreateOrientationAttr("leftHanded")
    brute.add_mesh(stage, "/next", BIG, np.eye(3), (0, 0, -1.0), double_sided=False)
    is_front = not left_handed ^ turned
    frame = see(brute, stage, orthographic=orthographic)
    np.testing.assert_allclose(frame[PLANE], 4.0 if is_front or double_sided else 5.0, rtol=1e-6)
    np.testing.assert_allclose(see(brute, stage_again(brute, stage), cull=False)[PLANE], 4.0, rtol=1e-6)


def stage_again(brute, stage):
    stage.RemovePrim("/camera")
    return stage


@pytest.mark.parametrize("kind", [UsdGeom.Sphere, UsdGeom.Cube])
def test_inside_of_a_closed_shape(brute, kind):
    """From within, a culled shape is not there; a double-sided one is. From outside both are. What is behind is seen through it."""
    for double_sided, expected in ((False, 14.0), (True, 1.0)):
        stage = brute.new_stage()
        shape = kind.Define(stage, "/shape")
        shape.CreateDoubleSidedAttr(double_sided)
        brute.place(shape, None, (0, 0, 4.0))
        brute.add_mesh(stage, "/wall", BIG, np.eye(3), (0, 0, -10.0), double_sided=False)
        assert see(brute, stage)[PLANE][24, 32] == pytest.approx(expected, rel=1e-3)
        stage.RemovePrim("/shape")
        outside = kind.Define(stage, "/shape")
        outside.CreateDoubleSidedAttr(double_sided)
        assert see(brute, stage_again(brute, stage))[PLANE][24, 32] == pytest.approx(3.0, rel=1e-3)


@pytest.mark.parametrize("orthographic", [False, True])
def test_the_next_front_face_behind_culled_ones(brute, orthographic):
    """Triangle soup, half of the meshes mirrored: brute force over front faces alone."""
    rng = np.random.default_rng(3)
    eye = brute.around(rng, orthographic=orthographic, **({"focal": 16.0} if orthographic else {}))
    stage, world, outside = brute.new_stage(), [], []
    for i in range(4):
        linear = brute.rotation(rng) @ np.diag([-1.0 if i % 2 else 1.0, 1.2, 0.8])
        triangles = brute.soup(rng, 25)
        brute.add_mesh(stage, f"/soup{i}", triangles, linear, double_sided=i == 3)
        world.append(triangles @ linear.T)
        outside += [np.nan if i == 3 else np.sign(np.linalg.det(linear))] * 25
    brute.add_camera(stage, eye)
    frame = brute.look(stage, eye, settings=CULL)

    def room(points, i, side):
        return np.where(np.isnan(outside[i]) | (side * outside[i] < 0), 1.0, -1.0)

    expected = brute.first(eye, np.concatenate(world), room)
    brute.compare(frame, expected, share=0.15, starts=(0, 25, 50, 75))
