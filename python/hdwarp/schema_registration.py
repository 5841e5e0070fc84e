"""schema_registration: makes the plugin and its schemas known to USD, and reads the schemas' attributes where that came too late.

USD builds its registry of schemas once, when the first stage is opened, and never looks again. `import hdwarp` therefore registers
before that; where a stage is open already, `ApplyAPI` and attribute fallbacks do not work, but everything hdWarp does still works,
because `sensor_attributes` knows names and fallbacks itself.
"""

from __future__ import annotations

import functools
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from pxr import Plug

if TYPE_CHECKING:
    from pxr import Usd

PLUGIN_NAME = "hdWarp"
CAMERA_API = "HdWarpCameraAPI"
SITE_API = "HdWarpSiteAPI"

# Name under the namespace: type name, fallback. The same as schemas/schema.usda; a test compares them.
SENSOR_NAMESPACE = "hdwarp:sensor"
SENSOR_ATTRIBUTES: dict[str, tuple[str, object]] = {
    "enabled": ("bool", True),
    "preset": ("token", ""),
    "rate": ("double", 0.0),
    "dataTypes": ("token[]", ()),
    "readoutTime": ("double", 0.0),
}
SITE_NAMESPACE = "hdwarp:site"
SITE_ATTRIBUTES: dict[str, tuple[str, object]] = {"name": ("string", "")}

_TOO_LATE = (
    "hdwarp was imported after USD had already opened a stage, too late to add its schemas to this process: "
    "prim.ApplyAPI('HdWarpCameraAPI') will fail, and unauthored hdwarp:* attributes have no fallbacks in USD. Rendering is not affected. "
    "Import hdwarp before the first stage is opened, or set PXR_PLUGINPATH_NAME to hdwarp.plugin_path() before the process starts."
)


@functools.cache
def plugin_path() -> str:
    """Folder to put on PXR_PLUGINPATH_NAME: describes the renderer, and includes the schemas and the usdview menu."""
    package = Path(__file__).resolve().parent
    for folder in (package / "_usd" / "plugin", package.parents[1] / "plugin"):  # an installed wheel, a source checkout
        if (folder / "plugInfo.json").is_file():
            return str(folder)
    raise FileNotFoundError(
        f"hdwarp's USD plugin (plugInfo.json) is neither in {package / '_usd' / 'plugin'} nor in {package.parents[1] / 'plugin'}"
    )


def register() -> None:
    """Register plugin and schemas with USD; called by `import hdwarp`. Does nothing where PXR_PLUGINPATH_NAME did it."""
    registry = Plug.Registry()
    if not registry.GetPluginWithName(PLUGIN_NAME):
        registry.RegisterPlugins(plugin_path())
        if _a_stage_may_be_open():
            schemas_known()


def _a_stage_may_be_open() -> bool:
    """Whether it does no harm to ask USD's schema registry, which asking would build, and so close to later plugins, if nobody had yet."""
    if "pxr.Usd" not in sys.modules:
        return False
    from pxr import Sdf

    return bool(Sdf.Layer.GetLoadedLayers())


@functools.cache
def schemas_known() -> bool:
    """Whether USD knows hdWarp's schemas in this process; warns, once, if not. Ask only when a stage is open."""
    from pxr import Usd

    if Usd.SchemaRegistry().FindAppliedAPIPrimDefinition(CAMERA_API):
        return True
    warnings.warn(_TOO_LATE, RuntimeWarning, stacklevel=4)
    return False


def has_api(prim: Usd.Prim, schema: str) -> bool:
    """Whether ``schema`` (CAMERA_API, SITE_API) is applied to the prim, known to USD or not."""
    return schema in prim.GetAppliedSchemas() or (not schemas_known() and schema in _authored_api_schemas(prim))


def _authored_api_schemas(prim: Usd.Prim) -> list[str]:
    """The apiSchemas metadata as composed; USD leaves out of GetAppliedSchemas what it does not know."""
    listed = prim.GetMetadata("apiSchemas")
    return list(listed.GetAppliedItems()) if listed else []


def is_sensor(prim: Usd.Prim) -> bool:
    """Whether the prim is marked as a sensor (HdWarpCameraAPI) and enabled."""
    return has_api(prim, CAMERA_API) and bool(sensor_attributes(prim)["enabled"])


def sensor_attributes(prim: Usd.Prim) -> dict[str, object]:
    """The values of HdWarpCameraAPI on a prim, by name without namespace; the schema's fallback where nothing is authored.

    Works on marked and unmarked prims, and whether or not USD knows the schema.
    """
    return _read(prim, SENSOR_NAMESPACE, SENSOR_ATTRIBUTES)


def site_attributes(prim: Usd.Prim) -> dict[str, object]:
    """The values of HdWarpSiteAPI on a prim, by name without namespace, with the schema's fallbacks."""
    return _read(prim, SITE_NAMESPACE, SITE_ATTRIBUTES)


def _read(prim: Usd.Prim, namespace: str, attributes: dict[str, tuple[str, object]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, (_, fallback) in attributes.items():
        attribute = prim.GetAttribute(f"{namespace}:{name}")
        value = attribute.Get() if attribute else None
        if value is None:
            values[name] = fallback
        elif isinstance(fallback, tuple):
            values[name] = tuple(value)
        else:
            values[name] = value
    return values
