"""aovs.ids: visibility record -> what a pixel sees, as the numbers given out. Misses get clear values."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import NO_INSTANCE, block_count, lane_options, pixel_run
from hdwarp.tables.structs import InstanceColumns, MaterialColumns, MeshColumns, ViewRow


@wp.struct
class IdPlanes:
    """Output arrays, flat over pixels; null where nobody asks."""

    prim_id: wp.array[wp.int32]
    instance_id: wp.array[wp.int32]
    element_id: wp.array[wp.int32]
    triangle_id: wp.array[wp.int32]
    material_id: wp.array[wp.int32]
    body_id: wp.array[wp.int32]
    instance_row: wp.array[wp.int32]
    world_id: wp.array[wp.int32]
    material_row: wp.array[wp.int32]  # for the shading that follows; -1 no material


@wp.struct
class IdClears:
    """What a pixel that sees nothing holds."""

    prim_id: wp.int32
    instance_id: wp.int32
    element_id: wp.int32
    triangle_id: wp.int32
    material_id: wp.int32
    body_id: wp.int32
    instance_row: wp.int32
    world_id: wp.int32


@functools.cache
def ids_kernel(lanes: int) -> wp.Kernel:
    """What each pixel sees, as the numbers given out, for runs of ``lanes`` pixels."""
    LANES, BLOCKS = lanes, block_count(lanes)
    ints = wp.types.vector(length=lanes, dtype=wp.int32)

    @wp.kernel(enable_backward=False, module="unique", module_options=lane_options(lanes))
    def ids(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        jobs: wp.int32,
        rows: wp.int32,
        meshes: MeshColumns,
        instances: InstanceColumns,
        materials: MaterialColumns,
        slots: wp.array[ints],  # the visibility record, a block an item
        seen_instances: wp.array[ints],
        clear: IdClears,
        out: IdPlanes,
    ):
        job = first + wp.tid() * step
        if job >= count:
            return
        run = pixel_run(views, job, LANES, BLOCKS, jobs, rows)
        if run.blocks == 0:
            return
        row = ints()  # instance, 0 for a miss, so that every lane may read
        hit = ints()
        value = ints()
        mesh = ints()  # -1 shapes and misses
        triangle = ints()
        start = ints()  # of the mesh's triangles
        material = ints()
        for block in range(run.blocks):
            item = run.record // LANES + block
            pixel = run.output + block * LANES
            low = wp.max(run.left - run.x - block * LANES, 0)
            high = wp.min(run.right - run.x - block * LANES, LANES)
            found = seen_instances[item]
            slot = slots[item]
            lowest, highest = wp.int32(NO_INSTANCE), wp.int32(-1)
            for lane in range(LANES):
                i = wp.where(lane >= low and lane < high, found[lane], -1)
                row[lane] = wp.max(i, 0)
                hit[lane] = wp.where(i >= 0, 1, 0)
                highest = wp.max(highest, i)
                lowest = wp.min(lowest, wp.where(i < 0, NO_INSTANCE, i))
            if out.prim_id:
                if lowest == highest:
                    shared = instances.prim_id[highest]
                    for lane in range(LANES):
                        value[lane] = wp.where(hit[lane] != 0, shared, clear.prim_id)
                else:
                    for lane in range(LANES):
                        value[lane] = wp.where(hit[lane] != 0, instances.prim_id[row[lane]], clear.prim_id)
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        out.prim_id[pixel + lane] = value[lane]
            if out.instance_id:
                if lowest == highest:
                    shared = instances.instance_id[highest]
                    for lane in range(LANES):
                        value[lane] = wp.where(hit[lane] != 0, shared, clear.instance_id)
                else:
                    for lane in range(LANES):
                        value[lane] = wp.where(hit[lane] != 0, instances.instance_id[row[lane]], clear.instance_id)
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        out.instance_id[pixel + lane] = value[lane]
            if out.body_id:
                if lowest == highest:
                    shared = instances.body_id[highest]
                    for lane in range(LANES):
                        value[lane] = wp.where(hit[lane] != 0, shared, clear.body_id)
                else:
                    for lane in range(LANES):
                        value[lane] = wp.where(hit[lane] != 0, instances.body_id[row[lane]], clear.body_id)
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        out.body_id[pixel + lane] = value[lane]
            if out.world_id:
                if lowest == highest:
                    shared = instances.world[highest]
                    for lane in range(LANES):
                        value[lane] = wp.where(hit[lane] != 0, shared, clear.world_id)
                else:
                    for lane in range(LANES):
                        value[lane] = wp.where(hit[lane] != 0, instances.world[row[lane]], clear.world_id)
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        out.world_id[pixel + lane] = value[lane]
            if out.instance_row:
                for lane in range(LANES):
                    value[lane] = wp.where(hit[lane] != 0, row[lane], clear.instance_row)
                for lane in range(LANES):
                    if lane >= low and lane < high:
                        out.instance_row[pixel + lane] = value[lane]
            if out.element_id or out.triangle_id or out.material_id or out.material_row:
                subsets = wp.int32(0)
                if lowest == highest:
                    shared_mesh = instances.geometry[highest]
                    shared_start = meshes.triangle_start[wp.max(shared_mesh, 0)]
                    if shared_mesh >= 0:
                        subsets = meshes.has_subsets[shared_mesh]
                    for lane in range(LANES):
                        mesh[lane] = wp.where(hit[lane] != 0, shared_mesh, -1)
                        start[lane] = shared_start
                else:
                    for lane in range(LANES):
                        m = wp.where(hit[lane] != 0, instances.geometry[row[lane]], -1)
                        mesh[lane] = m
                        start[lane] = meshes.triangle_start[wp.max(m, 0)]
                        subsets = subsets | wp.where(m >= 0, meshes.has_subsets[wp.max(m, 0)], 0)
                for lane in range(LANES):
                    triangle[lane] = meshes.slot_triangle[wp.where(mesh[lane] >= 0, slot[lane], 0)]
                if out.triangle_id:
                    for lane in range(LANES):
                        own = wp.where(mesh[lane] >= 0, triangle[lane], -1)
                        value[lane] = wp.where(hit[lane] != 0, own, clear.triangle_id)
                    for lane in range(LANES):
                        if lane >= low and lane < high:
                            out.triangle_id[pixel + lane] = value[lane]
                if out.element_id:
                    for lane in range(LANES):
                        face = meshes.triangle_face[wp.where(mesh[lane] >= 0, start[lane] + triangle[lane], 0)]
                        value[lane] = wp.where(hit[lane] != 0, wp.where(mesh[lane] >= 0, face, 0), clear.element_id)
                    for lane in range(LANES):
                        if lane >= low and lane < high:
                            out.element_id[pixel + lane] = value[lane]
                if out.material_id or out.material_row:
                    for lane in range(LANES):
                        material[lane] = wp.where(hit[lane] != 0, instances.material[row[lane]], -1)
                    if subsets != 0:
                        for lane in range(LANES):
                            m = mesh[lane]
                            if m >= 0:
                                if meshes.has_subsets[m] != 0:
                                    face = meshes.triangle_face[meshes.triangle_start[m] + triangle[lane]]
                                    subset = meshes.face_subset[meshes.face_start[m] + face]
                                    if subset >= 0:
                                        bound = instances.subset_material[instances.subset_start[row[lane]] + subset]
                                        if bound >= 0:
                                            material[lane] = bound
                    if out.material_row:
                        for lane in range(LANES):
                            if lane >= low and lane < high:
                                out.material_row[pixel + lane] = material[lane]
                    if out.material_id:
                        for lane in range(LANES):
                            own = wp.where(material[lane] >= 0, materials.material_id[wp.max(material[lane], 0)], -1)
                            value[lane] = wp.where(hit[lane] != 0, own, clear.material_id)
                        for lane in range(LANES):
                            if lane >= low and lane < high:
                                out.material_id[pixel + lane] = value[lane]

    return ids
