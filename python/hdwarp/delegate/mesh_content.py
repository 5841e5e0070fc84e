"""delegate.mesh_content: which meshes are the same, by their arrays. NumPy only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hdwarp.stage.columns import MeshGeometry, Primvar

_SAMPLES = 64
_TOPOLOGY = ("triangle_corners", "triangle_points", "triangle_face", "face_subset", "pieces", "ids")


def mesh_sketch(mesh: MeshGeometry) -> tuple:
    """Equal for equal meshes, and for hardly any others: sizes, and a sample of what varies over the mesh."""
    sketch = mesh.owner, mesh.form, len(mesh.points), mesh.face_count, mesh.corner_count, len(mesh.triangle_face), _sample(mesh.points)
    if not mesh.primvars:
        return sketch
    return *sketch, *((name, _sample(primvar.values)) for name, primvar in sorted(mesh.primvars.items()))


def same_mesh(a: MeshGeometry, b: MeshGeometry) -> bool:
    """Whether two meshes make equal pictures."""
    if a is b:
        return True
    if (a.owner, a.is_moved) != (b.owner, b.is_moved):
        return False
    if a.primvars.keys() != b.primvars.keys() or not same_topology(a, b) or not same_bits(a.points, b.points):
        return False
    if not same_bits(a.radii, b.radii):
        return False
    return all(same_primvar(x, y) for x, y in _primvars(a, b))


def same_topology(a: MeshGeometry, b: MeshGeometry) -> bool:
    """Whether the BVH of one, its points and radii moved, will do for the other: same triangles, and as many points."""
    sizes = [(mesh.form, mesh.face_count, mesh.corner_count, len(mesh.points)) for mesh in (a, b)]
    return sizes[0] == sizes[1] and all(same_bits(getattr(a, name), getattr(b, name)) for name in _TOPOLOGY)


def same_primvars(a: MeshGeometry, b: MeshGeometry) -> bool:
    """Whether primvars other than the normals are equal."""
    return a.primvars.keys() == b.primvars.keys() and all(same_primvar(x, b.primvars[name]) for name, x in a.primvars.items())


def _primvars(a: MeshGeometry, b: MeshGeometry) -> Iterator[tuple[Primvar | None, Primvar | None]]:
    yield a.normals, b.normals
    for name, primvar in a.primvars.items():
        yield primvar, b.primvars[name]


def same_primvar(a: Primvar | None, b: Primvar | None) -> bool:
    """Bit for bit; computed normals by what they are computed from beside the points."""
    if a is None or b is None:
        return a is b
    ours, theirs = a.content(), b.content()
    return a.interpolation == b.interpolation and len(ours) == len(theirs) and all(map(same_bits, ours, theirs))


def same_bits(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    """Bit for bit: NaN equals itself, and -0 is not 0."""
    if a is b or a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _sample(values: np.ndarray) -> bytes:
    step = len(values) // _SAMPLES
    return values[::step].tobytes() if step > 1 else values.tobytes()
