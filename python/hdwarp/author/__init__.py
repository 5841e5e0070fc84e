"""author: helpers with which scripts write cameras, products, worlds and poses into a stage. Metres and radians in, USD's own units out."""

from __future__ import annotations

from hdwarp.author.cameras import add_camera, look_at, set_intrinsics, set_world_pose
from hdwarp.author.products import add_product
from hdwarp.author.worlds import author_worlds

__all__ = ["add_camera", "add_product", "author_worlds", "look_at", "set_intrinsics", "set_world_pose"]
