"""What the demo looks at, as plain values: the display only draws them. Read from the home, beside the stream and without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import nosync as ns
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.status import Status


@dataclass(frozen=True)
class Excerpt:
    """A view and the part of it that is shown: an SQL order and a number of rows."""

    view: str
    title: str
    order: str
    limit: int


@dataclass(frozen=True)
class Excerpted:
    """Rows of an excerpt as of some epoch."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Snapshot:
    """How the stream is doing: totals since the beginning, the last epoch reported, and up to which epoch it is safe against what."""

    epoch: Epoch = NO_EPOCH
    rows: int = 0
    rejected: int = 0
    last_epoch: Epoch = NO_EPOCH
    last_rows: int = 0
    last_ms: float = 0.0
    safe: Mapping[str, int] = field(default_factory=dict)


SHOWN = (
    Excerpt("hot_auctions", "hot auctions (a filter over a view)", "bids desc, auction", 5),
    Excerpt("categories", "categories (an aggregate of an aggregate)", "category", 5),
    Excerpt("bids_per_minute", "bids per minute and channel", "minute desc, channel", 4),
)


def excerpt(home: ns.Home, wanted: Excerpt, at: Epoch | None = None) -> Excerpted:
    """The rows as of an epoch, or the newest."""
    terms = [term.split() for term in wanted.order.split(",")]
    order = [(name, "descending" if descending else "ascending") for name, *descending in terms]
    rows = home.view(wanted.view, at).sort_by(order).slice(0, wanted.limit)
    return Excerpted(wanted.title, tuple(rows.column_names), tuple(zip(*(column.to_pylist() for column in rows.columns))))


def snapshot_of(status: Status, reported: Sequence[Mapping[str, Any]], safe: Mapping[str, int]) -> Snapshot:
    """Totals from the home, which no crash takes away; the last epoch from what the stream reported."""
    rows, rejected = sum(status.rows.values()), sum(status.rejected.values())
    last = reported[-1] if reported else {}
    return Snapshot(status.epoch, rows, rejected, last.get("epoch", 0), last.get("rows", 0), last.get("millis", 0.0), safe)
