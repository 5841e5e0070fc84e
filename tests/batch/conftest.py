"""A stage whose ball moves from frame to frame, and jobs over a range of it."""

from __future__ import annotations

import pytest

from hdwarp.batch.jobs import plan_jobs
from hdwarp.batch.shots import plan_shots
from hdwarp.errors import Diagnostics
from hdwarp.stage.open import open_stage

STAGE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Y"
)
def Camera "camera"
{
    float focalLength = 50
    float horizontalAperture = 64
    float verticalAperture = 48
    float2 clippingRange = (0.1, 100)
}
def Camera "other" (
    references = </camera>
)
{
}
def Sphere "ball"
{
    double3 xformOp:translate.timeSamples = { 1: (-1, 0, -5), 9: (1, 0.5, -9) }
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""
AOVS = ("color", "distance_to_image_plane", "primId")


@pytest.fixture
def ball(tmp_path):
    path = tmp_path / "ball.usda"
    path.write_text(STAGE)
    return path


@pytest.fixture
def jobs_of(ball, tmp_path):
    """jobs_of("a.####.exr", [1, 2, 3]): the jobs of one camera, or more, into the test's folder."""

    def make(out: str, frames, cameras=("/camera",), aovs=AOVS, purposes=None):
        stage = open_stage(ball)
        shots = plan_shots(stage, cameras=cameras, resolution=(24, 18), aovs=aovs, purposes=purposes, diagnostics=Diagnostics())
        return plan_jobs([(stage, shots)], str(tmp_path / out), [float(frame) for frame in frames], None)

    return make
