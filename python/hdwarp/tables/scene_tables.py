"""tables.scene_tables: all device tables of one scene, kept in step with the render index; posing and top-level trees. Knows no USD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.stage.columns import GeometryKind
from hdwarp.tables import bvh
from hdwarp.tables.cameras import CameraTable, quaternion_from_matrix
from hdwarp.tables.instances import InstanceTable
from hdwarp.tables.materials import MaterialTable
from hdwarp.tables.meshes import MeshTable
from hdwarp.tables.primvars import build_primvar, primvar_names
from hdwarp.tables.structs import PrimvarColumns, TopLevel, WorldColumns, vec8f, vec8i

_NEAR_ORIGIN = 8192.0  # metres: within this the world's frame is the stage's own


@dataclass(frozen=True, slots=True)
class TableCounts:
    """What one `SceneTables.sync` did."""

    rows_uploaded: int = 0
    blas_built: int = 0
    tlas_built: int = 0


class BodyTable:
    """Rigid bodies: ``label`` (prim paths, rank order), ``body_q`` at the stage's pose, in the frame of their world."""

    def __init__(self) -> None:
        self.label: list[str] = []
        self.pose = np.zeros((0, 7), np.float32)

    def __len__(self) -> int:
        return len(self.label)


class WorldTable:
    """Worlds: ``origin`` (count, 3) float64, the place of each world's frame on the stage [m]."""

    def __init__(self) -> None:
        self.count = 1
        self.origin = np.zeros((1, 3))

    def __len__(self) -> int:
        return self.count


class SceneTables:
    """Device columns and trees. ``version`` counts syncs that changed anything: who keeps arrays or plans makes them anew."""

    def __init__(self, device: wp.Device | str) -> None:
        self.device = wp.get_device(device)
        self.meshes = MeshTable(self.device)
        self.instances = InstanceTable(self.device)
        self.materials = MaterialTable(self.device)
        self.cameras = CameraTable(self.device)
        self.bodies, self.worlds = BodyTable(), WorldTable()
        self.version = 0
        self.has_meshes = self.has_shapes = False
        self.has_cutouts = False  # faces of some meshes are cut away, others of the same meshes are not
        self.is_posed = False  # `pose` has moved bodies since the last upload
        self._top: bvh.TopLevelBvh | None = None
        self._no_nodes = wp.zeros(6, dtype=vec8f, device=self.device)
        self._no_children = wp.zeros(1, dtype=vec8i, device=self.device)
        self._primvars: dict[tuple[str, int | None], PrimvarColumns] = {}
        self._index: RenderIndex | None = None
        self.world_columns = WorldColumns()
        self.world_columns.root = wp.full(1, -1, dtype=wp.int32, device=self.device)
        self.world_columns.global_root = wp.full(1, -1, dtype=wp.int32, device=self.device)
        self.world_columns.global_offset = wp.zeros(1, dtype=wp.vec3d, device=self.device)

    @property
    def top_level(self) -> TopLevel:
        """The trees over instances; a scene that draws nothing has none, and its worlds' roots are -1."""
        columns = TopLevel()
        if self._top is None:
            columns.nodes, columns.children = self._no_nodes, self._no_children
        else:
            columns.nodes, columns.children = self._top.nodes, self._top.children
        return columns

    def sync(self, index: RenderIndex) -> TableCounts:
        """Bring the device in step with the index: upload dirty rows, build new BVHs, rebuild the top-level tree if anything moved."""
        self._index = index
        tracker = index.tracker
        if tracker.is_clean():
            return TableCounts()
        built = self.meshes.sync(index)
        origin = world_origin(index, self.meshes)
        moved = not np.array_equal(origin, self.worlds.origin[0])
        self.worlds.origin[0] = origin
        self._bodies_from_world = bodies_from_world = self._sync_bodies(index, origin)
        rows = tracker.dirty_rows("instances")
        if moved or self.is_posed or len(tracker.dirty_rows("bodies")):
            rows = np.arange(index.instances.capacity)
            self.is_posed = False
        self.instances.sync(index, self.meshes, origin, rows, bodies_from_world)
        self.materials.sync(index.materials, index.material_id)
        cameras = list(index.cameras.values())
        owners = [index.body_rows[index.camera_bodies[c.path].path] if c.path in index.camera_bodies else -1 for c in cameras]
        self.cameras.sync(cameras, owners, origin, bodies_from_world)
        self._primvars.clear()
        kinds = index.instances["kind"]
        self.has_meshes, self.has_shapes = bool((kinds == int(GeometryKind.MESH)).any()), bool((kinds > int(GeometryKind.MESH)).any())
        tlas_built = self._build_top_level(index)
        for table in tracker.TABLES:
            tracker.clear(table)
        self.version += 1
        return TableCounts(rows_uploaded=len(rows), blas_built=built, tlas_built=tlas_built)

    def _sync_bodies(self, index: RenderIndex, origin: np.ndarray) -> np.ndarray:
        """Host pose of every body, and (rows, 4, 4) float64 bodies_from_world."""
        size = max(index.bodies, default=-1) + 1
        from_world = np.tile(np.eye(4), (size, 1, 1))
        self.bodies.pose = np.tile(np.array([0, 0, 0, 0, 0, 0, 1], np.float32), (size, 1))
        self.bodies.label = [""] * size
        for row, body in index.bodies.items():
            pose = body.world_from_body.copy()
            pose[:3, 3] -= origin
            from_world[row] = np.linalg.inv(pose)
            self.bodies.pose[row] = np.concatenate([pose[:3, 3], quaternion_from_matrix(pose[:3, :3])])
            self.bodies.label[row] = body.path
        return from_world

    def _build_top_level(self, index: RenderIndex) -> int:
        self.instances.update_bounds()
        hidden, self.has_cutouts = cut_away_rows(index)
        live = np.flatnonzero((index.instances["kind"] >= 0) & ~hidden)
        lower, upper = self.instances.bounds
        if len(live):
            drawn = (lower.numpy()[live] <= upper.numpy()[live]).all(axis=1)  # a mesh without triangles draws nothing
            live = live[drawn]
        if len(live) == 0:
            self._top = None
            self.world_columns.root.fill_(-1)
            return 0
        order = live[np.argsort(index.instances["rank"][live])]
        self._top = bvh.build_top_level(lower, upper, np.array([0, len(order)], np.int32), order.astype(np.int32), device=self.device)
        self.world_columns.root.assign(np.asarray(self._top.root, np.int32))
        return 1

    def pose(self, body_q: wp.array) -> None:
        """Move everything bodies carry to ``body_q`` and refit: device work only, nothing allocated."""
        self.is_posed = True
        self.instances.pose(body_q)
        if self._top is not None:
            bvh.refit_top_level(self._top, *self.instances.bounds)

    def unpose(self) -> None:
        """Put everything back to where the stage has it, exactly: float64 places, no way through ``body_q``."""
        if not self.is_posed:
            return
        self.is_posed = False
        rows = np.flatnonzero(self._index.instances["body"] >= 0)
        self.instances.sync(self._index, self.meshes, self.worlds.origin[0], rows, self._bodies_from_world)
        self.instances.update_bounds()
        if self._top is not None:
            bvh.refit_top_level(self._top, *self.instances.bounds)

    def primvar(self, name: str, width: int | None = None) -> PrimvarColumns:
        """Device columns of a primvar, made at first use and kept until the scene changes."""
        key = (name, width)
        if key not in self._primvars:
            self._primvars[key] = build_primvar(self._index, name, self.device, width=width)
        return self._primvars[key]

    def primvar_names(self) -> list[str]:
        return primvar_names(self._index)


def cut_away_rows(index: RenderIndex) -> tuple[np.ndarray, bool]:
    """(rows of instances that are cut away whole, whether faces of other ones are): by constant opacities below their threshold."""
    hidden, partly = np.zeros(index.instances.capacity, bool), False
    cut = {row for row, material in index.materials.items() if material.is_cut_away}
    if not cut:
        return hidden, partly
    for key in index.gprim_order:
        start, count = index.gprim_rows.run(key)
        own = int(index.instances["material"][start]) in cut
        first = int(index.instances["subset_start"][start])
        bound = index.subset_material[first : first + len(index.gprims[key].subset_materials)]
        parts = [own if material < 0 else int(material) in cut for material in bound]
        if own and all(parts):
            hidden[start : start + count] = True
        elif own or any(parts):
            partly = True
    return hidden, partly


def world_origin(index: RenderIndex, meshes: MeshTable) -> np.ndarray:
    """(3,) float64: zero for scenes near the stage's origin, else a whole number of metres near the middle of what is drawn."""
    live = index.instances["kind"] >= 0
    if not live.any():
        return np.zeros(3)
    transform, mesh = index.instances["transform"][live], index.instances["mesh"][live]
    places = transform[:, :, 3]
    if meshes.centre.any():
        centre = np.where(mesh[:, None] >= 0, meshes.centre[mesh], 0.0)
        places = places + np.einsum("nij,nj->ni", transform[:, :, :3], centre)
    if float(np.abs(places).max()) < _NEAR_ORIGIN:
        return np.zeros(3)
    return np.round(np.median(places, axis=0))
