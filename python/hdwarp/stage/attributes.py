"""stage.attributes: user attributes of any prim -> numbers, and columns of them. Read when asked for, nothing kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pxr import Gf, Sdf, Usd

from hdwarp.errors import ArgumentError, Error
from hdwarp.stage.changes import METADATA, StageEdits
from hdwarp.stage.number_columns import USABLE, Number, refilled, spellings, stacked
from hdwarp.stage.open import resolve_time

_VECTORS = tuple(getattr(Gf, f"Vec{size}{kind}") for size in (2, 3, 4) for kind in "hfdi")
_MOST_NAMED = 20
PROTOTYPE = "/__Prototype_"


def read_attribute(stage: Usd.Stage, path: str, name: str, time: float | Usd.TimeCode | None) -> Number | None:
    """An attribute of a prim, which may be inside a native instance, at a time; None where it has no value. Numbers and bools become
    floats, vectors and colours tuples, as authored: no unit is turned. See `spellings` for the names it may have.

    Raises ArgumentError where there is no prim, and for values that are neither, naming prim and type.
    """
    _check_name(name)
    return _read(_find_prim(stage, path), name, resolve_time(stage, time))


def read_column(stage: Usd.Stage, paths: Sequence[str], name: str, time: float | Usd.TimeCode | None) -> np.ndarray:
    """`read_attribute` of many prims: (n, k) float64, a row of NaN for a prim that has no value.

    Raises ArgumentError as that does, where the values differ in length, and where no prim has one, naming those that they have.
    """
    _check_name(name)
    code = resolve_time(stage, time)
    prims = [_find_prim(stage, path) for path in paths]
    values = [_read(prim, name, code) for prim in prims]
    if all(value is None for value in values):
        known = sorted({found for prim in prims for found in _numbers_of(prim, code)})
        more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
        said = ", ".join(known[:_MOST_NAMED]) or "none"
        raise ArgumentError(f"none of {len(prims)} prims has an attribute {name!r}; numbers and vectors authored on them: {said}{more}")
    return stacked([str(prim.GetPath()) for prim in prims], values, name)


class AttributeSource:
    """Columns of a stage's attributes, for tables that know no USD. ``time``: the one they are at."""

    def __init__(self, stage: Usd.Stage) -> None:
        self._stage: Usd.Stage | None = stage
        self.time: Usd.TimeCode | None = None

    def close(self) -> None:
        self._stage = None

    def check_open(self) -> None:
        """Raise Error after `close`."""
        if self._stage is None:
            raise Error("the scene is closed; open a new Scene")

    def read(self, paths: Sequence[str], name: str) -> np.ndarray:
        """`read_column` at ``time``; (n, k) with NaN for paths where no prim is."""
        there = [path for path in dict.fromkeys(paths) if self._prim(path)]
        column = read_column(self._stage, there, name, self.time)
        row = {path: i for i, path in enumerate(there)}
        return np.concatenate([column, np.full((1, column.shape[1]), np.nan)])[[row.get(path, -1) for path in paths]]

    def read_again(self, paths: Sequence[str], name: str, width: int, time: Usd.TimeCode) -> tuple[np.ndarray, dict[str, str]]:
        """(n, ``width``) values of a column that is there, and what is wrong with those that do not fit it, which are NaN."""
        values: list[Number | ArgumentError | None] = []
        for path in paths:
            prim = self._prim(path)
            try:
                values.append(_read(prim, name, time) if prim else None)
            except ArgumentError as error:
                values.append(error)
        return refilled(paths, values, name, width)

    def edited(self, edits: StageEdits, name: str) -> set[str] | None:
        """Paths of prims of which ``edits`` may have given an attribute another value; None: of any."""
        if edits.resynced:
            return None
        names = spellings(name)
        if any(item.startswith(METADATA) for found in edits.changed.values() for item in found):
            return None
        paths = {path for path, found in edits.changed.items() if not found.isdisjoint(names)}
        # What is in native instances goes by the name of a prototype, and after renames by one that is no more.
        return None if any(path.startswith(PROTOTYPE) or not self._prim(path) for path in paths) else paths

    def _prim(self, path: str) -> Usd.Prim | None:
        return self._stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(path) else None


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not Sdf.Path.IsValidNamespacedIdentifier(name):
        raise ArgumentError(f"{name!r} is no attribute's name; give one like 'thermal:surface_temperature'")


def _find_prim(stage: Usd.Stage, path: str) -> Usd.Prim:
    prim = stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(str(path)) else None
    if not prim:
        raise ArgumentError(f"<{path}>: no prim of the stage has this path; it has no attributes")
    return prim


def _read(prim: Usd.Prim, name: str, time: Usd.TimeCode) -> Number | None:
    for spelling in spellings(name):
        attribute = prim.GetAttribute(spelling)
        value = attribute.Get(time) if attribute else None
        if value is None:  # not there, declared without a value, or blocked
            continue
        number = _number(value)
        if number is None:
            said = f"<{prim.GetPath()}>: attribute '{spelling}' is of type {attribute.GetTypeName()}"
            raise ArgumentError(f"{said}; {USABLE}")
        return number
    return None


def _number(value: object) -> Number | None:
    """None: it is neither a number nor a vector."""
    if isinstance(value, bool | int | float):
        return float(value)
    return tuple(float(item) for item in value) if isinstance(value, _VECTORS) else None


def _numbers_of(prim: Usd.Prim, time: Usd.TimeCode) -> list[str]:
    """Names of the authored attributes of a namespace, transforms apart, that `read_attribute` reads."""
    attributes = [(attribute.GetName(), attribute) for attribute in prim.GetAuthoredAttributes()]
    return [name for name, item in attributes if ":" in name and not name.startswith("xformOp:") and _number(item.Get(time)) is not None]
