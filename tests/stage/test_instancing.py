"""Point instancers and native instances: transforms, ids, paths, and geometry read once."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom

from hdwarp.errors import Severity

MOVE = 'uniform token[] xformOpOrder = ["xformOp:translate"]'
TRIANGLE = """
        int[] faceVertexCounts = [3]
        int[] faceVertexIndices = [0, 1, 2]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
        uniform token subdivisionScheme = "none"
"""


def instancer(body: str, children: str = 'def Cube "box" {}', prototypes: str = "</i/box>", name: str = "i") -> str:
    return f"""def PointInstancer "{name}" {{
        rel prototypes = [{prototypes}]
        {body}
        {children}
    }}
    """


FOUR = "int[] protoIndices = [0, 0, 0, 0]\npoint3f[] positions = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)]\n"


def places(gprim) -> list[list[float]]:
    return gprim.transforms[:, :3, 3].tolist()


def test_one_row_an_instance(read):
    found = read(instancer(FOUR))
    gprim = found.gprim("/i/box")
    assert places(gprim) == [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]
    assert gprim.instance_ids.tolist() == [0, 1, 2, 3]
    assert gprim.instance_ids.dtype == np.int32
    assert (gprim.instancer.path, gprim.instancer.ids.tolist(), gprim.instancer.outer) == ("/i", [0, 1, 2, 3], None)
    assert found.paths == ["/i/box"]


def test_scale_orientation_position_then_the_instancer(read):
    """Point (1, 0, 0) of the prototype: moved by its own (1, 0, 0) to (2, 0, 0), scaled by 3 to (6, 0, 0), turned 90 degrees about z
    to (0, 6, 0), moved to (10, 6, 0), and by the instancer to (10, 6, 5). In centimetres."""
    text = f"""#usda 1.0
(
    metersPerUnit = 0.01
)
def PointInstancer "i" {{
    double3 xformOp:translate = (0, 0, 5)
    {MOVE}
    rel prototypes = [</i/box>]
    int[] protoIndices = [0]
    point3f[] positions = [(10, 0, 0)]
    quath[] orientations = [(0.70710678, 0, 0, 0.70710678)]
    float3[] scales = [(3, 1, 1)]
    def Cube "box" {{
        double3 xformOp:translate = (1, 0, 0)
        {MOVE}
    }}
}}
"""
    matrix = read(text).gprim("/i/box").transforms[0]
    assert matrix @ [1, 0, 0, 1] == pytest.approx([0.10, 0.06, 0.05, 1], abs=1e-4)


def test_orientationsf_beats_orientations(read):
    body = "int[] protoIndices = [0]\npoint3f[] positions = [(0, 0, 0)]\nquath[] orientations = [(1, 0, 0, 0)]\n"
    turned = read(instancer(body + "quatf[] orientationsf = [(0, 1, 0, 0)]")).gprim("/i/box").transforms[0]
    assert turned[:3, :3] == pytest.approx(np.diag([1.0, -1.0, -1.0]))


def test_invisible_ids_hide_by_id_and_the_others_keep_their_number(read):
    gprim = read(instancer(FOUR + "int64[] ids = [10, 11, 12, 13]\nint64[] invisibleIds = [12]")).gprim("/i/box")
    assert gprim.instance_ids.tolist() == [0, 1, 3]
    assert gprim.instancer.ids.tolist() == [10, 11, 12, 13]
    assert places(gprim)[2] == [3, 0, 0]


def test_inactive_ids_are_metadata(read):
    stage = Usd.Stage.CreateInMemory()
    prim = UsdGeom.PointInstancer.Define(stage, "/i")
    UsdGeom.Cube.Define(stage, "/i/box")
    prim.CreatePrototypesRel().SetTargets(["/i/box"])
    prim.CreateProtoIndicesAttr([0, 0, 0, 0])
    prim.CreatePositionsAttr([(float(k), 0, 0) for k in range(4)])
    prim.DeactivateId(1)
    prim.CreateInvisibleIdsAttr([2])
    assert read(stage).gprim("/i/box").instance_ids.tolist() == [0, 3]


def test_prototypes_with_hierarchies_and_several_gprims(read):
    children = f"""def Xform "thing" {{
        double3 xformOp:translate = (0, 1, 0)
        {MOVE}
        def Cube "a" {{}}
        def Xform "deep" {{
            double3 xformOp:translate = (0, 0, 1)
            {MOVE}
            def Sphere "b" {{ double radius = 2 }}
        }}
    }}
    def Cube "other" {{}}
    def Cube "unused" {{}}"""
    body = "int[] protoIndices = [0, 1, 0]\npoint3f[] positions = [(0, 0, 0), (5, 0, 0), (9, 0, 0)]"
    found = read(instancer(body, children, "</i/thing>, </i/other>"))
    assert found.paths == ["/i/other", "/i/thing/a", "/i/thing/deep/b"]
    assert places(found.gprim("/i/thing/a")) == [[0, 1, 0], [9, 1, 0]]
    assert places(found.gprim("/i/thing/deep/b")) == [[0, 1, 1], [9, 1, 1]]
    assert found.gprim("/i/thing/deep/b").transforms[1, 0, 0] == 2
    assert found.gprim("/i/thing/deep/b").instance_ids.tolist() == [0, 2]
    assert found.gprim("/i/other").instance_ids.tolist() == [1]


@pytest.mark.parametrize(("specifier", "in_place"), [("def", True), ("over", False), ("class", False)])
def test_prototypes_elsewhere_are_drawn_in_place_too_unless_over_or_class(read, specifier, in_place):
    box = f'{specifier} Xform "lib" {{ {specifier} Cube "box" {{}} }}\n'
    found = read(instancer("int[] protoIndices = [0]\npoint3f[] positions = [(5, 0, 0)]", "", "</lib>") + box)
    rows = {gprim.instancer.path if gprim.instancer else "": places(gprim) for gprim in found.gprims}
    assert rows == ({"": [[0, 0, 0]], "/i": [[5, 0, 0]]} if in_place else {"/i": [[5, 0, 0]]})
    assert set(found.paths) == {"/lib/box"}


def test_an_invisible_instancer_or_prototype_draws_nothing(read):
    assert read(instancer(FOUR + 'token visibility = "invisible"')).paths == []
    assert read(instancer(FOUR, 'def Cube "box" { token visibility = "invisible" }')).paths == []


def test_instancer_purpose_and_constants_reach_its_prototypes(read):
    found = read(instancer(FOUR + 'uniform token purpose = "render"\nfloat primvars:x = 3'))
    assert found.gprim("/i/box").purpose == "render"
    assert found.gprim("/i/box").constants["x"].tolist() == [3]


@pytest.mark.parametrize("interpolation", ["uniform", "varying", "vertex", "faceVarying"])
def test_primvars_of_one_value_an_instance(read, interpolation):
    primvar = (
        f'color3f[] primvars:displayColor = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)] (\n    interpolation = "{interpolation}"\n)\n'
    )
    gprim = read(instancer(FOUR + primvar + "int64[] invisibleIds = [1]")).gprim("/i/box")
    assert gprim.instance_primvars["displayColor"][:, 0].tolist() == [0, 2, 3]
    assert "displayColor" not in gprim.constants


def test_indexed_primvars_of_instances(read):
    primvar = 'float[] primvars:x = [5, 6] (\n    interpolation = "vertex"\n)\nint[] primvars:x:indices = [0, 1, 1, 0]'
    assert read(instancer(FOUR + primvar)).gprim("/i/box").instance_primvars["x"].tolist() == [[5], [6], [6], [5]]


def test_primvars_of_another_count_are_named(read):
    found = read(instancer(FOUR + 'float[] primvars:x = [5, 6] (\n    interpolation = "vertex"\n)'))
    assert found.gprim("/i/box").instance_primvars == {}
    assert found.codes("/i") == ["primvar-count"]


@pytest.mark.parametrize(
    ("body", "code", "left"),
    [
        ("int[] protoIndices = [0, 7, -1]\npoint3f[] positions = [(0, 0, 0), (1, 0, 0), (2, 0, 0)]", "proto-indices", [0]),
        ("int[] protoIndices = [0, 0]\npoint3f[] positions = [(0, 0, 0)]", "instancer-lengths", None),
        ("int[] protoIndices = [0]", "instancer-lengths", None),
        (FOUR + "float3[] scales = [(2, 2, 2)]", "instancer-lengths", [0, 1, 2, 3]),
        (FOUR + "int64[] ids = [5]", "instancer-lengths", [0, 1, 2, 3]),
        ("point3f[] positions = [(0, 0, 0)]", "empty-instancer", None),
        ("float[] protoIndices = [0]\npoint3f[] positions = [(0, 0, 0)]", "wrong-type", None),
    ],
)
def test_broken_instancers_are_named(read, body, code, left):
    found = read(instancer(body) + 'def Cube "ok" {}')
    assert "/ok" in found.paths
    assert code in found.codes("/i")
    assert ("/i/box" in found.paths) is (left is not None)
    if left is not None:
        assert found.gprim("/i/box").instance_ids.tolist() == left


def test_a_prototype_that_is_missing(read):
    body = "int[] protoIndices = [0, 1]\npoint3f[] positions = [(0, 0, 0), (1, 0, 0)]"
    found = read(instancer(body, prototypes="</i/gone>, </i/box>"))
    assert found.codes("/i") == ["prototype-missing"]
    assert found.gprim("/i/box").instance_ids.tolist() == [1]


def test_an_array_of_the_wrong_length_leaves_the_others(read):
    """Turned 90 degrees about z and moved, without the scales that do not fit."""
    turned = "quath[] orientations = [(0.70710678, 0, 0, 0.70710678), (1, 0, 0, 0), (1, 0, 0, 0), (1, 0, 0, 0)]\n"
    matrix = (
        read(instancer(FOUR.replace("(0, 0, 0)", "(9, 0, 0)", 1) + turned + "float3[] scales = [(2, 2, 2)]")).gprim("/i/box").transforms[0]
    )
    assert matrix @ [1, 0, 0, 1] == pytest.approx([9, 1, 0, 1], abs=1e-3)


def test_instances_that_cannot_be_placed_are_skipped_and_counted(read):
    body = FOUR.replace("(1, 0, 0)", "(nan, 0, 0)") + "float3[] scales = [(1, 1, 1), (1, 1, 1), (0, 1, 1), (1, 1, 1)]"
    found = read(instancer(body))
    assert found.gprim("/i/box").instance_ids.tolist() == [0, 3]
    told = {item.path: item.message for item in found.diagnostics if item.code == "singular-transform"}
    assert set(told) == {"/i", "/i/box"}
    assert "1 of 4 instances have positions, orientations or scales that are NaN" in told["/i"]
    assert "1 of 3" in told["/i/box"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_beyond_all_bounds_are_told_by_hdwarp_not_numpy(read):
    body = FOUR.replace("(1, 0, 0)", "(inf, 0, 0)") + "float3[] scales = [(1, 1, 1), (1, 1, 1), (nan, 1, 1), (1e30, 1e30, 1e30)]"
    found = read(
        instancer(
            body, children='def Cube "box" { double3 xformOp:scale = (1e200, 1, 1); uniform token[] xformOpOrder = ["xformOp:scale"] }'
        )
    )
    assert found.paths == []
    assert found.codes("/i") == ["singular-transform"]
    assert found.codes("/i/box") == ["size-range"]


SCALARS = [
    ("positions", "float {} = 1"),
    ("positions", "float3 {} = (1, 1, 1)"),
    ("protoIndices", "int {} = 0"),
    ("scales", "float {} = 1"),
    ("scales", "float3 {} = (1, 1, 1)"),
    ("orientations", "quath {} = (1, 0, 0, 0)"),
    ("orientationsf", "float {} = 1"),
    ("ids", "int64 {} = 1"),
    ("ids", "float[] {} = [1, 2, 3, 4]"),
    ("invisibleIds", "int64 {} = 1"),
    ("invisibleIds", "float[] {} = [1]"),
    ("velocities", "float {} = 1"),
    ("angularVelocities", "float3 {} = (1, 1, 1)"),
]


@pytest.mark.parametrize(("name", "text"), SCALARS)
def test_a_scalar_where_an_array_belongs_is_named_and_costs_no_other_prim(read, name, text):
    arrays = "\n".join(line for line in FOUR.splitlines() if name not in line)
    found = read(instancer(f"{arrays}\n{text.format(name)}") + 'def Sphere "s" {}')
    assert found.codes("/i") == ["wrong-type"]
    assert found.message("wrong-type").startswith(name)
    assert found.paths == (["/s"] if name in ("positions", "protoIndices") else ["/i/box", "/s"])


@pytest.mark.parametrize("ids", ["int64[] ids = [5, 6]", "int64 ids = 7", "float[] ids = [1, 2, 3, 4]", ""])
def test_ids_that_are_no_ids_are_the_indices_for_hiding_too(read, ids):
    found = read(instancer(FOUR + ids + "\nint64[] invisibleIds = [1]"))
    assert found.gprim("/i/box").instance_ids.tolist() == [0, 2, 3]
    assert found.gprim("/i/box").instancer.ids.tolist() == [0, 1, 2, 3]


def test_ids_of_32_bits_hide_like_others(read):
    found = read(instancer(FOUR + "int[] ids = [7, 1, 8, 9]\nint[] invisibleIds = [8, 0]"))
    assert found.gprim("/i/box").instance_ids.tolist() == [0, 1, 3]


def test_nothing_below_an_instancer_is_drawn_but_its_prototypes(read):
    found = read(instancer(FOUR, 'def Cube "box" {}\ndef Cube "stray" {}\ndef Camera "cam" {}'))
    assert found.paths == ["/i/box"]
    assert found.cameras == []


def test_nested_instancers_multiply(read):
    """Two outer instances of an inner instancer with three: ids outer * 3 + inner, places added."""
    inner = """def PointInstancer "in" {
            rel prototypes = [</i/in/box>]
            int[] protoIndices = [0, 0, 0]
            point3f[] positions = [(1, 0, 0), (2, 0, 0), (3, 0, 0)]
            int64[] ids = [7, 8, 9]
            int64[] invisibleIds = [8]
            float[] primvars:x = [5, 6, 7] (
                interpolation = "vertex"
            )
            def Cube "box" {}
        }"""
    outer = "int[] protoIndices = [0, 0]\npoint3f[] positions = [(10, 0, 0), (20, 0, 0)]\nint64[] ids = [100, 200]\n"
    outer += 'float[] primvars:y = [1, 2] (\n    interpolation = "vertex"\n)'
    gprim = read(instancer(outer, inner, "</i/in>")).gprim("/i/in/box")
    assert places(gprim) == [[11, 0, 0], [13, 0, 0], [21, 0, 0], [23, 0, 0]]
    assert gprim.instance_ids.tolist() == [0, 2, 3, 5]
    assert gprim.instance_primvars["x"].ravel().tolist() == [5, 7, 5, 7]
    assert gprim.instance_primvars["y"].ravel().tolist() == [1, 1, 2, 2]
    assert (gprim.instancer.path, gprim.instancer.outer.path) == ("/i/in", "/i")
    outer_row, inner_row = divmod(5, len(gprim.instancer.ids))
    assert (gprim.instancer.outer.ids[outer_row], gprim.instancer.ids[inner_row]) == (200, 9)


def test_an_instancer_inside_itself_ends(read):
    found = read(instancer(FOUR, "", "</i>"))
    assert found.paths == []
    assert "instancer-cycle" in found.codes("/i")


def test_a_prototype_inside_a_prototype_keeps_one_row_set(read):
    children = 'def Xform "a" { def Cube "b" {} }'
    body = "int[] protoIndices = [1, 0, 1]\npoint3f[] positions = [(0, 0, 0), (1, 0, 0), (2, 0, 0)]"
    found = read(instancer(body, children, "</i/a>, </i/a/b>"))
    assert found.paths == ["/i/a/b"]
    assert found.gprim("/i/a/b").instance_ids.tolist() == [0, 1, 2]
    assert places(found.gprim("/i/a/b")) == [[0, 0, 0], [1, 0, 0], [2, 0, 0]]


@pytest.mark.parametrize("seed", range(4))
def test_instance_transforms_are_what_usd_computes(read, seed):
    rng = np.random.default_rng(seed)
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Xform.Define(stage, "/w").AddTransformOp().Set(Gf.Matrix4d(*np.linalg.qr(rng.normal(size=(4, 4)))[0].ravel().tolist()))
    stage.GetPrimAtPath("/w").GetAttribute("xformOp:transform").Set(Gf.Matrix4d(1).SetTranslate(Gf.Vec3d(*rng.normal(size=3))))
    prim = UsdGeom.PointInstancer.Define(stage, "/w/i")
    prim.AddRotateXYZOp().Set(Gf.Vec3f(*rng.uniform(-90, 90, 3)))
    for name in ("a", "b"):
        cube = UsdGeom.Cube.Define(stage, f"/w/i/{name}")
        cube.AddRotateXYZOp().Set(Gf.Vec3f(*rng.uniform(-90, 90, 3)))
    prim.CreatePrototypesRel().SetTargets(["/w/i/a", "/w/i/b"])
    n = 20
    indices = rng.integers(0, 2, n)
    prim.CreateProtoIndicesAttr(indices.tolist())
    prim.CreatePositionsAttr(rng.normal(size=(n, 3)).tolist())
    prim.CreateScalesAttr(rng.uniform(0.5, 2, (n, 3)).tolist())
    prim.CreateOrientationsAttr([Gf.Quath(*(q / np.linalg.norm(q)).tolist()) for q in rng.normal(size=(n, 4))])
    time = Usd.TimeCode.Default()
    local = prim.ComputeInstanceTransformsAtTime(time, time)
    world = prim.ComputeLocalToWorldTransform(time)
    found = read(stage, time=time)
    for k, name in enumerate("ab"):
        gprim = found.gprim(f"/w/i/{name}")
        assert gprim.instance_ids.tolist() == np.flatnonzero(indices == k).tolist()
        for row, number in enumerate(gprim.instance_ids):
            expected = np.array(local[int(number)] * world).T
            expected[:3] *= 0.01
            assert gprim.transforms[row] == pytest.approx(expected, abs=1e-9)


# -- native instances ------------------------------------------------------------------------------------------------------------

LIBRARY = f"""class Xform "lib" {{
    def Mesh "tri" {{
        {TRIANGLE}
        double3 xformOp:translate = (0, 1, 0)
        {MOVE}
    }}
    def Xform "deep" {{
        def Sphere "ball" {{}}
    }}
}}
"""


def native(name: str, x: float, extra: str = "") -> str:
    return f"""def Xform "{name}" (
        instanceable = true
        inherits = </lib>
        prepend apiSchemas = ["MaterialBindingAPI"]
    ) {{
        double3 xformOp:translate = ({x}, 0, 0)
        {MOVE}
        {extra}
    }}
    """


def test_native_instances_share_geometry_and_have_their_own_paths(read):
    found = read(LIBRARY + native("a", 10) + native("b", 20))
    assert found.paths == ["/a/deep/ball", "/a/tri", "/b/deep/ball", "/b/tri"]
    assert found.gprim("/a/tri").mesh == found.gprim("/b/tri").mesh
    assert len(found.meshes) == 1
    assert places(found.gprim("/b/tri")) == [[20, 1, 0]]
    assert found.gprim("/a/tri").instance_ids is None
    assert found.gprim("/a/tri").instancer is None


def test_native_instances_inherit_from_where_they_stand(read):
    materials = 'def Material "red" {}\ndef Material "green" {}\n'
    text = materials + LIBRARY
    text += native("a", 0, "rel material:binding = </red>\nfloat primvars:x = 1")
    text += native("b", 0, 'rel material:binding = </green>\nfloat primvars:x = 2\nuniform token purpose = "render"')
    text += native("c", 0, 'token visibility = "invisible"')
    found = read(text)
    assert [found.material(f"/{name}/tri").path for name in "ab"] == ["/red", "/green"]
    assert [found.gprim(f"/{name}/tri").constants["x"].tolist() for name in "ab"] == [[1], [2]]
    assert [found.gprim(f"/{name}/tri").purpose for name in "ab"] == ["default", "render"]
    assert not any(path.startswith("/c") for path in found.paths)


def test_materials_inside_an_instance_are_named_by_their_proxy(read):
    library = f"""class Xform "lib" {{
        def Material "paint" {{}}
        def Mesh "tri" (
            prepend apiSchemas = ["MaterialBindingAPI"]
        ) {{
            {TRIANGLE}
            rel material:binding = </lib/paint>
        }}
    }}
    """
    found = read(library + native("a", 0) + native("b", 0))
    assert [found.material(f"/{name}/tri").path for name in "ab"] == ["/a/paint", "/b/paint"]


def test_instances_inside_instances(read):
    outer = f"""class Xform "outer" {{
        def Xform "in1" (
            instanceable = true
            inherits = </lib>
        ) {{
            double3 xformOp:translate = (0, 0, 1)
            {MOVE}
        }}
        def Xform "in2" (
            instanceable = true
            inherits = </lib>
        ) {{
            double3 xformOp:translate = (0, 0, 2)
            {MOVE}
        }}
    }}
    """
    text = LIBRARY + outer + native("a", 10).replace("</lib>", "</outer>") + native("b", 20).replace("</lib>", "</outer>")
    found = read(text)
    tris = [path for path in found.paths if path.endswith("tri")]
    assert tris == ["/a/in1/tri", "/a/in2/tri", "/b/in1/tri", "/b/in2/tri"]
    assert [places(found.gprim(path))[0] for path in tris] == [[10, 1, 1], [10, 1, 2], [20, 1, 1], [20, 1, 2]]
    assert len(found.meshes) == 1


def test_cameras_bodies_and_sites_inside_instances(read):
    library = """class Xform "lib" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    ) {
        def Camera "cam" {}
        def Cube "box" {}
    }
    """
    found = read(library + native("a", 1) + native("b", 2))
    assert [body.path for body in found.bodies] == ["/a", "/b"]
    assert [(camera.path, camera.body) for camera in found.cameras] == [("/a/cam", "/a"), ("/b/cam", "/b")]
    assert [found.gprim(path).body for path in ("/a/box", "/b/box")] == ["/a", "/b"]


def test_point_instancers_inside_native_instances(read):
    library = f"""class Xform "lib" {{
        {instancer("int[] protoIndices = [0, 0]" + chr(10) + "point3f[] positions = [(0, 1, 0), (0, 2, 0)]", prototypes="</lib/i/box>")}
    }}
    """
    found = read(library + native("a", 10) + native("b", 20))
    assert found.paths == ["/a/i/box", "/b/i/box"]
    assert places(found.gprim("/b/i/box")) == [[20, 1, 0], [20, 2, 0]]
    assert found.gprim("/b/i/box").instancer.path == "/b/i"


def test_native_instances_as_prototypes_of_a_point_instancer(read):
    found = read(LIBRARY + instancer(FOUR, native("box", 0)))
    assert found.paths == ["/i/box/deep/ball", "/i/box/tri"]
    assert places(found.gprim("/i/box/tri")) == [[0, 1, 0], [1, 1, 0], [2, 1, 0], [3, 1, 0]]


def test_a_broken_mesh_in_a_prototype_is_told_once_and_the_rest_is_drawn(read):
    broken = LIBRARY.replace("int[] faceVertexCounts = [3]", "int[] faceVertexCounts = [4]")
    found = read(broken + native("a", 0) + native("b", 1))
    assert found.paths == ["/a/deep/ball", "/b/deep/ball"]
    assert [(item.path, item.severity) for item in found.diagnostics] == [("/a/tri", Severity.ERROR)]


def test_geometry_of_many_instances_is_read_once(read, monkeypatch):
    from hdwarp.stage import take

    calls = []
    monkeypatch.setattr(take, "read_mesh", lambda *args: calls.append(args) or real(*args))
    real = __import__("hdwarp.stage.meshes", fromlist=["read_mesh"]).read_mesh
    found = read(LIBRARY + "".join(native(f"n{k}", k) for k in range(20)))
    assert len(calls) == 1
    assert len([path for path in found.paths if path.endswith("tri")]) == 20
