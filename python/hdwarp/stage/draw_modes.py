"""stage.draw_modes: models that are drawn as their bounds, their origin or cards -> the mesh that stands in for them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from pxr import Tf, Usd, UsdGeom

from hdwarp.errors import Diagnostics
from hdwarp.stage.cards import card_geometry, read_cards
from hdwarp.stage.images import Images
from hdwarp.stage.looks import Material
from hdwarp.stage.meshes import RawMesh
from hdwarp.stage.open import plain_text
from hdwarp.stage.transforms import LARGEST

MODES = ("origin", "bounds", "cards", "default", "inherited")
DRAWN = MODES[:3]
_THIN = 0.01  # thickness of an edge, by the diagonal of the box or the length of an axis
_PURPOSES = ("default", "proxy", "render")  # whose geometry is in the box, as the schema says

# Quads of a box whose corners are numbered with x in bit 0, y in bit 1, z in bit 2; the front is outside.
_BOX = np.array(((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6)), np.int32)
_CORNERS = np.array([[k & 1, k >> 1 & 1, k >> 2 & 1] for k in range(8)], float)
_DEEPEST = 256  # instancers that place one another


def applies(prim: Usd.Prim) -> bool:
    """Whether a draw mode that is not default replaces a prim and all below it: models that say model:applyDrawMode, and components that
    do not say no."""
    if not prim.IsModel() or prim.IsPseudoRoot():
        return False
    attribute = prim.GetAttribute("model:applyDrawMode")
    applied = attribute.Get() if attribute and attribute.HasAuthoredValue() else None
    return prim.IsComponent() if applied is None else applied is True


class Boxes:
    """Boxes of models, computed by USD: extentsHint where it is authored."""

    def __init__(self, time: Usd.TimeCode) -> None:
        self._time, self._caches = time, {}

    def of(self, prim: Usd.Prim) -> np.ndarray | None:
        """(2, 3) float64 lowest and highest corner in the space of ``prim``; None: it holds nothing. As in Hydra the box is that of the
        earliest time, unless the prim's own extent or extentsHint moves."""
        moves = any(prim.GetAttribute(name).ValueMightBeTimeVarying() for name in ("extent", "extentsHint") if prim.HasAttribute(name))
        time = self._time if moves else Usd.TimeCode.EarliestTime()
        if time not in self._caches:
            self._caches[time] = UsdGeom.BBoxCache(time, list(_PURPOSES), True)
        box = self._caches[time].ComputeUntransformedBound(prim).ComputeAlignedRange()
        return None if box.IsEmpty() else np.array((box.GetMin(), box.GetMax()))


def _placing_itself(prim: Usd.Prim) -> str:
    """Path of a point instancer at or below ``prim``, or in what is placed there, that places itself or lies too deep; "" for none. USD's
    own boxes of such recurse, of loops until the process dies."""
    stage, under_way, done = prim.GetStage(), set(), set()

    def visit(root: Usd.Prim) -> str:
        for found in Usd.PrimRange(root, Usd.TraverseInstanceProxies(Usd.PrimAllPrimsPredicate)):
            if not found.IsA(UsdGeom.PointInstancer) or found.GetPath() in done:
                continue
            if found.GetPath() in under_way or len(under_way) > _DEEPEST:
                return str(found.GetPath())
            under_way.add(found.GetPath())
            for target in UsdGeom.PointInstancer(found).GetPrototypesRel().GetForwardedTargets():
                prototype = stage.GetPrimAtPath(target)
                loop = visit(prototype) if prototype else ""
                if loop:
                    return loop
            under_way.remove(found.GetPath())
            done.add(found.GetPath())
        return ""

    return visit(prim)


@dataclass(slots=True, eq=False)
class StandIn:
    """What is drawn for a model: elements of the mesh are edges of the box, axes, or cards."""

    raw: RawMesh
    color: np.ndarray  # (3,) float32 linear, of what has no picture
    materials: list[Material]  # of the mesh's face subsets: cards with pictures


def read_stand_in(prim: Usd.Prim, mode: str, boxes: Boxes, images: Images, path: str, diagnostics: Diagnostics) -> StandIn | None:
    """What is drawn for a model in ``mode``, one of `DRAWN`; None, with a diagnostic, where it has no box or no card."""
    box, materials = None, []
    if mode == "bounds" or (mode == "cards" and card_geometry(prim) != "fromTexture"):
        box = _box(prim, mode, boxes, path, diagnostics)
        if box is None:
            return None
    if mode == "cards":
        cards = read_cards(prim, box, images, path, diagnostics)
        if cards is None:
            return None
        raw, materials = cards
    else:
        raw = _origin() if mode == "origin" else _bounds(box)
    value = prim.GetAttribute("model:drawModeColor").Get() if prim.HasAttribute("model:drawModeColor") else None
    color = np.asarray((0.18, 0.18, 0.18) if value is None else value, np.float32)
    if color.shape != (3,) or not np.isfinite(color).all():
        diagnostics.warning(path, "draw-mode", f"model:drawModeColor is {value}, no colour; drawn in 0.18 grey")
        color = np.full(3, 0.18, np.float32)
    return StandIn(raw, color, materials)


def _box(prim: Usd.Prim, mode: str, boxes: Boxes, path: str, diagnostics: Diagnostics) -> np.ndarray | None:
    """(2, 3), of the model; None, with a diagnostic, where USD has none."""
    loop = _placing_itself(prim)
    if loop:
        message = f"<{loop}> in it is among its own prototypes, or placed by more than {_DEEPEST} others one in another, so that"
        message = f"{message} the model has no box; nothing is drawn for it"
        diagnostics.error(path, "draw-mode", f"{message}. Mend the instancer's prototypes")
        return None
    try:
        box = boxes.of(prim)
    except Tf.ErrorException as error:
        diagnostics.error(path, "draw-mode", f"USD computes no box of the model ({plain_text(error)}); nothing is drawn for it")
        return None
    if box is not None and (np.abs(box) <= LARGEST).all():
        return box
    said = "holds nothing with an extent" if box is None else "has an extent that is not finite"
    message = f"model:drawMode is {mode}, and the model {said}; nothing is drawn for it. Author extentsHint"
    diagnostics.warning(path, "draw-mode", message)
    return None


def _solids(lows: np.ndarray, highs: np.ndarray) -> RawMesh:
    """Boxes from ``lows`` to ``highs`` (n, 3), an element each."""
    points = (lows[:, None] + _CORNERS * (highs - lows)[:, None]).reshape(-1, 3)
    quads = (_BOX[None] + 8 * np.arange(len(lows), dtype=np.int32)[:, None, None]).reshape(-1, 4)
    raw = _quads(points, quads)
    raw.element, raw.element_count = np.repeat(np.arange(len(lows), dtype=np.int32), len(_BOX)), len(lows)
    return raw


def _quads(points: np.ndarray, quads: np.ndarray) -> RawMesh:
    counts = np.full(len(quads), 4, np.int32)
    return RawMesh(points.astype(np.float32), counts, quads.astype(np.int32).reshape(-1), None, False, "none", None, {}, None, [])


def _origin() -> RawMesh:
    """Three bars from the origin, 1 unit long each along its axis."""
    half = 0.5 * _THIN
    lows, highs = np.full((3, 3), -half), np.full((3, 3), half)
    highs[range(3), range(3)] = 1.0
    return _solids(lows, highs)


def _bounds(box: np.ndarray) -> RawMesh:
    """Twelve bars along the edges of the box, about them: first those along x, then y, then z."""
    size = float(np.linalg.norm(box[1] - box[0])) or 1.0
    half = 0.5 * _THIN * size
    lows, highs = [], []
    for axis in range(3):
        for sides in itertools.product((0, 1), repeat=2):
            ends = box.copy()
            others = [k for k in range(3) if k != axis]
            ends[:, others] = box[list(sides), others]
            lows.append(ends[0] - half)
            highs.append(ends[1] + half)
    return _solids(np.array(lows), np.array(highs))
