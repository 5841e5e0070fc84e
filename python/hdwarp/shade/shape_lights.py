"""shade.shape_lights: what a surface reflects of one light that is no point: closed forms for matt surfaces, representative points for
highlights; of a dome its irradiance and its blurred pictures."""

from __future__ import annotations

import warp as wp

from hdwarp.shade.ambient import mirrored
from hdwarp.shade.area_lights import LightForm, irradiance
from hdwarp.shade.domes import dome_irradiance, dome_reflection, light_picture
from hdwarp.shade.light_highlights import light_highlight
from hdwarp.shade.surface import COAT_AT_ZERO, coat_passes, ggx_alpha, highlight, matt, schlick
from hdwarp.tables.structs import RECT_LIGHT, DomeTables

_WHOLE = wp.constant(64.0)  # level of a picture that is one colour


@wp.struct
class Surface:
    """A surface as light meets it."""

    normal: wp.vec3f
    viewer: wp.vec3f  # the direction towards him
    n_v: wp.float32
    diffuse: wp.vec3f
    f0: wp.vec3f
    f90: wp.vec3f
    roughness: wp.float32
    coat: wp.float32
    coat_roughness: wp.float32


@wp.func
def mirror_way(surface: Surface) -> wp.vec3f:
    return surface.normal * (2.0 * wp.dot(surface.normal, surface.viewer)) - surface.viewer


@wp.func
def on_picture(form: LightForm, to_light: wp.vec3f, way: wp.vec3f) -> wp.vec2f:
    """(s, t) of the point of a RECT light in direction ``way``."""
    slope = wp.dot(form.shines, way)
    t = wp.dot(form.shines, to_light) / wp.where(wp.abs(slope) > 1.0e-20, slope, 1.0e-20)
    point = way * t - to_light
    across = wp.dot(point, form.x) / wp.max(wp.dot(form.x, form.x), 1.0e-30)
    upward = wp.dot(point, form.y) / wp.max(wp.dot(form.y, form.y), 1.0e-30)
    return wp.vec2f(0.5 - 0.5 * across, 0.5 - 0.5 * upward)  # its lower left corner is at (+x, +y)


@wp.func
def reflected_shape(
    form: LightForm,
    domes: DomeTables,
    picture: wp.int32,
    to_light: wp.vec3f,
    surface: Surface,
    of_diffuse: wp.float32,
    of_specular: wp.float32,
) -> wp.vec3f:
    """Radiance towards the viewer of a light of radiance 1 (POINT, LINE: see LightKind) whose middle is at ``to_light``."""
    around = irradiance(form, to_light, surface.normal)
    # Fresnel looks at how slanting the light comes on the whole.
    n_l = wp.clamp(wp.max(wp.dot(surface.normal, wp.normalize(to_light)), around / wp.pi), 0.0, 1.0)
    lit = matt(surface.diffuse, surface.f0, surface.f90, surface.coat, n_l, surface.n_v) * (around * of_diffuse)
    way, spread, strength = light_highlight(form, to_light, mirror_way(surface))
    half = wp.normalize(way + surface.viewer)
    glint = highlight(
        surface.f0,
        surface.f90,
        surface.roughness,
        surface.coat,
        surface.coat_roughness,
        wp.dot(surface.normal, way),
        surface.n_v,
        wp.dot(surface.normal, half),
        wp.dot(surface.viewer, half),
        spread,
    ) * (strength * of_specular)
    if picture >= 0 and form.kind == RECT_LIGHT:
        at = on_picture(form, to_light, way)
        lit = wp.cw_mul(lit, light_picture(domes, picture, 0.5, 0.5, _WHOLE))
        glint = wp.cw_mul(glint, light_picture(domes, picture, at[0], at[1], 8.0 * surface.roughness))
    return lit + glint


@wp.func
def reflected_sky(
    domes: DomeTables, dome: wp.int32, linear: wp.mat33f, surface: Surface, of_diffuse: wp.float32, of_specular: wp.float32
) -> wp.vec3f:
    """Radiance towards the viewer of a dome of radiance 1, of which ``linear`` is the turn."""
    turn = wp.transpose(linear)
    around = dome_irradiance(domes, dome, wp.normalize(turn * surface.normal))
    s = schlick(surface.n_v)
    one = wp.vec3f(1.0)
    under = coat_passes(surface.coat, 1.0, surface.n_v)
    scatter = wp.cw_mul(wp.cw_mul(surface.diffuse, one - surface.f0), wp.cw_mul(one - surface.f90 * s, one - surface.f90 * (1.0 / 21.0)))
    lit = wp.cw_mul(scatter, around) * (under * of_diffuse / wp.pi)
    way = wp.normalize(turn * mirror_way(surface))
    share = mirrored(ggx_alpha(surface.roughness), surface.n_v)
    glint = wp.cw_mul(surface.f0 * share[0] + surface.f90 * share[1], dome_reflection(domes, dome, way, surface.roughness)) * under
    if surface.coat > 0.0:
        coat_share = mirrored(ggx_alpha(surface.coat_roughness), surface.n_v)
        coat = wp.clamp(surface.coat, 0.0, 1.0) * (coat_share[0] * COAT_AT_ZERO + coat_share[1])
        glint = glint + dome_reflection(domes, dome, way, surface.coat_roughness) * coat
    return lit + glint * of_specular
