"""stage.meshes: Mesh prims -> RawMesh arrays as authored, equal ones once. mesh_batch turns them into MeshGeometry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from pxr import Usd, Vt

from hdwarp.errors import Diagnostic, Diagnostics
from hdwarp.stage import primvars
from hdwarp.stage.columns import MeshGeometry, Primvar
from hdwarp.stage.subsets import Subsets, read_subsets

NO_SUBSETS = Subsets((), None)
_MOST = 2**31 - 1  # points, faces or corners of one mesh: their numbers are int32
_SCHEMES = ("catmullClark", "loop", "bilinear", "none")


@dataclass(slots=True, eq=False)
class RawMesh:
    """The arrays of one mesh as authored (dtypes settled), and the prims of one reading that have exactly these."""

    points: np.ndarray  # (P, 3) float32
    counts: np.ndarray  # (F,) int32
    indices: np.ndarray  # (C,) int32
    holes: np.ndarray | None
    left_handed: bool
    scheme: str
    normals: Primvar | None  # authored ones, which count with scheme "none" only
    primvars: dict[str, Primvar]
    face_subset: np.ndarray | None
    entries: list[MeshEntry]
    element: np.ndarray | None = None  # (F,) int32, rising: what each face is a piece of where that, not the face, is what is numbered
    element_count: int = 0  # of those; uniform primvars and `face_subset` are by element then
    indices_name: str = "faceVertexIndices"  # what the indices are called where they come from

    def arrays(self) -> list[np.ndarray]:
        found = [self.points, self.counts, self.indices]
        for primvar in (self.normals, *self.primvars.values()):
            if primvar is not None:
                found.append(primvar.values)
                if primvar.indices is not None:
                    found.append(primvar.indices)
        return found + [array for array in (self.holes, self.face_subset, self.element) if array is not None]

    def varying(self) -> list[np.ndarray]:
        """The arrays in which meshes differ first."""
        return [self.points, *[primvar.values for primvar in self.primvars.values()]] if self.primvars else [self.points]

    def layout(self) -> tuple:
        """Everything that is no array content; equal layouts and equal arrays make equal meshes."""
        shape = (len(self.points), len(self.counts), len(self.indices), self.left_handed, self.scheme, self.element_count)
        if not self.primvars and self.normals is None and self.holes is None and self.face_subset is None:
            return shape
        varying = tuple((name, p.interpolation, p.values.shape, p.indices is None) for name, p in self.primvars.items())
        normals = None if self.normals is None else (self.normals.interpolation, self.normals.values.shape, self.normals.indices is None)
        return *shape, varying, normals, None if self.holes is None else len(self.holes), self.face_subset is None


@dataclass(slots=True, eq=False)
class MeshEntry:
    """What reading one Mesh prim gave. Kept until something of it changes, so that what moves is not read again."""

    path: str  # what diagnostics call the prim
    raw: RawMesh | None = None  # None: nothing to draw, or not needed any more
    scheme: str = "none"
    built: MeshGeometry | None = None  # mesh_batch's; None as well where no face can be drawn
    is_built: bool = False
    slots: tuple[tuple[str, bool], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    has_new_points: bool = False  # nothing but the points has changed since it was read


class MeshSet:
    """Meshes to build. Equal ones are built once, comparing content, not names."""

    def __init__(self) -> None:
        self.meshes: list[RawMesh] = []
        self._alike: dict[tuple, list[RawMesh]] = {}

    def add(self, entry: MeshEntry) -> None:
        """An entry to be built; its ``raw`` becomes that of an equal one, if there is one."""
        raw = entry.raw
        key = (raw.layout(), *[array[:: max(1, len(array) // 64)].tobytes() for array in raw.varying()])  # tells nearly all apart, cheaply
        candidates = self._alike.get(key)
        if candidates is None:
            candidates = self._alike[key] = []
        for known in candidates:
            if _same_arrays(known.arrays(), raw.arrays()):
                entry.raw = known
                known.entries.append(entry)
                return
        candidates.append(raw)
        raw.entries.append(entry)
        self.meshes.append(raw)


def _same_arrays(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))  # bytes: NaN equals itself


def read_mesh(
    prim: Usd.Prim,
    names: Collection[str],
    varying: Sequence[tuple[str, str]],
    subset_prims: Sequence[Usd.Prim],
    inherited_normals: np.ndarray | None,
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
) -> tuple[RawMesh, Subsets] | None:
    """The mesh's arrays, or None with a diagnostic where there is nothing to draw. ``names``: authored properties; ``varying``: its
    non-constant primvars as (name, interpolation); ``inherited_normals``: a constant `primvars:normals` from the prim or above it."""
    points = read_points(prim, names, time)
    counts = _array(prim, "faceVertexCounts", names, time, 1)
    indices = _array(prim, "faceVertexIndices", names, time, 1)
    for array in (points, counts, indices):
        if type(array) is not np.ndarray or not array.size:
            _report_lacking(prim, points, counts, indices, time, path, diagnostics)
            return None
    if refuse_beyond_int32({"points": points, "faceVertexCounts": counts, "faceVertexIndices": indices}, path, diagnostics):
        return None
    scheme = "catmullClark"
    if "subdivisionScheme" in names:
        scheme = prim.GetAttribute("subdivisionScheme").Get() or scheme
        if scheme not in _SCHEMES:
            diagnostics.warning(path, "subdivision-scheme", f"subdivisionScheme is '{scheme}' (known: {', '.join(_SCHEMES)}); read as none")
            scheme = "none"
    left_handed = is_left_handed(prim, names, time)
    holes = _array(prim, "holeIndices", names, time, 1) if "holeIndices" in names else None
    if isinstance(holes, str):
        diagnostics.warning(path, "wrong-type", f"{holes}; no face is taken out")
        holes = None
    expected = {}
    if varying or scheme == "none":
        expected = {"uniform": len(counts), "vertex": len(points), "varying": len(points), "faceVarying": len(indices)}
    kept, normals = read_over_faces(prim, names, varying, inherited_normals, expected, scheme, time, path, diagnostics)
    subsets = read_subsets(subset_prims, len(counts), time, path, diagnostics) if subset_prims else NO_SUBSETS
    if holes is not None and not len(holes):
        holes = None
    raw = RawMesh(points, counts, indices, holes, left_handed, scheme, normals, kept, subsets.face_subset, [])
    return raw, subsets


def is_left_handed(prim: Usd.Prim, names: Collection[str], time: Usd.TimeCode) -> bool:
    return "orientation" in names and prim.GetAttribute("orientation").Get(time) == "leftHanded"


def refuse_beyond_int32(arrays: dict[str, np.ndarray], path: str, diagnostics: Diagnostics) -> bool:
    """Whether an array is longer than int32 can number, which a diagnostic then says."""
    for name, array in arrays.items():
        if len(array) > _MOST:
            message = f"{name} has {len(array):,} items, more than the {_MOST:,} that can be numbered; the mesh is skipped. Split it up"
            diagnostics.error(path, "mesh-size", message)
            return True
    return False


def read_over_faces(
    prim: Usd.Prim,
    names: Collection[str],
    varying: Sequence[tuple[str, str]],
    inherited_normals: np.ndarray | None,
    expected: dict[str, int],
    scheme: str,
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
) -> tuple[dict[str, Primvar], Primvar | None]:
    """(primvars by name, unit normals where they count) of what has points and faces, with ``expected`` counts by interpolation."""
    kept: dict[str, Primvar] = {}
    normals = None
    for name, interpolated in varying:
        if name == "primvars:normals" and scheme != "none":
            continue
        primvar = primvars.read_varying(prim, name, interpolated, time, expected, path, diagnostics)
        if primvar is None:
            continue
        if name != "primvars:normals":
            kept[name[len(primvars.PREFIX) :]] = primvar
        elif primvar.values.shape[1] == 3:
            normals = primvar
    if scheme == "none" and normals is None:
        if inherited_normals is not None and len(inherited_normals) == 3:
            normals = Primvar("uniform", inherited_normals.reshape(1, 3), np.zeros(expected["uniform"], np.int32))
        elif "normals" in names and "primvars:normals" not in names:
            normals = _plain_normals(prim, time, expected, path, diagnostics)
    return kept, None if normals is None else unit_normals(normals, path, diagnostics)


def read_points(prim: Usd.Prim, names: Collection[str], time: Usd.TimeCode, *, name: str = "points") -> np.ndarray | str | None:
    """(P, 3) float32; None: no value; str: what is wrong with it."""
    return _array(prim, name, names, time, 3)


def deformed(points: np.ndarray, normals: Primvar | None, deform: Callable[[RawMesh], None]) -> tuple[np.ndarray, Primvar | None]:
    """Points, and normals that are theirs, of what has no faces as ``deform`` moves those of a mesh."""
    none = np.zeros(0, np.int32)
    raw = RawMesh(points, none, none, None, False, "none", normals, {}, None, [])
    deform(raw)
    return raw.points, raw.normals


def _plain_normals(prim: Usd.Prim, time: Usd.TimeCode, expected: dict[str, int], path: str, diagnostics: Diagnostics) -> Primvar | None:
    """The `normals` attribute. It is no primvar: no indices, and vertex unless it says otherwise."""
    interpolated = prim.GetAttribute("normals").GetMetadata("interpolation") or "vertex"
    if interpolated == "constant":
        found = primvars.read_values(prim, "normals", time, {"constant": 1}, "constant", path, diagnostics)
        return Primvar("uniform", found[0], np.zeros(expected["uniform"], np.int32)) if found and found[0].shape[1] == 3 else None
    primvar = primvars.read_varying(prim, "normals", interpolated, time, expected, path, diagnostics)
    return primvar if primvar is not None and primvar.values.shape[1] == 3 else None


def unit_normals(normals: Primvar, path: str, diagnostics: Diagnostics) -> Primvar:
    """Normals of length 1, zero where they have no direction: there the resolve takes the geometric one. Good ones stay as they are."""
    values = normals.values
    with np.errstate(over="ignore"):
        square = np.einsum("ij,ij->i", values, values)
    odd = np.flatnonzero(~(np.abs(square - 1.0) <= 1e-3))
    if not len(odd):
        return normals
    vectors = values[odd].astype(np.float64)  # of any float32 the square and its root are fine
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lost = int((length == 0.0).sum())
    if lost:
        message = f"{lost} of {len(values)} normals are zero, NaN or infinite; the geometric normal is used there. Author unit vectors"
        diagnostics.warning(path, "normal-length", message)
    values = values.copy()
    values[odd] = vectors / np.where(length > 0.0, length, 1.0)[:, None]
    return Primvar(normals.interpolation, values, normals.indices)


def _array(prim: Usd.Prim, name: str, names: Collection[str], time: Usd.TimeCode, width: int) -> np.ndarray | str | None:
    """(n, 3) float32 or (n,) int32; None: no value; str: what is wrong with it."""
    if name not in names:
        return None
    value = prim.GetAttribute(name).Get(time)
    if value is None:
        return None
    array = np.asarray(value)
    if type(value) is (Vt.IntArray if width == 1 else Vt.Vec3fArray) and array.size:
        return array
    if array.size == 0 and type(value).__name__.endswith("Array"):
        return np.zeros((0, 3), np.float32) if width == 3 else np.zeros(0, np.int32)
    shape_fits = array.ndim == 1 if width == 1 else array.ndim == 2 and array.shape[1] == width
    if not shape_fits or array.dtype.kind not in ("iu" if width == 1 else "fiu"):
        return f"{name} holds {type(value).__name__}"
    if width == 1:
        return np.clip(array, -(2**31), 2**31 - 1).astype(np.int32)
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _report_lacking(prim, points, counts, indices, time: Usd.TimeCode, path: str, diagnostics: Diagnostics) -> None:
    """Why a mesh without usable points, counts or indices is not drawn."""
    arrays = {"points": points, "faceVertexCounts": counts, "faceVertexIndices": indices}
    wrong = [value for value in arrays.values() if isinstance(value, str)]
    if wrong:
        diagnostics.error(path, "wrong-type", f"{'; '.join(wrong)}; the mesh is skipped. Author the type the Mesh schema asks for")
        return
    lacking = [name for name, value in arrays.items() if value is None or not len(value)]
    why = _why_empty(prim, lacking, time)
    no_faces = counts is not None and not len(counts) and "faceVertexIndices" in lacking
    if len(lacking) == 3 or no_faces:
        diagnostics.note(path, "empty-mesh", f"the mesh is empty at this time ({why}); nothing is drawn for it")
    else:
        said = " and ".join(lacking)
        diagnostics.error(path, "missing-topology", f"{said} {why}; the mesh is skipped. Author {said}")


def _why_empty(prim: Usd.Prim, lacking: list[str], time: Usd.TimeCode) -> str:
    sampled = [name for name in lacking if prim.GetAttribute(name).GetNumTimeSamples()]
    if sampled and time.IsDefault():
        return f"have no default value, only time samples ({', '.join(sampled)})"
    return "no values" if len(lacking) == 3 else "have no values"
