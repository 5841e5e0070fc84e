"""Fixtures of the trace tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_NAME = "hdwarp_test_trace_scene"


@pytest.fixture(scope="session")
def tools():
    """The module trace_scene: Scene, Instance, cameras, shapes of triangles, a float64 ray caster."""
    if _NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name("trace_scene.py"))
        sys.modules[_NAME] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[_NAME]
