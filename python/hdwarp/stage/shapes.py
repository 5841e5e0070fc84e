"""stage.shapes: Sphere, Cube, Cylinder, Cone, Capsule, Plane -> a unit shape of the tables, and what makes it theirs."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage.columns import GeometryKind

INFINITE = "hdwarp:infinite"  # bool on a Plane: it goes on for ever; width and length only scale (s, t)

# Columns: where the unit shape's x, y and z axes go. All are rotations: nothing is mirrored.
_AXES = {
    "X": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "Y": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "Z": np.eye(3),
}
# Of planes x is along the width and y along the length, so that (s, t) grow to the right and up where the front is seen.
_PLANE_AXES = {
    "X": np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]),
    "Y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
    "Z": np.eye(3),
}


class Shape(NamedTuple):
    """A shape in the space of its prim."""

    kind: GeometryKind
    linear: np.ndarray  # (3, 3): prim space from the space of the unit shape, authored units
    parameters: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)  # Gprim.shape


@dataclass(slots=True)
class _Source:
    """The attributes of one prim, and where to complain."""

    prim: Usd.Prim
    names: Collection[str]  # authored
    time: Usd.TimeCode
    path: str
    diagnostics: Diagnostics

    def size(self, name: str, fallback: float, *, zero: bool = False) -> float:
        """A size; NaN, with a diagnostic, for what is none. ``zero``: 0 is a size too."""
        size = fallback
        if name in self.names:
            value = self.prim.GetAttribute(name).Get(self.time)
            if value is not None:
                if not isinstance(value, int | float):
                    message = f"{name} holds {type(value).__name__}, not a number; the prim is skipped"
                    self.diagnostics.error(self.path, "wrong-type", message)
                    return math.nan
                size = float(value)
        if not (math.isfinite(size) and (size > 0.0 or (zero and size == 0.0))):
            wanted = "0 or above" if zero else "above 0"
            self.diagnostics.error(self.path, "shape-size", f"{name} is {size:g}; the prim is skipped. Author a finite value {wanted}")
            return math.nan
        return size

    def axis(self) -> str:
        value = self.prim.GetAttribute("axis").Get(self.time) if "axis" in self.names else "Z"
        if value is None or value in _AXES:
            return value or "Z"
        self.diagnostics.error(self.path, "shape-axis", f"axis is '{value}'; read as Z. Author X, Y or Z")
        return "Z"


def read_shape(
    prim: Usd.Prim, type_name: str, names: Collection[str], time: Usd.TimeCode, path: str, diagnostics: Diagnostics
) -> Shape | None:
    """The shape of a prim of one of `SHAPE_TYPES`; None, with a diagnostic, for sizes that are no size."""
    return _READERS[type_name](_Source(prim, names, time, path, diagnostics))


def _sphere(source: _Source) -> Shape | None:
    radius = source.size("radius", 1.0)
    return None if math.isnan(radius) else Shape(GeometryKind.SPHERE, np.eye(3) * radius)


def _cube(source: _Source) -> Shape | None:
    size = source.size("size", 2.0)
    return None if math.isnan(size) else Shape(GeometryKind.CUBE, np.eye(3) * (0.5 * size))


def _cylinder(source: _Source) -> Shape | None:
    radius = source.size("radius", 1.0)
    return _cone_shape(source, source.size("height", 2.0), radius, radius)


def _cylinder_1(source: _Source) -> Shape | None:
    height, low, high = source.size("height", 2.0), *_two_radii(source, 1.0)
    return _cone_shape(source, height, low, high)


def _cone(source: _Source) -> Shape | None:
    return _cone_shape(source, source.size("height", 2.0), source.size("radius", 1.0), 0.0)


def _capsule(source: _Source) -> Shape | None:
    radius = source.size("radius", 0.5)
    return _capsule_shape(source, source.size("height", 1.0, zero=True), radius, radius)


def _capsule_1(source: _Source) -> Shape | None:
    height, low, high = source.size("height", 1.0, zero=True), *_two_radii(source, 0.5)
    return _capsule_shape(source, height, low, high)


def _plane(source: _Source) -> Shape | None:
    width, length = source.size("width", 2.0), source.size("length", 2.0)
    if math.isnan(width + length):
        return None
    endless = INFINITE in source.names and source.prim.GetAttribute(INFINITE).Get(source.time) is True
    half = np.array([width, length, math.sqrt(width) * math.sqrt(length)]) * 0.5  # across the plane anything would do
    reach = math.inf if endless else 1.0
    return Shape(GeometryKind.PLANE, _PLANE_AXES[source.axis()] * half, (reach, reach, 0.0, 0.0))


def _two_radii(source: _Source, fallback: float) -> tuple[float, float]:
    """(bottom, top). Either may be 0: a point. Not both."""
    low, high = source.size("radiusBottom", fallback, zero=True), source.size("radiusTop", fallback, zero=True)
    if low == 0.0 and high == 0.0:
        message = "radiusTop and radiusBottom are both 0; the prim is skipped. Author at least one above 0"
        source.diagnostics.error(source.path, "shape-size", message)
        return math.nan, math.nan
    return low, high


def _cone_shape(source: _Source, height: float, low: float, high: float) -> Shape | None:
    """Closed, from radius ``low`` to ``high``; height and larger radius go into the transform."""
    if math.isnan(height + low + high):
        return None
    radius = max(low, high)
    linear = _AXES[source.axis()] * np.array([radius, radius, 0.5 * height])
    return Shape(GeometryKind.CONE, linear, (low / radius, high / radius, 1.0, 0.0))


def _capsule_shape(source: _Source, height: float, low: float, high: float) -> Shape | None:
    """A cone of this height and these radii between two balls that touch it smoothly: larger than the radii where these differ."""
    if math.isnan(height + low + high):
        return None
    axes = _AXES[source.axis()]
    if height == 0.0:
        if low != high:
            message = "height is 0 and the radii differ: no smooth capsule has them; the prim is skipped. Author a height above 0"
            source.diagnostics.error(source.path, "shape-size", message)
            return None
        return Shape(GeometryKind.SPHERE, axes * low)
    radius = max(low, high) * math.hypot(1.0, (high - low) / height)
    return Shape(GeometryKind.CAPSULE, axes * radius, (low / radius, high / radius, 0.5 * height / radius, 0.0))


_READERS = {
    "Sphere": _sphere,
    "Cube": _cube,
    "Cylinder": _cylinder,
    "Cylinder_1": _cylinder_1,
    "Cone": _cone,
    "Capsule": _capsule,
    "Capsule_1": _capsule_1,
    "Plane": _plane,
}
SHAPE_TYPES = tuple(_READERS)
