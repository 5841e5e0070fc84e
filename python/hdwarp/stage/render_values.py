"""stage.render_values: attributes and relationships of UsdRender prims -> plain values; what has another type is told and passed over."""

from __future__ import annotations

import numpy as np
from pxr import Tf, Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage.open import plain_text


class RenderValues:
    """What is authored on one render prim, of the types its schema asks for. UsdRender holds uniform values: the default time's."""

    def __init__(self, prim: Usd.Prim, diagnostics: Diagnostics | None = None) -> None:
        self.prim, self.diagnostics = prim, diagnostics

    def is_authored(self, name: str) -> bool:
        """Whether there is a value; a block is none."""
        attribute = self.prim.GetAttribute(name)
        return bool(attribute) and attribute.HasAuthoredValue()

    def integers(self, name: str, otherwise: tuple[int, ...]) -> tuple[int, ...]:
        """As many whole numbers as ``otherwise`` has, which stands for what is unauthored, blocked or no such thing."""
        value = self._value(name)
        array = _numbers(value, len(otherwise))
        if array is not None and (array == np.floor(array)).all():  # NaN and infinity are no whole numbers
            return tuple(int(number) for number in array)
        return self._refused(name, value, f"{len(otherwise)} integers", otherwise)

    def numbers(self, name: str, otherwise: tuple[float, ...]) -> tuple[float, ...]:
        value = self._value(name)
        array = _numbers(value, len(otherwise))
        return self._refused(name, value, f"{len(otherwise)} numbers", otherwise) if array is None else tuple(float(x) for x in array)

    def number(self, name: str, otherwise: float) -> float:
        value = self._value(name)
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if fits else self._refused(name, value, "a number", otherwise)

    def flag(self, name: str, otherwise: bool) -> bool:
        value = self._value(name)
        return bool(value) if isinstance(value, bool | int) else self._refused(name, value, "a bool", otherwise)

    def text(self, name: str, otherwise: str = "", time: Usd.TimeCode | None = None) -> str:
        value = self._value(name, time)
        return value if isinstance(value, str) else self._refused(name, value, "a token", otherwise)

    def texts(self, name: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        value = self._value(name)
        if type(value).__name__ in ("TokenArray", "StringArray"):
            return tuple(value)
        return self._refused(name, value, "an array of tokens", otherwise)

    def targets(self, name: str) -> list[str]:
        """Paths a relationship forwards to; none, with a diagnostic, where an attribute has its name."""
        relationship = self.prim.GetRelationship(name)
        if not relationship:
            return []
        try:
            return [str(path) for path in relationship.GetForwardedTargets()]
        except Tf.ErrorException as error:
            self._tell(name, f"is no relationship ({plain_text(error)}); it is read as without targets. Author 'rel {name} = </...>'")
            return []

    def has_targets(self, name: str) -> bool:
        """Whether the relationship has targets authored, even if they lead nowhere."""
        relationship = self.prim.GetRelationship(name)
        try:
            return bool(relationship) and relationship.HasAuthoredTargets() and bool(relationship.GetTargets())
        except Tf.ErrorException:
            return False

    def _value(self, name: str, time: Usd.TimeCode | None = None) -> object:
        if not self.is_authored(name):
            return None
        try:
            return self.prim.GetAttribute(name).Get(Usd.TimeCode.Default() if time is None else time)
        except Tf.ErrorException as error:
            self._tell(name, f"cannot be read: {plain_text(error)}; author it anew")
            return None

    def _refused(self, name: str, value: object, wanted: str, otherwise):
        if value is not None:
            said = f"holds {type(value).__name__}, not {wanted}; using {_shown(otherwise)}. Author {wanted}"
            self._tell(name, said)
        return otherwise

    def _tell(self, name: str, said: str) -> None:
        if self.diagnostics is not None:
            self.diagnostics.warning(self.prim.GetPath(), "wrong-type", f"{name} {said}")


def _numbers(value: object, count: int) -> np.ndarray | None:
    if value is None or isinstance(value, str):
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    return array if array.shape == (count,) and array.dtype.kind in "fiu" else None


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_shown(item) for item in value)})"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else f"'{value}'" if isinstance(value, str) else str(value)
