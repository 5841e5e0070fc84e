"""aovs.swept_hits: points and curves hit by one ray, in double: where exactly, how far along, which normal. See `trace.swept`."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import POINT_LANES, POINTS, RIBBON_LANES, TUBE_LANES, TUBES
from hdwarp.trace.swept import BALL, CAPPED_END, CAPPED_START, RIBBON_PARTS, TIGHTEST

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
_THREE = wp.constant(wp.float64(3.0))
_TINY = wp.constant(wp.float64(1.0e-200))


@wp.struct
class SweptHit:
    t: wp.float64
    along: wp.float64  # of the segment, 0..1
    normal: wp.vec3d  # object space, not unit


@wp.struct
class Cubic:
    """a + b u + c u^2 + d u^3"""

    a: wp.vec3d
    b: wp.vec3d
    c: wp.vec3d
    d: wp.vec3d


@wp.func
def number_at(vertices: wp.array[wp.float32], slot: wp.int32, number: wp.int32, lanes: wp.int32) -> wp.float64:
    return wp.float64(vertices[(slot >> 4) * 144 + number * lanes + (slot & 15)])


@wp.func
def point_at(vertices: wp.array[wp.float32], slot: wp.int32, number: wp.int32, lanes: wp.int32) -> wp.vec3d:
    return wp.vec3d(
        number_at(vertices, slot, number, lanes), number_at(vertices, slot, number + 1, lanes), number_at(vertices, slot, number + 2, lanes)
    )


@wp.func
def cubic_of(p0: wp.vec3d, p1: wp.vec3d, p2: wp.vec3d, p3: wp.vec3d) -> Cubic:
    cubic = Cubic()
    cubic.a = p0
    cubic.b = (p1 - p0) * _THREE
    cubic.c = ((p2 - p1) - (p1 - p0)) * _THREE
    cubic.d = ((p3 - p2) - (p2 - p1)) - ((p2 - p1) - (p1 - p0))
    return cubic


@wp.func
def at(cubic: Cubic, u: wp.float64) -> wp.vec3d:
    return cubic.a + (cubic.b + (cubic.c + cubic.d * u) * u) * u


@wp.func
def rate_at(cubic: Cubic, u: wp.float64) -> wp.vec3d:
    return cubic.b + (cubic.c * _TWO + cubic.d * (_THREE * u)) * u


@wp.func
def unit_of(v: wp.vec3d) -> wp.vec3f:
    """Unit vector, (0, 0, 1) of nothing: of a size that float32 does not hold."""
    length = wp.length(v)
    u = v / wp.where(length > _ZERO, length, _ONE)
    return wp.where(length > _ZERO, wp.vec3f(wp.float32(u[0]), wp.float32(u[1]), wp.float32(u[2])), wp.vec3f(0.0, 0.0, 1.0))


@wp.func
def step_to(curve: Cubic, u: wp.float64, p: wp.vec3d) -> wp.float64:
    """Newton's step from ``u`` to where the plane square to the curve holds ``p``."""
    rate, beside = rate_at(curve, u), p - at(curve, u)
    ll = wp.max(wp.dot(rate, rate), _TINY)
    bent = ll - wp.dot(beside, curve.c * _TWO + curve.d * (wp.float64(6.0) * u))
    return wp.dot(beside, rate) / wp.max(bent, wp.float64(TIGHTEST) * ll)


@wp.func
def along_segment(vertices: wp.array[wp.float32], slot: wp.int32, kind: wp.int32, u: wp.float64) -> wp.float64:
    """From ``u`` along a piece to how far along its segment: see `MeshGeometry.pieces`."""
    piece = wp.int32(0)
    if kind == TUBES:
        piece = int(number_at(vertices, slot, 16, TUBE_LANES)) >> 4
    else:
        piece = int(number_at(vertices, slot, 24, RIBBON_LANES)) >> 4
    parts = wp.int32(1)
    while 2 * parts <= piece:
        parts *= 2
    return (wp.float64(piece - parts) + wp.clamp(u, _ZERO, _ONE)) / wp.float64(parts)


@wp.func
def ball_hit(centre: wp.vec3d, radius: wp.float64, origin: wp.vec3d, direction: wp.vec3d, seen: wp.float64) -> SweptHit:
    """The crossing nearest to where it was seen; where the exact ray passes by, where it is nearest to the ball."""
    p = centre - origin
    scale = _ONE / wp.dot(direction, direction)
    middle = wp.dot(p, direction) * scale
    apart = direction * middle - p
    inside = radius * radius - wp.dot(apart, apart)
    half = wp.sqrt(wp.where(inside > _ZERO, inside, _ZERO) * scale)
    hit = SweptHit()
    hit.t = middle + wp.where(seen < middle, -half, half)
    hit.normal = direction * hit.t - p
    return hit


@wp.func
def tube_hit(vertices: wp.array[wp.float32], slot: wp.int32, origin: wp.vec3d, direction: wp.vec3d, seen: wp.float64) -> SweptHit:
    """From where the record has it, by the steps of `trace.swept.tube_step`; or on one of the discs at the ends."""
    flags = int(number_at(vertices, slot, 16, TUBE_LANES)) & 15
    p0 = point_at(vertices, slot, 0, TUBE_LANES)
    r0 = number_at(vertices, slot, 3, TUBE_LANES)
    if (flags & BALL) != 0:
        joint = ball_hit(p0, r0, origin, direction, seen)
        joint.along = along_segment(vertices, slot, TUBES, _ZERO)
        return joint
    p1, p2, p3 = point_at(vertices, slot, 4, TUBE_LANES), point_at(vertices, slot, 8, TUBE_LANES), point_at(vertices, slot, 12, TUBE_LANES)
    r1, r2, r3 = (
        number_at(vertices, slot, 7, TUBE_LANES),
        number_at(vertices, slot, 11, TUBE_LANES),
        number_at(vertices, slot, 15, TUBE_LANES),
    )
    curve = cubic_of(p0 - origin, p1 - origin, p2 - origin, p3 - origin)
    rb, rc, rd = _THREE * (r1 - r0), _THREE * ((r2 - r1) - (r1 - r0)), ((r3 - r2) - (r2 - r1)) - ((r2 - r1) - (r1 - r0))
    low, high = -wp.float64(0.01), wp.float64(1.01)
    point = direction * seen
    u = wp.float64(0.5)
    for _step in range(5):
        u = wp.clamp(u + step_to(curve, u, point), low, high)
    t = wp.float64(seen)
    inside = wp.float64(0.0)
    for _step in range(5):
        p, rate = at(curve, u), rate_at(curve, u)
        normal = wp.cross(direction, rate)
        ll = wp.max(wp.dot(rate, rate), _TINY)
        nn = wp.max(wp.dot(normal, normal), wp.float64(1.0e-16) * ll * wp.dot(direction, direction))
        start = wp.dot(wp.cross(p, rate), normal) / nn
        miss = wp.dot(p, normal)
        miss = miss * miss / nn
        pace = wp.dot(direction, rate) / ll
        s = start * pace - wp.dot(p, rate) / ll
        slope = rb + (_TWO * rc + _THREE * rd * u) * u
        radius = r0 + (rb + (rc + rd * u) * u) * u + slope * s
        growth = slope * pace
        a = nn / ll - growth * growth
        a = wp.where(wp.abs(a) > wp.float64(1.0e-12) * nn / ll, a, wp.float64(1.0e-12) * nn / ll)
        inside = radius * radius * growth * growth + a * (radius * radius - miss)
        root = wp.sqrt(wp.where(inside > _ZERO, inside, _ZERO))
        one, other = start + (radius * growth - root) / a, start + (radius * growth + root) / a
        t = wp.where(wp.abs(one - seen) < wp.abs(other - seen), one, other)
        beside = direction * t - p
        bent = ll - wp.dot(beside, curve.c * _TWO + curve.d * (wp.float64(6.0) * u))
        u = wp.clamp(u + (s + (t - start) * pace) * (ll / wp.max(bent, wp.float64(TIGHTEST) * ll)), low, high)
    rate = rate_at(curve, u)
    radius = r0 + (rb + (rc + rd * u) * u) * u
    width = radius / wp.sqrt(wp.dot(direction, direction))  # how much t may change within the tube
    beside = direction * t - at(curve, u)
    off_side = wp.abs(wp.dot(beside, rate)) > wp.float64(1.0e-3) * wp.dot(rate, rate)  # did not settle, or ended beyond the piece
    hit = SweptHit()
    hit.t = wp.where(off_side, seen, t)
    beside = direction * hit.t - at(curve, u)
    bent = wp.dot(rate, rate) - wp.dot(beside, curve.c * _TWO + curve.d * (wp.float64(6.0) * u))
    slope = rb + (_TWO * rc + _THREE * rd * u) * u
    hit.normal = beside * wp.where(bent > _ZERO, bent, wp.dot(rate, rate)) - rate * (slope * radius)
    apart = wp.abs(hit.t - seen) + wp.where(off_side, width + wp.abs(seen) * wp.float64(1.0e-3), _ZERO)
    for which in range(2):
        if (flags & wp.where(which == 0, CAPPED_START, CAPPED_END)) != 0:
            end = wp.float64(which)
            p, outward = at(curve, end), rate_at(curve, end)
            if which == 0:
                outward = -outward
            facing = wp.dot(direction, outward)
            if wp.abs(facing) > _TINY:
                at_cap = wp.dot(p, outward) / facing
                beside = direction * at_cap - p
                limit = wp.where(which == 0, r0, r3) * wp.float64(1.0001)
                if wp.dot(beside, beside) <= limit * limit and wp.abs(at_cap - seen) < apart:
                    apart = wp.abs(at_cap - seen)
                    hit.t = at_cap
                    hit.normal = outward
                    u = end
    hit.along = along_segment(vertices, slot, TUBES, u)
    return hit


@wp.func
def ribbon_hit(vertices: wp.array[wp.float32], slot: wp.int32, origin: wp.vec3d, direction: wp.vec3d, seen: wp.float64) -> SweptHit:
    """The crossing of any part nearest to where it was seen, by Newton's steps from where false position comes to."""
    p0, p1 = point_at(vertices, slot, 0, RIBBON_LANES), point_at(vertices, slot, 3, RIBBON_LANES)
    p2, p3 = point_at(vertices, slot, 6, RIBBON_LANES), point_at(vertices, slot, 9, RIBBON_LANES)
    w0, w1 = point_at(vertices, slot, 12, RIBBON_LANES) - p0, point_at(vertices, slot, 15, RIBBON_LANES) - p1
    w2, w3 = point_at(vertices, slot, 18, RIBBON_LANES) - p2, point_at(vertices, slot, 21, RIBBON_LANES) - p3
    edge, width = cubic_of(p0 - origin, p1 - origin, p2 - origin, p3 - origin), cubic_of(w0, w1, w2, w3)
    hit = SweptHit()
    hit.t = seen
    nearest = wp.float64(1.0e300)
    at_u, at_v = wp.float64(0.5), wp.float64(0.5)
    parts = wp.int32(RIBBON_PARTS)
    share = _ONE / wp.float64(parts)
    for part in range(parts):
        low, high = wp.float64(part) * share, wp.float64(part + 1) * share
        f = wp.dot(at(edge, low), wp.cross(direction, at(width, low)))
        g = wp.dot(at(edge, high), wp.cross(direction, at(width, high)))
        u = wp.where(g == f, low, low - f * (high - low) / wp.where(g == f, _ONE, g - f))
        u = wp.clamp(u, low - wp.float64(0.01), high + wp.float64(0.01))
        for _step in range(6):
            side = wp.cross(direction, at(width, u))
            value = wp.dot(at(edge, u), side)
            rate = wp.dot(rate_at(edge, u), side) + wp.dot(at(edge, u), wp.cross(direction, rate_at(width, u)))
            u = wp.clamp(
                u - wp.where(rate == _ZERO, _ZERO, value / wp.where(rate == _ZERO, _ONE, rate)), -wp.float64(0.01), wp.float64(1.01)
            )
        p, w = at(edge, u), at(width, u)
        across = wp.cross(w, direction)
        nn = wp.dot(across, across)
        if nn > _ZERO:
            v = wp.clamp(-wp.dot(wp.cross(p, direction), across) / nn, _ZERO, _ONE)
            t = wp.dot(p + w * v, direction) / wp.dot(direction, direction)
            if wp.abs(t - seen) < nearest:
                nearest = wp.abs(t - seen)
                hit.t = t
                at_u = u
                at_v = v
    hit.normal = wp.cross(rate_at(edge, at_u) + rate_at(width, at_u) * at_v, at(width, at_u))
    hit.along = along_segment(vertices, slot, wp.int32(0), at_u)
    return hit


@wp.func
def parameter_of(curve: Cubic, p: wp.vec3d) -> wp.float64:
    """How far along a piece a point is."""
    u = wp.float64(0.5)
    for _step in range(6):
        u = wp.clamp(u + step_to(curve, u, p), _ZERO, _ONE)
    return u


@wp.func
def bernstein(k: wp.int32, u: wp.float64) -> wp.float64:
    v = _ONE - u
    if k == 0:
        return v * v * v
    if k == 1:
        return _THREE * v * v * u
    if k == 2:
        return _THREE * v * u * u
    return u * u * u


@wp.func
def shift_of_swept(
    kind: wp.int32, p: wp.vec3d, slot: wp.int32, first: wp.int32, vertices: wp.array[wp.float32], points: wp.array[wp.vec3f]
) -> wp.vec3d:
    """From where a point ``p`` of a point or curve is to where it was, object space: what it is swept about has moved so. ``first``: of the
    previous ``points`` of its item."""
    if kind == POINTS:
        return wp.vec3d(points[first]) - point_at(vertices, slot, 0, POINT_LANES)
    shift = wp.vec3d()
    if kind == TUBES:
        p0, p1 = point_at(vertices, slot, 0, TUBE_LANES), point_at(vertices, slot, 4, TUBE_LANES)
        p2, p3 = point_at(vertices, slot, 8, TUBE_LANES), point_at(vertices, slot, 12, TUBE_LANES)
        u = _ZERO
        if (int(number_at(vertices, slot, 16, TUBE_LANES)) & BALL) == 0:
            u = parameter_of(cubic_of(p0, p1, p2, p3), p)
        for k in range(4):
            shift += (wp.vec3d(points[first + k]) - point_at(vertices, slot, 4 * k, TUBE_LANES)) * bernstein(k, u)
        return shift
    p0, w0 = point_at(vertices, slot, 0, RIBBON_LANES), point_at(vertices, slot, 12, RIBBON_LANES)
    p1, w1 = point_at(vertices, slot, 3, RIBBON_LANES), point_at(vertices, slot, 15, RIBBON_LANES)
    p2, w2 = point_at(vertices, slot, 6, RIBBON_LANES), point_at(vertices, slot, 18, RIBBON_LANES)
    p3, w3 = point_at(vertices, slot, 9, RIBBON_LANES), point_at(vertices, slot, 21, RIBBON_LANES)
    half = wp.float64(0.5)
    u = parameter_of(cubic_of((p0 + w0) * half, (p1 + w1) * half, (p2 + w2) * half, (p3 + w3) * half), p)
    one, other = at(cubic_of(p0, p1, p2, p3), u), at(cubic_of(w0, w1, w2, w3), u)
    v = wp.clamp(wp.dot(p - one, other - one) / wp.max(wp.dot(other - one, other - one), _TINY), _ZERO, _ONE)
    for k in range(8):
        share = bernstein(k & 3, u) * wp.where(k < 4, _ONE - v, v)
        shift += (wp.vec3d(points[first + k]) - point_at(vertices, slot, 3 * k, RIBBON_LANES)) * share
    return shift


@wp.func
def swept_hit(
    kind: wp.int32, vertices: wp.array[wp.float32], slot: wp.int32, origin: wp.vec3d, direction: wp.vec3d, seen: wp.float64
) -> SweptHit:
    """Where a ray meets the item of a slot; ``vertices``: MeshColumns.leaf_vertices, flat; ``seen``: its t in the record."""
    hit = SweptHit()
    if kind == POINTS:
        centre, radius = point_at(vertices, slot, 0, POINT_LANES), number_at(vertices, slot, 3, POINT_LANES)
        hit = ball_hit(centre, radius, origin, direction, seen)
    elif kind == TUBES:
        hit = tube_hit(vertices, slot, origin, direction, seen)
    else:
        hit = ribbon_hit(vertices, slot, origin, direction, seen)
    return hit
