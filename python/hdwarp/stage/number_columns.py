"""stage.number_columns: user attributes by name, and their values as columns of numbers. NumPy only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdwarp.errors import ArgumentError

_PREFIX = "newton:"  # what Newton puts before the namespaced names of its custom attributes in USD
USABLE = "only numbers, bools and vectors of 2 to 4 make a column"

Number = float | tuple[float, ...]


def spellings(name: str) -> tuple[str, ...]:
    """Names under which USD may hold the attribute ``name``, the one that counts first: "thermal:lens_k1" as it is, and as
    "newton:thermal:lens_k1"."""
    return (name,) if name.startswith(_PREFIX) else (name, _PREFIX + name)


def as_number(value: object) -> Number | None:
    """A plain value (see `Camera.attributes`) as a number or a vector of 2 to 4; None: it is neither."""
    array = np.asarray(value) if isinstance(value, bool | int | float | np.generic | np.ndarray | tuple | list) else np.zeros(0)
    if array.dtype.kind not in "biuf" or array.ndim > 1 or (array.ndim == 1 and not 2 <= len(array) <= 4):
        return None
    return float(array) if array.ndim == 0 else tuple(array.astype(np.float64).tolist())


def stacked(paths: Sequence[str], values: Sequence[Number | None], name: str) -> np.ndarray:
    """(n, k) float64: the values of prims, of which one at least has one; NaN for those without. Raises ArgumentError where they differ in
    length."""
    rows = [i for i, value in enumerate(values) if value is not None]
    width = np.size(values[rows[0]])
    for i in rows:
        if np.size(values[i]) != width:
            first, other = paths[rows[0]], paths[i]
            message = f"attribute {name!r} holds {width} numbers on <{first}> and {np.size(values[i])} on <{other}>; author one type"
            raise ArgumentError(message)
    column = np.full((len(values), width), np.nan)
    column[rows] = np.reshape([values[i] for i in rows], (len(rows), width))
    return column


def refilled(
    paths: Sequence[str], values: Sequence[Number | ArgumentError | None], name: str, width: int
) -> tuple[np.ndarray, dict[str, str]]:
    """(n, ``width``) float64 for a column that is there, NaN also where a value does not fit it; by path what is wrong with that."""
    column, told = np.full((len(values), width), np.nan), {}
    for i, value in enumerate(values):
        if isinstance(value, ArgumentError):
            told[paths[i]] = f"{value}; its column holds NaN"
        elif value is not None and np.size(value) != width:
            told[paths[i]] = f"attribute {name!r} holds {np.size(value)} numbers now and its column {width}: NaN; author one type"
        elif value is not None:
            column[i] = value
    return column, told
