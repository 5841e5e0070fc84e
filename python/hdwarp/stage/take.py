"""stage.take: what a prim is drawn as: meshes and what is kept like them, shapes, stand-ins of models; frames beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pxr import Usd, UsdGeom

from hdwarp.errors import Diagnostics
from hdwarp.stage import draw_modes, primvars, shapes
from hdwarp.stage.columns import GeometryKind, MeshGeometry
from hdwarp.stage.curves import read_curves
from hdwarp.stage.expansion import MOST_PRIMS
from hdwarp.stage.facts import CURVES, Category, Facts
from hdwarp.stage.lights import FoundLight
from hdwarp.stage.mesh_batch import move_points
from hdwarp.stage.meshes import MeshEntry, RawMesh, read_mesh, read_points
from hdwarp.stage.patches import read_patch
from hdwarp.stage.points import read_balls
from hdwarp.stage.skin import Skin
from hdwarp.stage.subsets import Subsets
from hdwarp.stage.tets import read_tets
from hdwarp.stage.walk import Drawn, State, Walk, is_drawn, is_visual, path_of_its_own


def take_frames(walk: Walk, facts: Facts, state: State) -> None:
    """Bodies, sites, cameras and lights: whatever their visibility."""
    if facts.body:
        state.body = state.path
        walk.bodies[state.path] = (state.matrix, state.articulation)
    if facts.site:
        walk.sites[state.path] = (state.matrix, state.body)
    if facts.category is Category.CAMERA:
        walk.cameras[state.path] = (state.matrix, state.body)
    if facts.light or facts.category is Category.LIGHT:
        is_default = all(item == default for _, item, default in state.lods)  # which item a camera chooses does not count
        walk.lights[state.path] = FoundLight(state.matrix, state.body, state.visible and not state.hidden and is_default)


def take_mesh(walk: Walk, facts: Facts, state: State) -> None:
    entry = _mesh_entry(walk, facts, state)
    if entry.diagnostics:
        walk.diagnostics.share(entry.diagnostics, entry.path, state.path, path_of_its_own(facts, state))
    if (entry.built if entry.is_built else entry.raw) is None:
        return
    visual, own_path = is_visual(walk, state), path_of_its_own(facts, state)
    walk.drawn.append(Drawn(state.path, entry, None, state, _double_sided(facts), own_path, visual))


def take_stand_in(walk: Walk, facts: Facts, state: State) -> None:
    """What is drawn in place of a model and all below it. It follows what is below: its box is that of it all."""
    if not is_drawn(walk, state):
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
        walk.diagnostics.share(told, state.path, state.path, path_of_its_own(facts, state))
    if found is None:
        return
    entry = MeshEntry(state.path, raw=found.raw)
    walk.meshes.add(entry)
    walk.materials.update((material.path, material) for material in found.materials)
    plain = replace(state, constants={"displayColor": found.color}, binder="", collections=False, collision=None)
    drawn = Drawn(state.path, entry, None, plain, False, path_of_its_own(facts, state))
    drawn.one_sided = state.draw_mode == "cards"  # as in Hydra: two stand back to back
    drawn.materials = tuple(material.path for material in found.materials)
    walk.drawn.append(drawn)


def _mesh_entry(walk: Walk, facts: Facts, state: State) -> MeshEntry:
    """The mesh of a prim: as read before, by this walk at the first of all instances, or now."""
    inherited_normals = state.constants.get("normals")
    time, path = walk.reader.time, path_of_its_own(facts, state)
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
            told.share(skin.told, skin.path, state.path, path_of_its_own(facts, state))

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


def move_rigidly(walk: Walk, facts: Facts, state: State) -> None:
    """What has no points of its own moves as a whole with the joint it is bound to, and what is below it too."""
    skin = _skin(walk, facts, state)
    moved = None if skin is None else skin.transform()
    if skin is not None and len(skin.told):
        walk.diagnostics.share(skin.told, skin.path, state.path, path_of_its_own(facts, state))
    if moved is not None:
        state.matrix = moved * state.matrix


def take_shape(walk: Walk, facts: Facts, state: State) -> None:
    shape = shapes.read_shape(facts.prim, facts.drawn_as or facts.type_name, facts.names, walk.reader.time, state.path, walk.diagnostics)
    if shape is None:
        return
    move_rigidly(walk, facts, state)
    for name, interpolated in facts.varying:  # a shape has no points or faces to vary over: one value is a constant
        value = primvars.read_constant(facts.prim, name, walk.reader.time, state.path, walk.diagnostics, interpolated)
        if value is not None:
            state.constants = {**state.constants, name[len(primvars.PREFIX) :]: value}
    double_sided = _double_sided(facts, shape.kind is GeometryKind.PLANE)
    source = path_of_its_own(facts, state)
    walk.drawn.append(Drawn(state.path, None, shape, state, double_sided, source, visual=is_visual(walk, state)))


def _double_sided(facts: Facts, fallback: bool = False) -> bool:
    value = facts.prim.GetAttribute("doubleSided").Get() if "doubleSided" in facts.names else None
    return fallback if value is None else bool(value)
