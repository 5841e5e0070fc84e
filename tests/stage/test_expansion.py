"""Instances of instances: counted before anybody goes there, named where they are too many, and the same after edits as read afresh."""

from __future__ import annotations

import pytest
from pxr import Sdf, Usd, UsdGeom

from hdwarp.scene import Scene
from hdwarp.stage import expansion
from hdwarp.stage.cameras import camera_paths
from hdwarp.stage.changes import StageEdits
from hdwarp.stage.dirty import _places
from hdwarp.stage.reader import StageReader, read_stage

DEFAULT = Usd.TimeCode.Default()


def doubling(depth: int, root: str = "all", inside: str = "") -> Usd.Stage:
    """Native instances of two instances each: 2**depth balls, and 2**(depth+1) - 2 instances above them. Written at once: USD composes all
    of them anew with every prim that is defined."""
    layer = Sdf.Layer.CreateAnonymous("doubling.usda")
    texts = [f'class "c{depth}" {{\ndef Sphere "ball" {{}}\n{inside}\n}}']
    for i in range(depth):
        inner = "\n".join(f'def "{name}" (instanceable = true\nreferences = </c{i + 1}>) {{}}' for name in "ab")
        texts.append(f'class "c{i}" {{\n{inner}\n}}')
    texts.append(f'def "{root}" (instanceable = true\nreferences = </c0>) {{}}')
    layer.ImportFromString("#usda 1.0\n" + "\n".join(texts))
    return Usd.Stage.Open(layer)


@pytest.mark.parametrize("depth", [0, 1, 5, 200])
def test_sizes_are_those_of_arithmetic(depth):
    """Two, four, eight ... instances, and a ball in each of the last: also where nobody could go through them, or recurse."""
    stage = doubling(depth)
    sizes = expansion.Sizes()
    assert sizes.below_instance(stage.GetPrimAtPath("/all").GetPrototype()) == 2 ** (depth + 1) - 2 + 2**depth
    assert sizes.at_and_below(stage.GetPrimAtPath("/all")) == 1 + 2 ** (depth + 1) - 2 + 2**depth


def test_an_instance_of_too_much_is_named_and_the_rest_is_drawn():
    stage = doubling(60, inside='def Camera "cam" {}')
    UsdGeom.Camera.Define(stage, "/lens")
    UsdGeom.Sphere.Define(stage, "/ball")
    columns = read_stage(stage, DEFAULT)
    assert [gprim.path for gprim in columns.gprims] == ["/ball"]
    assert [(item.path, item.code) for item in columns.diagnostics if item.severity == "error"] == [("/all", "instance-size")]
    assert camera_paths(stage) == ["/lens"]


def test_places_of_a_prototype_are_few_or_those_of_its_outermost_instances():
    stage = doubling(3)
    prototype = stage.GetPrimAtPath("/all/a/a/a").GetPrototype()
    expected = [f"/all/{a}/{b}/{c}/ball" for a in "ab" for b in "ab" for c in "ab"]
    assert sorted(place for place in _places(stage, f"{prototype.GetPath()}/ball") if place.startswith("/all")) == expected
    stage = doubling(60)
    prototype = stage.GetPrimAtPath("/all" + "/a" * 60).GetPrototype()
    places = _places(stage, f"{prototype.GetPath()}/ball")
    assert "/all" in places and len(places) == 1 + 2 * 60  # and the instances in the classes, which are none of another


def chain(stage: Usd.Stage, depth: int, count: int) -> None:
    for i in range(depth):
        instancer = UsdGeom.PointInstancer.Define(stage, f"/i{i:02}")
        instancer.CreatePrototypesRel().SetTargets([f"/i{i + 1:02}" if i + 1 < depth else "/ball"])
        instancer.CreateProtoIndicesAttr([0] * count)
        instancer.CreatePositionsAttr([(0, 0, float(k)) for k in range(count)])
    UsdGeom.Sphere.Define(stage, "/ball")


def test_nested_instances_are_bounded():
    """Ten times ten times ... : 10**6 are drawn of the first, 10**7 are not."""
    for depth, drawn in ((6, True), (7, False)):
        stage = Usd.Stage.CreateInMemory()
        chain(stage, depth, 10)
        for i in range(1, depth):
            UsdGeom.Imageable.Get(stage, f"/i{i:02}").MakeInvisible()
        columns = read_stage(stage, DEFAULT)
        assert [item.code for item in columns.diagnostics if item.severity == "error"] == [] if drawn else ["instancer-size"]


def test_instancers_nested_too_deep_are_named():
    stage = Usd.Stage.CreateInMemory()
    chain(stage, expansion.MOST_NESTED + 1, 1)
    assert not [item for item in read_stage(stage, DEFAULT).diagnostics if item.severity == "error"]
    stage = Usd.Stage.CreateInMemory()
    chain(stage, expansion.MOST_NESTED + 2, 1)
    assert [(item.path[:4], item.code) for item in read_stage(stage, DEFAULT).diagnostics if item.severity == "error"] == [
        ("/i33", "instancer-size")
    ]


def test_edits_beyond_the_budget_give_what_a_fresh_reading_gives(monkeypatch, device):
    """Which instances are left out depends on all of them: an edit that frees some, or needs more, has the others read again."""
    monkeypatch.setattr(expansion, "FREE_PRIMS", 3)
    monkeypatch.setattr(expansion.Budget.__init__, "__defaults__", (10,) + expansion.Budget.__init__.__defaults__[1:])
    stage = doubling(1, "a")  # 4 prims each: two of them may be shown, a third is too much

    def another(path: str) -> None:
        prim = stage.DefinePrim(path)
        prim.GetReferences().AddInternalReference("/c0")
        prim.SetInstanceable(True)

    def left_out(reader: StageReader) -> list[str]:
        return [item.path for item in reader.diagnostics() if item.code == "instance-size"]

    with Scene(stage, device=device) as scene:

        def follow(*expected: str) -> None:
            scene.sync()
            fresh = StageReader(stage)
            fresh.update(StageEdits(), Usd.TimeCode.EarliestTime())
            assert left_out(scene.reader) == left_out(fresh) == list(expected)
            assert sorted(scene.reader.gprims) == sorted(fresh.gprims)

        follow()
        another("/b")
        another("/c")
        follow("/c")  # children in their order: the last finds nothing left
        stage.GetPrimAtPath("/b").SetActive(False)
        follow()
        stage.GetPrimAtPath("/b").SetActive(True)  # read alone it would be left out itself
        follow("/c")
        stage.RemovePrim("/a")
        follow()
