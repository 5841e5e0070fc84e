"""The examples run as a user would run them, and their self-checks hold."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "python" / "hdwarp" / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path, capsys):
    assert importlib.import_module(f"hdwarp.examples.{name}").main([str(tmp_path / "out.exr")]) == 0
    assert (tmp_path / "out.exr").stat().st_size > 1000
    assert capsys.readouterr().out
