"""Frame ranges with motion: each frame against the one before it in the range, whatever was rendered before and is kept."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom

import hdwarp
from hdwarp.batch.jobs import plan_jobs, run_jobs
from hdwarp.batch.shots import plan_shots
from hdwarp.errors import Diagnostics


@pytest.fixture
def stage():
    """A wall at depth 5, a camera with K 125 that moves by t * t / 100 m."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    camera = UsdGeom.Camera.Define(stage, "/camera")
    camera.CreateHorizontalApertureAttr(64.0)
    camera.CreateVerticalApertureAttr(48.0)
    camera.CreateClippingRangeAttr(Gf.Vec2f(0.01, 1000))
    op = camera.AddTranslateOp()
    for time in range(-5, 20):
        op.Set(Gf.Vec3d(time * time / 100, 0, 0), time)
    mesh = UsdGeom.Mesh.Define(stage, "/wall")
    mesh.CreatePointsAttr([(-50, -50, -5), (50, -50, -5), (50, 50, -5), (-50, 50, -5)])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    return stage


def results(stage, tmp_path, frames, *, aovs=("motion",), time=None, **options):
    """Motion in x of the middle pixel, by frame."""
    shots = plan_shots(stage, cameras=["/camera"], diagnostics=Diagnostics(), aovs=list(aovs), resolution=(160, 120))
    jobs = plan_jobs([(stage, shots)], str(tmp_path / "####.npz"), frames, time)
    found = {}
    for result in run_jobs(jobs, device="cpu", **options):
        assert result.error is None
        for path in result.written:
            found[result.job.time.GetValue()] = float(np.load(path)["motion"][60, 80, 0])
    return found


def pixels(now, then):
    return -25.0 * (now**2 - then**2) / 100


@pytest.mark.parametrize("frames", [[4.0, 5.0, 6.0], [1.0, 4.0, 9.0], [9.0, 8.0, 7.0], [3.0]])
def test_each_frame_is_measured_against_the_one_before(stage, tmp_path, frames):
    """The first against the frame that would have come before it."""
    first = frames[0] - 1.0 if len(frames) == 1 else 2 * frames[0] - frames[1]
    expected = {now: pixels(now, then) for then, now in zip([first, *frames], frames, strict=False)}
    assert results(stage, tmp_path, frames) == pytest.approx(expected, abs=1e-4)


def test_what_is_kept_from_an_earlier_run_changes_nothing(stage, tmp_path):
    frames = [4.0, 5.0, 6.0, 7.0]
    whole = results(stage, tmp_path, frames)
    for number in (4, 6):
        (tmp_path / f"{number:04d}.npz").unlink()
    again = results(stage, tmp_path, frames, resume=True)
    assert again == {4.0: whole[4.0], 6.0: whole[6.0]}


def test_without_motion_no_frame_is_visited_twice(stage, tmp_path, monkeypatch):
    visited = []
    read = hdwarp.Scene.read

    def counting(self, time=None):
        visited.append(time)
        return read(self, time)

    monkeypatch.setattr(hdwarp.Scene, "read", counting)
    shots = plan_shots(stage, cameras=["/camera"], diagnostics=Diagnostics(), aovs=["primId"], resolution=(16, 12))
    for result in run_jobs(plan_jobs([(stage, shots)], str(tmp_path / "####.npz"), [4.0, 5.0, 6.0], None), device="cpu"):
        assert result.error is None
    assert len(visited) == 3
    visited.clear()
    results(stage, tmp_path, [14.0, 15.0, 16.0])
    assert len(visited) == 4  # the frame before the first, then each


def test_a_framed_default_view_moves_as_its_pictures_do(tmp_path):
    """A growing wall and no camera: the view that frames it steps back; what the wall's own growth does not undo is motion."""
    stage = Usd.Stage.CreateInMemory()
    ball = UsdGeom.Sphere.Define(stage, "/ball")
    op = ball.AddTranslateOp()
    op.Set(Gf.Vec3d(0, 0, 0), 0)
    op.Set(Gf.Vec3d(3, 0, 0), 1)
    frame = hdwarp.render(stage, time=1, resolution=(64, 48), aovs=["motion", "primId"], device="cpu")
    seen = frame["primId"] == 0
    assert seen.any()
    np.testing.assert_allclose(frame["motion"][seen], 0.0, atol=1e-3)  # the view follows the ball
