"""The auction house of the demo: the same events for the same seed, of the right shape."""

from __future__ import annotations

import json

from nosync.demo.auction import House


def intact(lines: list[str]) -> list[dict[str, object]]:
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return [event for event in events if not isinstance(event.get("price"), str)]


def test_the_same_seed_gives_the_same_lines():
    assert House(7).events(2_000) == House(7).events(2_000)


def test_another_seed_gives_other_lines():
    assert House(7).events(200) != House(8).events(200)


def test_lines_do_not_depend_on_how_they_are_asked_for():
    whole, parts = House(7).events(1_000), House(7)
    pieces = [parts.events(count) for count in (1, 49, 250, 700)]
    assert whole == {stream: [line for piece in pieces for line in piece[stream]] for stream in whole}


def test_most_events_are_bids():
    events = House(1).events(5_000)
    assert {stream: len(lines) for stream, lines in events.items()} == {"people": 100, "auctions": 300, "bids": 4_600}


def test_some_bids_are_broken_in_both_ways():
    bids = House(1).events(20_000)["bids"]
    worded = sum('"a lot"' in line for line in bids)
    broken = len(bids) - len(intact(bids))
    assert 0 < worded < broken < len(bids) / 100


def test_bids_name_an_auction_that_was_opened_before():
    events = House(3).events(5_000)
    auctions = {event["auction"]: event for event in intact(events["auctions"])}
    for bid in intact(events["bids"]):
        auction = auctions[bid["auction"]]
        assert (bid["item"], bid["category"]) == (auction["item"], auction["category"])
        assert str(bid["at"]) >= str(auction["opened_at"])


def test_bids_on_an_auction_only_rise():
    last: dict[object, float] = {}
    for bid in intact(House(3).events(5_000)["bids"]):
        price = float(str(bid["price"]))
        assert price > last.get(bid["auction"], 0.0)
        last[bid["auction"]] = price


def test_a_few_auctions_get_most_bids():
    counts: dict[object, int] = {}
    for bid in intact(House(5).events(10_000)["bids"]):
        counts[bid["auction"]] = counts.get(bid["auction"], 0) + 1
    ordered = sorted(counts.values(), reverse=True)
    assert sum(ordered[: len(ordered) // 5]) > sum(ordered) / 2
