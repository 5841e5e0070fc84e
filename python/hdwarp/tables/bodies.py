"""tables.bodies: rigid bodies, a row each in every world: labels, and where the stage has them. `scene.bodies`."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.tables.attributes import AttributeColumns, PrimRows
from hdwarp.tables.quaternions import quaternions_from_matrices
from hdwarp.tables.worlds import WorldTable


class BodyTable:
    """Rigid bodies, world-major, globals first; in a world in path order: the rows of `State.body_q`.

    ``label``, ``articulation`` (prim paths; of copies, those they would have), ``world`` (rows,) int32, ``world_start``
    (world_count + 2,) offsets, globals first; ``pose`` (rows, 7) float32: position [m] and quaternion (x, y, z, w) where the stage has
    them, in the frame of their world.
    """

    def __init__(self, device: wp.Device | None = None) -> None:
        """``device``: of the columns of attributes; all else is on the host."""
        self.attributes = AttributeColumns(device)
        self.world = np.zeros(0, np.int32)
        self.world_start = np.zeros(3, np.int32)
        self.pose = np.zeros((0, 7), np.float32)
        # By bodyId: what is in the render index, each standing for its copies.
        self.world_of = np.zeros(0, np.int32)  # of the first copy
        self.slot = np.zeros(0, np.int32)  # number among the bodies of its world
        self.from_world = np.zeros((0, 4, 4))  # float64: body from the frame of the prototype's world, which no copy's turn is in
        self.version = 0  # counts changes of which bodies there are
        self.body_id = np.zeros(0, np.int32)  # by row
        self._index: RenderIndex | None = None
        self._paths: list[str] = []
        self._rest = np.zeros(3)
        self._label: list[str] | None = []

    def __len__(self) -> int:
        return len(self.world)

    @property
    def label(self) -> list[str]:
        if self._label is None:
            worlds, paths = self._index.worlds, self._index.body_paths
            self._label = worlds.labels(paths, self.body_id, self.world)
        return self._label

    def attribute(self, name: str) -> wp.array:
        """A user attribute (authored on the bodies' prims) as a device column, a row a body and world, NaN where a body has none: float32,
        or vec2f to vec4f. Kernels may write it: see `AttributeColumns` for how long that stays.

        Raises ArgumentError when no body has it, or it is no number.
        """
        return self.attributes.get(name, self._prim_rows)

    def _prim_rows(self) -> PrimRows:
        return PrimRows(self._paths, self._paths, self.body_id, self.world)

    @property
    def articulation(self) -> list[str]:
        """Label of the articulation root that each body belongs to, "" for none: the nearest prim with ArticulationRootAPI at or above."""
        if self._index is None:
            return []
        bodies, worlds = self._index.bodies, self._index.worlds
        roots = [bodies[path].articulation for path in self._index.body_paths]
        return [roots[i] and worlds.label(roots[i], world) for i, world in zip(self.body_id.tolist(), self.world.tolist(), strict=True)]

    def row(self, path: str, world: int) -> int:
        """Row of the body at ``path`` of the render index in ``world``, -1 where that is none of its worlds."""
        body = self._index.body_row(path) if self._index is not None and path else -1
        if body < 0 or world not in self._index.worlds.worlds_of(path):
            return -1
        return int(self.world_start[world + 1] + self.slot[body])

    def rows(self, path: str, worlds: np.ndarray) -> np.ndarray:
        """(n,) int32: `row` in each of ``worlds`` (n,)."""
        body = self._index.body_row(path) if self._index is not None and path else -1
        if body < 0:
            return np.full(len(worlds), -1, np.int32)
        span = self._index.worlds.worlds_of(path)
        there = (worlds >= span.start) & (worlds < span.stop)
        return np.where(there, self.world_start[np.where(there, worlds, -1) + 1] + self.slot[body], -1).astype(np.int32)

    def sync(self, index: RenderIndex, worlds: WorldTable) -> None:
        """Make the rows those of the index."""
        self._index, paths = index, index.body_paths
        spans = [index.worlds.worlds_of(path) for path in paths]
        self.world_of = np.array([span.start for span in spans], np.int32)
        per_world = np.zeros(worlds.count + 1, np.int64)  # by world + 1
        self.slot = np.zeros(len(paths), np.int32)
        for body, span in enumerate(spans):
            self.slot[body] = per_world[span.start + 1]
            per_world[span.start + 1 : span.stop + 1] += 1
        start = np.concatenate([[0], np.cumsum(per_world)]).astype(np.int32)
        counts = np.array([len(span) for span in spans], np.int64)
        body_id = np.repeat(np.arange(len(paths)), counts)
        world = np.repeat(self.world_of, counts) + (np.arange(len(body_id)) - np.repeat(np.cumsum(counts) - counts, counts))
        row = start[world + 1] + self.slot[body_id]
        before = self.body_id, self.world
        self.body_id, self.world = np.empty(len(row), np.int32), np.empty(len(row), np.int32)
        self.body_id[row], self.world[row] = body_id, world
        self.world_start = start
        same = np.array_equal(before[0], self.body_id) and np.array_equal(before[1], self.world) and self._paths == paths
        if not same or not np.array_equal(self._rest, worlds.pivot[0]):  # poses in a frame that has moved are of elsewhere
            self.version += 1
        self._rest = worlds.pivot[0].copy()
        self._paths = list(paths)
        self._label = None
        if self.attributes:
            self.attributes.follow(self._prim_rows())
        self._place(index, worlds)

    def _place(self, index: RenderIndex, worlds: WorldTable) -> None:
        self.pose = np.zeros((len(self.world), 7), np.float32)
        if not index.body_paths:
            self.from_world = np.zeros((0, 4, 4))
            return
        pose = np.stack([index.bodies[path].world_from_body for path in index.body_paths])
        pose[:, :3, 3] -= worlds.pivot[self.world_of + 1]
        self.from_world = np.linalg.inv(pose)
        if worlds.is_turned:
            placed = worlds.turned(pose[self.body_id], self.world)
            self.pose = np.concatenate([placed[:, :3, 3], quaternions_from_matrices(placed[:, :3, :3])], axis=1).astype(np.float32)
        else:
            pose = np.concatenate([pose[:, :3, 3], quaternions_from_matrices(pose[:, :3, :3])], axis=1).astype(np.float32)
            self.pose = pose[self.body_id]
