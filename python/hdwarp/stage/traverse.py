"""stage.traverse: the walk over a stage or a part of it, inherited state carried down. Paths in; no matrices turned, nothing built."""

from __future__ import annotations

from dataclasses import replace

from pxr import Gf, Sdf, Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage import draw_modes, lod
from hdwarp.stage.expansion import Expansion
from hdwarp.stage.facts import GEOMETRY, Category, Facts, read_facts
from hdwarp.stage.instancers import Instances, place, read_instancer
from hdwarp.stage.open import UNREADABLE, plain_text
from hdwarp.stage.take import move_rigidly, take_frames, take_mesh, take_shape, take_stand_in
from hdwarp.stage.transforms import columns_from_gf
from hdwarp.stage.walk import IDENTITY, State, Walk, is_drawn, is_read, is_visual, path_of_its_own, root_state


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
        if walk.draw_modes and state.draw_mode in draw_modes.DRAWN and draw_modes.applies(facts.prim):
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
        matrix = facts.local if facts.resets or matrix is IDENTITY else facts.local * matrix
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
        parent.visible and (facts.visible or parent.shows_items),
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
            take_frames(walk, facts, state)
        elif facts.light or category is Category.LIGHT:
            message = "lights that point instancers place are not supported; it is off. Place it outside, or by native instances"
            diagnostics.warning(path, "light-in-instancer", message)
        if walk.draw_modes and state.draw_mode in draw_modes.DRAWN and not state.hidden and draw_modes.applies(facts.prim):
            take_stand_in(walk, facts, state)
            state.hidden = True
        if category is Category.POINT_INSTANCER:
            if walk.collisions or is_drawn(walk, state):
                _walk_instancer(walk, facts, state, stack)
            continue  # prims below an instancer are drawn only through it
        if category in GEOMETRY:
            if is_read(walk, state):
                take_mesh(walk, facts, state)
        elif category is Category.SHAPE:
            if is_read(walk, state):
                take_shape(walk, facts, state)
        elif category is Category.UNSUPPORTED:
            if is_read(walk, state):
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
                empty = lod.tell_empty_items(facts.children, facts.child_names, path, diagnostics)
                walk.contents += [(item, owner) for item in empty]  # what comes there is looked for anew
            for number in range(len(facts.children) - 1, -1, -1):
                name = facts.child_names[number]
                own = state if chosen is None else _state_of_item(state, chosen, number, name)
                stack.append((facts.children[number], f"{path}/{name}", own))


def _state_of_item(state: State, chosen: frozenset[str] | lod.LodRoot, number: int, name: str) -> State:
    """What a LOD root passes on to one of its items. The visibility of items is for renderers that know no LOD: USD's own advice is to
    author all but the default one invisible."""
    if isinstance(chosen, lod.LodRoot):
        return replace(state, shows_items=True, lods=(*state.lods, (chosen.path, number, chosen.default)))
    return replace(state, shows_items=True) if name in chosen else replace(state, hidden=True)


def _walk_instancer(walk: Walk, facts: Facts, state: State, stack: list[tuple[Usd.Prim, str, State]]) -> None:
    """Put the roots of the instancer's prototypes on the stack, each with the instances that draw it."""
    reader = walk.reader
    owner, own_path = walk.diagnostics.owner, path_of_its_own(facts, state)
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
    move_rigidly(walk, facts, state)
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
        is_visual(walk, state),  # what an instancer that is not drawn places is read for its colliders alone
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
