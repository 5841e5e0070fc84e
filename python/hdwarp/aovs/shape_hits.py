"""aovs.shape_hits: cones, cylinders and capsules hit by one ray, in double: crossings, normal, surface parameters. Object space as in
`trace.shapes`: about z, radius ``middle`` + ``slope`` z between -``half`` and ``half``, a capsule's balls beyond."""

from __future__ import annotations

import warp as wp

_PI = 3.14159265358979
_NOWHERE = 1.0e300


@wp.func
def cone_crossings(
    ox: wp.float64,
    oy: wp.float64,
    oz: wp.float64,
    dx: wp.float64,
    dy: wp.float64,
    dz: wp.float64,
    middle: wp.float64,
    slope: wp.float64,
    half: wp.float64,
) -> wp.vec2d:
    """t where a ray enters and leaves a cone between its ends; `_NOWHERE` and minus that where it misses. See `trace.shapes`."""
    along, across = dx * dx + dy * dy + dz * dz, dx * dx + dy * dy
    nearest = -(ox * dx + oy * dy + oz * dz) / along
    far = (half + wp.float64(2.0)) / wp.sqrt(along)
    least = wp.float64(1.0e-24) * along
    start = -(ox * dx + oy * dy) / wp.where(across > least, across, least)
    start = wp.where(start > nearest + far, nearest + far, wp.where(start < nearest - far, nearest - far, start))
    x, y, z = ox + start * dx, oy + start * dy, oz + start * dz
    radius, growth = middle + slope * z, slope * dz
    a = across - growth * growth
    least = wp.float64(1.0e-20) * along
    a = wp.where(wp.abs(a) > least, a, least)
    b = x * dx + y * dy - radius * growth
    c = x * x + y * y - radius * radius
    square = b * b - a * c
    root = wp.sqrt(wp.where(square > wp.float64(0.0), square, wp.float64(0.0)))
    q = -b - wp.where(b < wp.float64(0.0), -root, root)
    q = wp.where(wp.abs(q) > wp.float64(1.0e-200), q, wp.float64(1.0e-200))
    one, other = q / a, c / q
    first, last = wp.where(one < other, one, other), wp.where(one < other, other, one)
    forward = growth > wp.float64(0.0)
    entry = wp.where(a > wp.float64(0.0), first, wp.where(forward, last, wp.float64(-_NOWHERE)))
    leave = wp.where(a > wp.float64(0.0), last, wp.where(forward, wp.float64(_NOWHERE), first))
    per_z = wp.float64(1.0) / wp.where(wp.abs(dz) > wp.float64(1.0e-200), dz, wp.float64(1.0e-200))
    centre, extent = -z * per_z, half * wp.abs(per_z)
    entry = wp.where(centre - extent > entry, centre - extent, entry)
    leave = wp.where(centre + extent < leave, centre + extent, leave)
    hit = entry <= leave and (square >= wp.float64(0.0) or a < wp.float64(0.0))
    return wp.vec2d(wp.where(hit, entry + start, wp.float64(_NOWHERE)), wp.where(hit, leave + start, wp.float64(-_NOWHERE)))


@wp.func
def ball_crossings(
    ox: wp.float64,
    oy: wp.float64,
    oz: wp.float64,
    dx: wp.float64,
    dy: wp.float64,
    dz: wp.float64,
    radius: wp.float64,
) -> wp.vec2d:
    """t where a ray enters and leaves the ball about the origin; `_NOWHERE` and minus that where it misses."""
    per_dd = wp.float64(1.0) / (dx * dx + dy * dy + dz * dz)
    nearest = -(ox * dx + oy * dy + oz * dz) * per_dd
    x, y, z = ox + nearest * dx, oy + nearest * dy, oz + nearest * dz
    inside = radius * radius - (x * x + y * y + z * z)
    half = wp.sqrt(wp.where(inside > wp.float64(0.0), inside, wp.float64(0.0)) * per_dd)
    hit = inside >= wp.float64(0.0)
    return wp.vec2d(wp.where(hit, nearest - half, wp.float64(_NOWHERE)), wp.where(hit, nearest + half, wp.float64(-_NOWHERE)))


@wp.func
def round_distance(
    ox: wp.float64,
    oy: wp.float64,
    oz: wp.float64,
    dx: wp.float64,
    dy: wp.float64,
    dz: wp.float64,
    shape: wp.vec4f,
    capsule: wp.bool,
    leaving: wp.bool,
    seen: wp.float64,
) -> wp.float64:
    """t where a ray enters, or leaves, a cone or capsule; ``seen`` where the exact ray just misses it."""
    low, high, half = wp.float64(shape[0]), wp.float64(shape[1]), wp.float64(shape[2])
    middle, slope = wp.float64(0.5) * (low + high), wp.float64(0.5) * (high - low) / half
    found = cone_crossings(ox, oy, oz, dx, dy, dz, middle, slope, half)
    entry, leave = found[0], found[1]
    if capsule:
        slant = wp.sqrt(wp.float64(1.0) + slope * slope)
        below = ball_crossings(ox, oy, oz - (slope * low - half), dx, dy, dz, low * slant)
        above = ball_crossings(ox, oy, oz - (slope * high + half), dx, dy, dz, high * slant)
        entry = wp.min(entry, wp.min(below[0], above[0]))
        leave = wp.max(leave, wp.max(below[1], above[1]))
    return wp.where(entry <= leave, wp.where(leaving, leave, entry), seen)


@wp.func
def is_on_end(reach: wp.float32, z: wp.float32, shape: wp.vec4f) -> wp.bool:
    """Whether a point of a cone, ``reach`` from its axis, is on an end disc and not on the side: what it is nearer to."""
    slope = 0.5 * (shape[1] - shape[0]) / shape[2]
    radius = 0.5 * (shape[0] + shape[1]) + slope * z
    return wp.abs(wp.abs(z) - shape[2]) * wp.sqrt(1.0 + slope * slope) <= wp.abs(reach - radius)


@wp.func
def round_normal(x: wp.float32, y: wp.float32, z: wp.float32, shape: wp.vec4f, capsule: wp.bool) -> wp.vec3f:
    """Outward normal, not unit, of a cone or capsule at a point on it; at an apex it is along the axis."""
    slope = 0.5 * (shape[1] - shape[0]) / shape[2]
    up = wp.where(z < 0.0, -1.0, 1.0)
    reach = wp.sqrt(x * x + y * y)
    if capsule:
        at = wp.clamp(z, -shape[2], shape[2])
        radius = 0.5 * (shape[0] + shape[1]) + slope * at
        rise = z - (at + slope * radius)
        return wp.vec3f(x, y, wp.where(reach + wp.abs(rise) > 0.0, rise, up))
    if reach == 0.0 or is_on_end(reach, z, shape):
        return wp.vec3f(0.0, 0.0, up)
    return wp.vec3f(x, y, -slope * reach)


@wp.func
def round_parameters(x: wp.float32, y: wp.float32, z: wp.float32, shape: wp.vec4f, capsule: wp.bool) -> wp.vec2f:
    """(s, t) of a point of a cone or capsule: s is longitude / 2 pi from +x towards +y, in [0, 1); t runs along the profile, from 0 in the
    middle of the lower end over 1/4 where the side begins and 3/4 where it ends to 1 in the middle of the upper end: on a cone's discs
    with the distance from the axis, on a capsule's balls with the angle, along the side with z."""
    reach = wp.sqrt(x * x + y * y)
    s = wp.atan2(y, x) * (0.5 / _PI)
    s = wp.where(s < 0.0, s + 1.0, s)
    slope = 0.5 * (shape[1] - shape[0]) / shape[2]
    t = 0.5 + 0.25 * wp.clamp(z / shape[2], -1.0, 1.0)
    if capsule:
        if z < -shape[2]:
            t = 0.25 * wp.atan2(reach, slope * shape[0] - shape[2] - z) / wp.atan2(1.0, slope)
        elif z > shape[2]:
            t = 1.0 - 0.25 * wp.atan2(reach, z - slope * shape[1] - shape[2]) / wp.atan2(1.0, -slope)
    elif is_on_end(reach, z, shape):
        share = 0.25 * wp.min(reach / wp.where(z < 0.0, shape[0], shape[1]), 1.0)
        t = wp.where(z < 0.0, share, 1.0 - share)
    return wp.vec2f(wp.where(s < 1.0, s, 0.0), wp.clamp(t, 0.0, 1.0))
