"""The healthy part of every hostile stage, and how a hostile part stands beside it."""

from __future__ import annotations

HEADER = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Y"
    renderSettingsPrimPath = "/Render/settings"
)
"""

# A camera at z=14 that looks down -Z at a quad, a cube, a sphere and two instances of a cone. The settings are the stage's own, so that
# hostile ones do not count for this picture.
HEALTHY = """
def Camera "cam"
{
    float focalLength = 30
    float2 clippingRange = (0.1, 1000)
    double3 xformOp:translate = (0, 0, 14)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}

def Scope "Render"
{
    def RenderSettings "settings"
    {
        rel products = </Render/healthy>
    }

    def RenderProduct "healthy"
    {
        rel camera = </cam>
        int2 resolution = (64, 48)
    }
}

def Xform "World"
{
    def Mesh "quad" (
        prepend apiSchemas = ["MaterialBindingAPI"]
    )
    {
        point3f[] points = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
        int[] faceVertexCounts = [4]
        int[] faceVertexIndices = [0, 1, 2, 3]
        uniform token subdivisionScheme = "none"
        rel material:binding = </World/Looks/paint>
        double3 xformOp:translate = (-2.5, 1.5, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }

    def Cube "cube"
    {
        color3f[] primvars:displayColor = [(0.2, 0.6, 0.3)]
        double3 xformOp:translate = (2.2, 1.4, -1)
        float3 xformOp:rotateXYZ = (20, 30, 10)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ"]
    }

    def Sphere "sphere"
    {
        double3 xformOp:translate = (-2, -1.5, 0.5)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }

    def PointInstancer "many"
    {
        rel prototypes = </World/many/cone>
        int[] protoIndices = [0, 0]
        point3f[] positions = [(1.5, -1.5, 0), (3.5, -1.5, 0.25)]

        def Cone "cone"
        {
            double radius = 0.7
        }
    }

    def Scope "Looks"
    {
        def Material "paint"
        {
            token outputs:surface.connect = </World/Looks/paint/shader.outputs:surface>

            def Shader "shader"
            {
                uniform token info:id = "UsdPreviewSurface"
                color3f inputs:diffuseColor = (0.7, 0.2, 0.1)
                token outputs:surface
            }
        }
    }
}
"""

ROOTS = ("/World/", "/cam", "/Render/")  # paths of what is healthy


def is_healthy(path: str) -> bool:
    return path.startswith(ROOTS)


def place(body: str, translate: str = "(0, 0, -30)") -> str:
    """A hostile part as a layer: all under /Hostile, behind what is healthy."""
    lines = "\n".join("    " + line for line in body.splitlines())
    return f"""#usda 1.0
def Xform "Hostile"
{{
    double3 xformOp:translate = {translate}
    uniform token[] xformOpOrder = ["xformOp:translate"]

{lines}
}}
"""
