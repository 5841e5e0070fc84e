"""trace.nodes: one step of the traversal: eight boxes of a node against a tile's frustum. Warp functions only."""

from __future__ import annotations

import warp as wp

from hdwarp.tables.bvh import STACK_SIZE
from hdwarp.tables.structs import vec8f, vec8i
from hdwarp.trace.rays import Frustum

STACK = wp.constant(2 * STACK_SIZE)  # a tree of meshes on top of a tree of instances
NO_HIT = wp.constant(3.0e38)


@wp.func
def corner(nodes: wp.array[vec8f], base: wp.int32, rows: wp.vec3i, normal: wp.vec3f, c: wp.int32) -> wp.float32:
    """normal . (the corner of child ``c`` that ``rows`` name)."""
    return nodes[base + rows[0]][c] * normal[0] + nodes[base + rows[1]][c] * normal[1] + nodes[base + rows[2]][c] * normal[2]


@wp.func
def push_children(
    nodes: wp.array[vec8f],
    children: wp.array[vec8i],
    node: wp.int32,
    frustum: Frustum,
    far: wp.float32,
    stack: wp.array[wp.int32],
    stack_depth: wp.array[wp.float32],
    size: wp.int32,
) -> wp.int32:
    """Push the children of a node that meet the frustum and begin before ``far``, the nearest on top; the new size of the stack."""
    base = 6 * node
    depths = vec8f()
    for c in range(8):
        depth = corner(nodes, base, frustum.ahead_corner, frustum.ahead, c) - frustum.ahead_offset
        left = corner(nodes, base, frustum.left_corner, frustum.left, c) >= frustum.left_offset
        right = corner(nodes, base, frustum.right_corner, frustum.right, c) >= frustum.right_offset
        top = corner(nodes, base, frustum.top_corner, frustum.top, c) >= frustum.top_offset
        bottom = corner(nodes, base, frustum.bottom_corner, frustum.bottom, c) >= frustum.bottom_offset
        depths[c] = wp.where(left and right and top and bottom, depth, NO_HIT)
    kids = children[node]
    floor = size
    for c in range(8):
        depth = depths[c]
        if depth <= far and size < STACK:
            at = wp.int32(size)
            while at > floor and stack_depth[at - 1] < depth:
                stack_depth[at] = stack_depth[at - 1]
                stack[at] = stack[at - 1]
                at -= 1
            stack[at] = kids[c]
            stack_depth[at] = depth
            size += 1
    return size
