"""scene: an open stage with its render index and device tables; what sensors and renders stand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from hdwarp.delegate.render_index import RenderIndex
from hdwarp.errors import ArgumentError, Diagnostics, Error, NotSupported
from hdwarp.stage.columns import Camera, StageColumns
from hdwarp.stage.open import open_stage, resolve_time
from hdwarp.stage.spec import PURPOSES
from hdwarp.stage.traverse import read_stage
from hdwarp.state import State
from hdwarp.tables.scene_tables import SceneTables

if TYPE_CHECKING:
    from pxr import Usd

DEFAULT_CAMERA = "<default camera>"  # label of the framed view of a stage without cameras: no prim path looks like it
DEFAULT_PURPOSES = ("default", "render")


@dataclass(frozen=True, slots=True)
class SyncCounts:
    """What a `Scene.sync` did, in rows and trees."""

    prims_read: int = 0
    meshes_inserted: int = 0
    meshes_removed: int = 0
    instances_inserted: int = 0
    instances_removed: int = 0
    instances_changed: int = 0
    materials_changed: int = 0
    bodies_changed: int = 0
    cameras_changed: int = 0
    rows_uploaded: int = 0
    blas_built: int = 0
    tlas_built: int = 0


@dataclass(frozen=True, slots=True)
class Pending:
    """A stage as `Scene.read` found it, for `Scene.apply`."""

    columns: StageColumns
    time_code: Usd.TimeCode


class PathTable:
    """Prims known by path only: ``label``."""

    def __init__(self, label: Sequence[str]) -> None:
        self.label = list(label)

    def __len__(self) -> int:
        return len(self.label)


class SiteTable(PathTable):
    """Named frames: ``label``, ``body`` (row, -1 none), ``world_from_site`` (n, 4, 4) float64 [m]."""

    def __init__(self, columns: StageColumns) -> None:
        super().__init__([site.path for site in columns.sites])
        self.body = np.array([site.body for site in columns.sites], np.int32)
        self.world_from_site = np.stack([site.world_from_site for site in columns.sites]) if columns.sites else np.zeros((0, 4, 4))


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
        self.identifier: str = self.stage.GetRootLayer().identifier
        self.complexity, self.strict = complexity, strict
        self._mask, self._material_purposes = mask, tuple(material_purposes)
        self.purposes = check_purposes(purposes)
        self.index = RenderIndex()
        self.tables = SceneTables(self.device)
        self.columns: StageColumns | None = None
        self._default_camera: Camera | None = None
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
        return PathTable(self._columns.light_paths)

    @property
    def sites(self) -> SiteTable:
        return SiteTable(self._columns)

    @property
    def _columns(self) -> StageColumns:
        if self.columns is None:
            raise Error("the scene is closed; open a new Scene")
        return self.columns

    @property
    def metres_per_unit(self) -> float:
        """metersPerUnit of the stage."""
        return self._columns.metres_per_unit

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
        """Apply the stage as it is now, at ``time`` (None: the time it is at). Returns what was done."""
        return self.apply(self.read(time))

    def read(self, time: float | Usd.TimeCode | None = None) -> Pending:
        """The half of `sync` that reads the stage. Changes nothing here and touches no device table, so it may run on another thread
        while this scene is rendered, as long as nothing else reads or edits the stage."""
        if self.stage is None or not self.stage.GetPseudoRoot().IsValid():
            raise Error("the scene is closed, or its stage has expired; open a new Scene")
        code = self.time_code if time is None and self.time_code is not None else resolve_time(self.stage, time)
        columns = read_stage(
            self.stage,
            code,
            purposes=self.purposes,
            complexity=self.complexity,
            material_purposes=self._material_purposes,
            mask=self._mask,
        )
        return Pending(columns, code)

    def apply(self, pending: Pending) -> SyncCounts:
        """The half of `sync` that brings what was read into the tables. Reads no stage; not while the scene is rendered."""
        columns = pending.columns
        if self.strict:
            self._opening.raise_errors()
            columns.diagnostics.raise_errors()
        self.columns, self.time, self.time_code = columns, columns.time, pending.time_code
        self.diagnostics.clear()
        self.diagnostics.extend(self._opening)
        self.diagnostics.extend(columns.diagnostics)
        return self._apply(prims_read=sum(columns.prim_counts.values()))

    def _apply(self, prims_read: int = 0) -> SyncCounts:
        columns = self._columns
        if self._default_camera is not None:
            columns = replace(columns, cameras=[*columns.cameras, self._default_camera])
        found = self.index.sync(columns)
        done = self.tables.sync(self.index)
        return SyncCounts(prims_read=prims_read, **asdict(found), **asdict(done))

    def frame_default_camera(self, image_aspect: float) -> str:
        """Add (or reframe) a camera that sees everything drawn, for an image of ``image_aspect``; its label."""
        from hdwarp.stage.framing import default_camera

        self._default_camera = replace(default_camera(self._columns, image_aspect), path=DEFAULT_CAMERA)
        self._apply()
        return DEFAULT_CAMERA

    def state(self) -> State:
        """The bodies at the stage's pose. Arrays of its own: write them, and hand the state to a sensor's ``update``."""
        pose = self.tables.bodies.pose
        body_q = wp.array(pose, dtype=wp.transformf, device=self.device) if len(pose) else wp.zeros(0, wp.transformf, device=self.device)
        return State(body_q, wp.zeros(len(pose), dtype=wp.spatial_vectorf, device=self.device), self._seconds())

    def _seconds(self) -> float:
        rate = self._columns.time_codes_per_second
        return 0.0 if self.time is None or not rate else self.time / rate

    def set_points(self, path: str, array: object) -> None:
        raise NotSupported("scene.set_points is not supported yet; author the points on the stage and call sync()")

    def set_primvar(self, path: str, name: str, array: object) -> None:
        raise NotSupported("scene.set_primvar is not supported yet; author the primvar on the stage and call sync()")

    def close(self) -> None:
        """Let go of the stage and all device memory. Closing twice is harmless."""
        self.stage = self.columns = None
        self.index, self.tables = RenderIndex(), SceneTables(self.device)

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find_device(device: str | wp.Device | None) -> wp.Device:
    """Warp device of a name; None: the first CUDA device, else the CPU. Raises ArgumentError naming what exists."""
    if isinstance(device, wp.Device):
        return device
    wp.init()
    names = [str(item) for item in wp.get_devices()]
    if device is None:
        return wp.get_device("cuda:0" if "cuda:0" in names else "cpu")
    if device == "cuda" and "cuda:0" in names:
        device = "cuda:0"
    if device not in names:
        raise ArgumentError(f"device {device!r} does not exist here; devices: {', '.join(names)}")
    return wp.get_device(device)


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
