"""cli: the `hdwarp` command. Light to import: the renderer is loaded by the command that needs it."""

from __future__ import annotations

from hdwarp.cli.app import main

__all__ = ["main"]
