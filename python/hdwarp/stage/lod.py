"""stage.lod: which children of a UsdLod root are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pxr import Usd

from hdwarp.errors import Diagnostics

Override = tuple[str, float]  # mode, index: what OverrideAPI.ComputeLODOverride gives
MODES = ("inherited", "noOverride", "indexedLOD", "noLOD", "allLOD")


def read_override(prim: Usd.Prim, time: Usd.TimeCode, path: str, diagnostics: Diagnostics) -> Override | None:
    """What a prim with LODOverrideAPI says itself; None: what is above counts."""
    mode, index = prim.GetAttribute("lod:override:mode").Get(time), prim.GetAttribute("lod:override:index").Get(time)
    if mode not in (*MODES, None):
        diagnostics.warning(path, "lod", f"lod:override:mode is {mode!r}; read as inherited. Author one of {', '.join(MODES)}")
        return None
    if mode in (None, "inherited"):
        return None
    return mode, float(index) if isinstance(index, int | float) and math.isfinite(index) else 0.0


def drawn_items(
    prim: Usd.Prim, names: Sequence[str], override: Override | None, time: Usd.TimeCode, path: str, diagnostics: Diagnostics
) -> frozenset[str]:
    """The children among ``names`` that are drawn of a prim with LODRootAPI: what the override says, else the one of lod:default:index.

    Heuristics choose by camera, and a stage is read for all of them at once: they are named, and the default is drawn.
    """
    if not names:
        return frozenset()
    mode, wanted = override or ("noOverride", 0.0)
    if mode == "noLOD":
        return frozenset()
    if mode == "allLOD":
        return frozenset(names)
    if mode != "indexedLOD":
        if prim.GetRelationship("lod:heuristics").GetTargets():
            message = "LOD heuristics choose by camera and are not supported yet; the item of lod:default:index is drawn"
            diagnostics.note(path, "lod-heuristics", f"{message}. An LODOverrideAPI with indexedLOD chooses another")
        value = prim.GetAttribute("lod:default:index").Get(time)
        wanted = value if isinstance(value, int) else 0
        if not 0 <= wanted < len(names):
            message = f"lod:default:index is {wanted}, and it has {len(names)} LOD items; the nearest is drawn"
            diagnostics.warning(path, "lod", message)
    return frozenset((names[int(min(max(math.floor(wanted + 0.5), 0), len(names) - 1))],))
