"""User attributes of any prim, one by one and as columns."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Sdf

from hdwarp.errors import ArgumentError
from hdwarp.stage.attributes import read_attribute, read_column
from hdwarp.stage.number_columns import spellings

TEXT = """def Xform "hot" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {
    custom float thermal:surface_temperature = 300
    custom float thermal:surface_temperature.timeSamples = { 1: 310, 3: 330, }
    def Cube "box" { custom double newton:thermal:surface_temperature = 280
        custom bool thermal:on = 1
        custom color3f thermal:tint = (0.5, 0.25, 1) }
    def Camera "cam" { custom float newton:thermal:lens_k1 = 0.125
        custom float thermal:lens_fov = 0.75
        custom float newton:thermal:lens_fov = 9 }
}
def Xform "cold" { custom float thermal:unset
    custom string thermal:name = "x"
    custom float[] thermal:many = [1, 2]
    custom quatf thermal:turn = (1, 0, 0, 0)
    custom half4 thermal:four = (1, 2, 3, 4)
    custom int thermal:count = 7
    custom float2 thermal:pair = (1, 2)
    rel thermal:target = </hot> }
"""


@pytest.fixture
def stage(stage_of):
    return stage_of(TEXT)


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("/hot/box", "thermal:on", 1.0),
        ("/hot/box", "thermal:tint", (0.5, 0.25, 1.0)),
        ("/cold", "thermal:four", (1.0, 2.0, 3.0, 4.0)),
        ("/cold", "thermal:count", 7.0),
        ("/cold", "thermal:pair", (1.0, 2.0)),
        ("/cold", "thermal:unset", None),
        ("/cold", "thermal:target", None),
        ("/cold", "thermal:nothing", None),
        ("/hot/box", "thermal:surface_temperature", 280.0),  # under Newton's prefix
        ("/hot/box", "newton:thermal:surface_temperature", 280.0),
        ("/hot/cam", "thermal:lens_k1", 0.125),
        ("/hot/cam", "thermal:lens_fov", 0.75),  # the very name comes first
        ("/hot/cam", "newton:thermal:lens_fov", 9.0),
    ],
)
def test_values(stage, path, name, value):
    found = read_attribute(stage, path, name, 1)
    assert found == value
    assert isinstance(found, float | tuple | None)


@pytest.mark.parametrize(("time", "value"), [(1, 310), (2, 320), (5, 330)])
def test_values_are_those_of_the_time(stage, time, value):
    assert read_attribute(stage, "/hot", "thermal:surface_temperature", time) == value


def test_other_types_are_named(stage):
    for name, kind in (("name", "string"), ("many", r"float\[\]"), ("turn", "quatf")):
        with pytest.raises(ArgumentError, match=f"</cold>: attribute 'thermal:{name}' is of type {kind}"):
            read_attribute(stage, "/cold", f"thermal:{name}", None)


@pytest.mark.parametrize("path", ["/nowhere", "", "not a path", "/hot.thermal:on"])
def test_prims_that_are_not_there_are_named(stage, path):
    with pytest.raises(ArgumentError, match="no prim of the stage"):
        read_attribute(stage, path, "thermal:on", None)


@pytest.mark.parametrize("name", ["", "a b", "thermal:", None, 3])
def test_names_that_are_none_are_refused(stage, name):
    with pytest.raises(ArgumentError, match="is no attribute's name"):
        read_column(stage, ["/hot"], name, None)


def test_spellings():
    assert spellings("thermal:lens_k1") == ("thermal:lens_k1", "newton:thermal:lens_k1")
    assert spellings("newton:thermal:lens_k1") == ("newton:thermal:lens_k1",)


def test_values_inside_instances(stage_of):
    library = 'class Xform "lib" { def Cube "box" { custom float thermal:k = 3 } }\n'
    stage = stage_of(library + 'def Xform "a" (instanceable = true\nprepend references = </lib>) {}\n')
    assert stage.GetPrimAtPath("/a/box").IsInstanceProxy()
    assert read_attribute(stage, "/a/box", "thermal:k", None) == 3.0


# -- columns ----------------------------------------------------------------------------------------------------------------------------


def test_columns_have_a_row_a_prim(stage):
    column = read_column(stage, ["/hot", "/cold", "/hot/box"], "thermal:surface_temperature", 3)
    assert (column.dtype, column.shape) == (np.float64, (3, 1))
    assert np.array_equal(column, [[330], [np.nan], [280]], equal_nan=True)
    tint = read_column(stage, ["/cold", "/hot/box"], "thermal:tint", None)
    assert np.array_equal(tint, [[np.nan] * 3, [0.5, 0.25, 1]], equal_nan=True)


def test_columns_follow_edits(stage):
    stage.GetPrimAtPath("/hot/box").GetAttribute("newton:thermal:surface_temperature").Set(290.0)
    assert read_column(stage, ["/hot/box"], "thermal:surface_temperature", None)[0, 0] == 290
    stage.GetPrimAtPath("/hot/box").CreateAttribute("thermal:surface_temperature", Sdf.ValueTypeNames.Float).Set(5.0)
    assert read_column(stage, ["/hot/box"], "thermal:surface_temperature", None)[0, 0] == 5


def test_a_column_nobody_has_says_what_there_is(stage):
    with pytest.raises(ArgumentError, match="none of 3 prims has an attribute 'thermal:k9'") as error:
        read_column(stage, ["/hot", "/hot/cam", "/cold"], "thermal:k9", None)
    names = str(error.value).partition("on them: ")[2].split(", ")
    assert names == [
        "newton:thermal:lens_fov",
        "newton:thermal:lens_k1",
        "thermal:count",
        "thermal:four",
        "thermal:lens_fov",
        "thermal:pair",
        "thermal:surface_temperature",
    ]
    with pytest.raises(ArgumentError, match="none of 0 prims"):
        read_column(stage, [], "thermal:k9", None)


def test_at_most_20_are_named(stage_of):
    many = "\n".join(f"custom float heat:a{k:02} = 1" for k in range(25))
    with pytest.raises(ArgumentError, match="heat:a19 and 5 more$"):
        read_column(stage_of(f'def Xform "x" {{\n{many}\n}}'), ["/x"], "heat:b", None)


def test_columns_are_of_one_width(stage_of):
    stage = stage_of('def "a" { custom float t:k = 1 }\ndef "b" { custom float3 t:k = (1, 2, 3) }')
    with pytest.raises(ArgumentError, match="holds 1 numbers on </a> and 3 on </b>"):
        read_column(stage, ["/a", "/b"], "t:k", None)
