"""stage.tets: TetMesh prims -> RawMesh of the triangles of their surface."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from pxr import Usd, UsdGeom

from hdwarp.errors import Diagnostics
from hdwarp.stage import primvars
from hdwarp.stage.columns import Primvar
from hdwarp.stage.meshes import NO_SUBSETS, RawMesh, is_left_handed, read_over_faces, read_points, refuse_beyond_int32
from hdwarp.stage.subsets import Subsets, read_subsets

_CORNERS = np.array(((1, 2, 3), (0, 3, 2), (0, 1, 3), (0, 2, 1)))  # of the faces of a tetrahedron
_TETS, _FACES = "tetVertexIndices", "surfaceFaceVertexIndices"


def read_tets(
    prim: Usd.Prim,
    names: Collection[str],
    varying: Sequence[tuple[str, str]],
    subset_prims: Sequence[Usd.Prim],
    inherited_normals: np.ndarray | None,
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
) -> tuple[RawMesh, Subsets] | None:
    """The surface of a TetMesh; as `meshes.read_mesh`, which see for the arguments.

    Faces are those of surfaceFaceVertexIndices, else what UsdGeom.TetMesh.ComputeSurfaceFaces gives. USD does not say what "uniform" is on
    a TetMesh: here, as in Hydra, a value a surface face, which is also what its face subsets count; as many values as there are
    tetrahedra are taken to be theirs, and each face shows the value of the one that has it.
    """
    points = read_points(prim, names, time)
    tets, faces = _rows(prim, _TETS, names, time, 4), _rows(prim, _FACES, names, time, 3)
    wrong = [value for value in (points, tets, faces) if isinstance(value, str)]
    if wrong:
        diagnostics.error(path, "wrong-type", f"{'; '.join(wrong)}; the mesh is skipped. Author the types of the TetMesh schema")
        return None
    if points is None or not len(points) or not (len(faces) or len(tets)):
        if (points is None or not len(points)) and not (len(faces) or len(tets)):
            diagnostics.note(path, "empty-mesh", "the tetrahedral mesh is empty at this time; nothing is drawn for it")
        else:
            lacking = f"{_FACES} and {_TETS}" if points is not None and len(points) else "points"
            diagnostics.error(path, "missing-topology", f"{lacking} have no values; the mesh is skipped. Author {lacking}")
        return None
    is_computed = not len(faces)
    if is_computed:
        tets = _sound_tets(tets, len(points), path, diagnostics)
        faces = _surface(prim, tets, time)
        if not len(faces):
            diagnostics.warning(path, "no-faces", "no face is of one tetrahedron alone: there is no surface to draw. Mend tetVertexIndices")
            return None
    counts, indices = np.full(len(faces), 3, np.int32), faces.reshape(-1)
    if refuse_beyond_int32({"points": points, _FACES: indices}, path, diagnostics):
        return None
    expected = {"uniform": len(faces), "vertex": len(points), "varying": len(points), "faceVarying": len(indices)}
    by_tet = {} if len(tets) in (0, len(faces)) else _by_tet(prim, varying, tets, faces, time, path, diagnostics)
    rest = [item for item in varying if item[0][len(primvars.PREFIX) :] not in by_tet]
    kept, normals = read_over_faces(prim, names, rest, inherited_normals, expected, "none", time, path, diagnostics)
    kept = {name: primvar for name, primvar in {**kept, **by_tet}.items() if primvar is not None}
    subsets = read_subsets(subset_prims, len(faces), time, path, diagnostics) if subset_prims else NO_SUBSETS
    left_handed = is_left_handed(prim, names, time)
    raw = RawMesh(points, counts, indices, None, left_handed, "none", normals, kept, subsets.face_subset, [])
    raw.indices_name = _TETS if is_computed else _FACES
    return raw, subsets


def _rows(prim: Usd.Prim, name: str, names: Collection[str], time: Usd.TimeCode, width: int) -> np.ndarray | str:
    """(n, width) int32, n = 0 where it has no value; str: what is wrong with it."""
    value = prim.GetAttribute(name).Get(time) if name in names else None
    if value is None:
        return np.zeros((0, width), np.int32)
    array = np.asarray(value)
    if array.size == 0 and type(value).__name__.endswith("Array"):
        return np.zeros((0, width), np.int32)
    if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "iu":
        return f"{name} holds {type(value).__name__}"
    return array.astype(np.int32)


def _sound_tets(tets: np.ndarray, point_count: int, path: str, diagnostics: Diagnostics) -> np.ndarray:
    """Those whose points are there and are four different ones: another could take the face of a neighbour out of the surface."""
    ordered = np.sort(tets, axis=1)
    outside = (ordered[:, 0] < 0) | (ordered[:, 3] >= point_count)
    if outside.any():
        message = f"{int(outside.sum())} of {len(tets)} tetrahedra use {_TETS} outside 0..{point_count - 1}; they are left out"
        diagnostics.error(path, "index-range", f"{message}. Mend the values")
    flat = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1) & ~outside
    if flat.any():
        message = f"{int(flat.sum())} of {len(tets)} tetrahedra name a point twice; they are left out"
        diagnostics.warning(path, "degenerate-faces", message)
    bad = outside | flat
    return tets[~bad] if bad.any() else tets


def _surface(prim: Usd.Prim, tets: np.ndarray, time: Usd.TimeCode) -> np.ndarray:
    """(F, 3) int32: what USD computes, or the same of what is left of the tetrahedra."""
    authored = prim.GetAttribute(_TETS).Get(time)
    if len(authored) == len(tets) and prim.IsA(UsdGeom.TetMesh):
        return np.asarray(UsdGeom.TetMesh.ComputeSurfaceFaces(UsdGeom.TetMesh(prim), time), np.int32).reshape(-1, 3)
    triangles = tets[:, _CORNERS].reshape(-1, 3)
    _, first, number = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True, return_counts=True)
    once = triangles[first[number == 1]]
    return once[np.lexsort(once.T[::-1])]


def _by_tet(prim, varying, tets: np.ndarray, faces: np.ndarray, time, path: str, diagnostics: Diagnostics) -> dict[str, Primvar | None]:
    """Uniform primvars with a value a tetrahedron, on the surface faces. None: it cannot be put there, which a diagnostic says."""
    found: dict[str, Primvar | None] = {}
    tet_of_face = None
    for name, interpolated in varying:
        if interpolated != "uniform" or name == "primvars:normals" or primvars.item_count(prim, name, time) != len(tets):
            continue
        if tet_of_face is None:
            tet_of_face = _tets_of(tets, faces)
        short = name[len(primvars.PREFIX) :]
        found[short] = None
        if (tet_of_face < 0).any():
            lost = int((tet_of_face < 0).sum())
            message = f"{name} has a value a tetrahedron, and {lost} surface faces are of none; the primvar is left out"
            diagnostics.warning(path, "primvar-count", f"{message}. Author one value a surface face")
            continue
        primvar = primvars.read_varying(prim, name, interpolated, time, {"uniform": len(tets)}, path, diagnostics)
        if primvar is not None:
            indices = tet_of_face if primvar.indices is None else primvar.indices[tet_of_face]
            found[short] = Primvar("uniform", primvar.values, indices)
    return found


def _tets_of(tets: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(F,) int32: the tetrahedron that has a face, the first of two; -1: none has it."""
    triangles = np.sort(tets[:, _CORNERS].reshape(-1, 3), axis=1)
    both = np.concatenate((triangles, np.sort(faces, axis=1)))
    _, first, inverse = np.unique(both, axis=0, return_index=True, return_inverse=True)
    found = first[inverse.reshape(-1)[len(triangles) :]]
    return np.where(found < len(triangles), found // 4, -1).astype(np.int32)
