"""Draw modes: which models they replace, by USD's own functions, and what is drawn in their place."""

from __future__ import annotations

import itertools

import numpy as np
import OpenEXR
import PIL.Image
import pytest
from pxr import Gf, Usd, UsdGeom

MODEL = """def Xform "World" (
    kind = "assembly"
) {{
    {world}
    def Xform "m" (
        kind = "{kind}"
        prepend apiSchemas = ["GeomModelAPI"]
    ) {{
        {own}
        double3 xformOp:translate = (10, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Cube "c" {{ double3 xformOp:translate = (1, 2, 3); uniform token[] xformOpOrder = ["xformOp:translate"] }}
        def Camera "eye" {{}}
        def Xform "b" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"] ) {{ def Sphere "s" {{ double radius = 0.1 }} }}
    }}
    def Sphere "other" {{}}
}}"""
BOX = np.array(((-0.1, -0.1, -0.1), (2.0, 3.0, 4.0)))  # of the cube from (0, 1, 2) on, and the ball at the origin


def model(own: str = "", world: str = "", kind: str = "component") -> str:
    return MODEL.format(own=own, world=world, kind=kind).replace("( ", "(\n").replace(" )", "\n)")


def mode(name: str) -> str:
    return f'uniform token model:drawMode = "{name}"'


APPLY = "uniform bool model:applyDrawMode = {}"


@pytest.mark.parametrize("kind", ["component", "group", "assembly", "subcomponent", "chapter"])
@pytest.mark.parametrize("apply", [None, 0, 1])
@pytest.mark.parametrize(("own", "world"), [("bounds", ""), ("", "bounds"), ("inherited", "bounds"), ("default", "bounds"), ("", "")])
def test_what_is_replaced(read, kind, apply, own, world):
    """Models alone; where applyDrawMode is not authored, components; the mode is what ComputeModelDrawMode says."""
    text = model((mode(own) + "\n" if own else "") + ("" if apply is None else APPLY.format(apply)), mode(world) if world else "", kind)
    found = read(text)
    prim = found.stage.GetPrimAtPath("/World/m")
    asked = UsdGeom.ModelAPI(prim).ComputeModelDrawMode() != "default"
    expected = prim.IsModel() and asked and (apply == 1 if apply is not None else kind == "component")
    assert found.paths == (["/World/m", "/World/other"] if expected else ["/World/m/b/s", "/World/m/c", "/World/other"])
    assert found.codes() == []


def test_bounds_are_the_edges_of_the_box(read):
    found = read(model(mode("bounds") + "\nuniform float3 model:drawModeColor = (0.1, 0.2, 0.3)"))
    gprim = found.gprim("/World/m")
    half = 0.005 * np.linalg.norm(BOX[1] - BOX[0])
    points = gprim.mesh.points.reshape(12, 8, 3)
    assert gprim.transforms[0, :3, 3].tolist() == [10, 0, 0]
    assert gprim.constants["displayColor"].tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert gprim.mesh.face_count == 12
    assert np.bincount(gprim.mesh.triangle_face).tolist() == [12] * 12
    corners = np.array(list(itertools.product(*BOX.T)))
    edges = [(a + b) / 2 for a, b in itertools.combinations(corners, 2) if (a != b).sum() == 1]
    for edge in edges:
        assert np.abs(points.mean(axis=1) - edge).max(axis=1).min() < 1e-6
    assert points.min(axis=(0, 1)) == pytest.approx(BOX[0] - half, abs=1e-6)
    assert points.max(axis=(0, 1)) == pytest.approx(BOX[1] + half, abs=1e-6)


def test_bars_and_boxes_face_outwards(read):
    for name, closed in (("bounds", 12), ("origin", 3)):
        mesh = read(model(mode(name))).mesh("/World/m")
        a, b, c = (mesh.points[mesh.triangle_points[:, k]].astype(float) for k in range(3))
        volume = np.bincount(mesh.triangle_face, np.einsum("ij,ij->i", a, np.cross(b, c)))
        assert len(volume) == closed
        assert (volume > 0.0).all()


def test_the_extents_hint_decides(read):
    found = read(model(mode("bounds") + "\nfloat3[] extentsHint = [(0, 0, 0), (8, 8, 8)]"))
    assert found.mesh("/World/m").points.max() == pytest.approx(8.0 + 0.005 * 8 * 3**0.5)


def test_wrong_extents_of_geometry_are_ignored_where_it_is_drawn(read):
    mesh = "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]\nint[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 2]"
    found = read(f'def Mesh "m" {{\n{mesh}\nfloat3[] extent = [(5, 5, 5), (-5, -5, -5)]\n}}')
    assert found.mesh("/m").reach == 1.0
    assert found.codes() == ["control-cage"]


def test_origin_is_three_axes_of_one_unit(read):
    mesh = read(model(mode("origin"))).mesh("/World/m")
    reach = mesh.points.reshape(3, 8, 3).max(axis=1)
    assert reach == pytest.approx(np.array([[1, 0.005, 0.005], [0.005, 1, 0.005], [0.005, 0.005, 1]]))


def normals(mesh) -> list:
    p = mesh.points[mesh.triangle_points]
    n = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    return (n / np.linalg.norm(n, axis=1)[:, None]).round(3).tolist()


@pytest.mark.parametrize("geometry", ["cross", "box"])
def test_cards(read, geometry):
    """Two quads an axis, looking out: on the sides of the box, or all three pairs through its middle."""
    found = read(model(f'{mode("cards")}\nuniform token model:cardGeometry = "{geometry}"'))
    mesh = found.mesh("/World/m")
    axes = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
    assert normals(mesh) == [axis for axis in axes for _ in range(2)]
    for k, quad in enumerate(mesh.points.reshape(6, 4, 3)):
        axis = k // 2
        at = BOX[:, axis].mean() if geometry == "cross" else BOX[1 - k % 2, axis]
        assert quad[:, axis] == pytest.approx([at] * 4, abs=1e-5)
        others = [i for i in range(3) if i != axis]
        assert quad[:, others].min(axis=0) == pytest.approx(BOX[0, others])
        assert quad[:, others].max(axis=0) == pytest.approx(BOX[1, others])
    assert found.codes() == []
    assert found.gprim("/World/m").one_sided and not read(model(mode("bounds"))).gprim("/World/m").one_sided


def test_cards_back_to_back_show_the_near_one(read):
    mesh = read(model(mode("cards"))).mesh("/World/m")
    plus, minus = mesh.points[0, 0], mesh.points[4, 0]
    assert 0.0 < plus - minus < 1e-4


def test_textured_cards_are_those_axes(read):
    found = read(model(f"{mode('cards')}\nasset model:cardTextureYNeg = @y.png@"))
    assert normals(found.mesh("/World/m"))[::2] == [[0, 1, 0], [0, -1, 0]]
    assert found.codes() == ["texture"]
    assert found.gprim("/World/m").material == "" and not found.columns.materials


@pytest.mark.parametrize("on", ["own", "world"])
def test_simple_cards_have_none_along_the_up_axis(read, on):
    simple = 'uniform token model:cardVisibility = "simple"'
    found = read(model(mode("cards") + (f"\n{simple}" if on == "own" else ""), simple if on == "world" else ""))
    assert [n[1] for n in normals(found.mesh("/World/m"))] == [0] * 8


@pytest.mark.parametrize(
    ("own", "code", "drawn"),
    [
        (mode("sketch"), "draw-mode", False),
        (f'{mode("cards")}\nuniform token model:cardGeometry = "fan"', "draw-mode", True),
        (f'{mode("cards")}\nuniform token model:cardGeometry = "fromTexture"', "draw-mode", False),
        (f'{mode("cards")}\nuniform token model:cardGeometry = "fromTexture"\nasset model:cardTextureXPos = @x.exr@', "draw-mode", False),
        (f"{mode('bounds')}\nfloat3[] extentsHint = [(nan, 0, 0), (1, 1, 1)]", "draw-mode", False),
        (f"{mode('bounds')}\nuniform float3 model:drawModeColor = (nan, 0, 0)", "draw-mode", True),
    ],
)
def test_what_is_wrong_is_named(read, own, code, drawn):
    found = read(model(own))
    assert code in found.codes("/World/m")
    assert ("/World/m" in found.paths) is drawn


def test_an_empty_model_is_named(read):
    found = read(f'def Xform "m" (kind = "component") {{\n{mode("bounds")}\n}}')
    assert found.codes("/m") == ["draw-mode"]
    assert found.paths == []


def test_cameras_bodies_and_colliders_stay(read):
    """A draw mode is about pictures: what moves, looks and collides is there still."""
    found = read(model(mode("bounds")))
    assert [camera.path for camera in found.cameras] == ["/World/m/eye"]
    assert [body.path for body in found.bodies] == ["/World/m/b"]
    found = read(model(mode("bounds")), collisions=True)
    assert [(g.path, g.visual, g.collision) for g in found.gprims] == [
        ("/World/m", True, False),
        ("/World/m/b/s", False, True),
        ("/World/other", True, False),
    ]


def test_visibility_and_purpose_of_the_model_count(read):
    assert read(model(mode("bounds") + '\ntoken visibility = "invisible"')).paths == ["/World/other"]
    assert read(model(mode("bounds") + '\nuniform token purpose = "proxy"')).paths == ["/World/other"]


def test_materials_below_and_above_do_not_colour_it(read):
    text = model(mode("bounds") + "\nrel material:binding = </red>") + '\ndef Material "red" {}'
    assert read(text).gprim("/World/m").material == ""


def test_instances_and_instancers(read):
    """A component drawn by native instances and by a point instancer stands in for itself in each."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    stage.CreateClassPrim("/source")
    UsdGeom.Cube.Define(stage, "/source/c")
    for name in ("a", "b"):
        prim = UsdGeom.Xform.Define(stage, f"/{name}").GetPrim()
        prim.GetReferences().AddInternalReference("/source")
        Usd.ModelAPI(prim).SetKind("component")
        prim.SetInstanceable(True)
        UsdGeom.XformCommonAPI(prim).SetTranslate((3, 0, 0) if name == "a" else (6, 0, 0))
        UsdGeom.ModelAPI.Apply(prim).CreateModelDrawModeAttr("bounds")
    instancer = UsdGeom.PointInstancer.Define(stage, "/many")
    instancer.CreateProtoIndicesAttr([0, 0])
    instancer.CreatePositionsAttr([Gf.Vec3f(0), Gf.Vec3f(0, 5, 0)])
    instancer.CreatePrototypesRel().SetTargets(["/a"])
    found = read(stage)
    assert sorted((gprim.path, len(gprim.transforms)) for gprim in found.gprims) == [("/a", 1), ("/a", 2), ("/b", 1)]
    assert len({id(gprim.mesh) for gprim in found.gprims}) == 1


@pytest.mark.parametrize("prototypes", ["</World/m/dots>", "</World>", "</World/m/c>, </World/far>"])
def test_an_instancer_that_places_itself(read, prototypes):
    """By itself, by what is above it, by way of another: USD's box of it would end the process."""
    dots = """def PointInstancer "{}" {{
        rel prototypes = [{}]
        int[] protoIndices = [0, 0]
        point3f[] positions = [(0, 0, 0), (1, 0, 0)]
    }}
    """
    text = model(mode("bounds") + "\n" + dots.format("dots", prototypes), dots.format("far", "</World/m/dots>"))
    found = read(text)
    assert "/World/m" not in found.paths and "/World/other" in found.paths
    assert "draw-mode" in found.codes()


def test_an_instancer_that_places_what_others_place(read):
    """Twice the same prototype is no loop."""
    dots = """def PointInstancer "{}" {{
        rel prototypes = [</World/m/c>]
        int[] protoIndices = [0, 0]
        point3f[] positions = [(0, 0, 0), (1, 0, 0)]
    }}
    """
    found = read(model(mode("bounds") + "\n" + dots.format("one", "") + dots.format("two", "")))
    assert "/World/m" in found.paths and "draw-mode" not in found.codes()


def test_instancers_that_lie_too_deep(read):
    """A chain of 400, each the prototype of the one before: told, no error of Python's recursion."""
    chain = "".join(
        f"""def PointInstancer "i{k}" {{
        rel prototypes = [</far/i{k + 1}>]
        int[] protoIndices = [0]
        point3f[] positions = [(0, 0, 0)]
    }}
    """
        for k in range(400)
    )
    text = model(mode("bounds") + '\ndef PointInstancer "dots" { rel prototypes = [</far/i0>] }')
    found = read(f'{text}\nclass "far" {{\n{chain}\n}}')
    assert "/World/m" not in found.paths and "/World/other" in found.paths
    assert "draw-mode" in found.codes()


MATRICES = {
    "none": None,
    "singular": np.zeros((4, 4)),
    "not finite": np.full((4, 4), np.nan),
    "a card at infinity": np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]),
    "plain": np.diag([0.5, 0.5, 1, 1]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_cards_from_their_pictures(read, tmp_path, name):
    """At screen depth 0 from (-1, -1) to (1, 1), where the metadata puts that; told, and not drawn, where it puts it nowhere."""
    matrix = MATRICES[name]
    header = {"type": OpenEXR.scanlineimage} | ({} if matrix is None else {"worldtoscreen": np.ascontiguousarray(matrix.T, np.float32)})
    OpenEXR.File(header, {"Y": np.ones((2, 2), np.float32)}).write(str(tmp_path / "a.exr"))
    text = f'{mode("cards")}\nuniform token model:cardGeometry = "fromTexture"\nasset model:cardTextureXPos = @{tmp_path}/a.exr@'
    found = read(model(text))
    if name == "plain":
        assert found.mesh("/World/m").points.tolist() == [[2, -2, 0], [-2, -2, 0], [-2, 2, 0], [2, 2, 0]]
        assert found.mesh("/World/m").primvars["cardsUv"].values.tolist() == [[1, 1], [0, 1], [0, 0], [1, 0]]
        assert found.codes() == []
    else:
        assert "/World/m" not in found.paths
        assert found.codes("/World/m") == ["texture", "draw-mode"]
        assert "worldtoscreen" in found.message("texture")


def test_cards_in_native_instances_have_materials_by_the_paths_of_the_instances(read, tmp_path):
    PIL.Image.fromarray(np.zeros((2, 2, 3), np.uint8)).save(tmp_path / "a.png")
    text = model(f"{mode('cards')}\nasset model:cardTextureXPos = @{tmp_path}/a.png@").replace("def Xform", "class Xform", 1)
    text += "".join(f'\ndef "{name}" (\nprepend references = </World>\ninstanceable = true\nkind = "assembly"\n) {{}}' for name in "ij")
    found = read(text)
    assert [gprim.subset_materials for gprim in found.columns.gprims if gprim.path.endswith("/m")] == [
        (f"/{name}/m.model:cardTextureXPos",) for name in "ij"
    ]
    assert len({material.textures["diffuseColor"].image for material in found.columns.materials}) == 1
