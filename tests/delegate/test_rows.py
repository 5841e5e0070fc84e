"""Stable rows: numbers stay while items live, freed runs are used again."""

from __future__ import annotations

import numpy as np

from hdwarp.delegate.rows import HostColumns, RowMap, is_sparse


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


def test_free_rows_are_joined_and_used_again():
    """However lengths come and go, a table is at most about twice as long as what it held at most."""
    rng, rows = np.random.default_rng(3), RowMap()
    held = {}
    for step in range(3000):
        key = int(rng.integers(40))
        if key in rows and rng.random() < 0.4:
            rows.remove(key)
            del held[key]
        else:
            held[key] = int(rng.integers(1, 200))
            rows.insert(key, held[key])
        if step % 100 == 0:
            used = np.concatenate([np.arange(*np.cumsum(rows.run(key))) for key in rows] or [[]])
            assert len(np.unique(used)) == len(used) == sum(held.values())
    assert rows.allocator.size < 2.5 * 40 * 200


def test_a_renamed_key_keeps_its_run():
    rows = RowMap()
    rows.insert("a", 3)
    rows.rename("a", "b")
    assert "a" not in rows and rows.run("b") == (0, 3)


def test_columns_grow_by_doubling_and_keep_what_they_hold():
    columns = HostColumns(value=(np.int32, (2,), -1))
    columns.reserve(3)
    columns["value"][2] = (5, 6)
    columns.reserve(columns.capacity + 1)
    assert columns["value"][2].tolist() == [5, 6]
    assert columns["value"][-1].tolist() == [-1, -1]
    columns.clear_rows(2, 1)
    assert columns["value"][2].tolist() == [-1, -1]


def test_numbering_anew_leaves_no_gaps():
    rows = RowMap()
    for key, count in (("a", 2), ("b", 3), ("c", 1), ("d", 2)):
        rows.insert(key, count)
    rows.remove("b")
    assert rows.renumber("dac").tolist() == [6, 7, 0, 1, 5]
    assert [rows.run(key) for key in "dac"] == [(0, 2), (2, 2), (4, 1)]
    assert rows.insert("e", 3) == 5 and rows.allocator.peak == 8
    for key in "dace":
        rows.remove(key)
    assert rows.renumber([]).tolist() == [] and rows.insert("f") == 0


def test_few_rows_are_never_sparse():
    assert not is_sparse(0, 4096) and is_sparse(1024, 4097) and not is_sparse(1025, 4097)
    rows = RowMap()
    for i in range(5000):
        rows.insert(i)
    for i in range(3751):
        assert not rows.allocator.is_sparse
        rows.remove(4999 - i)
    assert rows.allocator.is_sparse
    rows.insert("a", 100)  # forgets the free rows at the end; the table is as large as before
    assert rows.allocator.size < 2000 and rows.allocator.peak == 5000


def test_columns_keep_rows_in_another_order():
    columns = HostColumns(value=(np.int32, (), -1))
    columns.reserve(1000)
    columns["value"][:] = np.arange(columns.capacity)
    columns.keep(np.array([900, 3, 17]))
    assert columns.capacity == 16 and columns["value"].tolist() == [900, 3, 17] + [-1] * 13
    columns.keep(np.zeros(0, np.int64))
    assert columns.capacity == 0 and len(columns["value"]) == 0
