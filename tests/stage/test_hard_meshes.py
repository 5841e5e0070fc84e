"""Meshes that want to break a renderer: seams, families of subsets, faces without area, twice there or on one edge, absurd sizes."""

from __future__ import annotations

import time as clock

import numpy as np
import pytest
from tests.stage.test_triangulate import TOUCHING

from hdwarp.errors import Diagnostics, Severity
from hdwarp.stage import earpeel, meshes
from hdwarp.stage.earclip import clip_ears
from hdwarp.stage.triangulate import triangulate

BOOK = """
    uniform token subdivisionScheme = "none"
    int[] faceVertexCounts = [4, 4]
    int[] faceVertexIndices = [0, 1, 4, 3, 1, 2, 5, 4]
    point3f[] points = [(-1, 0, 1), (0, 0, 0), (1, 0, 1), (-1, 1, 1), (0, 1, 0), (1, 1, 1)]
"""


def mesh(body: str) -> str:
    return f'def Mesh "m" {{\n{body}\n}}\n'


@pytest.mark.parametrize("name", ["normals", "primvars:normals"])
def test_face_varying_normals_keep_the_crease(read, name):
    """Both pages meet at points 1 and 4, and each has its own normal there."""
    left, right = "(0.6, 0, 0.8)", "(-0.6, 0, 0.8)"
    values = ", ".join([left] * 4 + [right] * 4)
    found = read(mesh(f'{BOOK}\nnormal3f[] {name} = [{values}] (interpolation = "faceVarying")')).mesh("/m")
    assert found.normals.interpolation == "faceVarying"
    at_corner = found.normals.values[found.triangle_corners]  # (T, 3, 3)
    assert at_corner[:2] == pytest.approx(np.broadcast_to([0.6, 0, 0.8], (2, 3, 3)))
    assert at_corner[2:] == pytest.approx(np.broadcast_to([-0.6, 0, 0.8], (2, 3, 3)))


@pytest.mark.parametrize("orientation", ["rightHanded", "leftHanded"])
def test_st_with_a_seam(read, orientation):
    """Point 1 is s = 1 on one page and s = 0 on the other; values follow the corners when the winding turns."""
    st = 'texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1), (0, 1)] (interpolation = "faceVarying")'
    body = f'{BOOK}\n{st}\nint[] primvars:st:indices = [0, 1, 2, 3, 0, 1, 2, 3]\nuniform token orientation = "{orientation}"'
    found = read(mesh(body)).mesh("/m")
    primvar = found.primvars["st"]
    s = primvar.values[primvar.indices[found.triangle_corners]][..., 0]
    x = found.points[found.triangle_points][..., 0]
    assert (s == x + (found.triangle_face == 0)[:, None]).all()


# -- families of subsets --------------------------------------------------------------------------------------------------------


def family(kind: str, *subsets: str) -> str:
    text = f'{BOOK}\nuniform token subsetFamily:materialBind:familyType = "{kind}"\n' if kind else BOOK
    for k, indices in enumerate(subsets):
        text += f'def GeomSubset "s{k}" {{\nuniform token familyName = "materialBind"\nint[] indices = {indices}\n}}\n'
    return mesh(text)


@pytest.mark.parametrize(
    ("kind", "subsets", "slots", "codes"),
    [
        ("partition", ("[0]", "[1]"), [0, 1], []),
        ("partition", ("[0]",), [0, -1], ["subset-family"]),
        ("nonOverlapping", ("[0]",), [0, -1], []),
        ("nonOverlapping", ("[0]", "[0, 1]"), [0, 1], ["subset-duplicates"]),
        ("unrestricted", ("[1]", "[0, 1]"), [1, 0], ["subset-duplicates", "subset-family"]),
        ("", ("[1]", "[0, 1]"), [1, 0], ["subset-duplicates"]),
    ],
)
def test_families(read, kind, subsets, slots, codes):
    """Of faces in two subsets the first counts; what the family is said to be and is not is told."""
    found = read(family(kind, *subsets))
    assert found.mesh("/m").face_subset.tolist() == slots
    assert sorted(found.codes()) == codes


# -- faces ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["none", "catmullClark"])
def test_three_faces_on_an_edge_twins_and_faces_without_area(read, scheme):
    """All are there, each under its own number; computed normals are finite, and zero only where nothing has an area."""
    found = read(
        mesh(f"""
        uniform token subdivisionScheme = "{scheme}"
        int[] faceVertexCounts = [3, 3, 3, 3, 3, 4, 3]
        int[] faceVertexIndices = [0, 1, 2,  0, 1, 3,  1, 0, 4,  0, 1, 2,  2, 1, 0,  0, 1, 1, 0,  5, 5, 5]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, -1, 0), (9, 9, 9)]
    """)
    )
    geometry = found.mesh("/m")
    assert geometry.triangle_face.tolist() == [0, 1, 2, 3, 4, 5, 5, 6]
    assert [item.severity for item in found.columns.diagnostics if item.code != "control-cage"] == []
    if scheme == "catmullClark":
        length = np.linalg.norm(geometry.normals.values, axis=1)
        assert length == pytest.approx([1, 1, 1, 1, 1, 0], abs=1e-6)


def test_meshes_beyond_int32_are_refused_by_name(read, monkeypatch):
    """With arrays that only say that they are so long."""
    real = meshes._array

    def long(prim, name, names, time, width):
        found = real(prim, name, names, time, width)
        return np.broadcast_to(np.int32(0), 2**31) if name == "faceVertexIndices" else found

    monkeypatch.setattr(meshes, "_array", long)
    found = read(mesh(BOOK))
    assert found.paths == []
    assert [(item.code, item.severity) for item in found.columns.diagnostics] == [("mesh-size", Severity.ERROR)]
    assert "faceVertexIndices has 2,147,483,648 items" in found.message("mesh-size")


def test_the_largest_that_can_be_numbered_is_not_refused():
    told = Diagnostics()
    assert not meshes.refuse_beyond_int32({"points": np.broadcast_to(np.float32(0), (2**31 - 1, 3))}, "/m", told)
    assert not len(told)


def outline(shape: str, n: int) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    circle = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    if shape == "wave":
        return circle * (1 + 0.1 * np.sin(40 * angle))[:, None]
    if shape == "ring":
        return np.concatenate((circle[: n // 2], 0.9 * circle[: n // 2][::-1]))
    if shape == "star":
        return circle * np.random.default_rng(1).uniform(0.2, 1, n)[:, None]
    return circle * np.where(np.arange(n) % 2, 1.0, 0.5)[:, None]


def area(points: np.ndarray) -> float:
    x, y = points.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def areas(p: np.ndarray) -> np.ndarray:
    """(T,) of triangles (T, 3, 2)."""
    a, b = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]
    return 0.5 * (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])


@pytest.mark.parametrize("shape", ["wave", "ring", "star", "gear"])
def test_polygons_of_100_000_corners(shape):
    """Covered once: areas add up to that of the outline, and none is negative. Turns as slight as those of the wave are turns."""
    points = outline(shape, 100_000)
    points = np.c_[points, np.zeros(len(points))].astype(np.float32)
    start = clock.perf_counter()
    corners, _ = triangulate(points, [len(points)], np.arange(len(points)))
    took = clock.perf_counter() - start
    p = points[corners].astype(float)
    parts, whole = areas(p[..., :2]), area(points[:, :2].astype(float))
    assert len(corners) == len(points) - 2
    assert np.abs(parts).sum() == pytest.approx(whole, rel=1e-6)
    assert took < 20.0  # one to four seconds on two shared cores


@pytest.mark.parametrize("seed", range(60))
def test_what_large_polygons_go_through_on_small_ones(seed, monkeypatch):
    """Ears in rounds, straight corners left out and put back, on stars in whole numbers with slits, spikes and corners on their edges."""
    monkeypatch.setattr(earpeel, "LEAST", 4)
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    angle, radius = np.linspace(0, 2 * np.pi, n, endpoint=False), rng.uniform(0.4, 1.0, n)
    star = np.round(np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1) * 512) * 8
    outline = []
    for here, there in zip(star, np.roll(star, -1, axis=0), strict=True):
        outline.append(here)
        what = rng.integers(0, 4)
        if what == 1:
            outline += [0.5 * here, here]  # a slit
        elif what == 2:
            outline += [1.5 * here, here]  # a spike
        outline += [here + (there - here) * k / 8 for k in range(1, 8)] if what != 3 and seed % 2 else []  # straight on
    points = np.roll(np.array(outline), int(rng.integers(len(outline))), axis=0)
    triangles = clip_ears(points)
    p = points[triangles]
    parts = areas(p)
    assert len(triangles) == len(points) - 2
    assert np.abs(parts).sum() == pytest.approx(area(points), rel=1e-9)
    assert sorted(set(triangles.ravel().tolist())) == list(range(len(points)))


@pytest.mark.parametrize("name", TOUCHING)
def test_large_polygons_that_touch_themselves(name, monkeypatch):
    monkeypatch.setattr(earpeel, "LEAST", 3)
    corners, whole = TOUCHING[name]
    for start in range(len(corners)):
        points = np.roll(np.array(corners, float), -start, axis=0)
        p = points[clip_ears(points)]
        assert np.abs(areas(p)).sum() == pytest.approx(whole)
