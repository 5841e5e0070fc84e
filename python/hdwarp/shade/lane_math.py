"""shade.lane_math: arithmetic on vec3f spelled out, and angles by polynomials, so that loops over lanes become SIMD code.

Warp's own operators on vectors are loops, and its acos and atan2 library calls: either keeps a loop over lanes scalar, 100 times slower.
"""

from __future__ import annotations

import warp as wp

TINY = wp.constant(1.0e-30)


@wp.func
def dot3(a: wp.vec3f, b: wp.vec3f) -> wp.float32:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@wp.func
def cross3(a: wp.vec3f, b: wp.vec3f) -> wp.vec3f:
    return wp.vec3f(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@wp.func
def scaled(a: wp.vec3f, t: wp.float32) -> wp.vec3f:
    return wp.vec3f(a[0] * t, a[1] * t, a[2] * t)


@wp.func
def ahead(a: wp.vec3f, b: wp.vec3f, t: wp.float32) -> wp.vec3f:
    """a + b t."""
    return wp.vec3f(a[0] + b[0] * t, a[1] + b[1] * t, a[2] + b[2] * t)


@wp.func
def ahead2(a: wp.vec3f, b: wp.vec3f, s: wp.float32, c: wp.vec3f, t: wp.float32) -> wp.vec3f:
    """a + b s + c t."""
    return wp.vec3f(a[0] + b[0] * s + c[0] * t, a[1] + b[1] * s + c[1] * t, a[2] + b[2] * s + c[2] * t)


@wp.func
def length3(a: wp.vec3f) -> wp.float32:
    return wp.sqrt(dot3(a, a))


@wp.func
def unit3(a: wp.vec3f) -> wp.vec3f:
    """``a`` with length 1; 0 of 0."""
    return scaled(a, 1.0 / wp.max(length3(a), TINY))


@wp.func
def angle(y: wp.float32, x: wp.float32) -> wp.float32:
    """atan2(y, x) of ``y`` >= 0: 0 to pi, within 2e-7; 0 of (0, 0)."""
    size = wp.abs(x)
    t = wp.min(y, size) / wp.max(wp.max(y, size), TINY)
    u = t * t
    p = 0.09906097 - u * (0.0593671 - u * (0.02416619 - u * 0.00466877))
    part = t * (0.9999999 - u * (0.3333196 - u * (0.19969235 - u * (0.14016585 - u * p))))
    part = wp.where(y > size, 0.5 * wp.PI - part, part)
    return wp.where(x < 0.0, wp.PI - part, part)


@wp.func
def arc_cosine(x: wp.float32) -> wp.float32:
    """acos; beyond -1 and 1 as at them."""
    c = wp.clamp(x, -1.0, 1.0)
    return angle(wp.sqrt((1.0 - c) * (1.0 + c)), c)
