"""The eight tables of TPC-H from a seed, as Arrow: decimals, dates, and strings with the words that the predicates look for.

Row counts follow the scale, with a floor so that small tables still join. `focus` is the share of rows whose values are drawn from
what the 22 queries ask for: 0 for sizes at which chance alone answers every query, more for a few hundred rows.
"""

from datetime import date

import numpy as np
import pyarrow as pa

from bench.tpch import words

DECIMAL = pa.decimal128(15, 2)
FIRST_DAY, LAST_DAY, TODAY = (date(*day).toordinal() - date(1970, 1, 1).toordinal() for day in ((1992, 1, 1), (1998, 8, 2), (1995, 6, 17)))
ASKED_DAYS = tuple(date(*day).toordinal() - date(1970, 1, 1).toordinal() for day in ((1993, 7, 1), (1996, 3, 1)))


class Tables:
    """Makes all tables at once, since they refer to each other; `.all` has them by name."""

    def __init__(self, scale: float, seed: int = 1, focus: float = 0.0) -> None:
        self.chance, self.focus = np.random.default_rng(seed), focus
        self.suppliers, self.parts = max(12, int(10_000 * scale)), max(40, int(200_000 * scale))
        self.customers, self.order_count = max(30, int(150_000 * scale)), max(100, int(1_500_000 * scale))
        self.all = {
            "region": pa.table({"r_regionkey": _whole(np.arange(5)), "r_name": words.REGIONS, "r_comment": self._comments(5)}),
            "nation": self._nation(), "supplier": self._supplier(), "part": self._part(), "partsupp": self._partsupp(),
            "customer": self._customer(), **self._orders_and_lineitem(),
        }  # fmt: skip

    def _asked(self, count: int) -> np.ndarray:
        return self.chance.random(count) < self.focus

    def _pick(self, choices: list[str], count: int, weights: list[float] | None = None) -> np.ndarray:
        return np.array(choices, object)[self.chance.choice(len(choices), count, p=weights)]

    def _comments(self, count: int, odd: str = "", share: float = 0.0) -> np.ndarray:
        plain = self._pick(words.TEXT, count) + " " + self._pick(words.TEXT, count) + " " + self._pick(words.TEXT, count)
        return np.where(self.chance.random(count) < share, plain + " " + odd, plain) if odd else plain

    def _nations(self, count: int) -> np.ndarray:
        some, asked = self.chance.integers(0, 25, count), np.resize(words.ASKED_NATIONS, count)
        return np.where(self._asked(count), asked, some)

    def _phones(self, nations: np.ndarray) -> list[str]:
        digits = self.chance.integers(100, 999, (len(nations), 2))
        return [f"{nation + 10}-{a}-{b}-{a + b:04}" for nation, (a, b) in zip(nations, digits)]

    def _nation(self) -> pa.Table:
        names, regions = zip(*words.NATIONS)
        keys = _whole(np.arange(25))
        return pa.table({"n_nationkey": keys, "n_name": names, "n_regionkey": _whole(regions), "n_comment": self._comments(25)})

    def _supplier(self) -> pa.Table:
        keys, nations = np.arange(1, self.suppliers + 1), self._nations(self.suppliers)
        return pa.table({
            "s_suppkey": _long(keys), "s_name": [f"Supplier#{key:09}" for key in keys], "s_address": self._comments(len(keys)),
            "s_nationkey": _whole(nations), "s_phone": self._phones(nations),
            "s_acctbal": _money(self.chance.integers(-99_999, 999_999, len(keys))),
            "s_comment": self._comments(len(keys), "Customer some Complaints", 0.1),
        })  # fmt: skip

    def _part(self) -> pa.Table:
        count = self.parts
        keys, asked, theme = np.arange(1, count + 1), self._asked(count), np.arange(count) % len(words.ASKED_PARTS)
        brands, types, containers, sizes = (np.array(column, object)[theme] for column in zip(*words.ASKED_PARTS))
        makers = self.chance.integers(1, 6, count)
        brand = [f"Brand#{maker}{number}" for maker, number in zip(makers, self.chance.integers(1, 6, count))]
        type = self._pick(words.SIZES, count) + " " + self._pick(words.FINISHES, count) + " " + self._pick(words.METALS, count)
        container = self._pick(words.CONTAINER_SIZES, count) + " " + self._pick(words.CONTAINER_KINDS, count)
        colors = words.COLORS[: max(4, int(len(words.COLORS) * (1 - self.focus)))]
        self.prices = 90_000 + (keys // 10) % 20_001 + 100 * (keys % 1000)
        return pa.table({
            "p_partkey": _long(keys), "p_name": self._pick(colors, count) + " " + self._pick(colors, count),
            "p_mfgr": [f"Manufacturer#{maker}" for maker in makers], "p_brand": np.where(asked, brands, brand),
            "p_type": np.where(asked, types, type), "p_size": _whole(np.where(asked, sizes, self.chance.integers(1, 51, count))),
            "p_container": np.where(asked, containers, container), "p_retailprice": _money(self.prices), "p_comment": self._comments(count),
        })  # fmt: skip

    def _supplier_of(self, parts: np.ndarray, which: np.ndarray) -> np.ndarray:
        """One of the four suppliers of a part."""
        return (parts + which * max(1, self.suppliers // 4)) % self.suppliers + 1

    def _partsupp(self) -> pa.Table:
        parts, which = np.repeat(np.arange(1, self.parts + 1), 4), np.tile(np.arange(4), self.parts)
        count = len(parts)
        return pa.table({
            "ps_partkey": _long(parts), "ps_suppkey": _long(self._supplier_of(parts, which)),
            "ps_availqty": _whole(self.chance.integers(1, 10_000, count)),
            "ps_supplycost": _money(self.chance.integers(100, 100_001, count)),
            "ps_comment": self._comments(count),
        })  # fmt: skip

    def _customer(self) -> pa.Table:
        keys, nations = np.arange(1, self.customers + 1), self._nations(self.customers)
        segments = [0.2 + 0.8 * self.focus] + [0.2 * (1 - self.focus)] * 4
        return pa.table({
            "c_custkey": _long(keys), "c_name": [f"Customer#{key:09}" for key in keys], "c_address": self._comments(len(keys)),
            "c_nationkey": _whole(nations), "c_phone": self._phones(nations),
            "c_acctbal": _money(self.chance.integers(-99_999, 999_999, len(keys))),
            "c_mktsegment": self._pick(words.SEGMENTS, len(keys), segments), "c_comment": self._comments(len(keys)),
        })  # fmt: skip

    def _orders_and_lineitem(self) -> dict[str, pa.Table]:
        count = self.order_count
        keys = np.arange(1, count + 1) * 4 - 3
        customers = self.chance.integers(0, self.customers, count) // 3 * 3 + self.chance.integers(1, 3, count)  # every third has no order
        some, asked = (self.chance.integers(*range_, count) for range_ in ((FIRST_DAY, LAST_DAY - 151), ASKED_DAYS))
        dates = np.where(self._asked(count), asked, some)
        big = self.chance.random(count) < 0.001 + 0.05 * self.focus  # orders of more than 300 pieces, for q18
        lines = np.where(big, 7, self.chance.integers(1, 8, count))
        lineitem, totals, open_lines = self._lineitem(keys, dates, big, lines)
        status = np.where(open_lines == 0, "F", np.where(open_lines == lines, "O", "P"))
        orders = pa.table({
            "o_orderkey": _long(keys), "o_custkey": _long(np.minimum(customers, self.customers)), "o_orderstatus": status,
            "o_totalprice": _money(totals), "o_orderdate": _days(dates), "o_orderpriority": self._pick(words.PRIORITIES, count),
            "o_clerk": [f"Clerk#{number:09}" for number in self.chance.integers(1, 1000, count)], "o_shippriority": _whole(np.zeros(count)),
            "o_comment": self._comments(count, "special packages requests", 0.1),
        })  # fmt: skip
        return {"orders": orders, "lineitem": lineitem}

    def _lineitem(self, keys: np.ndarray, dates: np.ndarray, big: np.ndarray, lines: np.ndarray) -> tuple[pa.Table, np.ndarray, np.ndarray]:
        """The lines, and by order: what they cost, and how many are not shipped yet."""
        order = np.repeat(np.arange(len(keys)), lines)
        count, ordered = len(order), dates[np.repeat(np.arange(len(keys)), lines)]
        number = np.arange(count) - np.repeat(np.cumsum(lines) - lines, lines) + 1
        part, which = self.chance.integers(1, self.parts + 1, count), self.chance.integers(0, 4, count)
        quantity = np.where(big[order], self.chance.integers(44, 51, count), self.chance.integers(1, 51, count))
        price, discount, tax = quantity * self.prices[part - 1], self.chance.integers(0, 11, count), self.chance.integers(0, 9, count)
        shipped = ordered + self.chance.integers(1, 122, count)
        committed, received = ordered + self.chance.integers(30, 91, count), shipped + self.chance.integers(1, 31, count)
        # Many are early, so that some orders have a single late supplier.
        committed = np.where(self.chance.random(count) < self.focus / 2, received + 5, committed)
        returned = np.where(received <= TODAY, self._pick(["R", "A"], count), "N")
        modes = [(1 - self.focus) / 7 + self.focus * share for share in (0.5, 0.25, 0.25, 0, 0, 0, 0)]
        instructions = [(1 - self.focus) / 4 + self.focus * share for share in (1, 0, 0, 0)]
        table = pa.table({
            "l_orderkey": _long(keys[order]), "l_partkey": _long(part), "l_suppkey": _long(self._supplier_of(part, which)),
            "l_linenumber": _whole(number),
            "l_quantity": _money(quantity * 100), "l_extendedprice": _money(price), "l_discount": _money(discount), "l_tax": _money(tax),
            "l_returnflag": returned, "l_linestatus": np.where(shipped > TODAY, "O", "F"), "l_shipdate": _days(shipped),
            "l_commitdate": _days(committed), "l_receiptdate": _days(received),
            "l_shipinstruct": self._pick(words.INSTRUCTIONS, count, instructions),
            "l_shipmode": self._pick(words.MODES, count, modes), "l_comment": self._comments(count),
        })  # fmt: skip
        cost = price * (100 + tax) * (100 - discount) // 10_000
        return table, np.bincount(order, cost, len(keys)).astype(np.int64), np.bincount(order, shipped > TODAY, len(keys)).astype(np.int64)


def _whole(values: object) -> pa.Array:
    return pa.array(np.asarray(values, np.int32))


def _long(values: np.ndarray) -> pa.Array:
    return pa.array(values.astype(np.int64))


def _days(values: np.ndarray) -> pa.Array:
    return pa.array(values.astype(np.int32)).cast(pa.date32())


def _money(cents: np.ndarray) -> pa.Array:
    """Decimals from hundredths: 128 bits each, the sign in the upper half."""
    halves = np.stack([cents.astype(np.int64), np.where(cents < 0, -1, 0)], axis=1)
    return pa.Array.from_buffers(DECIMAL, len(cents), [None, pa.py_buffer(np.ascontiguousarray(halves))])
