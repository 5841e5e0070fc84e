"""aovs.resolve_kernels: visibility record -> where a pixel's ray hits: exact distance, position, weights, geometric normal."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.geometry_planes import GeometryClears, GeometryPlanes, clear_block, depth_block
from hdwarp.aovs.hits import grazing_hit, inside_weights, plane_hit, reciprocal, seen_distance, sphere_parameters, triangle_corner
from hdwarp.aovs.pixel_runs import (
    NO_INSTANCE,
    Ray,
    block_count,
    given_line,
    lane_options,
    line_at,
    load_columns,
    object_ray,
    pixel_run,
    point_within,
    sensor_frame,
    store_pairs,
    store_scalars,
    store_triples,
    way_within,
    world_ray,
)
from hdwarp.aovs.shape_hits import capsule_crossings, cone_crossings, cube_hit, round_normal, round_parameters, sphere_crossing
from hdwarp.aovs.swept_hits import swept_hit, unit_of
from hdwarp.aovs.turning import turn_normals
from hdwarp.tables.structs import CAPSULE, CONE, CUBE, MESH, PLANE, POINTS, RIBBONS, SPHERE, TUBES, InstanceColumns, ViewRow

_OUTSIDE = 1.0e-4  # weights below minus this: the exact ray passes the triangle; see `grazing_hit`


@functools.cache
def geometry_kernel(lanes: int, given: bool = False, swept: bool = False) -> wp.Kernel:
    """Distances, positions, the geometric normal and weights, for runs of ``lanes`` pixels.

    ``given``: of views whose rays are given, else of those with lenses: each leaves the others alone. ``swept``: of scenes with points or
    curves.
    """
    LANES, BLOCKS, GIVEN, SWEPT = lanes, block_count(lanes), given, swept
    turn = turn_normals(lanes)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    doubles = wp.types.vector(length=lanes, dtype=wp.float64)
    store_clears, store_depths = clear_block(lanes), depth_block(lanes)
    load_triples = load_columns(lanes, 3)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def geometry(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        vertices: wp.array[wp.float32],  # MeshColumns.leaf_vertices, flat: of triangles (leaf, corner, axis, lane)
        linear: wp.array[wp.float32],  # InstanceColumns.world_from_object, flat
        shapes: wp.array[wp.float32],  # InstanceColumns.shape, flat
        instances: InstanceColumns,
        slots: wp.array[ints],  # the visibility record, a block an item
        seen_instances: wp.array[ints],
        keys: wp.array[floats],
        origins: wp.array[wp.float32],  # RayColumns, flat; null without
        directions: wp.array[wp.float32],
        clear: GeometryClears,
        out: GeometryPlanes,
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
        else:
            if views[run.view].rays != 0:
                return
        view = views[run.view]
        if GIVEN:
            ray = sensor_frame(view)
            forward = view.origin_dx
            from_x, from_y, from_z = doubles(), doubles(), doubles()  # rays in the frame of the sensor: origin ...
            to_x, to_y, to_z = doubles(), doubles(), doubles()  # ... and direction, of length 1 in the world
            depth_start, depth_rate = doubles(), doubles()  # planar depth at t: start + t rate
        else:
            ray = world_ray(view, run.y)
        row = ints()
        kind = ints()
        ox, oy, oz = doubles(), doubles(), doubles()  # object-space rays: origin ...
        dx, dy, dz = doubles(), doubles(), doubles()  # ... and direction
        t = doubles()
        nx, ny, nz = floats(), floats(), floats()  # object-space normal, not unit
        w0, w1 = floats(), floats()
        x, y, z = floats(), floats(), floats()
        low_radius, high_radius, extent = doubles(), doubles(), doubles()  # of cones and capsules
        enters, leaves = doubles(), doubles()  # where their surface is crossed
        current = wp.int32(-1)  # the instance `inside` belongs to
        inside = Ray()
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
                store_clears(clear, low, high, pixel, out)
                continue
            slot = slots[item]
            key = keys[item]
            if GIVEN:
                start = view.first_ray + run.y * view.width + x0
                places, ways = load_triples(origins, low, high, start), load_triples(directions, low, high, start)
                for lane in range(LANES):
                    a, b, c = wp.float64(ways[0, lane]), wp.float64(ways[1, lane]), wp.float64(ways[2, lane])
                    way = way_within(ray, a, b, c)
                    squared = way[0] * way[0] + way[1] * way[1] + way[2] * way[2]
                    to_unit = wp.float64(1.0) / wp.sqrt(wp.where(squared > wp.float64(0.0), squared, wp.float64(1.0)))
                    to_x[lane] = a * to_unit
                    to_y[lane] = b * to_unit
                    to_z[lane] = c * to_unit
                    depth_rate[lane] = (forward[0] * way[0] + forward[1] * way[1] + forward[2] * way[2]) * to_unit
                    a, b, c = wp.float64(places[0, lane]), wp.float64(places[1, lane]), wp.float64(places[2, lane])
                    from_x[lane] = a
                    from_y[lane] = b
                    from_z[lane] = c
                    place = way_within(ray, a, b, c)
                    depth_start[lane] = forward[0] * place[0] + forward[1] * place[1] + forward[2] * place[2]
            kinds = wp.int32(0)  # bit per geometry kind in the block
            if lowest == highest:
                if highest != current:
                    inside = object_ray(ray, view.global_offset, instances, highest)
                    current = highest
                shared_kind = instances.kind[instances.source[highest]]
                kinds = 1 << shared_kind
                for lane in range(LANES):
                    if GIVEN:
                        line = given_line(inside, from_x[lane], from_y[lane], from_z[lane], to_x[lane], to_y[lane], to_z[lane])
                    else:
                        line = line_at(inside, wp.float64(x0 + lane))
                    ox[lane] = line.origin[0]
                    oy[lane] = line.origin[1]
                    oz[lane] = line.origin[2]
                    dx[lane] = line.direction[0]
                    dy[lane] = line.direction[1]
                    dz[lane] = line.direction[2]
                    kind[lane] = wp.where(row[lane] < 0, -1, shared_kind)
            else:
                for lane in range(LANES):
                    i = row[lane]
                    kind[lane] = -1
                    if i >= 0:
                        if i != current:
                            inside = object_ray(ray, view.global_offset, instances, i)
                            current = i
                        kind[lane] = instances.kind[instances.source[i]]
                        kinds = kinds | (1 << kind[lane])
                    if GIVEN:
                        line = given_line(inside, from_x[lane], from_y[lane], from_z[lane], to_x[lane], to_y[lane], to_z[lane])
                    else:
                        line = line_at(inside, wp.float64(x0 + lane))
                    ox[lane] = line.origin[0]
                    oy[lane] = line.origin[1]
                    oz[lane] = line.origin[2]
                    dx[lane] = line.direction[0]
                    dy[lane] = line.direction[1]
                    dz[lane] = line.direction[2]

            if (kinds & (1 << MESH)) != 0:
                astray = wp.int32(0)
                stray = ints()
                for lane in range(LANES):
                    k = wp.where(kind[lane] == MESH, slot[lane], 0)
                    plane = plane_hit(vertices, k, ox[lane], oy[lane], oz[lane], dx[lane], dy[lane], dz[lane])
                    t[lane] = plane.t
                    w0[lane] = wp.float32(plane.of_a)
                    w1[lane] = wp.float32(plane.of_b)
                    nx[lane] = plane.normal[0]
                    ny[lane] = plane.normal[1]
                    nz[lane] = plane.normal[2]
                    apart = wp.where(plane.least >= wp.float64(-_OUTSIDE), 0, 1)  # NaN counts
                    apart = wp.where(kind[lane] == MESH, apart, 0)
                    stray[lane] = apart
                    astray = astray | apart
                for lane in range(LANES):  # a ray that grazes an edge is outside by a rounding error
                    weights = inside_weights(w0[lane], w1[lane])
                    w0[lane] = weights[0]
                    w1[lane] = weights[1]
                if astray != 0:
                    for lane in range(LANES):
                        if stray[lane] != 0:
                            hit = grazing_hit(
                                triangle_corner(vertices, slot[lane], 0),
                                triangle_corner(vertices, slot[lane], 48),
                                triangle_corner(vertices, slot[lane], 96),
                                wp.vec3d(ox[lane], oy[lane], oz[lane]),
                                wp.vec3d(dx[lane], dy[lane], dz[lane]),
                                seen_distance(key[lane], view.orthographic),
                            )
                            t[lane] = hit[0]
                            weights = inside_weights(wp.float32(hit[1]), wp.float32(hit[2]))
                            w0[lane] = weights[0]
                            w1[lane] = weights[1]

            if (kinds & (1 << SPHERE)) != 0:
                for lane in range(LANES):
                    distance = sphere_crossing(ox[lane], oy[lane], oz[lane], dx[lane], dy[lane], dz[lane], slot[lane])
                    mine = kind[lane] == SPHERE
                    t[lane] = wp.where(mine, distance, t[lane])
                    nx[lane] = wp.where(mine, wp.float32(ox[lane] + distance * dx[lane]), nx[lane])
                    ny[lane] = wp.where(mine, wp.float32(oy[lane] + distance * dy[lane]), ny[lane])
                    nz[lane] = wp.where(mine, wp.float32(oz[lane] + distance * dz[lane]), nz[lane])
                if out.barycentric:
                    for lane in range(LANES):
                        if kind[lane] == SPHERE:
                            weights = sphere_parameters(wp.normalize(wp.vec3f(nx[lane], ny[lane], nz[lane])))
                            w0[lane] = weights[0]
                            w1[lane] = weights[1]

            if (kinds & (1 << CUBE)) != 0:
                for lane in range(LANES):
                    cube = cube_hit(ox[lane], oy[lane], oz[lane], dx[lane], dy[lane], dz[lane], slot[lane])
                    mine = kind[lane] == CUBE
                    t[lane] = wp.where(mine, cube.t, t[lane])
                    w0[lane] = wp.where(mine, cube.weights[0], w0[lane])
                    w1[lane] = wp.where(mine, cube.weights[1], w1[lane])
                    nx[lane] = wp.where(mine, cube.normal[0], nx[lane])
                    ny[lane] = wp.where(mine, cube.normal[1], ny[lane])
                    nz[lane] = wp.where(mine, cube.normal[2], nz[lane])

            if (kinds & ((1 << CONE) | (1 << CAPSULE))) != 0:
                for lane in range(LANES):
                    mine = kind[lane] == CONE or kind[lane] == CAPSULE
                    k = 4 * instances.source[wp.max(row[lane], 0)]
                    low_radius[lane] = wp.float64(wp.where(mine, shapes[k], 1.0))
                    high_radius[lane] = wp.float64(wp.where(mine, shapes[k + 1], 1.0))
                    extent[lane] = wp.float64(wp.where(mine, shapes[k + 2], 1.0))
                for lane in range(LANES):
                    side = cone_crossings(
                        ox[lane], oy[lane], oz[lane], dx[lane], dy[lane], dz[lane], low_radius[lane], high_radius[lane], extent[lane]
                    )
                    enters[lane] = side[0]
                    leaves[lane] = side[1]
                if (kinds & (1 << CAPSULE)) != 0:
                    for lane in range(LANES):
                        balls = capsule_crossings(
                            ox[lane], oy[lane], oz[lane], dx[lane], dy[lane], dz[lane], low_radius[lane], high_radius[lane], extent[lane]
                        )
                        mine = kind[lane] == CAPSULE
                        enters[lane] = wp.where(mine and balls[0] < enters[lane], balls[0], enters[lane])
                        leaves[lane] = wp.where(mine and balls[1] > leaves[lane], balls[1], leaves[lane])
                for lane in range(LANES):
                    recorded = seen_distance(key[lane], view.orthographic)
                    distance = wp.where(slot[lane] == 0, enters[lane], leaves[lane])
                    distance = wp.where(enters[lane] <= leaves[lane], distance, recorded)  # the exact ray just misses
                    qx = wp.float32(ox[lane] + distance * dx[lane])
                    qy = wp.float32(oy[lane] + distance * dy[lane])
                    qz = wp.float32(oz[lane] + distance * dz[lane])
                    low_end, high_end, half_height = wp.float32(low_radius[lane]), wp.float32(high_radius[lane]), wp.float32(extent[lane])
                    normal = round_normal(qx, qy, qz, low_end, high_end, half_height, kind[lane] == CAPSULE)
                    mine = kind[lane] == CONE or kind[lane] == CAPSULE
                    t[lane] = wp.where(mine, distance, t[lane])
                    nx[lane] = wp.where(mine, normal[0], nx[lane])
                    ny[lane] = wp.where(mine, normal[1], ny[lane])
                    nz[lane] = wp.where(mine, normal[2], nz[lane])
                if out.barycentric:
                    for lane in range(LANES):
                        if kind[lane] == CONE or kind[lane] == CAPSULE:
                            weights = round_parameters(
                                wp.float32(ox[lane] + t[lane] * dx[lane]),
                                wp.float32(oy[lane] + t[lane] * dy[lane]),
                                wp.float32(oz[lane] + t[lane] * dz[lane]),
                                wp.float32(low_radius[lane]),
                                wp.float32(high_radius[lane]),
                                wp.float32(extent[lane]),
                                kind[lane] == CAPSULE,
                            )
                            w0[lane] = weights[0]
                            w1[lane] = weights[1]

            if (kinds & (1 << PLANE)) != 0:
                for lane in range(LANES):
                    mine = kind[lane] == PLANE
                    distance = -oz[lane] * reciprocal(dz[lane])
                    recorded = seen_distance(key[lane], view.orthographic)
                    distance = wp.where(distance * recorded > wp.float64(0.0), distance, recorded)  # on the very horizon
                    qx = wp.float32(ox[lane] + distance * dx[lane]) * 0.5 + 0.5
                    qy = wp.float32(oy[lane] + distance * dy[lane]) * 0.5 + 0.5
                    k = 4 * instances.source[wp.max(row[lane], 0)]
                    qx = wp.where(shapes[k] > 1.0, qx, wp.clamp(qx, 0.0, 1.0))  # endless: on past the edges
                    qy = wp.where(shapes[k + 1] > 1.0, qy, wp.clamp(qy, 0.0, 1.0))
                    t[lane] = wp.where(mine, distance, t[lane])
                    nx[lane] = wp.where(mine, 0.0, nx[lane])
                    ny[lane] = wp.where(mine, 0.0, ny[lane])
                    nz[lane] = wp.where(mine, 1.0, nz[lane])
                    w0[lane] = wp.where(mine, qx, w0[lane])
                    w1[lane] = wp.where(mine, qy, w1[lane])

            if SWEPT:
                if (kinds & ((1 << POINTS) | (1 << TUBES) | (1 << RIBBONS))) != 0:
                    for lane in range(LANES):
                        if kind[lane] >= POINTS:
                            swept = swept_hit(
                                kind[lane],
                                vertices,
                                slot[lane],
                                wp.vec3d(ox[lane], oy[lane], oz[lane]),
                                wp.vec3d(dx[lane], dy[lane], dz[lane]),
                                seen_distance(key[lane], view.orthographic),
                            )
                            t[lane] = swept.t
                            unit_normal = unit_of(swept.normal)
                            nx[lane] = unit_normal[0]
                            ny[lane] = unit_normal[1]
                            nz[lane] = unit_normal[2]
                            w0[lane] = wp.float32(swept.along)
                            w1[lane] = 0.0
                            if kind[lane] == POINTS:
                                weights = sphere_parameters(wp.vec3f(nx[lane], ny[lane], nz[lane]))
                                w0[lane] = weights[0]
                                w1[lane] = weights[1]

            if out.ray_distance:
                store_scalars(t, low, high, pixel, out.ray_distance)
            planar = doubles(t)
            if GIVEN:
                for lane in range(LANES):
                    planar[lane] = depth_start[lane] + depth_rate[lane] * t[lane]
            store_depths(planar, row, view, clear, low, high, pixel, out)
            if out.distance_to_camera:
                for lane in range(LANES):
                    if GIVEN:
                        x[lane] = wp.where(row[lane] >= 0, wp.float32(t[lane]), clear.distance_to_camera)
                    else:
                        length = wp.length(ray.direction + ray.direction_dx * wp.float64(x0 + lane))
                        x[lane] = wp.where(row[lane] >= 0, wp.float32(t[lane] * length), clear.distance_to_camera)
                store_scalars(x, low, high, pixel, out.distance_to_camera)
            if out.position:
                for lane in range(LANES):
                    seen = row[lane] >= 0
                    if GIVEN:
                        a = from_x[lane] + to_x[lane] * t[lane]
                        b = from_y[lane] + to_y[lane] * t[lane]
                        c = from_z[lane] + to_z[lane] * t[lane]
                        p = point_within(ray, a, b, c)
                    else:
                        s = wp.float64(x0 + lane)
                        p = ray.origin + ray.origin_dx * s + (ray.direction + ray.direction_dx * s) * t[lane]
                    x[lane] = wp.where(seen, wp.float32(p[0]), clear.position[0])
                    y[lane] = wp.where(seen, wp.float32(p[1]), clear.position[1])
                    z[lane] = wp.where(seen, wp.float32(p[2]), clear.position[2])
                store_triples(x, y, z, low, high, pixel, out.position)
            if out.position_eye:
                begin = ray.origin - view.eye
                for lane in range(LANES):
                    seen = row[lane] >= 0
                    if GIVEN:
                        a = from_x[lane] + to_x[lane] * t[lane]
                        b = from_y[lane] + to_y[lane] * t[lane]
                        c = from_z[lane] + to_z[lane] * t[lane]
                        p = way_within(ray, a, b, c)
                    else:
                        s = wp.float64(x0 + lane)
                        p = begin + ray.origin_dx * s + (ray.direction + ray.direction_dx * s) * t[lane]
                    rx, ry, rz = wp.float32(p[0]), wp.float32(p[1]), wp.float32(p[2])
                    x[lane] = wp.where(seen, view.right[0] * rx + view.right[1] * ry + view.right[2] * rz, clear.position_eye[0])
                    y[lane] = wp.where(seen, view.up[0] * rx + view.up[1] * ry + view.up[2] * rz, clear.position_eye[1])
                    z[lane] = wp.where(seen, view.back[0] * rx + view.back[1] * ry + view.back[2] * rz, clear.position_eye[2])
                store_triples(x, y, z, low, high, pixel, out.position_eye)
            if out.barycentric:
                for lane in range(LANES):
                    x[lane] = wp.where(row[lane] >= 0, w0[lane], clear.barycentric[0])
                    y[lane] = wp.where(row[lane] >= 0, w1[lane], clear.barycentric[1])
                store_pairs(x, y, low, high, pixel, out.barycentric)
            if out.normal:
                turned = turn(linear, row, lowest, highest, nx, ny, nz)
                for lane in range(LANES):
                    x[lane] = turned[0, lane]
                    y[lane] = turned[1, lane]
                    z[lane] = turned[2, lane]
                for lane in range(LANES):
                    unit = 1.0 / wp.sqrt(x[lane] * x[lane] + y[lane] * y[lane] + z[lane] * z[lane])
                    x[lane] = wp.where(row[lane] >= 0, x[lane] * unit, clear.normal[0])
                    y[lane] = wp.where(row[lane] >= 0, y[lane] * unit, clear.normal[1])
                    z[lane] = wp.where(row[lane] >= 0, z[lane] * unit, clear.normal[2])
                store_triples(x, y, z, low, high, pixel, out.normal)

    return geometry
