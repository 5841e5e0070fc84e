"""Data types of the sensor classes: each with the sign its documents give it."""

from __future__ import annotations

import numpy as np
import pytest

from hdwarp.errors import ArgumentError
from hdwarp.sensors.data_types import data_type


def test_motion_vectors_count_left_and_up():
    """Right answer 52: a camera that moves to the right sends points left: -10 px of `motion`, +10 of `motion_vectors`."""
    row = data_type("motion_vectors")
    assert row.aov == "motion"
    values = row.values(np.array([[[-10.0, 4.0], [0.0, 0.0]]], np.float32))
    assert values.dtype == np.float32 and values.tolist() == [[[10.0, -4.0], [0.0, 0.0]]]
    assert not np.signbit(values[0, 1]).any()


def test_unknown_data_types_are_refused_with_what_there_is():
    with pytest.raises(ArgumentError, match="motion_vectors"):
        data_type("motion_vector")
