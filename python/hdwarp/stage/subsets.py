"""stage.subsets: GeomSubset prims of the materialBind family -> which slot each face of a mesh belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Usd, UsdGeom

from hdwarp.errors import Diagnostics

_MOST = 32767  # a slot is an int16


@dataclass(frozen=True, slots=True, eq=False)
class Subsets:
    """The material slots of a mesh: prim name and whether that prim has bindings of its own, and (F,) int16 slot by face, -1 in none."""

    slots: tuple[tuple[str, bool], ...]
    face_subset: np.ndarray | None


def read_subsets(
    prims: list[Usd.Prim], face_count: int, time: Usd.TimeCode, mesh_path: str, diagnostics: Diagnostics, *, element: str = "face"
) -> Subsets:
    """Only face subsets of family materialBind carry materials (of Points, "point" ones: ``element``). USD forbids a face in two of them
    and says nothing of what it would be: the first counts, which a diagnostic says, as it says where the family is not of the type it is
    said to be."""
    slots: list[tuple[str, bool]] = []
    face_subset = np.full(face_count, -1, np.int16)
    for prim in prims:
        if prim.GetAttribute("familyName").Get() != "materialBind":
            continue
        path = f"{mesh_path}/{prim.GetName()}"
        element_type = prim.GetAttribute("elementType").Get() or "face"
        if element_type != element:
            diagnostics.note(path, "subset-type", f"elementType is '{element_type}'; only {element} subsets carry materials, it is ignored")
            continue
        value = prim.GetAttribute("indices").Get(time)
        faces = np.asarray(value) if value is not None else np.zeros(0, np.int32)
        if faces.size == 0:
            continue
        if faces.dtype.kind not in "iu" or faces.ndim != 1:
            diagnostics.warning(path, "wrong-type", f"indices holds {type(value).__name__}, not integers; the subset is ignored")
            continue
        if len(slots) == _MOST:
            diagnostics.warning(path, "subset-count", f"more than {_MOST} material subsets on one mesh; this one is ignored")
            continue
        outside = (faces < 0) | (faces >= face_count)
        if outside.any():
            diagnostics.warning(
                path,
                "subset-indices",
                f"{int(outside.sum())} of {len(faces)} indices are outside 0..{face_count - 1} (first: {int(faces[outside][0])});"
                " they are ignored",
            )
            faces = faces[~outside]
        once = np.unique(faces)
        taken = face_subset[once] >= 0
        if len(once) < len(faces) or taken.any():
            diagnostics.warning(
                path,
                "subset-duplicates",
                f"{len(faces) - len(once) + int(taken.sum())} indices name a {element} that this or an earlier subset already holds;"
                " the first one counts",
            )
        face_subset[once[~taken]] = len(slots)
        slots.append((prim.GetName(), any(name.startswith("material:binding") for name in prim.GetAuthoredPropertyNames())))
    if slots:
        _check_family(prims[0].GetParent(), int((face_subset < 0).sum()), mesh_path, diagnostics)
    return Subsets(tuple(slots), face_subset if slots else None)


def _check_family(mesh: Usd.Prim, uncovered: int, path: str, diagnostics: Diagnostics) -> None:
    attribute = mesh.GetAttribute("subsetFamily:materialBind:familyType")
    family = attribute.Get() if attribute else None
    if family == UsdGeom.Tokens.partition and uncovered:
        message = f"its materialBind subsets are said to be a partition, and {uncovered} faces are in none: those have the mesh's material"
        diagnostics.note(path, "subset-family", f"{message}. Author nonOverlapping, or the faces")
    elif family == UsdGeom.Tokens.unrestricted:
        message = (
            "its materialBind subsets are said to be unrestricted, which USD does not allow; a face in two has the first one's material"
        )
        diagnostics.warning(path, "subset-family", f"{message}. Author nonOverlapping or partition")
