"""trace.nodes: one step of the traversal: eight boxes of a node against a tile's frustum. Warp functions only."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.bvh import STACK_SIZE
from hdwarp.tables.structs import vec8f, vec8i
from hdwarp.trace.rays import Frustum

STACK = wp.constant(2 * STACK_SIZE)  # a tree of meshes on top of a tree of instances
NO_HIT = wp.constant(3.0e38)


@wp.func
def push_children(
    nodes: wp.array[vec8f],
    children: wp.array[vec8i],
    node: wp.int32,
    frustum: Frustum,
    near: wp.float32,
    far: wp.float32,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    size: wp.int32,
) -> wp.int32:
    """Push the children of a node that meet the frustum between ``near`` and ``far``, the nearest on top; the new size of the stack."""
    base = 6 * node
    ahead_x = nodes[base + frustum.ahead_corner[0]]
    ahead_y = nodes[base + frustum.ahead_corner[1]]
    ahead_z = nodes[base + frustum.ahead_corner[2]]
    nearest_x = nodes[base + frustum.nearest_corner[0]]
    nearest_y = nodes[base + frustum.nearest_corner[1]]
    nearest_z = nodes[base + frustum.nearest_corner[2]]
    left_x = nodes[base + frustum.left_corner[0]]
    left_y = nodes[base + frustum.left_corner[1]]
    left_z = nodes[base + frustum.left_corner[2]]
    right_x = nodes[base + frustum.right_corner[0]]
    right_y = nodes[base + frustum.right_corner[1]]
    right_z = nodes[base + frustum.right_corner[2]]
    top_x = nodes[base + frustum.top_corner[0]]
    top_y = nodes[base + frustum.top_corner[1]]
    top_z = nodes[base + frustum.top_corner[2]]
    bottom_x = nodes[base + frustum.bottom_corner[0]]
    bottom_y = nodes[base + frustum.bottom_corner[1]]
    bottom_z = nodes[base + frustum.bottom_corner[2]]
    depths = vec8f()
    for c in range(8):
        depth = wp.dot(wp.vec3f(nearest_x[c], nearest_y[c], nearest_z[c]), frustum.ahead) - frustum.ahead_offset
        ahead = wp.dot(wp.vec3f(ahead_x[c], ahead_y[c], ahead_z[c]), frustum.ahead) - frustum.ahead_offset >= near
        left = wp.dot(wp.vec3f(left_x[c], left_y[c], left_z[c]), frustum.left) >= frustum.left_offset
        right = wp.dot(wp.vec3f(right_x[c], right_y[c], right_z[c]), frustum.right) >= frustum.right_offset
        top = wp.dot(wp.vec3f(top_x[c], top_y[c], top_z[c]), frustum.top) >= frustum.top_offset
        bottom = wp.dot(wp.vec3f(bottom_x[c], bottom_y[c], bottom_z[c]), frustum.bottom) >= frustum.bottom_offset
        depths[c] = wp.where(left and right and top and bottom and ahead, depth, NO_HIT)
    kids = children[node]
    floor = wp.int32(size)
    for c in range(8):
        depth = depths[c]
        if depth <= far and size < STACK:
            at = wp.int32(size)
            while at > floor and stack_depth[wp.max(at - 1, 0)] < depth:
                stack_depth[at] = stack_depth[at - 1]
                stack[at] = stack[at - 1]
                at -= 1
            stack[at] = kids[c]
            stack_depth[at] = depth
            size += 1
    return size
