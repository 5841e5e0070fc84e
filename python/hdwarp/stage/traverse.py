"""stage.traverse: the walk over a stage or a part of it, inherited state carried down. Paths in; no matrices turned, nothing built."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom

from hdwarp.errors import Diagnostic, Diagnostics, OwnedDiagnostics
from hdwarp.stage import draw_modes, lod, primvars, shapes
from hdwarp.stage.columns import GeometryKind, Material, MeshGeometry
from hdwarp.stage.curves import read_curves
from hdwarp.stage.expansion import MOST_PRIMS, Budget, Expansion
from hdwarp.stage.facts import CURVES, GEOMETRY, Category, FactReader, Facts, read_facts
from hdwarp.stage.images import Images
from hdwarp.stage.instancers import InstancerData, Instances, place, read_instancer
from hdwarp.stage.mesh_batch import move_points
from hdwarp.stage.meshes import MeshEntry, MeshSet, RawMesh, read_mesh, read_points
from hdwarp.stage.open import UNREADABLE, plain_text
from hdwarp.stage.patches import read_patch
from hdwarp.stage.path_map import PathMap
from hdwarp.stage.points import read_balls
from hdwarp.stage.skin import Skin
from hdwarp.stage.skinning import Skinning
from hdwarp.stage.subsets import Subsets
from hdwarp.stage.tets import read_tets
from hdwarp.stage.transforms import columns_from_gf

InstancerEntry = tuple[InstancerData | None, tuple[Diagnostic, ...], str]  # and where it was found
_IDENTITY = Gf.Matrix4d(1.0)


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
    articulation: str  # nearest prim with ArticulationRootAPI
    collision: bool | None  # whether the nearest CollisionAPI is enabled; None: there is none
    constants: dict[str, np.ndarray]
    binder: str  # nearest prim with material bindings
    collections: bool  # a collection binding here or above: membership depends on the very path
    instances: Instances | None
    entry: State | None  # state of the innermost native instance
    prototype: str  # and the path of its prototype
    any_specifier: bool
    owner: str  # the outermost point instancer that draws it; "": it stands on the stage itself
    skel_root: str  # the outermost SkelRoot here or above
    draw_mode: str = ""  # nearest model:drawMode; "": there is none
    hidden: bool = False  # something else is drawn in its place: what stands in for its model, another LOD
    lod_override: lod.Override | None = None
    expansion: Expansion | None = None  # of the outermost point instancer
    lods: tuple[lod.Place, ...] = ()  # items of roots whose cameras choose that it is in, outermost first


def root_state() -> State:
    return State("", _IDENTITY, True, None, None, "", "", None, {}, "", False, None, None, "", False, "", "")


@dataclass(slots=True, eq=False)
class Drawn:
    """A gprim found by the walk; gather.py makes the Gprim of it."""

    path: str
    kind: GeometryKind
    mesh: MeshEntry | None
    shape: shapes.Shape | None
    state: State
    double_sided: bool
    source: str = ""  # of meshes: the path of the very prim
    visual: bool = True  # False: read only because it is a collider
    one_sided: bool = False
    materials: tuple[str, ...] = ()  # of face subsets that are no prims: paths among the walk's own

    @property
    def slots(self) -> tuple[tuple[str, bool], ...]:
        """Material slots of a mesh's subsets: prim name, and whether that prim has bindings of its own."""
        return self.mesh.slots if self.mesh is not None else ()

    @property
    def owner(self) -> str:
        return self.state.owner or self.path


@dataclass(slots=True, eq=False)
class Walk:
    """What one walk goes by, and where it leaves what it finds."""

    reader: FactReader
    purposes: frozenset[str]
    mask: Usd.StagePopulationMask | None
    diagnostics: OwnedDiagnostics
    skinning: Skinning
    geometry: PathMap[MeshEntry | InstancerEntry]  # by path of the very prim: read before, or by this walk
    collisions: bool = False  # read colliders too that are not drawn
    meshes: MeshSet = field(default_factory=MeshSet)
    drawn: list[Drawn] = field(default_factory=list)
    bodies: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)  # and the articulation root
    sites: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)  # and the body, as of those that follow
    cameras: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)
    lights: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)
    types: dict[str, str | dict[str, int]] = field(default_factory=dict)  # owner -> type of an imageable prim; types and their numbers
    skinned: dict[tuple, MeshEntry] = field(default_factory=dict)  # by pose; never kept longer: poses are read anew
    contents: list[tuple[str, str]] = field(default_factory=list)  # (path of a subtree, owner of what it is drawn by)
    sources: list[tuple[str, str]] = field(default_factory=list)  # (path of a prim, owner of what is made from its values)
    visited: int = 0
    at: str = ""  # path of the prim that is looked at
    boxes: draw_modes.Boxes | None = None
    images: Images = field(default_factory=Images)
    lods: dict[str, lod.LodRoot] = field(default_factory=dict)  # roots whose items cameras choose
    materials: dict[str, Material] = field(default_factory=dict)  # of what is no Material prim: pictures of cards
    budget: Budget = field(default_factory=Budget)

    def count_below(self, owner: str, type_name: str) -> None:
        """A prim that an instancer draws counts with the instancer."""
        known = self.types[owner]
        if isinstance(known, str):
            known = self.types[owner] = {known: 1}
        known[type_name] = known.get(type_name, 0) + 1


def walk_stage(walk: Walk) -> None:
    """Everything on the stage."""
    state = root_state()
    stack = []
    for child in reversed(walk.reader.stage.GetPseudoRoot().GetFilteredChildren(walk.reader.predicate)):
        try:
            stack.append((child, f"/{child.GetName()}", state))
        except UnicodeDecodeError as error:
            walk.diagnostics.error("/", "unreadable", f"a prim is left out: {plain_text(error)}")
    _walk(walk, stack)


def walk_subtree(walk: Walk, path: str) -> None:
    """One prim, outside of instances and instancers, and all below it. Nothing where no prim to draw is there."""
    stage = walk.reader.stage
    prim = stage.GetPrimAtPath(path)
    if not prim or not is_populated(prim):
        return
    state = root_state()
    silent = replace(walk.reader, diagnostics=Diagnostics())  # what is above has been told when it was read itself
    for above in Sdf.Path(path).GetParentPath().GetPrefixes():
        facts = read_facts(silent, stage.GetPrimAtPath(above), str(above), children=False)
        if facts.category in (Category.SHADING, Category.SUBSET, Category.POINT_INSTANCER):
            return
        state = _inherit(walk, facts, state, str(above))
        if facts.body:
            state.body = state.path
        if state.draw_mode in draw_modes.DRAWN and draw_modes.applies(facts.prim):
            state.hidden = True
        if facts.lod_root and not state.hidden:
            names = facts.prim.GetFilteredChildrenNames(silent.predicate)
            chosen = lod.drawn_items(facts.prim, names, state.lod_override, silent.time, state.path, silent.diagnostics)
            name = path[len(str(above)) + 1 :].partition("/")[0]
            state = _state_of_item(state, chosen, names.index(name) if name in names else -1, name)
    _walk(walk, [(prim, path, state)])


def is_populated(prim: Usd.Prim) -> bool:
    """Whether the walk looks at a prim at all: active, loaded, defined and no class, as everything above it."""
    return prim.IsActive() and prim.IsLoaded() and prim.IsDefined() and not prim.IsAbstract()


def _inherit(walk: Walk, facts: Facts, parent: State, path: str) -> State:
    """The state of a prim below ``parent``."""
    matrix = parent.matrix
    if facts.local is not None:
        matrix = facts.local if facts.resets or matrix is _IDENTITY else facts.local * matrix
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
        path if facts.articulation else parent.articulation,
        parent.collision if facts.collision is None else facts.collision,
        constants,
        path if facts.bindings else parent.binder,
        parent.collections or facts.bindings == 2,
        parent.instances,
        parent.entry,
        parent.prototype,
        parent.any_specifier,
        parent.owner,
        parent.skel_root or (path if (facts.drawn_as or facts.type_name) == "SkelRoot" else ""),
        facts.draw_mode or parent.draw_mode,
        parent.hidden,
        facts.lod_override or parent.lod_override,
        parent.expansion,
        parent.lods,
    )
    if facts.prototype:
        state.entry, state.prototype = state, facts.prototype
    return state


def _walk(walk: Walk, stack: list[tuple[Usd.Prim, str, State]]) -> None:
    """Depth first, children in order. ``stack`` holds (prim, path, parent's state): hierarchies may be deeper than Python's own."""
    while stack:
        try:
            _walk_on(walk, stack)
        except UNREADABLE as error:  # what USD itself cannot answer, targets that lead nowhere for instance
            message = f"{plain_text(error)}; the prim is left out, with what is below it. Mend what this names"
            walk.diagnostics.error(walk.at, "unreadable", message)


def _walk_on(walk: Walk, stack: list[tuple[Usd.Prim, str, State]]) -> None:
    reader, mask, types, diagnostics = walk.reader, walk.mask, walk.types, walk.diagnostics
    while stack:
        prim, path, parent = stack.pop()
        if mask is not None and parent.instances is None and not mask.Includes(Sdf.Path(path)):
            continue
        walk.visited += 1
        diagnostics.owner = owner = parent.owner or path
        walk.at = path
        if parent.expansion is not None and not parent.expansion.allows(walk.budget, diagnostics):
            continue
        facts = read_facts(reader, prim, path, any_specifier=parent.any_specifier)
        category = facts.category
        if category is Category.SHADING or category is Category.SUBSET:
            continue
        state = _inherit(walk, facts, parent, path)
        if category is not Category.OTHER and category is not Category.UNKNOWN:
            if parent.owner:
                walk.count_below(owner, facts.type_name)
            else:
                types[path] = facts.type_name
        if parent.instances is None and (
            facts.body or facts.site or facts.light or category is Category.CAMERA or category is Category.LIGHT
        ):
            _take_frames(walk, facts, state)
        if state.draw_mode in draw_modes.DRAWN and not state.hidden and draw_modes.applies(facts.prim):
            _take_stand_in(walk, facts, state)
            state.hidden = True
        if category is Category.POINT_INSTANCER:
            if walk.collisions or _is_drawn(walk, state):
                _walk_instancer(walk, facts, state, stack)
            continue  # prims below an instancer are drawn only through it
        if category in GEOMETRY:
            if _is_read(walk, state):
                _take_mesh(walk, facts, state)
        elif category is Category.SHAPE:
            if _is_read(walk, state):
                _take_shape(walk, facts, state)
        elif category is Category.UNSUPPORTED:
            if _is_read(walk, state):
                message = f"{facts.type_name} prims are not supported yet; it is not drawn"
                walk.diagnostics.warning(path, "unsupported-type", message)
        elif category is Category.UNKNOWN:
            message = f"type '{facts.type_name}' belongs to no schema this process knows; nothing is drawn for the prim itself"
            walk.diagnostics.note(path, "unknown-type", message)
        is_outermost = facts.prototype and parent.entry is None
        if facts.children and (not is_outermost or reader.sizes.can_show(facts.prim, path, owner, walk.budget, diagnostics)):
            chosen = None
            if facts.lod_root and not state.hidden:
                arguments = facts.prim, facts.child_names, state.lod_override, reader.time, path, diagnostics
                chosen = lod.drawn_items(*arguments, placed=state.instances is not None)
                if isinstance(chosen, lod.LodRoot):
                    walk.lods[path] = chosen
            for number in range(len(facts.children) - 1, -1, -1):
                name = facts.child_names[number]
                own = state if chosen is None else _state_of_item(state, chosen, number, name)
                stack.append((facts.children[number], f"{path}/{name}", own))


def _state_of_item(state: State, chosen: frozenset[str] | lod.LodRoot, number: int, name: str) -> State:
    """What a LOD root passes on to one of its items."""
    if isinstance(chosen, lod.LodRoot):
        return replace(state, lods=(*state.lods, (chosen.path, number, chosen.default)))
    return state if name in chosen else replace(state, hidden=True)


def _is_drawn(walk: Walk, state: State) -> bool:
    purpose = state.purpose or "default"
    return (
        not state.hidden
        and state.visible
        and purpose in walk.purposes
        and (state.purpose_visibility is None or state.purpose_visibility.get(purpose, True))
    )


def _is_read(walk: Walk, state: State) -> bool:
    return _is_drawn(walk, state) or (walk.collisions and bool(state.collision))


def _is_visual(walk: Walk, state: State) -> bool:
    """Of what is read: whether it is drawn."""
    return not walk.collisions or _is_drawn(walk, state)


def _take_frames(walk: Walk, facts: Facts, state: State) -> None:
    """Bodies, sites, cameras and lights: whatever their visibility."""
    if facts.body:
        state.body = state.path
        walk.bodies[state.path] = (state.matrix, state.articulation)
    if facts.site:
        walk.sites[state.path] = (state.matrix, state.body)
    if facts.category is Category.CAMERA:
        walk.cameras[state.path] = (state.matrix, state.body)
    if facts.light or facts.category is Category.LIGHT:
        walk.lights[state.path] = (state.matrix, state.body)


def _take_mesh(walk: Walk, facts: Facts, state: State) -> None:
    entry = _mesh_entry(walk, facts, state)
    if entry.diagnostics:
        walk.diagnostics.share(entry.diagnostics, entry.path, state.path, _own_path(facts, state))
    if (entry.built if entry.is_built else entry.raw) is None:
        return
    visual, own_path = _is_visual(walk, state), _own_path(facts, state)
    walk.drawn.append(Drawn(state.path, GeometryKind.MESH, entry, None, state, _double_sided(facts), own_path, visual))


def _take_stand_in(walk: Walk, facts: Facts, state: State) -> None:
    """What is drawn in place of a model and all below it. It follows what is below: its box is that of it all."""
    if not _is_drawn(walk, state):
        return
    owner, told = walk.diagnostics.owner, Diagnostics()
    if walk.reader.sizes.at_and_below(facts.prim) > MOST_PRIMS:
        message = f"the model shows more than {MOST_PRIMS:,} prims by way of the instances in it and has no box; nothing is drawn for it"
        walk.diagnostics.error(state.path, "draw-mode", message)
        return
    walk.contents.append((state.path if not state.owner else str(facts.prim.GetPath()), owner))
    for below in Usd.PrimRange(facts.prim, Usd.TraverseInstanceProxies()):
        if below.IsA(UsdGeom.PointInstancer):
            walk.contents += [(str(target), owner) for target in below.GetRelationship("prototypes").GetTargets()]
    if walk.boxes is None:
        walk.boxes = draw_modes.Boxes(walk.reader.time)
    found = draw_modes.read_stand_in(facts.prim, state.draw_mode, walk.boxes, walk.images, state.path, told)
    if told:
        walk.diagnostics.share(told, state.path, state.path, _own_path(facts, state))
    if found is None:
        return
    entry = MeshEntry(state.path, raw=found.raw)
    walk.meshes.add(entry)
    walk.materials.update((material.path, material) for material in found.materials)
    plain = replace(state, constants={"displayColor": found.color}, binder="", collections=False, collision=None)
    drawn = Drawn(state.path, GeometryKind.MESH, entry, None, plain, False, _own_path(facts, state))
    drawn.one_sided = state.draw_mode == "cards"  # as in Hydra: two stand back to back
    drawn.materials = tuple(material.path for material in found.materials)
    walk.drawn.append(drawn)


def _mesh_entry(walk: Walk, facts: Facts, state: State) -> MeshEntry:
    """The mesh of a prim: as read before, by this walk at the first of all instances, or now."""
    inherited_normals = state.constants.get("normals")
    time, path = walk.reader.time, _own_path(facts, state)
    skin = _skin(walk, facts, state)
    inherited_widths = _inherited_widths(facts, state)
    pose = skin, *[None if value is None else value.tobytes() for value in (inherited_normals, inherited_widths)]
    if skin is not None and pose in walk.skinned:
        return walk.skinned[pose]
    is_kept = inherited_normals is None and inherited_widths is None and skin is None
    entry = walk.geometry.get(path) if is_kept else None
    if entry is not None and entry.has_new_points:
        points = read_points(facts.prim, facts.names, time)
        entry = entry if isinstance(points, np.ndarray) and move_points(entry, points) else None
    if entry is not None:
        entry.has_new_points = False
        return entry
    told = Diagnostics()
    entry = MeshEntry(state.path)

    def deform(raw: RawMesh) -> None:
        if skin is not None:
            skin.told.clear()
            skin.deform(raw)
            told.share(skin.told, skin.path, state.path, _own_path(facts, state))

    own = facts.prim, facts.names, facts.varying, facts.subsets
    arguments = *own, inherited_normals, time, state.path, told
    if facts.category is Category.POINTS:
        _take_built(entry, read_balls(*own, inherited_widths, time, state.path, told, deform=deform))
        found = None
    elif facts.category in CURVES:
        _take_built(entry, read_curves(*own, facts.category, inherited_normals, inherited_widths, time, state.path, told, deform=deform))
        found = None
    elif facts.category is Category.PATCH:
        found = read_patch(*arguments, deform=deform)
    else:
        found = (read_tets if facts.category is Category.TETS else read_mesh)(*arguments)
        if found is not None:
            deform(found[0])
    if found is not None:
        entry.raw, entry.scheme, entry.slots = found[0], found[0].scheme, found[1].slots
        walk.meshes.add(entry)
    if told:
        entry.diagnostics = tuple(told)
    if is_kept:
        walk.geometry[path] = entry
    elif skin is not None:
        walk.skinned[pose] = entry
    return entry


def _take_built(entry: MeshEntry, found: tuple[MeshGeometry, Subsets] | None) -> None:
    """What points and curves are read as needs nothing more."""
    entry.is_built = True
    if found is not None:
        entry.built, entry.slots = found[0], found[1].slots


def _inherited_widths(facts: Facts, state: State) -> np.ndarray | None:
    """Constant `primvars:widths` from above of what has widths."""
    if facts.category is not Category.POINTS and facts.category not in CURVES:
        return None
    return state.constants.get("widths") if facts.constants is None or "widths" not in facts.constants else None


def _skin(walk: Walk, facts: Facts, state: State) -> Skin | None:
    """How a prim is deformed; None: not at all."""
    if not state.skel_root and not facts.asks_for_skinning:
        return None
    skin = walk.skinning.bind(facts.prim, facts.names, state.path, state.skel_root)
    depends = walk.skinning.dependences.get(state.path)
    if depends is not None:
        walk.sources += [(path, state.owner or state.path) for path in depends.paths]
    return skin


def _move_rigidly(walk: Walk, facts: Facts, state: State) -> None:
    """What has no points of its own moves as a whole with the joint it is bound to, and what is below it too."""
    skin = _skin(walk, facts, state)
    moved = None if skin is None else skin.transform()
    if skin is not None and len(skin.told):
        walk.diagnostics.share(skin.told, skin.path, state.path, _own_path(facts, state))
    if moved is not None:
        state.matrix = moved * state.matrix


def _own_path(facts: Facts, state: State) -> str:
    """Where a prim's own opinions are: in native prototypes and those of point instancers not where it is drawn."""
    return state.path if state.entry is None and not state.owner else str(facts.prim.GetPath())


def _take_shape(walk: Walk, facts: Facts, state: State) -> None:
    shape = shapes.read_shape(facts.prim, facts.drawn_as or facts.type_name, facts.names, walk.reader.time, state.path, walk.diagnostics)
    if shape is None:
        return
    _move_rigidly(walk, facts, state)
    for name, interpolated in facts.varying:  # a shape has no points or faces to vary over: one value is a constant
        value = primvars.read_constant(facts.prim, name, walk.reader.time, state.path, walk.diagnostics, interpolated)
        if value is not None:
            state.constants = {**state.constants, name[len(primvars.PREFIX) :]: value}
    double_sided = _double_sided(facts, shape.kind is GeometryKind.PLANE)
    walk.drawn.append(Drawn(state.path, shape.kind, None, shape, state, double_sided, visual=_is_visual(walk, state)))


def _double_sided(facts: Facts, fallback: bool = False) -> bool:
    value = facts.prim.GetAttribute("doubleSided").Get() if "doubleSided" in facts.names else None
    return fallback if value is None else bool(value)


def _walk_instancer(walk: Walk, facts: Facts, state: State, stack: list[tuple[Usd.Prim, str, State]]) -> None:
    """Put the roots of the instancer's prototypes on the stack, each with the instances that draw it."""
    reader = walk.reader
    owner, own_path = walk.diagnostics.owner, _own_path(facts, state)
    if own_path not in walk.geometry:
        told = Diagnostics()
        data = read_instancer(facts.prim, facts.varying, reader.time, state.path, told)
        walk.geometry[own_path] = data, tuple(told), state.path
    data, told, told_at = walk.geometry[own_path]
    if data is not None and data.through:  # what these lead to is looked up anew with every walk
        walk.geometry.pop(own_path)
        walk.sources += [(path, owner) for path in data.through]
    if told:
        walk.diagnostics.share(told, told_at, state.path, own_path)
    if data is None:
        return
    _move_rigidly(walk, facts, state)
    world = columns_from_gf([state.matrix])[0]
    outer = state.instances
    if outer is not None:
        if not state.expansion.may_nest(outer, data.count, state.path, walk.budget, walk.diagnostics):
            return
        world = outer.world @ world
    walk.contents += [(str(target), owner) for target in data.targets]
    state.expansion = state.expansion or Expansion(state.path, owner)
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
        above = _prototype_state(walk, prim, facts, state, instances, owner)
        stack.append((prim, f"{above.path}/{prim.GetName()}", above))


def _prototype_state(walk: Walk, prim: Usd.Prim, instancer: Facts, state: State, instances: Instances, owner: str) -> State:
    """The state of a prototype root's parent. Primvars and purpose follow the namespace, as everywhere in USD; visibility and
    transforms between the instancer and the root do not count, its own do."""
    path = prim.GetPath()
    above = instancer.prim.GetPath()
    if path.HasPrefix(above):
        parent = state
    elif state.entry is not None and path.HasPrefix(state.prototype):
        parent, above = state.entry, Sdf.Path(state.prototype)
    else:
        parent, above = root_state(), Sdf.Path.absoluteRootPath
    for step in path.GetParentPath().GetPrefixes():
        if step != above and step.HasPrefix(above):
            between = walk.reader.stage.GetPrimAtPath(step)
            name = f"{parent.path}/{step.name}"
            parent = _inherit(walk, read_facts(walk.reader, between, name, any_specifier=True), parent, name)
    return State(
        parent.path,
        Gf.Matrix4d(1.0),
        _is_visual(walk, state),  # what an instancer that is not drawn places is read for its colliders alone
        parent.purpose or state.purpose,
        parent.purpose_visibility,
        state.body,
        state.articulation,
        state.collision if parent.collision is None else parent.collision,
        parent.constants,
        parent.binder,
        parent.collections,
        instances,
        parent.entry,
        parent.prototype,
        state.any_specifier or prim.IsAbstract() or not prim.IsDefined(),
        owner,
        parent.skel_root,
        parent.draw_mode,
        lod_override=parent.lod_override,
        expansion=state.expansion,
        lods=state.lods,
    )
