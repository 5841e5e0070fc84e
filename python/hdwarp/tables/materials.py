"""tables.materials: one device row a material: constants, textures, and the rank given out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import warp as wp

from hdwarp.stage.looks import MATERIAL_INPUTS, OPACITY_MODES, Material
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import MaterialColumns
from hdwarp.tables.textures import TextureTable

_GREY = (0.18, 0.18, 0.18)  # UsdPreviewSurface's diffuseColor fallback


# Columns that are fields of Material.
_AS_GIVEN = dict.fromkeys(
    ("metallic", "roughness", "clearcoat", "clearcoat_roughness", "opacity", "opacity_threshold", "ior", "occlusion"), wp.float32
) | {"specular_color": wp.vec3f, "use_specular_workflow": wp.int32}
_OTHERS = {"diffuse_color": wp.vec3f, "emissive_color": wp.vec3f} | dict.fromkeys(
    ("uses_display_color", "opacity_mode", "textured", "texture", "material_id"), wp.int32
)


class MaterialTable:
    def __init__(self, device: wp.Device) -> None:
        self._arrays = {name: GrowingArray(dtype, device) for name, dtype in (_AS_GIVEN | _OTHERS).items()}

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
        values = {name: [getattr(m, name) for m in records] for name in _AS_GIVEN} | {
            "diffuse_color": [m.diffuse_color if m.diffuse_color is not None else _GREY for m in records],
            "uses_display_color": [m.diffuse_color is None or "diffuseColor" in m.textures for m in records],
            "emissive_color": [m.emissive_color if "emissiveColor" not in m.textures else (0.0, 0.0, 0.0) for m in records],
            "opacity_mode": [OPACITY_MODES.index(m.opacity_mode) for m in records],
            "textured": [sum(1 << k for k, name in enumerate(MATERIAL_INPUTS) if name in m.textures) for m in records],
            "material_id": material_id[rows],
        }
        for name, items in values.items():
            self._arrays[name].write_rows(rows, np.array(items))
        of_inputs = np.array([[textures.row(m.textures.get(name)) for name in MATERIAL_INPUTS] for m in records])
        count = len(MATERIAL_INPUTS)
        self._arrays["texture"].write_rows((rows[:, None] * count + np.arange(count)).ravel(), of_inputs.ravel())
