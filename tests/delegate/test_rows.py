"""Stable rows: numbers stay while items live, freed runs are used again."""

from __future__ import annotations

import numpy as np

from hdwarp.delegate.rows import HostColumns, RowMap


def test_a_row_keeps_its_number_while_others_come_and_go():
    rows = RowMap()
    first, second, third = (rows.insert(key) for key in "abc")
    assert (first, second, third) == (0, 1, 2)
    rows.remove("b")
    assert rows["a"] == 0 and rows["c"] == 2
    assert rows.insert("d") == 1  # the freed row
    assert rows.insert("e") == 3


def test_a_run_that_changes_its_length_moves():
    rows = RowMap()
    rows.insert("a", 2)
    rows.insert("b", 3)
    assert rows.insert("a", 4) == 5
    assert rows.run("b") == (2, 3)
    assert rows.insert("c", 2) == 0  # where a was


def test_keep_only_tells_what_became_free():
    rows = RowMap()
    for key in "abcd":
        rows.insert(key)
    assert sorted(rows.keep_only("bd")) == [(0, 1), (2, 1)]
    assert sorted(rows.keys()) == ["b", "d"]


def test_columns_grow_by_doubling_and_keep_what_they_hold():
    columns = HostColumns(value=(np.int32, (2,), -1))
    columns.reserve(3)
    columns["value"][2] = (5, 6)
    columns.reserve(columns.capacity + 1)
    assert columns["value"][2].tolist() == [5, 6]
    assert columns["value"][-1].tolist() == [-1, -1]
    columns.clear_rows(2, 1)
    assert columns["value"][2].tolist() == [-1, -1]
