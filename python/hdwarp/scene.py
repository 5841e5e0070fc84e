"""scene: an open stage with its render index and device tables; what sensors and renders stand on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from hdwarp.delegate.render_delegate import RenderDelegate
from hdwarp.errors import ArgumentError, Diagnostics, Error, NotSupported, raise_errors
from hdwarp.garbage import no_collecting
from hdwarp.launch import find_device
from hdwarp.stage.changes import ChangeListener
from hdwarp.stage.columns import Site
from hdwarp.stage.open import open_stage, resolve_time
from hdwarp.stage.reader import StageReader
from hdwarp.stage.spec import PURPOSES
from hdwarp.state import State

if TYPE_CHECKING:
    from pxr import Usd

DEFAULT_CAMERA = "<default camera>"  # label of the framed view of a stage without cameras: no prim path looks like it
DEFAULT_PURPOSES = ("default", "render")


@dataclass(frozen=True, slots=True)
class SyncCounts:
    """What a `Scene.sync` did, in prims, rows and trees. All zero: nothing had changed."""

    prims_read: int = 0
    meshes_inserted: int = 0
    meshes_removed: int = 0
    meshes_moved: int = 0  # new points, same triangles
    instances_inserted: int = 0
    instances_removed: int = 0
    instances_changed: int = 0
    materials_changed: int = 0
    bodies_changed: int = 0
    cameras_changed: int = 0
    rows_uploaded: int = 0  # of instances, those of which nothing but ids is new included
    blas_built: int = 0
    blas_refitted: int = 0
    tlas_built: int = 0
    tlas_refitted: int = 0  # rows whose boxes were written anew, from leaf to root


class PathTable:
    """Prims known by path only: ``label``."""

    def __init__(self, label: Sequence[str]) -> None:
        self.label = list(label)

    def __len__(self) -> int:
        return len(self.label)


class SiteTable(PathTable):
    """Named frames: ``label``, ``body`` (row, -1 none), ``world_from_site`` (n, 4, 4) float64 [m]."""

    def __init__(self, sites: Sequence[Site], body_row: Callable[[str], int]) -> None:
        super().__init__([site.path for site in sites])
        self.body = np.array([body_row(site.body) for site in sites], np.int32)
        self.world_from_site = np.stack([site.world_from_site for site in sites]) if sites else np.zeros((0, 4, 4))


class Scene:
    """A stage, read and on the device. `sync` follows edits and time; `state` gives the bodies' poses to move."""

    def __init__(
        self,
        stage_or_path: Usd.Stage | str | Path,
        *,
        device: str | wp.Device | None = None,
        time: float | Usd.TimeCode | None = None,
        worlds: object = None,
        purposes: Sequence[str] | None = None,
        complexity: str = "low",
        strict: bool = False,
        mask: Sequence[str] | None = None,
        material_purposes: Sequence[str] = ("full", ""),
    ) -> None:
        """``purposes``: which purposes are drawn, default and render unless given. ``mask``: paths to restrict the stage to.
        ``material_purposes``: purposes of material bindings, in order of preference; "" is the all-purpose one.

        Raises StageError for what is no stage (and, with ``strict``, for the first error found on it), ArgumentError for bad options,
        NotSupported for ``worlds``.
        """
        if mask is not None and not isinstance(mask, (list, tuple)):
            raise ArgumentError(f"mask={mask!r}: expected a list of prim paths")
        if worlds is not None:
            raise NotSupported("Scene(worlds=): replicated and authored worlds are not supported yet; leave it out for one world")
        self.device = find_device(device)
        self.diagnostics = Diagnostics()
        self._opening = Diagnostics()
        self.stage: Usd.Stage | None = open_stage(stage_or_path, mask=mask, diagnostics=self._opening)
        self.complexity, self.strict = complexity, strict
        self.purposes = check_purposes(purposes)
        self._make_delegate()
        self._reader: StageReader | None = StageReader(
            self.stage, purposes=self.purposes, complexity=complexity, material_purposes=material_purposes, mask=mask
        )
        self._listener = ChangeListener(self.stage)
        self.time: float | None = None  # time code read at; None for the default time, or the earliest where no start is authored
        self.time_code: Usd.TimeCode | None = None  # as asked for, the earliest time included
        self.sync(time)

    # -- tables -----------------------------------------------------------------------------------------------------------

    @property
    def cameras(self):
        return self.tables.cameras

    @property
    def bodies(self):
        return self.tables.bodies

    @property
    def instances(self):
        return self.tables.instances

    @property
    def meshes(self):
        return self.tables.meshes

    @property
    def worlds(self):
        return self.tables.worlds

    @property
    def lights(self) -> PathTable:
        return PathTable(self.reader.light_paths)

    @property
    def sites(self) -> SiteTable:
        sites = self.reader.sites
        return SiteTable([sites[path] for path in sorted(sites)], self.index.body_row)

    @property
    def reader(self) -> StageReader:
        """What was read of the stage. Raises Error after `close`."""
        if self._reader is None:
            raise Error("the scene is closed; open a new Scene")
        return self._reader

    @property
    def metres_per_unit(self) -> float:
        """metersPerUnit of the stage."""
        return self.reader.metres_per_unit

    def __repr__(self) -> str:
        if self.stage is None:
            return "<Scene, closed>"
        drawn = f"{len(self.index.prim_paths)} prims, {len(self.cameras)} cameras, {len(self.bodies)} bodies"
        return f"<Scene of {self.stage.GetRootLayer().identifier}: {drawn}, on {self.device}>"

    def prim_path(self, prim_id: int, world_id: int = 0) -> str | None:
        """Path of the prim a primId names; None for -1. ``world_id``: 0, or -1 for global geometry: the scene has one world."""
        if int(world_id) not in (-1, 0):
            raise ArgumentError(f"world {world_id} does not exist: the scene has one world, number 0")
        return self.index.prim_path(int(prim_id))

    # -- following the stage ----------------------------------------------------------------------------------------------

    def sync(self, time: float | Usd.TimeCode | None = None) -> SyncCounts:
        """Apply the stage as it is now, at ``time`` (None: the time it is at). Only what edits and time have changed since the last call
        is read and uploaded; returns what was done.

        Raises Error when the scene is closed or its stage has expired, StageError with ``strict`` for an error found on the stage: the
        scene then stays as it was, and the next call reads the whole stage.
        """
        reader = self.reader
        if not self.stage or not self.stage.GetPseudoRoot():
            raise Error("the scene's Usd.Stage has expired; keep a reference to it, or open a new Scene")
        code = self.time_code if time is None and self.time_code is not None else resolve_time(self.stage, time)
        with no_collecting():
            return self._sync(reader, code)

    def _sync(self, reader: StageReader, code: Usd.TimeCode) -> SyncCounts:
        changes, visited = reader.update(self._listener.take(), code)
        if changes is None:
            self.time, self.time_code = reader.time_code, code
            return SyncCounts()
        told = [*self._opening, *reader.diagnostics()]
        if self.strict:
            try:
                raise_errors(told)
            except Error:
                reader.forget()
                raise
        self.time, self.time_code = reader.time_code, code
        self.diagnostics.clear()
        self.diagnostics.extend(told)
        if changes.complete and DEFAULT_CAMERA in self.index.camera_rows:
            changes.cameras[DEFAULT_CAMERA] = self.index.cameras[self.index.camera_rows[DEFAULT_CAMERA]]
        found = self.index.apply(changes)
        return SyncCounts(prims_read=visited, **asdict(found), **asdict(self.delegate.commit_resources(self.index)))

    def frame_default_camera(self, image_aspect: float) -> str:
        """Add (or reframe) a camera that sees everything drawn, for an image of ``image_aspect``; its label."""
        from hdwarp.stage.framing import default_camera

        camera = default_camera(self.reader.columns(), image_aspect)
        self.index.insert(replace(camera, path=DEFAULT_CAMERA))
        self.delegate.commit_resources(self.index)
        return DEFAULT_CAMERA

    def state(self) -> State:
        """The bodies at the stage's pose. Arrays of its own: write them, and hand the state to a sensor's ``update``."""
        pose = self.tables.bodies.pose
        body_q = wp.array(pose, dtype=wp.transformf, device=self.device) if len(pose) else wp.zeros(0, wp.transformf, device=self.device)
        return State(body_q, wp.zeros(len(pose), dtype=wp.spatial_vectorf, device=self.device), self._seconds())

    def _seconds(self) -> float:
        rate = self.stage.GetTimeCodesPerSecond()
        return 0.0 if self.time is None or not rate else self.time / rate

    def set_points(self, path: str, array: object) -> None:
        raise NotSupported("scene.set_points is not supported yet; author the points on the stage and call sync()")

    def set_primvar(self, path: str, name: str, array: object) -> None:
        raise NotSupported("scene.set_primvar is not supported yet; author the primvar on the stage and call sync()")

    def close(self) -> None:
        """Let go of the stage and all device memory. Closing twice is harmless."""
        self._listener.stop()
        self.stage = self._reader = None
        self._make_delegate()

    def _make_delegate(self) -> None:
        """``delegate``: all renders of the scene go through it; its ``index`` and device ``tables``, empty so far."""
        self.delegate = RenderDelegate(self.device)
        self.index, self.tables = self.delegate.create_render_index(), self.delegate.tables

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_purposes(purposes: Sequence[str] | None) -> tuple[str, ...]:
    """Purposes to draw; "default" is always among them, as in usdrecord."""
    if purposes is None:
        return DEFAULT_PURPOSES
    if isinstance(purposes, str):
        purposes = purposes.split(",")
    unknown = [purpose for purpose in purposes if purpose not in PURPOSES]
    if unknown:
        raise ArgumentError(f"unknown purpose {unknown[0]!r}; purposes: {', '.join(PURPOSES)}")
    return tuple(dict.fromkeys(("default", *purposes)))
