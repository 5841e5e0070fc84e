"""stage.networks: what an input of a surface is connected to: through interfaces and node graphs to textures and where they are laid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pxr import Sdf, Usd, UsdShade

from hdwarp.errors import Diagnostics
from hdwarp.stage.columns import COLOUR_SPACES, WRAPS, Texture
from hdwarp.stage.images import ImageError, ImageFile, Images
from hdwarp.stage.open import UNREADABLE

LARGEST = 1e30  # float32, and what is computed with it, holds more, but not much
CHANNELS = {"r": 0, "g": 1, "b": 2, "a": 3}
_OUTPUTS = {"rgb": -1} | CHANNELS
_UDIM = "<UDIM>"
_FIRST_TILE = 1001
_MOST_TRANSFORMS = 64  # one after another


class _Unsupported(Exception):
    """Says which node of a network is not supported."""


@dataclass(slots=True, eq=False)
class Network:
    """The network of one material while it is read: where, when, and what there is to tell."""

    path: str  # of the material
    time: Usd.TimeCode
    images: Images
    diagnostics: Diagnostics

    def texture(self, attribute: Usd.Attribute, name: str) -> Texture | None:
        """What ``attribute``, an output of a UsdUVTexture from which the surface's input ``name`` takes its values, shows. None, which is
        told, where it has no image that can be read or is laid by nodes that are not supported."""
        node = UsdShade.Shader(attribute.GetPrim())
        output = attribute.GetName().rpartition(":")[2]
        try:
            if output not in _OUTPUTS:
                raise _Unsupported(f"output '{output}' of <{node.GetPath()}> is none of a UsdUVTexture ({', '.join(_OUTPUTS)})")
            where = self._coordinates(node)
            files = self._files(node)
        except ImageError as error:
            self._warn("texture", f"inputs:{name}: inputs:file of <{node.GetPath()}>: {error}; its fallback is used")
            return None
        except _Unsupported as error:
            self._warn("texture", f"inputs:{name}: {error}; its fallback is used")
            return None
        found = {number: file.image for number, file in files.items()}
        file, tiles = next(iter(files.values())), ()
        if -1 not in files:
            tiles = tuple(found.get(number) for number in range(max(found) + 1))
        wraps = (self._wrap(node, name, k, file) for name, k in (("wrapS", 0), ("wrapT", 1)))
        scale, bias = self._numbers(node, "scale", (1.0,) * 4), self._numbers(node, "bias", (0.0,) * 4)
        fallback = self._numbers(node, "fallback", (0.0, 0.0, 0.0, 1.0))
        space = self._token(node, "sourceColorSpace", COLOUR_SPACES)
        return Texture(file.image, where.st, *wraps, _OUTPUTS[output], space, scale, bias, *where.placed, tiles, fallback)

    def _warn(self, code: str, message: str) -> None:
        self.diagnostics.warning(self.path, code, message)

    # -- images -----------------------------------------------------------------------------------------------------------

    def _files(self, node: UsdShade.Shader) -> dict[int, ImageFile]:
        """The image as number -1, or UDIM tiles by number. Raises ImageError where there is none."""
        attribute = producing(node, "file")
        asset = None if attribute is None else attribute.Get(self.time)
        if not isinstance(asset, Sdf.AssetPath) or not asset.path:
            raise ImageError("names no file. Author one")
        if _UDIM not in asset.path:
            return {-1: self.images.read(asset)}
        files, unread = {}, ""
        for path, tile in self._tiles(attribute, asset):
            number = int(tile) - _FIRST_TILE
            try:
                files[number] = self.images.read(Sdf.AssetPath(path, path))
            except ImageError as error:
                unread = str(error)
                self._warn("texture", f"inputs:file of <{node.GetPath()}>: {error}; the texture's fallback is shown in tile {tile}")
        if not files:
            raise ImageError(unread or f"no tile of @{asset.path}@ was found. Mend the asset path, or put the files there")
        return dict(sorted(files.items()))

    def _tiles(self, attribute: Usd.Attribute, asset: Sdf.AssetPath) -> list[tuple[str, str]]:
        """(resolved path, number from 1001 to 1100) of the tiles of a path with <UDIM>, which is anchored where it is authored."""
        layer = next(
            (spec.layer for spec in attribute.GetPropertyStack(self.time) if _has_value(spec)), attribute.GetStage().GetRootLayer()
        )
        pattern = UsdShade.UdimUtils.ResolveUdimPath(asset.path, layer)
        return UsdShade.UdimUtils.ResolveUdimTilePaths(pattern, layer) if pattern else []

    def _wrap(self, node: UsdShade.Shader, name: str, number: int, file: ImageFile) -> str:
        wrap = self._token(node, name, ("useMetadata", *WRAPS))
        if wrap != "useMetadata":
            return wrap
        return "black" if file.wraps is None else file.wraps[number]

    # -- where they are laid ----------------------------------------------------------------------------------------------

    def _coordinates(self, node: UsdShade.Shader) -> _Coordinates:
        """Where a texture is laid. Raises _Unsupported."""
        name, transforms, seen = "st", [], set()
        while (attribute := producing(node, name)) is not None and not UsdShade.Input.IsInput(attribute):
            source, here = UsdShade.Shader(attribute.GetPrim()), f"inputs:{name} of <{node.GetPath()}>"
            path, identifier = source.GetPath(), (source.GetShaderId() if source else None) or ""
            if identifier == "UsdPrimvarReader_float2":
                return self._read_by(source).transformed(transforms)
            if identifier != "UsdTransform2d":
                kind = f"'{identifier}'" if identifier else "without info:id"
                raise _Unsupported(f"{here} comes from <{path}>, a shader {kind}, which is not supported there")
            if path in seen:
                raise _Unsupported(f"{here} comes round in a circle to <{path}>")
            if len(seen) == _MOST_TRANSFORMS:
                raise _Unsupported(f"{here} is connected through {_MOST_TRANSFORMS} transforms to one more, <{path}>")
            seen.add(path)
            scale, (degrees,) = self._numbers(source, "scale", (1.0, 1.0)), self._numbers(source, "rotation", (0.0,))
            transforms.append(_Transform(scale, degrees, self._numbers(source, "translation", (0.0, 0.0))))
            node, name = source, "in"
        last = node.GetInput(name)
        if last and leads_nowhere(last):
            self._warn("material-connection", f"inputs:{name} of <{node.GetPath()}> is connected to nothing; its own value is used")
        return _Coordinates.constant(self._numbers(node, name, (0.0, 0.0))).transformed(transforms)

    def _read_by(self, reader: UsdShade.Shader) -> _Coordinates:
        name, fallback = produced(reader, "varname", self.time), self._numbers(reader, "fallback", (0.0, 0.0))
        if isinstance(name, str) and name:
            return _Coordinates(name, fallback, np.eye(2), np.zeros(2))
        message = f"inputs:varname of <{reader.GetPath()}> names no primvar; its fallback is used. Author one, such as st"
        self._warn("texture", message)
        return _Coordinates.constant(fallback)

    # -- values -----------------------------------------------------------------------------------------------------------

    def _numbers(self, node: UsdShade.Shader, name: str, otherwise: tuple[float, ...]) -> tuple[float, ...]:
        value = produced(node, name, self.time)
        fitted = fit(value, len(otherwise))
        if fitted is None:
            if value is not None:
                said = f"inputs:{name} of <{node.GetPath()}> holds {value!r}, not {len(otherwise)} finite numbers"
                self._warn("material-input", f"{said}; {otherwise} is used")
            return otherwise
        return fitted if isinstance(fitted, tuple) else (fitted,)

    def _token(self, node: UsdShade.Shader, name: str, known: tuple[str, ...]) -> str:
        value = produced(node, name, self.time)
        if value is None or value in known:
            return known[0] if value is None else str(value)
        message = f"inputs:{name} of <{node.GetPath()}> is {value!r}; read as {known[0]}. Author {', '.join(known[:-1])} or {known[-1]}"
        self._warn("material-input", message)
        return known[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Transform:
    """A UsdTransform2d."""

    scale: tuple[float, ...]
    degrees: float
    translation: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Coordinates:
    """linear (2, 2) x primvar + offset (2,)."""

    st: str  # primvar
    fallback: tuple[float, float]  # in its place
    linear: np.ndarray
    offset: np.ndarray

    @classmethod
    def constant(cls, value: tuple[float, float]) -> _Coordinates:
        return cls("st", (0.0, 0.0), np.zeros((2, 2)), np.array(value))  # any primvar: it counts for nothing

    def transformed(self, transforms: list[_Transform]) -> _Coordinates:
        """By ``transforms``, the last first: scaled, turned counter-clockwise, moved. Kept within float32."""
        linear, offset = self.linear, self.offset
        for transform in reversed(transforms):
            turn = np.radians(transform.degrees % 360.0)
            by = np.array(((np.cos(turn), -np.sin(turn)), (np.sin(turn), np.cos(turn)))) * transform.scale
            linear = np.clip(by @ linear, -LARGEST, LARGEST)
            offset = np.clip(by @ offset + transform.translation, -LARGEST, LARGEST)
        return _Coordinates(self.st, self.fallback, linear, offset)

    @property
    def placed(self) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, float]]:
        """The linear part, the offset and the fallback, as `Texture` has them."""
        return tuple(self.linear.ravel().tolist()), tuple(self.offset.tolist()), self.fallback


def _has_value(spec: Sdf.PropertySpec) -> bool:
    return spec.HasInfo("default") or spec.HasInfo("timeSamples")


def producing(node: UsdShade.Shader, name: str) -> Usd.Attribute | None:
    """The attribute from which an input has its value, through whatever interface it is connected to; None: none has."""
    found = node.GetInput(name)
    return next(iter(found.GetValueProducingAttributes()), None) if found else None


def produced(node: UsdShade.Shader, name: str, time: Usd.TimeCode) -> object:
    """An input's value through whatever interface it is connected to; None where it has none."""
    attribute = producing(node, name)
    return None if attribute is None else attribute.Get(time)


def leads_nowhere(shader_input: UsdShade.Input) -> bool:
    """Whether an input is connected to itself, in a circle, or to what does not exist; an interface without a value is no mistake."""
    attribute, seen = shader_input.GetAttr(), set()
    while attribute.HasAuthoredConnections():
        sources = attribute.GetConnections()
        if not sources or attribute.GetPath() in seen:
            return bool(sources)
        seen.add(attribute.GetPath())
        attribute = attribute.GetStage().GetAttributeAtPath(sources[0])
        if not attribute:
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


def fit(value: object, width: int) -> tuple[float, ...] | float | None:
    """``width`` finite numbers, one alone as a float; None where ``value`` is nothing of the kind."""
    if value is None or isinstance(value, str):
        return None
    try:
        array = np.asarray(value, np.float64).reshape(-1)
    except (TypeError, ValueError):
        return None
    if width == 3 and len(array) == 4:
        array = array[:3]  # a texture's rgba fallback
    if len(array) != width or not (np.abs(array) <= LARGEST).all():
        return None
    return tuple(float(v) for v in array) if width > 1 else float(array[0])
