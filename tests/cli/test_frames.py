"""Frame specifications as usdrecord writes them, and image sizes."""

from __future__ import annotations

import pytest

from hdwarp.cli.frames import parse_frames, parse_resolution
from hdwarp.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "frames"),
    [
        ("7", [7]),
        ("1:4", [1, 2, 3, 4]),
        ("4:1", [4, 3, 2, 1]),
        ("101:109x2,120", [101, 103, 105, 107, 109, 120]),
        ("0:1x0.25", [0, 0.25, 0.5, 0.75, 1]),
        ("-2:0", [-2, -1, 0]),
        ("10:1x-3", [10, 7, 4, 1]),
        ("1,1,2", [1, 2]),
    ],
)
def test_specifications(text, frames):
    assert parse_frames(text) == pytest.approx(frames)


@pytest.mark.parametrize("text", ["", "a", "1:", "1:5x0", "1:5x-1", "1-5", "0:1e9", "1e999", "1:1e999", "1:1e300x1e-10", "1:2x1e-320"])
def test_what_cannot_be_read_is_shown(text):
    with pytest.raises(ArgumentError, match="--frames"):
        parse_frames(text)


def test_resolutions():
    assert parse_resolution("1280x720") == (1280, 720)
    for text in ("1280", "1280*720", "x", "-1x5"):
        with pytest.raises(ArgumentError, match="WIDTHxHEIGHT"):
            parse_resolution(text)
