"""Rays of one's own: ranges a second of a 16 x 360 lidar in many worlds: python tests/bench/bench_rays.py [--worlds 256]

The robot of `bench_worlds`, a lidar on a fixed site beside it; in packets (all rays from the sensor) and one by one; the same pinhole
picture along its own rays against the lens. Medians of interleaved runs, bodies posed once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import warp as wp
from bench_worlds import robot_stage
from pxr import Gf, UsdGeom

import hdwarp
from hdwarp.views.pinhole import ray_coefficients

ROUNDS = 9
SIZE = 64


def spinning() -> np.ndarray:
    """(16, 360, 1, 2, 3)"""
    up, around = np.meshgrid(np.radians(np.linspace(-15, 15, 16)), np.radians(np.arange(360.0)), indexing="ij")
    rays = np.zeros((16, 360, 1, 2, 3))
    rays[..., 0, 1, :] = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=-1)
    return rays


def medians(runs: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Seconds a run, interleaved."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for round_number in range(ROUNDS + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            wp.synchronize()
            if round_number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=256)
    worlds = parser.parse_args().worlds
    stage = robot_stage()
    site = UsdGeom.Xform.Define(stage, "/World/envs/env_0/lidar")
    site.AddTranslateOp().Set(Gf.Vec3d(1.5, -1.5, 0.6))
    site.GetPrim().AddAppliedSchema("HdWarpSiteAPI")
    with hdwarp.Scene(stage, worlds=[hdwarp.replicate("/World/envs/env_0", count=worlds)]) as scene:
        state, runs, rays = scene.state(), {}, {}
        singly = spinning()
        singly[..., 0, 0] = 1e-20
        for way, given in (("packets", spinning()), ("one by one", singly)):
            for aovs in (["distance_to_camera"], ["color", "distance_to_camera", "primId"]):
                sensor = hdwarp.SensorCamera(scene, sites="*/lidar")
                sensor.set_camera_rays(given)
                out, name = sensor.allocate(aovs), f"lidar, {way}, {' + '.join(aovs)}"
                runs[name] = lambda sensor=sensor, out=out: sensor.update(state, out, pose=False)
                rays[name] = worlds * 16 * 360
        y, x = np.mgrid[0:SIZE, 0:SIZE][..., None]
        for way in ("lens", "its rays"):
            sensor = hdwarp.SensorCamera(scene, cameras="*", resolution=(SIZE, SIZE))
            if way == "its rays":
                lens = ray_coefficients(scene.cameras.record_of(0), sensor._views.spec)
                world = lens.direction + lens.direction_dx * x + lens.direction_dy * y
                given = np.zeros((SIZE, SIZE, 1, 2, 3))
                given[..., 0, 1, :] = world @ np.stack([lens.right, lens.up, lens.back]).T
                sensor.set_camera_rays(given)
            out = sensor.allocate(["distance_to_camera"])
            runs[f"pinhole {SIZE}x{SIZE}, {way}"] = lambda sensor=sensor, out=out: sensor.update(state, out, pose=False)
            rays[f"pinhole {SIZE}x{SIZE}, {way}"] = worlds * SIZE * SIZE
        for name, seconds in medians(runs).items():
            print(f"{name}: {1e3 * seconds:.1f} ms, {rays[name] / seconds / 1e6:.2f} million rays/s")


if __name__ == "__main__":
    main()
