"""tables.mounts: frames that sensors look from without a lens, as camera columns: sites, or one frame that a call places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import warp as wp

from hdwarp.tables.cameras import CameraColumns, camera_arrays, columns_of
from hdwarp.tables.frames import FrameTable


class MountTable:
    """What view rows need of frames: a row each, as in `CameraColumns`. Clip range (0, inf), exposure 1, lens columns that mean nothing.

    ``label``, ``world`` (rows,) int32 on the host; ``version`` counts changes of which frames there are.
    """

    plane_width = 0

    def __init__(self, device: wp.Device, frames: FrameTable | None = None) -> None:
        """``frames``: None: one frame, to be placed by poses given for a call."""
        self.device = device
        self.version = 0
        self.label: list[str] = [""]
        self.world = np.zeros(1, np.int32)
        self._arrays = camera_arrays(device)
        if frames is None:
            self._write(np.array([[0.0, 0, 0, 0, 0, 0, 1]]), np.full(1, -1))
        else:
            self.sync(frames)

    def __len__(self) -> int:
        return len(self.label)

    @property
    def columns(self) -> CameraColumns:
        return columns_of(self._arrays)

    def sync(self, frames: FrameTable) -> None:
        """Make the rows those of ``frames``; addresses change only when there are more of them."""
        if not _same(self.label, frames.label) or not np.array_equal(self.world, frames.world):
            self.version += 1
            self.label, self.world = list(frames.label), frames.world
        self._write(frames.transform, frames.body)

    def _write(self, transform: np.ndarray, body: np.ndarray) -> None:
        count = len(transform)
        columns = {
            "transform": transform,
            "body": body,
            "axes": np.tile(np.eye(3), (count, 1, 1)),
            "clipping_range": np.tile([0.0, math.inf], (count, 1)),
            "focal_length": np.ones(count),
            "aperture": np.ones((count, 2)),
            "exposure": np.ones(count),
        }
        for name, growing in self._arrays.items():
            shape = (0,) if name == "clipping_planes" else (count, *growing.array.numpy().shape[1:])
            growing.write(0, columns[name] if name in columns else np.zeros(shape))


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(a == b for a, b in zip(one, other, strict=True))
