"""shade.cutout: which surfaces a pixel looks through: cut-out opacity. Visibility record -> marks for the trace of what lies behind.

Opacities are constants of materials, or come from textures: what textures are laid by is resolved before each layer is looked at.
"""

from __future__ import annotations

import functools

import warp as wp

from hdwarp.launch import launch
from hdwarp.shade.textures import value_at
from hdwarp.tables.structs import (
    INPUT_COUNT,
    OPACITY_INPUT,
    InstanceColumns,
    MaterialColumns,
    MeshColumns,
    Peel,
    TextureColumns,
    ViewRow,
    Visibility,
)
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


@functools.cache
def mark_kernel(textured: bool) -> wp.Kernel:
    """Mark what is cut away. ``textured``: opacities may come from textures."""
    TEXTURED = textured
    options = {"max_unroll": 0} if textured else {}  # 128 copies of a look-up would be minutes of compiling

    @wp.kernel(enable_backward=False, module="unique", module_options=options)
    def mark_cutouts(
        first: wp.int32,
        step: wp.int32,
        count: wp.int32,
        views: wp.array[ViewRow],
        view_count: wp.int32,
        meshes: MeshColumns,
        instances: InstanceColumns,
        materials: MaterialColumns,
        textures: TextureColumns,
        st: wp.array[wp.vec2f],  # where on a texture pixels are: a plane of ``pixel_count`` a set of coordinates, laid out as outputs
        values: wp.array[wp.vec4f],  # primvars that are shown themselves, laid out alike
        pixel_count: wp.int32,
        record: Visibility,
        layer: wp.int32,
        out: Peel,
    ):
        """Mark the pixels of a tile that see a surface which is cut away. Later layers look only at tiles that were marked."""
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
        tile_y = tile // tiles_x
        base = views[view].record + tile_y * 128 * tiles_x + (tile - tile_y * tiles_x) * 16
        if TEXTURED:  # of the tile's first pixel: where it is in the image
            left = 16 * (views[view].tile_x0 + tile - tile_y * tiles_x) - views[view].x0
            top = 8 * (views[view].tile_y0 + tile_y) - views[view].y0
        found = wp.int32(0)
        for y in range(8):
            for x in range(16):
                pixel = base + y * 16 * tiles_x + x
                row = record.instance[pixel]
                mark = wp.int32(0)
                if row >= 0:
                    material = material_of(meshes, instances, row, record.slot[pixel])
                    if material >= 0:
                        threshold = materials.opacity_threshold[material]
                        if threshold > 0.0:
                            opacity = materials.opacity[material]
                            if TEXTURED:
                                texture = materials.texture[INPUT_COUNT * material + OPACITY_INPUT]
                                if texture >= 0:
                                    opacity = 1.0
                                    column, line = left + x, top + y
                                    if column >= 0 and column < views[view].width and line >= 0 and line < views[view].height:
                                        at = views[view].output + line * views[view].width + column
                                        opacity = value_at(textures, texture, st, values, pixel_count, at)[0]
                            if opacity < threshold:
                                mark = 1
                out.pixels[pixel] = mark
                found |= mark
        out.tiles[job] = found

    return mark_cutouts


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
    textures: TextureColumns | None = None,
    st: wp.array | None = None,
    values: wp.array | None = None,
    pixel_count: int = 0,
) -> None:
    """Mark in ``out`` the pixels whose visible surface is cut away. ``layer``: 0 for the first trace; later ones look only at the tiles
    that ``out`` has marked. ``textures``: where opacities come from textures, with ``st``: (sets * pixel_count,) vec2f, coordinates of the
    surfaces of this layer, a plane a set, laid out as outputs are, and ``values``: vec4f, primvars shown themselves, likewise. Device work
    only."""
    inputs = [views, view_count, meshes, instances, materials, textures or TextureColumns(), st, values, pixel_count, record, layer]
    launch(mark_kernel(textures is not None), tile_count, inputs, [out], device=device, grain=256)
