"""tables.instances: one device row an instance: transform, geometry, ids; posing by bodies; bounds for the top-level trees."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.delegate.rows import HostColumns, is_sparse
from hdwarp.launch import launch
from hdwarp.tables.attributes import AttributeColumns, PrimRows
from hdwarp.tables.bodies import BodyTable
from hdwarp.tables.meshes import MeshTable
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import (
    CAPSULE,
    CONE,
    NOT_COLLIDER,
    NOT_VISUAL,
    ONE_SIDED,
    OTHER_LOD,
    PLANE,
    SINGLE_SIDED,
    SPHERE,
    InstanceColumns,
)
from hdwarp.tables.worlds import WorldRows, WorldTable

_EMPTY = wp.constant(3.0e38)  # bounds of rows that draw nothing are inverted


@wp.func
def outward(value: wp.float64, sign: wp.float64) -> wp.float32:
    """float64 to float32, rounded away from the box: ``sign`` -1 for a lower bound, +1 for an upper one."""
    return wp.float32(value + sign * wp.abs(value) * wp.float64(1.2e-7))


@wp.func
def narrow_matrix(m: wp.mat33d) -> wp.mat33f:
    out = wp.mat33f()
    for i in range(3):
        for j in range(3):
            out[i, j] = wp.float32(m[i, j])
    return out


@wp.struct
class Placed:
    """world = linear * object + translation."""

    linear: wp.mat33d
    translation: wp.vec3d


@wp.struct
class PosedColumns:
    """Instances that bodies carry: a row each, and what they have in common with their copies in other worlds."""

    row: wp.array[wp.int32]  # instance row
    item: wp.array[wp.int32]  # its row in what follows
    slot: wp.array[wp.int32]  # number of the body among those of its world
    body_from_object: wp.array[wp.mat33d]
    body_offset: wp.array[wp.vec3d]
    body_start: wp.array[wp.int32]  # by world + 1: first body of the world


@wp.func
def body_of(instances: InstanceColumns, posed: PosedColumns, row: wp.int32, item: wp.int32) -> wp.int32:
    """Row of the body that carries an instance."""
    return posed.body_start[instances.world[row] + 1] + posed.slot[item]


@wp.func
def is_pose(pose: wp.transformf) -> wp.bool:
    """Whether its numbers are finite and its quaternion has a length."""
    p, q = wp.transform_get_translation(pose), wp.transform_get_rotation(pose)
    length = wp.abs(q[0]) + wp.abs(q[1]) + wp.abs(q[2]) + wp.abs(q[3])
    return wp.isfinite(p) and wp.isfinite(length) and length > 0.0


@wp.func
def carried(pose: wp.transformf, body_from_object: wp.mat33d, body_offset: wp.vec3d) -> Placed:
    """Where a body at ``pose`` has what it carries, composed in float64."""
    p, q = wp.transform_get_translation(pose), wp.transform_get_rotation(pose)
    if not is_pose(pose):
        p = wp.vec3f(wp.NAN, wp.NAN, wp.NAN)  # a body without a pose is nowhere, and so is what it carries
    x, y, z, w = wp.float64(q[0]), wp.float64(q[1]), wp.float64(q[2]), wp.float64(q[3])
    s = wp.float64(2.0) / (x * x + y * y + z * z + w * w)  # makes up for a quaternion whose length is not quite 1
    one = wp.float64(1.0)
    turn = wp.mat33d(
        one - s * (y * y + z * z),
        s * (x * y - z * w),
        s * (x * z + y * w),
        s * (x * y + z * w),
        one - s * (x * x + z * z),
        s * (y * z - x * w),
        s * (x * z - y * w),
        s * (y * z + x * w),
        one - s * (x * x + y * y),
    )
    shift = turn * body_offset
    placed = Placed()
    placed.linear = turn * body_from_object
    placed.translation = wp.vec3d(wp.float64(p[0]) + shift[0], wp.float64(p[1]) + shift[1], wp.float64(p[2]) + shift[2])
    return placed


@wp.func
def round_reach(kind: wp.int32, shape: wp.vec4f, row: wp.vec3d) -> wp.vec2d:
    """Least and greatest value of ``row`` . point over a sphere, a cone (its end discs) or a capsule (its end balls)."""
    across = wp.sqrt(row[0] * row[0] + row[1] * row[1])
    whole = wp.sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2])
    if kind == SPHERE:
        return wp.vec2d(-whole, whole)
    low, high, half = wp.float64(shape[0]), wp.float64(shape[1]), wp.float64(shape[2])
    low_z, high_z, low_reach, high_reach = -half, half, low * across, high * across
    if kind == CAPSULE:
        slope = wp.float64(0.5) * (high - low) / half
        slant = wp.sqrt(wp.float64(1.0) + slope * slope)
        low_z, high_z = slope * low - half, slope * high + half
        low_reach, high_reach = low * slant * whole, high * slant * whole
    a, b = row[2] * low_z, row[2] * high_z
    return wp.vec2d(wp.min(a - low_reach, b - high_reach), wp.max(a + low_reach, b + high_reach))


@wp.struct
class Box:
    """Inverted: nothing."""

    lower: wp.vec3f
    upper: wp.vec3f


@wp.func
def world_box(kind: wp.int32, shape: wp.vec4f, lo: wp.vec3f, hi: wp.vec3f, m: wp.mat33f, t: wp.vec3d) -> Box:
    """World bounds, rounded outward, of geometry with the object box ``lo`` to ``hi``: of spheres, cones and capsules exact, else around
    the transformed object box."""
    box = Box()
    if kind < 0 or lo[0] > hi[0]:
        box.lower = wp.vec3f(_EMPTY, _EMPTY, _EMPTY)
        box.upper = wp.vec3f(-_EMPTY, -_EMPTY, -_EMPTY)
        return box
    if kind == PLANE and not (shape[0] < _EMPTY and shape[1] < _EMPTY):
        box.lower = wp.vec3f(-_EMPTY, -_EMPTY, -_EMPTY)  # without end: the tree keeps such boxes apart
        box.upper = wp.vec3f(_EMPTY, _EMPTY, _EMPTY)
        return box
    for i in range(3):
        reach = wp.vec2d()
        if kind == SPHERE or kind == CONE or kind == CAPSULE:
            reach = round_reach(kind, shape, wp.vec3d(wp.float64(m[i, 0]), wp.float64(m[i, 1]), wp.float64(m[i, 2])))
        else:
            for j in range(3):
                a = wp.float64(m[i, j]) * wp.float64(lo[j])
                b = wp.float64(m[i, j]) * wp.float64(hi[j])
                reach[0] += wp.min(a, b)
                reach[1] += wp.max(a, b)
        box.lower[i] = outward(wp.float64(t[i]) + reach[0], wp.float64(-1.0))
        box.upper[i] = outward(wp.float64(t[i]) + reach[1], wp.float64(1.0))
    if not (wp.isfinite(box.lower) and wp.isfinite(box.upper)):  # a pose that is no number: nothing is there
        box.lower = wp.vec3f(_EMPTY, _EMPTY, _EMPTY)
        box.upper = wp.vec3f(-_EMPTY, -_EMPTY, -_EMPTY)
    return box


@wp.func
def instance_box(
    instances: InstanceColumns,
    source: wp.int32,
    linear: wp.mat33f,
    translation: wp.vec3d,
    object_lower: wp.array[wp.vec3f],
    object_upper: wp.array[wp.vec3f],
) -> Box:
    """World bounds of what ``source`` is, where ``linear`` and ``translation`` put it: see `world_box`."""
    kind = instances.kind[source]
    lo = wp.vec3f(-1.0, -1.0, -1.0)
    hi = wp.vec3f(1.0, 1.0, 1.0)
    if instances.geometry[source] >= 0:
        for i in range(3):
            lo[i] = object_lower[instances.geometry[source]][i]
            hi[i] = object_upper[instances.geometry[source]][i]
    shape = wp.vec4f()
    if kind == CONE or kind == CAPSULE or kind == PLANE:
        shape = instances.shape[source]
        if kind == PLANE:
            lo[2] = 0.0
            hi[2] = 0.0
    return world_box(kind, shape, lo, hi, linear, translation)


@wp.kernel(enable_backward=False)
def _bounds(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    instances: InstanceColumns,
    rows: wp.array[wp.int32],
    object_lower: wp.array[wp.vec3f],
    object_upper: wp.array[wp.vec3f],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """World bounds of ``rows`` (of all where it is empty): see `world_box`."""
    job = first + wp.tid() * step
    if job >= count:
        return
    row = job
    if rows.shape[0] > 0:
        row = rows[job]
    box = instance_box(
        instances, instances.source[row], instances.world_from_object[row], instances.translation[row], object_lower, object_upper
    )
    lower[row] = box.lower
    upper[row] = box.upper


@wp.kernel(enable_backward=False)
def _pose(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    instances: InstanceColumns,
    body_q: wp.array[wp.transformf],
    posed: PosedColumns,
    object_lower: wp.array[wp.vec3f],
    object_upper: wp.array[wp.vec3f],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """Transform of the instances that bodies carry: world_from_body * body_from_object, composed in float64; and their bounds."""
    i = first + wp.tid() * step
    if i >= count:
        return
    row = posed.row[i]
    item = posed.item[i]
    placed = carried(body_q[body_of(instances, posed, row, item)], posed.body_from_object[item], posed.body_offset[item])
    linear = narrow_matrix(placed.linear)
    instances.world_from_object[row] = linear
    instances.translation[row] = placed.translation
    box = instance_box(instances, instances.source[row], linear, placed.translation, object_lower, object_upper)
    lower[row] = box.lower
    upper[row] = box.upper


@wp.kernel(enable_backward=False)
def _place_copies(first: wp.int32, step: wp.int32, count: wp.int32, first_row: wp.int32, instances: InstanceColumns):
    """Copies that are not turned are in their world where their source is in its own."""
    i = first + wp.tid() * step
    if i >= count:
        return
    row = first_row + i
    source = instances.source[row]
    instances.world_from_object[row] = instances.world_from_object[source]
    instances.translation[row] = instances.translation[source]


@wp.kernel(enable_backward=False)
def _bound_copies(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    first_row: wp.int32,
    source: wp.array[wp.int32],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """The same of their bounds."""
    i = first + wp.tid() * step
    if i >= count:
        return
    row = first_row + i
    lower[row] = lower[source[row]]
    upper[row] = upper[source[row]]


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
            launch(_place_copies, count, [self.rows.capacity, self.columns()], device=self.device, grain=4096)
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
        launch(_bound_copies, self.size - self.rows.capacity, inputs, device=self.device, grain=8192)

    def update_bounds(self, rows: np.ndarray | wp.array) -> None:
        """Recompute the bounds of device ``rows`` on the device. Of a wp.array[int32] nothing is allocated."""
        self._bound(len(rows), wp.array(rows, dtype=wp.int32, device=self.device) if isinstance(rows, np.ndarray) else rows)

    def _bound(self, count: int, chosen: wp.array) -> None:
        if count == 0:
            return
        launch(
            _bounds,
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
            _pose,
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
