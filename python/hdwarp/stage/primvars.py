"""stage.primvars: `primvars:` attributes -> float32 arrays of one to four components, checked against the prim they sit on."""

from __future__ import annotations

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage.colour_spaces import in_working_space
from hdwarp.stage.columns import Primvar

PREFIX = "primvars:"
_INDICES = ":indices"
_NAMES = {"varying": "vertex"}  # on meshes both are one value a point
_WIDEST = 4


def is_primvar(name: str) -> bool:
    """Whether a property is a primvar we keep. Skinning weights are read by what skins, not carried to the pixels."""
    return name.startswith(PREFIX) and not name.endswith(_INDICES) and not name.startswith("primvars:skel:")


def read_constant(
    prim: Usd.Prim, name: str, time: Usd.TimeCode, path: str, diagnostics: Diagnostics, interpolated: str = "constant"
) -> np.ndarray | None:
    """(k,) float32 of a primvar with one value, None if it has no usable one."""
    found = read_values(prim, name, time, {interpolated: 1}, interpolated, path, diagnostics)
    if found is None:
        return None
    values, indices = found
    return values[0 if indices is None else indices[0]]


def read_values(
    prim: Usd.Prim, name: str, time: Usd.TimeCode, expected: dict[str, int], interpolated: str, path: str, diagnostics: Diagnostics
) -> tuple[np.ndarray, np.ndarray | None] | None:
    """``(values (n, k) float32, indices (m,) int32 or None)`` with as many items as ``expected[interpolated]``; None with a diagnostic
    where counts or indices do not fit, and silently for strings, matrices and blocked or empty constants."""
    attribute = prim.GetAttribute(name)
    values = _as_rows(attribute.Get(time), int(attribute.GetMetadata("elementSize") or 1))
    if values is None:
        return None
    if isinstance(values, str):
        diagnostics.warning(path, "primvar-count", f"{name} {values}; the primvar is left out")
        return None
    if values.shape[1] > _WIDEST:
        diagnostics.note(
            path,
            "primvar-width",
            f"{name} has {values.shape[1]} components with its elementSize; up to {_WIDEST} are supported, the primvar is left out",
        )
        return None
    count = expected.get(interpolated)
    if count is None:
        message = f"{name} has interpolation '{interpolated}' (known: {', '.join(expected)}); the primvar is left out"
        diagnostics.warning(path, "primvar-interpolation", message)
        return None
    if not len(values) and interpolated == "constant":
        return None
    indices = None
    found = len(values)
    if prim.HasAttribute(name + _INDICES):
        authored = prim.GetAttribute(name + _INDICES).Get(time)
        if authored is not None:
            indices = np.asarray(authored)
            if indices.dtype.kind not in "iu" or indices.ndim != 1:
                diagnostics.warning(path, "primvar-indices", f"{name}:indices holds no integers; the primvar is left out")
                return None
            found = len(indices)
    if found != count:
        what = "indices" if indices is not None else "values"
        diagnostics.warning(
            path,
            "primvar-count",
            f"{name} ({interpolated}) has {found} {what} where {count} are expected; the primvar is left out",
        )
        return None
    if indices is not None and count:
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= len(values):
            wrong = low if low < 0 else high
            diagnostics.warning(
                path, "primvar-indices", f"{name}:indices holds {wrong}, outside 0..{len(values) - 1}; the primvar is left out"
            )
            return None
        indices = np.ascontiguousarray(indices, np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.ascontiguousarray(values, np.float32)
    finite = np.isfinite(values)
    if not finite.all():
        bad = int((~finite).any(axis=1).sum())
        diagnostics.warning(path, "primvar-not-finite", f"{name} has {bad} values that are NaN or infinite; they are read as 0")
        values = np.where(finite, values, np.float32(0.0))
    if values.shape[1] in (3, 4) and name.startswith(PREFIX):
        colours, wrong = in_working_space(attribute, values[:, :3])
        if wrong:
            diagnostics.warning(path, "color-space", wrong)
        if colours is not None:
            values = np.ascontiguousarray(np.concatenate([colours, values[:, 3:]], axis=1))
    return values, indices


def read_varying(
    prim: Usd.Prim, name: str, interpolated: str, time: Usd.TimeCode, expected: dict[str, int], path: str, diagnostics: Diagnostics
) -> Primvar | None:
    """A primvar that varies over a mesh with ``expected`` counts by interpolation."""
    found = read_values(prim, name, time, expected, interpolated, path, diagnostics)
    return None if found is None else Primvar(_NAMES.get(interpolated, interpolated), *found)


def item_count(prim: Usd.Prim, name: str, time: Usd.TimeCode) -> int:
    """How many items a primvar gives, indices counted where it has some; 0 where it holds nothing that `read_values` would read."""
    attribute = prim.GetAttribute(name)
    rows = _as_rows(attribute.Get(time), int(attribute.GetMetadata("elementSize") or 1))
    if rows is None or isinstance(rows, str):
        return 0
    indices = prim.GetAttribute(name + _INDICES).Get(time) if prim.HasAttribute(name + _INDICES) else None
    return len(rows) if indices is None else np.size(indices)


def _as_rows(value: object, element_size: int) -> np.ndarray | str | None:
    """(n, components) of a scalar, a vector or an array of either; None: no numbers; str: what is wrong."""
    if value is None or isinstance(value, str):
        return None
    is_array = type(value).__name__.endswith("Array")
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        return None
    rows = array if is_array else array[None]
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2:
        return None  # matrices
    if element_size > 1:
        if len(rows) % element_size:
            return f"has {len(rows)} values, which is no multiple of its elementSize {element_size}"
        rows = rows.reshape(len(rows) // element_size, rows.shape[1] * element_size)
    return rows
