"""Comparing outputs of two runs: equal up to when rows came, and nothing else."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from nosync.demo.proof import Compared, compare_sinks, compare_views


class Home:
    def __init__(self, **views):
        self._views = {name: pa.Table.from_pylist(rows) for name, rows in views.items()}
        self.views = tuple(views)

    def view(self, name):
        return self._views[name]


def sink(folder, *epochs):
    folder.mkdir()
    for number, changes in enumerate(epochs, start=1):
        rows = [{"item": item, "_epoch": number, "_diff": times} for item, times in changes.items()]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"epoch-{number}.parquet")
    return folder


def test_views_are_equal_whatever_the_order_and_the_epoch_of_their_rows():
    one = Home(spend=[{"user": "a", "epoch": 1}, {"user": "b", "epoch": 2}])
    other = Home(spend=[{"user": "b", "epoch": 1}, {"user": "a", "epoch": 1}])
    assert compare_views(one, other) == [Compared("spend", 2, 2, 0)]


def test_a_row_that_came_twice_is_different():
    assert compare_views(Home(v=[{"x": 1}, {"x": 1}]), Home(v=[{"x": 1}])) == [Compared("v", 2, 1, 1)]


def test_a_changed_row_is_different_on_both_sides():
    assert compare_views(Home(v=[{"x": 1}]), Home(v=[{"x": 2}])) == [Compared("v", 1, 1, 2)]


def test_the_files_of_a_sink_add_up_to_the_same(tmp_path):
    many = sink(tmp_path / "many", {"viola": 1, "atlas": 1}, {"viola": -1, "fox": 1})
    one = sink(tmp_path / "one", {"atlas": 1, "fox": 1})
    assert compare_sinks("log", many, one) == Compared("log", 2, 2, 0)


def test_an_epoch_that_was_delivered_twice_is_noticed(tmp_path):
    twice = sink(tmp_path / "twice", {"viola": 1}, {"viola": 1})
    once = sink(tmp_path / "once", {"viola": 1})
    assert compare_sinks("log", twice, once).different == 1
