"""How the tables grow and shrink: each row has an epoch in which it comes and one in which it goes.

The first epoch brings most of everything. Later ones bring further orders with their lines and take old ones away, as TPC-H's refresh
functions do; beyond those, parts, suppliers, customers and offers come and go, and some change a value: the old row goes, a new one comes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NEVER = 1 << 30
COMING = {"part": 0.05, "supplier": 0.05, "customer": 0.1, "partsupp": 0.05}  # share that comes after the first epoch
CHANGED = {"supplier": "s_acctbal", "customer": "c_acctbal", "partsupp": "ps_supplycost", "part": "p_size"}


@dataclass(frozen=True, slots=True)
class Life:
    """A table over time: row i is there from epoch `born[i]` until before epoch `gone[i]`."""

    table: pa.Table
    born: np.ndarray
    gone: np.ndarray

    def added(self, epoch: int) -> pa.Table:
        return self.table.filter(pa.array(self.born == epoch))

    def removed(self, epoch: int) -> pa.Table:
        return self.table.filter(pa.array(self.gone == epoch))

    def alive(self, epoch: int) -> pa.Table:
        return self.table.filter(pa.array((self.born <= epoch) & (epoch < self.gone)))


def history(tables: Mapping[str, pa.Table], epochs: int, moving: float, seed: int = 1, coming: float = 1.0) -> dict[str, Life]:
    """A life for each table. In each epoch after the first, the share `moving` of the orders comes, and as many go. `coming`: how much of
    the usual share of the other tables comes later.
    """
    chance = np.random.default_rng(seed)
    orders = _orders(chance, tables["orders"], epochs, moving)
    of_order = pc.index_in(tables["lineitem"]["l_orderkey"], orders.table["o_orderkey"]).to_numpy()
    lives = {"orders": orders, "lineitem": Life(tables["lineitem"], orders.born[of_order], orders.gone[of_order])}
    for name, table in tables.items():
        if name not in lives:
            lives[name] = _changed(chance, name, _coming(chance, table, coming * COMING.get(name, 0.0), epochs), epochs, moving)
    return lives


def _orders(chance: np.random.Generator, table: pa.Table, epochs: int, moving: float) -> Life:
    count = table.num_rows
    each = max(1, int(count * moving))
    mixed = chance.permutation(count)
    born, gone = np.ones(count, np.int64), np.full(count, NEVER)
    for epoch in range(2, epochs + 1):
        born[mixed[(epoch - 2) * each : (epoch - 1) * each]] = epoch
    for epoch in range(2, epochs + 1):
        leaving = np.flatnonzero((born < epoch) & (gone == NEVER))
        gone[chance.choice(leaving, min(each, len(leaving)), replace=False)] = epoch
    return Life(table, born, gone)


def _coming(chance: np.random.Generator, table: pa.Table, share: float, epochs: int) -> Life:
    later = chance.integers(2, max(epochs, 2) + 1, table.num_rows)
    born = np.where(chance.random(table.num_rows) < share, later, 1)
    gone = np.where(chance.random(table.num_rows) < share / 2, born + chance.integers(1, 3, table.num_rows), NEVER)
    return Life(table, born, gone)


def _changed(chance: np.random.Generator, name: str, life: Life, epochs: int, moving: float) -> Life:
    """Some rows go, and come back in the same epoch with another row's value in one column."""
    column = CHANGED.get(name)
    for epoch in range(2, epochs + 1) if column else ():
        there = np.flatnonzero((life.born < epoch) & (life.gone > epoch))
        chosen = chance.choice(there, max(1, int(len(there) * moving / 4)), replace=False)
        other = life.table.take(pa.array(chance.choice(there, len(chosen))))[column]
        row = life.table.take(pa.array(chosen))
        row = row.set_column(row.schema.get_field_index(column), row.schema.field(column), other)
        until = life.gone[chosen]
        life.gone[chosen] = epoch
        born, gone = np.full(len(chosen), epoch), until
        life = Life(pa.concat_tables([life.table, row]), np.concatenate([life.born, born]), np.concatenate([life.gone, gone]))
    return life
