"""Primvars: interpolations, indices, element size, types, inheritance, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

BODY = """
    uniform token subdivisionScheme = "none"
    int[] faceVertexCounts = [4, 3]
    int[] faceVertexIndices = [0, 1, 2, 3, 1, 4, 2]
    point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (2, 0, 0)]
"""
COUNTS = {"uniform": 2, "vertex": 5, "varying": 5, "faceVarying": 7}


def mesh(primvars: str) -> str:
    return f'def Mesh "m" {{\n{BODY}{primvars}\n}}\n'


def primvar(type_name: str, name: str, value: str, interpolation: str | None = None, **metadata) -> str:
    if interpolation:
        metadata["interpolation"] = f'"{interpolation}"'
    said = "".join(f"\n        {key} = {value}" for key, value in metadata.items())
    return f"    {type_name} primvars:{name} = {value}" + (f" ({said}\n    )" if said else "") + "\n"


@pytest.mark.parametrize("interpolation", COUNTS)
def test_interpolations(read, interpolation):
    """One value a face, a point, or a corner; varying is vertex on meshes."""
    values = list(range(COUNTS[interpolation]))
    found = read(mesh(primvar("float[]", "x", str(values), interpolation))).mesh("/m").primvars["x"]
    assert found.interpolation == ("vertex" if interpolation == "varying" else interpolation)
    assert found.values.tolist() == [[v] for v in values]
    assert found.values.dtype == np.float32
    assert found.indices is None


@pytest.mark.parametrize("interpolation", COUNTS)
def test_indexed(read, interpolation):
    indices = [k % 3 for k in range(COUNTS[interpolation])]
    text = primvar("color3f[]", "c", "[(1, 0, 0), (0, 1, 0), (0, 0, 1)]", interpolation) + f"    int[] primvars:c:indices = {indices}"
    found = read(mesh(text)).mesh("/m").primvars["c"]
    assert found.values.tolist() == np.eye(3).tolist()
    assert found.indices.tolist() == indices
    assert found.indices.dtype == np.int32


def test_element_size_makes_wider_items(read):
    """Two floats an item: values 0..3 for two faces are (0, 1) and (2, 3)."""
    found = read(mesh(primvar("float[]", "x", "[0, 1, 2, 3]", "uniform", elementSize=2))).mesh("/m").primvars["x"]
    assert found.values.tolist() == [[0, 1], [2, 3]]


def test_more_than_four_components_are_left_out(read):
    found = read(mesh(primvar("float3[]", "x", "[(0, 1, 2), (3, 4, 5), (0, 0, 0), (0, 0, 0)]", "uniform", elementSize=2)))
    assert "x" not in found.mesh("/m").primvars
    assert found.codes("/m") == ["primvar-width"]
    assert "6 components" in found.message("primvar-width")


@pytest.mark.parametrize(
    ("type_name", "value", "expected"),
    [
        ("float", "1.5", [1.5]),
        ("double", "1.5", [1.5]),
        ("half", "1.5", [1.5]),
        ("int", "3", [3]),
        ("bool", "1", [1]),
        ("uchar", "7", [7]),
        ("int64", "9", [9]),
        ("float[]", "[2]", [2]),
        ("texCoord2f[]", "[(1, 2)]", [1, 2]),
        ("float2", "(1, 2)", [1, 2]),
        ("color3f", "(1, 2, 3)", [1, 2, 3]),
        ("color3f[]", "[(1, 2, 3)]", [1, 2, 3]),
        ("double3", "(1, 2, 3)", [1, 2, 3]),
        ("half3[]", "[(1, 2, 3)]", [1, 2, 3]),
        ("color4f", "(1, 2, 3, 4)", [1, 2, 3, 4]),
        ("int2", "(1, 2)", [1, 2]),
    ],
)
def test_types_of_constants(read, type_name, value, expected):
    found = read(mesh(primvar(type_name, "x", value)))
    assert found.gprim("/m").constants["x"].tolist() == expected
    assert found.gprim("/m").constants["x"].dtype == np.float32
    assert found.codes() == []


@pytest.mark.parametrize(("type_name", "value"), [("string", '"a"'), ("token[]", '["a", "b"]'), ("asset", "@a.png@"), ("color3f[]", "[]")])
def test_words_and_empty_constants_are_ignored_silently(read, type_name, value):
    found = read(mesh(primvar(type_name, "x", value)))
    assert "x" not in found.gprim("/m").constants
    assert found.codes() == []


@pytest.mark.parametrize("interpolation", COUNTS)
def test_wrong_counts_name_what_was_found_and_expected(read, interpolation):
    found = read(mesh(primvar("float[]", "x", "[1, 2, 3]", interpolation)))
    assert "x" not in found.mesh("/m").primvars
    assert len(found.mesh("/m").triangle_face) == 3
    message = found.message("primvar-count")
    assert "primvars:x" in message
    assert f"3 values where {COUNTS[interpolation]}" in message


def test_wrong_constant_counts(read):
    found = read(mesh(primvar("float[]", "x", "[1, 2, 3]")))
    assert "x" not in found.gprim("/m").constants
    assert "3 values where 1" in found.message("primvar-count")


@pytest.mark.parametrize(("indices", "code"), [("[0, 2]", "primvar-indices"), ("[0, -1]", "primvar-indices"), ("[0]", "primvar-count")])
def test_wrong_indices(read, indices, code):
    found = read(mesh(primvar("float[]", "x", "[1, 2]", "uniform") + f"    int[] primvars:x:indices = {indices}"))
    assert "x" not in found.mesh("/m").primvars
    assert found.codes("/m") == [code]


def test_unknown_interpolation_and_ragged_elements(read):
    found = read(mesh(primvar("float[]", "x", "[1, 2]", "sideways") + primvar("float[]", "y", "[1, 2, 3]", "uniform", elementSize=2)))
    assert found.mesh("/m").primvars == {}
    assert set(found.codes("/m")) == {"primvar-interpolation", "primvar-count"}


def test_values_that_are_not_finite_become_zero(read):
    found = read(mesh(primvar("float[]", "x", "[nan, 2]", "uniform")))
    assert found.mesh("/m").primvars["x"].values.tolist() == [[0], [2]]
    assert found.codes("/m") == ["primvar-not-finite"]


def test_constants_inherit_and_the_nearest_wins(read):
    text = f"""def Xform "a" {{
        float primvars:far = 1
        float primvars:both = 1
        def Scope "b" {{
            float primvars:both = 2
            def Mesh "m" {{
                {BODY}
                float primvars:own = 3
            }}
            def Sphere "s" {{}}
        }}
    }}"""
    found = read(text)
    assert {name: v.tolist() for name, v in found.gprim("/a/b/m").constants.items()} == {"far": [1], "both": [2], "own": [3]}
    assert {name: v.tolist() for name, v in found.gprim("/a/b/s").constants.items()} == {"far": [1], "both": [2]}


def test_what_varies_does_not_inherit_and_hides_what_would(read):
    text = f"""def Xform "a" {{
        float primvars:x = 1
        def Xform "b" {{
            float[] primvars:x = [1, 2] (
                interpolation = "vertex"
            )
            def Mesh "m" {{
                {BODY}
            }}
        }}
    }}"""
    assert read(text).gprim("/a/b/m").constants == {}


def test_a_varying_primvar_takes_the_place_of_an_inherited_constant(read):
    own = mesh(primvar("color3f[]", "displayColor", "[(0, 1, 0), (0, 0, 1)]", "uniform"))
    text = f'def Xform "a" {{ color3f primvars:displayColor = (1, 0, 0)\n{own} }}'
    found = read(text)
    assert found.gprim("/a/m").constants == {}
    assert found.mesh("/a/m").primvars["displayColor"].interpolation == "uniform"


def test_primvars_of_shapes(read):
    """A shape has nothing to vary over: one value is a constant, several are reported."""
    text = 'def Sphere "s" {\n' + primvar("color3f[]", "a", "[(1, 0, 0)]", "vertex") + primvar("float[]", "b", "[1, 2]", "uniform") + "}"
    found = read(text)
    assert found.gprim("/s").constants["a"].tolist() == [1, 0, 0]
    assert "b" not in found.gprim("/s").constants
    assert found.codes("/s") == ["primvar-count"]


def test_primvars_follow_time(read):
    text = mesh("    float primvars:x.timeSamples = {\n0: 0,\n10: 5,\n}")
    assert read(text, time=4.0).gprim("/m").constants["x"].tolist() == [2.0]


def test_skinning_weights_are_not_carried(read):
    found = read(mesh(primvar("int[]", "skel:jointIndices", "[0, 0, 0, 0, 0]", "vertex")))
    assert found.mesh("/m").primvars == {}
    assert found.codes("/m") == ["skel-root"]
