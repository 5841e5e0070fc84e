"""trace.found: a ray one by one, in the world and in an object's space, and the nearest hit so far. Warp functions only.

As in the tile packets, what counts is a hit's *key*: 1/t, or -t along orthographic rays: the larger the nearer.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import MeshColumns
from hdwarp.trace.layers import is_seen_already
from hdwarp.trace.pixels import NO_RANK
from hdwarp.trace.triangles import NO_KEY


@wp.struct
class Variant:
    """What a kernel is specialised for: constants, all of them."""

    mesh: wp.bool
    shapes: wp.bool
    swept: wp.bool
    orthographic: wp.bool  # rays may be orthographic: their t may be negative, their origins far away
    lanes: wp.bool  # leaves as SIMD lanes: for the CPU
    any_hit: wp.bool  # the first hit found will do
    peel: wp.bool  # only what is behind `Found.near_key`, and its rank and triangle, counts


@wp.struct
class WorldRay:
    origin: wp.vec3d
    direction: wp.vec3f
    exact_direction: wp.vec3d  # the same, not rounded: for shapes
    forward: wp.vec3f  # unit; only read for orthographic rays
    orthographic: wp.bool
    hides: wp.int32  # as in ViewRow
    culls: wp.int32


@wp.struct
class ObjectRay:
    """A ray in the space of an instance. ``shift`` is added to t: orthographic origins are slid to near the object."""

    origin: wp.vec3f
    direction: wp.vec3f
    shift: wp.float32
    orthographic: wp.bool
    single_sided: wp.bool
    row: wp.int32
    source: wp.int32
    rank: wp.int32


@wp.struct
class Found:
    """The nearest hit so far; until there is one, ``key`` is that of the far end of the range."""

    near_key: wp.float32
    key: wp.float32
    slot: wp.int32
    instance: wp.int32
    rank: wp.int32
    behind_rank: wp.int32
    behind_triangle: wp.int32


@wp.func
def nothing_found(near_key: wp.float32, far_key: wp.float32) -> Found:
    found = Found()
    found.near_key = near_key
    found.key = far_key
    found.slot = -1
    found.instance = -1
    found.rank = NO_RANK
    found.behind_rank = -1
    return found


@wp.func
def wins(meshes: MeshColumns, found: Found, key: wp.float32, slot: wp.int32, ray: ObjectRay) -> wp.bool:
    """Nearer than what was found; where exactly as near, the lower instance rank wins, then the lower triangle."""
    better = key > found.key
    if key == found.key and key > NO_KEY:
        better = ray.rank < found.rank
        if found.instance == ray.row:
            better = meshes.slot_triangle[slot] < meshes.slot_triangle[found.slot]
    return better


@wp.func
def comes_before(meshes: MeshColumns, found: Found, slot: wp.int32, ray: ObjectRay) -> wp.bool:
    """Whether a triangle as near as the bound that is looked behind is that bound itself or comes before it."""
    bound = found.near_key
    return is_seen_already(bound, bound, ray.rank, meshes.slot_triangle[slot], found.behind_rank, found.behind_triangle)


@wp.func
def take(found: Found, key: wp.float32, slot: wp.int32, ray: ObjectRay) -> Found:
    found.key = key
    found.slot = slot
    found.instance = ray.row
    found.rank = ray.rank
    return found
