"""Worlds as scripts give them, found on stages: numbers, places, names, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom
from scipy.spatial.transform import Rotation

import hdwarp
from hdwarp.errors import ArgumentError
from hdwarp.stage.columns import Body, Camera, WorldGroup
from hdwarp.stage.worlds import grid, natural_key, resolve_worlds, root_poses, spread_cameras
from hdwarp.worlds import AuthoredWorlds, Replicate

NOW = Usd.TimeCode.EarliestTime()

ENVS = """
def Xform "World" { def Xform "envs" {
%s
} }
"""
ENV = """def Xform "env_%d" {
double3 xformOp:translate = (%d, 0, 1); uniform token[] xformOpOrder = ["xformOp:translate"]; def Cube "box" { } }"""


@pytest.fixture
def envs(stage_of):
    """env_0, env_1, env_2, env_10, env_11 at x = 0, 1, 2, 10, 11 and z = 1."""
    return stage_of(ENVS % "\n".join(ENV % (i, i) for i in (10, 2, 0, 1, 11)))


def resolve(specs, stage):
    return resolve_worlds(specs, stage, NOW)


def pose(translation=(0.0, 0.0, 0.0), rotvec=(0.0, 0.0, 0.0)):
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec(rotvec).as_matrix()
    matrix[:3, 3] = translation
    return matrix


# --- what a script says


def test_import_is_light():
    """Neither Warp, nor more of pxr than `import hdwarp` itself takes."""
    program = (
        "import hdwarp, sys; before = set(sys.modules); hdwarp.replicate, hdwarp.authored_worlds; "
        "print([name for name in set(sys.modules) - before if name.startswith(('warp', 'pxr'))], 'warp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[] False\n"


@pytest.mark.parametrize(
    ("path", "label"), [("/W/env_0", "/W/env_{}"), ("/W/env_007", "/W/env_{}"), ("/W/Robot", "/W/Robot_{}"), ("/A0/b", "/A0/b_{}")]
)
def test_default_labels(path, label):
    assert hdwarp.replicate(path, 2).label == label


def test_specs_are_plain_records():
    spec = hdwarp.replicate(Sdf.Path("/W/env_0"), np.int64(3), spacing=2)
    assert isinstance(spec, Replicate) and (spec.path, spec.count, spec.spacing) == ("/W/env_0", 3, (2.0, 2.0))
    assert hdwarp.authored_worlds("/W/*") == AuthoredWorlds(("/W/*",)) == hdwarp.authored_worlds(["/W/*"])


@pytest.mark.parametrize("count", [0, -1, 1.0, 2.5, "3", None, True, float("nan"), 2**31])
def test_count_must_be_whole(count):
    with pytest.raises(ArgumentError, match=re.escape(str(count))):
        hdwarp.replicate("/A", count)


@pytest.mark.parametrize("spacing", ["a", (1, 2, 3), np.nan, (1.0, np.inf), -1.0, (1.0, -2.0), [[1, 2]], 1e30])
def test_spacing_must_be_lengths(spacing):
    with pytest.raises(ArgumentError, match="spacing"):
        hdwarp.replicate("/A", 4, spacing=spacing)


def test_spacing_and_xforms_exclude_each_other():
    with pytest.raises(ArgumentError, match="not both"):
        hdwarp.replicate("/A", 2, spacing=1.0, xforms=np.zeros((2, 3)))


BAD_XFORMS = [
    (np.zeros((3, 3)), "shape"),
    (np.zeros((2, 4)), "shape"),
    (np.zeros(3), "shape"),
    (np.zeros((2, 3, 3)), "shape"),
    ("places", "numbers"),
    ([[0, 0, 0], [0, 0, None]], "numbers"),
    ([[0, 0, 0], [0, np.nan, 0]], r"xforms\[1\] is not finite"),
    ([[0, 0, 0], [0, 1e20, 0]], "beyond"),
    ([[0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0]], "without a length"),
    ([np.eye(4), np.diag([2.0, 1.0, 1.0, 1.0])], "not rigid"),
    ([np.eye(4), np.diag([-1.0, 1.0, 1.0, 1.0])], "not rigid"),
    ([np.eye(4), np.diag([1e200, 1.0, 1.0, 1.0])], "not rigid"),
    ([np.eye(4), pose((1.0, 2.0, 3.0)).T], "transpose"),
    ([Gf.Matrix4d(1.0), Gf.Matrix4d(1.0)], "row vectors"),
]


@pytest.mark.parametrize(("xforms", "message"), BAD_XFORMS)
def test_xforms_must_be_places(xforms, message):
    with pytest.raises(ArgumentError, match=message):
        hdwarp.replicate("/A", 2, xforms=xforms)


@pytest.mark.parametrize("label", ["/W/env", "/W/{}_{}", "env_{}", "/W/{}", "/W/env {}", "", 5, "/A/b_{}"])
def test_labels_must_make_paths(label):
    with pytest.raises(ArgumentError, match="label"):
        hdwarp.replicate("/A", 2, label=label)


@pytest.mark.parametrize("path", ["", "A", "/", "/A/", "/A//B", "/A.x", "/A B", None, 3, re.compile("/A")])
def test_prototypes_must_be_prim_paths(path):
    with pytest.raises(ArgumentError, match="replicate"):
        hdwarp.replicate(path, 2)


def test_the_other_kind_of_pattern_is_named():
    with pytest.raises(ArgumentError, match=r"authored_worlds\('/W/env_\*'\)"):
        hdwarp.replicate("/W/env_*", 2)
    with pytest.raises(ArgumentError, match=r"label="):
        hdwarp.replicate("/W/env_{}", 2)
    with pytest.raises(ArgumentError, match=r"'/W/env_\*'"):
        hdwarp.authored_worlds("/W/env_{}")
    for pattern in (re.compile("/W/env_.*"), [re.compile("/W/env_.*")]):
        with pytest.raises(ArgumentError, match="regular expression"):
            hdwarp.authored_worlds(pattern)


@pytest.mark.parametrize("pattern", ["", "/", "W/env_*", "/W//env_*", "/W/", [], 5, ["/W", None], "^/W/env_.*"])
def test_patterns_must_be_absolute(pattern):
    with pytest.raises(ArgumentError, match="authored_worlds"):
        hdwarp.authored_worlds(pattern)


# --- replicated worlds


def test_grid_by_hand():
    """Five on a grid of side 3: rows of 3 and 2, so 2 rows; the middle is row 0.5, column 1."""
    assert grid(5, (2.0, 4.0)).tolist() == [[-1, -4], [-1, 0], [-1, 4], [1, -4], [1, 0]]
    assert grid(1, (2.0, 4.0)).tolist() == [[0, 0]]
    assert grid(2, (2.0, 4.0)).tolist() == [[0, -2], [0, 2]]


@pytest.mark.parametrize("count", [3, 4, 7, 1024])
def test_grid_is_centred(count):
    places = grid(count, (1.0, 2.0))
    assert places.min(axis=0).tolist() == (-places.max(axis=0)).tolist()
    assert len({tuple(place) for place in places.tolist()}) == count


@pytest.mark.parametrize(("up", "horizontal", "height"), [("Z", [0, 1], 2), ("Y", [0, 2], 1)])
def test_spacing_keeps_height_and_orientation(stage_of, up, horizontal, height):
    """A centimetre stage: 300 units are 3 m. A turn of 90 degrees about x, and a scale that placements do not have."""
    stage = stage_of('def Xform "A" { def Cube "c" { } }')
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdGeom.SetStageUpAxis(stage, up)
    api = UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/A"))
    api.SetTranslate((300.0, 300.0, 300.0))
    api.SetRotate((90.0, 0.0, 0.0))
    api.SetScale((2.0, 3.0, 4.0))
    (group,) = resolve(hdwarp.replicate("/A", 4, spacing=(2.0, 4.0)), stage)
    assert group.placements[:, horizontal, 3].tolist() == [[-1, -2], [-1, 2], [1, -2], [1, 2]]
    assert group.placements[:, height, 3] == pytest.approx(3.0)
    assert group.placements[:, :3, :3] == pytest.approx(np.tile(pose(rotvec=(np.pi / 2, 0, 0))[:3, :3], (4, 1, 1)), abs=1e-7)


def test_neither_leaves_all_where_the_prototype_stands(envs):
    (group,) = resolve(hdwarp.replicate("/World/envs/env_2", 3), envs)
    assert group.placements.shape == (3, 4, 4) and group.placements.dtype == np.float64
    assert group.placements == pytest.approx(np.tile(pose((2, 0, 1)), (3, 1, 1)), abs=0)


POSES = np.stack([pose((1, 2, 3), (0.3, 0.2, 0.1)), pose((-1, 0, 0), (0, 0, 2.0))])
SEVENS = np.concatenate([POSES[:, :3, 3], Rotation.from_matrix(POSES[:, :3, :3]).as_quat()], axis=1)


@pytest.mark.parametrize(
    "xforms",
    [
        POSES,
        POSES.astype(np.float32),
        list(POSES),
        SEVENS,
        SEVENS * ([1.0] * 3 + [-2.0] * 4),
        [wp.transform(*row) for row in SEVENS.tolist()],
    ],
    ids=["matrices", "float32", "list", "sevens", "unnormalised", "wp.transform"],
)
def test_xforms_place_the_roots(envs, xforms):
    (group,) = resolve(hdwarp.replicate("/World/envs/env_2", 2, xforms=xforms), envs)
    assert group.placements == pytest.approx(POSES, abs=1e-6)
    turn = group.placements[:, :3, :3]
    assert turn.transpose(0, 2, 1) @ turn == pytest.approx(np.tile(np.eye(3), (2, 1, 1)), abs=1e-14)  # whatever float32 left


def test_arrays_of_warp_are_taken(envs):
    array = wp.array(SEVENS.astype(np.float32), dtype=wp.transformf, device="cpu")
    (group,) = resolve(hdwarp.replicate("/World/envs/env_2", 2, xforms=array), envs)
    assert group.placements == pytest.approx(POSES, abs=1e-6)


def test_positions_keep_the_orientation(stage_of):
    stage = stage_of('def Cube "A" { double xformOp:rotateZ = 90; uniform token[] xformOpOrder = ["xformOp:rotateZ"] }')
    (group,) = resolve(hdwarp.replicate("/A", 2, xforms=[(1, 2, 3), (4, 5, 6)]), stage)
    assert group.placements == pytest.approx(np.stack([pose((1, 2, 3), (0, 0, np.pi / 2)), pose((4, 5, 6), (0, 0, np.pi / 2))]), abs=1e-7)


def test_prototypes_stand_where_time_has_them(stage_of):
    stage = stage_of('def Cube "A" { double3 xformOp:translate.timeSamples = { 1: (1, 0, 0), 2: (2, 0, 0), }; '
                     'uniform token[] xformOpOrder = ["xformOp:translate"] }')  # fmt: skip
    for code in (1, 2):
        (group,) = resolve_worlds([hdwarp.replicate("/A", 1)], stage, Usd.TimeCode(code))
        assert group.placements[0, 0, 3] == code


def test_several_specs_are_numbered_in_order(envs):
    specs = [
        hdwarp.replicate("/World/envs/env_11", 3),
        hdwarp.authored_worlds("/World/envs/env_?"),
        hdwarp.replicate("/World/envs/env_10", 2),
    ]
    groups = resolve(specs, envs)
    assert [(group.root[-2:].strip("_"), group.first, group.count, group.spec) for group in groups] == [
        ("11", 0, 3, 0),
        ("0", 3, 1, 1),
        ("1", 4, 1, 1),
        ("2", 5, 1, 1),
        ("10", 6, 2, 2),
    ]


def test_labels():
    group = WorldGroup("/W/a", 4, np.zeros((3, 4, 4)), "/W/env_{}")
    assert group.root_label(5) == group.label_of("/W/a", 5) == "/W/env_5"
    assert group.label_of("/W/a/b/c", 6) == "/W/env_6/b/c"
    assert group.label_of("/W/ab", 6) == "/W/ab"
    authored = WorldGroup("/W/a", 4, None, "/W/a")
    assert (authored.count, authored.label_of("/W/a/b", 4)) == (1, "/W/a/b")


@pytest.mark.parametrize(
    "body",
    ['def Mesh "m" { }', 'def BasisCurves "m" { }', 'def PointInstancer "m" { }', 'def Camera "m" { }', 'def SphereLight "m" { }',
     'def Xform "m" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) { }', 'def Xform "m" (prepend apiSchemas = ["HdWarpSiteAPI"]) { }',
     'def Xform "m" (prepend apiSchemas = ["NewtonSiteAPI"]) { }', 'def Xform "m" (instanceable = true; references = </P>) { }'],
)  # fmt: skip
def test_prototypes_hold_something(stage_of, body):
    stage = stage_of(f'def "P" {{ def Cube "c" {{ }} }}\ndef Xform "A" {{ def Scope "s" {{ {body} }} }}')
    assert resolve(hdwarp.replicate("/A", 2), stage)[0].count == 2


@pytest.mark.parametrize("body", ["", 'def Xform "x" { def Scope "s" { } }', 'def Material "m" { def Shader "s" { } }'])
def test_prototype_without_prims(stage_of, body):
    with pytest.raises(ArgumentError, match="</A> is a prototype without prims"):
        resolve(hdwarp.replicate("/A", 2), stage_of(f'def Xform "A" {{ {body} }}'))


def test_prototypes_that_are_not_there(envs):
    with pytest.raises(ArgumentError, match=r"no prim is at </World/envs/env_3>; </World/envs> has .*env_0.*env_10"):
        resolve(hdwarp.replicate("/World/envs/env_3", 2), envs)
    with pytest.raises(ArgumentError, match="the stage has World"):
        resolve(hdwarp.replicate("/Wrld/envs/env_3", 2), envs)
    envs.GetPrimAtPath("/World/envs/env_2").SetActive(False)
    with pytest.raises(ArgumentError, match="inactive"):
        resolve(hdwarp.replicate("/World/envs/env_2", 2), envs)
    with pytest.raises(ArgumentError, match="env_2/box"):
        resolve(hdwarp.replicate("/World/envs/env_2/box", 2), envs)


@pytest.mark.parametrize(("text", "said"), [('class Xform "A" { def Cube "c" { } }', "class"), ('over "A" { def Cube "c" { } }', "over")])
def test_prototypes_that_are_not_drawn(stage_of, text, said):
    with pytest.raises(ArgumentError, match=said):
        resolve(hdwarp.replicate("/A", 2), stage_of(text))


def test_a_prototype_of_no_size_is_refused(stage_of):
    with pytest.raises(ArgumentError, match="</A> is singular"):
        resolve(
            hdwarp.replicate("/A", 2),
            stage_of('def Cube "A" { double3 xformOp:scale = (1, 0, 1); uniform token[] xformOpOrder = ["xformOp:scale"] }'),
        )


# --- authored worlds


def roots(specs, stage):
    return [group.root for group in resolve(specs, stage)]


def test_natural_order(envs):
    groups = resolve([hdwarp.authored_worlds("/World/envs/env_*")], envs)
    assert [group.root.rpartition("_")[2] for group in groups] == ["0", "1", "2", "10", "11"]
    assert [group.first for group in groups] == [0, 1, 2, 3, 4]
    assert all(group.placements is None and group.label == group.root and group.spec == 0 for group in groups)
    assert roots(hdwarp.authored_worlds(["/World/envs/env_10", "/World/envs/env_2"]), envs) == ["/World/envs/env_2", "/World/envs/env_10"]


def test_natural_keys_compare():
    paths = ["/a_1", "/a_01", "/a_1b", "/a/b", "/a", "/1a", "/a_2/x_10", "/a_2/x_9", "/a_10", "/b"]
    ordered = sorted(paths, key=natural_key)
    assert ordered == ["/1a", "/a", "/a/b", "/a_01", "/a_1", "/a_1b", "/a_2/x_9", "/a_2/x_10", "/a_10", "/b"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/World/envs/env_?", 3),
        ("/World/envs/env_1[01]", 2),
        ("/World/envs/env_[!0]", 2),
        ("/*/envs/*", 5),
        ("/World/*/env_*/box", 5),
        ("/World/envs/env_2", 1),
        ("/World/e*", 1),
        ("/World/envs/ENV_2", 0),
        ("/World/env_*", 0),
        ("/World/*env_*", 0),
        ("/*/env_*", 0),
        ("/World/envs/env_[", 0),
    ],
)
def test_patterns_go_name_by_name(envs, pattern, found):
    if found:
        assert len(roots(hdwarp.authored_worlds(pattern), envs)) == found
    else:
        with pytest.raises(ArgumentError, match="matches no prim"):
            resolve(hdwarp.authored_worlds(pattern), envs)


def test_a_pattern_that_matches_nothing_says_what_there_is(envs):
    with pytest.raises(ArgumentError, match=r"'/World/envs/robot_\*' matches no prim; </World/envs> has .*env_0"):
        resolve(hdwarp.authored_worlds("/World/envs/robot_*"), envs)


def test_only_populated_prims_are_worlds(envs):
    envs.GetPrimAtPath("/World/envs/env_2").SetActive(False)
    envs.OverridePrim("/World/envs/env_5")
    envs.CreateClassPrim("/World/envs/env_6")
    assert len(roots(hdwarp.authored_worlds("/World/envs/env_*"), envs)) == 4
    with pytest.raises(ArgumentError, match="matches no prim"):
        resolve(hdwarp.authored_worlds("/World/envs/env_2"), envs)


def test_worlds_inside_an_instance(stage_of):
    stage = stage_of('def "P" { def Xform "env_0" { }; def Xform "env_1" { } }\ndef "F" (instanceable = true; references = </P>) { }')
    assert roots(hdwarp.authored_worlds("/F/env_*"), stage) == ["/F/env_0", "/F/env_1"]


def test_worlds_do_not_overlap(envs):
    one = hdwarp.replicate("/World/envs/env_2", 2)
    with pytest.raises(ArgumentError, match="</World/envs/env_2> is given twice"):
        resolve([one, hdwarp.replicate("/World/envs/env_2", 3)], envs)
    with pytest.raises(ArgumentError, match="given twice"):
        resolve(hdwarp.authored_worlds(["/World/envs/env_*", "/World/envs/env_2"]), envs)
    with pytest.raises(ArgumentError, match="</World/envs/env_2> lies inside </World/envs>"):
        resolve([one, hdwarp.authored_worlds("/World/envs")], envs)
    assert len(resolve([hdwarp.replicate("/World/envs/env_1", 2), hdwarp.replicate("/World/envs/env_10", 2)], envs)) == 2


@pytest.mark.parametrize("specs", [None, 4, "/World/envs/env_*", "/World", ["/World"], [None], {}, [hdwarp.replicate], []])
def test_what_is_no_spec(envs, specs):
    with pytest.raises(ArgumentError, match="worlds"):
        resolve(specs, envs)


def test_strings_and_numbers_get_a_hint(envs):
    with pytest.raises(ArgumentError, match=r"hdwarp.authored_worlds\('/World/envs/env_\*'\)"):
        resolve("/World/envs/env_*", envs)
    with pytest.raises(ArgumentError, match=r"hdwarp.replicate\('/World', count\)"):
        resolve(["/World"], envs)


# --- root poses


def test_root_poses(stage_of):
    """Rotation and place in metres; the scale is gone; Scope and typeless prims stand where their parent does."""
    stage = stage_of(
        'def Xform "A" { double3 xformOp:translate = (100, 200, 300); double xformOp:rotateZ = 90; double3 xformOp:scale = (2, -3, 4)'
        '; uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ", "xformOp:scale"]; def Scope "s" { }; def "n" { } }'
        '\ndef Xform "Flat" { double3 xformOp:translate = (100, 0, 0); double3 xformOp:scale = (1, 0, 1)'
        '; uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"] }'
    )
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    poses = root_poses(stage, ["/A", "/A/s", "/A/n", "/gone", "/Flat"], NOW)
    turned = np.column_stack([[0, 1, 0], [1, 0, 0], [0, 0, -1]])  # x kept, y mirrored, z completes
    assert poses.dtype == np.float64
    for k in range(3):
        assert poses[k, :3, :3] == pytest.approx(turned, abs=1e-12)
        assert poses[k, :3, 3] == pytest.approx((1, 2, 3))
    assert (poses[3] == np.eye(4)).all()
    assert poses[4] == pytest.approx(pose((1, 0, 0)))
    assert root_poses(stage, [], NOW).shape == (0, 4, 4)


def test_thousands_of_worlds_are_found_quickly():
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Xform.Define(stage, "/World/envs")
    layer = stage.GetRootLayer()
    with Sdf.ChangeBlock():
        for i in range(4096):
            spec = Sdf.CreatePrimInLayer(layer, f"/World/envs/env_{i}")
            spec.specifier, spec.typeName = Sdf.SpecifierDef, "Xform"
            Sdf.AttributeSpec(spec, "xformOp:translate", Sdf.ValueTypeNames.Double3).default = Gf.Vec3d(i, 0, 0)
            Sdf.AttributeSpec(spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Sdf.VariabilityUniform).default = ["xformOp:translate"]
    start = time.perf_counter()
    groups = resolve(hdwarp.authored_worlds("/World/envs/env_*"), stage)
    resolved = time.perf_counter()
    poses = root_poses(stage, [group.root for group in groups], NOW)
    posed = time.perf_counter()
    print(f"resolve {1e3 * (resolved - start):.1f} ms, root_poses {1e3 * (posed - resolved):.1f} ms")
    assert (poses[:, 0, 3] == np.arange(4096) * 0.01).all()
    assert resolved - start < 2.0 and posed - resolved < 2.0


# --- cameras that only the first world has


def camera(path, world_from_camera=None, body=""):
    return Camera(path, pose() if world_from_camera is None else world_from_camera, np.eye(3), body, focal_length=0.05)


def worlds(count, spec=0, name="env"):
    return [WorldGroup(f"/W/{name}_{k}", k, None, f"/W/{name}_{k}", spec) for k in range(count)]


ROOTS = np.stack([pose((0, 0, 0)), pose((10, 0, 0), (0, 0, np.pi / 2)), pose((0, 10, 0))])


def test_cameras_of_the_first_world_go_to_the_others():
    """2 m in front of the root and looking along the root's axes: in a world turned by 90 degrees at x = 10, at (10, 2, 0)."""
    added = spread_cameras([camera("/W/env_0/rig/cam", pose((2, 0, 0)))], {}, worlds(3), ROOTS)
    assert [item.path for item in added] == ["/W/env_1/rig/cam", "/W/env_2/rig/cam"]
    assert added[0].world_from_camera == pytest.approx(pose((10, 2, 0), (0, 0, np.pi / 2)))
    assert added[1].world_from_camera == pytest.approx(pose((2, 10, 0)))
    assert all(item.focal_length == 0.05 and item.body == "" for item in added)


def test_cameras_on_bodies_go_where_the_body_is():
    """World 1's body stands elsewhere in its world; world 2 has none, and gets no camera."""
    bodies = {path: Body(path, matrix) for path, matrix in {"/W/env_0/hand": pose((1, 0, 0)), "/W/env_1/hand": pose((0, 0, 5))}.items()}
    added = spread_cameras([camera("/W/env_0/hand/cam", pose((1, 0, 0.5)), "/W/env_0/hand")], bodies, worlds(3), ROOTS)
    assert [(item.path, item.body) for item in added] == [("/W/env_1/hand/cam", "/W/env_1/hand")]
    assert added[0].world_from_camera == pytest.approx(pose((0, 0, 5.5)))


def test_a_root_that_is_a_body_carries():
    bodies = {f"/W/env_{k}": Body(f"/W/env_{k}", ROOTS[k]) for k in (0, 2)}
    added = spread_cameras([camera("/W/env_0/cam", pose((2, 0, 0)), "/W/env_0")], bodies, worlds(3), ROOTS)
    assert [(item.path, item.body) for item in added] == [("/W/env_2/cam", "/W/env_2")]
    assert added[0].world_from_camera == pytest.approx(pose((2, 10, 0)))


def test_a_body_above_the_worlds_stays():
    bodies = {"/W": Body("/W", pose((7, 7, 7)))}
    added = spread_cameras([camera("/W/env_0/cam", pose((2, 0, 0)), "/W")], bodies, worlds(2), ROOTS[:2])
    assert [item.body for item in added] == ["/W"]
    assert added[0].world_from_camera == pytest.approx(pose((10, 2, 0), (0, 0, np.pi / 2)))


def test_worlds_with_cameras_of_their_own_are_left_alone():
    assert spread_cameras([camera("/W/env_0/cam"), camera("/W/env_2/other")], {}, worlds(3), ROOTS) == []
    assert spread_cameras([camera("/W/env_1/cam")], {}, worlds(3), ROOTS) == []  # not the first
    assert spread_cameras([camera("/W/cam"), camera("/W/env_00/cam")], {}, worlds(3), ROOTS) == []  # in no world
    assert spread_cameras([camera("/W/env_0/cam")], {}, worlds(1), ROOTS[:1]) == []
    assert spread_cameras([], {}, [], np.zeros((0, 4, 4))) == []


def test_specs_are_looked_at_one_by_one():
    """One spec's cameras do not go to another's worlds, nor stop it; copies of a prototype have their cameras already."""
    replicated = WorldGroup("/W/proto", 0, np.tile(np.eye(4), (2, 1, 1)), "/W/proto_{}", 0)
    groups = [replicated, *worlds(2, 1, "a"), *worlds(2, 2, "b")]
    poses = np.tile(np.eye(4), (5, 1, 1))
    added = spread_cameras([camera("/W/proto/cam"), camera("/W/a_0/cam"), camera("/W/b_0/c"), camera("/W/b_1/c")], {}, groups, poses)
    assert [item.path for item in added] == ["/W/a_1/cam"]
