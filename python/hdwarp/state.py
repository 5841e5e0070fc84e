"""state: where the bodies of a scene are. Device arrays that kernels, physics and NumPy may write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import warp as wp

if TYPE_CHECKING:
    from hdwarp.tables.bodies import BodyTable


@dataclass(eq=False)
class State:
    """``body_q`` (body_count,) transformf and ``body_qd`` (body_count,) spatial vector (linear, angular), in the frame of their world; rows
    as in `Scene.bodies`."""

    body_q: wp.array
    body_qd: wp.array | None = None
    time: float = 0.0  # seconds
    bodies: BodyTable | None = None  # whose rows these are, where that is known ...
    bodies_version: int = 0  # ... and which of its layouts

    def copy(self) -> State:
        body_qd = None if self.body_qd is None else wp.clone(self.body_qd)
        return State(wp.clone(self.body_q), body_qd, self.time, self.bodies, self.bodies_version)
