"""A scene without a stage, as a Hydra unit test has it: columns by hand into a render index, a delegate that draws it."""

from __future__ import annotations

import numpy as np
import pytest

from hdwarp.delegate.render_delegate import RenderDelegate
from hdwarp.stage.columns import Body, Camera, GeometryKind, Gprim, StageColumns
from hdwarp.stage.looks import Material


def at(*place: float) -> np.ndarray:
    """(4, 4) float64: a translation."""
    pose = np.eye(4)
    pose[:3, 3] = place
    return pose


def camera(path: str = "/camera", place=(0.0, 0.0, 0.0), **extra) -> Camera:
    """90 degrees wide at 4:3: at distance d the picture is 2 d wide."""
    values = {"focal_length": 0.05, "aperture": (0.1, 0.075), "clipping_range": (0.01, 100.0)} | extra
    return Camera(path, at(*place), np.eye(3), **values)


def columns(*, ball=(0.0, 0.0, -3.0), cameras=None, colour=(0.8, 0.4, 0.2)) -> StageColumns:
    """A red ball on a body, and a cube beside it that no body carries; nothing behind them."""
    return StageColumns(
        1.0,
        "Y",
        None,
        24.0,
        gprims=[
            Gprim("/ball", GeometryKind.SPHERE, None, at(*ball)[None], material="/red", body="/ball"),
            Gprim("/cube", GeometryKind.CUBE, None, at(3.0, 0.0, -6.0)[None], double_sided=True),
        ],
        materials=[Material("/red", diffuse_color=colour)],
        bodies=[Body("/ball", at(*ball))],
        cameras=[camera()] if cameras is None else cameras,
    )


class World:
    """``delegate`` and its ``index``, holding `columns`."""

    def __init__(self, device: str, **changes) -> None:
        self.delegate = RenderDelegate(device)
        self.index = self.delegate.create_render_index()
        self.device = self.delegate.device
        self.commit(**changes)

    def commit(self, **changes) -> None:
        self.index.sync(columns(**changes))
        self.delegate.commit_resources(self.index)

    def buffers(self, *aovs: str, size=(40, 30), view_count: int = 1) -> dict:
        return {aov: self.delegate.create_render_buffer(aov, *size, view_count=view_count) for aov in aovs}

    def render(self, *aovs: str, size=(40, 30), samples: int = 1, **how) -> dict[str, np.ndarray]:
        """Planes of the first camera, made from nothing."""
        buffers = self.buffers(*aovs, size=size)
        self.delegate.create_render_pass(samples=samples).execute(self.delegate.create_views(0, size), buffers, **how)
        return {aov: buffer.array.numpy()[0].copy() for aov, buffer in buffers.items()}


@pytest.fixture
def world(device) -> World:
    return World(device)


@pytest.fixture(name="camera")
def _camera():
    """Makes camera records: path, place, lens values."""
    return camera
