"""shade.surface: what a UsdPreviewSurface reflects: matt, GGX and clearcoat, as funcs of cosines that a loop over lanes can call.

Names: l towards the light, v towards the eye, n the normal, h halfway between l and v; ``n_l`` is the cosine between n and l. What comes
out is per irradiance square on l, so the cosine ``n_l`` is in it. Neither a lobe nor their sum reflects more than it receives.
"""

from __future__ import annotations

import warp as wp

MIN_ROUGHNESS = wp.constant(0.05)  # below it a float32 cosine no longer tells where in the highlight it is
COAT_AT_ZERO = wp.constant(0.04)  # what clearcoat reflects square on: ior 1.5
_FAINT = wp.constant(0.02)  # dielectrics that reflect less square on (ior below 1.33) reflect less at the edge too: ior 1 shows nothing
_GRAZING = wp.constant(1.0e-4)  # cosine below which views count as this


@wp.func
def fresnel_zero(ior: wp.float32) -> wp.float32:
    """What a surface without metal reflects square on; ``ior`` below 0 counts as 0."""
    i = wp.max(ior, 0.0)
    root = (1.0 - i) / (1.0 + i)
    return root * root


@wp.func
def mixed(a: wp.vec3f, b: wp.vec3f, share: wp.float32) -> wp.vec3f:
    return a + (b - a) * share


@wp.func
def within_one(colour: wp.vec3f) -> wp.vec3f:
    return wp.vec3f(wp.clamp(colour[0], 0.0, 1.0), wp.clamp(colour[1], 0.0, 1.0), wp.clamp(colour[2], 0.0, 1.0))


@wp.func
def specular_at_zero(
    base: wp.vec3f, metallic: wp.float32, specular_color: wp.vec3f, use_specular_workflow: wp.int32, ior: wp.float32
) -> wp.vec3f:
    """F0, 0 to 1: specularColor, or from ior, tinted and brightened to the base colour as it becomes metal."""
    m = wp.clamp(metallic, 0.0, 1.0)
    tint = mixed(wp.vec3f(1.0), base, m)
    zero = fresnel_zero(ior)
    metal = tint * (zero + (1.0 - zero) * m)
    return within_one(wp.where(use_specular_workflow != 0, specular_color, metal))


@wp.func
def specular_at_edge(
    base: wp.vec3f, metallic: wp.float32, specular_color: wp.vec3f, use_specular_workflow: wp.int32, ior: wp.float32
) -> wp.vec3f:
    """F90, 0 to 1: white, or the base colour of metals. A dielectric of hardly any ior fades out: ior 1 is a purely matt surface."""
    m = wp.clamp(metallic, 0.0, 1.0)
    zero = fresnel_zero(ior)
    there = wp.min((zero + (1.0 - zero) * m) / _FAINT, 1.0)
    metal = mixed(wp.vec3f(1.0), base, m) * there
    return within_one(wp.where(use_specular_workflow != 0, wp.vec3f(1.0), metal))


@wp.func
def diffuse_part(base: wp.vec3f, metallic: wp.float32, use_specular_workflow: wp.int32) -> wp.vec3f:
    """Colour of the matt lobe, 0 to 1; metals have none."""
    share = wp.where(use_specular_workflow != 0, 1.0, 1.0 - wp.clamp(metallic, 0.0, 1.0))
    return within_one(base) * share


@wp.func
def schlick(cosine: wp.float32) -> wp.float32:
    """How far from F0 to F90: (1 - cosine)^5."""
    x = 1.0 - wp.clamp(cosine, 0.0, 1.0)
    return x * x * x * x * x


@wp.func
def ggx_alpha(roughness: wp.float32) -> wp.float32:
    r = wp.clamp(roughness, MIN_ROUGHNESS, 1.0)
    return r * r


@wp.func
def ggx(alpha: wp.float32, n_l: wp.float32, n_v: wp.float32, n_h: wp.float32) -> wp.float32:
    """GGX facets with height-correlated Smith shadowing, n_l in it, without Fresnel: D G / (4 n_v). ``n_v`` above 0."""
    a2 = alpha * alpha
    spread = (1.0 - n_h) * (1.0 + n_h) + n_h * n_h * a2  # exact near the peak, where 1 - n_h^2 (1 - a2) would cancel
    facets = a2 / (wp.PI * spread * spread)
    towards = n_v * wp.sqrt(n_l * n_l * (1.0 - a2) + a2)
    back = n_l * wp.sqrt(n_v * n_v * (1.0 - a2) + a2)
    return 0.5 * facets * n_l / (towards + back)


@wp.func
def coat_passes(clearcoat: wp.float32, n_l: wp.float32, n_v: wp.float32) -> wp.float32:
    """Share of light that clearcoat lets through on its way in and out."""
    coat = wp.clamp(clearcoat, 0.0, 1.0)
    inwards = 1.0 - coat * (COAT_AT_ZERO + (1.0 - COAT_AT_ZERO) * schlick(n_l))
    outwards = 1.0 - coat * (COAT_AT_ZERO + (1.0 - COAT_AT_ZERO) * schlick(n_v))
    return inwards * outwards


@wp.func
def matt(diffuse: wp.vec3f, f0: wp.vec3f, f90: wp.vec3f, clearcoat: wp.float32, n_l: wp.float32, n_v: wp.float32) -> wp.vec3f:
    """The matt lobe's BRDF [1/sr], n_l not in it: Lambert's, less what specular and clearcoat took on the way in and on the way out.

    Square on it is diffuse (1 - F0) / pi. Its two factors, not one of v_h, are what keeps the sum of lobes below 1 at grazing views.
    """
    s_l, s_v = schlick(n_l), schlick(n_v)
    under = (1.0 / wp.PI) * coat_passes(clearcoat, n_l, n_v)
    one = wp.vec3f(1.0)
    left = wp.cw_mul(one - f0, wp.cw_mul(one - f90 * s_l, one - f90 * s_v))
    return wp.cw_mul(diffuse, left) * under


@wp.func
def highlight(
    f0: wp.vec3f,
    f90: wp.vec3f,
    roughness: wp.float32,
    clearcoat: wp.float32,
    clearcoat_roughness: wp.float32,
    n_l: wp.float32,
    n_v: wp.float32,
    n_h: wp.float32,
    v_h: wp.float32,
    spread: wp.vec2f,
) -> wp.vec3f:
    """The specular and clearcoat lobes, n_l in them, of light from around one direction.

    ``spread``: half the width and half the height of the light, as seen from here (its size over its distance), (0, 0): a point. A lobe is
    as bright as if the light had made its facets that much rougher, as in Karis's representative points.
    """
    l, v = wp.clamp(n_l, 0.0, 1.0), wp.clamp(n_v, _GRAZING, 1.0)
    h = wp.clamp(n_h, 0.0, 1.0)
    s = schlick(v_h)
    coat = wp.clamp(clearcoat, 0.0, 1.0) * (COAT_AT_ZERO + (1.0 - COAT_AT_ZERO) * s)
    alpha, coat_alpha = ggx_alpha(roughness), ggx_alpha(clearcoat_roughness)
    under = ggx(alpha, l, v, h) * widened(alpha, spread) * coat_passes(clearcoat, n_l, n_v)
    over = ggx(coat_alpha, l, v, h) * widened(coat_alpha, spread) * coat
    return mixed(f0, f90, s) * under + wp.vec3f(over)


@wp.func
def widened(alpha: wp.float32, spread: wp.vec2f) -> wp.float32:
    """By what a highlight's peak becomes lower as a light of ``spread`` widens it; 1 for a point."""
    return alpha * alpha / ((alpha + 0.5 * spread[0]) * (alpha + 0.5 * spread[1]))


@wp.func
def reflected(
    diffuse: wp.vec3f,
    f0: wp.vec3f,
    f90: wp.vec3f,
    roughness: wp.float32,
    clearcoat: wp.float32,
    clearcoat_roughness: wp.float32,
    n_l: wp.float32,
    n_v: wp.float32,
    n_h: wp.float32,
    v_h: wp.float32,
    diffuse_weight: wp.float32,
    specular_weight: wp.float32,
) -> wp.vec3f:
    """Radiance towards v of light from one direction, per irradiance square on that direction: BRDF times n_l; 0 from behind.

    ``diffuse``, ``f0``, ``f90`` from 0 to 1, as `diffuse_part` and the others give them; the weights are the light's multipliers.
    """
    lobes = highlight(f0, f90, roughness, clearcoat, clearcoat_roughness, n_l, n_v, n_h, v_h, wp.vec2f())
    return matt(diffuse, f0, f90, clearcoat, n_l, n_v) * (wp.max(n_l, 0.0) * diffuse_weight) + lobes * specular_weight


@wp.func
def reflected_towards_light(
    diffuse: wp.vec3f,
    f0: wp.vec3f,
    f90: wp.vec3f,
    roughness: wp.float32,
    clearcoat: wp.float32,
    clearcoat_roughness: wp.float32,
    n_v: wp.float32,
    diffuse_weight: wp.float32,
    specular_weight: wp.float32,
) -> wp.vec3f:
    """`reflected` for a light at the eye."""
    return reflected(diffuse, f0, f90, roughness, clearcoat, clearcoat_roughness, n_v, n_v, n_v, 1.0, diffuse_weight, specular_weight)
