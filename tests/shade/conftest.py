"""The scene tools of the resolve tests, here too."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_NAME = "hdwarp_test_resolve_scene"


@pytest.fixture(scope="session")
def tools():
    """The module resolve_scene: Scene, View, Setup, rotation."""
    if _NAME not in sys.modules:
        path = Path(__file__).parents[1] / "aovs" / "resolve_scene.py"
        spec = importlib.util.spec_from_file_location(_NAME, path)
        sys.modules[_NAME] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[_NAME]
