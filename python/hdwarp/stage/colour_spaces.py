"""stage.colour_spaces: colours as they are authored -> linear Rec.709, which everything is computed in; and what pictures are turned to."""

from __future__ import annotations

import functools

import numpy as np
from pxr import Gf, Usd, Vt

from hdwarp.stage.spec import REC709, LinearSpace

WORKING_SPACE = REC709.name
_AS_IS = frozenset(("", "raw", "Raw", "data", "identity", "none", "unknown", "auto", "linear", "lin_rec709", "lin_srgb", WORKING_SPACE))
_NAMES = {  # in use beside Gf's own: MaterialX's, and those of the Academy
    "acescg": "lin_ap1_scene",
    "ACEScg": "lin_ap1_scene",
    "lin_ap1": "lin_ap1_scene",
    "aces2065-1": "lin_ap0_scene",
    "ACES2065-1": "lin_ap0_scene",
    "lin_ap0": "lin_ap0_scene",
    "lin_rec2020": "lin_rec2020_scene",
    "lin_adobergb": "lin_adobergb_scene",
    "adobergb": "g22_adobergb_scene",
    "lin_displayp3": "lin_p3d65_scene",
    "srgb_displayp3": "srgb_p3d65_scene",
    "sRGB": "srgb_rec709_scene",
    "srgb_texture": "srgb_rec709_scene",
    "g18_rec709": "g18_rec709_scene",
    "gamma18": "g18_rec709_scene",
    "g22_rec709": "g22_rec709_scene",
    "gamma22": "g22_rec709_scene",
    "gamma24": "g24_rec709_scene",
    "rec709_display": "g24_rec709_scene",
    "g22_ap1": "g22_ap1_scene",
}
_LARGEST = 1e30
# As the Academy gives them: Gf's are those of the same spaces with the white of Rec.709, to which it adapts.
_CHROMATICITIES = {
    "lin_ap1_scene": (0.713, 0.293, 0.165, 0.83, 0.128, 0.044, 0.32168, 0.33767),
    "lin_ap0_scene": (0.7347, 0.2653, 0.0, 1.0, 0.0001, -0.077, 0.32168, 0.33767),
}


def in_working_space(attribute: Usd.Attribute, colours: np.ndarray) -> tuple[np.ndarray | None, str]:
    """(..., 3) float32: ``colours`` of an attribute in linear Rec.709; None where they are, or are no colours by the attribute's type.
    And what is wrong with their space, "" for nothing.

    The space is what the attribute's colorSpace says, else the nearest ColorSpaceAPI above. What is less than 0 in Rec.709, as saturated
    colours of wider spaces are, is 0.
    """
    name = str(Usd.ColorSpaceAPI.ComputeColorSpaceName(attribute, None) or "")
    if name in _AS_IS or attribute.GetTypeName().role != "Color":
        return None, ""
    space = find_space(name, attribute)
    if space is None:
        said = f"the colour space {name!r} of {attribute.GetName()} is not known, or defined by no usable numbers; read as linear Rec.709"
        return None, f"{said}. Author one of {_known()}"
    if space.IsData():
        return None, ""
    values = Vt.FloatArray.FromNumpy(np.array(colours, np.float32).ravel())
    space.ConvertRGBSpan(_named(WORKING_SPACE), values)
    converted = np.fmin(np.fmax(np.array(values, np.float32), np.float32(0.0)), np.float32(_LARGEST))  # 0 for NaN
    return converted.reshape(np.shape(colours)), ""


def find_space(name: str, attribute: Usd.Attribute | None = None) -> Gf.ColorSpace | None:
    """A colour space by Gf's name, another one in use, or one that is defined on the prims about ``attribute``, which is in it."""
    if (space := _named(_NAMES.get(name, name))) is not None:
        return space
    defined = Usd.ColorSpaceAPI.ComputeColorSpace(attribute, None) if attribute else None
    return defined if defined and defined.GetName() and _is_usable(defined) else None  # its name is the definition's, not the space's


@functools.lru_cache(maxsize=64)  # to make one takes longer than to convert a colour
def _named(name: str) -> Gf.ColorSpace | None:
    return Gf.ColorSpace(name) if Gf.ColorSpace.IsValid(name) else None


def _is_usable(space: Gf.ColorSpace) -> bool:
    """Whether numbers can be made of what somebody has defined."""
    gamma, into_xyz = space.GetGamma(), np.array(space.GetRGBToXYZ(), np.float64)
    return bool(0.0 < gamma < 100.0 and np.isfinite(into_xyz).all() and abs(np.linalg.det(into_xyz)) > 1e-9)


def rendering_space(name: str) -> tuple[LinearSpace, str]:
    """The space of pictures that UsdRender's renderingColorSpace asks for; and "" or, where that is none, why it is linear Rec.709."""
    if name in _AS_IS:
        return REC709, ""
    space = find_space(name)
    if space is None or space.IsData() or space.GetGamma() != 1.0:
        linear = ", ".join(known for known in _known().split(", ") if known.startswith("lin_"))
        return REC709, f"renderingColorSpace {name!r} is no linear colour space that is known ({linear})"
    name = str(space.GetName())
    into = np.linalg.inv(np.array(space.GetRGBToXYZ(), np.float64)) @ np.array(Gf.ColorSpace(WORKING_SPACE).GetRGBToXYZ(), np.float64)
    corners = _CHROMATICITIES.get(name) or tuple(float(x) for point in space.GetPrimariesAndWhitePoint() for x in point)
    return LinearSpace(name, tuple(tuple(float(x) for x in row) for row in into), corners), ""


def _known() -> str:
    return ", ".join(sorted({getattr(Gf.ColorSpaceNames, name) for name in dir(Gf.ColorSpaceNames) if not name.startswith("_")}))
