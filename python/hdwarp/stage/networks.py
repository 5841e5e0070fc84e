"""stage.networks: the connections of a material's network, and the values of its nodes: through interfaces and node graphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pxr import Sdf, Usd, UsdShade

from hdwarp.errors import Diagnostics
from hdwarp.stage.colour_spaces import in_working_space
from hdwarp.stage.images import Images
from hdwarp.stage.open import UNREADABLE

LARGEST = 1e30  # float32, and what is computed with it, holds more, but not much


class Unsupported(Exception):
    """Says which node of a network is not supported."""


@dataclass(slots=True, eq=False)
class Network:
    """The network of one material while it is read: where, when, and what there is to tell."""

    path: str  # of the material
    time: Usd.TimeCode
    images: Images
    diagnostics: Diagnostics
    driven: str = ""  # input of the surface whose values are looked for, for what there is to tell
    visits: int = 0  # to nodes, for this input

    def warning(self, code: str, message: str) -> None:
        self.diagnostics.warning(self.path, code, message)

    def warn_of_file(self, here: str, error: Exception) -> None:
        """An image cannot be read that the input ``here`` names."""
        where = f"inputs:{self.driven}: {here}" if self.driven else here
        self.warning("texture", f"{where}: {error}; its fallback is used, or where none is authored the value of the input")

    def numbers(self, node: Usd.Prim, name: str, otherwise: tuple[float, ...]) -> tuple[float, ...]:
        """As many finite numbers as ``otherwise`` has, which stands for an input without value, or, told, with another one."""
        attribute = producing(node, name)
        value = None if attribute is None else attribute.Get(self.time)
        if value is None:
            return otherwise
        fitted = self.in_working_space(attribute, fit(value, len(otherwise)))
        if fitted is None:
            said = f"inputs:{name} of <{node.GetPath()}> holds {value!r}, not {len(otherwise)} finite numbers"
            self.warning("material-input", f"{said}; {otherwise} is used")
            return otherwise
        return fitted if isinstance(fitted, tuple) else (fitted,)

    def in_working_space(self, attribute: Usd.Attribute, value: tuple[float, ...] | float | None) -> tuple[float, ...] | float | None:
        """A value of an attribute, in linear Rec.709 where it is a colour; an alpha stays as it is."""
        if not isinstance(value, tuple) or len(value) < 3:
            return value
        converted, wrong = in_working_space(attribute, np.array(value[:3]))
        if wrong:
            self.warning("color-space", wrong)
        return value if converted is None else (*(float(part) for part in converted), *value[3:])

    def number(self, node: Usd.Prim, name: str, otherwise: float) -> float:
        return self.numbers(node, name, (otherwise,))[0]

    def token(self, node: Usd.Prim, name: str, known: tuple[str, ...]) -> str:
        """One of ``known``, the first where there is no value or, told, another one."""
        value = produced(node, name, self.time)
        if value is None or value in known:
            return known[0] if value is None else str(value)
        message = f"inputs:{name} of <{node.GetPath()}> is {value!r}; read as {known[0]}. Author {', '.join(known[:-1])} or {known[-1]}"
        self.warning("material-input", message)
        return known[0]


def identifier_of(prim: Usd.Prim) -> str:
    """info:id of a shader; "" where it has none, or is no shader."""
    shader = UsdShade.Shader(prim)
    return (shader.GetShaderId() if shader else None) or ""


def producing(node: Usd.Prim, name: str) -> Usd.Attribute | None:
    """The attribute from which an input has its value, through whatever interface it is connected to; None: none has."""
    attribute = node.GetAttribute(f"inputs:{name}")
    if not attribute:
        return None
    if not attribute.HasAuthoredConnections():
        return attribute if attribute.HasAuthoredValue() else None
    return source_of(attribute)


def source_of(attribute: Usd.Attribute) -> Usd.Attribute | None:
    """The same for an attribute that has connections."""
    return next(iter(UsdShade.Utils.GetValueProducingAttributes(UsdShade.Input(attribute))), None)


def produced(node: Usd.Prim, name: str, time: Usd.TimeCode) -> object:
    """An input's value through whatever interface it is connected to; None where it has none."""
    attribute = producing(node, name)
    return None if attribute is None else attribute.Get(time)


def leads_nowhere(attribute: Usd.Attribute) -> bool:
    """Whether an input is connected to itself, in a circle, or to what does not exist; an interface without a value is no mistake."""
    seen: set[Sdf.Path] = set()
    while attribute.HasAuthoredConnections():
        sources = attribute.GetConnections()
        if not sources or attribute.GetPath() in seen:
            return bool(sources)
        seen.add(attribute.GetPath())
        attribute = attribute.GetStage().GetAttributeAtPath(sources[0])
        if not attribute or not attribute.GetName().startswith(("inputs:", "outputs:")):
            return True
    return False


def nodes_outside(material: UsdShade.Material, path: str) -> frozenset[str]:
    """Paths of the prims that a material's network leads to and that are not below it, whether they exist or not."""
    stage, found, todo = material.GetPrim().GetStage(), set(), [material.GetPrim()]
    while todo:
        try:
            nodes = {str(source.GetPrimPath()) for source in _sources(todo.pop())}
        except UNREADABLE:  # of a damaged file; told by `read_material`
            continue
        todo += [prim for prim in (stage.GetPrimAtPath(node) for node in nodes - found) if prim]
        found |= nodes
    return frozenset(node for node in found if node != path and not node.startswith(f"{path}/"))


def _sources(prim: Usd.Prim) -> Iterator[Sdf.Path]:
    for attribute in prim.GetAuthoredAttributes():
        if attribute.HasAuthoredConnections():
            yield from attribute.GetConnections()


def bounded(value: float) -> float:
    """A number within float32, with room; 0 for NaN."""
    return min(max(value, -LARGEST), LARGEST) if value == value else 0.0


def fit(value: object, width: int) -> tuple[float, ...] | float | None:
    """``width`` finite numbers, one alone as a float; None where ``value`` is nothing of the kind."""
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, (float, int)):  # most are; NumPy would take longer than all the rest
        return float(value) if width == 1 and abs(value) <= LARGEST else None
    try:
        array = np.asarray(value, np.float64).reshape(-1)
    except (TypeError, ValueError):
        return None
    if width == 3 and len(array) == 4:
        array = array[:3]  # a texture's rgba fallback
    if len(array) != width or not (np.abs(array) <= LARGEST).all():
        return None
    return tuple(float(v) for v in array) if width > 1 else float(array[0])
