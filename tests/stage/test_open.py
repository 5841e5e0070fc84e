"""Opening stages: what is no stage is named, what is unresolved is reported, and which time no time means."""

from __future__ import annotations

import pytest
from pxr import Sdf, Usd, UsdGeom

from hdwarp.errors import ArgumentError, Diagnostics, StageError
from hdwarp.stage.open import default_time, open_stage, plain_text, population_mask, resolve_time
from hdwarp.stage.reader import read_stage

STAGE = """#usda 1.0
(
    metersPerUnit = 1
)
def Xform "World" {
    def Cube "a" {}
    def Cube "b" {}
}
"""


@pytest.fixture
def stage_file(tmp_path):
    path = tmp_path / "stage.usda"
    path.write_text(STAGE)
    return path


def test_a_path_as_string_and_as_path_object(stage_file):
    for given in (stage_file, str(stage_file)):
        assert open_stage(given).GetPrimAtPath("/World/a")


def test_a_stage_comes_back_as_it_is():
    stage = Usd.Stage.CreateInMemory()
    assert open_stage(stage) is stage


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StageError, match=r"nowhere\.usda.*not found"):
        open_stage(tmp_path / "nowhere.usda")


@pytest.mark.parametrize("name", ["text.txt", "broken.usda", "broken.usdc", "broken.usdz"])
def test_a_file_that_is_no_stage_is_named(tmp_path, name, capfd):
    (tmp_path / name).write_text("this is no stage")
    with pytest.raises(StageError, match=name.replace(".", r"\.")) as caught:
        open_stage(tmp_path / name)
    assert "/opt/" not in str(caught.value)  # no C++ places
    assert capfd.readouterr().err == ""


def test_a_folder_and_an_empty_path(tmp_path):
    with pytest.raises(StageError, match="folder"):
        open_stage(tmp_path)
    with pytest.raises(StageError, match="empty"):
        open_stage("")


def test_something_else(stage_file):
    with pytest.raises(ArgumentError, match="int"):
        open_stage(3)
    with pytest.raises(ArgumentError, match="session_layer"):
        open_stage(Usd.Stage.CreateInMemory(), session_layer=stage_file)


def test_an_expired_stage():
    stage = Usd.Stage.CreateInMemory()
    weak = stage.GetPseudoRoot().GetStage()
    assert open_stage(weak)
    prim = stage.DefinePrim("/a")
    del stage, weak
    assert not prim.IsValid()


def test_what_is_unresolved_is_reported_and_the_rest_is_there(tmp_path, capfd):
    path = tmp_path / "broken.usda"
    path.write_text(
        '#usda 1.0\n(\n    subLayers = [@missing_layer.usda@]\n)\ndef Xform "World" {\n'
        '    def "gone" (references = @missing_file.usda@) {}\n'
        '    def "inside" (references = </Nowhere>) {}\n    def Cube "here" {}\n}\n'
    )
    diagnostics = Diagnostics()
    stage = open_stage(path, diagnostics=diagnostics)
    found = {item.path: item for item in diagnostics}
    assert "missing_file.usda" in found["/World/gone"].message
    assert "/World/inside" in found
    assert any("missing_layer.usda" in item.message for item in diagnostics)
    assert {item.code for item in diagnostics} == {"composition"}
    columns = read_stage(stage, resolve_time(stage, None))
    assert [gprim.path for gprim in columns.gprims] == ["/World/here"]
    assert [item for item in columns.diagnostics if item.code == "composition"] == list(diagnostics)
    assert capfd.readouterr().err == ""


def test_a_mask_populates_what_it_names_and_what_that_needs(write_usda):
    path = write_usda(
        "stage.usda",
        """def Xform "World" { def Cube "a" (prepend apiSchemas = ["MaterialBindingAPI"]) { rel material:binding = </Looks/red> }
        def Cube "b" {} }
        def Scope "Looks" { def Material "red" {}
        def Material "blue" {} }
        """,
    )
    stage = open_stage(path, mask=["/World/a"])
    assert stage.GetPrimAtPath("/World/a")
    assert not stage.GetPrimAtPath("/World/b")
    assert stage.GetPrimAtPath("/Looks/red")
    assert not stage.GetPrimAtPath("/Looks/blue")
    with pytest.raises(ArgumentError, match="not/absolute"):
        population_mask(["not/absolute"])


def test_payloads_can_stay_unloaded(write_usda):
    write_usda("part.usda", '(\n    defaultPrim = "part"\n)\ndef Xform "part" { def Cube "box" {} }\n')
    path = write_usda("stage.usda", 'def "part" (payload = @part.usda@) {}\ndef Sphere "ball" {}\n')
    stage = open_stage(path, load=False)
    columns = read_stage(stage, resolve_time(stage, None))
    assert [gprim.path for gprim in columns.gprims] == ["/ball"]
    assert [(item.path, item.code, item.severity) for item in columns.diagnostics] == [("/part", "unloaded", "note")]
    stage = open_stage(path)
    assert [gprim.path for gprim in read_stage(stage, resolve_time(stage, None)).gprims] == ["/ball", "/part/box"]


def test_a_session_layer_is_laid_over(stage_file, write_usda):
    over = write_usda("session.usda", 'over "World" { over "a" (active = false) {} }\n')
    for session in (over, Sdf.Layer.FindOrOpen(str(over))):
        assert not open_stage(stage_file, session_layer=session).GetPrimAtPath("/World/a").IsActive()


def test_which_time_no_time_is():
    """startTimeCode if authored, else each attribute's earliest sample."""
    stage = Usd.Stage.CreateInMemory()
    sphere = UsdGeom.Sphere.Define(stage, "/s")
    sphere.GetRadiusAttr().Set(3.0, 10.0)
    sphere.GetRadiusAttr().Set(5.0, 20.0)

    def radius(time):
        code = resolve_time(stage, time)
        columns = read_stage(stage, code)
        return columns.gprims[0].transforms[0, 0, 0] / columns.metres_per_unit, columns.time

    assert radius(None) == (pytest.approx(3.0), None)
    stage.SetStartTimeCode(20.0)
    assert radius(None) == (pytest.approx(5.0), 20.0)
    assert radius(15) == (pytest.approx(4.0), 15.0)
    assert radius(Usd.TimeCode(10.0)) == (pytest.approx(3.0), 10.0)
    assert radius(default_time()) == (pytest.approx(1.0), None)  # no default value authored: the fallback


@pytest.mark.parametrize("time", [float("nan"), float("inf"), "noon"])
def test_times_that_are_none_are_refused(time):
    with pytest.raises(ArgumentError, match="time"):
        resolve_time(Usd.Stage.CreateInMemory(), time)


DAMAGED = '#usda 1.0\ndef Sphere "good" {}\ndef Sphere "bad"\n{\n    double3 xformOp:translate = (-2, -1.5, 0,5)\n}\n'


def test_a_damaged_file_that_is_referred_to_leaves_the_rest(tmp_path):
    """Pixar's parser raises for a tuple of four in a double3, which would take the sound stage with it."""
    (tmp_path / "damaged.usda").write_text(DAMAGED)
    (tmp_path / "root.usda").write_text('#usda 1.0\ndef Sphere "ball" {}\ndef "it" (references = @damaged.usda@</good>) {}\n')
    log = Diagnostics()
    stage = open_stage(tmp_path / "root.usda", diagnostics=log)
    assert stage.GetPrimAtPath("/ball").IsA("Sphere")
    assert ("root.usda", "damaged-file", "error") in [(item.path.rpartition("/")[2], item.code, item.severity) for item in log]


def test_an_error_of_very_many_parts_is_told_in_a_few():
    """A damaged crate file can have USD post hundreds of thousands; each takes time to become a text."""
    from pxr import Tf

    text = plain_text(Tf.ErrorException(*(f"part {i}" for i in range(100_000))))
    assert text.startswith("part 0; part 1; ") and text.endswith("and 99992 more")
