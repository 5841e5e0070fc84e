"""The surface once more, in float64 NumPy, from the formulas of the papers: shapes broadcast, colours are the last axis."""

from __future__ import annotations

import numpy as np


def schlick(cosine):
    return (1.0 - np.clip(cosine, 0.0, 1.0)) ** 5


def facets(alpha, n_h):
    """Trowbridge and Reitz (1975), as in Walter et al. (2007), equation 33."""
    return alpha**2 / (np.pi * (n_h**2 * (alpha**2 - 1.0) + 1.0) ** 2)


def smith(alpha, n_l, n_v):
    """Heitz (2014), equations 72 and 99: G2 = 1 / (1 + Lambda(l) + Lambda(v))."""

    def hidden(cosine):
        return 0.5 * (np.sqrt(1.0 + alpha**2 * (1.0 / cosine**2 - 1.0)) - 1.0)

    return 1.0 / (1.0 + hidden(n_l) + hidden(n_v))


def lobe(roughness, n_l, n_v, n_h):
    """D G / (4 n_l n_v) n_l."""
    alpha = np.clip(roughness, 0.05, 1.0) ** 2
    return facets(alpha, n_h) * smith(alpha, n_l, n_v) / (4.0 * n_v)


def reflected(diffuse, f0, f90, roughness, clearcoat, clearcoat_roughness, n_l, n_v, n_h, v_h, diffuse_weight=1.0, specular_weight=1.0):
    """(..., 3): BRDF times n_l; 0 where n_l <= 0."""
    n_l, n_v, n_h, v_h = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (n_l, n_v, n_h, v_h)))
    lit = n_l > 0.0
    diffuse, f0, f90 = (np.asarray(x, np.float64) for x in (diffuse, f0, f90))
    passes = (1.0 - clearcoat * (0.04 + 0.96 * schlick(n_l))) * (1.0 - clearcoat * (0.04 + 0.96 * schlick(n_v)))
    left = (1.0 - f0) * (1.0 - f90 * schlick(n_l)[..., None]) * (1.0 - f90 * schlick(n_v)[..., None])
    matt = diffuse / np.pi * left * (passes * n_l)[..., None]
    n_l, n_v = np.clip(n_l, 1e-30, 1.0), np.clip(n_v, 1e-4, 1.0)  # highlights have views no nearer to the horizon
    fresnel = f0 + (f90 - f0) * schlick(v_h)[..., None]
    under = fresnel * (passes * lobe(roughness, n_l, n_v, n_h))[..., None]
    over = clearcoat * (0.04 + 0.96 * schlick(v_h)) * lobe(clearcoat_roughness, n_l, n_v, n_h)
    return np.where(lit[..., None], diffuse_weight * matt + specular_weight * (under + over[..., None]), 0.0)


def halfway(l: np.ndarray, v: np.ndarray) -> np.ndarray:
    h = l + v
    return h / np.linalg.norm(h, axis=-1, keepdims=True)


def lobes(base, metallic=0.0, ior=1.5, specular_color=None):
    """(..., 3) three times: diffuse, F0, F90 of a UsdPreviewSurface as its specification has them, of colours and numbers from 0 to 1;
    ``specular_color``: in the specular workflow. Dielectrics of less than 0.02 fade to nothing at ior 1."""
    base = np.asarray(base, np.float64)
    if specular_color is not None:
        return base, np.broadcast_to(np.asarray(specular_color, np.float64), base.shape), np.ones_like(base)
    zero = ((1.0 - ior) / (1.0 + ior)) ** 2
    tint, square_on = 1.0 + (base - 1.0) * metallic, zero + (1.0 - zero) * metallic
    return base * (1.0 - metallic), tint * square_on, tint * min(square_on / 0.02, 1.0)


def mirrored(roughness, n_v):
    """(a, b): GGX facets give back a F0 + b F90 of light from everywhere: the fit that is in use, once more. How near it is to the integral
    of `lobe` is a test of its own."""
    a, n = np.clip(roughness, 0.05, 1.0) ** 2, np.asarray(n_v, np.float64)
    in_n = [
        np.polynomial.Polynomial(c)(a)
        for c in (
            (0.8711, 0.5657, -0.9919, 0.4874),
            (0.7617, -9.0537, 14.0946, -7.6199),
            (-1.1371, 16.969, -31.706, 18.0958),
            (0.5131, -8.5689, 16.9983, -9.9749),
        )
    ]
    whole = np.clip(sum(c * n**k for k, c in enumerate(in_n)), 0.0, 1.0)
    edge = schlick(n) / (1.0 + 14.8 * a * (1.0 - n) ** 3) * (1.0318 - 0.5158 * a + n * (0.7073 - 2.0198 * a))
    edge = np.clip(edge, 0.0, 1.0)
    return np.maximum(whole - edge, 0.0), edge


def reflected_around(diffuse, f0, f90, roughness, clearcoat, clearcoat_roughness, n_v):
    """(..., 3): radiance towards v of a radiance of 1 from everywhere. Of the matt lobe it is the integral: 1 - F90 s(l) counts
    1 - F90 / 21, as 2 x (1 - x)^5 has 1/21 under it from 0 to 1."""
    n_v = np.clip(np.asarray(n_v, np.float64), 1e-4, 1.0)
    diffuse, f0, f90 = (np.asarray(x, np.float64) for x in (diffuse, f0, f90))
    (a, b), (coat_a, coat_b) = mirrored(roughness, n_v), mirrored(clearcoat_roughness, n_v)
    passes = (1.0 - 0.04 * clearcoat) * (1.0 - clearcoat * (0.04 + 0.96 * schlick(n_v)))
    matt = diffuse * (1.0 - f0) * (1.0 - f90 * schlick(n_v)[..., None]) * (1.0 - f90 / 21.0)
    under = matt + f0 * np.asarray(a)[..., None] + f90 * np.asarray(b)[..., None]
    return np.minimum(under * passes[..., None] + (clearcoat * (0.04 * coat_a + coat_b))[..., None], 1.0)


CAMERA, DOME = 0.65, 0.35  # of white paper that faces the camera: radiance by the camera's light, and by its dome


def camera_light(base, n_v, *, roughness=0.5, clearcoat=0.0, clearcoat_roughness=0.01, occlusion=1.0, **inputs):
    """(..., 3): radiance of surfaces ``base`` (..., 3), seen at cosines ``n_v`` (...), where nothing but the camera lights them. The other
    arguments are inputs of UsdPreviewSurface, by default those of surfaces without material too; ``inputs``: of `lobes`."""
    n_v = np.clip(np.asarray(n_v, np.float64), 1e-4, 1.0)
    surface = (*lobes(np.broadcast_to(np.asarray(base, np.float64), (*n_v.shape, 3)), **inputs), roughness, clearcoat, clearcoat_roughness)
    return np.pi * CAMERA * reflected(*surface, n_v, n_v, n_v, 1.0) + DOME * occlusion * reflected_around(*surface, n_v)
