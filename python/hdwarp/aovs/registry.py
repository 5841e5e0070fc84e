"""aovs.registry: what a pixel can hold: one row an AOV, and the table that turns UsdRender.Var source names into them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from hdwarp.errors import ArgumentError, NotSupported

if TYPE_CHECKING:
    from hdwarp.aovs.user_aovs import ShadeFunction

INF = math.inf
PRIMVAR_PREFIX = "primvars:"
_VECTORS = {wp.float32: (wp.float32, wp.vec2f, wp.vec3f, wp.vec4f), wp.uint8: (wp.uint8, wp.vec2ub, wp.vec3ub, wp.vec4ub)}


@dataclass(frozen=True, slots=True)
class AovSpec:
    """One AOV: what is stored a pixel, what a pixel that sees nothing holds, and what the numbers mean."""

    name: str
    scalar: type = wp.float32  # Warp scalar type of one component
    components: int = 1  # 0: as wide as the primvar
    clear: float | int | tuple[float, ...] = 0  # of every component, or one a component
    unit: str = ""  # "" none
    meaning: str = ""
    planar_clip_only: bool = False  # for lenses whose clip range is planar
    later: str = ""  # what it waits for; "" it is there
    shade: ShadeFunction | None = None  # of those that users have registered

    @property
    def dtype(self) -> type:
        """Warp type of one pixel."""
        if self.components == 1:
            return self.scalar
        if self.components == 0:
            raise ArgumentError(f"{self.name}: its width is the primvar's; use with_components(n)")
        return _VECTORS[self.scalar][self.components - 1]

    @property
    def numpy_dtype(self) -> np.dtype:
        return np.dtype(wp.dtype_to_numpy(self.scalar))

    def shape(self, *leading: int) -> tuple[int, ...]:
        """Shape of the NumPy array that holds ``leading`` (view, row, column ...) pixels."""
        return (*leading, self.components) if self.components != 1 else leading

    def with_components(self, components: int) -> AovSpec:
        """The same AOV, ``components`` wide: for primvars, whose width the scene decides."""
        if not 1 <= components <= 4:
            raise ArgumentError(f"{self.name}: {components} components; an AOV has 1 to 4")
        return replace(self, components=components)

    def clear_values(self, clear: object = None) -> tuple[float, ...]:
        """One clear value a component; ``clear`` (a number or one number a component) overrides the AOV's own."""
        count = max(self.components, 1)
        clear = self.clear if clear is None else clear
        try:
            values = np.asarray(clear, np.float64).ravel()
        except (TypeError, ValueError):
            raise ArgumentError(f"{self.name}: clear value {clear!r} is no number, nor {count} of them") from None
        if values.size == 1:
            values = np.repeat(values, count)
        if values.size != count:
            raise ArgumentError(f"{self.name}: a clear value of {values.size} numbers; give 1 or {count}")
        if self.scalar is not wp.float32:
            limits = np.iinfo(self.numpy_dtype)
            if not np.all((values == np.floor(values)) & (values >= limits.min) & (values <= limits.max)):
                raise ArgumentError(f"{self.name}: clear value {clear} does not fit {self.numpy_dtype}")
        return tuple(values.tolist())


def _ids(name: str, meaning: str) -> AovSpec:
    return AovSpec(name, wp.int32, clear=-1, meaning=meaning)


_ROWS = (
    AovSpec("color", components=4, meaning="shaded radiance x exposure, premultiplied alpha, linear Rec.709"),
    AovSpec("rgba8", wp.uint8, 4, meaning="color unpremultiplied, sRGB-encoded, rounded half up"),
    AovSpec("albedo", components=4, meaning="base colour, unlit, linear Rec.709"),
    AovSpec("direct", components=3, meaning="light of the lights that the surface reflects x exposure, linear Rec.709"),
    AovSpec("emission", components=3, meaning="light that the surface itself sends out x exposure, linear Rec.709"),
    AovSpec("alpha", meaning="how much of the pixel the surface covers, 0 to 1"),
    AovSpec("roughness", meaning="roughness of the surface, 0 to 1, as UsdPreviewSurface has it"),
    AovSpec(
        "depth",
        clear=1,
        planar_clip_only=True,
        meaning="clip-space depth mapped to [0, 1]: 0 on the near plane, 1 on the far one; planar clip ranges only; Hydra's",
    ),
    AovSpec("cameraDepth", clear=INF, unit="scene unit", meaning="distance along the optical axis; Hydra's name"),
    AovSpec("distance_to_image_plane", clear=INF, unit="m", meaning="distance along the optical axis"),
    AovSpec("distance_to_camera", clear=INF, unit="m", meaning="length of the ray to the hit"),
    AovSpec("normal", components=3, meaning="shading normal, world space, unit length, as authored"),
    AovSpec("Neye", components=3, meaning="shading normal, camera space, unit length, as authored"),
    AovSpec("Ngeom", components=3, meaning="geometric normal, world space, unit length"),
    AovSpec("position", components=3, clear=INF, unit="m", meaning="hit point, world axes, relative to the frame's origin"),
    AovSpec("Peye", components=3, clear=INF, unit="m", meaning="hit point, camera space"),
    _ids("primId", "index into prim_paths"),
    _ids("instanceId", "index into the instancer's protoIndices; 0 for what is not instanced"),
    _ids("elementId", "authored face of a mesh, segment of curves (counted through all of the prim) or point; 0 on shapes"),
    _ids("triangleId", "triangle within its mesh, in authored face order; -1 on other kinds"),
    AovSpec(
        "barycentric",
        components=2,
        meaning="weights of the triangle's first two points; on curves (how far along the segment, 0); on shapes and points (s, t)",
    ),
    _ids("materialId", "index into material_paths; -1 also for none"),
    _ids("bodyId", "index into body_paths; -1 also for none"),
    _ids("instanceRow", "raw row of scene.instances"),
    _ids("worldId", "world; -1 also for global geometry"),
    AovSpec("semantic_segmentation", wp.int32, meaning="label id; 1 unlabelled", later="labels"),
    AovSpec("instance_segmentation", wp.int32, meaning="object id; 1 unlabelled", later="labels"),
    AovSpec("instance_id_segmentation", wp.int32, meaning="leaf prim id; 1 unlabelled", later="labels"),
    AovSpec("motion", components=2, unit="pixel", meaning="pixel position now minus in the previous frame; x right, y down"),
)
AOVS: dict[str, AovSpec] = {row.name: row for row in _ROWS}
"""By name: the rows above, and what `user_aovs.register_aov` adds."""

DATA_TYPE_NAMES = ("motion_vectors",)
"""Names that sensors give planes beside these: no AOV may have them."""


def aov_spec(name: str, *, components: int | None = None) -> AovSpec:
    """The row of AOV ``name``, `primvars:NAME` included; ``components`` settles a primvar's width (0 in the row until then).

    Raises ArgumentError for an unknown name, NotSupported for one that this version does not carry out yet.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"an AOV is named by a string, not {name!r}; there are {_available()}")
    if name.startswith(PRIMVAR_PREFIX) and len(name) > len(PRIMVAR_PREFIX):
        spec = AovSpec(name, components=0, meaning=f"primvar {name[len(PRIMVAR_PREFIX) :]} at the hit")
        return spec if components is None else spec.with_components(components)
    if name.startswith(("lpe:", "shader:")):
        raise NotSupported(f"AOV '{name}': {name.split(':')[0]} expressions are not carried out yet")
    spec = AOVS.get(name)
    if spec is None:
        raise ArgumentError(f"no AOV is named '{name}'{_suggestion(name)}; there are {_available()}")
    if spec.later:
        raise NotSupported(f"AOV '{name}' ({spec.meaning}) is part of hdWarp's interface, but this version has no {spec.later} yet")
    return spec


def primvar_name(aov: str) -> str | None:
    """NAME of ``primvars:NAME``, None for other AOVs."""
    return aov[len(PRIMVAR_PREFIX) :] if aov.startswith(PRIMVAR_PREFIX) else None


def _available() -> str:
    return ", ".join(sorted((row.name for row in AOVS.values() if not row.later), key=str.lower)) + " and primvars:NAME"


def _suggestion(name: str) -> str:
    lower = {known.lower(): known for known in (*AOVS, *ALIASES)}
    close = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)
    close = [lower[match] for match in close]
    return f"; did you mean {' or '.join(close)}?" if close else ""


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a render var's pixels differ from its AOV's: channels picked or added, and the precision written."""

    channels: tuple[int | None, ...] | None = None  # source channel of each channel written, None a channel of zeros; None: as they are
    precision: str = ""  # "half", "float", "uint8", "int32": as written to files that know the type; "" the AOV's own
    turned: bool = False  # the other way round: values are 0 minus the AOV's

    def apply(self, pixels: np.ndarray) -> np.ndarray:
        """Channels picked, and turned; values are as they were else (precision is for the writer). ``pixels``: (..., H, W) or
        (..., H, W, C)."""
        pixels = 0.0 - pixels if self.turned else pixels
        if self.channels is None:
            return pixels
        picked = [np.zeros(pixels.shape[:-1], pixels.dtype) if c is None else pixels[..., c] for c in self.channels]
        return picked[0] if len(picked) == 1 else np.stack(picked, axis=-1)


_XYZ0 = (0, 1, 2, None)
_TARGET = Conversion((0, 1, None, None), turned=True)  # x left and y up count as positive: it points to where the point was
_HALF = Conversion(precision="half")

# Source names in the field -> AOV and what differs. Own names need no row. Units are always the same on both sides.
ALIASES: dict[str, tuple[str, Conversion]] = {
    # Hydra, RenderMan and Solaris
    "Ci": ("color", Conversion()),
    "ci": ("color", Conversion()),
    "C": ("color", Conversion()),
    "beauty": ("color", Conversion()),
    "rgb": ("color", Conversion()),
    "rgba": ("color", Conversion()),
    "RGBA": ("color", Conversion()),
    "a": ("color", Conversion((3,))),
    "alpha": ("color", Conversion((3,))),
    "Z": ("cameraDepth", Conversion()),
    "z": ("cameraDepth", Conversion()),
    "N": ("normal", Conversion()),
    "Nn": ("normal", Conversion()),
    "Ng": ("Ngeom", Conversion()),
    "Ngn": ("Ngeom", Conversion()),
    "P": ("position", Conversion()),
    "id": ("primId", Conversion()),
    "id2": ("instanceId", Conversion()),
    "faceindex": ("elementId", Conversion()),
    "st": ("primvars:st", Conversion()),
    # Omniverse sensors
    "LdrColor": ("rgba8", Conversion()),
    "HdrColor": ("color", _HALF),
    "NormalSD": ("normal", Conversion(_XYZ0)),
    "DistanceToCameraSD": ("distance_to_camera", Conversion()),
    "DistanceToImagePlaneSD": ("distance_to_image_plane", Conversion()),
    "TargetMotionSD": ("motion", _TARGET),
}

_NAME_PARAMETERS = ("driver:parameters:aov:name", "ri:driver:parameters:aov:name", "aov:name")
_FORMAT_PARAMETERS = ("driver:parameters:aov:format", "ri:driver:parameters:aov:format", "aov:format")


def resolve_var(
    source_name: str = "",
    source_type: str = "raw",
    data_type: str | None = None,
    var_name: str = "",
    parameters: Mapping[str, object] | None = None,
) -> tuple[str, Conversion]:
    """(AOV name, conversion) of a UsdRender.Var.

    ``data_type``: its dataType where authored, else None (colour is then written in half precision). ``parameters``: its namespaced
    settings, of which ``driver:parameters:aov:name`` stands in for an empty sourceName, and ``...:format`` for an unauthored dataType.
    The AOV name is known and available, else `aov_spec`'s errors; whether a primvar exists is the scene's to say.
    """
    parameters = parameters or {}
    source = source_name or channel_name(var_name, parameters)
    if not source:
        raise ArgumentError("a render var without sourceName and name; author sourceName")
    aov, conversion = _source(source, source_type or "raw")
    aov_spec(aov)
    authored = data_type or _first(parameters, _FORMAT_PARAMETERS)
    return aov, replace(conversion, precision=_precision(aov, conversion, authored))


def channel_name(var_name: str, parameters: Mapping[str, object] | None = None) -> str:
    """The name a var's channels have in files: ``driver:parameters:aov:name`` where authored, else the prim's name."""
    return _first(parameters or {}, _NAME_PARAMETERS) or var_name


def _source(source: str, source_type: str) -> tuple[str, Conversion]:
    if source_type == "lpe" or source.startswith("lpe:"):
        raise NotSupported(f"light path expressions (render var source '{source}') are not carried out yet")
    if source_type == "primvar":
        return source if source.startswith(PRIMVAR_PREFIX) else PRIMVAR_PREFIX + source, Conversion()
    if source_type not in ("raw", "intrinsic"):
        raise ArgumentError(f"render var '{source}': sourceType '{source_type}'; there are raw, intrinsic, primvar and lpe")
    return ALIASES.get(source, (source, Conversion()))


def _precision(aov: str, conversion: Conversion, authored: str) -> str:
    """Colour unauthored is half; what is authored wins; integers are what they are."""
    spec = AOVS.get(aov)
    if spec is not None and spec.scalar is not wp.float32:
        return "int32" if spec.scalar is wp.int32 else "uint8"
    lower = authored.lower()
    if lower:
        words = lower.rstrip("1234")
        return "half" if "half" in lower or words in ("h", "color3h", "color4h") or lower.endswith(("3h", "4h", "2h")) else "float"
    if conversion.precision:
        return conversion.precision
    return "half" if aov in ("color", "albedo", "direct", "emission") else "float"


def _first(parameters: Mapping[str, object], names: tuple[str, ...]) -> str:
    """The first of the parameters that is there and is text: numbers and arrays name nothing (`unusable_parameters` tells them)."""
    return next((str(parameters[name]) for name in names if isinstance(parameters.get(name), str) and parameters[name]), "")


def unusable_parameters(parameters: Mapping[str, object]) -> list[str]:
    """Names of driver parameters that are meant for `resolve_var` and `channel_name` and hold no text."""
    return [name for name in (*_NAME_PARAMETERS, *_FORMAT_PARAMETERS) if not isinstance(parameters.get(name, ""), str)]
