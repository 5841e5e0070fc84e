"""The walk: transforms, visibility, purposes, masks, bodies, sites, cameras, shapes, and what is not drawn but named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade

from hdwarp.errors import ArgumentError, NotSupported, Severity
from hdwarp.stage.columns import GeometryKind
from hdwarp.stage.reader import read_stage

MOVE = 'uniform token[] xformOpOrder = ["xformOp:translate"]'


# -- transforms and shapes ----------------------------------------------------------------------------------------------------


def test_transforms_compose_and_become_metres_and_columns(read):
    """Centimetres: a cube of edge 4 at (100, 0, 0) + 90 degrees about z of (0, 200, 0) = (-100, 0, 0), half edge 2 cm."""
    text = f"""#usda 1.0
(
    metersPerUnit = 0.01
)
def Xform "a" {{
    double3 xformOp:translate = (100, 0, 0)
    double xformOp:rotateZ = 90
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]
    def Cube "c" {{
        double size = 4
        double3 xformOp:translate = (0, 200, 0)
        {MOVE}
    }}
}}
"""
    found = read(text)
    matrix = found.gprim("/a/c").transforms[0]
    assert matrix.dtype == np.float64
    assert matrix[:3, 3] == pytest.approx([-1.0, 0.0, 0.0], abs=1e-12)
    assert matrix[:3, 0] == pytest.approx([0.0, 0.02, 0.0], abs=1e-12)
    assert matrix[3].tolist() == [0, 0, 0, 1]
    assert found.metres_per_unit == 0.01


def test_shapes_fold_their_size_into_the_transform(read):
    found = read('def Sphere "s" { double radius = 3 }\ndef Cube "c" { double size = 3 }\ndef Sphere "t" {}\ndef Cube "d" {}\n')
    kinds = {gprim.path: (gprim.kind, gprim.transforms[0, 0, 0], gprim.mesh) for gprim in found.gprims}
    assert kinds == {
        "/s": (GeometryKind.SPHERE, 3.0, None),
        "/c": (GeometryKind.CUBE, 1.5, None),
        "/t": (GeometryKind.SPHERE, 1.0, None),
        "/d": (GeometryKind.CUBE, 1.0, None),
    }


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_sizes_that_are_none(read, value):
    found = read(f'def Sphere "s" {{ double radius = {value} }}\ndef Cube "c" {{ double size = {value} }}\ndef Cube "ok" {{}}\n')
    assert found.paths == ["/ok"]
    assert found.codes("/s") == found.codes("/c") == ["shape-size"]


def test_reset_xform_stack_drops_what_is_above(read):
    text = f"""def Xform "a" {{
        double3 xformOp:translate = (5, 0, 0)
        {MOVE}
        def Sphere "only" {{ uniform token[] xformOpOrder = ["!resetXformStack!"] }}
        def Xform "b" {{
            double3 xformOp:translate = (0, 1, 0)
            uniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:translate"]
            def Sphere "below" {{}}
        }}
        def Sphere "plain" {{}}
    }}"""
    found = read(text)
    places = {gprim.path: gprim.transforms[0, :3, 3].tolist() for gprim in found.gprims}
    assert places == {"/a/only": [0, 0, 0], "/a/b/below": [0, 1, 0], "/a/plain": [5, 0, 0]}


def test_far_away_keeps_double_precision(read):
    """10,000 km away, the millimetre is still there."""
    text = f"""def Xform "far" {{
        double3 xformOp:translate = (1e7, 0, 0)
        {MOVE}
        def Sphere "s" {{
            double3 xformOp:translate = (0.001, 0, 0)
            {MOVE}
        }}
    }}"""
    assert read(text).gprim("/far/s").transforms[0, 0, 3] - 1e7 == pytest.approx(0.001, abs=1e-8)


def test_mirrored_transforms_stay_mirrored(read):
    text = 'def Cube "c" { float3 xformOp:scale = (-1, 1, 1)\nuniform token[] xformOpOrder = ["xformOp:scale"] }'
    assert np.linalg.det(read(text).gprim("/c").transforms[0, :3, :3]) == pytest.approx(-1.0)


@pytest.mark.parametrize("scale", ["(0, 1, 1)", "(1, 1, 0)", "(nan, 1, 1)", "(inf, 1, 1)"])
def test_transforms_without_inverse_are_skipped_and_named(read, scale):
    above = f'float3 xformOp:scale = {scale}\nuniform token[] xformOpOrder = ["xformOp:scale"]'
    text = f'def Xform "a" {{ {above}\ndef Cube "c" {{}} }}\ndef Cube "ok" {{}}'
    found = read(text)
    assert found.paths == ["/ok"]
    assert found.codes("/a/c") == ["singular-transform"]
    assert next(iter(found.diagnostics)).severity is Severity.ERROR


def test_tiny_and_uneven_scales_are_no_mistake(read):
    text = 'def Cube "c" { double3 xformOp:scale = (1e-9, 1, 1e9)\nuniform token[] xformOpOrder = ["xformOp:scale"] }'
    assert read(text).paths == ["/c"]


def test_a_broken_op_order_is_named(read):
    found = read('def Cube "c" { uniform token[] xformOpOrder = ["xformOp:nonsense"] }\ndef Cube "d" {}')
    assert found.paths == ["/c", "/d"]
    assert "unreadable" in found.codes("/c")


def test_deep_hierarchies(read):
    """Deeper than Python's recursion limit."""
    layer = Sdf.Layer.CreateAnonymous()
    with Sdf.ChangeBlock():
        path = Sdf.Path("/p")
        for _ in range(1500):
            Sdf.CreatePrimInLayer(layer, path).specifier = Sdf.SpecifierDef
            path = path.AppendChild("p")
        Sdf.CreatePrimInLayer(layer, path).typeName = "Cube"
        layer.GetPrimAtPath(path).specifier = Sdf.SpecifierDef
    assert len(read(Usd.Stage.Open(layer)).gprims) == 1


# -- visibility, purpose, activity ---------------------------------------------------------------------------------------------

FAMILY = """def Xform "a" {{
    {above}
    def Cube "c" {{
        {own}
    }}
}}"""


@pytest.mark.parametrize(
    ("above", "own", "drawn"),
    [
        ("", "", True),
        ('token visibility = "invisible"', "", False),
        ("", 'token visibility = "invisible"', False),
        ('token visibility = "invisible"', 'token visibility = "inherited"', False),  # nothing shows itself again
        ('token visibility = "bogus"', "", True),
    ],
)
def test_visibility(read, above, own, drawn):
    assert bool(read(FAMILY.format(above=above, own=own)).paths) is drawn


def test_visibility_follows_time(read):
    text = FAMILY.format(above='token visibility.timeSamples = {\n0: "inherited",\n5: "invisible",\n}', own="")
    assert [len(read(text, time=t).paths) for t in (0, 4.9, 5, 9)] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("above", "own", "purpose"),
    [
        ("", "", "default"),
        ("render", "", "render"),
        ("", "proxy", "proxy"),
        ("guide", "proxy", "proxy"),
        ("guide", "default", "default"),  # an authored default stands
        ("default", "", "default"),
        ("proxy", "", "proxy"),
    ],
)
def test_purposes(read, above, own, purpose):
    text = FAMILY.format(above=f'uniform token purpose = "{above}"' if above else "", own=f'uniform token purpose = "{own}"' if own else "")
    assert read(text, purposes=("default", "render", "proxy", "guide")).gprim("/a/c").purpose == purpose
    assert bool(read(text).paths) is (purpose in ("default", "render"))
    assert bool(read(text, purposes=[purpose]).paths)


def test_purpose_visibility(read):
    text = """def Xform "a" (
        prepend apiSchemas = ["VisibilityAPI"]
    ) {
        uniform token guideVisibility = "invisible"
        uniform token renderVisibility = "visible"
        def Cube "guide" { uniform token purpose = "guide" }
        def Cube "render" { uniform token purpose = "render" }
    }
    def Cube "other" { uniform token purpose = "guide" }"""
    assert read(text, purposes=("guide", "render")).paths == ["/a/render", "/other"]


def test_inactive_abstract_and_undefined_prims(read):
    text = """def Cube "off" (
        active = false
    ) {}
    class Cube "abstract" {}
    over Cube "over" {}
    def Cube "on" {}"""
    assert read(text).paths == ["/on"]


def test_a_mask_prunes_the_walk(read):
    text = 'def Xform "a" { def Cube "x" {}\ndef Cube "y" {} }\ndef Cube "b" {}\ndef Cube "ab" {}'
    assert read(text, mask=["/a"]).paths == ["/a/x", "/a/y"]
    assert read(text, mask=["/a/y", "/b"]).paths == ["/a/y", "/b"]


# -- order, counts, options ----------------------------------------------------------------------------------------------------


def test_gprims_are_in_path_order(read):
    names = ["b", "B", "a1", "a", "a_", "Z", "a/x", "a/B", "a1/x"]
    stage = Usd.Stage.CreateInMemory()
    for name in names:
        UsdGeom.Cube.Define(stage, f"/{name}")
    paths = read(stage).paths
    assert paths == [str(path) for path in sorted(Sdf.Path(f"/{name}") for name in names)]


def test_imageable_prims_are_counted_drawn_or_not(read):
    text = 'def Xform "a" { token visibility = "invisible"\ndef Cube "x" {}\ndef Cube "y" {} }\n'
    text += 'def Scope "s" {}\ndef "untyped" {}\ndef Material "m" {}'
    assert read(text).prim_counts == {"Cube": 2, "Scope": 1, "Xform": 1}


def test_options_that_do_not_exist_or_not_yet():
    stage = Usd.Stage.CreateInMemory()
    time = Usd.TimeCode.Default()
    with pytest.raises(NotSupported, match="high"):
        read_stage(stage, time, complexity="high")
    with pytest.raises(ArgumentError, match="highest"):
        read_stage(stage, time, complexity="highest")
    with pytest.raises(ArgumentError, match="proxxy"):
        read_stage(stage, time, purposes=["proxxy"])


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_absurd_metres_per_unit(read, value):
    stage = Usd.Stage.CreateInMemory()
    stage.SetMetadata("metersPerUnit", value)
    UsdGeom.Cube.Define(stage, "/c")
    found = read(stage)
    assert found.codes() == ["metres-per-unit"]
    assert found.metres_per_unit == 0.01
    assert found.gprim("/c").transforms[0, 0, 0] == pytest.approx(0.01)


def test_stage_metadata(read):
    found = read('#usda 1.0\n(\n    upAxis = "Z"\n    timeCodesPerSecond = 30\n    startTimeCode = 7\n)\n')
    assert (found.up_axis, found.time_codes_per_second, found.time, found.metres_per_unit) == ("Z", 30.0, 7.0, 0.01)
    assert read('#usda 1.0\n(\n    upAxis = "X"\n)\n').codes() == ["up-axis"]


# -- what is not drawn is named -------------------------------------------------------------------------------------------------

UNSUPPORTED = ["Volume", "ParticleField3DGaussianSplat", "GenerativeProcedural"]


@pytest.mark.parametrize("type_name", UNSUPPORTED)
def test_types_that_would_draw_are_named(read, type_name):
    found = read(f'def {type_name} "x" {{}}\ndef Cube "c" {{}}')
    assert found.paths == ["/c"]
    assert [(item.path, item.code, item.severity) for item in found.diagnostics] == [("/x", "unsupported-type", Severity.WARNING)]
    assert type_name in found.message("unsupported-type")


@pytest.mark.parametrize(
    "type_name", ["Xform", "Scope", "SkelRoot", "Skeleton", "PhysicsRevoluteJoint", "Material", "RenderSettings", "PhysicsScene"]
)
def test_types_with_nothing_to_draw_are_silent(read, type_name):
    assert read(f'def {type_name} "x" {{}}').codes() == []


def test_unsupported_prims_that_would_not_be_drawn_anyway_are_silent(read):
    assert read('def Volume "x" { token visibility = "invisible" }\ndef Volume "y" { uniform token purpose = "guide" }').codes() == []


def test_types_of_unknown_schemas_are_named_and_what_is_below_is_drawn(read):
    found = read('def Gizmo "x" { def Cube "c" {} }')
    assert found.paths == ["/x/c"]
    assert found.codes("/x") == ["unknown-type"]


def test_lights_are_listed(read):
    text = """def SphereLight "s" {}
    def DomeLight "d" {}
    def Mesh "m" (
        prepend apiSchemas = ["MeshLightAPI"]
    ) {}"""
    assert read(text).light_paths == ["/d", "/m", "/s"]


# -- bodies, sites, cameras -----------------------------------------------------------------------------------------------------

ROBOT = f"""def Xform "base" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI"]
) {{
    double3 xformOp:translate = (1, 0, 0)
    float3 xformOp:scale = (2, 3, 4)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    def Cube "part" {{}}
    def Xform "arm" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    ) {{
        double3 xformOp:translate = (0, 1, 0)
        {MOVE}
        def Sphere "hand" {{}}
        def Camera "cam" {{}}
        def Xform "tip" (
            prepend apiSchemas = ["HdWarpSiteAPI"]
        ) {{
            double3 xformOp:translate = (0, 0, 1)
            double xformOp:rotateX = 90
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateX"]
        }}
    }}
    def Xform "fixed" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    ) {{
        bool physics:rigidBodyEnabled = 0
        def Cube "plate" {{}}
    }}
}}
def Cube "ground" {{}}
def Camera "free" {{}}
"""


def test_bodies_are_the_nearest_enabled_rigid_body(read):
    found = read(ROBOT)
    assert [body.path for body in found.bodies] == ["/base", "/base/arm"]
    names = {gprim.path: gprim.body for gprim in found.gprims}
    assert names == {"/base/part": "/base", "/base/arm/hand": "/base/arm", "/base/fixed/plate": "/base", "/ground": ""}


def test_body_poses_are_rigid(read):
    """Scale stays with the geometry: the arm sits at (1, 0, 0) + (2, 3, 4) * (0, 1, 0)."""
    arm = read(ROBOT).bodies[1].world_from_body
    assert arm[:3, :3] == pytest.approx(np.eye(3))
    assert arm[:3, 3] == pytest.approx([1, 3, 0])


def test_sites(read):
    site = read(ROBOT).sites[0]
    assert (site.path, site.body) == ("/base/arm/tip", "/base/arm")
    assert site.world_from_site[:3, 3] == pytest.approx([1, 3, 4])
    assert site.world_from_site[:3, 1] == pytest.approx([0, 0, 1])


def test_cameras_know_their_body(read):
    found = read(ROBOT)
    assert [(camera.path, camera.body) for camera in found.cameras] == [("/base/arm/cam", "/base/arm"), ("/free", "")]


def test_cameras_and_bodies_are_read_though_invisible_or_of_other_purpose(read):
    text = """def Xform "rig" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    ) {
        token visibility = "invisible"
        uniform token purpose = "guide"
        def Camera "cam" {}
        def Cube "c" {}
    }"""
    found = read(text)
    assert found.paths == []
    assert [camera.path for camera in found.cameras] == ["/rig/cam"]
    assert [body.path for body in found.bodies] == ["/rig"]


def test_a_camera_with_values_of_the_wrong_type_is_named(read):
    found = read('def Camera "cam" { string focalLength = "long" }\ndef Camera "ok" {}')
    assert [camera.path for camera in found.cameras] == ["/ok"]
    assert found.codes("/cam")


def test_a_body_that_cannot_be_placed_is_none(read):
    text = """def Xform "b" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
    ) {
        float3 xformOp:scale = (0, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:scale"]
        def Cube "c" { uniform token[] xformOpOrder = ["!resetXformStack!"] }
    }"""
    found = read(text)
    assert found.bodies == []
    assert found.gprim("/b/c").body == ""
    assert found.codes("/b") == ["singular-transform"]


# -- against USD's own computations -----------------------------------------------------------------------------------------------


def random_stage(seed: int) -> Usd.Stage:
    """Nested prims with random transforms, resets, visibility, purposes, primvars and bindings, some of them untyped."""
    rng = np.random.default_rng(seed)
    stage = Usd.Stage.CreateInMemory()
    for name in ("red", "green"):
        UsdShade.Material.Define(stage, f"/Looks/{name}")

    def grow(path: str, depth: int) -> None:
        for k in range(int(rng.integers(1, 4))):
            child = f"{path}/p{k}"
            leaf = depth == 0
            prim = stage.DefinePrim(child, "Cube" if leaf else rng.choice(["Xform", "Scope", "", "Sphere"]))
            if prim.IsA(UsdGeom.Xformable) and rng.random() < 0.7:
                xform = UsdGeom.Xformable(prim)
                xform.AddTranslateOp().Set(Gf.Vec3d(*rng.normal(size=3)))
                xform.AddRotateXYZOp().Set(Gf.Vec3f(*rng.uniform(-180, 180, 3)))
                xform.AddScaleOp().Set(Gf.Vec3f(*rng.uniform(0.5, 2, 3)))
                xform.SetResetXformStack(bool(rng.random() < 0.15))
            if rng.random() < 0.1:
                prim.CreateAttribute("visibility", Sdf.ValueTypeNames.Token).Set(str(rng.choice(["invisible", "inherited"])))
            if rng.random() < 0.3:
                value = str(rng.choice(["default", "render", "proxy", "guide"]))
                prim.CreateAttribute("purpose", Sdf.ValueTypeNames.Token, False, Sdf.VariabilityUniform).Set(value)
            for name in ("a", "b"):
                if rng.random() < 0.3:
                    kind = rng.choice(["constant", "vertex"], p=[0.8, 0.2])
                    if kind == "constant":
                        UsdGeom.PrimvarsAPI(prim).CreatePrimvar(name, Sdf.ValueTypeNames.Float, "constant").Set(float(rng.random()))
                    elif not leaf and prim.GetTypeName() != "Sphere":
                        UsdGeom.PrimvarsAPI(prim).CreatePrimvar(name, Sdf.ValueTypeNames.FloatArray, kind).Set([1.0, 2.0])
            if rng.random() < 0.25:
                binding = UsdShade.MaterialBindingAPI.Apply(prim)
                strength = UsdShade.Tokens.strongerThanDescendants if rng.random() < 0.3 else UsdShade.Tokens.fallbackStrength
                purpose = str(rng.choice(["", "full", "preview"], p=[0.6, 0.2, 0.2]))
                material = UsdShade.Material(stage.GetPrimAtPath(f"/Looks/{rng.choice(['red', 'green'])}"))
                if rng.random() < 0.3:
                    collection = Usd.CollectionAPI.Apply(prim, "some")
                    collection.IncludePath(child)
                    binding.Bind(collection, material, "c", strength, purpose)
                else:
                    binding.Bind(material, strength, purpose)
            if not leaf:
                grow(child, depth - 1)

    grow("/World", 3)
    return stage


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("purposes", [("full", ""), ("preview", ""), ("",)])
def test_inherited_state_is_what_usd_computes(read, seed, purposes):
    """Every gprim of a random stage: presence, purpose, transform, primvars and material, each by its own call into USD."""
    stage = random_stage(seed)
    found = read(stage, material_purposes=purposes)
    rows = {gprim.path: gprim for gprim in found.gprims}
    scale = found.metres_per_unit
    checked = 0
    for prim in stage.Traverse():
        if prim.GetTypeName() not in ("Cube", "Sphere"):
            continue
        imageable = UsdGeom.Imageable(prim)
        purpose = imageable.ComputePurpose()
        drawn = imageable.ComputeVisibility() != "invisible" and purpose in ("default", "render")
        path = str(prim.GetPath())
        assert drawn == (path in rows), path
        if not drawn:
            continue
        row = rows[path]
        checked += 1
        assert row.purpose == purpose
        world = np.array(imageable.ComputeLocalToWorldTransform(Usd.TimeCode.Default())).T * np.array([[scale], [scale], [scale], [1.0]])
        assert row.transforms[0] == pytest.approx(world, rel=1e-12, abs=1e-15)
        primvars = UsdGeom.PrimvarsAPI(prim).FindPrimvarsWithInheritance()
        constants = {p.GetPrimvarName(): p.Get() for p in primvars if p.GetInterpolation() == "constant" and p.HasAuthoredValue()}
        assert {name: float(value[0]) for name, value in row.constants.items()} == pytest.approx(constants)
        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial(purposes[0])
        assert row.material == (str(material.GetPath()) if material else "")
    assert checked


# -- what is authored as nothing there is ----------------------------------------------------------------------------------------


def test_a_purpose_nobody_knows_is_named(read):
    """USD's own rule: nothing asks for such a purpose, so nothing draws it."""
    found = read('def Cube "a" { token purpose = "foo" }\ndef Cube "b" { int purpose = 5 }\ndef Cube "c" { uniform token purpose = None }')
    assert found.paths == ["/b", "/c"]
    assert [(item.path, item.code, item.severity) for item in found.diagnostics] == [
        ("/a", "purpose", Severity.WARNING),
        ("/b", "purpose", Severity.WARNING),
    ]


def test_a_visibility_nobody_knows_is_named(read):
    found = read('def Cube "a" { token visibility = "hidden" }\ndef Cube "b" { token visibility = None }')
    assert found.paths == ["/a", "/b"]
    assert [(item.path, item.code) for item in found.diagnostics] == [("/a", "visibility")]


def test_projections_are_named_and_read_as_affine(read):
    """Under a parent that moves by (0, 0, 5), which the last column would otherwise add once more."""
    text = """def Xform "p" {
    double3 xformOp:translate = (0, 0, 5)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Cube "c" {
        matrix4d xformOp:transform = ( (1, 0, 0, 0.5), (0, 1, 0, 0), (0, 0, 1, 0), (2, 0, 0, 2) )
        uniform token[] xformOpOrder = ["xformOp:transform"]
    }
    def Cube "fine" {
        matrix4d xformOp:transform = ( (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (2, 0, 0, 1) )
        uniform token[] xformOpOrder = ["xformOp:transform"]
    }
}
"""
    found = read(text)
    assert [(item.path, item.code, item.severity) for item in found.diagnostics] == [("/p/c", "projective-transform", Severity.WARNING)]
    assert found.gprim("/p/c").transforms[0].tolist() == [[1, 0, 0, 2], [0, 1, 0, 0], [0, 0, 1, 5], [0, 0, 0, 1]]


def test_xform_ops_that_are_not_there_are_named(read):
    order = '["xformOp:translate", "xformOp:scale", "!invert!xformOp:translate:pivot"]'
    text = f"double3 xformOp:translate = (1, 2, 3); uniform token[] xformOpOrder = {order}"
    found = read(f'def Cube "a" {{ {text} }}\ndef Cube "b" {{ int xformOpOrder = 5 }}')
    assert found.gprim("/a").transforms[0][:3, 3].tolist() == [1, 2, 3]
    assert [(item.path, item.code) for item in found.diagnostics] == [("/a", "xform-op"), ("/b", "wrong-type")]
    assert "xformOp:scale, !invert!xformOp:translate:pivot" in found.message("xform-op")


def test_the_ops_of_each_prim_are_its_own(read):
    """An order that was fine for one prim is not for another that lacks an op."""
    order = 'uniform token[] xformOpOrder = ["xformOp:translate", "!resetXformStack!"]'
    found = read(f'def Cube "a" {{ double3 xformOp:translate = (1, 2, 3); {order} }}\ndef Cube "b" {{ {order} }}')
    assert [(item.path, item.code) for item in found.diagnostics] == [("/b", "xform-op")]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "body",
    [
        "double radius = 1e300",
        "double radius = 1e-300",
        'double3 xformOp:scale = (1e25, 1, 1); uniform token[] xformOpOrder = ["xformOp:scale"]',
        'double3 xformOp:scale = (1e-25, 1, 1); uniform token[] xformOpOrder = ["xformOp:scale"]',
        'double3 xformOp:translate = (1e25, 0, 0); uniform token[] xformOpOrder = ["xformOp:translate"]',
    ],
)
def test_what_is_too_large_or_small_or_far_to_be_drawn_is_named(read, body):
    found = read(f'def Sphere "s" {{ {body} }}\ndef Sphere "fine" {{ double radius = 1e15 }}')
    assert found.paths == ["/fine"]
    assert [(item.path, item.code, item.severity) for item in found.diagnostics] == [("/s", "size-range", Severity.ERROR)]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(("unit", "read_as"), [("1e30", 0.01), ("1e-30", 0.01), ("9.4607304725808e15", 9.4607304725808e15), ("1e-9", 1e-9)])
def test_units_nobody_means_are_named(read, unit, read_as):
    """Light years and nanometres are units."""
    found = read(f'#usda 1.0\n(\n    metersPerUnit = {unit}\n)\ndef Sphere "s" {{ }}\ndef Camera "c" {{ }}')
    assert found.metres_per_unit == read_as
    assert found.codes() == ([] if read_as != 0.01 else ["metres-per-unit"])
    assert found.paths == ["/s"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_camera_too_far_off_is_named_and_a_far_plane_is_not(read):
    far = 'double3 xformOp:translate = (1e25, 0, 0); uniform token[] xformOpOrder = ["xformOp:translate"]'
    text = f'def Camera "a" {{ {far} }}\ndef Camera "b" {{ float2 clippingRange = (1, 3e38) }}'
    found = read(f"#usda 1.0\n(\n    metersPerUnit = 1000\n)\n{text}")
    assert [camera.path for camera in found.cameras] == ["/b"]
    assert found.codes("/a") == ["camera-transform"]
    assert np.float32(found.cameras[0].clipping_range[1]) < np.inf
