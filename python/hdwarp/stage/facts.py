"""stage.facts: what one prim says itself, before anything is inherited. Inside native instances read once for all instances."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, auto

import numpy as np
from pxr import Gf, Tf, Usd, UsdGeom, UsdLux, UsdShade, UsdSkel, Vt

from hdwarp.errors import Diagnostic, Diagnostics
from hdwarp.stage import draw_modes, lod, primvars
from hdwarp.stage.expansion import Sizes
from hdwarp.stage.open import plain_text
from hdwarp.stage.shapes import SHAPE_TYPES
from hdwarp.stage.skinning import asks_for_skinning
from hdwarp.stage.spec import PURPOSES

_KNOWN_PURPOSES = (*PURPOSES, None)  # None: blocked
# Of marked frames; all but the first are known by name alone where their plugins are not installed.
_SITE_SCHEMAS = frozenset(("HdWarpSiteAPI", "NewtonSiteAPI", "MjcSiteAPI"))
_AFFINE = Gf.Vec4d(0.0, 0.0, 0.0, 1.0)


class Category(IntEnum):
    """What the adapter does with a type of prim."""

    OTHER = auto()  # nothing to draw, not imageable
    IMAGEABLE = auto()  # nothing to draw of its own: Xform, Scope, SkelRoot, joints
    MESH = auto()
    TETS = auto()
    PATCH = auto()
    POINTS = auto()
    BASIS_CURVES = auto()
    HERMITE_CURVES = auto()
    NURBS_CURVES = auto()
    SHAPE = auto()
    POINT_INSTANCER = auto()
    CAMERA = auto()
    LIGHT = auto()
    SUBSET = auto()
    SHADING = auto()  # materials and shaders: nothing below them is drawn
    UNSUPPORTED = auto()  # would draw something
    UNKNOWN = auto()  # typed, but by a schema this process does not know


WITH_FACES = (Category.MESH, Category.TETS)  # what GeomSubsets can take faces of
CURVES = (Category.BASIS_CURVES, Category.HERMITE_CURVES, Category.NURBS_CURVES)
GEOMETRY = (*WITH_FACES, Category.PATCH, Category.POINTS, *CURVES)  # what has a MeshGeometry


class Facts:
    """One prim's own opinions. None, empty or False: it has none. Class attributes are the defaults: most prims say very little, and a
    stage has many of them."""

    names: Collection[str] = ()  # authored properties; all it has where its type is not one of USD's own
    drawn_as = ""  # the type of USD's that it derives from, where it is not that itself
    asks_for_skinning = False
    local: Gf.Matrix4d | None = None
    resets = False  # !resetXformStack!
    visible = True
    purpose: str | None = None
    purpose_visibility: dict[str, bool] | None = None  # of VisibilityAPI
    constants: dict[str, np.ndarray | None] | None = None  # None as a value: a non-constant primvar hides the inherited constant
    varying: Sequence[tuple[str, str]] = ()  # non-constant primvars: (name, interpolation)
    bindings = 0  # 0: no material binding; 1: direct; 2: a collection as well
    body = False
    articulation = False
    collision: bool | None = None  # None: no CollisionAPI of its own
    site = False
    light = False
    draw_mode = ""  # model:drawMode, "" where it leaves it to what is above
    lod_root = False
    lod_override: lod.Override | None = None
    prototype = ""  # path of the native prototype whose children stand in for this instance's
    children: Sequence[Usd.Prim] = ()
    child_names: Sequence[str] = ()  # asked for together: a name each costs as much as a whole list
    subsets: Sequence[Usd.Prim] = ()
    told: Sequence[Diagnostic] = ()  # of prims in native prototypes: what reading them found
    told_at = ""

    def __init__(self, prim: Usd.Prim, category: Category, type_name: str, xformable: bool) -> None:
        self.prim, self.category, self.type_name, self.xformable = prim, category, type_name, xformable


@dataclass(slots=True, eq=False)
class FactReader:
    """What reading facts needs to know, and what it has seen."""

    stage: Usd.Stage
    time: Usd.TimeCode
    diagnostics: Diagnostics
    xforms: UsdGeom.XformCache
    predicate: object
    has_instances: bool
    categories: dict[str, tuple[Category, bool, str]] = field(default_factory=dict)
    kept: dict[tuple[str, bool], Facts] = field(default_factory=dict)
    properties: dict[tuple[str, ...], Properties] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=Sizes)


class Properties:
    """Names of authored properties, and what follows from them alone: most prims of a stage share them with others."""

    __slots__ = ("asks_for_skinning", "has_matrix", "has_order", "names", "sound_order", "telling")

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)
        self.telling = tuple(name for name in names if name not in _SILENT)
        self.has_order = "xformOpOrder" in self.names
        self.has_matrix = any(name.startswith("xformOp:transform") for name in names)
        self.asks_for_skinning = asks_for_skinning(names)
        self.sound_order: Vt.TokenArray | None = None  # an xformOpOrder that names no others


_SHAPES = {name: getattr(UsdGeom, name) for name in SHAPE_TYPES}
_KNOWN_TYPES = {  # of what is drawn as its type says
    Category.MESH: "Mesh",
    Category.TETS: "TetMesh",
    Category.PATCH: "NurbsPatch",
    Category.POINTS: "Points",
    Category.BASIS_CURVES: "BasisCurves",
    Category.HERMITE_CURVES: "HermiteCurves",
    Category.NURBS_CURVES: "NurbsCurves",
}
# Properties that say nothing to what is below a prim: read where its geometry is read.
_SILENT = frozenset(
    ("points", "faceVertexCounts", "faceVertexIndices", "extent", "normals", "subdivisionScheme", "doubleSided", "orientation")
    + ("xformOpOrder", "xformOp:translate", "xformOp:transform", "xformOp:scale", "xformOp:rotateXYZ", "xformOp:orient")
)

# Prototypes of point instancers may be overs or classes, whose children count as undefined or abstract too.
ANY_SPECIFIER = Usd.PrimIsActive & Usd.PrimIsLoaded


def read_facts(reader: FactReader, prim: Usd.Prim, path: str, *, any_specifier: bool = False, children: bool = True) -> Facts:
    """The facts of ``prim``, which is no instance proxy; ``path`` is what diagnostics call it. Kept for prims in native prototypes.
    ``children=False`` leaves the children out: a prim can have very many."""
    if reader.has_instances and prim.IsInPrototype():
        key = (str(prim.GetPath()), any_specifier)
        facts = reader.kept.get(key)
        if facts is None:
            log = Diagnostics()
            facts = reader.kept[key] = _read(replace(reader, diagnostics=log), prim, path, any_specifier, True)
            facts.told, facts.told_at = tuple(log), path
        if facts.told:
            reader.diagnostics.share(facts.told, facts.told_at, path, key[0])
        return facts
    return _read(reader, prim, path, any_specifier, children)


def _read(reader: FactReader, prim: Usd.Prim, path: str, any_specifier: bool, with_children: bool) -> Facts:
    info = prim.GetPrimTypeInfo()
    type_name = info.GetTypeName()
    found = reader.categories.get(type_name)
    if found is None:
        found = reader.categories[type_name] = categorise(prim, type_name)
    facts = Facts(prim, found[0], type_name, found[1])
    if found[2] != type_name:
        facts.drawn_as = found[2]
    applied = info.GetAppliedAPISchemas()
    if applied:
        _read_applied(reader, facts, prim, applied, path)
    if facts.category is Category.SHADING:
        return facts
    names = prim.GetAuthoredPropertyNames()
    try:
        if names:
            key = tuple(names)
            properties = reader.properties.get(key)
            if properties is None:
                properties = reader.properties[key] = Properties(names)
            facts.names = properties.names
            if properties.asks_for_skinning:
                facts.asks_for_skinning = True
            if properties.telling:
                _read_telling(reader, facts, prim, properties.telling, path)
            if properties.has_order and facts.xformable:
                _read_local(reader, facts, prim, properties, path)
        if facts.drawn_as:
            facts.names = frozenset(prim.GetPropertyNames())  # its schema may have fallbacks of its own
    except Tf.ErrorException as error:
        reader.diagnostics.error(path, "unreadable", f"{plain_text(error)}; this part of the prim is left out")
    if reader.has_instances and prim.IsInstance():
        prototype = prim.GetPrototype()
        facts.prototype = str(prototype.GetPath())
        facts.children = prototype.GetFilteredChildren(reader.predicate)
        facts.child_names = prototype.GetFilteredChildrenNames(reader.predicate)
    elif with_children:
        predicate = ANY_SPECIFIER if any_specifier else reader.predicate
        children = prim.GetFilteredChildren(predicate)
        if children:
            facts.children = children
            facts.child_names = prim.GetFilteredChildrenNames(predicate)
    if facts.children and facts.category in GEOMETRY:
        facts.subsets = [child for child in facts.children if child.IsA(UsdGeom.Subset)]
    return facts


def _read_applied(reader: FactReader, facts: Facts, prim: Usd.Prim, applied: list[str], path: str) -> None:
    if "PhysicsRigidBodyAPI" in applied:
        facts.body = prim.GetAttribute("physics:rigidBodyEnabled").Get(reader.time) is not False
    if "PhysicsCollisionAPI" in applied:  # a MeshCollisionAPI alone collides with nothing
        facts.collision = prim.GetAttribute("physics:collisionEnabled").Get(reader.time) is not False
    facts.articulation = "PhysicsArticulationRootAPI" in applied
    facts.site = not _SITE_SCHEMAS.isdisjoint(applied)  # names as authored, be the schemas known to this process or not
    facts.light = "LightAPI" in applied or "MeshLightAPI" in applied or "VolumeLightAPI" in applied
    if "LODRootAPI" in applied:
        facts.lod_root = True
    if "LODOverrideAPI" in applied:
        facts.lod_override = lod.read_override(prim, reader.time, path, reader.diagnostics)
    plates = [name.partition(":")[2] for name in applied if name.startswith("BackPlateAPI")]
    if plates:
        message = f"back plates are not supported yet; {', '.join(plates)} is not drawn"
        reader.diagnostics.warning(path, "unsupported-api", message)


def _read_telling(reader: FactReader, facts: Facts, prim: Usd.Prim, names: Sequence[str], path: str) -> None:
    time = reader.time
    imageable = facts.category is not Category.OTHER
    for name in names:
        if name.startswith("primvars:"):
            if primvars.is_primvar(name):
                _read_primvar(reader, facts, prim, name, path)
        elif name.startswith("material:binding"):
            facts.bindings = max(facts.bindings, 2 if ":collection" in name else 1)
        elif name == "visibility":
            if imageable:
                value = prim.GetAttribute(name).Get(time)
                facts.visible = value != "invisible"
                if value not in ("inherited", "invisible", None):
                    message = f"visibility is {value!r}; read as inherited. Author inherited or invisible"
                    reader.diagnostics.warning(path, "visibility", message)
        elif name == "purpose":
            if imageable:
                value = prim.GetAttribute(name).Get()
                facts.purpose = value if isinstance(value, str) else None
                if value not in _KNOWN_PURPOSES:
                    effect = "it is ignored" if facts.purpose is None else "nothing asks for it: not drawn, nor what inherits it"
                    message = f"purpose is {value!r}; {effect}. Author one of {', '.join(PURPOSES)}"
                    reader.diagnostics.warning(path, "purpose", message)
        elif name.endswith("Visibility") and name in ("guideVisibility", "proxyVisibility", "renderVisibility"):
            value = prim.GetAttribute(name).Get(time)
            if value in ("visible", "invisible"):
                facts.purpose_visibility = {**(facts.purpose_visibility or {}), name.removesuffix("Visibility"): value == "visible"}
        elif name == "model:drawMode":
            value = prim.GetAttribute(name).Get()
            if value in draw_modes.MODES:
                facts.draw_mode = "" if value == "inherited" else value
            elif value is not None:
                message = f"model:drawMode is {value!r}; read as inherited. Author one of {', '.join(draw_modes.MODES)}"
                reader.diagnostics.warning(path, "draw-mode", message)


def _read_local(reader: FactReader, facts: Facts, prim: Usd.Prim, properties: Properties, path: str) -> None:
    order = prim.GetAttribute("xformOpOrder").Get()
    # An array's items are dear in Python, and most prims have the same ones.
    if (properties.sound_order is None or order != properties.sound_order) and order is not None:
        _check_order(reader, order, properties, path)
    facts.local, facts.resets = reader.xforms.GetLocalTransformation(prim)
    if properties.has_matrix:
        _make_affine(reader, facts, path)


def _check_order(reader: FactReader, order: object, properties: Properties, path: str) -> None:
    """Name the ops that xformOpOrder asks for and that are not there: USD passes over them in silence."""
    if not isinstance(order, Vt.TokenArray):
        message = f"xformOpOrder holds {type(order).__name__}, not token[]; no xformOp counts. Author the order anew"
        reader.diagnostics.error(path, "wrong-type", message)
        return
    lost = [op for op in order if op.removeprefix("!invert!") not in properties.names and op != "!resetXformStack!"]
    if lost:
        message = f"xformOpOrder names {', '.join(lost)}, which {'is' if len(lost) == 1 else 'are'} not there; drawn without"
        reader.diagnostics.error(path, "xform-op", f"{message}. Author the op, or take it out of the order")
    else:
        properties.sound_order = order


def _make_affine(reader: FactReader, facts: Facts, path: str) -> None:
    column = facts.local.GetColumn(3)
    if column == _AFFINE or not all(math.isfinite(number) for number in column):
        return
    if (column - _AFFINE).GetLength() > 1e-9:  # an inverse is not exact
        said = ", ".join(f"{number:g}" for number in column)
        message = f"the last column of its transform is ({said}), not (0, 0, 0, 1): projections are not supported, drawn as if it were"
        reader.diagnostics.warning(path, "projective-transform", f"{message}. Author an affine matrix")
    facts.local = Gf.Matrix4d(facts.local)
    facts.local.SetColumn(3, _AFFINE)


def _read_primvar(reader: FactReader, facts: Facts, prim: Usd.Prim, name: str, path: str) -> None:
    attribute = prim.GetAttribute(name)
    if not attribute.HasAuthoredValue():
        return
    interpolated = attribute.GetMetadata("interpolation") or "constant"
    if facts.constants is None:
        facts.constants = {}
    if interpolated == "constant":
        value = primvars.read_constant(prim, name, reader.time, path, reader.diagnostics)
        facts.constants[name[len(primvars.PREFIX) :]] = value
    else:
        facts.constants[name[len(primvars.PREFIX) :]] = None
        facts.varying = (*facts.varying, (name, interpolated))


def categorise(prim: Usd.Prim, type_name: str) -> tuple[Category, bool, str]:
    """(category, xformable, name of the type it is drawn as) of a prim type. Types of other schemas are what they derive from."""
    category, xformable = _category(prim, type_name)
    if category is Category.SHAPE:
        return category, xformable, type_name if type_name in SHAPE_TYPES else _shape_type(prim)
    if category is Category.IMAGEABLE and prim.IsA(UsdSkel.Root):
        return category, xformable, "SkelRoot"
    return category, xformable, _KNOWN_TYPES.get(category, type_name)


def _shape_type(prim: Usd.Prim) -> str:
    """The shape that a type derives from; "": from none."""
    return next((name for name, schema in _SHAPES.items() if prim.IsA(schema)), "")


def _category(prim: Usd.Prim, type_name: str) -> tuple[Category, bool]:
    xformable = prim.IsA(UsdGeom.Xformable)
    if not type_name:
        return Category.OTHER, False
    if not prim.GetPrimTypeInfo().GetSchemaTypeName():
        return Category.UNKNOWN, False
    if prim.IsA(UsdShade.NodeGraph) or prim.IsA(UsdShade.Shader):  # a Material is a NodeGraph
        return Category.SHADING, False
    if type_name in SHAPE_TYPES or _shape_type(prim):
        return Category.SHAPE, xformable
    for schema, category in (
        (UsdGeom.Mesh, Category.MESH),
        (UsdGeom.TetMesh, Category.TETS),
        (UsdGeom.NurbsPatch, Category.PATCH),
        (UsdGeom.Points, Category.POINTS),
        (UsdGeom.BasisCurves, Category.BASIS_CURVES),
        (UsdGeom.HermiteCurves, Category.HERMITE_CURVES),
        (UsdGeom.NurbsCurves, Category.NURBS_CURVES),
        (UsdGeom.PointInstancer, Category.POINT_INSTANCER),
        (UsdGeom.Camera, Category.CAMERA),
        (UsdGeom.Subset, Category.SUBSET),
        (UsdLux.BoundableLightBase, Category.LIGHT),
        (UsdLux.NonboundableLightBase, Category.LIGHT),
        (UsdGeom.Gprim, Category.UNSUPPORTED),
    ):
        if prim.IsA(schema):
            return category, xformable
    if type_name in ("PluginLight", "PortalLight", "LightFilter"):
        return (Category.IMAGEABLE if type_name == "LightFilter" else Category.LIGHT), xformable
    if prim.IsA(UsdGeom.Boundable) and not prim.IsA(UsdSkel.Root) and not prim.IsA(UsdSkel.Skeleton):
        return Category.UNSUPPORTED, xformable
    return (Category.IMAGEABLE if prim.IsA(UsdGeom.Imageable) else Category.OTHER), xformable
