"""cli.console: what the command says to people: one line a message, to stderr; results for programs go to stdout as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from hdwarp.errors import Diagnostic, Severity

DONE, FAILED, USAGE, SOME_FAILED = 0, 1, 2, 3  # exit codes
_showing = False  # a line that moves stands on the terminal
_FEW = 3  # diagnostics of one code shown in full; the rest are counted


def say(message: str) -> None:
    _clear()
    print(f"hdwarp: {message}", file=sys.stderr, flush=True)


def show(message: str) -> None:
    """On a terminal: a line that the next message takes the place of."""
    global _showing
    text = f"hdwarp: {message}"
    width = shutil.get_terminal_size().columns
    print(f"\r{text if len(text) < width else text[: width - 2] + '…'}\x1b[K", end="", file=sys.stderr, flush=True)
    _showing = True


def _clear() -> None:
    global _showing
    if _showing:
        print("\r\x1b[K", end="", file=sys.stderr)
        _showing = False


def is_terminal() -> bool:
    """Whether messages go to someone who watches."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


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
            say(str(item))
    summary = summarise(items)
    if summary:
        hidden = any(item.severity is Severity.NOTE for item in items) or any(count > _FEW for count in shown.values())
        say(summary + ("; --verbose shows all" if hidden and not verbose else ""))


def summarise(diagnostics: Sequence[Diagnostic]) -> str:
    """ "2 errors, 1 warning, 5 notes"."""
    counts = Counter(item.severity for item in diagnostics)
    words = [f"{counts[severity]} {severity}{'s' if counts[severity] > 1 else ''}" for severity in reversed(Severity) if counts[severity]]
    return ", ".join(words)
