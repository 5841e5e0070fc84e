"""aovs.ids: visibility record -> what a pixel sees, as the numbers given out. Misses get clear values."""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.aovs.pixel_runs import NO_INSTANCE, block_count, lane_options, pixel_run, store_scalars
from hdwarp.tables.structs import MESH, InstanceColumns, MaterialColumns, MeshColumns, ViewRow


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

    @wp.func
    def of_instances(column: wp.array[wp.int32], row: ints, lowest: wp.int32, highest: wp.int32, clear: wp.int32) -> ints:
        """Numbers of rows: one load where all lanes that see something see the same row."""
        value = ints()
        if lowest == highest:
            shared = column[highest]
            for lane in range(LANES):
                value[lane] = wp.where(row[lane] >= 0, shared, clear)
        else:
            for lane in range(LANES):
                value[lane] = wp.where(row[lane] >= 0, column[wp.max(row[lane], 0)], clear)
        return value

    @wp.func
    def store_clears(clear: IdClears, low: wp.int32, high: wp.int32, pixel: wp.int32, out: IdPlanes):
        """A block in which no pixel sees anything."""
        if out.prim_id:
            store_scalars(ints(clear.prim_id), low, high, pixel, out.prim_id)
        if out.instance_id:
            store_scalars(ints(clear.instance_id), low, high, pixel, out.instance_id)
        if out.element_id:
            store_scalars(ints(clear.element_id), low, high, pixel, out.element_id)
        if out.triangle_id:
            store_scalars(ints(clear.triangle_id), low, high, pixel, out.triangle_id)
        if out.material_id:
            store_scalars(ints(clear.material_id), low, high, pixel, out.material_id)
        if out.body_id:
            store_scalars(ints(clear.body_id), low, high, pixel, out.body_id)
        if out.instance_row:
            store_scalars(ints(clear.instance_row), low, high, pixel, out.instance_row)
        if out.world_id:
            store_scalars(ints(clear.world_id), low, high, pixel, out.world_id)
        if out.material_row:
            store_scalars(ints(-1), low, high, pixel, out.material_row)

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
        row = ints()  # instance, -1 for a miss
        source = ints()  # its source
        value = ints()
        triangle = ints()
        start = ints()  # of the mesh's triangles
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
                store_clears(clear, low, high, pixel, out)
                continue
            source = of_instances(instances.source, row, lowest, highest, -1)
            seen = instances.source[highest]
            other = wp.where(lowest == highest, seen, -1)  # than `seen`: as `lowest` and `highest`, of sources
            if out.prim_id:
                store_scalars(of_instances(instances.prim_id, source, other, seen, clear.prim_id), low, high, pixel, out.prim_id)
            if out.instance_id:
                value = of_instances(instances.instance_id, source, other, seen, clear.instance_id)
                store_scalars(value, low, high, pixel, out.instance_id)
            if out.body_id:
                store_scalars(of_instances(instances.body, source, other, seen, clear.body_id), low, high, pixel, out.body_id)
            if out.world_id:
                store_scalars(of_instances(instances.world, row, lowest, highest, clear.world_id), low, high, pixel, out.world_id)
            if out.instance_row:
                for lane in range(LANES):
                    value[lane] = wp.where(row[lane] >= 0, row[lane], clear.instance_row)
                store_scalars(value, low, high, pixel, out.instance_row)
            if out.element_id or out.triangle_id or out.material_id or out.material_row:
                subsets = wp.int32(0)
                slot = slots[item]
                mesh = of_instances(instances.geometry, source, other, seen, -1)
                if lowest == highest:
                    shared_mesh = wp.max(instances.geometry[seen], 0)
                    start = ints(meshes.triangle_start[shared_mesh])
                    if instances.geometry[seen] >= 0:
                        subsets = meshes.has_subsets[shared_mesh]
                else:
                    for lane in range(LANES):
                        m = wp.max(mesh[lane], 0)
                        start[lane] = meshes.triangle_start[m]
                        subsets = subsets | wp.where(mesh[lane] >= 0, meshes.has_subsets[m], 0)
                for lane in range(LANES):
                    triangle[lane] = meshes.slot_triangle[wp.where(mesh[lane] >= 0, slot[lane], 0)]
                if out.triangle_id:
                    kind = of_instances(instances.kind, source, other, seen, -1)
                    for lane in range(LANES):
                        own = wp.where(mesh[lane] >= 0 and kind[lane] == MESH, triangle[lane], -1)
                        value[lane] = wp.where(row[lane] >= 0, own, clear.triangle_id)
                    store_scalars(value, low, high, pixel, out.triangle_id)
                if out.element_id:
                    for lane in range(LANES):
                        face = meshes.triangle_face[wp.where(mesh[lane] >= 0, start[lane] + triangle[lane], 0)]
                        value[lane] = wp.where(row[lane] >= 0, wp.where(mesh[lane] >= 0, face, 0), clear.element_id)
                    store_scalars(value, low, high, pixel, out.element_id)
                if out.material_id or out.material_row:
                    material = of_instances(instances.material, source, other, seen, -1)
                    if subsets != 0:
                        for lane in range(LANES):
                            m = mesh[lane]
                            if m >= 0:
                                if meshes.has_subsets[m] != 0:
                                    face = meshes.triangle_face[meshes.triangle_start[m] + triangle[lane]]
                                    subset = meshes.face_subset[meshes.face_start[m] + face]
                                    if subset >= 0:
                                        bound = instances.subset_material[instances.subset_start[source[lane]] + subset]
                                        if bound >= 0:
                                            material[lane] = bound
                    if out.material_row:
                        store_scalars(material, low, high, pixel, out.material_row)
                    if out.material_id:
                        for lane in range(LANES):
                            own = wp.where(material[lane] >= 0, materials.material_id[wp.max(material[lane], 0)], -1)
                            value[lane] = wp.where(row[lane] >= 0, own, clear.material_id)
                        store_scalars(value, low, high, pixel, out.material_id)

    return ids
