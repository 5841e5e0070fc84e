"""trace: view rows -> visibility record: what every pixel of every view sees; and rays of other kinds -> what each of them hits.
Reads tables, knows neither lenses nor AOVs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from hdwarp.trace.jobs import EVERYTHING, SceneKinds
from hdwarp.trace.packet import trace, trace_kernel, trace_step

if TYPE_CHECKING:
    from hdwarp.trace.bundles import RayBundle, RayBundles, RayHits, ray_bundles
    from hdwarp.trace.free import occluded, trace_free
    from hdwarp.trace.single import trace_rays

# Loaded at first use: declaring kernels takes time at every start, and pictures do not need these.
_LAZY = {
    "RayBundle": "hdwarp.trace.bundles",
    "RayBundles": "hdwarp.trace.bundles",
    "RayHits": "hdwarp.trace.bundles",
    "ray_bundles": "hdwarp.trace.bundles",
    "occluded": "hdwarp.trace.free",
    "trace_free": "hdwarp.trace.free",
    "trace_rays": "hdwarp.trace.single",
}

__all__ = [
    "EVERYTHING",
    "RayBundle",
    "RayBundles",
    "RayHits",
    "SceneKinds",
    "occluded",
    "ray_bundles",
    "trace",
    "trace_free",
    "trace_kernel",
    "trace_rays",
    "trace_step",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'hdwarp.trace' has no attribute '{name}'")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
