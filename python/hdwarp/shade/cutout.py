"""shade.cutout: which surfaces a pixel looks through: cut-out opacity. Visibility record -> marks for the trace of what lies behind.

`opacity_of` is where a material's opacity at a hit is evaluated; what it needs beyond constants (weights, st, textures) belongs here.
"""

from __future__ import annotations

import warp as wp

from hdwarp.launch import launch
from hdwarp.tables.structs import InstanceColumns, MaterialColumns, MeshColumns, Peel, ViewRow, Visibility
from hdwarp.trace.jobs import find_view

MAX_LAYERS = 32
"""Cut-away surfaces that one pixel looks through. Behind as many, the next one is drawn, cut away or not."""


@wp.func
def material_of(meshes: MeshColumns, instances: InstanceColumns, row: wp.int32, slot: wp.int32) -> wp.int32:
    """Material row of a hit, -1 none: that of the subset its face is in, else the instance's own."""
    source = instances.source[row]
    material = instances.material[source]
    mesh = instances.geometry[source]
    if mesh >= 0:
        if meshes.has_subsets[mesh] != 0:
            face = meshes.triangle_face[meshes.triangle_start[mesh] + meshes.slot_triangle[slot]]
            subset = meshes.face_subset[meshes.face_start[mesh] + face]
            if subset >= 0:
                bound = instances.subset_material[instances.subset_start[source] + subset]
                if bound >= 0:
                    material = bound
    return material


@wp.func
def opacity_of(materials: MaterialColumns, material: wp.int32) -> wp.float32:
    """Opacity of a surface where it is seen."""
    return materials.opacity[material]


@wp.func
def is_cut_away(materials: MaterialColumns, material: wp.int32) -> wp.bool:
    """Whether a surface is not there where it is seen."""
    threshold = materials.opacity_threshold[material]
    return threshold > 0.0 and opacity_of(materials, material) < threshold


@wp.kernel(enable_backward=False, module="unique")
def _mark_cutouts(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    views: wp.array[ViewRow],
    view_count: wp.int32,
    meshes: MeshColumns,
    instances: InstanceColumns,
    materials: MaterialColumns,
    record: Visibility,
    layer: wp.int32,
    out: Peel,
):
    """Mark the pixels of a tile that see a surface which is cut away. After the first layer only tiles that were marked can be again."""
    job = first + wp.tid() * step
    if job >= count:
        return
    if layer > 0 and out.tiles[job] == 0:
        return
    out.tiles[job] = 0
    view = find_view(views, view_count, job)
    tile = job - views[view].first_tile
    tiles_x = views[view].tiles_x
    if views[view].masked != 0 or tile >= tiles_x * views[view].tiles_y:
        return
    base = views[view].record + (tile // tiles_x) * 128 * tiles_x + (tile % tiles_x) * 16
    found = wp.int32(0)
    for y in range(8):
        for x in range(16):
            pixel = base + y * 16 * tiles_x + x
            row = record.instance[pixel]
            mark = wp.int32(0)
            if row >= 0:
                material = material_of(meshes, instances, row, record.slot[pixel])
                if material >= 0 and is_cut_away(materials, material):
                    mark = 1
            out.pixels[pixel] = mark
            found |= mark
    out.tiles[job] = found


def mark_cutouts(
    views: wp.array,
    view_count: int,
    tile_count: int,
    meshes: MeshColumns,
    instances: InstanceColumns,
    materials: MaterialColumns,
    record: Visibility,
    out: Peel,
    *,
    layer: int,
    device: wp.Device | str,
) -> None:
    """Mark in ``out`` the pixels whose visible surface is cut away. ``layer``: 0 for the first trace; later ones look only at the tiles
    that ``out`` has marked. Device work only."""
    inputs = [views, view_count, meshes, instances, materials, record, layer]
    launch(_mark_cutouts, tile_count, inputs, [out], device=device, grain=256)
