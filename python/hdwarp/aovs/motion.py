"""aovs.motion: where a pixel's surface point was seen in the frame before: the second pose of the tables, through the second view rows."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.hits import triangle_corner
from hdwarp.aovs.pixel_runs import NO_INSTANCE, block_count, lane_options, load_columns, pixel_run, store_pairs, world_ray
from hdwarp.aovs.swept_hits import shift_of_swept
from hdwarp.tables.structs import MESH, InstanceColumns, MeshColumns, PreviousColumns, ViewRow, swept_point_count

_NOWHERE = wp.constant(float("inf"))  # of points that were behind the camera: no pixel showed them


@wp.struct
class Step:
    """How an instance has moved: a point ``p`` of its world now was at turn * (p - start) + end before."""

    turn: wp.mat33d
    start: wp.vec3d
    end: wp.vec3d
    object_from_world: wp.mat33d  # now; set with ``points`` alone
    world_from_object: wp.mat33d  # before
    moves: wp.int32  # 0: the pose is what it was
    points: wp.int32  # where the previous points of its mesh start, -1: they are what they were


@wp.func
def step_of(instances: InstanceColumns, previous: PreviousColumns, row: wp.int32, global_offset: wp.vec3d) -> Step:
    step = Step()
    step.points = -1
    if not previous.translation:
        return step
    step.points = previous.point_start[instances.source[row]]
    now, before = instances.world_from_object[row], previous.world_from_object[row]
    if not (now == before and instances.translation[row] == previous.translation[row]):
        step.moves = 1
    if step.moves != 0 or step.points >= 0:
        shift = wp.vec3d()
        if instances.world[row] < 0:
            shift = global_offset
        step.start = instances.translation[row] - shift
        step.end = previous.translation[row] - shift
        step.world_from_object = wp.mat33d(before)
        step.object_from_world = wp.inverse(wp.mat33d(now))
        step.turn = step.world_from_object * step.object_from_world
    return step


@wp.func
def shift_of_points(
    p: wp.vec3d,
    slot: wp.int32,
    mesh: wp.int32,
    start: wp.int32,
    vertices: wp.array[wp.float32],
    meshes: MeshColumns,
    previous: PreviousColumns,
) -> wp.vec3d:
    """From where point ``p`` of a triangle is to where it was, object space: its corners' shifts by its weights."""
    a, b, c = triangle_corner(vertices, slot, 0), triangle_corner(vertices, slot, 48), triangle_corner(vertices, slot, 96)
    points = meshes.triangle_points[meshes.triangle_start[mesh] + meshes.slot_triangle[slot]]
    of_a = wp.vec3d(previous.points[start + points[0]]) - a
    of_b = wp.vec3d(previous.points[start + points[1]]) - b
    of_c = wp.vec3d(previous.points[start + points[2]]) - c
    u, v, h = b - a, c - a, p - a
    n = wp.cross(u, v)
    zero, one = wp.float64(0.0), wp.float64(1.0)
    nn = wp.dot(n, n)
    if not (nn > zero):
        return of_a
    wb, wc = wp.dot(wp.cross(h, v), n) / nn, wp.dot(wp.cross(u, h), n) / nn
    wa = one - wb - wc  # a point that grazes an edge may be outside: moved in
    wa, wb, wc = wp.where(wa > zero, wa, zero), wp.where(wb > zero, wb, zero), wp.where(wc > zero, wc, zero)
    return (of_a * wa + of_b * wb + of_c * wc) / (wa + wb + wc)


@wp.func
def is_same_view(now: ViewRow, before: ViewRow) -> wp.bool:
    """Whether both show the same points in the same pixels."""
    return (
        now.origin == before.origin
        and now.origin_dx == before.origin_dx
        and now.origin_dy == before.origin_dy
        and now.direction == before.direction
        and now.direction_dx == before.direction_dx
        and now.direction_dy == before.direction_dy
        and now.orthographic == before.orthographic
    )


@wp.func
def pixel_from_world(view: ViewRow) -> wp.mat33d:
    """What gives (x, y, depth) of a point relative to `ViewRow.origin`, the first two times depth in perspective views."""
    if view.orthographic != 0:
        return wp.inverse(wp.matrix_from_cols(view.origin_dx, view.origin_dy, view.direction))
    return wp.inverse(wp.matrix_from_cols(view.direction_dx, view.direction_dy, view.direction))


@functools.cache
def motion_kernel(lanes: int, swept: bool = False) -> wp.Kernel:
    """Pixel position now minus in the frame before, for runs of ``lanes`` pixels. Where neither the view nor the point has moved, which is
    told by bits, it is 0 and nothing is computed. ``swept``: of scenes with points or curves."""
    LANES, BLOCKS, SWEPT = lanes, block_count(lanes), swept
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    doubles = wp.types.vector(length=lanes, dtype=wp.float64)
    load_distances = load_columns(lanes, 1, wp.float64)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def motion(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        previous_views: wp.array[ViewRow],
        vertices: wp.array[wp.float32],  # MeshColumns.leaf_vertices, flat
        corners: wp.array[wp.int32],  # MeshColumns.triangle_points, flat
        points: wp.array[wp.float32],  # PreviousColumns.points, flat; null without
        meshes: MeshColumns,
        instances: InstanceColumns,
        previous: PreviousColumns,
        slots: wp.array[ints],  # the visibility record, a block an item
        seen_instances: wp.array[ints],
        distances: wp.array[wp.float64],  # GeometryPlanes.ray_distance
        clear: wp.vec2f,
        out: wp.array[wp.vec2f],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        view, before = views[run.view], previous_views[run.view]
        ray = world_ray(view, run.y)
        same_view = is_same_view(view, before)
        project = pixel_from_world(before)
        row = ints()
        rests = ints()  # 1: neither the view nor the point has moved
        px, py, pz = doubles(), doubles(), doubles()  # the point: now, then before
        sx, sy, sz = doubles(), doubles(), doubles()  # how its mesh has shifted it, object space
        first_of_a, first_of_b, first_of_c = ints(), ints(), ints()  # of the previous corners' numbers
        zero = wp.float64(0.0)
        x, y = floats(), floats()
        current = wp.int32(-1)  # the instance `moved` belongs to
        moved = Step()
        for block in range(run.blocks):
            item = run.record // LANES + block
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            x0 = run.x + block * LANES
            found = seen_instances[item]
            lowest, highest = wp.int32(NO_INSTANCE), wp.int32(-1)
            for lane in range(LANES):
                i = wp.where(lane >= low and lane < high, found[lane], -1)
                row[lane] = i
                highest = wp.max(highest, i)
                lowest = wp.min(lowest, wp.where(i < 0, NO_INSTANCE, i))
            if highest < 0:
                store_pairs(floats(clear[0]), floats(clear[1]), low, high, pixel, out)
                continue
            if lowest == highest:
                if highest != current:
                    moved = step_of(instances, previous, highest, view.global_offset)
                    current = highest
                if same_view and moved.moves == 0 and moved.points < 0:
                    for lane in range(LANES):
                        x[lane] = wp.where(row[lane] >= 0, 0.0, clear[0])
                        y[lane] = wp.where(row[lane] >= 0, 0.0, clear[1])
                    store_pairs(x, y, low, high, pixel, out)
                    continue
            t = load_distances(distances, low, high, pixel)
            for lane in range(LANES):
                s = wp.float64(x0 + lane)
                px[lane] = ray.origin[0] + ray.origin_dx[0] * s + (ray.direction[0] + ray.direction_dx[0] * s) * t[0, lane]
                py[lane] = ray.origin[1] + ray.origin_dx[1] * s + (ray.direction[1] + ray.direction_dx[1] * s) * t[0, lane]
                pz[lane] = ray.origin[2] + ray.origin_dx[2] * s + (ray.direction[2] + ray.direction_dx[2] * s) * t[0, lane]
                rests[lane] = 0
            together = lowest == highest
            if SWEPT:
                if together and moved.points >= 0:
                    together = instances.kind[instances.source[highest]] == MESH
            if together:
                if moved.points >= 0:  # `shift_of_points`, lane by lane
                    slot = slots[item]
                    back, pivot = moved.object_from_world, moved.start
                    mesh_start = meshes.triangle_start[instances.geometry[instances.source[highest]]]
                    for lane in range(LANES):
                        k = wp.where(row[lane] >= 0, slot[lane], 0)
                        triangle = mesh_start + wp.where(row[lane] >= 0, meshes.slot_triangle[k], 0)
                        first_of_a[lane] = 3 * (moved.points + corners[3 * triangle])
                        first_of_b[lane] = 3 * (moved.points + corners[3 * triangle + 1])
                        first_of_c[lane] = 3 * (moved.points + corners[3 * triangle + 2])
                    for lane in range(LANES):
                        k = wp.where(row[lane] >= 0, slot[lane], 0)
                        g = (k >> 4) * 144 + (k & 15)
                        ax, ay, az = wp.float64(vertices[g]), wp.float64(vertices[g + 16]), wp.float64(vertices[g + 32])
                        bx, by, bz = wp.float64(vertices[g + 48]), wp.float64(vertices[g + 64]), wp.float64(vertices[g + 80])
                        cx, cy, cz = wp.float64(vertices[g + 96]), wp.float64(vertices[g + 112]), wp.float64(vertices[g + 128])
                        rx, ry, rz = px[lane] - pivot[0], py[lane] - pivot[1], pz[lane] - pivot[2]
                        hx = back[0, 0] * rx + back[0, 1] * ry + back[0, 2] * rz - ax
                        hy = back[1, 0] * rx + back[1, 1] * ry + back[1, 2] * rz - ay
                        hz = back[2, 0] * rx + back[2, 1] * ry + back[2, 2] * rz - az
                        ux, uy, uz = bx - ax, by - ay, bz - az
                        vx, vy, vz = cx - ax, cy - ay, cz - az
                        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
                        nn = nx * nx + ny * ny + nz * nz
                        per_nn = wp.float64(1.0) / wp.where(nn > zero, nn, wp.float64(1.0))  # 0: the first corner's shift
                        wb = ((hy * vz - hz * vy) * nx + (hz * vx - hx * vz) * ny + (hx * vy - hy * vx) * nz) * per_nn
                        wc = ((uy * hz - uz * hy) * nx + (uz * hx - ux * hz) * ny + (ux * hy - uy * hx) * nz) * per_nn
                        wa = wp.float64(1.0) - wb - wc
                        wa, wb, wc = wp.where(wa > zero, wa, zero), wp.where(wb > zero, wb, zero), wp.where(wc > zero, wc, zero)
                        whole = wp.float64(1.0) / (wa + wb + wc)
                        a, b, c = first_of_a[lane], first_of_b[lane], first_of_c[lane]
                        qx = (wp.float64(points[a]) - ax) * wa + (wp.float64(points[b]) - bx) * wb + (wp.float64(points[c]) - cx) * wc
                        qy = (wp.float64(points[a + 1]) - ay) * wa + (wp.float64(points[b + 1]) - by) * wb
                        qy += (wp.float64(points[c + 1]) - cy) * wc
                        qz = (wp.float64(points[a + 2]) - az) * wa + (wp.float64(points[b + 2]) - bz) * wb
                        qz += (wp.float64(points[c + 2]) - cz) * wc
                        sx[lane] = qx * whole
                        sy[lane] = qy * whole
                        sz[lane] = qz * whole
                        stays = qx == zero and qy == zero and qz == zero and same_view and moved.moves == 0
                        rests[lane] = wp.where(stays, 1, 0)
                if moved.moves != 0:
                    turn, start, end = moved.turn, moved.start, moved.end
                    for lane in range(LANES):
                        qx, qy, qz = px[lane] - start[0], py[lane] - start[1], pz[lane] - start[2]
                        px[lane] = turn[0, 0] * qx + turn[0, 1] * qy + turn[0, 2] * qz + end[0]
                        py[lane] = turn[1, 0] * qx + turn[1, 1] * qy + turn[1, 2] * qz + end[1]
                        pz[lane] = turn[2, 0] * qx + turn[2, 1] * qy + turn[2, 2] * qz + end[2]
                if moved.points >= 0:
                    forth = moved.world_from_object
                    for lane in range(LANES):
                        px[lane] += forth[0, 0] * sx[lane] + forth[0, 1] * sy[lane] + forth[0, 2] * sz[lane]
                        py[lane] += forth[1, 0] * sx[lane] + forth[1, 1] * sy[lane] + forth[1, 2] * sz[lane]
                        pz[lane] += forth[2, 0] * sx[lane] + forth[2, 1] * sy[lane] + forth[2, 2] * sz[lane]
            else:
                found_slots = slots[item]
                for lane in range(LANES):
                    i = row[lane]
                    if i >= 0:
                        if i != current:
                            moved = step_of(instances, previous, i, view.global_offset)
                            current = i
                        p = wp.vec3d(px[lane], py[lane], pz[lane])
                        shift = wp.vec3d()
                        if moved.points >= 0:
                            inside = moved.object_from_world * (p - moved.start)
                            mesh = instances.geometry[instances.source[i]]
                            kind = wp.int32(MESH)
                            if SWEPT:
                                kind = instances.kind[instances.source[i]]
                                if kind != MESH:
                                    first_point = moved.points + swept_point_count(kind) * meshes.slot_triangle[found_slots[lane]]
                                    shift = shift_of_swept(kind, inside, found_slots[lane], first_point, vertices, previous.points)
                            if kind == MESH:
                                shift = shift_of_points(inside, found_slots[lane], mesh, moved.points, vertices, meshes, previous)
                        if same_view and moved.moves == 0 and shift == wp.vec3d():
                            rests[lane] = 1
                        if moved.moves != 0:
                            p = moved.turn * (p - moved.start) + moved.end
                        if moved.points >= 0:
                            p += moved.world_from_object * shift
                        px[lane] = p[0]
                        py[lane] = p[1]
                        pz[lane] = p[2]
            for lane in range(LANES):
                qx, qy, qz = px[lane] - before.origin[0], py[lane] - before.origin[1], pz[lane] - before.origin[2]
                depth = project[2, 0] * qx + project[2, 1] * qy + project[2, 2] * qz
                depth = wp.where(before.orthographic != 0, wp.float64(1.0), depth)
                column = (project[0, 0] * qx + project[0, 1] * qy + project[0, 2] * qz) / depth
                line = (project[1, 0] * qx + project[1, 1] * qy + project[1, 2] * qz) / depth
                seen, behind = row[lane] >= 0, depth <= wp.float64(0.0)
                right = wp.where(behind, _NOWHERE, wp.float32(wp.float64(x0 + lane) - column))
                down = wp.where(behind, _NOWHERE, wp.float32(wp.float64(run.y) - line))
                x[lane] = wp.where(seen, wp.where(rests[lane] != 0, 0.0, right), clear[0])
                y[lane] = wp.where(seen, wp.where(rests[lane] != 0, 0.0, down), clear[1])
            store_pairs(x, y, low, high, pixel, out)

    return motion
