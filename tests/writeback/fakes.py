"""A frame that no renderer made: a few pixels whose every value one can read in the test."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from hdwarp.frame import Frame
from hdwarp.stage.spec import REC709


class FakeFrame(SimpleNamespace):
    missed = Frame.missed

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.arrays:
            return self.arrays[name]
        for var, aov, _ in self.vars:
            if var == name:
                return self.arrays[aov]
        raise KeyError(name)

    @property
    def width(self) -> int:
        return self.data_window[2]

    @property
    def height(self) -> int:
        return self.data_window[3]


def planes(height: int = 3, width: int = 5) -> dict[str, np.ndarray]:
    """Deterministic planes; the top row saw nothing."""
    rng = np.random.default_rng(7)
    color = rng.random((height, width, 4), np.float32)
    color[..., :3] *= color[..., 3:]
    distance = (1.0 + 4.0 * rng.random((height, width))).astype(np.float32)
    normal = rng.normal(size=(height, width, 3)).astype(np.float32)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    ids = rng.integers(0, 3, (height, width)).astype(np.int32)
    position = rng.normal(size=(height, width, 3)).astype(np.float32)
    barycentric = (rng.random((height, width, 2)) / 2).astype(np.float32)
    color[0] = normal[0] = barycentric[0] = 0.0
    distance[0], position[0], ids[0] = math.inf, math.inf, -1
    return {
        "color": color,
        "distance_to_image_plane": distance,
        "normal": normal,
        "primId": ids,
        "position": position,
        "barycentric": barycentric,
    }


def make_frame(arrays: dict[str, np.ndarray] | None = None, **changes: object) -> FakeFrame:
    arrays = planes() if arrays is None else arrays
    height, width = next(iter(arrays.values())).shape[:2]
    pose = np.eye(4)
    pose[:3, :3] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # camera +X is world +Y, its +Y is world +Z, its +Z (behind it) world +X
    pose[:3, 3] = 10.0, 20.0, 30.0
    frame = FakeFrame(
        conversions={},
        color_space=REC709,
        arrays=arrays,
        vars=[(name, name, "") for name in arrays],
        camera="/World/cam",
        product="/Render/beauty",
        stage="shot.usda",
        time=101.0,
        clipping_range=(0.1, 100.0),
        K=np.array([[50.0, 0.0, width / 2], [0.0, 40.0, height / 2], [0.0, 0.0, 1.0]]),
        lens="pinhole",
        distortion=None,
        origin=np.array([1.0, 2.0, 3.0]),
        axes=np.eye(3),
        ray_coefficients=np.arange(18.0).reshape(6, 3),
        world_from_camera=pose,
        prim_paths=["/World/a", "/World/b", "/World/ä"],
        material_paths=["/World/Looks/red"],
        body_paths=[],
        data_window=(0, 0, width, height),
        image_size=(width, height),
        pixel_aspect_ratio=1.0,
        metres_per_unit=0.01,
        clear={"distance_to_image_plane": math.inf, "position": math.inf, "primId": -1},
    )
    for name, value in changes.items():
        setattr(frame, name, value)
    return frame
