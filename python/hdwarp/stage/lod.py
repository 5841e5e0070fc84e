"""stage.lod: which children of a UsdLod root are drawn, and which for what camera."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pxr import Gf, Tf, Usd, UsdGeom

from hdwarp.errors import Diagnostics

try:
    from pxr import UsdLod
except ImportError:  # usd-core before 26
    UsdLod = None

Override = tuple[str, float]  # mode, index: what OverrideAPI.ComputeLODOverride gives
_DRAWN = (UsdGeom.Boundable, UsdGeom.PointInstancer)
_LOOKED_AT = 64  # prims of an item, before it is taken to draw something
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


@dataclass(frozen=True, slots=True)
class LodRoot:
    """A prim with LODRootAPI whose item a camera chooses."""

    path: str
    count: int  # items
    default: int  # the item drawn where no heuristic says anything
    heuristics: tuple[str, ...]  # paths of those that are understood, in order


Place = tuple[str, int, int]  # path of a LodRoot, number of the item that something is in, number of the default one
Choices = dict[str, dict[str, int]]  # camera -> LodRoot -> item, where that is not the default


def drawn_items(
    prim: Usd.Prim,
    names: Sequence[str],
    override: Override | None,
    time: Usd.TimeCode,
    path: str,
    diagnostics: Diagnostics,
    *,
    placed: bool = False,
) -> frozenset[str] | LodRoot:
    """The children among ``names`` that are drawn of a prim with LODRootAPI: what the override says, else the one of lod:default:index; or
    a LodRoot, where cameras choose. ``placed``: by a point instancer, whose instances are many while a choice is one."""
    if not names:
        return frozenset()
    mode, wanted = override or ("noOverride", 0.0)
    if mode == "noLOD":
        return frozenset()
    if mode == "allLOD":
        return frozenset(names)
    heuristics = ()
    if mode != "indexedLOD":
        heuristics = _heuristics(prim, path, diagnostics)
        value = prim.GetAttribute("lod:default:index").Get(time)
        wanted = value if isinstance(value, int) else 0
        if not 0 <= wanted < len(names):
            message = f"lod:default:index is {wanted}, and it has {len(names)} LOD items; the nearest is drawn"
            diagnostics.warning(path, "lod", message)
    item = _nearest(wanted, len(names))
    if heuristics and placed:
        message = "LOD heuristics choose once for all that a point instancer places, so they are not asked; the item of lod:default:index"
        diagnostics.note(path, "lod-heuristics", f"{message} is drawn. An LODOverrideAPI with indexedLOD chooses another")
    elif heuristics:
        return LodRoot(path, len(names), item, heuristics)
    return frozenset((names[item],))


def tell_empty_items(items: Sequence[Usd.Prim], names: Sequence[str], path: str, diagnostics: Diagnostics) -> list[str]:
    """Name the items of the root at ``path`` that draw nothing, and give their paths. Every child is an item with a number
    (UsdLodRootAPI's GetLODItems), heuristics and materials too: easily overlooked."""
    told = []
    for number, (item, name) in enumerate(zip(items, names, strict=True)):
        content = _content_that_draws_nothing(item)
        if content:
            message = f"it is item {number} of the LOD root <{path}>, as every child is one, and holds nothing to draw ({content})"
            diagnostics.warning(f"{path}/{name}", "lod-item", f"{message}; where it is chosen nothing is seen. Move it out of the root")
            told.append(f"{path}/{name}")
    return told


def _content_that_draws_nothing(item: Usd.Prim) -> str:
    """What an item holds where that is nothing to draw; "" where it may be drawn, and for empty groups, which are meant so."""
    types = {}
    for count, prim in enumerate(Usd.PrimRange(item)):
        if count == _LOOKED_AT or prim.IsInstance() or any(prim.IsA(schema) for schema in _DRAWN) or prim.HasAPI(UsdGeom.ModelAPI):
            return ""
        if not prim.IsA(UsdGeom.Imageable) or prim.IsA(UsdGeom.Camera):
            types[prim.GetTypeName()] = None
    types.pop("", None)
    return ", ".join(types)


def _nearest(wanted: float, count: int) -> int:
    """A whole number of an item there is."""
    return int(min(max(math.floor(min(wanted, count) + 0.5), 0), count - 1))


def _heuristics(prim: Usd.Prim, path: str, diagnostics: Diagnostics) -> tuple[str, ...]:
    """Paths of the heuristics that can be asked. Those of other domains are for others."""
    found, stage = [], prim.GetStage()
    for target in prim.GetRelationship("lod:heuristics").GetForwardedTargets():
        heuristic = stage.GetPrimAtPath(target)
        domain = heuristic.GetAttribute("lod:domain").Get() if heuristic and heuristic.HasAttribute("lod:domain") else None
        if not heuristic:
            said = f"lod:heuristics names <{target}>, which does not exist"
        elif heuristic.GetTypeName() not in ("LODDistanceHeuristic", "LODScreenSizeHeuristic"):
            said = f"lod:heuristics names <{target}> of type '{heuristic.GetTypeName()}', which is not known"
        elif not domain:
            said = f"<{target}> has no lod:domain; author imaging"
        elif UsdLod is None:
            said = "this usd-core has no UsdLod"
        else:
            if domain == "imaging":
                found.append(str(target))
            continue
        diagnostics.warning(path, "lod-heuristics", f"{said}. It is not asked; without another the item of lod:default:index is drawn")
    return tuple(found)


def choose(stage: Usd.Stage, roots: Iterable[LodRoot], cameras: Iterable[str], time: Usd.TimeCode) -> Choices:
    """What each of the cameras, by path, chooses by USD's own heuristics: the first that gives a number, fractions rounded."""
    roots, choices, xforms = list(roots), {}, UsdGeom.XformCache(time)
    for path in cameras:
        camera = UsdGeom.Camera(stage.GetPrimAtPath(path))
        if not camera or not roots:
            continue
        frustum = camera.GetCamera(time).frustum
        chosen = choices[path] = {}
        for root in roots:
            prim = stage.GetPrimAtPath(root.path)
            item = _ask(root, prim, frustum, xforms) if prim else root.default
            if item != root.default:
                chosen[root.path] = item
    return choices


def _ask(root: LodRoot, prim: Usd.Prim, frustum: Gf.Frustum, xforms: UsdGeom.XformCache) -> int:
    stage, matrix = prim.GetStage(), xforms.GetLocalToWorldTransform(prim)
    for path in root.heuristics:
        heuristic = stage.GetPrimAtPath(path)
        try:
            if heuristic and heuristic.GetTypeName() == "LODDistanceHeuristic":
                level = UsdLod.DistanceHeuristic(heuristic).ComputeLOD(frustum.GetPosition(), matrix, xforms.GetTime())
            else:
                level = UsdLod.ScreenSizeHeuristic(heuristic).ComputeLOD(frustum, matrix, xforms.GetTime())
        except (Tf.ErrorException, RuntimeError, TypeError):
            continue
        if level is not None and math.isfinite(level) and level >= 0.0:
            return _nearest(level, root.count)
    return root.default
