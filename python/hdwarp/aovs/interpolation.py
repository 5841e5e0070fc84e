"""aovs.interpolation: what meshes and instances carry (primvars, shading normals) at each pixel's hit. Reads the weights of the resolve."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import block_count, lane_options, pixel_run, visible_instance
from hdwarp.aovs.resolve_kernels import world_normal
from hdwarp.tables.structs import NONE, UNIFORM, VERTEX, InstanceColumns, MeshColumns, PrimvarColumns, ViewRow, Visibility

_SHORTEST = 1.0e-30  # squared length of an interpolated normal below which it is no direction


@functools.cache
def primvar_kernel(lanes: int) -> wp.Kernel:
    """A primvar at each hit. ``out`` is flat: ``primvar.width`` numbers a pixel."""
    LANES, BLOCKS = lanes, block_count(lanes)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)
    floats = wp.types.vector(length=lanes, dtype=wp.float32)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def primvar_at_hit(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        meshes: MeshColumns,
        instances: InstanceColumns,
        visibility: Visibility,
        barycentric: wp.array[wp.vec2f],
        primvar: PrimvarColumns,
        missing: wp.float32,  # where the surface has no such primvar
        clear: wp.vec4f,  # where nothing is seen
        out: wp.array[wp.float32],
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        for block in range(run.blocks):
            at = run.record + block * LANES
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            row = ints()
            row_a, row_b, row_c = ints(), ints(), ints()  # rows in primvar.values; -1 missing, -2 nothing seen
            w0, w1, w2 = floats(), floats(), floats()
            for lane in range(LANES):
                i = visible_instance(visibility, at, lane, low, high)
                row[lane] = i
                row_a[lane] = wp.where(i >= 0, -1, -2)
                w0[lane] = 1.0
            start = wp.int32(0)
            while start < LANES:  # a stretch of lanes that see the same instance or nothing
                current = row[start]
                end = start + 1
                while end < LANES and (row[wp.min(end, LANES - 1)] == current or row[wp.min(end, LANES - 1)] < 0):
                    end += 1
                if current >= 0:
                    mesh = instances.geometry[current]
                    interpolation = wp.int32(NONE)
                    if mesh >= 0:
                        interpolation = primvar.mesh_interpolation[mesh]
                    if interpolation == NONE:
                        constant = primvar.instance_values[current]
                        for lane in range(start, end):
                            row_a[lane] = wp.where(row[lane] >= 0, constant, -2)
                    else:
                        triangle_start = meshes.triangle_start[mesh]
                        own_slot = visibility.slot[at + start]
                        indices = primvar.mesh_indices[mesh]
                        values = primvar.mesh_values[mesh]
                        for lane in range(start, end):
                            slot = wp.where(row[lane] >= 0, visibility.slot[at + lane], own_slot)
                            triangle = triangle_start + meshes.slot_triangle[slot]
                            a, b, c = wp.int32(0), wp.int32(0), wp.int32(0)
                            if interpolation == UNIFORM:
                                a = meshes.triangle_face[triangle]
                                b = a
                                c = a
                            elif interpolation == VERTEX:
                                a = meshes.triangle_points[triangle][0]
                                b = meshes.triangle_points[triangle][1]
                                c = meshes.triangle_points[triangle][2]
                            else:
                                a = meshes.triangle_corners[triangle][0]
                                b = meshes.triangle_corners[triangle][1]
                                c = meshes.triangle_corners[triangle][2]
                            if indices >= 0:
                                a = primvar.indices[indices + a]
                                b = primvar.indices[indices + b]
                                c = primvar.indices[indices + c]
                            row_a[lane] = wp.where(row[lane] >= 0, values + a, -2)
                            row_b[lane] = values + b
                            row_c[lane] = values + c
                        if interpolation != UNIFORM:
                            for lane in range(start, end):
                                pair = barycentric[pixel + wp.clamp(lane, low, high - 1)]
                                w0[lane] = pair[0]
                                w1[lane] = pair[1]
                                w2[lane] = 1.0 - pair[0] - pair[1]
                start = end
            width = primvar.width
            for component in range(width):
                for lane in range(LANES):
                    a = wp.max(row_a[lane], 0)
                    mean = w0[lane] * primvar.values[a * width + component]
                    if interpolated != 0:
                        rest = w1[lane] * primvar.values[row_b[lane] * width + component]
                        mean = mean + rest + w2[lane] * primvar.values[row_c[lane] * width + component]
                    mean = wp.where(row_a[lane] == -1, missing, mean)
                    value[lane] = wp.where(row_a[lane] == -2, clear[component], mean)
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        out[(pixel + lane) * width + component] = value[lane]

    return primvar_at_hit


@functools.cache
def normals_kernel(lanes: int) -> wp.Kernel:
    """Shading normals: interpolated object-space normals turned into the world, the geometric normal where there is none."""
    LANES, BLOCKS = lanes, block_count(lanes)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def normals(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        instances: InstanceColumns,
        visibility: Visibility,
        geometric: wp.array[wp.vec3f],
        smooth: wp.array[wp.vec3f],  # object space, not unit; null where no mesh has normals
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
        view = views[run.view]
        for block in range(run.blocks):
            at = run.record + block * LANES
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            for lane in range(LANES):
                if lane >= low and lane < high:
                    i = visible_instance(visibility, at, lane, low, high)
                    n = geometric[pixel + lane]
                    if smooth:
                        own = smooth[pixel + lane]
                        turned = world_normal(instances.object_from_world[wp.max(i, 0)], own)
                        usable = wp.dot(own, own) > _SHORTEST
                        n = wp.vec3f(
                            wp.where(usable, turned[0], n[0]), wp.where(usable, turned[1], n[1]), wp.where(usable, turned[2], n[2])
                        )
                    if normal:
                        normal[pixel + lane] = wp.where(i >= 0, n, clear)
                    if normal_eye:
                        turned_eye = wp.vec3f(wp.dot(view.right, n), wp.dot(view.up, n), wp.dot(view.back, n))
                        normal_eye[pixel + lane] = wp.where(i >= 0, turned_eye, clear_eye)

    return normals
