"""launch: how kernels are compiled and run: compiler options with their fallback, the persistent thread pool, strided launches.

Placeholder until the tracer's own version lands; the signatures are fixed.
"""

from __future__ import annotations

import warp as wp

LANE_OPTIONS: dict[str, object] = {
    "max_unroll": 1,
    "cpu_compiler_flags": "-march=native -mllvm=-inline-threshold=9000 -mllvm=-inline-cold-callsite-threshold=3000 -mllvm=-unroll-full-max-count=1",
}


def launch(kernel: wp.Kernel, count: int, inputs: list, outputs: list = (), *, device: wp.Device | str) -> None:
    """Run ``count`` jobs. The kernel's first three parameters are ``first, step, count``; a thread does one job:
    ``job = first + wp.tid() * step; if job >= count: return``. On the CPU the jobs are dealt to the pool in strides."""
    if count > 0:
        wp.launch(kernel, dim=count, inputs=[0, 1, count, *inputs], outputs=list(outputs), device=device)
