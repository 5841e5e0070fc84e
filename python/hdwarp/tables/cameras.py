"""tables.cameras: one device row a camera and world, globals first: mount, lens, clip range. `scene.cameras`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import warp as wp

from hdwarp.delegate.rows import is_sparse
from hdwarp.delegate.worlds import Worlds
from hdwarp.errors import ArgumentError, NotSupported
from hdwarp.stage.columns import MAX_CLIPPING_PLANES, Camera
from hdwarp.stage.conventions import rotation_from_quaternion
from hdwarp.stage.number_columns import USABLE, Number, as_number, refilled, spellings, stacked
from hdwarp.tables.attributes import AttributeColumns, Found, PrimRows
from hdwarp.tables.bodies import BodyTable
from hdwarp.tables.quaternions import quaternions_from_matrices
from hdwarp.tables.selecting import select_labels
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.worlds import WorldTable

LENSES = ("pinhole", "orthographic")  # lens enum: index is the number in the `lens` column


@wp.struct
class CameraColumns:
    """Lengths in metres. An aperture component of 0 follows the image's aspect."""

    transform: wp.array[wp.transformd]  # mount in the body's frame, or pose in the world's frame (body -1)
    axes: wp.array[wp.mat33f]  # applied to camera-space directions before the rotation; identity unless scaled or mirrored
    body: wp.array[wp.int32]
    lens: wp.array[wp.int32]
    focal_length: wp.array[wp.float32]
    aperture: wp.array[wp.vec2f]
    aperture_offset: wp.array[wp.vec2f]
    clipping_range: wp.array[wp.vec2f]
    clipping_plane_count: wp.array[wp.int32]
    clipping_planes: wp.array[wp.vec4f]  # plane_width a camera; camera space [m], cut where a.x + d < 0
    plane_width: wp.int32
    exposure: wp.array[wp.float32]


class CameraTable:
    """The stage's cameras and their copies as rows, world-major, globals first. The device columns are attributes; a kernel may write
    them.

    ``label`` (prim paths; of copies, those they would have), ``world`` and ``world_start`` ((world_count + 2,) offsets, globals first) are
    on the host. ``clipping_planes`` is (cameras, MAX_CLIPPING_PLANES) vec4f, of which the first ``clipping_plane_count`` of a row count.
    Columns take device memory when a sensor, a render or somebody else first asks for one: cameras that nobody uses cost none.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.version = 0  # counts changes of which cameras there are
        self.row_versions = np.zeros(0, np.int64)  # by row: another number after each sync that found the camera changed
        self.world = np.zeros(0, np.int32)
        self.world_start = np.zeros(3, np.int32)
        self.cameras: list[Camera] = []  # the adapter's records
        self.record = np.zeros(0, np.int64)  # by row: its record
        self.plane_width = 0  # clipping planes a row has room for
        self._names = Worlds()
        self._label: list[str] | None = []
        self._frames: tuple[WorldTable, BodyTable] | None = None
        self._is_held = False  # on the device
        self._arrays = camera_arrays(device)
        self._written: dict[str, np.ndarray] = {}  # what we wrote last, by column
        self.attributes = AttributeColumns(device)
        self.product_sizes: Callable[[list[Camera]], list[tuple[int, int]]] | None = None  # of a scene: tables know no USD

    def __len__(self) -> int:
        return len(self.record)

    def record_of(self, row: int) -> Camera:
        """The adapter's record of a row; of copies, their prototype's."""
        return self.cameras[self.record[row]]

    @property
    def label(self) -> list[str]:
        if self._label is None:
            self._label = self._names.labels([camera.path for camera in self.cameras], self.record, self.world)
        return self._label

    def __getattr__(self, name: str) -> wp.array:
        arrays = self.__dict__.get("_arrays", {})
        if name in arrays:
            self.hold()
            rows = max(len(self.record), 1)
            if name == "clipping_planes":
                self._hold_planes(MAX_CLIPPING_PLANES)
                return arrays[name].array[: rows * self.plane_width].reshape((rows, self.plane_width))
            return arrays[name].array[:rows]
        if name == "lens_params":
            raise NotSupported(f"the camera table's column {name!r} is not supported yet")
        raise AttributeError(f"the camera table has no column {name!r}; columns: {', '.join(arrays)}, label, world, world_start")

    @property
    def resolution(self) -> wp.array:
        """(rows,) vec2i, made anew at each call: width and height of the first RenderProduct that targets each camera, (0, 0) without one.
        A hint: sensors look up the product themselves, and what is written here moves nothing."""
        sizes = [(0, 0)] * len(self.cameras) if self.product_sizes is None else self.product_sizes(self.cameras)
        rows = np.array(sizes, np.int32).reshape(-1, 2)[self.record]
        return wp.array(rows, dtype=wp.vec2i, device=self.device)

    @property
    def columns(self) -> CameraColumns:
        self.hold()
        return columns_of(self._arrays, self.plane_width)

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in self._arrays.values()]

    def attribute(self, name: str) -> wp.array:
        """A user attribute (authored on the camera prims) as a device column, a row a camera and world, NaN where a camera has none:
        float32, or vec2f to vec4f. Kernels may write it: see `AttributeColumns` for how long that stays.

        Raises ArgumentError when no camera has it, or it is no number.
        """
        return self.attributes.get(name, self._prim_rows, self._first_values)

    def _prim_rows(self) -> PrimRows:
        paths = [camera.path for camera in self.cameras]
        return PrimRows(paths, paths, self.record, self.world)

    def _first_values(self, paths: Sequence[str], name: str) -> np.ndarray:
        values = self._values(name)
        if all(value is None for value in values):
            known = sorted({key for camera in self.cameras for key in camera.attributes})
            raise ArgumentError(f"no camera has an attribute {name!r}; authored: {', '.join(known) or 'none'}")
        for value in values:
            if isinstance(value, ArgumentError):
                raise value
        return stacked(paths, values, name)

    def _values(self, name: str) -> list[Number | ArgumentError | None]:
        """What the records say of an attribute; an error for what is no number."""
        if not isinstance(name, str):
            raise ArgumentError(f"{name!r} is no attribute's name; give one like 'thermal:lens_k1'")
        values: list[Number | ArgumentError | None] = []
        for camera in self.cameras:
            given = next((camera.attributes[key] for key in spellings(name) if camera.attributes.get(key) is not None), None)
            value = None if given is None else as_number(given)
            if given is not None and value is None:
                value = ArgumentError(f"<{camera.path}>: attribute {name!r} is {given!r}; {USABLE}")
            values.append(value)
        return values

    def select(self, pattern: str | re.Pattern | int | Sequence | None) -> list[int]:
        """Camera rows for an fnmatch pattern over the whole label ('*' crosses '/'), a compiled expression, an index, or a list of these.

        Raises ArgumentError naming what was given and what exists when a pattern matches nothing.
        """
        return select_labels(self.label, pattern, "camera", "cameras")

    def sync(self, cameras: Sequence[Camera], worlds: WorldTable, bodies: BodyTable) -> None:
        """Make the rows those of the adapter's records, and of their copies.

        What a kernel has written stays, but for the columns of a camera whose records now say something else; where cameras come or go,
        rows move, and what was written goes with its camera and world.
        """
        cameras, names, before = sorted(cameras, key=lambda camera: camera.path), worlds.names, self.cameras
        paths = [camera.path for camera in cameras]
        record, world = names.spread(paths)
        same_rows = paths == [camera.path for camera in before] and np.array_equal(world, self.world)
        self.cameras = cameras
        kept = {} if same_rows else self._kept(before, paths, record, world)
        if not same_rows:
            self.version += 1
            self._written.clear()
            changed = np.ones(len(record), bool)
            if is_sparse(len(record), self._arrays["transform"].array.shape[0]):
                self.plane_width = 0
                for growing in self._arrays.values():
                    growing.reset()
        else:  # one that moves together with its body has the columns it had
            places = [(then.world_from_camera, now.world_from_camera) for then, now in zip(before, cameras, strict=True)]
            changed = np.array([then is not now and not np.array_equal(then, now) for then, now in places], bool)[record]
        self.record, self.world = record, world.astype(np.int32)
        self._names, self._label = names, None
        self.world_start = np.concatenate([[0], np.cumsum(np.bincount(world + 1, minlength=worlds.count + 1))]).astype(np.int32)
        self._sync_attributes()
        self._frames = worlds, bodies
        if self._is_held:
            self._upload(changed)
            for name, (rows, values, said) in kept.items():
                stays = (self._written[name][rows] == said).reshape(len(rows), -1).all(axis=1)  # the stage says what it said
                self._arrays[name].write_rows(rows[stays], values[stays])
        self.row_versions = stamped(self.row_versions, changed)

    def _kept(self, before: Sequence[Camera], paths: Sequence[str], record: np.ndarray, world: np.ndarray) -> dict[str, tuple]:
        """What kernels have written, by column: (rows it goes to, ascending, the values, what the stage said there)."""
        if not self._is_held or not before:
            return {}
        place = {path: i for i, path in enumerate(paths)}
        rows_of = {key: row for row, key in enumerate(zip(record.tolist(), world.tolist(), strict=True))}
        keys = [(place.get(before[i].path, -1), w) for i, w in zip(self.record.tolist(), self.world.tolist(), strict=True)]
        target = np.array([rows_of.get(key, -1) for key in keys], np.int64)
        kept = {}
        for name, said in self._written.items():
            if name in ("body", "clipping_planes"):
                continue
            now = self._arrays[name].array.numpy()[: len(said)]
            differs = (now != said.astype(now.dtype)).reshape(len(said), -1).any(axis=1)
            rows = np.flatnonzero(differs & (target >= 0))
            rows = rows[np.argsort(target[rows])]
            if len(rows):
                kept[name] = target[rows], now[rows].copy(), said[rows]
        return kept

    def as_written(self, row: int) -> Camera:
        """The record of a row as kernels have left its columns: lens, clip range, exposure, and where it is mounted; itself where they
        have written nothing. Of a camera that a body carries the pose stays the stage's unless its mount was written."""
        record = self.record_of(row)
        if not self._is_held:
            return record
        fields = {}
        for name in ("focal_length", "aperture", "aperture_offset", "clipping_range", "axes", "transform"):
            now, said = self._arrays[name].array.numpy()[row], self._written[name][row]
            if not np.array_equal(now, np.asarray(said, now.dtype)):
                fields[name] = (
                    float(now) if now.ndim == 0 else now.astype(np.float64) if name in ("axes", "transform") else tuple(now.tolist())
                )
        mount = fields.pop("transform", None)
        if mount is not None:
            worlds, bodies = self._frames
            pose, body = _matrix(mount), bodies.row(record.body, int(self.world[row]))
            if body >= 0:
                pose = _matrix(bodies.pose[body].astype(np.float64)) @ pose
            fields["world_from_camera"] = worlds.unplaced(pose, int(self.world[row]))
        return replace(record, **fields) if fields else record

    def hold(self) -> None:
        """Have the columns on the device from now on."""
        if not self._is_held:
            self._is_held = True
            self._upload(np.zeros(len(self.record), bool))

    def _upload(self, changed: np.ndarray) -> None:
        """Write what differs from what was written last, and mark its rows in ``changed``."""
        if not self.cameras:
            return
        (worlds, bodies), cameras, record, world = self._frames, self.cameras, self.record, self.world
        columns = {name: items[record] for name, items in lens_columns(cameras).items()}
        columns["body"] = np.full(len(record), -1, np.int32)
        for i, camera in enumerate(cameras):
            if camera.body:
                columns["body"][record == i] = bodies.rows(camera.body, world[record == i])
        columns["transform"] = mounts(cameras, record, world, worlds, bodies)
        self._hold_planes(max(len(camera.clipping_planes) for camera in cameras))
        columns["clipping_planes"] = self._planes()
        for name, items in columns.items():
            written = self._written.get(name)
            if written is None:
                self._arrays[name].write(0, items)
            elif len(items):
                rows = np.flatnonzero((items != written).reshape(len(items), -1).any(axis=1))
                self._arrays[name].write_rows(rows, items[rows])
                changed[rows // (len(items) // len(record))] = True  # a camera has several clipping planes
            self._written[name] = items

    def _sync_attributes(self) -> None:
        """Records hold all attributes: what is new of them need not be read."""
        if not self.attributes:
            return
        rows = self._prim_rows()
        self.attributes.follow(rows)
        for name in self.attributes.names:
            values = refilled(rows.paths, self._values(name), name, self.attributes.width(name))
            self.attributes.write(name, Found(rows.paths, *values))

    def _hold_planes(self, width: int) -> None:
        """Make room for ``width`` clipping planes a row."""
        if width > self.plane_width:
            self.plane_width = width
            self._written["clipping_planes"] = planes = self._planes()
            self._arrays["clipping_planes"].reserve(max(len(self.record), 1) * width)
            self._arrays["clipping_planes"].write(0, planes)

    def _planes(self) -> np.ndarray:
        """(rows * plane_width, 4): those of the records."""
        planes = np.zeros((len(self.cameras), self.plane_width, 4))
        for i, camera in enumerate(self.cameras):
            planes[i, : len(camera.clipping_planes)] = camera.clipping_planes
        return planes[self.record].reshape(-1, 4)


def stamped(versions: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """``versions`` of rows with a number that none had before where ``changed``; ``changed`` tells how many rows there are now."""
    stamp = int(versions.max(initial=0)) + 1
    kept = np.full(len(changed), stamp, np.int64)
    kept[: len(versions)] = versions[: len(changed)]
    kept[changed] = stamp
    return kept


def camera_arrays(device: wp.Device) -> dict[str, GrowingArray]:
    """Empty columns by name."""
    types = {
        "transform": wp.transformd,
        "axes": wp.mat33f,
        "body": wp.int32,
        "lens": wp.int32,
        "focal_length": wp.float32,
        "aperture": wp.vec2f,
        "aperture_offset": wp.vec2f,
        "clipping_range": wp.vec2f,
        "clipping_plane_count": wp.int32,
        "clipping_planes": wp.vec4f,
        "exposure": wp.float32,
    }
    return {name: GrowingArray(dtype, device) for name, dtype in types.items()}


def columns_of(arrays: Mapping[str, GrowingArray], plane_width: int = 0) -> CameraColumns:
    """The struct kernels take."""
    columns = CameraColumns()
    columns.plane_width = plane_width
    for name, growing in arrays.items():
        setattr(columns, name, growing.array)
    return columns


def lens_columns(cameras: Sequence[Camera]) -> dict[str, np.ndarray]:
    """The columns of `CameraColumns` that do not say where the cameras are."""
    return {
        "axes": np.stack([camera.axes for camera in cameras]),
        "lens": np.array([1 if camera.projection == "orthographic" else 0 for camera in cameras]),
        "focal_length": np.array([camera.focal_length for camera in cameras]),
        "aperture": np.array([camera.aperture for camera in cameras]),
        "aperture_offset": np.array([camera.aperture_offset for camera in cameras]),
        "clipping_range": np.array([camera.clipping_range for camera in cameras]),
        "exposure": np.array([camera.exposure_scale for camera in cameras]),
        "clipping_plane_count": np.array([len(camera.clipping_planes) for camera in cameras]),
    }


def mounts(
    cameras: Sequence[Camera],
    record: np.ndarray,
    world: np.ndarray,
    worlds: WorldTable,
    bodies: BodyTable | None,
    pivot: np.ndarray | None = None,
) -> np.ndarray:
    """(n, 7) float64 position and quaternion (x, y, z, w) of the cameras of ``record`` (n,) in ``world`` (n,): in the frame of the body
    that carries them, or of their world; ``bodies`` None: all in that of their world. ``pivot``: other pivots than those of now."""
    first = np.empty(len(cameras), np.int64)
    first[record[::-1]] = world[::-1]
    poses = np.stack([camera.world_from_camera for camera in cameras])
    poses[:, :3, 3] -= (worlds.pivot if pivot is None else pivot)[first + 1]
    in_body = np.zeros(len(cameras), bool)
    of_first = worlds.turned(poses, first)
    for i, camera in enumerate(cameras):
        row = -1 if bodies is None else bodies.row(camera.body, int(first[i]))
        if row >= 0:
            in_body[i] = True
            of_first[i] = bodies.from_world[bodies.body_id[row]] @ poses[i]  # the same bits whatever world is the first
    out = of_first[record]
    if worlds.is_turned:
        turned = np.flatnonzero(~in_body[record] & (world != first[record]))
        out[turned] = worlds.turned(poses[record[turned]], world[turned])
        return _as_rows(out)
    return _as_rows(of_first)[record]


def _matrix(pose: np.ndarray) -> np.ndarray:
    """(4, 4) of (7,) position and quaternion (x, y, z, w)."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation_from_quaternion(pose[3:]), pose[:3]
    return out


def _as_rows(poses: np.ndarray) -> np.ndarray:
    return np.concatenate([poses[:, :3, 3], quaternions_from_matrices(poses[:, :3, :3])], axis=1)
