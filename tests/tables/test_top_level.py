"""The tree over instances under single changes: every box holds what is below it, and every row that draws is in it exactly once."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from hdwarp.tables import bvh
from hdwarp.tables.top_level import TopLevelTree, TopNodes


class Rows:
    """Bounds by row, on the host; rows that draw nothing are inverted."""

    def __init__(self, count: int, device: str, seed: int = 0) -> None:
        self.rng, self.device = np.random.default_rng(seed), wp.get_device(device)
        self.lower, self.upper = np.full((count, 3), 3e38, np.float32), np.full((count, 3), -3e38, np.float32)
        self.live = np.zeros(count, bool)
        self.nodes = TopNodes(self.device)
        self.tree = TopLevelTree(self.nodes)

    def put(self, rows) -> None:
        place = self.rng.uniform(-50, 50, (len(rows), 3))
        self.lower[rows], self.upper[rows] = place - 0.5, place + 0.5
        self.live[rows] = True

    def drop(self, rows) -> None:
        self.lower[rows], self.upper[rows], self.live[rows] = 3e38, -3e38, False

    def update(self, rows):
        bounds = (wp.array(a, dtype=wp.vec3f, device=self.device) for a in (self.lower, self.upper))
        return self.tree.update(np.unique(rows), self.live, np.arange(len(self.live), dtype=np.int32), *bounds)

    def check(self) -> None:
        """Walk the tree from its root."""
        nodes, children = (array.numpy() for array in (self.nodes.columns.nodes, self.nodes.columns.children))
        found: list[int] = []

        def visit(node: int, lower: np.ndarray, upper: np.ndarray, depth: int) -> None:
            assert depth <= bvh.MAX_DEPTH
            for child in range(8):
                low, high = nodes[6 * node : 6 * node + 3, child], nodes[6 * node + 3 : 6 * node + 6, child]
                number = int(children[node, child])
                if number == bvh.EMPTY_CHILD or (low > high).any():
                    continue
                assert (low >= lower - 1e-3).all()
                assert (high <= upper + 1e-3).all()
                if number >= 0:
                    visit(number, low, high, depth + 1)
                else:
                    row = -1 - number
                    assert (low <= self.lower[row]).all()
                    assert (high >= self.upper[row]).all()
                    found.append(row)

        if self.tree.root >= 0:
            visit(self.tree.root, np.full(3, -np.inf), np.full(3, np.inf), 1)
        assert sorted(found) == np.flatnonzero(self.live).tolist()


def test_moving_a_row_builds_nothing(device):
    rows = Rows(1000, device)
    rows.put(np.arange(1000))
    assert rows.update(np.arange(1000)).built == 1
    for row in (0, 3, 999):
        rows.put([row])
        counts = rows.update([row])
        assert (counts.built, counts.refitted) == (0, 1)
        rows.check()


def test_a_late_row_waits_in_a_young_tree_and_moves_there(device):
    rows = Rows(2000, device)
    rows.put(np.arange(1000))
    rows.update(np.arange(1000))
    for row in (1000, 1001, 1002):
        rows.put([row])
        assert rows.update([row]).built == 1
        rows.check()
    rows.put([1001])
    assert rows.update([1001]).built == 0
    rows.check()
    rows.drop([1000, 1001, 1002])
    rows.update([1000, 1001, 1002])
    rows.check()


@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_changes(seed, device):
    rows = Rows(3000, device, seed)
    for _ in range(25):
        some = rows.rng.choice(3000, int(rows.rng.choice([1, 2, 5, 40, 700])), replace=False)
        rows.put(some) if rows.rng.random() < 0.6 else rows.drop(some)
        rows.update(some)
        rows.check()


def test_the_main_tree_is_built_anew_now_and_then_only(device):
    """A thousand single changes of a thousand rows: a build or two, not a thousand."""
    rows = Rows(1000, device)
    rows.put(np.arange(1000))
    rows.update(np.arange(1000))
    built = 0
    for row in range(1000):
        rows.put([row])
        built += rows.update([row]).built
    assert built <= 2
    rows.check()


def test_posing_writes_all_boxes(device):
    rows = Rows(300, device)
    rows.put(np.arange(200))
    rows.update(np.arange(200))
    rows.put(np.arange(200, 210))
    rows.update(np.arange(200, 210))
    rows.put(np.arange(210))
    rows.tree.refit(*(wp.array(a, dtype=wp.vec3f, device=device) for a in (rows.lower, rows.upper)))
    rows.check()
