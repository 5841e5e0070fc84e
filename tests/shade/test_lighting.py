"""Paper under lights without shadows: irradiance by closed forms, and what switches lights on, off, dims and colours them."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdPhysics, UsdShade
from tests.shade import light_stage as sheet

import hdwarp
from hdwarp.stage.looks import LightKind

SUN_HALF = np.radians(0.53 / 2)
NEAR = {"rtol": 1e-4, "atol": 1e-6}


def same(got: np.ndarray, right: np.ndarray | float, **near) -> None:
    """Irradiance (H, W, 3) against (H, W), (3,), or a number."""
    right = np.asarray(right, float)
    right = right[..., None] if right.ndim == 2 else right
    np.testing.assert_allclose(got, np.broadcast_to(right, got.shape), **(NEAR | near))


# -- shapes ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slant", [0.0, 35.0, 80.0])
@pytest.mark.parametrize(
    ("angle", "normalize", "facing"),
    [
        (0.0, False, 1.0),
        (0.0, True, 1.0),
        (0.53, True, 1.0),
        (0.53, False, np.pi * np.sin(SUN_HALF) ** 2),
        (9.0, False, np.pi * np.sin(np.radians(4.5)) ** 2),
        (9.0, True, 1.0),
    ],
)
def test_distant_lights(device, slant, angle, normalize, facing):
    """E = L pi sin^2 of half the angle, times the cosine; one without angle is given by its irradiance, and so are normalized ones."""
    stage = sheet.paper()
    sheet.light(stage, "DistantLight", turn=(slant, 0, 0), angle=angle, intensity=2.5, normalize=normalize)
    same(sheet.irradiance(stage, device), 2.5 * facing * np.cos(np.radians(slant)))


@pytest.mark.parametrize("distance", [0.25, 1.0, 4.0, 16.0])
def test_the_inverse_square_of_a_point(device, distance):
    """Right below it, and beside."""
    stage = sheet.paper()
    sheet.point(stage, (0.3, -0.2, distance), 3.0)
    same(sheet.irradiance(stage, device), 3.0 * sheet.from_point((0.3, -0.2, distance), sheet.places()))


@pytest.mark.parametrize("normalize", [False, True])
def test_a_point_is_as_bright_as_its_sphere_from_afar(device, normalize):
    stage, other = sheet.paper(), sheet.paper()
    for made, is_point in ((stage, True), (other, False)):
        sheet.light(made, "SphereLight", place=(0, 1, 9), radius=0.1, treatAsPoint=is_point, normalize=normalize, intensity=7.0)
    np.testing.assert_allclose(sheet.irradiance(stage, device), sheet.irradiance(other, device), rtol=1e-3)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(("place", "radius"), [((0, 0, 2), 0.5), ((0.7, -0.4, 1), 0.9), ((30, 0, 40), 10.0)])
def test_spheres(device, place, radius, normalize):
    stage = sheet.paper()
    sheet.light(stage, "SphereLight", place=place, radius=float(radius), intensity=4.0, normalize=normalize)
    radiance = 4.0 / (4 * np.pi * radius**2) if normalize else 4.0
    same(sheet.irradiance(stage, device), radiance * sheet.from_sphere(place, radius, sheet.places()))


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(("place", "radius", "near"), [((0, 0, 2), 0.5, 1e-4), ((0.7, -0.4, 0.2), 0.9, 0.01), ((3, 0, 0.5), 0.5, 1e-4)])
def test_disks(device, place, radius, near, normalize):
    """Close below its rim a disk counts as a polygon of as much area, which is a little off."""
    stage = sheet.paper()
    sheet.light(stage, "DiskLight", place=place, radius=float(radius), intensity=4.0, normalize=normalize)
    radiance = 4.0 / (np.pi * radius**2) if normalize else 4.0
    same(sheet.irradiance(stage, device), radiance * sheet.from_disk(place, radius, sheet.places()), rtol=near)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(("place", "turn"), [((0, 0, 2), 0.0), ((0.7, -0.4, 0.3), 0.0), ((2.5, 0, 2), 60.0)])
def test_rects(device, place, turn, normalize):
    """The last one is turned about y, to face the paper."""
    stage = sheet.paper()
    sheet.light(stage, "RectLight", place=place, turn=(0, turn, 0), width=1.2, height=0.6, intensity=4.0, normalize=normalize)
    x = np.array([np.cos(np.radians(turn)), 0, -np.sin(np.radians(turn))]) * 0.6
    y = np.array([0, 0.3, 0])
    corners = [np.array(place) + a * x + b * y for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    radiance = 4.0 / 0.72 if normalize else 4.0
    same(sheet.irradiance(stage, device), radiance * sheet.from_polygon(corners, sheet.places()))


def test_lights_with_one_side_shine_down(device):
    for kind in ("DiskLight", "RectLight"):
        stage = sheet.paper()
        sheet.light(stage, kind, place=(0, 0, 1), turn=(180, 0, 0))
        same(sheet.irradiance(stage, device), 0.0)


def test_cylinders_are_the_sum_over_their_pieces(device, light_twin):
    stage = sheet.paper()
    sheet.light(stage, "CylinderLight", place=(0.2, 0.1, 1.0), length=1.5, radius=0.2, intensity=2.0)
    got = sheet.irradiance(stage, device)[..., 0]
    for row, column in ((3, 5), (16, 16), (30, 2), (8, 29)):
        way = np.array([0.2, 0.1, 1.0]) - sheet.places()[row, column]
        right = light_twin.irradiance(LightKind.CYLINDER, (1.5, 0.2), np.eye(3), way, np.array([0, 0, 1.0]))
        assert got[row, column] == pytest.approx(2.0 * right, rel=2e-3)


@pytest.mark.parametrize("kind", ["DomeLight", "DomeLight_1"])
def test_a_constant_dome(device, kind):
    """Radiance = base * L, whichever way the paper lies."""
    stage = sheet.paper()
    sheet.light(stage, kind, intensity=3.0, color=(1.0, 0.5, 0.25), turn=(20, 30, 40))
    same(sheet.irradiance(stage, device), np.pi * 3.0 * np.array([1.0, 0.5, 0.25]))
    UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/paper")).SetRotate((50, 20, 0))
    got = sheet.look(stage, device, aovs=("color", "primId"))
    assert (got["primId"] == got.prim_paths.index("/paper")).all()
    same(got["color"][..., :3] * np.pi / sheet.BASE, np.pi * 3.0 * np.array([1.0, 0.5, 0.25]))


def test_units_and_scale(device):
    """In centimetres the same picture, with lengths a hundred times as large, for radiances are the same in all units."""
    metres, centimetres = sheet.paper(), sheet.paper()
    sheet.light(metres, "SphereLight", place=(0.3, 0, 1), radius=0.2)
    UsdGeom.SetStageMetersPerUnit(centimetres, 0.01)
    for path in ("/paper", "/c"):
        UsdGeom.XformCommonAPI(centimetres.GetPrimAtPath(path)).SetScale((100, 100, 100))
    UsdGeom.XformCommonAPI(centimetres.GetPrimAtPath("/c")).SetTranslate((0, 0, 500))
    sheet.light(centimetres, "SphereLight", place=(30, 0, 100), radius=20.0)
    np.testing.assert_allclose(sheet.irradiance(metres, device), sheet.irradiance(centimetres, device), rtol=1e-5)


# -- brightness and colour ---------------------------------------------------------------------------------------------------


def test_exposure_of_light_and_of_camera(device):
    stage = sheet.paper()
    sheet.point(stage, (0, 0, 2), 3.0, exposure=2.0)
    right = 4.0 * 3.0 * sheet.from_point((0, 0, 2), sheet.places())
    same(sheet.irradiance(stage, device), right)
    UsdGeom.Camera.Get(stage, "/c").CreateExposureAttr(-1.0)
    same(sheet.irradiance(stage, device), right / 2)


def test_colour_and_temperature(device):
    stage = sheet.paper()
    lamp = sheet.light(stage, "DistantLight", angle=0.0, intensity=2.0, color=(1.0, 0.5, 0.25))
    same(sheet.irradiance(stage, device), 2.0 * np.array([1.0, 0.5, 0.25]))
    UsdLux.LightAPI(lamp).CreateColorTemperatureAttr(3000.0)
    same(sheet.irradiance(stage, device), 2.0 * np.array([1.0, 0.5, 0.25]))
    UsdLux.LightAPI(lamp).CreateEnableColorTemperatureAttr(True)
    kelvin = np.array(UsdLux.BlackbodyTemperatureAsRgb(3000.0))
    same(sheet.irradiance(stage, device), 2.0 * np.array([1.0, 0.5, 0.25]) * kelvin)


def test_lights_add_up(device):
    stage = sheet.paper()
    sheet.point(stage, (0, 0, 2), 3.0, "/a")
    sheet.light(stage, "DistantLight", "/b", angle=0.0, intensity=0.5)
    sheet.light(stage, "DomeLight", "/d", intensity=0.25)
    same(sheet.irradiance(stage, device), 3.0 * sheet.from_point((0, 0, 2), sheet.places()) + 0.5 + 0.25 * np.pi)


@pytest.mark.parametrize("softness", [0.0, 0.5, 1.0])
def test_edges_of_a_spots_cone(device, softness):
    """Full within angle (1 - softness), nothing beyond the angle, smoothstep of the angle between; hard edges to the pixel."""
    stage = sheet.paper()
    place, end = (0.1, -0.2, 1.0), np.radians(32.0)
    sheet.point(stage, place, shaping__cone__angle=32.0, shaping__cone__softness=softness)
    way = np.array(place) - sheet.places()
    off = np.arccos(way[..., 2] / np.linalg.norm(way, axis=-1))
    begin = end * (1 - softness)
    t = np.clip((off - begin) / max(end - begin, 1e-12), 0, 1)
    sure = np.abs(off - end) > 1e-4
    got, right = sheet.irradiance(stage, device), sheet.from_point(place, sheet.places()) * (1 - t * t * (3 - 2 * t))
    assert 0.1 < (right > 0).mean() < 0.9
    np.testing.assert_allclose(got[sure], np.repeat(right[sure][:, None], 3, axis=1), rtol=5e-4, atol=1e-5)


def test_focus_of_a_spot(device):
    """cos^focus off the axis, the rest tinted."""
    stage = sheet.paper()
    sheet.point(stage, (0, 0, 1), shaping__focus=4.0, shaping__focusTint=(0.5, 0.0, 0.0))
    way = np.array([0, 0, 1.0]) - sheet.places()
    left = (way[..., 2] / np.linalg.norm(way, axis=-1)) ** 4
    right = sheet.from_point((0, 0, 1), sheet.places())[..., None] * np.stack([left + 0.5 * (1 - left), left, left], axis=-1)
    np.testing.assert_allclose(sheet.irradiance(stage, device), right, rtol=1e-4)


@pytest.mark.parametrize("kind", ["point", "RectLight", "DomeLight"])
def test_diffuse_and_specular_multipliers(device, kind):
    """Of a glossy sheet the two parts: each alone, and together with weights of their own."""

    def shown(diffuse, specular):
        stage = sheet.paper()
        sheet.matt(stage, stage.GetPrimAtPath("/paper"), ior=1.5, roughness=0.4)
        if kind == "point":
            sheet.point(stage, (0.2, 0, 1), diffuse=diffuse, specular=specular)
        else:
            sheet.light(stage, kind, place=(0.2, 0, 1), diffuse=diffuse, specular=specular)
        return sheet.look(stage, device)["color"][..., :3]

    matt, glint = shown(1.0, 0.0), shown(0.0, 1.0)
    assert matt.min() > 0.0 and glint.max() > 0.0
    if kind != "DomeLight":
        assert np.ptp(matt / sheet.BASE, axis=-1).max() < 1e-5 and np.ptp(glint, axis=-1).max() < 1e-5  # coloured by the base, and white
    np.testing.assert_allclose(shown(0.25, 3.0), 0.25 * matt + 3.0 * glint, rtol=1e-4, atol=1e-6)
    assert not shown(0.0, 0.0).any()


def test_a_glossy_sheet_is_the_twins(device, surface_twin):
    stage = sheet.paper()
    sheet.matt(stage, stage.GetPrimAtPath("/paper"), ior=1.5, roughness=0.3, clearcoat=0.8, clearcoatRoughness=0.2)
    place = (0.6, 0.3, 1.2)
    sheet.point(stage, place, 2.0)
    way = np.array(place) - sheet.places()
    distance = np.linalg.norm(way, axis=-1, keepdims=True)
    l, v = way / distance, np.array([0, 0, 1.0])
    h = surface_twin.halfway(l, v)
    cosines = (l[..., 2], np.ones_like(l[..., 2]), h[..., 2], h[..., 2])
    right = 2.0 / distance**2 * surface_twin.reflected(*surface_twin.lobes(sheet.BASE), 0.3, 0.8, 0.2, *cosines)
    np.testing.assert_allclose(sheet.look(stage, device)["color"][..., :3], right, rtol=3e-4, atol=1e-5)


# -- which lights light what ---------------------------------------------------------------------------------------------------


def test_light_from_behind_gives_nothing(device):
    """The side that is seen is the side that is lit: a light below the sheet does nothing, turned over or not."""
    for turn in (0.0, 180.0):
        stage = sheet.paper()
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/paper")).SetRotate((turn, 0, 0))
        sheet.point(stage, (0, 0, -1), 3.0, "/a")
        sheet.light(stage, "SphereLight", "/b", place=(0, 0, -1))
        sheet.light(stage, "DistantLight", "/d", turn=(180, 0, 0))
        same(sheet.irradiance(stage, device), 0.0)
        sheet.point(stage, (0, 0, 1), 3.0, "/e")
        same(sheet.irradiance(stage, device), 3.0 * sheet.from_point((0, 0, 1), sheet.places()))


def test_light_linking(device):
    """Two half sheets: one lamp is linked to the left, the other excludes it."""
    stage = sheet.empty()
    sheet.quad(stage, "/left", high=(0.0, 20.0))
    sheet.quad(stage, "/right", low=(0.0, -20.0))
    one = sheet.light(stage, "DistantLight", "/one", angle=0.0, intensity=1.0)
    other = sheet.light(stage, "DistantLight", "/other", angle=0.0, intensity=4.0)
    links = UsdLux.LightAPI(one).GetLightLinkCollectionAPI()
    links.CreateIncludeRootAttr(False)
    links.IncludePath("/left")
    UsdLux.LightAPI(other).GetLightLinkCollectionAPI().ExcludePath("/left")
    right = np.where(sheet.places()[..., 0] < 0, 1.0, 4.0)
    for integrator in ("fast", "preview"):
        same(sheet.irradiance(stage, device, integrator), right)


def test_the_camera_lights_what_nothing_else_does(device):
    """White paper that faces it is white; not where the stage has a light, however weak, and not where it is told not to."""
    stage = sheet.paper()
    for integrator in ("fast", "preview"):
        same(sheet.irradiance(stage, device, integrator), np.pi)
        assert not sheet.look(stage, device, integrator, settings={"headlight": False})["color"][..., :3].any()
    sheet.light(stage, "DistantLight", angle=0.0, intensity=0.25)
    for integrator in ("fast", "preview"):
        same(sheet.irradiance(stage, device, integrator), 0.25)
        same(sheet.irradiance(stage, device, integrator, settings={"headlight": False}), 0.25)
    assert (sheet.look(stage, device, "unlit")["color"] == [*np.float32(sheet.BASE), 1.0]).all()


def test_mesh_lights_which_light_nothing_leave_the_cameras_light(device):
    stage = sheet.paper()
    lamp = sheet.quad(stage, "/lamp", (2.0, 2.0), (3.0, 3.0), 1.0)
    UsdLux.MeshLightAPI.Apply(lamp)
    for integrator in ("fast", "preview"):
        frame = sheet.look(stage, device, integrator)
        same(frame["color"][..., :3] * np.pi / sheet.BASE, np.pi)
        assert [(item.path, item.code) for item in frame.diagnostics] == [("/lamp", "light-type")]
    sheet.light(stage, "DistantLight", angle=0.0, intensity=0.25)
    for integrator in ("fast", "preview"):
        same(sheet.irradiance(stage, device, integrator), 0.25)


def test_invisible_lights_are_off(device):
    stage = sheet.paper()
    sheet.light(stage, "DistantLight", "/one", angle=0.0, intensity=0.5)
    UsdGeom.Scope.Define(stage, "/lamps")
    lamp = sheet.light(stage, "DistantLight", "/lamps/other", angle=0.0, intensity=4.0)
    same(sheet.irradiance(stage, device), 4.5)
    with hdwarp.Scene(stage, device=device) as scene:
        for hidden in (lamp, lamp.GetParent()):
            UsdGeom.Imageable(hidden).MakeInvisible()
            scene.sync()
            for integrator in ("fast", "preview"):
                same(sheet.irradiance(scene, device, integrator), 0.5)
            UsdGeom.Imageable(hidden).MakeVisible()
            UsdGeom.Imageable(lamp).MakeVisible()
            scene.sync()
            same(sheet.irradiance(scene, device), 4.5)


def test_direct_and_emission_add_up_to_colour(device):
    stage = sheet.paper()
    surface = UsdShade.Shader.Get(stage, "/matt/surface")
    surface.CreateInput("emissiveColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(0.25, 0.0, 2.0))
    sheet.point(stage, (0, 0, 2), 3.0)
    UsdGeom.Camera.Get(stage, "/c").CreateExposureAttr(1.0)
    frame = sheet.look(stage, device, aovs=("color", "direct", "emission", "alpha", "roughness"))
    right = 2.0 * sheet.BASE / np.pi * 3.0 * sheet.from_point((0, 0, 2), sheet.places())[..., None]
    np.testing.assert_allclose(frame["direct"], right, rtol=1e-4)
    np.testing.assert_allclose(frame["emission"], np.broadcast_to([0.5, 0.0, 4.0], right.shape), rtol=1e-6)
    np.testing.assert_allclose(frame["color"][..., :3], frame["direct"] + frame["emission"], rtol=1e-6)
    assert (frame["alpha"] == 1.0).all() and (frame["roughness"] == 0.5).all()


# -- worlds and bodies -----------------------------------------------------------------------------------------------------------


def environment(with_light: bool = True) -> Usd.Stage:
    """/env with a sheet, a camera above it and a lamp on the body /env/arm, to replicate."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.Xform.Define(stage, "/env")
    sheet.quad(stage, "/env/paper", low=(-1.5, -1.5), high=(1.5, 1.5))
    sheet.camera(stage, "/env/c")
    arm = UsdGeom.Xform.Define(stage, "/env/arm")
    UsdPhysics.RigidBodyAPI.Apply(arm.GetPrim())
    UsdGeom.XformCommonAPI(arm).SetTranslate((0, 0, 1))
    if with_light:
        sheet.point(stage, (0, 0, 0.5), 2.0, "/env/arm/lamp")
    return stage


def views(sensor, state) -> np.ndarray:
    out = sensor.allocate(["color"])
    sensor.update(state, out)
    return out["color"].numpy()[..., :3].astype(np.float64) * np.pi / sheet.BASE


@pytest.mark.parametrize("integrator", ["fast", "preview"])
def test_lights_of_worlds_follow_their_bodies(device, integrator):
    """Each world is lit by its own lamp, where its body has it, also far from the origin; the others' reach no further than it."""
    stage = environment()
    worlds = [hdwarp.replicate("/env", count=3, spacing=(500.0, 500.0))]
    settings = hdwarp.RenderSettings(integrator=integrator)
    with hdwarp.Scene(stage, device=device, worlds=worlds) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/c", resolution=(sheet.SIZE, sheet.SIZE), settings=settings)
        state = scene.state()
        for image in views(sensor, state):
            same(image, 2.0 * sheet.from_point((0, 0, 1.5), sheet.places()))
        poses = state.body_q.numpy()
        poses[:, :3] = [(0.5, 0, 1), (0, -0.5, 2), (0, 0, 0.25)]
        poses[2, 3:] = (np.sin(np.pi / 4), 0, 0, np.cos(np.pi / 4))  # a quarter about x: the lamp lies 0.5 towards -y
        state.body_q.assign(poses)
        images = views(sensor, state)
        for image, place in zip(images, [(0.5, 0, 1.5), (0, -0.5, 2.5), (0, -0.5, 0.25)], strict=True):
            same(image, 2.0 * sheet.from_point(place, sheet.places()), rtol=1e-3)


def test_a_light_of_all_worlds_and_one_of_each(device):
    stage = environment()
    sheet.light(stage, "DistantLight", "/sun", angle=0.0, intensity=0.25)
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate("/env", count=2, spacing=(9.0, 9.0))]) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/c", resolution=(sheet.SIZE, sheet.SIZE))
        for image in views(sensor, scene.state()):
            same(image, 0.25 + 2.0 * sheet.from_point((0, 0, 1.5), sheet.places()))


@pytest.mark.parametrize("integrator", ["fast", "preview"])
def test_a_lamp_outside_of_the_worlds_is_as_near_to_each_as_it_is(device, integrator):
    """Worlds on a line, and a lamp that all see: from each it is elsewhere."""
    stage = environment(with_light=False)
    sheet.point(stage, (0.5, 0.25, 2.0), 3.0, "/lamp")
    settings = hdwarp.RenderSettings(integrator=integrator)
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate("/env", count=3, spacing=(4.0, 4.0))]) as scene:
        origins = scene.worlds.origin.copy()
        sensor = hdwarp.SensorCamera(scene, cameras="*/c", resolution=(sheet.SIZE, sheet.SIZE), settings=settings)
        images = views(sensor, scene.state())
    assert np.linalg.norm(origins - origins[0], axis=1).max() > 3.0
    for image, origin in zip(images, origins, strict=True):
        same(image, 3.0 * sheet.from_point(np.array([0.5, 0.25, 2.0]) - origin, sheet.places()), rtol=2e-4)


@pytest.mark.parametrize("integrator", ["fast", "preview"])
def test_views_of_worlds_that_are_not_there_see_nothing(device, integrator):
    settings = hdwarp.RenderSettings(integrator=integrator)
    with hdwarp.Scene(environment(), device=device, worlds=[hdwarp.replicate("/env", count=3, spacing=(4.0, 4.0))]) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="*/c", resolution=(sheet.SIZE, sheet.SIZE), settings=settings)
        out = sensor.allocate(["color"])
        sensor.update(scene.state(), out, world_indices=wp.array([2, 100_000_000, -5], dtype=wp.int32, device=device))
    same(out["color"].numpy()[0, ..., :3] * np.pi / sheet.BASE, 2.0 * sheet.from_point((0, 0, 1.5), sheet.places()))
    assert not out["color"].numpy()[1:].any()


def test_worlds_without_lights_have_the_cameras(device):
    """Worlds that differ: one has a lamp, the other none."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    for k in range(2):
        UsdGeom.Xform.Define(stage, f"/env_{k}")
        sheet.quad(stage, f"/env_{k}/paper", low=(-1.5, -1.5), high=(1.5, 1.5))
        sheet.camera(stage, f"/env_{k}/c")
    sheet.point(stage, (0, 0, 2), 2.0, "/env_1/lamp")
    for integrator in ("fast", "preview"):
        settings = hdwarp.RenderSettings(integrator=integrator)
        with hdwarp.Scene(stage, device=device, worlds=[hdwarp.authored_worlds("/env_*")]) as scene:
            sensor = hdwarp.SensorCamera(scene, cameras="*/c", resolution=(sheet.SIZE, sheet.SIZE), settings=settings)
            bare, lit = views(sensor, scene.state())
        same(bare, np.pi)
        same(lit, 2.0 * sheet.from_point((0, 0, 2), sheet.places()))
