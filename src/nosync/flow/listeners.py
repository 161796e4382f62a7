"""Who hears of a run from its start on: the log, Prometheus where it is wanted, and whoever listens to the flow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nosync.model.events import Listening
from nosync.observe.metrics import Metrics
from nosync.observe.news import News


@contextmanager
def all_listeners(flow: str, own: Sequence[Listening], quiet: bool, metrics_port: int | None) -> Iterator[tuple[Listening, ...]]:
    """Around starting the run. A start that fails leaves no server behind."""
    news: list[Listening] = [] if quiet else [News(flow)]
    if metrics_port is None:
        yield (*news, *own)
        return
    metrics = Metrics(flow, metrics_port)
    try:
        yield (*news, metrics, *own)
    except BaseException:
        metrics.close()
        raise
