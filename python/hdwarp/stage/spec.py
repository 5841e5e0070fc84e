"""stage.spec: UsdRender's settings, products and vars as plain records, inheritance already resolved. No pxr objects."""

from __future__ import annotations

from dataclasses import dataclass, field

PURPOSES = ("default", "render", "proxy", "guide")  # UsdGeom's


@dataclass(slots=True, eq=False)
class RenderVarSpec:
    path: str
    name: str  # the prim's name: the output variable's name
    data_type: str  # "color3f", "float", ...; "" unauthored
    source_name: str
    source_type: str  # raw, primvar, lpe, intrinsic
    settings: dict[str, object] = field(default_factory=dict)  # namespaced attributes


@dataclass(slots=True, eq=False)
class RenderProductSpec:
    """One image to make, with everything the settings pass on to it (authored product values win)."""

    path: str  # "" for a product made up because none is authored
    name: str  # productName as authored, "" if none
    product_type: str
    camera: str  # "" if neither the product nor its settings name one
    resolution: tuple[int, int]
    pixel_aspect_ratio: float
    aspect_ratio_conform_policy: str
    data_window_ndc: tuple[float, float, float, float]
    disable_motion_blur: bool
    disable_depth_of_field: bool
    render_vars: tuple[RenderVarSpec, ...]
    settings: dict[str, object] = field(default_factory=dict)  # namespaced attributes


@dataclass(slots=True, eq=False)
class RenderSettingsSpec:
    path: str  # "" when the stage has no RenderSettings prim: the schema's fallbacks
    products: tuple[RenderProductSpec, ...]
    included_purposes: tuple[str, ...]
    material_binding_purposes: tuple[str, ...]
    rendering_color_space: str
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinearSpace:
    """A linear RGB colour space: its name in OpenUSD, the matrix from linear Rec.709 into it, by rows, and the chromaticities (x, y) of
    its red, green, blue and white."""

    name: str
    from_rec709: tuple[tuple[float, float, float], ...]
    chromaticities: tuple[float, ...]

    def __str__(self) -> str:
        return self.name


REC709 = LinearSpace("lin_rec709_scene", ((1, 0, 0), (0, 1, 0), (0, 0, 1)), (0.64, 0.33, 0.3, 0.6, 0.15, 0.06, 0.3127, 0.329))
"""What everything is computed in."""


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """The geometry of one image: how a camera's window falls on pixels. `x0, y0, width, height` is the data window in pixels
    of the full image (top left origin; negative or beyond the image with overscan)."""

    image_width: int
    image_height: int
    x0: int
    y0: int
    width: int
    height: int
    pixel_aspect_ratio: float = 1.0
    aspect_ratio_conform_policy: str = "expandAperture"
