"""A run tells those who listen what it does; whatever they make of it, it goes on. What is said is logged under the flow's name."""

import logging
import re
import socket
import threading
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pyspark.sql import SparkSession

import nosync as ns
from nosync.observe.metrics import Metrics


def test_listeners_hear_of_a_run_from_its_start_to_its_end(
    quick: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    idle = threading.Event()

    class Listener:
        def onProgress(self, event: Any) -> None:
            heard.append(event)
            raise RuntimeError("a listener of mine")

        def onIdle(self, event: Any) -> None:
            idle.set()

    flow, source, kinds = ns.Flow("shop", quick), ns.memory("k string, x int"), list[str]()
    flow.view("v", flow.source("s", source))
    assert repr(flow) == 'Flow "shop": source s; view v'
    flow.listen(Listener())
    flow.listen(lambda event: kinds.append(event.kind))
    with caplog.at_level(logging.INFO, "nosync.shop"), flow.start(tmp_path, shards=1) as run:
        source.add([("a", 1), ("b", 2)])
        run.processAllAvailable()
        assert idle.wait(60)
        assert run.safe["process"] == 1 and run.safe["host"] in (0, 1)  # the host's follows behind the stream
        shown = re.sub(r"host \d", "host #", repr(run))
        assert shown == f'Run of flow "shop" on {tmp_path}: running, epoch 1, safe after loss of process 1, host #; view v'
        assert "<td>v</td><td>2</td>" in run._repr_html_()
    assert kinds[0] == "started" and kinds[-1] == "terminated" and kinds.count("progress") == 1 and "idle" in kinds
    progress = heard[0].progress
    assert progress == run.lastProgress and (progress.batchId, progress.numInputRows, progress.name) == (1, 2, "shop")
    assert '"numInputRows": 2' in str(progress) and "<th>numInputRows</th><td>2</td>" in progress._repr_html_()
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("begins: 1 source, 1 view, 1 shard, ready after") for line in lines)
    assert "a listener failed with 'progress': RuntimeError: a listener of mine" in lines
    assert any(line.startswith("epoch 1: 2 rows in ") for line in lines)
    assert lines[-1] == f"stopped after epoch 1; start it again on {tmp_path} to go on"
    assert repr(flow) == 'Flow "shop": source s; view v; stopped, epoch 1'
    assert repr(ns.open(tmp_path)).startswith(f'Home of flow "shop" on {tmp_path}: stopped, epoch 1')
    assert "<svg" in flow._repr_html_() and "<td>v</td><td>2</td>" in ns.open(tmp_path)._repr_html_()


def test_prometheus_and_opentelemetry_see_each_epoch(quick: SparkSession, tmp_path: Path) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    flow, source = ns.Flow("shop", quick), ns.memory("k string, x int")
    rows = flow.source("s", source)
    flow.view("v", rows.groupBy("k").count())
    flow.sink("out", rows, ns.foreachEpoch(lambda df, epoch: None))
    flow.listen(ns.tracing(provider.get_tracer("test")))
    shown: list[str] = []
    heard = threading.Event()

    def look(event: Any) -> None:  # after the others, on the thread of the listeners
        if event.kind == "progress":
            shown.append(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode())
            heard.set()

    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flow.listen(look)
    with flow.start(tmp_path, shards=1, metrics_port=port) as run:
        source.add([("a", 1), ("b", 2)])
        run.processAllAvailable()
        assert heard.wait(60)
        assert 'nosync_rows_total{flow="shop"} 2.0' in shown[0] and 'nosync_epoch{flow="shop"} 1.0' in shown[0]
        assert 'nosync_state_bytes{flow="shop",operator="v/aggregate"}' in shown[0]
        with pytest.raises(ns.Invalid, match=f"metrics_port={port} cannot be used"):
            Metrics("other", port)
    names = [span.name for span in spans.get_finished_spans()]
    assert names == ["open", "compute", "seal", "shop epoch"]
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")


def test_a_listener_may_stop_the_run(quick: SparkSession, tmp_path: Path) -> None:
    flow, source = ns.Flow("shop", quick), ns.memory("x int")
    flow.view("v", flow.source("s", source))
    runs: list[ns.Run] = []
    flow.listen(lambda event: runs[0].stop() if event.kind == "progress" else None)
    runs.append(flow.start(tmp_path, shards=1))
    source.add([(1,)])
    assert runs[0].awaitTermination(60) and runs[0].status.phase == "stopped"


def test_what_cannot_listen_is_refused(quick: SparkSession) -> None:
    with pytest.raises(ns.Invalid, match="was given a int, which cannot listen"):
        ns.Flow("shop", quick).listen(3)  # type: ignore[arg-type]
