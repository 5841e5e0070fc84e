"""tables.lods: which instances a camera does not see, since it chooses other items of UsdLod roots than the default. Knows no USD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.stage.columns import is_seen_by
from hdwarp.tables.structs import NOT_COLLIDER, NOT_VISUAL, OTHER_LOD


class Lods:
    """What the cameras of a scene choose, as the stage has them. ``version`` counts changes of that."""

    def __init__(self) -> None:
        self.choices: dict[str, dict[str, int]] = {}  # camera -> path of a root -> item, where that is not the default
        self.version = 0

    def take(self, choices: dict[str, dict[str, int]]) -> None:
        if choices != self.choices:
            self.choices, self.version = choices, self.version + 1

    def differ_for(self, camera: str) -> bool:
        """Whether a camera, by its path on the stage, chooses anything but the defaults."""
        return bool(self.choices.get(camera))

    def flags_of(self, index: RenderIndex, flags: np.ndarray, camera: str) -> np.ndarray:
        """``flags`` (rows of the index,), those of `InstanceTable.flags_of`, as the camera has them."""
        flags = flags.copy()
        for start, count, is_seen in self._runs(index, [camera]):
            rows = slice(start, start + count)
            flags[rows] &= ~(NOT_VISUAL | OTHER_LOD)
            if not is_seen[0]:
                flags[rows] |= np.where(flags[rows] & NOT_COLLIDER, NOT_VISUAL | OTHER_LOD, NOT_VISUAL)
            elif not index.instances["visual"][start]:
                flags[rows] |= NOT_VISUAL
        return flags

    def mark(self, index: RenderIndex, flags: np.ndarray, cameras: Sequence[str], bits: Sequence[int], *, colliders: bool) -> None:
        """In place of the table's own bits, set ``bits[i]`` on what ``cameras[i]`` does not choose; ``colliders``: but for these."""
        for start, count, is_seen in self._runs(index, cameras):
            rows = slice(start, start + count)
            flags[rows] &= ~(NOT_VISUAL | OTHER_LOD)
            if not index.instances["visual"][start]:
                flags[rows] |= NOT_VISUAL
            unseen = sum(bit for bit, seen in zip(bits, is_seen, strict=True) if not seen)
            flags[rows] |= np.where((flags[rows] & NOT_COLLIDER) != 0, unseen, 0) if colliders else unseen

    def _runs(self, index: RenderIndex, cameras: Sequence[str]):
        """(first row, rows, whether each camera sees them) of what is in LOD items."""
        chosen = [self.choices.get(camera, {}) for camera in cameras]
        for key, gprim in index.gprims.items():
            if gprim.lods:
                yield *index.gprim_rows.run(key), [is_seen_by(gprim, items) for items in chosen]
