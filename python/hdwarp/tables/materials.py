"""tables.materials: one device row a material: constants, textures, and the rank given out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import warp as wp

from hdwarp.stage.columns import Material
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import MaterialColumns
from hdwarp.tables.textures import TextureTable

_GREY = (0.18, 0.18, 0.18)  # UsdPreviewSurface's diffuseColor fallback


class MaterialTable:
    def __init__(self, device: wp.Device) -> None:
        types = {
            "diffuse_color": wp.vec3f,
            "uses_display_color": wp.int32,
            "emissive_color": wp.vec3f,
            "opacity": wp.float32,
            "opacity_threshold": wp.float32,
            "diffuse_texture": wp.int32,
            "emissive_texture": wp.int32,
            "opacity_texture": wp.int32,
            "material_id": wp.int32,
        }
        self._arrays = {name: GrowingArray(dtype, device) for name, dtype in types.items()}

    @property
    def columns(self) -> MaterialColumns:
        columns = MaterialColumns()
        for name, growing in self._arrays.items():
            setattr(columns, name, growing.array)
        return columns

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in self._arrays.values()]

    def restart(self) -> None:
        """Forget all, and let go of the memory."""
        for growing in self._arrays.values():
            growing.reset()

    def sync(self, materials: Mapping[int, Material], material_id: np.ndarray, rows: np.ndarray, textures: TextureTable) -> None:
        """Write ``rows`` (ascending) of ``materials`` (row -> record); ``material_id`` is the rank by row. Rows without record are left.
        ``textures`` holds theirs already."""
        rows = np.array([row for row in rows.tolist() if row in materials], np.int64)
        if not len(rows):
            return
        records = [materials[row] for row in rows]
        values = {
            "diffuse_color": [m.diffuse_color if m.diffuse_color is not None else _GREY for m in records],
            "uses_display_color": [m.diffuse_color is None or m.diffuse_texture is not None for m in records],
            "emissive_color": [m.emissive_color if m.emissive_texture is None else (0.0, 0.0, 0.0) for m in records],
            "opacity": [m.opacity for m in records],
            "opacity_threshold": [m.opacity_threshold for m in records],
            "diffuse_texture": [textures.row(m.diffuse_texture) for m in records],
            "emissive_texture": [textures.row(m.emissive_texture) for m in records],
            "opacity_texture": [textures.row(m.opacity_texture) for m in records],
            "material_id": material_id[rows],
        }
        for name, items in values.items():
            self._arrays[name].write_rows(rows, np.array(items))
