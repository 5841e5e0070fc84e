"""UsdSkel: fact 25 and other poses by hand, USD's own baking of the same stage, and what is told of broken rigs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdSkel

import hdwarp
from hdwarp.stage.open import open_stage
from hdwarp.stage.skinning import Skinning

BIND = "[((1,0,0,0),(0,1,0,0),(0,0,1,0),(0,0,0,1)), ((1,0,0,0),(0,1,0,0),(0,0,1,0),(0,1,0,1))]"
SKELETON = f"""def Skeleton "Skel" (prepend apiSchemas = ["SkelBindingAPI"]) {{
    uniform token[] joints = ["a", "a/b"]
    uniform matrix4d[] bindTransforms = {BIND}
    uniform matrix4d[] restTransforms = {BIND}
    rel skel:animationSource = </Rig/Anim>
    SKELETON_MORE
}}"""
ANIMATION = """def SkelAnimation "Anim" {
    uniform token[] joints = ["a/b"]
    float3[] translations = [(0, 1, 0)]
    half3[] scales = [(1, 1, 1)]
    quatf[] rotations.timeSamples = { 0: [(1, 0, 0, 0)],
        10: [(0.70710678, 0, 0, 0.70710678)],
        20: [(0.5, 0.5, 0.5, 0.5)], }
    ANIMATION_MORE
}"""
POINTS = [(0, 0, 0), (0, 1, 0), (0, 2, 0), (0.5, 1.5, 0.25), (1, 1.2, -0.5), (0.3, 0.2, 0.1)]
WEIGHTS = [(1, 0), (0, 1), (0, 1), (0.25, 0.75), (0.5, 0.5), (0.9, 0.1)]
INFLUENCES = f"""
    int[] primvars:skel:jointIndices = {[0, 1] * 6} (
        interpolation = "vertex"
        elementSize = 2
    )
    float[] primvars:skel:jointWeights = {[w for pair in WEIGHTS for w in pair]} (
        interpolation = "vertex"
        elementSize = 2
    )
"""
TURN = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])  # about Z by 90 degrees: the pose of joint b at time 10


def mesh(more: str = INFLUENCES, name: str = "Mesh", binding: str = "rel skel:skeleton = </Rig/Skel>") -> str:
    return f"""def Mesh "{name}" (prepend apiSchemas = ["SkelBindingAPI"]) {{
        point3f[] points = {POINTS}
        int[] faceVertexCounts = [3, 3]
        int[] faceVertexIndices = [0, 1, 2, 3, 4, 5]
        uniform token subdivisionScheme = "none"
        {binding}
        {more}
    }}"""


def rig(body: str, *, skeleton: str = SKELETON, animation: str = ANIMATION, skeleton_more: str = "", animation_more: str = "") -> str:
    skeleton, animation = skeleton.replace("SKELETON_MORE", skeleton_more), animation.replace("ANIMATION_MORE", animation_more)
    return f'def SkelRoot "Rig" {{\n{skeleton}\n{animation}\n{body} }}'


def by_hand(joint: np.ndarray, points: Sequence = POINTS) -> np.ndarray:
    """float64 linear blend skinning of POINTS: joint a at rest, joint b (bound at y = 1) turned by ``joint``."""
    up, points = np.array([0.0, 1.0, 0.0]), np.asarray(points, np.float64)
    weights = np.array(WEIGHTS, np.float64)
    return weights[:, :1] * points + weights[:, 1:] * ((points - up) @ joint.T + up)


def points_of(found, path: str = "/Rig/Mesh") -> np.ndarray:
    """The points of a gprim in the stage's world."""
    row = found.gprim(path)
    matrix = row.transforms[0]
    return found.mesh(path).points.astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]


def baked(stage: Usd.Stage) -> Usd.Stage:
    """A copy without instances, its points written by USD."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.TransferContent(stage.GetRootLayer())
    copy = Usd.Stage.Open(layer)
    for prim in copy.Traverse():
        prim.SetInstanceable(False)
    assert UsdSkel.BakeSkinning(Usd.Stage.Traverse(copy))
    return copy


def assert_as_baked(read, stage: Usd.Stage, times: tuple[float, ...] = (0, 10, 20), moved: int = 1) -> None:
    """Every gprim lies, at authored times, where USD's baking puts it; at least ``moved`` are not where they were modelled."""
    bake = baked(stage)
    changed = set()
    for time in times:
        ours, theirs = read(stage, time=time), read(bake, time=time)
        assert [g.path for g in ours.columns.gprims] == [g.path for g in theirs.columns.gprims]
        for gprim in ours.columns.gprims:
            if gprim.mesh is None:
                assert gprim.transforms == pytest.approx(theirs.gprim(gprim.path).transforms, abs=1e-6)
                continue
            got, expected = points_of(ours, gprim.path), points_of(theirs, gprim.path)
            assert got == pytest.approx(expected, abs=2e-6 * max(1.0, np.abs(expected).max()))
            prim = stage.GetPrimAtPath(gprim.path)
            authored = np.asarray(UsdGeom.Mesh(prim).GetPointsAttr().Get(time))
            if np.abs(ours.mesh(gprim.path).points - authored).max() > 1e-3:
                changed.add(gprim.path)
            normals, others = ours.mesh(gprim.path).normals, theirs.mesh(gprim.path).normals
            if normals is not None and others is not None and normals.interpolation == "vertex" and prim.HasAttribute("normals"):
                assert normals.values == pytest.approx(others.values, abs=1e-5)
    assert len(changed) >= moved


def test_fact_25(read):
    """Joint b, bound at y = 1 and turned 90 degrees about Z, takes (0, 2, 0) to (-1, 1, 0) and leaves (0, 1, 0) where it is."""
    found = read(rig(mesh()), time=10)
    assert points_of(found)[:3] == pytest.approx(np.array([(0, 0, 0), (0, 1, 0), (-1, 1, 0)]), abs=1e-6)
    assert points_of(found) == pytest.approx(by_hand(TURN), abs=1e-6)
    assert found.codes("/Rig/Mesh") == []
    assert points_of(read(rig(mesh()), time=0)) == pytest.approx(np.array(POINTS), abs=1e-6)


def test_where_skeleton_and_mesh_stand(read, stage_of):
    """The result is in the skeleton's space: the skeleton's transform places it, the mesh's own and its parent's do not."""
    placed = (
        'double3 xformOp:translate.timeSamples = { 0: (3, 0, 0),\n 10: (5, 0, 7), }\nuniform token[] xformOpOrder = ["xformOp:translate"]'
    )
    turned = (
        'float xformOp:rotateX = 33\nfloat3 xformOp:scale = (1, 2, 3)\nuniform token[] xformOpOrder = ["xformOp:rotateX", "xformOp:scale"]'
    )
    text = rig(f'def Xform "Arm" {{ {turned}\n{mesh(INFLUENCES + turned)} }}', skeleton_more=placed)
    opened = stage_of(text)
    assert points_of(read(opened, time=10), "/Rig/Arm/Mesh") == pytest.approx(by_hand(TURN) + (5, 0, 7), abs=2e-6)
    assert_as_baked(read, opened, (0, 10))
    reset = INFLUENCES + 'double3 xformOp:translate = (1, 1, 1)\nuniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:translate"]'
    opened = stage_of(rig(f'def Xform "Arm" {{ {turned}\n{mesh(reset)} }}', skeleton_more=placed))
    assert points_of(read(opened, time=10), "/Rig/Arm/Mesh") == pytest.approx(by_hand(TURN) + (5, 0, 7), abs=2e-6)


def test_geom_bind_transform_and_dual_quaternions(read, stage_of):
    bind = INFLUENCES + "matrix4d primvars:skel:geomBindTransform = ((0,0,2,0), (1,0,0,0), (0,1,0,0), (1,2,3,1))"
    assert_as_baked(read, stage_of(rig(mesh(bind))))
    dual = INFLUENCES + 'uniform token primvars:skel:skinningMethod = "dualQuaternion"'
    opened = stage_of(rig(mesh(dual)))
    assert_as_baked(read, opened)
    bent = points_of(read(opened, time=10))
    assert np.abs(bent - by_hand(TURN)).max() > 0.05, "linear blending shrinks a bend, dual quaternions do not"
    assert bent[:3] == pytest.approx(by_hand(TURN)[:3], abs=1e-6)


def test_a_rigid_mesh_and_joints_of_its_own(read, stage_of):
    """Constant influences move all points alike; skel:joints says what indices count."""
    rigid = """uniform token[] skel:joints = ["a/b", "a"]
        int[] primvars:skel:jointIndices = [0] (
            interpolation = "constant"
            elementSize = 1
        )
        float[] primvars:skel:jointWeights = [1] (
            interpolation = "constant"
            elementSize = 1
        )"""
    opened = stage_of(rig(mesh(rigid)))
    up = np.array([0, 1, 0])
    assert points_of(read(opened, time=10)) == pytest.approx((np.array(POINTS) - up) @ TURN.T + up, abs=1e-6)
    assert_as_baked(read, opened)
    shape = 'double radius = 0.5\ndouble3 xformOp:translate = (9, 9, 9)\nuniform token[] xformOpOrder = ["xformOp:translate"]'
    ball = f'def Sphere "Ball" (prepend apiSchemas = ["SkelBindingAPI"]) {{ {shape}\nrel skel:skeleton = </Rig/Skel>\n{rigid} }}'
    opened = stage_of(rig(mesh(rigid) + "\n" + ball))
    row = read(opened, time=10).gprim("/Rig/Ball").transforms[0]
    assert row[:3, 3] == pytest.approx((1, 1, 0), abs=1e-6), "its own xformOps do not count"
    assert row[:3, :3] == pytest.approx(0.5 * TURN, abs=1e-6)
    assert_as_baked(read, opened)


def test_an_instancer_moves_as_a_whole(read):
    rigid = INFLUENCES.replace("vertex", "constant").replace(str([0, 1] * 6), "[1, 0]")
    rigid = rigid.replace(str([w for pair in WEIGHTS for w in pair]), "[1, 0]")
    body = f"""def PointInstancer "Studs" (prepend apiSchemas = ["SkelBindingAPI"]) {{
        int[] protoIndices = [0, 0]; point3f[] positions = [(0, 2, 0), (0, 1, 0)]; rel prototypes = </Rig/Studs/Ball>
        rel skel:skeleton = </Rig/Skel>
        {rigid}
        def Sphere "Ball" {{}} }}"""
    rows = read(rig(body), time=10).gprim("/Rig/Studs/Ball").transforms
    assert rows[:, :3, 3] == pytest.approx(np.array([(-1, 1, 0), (0, 1, 0)]), abs=1e-6)


SHAPES = """uniform token[] skel:blendShapes = ["smile", "blink"]
    rel skel:blendShapeTargets = [</Rig/Mesh/Smile>, </Rig/Mesh/Blink>]
    def BlendShape "Smile" {
        uniform vector3f[] offsets = [(0, 1, 0), (0, 0, 1)]
        uniform int[] pointIndices = [1, 4]
        uniform vector3f[] inbetweens:half = [(2, 0, 0), (0, 3, 0)] (
            weight = 0.5
        )
    }
    def BlendShape "Blink" {
        uniform vector3f[] offsets = [(1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0)]
    }"""
SMILES = (
    'uniform token[] blendShapes = ["other", "smile"]\nfloat[] blendShapeWeights.timeSamples = { 0: [7, 0],\n10: [7, 0.25],\n20: [7, 1], }'
)


def test_blend_shapes_come_before_the_joints(read, stage_of):
    """At 10 the weight 0.25 is half way to the inbetween at 0.5; a shape that nothing animates has weight 0."""
    rest = np.array(POINTS, np.float64)
    rest[1] += (1, 0, 0)
    rest[4] += (0, 1.5, 0)
    opened = stage_of(rig(mesh(INFLUENCES + SHAPES), animation_more=SMILES))
    assert points_of(read(opened, time=10)) == pytest.approx(by_hand(TURN, rest), abs=1e-6)
    assert_as_baked(read, opened)
    opened = stage_of(rig(mesh(SHAPES), animation_more=SMILES))
    assert points_of(read(opened, time=10)) == pytest.approx(rest, abs=1e-6)
    assert_as_baked(read, opened)


NORMALS = f"""normal3f[] normals = {[(0, 1, 0)] * 3 + [(0.6, 0.8, 0)] * 3} (
    interpolation = "INTERPOLATION"
)"""


def test_normals_turn_with_their_points(read, stage_of):
    text = rig(mesh(INFLUENCES + NORMALS.replace("INTERPOLATION", "vertex")))
    assert_as_baked(read, stage_of(text))
    found = read(text, time=10).mesh("/Rig/Mesh").normals.values
    assert found[:3] == pytest.approx(np.array([(0, 1, 0), (-1, 0, 0), (-1, 0, 0)]), abs=1e-6)
    corners = read(text.replace('interpolation = "vertex"\n)', 'interpolation = "faceVarying"\n)'), time=10).mesh("/Rig/Mesh").normals
    assert corners.interpolation == "faceVarying"
    assert corners.values == pytest.approx(found, abs=1e-6)  # each point has one corner, in order
    uniform = INFLUENCES + f'normal3f[] normals = {[(0, 0, 1)] * 2} (\n    interpolation = "uniform"\n)'
    faces = read(rig(mesh(uniform)), time=10)
    assert faces.codes("/Rig/Mesh") == ["skinned-normals"]
    assert faces.mesh("/Rig/Mesh").normals is None


INSTANCES = """def Scope "Library" {{
    def SkelRoot "Rig" {{
        def Skeleton "Skel" (prepend apiSchemas = ["SkelBindingAPI"]) {{
            uniform token[] joints = ["a", "a/b"]
            uniform matrix4d[] bindTransforms = {bind}
            uniform matrix4d[] restTransforms = {bind}
        }}
        {mesh}
    }}
}}
{animation}
def Xform "One" (instanceable = true
    prepend references = </Library>
    prepend apiSchemas = ["SkelBindingAPI"]) {{
    rel skel:animationSource = </Anim>
    double3 xformOp:translate = (10, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}}
def Xform "Two" (instanceable = true
    prepend references = </Library>
    prepend apiSchemas = ["SkelBindingAPI"]) {{
    rel skel:animationSource = </Anim>
    float xformOp:rotateZ = 90
    uniform token[] xformOpOrder = ["xformOp:rotateZ"]
}}
def Xform "Still" (instanceable = true
    prepend references = </Library>) {{
}}"""


def test_native_instances_have_animations_of_their_own(read, stage_of):
    """An animation named on the instance itself is not in the prototype. Equal poses share a mesh, wherever the instances stand."""
    bound = mesh(binding="rel skel:skeleton = </Library/Rig/Skel>")
    opened = stage_of(INSTANCES.format(bind=BIND, mesh=bound, animation=ANIMATION.replace("ANIMATION_MORE", "")))
    assert opened.GetPrimAtPath("/One").IsInstance()
    found = read(opened, time=10)
    assert points_of(found, "/One/Rig/Mesh") == pytest.approx(by_hand(TURN) + (10, 0, 0), abs=1e-6)
    assert points_of(found, "/Two/Rig/Mesh") == pytest.approx(by_hand(TURN) @ TURN.T, abs=1e-6)
    assert points_of(found, "/Still/Rig/Mesh") == pytest.approx(np.array(POINTS), abs=1e-6)
    assert found.gprim("/One/Rig/Mesh").mesh == found.gprim("/Two/Rig/Mesh").mesh != found.gprim("/Still/Rig/Mesh").mesh
    assert_as_baked(read, opened)


def test_an_instanced_mesh_in_a_skel_root_and_a_skinned_prototype(read, stage_of):
    """Influences inherit into instances; the prototype of a point instancer is skinned as it stands in the stage."""
    part = 'def Scope "Parts" {\n def Mesh "Mesh" {\n' + mesh("", binding="").split("{", 1)[1] + "\n}"
    inner = f"""def Xform "Body" (instanceable = true
        prepend references = </Parts>
        prepend apiSchemas = ["SkelBindingAPI"]) {{
        rel skel:skeleton = </Rig/Skel>
        {INFLUENCES}
    }}"""
    opened = stage_of(part + "\n" + rig(inner))
    assert points_of(read(opened, time=10), "/Rig/Body/Mesh") == pytest.approx(by_hand(TURN), abs=1e-6)
    text = 'def PointInstancer "I" { int[] protoIndices = [0]; point3f[] positions = [(0, 0, 4)]; rel prototypes = </Rig> }\n'
    found = read(text + rig(mesh()), time=10)
    row = next(gprim for gprim in found.columns.gprims if gprim.instancer is not None)
    assert row.mesh.points == pytest.approx(by_hand(TURN), abs=1e-6)
    assert row.transforms[0][:3, 3].tolist() == [0, 0, 4]


def test_two_rigs_and_an_inherited_skeleton(read, stage_of):
    second = rig(mesh()).replace("Rig", "Other").replace("10: [(0.70710678, 0, 0, 0.70710678)]", "10: [(0, 0, 0, 1)]")
    inherits = f'def Xform "Arm" (prepend apiSchemas = ["SkelBindingAPI"]) {{ rel skel:skeleton = </Rig/Skel>\n{mesh(binding="")} }}'
    opened = stage_of(rig(inherits) + "\n" + second)
    found = read(opened, time=10)
    assert points_of(found, "/Rig/Arm/Mesh") == pytest.approx(by_hand(TURN), abs=1e-6)
    assert points_of(found, "/Other/Mesh") == pytest.approx(by_hand(np.diag([-1.0, -1, 1])), abs=1e-6)
    assert_as_baked(read, opened, moved=2)


@pytest.mark.parametrize(
    ("change", "where", "code", "words"),
    [
        (("[0, 1, 0, 1, 0", "[0, 7, 0, -1, 0"), "/Rig/Mesh", "joint-influences", "1 of 12 joint indices are outside 0..1"),
        (("[1, 0, 0, 1, 0, 1,", "[1, 0, 0, 1, 0,"), "/Rig/Mesh", "joint-influences", "11 values where 12 are expected"),
        (("[1, 0, 0, 1, 0, 1,", "[1, nan, 0, 1, 0, 1,"), "/Rig/Mesh", "joint-influences", "1 of 12 joint weights are NaN"),
        (("</Rig/Skel>", "</Rig/Nobody>"), "/Rig/Mesh", "skel-binding", "</Rig/Nobody>, which does not exist"),
        (("rel skel:skeleton = </Rig/Skel>", ""), "/Rig/Mesh", "skel-binding", "no prim from here up to the SkelRoot"),
        (('Mesh" (prepend apiSchemas = ["SkelBindingAPI"])', 'Mesh"'), "/Rig/Mesh", "skel-binding", "SkelBindingAPI is not applied"),
        (("uniform matrix4d[] bindTransforms", "custom matrix4d[] other"), "/Rig/Skel", "skeleton", "bindTransforms has 0 values for 2"),
        (('["a", "a/b"]', '["a/b", "a"]'), "/Rig/Skel", "skeleton", "mis-ordered parent"),
        (("((1,0,0,0)", "((0,0,0,0)"), "/Rig/Skel", "skeleton", "bind transform that cannot be inverted (first: 'a')"),
        (("uniform matrix4d[] restTransforms", "custom matrix4d[] other"), "/Rig/Skel", "skeleton", "restTransforms has 0 values"),
        (("(0.70710678, 0, 0, 0.70710678)", "(nan, 0, 0, 0.70710678)"), "/Rig/Skel", "skeleton", "not finite"),
    ],
)
def test_what_is_broken_is_told_and_drawn_unskinned(read, change, where, code, words):
    found = read(rig(mesh()).replace(*change), time=10)
    assert code in found.codes(where), list(found.columns.diagnostics)
    assert words in found.message(code)
    assert points_of(found) == pytest.approx(np.array(POINTS), abs=1e-6)


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        (("[(0.70710678, 0, 0, 0.70710678)]", "[(1, 0, 0, 0), (1, 0, 0, 0)]"), "/Rig/Anim", "1 translations, 2 rotations, 1 scales"),
        (("= </Rig/Anim>", "= </Rig/Nothing>"), "/Rig/Skel", "</Rig/Nothing>, which does not exist"),
        (("= </Rig/Anim>", "= </Rig/Mesh>"), "/Rig/Skel", "is a 'Mesh'"),
        (('joints = ["a/b"]', 'joints = ["c"]'), "/Rig/Anim", "none of its 1 joints"),
        (("rel skel:animationSource = </Rig/Anim>", ""), "", ""),
    ],
)
def test_a_broken_or_missing_animation_gives_the_rest_pose(read, change, where, words):
    """The rest pose has joint b one up from its bind pose: what it holds is lifted."""
    lifted = SKELETON.replace(f"restTransforms = {BIND}", f"restTransforms = {BIND.replace('(0,1,0,1)', '(0,2,0,1)')}")
    found = read(rig(mesh(), skeleton=lifted).replace(*change), time=10)
    assert found.codes(where) == ["skel-animation"] if where else not list(found.columns.diagnostics)
    assert words in (found.message("skel-animation") if where else "")
    expected = np.array(POINTS) + np.array(WEIGHTS)[:, 1:] * (0, 1, 0)
    assert points_of(found) == pytest.approx(expected, abs=1e-6)


def test_only_what_is_below_a_skel_root_is_skinned(read):
    found = read(rig(mesh()).replace("def SkelRoot", "def Xform"), time=10)
    assert points_of(found) == pytest.approx(np.array(POINTS), abs=1e-6)
    assert found.codes("/Rig/Mesh") == ["skel-root"]


def test_padding_may_hold_any_index(read):
    """An index of weight 0 moves nothing, whatever it is."""
    found = read(rig(mesh().replace("[0, 1, 0, 1, 0", "[0, -1, 0, 1, 0")), time=10)
    assert points_of(found) == pytest.approx(by_hand(TURN), abs=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[1, 4]", "[1, 40]"), "has pointIndices outside 0..5"),
        (("[(0, 1, 0), (0, 0, 1)]", "[(0, 1, 0)]"), "has 1 offsets for 2 pointIndices"),
        (("</Rig/Mesh/Smile>,", "</Rig/Mesh/Frown>,"), "no active BlendShape"),
        (('"smile", "blink"', '"smile"'), "1 names for 2 skel:blendShapeTargets"),
    ],
)
def test_broken_blend_shapes_are_left_out(read, change, words):
    found = read(rig(mesh(INFLUENCES + SHAPES).replace(*change), animation_more=SMILES), time=20)
    half = np.array(Gf.Matrix3d(Gf.Quatd(0.5, 0.5, 0.5, 0.5))).T
    assert words in found.message("blend-shapes")
    assert points_of(found) == pytest.approx(by_hand(half), abs=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        ("int[] primvars:skel:jointIndices", "float[] primvars:skel:jointIndices"),
        ("float[] primvars:skel:jointWeights", "double[] primvars:skel:jointWeights"),
        ("uniform token[] joints", "uniform string[] joints"),
        ("quatf[] rotations", "float4[] rotations"),
        ("elementSize = 2", "elementSize = 0"),
        ("elementSize = 2", "elementSize = 5"),
        ('interpolation = "vertex"', 'interpolation = "faceVarying"'),
        ("uniform vector3f[] offsets", "uniform double3[] offsets"),
        ("float[] blendShapeWeights", "double[] blendShapeWeights"),
        ("[7, 0.25]", "[7]"),
        ("[7, 0.25]", "[7, nan]"),
    ],
)
def test_nothing_broken_raises(read, change):
    """Wrong types and counts of every kind: the mesh is drawn, somehow."""
    text = rig(mesh(INFLUENCES + SHAPES), animation_more=SMILES)
    assert change[0] in text
    assert np.isfinite(read(text.replace(*change), time=10).mesh("/Rig/Mesh").points).all()


RIGGED = [
    "openusd/pxr/usdImaging/usdImagingGL/testenv/testUsdImagingGLSkelSkinning/test_lbs.usda",
    "usdwg/test_assets/USDZ/RiggedFigure/RiggedFigure.usdz",
]


@pytest.mark.parametrize("name", RIGGED)
def test_real_rigs_move_as_baked(read, shared, name):
    stage = open_stage(shared / "assets" / name)
    bake = Usd.Stage.Open(stage.Flatten())
    assert UsdSkel.BakeSkinning(bake.Traverse())
    for time in (1.0, 17.0, 30.0):
        ours, theirs = read(stage, time=time), read(bake, time=time)
        assert not [item for item in ours.columns.diagnostics if item.code != "control-cage"]
        for gprim in ours.columns.gprims:
            assert points_of(ours, gprim.path) == pytest.approx(points_of(theirs, gprim.path), abs=2e-6)
    frames = [hdwarp.render(s, time=17.0, resolution=(160, 120), aovs=["cameraDepth", "primId"], device="cpu") for s in (stage, bake)]
    assert (frames[0]["primId"] == frames[1]["primId"]).all()
    assert (frames[0]["primId"] >= 0).mean() > 0.01
    hit = frames[0]["primId"] >= 0
    assert frames[0]["cameraDepth"][hit] == pytest.approx(frames[1]["cameraDepth"][hit], rel=1e-5)


def test_the_sample_is_drawn_as_baked(sample_stages):
    """Blend shape, joints and the rigidly bound ball, through to the pixels."""
    opened = open_stage(sample_stages / "skinned_arm.usda")
    still = hdwarp.render(opened, time=0, resolution=(160, 90), aovs=["cameraDepth"], device="cpu")["cameraDepth"]
    for time in (0, 24):
        options = {"time": time, "resolution": (160, 90), "aovs": ["cameraDepth", "primId"], "device": "cpu"}
        ours, theirs = (hdwarp.render(stage, **options) for stage in (opened, baked(opened)))
        assert ours.prim_paths == theirs.prim_paths
        assert (ours["primId"] == theirs["primId"]).mean() > 0.999, "edges may tie otherwise"
        same = (ours["primId"] == theirs["primId"]) & (ours["primId"] >= 0)
        assert ours["cameraDepth"][same] == pytest.approx(theirs["cameraDepth"][same], rel=1e-5)
    moved = ~np.isclose(ours["cameraDepth"], still, atol=0.01)
    assert moved.mean() > 0.05, "the arm has moved"


def test_what_a_result_depends_on(stage_of):
    """The prims whose edits make it stale, instances by both of their paths, also where it is broken; and whether time does."""

    def dependence(opened: Usd.Stage, path: str, root: str):
        prim = opened.GetPrimAtPath(path)
        source = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        skinning = Skinning(opened, Usd.TimeCode(10), hdwarp.Diagnostics())
        skinning.bind(source, source.GetAuthoredPropertyNames(), path, root)
        return skinning.dependences[path]

    found = dependence(stage_of(rig(mesh(INFLUENCES + SHAPES), animation_more=SMILES)), "/Rig/Mesh", "/Rig")
    assert set(found.paths) == {"/Rig", "/Rig/Skel", "/Rig/Anim", "/Rig/Mesh/Smile", "/Rig/Mesh/Blink"}
    assert found.varies
    still = dependence(stage_of(rig(mesh(), animation="")), "/Rig/Mesh", "/Rig")
    assert "/Rig/Anim" in still.paths, "there it would be found"
    assert not still.varies
    broken = dependence(stage_of(rig(mesh()).replace("matrix4d[] bindTransforms", "matrix4d[] other")), "/Rig/Mesh", "/Rig")
    assert {"/Rig/Skel", "/Rig/Anim"} <= set(broken.paths), "mending the skeleton mends the mesh"
    missing = dependence(stage_of(rig(mesh()).replace("</Rig/Skel>", "</Rig/Nobody>")), "/Rig/Mesh", "/Rig")
    assert "/Rig/Nobody" in missing.paths
    bound = mesh(binding="rel skel:skeleton = </Library/Rig/Skel>")
    opened = stage_of(INSTANCES.format(bind=BIND, mesh=bound, animation=ANIMATION.replace("ANIMATION_MORE", "")))
    one = dependence(opened, "/One/Rig/Mesh", "/One/Rig")
    prototype = opened.GetPrimAtPath("/One").GetPrototype().GetPath()
    assert {"/One/Rig", "/One/Rig/Skel", "/Anim", f"{prototype}/Rig/Skel"} <= set(one.paths)


@pytest.mark.parametrize("type_name", ["Points", "BasisCurves"])
def test_points_and_curves_are_skinned_as_meshes_are(read, type_name):
    """Every point is one by hand; the bent curve starts and ends where its first and last points are."""
    text = mesh(name="Mesh").replace('def Mesh "Mesh"', f'def {type_name} "Mesh"').replace("int[] faceVertexCounts = [3, 3]", "")
    text = text.replace("int[] faceVertexIndices = [0, 1, 2, 3, 4, 5]", "float[] widths = [0.1]").replace('"none"', '"none"')
    text = text.replace('uniform token subdivisionScheme = "none"', 'int[] curveVertexCounts = [6]; uniform token type = "linear"')
    text = text.replace("widths = [0.1]", 'widths = [0.1] (interpolation = "constant")')
    found = read(rig(text), time=10)
    moved = by_hand(TURN)
    geometry = found.mesh("/Rig/Mesh")
    if type_name == "Points":
        np.testing.assert_allclose(geometry.points, moved, atol=1e-6)
    else:
        np.testing.assert_allclose(geometry.points[[0, -1]], moved[[0, -1]], atol=1e-6)
        assert geometry.face_count == 5
