"""physics: MuJoCo beside the renderer: MJCF import, stepping, body poses. Not carried out yet; the names are the contract's."""

from __future__ import annotations

from hdwarp.later import not_yet

Mujoco = not_yet("hdwarp.physics.Mujoco")
import_mjcf = not_yet("hdwarp.physics.import_mjcf")

__all__ = ["Mujoco", "import_mjcf"]
