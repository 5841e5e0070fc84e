"""stage.prim_records: what depends on each prim and is read again with it, by path; and what all of them come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hdwarp.errors import Diagnostic
from hdwarp.stage.columns import GprimKey
from hdwarp.stage.path_map import PathMap
from hdwarp.stage.walk import Walk


@dataclass(slots=True, eq=False)
class _PrimRecord:
    """What depends on one prim and is read again with it."""

    types: str | dict[str, int] = ""
    keys: tuple[GprimKey, ...] = ()
    told: tuple[Diagnostic, ...] = ()
    contents: tuple[str, ...] = ()  # subtrees elsewhere that it draws
    sources: tuple[str, ...] = ()  # prims elsewhere that it is made from
    cages: int = 0  # meshes drawn as their control cage
    cost: int = 0  # prims that it shows by way of instances, where they are many: see `expansion`


class PrimRecords:
    """Of one stage. What prims draw or are made from elsewhere is kept the other way round too: who depends on a path."""

    def __init__(self) -> None:
        self._records: PathMap[_PrimRecord] = PathMap()
        self.told: dict[str, tuple[Diagnostic, ...]] = {}  # of the records that have something to tell
        self.contents: PathMap[set[str]] = PathMap()  # path of a subtree -> records of what it is drawn by
        self.sources: PathMap[set[str]] = PathMap()  # path of a prim -> records of what is made from its values
        self.type_counts: Counter[str] = Counter()
        self.cages = 0
        self.cost = 0

    def sizes(self) -> dict[str, int]:
        """How much is kept, by what."""
        kept = {"records": self._records, "contents": self.contents, "sources": self.sources, "types": self.type_counts}
        return {name: len(items) for name, items in kept.items()}

    def take(self, root: str) -> list[GprimKey]:
        """Remove what is at and below ``root``; the gprims that go with it."""
        keys: list[GprimKey] = []
        for path, record in self._records.take(root):
            keys += record.keys
            self._count_types(record.types, -1)
            self.cages -= record.cages
            self.cost -= record.cost
            self.told.pop(path, None)
            for links, targets in ((self.contents, record.contents), (self.sources, record.sources)):
                for target in targets:
                    links[target].discard(path)
                    if not links[target]:
                        links.pop(target)
        return keys

    def put(self, walk: Walk, gprims: Mapping[str, Iterable[GprimKey]]) -> None:
        """Add what ``walk`` found; ``gprims``: by owner."""
        contents, sources = _link(self.contents, walk.contents), _link(self.sources, walk.sources)
        cages: dict[str, int] = {}
        for item in walk.drawn:
            if item.visual and item.mesh is not None and item.mesh.scheme != "none" and item.mesh.built is not None:
                cages[item.owner] = cages.get(item.owner, 0) + 1
        told, none = walk.diagnostics.by_owner, ()
        for owner in dict.fromkeys([*walk.types, *told, *gprims, *contents, *sources, *walk.budget.costs]):
            record = self._records[owner] = _PrimRecord(
                walk.types.get(owner, ""),
                tuple(gprims.get(owner, none)),
                tuple(told.get(owner, none)),
                tuple(contents.get(owner, none)),
                tuple(sources.get(owner, none)),
                cages.get(owner, 0),
                walk.budget.costs.get(owner, 0),
            )
            self.cost += record.cost
            if record.told:
                self.told[owner] = record.told
        self.type_counts.update(types for types in walk.types.values() if isinstance(types, str))
        for types in walk.types.values():
            if isinstance(types, dict):
                self._count_types(types, 1)
        self.cages += sum(cages.values())

    def _count_types(self, types: str | dict[str, int], sign: int) -> None:
        if isinstance(types, dict):
            for name, count in types.items():
                self.type_counts[name] += sign * count
        elif types:
            self.type_counts[types] += sign


def _link(links: PathMap[set[str]], pairs: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Add (target, user) pairs to ``links``; the targets of each user."""
    targets: dict[str, set[str]] = {}
    for target, user in pairs:
        if target not in links:
            links[target] = set()
        links[target].add(user)
        targets.setdefault(user, set()).add(target)
    return targets
