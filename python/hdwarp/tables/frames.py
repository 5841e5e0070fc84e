"""tables.frames: named frames, a row each in every world: sites and lights. Host code only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdwarp.tables.quaternions import quaternions_from_matrices
from hdwarp.tables.scene_tables import SceneTables


class FrameTable:
    """Frames that bodies carry or worlds hold, world-major, globals first.

    ``label`` (prim paths; of copies, those they would have), ``world`` (rows,) int32, ``body`` (rows,) int32, -1 none, ``transform``
    (rows, 7) float64: position [m] and quaternion (x, y, z, w) in the frame of the body, or of the world where no body carries it.
    """

    def __init__(self, frames: Sequence[tuple[str, np.ndarray, str]], tables: SceneTables) -> None:
        """``frames``: (path, (4, 4) float64 rigid pose on the stage [m], path of the body or ""), in path order."""
        worlds, bodies = tables.worlds, tables.bodies
        spans = [worlds.names.worlds_of(path) for path, _, _ in frames]
        of = np.repeat(np.arange(len(frames)), [len(span) for span in spans])
        world = np.concatenate([np.arange(span.start, span.stop) for span in spans]) if spans else np.zeros(0, np.int64)
        order = np.argsort(world, kind="stable")
        of, world = of[order], world[order]
        self.world = world.astype(np.int32)
        self.label = worlds.names.labels([path for path, _, _ in frames], of, world)
        self.body = np.full(len(of), -1, np.int32)
        for i, (_, _, body) in enumerate(frames):
            self.body[of == i] = bodies.rows(body, world[of == i])
        self.transform = np.zeros((len(of), 7))
        if not frames:
            return
        poses = np.stack([pose for _, pose, _ in frames])
        poses[:, :3, 3] -= worlds.pivot[np.array([span.start for span in spans]) + 1]
        placed = worlds.turned(poses[of], world)
        carried = np.flatnonzero(self.body >= 0)
        first = worlds.turned(poses, np.array([span.start for span in spans]))[of[carried]]
        placed[carried] = bodies.from_world[bodies.body_id[self.body[carried]]] @ first
        self.transform = np.concatenate([placed[:, :3, 3], quaternions_from_matrices(placed[:, :3, :3])], axis=1)

    def __len__(self) -> int:
        return len(self.label)
