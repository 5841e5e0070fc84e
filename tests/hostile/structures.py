"""Stages that are hostile by how they are built: cycles, depths, widths, numbers and sizes. Each is the inside of /Hostile, or a layer.

A structure is a function of ``draw`` or of nothing that gives usda text, in one of two tables: PARTS (small: drawn at random together with
other prims) and LARGE (slow to write and to compose: each a test).
"""

from __future__ import annotations

from collections.abc import Callable

INSTANCER = """def PointInstancer "{name}"
{{
    rel prototypes = {prototypes}
    int[] protoIndices = {indices}
    point3f[] positions = {positions}
{more}
}}"""


def instancer(name: str, prototypes: str, count: int = 1, more: str = "", slots: int = 1) -> str:
    """``count`` instances, one above another, of ``slots`` prototypes by turns."""
    indices = [i % slots for i in range(count)]
    positions = ", ".join(f"(0, {i}, 0)" for i in range(count))
    return INSTANCER.format(name=name, prototypes=prototypes, indices=indices, positions=f"[{positions}]", more=more)


def _instancer_of_itself() -> str:
    return instancer("a", "</Hostile/a>", 3)


def _instancer_of_its_parent() -> str:
    return instancer("a", "</Hostile>", 3)


def _instancer_of_its_child() -> str:
    return instancer("a", "</Hostile/a/b>", 3, instancer("b", "</Hostile/a>", 2))


def _instancers_of_each_other() -> str:
    return (
        instancer("a", "</Hostile/b>", 2) + "\n" + instancer("b", "[</Hostile/a>, </Hostile/ball>]", 2, slots=2) + '\ndef Sphere "ball" {}'
    )


def _instancers_in_prototypes() -> str:
    chain = "\n".join(instancer(f"a{i}", f"</Hostile/a{i + 1}>", 10) for i in range(9))
    return chain + '\ndef Sphere "a9" {}'


def _doubling_instancers() -> str:
    """2 to the power of 40 ways from the first to the last, and no more than two instances each."""
    texts = []
    for i in range(40):
        texts.append(instancer(f"a{i}", f"[</Hostile/b{i}>, </Hostile/c{i}>]", 2, slots=2))
        texts += [instancer(f"{name}{i}", f"</Hostile/a{i + 1}>") for name in "bc"]
    return "\n".join([*texts, 'def Sphere "a40" {}'])


def _doubling_instances() -> str:
    """Native instances that hold two instances each, 40 deep."""
    texts = ['class "c40"\n{\n    def Sphere "ball" {}\n}']
    for i in range(40):
        inner = "\n".join(f'def "{name}" (\n    instanceable = true\n    references = </Hostile/c{i + 1}>\n) {{}}' for name in "ab")
        texts.append(f'class "c{i}"\n{{\n{inner}\n}}')
    return "\n".join([*texts, 'def "all" (\n    instanceable = true\n    references = </Hostile/c0>\n) {}'])


def _model(inside: str) -> str:
    """All of it as the box of a model."""
    about = 'kind = "component"\n    prepend apiSchemas = ["GeomModelAPI"]'
    return f'def Xform "model" (\n    {about}\n)\n{{\n    uniform token model:drawMode = "bounds"\n{inside}\n}}'.replace(
        "/Hostile/", "/Hostile/model/"
    )


def _model_of_doubling_instancers() -> str:
    return _model(_doubling_instancers())


def _model_of_doubling_instances() -> str:
    return _model(_doubling_instances())


def _skeleton_over_doubling_instances() -> str:
    inside = _doubling_instances().replace("/Hostile/", "/Hostile/whole/")
    return f'def SkelRoot "whole"\n{{\n{inside}\n{_skinned("ball")}\n}}'


def _skinned(name: str) -> str:
    return f'def Sphere "{name}" (\n    prepend apiSchemas = ["SkelBindingAPI"]\n)\n{{\n    int[] primvars:skel:jointIndices = [0]\n}}'


def _reference_to_itself() -> str:
    return 'def Sphere "a" (\n    references = </Hostile/a>\n) {}\ndef Xform "b" (\n    references = </Hostile>\n) {}'


def _inherits_loop() -> str:
    return 'class "a" (\n    inherits = </Hostile/b>\n) {}\nclass "b" (\n    inherits = </Hostile/a>\n) {}\ndef Sphere "c" (\n    inherits = </Hostile/a>\n) {}'


def _specializes_and_payload_loop() -> str:
    return 'def Sphere "a" (\n    payload = </Hostile/b>\n) {}\ndef Cube "b" (\n    specializes = </Hostile/a>\n) {}'


def _instance_of_its_parent() -> str:
    return 'def Xform "a" (\n    instanceable = true\n    references = </Hostile/b>\n) {}\ndef Xform "b"\n{\n    def "c" (\n        instanceable = true\n        references = </Hostile/b>\n    ) {}\n}'


def _relationship_loop() -> str:
    return """rel one = </Hostile.two>
rel two = [</Hostile.one>, </Hostile.two>]
def PointInstancer "a"
{
    rel prototypes = </Hostile.one>
    int[] protoIndices = [0]
    point3f[] positions = [(0, 0, 0)]
}
def Sphere "b" (
    prepend apiSchemas = ["MaterialBindingAPI"]
)
{
    rel material:binding = </Hostile.two>
}"""


def _material_loop() -> str:
    return """def Material "m"
{
    token outputs:surface.connect = </Hostile/m/g.outputs:out>
    color3f inputs:c.connect = </Hostile/m/g.inputs:c>
    def NodeGraph "g"
    {
        token outputs:out.connect = </Hostile/m.outputs:surface>
        color3f inputs:c.connect = </Hostile/m.inputs:c>
    }
    def Shader "s"
    {
        uniform token info:id = "UsdPreviewSurface"
        color3f inputs:diffuseColor.connect = [</Hostile/m/s.inputs:diffuseColor>, </Hostile/m.inputs:c>]
        token outputs:surface.connect = </Hostile/m/s.outputs:surface>
    }
}
def Sphere "b" (
    prepend apiSchemas = ["MaterialBindingAPI"]
)
{
    rel material:binding = </Hostile/m>
}"""


def _preview_loop() -> str:
    """A surface whose colour comes from itself by way of a texture reader and its material's interface."""
    return """def Material "m"
{
    color3f inputs:c.connect = </Hostile/m/t.outputs:rgb>
    token outputs:surface.connect = </Hostile/m/s.outputs:surface>
    def Shader "s"
    {
        uniform token info:id = "UsdPreviewSurface"
        color3f inputs:diffuseColor.connect = </Hostile/m.inputs:c>
        float inputs:opacity.connect = </Hostile/m/s.inputs:opacity>
        token outputs:surface
    }
    def Shader "t"
    {
        uniform token info:id = "UsdUVTexture"
        float2 inputs:st.connect = </Hostile/m/t.outputs:rgb>
        asset inputs:file.connect = </Hostile/m/t.inputs:file>
        color3f outputs:rgb.connect = </Hostile/m.inputs:c>
    }
}
def Sphere "b" (
    prepend apiSchemas = ["MaterialBindingAPI"]
)
{
    rel material:binding = </Hostile/m>
}"""


def _collection_of_itself() -> str:
    return """def Xform "a" (
    prepend apiSchemas = ["CollectionAPI:all", "CollectionAPI:more", "MaterialBindingAPI"]
)
{
    uniform token collection:all:expansionRule = "expandPrims"
    rel collection:all:includes = [</Hostile/a.collection:more>, </Hostile/a.collection:all>]
    rel collection:more:includes = [</Hostile/a.collection:all>, </Hostile/a>]
    rel material:binding:collection:x = [</Hostile/a.collection:all>, </Hostile/a>]
    pathExpression collection:more:membershipExpression = "%/Hostile/a:all %/Hostile/a:more"
    def Sphere "b" {}
}"""


def _skeleton_loop() -> str:
    return """def SkelRoot "a" (
    prepend apiSchemas = ["SkelBindingAPI"]
)
{
    rel skel:skeleton = </Hostile/a/s>
    rel skel:animationSource = </Hostile/a/s>
    def Skeleton "s" (
        prepend apiSchemas = ["SkelBindingAPI"]
    )
    {
        uniform token[] joints = ["a/b/c", "a/b", "a/b", "", "/", "a//b", "c"]
        rel skel:skeleton = </Hostile/a/s>
        rel skel:animationSource = </Hostile/a/s>
        uniform matrix4d[] bindTransforms = []
    }
    def Sphere "b" (
        prepend apiSchemas = ["SkelBindingAPI"]
    )
    {
        int[] primvars:skel:jointIndices = [2147483647] (interpolation = "constant")
        float[] primvars:skel:jointWeights = [nan] (interpolation = "constant")
    }
}"""


def _render_loop() -> str:
    return """def RenderSettings "s"
{
    rel products = [</Hostile/s>, </Hostile/p>, </Hostile/q>, </Hostile/p.camera>]
    rel camera = </Hostile/s>
}
def RenderProduct "p"
{
    rel camera = </Hostile/lens>
    rel orderedVars = [</Hostile/p>, </Hostile/v>, </Hostile/s>]
    int2 resolution = (2147483647, 2147483647)
    float4 dataWindowNDC = (1, 1, 0, 0)
}
def RenderProduct "q"
{
    rel camera = </Hostile/lens>
    int2 resolution = (-4, 0)
    float pixelAspectRatio = nan
}
def RenderVar "v"
{
    string sourceName = "primvars:nowhere"
}
def Camera "lens"
{
    float focalLength = nan
    float horizontalAperture = nan
    float verticalAperture = inf
    float2 clippingRange = (nan, -1)
    matrix4d xformOp:transform = ( (nan, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1) )
    uniform token[] xformOpOrder = ["xformOp:transform"]
}
def PointInstancer "r"
{
    rel prototypes = </Hostile/s>
    int[] protoIndices = [0]
    point3f[] positions = [(0, 0, 0)]
}"""


def _cards_around_themselves() -> str:
    return (
        """def Xform "a" (
    kind = "component"
    prepend apiSchemas = ["GeomModelAPI"]
)
{
    uniform token model:drawMode = "cards"
    rel proxyPrim = </Hostile/a>
    float3[] extentsHint = [(nan, 0, 0), (inf, 1, 1)]
"""
        + instancer("b", "[</Hostile/a>, </Hostile/a/b>]", 2, slots=2)
        + "\n}"
    )


def _claims() -> str:
    """Arrays that claim more than there is."""
    return """def Mesh "m"
{
    int[] faceVertexCounts = [2147483647, 2147483647, 2147483647]
    int[] faceVertexIndices = [0, 1, 2]
    point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    int[] holeIndices = [2147483647, -2147483648]
    int[] primvars:st:indices = [2147483647]
    float2[] primvars:st = [(0, 0)] (interpolation = "faceVarying")
}
def NurbsPatch "n"
{
    int uVertexCount = 2147483647
    int vVertexCount = 2147483647
    int uOrder = 2147483647
    int vOrder = 2147483647
    double[] uKnots = [0, 1]
    double[] vKnots = [0, 1]
    point3f[] points = [(0, 0, 0)]
}
def BasisCurves "c"
{
    int[] curveVertexCounts = [2147483647, -1]
    point3f[] points = [(0, 0, 0)]
}
def NurbsCurves "u"
{
    int[] curveVertexCounts = [2147483647]
    int[] order = [2147483647]
    double[] knots = [0]
    point3f[] points = [(0, 0, 0)]
}
def TetMesh "t"
{
    int4[] tetVertexIndices = [(2147483647, -2147483648, 0, 0)]
    point3f[] points = [(0, 0, 0)]
}
def PointInstancer "i"
{
    rel prototypes = </Hostile/m>
    int[] protoIndices = [2147483647, -2147483648, 0]
    point3f[] positions = [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    int64[] ids = [9223372036854775807, -9223372036854775808, 0]
    int64[] invisibleIds = [9223372036854775807, 4000000000]
}"""


def _fine_patch() -> str:
    """A patch with a control point so far away, and knots so close, that a tolerance asks for very many pieces."""
    return """def NurbsPatch "n"
{
    int uVertexCount = 4
    int vVertexCount = 4
    int uOrder = 4
    int vOrder = 4
    double[] uKnots = [0, 0, 0, 0, 1e-300, 1, 1, 1]
    double[] vKnots = [-1e300, 0, 0, 0, 1, 1, 1, 1e300]
    point3f[] points = [(0, 0, 0), (1e30, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 0), (1, 0, 0), (1, 1e-30, 0), (0, 1, 0), (0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 3e38)]
    double[] pointWeights = [1, 1e-300, 1e300, -1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
}"""


def _everything_far() -> str:
    """Sound geometry at the end of the range, and beyond it."""
    one = 'def Sphere "{name}"\n{{\n    double radius = {radius}\n    double3 xformOp:translate = ({x}, 0, -100)\n    uniform token[] xformOpOrder = ["xformOp:translate"]\n}}'
    sizes = ((1e17, 2e18), (1e3, 1e17), (1e-17, 0), (1e-30, 1), (1e15, -1e17), (1, 3e38))
    return "\n".join(one.format(name=f"s{i}", radius=radius, x=x) for i, (radius, x) in enumerate(sizes))


def _variants_of_themselves() -> str:
    return """def Xform "a" (
    variants = {
        string v = "one"
        string w = "nowhere"
    }
    prepend variantSets = ["v", "w", "x"]
)
{
    variantSet "v" = {
        "one" (
            references = </Hostile/a>
            variants = {
                string v = "two"
            }
        ) {
            def Sphere "s" {}
        }
        "two" {
            def Cube "s" {}
        }
    }
}"""


def _relocated() -> str:
    return 'def Xform "a" (\n    references = </Hostile/b>\n) {}\ndef Xform "b"\n{\n    def Sphere "c" {}\n    over "a" (\n        references = </Hostile/a>\n    ) {}\n}'


PARTS: dict[str, Callable[[], str]] = {
    name[1:]: build
    for name, build in list(globals().items())
    if name.startswith("_") and not name.startswith("__") and callable(build) and build.__code__.co_argcount == 0
}


def nested_xforms(depth: int = 10_000) -> str:
    opening = "".join(
        f'def Xform "x"\n{{\ndouble3 xformOp:translate = (0, 0, {-1e-3 * (i % 3)})\nuniform token[] xformOpOrder = ["xformOp:translate"]\n'
        for i in range(depth)
    )
    return opening + 'def Sphere "ball" {}\n' + "}\n" * depth


def siblings(count: int = 100_000) -> str:
    return "\n".join(f'def Xform "x{i}" {{}}' for i in range(count)) + '\ndef Sphere "ball" {}'


def many_shapes(count: int = 100_000) -> str:
    one = 'def Sphere "x{i}"\n{{\ndouble3 xformOp:translate = ({x}, 0, -20)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n}}'
    return "\n".join(one.format(i=i, x=i * 1e-4) for i in range(count))


def instances_of_nothing(count: int = 1_000_000) -> str:
    empty = instancer("a", "</Hostile/empty>", 0)
    indices, positions = "[" + "0, " * (count - 1) + "0]", "[" + "(0, 0, 0), " * (count - 1) + "(0, 0, 0)]"
    return empty.replace("= []", f"= {indices}", 1).replace("= []", f"= {positions}", 1) + '\ndef Xform "empty" {}'


def nested_million() -> str:
    """A thousand instances of a thousand of nothing, of a ball that collapses, and of one that is there."""
    more = 'def Sphere "ball"\n{\n    float3 xformOp:scale = (0, 0, 0)\n    uniform token[] xformOpOrder = ["xformOp:scale"]\n}\ndef Xform "empty" {}'
    inner = instancer("b", "[</Hostile/empty>, </Hostile/ball>]", 1000, slots=2)
    return "\n".join((instancer("a", "</Hostile/b>", 1000), inner, more))


def invisible_ids(count: int = 1_000_000) -> str:
    ids = ", ".join(str(9_000_000_000_000 + i) for i in range(count))
    return instancer("a", "</Hostile/ball>", 2, f"int64[] invisibleIds = [{ids}]") + '\ndef Sphere "ball" {}'


def wide_collection(count: int = 20_000) -> str:
    names = ", ".join(f"</Hostile/nowhere{i}>" for i in range(count))
    return f"""def Sphere "ball" (
    prepend apiSchemas = ["CollectionAPI:all", "MaterialBindingAPI"]
)
{{
    rel collection:all:includes = [{names}]
    rel material:binding:collection:all = [</Hostile/ball.collection:all>, </World/Looks/paint>]
}}"""


def deep_graph(depth: int = 10_000) -> str:
    """An input connected through very many interfaces."""
    nodes = "\n".join(f'def NodeGraph "n{i}"\n{{\n    color3f inputs:c.connect = </Hostile/m/n{i + 1}.inputs:c>\n}}' for i in range(depth))
    return f"""def Material "m"
{{
    token outputs:surface.connect = </Hostile/m/s.outputs:surface>
    def Shader "s"
    {{
        uniform token info:id = "UsdPreviewSurface"
        color3f inputs:diffuseColor.connect = </Hostile/m/n0.inputs:c>
        token outputs:surface
    }}
{nodes}
    def NodeGraph "n{depth}"
    {{
        color3f inputs:c = (1, 0, 0)
    }}
}}
def Sphere "ball" (
    prepend apiSchemas = ["MaterialBindingAPI"]
)
{{
    rel material:binding = </Hostile/m>
}}"""


def many_instancers_in_a_row(depth: int = 300) -> str:
    return "\n".join(instancer(f"a{i}", f"</Hostile/a{i + 1}>") for i in range(depth)) + f'\ndef Sphere "a{depth}" {{}}'


def forwarded_relationships(depth: int = 10_000) -> str:
    rels = "\n".join(f"rel r{i} = </Hostile.r{i + 1}>" for i in range(depth))
    return f'{rels}\nrel r{depth} = </Hostile/ball>\n{instancer("a", "</Hostile.r0>")}\ndef Sphere "ball" {{}}'


def many_properties(count: int = 20_000) -> str:
    lines = "\n".join(f"    float primvars:p{i} = {i}" for i in range(count))
    return f'def Sphere "ball"\n{{\n{lines}\n}}'


def large_polygon(count: int = 100_000) -> str:
    """One face whose corners jump to and fro."""
    points = ", ".join(f"({(i * 7919) % 1009}, {(i * 104729) % 997}, {i % 2})" for i in range(count))
    return f'def Mesh "m"\n{{\n    int[] faceVertexCounts = [{count}]\n    int[] faceVertexIndices = {list(range(count))}\n    point3f[] points = [{points}]\n}}'


def overlapping(count: int = 100_000) -> str:
    """Faces that all lie in one place: no tree can part them."""
    return f'def Mesh "m"\n{{\n    int[] faceVertexCounts = [{", ".join(["3"] * count)}]\n    int[] faceVertexIndices = [{", ".join(["0, 1, 2"] * count)}]\n    point3f[] points = [(-5, -5, 0), (5, -5, 0), (0, 5, 0)]\n}}'


LARGE: dict[str, Callable[[], str]] = {
    build.__name__: build
    for build in (nested_xforms, siblings, many_shapes, instances_of_nothing, nested_million, invisible_ids, wide_collection, deep_graph)
    + (many_instancers_in_a_row, forwarded_relationships, many_properties, large_polygon, overlapping)
}
