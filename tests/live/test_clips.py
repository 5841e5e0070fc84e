"""Value clips: samples in layers of their own, opened as time gets there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pxr import Sdf, Usd, UsdGeom
from tests.live.test_live_stage import check
from tests.live.test_time_values import world_from

from hdwarp.scene import Scene

CLIP = """#usda 1.0
over "model" {
    over "ball" {
        double radius.timeSamples = {0: %s, 1: %s}
        double3 xformOp:translate.timeSamples = {0: (0, 0, 0), 1: (%s, 0, 0)}
    }
}
"""
MANIFEST = """#usda 1.0
over "model" {
    over "ball" {
        double radius
        double3 xformOp:translate
    }
}
"""
SHAPE = """#usda 1.0
def Xform "model" {
    def Sphere "ball" {
        double radius = 7
        double3 xformOp:translate = (0, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
"""
ASSET = """#usda 1.0
def "model" (
    prepend references = @./shape.usda@</model>
    clips = {
        dictionary default = {
            asset[] assetPaths = [@./first.usda@, @./second.usda@]
            asset manifestAssetPath = @./manifest.usda@
            string primPath = "/model"
            double2[] active = [(0, 0), (2, 1)]
            double2[] times = [(0, 0), (1, 1), (2, 0), (3, 1)]
        }
    }
) {
}
"""
HOLDER = """#usda 1.0
def Xform "holder" {
    def "model" (
        prepend references = @./asset.usda@</model>
    ) {
    }
}
"""
ROOT = """#usda 1.0
(
    metersPerUnit = 1
    startTimeCode = 0
)
def Camera "cam" {
    double3 xformOp:translate = (0, 0, 900)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    float focalLength = 30
}
def Cube "still" {
}
def Xform "World" {
    def Xform "holder" (
        prepend references = @./holder.usda@</holder>
        instanceable = INSTANCEABLE
    ) {
    }
}
"""
BALL = "/World/holder/model/ball"
# From samples (0: 10, 1: 20) and (0: 100, 1: 200): a clip that ends without a jump leads over to the next.
RADII = {0.0: 10.0, 0.5: 15.0, 1.0: 20.0, 1.5: 60.0, 2.0: 100.0, 2.5: 150.0, 4.0: 200.0}


@pytest.fixture(params=[False, True], ids=["plain", "instance"])
def stage(request, tmp_path: Path) -> Usd.Stage:
    files = {
        "first": CLIP % (10, 20, 5),
        "second": CLIP % (100, 200, 7),
        "manifest": MANIFEST,
        "shape": SHAPE,
        "asset": ASSET,
        "holder": HOLDER,
        "root": ROOT.replace("INSTANCEABLE", str(request.param).lower()),
    }
    for name, text in files.items():
        (tmp_path / f"{name}.usda").write_text(text)
    return Usd.Stage.Open(str(tmp_path / "root.usda"))


def radius(scene: Scene) -> float:
    return world_from(scene, BALL)[0, 0, 0]


def test_values_of_clips(stage, device):
    ball = UsdGeom.Sphere(stage.GetPrimAtPath(BALL))
    with Scene(stage, device=device, time=0) as scene:
        for time in (0.0, 1.5, 0.5, 4.0, 2.0, 1.0, 2.5, 0.0):
            done = check(scene, time)
            assert radius(scene) == pytest.approx(RADII[time]) == pytest.approx(ball.GetRadiusAttr().Get(time))
            assert done.prims_read <= 3


def test_moving_to_clips_that_were_not_open(stage, device):
    """The first sync opens the second clip's layer."""
    second = str(Path(stage.GetRootLayer().realPath).parent / "second.usda")
    with Scene(stage, device=device, time=0) as scene:
        assert not Sdf.Layer.Find(second)
        scene.sync(2.5)
        assert radius(scene) == pytest.approx(150.0)
        assert Sdf.Layer.Find(second)


def test_clips_edited(stage, device):
    """Of other clips Usd tells; of edits inside clip layers, also by reloading them, it does not."""
    folder = Path(stage.GetRootLayer().realPath).parent
    spec = Sdf.Layer.Find(str(folder / "asset.usda")).GetPrimAtPath("/model")

    def set_clips(*names: str) -> None:
        clips = dict(spec.GetInfo("clips"))
        clips["default"] = {**dict(clips["default"]), "assetPaths": Sdf.AssetPathArray([Sdf.AssetPath(f"./{name}.usda") for name in names])}
        spec.SetInfo("clips", clips)

    with Scene(stage, device=device, time=0.5) as scene:
        set_clips("second", "second")
        check(scene, 0.5)
        assert radius(scene) == pytest.approx(150.0)
        spec.layer.Save()
        (folder / "second.usda").write_text(CLIP % (1, 2, 3))
        stage.Reload()
        assert scene.sync().prims_read == 0
        Sdf.Layer.Find(str(folder / "second.usda")).SetTimeSample("/model/ball.radius", 0.0, 4.0)
        assert scene.sync().prims_read == 0
        set_clips("second", "first")
        check(scene, 0.5)
        assert radius(scene) == pytest.approx(3.0)
        spec.ClearInfo("clips")
        for time in (0.5, 2.5, 1.0):
            check(scene, time)
            assert radius(scene) == 7.0
