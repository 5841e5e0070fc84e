"""cli.interrupts: Ctrl-C and SIGTERM that stop between pictures, where everything is whole."""

from __future__ import annotations

import signal
from types import FrameType

from hdwarp.cli.console import say

_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # SIGTERM: how farm managers and containers end a job


class Interrupts:
    """While entered, the first signal only sets ``requested``; the work asks for it at places where stopping is safe. A second one raises
    KeyboardInterrupt as soon as Python runs: never in the middle of a native call.

    Python raises KeyboardInterrupt wherever it happens to be, a destructor included, where it is lost.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, object] = {}

    def __call__(self) -> bool:
        return self.requested

    def __enter__(self) -> Interrupts:
        for number in _SIGNALS:
            try:
                self._before[number] = signal.signal(number, self._handle)
            except ValueError:  # not the main thread: signals are not ours
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)  # None: it was not set from Python

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        again = "Ctrl-C again" if number == signal.SIGINT else "a second signal"
        say(f"stopping when the pictures at hand are rendered and written; {again} gives up files that are not begun")
