"""Kernels of the tables and views compile for CUDA, with or without a CUDA device here."""

from __future__ import annotations

import importlib

import pytest
import warp as wp


@pytest.mark.parametrize(
    "module", ["hdwarp.tables.instance_kernels", "hdwarp.tables.previous", "hdwarp.tables.written", "hdwarp.views.rows"]
)
def test_kernels_compile_to_ptx(module, tmp_path):
    importlib.import_module(module)
    (path,) = wp.compile_aot_module(wp.get_module(module), arch=80, module_dir=tmp_path, use_ptx=True)
    assert ".entry" in path.read_text()


def test_kernels_of_modules_of_their_own_compile_to_ptx(tmp_path):
    from hdwarp.tables.written import _smooth_normals

    (path,) = wp.compile_aot_module(_smooth_normals.module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert ".entry" in path.read_text() and "fma.rn.f64" not in path.read_text()
