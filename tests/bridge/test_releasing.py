"""What the JVM keeps for objects here is let go of, but never in the middle of another call."""

import gc
import threading

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession

from nosync.bridge.catalyst import Catalyst
from nosync.bridge.releasing import all_released
from nosync.bridge.trees import Table, Trees


def test_garbage_that_is_collected_in_the_middle_of_a_call_leaves_that_call_its_answer(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = Catalyst(spark).jvm
    trees, send, callers = Trees.of(spark), JavaClient.send_command, set()

    def collecting(self: JavaClient, command: str, *arguments: object, **named: object) -> object:
        callers.add((threading.get_ident(), "release" in command))
        if threading.get_ident() == here and garbage:
            garbage.pop()
            gc.collect()
        return send(self, command, *arguments, **named)

    here = threading.get_ident()
    garbage = [Table(trees) for _ in range(20)]
    monkeypatch.setattr(JavaClient, "send_command", collecting)
    answers = [jvm.java.lang.Integer.toString(number) for number in range(20)]
    all_released()
    assert answers == [str(number) for number in range(20)] and not garbage
    assert (here, True) not in callers and any(released for _, released in callers)
