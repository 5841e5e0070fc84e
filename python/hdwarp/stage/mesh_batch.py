"""stage.mesh_batch: RawMesh -> MeshGeometry, many meshes at once: checks, triangles and normals of all of them in a few NumPy calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hdwarp.errors import Diagnostics
from hdwarp.stage.columns import MeshGeometry
from hdwarp.stage.meshes import MeshEntry, RawMesh
from hdwarp.stage.normals import Cages, SmoothNormals
from hdwarp.stage.transforms import LARGEST
from hdwarp.stage.triangulate import triangulate

Reports = dict[int, Diagnostics]  # by id(raw): the paths are those of its entries
_CHUNK_CORNERS = 4_000_000  # bounds the temporary arrays
SMOOTH = ("catmullClark", "loop")


def build_meshes(raws: list[RawMesh]) -> None:
    """Fill the ``built`` of all entries of ``raws``, None where the mesh cannot be drawn; their diagnostics say what was wrong."""
    built: list[MeshGeometry | None] = [None] * len(raws)
    told: Reports = defaultdict(Diagnostics)
    for chunk in _chunks(raws):
        _build_chunk(raws, chunk, built, told)
    for raw, mesh in zip(raws, built, strict=True):
        if mesh is not None and raw.element is not None:
            mesh.triangle_face, mesh.face_count = raw.element[mesh.triangle_face], raw.element_count
        reports = list(told[id(raw)]) if told and id(raw) in told else ()
        for entry in raw.entries:
            entry.built, entry.is_built = mesh, True
            if mesh is None or mesh.corner_count != 3 * mesh.face_count:
                entry.raw = None  # nothing that `move_points` could use
            if reports:
                entry.diagnostics += tuple(replace(item, path=entry.path) for item in reports)
        raw.entries = []


def move_points(entry: MeshEntry, points: np.ndarray) -> bool:
    """Give a built mesh new ``points`` (P, 3) float32 without looking at its faces again. False, and nothing done, where they have to be
    looked at: how polygons are cut depends on the points, and so does which faces can be drawn."""
    mesh, raw = entry.built, entry.raw
    if raw is None or len(mesh.triangle_face) != mesh.face_count:
        return False
    if raw.holes is not None or len(points) != len(mesh.points) or not (raw.counts == 3).all():
        return False
    reach = float(_reach(points, np.array([len(points)]))[0])
    if not reach <= LARGEST:
        return False
    normals = mesh.normals
    if raw.scheme in SMOOTH:
        everywhere, flip = np.ones(mesh.face_count, bool), np.full(mesh.face_count, raw.left_handed)
        cages = Cages(lambda: (points, raw.counts.astype(np.int64), raw.indices, everywhere, flip))
        normals = SmoothNormals(cages, slice(0, len(points)), mesh.normals.content())
    entry.raw = replace(raw, points=points)
    entry.built = replace(mesh, points=points, normals=normals, reach=reach)
    return True


def _chunks(raws: list[RawMesh]) -> Iterator[list[int]]:
    chunk, size = [], 0
    for number, raw in enumerate(raws):
        chunk.append(number)
        size += len(raw.indices) + len(raw.points)
        if size >= _CHUNK_CORNERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _report(diagnostics: Reports, raw: RawMesh, code: str, message: str, severity: str = "error") -> None:
    diagnostics[id(raw)].add("", code, severity, message)


def _sums(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Sum of each run of ``lengths`` in ``values``; empty runs give 0."""
    running = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
    ends = np.cumsum(lengths)
    return running[ends] - running[ends - lengths]


def _sound(meshes: list[RawMesh], counts: np.ndarray, face_counts: np.ndarray, corner_counts: np.ndarray, diagnostics) -> np.ndarray:
    """Which meshes have counts and indices that describe polygons at all."""
    wrong = _sums(counts, face_counts) != corner_counts
    negative = _sums(counts < 0, face_counts) > 0
    for k in np.flatnonzero(wrong | negative):
        raw = meshes[k]
        if negative[k]:
            said = f"faceVertexCounts holds {int(raw.counts.min())} (face {int(np.argmax(raw.counts < 0))}); counts must be 3 or more"
        else:
            said = f"faceVertexCounts add up to {int(raw.counts.sum(dtype=np.int64))} but there are {len(raw.indices)} faceVertexIndices"
        _report(diagnostics, raw, "topology", f"{said}; the mesh is skipped. Author counts and indices that agree")
    return ~(wrong | negative)


def _build_chunk(raws: list[RawMesh], chunk: list[int], built: list[MeshGeometry | None], diagnostics: Reports) -> None:
    meshes = [raws[i] for i in chunk]
    face_counts = np.array([len(m.counts) for m in meshes])
    corner_counts = np.array([len(m.indices) for m in meshes])
    counts = np.concatenate([m.counts for m in meshes])
    if _build_triangles(meshes, chunk, counts, face_counts, corner_counts, built):
        return
    sound = _sound(meshes, counts, face_counts, corner_counts, diagnostics)
    if not sound.all():
        chunk = [number for number, good in zip(chunk, sound, strict=True) if good]
        if chunk:
            _build_chunk(raws, chunk, built, diagnostics)
        return
    counts = counts.astype(np.int64)
    point_counts = np.array([len(m.points) for m in meshes])
    points = np.concatenate([m.points for m in meshes])
    local = np.concatenate([m.indices for m in meshes])
    mesh_of_face = np.repeat(np.arange(len(meshes)), face_counts)
    point_start = np.cumsum(point_counts) - point_counts
    face_start = np.cumsum(face_counts) - face_counts
    corner_start = np.cumsum(corner_counts) - corner_counts

    drawn = _check_faces(meshes, points, counts, local, mesh_of_face, point_counts, corner_counts, diagnostics)
    indices = local + np.repeat(point_start, corner_counts)
    smooth = np.array([m.scheme in SMOOTH for m in meshes])
    flip = np.array([m.left_handed for m in meshes])[mesh_of_face]
    smoothed = drawn & smooth[mesh_of_face]  # holes count: the surface goes on under them
    cages = Cages(lambda: (points, counts, indices, smoothed, flip))
    for k, mesh in enumerate(meshes):
        if mesh.holes is not None:
            _take_out_holes(mesh, drawn[face_start[k] : face_start[k] + face_counts[k]], diagnostics)

    corners, face = triangulate(points, counts, indices, flip=flip, drawn=drawn)
    first = np.searchsorted(face, face_start)
    last = np.append(first[1:], len(face))
    mesh_of_triangle = np.repeat(np.arange(len(meshes)), last - first)
    triangle_points = local[corners]
    corners -= corner_start[mesh_of_triangle].astype(np.int32)[:, None]
    face = face - face_start[mesh_of_triangle].astype(np.int32)
    reach = _reach(points, point_counts).tolist()
    ranges = zip(chunk, meshes, first.tolist(), last.tolist(), point_start.tolist(), (point_start + point_counts).tolist(), strict=True)
    for k, (number, mesh, begin, end, first_point, last_point) in enumerate(ranges):
        if begin == end:
            _report(diagnostics, mesh, "no-faces", "no face of the mesh can be drawn; see its other diagnostics", "warning")
            continue
        built[number] = MeshGeometry(
            points[first_point:last_point],
            corners[begin:end],
            triangle_points[begin:end],
            face[begin:end],
            len(mesh.counts),
            len(mesh.indices),
            SmoothNormals(cages, slice(first_point, last_point), [mesh.counts, mesh.indices]) if mesh.scheme in SMOOTH else mesh.normals,
            mesh.primvars,
            mesh.face_subset,
            reach[k],
        )


def _build_triangles(meshes, chunk, counts, face_counts, corner_counts, built: list[MeshGeometry | None]) -> bool:
    """The common case in a fraction of the time and without copies: sound triangles throughout. False, and nothing done, for all else."""
    if len(counts) == 0 or counts.min() != 3 or counts.max() != 3 or (corner_counts != 3 * face_counts).any() or not corner_counts.all():
        return False
    if any(mesh.holes is not None for mesh in meshes):
        return False
    local = np.concatenate([m.indices for m in meshes])
    point_counts = np.array([len(m.points) for m in meshes])
    highest = np.maximum.reduceat(local, np.cumsum(corner_counts) - corner_counts)
    if local.min() < 0 or (highest >= point_counts).any():
        return False
    reach = _reach(np.concatenate([mesh.points for mesh in meshes]), point_counts)
    if not (reach <= LARGEST).all():
        return False
    corners = np.arange(int(corner_counts.max()), dtype=np.int32).reshape(-1, 3)
    faces = np.arange(len(corners), dtype=np.int32)
    turned = corners[:, [0, 2, 1]]
    cut = {count: (corners[:count], turned[:count], faces[:count]) for count in np.unique(face_counts).tolist()}
    ends = np.cumsum(point_counts)

    def load() -> tuple[np.ndarray, ...]:
        flip = np.repeat([mesh.left_handed for mesh in meshes], face_counts)
        indices = local + np.repeat(ends - point_counts, corner_counts)
        return np.concatenate([mesh.points for mesh in meshes]), counts.astype(np.int64), indices, np.ones(len(counts), bool), flip

    cages = Cages(load)
    for number, mesh, count, end, far in zip(chunk, meshes, face_counts.tolist(), ends.tolist(), reach.tolist(), strict=True):
        points_of = mesh.indices.reshape(-1, 3)
        as_authored, reversed_, face = cut[count]
        built[number] = MeshGeometry(
            mesh.points,
            reversed_ if mesh.left_handed else as_authored,
            points_of[:, [0, 2, 1]] if mesh.left_handed else points_of,
            face,
            count,
            3 * count,
            SmoothNormals(cages, slice(end - len(mesh.points), end)) if mesh.scheme in SMOOTH else mesh.normals,
            mesh.primvars,
            mesh.face_subset,
            far,
        )
    return True


def _reach(points: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(M,) float32: the largest coordinate, whatever its sign, of each run of ``counts`` in ``points``; NaN where one is."""
    return np.maximum.reduceat(np.abs(points).reshape(-1), 3 * (np.cumsum(counts) - counts))


def _check_faces(meshes, points, counts, local, mesh_of_face, point_counts, corner_counts, diagnostics) -> np.ndarray:
    """Which faces can be drawn. Bad points become zeros and bad indices 0 in ``points`` and ``local``, in place."""
    drawn = counts >= 3
    if not drawn.all():
        for k, number in zip(*np.unique(mesh_of_face[~drawn], return_counts=True), strict=True):
            message = f"{number} of {len(meshes[k].counts)} faces have fewer than 3 corners; they are not drawn, the other faces are"
            _report(diagnostics, meshes[k], "degenerate-faces", message, "warning")
    limit = np.repeat(point_counts, corner_counts)
    outside = (local < 0) | (local >= limit)
    if outside.any():
        _drop_faces_of(
            np.flatnonzero(outside), drawn, meshes, counts, mesh_of_face, diagnostics, "index-range",
            lambda k, values: f"{meshes[k].indices_name} outside 0..{point_counts[k] - 1} (first: {int(local[values[0]])})",
        )  # fmt: skip
        local[outside] = 0
    finite = (np.abs(points) <= LARGEST).all(axis=1)  # NaN is not
    if not finite.all():
        points[~finite] = 0.0
        point_start = np.cumsum(point_counts) - point_counts
        used = ~finite[local + np.repeat(point_start, corner_counts)] & ~outside
        mesh_of_point = np.repeat(np.arange(len(meshes)), point_counts)
        bad_points = np.bincount(mesh_of_point[~finite], minlength=len(meshes))
        _drop_faces_of(
            np.flatnonzero(used), drawn, meshes, counts, mesh_of_face, diagnostics, "points-not-finite",
            lambda k, _: f"{bad_points[k]} points that are NaN, infinite or beyond {LARGEST:g}",
        )  # fmt: skip
        for k in np.setdiff1d(np.flatnonzero(bad_points), mesh_of_face[np.repeat(np.arange(len(counts)), counts)[used]]):
            message = f"{bad_points[k]} points are NaN, infinite or beyond {LARGEST:g}; no face uses them"
            _report(diagnostics, meshes[k], "points-not-finite", message, "note")
    return drawn


def _drop_faces_of(bad_corners, drawn, meshes, counts, mesh_of_face, diagnostics, code, describe) -> None:
    """Switch off the faces of these corners and say so for each mesh."""
    face_of_corner = np.repeat(np.arange(len(counts)), counts)
    faces = np.unique(face_of_corner[bad_corners])
    drawn[faces] = False
    mesh_of_corner = mesh_of_face[face_of_corner[bad_corners]]
    for k, number in zip(*np.unique(mesh_of_face[faces], return_counts=True), strict=True):
        said = describe(k, bad_corners[mesh_of_corner == k])
        message = f"{number} of {len(meshes[k].counts)} faces use {said}; they are not drawn, the other faces are. Mend the values"
        _report(diagnostics, meshes[k], code, message)


def _take_out_holes(mesh: RawMesh, drawn: np.ndarray, diagnostics: Reports) -> None:
    inside = (mesh.holes >= 0) & (mesh.holes < len(drawn))
    if not inside.all():
        wrong = mesh.holes[~inside]
        message = f"holeIndices holds {int(wrong[0])}, outside 0..{len(drawn) - 1} ({len(wrong)} such values); they are ignored"
        _report(diagnostics, mesh, "hole-range", message, "warning")
    drawn[mesh.holes[inside]] = False
