"""The figures of a run for Prometheus, on a port of their own: `flow.start(home, metrics_port=9090)`. Needs the extra `metrics`.

    nosync_epoch, nosync_running                         the newest epoch; 1 while the run goes on
    nosync_rows_total, nosync_rejected_rows_total        what came in, and what of it did not fit
    nosync_epoch_seconds                                 a histogram of the time that epochs take
    nosync_safe_epoch{failure}, nosync_sink_epoch{sink}  the newest epoch that survives a failure, that a sink has
    nosync_state_bytes{operator}                         the newest state of each

Each has the label `flow`.
"""

from typing import Any

from nosync.model.errors import Invalid
from nosync.model.events import Event
from nosync.model.extras import needed
from nosync.model.progress import Progress

BUCKETS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """A listener, and the server that shows what it hears. It ends with the run."""

    def __init__(self, flow: str, port: int) -> None:
        if port not in range(1 << 16):
            raise Invalid(f"metrics_port={port} is no port", hint="Pass a number from 1 to 65535, or 0 for any that is free.")
        client = needed("prometheus_client", "metrics", "metrics_port=")
        self.registry = client.CollectorRegistry()
        self._flow = flow
        common: dict[str, Any] = {"registry": self.registry}
        self._epoch = client.Gauge("nosync_epoch", "The newest epoch.", ["flow"], **common).labels(flow)
        self._running = client.Gauge("nosync_running", "1 while the run goes on.", ["flow"], **common).labels(flow)
        self._rows = client.Counter("nosync_rows", "Rows of input.", ["flow"], **common).labels(flow)
        self._rejected = client.Counter("nosync_rejected_rows", "Rows that did not fit.", ["flow"], **common).labels(flow)
        self._seconds = client.Histogram("nosync_epoch_seconds", "Time of an epoch.", ["flow"], buckets=BUCKETS, **common).labels(flow)
        self._safe = client.Gauge("nosync_safe_epoch", "The newest epoch that survives a failure.", ["flow", "failure"], **common)
        self._sinks = client.Gauge("nosync_sink_epoch", "The newest epoch that a sink has.", ["flow", "sink"], **common)
        self._bytes = client.Gauge("nosync_state_bytes", "The newest state.", ["flow", "operator"], **common)
        try:
            self._server, self._thread = client.start_http_server(port, registry=self.registry)
        except OSError as error:
            words = f"metrics_port={port} cannot be used: {error.strerror or error}"
            raise Invalid(words, hint="Pass another port, 0 for any that is free.") from None
        self.port: int = self._server.server_address[1]

    def __call__(self, event: Event) -> None:
        self._epoch.set(event.epoch)
        self._running.set(event.kind != "terminated")
        if event.progress is not None:
            self._progress(event.progress)
        if event.kind == "terminated":
            self.close()

    def _progress(self, progress: Progress) -> None:
        self._rows.inc(progress["numInputRows"])
        self._rejected.inc(progress["rejectedRows"])
        self._seconds.observe(progress["durationMs"]["triggerExecution"] / 1e3)
        for failure, epoch in progress["safe"].items():
            self._safe.labels(self._flow, failure).set(epoch)
        for sink in progress["sinks"]:
            self._sinks.labels(self._flow, sink["description"]).set(sink["epoch"])
        for operator in progress["stateOperators"]:
            self._bytes.labels(self._flow, operator["operatorName"]).set(operator["stateBytes"])

    def close(self) -> None:
        """Nothing is shown any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
