"""stage.reader: a stage as it was last read, by path. Reads all of it once, later only what edits and time have changed.

The walk of a subtree gives the same records whenever it is made, so that what is read anew in parts is what a fresh reading gives.
What a walk found is kept by the path it depends on (a gprim's own, or its outermost point instancer's), arrays of geometry beside it,
so that what merely moves is not read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdShade, UsdUtils

from hdwarp.errors import ArgumentError, Diagnostic, Diagnostics, NotSupported, OwnedDiagnostics, SharedDiagnostic, StageError
from hdwarp.garbage import no_collecting
from hdwarp.stage import gather
from hdwarp.stage.bindings import binding_targets, bound_materials
from hdwarp.stage.changes import StageEdits
from hdwarp.stage.columns import Body, Camera, Gprim, GprimKey, Light, Material, Site, StageChanges, StageColumns
from hdwarp.stage.dirty import DirtyParts, dirty_parts
from hdwarp.stage.expansion import FREE_PRIMS, MOST_PRIMS, Sizes
from hdwarp.stage.facts import FactReader
from hdwarp.stage.images import Images
from hdwarp.stage.layer_files import LayerFiles
from hdwarp.stage.lights import gather_lights
from hdwarp.stage.links import MOST_SETS, left_out
from hdwarp.stage.lod import LodRoot
from hdwarp.stage.materials import read_material
from hdwarp.stage.meshes import MeshEntry
from hdwarp.stage.networks import nodes_outside
from hdwarp.stage.open import UNREADABLE, metres_per_unit, plain_text, population_mask, report_composition, report_messages
from hdwarp.stage.path_map import PathMap
from hdwarp.stage.skinning import Skinning
from hdwarp.stage.spec import PURPOSES
from hdwarp.stage.traverse import walk_stage, walk_subtree
from hdwarp.stage.varying import VaryingAttributes
from hdwarp.stage.walk import Drawn, InstancerEntry, Walk

_UNKNOWN = object()
_PLACED = ("bodies", "cameras", "sites", "lights")  # tables of what a prim is, one record by path
COMPLEXITIES = ("low", "medium", "high", "veryhigh")


@dataclass(slots=True, eq=False)
class PrimRecord:
    """What depends on one prim and is read again with it."""

    types: str | dict[str, int] = ""
    keys: tuple[GprimKey, ...] = ()
    told: tuple[Diagnostic, ...] = ()
    contents: tuple[str, ...] = ()  # subtrees elsewhere that it draws
    sources: tuple[str, ...] = ()  # prims elsewhere that it is made from
    cages: int = 0  # meshes drawn as their control cage
    cost: int = 0  # prims that it shows by way of instances, where they are many: see `expansion`


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
        self._purposes, self._material_purposes = frozenset(purposes), tuple(material_purposes)
        self._mask = None if mask is None else population_mask(mask)
        self._collisions = collisions
        self._varying = VaryingAttributes(stage)
        self._layer_files = LayerFiles(stage)
        self._lost_files: list[str] = []  # as told
        self._images = Images()
        self._forget()

    def _forget(self) -> None:
        self._metrics = _Metrics(1.0, "Y")
        self.gprims: dict[GprimKey, Gprim] = {}
        self.materials: dict[str, Material] = {}
        self.bodies: PathMap[Body] = PathMap()
        self.cameras: PathMap[Camera] = PathMap()
        self.sites: PathMap[Site] = PathMap()
        self.lights: PathMap[Light] = PathMap()
        self.lods: PathMap[LodRoot] = PathMap()  # roots whose items cameras choose
        self._records: PathMap[PrimRecord] = PathMap()
        self._geometry: PathMap[MeshEntry | InstancerEntry] = PathMap()
        self._bindings: PathMap[tuple[str, tuple[Diagnostic, ...]]] = PathMap()  # asker -> path of its material
        self._targets: object = _UNKNOWN  # what bindings name, looked up when somebody asks
        self._bound: Counter[str] = Counter()  # materials by bindings
        self._told: dict[str, tuple[Diagnostic, ...]] = {}  # of the records that have something to tell
        self._given_materials: dict[str, Material] = {}  # of what is no Material prim
        self._material_told: dict[str, tuple[Diagnostic, ...]] = {}
        self._material_nodes: dict[str, frozenset[str]] = {}  # by material: prims that it is made from and that are not below it
        self._material_uses: Counter[str] = Counter()  # by gprims
        self._materials_in_doubt: set[str] = set()  # whose uses have begun or ceased since the materials were last looked at
        self._contents: PathMap[set[str]] = PathMap()  # path of a subtree -> records of what it is drawn by
        self._sources: PathMap[set[str]] = PathMap()  # path of a prim -> records of what is made from its values
        self._prototypes: set[str] = set()
        self._stage_told = Diagnostics()
        self._type_counts: Counter[str] = Counter()
        self._cages = 0
        self._cost = 0  # of all records
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
        return dict(sorted((name, count) for name, count in self._type_counts.items() if count))

    def diagnostics(self) -> list[Diagnostic]:
        """What there is to tell about the stage as it was read, each thing once: of the whole first, then in path order."""
        told = dict.fromkeys(self._stage_told)
        shared: dict[str, Diagnostic] = {}  # of all instances that have something, the first tells it
        for path in sorted(self._told):
            for item in self._told[path]:
                if isinstance(item, SharedDiagnostic):
                    item = shared.setdefault(item.source, Diagnostic(item.path, item.code, item.severity, item.message))
                told.setdefault(item)
        for path in sorted(self._material_told):
            told.update(dict.fromkeys(self._material_told[path]))
        if out := left_out(self.lights.values()):
            log = Diagnostics()
            message = f"lights of the stage are linked to more than {MOST_SETS} different sets of prims; this one's counts as everything"
            log.warning(out[0], "light-link", f"{message}, as does that of {len(out) - 1} more" if len(out) > 1 else message)
            told.update(dict.fromkeys(log))
        if self._cages:
            said = "1 mesh with a subdivision scheme is" if self._cages == 1 else f"{self._cages} meshes with subdivision schemes are"
            cages = "its control cage" if self._cages == 1 else "their control cages"
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
                bound = [path for path in self._bound if path]  # without "", the material of what has none
                nodes = frozenset().union(*self._material_nodes.values())
                parts = dirty_parts(self.stage, edits, self._contents, self._sources, bound, nodes, self._wanted_materials)
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
            self._targets = _UNKNOWN
            for _, (material, _) in self._bindings.take(path):
                _count(self._bound, material, -1)
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
        walk = Walk(self._fact_reader(told), self._purposes, self._mask, told, skinning, self._geometry, self._collisions)
        walk.images = self._images
        walk.budget.left -= self._cost
        with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond all bounds are looked for, and told, where they matter
            for root in roots:
                walk_stage(walk) if root == "/" else walk_subtree(walk, root)
                _note_unloaded(stage, root, walk.reader.sizes, told)
            if walk.budget.is_spent and not parts.everything:
                return self._read(DirtyParts(everything=True), messages)
            self._is_spent = walk.budget.is_spent
            found = self._gather(walk)
        self._put_records(walk, found)
        for path, lod_root in walk.lods.items():
            self.lods[path] = lod_root
        for name in (*_PLACED, "gprims"):
            table = getattr(self, name)
            _compare(getattr(changes, name), gone[name], found[name])
            for key, item in found[name].items():
                table[key] = item
        self._update_materials(changes.materials, parts.materials, walk.materials, lights_changed=bool(changes.lights))
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
            for path, record in self._records.take(root):
                for key in record.keys:
                    gone["gprims"][key] = gprim = self.gprims.pop(key)
                    self._count_uses(gprim, -1)
                self._count_types(record.types, -1)
                self._cages -= record.cages
                self._cost -= record.cost
                self._told.pop(path, None)
                for links, targets in ((self._contents, record.contents), (self._sources, record.sources)):
                    for target in targets:
                        links[target].discard(path)
                        if not links[target]:
                            links.pop(target)
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
        self._found_by_owner = gather.gather_gprims(walk, scale, known, lambda drawn: self._material_finder(drawn, walk.diagnostics))
        gprims = {key: gprim for found in self._found_by_owner.values() for key, gprim in found.items()}
        plain = {key[0]: gprim for key, gprim in gprims.items() if key[0] in walk.lights and not key[1]}
        lights = gather_lights(walk, scale, self.up_axis, known, plain)
        return {"bodies": bodies, "cameras": cameras, "sites": sites, "lights": lights, "gprims": gprims}

    def _put_records(self, walk: Walk, found: dict[str, dict]) -> None:
        contents, sources = _link(self._contents, walk.contents), _link(self._sources, walk.sources)
        cages: dict[str, int] = {}
        for item in walk.drawn:
            if item.visual and item.mesh is not None and item.mesh.scheme != "none" and item.mesh.built is not None:
                cages[item.owner] = cages.get(item.owner, 0) + 1
        told, by_owner, none = walk.diagnostics.by_owner, self._found_by_owner, ()
        for owner in dict.fromkeys([*walk.types, *told, *by_owner, *contents, *sources, *walk.budget.costs]):
            record = self._records[owner] = PrimRecord(
                walk.types.get(owner, ""),
                tuple(by_owner.get(owner, none)),
                tuple(told.get(owner, none)),
                tuple(contents.get(owner, none)),
                tuple(sources.get(owner, none)),
                cages.get(owner, 0),
                walk.budget.costs.get(owner, 0),
            )
            self._cost += record.cost
            if record.told:
                self._told[owner] = record.told
        self._type_counts.update(types for types in walk.types.values() if isinstance(types, str))
        for types in walk.types.values():
            if isinstance(types, dict):
                self._count_types(types, 1)
        self._cages += sum(cages.values())
        for gprim in found["gprims"].values():
            if gprim.material or gprim.subset_materials:
                self._count_uses(gprim, 1)
        self._found_by_owner = {}

    def _count_types(self, types: str | dict[str, int], sign: int) -> None:
        if isinstance(types, dict):
            for name, count in types.items():
                self._type_counts[name] += sign * count
        elif types:
            self._type_counts[types] += sign

    def _count_uses(self, gprim: Gprim, sign: int) -> None:
        if not gprim.material and not gprim.subset_materials:
            return
        for path in {gprim.material, *gprim.subset_materials} - {""}:
            _count(self._material_uses, path, sign)
            if (path in self._material_uses) != (path in self.materials):
                self._materials_in_doubt.add(path)

    def _wanted_materials(self) -> set[str] | None:
        if self._targets is _UNKNOWN:
            self._targets = binding_targets(self.stage, self._bindings)
        return self._targets

    # -- materials --------------------------------------------------------------------------------------------------------

    def _material_finder(self, drawn: list[Drawn], told: OwnedDiagnostics) -> Callable[[Drawn], tuple[str, tuple[str, ...]]]:
        """Bindings are computed once for each prim that has some, for all at once, and kept."""
        askers: dict[str, None] = {}
        for item in drawn:
            if not _may_be_bound(item):
                continue
            askers.update(dict.fromkeys(asker for asker in _askers(item) if asker and asker not in self._bindings))
        paths, log = list(askers), Diagnostics()
        bound = bound_materials(self.stage, paths, self._material_purposes, log) if paths else []
        said: dict[str, list[Diagnostic]] = {}
        for item in log:
            said.setdefault(item.path, []).append(item)
        for asker, path in zip(paths, bound, strict=True):
            self._targets = _UNKNOWN
            self._bindings[asker] = path, tuple(said.get(asker, ()))
            _count(self._bound, path, 1)
        nothing = "", ()

        def find(item: Drawn) -> tuple[str, tuple[str, ...]]:
            if not _may_be_bound(item):
                return "", item.materials
            told.owner = item.owner
            found = [self._bindings.get(asker, nothing) for asker in _askers(item)]
            for _, items in found:
                if items:
                    told.extend(items)
            return found[0][0], tuple(path for path, _ in found[1:])

        return find

    def _update_materials(
        self, changes: dict[str, Material | None], dirty: bool, given: dict[str, Material], *, lights_changed: bool = False
    ) -> None:
        """Read the materials that gprims use, those known already only when ``dirty``. ``given``: new ones that are no prims."""
        doubtful, self._materials_in_doubt = self._materials_in_doubt, set()
        given = {path: material for path, material in given.items() if path in self._material_uses}
        self._given_materials = {path: item for path, item in self._given_materials.items() if path in self._material_uses} | given
        for path in doubtful - self._material_uses.keys():
            self._material_nodes.pop(path, None)
            if self.materials.pop(path, None) is not None:
                changes[path] = None
                self._material_told.pop(path, None)
        changes.update(given)
        self.materials.update(given)
        for path in sorted(self._material_uses.keys() if dirty else doubtful & self._material_uses.keys() - self.materials.keys()):
            if path in self._given_materials:
                continue
            log, material = Diagnostics(), UsdShade.Material(self.stage.GetPrimAtPath(path))
            changes[path] = self.materials[path] = read_material(material, path, self.time, self._images, log)
            for kept, found in ((self._material_nodes, nodes_outside(material, path)), (self._material_told, tuple(log))):
                kept.pop(path, None)
                if found:
                    kept[path] = found
        if changes or lights_changed:
            textures = [texture for material in self.materials.values() for texture in material.textures.values()]
            textures += [light.texture for light in self.lights.values() if light.texture is not None]
            self._images.keep({image for texture in textures for image in texture.images})


def _count(counter: Counter[str], name: str, sign: int) -> None:
    counter[name] += sign
    if not counter[name]:
        del counter[name]


def _link(links: PathMap[set[str]], pairs: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Add (target, user) pairs to ``links``; the targets of each user."""
    targets: dict[str, set[str]] = {}
    for target, user in pairs:
        if target not in links:
            links[target] = set()
        links[target].add(user)
        targets.setdefault(user, set()).add(target)
    return targets


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


def _may_be_bound(item: Drawn) -> bool:
    return bool(item.state.binder or item.state.collections or item.slots)


def _askers(item: Drawn) -> Iterator[str]:
    """The prims whose bindings are the gprim's and its slots': itself where collections matter, else the nearest with bindings; "" none."""
    yield item.path if item.state.collections else item.state.binder
    for name, bound in item.slots:
        yield f"{item.path}/{name}" if bound or item.state.collections else ""


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
