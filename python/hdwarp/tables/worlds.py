"""tables.worlds: where worlds stand, and which device rows the rows of the render index have in them. `scene.worlds`. Host code only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hdwarp.delegate.rows import HostColumns
from hdwarp.delegate.worlds import Worlds
from hdwarp.errors import Error
from hdwarp.stage.columns import WorldGroup


class WorldTable:
    """Worlds. Every world has a frame of its own, with the axes of the stage: bodies, cameras and instances of a world are in it.

    ``count``; ``origin`` (count, 3) float64: where the frame of each world is on the stage [m]: at the root prim of the world, or, in a
    scene without worlds, at the stage's origin or near what is drawn. ``turn`` (count, 3, 3): how each copy is turned against its
    prototype.
    """

    def __init__(self) -> None:
        self.count = 1
        self.origin = np.zeros((1, 3))
        self.turn = np.eye(3)[None]
        self.is_turned = False
        self.pivot = np.zeros((2, 3))  # by world + 1: the place on the stage that is the origin of the world of a row of the index
        self._pivot_then, self._frame = self.pivot, 0
        self.names = Worlds()
        self.poses = self.names.poses.copy()  # of the roots, as followed last
        self.author_copies: Callable[[object, list[WorldGroup]], None] | None = None  # of a scene: tables know no USD

    def __len__(self) -> int:
        return self.count

    @property
    def label(self) -> list[str]:
        """Path of each world's root prim; "" in a scene without worlds."""
        return [group.root_label(world) for group in self.names.groups for world in range(group.first, group.first + group.count)] or [""]

    def author(self, stage: object) -> None:
        """Write the copies to ``stage`` as instanceable references to their prototype: see `hdwarp.author.author_worlds`. Raises Error
        where the table is of no open scene."""
        if self.author_copies is None:
            raise Error("these worlds are of no open scene; hdwarp.author.author_worlds writes groups of worlds to a stage")
        self.author_copies(stage, self.names.groups)

    def pivot_then(self, frame: int) -> np.ndarray:
        """`pivot` for what was where in the frame before ``frame``. Where copies were placed they stay when their prototype's root moves:
        what counts is where things were about the root of then; as far as worlds go with their roots, they are seen from where those are
        now."""
        return self._pivot_then if frame == self._frame else self.pivot

    def sync(self, worlds: Worlds, rest: np.ndarray, frame: int = 0) -> np.ndarray:
        """Follow where the roots are; ``rest`` (3,) float64: the origin of what is in no group; ``frame``: see `pivot_then`. Returns the
        worlds, -1 among them, whose rows of the index are placed anew."""
        before, turn_before = self.pivot, self.turn
        self.poses = worlds.poses.copy()
        self.names, self.count = worlds, worlds.count
        self.pivot = np.zeros((worlds.count + 1, 3))
        self.origin, self.turn = np.zeros((worlds.count, 3)), np.tile(np.eye(3), (worlds.count, 1, 1))
        self.pivot[0], self.is_turned = rest, False
        if not worlds.groups:
            self.pivot[1] = self.origin[0] = rest
        for group, pose in zip(worlds.groups, worlds.poses, strict=True):
            these = slice(group.first, group.first + group.count)
            self.pivot[group.first + 1 : group.first + group.count + 1] = pose[:3, 3]
            if group.placements is None:
                self.origin[these] = pose[:3, 3]
            else:
                self.origin[these] = group.placements[:, :3, 3]
                if (group.placements[:, :3, :3] != pose[:3, :3]).any():
                    self.turn[these] = group.placements[:, :3, :3] @ pose[:3, :3].T
                    self.turn[these][np.abs(self.turn[these] - np.eye(3)).max(axis=(1, 2)) < 1e-12] = np.eye(3)
                    self.is_turned |= bool((self.turn[these] != np.eye(3)).any())
        if before.shape != self.pivot.shape:
            self._pivot_then, self._frame = self.pivot, frame
            return np.arange(-1, self.count)
        then = before if frame != self._frame else self._pivot_then
        self._pivot_then, self._frame = self.pivot.copy(), frame
        for group in worlds.groups:
            if group.placements is not None:
                self._pivot_then[group.first + 1] = np.where(group.stays[:3], then[group.first + 1], self.pivot[group.first + 1])
        moved = (before != self.pivot).any(axis=1)
        moved[1:] |= (turn_before != self.turn).any(axis=(1, 2))
        return np.flatnonzero(moved) - 1

    def turned(self, poses: np.ndarray, world: np.ndarray) -> np.ndarray:
        """(n, 4, 4) ``poses`` about the roots of prototypes as they are in ``world`` (n,), -1 global."""
        if not self.is_turned:
            return poses
        turn = np.tile(np.eye(4), (len(poses), 1, 1))
        turn[:, :3, :3] = np.where((np.asarray(world) >= 0)[:, None, None], self.turn[world], np.eye(3))
        return turn @ poses

    def placed(self, pose: np.ndarray, world: int) -> np.ndarray:
        """(4, 4) pose on the stage of what has ``pose`` there, in the prototype of ``world``."""
        out = self.turned(pose[None], np.array([world]))[0].copy()
        turn = self.turn[world] if world >= 0 else np.eye(3)
        out[:3, 3] = self.origin[world] + turn @ (pose[:3, 3] - self.pivot[world + 1])
        return out

    def unplaced(self, pose: np.ndarray, world: int) -> np.ndarray:
        """(4, 4): what has ``pose`` in the frame of ``world`` has this one on the stage, as its prototype there: `placed` undone."""
        out = pose.copy()
        turn = self.turn[world] if world >= 0 else np.eye(3)
        out[:3, :3] = turn.T @ pose[:3, :3]
        out[:3, 3] = self.pivot[world + 1] + turn.T @ pose[:3, 3]
        return out

    def seen_from(self, world: int) -> int:
        """The world that a single picture of a camera in ``world`` shows: its own; of a global camera the first."""
        return max(world, 0)

    @property
    def global_offset(self) -> np.ndarray:
        """(count, 3) float64 [m]: origin of each world in the frame of what is global."""
        return self.origin - self.pivot[0]


class WorldRows:
    """Device rows. Row r of the index is row r there, in the world that the index says. Copies in other worlds follow behind all of these,
    world by world: K rows of a prototype of N worlds have (N - 1) K more."""

    def __init__(self) -> None:
        self.capacity = 0  # rows of the index
        self.layout = 0  # counts changes of which device rows copies have
        self.size = 0
        self.members: dict[int, np.ndarray] = {}  # by group with copies: its rows in the index, ascending
        self.block: dict[int, int] = {}  # and the first row of its copies
        self._counts: dict[int, int] = {}
        self._firsts: dict[int, int] = {}
        self._member = np.zeros(0, np.int32)  # by row of the index: its number among those of its group

    @property
    def has_copies(self) -> bool:
        return self.size > self.capacity

    def sync(self, worlds: Worlds, host: HostColumns) -> bool:
        """Whether rows of copies are others now than before."""
        groups = {i: group for i, group in enumerate(worlds.groups) if group.count > 1}
        live = host["kind"] >= 0
        members = {i: np.flatnonzero(live & (host["world"] == group.first)) for i, group in groups.items()}
        same = self.capacity == host.capacity and self.members.keys() == members.keys()
        if same and all(np.array_equal(rows, self.members[i]) for i, rows in members.items()):
            return False
        self.capacity, self.members = host.capacity, members
        self._counts = {i: group.count for i, group in groups.items()}
        self._firsts = {i: group.first for i, group in groups.items()}
        self._member = np.full(self.capacity, -1, np.int32)
        end = self.capacity
        for i, rows in members.items():
            self._member[rows] = np.arange(len(rows))
            self.block[i] = end
            end += len(rows) * (self._counts[i] - 1)
        self.size = end
        self.layout += 1
        return True

    def count(self, rows: np.ndarray) -> int:
        """How many device rows ``rows`` of the index have."""
        copies = [int(np.isin(rows, members).sum()) * (self._counts[i] - 1) for i, members in self.members.items()]
        return len(rows) + sum(copies)

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All device rows of ``rows`` (ascending) of the index: (device rows ascending, which of ``rows`` each is of, worlds of the copies
        among them, which come last)."""
        device, which, world = [rows], [np.arange(len(rows))], []
        for i, members in self.members.items():
            place = np.flatnonzero(np.isin(rows, members, assume_unique=True))
            copies = np.arange(self._counts[i] - 1)
            if not len(place):
                continue
            device.append((self.block[i] + len(members) * copies[:, None] + self._member[rows[place]]).reshape(-1))
            which.append(np.tile(place, len(copies)))
            world.append(np.repeat(self._firsts[i] + 1 + copies, len(place)))
        return np.concatenate(device), np.concatenate(which), np.concatenate(world) if world else np.zeros(0, np.int64)

    def copies_at(self) -> tuple[np.ndarray, np.ndarray]:
        """By row of the index: copy c > 0 of it is the device row ``at`` + c ``step``."""
        at, step = np.zeros(self.capacity, np.int64), np.zeros(self.capacity, np.int64)
        for i, members in self.members.items():
            step[members] = len(members)
            at[members] = self.block[i] - len(members) + self._member[members]
        return at, step

    def copies(self) -> tuple[np.ndarray, np.ndarray]:
        """(row in the index, world) of every row behind those of the index."""
        sources = [np.tile(rows, self._counts[i] - 1) for i, rows in self.members.items()]
        worlds = [np.repeat(self._firsts[i] + np.arange(1, self._counts[i]), len(rows)) for i, rows in self.members.items()]
        if not sources:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate(sources), np.concatenate(worlds)
