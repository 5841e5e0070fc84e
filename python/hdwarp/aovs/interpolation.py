"""aovs.interpolation: what meshes and instances carry (primvars, shading normals) at each pixel's hit. Reads the weights of the resolve."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import (
    NO_INSTANCE,
    block_count,
    lane_options,
    load_columns,
    number_at,
    pixel_run,
    store_components,
    store_quads,
    store_triples,
    whole_at,
)
from hdwarp.aovs.turning import turn_normals
from hdwarp.tables.structs import BEZIER, FACE_VARYING, NONE, UNIFORM, VERTEX, InstanceColumns, MeshColumns, PrimvarColumns, ViewRow

_SHORTEST = 1.0e-30  # squared length of an interpolated normal below which it is no direction


@functools.cache
def primvar_kernel(lanes: int) -> wp.Kernel:
    """A primvar at each hit, and how its first two components change from pixel to pixel. Vector arrays come flat: loads of single numbers
    are what becomes SIMD gathers."""
    LANES, BLOCKS = lanes, block_count(lanes)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    load_pairs, load_quads = load_columns(lanes, 2), load_columns(lanes, 4)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def primvar_at_hit(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        meshes: MeshColumns,
        triangle_points: wp.array[wp.int32],  # MeshColumns.triangle_points and .triangle_corners, flat
        triangle_corners: wp.array[wp.int32],
        instances: InstanceColumns,
        slots: wp.array[ints],  # the visibility record, a block an item
        seen_instances: wp.array[ints],
        barycentric: wp.array[wp.float32],  # flat, two a pixel
        primvar: PrimvarColumns,
        missing: wp.float32,  # where the surface has no such primvar
        clear: wp.vec4f,  # where nothing is seen
        out: wp.array[wp.float32],  # flat, `primvar.width` a pixel
        changes: wp.array[wp.float32],  # of `footprints_kernel`, flat, four a pixel; null without ``spread``
        spread: wp.array[wp.vec4f],  # of the first and the second component to the right, and of both down; null where nobody asks
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        width = primvar.width
        row = ints()
        triangle = ints()
        kind = ints()  # interpolation
        start = ints()  # of the mesh's rows in `values`; of a constant, its row; -1 missing
        indices = ints()
        number_a, number_b, number_c = ints(), ints(), ints()  # faces, points or corners, then rows in `values`
        x, y, z, value = floats(), floats(), floats(), floats()
        w0, w1, w2 = floats(), floats(), floats()
        for block in range(run.blocks):
            item = run.record // LANES + block
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            found = seen_instances[item]
            lowest, highest = wp.int32(NO_INSTANCE), wp.int32(-1)
            for lane in range(LANES):
                i = wp.where(lane >= low and lane < high, found[lane], -1)
                row[lane] = i
                highest = wp.max(highest, i)
                lowest = wp.min(lowest, wp.where(i < 0, NO_INSTANCE, i))
            if highest < 0:
                nothing = floats(clear[3])
                store_components(floats(clear[0]), floats(clear[1]), floats(clear[2]), nothing, width, low, high, pixel, out)
                continue
            slot = slots[item]
            kinds, indexed = wp.int32(0), wp.int32(0)
            if lowest == highest:
                source = instances.source[highest]
                shared_mesh = instances.geometry[source]
                shared_kind = wp.int32(NONE)
                shared_start = primvar.instance_values[source]
                shared_indices, first_triangle = wp.int32(-1), wp.int32(0)
                if shared_mesh >= 0:
                    if primvar.mesh_interpolation[shared_mesh] != NONE:
                        shared_kind = primvar.mesh_interpolation[shared_mesh]
                        shared_start = primvar.mesh_values[shared_mesh]
                        shared_indices = primvar.mesh_indices[shared_mesh]
                        first_triangle = meshes.triangle_start[shared_mesh]
                if shared_kind == NONE:  # one value all over the instance, or none
                    here = wp.max(shared_start, 0) * width
                    for component in range(width):
                        only = wp.where(shared_start < 0, missing, primvar.values[here + component])
                        for lane in range(LANES):
                            value[lane] = wp.where(row[lane] < 0, clear[component], only)
                        if component == 0:
                            x = value
                        elif component == 1:
                            y = value
                        elif component == 2:
                            z = value
                    store_components(x, y, z, value, width, low, high, pixel, out)
                    if spread:
                        store_quads(floats(), floats(), floats(), floats(), low, high, pixel, spread)
                    continue
                kinds = 1 << shared_kind
                indexed = shared_indices + 1
                for lane in range(LANES):
                    kind[lane] = wp.where(row[lane] >= 0, shared_kind, NONE)
                    start[lane] = shared_start
                    indices[lane] = wp.where(row[lane] >= 0, shared_indices, -1)
                    triangle[lane] = first_triangle
            else:
                for lane in range(LANES):
                    i = instances.source[wp.max(row[lane], 0)]
                    mesh = wp.where(row[lane] >= 0, instances.geometry[i], -1)
                    m = wp.max(mesh, 0)
                    k = wp.where(mesh >= 0, primvar.mesh_interpolation[m], NONE)
                    kind[lane] = k
                    kinds = kinds | (1 << k)
                    start[lane] = wp.where(k == NONE, primvar.instance_values[i], primvar.mesh_values[m])
                    indices[lane] = wp.where(k == NONE, -1, primvar.mesh_indices[m])
                    indexed = wp.max(indexed, indices[lane] + 1)
                    triangle[lane] = meshes.triangle_start[m]
            for lane in range(LANES):
                own_slot = wp.where(kind[lane] == NONE, 0, slot[lane])
                triangle[lane] = wp.where(kind[lane] == NONE, 0, triangle[lane] + whole_at(meshes.slot_triangle, own_slot))
                number_a[lane] = 0
                number_b[lane] = 0
                number_c[lane] = 0
            if (kinds & (1 << UNIFORM)) != 0:
                for lane in range(LANES):
                    face = wp.where(kind[lane] == UNIFORM, meshes.triangle_face[triangle[lane]], 0)
                    number_a[lane] = face
                    number_b[lane] = face
                    number_c[lane] = face
            if (kinds & (1 << VERTEX)) != 0:
                for lane in range(LANES):
                    own = kind[lane] == VERTEX
                    number_a[lane] = wp.where(own, whole_at(triangle_points, 3 * triangle[lane]), number_a[lane])
                    number_b[lane] = wp.where(own, whole_at(triangle_points, 3 * triangle[lane] + 1), number_b[lane])
                    number_c[lane] = wp.where(own, whole_at(triangle_points, 3 * triangle[lane] + 2), number_c[lane])
            if (kinds & (1 << FACE_VARYING)) != 0:
                for lane in range(LANES):
                    own = kind[lane] == FACE_VARYING
                    number_a[lane] = wp.where(own, whole_at(triangle_corners, 3 * triangle[lane]), number_a[lane])
                    number_b[lane] = wp.where(own, whole_at(triangle_corners, 3 * triangle[lane] + 1), number_b[lane])
                    number_c[lane] = wp.where(own, whole_at(triangle_corners, 3 * triangle[lane] + 2), number_c[lane])
            if (kinds & (1 << BEZIER)) != 0:
                for lane in range(LANES):
                    segment = meshes.triangle_face[wp.where(kind[lane] == BEZIER, triangle[lane], 0)]
                    number_a[lane] = wp.where(kind[lane] == BEZIER, 4 * segment, number_a[lane])
            if indexed != 0:
                for lane in range(LANES):
                    own = indices[lane] >= 0
                    at_a, at_b, at_c = indices[lane] + number_a[lane], indices[lane] + number_b[lane], indices[lane] + number_c[lane]
                    number_a[lane] = wp.where(own, whole_at(primvar.indices, wp.where(own, at_a, 0)), number_a[lane])
                    number_b[lane] = wp.where(own, whole_at(primvar.indices, wp.where(own, at_b, 0)), number_b[lane])
                    number_c[lane] = wp.where(own, whole_at(primvar.indices, wp.where(own, at_c, 0)), number_c[lane])
            weights = load_pairs(barycentric, low, high, pixel)
            for lane in range(LANES):
                varies = kind[lane] == VERTEX or kind[lane] == FACE_VARYING
                a, b = weights[0, lane], weights[1, lane]
                w0[lane] = wp.where(varies, a, 1.0)
                w1[lane] = wp.where(varies, b, 0.0)
                w2[lane] = wp.where(varies, 1.0 - a - b, 0.0)
                base = wp.max(start[lane], 0)
                number_a[lane] = (base + number_a[lane]) * width
                number_b[lane] = (base + number_b[lane]) * width
                number_c[lane] = (base + number_c[lane]) * width
            for component in range(width):
                for lane in range(LANES):
                    of_a = number_at(primvar.values, number_a[lane] + component)
                    of_b = number_at(primvar.values, number_b[lane] + component)
                    of_c = number_at(primvar.values, number_c[lane] + component)
                    mean = of_a * w0[lane] + of_b * w1[lane] + of_c * w2[lane]
                    mean = wp.where(w0[lane] == 1.0, of_a, mean)
                    mean = wp.where(start[lane] < 0, missing, mean)
                    value[lane] = wp.where(row[lane] < 0, clear[component], mean)
                if (kinds & (1 << BEZIER)) != 0:
                    for lane in range(LANES):
                        if kind[lane] == BEZIER:
                            at, u = number_a[lane] + component, weights[0, lane]
                            rest = 1.0 - u
                            start_half = primvar.values[at] * (rest * rest * rest) + primvar.values[at + width] * (3.0 * rest * rest * u)
                            end_half = primvar.values[at + 2 * width] * (3.0 * rest * u * u) + primvar.values[at + 3 * width] * (u * u * u)
                            value[lane] = start_half + end_half
                if component == 0:
                    x = value
                elif component == 1:
                    y = value
                elif component == 2:
                    z = value
            store_components(x, y, z, value, width, low, high, pixel, out)
            if spread:
                change = load_quads(changes, low, high, pixel)
                for lane in range(LANES):
                    varies = kind[lane] == VERTEX or kind[lane] == FACE_VARYING
                    first_a = number_at(primvar.values, number_a[lane])
                    first_b = number_at(primvar.values, number_b[lane])
                    first_c = number_at(primvar.values, number_c[lane])
                    second_a = number_at(primvar.values, number_a[lane] + 1)
                    second_b = number_at(primvar.values, number_b[lane] + 1)
                    second_c = number_at(primvar.values, number_c[lane] + 1)
                    p, q = wp.where(varies, first_a - first_c, 0.0), wp.where(varies, first_b - first_c, 0.0)
                    r, s = wp.where(varies, second_a - second_c, 0.0), wp.where(varies, second_b - second_c, 0.0)
                    w0[lane] = p * change[0, lane] + q * change[1, lane]
                    w1[lane] = r * change[0, lane] + s * change[1, lane]
                    w2[lane] = p * change[2, lane] + q * change[3, lane]
                    value[lane] = r * change[2, lane] + s * change[3, lane]
                store_quads(w0, w1, w2, value, low, high, pixel, spread)

    return primvar_at_hit


@functools.cache
def normals_kernel(lanes: int) -> wp.Kernel:
    """Shading normals: interpolated object-space normals turned into the world, the geometric normal where there is none."""
    LANES, BLOCKS = lanes, block_count(lanes)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)
    turn = turn_normals(lanes)
    load_triples = load_columns(lanes, 3)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def normals(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        linear: wp.array[wp.float32],  # InstanceColumns.world_from_object, flat
        seen_instances: wp.array[ints],  # of the visibility record, a block an item
        geometric: wp.array[wp.float32],  # flat, three a pixel
        smooth: wp.array[wp.float32],  # object space, not unit, flat; null where no mesh has normals
        clear: wp.vec3f,
        clear_eye: wp.vec3f,
        normal: wp.array[wp.vec3f],
        normal_eye: wp.array[wp.vec3f],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        right, up, back = views[run.view].right, views[run.view].up, views[run.view].back
        row = ints()
        x, y, z = floats(), floats(), floats()
        p, q, r = floats(), floats(), floats()
        for block in range(run.blocks):
            found = seen_instances[run.record // LANES + block]
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            lowest, highest = wp.int32(NO_INSTANCE), wp.int32(-1)
            for lane in range(LANES):
                i = wp.where(lane >= low and lane < high, found[lane], -1)
                row[lane] = i
                highest = wp.max(highest, i)
                lowest = wp.min(lowest, wp.where(i < 0, NO_INSTANCE, i))
            if highest < 0:
                if normal:
                    store_triples(floats(clear[0]), floats(clear[1]), floats(clear[2]), low, high, pixel, normal)
                if normal_eye:
                    store_triples(floats(clear_eye[0]), floats(clear_eye[1]), floats(clear_eye[2]), low, high, pixel, normal_eye)
                continue
            face = load_triples(geometric, low, high, pixel)
            for lane in range(LANES):
                x[lane] = face[0, lane]
                y[lane] = face[1, lane]
                z[lane] = face[2, lane]
            if smooth:
                own = load_triples(smooth, low, high, pixel)
                for lane in range(LANES):
                    p[lane] = own[0, lane]
                    q[lane] = own[1, lane]
                    r[lane] = own[2, lane]
                turned = turn(linear, row, lowest, highest, p, q, r)
                for lane in range(LANES):
                    a, b, c = own[0, lane], own[1, lane], own[2, lane]
                    usable = a * a + b * b + c * c > _SHORTEST
                    tx, ty, tz = turned[0, lane], turned[1, lane], turned[2, lane]
                    unit = 1.0 / wp.sqrt(tx * tx + ty * ty + tz * tz)
                    x[lane] = wp.where(usable, tx * unit, x[lane])
                    y[lane] = wp.where(usable, ty * unit, y[lane])
                    z[lane] = wp.where(usable, tz * unit, z[lane])
            if normal:
                for lane in range(LANES):
                    p[lane] = wp.where(row[lane] >= 0, x[lane], clear[0])
                    q[lane] = wp.where(row[lane] >= 0, y[lane], clear[1])
                    r[lane] = wp.where(row[lane] >= 0, z[lane], clear[2])
                store_triples(p, q, r, low, high, pixel, normal)
            if normal_eye:
                for lane in range(LANES):
                    across = right[0] * x[lane] + right[1] * y[lane] + right[2] * z[lane]
                    upward = up[0] * x[lane] + up[1] * y[lane] + up[2] * z[lane]
                    backward = back[0] * x[lane] + back[1] * y[lane] + back[2] * z[lane]
                    p[lane] = wp.where(row[lane] >= 0, across, clear_eye[0])
                    q[lane] = wp.where(row[lane] >= 0, upward, clear_eye[1])
                    r[lane] = wp.where(row[lane] >= 0, backward, clear_eye[2])
                store_triples(p, q, r, low, high, pixel, normal_eye)

    return normals
