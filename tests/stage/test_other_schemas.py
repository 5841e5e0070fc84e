"""Types of other schemas are drawn as what they derive from; applied schemas that would draw something are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys

TYPES = {"StudioMesh": "Mesh", "StudioBall": "Sphere", "StudioTets": "TetMesh", "StudioPatch": "NurbsPatch", "StudioDots": "Points"}
TYPES |= {"StudioScatter": "PointInstancer"}

CODE = """
import json, sys
import hdwarp
from pxr import Sdf, Usd
from hdwarp.stage.open import resolve_time
from hdwarp.stage.reader import read_stage
stage = Usd.Stage.Open(sys.argv[1])
found = read_stage(stage, resolve_time(stage, None))
print(json.dumps({
    "gprims": {g.path: [g.kind.name, float(g.transforms[0, 0, 0]), len(g.transforms)] for g in found.gprims},
    "told": {d.path: d.code for d in found.diagnostics if d.path != "/"},
    "faceted": found.gprims[0].mesh.normals is None,
}))
"""

STAGE = """#usda 1.0
(
    metersPerUnit = 1
)
def StudioMesh "a" {
    point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    int[] faceVertexCounts = [3]
    int[] faceVertexIndices = [0, 1, 2]
    def GeomSubset "s" {
        uniform token familyName = "materialBind"
        int[] indices = [0]
    }
}
def StudioBall "b" {}
def StudioTets "c" {
    point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    int4[] tetVertexIndices = [(0, 1, 2, 3)]
}
def StudioPatch "d" {}
def StudioDots "e" {}
def StudioScatter "f" {
    int[] protoIndices = [0, 0]
    point3f[] positions = [(0, 0, 0), (1, 0, 0)]
    rel prototypes = </f/g>
    def StudioBall "g" {
        double radius = 0.5
    }
}
"""


def test_codeless_types_are_what_they_derive_from(tmp_path):
    """A plugin of codeless schemas, in a process of its own: a ball of which the fallback radius is 3, a mesh whose fallback scheme is
    none, and so faceted."""
    own = {"StudioBall": "double radius = 3", "StudioMesh": 'uniform token subdivisionScheme = "none"'}
    types, generated = {}, "#usda 1.0\n"
    for name, base in TYPES.items():
        generated += f'class {name} "{name}" {{\n{own.get(name, "")}\n}}\n'
        types[f"Studio{name}"] = {"alias": {"UsdSchemaBase": name}, "bases": [f"UsdGeom{base}"], "schemaKind": "concreteTyped"}
    plugin = {"Plugins": [{"Name": "studio", "Type": "resource", "Root": ".", "ResourcePath": ".", "LibraryPath": ""}]}
    plugin["Plugins"][0]["Info"] = {"Types": types}
    (tmp_path / "plugInfo.json").write_text(json.dumps(plugin))
    (tmp_path / "generatedSchema.usda").write_text(generated)
    (tmp_path / "stage.usda").write_text(STAGE)
    environment = {**os.environ, "PXR_PLUGINPATH_NAME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CODE, str(tmp_path / "stage.usda")], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["gprims"] == {
        "/a": ["MESH", 1.0, 1],
        "/b": ["SPHERE", 3.0, 1],
        "/c": ["MESH", 1.0, 1],
        "/f/g": ["SPHERE", 0.5, 2],
    }
    assert found["told"] == {"/d": "empty-mesh", "/e": "empty-points"}
    assert found["faceted"]


def test_back_plates_are_named(read):
    found = read('def Camera "c" (\n    prepend apiSchemas = ["BackPlateAPI:sky", "BackPlateAPI:wall"]\n) {}')
    assert found.codes("/c") == ["unsupported-api"]
    assert "sky, wall" in found.message("unsupported-api")
