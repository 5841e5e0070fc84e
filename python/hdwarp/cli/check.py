"""cli.check: `hdwarp check`: does a stage hold what rendering depends on? Exit code 1 on errors."""

from __future__ import annotations

from typing import Annotated

import typer

from hdwarp.cli.console import DONE, FAILED, print_json, say, show_diagnostics
from hdwarp.errors import Severity

HELP = "Check what rendering a stage depends on: composition, cameras, products, geometry. Exit code 1 on errors."


def check(
    stage: Annotated[str, typer.Argument(metavar="STAGE")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> int:
    from hdwarp.cli.inspect import inspect_stage

    _, diagnostics = inspect_stage(stage)
    broken = any(item.severity is Severity.ERROR for item in diagnostics)
    if as_json:
        print_json({"stage": stage, "ok": not broken, "diagnostics": [item.as_dict() for item in diagnostics]})
    else:
        show_diagnostics(diagnostics, verbose=True)
        say(f"{stage}: {'errors were found' if broken else 'no errors'}")
    return FAILED if broken else DONE
