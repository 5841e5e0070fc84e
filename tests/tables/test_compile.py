"""Kernels of the tables and views compile for CUDA, with or without a CUDA device here."""

from __future__ import annotations

import importlib

import pytest
import warp as wp


@pytest.mark.parametrize("module", ["hdwarp.tables.instances", "hdwarp.tables.previous", "hdwarp.views.rows"])
def test_kernels_compile_to_ptx(module, tmp_path):
    importlib.import_module(module)
    (path,) = wp.compile_aot_module(wp.get_module(module), arch=80, module_dir=tmp_path, use_ptx=True)
    assert ".entry" in path.read_text()
