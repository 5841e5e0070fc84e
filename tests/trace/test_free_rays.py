"""Rays that belong to no image, in packets and one by one: against float64 brute force, Embree and the tile packets; bad rays; ties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import warp as wp

from hdwarp.tables import structs
from hdwarp.trace import SceneKinds, occluded, ray_bundles, trace_free, trace_rays
from hdwarp.trace.single import ray_kernel

WAYS = ("packets", "singly")


@dataclass
class Rays:
    """Unit rays as the brute-force caster takes them."""

    origin: np.ndarray
    direction: np.ndarray
    near: float = 1e-3
    far: float = 1e6
    radial: bool = False
    orthographic: bool = False
    group: int = 0

    def rays(self):
        return np.broadcast_to(self.origin, self.direction.shape).astype(float), self.direction


def unit(d):
    return d / np.linalg.norm(d, axis=-1, keepdims=True)


def panorama(rows=24, columns=48):
    """Both poles included: the first and the last row are one direction each."""
    v, u = np.meshgrid(np.linspace(0, np.pi, rows), np.linspace(0, 2 * np.pi, columns), indexing="ij")
    return np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], -1)


def fisheye(size=40, degrees=250.0):
    """Equidistant, wider than a half space; no rays in the corners."""
    y, x = np.mgrid[0:size, 0:size] * 2.0 / (size - 1) - 1
    r = np.hypot(x, y)
    a = r * np.radians(degrees / 2)
    d = np.stack([np.sin(a) * x / np.maximum(r, 1e-9), np.sin(a) * y / np.maximum(r, 1e-9), -np.cos(a)], -1)
    return np.where(r[..., None] <= 1, d, 0.0)


def incoherent(count=1500, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(1, count, 3)))


DIRECTIONS = {"panorama": panorama, "fisheye": fisheye, "incoherent": incoherent, "one": lambda: unit(np.array([[[0.1, 0.2, -1.0]]]))}


def top_of(scene):
    top = structs.TopLevel()
    top.nodes, top.children = scene.top.nodes, scene.top.children
    return top


def shoot(scene, origin, directions, way, *, limits=None, any_hit=False, origins=None, bundles=None, **options):
    """(slot, instance, t), (rows, columns) each."""
    directions = np.asarray(directions)
    options.setdefault("root", int(scene.top.root[0]) if len(scene.top.root) else -1)
    bundles = bundles or ray_bundles(origin, directions.shape[:2], culls=1, device=scene.device, **options)
    array = scene._array(directions.reshape(-1, 3).astype(np.float32), wp.vec3f)
    limits = None if limits is None else scene._array(np.asarray(limits, np.float32).reshape(-1, 2), wp.vec2f)
    tables = (scene.columns, scene.rows, top_of(scene))
    options = {"kinds": scene.kinds, "limits": limits, "any_hit": any_hit, "device": scene.device}
    if way == "packets":
        hits = trace_free(bundles, array, *tables, **options)
    else:
        origins = None if origins is None else scene._array(np.asarray(origins, np.float32).reshape(-1, 3), wp.vec3f)
        hits = trace_rays(bundles, origins, array, *tables, **options)
    shape = (-1, *directions.shape[1:2]) if directions.shape[1] else directions.shape[:2]
    return [a.numpy().reshape(shape) for a in (hits.slot, hits.instance, hits.t)]


def image_of(tools, scene, found):
    """Results as trace_scene's Image: triangle numbers instead of slots."""
    slot, instance, t = found
    kinds = np.array([i.kind for i in scene.instances] + [-1])
    mesh = (instance >= 0) & (kinds[instance] == tools.MESH)
    table = scene.columns.slot_triangle.numpy()
    triangle = np.where(mesh, table[np.where(mesh, slot, 0)], slot) if len(table) else slot
    assert np.array_equal(instance >= 0, np.isfinite(t))
    return tools.Image(triangle.astype(np.int32), instance.copy(), np.where(np.isfinite(t), t, np.nan))


def mixed_scene(tools, device, seed=0):
    """Triangle soups and shapes in rotated, sheared, scaled and mirrored instances, some single sided, all around the origin."""
    rng = np.random.default_rng(seed)
    meshes = [tools.soup(rng, 40), tools.soup(rng, 3)]
    instances = [
        tools.Instance(
            tools.random_affine(rng, mirrored=bool(k % 2)),
            unit(rng.normal(size=3)) * 2.5,
            mesh=int(rng.integers(2)),
            single_sided=k % 3 == 0,
        )
        for k in range(9)
    ]
    instances += [
        tools.Instance(
            tools.random_affine(rng, mirrored=False) * 0.7, unit(rng.normal(size=3)) * 3, kind=1 + k % 5, shape=(0.8, 0.5, 0.6, 0)
        )
        for k in range(10)
    ]
    return tools.Scene(meshes, instances, device=device)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pattern", DIRECTIONS)
def test_against_brute_force(tools, way, pattern, device):
    scene, origin = mixed_scene(tools, device), np.array([0.2, -0.1, 0.3])
    directions = DIRECTIONS[pattern]()
    image = image_of(tools, scene, shoot(scene, origin, directions, way))
    with np.errstate(invalid="ignore", divide="ignore"):
        expected, unsure = scene.cast(Rays(origin, directions.astype(np.float32).astype(float)))
    no_ray = (directions == 0).all(axis=-1)
    assert not image.hit[no_ray].any()
    expected.instance[no_ray], expected.triangle[no_ray], expected.t[no_ray], unsure[no_ray] = -1, -1, np.nan, False
    if expected.hit.any():
        tools.compare(image, expected, unsure, unsure_share=0.06)


@pytest.mark.parametrize("kind", ["SPHERE", "CUBE"])
@pytest.mark.parametrize("way", WAYS)
def test_inside_a_shape_every_ray_of_a_panorama_hits(tools, way, kind, device):
    scene = tools.Scene([], [tools.Instance(np.diag([1.0, 2.0, 3.0]), kind=getattr(tools, kind))], device=device)
    origin = np.array([0.1, 0.2, 0.3])
    image = image_of(tools, scene, shoot(scene, origin, panorama(), way))
    assert image.hit.all()
    tools.compare(image, *scene.cast(Rays(origin, panorama().astype(np.float32).astype(float))), unsure_share=0.2)


@pytest.mark.parametrize("way", WAYS)
def test_same_as_the_tile_packets(tools, way, device):
    """A pinhole camera's rays: the same triangles but for rays that graze an edge; t times cos is depth."""
    points, triangles = tools.bumpy_sphere(80)
    scene = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))], kinds=SceneKinds(mesh=True), affine=False, device=device)
    camera = tools.perspective(320, 240, focal=1.5)
    packets = scene.trace(camera)[0]
    origin, directions = camera.rays()
    image = image_of(tools, scene, shoot(scene, origin[0, 0], directions, way))
    differs = (image.hit != packets.hit) | (image.triangle != packets.triangle)
    assert differs.sum() <= 5
    seen = packets.hit & ~differs
    depth = image.t / np.linalg.norm(directions, axis=-1)
    error = np.abs(depth[seen] - packets.t[seen]) / packets.t[seen]
    assert np.quantile(error, 0.99) < 1e-6
    assert error.max() < 1e-4


@pytest.mark.parametrize("way", WAYS)
def test_same_as_embree_in_a_fisheye(tools, way, open3d):
    """A closed mesh from inside, 250 degrees: every ray hits, the same face at the same distance."""
    points, triangles = tools.bumpy_sphere(60)
    directions, origin = fisheye(200), np.array([0.3, 0.2, -0.1], np.float32)
    scene = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))])
    image = image_of(tools, scene, shoot(scene, origin, directions, way))
    caster = open3d.t.geometry.RaycastingScene()
    caster.add_triangles(open3d.core.Tensor(points), open3d.core.Tensor(triangles.astype(np.uint32)))
    rays = np.concatenate([np.broadcast_to(origin, directions.shape), directions], -1).astype(np.float32)
    found = caster.cast_rays(open3d.core.Tensor(rays))
    is_ray = (directions != 0).any(axis=-1)
    t = found["t_hit"].numpy()
    assert np.array_equal(image.hit, is_ray & np.isfinite(t))
    assert (image.triangle[is_ray] != found["primitive_ids"].numpy().astype(np.int64)[is_ray]).sum() <= 5
    np.testing.assert_allclose(image.t[is_ray], t[is_ray], rtol=2e-5)


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_mesh_has_no_cracks(tools, way):
    """From inside a closed surface every ray hits: half a million rays over edges and points, through a sheared instance."""
    rng = np.random.default_rng(1)
    points, triangles = tools.bumpy_sphere(60)
    points = points.reshape(60, 120, 3)
    points[:, -1] = points[:, 0]
    points[0], points[-1] = points[0, 0], points[-1, 0]
    mesh = (points.reshape(-1, 3), triangles)
    scene = tools.Scene([mesh], [tools.Instance(tools.random_affine(rng, mirrored=False))], kinds=SceneKinds(mesh=True))
    for seed in range(3):
        directions = panorama(300, 500) if seed == 0 else incoherent(100_000, seed).reshape(200, 500, 3)
        assert (shoot(scene, rng.uniform(-0.05, 0.05, 3), directions, way)[1] == 0).all()
    # And at the edges themselves. A ray at a point, to the last bit, may slip between the edges that meet there (with Embree too).
    corners = unit(points.reshape(-1, 3)[triangles].astype(float))
    for directions, missed in ((unit(corners[:, :2] + corners[:, 1:]), 0.0), (corners, 5e-3)):
        world = directions @ np.asarray(scene.instances[0].linear).T
        assert (shoot(scene, (0, 0, 0), world, way)[1] != 0).mean() <= missed


@pytest.mark.parametrize("way", WAYS)
def test_limits_of_each_ray(tools, way, device):
    """Spheres of radius 1, 2, 3 about the origin: what a ray's range leaves of six crossings; both ends belong to it."""
    scene = tools.Scene([], [tools.Instance(np.eye(3) * r, kind=tools.SPHERE) for r in (1.0, 2.0, 3.0)], device=device)
    cases = [((0, np.inf), 1), ((1.5, 9), 2), ((2, 9), 2), ((0, 1), 1), ((0, 0.9), None), ((1.1, 1.9), None), ((2.001, 3), 3)]
    cases += [((3.01, np.inf), None), ((-5, -1), None), ((0, 0), None), ((5, 2), None), ((0, np.nan), None), ((-1, 2), 1)]
    directions = np.broadcast_to(unit(np.array([1.0, 2.0, -0.5])), (1, len(cases), 3))
    limits = [limit for limit, _ in cases]
    _, instance, t = shoot(scene, (0, 0, 0), directions, way, limits=limits)
    expected = [np.inf if r is None else r for _, r in cases]
    np.testing.assert_allclose(t[0], expected, rtol=1e-6)
    assert np.array_equal(instance[0] >= 0, np.isfinite(expected))
    _, _, t = shoot(scene, (0, 0, 0), directions, way, near=1.5, far=2.5)
    np.testing.assert_allclose(t[0], 2.0, rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_directions_of_any_length_and_no_rays(tools, way, device):
    """t is the distance whatever the length; zero, NaN and infinite directions hit nothing and harm no neighbour."""
    scene = tools.Scene([], [tools.Instance(np.eye(3), (0, 0, -5), kind=tools.CUBE)], device=device)
    lengths = [1, 1e-30, 1e30, 3, 0, np.nan, np.inf, 0.5, 1.003, 0.997]
    with np.errstate(invalid="ignore"):
        directions = np.array([[[0, 0, -n] for n in lengths]], float)
    directions[0, 6] = [np.inf, 0, -1]
    _, instance, t = shoot(scene, (0.1, 0.2, 1.0), directions, way)
    is_ray = np.isfinite(directions).all(-1)[0] & (directions != 0).any(-1)[0]
    assert np.array_equal(instance[0] == 0, is_ray)
    np.testing.assert_allclose(t[0][is_ray], 5.0, rtol=1e-6)
    assert np.isposinf(t[0][~is_ray]).all()


@pytest.mark.parametrize("way", WAYS)
def test_any_hit_agrees_with_the_nearest(tools, way, device):
    """Something on the ray, or nothing: also with a range, and as `occluded`."""
    scene, origin, directions = mixed_scene(tools, device, seed=3), (0.1, 0.0, 0.0), panorama()
    rng = np.random.default_rng(0)
    limits = np.stack([rng.uniform(0, 2, directions.shape[:2]), rng.uniform(1, 4, directions.shape[:2])], -1)
    nearest = shoot(scene, origin, directions, way, limits=limits)[1] >= 0
    assert 0.1 < nearest.mean() < 0.9
    assert np.array_equal(shoot(scene, origin, directions, way, limits=limits, any_hit=True)[1] >= 0, nearest)
    bundles = ray_bundles(origin, directions.shape[:2], root=int(scene.top.root[0]), culls=1, device=device)
    arrays = (scene._array(directions.reshape(-1, 3).astype(np.float32), wp.vec3f), scene.columns, scene.rows, top_of(scene))
    origins = None if way == "packets" else wp.zeros(directions.size // 3, dtype=wp.vec3f, device=device)
    ranges = scene._array(limits.reshape(-1, 2).astype(np.float32), wp.vec2f)
    out = occluded(bundles, origins, *arrays, kinds=scene.kinds, limits=ranges, device=device)
    assert np.array_equal(out.numpy().reshape(nearest.shape).astype(bool), nearest)


@pytest.mark.parametrize("way", WAYS)
def test_equal_distances_go_to_the_lower_rank_then_the_lower_triangle(tools, way, device):
    rng = np.random.default_rng(6)
    points, triangles = tools.soup(rng, 60)
    doubled = (points, np.concatenate([triangles, triangles]))
    linear, ranks = tools.random_affine(rng, mirrored=False), [5, 2, 7, 3]
    scene = tools.Scene([doubled], [tools.Instance(linear, rank=r) for r in ranks], device=device)
    image = image_of(tools, scene, shoot(scene, (0, 0, 0), panorama(), way))
    assert set(np.unique(image.instance)) == {-1, 1}
    assert image.triangle.max() < 60
    for kind in (tools.SPHERE, tools.CUBE):
        scene = tools.Scene([], [tools.Instance(linear, kind=kind, rank=r) for r in ranks], device=device)
        assert (shoot(scene, (0, 0, 0), panorama(), way)[1] == 1).all()


@pytest.mark.parametrize("way", WAYS)
def test_bundles_share_rays_and_have_worlds(tools, way, device):
    """Three sensors with one pattern: turned, in worlds of their own, one of them masked; a global cube is seen by all, where it is."""
    instances = [tools.Instance(np.eye(3), (0, 0, -4), kind=tools.SPHERE), tools.Instance(np.eye(3) * 0.5, (0, 0, 6), kind=tools.SPHERE)]
    instances += [tools.Instance(np.eye(3) * 9, (0, 0, 0), kind=tools.CUBE)]
    scene = tools.Scene([], instances, groups=[[0], [1], [2]], device=device)
    turns = [np.eye(3), np.diag([1.0, -1.0, -1.0]), np.eye(3)]  # the second looks the other way
    roots = [int(scene.top.root[g]) for g in (0, 1, 0)]
    directions = unit(np.array([[[0, 0, -1.0], [0, 0.01, -1.0], [0, 0, 1.0]]]))
    options = {"root": roots, "turns": turns, "global_root": int(scene.top.root[2]), "global_offset": (0, 0, 1.0), "masked": [0, 0, 1]}
    bundles = ray_bundles(np.zeros((3, 3)), (1, 3), device=device, **options)
    _, instance, t = shoot(scene, None, directions, way, bundles=bundles)
    assert instance.tolist() == [[0, 0, 2], [1, 1, 2], [-1, -1, -1]]
    np.testing.assert_allclose(t[0, [0, 2]], [3.0, 8.0], rtol=1e-6)  # the cube's walls are 8 above and 10 below
    np.testing.assert_allclose(t[1, [0, 2]], [5.5, 10.0], rtol=1e-6)
    assert np.isposinf(t[2]).all()


def test_origins_of_single_rays_are_turned_with_the_bundle(tools, device):
    """A wall at x = 10; the sensor's x axis is the world's y, and so on: 3 along its z is 3 along x."""
    scene = tools.Scene([], [tools.Instance(np.eye(3), (11.0, 0, 0), kind=tools.CUBE)], device=device)
    turn = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    directions, origins = np.array([[[0, 0, 1.0], [0, 0, 1.0], [0, 0, 1.0]]]), [[0, 0, 3.0], [0.5, 0.5, 0], [np.nan, 0, 0]]
    _, instance, t = shoot(scene, np.array([1.0, 0, 0]), directions, "singly", origins=origins, turns=turn[None])
    np.testing.assert_allclose(t[0], [6.0, 9.0, np.inf], rtol=1e-6)
    assert instance.tolist() == [[0, 0, -1]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 100), (2, 33), (5, 17), (8, 8), (9, 65), (0, 5), (3, 0)])
def test_grids_of_any_shape(tools, way, shape, device):
    """Every ray has its own result, at its own place."""
    scene = tools.Scene([], [tools.Instance(np.eye(3), kind=tools.SPHERE)], device=device)
    rng = np.random.default_rng(0)
    directions = unit(rng.normal(size=(*shape, 3)) * 0.3 + [0, 0, -1])
    t = shoot(scene, (0, 0, 2.0), directions, way)[2]
    b = -2.0 * directions[..., 2]
    root = b * b - 3.0
    expected = np.where(root > 0, b - np.sqrt(np.maximum(root, 0)), np.inf)
    sure = np.abs(root) > 1e-4
    np.testing.assert_allclose(t[sure], expected[sure], rtol=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_far_from_the_origin(tools, way, device):
    """10,000 km away a wall 10 m ahead is 10 m ahead."""
    far = np.array([1.0e7, -2.0e7, 5.0e6])
    wall = (np.array([[-90, -90, 0], [90, -90, 0], [90, 90, 0], [-90, 90, 0]], float), [[0, 1, 2], [0, 2, 3]])
    scene = tools.Scene([wall], [tools.Instance(np.eye(3), far)], device=device)
    directions = unit(np.random.default_rng(0).uniform(-1, 1, (8, 8, 3)) * [0.5, 0.5, 0] - [0, 0, 1])
    _, instance, t = shoot(scene, far + [0, 0, 10.0], directions, way)
    assert (instance == 0).all()
    np.testing.assert_allclose(t * -directions[..., 2], 10.0, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_nothing_to_hit(tools, way, device):
    empty = (np.zeros((0, 3)), np.zeros((0, 3), int))
    for scene in (tools.Scene([], [], device=device), tools.Scene([empty], [tools.Instance(np.eye(3))], device=device)):
        assert (shoot(scene, (0, 0, 0), panorama(), way, root=-1)[1] == -1).all()


@pytest.mark.parametrize("way", WAYS)
def test_bits_do_not_depend_on_threads(tools, way):
    scene = mixed_scene(tools, "cpu")
    results = []
    for count in (1, 2, 7):
        with tools.threads(count):
            results.append(b"".join(a.tobytes() for a in shoot(scene, (0.2, -0.1, 0.3), panorama(100, 90), way)))
    assert results[0] == results[1] == results[2]


def test_the_kernel_for_cuda_gives_the_same_hits(tools, tmp_path):
    """Written with scalars, run on the CPU; and it compiles to PTX."""
    scene, directions = mixed_scene(tools, "cpu"), panorama(60, 90)
    kernel = ray_kernel(scene.kinds, False, False)
    bundles = ray_bundles((0.2, -0.1, 0.3), directions.shape[:2], root=int(scene.top.root[0]), culls=1, device="cpu")
    hits, array = bundles.hits(), scene._array(directions.reshape(-1, 3).astype(np.float32), wp.vec3f)
    inputs = [
        0,
        1,
        bundles.ray_count,
        bundles.rows,
        1,
        bundles.ray_count,
        None,
        array,
        None,
        scene.columns,
        scene.rows,
        top_of(scene),
        None,
    ]
    wp.launch(kernel, dim=bundles.ray_count, inputs=inputs, outputs=[hits], device="cpu")
    slot, instance, t = shoot(scene, (0.2, -0.1, 0.3), directions, "singly")
    same = (hits.slot.numpy().reshape(slot.shape) == slot) & (hits.instance.numpy().reshape(slot.shape) == instance)
    assert (~same).sum() <= 3
    finite = np.isfinite(t) & same
    np.testing.assert_allclose(hits.t.numpy().reshape(t.shape)[finite], t[finite], rtol=1e-5)
    (path,) = wp.compile_aot_module(kernel.module, arch=80, module_dir=tmp_path, use_ptx=True)
    assert ".target sm_80" in path.read_text()
