"""A turntable of 100 frames: how long it takes, against the CPU time of its parts shared by all cores.

    python tests/bench/bench_frames.py [--rounds N] [--frames N] [--only NAME,...]

A line a case. The parts (read, trace, encode and write) are run one after the other and their CPU time is counted; then the same frames
go through `run_jobs`, which overlaps them. 1.0 would be every core at work all the time; other programs on the machine count against it,
so the share of CPU time they took is printed too (Linux).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import warp as wp
from bench_render import bumpy_sphere, mesh_stage
from pxr import Usd, UsdGeom

wp.config.log_level = wp.LOG_ERROR

from hdwarp.batch.jobs import plan_jobs, run_jobs  # noqa: E402
from hdwarp.batch.shots import plan_shots  # noqa: E402
from hdwarp.errors import Diagnostics  # noqa: E402
from hdwarp.launch import thread_count  # noqa: E402
from hdwarp.rendering import render_shot  # noqa: E402
from hdwarp.scene import Scene  # noqa: E402
from hdwarp.writeback import write_file  # noqa: E402

SEVEN = ("color", "distance_to_image_plane", "normal", "position", "primId", "instanceId", "elementId")
CASES = {  # name: (file, planes, options of run_jobs)
    "exr": ("a.####.exr", ("color",), {}),
    "png": ("a.####.png", ("color",), {}),
    "seven": ("a.####.exr", SEVEN, {}),
    "fast": ("a.####.exr", SEVEN, {"compression": {"exr": "none"}}),
}


def turntable(frames: int) -> Usd.Stage:
    """The bumpy sphere of the other benchmark (25,122 triangles), turned once around."""
    stage = mesh_stage(*bumpy_sphere(80), 640, 480)
    turn = UsdGeom.Xformable(stage.GetPrimAtPath("/mesh")).AddRotateYOp()
    for frame in range(frames):
        turn.Set(360.0 * frame / frames, frame + 1)
    return stage


def machine() -> np.ndarray:
    """CPU seconds of the whole machine since it started: all, idle."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return np.full(2, np.nan)
    return np.array([sum(ticks), ticks[3] + ticks[4]]) / os.sysconf("SC_CLK_TCK")


def parts(jobs, options: dict) -> dict[str, float]:
    """CPU seconds of each part, one after the other."""
    spent = dict.fromkeys(("read", "trace", "write"), 0.0)

    def timed(name: str, function, *arguments, **keywords):
        start = time.process_time()
        result = function(*arguments, **keywords)
        spent[name] += time.process_time() - start
        return result

    how = next(iter(options.get("compression", {}).values()), None)
    with timed("read", Scene, jobs[0].stage, time=jobs[0].time, device="cpu") as scene:
        for job in jobs:
            if scene.time_code != job.time:
                timed("read", scene.sync, job.time)
            frame = timed("trace", render_shot, scene, job.shot)
            for path, _ in job.files:
                timed("write", write_file, frame, path, compression=how)
    return spent


def case(name: str, frames: int, rounds: int) -> None:
    out, planes, options = CASES[name]
    rows, cores = [], thread_count()
    for turn in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            stage = turntable(frames)
            shots = plan_shots(stage, cameras=["/camera"], resolution=(640, 480), aovs=planes, diagnostics=Diagnostics())
            jobs = plan_jobs([(stage, shots)], str(Path(folder) / out), [float(i + 1) for i in range(frames)], None)
            spent = parts(jobs, options)
            before, cpu, start = machine(), time.process_time(), time.perf_counter()
            results = list(run_jobs(jobs, device="cpu", overwrite=True, **options))
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            used = machine() - before
            assert len(results) == frames and not any(result.error for result in results)
        if turn:
            rows.append((wall, sum(spent.values()), *spent.values(), cpu, used[1] / used[0], (used[0] - used[1] - cpu) / used[0]))
    wall, alone, read, trace, write, cpu, idle, others = np.median(rows, axis=0)
    print(
        f"{name}, {frames} frames on {cores} cores: {wall:.2f} s; {wall / (alone / cores):.2f} x the parts' CPU time / cores "
        f"(read {read:.2f} + trace {trace:.2f} + write {write:.2f} s), {wall / (cpu / cores):.2f} x its own; "
        f"idle {idle:.0%}, other programs {max(others, 0.0):.0%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--only", default=",".join(CASES))
    options = parser.parse_args()
    for name in options.only.split(","):
        case(name, options.frames, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
