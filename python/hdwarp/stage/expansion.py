"""stage.expansion: how much a stage shows once instances stand for all they hold. Numbers of nested ones multiply: a small file can ask
for more than any machine has. What is shown by way of instances is counted, and what would be too much is named and not drawn."""

from __future__ import annotations

from dataclasses import dataclass, field

from pxr import Usd

from hdwarp.errors import Diagnostics
from hdwarp.stage.instancers import Instances

FREE_PRIMS = 10_000  # shown by one instance or instancer that is in no other: as many are always drawn
MOST_PRIMS = 4_000_000  # shown by all that show more than that
MOST_INSTANCES = 5_000_000  # of instancers in prototypes, for one point instancer that is in no other
MOST_NESTED = 32  # point instancers, one in a prototype of another
_INSTANCER = 100  # prims that are read in the time of a point instancer in a prototype

_ALL = Usd.PrimIsActive & Usd.PrimIsLoaded


@dataclass(slots=True, eq=False)
class Budget:
    """What one walk may still show by way of large instances, and what it has shown so, by the path of the record it belongs to."""

    left: int = MOST_PRIMS
    costs: dict[str, int] = field(default_factory=dict)
    is_spent: bool = False

    def take(self, owner: str, count: int) -> bool:
        """Whether ``count`` more prims may be shown."""
        if count > self.left:
            self.is_spent = True
            return False
        self.left -= count
        self.costs[owner] = self.costs.get(owner, 0) + count
        return True


@dataclass(slots=True, eq=False)
class Expansion:
    """What one point instancer that is in no other's prototype has led to so far, over all that is nested in it."""

    path: str
    owner: str
    prims: int = 0
    instances: int = 0
    is_told: bool = False

    def allows(self, budget: Budget, diagnostics: Diagnostics, count: int = 1) -> bool:
        """Whether it may lead to ``count`` more prims."""
        if not self.is_told:
            self.prims += count
            if self.prims <= FREE_PRIMS or budget.take(self.owner, count):
                return True
            self.is_told = True
            message = f"its prototypes and the instancers in them lead to more prims than the {MOST_PRIMS:,} that a stage may show so"
            diagnostics.error(self.path, "instancer-size", f"{message}; the rest is not drawn. Place what is nested in it more directly")
        return False

    def may_nest(self, outer: Instances, count: int, path: str, budget: Budget, diagnostics: Diagnostics) -> bool:
        """Whether an instancer inside another's prototype can be placed: not inside itself, and not beyond what ids and memory hold."""
        instancer, depth = outer.instancer, 0
        while instancer is not None:
            depth += 1
            if instancer.path == path:
                message = "the point instancer is part of its own prototype; the inner one is not drawn"
                diagnostics.error(path, "instancer-cycle", message)
                return False
            instancer = instancer.outer
        placed, message = len(outer.ids) * count, ""
        if depth > MOST_NESTED:
            message = f"it is nested in {depth} other point instancers, more than are drawn"
        elif self.instances + placed > MOST_INSTANCES or (int(outer.ids.max(initial=0)) + 1) * count > 2**31 - 1:
            message = (
                f"{count} instances inside {len(outer.ids)} others are more than the {MOST_INSTANCES:,} that are drawn of all nested ones"
            )
        if message:
            diagnostics.error(path, "instancer-size", f"{message}, counted from <{self.path}>; the inner instancer is not drawn")
            return False
        if not self.allows(budget, diagnostics, _INSTANCER):
            return False
        self.instances += placed
        return True


@dataclass(slots=True, eq=False)
class Sizes:
    """Numbers of prims, those of instances included, by path of their native prototype."""

    _known: dict[str, int] = field(default_factory=dict)

    def below_instance(self, prototype: Usd.Prim) -> int:
        """Prims below each instance of a native prototype, those in nested instances included."""
        todo, parts = [prototype], {}
        while todo:  # no recursion: instances may be nested deeper than Python's calls
            path = str(todo[-1].GetPath())
            if path not in self._known and path not in parts:
                count, nested = _scan(todo[-1])
                parts[path] = count - 1, [str(item.GetPath()) for item in nested]
                todo += nested
                continue
            todo.pop()
            if path not in self._known:
                count, inner = parts[path]
                self._known[path] = count + sum(self._known.get(item, 0) for item in inner)
        return self._known[str(prototype.GetPath())]

    def at_and_below(self, prim: Usd.Prim) -> int:
        """The prim and all below it, those in instances included."""
        count, nested = _scan(prim)
        return count + sum(self.below_instance(prototype) for prototype in nested)

    def can_show(self, instance: Usd.Prim, path: str, owner: str, budget: Budget, diagnostics: Diagnostics) -> bool:
        """Whether what is in a native instance may be drawn."""
        count = self.below_instance(instance.GetPrototype())
        if count <= FREE_PRIMS or budget.take(owner, count):
            return True
        said = f"{count:,}" if count < 10**12 else f"more than {10**12:,}"
        message = f"the instance shows {said} prims by way of the instances in it, and a stage may show {MOST_PRIMS:,} so"
        diagnostics.error(path, "instance-size", f"{message}; nothing in it is drawn. Use point instancers for what is there so often")
        return False


def _scan(root: Usd.Prim) -> tuple[int, list[Usd.Prim]]:
    """(prims at and below ``root``, prototypes of the instances among them)."""
    count, nested = 0, []
    for prim in Usd.PrimRange(root, _ALL):
        count += 1
        if prim.IsInstance():
            nested.append(prim.GetPrototype())
    return count, nested
