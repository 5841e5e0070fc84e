"""delegate.sampling: where the samples of a pixel lie. Plain numbers."""

from __future__ import annotations

import math

from hdwarp.errors import ArgumentError

MAX_SAMPLES = 1024


def sample_grid(samples: int) -> list[tuple[float, float]]:
    """Offsets from the pixel's centre, in pixels, of a k x k grid of ``samples`` = k * k points.

    Sample 0 is the truth sample, the centre: a grid with odd k lists it first, one with even k does not contain it, so that it is
    traced for the truth planes and left out of the colour's average. Raises ArgumentError for a number that is no square.
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= MAX_SAMPLES:
        raise ArgumentError(f"samples={samples!r}: expected a square number from 1 to {MAX_SAMPLES}")
    side = math.isqrt(samples)
    if side * side != samples:
        raise ArgumentError(f"samples={samples}: samples lie on a k x k grid; use {side * side} or {(side + 1) ** 2}")
    steps = [(i + 0.5) / side - 0.5 for i in range(side)]
    grid = [(x, y) for y in steps for x in steps]
    if side % 2:
        grid.remove((0.0, 0.0))
        grid.insert(0, (0.0, 0.0))
    return grid
