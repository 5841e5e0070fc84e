"""cli.console: what the command says to people: one line a message, to stderr; results for programs go to stdout as JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from hdwarp.errors import Diagnostic, Severity

DONE, FAILED, USAGE, SOME_FAILED = 0, 1, 2, 3  # exit codes
_FEW = 3  # diagnostics of one code shown in full; the rest are counted


def say(message: str) -> None:
    print(f"hdwarp: {message}", file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, default=str))


def show_diagnostics(diagnostics: Iterable[Diagnostic], *, verbose: bool = False) -> None:
    """A line each, errors first; many of one kind are cut short, and the count at the end says so. Notes only with ``verbose``."""
    items = sorted(diagnostics, key=lambda item: list(Severity).index(item.severity), reverse=True)
    shown: Counter[str] = Counter()
    for item in items:
        if item.severity is Severity.NOTE and not verbose:
            continue
        shown[item.code] += 1
        if verbose or shown[item.code] <= _FEW:
            print(f"hdwarp: {item}", file=sys.stderr)
    summary = summarise(items)
    if summary:
        hidden = any(item.severity is Severity.NOTE for item in items) or any(count > _FEW for count in shown.values())
        say(summary + ("; --verbose shows all" if hidden and not verbose else ""))


def summarise(diagnostics: Sequence[Diagnostic]) -> str:
    """ "2 errors, 1 warning, 5 notes"."""
    counts = Counter(item.severity for item in diagnostics)
    words = [f"{counts[severity]} {severity}{'s' if counts[severity] > 1 else ''}" for severity in reversed(Severity) if counts[severity]]
    return ", ".join(words)
