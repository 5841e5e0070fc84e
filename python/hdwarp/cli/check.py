"""cli.check: `hdwarp check`: does a stage hold what rendering depends on? Exit code 1 on errors."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from hdwarp.cli.console import DONE, FAILED, print_json, say, summarise
from hdwarp.errors import ArgumentError

HELP = (
    "Check what rendering stages depends on: composition, units, cameras, products, geometry, materials, labels; usd-core's validators"
    " and hdWarp's own. Exit code 1 on errors."
)
_FEW = 10  # findings of one code shown; the rest are counted


def check(
    stages: Annotated[list[str] | None, typer.Argument(metavar="STAGE...", help="Stages to check.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="CODE", help="Only codes like this, as in 'camera-*'.")] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", metavar="CODE", help="No codes like this, as in 'usdPhysics*'.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail as errors do.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help=f"All findings of one code, not the first {_FEW}.")] = False,
    list_codes: Annotated[bool, typer.Option("--list", help="Print all codes and what they mean.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout, a line a stage.")] = False,
) -> int:
    from hdwarp.cli.check_run import Report, report_on
    from hdwarp.stage.checks.run import Choice, catalogue

    if list_codes:
        _print_codes(catalogue(), as_json)
        return DONE
    if not stages:
        raise ArgumentError("no stage is given; name one or more, or --list for all codes")
    choice = Choice(tuple(only or ()), tuple(skip or ()))
    choice.check_patterns()
    reports: list[Report] = []
    gc.enable()  # the command line starts without; of many stages something may be left
    for path in stages:
        report = report_on(path, choice)
        reports.append(report)
        if as_json:
            print(json.dumps(report.as_dict(strict), default=str), flush=True)
        else:
            _show(report, strict, verbose)
    failed = sum(not report.passes(strict) for report in reports)
    if len(reports) > 1 and not as_json:
        say(f"{failed} of {len(reports)} stages failed" if failed else f"all {len(reports)} stages passed")
    return FAILED if failed else DONE


def _show(report, strict: bool, verbose: bool) -> None:
    """A line a finding, worst first, and one that counts them."""
    shown: Counter[str] = Counter()
    for finding in report.findings:
        shown[finding.code] += 1
        if verbose or shown[finding.code] <= _FEW:
            say(str(finding))
    hidden = sum(number - _FEW for number in shown.values() if number > _FEW) if not verbose else 0
    more = f" ({hidden} not shown; --verbose shows all)" if hidden else ""
    say(f"{report.stage}: {'passed' if report.passes(strict) else 'failed'}: {summarise(report.findings) or 'nothing found'}{more}")


def _print_codes(rows: Sequence[tuple[str, str, str, str]], as_json: bool) -> None:
    if as_json:
        print_json([dict(zip(("code", "severity", "source", "meaning"), row, strict=True)) for row in rows])
        return
    width = max(len(code) for code, *_ in rows)
    for code, severity, source, meaning in rows:
        print(f"{code:<{width}}  {severity:<7}  {source:<6}  {meaning}")
