"""writeback.layer: what was rendered, as a small USD layer that opens over the source stage. The only writer that knows USD.

The layer sublayers the source and repeats its stage metadata, which USD takes from the root layer alone. On each product's prim (an
`over`; a RenderProduct of its own below /Render/hdWarp where none is authored) it writes, all custom:

    asset hdwarp:files:<var>           the file that holds the var, relative to the layer
    double[] hdwarp:K                  3x3, row by row, pixels of the data window; absent where the lens has none
    matrix4d hdwarp:worldFromCamera    metres, USD camera axes, Gf's row vectors: p_world = p_camera * M
    float2 hdwarp:clippingRange        metres
    double3 hdwarp:origin              metres, what the position AOV is relative to
    string[] hdwarp:primPaths          primId -> path; materialPaths and bodyPaths alike
    double[] hdwarp:times              the time codes rendered
    rel hdwarp:camera                  and lens, axes, distortion, dataWindow, imageSize

What differs from frame to frame has a time sample for each; what stays the same also has a default value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pxr import Gf, Sdf, Tf, Usd, Vt

import hdwarp
from hdwarp.errors import ArgumentError, OutputError
from hdwarp.writeback.atomic import check_target, replacing
from hdwarp.writeback.names import short_names

if TYPE_CHECKING:
    from hdwarp.frame import Frame

_SUFFIXES = (".usda", ".usdc", ".usd")
_HOME = "/Render/hdWarp"  # for products that the stage does not author
_STAGE_METADATA = (
    "defaultPrim",
    "metersPerUnit",
    "kilogramsPerUnit",
    "upAxis",
    "timeCodesPerSecond",
    "framesPerSecond",
    "framePrecision",
    "startTimeCode",
    "endTimeCode",
    "renderSettingsPrimPath",
    "colorConfiguration",
    "colorManagementSystem",
    "expressionVariables",
)
Files = Mapping[str, "str | os.PathLike[str]"] | Sequence["str | os.PathLike[str]"] | str | os.PathLike | None
# name: (USD type, whether it may change from frame to frame, documentation)
_ATTRIBUTES = {
    "K": ("double[]", True, "3x3 camera matrix, row by row, in pixels of the data window (OpenCV)"),
    "worldFromCamera": ("matrix4d", True, "camera pose in metres, USD camera axes, row vectors: p_world = p_camera * M"),
    "clippingRange": ("float2", True, "metres"),
    "origin": ("double3", True, "metres; the position AOV is relative to it"),
    "axes": ("matrix3d", True, "row vectors; what a scaled or mirrored camera does to directions before worldFromCamera"),
    "rayCoefficients": (
        "double[]",
        True,
        "six rows of three, metres: origin, its steps to the next column and row, direction, its steps; see Frame.ray_coefficients",
    ),
    "lens": ("token", True, ""),
    "distortionModel": ("token", True, ""),
    "distortionCoefficients": ("double[]", True, "in OpenCV's order"),
    "dataWindow": ("int4", True, "x0, y0, width, height of the written pixels in the full image, from its top left corner"),
    "imageSize": ("int2", True, "the full image"),
    "primPaths": ("string[]", False, "primId -> prim path"),
    "materialPaths": ("string[]", False, "materialId -> prim path"),
    "bodyPaths": ("string[]", False, "bodyId -> prim path"),
}


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """What the layer keeps of a frame: no arrays, so that a long sequence can be collected."""

    stage: str
    product: str
    camera: str
    time: float | None
    files: dict[str, str]  # var -> path
    values: dict[str, object]  # keys of _ATTRIBUTES; hashable, None where there is none


def record(frame: Frame, outputs: Files = None) -> FrameRecord:
    """``outputs``: var -> file; or one file that holds every var; or a file each, in the order of the vars."""
    variables = [var for var, _, _ in frame.vars]
    if outputs is None:
        outputs = {}
    elif isinstance(outputs, str | os.PathLike):
        outputs = dict.fromkeys(variables, outputs)
    elif not isinstance(outputs, Mapping):
        paths = list(outputs) * (len(variables) if len(outputs) == 1 else 1)
        if len(paths) != len(variables):
            raise ArgumentError(f"{len(outputs)} files for the {len(variables)} vars {', '.join(variables)}; pass a dict of var -> file")
        outputs = dict(zip(variables, paths, strict=True))
    files = {var: os.path.abspath(path) for var, path in outputs.items()}
    model, coefficients = frame.distortion or (None, None)
    values = {
        "K": None if frame.K is None else _floats(frame.K),
        "worldFromCamera": _floats(np.asarray(frame.world_from_camera).T),
        "clippingRange": _floats(frame.clipping_range),
        "origin": _floats(frame.origin),
        "axes": None if np.array_equal(frame.axes, np.eye(3)) else _floats(np.asarray(frame.axes).T),
        "rayCoefficients": _floats(frame.ray_coefficients),
        "lens": str(frame.lens),
        "distortionModel": model,
        "distortionCoefficients": None if coefficients is None else _floats(coefficients),
        "dataWindow": tuple(int(value) for value in frame.data_window),
        "imageSize": tuple(int(value) for value in frame.image_size),
        "primPaths": tuple(str(path) for path in frame.prim_paths),
        "materialPaths": tuple(str(path) for path in frame.material_paths),
        "bodyPaths": tuple(str(path) for path in frame.body_paths),
    }
    return FrameRecord(str(frame.stage), str(frame.product or ""), str(frame.camera or ""), frame.time, files, values)


def _check_suffix(path: str | os.PathLike[str]) -> None:
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise ArgumentError(f"results layer '{os.fspath(path)}' needs the suffix {', '.join(_SUFFIXES)}")


def check_layer_target(path: str | os.PathLike[str], stages: Sequence[Usd.Stage], *, overwrite: bool) -> None:
    """Raise what writing the layer would raise, as far as one can tell before rendering; also for a path that is part of a stage."""
    _check_suffix(path)
    if len(stages) > 1:
        raise ArgumentError(f"results layer '{os.fspath(path)}': it opens over one stage and {len(stages)} are given; write one for each")
    target = os.path.realpath(path)
    for layer in (layer for stage in stages for layer in stage.GetUsedLayers()):
        if layer.realPath and os.path.realpath(layer.realPath) == target:
            raise ArgumentError(f"results layer '{os.fspath(path)}' is a layer of the stage itself; name another file")
    check_target(path, overwrite=overwrite)


def frame_to_layer(
    frame: Frame,
    path: str | os.PathLike[str],
    *,
    outputs: Files = None,
    overwrite: bool = True,
) -> Path:
    """Write the layer for one frame; ``outputs`` as in `record`."""
    return write_results([frame], [outputs], path, overwrite=overwrite)


def write_results(
    frames: Iterable[Frame | FrameRecord],
    outputs: Sequence[Files] | None,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = True,
) -> Path:
    """Write one layer for frames, or their records, of one stage. ``outputs`` goes with the frames, and is not asked of records."""
    frames = list(frames)
    outputs = [None] * len(frames) if outputs is None else outputs
    records = [item if isinstance(item, FrameRecord) else record(item, files) for item, files in zip(frames, outputs, strict=True)]
    stages = list(dict.fromkeys(item.stage for item in records))
    if len(stages) != 1:
        found = "no frame" if not stages else f"frames of {len(stages)} stages ({', '.join(stages[:3])})"
        raise ArgumentError(
            f"results layer '{os.fspath(path)}': it opens over one stage and was given {found}; write a layer for each stage"
        )
    _check_suffix(path)
    target = Path(os.path.realpath(path))
    source = Sdf.Layer.FindOrOpen(stages[0])
    if source is not None and source.realPath and os.path.realpath(source.realPath) == str(target):
        raise ArgumentError(f"results layer '{os.fspath(path)}' is the stage itself; name another file")
    layer = _build(records, source, target.parent)
    with replacing(path, overwrite=overwrite) as temporary:
        _export(layer, temporary, path)
    stale = Sdf.Layer.Find(str(target))
    if stale:  # a stage of this process has the old one open
        stale.Reload(force=True)
    return Path(path)


def _export(layer: Sdf.Layer, temporary: Path, path: str | os.PathLike[str]) -> None:
    """USD does not report a disk that fills up: text we write ourselves (.usd may hold it too), a crate file is read again."""
    text = layer.ExportToString()
    if temporary.suffix.lower() != ".usdc":
        temporary.write_text(text, encoding="utf8")
        return
    try:
        written = layer.Export(str(temporary)) and Sdf.Layer.OpenAsAnonymous(str(temporary)).ExportToString() == text
    except (Tf.ErrorException, AttributeError):  # None for a file that does not open
        written = False
    if not written:
        raise OutputError(f"cannot write {os.fspath(path)}: USD could not export the layer; is the disk full?")


def _build(records: Sequence[FrameRecord], source: Sdf.Layer | None, folder: Path) -> Sdf.Layer:
    layer = Sdf.Layer.CreateAnonymous("results.usda")
    layer.documentation = f"Rendered by hdWarp {hdwarp.__version__}: files, cameras and the prims behind the ids. Opens over its stage."
    if source is not None:
        for key in _STAGE_METADATA:
            if source.pseudoRoot.HasInfo(key):
                layer.pseudoRoot.SetInfo(key, source.pseudoRoot.GetInfo(key))
        if not source.anonymous:  # a stage in memory has no address to name
            layer.subLayerPaths.append(_asset_path(source.realPath or source.identifier, folder))
    names = short_names({item.camera or "frame" for item in records if not item.product})
    groups: dict[str, list[FrameRecord]] = {}
    for item in records:
        home = item.product or f"{_HOME}/{Tf.MakeValidIdentifier(names[item.camera or 'frame'])}"
        groups.setdefault(home, []).append(item)
    for home, items in groups.items():
        _author_product(_prim(layer, home, authored=bool(items[0].product)), items, folder)
    return layer


def _prim(layer: Sdf.Layer, path: str, *, authored: bool) -> Sdf.PrimSpec:
    prim = Sdf.CreatePrimInLayer(layer, path)
    if not authored:
        prim.specifier = Sdf.SpecifierDef
        prim.typeName = "RenderProduct"
        parent = prim.nameParent
        while parent:  # without a type, so that the source's own /Render keeps its
            parent.specifier = Sdf.SpecifierDef
            parent = parent.nameParent
    return prim


def _author_product(prim: Sdf.PrimSpec, items: Sequence[FrameRecord], folder: Path) -> None:
    items = list({item.time: item for item in items}.values())  # a frame rendered again replaces the earlier one
    for name, (type_name, changes, words) in _ATTRIBUTES.items():
        values = [_usd_value(type_name, item.values[name]) for item in items]
        if any(value is not None for value in values):
            _author(prim, f"hdwarp:{name}", type_name, [item.time for item in items], values, changes, words)
    for var in dict.fromkeys(var for item in items for var in item.files):
        name = "hdwarp:files:" + ":".join(Tf.MakeValidIdentifier(part) for part in var.split(":"))
        values = [Sdf.AssetPath(_asset_path(item.files[var], folder)) if var in item.files else None for item in items]
        _author(prim, name, "asset", [item.time for item in items], values, True, "")
    times = sorted(item.time for item in items if item.time is not None)
    if times:
        _author(prim, "hdwarp:times", "double[]", [None], [Vt.DoubleArray(times)], False, "time codes rendered")
    camera = items[-1].camera
    if Sdf.Path.IsValidPathString(camera) and Sdf.Path(camera).IsPrimPath():
        for name in ("hdwarp:camera",) if items[0].product else ("hdwarp:camera", "camera"):
            relationship = Sdf.RelationshipSpec(prim, name, custom=name != "camera")
            relationship.targetPathList.explicitItems = [Sdf.Path(camera)]
    if not items[0].product:
        width, height = items[-1].values["imageSize"]
        Sdf.AttributeSpec(prim, "resolution", Sdf.ValueTypeNames.Int2, Sdf.VariabilityUniform).default = Gf.Vec2i(width, height)


def _author(
    prim: Sdf.PrimSpec, name: str, type_name: str, times: Sequence[float | None], values: Sequence[object], changes: bool, words: str
) -> None:
    """A default where all values are equal or there is no time; samples where frames may differ, a block for a frame without a value."""
    attribute = Sdf.AttributeSpec(prim, name, Sdf.ValueTypeNames.Find(type_name), Sdf.VariabilityVarying, declaresCustom=True)
    if words:
        attribute.documentation = words
    same = all(value == values[0] for value in values)
    if same:
        attribute.default = values[0]
    elif None in times:
        attribute.default = values[list(times).index(None)]
    if not same or (changes and len(times) > 1):
        for time, value in zip(times, values, strict=True):
            if time is not None:
                prim.layer.SetTimeSample(attribute.path, float(time), Sdf.ValueBlock() if value is None else value)


def _floats(values: object) -> tuple[float, ...]:
    return tuple(np.asarray(values, np.float64).ravel().tolist())


def _usd_value(type_name: str, value: object) -> object:
    """From the plain tuples of a record."""
    if value is None:
        return None
    makers = {
        "double[]": Vt.DoubleArray,
        "string[]": Vt.StringArray,
        "matrix4d": lambda numbers: Gf.Matrix4d(*numbers),
        "matrix3d": lambda numbers: Gf.Matrix3d(*numbers),
        "float2": lambda numbers: Gf.Vec2f(*numbers),
        "double3": lambda numbers: Gf.Vec3d(*numbers),
        "int4": lambda numbers: Gf.Vec4i(*numbers),
        "int2": lambda numbers: Gf.Vec2i(*numbers),
    }
    return makers.get(type_name, str)(value)


def _asset_path(path: str, folder: Path) -> str:
    """Relative to the layer's folder where both are files on one drive, so that the folder can be moved; as it is otherwise."""
    if not os.path.isabs(path):
        return path
    try:
        relative = Path(os.path.relpath(os.path.realpath(path), folder)).as_posix()
    except ValueError:  # another drive
        return path
    return relative if relative.startswith("../") else f"./{relative}"
