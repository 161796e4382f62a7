"""What a home, its views, and what sources and sinks are made of show in a notebook."""

from html import escape

import pytest

import nosync as ns
from nosync.history import home, stored_view
from tests.security.homes import whole_home


def test_a_view_shows_its_first_rows_and_reads_no_more(monkeypatch) -> None:
    view = ns.open(whole_home()).view("sums")
    assert view.num_rows > 1
    found = view._repr_html_()
    assert found.startswith('<p>view &quot;sums&quot; as of epoch') and found.count("<tr>") == view.num_rows
    monkeypatch.setattr(stored_view, "SHOWN", 1)
    assert ns.open(whole_home()).view("sums")._repr_html_().count("<tr>") == 1


def test_a_home_says_how_many_rows_a_view_has_and_of_a_large_one_how_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = ns.open(whole_home())
    assert f"<td>sums</td><td>{opened.view('sums').num_rows}</td>" in opened._repr_html_()
    monkeypatch.setattr(home, "COUNTED_ROWS", 0)
    assert "<td>sums</td><td>at most " in opened._repr_html_()


PASSWORD = "hunter2"
POSTGRES = f"postgresql://ann:{PASSWORD}@localhost:1/shop"
ADDED, EITHER = "source: rows are only added", "source: rows may go as well as come"
OF_KAFKA = {"sasl.username": "ann", "sasl.password": PASSWORD}


@pytest.mark.parametrize(
    ("made", "name", "words"),
    [
        (lambda: ns.files("/in/<a>", schema="x int", format="json"), 'ns.files("/in/<a>", format="json")', ADDED),
        (lambda: ns.files("s3://bucket/in", schema="x int", format="json"), 'ns.files("s3://bucket/in", format="json")', ADDED),
        (lambda: ns.memory("x int"), 'ns.memory("x int")', ADDED),
        (lambda: ns.rate(rowsPerSecond=3), "ns.rate(rowsPerSecond=3)", ADDED),
        (lambda: ns.kafka("localhost:1", "orders", options=OF_KAFKA), "ns.kafka(orders)", ADDED),
        (lambda: ns.postgres(POSTGRES, ["orders"])["orders"], 'ns.postgres(public.orders)["public.orders"]', EITHER),
        (lambda: ns.delta("/lake/orders"), 'ns.delta("/lake/orders")', EITHER),
        (lambda: ns.iceberg({"uri": "http://x", "token": PASSWORD}, "shop.orders"), 'ns.iceberg("shop.orders")', EITHER),
        (lambda: ns.console(), "ns.console(numRows=20)", "sink, <b>repeating</b>: "),
        (lambda: ns.parquet("out"), "ns.parquet(", "sink, <b>precise</b>: "),
        (lambda: ns.foreachEpoch(print), "ns.foreachEpoch(<built-in function print>)", "sink, <b>repeating</b>: "),
        (lambda: ns.foreachBatch(print), "ns.foreachBatch(<built-in function print>", "sink, <b>repeating</b>: "),
        (lambda: ns.to_kafka("localhost:1", "out", options=OF_KAFKA), 'ns.to_kafka("out")', "sink, <b>precise</b>: "),
        (lambda: ns.to_postgres(POSTGRES, "spend", key="user"), 'ns.to_postgres("spend"', "sink, <b>precise</b>: "),
        (lambda: ns.to_delta("/lake/spend"), 'ns.to_delta("/lake/spend", mode="state")', "sink, <b>precise</b>: "),
        (lambda: ns.to_iceberg({"token": PASSWORD}, "shop.spend"), 'ns.to_iceberg("shop.spend"', "sink, <b>precise</b>: "),
    ],
)
def test_sources_and_sinks_introduce_themselves_without_their_secrets(made, name, words) -> None:
    one = made()
    found = one._repr_html_()
    assert found.startswith(f"<p>{escape(name)}") and f"<p>{words}" in found
    assert PASSWORD not in found + repr(one)
