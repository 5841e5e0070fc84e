"""The layers of a stage with everything a live scene follows, as text."""

from __future__ import annotations

MESH = """
    int[] faceVertexCounts = [4, 4, 3]
    int[] faceVertexIndices = [0, 1, 2, 3, 1, 4, 5, 2, 3, 2, 6]
    point3f[] points = [(-1, -1, 0), (0, -1, 0.3), (0, 0, 0.2), (-1, 0, 0), (1, -1, 0), (1, 0, 0.1), (-0.5, 1, 0)]
"""

ASSET = f"""#usda 1.0
(
    defaultPrim = "Asset"
)
def Xform "Asset" (
    variants = {{ string look = "a" }}
    prepend variantSets = "look"
) {{
    def Scope "Looks" {{
        def Material "paint" {{
            token outputs:surface.connect = <shader.outputs:surface>
            def Shader "shader" {{
                uniform token info:id = "UsdPreviewSurface"
                color3f inputs:diffuseColor = (0.2, 0.7, 0.3)
                token outputs:surface
            }}
        }}
    }}
    def Mesh "body" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
        {MESH}
        rel material:binding = </Asset/Looks/paint>
    }}
    def Xform "top" {{
        double3 xformOp:translate = (0, 1.2, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Sphere "knob" {{ double radius = 0.4 }}
    }}
    variantSet "look" = {{
        "a" {{ over "top" {{ over "knob" {{ double radius = 0.3 }} }} }}
        "b" {{ over "top" {{ def Cube "extra" {{ double size = 0.9 }} }} }}
    }}
}}
"""

SUBLAYER = """#usda 1.0
over "World" {
    over "ball" { color3f[] primvars:displayColor = [(0.9, 0.1, 0.1)] }
    def Cone "muted" {
        double3 xformOp:translate = (-3, 2, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
"""

ROOT = f"""#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    startTimeCode = 1
    endTimeCode = 10
    subLayers = [@SUBLAYER@]
)
def Scope "Looks" {{
    def Material "red" {{
        token outputs:surface.connect = <shader.outputs:surface>
        def Shader "shader" {{
            uniform token info:id = "UsdPreviewSurface"
            color3f inputs:diffuseColor = (0.8, 0.1, 0.1)
            token outputs:surface
        }}
    }}
    def Material "cut" {{
        token outputs:surface.connect = <shader.outputs:surface>
        def Shader "shader" {{
            uniform token info:id = "UsdPreviewSurface"
            float inputs:opacity = 0.2
            float inputs:opacityThreshold = 0.1
            token outputs:surface
        }}
    }}
}}
def Xform "World" {{
    def Sphere "ball" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
        double radius = 0.8
        double3 xformOp:translate = (2, 0, 0)
        double3 xformOp:translate.timeSamples = {{ 1: (2, 0, 0), 5: (2, 2, 0), 10: (0, 2, 1) }}
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
    def Xform "group" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
        color3f[] primvars:displayColor = [(0.3, 0.5, 0.9)]
        rel material:binding = </Looks/red>
        double3 xformOp:translate = (-2, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Mesh "sheet" {{
            {MESH}
            point3f[] points.timeSamples = {{
                1: [(-1, -1, 0), (0, -1, 0.3), (0, 0, 0.2), (-1, 0, 0), (1, -1, 0), (1, 0, 0.1), (-0.5, 1, 0)],
                10: [(-1, -1, 1), (0, -1, 0.3), (0, 0, 0.9), (-1, 0, 0), (1, -1, 0), (1, 0.5, 0.1), (-0.5, 2, 0)],
            }}
            def GeomSubset "part" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
                uniform token elementType = "face"
                uniform token familyName = "materialBind"
                int[] indices = [1]
                rel material:binding = </Looks/cut>
            }}
        }}
        def Mesh "fan" {{
            int[] faceVertexCounts = [3, 3]
            int[] faceVertexIndices = [0, 1, 2, 0, 2, 3]
            point3f[] points = [(0, 0, 1), (1, 0, 1), (1, 1, 1.4), (0, 1, 1)]
            uniform token subdivisionScheme = "none"
            float[] primvars:heat = [1, 2, 3, 4] (interpolation = "vertex")
        }}
        def Xform "robot" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{
            double3 xformOp:translate = (0, -2, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
            def Capsule "limb" {{}}
            def Camera "eye" {{ float2 clippingRange = (0.1, 100) }}
        }}
    }}
    def Xform "one" (
        instanceable = true
        prepend references = @ASSET@
    ) {{
        double3 xformOp:translate = (0, 2.5, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
    def Xform "two" (
        instanceable = true
        prepend references = @ASSET@
    ) {{
        double3 xformOp:translate = (3, 2.5, -1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
    def Xform "loaded" (
        prepend payload = @ASSET@
    ) {{
        double3 xformOp:translate = (-3, -2.5, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
    def PointInstancer "scatter" {{
        int[] protoIndices = [0, 1, 0, 1]
        point3f[] positions = [(-4, 0, -2), (-3, 1, -2), (4, 0, -2), (4, 2, -2)]
        point3f[] positions.timeSamples = {{
            1: [(-4, 0, -2), (-3, 1, -2), (4, 0, -2), (4, 2, -2)],
            8: [(-4, 0, -2), (-3, -1, -2), (4, 1, -2), (5, 2, -2)],
        }}
        rel prototypes = [</World/scatter/inner/box>, </Protos/gem>]
        def Scope "inner" {{ def Cube "box" {{ double size = 0.8 }} }}
    }}
}}
def Scope "Protos" {{
    token visibility = "inherited"
    def Xform "gem" {{
        def Sphere "s" {{ double radius = 0.35 }}
        def Cylinder "c" {{ double height = 1.5; double radius = 0.1 }}
    }}
}}
def Camera "cam" {{
    double3 xformOp:translate = (0, 0, 14)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    float focalLength = 30
    float2 clippingRange = (0.1, 1000)
}}
"""


def lines(text: str) -> str:
    """USD wants a new line after braces and statements."""
    return text.replace("{ ", "{\n").replace(" }", "\n}").replace("; ", "\n")


NESTED = """#usda 1.0
(
    defaultPrim = "Nested"
)
def Xform "Nested" {
    def PointInstancer "field" {
        int[] protoIndices = [0, 1, 0]
        point3f[] positions = [(-0.5, 0, 0), (0, 0.5, 0), (0.5, 0, 0.4)]
        quath[] orientations.timeSamples = {
            1: [(1, 0, 0, 0), (1, 0, 0, 0), (1, 0, 0, 0)],
            6: [(0.7, 0.7, 0, 0), (0.7, 0, 0.7, 0), (0.5, 0.5, 0.5, 0.5)],
        }
        rel prototypes = [</Nested/field/protos/bit>, </Nested/field/protos/asset>]
        def Scope "protos" {
            def Sphere "bit" { double radius.timeSamples = { 1: 0.2, 6: 0.4 } }
            def "asset" (
                prepend references = @ASSET@
                instanceable = true
            ) { }
        }
    }
    def "child" (prepend references = @ASSET@) { }
}
"""

MORE_CLIPS = tuple(
    f"""#usda 1.0
over "model" {{
    double3 xformOp:translate.timeSamples = {{ 0: ({x}, 0, 0), 1: (0, {x}, 0) }}
    over "ball" {{ double radius.timeSamples = {{ 0: {radius}, 1: 0.3 }} }}
}}
"""
    for x, radius in ((1, 0.6), (3, 0.9))
)

MORE = """#usda 1.0
class Xform "_inherited" {
    color3f[] primvars:displayColor = [(0.1, 0.4, 0.4)]
}
class Xform "_special" {
    def Cone "hat" { double height = 0.7; double radius = 0.3 }
}
def Xform "Heirs" {
    def Sphere "a" (prepend inherits = </_inherited>) {
        double3 xformOp:translate = (-2, 1, 3)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "b" (prepend specializes = </_special>) { }
    def Xform "c" (
        prepend inherits = </_inherited>
        prepend specializes = </_special>
        instanceable = true
    ) {
        double3 xformOp:translate = (2, 1, 3)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
over "_overs" {
    def Cube "cube" { double size = 0.4 }
}
def PointInstancer "outer" {
    int[] protoIndices = [0, 0, 1, 2]
    point3f[] positions = [(-2, -1, 3), (2, -1, 3), (0, -2, 3), (0, 2, 3)]
    color3f[] primvars:displayColor = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)] (interpolation = "varying")
    rel prototypes = [</outer/protos/inner>, </_overs>, </outer/protos/nested>]
    def Scope "protos" {
        def PointInstancer "inner" {
            int[] protoIndices = [0, 0]
            int64[] ids = [7, 9]
            point3f[] positions = [(-0.5, 0, 0), (0.5, 0, 0)]
            rel prototypes = </outer/protos/inner/dot>
            def Sphere "dot" { double radius = 0.25 }
        }
        def "nested" (
            prepend references = @NESTED@
            instanceable = true
        ) { }
    }
}
def Xform "Fields" {
    def "one" (
        prepend references = @NESTED@
        instanceable = true
    ) {
        double3 xformOp:translate = (-4, 1, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def "two" (
        prepend references = @NESTED@
        instanceable = true
    ) {
        double3 xformOp:translate = (4, 1, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
def Xform "Clipped" {
    def Xform "model" (
        clips = {
            dictionary default = {
                asset[] assetPaths = [@CLIP0@, @CLIP1@]
                string primPath = "/model"
                double2[] active = [(0, 0), (5, 1)]
                double2[] times = [(0, 0), (5, 1), (5, 0), (10, 1)]
            }
        }
    ) {
        double3 xformOp:translate
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Sphere "ball" { double radius }
    }
}
def TetMesh "tets" (prepend apiSchemas = ["MaterialBindingAPI"]) {
    int4[] tetVertexIndices = [(0, 1, 2, 3), (1, 2, 3, 4)]
    point3f[] points = [(-1, 3, 2), (0, 3, 2), (-1, 4, 2), (-1, 3, 3), (0, 4, 3)]
    point3f[] points.timeSamples = {
        1: [(-1, 3, 2), (0, 3, 2), (-1, 4, 2), (-1, 3, 3), (0, 4, 3)],
        6: [(-1, 3, 2), (1, 3, 2), (-1, 4, 3), (-1, 3, 3), (0, 4, 4)],
    }
    float[] primvars:heat = [1, 2] (interpolation = "uniform")
    rel material:binding = </Looks/red>
    def GeomSubset "part" (prepend apiSchemas = ["MaterialBindingAPI"]) {
        uniform token elementType = "face"
        uniform token familyName = "materialBind"
        int[] indices = [0, 3]
        rel material:binding = </Looks/cut>
    }
}
def NurbsPatch "patch" {
    int uVertexCount = 3
    int vVertexCount = 2
    int uOrder = 3
    int vOrder = 2
    double[] uKnots = [0, 0, 0, 1, 1, 1]
    double[] vKnots = [0, 0, 1, 1]
    point3f[] points = [(3, -4, 1), (4, -4, 3), (5, -4, 1), (3, -3, 1), (4, -3, 2), (5, -3, 1)]
    point3f[] points.timeSamples = {
        1: [(3, -4, 1), (4, -4, 3), (5, -4, 1), (3, -3, 1), (4, -3, 2), (5, -3, 1)],
        6: [(3, -4, 1), (4, -4, 0), (5, -4, 1), (3, -3, 1), (4, -3, 2), (5, -3, 3)],
    }
    float[] primvars:heat = [0, 1, 2, 3, 4, 5] (interpolation = "vertex")
}
def BasisCurves "strands" (prepend apiSchemas = ["MaterialBindingAPI"]) {
    uniform token type = "cubic"
    uniform token basis = "bspline"
    uniform token wrap = "pinned"
    int[] curveVertexCounts = [4, 5]
    point3f[] points = [(-3, 2, 1), (-2, 3, 2), (-1, 2, 1), (0, 3, 0), (-3, 3, 1), (-2, 4, 1), (-1, 3, 2), (0, 4, 0), (1, 4, 1)]
    point3f[] points.timeSamples = {
        1: [(-3, 2, 1), (-2, 3, 2), (-1, 2, 1), (0, 3, 0), (-3, 3, 1), (-2, 4, 1), (-1, 3, 2), (0, 4, 0), (1, 4, 1)],
        6: [(-3, 2, 0), (-2, 3, 2), (-1, 2, 2), (0, 3, 1), (-3, 3, 1), (-2, 4, 0), (-1, 3, 2), (0, 4, 0), (1, 4, 2)],
    }
    float[] widths = [0.3] (interpolation = "constant")
    float[] primvars:heat = [0, 1, 2, 3, 4, 5, 6, 7, 8] (interpolation = "vertex")
    rel material:binding = </Looks/cut>
}
def Points "dots" {
    point3f[] points = [(3, 3, 1), (3, 4, 1), (4, 3, 1)]
    float[] widths = [0.5, 0.8, 0.4] (interpolation = "vertex")
    float[] widths.timeSamples = {1: [0.5, 0.8, 0.4], 6: [0.9, 0.2, 0.4]}
    int64[] ids = [5, 7, 9]
    float[] primvars:heat = [0, 1, 2] (interpolation = "vertex")
}
def Xform "Models" (
    kind = "assembly"
    prepend apiSchemas = ["GeomModelAPI"]
) {
    uniform token model:drawMode = "bounds"
    def Xform "shown" (
        kind = "component"
        prepend apiSchemas = ["GeomModelAPI"]
    ) {
        uniform token model:drawMode = "default"
        def Cube "box" { double size = 0.5 }
    }
    def Xform "boxed" (
        kind = "component"
        prepend apiSchemas = ["GeomModelAPI"]
    ) {
        uniform float3 model:drawModeColor = (0.1, 0.5, 0.9)
        double3 xformOp:translate = (-4, 3, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) { double radius.timeSamples = { 1: 0.4, 6: 0.7 } }
        def PointInstancer "dots" {
            int[] protoIndices = [0, 0]
            point3f[] positions = [(-1, 0, 0), (0.5, 0.5, 0)]
            rel prototypes = </Protos/gem>
        }
    }
    def "instance" (
        prepend references = @NESTED@
        instanceable = true
        kind = "component"
    ) {
        double3 xformOp:translate = (4, 3, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
def Xform "Lods" (prepend apiSchemas = ["LODRootAPI", "LODOverrideAPI"]) {
    int lod:default:index = 1
    def Sphere "fine" { double radius = 0.3 }
    def Cube "coarse" { double size = 0.4 }
    def "asset" (prepend references = @ASSET@) { }
}
def SphereLight "lamp" (prepend apiSchemas = ["HdWarpSiteAPI"]) {
    float inputs:intensity.timeSamples = { 1: 1, 6: 5 }
    double3 xformOp:translate.timeSamples = { 1: (0, 0, 0), 6: (1, 1, 1) }
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""
