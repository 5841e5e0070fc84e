"""trace.rays: the rays of one tile, in the world and in an object's space, and the frustum that holds them. Warp functions only.

A tile is 16 x 8 pixels of one fixed grid over the full image. Its rays are affine in the pixel (x, y), 0..15 and 0..7, counted from
the tile's own corner: any data window of an image works with the same numbers, and so gives the same bits.
Vectors are written out by component where Warp would loop over three: the compiler keeps loops rolled up (see launch.LANE_OPTIONS).
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import TILE_HEIGHT, TILE_WIDTH, ViewRow

LAST_X = wp.constant(TILE_WIDTH - 1.0)
LAST_Y = wp.constant(TILE_HEIGHT - 1.0)


@wp.struct
class TileRays:
    """Ray of pixel (x, y): origin + x origin_dx + y origin_dy + t (direction + x direction_dx + y direction_dy).

    Only orthographic rays have origin_dx, origin_dy; only perspective ones direction_dx, direction_dy. ``shift`` is added to t: the
    origin of orthographic rays is slid along them to near the object, so that nothing is lost to a far-away camera.
    """

    origin: wp.vec3f
    origin_dx: wp.vec3f
    origin_dy: wp.vec3f
    direction: wp.vec3f
    direction_dx: wp.vec3f
    direction_dy: wp.vec3f
    shift: wp.float32


@wp.struct
class ExactRays:
    """TileRays in double, for shapes: what one sees of a planet, or of a sheet a nanometre thick, hangs on digits that float32 lacks."""

    origin: wp.vec3d
    origin_dx: wp.vec3d
    origin_dy: wp.vec3d
    direction: wp.vec3d
    direction_dx: wp.vec3d
    direction_dy: wp.vec3d
    shift: wp.float64


@wp.struct
class Screen:
    """From a point v relative to the rays' origin to pixels: x = across . v / w, y = down . v / w, w = depth . v + constant (> 0 in front).

    ``ahead`` . v is t. ``margin``: pixels by which rounding may be wrong; tests that cull are widened by it.
    """

    across: wp.vec3f
    down: wp.vec3f
    depth: wp.vec3f
    constant: wp.float32
    ahead: wp.vec3f
    margin: wp.float32


@wp.struct
class Frustum:
    """Points p of a tile have normal . p >= offset for the four sides, and ahead . p - ahead_offset is their t. ``*_corner``: rows of a
    node that hold the corner of a box farthest along the normal, x, y and z; ``nearest_corner``: the one nearest along ``ahead``."""

    left: wp.vec3f
    right: wp.vec3f
    top: wp.vec3f
    bottom: wp.vec3f
    ahead: wp.vec3f
    left_offset: wp.float32
    right_offset: wp.float32
    top_offset: wp.float32
    bottom_offset: wp.float32
    ahead_offset: wp.float32
    left_corner: wp.vec3i
    right_corner: wp.vec3i
    top_corner: wp.vec3i
    bottom_corner: wp.vec3i
    ahead_corner: wp.vec3i
    nearest_corner: wp.vec3i


@wp.func
def times(m: wp.mat33f, v: wp.vec3f) -> wp.vec3f:
    return wp.vec3f(
        m[0, 0] * v[0] + m[0, 1] * v[1] + m[0, 2] * v[2],
        m[1, 0] * v[0] + m[1, 1] * v[1] + m[1, 2] * v[2],
        m[2, 0] * v[0] + m[2, 1] * v[1] + m[2, 2] * v[2],
    )


@wp.func
def times_exactly(m: wp.mat33d, v: wp.vec3d) -> wp.vec3d:
    return wp.vec3d(
        m[0, 0] * v[0] + m[0, 1] * v[1] + m[0, 2] * v[2],
        m[1, 0] * v[0] + m[1, 1] * v[1] + m[1, 2] * v[2],
        m[2, 0] * v[0] + m[2, 1] * v[1] + m[2, 2] * v[2],
    )


@wp.func
def widen(v: wp.vec3f) -> wp.vec3d:
    return wp.vec3d(wp.float64(v[0]), wp.float64(v[1]), wp.float64(v[2]))


@wp.func
def narrow(v: wp.vec3d) -> wp.vec3f:
    return wp.vec3f(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]))


@wp.func
def largest(v: wp.vec3f) -> wp.float32:
    return wp.max(wp.abs(v[0]), wp.max(wp.abs(v[1]), wp.abs(v[2])))


@wp.func
def tile_origin(view: ViewRow, x: wp.int32, y: wp.int32) -> wp.vec3d:
    """Origin of the ray of pixel (x, y) of the full image, in the frame of the view's world."""
    return view.origin + view.origin_dx * wp.float64(x) + view.origin_dy * wp.float64(y)


@wp.func
def world_rays(view: ViewRow, x: wp.int32, y: wp.int32) -> TileRays:
    """Rays of the tile whose corner is pixel (x, y) of the full image; their origin is left to the caller."""
    rays = TileRays()
    rays.origin_dx = narrow(view.origin_dx)
    rays.origin_dy = narrow(view.origin_dy)
    rays.direction = narrow(view.direction + view.direction_dx * wp.float64(x) + view.direction_dy * wp.float64(y))
    rays.direction_dx = narrow(view.direction_dx)
    rays.direction_dy = narrow(view.direction_dy)
    return rays


@wp.func
def object_rays(
    world: TileRays, forward: wp.vec3f, offset: wp.vec3d, object_from_world: wp.mat33f, affine: wp.bool, orthographic: wp.bool
) -> TileRays:
    """World rays in the space of an object; ``offset``: the rays' origin less the object's place in the world."""
    rays = TileRays()
    if affine and orthographic:
        slide = -wp.dot(widen(forward), offset)
        offset = offset + widen(world.direction) * slide
        rays.shift = wp.float32(slide)
    rays.origin = times(object_from_world, narrow(offset))
    rays.direction = times(object_from_world, world.direction)
    rays.direction_dx = times(object_from_world, world.direction_dx)
    rays.direction_dy = times(object_from_world, world.direction_dy)
    if affine:
        rays.origin_dx = times(object_from_world, world.origin_dx)
        rays.origin_dy = times(object_from_world, world.origin_dy)
    return rays


@wp.func
def exact_world_rays(view: ViewRow, x: wp.int32, y: wp.int32) -> ExactRays:
    """`world_rays` in double."""
    rays = ExactRays()
    rays.origin_dx = view.origin_dx
    rays.origin_dy = view.origin_dy
    rays.direction = view.direction + view.direction_dx * wp.float64(x) + view.direction_dy * wp.float64(y)
    rays.direction_dx = view.direction_dx
    rays.direction_dy = view.direction_dy
    return rays


@wp.func
def widen_rays(rays: TileRays) -> ExactRays:
    """Rays taken at their word; their origin is left to the caller."""
    exact = ExactRays()
    exact.direction = widen(rays.direction)
    exact.direction_dx = widen(rays.direction_dx)
    exact.direction_dy = widen(rays.direction_dy)
    exact.origin_dx = widen(rays.origin_dx)
    exact.origin_dy = widen(rays.origin_dy)
    return exact


@wp.func
def exact_object_rays(
    world: ExactRays, forward: wp.vec3f, offset: wp.vec3d, world_from_object: wp.mat33f, affine: wp.bool, orthographic: wp.bool
) -> ExactRays:
    """`object_rays` in double, by the inverse in double: the one in the tables is rounded, by centimetres a thousand kilometres away."""
    rays = ExactRays()
    object_from_world = wp.inverse(wp.mat33d(world_from_object))
    if affine and orthographic:
        slide = -wp.dot(widen(forward), offset)
        offset = offset + world.direction * slide
        rays.shift = slide
    rays.origin = times_exactly(object_from_world, offset)
    rays.direction = times_exactly(object_from_world, world.direction)
    rays.direction_dx = times_exactly(object_from_world, world.direction_dx)
    rays.direction_dy = times_exactly(object_from_world, world.direction_dy)
    if affine:
        rays.origin_dx = times_exactly(object_from_world, world.origin_dx)
        rays.origin_dy = times_exactly(object_from_world, world.origin_dy)
    return rays


@wp.func
def exact_origin(rays: ExactRays, x: wp.float64, y: wp.float64, affine: wp.bool) -> wp.vec3d:
    origin = rays.origin
    if affine:
        origin = origin + rays.origin_dx * x + rays.origin_dy * y
    return origin


@wp.func
def exact_direction(rays: ExactRays, x: wp.float64, y: wp.float64) -> wp.vec3d:
    return rays.direction + rays.direction_dx * x + rays.direction_dy * y


@wp.func
def ray_direction(rays: TileRays, x: wp.float32, y: wp.float32) -> wp.vec3f:
    return rays.direction + rays.direction_dx * x + rays.direction_dy * y


@wp.func
def screen_of(rays: TileRays, reach: wp.float32, affine: wp.bool, orthographic: wp.bool) -> Screen:
    """``reach``: how far from the rays' origin the points of an orthographic view may be. Lengths are scaled to keep clear of underflow."""
    screen = Screen()
    scale = 1.0 / largest(rays.direction)
    step_x = rays.direction_dx
    step_y = rays.direction_dy
    step_scale = scale
    if affine and orthographic:
        step_x = rays.origin_dx
        step_y = rays.origin_dy
        step_scale = 1.0 / wp.max(largest(step_x), largest(step_y))
    direction = rays.direction * scale
    step_x = step_x * step_scale
    step_y = step_y * step_scale
    normal = wp.cross(step_x, step_y)
    volume = wp.dot(normal, direction)
    sign = wp.where(volume < 0.0, -1.0, 1.0)
    volume = volume * sign
    screen.across = wp.cross(step_y, direction) * sign
    screen.down = wp.cross(direction, step_x) * sign
    normal = normal * sign
    screen.ahead = normal * (scale / volume)
    step = wp.max(wp.length(step_x), wp.length(step_y))
    if affine and orthographic:
        screen.constant = volume / step_scale
        screen.margin = 0.02 + 2.0e-6 * step * step_scale * reach * wp.length(direction) / volume
    else:
        screen.depth = normal
        screen.margin = 0.02 + 2.0e-6 * step * wp.length_sq(direction) / volume
    return screen


@wp.func
def far_corner(normal: wp.vec3f) -> wp.vec3i:
    return wp.vec3i(wp.where(normal[0] >= 0.0, 3, 0), wp.where(normal[1] >= 0.0, 4, 1), wp.where(normal[2] >= 0.0, 5, 2))


@wp.func
def frustum_of(screen: Screen) -> Frustum:
    """The frustum about a tile's rays, its offsets still to be set (`place`)."""
    frustum = Frustum()
    low, high_x, high_y = -screen.margin, LAST_X + screen.margin, LAST_Y + screen.margin
    frustum.left = screen.across - screen.depth * low
    frustum.right = screen.depth * high_x - screen.across
    frustum.top = screen.down - screen.depth * low
    frustum.bottom = screen.depth * high_y - screen.down
    frustum.ahead = screen.ahead
    frustum.left_offset = screen.constant * low
    frustum.right_offset = -screen.constant * high_x
    frustum.top_offset = screen.constant * low
    frustum.bottom_offset = -screen.constant * high_y
    frustum.left_corner = far_corner(frustum.left)
    frustum.right_corner = far_corner(frustum.right)
    frustum.top_corner = far_corner(frustum.top)
    frustum.bottom_corner = far_corner(frustum.bottom)
    frustum.ahead_corner = far_corner(frustum.ahead)
    frustum.nearest_corner = far_corner(-frustum.ahead)
    return frustum


@wp.func
def place(frustum: Frustum, origin: wp.vec3f) -> Frustum:
    """Offsets for rays from ``origin``."""
    frustum.left_offset += wp.dot(frustum.left, origin)
    frustum.right_offset += wp.dot(frustum.right, origin)
    frustum.top_offset += wp.dot(frustum.top, origin)
    frustum.bottom_offset += wp.dot(frustum.bottom, origin)
    frustum.ahead_offset = wp.dot(frustum.ahead, origin)
    return frustum


@wp.func
def place_exactly(frustum: Frustum, origin: wp.vec3d) -> Frustum:
    """Offsets for rays from a world position, which may be large."""
    frustum.left_offset += wp.float32(wp.dot(widen(frustum.left), origin))
    frustum.right_offset += wp.float32(wp.dot(widen(frustum.right), origin))
    frustum.top_offset += wp.float32(wp.dot(widen(frustum.top), origin))
    frustum.bottom_offset += wp.float32(wp.dot(widen(frustum.bottom), origin))
    frustum.ahead_offset = wp.float32(wp.dot(widen(frustum.ahead), origin))
    return frustum
