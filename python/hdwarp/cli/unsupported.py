"""cli.unsupported: commands of the interface that this version does not carry out; they say so and fail."""

from __future__ import annotations

import typer

from hdwarp.errors import NotSupported

ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def import_robot(context: typer.Context) -> None:
    raise NotSupported("'hdwarp import' (MJCF to USD) is not supported yet")


def view(context: typer.Context) -> None:
    raise NotSupported("'hdwarp view' (the inspector) is not supported yet; 'hdwarp inspect' prints what a stage holds")
