"""What bodies carry, articulations, sites and lights: named frames on the stage and inside native instances."""

from __future__ import annotations

import numpy as np
import pytest

MOVE = 'uniform token[] xformOpOrder = ["xformOp:translate"]'
TURN = 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]'


def prim(kind: str, name: str, body: str = "", *schemas: str, place: tuple[float, float, float] | None = None) -> str:
    applied = f"prepend apiSchemas = [{', '.join(repr(schema) for schema in schemas)}]".replace("'", '"') if schemas else ""
    moved = "" if place is None else f"double3 xformOp:translate = {place}; {MOVE}\n"
    return f'def {kind} "{name}" ({applied}) {{ \n{moved}{body}\n }}\n'


def body(name: str, inside: str, *schemas: str, **options) -> str:
    return prim("Xform", name, inside, "PhysicsRigidBodyAPI", *schemas, **options)


def bodies_of(found) -> dict[str, str]:
    return {item.path: item.body for item in (*found.gprims, *found.cameras, *found.sites, *found.lights)}


# -- who carries what ---------------------------------------------------------------------------------------------------------------


def test_frames_between_a_body_and_its_camera_are_part_of_the_mount(read):
    """Body at (5, 0, 0) turned by 90 degrees about z; a mount at (0, 0, 1) in it, and the camera at (2, 0, 0) in that: it is carried at
    (2, 0, 1), and stands at (5, 2, 1)."""
    camera = prim("Camera", "cam", place=(2, 0, 0))
    mount = prim("Xform", "mount", prim("Scope", "inner", camera), place=(0, 0, 1))
    link = f"double3 xformOp:translate = (5, 0, 0); double xformOp:rotateZ = 90; {TURN}\n{mount}"
    found = read(body("link", link))
    camera, carrier = found.cameras[0], found.bodies[0]
    assert (camera.path, camera.body) == ("/link/mount/inner/cam", "/link")
    assert camera.world_from_camera[:3, 3] == pytest.approx([5, 2, 1])
    mounted = np.linalg.inv(carrier.world_from_body) @ camera.world_from_camera
    assert mounted[:3, 3] == pytest.approx([2, 0, 1])
    assert mounted[:3, :3] == pytest.approx(np.eye(3), abs=1e-12)


def test_gprims_and_cameras_may_be_bodies_themselves(read):
    found = read(body("link", prim("Cube", "box", "", "PhysicsRigidBodyAPI") + prim("Camera", "eye", "", "PhysicsRigidBodyAPI")))
    assert [item.path for item in found.bodies] == ["/link", "/link/box", "/link/eye"]
    assert bodies_of(found) == {"/link/box": "/link/box", "/link/eye": "/link/eye"}


def test_a_body_inside_a_body_moves_by_itself(read):
    """Without resetXformStack it is placed by the transforms above, but what it holds is its own."""
    found = read(body("arm", prim("Cube", "part") + body("hand", prim("Cube", "palm"), place=(0, 1, 0)), place=(1, 0, 0)))
    assert bodies_of(found) == {"/arm/part": "/arm", "/arm/hand/palm": "/arm/hand"}
    assert found.bodies[1].world_from_body[:3, 3] == pytest.approx([1, 1, 0])


@pytest.mark.parametrize(("enabled", "named"), [("1", ["/arm", "/arm/plate"]), ("0", ["/arm"]), (None, ["/arm", "/arm/plate"])])
def test_a_disabled_rigid_body_is_no_body(read, enabled, named):
    """It is part of what is around it: of the body above, or of the world."""
    switch = "" if enabled is None else f"bool physics:rigidBodyEnabled = {enabled}\n"
    found = read(body("arm", body("plate", switch + prim("Cube", "c"))))
    assert [item.path for item in found.bodies] == named
    assert found.gprims[0].body == named[-1]


def test_a_disabled_body_under_no_other_is_static(read):
    found = read(body("plate", "bool physics:rigidBodyEnabled = 0\n" + prim("Cube", "c")))
    assert (found.bodies, found.gprims[0].body) == ([], "")


def test_bodies_are_switched_at_a_time(read):
    text = body("plate", "bool physics:rigidBodyEnabled.timeSamples = { 1: 1, 5: 0, }\n" + prim("Cube", "c"))
    assert [read(text, time=time).gprims[0].body for time in (1, 6)] == ["/plate", ""]


# -- inside native instances ----------------------------------------------------------------------------------------------------------


def instance(name: str, x: float, source: str = "/lib") -> str:
    return f"""def Xform "{name}" (
        instanceable = true
        prepend references = <{source}>
    ) {{
        double3 xformOp:translate = ({x}, 0, 0)
        {MOVE}
    }}
    """


HAND = prim("Cube", "palm") + prim("Xform", "wrist", prim("Camera", "cam", place=(0, 0, 3)) + prim("Xform", "tip", "", "MjcSiteAPI"))
ROBOT = prim("Cube", "base") + body("arm", body("hand", HAND + prim("SphereLight", "lamp"), place=(0, 2, 0)), place=(0, 1, 0))
LIBRARY = f'class Xform "lib" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{ \n{ROBOT}\n }}\n'


def test_every_instance_has_bodies_of_its_own(read):
    found = read(LIBRARY + instance("a", 10) + instance("b", 20))
    paths = ["/a/arm", "/a/arm/hand", "/b/arm", "/b/arm/hand"]
    assert [item.path for item in found.bodies] == paths
    assert [item.world_from_body[:3, 3].tolist() for item in found.bodies] == [[10, 1, 0], [10, 3, 0], [20, 1, 0], [20, 3, 0]]
    assert [item.articulation for item in found.bodies] == ["/a", "/a", "/b", "/b"]
    expected = {}
    for name in ("/a", "/b"):
        expected[f"{name}/base"] = ""
        for inside in ("palm", "wrist/cam", "wrist/tip", "lamp"):
            expected[f"{name}/arm/hand/{inside}"] = f"{name}/arm/hand"
    assert bodies_of(found) == expected


def test_cameras_inside_instances_stand_where_their_bodies_are(read):
    found = read(LIBRARY + instance("a", 10) + instance("b", 20))
    for camera, carrier in zip(found.cameras, found.bodies[1::2], strict=True):
        mounted = np.linalg.inv(carrier.world_from_body) @ camera.world_from_camera
        assert (camera.body, mounted[:3, 3].tolist()) == (carrier.path, [0, 0, 3])


def test_bodies_of_instances_inside_instances(read):
    outer = f'class Xform "outer" {{ \n{instance("left", 1)}{instance("right", 2)} }}\n'
    found = read(LIBRARY + outer + instance("a", 10, "/outer") + instance("b", 20, "/outer"))
    hands = [item for item in found.bodies if item.path.endswith("hand")]
    assert [item.path for item in hands] == [f"/{a}/{side}/arm/hand" for a in "ab" for side in ("left", "right")]
    assert [item.world_from_body[0, 3] for item in hands] == [11, 12, 21, 22]
    assert [item.articulation for item in hands] == ["/a/left", "/a/right", "/b/left", "/b/right"]
    assert [camera.body for camera in found.cameras] == [item.path for item in hands]


def test_an_instance_may_be_inside_a_body(read):
    library = 'class Xform "lib" { \ndef Cube "box" {}\ndef Camera "cam" {}\n }\n'
    found = read(library + body("cart", instance("a", 1) + instance("b", 2)))
    assert bodies_of(found) == dict.fromkeys(("/cart/a/box", "/cart/a/cam", "/cart/b/box", "/cart/b/cam"), "/cart")


# -- articulations --------------------------------------------------------------------------------------------------------------------


def test_articulations_are_the_nearest_root(read):
    """The nearest prim at or above a body; a body that is beside its root, not below it, has none."""
    inner = body("tool", "", "PhysicsArticulationRootAPI")
    found = read(
        prim("Xform", "robot", body("base", body("link", inner)), "PhysicsArticulationRootAPI")
        + prim("Xform", "cart", body("root", "", "PhysicsArticulationRootAPI") + body("wheel", ""))
    )
    assert {item.path: item.articulation for item in found.bodies} == {
        "/cart/root": "/cart/root",
        "/cart/wheel": "",
        "/robot/base": "/robot",
        "/robot/base/link": "/robot",
        "/robot/base/link/tool": "/robot/base/link/tool",
    }


# -- sites ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["HdWarpSiteAPI", "NewtonSiteAPI", "MjcSiteAPI"])
def test_sites_are_known_by_name(read, schema):
    """Newton's and MuJoCo's schemas need not be installed: the authored name counts, however it is listed."""
    found = read(body("link", prim("Xform", "tip", "", schema, "PhysicsMassAPI", place=(0, 0, 1))))
    assert [(site.path, site.body, site.world_from_site[:3, 3].tolist()) for site in found.sites] == [("/link/tip", "/link", [0, 0, 1])]
    explicit = read(f'def Xform "s" (apiSchemas = ["{schema}"]) {{}}')
    assert [site.path for site in explicit.sites] == ["/s"]
    assert read(f'def Xform "s" (delete apiSchemas = ["{schema}"]) {{}}').sites == []


def test_a_site_may_be_a_gprim(read):
    """As MuJoCo's exporter writes them: a small ball. It is drawn where its purpose is, and its size is no part of the frame."""
    ball = 'double radius = 0.02; float3 xformOp:scale = (3, 3, 3); uniform token[] xformOpOrder = ["xformOp:scale"]\n'
    text = body("link", prim("Sphere", "a", ball, "MjcSiteAPI") + prim("Sphere", "b", 'uniform token purpose = "guide"', "NewtonSiteAPI"))
    found = read(text)
    assert [(site.path, site.body) for site in found.sites] == [("/link/a", "/link"), ("/link/b", "/link")]
    assert found.sites[0].world_from_site == pytest.approx(np.eye(4))
    assert found.paths == ["/link/a"]


# -- lights ---------------------------------------------------------------------------------------------------------------------------


def test_lights_are_rigid_frames_in_metres(read):
    """A light at (0, 0, 300) centimetres, turned by 90 degrees about x: it shines along +y."""
    place = "double3 xformOp:translate = (0, 0, 300); float xformOp:rotateX = 90; float3 xformOp:scale = (2, 2, 2)\n"
    order = 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateX", "xformOp:scale"]\n'
    text = "#usda 1.0\n(\n    metersPerUnit = 0.01\n)\n" + prim("RectLight", "lamp", place + order) + prim("DomeLight", "sky")
    found = read(text)
    assert [light.path for light in found.lights] == found.light_paths == ["/lamp", "/sky"]
    assert found.lights[0].world_from_light[:3, 3] == pytest.approx([0, 0, 3])
    assert -found.lights[0].world_from_light[:3, 2] == pytest.approx([0, 1, 0], abs=1e-7)
    assert found.lights[1].world_from_light == pytest.approx(np.eye(4))


def test_lights_know_their_body_whatever_their_visibility(read):
    found = read(body("car", 'token visibility = "invisible"\n' + prim("SphereLight", "lamp") + prim("Mesh", "panel", "", "MeshLightAPI")))
    assert [(light.path, light.body) for light in found.lights] == [("/car/lamp", "/car"), ("/car/panel", "/car")]


def test_a_light_that_cannot_be_placed_is_none(read):
    found = read(prim("SphereLight", "lamp", 'float3 xformOp:scale = (0, 0, 0); uniform token[] xformOpOrder = ["xformOp:scale"]'))
    assert (found.lights, found.light_paths) == ([], [])
    assert found.codes("/lamp") == ["singular-transform"]
