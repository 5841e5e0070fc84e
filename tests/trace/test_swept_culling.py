"""Points and curves with their backs culled, by packets and ray by ray: from within and from behind, against closed forms."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from hdwarp.stage.columns import GeometryKind

_spec = importlib.util.spec_from_file_location("swept_scene", Path(__file__).with_name("swept_scene.py"))
swept_scene = sys.modules["swept_scene"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(swept_scene)
tools, Swept, SweptScene = swept_scene.tools, swept_scene.Swept, swept_scene.SweptScene
CAMERAS, TUBE, camera_at, ring = swept_scene.CAMERAS, swept_scene.TUBE, swept_scene.camera_at, swept_scene.ring
cylinder, traced = swept_scene.cylinder, swept_scene.traced


def torus(camera, big=1.0, small=0.3):
    """(rays, 4) t where the rays of a camera cross a torus about z, rising, inf where they do not, and whether they enter there: roots of
    a quartic, in float64. (rays,) bool: no root hangs on rounding."""
    o, d = (v.reshape(-1, 3) for v in np.broadcast_arrays(*camera.rays()))
    t, enters, sure = np.full((len(d), 4), np.inf), np.zeros((len(d), 4), bool), np.zeros(len(d), bool)
    for i in range(len(d)):
        square = np.array([d[i] @ d[i], 2 * (o[i] @ d[i]), o[i] @ o[i] + big**2 - small**2])  # of t^2, t, 1
        flat = np.array([d[i, :2] @ d[i, :2], 2 * (o[i, :2] @ d[i, :2]), o[i, :2] @ o[i, :2]])
        quartic = np.polysub(np.polymul(square, square), 4 * big**2 * flat)
        roots = np.roots(quartic)
        real = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
        sure[i] = (np.abs(roots.imag[np.abs(roots.imag) >= 1e-9]) > 1e-2).all() and (np.diff(real) > 1e-2).all()
        t[i, : len(real)], enters[i, : len(real)] = real, np.polyval(np.polyder(quartic), real) < 0
    return t, enters, sure


@pytest.mark.parametrize("way", ["packets", "rays"])
def test_within_a_ring_culling_shows_what_rays_enter_next(way, monkeypatch, device):
    """Rays from within a torus first leave it, and then may enter it on the far side. What culling shows is where they do."""
    turn = tools.look_at((1.0, 0, 0), (0, 0.2, 0.1))
    camera = tools.perspective(40, 30, eye=(1.0, 0.05, 0.1), turn=turn, focal=0.6, near=1e-3)
    t, enters, sure = torus(camera)
    culled, whole = np.where(enters & (t > 0), t, np.inf).min(1), np.where(t > 0, t, np.inf).min(1)
    assert sure.mean() > 0.9
    assert 100 < np.isfinite(culled[sure]).sum() < sure.sum() - 100 and np.isfinite(whole[sure]).all()
    for single_sided, expected in ((True, culled), (False, whole)):
        scene = SweptScene(ring(), [tools.Instance(np.eye(3), single_sided=single_sided)], device=device)
        image = traced(scene, camera, way, monkeypatch)
        np.testing.assert_array_equal(image.hit.ravel()[sure], np.isfinite(expected[sure]))
        seen = sure & np.isfinite(expected)
        np.testing.assert_allclose(image.t.ravel()[seen], expected[seen], rtol=2e-4)


@pytest.mark.parametrize("way", ["packets", "rays"])
@pytest.mark.parametrize("what", ["tube", "ball"])
def test_within_one_thing_culling_shows_nothing(what, way, monkeypatch, device):
    """And without it, where rays leave: a cylinder's side or disc, a ball."""
    camera = tools.perspective(40, 30, eye=(0.1, -0.2, 0.3), turn=tools.rotation((1, 2, 3), 1.9), focal=0.5, near=1e-3)
    if what == "tube":
        swept, expected = swept_scene.tubes(TUBE, np.full((1, 4), 0.5)), cylinder(camera)[1]
    else:
        o, d = np.broadcast_arrays(*camera.rays())
        swept = Swept(GeometryKind.POINTS, np.zeros((1, 3)), np.ones(1))
        b, dd = (o * d).sum(-1), (d * d).sum(-1)
        expected = (-b + np.sqrt(b * b - dd * ((o * o).sum(-1) - 1))) / dd
    culled = SweptScene(swept, [tools.Instance(np.eye(3), single_sided=True)], device=device)
    assert not traced(culled, camera, way, monkeypatch).hit.any()
    image = traced(SweptScene(swept, device=device), camera, way, monkeypatch)
    assert image.hit.all()
    np.testing.assert_allclose(image.t, expected, rtol=2e-5)


@pytest.mark.parametrize("way", ["packets", "rays"])
@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("side", [1, -1], ids=["from above", "from below"])
def test_culling_looks_through_the_backs_of_ribbons(side, kind, way, monkeypatch, device):
    """Two strips of 2 x 1, the lower (z = 0) faces up, the upper (z = 1) down: from above culling shows the lower, at 3, from below the
    upper, at 4. Without it the nearer one is there, at 2 and at 3."""
    x, y = np.linspace(-1, 1, 4), np.array([-0.5, 0.5])[:, None]
    strip = np.stack(np.broadcast_arrays(x, y, 0.0), -1)  # (2, 4, 3): along x from one edge to the other, +y: faces +z
    edges = np.stack([strip, strip[::-1] + [0, 0, 1]])
    swept = Swept(GeometryKind.RIBBONS, edges.reshape(-1, 3), None, np.full(2, 16))
    camera = getattr(tools, kind)(64, 48, eye=(0, 0, 3.0 * side), turn=tools.rotation((1, 0, 0), 0.0 if side > 0 else np.pi))
    shown = {True: (3.0, 0) if side > 0 else (4.0, 1), False: (2.0, 1) if side > 0 else (3.0, 0)}
    o, d = np.broadcast_arrays(*camera.rays())
    for single_sided, (t, strip_number) in shown.items():
        scene = SweptScene(swept, [tools.Instance(np.eye(3), single_sided=single_sided)], device=device)
        image = traced(scene, camera, way, monkeypatch)
        p = np.abs((o + d * t)[..., :2] / (1.0, 0.5))
        within = (p < 0.99).all(-1)
        assert within.sum() > 100
        assert (image.triangle[within] == strip_number).all()
        np.testing.assert_allclose(image.t[within], t, rtol=1e-6)


def test_culling_changes_nothing_seen_from_without(device):
    for swept in (ring(), Swept(GeometryKind.POINTS, np.array([[1.0, 0, 0]]), np.array([0.3]))):
        culled = SweptScene(swept, [tools.Instance(np.eye(3), single_sided=True)], device=device).trace(camera_at("perspective"))[0]
        whole = SweptScene(swept, device=device).trace(camera_at("perspective"))[0]
        assert whole.hit.sum() > 100
        assert culled.bits() == whole.bits()
