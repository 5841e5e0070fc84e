"""tables.instance_kernels: where instances stand and how far they reach, by bodies and boxes. Host code is in tables.instances."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import CAPSULE, CONE, PLANE, SPHERE, InstanceColumns

_EMPTY = wp.constant(3.0e38)  # bounds of rows that draw nothing are inverted


@wp.func
def outward(value: wp.float64, sign: wp.float64) -> wp.float32:
    """float64 to float32, rounded away from the box: ``sign`` -1 for a lower bound, +1 for an upper one."""
    return wp.float32(value + sign * wp.abs(value) * wp.float64(1.2e-7))


@wp.func
def narrow_matrix(m: wp.mat33d) -> wp.mat33f:
    out = wp.mat33f()
    for i in range(3):
        for j in range(3):
            out[i, j] = wp.float32(m[i, j])
    return out


@wp.struct
class Placed:
    """world = linear * object + translation."""

    linear: wp.mat33d
    translation: wp.vec3d


@wp.struct
class PosedColumns:
    """Instances that bodies carry: a row each, and what they have in common with their copies in other worlds."""

    row: wp.array[wp.int32]  # instance row
    item: wp.array[wp.int32]  # its row in what follows
    slot: wp.array[wp.int32]  # number of the body among those of its world
    body_from_object: wp.array[wp.mat33d]
    body_offset: wp.array[wp.vec3d]
    body_start: wp.array[wp.int32]  # by world + 1: first body of the world


@wp.func
def body_of(instances: InstanceColumns, posed: PosedColumns, row: wp.int32, item: wp.int32) -> wp.int32:
    """Row of the body that carries an instance."""
    return posed.body_start[instances.world[row] + 1] + posed.slot[item]


@wp.func
def is_pose(pose: wp.transformf) -> wp.bool:
    """Whether its numbers are finite and its quaternion has a length."""
    p, q = wp.transform_get_translation(pose), wp.transform_get_rotation(pose)
    length = wp.abs(q[0]) + wp.abs(q[1]) + wp.abs(q[2]) + wp.abs(q[3])
    return wp.isfinite(p) and wp.isfinite(length) and length > 0.0


@wp.func
def carried(pose: wp.transformf, body_from_object: wp.mat33d, body_offset: wp.vec3d) -> Placed:
    """Where a body at ``pose`` has what it carries, composed in float64."""
    p, q = wp.transform_get_translation(pose), wp.transform_get_rotation(pose)
    if not is_pose(pose):
        p = wp.vec3f(wp.NAN, wp.NAN, wp.NAN)  # a body without a pose is nowhere, and so is what it carries
    x, y, z, w = wp.float64(q[0]), wp.float64(q[1]), wp.float64(q[2]), wp.float64(q[3])
    s = wp.float64(2.0) / (x * x + y * y + z * z + w * w)  # makes up for a quaternion whose length is not quite 1
    one = wp.float64(1.0)
    turn = wp.mat33d(
        one - s * (y * y + z * z),
        s * (x * y - z * w),
        s * (x * z + y * w),
        s * (x * y + z * w),
        one - s * (x * x + z * z),
        s * (y * z - x * w),
        s * (x * z - y * w),
        s * (y * z + x * w),
        one - s * (x * x + y * y),
    )
    shift = turn * body_offset
    placed = Placed()
    placed.linear = turn * body_from_object
    placed.translation = wp.vec3d(wp.float64(p[0]) + shift[0], wp.float64(p[1]) + shift[1], wp.float64(p[2]) + shift[2])
    return placed


@wp.func
def round_reach(kind: wp.int32, shape: wp.vec4f, row: wp.vec3d) -> wp.vec2d:
    """Least and greatest value of ``row`` . point over a sphere, a cone (its end discs) or a capsule (its end balls)."""
    across = wp.sqrt(row[0] * row[0] + row[1] * row[1])
    whole = wp.sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2])
    if kind == SPHERE:
        return wp.vec2d(-whole, whole)
    low, high, half = wp.float64(shape[0]), wp.float64(shape[1]), wp.float64(shape[2])
    low_z, high_z, low_reach, high_reach = -half, half, low * across, high * across
    if kind == CAPSULE:
        slope = wp.float64(0.5) * (high - low) / half
        slant = wp.sqrt(wp.float64(1.0) + slope * slope)
        low_z, high_z = slope * low - half, slope * high + half
        low_reach, high_reach = low * slant * whole, high * slant * whole
    a, b = row[2] * low_z, row[2] * high_z
    return wp.vec2d(wp.min(a - low_reach, b - high_reach), wp.max(a + low_reach, b + high_reach))


@wp.struct
class Box:
    """Inverted: nothing."""

    lower: wp.vec3f
    upper: wp.vec3f


@wp.func
def world_box(kind: wp.int32, shape: wp.vec4f, lo: wp.vec3f, hi: wp.vec3f, m: wp.mat33f, t: wp.vec3d) -> Box:
    """World bounds, rounded outward, of geometry with the object box ``lo`` to ``hi``: of spheres, cones and capsules exact, else around
    the transformed object box."""
    box = Box()
    if kind < 0 or lo[0] > hi[0]:
        box.lower = wp.vec3f(_EMPTY, _EMPTY, _EMPTY)
        box.upper = wp.vec3f(-_EMPTY, -_EMPTY, -_EMPTY)
        return box
    if kind == PLANE and not (shape[0] < _EMPTY and shape[1] < _EMPTY):
        box.lower = wp.vec3f(-_EMPTY, -_EMPTY, -_EMPTY)  # without end: the tree keeps such boxes apart
        box.upper = wp.vec3f(_EMPTY, _EMPTY, _EMPTY)
        return box
    for i in range(3):
        reach = wp.vec2d()
        if kind == SPHERE or kind == CONE or kind == CAPSULE:
            reach = round_reach(kind, shape, wp.vec3d(wp.float64(m[i, 0]), wp.float64(m[i, 1]), wp.float64(m[i, 2])))
        else:
            for j in range(3):
                a = wp.float64(m[i, j]) * wp.float64(lo[j])
                b = wp.float64(m[i, j]) * wp.float64(hi[j])
                reach[0] += wp.min(a, b)
                reach[1] += wp.max(a, b)
        box.lower[i] = outward(wp.float64(t[i]) + reach[0], wp.float64(-1.0))
        box.upper[i] = outward(wp.float64(t[i]) + reach[1], wp.float64(1.0))
    if not (wp.isfinite(box.lower) and wp.isfinite(box.upper)):  # a pose that is no number: nothing is there
        box.lower = wp.vec3f(_EMPTY, _EMPTY, _EMPTY)
        box.upper = wp.vec3f(-_EMPTY, -_EMPTY, -_EMPTY)
    return box


@wp.func
def instance_box(
    instances: InstanceColumns,
    source: wp.int32,
    linear: wp.mat33f,
    translation: wp.vec3d,
    object_lower: wp.array[wp.vec3f],
    object_upper: wp.array[wp.vec3f],
) -> Box:
    """World bounds of what ``source`` is, where ``linear`` and ``translation`` put it: see `world_box`."""
    kind = instances.kind[source]
    lo = wp.vec3f(-1.0, -1.0, -1.0)
    hi = wp.vec3f(1.0, 1.0, 1.0)
    if instances.geometry[source] >= 0:
        for i in range(3):
            lo[i] = object_lower[instances.geometry[source]][i]
            hi[i] = object_upper[instances.geometry[source]][i]
    shape = wp.vec4f()
    if kind == CONE or kind == CAPSULE or kind == PLANE:
        shape = instances.shape[source]
        if kind == PLANE:
            lo[2] = 0.0
            hi[2] = 0.0
    return world_box(kind, shape, lo, hi, linear, translation)


@wp.kernel(enable_backward=False)
def write_bounds(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    instances: InstanceColumns,
    rows: wp.array[wp.int32],
    object_lower: wp.array[wp.vec3f],
    object_upper: wp.array[wp.vec3f],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """World bounds of ``rows`` (of all where it is empty): see `world_box`."""
    job = first + wp.tid() * step
    if job >= count:
        return
    row = job
    if rows.shape[0] > 0:
        row = rows[job]
    box = instance_box(
        instances, instances.source[row], instances.world_from_object[row], instances.translation[row], object_lower, object_upper
    )
    lower[row] = box.lower
    upper[row] = box.upper


@wp.kernel(enable_backward=False)
def write_poses(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    instances: InstanceColumns,
    body_q: wp.array[wp.transformf],
    posed: PosedColumns,
    object_lower: wp.array[wp.vec3f],
    object_upper: wp.array[wp.vec3f],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """Transform of the instances that bodies carry: world_from_body * body_from_object, composed in float64; and their bounds."""
    i = first + wp.tid() * step
    if i >= count:
        return
    row = posed.row[i]
    item = posed.item[i]
    placed = carried(body_q[body_of(instances, posed, row, item)], posed.body_from_object[item], posed.body_offset[item])
    linear = narrow_matrix(placed.linear)
    instances.world_from_object[row] = linear
    instances.translation[row] = placed.translation
    box = instance_box(instances, instances.source[row], linear, placed.translation, object_lower, object_upper)
    lower[row] = box.lower
    upper[row] = box.upper


@wp.kernel(enable_backward=False)
def place_copies(first: wp.int32, step: wp.int32, count: wp.int32, first_row: wp.int32, instances: InstanceColumns):
    """Copies that are not turned are in their world where their source is in its own."""
    i = first + wp.tid() * step
    if i >= count:
        return
    row = first_row + i
    source = instances.source[row]
    instances.world_from_object[row] = instances.world_from_object[source]
    instances.translation[row] = instances.translation[source]


@wp.kernel(enable_backward=False)
def bound_copies(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    first_row: wp.int32,
    source: wp.array[wp.int32],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """The same of their bounds."""
    i = first + wp.tid() * step
    if i >= count:
        return
    row = first_row + i
    lower[row] = lower[source[row]]
    upper[row] = upper[source[row]]
