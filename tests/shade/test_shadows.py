"""`preview`: where shadows end, to the pixel; what is in none is as bright as without shadows; no speckle; the same bits every time."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, UsdGeom
from tests.shade import light_stage as sheet

import hdwarp

LOW, HIGH, HEIGHT = np.array([-0.25, -0.2]), np.array([0.3, 0.35]), 0.5  # of the occluder
POINT = np.array([1.5, -1.1, 2.0])
SIZE = 128


def covered(kind: str = "point", shift=(0.0, 0.0, 0.0), **inputs: object):
    """Paper, an occluder above it, and a light that is off to the side, so that the whole shadow is seen."""
    stage = sheet.paper()
    sheet.quad(stage, "/lid", LOW, HIGH, HEIGHT)
    if kind == "point":
        sheet.point(stage, POINT, 3.0, **inputs)
    else:
        sheet.light(stage, kind, turn=SUN, **({"angle": 0.0, "intensity": 1.0} | inputs))
    return stage


SUN = (40.0, 25.0, 0.0)


def to_sun() -> np.ndarray:
    """The direction of what shines along -z, turned about x, then about y."""
    x, y = np.radians(SUN[:2])
    about_x = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
    about_y = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    return about_y @ about_x @ np.array([0, 0, 1.0])


def on_lid(places: np.ndarray, kind: str) -> np.ndarray:
    """(H, W, 2): where rays from places to the light pass the height of the occluder."""
    if kind == "point":
        way = POINT - places
        return (places + way * (HEIGHT / way[..., 2:]))[..., :2]
    way = to_sun()
    return (places + way * (HEIGHT / way[2]))[..., :2]


def in_shadow(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(whether each pixel of the paper is in shadow, whether that is sure: its centre is not on the edge)."""
    at = on_lid(sheet.places(SIZE), kind)
    inside = np.minimum(at - LOW, HIGH - at).min(axis=-1)
    return inside > 0, np.abs(inside) > 1e-4


def paper_alone(frame) -> np.ndarray:
    return frame["primId"] == frame.prim_paths.index("/paper")


def facing(kind: str) -> np.ndarray:
    places = sheet.places(SIZE)
    return 3.0 * sheet.from_point(POINT, places) if kind == "point" else np.full(places.shape[:2], to_sun()[2])


@pytest.mark.parametrize("kind", ["point", "DistantLight"])
@pytest.mark.parametrize("color", [(0.0, 0.0, 0.0), (0.0, 0.25, 1.0)])
def test_edges_of_shadows_to_the_pixel(device, kind, color):
    """In shadow: the light times shadow:color."""
    frame = sheet.look(covered(kind, shadow__color=color), device, "preview", ("color", "primId"), SIZE)
    dark, sure = in_shadow(kind)
    seen = paper_alone(frame)
    assert 0.03 < (dark & seen).mean() < 0.5 and (sure & seen).mean() > 0.9 and sure.mean() > 0.995
    light = sheet.BASE / np.pi * facing(kind)[..., None]
    right = np.where(dark[..., None], light * np.array(color), light)
    np.testing.assert_allclose(frame["color"][..., :3][sure & seen], right[sure & seen], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["point", "DistantLight"])
def test_shadows_can_be_switched_off(device, kind):
    """By the light, by the settings, and as `fast` does; and on, in `fast`."""
    fast = sheet.look(covered(kind), device, "fast", size=SIZE)["color"]
    off = sheet.look(covered(kind, shadow__enable=False), device, "preview", size=SIZE)["color"]
    told = sheet.look(covered(kind), device, "preview", size=SIZE, settings={"shadows": False})["color"]
    np.testing.assert_allclose(off, fast, rtol=1e-6)
    assert (told == fast).all()
    on = sheet.look(covered(kind), device, "fast", size=SIZE, settings={"shadows": True})["color"]
    assert (on == sheet.look(covered(kind), device, "preview", size=SIZE)["color"]).all() and (on != fast).any()


@pytest.mark.parametrize("kind", ["point", "DistantLight"])
def test_shadow_distance(device, kind):
    """What is further from the paper than it, along the ray, casts none: half of the shadow goes."""
    dark, sure = in_shadow(kind)
    places = sheet.places(SIZE)
    at = np.concatenate([on_lid(places, kind), np.full((SIZE, SIZE, 1), HEIGHT)], axis=-1)
    length = np.linalg.norm(at - places, axis=-1)
    limit = float(np.median(length[dark])) if kind == "point" else float(length[0, 0]) * 0.99
    frame = sheet.look(covered(kind, shadow__distance=limit), device, "preview", ("color", "primId"), SIZE)
    seen = paper_alone(frame) & sure & (np.abs(length - limit) > 5e-4)
    right = np.where(dark & (length < limit), 0.0, facing(kind))
    np.testing.assert_allclose(frame["color"][..., 0][seen], right[seen] * sheet.BASE[0] / np.pi, rtol=1e-4, atol=1e-6)
    assert (dark & (length > limit) & seen).any()


@pytest.mark.parametrize("kind", ["point", "DistantLight"])
def test_a_shadow_distance_of_nothing_is_no_shadow(device, kind):
    got = sheet.look(covered(kind, shadow__distance=0.0), device, "preview", size=SIZE)["color"]
    np.testing.assert_allclose(got, sheet.look(covered(kind), device, "fast", size=SIZE)["color"], rtol=1e-5)


def test_shadows_of_lights_with_a_size_are_soft(device):
    """A sphere's share that is seen, by the sum over its disc: fully lit, fully dark, and in the middle of the penumbra half."""
    stage = sheet.paper()
    sheet.quad(stage, "/lid", (-20.0, -20.0), (0.0, 20.0), 0.5)  # half of the sky, whose edge is right below the light
    sheet.camera(stage, "/low", (0.0, 0.0, 0.25)).CreateClippingRangeAttr((0.01, 10.0))
    sheet.light(stage, "SphereLight", place=(0, 0, 1.0), radius=0.2, intensity=3.0)
    frame = sheet.look(stage, device, "preview", size=SIZE, camera="/low", settings={"light_samples": 256})
    share = frame["color"][..., 0] * np.pi / sheet.BASE[0] / (3.0 * sheet.from_sphere((0, 0, 1), 0.2, sheet.places(SIZE)))
    x = sheet.places(SIZE)[..., 0]
    assert (share[x > 0.25] > 0.999).all() and not share[x < -0.25].any()
    assert share[np.abs(x) < 0.02].mean() == pytest.approx(0.5, abs=0.03)
    # Of a circle whose centre is s radii from a straight edge: the part on this side of it.
    middle = np.abs(sheet.places(SIZE)[..., 1]) < 0.1
    s = np.clip(x / 0.2 / np.sqrt(1 - 0.04), -1, 1)
    part = 1 - (np.arccos(s) - s * np.sqrt(1 - s * s)) / np.pi
    assert np.abs((share - part)[middle]).mean() < 0.02


# -- nothing in the way ------------------------------------------------------------------------------------------------------


LIGHTS = {
    "point": lambda stage: sheet.point(stage, (0.4, 0.3, 1.5), 3.0),
    "sun": lambda stage: sheet.light(stage, "DistantLight", turn=(30, 10, 0), angle=0.0, intensity=1.0),
    "soft sun": lambda stage: sheet.light(stage, "DistantLight", turn=(30, 10, 0), angle=5.0, intensity=100.0),
    "sphere": lambda stage: sheet.light(stage, "SphereLight", place=(0.4, 0.3, 1.5), radius=0.3),
    "disk": lambda stage: sheet.light(stage, "DiskLight", place=(0.4, 0.3, 1.5), radius=0.3),
    "rect": lambda stage: sheet.light(stage, "RectLight", place=(0.4, 0.3, 1.5)),
    "cylinder": lambda stage: sheet.light(stage, "CylinderLight", place=(0.4, 0.3, 1.5), radius=0.1),
    "dome": lambda stage: sheet.light(stage, "DomeLight"),
}


@pytest.mark.parametrize("name", LIGHTS)
def test_a_light_of_which_all_is_seen_is_as_bright_as_without_shadows(device, name):
    stage = sheet.paper()
    LIGHTS[name](stage)
    fast, preview = (sheet.look(stage, device, integrator)["color"] for integrator in ("fast", "preview"))
    assert fast[..., :3].min() > 0.0
    np.testing.assert_allclose(preview, fast, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LIGHTS)
def test_light_from_behind_gives_nothing(device, name):
    """A sheet over the paper; the light is between them, and shines both ways where it can."""
    stage = sheet.paper()
    sheet.quad(stage, "/over", z=3.0)
    LIGHTS[name](stage)
    frame = sheet.look(stage, device, "preview")
    if name in ("sun", "soft sun", "dome"):
        assert frame["color"][..., :3].min() > 0.0  # it comes from above both
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/light")).SetRotate((180, 0, 0))
        if name == "dome":
            return
        frame = sheet.look(stage, device, "preview")
    assert not frame["color"][..., :3].any()


def ball(stage, shape: str, place, radius: float = 0.8):
    if shape == "sphere":
        made = UsdGeom.Sphere.Define(stage, "/ball")
        made.CreateRadiusAttr(radius)
    else:
        made = UsdGeom.Mesh.Define(stage, "/ball")
        rows, columns = 24, 48
        lat = np.linspace(-np.pi / 2, np.pi / 2, rows + 1)[1:-1]
        lon = np.arange(columns) * 2 * np.pi / columns
        ring = np.stack([np.cos(lat)[:, None] * np.cos(lon), np.cos(lat)[:, None] * np.sin(lon), np.sin(lat)[:, None] + 0 * lon], -1)
        points = radius * np.concatenate([ring.reshape(-1, 3), [(0, 0, -1), (0, 0, 1)]])
        faces = []
        for k in range(columns):
            n = (k + 1) % columns
            faces += [[r * columns + k, r * columns + n, (r + 1) * columns + n, (r + 1) * columns + k] for r in range(rows - 2)]
            faces += [[n, k, len(points) - 2], [(rows - 2) * columns + k, (rows - 2) * columns + n, len(points) - 1]]
        made.CreatePointsAttr([tuple(map(float, p)) for p in points])
        made.CreateFaceVertexCountsAttr([len(f) for f in faces])
        made.CreateFaceVertexIndicesAttr([i for f in faces for i in f])
        made.CreateSubdivisionSchemeAttr("catmullClark" if shape == "smooth mesh" else "none")
    sheet.matt(stage, made.GetPrim())
    UsdGeom.XformCommonAPI(made).SetTranslate(Gf.Vec3d(*map(float, place)))


FAR = (707.0, -650.0, 280.0)


@pytest.mark.parametrize("name", ["point", "sun", "sphere", "rect", "dome"])
@pytest.mark.parametrize("place", [(0.0, 0.0, 0.0), FAR], ids=["near", "far"])
@pytest.mark.parametrize("shape", ["sphere", "mesh", "smooth mesh"])
def test_a_convex_body_casts_no_shadow_on_itself(device, shape, place, name):
    """Every pixel whose facet and normal face all of the light, by a little, is as bright as without shadows; that of a point and of a
    distant light faces it wherever it is lit at all."""
    stage = sheet.empty()
    ball(stage, shape, place)
    lamp = LIGHTS[name](stage)
    move = UsdGeom.XformCommonAPI(lamp)
    lights_at = np.array([1.2, 0.9, 4.5])
    move.SetTranslate(Gf.Vec3d(*map(float, lights_at + place)))
    sheet.camera(stage, "/close", np.array(place) + (0, 0, 3.0))
    size = 96
    fast, preview = (
        sheet.look(stage, device, integrator, ("color", "Ngeom", "normal", "primId"), size, "/close") for integrator in ("fast", "preview")
    )
    seen = fast["primId"] >= 0
    assert 0.3 < seen.mean() < 0.6
    x, y = sheet.places(size)[..., 0], sheet.places(size)[..., 1]
    z = np.sqrt(np.maximum(0.64 - x * x - y * y, 0.0))
    towards = lights_at - np.stack([x, y, z], axis=-1)
    if name == "sun":
        a, b = np.radians(30), np.radians(10)
        towards = np.broadcast_to([np.sin(b) * np.cos(a), -np.sin(a), np.cos(b) * np.cos(a)], towards.shape)
    towards = towards / np.linalg.norm(towards, axis=-1, keepdims=True)
    margin = {"point": 1e-3, "sun": 1e-3, "sphere": 0.1, "rect": 0.25}.get(name, 2.0)
    faces = seen & ((fast["Ngeom"] * towards).sum(-1) > margin) & ((fast["normal"] * towards).sum(-1) > margin)
    if name == "dome":
        # Of the sky above a normal that is not the facet's, a little is below the facet.
        ratio = preview["color"][..., 0][seen] / fast["color"][..., 0][seen]
        assert ratio.max() < 1.0 + 1e-5 and ratio.min() > (0.9 if shape == "smooth mesh" else 1.0 - 1e-5)
        return
    assert faces.sum() > 0.5 * seen.sum()
    np.testing.assert_allclose(preview["color"][faces], fast["color"][faces], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("thickness", [0.0, 1e-3])
@pytest.mark.parametrize("height", [0.02, 1.0, 1000.0])
def test_thin_sheets_do_not_speckle(device, thickness, height):
    """A sheet, and a box of a millimetre, lit at all angles down to grazing, from near and from a kilometre away."""
    stage = sheet.empty()
    if thickness:
        box = UsdGeom.Cube.Define(stage, "/box")
        box.CreateSizeAttr(1.0)
        UsdGeom.XformCommonAPI(box).SetScale((4, 4, thickness))
        UsdGeom.XformCommonAPI(box).SetTranslate((0, 0, -thickness / 2))
        sheet.matt(stage, box.GetPrim())
    else:
        sheet.quad(stage, "/sheet", (-2, -2), (2, 2))
    sheet.point(stage, (0.1, 0.2, height), height**2)
    fast, preview = (sheet.look(stage, device, integrator, size=SIZE)["color"] for integrator in ("fast", "preview"))
    np.testing.assert_allclose(preview, fast, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("eye", [0.05, 500.0])
def test_no_speckle_however_far_camera_and_lamp_are(device, eye):
    """A pinhole camera near the paper, or far above, under a lamp a kilometre up and one close by."""
    stage = sheet.paper()
    camera = UsdGeom.Camera.Define(stage, "/near")
    UsdGeom.XformCommonAPI(camera).SetTranslate((0.0, 0.0, eye))
    camera.CreateClippingRangeAttr((0.001, 10000.0))
    for place in ((300.0, 200.0, 1000.0), (0.5, 0.0, 30.0)):
        sheet.point(stage, place, 1000.0)
        fast, preview = (sheet.look(stage, device, integrator, size=SIZE, camera="/near")["color"] for integrator in ("fast", "preview"))
        np.testing.assert_allclose(preview, fast, rtol=1e-5, atol=1e-7)


# -- the same every time -----------------------------------------------------------------------------------------------------


def crowd():
    """Balls and lids under one light of each kind."""
    stage = sheet.paper()
    ball(stage, "mesh", (-0.4, 0.3, 0.3), 0.3)
    sheet.quad(stage, "/lid", LOW, HIGH, HEIGHT)
    layer = stage.GetRootLayer()
    for k, make in enumerate(LIGHTS.values()):
        make(stage)
        assert Sdf.CopySpec(layer, "/light", layer, f"/light_{k}")
        stage.RemovePrim("/light")
    return stage


def test_twice_gives_the_same_bits_on_any_number_of_threads(device, monkeypatch):
    first = sheet.look(crowd(), device, "preview", ("color", "direct"))
    with hdwarp.Scene(crowd(), device=device) as scene:
        for count in ("1", "2", "5"):
            monkeypatch.setenv("HDWARP_THREADS", count)
            again = sheet.look(scene, device, "preview", ("color", "direct"))
            assert all((first[name] == again[name]).all() for name in ("color", "direct")), count


def test_a_sensor_sees_what_render_shows(device):
    stage = crowd()
    right = sheet.look(stage, device, "preview")["color"]
    with hdwarp.Scene(stage, device=device) as scene:
        settings = hdwarp.RenderSettings(integrator="preview")
        sensor = hdwarp.SensorCamera(scene, cameras="/c", resolution=(sheet.SIZE, sheet.SIZE), settings=settings)
        out = sensor.allocate(["color"])
        for _ in range(2):
            sensor.update(scene.state(), out)
            assert (out["color"].numpy()[0] == right).all()


def test_samples_share_the_rays_of_a_pixel(device):
    """Four samples a pixel: smoother edges, the same light on the whole."""
    one, four = (sheet.look(crowd(), device, "preview", samples=samples)["color"][..., :3] for samples in (1, 4))
    assert np.abs(one - four).max() > 0.0
    np.testing.assert_allclose(four.mean(axis=(0, 1)), one.mean(axis=(0, 1)), rtol=0.03)
