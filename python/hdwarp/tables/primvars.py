"""tables.primvars: one primvar name over all meshes and instances, made when an AOV or the shading asks for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.stage.columns import GprimKey, Primvar
from hdwarp.tables.structs import BEZIER, FACE_VARYING, UNIFORM, VERTEX, PrimvarColumns

_INTERPOLATION = {
    "uniform": int(UNIFORM),
    "vertex": int(VERTEX),
    "faceVarying": int(FACE_VARYING),
    "bezier": int(BEZIER),
}


@dataclass(slots=True, eq=False)
class BuiltPrimvar:
    """Columns, and the first row in ``values`` of each mesh (mesh rows,) and of each gprim that has values which do not vary."""

    columns: PrimvarColumns
    of_mesh: np.ndarray
    of_gprim: dict[GprimKey, int]
    is_bare: bool  # nothing has such a primvar


def primvar_names(index: RenderIndex) -> list[str]:
    """Names of all primvars in the scene, sorted."""
    names: set[str] = set()
    for mesh in index.meshes.values():
        names.update(mesh.primvars)
    for gprim in index.gprims.values():
        names.update(gprim.constants, gprim.instance_primvars)
    return sorted(names)


def build_primvar(index: RenderIndex, name: str, device: wp.Device, *, width: int | None = None) -> BuiltPrimvar:
    """Device columns of primvar ``name``; ``"normals"`` gives the shading normals of meshes. ``width``: components, the widest by default.

    What varies over a mesh wins over what is constant on the prim, as a prim's own primvar wins over an inherited one.
    """
    of_mesh = {row: (mesh.normals if name == "normals" else mesh.primvars.get(name)) for row, mesh in index.meshes.items()}
    of_mesh = {row: primvar for row, primvar in of_mesh.items() if primvar is not None}
    of_gprim = _instance_values(index, name) if name != "normals" else {}
    widths = [primvar.values.shape[1] for primvar in of_mesh.values()] + [values.shape[1] for values in of_gprim.values()]
    width = width or max(widths, default=1)
    values, indices = [], []
    value_count = index_count = 0
    mesh_rows = max(index.meshes, default=0) + 1
    interpolation, first_value, first_index = np.zeros(mesh_rows, np.int32), np.zeros(mesh_rows, np.int32), np.full(mesh_rows, -1, np.int32)
    for row, primvar in of_mesh.items():
        interpolation[row] = _INTERPOLATION[primvar.interpolation]
        first_value[row] = value_count
        values.append(_widened(primvar, width))
        value_count += len(primvar.values)
        if primvar.indices is not None:
            first_index[row] = index_count
            indices.append(primvar.indices)
            index_count += len(primvar.indices)
    instance_value = np.full(max(index.instances.capacity, 1), -1, np.int32)
    gprim_value = {}
    for key, rows_values in of_gprim.items():
        start, count = index.gprim_rows.run(key)
        gprim_value[key] = value_count
        step = 0 if len(rows_values) == 1 else 1  # one value for all instances of the prim, or one each
        instance_value[start : start + count] = value_count + step * np.arange(count)
        values.append(_padded(rows_values, width))
        value_count += len(rows_values)
    columns = PrimvarColumns()
    columns.width = width
    columns.values = _upload(values, wp.float32, device, np.float32)
    columns.indices = _upload(indices, wp.int32, device, np.int32)
    columns.mesh_interpolation = wp.array(interpolation, dtype=wp.int32, device=device)
    columns.mesh_values = wp.array(first_value, dtype=wp.int32, device=device)
    columns.mesh_indices = wp.array(first_index, dtype=wp.int32, device=device)
    columns.instance_values = wp.array(instance_value, dtype=wp.int32, device=device)
    return BuiltPrimvar(columns, first_value, gprim_value, not of_mesh and not of_gprim)


def _instance_values(index: RenderIndex, name: str) -> dict:
    """Gprim key -> (1 or n, k) values that do not vary over the surface; an instancer's own win over the prim's constant."""
    found = {}
    for key, gprim in index.gprims.items():
        values = gprim.instance_primvars.get(name)
        if values is None and name in gprim.constants:
            values = np.asarray(gprim.constants[name]).reshape(1, -1)
        if values is not None:
            found[key] = values
    return found


def _padded(values: np.ndarray, width: int) -> np.ndarray:
    padded = np.zeros((len(values), width), np.float32)
    used = min(width, values.shape[1])
    padded[:, :used] = values[:, :used]
    return padded


def _widened(primvar: Primvar, width: int) -> np.ndarray:
    return primvar.values if primvar.values.shape[1] == width else _padded(primvar.values, width)


def _upload(parts: list[np.ndarray], dtype: type, device: wp.Device, numpy_dtype: type) -> wp.array:
    parts = [np.ascontiguousarray(part, numpy_dtype).ravel() for part in parts if len(part)]
    flat = np.concatenate(parts) if parts else np.zeros(4, numpy_dtype)  # a row of any width: kernels read row 0 where there is none
    return wp.array(flat, dtype=dtype, device=device)
