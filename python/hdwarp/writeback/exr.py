"""writeback.exr: a frame as one multi-part OpenEXR file, a part for each var or AOV. Reads a frame, knows no USD.

Part names are the var names. Channels carry no layer prefix, so that Nuke, tev, OpenImageIO and Houdini name the layer after the part:

    colour (color, rgba8, albedo, color* vars)     R G B A      half, unless the var is authored as float
    three components                               X Y Z        float
    two components                                 U V          float
    depth and distances                            Z            float, +inf where nothing was hit
    other scalars                                  Y            float
    integers                                       id           UINT, two's complement: 4294967295 is -1

A var authored as half is written as half. Colour is linear with premultiplied alpha, so `rgba8` is decoded. It is in Rec.709, or for
`color`, `albedo`, `direct` and `emission` in what renderingColorSpace says, with its chromaticities in the header. That says the rest, too:
windows, camera, units, clear values, K, matrices, and id -> path tables with the parts whose numbers they explain.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import mmap
import os
import struct
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

import hdwarp
from hdwarp.errors import ArgumentError, OutputError
from hdwarp.frame import IN_COLOR_SPACE
from hdwarp.stage.spec import REC709
from hdwarp.writeback import meta
from hdwarp.writeback.atomic import writing
from hdwarp.writeback.pictures import srgb_decode

if TYPE_CHECKING:
    import OpenEXR

    from hdwarp.frame import Frame

# Measured at 640x480, CPU time and size, mean of three stages (a work cell, a bumpy mesh, instances); OpenEXR 3.5:
#                color         seven planes (color, distance, normal, position, three ids)
#   none      10 ms 2.47 MB     38 ms 14.8 MB
#   rle       14 ms 0.75 MB     52 ms  6.6 MB
#   zip       17 ms 0.20 MB     79 ms  2.9 MB
#   zips      24 ms 0.25 MB    115 ms  3.4 MB
#   piz       21 ms 0.45 MB    182 ms  3.5 MB
#   htj2k256  13 ms 0.27 MB     46 ms  2.3 MB    zstd 20 ms 0.27 MB, 82 ms 2.1 MB: smaller, but only OpenEXR 3.4 and newer read them
#   dwaa      40 ms 0.15 MB    120 ms  2.8 MB    (loss in colour; dwab 22 ms 0.13 MB; b44a 11 ms 0.69 MB; pxr24 as zip)
# ZIP is the smallest of those that every reader knows, and but for rle and none the fastest; writing overlaps tracing.
DEFAULT_COMPRESSION = "zip"
LOSSLESS = ("none", "rle", "zips", "zip", "piz", "htj2k256", "htj2k32", "zstd")
LOSSY = ("pxr24", "b44", "b44a", "dwaa", "dwab")  # for colour only: a blurred id or depth is wrong
_CONVENTIONS = (
    "metres; the camera looks down -Z with +Y up; hdwarp/ matrices multiply column vectors, K counts pixels of the data window from its "
    "top left corner; worldToCamera and worldToNDC multiply row vectors (Imath)"
)
_HALF_MAX = 65504.0
_lock = threading.Lock()
_encoding = 0  # files at this moment
_threads_before = 0


def write_exr(frame: Frame, path: str | os.PathLike[str], *, compression: str = DEFAULT_COMPRESSION, overwrite: bool = True) -> None:
    """Write every var of ``frame`` into one file. A lossy ``compression`` goes to the colour parts, the others get ZIP."""
    data = encode(frame, compression=compression)
    with writing(path, overwrite=overwrite) as file:
        file.write(data)


def encode(frame: Frame, *, compression: str = DEFAULT_COMPRESSION) -> memoryview:
    """The bytes of the file. Equal frames give equal bytes."""
    import OpenEXR

    if compression not in LOSSLESS + LOSSY:
        raise ArgumentError(f"EXR compression '{compression}' is unknown; there are {', '.join(LOSSLESS + LOSSY)}")
    shared = _shared_header(frame)
    parts = []
    for var, aov, data_type in _unique_names(frame.vars):
        pixels = meta.pixels(frame, var, aov)
        colour = meta.is_colour(aov, data_type, pixels)
        channels = _channels(pixels, aov, data_type, colour)
        method = compression if colour or compression in LOSSLESS else "zip"
        header = {
            **shared,
            **_part_header(frame, var, aov, data_type, colour),
            "compression": getattr(OpenEXR, ("NO" if method == "none" else method.upper()) + "_COMPRESSION"),
            "type": OpenEXR.scanlineimage,
        }
        parts.append(OpenEXR.Part(header, channels, var))
    if not parts:
        raise ArgumentError("the frame has no AOV to write")
    try:
        with _threads():
            return _in_memory(OpenEXR.File(parts))
    except RuntimeError as error:
        raise OutputError(f"OpenEXR cannot encode the frame of <{frame.camera}>: {error}") from error


def _in_memory(file: OpenEXR.File) -> memoryview:
    """The file's bytes. Not written to its path straight away: OpenEXR 3.5 does not report a disk that fills up with the last bytes.

    Into a Python buffer OpenEXR writes a few bytes a call, thousands of times a file, and waits for the GIL each time: beside a thread
    that runs Python, seven planes took 455 ms instead of 160. A file in memory (Linux) is written without Python.
    """
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        number = os.memfd_create("hdwarp")
        try:
            file.write(f"/proc/self/fd/{number}")
            with open(number, "rb", closefd=False) as written:
                if _holds_its_chunks(written):
                    return memoryview(mmap.mmap(number, 0, prot=mmap.PROT_READ))
        except (RuntimeError, OSError):
            pass  # as with a limit on file sizes, which the real file may meet too: it tells better what is wrong
        finally:
            os.close(number)
    buffer = io.BytesIO()
    file.write(buffer)
    return buffer.getbuffer()


def is_complete(path: str | os.PathLike[str]) -> bool:
    """Whether all chunks that an EXR's offset tables point at lie inside the file. Reads headers and tables, no pixels."""
    with open(path, "rb") as file:
        return _holds_its_chunks(file)


def _holds_its_chunks(file: io.BufferedReader) -> bool:
    head = file.read(8)
    if len(head) < 8 or head[:4] != b"\x76\x2f\x31\x01":
        return False
    multi_part = bool(head[5] & 0x10)
    try:
        while _skip_header(file) and multi_part:
            pass
        start = file.tell()
        (first,) = struct.unpack("<Q", file.read(8))  # the first chunk follows the tables of all parts
        count = (first - start) // 8
        if not 0 < count < 1 << 28:
            return False
        file.seek(start)
        offsets = np.frombuffer(file.read(8 * count), "<u8")
        last = int(offsets.max())
        file.seek(last + (8 if multi_part else 4))  # part number, row, then the size of the packed data
        (size,) = struct.unpack("<i", file.read(4))
        return len(offsets) == count and int(offsets.min()) > 0 and file.tell() + size <= file.seek(0, os.SEEK_END)
    except (struct.error, ValueError):  # shorter than its own header says
        return False


def _skip_header(file: io.BufferedReader) -> bool:
    """Step over one part's header; False for the empty one that ends a multi-part file's list."""
    name = _text(file)
    if not name:
        return False
    while name:
        _text(file)
        (size,) = struct.unpack("<i", file.read(4))
        file.seek(size, os.SEEK_CUR)
        name = _text(file)
    return True


def _text(file: io.BufferedReader) -> bytes:
    text = b""
    while (byte := file.read(1)) != b"\0":
        if not byte:
            raise ValueError("end of file")
        text += byte
    return text


@contextlib.contextmanager
def _threads() -> Iterator[None]:
    """OpenEXR's thread pool, shared by the files being encoded. It ends with the last of them: left running, a fork would inherit a pool
    without threads and hang."""
    global _encoding, _threads_before
    import OpenEXR

    with _lock:
        if _encoding == 0:
            _threads_before = OpenEXR.global_thread_count()
            OpenEXR.set_global_thread_count(_threads_before or min(8, _cpu_count()))
        _encoding += 1
    try:
        yield
    finally:
        with _lock:
            _encoding -= 1
            if _encoding == 0:
                OpenEXR.set_global_thread_count(_threads_before)


def _cpu_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _unique_names(variables: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """Vars of one product may share a prim name, parts of a file may not."""
    seen: dict[str, int] = {}
    for var, aov, data_type in variables:
        seen[var] = seen.get(var, 0) + 1
        yield (var if seen[var] == 1 else f"{var}_{seen[var]}"), aov, data_type


def _channels(array: np.ndarray, aov: str, data_type: str, colour: bool) -> dict[str, np.ndarray]:
    """Channel name -> contiguous plane: the OpenEXR module reads strided planes wrongly, without a word."""
    planes = array[..., None] if array.ndim == 2 else array
    if array.dtype == np.uint8 and colour:
        planes = _premultiplied_linear(planes)
    if np.issubdtype(planes.dtype, np.integer) or planes.dtype == np.bool_:
        planes = planes.astype(np.int64).astype(np.uint32) if planes.dtype != np.int32 else planes.view(np.uint32)
    elif "half" in data_type or data_type[-2:] in ("2h", "3h", "4h") or (colour and not data_type):
        planes = _half(planes)
    else:
        planes = planes.astype(np.float32, copy=False)
    names = channel_names(aov, planes.shape[2], colour, planes.dtype)
    return {name: np.ascontiguousarray(planes[..., index]) for index, name in enumerate(names)}


def channel_names(aov: str, count: int, colour: bool, dtype: np.dtype) -> tuple[str, ...]:
    """The channels of one part; see the top of the file."""
    if count == 1:
        return ("id",) if dtype == np.uint32 else ("Z",) if aov in meta.DEPTHS else ("Y",)
    if count == 2:
        return ("U", "V")
    if count == 3:
        return ("R", "G", "B") if colour else ("X", "Y", "Z")
    if count == 4:
        return ("R", "G", "B", "A")
    return tuple(f"c{index:03d}" for index in range(count))


def _half(planes: np.ndarray) -> np.ndarray:
    """Rounded to nearest; what is finite stays finite."""
    with np.errstate(over="ignore"):
        half = planes.astype(np.float16)
    too_large = np.isinf(half)
    if too_large.any():
        too_large &= np.isfinite(planes)
        half[too_large] = np.copysign(_HALF_MAX, planes[too_large])
    return half


def _premultiplied_linear(planes: np.ndarray) -> np.ndarray:
    """8-bit sRGB as OpenEXR wants colour: linear, premultiplied."""
    result = np.empty(planes.shape, np.float32)
    result[..., :3] = srgb_decode(planes[..., :3])
    if planes.shape[2] == 4:
        result[..., 3] = planes[..., 3] / np.float32(255.0)
        result[..., :3] *= result[..., 3:]
    return result


def _shared_header(frame: Frame) -> dict[str, object]:
    """What all parts say alike; windows have to be."""
    x0, y0, width, height = frame.data_window
    header: dict[str, object] = {
        "dataWindow": _box(x0, y0, width, height),
        "displayWindow": _box(0, 0, *frame.image_size),
        "pixelAspectRatio": float(frame.pixel_aspect_ratio),
        "software": f"hdWarp {hdwarp.__version__}",
        "hdwarp/conventions": _CONVENTIONS,
        "hdwarp/stage": str(frame.stage),
        "hdwarp/camera": str(frame.camera),
        "hdwarp/clipping_range": np.asarray(frame.clipping_range, np.float64),
        "hdwarp/metres_per_unit": float(frame.metres_per_unit),
        "hdwarp/lens": str(frame.lens),
        "hdwarp/origin": np.asarray(frame.origin, np.float64),
        "hdwarp/world_from_camera": np.array(frame.world_from_camera, np.float64, order="C"),
        "worldToCamera": np.array(np.linalg.inv(frame.world_from_camera).T, np.float32, order="C"),
    }
    if frame.color_space != REC709:  # what parts in it say, all have to
        header["chromaticities"] = frame.color_space.chromaticities
    if frame.product:
        header["hdwarp/product"] = str(frame.product)
    if frame.time is not None:
        header["hdwarp/time"] = float(frame.time)
    if frame.distortion is not None:
        model, coefficients = frame.distortion
        header["hdwarp/distortion"] = json.dumps([model, [float(value) for value in coefficients]])
    if not np.array_equal(frame.axes, np.eye(3)):
        header["hdwarp/axes"] = np.array(frame.axes, np.float64, order="C")
    header["hdwarp/ray_coefficients"] = json.dumps(np.asarray(frame.ray_coefficients, np.float64).tolist())  # exact: 17 digits where needed
    if frame.K is not None:
        header["hdwarp/K"] = np.array(frame.K, np.float64, order="C")
        header |= _projection(frame)
    return header


def _projection(frame: Frame) -> dict[str, object]:
    """OpenEXR's own words for a pinhole camera: the screen window at z = 1 (x to the left, y up) and the way to NDC in -1..1."""
    x0, y0, _, _ = frame.data_window
    width, height = frame.image_size
    K = np.asarray(frame.K, np.float64)
    fx, fy, cx, cy = K[0, 0], K[1, 1], K[0, 2] + x0, K[1, 2] + y0  # in pixels of the display window
    header: dict[str, object] = {
        "screenWindowWidth": float(width / fx),
        "screenWindowCenter": np.array([(cx - width / 2) / fx, (cy - height / 2) / fy], np.float32),
    }
    near, far = (float(value) for value in frame.clipping_range)
    if not (0.0 < near < far) or np.linalg.det(frame.axes) == 0.0:
        return header
    ndc_from_camera = np.array(
        [
            [2 * fx / width, -2 * K[0, 1] / width, 1 - 2 * cx / width, 0.0],
            [0.0, 2 * fy / height, 2 * cy / height - 1, 0.0],
            [0.0, 0.0, -1.0, -2 * near] if math.isinf(far) else [0.0, 0.0, (far + near) / (near - far), 2 * far * near / (near - far)],
            [0.0, 0.0, -1.0, 0.0],
        ]
    )
    camera_from_rigid = np.eye(4)
    camera_from_rigid[:3, :3] = np.linalg.inv(frame.axes)
    world_to_ndc = ndc_from_camera @ camera_from_rigid @ np.linalg.inv(frame.world_from_camera)
    header["worldToNDC"] = np.array(world_to_ndc.T, np.float32, order="C")
    return header


def _part_header(frame: Frame, var: str, aov: str, data_type: str, colour: bool) -> dict[str, object]:
    header: dict[str, object] = {"hdwarp/aov": aov, "hdwarp/clear": meta.clear_text(frame, aov)}
    unit, meaning = meta.unit_and_meaning(aov)
    if aov == "rgba8":
        meaning = "decoded to linear light, premultiplied"
    space = frame.color_space if aov in IN_COLOR_SPACE else REC709
    if space != REC709:
        meaning = meaning.replace("linear Rec.709", str(space))
    if unit:
        header["hdwarp/unit"] = unit
    if meaning:
        header["hdwarp/meaning"] = meaning
    if data_type:
        header["hdwarp/data_type"] = data_type
    if np.issubdtype(frame[aov].dtype, np.signedinteger):
        header["hdwarp/encoding"] = "int32 in two's complement as UINT: 4294967295 is -1"
    paths = meta.path_table(frame, aov)
    if paths is not None:
        name, table = paths
        header[f"hdwarp/{name}"] = json.dumps(table, ensure_ascii=False, separators=(",", ":"))
    # The colour interop recommendation lets data parts say so, if the file's first part is colour.
    if meta.first_is_colour(frame):
        header["colorInteropID"] = space.name if colour else "data"
    return header


def _box(x0: int, y0: int, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """OpenEXR's windows name their last pixel."""
    return np.array([x0, y0], np.int32), np.array([x0 + width - 1, y0 + height - 1], np.int32)
