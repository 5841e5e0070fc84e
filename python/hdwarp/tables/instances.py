"""tables.instances: one device row an instance: transform, geometry, ids; posing by bodies; bounds for the top-level trees."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.delegate.rows import HostColumns
from hdwarp.launch import launch
from hdwarp.tables.meshes import MeshTable
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import CAPSULE, CONE, MESH, PLANE, SPHERE, InstanceColumns

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


@wp.func
def carried(pose: wp.transformf, body_from_object: wp.mat33d, body_offset: wp.vec3d) -> Placed:
    """Where a body at ``pose`` has what it carries, composed in float64."""
    p, q = wp.transform_get_translation(pose), wp.transform_get_rotation(pose)
    turn = wp.quat_to_matrix(wp.normalize(wp.quatd(wp.float64(q[0]), wp.float64(q[1]), wp.float64(q[2]), wp.float64(q[3]))))
    shift = turn * body_offset
    placed = Placed()
    placed.linear = turn * body_from_object
    placed.translation = wp.vec3d(wp.float64(p[0]) + shift[0], wp.float64(p[1]) + shift[1], wp.float64(p[2]) + shift[2])
    return placed


@wp.kernel(enable_backward=False)
def _pose(
    instances: InstanceColumns,
    body_q: wp.array[wp.transformf],
    body_from_object: wp.array[wp.mat33d],
    body_offset: wp.array[wp.vec3d],
    rows: wp.array[wp.int32],
):
    """Transform of the instances that bodies carry: world_from_body * body_from_object, composed in float64."""
    i = wp.tid()
    row = rows[i]
    placed = carried(body_q[instances.body[row]], body_from_object[i], body_offset[i])
    inverse = wp.inverse(placed.linear)
    instances.world_from_object[row] = narrow_matrix(placed.linear)
    instances.object_from_world[row] = narrow_matrix(inverse)
    instances.translation[row] = placed.translation


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
    return box


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
    kind = instances.kind[row]
    lo = wp.vec3f(-1.0, -1.0, -1.0)
    hi = wp.vec3f(1.0, 1.0, 1.0)
    if kind == MESH:
        for i in range(3):
            lo[i] = object_lower[instances.geometry[row]][i]
            hi[i] = object_upper[instances.geometry[row]][i]
    shape = wp.vec4f()
    if kind == CONE or kind == CAPSULE or kind == PLANE:
        shape = instances.shape[row]
        if kind == PLANE:
            lo[2] = 0.0
            hi[2] = 0.0
    box = world_box(kind, shape, lo, hi, instances.world_from_object[row], instances.translation[row])
    lower[row] = box.lower
    upper[row] = box.upper


class InstanceTable:
    """Device columns of the render index's instance rows, in the frame of their world (``origin`` taken off in float64)."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.size = 0
        types = {
            "object_from_world": wp.mat33f,
            "world_from_object": wp.mat33f,
            "translation": wp.vec3d,
            "kind": wp.int32,
            "geometry": wp.int32,
            "shape": wp.vec4f,
            "rank": wp.int32,
            "cull": wp.int32,
            "world": wp.int32,
            "body": wp.int32,
            "prim_id": wp.int32,
            "instance_id": wp.int32,
            "material": wp.int32,
            "subset_start": wp.int32,
            "subset_material": wp.int32,
        }
        # Unused rows draw nothing; `cull` stays all zeros, for renders that do not cull.
        self._arrays = {name: GrowingArray(dtype, device, fill=-1 if name == "kind" else 0) for name, dtype in types.items()}
        self._single_sided = GrowingArray(wp.int32, device)
        self._object_lower = GrowingArray(wp.vec3f, device)
        self._object_upper = GrowingArray(wp.vec3f, device)
        self._lower, self._upper = GrowingArray(wp.vec3f, device), GrowingArray(wp.vec3f, device)
        self._all_rows = wp.zeros(0, dtype=wp.int32, device=device)
        # Rows that bodies carry, and their place in the frame of their body; None: there are none.
        self._posed_rows: wp.array | None = None
        self._is_posed = np.zeros(0, bool)  # by row
        self._body_from_object: wp.array | None = None
        self._body_offset: wp.array | None = None

    def columns(self, *, cull: bool = False) -> InstanceColumns:
        """The struct kernels take. ``cull``: back faces of single-sided instances are looked through."""
        columns = InstanceColumns()
        for name, growing in self._arrays.items():
            setattr(columns, name, growing.array)
        if cull:
            columns.cull = self._single_sided.array
        return columns

    @property
    def bounds(self) -> tuple[wp.array, wp.array]:
        """(lower, upper): wp.array[vec3f] of full capacity, a row an instance; inverted where nothing is drawn."""
        return self._lower.array, self._upper.array

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in (*self._arrays.values(), self._single_sided)]

    def device_arrays(self) -> list[wp.array]:
        """All that is held on the device."""
        bounds = self._object_lower, self._object_upper, self._lower, self._upper
        posed = [array for array in (self._posed_rows, self._body_from_object, self._body_offset) if array is not None]
        return [growing.array for growing in (*self._arrays.values(), self._single_sided, *bounds)] + posed

    def write_mesh_bounds(self, meshes: MeshTable, rows: np.ndarray) -> None:
        """Object bounds of mesh ``rows`` (ascending)."""
        self._object_lower.write_rows(rows, meshes.lower[rows])
        self._object_upper.write_rows(rows, meshes.upper[rows])

    def write_subsets(self, index: RenderIndex, rows: np.ndarray) -> None:
        self._arrays["subset_material"].write_rows(rows, index.subsets["material"][rows])

    def sync(self, index: RenderIndex, meshes: MeshTable, origin: np.ndarray, rows: np.ndarray, hidden: np.ndarray) -> None:
        """Upload ``rows`` (ascending) of the index. ``hidden`` (rows of the index,) bool: rows of which nothing is drawn."""
        host = index.instances
        self.size = host.capacity
        for growing in (*self._arrays.values(), self._single_sided, self._lower, self._upper):
            if growing is not self._arrays["subset_material"]:
                growing.reserve(host.capacity)
        if len(rows) == 0:
            return
        linear, translation = place(host, meshes, origin, rows)
        inverse = np.zeros_like(linear)
        live = host["kind"][rows] >= 0
        if live.all() and (linear == linear[0]).all():  # as instances that are only placed have it
            inverse[:] = np.linalg.inv(linear[0])
        else:
            inverse[live] = np.linalg.inv(linear[live])
        values = {
            "object_from_world": inverse,
            "world_from_object": linear,
            "translation": translation,
            "kind": np.where(hidden[rows], -1, host["kind"][rows]),
            "geometry": host["mesh"][rows],
            "shape": host["shape"][rows],
        }
        for name in ("rank", "world", "body", "prim_id", "instance_id", "material", "subset_start"):
            values[name] = host[name][rows]
        for name, items in values.items():
            self._arrays[name].write_rows(rows, items)
        self._single_sided.write_rows(rows, host["single_sided"][rows])

    def write_ids(self, index: RenderIndex, rows: np.ndarray) -> None:
        """Upload what is given out for ``rows`` (ascending), of which nothing else is new."""
        for name in ("rank", "prim_id", "instance_id"):
            self._arrays[name].write_rows(rows, index.instances[name][rows])

    def are_carried(self, index: RenderIndex, rows: np.ndarray) -> bool:
        """Whether bodies carry any of ``rows``, or did when `sync_bodies` last looked."""
        return bool((index.instances["body"][rows] >= 0).any() or self._is_posed[rows[rows < len(self._is_posed)]].any())

    def sync_bodies(self, index: RenderIndex, meshes: MeshTable, origin: np.ndarray, bodies_from_world: np.ndarray) -> None:
        """Where the instances that bodies carry sit in them. ``bodies_from_world``: (bodies, 4, 4) float64 at the stage's pose, ``origin``
        taken off."""
        host = index.instances
        self._is_posed = (host["body"] >= 0) & (host["kind"] >= 0)
        rows = np.flatnonzero(self._is_posed)
        if len(rows) == 0:
            self._posed_rows = self._body_from_object = self._body_offset = None
            return
        linear, translation = place(host, meshes, origin, rows)
        from_world = bodies_from_world[host["body"][rows]]
        offset = np.einsum("nij,nj->ni", from_world[:, :3, :3], translation) + from_world[:, :3, 3]
        self._posed_rows = wp.array(rows, dtype=wp.int32, device=self.device)
        self._body_from_object = wp.array(from_world[:, :3, :3] @ linear, dtype=wp.mat33d, device=self.device)
        self._body_offset = wp.array(offset, dtype=wp.vec3d, device=self.device)

    @property
    def posed(self) -> tuple[wp.array | None, wp.array | None, wp.array | None]:
        """(rows that bodies carry, body_from_object, body_offset), None where bodies carry nothing."""
        return self._posed_rows, self._body_from_object, self._body_offset

    @property
    def object_bounds(self) -> tuple[wp.array, wp.array]:
        """(lower, upper): wp.array[vec3f] by mesh row."""
        return self._object_lower.array, self._object_upper.array

    def update_bounds(self, rows: np.ndarray | None = None) -> None:
        """Recompute the bounds of ``rows`` on the device; None: all."""
        count = self.size if rows is None else len(rows)
        chosen = self._all_rows if rows is None else wp.array(rows, dtype=wp.int32, device=self.device)
        launch(
            _bounds,
            count,
            [self.columns(), chosen, self._object_lower.array, self._object_upper.array],
            [self._lower.array, self._upper.array],
            device=self.device,
            grain=4096,
        )

    def pose(self, body_q: wp.array) -> None:
        """Move the instances that bodies carry to ``body_q`` (wp.array[transformf], frame of their world) and update the bounds."""
        if self._posed_rows is not None:
            wp.launch(
                _pose,
                dim=self._posed_rows.shape[0],
                inputs=[self.columns(), body_q, self._body_from_object, self._body_offset, self._posed_rows],
                device=self.device,
            )
        self.update_bounds()


def place(
    host: HostColumns, meshes: MeshTable, origin: np.ndarray, rows: np.ndarray, transform: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3, 3) and (n, 3) float64: linear part and translation of ``rows``, the mesh's centre and scale and the world's origin folded in.
    ``transform`` (n, 3, 4): other world_from_object than the rows'."""
    transform, mesh = host["transform"][rows] if transform is None else transform, host["mesh"][rows]
    linear, translation = transform[:, :, :3], transform[:, :, 3] - origin
    if meshes.is_moved:
        centre = np.where(mesh[:, None] >= 0, meshes.centre[mesh], 0.0)
        translation = translation + np.einsum("nij,nj->ni", linear, centre)
        linear = linear * np.where(mesh >= 0, meshes.scale[mesh], 1.0)[:, None, None]
    return linear, translation
