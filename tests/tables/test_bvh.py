"""The trees themselves: complete, tight, shallow, the same on any number of threads, and never confused by bad input."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.tables import bvh


def build(meshes, device="cpu", **bases):
    """``meshes``: (points, triangles) each."""
    points = np.concatenate([np.asarray(p, np.float32).reshape(-1, 3) for p, _ in meshes])
    triangles = np.concatenate([np.asarray(t, np.int32).reshape(-1, 3) for _, t in meshes])
    triangle_start = np.cumsum([0] + [len(t) for _, t in meshes])
    point_start = np.cumsum([0] + [len(p) for p, _ in meshes])[:-1]
    return bvh.build_meshes(
        wp.array(points, dtype=wp.vec3f, device=device),
        wp.array(triangles, dtype=wp.vec3i, device=device),
        triangle_start,
        point_start,
        device=device,
        **bases,
    )


def soup(rng, count, size=0.3):
    points = (rng.uniform(-1, 1, (count, 1, 3)) + rng.normal(size=(count, 3, 3)) * size).reshape(-1, 3).astype(np.float32)
    return points, np.arange(3 * count, dtype=np.int32).reshape(-1, 3)


def walk(built, root, points, triangles):
    """Check one mesh's tree from its root; (triangles found, depth)."""
    nodes = built.nodes.numpy().reshape(-1, 2, 3, 8)
    children, counts = built.children.numpy(), built.leaf_count.numpy()
    vertices, slots = built.leaf_vertices.numpy().reshape(-1, 3, 3, 16), built.slot_triangle.numpy().reshape(-1, 16)
    found, deepest, todo = [], 0, [(int(root), 1, np.full(3, -np.inf), np.full(3, np.inf))]
    while todo:
        node, depth, lower, upper = todo.pop()
        deepest = max(deepest, depth)
        for c in range(8):
            child = int(children[node - built.node_base, c])
            lo, hi = nodes[node - built.node_base, 0, :, c], nodes[node - built.node_base, 1, :, c]
            if child == bvh.EMPTY_CHILD:
                assert (lo > hi).all()
                continue
            assert (lo > hi).all() or ((lo >= lower).all() and (hi <= upper).all())
            if child >= 0:
                todo.append((child, depth + 1, lo, hi))
                continue
            leaf = -1 - child - built.leaf_base
            used = counts[leaf]
            assert 1 <= used <= 16
            assert (slots[leaf, used:] == -1).all()
            found += slots[leaf, :used].tolist()
            for lane in range(16):
                a, b, c_ = vertices[leaf, :, :, lane]
                if lane >= used:
                    assert (a == b).all()
                    assert (a == c_).all()
                    continue
                expected = points[triangles[slots[leaf, lane]]]
                if np.isfinite(expected).all():
                    assert np.array_equal(vertices[leaf, :, :, lane], expected)
                    assert (expected > lo).all() or (expected >= lo).all()
                    assert (expected <= hi).all()
    return sorted(found), deepest


def test_every_triangle_is_in_one_leaf_inside_its_boxes(device):
    """Meshes of many sizes in one batch, numbered from an offset; one without triangles has no root."""
    rng = np.random.default_rng(0)
    sizes = [1, 16, 17, 0, 500, 3]
    meshes = [soup(rng, n) for n in sizes]
    built = build(meshes, device, node_base=1000, leaf_base=5000)
    for k, (points, triangles) in enumerate(meshes):
        if not sizes[k]:
            assert built.root[k] == -1
            assert (built.lower[k] > built.upper[k]).all()
            continue
        found, depth = walk(built, built.root[k], points, triangles)
        assert found == list(range(sizes[k]))
        assert depth <= bvh.MAX_DEPTH
        pad = 2e-6 * np.abs(points).max()
        assert (built.lower[k] <= points.min(0)).all()
        assert (built.lower[k] >= points.min(0) - pad).all()
        assert (built.upper[k] >= points.max(0)).all()


@pytest.mark.parametrize(
    "name", ["identical", "one centre", "powers of two", "in a line", "needles", "not finite", "huge and tiny", "all in one plane"]
)
def test_bad_distributions_give_complete_shallow_trees(name):
    """Where splits by area can say nothing, or would split off one triangle at a time, index medians bound the depth."""
    rng, n = np.random.default_rng(1), 3000
    points, triangles = soup(rng, n)
    corners = points.reshape(n, 3, 3)
    if name == "identical":
        corners[:] = corners[0]
    elif name == "one centre":
        corners -= (corners.min(1) + corners.max(1))[:, None] / 2
    elif name == "powers of two":
        corners *= np.exp2(np.linspace(-80, 80, n))[:, None, None].astype(np.float32)
    elif name == "in a line":
        corners[:] = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]]) * 1e-3 + np.exp2(-(np.arange(n) % 120.0))[:, None, None] * [1, 0, 0]
    elif name == "needles":
        corners[:, 1:] = corners[:, :1] + [[1e4, 0, 0], [1e4, 1e-6, 0]]
    elif name == "not finite":
        corners[::3] = np.nan
        corners[1::7, 0, 0] = np.inf
    elif name == "huge and tiny":
        corners[::2] *= 1e12
        corners[1::2] *= 1e-12
    else:
        corners[:, :, 2] = 5.0
    built = build([(points, triangles)])
    found, depth = walk(built, built.root[0], points, triangles)
    assert found == list(range(n))
    assert depth <= bvh.MAX_DEPTH
    if name == "identical":
        assert depth == 3  # 188 leaves: as shallow as can be


def test_a_million_identical_triangles():
    """No place to split at all: six levels of even halves, in the time of any other million."""
    triangle = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
    built = build([(triangle, np.tile(np.array([[0, 1, 2]], np.int32), (1_000_000, 1)))])
    assert len(built.level_start) - 1 == 6
    assert built.leaf_count.numpy().sum() == 1_000_000


def test_the_tree_does_not_depend_on_threads(monkeypatch):
    rng = np.random.default_rng(2)
    meshes = [soup(rng, 4000), soup(rng, 900)]
    trees = []
    for count in ("1", "2", "7"):
        monkeypatch.setenv("HDWARP_THREADS", count)
        built = build(meshes)
        trees.append([a.numpy().tobytes() for a in (built.nodes, built.children, built.leaf_vertices, built.slot_triangle)])
    assert trees[0] == trees[1] == trees[2]


def test_refit_gives_the_boxes_of_the_new_points(device):
    """In place, or into larger arrays at the batch's offsets; the old points bring the old boxes back bit by bit."""
    rng = np.random.default_rng(3)
    meshes = [soup(rng, 700), soup(rng, 40)]
    moved = [(p + rng.normal(size=p.shape).astype(np.float32), t) for p, t in meshes]
    built = build(meshes, device, node_base=3, leaf_base=2)
    before = built.nodes.numpy().tobytes()
    new = wp.array(np.concatenate([p for p, _ in moved]), dtype=wp.vec3f, device=device)
    nodes = wp.zeros(len(built.nodes) + 18, dtype=built.nodes.dtype, device=device)
    vertices = wp.zeros(len(built.leaf_vertices) + 18, dtype=built.leaf_vertices.dtype, device=device)
    wp.copy(nodes, built.nodes, dest_offset=18)
    bvh.refit_meshes(built, new, nodes=nodes, leaf_vertices=vertices)
    assert built.nodes.numpy().tobytes() == before
    bvh.refit_meshes(built, new)
    assert np.array_equal(nodes.numpy()[18:], built.nodes.numpy())
    assert np.array_equal(vertices.numpy()[18:], built.leaf_vertices.numpy())
    for k, (points, triangles) in enumerate(moved):
        walk(built, built.root[k], points, triangles)
    bvh.refit_meshes(built, wp.array(np.concatenate([p for p, _ in meshes]), dtype=wp.vec3f, device=device))
    assert built.nodes.numpy().tobytes() == before


def items_of(top, root):
    found, todo = [], [int(root)]
    children = top.children.numpy()
    while todo:
        for child in children[todo.pop()]:
            if child >= 0:
                todo.append(int(child))
            elif child != bvh.EMPTY_CHILD:
                found.append(-1 - int(child))
    return sorted(found)


def test_top_level_trees_hold_their_groups(device):
    """Groups of 0 to 300 instances in one go, rows in any order; inverted bounds wait for a refit."""
    rng = np.random.default_rng(4)
    sizes = [5, 0, 300, 1, 8]
    rows = rng.permutation(sum(sizes)).astype(np.int32)
    start = np.cumsum([0, *sizes])
    lower = rng.uniform(-9, 9, (sum(sizes), 3)).astype(np.float32)
    upper = lower + rng.uniform(0, 2, lower.shape).astype(np.float32)
    lower[rows[7]], upper[rows[7]] = 1e30, -1e30
    on_device = [wp.array(a, dtype=wp.vec3f, device=device) for a in (lower, upper)]
    top = bvh.build_top_level(*on_device, start, rows, device=device)
    for g, size in enumerate(sizes):
        if size == 0:
            assert top.root[g] == -1
            continue
        mine = rows[start[g] : start[g + 1]]
        assert items_of(top, top.root[g]) == sorted(mine.tolist())
        drawn = mine[lower[mine, 0] <= upper[mine, 0]]
        pad = 2e-6 * 12
        assert (top.group_lower.numpy()[g] <= lower[drawn].min(0)).all()
        assert (top.group_lower.numpy()[g] >= lower[drawn].min(0) - pad).all()
        assert (top.group_upper.numpy()[g] >= upper[drawn].max(0)).all()
    lower[rows[7]], upper[rows[7]] = -50, -49
    bvh.refit_top_level(top, *(wp.array(a, dtype=wp.vec3f, device=device) for a in (lower, upper)))
    assert top.group_lower.numpy()[2] == pytest.approx(-50, rel=1e-5)


def test_a_hundred_thousand_instances_of_one_box():
    ones = wp.full(100_000, wp.vec3f(1.0), dtype=wp.vec3f, device="cpu")
    top = bvh.build_top_level(ones, ones, np.array([0, 100_000]), np.arange(100_000), device="cpu")
    assert len(top.level_start) - 1 == 6
    assert items_of(top, top.root[0]) == list(range(100_000))
