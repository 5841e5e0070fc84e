"""aovs.shape_hits: implicit shapes hit by one ray, in double: crossings, normal, surface parameters. Object space as in `trace.shapes`;
cones, cylinders and capsules: about z, radius ``middle`` + ``slope`` z between -``half`` and ``half``, a capsule's balls beyond."""

from __future__ import annotations

import warp as wp

from hdwarp.aovs.hits import reciprocal

_PI = 3.14159265358979
_NOWHERE = 1.0e300


@wp.struct
class CubeHit:
    t: wp.float64
    normal: wp.vec3f
    weights: wp.vec2f  # (s, t) of the face, 0..1


@wp.func
def sphere_crossing(
    ox: wp.float64, oy: wp.float64, oz: wp.float64, dx: wp.float64, dy: wp.float64, dz: wp.float64, leaving: wp.int32
) -> wp.float64:
    """t where a line enters the unit sphere (``leaving`` 0) or leaves it; where it misses, the t nearest to it."""
    per_dd = wp.float64(1.0) / (dx * dx + dy * dy + dz * dz)
    middle = -(ox * dx + oy * dy + oz * dz) * per_dd
    lx = ox + middle * dx  # the point nearest the centre
    ly = oy + middle * dy
    lz = oz + middle * dz
    inside_by = wp.float64(1.0) - (lx * lx + ly * ly + lz * lz)
    half = wp.sqrt(wp.where(inside_by > wp.float64(0.0), inside_by, wp.float64(0.0)) * per_dd)
    return middle + wp.where(leaving == 0, -half, half)


@wp.func
def cube_hit(ox: wp.float64, oy: wp.float64, oz: wp.float64, dx: wp.float64, dy: wp.float64, dz: wp.float64, leaving: wp.int32) -> CubeHit:
    """Where a line enters the cube from -1 to 1 (``leaving`` 0) or leaves it, and through which face."""
    ix, iy, iz = reciprocal(dx), reciprocal(dy), reciprocal(dz)
    mx, my, mz = -ox * ix, -oy * iy, -oz * iz  # middle of each slab
    ex, ey, ez = wp.abs(ix), wp.abs(iy), wp.abs(iz)
    entry = mx - ex
    entry = wp.where(my - ey > entry, my - ey, entry)
    entry = wp.where(mz - ez > entry, mz - ez, entry)
    leave = mx + ex
    leave = wp.where(my + ey < leave, my + ey, leave)
    leave = wp.where(mz + ez < leave, mz + ez, leave)
    distance = wp.where(leaving == 0, entry, leave)
    qx, qy, qz = wp.float32(ox + distance * dx), wp.float32(oy + distance * dy), wp.float32(oz + distance * dz)
    through_x = wp.abs(qx) >= wp.abs(qy) and wp.abs(qx) >= wp.abs(qz)
    through_y = wp.abs(qy) >= wp.abs(qz) and not through_x
    across = wp.where(through_x, qy, wp.where(through_y, qz, qx))
    along = wp.where(through_x, qz, wp.where(through_y, qx, qy))
    hit = CubeHit()
    hit.t = distance
    hit.weights = wp.vec2f(wp.clamp(across * 0.5 + 0.5, 0.0, 1.0), wp.clamp(along * 0.5 + 0.5, 0.0, 1.0))
    along_x = wp.where(through_x, wp.where(qx < 0.0, -1.0, 1.0), 0.0)
    along_y = wp.where(through_y, wp.where(qy < 0.0, -1.0, 1.0), 0.0)
    along_z = wp.where(through_x or through_y, 0.0, wp.where(qz < 0.0, -1.0, 1.0))
    hit.normal = wp.vec3f(along_x, along_y, along_z)
    return hit


@wp.func
def cone_crossings(
    ox: wp.float64,
    oy: wp.float64,
    oz: wp.float64,
    dx: wp.float64,
    dy: wp.float64,
    dz: wp.float64,
    low: wp.float64,
    high: wp.float64,
    half: wp.float64,
) -> wp.vec2d:
    """t where a ray enters and leaves a cone between its ends; `_NOWHERE` and minus that where it misses. See `trace.shapes`."""
    middle, slope = wp.float64(0.5) * (low + high), wp.float64(0.5) * (high - low) / half
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
def is_on_end(reach: wp.float32, z: wp.float32, low: wp.float32, high: wp.float32, half: wp.float32) -> wp.bool:
    """Whether a point of a cone, ``reach`` from its axis, is on an end disc and not on the side: what it is nearer to."""
    slope = 0.5 * (high - low) / half
    radius = 0.5 * (low + high) + slope * z
    return wp.abs(wp.abs(z) - half) * wp.sqrt(1.0 + slope * slope) <= wp.abs(reach - radius)


@wp.func
def capsule_crossings(
    ox: wp.float64,
    oy: wp.float64,
    oz: wp.float64,
    dx: wp.float64,
    dy: wp.float64,
    dz: wp.float64,
    low: wp.float64,
    high: wp.float64,
    half: wp.float64,
) -> wp.vec2d:
    """t where a ray enters the first of a capsule's two balls and leaves the last; `_NOWHERE` and minus that where it misses both."""
    slope = wp.float64(0.5) * (high - low) / half
    slant = wp.sqrt(wp.float64(1.0) + slope * slope)
    bottom = ball_crossings(ox, oy, oz - (slope * low - half), dx, dy, dz, low * slant)
    top = ball_crossings(ox, oy, oz - (slope * high + half), dx, dy, dz, high * slant)
    return wp.vec2d(wp.where(bottom[0] < top[0], bottom[0], top[0]), wp.where(bottom[1] > top[1], bottom[1], top[1]))


@wp.func
def round_normal(
    x: wp.float32, y: wp.float32, z: wp.float32, low: wp.float32, high: wp.float32, half: wp.float32, capsule: wp.bool
) -> wp.vec3f:
    """Outward normal, not unit, of a cone or capsule at a point on it; at an apex it is along the axis."""
    slope = 0.5 * (high - low) / half
    up = wp.where(z < 0.0, -1.0, 1.0)
    reach = wp.sqrt(x * x + y * y)
    at = wp.where(z < -half, -half, wp.where(z > half, half, z))
    rise = z - (at + slope * (0.5 * (low + high) + slope * at))  # from where on the axis a capsule's normals come
    rise = wp.where(capsule, rise, -slope * reach)
    end = reach + wp.abs(rise) == 0.0 or (not capsule and (reach == 0.0 or is_on_end(reach, z, low, high, half)))
    return wp.vec3f(wp.where(end, 0.0, x), wp.where(end, 0.0, y), wp.where(end, up, rise))


@wp.func
def round_parameters(
    x: wp.float32, y: wp.float32, z: wp.float32, low: wp.float32, high: wp.float32, half: wp.float32, capsule: wp.bool
) -> wp.vec2f:
    """(s, t) of a point of a cone or capsule: s is longitude / 2 pi from +x towards +y, in [0, 1); t runs along the profile, from 0 in the
    middle of the lower end over 1/4 where the side begins and 3/4 where it ends to 1 in the middle of the upper end: on a cone's discs
    with the distance from the axis, on a capsule's balls with the angle, along the side with z."""
    reach = wp.sqrt(x * x + y * y)
    s = wp.atan2(y, x) * (0.5 / _PI)
    s = wp.where(s < 0.0, s + 1.0, s)
    slope = 0.5 * (high - low) / half
    t = 0.5 + 0.25 * wp.clamp(z / half, -1.0, 1.0)
    if capsule:
        if z < -half:
            t = 0.25 * wp.atan2(reach, slope * low - half - z) / wp.atan2(1.0, slope)
        elif z > half:
            t = 1.0 - 0.25 * wp.atan2(reach, z - slope * high - half) / wp.atan2(1.0, -slope)
    elif is_on_end(reach, z, low, high, half):
        share = 0.25 * wp.min(reach / wp.where(z < 0.0, low, high), 1.0)
        t = wp.where(z < 0.0, share, 1.0 - share)
    return wp.vec2f(wp.where(s < 1.0, s, 0.0), wp.clamp(t, 0.0, 1.0))
