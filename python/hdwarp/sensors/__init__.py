"""sensors: what robots carry, on top of the tracer. `SensorCamera` works; the others are the contract's names, not carried out yet."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from hdwarp.later import SensorManager, not_yet

if TYPE_CHECKING:
    from hdwarp.sensors.camera import RayMode, SensorCamera

_LAZY = {"RayMode": "hdwarp.sensors.camera", "SensorCamera": "hdwarp.sensors.camera"}

Camera = not_yet("hdwarp.sensors.Camera")
RayCaster = not_yet("hdwarp.sensors.RayCaster")
RayCasterCamera = not_yet("hdwarp.sensors.RayCasterCamera")
Lidar = not_yet("hdwarp.sensors.Lidar")
Imu = not_yet("hdwarp.sensors.Imu")
Contact = not_yet("hdwarp.sensors.Contact")
ContactSensor = not_yet("hdwarp.sensors.ContactSensor")
ContactForce = not_yet("hdwarp.sensors.ContactForce")
FrameTransformer = not_yet("hdwarp.sensors.FrameTransformer")
JointTorque = not_yet("hdwarp.sensors.JointTorque")
Proximity = not_yet("hdwarp.sensors.Proximity")
HeightScanner = not_yet("hdwarp.sensors.HeightScanner")
DepthCamera = not_yet("hdwarp.sensors.DepthCamera")
GridPattern = not_yet("hdwarp.sensors.GridPattern")
LidarPattern = not_yet("hdwarp.sensors.LidarPattern")
BpearlPattern = not_yet("hdwarp.sensors.BpearlPattern")
PinholePattern = not_yet("hdwarp.sensors.PinholePattern")

__all__ = [
    "BpearlPattern",
    "Camera",
    "Contact",
    "ContactForce",
    "ContactSensor",
    "DepthCamera",
    "FrameTransformer",
    "GridPattern",
    "HeightScanner",
    "Imu",
    "JointTorque",
    "Lidar",
    "LidarPattern",
    "PinholePattern",
    "Proximity",
    "RayCaster",
    "RayCasterCamera",
    "RayMode",
    "SensorCamera",
    "SensorManager",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'hdwarp.sensors' has no attribute '{name}'")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
