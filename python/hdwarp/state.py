"""state: where the bodies of a scene are. Device arrays that kernels, physics and NumPy may write."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp


@dataclass(eq=False)
class State:
    """``body_q`` (body_count,) transformf and ``body_qd`` (body_count,) spatial vector (linear, angular), in the frame of their world."""

    body_q: wp.array
    body_qd: wp.array
    time: float = 0.0  # seconds

    def copy(self) -> State:
        return State(wp.clone(self.body_q), wp.clone(self.body_qd), self.time)
