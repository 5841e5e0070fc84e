"""stage.changes: what Usd says has changed on a stage, collected on any thread until somebody takes it. Paths and names, no values."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field

from pxr import Sdf, Tf, Usd

# Metadata of prims and of the stage that says nothing about a picture.
_HARMLESS = frozenset(
    (
        "comment",
        "documentation",
        "customData",
        "customLayerData",
        "assetInfo",
        "displayName",
        "displayGroup",
        "hidden",
        "colorConfiguration",
    )
    + ("colorManagementSystem", "defaultPrim", "endTimeCode", "framesPerSecond", "framePrecision", "owner", "sessionOwner", "startFrame")
    + ("endFrame", "relocates", "propertyOrder", "permission", "symmetryFunction", "symmetryArguments", "prefix", "suffix", "kind")
)  # relocates, and kinds that make or unmake models, also resync what they move
_OF_LAYERS = frozenset(
    ("metersPerUnit", "upAxis", "kilogramsPerUnit", "startTimeCode", "timeCodesPerSecond")
)  # said of prims for their layer
_COMPOSING = frozenset(("subLayers", "subLayerOffsets"))
METADATA = "#"  # before the name of a prim's own metadata field, which shares a set with property names


@dataclass(slots=True)
class StageEdits:
    """What to look at again. Prims in native prototypes are named by the prototype's path."""

    resynced: set[str] = field(default_factory=set)  # prims that came, went, or are composed anew, with all below them
    changed: dict[str, set[str]] = field(default_factory=dict)  # prim path -> its properties that may have another value

    def __bool__(self) -> bool:
        return bool(self.resynced or self.changed)


class ChangeListener:
    """Listens to one stage until it is told to stop, or nobody holds it any more."""

    def __init__(self, stage: Usd.Stage) -> None:
        self._lock = threading.Lock()
        self._edits = StageEdits()
        this = weakref.ref(self)

        def told(notice: Usd.Notice.ObjectsChanged, _sender: object) -> None:
            listener = this()
            if listener is not None:
                listener._collect(notice)

        self._told = told  # Tf holds it weakly
        self._key = Tf.Notice.Register(Usd.Notice.ObjectsChanged, told, stage)
        self._finalizer = weakref.finalize(self, self._key.Revoke)

    def stop(self) -> None:
        self._finalizer()

    def take(self) -> StageEdits:
        """What has changed since the last time."""
        with self._lock:
            edits, self._edits = self._edits, StageEdits()
        return edits

    def give_back(self, edits: StageEdits) -> None:
        """Put ``edits`` back that could not be used: the next to take them gets them again."""
        with self._lock:
            self._edits.resynced |= edits.resynced
            for path, names in edits.changed.items():
                self._edits.changed.setdefault(path, set()).update(names)

    def _collect(self, notice: Usd.Notice.ObjectsChanged) -> None:
        resynced, changed = set(), {}
        for path in notice.GetResyncedPaths():
            _note(path, resynced, changed)
        for path in notice.GetResolvedAssetPathsResyncedPaths():
            _note(path, resynced, changed)
        for path in notice.GetChangedInfoOnlyPaths():
            if path.IsPropertyPath():
                _note(path, resynced, changed)
                continue
            fields = [name for name in notice.GetChangedFields(path) if name not in _HARMLESS]
            if path != Sdf.Path.absoluteRootPath:
                fields = [name for name in fields if name not in _OF_LAYERS]
            if not _COMPOSING.isdisjoint(fields):
                resynced.add(str(path))
            elif fields:
                changed.setdefault(str(path), set()).update(METADATA + name for name in fields)
        self.give_back(StageEdits(resynced, changed))


def _note(path: Sdf.Path, resynced: set[str], changed: dict[str, set[str]]) -> None:
    if path.IsTargetPath():
        path = path.GetParentPath()
    if path.IsPropertyPath():
        changed.setdefault(str(path.GetPrimPath()), set()).add(path.name)
    else:
        resynced.add(str(path.GetPrimPath()) if path != Sdf.Path.absoluteRootPath else "/")
