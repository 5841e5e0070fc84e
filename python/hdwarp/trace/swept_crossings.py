"""trace.swept_crossings: where 16 rays of a packet meet a ball, a piece of a tube or of a ribbon. Warp functions only."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import vec16f
from hdwarp.trace.pixels import key_of, vec16i
from hdwarp.trace.rays import TileRays, ray_direction
from hdwarp.trace.swept import (
    BALL,
    CAPPED_END,
    CAPPED_START,
    NOWHERE,
    RIBBON_PARTS,
    STEPS,
    Crossing,
    Tube,
    ball_interval,
    cap_interval,
    is_met,
    is_settled,
    part_start,
    ribbon_crossing,
    ribbon_facing,
    ribbon_of,
    ribbon_root,
    ribbon_side,
    tube_step,
)
from hdwarp.trace.triangles import NO_KEY


@wp.func
def ray_origin(rays: TileRays, x: wp.float32, y: wp.float32, affine: wp.bool) -> wp.vec3f:
    """Origin of a ray relative to that of the tile's first."""
    origin = wp.vec3f()
    if affine:
        origin = rays.origin_dx * x + rays.origin_dy * y
    return origin


@wp.func
def cross_balls(centre: wp.vec3f, radius: wp.float32, rays: TileRays, x: vec16f, y: vec16f, affine: wp.bool, side: wp.float32) -> vec16f:
    """t where 16 rays enter (``side`` -1) or leave (1) a ball; ``side`` * -NOWHERE where they pass by."""
    t = vec16f()
    for p in range(16):
        interval = ball_interval(centre - ray_origin(rays, x[p], y[p], affine), radius, ray_direction(rays, x[p], y[p]))
        t[p] = wp.where(side < 0.0, interval[0], interval[1])
    return t


@wp.func
def cross_tube(tube: Tube, rays: TileRays, x: vec16f, y: vec16f, affine: wp.bool, side: wp.float32) -> vec16f:
    """The same for a piece of a tube, its ends included. A ray stays where it has settled, whatever the others of the packet need."""
    if (tube.flags & BALL) != 0:
        return cross_balls(tube.a, tube.r[0], rays, x, y, affine, side)
    t, u, moved, inside = vec16f(), vec16f(0.5), vec16f(), vec16f()
    unsettled = vec16i(1)
    step = wp.int32(0)
    while step < STEPS:
        for p in range(16):
            crossing = tube_step(tube, ray_origin(rays, x[p], y[p], affine), ray_direction(rays, x[p], y[p]), u[p], side)
            goes_on = unsettled[p] != 0
            t[p] = wp.where(goes_on, crossing.t, t[p])
            u[p] = wp.where(goes_on, crossing.u, u[p])
            moved[p] = wp.where(goes_on, crossing.moved, moved[p])
            inside[p] = wp.where(goes_on, crossing.inside, inside[p])
            unsettled[p] = wp.where(goes_on and not is_settled(crossing), 1, 0)
        step += 1
        more = wp.int32(0)
        for p in range(16):
            more |= unsettled[p]
        if more == 0:
            step = STEPS
    for p in range(16):
        crossing = Crossing()
        crossing.u = u[p]
        crossing.moved = moved[p]
        crossing.inside = inside[p]
        t[p] = wp.where(is_met(crossing), t[p], -side * NOWHERE)
    for which in range(2):
        if (tube.flags & wp.where(which == 0, CAPPED_START, CAPPED_END)) != 0:
            for p in range(16):
                cap = cap_interval(tube, which == 1, ray_origin(rays, x[p], y[p], affine), ray_direction(rays, x[p], y[p]))
                if side < 0.0:
                    t[p] = wp.where(cap[0] < t[p], cap[0], t[p])
                else:
                    t[p] = wp.where(cap[1] > t[p], cap[1], t[p])
    return t


@wp.func
def ribbon_keys(
    vertices: wp.array[vec16f],
    leaf: wp.int32,
    lane: wp.int32,
    rays: TileRays,
    x: vec16f,
    y: vec16f,
    near: vec16f,
    affine: wp.bool,
    orthographic: wp.bool,
    single_sided: wp.bool,
) -> vec16f:
    """Keys of 16 rays where they meet a ribbon, in any part of it; NO_KEY where they do not, or before the near end."""
    ribbon = ribbon_of(vertices, leaf, lane, rays.origin)
    best, sides = vec16f(NO_KEY), vec16f()
    for p in range(16):
        sides[p] = ribbon_side(ribbon, ray_origin(rays, x[p], y[p], affine), ray_direction(rays, x[p], y[p]), part_start(0))
    for part in range(RIBBON_PARTS):
        low, high = part_start(part), part_start(part + 1)
        met = wp.int32(0)
        for p in range(16):
            side = ribbon_side(ribbon, ray_origin(rays, x[p], y[p], affine), ray_direction(rays, x[p], y[p]), high)
            met |= wp.where(side * sides[p] <= 0.0, 1, 0)
            sides[p] = side
        if met != 0:
            for p in range(16):
                origin, direction = ray_origin(rays, x[p], y[p], affine), ray_direction(rays, x[p], y[p])
                u = ribbon_root(ribbon, origin, direction, low, high)
                t = ribbon_crossing(ribbon, origin, direction, u)
                key = key_of(t + rays.shift, orthographic)
                counts = t < NOWHERE and (orthographic or t > 0.0) and key <= near[p]
                counts = counts and not (single_sided and ribbon_facing(ribbon, direction, u) > 0.0)
                best[p] = wp.where(counts and key > best[p], key, best[p])
    return best
