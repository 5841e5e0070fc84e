"""cli.frames: usdrecord's frame specifications: "1", "1:10", "101:109x2", "10:1x-3", joined by commas."""

from __future__ import annotations

import math
import re

from hdwarp.errors import ArgumentError

_RANGE = re.compile(r"^(?P<first>[-+.\deE]+)(?::(?P<last>[-+.\deE]+)(?:x(?P<step>[-+.\deE]+))?)?$")
_MOST = 1_000_000


def parse_frames(text: str) -> list[float]:
    """Time codes of a specification, in its order. Raises ArgumentError that shows the part it cannot read."""
    frames: list[float] = []
    for part in text.replace(" ", "").split(","):
        match = _RANGE.match(part)
        try:
            first = float(match["first"])
            last = float(match["last"]) if match["last"] else first
            step = float(match["step"]) if match["step"] else (1.0 if last >= first else -1.0)
            if not all(math.isfinite(value) for value in (first, last, step)):
                raise ValueError
        except (TypeError, ValueError):
            raise ArgumentError(f"--frames: cannot read {part!r}; write 7, 1:10 or 101:109x2, joined by commas") from None
        if step == 0.0 or (last - first) * step < 0.0:
            raise ArgumentError(f"--frames: {part!r} goes nowhere: the step {step:g} does not lead from {first:g} to {last:g}")
        steps = (last - first) / step + 1e-9
        if not steps < _MOST or len(frames) + int(steps) + 1 > _MOST:
            raise ArgumentError(f"--frames: {text!r} names more than {_MOST} frames")
        frames += [round(first + i * step, 9) for i in range(int(steps) + 1)]  # 0:1x0.1 means 0.3, not 0.30000000000000004
    return list(dict.fromkeys(frames))


def parse_resolution(text: str) -> tuple[int, int]:
    """(width, height) of "1280x720"."""
    match = re.fullmatch(r"\s*(\d+)\s*[xX,]\s*(\d+)\s*", text)
    if not match:
        raise ArgumentError(f"--resolution: cannot read {text!r}; write WIDTHxHEIGHT, such as 1280x720")
    return int(match[1]), int(match[2])
