"""trace.shapes: analytic shapes in object space, where a ray enters and leaves them. Warp functions only."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import CAPSULE, CONE, CUBE, PLANE, SPHERE

MISS = wp.constant(3.0e38)


@wp.func
def sphere_interval(origin: wp.vec3f, direction: wp.vec3f) -> wp.vec2f:
    """t where a ray enters and leaves the unit sphere; entry > exit where it misses.

    From the point of the ray closest to the centre, not from the quadratic formula, which cancels for far-away rays.
    """
    scale = 1.0 / wp.dot(direction, direction)
    middle = -wp.dot(origin, direction) * scale
    closest = origin + direction * middle
    inside = 1.0 - wp.dot(closest, closest)
    half = wp.sqrt(wp.where(inside > 0.0, inside, 0.0) * scale)
    return wp.vec2f(wp.where(inside >= 0.0, middle - half, MISS), wp.where(inside >= 0.0, middle + half, -MISS))


@wp.func
def slab(origin: wp.float32, direction: wp.float32) -> wp.vec2f:
    """t where a ray enters and leaves -1 <= coordinate <= 1."""
    r = 1.0 / wp.where(wp.abs(direction) < 1.0e-30, 1.0e-30, direction)
    a, b = (-1.0 - origin) * r, (1.0 - origin) * r
    return wp.vec2f(wp.where(b < a, b, a), wp.where(b < a, a, b))


@wp.func
def cube_interval(origin: wp.vec3f, direction: wp.vec3f) -> wp.vec2f:
    """t where a ray enters and leaves the cube [-1, 1]^3; entry > exit where it misses."""
    x, y, z = slab(origin[0], direction[0]), slab(origin[1], direction[1]), slab(origin[2], direction[2])
    entry = wp.where(y[0] > x[0], y[0], x[0])
    entry = wp.where(z[0] > entry, z[0], entry)
    exit = wp.where(y[1] < x[1], y[1], x[1])
    exit = wp.where(z[1] < exit, z[1], exit)
    return wp.vec2f(entry, exit)


@wp.struct
class Round:
    """A cone, cylinder or capsule about z: radius ``middle`` + ``slope`` z between z = -``half`` and ``half``, where a cone ends in discs.
    A capsule ends in two balls about (0, 0, low) and (0, 0, high), which it touches smoothly at -half and half."""

    middle: wp.float32
    slope: wp.float32
    half: wp.float32
    reach: wp.float32  # all of it is so near to the origin
    low: wp.float32
    high: wp.float32
    low_radius: wp.float32
    high_radius: wp.float32


@wp.func
def round_of(shape: wp.vec4f) -> Round:
    """The constants of a CONE or CAPSULE; ``shape``: radius at the lower and the upper end, half the height."""
    body = Round()
    body.half = shape[2]
    body.middle = 0.5 * (shape[0] + shape[1])
    body.slope = 0.5 * (shape[1] - shape[0]) / shape[2]
    body.reach = body.half + 2.0
    slant = wp.sqrt(1.0 + body.slope * body.slope)
    body.low = body.slope * shape[0] - body.half
    body.high = body.slope * shape[1] + body.half
    body.low_radius = shape[0] * slant
    body.high_radius = shape[1] * slant
    return body


@wp.func
def cone_interval(origin: wp.vec3f, direction: wp.vec3f, body: Round) -> wp.vec2f:
    """t where a ray enters and leaves a cone between its two ends; entry > exit where it misses.

    Solved about a point of the ray near the cone: the one nearest to the axis, or, where that is beyond reach (rays along the axis), the
    end of what is within reach. Of the quadratic formula the form that does not cancel; a ray along the cone's side has its other
    crossing far off, a steeper one crosses the cone that is opposite at the apex, which is no part of the shape.
    """
    along, across = wp.dot(direction, direction), direction[0] * direction[0] + direction[1] * direction[1]
    middle = -wp.dot(origin, direction) / along
    far = body.reach / wp.sqrt(along)
    start = -(origin[0] * direction[0] + origin[1] * direction[1]) / wp.where(across > 1.0e-12 * along, across, 1.0e-12 * along)
    start = wp.where(start > middle + far, middle + far, wp.where(start < middle - far, middle - far, start))
    x, y, z = origin[0] + start * direction[0], origin[1] + start * direction[1], origin[2] + start * direction[2]
    radius, growth = body.middle + body.slope * z, body.slope * direction[2]
    a = across - growth * growth  # a t^2 + 2 b t + c: outside by so much
    a = wp.where(wp.abs(a) > 1.0e-10 * along, a, 1.0e-10 * along)
    b = x * direction[0] + y * direction[1] - radius * growth
    c = x * x + y * y - radius * radius
    square = b * b - a * c
    root = wp.sqrt(wp.where(square > 0.0, square, 0.0))
    q = -b - wp.where(b < 0.0, -root, root)
    q = wp.where(wp.abs(q) > 1.0e-30, q, 1.0e-30)
    one, other = q / a, c / q
    first, last = wp.where(one < other, one, other), wp.where(one < other, other, one)
    entry = wp.where(a > 0.0, first, wp.where(growth > 0.0, last, -MISS))
    leave = wp.where(a > 0.0, last, wp.where(growth > 0.0, MISS, first))
    per_z = 1.0 / wp.where(wp.abs(direction[2]) > 1.0e-30, direction[2], 1.0e-30)
    centre, half = -z * per_z, body.half * wp.abs(per_z)
    entry = wp.where(centre - half > entry, centre - half, entry)
    leave = wp.where(centre + half < leave, centre + half, leave)
    hit = entry <= leave and (square >= 0.0 or a < 0.0)
    return wp.vec2f(wp.where(hit, entry + start, MISS), wp.where(hit, leave + start, -MISS))


@wp.func
def ball_interval(origin: wp.vec3f, direction: wp.vec3f, height: wp.float32, radius: wp.float32) -> wp.vec2f:
    """t where a ray enters and leaves the ball about (0, 0, height)."""
    above = origin[2] - height
    scale = 1.0 / wp.dot(direction, direction)
    middle = -(origin[0] * direction[0] + origin[1] * direction[1] + above * direction[2]) * scale
    x, y, z = origin[0] + middle * direction[0], origin[1] + middle * direction[1], above + middle * direction[2]
    inside = radius * radius - (x * x + y * y + z * z)
    half = wp.sqrt(wp.where(inside > 0.0, inside, 0.0) * scale)
    return wp.vec2f(wp.where(inside >= 0.0, middle - half, MISS), wp.where(inside >= 0.0, middle + half, -MISS))


@wp.func
def capsule_interval(origin: wp.vec3f, direction: wp.vec3f, body: Round) -> wp.vec2f:
    """t where a ray enters and leaves a capsule. It is convex: from where the first of its parts is entered to where the last is left."""
    side = cone_interval(origin, direction, body)
    low = ball_interval(origin, direction, body.low, body.low_radius)
    high = ball_interval(origin, direction, body.high, body.high_radius)
    entry, leave = wp.where(low[0] < side[0], low[0], side[0]), wp.where(low[1] > side[1], low[1], side[1])
    return wp.vec2f(wp.where(high[0] < entry, high[0], entry), wp.where(high[1] > leave, high[1], leave))


@wp.func
def plane_interval(origin: wp.vec3f, direction: wp.vec3f, half_width: wp.float32, half_length: wp.float32) -> wp.vec2f:
    """t where a ray goes through the plane z = 0, as entry from above and as exit from below; the other end is far off. A ray along the
    plane does not see it."""
    through = wp.abs(direction[2]) > 1.0e-12 * (wp.abs(direction[0]) + wp.abs(direction[1]))
    t = -origin[2] / wp.where(through, direction[2], 1.0)
    x, y = origin[0] + t * direction[0], origin[1] + t * direction[1]
    hit = wp.abs(x) <= half_width and wp.abs(y) <= half_length and through
    entry, leave = wp.where(direction[2] < 0.0, t, -MISS), wp.where(direction[2] < 0.0, MISS, t)
    return wp.vec2f(wp.where(hit, entry, MISS), wp.where(hit, leave, -MISS))


@wp.func
def shape_interval(kind: wp.int32, shapes: wp.array[wp.vec4f], row: wp.int32, origin: wp.vec3f, direction: wp.vec3f) -> wp.vec2f:
    """t where a ray enters and leaves the shape of an instance; entry > exit where it misses. ``shapes``: InstanceColumns.shape."""
    interval = wp.vec2f(MISS, -MISS)
    if kind == SPHERE:
        interval = sphere_interval(origin, direction)
    elif kind == CUBE:
        interval = cube_interval(origin, direction)
    elif kind == PLANE:
        interval = plane_interval(origin, direction, shapes[row][0], shapes[row][1])
    elif kind == CONE:
        interval = cone_interval(origin, direction, round_of(shapes[row]))
    elif kind == CAPSULE:
        interval = capsule_interval(origin, direction, round_of(shapes[row]))
    return interval
