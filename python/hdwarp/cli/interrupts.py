"""cli.interrupts: Ctrl-C that stops between files, where everything is whole."""

from __future__ import annotations

import signal
from types import FrameType

from hdwarp.cli.console import say


class Interrupts:
    """While entered, the first SIGINT only sets ``requested``; the work asks for it at places where stopping is safe. A second one raises
    KeyboardInterrupt as soon as Python runs: never in the middle of a native call.

    Python raises KeyboardInterrupt wherever it happens to be, a destructor included, where it is lost.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before = None

    def __call__(self) -> bool:
        return self.requested

    def __enter__(self) -> Interrupts:
        try:
            self._before = signal.signal(signal.SIGINT, self._handle)
        except ValueError:  # not the main thread: signals are not ours
            self._before = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        say("stopping when the picture at hand is rendered; Ctrl-C again gives up its files too")
