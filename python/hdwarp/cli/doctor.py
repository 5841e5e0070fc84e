"""cli.doctor: `hdwarp doctor`: versions, devices, caches, plugin path, and one render checked against a known answer."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Annotated

import typer

from hdwarp.cli.console import DONE, FAILED, print_json, say

HELP = "Versions, devices, caches, plugin path, and one render verified against a known answer."
_PACKAGES = ("usd-core", "warp-lang", "numpy", "mujoco", "OpenEXR", "OpenImageIO", "Pillow")


def doctor(
    device: Annotated[str | None, typer.Option("--device", help="cpu or cuda:0; all devices by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    warm: Annotated[bool, typer.Option("--warm", help="First compile every kernel, so that no render waits for the compiler.")] = False,
) -> int:
    from hdwarp.cli.quiet import start_quietly

    start_quietly()

    import warp as wp

    import hdwarp
    from hdwarp import launch
    from hdwarp.launch import find_device

    launch.on_compile = lambda name: say("compiling kernels; this happens on the first run only")
    names = [str(item) for item in wp.get_devices()] if device is None else [str(find_device(device))]
    warmed = {name: _warm(name) for name in names} if warm else {}
    checks = {name: verify(name) for name in names}
    about = {
        "hdwarp": hdwarp.__version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "devices": {name: wp.get_device(name).name for name in names},
        "threads": launch.thread_count(),
        "compilerFlags": "accepted" if launch.flags_are_accepted() else "refused by Warp's compiler: kernels are slower, results the same",
        "kernelCache": str(wp.config.kernel_cache_dir),
        "pluginPath": str(hdwarp.plugin_path()),
        "checks": {name: error or "ok" for name, error in checks.items()},
    }
    if warm:
        about["kernels"] = warmed
    if as_json:
        print_json(about)
    else:
        for key, value in about.items():
            if isinstance(value, dict):
                value = ", ".join(f"{name} {item}" for name, item in value.items())
            print(f"{key}: {value}")
    return FAILED if any(checks.values()) else DONE


def _warm(device: str) -> str:
    """Compile every kernel for a device; what was done, in words."""
    from hdwarp.cli.warm import warm

    say(f"compiling every kernel for {device}; this may take some minutes")
    done = warm(device)
    cached = done.kernel_count - done.compiled_count
    return f"{done.compiled_count} compiled, {cached} in the cache, {done.seconds:.0f} s in {done.process_count} processes"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


_SHAPES = """#usda 1.0
(
    metersPerUnit = 1
)
def Camera "camera"
{
    float focalLength = 50
    float horizontalAperture = 64
    float verticalAperture = 48
    float2 clippingRange = (0.1, 100)
}
def Cube "cube"
{
    double size = 1
    double3 xformOp:translate = (0, 0, -5)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def Sphere "sphere"
{
    double radius = 0.5
    double3 xformOp:translate = (0, 0, -5)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""


def verify(device: str) -> str | None:
    """Render a unit cube and a sphere whose masks and depths are known; what is wrong, None if nothing is.

    Camera at the origin, f = 500 px, image 640x480. A unit cube centred 5 m ahead covers columns 264 to 375 and rows 184 to 295
    (its front face, 0.5 / 4.5 * 500 = 55.56 px around the centre), at depth 4.5; a sphere of radius 0.5 there covers 7920 pixels.
    """
    import tempfile
    from pathlib import Path

    import numpy as np

    from hdwarp.rendering import render

    def depth_of(shape: str) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "shapes.usda"
            other = "sphere" if shape == "cube" else "cube"
            path.write_text(_SHAPES.replace(f'"{other}"\n{{', '"hidden"\n{\n    token visibility = "invisible"'))
            frame = render(str(path), "/camera", resolution=(640, 480), aovs=["distance_to_image_plane"], device=device)
        return frame["distance_to_image_plane"]

    cube = depth_of("cube")
    hit = np.isfinite(cube)
    expected = np.zeros((480, 640), bool)
    expected[184:296, 264:376] = True
    if not np.array_equal(hit, expected):
        return f"the unit cube covers {int(hit.sum())} pixels, not rows 184-295 and columns 264-375"
    if np.abs(cube[hit] - 4.5).max() > 1e-5:
        return f"the cube's depth is {cube[hit].min():g} to {cube[hit].max():g}, not 4.5"
    sphere = np.isfinite(depth_of("sphere"))
    if int(sphere.sum()) != 7920:
        return f"the sphere covers {int(sphere.sum())} pixels, not 7920"
    return None
