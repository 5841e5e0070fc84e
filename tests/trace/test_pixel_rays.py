"""The kernel that CUDA runs, a thread a pixel, here on the CPU: it passes the tests of the tile packets, and draws their picture.

Every test of the modules named in `_BORROWED` runs again with the tracer exchanged.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from hdwarp.trace import EVERYTHING, SceneKinds
from hdwarp.trace.pixel_rays import pixel_kernel, trace_by_pixels

_BORROWED = ("test_against_brute_force", "test_layers")


def _load(name: str, path: str):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(path))
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def packet_tools():
    return _load("hdwarp_test_trace_scene_packets", "trace_scene.py")


@pytest.fixture(scope="module")
def tools():
    """trace_scene with the tracer exchanged."""
    module = _load("hdwarp_test_trace_scene_pixels", "trace_scene.py")
    module.trace = trace_by_pixels
    return module


for _name in _BORROWED:
    _module = _load(f"hdwarp_borrowed_{_name}", f"{_name}.py")
    globals().update({name: test for name, test in vars(_module).items() if name.startswith("test_")})


def both(tools, packet_tools, meshes, instances, camera, **options):
    """The same view by pixels and by packets."""
    return [module.Scene(meshes, instances, **options).trace(camera)[0] for module in (tools, packet_tools)]


@pytest.mark.parametrize("kind", ["perspective", "orthographic"])
def test_same_picture_as_the_packets(tools, packet_tools, kind):
    """Sub-pixel triangles, instances, shapes: the same ids but for rays that graze an edge, and the same depth."""
    rng = np.random.default_rng(5)
    meshes = [tools.bumpy_sphere(60), tools.soup(rng, 200, size=0.1)]
    instances = [tools.Instance(tools.random_affine(rng, mirrored=k % 2 == 0), rng.uniform(-1, 1, 3), mesh=k % 2) for k in range(10)]
    instances += [tools.Instance(np.eye(3) * 0.4, rng.uniform(-1, 1, 3), kind=1 + k % 2) for k in range(4)]
    turn = tools.rotation((1, 2, 3), 0.7)
    camera = getattr(tools, kind)(320, 240, eye=turn[:, 2] * 4, turn=turn, window=(-5, 3, 300, 220))
    pixels, packets = both(tools, packet_tools, meshes, instances, camera)
    assert packets.hit.mean() > 0.3
    differs = (pixels.instance != packets.instance) | (pixels.triangle != packets.triangle)
    assert differs.mean() < 1e-4
    seen = packets.hit & ~differs
    error = np.abs(pixels.t[seen] - packets.t[seen]) / np.abs(packets.t[seen])
    assert np.quantile(error, 0.99) < 1e-6
    assert error.max() < 1e-4


def test_equal_depths_go_to_the_lower_rank_then_the_lower_triangle(tools):
    """Every triangle twice in the mesh, every instance four times."""
    rng = np.random.default_rng(6)
    points, triangles = tools.soup(rng, 60)
    doubled = (points, np.concatenate([triangles, triangles]))
    linear, ranks = tools.random_affine(rng, mirrored=False), [5, 2, 7, 3]
    scene = tools.Scene([doubled], [tools.Instance(linear, rank=r) for r in ranks])
    image = scene.trace(tools.perspective(eye=(0, 0, 4)))[0]
    assert set(np.unique(image.instance)) == {-1, 1}
    assert image.triangle.max() < 60


@pytest.mark.parametrize("window", [(0, 0, 16, 8), (3, 5, 40, 31), (-37, -11, 200, 140), (149, 100, 1, 1)])
def test_data_windows_are_cut_from_one_image(tools, window):
    """Any window of the image, overscan included, holds the bits that the same pixels of a larger window hold."""
    rng = np.random.default_rng(11)
    scene = tools.Scene([tools.soup(rng, 100, size=0.2)], [tools.Instance(np.eye(3))])
    camera, (x0, y0, width, height) = tools.perspective(150, 101), window
    part = scene.trace(camera.with_(window=window))[0]
    whole = scene.trace(camera.with_(window=(-48, -24, 300, 200)))[0]
    cut = np.s_[y0 + 24 : y0 + 24 + height, x0 + 48 : x0 + 48 + width]
    assert part.t.tobytes() == whole.t[cut].tobytes()
    assert part.triangle.tobytes() == whole.triangle[cut].tobytes()


@pytest.mark.parametrize(
    ("kinds", "affine", "peel"),
    [
        (EVERYTHING, True, True),
        *(pytest.param(SceneKinds(mesh=True, shapes=True), a, p, marks=pytest.mark.slow) for a in (False, True) for p in (False, True)),
    ],
)
def test_compiles_to_ptx(tmp_path, kinds, affine, peel):
    kernel = pixel_kernel(kinds, affine, peel)
    (path,) = wp.compile_aot_module(kernel.module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert ".target sm_80" in path.read_text()
