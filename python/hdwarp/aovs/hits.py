"""aovs.hits: the mathematics of one hit, in double where digits would be lost: which root, which weights, which distance."""

from __future__ import annotations

import warp as wp

_PI = 3.14159265358979


@wp.func
def planar_scale(near: wp.float64, far: wp.float64) -> wp.float64:
    """f / (f - n), 1 for a far plane at infinity."""
    one = wp.float64(1.0)
    return one / (one - wp.where(wp.isfinite(far), near / far, wp.float64(0.0)))


@wp.func
def sphere_parameters(p: wp.vec3f) -> wp.vec2f:
    """(s, t) of a point on the unit sphere: longitude / 2 pi from +x towards +y, in [0, 1); latitude / pi, 0 at -z, 1 at +z."""
    s = wp.atan2(p[1], p[0]) * (0.5 / _PI)
    return wp.vec2f(wp.where(s < 0.0, s + 1.0, s), 0.5 + wp.asin(wp.clamp(p[2], -1.0, 1.0)) / _PI)


@wp.func
def seen_distance(key: wp.float32, orthographic: wp.int32) -> wp.float64:
    """Distance in the visibility record, good to about 1e-5."""
    return wp.where(orthographic != 0, -wp.float64(key), wp.float64(1.0) / wp.float64(key))


@wp.func
def reciprocal(value: wp.float64) -> wp.float64:
    """1 / value, large and finite for 0."""
    tiny = wp.float64(1.0e-200)
    return wp.float64(1.0) / wp.where(wp.abs(value) < tiny, tiny, value)


@wp.func
def triangle_corner(vertices: wp.array[wp.float32], slot: wp.int32, offset: wp.int32) -> wp.vec3d:
    """Corner a, b or c (offset 0, 48, 96) of a triangle slot."""
    g = (slot >> 4) * 144 + (slot & 15) + offset
    return wp.vec3d(wp.float64(vertices[g]), wp.float64(vertices[g + 16]), wp.float64(vertices[g + 32]))


@wp.struct
class PlaneHit:
    """Where a line meets the plane of a triangle a, b, c."""

    t: wp.float64
    of_a: wp.float64  # weights
    of_b: wp.float64
    least: wp.float64  # the lowest weight of the three
    normal: wp.vec3f  # its largest component 1 or -1


@wp.func
def plane_hit(
    vertices: wp.array[wp.float32],
    slot: wp.int32,
    ox: wp.float64,
    oy: wp.float64,
    oz: wp.float64,
    dx: wp.float64,
    dy: wp.float64,
    dz: wp.float64,
) -> PlaneHit:
    """``vertices``: MeshColumns.leaf_vertices, flat. By scalars, which stand side by side in SIMD registers."""
    g = (slot >> 4) * 144 + (slot & 15)
    ax, ay, az = wp.float64(vertices[g]), wp.float64(vertices[g + 16]), wp.float64(vertices[g + 32])
    ux = wp.float64(vertices[g + 48]) - ax
    uy = wp.float64(vertices[g + 64]) - ay
    uz = wp.float64(vertices[g + 80]) - az
    vx = wp.float64(vertices[g + 96]) - ax
    vy = wp.float64(vertices[g + 112]) - ay
    vz = wp.float64(vertices[g + 128]) - az
    cx, cy, cz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    largest = wp.abs(cx)
    largest = wp.where(wp.abs(cy) > largest, wp.abs(cy), largest)
    largest = wp.where(wp.abs(cz) > largest, wp.abs(cz), largest)
    scale = wp.float64(1.0) / largest
    cx, cy, cz = cx * scale, cy * scale, cz * scale
    px, py, pz = ax - ox, ay - oy, az - oz
    distance = (cx * px + cy * py + cz * pz) / (cx * dx + cy * dy + cz * dz)
    hx, hy, hz = distance * dx - px, distance * dy - py, distance * dz - pz  # from corner a
    area = scale / (cx * cx + cy * cy + cz * cz)
    of_b = ((hy * vz - hz * vy) * cx + (hz * vx - hx * vz) * cy + (hx * vy - hy * vx) * cz) * area
    of_c = ((uy * hz - uz * hy) * cx + (uz * hx - ux * hz) * cy + (ux * hy - uy * hx) * cz) * area
    hit = PlaneHit()
    hit.t = distance
    hit.of_a = wp.float64(1.0) - of_b - of_c
    hit.of_b = of_b
    hit.least = wp.where(hit.of_a < of_b, hit.of_a, of_b)
    hit.least = wp.where(of_c < hit.least, of_c, hit.least)
    hit.normal = wp.vec3f(wp.float32(cx), wp.float32(cy), wp.float32(cz))
    return hit


@wp.func
def inside_weights(a: wp.float32, b: wp.float32) -> wp.vec2f:
    """Weights of the first two corners, moved into the triangle; the first corner where they are no numbers."""
    c = 1.0 - a - b
    a, b, c = wp.where(a > 0.0, a, 0.0), wp.where(b > 0.0, b, 0.0), wp.where(c > 0.0, c, 0.0)
    whole = a + b + c
    scale = wp.where(whole > 0.0, 1.0 / whole, 0.0)
    return wp.vec2f(wp.where(whole > 0.0, a * scale, 1.0), b * scale)


@wp.func
def grazing_hit(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, origin: wp.vec3d, direction: wp.vec3d, seen: wp.float64) -> wp.vec3d:
    """(t, w0, w1) where the record says hit and the exact ray passes by: nearly edge-on triangles, and rays rounded over an edge.

    The plane's own crossing may lie anywhere, so the recorded distance counts, kept within the depths of the triangle's corners.
    """
    per_dd = wp.float64(1.0) / wp.dot(direction, direction)
    ta, tb, tc = wp.dot(a - origin, direction) * per_dd, wp.dot(b - origin, direction) * per_dd, wp.dot(c - origin, direction) * per_dd
    low, high = wp.min(ta, wp.min(tb, tc)), wp.max(ta, wp.max(tb, tc))
    t = wp.where(seen > low, seen, low)
    t = wp.where(t < high, t, high)
    u, v, h = b - a, c - a, origin + direction * t - a
    n = wp.cross(u, v)
    per_nn = wp.float64(1.0) / wp.dot(n, n)
    of_b, of_c = wp.dot(wp.cross(h, v), n) * per_nn, wp.dot(wp.cross(u, h), n) * per_nn
    return wp.vec3d(t, wp.float64(1.0) - of_b - of_c, of_b)
