"""The kernels compile for CUDA too, without a driver, and for a debug build with bounds checks."""

from __future__ import annotations

import pytest
import warp as wp

from hdwarp.shade import cutout
from hdwarp.tables import bvh_kernels, refit_kernels
from hdwarp.trace import EVERYTHING, SceneKinds, trace_kernel
from hdwarp.trace.view_rays import view_ray_kernel


@pytest.mark.slow  # CUDA has kernels of its own
@pytest.mark.parametrize(("affine", "peel"), [(False, False), (True, False), (True, True)])
def test_trace_kernel_compiles_to_ptx(tmp_path, affine, peel):
    kernel = trace_kernel(SceneKinds(mesh=True, shapes=True), affine, peel)
    (path,) = wp.compile_aot_module(kernel.module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert ".target sm_80" in path.read_text()


@pytest.mark.parametrize("peel", [pytest.param(False, marks=pytest.mark.slow), True])
def test_kernel_of_given_rays_compiles_to_ptx(tmp_path, peel):
    kernel = view_ray_kernel(EVERYTHING, peel, False)
    (path,) = wp.compile_aot_module(kernel.module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert "trace_view_rays" in path.read_text()


@pytest.mark.parametrize("textured", [pytest.param(False, marks=pytest.mark.slow), True])
def test_cutout_marks_compile_to_ptx(tmp_path, textured):
    (path,) = wp.compile_aot_module(cutout.mark_kernel(textured).module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert "mark_cutouts" in path.read_text()


@pytest.mark.parametrize(("module", "kernel"), [(bvh_kernels, "split_nodes"), (refit_kernels, "refit_items")])
def test_tree_kernels_compile_to_ptx(module, kernel, tmp_path):
    (path,) = wp.compile_aot_module(wp.get_module(module.__name__), arch=80, module_dir=tmp_path, use_ptx=True)
    assert kernel in path.read_text()
