"""stage.widths: widths of curves and points, whatever interpolation they have and however that is authored -> plain numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage.transforms import LARGEST

_AS_PRIMVAR = "primvars:widths"
_FALLBACK = 1.0  # USD names none
WIDEST = 2.0 * LARGEST


@dataclass(frozen=True, slots=True, eq=False)
class Widths:
    """Diameters in object space. A bad one is NaN."""

    interpolation: str  # "constant", "uniform", "varying" or "vertex"
    values: np.ndarray  # (n,) float64


def read_widths(
    prim: Usd.Prim,
    names: Collection[str],
    inherited: np.ndarray | None,
    expected: dict[str, int],
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
) -> Widths:
    """``primvars:widths`` counts before what is ``inherited``, and that before ``widths``. ``expected``: how many values by interpolation.
    Another number of values is taken for the interpolation that it fits, which a diagnostic says; without any widths, they are 1."""
    attribute = next((name for name in (_AS_PRIMVAR, "widths") if name in names and prim.GetAttribute(name).Get(time) is not None), "")
    if inherited is not None and attribute != _AS_PRIMVAR:
        if len(inherited) == 1:
            return Widths("constant", _checked(inherited.astype(np.float64), "the inherited primvars:widths", path, diagnostics))
        said = f"the inherited primvars:widths has {len(inherited)} components; it is ignored. Author a float"
        diagnostics.warning(path, "widths", said)
    if not attribute:
        diagnostics.note(path, "widths", f"no widths are authored; drawn {_FALLBACK:g} wide, in units of its own. Author widths")
        return Widths("constant", np.full(1, _FALLBACK))
    values = _values(prim, attribute, time)
    if isinstance(values, str):
        diagnostics.warning(path, "widths", f"{attribute} {values}; drawn {_FALLBACK:g} wide. Author float[]")
        return Widths("constant", np.full(1, _FALLBACK))
    interpolation = prim.GetAttribute(attribute).GetMetadata("interpolation") or ("constant" if attribute == _AS_PRIMVAR else "vertex")
    counts = {"constant": 1, **expected}
    if counts.get(interpolation) != len(values):
        fitting = [name for name in ("constant", "vertex", "varying", "uniform") if counts.get(name) == len(values)]
        wanted = f"where {counts[interpolation]} are expected" if interpolation in counts else "and widths have no such interpolation"
        said = f"{attribute} ({interpolation}) has {len(values)} values {wanted}"
        if not fitting:
            message = f"{said}; drawn {_FALLBACK:g} wide. Author {_counts(counts)}"
            diagnostics.warning(path, "widths", message)
            return Widths("constant", np.full(1, _FALLBACK))
        message = f"{said}; read as {fitting[0]}, which fits. Author that interpolation"
        diagnostics.note(path, "widths", message)
        interpolation = fitting[0]
    return Widths(interpolation, _checked(values, attribute, path, diagnostics))


def _counts(counts: dict[str, int]) -> str:
    return " or ".join(f"{count} ({name})" for name, count in counts.items())


def _values(prim: Usd.Prim, name: str, time: Usd.TimeCode) -> np.ndarray | str:
    """(n,) float64 as authored, indices followed; str: what is wrong."""
    value = prim.GetAttribute(name).Get(time)
    array = np.atleast_1d(np.asarray(value))
    if array.ndim != 1 or (array.dtype.kind not in "fiu" and array.size):
        return f"holds {type(value).__name__}"
    values = array.astype(np.float64)
    indices = prim.GetAttribute(f"{name}:indices").Get(time) if name == _AS_PRIMVAR and prim.HasAttribute(f"{name}:indices") else None
    if indices is None:
        return values
    numbers = np.asarray(indices)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size):
        return "has indices that are no integers"
    if numbers.size and (numbers.min() < 0 or numbers.max() >= len(values)):
        return f"has indices outside 0..{len(values) - 1}"
    return values[numbers.astype(np.int64)]


def _checked(values: np.ndarray, name: str, path: str, diagnostics: Diagnostics) -> np.ndarray:
    bad = ~((values >= 0.0) & (values <= WIDEST))
    if not bad.any():
        return values
    message = f"{int(bad.sum())} of {len(values)} values of {name} are negative, NaN or beyond {WIDEST:g} (first: {values[bad][0]:g})"
    diagnostics.error(path, "widths", f"{message}; what uses them is not drawn, the rest is. Author 0 or more")
    return np.where(bad, np.nan, values)
