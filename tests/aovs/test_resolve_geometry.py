"""Distances, positions, normals and weights against a float64 caster and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

MESH, SPHERE, CUBE = 0, 1, 2
ALL = [
    "distance_to_image_plane",
    "cameraDepth",
    "distance_to_camera",
    "depth",
    "position",
    "Peye",
    "Ngeom",
    "normal",
    "Neye",
    "barycentric",
]


def random_scene(tools, seed, *, shapes=True):
    """A triangle soup in three affine instances (one mirrored), a sheared sphere and a sheared, mirrored cube."""
    rng = np.random.default_rng(seed)
    scene = tools.Scene()
    points = rng.normal(size=(40, 3))
    triangles = np.array([rng.choice(40, 3, replace=False) for _ in range(37)])
    mesh = scene.add_mesh(points, triangles)
    other = scene.add_mesh(rng.normal(size=(9, 3)) * 0.5, np.arange(9).reshape(3, 3))
    for i in range(3):
        linear = rng.normal(size=(3, 3))
        linear *= np.sign(np.linalg.det(linear)) * (-1 if i == 1 else 1)
        scene.add(MESH, linear * 0.7, rng.normal(size=3), mesh=mesh)
    scene.add(MESH, np.eye(3), rng.normal(size=3), mesh=other)
    if shapes:
        scene.add(SPHERE, rng.normal(size=(3, 3)) * 0.6, rng.normal(size=3))
        scene.add(CUBE, rng.normal(size=(3, 3)) * 0.4, rng.normal(size=3))
        scene.add(CUBE, np.diag([0.3, -0.5, 0.2]) @ tools.rotation((1, 2, 3), 0.4), rng.normal(size=3))
    return scene


def random_views(tools, seed):
    rng = np.random.default_rng(seed)
    turn = tools.rotation(rng.normal(size=3), 0.3)
    place = turn[:, 2] * 5
    perspective = {"near": 0.5, "far": 60.0, "scene_unit": 100.0}
    return [
        tools.View(37, 21, place, turn, half_width=0.7, **perspective),
        tools.View(37, 21, place, turn, half_width=0.7, **perspective, centre=(0.2, 0.8)),
        tools.View(37, 21, place, turn, half_width=3.0, orthographic=True, near=0.0, far=12.0),
        tools.View(37, 21, np.zeros(3), turn, half_width=1.5, near=0.2),  # inside the scene, far at infinity
    ]


def check(image, hit, view):
    seen = hit.seen
    row = view.row()
    t = hit.t[seen]
    wanted = {
        "distance_to_image_plane": t,
        "cameraDepth": t * view.scene_unit,
        "distance_to_camera": t * np.linalg.norm(hit.direction[seen], axis=-1),
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(image[name][seen], values, rtol=3e-7, err_msg=name)
    n, f = view.near, view.far
    if view.orthographic:
        depth = (t - n) / (f - n)
    else:
        depth = (1 - n / t) / (1 - n / f)
    np.testing.assert_allclose(image["depth"][seen], depth, atol=1.5e-7)
    scale = np.abs(hit.point[seen]).max(initial=1)
    np.testing.assert_allclose(image["position"][seen], hit.point[seen], atol=3e-7 * scale)
    axes = np.array([[*row.right], [*row.up], [*row.back]], float)
    np.testing.assert_allclose(image["Peye"][seen], (hit.point[seen] - view.position) @ axes.T, atol=1e-6 * t.max(initial=1))
    np.testing.assert_allclose(image["Ngeom"][seen], hit.normal[seen], atol=2e-5)  # of nearly singular transforms
    assert not seen.any() or np.median(np.abs(image["Ngeom"][seen] - hit.normal[seen])) < 1e-7
    np.testing.assert_array_equal(image["normal"], image["Ngeom"])
    np.testing.assert_allclose(image["Neye"][seen], image["normal"][seen] @ axes.T, atol=3e-7)
    np.testing.assert_allclose(np.linalg.norm(image["Ngeom"][seen], axis=-1), 1, atol=3e-7)
    np.testing.assert_allclose(image["barycentric"][seen], hit.weights[seen][:, :2], atol=2e-5)
    assert np.all(image["barycentric"] >= 0)
    assert np.all(image["barycentric"] <= 1)
    for name in ("distance_to_image_plane", "cameraDepth", "distance_to_camera", "position", "Peye"):
        assert np.all(np.isposinf(image[name][~seen])), name
    assert np.all(image["depth"][~seen] == 1)
    for name in ("Ngeom", "normal", "Neye", "barycentric"):
        assert np.all(image[name][~seen] == 0), name


@pytest.mark.parametrize("seed", range(6))
def test_random_scenes(tools, device, seed):
    """Triangles, spheres and cubes under affine maps, near clipping included, with a record good to 1e-5."""
    views = random_views(tools, seed)
    setup = tools.Setup(random_scene(tools, seed), views, device)
    for image, hit, view in zip(setup.resolve(ALL), setup.hits, views, strict=True):
        check(image, hit, view)
    seen = np.concatenate([hit.instance.ravel() for hit in setup.hits])
    assert set(np.unique(seen)) >= {-1, 0, 1, 2, 4, 5}, "the scene tests less than it should"


@pytest.mark.parametrize("size", [(1, 1), (17, 3), (16, 8), (33, 9), (130, 2), (257, 1)])
def test_any_size(tools, device, size):
    """A sphere ahead: t = z of the surface along each ray; no pixel outside the image is touched (`resolve` fills the arrays exactly)."""
    scene = tools.Scene()
    scene.add(SPHERE, np.eye(3), (0, 0, -4))
    view = tools.View(*size, np.zeros(3), half_width=0.35, far=100.0)
    setup = tools.Setup(scene, [view], device)
    (image,) = setup.resolve(ALL)
    check(image, setup.hits[0], view)


@pytest.mark.parametrize("orthographic", [False, True])
@pytest.mark.parametrize("window", [(5, 3, 20, 9), (-7, -9, 60, 40), (16, 8, 16, 8), (31, 0, 1, 1), (-33, -1, 40, 3)])
def test_a_window_shows_the_bits_of_the_full_image(tools, device, window, orthographic):
    scene = random_scene(tools, 3)
    common = {"half_width": 2.0 if orthographic else 0.5, "orthographic": orthographic, "far": 50.0}
    place = np.array([0, 0, 6.0])
    whole = tools.View(40, 24, place, **common, window=(-40, -16, 120, 60))
    part = tools.View(40, 24, place, **common, window=window)
    setups = [tools.Setup(scene, [view], device) for view in (whole, part)]
    (full,), (cut,) = (setup.resolve(ALL) for setup in setups)
    x0, y0, width, height = window
    for name in ALL:
        np.testing.assert_array_equal(cut[name], full[name][y0 + 16 : y0 + 16 + height, x0 + 40 : x0 + 40 + width], err_msg=name)
    check(cut, setups[1].hits[0], part)


def quad(tools, size, **options):
    scene = tools.Scene()
    points = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * size
    mesh = scene.add_mesh(points, [[0, 1, 2], [0, 2, 3]], face=[0, 0])
    scene.add(MESH, mesh=mesh, **options)
    return scene


def test_a_wall_at_four_metres(tools, device):
    """Planar depth 4 within 1e-5 m on every pixel, also after back-projection."""
    view = tools.View(64, 48, np.zeros(3), half_width=0.6)
    setup = tools.Setup(quad(tools, 10, translation=(0, 0, -4)), [view], device)
    (image,) = setup.resolve(["distance_to_image_plane", "position", "Ngeom"])
    assert setup.hits[0].seen.all()
    assert np.abs(image["distance_to_image_plane"] - 4).max() <= 1e-6
    points = setup.hits[0].direction * image["distance_to_image_plane"][..., None]
    assert np.abs(points[..., 2] + 4).max() <= 1e-5
    assert np.abs(image["position"][..., 2] + 4).max() <= 1e-6
    np.testing.assert_array_equal(image["Ngeom"], np.broadcast_to([0, 0, 1], image["Ngeom"].shape))


@pytest.mark.parametrize("tilt", [0.0, 0.7])
def test_ground_to_the_horizon(tools, device, tilt):
    """A 20 km plane seen from 1 m above: t of each pixel's own ray within 1e-6, up to 10 km away, also where the plane is turned."""
    turn = tools.rotation((0, 0, 1), tilt)
    scene = tools.Scene()
    points = np.array([[-1, 0, -1], [-1, 0, 1], [1, 0, 1], [1, 0, -1]]) * 1e4
    scene.add(MESH, turn, mesh=scene.add_mesh(points, [[0, 1, 2], [0, 2, 3]]))
    up = turn.astype(np.float32).astype(float)[:, 1]
    view = tools.View(64, 480, turn @ [0.3, 1.0, 0.7], turn, half_width=64 / 480 * 0.05)
    setup = tools.Setup(scene, [view], device)
    (image,) = setup.resolve(["distance_to_image_plane", "position"])
    seen = setup.hits[0].seen
    assert setup.hits[0].t.max(initial=0, where=seen) > 3000
    np.testing.assert_allclose(image["distance_to_image_plane"][seen], setup.hits[0].t[seen], rtol=1e-6)
    height = image["position"][seen].astype(float) @ up
    assert np.abs(height).max() < 1e-3  # float32 positions kilometres away


def test_far_from_the_origin(tools, device):
    """1e7 m away: view and instances are placed in float64, so 10 m stay 10 m."""
    far = np.array([1e7, -2e7, 3e7])
    turn = tools.rotation((1, 1, 0), 0.4)
    scene = quad(tools, 3, linear=turn, translation=far + 1 / 3 - turn[:, 2] * 10)
    scene.add(SPHERE, np.eye(3), far + 1 / 3 - turn[:, 2] * 8)
    view = tools.View(33, 20, far + 1 / 3, turn, half_width=0.5)
    setup = tools.Setup(scene, [view], device)
    (image,) = setup.resolve(["distance_to_image_plane", "Peye"])
    hit = setup.hits[0]
    assert set(np.unique(hit.instance)) >= {0, 1}
    np.testing.assert_allclose(image["distance_to_image_plane"][hit.seen], hit.t[hit.seen], rtol=1e-6)
    np.testing.assert_allclose(image["distance_to_image_plane"][hit.instance == 0], 10, atol=1e-3)
    assert np.abs(image["Peye"][hit.instance == 0][:, 2] + 10).max() < 1e-3


def test_global_geometry_is_moved_into_the_views_world(tools, device):
    """Instances of world -1 live in the global frame, `global_offset` from the view's world."""
    offset = np.array([100.0, 20.0, -7.0])
    scene = quad(tools, 10, translation=offset + [0, 0, -5], world=-1)
    scene.add(SPHERE, np.eye(3), (0, 0, -3), world=0)
    view = tools.View(20, 10, np.zeros(3), half_width=1.0, global_offset=tuple(offset))
    setup = tools.Setup(scene, [view], device)
    (image,) = setup.resolve(["distance_to_image_plane", "position", "worldId"])
    np.testing.assert_allclose(image["distance_to_image_plane"][setup.hits[0].instance == 0], 5, rtol=1e-6)
    np.testing.assert_allclose(image["position"][setup.hits[0].instance == 0][:, 2], -5, rtol=1e-6)
    np.testing.assert_array_equal(image["worldId"], np.where(setup.hits[0].instance == 0, -1, 0))


def test_the_record_says_which_side_of_a_closed_surface_is_seen(tools, device):
    """Sphere at distance 5, near plane at 5: what is seen is its far side, 6 on the axis; the outside normal points away from us."""
    for kind in (SPHERE, CUBE):
        scene = tools.Scene()
        scene.add(kind, np.eye(3), (0, 0, -5))
        for orthographic in (False, True):
            view = tools.View(5, 5, np.zeros(3), half_width=0.1, near=5.0, far=50.0, orthographic=orthographic)
            (image,) = tools.Setup(scene, [view], device).resolve(["distance_to_image_plane", "Ngeom"])
            assert image["distance_to_image_plane"][2, 2] == pytest.approx(6, rel=1e-6)
            np.testing.assert_allclose(image["Ngeom"][2, 2], (0, 0, -1), atol=1e-6)


def test_sphere_closed_form(tools, device):
    """Straight at a sphere of radius 2: t = 10 - 2 in the middle, s and t of the poles and the equator."""
    scene = tools.Scene()
    scene.add(SPHERE, np.eye(3) * 2, (0, 0, -10))
    view = tools.View(3, 3, np.zeros(3), half_width=0.01)
    (image,) = tools.Setup(scene, [view], device).resolve(["distance_to_image_plane", "barycentric", "Ngeom"])
    assert image["distance_to_image_plane"][1, 1] == pytest.approx(8, rel=1e-7)
    assert image["barycentric"][1, 1, 1] == pytest.approx(1, abs=1e-3)  # the pole at +z
    np.testing.assert_allclose(image["Ngeom"][1, 1], (0, 0, 1), atol=1e-6)
    side = tools.View(3, 3, np.array([10.0, 0, -10]), tools.rotation((0, 1, 0), np.pi / 2), half_width=0.001)
    (image,) = tools.Setup(scene, [side], device).resolve(["barycentric"])
    s, t = image["barycentric"][1, 1]
    assert min(s, 1 - s) < 1e-3  # longitude 0 is +x
    assert t == pytest.approx(0.5, abs=1e-3)


def test_mirrored_and_sheared_normals_are_those_of_the_surface(tools, device):
    """Inverse transpose: the normal is perpendicular to the transformed edges and keeps the authored outside."""
    linear = np.array([[1, 0.7, 0], [0, 2, 0], [0.3, 0, 0.5]])
    scene = tools.Scene()
    scene.add(CUBE, linear @ np.diag([1, 1, -1]), (0, 0, -8))
    view = tools.View(31, 31, np.zeros(3), half_width=0.5)
    setup = tools.Setup(scene, [view], device)
    (image,) = setup.resolve(["Ngeom"])
    hit = setup.hits[0]
    toward = np.einsum("...i,...i", image["Ngeom"], hit.direction)
    assert np.all(toward[hit.seen] < 0)  # outside faces us
    edges = scene.instances[0].linear
    normals = image["Ngeom"][hit.seen].astype(float)
    along = np.abs(normals @ edges / np.linalg.norm(edges, axis=0))
    assert np.all(np.sort(along, axis=1)[:, :2] < 1e-6)  # perpendicular to two of the three edges


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1e4, 1e7])
def test_units_do_not_matter(tools, device, scale):
    """Authored in any unit: a triangle of `scale` units, scaled back to a metre."""
    scene = tools.Scene()
    mesh = scene.add_mesh(np.array([[-1, -1, 0], [1, -1, 0], [0, 1, 0.3]]) * scale, [[0, 1, 2]])
    scene.add(MESH, np.eye(3) / scale, (0, 0, -3), mesh=mesh)
    view = tools.View(20, 20, np.zeros(3), half_width=0.4, far=1e3)
    setup = tools.Setup(scene, [view], device)
    (image,) = setup.resolve(ALL)
    check(image, setup.hits[0], view)


def test_weights_stay_finite_where_the_record_is_wrong(tools, device):
    """An edge-on triangle and one that the ray misses by far, both called hits: depth from the record, within the triangle's own depths."""
    scene = tools.Scene()
    edge_on = scene.add_mesh([[0, -1, -4], [0, 1, -4], [0, 0, -6]], [[0, 1, 2]])
    beside = scene.add_mesh([[50, 0, -4], [51, 0, -4], [50, 1, -4]], [[0, 1, 2]])
    scene.add(MESH, mesh=edge_on)
    scene.add(MESH, mesh=beside)
    view = tools.View(2, 1, np.zeros(3), half_width=0.5, centre=(0.25, 0.5))
    setup = tools.Setup(scene, [view], device)
    setup.visibility.instance.numpy()[:2] = (0, 1)
    setup.visibility.slot.numpy()[:2] = (0, 16)
    setup.visibility.key.numpy()[:2] = (1 / 5, 1 / 4)
    (image,) = setup.resolve(["distance_to_image_plane", "barycentric", "position"])
    assert image["distance_to_image_plane"][0, 0] == pytest.approx(5, abs=1e-3)
    assert np.isfinite(image["position"]).all()
    assert np.all((image["barycentric"] >= 0) & (image["barycentric"] <= 1) & (image["barycentric"].sum(-1, keepdims=True) <= 1.000001))
