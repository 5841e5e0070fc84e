"""tables.frames: named frames, a row each in every world: sites."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import warp as wp

from hdwarp.tables.quaternions import quaternions_from_matrices
from hdwarp.tables.scene_tables import SceneTables


class FrameTable:
    """Frames that bodies carry or worlds hold, world-major, globals first.

    ``label`` (prim paths; of copies, those they would have), ``world`` (rows,) int32, ``body`` (rows,) int32, -1 none, ``transform``
    (rows, 7) float64: position [m] and quaternion (x, y, z, w) in the frame of the body, or of the world where no body carries it.
    """

    def __init__(
        self, frames: Sequence[tuple[str, np.ndarray, str]], tables: SceneTables, attribute: Callable[[str], wp.array] | None = None
    ) -> None:
        """``frames``: (path, (4, 4) float64 rigid pose on the stage [m], path of the body or ""), in path order. ``attribute``: gives the
        columns of attributes."""
        self._attribute = attribute
        worlds, bodies = tables.worlds, tables.bodies
        of, world = worlds.names.spread([path for path, _, _ in frames])
        self.world = world.astype(np.int32)
        self.label = worlds.names.labels([path for path, _, _ in frames], of, world)
        self.body = np.full(len(of), -1, np.int32)
        for i, (_, _, body) in enumerate(frames):
            self.body[of == i] = bodies.rows(body, world[of == i])
        self.transform = np.zeros((len(of), 7))
        if not frames:
            return
        first = np.array([worlds.names.world_of(path) for path, _, _ in frames])
        poses = np.stack([pose for _, pose, _ in frames])
        poses[:, :3, 3] -= worlds.pivot[first + 1]
        placed = worlds.turned(poses[of], world)
        carried = np.flatnonzero(self.body >= 0)
        placed[carried] = bodies.from_world[bodies.body_id[self.body[carried]]] @ poses[of[carried]]
        self.transform = np.concatenate([placed[:, :3, 3], quaternions_from_matrices(placed[:, :3, :3])], axis=1)

    def __len__(self) -> int:
        return len(self.label)

    def attribute(self, name: str) -> wp.array:
        """A user attribute (authored on these prims) as a device column, a row a prim and world, NaN where one has none: float32, or
        vec2f to vec4f. Kernels may write it: see `AttributeColumns` for how long that stays. Rows are those of the scene as it is now.

        Raises ArgumentError when none of them has it, or it is no number.
        """
        return self._attribute(name)
