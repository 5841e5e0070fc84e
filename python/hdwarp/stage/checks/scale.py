"""stage.checks.scale: units and axes: what metadata leaves unsaid, layers that count differently, and sizes nothing has."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from pxr import Sdf, Usd, UsdGeom

from hdwarp.stage.checks.findings import NOTE, WARNING, Check, Finding, Rule
from hdwarp.stage.checks.lenses import number
from hdwarp.stage.checks.subject import Subject

NO_METERS_PER_UNIT = Rule("stage-meters-per-unit", WARNING, "metersPerUnit is not authored: depths in metres rest on USD's fallback")
NO_UP_AXIS = Rule("stage-up-axis", WARNING, "upAxis is not authored")
NO_DEFAULT_PRIM = Rule("stage-default-prim", NOTE, "defaultPrim is not authored, or names no prim: references to the stage bring nothing")
LAYER_UNITS = Rule("layer-meters-per-unit", WARNING, "a layer counts in another unit than the stage, and no scale makes up for it")
SCENE_SIZE = Rule("scene-size", WARNING, "everything together is under a millimetre or over a thousand kilometres large")

_SMALLEST, _LARGEST = 1e-3, 1e6  # metres
_UNITS = {"millimetres": 0.001, "centimetres": 0.01, "metres": 1.0, "kilometres": 1000.0}
_USUAL = (0.05, 5000.0)  # metres of most scenes
_SAME = 1e-3  # units that differ by less are one


def meters_per_unit(subject: Subject) -> Iterator[Finding]:
    if not UsdGeom.StageHasAuthoredMetersPerUnit(subject.stage):
        size = subject.boxes.size
        seen = f"; the scene is then {number(size)} m large" if size > 0.0 else ""
        yield NO_METERS_PER_UNIT.broken(
            "/",
            f"metersPerUnit is not authored and read as {number(subject.unit)}{seen}",
            "author metersPerUnit = 0.01, or 1 if metres are meant",
        )


def up_axis(subject: Subject) -> Iterator[Finding]:
    if not subject.stage.HasAuthoredMetadata("upAxis"):
        yield NO_UP_AXIS.broken(
            "/",
            f"upAxis is not authored and read as {subject.columns.up_axis}",
            f'author upAxis = "{subject.columns.up_axis}", or the other one',
        )


def default_prim(subject: Subject) -> Iterator[Finding]:
    stage = subject.stage
    if stage.GetDefaultPrim():
        return
    name = stage.GetRootLayer().defaultPrim
    roots = [prim.GetName() for prim in stage.GetPseudoRoot().GetChildren()]
    said = f"defaultPrim '{name}' names no prim" if name else "defaultPrim is not authored"
    cure = f'author defaultPrim = "{roots[0]}"' if len(roots) == 1 else "put all below one root prim, and name it as defaultPrim"
    yield NO_DEFAULT_PRIM.broken("/", f"{said}: references to this stage without a prim path bring nothing", cure)


def scene_size(subject: Subject) -> Iterator[Finding]:
    size = subject.boxes.size
    if not subject.boxes.complete or size == 0.0 or _SMALLEST <= size <= _LARGEST:
        return
    usual = [(name, unit) for name, unit in _UNITS.items() if _USUAL[0] <= size / subject.unit * unit <= _USUAL[1]]
    if usual:
        near = min(usual, key=lambda each: abs(math.log(size / subject.unit * each[1] / 2.0)))
        cure = f"author metersPerUnit = {number(near[1])} if it counts in {near[0]} ({number(size / subject.unit * near[1])} m)"
    else:
        cure = "author points, xformOps or metersPerUnit so that it has its true size"
    yield SCENE_SIZE.broken("/", f"everything together is {number(size)} m large (metersPerUnit {number(subject.unit)})", cure)


def layer_units(subject: Subject) -> Iterator[Finding]:
    """Sublayers and referenced layers: USD converts neither. A prim with any scale upon it is taken to have been seen to."""
    stage, unit = subject.stage, subject.unit
    for layer in stage.GetLayerStack(includeSessionLayers=False):
        own = _unit_of(layer)
        if layer != stage.GetRootLayer() and own is not None and _differs(own, unit):
            yield LAYER_UNITS.broken(
                "/",
                f"the sublayer @{layer.identifier}@ counts in {number(own)} m and the stage in {number(unit)} m; USD does not convert",
                f"author its values in units of {number(unit)} m and metersPerUnit = {number(unit)} in it, or reference it below a scale of"
                f" {number(own / unit)}",
            )
    if not any((own := _unit_of(layer)) is not None and _differs(own, unit) for layer in stage.GetUsedLayers(includeClipLayers=False)):
        return
    xforms = UsdGeom.XformCache(subject.time)
    found: dict[tuple[str, float], list[str]] = defaultdict(list)
    for prim in subject.prims.arcs:
        for layer in _brought(prim):
            own = _unit_of(layer)
            if own is not None and _differs(own, unit) and not _is_scaled(xforms, prim):
                found[layer.identifier, own].append(str(prim.GetPath()))
    for (identifier, own), paths in found.items():
        yield LAYER_UNITS.broken(
            paths,
            f"@{identifier}@ counts in {number(own)} m and the stage in {number(unit)} m; USD does not convert, and no xformOp scales it",
            f"author xformOp:scale = ({', '.join([number(own / unit)] * 3)}) on the prim that brings it",
        )


def _unit_of(layer: Sdf.Layer) -> float | None:
    root = layer.pseudoRoot
    value = root.GetInfo("metersPerUnit") if root.HasInfo("metersPerUnit") else None
    return float(value) if isinstance(value, int | float) and 0.0 < value < math.inf else None


def _differs(one: float, other: float) -> bool:
    return abs(one / other - 1.0) > _SAME


def _brought(prim: Usd.Prim) -> list[Sdf.Layer]:
    """Root layers that references and payloads on a prim bring."""
    query = Usd.PrimCompositionQuery.GetDirectReferences(prim)
    filtered = query.filter
    filtered.arcTypeFilter = Usd.PrimCompositionQuery.ArcTypeFilter.ReferenceOrPayload
    query.filter = filtered
    layers = (arc.GetTargetLayer() for arc in query.GetCompositionArcs())
    return list(dict.fromkeys(layer for layer in layers if layer))


def _is_scaled(xforms: UsdGeom.XformCache, prim: Usd.Prim) -> bool:
    linear = np.array(xforms.GetLocalToWorldTransform(prim))[:3, :3]
    return bool(np.abs(np.linalg.norm(linear, axis=1) - 1.0).max() > _SAME)


CHECKS = (
    Check(meters_per_unit, (NO_METERS_PER_UNIT,)),
    Check(up_axis, (NO_UP_AXIS,)),
    Check(default_prim, (NO_DEFAULT_PRIM,)),
    Check(scene_size, (SCENE_SIZE,)),
    Check(layer_units, (LAYER_UNITS,)),
)
