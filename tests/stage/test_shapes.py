"""Implicit prims -> unit shapes: sizes, axes and extents as pxr computes them, wrong values named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Usd, UsdGeom

from hdwarp.stage.columns import GeometryKind
from hdwarp.stage.framing import default_camera, scene_bounds
from hdwarp.stage.shapes import SHAPE_TYPES

SIZES = {
    "Sphere": {"radius": 0.7},
    "Cube": {"size": 3.0},
    "Cylinder": {"radius": 2.0, "height": 6.0},
    "Cylinder_1": {"radiusTop": 1.0, "radiusBottom": 2.0, "height": 6.0},
    "Cone": {"radius": 2.0, "height": 6.0},
    "Capsule": {"radius": 2.0, "height": 6.0},
    "Capsule_1": {"radiusTop": 1.0, "radiusBottom": 2.0, "height": 6.0},
    "Plane": {"width": 4.0, "length": 10.0},
}


def stage_with(type_name: str, axis: str = "Z", **values) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    prim = stage.DefinePrim("/x", type_name)
    for name, value in values.items():
        prim.GetAttribute(name).Set(value)
    if type_name not in ("Sphere", "Cube"):
        prim.GetAttribute("axis").Set(axis)
    return stage


def extent(stage: Usd.Stage) -> np.ndarray:
    return np.array(UsdGeom.Boundable.ComputeExtentFromPlugins(UsdGeom.Boundable(stage.GetPrimAtPath("/x")), Usd.TimeCode.Default()))


@pytest.mark.parametrize("axis", "XYZ")
@pytest.mark.parametrize("type_name", SHAPE_TYPES)
@pytest.mark.parametrize("authored", [False, True])
def test_extents_are_those_of_usd(read, type_name, axis, authored):
    """(g) 16 among them; float32 extents, compared exactly."""
    stage = stage_with(type_name, axis, **(SIZES[type_name] if authored else {}))
    found = read(stage)
    assert found.codes() == []
    np.testing.assert_allclose(np.float32(scene_bounds(found.columns)), extent(stage), rtol=2e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("type_name", "axis", "lower", "upper"),
    [
        ("Cone", "X", (-3, -2, -2), (3, 2, 2)),
        ("Cylinder", "Z", (-2, -2, -3), (2, 2, 3)),
        ("Capsule", "Z", (-2, -2, -5), (2, 2, 5)),
        ("Capsule_1", "Z", (-2.0275874, -2.0275874, -5.360921), (2.0275874, 2.0275874, 3.8471272)),
        ("Plane", "X", (0, -5, -2), (0, 5, 2)),
        ("Plane", "Y", (-2, 0, -5), (2, 0, 5)),
        ("Plane", "Z", (-2, -5, 0), (2, 5, 0)),
    ],
)
def test_known_extents(read, type_name, axis, lower, upper):
    """(g) 16."""
    bounds = scene_bounds(read(stage_with(type_name, axis, **SIZES[type_name])).columns)
    np.testing.assert_allclose(bounds, (lower, upper), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("type_name", SHAPE_TYPES)
def test_bounds_of_turned_shapes_are_tight(read, type_name):
    """Under any affine map no point sticks out, and some points reach the bounds: against points all over the surface."""
    rng = np.random.default_rng(4)
    stage = stage_with(type_name, "Y", **SIZES[type_name])
    columns = read(stage).columns
    linear = rng.normal(size=(3, 3))
    gprim = columns.gprims[0]
    local = gprim.transforms[0, :3, :3].copy()
    gprim.transforms[0, :3, :3] = linear @ local
    points = surface_points(gprim) @ (linear @ local).T
    lower, upper = scene_bounds(columns)
    size = np.linalg.norm(upper - lower)
    np.testing.assert_allclose(points.min(axis=0), lower, atol=2e-4 * size)
    np.testing.assert_allclose(points.max(axis=0), upper, atol=2e-4 * size)
    assert (points >= lower - 1e-9 * size).all()
    assert (points <= upper + 1e-9 * size).all()


def surface_points(gprim) -> np.ndarray:
    low, high, half, _ = gprim.shape
    u, v = (a.ravel() for a in np.meshgrid(np.linspace(0, 2 * np.pi, 2001), np.linspace(0, np.pi, 501)))
    ball = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], -1)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    ring = np.stack([np.cos(u), np.sin(u), 0 * u], -1)
    if gprim.kind == GeometryKind.SPHERE:
        return ball
    if gprim.kind in (GeometryKind.CUBE, GeometryKind.PLANE):
        return corners * (1, 1, gprim.kind == GeometryKind.CUBE)
    if gprim.kind == GeometryKind.CONE:
        return np.concatenate([ring * low - (0, 0, half), ring * high + (0, 0, half)])
    k = (high - low) / (2 * half)
    slant = math.hypot(1, k)
    return np.concatenate([ball * low * slant + (0, 0, k * low - half), ball * high * slant + (0, 0, k * high + half)])


def test_what_does_not_fit_the_transform_is_in_shape(read):
    """Radii relative to the larger; a capsule's to its larger ball."""
    shape = {name: read(stage_with(name, **SIZES[name])).gprim("/x") for name in SHAPE_TYPES}
    assert shape["Cylinder"].kind is shape["Cone"].kind is shape["Cylinder_1"].kind is GeometryKind.CONE
    assert shape["Cylinder"].shape == (1.0, 1.0, 1.0, 0.0)
    assert shape["Cylinder_1"].shape == (1.0, 0.5, 1.0, 0.0)
    assert shape["Cone"].shape == (1.0, 0.0, 1.0, 0.0)
    assert shape["Capsule"].shape == (1.0, 1.0, 1.5, 0.0)
    ball = 2.0 * math.sqrt(1 + (1 / 6) ** 2)
    assert shape["Capsule_1"].shape == pytest.approx((2 / ball, 1 / ball, 3 / ball, 0))
    assert shape["Plane"].shape == (1.0, 1.0, 0.0, 0.0)
    assert shape["Sphere"].shape == shape["Cube"].shape == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("axis", "XYZ")
def test_the_top_is_where_the_axis_points(read, axis):
    for type_name in ("Cone", "Capsule_1"):
        transform = read(stage_with(type_name, axis, **SIZES[type_name])).gprim("/x").transforms[0, :3, :3]
        assert transform[:, 2] @ np.eye(3)["XYZ".index(axis)] > 0
        assert np.linalg.det(transform) > 0  # nothing is mirrored


@pytest.mark.parametrize("axis", "XYZ")
def test_planes_face_along_their_axis(read, axis):
    transform = read(stage_with("Plane", axis)).gprim("/x").transforms[0, :3, :3]
    np.testing.assert_allclose(np.cross(transform[:, 0], transform[:, 1]), np.eye(3)["XYZ".index(axis)], atol=1e-12)


def test_sidedness_as_the_schemas_have_it(read):
    text = (
        'def Plane "a" {}\ndef Plane "b" { uniform bool doubleSided = 0 }\ndef Cone "c" {}\ndef Cone "d" { uniform bool doubleSided = 1 }'
    )
    assert [gprim.double_sided for gprim in read(text).gprims] == [True, False, False, True]


def test_a_capsule_without_height_is_a_sphere(read):
    found = read(
        'def Capsule "a" { double height = 0 }\ndef Capsule_1 "b" { double height = 0\ndouble radiusTop = 2\ndouble radiusBottom = 2 }'
    )
    assert [gprim.kind for gprim in found.gprims] == [GeometryKind.SPHERE] * 2
    assert [gprim.transforms[0, 0, 0] for gprim in found.gprims] == [0.5, 2.0]
    assert found.codes() == []


@pytest.mark.parametrize("value", [-1.0, 0.0, math.nan, math.inf])
@pytest.mark.parametrize(("type_name", "name"), [(t, name) for t, sizes in SIZES.items() for name in sizes])
def test_sizes_that_are_none_are_named(read, type_name, name, value):
    """Radii of the two-radius shapes and a capsule's height may be 0."""
    stage = stage_with(type_name, **{name: value})
    found = read(stage)
    if value == 0.0 and (
        name in ("radiusTop", "radiusBottom") or (type_name, name) == ("Capsule", "height") or name + type_name == "heightCapsule_1"
    ):
        assert found.codes() == []
        return
    assert found.codes() == ["shape-size"]
    assert found.gprims == []
    assert name in found.message("shape-size")


def test_other_wrong_values(read):
    """Both radii 0; a two-radius capsule without height; a value of another type; an axis there is not."""
    found = read(
        """def Cylinder_1 "a" { double radiusTop = 0\ndouble radiusBottom = 0 }
        def Capsule_1 "b" { double height = 0\ndouble radiusTop = 2 }
        def Cone "c" { string radius = "wide" }
        def Cone "d" { uniform token axis = "W" }
        def Cube "ok" {}"""
    )
    assert [(item.path, item.code) for item in found.diagnostics] == [
        ("/a", "shape-size"),
        ("/b", "shape-size"),
        ("/c", "wrong-type"),
        ("/d", "shape-axis"),
    ]
    assert found.paths == ["/d", "/ok"]


def test_endless_planes_do_not_count_in_the_framed_view(read):
    """With something else to look at they are left out; alone, they are looked at."""
    endless = 'def Plane "p" { custom bool hdwarp:infinite = 1 }\n'
    found = read(endless + 'def Sphere "s" {}')
    assert found.gprim("/p").shape == (math.inf, math.inf, 0.0, 0.0)
    np.testing.assert_allclose(scene_bounds(found.columns), ((-1, -1, -1), (1, 1, 1)))
    alone = read(endless).columns
    np.testing.assert_allclose(scene_bounds(alone), ((-1, -1, 0), (1, 1, 0)))
    assert np.isfinite(default_camera(alone, 1.0).world_from_camera).all()
    assert read('def Plane "p" { custom bool hdwarp:infinite = 0 }').gprim("/p").shape == (1.0, 1.0, 0.0, 0.0)
