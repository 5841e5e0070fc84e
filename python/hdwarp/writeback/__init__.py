"""writeback: frames to files and USD layers, whole or not at all; the suffix chooses the format. Loads no codec until used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hdwarp.errors import ArgumentError
from hdwarp.writeback import names

if TYPE_CHECKING:
    from hdwarp.frame import Frame

__all__ = ["write", "write_file"]


def write(frame: Frame, path: str | os.PathLike[str], *, overwrite: bool = True, compression: str | None = None) -> list[Path]:
    """Save ``frame`` and return the files written. ``path`` may be a template (see `names`): PNG and JPEG hold one AOV, so several of
    them need ``{aov}`` in it; EXR and NPZ hold all. ``compression`` as in `write_file`.
    """
    output = names.Output(str(frame.stage), frame.product, frame.camera, frame=frame.time)
    if not names.holds_one_aov(names.template_of(path, output)):
        (target,) = names.plan(path, [output])
        return [write_file(frame, target, overwrite=overwrite, compression=compression)]
    variables = [var for var, _, _ in frame.vars]
    targets = names.plan(path, names.with_aovs(output, variables))
    return [
        write_file(frame, target, var, overwrite=overwrite, compression=compression) for var, target in zip(variables, targets, strict=True)
    ]


def write_file(
    frame: Frame, path: str | os.PathLike[str], name: str | None = None, *, overwrite: bool = True, compression: str | None = None
) -> Path:
    """One file; ``path`` is taken as it is. ``name`` is the var or AOV to show in a PNG or JPEG, needed if there are several.
    ``compression`` is EXR's ("zip", "none", "dwaa", ...; see `exr`), or "none" | "zip" for NPZ.
    """
    kind = names.format_of(path)
    if kind in ("png", "jpeg"):
        from hdwarp.writeback.png import write_jpeg, write_png

        if compression is not None:
            raise ArgumentError(f"compression='{compression}' is for .exr and .npz; '{os.fspath(path)}' is neither")
        if name is None:
            if len(frame.vars) != 1:
                raise ArgumentError(f"'{os.fspath(path)}' holds one AOV; name one of {', '.join(var for var, _, _ in frame.vars)}")
            name = frame.vars[0][0]
        (write_png if kind == "png" else write_jpeg)(frame, path, name, overwrite=overwrite)
    elif name is not None:
        raise ArgumentError(f"'{os.fspath(path)}' holds all AOVs; a picture of '{name}' alone is .png or .jpg")
    elif kind == "exr":
        from hdwarp.writeback.exr import DEFAULT_COMPRESSION, write_exr

        write_exr(frame, path, compression=compression or DEFAULT_COMPRESSION, overwrite=overwrite)
    else:
        from hdwarp.writeback.npz import write_npz

        if compression not in (None, "none", "zip"):
            raise ArgumentError(f"compression='{compression}' is no way to write .npz; there are none, zip")
        write_npz(frame, path, compress=compression == "zip", overwrite=overwrite)
    return Path(path)
