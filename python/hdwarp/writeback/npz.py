"""writeback.npz: a frame as NumPy arrays in one archive. Reads a frame, knows no USD.

Keys: every AOV by its name; `vars` (n, 2) of text, the var and AOV names in output order (an array that a var only renames is stored
once; `read_npz` gives it under both); `world_from_camera` (4, 4), `origin` (3,), `axes` (3, 3), `clipping_range` (2,) in metres,
`ray_coefficients` (6, 3) as `Frame.ray_coefficients` explains: with a depth plane they give points for any camera, one without K too;
`data_window` (4,), `image_size` (2,), `pixel_aspect_ratio`, `metres_per_unit`;
`prim_paths`, `material_paths`, `body_paths` (text, may be empty); `camera`, `product`, `stage`, `lens`, `color_space` (of `color`,
`direct`, `albedo`, `emission`), `units` (n, 2: AOV, unit), `software`
(text). Absent where there is none: `K` (3, 3), `time`, `distortion_model`
and `distortion_coefficients`. Nothing is pickled: `np.load(path)` reads all of it.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

import hdwarp
from hdwarp.writeback import meta
from hdwarp.writeback.atomic import writing

if TYPE_CHECKING:
    from hdwarp.frame import Frame

# Measured on seven AOVs at 640x480 (18.4 MB): all stored 8 ms; ids and text compressed 31 ms, 16.2 MB (the default); all compressed
# 207 ms at level 1, 7.5 MB, and 390 ms at level 6, 7.3 MB.
_LEVEL = 1


def write_npz(frame: Frame, path: str | os.PathLike[str], *, compress: bool = False, overwrite: bool = True) -> None:
    """Write all AOVs and what they mean. Integers and text are always compressed, floats with ``compress=True``."""
    entries = arrays(frame)
    with (
        writing(path, overwrite=overwrite) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive,
    ):
        for name, array in entries.items():
            archive.compression = zipfile.ZIP_DEFLATED if compress or array.dtype.kind != "f" or array.size < 64 else zipfile.ZIP_STORED
            # Opened by name, an entry carries no clock time: equal frames give equal bytes.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(array) if array.ndim else array, allow_pickle=False)


def read_npz(path: str | os.PathLike[str] | io.BufferedIOBase) -> dict[str, np.ndarray]:
    """Everything in the archive, vars under their own names too."""
    with np.load(path, allow_pickle=False) as archive:
        entries = {name: archive[name] for name in archive.files}
    for var, aov in entries.get("vars", np.empty((0, 2), str)):
        entries.setdefault(str(var), entries[str(aov)])
    return entries


def arrays(frame: Frame) -> dict[str, np.ndarray]:
    """What goes into the archive, AOVs first."""
    entries = {name: np.asarray(array) for name, array in frame.arrays.items()}
    for _, aov, _ in frame.vars:
        entries.setdefault(aov, np.asarray(frame[aov]))
    units = [(name, unit) for name in entries if (unit := meta.unit_and_meaning(name)[0])]
    entries["vars"] = _text([(var, aov) for var, aov, _ in frame.vars], columns=2)
    entries["units"] = _text(units, columns=2)
    for name in ("world_from_camera", "origin", "axes", "clipping_range", "ray_coefficients"):
        entries[name] = np.asarray(getattr(frame, name), np.float64)
    for name in ("data_window", "image_size"):
        entries[name] = np.asarray(getattr(frame, name), np.int32)
    entries["metres_per_unit"] = np.float64(frame.metres_per_unit)
    entries["pixel_aspect_ratio"] = np.float64(frame.pixel_aspect_ratio)
    for name in ("prim_paths", "material_paths", "body_paths"):
        entries[name] = _text([str(path) for path in getattr(frame, name)])
    for name in ("camera", "product", "stage", "lens", "color_space"):
        entries[name] = np.array(str(getattr(frame, name) or ""))
    entries["software"] = np.array(f"hdWarp {hdwarp.__version__}")
    if frame.K is not None:
        entries["K"] = np.asarray(frame.K, np.float64)
    if frame.time is not None:
        entries["time"] = np.float64(frame.time)
    if frame.distortion is not None:
        model, coefficients = frame.distortion
        entries["distortion_model"] = np.array(str(model))
        entries["distortion_coefficients"] = np.asarray(coefficients, np.float64)
    return {name: np.asarray(value) for name, value in entries.items()}


def _text(rows: Iterable[object], columns: int = 1) -> np.ndarray:
    rows = list(rows)
    if rows:
        return np.array(rows, dtype=np.str_)
    return np.empty((0, columns) if columns > 1 else (0,), np.dtype("<U1"))
