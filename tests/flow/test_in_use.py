"""One source object, one run at a time, one name: never are its rows shared out."""

import threading

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.flow.in_use import InUse


class Going:
    """A run that goes on until somebody says otherwise."""

    isActive = True


def test_an_object_is_free_again_once_the_run_has_ended() -> None:
    uses, source, run = InUse(), object(), Going()
    with uses.by("one", {"s": source}) as use:
        use.run = run
    reading = pytest.raises(ns.Conflict, match='source "t" of flow "two" is being read by a run of flow "one"')
    with reading as error, uses.by("two", {"t": source}):
        pytest.fail("two runs have one object")
    assert "second object" in error.value.hint
    run.isActive = False
    with uses.by("two", {"t": source}):
        pass


def test_equal_objects_are_not_the_same() -> None:
    uses = InUse()
    with uses.by("one", {"s": [1]}), uses.by("two", {"s": [1]}):
        pass


def test_a_start_that_failed_holds_nothing() -> None:
    uses, source = InUse(), object()
    with pytest.raises(ns.Invalid), uses.by("one", {"s": source}):
        raise ns.Invalid("no such home")
    with uses.by("one", {"s": source}):
        pass


def test_of_two_threads_that_start_with_one_object_one_goes_on() -> None:
    uses, source, both, ended = InUse(), object(), threading.Barrier(2), list[str]()

    def start(flow: str) -> None:
        both.wait()
        try:
            with uses.by(flow, {"s": source}) as use:
                use.run = Going()
            ended.append("started")
        except ns.Conflict:
            ended.append("refused")

    threads = [threading.Thread(target=start, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["refused", "started"]


def test_one_object_under_two_names_of_a_flow_is_refused(spark: SparkSession) -> None:
    flow, source = ns.Flow("f", spark), ns.memory("x int")
    with pytest.raises(ns.Invalid):
        flow.source("a", source, stamp="x")  # what was refused has no name
    flow.source("a", source)
    with pytest.raises(ns.Invalid, match='source "b" is the same object as source "a"'):
        flow.source("b", source)


def test_one_object_in_two_flows_is_read_by_one_run_after_the_other(quick: SparkSession, tmp_path: object) -> None:
    source = ns.memory("x int")

    def declared() -> ns.Flow:
        flow = ns.Flow("f", quick)
        flow.view("v", flow.source("s", source))
        return flow

    first, second = declared(), declared()
    with first.start(f"{tmp_path}/one"), pytest.raises(ns.Conflict, match="is being read"):
        second.start(f"{tmp_path}/two")
    with second.start(f"{tmp_path}/two") as run:
        source.add([(1,)])
        run.processAllAvailable()
        assert run.view("v").count() == 1
    first.start(f"{tmp_path}/one").stop()
