"""Fixtures of the exactness tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_NAME = "hdwarp_test_brute_force"


@pytest.fixture(scope="session")
def brute():
    """The module brute_force: small stages, and a float64 ray caster that shares no code with the renderer."""
    if _NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name("brute_force.py"))
        sys.modules[_NAME] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[_NAME]
