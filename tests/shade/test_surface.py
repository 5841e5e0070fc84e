"""What UsdPreviewSurface reflects: the funcs against a float64 twin, reciprocity, the white furnace, and limits known by heart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import warp as wp

from hdwarp.shade import surface

BASE = (0.8, 0.4, 0.1)


@wp.kernel(enable_backward=False)
def _reflected(
    diffuse: wp.vec3f,
    f0: wp.vec3f,
    f90: wp.vec3f,
    roughness: wp.float32,
    clearcoat: wp.float32,
    clearcoat_roughness: wp.float32,
    weights: wp.vec2f,
    cosines: wp.array[wp.vec4f],
    towards: wp.array[wp.vec3f],
    out: wp.array[wp.vec3f],
):
    i = wp.tid()
    c = cosines[i]
    out[i] = surface.reflected(diffuse, f0, f90, roughness, clearcoat, clearcoat_roughness, c[0], c[1], c[2], c[3], weights[0], weights[1])
    v, w = c[1], weights
    towards[i] = surface.reflected(diffuse, f0, f90, roughness, clearcoat, clearcoat_roughness, v, v, v, 1.0, w[0], w[1])


@wp.kernel(enable_backward=False)
def _inputs(
    base: wp.vec3f,
    specular: wp.vec3f,
    workflow: wp.int32,
    metallic: wp.array[wp.float32],
    ior: wp.array[wp.float32],
    out: wp.array2d[wp.vec3f],
):
    i = wp.tid()
    out[i, 0] = surface.diffuse_part(base, metallic[i], workflow)
    out[i, 1] = surface.specular_at_zero(base, metallic[i], specular, workflow, ior[i])
    out[i, 2] = surface.specular_at_edge(base, metallic[i], specular, workflow, ior[i])


def reflect(material: dict, cosines: np.ndarray, weights=(1.0, 1.0)) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) of (n, 4) cosines n_l, n_v, n_h, v_h, and of a light at the eye."""
    out = wp.empty(len(cosines), dtype=wp.vec3f, device="cpu")
    towards = wp.empty_like(out)
    numbers = (material["roughness"], material["clearcoat"], material["clearcoat_roughness"])
    colours = [wp.vec3f(*material[name]) for name in ("diffuse", "f0", "f90")]
    cosines = wp.array(np.asarray(cosines, np.float32), dtype=wp.vec4f, device="cpu")
    wp.launch(_reflected, len(cosines), inputs=[*colours, *numbers, wp.vec2f(*weights), cosines], outputs=[towards, out], device="cpu")
    return out.numpy(), towards.numpy()


def inputs(metallic, ior, *, base=BASE, specular=(0.2, 0.3, 0.4), workflow=0) -> np.ndarray:
    """(n, 3, 3): diffuse, F0, F90 of surfaces."""
    metallic, ior = np.broadcast_arrays(np.asarray(metallic, np.float32), np.asarray(ior, np.float32))
    columns = [wp.array(x.ravel(), dtype=wp.float32, device="cpu") for x in (metallic, ior)]
    out = wp.empty((metallic.size, 3), dtype=wp.vec3f, device="cpu")
    wp.launch(_inputs, metallic.size, inputs=[wp.vec3f(*base), wp.vec3f(*specular), workflow, *columns], outputs=[out], device="cpu")
    return out.numpy()


def surface_of(diffuse=(0.0,) * 3, f0=(0.0,) * 3, f90=(0.0,) * 3, roughness=0.5, clearcoat=0.0, clearcoat_roughness=0.01) -> dict:
    names = ("diffuse", "f0", "f90", "roughness", "clearcoat", "clearcoat_roughness")
    return dict(zip(names, (diffuse, f0, f90, roughness, clearcoat, clearcoat_roughness), strict=True))


def directions(rng, count: int) -> np.ndarray:
    """(count, 3) all over the hemisphere, some of them grazing."""
    z = rng.random(count) ** 2
    phi = 2 * np.pi * rng.random(count)
    return np.stack([np.sqrt(1 - z * z) * np.cos(phi), np.sqrt(1 - z * z) * np.sin(phi), z], axis=-1)


def cosines_of(l: np.ndarray, v: np.ndarray, twin) -> np.ndarray:
    h = twin.halfway(l, v)
    return np.stack([l[:, 2], v[:, 2] * np.ones(len(l)), h[:, 2], (v * h).sum(axis=1)], axis=-1)


MATERIALS = {
    "matt": surface_of(diffuse=BASE),
    "plastic": surface_of(diffuse=BASE, f0=(0.04,) * 3, f90=(1.0,) * 3, roughness=0.3),
    "metal": surface_of(f0=BASE, f90=BASE, roughness=0.1),
    "mirror": surface_of(f0=(1.0,) * 3, f90=(1.0,) * 3, roughness=0.0),
    "tinted": surface_of(diffuse=BASE, f0=(0.5, 0.2, 0.0), f90=(1.0,) * 3, roughness=1.0),
    "coated": surface_of(diffuse=BASE, f0=(0.04,) * 3, f90=(1.0,) * 3, roughness=0.6, clearcoat=0.7, clearcoat_roughness=0.2),
}


@pytest.mark.parametrize("name", MATERIALS)
def test_float32_is_the_float64_twin(name, surface_twin):
    """Cosines that both get are the same float32 numbers, so that only the arithmetic differs."""
    rng = np.random.default_rng(1)
    cosines = cosines_of(directions(rng, 4000), directions(rng, 4000), surface_twin).astype(np.float32)
    cosines[:50, 0] = -cosines[:50, 0]  # from behind
    got, towards = reflect(MATERIALS[name], cosines, (0.7, 1.3))
    n_l, n_v, n_h, v_h = cosines.T.astype(np.float64)
    weights = {"diffuse_weight": 0.7, "specular_weight": 1.3}
    right = surface_twin.reflected(**MATERIALS[name], n_l=n_l, n_v=n_v, n_h=n_h, v_h=v_h, **weights)
    np.testing.assert_allclose(got, right, rtol=3e-5, atol=1e-6)
    assert (got[:50] == 0.0).all() and (got[50:] > 0.0).any()
    at_eye = surface_twin.reflected(**MATERIALS[name], n_l=n_v, n_v=n_v, n_h=n_v, v_h=1.0, **weights)
    np.testing.assert_allclose(towards, at_eye, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("name", MATERIALS)
def test_light_and_eye_may_change_places(name, surface_twin):
    rng = np.random.default_rng(2)
    l, v = directions(rng, 2000), directions(rng, 2000)
    keep = (l[:, 2] > 0.01) & (v[:, 2] > 0.01)
    there, back = cosines_of(l[keep], v[keep], surface_twin), cosines_of(v[keep], l[keep], surface_twin)
    one, other = reflect(MATERIALS[name], there)[0] / there[:, :1], reflect(MATERIALS[name], back)[0] / back[:, :1]
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-7)


def strata(count: int) -> tuple[np.ndarray, np.ndarray]:
    """(count * count,) twice: middles of squares."""
    u, v = np.meshgrid((np.arange(count) + 0.5) / count, (np.arange(count) + 0.5) / count)
    return u.ravel(), v.ravel()


def albedo(material: dict, n_v: float, twin, count: int = 32) -> np.ndarray:
    """(3,) share of light from everywhere that leaves towards v: 1024 directions drawn as each lobe likes, balanced."""
    u, w = strata(count)
    v = np.array([np.sqrt(1 - n_v * n_v), 0.0, n_v])
    phi = 2 * np.pi * u
    drawn = [np.stack([np.sqrt(w) * np.cos(phi), np.sqrt(w) * np.sin(phi), np.sqrt(1 - w)], axis=-1)]
    alphas = [max(material[name], 0.05) ** 2 for name in ("roughness", "clearcoat_roughness")]
    for alpha in alphas:
        z = np.sqrt((1 - w) / (1 + (alpha**2 - 1) * w))
        h = np.stack([np.sqrt(1 - z * z) * np.cos(phi), np.sqrt(1 - z * z) * np.sin(phi), z], axis=-1)
        drawn.append(2 * (h @ v)[:, None] * h - v)
    l = np.concatenate(drawn)
    cosines = cosines_of(l, v[None], twin)
    density = np.maximum(cosines[:, 0], 0.0) / np.pi
    for alpha in alphas:
        density += twin.facets(alpha, cosines[:, 2]) * cosines[:, 2] / (4 * np.maximum(cosines[:, 3], 1e-9))
    return (reflect(material, cosines)[0] / np.maximum(density, 1e-12)[:, None]).sum(axis=0) / count**2


VIEWS = (0.01, 0.05, 0.2, 0.5, 0.8, 1.0)
REFLECTING = ((0.0, 0.0), (0.0, 1.0), (0.02, 1.0), (0.04, 1.0), (0.3, 1.0), (1.0, 1.0))  # F0, F90 of the three channels at a time


@pytest.mark.parametrize("clearcoat", [(0.0, 0.01), (0.5, 0.3), (1.0, 0.01), (1.0, 0.3), (1.0, 1.0)])
def test_a_white_furnace_gains_nothing(clearcoat, surface_twin):
    """In light of 1 from everywhere no surface is brighter than 1, for either workflow, at 1024 samples a lobe."""
    for roughness, view, diffuse, half in itertools.product((0.0, 0.2, 0.5, 1.0), VIEWS, (0.0, 1.0), (0, 3)):
        f0, f90 = np.transpose(REFLECTING[half : half + 3])
        material = surface_of((diffuse,) * 3, f0, f90, roughness, *clearcoat)
        assert albedo(material, view, surface_twin).max() < 1.01, (material, view)


def test_a_furnace_gives_back_what_there_is(surface_twin):
    """A mirror gives all back, a matt surface its colour, a dielectric of 0.04 square on nearly all: black would not pass."""
    mirror = surface_of(f0=(1.0,) * 3, f90=(1.0,) * 3, roughness=0.1)
    assert albedo(mirror, 0.8, surface_twin) == pytest.approx([1.0] * 3, abs=0.01)
    assert albedo(surface_of(diffuse=BASE), 0.5, surface_twin) == pytest.approx(BASE, abs=0.01)
    plastic = surface_of((1.0,) * 3, (0.04,) * 3, (1.0,) * 3, 0.2)
    assert 0.94 < albedo(plastic, 1.0, surface_twin)[0] < 1.0
    glossy = surface_of(f0=(0.04,) * 3, f90=(1.0,) * 3, roughness=0.05)
    assert albedo(glossy, 1.0, surface_twin) == pytest.approx([0.04] * 3, rel=0.02)


@pytest.mark.parametrize("workflow", [0, 1])
def test_furnace_of_surfaces_by_their_inputs(workflow, surface_twin):
    """White base colours: what the inputs become, not only the lobes, keeps within 1."""
    grid = np.array(list(itertools.product((0.0, 0.5, 1.0), (1.0, 1.05, 1.2, 1.5, 3.0))))
    for diffuse, f0, f90 in inputs(*grid.T, base=(1.0, 0.5, 0.0), specular=(0.0, 0.5, 1.0), workflow=workflow):
        for roughness, view in itertools.product((0.1, 0.4, 1.0), VIEWS):
            assert albedo(surface_of(diffuse, f0, f90, roughness), view, surface_twin).max() < 1.01


def test_square_on_is_known_by_heart():
    """Everything square on: diffuse (1 - F0) / pi + F0 / (4 pi alpha^2)."""
    material = surface_of((0.5,) * 3, (0.04,) * 3, (1.0,) * 3, 0.5)
    got, towards = reflect(material, [[1.0, 1.0, 1.0, 1.0]])
    right = 0.5 * 0.96 / np.pi + 0.04 / (4 * np.pi * 0.25**2)
    assert got[0] == pytest.approx([right] * 3, rel=1e-5) and towards[0] == pytest.approx([right] * 3, rel=1e-5)


def test_inputs_become_what_the_specification_says():
    (diffuse, f0, f90), (metal_diffuse, metal_f0, metal_f90), (half_diffuse, half_f0, half_f90) = inputs([0.0, 1.0, 0.5], 1.5)
    assert diffuse == pytest.approx(BASE) and f0 == pytest.approx([0.04] * 3) and f90 == pytest.approx([1.0] * 3)
    assert metal_diffuse == pytest.approx([0.0] * 3) and metal_f0 == pytest.approx(BASE) and metal_f90 == pytest.approx(BASE)
    tint = 0.5 + 0.5 * np.array(BASE)
    assert half_diffuse == pytest.approx(0.5 * np.array(BASE)) and half_f90 == pytest.approx(tint)
    assert half_f0 == pytest.approx(0.5 * (0.04 * tint + tint))
    ((diffuse, f0, f90),) = inputs([1.0], 1.5, workflow=1)  # metallic is not of this workflow
    assert diffuse == pytest.approx(BASE) and f0 == pytest.approx([0.2, 0.3, 0.4]) and f90 == pytest.approx([1.0] * 3)


def test_ior_of_one_is_purely_matt():
    ((diffuse, f0, f90),) = inputs([0.0], 1.0)
    assert (f0 == 0.0).all() and (f90 == 0.0).all()
    cosines = np.array([[x, y, 0.9, 0.5] for x in (0.1, 0.6, 1.0) for y in (0.001, 0.5, 1.0)])
    np.testing.assert_allclose(reflect(surface_of(diffuse, f0, f90), cosines)[0], np.outer(cosines[:, 0], BASE) / np.pi, rtol=1e-6)
    ((_, at_water, edge_at_water),) = inputs([0.0], 1.33)
    assert at_water == pytest.approx([(0.33 / 2.33) ** 2] * 3, rel=1e-5) and edge_at_water == pytest.approx([1.0] * 3)


def test_nothing_is_infinite():
    """Cosines of 0, 1 and beyond, roughness beyond its range, colours beyond theirs."""
    edges = np.array(list(itertools.product((-1.0, 0.0, 1e-7, 1.0, 1.0000002), repeat=4)))
    for roughness in (-1.0, 0.0, 1.0, 7.0):
        material = surface_of((1.0,) * 3, (0.04,) * 3, (1.0,) * 3, roughness, 2.0, roughness)
        got, towards = reflect(material, edges)
        assert np.isfinite(got).all() and np.isfinite(towards).all() and (got >= 0.0).all() and (towards >= 0.0).all()
    odd = inputs([-1.0, 2.0, 0.0, 0.0], [1.5, 1.5, -1.0, 1e30], base=(-1.0, 0.5, 7.0))
    assert np.isfinite(odd).all() and odd.min() >= 0.0 and odd.max() <= 1.0
