"""What a scene holds after going through time is what USD itself says of that time, and what a scene opened there holds, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, Ts, Usd, UsdGeom, UsdSkel
from tests.live import moving
from tests.live.test_live_stage import check

from hdwarp.scene import Scene

WALK = (1.0, 3.0, 5.0, 4.25, -7.0, 9.0, 12.5, 8.999, 1.0, 6.5)  # to and fro, on samples and between them, before the first, after the last


def world_from(scene: Scene, path: str) -> np.ndarray:
    """(n, 4, 4): rows of the gprims of a path as they are uploaded, in the order of their keys."""
    runs = [scene.index.gprim_rows.run(key) for key in scene.index.gprim_order if key[0] == path]
    transforms = scene.index.instances["transform"]
    return np.concatenate([np.zeros((0, 3, 4)), *(transforms[start : start + count] for start, count in runs)])


def points_of(scene: Scene, path: str) -> np.ndarray:
    return next(gprim for key, gprim in scene.index.gprims.items() if key[0] == path).mesh.points


def columns(matrix: Gf.Matrix4d) -> np.ndarray:
    return np.array(matrix).T[:3]


def usd_transform(stage: Usd.Stage, path: str, time: Usd.TimeCode) -> np.ndarray:
    return columns(UsdGeom.XformCache(time).GetLocalToWorldTransform(stage.GetPrimAtPath(path)))


def usd_instances(stage: Usd.Stage, path: str, target: int, time: float) -> np.ndarray:
    """(n, 3, 4): where USD puts the instances of a prototype, masked ones left out."""
    instancer = UsdGeom.PointInstancer.Get(stage, path)
    include, apply = UsdGeom.PointInstancer.IncludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
    placed = instancer.ComputeInstanceTransformsAtTime(Usd.TimeCode(time), Usd.TimeCode(time), include, apply)
    indices, mask = instancer.GetProtoIndicesAttr().Get(time), instancer.ComputeMaskAtTime(time)
    kept = [i for i, index in enumerate(indices) if index == target and (not mask or mask[i])]
    return np.array([columns(placed[i]) for i in kept]).reshape(-1, 3, 4)


@pytest.mark.parametrize("held", [False, True], ids=["linear", "held"])
@pytest.mark.parametrize("mover", moving.MOVERS, ids=lambda mover: mover.__name__)
def test_through_time_and_back(mover, held, device):
    stage = moving.new_stage(2)
    mover(stage)
    stage.SetInterpolationType(Usd.InterpolationTypeHeld if held else Usd.InterpolationTypeLinear)
    with Scene(stage, device=device, time=WALK[0]) as scene:
        for time in WALK:
            check(scene, time, mover.__name__)


def test_places(device):
    """Between samples a translation is mixed and a quaternion turned; outside of them both are held: USD's own XformCache says so."""
    stage = moving.new_stage()
    moving.transform(stage)
    UsdGeom.Xform.Get(stage, "/World/mover").AddRotateYOp().GetAttr().Set(90.0, 5.0)
    with Scene(stage, device=device, time=1) as scene:
        for time in WALK:
            scene.sync(time)
            assert np.array_equal(world_from(scene, "/World/mover/cube")[0], usd_transform(stage, "/World/mover/cube", time)), time
        scene.sync(3)
        assert world_from(scene, "/World/mover/cube")[0, :, 3].tolist() == [1, 0, 0]  # half way from 0 to 2
        stage.SetInterpolationType(Usd.InterpolationTypeHeld)
        scene.sync()
        assert world_from(scene, "/World/mover/cube")[0, :, 3].tolist() == [0, 0, 0]  # as at the sample before


def test_points(device):
    stage = moving.new_stage()
    moving.points(stage)
    with Scene(stage, device=device, time=1) as scene:
        for time in WALK:
            scene.sync(time)
            assert np.array_equal(points_of(scene, "/World/mover"), stage.GetAttributeAtPath("/World/mover.points").Get(time)), time


def test_default_earliest_and_numbers(device):
    """The default time has values of its own, of what has a single sample too; the earliest time is the first sample of each attribute."""
    stage = moving.new_stage(2)
    ball = UsdGeom.Sphere.Define(stage, "/World/ball")
    ball.GetRadiusAttr().Set(0.25)
    ball.GetRadiusAttr().Set(2.0, 4.0)
    cube = UsdGeom.Cube.Define(stage, "/World/cube")
    moving.sample(cube.AddTranslateOp().GetAttr(), (1, 0, 0), (2, 0, 0), (3, 0, 0))
    default, earliest = Usd.TimeCode.Default(), Usd.TimeCode.EarliestTime()
    radius = {default: 0.25}
    with Scene(stage, device=device, time=earliest) as scene:
        for time in (default, 1.0, earliest, 5.0, default, 100.0, earliest, default, -100.0):
            check(scene, time)
            assert world_from(scene, "/World/ball")[0, 0, 0] == radius.get(time, 2.0)
            assert np.array_equal(world_from(scene, "/World/cube")[0], usd_transform(stage, "/World/cube", Usd.TimeCode(time)))
            assert scene.time == (None if isinstance(time, Usd.TimeCode) else time)


def test_before_a_time(device):
    """Usd.TimeCode.PreTime: the value on the way to a time, where it jumps there."""
    stage = moving.new_stage()
    moving.visibility(stage)
    with Scene(stage, device=device, time=1) as scene:
        for time, seen in ((5.0, 0), (Usd.TimeCode.PreTime(5.0), 1), (5.0, 0), (Usd.TimeCode.PreTime(9.0), 0), (9.0, 1)):
            scene.sync(time)
            assert scene.index.instance_count == seen, time


def test_animation_that_comes_later(device):
    """What moves is looked up once; animation that edits bring, on prims and in prototypes, and take away, is known from then on."""
    stage = moving.new_stage(2)
    moving.transform(stage)
    asset = Sdf.Layer.CreateAnonymous("asset.usda")
    asset.ImportFromString('#usda 1.0\ndef Xform "asset" {\n  def Sphere "ball" {\n    double radius.timeSamples = {1: 1, 9: 3}\n  }\n}\n')
    with Scene(stage, device=device, time=1) as scene:
        scene.sync(2)
        late = UsdGeom.Sphere.Define(stage, "/World/late")  # comes with its animation
        moving.sample(late.GetRadiusAttr(), 1.0, 2.0, 3.0)
        moving.sample(UsdGeom.Cube.Get(stage, "/World/calm0").GetSizeAttr(), 1.0, 2.0, 3.0)  # was there, and did not move
        for name in ("one", "two"):
            prim = stage.DefinePrim(f"/World/{name}", "Xform")
            prim.GetReferences().AddReference(asset.identifier, "/asset")
            prim.SetInstanceable(True)
        for time in (2, 5, 9):
            check(scene, time)
            radius = 1 + (time - 1) / 4
            assert world_from(scene, "/World/late")[0, 0, 0] == pytest.approx(radius)
            assert world_from(scene, "/World/calm0")[0, 0, 0] == pytest.approx(radius / 2)
            assert world_from(scene, "/World/two/ball")[0, 0, 0] == pytest.approx(radius)
        asset.SetTimeSample("/asset/ball.radius", 9.0, 5.0)
        late.GetRadiusAttr().Clear()
        stage.RemovePrim("/World/mover")
        stage.RemovePrim("/World/one")
        for time in (9, 5, 1):
            done = check(scene, time)
            assert world_from(scene, "/World/two/ball")[0, 0, 0] == pytest.approx(1 + (time - 1) / 2)
        assert done.prims_read == 3  # calm0, and the instance with its ball


def test_splines(device):
    """A stage that has splines and no time samples moves all the same."""
    stage = moving.new_stage(2)
    ball = UsdGeom.Sphere.Define(stage, "/World/ball")
    spline = Ts.Spline()
    for time, value in ((1.0, 1.0), (5.0, 3.0)):
        knot = Ts.Knot()
        knot.SetTime(time)
        knot.SetValue(value)
        knot.SetNextInterpolation(Ts.InterpLinear)
        spline.SetKnot(knot)
    ball.GetRadiusAttr().SetSpline(spline)
    with Scene(stage, device=device, time=1) as scene:
        for time, radius in ((1, 1.0), (2, 1.5), (5, 3.0), (9, 3.0), (0, 1.0)):
            check(scene, time)
            assert world_from(scene, "/World/ball")[0, 0, 0] == pytest.approx(radius)


def test_velocities(device):
    """Positions 0 at time 1 and 100 at 2, 24 a second at 24 time codes a second: 0.5 at 1.5. Without velocities: half way, 50."""
    stage = moving.new_stage()
    stage.SetTimeCodesPerSecond(24.0)
    moving.new_instancer(stage)
    instancer = UsdGeom.PointInstancer.Get(stage, "/World/mover")
    instancer.GetProtoIndicesAttr().Set([0])
    instancer.GetPositionsAttr().Clear()
    for time, x in ((1.0, 0.0), (2.0, 100.0)):
        instancer.GetPositionsAttr().Set([(x, 0, 0)], time)
        instancer.CreateVelocitiesAttr().Set([(24.0, 0, 0)], time)
    cube = "/World/mover/protos/cube"
    with Scene(stage, device=device, time=1) as scene:
        check(scene, 1.5)
        assert world_from(scene, cube)[0, 0, 3] == pytest.approx(0.5)
        instancer.GetVelocitiesAttr().Block()
        check(scene, 1.5)
        assert world_from(scene, cube)[0, 0, 3] == pytest.approx(50.0)
        instancer.GetVelocitiesAttr().Clear()
        for time in (1.0, 2.0):
            instancer.GetVelocitiesAttr().Set([(24.0, 0, 0)], time)
        check(scene, 3.0)
        assert world_from(scene, cube)[0, 0, 3] == pytest.approx(101.0)  # on from the last sample
        stage.SetTimeCodesPerSecond(48.0)
        check(scene, 3.0)
        assert world_from(scene, cube)[0, 0, 3] == pytest.approx(100.5)
        check(scene, 1.25)
        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/mover/protos/cube")).SetScale((2, 2, 2))
        check(scene, 1.25)
        assert np.diag(world_from(scene, cube)[0, :, :3]).tolist() == [0.8, 0.8, 0.8]  # size 0.8 of an edge-2 cube, twice


@pytest.mark.parametrize("mover", [moving.instances, moving.instance_rates, moving.instance_ids, moving.instance_kinds])
def test_instances(mover, device):
    stage = moving.new_stage()
    mover(stage)
    size = np.diag([0.4, 0.4, 0.4, 1.0])  # a cube of edge 0.8 is a unit cube (edge 2) at this scale; so is the ball below
    with Scene(stage, device=device, time=1) as scene:
        for time in WALK:
            scene.sync(time)
            for target, (name, scale) in enumerate((("cube", size), ("ball", np.diag([0.5, 0.5, 0.5, 1.0])))):
                expected = usd_instances(stage, "/World/mover", target, time) @ scale
                assert np.allclose(world_from(scene, f"/World/mover/protos/{name}"), expected, atol=1e-12, rtol=0), (name, time)


def test_hidden_ids(device):
    """Of ids 0..3 the second is inactive and the third invisible; of ids 10..13 invisible 12 is the third, and inactive 1 none at all."""
    stage = moving.new_stage()
    instancer = moving.new_instancer(stage)
    instancer.CreateInvisibleIdsAttr([2])
    instancer.DeactivateId(1)
    with Scene(stage, device=device, time=1) as scene:
        assert scene.index.instance_count == 2
        assert world_from(scene, "/World/mover/protos/cube")[:, 0, 3].tolist() == [-3.0]
        assert world_from(scene, "/World/mover/protos/ball")[:, 0, 3].tolist() == [3.0]
        instancer.CreateIdsAttr([10, 11, 12, 13])
        instancer.GetInvisibleIdsAttr().Set([12])
        check(scene, 1)
        assert world_from(scene, "/World/mover/protos/cube")[:, 0, 3].tolist() == [-3.0]
        assert world_from(scene, "/World/mover/protos/ball")[:, 0, 3].tolist() == [-1.0, 3.0]


@pytest.mark.parametrize("mover", [moving.joints, moving.blend_shapes])
def test_skinned_points(mover, device):
    """The points are those that UsdSkel bakes into the stage at each time."""
    stage = moving.new_stage()
    mover(stage)
    baked = Usd.Stage.Open(stage.Flatten())
    UsdSkel.BakeSkinning(UsdSkel.Root.Get(baked, "/World/rig"), Gf.Interval(1.0, 9.0))
    expected = baked.GetAttributeAtPath("/World/rig/sheet.points")
    with Scene(stage, device=device, time=1) as scene:
        for time in (1.0, 9.0, 5.0):
            scene.sync(time)
            assert np.allclose(points_of(scene, "/World/rig/sheet"), expected.Get(time), atol=1e-6), time
    if mover is moving.joints:  # turned by 90 degrees about (0, 1, 0): (0, 2, 0) goes to (-1, 1, 0)
        assert np.allclose(expected.Get(5.0)[4], (-1, 1, 0), atol=1e-6)


def test_offsets_of_layers(device):
    """Samples of a sublayer and of a reference come earlier or later, and faster or slower, as their arcs say, also once edited."""
    sublayer, asset = Sdf.Layer.CreateAnonymous("sub.usda"), Sdf.Layer.CreateAnonymous("asset.usda")
    sublayer.ImportFromString('#usda 1.0\nover "World" {\n  def Sphere "ball" {\n    double radius.timeSamples = {1: 1, 11: 2}\n  }\n}\n')
    asset.ImportFromString('#usda 1.0\ndef Cube "asset" {\n  double size.timeSamples = {1: 1, 11: 2}\n}\n')
    stage = moving.new_stage(2)
    stage.GetRootLayer().subLayerPaths.append(sublayer.identifier)
    model = stage.DefinePrim("/World/model")
    model.GetReferences().AddReference(asset.identifier, "/asset", Sdf.LayerOffset(10.0, 1.0))

    def sizes() -> tuple[float, float]:
        return world_from(scene, "/World/ball")[0, 0, 0], 2.0 * world_from(scene, "/World/model")[0, 0, 0]

    with Scene(stage, device=device, time=6) as scene:
        assert sizes() == pytest.approx((1.5, 1.0))
        check(scene, 16)
        assert sizes() == pytest.approx((2.0, 1.5))
        stage.GetRootLayer().subLayerOffsets[0] = Sdf.LayerOffset(5.0, 1.0)
        check(scene, 11)
        assert sizes() == pytest.approx((1.5, 1.0))
        model.GetReferences().SetReferences([Sdf.Reference(asset.identifier, "/asset", Sdf.LayerOffset(0.0, 2.0))])
        check(scene, 12)
        assert sizes() == pytest.approx((1.6, 1.5))
        asset.timeCodesPerSecond = 48.0  # it now runs through its samples twice as fast
        check(scene, 6)
        assert sizes()[1] == pytest.approx(1.5)
        stage.SetStartTimeCode(3.0)  # what a scene is opened at, not what one that is open is at
        assert scene.sync() is not None
        assert scene.time == 6.0
        check(scene, 9.0)
