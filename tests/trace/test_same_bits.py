"""What must not change a bit of the record: threads, data windows, other views, the shape of the trees, the order of everything."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.tables import bvh
from hdwarp.trace import SceneKinds


@pytest.fixture(scope="module")
def scene(tools):
    rng = np.random.default_rng(11)
    meshes = [tools.soup(rng, 300, size=0.1), tools.bumpy_sphere(12)]
    instances = [tools.Instance(tools.random_affine(rng, mirrored=k % 2 == 0), rng.uniform(-1, 1, 3), mesh=k % 2) for k in range(12)]
    instances += [tools.Instance(np.eye(3) * 0.4, rng.uniform(-1, 1, 3), kind=1 + k % 2) for k in range(4)]
    return tools.Scene(meshes, instances)


@pytest.fixture(params=["perspective", "orthographic"])
def camera(tools, request):
    turn = tools.rotation((1, 2, 3), 0.7)
    return getattr(tools, request.param)(150, 101, eye=turn[:, 2] * 4, turn=turn)


def test_thread_count(scene, camera):
    images = [scene.trace(camera, thread_count=n)[0] for n in (1, 2, 7)]
    assert images[0].hit.any()
    assert images[0].bits() == images[1].bits() == images[2].bits()


@pytest.mark.parametrize(
    "window", [(0, 0, 16, 8), (3, 5, 40, 31), (16, 8, 33, 9), (-37, -11, 200, 140), (149, 100, 1, 1), (-16, -8, 16, 8)]
)
def test_data_windows_are_cut_from_one_image(scene, camera, window):
    """Any window of the image, overscan included, holds the bits that the same pixels of a larger window hold."""
    x0, y0, width, height = window
    part = scene.trace(camera.with_(window=window))[0]
    whole = scene.trace(camera.with_(window=(-48, -24, 300, 200)))[0]
    cut = np.s_[y0 + 24 : y0 + 24 + height, x0 + 48 : x0 + 48 + width]
    for name in ("triangle", "instance", "t"):
        assert getattr(part, name).tobytes() == getattr(whole, name)[cut].tobytes()


def test_a_view_alone_or_among_others(tools, scene, camera):
    """Views of mixed kinds and sizes in one launch; a masked one is left as it was."""
    others = [tools.perspective(17, 9), tools.orthographic(1, 1), tools.perspective(33, 100, eye=(0, 0, 2), radial=True)]
    together = scene.trace(others[0], camera, others[1].with_(masked=True), camera, others[2])
    alone = scene.trace(camera)[0]
    assert together[1].bits() == together[3].bits() == alone.bits()
    assert together[0].bits() == scene.trace(others[0])[0].bits()
    assert together[4].bits() == scene.trace(others[2])[0].bits()
    call, rows, record = scene.tracer([others[0], camera.with_(masked=True)])
    call()
    assert (record.slot.numpy()[rows["record"][1] :] == -7).all()
    assert (record.slot.numpy()[: rows["record"][1]] != -7).all()


def test_kernel_variants_agree(tools, scene):
    """The kernel that knows orthographic views and the one that does not; mesh only and mesh with shapes."""
    camera = tools.perspective(150, 101, eye=(0, 0, 4))
    plain = tools.Scene(scene.meshes, scene.instances, affine=False)
    assert plain.trace(camera)[0].bits() == scene.trace(camera)[0].bits()
    meshes = tools.Scene(scene.meshes, scene.instances[:12])
    only = tools.Scene(scene.meshes, scene.instances[:12], affine=False, kinds=SceneKinds(mesh=True))
    assert only.trace(camera)[0].bits() == meshes.trace(camera)[0].bits()


def test_refitted_trees_and_rebuilt_ones(tools, scene, camera):
    """Points and instances move: the old trees with new boxes and new trees give the same bits."""
    rng = np.random.default_rng(4)
    moved = [(p + rng.normal(size=p.shape).astype(np.float32) * 0.2, t) for p, t in scene.meshes]
    instances = [tools.Instance(i.linear, np.asarray(i.translation) + rng.normal(size=3) * 0.5, i.kind, i.mesh) for i in scene.instances]
    fresh = tools.Scene(moved, instances)
    old = tools.Scene(scene.meshes, scene.instances)
    bvh.refit_meshes(old.bvhs, wp.array(np.concatenate([p for p, _ in moved]), dtype=wp.vec3f, device="cpu"))
    old.instances, old.rows = instances, fresh.rows
    bvh.refit_top_level(old.top, *old.bounds())
    assert old.trace(camera)[0].bits() == fresh.trace(camera)[0].bits()


def test_equal_depths_go_to_the_lower_rank_then_the_lower_triangle(tools, camera):
    """Every triangle twice in the mesh, every instance four times: ranks, not rows or tree order, decide; shapes take part."""
    rng = np.random.default_rng(6)
    points, triangles = tools.soup(rng, 60)
    doubled = (points, np.concatenate([triangles, triangles]))
    linear = tools.random_affine(rng, mirrored=False)
    ranks = [5, 2, 7, 3]
    scene = tools.Scene([doubled], [tools.Instance(linear, rank=r) for r in ranks])
    image = scene.trace(camera)[0]
    assert set(np.unique(image.instance)) == {-1, 1}
    assert image.triangle.max() < 60
    shuffled = tools.Scene([doubled], [tools.Instance(linear, rank=r) for r in ranks], groups=[[3, 1, 0, 2]])
    assert shuffled.trace(camera)[0].bits() == image.bits()
    for shape in (tools.SPHERE, tools.CUBE):
        scene = tools.Scene([], [tools.Instance(linear, kind=shape, rank=r) for r in ranks])
        assert set(np.unique(scene.trace(camera)[0].instance)) == {-1, 1}


def test_order_of_triangles_in_memory(tools, camera):
    """The same triangles in another order: the same surface wins at every pixel."""
    rng = np.random.default_rng(8)
    points, triangles = tools.bumpy_sphere(20)
    order = rng.permutation(len(triangles))
    a = tools.Scene([(points, triangles)], [tools.Instance(np.eye(3))]).trace(camera)[0]
    b = tools.Scene([(points, triangles[order])], [tools.Instance(np.eye(3))]).trace(camera)[0]
    assert a.t.tobytes() == b.t.tobytes()
    hit = a.hit
    assert (a.triangle[hit] == order[b.triangle[hit]]).mean() > 0.999  # ties go to the lower number, which differs here
