"""shade.ambient: what a surface reflects of light that comes alike from everywhere."""

from __future__ import annotations

import warp as wp

from hdwarp.shade.surface import COAT_AT_ZERO, ggx_alpha, schlick, within_one


@wp.func
def mirrored(alpha: wp.float32, n_v: wp.float32) -> wp.vec2f:
    """(a, b): GGX facets of ``alpha`` reflect a F0 + b F90 of light from everywhere. Least squares over 20,000 visible facets a node of a
    grid over both; within 0.04 of them from a cosine of 0.3 on, 0.07 from 0.1 on, and 0.12 of near mirrors seen along the surface."""
    n, a = n_v, alpha
    whole = 0.8711 + a * (0.5657 + a * (-0.9919 + a * 0.4874))
    whole += n * (0.7617 + a * (-9.0537 + a * (14.0946 - a * 7.6199)))
    whole += n * n * (-1.1371 + a * (16.969 + a * (-31.706 + a * 18.0958)))
    whole += n * n * n * (0.5131 + a * (-8.5689 + a * (16.9983 - a * 9.9749)))
    rest = 1.0 - n
    edge = schlick(n) / (1.0 + 14.8 * a * rest * rest * rest) * (1.0318 - 0.5158 * a + n * (0.7073 - 2.0198 * a))
    whole, edge = wp.clamp(whole, 0.0, 1.0), wp.clamp(edge, 0.0, 1.0)
    return wp.vec2f(wp.max(whole - edge, 0.0), edge)


@wp.func
def even(diffuse: wp.float32, f0: wp.float32, f90: wp.float32, s: wp.float32) -> wp.float32:
    """What the matt lobe gives back of a radiance of 1 from everywhere: its integral over l, in which 1 - F90 schlick(n_l) counts
    1 - F90 / 21. ``s``: schlick(n_v)."""
    return diffuse * (1.0 - f0) * (1.0 - f90 * s) * (1.0 - f90 * (1.0 / 21.0))


@wp.func
def bare_around(diffuse: wp.vec3f, f0: wp.vec3f, f90: wp.vec3f, roughness: wp.float32, n_v: wp.float32) -> wp.vec3f:
    """Radiance towards the viewer of a radiance of 1 from everywhere, without clearcoat; never more than 1."""
    s, share = schlick(n_v), mirrored(ggx_alpha(roughness), n_v)
    r = even(diffuse[0], f0[0], f90[0], s) + f0[0] * share[0] + f90[0] * share[1]
    g = even(diffuse[1], f0[1], f90[1], s) + f0[1] * share[0] + f90[1] * share[1]
    b = even(diffuse[2], f0[2], f90[2], s) + f0[2] * share[0] + f90[2] * share[1]
    return wp.vec3f(wp.min(r, 1.0), wp.min(g, 1.0), wp.min(b, 1.0))


@wp.func
def coat_around(clearcoat: wp.float32, clearcoat_roughness: wp.float32, n_v: wp.float32) -> wp.float32:
    """What clearcoat reflects of a radiance of 1 from everywhere."""
    share = mirrored(ggx_alpha(clearcoat_roughness), n_v)
    return within_one(clearcoat) * (share[0] * COAT_AT_ZERO + share[1])
