"""sensors.viewing: the views of a sensor: of which cameras or sites, in which worlds, as large as what, along which rays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import warp as wp

from hdwarp.errors import ArgumentError, Error
from hdwarp.scene import Scene
from hdwarp.sensors.exclusion import Exclusion
from hdwarp.sensors.frames import CameraFrames, Selection, SiteFrames, UnboundFrames, select_labels
from hdwarp.sensors.rays import RayData, RayGroups, check_rays
from hdwarp.stage.spec import ImageSpec
from hdwarp.tables.selecting import views_of
from hdwarp.views.conform import image_spec
from hdwarp.views.given_rays import GivenRays
from hdwarp.views.rows import View, ViewTable


class SensorViews:
    """Kept in step with a scene that changes. ``table``: their rows; ``camera``, ``world``: what `SensorCamera` calls view_camera and
    view_world; ``lacking``: labels of what has neither lens nor rays."""

    def __init__(
        self,
        scene: Scene,
        frames: CameraFrames | SiteFrames | UnboundFrames,
        exclusion: Exclusion,
        *,
        worlds: Sequence[int] | None,
        resolution: tuple[int, int] | None,
        radial: bool | None,
        samples: int,
    ) -> None:
        """Arguments as of `SensorCamera`, checked. Call `rebind` before anything else."""
        self.frames = frames
        self._scene, self._exclusion, self._worlds = scene, exclusion, worlds
        self._resolution, self._radial, self._samples = resolution, radial, samples
        self._ray_groups = RayGroups(samples, scene.device)
        self.spec: ImageSpec | None = None if resolution is None else image_spec(resolution)

    def rebind(self) -> None:
        """Select anew: see `SensorCamera.rebind`."""
        scene = self._scene
        if scene.stage is None:
            raise Error("the scene is closed; open a new Scene, and a sensor on it")
        self.frames.follow()
        self._exclusion.follow(strict=True)
        self._given: tuple[Hashable, ViewTable] | None = None
        rows = self.frames.select()
        self._labels = [self.frames.table.label[row] for row in rows]
        if self.frames.has_lenses:
            self.spec = self.frames.image(rows[0], self._resolution)
        self._ray_groups.follow(self._labels)
        if self.spec is not None and self._ray_groups.rays is not None:
            height, width = self._ray_groups.rays.shape
            if (height, width) != (self.spec.height, self.spec.width):
                size = f"{self.spec.width}x{self.spec.height}"
                raise Error(f"the images are {size} now, the rays that were set {width}x{height}: make a new sensor, or give resolution=")
        self._see(rows)

    def _see(self, rows: Sequence[int]) -> None:
        table = self.frames.table
        self._rows = list(rows)
        self.pairs: list[tuple[int, int]] = []  # (row, world) of each view; of an unbound sensor when their number is known
        if not self.is_unbound:
            self.pairs = views_of(rows, table.world, self._worlds, self._scene.worlds.count)
            if not self.pairs:
                raise ArgumentError(f"none of the {self.frames.kind}s selected is in the worlds {(self._worlds or [])[:10]}")
        self._note_views()

    def _note_views(self) -> None:
        """Make what goes with the views: after these, or their rays, have become others."""
        device = self._scene.device
        self._given = None
        self.camera = wp.array([row for row, _ in self.pairs], dtype=wp.int32, device=device)
        self.world = wp.array([world for _, world in self.pairs], dtype=wp.int32, device=device)
        labels = self.frames.table.label
        bundles = self._ray_groups.bundles([labels[row] for row, _ in self.pairs])
        rays = self._ray_groups.rays if any(bundle >= 0 for bundle in bundles) else None
        self.table = self._view_table(rays, bundles if rays is not None else ())
        self.lacking: list[str] = []  # what has neither lens nor rays
        if not self.frames.has_lenses:
            own = self._ray_groups.bundles(self._labels)
            self.lacking = [label for label, bundle in zip(self._labels, own, strict=True) if bundle < 0]

    def _view_table(self, rays: GivenRays | None, bundles: Sequence[int]) -> ViewTable:
        image, labels = image_spec((1, 1)) if self.spec is None else self.spec, [self.frames.table.label[row] for row, _ in self.pairs]
        records = [self.frames.table.record_of(row) for row, _ in self.pairs] if self.frames.has_lenses else []
        sources = [record.source or record.path for record in records] or labels
        views = ViewTable(
            [View(row, world, image) for row, world in self.pairs],
            scene_unit=1.0 / self._scene.metres_per_unit,
            radial=self._radial,
            device=self._scene.device,
            cameras=self.frames.table,
            hides=self._exclusion.hides(labels, sources) if self.pairs else (),
            rays=rays,
            ray_bundles=bundles,
        )
        self._exclusion.follow()
        views.flags = self._exclusion.flags
        return views

    @property
    def is_unbound(self) -> bool:
        return isinstance(self.frames, UnboundFrames)

    def follow(self) -> None:
        """Keep up with a scene that has changed. Raises Error where it is closed, or the selected cameras are others now."""
        if self._scene.stage is None:
            raise Error("the scene is closed; open a new Scene, and a sensor on it")
        self.frames.follow()
        if not self.table.is_current:
            self._follow_rows()
        self._exclusion.follow()
        self.table.flags = self._exclusion.flags

    def _follow_rows(self) -> None:
        """Others may come and go; those selected are found in their new rows. Raises Error where these are others now."""
        label, kind = self.frames.table.label, self.frames.kind
        try:
            rows = self.frames.select()
        except ArgumentError:
            rows = []
        found = [label[row] for row in rows]
        if found != self._labels:
            gone = [path for path in self._labels if path not in found]
            come = [path for path in found if path not in self._labels]
            what = f"{', '.join(gone[:3])} went" if gone else f"{', '.join(come[:3])} came" if come else "others go by their names"
            raise Error(f"the sensor's {kind}s are others now ({what}); {kind}s were added to the scene or removed: call rebind()")
        self._see(rows)

    @property
    def count(self) -> int:
        """Raises Error where an unbound sensor's is not known yet."""
        if not self.pairs:
            raise Error("an unbound sensor has as many views as its first update() is given poses: allocate(aovs, view_count=...)")
        return len(self.pairs)

    @property
    def image(self) -> ImageSpec:
        if self.spec is None:
            raise Error("the images are as large as the rays, which are not known yet: give resolution=, or call set_camera_rays first")
        return self.spec

    def count_views(self, given: Mapping[str, object]) -> None:
        """An unbound sensor's views: as many as poses. Raises ArgumentError for what is missing, and for another number than before."""
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise ArgumentError(
                f"an unbound sensor takes {', '.join(given)} at every update; missing: {', '.join(missing)} (or bind it: cameras=, sites=)"
            )
        poses = given["camera_transforms"]
        device, is_array = self._scene.device, isinstance(poses, wp.array)
        if not is_array or poses.ndim != 1 or len(poses) == 0 or poses.dtype is not wp.transformf or poses.device != device:
            what = f"{poses.dtype.__name__} {poses.shape} on {poses.device}" if is_array else type(poses).__name__
            raise ArgumentError(f"camera_transforms: {what}; expected wp.array[transformf] of shape (n,) on {device}")
        if not self.pairs:
            self.pairs = [(0, 0)] * len(poses)
            self._note_views()
        if len(poses) != len(self.pairs):
            raise ArgumentError(f"camera_transforms has {len(poses)} poses; the first update made this a sensor of {len(self.pairs)} views")

    def with_rays(self, rays: object) -> ViewTable:
        """The views with rays of one call in place of what they have; made anew when the shape of the rays is another."""
        counts = {len(self.pairs): "views"}
        counts.setdefault(len(self._rows), f"{self.frames.kind}s")
        data = self._check_rays("camera_rays", rays, counts)
        self._take_size(data)
        key = data.shape, data.bundles
        if self._given is None or self._given[0] != key:
            row_number = {row: number for number, row in enumerate(self._rows)}
            bundles = [0] * len(self.pairs)
            if data.bundles == len(self.pairs):
                bundles = list(range(len(self.pairs)))
            elif data.bundles is not None:
                bundles = [row_number[row] for row, _ in self.pairs]
            given = GivenRays(*data.shape, self._samples, data.bundles or 1, self._scene.device)
            self._given = key, self._view_table(given, bundles)
        views = self._given[1]
        views.flags = self._exclusion.flags
        views.rays.take(data.array, 0, data.bundles or 1)
        return views

    def _check_rays(self, name: str, rays: object, counts: dict[int, str]) -> RayData:
        shape = None if self.spec is None else (self.spec.height, self.spec.width)
        return check_rays(name, rays, samples=self._samples, shape=shape, counts=counts, device=self._scene.device)

    def _take_size(self, data: RayData) -> None:
        """Where nothing said how large the images are, the first rays do."""
        if self.spec is None:
            self.spec = image_spec((data.shape[1], data.shape[0]))
            self._note_views()

    def set_rays(self, rays: object, cameras: Selection) -> None:
        """See `SensorCamera.set_camera_rays`."""
        if self.is_unbound:
            raise Error("an unbound sensor takes its rays at every update: update(camera_rays=)")
        self.follow()
        rows = select_labels(self._labels, cameras, self.frames.kind, "cameras")
        counts = {len(rows): f"{self.frames.kind}s"}
        is_all = len(rows) == len(self._labels)
        if self._resolution is None and not self.frames.has_lenses and is_all:
            self.spec = None
        data = self._check_rays("rays", rays, counts)
        labels = [self._labels[row] for row in rows]

        def match(new: Sequence[str]) -> list[str]:
            try:
                return [new[row] for row in select_labels(new, cameras, "", "cameras")]
            except ArgumentError:
                return []

        self.spec = image_spec((data.shape[1], data.shape[0])) if self.spec is None else self.spec
        if self._ray_groups.set(data, labels, match):
            self._note_views()
