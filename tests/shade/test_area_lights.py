"""Light from shapes: textbook cases, sums over very many pieces, horizons; samples of lights; spots; highlights."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.shade.area_lights import irradiance, light_form
from hdwarp.shade.light_highlights import light_highlight
from hdwarp.shade.light_samples import sample_light, shaping
from hdwarp.shade.surface import highlight
from hdwarp.stage.looks import LightKind

EYE = np.eye(3)
ODD = np.array([[1.0, 0.3, 0.0], [0.0, 1.5, 0.2], [0.1, 0.0, 0.7]])
MAPS = {"as it is": EYE, "sheared": ODD, "mirrored": ODD @ np.diag([1.0, 1.0, -1.0]), "turned": EYE[[2, 0, 1]] * 0.8}
UP = (0.0, 0.0, 1.0)  # flat lights shine down -Z: on what lies under them, face up


@wp.kernel(enable_backward=False)
def _irradiances(
    kind: wp.int32,
    size: wp.vec4f,
    linear: wp.mat33f,
    to_light: wp.array[wp.vec3f],
    n: wp.array[wp.vec3f],
    out: wp.array[wp.float32],
):
    i = wp.tid()
    out[i] = irradiance(light_form(kind, size, linear), to_light[i], n[i])


@wp.kernel(enable_backward=False)
def _samples(
    kind: wp.int32,
    size: wp.vec4f,
    linear: wp.mat33f,
    to_light: wp.vec3f,
    uv: wp.array[wp.vec2f],
    directions: wp.array[wp.vec3f],
    distances: wp.array[wp.float32],
    weights: wp.array[wp.float32],
):
    i = wp.tid()
    direction, distance, weight = sample_light(light_form(kind, size, linear), to_light, uv[i][0], uv[i][1])
    directions[i] = direction
    distances[i] = distance
    weights[i] = weight


@wp.kernel(enable_backward=False)
def _highlights(
    kind: wp.int32,
    size: wp.vec4f,
    linear: wp.mat33f,
    to_light: wp.vec3f,
    roughness: wp.float32,
    views: wp.array[wp.vec3f],
    out: wp.array[wp.vec3f],
):
    i = wp.tid()
    v = views[i]
    mirrored = wp.vec3f(-v[0], -v[1], v[2])
    l, spread, strength = light_highlight(light_form(kind, size, linear), to_light, mirrored)
    h = wp.normalize(l + v)
    one = wp.vec3f(1.0)
    out[i] = highlight(one, one, roughness, 0.0, 0.0, l[2], v[2], h[2], wp.dot(v, h), spread) * strength


@wp.kernel(enable_backward=False)
def _shapings(cosines: wp.array[wp.float32], cone: wp.vec4f, tint: wp.vec3f, out: wp.array[wp.vec3f]):
    i = wp.tid()
    out[i] = shaping(cosines[i], cone, tint)


def row(kind: LightKind, size, linear) -> list:
    return [int(kind), wp.vec4f(*size, *[0.0] * (4 - len(size))), wp.mat33f(*np.ravel(linear))]


def received(kind: LightKind, size, to_light, n=UP, linear=EYE) -> np.ndarray:
    """(n,) E / L at places from which the light's centre is at ``to_light`` (n, 3)."""
    to_light, n = np.broadcast_arrays(np.atleast_2d(to_light), np.atleast_2d(n))
    to_light, n = (wp.array(x.astype(np.float32), dtype=wp.vec3f, device="cpu") for x in (to_light, n))
    out = wp.empty(len(n), dtype=wp.float32, device="cpu")
    wp.launch(_irradiances, len(n), inputs=[*row(kind, size, linear), to_light, n], outputs=[out], device="cpu")
    return out.numpy()


def samples(kind: LightKind, size, to_light, linear, uv) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    uv = wp.array(np.asarray(uv, np.float32), dtype=wp.vec2f, device="cpu")
    out = [wp.empty(len(uv), dtype=dtype, device="cpu") for dtype in (wp.vec3f, wp.float32, wp.float32)]
    wp.launch(_samples, len(uv), inputs=[*row(kind, size, linear), wp.vec3f(*to_light), uv], outputs=out, device="cpu")
    return tuple(x.numpy().astype(np.float64) for x in out)


def unit(x) -> np.ndarray:
    return np.asarray(x) / np.linalg.norm(x, axis=-1, keepdims=True)


def test_overhead_as_in_textbooks():
    """Sphere pi r^2 / d^2, disk pi r^2 / (r^2 + d^2), point 1 / d^2, a distant cone pi sin^2, an endless line pi / 2 h."""
    for d in (0.6, 1.0, 3.0, 100.0, 1e4):
        assert received(LightKind.SPHERE, [0.5], [0, 0, d])[0] == pytest.approx(np.pi * 0.25 / d**2, rel=1e-5)
        assert received(LightKind.DISK, [0.5], [0, 0, d])[0] == pytest.approx(np.pi * 0.25 / (0.25 + d**2), rel=1e-3)
        assert received(LightKind.POINT, [0.0], [0, 0, d])[0] == pytest.approx(1 / d**2, rel=1e-6)
    sine = np.sin(np.radians(0.265))
    assert received(LightKind.DISTANT, [np.cos(np.radians(0.265)), sine], UP)[0] == pytest.approx(np.pi * sine**2, rel=1e-5)
    assert received(LightKind.DISTANT, [1.0], UP, n=unit([0, 3, 4]))[0] == pytest.approx(0.8)  # without size: its radiance is irradiance
    assert received(LightKind.LINE, [1e4], [0, 0, 2.0])[0] == pytest.approx(np.pi / 4, rel=1e-4)
    assert received(LightKind.CYLINDER, [1e4, 0.5], [0, 0, 2.0])[0] == pytest.approx(np.pi * 0.25, rel=1e-3)  # pi r / h: Howell C-65


def test_a_light_that_fills_the_sky_gives_pi():
    assert received(LightKind.RECT, [1e3, 1e3], [0, 0, 0.1])[0] == pytest.approx(np.pi, rel=1e-3)
    assert received(LightKind.DISK, [1e3], [0, 0, 0.1])[0] == pytest.approx(np.pi, rel=1e-3)
    assert received(LightKind.SPHERE, [1.0], [0, 0, 1.0001])[0] == pytest.approx(np.pi, rel=1e-3)
    assert received(LightKind.DISTANT, [0.0, 1.0], UP)[0] == pytest.approx(np.pi, rel=1e-5)
    assert received(LightKind.DISTANT, [-1.0], UP, n=(0, 0, -1))[0] == pytest.approx(np.pi, rel=1e-5)
    wall = received(LightKind.RECT, [1e4, 1e4], [0, 0, 1.0], n=(1, 0, 0))[0]  # half of it under the horizon, the rest half of the sky
    assert wall == pytest.approx(np.pi / 2, rel=1e-3)


def test_a_rect_in_the_corner_is_known():
    """Howell B-4: a rect a x b at distance c, a corner right above: 1/2 (X/sqrt(1+X^2) atan(Y/sqrt(1+X^2)) + the same, changed round)."""
    a, b, c = 1.5, 0.7, 0.9
    x, y = a / c, b / c
    right = 0.5 * (x / np.hypot(1, x) * np.arctan(y / np.hypot(1, x)) + y / np.hypot(1, y) * np.arctan(x / np.hypot(1, y)))
    assert received(LightKind.RECT, [a, b], [a / 2, b / 2, c])[0] == pytest.approx(right, rel=1e-5)


def test_horizon_of_a_sphere_is_exact():
    """Howell B-44: half of a sphere above the horizon gives atan(1 / sqrt(H^2 - 1)) - sqrt(H^2 - 1) / H^2, H = d / r."""
    for h in (1.05, 1.5, 4.0, 50.0, 1000.0):
        right = np.arctan(1 / np.sqrt(h * h - 1)) - np.sqrt(h * h - 1) / h**2
        assert received(LightKind.SPHERE, [0.3], [0.3 * h, 0, 0])[0] == pytest.approx(right, rel=1e-4)
    assert received(LightKind.SPHERE, [0.3], [1.0, 0.0, -0.301])[0] == 0.0
    assert received(LightKind.SPHERE, [0.3], [1.0, 0.0, 0.301])[0] == pytest.approx(np.pi * 0.09 * 0.301 / (1 + 0.301**2) ** 1.5, rel=1e-4)


@pytest.mark.parametrize("cut", [-0.49, -0.2, 0.0, 0.3, 0.499])
def test_horizon_of_a_rect_is_exact(cut):
    """A wall of which the horizon hides a part gives what the rest gives as a light of its own."""
    standing = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], float)  # x of the light along world y, y along z, shines along -x
    whole = received(LightKind.RECT, [0.8, 1.0], [0.4, 0.1, cut], linear=standing)[0]
    top = cut + 0.5
    rest = received(LightKind.RECT, [0.8, top], [0.4, 0.1, top / 2], linear=standing)[0]
    assert whole == pytest.approx(rest, abs=1e-5) and rest > 0.0
    assert received(LightKind.RECT, [0.8, 1.0], [0.4, 0.1, -0.5001], linear=standing)[0] == 0.0


KINDS = {
    "distant": (LightKind.DISTANT, (0.9,), 1e-3, 0.0),
    "more than half the sky": (LightKind.DISTANT, (-0.4,), 1e-3, 0.0),
    "sphere": (LightKind.SPHERE, (0.5,), 2e-3, 0.0),
    "disk": (LightKind.DISK, (0.6,), 3e-3, 0.004),
    "rect": (LightKind.RECT, (1.0, 0.6), 2e-3, 0.0),
    "long cylinder": (LightKind.CYLINDER, (1.5, 0.3), 0.02, 0.01),
    "short cylinder": (LightKind.CYLINDER, (0.4, 0.5), 0.02, 0.01),
    "line": (LightKind.LINE, (1.5,), 1e-3, 0.0),
}


def places(rng, count: int, linear) -> tuple[np.ndarray, np.ndarray]:
    """(count, 3) to lights and normals, near enough that many a horizon cuts them, outside of all; most where flat ones shine."""
    to_light = unit(rng.normal(size=(count, 3))) * (1.3 + 1.5 * rng.random((count, 1)))
    behind = (np.linalg.inv(linear) @ to_light.T)[2] < 0.0
    to_light[behind & (np.arange(count) % 6 != 0)] *= -1.0
    return to_light, unit(unit(to_light) * rng.uniform(-0.3, 1.0, (count, 1)) + unit(rng.normal(size=(count, 3))))


@pytest.mark.parametrize("shape", KINDS)
@pytest.mark.parametrize("turn", MAPS)
def test_closed_forms_are_sums_over_pieces(shape, turn, light_twin):
    """``relative`` of what falls there, and what is said of polygons near rims, of pi."""
    kind, size, relative, absolute = KINDS[shape]
    to_light, n = places(np.random.default_rng(3), 24, MAPS[turn])
    got = received(kind, size, to_light, n, MAPS[turn])
    right = np.array([light_twin.irradiance(kind, size, MAPS[turn], *place) for place in zip(to_light, n, strict=True)])
    np.testing.assert_allclose(got, right, rtol=relative, atol=absolute * np.pi + 2e-4)
    assert (right > 0.03).sum() >= 6 and (got[right == 0.0] < 1e-4).all()
    assert np.abs(got - right).mean() < 0.004 * right.mean()


@pytest.mark.parametrize("kind", [LightKind.SPHERE, LightKind.DISK, LightKind.RECT, LightKind.CYLINDER, LightKind.LINE])
def test_far_lights_are_points(kind, light_twin):
    """Neither contours nor caps cancel away in float32: inverse square from 20 to 1e5 metres, odd maps and all."""
    size = {LightKind.RECT: (0.1, 0.2), LightKind.CYLINDER: (0.3, 0.1), LightKind.LINE: (0.3,)}.get(kind, (0.1,))
    way, n = unit([1.0, 2.0, 3.0]), unit([0.2, -0.1, 1.0])
    at_20 = light_twin.irradiance(kind, size, ODD, 20 * way, n)
    reach = np.geomspace(20, 1e5, 40)
    np.testing.assert_allclose(received(kind, size, reach[:, None] * way, n, ODD) * reach**2, at_20 * 400, rtol=5e-3)


def test_flat_lights_have_one_side_and_round_ones_no_inside():
    for kind, size in ((LightKind.RECT, [1, 1]), (LightKind.DISK, [0.5])):
        assert received(kind, size, [0, 0, -1.0], n=(0, 0, -1))[0] == 0.0
        assert received(kind, size, [0, 0, 1.0])[0] > 0.5
        assert received(kind, size, [0.7, 0, 0.0], n=unit([1, 0, 1]))[0] == 0.0  # edge-on
        assert received(kind, size, [0, 0, 1.0], linear=np.diag([1, 1, -1]))[0] == 0.0  # mirrored, it shines up
        assert received(kind, size, [0, 0, 1.0], linear=np.diag([-1, 1, 1]))[0] > 0.5
    for kind, size, linear in ((LightKind.SPHERE, [1.0], EYE), (LightKind.SPHERE, [1.0], ODD), (LightKind.CYLINDER, [2.0, 1.0], EYE)):
        assert received(kind, size, [0.1, 0.2, 0.1], linear=linear)[0] == 0.0


def test_lights_without_area_or_distance_give_finite_light():
    for kind in (k for k in LightKind if k not in (LightKind.DOME, LightKind.MESH)):
        for size in ([0.0, 0.0], [1.0, 0.0], [1e-20, 1e-20]):
            for linear in (EYE, np.zeros((3, 3)), np.diag([1.0, 0.0, 0.0]), np.diag([1.0, 1.0, 0.0])):
                to_light = np.array([[0, 0, 1.0], [0, 0, 0], [1, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [1e-10, 0, 0]])
                assert np.isfinite(received(kind, size, to_light, UP, linear)).all(), (kind, size, linear)
                for place in to_light:
                    way, _, weight = samples(kind, size, place, linear, [[0.3, 0.6], [0, 0], [1, 1]])
                    assert np.isfinite(way).all() and np.isfinite(weight).all() and (weight >= 0.0).all(), (kind, size, linear, place)


def strata(rng, count: int) -> np.ndarray:
    u, v = np.meshgrid(np.arange(count), np.arange(count))
    return (np.stack([u.ravel(), v.ravel()], axis=-1) + rng.random((count * count, 2))) / count


@pytest.mark.parametrize("shape", [*KINDS, "point"])
@pytest.mark.parametrize("turn", MAPS)
def test_samples_add_up_to_the_irradiance(shape, turn, light_twin):
    """Monte Carlo with 16,384 jittered directions against the sum over pieces, under horizons too."""
    kind, size = KINDS[shape][:2] if shape != "point" else (LightKind.POINT, (0.0,))
    rng = np.random.default_rng(4)
    for to_light, n in zip(*places(rng, 8, MAPS[turn]), strict=True):
        way, _, weight = samples(kind, size, to_light, MAPS[turn], strata(rng, 128))
        if kind == LightKind.POINT:
            right = max(np.dot(to_light, n), 0.0) / np.linalg.norm(to_light) ** 3
        else:
            right = light_twin.irradiance(kind, size, MAPS[turn], to_light, n)
        assert (weight * np.maximum(way @ n, 0.0)).mean() == pytest.approx(right, rel=4e-3, abs=2e-3)
        np.testing.assert_allclose(np.linalg.norm(way, axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("turn", MAPS)
def test_samples_lie_on_their_lights(turn):
    """Direction times distance, back in the light's own space; on the side that is seen."""
    to_light, linear = np.array([0.7, -1.1, 1.9]), MAPS[turn]
    uv = strata(np.random.default_rng(5), 16)

    def own(kind, size):
        way, distance, weight = samples(kind, size, to_light, linear, uv)
        return (way * distance[:, None] - to_light) @ np.linalg.inv(linear).T, weight

    viewer = -np.linalg.inv(linear) @ to_light
    p, weight = own(LightKind.SPHERE, [0.5])
    np.testing.assert_allclose(np.linalg.norm(p, axis=1), 0.5, rtol=2e-3)
    assert (p @ viewer > 0.249).all() and (weight > 0.0).all()  # p . viewer >= r^2: before the outline
    p, _ = own(LightKind.DISK, [0.5])
    np.testing.assert_allclose(p[:, 2], 0.0, atol=1e-5)
    assert np.linalg.norm(p, axis=1).max() <= 0.50001 and np.linalg.norm(p, axis=1).max() > 0.48
    p, _ = own(LightKind.RECT, [1.0, 0.6])
    np.testing.assert_allclose(p[:, 2], 0.0, atol=1e-5)
    np.testing.assert_allclose(np.abs(p[:, :2]).max(axis=0), [0.5, 0.3], rtol=0.07)
    p, weight = own(LightKind.CYLINDER, [1.0, 0.3])
    np.testing.assert_allclose(np.hypot(p[:, 1], p[:, 2]), 0.3, rtol=1e-4)
    assert np.abs(p[:, 0]).max() < 0.50001 and (weight > 0.0).all()
    p, _ = own(LightKind.LINE, [1.0])
    np.testing.assert_allclose(p[:, 1:], 0.0, atol=1e-5)
    _, distance, _ = samples(LightKind.DISTANT, [0.99], to_light, linear, uv)
    assert np.isinf(distance).all()


def shaped(degrees, cone, tint=(0.0, 0.0, 0.0)) -> np.ndarray:
    cosines = wp.array(np.cos(np.radians(degrees)).astype(np.float32), dtype=wp.float32, device="cpu")
    out = wp.empty(len(cosines), dtype=wp.vec3f, device="cpu")
    wp.launch(_shapings, len(cosines), inputs=[cosines, wp.vec4f(*cone), wp.vec3f(*tint)], outputs=[out], device="cpu")
    return out.numpy()


def test_spots():
    def cos(x):
        return float(np.cos(np.radians(x)))

    assert shaped([0, 29.9, 30.1, 120], (cos(30), cos(30), 0, 1))[:, 0] == pytest.approx([1, 1, 0, 0])
    soft = shaped([0, 10, 14.9, 20, 25, 30.1], (cos(30), cos(15), 0, 1))[:, 1]  # softness 0.5: fades from 15 to 30 degrees
    t = np.array([0, 0, 0, 1 / 3, 2 / 3, 1])
    assert soft == pytest.approx(1 - t * t * (3 - 2 * t), abs=1e-4)
    focused = shaped([0, 60], (cos(90), cos(90), 3, 1), (1.0, 0.5, 0.0))
    assert focused[0] == pytest.approx([1, 1, 1]) and focused[1] == pytest.approx([1, 0.5 + 0.5 / 8, 1 / 8], rel=1e-4)
    assert shaped([0, 60, 150], (0, 0, 3, 0)) == pytest.approx(np.ones((3, 3)))  # not shaped


def lobes(kind, size, to_light, roughness, views, linear=EYE) -> np.ndarray:
    views = wp.array(np.asarray(views, np.float32), dtype=wp.vec3f, device="cpu")
    out = wp.empty(len(views), dtype=wp.vec3f, device="cpu")
    wp.launch(
        _highlights, len(views), inputs=[*row(kind, size, linear), wp.vec3f(*to_light), roughness, views], outputs=[out], device="cpu"
    )
    return out.numpy()[:, 0]


SHINING = {
    "sphere": (LightKind.SPHERE, (0.5,)),
    "disk": (LightKind.DISK, (0.5,)),
    "rect": (LightKind.RECT, (1.0, 0.7)),
    "cylinder": (LightKind.CYLINDER, (2.0, 0.3)),
}
OFF = {"sphere": 0.05, "disk": 0.2, "rect": 0.3, "cylinder": 0.4}


@pytest.mark.parametrize("shape", SHINING)
def test_a_mirror_shows_the_light(shape):
    """White and as smooth as may be, it shows the light's radiance where its reflection is, nothing beside it."""
    kind, size = SHINING[shape]
    seen = unit([[0.0, 0.0, 1.0], [0.03, 0.02, 1.0]])
    assert lobes(kind, size, [0, 0, 3.0], 0.0, seen) == pytest.approx([1.0, 1.0], abs=0.03)
    assert lobes(kind, size, [0, 0, 3.0], 0.0, unit([[0.5, 0.6, 1.0]]))[0] < 0.01


@pytest.mark.parametrize("shape", SHINING)
@pytest.mark.parametrize("roughness", [0.2, 0.4, 0.7])
def test_highlights_stand_for_the_light(shape, roughness, light_twin, surface_twin):
    """Against sums over its pieces: an approximation, best of round lights; off by at most so much where the highlight is."""
    kind, size = SHINING[shape]
    to_light = np.array([0.6, 0.0, 2.5])
    views = unit([[x, y, 1.0] for x in (-0.6, -0.24, 0.0, 0.4) for y in (-0.3, 0.0)])
    got = lobes(kind, size, to_light, roughness, views)
    points, areas = light_twin.pieces(kind, size, EYE, 300)
    points = points + to_light
    l = unit(points)
    weight = np.maximum(-(l * areas).sum(axis=1), 0.0) / (points**2).sum(axis=1)
    right = []
    for v in views:
        h = surface_twin.halfway(l, v[None])
        f = surface_twin.reflected(np.zeros(3), np.ones(3), np.ones(3), roughness, 0.0, 0.0, l[:, 2], v[2], h[:, 2], h @ v)
        right.append((weight * f[:, 0]).sum())
    right = np.array(right)
    bright = right > 0.2 * right.max()
    assert np.abs(got / right - 1)[bright].max() < OFF[shape] and bright.sum() >= 2
