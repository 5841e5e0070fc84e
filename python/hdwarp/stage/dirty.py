"""stage.dirty: what Usd says has changed -> which parts of a stage to read again, and what of them can be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from pxr import Sdf, Usd, UsdGeom, UsdShade

from hdwarp.stage.changes import METADATA, StageEdits
from hdwarp.stage.facts import WITH_FACES, Category, categorise
from hdwarp.stage.path_map import PathMap

# Properties that say nothing about arrays of geometry: those are kept.
_PLACING = (
    "xformOp",
    "visibility",
    "purpose",
    "material:binding",
    "guideVisibility",
    "proxyVisibility",
    "renderVisibility",
    "doubleSided",
    "physics:rigidBodyEnabled",
    "physics:collisionEnabled",
    "extent",
)
# What a light, or a gprim that shines, says of its light.
_LIGHTING = ("inputs:", "light:", "treatAs", "poleAxis", "collection:lightLink", "collection:shadowLink")
_INERT = ("userProperties:", "ui:")  # but on cameras, which hand on every attribute
# What a prim hands down, or what counts on any type of prim.
_HANDED_DOWN = (*_PLACING[:-1], "primvars:", "skel:", "model:", "lod:", "extent", "collection:", "colorSpace:", METADATA)
_POINTS = frozenset(("points", "extent", "velocities", "accelerations"))
# Relationships that bind no material, nor are a step on the way to one.
_OTHER_RELATIONSHIPS = (
    "prototypes",
    "proxyPrim",
    "skel:",
    "physics:",
    "camera",
    "products",
    "orderedVars",
    "light:",
    "field:",
    "semantics:",
)
_PROTOTYPE = "/__Prototype_"
_MOST_PLACES, _MOST_NESTED, _TOO_DEEP = 10_000, 100, ""


@dataclass(slots=True)
class DirtyParts:
    """What to read again."""

    everything: bool = False  # keep nothing
    metrics: bool = False  # what is said of the stage as a whole
    roots: set[str] = field(default_factory=set)  # walk these subtrees anew
    geometry: set[str] = field(default_factory=set)  # forget the arrays of these subtrees
    prims: set[str] = field(default_factory=set)  # and of these very prims
    constants: dict[str, set[str]] = field(default_factory=dict)  # meshes whose primvars of these names are constant now
    new_points: set[str] = field(default_factory=set)  # of these prims nothing but the points is new
    bindings: set[str] = field(default_factory=set)  # forget which materials are bound in these subtrees
    materials: bool = False  # read the materials again

    def __post_init__(self) -> None:
        if self.everything:
            self.metrics = self.materials = True
            self.roots = {"/"}

    def __bool__(self) -> bool:
        return bool(self.everything or self.metrics or self.materials or self.roots)


def dirty_parts(
    stage: Usd.Stage,
    edits: StageEdits,
    contents: PathMap[set[str]],
    sources: PathMap[set[str]],
    materials: Iterable[str],
    nodes: Iterable[str],
    wanted: Callable[[], set[str] | None],
) -> DirtyParts:
    """``contents``: path of a subtree -> paths of what it is drawn by; ``sources``: path of a prim -> paths of what is made from its
    values; ``materials``: paths of the materials that are bound; ``nodes``: what these are made from that is not below them;
    ``wanted``: gives what bindings name, be it there or not, None where that cannot be told."""
    if "/" in edits.resynced:
        return DirtyParts(everything=True)
    parts = DirtyParts()
    for path in edits.resynced | _misnamed(stage, edits):
        parts.metrics = True
        parts.geometry.add(path)
        parts.bindings.update(_places(stage, path))
        _look_for_materials(stage, path, materials, wanted, parts)
        parts.materials |= any(f"{node}/".startswith(f"{path}/") for node in nodes)
        _add_roots(stage, path, parts)
    for path, names in edits.changed.items():
        if path == "/":
            parts.metrics = True
        elif prim := stage.GetPrimAtPath(path):
            _add_changed(stage, prim, path, names, parts)
    users = {user for path in edits.resynced for target in sources.subtree(path) for user in sources[target]}
    users |= {user for path in edits.changed for user in sources.get(path, ())}
    for user in users:
        _add_roots(stage, user, parts)
    todo = [place for path in (*edits.resynced, *edits.changed, *users) for place in _places(stage, path)]
    seen = set(todo)
    while todo:
        for owner in _linked(contents, todo.pop()):
            if owner not in seen:
                seen.add(owner)
                todo.append(owner)
                _add_roots(stage, owner, parts)
    return parts


def _misnamed(stage: Usd.Stage, edits: StageEdits) -> set[str]:
    """After renames Usd sometimes names prims of prototypes by what they were called before. What is above those is looked at whole."""
    found = set()
    for path in edits.changed:
        prefixes = [str(prefix) for prefix in Sdf.Path(path).GetPrefixes()]
        if path != "/" and not stage.GetPrimAtPath(path) and edits.resynced.isdisjoint(prefixes):
            found.update([prefix for prefix in prefixes if stage.GetPrimAtPath(prefix)][-1:])
    return found


def _add_changed(stage: Usd.Stage, prim: Usd.Prim, path: str, names: set[str], parts: DirtyParts) -> None:
    category = categorise(prim, prim.GetTypeName())[0]
    if category is Category.SHADING:
        parts.materials = True
        return
    if any(name.startswith("collection:") for name in names) or any(_may_lead_to_material(prim, name) for name in names):
        parts.bindings.add("/")
        parts.roots.add("/")
    if any(name.startswith("material:binding") for name in names):
        parts.bindings.update(_places(stage, path))
    if category is not Category.CAMERA:
        names = {name for name in names if not name.startswith(_INERT)}
        if not names:
            return
    heavy = {name for name in names if not name.startswith((*_PLACING, *_LIGHTING))}
    if category is Category.LIGHT:
        pass  # whatever it has may be about its light
    elif category in (Category.IMAGEABLE, Category.OTHER, Category.UNKNOWN):
        if not any(name.startswith(_HANDED_DOWN) for name in names) and not _is_subset(prim):
            return
    elif names <= _POINTS and category in WITH_FACES:
        parts.new_points.add(path)
    elif heavy and category in WITH_FACES and all(_is_constant(prim, name) for name in heavy):
        parts.constants[path] = {name.removesuffix(":indices").removeprefix("primvars:") for name in heavy}
    elif heavy:
        parts.prims.add(path)
    _add_roots(stage, path, parts)


def _is_constant(prim: Usd.Prim, name: str) -> bool:
    """Whether a property is a primvar of one value, or a primvar that is gone: no array, unless it was one before."""
    if not name.startswith("primvars:") or name.startswith(("primvars:normals", "primvars:skel:")):
        return False
    attribute = prim.GetAttribute(name.removesuffix(":indices"))
    return not attribute or (attribute.GetMetadata("interpolation") or "constant") == "constant"


def _may_lead_to_material(prim: Usd.Prim, name: str) -> bool:
    """Whether a property is a relationship that a binding could be forwarded through."""
    if name.startswith((METADATA, "material:binding", *_OTHER_RELATIONSHIPS)):
        return False
    return bool(prim.GetRelationship(name))


def _is_subset(prim: Usd.Prim) -> bool:
    return _may_have_subsets(prim.GetParent())


def _may_have_subsets(prim: Usd.Prim) -> bool:
    return prim.IsA(UsdGeom.PointBased)


def _look_for_materials(
    stage: Usd.Stage, path: str, materials: Iterable[str], wanted: Callable[[], set[str] | None], parts: DirtyParts
) -> None:
    """Materials that come or go may be bound anywhere; nodes inside one in use are nobody else's bindings."""
    if any(path.startswith(f"{material}/") for material in materials):
        parts.materials = True
        return
    came: list[str] = []
    if prim := stage.GetPrimAtPath(path):
        parts.materials |= categorise(prim, prim.GetTypeName())[0] is Category.SHADING  # a node that a material leads to
        came = [str(below.GetPath()) for below in Usd.PrimRange(prim, Usd.PrimAllPrimsPredicate) if below.IsA(UsdShade.Material)]
    else:
        parts.materials = True  # such a node may be gone
    rebind = any(material == path or material.startswith(f"{path}/") for material in materials)
    if came and not rebind:
        targets = wanted()
        rebind = targets is None or not targets.isdisjoint(place for material in came for place in _places(stage, material))
    if rebind:
        parts.materials = True
        parts.bindings.add("/")
        parts.roots.add("/")


def _add_roots(stage: Usd.Stage, path: str, parts: DirtyParts) -> None:
    """Where to walk anew for a prim at ``path``, which may be gone."""
    parent = stage.GetPrimAtPath(Sdf.Path(path).GetParentPath())
    if parent and _may_have_subsets(parent):  # a mesh is read with the subsets of its faces
        parts.prims.add(str(parent.GetPath()))
    if parent and "LODRootAPI" in parent.GetAppliedSchemas():  # its children are numbered, and one of them is drawn
        _add_roots(stage, str(parent.GetPath()), parts)
        return
    for place in _places(stage, path):
        root, above = place, None
        for prefix in Sdf.Path(place).GetPrefixes():
            prim = stage.GetPrimAtPath(prefix)
            if not prim:
                break
            if prim.IsInstance() or prim.IsA(UsdGeom.PointInstancer):  # the outermost one is walked as a whole
                root = str(prefix)
                break
            if above is not None and _may_have_subsets(above):
                break
            above = prim
        if above is not None and _may_have_subsets(above) and str(above.GetPath()) != place:  # a subset of its faces
            root = str(above.GetPath())
        parts.roots.add(root)


def _places(stage: Usd.Stage, path: str) -> list[str]:
    """Where on the stage a path is drawn: that of a native prototype wherever it has instances. Numbers of nested ones multiply: where
    there would be very many places, the outermost instances that hold them, which are read as a whole anyway."""
    found = list(islice(_all_places(stage, path, 0), _MOST_PLACES + 1))
    if len(found) <= _MOST_PLACES and _TOO_DEEP not in found:
        return found
    outermost, todo = set(), [path]
    seen = set(todo)
    while todo:
        for instance in _instances(stage, _split(todo.pop())[0]):
            if not instance.startswith(_PROTOTYPE):
                outermost.add(instance)
            elif (root := _split(instance)[0]) not in seen:
                seen.add(root)
                todo.append(root)
    return sorted(outermost)


def _all_places(stage: Usd.Stage, path: str, depth: int) -> Iterator[str]:
    if not path.startswith(_PROTOTYPE):
        yield path
        return
    if depth > _MOST_NESTED:
        yield _TOO_DEEP
        return
    root, below = _split(path)
    for instance in _instances(stage, root):
        for place in _all_places(stage, instance, depth + 1):
            yield _TOO_DEEP if place == _TOO_DEEP else place + below


def _split(path: str) -> tuple[str, str]:
    """A path in a prototype: (that of the prototype, the rest)."""
    end = path.find("/", 1)
    return (path, "") if end < 0 else (path[:end], path[end:])


def _instances(stage: Usd.Stage, prototype: str) -> list[str]:
    prim = stage.GetPrimAtPath(prototype)  # instances of a prototype that is about to go are none
    return [str(instance.GetPath()) for instance in prim.GetInstances() if instance] if prim else []


def _linked(links: PathMap[set[str]], path: str) -> Iterator[str]:
    """What draws ``path``, or something above or below it."""
    if not links:
        return
    above = [str(prefix) for prefix in Sdf.Path(path).GetParentPath().GetPrefixes()] if path != "/" else []
    for target in [*(prefix for prefix in above if prefix in links), *links.subtree(path)]:
        yield from links[target]
