"""tables.world_trees: the trees over the instances of worlds. Copies share the shape of their prototype's tree: it is built once."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.delegate.worlds import Worlds
from hdwarp.launch import launch
from hdwarp.tables import bvh
from hdwarp.tables.structs import vec8f, vec8i
from hdwarp.tables.top_level import TopNodes, TreeCounts
from hdwarp.tables.worlds import WorldRows

NO_CHILD = wp.constant(bvh.EMPTY_CHILD)


class WorldTrees:
    """One tree a world, built anew when worlds get other rows, refitted when rows move."""

    def __init__(self, nodes: TopNodes) -> None:
        self.device = nodes.device
        self._nodes = nodes
        self._rows, self._layout = np.zeros(0, np.int64), -1  # of the index, ascending
        self._world = np.zeros(0, np.int32)  # of each of them
        self._trees: bvh.TopLevelBvh | None = None
        self._items = 0  # instances in them
        self.root = np.zeros(0, np.int32)  # by world, -1 none

    @property
    def size(self) -> int:
        """Nodes of all worlds."""
        return 0 if self._trees is None else len(self._trees.parent)

    def device_arrays(self) -> list[wp.array]:
        """All that is held on the device but for the nodes."""
        return [] if self._trees is None else [self._trees.parent]

    def update(
        self,
        worlds: Worlds,
        rows: WorldRows,
        world: np.ndarray,
        live: np.ndarray,
        rank: np.ndarray,
        lower: wp.array,
        upper: wp.array,
        *,
        turned: bool,
    ) -> TreeCounts:
        """Follow rows of worlds whose bounds are new, all being where the stage has them. By row of the index: ``world``, ``live`` (draws
        something), ``rank``; ``lower``, ``upper`` by device row. ``turned``: some copies have other bounds than their prototype."""
        members = np.flatnonzero(live & (world >= 0))
        same = np.array_equal(members, self._rows) and np.array_equal(world[members], self._world)
        if self._trees is not None and rows.layout == self._layout and same:
            self.refit(lower, upper)
            return TreeCounts(refitted=self._items)
        self._rows, self._world, self._layout = members, world[members], rows.layout
        self.root = np.full(worlds.count, -1, np.int32)
        self._trees = None
        if not len(members):
            return TreeCounts()
        first = np.array([group.first for group in worlds.groups])
        counts = np.array([group.count for group in worlds.groups])
        group = np.searchsorted(first, world[members], side="right") - 1
        order = np.lexsort((rank[members], group))
        start = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(first)))])
        top = bvh.build_top_level(lower, upper, start, members[order].astype(np.int32), device=self.device)
        self._trees = spread(top, first, counts, rows)
        self._items = int(counts[group].sum())
        self.root = self._trees.root
        self._nodes.write(0, self._trees)
        if turned:
            self.refit(lower, upper)
        return TreeCounts(built=int((start[1:] > start[:-1]).sum()))

    def hold_any(self, rows: np.ndarray) -> bool:
        """Whether any of ``rows`` of the index is in the trees: it may have left its world."""
        return bool(np.isin(rows, self._rows, assume_unique=True).any())

    def refit(self, lower: wp.array, upper: wp.array) -> None:
        """Write all boxes anew: device launches only, nothing allocated."""
        if self._trees is not None:
            bvh.refit_top_level(self._trees, lower, upper, nodes=self._nodes.boxes.array, children=self._nodes.children.array)


def spread(top: bvh.TopLevelBvh, first: np.ndarray, counts: np.ndarray, rows: WorldRows) -> bvh.TopLevelBvh:
    """Trees of groups of worlds -> one tree a world, those of a group being alike, boxes and all.
    ``first``, ``counts``: (groups,) first world and number of worlds of each."""
    parent = top.parent.numpy()
    level_count, group_count = len(top.level_start) - 1, len(first)
    level = np.repeat(np.arange(level_count), np.diff(top.level_start))
    group = np.where(parent < 0, -1 - parent, 0)
    for k in range(1, level_count):  # parents come first
        these = slice(top.level_start[k], top.level_start[k + 1])
        group[these] = group[parent[these] // 8]
    # In each level the nodes of a group are neighbours, and so will be those of a world: where they start, and how many each world has.
    held = np.bincount(level * group_count + group, minlength=level_count * group_count).reshape(level_count, group_count)
    old = np.concatenate([[0], np.cumsum(held)])[:-1].reshape(held.shape)
    sizes = held * counts
    new = np.concatenate([[0], np.cumsum(sizes)])[:-1].reshape(held.shape)

    def number(node: np.ndarray, copy: np.ndarray) -> np.ndarray:
        k, g = level[node], group[node]
        return new[k, g] + copy * held[k, g] + node - old[k, g]

    device = top.parent.device
    node, copy = _copies(np.arange(len(parent)), counts[group])
    size = len(node)
    spread_parent, spread_children = wp.empty(size, dtype=wp.int32, device=device), wp.empty(size, dtype=vec8i, device=device)
    at, step = new[level, group] + np.arange(len(parent)) - old[level, group], held[level, group]
    row_at, row_step = rows.copies_at()
    arrays = (node, copy, at, step, first[group], row_at, row_step)
    boxes = wp.empty(6 * size, dtype=vec8f, device=device)
    inputs = [top.parent, top.children, top.nodes, *(wp.array(array, dtype=wp.int32, device=device) for array in arrays)]
    launch(_spread_nodes, size, inputs, [spread_parent, spread_children, boxes], device=device, grain=1024)
    root = np.full(int(counts.sum()), -1, np.int32)
    roots, root_copy = _copies(np.flatnonzero(parent < 0), counts[group[parent < 0]])
    root[first[group[roots]] + root_copy] = number(roots, root_copy)
    no_items = wp.zeros(0, dtype=wp.int32, device=device)
    return bvh.TopLevelBvh(
        nodes=boxes,
        children=spread_children,
        root=root,
        level_start=[0, *np.cumsum(sizes.sum(axis=1)).tolist()],
        parent=spread_parent,
        item_row=no_items,
        item_parent=no_items,
        group_lower=wp.zeros(len(root), dtype=wp.vec3f, device=device),
        group_upper=wp.zeros(len(root), dtype=wp.vec3f, device=device),
    )


@wp.kernel(enable_backward=False)
def _spread_nodes(
    first: wp.int32,
    step: wp.int32,
    count: wp.int32,
    parent: wp.array[wp.int32],
    children: wp.array[vec8i],
    boxes: wp.array[vec8f],
    node: wp.array[wp.int32],
    copy: wp.array[wp.int32],
    node_at: wp.array[wp.int32],
    node_step: wp.array[wp.int32],
    world: wp.array[wp.int32],
    row_at: wp.array[wp.int32],
    row_step: wp.array[wp.int32],
    out_parent: wp.array[wp.int32],
    out_children: wp.array[vec8i],
    out_boxes: wp.array[vec8f],
):
    """Job i: copy ``copy[i]`` of ``node[i]``. By node: its number in copy 0 (``node_at``), how far copies are apart, the first world of its
    group; by row of the index: the same of rows, but for copy 0, which is the row itself."""
    i = first + wp.tid() * step
    if i >= count:
        return
    of, c = node[i], copy[i]
    number = node_at[of] + c * node_step[of]
    above = parent[of]
    if above < 0:
        out_parent[number] = -1 - (world[of] + c)
    else:
        up = above >> 3
        out_parent[number] = 8 * (node_at[up] + c * node_step[up]) + (above & 7)
    kids = children[of]
    for k in range(8):
        kid = kids[k]
        if kid >= 0:
            kids[k] = node_at[kid] + c * node_step[kid]
        elif kid != NO_CHILD and c > 0:
            row = -1 - kid
            kids[k] = -1 - (row_at[row] + c * row_step[row])
    out_children[number] = kids
    for k in range(6):
        out_boxes[6 * number + k] = boxes[6 * of + k]


def _copies(items: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every item ``counts`` times, and which time it is."""
    ends = np.cumsum(counts)
    return np.repeat(items, counts), np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
