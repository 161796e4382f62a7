"""The process of the demo's stream, seen from outside; here it runs a few lines of Python instead of Spark."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing

import pytest

import nosync as ns
from nosync.demo.process import StreamProcess

TALKS = """
import json, sys
print(json.dumps({"event": "started", "epoch": 3}), flush=True)
for epoch in (4, 5):
    print(json.dumps({"event": "epoch", "rows": epoch, "millis": 1.0, "safe": {"process": epoch}}), flush=True)
sys.stdin.readline()
print(json.dumps({"event": "finished", "safe": {}}), flush=True)
"""
FAILS = """
import json
print(json.dumps({"event": "failed", "message": "no room"}), flush=True)
raise SystemExit(1)
"""


@pytest.fixture
def process(tmp_path):
    """Starts a program as the stream; nothing of it is left after the test."""
    with ExitStack() as streams:
        yield lambda program: streams.enter_context(closing(StreamProcess(tmp_path, (sys.executable, "-c", program))))


def wait_for(done):
    while not done():
        pass


def test_it_reports_when_it_runs_and_each_epoch(process):
    stream = process(TALKS)
    wait_for(lambda: len(stream.epochs) == 2)
    assert (stream.started["epoch"], stream.safe) == (3, {"process": 5})
    stream.finish()
    wait_for(lambda: stream.ended)
    stream.check()
    assert stream.finished


def test_killing_ends_it_at_once(process):
    stream = process(TALKS)
    wait_for(lambda: stream.started)
    stream.kill()
    assert stream.ended and not stream.finished


def test_closing_leaves_nothing_running(process):
    stream = process(TALKS)
    stream.close()
    assert stream.ended
    stream.close()


def test_a_failure_is_reported_with_its_message(process):
    stream = process(FAILS)
    wait_for(lambda: stream.ended)
    with pytest.raises(ns.Failed, match="no room"):
        stream.check()
