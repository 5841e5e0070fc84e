"""writeback.names: from an output template to file names; two outputs never share one. No I/O but asking whether a folder exists.

A template may hold ``{stage} {product} {camera} {aov} {frame}`` and a frame number as ``####`` (zero-padded) or ``###.###`` (with
sub-frames); a brace is written ``{{`` or ``}}``. Padding follows usdrecord, so ``####`` makes 0007 of 7 and -007 of -7. Where usdrecord
would round sub-frames to one and the same ``####``, all numbers of the run get the decimals they need: 0001.00, 0001.25, 0001.50. Each
with as many, so that names sort as frames do.
"""

from __future__ import annotations

import os
import re
import string
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hdwarp.errors import ArgumentError

# What a suffix stands for; the writers are in `hdwarp.writeback`.
FORMATS = {".exr": "exr", ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".npz": "npz"}
_ONE_AOV_A_FILE = {"png", "jpeg"}
_MOST_DECIMALS = 9
PLACEHOLDERS = ("stage", "product", "camera", "aov", "frame")
_HASHES = re.compile(r"(#+)(?:\.(#+))?")
_HIDE = str.maketrans("#{}", "\x01\x02\x03")
_RESTORE = str.maketrans("\x01\x02\x03", "#{}")
_ANONYMOUS = re.compile(r"anon:[^:]*:?")


@dataclass(frozen=True, slots=True)
class Output:
    """One file to write, or one picture of it: what its name may tell. Paths are prim paths ("" for none), ``stage`` an identifier."""

    stage: str = ""
    product: str = ""
    camera: str = ""
    aov: str = ""  # var or AOV name where the format holds one picture a file, else ""
    frame: float | None = None
    product_name: str = ""  # UsdRender's productName


def format_of(path: str | os.PathLike[str]) -> str:
    """ "exr", "png", "jpeg" or "npz" by the suffix; ArgumentError for any other."""
    suffix = os.path.splitext(os.fspath(path))[1]
    name = FORMATS.get(suffix.lower())
    if name is None:
        given = f"the suffix '{suffix}' is no image format here" if suffix else "it has no suffix"
        raise ArgumentError(f"output '{os.fspath(path)}': {given}; use {', '.join(FORMATS)}, or end with / to name a folder")
    return name


def is_image(path: str | os.PathLike[str]) -> bool:
    """Whether the command line takes this argument as an output rather than a stage."""
    return os.path.splitext(os.fspath(path))[1].lower() in FORMATS


def holds_one_aov(path: str | os.PathLike[str]) -> bool:
    """Whether the format takes one AOV a file (PNG, JPEG), so that `plan` wants an Output for each."""
    return format_of(path) in _ONE_AOV_A_FILE


def has_frame(template: str) -> bool:
    """Whether the template tells frames apart."""
    return "frame" in _fields(template) or _HASHES.search(_protected(template)) is not None


def template_of(out: str | os.PathLike[str] | None, output: Output) -> str:
    """The template in force: OUT itself, "{product}.exr" inside it if it is a folder, else the productName if it is an image's."""
    if out is None or os.fspath(out) == "":
        return _literal_unless_template(output.product_name) if is_image(output.product_name) else "{product}.exr"
    text = os.fspath(out)
    return os.path.join(text, "{product}.exr") if text.endswith(("/", os.sep)) or os.path.isdir(text) else text


def safe(text: str) -> str:
    """A name as one part of a path: letters, digits, '_', '-' and '.'; the rest, ':' and '/' among it, becomes '_'."""
    name = re.sub(r"[^\w.\-]+", "_", text)
    return re.sub(r"^\.+", "_", name)  # neither hidden nor ".."


def short_names(paths: Iterable[str], split: Callable[[str], list[str]] | None = None) -> dict[str, str]:
    """The last part of each path; where several paths share it, as many parts as tell them apart, joined with '_'."""
    parts = {path: (split or _prim_parts)(path) for path in paths}
    depth = dict.fromkeys(parts, 1)
    while True:
        names = {path: safe("_".join(part[-depth[path] :])) for path, part in parts.items()}
        groups = defaultdict(list)
        for path, name in names.items():
            groups[name].append(path)
        clashing = [path for group in groups.values() if len(group) > 1 for path in group if depth[path] < len(parts[path])]
        if not clashing:
            return names
        for path in clashing:
            depth[path] += 1


def stage_name(identifier: str) -> str:
    """The stem of a stage's file: "shot" for /a/shot.usda; "stage" if it has none."""
    return safe(_stage_parts(identifier)[-1])


def expand(template: str, *, stage: str = "", product: str = "", camera: str = "", aov: str = "", frame: float | None = None) -> str:
    """The file name for one output. `plan` does the same for many, with names that tell them apart."""
    output = Output(stage, product, camera, aov, frame)
    return _expand(template, _values([output])[output], frame, sub_frame_decimals([frame]))


def sub_frame_decimals(frames: Iterable[float | None]) -> int:
    """Decimals that ``####`` needs for these frames: 0 where all are whole, as many as they have up to three (USD's own precision), more
    only where three would make two frames one."""
    numbers = {float(frame) for frame in frames if frame is not None}
    for decimals in range(_MOST_DECIMALS + 1):
        exact = all(abs(round(number, decimals) - number) < 1e-9 for number in numbers)
        if exact or (decimals >= 3 and len({round(number, decimals) for number in numbers}) == len(numbers)):
            return decimals
    return _MOST_DECIMALS


def plan(out: str | os.PathLike[str] | None, outputs: Sequence[Output]) -> list[str]:
    """One path an output, all different. ArgumentError if the template would put several into one file; the message holds one that works.

    Without OUT, and in a folder, the name is ours to choose: then what is missing to tell the outputs apart is added by itself.
    """
    templates = [template_of(out, output) for output in outputs]
    for template in dict.fromkeys(templates):
        format_of(template)
    values = _values(outputs)
    ours = [out is None or template != os.fspath(out) for template in templates]
    decimals = sub_frame_decimals(output.frame for output in outputs)
    paths = [_expand(template, values[output], output.frame, decimals) for template, output in zip(templates, outputs, strict=True)]
    clash = _first_clash(paths)
    while clash is not None:
        first, second = clash
        members = [index for index, path in enumerate(paths) if _key(path) == _key(paths[first])]
        working = _working_template(templates[first], [outputs[index] for index in members], values)
        if working is None:
            raise ArgumentError(f"{_describe(outputs[first])} is asked for twice as '{paths[first]}'; name it once")
        if not (ours[first] and all(templates[index] == templates[first] for index in members)):
            one, other = _describe(outputs[first], outputs[second]), _describe(outputs[second], outputs[first])
            raise ArgumentError(f"'{paths[first]}' would hold both {one} and {other}; use a template such as '{working}'")
        family = templates[first]  # all outputs of one template change together: a sequence has one spelling
        for index, template in enumerate(templates):
            if template == family:
                templates[index] = working
                paths[index] = _expand(working, values[outputs[index]], outputs[index].frame, decimals)
        clash = _first_clash(paths)
    return paths


def _values(outputs: Sequence[Output]) -> dict[Output, dict[str, str]]:
    """What the placeholders stand for. A product made up for a camera goes by the camera's name, a made-up camera by the stage's."""
    stages = short_names({output.stage for output in outputs}, _stage_parts)
    products: dict[str, dict[str, str]] = {}
    cameras: dict[str, dict[str, str]] = {}
    for stage in stages:  # names need to differ within their stage only
        mine = [output for output in outputs if output.stage == stage]
        cameras[stage] = short_names({output.camera for output in mine if output.camera})
        products[stage] = short_names({output.product or output.camera for output in mine if output.product or output.camera})
    table = {}
    for output in outputs:
        stage = stages[output.stage]
        camera = cameras[output.stage].get(output.camera, stage)
        product = products[output.stage].get(output.product or output.camera, stage)
        table[output] = {"stage": stage, "product": product, "camera": camera, "aov": safe(output.aov)}
    return table


def _expand(template: str, values: dict[str, str], frame: float | None, decimals: int) -> str:
    parts = []
    for literal, field, spec in _parse(template):
        parts.append(_HASHES.sub(lambda match: _padded(template, match, frame, decimals), literal))
        if field == "frame":
            parts.append(_plain_frame(template, frame, spec))
        elif field is not None:
            if not values[field]:
                raise ArgumentError(f"output '{template}': {{{field}}} has no value here, for the file holds all AOVs; leave it out")
            parts.append(values[field])
    return "".join(parts).translate(_RESTORE)


def _parse(template: str) -> list[tuple[str, str | None, str]]:
    """(literal, placeholder or None, its format) pieces; unknown placeholders raise."""
    try:
        pieces = list(string.Formatter().parse(_protected(template)))
    except ValueError as error:
        raise ArgumentError(f"output '{template}': {error}; write a brace that belongs to the name as {{{{ or }}}}") from None
    result = []
    for literal, field, spec, conversion in pieces:
        if field is not None and (field not in PLACEHOLDERS or conversion or (spec and field != "frame")):
            given = field + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            known = " ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ArgumentError(f"output '{template}': {{{given}}} is unknown; there are {known} and #### for the frame")
        result.append((literal, field, spec or ""))
    return result


def _protected(template: str) -> str:
    """The template with the signs of its folder hidden, if that folder exists by this very name: "c#/" is then no frame number."""
    folder, name = os.path.split(template)
    return os.path.join(folder.translate(_HIDE), name) if folder and os.path.isdir(folder) else template


def _literal_unless_template(name: str) -> str:
    """A productName is a file's name; braces in it that are no placeholders of ours belong to it."""
    try:
        _parse(name)
    except ArgumentError:
        return name.replace("{", "{{").replace("}", "}}")
    return name


def _fields(template: str) -> set[str]:
    return {field for _, field, _ in _parse(template) if field is not None}


def _padded(template: str, match: re.Match[str], frame: float | None, decimals: int) -> str:
    """``decimals``: of ``####``; ``####.##`` says itself how many it has."""
    whole, places = len(match[1]), len(match[2] or "") or decimals
    return f"{_needed(template, frame):0{whole + places + 1 if places else whole}.{places}f}"


def _plain_frame(template: str, frame: float | None, spec: str) -> str:
    number = _needed(template, frame)
    value = int(number) if number == int(number) else number
    try:
        return format(value, spec)
    except ValueError:
        raise ArgumentError(f"output '{template}': frame {value} does not fit the format '{spec}'; use #### or ####.###") from None


def _needed(template: str, frame: float | None) -> float:
    if frame is None:
        raise ArgumentError(f"output '{template}' names a frame, but none is given; pass --frames or leave the placeholder out")
    return float(frame) + 0.0  # no -0


def _prim_parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part] or [""]


def _stage_parts(identifier: str) -> list[str]:
    """Folders and stem of a stage's identifier: arguments, the inside of packages and an anonymous layer's address are left out."""
    path = identifier.split(":SDF_FORMAT_ARGS:")[0]
    anonymous = _ANONYMOUS.match(path)
    path = path[anonymous.end() :] if anonymous else re.sub(r"\[.*\]$", "", path)
    parts = [part for part in re.split(r"[/\\]", path) if part not in ("", ".", "..")]
    if not parts:
        return ["stage"]
    stem = os.path.splitext(parts[-1])[0]
    return [*parts[:-1], stem or "stage"]


def _key(path: str) -> str:
    return os.path.normcase(os.path.abspath(path))


def _first_clash(paths: Sequence[str]) -> tuple[int, int] | None:
    seen: dict[str, int] = {}
    for index, path in enumerate(paths):
        first = seen.setdefault(_key(path), index)
        if first != index:
            return first, index
    return None


def _working_template(template: str, outputs: Sequence[Output], values: dict[Output, dict[str, str]]) -> str | None:
    """The template with the fewest placeholders added that give these outputs different names; None if nothing would."""
    root, suffix = os.path.splitext(template)
    present = _fields(template)
    chosen: list[str] = []
    for field in ("aov", "product", "camera", "stage"):
        if field not in present and len({getattr(output, field) for output in outputs}) > 1:
            chosen.append(field)
    frames = {output.frame for output in outputs}
    number = ""
    if len(frames) > 1 and None not in frames and not has_frame(template):
        number = ".####" if all(float(frame) == int(frame) for frame in frames) else ".####.###"
    # A camera says nothing that its product has not said already; keep of the names only those that are needed.
    for field in reversed(chosen.copy()):
        fewer = [name for name in chosen if name != field]
        if _tells_apart(root, fewer, number, suffix, outputs, values):
            chosen = fewer
    if not _tells_apart(root, chosen, number, suffix, outputs, values):
        return None
    return _joined(root, chosen, number, suffix)


def _joined(root: str, fields: Sequence[str], number: str, suffix: str) -> str:
    order = [field for field in PLACEHOLDERS if field in fields]
    return root + "".join(f".{{{field}}}" for field in order) + number + suffix


def _tells_apart(
    root: str, fields: Sequence[str], number: str, suffix: str, outputs: Sequence[Output], values: dict[Output, dict[str, str]]
) -> bool:
    template = _joined(root, fields, number, suffix)
    decimals = sub_frame_decimals(output.frame for output in outputs)
    return _first_clash([_expand(template, values[output], output.frame, decimals) for output in outputs]) is None


def _describe(output: Output, other: Output | None = None) -> str:
    """An output in words; beside another only what tells them apart."""
    words = []
    for name, word in (("aov", "AOV "), ("product", "product "), ("camera", "camera "), ("stage", "stage "), ("frame", "frame ")):
        value = getattr(output, name)
        if value not in ("", None) and (other is None or value != getattr(other, name)):
            words.append(word + (f"{value:g}" if isinstance(value, float) else str(value)))
    return " of ".join(words[:2]) if words else "the default image"


def with_aovs(output: Output, names: Iterable[str]) -> list[Output]:
    """An Output for each var or AOV, for formats that hold one a file."""
    return [replace(output, aov=name) for name in names]
