"""UsdLod items by camera: what the heuristics of USD choose, by distance and by size, for each camera of a scene."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom

import hdwarp

UsdLod = pytest.importorskip("pxr.UsdLod")

NAMES = "abcd"


def lod_stage(distances=(30.0,), thresholds=(10.0, 50.0, 100.0), kind="distance", default=0, items=4) -> Usd.Stage:
    """Balls a, b, c, d of radius 1 at the origin, the items of </l>; cameras /cam0 ... on +z, looking at them, 90 degrees wide."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    root = UsdGeom.Xform.Define(stage, "/l").GetPrim()
    api = UsdLod.RootAPI.Apply(root)
    api.CreateLodDefaultIndexAttr(default)
    for name in NAMES[:items]:
        UsdGeom.Sphere.Define(stage, f"/l/{name}")
    heuristic = (UsdLod.DistanceHeuristic if kind == "distance" else UsdLod.ScreenSizeHeuristic).Define(stage, "/h")
    heuristic.CreateLodDomainAttr("imaging")
    heuristic.CreateThresholdsAttr(list(thresholds))
    api.CreateLodHeuristicsRel().SetTargets(["/h"])
    for k, distance in enumerate(distances):
        camera = UsdGeom.Camera.Define(stage, f"/cam{k}")
        camera.CreateFocalLengthAttr(10.0)
        camera.CreateHorizontalApertureAttr(20.0)
        camera.CreateVerticalApertureAttr(20.0)
        camera.AddTranslateOp().Set(Gf.Vec3d(0, 0, distance))
    return stage


def seen(frame) -> str:
    """Names of the items in a picture."""
    return "".join(sorted(frame.prim_paths[k][-1] for k in np.unique(frame["primId"]) if k >= 0))


def look(stage, camera="/cam0", **options):
    return hdwarp.render(stage, camera, resolution=(301, 301), aovs=["primId"], **options)


@pytest.mark.parametrize(("distance", "item"), [(9.99, "a"), (10.0, "b"), (49.0, "b"), (50.0, "c"), (120.0, "d")])
def test_by_distance(distance, item, device):
    """Thresholds 10, 50, 100, each the first distance of the next item."""
    assert seen(look(lod_stage([distance]), device=device)) == item


@pytest.mark.parametrize(("distance", "item"), [(2.0, "a"), (4.0, "b"), (5.0, "c"), (10.0, "d")])
def test_by_size_on_the_screen(distance, item, device):
    """The ball around a box of half size 1 covers 3 pi / (4 z^2) of a square 90-degree window: 0.589, 0.147, 0.094, 0.024."""
    share = 3 * math.pi / (4 * distance**2)
    assert item == NAMES[sum(share <= threshold for threshold in (0.25, 0.1, 0.025))]
    assert seen(look(lod_stage([distance], (0.25, 0.1, 0.025), "size"), device=device)) == item


def test_a_blend_is_the_nearer_item_and_beyond_the_last_is_the_last(device):
    stage = lod_stage([10.4, 10.6, 200.0], items=3)
    UsdLod.DistanceHeuristic(stage.GetPrimAtPath("/h")).CreateBlendThresholdsAttr([11.0, 55.0, 110.0])
    assert [seen(look(stage, f"/cam{k}", device=device)) for k in range(3)] == ["a", "b", "c"]


def test_each_camera_of_one_scene_has_its_own(device):
    """The same scene, rendered and through one sensor; a view without camera shows the default."""
    stage = lod_stage([5.0, 20.0, 60.0, 200.0], default=2)
    scene = hdwarp.Scene(stage, device=device)
    assert [seen(look(scene, f"/cam{k}")) for k in range(4)] == list(NAMES)
    sensor = hdwarp.SensorCamera(scene, cameras="/cam*", resolution=(301, 301))
    out = sensor.allocate(["primId"])
    sensor.update(None, out)
    paths = scene.index.prim_paths
    assert ["".join(paths[k][-1] for k in np.unique(ids) if k >= 0) for ids in out["primId"].numpy()] == list(NAMES)
    far = hdwarp.SensorCamera(scene, cameras="/cam3", resolution=(301, 301), exclude="/l/d")
    out = far.allocate(["primId"])
    far.update(None, out)
    assert (out["primId"].numpy() < 0).all()
    unbound = hdwarp.SensorCamera(scene, resolution=(4, 4))
    rays = np.array([[0, 0, 3.0], [0, 0, -1.0]]).reshape(1, 1, 1, 2, 3) * np.ones((4, 4, 1, 1, 1))
    out = unbound.allocate(["primId"], view_count=1)
    import warp as wp

    unbound.update(
        None,
        out,
        camera_transforms=wp.array([[0, 0, 0, 0, 0, 0, 1]], dtype=wp.transformf, device=device),
        camera_rays=rays,
        world_indices=wp.zeros(1, dtype=wp.int32, device=device),
    )
    assert {paths[k] for k in np.unique(out["primId"].numpy())} == {"/l/c"}


def test_edits_and_time_are_followed(device):
    """A camera that moves, thresholds that change, an override that comes: the scene shows what a fresh reading would."""
    stage = lod_stage([20.0])
    scene = hdwarp.Scene(stage, device=device, time=0.0)
    sensor = hdwarp.SensorCamera(scene, cameras="/cam0", resolution=(301, 301))
    out = sensor.allocate(["primId"])
    move = UsdGeom.Camera.Get(stage, "/cam0").GetTranslateOp()
    override = UsdLod.OverrideAPI.Apply(stage.GetPrimAtPath("/l"))
    steps = [
        (lambda: None, "b"),
        (lambda: move.Set(Gf.Vec3d(0, 0, 60)), "c"),
        (lambda: UsdLod.DistanceHeuristic(stage.GetPrimAtPath("/h")).GetThresholdsAttr().Set([10.0, 20.0, 40.0]), "d"),
        (lambda: override.CreateLodOverrideModeAttr("indexedLOD"), "a"),
        (lambda: override.GetLodOverrideModeAttr().Set("noOverride"), "d"),
        (lambda: stage.GetPrimAtPath("/l").GetRelationship("lod:heuristics").ClearTargets(True), "a"),
    ]
    for step, item in steps:
        step()
        scene.sync()
        sensor.update(None, out)
        assert seen(look(scene)) == seen(look(stage, device=device)) == item
        assert {scene.index.prim_paths[k][-1] for k in np.unique(out["primId"].numpy()) if k >= 0} == {item}
    stage.GetPrimAtPath("/l").GetRelationship("lod:heuristics").SetTargets(["/h"])
    move.Set(Gf.Vec3d(0, 0, 15), 1.0)
    move.Set(Gf.Vec3d(0, 0, 30), 2.0)
    for time, item in ((1.0, "b"), (2.0, "c")):
        scene.sync(time)
        assert seen(look(scene)) == seen(look(stage, time=time, device=device)) == item


def test_roots_in_items_of_roots_and_in_native_instances(device):
    """</l/a> is a root itself, so near that its own first item is drawn; instances at different distances differ."""
    stage = lod_stage([5.0])
    inner = stage.DefinePrim("/l/a", "Xform")
    UsdLod.RootAPI.Apply(inner).CreateLodHeuristicsRel().SetTargets(["/h"])
    for name in "xy":
        UsdGeom.Cube.Define(stage, f"/l/a/{name}").CreateSizeAttr(1.0)
    assert seen(look(stage, device=device)) == "x"
    stage = lod_stage([5.0])
    stage.GetPrimAtPath("/l").SetSpecifier(Sdf.SpecifierClass)
    for name, z in (("i", 0.0), ("j", -20.0)):
        prim = stage.DefinePrim(f"/{name}", "Xform")
        prim.GetReferences().AddInternalReference("/l")
        prim.SetInstanceable(True)
        UsdGeom.XformCommonAPI(prim).SetTranslate((0 if name == "i" else 8, 0, z))
    frame = look(stage, device=device)
    assert {frame.prim_paths[k] for k in np.unique(frame["primId"]) if k >= 0} == {"/i/a", "/j/b"}


def test_what_a_point_instancer_places_has_the_default_and_says_so(device):
    stage = lod_stage([60.0], default=1)
    instancer = UsdGeom.PointInstancer.Define(stage, "/many")
    instancer.CreateProtoIndicesAttr([0, 0])
    instancer.CreatePositionsAttr([Gf.Vec3f(-4, 0, 0), Gf.Vec3f(4, 0, 0)])
    instancer.CreatePrototypesRel().SetTargets(["/l"])
    frame = look(stage, device=device)
    assert seen(frame) == "bc"
    assert any(item.code == "lod-heuristics" and "point instancer" in item.message for item in frame.diagnostics)


def test_colliders_of_all_items_are_there(device):
    """A sensor of colliders sees them whatever is drawn; one of everything sees them beside what is drawn."""
    stage = lod_stage([20.0])
    stage.GetPrimAtPath("/l/d").ApplyAPI("PhysicsCollisionAPI")
    UsdGeom.Sphere(stage.GetPrimAtPath("/l/d")).CreateRadiusAttr(2.0)
    scene = hdwarp.Scene(stage, device=device)
    for geometry, expected in (("visual", "b"), ("collision", "d"), ("all", "d")):
        sensor = hdwarp.SensorCamera(scene, cameras="/cam0", resolution=(301, 301), geometry=geometry)
        out = sensor.allocate(["primId"])
        sensor.update(None, out)
        assert {scene.index.prim_paths[k][-1] for k in np.unique(out["primId"].numpy()) if k >= 0} == set(expected)
    UsdGeom.Sphere(stage.GetPrimAtPath("/l/d")).GetRadiusAttr().Set(0.5)
    scene.sync()
    sensor.update(None, out)
    assert {scene.index.prim_paths[k][-1] for k in np.unique(out["primId"].numpy()) if k >= 0} == {"b"}


@pytest.mark.parametrize(
    ("said", "domain", "told"), [("/none", "imaging", "does not exist"), ("/l/b", "imaging", "not known"), ("/h", "", "lod:domain")]
)
def test_heuristics_that_cannot_be_asked_are_named(said, domain, told, device):
    stage = lod_stage([60.0], default=1)
    stage.GetPrimAtPath("/l").GetRelationship("lod:heuristics").SetTargets([said])
    UsdLod.DistanceHeuristic(stage.GetPrimAtPath("/h")).GetLodDomainAttr().Set(domain)
    frame = look(stage, device=device)
    assert seen(frame) == "b"
    (item,) = [item for item in frame.diagnostics if item.code == "lod-heuristics"]
    assert item.path == "/l" and told in item.message


def test_heuristics_of_other_domains_are_for_others(device):
    stage = lod_stage([60.0], default=1)
    UsdLod.DistanceHeuristic(stage.GetPrimAtPath("/h")).GetLodDomainAttr().Set("audio")
    frame = look(stage, device=device)
    assert seen(frame) == "b" and not [item for item in frame.diagnostics if item.code.startswith("lod")]


def test_items_authored_invisible_are_seen_where_they_are_chosen(device):
    """As USD advises for renderers that know no LOD; by camera, in a scene that follows edits."""
    stage = lod_stage([5.0, 20.0, 60.0, 200.0])
    for name in NAMES[1:]:
        UsdGeom.Imageable(stage.GetPrimAtPath(f"/l/{name}")).MakeInvisible()
    scene = hdwarp.Scene(stage, device=device)
    assert [seen(look(scene, f"/cam{k}")) for k in range(4)] == list(NAMES)
    UsdGeom.Imageable(stage.GetPrimAtPath("/l/a")).MakeInvisible()
    scene.sync()
    assert [seen(look(scene, f"/cam{k}")) for k in range(2)] == ["a", "b"]
    UsdGeom.Imageable(stage.GetPrimAtPath("/l")).MakeInvisible()
    scene.sync()
    assert seen(look(scene)) == ""


def test_a_group_that_draws_nothing_is_named_until_something_is_in_it(device):
    """</l/e/h> is in item 4; a live scene knows what a fresh one does."""
    stage = lod_stage([500.0], (10.0, 50.0, 100.0, 200.0))
    UsdLod.DistanceHeuristic.Define(stage, "/l/e/h")
    scene = hdwarp.Scene(stage, device=device)
    assert seen(look(scene)) == ""
    assert [(item.path, item.code) for item in scene.diagnostics] == [("/l/e", "lod-item")]
    UsdGeom.Sphere.Define(stage, "/l/e/s")
    scene.sync()
    assert seen(look(scene)) == "s" and not list(scene.diagnostics)
