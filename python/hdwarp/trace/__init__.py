"""trace: view rows -> visibility record: what every pixel of every view sees. Reads tables, knows neither lenses nor AOVs."""

from hdwarp.trace.packet import SceneKinds, trace, trace_kernel

__all__ = ["SceneKinds", "trace", "trace_kernel"]
