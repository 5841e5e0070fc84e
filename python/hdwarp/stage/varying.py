"""stage.varying: which attributes of a stage may have another value at another time. Looked up when time first moves, then kept."""

from __future__ import annotations

from pxr import Usd, UsdGeom

from hdwarp.stage.changes import StageEdits
from hdwarp.stage.path_map import PathMap

_RATES = ("velocities", "accelerations", "angularVelocities")


class VaryingAttributes:
    """Names by prim path; prims in native prototypes are named by the prototype's path."""

    def __init__(self, stage: Usd.Stage) -> None:
        self._stage = stage
        self._names: PathMap[set[str]] | None = None  # None: nobody has asked yet
        self._prototypes: set[str] = set()

    def forget(self) -> None:
        """Look everywhere again when time next moves."""
        self._names = None

    def update(self, edits: StageEdits) -> None:
        """Look again where the stage was edited."""
        if self._names is None:
            return
        if "/" in edits.resynced:
            self.forget()
            return
        for path in edits.resynced:
            self._names.take(path)
            self._scan(path)
        for path in edits.changed:
            self._names.pop(path, None)
            if prim := self._stage.GetPrimAtPath(path):
                self._look_at(prim)
        if edits.resynced:
            self._scan_prototypes()

    def added_to(self, edits: StageEdits) -> StageEdits:
        """``edits``, and everything that may differ at another time."""
        if self._names is None:
            self._names, self._prototypes = PathMap(), set()
            self._scan("/")
            self._scan_prototypes()
        changed = {path: set(names) for path, names in self._names.items()}
        for path, names in edits.changed.items():
            changed.setdefault(path, set()).update(names)
        return StageEdits(set(edits.resynced), changed)

    def _scan(self, path: str) -> None:
        prim = self._stage.GetPrimAtPath(path)
        for below in Usd.PrimRange(prim, Usd.PrimAllPrimsPredicate) if prim else ():
            self._look_at(below)

    def _scan_prototypes(self) -> None:
        there = {str(prototype.GetPath()) for prototype in self._stage.GetPrototypes()}
        for path in self._prototypes - there:
            self._names.take(path)
        for path in there - self._prototypes:
            self._scan(path)
        self._prototypes = there

    def _look_at(self, prim: Usd.Prim) -> None:
        names = {attribute.GetName() for attribute in prim.GetAuthoredAttributes() if attribute.ValueMightBeTimeVarying()}
        if prim.IsA(UsdGeom.PointInstancer) and any(prim.GetAttribute(name).HasAuthoredValue() for name in _RATES):
            names.add("positions")  # they go on from their last sample
        if names:
            self._names[str(prim.GetPath())] = names
