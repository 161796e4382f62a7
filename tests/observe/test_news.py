"""What a flow logs while it works."""

import logging

import pytest

from nosync.model.events import Event
from nosync.model.progress import Progress
from nosync.observe.news import News


def done(epoch: int, rows: int, rejected: int) -> Event:
    sources = [{"description": "flights", "numInputRows": rows, "rejectedRows": rejected}]
    facts = {"epoch": epoch, "numInputRows": rows, "rejectedRows": rejected, "lateRows": 0, "durationMs": {"triggerExecution": 1}}
    return Event("progress", "shop", "run", 0.0, epoch, Progress({**facts, "sources": sources}))


def test_a_source_of_which_nothing_fits_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    news = News("shop")
    started = {"home": "state/my shop", "sources": 1, "views": 1, "sinks": 0, "shards": 1, "seconds": 1.0}
    with caplog.at_level(logging.WARNING, "nosync"):
        news(Event("started", "shop", "run", 0.0, 0, facts=started))
        for event in (done(1, 5, 4), done(2, 0, 0), done(3, 1200, 1200), done(4, 2, 2)):
            news(event)
    assert [record.getMessage() for record in caplog.records] == [
        'source "flights": no row of epoch 3 fits its schema: all 1,200 were rejected; run.view("flights.rejected") and '
        "`nosync show 'state/my shop' flights.rejected` say why"
    ]
