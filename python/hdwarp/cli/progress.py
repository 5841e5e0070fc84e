"""cli.progress: how far a run is: one line that moves on a terminal, a plain line a picture elsewhere."""

from __future__ import annotations

import time as clock

from hdwarp.batch.jobs import JobResult, describe
from hdwarp.cli import console


class Progress:
    """Tells each result as it comes, errors at once, with the time left in longer runs."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self.total, self.done, self.quiet = total, 0, quiet
        self.errors_told = not quiet and total > 1  # a single picture's error is told at the end, with the diagnostics
        self._live = not quiet and total > 1 and console.is_terminal()
        self._written = self._kept = self._failed = 0
        self._rendered = 0
        self._start = self._first = clock.perf_counter()

    def step(self, result: JobResult) -> None:
        self.done += 1
        self._written += len(result.written)
        self._kept += len(result.kept)
        self._failed += result.error is not None
        if result.written or result.error is not None:
            self._rendered += 1
            if self._rendered == 1:
                self._first = clock.perf_counter()
        if self.quiet:
            return
        name = describe(result.job)
        if result.error is not None:
            if self.errors_told:
                console.say(f"error: {name}: {result.error}")
            return
        place = f"[{self.done}/{self.total}] " if self.total > 1 else ""
        left = f" ({left})" if (left := self.time_left()) else ""
        if self._live:
            failed = f", {self._failed} failed" if self._failed else ""
            console.show(f"{place}{name}{failed}{left}")
            return
        files = ", ".join(str(path) for path in [*result.written, *result.kept])
        what = "kept" if result.kept and not result.written else "wrote"
        console.say(f"{place}{name}: {what} {files}{left}")

    def time_left(self) -> str:
        """ "12 s left"; empty where that is not known yet, or next to nothing. Pictures that are kept take no time, and the first one,
        for which kernels may be compiled, says nothing of the others."""
        if self._rendered < 2:
            return ""
        seconds = (clock.perf_counter() - self._first) / (self._rendered - 1) * (self.total - self.done)
        return f"{duration(seconds)} left" if seconds >= 2.0 else ""

    def finish(self) -> None:
        """On a terminal: what the moving line has shown, in one that stays."""
        if not self._live:
            return
        parts = [f"{self._written} file{'s' if self._written != 1 else ''} written"]
        parts += [f"{self._kept} kept"] if self._kept else []
        parts += [f"{self._failed} of {self.total} pictures failed"] if self._failed else []
        console.say(f"{', '.join(parts)} in {duration(clock.perf_counter() - self._start)}")


def duration(seconds: float) -> str:
    """ "0.4 s", "12 s", "3 min 20 s", "1 h 5 min"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
