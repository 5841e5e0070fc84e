"""stage.attributes: user attributes of any prim -> numbers, and columns of them. Read when asked for, nothing kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pxr import Gf, Sdf, Usd

from hdwarp.errors import ArgumentError
from hdwarp.stage.open import resolve_time

_PREFIX = "newton:"  # what Newton puts before the namespaced names of its custom attributes in USD
_VECTORS = tuple(getattr(Gf, f"Vec{size}{kind}") for size in (2, 3, 4) for kind in "hfdi")
_MOST_NAMED = 20


def spellings(name: str) -> tuple[str, ...]:
    """Names under which USD may hold the attribute ``name``, the one that counts first: "thermal:lens_k1" as it is, and as
    "newton:thermal:lens_k1"."""
    return (name,) if name.startswith(_PREFIX) else (name, _PREFIX + name)


def read_attribute(stage: Usd.Stage, path: str, name: str, time: float | Usd.TimeCode | None) -> float | tuple[float, ...] | None:
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
    rows = [k for k, value in enumerate(values) if value is not None]
    if not rows:
        known = sorted({found for prim in prims for found in _numbers_of(prim, code)})
        more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
        said = ", ".join(known[:_MOST_NAMED]) or "none"
        raise ArgumentError(f"none of {len(prims)} prims has an attribute {name!r}; numbers and vectors authored on them: {said}{more}")
    width = np.size(values[rows[0]])
    for k in rows:
        if np.size(values[k]) != width:
            first, other = prims[rows[0]].GetPath(), prims[k].GetPath()
            message = f"attribute {name!r} holds {width} numbers on <{first}> and {np.size(values[k])} on <{other}>; author one type"
            raise ArgumentError(message)
    column = np.full((len(prims), width), np.nan)
    column[rows] = np.reshape([values[k] for k in rows], (len(rows), width))
    return column


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not Sdf.Path.IsValidNamespacedIdentifier(name):
        raise ArgumentError(f"{name!r} is no attribute's name; give one like 'thermal:surface_temperature'")


def _find_prim(stage: Usd.Stage, path: str) -> Usd.Prim:
    prim = stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(str(path)) else None
    if not prim:
        raise ArgumentError(f"<{path}>: no prim of the stage has this path; it has no attributes")
    return prim


def _read(prim: Usd.Prim, name: str, time: Usd.TimeCode) -> float | tuple[float, ...] | None:
    for spelling in spellings(name):
        attribute = prim.GetAttribute(spelling)
        value = attribute.Get(time) if attribute else None
        if value is None:  # not there, declared without a value, or blocked
            continue
        number = _number(value)
        if number is None:
            said = f"<{prim.GetPath()}>: attribute '{spelling}' is of type {attribute.GetTypeName()}"
            raise ArgumentError(f"{said}; only numbers, bools and vectors of 2 to 4 make a column")
        return number
    return None


def _number(value: object) -> float | tuple[float, ...] | None:
    """None: it is neither a number nor a vector."""
    if isinstance(value, bool | int | float):
        return float(value)
    return tuple(float(item) for item in value) if isinstance(value, _VECTORS) else None


def _numbers_of(prim: Usd.Prim, time: Usd.TimeCode) -> list[str]:
    """Names of the authored attributes of a namespace, transforms apart, that `read_attribute` reads."""
    attributes = [(attribute.GetName(), attribute) for attribute in prim.GetAuthoredAttributes()]
    return [name for name, item in attributes if ":" in name and not name.startswith("xformOp:") and _number(item.Get(time)) is not None]
