"""trace.ray_leaves: one ray against a leaf: triangles 16 side by side (CPU) or one by one (CUDA), points, curves. Warp functions only.

Edge functions are those of the tile packets, so that no ray passes between two triangles that share an edge.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import POINT_LANES, RIBBONS, TUBES, MeshColumns, vec8f, vec16f
from hdwarp.trace.found import Found, ObjectRay, Variant, comes_before, take, wins
from hdwarp.trace.pixels import key_of
from hdwarp.trace.swept import (
    NOWHERE,
    RIBBON_PARTS,
    ball_interval,
    leaf_number,
    leaf_point,
    part_start,
    ribbon_crossing,
    ribbon_facing,
    ribbon_of,
    ribbon_root,
    tube_interval,
    tube_of,
)
from hdwarp.trace.triangles import NO_KEY, smallest


@wp.func
def edge_value(a: wp.vec3f, b: wp.vec3f, sign: wp.float32, direction: wp.vec3f) -> wp.float32:
    """Twice the volume spanned by the ray and the edge from ``a`` to ``b``, times ``sign``: changes its sign, and nothing else, when the
    neighbour walks the edge the other way."""
    return wp.dot(wp.cross(a + b, (b - a) * sign), direction)


@wp.func
def triangle_key(a: wp.vec3f, b: wp.vec3f, c: wp.vec3f, ray: ObjectRay, near_key: wp.float32, orthographic: wp.bool) -> wp.float32:
    """The key of a triangle, corners relative to the ray's origin; NO_KEY where the ray passes by or before the near end."""
    normal = wp.cross(b - a, c - a)
    distance = wp.dot(normal, a)
    facing = wp.dot(normal, ray.direction)
    side = wp.float32(distance)  # > 0: the ray sees the back
    key = facing / distance
    if orthographic:
        side = wp.where(ray.orthographic, facing, distance)
        key = wp.where(ray.orthographic, -distance / facing - ray.shift, key)
    sign = wp.where(side < 0.0, -1.0, 1.0)
    inside = smallest(edge_value(a, b, sign, ray.direction), edge_value(b, c, sign, ray.direction), edge_value(c, a, sign, ray.direction))
    useful = wp.abs(1.0 / side) < 1.0e37 and wp.abs(side) < 1.0e37  # neither degenerate nor overflowing nor NaN
    useful = useful and inside >= 0.0 and key <= near_key and not (ray.single_sided and side > 0.0)
    return wp.where(useful, key, NO_KEY)


@wp.func
def highest_lane(keys: vec16f) -> wp.float32:
    """By halves: a chain of 16 comparisons would take as long as the leaf itself."""
    high = vec8f()
    for lane in range(8):
        high[lane] = wp.where(keys[lane + 8] > keys[lane], keys[lane + 8], keys[lane])
    for lane in range(4):
        high[lane] = wp.where(high[lane + 4] > high[lane], high[lane + 4], high[lane])
    return wp.max(wp.max(high[0], high[1]), wp.max(high[2], high[3]))


@wp.func
def trace_leaf_lanes(meshes: MeshColumns, leaf: wp.int32, ray: ObjectRay, found: Found, variant: Variant) -> Found:
    """The triangles of a leaf, 16 at a time."""
    base = 9 * leaf
    ax = meshes.leaf_vertices[base]
    ay = meshes.leaf_vertices[base + 1]
    az = meshes.leaf_vertices[base + 2]
    bx = meshes.leaf_vertices[base + 3]
    by = meshes.leaf_vertices[base + 4]
    bz = meshes.leaf_vertices[base + 5]
    cx = meshes.leaf_vertices[base + 6]
    cy = meshes.leaf_vertices[base + 7]
    cz = meshes.leaf_vertices[base + 8]
    keys = vec16f()
    for lane in range(16):
        a = wp.vec3f(ax[lane], ay[lane], az[lane]) - ray.origin
        b = wp.vec3f(bx[lane], by[lane], bz[lane]) - ray.origin
        c = wp.vec3f(cx[lane], cy[lane], cz[lane]) - ray.origin
        keys[lane] = triangle_key(a, b, c, ray, found.near_key, variant.orthographic)
    if variant.peel:
        for lane in range(16):
            if keys[lane] == found.near_key and comes_before(meshes, found, 16 * leaf + lane, ray):
                keys[lane] = NO_KEY
    top = highest_lane(keys)
    if top >= found.key:
        for lane in range(16):
            if keys[lane] == top:
                if wins(meshes, found, top, 16 * leaf + lane, ray):
                    found = take(found, top, 16 * leaf + lane, ray)
    return found


@wp.func_native("return vertices.data[row].c[lane];")
def lane_of(vertices: wp.array[vec16f], row: wp.int32, lane: wp.int32) -> wp.float32: ...


@wp.func
def trace_leaf_singly(meshes: MeshColumns, leaf: wp.int32, ray: ObjectRay, found: Found, variant: Variant) -> Found:
    """The triangles of a leaf, one at a time: nothing but scalars, for the registers of a CUDA thread."""
    base = 9 * leaf
    for lane in range(meshes.leaf_count[leaf]):
        a = wp.vec3f(
            lane_of(meshes.leaf_vertices, base, lane),
            lane_of(meshes.leaf_vertices, base + 1, lane),
            lane_of(meshes.leaf_vertices, base + 2, lane),
        )
        b = wp.vec3f(
            lane_of(meshes.leaf_vertices, base + 3, lane),
            lane_of(meshes.leaf_vertices, base + 4, lane),
            lane_of(meshes.leaf_vertices, base + 5, lane),
        )
        c = wp.vec3f(
            lane_of(meshes.leaf_vertices, base + 6, lane),
            lane_of(meshes.leaf_vertices, base + 7, lane),
            lane_of(meshes.leaf_vertices, base + 8, lane),
        )
        key = triangle_key(a - ray.origin, b - ray.origin, c - ray.origin, ray, found.near_key, variant.orthographic)
        if variant.peel:
            if key == found.near_key and comes_before(meshes, found, 16 * leaf + lane, ray):
                key = wp.float32(NO_KEY)
        if wins(meshes, found, key, 16 * leaf + lane, ray):
            found = take(found, key, 16 * leaf + lane, ray)
    return found


@wp.func
def take_swept(meshes: MeshColumns, found: Found, t: wp.float32, slot: wp.int32, ray: ObjectRay, variant: Variant) -> Found:
    """A crossing of a point or curve; NOWHERE, or minus that: none."""
    key = key_of(t + ray.shift, ray.orthographic)
    counts = wp.abs(t) < NOWHERE and (ray.orthographic or t > 0.0) and key <= found.near_key
    if variant.peel:
        counts = counts and not (key == found.near_key and comes_before(meshes, found, slot, ray))
    if counts and wins(meshes, found, key, slot, ray):
        found = take(found, key, slot, ray)
    return found


@wp.func
def trace_leaf_swept(kind: wp.int32, meshes: MeshColumns, leaf: wp.int32, ray: ObjectRay, found: Found, variant: Variant) -> Found:
    """The points or pieces of curves of a leaf: where the ray enters them, and where it leaves them, if their back is drawn."""
    middle = wp.vec3f()
    for lane in range(meshes.leaf_count[leaf]):
        slot = 16 * leaf + lane
        if kind == RIBBONS:
            ribbon = ribbon_of(meshes.leaf_vertices, leaf, lane, ray.origin)
            for part in range(RIBBON_PARTS):
                u = ribbon_root(ribbon, middle, ray.direction, part_start(part), part_start(part + 1))
                t = ribbon_crossing(ribbon, middle, ray.direction, u)
                if not (ray.single_sided and ribbon_facing(ribbon, ray.direction, u) > 0.0):
                    found = take_swept(meshes, found, t, slot, ray, variant)
        else:
            interval = wp.vec2f()
            if kind == TUBES:
                interval = tube_interval(tube_of(meshes.leaf_vertices, leaf, lane, ray.origin), middle, ray.direction)
            else:
                centre = leaf_point(meshes.leaf_vertices, leaf, 0, POINT_LANES, lane) - ray.origin
                interval = ball_interval(centre, leaf_number(meshes.leaf_vertices, leaf, 3, POINT_LANES, lane), ray.direction)
            found = take_swept(meshes, found, interval[0], slot, ray, variant)
            if not ray.single_sided:
                found = take_swept(meshes, found, interval[1], slot, ray, variant)
    return found
