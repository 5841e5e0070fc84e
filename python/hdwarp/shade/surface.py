"""shade.surface: what a UsdPreviewSurface reflects: matt, GGX and clearcoat, as funcs of cosines that a loop over lanes can call.

Names: l towards the light, v towards the eye, n the normal, h halfway between l and v; ``n_l`` is the cosine between n and l. What comes
out is per irradiance square on l, so the cosine ``n_l`` is in it. Neither a lobe nor their sum reflects more than it receives.

Colours are taken apart and put together by hand: arithmetic on vectors is a loop of its own, which keeps lanes from becoming SIMD code.
"""

from __future__ import annotations

import warp as wp

from hdwarp.shade.lane_math import angle

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
def mixed(a: wp.float32, b: wp.float32, share: wp.float32) -> wp.float32:
    return a + (b - a) * share


@wp.func
def within_one(x: wp.float32) -> wp.float32:
    return wp.clamp(x, 0.0, 1.0)


@wp.func
def specular_at_zero(
    base: wp.vec3f, metallic: wp.float32, specular_color: wp.vec3f, use_specular_workflow: wp.int32, ior: wp.float32
) -> wp.vec3f:
    """F0, 0 to 1: specularColor, or from ior, tinted and brightened to the base colour as it becomes metal."""
    m = within_one(metallic)
    square_on = mixed(fresnel_zero(ior), 1.0, m)
    own = use_specular_workflow != 0
    r = wp.where(own, specular_color[0], mixed(1.0, base[0], m) * square_on)
    g = wp.where(own, specular_color[1], mixed(1.0, base[1], m) * square_on)
    b = wp.where(own, specular_color[2], mixed(1.0, base[2], m) * square_on)
    return wp.vec3f(within_one(r), within_one(g), within_one(b))


@wp.func
def specular_at_edge(
    base: wp.vec3f, metallic: wp.float32, specular_color: wp.vec3f, use_specular_workflow: wp.int32, ior: wp.float32
) -> wp.vec3f:
    """F90, 0 to 1: white, or the base colour of metals. A dielectric of hardly any ior fades out: ior 1 is a purely matt surface."""
    own = use_specular_workflow != 0
    m = wp.where(own, 0.0, within_one(metallic))
    there = wp.where(own, 1.0, wp.min(mixed(fresnel_zero(ior), 1.0, m) / _FAINT, 1.0))
    r, g, b = mixed(1.0, base[0], m), mixed(1.0, base[1], m), mixed(1.0, base[2], m)
    return wp.vec3f(within_one(r * there), within_one(g * there), within_one(b * there))


@wp.func
def diffuse_part(base: wp.vec3f, metallic: wp.float32, use_specular_workflow: wp.int32) -> wp.vec3f:
    """Colour of the matt lobe, 0 to 1; metals have none."""
    share = wp.where(use_specular_workflow != 0, 1.0, 1.0 - within_one(metallic))
    return wp.vec3f(within_one(base[0]) * share, within_one(base[1]) * share, within_one(base[2]) * share)


@wp.func
def schlick(cosine: wp.float32) -> wp.float32:
    """How far from F0 to F90: (1 - cosine)^5."""
    x = 1.0 - within_one(cosine)
    return x * x * x * x * x


@wp.func
def ggx_alpha(roughness: wp.float32) -> wp.float32:
    r = wp.clamp(roughness, MIN_ROUGHNESS, 1.0)
    return r * r


@wp.func
def facets(alpha: wp.float32, n_h: wp.float32, disc: wp.float32, spine: wp.float32) -> wp.float32:
    """GGX's D at ``n_h``, or its mean over facets that mirror a light: of slopes within ``disc`` (its squared radius), anywhere along
    ``spine`` (half its length). The mean over a disc is a closed form, for light of a lamp ``alpha`` above a plane falls as slopes do.
    """
    h2, a2 = n_h * n_h, alpha * alpha
    about = (1.0 - n_h) * (1.0 + n_h) + h2 * a2  # exact near the peak, where 1 - n_h^2 (1 - a2) would cancel
    b = about - h2 * disc
    q = 4.0 * h2 * h2 * disc * a2
    r = wp.sqrt(b * b + q)
    mean = 2.0 * a2 / (wp.PI * r * wp.where(b < 0.0, q / (r - b), r + b))
    x = wp.max(spine / wp.sqrt(a2 + disc), 1.0e-4)
    thin = 0.5 / (1.0 + x * x) + 0.5 * angle(x, 1.0) / x  # exact where there is only a spine; where only the disc is wide, an ellipse
    return mean * wp.where(spine > 0.0, mixed(thin, 1.0 / (1.0 + x), disc / (a2 + disc)), 1.0)


@wp.func
def shadowed(alpha: wp.float32, n_l: wp.float32, n_v: wp.float32) -> wp.float32:
    """Height-correlated Smith shadowing: G / (4 n_v). ``n_v`` above 0."""
    a2 = alpha * alpha
    towards = n_v * wp.sqrt(n_l * n_l * (1.0 - a2) + a2)
    back = n_l * wp.sqrt(n_v * n_v * (1.0 - a2) + a2)
    return 0.5 * n_l / (towards + back)


@wp.func
def coat_passes(clearcoat: wp.float32, n_l: wp.float32, n_v: wp.float32) -> wp.float32:
    """Share of light that clearcoat lets through on its way in and out."""
    coat = within_one(clearcoat)
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
    r = (1.0 - f0[0]) * (1.0 - f90[0] * s_l) * (1.0 - f90[0] * s_v)
    g = (1.0 - f0[1]) * (1.0 - f90[1] * s_l) * (1.0 - f90[1] * s_v)
    b = (1.0 - f0[2]) * (1.0 - f90[2] * s_l) * (1.0 - f90[2] * s_v)
    return wp.vec3f(diffuse[0] * r * under, diffuse[1] * g * under, diffuse[2] * b * under)


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

    ``spread``: the light's size over its distance: half the length of its spine, on which the direction is, and its radius about that;
    (0, 0): a point.
    """
    l, v = within_one(n_l), wp.clamp(n_v, _GRAZING, 1.0)
    h = within_one(n_h)
    s = schlick(v_h)
    coat = within_one(clearcoat) * (COAT_AT_ZERO + (1.0 - COAT_AT_ZERO) * s)
    alpha, coat_alpha = ggx_alpha(roughness), ggx_alpha(clearcoat_roughness)
    # A facet turns by half as much as what it mirrors, and across the plane of l and v by 1 / v_h more.
    disc, spine = 0.25 * spread[1] * spread[1] / wp.max(v_h, 0.05), 0.5 * spread[0]
    under = facets(alpha, h, disc, spine) * shadowed(alpha, l, v) * coat_passes(clearcoat, n_l, n_v)
    over = facets(coat_alpha, h, disc, spine) * shadowed(coat_alpha, l, v) * coat
    r, g, b = mixed(f0[0], f90[0], s), mixed(f0[1], f90[1], s), mixed(f0[2], f90[2], s)
    return wp.vec3f(r * under + over, g * under + over, b * under + over)


@wp.func
def facets_towards(alpha: wp.float32, n_h: wp.float32) -> wp.float32:
    """`facets` of light from a point: GGX's D."""
    a2 = alpha * alpha
    about = (1.0 - n_h) * (1.0 + n_h) + n_h * n_h * a2
    return a2 / (wp.PI * about * about)


@wp.func
def bare_reflected(
    diffuse: wp.vec3f,
    f0: wp.vec3f,
    f90: wp.vec3f,
    roughness: wp.float32,
    n_l: wp.float32,
    n_v: wp.float32,
    n_h: wp.float32,
    v_h: wp.float32,
    diffuse_weight: wp.float32,
    specular_weight: wp.float32,
) -> wp.vec3f:
    """`reflected` without clearcoat."""
    l, v = within_one(n_l), wp.clamp(n_v, _GRAZING, 1.0)
    alpha, s = ggx_alpha(roughness), schlick(v_h)
    d = matt(diffuse, f0, f90, 0.0, n_l, n_v)
    weight = l * diffuse_weight
    glint = facets_towards(alpha, within_one(n_h)) * shadowed(alpha, l, v) * specular_weight
    r, g, b = mixed(f0[0], f90[0], s), mixed(f0[1], f90[1], s), mixed(f0[2], f90[2], s)
    return wp.vec3f(d[0] * weight + r * glint, d[1] * weight + g * glint, d[2] * weight + b * glint)


@wp.func
def coat_reflected(
    clearcoat: wp.float32, clearcoat_roughness: wp.float32, n_l: wp.float32, n_v: wp.float32, n_h: wp.float32, v_h: wp.float32
) -> wp.float32:
    """The clearcoat lobe of light from one direction."""
    alpha = ggx_alpha(clearcoat_roughness)
    fresnel = within_one(clearcoat) * (COAT_AT_ZERO + (1.0 - COAT_AT_ZERO) * schlick(v_h))
    return facets_towards(alpha, within_one(n_h)) * shadowed(alpha, within_one(n_l), wp.clamp(n_v, _GRAZING, 1.0)) * fresnel


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
    bare = bare_reflected(diffuse, f0, f90, roughness, n_l, n_v, n_h, v_h, diffuse_weight, specular_weight)
    under = coat_passes(clearcoat, n_l, n_v)
    over = coat_reflected(clearcoat, clearcoat_roughness, n_l, n_v, n_h, v_h) * specular_weight
    return wp.vec3f(bare[0] * under + over, bare[1] * under + over, bare[2] * under + over)
