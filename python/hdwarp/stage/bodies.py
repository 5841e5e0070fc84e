"""stage.bodies: rigid bodies and sites: named frames without scale."""

from __future__ import annotations

import numpy as np
from pxr import Gf

from hdwarp.errors import Diagnostics
from hdwarp.stage import transforms


def read_frames(found: dict[str, Gf.Matrix4d], what: str, metres_per_unit: float, diagnostics: Diagnostics) -> dict[str, np.ndarray]:
    """World poses [m] of prims by path, in path order; rigid. One whose matrix cannot be one is left out, with a diagnostic."""
    paths = sorted(found)
    world = transforms.in_metres(transforms.columns_from_gf([found[path] for path in paths]), metres_per_unit)
    finite, invertible = transforms.usable(world)
    near = np.abs(world[:, :3, 3]).max(axis=1) <= transforms.LARGEST
    poses = {}
    for k, path in enumerate(paths):
        if invertible[k] and near[k]:
            poses[path] = transforms.rigid(world[k])
        else:
            far = f"puts it beyond {transforms.LARGEST:g} m" if finite[k] else "is not finite"
            said = "is singular (a scale of 0?)" if finite[k] and near[k] else far
            diagnostics.error(path, "singular-transform", f"the transform of the {what} {said}; it is no {what}. Mend the xformOps")
    return poses
