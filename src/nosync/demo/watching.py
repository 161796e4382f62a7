"""What the demo looks at in a running flow, as plain values: the display only draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


class Watched(Protocol):
    """What watching needs of a run."""

    @property
    def recentProgress(self) -> list[dict[str, Any]]: ...

    def view(self, name: str, at: int | None = None) -> DataFrame: ...


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
class Pace:
    """How the run is doing: totals since the start, the last epoch, and the rate over the last few."""

    epoch: int
    rows: int
    rejected: int
    last_rows: int
    last_ms: float
    rows_per_second: float


SHOWN = (
    Excerpt("hot_auctions", "hot auctions (a filter over the view auction_prices)", "bids desc, auction", 6),
    Excerpt("categories", "categories (an aggregate of an aggregate)", "category", 6),
    Excerpt("bids_per_minute", "bids per minute and channel", "minute desc, channel", 8),
)


def excerpt(run: Watched, wanted: Excerpt, at: int | None = None) -> Excerpted:
    """The rows as of an epoch, or the newest; a Spark job, like any query of a view."""
    frame = run.view(wanted.view, at=at)
    terms = [term.split() for term in wanted.order.split(",")]
    rows = frame.orderBy(*(F.desc(name) if descending else F.asc(name) for name, *descending in terms)).limit(wanted.limit).collect()
    return Excerpted(wanted.title, tuple(frame.columns), tuple(tuple(row) for row in rows))


class PaceKeeper:
    """Adds up progress as it comes in; a run keeps only its recent progress, so ask often."""

    def __init__(self) -> None:
        self._epoch = self._rows = self._rejected = 0

    def look(self, run: Watched) -> Pace:
        """The totals with all epochs that ended since the last look."""
        recent = run.recentProgress
        for progress in recent:
            if progress["epoch"] > self._epoch:
                self._epoch = progress["epoch"]
                self._rows += progress["numInputRows"]
                self._rejected += progress["rejectedRows"]
        last = recent[-5:]
        milliseconds = sum(progress["durationMs"]["triggerExecution"] for progress in last)
        rate = 1000.0 * sum(progress["numInputRows"] for progress in last) / milliseconds if milliseconds else 0.0
        newest: tuple[int, float] = (last[-1]["numInputRows"], last[-1]["durationMs"]["triggerExecution"]) if last else (0, 0.0)
        return Pace(self._epoch, self._rows, self._rejected, *newest, rate)
