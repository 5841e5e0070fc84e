"""stage.omnipbr: OmniPBR, the surface of Omniverse's mdl library, in terms of UsdPreviewSurface's inputs."""

from __future__ import annotations

from dataclasses import replace

from pxr import Usd, UsdShade

from hdwarp.stage.coordinates import Coordinates, turned
from hdwarp.stage.looks import Material, Texture
from hdwarp.stage.networks import Network, Unsupported, produced
from hdwarp.stage.node_values import Value, product, scaled, texture_of_file
from hdwarp.stage.surfaces import driven, ior_of, is_neutral, put, tell_dropped

NAMES = ("OmniPBR", "OmniPBR_Opacity", "OmniPBR_ClearCoat", "OmniPBR_ClearCoat_Opacity")
_WHITE = (1.0, 1.0, 1.0)
_DROPPED = {  # names, and the values with which they do nothing
    "project_uvw": 0.0,
    "albedo_desaturation": 0.0,
    "ao_to_diffuse": 0.0,
    "detail_normalmap_texture": None,  # no file
    "emissive_mask_texture": None,
    "clearcoat_normalmap_texture": None,
    "clearcoat_tint": _WHITE,
}


def is_omnipbr(shader: UsdShade.Shader) -> bool:
    """Whether a shader without identifier is one of OmniPBR's: by the name within its mdl module, whatever folder that is said to be in."""
    if shader.GetImplementationSource() != "sourceAsset":
        return False
    asset, name = shader.GetSourceAsset("mdl"), shader.GetSourceAssetSubIdentifier("mdl")
    module = asset.path.replace("\\", "/").rpartition("/")[2].removesuffix(".mdl") if asset else ""
    return module in NAMES and (name or module).partition("(")[0] in NAMES


def read_omnipbr(network: Network, shader: Usd.Prim, material: Material) -> None:
    _Reader(network, shader).read(material)


class _Reader:
    def __init__(self, network: Network, shader: Usd.Prim) -> None:
        self.network, self.shader = network, shader
        self.dropped: list[str] = []
        scale, offset = network.numbers(shader, "texture_scale", (1.0, 1.0)), network.numbers(shader, "texture_translate", (0.0, 0.0))
        number = int(network.number(shader, "uv_space_index", 0.0))
        placed = Coordinates(f"st_{number}" if number > 0 else "st")
        self.where = placed.then(turned(scale, network.number(shader, "texture_rotate", 0.0)), offset)

    def value(self, name: str, otherwise: Value) -> Value:
        attribute = self.shader.GetAttribute(f"inputs:{name}")
        if not attribute:
            return otherwise
        value = driven(self.network, attribute, name, len(otherwise) if isinstance(otherwise, tuple) else 1)
        return otherwise if value is None else value

    def number(self, name: str, otherwise: float) -> float:
        return self.network.number(self.shader, name, otherwise)

    def is_on(self, name: str, otherwise: bool = False) -> bool:
        value = produced(self.shader, name, self.network.time)
        return otherwise if value is None else bool(value)

    def texture(self, name: str, channel: int, space: str, otherwise: Value) -> Texture | None:
        """None where there is none, or, told, it cannot be read."""
        asset = produced(self.shader, name, self.network.time)
        if not getattr(asset, "path", ""):
            return None
        width = len(otherwise) if isinstance(otherwise, tuple) else 1
        fallback = (*otherwise, 1.0) if width == 3 else (otherwise,) * 4
        wraps = ("repeat", "repeat")
        found = texture_of_file(self.network, self.shader, name, self.where, wraps, channel, space, fallback, width)
        return found if isinstance(found, Texture) else None

    def read(self, material: Material) -> None:
        network = self.network
        put(material, "diffuseColor", self._base_color(), network)
        orm = self.texture("ORM_texture", -1, "raw", _WHITE) if self.is_on("enable_ORM_texture") else None
        for name, theirs, texture, default, channel in (
            ("roughness", "reflection_roughness", "reflectionroughness_texture", 0.5, 1),
            ("metallic", "metallic", "metallic_texture", 0.0, 2),
        ):
            put(material, name, self._influenced(theirs, texture, default, orm, channel), network)
        if orm is not None:
            put(material, "occlusion", _channel(orm, 0), network)
        level = self.value("specular_level", 0.5)
        if isinstance(level, Texture):
            self.dropped.append("specular_level")
        else:
            material.ior = ior_of(0.08 * level)
        if self.is_on("enable_emission"):
            self._emission(material)
        if self.is_on("enable_opacity"):
            self._opacity(material)
        if self.is_on("enable_clearcoat"):
            put(material, "clearcoat", self.value("clearcoat_weight", 1.0), network)
            put(material, "clearcoatRoughness", self.value("clearcoat_reflection_roughness", 0.0), network)
        normal = self.texture("normalmap_texture", -1, "raw", (0.5, 0.5, 1.0))
        if normal is not None:
            bump = 2.0 * self.number("bump_factor", 1.0)
            s, t = (-bump if self.is_on(f"flip_tangent_{axis}", default) else bump for axis, default in (("u", False), ("v", False)))
            put(material, "normal", scaled(normal, (s, t, 2.0), (-0.5 * s, -0.5 * t, -1.0)), network)
        for name, neutral in _DROPPED.items():
            value = produced(self.shader, name, network.time)
            if bool(getattr(value, "path", "")) if neutral is None else not is_neutral(value, neutral):
                self.dropped.append(name)
        tell_dropped(network, self.dropped)

    def _base_color(self) -> Value:
        """A texture, brightened, or a constant; then tinted."""
        texture = self.texture("diffuse_texture", -1, "auto", (0.2, 0.2, 0.2))
        colour: Value = self.value("diffuse_color_constant", (0.2, 0.2, 0.2))
        if texture is not None:
            brightness = self.number("albedo_brightness", 1.0)
            colour = scaled(texture, brightness, brightness * self.number("albedo_add", 0.0))
        try:
            return product(colour, self.value("diffuse_tint", _WHITE))
        except Unsupported:
            self.dropped.append("diffuse_tint")
            return colour

    def _influenced(self, theirs: str, name: str, default: float, orm: Texture | None, channel: int) -> Value:
        """A constant that gives way to a texture as far as this has influence."""
        constant, influence = self.value(f"{theirs}_constant", default), self.value(f"{theirs}_texture_influence", 0.0)
        texture = self.texture(name, 0, "raw", default) if orm is None else _channel(orm, channel)
        if texture is None or influence == 0.0:
            return constant
        if isinstance(constant, Texture) or isinstance(influence, Texture):
            self.dropped.append(name)
            return constant
        return scaled(texture, influence, (1.0 - influence) * constant)

    def _emission(self, material: Material) -> None:
        colour = self.texture("emissive_color_texture", -1, "auto", _WHITE) or self.value("emissive_color", (1.0, 0.1, 0.1))
        put(material, "emissiveColor", product(colour, self.number("emissive_intensity", 40.0)), self.network)

    def _opacity(self, material: Material) -> None:
        material.opacity_threshold = max(self.number("opacity_threshold", 0.0), 0.0)
        material.opacity_mode = "presence"
        texture = None
        if self.is_on("enable_opacity_texture"):
            mode = int(self.number("opacity_mode", 1.0))  # 0: alpha; others are made of all colours: of grey, any one
            texture = self.texture("opacity_texture", 3 if mode == 0 else 0, "raw", 1.0)
        put(material, "opacity", texture if texture is not None else self.value("opacity_constant", 1.0), self.network)


def _channel(texture: Texture, channel: int) -> Texture:
    return replace(texture, channel=channel)
