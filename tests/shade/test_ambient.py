"""Light alike from everywhere: the func against its twin, against integrals of the lobes, and in white furnaces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import warp as wp

from hdwarp.shade import ambient
from hdwarp.shade.lighting import HEADLIGHT, SOFT_DOME
from hdwarp.shade.surface import coat_passes

BASE = (0.8, 0.4, 0.1)
VIEWS = np.array([0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0], np.float32)


@wp.kernel(enable_backward=False)
def _around(
    diffuse: wp.vec3f,
    f0: wp.vec3f,
    f90: wp.vec3f,
    roughness: wp.float32,
    clearcoat: wp.float32,
    clearcoat_roughness: wp.float32,
    n_v: wp.array[wp.float32],
    out: wp.array[wp.vec3f],
):
    i = wp.tid()
    under = coat_passes(clearcoat, 1.0, n_v[i])
    whole = ambient.bare_around(diffuse, f0, f90, roughness, n_v[i]) * under
    coat = ambient.coat_around(clearcoat, clearcoat_roughness, n_v[i])
    out[i] = wp.vec3f(wp.min(whole[0] + coat, 1.0), wp.min(whole[1] + coat, 1.0), wp.min(whole[2] + coat, 1.0))


def around(diffuse, f0, f90, roughness, clearcoat=0.0, clearcoat_roughness=0.01, n_v=VIEWS) -> np.ndarray:
    """(views, 3)"""
    colours = [wp.vec3f(*np.broadcast_to(c, 3).astype(float)) for c in (diffuse, f0, f90)]
    cosines = wp.array(n_v, dtype=wp.float32, device="cpu")
    out = wp.empty(len(n_v), dtype=wp.vec3f, device="cpu")
    wp.launch(_around, len(n_v), inputs=[*colours, roughness, clearcoat, clearcoat_roughness, cosines], outputs=[out], device="cpu")
    return out.numpy()


def facets_around(roughness: float, n_v: float, twin, count: int = 400) -> tuple[float, float]:
    """(a, b) by the sum over ``count`` squared facets, drawn as GGX has them: what mirrors into the ground is lost."""
    u, w = (x.ravel() for x in np.meshgrid((np.arange(count) + 0.5) / count, (np.arange(count) + 0.5) / count))
    alpha = max(roughness, 0.05) ** 2
    z = np.sqrt((1 - w) / (1 + (alpha**2 - 1) * w))
    h = np.stack([np.sqrt(1 - z * z) * np.cos(2 * np.pi * u), np.sqrt(1 - z * z) * np.sin(2 * np.pi * u), z], axis=-1)
    v = np.array([np.sqrt(1 - n_v * n_v), 0.0, n_v])
    v_h = h @ v
    n_l = 2 * v_h * z - n_v
    seen = (v_h > 0) & (n_l > 0)
    n_l, v_h, z = n_l[seen], v_h[seen], z[seen]
    # lobe / density of l, which is D z / (4 v_h)
    weight = twin.lobe(roughness, n_l, n_v, z) / (twin.facets(alpha, z) * z / (4 * v_h)) / count**2
    fresnel = twin.schlick(v_h)
    return float((weight * (1 - fresnel)).sum()), float((weight * fresnel).sum())


def test_the_camera_light_adds_up_to_white_paper(surface_twin):
    """Its two parts, which the twin has too."""
    assert (HEADLIGHT, SOFT_DOME) == (surface_twin.CAMERA, surface_twin.DOME) == (0.65, 0.35)
    assert surface_twin.camera_light(1.0, np.ones(1), ior=1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("clearcoat", [(0.0, 0.01), (0.7, 0.3)])
@pytest.mark.parametrize("roughness", [0.0, 0.2, 0.5, 1.0])
def test_float32_is_the_float64_twin(roughness, clearcoat, surface_twin):
    right = surface_twin.reflected_around(BASE, (0.5, 0.2, 0.0), (1.0,) * 3, roughness, *clearcoat, VIEWS.astype(np.float64))
    np.testing.assert_allclose(around(BASE, (0.5, 0.2, 0.0), 1.0, roughness, *clearcoat), right, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("roughness", [0.1, 0.3, 0.5, 0.7, 1.0])
def test_facets_are_near_their_integral(roughness, surface_twin):
    """Both shares are a fit: good from in front, fair from the side, and never far off."""
    for n_v in VIEWS:
        near = 0.04 if n_v > 0.3 else 0.07 if n_v > 0.09 else 0.12
        a, b = facets_around(roughness, float(n_v), surface_twin)
        one = np.array([n_v], np.float32)
        assert around(0.0, 1.0, 0.0, roughness, n_v=one)[0, 0] == pytest.approx(a, abs=near), n_v
        assert around(0.0, 0.0, 1.0, roughness, n_v=one)[0, 0] == pytest.approx(b, abs=near), n_v


def test_the_matt_lobe_is_its_integral(surface_twin):
    """Under a coat too, nearly: there the share of light that gets in is that of light from above."""
    n_l = (np.arange(20000) + 0.5) / 20000
    for f0, f90, n_v in itertools.product((0.0, 0.3), (0.0, 1.0), (0.1, 0.5, 1.0)):
        if f0 > f90:
            continue
        lit = surface_twin.reflected(BASE, (f0,) * 3, (f90,) * 3, 0.5, 0.0, 0.01, n_l, n_v, 1.0, 1.0, specular_weight=0.0)
        right = 2 * np.pi * lit.mean(axis=0)
        one = np.array([n_v], np.float32)
        lobe = around(BASE, f0, f90, 0.5, n_v=one)[0] - around(0.0, f0, f90, 0.5, n_v=one)[0]
        np.testing.assert_allclose(lobe, right, rtol=2e-4, atol=1e-6)


def test_a_white_furnace_gains_nothing():
    for diffuse, f0, f90, roughness, coat in itertools.product(
        (0.0, 1.0), (0.0, 0.04, 0.5, 1.0), (0.0, 1.0), (0.0, 0.3, 0.6, 1.0), (0.0, 1.0)
    ):
        for coat_roughness in (0.01, 0.5, 1.0):
            seen = around(diffuse, f0, max(f0, f90), roughness, coat, coat_roughness, np.linspace(0.001, 1.0, 50, dtype=np.float32))
            assert seen.min() >= 0.0 and seen.max() <= 1.0 + 1e-6, (diffuse, f0, f90, roughness, coat, coat_roughness)
    assert around(1.0, 0.0, 0.0, 0.5) == pytest.approx(1.0, rel=1e-6)  # white paper gives all back
    assert around(0.0, 1.0, 1.0, 0.1)[-5:] == pytest.approx(1.0, abs=0.04)  # and so does a mirror
