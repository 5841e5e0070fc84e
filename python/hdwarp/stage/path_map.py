"""stage.path_map: a dictionary by prim path that can also be asked for everything at and below a path."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Generic, TypeVar

Value = TypeVar("Value")
_FEW = 64  # so many new keys are put in one by one; more are sorted in together


class PathMap(dict[str, Value], Generic[Value]):
    """Write with ``[path] = value`` and remove with `pop` or `take`. The order is made when a subtree is first asked for: who never asks
    never pays. Names sort after "/", so a path and all below it are neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self._order: list[str] | None = None
        self._new: list[str] = []  # keys not in the order yet

    def __setitem__(self, path: str, value: Value) -> None:
        if self._order is not None and path not in self:
            self._new.append(path)
        super().__setitem__(path, value)

    def subtree(self, path: str) -> list[str]:
        """Keys at and below ``path``, sorted; "/" is all."""
        order = self._sorted()
        if path == "/":
            return list(order)
        found = [path] if path in self else []
        return found + order[bisect_left(order, path + "/") : bisect_left(order, path + "0")]  # "0" follows "/"

    def take(self, path: str) -> list[tuple[str, Value]]:
        """Remove what is at and below ``path``; (key, value) of it, sorted."""
        order = self._sorted()
        if path == "/":
            taken = [(key, self[key]) for key in order]
            self.clear()
            return taken
        taken = []
        if path in self:
            taken.append((path, super().pop(path)))
            del order[bisect_left(order, path)]
        first, last = bisect_left(order, path + "/"), bisect_left(order, path + "0")
        taken += [(key, super(PathMap, self).pop(key)) for key in order[first:last]]
        del order[first:last]
        return taken

    def pop(self, path: str, *default: Value) -> Value:
        if path in self and self._order is not None:
            order = self._sorted()
            del order[bisect_left(order, path)]
        return super().pop(path, *default)

    def clear(self) -> None:
        super().clear()
        self._order, self._new = None, []

    def _sorted(self) -> list[str]:
        if self._order is None:
            self._order = sorted(self)
        elif len(self._new) <= _FEW:
            for path in self._new:
                insort(self._order, path)
        else:
            self._order += self._new
            self._order.sort()
        self._new = []
        return self._order
