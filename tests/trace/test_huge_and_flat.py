"""Shapes whose picture hangs on digits that float32 lacks: planets with the camera on the ground, sheets flattened to a picometre.

Closed forms in extended precision, of the very matrices that the tables hold. Keys are float32: of two surfaces within `TIE` of each
other, relative to their distance, either may win.
"""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.tables import structs
from hdwarp.trace import ray_bundles, trace_free, trace_rays
from hdwarp.trace.pixel_rays import trace_by_pixels

TIE = 3e-7
CONE, CAPSULE = 3, 4
GROUNDS = [("sphere", 1.0e6), ("sphere", 6.371e6), ("cube", 1.0e6), ("cylinder", 1.0e6), ("capsule", 1.0e6)]
UP = np.array([0.36, -0.48, 0.8])


def exact_inverse(linear: np.ndarray) -> np.ndarray:
    a, b, c = np.asarray(linear, np.float32).astype(np.longdouble).T
    rows = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)])
    return rows / (a @ rows[0])


def ball(o, d, radius=1):
    a, b, c = (d * d).sum(-1), (o * d).sum(-1), (o * o).sum(-1) - radius * radius
    root = np.sqrt(np.where(b * b >= a * c, b * b - a * c, np.nan))
    return c / (root - b)  # from outside: the crossing ahead is the nearer one


def first(i, origin, direction) -> np.ndarray:
    """t where rays from outside enter a sphere, cube, the round side of a cylinder or capsule about z; inf where they miss."""
    inverse = exact_inverse(i.linear)
    o = (origin.astype(np.longdouble) - np.asarray(i.translation, np.longdouble)) @ inverse.T
    d = direction.astype(np.longdouble) @ inverse.T
    with np.errstate(all="ignore"):
        if i.kind == 2:
            one, other = (-1 - o) / d, (1 - o) / d
            entry, leave = np.minimum(one, other).max(-1), np.maximum(one, other).min(-1)
            t = np.where(entry <= leave, entry, np.nan)
        else:
            t = ball(o, d) if i.kind == 1 else ball(o[..., :2], d[..., :2])
        return np.where(t > 0, t, np.inf)


def rays_of(camera) -> tuple[np.ndarray, np.ndarray]:
    y, x = (a[..., None] for a in np.mgrid[: camera.height, : camera.width].astype(float))
    origin = camera.origin + camera.origin_dx * x + camera.origin_dy * y
    direction = camera.direction + camera.direction_dx * x + camera.direction_dy * y
    return origin + 0 * x, direction + 0 * x


def landscape(tools, name, size):
    """The ground, touched by the plane through 0 with normal `UP`, and 40 boxes, 5 cm of each below it."""
    rng = np.random.default_rng(2)
    frame = tools.look_at(UP, (0, 0, 0), up=(0, 1, 0.1))  # its third column is UP
    translation = -size * UP
    if name == "sphere":
        ground = tools.Instance(np.eye(3) * size, translation, kind=tools.SPHERE)
    elif name == "cube":
        ground = tools.Instance(frame * size, translation, kind=tools.CUBE)
    else:  # lying
        shape = (CONE, (1.0, 1.0, 1.0, 0.0)) if name == "cylinder" else (CAPSULE, (1.0, 1.0, 0.7, 0.0))
        ground = tools.Instance(frame[:, [1, 2, 0]] * size, translation, kind=shape[0], shape=shape[1])
    boxes = []
    for distance, angle in zip(np.geomspace(3, 300, 40), rng.uniform(-0.6, 0.6, 40), strict=True):
        at = frame @ (distance * np.sin(angle), distance * np.cos(angle), 0.95 * distance / 40)
        boxes.append(tools.Instance(frame @ tools.rotation((0, 0, 1), angle) * distance / 40, at, kind=tools.CUBE))
    return [*boxes, ground], frame


def settle(instances, origin, direction):
    """Distances, who is nearest, and where a tie is."""
    t = np.stack([first(i, origin, direction) for i in instances])
    order = np.sort(t, axis=0)
    with np.errstate(invalid="ignore"):
        tied = order[1] - order[0] < TIE * order[0]
    return order[0].astype(float), np.where(np.isfinite(order[0]), t.argmin(axis=0), -1), tied


@pytest.mark.parametrize("tracer", ["packets", "pixels"])
@pytest.mark.parametrize("kind", ["perspective", "orthographic"])
@pytest.mark.parametrize(("name", "size"), GROUNDS)
def test_standing_on_a_planet(tools, monkeypatch, name, size, kind, tracer, device):
    """Eye 1.7 m up: nothing sinks into the ground, the horizon is where it belongs, distances are good to float32's last bit."""
    if tracer == "pixels":
        monkeypatch.setattr(tools, "trace", trace_by_pixels)
    instances, frame = landscape(tools, name, size)
    turn = frame @ tools.rotation((1, 0, 0), np.pi / 2 - (0.06 if kind == "perspective" else 0.3))
    eye = frame @ (0.3, 0.0, 1.7)
    if kind == "perspective":
        camera = tools.perspective(320, 240, eye=eye, turn=turn, focal=0.8, near=0.01, far=1e9)
    else:
        camera = tools.orthographic(320, 240, eye=eye + turn[:, 2] * 200.0, turn=turn, size=6.0, near=0.01, far=1e9)
    image = tools.Scene([], instances, device=device).trace(camera)[0]
    t, owner, tied = settle(instances, *rays_of(camera))
    assert tied.mean() < 1e-3
    assert (owner == len(instances) - 1).mean() > 0.2
    assert ((owner >= 0) & (owner < len(instances) - 1)).mean() > 0.03
    assert np.array_equal(image.instance[~tied], owner[~tied])
    np.testing.assert_allclose(image.t[image.hit & ~tied], t[image.hit & ~tied], rtol=TIE)


@pytest.mark.parametrize("way", [trace_free, trace_rays])
@pytest.mark.parametrize(("name", "size"), GROUNDS)
def test_rays_that_are_no_image_on_a_planet(tools, way, name, size, device):
    """Single rays as exactly as the picture; packets place a ray to 1e-7 rad, which shows at edges and where it grazes."""
    instances, frame = landscape(tools, name, size)
    turn = frame @ tools.rotation((1, 0, 0), np.pi / 2 - 0.06)
    camera = tools.perspective(320, 240, eye=frame @ (0.3, 0.0, 1.7), turn=turn, focal=0.8)
    origin, direction = rays_of(camera)
    direction = (direction / np.linalg.norm(direction, axis=-1, keepdims=True)).astype(np.float32)
    scene = tools.Scene([], instances, device=device)
    top = structs.TopLevel()
    top.nodes, top.children = scene.top.nodes, scene.top.children
    bundles = ray_bundles(camera.origin, (240, 320), root=int(scene.top.root[0]), near=0.01, far=1e9, device=device)
    given = wp.array(direction.reshape(-1, 3), dtype=wp.vec3f, device=device)
    arguments = [given] if way is trace_free else [None, given]
    hits = way(bundles, *arguments, scene.columns, scene.rows, top, kinds=scene.kinds, device=device)
    owners, found = (a.numpy().reshape(240, 320) for a in (hits.instance, hits.t))
    t, owner, tied = settle(instances, origin, direction.astype(float))
    wrong = (owners != owner) & ~tied
    t = t * np.linalg.norm(direction.astype(float), axis=-1)
    both = (owner >= 0) & ~wrong & ~tied
    error = np.abs(found[both] / t[both] - 1)
    if way is trace_rays:
        assert not wrong.any()
        assert error.max() < 2 * TIE
    else:
        assert wrong.mean() < 1e-4
        assert error[t[both] < 100.0].max() < 2e-5


FLAT = {
    "sphere": (1, (0.0, 0.0, 0.0, 0.0)),
    "cube": (2, (0.0, 0.0, 0.0, 0.0)),
    "cylinder": (CONE, (1.0, 1.0, 1.0, 0.0)),
    "cone": (CONE, (1.0, 0.0, 1.0, 0.0)),
    "capsule": (CAPSULE, (1.0, 1.0, 0.7, 0.0)),
}


@pytest.mark.parametrize("tracer", ["packets", "pixels"])
@pytest.mark.parametrize("kind", ["perspective", "orthographic"])
@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("scale", [1e-4, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12])
def test_flattened_to_a_sheet(tools, monkeypatch, name, scale, kind, tracer, device):
    """A tilted sheet, 2 m across, seen from 10.3 m: without holes, its rim and its distance those of a disc or square without thickness."""
    if tracer == "pixels":
        monkeypatch.setattr(tools, "trace", trace_by_pixels)
    geometry, shape = FLAT[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        linear = tools.rotation(rng.normal(size=3), 0.5) @ np.diag([1.0, 0.8, scale])
        translation = rng.uniform(-0.2, 0.2, 3)
        options = {"focal": 4.0} if kind == "perspective" else {"size": 2.6}
        camera = getattr(tools, kind)(96, 96, eye=(0.1, 0.0, 10.3), **options)
        scene = tools.Scene([], [tools.Instance(linear, translation, kind=geometry, shape=shape)], device=device)
        image = scene.trace(camera)[0]
        origin, direction = rays_of(camera)
        inverse = exact_inverse(linear)
        o, d = (origin - translation) @ inverse.T, direction @ inverse.T
        t = -o[..., 2] / d[..., 2]
        x, y = o[..., 0] + t * d[..., 0], o[..., 1] + t * d[..., 1]
        margin = 1 - (np.maximum(abs(x), abs(y)) if name == "cube" else np.hypot(x, y))
        sure = np.abs(margin) > 4 * scale + 1e-9
        assert (margin > 0).mean() > 0.2
        assert np.array_equal(image.hit[sure], (margin > 0)[sure])
        assert (image.triangle[image.hit] == 0).all()
        np.testing.assert_allclose(image.t[image.hit], t[image.hit], rtol=TIE, atol=4 * scale)


@pytest.mark.parametrize("scale", [1e-4, 1e-6, 1e-8, 1e-10, 1e-12])
def test_a_ball_turned_then_flattened(tools, scale, device):
    """The same disc, its object axes at an angle to what is flat: stretching back mixes large and small, of which 1e-15 is lost."""
    linear = np.diag([1.0, 1.0, scale]) @ tools.rotation((1, 2, 3), 1.0)
    camera = tools.perspective(96, 96, eye=(0.1, 0.0, 10.3), focal=4.0)
    image = tools.Scene([], [tools.Instance(linear, kind=tools.SPHERE)], device=device).trace(camera)[0]
    origin, direction = rays_of(camera)
    t = -origin[..., 2] / direction[..., 2]
    margin = 1 - np.hypot(*(origin + direction * t[..., None])[..., :2].transpose(2, 0, 1))
    sure = np.abs(margin) > 4 * scale + 1e-6 + 1e-14 / scale
    assert np.array_equal(image.hit[sure], (margin > 0)[sure])
    np.testing.assert_allclose(image.t[image.hit], t[image.hit], rtol=TIE, atol=4 * scale)
