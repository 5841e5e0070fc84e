"""tables.previous: the second pose: where instances, points and cameras were in the frame before. Made when somebody asks for motion.

`InstanceColumns` and `CameraColumns` say where things are, `PreviousPoses` where they were: a row here for a row there. Whatever a frame
has not changed has the bits of now.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.delegate.previous_rows import MovedRows
from hdwarp.delegate.render_index import RenderIndex
from hdwarp.delegate.rows import is_sparse
from hdwarp.tables.cameras import CameraColumns, CameraTable, camera_arrays, columns_of, lens_columns, mounts, stamped
from hdwarp.tables.instance_kernels import PosedColumns, body_of, carried, is_pose, narrow_matrix, world_box
from hdwarp.tables.instances import InstanceTable, place
from hdwarp.tables.meshes import MeshTable
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import PLANE, InstanceColumns, PreviousColumns
from hdwarp.tables.worlds import WorldTable


@wp.kernel(enable_backward=False)
def _pose_previous(
    instances: InstanceColumns,
    body_q: wp.array[wp.transformf],
    previous_body_q: wp.array[wp.transformf],
    posed: PosedColumns,
    out: PreviousColumns,
):
    """Where the instances that bodies carry were; those of bodies that have not moved get the very bits of now."""
    i = wp.tid()
    row = posed.row[i]
    item = posed.item[i]
    body = body_of(instances, posed, row, item)
    if body_q[body] == previous_body_q[body] or not is_pose(previous_body_q[body]):  # where it was is not known: it was where it is
        out.world_from_object[row] = instances.world_from_object[row]
        out.translation[row] = instances.translation[row]
    else:
        placed = carried(previous_body_q[body], posed.body_from_object[item], posed.body_offset[item])
        out.world_from_object[row] = narrow_matrix(placed.linear)
        out.translation[row] = placed.translation


@wp.kernel(enable_backward=False)
def _choose_cameras(now: CameraColumns, changed: CameraColumns, changes: wp.array[wp.int32], follow_bodies: wp.int32, out: CameraColumns):
    """What a camera was, bit by bit of ``changes`` (as `PROJECTION` has them): the columns of ``changed``, or those of now, which kernels
    may have written."""
    row = wp.tid()
    bits = changes[row]
    body = now.body[row]
    pose = wp.transformd(now.transform[row])
    if (bits & 1) != 0 and not (follow_bodies != 0 and body >= 0):
        body = -1
        pose = wp.transformd(changed.transform[row])
    out.body[row] = body
    out.transform[row] = pose
    out.axes[row] = wp.where((bits & 2) != 0, changed.axes[row], now.axes[row])
    out.lens[row] = wp.where((bits & 4) != 0, changed.lens[row], now.lens[row])
    out.focal_length[row] = wp.where((bits & 8) != 0, changed.focal_length[row], now.focal_length[row])
    out.aperture[row] = wp.where((bits & 16) != 0, changed.aperture[row], now.aperture[row])
    out.aperture_offset[row] = wp.where((bits & 32) != 0, changed.aperture_offset[row], now.aperture_offset[row])


@wp.kernel(enable_backward=False)
def _sweep(
    instances: InstanceColumns,
    previous: PreviousColumns,
    object_lower: wp.array[wp.vec3f],
    object_upper: wp.array[wp.vec3f],
    previous_lower: wp.array[wp.vec3f],
    previous_upper: wp.array[wp.vec3f],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """Bounds of now (``lower``, ``upper``) -> bounds around both poses."""
    row = wp.tid()
    source = instances.source[row]
    kind = instances.kind[source]
    lo = wp.vec3f(-1.0, -1.0, -1.0)
    hi = wp.vec3f(1.0, 1.0, 1.0)
    if instances.geometry[source] >= 0:
        lo = wp.vec3f(object_lower[instances.geometry[source]])
        hi = wp.vec3f(object_upper[instances.geometry[source]])
        if previous.point_start[source] >= 0:
            lo = wp.vec3f(previous_lower[source])
            hi = wp.vec3f(previous_upper[source])
    if kind == PLANE:
        lo[2] = 0.0
        hi[2] = 0.0
    if kind < 0:
        return
    box = world_box(kind, instances.shape[source], lo, hi, previous.world_from_object[row], previous.translation[row])
    lower[row] = wp.min(lower[row], box.lower)
    upper[row] = wp.max(upper[row], box.upper)


@wp.kernel(enable_backward=False)
def _show_points(rows: wp.array[wp.int32], start: wp.int32, point_start: wp.array[wp.int32]):
    point_start[rows[wp.tid()]] = start


@wp.kernel(enable_backward=False)
def _write_box(
    rows: wp.array[wp.int32],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
    out_lower: wp.array[wp.vec3f],
    out_upper: wp.array[wp.vec3f],
):
    row = rows[wp.tid()]
    out_lower[row] = lower[0]
    out_upper[row] = upper[0]


class PreviousPoses:
    """Device columns beside those of `InstanceTable` and `CameraTable`, written by `sync`. Rows that bodies carry are where the stage had
    them until `pose`, and again after `unpose`."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._world_from_object = GrowingArray(wp.mat33f, device)
        self._translation = GrowingArray(wp.vec3d, device)
        self._point_start = GrowingArray(wp.int32, device, fill=-1)
        self._points = GrowingArray(wp.vec3f, device)
        self._points_lower, self._points_upper = GrowingArray(wp.vec3f, device), GrowingArray(wp.vec3f, device)
        self._boxes: list[tuple[np.ndarray, np.ndarray]] | None = None  # (rows, points) of what deforms, to be bounded; None: done
        self._room: dict[int, int] = {}  # by mesh row, of meshes whose points a caller sets: where in the points there is room for theirs
        self._shown: dict[int, tuple[wp.array, wp.array, wp.array]] = {}  # (rows, lower, upper) of those that have set points this frame
        self._moved = MovedRows(np.zeros(0, np.int64), np.zeros((0, 3, 4)))
        self._is_posed = False
        self._stored, self._chosen = camera_arrays(device), camera_arrays(device)
        self._camera_changes = GrowingArray(wp.int32, device)  # a bit for each of `PROJECTION`
        self._cameras_differ = np.zeros(0, bool)  # by camera row: from now
        self.camera_versions = np.zeros(0, np.int64)  # by camera row: another number after each `sync` where it differs or did so before

    @property
    def columns(self) -> PreviousColumns:
        """The struct kernels take."""
        columns = PreviousColumns()
        columns.world_from_object, columns.translation = self._world_from_object.array, self._translation.array
        columns.point_start, columns.points = self._point_start.array, self._points.array
        return columns

    @property
    def cameras(self) -> CameraColumns:
        """As `choose_cameras` left them; what does not tell where a point of the picture is, is not filled in."""
        return columns_of(self._chosen)

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        growing = (self._world_from_object, self._translation, self._point_start, self._points, *self._chosen.values())
        return [array.array.ptr for array in growing]

    def restart(self) -> None:
        """Rows have other numbers now, or far fewer are left: forget where things were, and let go of the memory. The next `sync` is to be
        of all rows."""
        places = self._world_from_object, self._translation, self._point_start, self._points, self._points_lower, self._points_upper
        for growing in places:
            growing.reset()
        self._moved = MovedRows(np.zeros(0, np.int64), np.zeros((0, 3, 4)))

    def sync(
        self,
        index: RenderIndex,
        meshes: MeshTable,
        cameras: CameraTable,
        worlds: WorldTable,
        instances: InstanceTable,
        rows: np.ndarray | None = None,
    ) -> bool:
        """Follow the index after its frame went on or changed. ``rows`` (ascending) of the index: those whose place has been uploaded
        anew, None: all. Returns whether any instance differs from now, or did so before; of cameras `camera_versions` tells."""
        host, before = index.instances, self._moved
        moved = index.previous.moved(index)
        stale = np.full(host.capacity, rows is None)
        stale[before.rows] = True
        if rows is not None:
            stale[rows] = True
        if self._is_posed:
            stale |= host["body"] >= 0
        stale[moved.rows] = False
        self._is_posed, self._moved = False, moved
        self._point_start.reserve(host.capacity)
        for array in (self._world_from_object, self._translation):
            array.reserve(instances.size)
        stale = np.flatnonzero(stale)
        self._write(index, meshes, worlds, instances, stale)
        for deformed, _, _ in before.deformed:
            self._point_start.write_rows(np.sort(deformed), np.full(len(deformed), -1))
        for rows_of_mesh, _, _ in self._shown.values():
            shown = np.sort(rows_of_mesh.numpy())
            self._point_start.write_rows(shown, np.full(len(shown), -1))
        did_show = bool(self._shown)
        self._shown.clear()
        self._write_moved(index, meshes, worlds, instances)
        self._write_points(meshes)
        self._room.clear()
        for path in index.written.paths_of_points:
            for mesh_row in index.written.mesh_rows(path):
                self._room[mesh_row] = self._points.size
                self._points.reserve(self._points.size + len(meshes.geometry[mesh_row].points))
        self._sync_cameras(index, cameras, worlds)
        return bool(len(moved.rows) or len(before.rows) or did_show)

    def _write(
        self,
        index: RenderIndex,
        meshes: MeshTable,
        worlds: WorldTable,
        instances: InstanceTable,
        rows: np.ndarray,
        transforms: np.ndarray | None = None,
    ) -> None:
        """Where ``rows`` (ascending) of the index and their copies were; ``transforms`` None: where they are."""
        pivot = None if transforms is None else worlds.pivot_then(index.previous.frame)
        linear, translation = place(index.instances, meshes, worlds, rows, transforms, pivot=pivot)
        if instances.rows.has_copies:
            host = index.instances
            rows, _, linear, translation = instances.spread(host, meshes, worlds, rows, linear, translation, transforms, pivot)
        self._world_from_object.write_rows(rows, linear)
        self._translation.write_rows(rows, translation)

    def _write_moved(
        self, index: RenderIndex, meshes: MeshTable, worlds: WorldTable, instances: InstanceTable, only: np.ndarray | None = None
    ) -> None:
        """``only``: (rows of the index,) bool."""
        rows, transforms = self._moved.rows, self._moved.transforms
        if only is not None:
            rows, transforms = rows[only[rows]], transforms[only[rows]]
        if (np.diff(rows) < 0).any():
            order = np.argsort(rows)
            rows, transforms = rows[order], transforms[order]
        self._write(index, meshes, worlds, instances, rows, transforms)

    def _write_points(self, meshes: MeshTable) -> None:
        """Previous points of the meshes that deform, each mesh of then once for each mesh of now."""
        blocks: dict[tuple[int, int], int] = {}
        self._points.clear()
        self._boxes = []
        for rows, mesh, mesh_row in self._moved.deformed:
            key, points = (id(mesh), mesh_row), meshes.in_space_of(mesh_row, mesh.points)
            if key not in blocks:
                blocks[key] = self._points.size
                self._points.write(self._points.size, points)
            reach = 0.0 if mesh.radii is None else float(mesh.radii.max(initial=0.0)) / meshes.scale[mesh_row]
            box = points.min(axis=0) - reach, points.max(axis=0) + reach
            self._boxes.append((np.sort(rows), np.stack(box)))
            self._point_start.write_rows(np.sort(rows), np.full(len(rows), blocks[key]))

    def _sync_cameras(self, index: RenderIndex, cameras: CameraTable, worlds: WorldTable) -> None:
        did_differ, record = self._cameras_differ, cameras.record
        old = [index.previous.camera(camera) for camera in cameras.cameras]
        self._cameras_differ = np.array([bits != 0 for _, bits in old], bool)[record]
        if is_sparse(len(record), self._camera_changes.array.shape[0]):
            for array in (self._camera_changes, *self._chosen.values(), *self._stored.values()):
                array.reset()
        for array in (self._camera_changes, *self._chosen.values()):
            array.reserve(max(len(record), 1))
        if old:
            same_rows = len(did_differ) == len(record)
            self.camera_versions = stamped(self.camera_versions, self._cameras_differ | (did_differ if same_rows else True))
            then = [before for before, _ in old]
            for name, items in lens_columns(then).items():
                self._stored[name].write(0, items[record])
            self._stored["transform"].write(0, mounts(then, record, cameras.world, worlds, None, worlds.pivot_then(index.previous.frame)))
            self._camera_changes.write(0, np.array([bits for _, bits in old], np.int32)[record])

    def show_points(self, mesh_row: int, rows: wp.array, points: wp.array, lower: wp.array, upper: wp.array) -> None:
        """From now to the next `sync`, a mesh whose points a caller sets was at ``points`` (P,) vec3f, within ``lower`` and ``upper`` (1,)
        vec3f, on the device as now. ``rows`` (n,) int32 of the index. Device work only; the arrays are kept."""
        self._shown[mesh_row] = rows, lower, upper
        wp.copy(self._points.array, points, dest_offset=self._room[mesh_row], count=len(points))
        wp.launch(_show_points, dim=len(rows), inputs=[rows, self._room[mesh_row], self._point_start.array], device=self.device)

    # -- every frame, on the device ---------------------------------------------------------------------------------------

    def pose(self, instances: InstanceTable, body_q: wp.array, previous_body_q: wp.array) -> None:
        """Bodies were at ``previous_body_q`` and are at ``body_q``: device work only, nothing allocated."""
        if instances.posed is None:
            return
        self._is_posed = True
        inputs = [instances.columns(), body_q, previous_body_q, instances.posed, self.columns]
        wp.launch(_pose_previous, dim=instances.posed.row.shape[0], inputs=inputs, device=self.device)

    def unpose(self, index: RenderIndex, meshes: MeshTable, worlds: WorldTable, instances: InstanceTable) -> None:
        """What bodies carry was where the stage had it."""
        if not self._is_posed:
            return
        self._is_posed = False
        carried_rows = index.instances["body"] >= 0
        rows = np.flatnonzero(carried_rows)
        self._write(index, meshes, worlds, instances, rows)
        self._write_moved(index, meshes, worlds, instances, carried_rows)

    def choose_cameras(self, cameras: CameraTable, *, follow_bodies: bool) -> None:
        """Fill ``cameras``. ``follow_bodies``: cameras that bodies carry sit in them as now; else they were where the stage had them."""
        if len(cameras):
            inputs = [cameras.columns, columns_of(self._stored), self._camera_changes.array, int(follow_bodies), self.cameras]
            wp.launch(_choose_cameras, dim=len(cameras), inputs=inputs, device=self.device)

    def sweep(self, instances: InstanceTable, lower: wp.array, upper: wp.array) -> None:
        """Grow the world bounds ``lower``, ``upper`` (N,) vec3f of now, by instance row, to hold both poses, and so every point that goes
        straight from one to the other. Of things that turn, the arcs may stand out. The first call after a `sync` uploads."""
        for array in (self._points_lower, self._points_upper):
            array.reserve(instances.rows.capacity)
        for rows, points in self._boxes or ():
            self._points_lower.write_rows(rows, np.tile(points.min(axis=0), (len(rows), 1)))
            self._points_upper.write_rows(rows, np.tile(points.max(axis=0), (len(rows), 1)))
        self._boxes = None
        boxes = self._points_lower.array, self._points_upper.array
        for shown in self._shown.values():
            wp.launch(_write_box, dim=len(shown[0]), inputs=list(shown), outputs=list(boxes), device=self.device)
        inputs = [instances.columns(), self.columns, *instances.object_bounds, *boxes]
        wp.launch(_sweep, dim=instances.size, inputs=inputs, outputs=[lower, upper], device=self.device)
