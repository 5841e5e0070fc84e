"""frame: one finished image: its AOVs as NumPy arrays with everything needed to interpret them. Host only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hdwarp.errors import ArgumentError, Diagnostic
from hdwarp.stage.spec import REC709, LinearSpace

if TYPE_CHECKING:
    from hdwarp.aovs.registry import Conversion
    from hdwarp.writeback.display import Display


_TELLING = ("primId", "distance_to_image_plane", "distance_to_camera", "cameraDepth")  # planes whose clear value no hit has


IN_COLOR_SPACE = ("color", "albedo", "direct", "emission")
"""Planes that are in the frame's colour space; others with colours are in linear Rec.709, `rgba8` in sRGB."""


@dataclass(eq=False, repr=False)
class Frame:
    """The planes of one image of one camera, all from the same trace. Row 0 is the top row; lengths in metres."""

    arrays: dict[str, np.ndarray]  # AOV name -> (H, W) or (H, W, C)
    vars: list[tuple[str, str, str]]  # (output name, AOV name, USD dataType or ""), in output order
    camera: str  # prim path; "" for the framed default view
    product: str  # prim path of the RenderProduct, "" if none
    stage: str  # identifier of the stage's root layer
    time: float | None  # time code; None is the default time, or the earliest where the stage authors no start
    clipping_range: tuple[float, float]
    K: np.ndarray | None  # (3, 3) float64, pixels of the arrays; None for orthographic cameras
    lens: str
    distortion: tuple[str, tuple[float, ...]] | None
    world_from_camera: np.ndarray  # (4, 4) float64, rigid, USD camera axes
    origin: np.ndarray  # (3,) float64: what `position` is relative to
    axes: np.ndarray  # (3, 3) float64: identity but for scaled or mirrored cameras
    # (6, 3) float64 [m]: origin, origin_dx, origin_dy, direction, direction_dx, direction_dy. The ray of pixel (column x, row y) of the
    # arrays starts at origin + x origin_dx + y origin_dy; t along direction + x direction_dx + y direction_dy is distance_to_image_plane.
    ray_coefficients: np.ndarray
    data_window: tuple[int, int, int, int]  # x0, y0, width, height in pixels of the full image
    image_size: tuple[int, int]  # full image: width, height
    pixel_aspect_ratio: float
    metres_per_unit: float
    clear: dict[str, object]
    prim_paths: list[str]
    material_paths: list[str]
    body_paths: list[str]
    diagnostics: Sequence[Diagnostic] = ()
    conversions: Mapping[str, Conversion] = field(default_factory=dict)  # var name -> channels that differ from the AOV's
    decode_instance: Callable[[int, int], tuple[int, ...]] | None = field(default=None, repr=False)
    color_space: LinearSpace = REC709  # of IN_COLOR_SPACE: what the settings' renderingColorSpace asks for

    def __repr__(self) -> str:
        return f"<Frame {self.width}x{self.height} of {self.camera or 'the framed default view'}: {', '.join(self.arrays)}>"

    @property
    def aovs(self) -> Mapping[str, np.ndarray]:
        """AOV name -> array."""
        return dict(self.arrays)

    @property
    def width(self) -> int:
        return self.data_window[2]

    @property
    def height(self) -> int:
        return self.data_window[3]

    def __getitem__(self, name: str) -> np.ndarray:
        """A plane by AOV name, or by the prim name of the product's var. Raises KeyError naming what there is."""
        if name in self.arrays:
            return self.arrays[name]
        for output, aov, _ in self.vars:
            if output == name:
                conversion = self.conversions.get(name)
                return self.arrays[aov] if conversion is None else conversion.apply(self.arrays[aov])
        raise KeyError(f"{name!r} was not rendered; this frame has {', '.join(self.arrays)}")

    def __contains__(self, name: str) -> bool:
        return name in self.arrays or any(output == name for output, _, _ in self.vars)

    @property
    def objects(self) -> tuple:
        self._no_truth("objects")

    @property
    def labels(self) -> tuple:
        self._no_truth("labels")

    @staticmethod
    def _no_truth(name: str) -> None:
        from hdwarp.errors import NotSupported

        raise NotSupported(f"frame.{name}: ground-truth objects and labels (truth=True) are not supported yet")

    def _pixel(self, name: str, row: int, column: int) -> int:
        if not (-self.height <= row < self.height and -self.width <= column < self.width):
            raise ArgumentError(f"pixel (row {row}, column {column}) is outside the {self.width}x{self.height} image")
        if name not in self.arrays:
            raise ArgumentError(f"the frame has no {name!r} plane; render with aovs=[..., {name!r}]")
        return int(self.arrays[name][row, column])

    def prim_path(self, row: int, column: int) -> str | None:
        """Path of the prim seen at a pixel, None on a miss. Needs the primId plane."""
        prim_id = self._pixel("primId", row, column)
        return None if prim_id == self.clear.get("primId", -1) or prim_id < 0 else self.prim_paths[prim_id]

    def instance_ids(self, row: int, column: int) -> tuple[int, ...]:
        """Authored ids of the instance seen at a pixel, outermost instancer first; () where no point instancer draws.

        Needs the primId and instanceId planes.
        """
        prim_id = self._pixel("primId", row, column)
        if prim_id == self.clear.get("primId", -1) or prim_id < 0 or self.decode_instance is None:
            return ()
        return self.decode_instance(prim_id, self._pixel("instanceId", row, column))

    def missed(self, name: str) -> np.ndarray:
        """(H, W) bool: pixels that see nothing, told from a plane: its clear value (of one that tells best, where it was rendered)."""
        name = next((best for best in _TELLING if best in self.arrays), name)
        missed = self.arrays[name] == np.asarray(self.clear.get(name, 0))
        return missed if missed.ndim == 2 else missed.all(axis=-1)

    def points(self) -> np.ndarray:
        """(H, W, 3) float64 world positions of the hits [m], +inf where nothing was hit.

        From a depth plane and the camera in float64 where one was rendered, else from `position`.
        """
        for name in ("distance_to_image_plane", "distance_to_camera"):
            if name in self.arrays:
                return self._back_project(name)
        if "position" in self.arrays:
            points = self.arrays["position"].astype(np.float64) + self.origin
            points[self.missed("position")] = np.inf
            return points
        raise ArgumentError("points() needs one of the planes distance_to_image_plane, distance_to_camera, position")

    def _back_project(self, name: str) -> np.ndarray:
        y, x = (axis[..., None] for axis in np.mgrid[0 : self.height, 0 : self.width])
        origin, origin_dx, origin_dy, direction, direction_dx, direction_dy = self.ray_coefficients
        start = origin + x * origin_dx + y * origin_dy
        along = direction + x * direction_dx + y * direction_dy
        depth = self.arrays[name].astype(np.float64)
        if name == "distance_to_camera":
            depth = depth / np.linalg.norm(along, axis=-1)
        hit = ~self.missed(name) & np.isfinite(depth)
        points = np.full((self.height, self.width, 3), np.inf)
        points[hit] = start[hit] + depth[hit][:, None] * along[hit]
        return points

    def turn_to(self, space: LinearSpace) -> None:
        """Have the planes of IN_COLOR_SPACE, which are in linear Rec.709, and their clear values, in another linear space."""
        for name in IN_COLOR_SPACE:
            if name in self.arrays:
                self.arrays[name] = turned(self.arrays[name], space.from_rec709)
                clear = np.broadcast_to(np.asarray(self.clear[name], np.float32), self.arrays[name].shape[-1:])
                self.clear[name] = tuple(float(value) for value in turned(clear, space.from_rec709))
        self.color_space = space

    def to_layer(self, path: str | Path) -> Path:
        """Write a small USD layer with the product, K, pose and id tables, to open over the stage. Returns its path."""
        from hdwarp.writeback.layer import frame_to_layer

        return frame_to_layer(self, path)

    def save(self, path: str | Path, *, overwrite: bool = True, display: Display | str | None = None) -> list[Path]:
        """Write the frame; the suffix chooses the format (.exr, .png, .jpg, .npz). Returns the files written.

        PNG and JPEG hold one plane: several need {aov} in the path. ``display``: how their colour is encoded: "sRGB" (also None),
        "disabled" (linear values), "openColorIO" (the default view of $OCIO), or `hdwarp.Display`.
        Raises ArgumentError for another suffix or several planes into one picture, OutputError where a file cannot be written.
        """
        from hdwarp.writeback import write

        return write(self, path, overwrite=overwrite, display=display)


def turned(colours: np.ndarray, matrix: Sequence[Sequence[float]]) -> np.ndarray:
    """(..., 3 or 4) float32 with the first three components multiplied by a (3, 3) matrix; equal pixels stay equal."""
    result = np.array(colours, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for k, row in enumerate(np.asarray(matrix, np.float32)):
            result[..., k] = row[0] * colours[..., 0] + row[1] * colours[..., 1] + row[2] * colours[..., 2]
    return result
