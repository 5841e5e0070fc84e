"""Stages and scenes of tests of sensors: environments with a ground, and a room with a lidar."""

from __future__ import annotations

import pytest
from pxr import Gf, Usd, UsdGeom
from tests.sensors.own_rays import ENV, site
from tests.sensors.world_stages import add_environment, add_ground, add_overview, body, empty_stage

import hdwarp


@pytest.fixture
def stage() -> Usd.Stage:
    stage = empty_stage()
    add_ground(stage)
    add_overview(stage)
    add_environment(stage, ENV)
    return stage


@pytest.fixture
def scene(stage, device):
    with hdwarp.Scene(stage, device=device, worlds=[hdwarp.replicate(ENV, count=3)]) as scene:
        yield scene


@pytest.fixture
def room():
    """A room of 8 x 6 x 3 m about the origin, a robot in it in a housing of a ball, a lidar at the ball's middle."""
    stage = empty_stage()
    walls = UsdGeom.Cube.Define(stage, f"{ENV}/room")
    walls.CreateSizeAttr(1.0)
    walls.AddScaleOp().Set(Gf.Vec3f(8, 6, 3))
    robot = body(stage, f"{ENV}/robot", (0.5, -0.25, 0.0))
    UsdGeom.Sphere.Define(stage, f"{robot}/housing").CreateRadiusAttr(0.1)
    site(stage, f"{robot}/lidar", (0.02, 0.01, 0.03), turn=30.0)
    return stage
