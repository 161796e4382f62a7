"""A flow that would read what one of its own sinks writes is refused: it would never come to rest."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nosync as ns
from nosync.flow.outputs import check_no_cycle
from nosync.model.bound import BoundSource, bound
from nosync.model.sink import BoundSink, bound_sink

CATALOG = {"type": "rest", "uri": "http://catalog:8181"}
ELSEWHERE = {"type": "rest", "uri": "http://catalog:9191"}
Make = Callable[[Path], Any]


def declared(source: Any) -> BoundSource:
    source.schema = None  # as if it had been declared
    return bound(source)


def check(source: BoundSource, sink: BoundSink, home: Path) -> None:
    check_no_cycle({"rows": source}, {"out": sink}, home)


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        (lambda at: ns.files(at / "in", format="csv"), lambda at: ns.csv(at / "in")),
        (lambda at: ns.files(at / "in", format="parquet"), lambda at: ns.to_delta(at / "in" / "table")),
        (lambda at: ns.delta(at / "table"), lambda at: ns.to_delta(at / "table")),
        (lambda at: ns.delta("s3://lake/table"), lambda at: ns.to_delta("s3://lake/table/")),
        (lambda at: ns.iceberg(CATALOG, "shop.spend"), lambda at: ns.to_iceberg(CATALOG, "shop.spend")),
        (lambda at: ns.files("s3://lake/in", format="parquet"), lambda at: ns.to_delta("s3://lake/in/table")),
    ],
)
def test_what_a_source_would_read_again_is_not_written(tmp_path: Path, source: Make, sink: Make) -> None:
    with pytest.raises(ns.Invalid, match=r'sink "out" would write .* which source "rows" reads') as refused:
        check(declared(source(tmp_path)), bound_sink(sink(tmp_path), "safe"), tmp_path / "home")
    assert "its own output" in refused.value.hint


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        (lambda at: ns.files(at / "in", format="csv"), lambda at: ns.csv(at / "out")),
        (lambda at: ns.files(at / "in" / "*.json", format="json"), lambda at: ns.csv(at / "in")),
        (lambda at: ns.delta(at / "table"), lambda at: ns.to_delta(at / "table two")),
        (lambda at: ns.files("s3://lake/in", format="parquet"), lambda at: ns.to_delta("s3://lake/in two")),
        (lambda at: ns.iceberg(CATALOG, "shop.spend"), lambda at: ns.to_iceberg(ELSEWHERE, "shop.spend")),
        (lambda at: ns.iceberg(CATALOG, "shop.spend"), lambda at: ns.to_iceberg(CATALOG, "shop.more")),
        (lambda at: ns.files(at, format="csv"), lambda at: ns.foreachEpoch(lambda rows, epoch: None)),
    ],
)
def test_what_lies_elsewhere_is(tmp_path: Path, source: Make, sink: Make) -> None:
    check(declared(source(tmp_path)), bound_sink(sink(tmp_path), "safe"), tmp_path.parent / "home")


def test_one_s_own_source_and_sink_may_say_where_they_read_and_write(tmp_path: Path) -> None:
    source: Any = SimpleNamespace(append_only=True, start=None, available=None, read=None, would_read=lambda address: address == "queue 7")
    sink: Any = SimpleNamespace(addresses=lambda: ["queue 6", "queue 7"])
    with pytest.raises(ns.Invalid, match='would write "queue 7"'):
        check(bound(source), bound_sink(sink, "safe"), tmp_path)
    source.would_read = lambda address: False
    check(bound(source), bound_sink(sink, "safe"), tmp_path)
