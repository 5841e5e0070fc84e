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
