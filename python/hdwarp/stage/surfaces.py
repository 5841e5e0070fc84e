"""stage.surfaces: what the inputs of a surface shader are driven by; MaterialX's surfaces in terms of UsdPreviewSurface's inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pxr import Usd, UsdShade

from hdwarp.stage.looks import OPACITY_MODES, Material, Texture
from hdwarp.stage.networks import Network, Unsupported, fit, identifier_of, leads_nowhere, produced, source_of
from hdwarp.stage.node_values import Value, given_by, product

FIELDS = {  # inputs of MATERIAL_INPUTS: field of Material, components
    "diffuseColor": ("diffuse_color", 3),
    "emissiveColor": ("emissive_color", 3),
    "specularColor": ("specular_color", 3),
    "metallic": ("metallic", 1),
    "roughness": ("roughness", 1),
    "clearcoat": ("clearcoat", 1),
    "clearcoatRoughness": ("clearcoat_roughness", 1),
    "opacity": ("opacity", 1),
    "ior": ("ior", 1),
    "occlusion": ("occlusion", 1),
    "normal": ("", 3),
}
DISPLAY_COLOR = Texture.of_primvar("displayColor", (0.0, 0.0, 0.0, 0.0))  # its fallback as a reader that says nothing has it


def put(material: Material, name: str, value: Value | None, network: Network) -> None:
    """Let ``value`` drive an input of ``material``; None leaves it as it is."""
    column, width = FIELDS[name]
    if isinstance(value, Texture):
        if name == "normal" and value.image is None:
            network.diagnostics.note(network.path, "material-input", "normal comes from a primvar, which is ignored: textures turn normals")
        elif name == "diffuseColor" and value == DISPLAY_COLOR:
            material.diffuse_color = None  # which is there anyway
        elif width == 1 and value.channel < 0:
            material.textures[name] = replace(value, channel=0)
        else:
            material.textures[name] = value
    elif value is not None and column:
        setattr(material, column, value)
    elif value is not None and any(abs(a - b) > 1e-6 for a, b in zip(value, (0.0, 0.0, 1.0), strict=True)):
        network.diagnostics.note(network.path, "material-input", "normal is a constant, which is ignored: textures turn normals")


def driven(network: Network, attribute: Usd.Attribute, name: str, width: int) -> Value | None:
    """What drives ``attribute``, input ``name`` of a surface: a texture, or ``width`` finite numbers; None: nothing, or what was told."""
    time = network.time
    if not attribute.HasAuthoredConnections():
        return _fitted(network, attribute, name, width)
    own, source = attribute.Get(time), source_of(attribute)
    if source is None or source == attribute:
        if leads_nowhere(attribute):
            there = ", ".join(f"<{path}>" for path in attribute.GetConnections())
            using = "its own value" if own is not None else "the fallback"
            message = f"inputs:{name} is connected to {there}, which gives no value; {using} is used. Mend the connection"
            network.warning("material-connection", message)
        return _fitted(network, attribute, name, width)
    if UsdShade.Input.IsInput(source):
        return _fitted(network, source, name, width)
    network.driven, network.visits = name, 0
    try:
        given = given_by(network, source, width)
    except Unsupported as error:
        network.warning("texture", f"inputs:{name}: {error}; its fallback is used")
        if name == "opacity":
            return None  # one value of a node that is not read says nothing about where it cuts
        given = fit(produced(source.GetPrim(), "fallback", time), width)
    finally:
        network.driven = ""
    return _fitted(network, attribute, name, width) if given is None else given


def _fitted(network: Network, attribute: Usd.Attribute, name: str, width: int) -> Value | None:
    """The value of ``attribute`` for input ``name``."""
    value = attribute.Get(network.time)
    fitted = network.in_working_space(attribute, fit(value, width))
    if fitted is None and value is not None:
        network.warning("material-input", f"inputs:{name} holds {value!r}, not {width} finite numbers; its fallback is used")
    return fitted


# -- UsdPreviewSurface --------------------------------------------------------------------------------------------------------


def read_preview(network: Network, shader: Usd.Prim, material: Material) -> None:
    for attribute in shader.GetAuthoredPropertiesInNamespace("inputs"):
        name = attribute.GetName()[7:]
        if name in FIELDS:
            put(material, name, driven(network, attribute, name, FIELDS[name][1]), network)
        elif name == "opacityThreshold":
            material.opacity_threshold = _constant(network, attribute, name, material.opacity_threshold)
        elif name == "useSpecularWorkflow":
            material.use_specular_workflow = bool(_constant(network, attribute, name, 0.0))
        elif name == "opacityMode":
            material.opacity_mode = network.token(shader, name, OPACITY_MODES)
        elif name == "displacement" and (attribute.HasAuthoredConnections() or attribute.Get(network.time)):
            network.diagnostics.note(network.path, "displacement", "displacement is not supported; surfaces are drawn where they are")


def _constant(network: Network, attribute: Usd.Attribute, name: str, otherwise: float) -> float:
    value = driven(network, attribute, name, 1)
    if isinstance(value, Texture):
        network.warning("material-input", f"inputs:{name} comes from a texture, which it cannot; its fallback is used")
    return otherwise if value is None or isinstance(value, Texture) else value


# -- MaterialX ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Model:
    """A surface of MaterialX. What it has and UsdPreviewSurface has not is `dropped`: names, and the values with which they do nothing."""

    inputs: Mapping[str, tuple[str, ...]]  # of ours: its own, all multiplied
    defaults: Mapping[str, Value]  # of these
    dropped: Mapping[str, Value]
    specular: str = ""  # weight of the reflection, which `ior` stands for
    single: frozenset[str] = field(default_factory=frozenset)  # inputs that weigh colours: of one component


_WHITE = (1.0, 1.0, 1.0)
_STANDARD = _Model(
    {
        "diffuseColor": ("base_color", "base"),
        "emissiveColor": ("emission_color", "emission"),
        "metallic": ("metalness",),
        "roughness": ("specular_roughness",),
        "ior": ("specular_IOR",),
        "clearcoat": ("coat",),
        "clearcoatRoughness": ("coat_roughness",),
        "opacity": ("opacity",),
        "normal": ("normal",),
    },
    {
        "base": 1.0,
        "base_color": (0.8, 0.8, 0.8),
        "emission": 0.0,
        "emission_color": _WHITE,
        "metalness": 0.0,
        "specular_roughness": 0.2,
        "specular_IOR": 1.5,
        "coat": 0.0,
        "coat_roughness": 0.1,
        "opacity": _WHITE,
    },
    {
        "diffuse_roughness": 0.0,
        "specular_color": _WHITE,
        "specular_anisotropy": 0.0,
        "transmission": 0.0,
        "subsurface": 0.0,
        "sheen": 0.0,
        "coat_color": _WHITE,
        "coat_anisotropy": 0.0,
        "coat_affect_color": 0.0,
        "coat_affect_roughness": 0.0,
        "coat_normal": (0.0, 0.0, 1.0),
        "thin_film_thickness": 0.0,
    },
    "specular",
    frozenset(("base", "emission")),
)
_OPEN_PBR = _Model(
    {
        "diffuseColor": ("base_color", "base_weight"),
        "emissiveColor": ("emission_color", "emission_luminance"),
        "metallic": ("base_metalness",),
        "roughness": ("specular_roughness",),
        "ior": ("specular_ior",),
        "clearcoat": ("coat_weight",),
        "clearcoatRoughness": ("coat_roughness",),
        "opacity": ("geometry_opacity",),
        "normal": ("geometry_normal",),
    },
    {
        "base_weight": 1.0,
        "base_color": (0.8, 0.8, 0.8),
        "emission_luminance": 0.0,
        "emission_color": _WHITE,
        "base_metalness": 0.0,
        "specular_roughness": 0.3,
        "specular_ior": 1.5,
        "coat_weight": 0.0,
        "coat_roughness": 0.0,
        "geometry_opacity": 1.0,
    },
    {
        "base_diffuse_roughness": 0.0,
        "specular_color": _WHITE,
        "specular_roughness_anisotropy": 0.0,
        "transmission_weight": 0.0,
        "subsurface_weight": 0.0,
        "fuzz_weight": 0.0,
        "coat_color": _WHITE,
        "coat_roughness_anisotropy": 0.0,
        "geometry_coat_normal": (0.0, 0.0, 1.0),
        "thin_film_weight": 0.0,
    },
    "specular_weight",
    frozenset(("base_weight", "emission_luminance")),
)
_GLTF = _Model(
    {
        "diffuseColor": ("base_color",),
        "emissiveColor": ("emissive", "emissive_strength"),
        "metallic": ("metallic",),
        "roughness": ("roughness",),
        "ior": ("ior",),
        "clearcoat": ("clearcoat",),
        "clearcoatRoughness": ("clearcoat_roughness",),
        "opacity": ("alpha",),
        "occlusion": ("occlusion",),
        "normal": ("normal",),
    },
    {
        "base_color": _WHITE,
        "emissive": (0.0, 0.0, 0.0),
        "emissive_strength": 1.0,
        "metallic": 1.0,
        "roughness": 1.0,
        "ior": 1.5,
        "clearcoat": 0.0,
        "clearcoat_roughness": 0.0,
        "alpha": 1.0,
        "occlusion": 1.0,
    },
    {
        "specular_color": _WHITE,
        "transmission": 0.0,
        "sheen_color": (0.0, 0.0, 0.0),
        "iridescence": 0.0,
        "anisotropy_strength": 0.0,
        "dispersion": 0.0,
        "clearcoat_normal": (0.0, 0.0, 1.0),
    },
    "specular",
    frozenset(("emissive_strength",)),
)
MODELS = {
    "ND_standard_surface_surfaceshader": _STANDARD,
    "ND_standard_surface_surfaceshader_100": replace(_STANDARD, defaults={**_STANDARD.defaults, "base": 0.8, "base_color": _WHITE}),
    "ND_open_pbr_surface_surfaceshader": _OPEN_PBR,
    "ND_gltf_pbr_surfaceshader": _GLTF,
}
_OPAQUE, _MASK, _BLEND = 0, 1, 2  # alpha_mode of _GLTF


def read_model(network: Network, shader: Usd.Prim, material: Material) -> None:
    """What a surface of MaterialX has in common with UsdPreviewSurface; the rest is told at once."""
    model = MODELS[identifier_of(shader)]
    authored = {attribute.GetName()[7:]: attribute for attribute in shader.GetAuthoredPropertiesInNamespace("inputs")}
    dropped = []

    def read(name: str, width: int) -> Value | None:
        value = driven(network, authored[name], name, width) if name in authored else None
        return model.defaults.get(name) if value is None else value

    for ours, names in model.inputs.items():
        width = FIELDS[ours][1]
        wide = 3 if ours == "opacity" and isinstance(model.defaults["opacity" if "opacity" in names else names[0]], tuple) else width
        value = read(names[0], wide)
        for weight in names[1:]:
            by = read(weight, 1 if weight in model.single else width)
            try:
                value = product(value, by)
            except Unsupported:
                dropped.append(weight)
        if wide != width and isinstance(value, tuple):
            value = sum(value) / len(value)
        put(material, ours, value, network)
    material.opacity_mode = "presence"  # it is where surfaces are, in all of these
    if model is _GLTF:
        _put_alpha_mode(network, shader, material)
    _put_specular(network, authored.get(model.specular), material, model.specular, dropped)
    for name, neutral in model.dropped.items():
        if name in authored and (authored[name].HasAuthoredConnections() or not is_neutral(authored[name].Get(network.time), neutral)):
            dropped.append(name)
    tell_dropped(network, dropped)


def tell_dropped(network: Network, names: list[str]) -> None:
    if names:
        said = f"{', '.join(sorted(names))} of its surface {'have' if len(names) > 1 else 'has'} no counterpart here and"
        network.diagnostics.note(network.path, "material-dropped", f"{said} {'are' if len(names) > 1 else 'is'} ignored")


def ior_of(reflectance: float) -> float:
    """The index of refraction at which a surface reflects so much of what falls on it straight."""
    root = math.sqrt(min(max(reflectance, 0.0), 0.98))
    return (1.0 + root) / (1.0 - root)


def is_neutral(value: object, neutral: Value) -> bool:
    """Whether an input with this value does nothing; also where it has none."""
    fitted = fit(value, len(neutral) if isinstance(neutral, tuple) else 1)
    return value is None or fitted == neutral


def _put_specular(network: Network, attribute: Usd.Attribute | None, material: Material, name: str, dropped: list[str]) -> None:
    weight = driven(network, attribute, name, 1) if attribute is not None else None
    if weight is None or weight == 1.0:
        return
    if isinstance(weight, Texture) or "ior" in material.textures:
        dropped.append(name)
    elif material.ior > 0.0:
        material.ior = ior_of(weight * ((1.0 - material.ior) / (1.0 + material.ior)) ** 2)


def _put_alpha_mode(network: Network, shader: Usd.Prim, material: Material) -> None:
    mode = int(network.number(shader, "alpha_mode", float(_OPAQUE)))
    if mode == _MASK:
        material.opacity_threshold = network.number(shader, "alpha_cutoff", 0.5)
    elif mode != _BLEND:
        material.opacity = 1.0
        material.textures.pop("opacity", None)
