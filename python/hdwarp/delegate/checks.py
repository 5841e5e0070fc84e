"""delegate.checks: records that come from elsewhere than our own adapter: whatever kernels would read beyond its end is refused by name."""

from __future__ import annotations

import numpy as np

from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import MAX_CLIPPING_PLANES, Camera, GeometryKind, Gprim, MeshGeometry, Primvar
from hdwarp.stage.looks import Light, LightKind


def check_record(record: object, kinds: tuple[type, ...]) -> None:
    """Raise ArgumentError for what is none of ``kinds``, or whose numbers lead nowhere."""
    if not isinstance(record, kinds):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise ArgumentError(f"a {type(record).__name__} is no record of the render index; expected one of {names}")
    if not isinstance(record.path, str) or not record.path:
        raise ArgumentError(f"a {type(record).__name__} has path {record.path!r}; expected a prim path")
    if isinstance(record, Gprim):
        _check_gprim(record)
    elif isinstance(record, Camera) and np.asarray(record.clipping_planes).shape != (len(record.clipping_planes), 4):
        raise ArgumentError(f"<{record.path}>: clipping_planes must be (n, 4)")
    elif isinstance(record, Camera) and len(record.clipping_planes) > MAX_CLIPPING_PLANES:
        count = len(record.clipping_planes)
        raise ArgumentError(f"<{record.path}>: it has {count} clipping planes; a camera may have {MAX_CLIPPING_PLANES}")
    elif isinstance(record, Light):
        _check_light(record)


def _check_light(light: Light) -> None:
    for name, shape in (("world_from_light", (4, 4)), ("axes", (3, 3)), ("radiance", (3,)), ("size", (2,)), ("focus_tint", (3,))):
        values = np.asarray(getattr(light, name))
        if values.shape != shape or not np.isfinite(values).all():
            raise ArgumentError(f"<{light.path}>: {name} is {getattr(light, name)}; expected {shape} finite numbers")
    if light.kind not in list(LightKind):
        raise ArgumentError(f"<{light.path}>: kind is {light.kind!r}; expected a LightKind")


def _check_gprim(gprim: Gprim) -> None:
    def refuse(said: str) -> None:
        raise ArgumentError(f"<{gprim.path}>: {said}")

    if np.ndim(gprim.transforms) != 3 or np.shape(gprim.transforms)[1:] != (4, 4):
        refuse(f"transforms are {np.shape(gprim.transforms)}; expected (instances, 4, 4)")
    count = len(gprim.transforms)
    if not isinstance(gprim.kind, GeometryKind):
        refuse(f"kind is {gprim.kind!r}; expected a GeometryKind")
    if gprim.kind.has_geometry != (gprim.mesh is not None):
        refuse("a prim of kind MESH, POINTS, TUBES or RIBBONS has a MeshGeometry, and nothing else has one")
    if gprim.instance_ids is not None and len(gprim.instance_ids) != count:
        refuse(f"it has {len(gprim.instance_ids)} instance_ids for {count} transforms")
    for name, values in gprim.instance_primvars.items():
        if len(values) != count:
            refuse(f"instance primvar {name!r} has {len(values)} values for {count} transforms")
    if gprim.mesh is not None:
        if gprim.mesh.form is not gprim.kind:
            refuse(f"kind is {gprim.kind!r}, and the form of its MeshGeometry {gprim.mesh.form!r}; they must be the same")
        _check_mesh(gprim.mesh, len(gprim.subset_materials), refuse)


def _check_mesh(mesh: MeshGeometry, slots: int, refuse) -> None:
    triangles = len(mesh.triangle_face)
    if np.shape(mesh.points)[1:] != (3,):
        refuse(f"points are {np.shape(mesh.points)}; expected (P, 3)")
    point_limit = mesh.corner_count if mesh.form.is_curve else len(mesh.points)
    for name, limit in (("triangle_points", point_limit), ("triangle_corners", mesh.corner_count)):
        if getattr(mesh, name).shape != (triangles, 3):
            refuse(f"{name} are {getattr(mesh, name).shape}; expected ({triangles}, 3), a row for each of triangle_face")
        _check_range(getattr(mesh, name), limit, name, refuse)
    _check_range(mesh.triangle_face, mesh.face_count, "triangle_face", refuse)
    if mesh.face_subset is not None:
        if len(mesh.face_subset) != mesh.face_count:
            refuse(f"face_subset has {len(mesh.face_subset)} values for {mesh.face_count} faces")
        _check_range(np.maximum(mesh.face_subset, 0), max(slots, 1), "face_subset", refuse)
    if mesh.form == GeometryKind.MESH:
        expected = {"uniform": mesh.face_count, "vertex": len(mesh.points), "faceVarying": mesh.corner_count}
    else:
        _check_form(mesh, refuse)
        expected = {"uniform": mesh.face_count}
        if mesh.form.is_curve:
            expected |= {"faceVarying": mesh.corner_count, "bezier": 4 * mesh.face_count}
    for name, primvar in [("normals", mesh.normals), *mesh.primvars.items()]:
        if primvar is not None:
            _check_primvar(name, primvar, expected, refuse)


def _check_form(mesh: MeshGeometry, refuse) -> None:
    """Columns that points and curves have and meshes have not."""
    count = len(mesh.triangle_face)
    rows = mesh.form.point_count
    if len(mesh.points) != rows * count:
        refuse(f"points are {np.shape(mesh.points)}; expected ({rows * count}, 3), {rows} for each of triangle_face")
    radii = None if mesh.form == GeometryKind.RIBBONS else (rows * count,)
    if (None if mesh.radii is None else np.shape(mesh.radii)) != radii:
        refuse(f"radii are {None if mesh.radii is None else np.shape(mesh.radii)}; expected {radii}")
    pieces = None if mesh.form == GeometryKind.POINTS else (count,)
    if (None if mesh.pieces is None else np.shape(mesh.pieces)) != pieces:
        refuse(f"pieces are {None if mesh.pieces is None else np.shape(mesh.pieces)}; expected {pieces}")
    if mesh.pieces is not None and count and mesh.pieces.min() < 16:
        refuse(f"pieces hold {int(mesh.pieces.min())}; expected 16 (2^m + k) + flags, 16 or more")
    if mesh.ids is not None and (mesh.form != GeometryKind.POINTS or np.shape(mesh.ids) != (mesh.face_count,)):
        refuse(f"ids are {np.shape(mesh.ids)}; expected ({mesh.face_count},), of POINTS only")


def _check_primvar(name: str, primvar: Primvar, expected: dict[str, int], refuse) -> None:
    if primvar.interpolation not in expected:
        refuse(f"{name} has interpolation {primvar.interpolation!r}; expected one of {', '.join(expected)}")
    values, indices = primvar.values, primvar.indices
    if values.ndim != 2 or not 1 <= values.shape[1] <= 4:
        refuse(f"{name} values are {values.shape}; expected (n, 1 to 4)")
    count, wanted = len(values if indices is None else indices), expected[primvar.interpolation]
    if count != wanted:
        refuse(f"{name} ({primvar.interpolation}) has {count} values or indices; expected {wanted}")
    if indices is not None:
        _check_range(indices, len(values), f"{name} indices", refuse)


def _check_range(numbers: np.ndarray, limit: int, name: str, refuse) -> None:
    if numbers.size and (numbers.min() < 0 or numbers.max() >= limit):
        refuse(f"{name} holds {int(numbers.min() if numbers.min() < 0 else numbers.max())}, outside 0..{limit - 1}")
