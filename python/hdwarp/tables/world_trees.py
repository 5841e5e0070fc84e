"""tables.world_trees: the trees over the instances of worlds. Copies share the shape of their prototype's tree: it is built once."""

from __future__ import annotations

import numpy as np
import warp as wp

from hdwarp.delegate.worlds import Worlds
from hdwarp.tables import bvh
from hdwarp.tables.top_level import TopNodes, TreeCounts
from hdwarp.tables.worlds import WorldRows


class WorldTrees:
    """One tree a world, built anew when worlds get other rows, refitted when rows move."""

    def __init__(self, nodes: TopNodes) -> None:
        self.device = nodes.device
        self._nodes = nodes
        self._rows = np.zeros(0, np.int64)
        self._trees: bvh.TopLevelBvh | None = None
        self.root = np.zeros(0, np.int32)  # by world, -1 none

    @property
    def size(self) -> int:
        """Nodes of all worlds."""
        return 0 if self._trees is None else len(self._trees.parent)

    def device_arrays(self) -> list[wp.array]:
        """All that is held on the device but for the nodes."""
        return [] if self._trees is None else [self._trees.parent, self._trees.item_row, self._trees.item_parent]

    def update(
        self, worlds: Worlds, rows: WorldRows, world: np.ndarray, live: np.ndarray, rank: np.ndarray, lower: wp.array, upper: wp.array
    ) -> TreeCounts:
        """Follow rows of worlds whose bounds are new. By row of the index: ``world``, ``live`` (draws something), ``rank``; ``lower``,
        ``upper`` by device row."""
        members = np.flatnonzero(live & (world >= 0))
        if self._trees is not None and np.array_equal(members, self._rows):
            self.refit(lower, upper)
            return TreeCounts(refitted=len(self._trees.item_row))
        self._rows = members
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
        self.root = self._trees.root
        self._nodes.write(0, self._trees)
        self.refit(lower, upper)
        return TreeCounts(built=int((start[1:] > start[:-1]).sum()))

    def refit(self, lower: wp.array, upper: wp.array) -> None:
        """Write all boxes anew: device launches only, nothing allocated."""
        if self._trees is not None:
            bvh.refit_top_level(self._trees, lower, upper, nodes=self._nodes.boxes.array, children=self._nodes.children.array)


def spread(top: bvh.TopLevelBvh, first: np.ndarray, counts: np.ndarray, rows: WorldRows) -> bvh.TopLevelBvh:
    """Trees of groups of worlds -> one tree a world, the trees of a group being alike; their boxes are still to be written.
    ``first``, ``counts``: (groups,) first world and number of worlds of each."""
    parent, children = top.parent.numpy(), top.children.numpy().reshape(-1, 8)
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

    node, copy = _copies(np.arange(len(parent)), counts[group])
    at = number(node, copy)
    spread_parent, spread_children = np.empty(len(node), np.int32), np.empty((len(node), 8), np.int32)
    above = parent[node]
    spread_parent[at] = np.where(above < 0, -1 - (first[group[node]] + copy), 8 * number(np.maximum(above, 0) // 8, copy) + above % 8)
    child = children[node]
    is_node, is_item = child >= 0, (child < 0) & (child != bvh.EMPTY_CHILD)
    values = np.full(child.shape, bvh.EMPTY_CHILD, np.int64)
    wide_copy, wide_group = np.broadcast_to(copy[:, None], child.shape), np.broadcast_to(group[node][:, None], child.shape)
    values[is_node] = number(child[is_node], wide_copy[is_node])
    values[is_item] = -1 - rows.copy(-1 - child[is_item].astype(np.int64), wide_group[is_item], wide_copy[is_item])
    spread_children[at] = values
    item_row, item_parent = top.item_row.numpy(), top.item_parent.numpy()
    item_group = group[item_parent // 8]
    item, item_copy = _copies(np.arange(len(item_row)), counts[item_group])
    order = np.argsort(first[item_group[item]] + item_copy, kind="stable")  # world by world, as they are in memory
    item, item_copy = item[order], item_copy[order]
    root = np.full(int(counts.sum()), -1, np.int32)
    roots, root_copy = _copies(np.flatnonzero(parent < 0), counts[group[parent < 0]])
    root[first[group[roots]] + root_copy] = number(roots, root_copy)
    device = top.parent.device
    return bvh.TopLevelBvh(
        nodes=bvh.empty_nodes(len(node), device),
        children=wp.array(spread_children, dtype=bvh.vec8i, device=device),
        root=root,
        level_start=[0, *np.cumsum(sizes.sum(axis=1)).tolist()],
        parent=wp.array(spread_parent, dtype=wp.int32, device=device),
        item_row=wp.array(rows.copy(item_row[item], item_group[item], item_copy).astype(np.int32), dtype=wp.int32, device=device),
        item_parent=wp.array(8 * number(item_parent[item] // 8, item_copy) + item_parent[item] % 8, dtype=wp.int32, device=device),
        group_lower=wp.zeros(len(root), dtype=wp.vec3f, device=device),
        group_upper=wp.zeros(len(root), dtype=wp.vec3f, device=device),
    )


def _copies(items: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every item ``counts`` times, and which time it is."""
    ends = np.cumsum(counts)
    return np.repeat(items, counts), np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
