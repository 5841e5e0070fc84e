"""trace.shapes: analytic shapes in object space, where a ray enters and leaves them. Warp functions only.

In double: a shape may be a planet on whose ground the camera stands, or flattened to nothing; what is nearest then hangs on digits that
float32 does not have. Where a ray misses, entry and exit are so far apart that they may be rounded to float32 and compared then.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import CAPSULE, CONE, CUBE, PLANE, SPHERE

MISS = wp.constant(3.0e38)

FAR_OFF = wp.constant(wp.float64(3.0e38))
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
TINY = wp.constant(wp.float64(1.0e-200))  # divisors are no less: quotients of float32 numbers by it do not overflow


@wp.func
def exact_ball_interval(origin: wp.vec3d, direction: wp.vec3d, radius: wp.float64) -> wp.vec2d:
    """t where a ray enters and leaves the ball about (0, 0, 0); entry > exit where it misses.

    How far the ray passes from the centre is known from a cross product, which loses nothing where one axis is stretched a trillion times.
    """
    scale = ONE / wp.dot(direction, direction)
    middle = -wp.dot(origin, direction) * scale
    across = wp.cross(origin, direction)
    inside = radius * radius - wp.dot(across, across) * scale
    half = wp.sqrt(wp.where(inside > ZERO, inside, ZERO) * scale)
    return wp.vec2d(wp.where(inside >= ZERO, middle - half, FAR_OFF), wp.where(inside >= ZERO, middle + half, -FAR_OFF))


@wp.func
def sphere_interval(origin: wp.vec3d, direction: wp.vec3d) -> wp.vec2d:
    """t where a ray enters and leaves the unit sphere; entry > exit where it misses."""
    return exact_ball_interval(origin, direction, ONE)


@wp.func
def reciprocal_exactly(d: wp.float64) -> wp.float64:
    """1 / d, large and finite where d is 0."""
    return ONE / wp.where(wp.abs(d) > TINY, d, TINY)


@wp.func
def cube_interval(origin: wp.vec3d, direction: wp.vec3d) -> wp.vec2d:
    """t where a ray enters and leaves the cube [-1, 1]^3; entry > exit where it misses."""
    rx, ry, rz = reciprocal_exactly(direction[0]), reciprocal_exactly(direction[1]), reciprocal_exactly(direction[2])
    mx, my, mz = -origin[0] * rx, -origin[1] * ry, -origin[2] * rz  # middle of each slab
    ex, ey, ez = wp.abs(rx), wp.abs(ry), wp.abs(rz)
    entry, exit = mx - ex, mx + ex
    entry, exit = wp.where(my - ey > entry, my - ey, entry), wp.where(my + ey < exit, my + ey, exit)
    entry, exit = wp.where(mz - ez > entry, mz - ez, entry), wp.where(mz + ez < exit, mz + ez, exit)
    return wp.vec2d(entry, wp.where(entry <= exit, exit, -FAR_OFF))


@wp.struct
class Round:
    """A cone, cylinder or capsule about z: radius ``middle`` + ``slope`` z between z = -``half`` and ``half``, where a cone ends in discs.
    A capsule ends in two balls about (0, 0, low) and (0, 0, high), which it touches smoothly at -half and half."""

    middle: wp.float64
    slope: wp.float64
    half: wp.float64
    reach: wp.float64  # all of it is so near to the origin
    low: wp.float64
    high: wp.float64
    low_radius: wp.float64
    high_radius: wp.float64


@wp.func
def round_of(shape: wp.vec4f) -> Round:
    """The constants of a CONE or CAPSULE; ``shape``: radius at the lower and the upper end, half the height."""
    body = Round()
    low, high = wp.float64(shape[0]), wp.float64(shape[1])
    body.half = wp.float64(shape[2])
    body.middle = HALF * (low + high)
    body.slope = HALF * (high - low) / body.half
    body.reach = body.half + wp.float64(2.0)
    slant = wp.sqrt(ONE + body.slope * body.slope)
    body.low = body.slope * low - body.half
    body.high = body.slope * high + body.half
    body.low_radius = low * slant
    body.high_radius = high * slant
    return body


@wp.func
def cone_interval(origin: wp.vec3d, direction: wp.vec3d, body: Round) -> wp.vec2d:
    """t where a ray enters and leaves a cone between its two ends; entry > exit where it misses.

    Solved about a point of the ray near the cone: the one nearest to the axis, or, where that is beyond reach (rays along the axis), the
    end of what is within reach. Of the quadratic formula the form that does not cancel; a ray along the cone's side has its other
    crossing far off, a steeper one crosses the cone that is opposite at the apex, which is no part of the shape.
    """
    along, across = wp.dot(direction, direction), direction[0] * direction[0] + direction[1] * direction[1]
    scale = ONE / along
    middle = -wp.dot(origin, direction) * scale
    far = body.reach * scale * (wp.abs(direction[0]) + wp.abs(direction[1]) + wp.abs(direction[2]))  # reach / |direction| or a bit more
    least = wp.float64(1.0e-24) * along
    start = -(origin[0] * direction[0] + origin[1] * direction[1]) / wp.where(across > least, across, least)
    start = wp.where(start > middle + far, middle + far, wp.where(start < middle - far, middle - far, start))
    x, y, z = origin[0] + start * direction[0], origin[1] + start * direction[1], origin[2] + start * direction[2]
    radius, growth = body.middle + body.slope * z, body.slope * direction[2]
    a = across - growth * growth  # a t^2 + 2 b t + c: outside by so much
    least = wp.float64(1.0e-20) * along
    a = wp.where(wp.abs(a) > least, a, least)
    b = x * direction[0] + y * direction[1] - radius * growth
    c = x * x + y * y - radius * radius
    square = b * b - a * c
    root = wp.sqrt(wp.where(square > ZERO, square, ZERO))
    q = -b - wp.where(b < ZERO, -root, root)
    q = wp.where(wp.abs(q) > TINY, q, TINY)
    once = ONE / (q * a)
    one, other = q * q * once, c * a * once  # q / a, c / q
    first, last = wp.where(one < other, one, other), wp.where(one < other, other, one)
    entry = wp.where(a > ZERO, first, wp.where(growth > ZERO, last, -FAR_OFF))
    leave = wp.where(a > ZERO, last, wp.where(growth > ZERO, FAR_OFF, first))
    per_z = reciprocal_exactly(direction[2])
    centre, half = -z * per_z, body.half * wp.abs(per_z)
    entry = wp.where(centre - half > entry, centre - half, entry)
    leave = wp.where(centre + half < leave, centre + half, leave)
    hit = entry <= leave and (square >= ZERO or a < ZERO)
    return wp.vec2d(wp.where(hit, entry + start, FAR_OFF), wp.where(hit, leave + start, -FAR_OFF))


@wp.func
def capsule_interval(origin: wp.vec3d, direction: wp.vec3d, body: Round) -> wp.vec2d:
    """t where a ray enters and leaves a capsule. It is convex: from where the first of its parts is entered to where the last is left."""
    side = cone_interval(origin, direction, body)
    low = exact_ball_interval(wp.vec3d(origin[0], origin[1], origin[2] - body.low), direction, body.low_radius)
    high = exact_ball_interval(wp.vec3d(origin[0], origin[1], origin[2] - body.high), direction, body.high_radius)
    entry, leave = wp.where(low[0] < side[0], low[0], side[0]), wp.where(low[1] > side[1], low[1], side[1])
    return wp.vec2d(wp.where(high[0] < entry, high[0], entry), wp.where(high[1] > leave, high[1], leave))


@wp.func
def plane_interval(origin: wp.vec3d, direction: wp.vec3d, half_width: wp.float64, half_length: wp.float64) -> wp.vec2d:
    """t where a ray goes through the plane z = 0, as entry from above and as exit from below; the other end is far off. A ray along the
    plane does not see it."""
    through = wp.abs(direction[2]) > wp.float64(1.0e-15) * (wp.abs(direction[0]) + wp.abs(direction[1]))
    t = -origin[2] / wp.where(through, direction[2], ONE)
    x, y = origin[0] + t * direction[0], origin[1] + t * direction[1]
    hit = wp.abs(x) <= half_width and wp.abs(y) <= half_length and through
    entry, leave = wp.where(direction[2] < ZERO, t, -FAR_OFF), wp.where(direction[2] < ZERO, FAR_OFF, t)
    return wp.vec2d(wp.where(hit, entry, FAR_OFF), wp.where(hit, leave, -FAR_OFF))


@wp.func
def shape_interval(kind: wp.int32, shapes: wp.array[wp.vec4f], source: wp.int32, origin: wp.vec3d, direction: wp.vec3d) -> wp.vec2d:
    """t where a ray enters and leaves the shape of an instance; entry > exit where it misses. ``shapes``: InstanceColumns.shape."""
    interval = wp.vec2d(FAR_OFF, -FAR_OFF)
    if kind == SPHERE:
        interval = sphere_interval(origin, direction)
    elif kind == CUBE:
        interval = cube_interval(origin, direction)
    elif kind == PLANE:
        interval = plane_interval(origin, direction, wp.float64(shapes[source][0]), wp.float64(shapes[source][1]))
    elif kind == CONE:
        interval = cone_interval(origin, direction, round_of(shapes[source]))
    elif kind == CAPSULE:
        interval = capsule_interval(origin, direction, round_of(shapes[source]))
    return interval
