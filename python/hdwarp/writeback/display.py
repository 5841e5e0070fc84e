"""writeback.display: how linear colour becomes 8 bits: by sRGB's curve, as it is, or as OpenColorIO shows it. Arrays in, arrays out."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

import numpy as np

from hdwarp.errors import ArgumentError
from hdwarp.writeback.pictures import encode_colour, over_black, straight_colour, to_8_bits

MODES = ("sRGB", "disabled", "openColorIO")
_REC709_NAMES = ("lin_rec709_scene", "lin_rec709", "lin_srgb", "Linear Rec.709 (sRGB)", "Utility - Linear - sRGB")
_AP0_FROM_REC709 = np.array(  # ACES2065-1, white points adapted by Bradford's matrix, as in the configs of the Academy
    [[0.439632982, 0.382988698, 0.177378319], [0.089776443, 0.813439429, 0.096784128], [0.017541170, 0.111546553, 0.870912277]], np.float32
)
_BUILT_IN = "ocio://default"


@dataclass(frozen=True, slots=True)
class Display:
    """How linear colour becomes the 8 bits of a PNG or JPEG.

    ``mode``: "sRGB": by its curve, nothing else; "disabled": linear values; "openColorIO": as ``view`` of ``display`` in the OpenColorIO
    ``config`` shows it: a file, or a config that is built in, such as "ocio://default". "" is $OCIO, and the config's default display and
    that display's default view. Raises ArgumentError for another mode, and for names of OpenColorIO's with a mode that reads none.
    """

    mode: str = "sRGB"
    config: str = ""
    display: str = ""
    view: str = ""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ArgumentError(f"display {self.mode!r} is unknown; there are {', '.join(MODES)}")
        for name in ("config", "display", "view"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise ArgumentError(f"Display({name}={value!r}): expected text")
            if value and self.mode != "openColorIO":
                raise ArgumentError(f"Display({name}={value!r}) is read with mode 'openColorIO' only, and the mode is {self.mode!r}")

    def check(self) -> None:
        """Raise ArgumentError, which names what there is, for a config that cannot be read, and a display or view that it has not."""
        if self.mode == "openColorIO":
            self._view()

    def encode(self, colour: np.ndarray, *, opaque: bool = False) -> tuple[np.ndarray, str]:
        """Linear Rec.709 (H, W, 3 or 4), alpha premultiplied, to uint8 with straight alpha, or (``opaque``) over black without; and one
        line that says how to read it."""
        if self.mode == "sRGB":
            image = encode_colour(colour)
            return over_black(image) if opaque else image, "sRGB"
        rgb = colour[..., :3] if opaque else straight_colour(colour)
        if self.mode == "disabled":
            shown, reading = rgb, "linear"
        else:
            view = self._view()
            shown, reading = view.apply(rgb), f"OpenColorIO: view '{view.view}' of display '{view.display}' in {view.config}"
        codes = to_8_bits(shown)
        if not opaque and colour.shape[2] == 4:
            codes = np.concatenate([codes, to_8_bits(colour[..., 3:])], axis=-1)
        return codes, reading

    def _view(self) -> _View:
        return _view_of(self.config or os.environ.get("OCIO", ""), self.display, self.view)


def display_of(given: Display | str | None) -> Display:
    """``given``, or the display of that mode; sRGB for None."""
    if given is None or isinstance(given, str):
        return Display(given or "sRGB")
    if not isinstance(given, Display):
        raise ArgumentError(f"display={given!r}: expected hdwarp.Display(...), or one of {', '.join(MODES)}")
    return given


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """A view that is there, and the colour space by which it takes linear Rec.709."""

    config: str
    display: str
    view: str
    space: str
    matrix: np.ndarray | None  # from Rec.709 into that space

    def apply(self, rgb: np.ndarray) -> np.ndarray:
        """(H, W, 3) float32 as the view shows it. What is not finite is not asked about."""
        import OpenImageIO as oiio

        rgb = np.nan_to_num(np.asarray(rgb, np.float32), nan=0.0, posinf=3.0e38, neginf=0.0)
        if self.matrix is not None:
            rgb = rgb @ self.matrix.T
        if not rgb.size:
            return rgb
        source = oiio.ImageBuf(np.ascontiguousarray(rgb))
        shown = oiio.ImageBufAlgo.ociodisplay(source, self.display, self.view, self.space, unpremult=False, colorconfig=self.config)
        if shown.has_error:
            raise ArgumentError(f"view {self.view!r} of display {self.display!r} in {self.config}: {shown.geterror()}")
        return shown.get_pixels(oiio.FLOAT)


@functools.lru_cache(maxsize=16)
def _view_of(name: str, display: str, view: str) -> _View:
    if not name:
        raise ArgumentError(f"there is no OpenColorIO config: name one ({_BUILT_IN} is built in), or set $OCIO")
    config = _config_of(name)
    display = _one_of(config.getDisplayNames(), display or config.getDefaultDisplayName(), "display", name)
    view = _one_of(config.getViewNames(display), view or config.getDefaultViewName(display), "view", f"display {display!r} of {name}")
    space, matrix = _source_space(config, name)
    return _View(name, display, view, space, matrix)


def _config_of(name: str) -> object:
    import OpenImageIO as oiio

    config = oiio.ColorConfig(name)
    error = config.geterror()
    if error or config.configname() == "built-in":  # what OpenImageIO takes in the place of one that cannot be read
        said = " ".join(str(error).split()) or "OpenImageIO cannot read it"
        raise ArgumentError(f"OpenColorIO config {name!r}: {said}. Name another one ({_BUILT_IN} is built in)")
    return config


def _one_of(known: list[str], name: str | None, what: str, where: str) -> str:
    if name not in known:
        raise ArgumentError(f"{what} {name!r} is not in {where}; there are {', '.join(map(repr, known)) or 'none'}")
    return name


def _source_space(config: object, name: str) -> tuple[str, np.ndarray | None]:
    """The space of ``config`` that is linear Rec.709; else ACES2065-1, and the matrix into it; else the one that it calls scene_linear."""

    def has(space: str | None) -> bool:
        return bool(space) and config.getColorSpaceIndex(space) >= 0  # OpenImageIO gives names of its own that the config has not

    for space in _REC709_NAMES:
        if has(found := config.resolve(space)):
            return found, None
    for role, matrix in (("aces_interchange", _AP0_FROM_REC709), ("scene_linear", None)):
        if has(found := config.getColorSpaceNameByRole(role)):
            return found, matrix
    spaces = ", ".join(config.getColorSpaceNames())
    raise ArgumentError(f"{name} says of no colour space that it is linear Rec.709 (alias lin_rec709_scene), or scene_linear: {spaces}")
