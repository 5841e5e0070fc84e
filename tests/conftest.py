"""Fixtures every test may use. Kernels are cached where Warp caches them for the user: a second run of the tests compiles nothing."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@functools.cache
def _devices() -> list[str]:
    import warp as wp

    wp.config.quiet = True
    wp.init()
    return ["cpu", "cuda:0"] if wp.is_cuda_available() else ["cpu"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`device`: the CPU always, CUDA when there is one. Warp starts only if a test asks."""
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", _devices(), scope="session")


@pytest.fixture(autouse=True)
def no_aov_of_others():
    """What a test, or an example that it runs, registers as an AOV is gone for the next."""
    yield
    registry = sys.modules.get("hdwarp.aovs.registry")
    for name in [name for name, spec in registry.AOVS.items() if spec.shade is not None] if registry else ():
        del registry.AOVS[name]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with the shared `cases/` and `assets/`, named by HDWARP_TEST_ASSETS."""
    folder = os.environ.get("HDWARP_TEST_ASSETS")
    if not folder:
        pytest.skip("HDWARP_TEST_ASSETS is not set (a folder that holds cases/ and assets/)")
    path = Path(folder)
    missing = [name for name in ("cases", "assets") if not (path / name).is_dir()]
    if missing:
        pytest.skip(f"HDWARP_TEST_ASSETS={folder} holds no {' and no '.join(missing)}")
    return path


@pytest.fixture(scope="session")
def open3d():
    """The module, for rays by Embree; it need not be installed, and where it is may lack libraries of the system."""
    try:
        import open3d as module
    except (ImportError, OSError) as error:
        pytest.skip(f"Open3D (extra 'bench') does not import here: {error}")
    return module


@pytest.fixture(scope="session")
def sample_stages() -> Path:
    """The folder of the project's own stages."""
    return REPOSITORY / "sample_stages"
