"""trace.shapes: analytic shapes in object space, where a ray enters and leaves them. Warp functions only."""

from __future__ import annotations

import warp as wp

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
