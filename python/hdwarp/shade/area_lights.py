"""shade.area_lights: how much light from a shape falls on a small plane: closed forms, cut at the plane's horizon.

Everything is E / L, irradiance per radiance that leaves the light: pi where the light fills the sky. ``to_light``: from the place lit to
the light's centre; ``n``: the plane's normal, length 1. Exact for spheres, rects and lines. Disks, and spheres under a linear map other
than a uniform scale, are polygons with 16 sides and their area, cylinders are prisms: their funcs say how far that is off.
"""

from __future__ import annotations

import warp as wp

from hdwarp.shade.lane_math import TINY, ahead, ahead2, angle, cross3, dot3, length3, scaled
from hdwarp.tables.structs import CYLINDER_LIGHT, DISK_LIGHT, DISTANT_LIGHT, LINE_LIGHT, POINT_LIGHT, RECT_LIGHT, SPHERE_LIGHT

_FAR = wp.constant(1.0e-5)  # area over distance squared below which a flat light is a point: its contour would cancel in float32
_EDGE_ON = wp.constant(1.0e-6)  # cosine
# Corners of a polygon with 16 sides and the area of the unit circle: its radius times cosines of 0, 22.5, 45, 67.5 degrees.
_R0, _R1, _R2, _R3 = wp.constant(1.0129788), wp.constant(0.9358713), wp.constant(0.7162842), wp.constant(0.3876506)


@wp.struct
class LightForm:
    """A light's shape in the world, made once a light. ``x``, ``y``, ``z``: its half axes, `linear` times half its size along each."""

    kind: wp.int32
    x: wp.vec3f
    y: wp.vec3f
    z: wp.vec3f
    shines: wp.vec3f  # x cross y, turned away from where a flat light shines; a quarter of a RECT's area
    to_unit: wp.mat33f  # of SPHERE: what makes it the unit sphere; 0 where it has no volume
    radius: wp.float32  # of SPHERE: exact where `round`, else of a sphere of its volume
    round: wp.int32  # 1: a sphere
    cosine: wp.float32  # of DISTANT: of half the angle it fills
    sine: wp.float32  # the same; 0: it has no size, and its radiance is irradiance


@wp.func
def light_form(kind: wp.int32, size: wp.vec4f, linear: wp.mat33f) -> LightForm:
    """Of a row of `LightColumns`. ``size`` of DISTANT lights: cosine, then sine (0: unknown), as cosines near 1 say little in float32."""
    form = LightForm()
    form.kind = kind
    along = wp.vec3f(size[0], size[0], size[0])
    if kind == RECT_LIGHT:
        along = wp.vec3f(0.5 * size[0], 0.5 * size[1], 1.0)
    elif kind == CYLINDER_LIGHT:
        along = wp.vec3f(0.5 * size[0], size[1], size[1])
    elif kind == LINE_LIGHT:
        along = wp.vec3f(0.5 * size[0], 0.0, 0.0)
    elif kind == DISTANT_LIGHT or kind == POINT_LIGHT:
        along = wp.vec3f(1.0, 1.0, 1.0)
    form.x = wp.vec3f(linear[0, 0], linear[1, 0], linear[2, 0]) * along[0]
    form.y = wp.vec3f(linear[0, 1], linear[1, 1], linear[2, 1]) * along[1]
    form.z = wp.vec3f(linear[0, 2], linear[1, 2], linear[2, 2]) * along[2]
    volume = wp.dot(wp.cross(form.x, form.y), form.z)
    form.shines = wp.cross(form.x, form.y) * wp.where(volume < 0.0, -1.0, 1.0)
    if kind == DISTANT_LIGHT:
        form.z = wp.normalize(form.z)
        form.cosine = wp.clamp(size[0], -1.0, 1.0)
        form.sine = wp.where(size[1] > 0.0, size[1], wp.sqrt((1.0 - form.cosine) * (1.0 + form.cosine)))
    if kind == SPHERE_LIGHT:
        form.radius = wp.cbrt(wp.abs(volume))
        xx, yy, zz = wp.dot(form.x, form.x), wp.dot(form.y, form.y), wp.dot(form.z, form.z)
        uneven = wp.abs(xx - yy) + wp.abs(xx - zz) + wp.abs(wp.dot(form.x, form.y))
        uneven = uneven + wp.abs(wp.dot(form.x, form.z)) + wp.abs(wp.dot(form.y, form.z))
        form.round = wp.where(uneven < 1.0e-4 * xx, 1, 0)
        if wp.abs(volume) > TINY:
            a, b, c = wp.cross(form.y, form.z) / volume, wp.cross(form.z, form.x) / volume, wp.cross(form.x, form.y) / volume
            form.to_unit = wp.mat33f(a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2])
    return form


@wp.func
def point_irradiance(to_light: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """Per intensity."""
    square = wp.max(dot3(to_light, to_light), TINY)
    return wp.max(dot3(to_light, n), 0.0) / (square * wp.sqrt(square))


@wp.func
def cap_irradiance(x: wp.float32, sine: wp.float32, cosine: wp.float32) -> wp.float32:
    """A round part of the sky: its middle at cosine ``x`` from the normal, and sine and cosine (0 to 1) of its angular radius."""
    square = sine * sine
    inside = wp.sqrt(wp.max((sine - x) * (sine + x), 0.0))
    # What is above the horizon when it is cut: x s^2 A + atan(w) - w c^2, the latter by a series where it would cancel.
    w = inside / wp.max(cosine, 1.0e-6)
    u = w * w
    small = w * (square - u * (1.0 / 3.0 - u * (0.2 - u * (1.0 / 7.0 - u / 9.0))))
    rest = wp.where(w < 0.25, small, angle(inside, cosine) - inside * cosine)
    cut = x * square * angle(inside, -x * cosine) + rest
    return wp.where(x >= sine, wp.PI * square * x, wp.where(x <= -sine, 0.0, wp.max(cut, 0.0)))


@wp.func
def sphere_irradiance(to_light: wp.vec3f, radius: wp.float32, n: wp.vec3f) -> wp.float32:
    """Exact; 0 inside of the sphere, which shines outwards."""
    square = wp.max(dot3(to_light, to_light), TINY)
    part = radius * radius / square
    e = cap_irradiance(dot3(to_light, n) / wp.sqrt(square), wp.sqrt(wp.min(part, 1.0)), wp.sqrt(wp.max(1.0 - part, 0.0)))
    return wp.where(part > 1.0, 0.0, e)


@wp.func
def distant_irradiance(form: LightForm, n: wp.vec3f) -> wp.float32:
    """Exact; per irradiance square on it where the light has no size."""
    x = dot3(form.z, n)
    over = form.cosine < 0.0  # more than a hemisphere: all the sky less the rest
    part = cap_irradiance(wp.where(over, -x, x), form.sine, wp.abs(form.cosine))
    e = wp.where(over, wp.PI - part, part)
    return wp.where(form.sine <= 0.0 and form.cosine > 0.0, wp.max(x, 0.0), e)


@wp.func
def crossing(za: wp.float32, zb: wp.float32) -> wp.float32:
    """How far along an edge the horizon is, from the heights of its ends."""
    span = za - zb
    return za / wp.where(span == 0.0, 1.0, span)


@wp.func
def edge_term(a: wp.vec3f, e: wp.vec3f, n: wp.vec3f, za: wp.float32, zb: wp.float32) -> wp.float32:
    """Lambert's term, twice, of what is above the horizon of the edge from ``a`` to ``a + e``, whose heights are ``za`` and ``zb``."""
    t = crossing(za, zb)
    begin, end = wp.where(za < 0.0, t, 0.0), wp.where(zb < 0.0, t, 1.0)
    k = cross3(a, e)
    size = length3(k)
    theta = angle(wp.max(end - begin, 0.0) * size, dot3(ahead(a, e, begin), ahead(a, e, end)))
    seen = wp.where(za < 0.0 and zb < 0.0, 0.0, theta)
    return seen * dot3(n, k) / wp.max(size, TINY)


@wp.func
def entering(a: wp.vec3f, e: wp.vec3f, za: wp.float32, zb: wp.float32) -> wp.vec3f:
    """Where an edge comes up over the horizon; 0 if it does not."""
    here = wp.where(za < 0.0 and zb >= 0.0, 1.0, 0.0)
    return scaled(ahead(a, e, crossing(za, zb)), here)


@wp.func
def leaving(a: wp.vec3f, e: wp.vec3f, za: wp.float32, zb: wp.float32) -> wp.vec3f:
    """Where an edge goes down under the horizon; 0 if it does not."""
    here = wp.where(za >= 0.0 and zb < 0.0, 1.0, 0.0)
    return scaled(ahead(a, e, crossing(za, zb)), here)


@wp.func
def horizon_term(leaves: wp.vec3f, enters: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """The term of the edge along the horizon that closes a convex polygon which was cut there; 0 of zeros."""
    turn = dot3(n, cross3(leaves, enters))
    theta = angle(wp.abs(turn), dot3(leaves, enters))
    return wp.where(turn < 0.0, -theta, theta)


@wp.func
def flat_irradiance(twice: wp.float32, to_light: wp.vec3f, n: wp.vec3f, area: wp.vec3f) -> wp.float32:
    """From the terms of a flat light's contour, or as of a point if it is far; ``area``: its vector area, away from where it shines."""
    square = wp.max(dot3(to_light, to_light), TINY)
    towards, size = dot3(area, to_light), length3(area)
    far = towards * dot3(n, to_light) / (square * square)
    e = wp.max(wp.where(size < _FAR * square, far, 0.5 * twice), 0.0)
    return wp.where(towards > _EDGE_ON * size * wp.sqrt(square), e, 0.0)


@wp.func
def rect_irradiance(to_light: wp.vec3f, x: wp.vec3f, y: wp.vec3f, shines: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """Exact, of any parallelogram. ``x``, ``y``: half its edges; ``shines``: plus or minus their cross product, away from the side lit."""
    a = ahead2(to_light, x, -1.0, y, -1.0)
    b = ahead2(to_light, x, 1.0, y, -1.0)
    c = ahead2(to_light, x, 1.0, y, 1.0)
    d = ahead2(to_light, x, -1.0, y, 1.0)
    za, zb, zc, zd = dot3(a, n), dot3(b, n), dot3(c, n), dot3(d, n)
    right, up, left, down = scaled(x, 2.0), scaled(y, 2.0), scaled(x, -2.0), scaled(y, -2.0)
    twice = edge_term(a, right, n, za, zb) + edge_term(b, up, n, zb, zc) + edge_term(c, left, n, zc, zd) + edge_term(d, down, n, zd, za)
    enters = ahead2(entering(a, right, za, zb), entering(b, up, zb, zc), 1.0, entering(c, left, zc, zd), 1.0)
    enters = ahead(enters, entering(d, down, zd, za), 1.0)
    leaves = ahead2(leaving(a, right, za, zb), leaving(b, up, zb, zc), 1.0, leaving(c, left, zc, zd), 1.0)
    leaves = ahead(leaves, leaving(d, down, zd, za), 1.0)
    twice = twice + horizon_term(leaves, enters, n)
    turned = wp.where(dot3(cross3(x, y), shines) < 0.0, -twice, twice)
    return flat_irradiance(turned, to_light, n, scaled(shines, 4.0))


@wp.func
def quarter(
    centre: wp.vec3f, x: wp.vec3f, y: wp.vec3f, n: wp.vec3f, height: wp.float32, zx: wp.float32, zy: wp.float32
) -> tuple[wp.float32, wp.vec3f, wp.vec3f]:
    """Four edges of a ring of 16, from ``x`` to ``y``: their terms, where they come up over the horizon, where they go down."""
    a = ahead(centre, x, _R0)
    b = ahead2(centre, x, _R1, y, _R3)
    c = ahead2(centre, x, _R2, y, _R2)
    d = ahead2(centre, x, _R3, y, _R1)
    za, zb, zc = height + zx * _R0, height + (zx * _R1 + zy * _R3), height + (zx * _R2 + zy * _R2)
    zd, ze = height + (zx * _R3 + zy * _R1), height + zy * _R0
    first = wp.vec3f(0.0, 0.0, 0.0)
    ab = ahead2(first, x, _R1 - _R0, y, _R3)
    bc = ahead2(first, x, _R2 - _R1, y, _R2 - _R3)
    cd = ahead2(first, x, _R3 - _R2, y, _R1 - _R2)
    de = ahead2(first, x, -_R3, y, _R0 - _R1)
    twice = edge_term(a, ab, n, za, zb) + edge_term(b, bc, n, zb, zc) + edge_term(c, cd, n, zc, zd) + edge_term(d, de, n, zd, ze)
    enters = ahead2(entering(a, ab, za, zb), entering(b, bc, zb, zc), 1.0, entering(c, cd, zc, zd), 1.0)
    enters = ahead(enters, entering(d, de, zd, ze), 1.0)
    leaves = ahead2(leaving(a, ab, za, zb), leaving(b, bc, zb, zc), 1.0, leaving(c, cd, zc, zd), 1.0)
    leaves = ahead(leaves, leaving(d, de, zd, ze), 1.0)
    return twice, enters, leaves


@wp.func
def disk_irradiance(to_light: wp.vec3f, x: wp.vec3f, y: wp.vec3f, shines: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """A disk or ellipse with half axes ``x``, ``y`` (any pair of conjugate ones) as a polygon of 16 sides and the same area.

    Off by at most 0.6 % of pi, next to the rim; by less than 0.1 % of itself from as far away as it is wide. ``shines``: as of rects.
    """
    height, zx, zy = dot3(to_light, n), dot3(x, n), dot3(y, n)
    back, under = scaled(x, -1.0), scaled(y, -1.0)
    a, enters_a, leaves_a = quarter(to_light, x, y, n, height, zx, zy)
    b, enters_b, leaves_b = quarter(to_light, y, back, n, height, zy, -zx)
    c, enters_c, leaves_c = quarter(to_light, back, under, n, height, -zx, -zy)
    d, enters_d, leaves_d = quarter(to_light, under, x, n, height, -zy, zx)
    enters = ahead(ahead2(enters_a, enters_b, 1.0, enters_c, 1.0), enters_d, 1.0)
    leaves = ahead(ahead2(leaves_a, leaves_b, 1.0, leaves_c, 1.0), leaves_d, 1.0)
    twice = a + b + c + d + horizon_term(leaves, enters, n)
    turned = wp.where(dot3(cross3(x, y), shines) < 0.0, -twice, twice)
    return flat_irradiance(turned, to_light, n, scaled(shines, wp.PI))


@wp.func
def ellipsoid_irradiance(form: LightForm, to_light: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """A sphere under any linear map: the disk that its outline is seen as. As exact as `disk_irradiance`; 0 inside."""
    m = form.to_unit
    px = -(m[0, 0] * to_light[0] + m[0, 1] * to_light[1] + m[0, 2] * to_light[2])
    py = -(m[1, 0] * to_light[0] + m[1, 1] * to_light[1] + m[1, 2] * to_light[2])
    pz = -(m[2, 0] * to_light[0] + m[2, 1] * to_light[1] + m[2, 2] * to_light[2])
    square = wp.max(px * px + py * py + pz * pz, TINY)
    reach = wp.sqrt(square)
    wide = wp.sqrt(wp.max(1.0 - 1.0 / square, 0.0))
    ux, uy, uz = px / reach, py / reach, pz / reach
    # Two axes square to u (Duff et al. 2017), then both through the map.
    sign = wp.where(uz < 0.0, -1.0, 1.0)
    p = -1.0 / (sign + uz)
    q = ux * uy * p
    first = wp.vec3f(0.0, 0.0, 0.0)
    a = ahead(ahead2(first, form.x, (1.0 + sign * ux * ux * p) * wide, form.y, sign * q * wide), form.z, -sign * ux * wide)
    b = ahead(ahead2(first, form.x, q * wide, form.y, (sign + uy * uy * p) * wide), form.z, -uy * wide)
    centre = scaled(to_light, 1.0 - 1.0 / square)
    area = cross3(a, b)
    area = scaled(area, wp.where(dot3(area, to_light) < 0.0, -1.0, 1.0))
    return wp.where(square > 1.0, disk_irradiance(centre, a, b, area, n), 0.0)


@wp.func
def line_irradiance(to_light: wp.vec3f, x: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """Exact, of a thin line with half length ``x``; per radiance times width of the line."""
    half = wp.max(length3(x), TINY)
    a = scaled(x, 1.0 / half)
    middle = dot3(a, to_light)
    foot = ahead(to_light, a, -middle)
    h = wp.max(length3(cross3(a, to_light)), 1.0e-5 * length3(to_light) + TINY)
    p, slope = dot3(n, foot), dot3(n, a)
    t0, t1 = middle - half, middle + half
    z0, z1 = p + t0 * slope, p + t1 * slope
    t = crossing(z0, z1)
    begin, end = wp.where(z0 < 0.0, t, 0.0), wp.where(z1 < 0.0, t, 1.0)
    span = 2.0 * half * (end - begin)  # t1 - t0 would be little of two large numbers, of a line far off
    t0, t1 = middle + half * (2.0 * begin - 1.0), middle + half * (2.0 * end - 1.0)
    q = (h * h + t0 * t0) * (h * h + t1 * t1)
    e = p / h * (span * (h * h - t0 * t1) / q + angle(h * span, h * h + t0 * t1) / h) + h * slope * span * (t0 + t1) / q
    return wp.where(z0 < 0.0 and z1 < 0.0, 0.0, wp.max(0.5 * e, 0.0))


@wp.func
def strip_term(near: wp.vec3f, far: wp.vec3f, axis: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """Terms of a strip between two lines along ``axis`` through ``near`` and ``far``: of its ends and of its edge along the horizon."""
    e, back, down = ahead(far, near, -1.0), ahead(near, far, -1.0), scaled(axis, -1.0)
    high_near, high_far = ahead(near, axis, 1.0), ahead(far, axis, 1.0)
    za, zb = dot3(near, n), dot3(far, n)
    zd, zc = dot3(high_near, n), dot3(high_far, n)
    enters = ahead2(entering(near, e, za, zb), entering(far, axis, zb, zc), 1.0, entering(high_far, back, zc, zd), 1.0)
    enters = ahead(enters, entering(high_near, down, zd, za), 1.0)
    leaves = ahead2(leaving(near, e, za, zb), leaving(far, axis, zb, zc), 1.0, leaving(high_far, back, zc, zd), 1.0)
    leaves = ahead(leaves, leaving(high_near, down, zd, za), 1.0)
    return edge_term(near, e, n, za, zb) + edge_term(high_far, back, n, zc, zd) + horizon_term(leaves, enters, n)


@wp.func
def cylinder_irradiance(to_light: wp.vec3f, x: wp.vec3f, y: wp.vec3f, z: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """A cylinder without ends, along ``x`` (half its length), with half axes ``y``, ``z``, as four flat strips of the side that is seen.

    Its outline along the axis is exact; what its rims lack is at most 1 % of pi, and 2 % of it from as far away as it is wide. 0 inside.
    """
    volume = dot3(cross3(x, y), z)
    axis = scaled(x, wp.where(volume < 0.0, -1.0, 1.0))
    # Lines of the outline: c . (axis x z) cos - c . (axis x y) sin = |volume|, for the angle of a line about the axis.
    along, across = dot3(to_light, cross3(axis, z)), -dot3(to_light, cross3(axis, y))
    size = wp.sqrt(along * along + across * across)
    cosine = wp.min(wp.abs(volume) / wp.max(size, TINY), 1.0)
    cm, sm = along / wp.max(size, TINY), across / wp.max(size, TINY)
    zero = wp.vec3f(0.0, 0.0, 0.0)
    m, t = ahead2(zero, y, cm, z, sm), ahead2(zero, y, -sm, z, cm)
    sine = wp.sqrt((1.0 - cosine) * (1.0 + cosine))
    half_c = wp.sqrt(0.5 + 0.5 * cosine)
    half_s = 0.5 * sine / half_c
    # The three lines between those of the outline lie so far out that the prism is as large, seen along the axis, as what it stands for.
    bulge = 0.5 * wp.sqrt(1.0 + 8.0 * angle(half_s, half_c) / wp.max(half_s, 1.0e-6)) - 0.5
    low = ahead(to_light, axis, -1.0)
    a, b = ahead2(low, m, cosine, t, -sine), ahead2(low, m, half_c * bulge, t, -half_s * bulge)
    c = ahead(low, m, bulge)
    d, e = ahead2(low, m, half_c * bulge, t, half_s * bulge), ahead2(low, m, cosine, t, sine)
    whole, back = scaled(axis, 2.0), scaled(axis, -2.0)
    high_a, high_e = ahead(a, whole, 1.0), ahead(e, whole, 1.0)
    twice = strip_term(a, b, whole, n) + strip_term(b, c, whole, n) + strip_term(c, d, whole, n) + strip_term(d, e, whole, n)
    twice = twice + edge_term(e, whole, n, dot3(e, n), dot3(high_e, n)) + edge_term(high_a, back, n, dot3(high_a, n), dot3(a, n))
    square = wp.max(dot3(to_light, to_light), TINY)
    area = 4.0 * sine * wp.abs(dot3(cross3(t, axis), to_light)) / wp.sqrt(square)
    far = wp.max(area * dot3(n, to_light), 0.0) / (square * wp.sqrt(square))
    near = 0.5 * wp.abs(twice)
    return wp.where(size > wp.abs(volume), wp.where(area < _FAR * square, far, near), 0.0)


@wp.func
def irradiance(form: LightForm, to_light: wp.vec3f, n: wp.vec3f) -> wp.float32:
    """Of any of these lights. Loops over lanes had better call the func of their kind: a branch by kind keeps them scalar."""
    if form.kind == DISTANT_LIGHT:
        return distant_irradiance(form, n)
    if form.kind == POINT_LIGHT:
        return point_irradiance(to_light, n)
    if form.kind == SPHERE_LIGHT:
        if form.round != 0:
            return sphere_irradiance(to_light, form.radius, n)
        return ellipsoid_irradiance(form, to_light, n)
    if form.kind == DISK_LIGHT:
        return disk_irradiance(to_light, form.x, form.y, form.shines, n)
    if form.kind == RECT_LIGHT:
        return rect_irradiance(to_light, form.x, form.y, form.shines, n)
    if form.kind == CYLINDER_LIGHT:
        return cylinder_irradiance(to_light, form.x, form.y, form.z, n)
    if form.kind == LINE_LIGHT:
        return line_irradiance(to_light, form.x, n)
    return 0.0
