"""Rays of one's own for tests: bundles, sensors read as NumPy planes, and how near two sets of planes have to be."""

from __future__ import annotations

import numpy as np
import warp as wp
from pxr import Gf, Usd, UsdGeom
from tests.sensors.world_stages import AOVS

ENV = "/World/envs/env_0"
RANGE = "distance_to_camera"
PLANES = (*AOVS, RANGE, "cameraDepth", "position", "Peye", "Neye", "rgba8", "albedo", "instanceRow")
IDS = ("primId", "instanceId", "elementId", "triangleId", "materialId", "bodyId", "worldId", "instanceRow")


def rays_of(directions: np.ndarray, origins: object = 0.0) -> np.ndarray:
    """(..., H, W, 1, 2, 3) of directions (..., H, W, 3)."""
    directions = np.asarray(directions, float)
    return np.stack([np.broadcast_to(origins, directions.shape), directions], axis=-2)[..., None, :, :]


def pinhole(width: int, height: int, focal: float = 18.0) -> np.ndarray:
    """(H, W, 3): the rays through the pixels' centres of `world_stages.camera`, not unit."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    x, y = (x / width - 0.5) * 24 / focal, (0.5 - y / height) * 24 / focal * height / width
    return np.stack([x, y, -np.ones_like(x)], axis=-1)


def spinning(channels: int = 16, steps: int = 360) -> np.ndarray:
    """(channels, steps, 3): x forward, y left, z up; from 15 degrees down to 15 up."""
    elevation, azimuth = np.meshgrid(np.radians(np.linspace(-15, 15, channels)), np.radians(np.arange(steps)), indexing="ij")
    return np.stack([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)], axis=-1)


def on_device(rays: np.ndarray, device) -> wp.array:
    """(H, W, S, 2) or (N * H, W, S, 2) vec3f."""
    return wp.array(rays.reshape(-1, *rays.shape[-4:]).astype(np.float32), dtype=wp.vec3f, device=device)


def site(stage: Usd.Stage, path: str, at=(0.0, 0.0, 0.0), turn: float = 0.0) -> None:
    xform = UsdGeom.Xform.Define(stage, path)
    xform.AddTranslateOp().Set(Gf.Vec3d(*at))
    xform.AddRotateZOp().Set(turn)
    xform.GetPrim().AddAppliedSchema("HdWarpSiteAPI")


def look(sensor, state=None, aovs=None, **options) -> dict[str, np.ndarray]:
    """Planes as NumPy arrays; all there are unless told."""
    aovs = [name for name in PLANES if not name.startswith("primvars") or sensor.scene.tables.primvar_names()] if aovs is None else aovs
    out = sensor.allocate(aovs)
    sensor.update(state, out, **options)
    return {name: array.numpy().copy() for name, array in out.items()}


def agree(ours: dict, theirs: dict, *, rtol: float = 1e-6, atol: float = 2e-5) -> None:
    """Equal ids; distances within ``rtol`` (100 times that where a ray grazes), all else within ``atol``."""
    grazes = np.zeros(1, bool)
    if "Neye" in theirs and "Peye" in theirs:
        with np.errstate(invalid="ignore"):
            grazes = np.abs((theirs["Neye"] * theirs["Peye"]).sum(axis=-1)) <= 0.1 * np.linalg.norm(theirs["Peye"], axis=-1)
    for name in ours:
        if name in IDS:
            assert np.array_equal(ours[name], theirs[name]), name
        elif name in (RANGE, "distance_to_image_plane", "cameraDepth"):
            assert np.array_equal(np.isfinite(ours[name]), np.isfinite(theirs[name])), name
            with np.errstate(invalid="ignore"):
                error = np.abs(ours[name] - theirs[name]) / np.abs(theirs[name])
            assert not (error > np.where(grazes, 100 * rtol, rtol)).any(), name
        elif name == "rgba8":
            assert np.abs(ours[name].astype(int) - theirs[name]).max() <= 1
        else:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-6, atol=atol, err_msg=name)


def same(ours: dict, theirs: dict) -> None:
    for name in ours:
        assert np.array_equal(ours[name], theirs[name], equal_nan=True), name
