"""delegate.render_index: Hydra's render index as rows: what is drawn, under which row, with which ids. NumPy only; no USD, no Warp."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdwarp.delegate.change_tracker import ChangeTracker, DirtyBits
from hdwarp.delegate.rows import HostColumns, RowMap
from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import Body, Camera, Gprim, Material, MeshGeometry, Site, StageColumns

# (path, paths of its point instancers from the outermost on, which one of several with both alike)
GprimKey = tuple[str, tuple[str, ...], int]
_NO_PRIM = -1


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """What one `RenderIndex.sync` found to do, in rows."""

    meshes_inserted: int = 0
    meshes_removed: int = 0
    instances_inserted: int = 0
    instances_removed: int = 0
    instances_changed: int = 0
    materials_changed: int = 0
    bodies_changed: int = 0
    cameras_changed: int = 0


class RenderIndex:
    """Rows of everything drawn. A row keeps its number while its prim lives; what is given out (primId, materialId, bodyId,
    the rank that settles ties) are ranks in sorted path order, so that they depend on what the stage holds and not on its history."""

    def __init__(self) -> None:
        self.tracker = ChangeTracker()
        self.mesh_rows, self.gprim_rows = RowMap(), RowMap()
        self.material_rows, self.body_rows = RowMap(), RowMap()
        self.camera_rows, self.site_rows = RowMap(), RowMap()
        self.meshes: dict[int, MeshGeometry] = {}  # by row
        self.gprims: dict[GprimKey, Gprim] = {}
        self.gprim_order: list[GprimKey] = []  # primId -> key, sorted
        self.materials: dict[int, Material] = {}
        self.bodies: dict[int, Body] = {}
        self.cameras: dict[int, Camera] = {}
        self.sites: dict[int, Site] = {}
        self.camera_bodies: dict[str, Body] = {}  # camera path -> the body that carries it
        self.instances = HostColumns(
            transform=(np.float64, (3, 4), 0.0),  # world_from_object, metres
            kind=(np.int32, (), -1),  # -1: unused row
            mesh=(np.int32, (), -1),
            shape=(np.float32, (4,), 0.0),
            material=(np.int32, (), -1),
            subset_start=(np.int32, (), 0),
            body=(np.int32, (), -1),
            world=(np.int32, (), 0),
            single_sided=(np.int32, (), 0),
            instance_id=(np.int32, (), 0),
            prim_id=(np.int32, (), _NO_PRIM),
            rank=(np.int32, (), -1),
        )
        self.subset_material = np.zeros(0, np.int32)
        self.material_id = np.zeros(0, np.int32)  # by material row
        self.body_id = np.zeros(0, np.int32)  # by body row
        self.prim_paths: list[str] = []
        self.material_paths: list[str] = []
        self.body_paths: list[str] = []
        self.instance_count = 0

    # -- looking up -------------------------------------------------------------------------------------------------------

    def prim_path(self, prim_id: int) -> str | None:
        """Authored path of what ``primId`` names; None for -1 (a miss)."""
        if prim_id < 0:
            return None
        if prim_id >= len(self.prim_paths):
            raise ArgumentError(f"primId {prim_id} is out of range: the scene has {len(self.prim_paths)} prims")
        return self.prim_paths[prim_id]

    def instance_ids(self, prim_id: int, instance_id: int) -> tuple[int, ...]:
        """Authored ids of an instance, outermost instancer first; empty for what no point instancer draws."""
        if prim_id < 0:
            return ()
        instancer, ids = self.gprims[self.gprim_order[prim_id]].instancer, []
        while instancer is not None:
            instance_id, index = divmod(instance_id, max(len(instancer.ids), 1)) if instancer.outer is not None else (0, instance_id)
            ids.append(int(instancer.ids[index]))
            instancer = instancer.outer
        return tuple(reversed(ids))

    def mesh_row(self, prim: str | int) -> int:
        """Mesh row of a prim by path or primId; -1 when it is no mesh of the scene."""
        if isinstance(prim, str):
            keys = [key for key in self.gprim_order if key[0] == prim]
        else:
            keys = self.gprim_order[prim : prim + 1] if prim >= 0 else []
        if not keys:
            return -1
        return int(self.instances["mesh"][self.gprim_rows[keys[0]]])

    # -- one change after another -----------------------------------------------------------------------------------------

    def sync(self, columns: StageColumns) -> IndexCounts:
        """Make the rows those of ``columns``: insert what is new, remove what is gone, mark what differs as dirty."""
        materials_changed = self._sync_rows("materials", self.material_rows, self.materials, columns.materials)
        bodies_changed = self._sync_rows("bodies", self.body_rows, self.bodies, columns.bodies)
        cameras_changed = self._sync_rows("cameras", self.camera_rows, self.cameras, columns.cameras)
        self._sync_rows("sites", self.site_rows, self.sites, columns.sites)
        self.camera_bodies = {camera.path: columns.bodies[camera.body] for camera in columns.cameras if camera.body >= 0}
        self.material_paths, self.material_id = self._rank_paths(self.material_rows)
        self.body_paths, self.body_id = self._rank_paths(self.body_rows)
        mesh_row, meshes_inserted, meshes_removed = self._sync_meshes(columns.meshes)
        inserted, removed, changed = self._sync_gprims(columns, mesh_row)
        return IndexCounts(meshes_inserted, meshes_removed, inserted, removed, changed, materials_changed, bodies_changed, cameras_changed)

    def _sync_rows(self, table: str, rows: RowMap, items: dict, new: Sequence) -> int:
        """Rows keyed by path whose items are small records; dirty where the record differs."""
        gone = rows.keep_only(item.path for item in new)
        for start, count in gone:
            del items[start]
            self.tracker.mark(table, np.arange(start, start + count), DirtyBits.VISIBILITY)
        changed = len(gone)
        for item in new:
            known = item.path in rows
            row = rows.insert(item.path)
            if not known or not _same_record(items[row], item):
                self.tracker.mark(table, np.array([row]), DirtyBits.PARAMS if known else DirtyBits.ALL)
                changed += 1
            items[row] = item
        return changed

    @staticmethod
    def _rank_paths(rows: RowMap) -> tuple[list[str], np.ndarray]:
        """(paths sorted, rank by row)."""
        paths = sorted(rows.keys())
        rank = np.full(rows.allocator.size, -1, np.int32)
        for i, path in enumerate(paths):
            rank[rows[path]] = i
        return paths, rank

    def _sync_meshes(self, meshes: Sequence[MeshGeometry]) -> tuple[np.ndarray, int, int]:
        """Row of each mesh of ``meshes``. Meshes are known by their content: an unchanged one keeps its row and its BVH."""
        keys = [mesh_key(mesh) for mesh in meshes]
        gone = self.mesh_rows.keep_only(keys)
        for start, _ in gone:
            del self.meshes[start]
            self.tracker.mark("meshes", np.array([start]), DirtyBits.VISIBILITY)
        mesh_row = np.empty(len(keys), np.int32)
        inserted = 0
        for i, (key, mesh) in enumerate(zip(keys, meshes, strict=True)):
            known = key in self.mesh_rows
            mesh_row[i] = row = self.mesh_rows.insert(key)
            if not known:
                self.meshes[row] = mesh
                self.tracker.mark("meshes", np.array([row]), DirtyBits.ALL)
                inserted += 1
        return mesh_row, inserted, len(gone)

    def _sync_gprims(self, columns: StageColumns, mesh_row: np.ndarray) -> tuple[int, int, int]:
        gprims = _by_key(columns.gprims)
        removed = 0
        for start, count in self.gprim_rows.keep_only(gprims):
            self._drop_rows(start, count)
            removed += count
        for key, gprim in gprims.items():  # runs whose length changed move: their old rows go
            count = len(gprim.transforms)
            if key in self.gprim_rows and self.gprim_rows.run(key)[1] != count:
                self._drop_rows(*self.gprim_rows.run(key))
            self.gprim_rows.insert(key, count)
        self.gprims = gprims
        self.gprim_order = sorted(gprims)
        self.prim_paths = [path for path, _, _ in self.gprim_order]
        self.instances.reserve(self.gprim_rows.allocator.size)
        inserted, changed = self._write_instances(columns, mesh_row)
        return inserted, removed, changed

    def _drop_rows(self, start: int, count: int) -> None:
        self.instances.clear_rows(start, count)
        self.tracker.mark("instances", np.arange(start, start + count), DirtyBits.VISIBILITY)

    def _write_instances(self, columns: StageColumns, mesh_row: np.ndarray) -> tuple[int, int]:
        """All instance columns of all gprims in primId order at once, compared with what the rows hold."""
        gprims = [self.gprims[key] for key in self.gprim_order]
        runs = np.array([self.gprim_rows.run(key) for key in self.gprim_order], np.int64).reshape(-1, 2)
        counts = runs[:, 1]
        self.instance_count = total = int(counts.sum())
        if total == 0:
            self.subset_material = np.zeros(0, np.int32)
            return 0, 0
        rows = np.repeat(runs[:, 0] - (np.cumsum(counts) - counts), counts) + np.arange(total)
        material_row = _rows_of(columns.materials, self.material_rows)
        body_row = _rows_of(columns.bodies, self.body_rows)

        def spread(values: list) -> np.ndarray:
            return np.repeat(np.array(values, np.int32), counts)

        subsets, subset_start = [], []
        for gprim in gprims:
            subset_start.append(len(subsets))
            subsets.extend(gprim.subset_materials)
        subset_material = material_row[np.array(subsets, np.int64)] if subsets else np.zeros(0, np.int32)
        subsets_changed = not np.array_equal(subset_material, self.subset_material)
        self.subset_material = subset_material
        ids = [g.instance_ids if g.instance_ids is not None else np.zeros(len(g.transforms), np.int32) for g in gprims]
        new = {
            "transform": (np.concatenate([g.transforms[:, :3, :] for g in gprims]), DirtyBits.TRANSFORM),
            "kind": (spread([int(g.kind) for g in gprims]), DirtyBits.ALL),
            "mesh": (np.append(mesh_row, np.int32(-1))[spread([g.mesh for g in gprims])], DirtyBits.TOPOLOGY | DirtyBits.TRANSFORM),
            "shape": (np.repeat(np.array([g.shape for g in gprims], np.float32), counts, axis=0), DirtyBits.TOPOLOGY | DirtyBits.TRANSFORM),
            "material": (material_row[spread([g.material for g in gprims])], DirtyBits.MATERIAL),
            "subset_start": (spread(subset_start), DirtyBits.MATERIAL),
            "body": (body_row[spread([g.body for g in gprims])], DirtyBits.TRANSFORM | DirtyBits.IDS),
            "world": (np.zeros(total, np.int32), DirtyBits.ALL),
            "single_sided": (spread([not g.double_sided for g in gprims]), DirtyBits.PARAMS),
            "instance_id": (np.concatenate(ids).astype(np.int32), DirtyBits.IDS),
            "prim_id": (np.repeat(np.arange(len(gprims), dtype=np.int32), counts), DirtyBits.IDS),
            "rank": (np.arange(total, dtype=np.int32), DirtyBits.IDS),
        }
        fresh = self.instances["kind"][rows] < 0
        touched = fresh.copy()
        for name, (values, bits) in new.items():
            column = self.instances[name]
            old = column[rows]
            differs = (old != values).reshape(total, -1).any(axis=1)
            self.tracker.mark("instances", rows[differs], bits)
            touched |= differs
            column[rows] = values
        self.tracker.mark("instances", rows[fresh], DirtyBits.ALL)
        if subsets_changed:
            self.tracker.mark("instances", rows[:1], DirtyBits.MATERIAL)
        return int(fresh.sum()), int((touched & ~fresh).sum())


def mesh_key(mesh: MeshGeometry) -> bytes:
    """Content of a mesh as a key: equal keys, equal pictures."""
    digest = hashlib.blake2b(digest_size=16)
    arrays = [mesh.points, mesh.triangle_corners, mesh.triangle_points, mesh.triangle_face, mesh.face_subset]
    for name, primvar in [("normals", mesh.normals), *sorted(mesh.primvars.items())]:
        if primvar is not None:
            digest.update(f"{name}:{primvar.interpolation}".encode())
            arrays += primvar.content()
    digest.update(f"{mesh.face_count}:{mesh.corner_count}".encode())
    for array in arrays:
        digest.update(b"-" if array is None else f"{array.shape}".encode())
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def _by_key(gprims: Sequence[Gprim]) -> dict[GprimKey, Gprim]:
    """Gprims by key. One prim can be drawn twice by the same instancers: as a prototype, and as part of another one above it."""
    found: dict[GprimKey, Gprim] = {}
    for gprim in gprims:
        if len(gprim.transforms) == 0:
            continue
        chain, instancer = [], gprim.instancer
        while instancer is not None:
            chain.append(instancer.path)
            instancer = instancer.outer
        path, instancers, number = gprim.path, tuple(reversed(chain)), 0
        while (path, instancers, number) in found:
            number += 1
        found[path, instancers, number] = gprim
    return found


def _rows_of(items: Sequence, rows: RowMap) -> np.ndarray:
    """Index into the adapter's list -> row; index -1 (none) -> -1."""
    return np.array([rows[item.path] for item in items] + [-1], np.int32)


def _same_record(a: object, b: object) -> bool:
    """Field by field equality of two records of one dataclass, arrays included."""
    return all(_same_value(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)


def _same_value(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
