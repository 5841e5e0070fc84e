"""Who lives how long: stage, scene, listener, and what a closed scene answers."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from pxr import UsdGeom
from tests.live import moving
from tests.live.test_live_stage import check

import hdwarp
from hdwarp.batch.shots import plan_shot
from hdwarp.errors import Diagnostics, Error
from hdwarp.rendering import render_shot
from hdwarp.scene import Scene
from hdwarp.stage.changes import ChangeListener


def test_a_stage_that_only_the_scene_holds(device):
    stage = moving.new_stage(3)
    with Scene(stage, device=device, time=1) as scene:
        layer = stage.GetRootLayer()
        del stage
        gc.collect()
        layer.GetAttributeAtPath("/cam.focalLength").default = 10.0
        assert scene.sync().cameras_changed == 1
        check(scene, 1)


def test_an_expired_stage(device):
    """Python holds a stage as long as the scene does; a host program may close it all the same."""
    stage = moving.new_stage(3)
    scene = Scene(stage, device=device, time=1)
    ball = UsdGeom.Sphere.Define(stage, "/World/ball")
    scene.stage = _Expired()
    with pytest.raises(Error, match="expired; keep a reference"):
        scene.sync()
    scene.stage = stage
    ball.GetRadiusAttr().Set(0.25)
    check(scene, 1)


class _Expired:
    def __bool__(self) -> bool:
        return False


def test_a_closed_scene(device):
    stage = moving.new_stage(3)
    shot = plan_shot(stage, "/cam", resolution=(8, 6), aovs=["primId"], diagnostics=Diagnostics())
    scene = Scene(stage, device=device, time=1)
    sensor = hdwarp.SensorCamera(scene, cameras="/cam", resolution=(8, 6))
    out = sensor.allocate(["primId"])
    scene.close()
    scene.close()
    assert repr(scene) == "<Scene, closed>"
    calls = {
        "sync": scene.sync,
        "sync to a time": lambda: scene.sync(5),
        "lights": lambda: scene.lights,
        "sites": lambda: scene.sites,
        "metres": lambda: scene.metres_per_unit,
        "reader": lambda: scene.reader,
        "framing": lambda: scene.frame_default_camera(1.0),
        "state": scene.state,
        "sensor": lambda: sensor.update(None, out),
        "rebind": sensor.rebind,
        "new sensor": lambda: hdwarp.SensorCamera(scene, cameras="/cam", resolution=(8, 6)),
        "render": lambda: render_shot(scene, shot),
        "set_points": lambda: scene.set_points("/World/calm0", []),
    }
    for name, call in calls.items():
        with pytest.raises(Error) as caught:
            call()
        assert name == "set_points" or "the scene is closed" in str(caught.value), name
    UsdGeom.Sphere.Define(stage, "/World/ball")  # nobody listens


def test_two_scenes_on_one_stage(device):
    """Each takes edits when it is asked to, and stands at a time of its own."""
    stage = moving.new_stage(3)
    moving.transform(stage)
    with Scene(stage, device=device, time=1) as first:
        with Scene(stage, device=device, time=5) as second:
            UsdGeom.Sphere.Define(stage, "/World/ball")
            check(second, 9)
            assert first.index.instance_count == second.index.instance_count - 1
            stage.RemovePrim("/World/ball")
            assert first.sync().instances_inserted == 0
            check(first, 1)
            check(second, 5)
        UsdGeom.Sphere.Define(stage, "/World/late")
        check(first, 3)


@pytest.fixture
def told(monkeypatch) -> list:
    """Notices that listeners take in."""
    collected = []
    collect = ChangeListener._collect
    monkeypatch.setattr(ChangeListener, "_collect", lambda self, notice: (collected.append(1), collect(self, notice)))
    return collected


def test_the_listener_dies_with_its_scene(told, device):
    stage = moving.new_stage(3)
    scene = Scene(stage, device=device, time=1)
    stage.DefinePrim("/a")
    assert told == [1]
    scene.close()
    stage.DefinePrim("/b")
    assert told == [1]
    scene = Scene(stage, device=device, time=1)
    kept = [weakref.ref(item) for item in (scene, scene._listener, scene.reader, scene.tables, scene.index)]
    del scene  # not closed
    gc.collect()
    assert [ref() for ref in kept] == [None] * len(kept)
    stage.DefinePrim("/c")
    assert told == [1]
    gone = weakref.ref(stage)
    del stage
    gc.collect()
    assert gone() is None


def test_a_closed_scene_lets_go_of_the_stage(device):
    stage = moving.new_stage(3)
    scene = Scene(stage, device=device, time=1)
    prim = stage.GetPrimAtPath("/cam")
    tables = weakref.ref(scene.tables)
    scene.close()
    del stage
    gc.collect()
    assert not prim
    assert tables() is None


def test_a_render_keeps_nothing(told, device):
    stage = moving.new_stage(3)
    frame = hdwarp.render(stage, "/cam", resolution=(8, 6), aovs=["primId"], device=device)
    prim = stage.GetPrimAtPath("/cam")
    gc.collect()
    stage.DefinePrim("/a")
    assert told == []
    del stage
    gc.collect()
    assert not prim
    assert np.unique(frame["primId"]).size
