"""cli.warm: every kernel hdWarp may launch, in one list, and compiling them ahead: `hdwarp doctor --warm`.

    python -m hdwarp.cli.warm DEVICE FIRST STEP

compiles every STEP-th kernel of the list from FIRST on: one of the processes that `warm` starts. Warp's compiler takes its flags from
process-wide state, so that a process compiles one kernel at a time.
"""

from __future__ import annotations

import importlib
import itertools
import json
import subprocess
import sys
import time
from dataclasses import dataclass

_PLAIN = (
    *(
        "tables.bvh_kernels",
        "tables.refit_kernels",
        "tables.instance_kernels",
        "tables.instances",
        "tables.lights",
        "tables.previous",
        "tables.world_trees",
        "tables.written",
        "tables.texels",
    ),
    *("views.rows", "views.given_rays", "shade.layers", "shade.shadows", "shade.sheer", "trace.view_rays"),
    *("sensors.placing", "sensors.tiles"),
)
"""Modules with kernels of one variant."""


@dataclass(frozen=True)
class Warmed:
    """What `warm` did."""

    kernel_count: int
    compiled_count: int  # the others were in the cache
    process_count: int
    seconds: float


def kernel_variants(device) -> list:
    """Every kernel, one of each module that is compiled as a whole, for a device: what scenes, views and settings may ask for."""
    import warp as wp

    from hdwarp.aovs.footprints import footprints_kernel
    from hdwarp.aovs.ids import ids_kernel
    from hdwarp.aovs.interpolation import normals_kernel, primvar_kernel
    from hdwarp.aovs.motion import motion_kernel
    from hdwarp.aovs.pixel_runs import lane_count
    from hdwarp.aovs.resolve_kernels import geometry_kernel
    from hdwarp.sensors.conversions import data_type_kernel
    from hdwarp.shade.colour import colour_kernel, samples_kernel
    from hdwarp.shade.cutout import mark_kernel
    from hdwarp.shade.lighting import lighting_kernel
    from hdwarp.shade.normal_maps import normal_map_kernel
    from hdwarp.shade.shadows import sharp_rays_kernel
    from hdwarp.shade.textures import shown_kernel
    from hdwarp.trace.free import free_kernel
    from hdwarp.trace.jobs import EVERYTHING, SceneKinds
    from hdwarp.trace.packet import trace_kernel
    from hdwarp.trace.pixel_rays import pixel_kernel
    from hdwarp.trace.single import ray_kernel
    from hdwarp.trace.view_rays import view_ray_kernel

    device, truth = wp.get_device(device), (False, True)
    kernels = []
    for name in _PLAIN:
        of_module: dict[object, wp.Kernel] = {}
        for value in vars(importlib.import_module(f"hdwarp.{name}")).values():
            if isinstance(value, wp.Kernel):
                of_module.setdefault(value.module, value)
        kernels += of_module.values()
    lanes = lane_count(device)
    for factory in (geometry_kernel, ids_kernel, primvar_kernel, normals_kernel, motion_kernel, colour_kernel, samples_kernel):
        kernels.append(factory(lanes))
    kernels += [data_type_kernel(lanes), geometry_kernel(lanes, True), shown_kernel(lanes), normal_map_kernel(lanes)]
    kernels += [lighting_kernel(lanes, given, lit) for given, lit in itertools.product(truth, truth)]
    kernels += [sharp_rays_kernel(lanes, distant) for distant in truth]
    kernels += [footprints_kernel(lanes, given) for given in truth]
    kernels += [geometry_kernel(lanes, given, True) for given in truth] + [motion_kernel(lanes, True)]
    kernels += [mark_kernel(textured) for textured in truth]
    kinds = [SceneKinds(mesh=mesh, shapes=shapes) for mesh, shapes in itertools.product((True, False), truth)] + [EVERYTHING]
    for kind, affine, peel in itertools.product(kinds, truth, truth):
        kernels.append(trace_kernel(kind, affine, peel) if device.is_cpu else pixel_kernel(kind, affine, peel))
    for kind, peel in itertools.product(kinds, truth):
        kernels.append(view_ray_kernel(kind, peel, device.is_cpu))
    for kind, any_hit in itertools.product(kinds, truth):
        kernels.append(ray_kernel(kind, any_hit, device.is_cpu))
        if device.is_cpu:
            kernels += [free_kernel(kind, any_hit, parallel) for parallel in ((False, True) if any_hit else (False,))]
    return kernels


def warm(device: str) -> Warmed:
    """Compile what Warp's cache lacks, in as many processes as there are threads (HDWARP_THREADS). Raises CalledProcessError."""
    from hdwarp.launch import thread_count

    start, count = time.perf_counter(), thread_count()
    command = [sys.executable, "-m", __name__, device]
    processes = [
        subprocess.Popen([*command, str(first), str(count)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for first in range(count)
    ]
    done = [(process, *process.communicate()) for process in processes]
    results: list[bool] = []
    for process, out, error in done:
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args, out, error)
        results += json.loads(out.splitlines()[-1])
    return Warmed(len(results), sum(results), count, time.perf_counter() - start)


def compile_share(device: str, first: int, step: int) -> list[bool]:
    """Compile every ``step``-th kernel; for each, whether it had to be compiled."""
    from hdwarp.launch import is_cold, prepare

    cold = []
    for kernel in kernel_variants(device)[first::step]:
        cold.append(is_cold(kernel, device))
        prepare(kernel, device)
    return cold


if __name__ == "__main__":
    from hdwarp.cli.quiet import start_quietly

    start_quietly()
    print(json.dumps(compile_share(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
