"""tables.instances: one device row an instance: transform, geometry, ids; posing by bodies; bounds for the top-level trees."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.delegate.rows import HostColumns, is_sparse
from hdwarp.launch import launch
from hdwarp.tables.attributes import AttributeColumns, PrimRows
from hdwarp.tables.bodies import BodyTable
from hdwarp.tables.instance_kernels import PosedColumns, bound_copies, place_copies, write_bounds, write_poses
from hdwarp.tables.meshes import MeshTable
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import NOT_COLLIDER, NOT_VISUAL, ONE_SIDED, OTHER_LOD, SINGLE_SIDED, InstanceColumns
from hdwarp.tables.worlds import WorldRows, WorldTable

_ALL = slice(None)
_PLACED = {"world_from_object": wp.mat33f, "translation": wp.vec3d, "world": wp.int32, "source": wp.int32}
_SOURCES = {
    "kind": wp.int32,
    "flags": wp.int32,
    "geometry": wp.int32,
    "shape": wp.vec4f,
    "rank": wp.int32,
    "body": wp.int32,
    "prim_id": wp.int32,
    "instance_id": wp.int32,
    "material": wp.int32,
    "subset_start": wp.int32,
    "light_links": wp.int32,
}


class InstanceTable:
    """Device columns of the render index's instance rows, each in the frame of its world, and of their copies in other worlds."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.rows = WorldRows()
        # Unused rows draw nothing.
        self._placed = {name: GrowingArray(dtype, device, fill=None) for name, dtype in _PLACED.items()}
        self._sources = {name: GrowingArray(dtype, device, fill=-1 if name == "kind" else 0) for name, dtype in _SOURCES.items()}
        self._subset_material = GrowingArray(wp.int32, device)
        self._object_lower = GrowingArray(wp.vec3f, device)
        self._object_upper = GrowingArray(wp.vec3f, device)
        self._lower, self._upper = GrowingArray(wp.vec3f, device, fill=None), GrowingArray(wp.vec3f, device, fill=None)
        self._all_rows = wp.zeros(0, dtype=wp.int32, device=device)
        self._is_posed = np.zeros(0, bool)  # by row of the index: bodies carry it
        self.attributes = AttributeColumns(device)
        self._index: RenderIndex | None = None
        self.posed: PosedColumns | None = None  # rows that bodies carry, and their place in the frame of their body; None: there are none

    @property
    def size(self) -> int:
        """Rows, those of copies included."""
        return self.rows.size

    @property
    def is_sparse(self) -> bool:
        """Far fewer rows are in use than there is room for: worlds have fewer or smaller copies."""
        return is_sparse(self.size, self._placed["source"].array.shape[0])

    def restart(self) -> None:
        """Forget all, and let go of the memory."""
        self.rows = WorldRows()
        for growing in (*self._growing(), self._object_lower, self._object_upper, self._lower, self._upper):
            growing.reset()
        self._is_posed = np.zeros(0, bool)
        self.posed = None

    def columns(self, *, flags: wp.array | None = None) -> InstanceColumns:
        """The struct kernels take. ``flags``: a sensor's own in place of the table's."""
        columns = InstanceColumns()
        for name, growing in (*self._placed.items(), *self._sources.items()):
            setattr(columns, name, growing.array)
        columns.subset_material = self._subset_material.array
        if flags is not None:
            columns.flags = flags
        return columns

    def attribute(self, name: str) -> wp.array:
        """A user attribute (authored on what is drawn) as a device column, a row an instance and world: the plane `instanceRow` has the row
        a pixel sees. NaN where a prim has none, and in rows that no prim has; float32, or vec2f to vec4f. Kernels may write it: see
        `AttributeColumns` for how long that stays; of a point instancer's instances each keeps its own by its place among them.

        Raises ArgumentError when nothing drawn has it, or it is no number.
        """
        return self.attributes.get(name, self._prim_rows)

    def _prim_rows(self) -> PrimRows:
        if self._index is None:
            return PrimRows([], [], np.zeros(0, np.int64), np.zeros(0, np.int64))
        index = self._index
        source, world = self.rows.copies()
        source = np.concatenate([np.arange(self.rows.capacity), source])
        world = np.concatenate([index.instances["world"][: self.rows.capacity], world])
        prim = np.where(index.instances["kind"] >= 0, index.instances["prim_id"], -1)[source]
        start = np.array([index.gprim_rows[key] for key in index.gprim_order] + [0], np.int64)  # the last for rows of no prim
        return PrimRows(index.prim_paths, list(index.gprim_order), prim, world, source - start[prim])

    def sync_attributes(self) -> None:
        """Follow which prims the rows are of."""
        if self.attributes:
            self.attributes.follow(self._prim_rows())

    @property
    def bounds(self) -> tuple[wp.array, wp.array]:
        """(lower, upper): wp.array[vec3f] of full capacity, a row an instance; inverted where nothing is drawn."""
        return self._lower.array, self._upper.array

    def _growing(self) -> list[GrowingArray]:
        return [*self._placed.values(), *self._sources.values(), self._subset_material]

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in self._growing()]

    def device_arrays(self) -> list[wp.array]:
        """All that is held on the device."""
        bounds = self._object_lower, self._object_upper, self._lower, self._upper
        posed = [] if self.posed is None else [getattr(self.posed, name) for name in PosedColumns.vars]
        return [growing.array for growing in (*self._growing(), *bounds)] + posed

    def write_mesh_bounds(self, meshes: MeshTable, rows: np.ndarray) -> None:
        """Object bounds of mesh ``rows`` (ascending)."""
        self._object_lower.write_rows(rows, meshes.lower[rows])
        self._object_upper.write_rows(rows, meshes.upper[rows])

    def move_mesh_bounds(self, row: int, lower: wp.array, upper: wp.array) -> None:
        """Object bounds of one mesh, (1,) vec3f on the device. Device work only."""
        wp.copy(self._object_lower.array, lower, dest_offset=row, count=1)
        wp.copy(self._object_upper.array, upper, dest_offset=row, count=1)

    def write_subsets(self, index: RenderIndex, rows: np.ndarray) -> None:
        self._subset_material.write_rows(rows, index.subsets["material"][rows])

    def sync_rows(self, index: RenderIndex) -> bool:
        """Follow which rows there are; whether rows of copies are others now: then all of their prototypes are to be synced."""
        self._index = index
        host, rows = index.instances, self.rows
        capacity = rows.capacity
        changed = rows.sync(index.worlds, host)
        for growing in (*self._placed.values(), self._lower, self._upper):
            growing.reserve(rows.size)
        for growing in self._sources.values():
            growing.reserve(host.capacity)
        if host.capacity > capacity:
            self._placed["source"].write(capacity, np.arange(capacity, host.capacity))
        if changed and rows.has_copies:
            source, world = rows.copies()
            self._placed["source"].write(rows.capacity, source)
            self._placed["world"].write(rows.capacity, world)
        return changed

    def sync(self, index: RenderIndex, meshes: MeshTable, worlds: WorldTable, rows: np.ndarray, hidden: np.ndarray) -> None:
        """Upload ``rows`` (ascending) of the index and all their copies. ``hidden`` (rows of the index,) bool: rows of which nothing is
        drawn."""
        if len(rows) == 0:
            return
        host = index.instances
        self.place(index, meshes, worlds, rows)
        self._placed["world"].write_rows(rows, host["world"][rows])
        values = {
            "kind": np.where(hidden[rows], -1, host["kind"][rows]),
            "flags": self.flags_of(index, rows),
            "geometry": host["mesh"][rows],
            "shape": host["shape"][rows],
        }
        for name in ("rank", "body", "prim_id", "instance_id", "material", "subset_start", "light_links"):
            values[name] = host[name][rows]
        for name, items in values.items():
            self._sources[name].write_rows(rows, items)

    @staticmethod
    def flags_of(index: RenderIndex, rows: np.ndarray | slice = _ALL) -> np.ndarray:
        """(n,) int32 flags of ``rows`` of the index: see `InstanceColumns`."""
        host = index.instances
        other = host["other_lod"][rows] != 0
        flags = SINGLE_SIDED * (host["single_sided"][rows] != 0) + NOT_VISUAL * ((host["visual"][rows] == 0) | other)
        flags += OTHER_LOD * (other & (host["collision"][rows] == 0))
        flags += ONE_SIDED * (host["single_sided"][rows] == 2)
        return (flags + NOT_COLLIDER * (host["collision"][rows] == 0)).astype(np.int32)

    def place(self, index: RenderIndex, meshes: MeshTable, worlds: WorldTable, rows: np.ndarray) -> None:
        """Upload where ``rows`` (ascending) of the index and their copies are."""
        if len(rows) == 0:
            return
        host = index.instances
        linear, translation = place(host, meshes, worlds, rows)
        for name, items in (("world_from_object", linear), ("translation", translation)):
            self._placed[name].write_rows(rows, items)
        if not self.rows.has_copies:
            return
        if not worlds.is_turned:
            count = self.rows.size - self.rows.capacity
            launch(place_copies, count, [self.rows.capacity, self.columns()], device=self.device, grain=4096)
            return
        device, _, linear, translation = self.spread(host, meshes, worlds, rows, linear, translation)
        copies = slice(len(rows), None)
        for name, items in (("world_from_object", linear), ("translation", translation)):
            self._placed[name].write_rows(device[copies], items[copies])

    def spread(
        self,
        host: HostColumns,
        meshes: MeshTable,
        worlds: WorldTable,
        rows: np.ndarray,
        linear: np.ndarray,
        translation: np.ndarray,
        transform: np.ndarray | None = None,
        pivot: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(device rows, which of ``rows`` each is, linear, translation) of ``rows`` of the index, as `place` gives them, and their copies.
        Frames of copies that are not turned hold the very numbers of the prototype's."""
        device, which, world = self.rows.of(rows)
        linear, translation = linear[which], translation[which]
        if worlds.is_turned and len(world):
            of = which[len(rows) :]
            turned = place(host, meshes, worlds, rows[of], None if transform is None else transform[of], world, pivot)
            linear[len(rows) :], translation[len(rows) :] = turned
        return device, which, linear, translation

    def write_ids(self, index: RenderIndex, rows: np.ndarray) -> None:
        """Upload what is given out for ``rows`` (ascending) of the index, of which nothing else is new."""
        for name in ("rank", "prim_id", "instance_id"):
            self._sources[name].write_rows(rows, index.instances[name][rows])

    def are_carried(self, index: RenderIndex, rows: np.ndarray) -> bool:
        """Whether bodies carry any of ``rows`` of the index, or did when `sync_bodies` last looked."""
        return bool((index.instances["body"][rows] >= 0).any() or self._is_posed[rows[rows < len(self._is_posed)]].any())

    def sync_bodies(self, index: RenderIndex, meshes: MeshTable, worlds: WorldTable, bodies: BodyTable) -> None:
        """Where the instances that bodies carry sit in them. A body of another world than its instances' carries nothing."""
        host = index.instances
        self._is_posed = (host["body"] >= 0) & (host["kind"] >= 0)
        self._is_posed[self._is_posed] = bodies.world_of[host["body"][self._is_posed]] == host["world"][self._is_posed]
        rows = np.flatnonzero(self._is_posed)
        if len(rows) == 0:
            self.posed = None
            return
        linear, translation = place(host, meshes, worlds, rows, world=np.full(len(rows), -1))  # as in the prototype: not turned
        body = host["body"][rows]
        from_world = bodies.from_world[body]
        offset = np.einsum("nij,nj->ni", from_world[:, :3, :3], translation) + from_world[:, :3, 3]
        device, which, _ = self.rows.of(rows)
        self.posed = PosedColumns()
        self.posed.row = wp.array(device, dtype=wp.int32, device=self.device)
        self.posed.item = wp.array(which, dtype=wp.int32, device=self.device)
        self.posed.slot = wp.array(bodies.slot[body], dtype=wp.int32, device=self.device)
        self.posed.body_from_object = wp.array(from_world[:, :3, :3] @ linear, dtype=wp.mat33d, device=self.device)
        self.posed.body_offset = wp.array(offset, dtype=wp.vec3d, device=self.device)
        self.posed.body_start = wp.array(bodies.world_start, dtype=wp.int32, device=self.device)

    @property
    def object_bounds(self) -> tuple[wp.array, wp.array]:
        """(lower, upper): wp.array[vec3f] by mesh row."""
        return self._object_lower.array, self._object_upper.array

    def reset_bounds(self, worlds: WorldTable) -> None:
        """Compute all bounds anew, everything being where the stage has it."""
        bounds = self._lower.array, self._upper.array
        if not self.rows.has_copies or worlds.is_turned:
            self._bound(self.size, self._all_rows)
            return
        self._bound(self.rows.capacity, self._all_rows)
        inputs = [self.rows.capacity, self._placed["source"].array, *bounds]
        launch(bound_copies, self.size - self.rows.capacity, inputs, device=self.device, grain=8192)

    def update_bounds(self, rows: np.ndarray | wp.array) -> None:
        """Recompute the bounds of device ``rows`` on the device. Of a wp.array[int32] nothing is allocated."""
        self._bound(len(rows), wp.array(rows, dtype=wp.int32, device=self.device) if isinstance(rows, np.ndarray) else rows)

    def _bound(self, count: int, chosen: wp.array) -> None:
        if count == 0:
            return
        launch(
            write_bounds,
            count,
            [self.columns(), chosen, self._object_lower.array, self._object_upper.array],
            [self._lower.array, self._upper.array],
            device=self.device,
            grain=4096,
        )

    def pose(self, body_q: wp.array) -> None:
        """Move the instances that bodies carry to ``body_q`` (wp.array[transformf], frames of their worlds) and update the bounds."""
        if self.posed is None:
            return
        launch(
            write_poses,
            self.posed.row.shape[0],
            [self.columns(), body_q, self.posed, *self.object_bounds],
            [self._lower.array, self._upper.array],
            device=self.device,
            grain=1024,
        )


def place(
    host: HostColumns,
    meshes: MeshTable,
    worlds: WorldTable,
    rows: np.ndarray,
    transform: np.ndarray | None = None,
    world: np.ndarray | None = None,
    pivot: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3, 3) and (n, 3) float64: linear part and translation of ``rows`` of the index in the frame of their world, the mesh's centre
    and scale folded in. ``transform`` (n, 3, 4): other world_from_object than the rows'; ``world`` (n,): of their copies there;
    ``pivot``: other pivots than those of now."""
    transform, mesh = host["transform"][rows] if transform is None else transform, host["mesh"][rows]
    pivot = worlds.pivot if pivot is None else pivot
    linear, translation = transform[:, :, :3], transform[:, :, 3] - pivot[host["world"][rows] + 1]
    if meshes.is_moved:
        centre = np.where(mesh[:, None] >= 0, meshes.centre[mesh], 0.0)
        translation = translation + np.einsum("nij,nj->ni", linear, centre)
        linear = linear * np.where(mesh >= 0, meshes.scale[mesh], 1.0)[:, None, None]
    if worlds.is_turned:
        world = host["world"][rows] if world is None else world
        turn = np.where((world >= 0)[:, None, None], worlds.turn[world], np.eye(3))
        linear, translation = turn @ linear, np.einsum("nij,nj->ni", turn, translation)
    return linear, translation
