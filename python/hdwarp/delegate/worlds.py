"""delegate.worlds: which world a prim is in, and what its copies in other worlds are called. NumPy only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from hdwarp.stage.columns import Gprim, WorldGroup


class Worlds:
    """Groups of worlds by the prims they are made of. What is in no group is global: world -1; without groups all is in world 0.

    A prim of a group of several worlds stands for its copies: in the render index it has one row, of the group's first world.
    """

    def __init__(self, groups: Sequence[WorldGroup] = ()) -> None:
        self.groups = list(groups)
        self.count = sum(group.count for group in self.groups) or 1
        self._places = sorted(range(len(self.groups)), key=lambda i: self.groups[i].root)
        self._roots = [self.groups[i].root for i in self._places]
        self._first = np.array([group.first for group in self.groups], np.int64)
        self.poses: np.ndarray = np.tile(np.eye(4), (len(self.groups), 1, 1))
        """(groups, 4, 4) float64 rigid [m]: where the stage has the root of each."""

    def move_roots(self, poses: np.ndarray) -> None:
        """Follow the stage: ``poses`` as `poses`. Copies go with the root of their prototype as far as they were not placed."""
        self.poses = poses
        self.groups = [group.following(pose) for group, pose in zip(self.groups, poses, strict=True)]

    @property
    def of_rest(self) -> int:
        """World of what is in no group."""
        return -1 if self.groups else 0

    def group_of(self, path: str) -> int:
        """Number of the group that a prim is in, -1 none. Prim names sort behind '/', so that what is below a path follows it."""
        place = bisect_right(self._roots, path) - 1
        if place < 0:
            return -1
        root = self._roots[place]
        return self._places[place] if path == root or path.startswith(root + "/") else -1

    def world_of(self, path: str) -> int:
        """World of a prim; of what stands for copies, the first of theirs."""
        group = self.group_of(path) if self.groups else -1
        return self.of_rest if group < 0 else self.groups[group].first

    def world_of_gprim(self, gprim: Gprim) -> int:
        """World of what is drawn: what a point instancer draws is where the (outermost) instancer is."""
        path, instancer = gprim.path, gprim.instancer
        while instancer is not None:
            path, instancer = instancer.path, instancer.outer
        return self.world_of(path)

    def group_at(self, world: int) -> WorldGroup | None:
        """The group that a world belongs to, None for -1 and where there are no groups."""
        if world < 0 or not self.groups:
            return None
        return self.groups[int(np.searchsorted(self._first, world, side="right")) - 1]

    def label(self, path: str, world: int) -> str:
        """What the prim at ``path`` is called in ``world``: paths of copies start with the copy's own root."""
        group = self.group_at(world)
        return path if group is None else group.label_of(path, world)

    def labels(self, paths: Sequence[str], item: np.ndarray, world: np.ndarray) -> list[str]:
        """`label` of ``paths[item[i]]`` in ``world[i]`` for every i."""
        if not self.groups:
            return [paths[i] for i in item.tolist()]
        roots = [group.root_label(number) for group in self.groups for number in range(group.first, group.first + group.count)]
        group_of = [self.group_of(path) for path in paths]
        tails = [path if group < 0 else path[len(self.groups[group].root) :] for path, group in zip(paths, group_of, strict=True)]
        return [tails[i] if group_of[i] < 0 else roots[w] + tails[i] for i, w in zip(item.tolist(), world.tolist(), strict=True)]

    def worlds_of(self, path: str) -> range:
        """Worlds in which a prim is: one, or those of all its copies; of what is in no group `of_rest`."""
        group = self.group_of(path) if self.groups else -1
        if group < 0:
            return range(self.of_rest, self.of_rest + 1)
        return range(self.groups[group].first, self.groups[group].first + self.groups[group].count)

    def spread(self, paths: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(number of the path, world) of a row for each prim in each of its worlds: world-major, globals first, in a world in the order of
        ``paths``."""
        spans = [self.worlds_of(path) for path in paths]
        of = np.repeat(np.arange(len(paths)), [len(span) for span in spans])
        world = np.concatenate([np.arange(span.start, span.stop) for span in spans]) if spans else np.zeros(0, np.int64)
        order = np.argsort(world, kind="stable")
        return of[order], world[order]
