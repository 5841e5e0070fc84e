"""examples.live_stage: edit a stage under an open scene, and see that only what the edit calls for is done.

    python -m hdwarp.examples.live_stage [OUT.exr]

A thousand balls stand on a grid, 1 m apart, under a camera that looks down from 60 m. One is moved, one is added, one is taken away and
a clock runs; `Scene.sync` tells how much work each was. With OUT the last picture is also written to a file.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from pxr import Gf, Usd, UsdGeom

import hdwarp

SIDE = 32
HEIGHT = 60.0


def make_stage() -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    for i in range(SIDE * SIDE):
        put_ball(stage, f"/World/Ball{i}", (i % SIDE - SIDE / 2, i // SIDE - SIDE / 2, 0.0))
    swing = UsdGeom.XformCommonAPI(put_ball(stage, "/World/Swing", (0.0, 0.0, 5.0)))
    for time, x in ((0.0, -8.0), (24.0, 8.0)):
        swing.SetTranslate((x, 0.0, 5.0), time)
    camera = hdwarp.author.add_camera(stage, "/World/Camera", fov=math.radians(40.0), resolution=(320, 320))
    hdwarp.author.look_at(camera, eye=(0.0, 0.01, HEIGHT), target=(0.0, 0.0, 0.0))
    return stage


def put_ball(stage: Usd.Stage, path: str, place: tuple[float, float, float]) -> UsdGeom.Sphere:
    ball = UsdGeom.Sphere.Define(stage, path)
    ball.CreateRadiusAttr(0.4)
    UsdGeom.XformCommonAPI(ball).SetTranslate(Gf.Vec3d(*place))
    return ball


def place_of(scene: hdwarp.Scene, sensor: hdwarp.SensorCamera, out: dict, path: str) -> np.ndarray:
    """Mean of what the camera sees of a prim [m]."""
    sensor.update(None, out)
    seen = out["primId"].numpy()[0] == scene.index.prim_paths.index(path)
    return out["position"].numpy()[0][seen].mean(axis=0)


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    stage = make_stage()
    with hdwarp.Scene(stage, time=0.0) as scene:
        sensor = hdwarp.SensorCamera(scene, cameras="/World/Camera")
        out = sensor.allocate(["color", "position", "primId"])

        UsdGeom.XformCommonAPI(stage.GetPrimAtPath("/World/Ball5")).SetTranslate((3.0, 4.0, 9.0))
        moved = scene.sync()
        assert (moved.prims_read, moved.instances_changed, moved.rows_uploaded, moved.tlas_built) == (1, 1, 1, 0), moved
        assert np.allclose(place_of(scene, sensor, out, "/World/Ball5")[:2], (3.0, 4.0), atol=0.1)

        put_ball(stage, "/World/Guest", (0.5, 0.5, 12.0))
        added = scene.sync()
        assert (added.prims_read, added.instances_inserted) == (1, 1), added
        assert np.allclose(place_of(scene, sensor, out, "/World/Guest")[:2], (0.5, 0.5), atol=0.1)

        stage.RemovePrim("/World/Ball7")
        removed = scene.sync()
        assert (removed.instances_removed, removed.instances_inserted) == (1, 0), removed

        running = scene.sync(12.0)  # only what varies over time is read again
        assert (running.prims_read, running.instances_changed) == (1, 1), running
        assert abs(place_of(scene, sensor, out, "/World/Swing")[0]) < 0.1

        still = scene.sync()
        assert still == hdwarp.SyncCounts(), still
        fresh = hdwarp.render(stage, "/World/Camera", time=12.0, aovs=("color", "position", "primId"))
        for name in out:
            assert np.array_equal(out[name].numpy()[0], fresh[name]), name
        for path in arguments:
            fresh.save(path)
    print(f"moving one of {SIDE * SIDE} balls: {moved.rows_uploaded} row uploaded; the pictures are those of a scene opened afresh")
    return 0


if __name__ == "__main__":
    sys.exit(main())
