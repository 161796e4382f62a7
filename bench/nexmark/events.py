"""The events of Nexmark from a seed, as Arrow: persons, auctions and bids in the order of their event time.

Of fifty events one is a person, three are auctions and 46 are bids. Half of the bids go to the newest hot auction, half come from the
newest hot bidder. No two events have the same time, so that an order by time is total.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

ROUND, PERSONS, AUCTIONS = 50, 1, 3
START = int(datetime(2024, 1, 1, 11, 59, 30, tzinfo=UTC).timestamp() * 1e6)
HOT = 4  # one of so many is hot
CATEGORIES = 5
STATES = np.array(["AZ", "CA", "ID", "OR", "WA", "WY"], object)
CITIES = np.array(["Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne"], object)
FIRST = np.array(["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah"], object)
LAST = np.array(["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones"], object)
CHANNELS = np.array(["Google", "Facebook", "Baidu", "Apple", "channel-7", "channel-1042", "channel-93"], object)
LETTERS = np.array(list("abccdefgh "), object)


class Events:
    """`count` events, `micros` apart. `.tables` has person, auction and bid; `.numbers` the places of their rows in the whole stream."""

    def __init__(self, count: int, seed: int = 1, micros: int = 100_000) -> None:
        self.chance = np.random.default_rng(seed)
        order = np.arange(count)
        self.times = START + order * micros + self.chance.integers(0, micros, count)
        place = order % ROUND
        person, bid = place < PERSONS, place >= PERSONS + AUCTIONS
        kinds = {"person": person, "auction": ~person & ~bid, "bid": bid}
        self.numbers = {name: np.flatnonzero(chosen) for name, chosen in kinds.items()}
        self.seen = {name: np.cumsum(chosen) for name, chosen in kinds.items()}  # how many there are up to each event
        self.tables = {"person": self._person(), "auction": self._auction(), "bid": self._bid()}

    def cut(self, ends: Sequence[int]) -> list[dict[str, pa.Table]]:
        """The events as epochs: up to each end, what came since the one before."""
        found = []
        for lower, upper in zip([0, *ends[:-1]], ends, strict=True):
            found.append({name: self.tables[name].filter(pa.array((at >= lower) & (at < upper))) for name, at in self.numbers.items()})
        return found

    def _text(self, count: int, length: int) -> list[str]:
        return ["".join(row) for row in LETTERS[self.chance.integers(0, len(LETTERS), (count, length))]]

    def _some(self, name: str, events: np.ndarray, hot_share: float) -> np.ndarray:
        """For each event one of the persons or auctions before it: the newest hot one, or any of the last hundred."""
        known = np.maximum(self.seen[name][events], 1)
        newest_hot = (known - 1) // HOT * HOT
        some = known - 1 - (self.chance.random(len(events)) * np.minimum(known, 100)).astype(np.int64)
        return 1000 + np.where(self.chance.random(len(events)) < hot_share, newest_hot, some)

    def _person(self) -> pa.Table:
        events = self.numbers["person"]
        count = len(events)
        first, last = FIRST[self.chance.integers(0, len(FIRST), count)], LAST[self.chance.integers(0, len(LAST), count)]
        place = self.chance.integers(0, len(STATES), count)
        return pa.table({
            "id": 1000 + np.arange(count), "name": first + " " + last,
            "emailAddress": [f"{a}.{b}@example.com".lower() for a, b in zip(first, last)],
            "creditCard": [" ".join(f"{part:04}" for part in row) for row in self.chance.integers(0, 10_000, (count, 4))],
            "city": CITIES[place], "state": STATES[place], "dateTime": _times(self.times[events]), "extra": self._text(count, 8),
        })  # fmt: skip

    def _auction(self) -> pa.Table:
        events = self.numbers["auction"]
        count = len(events)
        initial = self.chance.integers(1, 1000, count)
        return pa.table({
            "id": 1000 + np.arange(count), "itemName": self._text(count, 6), "description": self._text(count, 12), "initialBid": initial,
            "reserve": initial + self.chance.integers(0, 1000, count), "dateTime": _times(self.times[events]),
            "expires": _times(self.times[events] + self.chance.integers(2_000_000, 20_000_000, count)),
            "seller": self._some("person", events, 0.5), "category": 10 + self.chance.integers(0, CATEGORIES, count),
            "extra": self._text(count, 8),
        })  # fmt: skip

    def _bid(self) -> pa.Table:
        events = self.numbers["bid"]
        count = len(events)
        channel = CHANNELS[self.chance.integers(0, len(CHANNELS), count)]
        folders = self.chance.integers(0, 20, (count, 3))
        numbered = [f"&channel_id={name[8:]}" if name.startswith("channel-10") else "" for name in channel]
        return pa.table({
            "auction": self._some("auction", events, 0.5), "bidder": self._some("person", events, 0.5),
            "price": np.exp(self.chance.random(count) * 11).astype(np.int64) * 100, "channel": channel,
            "url": [f"https://www.nexmark.example/{a}/{b}/{c}/item.htm?query=1{tail}" for (a, b, c), tail in zip(folders, numbered)],
            "dateTime": _times(self.times[events]), "extra": self._text(count, 10),
        })  # fmt: skip


def _times(micros: np.ndarray) -> pa.Array:
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
