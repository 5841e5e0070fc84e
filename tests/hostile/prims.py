"""Strategies for prims: every concrete type that USD knows, sound templates of what is drawn, and what goes wrong with their values."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from hypothesis import strategies as st
from tests.hostile import values

QUAD = "[(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]"
_RELATIONSHIP = "rel"

# Type -> (attribute or relationship, USD type, sound value): what is drawn if nothing goes wrong.
_LIGHT = [
    ("inputs:intensity", "float", "1"),
    ("inputs:normalize", "bool", "true"),
    ("inputs:color", "color3f", "(1, 1, 1)"),
    ("inputs:colorTemperature", "float", "3000"),
    ("inputs:enableColorTemperature", "bool", "true"),
    ("inputs:shaping:cone:angle", "float", "30"),
    ("inputs:shadow:distance", "float", "3"),
    ("collection:lightLink:includes", _RELATIONSHIP, "</Hostile>"),
]
TEMPLATES: dict[str, list[tuple[str, str, str]]] = {
    "Mesh": [
        ("points", "point3f[]", QUAD),
        ("faceVertexCounts", "int[]", "[3, 3]"),
        ("faceVertexIndices", "int[]", "[0, 1, 2, 0, 2, 3]"),
        ("normals", "normal3f[]", "[(0, 0, 1), (0, 0, 1), (0, 0, 1), (0, 0, 1)]"),
        ("holeIndices", "int[]", "[]"),
        ("subdivisionScheme", "token", '"none"'),
        ("orientation", "token", '"rightHanded"'),
        ("primvars:st", "texCoord2f[]", "[(0, 0), (1, 0), (1, 1), (0, 1)]"),
        ("primvars:displayColor", "color3f[]", "[(1, 0, 0)]"),
    ],
    "TetMesh": [
        ("points", "point3f[]", "[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]"),
        ("tetVertexIndices", "int4[]", "[(0, 1, 2, 3)]"),
        ("surfaceFaceVertexIndices", "int3[]", "[(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]"),
    ],
    "NurbsPatch": [
        ("points", "point3f[]", "[(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1)]"),
        ("uVertexCount", "int", "2"),
        ("vVertexCount", "int", "2"),
        ("uOrder", "int", "2"),
        ("vOrder", "int", "2"),
        ("uKnots", "double[]", "[0, 0, 1, 1]"),
        ("vKnots", "double[]", "[0, 0, 1, 1]"),
        ("uRange", "double2", "(0, 1)"),
        ("pointWeights", "double[]", "[1, 1, 1, 1]"),
        ("trimCurve:counts", "int[]", "[]"),
    ],
    "BasisCurves": [
        ("points", "point3f[]", "[(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]"),
        ("curveVertexCounts", "int[]", "[4]"),
        ("type", "token", '"cubic"'),
        ("basis", "token", '"bezier"'),
        ("wrap", "token", '"nonperiodic"'),
        ("widths", "float[]", "[0.1]"),
    ],
    "NurbsCurves": [
        ("points", "point3f[]", "[(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]"),
        ("curveVertexCounts", "int[]", "[4]"),
        ("order", "int[]", "[4]"),
        ("knots", "double[]", "[0, 0, 0, 0, 1, 1, 1, 1]"),
        ("ranges", "double2[]", "[(0, 1)]"),
        ("widths", "float[]", "[0.1]"),
    ],
    "HermiteCurves": [
        ("points", "point3f[]", "[(0, 0, 0), (1, 0, 0)]"),
        ("tangents", "vector3f[]", "[(1, 0, 0), (0, 1, 0)]"),
        ("curveVertexCounts", "int[]", "[2]"),
        ("widths", "float[]", "[0.1]"),
    ],
    "Points": [("points", "point3f[]", QUAD), ("widths", "float[]", "[0.5, 0.5, 0.5, 0.5]"), ("ids", "int64[]", "[1, 2, 3, 4]")],
    "PointInstancer": [
        ("prototypes", _RELATIONSHIP, "[</Hostile/part>, </Hostile/other>]"),
        ("protoIndices", "int[]", "[0, 1, 0]"),
        ("positions", "point3f[]", "[(0, 0, 0), (2, 0, 0), (0, 2, 0)]"),
        ("orientations", "quath[]", "[(1, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0)]"),
        ("scales", "float3[]", "[(1, 1, 1), (1, 1, 1), (0.5, 0.5, 0.5)]"),
        ("ids", "int64[]", "[5, 6, 7]"),
        ("invisibleIds", "int64[]", "[6]"),
        ("velocities", "vector3f[]", "[(1, 0, 0), (1, 0, 0), (1, 0, 0)]"),
    ],
    "Sphere": [("radius", "double", "1")],
    "Cube": [("size", "double", "2")],
    "Cylinder": [("radius", "double", "1"), ("height", "double", "2"), ("axis", "token", '"Z"')],
    "Cone": [("radius", "double", "1"), ("height", "double", "2"), ("axis", "token", '"Z"')],
    "Capsule": [("radius", "double", "1"), ("height", "double", "2"), ("axis", "token", '"Z"')],
    "Capsule_1": [("radiusTop", "double", "1"), ("radiusBottom", "double", "0.5"), ("height", "double", "2")],
    "Plane": [("width", "double", "2"), ("length", "double", "2"), ("axis", "token", '"Z"'), ("hdwarp:infinite", "bool", "0")],
    "Camera": [
        ("focalLength", "float", "50"),
        ("horizontalAperture", "float", "20"),
        ("verticalAperture", "float", "15"),
        ("clippingRange", "float2", "(0.1, 100)"),
        ("clippingPlanes", "float4[]", "[(0, 0, 1, 5)]"),
    ],
    "GeomSubset": [("indices", "int[]", "[0]"), ("elementType", "token", '"face"'), ("familyName", "token", '"materialBind"')],
    "RenderProduct": [
        ("camera", _RELATIONSHIP, "</Hostile/lens>"),
        ("orderedVars", _RELATIONSHIP, "[</Hostile/var>]"),
        ("resolution", "int2", "(8, 6)"),
        ("pixelAspectRatio", "float", "1"),
        ("dataWindowNDC", "float4", "(0, 0, 1, 1)"),
        ("aspectRatioConformPolicy", "token", '"expandAperture"'),
    ],
    "RenderVar": [("sourceName", "string", '"distance_to_camera"'), ("dataType", "token", '"float"')],
    "RenderSettings": [("products", _RELATIONSHIP, "[</Hostile/product>]"), ("includedPurposes", "token[]", '["default"]')],
    "SphereLight": [("inputs:radius", "float", "1"), *_LIGHT],
    "DistantLight": [("inputs:angle", "float", "1"), *_LIGHT],
    "RectLight": [("inputs:width", "float", "1"), ("inputs:texture:file", "asset", "@none.png@"), *_LIGHT],
    "CylinderLight": [("inputs:length", "float", "1"), ("treatAsLine", "bool", "true"), *_LIGHT],
    "DomeLight_1": [("inputs:texture:format", "token", '"angular"'), ("poleAxis", "token", '"Z"'), *_LIGHT],
    "SkelRoot": [],
    "Skeleton": [
        ("joints", "token[]", '["a", "a/b"]'),
        (
            "bindTransforms",
            "matrix4d[]",
            "[( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1) ), ( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1) )]",
        ),
        (
            "restTransforms",
            "matrix4d[]",
            "[( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1) ), ( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1) )]",
        ),
        ("skel:animationSource", _RELATIONSHIP, "</Hostile/motion>"),
    ],
    "SkelAnimation": [
        ("joints", "token[]", '["a", "a/b"]'),
        ("translations", "float3[]", "[(0, 0, 0), (1, 0, 0)]"),
        ("rotations", "quatf[]", "[(1, 0, 0, 0), (1, 0, 0, 0)]"),
        ("scales", "half3[]", "[(1, 1, 1), (1, 1, 1)]"),
        ("blendShapes", "token[]", '["smile"]'),
        ("blendShapeWeights", "float[]", "[0.5]"),
    ],
    "BlendShape": [("offsets", "vector3f[]", "[(0, 0, 1)]"), ("pointIndices", "int[]", "[1]")],
    "Shader": [
        ("info:id", "token", '"UsdPreviewSurface"'),
        ("inputs:diffuseColor", "color3f", "(1, 0, 0)"),
        ("inputs:opacity", "float", "1"),
        ("inputs:opacityThreshold", "float", "0"),
    ],
    "Material": [],
    "Xform": [],
    "Scope": [],
}

# What any prim may have, and applied schemas that change what it means.
EXTRAS: list[tuple[str, str, str]] = [
    ("visibility", "token", '"inherited"'),
    ("purpose", "token", '"default"'),
    ("extent", "float3[]", "[(-1, -1, -1), (1, 1, 1)]"),
    ("extentsHint", "float3[]", "[(-1, -1, -1), (1, 1, 1)]"),
    ("xformOp:translate", "double3", "(1, 0, 0)"),
    ("xformOp:rotateXYZ", "float3", "(0, 0, 30)"),
    ("xformOp:scale", "float3", "(1, 1, 1)"),
    ("xformOp:orient", "quatf", "(1, 0, 0, 0)"),
    ("xformOp:transform", "matrix4d", "( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1) )"),
    ("doubleSided", "bool", "1"),
    ("primvars:displayColor", "color3f[]", "[(0, 1, 0)]"),
    ("primvars:displayOpacity", "float[]", "[0.5]"),
    ("primvars:normals", "normal3f[]", "[(0, 0, 1)]"),
    ("primvars:st:indices", "int[]", "[0, 1, 2, 3]"),
    ("primvars:heat", "float", "1"),
    ("primvars:skel:jointIndices", "int[]", "[0, 0, 0, 0]"),
    ("primvars:skel:jointWeights", "float[]", "[1, 1, 1, 1]"),
    ("skel:skeleton", _RELATIONSHIP, "</Hostile/bones>"),
    ("skel:blendShapes", "token[]", '["smile"]'),
    ("skel:blendShapeTargets", _RELATIONSHIP, "</Hostile/smile>"),
    ("material:binding", _RELATIONSHIP, "</Hostile/paint>"),
    ("material:binding:collection:all", _RELATIONSHIP, "[</Hostile.collection:all>, </Hostile/paint>]"),
    ("collection:all:includes", _RELATIONSHIP, "[</Hostile>, </Hostile.collection:all>]"),
    ("collection:all:expansionRule", "token", '"expandPrims"'),
    ("collection:all:membershipExpression", "pathExpression", '"//"'),
    ("outputs:surface.connect", "token", "</Hostile/paint/shader.outputs:surface>"),
    ("inputs:file.connect", "asset", "</Hostile/paint.inputs:file>"),
    ("proxyPrim", _RELATIONSHIP, "</Hostile>"),
    ("physics:rigidBodyEnabled", "bool", "1"),
    ("model:drawMode", "token", '"bounds"'),
    ("model:applyDrawMode", "bool", "1"),
    ("model:drawModeColor", "float3", "(1, 1, 0)"),
    ("model:cardGeometry", "token", '"cross"'),
    ("lod:default:index", "int", "0"),
    ("lod:override:mode", "token", '"indexedLOD"'),
    ("lod:override:index", "float", "1"),
]
SCHEMAS = (
    *("MaterialBindingAPI", "SkelBindingAPI", "GeomModelAPI", "LODRootAPI", "LODOverrideAPI", "PhysicsRigidBodyAPI", "PhysicsCollisionAPI"),
    *("PhysicsArticulationRootAPI", "CollectionAPI:all", "LightAPI", "HdWarpSiteAPI", "HdWarpCameraAPI", "VisibilityAPI", "NoSuchAPI"),
    *("BackPlateAPI:x", "MotionAPI", "CollectionAPI", "PhysicsMassAPI", "ShapingAPI"),
)
KINDS = ("component", "group", "assembly", "subcomponent", "nonsense")
INTERPOLATIONS = ("constant", "uniform", "varying", "vertex", "faceVarying", "instance", "nonsense")
PLACES = (
    *("</Hostile>", "</Hostile/part>", "</Hostile/other>", "</World>", "</World/many/cone>", "</World/Looks/paint>", "</nowhere>"),
    *("</Hostile/many>", "</Hostile/part.radius>", "</Hostile/part.rel>", "</Hostile/bones>", "</cam>", "</Hostile/paint>"),
)


@functools.cache
def schema_properties() -> dict[str, list[tuple[str, str]]]:
    """(name, type) of all properties of every concrete type that this USD knows; "rel" for relationships."""
    from pxr import Tf, Usd

    registry, found = Usd.SchemaRegistry(), {}
    for schema in Tf.Type.FindByName("UsdTyped").GetAllDerivedTypes():
        name = registry.GetConcreteSchemaTypeName(schema)
        if not name:
            continue
        definition = registry.FindConcretePrimDefinition(name)
        pairs = [(item, definition.GetSchemaAttributeSpec(item)) for item in definition.GetPropertyNames()]
        found[name] = [(item, str(spec.typeName) if spec else _RELATIONSHIP) for item, spec in pairs]
    return dict(sorted(found.items()))


@dataclass
class Prim:
    """A prim to be: properties by name, each as the lines that author it."""

    type_name: str
    name: str
    properties: dict[str, str] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)

    def text(self) -> str:
        about = f" (\n    {chr(10).join(self.metadata)}\n)" if self.metadata else ""
        lines = [f'def {self.type_name} "{self.name}"{about}'.replace("  ", " "), "{"]
        for item in (*self.properties.values(), *self.children):
            lines += ["    " + line for line in item.splitlines()]
        return "\n".join([*lines, "}"])


def line_of(name: str, kind: str, value: str | None, metadata: str = "") -> str:
    if kind == _RELATIONSHIP:
        return f"rel {name} = {value}"
    return f"{kind} {name}" + ("" if value is None else f" = {value}") + metadata


@st.composite
def _mutated(draw: st.DrawFn, name: str, kind: str, value: str) -> str:
    """The lines of one property gone wrong."""
    how = draw(st.sampled_from(("value", "value", "value", "type", "samples", "block", "both", "target")))
    interpolation = ""
    if name.startswith("primvars:") or name in ("normals", "widths"):
        interpolation = f' (interpolation = "{draw(st.sampled_from(INTERPOLATIONS))}")' if draw(st.booleans()) else ""
    if kind == _RELATIONSHIP or name.endswith(".connect"):
        places = [place for place in PLACES if name not in ("camera", "prototypes") or not place.startswith(("</World", "</cam"))]
        targets = ", ".join(draw(st.lists(st.sampled_from(places), max_size=4, unique=True)))
        if how == "type" and kind == _RELATIONSHIP:
            other, text = draw(values.any_typed())
            return line_of(name, other, text)
        return line_of(name, kind, f"[{targets}]" if targets else "None")
    if kind in values.WITHOUT_VALUES:
        return line_of(name, kind, None)
    if how == "type":
        other, text = draw(values.any_typed())
        return line_of(name, other, text, interpolation)
    if how == "samples":
        return line_of(f"{name}.timeSamples", kind, draw(values.samples(kind)))
    if how == "block":
        return line_of(name, kind, "None")
    if how == "both":
        return line_of(name, kind, value, interpolation) + "\n" + line_of(f"{name}.timeSamples", kind, draw(values.samples(kind)))
    if how == "target":
        return f"rel {name} = {draw(st.sampled_from(PLACES))}"
    return line_of(name, kind, draw(values.any_value(kind)), interpolation)


@st.composite
def prim(draw: st.DrawFn, name: str, type_name: str | None = None, depth: int = 0) -> str:
    """A prim of any type, with up to four things wrong with it, and perhaps children."""
    known = schema_properties()
    if type_name is None:
        group = draw(st.sampled_from(("template", "template", "template", "schema", "odd")))
        names = {"template": sorted(TEMPLATES), "schema": list(known), "odd": ["", "NoSuchType", "MjcActuator"]}[group]
        type_name = draw(st.sampled_from(names))
    made = Prim(type_name, name)
    template = TEMPLATES.get(type_name, [])
    for item, kind, value in template:
        made.properties[item] = line_of(item, kind, value)
    choices = [*template, *template, *EXTRAS]
    choices += [(item, kind, "None") for item, kind in known.get(type_name, []) if kind not in values.WITHOUT_VALUES and "__" not in item]
    for _ in range(draw(st.integers(0, 4))):
        item, kind, value = draw(st.sampled_from(choices))
        made.properties[item] = draw(_mutated(item, kind, value))
    ops = [item for item in made.properties if item.startswith("xformOp:")]
    if ops:
        order = draw(st.sampled_from(("all", "all", "twice", "invert", "reset", "none", "lost")))
        listed = {"twice": ops * 2, "invert": [f"!invert!{op}" for op in ops], "reset": ["!resetXformStack!", *ops], "none": []}.get(
            order, ops
        )
        listed = [*listed, "xformOp:translate:nowhere"] if order == "lost" else listed
        quoted = ", ".join(f'"{op}"' for op in listed)
        made.properties["xformOpOrder"] = f"uniform token[] xformOpOrder = [{quoted}]"
    _add_metadata(draw, made)
    if depth < 2 and draw(st.integers(0, 3)) == 0:
        made.children.append(draw(prim(draw(st.sampled_from(values.NAMES)), depth=depth + 1)))
        if type_name in ("Mesh", "TetMesh"):
            made.children.append(draw(prim("subset", "GeomSubset", depth=2)))
    return made.text()


def _add_metadata(draw: st.DrawFn, made: Prim) -> None:
    schemas = draw(st.lists(st.sampled_from(SCHEMAS), max_size=3, unique=True)) if draw(st.booleans()) else []
    if schemas:
        quoted = ", ".join(f'"{schema}"' for schema in schemas)
        made.metadata.append(f"prepend apiSchemas = [{quoted}]")
    what = draw(st.integers(0, 11))
    if what == 0:
        made.metadata.append(f'kind = "{draw(st.sampled_from(KINDS))}"')
    elif what == 1:
        made.metadata.append("instanceable = true")
        made.metadata.append(f"references = {draw(st.sampled_from(PLACES[:5]))}")
    elif what == 2:
        made.metadata.append(f"inherits = {draw(st.sampled_from(PLACES[:6]))}")
    elif what == 3:
        made.metadata.append("active = false")
    elif what == 4:
        made.metadata.append(f"payload = {draw(st.sampled_from(('@./gone.usda@', '</Hostile/part>')))}")


@st.composite
def hostile_part(draw: st.DrawFn) -> str:
    """Some prims with names that others point at, and some with names of their own, as the inside of /Hostile."""
    named = {"part": "Sphere", "other": "Mesh", "many": "PointInstancer", "bones": "Skeleton", "motion": "SkelAnimation"}
    named |= {"paint": "Material", "smile": "BlendShape", "lens": "Camera", "product": "RenderProduct", "var": "RenderVar"}
    chosen = draw(st.lists(st.sampled_from(sorted(named)), max_size=5, unique=True))
    texts = [draw(prim(name, named[name] if draw(st.integers(0, 5)) else None)) for name in chosen]
    own = draw(st.lists(st.sampled_from(values.NAMES), min_size=1, max_size=3, unique=True))
    return "\n".join([*texts, *(draw(prim(name)) for name in own)])
