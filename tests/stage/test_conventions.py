"""Camera orientations told with other axes. Expected quaternions are those of public tests, or one turn worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hdwarp.errors import ArgumentError
from hdwarp.stage.conventions import CONVENTIONS, convert_orientation, multiply, opengl_from, rotation_from_quaternion

IDENTITY = (0.0, 0.0, 0.0, 1.0)
LOOKING_AT_THE_ORIGIN = (0.17591988, 0.42470818, 0.82047324, 0.33985113)  # from (2.5, 2.5, 2.5), Z up


def same_turn(found, expected, atol=1e-7):
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_allclose(found * np.sign(found @ expected), expected, atol=atol)


@pytest.mark.parametrize(
    ("quaternion", "source", "target", "expected"),
    [
        (LOOKING_AT_THE_ORIGIN, "opengl", "ros", (0.33985114, 0.82047325, -0.42470819, -0.17591989)),
        (LOOKING_AT_THE_ORIGIN, "opengl", "world", (-0.27984815, -0.1159169, 0.88047623, -0.3647052)),
        (IDENTITY, "opengl", "ros", (1.0, 0.0, 0.0, 0.0)),
        (IDENTITY, "opengl", "world", (-0.5, 0.5, 0.5, 0.5)),
        (IDENTITY, "world", "ros", (-0.5, 0.5, -0.5, 0.5)),
        (LOOKING_AT_THE_ORIGIN, "opengl", "opengl", LOOKING_AT_THE_ORIGIN),
    ],
)
def test_conversions(quaternion, source, target, expected):
    same_turn(convert_orientation(quaternion, source, target), expected)
    same_turn(convert_orientation(expected, target, source), quaternion)


@pytest.mark.parametrize(
    ("convention", "forward", "up"), [("opengl", (0, 0, -1), (0, 1, 0)), ("ros", (0, 0, 1), (0, -1, 0)), ("world", (1, 0, 0), (0, 0, 1))]
)
def test_axes(convention, forward, up):
    """Each convention's forward and up are the camera's -Z and +Y."""
    np.testing.assert_array_equal(opengl_from(convention) @ forward, (0, 0, -1))
    np.testing.assert_array_equal(opengl_from(convention) @ up, (0, 1, 0))
    assert np.linalg.det(opengl_from(convention)) == pytest.approx(1.0)


def test_quaternions_agree_with_scipy():
    random = np.random.default_rng(3)
    a, b = random.normal(size=(2, 20, 4))
    turns = Rotation.from_quat(a), Rotation.from_quat(b)
    for found, expected in zip(multiply(a, b), (turns[0] * turns[1]).as_matrix(), strict=True):
        np.testing.assert_allclose(rotation_from_quaternion(found), expected, atol=1e-12)


def test_wrong_names_and_quaternions():
    with pytest.raises(ArgumentError, match="'opencv'; known: opengl, ros, world"):
        opengl_from("opencv")
    for quaternion in ((0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (np.nan, 0.0, 0.0, 1.0)):
        with pytest.raises(ArgumentError, match="orientation"):
            rotation_from_quaternion(quaternion)
    assert CONVENTIONS == ("opengl", "ros", "world")
