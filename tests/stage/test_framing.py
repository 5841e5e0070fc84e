"""The view made up for stages without a camera: everything is in the picture, whatever its size, place and shape."""

from __future__ import annotations

import numpy as np
import pytest

from hdwarp.stage.columns import GeometryKind, Gprim, MeshGeometry, StageColumns
from hdwarp.stage.framing import default_camera, scene_bounds
from hdwarp.views import pinhole
from hdwarp.views.conform import image_spec


def columns_of(*gprims, up_axis="Y"):
    return StageColumns(metres_per_unit=1.0, up_axis=up_axis, time=None, time_codes_per_second=24.0, gprims=list(gprims))


def place(translate=(0.0, 0.0, 0.0), scale=1.0):
    matrix = np.eye(4)
    matrix[:3, :3] *= scale
    matrix[:3, 3] = translate
    return matrix


def shape(kind, *transforms):
    return Gprim(path="/Shape", kind=kind, mesh=None, transforms=np.stack(transforms or [np.eye(4)]))


def mesh_of(points, triangles):
    points, triangles = np.asarray(points, np.float32), np.asarray(triangles, np.int32)
    return MeshGeometry(points, triangles, triangles, np.arange(len(triangles), dtype=np.int32), len(triangles), triangles.size)


def mesh_prim(*transforms, mesh):
    return Gprim(path="/Mesh", kind=GeometryKind.MESH, mesh=mesh, transforms=np.stack(transforms or [np.eye(4)]))


def seen(camera, points, size=(320, 180)):
    """Pixels of points, and whether each is in the picture and the clip range."""
    pixels, depth = pinhole.project(camera, image_spec(size), points)
    near, far = camera.clipping_range
    inside = (pixels >= 0.0).all(axis=-1) & (pixels <= size).all(axis=-1) & (depth >= near) & (depth <= far)
    return pixels, inside


def corners(lower, upper):
    return np.array([[x, y, z] for x in (lower[0], upper[0]) for y in (lower[1], upper[1]) for z in (lower[2], upper[2])])


def test_bounds_of_shapes_are_exact():
    """A sphere of radius 2 at (1, 0, 0); a unit cube turned by 45 degrees is as wide as its diagonal."""
    lower, upper = scene_bounds(columns_of(shape(GeometryKind.SPHERE, place((1.0, 0.0, 0.0), 2.0))))
    np.testing.assert_allclose((lower, upper), [(-1.0, -2.0, -2.0), (3.0, 2.0, 2.0)])
    turned = np.eye(4)
    turned[:2, :2] = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2.0)
    lower, upper = scene_bounds(columns_of(shape(GeometryKind.CUBE, turned)))
    np.testing.assert_allclose(upper, (np.sqrt(2.0), np.sqrt(2.0), 1.0))


def test_bounds_of_a_turned_scaled_cube():
    """Cube of size 1, translate (1, 2, 3), rotateZ 45, scale (2, 1, 0.5)."""
    linear = np.array([[1.414214, -0.707107, 0.0], [1.414214, 0.707107, 0.0], [0.0, 0.0, 0.5]])
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = linear * 0.5, (1.0, 2.0, 3.0)
    lower, upper = scene_bounds(columns_of(shape(GeometryKind.CUBE, matrix)))
    np.testing.assert_allclose(lower, (-0.060660, 0.939340, 2.75), atol=1e-5)
    np.testing.assert_allclose(upper, (2.060660, 3.060660, 3.25), atol=1e-5)


def test_points_no_triangle_uses_do_not_count():
    mesh = mesh_of([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1e9, 0, 0)], [(0, 1, 2)])
    _, upper = scene_bounds(columns_of(mesh_prim(mesh=mesh)))
    np.testing.assert_allclose(upper, (1.0, 1.0, 0.0))


def test_many_instances_of_a_large_mesh_have_safe_bounds():
    random = np.random.default_rng(1)
    mesh = mesh_of(random.normal(size=(30_000, 3)), np.arange(30_000).reshape(-1, 3))
    transforms = [place(random.normal(size=3) * 10.0) for _ in range(200)]
    lower, upper = scene_bounds(columns_of(mesh_prim(*transforms, mesh=mesh)))
    centres = np.stack(transforms)[:, :3, 3]
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    np.testing.assert_allclose(lower, centres.min(axis=0) + low, rtol=1e-6)
    np.testing.assert_allclose(upper, centres.max(axis=0) + high, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e7])
@pytest.mark.parametrize("centre", [(0.0, 0.0, 0.0), (3.0, -2.0, 1.0), (1e3, 0.0, 0.0)])
@pytest.mark.parametrize("aspect", [(320, 180), (180, 320), (1000, 10)])
@pytest.mark.parametrize("up_axis", ["Y", "Z"])
def test_everything_is_in_the_picture(size, centre, aspect, up_axis):
    centre = np.array(centre) * size  # 1e7 m at 1e10 m
    columns = columns_of(shape(GeometryKind.SPHERE, place(centre, size), place(centre + (3.0 * size, 0.0, 0.0), size)), up_axis=up_axis)
    camera = default_camera(columns, aspect[0] / aspect[1])
    pixels, inside = seen(camera, corners(*scene_bounds(columns)), aspect)
    assert inside.all()
    # And it fills the picture: some side reaches near to an edge.
    extent = np.ptp(pixels, axis=0) / aspect
    assert 0.5 < extent.max() <= 1.0
    near, far = camera.clipping_range
    assert 0.0 < near < far < np.inf


def test_far_away_small_things():
    """A millimetre at 10,000 km."""
    columns = columns_of(shape(GeometryKind.CUBE, place((1e7, 0.0, 0.0), 1e-3)))
    _, inside = seen(default_camera(columns, 1.0), corners(*scene_bounds(columns)), (100, 100))
    assert inside.all()


@pytest.mark.parametrize("normal", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (-0.82, 0, 0.58), (0.1, -0.87, 0.49), (-0.5, 1, -0.2)])
@pytest.mark.parametrize("up_axis", ["Y", "Z"])
def test_flat_scenes_are_not_seen_edge_on(normal, up_axis):
    normal = np.array(normal) / np.linalg.norm(normal)
    across = np.cross(normal, (0.3, 0.5, 0.8))
    across /= np.linalg.norm(across)
    along = np.cross(normal, across)
    mesh = mesh_of([across + along, across - along, -across - along, -across + along], [(0, 1, 2), (0, 2, 3)])
    camera = default_camera(columns_of(mesh_prim(place((5.0, 6.0, 7.0)), mesh=mesh), up_axis=up_axis), 1.0)
    assert abs(normal @ camera.world_from_camera[:3, 2]) >= 0.2
    _, inside = seen(camera, mesh.points + (5.0, 6.0, 7.0), (100, 100))
    assert inside.all()


@pytest.mark.parametrize(
    "columns",
    [
        columns_of(),
        columns_of(mesh_prim(mesh=mesh_of(np.zeros((0, 3)), np.zeros((0, 3))))),
        columns_of(mesh_prim(mesh=mesh_of(np.full((3, 3), 2.0), [(0, 1, 2)]))),
        columns_of(mesh_prim(place((1e6, 0.0, 0.0)), mesh=mesh_of(np.zeros((3, 3)), [(0, 1, 2)]))),
        columns_of(mesh_prim(mesh=mesh_of([(0, 0, 0), (0, 9, 0), (0, 3, 0)], [(0, 1, 2)]))),
        columns_of(shape(GeometryKind.CUBE, np.full((4, 4), np.nan))),
    ],
    ids=["nothing", "empty mesh", "a point", "a point far away", "a line", "no finite place"],
)
def test_nearly_nothing_still_gives_a_camera(columns):
    camera = default_camera(columns, 16.0 / 9.0)
    near, far = camera.clipping_range
    assert np.isfinite(camera.world_from_camera).all()
    assert 0.0 < near < far < np.inf
    bounds = scene_bounds(columns)
    points = corners(*bounds) if bounds else np.zeros((1, 3))
    assert seen(camera, points)[1].all()


def test_the_view_is_upright_and_45_degrees_high():
    for up_axis, up in (("Y", (0, 1, 0)), ("Z", (0, 0, 1))):
        camera = default_camera(columns_of(shape(GeometryKind.SPHERE), up_axis=up_axis), 2.0)
        rotation = camera.world_from_camera[:3, :3]
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-12)
        assert np.linalg.det(rotation) == pytest.approx(1.0)
        assert rotation[:, 0] @ up == pytest.approx(0.0, abs=1e-12)  # the horizon is level
        assert rotation[:, 1] @ up > 0.5
        assert rotation[:, 2] @ up > 0.2  # from above
        assert 2.0 * np.degrees(np.arctan(camera.aperture[1] / (2.0 * camera.focal_length))) == pytest.approx(45.0)
        assert camera.aperture[0] / camera.aperture[1] == pytest.approx(2.0)


def test_bounds_of_points_and_curves(read):
    """Balls of their radii, tubes of theirs about control points, ribbons of their edges; under a transform as well."""
    text = """def Xform "x" {
    double3 xformOp:translate = (10, 0, 0)
    float3 xformOp:scale = (1, 2, 1)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    def Points "p" {
        point3f[] points = [(0, 0, 0), (4, 0, 0)]
        float[] widths = [2, 4]
    }
    }"""
    lower, upper = scene_bounds(read(text).columns)
    np.testing.assert_allclose((lower, upper), [(9.0, -4.0, -2.0), (16.0, 4.0, 2.0)])
    curve = """def BasisCurves "c" {
    uniform token type = "linear"
    point3f[] points = [(0, 0, 0), (4, 0, 0)]
    int[] curveVertexCounts = [2]
    float[] widths = [2, 4]
    MORE
    }"""
    lower, upper = scene_bounds(read(curve.replace("MORE", "")).columns)
    np.testing.assert_allclose((lower, upper), [(-1.0, -2.0, -2.0), (6.0, 2.0, 2.0)])
    lower, upper = scene_bounds(read(curve.replace("MORE", "normal3f[] normals = [(0, 0, 1), (0, 0, 1)]")).columns)
    np.testing.assert_allclose((lower, upper), [(0.0, -2.0, 0.0), (4.0, 2.0, 0.0)], atol=1e-7)
