"""delegate.progress: how far a progressive picture has come, and whether it is still the picture that was begun."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from hdwarp.tables.scene_tables import SceneTables
from hdwarp.views.rows import ViewTable

_WHERE_TREES_LIE = ("root", "global_root")
"""Of a view row: a tree that is built anew over the same instances, elsewhere, gives the same picture."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Interests:
    """What a picture shows of the scene beside what is drawn."""

    cameras: np.ndarray  # (n,) int64 rows
    material_ids: bool = False
    previous: bool = False  # where things were a frame ago
    lights: bool = False


def what_is_drawn(tables: SceneTables, interests: Interests) -> tuple[Hashable, ...]:
    """Counters of what a picture depends on and commits change, but for what `what_is_seen` compares."""
    then: Hashable = None
    if interests.previous:
        then = tables.previous_version, _of_rows(tables.previous.camera_versions, interests.cameras)
    lights = tables.lights.version if interests.lights else 0
    return tables.picture_version, tables.material_ids_version if interests.material_ids else 0, lights, then


def edits(tables: SceneTables, interests: Interests) -> tuple[Hashable, ...]:
    """Counters of what commits change, all of it: cheap to compare, and other than before also where what is seen turns out the same."""
    cameras = tables.cameras
    versions = cameras.version, tables.unposed_version, _of_rows(cameras.row_versions, interests.cameras)
    return *versions, *what_is_drawn(tables, interests)


def _of_rows(versions: np.ndarray, rows: np.ndarray) -> bytes:
    """Rows may be gone."""
    return versions[rows[rows < len(versions)]].tobytes()


def moved_rows(tables: SceneTables) -> np.ndarray:
    """Rows of the instances that bodies carry, ascending: between two commits nothing else moves."""
    posed = tables.instances.posed
    return np.zeros(0, np.int64) if posed is None else np.sort(posed.row.numpy())


def what_is_seen(views: ViewTable, tables: SceneTables, moved: np.ndarray, lights: bool = False) -> tuple[bytes, ...]:
    """What a picture depends on and kernels may write between two commits: the view rows (poses, lenses, clip ranges and planes, masks),
    the places of the instances that bodies carry (``moved``), and with ``lights`` all columns of these. As bytes, so that NaN equals
    itself. Waits for the device."""
    rows = views.rows.numpy()  # field by field: what lies between a struct's fields is not ours
    seen = [rows[name].tobytes() for name in rows.dtype.names if name not in _WHERE_TREES_LIE]
    seen.append(views.planes.numpy().tobytes())
    if len(moved):
        columns = tables.instances.columns()
        places = columns.world_from_object, columns.translation
        seen += [array.numpy()[moved].tobytes() for array in places]
    if lights:
        seen += tables.lights.content()
    return tuple(seen)
