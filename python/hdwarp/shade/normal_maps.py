"""shade.normal_maps: shading normals turned by textures of normals, in the space of the surface's tangents where they are laid."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, load_columns, pixel_run, store_triples
from hdwarp.tables.structs import (
    FACE_VARYING,
    INPUT_COUNT,
    MESH,
    NONE,
    NORMAL_INPUT,
    PRIMVAR,
    VERTEX,
    InstanceColumns,
    MeshColumns,
    PrimvarColumns,
    TextureColumns,
    ViewRow,
)

_FLATTEST = wp.constant(1.0e-6)  # squared sine between the tangent and the normal below which there is no telling where the map's x goes


@wp.func
def turned_normal(normal: wp.vec3f, along_s: wp.vec3f, along_t: wp.vec3f, shown: wp.vec3f) -> wp.vec3f:
    """The unit ``normal`` turned by what a map shows: x goes where s grows, but square to the normal, z along the normal, and y square to
    both, to the side where t grows. ``normal`` itself where that is no direction. ``along_s``, ``along_t``: of any length. Without
    branches, so that lanes stay side by side."""
    reach = wp.max(wp.max(wp.abs(along_s[0]), wp.abs(along_s[1])), wp.abs(along_s[2]))
    tangent = along_s * (1.0 / reach)  # squares of the very large and the very small would be no numbers
    tangent = tangent - normal * wp.dot(normal, tangent)
    size = wp.dot(tangent, tangent)
    tangent = tangent * (1.0 / wp.sqrt(size))
    other = wp.cross(normal, tangent)
    side = wp.where(wp.dot(other, along_t) < 0.0, -1.0, 1.0)
    turned = tangent * shown[0] + other * (side * shown[1]) + normal * shown[2]
    most = wp.max(wp.max(wp.abs(turned[0]), wp.abs(turned[1])), wp.abs(turned[2]))
    turned = turned * (1.0 / most)
    turned = turned * (1.0 / wp.sqrt(wp.dot(turned, turned)))
    usable = reach > 0.0 and reach < 1.0e38 and size > _FLATTEST and most > 0.0 and most < 1.0e38  # all false for NaN
    return wp.vec3f(wp.where(usable, turned[0], normal[0]), wp.where(usable, turned[1], normal[1]), wp.where(usable, turned[2], normal[2]))


@functools.cache
def normal_map_kernel(lanes: int) -> wp.Kernel:
    """Turn the shading normals of surfaces whose normal maps are laid by one set of coordinates; others are copied as they are, so that
    sets can follow one another, in place. Tangents are those of the triangle that is hit, as its points and coordinates are now."""
    LANES, BLOCKS = lanes, block_count(lanes)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    load_triples = load_columns(lanes, 3)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def turn_normals(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        vertices: wp.array[wp.float32],  # MeshColumns.leaf_vertices, flat: (leaf, corner, axis, lane)
        triangle_points: wp.array[wp.int32],  # MeshColumns.triangle_points and .triangle_corners, flat
        triangle_corners: wp.array[wp.int32],
        linear: wp.array[wp.float32],  # InstanceColumns.world_from_object, flat
        meshes: MeshColumns,
        instances: InstanceColumns,
        slots: wp.array[ints],  # the visibility record, a block an item
        seen_instances: wp.array[ints],
        material_row: wp.array[wp.int32],
        texture_of: wp.array[wp.int32],  # MaterialColumns.texture
        textures: TextureColumns,
        which: wp.int32,  # the set of coordinates
        st: PrimvarColumns,  # which holds it, 2 wide
        normal: wp.array[wp.float32],  # flat, three a pixel: unit, in the world; 0 where nothing is seen
        shown: wp.array[wp.float32],  # flat, three a pixel: what the maps show
        out: wp.array[wp.vec3f],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        row, texture, vertex, triangle, kind, start, indices = ints(), ints(), ints(), ints(), ints(), ints(), ints()
        a, b, c = ints(), ints(), ints()  # points or corners of the triangle, then numbers in `st.values`
        x, y, z = floats(), floats(), floats()
        sx, sy, sz, tx, ty, tz = floats(), floats(), floats(), floats(), floats(), floats()
        for block in range(run.blocks):
            item = run.record // LANES + block
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            found = seen_instances[item]
            before = load_triples(normal, low, high, pixel)
            mapped = wp.int32(0)
            for lane in range(LANES):
                inside = lane >= low and lane < high
                row[lane] = wp.where(inside, found[lane], -1)
                material = wp.where(row[lane] >= 0, material_row[pixel + wp.clamp(lane, low, high - 1)], -1)
                own = texture_of[INPUT_COUNT * wp.max(material, 0) + NORMAL_INPUT]
                own = wp.where(material >= 0, own, -1)
                laid = own >= 0 and textures.storage[wp.max(own, 0)] != PRIMVAR and textures.st[wp.max(own, 0)] == which
                own = wp.where(laid, own, -1)
                source = instances.source[wp.max(row[lane], 0)]
                mesh = wp.where(own >= 0 and instances.kind[source] == MESH, instances.geometry[source], -1)
                kind[lane] = wp.where(mesh >= 0, st.mesh_interpolation[wp.max(mesh, 0)], NONE)
                start[lane] = st.mesh_values[wp.max(mesh, 0)]
                indices[lane] = st.mesh_indices[wp.max(mesh, 0)]
                triangle[lane] = meshes.triangle_start[wp.max(mesh, 0)]
                varies = kind[lane] == VERTEX or kind[lane] == FACE_VARYING
                texture[lane] = wp.where(varies, own, -1)
                mapped = mapped | wp.where(varies, 1, 0)
                x[lane] = before[0, lane]
                y[lane] = before[1, lane]
                z[lane] = before[2, lane]
            if mapped == 0:
                store_triples(x, y, z, low, high, pixel, out)
                continue
            slot = slots[item]
            for lane in range(LANES):
                at = wp.where(texture[lane] >= 0, slot[lane], 0)
                vertex[lane] = 144 * (at // 16) + at % 16
                triangle[lane] = 3 * wp.where(texture[lane] >= 0, triangle[lane] + meshes.slot_triangle[at], 0)
            for lane in range(LANES):
                t = triangle[lane]
                by_point = kind[lane] == VERTEX
                a[lane] = wp.where(by_point, triangle_points[t], triangle_corners[t])
                b[lane] = wp.where(by_point, triangle_points[t + 1], triangle_corners[t + 1])
                c[lane] = wp.where(by_point, triangle_points[t + 2], triangle_corners[t + 2])
            for lane in range(LANES):
                mine = texture[lane] >= 0
                indexed = mine and indices[lane] >= 0
                of_a = wp.where(indexed, st.indices[wp.where(indexed, indices[lane] + a[lane], 0)], a[lane])
                of_b = wp.where(indexed, st.indices[wp.where(indexed, indices[lane] + b[lane], 0)], b[lane])
                of_c = wp.where(indexed, st.indices[wp.where(indexed, indices[lane] + c[lane], 0)], c[lane])
                a[lane] = wp.where(mine, 2 * (start[lane] + of_a), 0)
                b[lane] = wp.where(mine, 2 * (start[lane] + of_b), 0)
                c[lane] = wp.where(mine, 2 * (start[lane] + of_c), 0)
            for lane in range(LANES):
                s0, t0 = st.values[c[lane]], st.values[c[lane] + 1]
                s1, t1 = st.values[a[lane]] - s0, st.values[a[lane] + 1] - t0
                s2, t2 = st.values[b[lane]] - s0, st.values[b[lane] + 1] - t0
                by = textures.st_linear[wp.max(texture[lane], 0)]
                u1, v1 = by[0] * s1 + by[1] * t1, by[2] * s1 + by[3] * t1
                u2, v2 = by[0] * s2 + by[1] * t2, by[2] * s2 + by[3] * t2
                area = u1 * v2 - u2 * v1
                way = wp.where(area < 0.0, -1.0, wp.where(area > 0.0, 1.0, 0.0))  # NaN: 0
                g = vertex[lane]
                cx, cy, cz = vertices[g + 96], vertices[g + 112], vertices[g + 128]
                ax, ay, az = vertices[g] - cx, vertices[g + 16] - cy, vertices[g + 32] - cz
                bx, by_, bz = vertices[g + 48] - cx, vertices[g + 64] - cy, vertices[g + 80] - cz
                ox, oy, oz = (ax * v2 - bx * v1) * way, (ay * v2 - by_ * v1) * way, (az * v2 - bz * v1) * way
                px, py, pz = (bx * u1 - ax * u2) * way, (by_ * u1 - ay * u2) * way, (bz * u1 - az * u2) * way
                k = 9 * wp.max(row[lane], 0)
                sx[lane] = linear[k] * ox + linear[k + 1] * oy + linear[k + 2] * oz
                sy[lane] = linear[k + 3] * ox + linear[k + 4] * oy + linear[k + 5] * oz
                sz[lane] = linear[k + 6] * ox + linear[k + 7] * oy + linear[k + 8] * oz
                tx[lane] = linear[k] * px + linear[k + 1] * py + linear[k + 2] * pz
                ty[lane] = linear[k + 3] * px + linear[k + 4] * py + linear[k + 5] * pz
                tz[lane] = linear[k + 6] * px + linear[k + 7] * py + linear[k + 8] * pz
            maps = load_triples(shown, low, high, pixel)
            for lane in range(LANES):
                along_s, along_t = wp.vec3f(sx[lane], sy[lane], sz[lane]), wp.vec3f(tx[lane], ty[lane], tz[lane])
                own_normal, of_map = wp.vec3f(x[lane], y[lane], z[lane]), wp.vec3f(maps[0, lane], maps[1, lane], maps[2, lane])
                turned = turned_normal(own_normal, along_s, along_t, of_map)
                x[lane] = wp.where(texture[lane] >= 0, turned[0], x[lane])
                y[lane] = wp.where(texture[lane] >= 0, turned[1], y[lane])
                z[lane] = wp.where(texture[lane] >= 0, turned[2], z[lane])
            store_triples(x, y, z, low, high, pixel, out)

    return turn_normals
