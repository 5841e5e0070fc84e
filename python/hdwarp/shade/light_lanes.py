"""shade.light_lanes: how a block of pixels sees one light, and what its surfaces reflect of it: a loop over lanes for each kind of light.

Which loop runs is decided outside of them: a branch by kind within one would keep it from becoming SIMD code, 10 times slower.
"""

import functools

import warp as wp

from hdwarp.shade.area_lights import (
    LightForm,
    cylinder_irradiance,
    disk_irradiance,
    distant_irradiance,
    ellipsoid_irradiance,
    line_irradiance,
    rect_irradiance,
    sphere_irradiance,
)
from hdwarp.shade.domes import light_picture
from hdwarp.shade.lane_math import dot3, unit3
from hdwarp.shade.light_highlights import cylinder_highlight, distant_highlight, flat_highlight, line_highlight, sphere_highlight
from hdwarp.shade.surface import bare_reflected, coat_passes, coat_reflected, highlight, matt
from hdwarp.shade.surface_lanes import (
    COAT,
    COAT_ROUGH,
    DX,
    DY,
    DZ,
    EB,
    EG,
    ER,
    KB,
    KG,
    KR,
    N_V,
    NX,
    NY,
    NZ,
    ROUGH,
    ZB,
    ZG,
    ZR,
    surface_type,
)
from hdwarp.tables.structs import CYLINDER_LIGHT, DISK_LIGHT, DISTANT_LIGHT, LINE_LIGHT, RECT_LIGHT, SPHERE_LIGHT, DomeTables

_WHOLE = wp.constant(64.0)  # level of a picture that is one colour


# How a place with normal ``n`` sees a light of radiance 1 (LINE: see LightKind): its irradiance, and the direction, spread and strength
# that stand for the light in highlights.


@wp.func
def see_distant(form: LightForm, to_light: wp.vec3f, n: wp.vec3f, mirrored: wp.vec3f):
    way, spread, strength = distant_highlight(form)
    return distant_irradiance(form, n), way, spread, strength


@wp.func
def see_sphere(form: LightForm, to_light: wp.vec3f, n: wp.vec3f, mirrored: wp.vec3f):
    way, spread, strength = sphere_highlight(form, to_light)
    return sphere_irradiance(to_light, form.radius, n), way, spread, strength


@wp.func
def see_ellipsoid(form: LightForm, to_light: wp.vec3f, n: wp.vec3f, mirrored: wp.vec3f):
    way, spread, strength = sphere_highlight(form, to_light)
    return ellipsoid_irradiance(form, to_light, n), way, spread, strength


@wp.func
def see_disk(form: LightForm, to_light: wp.vec3f, n: wp.vec3f, mirrored: wp.vec3f):
    way, spread, strength = flat_highlight(form, to_light, mirrored, wp.PI)
    return disk_irradiance(to_light, form.x, form.y, form.shines, n), way, spread, strength


@wp.func
def see_rect(form: LightForm, to_light: wp.vec3f, n: wp.vec3f, mirrored: wp.vec3f):
    way, spread, strength = flat_highlight(form, to_light, mirrored, 4.0)
    return rect_irradiance(to_light, form.x, form.y, form.shines, n), way, spread, strength


@wp.func
def see_cylinder(form: LightForm, to_light: wp.vec3f, n: wp.vec3f, mirrored: wp.vec3f):
    way, spread, strength = cylinder_highlight(form, to_light, mirrored)
    return cylinder_irradiance(to_light, form.x, form.y, form.z, n), way, spread, strength


@wp.func
def see_line(form: LightForm, to_light: wp.vec3f, n: wp.vec3f, mirrored: wp.vec3f):
    way, spread, strength = line_highlight(form, to_light, mirrored)
    return line_irradiance(to_light, form.x, n), way, spread, strength


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
def cosines(l: wp.vec3f, v: wp.vec3f, n: wp.vec3f):
    """n_l, n_h, v_h of directions towards light and viewer, and the normal."""
    half = wp.vec3f(l[0] + v[0], l[1] + v[1], l[2] + v[2])
    unit = 1.0 / wp.sqrt(wp.max(dot3(half, half), 1.0e-12))
    return dot3(n, l), dot3(n, half) * unit, dot3(v, half) * unit


# Rows of the matrix of what `see_rect` and the like find, a column a lane.
AROUND, STRENGTH = wp.constant(0), wp.constant(1)
LX, LY, LZ = wp.constant(2), wp.constant(3), wp.constant(4)  # the way
ALONG, ACROSS = wp.constant(5), wp.constant(6)  # the spread
SLANT = wp.constant(7)  # cosine of the direction to the light's middle


def seen_type(lanes: int) -> type:
    return wp.types.matrix(shape=(8, lanes), dtype=wp.float32)


@functools.cache
def _see_all(lanes: int, see: wp.Function) -> wp.Function:
    """``see`` by lanes."""
    LANES, Surface, Seen = lanes, surface_type(lanes), seen_type(lanes)
    triples = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)

    @wp.func
    def see_all(form: LightForm, at: wp.vec3f, place: triples, surface: Surface):
        seen = Seen()
        for lane in range(LANES):
            n = wp.vec3f(surface[NX, lane], surface[NY, lane], surface[NZ, lane])
            twice = 2.0 * (n[0] * surface[DX, lane] + n[1] * surface[DY, lane] + n[2] * surface[DZ, lane])
            mirrored = wp.vec3f(n[0] * twice - surface[DX, lane], n[1] * twice - surface[DY, lane], n[2] * twice - surface[DZ, lane])
            to_light = wp.vec3f(at[0] - place[0, lane], at[1] - place[1, lane], at[2] - place[2, lane])
            e, way, spread, s = see(form, to_light, n, mirrored)
            seen[AROUND, lane] = e
            seen[SLANT, lane] = dot3(n, unit3(to_light))
            seen[LX, lane] = way[0]
            seen[LY, lane] = way[1]
            seen[LZ, lane] = way[2]
            seen[ALONG, lane] = spread[0]
            seen[ACROSS, lane] = spread[1]
            seen[STRENGTH, lane] = s
        return seen

    return see_all


@functools.cache
def see_light(lanes: int) -> wp.Function:
    """A function that tells how pixels at (place) see a light with its middle ``at``."""
    Surface, Seen = surface_type(lanes), seen_type(lanes)
    triples = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)
    distant, sphere, ellipsoid, disk = (_see_all(lanes, see) for see in (see_distant, see_sphere, see_ellipsoid, see_disk))
    rect, cylinder, line = (_see_all(lanes, see) for see in (see_rect, see_cylinder, see_line))

    @wp.func
    def see(form: LightForm, at: wp.vec3f, place: triples, surface: Surface):
        seen = Seen()
        if form.kind == DISTANT_LIGHT:
            seen = distant(form, at, place, surface)
        elif form.kind == SPHERE_LIGHT:
            if form.round != 0:
                seen = sphere(form, at, place, surface)
            else:
                seen = ellipsoid(form, at, place, surface)
        elif form.kind == DISK_LIGHT:
            seen = disk(form, at, place, surface)
        elif form.kind == RECT_LIGHT:
            seen = rect(form, at, place, surface)
        elif form.kind == CYLINDER_LIGHT:
            seen = cylinder(form, at, place, surface)
        elif form.kind == LINE_LIGHT:
            seen = line(form, at, place, surface)
        return seen

    return see


@functools.cache
def reflect_point(lanes: int) -> wp.Function:
    """A function: radiance towards the viewer of light from one direction, per irradiance square on it."""
    LANES, Surface = lanes, surface_type(lanes)
    triples = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)

    @wp.func
    def reflect(surface: Surface, coated: wp.int32, ways: triples, of_diffuse: wp.float32, of_specular: wp.float32):
        """``coated``: 1 where any of the surfaces has clearcoat; ``ways``: directions to the light."""
        light = triples()
        for lane in range(LANES):
            l = wp.vec3f(ways[0, lane], ways[1, lane], ways[2, lane])
            v = wp.vec3f(surface[DX, lane], surface[DY, lane], surface[DZ, lane])
            n_l, n_h, v_h = cosines(l, v, wp.vec3f(surface[NX, lane], surface[NY, lane], surface[NZ, lane]))
            diffuse = wp.vec3f(surface[KR, lane], surface[KG, lane], surface[KB, lane])
            zero = wp.vec3f(surface[ZR, lane], surface[ZG, lane], surface[ZB, lane])
            edge = wp.vec3f(surface[ER, lane], surface[EG, lane], surface[EB, lane])
            rough, n_v = surface[ROUGH, lane], surface[N_V, lane]
            seen = bare_reflected(diffuse, zero, edge, rough, n_l, n_v, n_h, v_h, of_diffuse, of_specular)
            light[0, lane] = seen[0]
            light[1, lane] = seen[1]
            light[2, lane] = seen[2]
        if coated != 0:
            for lane in range(LANES):
                l = wp.vec3f(ways[0, lane], ways[1, lane], ways[2, lane])
                v = wp.vec3f(surface[DX, lane], surface[DY, lane], surface[DZ, lane])
                n_l, n_h, v_h = cosines(l, v, wp.vec3f(surface[NX, lane], surface[NY, lane], surface[NZ, lane]))
                coat, n_v = surface[COAT, lane], surface[N_V, lane]
                under = coat_passes(coat, n_l, n_v)
                over = coat_reflected(coat, surface[COAT_ROUGH, lane], n_l, n_v, n_h, v_h) * of_specular
                light[0, lane] = light[0, lane] * under + over
                light[1, lane] = light[1, lane] * under + over
                light[2, lane] = light[2, lane] * under + over
        return light

    return reflect


@functools.cache
def reflect_shape(lanes: int) -> wp.Function:
    """A function: radiance towards the viewer of a light of radiance 1 that is no point, scattered and mirrored."""
    LANES, Surface, Seen = lanes, surface_type(lanes), seen_type(lanes)
    triples = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)

    @wp.func
    def reflect(
        surface: Surface,
        seen: Seen,
        form: LightForm,
        at: wp.vec3f,
        place: triples,
        domes: DomeTables,
        picture: wp.int32,
        of_diffuse: wp.float32,
        of_specular: wp.float32,
    ):
        light = triples()
        glints = triples(of_specular)
        tint = wp.vec3f(of_diffuse, of_diffuse, of_diffuse)
        if picture >= 0 and form.kind == RECT_LIGHT:
            tint = light_picture(domes, picture, 0.5, 0.5, _WHOLE) * of_diffuse
            for lane in range(LANES):
                to_light = wp.vec3f(at[0] - place[0, lane], at[1] - place[1, lane], at[2] - place[2, lane])
                st = on_picture(form, to_light, wp.vec3f(seen[LX, lane], seen[LY, lane], seen[LZ, lane]))
                shown = light_picture(domes, picture, st[0], st[1], 8.0 * surface[ROUGH, lane])
                glints[0, lane] = shown[0] * of_specular
                glints[1, lane] = shown[1] * of_specular
                glints[2, lane] = shown[2] * of_specular
        for lane in range(LANES):
            f0 = wp.vec3f(surface[ZR, lane], surface[ZG, lane], surface[ZB, lane])
            f90 = wp.vec3f(surface[ER, lane], surface[EG, lane], surface[EB, lane])
            diffuse = wp.vec3f(surface[KR, lane], surface[KG, lane], surface[KB, lane])
            around = seen[AROUND, lane]
            # Fresnel looks at how slanting the light comes on the whole.
            n_l = wp.clamp(wp.max(seen[SLANT, lane], around / wp.PI), 0.0, 1.0)
            lit = matt(diffuse, f0, f90, surface[COAT, lane], n_l, surface[N_V, lane])
            way = wp.vec3f(seen[LX, lane], seen[LY, lane], seen[LZ, lane])
            v = wp.vec3f(surface[DX, lane], surface[DY, lane], surface[DZ, lane])
            w_l, n_h, v_h = cosines(way, v, wp.vec3f(surface[NX, lane], surface[NY, lane], surface[NZ, lane]))
            rough, coat, coat_rough = surface[ROUGH, lane], surface[COAT, lane], surface[COAT_ROUGH, lane]
            spread = wp.vec2f(seen[ALONG, lane], seen[ACROSS, lane])
            glint = highlight(f0, f90, rough, coat, coat_rough, w_l, surface[N_V, lane], n_h, v_h, spread)
            strength = seen[STRENGTH, lane]
            light[0, lane] = lit[0] * around * tint[0] + glint[0] * strength * glints[0, lane]
            light[1, lane] = lit[1] * around * tint[1] + glint[1] * strength * glints[1, lane]
            light[2, lane] = lit[2] * around * tint[2] + glint[2] * strength * glints[2, lane]
        return light

    return reflect
