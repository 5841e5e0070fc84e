"""shade.light_samples: directions towards points of lights, for shadow rays, and what each counts. Shaping of spots.

The mean over (u, v) of weight times the cosine at the place lit is the irradiance of `area_lights`, of the same units.
"""

from __future__ import annotations

import warp as wp

from hdwarp.shade.area_lights import LightForm
from hdwarp.shade.lane_math import TINY, ahead, ahead2, arc_cosine, cross3, dot3, length3, scaled
from hdwarp.tables.structs import CYLINDER_LIGHT, DISK_LIGHT, DISTANT_LIGHT, LINE_LIGHT, POINT_LIGHT, RECT_LIGHT, SPHERE_LIGHT


@wp.func
def beside(u: wp.vec3f) -> wp.vec3f:
    """A unit vector square to the unit vector ``u`` (Duff et al. 2017); ``u x beside(u)`` is the other."""
    sign = wp.where(u[2] < 0.0, -1.0, 1.0)
    p = -1.0 / (sign + u[2])
    return wp.vec3f(1.0 + sign * u[0] * u[0] * p, sign * u[0] * u[1] * p, -sign * u[0])


@wp.func
def in_cone(axis: wp.vec3f, less: wp.float32, u: wp.float32, v: wp.float32) -> wp.vec3f:
    """A direction within the cone about ``axis``, all of its sky alike; ``less``: 1 - cosine of half its angle."""
    down = less * u
    sine = wp.sqrt(wp.max(down * (2.0 - down), 0.0))
    turn = 2.0 * wp.PI * v
    a = beside(axis)
    b = cross3(axis, a)
    return ahead2(scaled(axis, 1.0 - down), a, sine * wp.cos(turn), b, sine * wp.sin(turn))


@wp.func
def one_less_cosine(sine: wp.float32, cosine: wp.float32) -> wp.float32:
    """1 - cosine without cancelling."""
    return wp.where(cosine > 0.0, sine * sine / (1.0 + cosine), 1.0 - cosine)


@wp.func
def towards(point: wp.vec3f, area: wp.vec3f) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    """Direction, distance and weight of a piece of a light at ``point``, whose vector area (away from where it shines) is ``area``."""
    square = wp.max(dot3(point, point), TINY)
    distance = wp.sqrt(square)
    direction = scaled(point, 1.0 / distance)
    return direction, distance, wp.max(dot3(area, direction), 0.0) / square


@wp.func
def sample_distant(form: LightForm, u: wp.float32, v: wp.float32) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    less = one_less_cosine(form.sine, form.cosine)
    sharp = form.sine <= 0.0 and form.cosine > 0.0
    return in_cone(form.z, less, u, v), wp.inf, wp.where(sharp, 1.0, 2.0 * wp.PI * less)


@wp.func
def sample_sphere(form: LightForm, to_light: wp.vec3f, u: wp.float32, v: wp.float32) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    """By the cone that the unit sphere is seen in, mapped to the world with what that makes of solid angles."""
    m = form.to_unit
    cx = m[0, 0] * to_light[0] + m[0, 1] * to_light[1] + m[0, 2] * to_light[2]
    cy = m[1, 0] * to_light[0] + m[1, 1] * to_light[1] + m[1, 2] * to_light[2]
    cz = m[2, 0] * to_light[0] + m[2, 1] * to_light[1] + m[2, 2] * to_light[2]
    square = wp.max(cx * cx + cy * cy + cz * cz, TINY)
    reach = wp.sqrt(square)
    axis = wp.vec3f(cx / reach, cy / reach, cz / reach)
    sine = wp.min(1.0 / reach, 1.0)
    less = one_less_cosine(sine, wp.sqrt((1.0 - sine) * (1.0 + sine)))
    way = in_cone(axis, less, u, v)
    # Distance to the sphere's near side: reach (cos - sqrt(sine^2 - sin^2)).
    cosine = 1.0 - less * u
    off = less * u * (2.0 - less * u)
    near = reach * (cosine - wp.sqrt(wp.max(sine * sine - off, 0.0)))
    world = ahead(ahead2(wp.vec3f(0.0, 0.0, 0.0), form.x, way[0], form.y, way[1]), form.z, way[2])
    stretch = wp.max(length3(world), TINY)
    volume = wp.abs(dot3(cross3(form.x, form.y), form.z))
    weight = 2.0 * wp.PI * less * volume / (stretch * stretch * stretch)
    return scaled(world, 1.0 / stretch), near * stretch, wp.where(square > 1.0, weight, 0.0)


@wp.func
def sample_disk(form: LightForm, to_light: wp.vec3f, u: wp.float32, v: wp.float32) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    radius, turn = wp.sqrt(u), 2.0 * wp.PI * v
    point = ahead2(to_light, form.x, radius * wp.cos(turn), form.y, radius * wp.sin(turn))
    return towards(point, scaled(form.shines, wp.PI))


@wp.func
def sample_rect(form: LightForm, to_light: wp.vec3f, u: wp.float32, v: wp.float32) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    return towards(ahead2(to_light, form.x, 2.0 * u - 1.0, form.y, 2.0 * v - 1.0), scaled(form.shines, 4.0))


@wp.func
def sample_cylinder(form: LightForm, to_light: wp.vec3f, u: wp.float32, v: wp.float32) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    """On the side that is seen; no weight inside."""
    volume = dot3(cross3(form.x, form.y), form.z)
    axis = scaled(form.x, wp.where(volume < 0.0, -1.0, 1.0))
    along, across = dot3(to_light, cross3(axis, form.z)), -dot3(to_light, cross3(axis, form.y))
    size = wp.max(wp.sqrt(along * along + across * across), TINY)
    half = arc_cosine(wp.abs(volume) / size)
    turn = (2.0 * v - 1.0) * half
    cm, sm = along / size, across / size
    c, s = cm * wp.cos(turn) - sm * wp.sin(turn), sm * wp.cos(turn) + cm * wp.sin(turn)
    zero = wp.vec3f(0.0, 0.0, 0.0)
    rim = ahead2(zero, form.y, -s, form.z, c)  # along the rim, square to the axis in the light's own space
    point = ahead(ahead2(to_light, form.y, c, form.z, s), axis, 2.0 * u - 1.0)
    return towards(point, scaled(cross3(axis, rim), 4.0 * half))


@wp.func
def sample_line(form: LightForm, to_light: wp.vec3f, u: wp.float32) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    point = ahead(to_light, form.x, 2.0 * u - 1.0)
    square = wp.max(dot3(point, point), TINY)
    distance = wp.sqrt(square)
    direction = scaled(point, 1.0 / distance)
    return direction, distance, 2.0 * length3(cross3(form.x, direction)) / square


@wp.func
def sample_point(to_light: wp.vec3f) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    square = wp.max(dot3(to_light, to_light), TINY)
    distance = wp.sqrt(square)
    return scaled(to_light, 1.0 / distance), distance, 1.0 / square


@wp.func
def sample_light(form: LightForm, to_light: wp.vec3f, u: wp.float32, v: wp.float32) -> tuple[wp.vec3f, wp.float32, wp.float32]:
    """Unit direction, distance (inf of DISTANT lights) and weight of the point (u, v), each from 0 to 1, of any of these lights.

    The weight is solid angle per density of the sample; of POINT, LINE and sizeless DISTANT lights what `LightKind` says radiance is times
    it is irradiance square on the direction. 0: not seen from here.
    """
    direction, distance, weight = sample_point(to_light)
    if form.kind == DISTANT_LIGHT:
        direction, distance, weight = sample_distant(form, u, v)
    elif form.kind == SPHERE_LIGHT:
        direction, distance, weight = sample_sphere(form, to_light, u, v)
    elif form.kind == DISK_LIGHT:
        direction, distance, weight = sample_disk(form, to_light, u, v)
    elif form.kind == RECT_LIGHT:
        direction, distance, weight = sample_rect(form, to_light, u, v)
    elif form.kind == CYLINDER_LIGHT:
        direction, distance, weight = sample_cylinder(form, to_light, u, v)
    elif form.kind == LINE_LIGHT:
        direction, distance, weight = sample_line(form, to_light, u)
    elif form.kind != POINT_LIGHT:
        weight = 0.0
    return direction, distance, weight


@wp.func
def shaping(cos_to_axis: wp.float32, cone: wp.vec4f, focus_tint: wp.vec3f) -> wp.vec3f:
    """What UsdLux's ShapingAPI leaves of light that goes off at an angle to the light's axis, of that cosine.

    ``cone``: of `LightColumns`. Between its two angles the light fades smoothly; they may be the same. Its focus draws it to the axis,
    towards ``focus_tint`` off it.
    """
    angle = arc_cosine(cos_to_axis)
    end, begin = arc_cosine(cone[0]), arc_cosine(cone[1])
    t = wp.clamp((angle - begin) / wp.max(end - begin, 1.0e-6), 0.0, 1.0)
    within = wp.where(cos_to_axis < cone[0], 0.0, 1.0 - t * t * (3.0 - 2.0 * t))
    focus = wp.where(cone[2] > 0.0, wp.pow(wp.abs(cos_to_axis), wp.max(cone[2], 1.0e-6)), 1.0)
    left = wp.where(cone[3] != 0.0, within, 1.0)
    f = wp.where(cone[3] != 0.0, focus, 1.0)
    r = left * (focus_tint[0] + (1.0 - focus_tint[0]) * f)
    g = left * (focus_tint[1] + (1.0 - focus_tint[1]) * f)
    return wp.vec3f(r, g, left * (focus_tint[2] + (1.0 - focus_tint[2]) * f))
