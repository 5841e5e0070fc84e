"""tables.bvh: 8-wide SAH BVHs, many trees in one go: of meshes, points, curves (up to 16 a leaf) and of instances (one). Built, refitted.

Trees are split level by level, all trees together, a node a thread; the same input gives the same tree on any number of threads.
Splitting runs on the CPU; boxes are filled, and refitted, on the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.launch import launch
from hdwarp.stage.columns import GeometryKind
from hdwarp.tables import bvh_kernels as kernels
from hdwarp.tables import refit_kernels
from hdwarp.tables.structs import POINT_LANES, RIBBON_LANES, TRIANGLE_LANES, TUBE_LANES, vec8f, vec8i, vec16f

EMPTY_CHILD = -(2**31)
LEAF_SIZE = 16  # slots a leaf


LANES = {
    GeometryKind.MESH: int(TRIANGLE_LANES),
    GeometryKind.POINTS: int(POINT_LANES),
    GeometryKind.TUBES: int(TUBE_LANES),
    GeometryKind.RIBBONS: int(RIBBON_LANES),
}
"""How many of what a leaf is made of lie side by side in it, at most LEAF_SIZE."""
MAX_DEPTH = 12  # levels of nodes in a tree; 8**9 leaves are as many as int32 can count, the rest is room for uneven trees
STACK_SIZE = 1 + 7 * MAX_DEPTH  # the most a depth-first traversal of one tree holds: each level replaces one entry by eight


@dataclass(eq=False)
class MeshBvhs:
    """The BVHs of a batch of M meshes, as MeshColumns lays them out; node and leaf numbers start at ``node_base``, ``leaf_base``."""

    nodes: wp.array  # (6 * node_count,) vec8f
    children: wp.array  # (node_count,) vec8i
    leaf_vertices: wp.array  # (9 * leaf_count,) vec16f
    leaf_count: wp.array  # (leaf_count,) int32
    slot_triangle: wp.array  # (16 * leaf_count,) int32
    root: np.ndarray  # (M,) int32 node, -1 for a mesh without triangles
    device_lower: wp.array  # (M,) vec3f bounds, padded as boxes are; inverted for a mesh without triangles
    device_upper: wp.array
    node_base: int
    leaf_base: int
    # What a refit needs.
    level_start: list[int]  # nodes of a level are neighbours, from the roots down
    parent: wp.array  # (node_count,) int32: 8 * node + child, -1 - mesh for roots
    leaf_parent: wp.array  # (leaf_count,) int32
    leaf_mesh: wp.array  # (leaf_count,) int32
    triangle_points: wp.array | None  # None: points or curves
    triangle_start: wp.array
    point_start: wp.array
    form: GeometryKind = GeometryKind.MESH
    radii: wp.array | None = None
    pieces: wp.array | None = None

    @property
    def lower(self) -> np.ndarray:
        """(M, 3) float32 lower bounds of the meshes. Copies from the device."""
        return self.device_lower.numpy()

    @property
    def upper(self) -> np.ndarray:
        """(M, 3) float32 upper bounds of the meshes. Copies from the device."""
        return self.device_upper.numpy()


@dataclass(eq=False)
class TopLevelBvh:
    """The BVHs of G groups of instances, as TopLevel lays them out."""

    nodes: wp.array  # (6 * node_count,) vec8f
    children: wp.array  # (node_count,) vec8i
    root: np.ndarray  # (G,) int32 node, -1 for a group without items
    level_start: list[int]
    parent: wp.array
    item_row: wp.array  # (item_count,) int32 instance row, in tree order
    item_parent: wp.array  # (item_count,) int32
    group_lower: wp.array  # (G,) vec3f bounds of the groups
    group_upper: wp.array
    node_base: int = 0


def build_meshes(
    points: wp.array,
    triangle_points: wp.array,
    triangle_start: np.ndarray,
    point_start: np.ndarray,
    *,
    device: wp.Device | str,
    node_base: int = 0,
    leaf_base: int = 0,
    form: GeometryKind = GeometryKind.MESH,
    radii: np.ndarray | None = None,
    pieces: np.ndarray | None = None,
) -> MeshBvhs:
    """BVHs of M meshes, all of one ``form``.

    ``points``: (P,) vec3f or (P, 3) float32, all meshes' points one after the other, each mesh about its own centre.
    ``triangle_points``: (T,) vec3i or (T, 3) int32, point numbers within the mesh. ``triangle_start``: (M + 1,) and
    ``point_start``: (M,) int32, where each mesh's triangles and points start. Triangles with coordinates that are not
    finite, or beyond 1e30, never hit. ``node_base``, ``leaf_base``: added to the node and leaf numbers in the result.
    Of points and curves (see `MeshGeometry`) the items take the place of the triangles, in order: of ``triangle_points`` only the count is
    read; ``radii``: (P,) float32 or None, ``pieces``: (T,) int32 or None.
    """
    device = wp.get_device(device)
    points_here = _on(points, wp.vec3f, "cpu")
    triangle_start, point_start = np.asarray(triangle_start, np.int32), np.asarray(point_start, np.int32)
    mesh_count, triangle_count = len(point_start), len(triangle_points)
    triangle_mesh = _on(np.repeat(np.arange(mesh_count, dtype=np.int32), np.diff(triangle_start)), wp.int32, "cpu")
    records = wp.empty(triangle_count, dtype=vec8f, device="cpu")
    if form == GeometryKind.MESH:
        kernel, inputs = kernels.triangle_records, [points_here, _on(triangle_points, wp.vec3i, "cpu"), triangle_mesh]
    else:
        here = None if radii is None else _on(radii, wp.float32, "cpu")
        kernel, inputs = kernels.swept_records, [points_here, here, form.point_count, triangle_mesh, _on(triangle_start, wp.int32, "cpu")]
    inputs.append(_on(point_start, wp.int32, "cpu"))
    launch(kernel, triangle_count, inputs, [records], device="cpu", grain=4096)
    tree = _split(records, triangle_start, LANES[form])
    # Lane by lane: the triangles of a leaf are neighbours in tree order.
    lane = np.arange(LEAF_SIZE)
    position = tree.leaf_start[:, None] + lane
    used = lane < tree.leaf_count[:, None]
    order = _order(records)
    triangle = order[np.where(used, position, 0)] if triangle_count else np.zeros((0, LEAF_SIZE), np.int32)
    slot_triangle = np.where(used, triangle - triangle_start[tree.leaf_tree][:, None], -1)
    children = np.where(tree.children >= 0, tree.children + node_base, tree.children - leaf_base)
    children = np.where(tree.children == EMPTY_CHILD, EMPTY_CHILD, children)
    bvhs = MeshBvhs(
        nodes=empty_nodes(len(children), device),
        children=_on(children, vec8i, device),
        leaf_vertices=wp.zeros(9 * len(tree.leaf_count), dtype=vec16f, device=device),
        leaf_count=_on(tree.leaf_count, wp.int32, device),
        slot_triangle=_on(slot_triangle.reshape(-1), wp.int32, device),
        root=np.where(tree.root >= 0, tree.root + node_base, -1).astype(np.int32),
        device_lower=wp.full(mesh_count, wp.vec3f(kernels.HUGE), dtype=wp.vec3f, device=device),
        device_upper=wp.full(mesh_count, wp.vec3f(-kernels.HUGE), dtype=wp.vec3f, device=device),
        node_base=node_base,
        leaf_base=leaf_base,
        level_start=tree.level_start,
        parent=_on(tree.parent, wp.int32, device),
        leaf_parent=_on(tree.leaf_parent, wp.int32, device),
        leaf_mesh=_on(tree.leaf_tree, wp.int32, device),
        triangle_points=_on(triangle_points, wp.vec3i, device) if form == GeometryKind.MESH else None,
        triangle_start=_on(triangle_start, wp.int32, device),
        point_start=_on(point_start, wp.int32, device),
        form=form,
        radii=None if radii is None else _on(radii, wp.float32, device),
        pieces=None if pieces is None else _on(pieces, wp.int32, device),
    )
    _refit_meshes(bvhs, _on(points, wp.vec3f, device), bvhs.nodes, bvhs.leaf_vertices, 0, 0)
    return bvhs


def refit_meshes(bvhs: MeshBvhs, points: wp.array, *, nodes: wp.array | None = None, leaf_vertices: wp.array | None = None) -> None:
    """New ``points`` (as given to `build_meshes`, on the device of the BVHs), same triangles. Device launches only.

    ``nodes`` and ``leaf_vertices``: larger arrays that hold the batch at its ``node_base`` and ``leaf_base``; None: the batch's own.
    """
    if nodes is None or leaf_vertices is None:
        _refit_meshes(bvhs, points, bvhs.nodes, bvhs.leaf_vertices, 0, 0)
    else:
        _refit_meshes(bvhs, points, nodes, leaf_vertices, bvhs.node_base, bvhs.leaf_base)


def _refit_meshes(bvhs: MeshBvhs, points: wp.array, nodes: wp.array, leaf_vertices: wp.array, node_base: int, leaf_base: int) -> None:
    if bvhs.form == GeometryKind.MESH:
        kernel, inputs = refit_kernels.fill_leaves, [points, bvhs.triangle_points]
    else:
        shape = [bvhs.form.point_count, LANES[bvhs.form]]
        kernel, inputs = refit_kernels.fill_swept_leaves, [points, bvhs.radii, bvhs.pieces, *shape]
    inputs += [bvhs.triangle_start, bvhs.point_start, bvhs.leaf_mesh, bvhs.leaf_parent, bvhs.leaf_count, bvhs.slot_triangle]
    inputs += [node_base, leaf_base]
    launch(kernel, len(bvhs.leaf_count), inputs, [leaf_vertices, nodes], device=nodes.device, grain=256)
    _join_levels(bvhs.level_start, node_base, bvhs.parent, nodes, bvhs.device_lower, bvhs.device_upper)


def build_top_level(
    lower: wp.array,
    upper: wp.array,
    group_start: np.ndarray,
    items: np.ndarray,
    *,
    device: wp.Device | str,
    node_base: int = 0,
    max_depth: int = MAX_DEPTH,
) -> TopLevelBvh:
    """BVHs over G groups of instances, a world a group.

    ``lower``, ``upper``: (N,) vec3f bounds by instance row, on the device. ``items``: (K,) int32 instance rows in group order,
    ``group_start``: (G + 1,) where each group starts in it. A child < 0 of a node is instance row -1 - child. Items with
    inverted bounds keep their place in the tree and are not visited until a refit gives them bounds. ``node_base``: added to
    the node numbers in the result. ``max_depth``: levels the trees may have.
    """
    device = wp.get_device(device)
    group_start, items = np.asarray(group_start, np.int32), np.asarray(items, np.int32)
    group_count = len(group_start) - 1
    records = wp.empty(len(items), dtype=vec8f, device="cpu")
    launch(
        kernels.item_records,
        len(items),
        [_on(lower, wp.vec3f, "cpu"), _on(upper, wp.vec3f, "cpu"), _on(items, wp.int32, "cpu")],
        [records],
        device="cpu",
        grain=4096,
    )
    tree = _split(records, group_start, 1, max_depth)
    item_row = items[_order(records)[tree.leaf_start]] if len(items) else items
    children, is_leaf = tree.children, (tree.children < 0) & (tree.children != EMPTY_CHILD)
    children = np.where(is_leaf, -1 - item_row[np.where(is_leaf, -1 - children, 0)], children) if len(items) else children
    children = np.where(children >= 0, children + node_base, children)
    top = TopLevelBvh(
        nodes=empty_nodes(len(children), device),
        children=_on(children, vec8i, device),
        root=np.where(tree.root >= 0, tree.root + node_base, -1).astype(np.int32),
        level_start=tree.level_start,
        parent=_on(tree.parent, wp.int32, device),
        item_row=_on(item_row, wp.int32, device),
        item_parent=_on(tree.leaf_parent, wp.int32, device),
        group_lower=wp.full(group_count, wp.vec3f(kernels.HUGE), dtype=wp.vec3f, device=device),
        group_upper=wp.full(group_count, wp.vec3f(-kernels.HUGE), dtype=wp.vec3f, device=device),
        node_base=node_base,
    )
    refit_top_level(top, _on(lower, wp.vec3f, device), _on(upper, wp.vec3f, device))
    return top


def refit_top_level(
    top: TopLevelBvh, lower: wp.array, upper: wp.array, *, nodes: wp.array | None = None, children: wp.array | None = None
) -> None:
    """New bounds, (N,) vec3f by instance row, same tree. Device launches only: nothing allocated, no waiting.

    ``nodes``, ``children``: larger arrays that hold the trees at their ``node_base``; None: the trees' own.
    """
    first, shift = top.node_base, 0
    if nodes is None or children is None:
        nodes, children, first, shift = top.nodes, top.children, 0, top.node_base
    for level in range(len(top.level_start) - 2, -1, -1):
        start, end = top.level_start[level], top.level_start[level + 1]
        launch(
            refit_kernels.gather_boxes,
            end - start,
            [start, first, shift, children, top.parent, lower, upper],
            [nodes, top.group_lower, top.group_upper],
            device=nodes.device,
            grain=512,
        )


def refit_items(top: TopLevelBvh, lower: wp.array, upper: wp.array, items: wp.array, *, nodes: wp.array) -> None:
    """The same for a few ``items`` (places in ``item_row``) alone, from each up to its root: one launch, one thread."""
    wp.launch(
        refit_kernels.refit_items,
        dim=1,
        inputs=[items, len(items), lower, upper, top.item_row, top.item_parent, top.parent, top.node_base],
        outputs=[nodes, top.group_lower, top.group_upper],
        device=nodes.device,
    )


def join_trees(node: int, tops: list[TopLevelBvh], *, nodes: wp.array) -> None:
    """Write the bounds of the first group of each of ``tops`` into the boxes of ``node``'s first children."""
    for child, top in enumerate(tops):
        bounds = [top.group_lower, top.group_upper]
        wp.launch(refit_kernels.write_root, dim=1, inputs=[node, child, *bounds], outputs=[nodes], device=nodes.device)


def _join_levels(level_start: list[int], node_base: int, parent: wp.array, nodes: wp.array, lower: wp.array, upper: wp.array) -> None:
    for level in range(len(level_start) - 2, -1, -1):
        start, end = level_start[level], level_start[level + 1]
        launch(refit_kernels.join_nodes, end - start, [start, node_base, parent], [nodes, lower, upper], device=nodes.device, grain=2048)


@dataclass(eq=False)
class _Tree:
    """The shape of a batch of trees: NumPy, numbers within the batch."""

    children: np.ndarray  # (node_count, 8) int32
    parent: np.ndarray  # (node_count,)
    level_start: list[int]
    root: np.ndarray  # (trees,)
    leaf_start: np.ndarray  # (leaf_count,) first record
    leaf_count: np.ndarray  # (leaf_count,)
    leaf_parent: np.ndarray  # (leaf_count,)
    leaf_tree: np.ndarray  # (leaf_count,)


def _split(records: wp.array, tree_start: np.ndarray, leaf_size: int, max_depth: int = MAX_DEPTH) -> _Tree:
    """Sort the records of every tree into leaves. Leaves are numbered in the order of their records: neighbours in space are in memory."""
    start, end = tree_start[:-1].astype(np.int32), tree_start[1:].astype(np.int32)
    trees = np.flatnonzero(end > start).astype(np.int32)
    root = np.full(len(start), -1, np.int32)
    root[trees] = np.arange(len(trees))
    start, end, tree, parent = start[trees], end[trees], trees, -1 - trees
    levels: list[tuple[np.ndarray, np.ndarray]] = []  # (child start, parent) a level
    leaves: list[tuple[np.ndarray, ...]] = []
    links: list[tuple[np.ndarray, np.ndarray]] = []  # (parent slot, child node)
    level_start = [0]
    coordinates = wp.array(ptr=records.ptr, dtype=wp.float32, shape=8 * len(records), device="cpu")  # the same memory
    while len(start):
        depth, base = len(levels), level_start[-1]
        unit_limit = min(8 ** (max_depth - depth - 1), 2**31 - 1)
        child_start = wp.empty(9 * len(start), dtype=wp.int32, device="cpu")
        launch(
            kernels.split_nodes,
            len(start),
            [records, coordinates, _on(start, wp.int32, "cpu"), _on(end, wp.int32, "cpu"), leaf_size, unit_limit],
            [child_start],
            device="cpu",
            grain=1 if len(records) > 4096 else 64,
        )
        bound = child_start.numpy().reshape(-1, 9)
        sizes = np.diff(bound, axis=1)
        slot = 8 * (base + np.arange(len(start)))[:, None] + np.arange(8)
        is_leaf, is_node = (sizes > 0) & (sizes <= leaf_size), sizes > leaf_size
        leaves.append((bound[:, :-1][is_leaf], sizes[is_leaf], slot[is_leaf], np.repeat(tree, is_leaf.sum(axis=1))))
        levels.append((bound, parent))
        level_start.append(base + len(start))
        links.append((slot[is_node], level_start[-1] + np.arange(is_node.sum())))
        start, end, tree, parent = bound[:, :-1][is_node], bound[:, 1:][is_node], np.repeat(tree, is_node.sum(axis=1)), slot[is_node]
    leaf_start, leaf_count, leaf_parent, leaf_tree = (
        (np.concatenate(column).astype(np.int32) for column in zip(*leaves, strict=True)) if leaves else (np.zeros(0, np.int32),) * 4
    )
    order = np.argsort(leaf_start, kind="stable")
    leaf_start, leaf_count, leaf_parent, leaf_tree = leaf_start[order], leaf_count[order], leaf_parent[order], leaf_tree[order]
    children = np.full((level_start[-1], 8), EMPTY_CHILD, np.int32)
    flat = children.reshape(-1)
    flat[leaf_parent] = -1 - np.arange(len(leaf_parent), dtype=np.int32)
    for slot, node in links:
        flat[slot] = node
    parents = np.concatenate([parent for _, parent in levels]) if levels else np.zeros(0)
    return _Tree(children, parents.astype(np.int32), level_start, root, leaf_start, leaf_count, leaf_parent, leaf_tree)


def _order(records: wp.array) -> np.ndarray:
    """(n,) int32: primitives in the order of their records."""
    return records.numpy().reshape(-1, 8)[:, 6].copy().view(np.int32)


def empty_nodes(count: int, device: wp.Device) -> wp.array:
    nodes = wp.empty(6 * count, dtype=vec8f, device=device)
    launch(refit_kernels.clear_nodes, count, [], [nodes], device=device, grain=4096)
    return nodes


def _on(values: wp.array | np.ndarray, dtype: type, device: wp.Device | str) -> wp.array:
    """A Warp array on a device: the one given where it is one already."""
    if isinstance(values, wp.array):
        return values if values.device == wp.get_device(device) else values.to(device)
    return wp.array(values, dtype=dtype, device=device)
