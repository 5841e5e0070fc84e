"""`hdwarp.render` of an open scene: the frame that a stage would give, as the scene's last sync left it."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Usd, UsdGeom

import hdwarp

AOVS = ("color", "distance_to_image_plane", "primId")


def test_an_open_scene_renders_as_its_last_sync_left_it(device):
    stage = Usd.Stage.CreateInMemory()
    ball = UsdGeom.XformCommonAPI(UsdGeom.Sphere.Define(stage, "/ball"))
    ball.SetTranslate((0, 0, -2))
    ball.SetTranslate((0, 0, -9), 10.0)
    UsdGeom.XformCommonAPI(UsdGeom.Camera.Define(stage, "/cam")).SetTranslate((0, 0, 9))
    with hdwarp.Scene(stage, device=device, time=10.0) as scene:
        frame = hdwarp.render(scene, "/cam", resolution=(32, 24), aovs=AOVS, samples=4)
        assert frame.time == 10.0
        ball.SetTranslate((0, 0, 3), 10.0)
        unsynced = hdwarp.render(scene, "/cam", resolution=(32, 24), aovs=AOVS, samples=4)
        scene.sync()
        synced = hdwarp.render(scene, "/cam", resolution=(32, 24), aovs=AOVS, samples=4)
        fresh = hdwarp.render(stage, "/cam", resolution=(32, 24), aovs=AOVS, samples=4, time=10.0, device=device)
        for name in AOVS:
            assert np.array_equal(frame[name], unsynced[name])
            assert np.array_equal(synced[name], fresh[name])
        assert not np.array_equal(frame["primId"], synced["primId"])
        np.testing.assert_array_equal(synced.points(), fresh.points())
        for wrong in ({"time": 1.0}, {"purposes": ("guide",)}, {"previous": 0.0}, {"device": "cpu"}):
            with pytest.raises(hdwarp.ArgumentError, match=f"{next(iter(wrong))}=.* goes with a stage"):
                hdwarp.render(scene, "/cam", **wrong)
    with pytest.raises(hdwarp.Error, match="closed"):
        hdwarp.render(scene, "/cam")


def test_unsynced_edits_of_cameras_change_nothing(device):
    """One is deleted, one defined: until the next sync, the scene renders the one it has and says so of the other."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Sphere.Define(stage, "/ball")
    UsdGeom.XformCommonAPI(UsdGeom.Camera.Define(stage, "/cam")).SetTranslate((0, 0, 9))
    with hdwarp.Scene(stage, device=device) as scene:
        frames = [hdwarp.render(scene, "/cam", resolution=(32, 24), aovs=AOVS)]
        UsdGeom.Camera.Define(stage, "/another")
        stage.RemovePrim("/cam")
        frames += [hdwarp.render(scene, camera, resolution=(32, 24), aovs=AOVS) for camera in ("/cam", None)]
        assert [frame.camera for frame in frames] == ["/cam"] * 3
        for name in AOVS:
            assert all(np.array_equal(frames[0][name], frame[name]) for frame in frames)
        with pytest.raises(hdwarp.StageError, match=r"</another>: .*sync\(\) follows"):
            hdwarp.render(scene, "/another", resolution=(32, 24))
        scene.sync()
        assert hdwarp.render(scene, None, resolution=(32, 24)).camera == "/another"
        with pytest.raises(hdwarp.StageError, match="</cam>: no prim is there"):
            hdwarp.render(scene, "/cam", resolution=(32, 24))


def test_products_are_looked_up_while_prims_vanish(device, monkeypatch):
    """Another thread removes prims in the middle of the walk: an Error that says so, none of Usd's."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Camera.Define(stage, "/cam")
    for i in range(4):
        UsdGeom.Sphere.Define(stage, f"/ball{i}")

    def walk(of: Usd.Stage) -> None:
        for prim in of.Traverse():
            of.RemovePrim(prim.GetPath())

    with hdwarp.Scene(stage, device=device) as scene:
        monkeypatch.setattr("hdwarp.batch.shots.find_render_prims", walk)
        with pytest.raises(hdwarp.Error, match="the stage was edited while its RenderProducts were looked up"):
            hdwarp.render(scene, "/cam", resolution=(32, 24))
