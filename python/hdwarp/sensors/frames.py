"""sensors.frames: what a sensor looks from: cameras, sites, or frames that every call places."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

import numpy as np

from hdwarp.errors import ArgumentError
from hdwarp.scene import Scene
from hdwarp.stage.render_spec import find_render_prims, made_up_product, product_for_camera
from hdwarp.stage.spec import ImageSpec
from hdwarp.tables.cameras import CameraTable
from hdwarp.tables.mounts import MountTable
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
            names = [name for name in ([self._selection] if isinstance(self._selection, str) else self._selection) if isinstance(name, str)]
            for item in self._scene.diagnostics:
                if item.severity == "error" and any(fnmatch.fnmatchcase(item.path, name) for name in names):
                    raise ArgumentError(f"{error}; <{item.path}>: {item.message}") from None
            raise

    def image(self, row: int, resolution: tuple[int, int] | None) -> ImageSpec:
        """Pixels of the images: conform policy and pixel aspect of the product that targets the camera; its size unless one is given."""
        scene, camera = self._scene, self.table.record_of(row).path
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


def select_labels(labels: Sequence[str], selection: Selection, kind: str, option: str) -> list[int]:
    """Numbers of the labels that match: an fnmatch pattern over the whole label ('*' crosses '/'), a compiled expression, a number, or a
    list of these; None: all. Raises ArgumentError naming what was given and what exists when a pattern matches nothing."""
    known = ", ".join(labels[:20]) or "none"
    if selection is None:
        return list(range(len(labels)))
    if isinstance(selection, (str, re.Pattern, int, np.integer)):
        selection = [selection]
    if not isinstance(selection, Sequence) or not all(
        isinstance(item, (str, re.Pattern, int, np.integer)) and not isinstance(item, bool) for item in selection
    ):
        raise ArgumentError(f"{option}={selection!r}: expected a pattern, a compiled expression, a row number or a list of these")
    if len(selection) == 0:
        raise ArgumentError(f"{option} is empty; there are: {known}")
    rows: set[int] = set()
    for item in selection:
        if isinstance(item, str):
            found = [row for row, label in enumerate(labels) if fnmatch.fnmatchcase(label, item)]
        elif isinstance(item, re.Pattern):
            found = [row for row, label in enumerate(labels) if item.fullmatch(label)]
        else:
            found = [int(item)] if 0 <= item < len(labels) else []
        if not found:
            raise ArgumentError(f"no {kind} matches {item!r}; there are: {known}")
        rows.update(found)
    return sorted(rows)


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
