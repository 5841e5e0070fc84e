"""tables.attributes: user attributes as device columns, a row each in every world, on request. What kernels write stays. Knows no USD."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import warp as wp

from hdwarp.errors import Diagnostic, Error, Severity
from hdwarp.tables.storage import GrowingArray

_DTYPES = {1: wp.float32, 2: wp.vec2f, 3: wp.vec3f, 4: wp.vec4f}
_MOST_RUNS = 16  # rows in more pieces are written with the whole column: a copy each would take longer


class Source(Protocol):
    """Where values come from: see `hdwarp.stage.attributes.AttributeSource`."""

    def check_open(self) -> None: ...
    def read(self, paths: Sequence[str], name: str) -> np.ndarray: ...
    def read_again(self, paths: Sequence[str], name: str, width: int, time: object) -> tuple[np.ndarray, dict[str, str]]: ...


@dataclass(frozen=True, slots=True, eq=False)
class PrimRows:
    """Which prim each row of a table is of."""

    paths: Sequence[str]  # of the prims whose values these are; several may have one path
    keys: Sequence[Hashable]  # what each is known by; no two alike
    prim: np.ndarray  # (rows,) int: number in these; -1: none
    world: np.ndarray  # (rows,) int: world, -1 global
    place: np.ndarray | int = 0  # (rows,) int: which of the rows of one prim and world

    def is_same(self, other: PrimRows) -> bool:
        columns = ((self.prim, other.prim), (self.world, other.world), (self.place, other.place))
        return self.keys == other.keys and all(np.array_equal(a, b) for a, b in columns)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Values that were read anew: by path (n, k) float64, NaN for none, and by path what is wrong with those that fit no column."""

    paths: Sequence[str]
    values: np.ndarray
    told: Mapping[str, str] = field(default_factory=dict)


class AttributeColumns:
    """The columns of one table that somebody has asked for, by name: float32, or vectors of 2 to 4 of it; NaN where a prim has no value.

    The stage's values are written where the stage says something else of a prim than when it was last read; all else is the kernels'. Where
    rows move, what was written goes with its prim and world. A column has the values of the stage as it is when it is first asked for.
    """

    def __init__(self, device: wp.Device | None) -> None:
        self.device = device
        self.source: Source | None = None  # of a `Scene`
        self._columns: dict[str, _Column] = {}
        self._rows: PrimRows | None = None

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def names(self) -> list[str]:
        return list(self._columns)

    def get(self, name: str, rows: Callable[[], PrimRows], read: Callable[[Sequence[str], str], np.ndarray] | None = None) -> wp.array:
        """(rows,) array of an attribute: the same object until rows come or go. ``rows``: called when there is no column yet; ``read``: in
        place of the source's. Raises Error after the scene was closed and without a source, and as ``read`` does."""
        if self.source is not None:
            self.source.check_open()
        elif read is None:
            raise Error("attributes are read by a Scene; these tables belong to none")
        if name not in self._columns:
            at = self._rows if self._columns else rows()
            values = (read or self.source.read)(at.paths, name)
            self._rows, self._columns[name] = at, _Column(at, values, self.device)
        return self._columns[name].view(len(self._rows.prim))

    def read_all(self, name: str, time: object) -> Found | None:
        """What the stage says of the prims there are, for `write`."""
        return self._read(name, list(dict.fromkeys(self._rows.paths)), time)

    def width(self, name: str) -> int:
        """Numbers in an item."""
        return self._columns[name].width

    def read_again(self, paths: Sequence[str], time: object, stale: Callable[[str], Collection[str] | None]) -> dict[str, Found | None]:
        """What is new of every column, by name, for `write`; nothing is changed here. ``paths``: of all prims the table will have;
        ``stale``: gives those to read of a column besides prims that it does not know; None: all."""
        found: dict[str, Found | None] = {}
        for name, column in list(self._columns.items()):
            anew = stale(name)
            known = () if anew is None else column.known_paths(self._rows).difference(anew)
            found[name] = self._read(name, [path for path in dict.fromkeys(paths) if path not in known], time)
        return found

    def _read(self, name: str, paths: Sequence[str], time: object) -> Found | None:
        return Found(paths, *self.source.read_again(paths, name, self.width(name), time)) if paths else None

    def follow(self, rows: PrimRows) -> None:
        """Make the rows these. New ones hold NaN until `write` gives them values."""
        if not self._columns:
            return
        before, self._rows = self._rows, rows
        if rows.is_same(before):
            return
        number = {key: i for i, key in enumerate(rows.keys)}
        renumbered = np.array([number.get(key, -1) for key in before.keys] + [-1], np.int64)
        old, new = _survivors(before, renumbered[before.prim], rows)
        for column in self._columns.values():
            column.move(renumbered[:-1], rows, old, new)

    def write(self, name: str, found: Found) -> None:
        """Take over what the stage says now."""
        self._columns[name].write(self._rows, found)

    def diagnostics(self) -> list[Diagnostic]:
        """Values that fit no column."""
        told = {path: message for column in self._columns.values() for path, message in column.told.items()}
        there = set(self._rows.paths) if told else set()
        return [Diagnostic(path, "user-attribute", Severity.WARNING, told[path]) for path in sorted(told) if path in there]


class _Column:
    def __init__(self, rows: PrimRows, values: np.ndarray, device: wp.Device) -> None:
        """``values``: (prims, width) float64."""
        self.width = values.shape[1]
        self.said = values  # by prim: what the stage said last
        self.known = np.ones(len(values), bool)  # by prim: it has been asked
        self.told: dict[str, str] = {}
        self._items = GrowingArray(_DTYPES[self.width], device, fill=np.nan)
        self._view: wp.array | None = None
        self._write(self._of_stage(rows))

    def view(self, count: int) -> wp.array:
        """The first ``count`` items, which are all rows there are."""
        array = self._items.array
        if self._view is None or self._view.shape[0] != count or (count and self._view.ptr != array.ptr):
            self._view = array[:count]
        return self._view

    def known_paths(self, rows: PrimRows) -> set[str]:
        return {path for path, known in zip(rows.paths, self.known.tolist(), strict=True) if known}

    def _of_stage(self, rows: PrimRows) -> np.ndarray:
        """(rows, width): as the stage has them."""
        return np.concatenate([self.said, np.full((1, self.width), np.nan)])[rows.prim]

    def _write(self, items: np.ndarray, at: np.ndarray | None = None) -> None:
        """Write all rows, or those ``at`` (ascending)."""
        with np.errstate(over="ignore"):  # float32 has infinities too
            items = items.astype(np.float32)
        if at is None:
            self._items.write(0, items)
        elif self._items.device.is_cpu or np.count_nonzero(np.diff(at) != 1) < _MOST_RUNS:
            self._items.write_rows(at, items)
        else:
            whole = self._items.array.numpy()
            whole.reshape(len(whole), -1)[at] = items
            self._items.write(0, whole)

    def move(self, renumbered: np.ndarray, rows: PrimRows, old: np.ndarray, new: np.ndarray) -> None:
        """``renumbered``: prims by their number before, -1 gone; items ``old`` are those of rows ``new``."""
        said, known = np.full((len(rows.keys), self.width), np.nan), np.zeros(len(rows.keys), bool)
        kept = np.flatnonzero(renumbered >= 0)
        said[renumbered[kept]], known[renumbered[kept]] = self.said[kept], self.known[kept]
        self.said, self.known = said, known
        items = self._of_stage(rows)
        held = self._items.array.numpy()
        items[new] = held.reshape(len(held), -1)[old]
        self._write(items)

    def write(self, rows: PrimRows, found: Found) -> None:
        place = {path: i for i, path in enumerate(found.paths)}
        of = np.array([place.get(path, -1) for path in rows.paths], np.int64)
        given = np.flatnonzero(of >= 0)
        values, before = found.values[of[given]], self.said[given]
        differs = ((values != before) & ~(np.isnan(values) & np.isnan(before))).any(axis=1)
        self.said[given], self.known[given] = values, True
        self.told = {path: message for path, message in self.told.items() if path not in place} | dict(found.told)
        if differs.any():
            changed = np.zeros(len(rows.keys) + 1, bool)  # the last for rows of no prim
            changed[given[differs]] = True
            at = np.flatnonzero(changed[rows.prim])
            self._write(self.said[rows.prim[at]], at)


def _survivors(before: PrimRows, prim: np.ndarray, after: PrimRows) -> tuple[np.ndarray, np.ndarray]:
    """Rows before, and the same rows now: of the same prim, world and place. ``prim``: (rows before,) numbers that prims have now."""
    worlds = 2 + max(int(rows.world.max(initial=-1)) for rows in (before, after))
    places = 1 + max(int(np.max(rows.place, initial=0)) for rows in (before, after))

    def numbers(rows: PrimRows, prim: np.ndarray) -> np.ndarray:
        return (prim.astype(np.int64) * worlds + rows.world + 1) * places + rows.place

    old, new = np.flatnonzero(prim >= 0), np.flatnonzero(after.prim >= 0)
    _, i, k = np.intersect1d(numbers(before, prim)[old], numbers(after, after.prim)[new], assume_unique=True, return_indices=True)
    return old[i], new[k]
