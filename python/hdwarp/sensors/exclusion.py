"""sensors.exclusion: what the views of a sensor do not see: prims by kind of geometry, and what is excluded by name, view by view."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping

import numpy as np
import warp as wp

from hdwarp.errors import ArgumentError
from hdwarp.scene import Scene
from hdwarp.tables.structs import FIRST_GROUP, NOT_COLLIDER, NOT_VISUAL

GEOMETRY = {"visual": int(NOT_VISUAL), "collision": int(NOT_COLLIDER), "all": 0}
"""What is seen -> flags of instances that are not."""
_MOST_GROUPS = 31 - FIRST_GROUP

Pattern = str | re.Pattern


class Exclusion:
    """Flags of instances for one sensor: those of the tables, and a bit for each group of names that its views exclude."""

    def __init__(self, scene: Scene, exclude: object, geometry: str) -> None:
        """``exclude``: patterns over paths of bodies and prims (fnmatch over the whole path, or compiled expressions), or camera pattern ->
        patterns. Raises ArgumentError for what is neither."""
        if not isinstance(geometry, str) or geometry not in GEOMETRY:
            raise ArgumentError(f"geometry={geometry!r}: expected one of {', '.join(GEOMETRY)}")
        self._scene, self._hides = scene, GEOMETRY[geometry]
        given = exclude if isinstance(exclude, Mapping) else {} if exclude is None else {"*": exclude}
        self._groups = [(_patterns(cameras), _patterns(names)) for cameras, names in given.items()]
        if len(self._groups) > _MOST_GROUPS:
            raise ArgumentError(f"exclude has {len(self._groups)} groups of cameras; the most is {_MOST_GROUPS}")
        self.flags: wp.array | None = None  # (rows of the index,) int32; None: the table's own do
        self._version = -1

    def hides(self, cameras: Iterable[str]) -> list[int]:
        """Flags of instances that each view does not see, by the label of its camera. Raises ArgumentError for camera patterns that match
        none of them."""
        hides, cameras = [], list(cameras)
        for patterns, _ in self._groups:
            if not any(_matches(patterns, camera) for camera in cameras):
                known = ", ".join(cameras[:10])
                raise ArgumentError(f"exclude: {_text(patterns)} matches none of the sensor's cameras: {known}")
        for camera in cameras:
            groups = [1 << (FIRST_GROUP + i) for i, (patterns, _) in enumerate(self._groups) if _matches(patterns, camera)]
            hides.append(self._hides | sum(groups))
        return hides

    def follow(self, *, strict: bool = False) -> bool:
        """Find the names anew if the scene has changed; whether `flags` are another array now. ``strict``: raise ArgumentError for
        patterns that match nothing."""
        tables = self._scene.tables
        if not self._groups or tables.version == self._version:
            return False
        flags = tables.instances.flags_of(self._scene.index)
        for i, (_, names) in enumerate(self._groups):
            rows = _rows_of(self._scene, names, strict)
            flags[rows] |= 1 << (FIRST_GROUP + i)
        self._version = tables.version
        if self.flags is not None and len(self.flags) == len(flags):
            self.flags.assign(flags)
            return False
        self.flags = wp.array(flags, dtype=wp.int32, device=self._scene.device)
        return True


def _rows_of(scene: Scene, patterns: list[Pattern], strict: bool) -> np.ndarray:
    """Rows of the index of what is named, or carried by a body that is."""
    index = scene.index
    rows: list[np.ndarray] = []
    for pattern in patterns:
        prims = [key for key, path in zip(index.gprim_order, index.prim_paths, strict=True) if _matches([pattern], path)]
        rows += [np.arange(start, start + count) for start, count in (index.gprim_rows.run(key) for key in prims)]
        bodies = [row for row, path in enumerate(index.body_paths) if _matches([pattern], path)]
        rows.append(np.flatnonzero(np.isin(index.instances["body"], bodies)))
        if strict and not prims and not bodies:
            names = [*index.body_paths, *index.prim_paths]
            hint = "; of replicated worlds, give the prototype's paths or a pattern" if index.worlds.groups else ""
            raise ArgumentError(
                f"exclude: {_text([pattern])} matches no body and no prim that is drawn{hint}: {', '.join(names[:10])}, ..."
            )
    return np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64)


def _patterns(given: object) -> list[Pattern]:
    patterns = [given] if isinstance(given, Pattern) else given
    if not isinstance(patterns, list | tuple | set) or not all(isinstance(item, Pattern) for item in patterns) or not patterns:
        raise ArgumentError(f"exclude={given!r}: expected a pattern, a compiled expression, a list of these, or camera pattern -> these")
    return list(patterns)


def _matches(patterns: list[Pattern], path: str) -> bool:
    return any(fnmatch.fnmatchcase(path, item) if isinstance(item, str) else item.fullmatch(path) is not None for item in patterns)


def _text(patterns: list[Pattern]) -> str:
    return ", ".join(repr(item) if isinstance(item, str) else repr(item.pattern) for item in patterns)
