"""Aspect-ratio policies and data windows against UsdRender's rules."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdwarp.errors import ArgumentError
from hdwarp.stage.spec import ImageSpec
from hdwarp.views.conform import CONFORM_POLICIES, MAX_SIDE, conform_aperture, image_spec

USD = (20.955, 15.2908)


@pytest.mark.parametrize(
    ("policy", "resolution", "aperture"),
    [
        ("expandAperture", (1920, 1080), (27.183644, 15.2908)),
        ("cropAperture", (1920, 1080), (20.955, 11.787187)),
        ("expandAperture", (1024, 1024), (20.955, 20.955)),
        ("cropAperture", (1024, 1024), (15.2908, 15.2908)),
        ("expandAperture", (480, 640), (20.955, 27.94)),
        ("cropAperture", (480, 640), (11.4681, 15.2908)),
        ("expandAperture", (640, 480), (20.955, 15.71625)),
        ("expandAperture", (2048, 1080), (28.995887, 15.2908)),
        ("adjustApertureHeight", (320, 240), (20.955, 15.71625)),
        ("adjustApertureWidth", (480, 640), (11.4681, 15.2908)),
        ("adjustPixelAspectRatio", (1920, 1080), USD),
    ],
)
def test_apertures(policy, resolution, aperture):
    assert conform_aperture(USD, policy, resolution[0] / resolution[1])[0] == pytest.approx(aperture, rel=1e-6)


@pytest.mark.parametrize(("resolution", "ratio"), [((1920, 1080), 0.77086793), ((2048, 1080), 0.72268869)])
def test_adjusted_pixel_aspect_ratio(resolution, ratio):
    """It comes out the same whatever ratio was authored."""
    aspect = resolution[0] / resolution[1]
    assert conform_aperture(USD, "adjustPixelAspectRatio", aspect)[1] == pytest.approx(ratio, rel=1e-6)
    assert conform_aperture(USD, "adjustPixelAspectRatio", aspect * 2.0, 2.0)[1] == pytest.approx(ratio, rel=1e-6)


@pytest.mark.parametrize("policy", CONFORM_POLICIES)
def test_a_side_of_0_follows_the_image(policy):
    assert conform_aperture((0.0, 10.0), policy, 0.5)[0] == (5.0, 10.0)
    assert conform_aperture((10.0, 0.0), policy, 0.5)[0] == (10.0, 20.0)


@settings(max_examples=200, deadline=None)
@given(st.floats(0.1, 50.0), st.floats(0.1, 50.0), st.floats(0.05, 20.0))
def test_policies_do_what_their_names_say(width, height, aspect):
    w, h = conform_aperture((width, height), "expandAperture", aspect)[0]
    assert w >= width * (1 - 1e-12)
    assert h >= height * (1 - 1e-12)
    assert w / h == pytest.approx(aspect)
    w, h = conform_aperture((width, height), "cropAperture", aspect)[0]
    assert w <= width * (1 + 1e-12)
    assert h <= height * (1 + 1e-12)
    assert w / h == pytest.approx(aspect)
    assert conform_aperture((width, height), "adjustApertureWidth", aspect)[0] == pytest.approx((height * aspect, height))
    assert conform_aperture((width, height), "adjustApertureHeight", aspect)[0] == pytest.approx((width, width / aspect))
    assert conform_aperture((width, height), "adjustPixelAspectRatio", aspect)[0] == (width, height)


@pytest.mark.parametrize("aperture", [(0.0, 0.0), (-1.0, 2.0), (math.nan, math.nan)])
def test_apertures_that_are_none(aperture):
    with pytest.raises(ArgumentError, match="aperture"):
        conform_aperture(aperture, "expandAperture", 1.0)


def test_unknown_policies_are_named():
    with pytest.raises(ArgumentError, match="'stretch'.*expandAperture"):
        conform_aperture(USD, "stretch", 1.0)
    with pytest.raises(ArgumentError, match="'stretch'.*expandAperture"):
        image_spec((4, 4), policy="stretch")


@pytest.mark.parametrize(
    ("count", "low", "high", "first", "last"),
    [(10, 0.25, 0.75, 2, 6), (7, 0.0, 0.5, 0, 2), (8, 0.25, 0.75, 2, 5), (10, -0.1, 1.1, -1, 10), (10, 0.05, 0.95, 0, 8)],
)
def test_pixel_rule(count, low, high, first, last):
    """A pixel is in if its centre is; the smaller edge counts, the larger does not."""
    window = np.array([low, 0.0, high, 1.0], np.float32).tolist()
    image = image_spec((count, 4), data_window_ndc=window)
    assert (image.x0, image.x0 + image.width - 1) == (first, last)
    # The same edges upwards: rows count from the top, so that the lower edge is the last row.
    image = image_spec((4, count), data_window_ndc=(0.0, window[0], 1.0, window[2]))
    assert (count - image.y0 - image.height, count - 1 - image.y0) == (first, last)


def test_upper_half_is_the_first_rows():
    assert image_spec((8, 6), data_window_ndc=(0.0, 0.5, 1.0, 1.0)) == ImageSpec(8, 6, 0, 0, 8, 3)


def test_overscan_reaches_beyond_the_image():
    """Ten percent on each side of 1920x1080."""
    image = image_spec((1920, 1080), data_window_ndc=np.array([-0.1, -0.1, 1.1, 1.1], np.float32).tolist())
    assert (image.x0, image.y0, image.width, image.height) == (-192, -108, 2304, 1296)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, MAX_SIDE), st.data())
def test_pixel_aligned_windows_survive_float32(width, data):
    x0 = data.draw(st.integers(-width, 2 * width - 1))
    x1 = data.draw(st.integers(x0 + 1, min(x0 + MAX_SIDE, 2 * width)))
    window = np.array([x0 / width, 0.0, x1 / width, 1.0], np.float32).tolist()
    image = image_spec((width, 1), data_window_ndc=window)
    assert (image.x0, image.width) == (x0, x1 - x0)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5000), st.data())
def test_edges_on_pixel_centres_survive_float32(width, data):
    """The smaller edge on a centre takes the pixel in, the larger leaves it out."""
    first = data.draw(st.integers(-width, width - 1))
    last = data.draw(st.integers(first + 1, 2 * width))
    window = np.array([(first + 0.5) / width, 0.0, (last + 0.5) / width, 1.0], np.float32).tolist()
    image = image_spec((width, 1), data_window_ndc=window)
    assert (image.x0, image.width) == (first, last - first)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"resolution": (0, 10)}, r"resolution is \(0, 10\)"),
        ({"resolution": (-4, 10)}, "resolution"),
        ({"resolution": (10, 1_000_000)}, "65536"),
        ({"resolution": (65536, 65536)}, "pixels"),
        ({"resolution": (4.5, 4)}, "whole"),
        ({"resolution": 640}, "width, height"),
        ({"resolution": "640x480"}, "width, height"),
        ({"resolution": (4, math.nan)}, "width, height"),
        ({"resolution": (4, 4), "pixel_aspect_ratio": 0.0}, "pixelAspectRatio"),
        ({"resolution": (4, 4), "pixel_aspect_ratio": math.inf}, "pixelAspectRatio"),
        ({"resolution": (4, 4), "data_window_ndc": (0.6, 0.0, 0.4, 1.0)}, "no pixel centre"),
        ({"resolution": (4, 4), "data_window_ndc": (0.3, 0.0, 0.35, 1.0)}, "no pixel centre"),
        ({"resolution": (4, 4), "data_window_ndc": (0.0, 0.0, math.nan, 1.0)}, "finite"),
        ({"resolution": (1000, 4), "data_window_ndc": (-100.0, 0.0, 100.0, 1.0)}, "200000 x 4"),
    ],
)
def test_images_that_are_none(arguments, match):
    with pytest.raises(ArgumentError, match=match):
        image_spec(**arguments)
