"""delegate.progress: how far a progressive picture has come, and whether it is still the picture that was begun."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from hdwarp.tables.scene_tables import SceneTables
from hdwarp.views.rows import ViewTable


class Progress:
    """Samples done of one picture, and what it was begun for."""

    def __init__(self) -> None:
        self.count = 0
        self._begun_for: Hashable = None

    def restart(self) -> None:
        """The next sample is the first of a new picture."""
        self.count, self._begun_for = 0, None

    def follow(self, picture: Hashable) -> None:
        """Go on where ``picture`` is what was begun, else restart. Until `done` the picture counts as broken off."""
        if picture != self._begun_for:
            self.count = 0
        self._begun_for = None

    def done(self, picture: Hashable, count: int) -> None:
        """``count`` samples of ``picture`` are in the buffers, whole."""
        self.count, self._begun_for = count, picture


def moved_rows(tables: SceneTables) -> np.ndarray:
    """Rows of the instances that bodies carry, ascending: between two commits nothing else moves."""
    posed = tables.instances.posed
    return np.zeros(0, np.int64) if posed is None else np.sort(posed.row.numpy())


def what_is_seen(views: ViewTable, tables: SceneTables, moved: np.ndarray) -> tuple[bytes, ...]:
    """What a picture depends on and kernels may write between two commits: the view rows (poses, lenses, clip ranges and planes, masks)
    and the places of the instances that bodies carry (``moved``). As bytes, so that NaN equals itself. Waits for the device."""
    rows = views.rows.numpy()  # field by field: what lies between a struct's fields is not ours
    seen = [rows[name].tobytes() for name in rows.dtype.names]
    seen.append(views.planes.numpy().tobytes())
    if len(moved):
        columns = tables.instances.columns()
        seen += [array.numpy()[moved].tobytes() for array in (columns.world_from_object, columns.translation)]
    return tuple(seen)
