"""Samples of a pixel: k x k grids around the centre; the truth sample first where the grid holds it."""

from __future__ import annotations

import pytest

from hdwarp.delegate.sampling import sample_grid
from hdwarp.errors import ArgumentError


def test_odd_grids_list_the_centre_first():
    grid = sample_grid(9)
    assert grid[0] == (0.0, 0.0)
    assert sorted(x for x, _ in grid) == pytest.approx([-1 / 3] * 3 + [0.0] * 3 + [1 / 3] * 3)


def test_even_grids_do_not_hold_the_centre():
    assert sorted(sample_grid(4)) == [(-0.25, -0.25), (-0.25, 0.25), (0.25, -0.25), (0.25, 0.25)]


@pytest.mark.parametrize(("samples", "hint"), [(8, "use 4 or 9"), (0, "from 1"), (2.0, "from 1"), (True, "from 1"), (-4, "from 1")])
def test_other_numbers_are_refused_with_a_cure(samples, hint):
    with pytest.raises(ArgumentError, match=hint):
        sample_grid(samples)
