"""The run: usd-core's validators beside our checks, each thing told once, chosen codes, and a check that fails."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pxr
import pytest

import hdwarp
from hdwarp.errors import ArgumentError, Diagnostic, Severity
from hdwarp.stage.checks import lenses, run, upstream
from hdwarp.stage.checks.run import RULES, Choice, catalogue
from hdwarp.stage.checks.told import MEANINGS, finding_of

NESTED = 'def Sphere "Ball"\n{\ndef Cube "Box"\n{\n}\n}\n'
ENCAPSULATION = "usdGeomValidators:EncapsulationChecker.InvalidNestedGprims"
pytest.importorskip("pxr.UsdValidation")


def test_usd_core_s_validators_are_run(found):
    (finding,) = [item for item in found(NESTED) if item.source == "usd"]
    assert finding.code == ENCAPSULATION
    assert finding.paths == ("/World/Ball/Box",)
    assert finding.cure


def test_all_of_them_as_they_would_say_by_themselves(found):
    """Stage by stage the names that UsdValidation gives when asked for everything at once, but for what is told by a code of ours."""
    from pxr import Usd, UsdValidation

    registry = UsdValidation.ValidationRegistry()
    validators = [registry.GetOrLoadValidatorByName(item.name) for item in registry.GetAllValidatorMetadata()]
    text = NESTED + (
        'def Mesh "M" (prepend apiSchemas = ["SkelBindingAPI"])\n{\nfloat3[] points = []\nrel skel:skeleton = </World>\n}\n'
        'def Material "L"\n{\ndef Shader "S"\n{\nuniform token info:id = "Strange"\n}\n}\n'
        'def Xform "G" (references = @./gone.usda@)\n{\nrel material:binding = </World/L>\n}\n'
    )
    findings = found(text)
    ours = {"composition", "material-binding-api"}
    assert ours <= {item.code for item in findings}
    stage = Usd.Stage.Open(str(found.path))
    theirs = {f"{error.GetIdentifier()}" for error in UsdValidation.ValidationContext(validators).Validate(stage)}
    told_by_ours = {name for name in theirs if "CompositionError" in name or "MaterialBindingApi" in name or "MissingReference" in name}
    assert len(told_by_ours) == 3
    assert {item.code for item in findings if item.source == "usd"} == theirs - told_by_ours


def test_metadata_is_told_once(found):
    codes = [item.code for item in found('#usda 1.0\ndef Sphere "Ball"\n{\n}\n')]
    assert {"stage-meters-per-unit", "stage-up-axis", "stage-default-prim"} <= set(codes)
    assert not [code for code in codes if "Metadata" in code]


def test_types_of_the_same_values_are_a_note_and_others_a_warning(found):
    def severity(kind: str, value: str) -> str:
        text = f'def Camera "Camera"\n{{\n{kind} focalLength = {value}\n}}\ndef Mesh "M"\n{{\nfloat3[] points = []\n}}\n'
        return {item.paths[0]: str(item.severity) for item in found(text) if item.code.endswith("AttributeTypeMismatch")}

    assert severity("double", "50") == {"/World/Camera.focalLength": "warning", "/World/M.points": "note"}
    assert severity("float", "50") == {"/World/M.points": "note"}


def test_without_validators_it_says_so(found, monkeypatch):
    monkeypatch.delattr(pxr, "UsdValidation", raising=False)
    monkeypatch.setitem(sys.modules, "pxr.UsdValidation", None)
    assert upstream.validators() is None
    findings = found(NESTED)
    assert [(item.code, str(item.severity)) for item in findings] == [(upstream.NO_VALIDATORS.code, "note"), ("default-camera", "note")][
        ::-1
    ]
    Choice(skip=("usdGeomValidators:Anything",)).check_patterns()


def test_a_check_that_raises_is_a_finding(found, monkeypatch):
    def breaks(subject):
        raise RuntimeError("no\nsuch luck")
        yield

    monkeypatch.setattr(run, "CHECKS", (lenses.Check(breaks, (lenses.LENS_SCALE,)), *run.CHECKS))
    findings = found(NESTED)
    (failed,) = [item for item in findings if item.code == "check-failed"]
    assert failed.severity is Severity.ERROR
    assert "breaks" in failed.message and "RuntimeError: no such luck" in failed.message
    assert ENCAPSULATION in [item.code for item in findings]  # the others were run
    assert "check-failed" not in [item.code for item in found(NESTED, skip=("camera-lens-scale",))]


@pytest.mark.parametrize("name", ["hdwarp.batch.shots.plan_shots", "hdwarp.cli.inspect.read_as_rendered"])
def test_where_reading_fails_the_rest_is_told(found, monkeypatch, name):
    def fails(*arguments, **options):
        raise hdwarp.Error("out of order")

    monkeypatch.setattr(name, fails)
    codes = {item.code: item for item in found('#usda 1.0\ndef "W" (references = @./gone.usda@)\n{\n' + NESTED + "}\n")}
    assert "out of order" in codes["check-failed"].message
    assert {"composition", "stage-up-axis", ENCAPSULATION} <= set(codes)


def test_a_validator_that_raises_is_a_finding(found, monkeypatch):
    def breaks(stage, prims):
        raise RuntimeError("broken")

    monkeypatch.setattr(upstream, "validators", lambda: [upstream.Validator("some:Validator", "", breaks)])
    (failed,) = [item for item in found(NESTED) if item.code == "check-failed"]
    assert "some:Validator" in failed.message


@pytest.mark.parametrize(
    ("choice", "codes"),
    [
        ({"only": ("camera-*",)}, {"camera-near-zero"}),
        ({"only": ("usdGeomValidators:*",)}, {ENCAPSULATION}),
        ({"only": ("usdGeomValidators:EncapsulationChecker",)}, {ENCAPSULATION}),
        ({"only": ("*.InvalidNestedGprims",)}, {ENCAPSULATION}),
        ({"skip": ("usd*", "default-*", "label-*")}, {"camera-near-zero"}),
        ({"only": ("camera-*", "usd*"), "skip": ("camera-near-*",)}, {ENCAPSULATION}),
    ],
)
def test_codes_are_chosen_by_patterns(found, choice, codes):
    camera = 'def Camera "Camera"\n{\nfloat focalLength = 0.5\nfloat horizontalAperture = 0.4\nfloat2 clippingRange = (0, 9)\n'
    camera += (
        'float verticalAperture = 0.2\ndouble3 xformOp:translate = (0, 0, 5)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    )
    assert {item.code for item in found(camera + NESTED, **choice)} == codes


def test_what_is_skipped_is_not_told_by_usd_core_instead(found):
    """It is ours to tell a missing defaultPrim, binding schema or file; who skips that, does not want to hear of it."""
    text = (
        '#usda 1.0\ndef Xform "World"\n{\nrel material:binding = </World/M>\ndef Material "M"\n{\ndef Shader "S"\n{\n'
        'uniform token info:id = "UsdUVTexture"\nasset inputs:file = @./gone.png@\n}\n}\n}\n'
    )
    ours = ("stage-*", "material-binding-api", "asset-unresolved")
    theirs = ("usd*:StageMetadataChecker", "usdShadeValidators:MaterialBindingApi*", "usdUtilsValidators:MissingReference*")
    assert len({item.code for item in found(text, only=ours)}) == 5
    assert [item.code for item in found(text, skip=ours) if item.source == "usd"] == []
    assert len({item.code for item in found(text, only=theirs)}) == 5


@pytest.mark.parametrize("pattern", ["camera-lense-scale", "nothing*", "usdGeomValidators:Nothing"])
def test_a_pattern_that_matches_no_code_is_refused(pattern):
    with pytest.raises(ArgumentError, match="--list"):
        Choice(skip=(pattern,)).check_patterns()


def test_patterns_of_every_kind_are_known():
    Choice(
        ("camera-*", "xform-op", "usdShadeValidators:ShaderSdrCompliance.MissingSourceType"), ("usdPhysics*", "check-failed")
    ).check_patterns()


def test_an_unresolved_texture_is_told_once_and_with_udim_tiles_not_at_all(found, tmp_path):
    (tmp_path / "tile.1001.png").write_bytes(b"")

    def material(file: str) -> str:
        return f'def Shader "Texture"\n{{\nuniform token info:id = "UsdUVTexture"\nasset inputs:file = @{file}@\n}}\n'

    told = [item for item in found(material("./gone.png")) if "gone.png" in item.message]
    assert [item.code for item in told] == ["asset-unresolved"]
    assert [item.code for item in found(material("./tile.<UDIM>.png")) if "tile" in item.message] == []
    assert [item.code for item in found(material("./none.<UDIM>.png")) if "none" in item.message] == ["asset-unresolved"]


@pytest.mark.parametrize("through", ["the texture", "an input of the material"])
def test_a_missing_texture_of_what_is_drawn_is_told_once(found, through):
    """With what is shown instead; where nothing is bound to the material, as any file that is not there."""
    shader, texture, ours = "/World/L/S", "/World/L/T", through == "the texture"
    files = (
        ("", "asset inputs:file = @gone.png@")
        if ours
        else ("asset inputs:file = @gone.png@", "asset inputs:file.connect = </World/L.inputs:file>")
    )
    text = (
        'def Sphere "Ball" (prepend apiSchemas = ["MaterialBindingAPI"])\n{\nrel material:binding = </World/L>\n}\n'
        f'def Material "L"\n{{\n{files[0]}\ntoken outputs:surface.connect = <{shader}.outputs:surface>\n'
        f'def Shader "S"\n{{\nuniform token info:id = "UsdPreviewSurface"\ncolor3f inputs:diffuseColor = (1, 0, 0)\n'
        f"color3f inputs:diffuseColor.connect = <{texture}.outputs:rgb>\ntoken outputs:surface\n}}\n"
        f'def Shader "T"\n{{\nuniform token info:id = "UsdUVTexture"\n{files[1]}\ncolor3f outputs:rgb\n}}\n}}\n'
    )
    told = [item for item in found(text) if "gone.png" in item.message]
    assert [(item.code, item.paths) for item in told] == [("texture", ("/World/L",))]
    assert "or where none is authored the value of the input" in told[0].message
    unbound = text.replace("rel material:binding = </World/L>", "")
    asset = "/World/L/T.inputs:file" if ours else "/World/L.inputs:file"
    assert ("asset-unresolved", (asset,)) in [(item.code, item.paths) for item in found(unbound) if "gone.png" in item.message]


def test_a_missing_reference_is_told_once(found):
    told = [item for item in found('def Xform "A" (references = @./gone.usda@)\n{\n}\n') if "gone.usda" in item.message]
    assert [(item.code, str(item.severity)) for item in told] == [("composition", "error")]
    assert "mend the path" in told[0].cure


def test_a_broken_binding_is_told_once(found):
    """The reader tells it of what is drawn, with what is drawn instead."""
    text = 'def Sphere "Ball" (prepend apiSchemas = ["MaterialBindingAPI"])\n{\nrel material:binding = </World/Gone>\n}\n'
    assert [item.paths for item in found(text) if item.code == "material-missing"] == [("/World/Ball",)]


def test_cures_are_taken_from_what_the_reader_says():
    def split(message: str) -> tuple[str, str]:
        finding = finding_of(Diagnostic("/a", "code", Severity.ERROR, message))
        return finding.message, finding.cure

    assert split("3 points are NaN; not drawn. Mend the values") == ("3 points are NaN; not drawn", "mend the values")
    assert split("no camera; author its camera relationship") == ("no camera", "author its camera relationship")
    assert split("focalLength is 0; author a value above 0; the camera cannot be rendered")[1] == ""
    assert split("drawn as its control cage") == ("drawn as its control cage", "")


def test_every_code_that_reading_tells_has_a_meaning():
    """A row of MEANINGS a code, and no row without one. Codes of worlds are told where worlds are asked for, which a check does not."""
    package = Path(hdwarp.__file__).parent
    files = [path for path in (package / "stage").rglob("*.py") if path.name != "worlds.py"] + [package / "batch" / "shots.py"]
    calls = {"note", "warning", "error", "refuse", "_error", "_report", "_drop_faces_of"}
    told = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            name = getattr(getattr(node, "func", None), "attr", None) or getattr(getattr(node, "func", None), "id", "")
            if isinstance(node, ast.Call) and name in calls:
                words = [item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
                told.update([word for word in words if re.fullmatch("[a-z]+(-[a-z]+)*", word)][:1])
    own = {rule.code for rule in RULES}
    assert told - own - set(MEANINGS) == set(), "add a row to MEANINGS in stage/checks/told.py"
    assert set(MEANINGS) - told == set(), "nobody tells these"


def test_the_catalogue_has_every_code_once():
    codes = [code for code, *_ in catalogue()]
    assert len(codes) == len(set(codes))
    assert {"camera-lens-scale", "composition", "check-failed", "usdGeomValidators:StageMetadataChecker.*"} <= set(codes)
    assert all(meaning for *_, meaning in catalogue())


BROKEN = (
    'def Camera "A"\n{\ntoken focalLength = "long"\n}\n',
    'def Camera "A"\n{\nfloat focalLength = nan\nfloat horizontalAperture = inf\nfloat2 clippingRange = (nan, inf)\n}\n',
    'def Camera "A"\n{\nfloat focalLength = 1e-38\nfloat horizontalAperture = 1e38\nfloat2 clippingRange = (0, 3e38)\n}\n',
    'def Camera "A"\n{\nfloat focalLength = 3e38\nfloat horizontalAperture = 1e-38\nfloat verticalAperture = 0\n}\n',
    'def Camera "A"\n{\ndouble3 xformOp:translate = (1e300, nan, 0)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n}\n',
    'def Camera "A"\n{\nfloat3 xformOp:scale = (0, 1, 1)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n}\n',
    'def RenderProduct "P"\n{\ntoken camera = "/World"\nint resolution = 3\nfloat pixelAspectRatio = -1\n}\n',
    'def RenderProduct "P"\n{\nrel camera = </World/P>\nuniform int2 resolution = (-1, 0)\nrel orderedVars = [</Nope>, </World/P>]\n}\n',
    'def RenderSettings "S"\n{\nrel products = [</World/S>, </World/S.x>]\ntoken resolution = "big"\n}\n',
    'def Cube "A" (prepend apiSchemas = ["SemanticsLabelsAPI:class"])\n{\nint semantics:labels:class = 3\n}\n',
    'def Cube "A" (prepend apiSchemas = ["SemanticsLabelsAPI:class"])\n{\nrel semantics:labels:class = </World>\n}\n',
    'def Cube "A" (prepend apiSchemas = ["SemanticsLabelsAPI:a:b:c", "SemanticsLabelsAPI"])\n{\ntoken[] semantics:labels:a:b:c = [""]\n}\n',
    'def Cube "A"\n{\ntoken material:binding = "red"\n}\n',
    'def Cube "A"\n{\nrel material:binding = [</World>, </World/A.x>]\nrel material:binding:collection:x = </Gone>\n}\n',
    'def Cube "A"\n{\nrel material:binding = </World/A.material:binding>\n}\n',
    'def Material "M"\n{\ntoken outputs:surface.connect = </World/M.outputs:surface>\n}\n',
    'def Material "M"\n{\ntoken outputs:surface.connect = </Gone.outputs:x>\nint outputs:volume = 3\nrel outputs:other = </Gone>\n}\n',
    'def Shader "S"\n{\nasset inputs:file = @@\nasset[] inputs:files = [@@, @./a.png@]\nrel inputs:relation = </Gone>\n}\n',
    'def Sphere "A"\n{\ndouble radius = 1e200\n}\ndef Sphere "B"\n{\ndouble radius = nan\n}\ndef Cube "C"\n{\ndouble size = 1e-300\n}\n',
    'def Mesh "A"\n{\nint[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 9]\npoint3f[] points = [(nan, 0, 0), (9, 0, inf)]\n}\n',
    'def PointInstancer "I"\n{\nrel prototypes = </World/I>\nint[] protoIndices = [0, 7]\npoint3f[] positions = [(nan, 0, 0)]\n}\n',
    'def Xform "A" (references = [@./gone.usda@, </World/B>])\n{\n}\ndef Xform "B" (references = </World/A>)\n{\n}\n',
    'def "A" (instanceable = true\nreferences = </World/A>)\n{\n}\n',
)
HEADS = (
    "metersPerUnit = -1",
    "metersPerUnit = 0",
    "metersPerUnit = nan",
    "metersPerUnit = 1e300",
    'upAxis = "X"',
    'renderSettingsPrimPath = "not a path"',
    'defaultPrim = "A/B"',
    "startTimeCode = 5\nendTimeCode = nan",
    "startTimeCode = 9\nendTimeCode = -9",
)


@pytest.mark.parametrize("text", BROKEN)
def test_no_check_fails_on_broken_prims(found, text):
    codes = [item.code for item in found(text + NESTED)]
    assert "check-failed" not in codes
    assert ENCAPSULATION in codes


@pytest.mark.parametrize("head", HEADS)
def test_no_check_fails_on_broken_metadata(found, head):
    codes = [item.code for item in found(f'#usda 1.0\n(\n{head}\n)\ndef Xform "World"\n{{\n{BROKEN[2]}{NESTED}}}\n')]
    assert "check-failed" not in codes
    assert ENCAPSULATION in codes


def test_a_binding_that_leads_to_no_material_is_told_once(found):
    """By our code, on the prim; a collection's binding beside it stays usd-core's to tell, and so does what is asked for by its name."""
    text = (
        'def Sphere "Ball" (prepend apiSchemas = ["MaterialBindingAPI"])\n{\nrel material:binding = </World/Gone>\n}\n'
        'def Xform "Empty" (prepend apiSchemas = ["MaterialBindingAPI"])\n{\nrel material:binding = </World/Ball>\n}\n'
    )
    theirs = "usdShadeValidators:MaterialBindingCollectionValidator.InvalidResourcePath"
    told = [(item.code, item.paths) for item in found(text) if "material" in item.code.lower()]
    assert told == [("material-missing", ("/World/Ball",)), ("material-missing", ("/World/Empty",))]
    assert [item.code for item in found(text, only=("usdShade*",))] == [theirs, theirs]
    assert not [item for item in found(text, skip=("material-missing",)) if "material" in item.code.lower()]
    both = text.replace(
        "rel material:binding = </World/Gone>",
        "rel material:binding = </World/Gone>\nrel material:binding:collection:x = [</World/Ball.collection:x>, </World/Gone>]",
    )
    codes = [item.code for item in found(both)]
    assert "material-missing" in codes and any(code.startswith("usdShadeValidators:MaterialBindingCollection") for code in codes)


def test_a_card_without_its_picture_is_told_once(found):
    """Where it is drawn with what is drawn instead; where the model is drawn as it is, as any file that is not there."""
    card = 'def Xform "M" (kind = "component"\nprepend apiSchemas = ["GeomModelAPI"])\n{\nuniform token model:drawMode = "cards"\n'
    card += 'asset model:cardTextureXNeg = @./gone.png@\nuniform bool model:applyDrawMode = true\ndef Sphere "S"\n{\n}\n}\n'
    text = f'#usda 1.0\n(\ndefaultPrim = "W"\nmetersPerUnit = 1\nupAxis = "Y"\n)\ndef Xform "W" (kind = "group")\n{{\n{card}}}\n'
    told = [(item.code, item.paths) for item in found(text) if "gone.png" in item.message]
    assert told == [("texture", ("/W/M",))]
    told = [(item.code, item.paths) for item in found(text.replace("DrawMode = true", "DrawMode = false")) if "gone.png" in item.message]
    assert told == [("asset-unresolved", ("/W/M.model:cardTextureXNeg",))]


def test_a_file_without_default_prim_has_its_own_cure(found, tmp_path):
    (tmp_path / "part.usda").write_text('#usda 1.0\ndef Xform "A"\n{\n}\n')
    (finding,) = found('def Xform "R" (references = @./part.usda@)\n{\n}\n', only=("composition",))
    assert finding.paths == ("/World/R",) and "part.usda" in finding.message
    assert finding.cure.startswith("author defaultPrim in that file")
    (finding,) = found('def Xform "R" (references = @./part.usda@</B>)\n{\n}\n', only=("composition",))
    assert finding.cure.startswith("mend the path")
