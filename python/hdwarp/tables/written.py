"""tables.written: points and primvars that a caller sets, on the device: kept, so that what the tables build anew gets them again.

Setting is device work only: after the first call for a mesh nothing is allocated, and nobody waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from hdwarp.delegate.mesh_content import same_bits
from hdwarp.delegate.written import drawn_numbers
from hdwarp.launch import launch
from hdwarp.stage.normals import SmoothNormals
from hdwarp.tables.primvars import BuiltPrimvar

if TYPE_CHECKING:
    from hdwarp.tables.scene_tables import SceneTables

_GRAIN = 4096
_LARGEST = wp.constant(1.0e18)  # as `stage.transforms.LARGEST`: what reading a stage takes for a coordinate


@wp.func
def is_usable(p: wp.vec3f) -> wp.bool:
    """NaN is not."""
    return wp.abs(p[0]) <= _LARGEST and wp.abs(p[1]) <= _LARGEST and wp.abs(p[2]) <= _LARGEST


@wp.kernel(enable_backward=False)
def _take_points(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    given: wp.array2d[wp.float32],
    drawn: wp.array[wp.int32],  # which of those given to take; null: all
    centre: wp.vec3d,
    scale: wp.float64,
    points: wp.array[wp.vec3f],
    placed: wp.array[wp.vec3f],  # null: the same as `points`
):
    """Points as authored, NaN where a reader of stages would refuse them; and less the mesh's centre, over its scale."""
    i = first + wp.tid() * step
    if i >= count:
        return
    k = i
    if drawn:
        k = drawn[i]
    p = wp.vec3f(given[k, 0], given[k, 1], given[k, 2])
    if not is_usable(p):
        p = wp.vec3f(wp.float32(wp.NAN), wp.float32(wp.NAN), wp.float32(wp.NAN))
    points[i] = p
    if placed:
        placed[i] = wp.vec3f((wp.vec3d(p) - centre) / scale)


@wp.kernel(enable_backward=False)
def _refuse_faces(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    points: wp.array[wp.vec3f],
    face_start: wp.array[wp.int32],
    face_points: wp.array[wp.int32],
    refused: wp.array[wp.int32],
):
    face = first + wp.tid() * step
    if face >= count:
        return
    bad = wp.int32(0)
    for corner in range(face_start[face], face_start[face + 1]):
        if not is_usable(points[face_points[corner]]):
            bad = 1
    refused[face] = bad


@wp.kernel(enable_backward=False, module="unique", module_options={"fuse_fp": False})  # rounded as NumPy does
def _smooth_normals(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    points: wp.array[wp.vec3f],
    start: wp.array[wp.int32],  # as `Fans`
    following: wp.array[wp.int32],
    before: wp.array[wp.int32],
    face: wp.array[wp.int32],  # null: all are triangles
    refused: wp.array[wp.int32],
    width: wp.int32,
    first_row: wp.int32,
    out: wp.array[wp.float32],
):
    """`stage.normals.smooth_normals`, to the bit."""
    i = first + wp.tid() * step
    if i >= count:
        return
    p = wp.vec3d(points[i])
    x, y, z = wp.float64(0.0), wp.float64(0.0), wp.float64(0.0)
    for k in range(start[i], start[i + 1]):
        a = wp.vec3d(points[following[k]]) - p
        b = wp.vec3d(points[before[k]]) - p
        u = a[1] * b[2] - a[2] * b[1]
        counts = u == u  # bad points are NaN in all coordinates
        if face:
            counts = refused[face[k]] == 0
        if counts:
            x += u
            y += a[2] * b[0] - a[0] * b[2]
            z += a[0] * b[1] - a[1] * b[0]
    length = wp.sqrt(x * x + (y * y + z * z))
    if not (length > wp.float64(0.0)):
        length = wp.float64(1.0)
    base = (first_row + i) * width
    out[base] = wp.float32(x / length)
    if width > 1:
        out[base + 1] = wp.float32(y / length)
    if width > 2:
        out[base + 2] = wp.float32(z / length)


@wp.kernel(enable_backward=False)
def _spread(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    values: wp.array2d[wp.float32],
    width: wp.int32,
    first_row: wp.int32,
    out: wp.array[wp.float32],
):
    """Rows of values into rows of ``width``: cut, or padded with 0."""
    i = first + wp.tid() * step
    if i >= count:
        return
    for c in range(width):
        value = wp.float32(0.0)
        if c < values.shape[1]:
            value = values[i, c]
        out[(first_row + i) * width + c] = value


class _Fans:
    """`stage.normals.Fans` on the device, and where faces are marked that have a bad point."""

    def __init__(self, normals: SmoothNormals, device: wp.Device) -> None:
        def on_device(values: np.ndarray | None) -> wp.array | None:
            return None if values is None else wp.array(values if len(values) else np.zeros(1, np.int32), dtype=wp.int32, device=device)

        fans = normals.fans()
        self.normals = normals
        self.around = [on_device(values) for values in (fans.start, fans.following, fans.before, fans.face)]
        self.faces = [on_device(fans.face_start), on_device(fans.face_points)]
        self.face_count = 0 if fans.face_start is None else len(fans.face_start) - 1
        self.refused = None if fans.face is None else wp.zeros(max(self.face_count, 1), dtype=wp.int32, device=device)

    def write(self, points: wp.array, built: BuiltPrimvar, row: int) -> None:
        """Normals of the mesh of a row into columns of normals."""
        device = points.device
        if self.refused is not None:
            launch(_refuse_faces, self.face_count, [points, *self.faces], [self.refused], device=device, grain=_GRAIN)
        inputs = [points, *self.around, self.refused, built.columns.width, int(built.of_mesh[row])]
        launch(_smooth_normals, len(points), inputs, [built.columns.values], device=device, grain=_GRAIN)


@dataclass(slots=True, eq=False)
class _Points:
    """Points of one prim."""

    points: wp.array  # (P,) vec3f, those that are drawn, as authored
    numbers: np.ndarray | None  # (P,) int32, which of the authored ones these are, where they are not all of them
    drawn: wp.array | None  # the same on the device
    given: wp.array | None = None  # (N, 3) float32, for callers whose arrays are on the host; None: not needed so far
    placed: dict[int, wp.array] = field(default_factory=dict)  # by mesh row: less its centre and over its scale, where it has either
    fans: dict[int, _Fans] = field(default_factory=dict)  # by mesh row, of meshes whose normals somebody looks at
    version: tuple[int, bool] = (-1, False)  # of the tables, at which the following were found; whether they keep the frame before
    mesh_rows: list[int] = field(default_factory=list)
    instance_rows: wp.array | None = None  # (n,) int32, device rows
    # Of the frame before, by mesh row, where the tables keep it.
    sources: dict[int, wp.array] = field(default_factory=dict)  # (n,) int32, rows of the index
    before: dict[int, tuple[wp.array, wp.array, wp.array]] = field(default_factory=dict)  # (points, lower, upper)
    frame: int = -1  # in which points were set last


class WrittenValues:
    """What callers have set, in step with `RenderIndex.written`."""

    def __init__(self, tables: SceneTables) -> None:
        self._tables = tables
        self._points: dict[str, _Points] = {}
        self._primvars: dict[tuple[str, str], wp.array] = {}  # (path, name) -> (n, k) float32

    # -- setting ----------------------------------------------------------------------------------------------------------

    def set_points(self, path: str, rows: wp.array) -> None:
        """``rows``: (N, 3) float32, a row an authored point, for the prim at ``path``, for which the index has stand-ins."""
        tables, device = self._tables, self._tables.device
        kept, mesh = self._points.get(path), tables.index.written.mesh(path)
        numbers = drawn_numbers(mesh)
        is_first = kept is None or len(kept.points) != len(mesh.points) or not same_bits(kept.numbers, numbers)
        if is_first:
            drawn = None if numbers is None else wp.array(numbers, dtype=wp.int32, device=device)
            kept = self._points[path] = _Points(wp.empty(len(mesh.points), dtype=wp.vec3f, device=device), numbers, drawn)
        if rows.device != device:
            if kept.given is None:
                kept.given = wp.empty(rows.shape, dtype=wp.float32, device=device)
            wp.copy(kept.given, rows)
            rows = kept.given
        self._find_rows(path, kept)
        if tables.previous is not None and kept.frame != tables.index.previous.frame:
            self._remember(kept, is_first)
        for row in kept.mesh_rows:
            self._place(kept, row, rows, kept.drawn)
            for built in tables.built_primvars("normals"):
                self._write_normals(kept, row, built)
        tables.instances.update_bounds(kept.instance_rows)
        tables.refit_trees()
        tables.picture_version += 1

    def set_primvar(self, path: str, name: str, rows: wp.array) -> None:
        """``rows``: (n, k) float32, as many as `RenderIndex.written` has for this primvar of the prim at ``path``."""
        kept = self._primvars.get((path, name))
        if kept is None or kept.shape != rows.shape:
            kept = self._primvars[path, name] = wp.empty(rows.shape, dtype=wp.float32, device=self._tables.device)
        wp.copy(kept, rows)
        for built in self._tables.built_primvars(name):
            self._write_primvar(path, name, built)
        self._tables.picture_version += 1

    # -- following the tables ---------------------------------------------------------------------------------------------

    def sync(self, mesh_rows: np.ndarray) -> None:
        """Let go of what is no longer set, and give the meshes of ``mesh_rows``, which may have been built anew, their points."""
        index = self._tables.index
        for path in self._points.keys() - set(index.written.paths_of_points):
            del self._points[path]
        for path, name in [item for item in self._primvars if index.written.primvar(*item) is None]:
            del self._primvars[path, name]
        anew = set(mesh_rows.tolist()) if self._points else ()
        for path, kept in self._points.items():
            for row in index.written.mesh_rows(path):
                if row in anew:
                    self._place(kept, row, None)

    def restart(self) -> None:
        """Rows are others now. In the frame in which that happens points count as where they are."""
        for kept in self._points.values():
            kept.before.clear()
            kept.version = (-1, False)

    def sync_previous(self) -> None:
        """After `PreviousPoses.sync`: what had points set in this frame was where it was before."""
        for path, kept in self._points.items():
            if kept.frame == self._tables.index.previous.frame:
                kept.version = (-1, False)  # this is the end of a `SceneTables.sync`, which has not counted yet
                self._find_rows(path, kept)
                self._show(kept)

    def fill(self, name: str, built: BuiltPrimvar) -> None:
        """Write into new columns what is set of theirs."""
        for path, other in self._primvars:
            if other == name:
                self._write_primvar(path, name, built)
        if name == "normals":
            for path, kept in self._points.items():
                for row in self._tables.index.written.mesh_rows(path):
                    self._write_normals(kept, row, built)

    # -- inside -----------------------------------------------------------------------------------------------------------

    def _find_rows(self, path: str, kept: _Points) -> None:
        tables, index = self._tables, self._tables.index
        version = tables.version, tables.previous is not None
        if kept.version == version:
            return
        runs = [index.gprim_rows.run(key) for key in index.written.keys(path)]
        rows = np.sort(np.concatenate([np.arange(start, start + count) for start, count in runs]))
        rows = tables.instances.rows.of(rows)[0].astype(np.int32)
        if kept.instance_rows is None or not np.array_equal(kept.instance_rows.numpy(), rows):
            kept.instance_rows = wp.array(rows, dtype=wp.int32, device=tables.device)
        kept.mesh_rows, kept.version = index.written.mesh_rows(path), version
        if tables.previous is not None:
            mesh = index.instances["mesh"]
            kept.sources = {row: wp.array(np.flatnonzero(mesh == row), dtype=wp.int32, device=tables.device) for row in kept.mesh_rows}

    def _remember(self, kept: _Points, is_first: bool) -> None:
        """The points as they are, before the first new ones of a frame, are those of the frame before."""
        tables, device = self._tables, self._tables.device
        kept.frame = tables.index.previous.frame
        for row in kept.mesh_rows:
            if is_first:
                self._place(kept, row, wp.array(tables.meshes.geometry[row].points, dtype=wp.float32, device=device))
            if row not in kept.before:
                sizes = len(kept.points), 1, 1
                kept.before[row] = tuple(wp.empty(size, dtype=wp.vec3f, device=device) for size in sizes)
            for then, now in zip(kept.before[row], (kept.placed.get(row, kept.points), *tables.meshes.bounds_of(row)), strict=True):
                wp.copy(then, now)
        self._show(kept)
        tables.previous_version += 1

    def _show(self, kept: _Points) -> None:
        for row in kept.mesh_rows:
            if row in kept.before:
                self._tables.previous.show_points(row, kept.sources[row], *kept.before[row])

    def _place(self, kept: _Points, row: int, given: wp.array | None, drawn: wp.array | None = None) -> None:
        """Refit the mesh of a row to new points, None: those that are kept. ``drawn``: which of those given it has, None: all."""
        tables, meshes = self._tables, self._tables.meshes
        centre, scale = meshes.centre[row], float(meshes.scale[row])
        placed = None
        if centre.any() or scale != 1.0:
            if row not in kept.placed:
                kept.placed[row] = wp.empty(len(kept.points), dtype=wp.vec3f, device=tables.device)
            placed = kept.placed[row]
        if given is None:
            given = wp.array(ptr=kept.points.ptr, dtype=wp.float32, shape=(len(kept.points), 3), device=tables.device)
        outputs = [kept.points, placed]
        launch(_take_points, len(kept.points), [given, drawn, wp.vec3d(*centre), scale], outputs, device=tables.device, grain=_GRAIN)
        lower, upper = meshes.refit_to(row, kept.points if placed is None else placed)
        tables.instances.move_mesh_bounds(row, lower, upper)

    def _write_normals(self, kept: _Points, row: int, built: BuiltPrimvar) -> None:
        normals = self._tables.meshes.geometry[row].normals
        if not isinstance(normals, SmoothNormals):
            return
        if row not in kept.fans or kept.fans[row].normals is not normals:
            kept.fans[row] = _Fans(normals, self._tables.device)
        kept.fans[row].write(kept.points, built, row)

    def _write_primvar(self, path: str, name: str, built: BuiltPrimvar) -> None:
        values, index = self._primvars[path, name], self._tables.index
        set_as = index.written.primvar(path, name)
        if set_as is None or set_as.shape != tuple(values.shape):
            return  # of before: its own values are about to come
        if set_as.varies or name == "normals":
            starts = [int(built.of_mesh[row]) for row in index.written.mesh_rows(path)]
        else:
            starts = [built.of_gprim[key] for key in index.written.keys(path)]
        for start in starts:
            inputs = [values, built.columns.width, start]
            launch(_spread, len(values), inputs, [built.columns.values], device=values.device, grain=_GRAIN)
