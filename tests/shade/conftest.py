"""The scene tools of the resolve tests, here too, the float64 twins of textures, surfaces and lights, and squares that show some."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _module(name: str, path: Path) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def tools() -> ModuleType:
    """The module resolve_scene: Scene, View, Setup, rotation."""
    return _module("hdwarp_test_resolve_scene", Path(__file__).parents[1] / "aovs" / "resolve_scene.py")


@pytest.fixture(scope="session")
def twin() -> ModuleType:
    """The module texture_twin: look_up, linear_texels."""
    return _module("hdwarp_test_texture_twin", Path(__file__).parent / "texture_twin.py")


@pytest.fixture(scope="session")
def surfaces() -> ModuleType:
    """The module surface_stage."""
    return _module("hdwarp_test_surface_stage", Path(__file__).parent / "surface_stage.py")


@pytest.fixture(scope="session")
def surface_twin() -> ModuleType:
    """The module surface_twin: reflected, halfway."""
    return _module("hdwarp_test_surface_twin", Path(__file__).parent / "surface_twin.py")


@pytest.fixture(scope="session")
def light_twin() -> ModuleType:
    """The module light_twin: irradiance, pieces."""
    return _module("hdwarp_test_light_twin", Path(__file__).parent / "light_twin.py")
