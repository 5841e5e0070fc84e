"""writeback: frames to files and USD layers, whole or not at all; the suffix chooses the format. Loads no codec until used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hdwarp.errors import ArgumentError
from hdwarp.writeback import names

if TYPE_CHECKING:
    from hdwarp.frame import Frame
    from hdwarp.writeback.display import Display

__all__ = ["EIGHT_BIT", "check_compression", "write", "write_file"]

EIGHT_BIT = ("png", "jpeg")
"""Formats whose colour is encoded for a display."""


def write(
    frame: Frame,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    compression: str | int | None = None,
    display: Display | str | None = None,
) -> list[Path]:
    """Save ``frame`` and return the files written. ``path`` may be a template (see `names`): PNG and JPEG hold one AOV, so several of
    them need ``{aov}`` in it; EXR and NPZ hold all. ``compression`` and ``display`` as in `write_file`.
    """
    how = {"overwrite": overwrite, "compression": compression, "display": display}
    output = names.Output(str(frame.stage), frame.product, frame.camera, frame=frame.time)
    if not names.holds_one_aov(names.template_of(path, output)):
        (target,) = names.plan(path, [output])
        return [write_file(frame, target, **how)]
    variables = [var for var, _, _ in frame.vars]
    targets = names.plan(path, names.with_aovs(output, variables))
    return [write_file(frame, target, var, **how) for var, target in zip(variables, targets, strict=True)]


def write_file(
    frame: Frame,
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    overwrite: bool = True,
    compression: str | int | None = None,
    display: Display | str | None = None,
) -> Path:
    """One file; ``path`` is taken as it is. ``name`` is the var or AOV to show in a PNG or JPEG, needed if there are several.
    ``compression``: what `check_compression` lets pass; None: the format's default. ``display``: how linear colour becomes 8 bits, a
    `Display` or its mode; None: sRGB. Raises ArgumentError for one with EXR and NPZ, which hold linear colour.
    """
    kind = names.format_of(path)
    if display is not None and kind not in EIGHT_BIT:
        raise ArgumentError(f"'{os.fspath(path)}': display is for .png and .jpg; .exr and .npz hold linear colour")
    if compression is not None:
        check_compression(kind, compression, os.fspath(path))
    if kind in EIGHT_BIT:
        from hdwarp.writeback.display import display_of
        from hdwarp.writeback.png import PNG_LEVEL, write_jpeg, write_png

        if name is None:
            if len(frame.vars) != 1:
                raise ArgumentError(f"'{os.fspath(path)}' holds one AOV; name one of {', '.join(var for var, _, _ in frame.vars)}")
            name = frame.vars[0][0]
        how = {"display": display_of(display), "overwrite": overwrite}
        if kind == "png":
            write_png(frame, path, name, level=PNG_LEVEL if compression is None else compression, **how)
        else:
            write_jpeg(frame, path, name, **how)
    elif name is not None:
        raise ArgumentError(f"'{os.fspath(path)}' holds all AOVs; a picture of '{name}' alone is .png or .jpg")
    elif kind == "exr":
        from hdwarp.writeback.exr import DEFAULT_COMPRESSION, write_exr

        write_exr(frame, path, compression=compression or DEFAULT_COMPRESSION, overwrite=overwrite)
    else:
        from hdwarp.writeback.npz import write_npz

        write_npz(frame, path, compress=compression == "zip", overwrite=overwrite)
    return Path(path)


def check_compression(kind: str, compression: str | int, where: str = "compression") -> None:
    """Raise ArgumentError unless files of this kind can be compressed so: EXR by OpenEXR's names in lower case, PNG by a level from 0
    (none) to 9 (smallest), NPZ by "none" or "zip". ``where``: the option or file, for the message."""
    if kind == "exr":
        from hdwarp.writeback.exr import LOSSLESS, LOSSY

        if compression not in LOSSLESS + LOSSY:
            lossless, lossy = ", ".join(LOSSLESS), ", ".join(LOSSY)
            raise ArgumentError(f"{where}: EXR compression {compression!r} is unknown; there are {lossless}; with loss in colour {lossy}")
    elif kind == "png":
        if isinstance(compression, bool) or not isinstance(compression, int) or not 0 <= compression <= 9:
            raise ArgumentError(f"{where}: PNG compression {compression!r} is no level from 0 (none, fast) to 9 (smallest, slow)")
    elif kind == "npz":
        if compression not in ("none", "zip"):
            raise ArgumentError(f"{where}: NPZ compression {compression!r} is unknown; there are none, zip")
    else:
        raise ArgumentError(f"{where}: compression {compression!r} is for .exr, .png and .npz")
