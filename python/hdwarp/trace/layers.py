"""trace.layers: looking behind what a record holds: its pixels give a bound, and only what lies strictly behind it is found.

What lies on a ray has one order: the nearer key first; of equal keys the lower instance rank, then the lower triangle (ball, piece
of a curve). A trace finds the first surface in this order behind each pixel's bound, so that repeated traces give every layer once,
coincident ones too.
"""

from __future__ import annotations

import warp as wp

from hdwarp.tables.structs import TILE_HEIGHT, TILE_WIDTH, InstanceColumns, MeshColumns, Peel, ViewRow, Visibility, vec16f
from hdwarp.trace.pixels import BLOCKS, vec16i

NOTHING = wp.constant(-3.0e38)  # a near end that nothing is behind

_LOAD = """
    for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 4; ++x)
            for (int i = 0; i < 4; ++i)
                blocks.data[(y >> 2) * 4 + x].c[4 * (y & 3) + i] = out.data[base + y * pitch + 4 * x + i];
"""


@wp.func_native(_LOAD)
def load_ints(blocks: wp.array[vec16i], base: wp.int32, pitch: wp.int32, out: wp.array[wp.int32]):
    """A tile of the record, row by row: the reverse of `pixels.store_ints`."""


@wp.func_native(_LOAD)
def load_floats(blocks: wp.array[vec16f], base: wp.int32, pitch: wp.int32, out: wp.array[wp.float32]): ...


@wp.func
def look_behind(
    view: ViewRow,
    tile: wp.int32,
    peel: Peel,
    meshes: MeshColumns,
    instances: InstanceColumns,
    record: Visibility,
    marks: wp.array[vec16i],
    seen: wp.array[vec16f],
    near_keys: wp.array[vec16f],
    keys: wp.array[vec16f],
    slots: wp.array[vec16i],
    owners: wp.array[vec16i],
    behind_ranks: wp.array[vec16i],
    behind_triangles: wp.array[vec16i],
):
    """Marked pixels may see what is behind the record, up to its own key; there ``behind_ranks`` and ``behind_triangles`` settle which
    surfaces are behind it (rank -1: all). The others keep what they hold: nothing is near enough for them. ``marks``, ``seen``: scratch."""
    pitch = TILE_WIDTH * view.tiles_x
    base = view.record + (tile // view.tiles_x) * TILE_HEIGHT * pitch + (tile % view.tiles_x) * TILE_WIDTH
    load_ints(marks, base, pitch, peel.pixels)
    load_ints(slots, base, pitch, record.slot)
    load_ints(owners, base, pitch, record.instance)
    load_floats(seen, base, pitch, record.key)
    for block in range(BLOCKS):
        for p in range(16):
            owner = owners[block][p]
            key = seen[block][p]
            behind_ranks[block][p] = -1
            if marks[block][p] != 0 and owner >= 0:
                if key <= near_keys[block][p]:
                    near_keys[block][p] = key
                    source = instances.source[owner]
                    behind_ranks[block][p] = instances.rank[source]
                    behind_triangles[block][p] = 0
                    if instances.geometry[source] >= 0:
                        behind_triangles[block][p] = meshes.slot_triangle[slots[block][p]]
                slots[block][p] = -1
                owners[block][p] = -1
            else:
                near_keys[block][p] = NOTHING
                keys[block][p] = key


@wp.func
def is_seen_already(
    key: wp.float32, bound: wp.float32, rank: wp.int32, triangle: wp.int32, behind_rank: wp.int32, behind_triangle: wp.int32
) -> wp.bool:
    """Whether a surface as near as the bound is the bound itself or comes before it."""
    return key == bound and (rank < behind_rank or (rank == behind_rank and triangle <= behind_triangle))
