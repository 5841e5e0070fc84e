"""delegate.previous_rows: what prims were a frame ago, kept only where a frame has changed them. NumPy only; no USD, no Warp."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hdwarp.delegate.previous_points import previous_points
from hdwarp.stage.columns import Camera, Gprim, GprimKey, MeshGeometry, StageChanges

if TYPE_CHECKING:
    from hdwarp.delegate.render_index import RenderIndex

PROJECTION = ("world_from_camera", "axes", "projection", "focal_length", "aperture", "aperture_offset")
"""What of a camera says where a point is seen."""


@dataclass(slots=True)
class MovedRows:
    """Instance rows that were elsewhere, or shaped otherwise, in the frame before."""

    rows: np.ndarray  # (n,) int64, each once, in any order
    transforms: np.ndarray  # (n, 3, 4) float64 world_from_object of then
    deformed: list[tuple[np.ndarray, MeshGeometry, int]] = field(default_factory=list)
    """(rows, geometry of now with the points of then, mesh row of now): what has other points, by `previous_points`."""


class PreviousRows:
    """The records that prims had when the frame began. Records are never written to, so that keeping one costs nothing while the prim is as
    it was; one that was replaced lives on for a frame."""

    def __init__(self) -> None:
        self._gprims: dict[GprimKey, Gprim | None] = {}  # None: there was none
        self._cameras: dict[str, Camera | None] = {}
        # By their ids: two geometries, which are kept, so that the ids stay theirs, and what `previous_points` makes of them.
        self._matched: dict[tuple[int, int], tuple[MeshGeometry, MeshGeometry, MeshGeometry | None]] = {}
        self.frame = 0  # counts

    def advance(self) -> None:
        """A frame begins: what it will be compared with is how things are now."""
        self._gprims.clear()
        self._cameras.clear()
        self._matched.clear()
        self.frame += 1

    def note(self, index: RenderIndex, changes: StageChanges) -> None:
        """``changes`` are about to be applied: of several changes of a prim in one frame the first tells what the prim was."""
        gprims, cameras = list(changes.gprims), list(changes.cameras)
        if changes.complete:
            gprims += index.gprims.keys() - changes.gprims.keys()
            cameras += [path for path in index.camera_rows if path not in changes.cameras]
        for key in gprims:
            self._gprims.setdefault(key, index.gprims.get(key))
        for path in cameras:
            known = path in index.camera_rows
            self._cameras.setdefault(path, index.cameras[index.camera_rows[path]] if known else None)

    def camera(self, now: Camera) -> tuple[Camera, int]:
        """What a camera was, and which of `PROJECTION` differ from now, a bit each; itself and 0 where it is new."""
        before = self._cameras.get(now.path) or now
        differs = [not np.array_equal(getattr(before, name), getattr(now, name)) for name in PROJECTION]
        return before, sum(1 << bit for bit, differ in enumerate(differs) if differ)

    def moved(self, index: RenderIndex) -> MovedRows:
        """Where what is drawn now was before. What is new was nowhere; what has another kind of geometry now counts as new."""
        rows, transforms, deformed, matched = [], [], [], {}
        for key, before in self._gprims.items():
            now = index.gprims.get(key)
            if before is None or now is None or before is now or before.kind != now.kind:
                continue
            here, there = _same_instances(before, now)
            then = self._then(before.mesh, now.mesh, matched)
            if then is None and np.array_equal(before.transforms[there], now.transforms[here]):
                continue
            transforms.append(before.transforms[there, :3])
            here = np.arange(len(now.transforms))[here] + index.gprim_rows.run(key)[0]
            rows.append(here)
            if then is not None:
                deformed.append((here, then, int(index.instances["mesh"][here[0]]) if len(here) else -1))
        self._matched = matched
        if not rows:
            return MovedRows(np.zeros(0, np.int64), np.zeros((0, 3, 4)))
        return MovedRows(np.concatenate(rows), np.concatenate(transforms), [item for item in deformed if item[2] >= 0])

    def _then(self, before: MeshGeometry | None, now: MeshGeometry | None, matched: dict) -> MeshGeometry | None:
        """`previous_points`, once for all that share both, and again only where either is another than at the last call; noted in
        ``matched``."""
        if before is None or now is None or before is now:
            return None
        key = id(before), id(now)
        if key not in matched:
            matched[key] = self._matched.get(key) or (before, now, previous_points(before, now))
        return matched[key][2]


def _same_instances(before: Gprim, now: Gprim) -> tuple[np.ndarray | slice, np.ndarray | slice]:
    """(instances of now, the same ones of before): by their authored ids, outer instancers' included, where there are instancers."""
    ids, old_ids = _authored_ids(now), _authored_ids(before)
    count, old_count = len(now.transforms), len(before.transforms)
    if ids is None or old_ids is None or np.array_equal(ids, old_ids):
        both = slice(0, min(count, old_count))
        return both, both
    if ids.shape[1] != old_ids.shape[1]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if ids.shape[1] == 1:
        _, number = np.unique(np.concatenate([ids[:, 0], old_ids[:, 0]]), return_inverse=True)
    else:
        _, number = np.unique(np.concatenate([ids, old_ids]), axis=0, return_inverse=True)
    number = number.reshape(-1)
    place = np.full(int(number.max(initial=-1)) + 1, -1)
    place[number[count:]] = np.arange(old_count)
    there = place[number[:count]]
    return np.flatnonzero(there >= 0), there[there >= 0]


def _authored_ids(gprim: Gprim) -> np.ndarray | None:
    """(n, depth) int64, innermost instancer first; None for what no point instancer draws."""
    if gprim.instancer is None or gprim.instance_ids is None:
        return None
    rest, instancer, columns = np.asarray(gprim.instance_ids, np.int64), gprim.instancer, []
    while instancer is not None:
        count = max(len(instancer.ids), 1)
        rest, place = (rest // count, rest % count) if instancer.outer is not None else (rest, rest)
        columns.append(instancer.ids[place])
        instancer = instancer.outer
    return np.stack(columns, axis=1)
