"""delegate.layers: colour where surfaces are blended: layer after layer is traced, resolved and put behind what is in front of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import warp as wp

from hdwarp.aovs.buffers import flat_pixels
from hdwarp.aovs.registry import aov_spec
from hdwarp.aovs.resolve import ResolvePlan
from hdwarp.shade.layers import MAX_BLENDED, composite, give_out
from hdwarp.tables.structs import Visibility

if TYPE_CHECKING:
    from hdwarp.delegate.render_plan import ViewRecord

LAYERED = ("color", "rgba8")
"""Planes that show what is behind blended surfaces; all others are those of the first surface."""


class Layers:
    """Fills the planes of `LAYERED`. What is seen first is taken from a record; what is behind is traced into one of its own."""

    def __init__(
        self,
        record: ViewRecord,
        outputs: Mapping[str, wp.array],
        clear: Mapping[str, object],
        plan_of: Callable[[ViewRecord, dict[str, wp.array]], ResolvePlan],
    ) -> None:
        """``outputs``: those of `LAYERED` that are wanted; ``plan_of``: resolves planes of a record."""
        self._record, self._behind, self.device = record, record.behind, record.tables.device
        flat = {name: flat_pixels(aov_spec(name), array, self.device) for name, array in outputs.items()}
        self._color, self._rgba8 = flat.get("color"), flat.get("rgba8")
        size = max(array.shape[0] for array in flat.values())
        self._layer, self._total = (wp.zeros(size, dtype=wp.vec4f, device=self.device) for _ in range(2))
        color, rgba8 = (aov_spec(name).clear_values(clear.get(name)) for name in LAYERED)
        self._marks = self._behind.marks()
        self._before = Visibility()  # what the layer in front is of
        for name in ("instance", "key"):
            setattr(self._before, name, wp.zeros_like(getattr(record.visibility, name)))
        self._clear = wp.vec4f(*color), wp.vec4ub(*map(int, rgba8))
        self._plan = plan_of(self._behind, {"color": self._layer})

    def update(self, sample: int) -> None:
        """From what was traced last: sample number ``sample`` of each pixel. Device work only; on the CPU it ends with the last pixel that
        is not opaque."""
        record, behind, device = self._record.visibility, self._behind, self.device
        for name in ("slot", "instance", "key"):
            wp.copy(getattr(behind.visibility, name), getattr(record, name))
        views = behind.views
        for k in range(MAX_BLENDED):
            self._plan.update(sample)
            tiles = views.rows, views.count, views.tile_count
            composite(*tiles, self._layer, behind.visibility, self._total, self._before, self._marks, begin=k == 0, device=device)
            if k + 1 == MAX_BLENDED or (device.is_cpu and not self._marks.tiles.numpy().any()):
                break  # elsewhere looking would mean waiting; layers without marks are quick
            behind.trace_behind(self._marks)
        give_out(views.rows, views.count, views.height, self._total, self._clear, color=self._color, rgba8=self._rgba8, device=device)
