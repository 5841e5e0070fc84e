"""delegate.render_param: Hydra's render param: what a delegate shares with its passes: tables, settings, and counters of their changes."""

from __future__ import annotations

from typing import NamedTuple

import warp as wp

from hdwarp.delegate.render_settings import RenderSettings
from hdwarp.tables.scene_tables import SceneTables


class Versions(NamedTuple):
    """Counters that only grow: who keeps what was made from scene, settings or cameras compares, and makes it anew."""

    scene: int  # what is drawn, or how it is placed, as `commit_resources` found it
    settings: int
    cameras: int  # which cameras there are; their poses and lenses are device data, and count as scene


class RenderParam:
    """Shared by one `RenderDelegate` and all its passes."""

    def __init__(self, tables: SceneTables, settings: RenderSettings | None = None) -> None:
        self.tables = tables
        self.settings = settings if settings is not None else RenderSettings()
        self.settings_version = 0
        self.restart_count = 0  # progressive pictures begun under another count begin anew
        self.is_paused = self.is_stopped = False  # progressive passes add no samples meanwhile
        self.completed_samples = self.sample_count = 0  # of the last picture, for `RenderDelegate.render_stats`

    @property
    def device(self) -> wp.Device:
        return self.tables.device

    @property
    def scene_version(self) -> int:
        """Counts commits that changed anything."""
        return self.tables.version

    @property
    def layout_version(self) -> int:
        """Counts commits after which plans that hold structs of the tables' arrays have to be made anew."""
        return self.tables.layout_version

    @property
    def cameras_version(self) -> int:
        return self.tables.cameras.version

    @property
    def versions(self) -> Versions:
        return Versions(self.scene_version, self.settings_version, self.cameras_version)

    def set_settings(self, settings: RenderSettings) -> bool:
        """Whether they differ from those before; the version counts only then, else renderers would start over for nothing."""
        if settings == self.settings:
            return False
        self.settings = settings
        self.settings_version += 1
        return True
