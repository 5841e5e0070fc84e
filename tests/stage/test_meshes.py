"""Mesh prims: triangles, normals, holes, orientation, and what broken ones lose."""

from __future__ import annotations

import numpy as np
import pytest

from hdwarp.errors import Severity
from hdwarp.stage.columns import GeometryKind

QUAD = """
    int[] faceVertexCounts = [4]
    int[] faceVertexIndices = [0, 1, 2, 3]
    point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
"""


def mesh(body: str, name: str = "m", scheme: str | None = "none") -> str:
    said = f'    uniform token subdivisionScheme = "{scheme}"\n' if scheme else ""
    return f'def Mesh "{name}" {{\n{said}{body}\n}}\n'


def test_a_quad(read):
    found = read(mesh(QUAD))
    geometry = found.mesh("/m")
    assert found.gprim("/m").kind is GeometryKind.MESH
    assert geometry.points.dtype == np.float32
    assert geometry.triangle_corners.tolist() == geometry.triangle_points.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert geometry.triangle_face.tolist() == [0, 0]
    assert (geometry.face_count, geometry.corner_count) == (1, 4)
    assert geometry.normals is None
    assert found.codes() == []


def test_left_handed_faces_turn_round(read):
    found = read(mesh(QUAD + '    uniform token orientation = "leftHanded"'))
    assert found.mesh("/m").triangle_corners.tolist() == [[0, 2, 1], [0, 3, 2]]


TWO_QUADS = """
    int[] faceVertexCounts = [4, 4]
    int[] faceVertexIndices = [0, 1, 4, 3, 1, 2, 5, 4]
    point3f[] points = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 0)]
"""


def test_holes_lose_their_triangles_and_keep_their_number(read):
    found = read(mesh(TWO_QUADS + "    int[] holeIndices = [0]"))
    assert found.mesh("/m").triangle_face.tolist() == [1, 1]
    assert found.mesh("/m").triangle_corners.tolist() == [[4, 5, 6], [4, 6, 7]]
    assert found.mesh("/m").face_count == 2
    assert found.codes() == []


def test_holes_outside_are_named(read):
    found = read(mesh(TWO_QUADS + "    int[] holeIndices = [0, 7, -1]"))
    assert found.mesh("/m").triangle_face.tolist() == [1, 1]
    assert found.codes("/m") == ["hole-range"]


def test_two_meshes_in_one_stage_keep_their_own_numbers(read):
    """Meshes are built together; corner, point and face numbers still count within each."""
    found = read(mesh(TWO_QUADS, "a") + mesh(QUAD, "b"))
    assert found.mesh("/b").triangle_corners.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert found.mesh("/b").triangle_face.tolist() == [0, 0]
    assert found.mesh("/b").points.shape == (4, 3)


# -- normals ------------------------------------------------------------------------------------------------------------------

UP = "[(0, 0, 1), (0, 0, 1), (0, 0, 1), (0, 0, 1)]"
RIGHT = "[(1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0)]"


def test_the_normals_attribute_is_vertex_unless_it_says_otherwise(read):
    normals = read(mesh(QUAD + f"    normal3f[] normals = {UP}")).mesh("/m").normals
    assert normals.interpolation == "vertex"
    assert normals.values.tolist() == [[0, 0, 1]] * 4
    normals = read(mesh(QUAD + '    normal3f[] normals = [(1, 0, 0)] (\n        interpolation = "uniform"\n    )')).mesh("/m").normals
    assert (normals.interpolation, normals.values.tolist()) == ("uniform", [[1, 0, 0]])


def test_primvars_normals_beats_normals(read):
    text = mesh(
        QUAD + f'    normal3f[] normals = {UP}\n    normal3f[] primvars:normals = {RIGHT} (\n        interpolation = "faceVarying"\n    )'
    )
    found = read(text).mesh("/m")
    assert (found.normals.interpolation, found.normals.values[0].tolist()) == ("faceVarying", [1, 0, 0])
    assert "normals" not in found.primvars


def test_indexed_primvars_normals(read):
    text = mesh(
        QUAD
        + '    normal3f[] primvars:normals = [(1, 0, 0), (0, 1, 0)] (\n        interpolation = "vertex"\n    )\n'
        + "    int[] primvars:normals:indices = [0, 1, 1, 0]"
    )
    assert read(text).mesh("/m").normals.indices.tolist() == [0, 1, 1, 0]


def test_an_inherited_constant_normal(read):
    text = f'def Xform "x" {{ normal3f primvars:normals = (0, 1, 0)\n{mesh(QUAD)} }}'
    normals = read(text).mesh("/x/m").normals
    assert (normals.interpolation, normals.values.tolist(), normals.indices.tolist()) == ("uniform", [[0, 1, 0]], [0])


@pytest.mark.parametrize("scheme", ["catmullClark", "loop", None])
def test_authored_normals_do_not_count_on_subdivision_surfaces(read, scheme):
    """Hydra's rule; smooth normals are computed instead. The fallback scheme is catmullClark."""
    found = read(mesh(QUAD + f"    normal3f[] normals = {RIGHT}", scheme=scheme)).mesh("/m")
    assert found.normals.interpolation == "vertex"
    assert found.normals.values == pytest.approx(np.tile([0, 0, 1], (4, 1)))


def test_bilinear_is_faceted(read):
    assert read(mesh(QUAD + f"    normal3f[] normals = {RIGHT}", scheme="bilinear")).mesh("/m").normals is None


def test_smooth_normals_by_hand(read):
    """A unit square on the ground with a unit square wall along the edge from (1, 0, 0) to (1, 1, 0): every corner of a square weighs
    the same, so shared points look halfway between up and -x, the others along their own square."""
    body = """
    int[] faceVertexCounts = [4, 4]
    int[] faceVertexIndices = [0, 1, 2, 3, 1, 4, 5, 2]
    point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)]
"""
    normals = read(mesh(body, scheme="catmullClark")).mesh("/m").normals.values
    h = 0.5**0.5
    expected = [(0, 0, 1), (-h, 0, h), (-h, 0, h), (0, 0, 1), (-1, 0, 0), (-1, 0, 0)]
    assert normals == pytest.approx(np.array(expected), abs=1e-6)


def test_smooth_normals_weigh_by_size(read):
    """The wall twice as high: its corners at the shared edge add twice as much, direction (-2, 0, 1)."""
    body = """
    int[] faceVertexCounts = [4, 4]
    int[] faceVertexIndices = [0, 1, 2, 3, 1, 4, 5, 2]
    point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (1, 0, 2), (1, 1, 2)]
"""
    normals = read(mesh(body, scheme="catmullClark")).mesh("/m").normals.values
    assert normals[1] == pytest.approx(np.array([-2, 0, 1]) / 5**0.5)


def test_smooth_normals_follow_the_orientation_and_ignore_holes_as_gaps(read):
    body = TWO_QUADS + '    uniform token orientation = "leftHanded"\n    int[] holeIndices = [1]'
    normals = read(mesh(body, scheme="catmullClark")).mesh("/m").normals.values
    assert normals == pytest.approx(np.tile([0, 0, -1], (6, 1)))


def test_control_cages_are_told_once(read):
    found = read(mesh(QUAD, "a", scheme=None) + mesh(TWO_QUADS, "b", scheme="loop") + mesh(QUAD, "c"))
    assert found.codes() == ["control-cage"]
    assert found.message("control-cage").startswith("2 meshes")


# -- equal geometry -----------------------------------------------------------------------------------------------------------


def test_equal_meshes_are_stored_once(read):
    found = read(mesh(QUAD, "a") + mesh(QUAD, "b") + mesh(QUAD + '    uniform token orientation = "leftHanded"', "c"))
    assert found.gprim("/a").mesh == found.gprim("/b").mesh != found.gprim("/c").mesh
    assert len(found.meshes) == 2


def test_what_sits_on_the_prim_does_not_make_a_mesh_another(read):
    extras = (
        "    uniform bool doubleSided = 1\n    color3f[] primvars:displayColor = [(1, 0, 0)]\n    double3 xformOp:translate = (1, 0, 0)"
    )
    found = read(mesh(QUAD, "a") + mesh(QUAD + extras + '\n    uniform token[] xformOpOrder = ["xformOp:translate"]', "b"))
    assert len(found.meshes) == 1
    assert (found.gprim("/a").double_sided, found.gprim("/b").double_sided) == (False, True)
    assert found.gprim("/b").constants["displayColor"].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    "extra",
    [
        '    float[] primvars:x = [1, 2, 3, 4] (\n        interpolation = "vertex"\n    )',
        f"    normal3f[] normals = {UP}",
        "    int[] holeIndices = [5]",
    ],
)
def test_what_varies_over_the_mesh_does(read, extra):
    assert len(read(mesh(QUAD, "a") + mesh(QUAD + extra, "b")).meshes) == 2


def test_large_meshes_and_small_ones_build_the_same(read, monkeypatch):
    """Meshes are built in chunks: where the chunks end does not matter."""
    text = mesh(QUAD, "a") + mesh(TWO_QUADS, "b", scheme=None) + mesh(QUAD.replace("(1, 1, 0)", "(1, 2, 0)"), "c")
    whole = read(text)
    monkeypatch.setattr("hdwarp.stage.mesh_batch._CHUNK_CORNERS", 1)
    parts = read(text)
    for a, b in zip(whole.meshes, parts.meshes, strict=True):
        assert a.triangle_corners.tolist() == b.triangle_corners.tolist()
        assert a.points.tolist() == b.points.tolist()
        assert (a.normals is None) == (b.normals is None)


# -- bad input ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_bad_point_takes_only_its_faces(read, value):
    """Face 0 uses point 0; face 1 does not and keeps its number. No column holds the bad value."""
    found = read(mesh(TWO_QUADS.replace("(0, 0, 0)", f"({value}, 0, 0)", 1)))
    geometry = found.mesh("/m")
    assert geometry.triangle_face.tolist() == [1, 1]
    assert geometry.triangle_points.tolist() == [[1, 2, 5], [1, 5, 4]]
    assert np.isfinite(geometry.points).all()
    assert len(geometry.points) == 6
    assert found.codes("/m") == ["points-not-finite"]
    assert "1 of 2 faces" in found.message("points-not-finite")


def test_smooth_normals_ignore_the_faces_of_bad_points(read):
    normals = read(mesh(TWO_QUADS.replace("(0, 0, 0)", "(nan, 0, 0)", 1), scheme=None)).mesh("/m").normals.values
    assert normals[[1, 2, 4, 5]] == pytest.approx(np.tile([0, 0, 1], (4, 1)))
    assert np.isfinite(normals).all()


def test_a_bad_point_nobody_uses_is_a_note(read):
    found = read(mesh(QUAD.replace("(0, 1, 0)]", "(0, 1, 0), (nan, 0, 0)]")))
    assert len(found.mesh("/m").triangle_face) == 2
    assert [item.severity for item in found.diagnostics] == [Severity.NOTE]


@pytest.mark.parametrize("index", [-1, 6, 2**31 - 1])
def test_an_index_out_of_range_takes_only_its_face(read, index):
    found = read(mesh(TWO_QUADS.replace("[0, 1, 4, 3,", f"[{index}, 1, 4, 3,")))
    assert found.mesh("/m").triangle_face.tolist() == [1, 1]
    assert found.codes("/m") == ["index-range"]
    assert f"outside 0..5 (first: {index})" in found.message("index-range")


@pytest.mark.parametrize(
    ("counts", "said"), [("[4, 3]", "add up to 7"), ("[4, 4, 4]", "add up to 12"), ("[9, -1]", "holds -1"), ("[]", None)]
)
def test_counts_that_do_not_sum_skip_the_mesh(read, counts, said):
    found = read(mesh(TWO_QUADS.replace("[4, 4]", counts), "bad") + mesh(QUAD, "good"))
    assert found.paths == ["/good"]
    assert found.mesh("/good").triangle_corners.tolist() == [[0, 1, 2], [0, 2, 3]]
    if said:
        assert found.codes("/bad") == ["topology"]
        assert said in found.message("topology")
        assert next(iter(found.diagnostics)).severity is Severity.ERROR
    else:
        assert found.codes("/bad") == ["missing-topology"]


def test_faces_of_fewer_than_three_corners(read):
    body = "    int[] faceVertexCounts = [2, 3, 0, 1]\n    int[] faceVertexIndices = [0, 1, 0, 1, 2, 2]\n"
    found = read(mesh(body + "    point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]"))
    assert found.mesh("/m").triangle_face.tolist() == [1]
    assert found.codes("/m") == ["degenerate-faces"]
    assert found.message("degenerate-faces").startswith("3 of 4 faces")


@pytest.mark.parametrize("name", ["points", "faceVertexCounts", "faceVertexIndices"])
def test_a_missing_array_is_named(read, name):
    body = "\n".join(line for line in QUAD.splitlines() if f" {name} " not in line)
    found = read(mesh(body, "bad") + mesh(QUAD, "good"))
    assert found.paths == ["/good"]
    assert found.codes("/bad") == ["missing-topology"]
    assert name in found.message("missing-topology")


def test_empty_meshes_are_notes(read):
    empty = "    int[] faceVertexCounts = []\n    int[] faceVertexIndices = []\n    point3f[] points = []"
    found = read(mesh(empty, "a") + mesh("", "b") + mesh(empty, "c"))
    assert found.paths == []
    assert [(item.path, item.code, item.severity) for item in found.diagnostics] == [
        (path, "empty-mesh", Severity.NOTE) for path in ("/a", "/b", "/c")
    ]


def test_a_mesh_that_is_empty_at_one_time(read):
    body = QUAD.replace("int[] faceVertexCounts = [4]", "int[] faceVertexCounts.timeSamples = { 1: [], 2: [4] }")
    body = body.replace("int[] faceVertexIndices = [0, 1, 2, 3]", "int[] faceVertexIndices.timeSamples = { 1: [], 2: [0, 1, 2, 3] }")
    body = body.replace("{ 1: [], 2", "{\n1: [],\n2")
    assert read(mesh(body), time=1.0).codes() == ["empty-mesh"]
    assert read(mesh(body), time=2.0).paths == ["/m"]


def test_animated_points_without_default_say_so(read):
    from hdwarp.stage.open import default_time

    body = QUAD.replace("point3f[] points = ", "point3f[] points.timeSamples = {\n1: ") + "}"
    found = read(mesh(body), time=default_time())
    assert "time samples" in found.message("missing-topology")
    assert read(mesh(body)).paths == ["/m"]


@pytest.mark.parametrize(
    ("authored", "replaced"),
    [
        ("point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]", 'string points = "none"'),
        ("int[] faceVertexCounts = [4]", "float[] faceVertexCounts = [4]"),
        ("int[] faceVertexIndices = [0, 1, 2, 3]", "token[] faceVertexIndices = []"),
        ("point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]", "float[] points = [0, 1, 2]"),
    ],
)
def test_attributes_of_the_wrong_type_are_named(read, authored, replaced):
    found = read(mesh(QUAD.replace(authored, replaced), "bad") + mesh(QUAD, "good"))
    assert found.paths == ["/good"]
    assert found.codes("/bad")[0] in ("wrong-type", "missing-topology")


def test_double_precision_points_and_long_indices_are_read(read):
    body = QUAD.replace("point3f[]", "double3[]").replace("int[] faceVertexIndices", "int64[] faceVertexIndices")
    assert len(read(mesh(body)).mesh("/m").triangle_face) == 2


def test_an_unknown_scheme_is_named(read):
    found = read(mesh(QUAD, scheme="polar"))
    assert found.codes("/m") == ["subdivision-scheme"]
    assert found.mesh("/m").normals is None


def test_equal_broken_meshes_are_each_named(read):
    bad = QUAD.replace("[4]", "[5]")
    found = read(mesh(bad, "a") + mesh(bad, "b"))
    assert [item.path for item in found.diagnostics] == ["/a", "/b"]


def test_wrong_normal_counts_leave_the_mesh_faceted(read):
    found = read(mesh(QUAD + "    normal3f[] normals = [(0, 0, 1)]"))
    assert found.mesh("/m").normals is None
    assert "1 values where 4" in found.message("primvar-count")


# -- numbers beyond bounds -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("length", ["1e38", "3e38", "1e-30", "1e-44", "7"])
def test_normals_of_any_length_become_unit_vectors(read, length):
    """In float32 their squares would overflow or vanish."""
    found = read(mesh(QUAD + f"    normal3f[] normals = [({length}, 0, 0), (0, {length}, 0), (0, 0, 1), (0, 0, -{length})]"))
    assert found.mesh("/m").normals.values.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]]
    assert found.codes() == []


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("bad", ["(0, 0, 0)", "(nan, 0, 1)", "(inf, 0, 1)"])
def test_normals_without_a_direction_are_zero_and_named(read, bad):
    """Zero means: the geometric normal."""
    found = read(mesh(QUAD + f"    normal3f[] normals = [{bad}, (0, 0, 1), (0, 0, 1), (0, 0, 1)]"))
    assert found.mesh("/m").normals.values.tolist()[1:] == [[0, 0, 1]] * 3
    assert np.isfinite(found.mesh("/m").normals.values).all()
    assert "normal-length" in found.codes("/m") or "0, 0, 0" not in bad
    if bad == "(0, 0, 0)":
        assert found.message("normal-length").startswith("1 of 4 normals")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("faces", ["4] \n int[] faceVertexIndices = [0, 1, 2, 3]", "3, 3]\n int[] faceVertexIndices = [0, 1, 2, 0, 2, 3]"])
def test_points_too_far_off_to_be_drawn_are_named(read, faces):
    body = f"int[] faceVertexCounts = [{faces}\npoint3f[] points = [(0, 0, 0), (3e38, 0, 0), (3e38, 3e38, 0), (0, 3e38, 0)]"
    found = read(mesh(body))
    assert found.paths == []
    assert "points-not-finite" in found.codes("/m")
    assert "beyond 1e+18" in found.message("points-not-finite")
