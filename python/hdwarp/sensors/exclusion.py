"""sensors.exclusion: what the views of a sensor do not see: prims by kind of geometry, and what is excluded by name, view by view."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping

import numpy as np
import warp as wp

from hdwarp.errors import ArgumentError
from hdwarp.scene import Scene
from hdwarp.tables.structs import FIRST_GROUP, NOT_COLLIDER, NOT_VISUAL, OTHER_LOD

GEOMETRY = {"visual": int(NOT_VISUAL), "collision": int(NOT_COLLIDER), "all": int(OTHER_LOD)}
"""What is seen -> flags of instances that are not."""
_MOST_GROUPS = 31 - FIRST_GROUP

Pattern = str | re.Pattern


class Exclusion:
    """Flags of instances for one sensor: those of the tables, a bit for each group of names that its views exclude, and one for each camera
    that chooses items of UsdLod roots; more cameras than there are bits see the default items."""

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
        self._lod_bits: dict[str, int] = {}  # by the path of a camera on the stage
        self._version: tuple[int, int] | None = None

    def hides(self, cameras: Iterable[str], sources: Iterable[str]) -> list[int]:
        """Flags of instances that each view does not see, by the label of its camera; ``sources``: its path on the stage, be it a copy's.
        Raises ArgumentError for camera patterns that match none of them."""
        hides, cameras, sources = [], list(cameras), list(sources)
        known, first = list(dict.fromkeys(sources)), FIRST_GROUP + len(self._groups)
        bits = {source: 1 << (first + i) for i, source in enumerate(known)} if len(known) <= 31 - first else {}
        if self._hides == GEOMETRY["collision"]:
            bits = {}  # colliders are there whatever is drawn
        if bits != self._lod_bits:
            self._lod_bits, self._version = bits, None
        for patterns, _ in self._groups:
            if not any(_matches(patterns, camera) for camera in cameras):
                known = ", ".join(cameras[:10])
                raise ArgumentError(f"exclude: {_text(patterns)} matches none of the sensor's cameras: {known}")
        for camera, source in zip(cameras, sources, strict=True):
            groups = [1 << (FIRST_GROUP + i) for i, (patterns, _) in enumerate(self._groups) if _matches(patterns, camera)]
            hides.append(self._hides | sum(groups) | bits.get(source, 0))
        return hides

    def follow(self, *, strict: bool = False) -> bool:
        """Find the names anew if the scene has changed; whether `flags` are another array now. ``strict``: raise ArgumentError for
        patterns that match nothing."""
        tables, lods = self._scene.tables, self._scene.lods
        choosing = any(lods.differ_for(source) for source in self._lod_bits)
        if not self._groups and not choosing:
            had, self.flags, self._version = self.flags is not None, None, None
            return had
        if (tables.version, lods.version) == self._version:
            return False
        flags = tables.instances.flags_of(self._scene.index)
        for i, (_, names) in enumerate(self._groups):
            rows = _rows_of(self._scene, names, strict)
            flags[rows] |= 1 << (FIRST_GROUP + i)
        if choosing:
            index, colliders = self._scene.index, self._hides == GEOMETRY["all"]
            lods.mark(index, flags, list(self._lod_bits), list(self._lod_bits.values()), colliders=colliders)
        self._version = tables.version, lods.version
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
