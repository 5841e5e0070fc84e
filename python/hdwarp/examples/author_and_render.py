"""examples.author_and_render: author a camera and its render product in USD, render it, and check the numbers.

    python -m hdwarp.examples.author_and_render [OUT.exr]

A ball of radius 0.5 m lies on a floor. The camera stands 4 m before its centre and 3 m above it, 5 m away, and looks at it: the image's
centre shows the ball, 4.5 m away. The stage is in memory; with OUT the image is also written to a file.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from pxr import Usd, UsdGeom

import hdwarp

WIDTH, HEIGHT = 640, 480
RADIUS = 0.5


def make_stage() -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    ball = UsdGeom.Sphere.Define(stage, "/World/Ball")
    ball.CreateRadiusAttr(RADIUS)
    ball.CreateDisplayColorAttr([(0.75, 0.1, 0.06)])
    floor = UsdGeom.Cube.Define(stage, "/World/Floor")
    floor.CreateSizeAttr(1.0)
    floor.CreateDisplayColorAttr([(0.5, 0.5, 0.5)])
    xform = UsdGeom.XformCommonAPI(floor)
    xform.SetTranslate((0.0, 0.0, -RADIUS - 0.05))
    xform.SetScale((6.0, 6.0, 0.1))
    return stage


def author_camera(stage: Usd.Stage) -> UsdGeom.Camera:
    """A camera with its product: everything a renderer has to know is in the stage afterwards."""
    camera = hdwarp.author.add_camera(
        stage, "/World/Camera", fov=math.radians(40.0), clipping_range=(0.1, 100.0), resolution=(WIDTH, HEIGHT)
    )
    hdwarp.author.look_at(camera, eye=(4.0, 0.0, 3.0), target=(0.0, 0.0, 0.0))
    return camera


def check(frame: hdwarp.Frame) -> None:
    """What one can work out by hand."""
    row, column = HEIGHT // 2, WIDTH // 2
    distance = frame["distance_to_camera"]
    assert distance.shape == (HEIGHT, WIDTH)
    assert frame.prim_path(row, column) == "/World/Ball"
    assert abs(distance[row, column] - (5.0 - RADIUS)) < 1e-3, distance[row, column]  # half a pixel beside the axis
    assert abs(frame.K[1, 1] - HEIGHT / 2 / math.tan(math.radians(20.0))) < 1e-3, frame.K  # fov is vertical
    points = frame.points()
    on_ball = frame["primId"] == frame.prim_paths.index("/World/Ball")
    assert np.allclose(np.linalg.norm(points[on_ball], axis=-1), RADIUS, atol=1e-4)
    assert np.isinf(distance[frame["primId"] < 0]).all()


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    stage = make_stage()
    author_camera(stage)
    frame = hdwarp.render(stage, aovs=("color", "distance_to_camera", "primId"), samples=4)
    check(frame)
    for path in arguments:
        frame.save(path)
    print(f"{frame.camera}: {frame.width}x{frame.height}, {int((frame['primId'] >= 0).sum())} pixels hit, all as worked out by hand")
    return 0


if __name__ == "__main__":
    sys.exit(main())
