"""hdWarp turns a USD stage into pixels and ground truth: `hdwarp.render(stage)` for images, `hdwarp.Scene` to keep one open.

Importing it is light: it registers the USD schemas, and loads the rest (Warp, the tracer) when a name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from hdwarp.errors import ArgumentError, Diagnostic, Diagnostics, Error, NotSupported, OutOfMemory, OutputError, Severity, StageError
from hdwarp.schema_registration import plugin_path, register

if TYPE_CHECKING:
    from hdwarp import author, physics, sensors
    from hdwarp.aovs.user_aovs import ShadeHit, register_aov, unregister_aov
    from hdwarp.delegate.aov import AovBinding, AovDescriptor
    from hdwarp.delegate.render_buffer import RenderBuffer
    from hdwarp.delegate.render_delegate import RenderDelegate
    from hdwarp.delegate.render_index import RenderIndex
    from hdwarp.delegate.render_param import RenderParam
    from hdwarp.delegate.render_pass import RenderPass
    from hdwarp.delegate.render_settings import RenderSettings
    from hdwarp.frame import Frame
    from hdwarp.later import SensorManager
    from hdwarp.rendering import render
    from hdwarp.scene import Scene, SyncCounts
    from hdwarp.sensors.camera import RayMode, SensorCamera
    from hdwarp.worlds import authored_worlds, replicate
    from hdwarp.writeback.display import Display

__version__ = "0.1.0"

# Public name: the module that holds it, loaded at first use.
_LAZY = {
    "AovBinding": "hdwarp.delegate.aov",
    "AovDescriptor": "hdwarp.delegate.aov",
    "Display": "hdwarp.writeback.display",
    "Frame": "hdwarp.frame",
    "RayMode": "hdwarp.sensors.camera",
    "RenderBuffer": "hdwarp.delegate.render_buffer",
    "RenderDelegate": "hdwarp.delegate.render_delegate",
    "RenderIndex": "hdwarp.delegate.render_index",
    "RenderParam": "hdwarp.delegate.render_param",
    "RenderPass": "hdwarp.delegate.render_pass",
    "RenderSettings": "hdwarp.delegate.render_settings",
    "Scene": "hdwarp.scene",
    "SensorCamera": "hdwarp.sensors.camera",
    "SensorManager": "hdwarp.later",
    "ShadeHit": "hdwarp.aovs.user_aovs",
    "State": "hdwarp.state",
    "SyncCounts": "hdwarp.scene",
    "author": "hdwarp.author",
    "authored_worlds": "hdwarp.worlds",
    "physics": "hdwarp.physics",
    "register_aov": "hdwarp.aovs.user_aovs",
    "render": "hdwarp.rendering",
    "replicate": "hdwarp.worlds",
    "sensors": "hdwarp.sensors",
    "unregister_aov": "hdwarp.aovs.user_aovs",
}

__all__ = [
    "AovBinding",
    "AovDescriptor",
    "ArgumentError",
    "Diagnostic",
    "Diagnostics",
    "Display",
    "Error",
    "Frame",
    "NotSupported",
    "OutOfMemory",
    "OutputError",
    "RayMode",
    "RenderBuffer",
    "RenderDelegate",
    "RenderIndex",
    "RenderParam",
    "RenderPass",
    "RenderSettings",
    "Scene",
    "SensorCamera",
    "SensorManager",
    "Severity",
    "ShadeHit",
    "StageError",
    "State",
    "SyncCounts",
    "__version__",
    "author",
    "authored_worlds",
    "physics",
    "plugin_path",
    "register_aov",
    "render",
    "replicate",
    "sensors",
    "unregister_aov",
]

register()


def __getattr__(name: str) -> object:
    module_name = _LAZY.get(name)
    if module_name is None:
        raise AttributeError(f"module 'hdwarp' has no attribute '{name}'")
    module = importlib.import_module(module_name)
    value = getattr(module, name, module) if module_name == f"hdwarp.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
