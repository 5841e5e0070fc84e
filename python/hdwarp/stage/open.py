"""stage.open: a path or a stage -> an open Usd.Stage, and which time code "no time given" means. Errors name the file and the cure."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from pxr import Sdf, Tf, Usd, UsdGeom, UsdUtils

from hdwarp.errors import ArgumentError, Diagnostics, StageError
from hdwarp.stage.transforms import LARGEST, RANGE, SMALLEST

_MOST_MESSAGES = 8  # of one exception
UNREADABLE = (Tf.ErrorException, UnicodeDecodeError)  # what pxr raises of what it cannot read


def open_stage(
    stage_or_path: Usd.Stage | str | os.PathLike,
    *,
    mask: Sequence[str] | Usd.StagePopulationMask | None = None,
    load: bool = True,
    session_layer: Sdf.Layer | str | os.PathLike | None = None,
    diagnostics: Diagnostics | None = None,
) -> Usd.Stage:
    """An open stage. What composition could not resolve goes to ``diagnostics`` (nowhere without one); the rest of the stage is there.

    ``mask`` populates only these prims, what their relationships name (materials, prototypes, cameras of products) and the ancestors.
    ``load=False`` leaves payloads unloaded. A Usd.Stage is handed back as it is: `read_stage` takes a mask for it.
    Raises StageError for a file that is missing or no stage and for an expired stage.
    """
    if isinstance(stage_or_path, Usd.Stage):
        if not stage_or_path or not stage_or_path.GetPseudoRoot():
            raise StageError("stage", "the Usd.Stage has expired; keep a reference to it, or open it again")
        if session_layer is not None:
            raise ArgumentError("session_layer= goes with a path; give a Usd.Stage its session layer when opening it")
        return _reported(stage_or_path, diagnostics)
    if not isinstance(stage_or_path, str | os.PathLike):
        raise ArgumentError(f"expected a Usd.Stage or a path, got {type(stage_or_path).__name__}")
    name = os.fspath(stage_or_path)
    quiet = UsdUtils.CoalescingDiagnosticDelegate()  # pxr's warnings: told as diagnostics below, not on stderr
    try:
        root = _open_layer(name, "stage")
        session = (
            session_layer if session_layer is None or isinstance(session_layer, Sdf.Layer) else _open_layer(session_layer, "session layer")
        )
        arguments = [root] if session is None else [root, session]
        stage, damage = _opened(arguments, mask, Usd.Stage.LoadAll if load else Usd.Stage.LoadNone)
    except UNREADABLE as error:
        raise StageError(name, f"cannot be opened as a USD stage: {plain_text(error)}") from None
    finally:
        messages = quiet.TakeUncoalescedDiagnostics()
        del quiet
    if diagnostics is not None:
        if damage:
            diagnostics.error(name, "damaged-file", f"a file that it refers to is damaged: {damage}. What could be read of it is drawn")
        report_messages(messages, stage, diagnostics)
    return _reported(stage, diagnostics)


def _opened(arguments: list[Sdf.Layer], mask: Sequence[str] | Usd.StagePopulationMask | None, rule: object) -> tuple[Usd.Stage, str]:
    """(the stage, what is damaged in files it refers to). Where one of these is, USD composes the stage and then raises all the same: the
    cache has it."""
    cache, damage = Usd.StageCache(), ""
    with Usd.StageCacheContext(cache):
        try:
            stage = Usd.Stage.Open(*arguments, rule) if mask is None else Usd.Stage.OpenMasked(*arguments, population_mask(mask), rule)
        except Tf.ErrorException as error:
            stages = cache.GetAllStages()
            if not stages:
                raise
            stage, damage = stages[0], plain_text(error)
    if mask is not None:
        stage.ExpandPopulationMask()
    return stage, damage


def _check_package(name: str) -> None:
    """A usdz is a zip of entries that are neither compressed nor encrypted; no other is opened, whatever it would unpack to."""
    try:
        with zipfile.ZipFile(name) as package:
            entries = package.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise StageError(name, f"is no usdz package ({error}); package it anew") from None
    except OSError as error:
        raise StageError(name, f"cannot be read ({error.strerror or error})") from None
    size = os.path.getsize(name)
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            how = "encrypted" if entry.flag_bits & 1 else "compressed"
            raise StageError(name, f"its entry {entry.filename!r} is {how}, which no usdz package may have; package it anew, stored")
        if entry.file_size > size:
            message = f"its entry {entry.filename!r} claims {entry.file_size:,} bytes, and the file has {size:,}"
            raise StageError(name, f"{message}: it is damaged; package it anew")


def _open_layer(name: Sdf.Layer | str | os.PathLike, role: str) -> Sdf.Layer:
    name = os.fspath(name)
    if not name:
        raise StageError("", f"the {role}'s path is empty; give a .usd, .usda, .usdc or .usdz file")
    if Path(name).is_dir():
        raise StageError(name, f"is a folder, not a {role}; give a .usd, .usda, .usdc or .usdz file")
    if name.lower().endswith(".usdz") and Path(name).is_file():
        _check_package(name)
    try:
        layer = Sdf.Layer.FindOrOpen(name)
    except UNREADABLE as error:
        raise StageError(name, f"cannot be read as a USD {role}: {plain_text(error)}") from None
    if layer is None:
        if not Path(name).exists():
            raise StageError(name, f"the {role} was not found (looked from {os.getcwd()}); check the path")
        raise StageError(name, f"cannot be read as a USD {role}; check that it is a .usd, .usda, .usdc or .usdz file")
    return layer


def _reported(stage: Usd.Stage, diagnostics: Diagnostics | None) -> Usd.Stage:
    if diagnostics is not None:
        report_composition(stage, diagnostics)
    return stage


def report_composition(stage: Usd.Stage, diagnostics: Diagnostics) -> None:
    """Unresolved references, sublayers and payloads and other composition errors, as diagnostics of severity error."""
    for error in stage.GetCompositionErrors():
        site = getattr(error, "rootSite", None)
        path = getattr(site, "path", None) or stage.GetRootLayer().identifier
        said, cure = _text(error).rstrip("."), "mend the path or remove the arc"
        if "<defaultPrim>" in said:  # what USD calls the target of an arc that names a file alone
            cure = "author defaultPrim in that file, or a prim path in the arc"
        diagnostics.error(path, "composition", f"{said}. What is missing is left out; {cure}")


def report_messages(messages: list, stage: Usd.Stage, diagnostics: Diagnostics) -> None:
    """What pxr would have printed, as notes; composition errors are told by `report_composition`."""
    told = {_text(error) for error in stage.GetCompositionErrors()} if messages else set()
    for message in messages:
        text = _text(message)
        if not any(error in text for error in told):
            diagnostics.note(stage.GetRootLayer().identifier, "usd", text)


def _text(message: object) -> str:
    try:
        return " ".join((message.commentary if hasattr(message, "commentary") else str(message)).split())
    except UnicodeDecodeError:  # of a damaged file
        return "a message of USD's that is no UTF-8, as names in damaged files are not"


def population_mask(paths: Sequence[str] | Usd.StagePopulationMask) -> Usd.StagePopulationMask:
    """A mask from prim paths. Raises ArgumentError for what is no absolute prim path."""
    if isinstance(paths, Usd.StagePopulationMask):
        return paths
    mask = Usd.StagePopulationMask()
    for path in [paths] if isinstance(paths, str | Sdf.Path) else paths:
        if not str(path).startswith("/") or not Sdf.Path.IsValidPathString(str(path)) or not Sdf.Path(str(path)).IsAbsoluteRootOrPrimPath():
            raise ArgumentError(f"mask: {str(path)!r} is not an absolute prim path such as /World/robot")
        mask.Add(Sdf.Path(str(path)))
    return mask


def metres_per_unit(stage: Usd.Stage, diagnostics: Diagnostics | None = None) -> float:
    """metersPerUnit of the stage; USD's fallback, with a diagnostic, where it is no size."""
    value = UsdGeom.GetStageMetersPerUnit(stage)
    if SMALLEST <= value <= LARGEST:
        return value
    if diagnostics is not None:
        message = f"metersPerUnit is {value:g}; read as 0.01, USD's fallback. Author a value {RANGE}"
        diagnostics.error("/", "metres-per-unit", message)
    return 0.01


def default_time() -> Usd.TimeCode:
    """The time code of values without time samples."""
    return Usd.TimeCode.Default()


def resolve_time(stage: Usd.Stage, time: float | Usd.TimeCode | None) -> Usd.TimeCode:
    """The time code ``time`` means. None: the stage's startTimeCode if authored, else every attribute's earliest sample."""
    if isinstance(time, Usd.TimeCode):
        if not time.IsDefault() and not time.IsEarliestTime() and not math.isfinite(time.GetValue()):
            raise ArgumentError(f"time is {time}; give a finite time code")
        return time
    if time is None:
        return Usd.TimeCode(stage.GetStartTimeCode()) if stage.HasAuthoredMetadata("startTimeCode") else Usd.TimeCode.EarliestTime()
    try:
        if isinstance(time, str | bool):
            raise TypeError
        number = float(time)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"time is {time!r}; give a time code (a number) or a Usd.TimeCode") from None
    if not math.isfinite(number):
        raise ArgumentError(f"time is {number}; give a finite time code")
    return Usd.TimeCode(number)


def frame_before(stage: Usd.Stage, time: Usd.TimeCode) -> Usd.TimeCode:
    """The time code one frame (timeCodesPerSecond / framesPerSecond time codes) before ``time``; the default and the earliest time, which
    have none before them, are given back."""
    if time.IsDefault() or time.IsEarliestTime():
        return time
    codes, frames = stage.GetTimeCodesPerSecond(), stage.GetFramesPerSecond()
    step = codes / frames if codes > 0.0 and frames > 0.0 else 1.0
    return Usd.TimeCode(time.GetValue() - (step if math.isfinite(step) else 1.0))


def plain_text(error: Exception) -> str:
    """What a pxr error says, without the C++ places it was raised from."""
    if isinstance(error, UnicodeDecodeError):
        return "it holds a name or a text that is no UTF-8, as damaged files do"
    if isinstance(error, Tf.ErrorException):  # of a damaged file there may be millions, and each takes its time to be a text
        texts = [_text(item) if hasattr(item, "commentary") else str(item) for item in error.args[:_MOST_MESSAGES]]
        more = len(error.args) - len(texts)
        return "; ".join(dict.fromkeys(filter(None, texts))) + (f"; and {more} more" if more else "") or "unknown error"
    return str(error).strip() or "unknown error"
