"""tables.bvh_kernels: the device side of the BVH builder: records and SAH splits. Plain arrays in and out; host code is in tables.bvh.

A *record* is one primitive while a tree is built: a vec8f (lower x, y, z, -upper x, y, z, index as bits, unused), so that the
lane-wise minimum of two records is the record of the box around both.
"""

from __future__ import annotations

import warp as wp

from hdwarp.launch import LANE_OPTIONS
from hdwarp.tables.structs import vec8f, vec16f

wp.set_module_options(LANE_OPTIONS)

BIN_COUNT = wp.constant(16)  # per axis
AXIS_BINS = wp.constant(48)
FAR_AWAY = wp.constant(1.0e15)  # a box that reaches beyond counts as without end: its area would be too large to compare
HUGE = wp.constant(1.0e30)  # coordinates beyond are as good as infinite


@wp.func
def empty_record() -> vec8f:
    return vec8f(HUGE)


@wp.func
def join(a: vec8f, b: vec8f) -> vec8f:
    """Box around two boxes."""
    joined = vec8f()
    for i in range(8):
        joined[i] = wp.where(b[i] < a[i], b[i], a[i])
    return joined


@wp.func
def half_area(box: vec8f) -> wp.float32:
    x, y, z = -box[3] - box[0], -box[4] - box[1], -box[5] - box[2]
    return x * y + y * z + z * x


@wp.func
def smaller(a: wp.float32, b: wp.float32) -> wp.float32:
    return wp.where(b < a, b, a)


@wp.func
def larger(a: wp.float32, b: wp.float32) -> wp.float32:
    return wp.where(b > a, b, a)


@wp.func
def is_finite(p: wp.vec3f) -> wp.bool:
    return wp.abs(p[0]) < HUGE and wp.abs(p[1]) < HUGE and wp.abs(p[2]) < HUGE


@wp.func
def is_within(p: wp.vec3f) -> wp.bool:
    return wp.abs(p[0]) < FAR_AWAY and wp.abs(p[1]) < FAR_AWAY and wp.abs(p[2]) < FAR_AWAY


@wp.func
def triangle_box(a: wp.vec3f, b: wp.vec3f, c: wp.vec3f) -> vec8f:
    return vec8f(
        smaller(a[0], smaller(b[0], c[0])),
        smaller(a[1], smaller(b[1], c[1])),
        smaller(a[2], smaller(b[2], c[2])),
        -larger(a[0], larger(b[0], c[0])),
        -larger(a[1], larger(b[1], c[1])),
        -larger(a[2], larger(b[2], c[2])),
        HUGE,
        HUGE,
    )


@wp.kernel(enable_backward=False)
def triangle_records(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    points: wp.array[wp.vec3f],
    triangle_points: wp.array[wp.vec3i],
    triangle_mesh: wp.array[wp.int32],
    point_start: wp.array[wp.int32],
    records: wp.array[vec8f],
):
    """A record a triangle. Triangles with a coordinate that is not finite are put at the origin; they never hit."""
    job = first + wp.tid() * step
    if job >= count:
        return
    start = point_start[triangle_mesh[job]]
    corner = triangle_points[job]
    a = points[start + corner[0]]
    b = points[start + corner[1]]
    c = points[start + corner[2]]
    record = vec8f()
    if is_finite(a) and is_finite(b) and is_finite(c):
        record = triangle_box(a, b, c)
    record[6] = wp.cast(job, wp.float32)
    record[7] = 0.0
    records[job] = record


@wp.func
def swept_box(points: wp.array[wp.vec3f], radii: wp.array[wp.float32], first: wp.int32, size: wp.int32, is_ball: wp.bool) -> vec8f:
    """The box around balls, which holds what is swept between; inverted where one is not finite or no radius is above 0. Without radii:
    around points."""
    box = empty_record()
    widest = wp.float32(-1.0)
    sound = wp.bool(True)
    for i in range(size):
        p = points[first + i]
        r = wp.float32(0.0)
        if radii:
            r = radii[first + i]
        if i == 0 or not is_ball:
            sound = sound and is_finite(p) and wp.abs(r) < HUGE
            widest = larger(widest, r)
            r = larger(r, 0.0)
            box = join(box, vec8f(p[0] - r, p[1] - r, p[2] - r, -p[0] - r, -p[1] - r, -p[2] - r, HUGE, HUGE))
    if not sound or (radii and not widest > 0.0):
        box = empty_record()
    return box


@wp.kernel(enable_backward=False)
def swept_records(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    points: wp.array[wp.vec3f],
    radii: wp.array[wp.float32],
    size: wp.int32,  # points an item
    item_mesh: wp.array[wp.int32],
    item_start: wp.array[wp.int32],
    point_start: wp.array[wp.int32],
    records: wp.array[vec8f],
):
    """A record a point or a piece of a curve, as `triangle_records`."""
    job = first + wp.tid() * step
    if job >= count:
        return
    mesh = item_mesh[job]
    record = swept_box(points, radii, point_start[mesh] + size * (job - item_start[mesh]), size, False)
    if not record[0] <= -record[3]:
        record = vec8f()
    record[6] = wp.cast(job, wp.float32)
    record[7] = 0.0
    records[job] = record


@wp.kernel(enable_backward=False)
def item_records(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
    items: wp.array[wp.int32],
    records: wp.array[vec8f],
):
    """A record an item; its box is row ``items[job]`` of the bounds. Inverted boxes are put at the origin; boxes without end far away
    from all others, so that the first split sets them apart and they spoil no box but the root's."""
    job = first + wp.tid() * step
    if job >= count:
        return
    lo = lower[items[job]]
    hi = upper[items[job]]
    if not lo[0] <= hi[0]:
        lo, hi = wp.vec3f(), wp.vec3f()
    elif not (is_within(lo) and is_within(hi)):
        lo, hi = wp.vec3f(FAR_AWAY), wp.vec3f(FAR_AWAY)
    records[job] = vec8f(lo[0], lo[1], lo[2], -hi[0], -hi[1], -hi[2], wp.cast(job, wp.float32), 0.0)


@wp.struct
class Split:
    """Where to cut a range: records whose bin along ``axis``, int((2 centre - origin) * scale), is ``last`` or less are on the left."""

    axis: wp.int32  # -1: there is no such place
    origin: wp.float32
    scale: wp.float32
    last: wp.int32
    left_area: wp.float32
    right_area: wp.float32


@wp.func
def bin_scale(extent: wp.float32) -> wp.float32:
    """Bins per unit length; 0 where the centres are too close together to tell apart."""
    scale = wp.where(extent > 0.0, (float(BIN_COUNT) - 0.01) / extent, 0.0)
    return wp.where(scale < HUGE, scale, 0.0)


@wp.func
def add_to_bin(boxes: wp.array[vec8f], counts: wp.array[wp.int32], b: wp.int32, record: vec8f):
    boxes[b] = join(boxes[b], record)
    counts[b] += 1


@wp.func
def side_cost(box: vec8f, n: wp.int32, leaf_size: wp.int32) -> wp.float32:
    """Area times the leaves needed at least: a leaf costs the same however full it is."""
    return half_area(box) * float((n + leaf_size - 1) // leaf_size)


@wp.func
def find_split(
    records: wp.array[vec8f],
    start: wp.int32,
    end: wp.int32,
    leaf_size: wp.int32,
    boxes: wp.array[vec8f],
    counts: wp.array[wp.int32],
) -> Split:
    """Best binned SAH split of a range."""
    low_x, low_y, low_z = wp.float32(HUGE), wp.float32(HUGE), wp.float32(HUGE)
    high_x, high_y, high_z = wp.float32(-HUGE), wp.float32(-HUGE), wp.float32(-HUGE)
    for i in range(start, end):
        record = records[i]
        x, y, z = record[0] - record[3], record[1] - record[4], record[2] - record[5]  # twice the centre
        low_x, low_y, low_z = smaller(low_x, x), smaller(low_y, y), smaller(low_z, z)
        high_x, high_y, high_z = larger(high_x, x), larger(high_y, y), larger(high_z, z)
    low = wp.vec3f(low_x, low_y, low_z)
    scale = wp.vec3f(bin_scale(high_x - low_x), bin_scale(high_y - low_y), bin_scale(high_z - low_z))
    for i in range(AXIS_BINS):
        boxes[i] = empty_record()
        counts[i] = 0
    for i in range(start, end):
        record = records[i]
        x, y, z = record[0] - record[3], record[1] - record[4], record[2] - record[5]
        add_to_bin(boxes, counts, int((x - low[0]) * scale[0]) & 15, record)
        add_to_bin(boxes, counts, BIN_COUNT + (int((y - low[1]) * scale[1]) & 15), record)
        add_to_bin(boxes, counts, 2 * BIN_COUNT + (int((z - low[2]) * scale[2]) & 15), record)
    best = Split()
    best.axis = -1
    best_cost = wp.float32(3.0e38)
    right_cost = vec16f()
    right_area = vec16f()
    for axis in range(3):
        if scale[axis] > 0.0:
            base = axis * BIN_COUNT
            box = empty_record()
            n = wp.int32(0)
            for k in range(BIN_COUNT - 1):
                b = BIN_COUNT - 1 - k
                box = join(box, boxes[base + b])
                n += counts[base + b]
                right_cost[b] = wp.where(n > 0, side_cost(box, n, leaf_size), 3.0e38)
                right_area[b] = half_area(box)
            box = empty_record()
            n = wp.int32(0)
            for b in range(BIN_COUNT - 1):
                box = join(box, boxes[base + b])
                n += counts[base + b]
                cost = side_cost(box, n, leaf_size) + right_cost[b + 1]
                if n > 0 and cost < best_cost:
                    best_cost = cost
                    best.axis = axis
                    best.origin = low[axis]
                    best.scale = scale[axis]
                    best.last = b
                    best.left_area = half_area(box)
                    best.right_area = right_area[b + 1]
    return best


@wp.func
def partition(records: wp.array[vec8f], coordinates: wp.array[wp.float32], start: wp.int32, end: wp.int32, split: Split) -> wp.int32:
    """Reorder a range so that the left side of a split comes first; where the right side starts. ``coordinates``: the records, flat."""
    i, j = wp.int32(start), wp.int32(end - 1)
    while i <= j:
        at = 8 * i + split.axis
        if int((coordinates[at] - coordinates[at + 3] - split.origin) * split.scale) <= split.last:
            i += 1
        else:
            kept = records[i]
            records[i] = records[j]
            records[j] = kept
            j -= 1
    return i


@wp.kernel(enable_backward=False)
def split_nodes(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    records: wp.array[vec8f],
    coordinates: wp.array[wp.float32],
    node_start: wp.array[wp.int32],
    node_end: wp.array[wp.int32],
    leaf_size: wp.int32,
    unit_limit: wp.int32,
    child_start: wp.array[wp.int32],
):
    """Split the range of every node of a level into up to eight: always the largest box that is no leaf yet. Near the bottom of trees of
    single items always the one with the most, and only until every child's children fit into one node: else nodes are half empty.

    A node that needs more leaves than ``unit_limit`` is split evenly by index instead: that bounds the depth. The children of
    node ``i`` start at ``child_start[9 * i : 9 * i + 9]``, the last end filling up.
    """
    job = first + wp.tid() * step
    if job >= count:
        return
    boxes = wp.zeros(shape=(48,), dtype=vec8f)
    counts = wp.zeros(shape=(48,), dtype=wp.int32)
    bound = wp.zeros(shape=(9,), dtype=wp.int32)
    weight = wp.zeros(shape=(8,), dtype=wp.float32)
    bound[0] = node_start[job]
    bound[1] = node_end[job]
    weight[0] = 1.0
    n = wp.int32(1)
    even = (bound[1] - bound[0] + leaf_size - 1) // leaf_size > unit_limit
    bottom = leaf_size == 1 and bound[1] - bound[0] > 8 and bound[1] - bound[0] <= 64
    for _turn in range(7):
        chosen = wp.int32(-1)
        most = wp.int32(8)
        for i in range(n):
            if bottom:
                if bound[i + 1] - bound[i] > most:
                    most = bound[i + 1] - bound[i]
                    chosen = i
            elif bound[i + 1] - bound[i] > leaf_size:
                if chosen < 0 or weight[i] > weight[wp.max(chosen, 0)]:
                    chosen = i
        if chosen >= 0:
            start = bound[chosen]
            end = bound[chosen + 1]
            units = (end - start + leaf_size - 1) // leaf_size
            middle = start + (units + 1) // 2 * leaf_size
            left, right = float(middle - start), float(end - middle)
            if not even:
                split = find_split(records, start, end, leaf_size, boxes, counts)
                cut = wp.int32(-1)
                if split.axis >= 0:
                    cut = partition(records, coordinates, start, end, split)
                if cut > start and cut < end:
                    middle = cut
                    left = split.left_area
                    right = split.right_area
                else:  # all centres in one place: halves, that go on being halved evenly
                    left, right = 0.5 * weight[chosen], 0.5 * weight[chosen]
            for k in range(n - chosen):
                i = n - k
                bound[i + 1] = bound[i]
                weight[wp.min(i, 7)] = weight[i - 1]
            bound[chosen + 1] = middle
            weight[chosen] = left
            weight[chosen + 1] = right
            n += 1
    for i in range(9):
        child_start[9 * job + i] = bound[wp.min(i, n)]
