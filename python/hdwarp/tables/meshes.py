"""tables.meshes: unique meshes on the device: their BVHs and what a hit is decoded with. A row a mesh, as in the render index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.delegate.change_tracker import DirtyBits
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import GeometryKind, MeshGeometry
from hdwarp.tables import bvh
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import MeshColumns, vec8f, vec8i, vec16f

_SCALE_RANGE = 66.0  # log2 of largest over smallest length with float32 products of three well inside float32
_LARGEST_SCALE = 96.0  # log2: float32 transforms keep room
_PARTS = ("node", "leaf", "triangle", "point", "corner", "face")


@dataclass(eq=False)
class _Batch:
    """Meshes whose points move, built together so that they can be refitted together."""

    rows: list[int]
    bvhs: bvh.MeshBvhs
    points: np.ndarray  # (P, 3) float32, all of theirs as on the device
    start: dict[int, int]  # first point of each row
    radii: np.ndarray | None  # (P,) float32, of points and tubes


@dataclass(slots=True)
class MeshCounts:
    built: int = 0  # BVHs
    refitted: int = 0


class MeshTable:
    """Meshes are appended in batches and built in one go. What a removed mesh held is reclaimed when half of it all is unused. A mesh whose
    points move is built once more, into a batch that is kept to be refitted from then on; one whose points a caller sets
    (`MeshGeometry.is_moved`) into one of its own."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.geometry: dict[int, MeshGeometry] = {}
        self._index: RenderIndex | None = None
        self.size = 0  # rows
        self.lower = np.zeros((0, 3))  # bounds by row, object space less the centre
        self.upper = np.zeros((0, 3))
        self.centre = np.zeros((0, 3))  # float64, taken off the points on the device: exact for meshes far from their own origin
        self.scale = np.ones(0)  # the points on the device are then divided by it: a power of two, 1 for meshes of common size
        self.is_moved = False  # a centre is not zero or a scale not 1
        self._used, self._live = dict.fromkeys(_PARTS, 0), 0  # items in the arrays, and those of meshes that are there
        self._held = np.zeros(0, np.int64)  # items by row
        self._empty: set[int] = set()
        self._batches: dict[int, _Batch] = {}  # by row of each mesh in them
        types = {
            "nodes": vec8f,
            "children": vec8i,
            "leaf_vertices": vec16f,
            "leaf_count": wp.int32,
            "slot_triangle": wp.int32,
            "root": wp.int32,
            "triangle_start": wp.int32,
            "point_start": wp.int32,
            "corner_start": wp.int32,
            "face_start": wp.int32,
            "has_subsets": wp.int32,
            "triangle_face": wp.int32,
            "triangle_points": wp.vec3i,
            "triangle_corners": wp.vec3i,
            "face_subset": wp.int32,
        }
        self._arrays = {name: GrowingArray(dtype, device, fill=-1 if name == "root" else None) for name, dtype in types.items()}

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in self._arrays.values()]

    def device_arrays(self) -> list[wp.array]:
        """All that is held on the device but for what refits of moving points need."""
        return [growing.array for growing in self._arrays.values()]

    @property
    def columns(self) -> MeshColumns:
        columns = MeshColumns()
        for name, growing in self._arrays.items():
            setattr(columns, name, growing.array)
        return columns

    def triangle_points(self, prim: str | int) -> np.ndarray:
        """(T, 3) int32: mesh-local point numbers of each triangle of a prim (path or primId), by triangleId.

        The order of a row is the one the barycentric weights use. Raises ArgumentError for what is no mesh of the scene.
        """
        return self._geometry_of(prim, GeometryKind.MESH, "a mesh").triangle_points

    def point_ids(self, prim: str | int) -> np.ndarray:
        """(P,) int64: the authored `ids` of a Points prim (path or primId), by elementId; where none are authored, the elementIds.

        Raises ArgumentError for what is no Points prim of the scene.
        """
        points = self._geometry_of(prim, GeometryKind.POINTS, "a Points prim")
        return np.arange(points.face_count) if points.ids is None else points.ids

    def _geometry_of(self, prim: str | int, form: GeometryKind, name: str) -> MeshGeometry:
        row = self._index.mesh_row(prim) if self._index is not None else -1
        if row < 0 or self.geometry[row].form != form:
            raise ArgumentError(f"{prim!r} is not {name} of this scene")
        return self.geometry[row]

    def empty_rows(self) -> list[int]:
        """Meshes without triangles that could be hit."""
        return sorted(self._empty)

    def sync(self, index: RenderIndex) -> tuple[MeshCounts, np.ndarray]:
        """Make the dirty rows those of the index: (BVHs built and refitted, rows whose bounds, centre or scale may be new, ascending)."""
        self._index, meshes, counts = index, index.meshes, MeshCounts()
        dirty = index.tracker.dirty_rows("meshes").tolist()
        if not dirty:
            return counts, np.zeros(0, np.int64)
        same_triangles = set(index.tracker.clean_but_for("meshes", DirtyBits.POINTS | DirtyBits.PRIMVAR).tolist())
        moved = [row for row in dirty if row in self.geometry and row in meshes and row in same_triangles]
        gone = [row for row in dirty if row in self.geometry and not (row in meshes and row in same_triangles)]
        for row in gone:
            self._remove(row)
            self._arrays["root"].write(row, np.array([-1]))
        for row in moved:
            self.geometry[row] = meshes[row]
        points_moved = set(index.tracker.dirty_rows("meshes", DirtyBits.POINTS).tolist())
        starting = [row for row in moved if row in points_moved and not self._can_refit(row)]
        counts.refitted = self._refit([row for row in moved if row in points_moved and self._can_refit(row)], meshes)
        for row in starting:
            self._remove(row)
        if (gone or starting) and self._live < sum(self._used.values()) / 2:
            self._restart()
            dirty = sorted({*dirty, *meshes})
        counts.built = len(starting)
        alone = [row for row in starting if meshes[row].is_moved]
        starting = [row for row in starting if not meshes[row].is_moved]
        for alike in _by_form(starting, meshes):
            batch = self._append(alike, meshes)
            self._batches.update(dict.fromkeys(alike, batch))
        new = [row for row in dirty if row in meshes and row not in self.geometry and row not in alone]
        counts.built += len(new)
        alone += [row for row in new if meshes[row].is_moved]
        new = [row for row in new if not meshes[row].is_moved]
        for alike in _by_form(new, meshes):
            self._append(alike, meshes)
        for row in alone:
            self._batches[row] = self._append([row], meshes)
        there = np.array([row for row in dirty if row in meshes], np.int64)
        self._empty = (self._empty - set(dirty)) | set(there[(self.lower[there] > self.upper[there]).any(axis=1)].tolist())
        self.is_moved = bool(self.centre.any() or (self.scale != 1.0).any())
        return counts, there

    def _can_refit(self, row: int) -> bool:
        """Whether a mesh whose points move is in a batch already, in one of its own where a caller sets them."""
        batch = self._batches.get(row)
        return batch is not None and (len(batch.rows) == 1 or not self.geometry[row].is_moved)

    def refit_to(self, row: int, points: wp.array) -> tuple[wp.array, wp.array]:
        """Move the mesh of a row that has a batch of its own to ``points`` (P,) vec3f, on the device, less its centre and over its scale.
        Device launches only. Returns `bounds_of`."""
        nodes, leaf_vertices = self._arrays["nodes"].array, self._arrays["leaf_vertices"].array
        bvh.refit_meshes(self._batches[row].bvhs, points, nodes=nodes, leaf_vertices=leaf_vertices)
        return self.bounds_of(row)

    def bounds_of(self, row: int) -> tuple[wp.array, wp.array]:
        """(lower, upper), (1,) vec3f, of a mesh that has a batch of its own, as refitted last; those on the host stay the stage's."""
        bvhs = self._batches[row].bvhs
        return bvhs.device_lower, bvhs.device_upper

    def _remove(self, row: int) -> None:
        del self.geometry[row]
        self._live -= int(self._held[row])
        self._batches.pop(row, None)

    def _restart(self) -> None:
        self.geometry.clear()
        self._batches.clear()
        self._used, self._live = dict.fromkeys(_PARTS, 0), 0
        for growing in self._arrays.values():
            growing.reset()

    def restart(self) -> None:
        """Rows have other numbers now, and are all dirty: forget all, and let go of the memory."""
        self._restart()
        self.size, self.is_moved = 0, False
        self.lower, self.upper, self.centre, self.scale = np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)), np.ones(0)
        self._held, self._empty = np.zeros(0, np.int64), set()

    def _refit(self, rows: list[int], meshes: Mapping[int, MeshGeometry]) -> int:
        batches: dict[int, _Batch] = {}
        for row in rows:
            batch, mesh = self._batches[row], meshes[row]
            self.geometry[row] = mesh
            start = batch.start[row]
            batch.points[start : start + len(mesh.points)] = self._on_device([row], [mesh])
            if mesh.radii is not None:
                batch.radii[start : start + len(mesh.points)] = self._radii([row], [mesh])
            batches[id(batch)] = batch
        for batch in batches.values():
            points = wp.array(batch.points, dtype=wp.vec3f, device=self.device)
            if batch.radii is not None:
                batch.bvhs.radii.assign(batch.radii)
            nodes, leaf_vertices = self._arrays["nodes"].array, self._arrays["leaf_vertices"].array
            bvh.refit_meshes(batch.bvhs, points, nodes=nodes, leaf_vertices=leaf_vertices)
            lower, upper = batch.bvhs.lower, batch.bvhs.upper
            for number, row in enumerate(batch.rows):
                if self._batches.get(row) is batch:
                    self.lower[row], self.upper[row] = lower[number], upper[number]
        return len(rows)

    def _on_device(self, rows: list[int], meshes: list[MeshGeometry]) -> np.ndarray:
        """(P, 3) float32, all points of ``meshes``: less their mesh's centre, over its scale, which become those of ``rows``."""
        points = _concatenate([mesh.points for mesh in meshes], (3,), np.float32)
        counts = np.array([len(mesh.points) for mesh in meshes])
        centre = self.centre[rows] = mesh_centres(points, counts)
        if centre.any():
            points = points - np.repeat(centre, counts, axis=0)
        scale = self.scale[rows] = _mesh_scales(points, counts)
        if (scale != 1.0).any():
            points = points / np.repeat(scale, counts)[:, None]
        return points.astype(np.float32, copy=False)

    def _radii(self, rows: list[int], meshes: list[MeshGeometry]) -> np.ndarray | None:
        """(P,) float32, one a point: over the scale of the mesh, after `_on_device` has set it. None: of no form that has them."""
        if meshes[0].radii is None:
            return None
        radii, scale = np.concatenate([mesh.radii for mesh in meshes]), self.scale[rows]
        if (scale != 1.0).any():
            radii = radii / np.repeat(scale, [len(mesh.points) for mesh in meshes])
        return radii.astype(np.float32, copy=False)

    def in_space_of(self, row: int, points: np.ndarray) -> np.ndarray:
        """(P, 3) float32: authored points in the object space that the device has a mesh in: less its centre, over its scale."""
        centre, scale = self.centre[row], self.scale[row]
        return points if scale == 1.0 and not centre.any() else ((points - centre) / scale).astype(np.float32)

    def _append(self, rows: list[int], meshes: Mapping[int, MeshGeometry]) -> _Batch:
        batch = [meshes[row] for row in rows]
        self._grow_bounds(max(rows) + 1)
        all_points = self._on_device(rows, batch)
        sizes = {
            "triangle": [len(mesh.triangle_face) for mesh in batch],
            "point": [len(mesh.points) for mesh in batch],
            "corner": [mesh.corner_count for mesh in batch],
            "face": [mesh.face_count if mesh.face_subset is not None else 0 for mesh in batch],
        }
        ends = {part: np.cumsum(size) for part, size in sizes.items()}
        starts = {part: ends[part] - size for part, size in sizes.items()}
        totals = {part: int(end[-1]) for part, end in ends.items()}
        self._held[rows] = np.sum(list(sizes.values()), axis=0)
        self.geometry.update(zip(rows, batch, strict=True))
        radii = self._radii(rows, batch)
        triangle_points = _concatenate([mesh.triangle_points for mesh in batch], (3,), np.int32)
        built = bvh.build_meshes(
            wp.array(all_points, dtype=wp.vec3f, device=self.device),
            wp.array(triangle_points, dtype=wp.vec3i, device=self.device),
            np.append(0, ends["triangle"]).astype(np.int32),
            starts["point"].astype(np.int32),
            device=self.device,
            node_base=self._used["node"],
            leaf_base=self._used["leaf"],
            form=batch[0].form,
            radii=radii,
            pieces=None if batch[0].pieces is None else np.concatenate([mesh.pieces for mesh in batch]),
        )
        arrays, used = self._arrays, self._used
        arrays["nodes"].write(6 * used["node"], built.nodes)
        arrays["children"].write(used["node"], built.children)
        arrays["leaf_vertices"].write(9 * used["leaf"], built.leaf_vertices)
        arrays["leaf_count"].write(used["leaf"], built.leaf_count)
        arrays["slot_triangle"].write(16 * used["leaf"], built.slot_triangle)
        arrays["triangle_points"].write(used["triangle"], triangle_points)
        arrays["triangle_face"].write(used["triangle"], _concatenate([m.triangle_face for m in batch], (), np.int32))
        arrays["triangle_corners"].write(used["triangle"], _concatenate([m.triangle_corners for m in batch], (3,), np.int32))
        arrays["face_subset"].write(used["face"], _concatenate([m.face_subset for m in batch if m.face_subset is not None], (), np.int32))
        order = np.argsort(rows)
        index = np.array(rows)[order]
        arrays["root"].write_rows(index, np.asarray(built.root)[order])
        for part in starts:
            arrays[f"{part}_start"].write_rows(index, (starts[part] + used[part])[order])
        arrays["has_subsets"].write_rows(index, np.array([m.face_subset is not None for m in batch], np.int32)[order])
        self.lower[index], self.upper[index] = np.asarray(built.lower)[order], np.asarray(built.upper)[order]
        for part in starts:
            used[part] += totals[part]
        # The build counts nodes and leaves of the whole batch; the first row carries them for the reckoning of unused space.
        node_count, leaf_count = len(built.children), len(built.leaf_count)
        self._held[rows[0]] += node_count + leaf_count
        used["node"] += node_count
        used["leaf"] += leaf_count
        self._live += int(self._held[rows].sum())
        built.nodes = built.leaf_vertices = built.children = None  # the table has them
        return _Batch(list(rows), built, all_points, dict(zip(rows, starts["point"].tolist(), strict=True)), radii)

    def _grow_bounds(self, size: int) -> None:
        if size > len(self.centre):
            more = max(size, 2 * len(self.centre)) - len(self.centre)
            self.lower, self.upper, self.centre = (np.concatenate([a, np.zeros((more, 3))]) for a in (self.lower, self.upper, self.centre))
            self.scale = np.concatenate([self.scale, np.ones(more)])
            self._held = np.concatenate([self._held, np.zeros(more, np.int64)])
        self.size = max(self.size, size)


def _by_form(rows: list[int], meshes: Mapping[int, MeshGeometry]) -> list[list[int]]:
    """Rows that can be built together."""
    groups: dict[object, list[int]] = {}
    for row in rows:
        groups.setdefault(meshes[row].form, []).append(row)
    return list(groups.values())


def mesh_centre(points: np.ndarray) -> np.ndarray:
    """(3,) float64: `mesh_centres` of one mesh."""
    return mesh_centres(points, np.array([len(points)]))[0]


def mesh_centres(points: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(M, 3) float64 to take off the float32 points of meshes, ``counts`` (M,) of ``points`` each; zero along axes where the mesh is not
    far from its origin.

    Far: by more than twice its width. A multiple of a power of two about as large as the width, so that the difference is
    exact in float32.
    """
    lower, upper = (per_mesh(extreme, points, counts).astype(np.float64) for extreme in (np.minimum, np.maximum))
    width = (upper - lower).max(axis=1, keepdims=True)
    middle = (lower + upper) / 2
    step = 2.0 ** np.floor(np.log2(np.where(width > 0.0, width, 1.0)))
    centre = np.where(np.abs(middle) > 2 * width, np.round(middle / step) * step, 0.0)
    return np.where(width > 0.0, centre, middle)  # a point: its own place


def per_mesh(extreme: np.ufunc, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(M, ...) ``extreme`` of each run of ``counts`` (M,) in ``values``; 0 where a run is empty."""
    found = np.zeros((len(counts), *values.shape[1:]), values.dtype)
    used = np.flatnonzero(counts)
    if len(used):
        found[used] = extreme.reduceat(values, (np.cumsum(counts) - counts)[used], axis=0)
    return found


def _mesh_scales(points: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(M,) float64 `mesh_scale` of points whose centre is taken off. Few meshes have to be looked at closely."""
    sizes = np.abs(points[:, 0])
    for axis in (1, 2):
        np.maximum(sizes, np.abs(points[:, axis]), out=sizes)
    largest = per_mesh(np.maximum, sizes, counts)
    smallest = per_mesh(np.minimum, np.where(sizes > 0.0, sizes, 1.0), counts)
    common = 2.0 ** (_SCALE_RANGE / 2)
    scale, ends = np.ones(len(counts)), np.cumsum(counts)
    for number in np.flatnonzero((largest > common) | (smallest < 1.0 / common)):
        scale[number] = mesh_scale(points[ends[number] - counts[number] : ends[number]], np.zeros(3))
    return scale


def mesh_scale(points: np.ndarray, centre: np.ndarray) -> float:
    """What to divide a mesh's points by, ``centre`` taken off, so that float32 products of three lengths neither overflow nor vanish.

    A power of two, so that no digit is lost; 1 for meshes of common size. Where sizes differ by more than can be had at once, the
    large ones count, unless they are few (of a sample of the points).
    """
    sizes = np.abs(points[:: max(1, len(points) // 1024)] - centre).max(axis=1) if len(points) else np.zeros(0)
    logs = np.log2(np.sort(sizes[sizes > 0.0]))
    if len(logs) == 0:
        return 1.0
    lowest = np.searchsorted(logs, logs - _SCALE_RANGE)  # first of the sizes that can be had together with one
    counts = np.arange(1, len(logs) + 1) - lowest
    top = int(np.flatnonzero(2 * counts >= counts.max())[-1])
    low, high = logs[lowest[top]], logs[top]
    if max(abs(low), abs(high)) <= _SCALE_RANGE / 2:
        return 1.0
    return 2.0 ** np.clip(np.round((low + high) / 2), -_LARGEST_SCALE, _LARGEST_SCALE)


def _concatenate(arrays: list[np.ndarray], shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return np.concatenate(arrays).astype(dtype, copy=False) if arrays else np.zeros((0, *shape), dtype)
