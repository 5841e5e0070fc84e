"""tables.refit_kernels: boxes of built trees: filled from below, level by level or along single paths. Host code is in tables.bvh."""

from __future__ import annotations

import warp as wp

from hdwarp.launch import LANE_OPTIONS
from hdwarp.stage import columns
from hdwarp.tables.bvh_kernels import HUGE, empty_record, is_finite, join, larger, smaller, swept_box, triangle_box
from hdwarp.tables.structs import vec8f, vec8i, vec16f

wp.set_module_options(LANE_OPTIONS)

EMPTY = wp.constant(-(2**31))  # tables.bvh.EMPTY_CHILD
BALL = wp.constant(columns.BALL)
PAD = wp.constant(9.6e-7)  # 8 ulp: what rounding may take off a plane test


@wp.func
def write_box(nodes: wp.array[vec8f], node: wp.int32, child: wp.int32, box: vec8f):
    base = 6 * node
    nodes[base][child] = box[0]
    nodes[base + 1][child] = box[1]
    nodes[base + 2][child] = box[2]
    nodes[base + 3][child] = -box[3]
    nodes[base + 4][child] = -box[4]
    nodes[base + 5][child] = -box[5]


@wp.func
def padded(box: vec8f) -> vec8f:
    """A box grown by what rounding may take off a plane test; an empty box stays as it is."""
    if box[0] > -box[3]:
        return box
    extent = wp.float32(0.0)
    for i in range(6):
        extent = larger(extent, wp.abs(box[i]))
    pad = PAD * extent
    return vec8f(box[0] - pad, box[1] - pad, box[2] - pad, box[3] - pad, box[4] - pad, box[5] - pad, HUGE, HUGE)


@wp.func
def lowest_lane(row: vec8f) -> wp.float32:
    low = row[0]
    for c in range(1, 8):
        low = smaller(low, row[c])
    return low


@wp.func
def highest_lane(row: vec8f) -> wp.float32:
    high = row[0]
    for c in range(1, 8):
        high = larger(high, row[c])
    return high


@wp.kernel(enable_backward=False)
def fill_leaves(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    points: wp.array[wp.vec3f],
    triangle_points: wp.array[wp.vec3i],
    triangle_start: wp.array[wp.int32],
    point_start: wp.array[wp.int32],
    leaf_mesh: wp.array[wp.int32],
    leaf_parent: wp.array[wp.int32],
    leaf_count: wp.array[wp.int32],
    slot_triangle: wp.array[wp.int32],
    node_base: wp.int32,
    leaf_base: wp.int32,
    leaf_vertices: wp.array[vec16f],
    nodes: wp.array[vec8f],
):
    """The vertices of a leaf and its box in the parent. A triangle that is not finite becomes a point, which never hits."""
    job = first + wp.tid() * step
    if job >= count:
        return
    mesh = leaf_mesh[job]
    first_triangle = triangle_start[mesh]
    first_point = point_start[mesh]
    ax, ay, az = vec16f(), vec16f(), vec16f()
    bx, by, bz = vec16f(), vec16f(), vec16f()
    cx, cy, cz = vec16f(), vec16f(), vec16f()
    box = empty_record()
    spare = wp.vec3f()
    used = leaf_count[job]
    for i in range(used):
        lane = i & 15
        corner = triangle_points[first_triangle + slot_triangle[16 * job + lane]]
        a = points[first_point + corner[0]]
        b = points[first_point + corner[1]]
        c = points[first_point + corner[2]]
        if is_finite(a) and is_finite(b) and is_finite(c):
            box = join(box, triangle_box(a, b, c))
            spare = a
        else:
            a, b, c = wp.vec3f(), wp.vec3f(), wp.vec3f()
        ax[lane] = a[0]
        ay[lane] = a[1]
        az[lane] = a[2]
        bx[lane] = b[0]
        by[lane] = b[1]
        bz[lane] = b[2]
        cx[lane] = c[0]
        cy[lane] = c[1]
        cz[lane] = c[2]
    for i in range(used, 16):
        lane = i & 15
        ax[lane] = spare[0]
        bx[lane] = spare[0]
        cx[lane] = spare[0]
        ay[lane] = spare[1]
        by[lane] = spare[1]
        cy[lane] = spare[1]
        az[lane] = spare[2]
        bz[lane] = spare[2]
        cz[lane] = spare[2]
    base = 9 * (leaf_base + job)
    leaf_vertices[base] = ax
    leaf_vertices[base + 1] = ay
    leaf_vertices[base + 2] = az
    leaf_vertices[base + 3] = bx
    leaf_vertices[base + 4] = by
    leaf_vertices[base + 5] = bz
    leaf_vertices[base + 6] = cx
    leaf_vertices[base + 7] = cy
    leaf_vertices[base + 8] = cz
    slot = leaf_parent[job]
    write_box(nodes, node_base + (slot >> 3), slot & 7, padded(box))


@wp.kernel(enable_backward=False)
def fill_swept_leaves(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    points: wp.array[wp.vec3f],
    radii: wp.array[wp.float32],
    pieces: wp.array[wp.int32],
    size: wp.int32,  # points an item
    lanes: wp.int32,  # items a leaf
    item_start: wp.array[wp.int32],
    point_start: wp.array[wp.int32],
    leaf_mesh: wp.array[wp.int32],
    leaf_parent: wp.array[wp.int32],
    leaf_count: wp.array[wp.int32],
    slot_item: wp.array[wp.int32],
    node_base: wp.int32,
    leaf_base: wp.int32,
    leaf_vertices: wp.array[vec16f],
    nodes: wp.array[vec8f],
):
    """The numbers of a leaf of points or curves (see MeshColumns) and its box in the parent. What is not finite is put at the origin, with
    a radius that never hits."""
    job = first + wp.tid() * step
    if job >= count:
        return
    mesh = leaf_mesh[job]
    base = 9 * (leaf_base + job)
    box = empty_record()
    for lane in range(leaf_count[job]):
        item = slot_item[16 * job + lane]
        begin = point_start[mesh] + size * item
        piece = wp.int32(0)
        if pieces:
            piece = pieces[item_start[mesh] + item]
        own = swept_box(points, radii, begin, size, (piece & BALL) != 0)
        broken = not own[0] <= -own[3]
        if not broken:
            box = join(box, own)
        number = wp.int32(0)
        for i in range(size):
            p = points[begin + i]
            if broken:
                p = wp.vec3f()
            for axis in range(3):
                at = number * lanes + lane
                leaf_vertices[base + (at >> 4)][at & 15] = p[axis]
                number += 1
            if radii:
                at = number * lanes + lane
                leaf_vertices[base + (at >> 4)][at & 15] = wp.where(broken, -1.0, radii[begin + i])
                number += 1
        if pieces:
            at = number * lanes + lane
            leaf_vertices[base + (at >> 4)][at & 15] = float(piece)
    slot = leaf_parent[job]
    write_box(nodes, node_base + (slot >> 3), slot & 7, padded(box))


@wp.func
def node_box(nodes: wp.array[vec8f], node: wp.int32) -> vec8f:
    """The box around the eight children of a node."""
    base = 6 * node
    return vec8f(
        lowest_lane(nodes[base]),
        lowest_lane(nodes[base + 1]),
        lowest_lane(nodes[base + 2]),
        -highest_lane(nodes[base + 3]),
        -highest_lane(nodes[base + 4]),
        -highest_lane(nodes[base + 5]),
        HUGE,
        HUGE,
    )


@wp.kernel(enable_backward=False)
def join_nodes(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    level_start: wp.int32,
    node_base: wp.int32,
    parent: wp.array[wp.int32],
    nodes: wp.array[vec8f],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """The box around the eight children of every node of a level, into its parent; of a root into ``lower`` and ``upper``."""
    job = first + wp.tid() * step
    if job >= count:
        return
    node = level_start + job
    box = node_box(nodes, node_base + node)
    slot = parent[node]
    if slot >= 0:
        write_box(nodes, node_base + (slot >> 3), slot & 7, box)
    else:
        lower[-1 - slot] = wp.vec3f(box[0], box[1], box[2])
        upper[-1 - slot] = wp.vec3f(-box[3], -box[4], -box[5])


@wp.func
def item_box(lo: wp.vec3f, hi: wp.vec3f) -> vec8f:
    """The box of an item, padded; inverted where the item has none, cut at HUGE where it has no end."""
    box = empty_record()
    if lo[0] <= hi[0] and lo[1] <= hi[1] and lo[2] <= hi[2]:
        for axis in range(3):
            box[axis] = wp.max(lo[axis], -HUGE)
            box[axis + 3] = wp.max(-hi[axis], -HUGE)
        box = padded(box)
    return box


@wp.kernel(enable_backward=False)
def gather_boxes(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    level_start: wp.int32,
    node_base: wp.int32,
    shift: wp.int32,  # of the numbers of children
    children: wp.array[vec8i],
    parent: wp.array[wp.int32],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
    nodes: wp.array[vec8f],
    group_lower: wp.array[wp.vec3f],
    group_upper: wp.array[wp.vec3f],
):
    """All boxes of the nodes of a level of top-level trees, from their items and from the levels below; of roots, the group's bounds."""
    job = first + wp.tid() * step
    if job >= count:
        return
    node = node_base + level_start + job
    kids = children[node]
    low_x, low_y, low_z = vec8f(HUGE), vec8f(HUGE), vec8f(HUGE)
    high_x, high_y, high_z = vec8f(-HUGE), vec8f(-HUGE), vec8f(-HUGE)
    for child in range(8):
        kid = kids[child]
        if kid != EMPTY:
            box = empty_record()
            if kid >= 0:
                box = node_box(nodes, kid - shift)
            else:
                box = item_box(lower[-1 - kid], upper[-1 - kid])
            low_x[child] = box[0]
            low_y[child] = box[1]
            low_z[child] = box[2]
            high_x[child] = -box[3]
            high_y[child] = -box[4]
            high_z[child] = -box[5]
    nodes[6 * node] = low_x
    nodes[6 * node + 1] = low_y
    nodes[6 * node + 2] = low_z
    nodes[6 * node + 3] = high_x
    nodes[6 * node + 4] = high_y
    nodes[6 * node + 5] = high_z
    slot = parent[level_start + job]
    if slot < 0:
        box = node_box(nodes, node)
        group_lower[-1 - slot] = wp.vec3f(box[0], box[1], box[2])
        group_upper[-1 - slot] = wp.vec3f(-box[3], -box[4], -box[5])


@wp.kernel(enable_backward=False)
def refit_items(
    items: wp.array[wp.int32],
    count: wp.int32,
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
    item_row: wp.array[wp.int32],
    item_parent: wp.array[wp.int32],
    parent: wp.array[wp.int32],
    node_base: wp.int32,
    nodes: wp.array[vec8f],
    group_lower: wp.array[wp.vec3f],
    group_upper: wp.array[wp.vec3f],
):
    """The boxes of a few items, each from its own up to the root, in one thread: paths meet."""
    for i in range(count):
        item = items[i]
        row = item_row[item]
        slot = item_parent[item]
        box = item_box(lower[row], upper[row])
        while slot >= 0:
            node = slot >> 3
            write_box(nodes, node_base + node, slot & 7, box)
            box = node_box(nodes, node_base + node)
            slot = parent[node]
        group_lower[-1 - slot] = wp.vec3f(box[0], box[1], box[2])
        group_upper[-1 - slot] = wp.vec3f(-box[3], -box[4], -box[5])


@wp.kernel(enable_backward=False)
def write_root(node: wp.int32, child: wp.int32, lower: wp.array[wp.vec3f], upper: wp.array[wp.vec3f], nodes: wp.array[vec8f]):
    """The bounds of a tree into the box of a child of ``node``."""
    lo = lower[0]
    hi = upper[0]
    write_box(nodes, node, child, vec8f(lo[0], lo[1], lo[2], -hi[0], -hi[1], -hi[2], HUGE, HUGE))


@wp.kernel(enable_backward=False)
def clear_nodes(first: wp.int32, step: wp.int32, count: wp.int32, nodes: wp.array[vec8f]):
    """Invert every box."""
    job = first + wp.tid() * step
    if job >= count:
        return
    for axis in range(3):
        nodes[6 * job + axis] = vec8f(HUGE)
        nodes[6 * job + 3 + axis] = vec8f(-HUGE)
