"""Fixtures of the writeback tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

_spec = importlib.util.spec_from_file_location("writeback_fakes", Path(__file__).with_name("fakes.py"))
_fakes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fakes)


@pytest.fixture
def fakes() -> ModuleType:
    """`make_frame` and `planes`: a frame that no renderer made."""
    return _fakes


@pytest.fixture
def frame(fakes: ModuleType):
    return fakes.make_frame()
