"""writeback: frames to files and USD layers, whole or not at all; the suffix chooses the format. Loads no codec until used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hdwarp.errors import ArgumentError
from hdwarp.writeback import names

if TYPE_CHECKING:
    from hdwarp.frame import Frame

__all__ = ["write_frame", "write_template"]


def write_frame(
    frame: Frame, path: str | os.PathLike[str], *, only: str | None = None, overwrite: bool = True, compression: str | None = None
) -> Path:
    """Write one file, whose name is taken as it is. EXR and NPZ hold all AOVs; PNG and JPEG one, ``only`` names it if there are several.

    ``compression`` is EXR's ("zip", "none", "dwaa", ...; see `exr`), or "none" | "zip" for NPZ.
    """
    kind = names.format_of(path)
    if kind in ("png", "jpeg"):
        from hdwarp.writeback.png import write_jpeg, write_png

        if compression is not None:
            raise ArgumentError(f"compression='{compression}' is for .exr and .npz; '{os.fspath(path)}' is neither")
        if only is None:
            variables = [var for var, _, _ in frame.vars]
            if len(variables) != 1:
                root, suffix = os.path.splitext(os.fspath(path))
                raise ArgumentError(
                    f"'{os.fspath(path)}' holds one AOV and the frame has {', '.join(variables)}; save .exr or .npz, "
                    f"or hdwarp.writeback.write_template(frame, '{root}.{{aov}}{suffix}')"
                )
            only = variables[0]
        (write_png if kind == "png" else write_jpeg)(frame, path, only, overwrite=overwrite)
    elif only is not None:
        raise ArgumentError(f"'{os.fspath(path)}' holds all AOVs; a picture of '{only}' alone is .png or .jpg")
    elif kind == "exr":
        from hdwarp.writeback.exr import DEFAULT_COMPRESSION, write_exr

        write_exr(frame, path, compression=compression or DEFAULT_COMPRESSION, overwrite=overwrite)
    else:
        from hdwarp.writeback.npz import write_npz

        if compression not in (None, "none", "zip"):
            raise ArgumentError(f"compression='{compression}' is no way to write .npz; there are none, zip")
        write_npz(frame, path, compress=compression == "zip", overwrite=overwrite)
    return Path(path)


def write_template(frame: Frame, template: str | os.PathLike[str], *, overwrite: bool = True) -> list[Path]:
    """Write a frame to the names that a template makes (see `names`): a picture each where it holds ``{aov}``. Returns the files."""
    output = names.Output(str(frame.stage), frame.product, frame.camera, frame=frame.time)
    if not names.holds_one_aov(names.template_of(template, output)):
        (target,) = names.plan(template, [output])
        return [write_frame(frame, target, overwrite=overwrite)]
    variables = [var for var, _, _ in frame.vars]
    targets = names.plan(template, names.with_aovs(output, variables))
    return [write_frame(frame, target, only=var, overwrite=overwrite) for var, target in zip(variables, targets, strict=True)]
