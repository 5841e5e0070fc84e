"""tables.top_level: the tree over the instances that are in no world of their own, kept in step with single rows: old rows are refitted,
new ones wait in a small young tree beside the main one until they are worth a new main tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from hdwarp.tables import bvh
from hdwarp.tables.storage import GrowingArray
from hdwarp.tables.structs import TopLevel, vec8f, vec8i

_FEW = 256  # so many rows are refitted one by one; beyond, all boxes are
_YOUNG = 64  # rows a young tree may always have; more only up to the root of those in the main tree, times
_YOUNG_ROOT = 4.0
_DEPTH = bvh.MAX_DEPTH - 1  # of either tree: a node above both makes one of them


@dataclass(slots=True)
class TreeCounts:
    built: int = 0  # main or young trees
    refitted: int = 0  # rows whose boxes were written anew


class TopNodes:
    """The nodes of all top-level trees: those of `WorldTrees` first, then those of `TopLevelTree`."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.boxes, self.children = GrowingArray(vec8f, device), GrowingArray(vec8i, device)

    def addresses(self) -> list[int]:
        """Where the columns lie: other addresses, other structs."""
        return [self.boxes.array.ptr, self.children.array.ptr]

    @property
    def columns(self) -> TopLevel:
        columns = TopLevel()
        columns.nodes, columns.children = self.boxes.array, self.children.array
        return columns

    def restart(self) -> None:
        """Forget all, and let go of the memory."""
        self.boxes.reset()
        self.children.reset()

    def write(self, base: int, top: bvh.TopLevelBvh) -> None:
        """Take over the nodes of ``top``, from node ``base`` on."""
        self.boxes.write(6 * base, top.nodes)
        self.children.write(base, top.children)
        top.nodes = top.children = None


class TopLevelTree:
    """Its first node is above the main tree and the young one, and the root while there is a young one."""

    def __init__(self, nodes: TopNodes) -> None:
        self.device = nodes.device
        self._nodes = nodes
        self._first = 0
        self._clear()

    def move_to(self, node: int) -> None:
        """Nodes of the tree start at ``node`` from the next `update` on, which builds it anew."""
        if node != self._first:
            self._first = node
            self._clear()

    def leave(self, rows: np.ndarray) -> None:
        """``rows`` are others' from now on: a tree that holds any is built anew at the next `update`."""
        known = rows[rows < len(self._main_item)]
        if (self._main_item[known] >= 0).any() or np.isin(rows, self._young_rows).any():
            self._clear()

    def _clear(self) -> None:
        self._main: bvh.TopLevelBvh | None = None
        self._young: bvh.TopLevelBvh | None = None
        self._main_item = np.zeros(0, np.int32)  # by row: its place in the main tree, -1 none
        self._young_rows = np.zeros(0, np.int32)
        self._dead = 0  # rows of the main tree that draw nothing any more
        self._worn = 0  # single refits since the main tree was built: its boxes have grown apart from what SAH chose

    @property
    def root(self) -> int:
        if self._main is None:
            return -1
        return self._first if self._young is not None else int(self._main.root[0])

    def device_arrays(self) -> list[wp.array]:
        """All that is held on the device but for the nodes."""
        kept = [(tree.parent, tree.item_row, tree.item_parent) for tree in (self._main, self._young) if tree is not None]
        return [array for arrays in kept for array in arrays]

    def update(self, rows: np.ndarray, live: np.ndarray, rank: np.ndarray, lower: wp.array, upper: wp.array) -> TreeCounts:
        """Follow ``rows`` (ascending), whose bounds are new: (N,) vec3f by row, inverted for rows that draw nothing. ``live`` (N,) bool:
        which of all rows draw; ``rank`` (N,) int32."""
        if len(live) > len(self._main_item):
            self._main_item = np.concatenate([self._main_item, np.full(len(live) - len(self._main_item), -1, np.int32)])
        item = self._main_item[rows]
        old = rows[item >= 0]
        arriving = np.setdiff1d(rows[(item < 0) & live[rows]], self._young_rows, assume_unique=True)
        young = np.concatenate([self._young_rows, arriving])
        young = young[live[young]]
        self._dead += int((~live[old]).sum())
        self._worn += len(old)
        held = 0 if self._main is None else len(self._main.item_row)
        if self._main is None or len(young) > max(_YOUNG, _YOUNG_ROOT * held**0.5) or max(self._worn, 2 * self._dead) > max(held, _FEW):
            return self._rebuild(live, rank, lower, upper)
        counts = TreeCounts(refitted=len(rows))
        if len(old) > _FEW:
            bvh.refit_top_level(self._main, lower, upper, nodes=self._nodes.boxes.array, children=self._nodes.children.array)
        elif len(old):
            places = wp.array(self._main_item[old], dtype=wp.int32, device=self.device)
            bvh.refit_items(self._main, lower, upper, places, nodes=self._nodes.boxes.array)
        if len(young) == 0:
            self._young, self._young_rows = None, young
        elif self._young is None or len(arriving) or len(young) != len(self._young_rows):
            self._young_rows = young
            self._build_young(rank, lower, upper)
            counts.built += 1
        elif np.isin(young, rows).any():
            bvh.refit_top_level(self._young, lower, upper, nodes=self._nodes.boxes.array, children=self._nodes.children.array)
        if self._young is not None:
            bvh.join_trees(self._first, [self._main, self._young], nodes=self._nodes.boxes.array)
        return counts

    def _rebuild(self, live: np.ndarray, rank: np.ndarray, lower: wp.array, upper: wp.array) -> TreeCounts:
        rows = np.flatnonzero(live)
        self._clear()
        self._main_item = np.full(len(live), -1, np.int32)
        if len(rows) == 0:
            return TreeCounts()
        self._main = self._build(rows[np.argsort(rank[rows])], lower, upper, self._first + 1)
        self._main_item[self._main.item_row.numpy()] = np.arange(len(rows), dtype=np.int32)
        return TreeCounts(built=1)

    def _build_young(self, rank: np.ndarray, lower: wp.array, upper: wp.array) -> None:
        rows = self._young_rows[np.argsort(rank[self._young_rows])]
        self._young = self._build(rows, lower, upper, self._first + 1 + len(self._main.parent))
        above = np.full((1, 8), bvh.EMPTY_CHILD, np.int32)
        above[0, :2] = self._main.root[0], self._young.root[0]
        self._nodes.children.write(self._first, above)

    def _build(self, rows: np.ndarray, lower: wp.array, upper: wp.array, base: int) -> bvh.TopLevelBvh:
        start = np.array([0, len(rows)], np.int32)
        top = bvh.build_top_level(lower, upper, start, rows.astype(np.int32), device=self.device, node_base=base, max_depth=_DEPTH)
        if base == self._first + 1:
            self._nodes.boxes.write(6 * self._first, bvh.empty_nodes(1, self.device))
            self._nodes.children.write(self._first, np.full((1, 8), bvh.EMPTY_CHILD, np.int32))
        self._nodes.write(base, top)
        return top

    def refit(self, lower: wp.array, upper: wp.array) -> None:
        """Write all boxes anew: device launches only, nothing allocated."""
        trees = [tree for tree in (self._main, self._young) if tree is not None]
        for tree in trees:
            bvh.refit_top_level(tree, lower, upper, nodes=self._nodes.boxes.array, children=self._nodes.children.array)
        if len(trees) == 2:
            bvh.join_trees(self._first, trees, nodes=self._nodes.boxes.array)
