"""stage.traverse: one walk over a stage, inherited state carried down -> StageColumns. Paths in, no matrices turned until the end."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdUtils

from hdwarp.errors import ArgumentError, Diagnostics, NotSupported
from hdwarp.stage import primvars, shapes
from hdwarp.stage.columns import GeometryKind, StageColumns
from hdwarp.stage.facts import Category, FactReader, Facts, read_facts
from hdwarp.stage.instancers import Instances, place, read_instancer
from hdwarp.stage.meshes import MeshSet, read_mesh
from hdwarp.stage.open import metres_per_unit, population_mask, report_composition, report_messages
from hdwarp.stage.skinning import Skinning
from hdwarp.stage.spec import PURPOSES
from hdwarp.stage.transforms import columns_from_gf

COMPLEXITIES = ("low", "medium", "high", "veryhigh")
_MOST_NESTED = 50_000_000  # instances of nested instancers: their numbers multiply


@dataclass(slots=True, eq=False)
class State:
    """What a prim passes on to its children. Matrices are Gf rows in scene units, from the prim to the world (or to the space its
    point instancer's prototype root sits in)."""

    path: str
    matrix: Gf.Matrix4d
    visible: bool
    purpose: str | None  # authored here or above; None: the fallback, which does not inherit
    purpose_visibility: dict[str, bool] | None
    body: str
    constants: dict[str, np.ndarray]
    binder: str  # nearest prim with material bindings
    collections: bool  # a collection binding here or above: membership depends on the very path
    instances: Instances | None
    entry: State | None  # state of the innermost native instance
    prototype: str  # and the path of its prototype
    any_specifier: bool
    skel_root: str = ""  # the outermost SkelRoot here or above


def _root_state() -> State:
    return State("", Gf.Matrix4d(1.0), True, None, None, "", {}, "", False, None, None, "", False)


@dataclass(slots=True, eq=False)
class Drawn:
    """A gprim found by the walk; gather.py makes the Gprim of it."""

    path: str
    kind: GeometryKind
    mesh: int  # number in the MeshSet
    shape: shapes.Shape | None
    state: State
    double_sided: bool
    slots: tuple[tuple[str, bool], ...] = ()


@dataclass(slots=True, eq=False)
class Walk:
    """Where the walk leaves what it finds."""

    reader: FactReader
    purposes: frozenset[str]
    mask: Usd.StagePopulationMask | None
    diagnostics: Diagnostics
    skinning: Skinning
    meshes: MeshSet = field(default_factory=MeshSet)
    drawn: list[Drawn] = field(default_factory=list)
    bodies: dict[str, Gf.Matrix4d] = field(default_factory=dict)
    sites: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)
    cameras: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)
    lights: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    control_cages: int = 0


def read_stage(
    stage: Usd.Stage,
    time: Usd.TimeCode,
    *,
    purposes: Sequence[str] = ("default", "render"),
    complexity: str = "low",
    material_purposes: Sequence[str] = ("full", ""),
    mask: Sequence[str] | Usd.StagePopulationMask | None = None,
    diagnostics: Diagnostics | None = None,
) -> StageColumns:
    """Everything hdWarp draws of a stage at a time. Broken prims are skipped and named in the columns' diagnostics (``diagnostics`` if
    given); nothing on a stage raises. ``purposes``: what is drawn. ``material_purposes``: of bindings, in order of preference, "" being
    all-purpose. ``mask``: paths to restrict the walk to. Cameras are read whatever their visibility and purpose."""
    if complexity not in COMPLEXITIES:
        raise ArgumentError(f"complexity is {complexity!r}; known: {', '.join(COMPLEXITIES)}")
    if complexity != "low":
        raise NotSupported(f"complexity={complexity!r}: refined subdivision surfaces are not supported yet; 'low' draws the control cage")
    unknown = [purpose for purpose in purposes if purpose not in PURPOSES]
    if unknown:
        raise ArgumentError(f"purposes: {', '.join(map(repr, unknown))} unknown; known: {', '.join(PURPOSES)}")
    from hdwarp.stage.gather import gather

    diagnostics = Diagnostics() if diagnostics is None else diagnostics
    quiet = UsdUtils.CoalescingDiagnosticDelegate()  # what pxr would print, it is told below
    collecting = gc.isenabled()
    gc.disable()  # the walk makes many objects that all live on: looking for garbage among them costs as much as reading them
    try:
        report_composition(stage, diagnostics)
        columns = StageColumns(
            metres_per_unit=metres_per_unit(stage, diagnostics),
            up_axis=_up_axis(stage, diagnostics),
            time=None if time.IsDefault() or time.IsEarliestTime() else float(time.GetValue()),
            time_codes_per_second=stage.GetTimeCodesPerSecond(),
            diagnostics=diagnostics,
        )
        _note_unloaded(stage, diagnostics)
        restriction = None if mask is None else population_mask(mask)
        skinning = Skinning(stage, time, diagnostics)
        walk = Walk(_reader(stage, time, diagnostics), frozenset(purposes), restriction, diagnostics, skinning)
        root = _root_state()
        children = stage.GetPseudoRoot().GetFilteredChildren(walk.reader.predicate)
        with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond all bounds are looked for, and told, where they matter
            _walk(walk, [(child, f"/{child.GetName()}", root) for child in reversed(children)])
            gather(walk, columns, time, material_purposes)
        report_messages(quiet.TakeUncoalescedDiagnostics(), stage, diagnostics)
    finally:
        del quiet
        if collecting:
            gc.enable()
    return columns


def _reader(stage: Usd.Stage, time: Usd.TimeCode, diagnostics: Diagnostics) -> FactReader:
    predicate = Usd.PrimIsActive & Usd.PrimIsDefined & Usd.PrimIsLoaded & ~Usd.PrimIsAbstract
    return FactReader(stage, time, diagnostics, UsdGeom.XformCache(time), predicate, bool(stage.GetPrototypes()))


def _up_axis(stage: Usd.Stage, diagnostics: Diagnostics) -> str:
    axis = str(UsdGeom.GetStageUpAxis(stage))
    if axis in ("Y", "Z"):
        return axis
    diagnostics.error("/", "up-axis", f"upAxis is '{axis}'; read as Y. Author Y or Z")
    return "Y"


def _note_unloaded(stage: Usd.Stage, diagnostics: Diagnostics) -> None:
    loaded = set(stage.GetLoadSet())
    for path in stage.FindLoadable():
        if path not in loaded:
            diagnostics.note(path, "unloaded", "its payload is not loaded; nothing below it is drawn")


def _inherit(walk: Walk, facts: Facts, parent: State, path: str) -> State:
    """The state of a prim below ``parent``."""
    matrix = parent.matrix
    if facts.local is not None:
        matrix = facts.local if facts.resets else facts.local * matrix
    constants = parent.constants
    if facts.constants is not None:
        both = {**constants, **facts.constants}
        constants = {name: value for name, value in both.items() if value is not None}
    hidden = parent.purpose_visibility
    if facts.purpose_visibility:
        hidden = {**(hidden or {}), **facts.purpose_visibility}
    state = State(
        path,
        matrix,
        parent.visible and facts.visible,
        facts.purpose or parent.purpose,
        hidden,
        parent.body,
        constants,
        path if facts.bindings else parent.binder,
        parent.collections or facts.bindings == 2,
        parent.instances,
        parent.entry,
        parent.prototype,
        parent.any_specifier,
        parent.skel_root or (path if facts.type_name == "SkelRoot" else ""),
    )
    if facts.prototype:
        state.entry, state.prototype = state, facts.prototype
    return state


def _walk(walk: Walk, stack: list[tuple[Usd.Prim, str, State]]) -> None:
    """Depth first, children in order. ``stack`` holds (prim, path, parent's state): hierarchies may be deeper than Python's own."""
    reader, mask, counts = walk.reader, walk.mask, walk.counts
    while stack:
        prim, path, parent = stack.pop()
        if mask is not None and parent.instances is None and not mask.Includes(Sdf.Path(path)):
            continue
        facts = read_facts(reader, prim, path, any_specifier=parent.any_specifier)
        category = facts.category
        if category is Category.SHADING or category is Category.SUBSET:
            continue
        state = _inherit(walk, facts, parent, path)
        if category is not Category.OTHER and category is not Category.UNKNOWN:
            counts[facts.type_name] = counts.get(facts.type_name, 0) + 1
        if parent.instances is None and (
            facts.body or facts.site or facts.light or category is Category.CAMERA or category is Category.LIGHT
        ):
            _take_frames(walk, facts, state)
        if category is Category.POINT_INSTANCER:
            if _is_drawn(walk, state):
                _walk_instancer(walk, facts, state, stack)
            continue  # prims below an instancer are drawn only through it
        if category is Category.MESH:
            if _is_drawn(walk, state):
                _take_mesh(walk, facts, state)
        elif category is Category.SHAPE:
            if _is_drawn(walk, state):
                _take_shape(walk, facts, state)
        elif category is Category.UNSUPPORTED:
            if _is_drawn(walk, state):
                message = f"{facts.type_name} prims are not supported yet; it is not drawn"
                walk.diagnostics.warning(path, "unsupported-type", message)
        elif category is Category.UNKNOWN:
            message = f"type '{facts.type_name}' belongs to no schema this process knows; nothing is drawn for the prim itself"
            walk.diagnostics.note(path, "unknown-type", message)
        if facts.children:
            stack.extend(
                [(child, f"{path}/{name}", state) for child, name in zip(facts.children[::-1], facts.child_names[::-1], strict=True)]
            )


def _is_drawn(walk: Walk, state: State) -> bool:
    purpose = state.purpose or "default"
    return state.visible and purpose in walk.purposes and (state.purpose_visibility is None or state.purpose_visibility.get(purpose, True))


def _take_frames(walk: Walk, facts: Facts, state: State) -> None:
    """Bodies, sites, cameras and lights: whatever their visibility."""
    if facts.body:
        state.body = state.path
        walk.bodies[state.path] = state.matrix
    if facts.site:
        walk.sites[state.path] = (state.matrix, state.body)
    if facts.category is Category.CAMERA:
        walk.cameras[state.path] = (state.matrix, state.body)
    if facts.light or facts.category is Category.LIGHT:
        walk.lights.append(state.path)


def _take_mesh(walk: Walk, facts: Facts, state: State) -> None:
    reader = walk.reader
    inherited_normals = state.constants.get("normals")
    skin = walk.skinning.bind(facts.prim, facts.names, state.path, state.skel_root)
    kept = facts if skin is None else skin  # instances may be in different poses
    if kept.geometry_read:
        number, slots = kept.geometry
    else:  # at the first of all instances
        found = read_mesh(
            facts.prim, facts.names, facts.varying, facts.subsets, inherited_normals, reader.time, state.path, walk.diagnostics
        )
        if found is not None and skin is not None:
            skin.deform(found[0])
        number, slots = (-1, ()) if found is None else (walk.meshes.add(found[0], state.path), found[1].slots)
        kept.geometry, kept.geometry_read = (number, slots), inherited_normals is None
    if number < 0:
        return
    if walk.meshes.meshes[number].scheme != "none":
        walk.control_cages += 1
    walk.drawn.append(Drawn(state.path, GeometryKind.MESH, number, None, state, _double_sided(facts), slots))


def _take_shape(walk: Walk, facts: Facts, state: State) -> None:
    shape = shapes.read_shape(facts.prim, facts.type_name, facts.names, walk.reader.time, state.path, walk.diagnostics)
    if shape is None:
        return
    _move_rigidly(walk, facts, state)
    for name, interpolated in facts.varying:  # a shape has no points or faces to vary over: one value is a constant
        value = primvars.read_constant(facts.prim, name, walk.reader.time, state.path, walk.diagnostics, interpolated)
        if value is not None:
            state.constants = {**state.constants, name[len(primvars.PREFIX) :]: value}
    walk.drawn.append(Drawn(state.path, shape.kind, -1, shape, state, _double_sided(facts, shape.kind is GeometryKind.PLANE)))


def _move_rigidly(walk: Walk, facts: Facts, state: State) -> None:
    """What has no points of its own moves as a whole with the joint it is bound to, and what is below it too."""
    skin = walk.skinning.bind(facts.prim, facts.names, state.path, state.skel_root)
    moved = None if skin is None else skin.transform()
    if moved is not None:
        state.matrix = moved * state.matrix


def _double_sided(facts: Facts, fallback: bool = False) -> bool:
    value = facts.prim.GetAttribute("doubleSided").Get() if "doubleSided" in facts.names else None
    return fallback if value is None else bool(value)


def _walk_instancer(walk: Walk, facts: Facts, state: State, stack: list[tuple[Usd.Prim, str, State]]) -> None:
    """Put the roots of the instancer's prototypes on the stack, each with the instances that draw it."""
    reader = walk.reader
    if not facts.geometry_read:
        facts.geometry = read_instancer(facts.prim, facts.varying, reader.time, state.path, walk.diagnostics)
        facts.geometry_read = True
    data = facts.geometry
    if data is None:
        return
    _move_rigidly(walk, facts, state)
    world = columns_from_gf([state.matrix])[0]
    outer = state.instances
    if outer is not None:
        if not _may_nest(walk, outer, data.count, state.path):
            return
        world = outer.world @ world
    for slot, target in reversed(list(enumerate(data.targets))):
        instances = place(data, slot, world, outer, state.path)
        if instances is None:
            continue
        prim = reader.stage.GetPrimAtPath(target)
        if prim and facts.prim.GetPath().HasPrefix(prim.GetPath()):
            message = f"prototype {slot} <{target}> is the point instancer itself or holds it; its instances are not drawn"
            walk.diagnostics.error(state.path, "instancer-cycle", message)
            continue
        if not prim:
            message = f"prototype {slot} <{target}> does not exist; its {len(instances.ids)} instances are not drawn"
            walk.diagnostics.error(state.path, "prototype-missing", message)
            continue
        if not prim.IsActive():
            continue
        if prim.IsInstanceProxy():
            prim = prim.GetPrimInPrototype()
        above = _prototype_state(walk, prim, facts, state, instances)
        stack.append((prim, f"{above.path}/{prim.GetName()}", above))


def _may_nest(walk: Walk, outer: Instances, count: int, path: str) -> bool:
    """Whether an instancer inside another's prototype can be placed: not inside itself, and not beyond what ids and memory hold."""
    instancer = outer.instancer
    while instancer is not None:
        if instancer.path == path:
            walk.diagnostics.error(path, "instancer-cycle", "the point instancer is part of its own prototype; the inner one is not drawn")
            return False
        instancer = instancer.outer
    if len(outer.ids) * count > _MOST_NESTED or (int(outer.ids.max(initial=0)) + 1) * count > 2**31 - 1:
        message = f"{count} instances inside {len(outer.ids)} others are more than {_MOST_NESTED:,}; the inner instancer is not drawn"
        walk.diagnostics.error(path, "instancer-size", message)
        return False
    return True


def _prototype_state(walk: Walk, prim: Usd.Prim, instancer: Facts, state: State, instances: Instances) -> State:
    """The state of a prototype root's parent. Primvars and purpose follow the namespace, as everywhere in USD; visibility and
    transforms between the instancer and the root do not count, its own do."""
    path = prim.GetPath()
    above = instancer.prim.GetPath()
    if path.HasPrefix(above):
        parent = state
    elif state.entry is not None and path.HasPrefix(state.prototype):
        parent, above = state.entry, Sdf.Path(state.prototype)
    else:
        parent, above = _root_state(), Sdf.Path.absoluteRootPath
    for step in path.GetParentPath().GetPrefixes():
        if step != above and step.HasPrefix(above):
            between = walk.reader.stage.GetPrimAtPath(step)
            name = f"{parent.path}/{step.name}"
            parent = _inherit(walk, read_facts(walk.reader, between, name, any_specifier=True), parent, name)
    return State(
        parent.path,
        Gf.Matrix4d(1.0),
        True,
        parent.purpose or state.purpose,
        parent.purpose_visibility,
        state.body,
        parent.constants,
        parent.binder,
        parent.collections,
        instances,
        parent.entry,
        parent.prototype,
        state.any_specifier or prim.IsAbstract() or not prim.IsDefined(),
        parent.skel_root,
    )
