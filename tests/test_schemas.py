"""The codeless schemas: their three copies agree, they register in time, and work without registration where that came too late."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pxr import Plug, Sdf, Usd, UsdGeom

from hdwarp import schema_registration
from hdwarp.schema_registration import CAMERA_API, SITE_API, has_api, is_sensor, sensor_attributes, site_attributes

SCHEMAS = Path(schema_registration.plugin_path()).parent / "schemas"


def _run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("PXR_PLUGINPATH_NAME", "PYTHONWARNINGS")}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=inherited | environment, timeout=120)


@pytest.fixture
def stage() -> Usd.Stage:
    return Usd.Stage.CreateInMemory()


def test_the_schemas_are_known_to_usd():
    assert schema_registration.schemas_known()
    assert Usd.SchemaRegistry().IsAppliedAPISchema(CAMERA_API)
    assert Usd.SchemaRegistry().IsAppliedAPISchema(SITE_API)


@pytest.mark.parametrize(
    ("schema", "namespace", "attributes"),
    [
        (CAMERA_API, schema_registration.SENSOR_NAMESPACE, schema_registration.SENSOR_ATTRIBUTES),
        (SITE_API, schema_registration.SITE_NAMESPACE, schema_registration.SITE_ATTRIBUTES),
    ],
)
def test_names_types_and_fallbacks_in_code_are_those_of_the_schema(schema, namespace, attributes):
    definition = Usd.SchemaRegistry().FindAppliedAPIPrimDefinition(schema)
    assert {f"{namespace}:{name}" for name in attributes} == set(definition.GetPropertyNames())
    for name, (type_name, fallback) in attributes.items():
        spec = definition.GetSchemaAttributeSpec(f"{namespace}:{name}")
        assert str(spec.typeName) == type_name
        assert (tuple(spec.default) if isinstance(fallback, tuple) else spec.default) == fallback
        assert definition.GetAttributeDefinition(f"{namespace}:{name}").GetVariability() == Sdf.VariabilityUniform


def test_source_and_generated_schema_agree():
    """The generated file is the source's, with docs cut to their first sentence: same classes, attributes, types and fallbacks."""
    source = Sdf.Layer.FindOrOpen(str(SCHEMAS / "schema.usda"))
    generated = Sdf.Layer.FindOrOpen(str(SCHEMAS / "generatedSchema.usda"))
    classes = [name for name in source.rootPrims.keys() if name != "GLOBAL"]  # noqa: SIM118 (a Sdf view, not a dictionary)
    assert classes == list(generated.rootPrims.keys())
    for name in classes:
        ours, theirs = source.rootPrims[name].attributes, generated.rootPrims[name].attributes
        assert sorted(ours.keys()) == sorted(theirs.keys())
        for key in ours.keys():  # noqa: SIM118
            assert (ours[key].typeName, ours[key].default) == (theirs[key].typeName, theirs[key].default)
            assert ours[key].documentation, f"{key} has no doc"


def test_plug_info_names_the_types_of_the_source():
    """Trap: a Types key equal to its alias aborts the process; usdGenSchema's doubled prefix keeps them apart."""
    types = json.loads((SCHEMAS / "plugInfo.json").read_text())["Plugins"][0]["Info"]["Types"]
    source = Sdf.Layer.FindOrOpen(str(SCHEMAS / "schema.usda"))
    for key, info in types.items():
        alias = info["alias"]["UsdSchemaBase"]
        assert key != alias
        assert source.rootPrims[alias].customData["apiSchemaType"] == "singleApply"
        assert list(source.rootPrims[alias].customData["apiSchemaCanOnlyApplyTo"]) == info["apiSchemaCanOnlyApplyTo"]
    assert len(types) == 2


@pytest.mark.slow
@pytest.mark.skipif(Usd.GetVersion() < (0, 26, 8), reason="usdGenSchema of usd-core before 26.8 does not find usd/schema.usda")
def test_generator_makes_the_committed_files(tmp_path):
    pytest.importorskip("jinja2", reason="usdGenSchema needs jinja2 (extra schema)")
    subprocess.run(
        [sys.executable, "-m", "pxr.Usd.usdGenSchema", str(SCHEMAS / "schema.usda"), str(tmp_path)], check=True, capture_output=True
    )
    assert (tmp_path / "generatedSchema.usda").read_text() == (SCHEMAS / "generatedSchema.usda").read_text()
    lines = [line for line in (tmp_path / "plugInfo.json").read_text().splitlines() if not line.startswith("#")]
    assert json.loads("\n".join(lines))["Plugins"][0]["Info"] == json.loads((SCHEMAS / "plugInfo.json").read_text())["Plugins"][0]["Info"]


def test_a_marked_camera_reads_back(stage):
    prim = UsdGeom.Camera.Define(stage, "/Camera").GetPrim()
    assert not has_api(prim, CAMERA_API)
    assert not is_sensor(prim)
    assert prim.CanApplyAPI(CAMERA_API)
    prim.ApplyAPI(CAMERA_API)
    assert is_sensor(prim)
    assert sensor_attributes(prim) == {"enabled": True, "preset": "", "rate": 0.0, "dataTypes": (), "readoutTime": 0.0}
    prim.GetAttribute("hdwarp:sensor:rate").Set(30.0)
    prim.GetAttribute("hdwarp:sensor:dataTypes").Set(["color", "primId"])
    prim.GetAttribute("hdwarp:sensor:enabled").Set(False)
    assert sensor_attributes(prim)["rate"] == 30.0
    assert sensor_attributes(prim)["dataTypes"] == ("color", "primId")
    assert not is_sensor(prim)


def test_a_site_reads_back(stage):
    prim = UsdGeom.Xform.Define(stage, "/Site").GetPrim()
    prim.ApplyAPI(SITE_API)
    assert has_api(prim, SITE_API)
    assert site_attributes(prim) == {"name": ""}
    prim.GetAttribute("hdwarp:site:name").Set("left foot/toe")
    assert site_attributes(prim) == {"name": "left foot/toe"}


def test_schemas_apply_to_cameras_and_xformables_only(stage):
    assert not UsdGeom.Cube.Define(stage, "/Cube").GetPrim().CanApplyAPI(CAMERA_API)
    assert not UsdGeom.Scope.Define(stage, "/Scope").GetPrim().CanApplyAPI(SITE_API)
    assert UsdGeom.Cube.Define(stage, "/Cube").GetPrim().CanApplyAPI(SITE_API)


def test_import_before_the_first_stage_is_in_time():
    """Also when pxr itself was imported before: only an open stage closes the registry."""
    run = _run(
        "from pxr import Usd, UsdGeom\nimport hdwarp\nstage = Usd.Stage.CreateInMemory()\n"
        "prim = UsdGeom.Camera.Define(stage, '/C').GetPrim()\nprim.ApplyAPI('HdWarpCameraAPI')\n"
        "print(prim.GetAttribute('hdwarp:sensor:enabled').Get())"
    )
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "True", "")


LATE = """
from pxr import Sdf, Usd, UsdGeom
stage = Usd.Stage.CreateInMemory()
prim = UsdGeom.Camera.Define(stage, '/Camera').GetPrim()
import hdwarp
from hdwarp.schema_registration import CAMERA_API, has_api, is_sensor, schemas_known, sensor_attributes
assert not schemas_known()
assert not is_sensor(prim)
assert sensor_attributes(prim)['enabled'] is True
prim.CreateAttribute('hdwarp:sensor:rate', Sdf.ValueTypeNames.Double).Set(25.0)
prim.AddAppliedSchema(CAMERA_API)
assert has_api(prim, CAMERA_API) and is_sensor(prim)
assert sensor_attributes(prim)['rate'] == 25.0 and sensor_attributes(prim)['dataTypes'] == ()
"""


def test_too_late_everything_works_and_one_warning_says_so():
    run = _run(LATE)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("RuntimeWarning") == 1
    assert "Import hdwarp before the first stage is opened" in run.stderr
    assert run.stderr.startswith("<string>:5: "), "the warning points at the user's own import"


def test_too_late_but_on_the_plugin_path_is_in_time():
    run = _run(LATE.replace("assert not schemas_known()", "assert schemas_known()"), PXR_PLUGINPATH_NAME=schema_registration.plugin_path())
    assert (run.returncode, run.stderr) == (0, "")


def test_import_leaves_the_schema_registry_open_to_others(tmp_path):
    """Importing hdwarp before any stage must not close USD's registry: a user's own codeless schema registered after it works."""
    (tmp_path / "generatedSchema.usda").write_text('#usda 1.0\nclass "LaterAPI"\n{\n    int later:number = 7\n}\n')
    plugin = {"Name": "later", "Type": "resource", "Root": ".", "ResourcePath": ".", "LibraryPath": ""}
    plugin["Info"] = {
        "Types": {"TestLaterAPI": {"alias": {"UsdSchemaBase": "LaterAPI"}, "bases": ["UsdAPISchemaBase"], "schemaKind": "singleApplyAPI"}}
    }
    plugin["Info"]["Types"]["TestLaterAPI"]["schemaIdentifier"] = "LaterAPI"
    (tmp_path / "plugInfo.json").write_text(json.dumps({"Plugins": [plugin]}))
    run = _run(
        "from pxr import Plug, Usd, UsdGeom\nimport hdwarp\n"
        f"Plug.Registry().RegisterPlugins({str(tmp_path)!r})\n"
        "stage = Usd.Stage.CreateInMemory()\nprim = stage.DefinePrim('/P')\nprim.ApplyAPI('LaterAPI')\n"
        "print(prim.GetAttribute('later:number').Get())"
    )
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "7", "")


def test_registering_twice_does_nothing():
    count = len(Plug.Registry().GetAllPlugins())
    schema_registration.register()
    assert len(Plug.Registry().GetAllPlugins()) == count
