"""UsdLux prims as records: radiance and its factors, sizes in the world, shaping, shadows, links, what is told of broken ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdLux
from tests.stage.conftest import stage_from

from hdwarp.stage.light_sizes import distant_size, sphere_area
from hdwarp.stage.links import MOST_SETS, is_linked
from hdwarp.stage.looks import LightKind
from hdwarp.stage.open import resolve_time
from hdwarp.stage.reader import read_stage


def light(read, kind: str, body: str = "", header: str = ""):
    found = read(f'{header}def {kind} "l" {{ {body} }}')
    return found.lights[0]


def scaled(x: float, y: float, z: float, more: str = "") -> str:
    return f'float3 xformOp:scale = ({x}, {y}, {z}); uniform token[] xformOpOrder = ["xformOp:scale"]; {more}'


# -- radiance ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected", "size", "radiance"),
    [
        ("DistantLight", LightKind.DISTANT, (math.cos(math.radians(0.265)), 0), 50000),
        ("SphereLight", LightKind.SPHERE, (0.5, 0), 1),
        ("DiskLight", LightKind.DISK, (0.5, 0), 1),
        ("RectLight", LightKind.RECT, (1, 1), 1),
        ("CylinderLight", LightKind.CYLINDER, (1, 0.5), 1),
        ("DomeLight", LightKind.DOME, (0, 0), 1),
        ("DomeLight_1", LightKind.DOME, (0, 0), 1),
    ],
)
def test_fallbacks_are_the_schemas(read, kind, expected, size, radiance):
    found = light(read, kind)
    assert found.kind is expected
    assert found.size == pytest.approx(size)
    assert found.radiance == pytest.approx((radiance,) * 3)
    assert (found.diffuse, found.specular, found.cone_angle, found.cone_softness, found.focus) == (1, 1, math.pi, 0, 0)
    assert (found.shadow, found.shadow_color, found.shadow_distance, found.shadow_falloff_gamma) == (True, (0, 0, 0), -1, 1)
    assert (found.light_link, found.shadow_link, found.texture, found.visible) == (None, None, None, True)


@pytest.mark.parametrize(
    ("angle", "factor"), [(0, 1), (0.53, 6.720371e-5), (10, 0.02386393), (180, math.pi), (270, 4.712389), (360, 2 * math.pi)]
)
def test_distant_size_factor(read, angle, factor):
    """Facts 24."""
    assert distant_size(angle) == pytest.approx(factor, rel=1e-6)
    found = light(read, "DistantLight", f"float inputs:angle = {angle}; bool inputs:normalize = 1; float inputs:intensity = 3")
    assert found.radiance[0] == pytest.approx(3 / factor, rel=1e-6)
    assert found.size[0] == pytest.approx(math.cos(math.radians(angle) / 2))


@pytest.mark.parametrize(
    ("kind", "area"), [("SphereLight", math.pi), ("DiskLight", math.pi / 4), ("RectLight", 1), ("CylinderLight", math.pi)]
)
def test_normalize_divides_by_the_default_area(read, kind, area):
    """Facts 24."""
    assert light(read, kind, "bool inputs:normalize = 1").radiance == pytest.approx((1 / area,) * 3, rel=1e-6)
    assert light(read, kind).radiance == pytest.approx((1, 1, 1))


@pytest.mark.parametrize(
    ("kind", "scale", "area"),
    [
        ("SphereLight", (3, 3, 3), 9 * math.pi),
        ("DiskLight", (2, 3, 5), 6 * math.pi / 4),
        ("RectLight", (2, 3, 5), 6),
        ("CylinderLight", (4, 2, 2), 8 * math.pi),
        ("RectLight", (-2, 3, 1), 6),
    ],
)
def test_normalize_takes_the_size_in_the_world(read, kind, scale, area):
    assert light(read, kind, scaled(*scale, "bool inputs:normalize = 1")).radiance[0] == pytest.approx(1 / area, rel=1e-6)


def test_area_of_an_ellipsoid():
    """A prolate spheroid has a closed form: 2 pi a^2 (1 + c / (a e) asin e), e^2 = 1 - a^2 / c^2."""
    a, c = 1.0, 3.0
    e = math.sqrt(1 - a * a / (c * c))
    expected = 2 * math.pi * a * a * (1 + c / (a * e) * math.asin(e))
    assert sphere_area(np.diag([a, a, c]), 1.0) == pytest.approx(expected, rel=1e-6)
    assert sphere_area(np.diag([a, -a, c]), 2.0) == pytest.approx(4 * expected, rel=1e-6)


def test_units_change_sizes_and_places_not_radiances(read):
    """In centimetres: area counts in scene units, as the light's radiance is that of the picture in any unit."""
    header = "#usda 1.0\n(\n    metersPerUnit = 0.01\n)\n"
    found = light(
        read,
        "RectLight",
        "float inputs:width = 200; float inputs:height = 50; bool inputs:normalize = 1; float inputs:shadow:distance = 300",
        header,
    )
    assert found.size == pytest.approx((2, 0.5))
    assert found.radiance[0] == pytest.approx(1 / 10000)
    found = light(read, "SphereLight", "float inputs:shadow:distance = 300", header.replace("0.01", "0.5"))
    assert found.size[0] == 0.25


def test_intensity_exposure_color_and_temperature_multiply(read):
    body = "float inputs:intensity = 3; float inputs:exposure = 2; color3f inputs:color = (1, 0.5, 0.25)"
    assert light(read, "RectLight", body).radiance == pytest.approx((12, 6, 3))
    found = light(read, "RectLight", "bool inputs:enableColorTemperature = 1; float inputs:colorTemperature = 3000")
    assert found.radiance == pytest.approx(tuple(UsdLux.BlackbodyTemperatureAsRgb(3000)))
    assert light(read, "RectLight", "bool inputs:enableColorTemperature = 1").radiance == pytest.approx((1.0433, 0.9836, 1.0346), abs=1e-4)
    assert light(read, "RectLight", "float inputs:colorTemperature = 3000").radiance == (1, 1, 1)


def test_color_spaces_are_turned_to_linear_rec709(read):
    """AP1 red is (1.70505, -0.13026, -0.02400) in Rec.709: what is below 0 is 0."""
    found = light(read, "RectLight", 'color3f inputs:color = (1, 0, 0) (\ncolorSpace = "lin_ap1_scene"\n)')
    assert found.radiance == pytest.approx((1.7050503, 0, 0), rel=1e-5)
    found = light(read, "RectLight", 'color3f inputs:color = (0.5, 0.5, 0.5) (\ncolorSpace = "srgb_rec709_scene"\n)')
    assert found.radiance == pytest.approx((0.2140411,) * 3, rel=1e-4)
    found = read('def RectLight "l" { color3f inputs:color = (1, 0, 0) (\ncolorSpace = "octarine"\n) }')
    assert (found.lights[0].radiance, found.codes()) == ((1, 0, 0), ["color-space"])


def test_color_space_of_what_is_above(read):
    text = 'def Xform "x" (prepend apiSchemas = ["ColorSpaceAPI"]) { uniform token colorSpace:name = "lin_ap1_scene"; '
    found = read(text + 'def RectLight "l" { color3f inputs:color = (1, 0, 0) } }')
    assert found.lights[0].radiance == pytest.approx((1.7050503, 0, 0), rel=1e-5)


# -- points, lines, meshes ---------------------------------------------------------------------------------------------------


def test_a_point_has_the_intensity_of_its_sphere(read):
    """Radiance 1 over the disc pi r^2 that a sphere shows from anywhere."""
    body = "bool treatAsPoint = 1; float inputs:radius = 0.1"
    found = light(read, "SphereLight", body)
    assert (found.kind, found.radiance[0]) == (LightKind.POINT, pytest.approx(math.pi * 0.01))
    assert light(read, "SphereLight", scaled(2, 2, 2, body)).radiance[0] == pytest.approx(math.pi * 0.04)
    for radius in (0, 0.1, 7):  # normalized, a quarter of the intensity whatever its size: 1 / (4 pi r^2) times pi r^2
        found = light(read, "SphereLight", f"bool treatAsPoint = 1; float inputs:radius = {radius}; bool inputs:normalize = 1")
        assert (found.radiance[0], found.visible) == (pytest.approx(0.25), True)


def test_a_line_sends_out_by_length(read):
    """Radiance 1 over the width 2 r that a cylinder shows; normalized: 1 / (2 pi r l) times 2 r."""
    body = "bool treatAsLine = 1; float inputs:radius = 0.1; float inputs:length = 4"
    found = light(read, "CylinderLight", body)
    assert (found.kind, found.radiance[0], found.size[0]) == (LightKind.LINE, pytest.approx(0.2), 4)
    assert light(read, "CylinderLight", scaled(5, 2, 2, body)).radiance[0] == pytest.approx(0.4)
    assert light(read, "CylinderLight", body + "; bool inputs:normalize = 1").radiance[0] == pytest.approx(1 / (4 * math.pi))


QUAD = """point3f[] points = [(0, 0, 0), (2, 0, 0), (2, 3, 0), (0, 3, 0)]
int[] faceVertexCounts = [4]
int[] faceVertexIndices = [0, 1, 2, 3]
"""


def test_mesh_lights(read):
    found = read(f'def Mesh "m" (prepend apiSchemas = ["MeshLightAPI"]) {{ {QUAD} {scaled(2, 1, 1)} bool inputs:normalize = 1 }}')
    assert (found.lights[0].kind, found.lights[0].mesh) == (LightKind.MESH, "/m")
    assert found.lights[0].radiance[0] == pytest.approx(1 / 12)
    assert found.codes("/m") == ["light-type"]  # none lights anything yet
    found = read(f'def Mesh "m" (prepend apiSchemas = ["MeshLightAPI"]) {{ {QUAD} token visibility = "invisible" }}')
    assert [(item.visible, item.path) for item in found.lights] == [(False, "/m")]
    found = read('def Sphere "m" (prepend apiSchemas = ["MeshLightAPI"]) { double radius = 2; bool inputs:normalize = 1 }')
    assert found.lights[0].radiance[0] == pytest.approx(1 / (16 * math.pi))


@pytest.mark.parametrize("kind", ["PortalLight", "PluginLight", "GeometryLight"])
def test_what_is_not_supported_is_named_and_off(read, kind):
    found = read(f'def {kind} "l" {{ }}')
    assert (found.codes("/l"), found.lights[0].visible) == (["light-type"], False)
    assert kind in found.message("light-type")


# -- place -------------------------------------------------------------------------------------------------------------------


def test_scale_and_shear_are_kept_apart_from_the_pose(read):
    turn = "double3 xformOp:rotateXYZ = (0, 90, 0); float3 xformOp:scale = (2, 3, 4); double3 xformOp:translate = (1, 2, 3); "
    order = 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ", "xformOp:scale"]'
    found = light(read, "RectLight", turn + order)
    assert found.axes == pytest.approx(np.diag([2, 3, 4]))
    assert found.world_from_light[:3, 3] == pytest.approx([1, 2, 3])
    assert -found.world_from_light[:3, 2] == pytest.approx([-1, 0, 0], abs=1e-7)
    assert light(read, "RectLight").axes.tolist() == np.eye(3).tolist()


def test_the_whole_matrix_is_pose_times_axes(read):
    found = read(
        f'def Xform "x" {{ {scaled(1, 2, -3)} def RectLight "l" {{ double3 xformOp:rotateXYZ = (10, 20, 30); '
        'uniform token[] xformOpOrder = ["xformOp:rotateXYZ"] } }'
    )
    expected = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(found.stage.GetPrimAtPath("/x/l"))).T[:3, :3]
    light = found.lights[0]
    assert light.world_from_light[:3, :3] @ light.axes == pytest.approx(expected)
    assert np.linalg.det(light.world_from_light) == pytest.approx(1)


@pytest.mark.parametrize(
    ("kind", "pole", "up", "expected"),
    [
        ("DomeLight", "", "Z", np.eye(3)),
        ("DomeLight_1", "", "Y", np.eye(3)),
        ("DomeLight_1", "Y", "Z", np.eye(3)),
        ("DomeLight_1", "Z", "Y", [[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
        ("DomeLight_1", "scene", "Z", [[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
    ],
)
def test_the_pole_of_a_dome(read, kind, pole, up, expected):
    """Columns are +X, the pole and the middle of the picture: with the pole along Z the middle is at -Y."""
    header = f'#usda 1.0\n(\n    metersPerUnit = 1\n    upAxis = "{up}"\n)\n'
    body = f'uniform token poleAxis = "{pole}"' if pole else ""
    assert light(read, kind, body, header).world_from_light[:3, :3].tolist() == np.array(expected).tolist()


def test_lights_in_native_instances_and_in_point_instancers(read):
    text = """def "proto" { def SphereLight "l" { float inputs:intensity = 7 } }
    def Xform "a" (instanceable = true; references = </proto>) {
        double3 xformOp:translate = (1, 0, 0); uniform token[] xformOpOrder = ["xformOp:translate"] }
    def Xform "b" (instanceable = true; references = </proto>) { }
    def PointInstancer "p" { rel prototypes = </proto>; int[] protoIndices = [0]; point3f[] positions = [(0, 0, 0)] }"""
    found = read(text)
    lights = {light.path: light for light in found.lights}
    assert [lights[path].radiance[0] for path in ("/a/l", "/b/l", "/proto/l")] == [7, 7, 7]
    assert lights["/a/l"].world_from_light[0, 3] == 1
    assert "light-in-instancer" in found.codes()


# -- shaping, shadows, textures, links ----------------------------------------------------------------------------------------


def test_shaping_counts_where_the_schema_is_applied(read):
    shaped = 'def SphereLight "l" (prepend apiSchemas = ["ShapingAPI", "ShadowAPI"]) { '
    assert read(shaped + "}").lights[0].cone_angle == pytest.approx(math.pi / 2)
    found = read(
        shaped + "float inputs:shaping:cone:angle = 30; float inputs:shaping:cone:softness = 0.25; float inputs:shaping:focus = 2; "
        "color3f inputs:shaping:focusTint = (1, 0, 0); color3f inputs:shadow:color = (0, 0, 1); bool inputs:shadow:enable = 0; "
        "float inputs:shadow:distance = 5; float inputs:shadow:falloff = 2; float inputs:shadow:falloffGamma = 3; "
        "float inputs:diffuse = 0.5; float inputs:specular = 2; asset inputs:shaping:ies:file = @a.ies@; rel light:filters = </f> }"
    )
    light = found.lights[0]
    assert (light.cone_angle, light.cone_softness, light.focus, light.focus_tint) == (pytest.approx(math.pi / 6), 0.25, 2, (1, 0, 0))
    assert (light.shadow, light.shadow_color, light.shadow_distance, light.shadow_falloff, light.shadow_falloff_gamma) == (
        False,
        (0, 0, 1),
        5,
        2,
        3,
    )
    assert (light.diffuse, light.specular) == (0.5, 2)
    assert found.codes("/l") == ["light-ies", "light-filter"]


def test_textures(read, tmp_path):
    from PIL import Image

    Image.new("RGB", (4, 2), (255, 0, 0)).save(tmp_path / "a.png")
    found = read(f'def DomeLight "l" {{ asset inputs:texture:file = @{tmp_path}/a.png@; token inputs:texture:format = "angular" }}').lights[
        0
    ]
    assert (found.texture.image.pixels.shape, found.projection, found.texture.colour_space) == ((2, 4, 4), "angular", "auto")
    found = read(f'def RectLight "l" {{ asset inputs:texture:file = @{tmp_path}/a.png@ (\ncolorSpace = "raw"\n) }}').lights[0]
    assert found.texture.colour_space == "raw"
    for text in (f"asset inputs:texture:file = @{tmp_path}/none.png@", 'string inputs:texture:file = "a"'):
        found = read(f'def DomeLight "l" {{ {text} }}')
        assert (found.lights[0].texture, found.lights[0].visible, len(found.codes("/l"))) == (None, True, 1)
    text = f'def DomeLight "l" {{ asset inputs:texture:file = @{tmp_path}/a.png@; token inputs:texture:format = "cubeMapVerticalCross" }}'
    assert read(text).codes("/l") == ["light-texture"]


COLLECTIONS = {
    "all": {},
    "nothing": {"includeRoot": False},
    "some": {"includeRoot": False, "includes": ["/A", "/D"]},
    "but": {"excludes": ["/A/b"]},
    "back": {"excludes": ["/A/b"], "includes": ["/A/b/c"]},
    "explicit": {"includeRoot": False, "includes": ["/A", "/A/b/c"], "expansionRule": "explicitOnly"},
    "nested": {"includeRoot": False, "includes": ["/Set.collection:few"]},
}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_links_hold_what_usd_says(name):
    """Every prim, asked of USD's own query and of the rules."""
    stage = Usd.Stage.CreateInMemory()
    paths = ["/A", "/A/b", "/A/b/c", "/A/bc", "/D", "/Dd", "/Set"]
    for path in paths:
        UsdGeom.Cube.Define(stage, path)
    few = Usd.CollectionAPI.Apply(stage.GetPrimAtPath("/Set"), "few")
    few.IncludePath("/A/b")
    few.CreateExpansionRuleAttr("explicitOnly")
    light = UsdLux.SphereLight.Define(stage, "/L")
    for made in (UsdLux.LightAPI(light).GetLightLinkCollectionAPI(), UsdLux.LightAPI(light).GetShadowLinkCollectionAPI()):
        for key, value in COLLECTIONS[name].items():
            if key == "includeRoot":
                made.CreateIncludeRootAttr(value)
            elif key == "expansionRule":
                made.CreateExpansionRuleAttr(value)
            else:
                getattr(made, f"Create{key.title()}Rel")().SetTargets([Sdf.Path(path) for path in value])
    found = read_stage(stage, resolve_time(stage, None)).lights[0]
    assert found.light_link == found.shadow_link
    query = UsdLux.LightAPI(light).GetLightLinkCollectionAPI().ComputeMembershipQuery()
    expected = [query.IsPathIncluded(path) for path in paths]
    if found.light_link is None:
        assert all(expected) and name == "all"
    else:
        assert [is_linked(dict(found.light_link), path) for path in paths] == expected


def test_too_many_links_are_told(read):
    def linked(i: int) -> str:
        return f'def SphereLight "l{i:03}" {{ bool collection:lightLink:includeRoot = 0; rel collection:lightLink:includes = </a{i}> }}\n'

    assert read("".join(linked(i) for i in range(MOST_SETS))).codes() == []
    found = read("".join(linked(i) for i in range(MOST_SETS + 2)))
    assert [(item.path, item.code) for item in found.diagnostics] == [("/l031", "light-link")]


# -- bad input ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body", "codes", "radiance", "visible"),
    [
        ("RectLight", "float inputs:intensity = -3", ["light-value"], 0, True),
        ("RectLight", "float inputs:intensity = nan", ["light-value"], 1, True),
        ("DistantLight", "float inputs:intensity = inf", ["light-value"], 50000, True),
        ("RectLight", "float inputs:exposure = 5000", ["light-value"], 1e30, True),
        ("RectLight", "float inputs:exposure = -5000", [], 0, True),
        ("RectLight", "float inputs:exposure = 3000; float inputs:intensity = 0", [], 0, True),
        ("RectLight", 'string inputs:intensity = "bright"', ["wrong-type"], 1, True),
        ("RectLight", "float inputs:color = 0.5", ["wrong-type"], 1, True),
        ("RectLight", "color3f inputs:color = (nan, 0, 0)", ["light-value"], 1, True),
        ("RectLight", "color3f inputs:color = (-1, 2, 2)", ["light-value"], 0, True),
        ("RectLight", "float inputs:width = 0; bool inputs:normalize = 1", ["light-size"], 1, False),
        ("RectLight", "float inputs:width = -2", ["light-value", "light-size"], 1, False),
        ("SphereLight", "float inputs:radius = 0", ["light-size"], 1, False),
        ("SphereLight", "float inputs:radius = 0; bool treatAsPoint = 1", ["light-size"], 1, False),
        ("SphereLight", "float inputs:radius = 1e30; bool inputs:normalize = 1", [], 0, True),
        ("CylinderLight", "float inputs:length = 0; bool treatAsLine = 1; bool inputs:normalize = 1", ["light-size"], 1, False),
        ("DistantLight", "float inputs:angle = nan; bool inputs:normalize = 0; float inputs:intensity = 2", ["light-value"], 2, True),
        ("SphereLight", "bool inputs:enableColorTemperature = 1; float inputs:colorTemperature = nan", ["light-value"], 1.0433, True),
        ("SphereLight", "float inputs:shadow:distance = 2; float inputs:shadow:falloff = 1", ["light-value"], 1, True),
        ("SphereLight", "float inputs:shadow:falloff = 1", [], 1, True),
        ("SphereLight", "bool collection:shadowLink:includeRoot = 0", ["light-link"], 1, True),
        ("SphereLight", 'string treatAsPoint = "yes"', ["wrong-type"], 1, True),
        ("DomeLight_1", 'token poleAxis = "W"', ["light-value"], 1, True),
    ],
)
def test_broken_lights_are_told_and_finite(read, kind, body, codes, radiance, visible):
    found = read(f'def {kind} "l" {{ {body} }}')
    light = found.lights[0]
    assert found.codes("/l") == codes
    assert (light.radiance[0], light.visible) == (pytest.approx(radiance, rel=1e-4, abs=1e-20), visible)
    assert np.isfinite([*light.radiance, *light.size]).all()


def test_a_temperature_that_is_out_of_the_table(read):
    found = read('def SphereLight "l" { bool inputs:enableColorTemperature = 1; float inputs:colorTemperature = -5 }')
    assert found.codes("/l") == ["light-value"]
    assert found.lights[0].radiance == pytest.approx(tuple(UsdLux.BlackbodyTemperatureAsRgb(1000)))


def test_five_thousand_lights(read):
    found = read("".join(f'def SphereLight "l{i}" {{ float inputs:intensity = {i} }}\n' for i in range(5000)))
    assert len(found.lights) == 5000
    assert found.codes() == []


def test_visibility_and_activity(read):
    found = read('def Xform "x" { token visibility = "invisible"; def SphereLight "l" { } }\ndef SphereLight "off" (active = false) { }')
    assert [(light.path, light.visible) for light in found.lights] == [("/x/l", False)]


def test_time_samples(read):
    stage = stage_from('def SphereLight "l" { float inputs:intensity.timeSamples = { 1: 1, 3: 5 } }')
    assert [read_stage(stage, Usd.TimeCode(time)).lights[0].radiance[0] for time in (1, 2, 3)] == [1, 3, 5]


def test_membership_expressions_are_told(read):
    found = read(
        'def SphereLight "l" { bool collection:lightLink:includeRoot = 0; '
        'pathExpression collection:lightLink:membershipExpression = "/A//" }'
    )
    assert (found.lights[0].light_link, found.codes()) == (None, ["light-link"])
