"""Bad input through whole renders: right where it can be, named where it cannot, and never a wrong neighbour."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, UsdGeom, Vt

import hdwarp

PLANE = "distance_to_image_plane"
BIG = np.array([[[-99, -99, 0], [99, -99, 0], [0, 160, 0]]], float)


def wall_and_eye(brute, orthographic=False):
    stage = brute.new_stage()
    eye = brute.Eye(np.eye(3), np.array([0, 0, 4.0]), orthographic=orthographic)
    brute.add_camera(stage, eye)
    return stage, eye


@pytest.mark.parametrize("orthographic", [False, True])
def test_degenerate_infinite_nan_and_duplicate_triangles(brute, orthographic):
    """Bad triangles in front of a good one, each alone in a mesh and all in one: the good one is seen everywhere, the first of two."""
    bad = np.array(
        [
            [[0, 0, 1]] * 3,
            [[-9, 0, 1], [0, 0, 1], [9, 0, 1]],
            [[0, 0, 1], [np.nan, 0, 1], [1, 1, 1]],
            [[0, 0, 1], [np.inf, 0, 1], [1, 1, 1]],
            [[-np.inf, 0, 1], [np.inf, 0, 1], [1, 1, 1]],
            [[3e38, 0, 1], [-3e38, 0, 1], [1, 3e38, 1]],
            [[np.nan] * 3] * 3,
            [[1e-38, 0, 1], [0, 1e-38, 1], [0, 0, 1]],
        ]
    )
    stage, eye = wall_and_eye(brute, orthographic)
    brute.add_mesh(stage, "/all", np.concatenate([bad, BIG, BIG]))
    for i, triangle in enumerate(bad):
        brute.add_mesh(stage, f"/bad{i}", triangle)
    frame = brute.look(stage, eye, aovs=(PLANE, "elementId", "primId", "Ngeom", "barycentric", "position"))
    np.testing.assert_allclose(frame[PLANE], 4.0, rtol=1e-6)
    assert (frame["elementId"] == len(bad)).all()
    assert all(np.isfinite(frame[name]).all() for name in ("Ngeom", "barycentric", "position"))
    blamed = {item.path for item in frame.diagnostics}
    assert {"/all", "/bad2", "/bad3", "/bad4", "/bad6"} <= blamed


@pytest.mark.parametrize("orthographic", [False, True])
@pytest.mark.parametrize("how", ["points", "transform", "both"])
@pytest.mark.parametrize("scale", [1e-15, 1e-12, 1e12, 1e15])
def test_scales(brute, scale, how, orthographic):
    """A stage the size of a proton or of a light year: the same picture, whether the points or the transform are scaled,
    or both, one against the other."""
    rng = np.random.default_rng(5)
    triangles = brute.soup(rng, 40)
    planes = (PLANE, "primId", "triangleId", "Ngeom", "barycentric")
    frames = []
    for k in (1.0, scale):
        stage = brute.new_stage()
        points, factor = {"points": (k, 1.0), "transform": (1.0, k), "both": (k, 1.0 / k)}[how]
        unit = points * factor
        brute.add_mesh(stage, "/soup", triangles.astype(float) * points, np.eye(3) * factor)
        eye = brute.around(np.random.default_rng(1), 4.0 * unit, focal=16.0 / unit if orthographic else 55.0, orthographic=orthographic)
        brute.add_camera(stage, brute.Eye(**(vars(eye) | {"near": 1e-3 * unit, "far": 1e6 * unit})))
        frames.append((brute.look(stage, eye, aovs=planes), unit))
    (one, _), (other, unit) = frames
    assert (one["primId"] >= 0).sum() > 500
    same = one["triangleId"] == other["triangleId"]
    assert same.mean() > 0.999  # float32 points times 1e12 are not quite the same triangles
    hit = same & (one["primId"] >= 0)
    np.testing.assert_allclose(other[PLANE][hit] / unit, one[PLANE][hit], rtol=3e-6)
    for name in ("Ngeom", "barycentric"):
        np.testing.assert_allclose(other[name][hit], one[name][hit], atol=2e-3)


def test_all_scales_in_one_scene(brute):
    """Things a trillion times too small and too large around an ordinary wall: the small are not seen, the large is behind it."""
    stage, eye = wall_and_eye(brute)
    brute.add_mesh(stage, "/wall", BIG)
    for i, (factor, place) in enumerate(((1e-12, (0.1, 0.2, 1.0)), (1e12, (0, 0, -2e12)), (1e-30, (0, 0, 2.0)), (1e30, (0, 0, -3e30)))):
        brute.add_mesh(stage, f"/thing{i}", BIG * 0.01, np.eye(3) * factor, place)
        sphere = UsdGeom.Sphere.Define(stage, f"/sphere{i}")
        brute.place(sphere, np.eye(3) * factor, place)
    frame = brute.look(stage, eye)
    assert {frame.prim_paths[i] for i in np.unique(frame["primId"])} == {"/wall"}
    np.testing.assert_allclose(frame[PLANE], 4.0, rtol=1e-6)


def test_a_scale_of_zero(brute):
    """A prim flattened to a plane or a point draws nothing (or is named); the rest is drawn."""
    stage, eye = wall_and_eye(brute)
    brute.add_mesh(stage, "/wall", BIG)
    for i, scale in enumerate(((1, 1, 0), (0, 0, 0), (1e-300, 1, 1), (1e300, 1, 1))):
        brute.add_mesh(stage, f"/flat{i}", BIG, np.diag(np.array(scale, float)), (0, 0, 1.0))
    frame = brute.look(stage, eye, aovs=(PLANE, "primId", "Ngeom"))
    assert np.isfinite(frame["Ngeom"]).all()
    seen = {frame.prim_paths[i] for i in np.unique(frame["primId"])}
    assert "/wall" in seen or seen == {"/flat0"}


def instancer_of_one_triangle(brute, stage, count):
    instancer = UsdGeom.PointInstancer.Define(stage, "/many")
    brute.add_mesh(stage, "/many/triangle", BIG)
    instancer.CreatePrototypesRel().SetTargets(["/many/triangle"])
    instancer.CreateProtoIndicesAttr(Vt.IntArray.FromNumpy(np.zeros(count, np.int32)))
    return instancer


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_instances_of_one_triangle_all_in_one_place(brute, count):
    """All boxes identical: no place to split at. The first instance wins everywhere."""
    stage, _ = wall_and_eye(brute)
    instancer = instancer_of_one_triangle(brute, stage, count)
    instancer.CreatePositionsAttr(Vt.Vec3fArray.FromNumpy(np.zeros((count, 3), np.float32)))
    frame = hdwarp.render(stage, "/camera", resolution=(16, 8), aovs=[PLANE, "instanceId"], device="cpu")
    np.testing.assert_allclose(frame[PLANE], 4.0, rtol=1e-6)
    assert (frame["instanceId"] == 0).all()


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_instances_of_one_triangle_apart(brute, count):
    """A grid of unit squares' halves seen from above: each pixel sees the instance of its cell."""
    stage = brute.new_stage()
    side = int(np.sqrt(count))
    instancer = UsdGeom.PointInstancer.Define(stage, "/many")
    brute.add_mesh(stage, "/many/triangle", np.array([[[0, 0, 0], [2, 0, 0], [0, 2, 0]]], float))
    instancer.CreatePrototypesRel().SetTargets(["/many/triangle"])
    y, x = (a.ravel() for a in np.mgrid[:side, :side])
    instancer.CreateProtoIndicesAttr(Vt.IntArray.FromNumpy(np.zeros(side * side, np.int32)))
    positions = np.stack([x, y, (x + y) * 1e-3], -1).astype(np.float32)  # the later ones are nearer, and win their cell
    instancer.CreatePositionsAttr(Vt.Vec3fArray.FromNumpy(positions))
    eye = brute.Eye(np.eye(3), np.array([side / 2, side / 2, 100.0]), 64, 64, focal=64 / side * 1.5, orthographic=True)
    brute.add_camera(stage, eye)
    frame = brute.look(stage, eye, aovs=("instanceId",))
    starts, _ = eye.rays()
    expected = np.floor(starts[..., 1]) * side + np.floor(starts[..., 0])
    fraction = starts[..., :2] % 1.0
    sure = ((fraction > 1e-3) & (fraction < 1 - 1e-3)).all(-1)
    assert np.array_equal(frame["instanceId"][sure], expected[sure].astype(int))


def test_trees_as_deep_as_they_may_get(brute):
    """Triangles and instances at distances that halve forever: splits by area would cut off one at a time; the bound on depth holds."""
    rng = np.random.default_rng(2)
    sizes = np.exp2(-(np.arange(3000) % 100.0))
    triangles = (rng.normal(size=(3000, 3, 3)) + [0.5, 0.5, 0]) * sizes[:, None, None]
    stage = brute.new_stage()
    brute.add_mesh(stage, "/mesh", triangles[:1500])
    for i in range(1500, 1620):
        brute.add_mesh(stage, f"/more{i}", triangles[1500:1501] / sizes[1500], np.eye(3) * sizes[i - 1500], np.full(3, sizes[i - 1500]))
    eye = brute.around(rng, 6.0)
    brute.add_camera(stage, eye)
    world = [triangles[:1500].astype(np.float32)]
    base = (triangles[1500:1501] / sizes[1500]).astype(np.float32).astype(float)
    world += [base * sizes[i] + sizes[i] for i in range(120)]
    frame = brute.look(stage, eye)
    brute.compare(frame, brute.first(eye, np.concatenate(world)), share=0.2, starts=[0, *range(1500, 1620)])


@pytest.mark.parametrize("size", [(0, 10), (10, 0), (0, 0), (-1, 5)])
def test_images_without_pixels_are_refused_by_name(brute, size):
    stage, _ = wall_and_eye(brute)
    with pytest.raises(hdwarp.Error, match=r"resolution|size|width|pixel"):
        hdwarp.render(stage, "/camera", resolution=size, device="cpu")
    scene = hdwarp.Scene(stage, device="cpu")
    with pytest.raises(hdwarp.Error, match=r"resolution|size|width|pixel"):
        hdwarp.SensorCamera(scene, cameras="/camera", resolution=size)


def test_one_pixel(brute):
    stage, _ = wall_and_eye(brute)
    brute.add_mesh(stage, "/wall", BIG)
    assert hdwarp.render(stage, "/camera", resolution=(1, 1), aovs=[PLANE], device="cpu")[PLANE].tolist() == [[4.0]]


@pytest.mark.parametrize("orthographic", [False, True])
def test_views_without_geometry(brute, orthographic):
    """Nothing on the stage, an invisible prim, a mesh without faces, everything behind the camera: clear values in every plane."""
    from hdwarp.aovs.registry import AOVS

    names = [name for name, spec in AOVS.items() if not spec.later]
    stage, eye = wall_and_eye(brute, orthographic)

    def check():
        frame = brute.look(stage, eye, aovs=names)
        for name in names:
            clear = np.asarray(AOVS[name].clear)
            assert (frame[name] == clear).all(), name
        return frame

    assert any(item.code == "nothing-drawn" for item in check().diagnostics)
    hidden = brute.add_mesh(stage, "/hidden", BIG)
    hidden.MakeInvisible()
    check()
    UsdGeom.Mesh.Define(stage, "/empty")
    check()
    brute.add_mesh(stage, "/behind", BIG, np.eye(3), (0, 0, 4.5))
    check()


def test_a_far_plane_at_the_eye_and_a_range_of_nothing(brute):
    """Near and far equal to the wall's depth keep it; a range before it or behind it does not."""
    stage, eye = wall_and_eye(brute)
    brute.add_mesh(stage, "/wall", BIG)
    attribute = UsdGeom.Camera.Get(stage, "/camera").GetClippingRangeAttr()
    for near, far, seen in ((3.9999, 4.0, True), (4.0, 4.0001, True), (1.0, 3.9, False), (4.1, 9.0, False), (1e-30, 1e30, True)):
        attribute.Set(Gf.Vec2f(near, far))
        assert (brute.look(stage, eye)["primId"] >= 0).all() == seen
