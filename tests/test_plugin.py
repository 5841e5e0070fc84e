"""hdWarp as a USD plugin: what Plug.Registry tells with hdwarp not imported, and the usdview container with a stubbed usdview."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import hdwarp
from hdwarp.delegate.render_settings import DESCRIPTORS
from hdwarp.stage.shapes import SHAPE_TYPES

PLUGIN = Path(hdwarp.plugin_path())

PROGRAM = """
import json, sys
from pxr import Plug, Usd, UsdGeom
registry = Plug.Registry()
renderer = registry.GetPluginWithName("hdWarp")
stage = Usd.Stage.CreateInMemory()
camera = UsdGeom.Camera.Define(stage, "/Camera").GetPrim()
camera.ApplyAPI("HdWarpCameraAPI")
print(json.dumps({
    "renderer": renderer.metadata["HdWarpRenderer"],
    "schemas": sorted(registry.GetPluginWithName("hdWarpSchemas").metadata["Types"]),
    "usdview": sorted(registry.GetPluginWithName("hdwarp_usdview").metadata["Types"]),
    "enabled": camera.GetAttribute("hdwarp:sensor:enabled").Get(),
    "imported": sorted(name for name in sys.modules if name.split(".")[0] in ("hdwarp", "warp")),
}))
"""


@pytest.fixture(scope="module")
def found() -> dict:
    """What a process sees that has only PXR_PLUGINPATH_NAME and usd-core."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PXR_PLUGINPATH_NAME")}
    environment["PXR_PLUGINPATH_NAME"] = str(PLUGIN)
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    return json.loads(run.stdout)


def test_plugin_and_schemas_are_found_without_importing_hdwarp(found):
    assert found["imported"] == []
    assert found["schemas"] == ["HdWarpHdWarpCameraAPI", "HdWarpHdWarpSiteAPI"]
    assert found["usdview"] == ["hdwarp_usdview.HdWarpContainer"]
    assert found["enabled"] is True


def test_supported_prim_types_are_told(found):
    renderer, delegate = found["renderer"], hdwarp.RenderDelegate
    more = ["tetMesh", "nurbsPatch", "basisCurves", "nurbsCurves", "points", "hermiteCurves"]
    assert renderer["supportedRprimTypes"] == ["mesh", *(name.lower() for name in SHAPE_TYPES), *more]  # Hydra's names, and one of ours
    assert renderer["supportedRprimTypes"] == list(delegate.supported_rprim_types)
    lights = [f"{kind}Light" for kind in ("distant", "sphere", "disk", "rect", "cylinder", "dome")]
    assert renderer["supportedSprimTypes"] == list(delegate.supported_sprim_types) == ["camera", "material", *lights]
    assert renderer["supportedBprimTypes"] == list(delegate.supported_bprim_types) == ["renderBuffer", "renderSettings"]


def test_aovs_are_those_of_the_delegate(found):
    told, delegate = dict(found["renderer"]["aovs"]), hdwarp.RenderDelegate("cpu")
    assert told.pop("primvars:*")
    assert list(told) == sorted(told)  # Plug hands dictionaries on in sorted order
    assert set(told) == set(delegate.aov_names)
    for name, description in told.items():
        descriptor = delegate.default_aov_descriptor(name)
        assert description["format"] == descriptor.format, name
        assert description.get("multiSampled", False) == descriptor.multi_sampled, name
        assert np.all(float(description["clear"]) == np.asarray(descriptor.clear_value)), name
        assert (description["meaning"], description.get("unit", "")) == (descriptor.meaning, descriptor.unit), name


def test_settings_are_those_of_the_delegate(found):
    """A dictionary each: the defaults keep their types through JSON and Plug."""
    expected = {setting.key: {"name": setting.name, "default": setting.default, "help": setting.help} for setting in DESCRIPTORS}
    assert found["renderer"]["settings"] == expected
    assert [type(found["renderer"]["settings"][key]["default"]) for key in expected] == [type(s.default) for s in DESCRIPTORS]


def test_plugin_path_holds_a_plug_info():
    assert "../schemas/" in json.loads((PLUGIN / "plugInfo.json").read_text())["Includes"]
    assert (PLUGIN / "../schemas/generatedSchema.usda").is_file()


# ------------------------------------------------------------------------------------------------------------------- usdview


class Menu:
    def __init__(self) -> None:
        self.items: list[object] = []
        self.menus: dict[str, Menu] = {}

    def addItem(self, command: object) -> None:
        self.items.append(command)

    def findOrCreateSubmenu(self, name: str) -> Menu:
        return self.menus.setdefault(name, Menu())

    findOrCreateMenu = findOrCreateSubmenu


@pytest.fixture
def container(monkeypatch):
    """The usdview module, loaded with a stub of the one class it takes from usdview (usd-core has no usdview)."""
    stub = types.ModuleType("pxr.Usdviewq.plugin")
    stub.PluginContainer = type("PluginContainer", (), {})
    monkeypatch.setitem(sys.modules, "pxr.Usdviewq", types.ModuleType("pxr.Usdviewq"))
    monkeypatch.setitem(sys.modules, "pxr.Usdviewq.plugin", stub)
    monkeypatch.setattr("pxr.Tf.Type.Define", lambda cls: None)  # Tf knows no base "PluginContainer" here
    spec = importlib.util.spec_from_file_location("hdwarp_usdview", PLUGIN / "usdview" / "hdwarp_usdview.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_usdview_menu_has_one_entry_an_aov(container):
    registered = {}

    class Registry:
        def registerCommandPlugin(self, name, display_name, callback):
            assert name not in registered, "a name used twice disables all of usdview's plugins"
            registered[name] = callback
            return name

    menu_bar = Menu()
    plugin = container.HdWarpContainer()
    plugin.registerPlugins(Registry(), None)
    plugin.configureView(None, menu_bar)
    assert menu_bar.menus["hdWarp"].menus["Render current camera"].items == list(registered)
    assert len(registered) == len(container.AOVS)


def test_usdview_command_renders_what_usdview_shows(container, monkeypatch):
    asked, saved = {}, []

    class Frame:
        diagnostics = ()

        def save(self, path):
            saved.append(path)

    def render(stage, **options):
        asked.update(options, stage=stage)
        return Frame()

    monkeypatch.setitem(vars(hdwarp), "render", render)
    monkeypatch.setattr(container, "_ask_for_file", lambda api: "picture.exr")
    camera = types.SimpleNamespace(GetPath=lambda: "/World/Camera")
    api = types.SimpleNamespace(stage="stage", cameraPrim=camera, frame=12.0, viewportSize=(320.0, 200.0))
    assert container.render_current_camera(api, "normal") == "picture.exr"
    assert saved == ["picture.exr"]
    assert asked == {"stage": "stage", "camera": "/World/Camera", "time": 12.0, "resolution": (320, 200), "aovs": ("normal",)}


def test_usdview_command_does_nothing_when_the_dialog_is_closed(container, monkeypatch):
    monkeypatch.setattr(container, "_ask_for_file", lambda api: "")
    assert container.render_current_camera(types.SimpleNamespace()) is None


def test_loading_the_usdview_module_loads_no_warp():
    program = (
        "import sys, types\nfrom pxr import Tf\n"
        "stub = types.ModuleType('pxr.Usdviewq.plugin'); stub.PluginContainer = type('PluginContainer', (), {})\n"
        "sys.modules['pxr.Usdviewq'] = types.ModuleType('pxr.Usdviewq'); sys.modules['pxr.Usdviewq.plugin'] = stub\n"
        f"Tf.Type.Define = lambda cls: None\nsys.path.insert(0, {str(PLUGIN / 'usdview')!r})\n"
        "import hdwarp_usdview\nassert 'warp' not in sys.modules and 'hdwarp' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
