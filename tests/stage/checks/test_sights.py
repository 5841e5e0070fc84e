"""What cameras see: told only where no pixel can show anything, at no time, as the renderer itself would find."""

from __future__ import annotations

import re

import numpy as np
import pytest

import hdwarp
from hdwarp.stage.checks.boxes import _winding
from hdwarp.stage.columns import MeshGeometry

BLIND = ("camera-clip-hides-all", "camera-sees-nothing")
AT = 'double3 xformOp:translate{samples} = {value}\nuniform token[] xformOpOrder = ["xformOp:translate"]\n'
LENS = "float focalLength = 0.5\nfloat horizontalAperture = 0.36\nfloat verticalAperture = 0.24\n"


def at(value: str, samples: str = "") -> str:
    return AT.format(value=value, samples=samples)


def camera(place: str = "", clip: str = "(0.1, 100)", more: str = "") -> str:
    return f'def Camera "Camera"\n{{\n{LENS}float2 clippingRange = {clip}\n{place}\n{more}\n}}\n'


def ball(place: str = at("(0, 0, -5)"), name: str = "Ball", radius: float = 1.0) -> str:
    return f'def Sphere "{name}"\n{{\ndouble radius = {radius}\n{place}\n}}\n'


def codes(findings) -> list[str]:
    return [item.code for item in findings if item.code in (*BLIND, "camera-far-away", "camera-inside")]


def box_mesh(name: str, *, half: float = 1.0, lid: bool = True, z: float = -5.0) -> str:
    """A cube of quads about (0, 0, z); without its lid it is open towards +z."""
    points = [(x * half, y * half, s * half) for s in (-1, 1) for y in (-1, 1) for x in (-1, 1)]
    faces = [(0, 2, 3, 1), (0, 1, 5, 4), (1, 3, 7, 5), (3, 2, 6, 7), (2, 0, 4, 6), (4, 5, 7, 6)][: 6 if lid else 5]
    return (
        f'def Mesh "{name}"\n{{\nuniform token subdivisionScheme = "none"\nint[] faceVertexCounts = {[4] * len(faces)}\n'
        f"int[] faceVertexIndices = {[index for face in faces for index in face]}\npoint3f[] points = {points}\n{at(f'(0, 0, {z})')}}}\n"
    )


def test_what_is_told_to_see_nothing_renders_nothing(found):
    """Random cameras about three balls: never told of one whose picture shows something; and told of most of the others."""
    rng = np.random.default_rng(7)
    told_count = shown_count = empty_count = 0
    for _ in range(80):
        turn, place, near, reach = rng.uniform(-180, 180, 2), rng.uniform(-8, 8, 3), rng.uniform(0.01, 12), rng.uniform(0.1, 20)
        pose = (
            f"float3 xformOp:rotateXYZ = ({turn[0]}, {turn[1]}, 0)\ndouble3 xformOp:translate = ({place[0]}, {place[1]}, {place[2]})\n"
            'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ"]\n'
        )
        balls = "".join(ball(at(str(tuple(rng.uniform(-6, 6, 3).tolist()))), f"B{k}") for k in range(3))
        told = bool(set(codes(found(camera(pose, f"({near}, {near + reach})") + balls, only=BLIND))) & set(BLIND))
        frame = hdwarp.render(str(found.path), "/World/Camera", resolution=(48, 32), aovs=["primId"], device="cpu")
        shows = bool((frame["primId"] >= 0).any())
        assert not (shows and told), f"told to see nothing, and it does: {turn}, {place}, {near}"
        told_count, shown_count, empty_count = told_count + told, shown_count + shows, empty_count + (not shows)
    assert shown_count > 5
    assert told_count > 0.5 * empty_count > 10


def test_some_of_those_are_told(found):
    """The other half of the test above: it is no silence that keeps it true."""
    assert codes(found(camera(at("(0, 0, -9)")) + ball())) == ["camera-sees-nothing"]
    assert codes(found(camera(clip="(0.1, 3.9)") + ball())) == ["camera-clip-hides-all"]
    assert codes(found(camera(clip="(0.1, 4.1)") + ball())) == []
    assert codes(found(camera(at("(9, 0, 0)")) + ball())) == ["camera-sees-nothing"]  # 9 to the side of what is 5 away


@pytest.mark.parametrize("clip", ["(0.1, 3)", "(7, 9)", "(20, 30)"])
def test_the_clipping_range_that_a_cure_names_shows_it(found, clip):
    (finding,) = [item for item in found(camera(clip=clip) + ball()) if item.code == "camera-clip-hides-all"]
    near, far = (float(x) for x in re.search(r"clippingRange = \((\S+), (\S+)\)", finding.cure).groups())
    assert near <= 4.0 and far >= 6.0
    assert codes(found(camera(clip=f"({near}, {far})") + ball())) == []
    frame = hdwarp.render(str(found.path), "/World/Camera", resolution=(48, 32), aovs=["primId"], device="cpu")
    assert (frame["primId"] >= 0).any()


def test_lengths_in_messages_are_those_of_the_scene(found):
    """In centimetres too: the ball reaches from 4 to 6 of them."""
    lens = LENS.replace("0.5", "50").replace("0.36", "36").replace("0.24", "24")
    text = camera(clip="(7, 9)").replace(LENS, lens) + ball()
    (finding,) = [item for item in found(text, unit=0.01) if item.code == "camera-clip-hides-all"]
    assert "(7, 9)" in finding.message and "from 4 to 6 scene units" in finding.message


def test_a_camera_that_sees_something_later_is_let_be(found):
    head = (
        '#usda 1.0\n(\ndefaultPrim = "World"\nmetersPerUnit = 1\nupAxis = "Y"\nstartTimeCode = 1\nendTimeCode = {end}\n)\n'
        'def Xform "World"\n{{\n'
    )
    moving = camera(at("{ 1: (0, 0, -20), 10: (0, 0, 0) }", ".timeSamples")) + ball() + "}\n"
    assert codes(found(head.format(end=10) + moving)) == []
    assert codes(found(head.format(end=2) + moving)) == ["camera-sees-nothing"]  # its range ends before it gets there


def test_what_is_not_drawn_may_be_what_it_sees(found):
    """A prim of an unknown type, and a plane without end, are somewhere; where, the boxes do not say."""
    away = camera(at("(0, 0, -9)")) + ball()
    assert codes(found(away)) == ["camera-sees-nothing"]
    assert codes(found(away + 'def AlienGeometry "Thing"\n{\n}\n')) == []
    assert codes(found(away + f'def Plane "Ground"\n{{\nbool hdwarp:infinite = 1\n{at("(0, -2, 0)")}}}\n')) == []


def test_a_stage_without_geometry_is_no_camera_s_fault(found):
    assert codes(found(camera())) == []


def test_a_closed_mesh_around_the_camera_is_told_and_an_open_one_is_not(found):
    inside, far = camera(at("(0, 0, -5)")), ball(at("(0, 0, -40)"), "Far")
    assert codes(found(inside + far + box_mesh("Box"))) == ["camera-inside"]
    assert codes(found(inside + far + box_mesh("Box", lid=False))) == []
    assert codes(found(camera(at("(0, 0, -7)")) + far + box_mesh("Box"))) == []


def test_a_clipping_range_that_begins_beyond_it_takes_it_away(found):
    """A ball of radius 1 and a camera at its middle: the corners of its box are sqrt(3) away."""
    text = ball("", "Around") + ball(at("(0, 0, -40)"), "Far")
    (finding,) = [item for item in found(camera() + text) if item.code == "camera-inside"]
    near = float(re.search(r"clippingRange = \((\S+),", finding.cure).group(1))
    assert near == pytest.approx(1.001 * np.sqrt(3.0), rel=1e-5)
    assert codes(found(camera(clip=f"({near}, 100)") + text)) == []


def test_rooms_and_skies_are_meant(found):
    """What is around the camera and everything else is no mistake."""
    assert codes(found(camera() + ball() + box_mesh("Room", half=10.0, z=0.0))) == []
    assert codes(found(camera(clip="(0.1, 2000)") + ball() + ball("", "Sky", 1000.0))) == []


def test_boxes_are_those_of_usd(found):
    """Of every shape, turned and scaled, against UsdGeom's own bounds; boxes of boxes may be larger, never smaller."""
    from pxr import Usd, UsdGeom

    from hdwarp.stage.checks.boxes import boxes_of
    from hdwarp.stage.reader import read_stage

    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    for k, kind in enumerate(("Sphere", "Cube", "Cylinder", "Cone", "Capsule", "Capsule_1", "Cylinder_1", "Plane")):
        prim = stage.DefinePrim(f"/{kind}", kind)
        if kind.endswith("_1"):
            prim.GetAttribute("radiusTop").Set(0.4)
        UsdGeom.XformCommonAPI(prim).SetTranslate((3.0 * k, -k, 2.0))
        UsdGeom.XformCommonAPI(prim).SetScale((1.0, 2.0, 0.5))
    points = UsdGeom.Points.Define(stage, "/Points")
    points.CreatePointsAttr([(0, 0, 0), (2, 1, 0)])
    points.CreateWidthsAttr([0.5, 0.5])
    curves = UsdGeom.BasisCurves.Define(stage, "/Curves")
    curves.CreateTypeAttr("linear")
    curves.CreateCurveVertexCountsAttr([2])
    curves.CreatePointsAttr([(0, 0, 0), (2, 1, 0)])
    curves.CreateWidthsAttr([0.5, 0.5])
    columns = read_stage(stage, Usd.TimeCode.Default())
    assert len(columns.gprims) == 10
    for gprim in columns.gprims:
        box = (
            UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default"]).ComputeWorldBound(stage.GetPrimAtPath(gprim.path)).ComputeAlignedRange()
        )
        columns_of_one = read_stage(stage, Usd.TimeCode.Default(), mask=[gprim.path])
        lower, upper = boxes_of(columns_of_one).bounds
        assert (lower <= np.array(box.GetMin()) + 1e-5).all() and (upper >= np.array(box.GetMax()) - 1e-5).all()
        assert np.linalg.norm(upper - lower) < 1.5 * np.linalg.norm(np.array(box.GetSize()))


def test_inside_of_what_the_clipping_range_cuts_away_is_no_matter(found):
    """A capsule 0.2 thick and 0.9 long: nothing of it is farther than 0.6 from its middle."""
    text = 'def Capsule "Cap"\n{\ndouble radius = 0.2\ndouble height = 0.5\n}\n' + ball(at("(0, 0, -40)"), "Far")
    assert codes(found(camera(clip="(0.1, 100)") + text)) == ["camera-inside"]
    assert codes(found(camera(clip="(0.6, 100)") + text)) == []


@pytest.mark.parametrize(
    ("shape", "inside", "outside"),
    [
        ("def Cylinder", (0.9, 0.0, 0.9), (0.9, 0.9, 0.0)),
        ("def Cone", (0.4, 0.0, 0.0), (0.6, 0.0, 0.0)),  # half its radius, halfway up
        ("def Capsule", (0.4, 0.0, 0.0), (0.6, 0.0, 0.0)),
        ("def Sphere", (0.5, 0.5, 0.5), (0.7, 0.7, 0.7)),
    ],
)
def test_inside_of_shapes(found, shape, inside, outside):
    """Unit shapes about z at the origin, the camera at a point of them."""
    text = f'{shape} "Thing"\n{{\n}}\n' + ball(at("(0, 0, -40)"), "Far")
    assert codes(found(camera(at(str(inside))) + text)) == ["camera-inside"]
    assert codes(found(camera(at(str(outside))) + text)) == []


def test_the_winding_number_is_one_inside_and_nothing_outside():
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    triangles = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    mesh = MeshGeometry(points, triangles, triangles, np.arange(4, dtype=np.int32), 4, 12)
    assert _winding(mesh, np.array([0.1, 0.1, 0.1])) == pytest.approx(1.0)
    assert _winding(mesh, np.array([0.6, 0.6, 0.6])) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("distance", "moved"), [(30, False), (30_000, True)])
def test_a_lens_in_mixed_units_is_mended_before_the_camera_is_moved(found, distance, moved):
    """Decimetres are asked for: 0.24 and 0.20955. The ball is then 2 / (0.87 x 30) of the picture at 30 m, and nothing at 30 km."""
    text = (
        f'def Camera "C"\n{{\nfloat focalLength = 0.024\nfloat2 clippingRange = (1, 1e6)\ndouble3 xformOp:translate = (0, 0, {distance})\n'
    )
    text += 'uniform token[] xformOpOrder = ["xformOp:translate"]\n}\ndef Sphere "Ball"\n{\n}\n'
    (finding,) = found(text, only=("camera-far-away",))
    assert finding.cure.startswith("mend its lens as camera-lens-mixed says")
    assert ("move it" in finding.cure) == moved
    if moved:  # twice the radius of the box over 0.5 x 0.20955 / 0.24, the lens that is asked for
        wanted = float(finding.cure.partition("about ")[2].split()[0])
        assert wanted == pytest.approx(2 * 3**0.5 / (0.5 * 0.20955 / 0.24), rel=1e-4)
