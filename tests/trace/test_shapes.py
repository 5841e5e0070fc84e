"""Cones, cylinders, capsules and planes in the tracer against float64 closed forms: affine maps, insides, far away, tangents."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.tables import structs
from hdwarp.trace import ray_bundles, trace_free, trace_rays
from hdwarp.trace.rays import widen
from hdwarp.trace.shapes import shape_interval

CAMERAS = ("perspective", "orthographic")
CONE, CAPSULE, PLANE = 3, 4, 5
SHAPES = {
    "cylinder": (CONE, (1.0, 1.0, 1.0, 0.0)),
    "cone": (CONE, (1.0, 0.0, 1.0, 0.0)),
    "frustum": (CONE, (0.3, 1.0, 1.0, 0.0)),
    "capsule": (CAPSULE, (1.0, 1.0, 0.7, 0.0)),
    "long capsule": (CAPSULE, (1.0, 1.0, 40.0, 0.0)),
    "two radii": (CAPSULE, (0.9, 0.4, 0.6, 0.0)),
    "drop": (CAPSULE, (0.0, 0.6, 0.6, 0.0)),
    "plane": (PLANE, (1.0, 1.0, 0.0, 0.0)),
    "endless plane": (PLANE, (np.inf, np.inf, 0.0, 0.0)),
}
SOLIDS = [name for name in SHAPES if "plane" not in name]


def make_camera(tools, kind, **options):
    turn = tools.rotation((1, 2, 3), 0.7)
    eye = turn[:, 2] * 4.0
    return (
        tools.perspective(eye=eye, turn=turn, **options)
        if kind == "perspective"
        else tools.orthographic(eye=eye, turn=turn, size=4.0, **options)
    )


def instance(tools, name, linear=None, translation=(0.0, 0.0, 0.0), **options):
    kind, shape = SHAPES[name]
    return tools.Instance(np.eye(3) if linear is None else linear, translation, kind=kind, shape=shape, **options)


@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_under_affine_transforms(tools, kind, name, device):
    """Five with shear, mirror and scales of 0.3 to 1.5, one of them single sided."""
    rng = np.random.default_rng(7)
    scale = 0.1 if name == "long capsule" else 1.0
    instances = [
        instance(tools, name, tools.random_affine(rng, mirrored=bool(k % 2)) * scale, rng.uniform(-1.2, 1.2, 3), single_sided=k == 2)
        for k in range(5)
    ]
    scene = tools.Scene([], instances, device=device)
    camera = make_camera(tools, kind)
    tools.compare(scene.trace(camera)[0], *scene.cast(camera), tolerance=3e-5)


@pytest.mark.parametrize("name", SOLIDS)
def test_inside_a_shape_one_sees_its_back(tools, name, device):
    """Everywhere, near clipping of the front included; nothing with back faces looked through."""
    camera = tools.perspective(eye=(0.05, 0.03, 0.1), focal=0.7)
    for single_sided in (False, True):
        scene = tools.Scene([], [instance(tools, name, np.diag([1.0, -2.0, 3.0]), single_sided=single_sided)], device=device)
        image = scene.trace(camera)[0]
        assert image.hit.all() != single_sided
        assert image.hit.any() != single_sided
        if not single_sided:
            assert (image.triangle == 1).all()
            tools.compare(image, *scene.cast(camera))


@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("name", SOLIDS)
def test_where_the_front_is_clipped_the_back_shows(tools, name, kind, device):
    scene = tools.Scene([], [instance(tools, name, np.eye(3) * (0.1 if name == "long capsule" else 1.0))], device=device)
    camera = make_camera(tools, kind, near=3.9)
    image = scene.trace(camera)[0]
    assert (image.triangle[image.hit] == 1).any()
    tools.compare(image, *scene.cast(camera), unsure_share=0.05)


@pytest.mark.parametrize("kind", CAMERAS)
def test_a_plane_has_two_sides(tools, kind, device):
    """Its front is +z of the object, mirrored or not; single sided it is looked through from behind."""
    for name in ("plane", "endless plane"):
        for mirror in (1.0, -1.0):
            linear = np.diag([9.0 * mirror, 9.0, 1.0])
            for z, front in ((3.0, True), (-3.0, False)):
                turn = np.eye(3) if z > 0 else np.diag([-1.0, 1.0, -1.0])
                camera = getattr(tools, kind)(eye=(0.1, 0.2, z), turn=turn)
                both = tools.Scene([], [instance(tools, name, linear)], device=device).trace(camera)[0]
                assert both.hit.all()
                assert (both.triangle == (0 if front else 1)).all()
                np.testing.assert_allclose(both.t, 3.0, rtol=1e-6)
                single = tools.Scene([], [instance(tools, name, linear, single_sided=True)], device=device).trace(camera)[0]
                assert single.hit.all() == front
                assert single.hit.any() == front


def test_an_endless_plane_reaches_to_the_horizon(tools, device):
    """Eye 1 m above, looking level, focal length 240 px: row y below the horizon is 240 / (y + 0.5) m away, up to the far end and
    no row is missing between; nothing above the horizon."""
    scene = tools.Scene([], [instance(tools, "endless plane")], device=device)
    camera = tools.perspective(32, 200, eye=(0, 0, 1.0), turn=tools.look_at((0, 0, 1.0), (0, 1, 1.0)), focal=1.2)
    image = scene.trace(camera)[0]
    assert image.hit[100:].all()
    assert not image.hit[:100].any()
    below = np.arange(100) + 0.5
    np.testing.assert_allclose(image.t[100:], np.broadcast_to((240 / below)[:, None], (100, 32)), rtol=2e-5)
    steps = tools.perspective(16, 400, eye=(0, 0, 1.0), turn=tools.look_at((0, 0, 1.0), (0, 1, 1.0)), focal=60.0)  # 1000 m at 24 px
    far = scene.trace(steps)[0]
    assert far.hit[200:].all()
    np.testing.assert_allclose(far.t[200:, 3], 24000 / (np.arange(200) + 0.5), rtol=2e-3)  # resolve is exact
    cut = scene.trace(steps.with_(far=1000.0))[0]
    assert not cut.hit[:223].any()
    assert cut.hit[225:].all()


def test_endless_planes_do_not_spoil_the_tree(tools, device):
    """Three of them among 300 spheres: the picture is right, and beside the root's, boxes are as small as without them."""
    rng = np.random.default_rng(0)
    spheres = [tools.Instance(np.eye(3) * 0.05, rng.uniform(-2, 2, 3) * [1, 1, 0.3], kind=tools.SPHERE) for _ in range(300)]
    planes = [
        instance(tools, "endless plane", tools.rotation((1, 0, 0), angle), (0, 0, -1.0 - k)) for k, angle in enumerate((0.0, 0.3, -0.2))
    ]
    scene = tools.Scene([], [*spheres[:150], *planes, *spheres[150:]], device=device)
    camera = make_camera(tools, "perspective")
    tools.compare(scene.trace(camera)[0], *scene.cast(camera), tolerance=2e-5, unsure_share=0.05)
    nodes = scene.top.nodes.numpy().reshape(-1, 6, 8)
    endless = (nodes[:, 3:] - nodes[:, :3] > 1e20).any(axis=1)
    node_of_plane, root = endless.any(axis=1), int(scene.top.root[0])
    assert node_of_plane[root]
    assert node_of_plane.sum() <= 2  # the root and one node of planes
    assert endless[root].sum() == 1


@pytest.mark.parametrize("way", [trace_free, trace_rays])
def test_free_and_single_rays_see_the_same(tools, way, device):
    """All shapes at once, an endless plane below them, in the directions of a camera's pixels and in all directions."""
    rng = np.random.default_rng(1)
    instances = [instance(tools, name, tools.random_affine(rng, mirrored=False) * 0.3, rng.uniform(-1, 1, 3)) for name in SOLIDS * 2]
    instances.insert(3, instance(tools, "endless plane", tools.rotation((1, 0, 0), 0.1), (0, 0, -2.0)))
    scene = tools.Scene([], instances, device=device)
    turn = tools.rotation((1, 0, 0), 1.2)
    camera = tools.perspective(64, 48, eye=(0.1, -4.0, 0.5), turn=turn, focal=0.8, far=1e6)
    expected, unsure = scene.cast(camera)
    top = structs.TopLevel()
    top.nodes, top.children = scene.top.nodes, scene.top.children
    bundles = ray_bundles(camera.origin, (48, 64), root=int(scene.top.root[0]), near=1e-3, far=1e6, device=device)
    directions = camera.rays()[1]
    given = wp.array(directions.reshape(-1, 3).astype(np.float32), dtype=wp.vec3f, device=device)
    arguments = [given] if way is trace_free else [None, given]
    hits = way(bundles, *arguments, scene.columns, scene.rows, top, kinds=scene.kinds, device=device)
    instances_seen, slots = (a.numpy().reshape(48, 64) for a in (hits.instance, hits.slot))
    t = hits.t.numpy().reshape(48, 64) / np.linalg.norm(directions, axis=-1)
    image = tools.Image(slots, instances_seen, np.where(instances_seen >= 0, t, np.nan))
    tools.compare(image, expected, unsure, tolerance=3e-5)
    assert (instances_seen == 3).mean() > 0.1
    around = rng.normal(size=(48 * 64, 3)).astype(np.float32)
    given.assign(around)
    hits = way(bundles, *arguments, scene.columns, scene.rows, top, kinds=scene.kinds, device=device)
    down = (around @ instances[3].linear[:, 2]) < -1e-3
    assert (hits.instance.numpy()[down] >= 0).all()


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6, 1e12])
@pytest.mark.parametrize("name", SHAPES)
def test_size_and_distance_do_not_matter(tools, name, scale, device):
    """The same picture a billionth or a thousand billion times as large; and as a small thing far away through a long lens."""
    linear = np.diag([0.9, 1.0, 0.02 if name == "long capsule" else 0.7]) @ tools.rotation((3, 1, 2), 0.4)
    turn = tools.rotation((1, 2, 3), 0.7)
    unit = tools.Scene([], [instance(tools, name, linear)], device=device)
    expected, unsure = unit.cast(tools.perspective(eye=turn[:, 2] * 4, turn=turn))
    scene = tools.Scene([], [instance(tools, name, linear * scale)], device=device)
    image = scene.trace(tools.perspective(eye=turn[:, 2] * 4 * scale, turn=turn, near=1e-3 * scale, far=1e5 * scale))[0]
    image.t = image.t / scale
    tools.compare(image, expected, unsure, tolerance=3e-5)


@pytest.mark.parametrize("name", SOLIDS)
def test_a_small_thing_far_away(tools, name, device):
    """A metre at 100 km, filling the picture: edges where they belong, depth to 1e-6 of the distance."""
    distance = 1.0e5
    linear = tools.rotation((3, 1, 2), 0.4) * (0.05 if name == "long capsule" else 1.0)
    scene = tools.Scene([], [instance(tools, name, linear)], device=device)
    camera = tools.perspective(eye=(0, 0, distance), focal=0.25 * distance)
    image = scene.trace(camera)[0]
    expected, unsure = scene.cast(camera)
    edges = np.zeros_like(unsure)  # a pixel is 5 mm: half of one either way
    for axis in (0, 1):
        for step in (1, -1):
            edges |= np.roll(expected.hit, step, axis) != expected.hit
    wrong = (image.hit != expected.hit) & ~edges
    assert not wrong.any()
    assert (image.hit != expected.hit).mean() < 0.02
    both = image.hit & expected.hit
    np.testing.assert_allclose(image.t[both], expected.t[both], rtol=1e-5)


@wp.kernel(enable_backward=False)
def _intervals(
    kind: wp.int32,
    shapes: wp.array[wp.vec4f],
    origins: wp.array[wp.vec3f],
    directions: wp.array[wp.vec3f],
    out: wp.array[wp.vec2d],
):
    i = wp.tid()
    out[i] = shape_interval(kind, shapes, 0, widen(origins[i]), widen(directions[i]))


@pytest.mark.parametrize("name", SHAPES)
def test_random_lines(tools, name, device):
    """100,000 lines from near and far, towards the shape, beside it, and from inside: entry and exit to 1e-12, 1e-11 at grazing angles."""
    kind, shape = SHAPES[name]
    rng = np.random.default_rng(11)
    count = 100_000
    reach = 1.5 + (shape[2] if kind == CAPSULE else 0.5)
    aim = rng.uniform(-1, 1, (count, 3)) * [1.3, 1.3, reach]
    start = rng.normal(size=(count, 3))
    start *= (10 ** rng.uniform(-1, 2, count) / np.linalg.norm(start, axis=1))[:, None]
    start, aim = start.astype(np.float32), aim.astype(np.float32)
    towards = (aim - start) * (10 ** rng.uniform(-3, 3, (count, 1)))
    for axis in range(3):  # lines exactly along an axis too
        towards[axis * 1000 : axis * 1000 + 1000] = np.eye(3)[axis] * rng.choice([-2.0, 2.0], (1000, 1))
        start[axis * 1000 : axis * 1000 + 1000] = aim[:1000] - towards[axis * 1000 : axis * 1000 + 1000] * 2
    towards = towards.astype(np.float32)
    found = wp.empty(count, dtype=wp.vec2d, device=device)
    arrays = [wp.array(start, dtype=wp.vec3f, device=device), wp.array(towards, dtype=wp.vec3f, device=device)]
    shapes = wp.array(np.array([shape], np.float32), dtype=wp.vec4f, device=device)
    wp.launch(_intervals, dim=count, inputs=[kind, shapes, *arrays, found], device=device)
    interval = found.numpy()
    single = np.array(shape, np.float32).astype(float)
    parts = tools.Instance(np.eye(3), kind=kind, shape=tuple(single)).surfaces()
    o, d = start.astype(float), towards.astype(float)
    length = np.linalg.norm(d, axis=1)
    seen = interval[:, 0] <= interval[:, 1]
    size = np.linalg.norm(o, axis=1) + 2 + single[2]  # of the numbers a line is made of
    entry, leave, sure_hit, sure_miss = (np.full(count, v) for v in (np.inf, -np.inf, False, True))
    steep = np.zeros((2, count))
    for crossing in tools.forms.crossings(parts, o, d):
        with np.errstate(all="ignore"):
            on = crossing.margin >= 0
            cosine = np.abs((crossing.normal * d).sum(1)) / np.linalg.norm(crossing.normal, axis=1) / length
            steep[0] = np.where(on & (crossing.t < entry), cosine, steep[0])
            steep[1] = np.where(on & (crossing.t > leave), cosine, steep[1])
            entry, leave = np.where(on, np.minimum(entry, crossing.t), entry), np.where(on, np.maximum(leave, crossing.t), leave)
            sure_miss &= ~(crossing.margin > -1e-11 * size)
            sure_hit |= crossing.margin > 1e-11 * size
    assert seen[sure_hit].all()
    assert not seen[sure_miss].any()
    assert sure_hit.sum() > 0.2 * count
    if kind == PLANE:  # one crossing
        front = d[:, 2] < 0
        np.testing.assert_allclose(np.where(front, interval[:, 0], interval[:, 1])[sure_hit], entry[sure_hit], rtol=1e-12)
        return
    for side, exact in ((0, entry), (1, leave)):
        for least, tolerance in ((0.1, 1e-12), (0.01, 1e-11)):
            which = sure_hit & seen & (steep[side] > least)
            error = np.abs(interval[:, side] - exact)[which] * length[which] / size[which]
            assert error.max() < tolerance, (side, least)
