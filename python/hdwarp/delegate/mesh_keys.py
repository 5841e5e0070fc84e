"""delegate.mesh_keys: digests of meshes: equal keys, equal pictures. NumPy only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from hdwarp.stage.columns import MeshGeometry


def topology_key(mesh: MeshGeometry) -> bytes:
    """What a mesh's BVH may keep when its points move: triangles and the number of points."""
    if mesh.topology_key is None:
        head = f"{mesh.face_count}:{mesh.corner_count}:{len(mesh.points)}"
        mesh.topology_key = _digest(head, [mesh.triangle_corners, mesh.triangle_points, mesh.triangle_face, mesh.face_subset])
    return mesh.topology_key


def mesh_key(mesh: MeshGeometry) -> bytes:
    """Content of a mesh as a key."""
    if mesh.content_key is None:
        head, arrays = [topology_key(mesh).hex()], [mesh.points]
        for name, primvar in [("normals", mesh.normals), *sorted(mesh.primvars.items())]:
            if primvar is not None:
                head.append(f"{name}:{primvar.interpolation}")
                arrays += primvar.content()
        mesh.content_key = _digest(",".join(head), arrays)
    return mesh.content_key


def _digest(head: str, arrays: Iterable[np.ndarray | None]) -> bytes:
    digest = hashlib.blake2b(head.encode(), digest_size=16)
    for array in arrays:
        digest.update(b"-" if array is None else f"{array.dtype.char}{array.shape}".encode())
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.digest()
