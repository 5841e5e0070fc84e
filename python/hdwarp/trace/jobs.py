"""trace.jobs: what trace kernels are made for, and which view a tile belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from hdwarp.tables.structs import ViewRow


@dataclass(frozen=True)
class SceneKinds:
    """What a scene contains; each distinct value compiles one kernel."""

    mesh: bool = True  # polygon meshes, or what is drawn as such: GeometryKind.MESH
    shapes: bool = False
    swept: bool = False  # points and curves


EVERYTHING = SceneKinds(mesh=True, shapes=True, swept=True)


@wp.func
def find_view(views: wp.array[ViewRow], view_count: wp.int32, tile: wp.int32) -> wp.int32:
    """The view that a tile job belongs to: the last that begins at or before it."""
    low = wp.int32(0)
    high = wp.int32(view_count)
    while high - low > 1:
        middle = (low + high) // 2
        if views[middle].first_tile <= tile:
            low = middle
        else:
            high = middle
    return low
