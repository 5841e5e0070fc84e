"""stage.shapes: Sphere and Cube -> the size that goes into their transform."""

from __future__ import annotations

import math

from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage.columns import GeometryKind

# Attribute, fallback, and the size of the tables' unit shape in it: a sphere of radius 1, a cube with edges of 2.
_SIZES = {GeometryKind.SPHERE: ("radius", 1.0, 1.0), GeometryKind.CUBE: ("size", 2.0, 2.0)}


def read_scale(
    prim: Usd.Prim, kind: GeometryKind, names: list[str], time: Usd.TimeCode, path: str, diagnostics: Diagnostics
) -> float | None:
    """How much larger than the unit shape the prim is; None, with a diagnostic, for sizes that are no size."""
    name, size, unit = _SIZES[kind]
    if name in names:
        value = prim.GetAttribute(name).Get(time)
        if value is not None:
            if not isinstance(value, int | float):
                diagnostics.error(path, "wrong-type", f"{name} holds {type(value).__name__}, not a number; the prim is skipped")
                return None
            size = float(value)
    if not (math.isfinite(size) and size > 0.0):
        diagnostics.error(path, "shape-size", f"{name} is {size:g}; the prim is skipped. Author a finite value above 0")
        return None
    return size / unit
