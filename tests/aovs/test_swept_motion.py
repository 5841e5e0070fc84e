"""motion of curves that bend and of points that come and go: against float64 projections of the authored curve or point at both times."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, Vt

import hdwarp

SIZE = WIDTH, HEIGHT = 160, 120
FOCAL = 160 * 0.35 / 0.2  # pixels
EYE = np.array((0.3, 0.9, 4.0))
AOVS = ("motion", "primId", "elementId", "barycentric", "distance_to_image_plane")


@pytest.fixture
def stage():
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetStartTimeCode(1)
    camera = UsdGeom.Camera.Define(stage, "/Camera")
    camera.AddTranslateOp().Set(Gf.Vec3d(*EYE))
    camera.CreateFocalLengthAttr(0.35)
    camera.CreateHorizontalApertureAttr(0.2)
    camera.CreateVerticalApertureAttr(0.15)
    return stage


def add_curves(stage, keys, counts, *, ribbon=False, width=0.1):
    prim = UsdGeom.BasisCurves.Define(stage, "/Curves")
    prim.CreateTypeAttr("cubic")
    prim.CreateBasisAttr("bezier")
    prim.CreateCurveVertexCountsAttr(counts)
    prim.CreateWidthsAttr([width])
    prim.SetWidthsInterpolation("constant")
    if ribbon:
        prim.CreateNormalsAttr([(0, 0, 1)])
        prim.SetNormalsInterpolation("constant")
    for time, points in keys.items():
        prim.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(np.asarray(points, np.float32)), time)
    return prim


def add_points(stage, keys):
    """``keys``: (centres, ids or None) by time."""
    prim = UsdGeom.Points.Define(stage, "/Points")
    prim.CreateWidthsAttr([0.4])
    prim.SetWidthsInterpolation("constant")
    for time, (centres, ids) in keys.items():
        prim.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(np.asarray(centres, np.float32)), time)
        if ids is not None:
            prim.CreateIdsAttr().Set(ids, time)
    return prim


def picture(stage, *, time=2.0, previous=1.0, size=SIZE):
    return hdwarp.render(stage, "/Camera", time=time, previous=previous, resolution=size, aovs=AOVS, device="cpu")


def pixels(points, eye=EYE, size=SIZE):
    """(n, 2) where points (n, 3) are seen."""
    x, y, z = (np.asarray(points, np.float64) - eye).T
    scale = size[0] / WIDTH * FOCAL
    return np.stack((size[0] / 2 + scale * x / -z, size[1] / 2 - scale * y / -z), axis=1)


def moved(frame, shift, *, eye=EYE, eye_then=EYE, size=SIZE):
    """What `motion` is of the pixels of prim 0 whose surface points were ``shift`` (n, 3) away, and what the frame has: (n, 2) each."""
    hit = frame["primId"] == 0
    now = frame.points()[hit]
    return pixels(now, eye, size) - pixels(now + shift, eye_then, size), frame["motion"][hit]


def cubic(control, u):
    """(n, 3) of (n, 4, 3) at (n,)."""
    u = u[:, None]
    weights = (1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u**2 * (1 - u), u**3
    return sum(weight * control[:, k] for k, weight in enumerate(weights))


def axes(frame, keys):
    """(place of the curve at time 1, at time 2) of each pixel of prim 0, by the segment and how far along it the frame says."""
    hit = frame["primId"] == 0
    segment, u = frame["elementId"][hit], frame["barycentric"][hit][:, 0].astype(np.float64)
    return tuple(cubic(np.asarray(keys[time], np.float32).astype(np.float64).reshape(-1, 4, 3)[segment], u) for time in (1, 2))


STRAIGHT = [(0, 0, 0), (0, 0.6, 0), (0, 1.2, 0), (0, 1.8, 0)]
BENT = [(0, 0, 0), (0, 0.7, 0.1), (0.3, 1.4, 0.2), (0.9, 1.6, 0.2)]


@pytest.mark.parametrize("way", ["bends", "straightens"])
def test_a_tube_that_bends(stage, way):
    """A straight hair is one piece and a bent one several: a surface point goes as the place of the curve beside it does."""
    keys = dict(zip((1, 2), (STRAIGHT, BENT) if way == "bends" else (BENT, STRAIGHT), strict=True))
    add_curves(stage, keys, [4])
    frame = picture(stage)
    then, now = axes(frame, keys)
    expected, found = moved(frame, then - now)
    assert len(found) > 500 and np.abs(expected).max() > 40
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_a_ribbon_that_bends(stage):
    """A point between the edges goes as the same share of both does."""
    flat = {1: STRAIGHT, 2: [(x, y, 0) for x, y, _ in BENT]}
    add_curves(stage, flat, [4], ribbon=True, width=0.3)
    frame = picture(stage)
    hit = frame["primId"] == 0
    u = frame["barycentric"][hit][:, 0].astype(np.float64)
    then, now = axes(frame, flat)
    across = []
    for time in (1, 2):
        p = np.broadcast_to(np.asarray(flat[time], np.float64), (len(u), 4, 3))
        slope = cubic(np.stack((p[:, 1] - p[:, 0], p[:, 2] - p[:, 1], p[:, 3] - p[:, 2], p[:, 3] - p[:, 2]), axis=1), u)
        slope = ((1 - u) ** 2)[:, None] * (p[:, 1] - p[:, 0]) + (2 * u * (1 - u))[:, None] * (p[:, 2] - p[:, 1])
        slope += (u**2)[:, None] * (p[:, 3] - p[:, 2])
        slope /= np.linalg.norm(slope, axis=1, keepdims=True)
        across.append(np.cross([0.0, 0.0, 1.0], slope))
    beside = np.einsum("ni,ni->n", frame.points()[hit] - now, across[1])[:, None]
    expected, found = moved(frame, then + beside * across[0] - now - beside * across[1])
    assert len(found) > 1000 and np.abs(expected).max() > 40
    np.testing.assert_allclose(found, expected, atol=3e-2)  # of either edge's fit, at both times


def test_some_curves_bend_under_a_transform_that_moves_before_a_camera_that_does(stage):
    """Those that are cut as before are followed alike."""
    keys = {1: [], 2: []}
    for k in range(8):
        shift = np.array((0.25 * k - 0.7, 0, -0.2 * k))
        keys[1].append(np.asarray(BENT if k == 3 else STRAIGHT) + shift)
        keys[2].append(np.asarray(BENT if k in (3, 5, 6) else STRAIGHT) + shift)
    keys = {time: np.concatenate(points) for time, points in keys.items()}
    prim = add_curves(stage, keys, [4] * 8)
    op = prim.AddTranslateOp()
    op.Set(Gf.Vec3d(0.0, 0.1, 0.0), 1)
    op.Set(Gf.Vec3d(0.2, 0.0, 0.3), 2)
    eye = EYE + (0.05, -0.1, 0.2)
    stage.GetPrimAtPath("/Camera").GetAttribute("xformOp:translate").Set(Gf.Vec3d(*eye), 2)
    stage.GetPrimAtPath("/Camera").GetAttribute("xformOp:translate").Set(Gf.Vec3d(*EYE), 1)
    frame = picture(stage)
    then, now = axes(frame, keys)
    expected, found = moved(frame, then - now - (0.2, -0.1, 0.3), eye=eye)
    assert set(frame["elementId"][frame["primId"] == 0]) == set(range(8))
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_sensors_and_syncs_have_the_bits_of_a_fresh_picture(stage):
    """Over a path of several times, with the same frame gone on with, and at rest after."""
    rng = np.random.default_rng(4)
    bends = [STRAIGHT, BENT, [(0, 0, 0), (0, 0.5, 0), (-0.4, 1.0, 0.2), (-0.2, 1.6, -0.2)], STRAIGHT]
    add_curves(stage, {time: np.concatenate([bends[(k + time) % 4] for k in range(4)]) for time in (1, 2, 3, 4)}, [4] * 4)
    add_points(stage, {time: (rng.uniform(-1, 1, (5 + time, 3)), rng.permutation(9)[: 5 + time].tolist()) for time in (1, 2, 3, 4)})
    with hdwarp.Scene(stage, device="cpu", time=1.0) as scene:
        camera = hdwarp.SensorCamera(scene, cameras="/Camera", resolution=SIZE)
        out = camera.allocate(["motion", "primId"])
        for time in (2.0, 3.0, 4.0):
            scene.sync(time)
            camera.update(scene.state(), out)
            fresh = picture(stage, time=time, previous=time - 1)
            assert out["motion"].numpy()[0].tobytes() == fresh["motion"].tobytes()
            assert all(fresh["motion"][fresh["primId"] == prim].any() for prim in (0, 1))
        others = np.concatenate([bends[k] for k in (1, 2, 0, 1)]).astype(np.float32)
        UsdGeom.BasisCurves(stage.GetPrimAtPath("/Curves")).GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(others), 4)
        scene.sync(4.0, advance=False)
        camera.update(scene.state(), out)
        again = picture(stage, time=4.0, previous=3.0)["motion"]
        assert out["motion"].numpy()[0].tobytes() == again.tobytes() != fresh["motion"].tobytes()
        scene.sync(4.0)
        camera.update(scene.state(), out)
        assert not out["motion"].numpy().any()


def test_four_thousand_hairs_that_sway(stage):
    """Most are cut otherwise from one time to the next; each of their pixels moves as its place of the hair."""
    rng = np.random.default_rng(1)
    count = 4000
    root, phase = rng.uniform((-1.5, 0, -1), (1.5, 0, 0.5), (count, 3)), rng.uniform(0, 6.3, (count, 1))
    s = np.linspace(0, 1, 4)

    def swayed(time):
        points = np.zeros((count, 4, 3))
        points[:, :, 0] = root[:, :1] + 0.6 * np.sin(0.3 * time + phase) * s**2
        points[:, :, 1] = 1.6 * s - 0.2 * s**2
        points[:, :, 2] = root[:, 2:] + 0.2 * np.cos(0.4 * time + phase) * s**3
        return points.reshape(-1, 3)

    keys = {1: swayed(1), 2: swayed(2)}
    add_curves(stage, keys, [4] * count, width=0.01)
    size = (320, 240)
    frame = picture(stage, size=size)
    then, now = axes(frame, keys)
    expected, found = moved(frame, then - now, size=size)
    assert len(found) > 30_000 and (found != 0).any(axis=1).all()
    np.testing.assert_allclose(found, expected, atol=1e-2)


def test_points_that_come_and_go_are_known_by_their_ids(stage):
    rng = np.random.default_rng(2)
    then, now = rng.uniform((-1, 0, -1), (1.6, 1.8, 0), (30, 3)), rng.uniform((-1, 0, -1), (1.6, 1.8, 0), (40, 3))
    ids_then, ids = rng.permutation(50)[:30], rng.permutation(50)[:40]
    add_points(stage, {1: (then, ids_then.tolist()), 2: (now, ids.tolist())})
    frame = picture(stage)
    element = frame["elementId"][frame["primId"] == 0]
    place = dict(zip(ids_then.tolist(), then, strict=True))
    shift = np.array([place.get(int(ids[k]), now[k]) - now[k] for k in element])
    expected, found = moved(frame, shift)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    new = np.array([int(ids[k]) not in place for k in element])
    assert new.sum() > 100 and not found[new].any()
    assert len({int(k) for k in element[~new]}) > 10 and (np.abs(found[~new]).max(axis=1) > 1).mean() > 0.9


@pytest.mark.parametrize("more", [0, 1])
def test_points_without_ids_are_known_by_their_number(stage, more):
    """While there are as many; where there are more, nothing tells which were which, and they rest."""
    now = np.array([(0, 0.5, 0), (0.8, 0.5, 0), (0, 1.2, 0)])
    then = np.concatenate((now + [(0.1, 0, 0), (0, 0.1, 0), (0, 0.1, 0.3)], np.zeros((more, 3))))
    add_points(stage, {1: (then, None), 2: (now, None)})
    prim = UsdGeom.Points(stage.GetPrimAtPath("/Points"))
    prim.GetWidthsAttr().Set([0.4, 0.4, 0.0, 0.4][: 3 + more], 1)
    prim.GetWidthsAttr().Set([0.4, 0.4, 0.4], 2)
    prim.SetWidthsInterpolation("vertex")
    frame = picture(stage)
    element = frame["elementId"][frame["primId"] == 0]
    shift = (then[:3] - now)[element]
    shift[element == 2] = 0.0  # it had no ball
    expected, found = moved(frame, np.zeros_like(shift) if more else shift)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert set(element) == {0, 1, 2} and not found[element == 2].any() and found.any() != more
