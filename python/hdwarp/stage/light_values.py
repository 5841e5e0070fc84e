"""stage.light_values: what is authored on a light, checked: finite numbers of the right type, colours in Rec.709, linked prims."""

from __future__ import annotations

import math

import numpy as np
from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage.colour_spaces import WORKING_SPACE, in_working_space
from hdwarp.stage.images import ImageError, Images
from hdwarp.stage.looks import LinkRules, Texture

_AS_THE_IMAGE_SAYS = ("", "identity", "unknown", "auto", "linear")
_TEXTURE_SPACES = {
    "raw": "raw",
    "Raw": "raw",
    "data": "raw",
    "lin_rec709": "raw",
    WORKING_SPACE: "raw",
    "sRGB": "sRGB",
    "srgb_rec709_scene": "sRGB",
}


class LightValues:
    """Attributes of one light at a time. What cannot be used is told, and the fallback stands in for it."""

    def __init__(self, prim: Usd.Prim, path: str, time: Usd.TimeCode, diagnostics: Diagnostics) -> None:
        self.prim, self.path, self.time, self.diagnostics = prim, path, time, diagnostics

    def has(self, name: str) -> bool:
        """Whether there is such an attribute, authored or of an applied schema."""
        return bool(self.prim.GetAttribute(name))

    def _get(self, name: str) -> object:
        attribute = self.prim.GetAttribute(name)
        return attribute.Get(self.time) if attribute else None

    def _wrong(self, name: str, value: object, fallback: object, expected: str) -> None:
        message = f"{name} holds {type(value).__name__}, not {expected}; read as {fallback}. Author the schema's type"
        self.diagnostics.warning(self.path, "wrong-type", message)

    def number(self, name: str, fallback: float, *, least: float = -math.inf) -> float:
        """A finite number, ``least`` or more."""
        value = self._get(name)
        if value is None:
            return fallback
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong(name, value, fallback, "a number")
            return fallback
        value = float(value)
        if not math.isfinite(value):
            self.diagnostics.warning(self.path, "light-value", f"{name} is {value}; read as {fallback:g}. Author a finite number")
            return fallback
        if value < least:
            self.diagnostics.warning(self.path, "light-value", f"{name} is {value:g}; read as {least:g}. Author {least:g} or more")
            return least
        return value

    def flag(self, name: str, fallback: bool) -> bool:
        value = self._get(name)
        if value is None:
            return fallback
        if not isinstance(value, bool | int):
            self._wrong(name, value, fallback, "a bool")
            return fallback
        return bool(value)

    def token(self, name: str, fallback: str, known: tuple[str, ...]) -> str:
        value = self._get(name)
        if value is None:
            return fallback
        if value not in known:
            message = f"{name} is {value!r}; read as {fallback}. Author one of {', '.join(known)}"
            self.diagnostics.warning(self.path, "light-value", message)
            return fallback
        return str(value)

    def color(self, name: str, fallback: tuple[float, float, float]) -> tuple[float, float, float]:
        """A colour in linear Rec.709, 0 or more."""
        value = self._get(name)
        if value is None:
            return fallback
        try:
            found = tuple(float(part) for part in value)
        except (TypeError, ValueError):
            found = ()
        if len(found) != 3:
            self._wrong(name, value, fallback, "a colour")
            return fallback
        if not all(math.isfinite(part) for part in found):
            self.diagnostics.warning(self.path, "light-value", f"{name} is {found}; read as {fallback}. Author finite numbers")
            return fallback
        if min(found) < 0.0:
            self.diagnostics.warning(self.path, "light-value", f"{name} is {found}; what is negative is read as 0. Author 0 or more")
        return self._in_working_space(name, tuple(max(part, 0.0) for part in found))

    def _in_working_space(self, name: str, color: tuple[float, float, float]) -> tuple[float, float, float]:
        if color[0] == color[1] == color[2] == 0.0:
            return color
        converted, wrong = in_working_space(self.prim.GetAttribute(name), np.array(color))
        if wrong:
            self.diagnostics.warning(self.path, "color-space", wrong)
        return color if converted is None else tuple(float(part) for part in converted)

    def texture(self, images: Images, name: str = "inputs:texture:file") -> Texture | None:
        """The image that an asset attribute names; None where there is none, or none that can be read."""
        asset = self._get(name)
        if not hasattr(asset, "resolvedPath"):
            if asset is not None:
                self._wrong(name, asset, "none", "an asset path")
            return None
        if not asset.path:
            return None
        try:
            image = images.read(asset).image
        except ImageError as error:
            message = f"the texture of the light: {error}; it shines with its colour alone"
            self.diagnostics.warning(self.path, "light-texture", message)
            return None
        space = str(self.prim.GetAttribute(name).GetColorSpace() or "")
        if space not in _TEXTURE_SPACES and space not in _AS_THE_IMAGE_SAYS:
            message = f"the colour space {space!r} of {name} is not supported; read as the image says. Author raw or sRGB"
            self.diagnostics.warning(self.path, "color-space", message)
        return Texture(image=image, st="", colour_space=_TEXTURE_SPACES.get(space, "auto"))

    def links(self, name: str) -> tuple[LinkRules | None, list[str]]:
        """(rules of the collection ``name``, None where it includes everything; paths of the prims with collections it includes)."""
        if not any(authored.startswith(f"collection:{name}") for authored in self.prim.GetAuthoredPropertyNames()):
            return None, []
        collection = Usd.CollectionAPI(self.prim, name)
        query = collection.ComputeMembershipQuery()
        if collection.IsInExpressionMode() and collection.GetMembershipExpressionAttr().HasAuthoredValue():
            message = f"the membershipExpression of {name} is not supported; it counts as everything. Author includes and excludes"
            self.diagnostics.warning(self.path, "light-link", message)
            return None, []
        rules = {}
        for path, rule in query.GetAsPathExpansionRuleMap().items():
            if not path.IsPropertyPath():
                rules[str(path)] = "expandPrims" if str(rule) == "expandPrimsAndProperties" else str(rule)
        found = None if rules == {"/": "expandPrims"} else tuple(sorted(rules.items()))
        return found, _collections_in(collection)


def _collections_in(collection: Usd.CollectionAPI) -> list[str]:
    """Paths of the prims whose collections are included, and of those included there."""
    stage, found = collection.GetPrim().GetStage(), {}
    todo = [collection]
    while todo:
        for target in todo.pop().GetIncludesRel().GetTargets():
            if not target.IsPropertyPath() or not target.name.startswith("collection:") or target in found:
                continue
            found[target] = str(target.GetPrimPath())
            if inner := Usd.CollectionAPI.GetCollection(stage, target):
                todo.append(inner)
    return list(found.values())
