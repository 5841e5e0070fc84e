"""tables.cameras: one device row a camera and world, globals first: mount, lens, clip range. `scene.cameras`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence

import numpy as np
import warp as wp

from hdwarp.errors import ArgumentError, NotSupported
from hdwarp.stage.columns import MAX_CLIPPING_PLANES, Camera
from hdwarp.tables.storage import GrowingArray

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
    clipping_planes: wp.array[wp.vec4f]  # MAX_CLIPPING_PLANES a camera; camera space [m], cut where a.x + d < 0
    exposure: wp.array[wp.float32]


class CameraTable:
    """The stage's cameras as rows, world-major, globals first. The device columns are attributes; a kernel may write them.

    ``label`` (prim paths), ``world`` and ``world_start`` ((world_count + 2,) offsets, globals first) are on the host.
    ``clipping_planes`` is (cameras, MAX_CLIPPING_PLANES) vec4f, of which the first ``clipping_plane_count`` of a row count.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.label: list[str] = []
        self.version = 0  # counts changes of which cameras there are
        self.world = np.zeros(0, np.int32)
        self.world_start = np.zeros(3, np.int32)
        self.records: list[Camera] = []
        self._arrays = camera_arrays(device)
        self._written: dict[str, np.ndarray] = {}  # what we wrote last, by column

    def __len__(self) -> int:
        return len(self.label)

    def __getattr__(self, name: str) -> wp.array:
        arrays = self.__dict__.get("_arrays", {})
        if name in arrays:
            array, rows = arrays[name].array, max(len(self.label), 1)
            if name == "clipping_planes":
                array = array[: array.shape[0] // MAX_CLIPPING_PLANES * MAX_CLIPPING_PLANES].reshape((-1, MAX_CLIPPING_PLANES))
            return array[:rows]
        if name in ("lens_params", "resolution"):
            raise NotSupported(f"the camera table's column {name!r} is not supported yet")
        raise AttributeError(f"the camera table has no column {name!r}; columns: {', '.join(arrays)}, label, world, world_start")

    @property
    def columns(self) -> CameraColumns:
        return columns_of(self._arrays)

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in self._arrays.values()]

    def attribute(self, name: str) -> np.ndarray:
        """One user attribute (authored on the camera prims) as a float64 column, NaN where a camera has none.

        Raises ArgumentError when no camera has it, or it is no number.
        """
        values = [camera.attributes.get(name) for camera in self.records]
        if all(value is None for value in values):
            known = sorted({key for camera in self.records for key in camera.attributes})
            raise ArgumentError(f"no camera has an attribute {name!r}; authored: {', '.join(known) or 'none'}")
        for camera, value in zip(self.records, values, strict=True):
            if value is not None and not np.issubdtype(np.asarray(value).dtype, np.number) and not isinstance(value, bool):
                raise ArgumentError(f"<{camera.path}>: attribute {name!r} is {value!r}; only numbers make a column")
        width = max(np.size(value) for value in values if value is not None)
        column = np.full((len(values), width), np.nan)
        for row, value in enumerate(values):
            if value is not None:
                column[row, : np.size(value)] = np.asarray(value, np.float64).ravel()
        return column[:, 0] if width == 1 else column

    def select(self, pattern: str | re.Pattern | int | Sequence | None) -> list[int]:
        """Camera rows for an fnmatch pattern over the whole label ('*' crosses '/'), a compiled expression, an index, or a list of these.

        Raises ArgumentError naming what was given and what exists when a pattern matches nothing.
        """
        if pattern is None:
            return list(range(len(self.label)))
        if isinstance(pattern, (str, re.Pattern, int, np.integer)):
            pattern = [pattern]
        if not isinstance(pattern, Sequence):
            raise ArgumentError(f"cameras={pattern!r}: expected a pattern, a compiled expression, a row number or a list of these")
        if len(pattern) == 0:
            raise ArgumentError(f"cameras is empty; cameras of the scene: {', '.join(self.label[:20]) or 'none'}")
        rows: list[int] = []
        for item in pattern:
            found = self._match(item)
            if not found:
                raise ArgumentError(f"no camera matches {item!r}; cameras: {', '.join(self.label[:20]) or 'none'}")
            rows += [row for row in found if row not in rows]
        return sorted(rows)

    def _match(self, item: str | re.Pattern | int) -> list[int]:
        if isinstance(item, str):
            return [row for row, label in enumerate(self.label) if fnmatch.fnmatchcase(label, item)]
        if isinstance(item, re.Pattern):
            return [row for row, label in enumerate(self.label) if item.fullmatch(label)]
        if isinstance(item, bool) or not isinstance(item, int | np.integer):
            raise ArgumentError(f"camera {item!r}: expected a pattern, a compiled expression or a row number")
        row = int(item)
        return [row] if 0 <= row < len(self.label) else []

    def sync(self, cameras: Sequence[Camera], body_rows: Sequence[int], origin: np.ndarray, bodies_from_world: np.ndarray) -> None:
        """Make the rows those of the adapter's records, sorted by path. ``bodies_from_world``: (rows, 4, 4), origin taken off.

        What a kernel has written stays, but for the columns of a camera whose records now say something else; where cameras came or went,
        rows move, and all are written anew.
        """
        order = sorted(range(len(cameras)), key=lambda i: cameras[i].path)
        self.records = [cameras[i] for i in order]
        label = [camera.path for camera in self.records]
        if label != self.label:
            self.version += 1
            self._written.clear()
        self.label = label
        # A scene without worlds is world 0, and its cameras belong to it.
        self.world = np.zeros(len(order), np.int32)
        self.world_start = np.array([0, 0, len(order)], np.int32)
        if not order:
            return
        body = np.array([body_rows[i] for i in order], np.int32)
        transforms = np.stack([mount(camera, row, origin, bodies_from_world) for camera, row in zip(self.records, body, strict=True)])
        for name, items in {"transform": transforms, "body": body, **lens_columns(self.records)}.items():
            before = self._written.get(name)
            if before is None:
                self._arrays[name].write(0, items)
            else:
                rows = np.flatnonzero((items != before).reshape(len(items), -1).any(axis=1))
                self._arrays[name].write_rows(rows, items[rows])
            self._written[name] = items


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
    arrays = {name: GrowingArray(dtype, device) for name, dtype in types.items()}
    arrays["clipping_planes"].reserve(MAX_CLIPPING_PLANES)
    return arrays


def columns_of(arrays: Mapping[str, GrowingArray]) -> CameraColumns:
    """The struct kernels take."""
    columns = CameraColumns()
    for name, growing in arrays.items():
        setattr(columns, name, growing.array)
    return columns


def lens_columns(cameras: Sequence[Camera]) -> dict[str, np.ndarray]:
    """The columns of `CameraColumns` that do not say where the cameras are."""
    planes = np.zeros((len(cameras), MAX_CLIPPING_PLANES, 4))
    for row, camera in enumerate(cameras):
        planes[row, : len(camera.clipping_planes)] = camera.clipping_planes
    return {
        "axes": np.stack([camera.axes for camera in cameras]),
        "lens": np.array([1 if camera.projection == "orthographic" else 0 for camera in cameras]),
        "focal_length": np.array([camera.focal_length for camera in cameras]),
        "aperture": np.array([camera.aperture for camera in cameras]),
        "aperture_offset": np.array([camera.aperture_offset for camera in cameras]),
        "clipping_range": np.array([camera.clipping_range for camera in cameras]),
        "exposure": np.array([camera.exposure_scale for camera in cameras]),
        "clipping_plane_count": np.array([len(camera.clipping_planes) for camera in cameras]),
        "clipping_planes": planes.reshape(-1, 4),
    }


def mount(camera: Camera, body_row: int, origin: np.ndarray, bodies_from_world: np.ndarray) -> np.ndarray:
    """(7,) float64 position and quaternion (x, y, z, w) of a camera in its body's or its world's frame."""
    pose = camera.world_from_camera.copy()
    pose[:3, 3] -= origin
    if body_row >= 0:
        pose = bodies_from_world[body_row] @ pose
    return np.concatenate([pose[:3, 3], quaternion_from_matrix(pose[:3, :3])])


def quaternion_from_matrix(rotation: np.ndarray) -> np.ndarray:
    """(4,) unit quaternion (x, y, z, w) of a (3, 3) rotation matrix, by the largest of the four components (Shepperd's method)."""
    m = np.asarray(rotation, np.float64)
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    candidates = np.array([m[0, 0], m[1, 1], m[2, 2], trace])
    i = int(np.argmax(candidates))
    q = np.empty(4)
    if i == 3:
        q[:] = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], 1.0 + trace
    else:
        j, k = (i + 1) % 3, (i + 2) % 3
        q[i] = 1.0 + m[i, i] - m[j, j] - m[k, k]
        q[j] = m[j, i] + m[i, j]
        q[k] = m[k, i] + m[i, k]
        q[3] = m[k, j] - m[j, k]
    return q / np.linalg.norm(q)
