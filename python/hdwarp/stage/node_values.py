"""stage.node_values: what an output of a node gives: a constant, or a texture; USD's nodes, and those of MaterialX that fold into one."""

from __future__ import annotations

from dataclasses import replace

from pxr import Usd, UsdShade

from hdwarp.stage.coordinates import Coordinates, laid
from hdwarp.stage.images import ImageError, ImageFile
from hdwarp.stage.looks import COLOUR_SPACES, WRAPS, Texture
from hdwarp.stage.networks import Network, Unsupported, bounded, fit, identifier_of, produced, producing
from hdwarp.stage.texture_files import read_files

Value = tuple[float, ...] | float | Texture

CHANNELS = {"r": 0, "g": 1, "b": 2, "a": 3}
_OUTPUTS = {"rgb": -1} | CHANNELS
_PARTS = CHANNELS | {f"out{c}": k for c, k in CHANNELS.items()} | {f"out{c}": k for k, c in enumerate("xyzw")}
_WIDTHS = {  # of what readers read
    "float": 1,
    "float2": 2,
    "float3": 3,
    "float4": 4,
    "normal": 3,
    "point": 3,
    "vector": 3,
    "vector2": 2,
    "vector3": 3,
    "vector4": 4,
    "color3": 3,
    "color4": 4,
}
_UV_TEXTURES = ("UsdUVTexture", "ND_UsdUVTexture", "ND_UsdUVTexture_23", "ND_UsdUVTexture_22")
_ADDRESSES = {"constant": "black", "clamp": "clamp", "periodic": "repeat", "mirror": "mirror"}
_SPACES = {"srgb_texture": "sRGB", "sRGB": "sRGB", "srgb_rec709_scene": "sRGB", "auto": "auto"} | dict.fromkeys(
    ("raw", "Raw", "data", "identity", "none", "linear", "lin_rec709", "lin_rec709_scene", "lin_srgb"), "raw"
)
_MOST_NODES = 64  # one after another
_MOST_VISITS = 1024  # to the nodes of one input: a node whose output is used twice is asked twice


def given_by(network: Network, attribute: Usd.Attribute, width: int, depth: int = 0) -> Value | None:
    """What ``attribute``, an output of a node, gives: ``width`` numbers, or a texture. None: what could not be read was told, and has no
    fallback of its own. Raises Unsupported."""
    node, output = attribute.GetPrim(), attribute.GetName().rpartition(":")[2]
    identifier = identifier_of(node)
    network.visits += 1
    if depth > _MOST_NODES or network.visits > _MOST_VISITS:
        count = f"{_MOST_NODES} nodes" if depth > _MOST_NODES else "many nodes"
        raise Unsupported(f"it is connected through {count} to one more, <{node.GetPath()}>")
    if identifier in _UV_TEXTURES:
        return _uv_texture(network, node, output, width)
    family, _, kind = identifier.removeprefix("ND_").partition("_")
    if family == "UsdPrimvarReader":
        return _primvar(network, node, kind, "varname", "fallback", width)
    if identifier.startswith("ND_"):
        if family in ("image", "tiledimage"):
            return _image(network, node, kind, family == "tiledimage", width)
        if family == "geompropvalue":
            return _primvar(network, node, kind, "geomprop", "default", width)
        if family == "geomcolor":
            return Texture.of_primvar("displayColor", (0.0,) * 4, 0 if width == 1 else -1)
        if family in _FOLDED:
            return _FOLDED[family](network, node, kind, output, width, depth + 1)
    told = f"a shader '{identifier}'" if identifier else "no shader with info:id"
    raise Unsupported(f"it comes from <{node.GetPath()}>, {told}, which is not supported there")


def _input(network: Network, node: Usd.Prim, name: str, width: int, otherwise: Value | None, depth: int) -> Value | None:
    """What an input of a node gets."""
    attribute = producing(node, name)
    if attribute is not None and not UsdShade.Input.IsInput(attribute):
        return given_by(network, attribute, width, depth)
    if attribute is None:
        return otherwise
    value = network.in_working_space(attribute, fit(attribute.Get(network.time), width))
    if value is None:
        raise Unsupported(f"inputs:{name} of <{node.GetPath()}> holds no {width} finite numbers")
    return value


# -- USD's nodes --------------------------------------------------------------------------------------------------------------


def _uv_texture(network: Network, node: Usd.Prim, output: str, width: int) -> Value | None:
    if output not in _OUTPUTS:
        raise Unsupported(f"output '{output}' of <{node.GetPath()}> is none of a UsdUVTexture ({', '.join(_OUTPUTS)})")
    where, here = laid(network, node, "st"), f"inputs:file of <{node.GetPath()}>"
    fallback = network.numbers(node, "fallback", (0.0, 0.0, 0.0, 1.0))
    try:
        file, tiles = read_files(network, producing(node, "file"), here)
    except ImageError as error:
        network.warn_of_file(here, error)
        if produced(node, "fallback", network.time) is None:
            return None
        return _cut(fallback, _OUTPUTS[output], width)
    st = node.GetAttribute("inputs:st")
    if not st or not (st.HasAuthoredConnections() or st.HasAuthoredValue()):
        message = f"inputs:st of <{node.GetPath()}> is not connected: all of the surface shows the corner (0, 0) of the image, mixed with"
        cure = "black where the texture does not wrap. Connect it to a UsdPrimvarReader_float2 of st"
        network.diagnostics.note(network.path, "texture-coordinates", f"{message} {cure}")
    wraps = (_wrap(network, node, name, k, file) for k, name in enumerate(("wrapS", "wrapT")))
    scale, bias = network.numbers(node, "scale", (1.0,) * 4), network.numbers(node, "bias", (0.0,) * 4)
    space = network.token(node, "sourceColorSpace", COLOUR_SPACES)
    channel = _OUTPUTS[output]
    if width == 1 and channel < 0:
        network.warning(
            "material-input", f"a single number is connected to outputs:rgb of <{node.GetPath()}>; red is taken. Connect it to r"
        )
        channel = 0
    placed = where.linear, where.offset, where.fallback
    return Texture(file.image, where.st, *wraps, channel, space, scale, bias, *placed, tiles, fallback)


def _cut(values: tuple[float, ...], channel: int, width: int) -> Value:
    if channel >= 0:
        return values[channel] if width == 1 else (values[channel],) * width
    return values[0] if width == 1 else values[:width]


def _wrap(network: Network, node: Usd.Prim, name: str, number: int, file: ImageFile) -> str:
    wrap = network.token(node, name, ("useMetadata", *WRAPS))
    if wrap != "useMetadata":
        return wrap
    return "black" if file.wraps is None else file.wraps[number]


def _primvar(network: Network, node: Usd.Prim, kind: str, name_input: str, fallback_input: str, width: int) -> Value:
    if kind not in _WIDTHS:
        raise Unsupported(f"<{node.GetPath()}> reads a primvar of type {kind or 'nothing'}, which no surface can show")
    count = _WIDTHS[kind]
    name = produced(node, name_input, network.time)
    fallback = (*network.numbers(node, fallback_input, (0.0,) * count), *(0.0,) * (4 - count))
    channel = 0 if 1 in (count, width) else -1
    if count != width and 1 in (width, count) and count != 1:
        network.warning("material-input", f"a single number is connected to <{node.GetPath()}>, which reads {count}; the first is taken")
    if isinstance(name, str) and name:
        return Texture.of_primvar(name, fallback, channel)
    said = f"inputs:{name_input} of <{node.GetPath()}> names no primvar; its fallback is used. Author one, such as displayColor"
    network.warning("texture", said)
    return _cut(fallback, channel, width)


# -- MaterialX ----------------------------------------------------------------------------------------------------------------


def _image(network: Network, node: Usd.Prim, kind: str, tiled: bool, width: int) -> Value | None:
    where = laid(network, node, "texcoord", Coordinates("st"))
    wraps = ("repeat", "repeat")
    if tiled:
        scale, (u, v) = network.numbers(node, "uvtiling", (1.0, 1.0)), network.numbers(node, "uvoffset", (0.0, 0.0))
        where = where.then((scale[0], 0.0, 0.0, scale[1]), (-u, -v))
    else:
        known = ("periodic", "constant", "clamp", "mirror")
        wraps = tuple(_ADDRESSES[network.token(node, name, known)] for name in ("uaddressmode", "vaddressmode"))
    count = _WIDTHS.get(kind, 3)
    default = network.numbers(node, "default", (0.0,) * count)
    fallback = (*default, *(0.0, 0.0, 0.0, 1.0)[count:]) if count > 1 else default * 4
    channel = 0 if 1 in (count, width) else -1
    return texture_of_file(network, node, "file", where, wraps, channel, "auto" if kind.startswith("color") else "raw", fallback, width)


def texture_of_file(
    network: Network,
    node: Usd.Prim,
    name: str,
    where: Coordinates,
    wraps: tuple[str, str],
    channel: int,
    space: str,
    fallback: tuple[float, ...],
    width: int,
) -> Value:
    """The texture of an asset input of a node of other than USD's own; ``fallback``, told, where it cannot be read. ``space``: what is
    meant where the attribute's colorSpace says nothing."""
    attribute, here = producing(node, name), f"inputs:{name} of <{node.GetPath()}>"
    try:
        file, tiles = read_files(network, attribute, here)
    except ImageError as error:
        network.warn_of_file(here, error)
        return _cut(fallback, channel, width)
    authored = attribute.GetColorSpace()
    if authored and authored not in _SPACES:
        known = ", ".join(name for name in _SPACES if name)
        network.warning("material-input", f"{here} is in colour space '{authored}'; read as {space}. Author one of {known}")
    space = _SPACES.get(authored, space)
    placed = where.linear, where.offset, where.fallback
    return Texture(
        file.image,
        where.st,
        *wraps,
        channel,
        space,
        st_linear=placed[0],
        st_offset=placed[1],
        st_fallback=placed[2],
        tiles=tiles,
        fallback=fallback,
    )


def _constant(network: Network, node: Usd.Prim, kind: str, output: str, width: int, depth: int) -> Value:
    count = _WIDTHS.get(kind, width)
    values = network.numbers(node, "value", (0.0,) * count)
    return _cut((*values, *(0.0,) * (4 - count)) if count > 1 else values * 4, -1, width)


def _multiplied(network: Network, node: Usd.Prim, kind: str, output: str, width: int, depth: int) -> Value | None:
    second = 1 if kind.endswith("FA") else width
    one = (1.0,) * width if width > 1 else 1.0
    values = _input(network, node, "in1", width, one, depth), _input(network, node, "in2", second, 1.0 if second == 1 else one, depth)
    return product(*values)


def _added(network: Network, node: Usd.Prim, kind: str, output: str, width: int, depth: int) -> Value | None:
    second = 1 if kind.endswith("FA") else width
    a, b = _input(network, node, "in1", width, 0.0, depth), _input(network, node, "in2", second, 0.0, depth)
    if isinstance(b, Texture):
        a, b = b, a
    if a is None or b is None:
        return None
    if isinstance(a, Texture):
        if isinstance(b, Texture):
            raise Unsupported(f"<{node.GetPath()}> adds two textures")
        return scaled(a, 1.0, b)
    return _by_parts(a, b, lambda x, y: x + y)


def _inverted(network: Network, node: Usd.Prim, kind: str, output: str, width: int, depth: int) -> Value | None:
    value, amount = _input(network, node, "in", width, 0.0, depth), network.number(node, "amount", 1.0)
    if isinstance(value, Texture):
        return scaled(value, -1.0, amount)
    return None if value is None else _by_parts(value, amount, lambda x, y: y - x)


def _passed(network: Network, node: Usd.Prim, kind: str, output: str, width: int, depth: int) -> Value | None:
    """Conversions: a single number is all components; of more the first are taken."""
    source = _WIDTHS.get(kind.partition("_")[0], width)
    if source == 1 and width > 1:
        value = _input(network, node, "in", 1, 0.0, depth)
        return value if value is None or isinstance(value, Texture) else (value,) * width
    value = _input(network, node, "in", source, (0.0,) * source if source > 1 else 0.0, depth)
    return value if value is None or isinstance(value, Texture) or source == 1 else _cut(value, -1, width)


def _extracted(network: Network, node: Usd.Prim, kind: str, output: str, width: int, depth: int) -> Value | None:
    source = _WIDTHS.get(kind.partition("_")[0], 3)
    if output in _PARTS:
        part = _PARTS[output]
    else:
        channels = produced(node, "channels", network.time)
        if isinstance(channels, str):
            if len(set(channels)) != 1 or channels[0] not in "rgbaxyzw":
                raise Unsupported(f"<{node.GetPath()}> reorders channels ({channels})")
            part = "rgba".find(channels[0]) if channels[0] in "rgba" else "xyzw".find(channels[0])
        else:
            part = int(network.number(node, "index", 0.0))
    if not 0 <= part < source:
        raise Unsupported(f"<{node.GetPath()}> takes component {part} of {source}")
    value = _input(network, node, "in", source, (0.0,) * source, depth)
    if isinstance(value, Texture):
        return value if value.channel >= 0 else replace(value, channel=part)
    return None if value is None else _cut((*value, *(0.0,) * (4 - source)), part, width)


def _normal(network: Network, node: Usd.Prim, kind: str, output: str, width: int, depth: int) -> Value | None:
    """From [0, 1] to directions."""
    if network.token(node, "space", ("tangent", "object")) != "tangent":
        raise Unsupported(f"<{node.GetPath()}> makes normals of object space")
    value, by = _input(network, node, "in", 3, (0.5, 0.5, 1.0), depth), 1.0
    if kind.startswith("vector2"):
        by = network.numbers(node, "scale", (1.0, 1.0))
        x, y = 2.0 * by[0], 2.0 * by[1]
    else:
        x = y = 2.0 * network.number(node, "scale", 1.0)
    if isinstance(value, Texture):
        return scaled(value, (x, y, 2.0), (-0.5 * x, -0.5 * y, -1.0))
    return value and ((value[0] - 0.5) * x, (value[1] - 0.5) * y, 2.0 * value[2] - 1.0)


_FOLDED = {
    "constant": _constant,
    "multiply": _multiplied,
    "add": _added,
    "invert": _inverted,
    "convert": _passed,
    "dot": _passed,
    "extract": _extracted,
    "separate2": _extracted,
    "separate3": _extracted,
    "separate4": _extracted,
    "swizzle": _extracted,
    "normalmap": _normal,
}


# -- arithmetic ---------------------------------------------------------------------------------------------------------------


def scaled(texture: Texture, by: Value, plus: Value = 0.0) -> Texture:
    """``by`` times what ``texture`` shows, and ``plus``: constants. Raises Unsupported where one channel would be coloured."""
    by, plus = _four(by, texture.channel, 1.0), _four(plus, texture.channel, 0.0)
    scale = tuple(bounded(a * b) for a, b in zip(texture.scale, by, strict=True))
    bias, fallback = (tuple(bounded(a * b + c) for a, b, c in zip(old, by, plus, strict=True)) for old in (texture.bias, texture.fallback))
    return replace(texture, scale=scale, bias=bias, fallback=fallback)


def _four(value: Value, channel: int, alpha: float) -> tuple[float, ...]:
    if not isinstance(value, tuple):
        return (value,) * 4
    if channel < 0:
        return (*value, *(alpha,) * (4 - len(value)))
    if len(set(value)) > 1:
        raise Unsupported("one channel of a texture is coloured, which is not supported")
    return (value[0],) * 4


def product(a: Value | None, b: Value | None) -> Value | None:
    """Of constants, or of a texture and a constant. Raises Unsupported for two textures."""
    if a is None or b is None:
        return None
    if isinstance(b, Texture):
        a, b = b, a
    if not isinstance(a, Texture):
        return _by_parts(a, b, lambda x, y: x * y)
    if isinstance(b, Texture):
        raise Unsupported("two textures are multiplied, which is not supported")
    return scaled(a, b)


def _by_parts(a: Value, b: Value, operation: object) -> Value:
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return bounded(operation(a, b))
    count = len(a) if isinstance(a, tuple) else len(b)
    a, b = (value if isinstance(value, tuple) else (value,) * count for value in (a, b))
    return tuple(bounded(operation(x, y)) for x, y in zip(a, b, strict=True))
