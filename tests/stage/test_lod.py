"""UsdLod: which children of a root are drawn, against OverrideAPI.ComputeLODOverride and the schema's words."""

from __future__ import annotations

import pytest
from pxr import Usd, UsdGeom

pytest.importorskip("pxr.UsdLod")


def lods(own: str = "", above: str = "", apis: str = '"LODRootAPI"') -> str:
    return f"""def Xform "w" (
    prepend apiSchemas = ["LODOverrideAPI"]
) {{
    {above}
    def Xform "l" (
        prepend apiSchemas = [{apis}]
    ) {{
        {own}
        def Xform "a" {{ def Sphere "s" {{}} def Camera "eye" {{}} }}
        def Cube "b" {{}}
        def Cone "c" {{}}
    }}
}}""".replace("{} def", "{}\ndef")


def items(found) -> str:
    return "".join(path[5] for path in found.paths)


@pytest.mark.parametrize(("authored", "drawn", "codes"), [("", "a", []), ("1", "b", []), ("7", "c", ["lod"]), ("-1", "a", ["lod"])])
def test_the_default_index(read, authored, drawn, codes):
    found = read(lods(f"int lod:default:index = {authored}" if authored else ""))
    assert items(found) == drawn
    assert found.codes() == codes
    assert [camera.path for camera in found.cameras] == ["/w/l/a/eye"]  # whatever is drawn


@pytest.mark.parametrize(
    ("mode", "index", "drawn"),
    [
        ("indexedLOD", 1, "b"),
        ("indexedLOD", 1.6, "c"),
        ("indexedLOD", 9, "c"),
        ("indexedLOD", -3, "a"),
        ("noLOD", 0, ""),
        ("allLOD", 0, "abc"),
    ],
)
@pytest.mark.parametrize("where", ["own", "above"])
def test_overrides_inherit_as_usd_says(read, mode, index, drawn, where):
    from pxr import UsdLod

    said = f'token lod:override:mode = "{mode}"\nfloat lod:override:index = {index}'
    found = read(lods(said if where == "own" else "", said if where == "above" else "", '"LODRootAPI", "LODOverrideAPI"'))
    assert items(found) == drawn
    told, at = UsdLod.OverrideAPI(found.stage.GetPrimAtPath("/w/l")).ComputeLODOverride()
    assert told == mode
    assert at is None or at == pytest.approx(index)


def test_no_override_stops_what_is_above(read):
    above = 'token lod:override:mode = "allLOD"'
    assert items(read(lods('token lod:override:mode = "noOverride"', above, '"LODRootAPI", "LODOverrideAPI"'))) == "a"
    assert items(read(lods("", above, '"LODRootAPI", "LODOverrideAPI"'))) == "abc"


def test_heuristics_are_named_and_the_default_is_drawn(read):
    found = read(lods("rel lod:heuristics = </h>\nint lod:default:index = 2") + '\ndef LODDistanceHeuristic "h" {}')
    assert items(found) == "c"
    assert found.codes() == ["lod-heuristics"]


def test_an_unknown_mode_is_named(read):
    found = read(lods("", 'token lod:override:mode = "some"'))
    assert (items(found), found.codes("/w")) == ("a", ["lod"])


def test_inside_native_instances(read):
    text = lods("int lod:default:index = 1").replace("def Xform", "class Xform", 1)
    text += (
        '\ndef "i" (\nprepend references = </w>\ninstanceable = true\n) {}\ndef "j" (\nprepend references = </w>\ninstanceable = true\n) {}'
    )
    assert read(text).paths == ["/i/l/b", "/j/l/b"]


def test_a_stage_with_many_children_below_a_root_is_read_in_their_order(read):
    stage = Usd.Stage.CreateInMemory()
    root = UsdGeom.Xform.Define(stage, "/l").GetPrim()
    root.ApplyAPI("LODRootAPI")
    for name in "zyx":
        UsdGeom.Cube.Define(stage, f"/l/{name}")
    assert read(stage).paths == ["/l/z"]
    root.SetChildrenReorder(["x", "y", "z"])
    assert read(stage).paths == ["/l/x"]


def test_the_choice_of_an_item_stands_in_for_its_own_visibility(read):
    """UsdLod's overview: all items but the default one are best authored invisible, for renderers that know no LOD; others show the
    chosen one as if it were visible. What is above the root, or below the item, keeps its say."""
    text = lods("int lod:default:index = 1").replace('def Cube "b" {}', 'def Cube "b" {\ntoken visibility = "invisible"\n}')
    assert items(read(text)) == "b"
    assert items(read(text.replace("index = 1", "index = 0"))) == "a"
    deeper = text.replace("index = 1", "index = 0").replace('def Sphere "s" {}', 'def Sphere "s" { token visibility = "invisible" }')
    assert items(read(deeper)) == ""
    assert items(read(lods("", 'token visibility = "invisible"'))) == ""


@pytest.mark.parametrize(
    ("first", "held"),
    [
        ('def LODDistanceHeuristic "h" { uniform token lod:domain = "imaging" }', "LODDistanceHeuristic"),
        ('def Scope "Looks"\n{\ndef Material "m" { }\ndef Material "n" { }\n}', "Material"),
    ],
)
def test_every_child_is_an_item_and_what_draws_nothing_is_named(read, first, held):
    """GetLODItems is GetChildren: a heuristic or materials that stand first in the root are item 0."""
    found = read(lods(first))
    assert items(found) == ""
    (item,) = [item for item in found.diagnostics if item.code == "lod-item"]
    assert item.path in ("/w/l/h", "/w/l/Looks")
    assert "item 0" in item.message and f"({held})" in item.message and "Move it out" in item.message
    found = read(lods(f"int lod:default:index = 1\n{first}"))
    assert items(found) == "a"


def test_empty_groups_are_items_that_are_meant_to_draw_nothing(read):
    assert read(lods('def Xform "none" {}')).codes() == []
