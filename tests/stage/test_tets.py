"""TetMesh: the surface USD computes or the author wrote, what varies over it, and what is wrong with it."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Usd, UsdGeom

from hdwarp.errors import Severity

POINTS = "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)]"
PAIR = "int4[] tetVertexIndices = [(0, 1, 2, 3), (1, 2, 3, 4)]"  # the second is inside out, which the outer faces do not mind


def tets(body: str, points: str = POINTS) -> str:
    return f'def TetMesh "t" {{\n{points}\n{body}\n}}'


def volume(mesh) -> float:
    """By the divergence theorem; positive where the faces look outwards."""
    a, b, c = (mesh.points[mesh.triangle_points[:, k]].astype(float) for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)


def test_computed_faces_are_usds(read):
    found = read(tets(PAIR))
    expected = UsdGeom.TetMesh.ComputeSurfaceFaces(UsdGeom.TetMesh(found.stage.GetPrimAtPath("/t")), Usd.TimeCode.Default())
    mesh = found.mesh("/t")
    assert mesh.triangle_points.tolist() == [list(face) for face in expected]
    assert mesh.triangle_face.tolist() == list(range(6))
    assert mesh.normals is None  # faceted
    assert found.codes() == []


@pytest.mark.parametrize(("orientation", "tet"), [("rightHanded", "(0, 1, 2, 3)"), ("leftHanded", "(0, 2, 1, 3)")])
def test_faces_look_outwards(read, orientation, tet):
    """A corner of the unit cube: 1/6 of it. With leftHanded USD wants the mirrored order (FindInvertedElements finds none here)."""
    found = read(tets(f'int4[] tetVertexIndices = [{tet}]\nuniform token orientation = "{orientation}"'))
    prim = UsdGeom.TetMesh(found.stage.GetPrimAtPath("/t"))
    assert list(UsdGeom.TetMesh.FindInvertedElements(prim, Usd.TimeCode.Default())) == []
    assert volume(found.mesh("/t")) == pytest.approx(1.0 / 6.0)


def test_authored_faces_count(read):
    mesh = read(tets(f"{PAIR}\nint3[] surfaceFaceVertexIndices = [(0, 2, 1), (1, 2, 4)]")).mesh("/t")
    assert mesh.triangle_points.tolist() == [[0, 2, 1], [1, 2, 4]]


def test_a_grid_of_cubes_has_only_its_outside(read):
    """Cubes cut into five tetrahedra each, alternating: n^3 of them have 6 n^2 squares outside, two triangles each, and volume n^3."""
    n = 3
    number = np.arange((n + 1) ** 3).reshape(n + 1, n + 1, n + 1)
    points = np.argwhere(number >= 0)
    found = []
    for x, y, z in np.argwhere(number[:n, :n, :n] >= 0):
        corner = {(i, j, k): int(number[x + i, y + j, z + k]) for i in (0, 1) for j in (0, 1) for k in (0, 1)}
        flip = (x + y + z) % 2
        at = lambda i, j, k: corner[i ^ flip, j, k]  # noqa: B023, E731
        five = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(1, 1, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1)]
        five += [(1, 0, 1), (0, 0, 1), (1, 1, 1), (1, 0, 0)], [(0, 1, 1), (0, 0, 1), (0, 1, 0), (1, 1, 1)]
        five += ([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)],)
        for tet in five:
            ids = [at(*c) for c in tet]
            a, b, c, d = (points[i].astype(float) for i in ids)
            if np.dot(d - a, np.cross(b - a, c - a)) < 0:
                ids[1], ids[2] = ids[2], ids[1]
            found.append(ids)
    text = f"int4[] tetVertexIndices = {[tuple(tet) for tet in found]}"
    mesh = read(tets(text, f"point3f[] points = {[tuple(map(float, p)) for p in points]}")).mesh("/t")
    assert mesh.face_count == 2 * 6 * n * n
    assert volume(mesh) == pytest.approx(n**3)


def test_primvars_per_point_face_and_tetrahedron(read):
    body = (
        PAIR
        + """
        float[] primvars:point = [0, 1, 2, 3, 4] (interpolation = "vertex")
        float[] primvars:face = [0, 1, 2, 3, 4, 5] (interpolation = "uniform")
        float[] primvars:tet = [10, 20] (interpolation = "uniform")
        float[] primvars:dyed = [7, 8] (interpolation = "uniform")
        int[] primvars:dyed:indices = [1, 0]
        float[] primvars:one = [5] (interpolation = "constant")"""
    )
    found = read(tets(body))
    mesh = found.mesh("/t")
    assert mesh.primvars["point"].interpolation == "vertex"
    assert mesh.primvars["face"].values[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    with_4 = (mesh.triangle_points == 4).any(axis=1)  # point 4 is in the second tetrahedron alone, 0 in the first
    by_face = {name: mesh.primvars[name].values[mesh.primvars[name].indices][:, 0] for name in ("tet", "dyed")}
    assert by_face["tet"].tolist() == np.where(with_4, 20, 10).tolist()
    assert by_face["dyed"].tolist() == np.where(with_4, 7, 8).tolist()
    assert found.gprim("/t").constants["one"].tolist() == [5]
    assert found.codes() == []


def test_a_value_a_tetrahedron_needs_one_for_every_face(read):
    body = f"{PAIR}\nint3[] surfaceFaceVertexIndices = [(0, 2, 1), (0, 1, 4), (1, 2, 4)]"
    body += '\nfloat[] primvars:x = [1, 2] (interpolation = "uniform")'
    found = read(tets(body))
    assert found.mesh("/t").primvars == {}
    assert "1 surface faces are of none" in found.message("primvar-count")


def test_authored_normals_and_subsets(read):
    body = (
        PAIR
        + """
        normal3f[] normals = [(0, 0, 1), (0, 0, 1), (0, 0, 1), (0, 0, 2), (0, 0, 1)]
        def GeomSubset "s" { uniform token familyName = "materialBind"; int[] indices = [5] }"""
    )
    found = read(tets(body))
    assert found.mesh("/t").normals.values.tolist() == [[0, 0, 1]] * 5
    assert found.mesh("/t").face_subset.tolist() == [-1] * 5 + [0]


@pytest.mark.parametrize(
    ("body", "code", "drawn"),
    [
        ("int4[] tetVertexIndices = [(0, 1, 2, 3), (1, 2, 3, 9)]", "index-range", 4),
        ("int4[] tetVertexIndices = [(0, 1, 2, 3), (1, 2, 2, 3)]", "degenerate-faces", 4),
        ("int3[] surfaceFaceVertexIndices = [(0, 1, 2), (0, 1, 7)]", "index-range", 1),
        ("int4[] tetVertexIndices = [(0, 1, 2, 3), (0, 1, 2, 3)]", "no-faces", 0),
        ("custom string tetVertexIndices = 'x'", "wrong-type", 0),
        ("custom int[] surfaceFaceVertexIndices = [1, 2, 3]", "wrong-type", 0),
        ("", "missing-topology", 0),
    ],
)
def test_what_is_wrong_is_named(read, body, code, drawn):
    found = read(tets(body))
    assert code in found.codes("/t")
    assert sum(len(gprim.mesh.triangle_face) for gprim in found.gprims) == drawn


def test_bad_indices_are_called_by_their_own_name(read):
    assert "surfaceFaceVertexIndices outside 0..4" in read(tets("int3[] surfaceFaceVertexIndices = [(0, 1, 2), (0, 1, 7)]")).message(
        "index-range"
    )


def test_nothing_at_all_is_a_note(read):
    found = read('def TetMesh "t" {}')
    assert [(item.code, item.severity) for item in found.columns.diagnostics] == [("empty-mesh", Severity.NOTE)]
