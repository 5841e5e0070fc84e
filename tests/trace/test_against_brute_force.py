"""Triangles and shapes against a float64 brute-force caster, under every kind of transform, camera and clip range."""

from __future__ import annotations

import numpy as np
import pytest

CAMERAS = ("perspective", "orthographic")


def make_camera(tools, kind, **options):
    turn = tools.rotation((1, 2, 3), 0.7)
    eye = turn[:, 2] * 4.0
    if kind == "perspective":
        return tools.perspective(eye=eye, turn=turn, **options)
    return tools.orthographic(eye=eye, turn=turn, size=4.0, **options)


@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("seed", range(3))
def test_triangle_soup_in_affine_instances(tools, kind, seed, device):
    """Random triangles in rotated, sheared, scaled and mirrored instances, some of them single sided."""
    rng = np.random.default_rng(seed)
    meshes = [tools.soup(rng, 40), tools.soup(rng, 3)]
    instances = [
        tools.Instance(
            tools.random_affine(rng, mirrored=bool(k % 2)), rng.uniform(-1, 1, 3), mesh=int(rng.integers(2)), single_sided=k % 3 == 0
        )
        for k in range(8)
    ]
    scene = tools.Scene(meshes, instances, device=device)
    camera = make_camera(tools, kind)
    tools.compare(scene.trace(camera)[0], *scene.cast(camera))


@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("shape", ["SPHERE", "CUBE"])
def test_shapes_under_affine_transforms(tools, kind, shape, device):
    """Entry and exit in closed form, with shear, mirror and scales of 0.3 to 1.5."""
    rng = np.random.default_rng(7)
    instances = [
        tools.Instance(
            tools.random_affine(rng, mirrored=bool(k % 2)), rng.uniform(-1.2, 1.2, 3), kind=getattr(tools, shape), single_sided=k == 2
        )
        for k in range(5)
    ]
    scene = tools.Scene([], instances, device=device)
    camera = make_camera(tools, kind)
    tools.compare(scene.trace(camera)[0], *scene.cast(camera), tolerance=2e-5)


def test_a_sphere_ahead_is_hit_at_distance_less_radius(tools, device):
    """Centre ray, camera at z = 3, unit sphere: t = 2. A far camera sees the same sphere as well as float32 can say."""
    for distance in (3.0, 300.0, 1.0e6):
        scene = tools.Scene([], [tools.Instance(np.eye(3), kind=tools.SPHERE)], device=device)
        camera = tools.perspective(15, 15, eye=(0, 0, distance), focal=0.3 * distance)
        assert scene.trace(camera)[0].t[7, 7] == pytest.approx(distance - 1.0, rel=2e-7)


@pytest.mark.parametrize("shape", ["SPHERE", "CUBE"])
def test_inside_a_shape_one_sees_its_back(tools, shape, device):
    """From the centre: the far side, everywhere; nothing with back faces looked through."""
    camera = tools.perspective(eye=(0.1, 0.2, 0.3), focal=0.7)
    for single_sided in (False, True):
        instance = tools.Instance(np.diag([1.0, 2.0, 3.0]), kind=getattr(tools, shape), single_sided=single_sided)
        scene = tools.Scene([], [instance], device=device)
        image = scene.trace(camera)[0]
        assert image.hit.all() != single_sided
        assert image.hit.any() != single_sided
        if not single_sided:
            tools.compare(image, *scene.cast(camera))


def test_camera_inside_a_mesh_that_crosses_its_plane(tools, device):
    """Twelve large triangles around the camera: every ray hits, at the depth of the walls."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * [5, 4, 1000]
    faces = [
        [0, 1, 3],
        [0, 3, 2],
        [4, 6, 7],
        [4, 7, 5],
        [0, 4, 5],
        [0, 5, 1],
        [2, 3, 7],
        [2, 7, 6],
        [0, 2, 6],
        [0, 6, 4],
        [1, 5, 7],
        [1, 7, 3],
    ]
    scene = tools.Scene([(corners, faces)], [tools.Instance(np.eye(3))], device=device)
    camera = tools.perspective(eye=(0.3, -0.2, 1.0), turn=tools.rotation((1, 1, 0), 0.8), focal=0.5)
    image = scene.trace(camera)[0]
    assert image.hit.all()
    tools.compare(image, *scene.cast(camera), tolerance=3e-5)


@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("radial", [False, True])
def test_the_clip_range_cuts_and_hides_nothing(tools, kind, radial, device):
    """Only what lies between near and far is seen, planar or along the ray; what is cut off in front does not hide what is behind."""
    rng = np.random.default_rng(3)
    instances = [
        *(tools.Instance(tools.random_affine(rng, mirrored=False), rng.uniform(-1, 1, 3)) for _ in range(4)),
        tools.Instance(np.eye(3), (0.2, 0.1, 0.0), kind=tools.SPHERE),
        tools.Instance(np.eye(3) * 0.7, (-0.8, 0.5, 0.3), kind=tools.CUBE),
    ]
    scene = tools.Scene([tools.soup(rng, 30)], instances, device=device)
    camera = make_camera(tools, kind, near=3.6, far=4.4, radial=radial)
    image = scene.trace(camera)[0]
    tools.compare(image, *scene.cast(camera), unsure_share=0.05)
    assert np.nanmin(image.t) > 3.6 / 1.3
    assert np.nanmax(image.t) <= 4.4 * 1.00001


@pytest.mark.parametrize("kind", CAMERAS)
def test_both_ends_of_the_clip_range_belong_to_it(tools, kind, device):
    """A wall at depth 4 exactly is seen with near = 4 and with far = 4, not with far just below."""
    wall = (np.array([[-9, -9, 0], [9, -9, 0], [9, 9, 0], [-9, 9, 0]], float), [[0, 1, 2], [0, 2, 3]])
    scene = tools.Scene([wall], [tools.Instance(np.eye(3))], device=device)
    camera = getattr(tools, kind)(eye=(0.1, 0.2, 4.0))
    for options, seen in (({"near": 4.0}, True), ({"far": 4.0}, True), ({"far": 3.9999}, False), ({"near": 4.0001}, False)):
        assert scene.trace(camera.with_(**options))[0].hit.all() == seen


def test_single_sided_triangles_are_looked_through_from_behind(tools, device):
    """Counter-clockwise faces the viewer. A mirrored instance keeps its authored outside: the same face is drawn."""
    triangle = (np.array([[-5, -5, 0], [5, -5, 0], [0, 7, 0]], float), [[0, 1, 2]])
    for z, mirror, front in ((3.0, 1.0, True), (-3.0, 1.0, False), (3.0, -1.0, True), (-3.0, -1.0, False)):
        linear = np.diag([mirror, 1.0, 1.0])
        scene = tools.Scene([triangle], [tools.Instance(linear, single_sided=True)], device=device)
        turn = np.eye(3) if z > 0 else np.diag([-1.0, 1.0, -1.0])
        for camera in (tools.perspective(16, 16, eye=(0, 0, z), turn=turn), tools.orthographic(16, 16, eye=(0, 0, z), turn=turn, size=0.5)):
            assert scene.trace(camera)[0].hit.all() == front


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", CAMERAS)
def test_depth_does_not_depend_on_the_unit(tools, scale, kind, device):
    """The same picture of a thing a millionth or a million times as large, built small or scaled by its transform."""
    rng = np.random.default_rng(5)
    points, triangles = tools.soup(rng, 30)
    turn = tools.rotation((1, 0, 2), 0.5)
    size = {} if kind == "perspective" else {"size": 4.0 * scale}
    camera = getattr(tools, kind)(eye=turn[:, 2] * 4 * scale, turn=turn, near=1e-3 * scale, far=1e3 * scale, **size)
    for mesh, linear in (((points * scale, triangles), np.eye(3)), ((points, triangles), np.eye(3) * scale)):
        scene = tools.Scene([mesh], [tools.Instance(linear)], device=device)
        image = scene.trace(camera)[0]
        reference = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))], device=device)
        unit = {} if kind == "perspective" else {"size": 4.0}
        expected, unsure = reference.cast(getattr(tools, kind)(eye=turn[:, 2] * 4, turn=turn, **unit))
        image.t = image.t / scale
        tools.compare(image, expected, unsure)


def test_far_from_the_origin(tools, device):
    """10,000 km away, where a float32 position is good to a metre, a wall 10 m ahead is 10 m ahead."""
    far = np.array([1.0e7, -2.0e7, 5.0e6])
    wall = (np.array([[-9, -9, 0], [9, -9, 0], [9, 9, 0], [-9, 9, 0]], float), [[0, 1, 2], [0, 2, 3]])
    scene = tools.Scene(
        [wall], [tools.Instance(np.eye(3), far), tools.Instance(np.eye(3), far + [0, 0, 3.0], kind=tools.SPHERE)], device=device
    )
    for camera in (tools.perspective(eye=far + [0, 0, 10.0]), tools.orthographic(eye=far + [0, 0, 10.0])):
        image = scene.trace(camera)[0]
        assert image.hit.all()
        assert set(np.unique(image.instance)) == {0, 1}
        np.testing.assert_allclose(image.t[image.instance == 0], 10.0, atol=1e-5)


def test_an_orthographic_camera_may_be_far_away(tools, device):
    """From 100 km, pixels of 1 cm: edges fall on the same pixels as from 10 m."""
    rng = np.random.default_rng(2)
    mesh = tools.soup(rng, 20, size=0.1)
    scene = tools.Scene([mesh], [tools.Instance(np.eye(3) * 0.2)], device=device)
    near = scene.trace(tools.orthographic(eye=(0, 0, 10.0), size=0.48))[0]
    far = scene.trace(tools.orthographic(eye=(0, 0, 1.0e5), size=0.48))[0]
    assert (near.triangle != far.triangle).mean() < 1e-3


def test_bad_triangles_never_hit_and_hide_nothing(tools, device):
    """Needles without area, points, NaN, infinite and huge coordinates beside one good triangle."""
    good = np.array([[-1, -1, 0], [1, -1, 0], [0, 1, 0]], float)
    bad = np.array(
        [
            [[0, 0, 1], [0, 0, 1], [0, 0, 1]],
            [[-1, 0, 1], [0, 0, 1], [1, 0, 1]],
            [[0, 0, 1], [np.nan, 0, 1], [1, 1, 1]],
            [[0, 0, 1], [np.inf, 0, 1], [1, 1, 1]],
            [[-np.inf, 0, 1], [np.inf, 0, 1], [1, 1, 1]],
            [[3e38, 0, 1], [-3e38, 0, 1], [1, 3e38, 1]],
            [[np.nan] * 3] * 3,
        ]
    )
    points = np.concatenate([good[None], bad]).reshape(-1, 3)
    scene = tools.Scene([(points, np.arange(len(points)).reshape(-1, 3))], [tools.Instance(np.eye(3))], device=device)
    alone = tools.Scene([(good, [[0, 1, 2]])], [tools.Instance(np.eye(3))], device=device)
    for camera in (tools.perspective(), tools.orthographic()):
        assert scene.trace(camera)[0].bits() == alone.trace(camera)[0].bits()


def test_nothing_to_see(tools, device):
    """No instances, a mesh without triangles, a view without a tree, no views at all."""
    empty = (np.zeros((0, 3)), np.zeros((0, 3), int))
    camera = tools.perspective(20, 11)
    for scene in (tools.Scene([], [], device=device), tools.Scene([empty], [tools.Instance(np.eye(3))], device=device)):
        image = scene.trace(camera)[0]
        assert not image.hit.any()
        assert (image.triangle == -1).all()
    scene = tools.Scene([], [tools.Instance(np.eye(3), kind=tools.CUBE)], device=device)
    assert not scene.trace(camera.with_(group=-1))[0].hit.any()
    assert scene.trace() == []


def test_the_global_tree_is_seen_too_and_moved_by_its_offset(tools, device):
    """A sphere of the view's own world, a global cube whose frame lies 4.5 m to the left: each where it belongs."""
    instances = [tools.Instance(np.eye(3), kind=tools.SPHERE), tools.Instance(np.eye(3), (6.0, 0.0, -1.0), kind=tools.CUBE)]
    scene = tools.Scene([], instances, groups=[[0], [1]], device=device)
    flat = tools.Scene([], [instances[0], tools.Instance(np.eye(3), (1.5, 0.0, -1.0), kind=tools.CUBE)], device=device)
    camera = tools.perspective()
    both = scene.trace(camera.with_(global_group=1, global_offset=(4.5, 0.0, 0.0)))[0]
    assert both.bits() == flat.trace(camera)[0].bits()
    assert set(np.unique(both.instance)) == {-1, 0, 1}
