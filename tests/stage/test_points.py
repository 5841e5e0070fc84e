"""Points: balls, their widths and ids, what varies over them, and what is wrong with them."""

from __future__ import annotations

import time as clock

import numpy as np
import pytest
from pxr import Vt

from hdwarp.delegate.checks import check_record
from hdwarp.stage.columns import GeometryKind

THREE = "point3f[] points = [(0, 0, 0), (1, 0, 0), (2, 0, 5)]"
WIDE = 'float[] widths = [0.5] (interpolation = "constant")'


def dots(*body: str) -> str:
    return 'def Points "p" {\n' + "\n".join(body) + "\n}"


def test_a_ball_a_point(read):
    found = read(dots(THREE, "float[] widths = [1, 2, 4]", "int64[] ids = [7, 5, 9000000000]"))
    gprim, mesh = found.gprim("/p"), found.mesh("/p")
    assert gprim.kind is GeometryKind.POINTS is mesh.form
    assert mesh.points.tolist() == [[0, 0, 0], [1, 0, 0], [2, 0, 5]]
    assert mesh.radii.tolist() == [0.5, 1, 2]
    assert mesh.triangle_face.tolist() == [0, 1, 2]
    assert mesh.triangle_points.tolist() == [[t] * 3 for t in range(3)]
    assert (mesh.face_count, mesh.ids.tolist(), mesh.reach) == (3, [7, 5, 9000000000], 7.0)
    assert found.codes() == []
    check_record(gprim, (type(gprim),))


@pytest.mark.parametrize(
    ("widths", "radii"),
    [
        (WIDE, [0.25] * 3),
        ('float[] widths = [2, 4, 6] (interpolation = "varying")', [1, 2, 3]),
        ('float[] primvars:widths = [2, 4] (interpolation = "vertex")\nint[] primvars:widths:indices = [1, 0, 1]', [2, 1, 2]),
        ("float primvars:widths = 3", [1.5] * 3),
    ],
)
def test_widths(read, widths, radii):
    assert read(dots(THREE, widths)).mesh("/p").radii.tolist() == radii


def test_missing_widths_are_one_and_said_so(read):
    found = read(dots(THREE))
    assert found.mesh("/p").radii.tolist() == [0.5] * 3
    assert found.codes() == ["widths"]


def test_bad_points_are_skipped_and_the_others_keep_their_numbers(read):
    points = "point3f[] points = [(0, 0, 0), (nan, 0, 0), (2, 0, 0), (inf, 0, 0), (4, 0, 0), (5, 0, 0)]"
    found = read(
        dots(points, "float[] widths = [1, 1, 0, 1, -1, 1]", 'float[] primvars:heat = [0, 1, 2, 3, 4, 5] (interpolation = "vertex")')
    )
    mesh = found.mesh("/p")
    assert mesh.triangle_face.tolist() == [0, 5]
    assert mesh.points[:, 0].tolist() == [0, 5]
    assert "4 of 6 points are not drawn: 2 are NaN" in found.message("points-not-drawn")
    assert mesh.primvars["heat"].interpolation == "uniform"
    assert mesh.primvars["heat"].values[mesh.triangle_face, 0].tolist() == [0, 5]
    check_record(found.gprim("/p"), (type(found.gprim("/p")),))


def test_primvars(read):
    text = """color3f[] primvars:displayColor = [(1, 0, 0), (0, 1, 0), (0, 0, 1)] (interpolation = "vertex")
    float[] primvars:heat = [4] (interpolation = "uniform")
    float primvars:cold = 2"""
    found = read(dots(THREE, WIDE, text))
    mesh = found.mesh("/p")
    assert mesh.primvars["displayColor"].interpolation == "uniform"
    assert mesh.primvars["displayColor"].values.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert mesh.primvars["heat"].values[mesh.primvars["heat"].indices, 0].tolist() == [4, 4, 4]
    assert found.gprim("/p").constants["cold"].tolist() == [2]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "empty-points"),
        ("point3f[] points = []", "empty-points"),
        ("float points = 3", "wrong-type"),
        (f"{THREE}\n{WIDE}\nint64[] ids = [1]", "point-ids"),
        (f"{THREE}\n{WIDE}\nnormal3f[] normals = [(0, 0, 1), (0, 0, 1), (0, 0, 1)]", "point-normals"),
        (f"{THREE}\nfloat[] widths = [1, 2]", "widths"),
    ],
)
def test_what_is_missing_or_wrong_is_named(read, body, code):
    assert read(dots(body)).codes("/p") == [code]


def test_subsets_of_points(read):
    subset = """def Material "m" {}
    def GeomSubset "s" (prepend apiSchemas = ["MaterialBindingAPI"]) {
    uniform token elementType = "point"
    uniform token familyName = "materialBind"
    int[] indices = [2]
    rel material:binding = </p/m>
    }"""
    found = read(dots(THREE, WIDE, subset))
    assert found.mesh("/p").face_subset.tolist() == [-1, -1, 0]
    assert found.gprim("/p").subset_materials == ("/p/m",)


def test_points_in_instances(read):
    text = f'def Xform "a" (instanceable = true; references = </proto>) {{ }}\nclass Xform "proto" {{ {dots(THREE, WIDE)} }}'
    text += '\ndef PointInstancer "i" { rel prototypes = </i/q>; int[] protoIndices = [0, 0]; point3f[] positions = [(0, 0, 0), (5, 0, 0)]'
    text += "\n" + dots(THREE, WIDE).replace('"p"', '"q"') + " }"
    found = read(text)
    assert found.paths == ["/a/p", "/i/q"]
    assert len(found.gprim("/i/q").transforms) == 2


def test_a_million_points_read_fast(read):
    found = read(dots(THREE, WIDE))
    attribute = found.stage.GetPrimAtPath("/p").GetAttribute("points")
    attribute.Set(Vt.Vec3fArray.FromNumpy(np.random.default_rng(0).random((1_000_000, 3)).astype(np.float32)))
    started = clock.process_time()
    mesh = read(found.stage).mesh("/p")
    assert clock.process_time() - started < 3.0
    assert len(mesh.points) == 1_000_000
