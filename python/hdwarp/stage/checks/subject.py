"""stage.checks.subject: what the checks look at: a stage, what the adapter read of it, and one walk over its prims that all share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pxr import Usd, UsdGeom, UsdShade

from hdwarp.errors import Diagnostic
from hdwarp.stage.checks.boxes import Boxes, boxes_of
from hdwarp.stage.columns import Camera, StageColumns
from hdwarp.stage.reader import read_stage
from hdwarp.stage.render_spec import RenderPrims, find_render_prims
from hdwarp.stage.spec import ImageSpec

LABELS = "semantics:labels:"
_LABELS_API = "SemanticsLabelsAPI:"
BINDING = "material:binding"


@dataclass(frozen=True, slots=True)
class Picture:
    """One image that the stage asks for: paths of its product ("" made up) and camera ("" framed view), its pixels, and its planes."""

    product: str
    camera: str
    image: ImageSpec
    vars: tuple[tuple[str, str, str], ...] = ()  # (path of the RenderVar, its name, the AOV that fills it)


@dataclass(slots=True)
class PrimIndex:
    """Prims by what the checks ask for, in the order of the walk; what native instances share once, by the paths of its first instance."""

    all: list[Usd.Prim] = field(default_factory=list)
    geometry: list[str] = field(default_factory=list)  # paths of gprims and point instancers, drawn or not
    materials: list[Usd.Prim] = field(default_factory=list)
    bound: list[tuple[Usd.Prim, tuple[str, ...]]] = field(default_factory=list)  # with the names of their binding properties
    labelled: list[tuple[Usd.Prim, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)  # taxonomies applied, authored
    assets: list[tuple[Usd.Prim, tuple[str, ...]]] = field(default_factory=list)  # with names of properties that may hold asset paths
    arcs: list[Usd.Prim] = field(default_factory=list)  # with references or payloads
    has_unknown_types: bool = False  # which may be geometry to others


class Subject:
    """Everything a check may look at. Costly parts are made when the first check asks for them."""

    def __init__(
        self,
        stage: Usd.Stage,
        time: Usd.TimeCode,
        columns: StageColumns,
        pictures: Sequence[Picture] = (),
        told: Sequence[Diagnostic] = (),
        purposes: Sequence[str] = ("default", "render"),
    ) -> None:
        """``columns``: the stage as read at ``time`` with ``purposes``; ``told``: what opening, planning and reading it had to tell."""
        self.purposes = tuple(purposes)
        self.stage, self.time, self.columns, self.pictures, self.told = stage, time, columns, tuple(pictures), tuple(told)

    @cached_property
    def unit(self) -> float:
        """Metres per scene unit, as read."""
        return self.columns.metres_per_unit

    @cached_property
    def cameras(self) -> dict[str, Camera]:
        return {camera.path: camera for camera in self.columns.cameras}

    @cached_property
    def boxes(self) -> Boxes:
        return boxes_of(self.columns)

    @cached_property
    def draws_everything(self) -> bool:
        """Whether what is drawn is all the geometry there is: what is not says nothing about where it is."""
        return not self.prims.has_unknown_types and not any(item.code == "unsupported-type" for item in self.told)

    @cached_property
    def render_prims(self) -> RenderPrims:
        return find_render_prims(self.stage)

    @cached_property
    def prims(self) -> PrimIndex:
        index = PrimIndex()
        kinds: dict[str, tuple[bool, bool]] = {}  # by prim type: IsA is dearer than a lookup
        for prim in each_prim(self.stage):
            _enter(index, prim, kinds)
        return index

    def at_other_times(self) -> Iterator[StageColumns]:
        """The stage as read in the middle and at the end of its time range, where it has one."""
        first, last = self.stage.GetStartTimeCode(), self.stage.GetEndTimeCode()
        if self.stage.HasAuthoredTimeCodeRange() and last > first:
            for code in (0.5 * (first + last), last):
                yield read_stage(self.stage, Usd.TimeCode(code), purposes=self.purposes)

    def targets(self, prim: Usd.Prim, name: str) -> list[str] | None:
        """Targets of a relationship as authored; None where an attribute has its name."""
        relationship = prim.GetRelationship(name)
        return None if prim.GetAttribute(name) else [str(path) for path in relationship.GetTargets()] if relationship else []


def each_prim(stage: Usd.Stage) -> Iterator[Usd.Prim]:
    """Every populated prim, the contents of a native prototype once: as its first instance's proxies."""
    seen: set[str] = set()
    prims = iter(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()))
    for prim in prims:
        if prim.IsInstance():
            prototype = str(prim.GetPrototype().GetPath())
            if prototype in seen:
                prims.PruneChildren()
            seen.add(prototype)
        yield prim


def _enter(index: PrimIndex, prim: Usd.Prim, kinds: dict[str, tuple[bool, bool]]) -> None:
    index.all.append(prim)
    name = prim.GetTypeName()
    kind = kinds.get(name)
    if kind is None:
        drawn = prim.IsA(UsdGeom.Gprim) or prim.IsA(UsdGeom.PointInstancer)
        kind = kinds[name] = (drawn, prim.IsA(UsdShade.Material))
        if name and not prim.GetPrimTypeInfo().GetSchemaTypeName():
            index.has_unknown_types = True
    if kind[0]:
        index.geometry.append(str(prim.GetPath()))
    if kind[1]:
        index.materials.append(prim)
    if prim.HasAuthoredReferences() or prim.HasAuthoredPayloads():
        index.arcs.append(prim)
    names = prim.GetAuthoredPropertyNames()
    bindings = tuple(item for item in names if item.startswith(BINDING))
    if bindings:
        index.bound.append((prim, bindings))
    files = tuple(item for item in names if item.startswith(("inputs:", "model:cardTexture")))
    if files:
        index.assets.append((prim, files))
    authored = tuple(item.removeprefix(LABELS) for item in names if item.startswith(LABELS))
    applied = tuple(item.removeprefix(_LABELS_API) for item in prim.GetAppliedSchemas() if item.startswith(_LABELS_API))
    if authored or applied:
        index.labelled.append((prim, applied, authored))
