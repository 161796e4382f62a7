"""An auction house that never closes: people join, items are put up, bids come in. The events of the demo.

In the spirit of the Nexmark benchmark: of every fifty events one is a person, three are auctions and the rest bids; most bids go to
a few hot auctions. All of it follows from the seed: the same seed gives the same lines, however they are divided into calls.

Each event is one line of JSON in one of three streams (`people`, `auctions`, `bids`). Now and then a line of `bids` is broken, as
lines are: cut short, or with words where a number belongs.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

PEOPLE_SCHEMA = "person bigint, name string, city string, joined_at timestamp"
AUCTIONS_SCHEMA = "auction bigint, item string, category string, seller bigint, reserve decimal(10,2), opened_at timestamp"
BIDS_SCHEMA = "auction bigint, item string, category string, bidder bigint, price decimal(10,2), channel string, at timestamp"

OPENING = datetime(2026, 3, 2, 18, 0, tzinfo=UTC)
EVENT_GAP = timedelta(milliseconds=5)
BROKEN_SHARE = 0.002
OPEN_AUCTIONS = 60

FIRST_NAMES = ("Ada", "Bela", "Chidi", "Dilnoza", "Emre", "Freya", "Goran", "Hana", "Ines", "Jonas", "Kaveh", "Lin", "Mira", "Nuno", "Olu")
CITIES = ("Accra", "Bogotá", "Hanoi", "Lisbon", "Lviv", "Nairobi", "Osaka", "Tallinn")
CHANNELS = ("app", "web", "phone", "room")
ITEMS = {
    "art": ("etching", "watercolour", "bronze fox", "portrait"),
    "books": ("atlas", "first edition", "herbarium", "songbook"),
    "clocks": ("regulator", "pocket watch", "cuckoo clock"),
    "instruments": ("viola", "sextant", "theremin", "metronome"),
    "toys": ("tin robot", "rocking horse", "model railway"),
}


class House:
    """Gives the next events on request; keeps who is there and what is for sale."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._event = 0
        self._people = 0
        self._auctions: list[dict[str, Any]] = []
        self._sold = 0

    def events(self, count: int) -> dict[str, list[str]]:
        """The next `count` events as lines by stream."""
        lines: dict[str, list[str]] = {"people": [], "auctions": [], "bids": []}
        for _ in range(count):
            turn = self._event % 50
            stream = "people" if turn == 0 else "auctions" if turn in (1, 18, 35) else "bids"
            event = {"people": self._person, "auctions": self._auction, "bids": self._bid}[stream]()
            text = json.dumps(event, ensure_ascii=False)
            lines[stream].append(self._broken(text) if stream == "bids" and self._random.random() < BROKEN_SHARE else text)
            self._event += 1
        return lines

    def _now(self) -> str:
        return (OPENING + self._event * EVENT_GAP).isoformat(timespec="milliseconds")

    def _person(self) -> dict[str, Any]:
        self._people += 1
        name = self._random.choice(FIRST_NAMES)
        return {"person": self._people, "name": name, "city": self._random.choice(CITIES), "joined_at": self._now()}

    def _auction(self) -> dict[str, Any]:
        self._sold += 1
        category = self._random.choice(sorted(ITEMS))
        reserve = self._random.randint(500, 20_000)
        item = {"auction": self._sold, "item": self._random.choice(ITEMS[category]), "category": category}
        # A heavy-tailed appeal makes a few auctions hot, as it does in life.
        appeal = min(100.0, self._random.paretovariate(0.8))
        self._auctions = [*self._auctions[-(OPEN_AUCTIONS - 1) :], {**item, "cents": reserve, "appeal": appeal}]
        return {**item, "seller": self._random.randint(1, self._people), "reserve": _money(reserve), "opened_at": self._now()}

    def _bid(self) -> dict[str, Any]:
        auction = self._random.choices(self._auctions, [each["appeal"] for each in self._auctions])[0]
        auction["cents"] += self._random.randint(1, 200)
        return {
            **{name: auction[name] for name in ("auction", "item", "category")},
            "bidder": self._random.randint(1, self._people),
            "price": _money(auction["cents"]),
            "channel": self._random.choices(CHANNELS, (5, 4, 1, 2))[0],
            "at": self._now(),
        }

    def _broken(self, text: str) -> str:
        if self._random.random() < 0.5:
            return text[: self._random.randint(10, len(text) - 10)]
        return text.replace('"price": ', '"price": "a lot", "was": ')


def _money(cents: int) -> float:
    return cents / 100
