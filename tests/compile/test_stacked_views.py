"""Declaring views upon views: what it costs does not grow with what they stand on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import DataFrame, SparkSession

import nosync as ns
from nosync.bridge.frames import run as run_frame
from nosync.graph.picture import boxes_of
from nosync.spark import job

HEIGHT = 30


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often the JVM was spoken to; a new count is begun by appending 0."""
    counts = [0]
    speak = GatewayClient.send_command

    def counted(client: GatewayClient, command: str, *arguments: object, **named: object) -> object:
        counts[-1] += not command.startswith(MEMORY_COMMAND_NAME)  # forgotten objects come in bursts
        return speak(client, command, *arguments, **named)

    monkeypatch.setattr(GatewayClient, "send_command", counted)
    yield counts


def test_the_thirtieth_self_join_costs_what_the_third_does(quick: SparkSession, calls: list[int]) -> None:
    flow = ns.Flow("stack", quick)
    flow.source("s", ns.memory("k int"))
    below = "s"
    for level in range(HEIGHT):
        calls.append(0)
        flow.sql(f"create view v{level} as select l.k from {below} l join {below} r on l.k = r.k")
        below = f"v{level}"
    assert calls[-1] <= calls[3] * 1.5
    program = flow.program()
    calls.append(0)
    program.declaration(shards=1)
    boxes_of(program.graph)
    assert calls[-1] <= HEIGHT * calls[3]


def test_the_job_over_stacked_self_joins_is_as_large_as_they_are_many(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves: list[int] = []

    def counted(frame: DataFrame) -> dict[str, dict[str, int]]:
        leaves.append(frame._jdf.queryExecution().analyzed().collectLeaves().size())
        return run_frame(frame)

    monkeypatch.setattr(job, "run", counted)
    wide = quick.newSession()
    wide.conf.set("spark.nosync.way", "wide")
    flow, rows, height = ns.Flow("stack", wide), ns.memory("k int"), 6
    below = flow.source("s", rows)
    for level in range(height):
        below = flow.view(f"v{level}", below.alias("l").join(below.alias("r"), "k"))
    rows.add([(1,), (2,)])
    with flow.start(tmp_path / "home", shards=1) as run:
        run.processAllAvailable()
        assert run.view(f"v{height - 1}").count() == 2
    assert max(leaves) <= 3 * height
    assert quick._jsparkSession.sharedState().cacheManager().isEmpty()


def test_a_chain_of_steps_is_looked_at_once_for_all_operators_over_it(quick: SparkSession, calls: list[int]) -> None:
    flow = ns.Flow("chain", quick)
    flow.source("s", ns.memory("k int, x int"))

    def nested(levels: int) -> str:
        return "s" if levels == 0 else f"(select k, max(x) + {levels} as x from {nested(levels - 1)} group by k, x % {levels + 1})"

    cost = {}
    for levels in (4, 8, 16):
        query = flow.sql(f"select * from {nested(levels)}")
        query._jdf.queryExecution().optimizedPlan()
        calls.append(0)
        flow.view(f"v{levels}", query)
        cost[levels] = calls[-1]
    assert cost[16] - cost[8] <= 3 * (cost[8] - cost[4])
