"""sensors.frames: what a sensor looks from: cameras, sites, or frames that every call places."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from hdwarp.errors import ArgumentError
from hdwarp.scene import Scene
from hdwarp.stage.render_spec import find_render_prims, made_up_product, product_for_camera
from hdwarp.stage.spec import ImageSpec
from hdwarp.tables.cameras import CameraTable
from hdwarp.tables.mounts import MountTable
from hdwarp.tables.selecting import select_labels
from hdwarp.views.conform import image_spec

Selection = str | re.Pattern | int | Sequence | None


class CameraFrames:
    """Cameras of the stage: frames with lenses."""

    kind, has_lenses = "camera", True

    def __init__(self, scene: Scene, selection: Selection) -> None:
        self._scene, self._selection = scene, selection

    @property
    def table(self) -> CameraTable:
        return self._scene.cameras

    def follow(self) -> None:
        """Nothing: the scene keeps its camera table in step."""

    def select(self) -> list[int]:
        """Rows of the cameras selected. Raises ArgumentError; of a camera that cannot be rendered it says why."""
        try:
            return self.table.select(self._selection)
        except ArgumentError as error:
            given = self._selection if isinstance(self._selection, list | tuple) else [self._selection]
            names = [name for name in given if isinstance(name, str)]
            for item in self._scene.diagnostics:
                if item.severity == "error" and any(fnmatch.fnmatchcase(item.path, name) for name in names):
                    raise ArgumentError(f"{error}; <{item.path}>: {item.message}") from None
            raise

    def image(self, row: int, resolution: tuple[int, int] | None) -> ImageSpec:
        """Pixels of the images: conform policy and pixel aspect of the product that targets the camera; its size unless one is given."""
        scene, record = self._scene, self.table.record_of(row)
        camera = record.source or record.path
        product = product_for_camera(scene.stage, camera, diagnostics=scene.diagnostics, found=find_render_prims(scene.stage))
        if product is None:
            product = made_up_product(camera)
            if resolution is None:
                width, height = product.resolution
                message = f"no RenderProduct targets this camera; using {width}x{height} (resolution=)"
                scene.diagnostics.note(camera, "default-resolution", message)
        size = product.resolution if resolution is None else resolution
        return image_spec(size, product.pixel_aspect_ratio, product.aspect_ratio_conform_policy)


class SiteFrames:
    """Sites of the stage: rows as in `Scene.sites`, without lenses. `follow` keeps them where the stage has them."""

    kind, has_lenses = "site", False

    def __init__(self, scene: Scene, selection: Selection) -> None:
        self._scene, self._selection = scene, selection
        self._version = scene.tables.version
        self.table = MountTable(scene.device, scene.sites)

    def follow(self) -> None:
        if self._scene.tables.version != self._version:
            self.table.sync(self._scene.sites)
            self._version = self._scene.tables.version

    def select(self) -> list[int]:
        """Rows of the sites selected. Raises ArgumentError that names those there are."""
        return select_labels(self.table.label, self._selection, "site", "sites")


class UnboundFrames:
    """Frames that every call places, and puts into worlds."""

    kind, has_lenses = "view", False

    def __init__(self, scene: Scene) -> None:
        self.table = MountTable(scene.device)

    def follow(self) -> None:
        """Nothing."""

    def select(self) -> list[int]:
        """The one row that all views have."""
        return [0]
