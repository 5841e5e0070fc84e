"""stage.coordinates: where a texture is laid: the nodes from its coordinates back to a primvar -> one affine map of that primvar."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pxr import Usd, UsdShade

from hdwarp.stage.networks import LARGEST, Network, Unsupported, bounded, identifier_of, leads_nowhere, produced, producing

_MOST_TRANSFORMS = 64  # one after another
_READERS = {  # node: (input with the primvar's name, input with the value on what lacks it)
    "UsdPrimvarReader_float2": ("varname", "fallback"),
    "ND_UsdPrimvarReader_vector2": ("varname", "fallback"),
    "ND_geompropvalue_vector2": ("geomprop", "default"),
}
_TRANSFORMS = {  # node: the input that it transforms
    "UsdTransform2d": "in",
    "ND_UsdTransform2d": "in",
    "ND_place2d_vector2": "texcoord",
    "ND_multiply_vector2": "in1",
    "ND_multiply_vector2FA": "in1",
    "ND_divide_vector2": "in1",
    "ND_divide_vector2FA": "in1",
    "ND_add_vector2": "in1",
    "ND_subtract_vector2": "in1",
}
_IDENTITY = (1.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Coordinates:
    """linear (2 x 2, row by row) x primvar + offset, kept within float32."""

    st: str  # primvar
    fallback: tuple[float, float] = (0.0, 0.0)  # in its place
    linear: tuple[float, float, float, float] = _IDENTITY
    offset: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def constant(cls, value: tuple[float, float]) -> Coordinates:
        return cls("st", linear=(0.0,) * 4, offset=value)  # any primvar: it counts for nothing

    def then(self, linear: tuple[float, float, float, float], offset: tuple[float, float]) -> Coordinates:
        """Another such map after this one."""
        (a, b, c, d), (p, q, r, s), (x, y) = linear, self.linear, self.offset
        product = a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s
        moved = a * x + b * y + offset[0], c * x + d * y + offset[1]
        return Coordinates(self.st, self.fallback, tuple(map(bounded, product)), tuple(map(bounded, moved)))


def laid(network: Network, node: Usd.Prim, name: str, otherwise: Coordinates | None = None) -> Coordinates:
    """Where ``node`` is laid by its input ``name``; by ``otherwise`` where that says nothing. Raises Unsupported."""
    transforms, seen = [], set()
    while (attribute := producing(node, name)) is not None and not UsdShade.Input.IsInput(attribute):
        source, here = attribute.GetPrim(), f"inputs:{name} of <{node.GetPath()}>"
        path, identifier = source.GetPath(), identifier_of(source)
        if identifier in _READERS:
            return _transformed(_read_by(network, source, *_READERS[identifier]), transforms)
        if identifier == "ND_texcoord_vector2":
            number = int(network.number(source, "index", 0.0))
            return _transformed(Coordinates(f"st{number}" if number > 0 else "st"), transforms)
        if identifier not in _TRANSFORMS:
            kind = f"'{identifier}'" if identifier else "without info:id"
            raise Unsupported(f"{here} comes from <{path}>, a shader {kind}, which is not supported there")
        if path in seen:
            raise Unsupported(f"{here} comes round in a circle to <{path}>")
        if len(seen) == _MOST_TRANSFORMS:
            raise Unsupported(f"{here} is connected through {_MOST_TRANSFORMS} transforms to one more, <{path}>")
        seen.add(path)
        transforms.append(_transform(network, source, identifier))
        node, name = source, _TRANSFORMS[identifier]
    last = node.GetAttribute(f"inputs:{name}")
    if last and leads_nowhere(last):
        network.warning("material-connection", f"inputs:{name} of <{node.GetPath()}> is connected to nothing; its own value is used")
    start = otherwise
    if otherwise is None or attribute is not None or (last and last.HasAuthoredValue()):
        start = Coordinates.constant(network.numbers(node, name, (0.0, 0.0)))
    return _transformed(start, transforms)


def _transformed(start: Coordinates, transforms: list[tuple]) -> Coordinates:
    """By ``transforms``, the last first."""
    for linear, offset in reversed(transforms):
        start = start.then(linear, offset)
    return start


def _read_by(network: Network, reader: Usd.Prim, name_input: str, fallback_input: str) -> Coordinates:
    name, fallback = produced(reader, name_input, network.time), network.numbers(reader, fallback_input, (0.0, 0.0))
    if isinstance(name, str) and name:
        return Coordinates(name, fallback)
    message = f"inputs:{name_input} of <{reader.GetPath()}> names no primvar; its fallback is used. Author one, such as st"
    network.warning("texture", message)
    return Coordinates.constant(fallback)


def _transform(network: Network, node: Usd.Prim, identifier: str) -> tuple[tuple[float, ...], tuple[float, float]]:
    """(linear, offset) of a node."""
    if identifier in ("UsdTransform2d", "ND_UsdTransform2d"):  # scaled, turned counter-clockwise, moved
        scale, degrees = network.numbers(node, "scale", (1.0, 1.0)), network.number(node, "rotation", 0.0)
        return turned(scale, degrees), network.numbers(node, "translation", (0.0, 0.0))
    if identifier == "ND_place2d_vector2":
        return _placed(network, node)
    if identifier.startswith(("ND_multiply", "ND_divide")):
        single = identifier.endswith("FA")
        by = network.numbers(node, "in2", (1.0,)) * 2 if single else network.numbers(node, "in2", (1.0, 1.0))
        if identifier.startswith("ND_divide"):
            by = tuple(map(_inverse, by))
        return (by[0], 0.0, 0.0, by[1]), (0.0, 0.0)
    x, y = network.numbers(node, "in2", (0.0, 0.0))
    return _IDENTITY, (x, y) if identifier == "ND_add_vector2" else (-x, -y)


def _placed(network: Network, node: Usd.Prim) -> tuple[tuple[float, ...], tuple[float, float]]:
    """MaterialX moves the image, not its coordinates: they are divided by its scale, turned clockwise, and its offset is taken off."""
    pivot, offset = network.numbers(node, "pivot", (0.0, 0.0)), network.numbers(node, "offset", (0.0, 0.0))
    scale = tuple(map(_inverse, network.numbers(node, "scale", (1.0, 1.0))))
    degrees = -network.number(node, "rotate", 0.0)
    about = Coordinates("", offset=(-pivot[0], -pivot[1]))
    away = (-offset[0], -offset[1])
    if int(network.number(node, "operationorder", 0.0)) == 1:  # the other way round
        about = about.then(_IDENTITY, away).then(turned((1.0, 1.0), degrees), (0.0, 0.0)).then((scale[0], 0.0, 0.0, scale[1]), (0.0, 0.0))
    else:
        about = about.then(turned(scale, degrees), away)
    about = about.then(_IDENTITY, pivot)
    return about.linear, about.offset


def turned(scale: tuple[float, ...], degrees: float) -> tuple[float, float, float, float]:
    """Linear part of scaling, then turning counter-clockwise."""
    angle = math.radians(degrees % 360.0)
    c, s = math.cos(angle), math.sin(angle)
    return c * scale[0], -s * scale[1], s * scale[0], c * scale[1]


def _inverse(scale: float) -> float:
    return 1.0 / scale if abs(scale) > 1.0 / LARGEST else 0.0
