"""tables.lights: one device row a light and world, globals first: where it is and how it shines. `scene.lights`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.delegate.rows import is_sparse
from hdwarp.delegate.worlds import Worlds
from hdwarp.launch import launch
from hdwarp.stage.looks import Light, LightKind
from hdwarp.tables.attributes import AttributeColumns, PrimRows
from hdwarp.tables.bodies import BodyTable
from hdwarp.tables.domes import DomeTable
from hdwarp.tables.instance_kernels import carried, narrow_matrix
from hdwarp.tables.instances import InstanceTable
from hdwarp.tables.quaternions import quaternions_from_matrices
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import LightColumns
from hdwarp.tables.worlds import WorldTable

_TYPES = {
    "kind": wp.int32,
    "linear": wp.mat33f,
    "translation": wp.vec3d,
    "radiance": wp.vec3f,
    "size": wp.vec4f,
    "diffuse": wp.float32,
    "specular": wp.float32,
    "cone": wp.vec4f,
    "focus_tint": wp.vec3f,
    "shadow": wp.int32,
    "shadow_color": wp.vec3f,
    "shadow_reach": wp.vec3f,
    "texture": wp.int32,
    "link": wp.int32,
    "shadow_link": wp.int32,
    "dome": wp.int32,
    "instance": wp.int32,
    "body": wp.int32,
}
_SIZED = (LightKind.SPHERE, LightKind.DISK, LightKind.RECT, LightKind.CYLINDER)
_PLACES = ("linear", "translation")
_OURS = (*_PLACES, "texture", "link", "shadow_link", "dome", "instance", "body")  # numbers of rows: never kept where rows move


@wp.struct
class _Carried:
    """Lights that bodies carry, a row each."""

    row: wp.array[wp.int32]
    body: wp.array[wp.int32]
    body_from_light: wp.array[wp.mat33d]
    offset: wp.array[wp.vec3d]


@wp.kernel(enable_backward=False)
def _pose(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    body_q: wp.array[wp.transformf],
    lights: _Carried,
    linear: wp.array[wp.mat33f],
    translation: wp.array[wp.vec3d],
):
    """Where bodies have the lights that they carry, composed in float64."""
    i = first + wp.tid() * step
    if i >= count:
        return
    placed = carried(body_q[lights.body[i]], lights.body_from_light[i], lights.offset[i])
    linear[lights.row[i]] = narrow_matrix(placed.linear)
    translation[lights.row[i]] = placed.translation


MOST_SHADOWS = 64
"""Lights of one world that cast shadows."""


@dataclass(frozen=True, slots=True)
class LightTurn:
    """One light after another: those that have one number among the lights of their worlds."""

    sharp: LightKind | None  # POINT, or DISTANT of such without angle, where all of them are that: their shadows have no soft edge
    strength: float  # of the strongest that casts shadows; 0: none does


def _strength(light: Light) -> float:
    """About how much light it sends out: enough to tell which of many lights matter."""
    size = max(light.size[0], 1e-6) * max(light.size[1], light.size[0], 1e-6) if light.kind in _SIZED else 1.0
    return max(light.radiance) * size * max(abs(float(np.linalg.det(light.axes))), 1e-30) ** (2.0 / 3.0)


class LightTable:
    """The stage's lights and their copies as rows, world-major, globals first. Kernels may write the device columns, which are attributes
    (see `LightColumns`): what the stage says wins only where it says something else than before. Bodies carry lights along: `linear` and
    `translation` of those are written by every update.

    ``label`` (prim paths; of copies, those they would have), ``world`` (rows,) int32, ``body`` (rows,) int32, -1 none, ``transform``
    (rows, 7) float64: position [m] and quaternion (x, y, z, w) in the frame of the body, or of the world where no body carries it (of a
    dome, that of its picture); these and ``start`` (world_count + 2,) offsets, globals first, are on the host. ``version`` counts changes
    by the stage.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.version = 0
        self.domes = DomeTable(device)
        self.lights: list[Light] = []
        self.record = np.zeros(0, np.int64)  # by row: its record
        self.world = np.zeros(0, np.int32)
        self.body = np.zeros(0, np.int32)
        self.transform = np.zeros((0, 7))
        self.world_start = np.zeros(3, np.int32)
        self.attributes = AttributeColumns(device)
        self._names = Worlds()
        self._label: list[str] | None = []
        self._arrays = {name: GrowingArray(dtype, device) for name, dtype in _TYPES.items()}
        self._start = GrowingArray(wp.int32, device)
        self._written: dict[str, np.ndarray] = {}  # what we wrote last, by column
        self._carried: _Carried | None = None
        self._write_start()

    def __len__(self) -> int:
        return len(self.record)

    @property
    def label(self) -> list[str]:
        if self._label is None:
            self._label = self._names.labels([light.path for light in self.lights], self.record, self.world)
        return self._label

    def __getattr__(self, name: str) -> wp.array:
        arrays = self.__dict__.get("_arrays", {})
        if name in arrays:
            return arrays[name].array[: max(len(self.record), 1)]
        raise AttributeError(f"the light table has no column {name!r}; columns: {', '.join(arrays)}, label, world, world_start, transform")

    @property
    def columns(self) -> LightColumns:
        columns = LightColumns()
        for name, growing in self._arrays.items():
            setattr(columns, name, growing.array)
        columns.start = self._start.array
        return columns

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [growing.array.ptr for growing in (*self._arrays.values(), self._start)] + self.domes.addresses()

    def device_arrays(self) -> list[wp.array]:
        return [growing.array for growing in (*self._arrays.values(), self._start)] + self.domes.device_arrays()

    def attribute(self, name: str) -> wp.array:
        """A user attribute (authored on these prims) as a device column, a row a light and world, NaN where one has none: float32, or
        vec2f to vec4f. Kernels may write it: see `AttributeColumns` for how long that stays. Rows are those of the scene as it is now.

        Raises ArgumentError when none of them has it, or it is no number.
        """
        return self.attributes.get(name, self.prim_rows)

    def prim_rows(self) -> PrimRows:
        paths = [light.path for light in self.lights]
        return PrimRows(paths, paths, self.record, self.world)

    def content(self) -> tuple[bytes, ...]:
        """All that kernels may have written, as bytes. Waits for the device."""
        return tuple(growing.array.numpy()[: len(self.record)].tobytes() for growing in self._arrays.values())

    # -- following the index -----------------------------------------------------------------------------------------------

    def sync(self, index: RenderIndex, worlds: WorldTable, bodies: BodyTable, instances: InstanceTable) -> None:
        """Make the rows those of the index's lights and of their copies, everything being where the stage has it."""
        lights = sorted(index.lights.values(), key=lambda light: light.path)
        names, paths, before = worlds.names, [light.path for light in lights], self.lights
        record, world = names.spread(paths)
        same_rows = paths == [light.path for light in before] and np.array_equal(world, self.world)
        starts = np.concatenate([[0], np.cumsum(np.bincount(world + 1, minlength=worlds.count + 1))]).astype(np.int32)
        is_new = self.domes.sync(lights) or not same_rows
        kept = {} if same_rows else self._kept(paths, record, world)
        if not same_rows:
            self._written.clear()
            if is_sparse(len(record), self._arrays["kind"].array.shape[0]):
                for growing in self._arrays.values():
                    growing.reset()
        self.lights, self.record, self.world = lights, record, world.astype(np.int32)
        self._names, self._label = names, None
        if not np.array_equal(starts, self.world_start):
            self.world_start = starts
            self._write_start()
        columns = self._values(lights, index)
        columns = {name: items[record] for name, items in columns.items()}
        were_carried = self.body >= 0 if same_rows else np.zeros(len(record), bool)
        columns |= self._places(lights, worlds, bodies)
        moved = were_carried | (self.body >= 0)  # `pose` has written these
        columns["instance"] = self._instances(lights, index, instances)
        for name, items in columns.items():
            written = self._written.get(name)
            if written is None:
                self._arrays[name].write(0, items)
            elif len(items):
                differs = (items != written).reshape(len(items), -1).any(axis=1)
                is_new |= bool(differs.any())
                rows = np.flatnonzero(differs | moved if name in _PLACES else differs)
                self._arrays[name].write_rows(rows, items[rows])
            self._written[name] = items
        for name, (rows, values, said) in kept.items():
            stays = (self._written[name][rows] == said).reshape(len(rows), -1).all(axis=1)  # the stage says what it said
            self._arrays[name].write_rows(rows[stays], values[stays])
        self.version += bool(is_new)
        if self.attributes:
            self.attributes.follow(self.prim_rows())

    def _write_start(self) -> None:
        self._start.write(0, self.world_start)

    def _kept(self, paths: Sequence[str], record: np.ndarray, world: np.ndarray) -> dict[str, tuple]:
        """What kernels have written, by column: (rows it goes to, ascending, the values, what the stage said there)."""
        place = {path: i for i, path in enumerate(paths)}
        rows_of = {key: row for row, key in enumerate(zip(record.tolist(), world.tolist(), strict=True))}
        keys = [(place.get(self.lights[i].path, -1), w) for i, w in zip(self.record.tolist(), self.world.tolist(), strict=True)]
        target = np.array([rows_of.get(key, -1) for key in keys], np.int64)
        kept = {}
        for name, said in self._written.items():
            if name in _OURS or not len(said):
                continue
            now = self._arrays[name].array.numpy()[: len(said)]
            differs = (now != said.astype(now.dtype)).reshape(len(said), -1).any(axis=1)
            rows = np.flatnonzero(differs & (target >= 0))
            rows = rows[np.argsort(target[rows])]
            if len(rows):
                kept[name] = target[rows], now[rows].copy(), said[rows]
        return kept

    def _values(self, lights: list[Light], index: RenderIndex) -> dict[str, np.ndarray]:
        """What says how the lights shine, a row a record."""

        def column(values: list, name: str) -> np.ndarray:
            array = self._arrays[name].array.numpy()
            return np.array(values, array.dtype).reshape(len(lights), *array.shape[1:])

        values = {
            "kind": [int(light.kind) if light.visible else -1 for light in lights],
            "size": [_size(light) for light in lights],
            "cone": [_cone(light) for light in lights],
            "shadow_reach": [_reach(light) for light in lights],
            "texture": [self.domes.picture(light) for light in lights],
            "dome": [self.domes.dome(light) for light in lights],
            "link": [_bit(index, light.light_link) for light in lights],
            "shadow_link": [_bit(index, light.shadow_link) for light in lights],
        }
        for name in ("radiance", "diffuse", "specular", "focus_tint", "shadow", "shadow_color"):
            values[name] = [getattr(light, name) for light in lights]
        return {name: column(items, name) for name, items in values.items()}

    def _places(self, lights: list[Light], worlds: WorldTable, bodies: BodyTable) -> dict[str, np.ndarray]:
        """Where rows are, on the stage; and what `pose` needs of those that bodies carry."""
        record, world = self.record, self.world
        self.body, self._carried = np.full(len(record), -1, np.int32), None
        self.transform = np.zeros((len(record), 7))
        if not lights:
            return {"linear": np.zeros((0, 3, 3)), "translation": np.zeros((0, 3)), "body": self.body}
        for i, light in enumerate(lights):
            if light.body:
                self.body[record == i] = bodies.rows(light.body, world[record == i])
        first = np.array([worlds.names.world_of(light.path) for light in lights])
        poses, axes = np.stack([light.world_from_light for light in lights]), np.stack([light.axes for light in lights])[record]
        poses[:, :3, 3] -= worlds.pivot[first + 1]
        placed = worlds.turned(poses[record], world)
        mounted, rows = placed.copy(), np.flatnonzero(self.body >= 0)
        if len(rows):
            mounted[rows] = bodies.from_world[bodies.body_id[self.body[rows]]] @ poses[record[rows]]
            self._carried = _Carried()
            self._carried.row = wp.array(rows, dtype=wp.int32, device=self.device)
            self._carried.body = wp.array(self.body[rows], dtype=wp.int32, device=self.device)
            self._carried.body_from_light = wp.array(mounted[rows, :3, :3] @ axes[rows], dtype=wp.mat33d, device=self.device)
            self._carried.offset = wp.array(mounted[rows, :3, 3].copy(), dtype=wp.vec3d, device=self.device)
        self.transform = np.concatenate([mounted[:, :3, 3], quaternions_from_matrices(mounted[:, :3, :3])], axis=1)
        return {"linear": placed[:, :3, :3] @ axes, "translation": placed[:, :3, 3], "body": self.body}

    def _instances(self, lights: list[Light], index: RenderIndex, instances: InstanceTable) -> np.ndarray:
        """(rows,) int32: instance rows of what shines."""
        out = np.full(len(self.record), -1, np.int32)
        meshes = [i for i, light in enumerate(lights) if light.kind is LightKind.MESH and (light.mesh, (), 0) in index.gprim_rows]
        if not meshes:
            return out
        at, step = instances.rows.copies_at()
        for i in meshes:
            source = index.gprim_rows[lights[i].mesh, (), 0]
            rows = np.flatnonzero(self.record == i)
            copy = self.world[rows] - index.instances["world"][source]
            out[rows] = np.where(copy == 0, source, at[source] + copy * step[source])
        return out

    # -- posing ------------------------------------------------------------------------------------------------------------

    @property
    def shine_from_gprims(self) -> bool:
        """Whether any are mesh lights, which have rows of instances."""
        return any(light.kind is LightKind.MESH for light in self.lights)

    def turns(self) -> list[LightTurn]:
        """How shadows of each light that a world has are looked for, globals first, as many as the world with the most has; as the stage
        has them. Where more than MOST_SHADOWS cast any, the strongest do."""
        start = self.world_start
        number = np.arange(len(self.record))
        number -= np.where(self.world < 0, 0, start[self.world + 1] - start[1])  # among the lights of its world
        turns = []
        for k in range(int(number.max(initial=-1)) + 1):
            lights = [self.lights[i] for i in np.unique(self.record[number == k])]
            casts = [light for light in lights if light.shadow and light.visible and light.kind is not LightKind.MESH]
            kinds = {_sharp_kind(light) for light in lights}
            turns.append(LightTurn(kinds.pop() if len(kinds) == 1 else None, max(map(_strength, casts), default=0.0)))
        if len(turns) > MOST_SHADOWS:
            least = sorted((turn.strength for turn in turns), reverse=True)[MOST_SHADOWS - 1]
            strong = [k for k, turn in enumerate(turns) if turn.strength >= least][:MOST_SHADOWS]
            turns = [replace(turn, strength=turn.strength if k in set(strong) else 0.0) for k, turn in enumerate(turns)]
        return turns

    @property
    def are_carried(self) -> bool:
        """Whether bodies carry any."""
        return self._carried is not None

    def pose(self, body_q: wp.array) -> None:
        """Move the lights that bodies carry to ``body_q`` (wp.array[transformf], frames of their worlds): device work only."""
        if self._carried is None:
            return
        outputs = [self._arrays[name].array for name in _PLACES]
        launch(_pose, self._carried.row.shape[0], [body_q, self._carried], outputs, device=self.device, grain=4096)

    def unpose(self) -> None:
        """Put them back where the stage has them."""
        if self._carried is None:
            return
        rows = np.flatnonzero(self.body >= 0)
        for name in _PLACES:
            self._arrays[name].write_rows(rows, self._written[name][rows])


def _sharp_kind(light: Light) -> LightKind | None:
    is_sharp = light.kind is LightKind.POINT or (light.kind is LightKind.DISTANT and light.size[0] >= 1.0)
    return light.kind if is_sharp else None


def _size(light: Light) -> tuple[float, float, float, float]:
    if light.kind is not LightKind.DISTANT:
        return *light.size, 0.0, 0.0
    half = math.acos(min(max(light.size[0], -1.0), 1.0))
    sine = math.sin(half)
    facing = 1.0 if half == 0.0 else math.pi * (sine**2 if half <= math.pi / 2 else 1.0)
    return light.size[0], sine, facing, half


def _cone(light: Light) -> tuple[float, float, float, float]:
    fades = light.cone_angle * (1.0 - light.cone_softness)
    return math.cos(light.cone_angle), math.cos(fades), light.focus, float(light.cone_angle < math.pi or light.focus > 0.0)


def _reach(light: Light) -> tuple[float, float, float]:
    distance = light.shadow_distance if light.shadow_distance >= 0.0 else math.inf
    return distance, max(light.shadow_falloff, 0.0), light.shadow_falloff_gamma


def _bit(index: RenderIndex, rules: object) -> int:
    return 1 << index.link_sets[rules] if rules in index.link_sets else 0
