"""stage.reader: a stage as it was last read, by path. Reads all of it once, later only what edits and time have changed.

The walk of a subtree gives the same records whenever it is made, so that what is read anew in parts is what a fresh reading gives.
What a walk found is kept by the path it depends on (a gprim's own, or its outermost point instancer's), arrays of geometry beside it,
so that what merely moves is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdUtils

from hdwarp.errors import ArgumentError, Diagnostic, Diagnostics, NotSupported, OwnedDiagnostics, SharedDiagnostic, StageError
from hdwarp.garbage import no_collecting
from hdwarp.stage import gather
from hdwarp.stage.changes import StageEdits
from hdwarp.stage.columns import Body, Camera, Gprim, GprimKey, Site, StageChanges, StageColumns
from hdwarp.stage.dirty import DirtyParts, dirty_parts
from hdwarp.stage.expansion import FREE_PRIMS, MOST_PRIMS, Sizes
from hdwarp.stage.facts import FactReader
from hdwarp.stage.layer_files import LayerFiles
from hdwarp.stage.lights import gather_lights
from hdwarp.stage.links import MOST_SETS, left_out
from hdwarp.stage.lod import LodRoot
from hdwarp.stage.looks import Light, Material
from hdwarp.stage.meshes import MeshEntry
from hdwarp.stage.open import UNREADABLE, metres_per_unit, plain_text, population_mask, report_composition, report_messages
from hdwarp.stage.path_map import PathMap
from hdwarp.stage.prim_records import PrimRecords
from hdwarp.stage.skinning import Skinning
from hdwarp.stage.spec import PURPOSES
from hdwarp.stage.traverse import walk_stage, walk_subtree
from hdwarp.stage.used_materials import UsedMaterials
from hdwarp.stage.varying import VaryingAttributes
from hdwarp.stage.walk import InstancerEntry, Walk

_PLACED = ("bodies", "cameras", "sites", "lights")  # tables of what a prim is, one record by path
COMPLEXITIES = ("low", "medium", "high", "veryhigh")


@dataclass(slots=True)
class _Metrics:
    metres_per_unit: float
    up_axis: str


class StageReader:
    """Keeps what it has read of one stage. `read` and `update` say what is new since the call before."""

    def __init__(
        self,
        stage: Usd.Stage,
        *,
        purposes: Sequence[str] = ("default", "render"),
        complexity: str = "low",
        material_purposes: Sequence[str] = ("full", ""),
        mask: Sequence[str] | Usd.StagePopulationMask | None = None,
        collisions: bool = False,
        draw_modes: bool = True,
    ) -> None:
        """``purposes``: what is drawn. ``material_purposes``: of bindings, in order of preference, "" being all-purpose. ``mask``: paths
        to restrict the reading to. ``collisions``: read colliders too that are invisible or of a purpose that is not drawn. Cameras,
        bodies, sites and lights are read whatever their visibility and purpose."""
        if complexity not in COMPLEXITIES:
            raise ArgumentError(f"complexity is {complexity!r}; known: {', '.join(COMPLEXITIES)}")
        if complexity != "low":
            raise NotSupported(
                f"complexity={complexity!r}: refined subdivision surfaces are not supported yet; 'low' draws the control cage"
            )
        unknown = [purpose for purpose in purposes if purpose not in PURPOSES]
        if unknown:
            raise ArgumentError(f"purposes: {', '.join(map(repr, unknown))} unknown; known: {', '.join(PURPOSES)}")
        self.stage = stage
        self.time: Usd.TimeCode | None = None  # None: nothing has been read
        self._purposes = frozenset(purposes)
        self._mask = None if mask is None else population_mask(mask)
        self._collisions, self._draw_modes = collisions, draw_modes
        self._varying = VaryingAttributes(stage)
        self._layer_files = LayerFiles(stage)
        self._lost_files: list[str] = []  # as told
        self._materials = UsedMaterials(stage, material_purposes)
        self._forget()

    def _forget(self) -> None:
        self._metrics = _Metrics(1.0, "Y")
        self.gprims: dict[GprimKey, Gprim] = {}
        self.bodies: PathMap[Body] = PathMap()
        self.cameras: PathMap[Camera] = PathMap()
        self.sites: PathMap[Site] = PathMap()
        self.lights: PathMap[Light] = PathMap()
        self.lods: PathMap[LodRoot] = PathMap()  # roots whose items cameras choose
        self._records = PrimRecords()
        self._materials.forget()
        self._geometry: PathMap[MeshEntry | InstancerEntry] = PathMap()
        self._prototypes: set[str] = set()
        self._stage_told = Diagnostics()
        self._is_spent = False  # instances are left out because there are too many: which ones, only a whole reading can tell

    def forget(self) -> None:
        """Read everything at the next `update`."""
        self.time = None

    @property
    def collisions(self) -> bool:
        """Whether colliders are read that are not drawn. Another value has everything read at the next `update`."""
        return self._collisions

    @collisions.setter
    def collisions(self, value: bool) -> None:
        if value != self._collisions:
            self._collisions = value
            self.forget()

    # -- what is there ----------------------------------------------------------------------------------------------------

    @property
    def materials(self) -> dict[str, Material]:
        return self._materials.found

    @property
    def metres_per_unit(self) -> float:
        return self._metrics.metres_per_unit

    @property
    def up_axis(self) -> str:
        return self._metrics.up_axis

    @property
    def time_code(self) -> float | None:
        """Time code read at; None is the default time, or each attribute's earliest where no start is authored."""
        return None if self.time is None or self.time.IsDefault() or self.time.IsEarliestTime() else float(self.time.GetValue())

    @property
    def light_paths(self) -> list[str]:
        return sorted(self.lights)

    @property
    def prim_counts(self) -> dict[str, int]:
        """Imageable prims seen, by type name, drawn or not."""
        return dict(sorted((name, count) for name, count in self._records.type_counts.items() if count))

    def diagnostics(self) -> list[Diagnostic]:
        """What there is to tell about the stage as it was read, each thing once: of the whole first, then in path order."""
        told = dict.fromkeys(self._stage_told)
        shared: dict[str, Diagnostic] = {}  # of all instances that have something, the first tells it
        for path in sorted(self._records.told):
            for item in self._records.told[path]:
                if isinstance(item, SharedDiagnostic):
                    item = shared.setdefault(item.source, Diagnostic(item.path, item.code, item.severity, item.message))
                told.setdefault(item)
        for path in sorted(self._materials.told):
            told.update(dict.fromkeys(self._materials.told[path]))
        if out := left_out(self.lights.values()):
            log = Diagnostics()
            message = f"lights of the stage are linked to more than {MOST_SETS} different sets of prims; this one's counts as everything"
            log.warning(out[0], "light-link", f"{message}, as does that of {len(out) - 1} more" if len(out) > 1 else message)
            told.update(dict.fromkeys(log))
        if count := self._records.cages:
            said = "1 mesh with a subdivision scheme is" if count == 1 else f"{count} meshes with subdivision schemes are"
            cages = "its control cage" if count == 1 else "their control cages"
            log = Diagnostics()
            log.note("/", "control-cage", f"{said} drawn as {cages} (complexity low)")
            told.update(dict.fromkeys(log))
        return list(told)

    def columns(self) -> StageColumns:
        """All of it as plain lists."""
        log = Diagnostics()
        log.extend(self.diagnostics())
        return StageColumns(
            metres_per_unit=self.metres_per_unit,
            up_axis=self.up_axis,
            time=self.time_code,
            time_codes_per_second=self.stage.GetTimeCodesPerSecond(),
            gprims=[self.gprims[key] for key in sorted(self.gprims)],
            materials=[self.materials[path] for path in sorted(self.materials)],
            bodies=[self.bodies[path] for path in sorted(self.bodies)],
            cameras=[self.cameras[path] for path in sorted(self.cameras)],
            sites=[self.sites[path] for path in sorted(self.sites)],
            lights=[self.lights[path] for path in sorted(self.lights)],
            prim_counts=self.prim_counts,
            diagnostics=log,
        )

    # -- reading ----------------------------------------------------------------------------------------------------------

    def update(self, edits: StageEdits, time: Usd.TimeCode) -> tuple[StageChanges | None, int]:
        """Read what ``edits`` and the way to ``time`` have changed: (what is new, None where there was nothing to read; prims visited).

        Everything at the first call. Broken prims are skipped and named in the diagnostics; nothing on a stage raises.
        """
        try:
            if self.time is None:
                self._varying.forget()  # nobody has told it of the edits of a call that failed
                parts = DirtyParts(everything=True)
            else:
                self._varying.update(edits)
                if time != self.time:
                    # At the default time what has a single sample differs too.
                    anew = time.IsDefault() or self.time.IsDefault()
                    edits = StageEdits({"/"}) if anew else self._varying.added_to(edits)
                kept, used = self._records, self._materials
                parts = dirty_parts(self.stage, edits, kept.contents, kept.sources, used.bound, used.nodes, used.wanted)
            self.time = time
            if not parts.metrics and self._layer_files.lost() != self._lost_files:
                parts.metrics = True
            if not parts:
                return None, 0
            with no_collecting(), quietly() as messages:
                return self._read(parts, messages)
        except BaseException as error:
            self.forget()  # half of it is new: the next reading is a whole one
            if isinstance(error, UNREADABLE):
                name = self.stage.GetRootLayer().identifier
                raise StageError(name, f"cannot be read: {plain_text(error)}. The file, or one that it refers to, is damaged") from None
            raise

    def _read(self, parts: DirtyParts, messages: Callable[[], list]) -> tuple[StageChanges, int]:
        stage, told = self.stage, OwnedDiagnostics()
        if self._is_spent:
            parts = DirtyParts(everything=True)
        if parts.metrics:
            self._forget_prototypes()
            told_of_stage = Diagnostics()
            report_composition(stage, told_of_stage)
            self._layer_files.refresh()
            self._lost_files = self._layer_files.lost()
            self._layer_files.report(self._lost_files, told_of_stage)
            metrics = _Metrics(metres_per_unit(stage, told_of_stage), _up_axis(stage, told_of_stage))
            if metrics != self._metrics:
                parts.roots = {"/"}
            self._metrics, self._stage_told = metrics, told_of_stage
        changes = StageChanges(complete=parts.everything)
        if parts.everything:
            metrics, stage_told = self._metrics, self._stage_told
            self._forget()
            self._metrics, self._stage_told = metrics, stage_told
        for path in parts.geometry:
            self._geometry.take(path)
        for path in parts.prims:
            self._geometry.pop(path, None)
        for path in parts.bindings:
            self._materials.unbind(path)
        for path, names in parts.constants.items():
            entry = self._geometry.get(path)
            if isinstance(entry, MeshEntry) and (entry.built is None or entry.diagnostics or not names.isdisjoint(entry.built.primvars)):
                self._geometry.pop(path)
        for path in parts.new_points:
            entry = self._geometry.get(path)
            if isinstance(entry, MeshEntry):
                entry.has_new_points = True
        roots = _topmost(parts.roots)
        gone = self._take_records(roots)
        skinning = Skinning(stage, self.time, told)
        walk = Walk(self._fact_reader(told), self._purposes, self._mask, told, skinning, self._geometry, self._collisions, self._draw_modes)
        walk.images = self._materials.images
        walk.budget.left -= self._records.cost
        with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond all bounds are looked for, and told, where they matter
            for root in roots:
                walk_stage(walk) if root == "/" else walk_subtree(walk, root)
                _note_unloaded(stage, root, walk.reader.sizes, told)
            if walk.budget.is_spent and not parts.everything:
                return self._read(DirtyParts(everything=True), messages)
            self._is_spent = walk.budget.is_spent
            found = self._gather(walk)
        self._records.put(walk, self._found_by_owner)
        for gprim in found["gprims"].values():
            self._materials.count_uses(gprim, 1)
        self._found_by_owner = {}
        for path, lod_root in walk.lods.items():
            self.lods[path] = lod_root
        for name in (*_PLACED, "gprims"):
            table = getattr(self, name)
            _compare(getattr(changes, name), gone[name], found[name])
            for key, item in found[name].items():
                table[key] = item
        self._materials.update(changes.materials, parts.materials, walk.materials, self.time)
        if changes.materials or changes.lights:
            self._materials.keep_images(self.lights.values())
        if told_by_usd := messages():
            report_messages(told_by_usd, stage, self._stage_told)
        return changes, walk.visited

    def _forget_prototypes(self) -> None:
        """Let go of what native prototypes held that are no more; their names are never used again."""
        there = {str(prototype.GetPath()) for prototype in self.stage.GetPrototypes()}
        for path in self._prototypes - there:
            self._geometry.take(path)
        self._prototypes = there

    def _fact_reader(self, told: OwnedDiagnostics) -> FactReader:
        predicate = Usd.PrimIsActive & Usd.PrimIsDefined & Usd.PrimIsLoaded & ~Usd.PrimIsAbstract
        return FactReader(self.stage, self.time, told, UsdGeom.XformCache(self.time), predicate, bool(self.stage.GetPrototypes()))

    def _take_records(self, roots: list[str]) -> dict[str, dict]:
        """Remove what is at and below ``roots``, and return it by table."""
        gone: dict[str, dict] = {name: {} for name in (*_PLACED, "gprims")}
        for root in roots:
            for key in self._records.take(root):
                gone["gprims"][key] = gprim = self.gprims.pop(key)
                self._materials.count_uses(gprim, -1)
            self.lods.take(root)
            for name in _PLACED:
                gone[name].update(getattr(self, name).take(root))
        return gone

    def _gather(self, walk: Walk) -> dict[str, dict]:
        scale = self.metres_per_unit
        bodies = gather.gather_bodies(walk, scale)
        known = _Either(self.bodies, bodies)
        cameras = gather.gather_cameras(walk, scale, known)
        sites = gather.gather_sites(walk, scale, known)
        self._found_by_owner = gather.gather_gprims(walk, scale, known, lambda drawn: self._materials.finder(drawn, walk.diagnostics))
        gprims = {key: gprim for found in self._found_by_owner.values() for key, gprim in found.items()}
        plain = {key[0]: gprim for key, gprim in gprims.items() if key[0] in walk.lights and not key[1]}
        lights = gather_lights(walk, scale, self.up_axis, known, plain)
        return {"bodies": bodies, "cameras": cameras, "sites": sites, "lights": lights, "gprims": gprims}


def _compare(changes: dict, gone: dict, found: dict) -> None:
    """Write into ``changes`` what was ``found``, and None for what is ``gone``."""
    changes.update(dict.fromkeys(gone.keys() - found.keys()))
    changes.update(found)


class _Either:
    """Membership in one of two."""

    def __init__(self, a: object, b: object) -> None:
        self._a, self._b = a, b

    def __contains__(self, item: object) -> bool:
        return item in self._a or item in self._b


def _topmost(paths: set[str]) -> list[str]:
    """``paths`` without those below others, sorted."""
    if "/" in paths:
        return ["/"]
    kept: list[str] = []
    for path in sorted(paths):
        if not kept or not path.startswith(kept[-1] + "/"):
            kept.append(path)
    return kept


def _up_axis(stage: Usd.Stage, diagnostics: Diagnostics) -> str:
    axis = str(UsdGeom.GetStageUpAxis(stage))
    if axis in ("Y", "Z"):
        return axis
    diagnostics.error("/", "up-axis", f"upAxis is '{axis}'; read as Y. Author Y or Z")
    return "Y"


def _note_unloaded(stage: Usd.Stage, root: str, sizes: Sizes, told: OwnedDiagnostics) -> None:
    prim = stage.GetPrimAtPath(root)
    if prim and stage.GetPrototypes() and sizes.at_and_below(prim) > FREE_PRIMS + MOST_PRIMS:
        return  # USD looks into every instance
    loadable = stage.FindLoadable(Sdf.Path(root))
    if not loadable:
        return
    loaded = set(stage.GetLoadSet())
    for path in loadable:
        if path not in loaded:
            told.owner = str(path)
            told.note(path, "unloaded", "its payload is not loaded; nothing below it is drawn")


@contextmanager
def quietly() -> Iterator[Callable[[], list]]:
    """What pxr would print is kept, and given by the function."""
    delegate = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        yield delegate.TakeUncoalescedDiagnostics
    finally:
        del delegate


def read_stage(
    stage: Usd.Stage,
    time: Usd.TimeCode,
    *,
    purposes: Sequence[str] = ("default", "render"),
    complexity: str = "low",
    material_purposes: Sequence[str] = ("full", ""),
    mask: Sequence[str] | Usd.StagePopulationMask | None = None,
    collisions: bool = False,
) -> StageColumns:
    """Everything hdWarp draws of a stage at a time; see `StageReader`. Broken prims are skipped and named in the columns' diagnostics."""
    reader = StageReader(
        stage, purposes=purposes, complexity=complexity, material_purposes=material_purposes, mask=mask, collisions=collisions
    )
    reader.update(StageEdits(), time)
    return reader.columns()
