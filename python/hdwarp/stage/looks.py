"""stage.looks: what surfaces and lights look like: records of materials, textures, images and lights. NumPy only, as stage.columns is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A decoded image. Equal files of one colour space are one object: what differs is another image."""

    pixels: np.ndarray  # (H, W, 4) uint8, float16 or float32, row 0 on top; finite; colour and alpha as the file has them
    srgb: bool  # red, green and blue (of uint8) are sRGB-encoded; else linear
    name: str = ""  # asset path by which it was read first

    @property
    def is_opaque(self) -> bool:
        """Whether alpha is 1 everywhere."""
        return bool((self.pixels[..., 3] == (255 if self.pixels.dtype == np.uint8 else 1.0)).all())


WRAPS = ("black", "clamp", "repeat", "mirror")
"""What a texture shows beyond its image, by UsdUVTexture's names."""


COLOUR_SPACES = ("auto", "raw", "sRGB")
"""How red, green and blue of a texture are encoded, by UsdUVTexture's names; auto: as its image says."""


@dataclass(frozen=True, slots=True)
class Texture:
    """Images over a surface, and what is made of them. (s, t) = (0, 0) is the lower left corner of an image, (1, 1) its upper right one.

    Without image it is a primvar itself that is shown, its missing components 0: `st` names it, and `fallback` is in its place on what has
    none of that name. `of_primvar` makes these.
    """

    image: Image | None
    st: str  # the primvar that says where on the image a point of the surface is
    wrap_s: str = "clamp"  # of WRAPS
    wrap_t: str = "clamp"
    channel: int = -1  # the one shown, 0 to 3; -1: all
    colour_space: str = "auto"  # of COLOUR_SPACES
    scale: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)  # shown is scale * texel + bias, of linear values
    bias: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    st_linear: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 1.0)  # 2 x 2, row by row: applied to the primvar, and then
    st_offset: tuple[float, float] = (0.0, 0.0)  # added
    st_fallback: tuple[float, float] = (0.0, 0.0)  # in the primvar's place on what has none of that name
    # UDIM: tile number u + 10 v shows (u, v) to (u + 1, v + 1), None where there is none; beyond its edges a tile goes on as the edge is.
    # () where `image` is all; else `image` is one of them.
    tiles: tuple[Image | None, ...] = ()
    fallback: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)  # shown where there is no tile, as it is

    @classmethod
    def of_primvar(cls, name: str, fallback: tuple[float, float, float, float], channel: int = -1) -> Texture:
        """What shows the primvar ``name`` (1 to 4 components)."""
        return cls(None, name, channel=channel, fallback=fallback)

    @property
    def images(self) -> set[Image]:
        return {image for image in (self.image, *self.tiles) if image is not None}


MATERIAL_INPUTS = (
    "diffuseColor",
    "emissiveColor",
    "specularColor",
    "metallic",
    "roughness",
    "clearcoat",
    "clearcoatRoughness",
    "opacity",
    "ior",
    "occlusion",
    "normal",
)
"""Inputs of a material that textures can drive, by UsdPreviewSurface's names; the device tables number them in this order."""


OPACITY_MODES = ("transparent", "presence")
"""Whether opacity takes from what is scattered below the surface alone, or from all that it reflects; by UsdPreviewSurface's names."""


@dataclass(slots=True, eq=False)
class Material:
    """Inputs of a UsdPreviewSurface, or what comes near it elsewhere (linear Rec.709): constants, or `textures` in their place."""

    path: str
    diffuse_color: tuple[float, float, float] | None = (0.18, 0.18, 0.18)  # None: driven by the displayColor primvar
    emissive_color: tuple[float, float, float] = (0.0, 0.0, 0.0)
    specular_color: tuple[float, float, float] = (0.0, 0.0, 0.0)  # with `use_specular_workflow` in place of `metallic`
    metallic: float = 0.0
    roughness: float = 0.5
    clearcoat: float = 0.0
    clearcoat_roughness: float = 0.01
    opacity: float = 1.0
    opacity_threshold: float = 0.0  # above 0: the surface is cut away where its opacity is less, and opaque elsewhere
    ior: float = 1.5
    occlusion: float = 1.0
    use_specular_workflow: bool = False
    opacity_mode: str = "transparent"  # of OPACITY_MODES
    # By names of MATERIAL_INPUTS. Those of single numbers have one channel; `normal` is in the space of the surface's tangents, z its own.
    textures: dict[str, Texture] = field(default_factory=dict)

    @property
    def is_cut_away(self) -> bool:
        """Whether nothing of a surface with this material is drawn."""
        return "opacity" not in self.textures and self.opacity_threshold > 0.0 and self.opacity < self.opacity_threshold

    @property
    def has_holes(self) -> bool:
        """Whether a texture says where a surface with this material is drawn."""
        return "opacity" in self.textures and self.opacity_threshold > 0.0

    @property
    def is_blended(self) -> bool:
        """Whether what is behind a surface with this material shines through, here and there at least."""
        return self.opacity_threshold <= 0.0 and ("opacity" in self.textures or self.opacity < 1.0)


class LightKind(IntEnum):
    """What a light is; the number is the one the device tables hold. `Light.size` says how large, in the light's own space."""

    DISTANT = 0  # shines down -Z; size: cosine of half the angle it fills
    POINT = 1  # a sphere that counts as a point: `radiance` is its intensity, radiance times pi r^2
    SPHERE = 2  # about the origin; size: radius
    DISK = 3  # at z = 0, shines down -Z from one side; size: radius
    RECT = 4  # at z = 0, shines down -Z from one side; size: width along x, height along y
    CYLINDER = 5  # along x, without ends; size: length, radius
    LINE = 6  # a cylinder that counts as a line: `radiance` is what a metre of it sends out square to it, radiance times 2 r; size: length
    DOME = 7  # around everything: light that comes from direction d of its own space: pole +Y, middle of the picture +Z, +X to its left
    MESH = 8  # a gprim that shines from its front


LinkRules = tuple[tuple[str, str], ...]
"""(path, "expandPrims", "explicitOnly" or "exclude") in path order: which prims are in a collection, see `stage.links`."""


DOME_PROJECTIONS = ("latlong", "mirroredBall", "angular")
"""How the texture of a DOME is wrapped about it, by UsdLux's names."""


@dataclass(slots=True, eq=False)
class Light:
    """A UsdLux light, or a gprim with MeshLightAPI, at one time. All values are finite; what is not was told and has its fallback."""

    path: str
    world_from_light: np.ndarray  # (4, 4) float64 rigid, metres; it shines down -Z where its kind has a direction
    body: str = ""  # path of the body that carries it
    kind: LightKind = LightKind.POINT
    axes: np.ndarray = field(default_factory=lambda: np.eye(3))  # (3, 3) float64: scale and shear of its shape, applied before the pose
    radiance: tuple[float, float, float] = (0.0, 0.0, 0.0)  # linear Rec.709: intensity, exposure, colour, temperature, normalized; >= 0.
    # Of a DISTANT light that fills no angle: the irradiance of what faces it
    size: tuple[float, float] = (0.0, 0.0)  # metres, see LightKind
    diffuse: float = 1.0  # multipliers
    specular: float = 1.0
    cone_angle: float = np.pi  # radians off -Z beyond which it is dark; pi and no focus: not shaped
    cone_softness: float = 0.0
    focus: float = 0.0
    focus_tint: tuple[float, float, float] = (0.0, 0.0, 0.0)
    shadow: bool = True
    shadow_color: tuple[float, float, float] = (0.0, 0.0, 0.0)
    shadow_distance: float = -1.0  # metres; < 0: as far as there is anything
    shadow_falloff: float = -1.0
    shadow_falloff_gamma: float = 1.0
    texture: Texture | None = None  # of RECT and DOME
    projection: str = "latlong"  # of a DOME's texture: of DOME_PROJECTIONS
    light_link: LinkRules | None = None  # which prims it lights, None: all of them
    shadow_link: LinkRules | None = None  # which prims cast its shadows, None: all of them
    mesh: str = ""  # path of the gprim of a MESH light
    visible: bool = True  # False: it is off
