"""trace: view rows -> visibility record: what every pixel of every view sees; and rays of other kinds -> what each of them hits.
Reads tables, knows neither lenses nor AOVs."""

from hdwarp.trace.bundles import RayBundle, RayBundles, RayHits, ray_bundles
from hdwarp.trace.free import occluded, trace_free
from hdwarp.trace.jobs import SceneKinds
from hdwarp.trace.packet import trace, trace_kernel
from hdwarp.trace.single import trace_rays

__all__ = [
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
]
