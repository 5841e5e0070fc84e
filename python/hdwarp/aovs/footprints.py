"""aovs.footprints: how fast weights change from pixel to pixel: what a pixel covers of a triangle, to filter what lies on it."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import NO_INSTANCE, block_count, lane_options, load_columns, number_at, pixel_run, store_quads, world_ray
from hdwarp.tables.structs import MESH, InstanceColumns, ViewRow

_FASTEST = wp.constant(1.0e8)  # so that what is computed with it is finite


@wp.func
def finite_rate(x: wp.float32) -> wp.float32:
    return wp.where(x == x, wp.clamp(x, -_FASTEST, _FASTEST), 0.0)


@functools.cache
def footprints_kernel(lanes: int, given: bool = False) -> wp.Kernel:
    """Changes of the first two weights of a triangle's corners, a pixel to the right and a pixel down; 0 on what is no mesh.

    The hit moves in the triangle's plane with the ray: in closed form, so that no neighbour has to see the same triangle. Where rays are
    ``given``, the ray of the pixel beside (towards the middle, at the last column and row) says how rays change.
    """
    LANES, BLOCKS, GIVEN = lanes, block_count(lanes), given
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    vectors = wp.types.matrix(shape=(3, lanes), dtype=wp.float32)
    load_triples, load_doubles = load_columns(lanes, 3), load_columns(lanes, 1, wp.float64)

    @wp.func
    def turned(a: vectors, x: wp.vec3f, y: wp.vec3f, z: wp.vec3f) -> vectors:
        out = vectors()
        for lane in range(LANES):
            out[0, lane] = x[0] * a[0, lane] + y[0] * a[1, lane] + z[0] * a[2, lane]
            out[1, lane] = x[1] * a[0, lane] + y[1] * a[1, lane] + z[1] * a[2, lane]
            out[2, lane] = x[2] * a[0, lane] + y[2] * a[1, lane] + z[2] * a[2, lane]
        return out

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def footprints(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        vertices: wp.array[wp.float32],  # MeshColumns.leaf_vertices, flat: (leaf, corner, axis, lane)
        linear: wp.array[wp.float32],  # InstanceColumns.world_from_object, flat
        instances: InstanceColumns,
        slots: wp.array[ints],  # the visibility record, a block an item
        seen_instances: wp.array[ints],
        origins: wp.array[wp.float32],  # RayColumns, flat; null without
        directions: wp.array[wp.float32],
        distances: wp.array[wp.float64],  # t along the view's rays
        out: wp.array[wp.vec4f],  # of the first and the second weight to the right, of both down
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        if GIVEN:
            if views[run.view].rays == 0:
                return
            axis_x = wp.vec3f(views[run.view].direction_dx)
            axis_y = wp.vec3f(views[run.view].direction_dy)
            axis_z = wp.vec3f(views[run.view].direction)
            down = wp.where(run.y + 1 < views[run.view].height, 1, wp.where(run.y > 0, -1, 0)) * views[run.view].width
        else:
            if views[run.view].rays != 0:
                return
        ray = world_ray(views[run.view], run.y)
        sx = wp.vec3f(views[run.view].origin_dx)
        sy = wp.vec3f(views[run.view].origin_dy)
        dx = wp.vec3f(views[run.view].direction_dx)
        dy = wp.vec3f(views[run.view].direction_dy)
        base = wp.vec3f(ray.direction)
        row, slot, is_mesh, beside = ints(), ints(), ints(), ints()
        t = floats()
        ux, uy, uz, vx, vy, vz = floats(), floats(), floats(), floats(), floats(), floats()
        way, right, below = vectors(), vectors(), vectors()  # of the ray, and how the hit moves with it
        a_right, b_right, a_below, b_below = floats(), floats(), floats(), floats()
        for block in range(run.blocks):
            item = run.record // LANES + block
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            x0 = run.x + block * LANES
            found, hit_slots = seen_instances[item], slots[item]
            lowest, highest = wp.int32(NO_INSTANCE), wp.int32(-1)
            for lane in range(LANES):
                i = wp.where(lane >= low and lane < high, found[lane], -1)
                row[lane] = wp.max(i, 0)
                highest = wp.max(highest, i)
                lowest = wp.min(lowest, wp.where(i < 0, NO_INSTANCE, i))
            if highest < 0:
                continue  # nobody reads these
            along = load_doubles(distances, low, high, pixel)
            for lane in range(LANES):
                t[lane] = wp.float32(along[0, lane])
            if lowest == highest:
                shared = wp.where(instances.kind[instances.source[highest]] == MESH, 1, 0)
                for lane in range(LANES):
                    is_mesh[lane] = wp.where(lane >= low and lane < high and found[lane] >= 0, shared, 0)
                    row[lane] = highest
            else:
                for lane in range(LANES):
                    kind = instances.kind[instances.source[row[lane]]]
                    is_mesh[lane] = wp.where(lane >= low and lane < high and found[lane] >= 0 and kind == MESH, 1, 0)
            for lane in range(LANES):
                k = wp.where(is_mesh[lane] != 0, hit_slots[lane], 0)
                g = (k >> 4) * 144 + (k & 15)
                ax = number_at(vertices, g)
                ay = number_at(vertices, g + 16)
                az = number_at(vertices, g + 32)
                ux[lane] = number_at(vertices, g + 48) - ax
                uy[lane] = number_at(vertices, g + 64) - ay
                uz[lane] = number_at(vertices, g + 80) - az
                vx[lane] = number_at(vertices, g + 96) - ax
                vy[lane] = number_at(vertices, g + 112) - ay
                vz[lane] = number_at(vertices, g + 128) - az
            if lowest == highest:
                m = 9 * highest
                m0, m1, m2 = linear[m], linear[m + 1], linear[m + 2]
                m3, m4, m5 = linear[m + 3], linear[m + 4], linear[m + 5]
                m6, m7, m8 = linear[m + 6], linear[m + 7], linear[m + 8]
                for lane in range(LANES):
                    px, py, pz = ux[lane], uy[lane], uz[lane]
                    qx, qy, qz = vx[lane], vy[lane], vz[lane]
                    ux[lane] = m0 * px + m1 * py + m2 * pz
                    uy[lane] = m3 * px + m4 * py + m5 * pz
                    uz[lane] = m6 * px + m7 * py + m8 * pz
                    vx[lane] = m0 * qx + m1 * qy + m2 * qz
                    vy[lane] = m3 * qx + m4 * qy + m5 * qz
                    vz[lane] = m6 * qx + m7 * qy + m8 * qz
            else:
                for lane in range(LANES):
                    px, py, pz = ux[lane], uy[lane], uz[lane]
                    qx, qy, qz = vx[lane], vy[lane], vz[lane]
                    at = 9 * row[lane]
                    n0, n1, n2 = number_at(linear, at), number_at(linear, at + 1), number_at(linear, at + 2)
                    n3, n4, n5 = number_at(linear, at + 3), number_at(linear, at + 4), number_at(linear, at + 5)
                    n6, n7, n8 = number_at(linear, at + 6), number_at(linear, at + 7), number_at(linear, at + 8)
                    ux[lane] = n0 * px + n1 * py + n2 * pz
                    uy[lane] = n3 * px + n4 * py + n5 * pz
                    uz[lane] = n6 * px + n7 * py + n8 * pz
                    vx[lane] = n0 * qx + n1 * qy + n2 * qz
                    vy[lane] = n3 * qx + n4 * qy + n5 * qz
                    vz[lane] = n6 * qx + n7 * qy + n8 * qz
            if GIVEN:
                start = views[run.view].first_ray + run.y * views[run.view].width + x0
                way = load_triples(directions, low, high, start)
                for lane in range(LANES):
                    column = x0 + lane
                    on = wp.where(column + 1 < views[run.view].width, 1, wp.where(column > 0, -1, 0))
                    beside[lane] = 3 * (start + wp.clamp(lane, low, high - 1) + on)
                    slot[lane] = 3 * (start + wp.clamp(lane, low, high - 1))
                for lane in range(LANES):
                    this, next, under = slot[lane], beside[lane], slot[lane] + 3 * down
                    for axis in range(3):
                        place, heading = origins[this + axis], directions[this + axis]
                        right[axis, lane] = origins[next + axis] - place + t[lane] * (directions[next + axis] - heading)
                        below[axis, lane] = origins[under + axis] - place + t[lane] * (directions[under + axis] - heading)
                way = turned(way, axis_x, axis_y, axis_z)
                right, below = turned(right, axis_x, axis_y, axis_z), turned(below, axis_x, axis_y, axis_z)
            else:
                for lane in range(LANES):
                    s = wp.float32(x0 + lane)
                    way[0, lane] = base[0] + dx[0] * s
                    way[1, lane] = base[1] + dx[1] * s
                    way[2, lane] = base[2] + dx[2] * s
                    right[0, lane] = sx[0] + dx[0] * t[lane]
                    right[1, lane] = sx[1] + dx[1] * t[lane]
                    right[2, lane] = sx[2] + dx[2] * t[lane]
                    below[0, lane] = sy[0] + dy[0] * t[lane]
                    below[1, lane] = sy[1] + dy[1] * t[lane]
                    below[2, lane] = sy[2] + dy[2] * t[lane]
            for lane in range(LANES):
                px, py, pz = ux[lane], uy[lane], uz[lane]
                qx, qy, qz = vx[lane], vy[lane], vz[lane]
                cx, cy, cz = py * qz - pz * qy, pz * qx - px * qz, px * qy - py * qx
                area = 1.0 / (cx * cx + cy * cy + cz * cz)
                gx, gy, gz = (qy * cz - qz * cy) * area, (qz * cx - qx * cz) * area, (qx * cy - qy * cx) * area  # of the second weight
                hx, hy, hz = (cy * pz - cz * py) * area, (cz * px - cx * pz) * area, (cx * py - cy * px) * area  # of the third
                ex, ey, ez = way[0, lane], way[1, lane], way[2, lane]
                slope = 1.0 / (cx * ex + cy * ey + cz * ez)
                ahead = (cx * right[0, lane] + cy * right[1, lane] + cz * right[2, lane]) * slope
                rx, ry, rz = right[0, lane] - ex * ahead, right[1, lane] - ey * ahead, right[2, lane] - ez * ahead
                ahead = (cx * below[0, lane] + cy * below[1, lane] + cz * below[2, lane]) * slope
                sx_, sy_, sz_ = below[0, lane] - ex * ahead, below[1, lane] - ey * ahead, below[2, lane] - ez * ahead
                of_b, of_c = gx * rx + gy * ry + gz * rz, hx * rx + hy * ry + hz * rz
                a_right[lane] = wp.where(is_mesh[lane] != 0, finite_rate(-of_b - of_c), 0.0)
                b_right[lane] = wp.where(is_mesh[lane] != 0, finite_rate(of_b), 0.0)
                of_b, of_c = gx * sx_ + gy * sy_ + gz * sz_, hx * sx_ + hy * sy_ + hz * sz_
                a_below[lane] = wp.where(is_mesh[lane] != 0, finite_rate(-of_b - of_c), 0.0)
                b_below[lane] = wp.where(is_mesh[lane] != 0, finite_rate(of_b), 0.0)
            store_quads(a_right, b_right, a_below, b_below, low, high, pixel, out)

    return footprints
