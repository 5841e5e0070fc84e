"""writeback.meta: what the writers tell about an AOV: its kind, unit, meaning, clear value and the table its ids point into."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hdwarp.errors import Error

if TYPE_CHECKING:
    from hdwarp.frame import Frame

DISTANCES = ("distance_to_image_plane", "distance_to_camera", "cameraDepth")
DEPTHS = (*DISTANCES, "depth")
NORMALS = ("normal", "Neye", "Ngeom")
POSITIONS = ("position", "Peye")
_COLOURS = ("color", "rgba8", "albedo", "direct", "emission", "primvars:displayColor")
_PATH_TABLES = {"primId": "prim_paths", "materialId": "material_paths", "bodyId": "body_paths"}


def is_colour(aov: str, data_type: str, array: np.ndarray) -> bool:
    """Colour by name or by the var's type, and with the channels for it."""
    return (aov in _COLOURS or data_type.startswith("color")) and array.ndim == 3 and array.shape[2] in (3, 4)


def pixels(frame: Frame, var: str, aov: str) -> np.ndarray:
    """The AOV's plane with the channels the var asks for."""
    conversion = frame.conversions.get(var)
    return frame[aov] if conversion is None else conversion.apply(frame[aov])


def is_integer(array: np.ndarray) -> bool:
    return array.ndim == 2 and (np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_)


def first_is_colour(frame: Frame) -> bool:
    _, aov, data_type = frame.vars[0]
    return is_colour(aov, data_type, frame[aov])


def unit_and_meaning(aov: str) -> tuple[str, str]:
    """From the AOV registry; empty for a name it does not know."""
    from hdwarp.aovs.registry import aov_spec  # here, for it starts Warp's module: a frame's maker has it loaded already

    try:
        spec = aov_spec(aov)
    except Error:  # arrays a caller put into the frame himself
        return "", ""
    return str(spec.unit or ""), str(spec.meaning or "")


def clear_text(frame: Frame, aov: str) -> str:
    """The clear value as text: "0", "-1", "inf", "0 0 0 1"."""
    return " ".join(f"{value:g}" for value in np.atleast_1d(np.asarray(frame.clear.get(aov, 0), np.float64)).ravel())


def path_table(frame: Frame, aov: str) -> tuple[str, list[str]] | None:
    """Name and content of the table that this AOV's ids index."""
    name = _PATH_TABLES.get(aov)
    return None if name is None else (name, [str(path) for path in getattr(frame, name)])
