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
