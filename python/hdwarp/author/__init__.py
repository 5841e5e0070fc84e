"""author: helpers with which scripts write cameras, products and poses into a stage. Metres and radians in, USD's own units out."""

from __future__ import annotations

from hdwarp.author.cameras import add_camera, look_at, set_intrinsics, set_world_pose
from hdwarp.author.products import add_product

__all__ = ["add_camera", "add_product", "look_at", "set_intrinsics", "set_world_pose"]
