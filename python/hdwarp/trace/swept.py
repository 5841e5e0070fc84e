"""trace.swept: points and curves against one ray: a ball, a piece of a tube, a piece of a ribbon. Object space. Warp functions only.

A tube is a disc swept along a cubic, square to it. No formula says where a ray meets it, but a cone does so for its first approximation
about a place on the curve; where the ray meets that cone is a better place, once the bend of the curve is reckoned with. That is Newton's
method with a quadratic equation in it, which does not mind silhouettes: pieces are short (see `MeshGeometry.pieces`), and from the middle
of one it takes about three steps, also where a tube is as thick as it is bent.
Who does what: `swept_packet` (leaves against a tile's rays, by `swept_crossings`) and `ray_leaves` (against one ray, by this module) decide
what a pixel sees, both by `is_settled` and `is_met` of this module; `swept_reach` says what of a leaf a tile can see at all. Where exactly
the pixel's own ray hits is found once more in double, by `aovs.swept_hits`, which starts from what was found here.
(The idea: A. Reshetov and D. Luebke, "Phantom Ray-Hair Intersector", HPG 2018; the equations are our own.)
"""

from __future__ import annotations

import warp as wp

from hdwarp.stage import columns
from hdwarp.tables.structs import RIBBON_LANES, TUBE_LANES, vec16f

CAPPED_START = wp.constant(columns.CAPPED_START)
CAPPED_END = wp.constant(columns.CAPPED_END)
STRAIGHT = wp.constant(columns.STRAIGHT)
BALL = wp.constant(columns.BALL)

NOWHERE = wp.constant(3.0e38)  # t of what is not there
STEPS = wp.constant(14)  # the most that is tried
SETTLED = wp.constant(1.0e-3)  # a step along the piece that is the last
STRAY = wp.constant(2.0e-2)  # a last step beyond which the ray does not meet the piece
RIM = wp.constant(1.0e-5)  # by how much pieces overlap, so that nothing passes between two
TIGHTEST = wp.constant(0.1)  # of a step, by which it may be lengthened where a tube is bent about where the ray meets it
RIBBON_PARTS = wp.constant(4)  # of a piece of a ribbon: a ray may meet each of them once


@wp.struct
class Tube:
    """A piece in powers of u, 0..1: its middle line relative to the rays' origin, and its radius."""

    a: wp.vec3f
    b: wp.vec3f
    c: wp.vec3f
    d: wp.vec3f
    r: wp.vec4f
    flags: wp.int32


@wp.struct
class Ribbon:
    """A piece in powers of u: one edge relative to the rays' origin, and from it to the other."""

    a: wp.vec3f
    b: wp.vec3f
    c: wp.vec3f
    d: wp.vec3f
    wa: wp.vec3f
    wb: wp.vec3f
    wc: wp.vec3f
    wd: wp.vec3f


@wp.struct
class Crossing:
    """One step towards where a ray meets a tube."""

    t: wp.float32
    u: wp.float32
    moved: wp.float32  # by how much u is another one than before; 0 of straight tubes, which are the cone
    inside: wp.float32  # < 0: the ray passes by


@wp.func_native("return vertices.data[9LL * leaf + (number * lanes + lane) / 16].c[(number * lanes + lane) & 15];")
def leaf_number(vertices: wp.array[vec16f], leaf: wp.int32, number: wp.int32, lanes: wp.int32, lane: wp.int32) -> wp.float32: ...


@wp.func
def leaf_point(vertices: wp.array[vec16f], leaf: wp.int32, number: wp.int32, lanes: wp.int32, lane: wp.int32) -> wp.vec3f:
    return wp.vec3f(
        leaf_number(vertices, leaf, number, lanes, lane),
        leaf_number(vertices, leaf, number + 1, lanes, lane),
        leaf_number(vertices, leaf, number + 2, lanes, lane),
    )


@wp.func
def tube_of(vertices: wp.array[vec16f], leaf: wp.int32, lane: wp.int32, origin: wp.vec3f) -> Tube:
    p0 = leaf_point(vertices, leaf, 0, TUBE_LANES, lane)
    p1 = leaf_point(vertices, leaf, 4, TUBE_LANES, lane)
    p2 = leaf_point(vertices, leaf, 8, TUBE_LANES, lane)
    p3 = leaf_point(vertices, leaf, 12, TUBE_LANES, lane)
    r0 = leaf_number(vertices, leaf, 3, TUBE_LANES, lane)
    r1 = leaf_number(vertices, leaf, 7, TUBE_LANES, lane)
    r2 = leaf_number(vertices, leaf, 11, TUBE_LANES, lane)
    r3 = leaf_number(vertices, leaf, 15, TUBE_LANES, lane)
    tube = Tube()
    tube.flags = int(leaf_number(vertices, leaf, 16, TUBE_LANES, lane)) & 15
    tube.a = p0 - origin
    tube.b = (p1 - p0) * 3.0
    tube.c = ((p2 - p1) - (p1 - p0)) * 3.0
    tube.d = ((p3 - p2) - (p2 - p1)) - ((p2 - p1) - (p1 - p0))
    tube.r = wp.vec4f(r0, 3.0 * (r1 - r0), 3.0 * ((r2 - r1) - (r1 - r0)), ((r3 - r2) - (r2 - r1)) - ((r2 - r1) - (r1 - r0)))
    return tube


@wp.func
def ribbon_of(vertices: wp.array[vec16f], leaf: wp.int32, lane: wp.int32, origin: wp.vec3f) -> Ribbon:
    p0 = leaf_point(vertices, leaf, 0, RIBBON_LANES, lane)
    p1 = leaf_point(vertices, leaf, 3, RIBBON_LANES, lane)
    p2 = leaf_point(vertices, leaf, 6, RIBBON_LANES, lane)
    p3 = leaf_point(vertices, leaf, 9, RIBBON_LANES, lane)
    w0 = leaf_point(vertices, leaf, 12, RIBBON_LANES, lane) - p0
    w1 = leaf_point(vertices, leaf, 15, RIBBON_LANES, lane) - p1
    w2 = leaf_point(vertices, leaf, 18, RIBBON_LANES, lane) - p2
    w3 = leaf_point(vertices, leaf, 21, RIBBON_LANES, lane) - p3
    ribbon = Ribbon()
    ribbon.a = p0 - origin
    ribbon.b = (p1 - p0) * 3.0
    ribbon.c = ((p2 - p1) - (p1 - p0)) * 3.0
    ribbon.d = ((p3 - p2) - (p2 - p1)) - ((p2 - p1) - (p1 - p0))
    ribbon.wa = w0
    ribbon.wb = (w1 - w0) * 3.0
    ribbon.wc = ((w2 - w1) - (w1 - w0)) * 3.0
    ribbon.wd = ((w3 - w2) - (w2 - w1)) - ((w2 - w1) - (w1 - w0))
    return ribbon


@wp.func
def positive(x: wp.float32) -> wp.float32:
    return wp.where(x > 0.0, x, 0.0)


@wp.func
def ball_interval(centre: wp.vec3f, radius: wp.float32, direction: wp.vec3f) -> wp.vec2f:
    """t where a ray from (0, 0, 0) enters and leaves a ball; NOWHERE and minus that where it passes by. How far it passes the centre is
    known from a cross product, which loses little where the ball is small and far."""
    dd = wp.dot(direction, direction)
    across = wp.cross(centre, direction)
    inside = radius * radius * dd - wp.dot(across, across)
    root = wp.sqrt(positive(inside))
    middle = wp.dot(centre, direction)
    scale = 1.0 / dd
    hit = inside >= 0.0 and radius > 0.0
    return wp.vec2f(wp.where(hit, (middle - root) * scale, NOWHERE), wp.where(hit, (middle + root) * scale, -NOWHERE))


@wp.func
def tube_step(tube: Tube, origin: wp.vec3f, direction: wp.vec3f, u: wp.float32, side: wp.float32) -> Crossing:
    """From ``u`` to where the ray crosses the cone that the tube is like there. ``side``: -1 where it enters, 1 where it leaves."""
    p = tube.a + (tube.b + (tube.c + tube.d * u) * u) * u - origin
    along = tube.b + (tube.c * 2.0 + tube.d * (3.0 * u)) * u
    radius = tube.r[0] + (tube.r[1] + (tube.r[2] + tube.r[3] * u) * u) * u
    growth = tube.r[1] + (2.0 * tube.r[2] + 3.0 * tube.r[3] * u) * u
    normal = wp.cross(direction, along)
    nn = wp.dot(normal, normal)
    ll = wp.dot(along, along)
    least = 1.0e-8 * ll * wp.dot(direction, direction)
    nn = wp.where(nn > least, nn, least)
    per_nn, per_ll = 1.0 / nn, 1.0 / ll
    start = wp.dot(wp.cross(p, along), normal) * per_nn  # where the ray is nearest to the tangent
    miss = wp.dot(p, normal)
    miss = miss * miss * per_nn  # squared distance there
    rate = wp.dot(direction, along) * per_ll
    s = start * rate - wp.dot(p, along) * per_ll
    radius = radius + growth * s
    growth = growth * rate
    a = nn * per_ll - growth * growth
    least = 1.0e-6 * nn * per_ll
    a = wp.where(wp.abs(a) > least, a, least)
    inside = radius * radius * (growth * growth) + a * (radius * radius - miss)
    t = (radius * growth + side * wp.sqrt(positive(inside))) / a
    # The cone is straight, the tube is bent: a place beside it is passed faster within the bend, slower without (Newton's step).
    beside = direction * (start + t) - p
    bent = ll - wp.dot(beside, tube.c * 2.0 + tube.d * (6.0 * u))
    least = TIGHTEST * ll
    reached = u + (s + t * rate) * (ll / wp.where(bent > least, bent, least))
    reached = wp.where(reached > -0.05, reached, -0.05)
    reached = wp.where(reached < 1.05, reached, 1.05)
    crossing = Crossing()
    crossing.t = start + t
    crossing.u = reached
    crossing.moved = wp.where((tube.flags & STRAIGHT) != 0, 0.0, wp.abs(reached - u))
    crossing.inside = inside
    return crossing


@wp.func
def is_settled(crossing: Crossing) -> wp.bool:
    """Whether the last step was the last: further ones change less than the record holds. One that leads beyond the piece, to where
    `tube_step` bounds it, counts once it leads there twice: the next may come back."""
    return crossing.moved < SETTLED


@wp.func
def is_met(crossing: Crossing) -> wp.bool:
    """Whether the last step ended on the piece."""
    return crossing.inside >= 0.0 and crossing.moved < STRAY and crossing.u >= -RIM and crossing.u <= 1.0 + RIM


@wp.func
def cap_interval(tube: Tube, end: wp.bool, origin: wp.vec3f, direction: wp.vec3f) -> wp.vec2f:
    """t where a ray enters and leaves the piece through the disc at its start or its ``end``; NOWHERE and minus that where it does not."""
    p, along = tube.a - origin, -tube.b
    radius = tube.r[0]
    if end:
        p = tube.a + tube.b + tube.c + tube.d - origin
        along = tube.b + tube.c * 2.0 + tube.d * 3.0
        radius = tube.r[0] + tube.r[1] + tube.r[2] + tube.r[3]
    facing = wp.dot(direction, along)
    t = wp.dot(p, along) / wp.where(facing == 0.0, 1.0, facing)
    apart = direction * t - p
    hit = facing != 0.0 and wp.dot(apart, apart) <= radius * radius
    return wp.vec2f(wp.where(hit and facing < 0.0, t, NOWHERE), wp.where(hit and facing > 0.0, t, -NOWHERE))


@wp.func
def tube_interval(tube: Tube, origin: wp.vec3f, direction: wp.vec3f) -> wp.vec2f:
    """t where a ray enters and leaves a piece; NOWHERE where it does not enter it, minus that where it does not leave it."""
    if (tube.flags & BALL) != 0:
        return ball_interval(tube.a - origin, tube.r[0], direction)
    interval = wp.vec2f(NOWHERE, -NOWHERE)
    for which in range(2):
        side = wp.where(which == 0, -1.0, 1.0)
        crossing = Crossing()
        crossing.u = 0.5
        step = wp.int32(0)
        while step < STEPS:
            crossing = tube_step(tube, origin, direction, crossing.u, side)
            step += 1
            if is_settled(crossing):
                step = STEPS
        if is_met(crossing):
            interval[which] = crossing.t
    if (tube.flags & CAPPED_START) != 0:
        cap = cap_interval(tube, False, origin, direction)
        interval = wp.vec2f(wp.min(interval[0], cap[0]), wp.max(interval[1], cap[1]))
    if (tube.flags & CAPPED_END) != 0:
        cap = cap_interval(tube, True, origin, direction)
        interval = wp.vec2f(wp.min(interval[0], cap[0]), wp.max(interval[1], cap[1]))
    return interval


@wp.func
def ribbon_side(ribbon: Ribbon, origin: wp.vec3f, direction: wp.vec3f, u: wp.float32) -> wp.float32:
    """On which side of the ray the ruling at ``u`` passes; 0: it meets the line of the ray."""
    p = ribbon.a + (ribbon.b + (ribbon.c + ribbon.d * u) * u) * u - origin
    w = ribbon.wa + (ribbon.wb + (ribbon.wc + ribbon.wd * u) * u) * u
    return wp.dot(p, wp.cross(direction, w))


@wp.func
def part_start(part: wp.int32) -> wp.float32:
    """Where a part of a ribbon begins; the first and the last overlap with their neighbours."""
    return wp.where(part == 0, -RIM, wp.where(part == RIBBON_PARTS, 1.0 + RIM, float(part) / float(RIBBON_PARTS)))


@wp.func
def ribbon_root(ribbon: Ribbon, origin: wp.vec3f, direction: wp.vec3f, low: wp.float32, high: wp.float32) -> wp.float32:
    """u between ``low`` and ``high`` where the ruling meets the line of the ray, by false position; -1 where both ends are on one side."""
    f, g = ribbon_side(ribbon, origin, direction, low), ribbon_side(ribbon, origin, direction, high)
    crosses = (f <= 0.0 and g >= 0.0) or (f >= 0.0 and g <= 0.0)
    u = wp.float32(low)
    for _step in range(7):
        gap = g - f
        u = wp.where(gap == 0.0, low, low - f * (high - low) / wp.where(gap == 0.0, 1.0, gap))
        h = ribbon_side(ribbon, origin, direction, u)
        other = (h < 0.0) != (g < 0.0)
        f = wp.where(other, g, 0.5 * f)  # Illinois
        low = wp.where(other, high, low)
        g = h
        high = wp.float32(u)
    return wp.where(crosses, u, -1.0)


@wp.func
def ribbon_crossing(ribbon: Ribbon, origin: wp.vec3f, direction: wp.vec3f, u: wp.float32) -> wp.float32:
    """t where the ray meets the ruling at ``u``, which its line meets; NOWHERE where that is beyond the edges."""
    p = ribbon.a + (ribbon.b + (ribbon.c + ribbon.d * u) * u) * u - origin
    w = ribbon.wa + (ribbon.wb + (ribbon.wc + ribbon.wd * u) * u) * u
    across = wp.cross(w, direction)
    nn = wp.dot(across, across)
    v = -wp.dot(wp.cross(p, direction), across) / wp.where(nn > 0.0, nn, 1.0)
    t = wp.dot(p + w * v, direction) / wp.dot(direction, direction)
    return wp.where(nn > 0.0 and v >= 0.0 and v <= 1.0 and u >= -0.5, t, NOWHERE)


@wp.func
def ribbon_facing(ribbon: Ribbon, direction: wp.vec3f, u: wp.float32) -> wp.float32:
    """> 0 where a ray comes to the ribbon from behind."""
    along = ribbon.b + (ribbon.c * 2.0 + ribbon.d * (3.0 * u)) * u
    w = ribbon.wa + (ribbon.wb + (ribbon.wc + ribbon.wd * u) * u) * u
    return wp.dot(wp.cross(along, w), direction)
