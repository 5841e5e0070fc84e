"""cli.plugins: Python files named on the command line, run before anything is rendered: they register AOVs (`hdwarp.register_aov`)."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from hdwarp.errors import ArgumentError


def load_plugins(paths: Iterable[str]) -> None:
    """Run each file as a module of its own. Raises ArgumentError for one that is not there, is no Python, or fails."""
    for path in paths:
        name = f"hdwarp_plugin_{Path(path).stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not Path(path).is_file():
            raise ArgumentError(f"--plugin {path}: no such Python file (.py)")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # where Warp looks up what functions name
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise ArgumentError(f"--plugin {path}: {type(error).__name__}: {error}") from error
