"""What sources and sinks of users raise ends the run in their name, whatever it is; a thread of ours never ends without a word."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nosync as ns
from nosync.duties.leading import Leading
from nosync.duties.tending import Tending
from nosync.duties.troubles import Troubles
from nosync.duties.upkeep import Upkeep
from nosync.journal.entries import Computed, Opened
from nosync.journal.journal import Journal
from nosync.model.bound import BoundSource
from nosync.model.errors import NosyncError
from nosync.model.identifiers import Epoch
from nosync.model.run import this_process
from nosync.model.sink import BoundSink, Terms
from nosync.runtime.loop import Loop
from nosync.runtime.outlet import LayerOutlet
from nosync.runtime.trigger import Trigger
from nosync.store.disk import LocalDisk
from tests.crash.waiting import until

RAISED = [SystemExit("bye"), KeyboardInterrupt("bye"), ValueError("bye"), ns.Invalid("bye"), ConnectionError("bye")]


class Sink:
    """Does what a test asks for, and remembers what was called."""

    promise = ns.Promise("precise", "it remembers")

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.on_deliver: Callable[[], None] = lambda: None
        self.on_close: Callable[[], None] = lambda: None

    def open(self, run: str, identity: ns.Identity) -> None:
        self.calls.append("open")

    def deliver(self, epoch: int, changes: ns.Changes) -> None:
        self.calls.append(f"deliver {epoch}")
        self.on_deliver()
        self.calls.append(f"delivered {epoch}")

    def close(self) -> None:
        self.calls.append("close")
        self.on_close()


class Steps:
    """A flow that has two epochs computed, without Spark. `step` is what a round of its loop does."""

    def __init__(self, home: Path, sink: Sink) -> None:
        self.disk = LocalDisk(home)
        runner = this_process(0.0)
        self.journal = Journal(self.disk, None, runner)
        for epoch in map(Epoch, (1, 2)):
            self.journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (), {}, {}))
        graph = SimpleNamespace(sinks={"out": SimpleNamespace(trace="out", schema=None)}, views={})
        spark = SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=None))
        sinks = {"out": BoundSink(sink, "computed")}
        self.home = home
        self.program: Any = SimpleNamespace(name="shop", spark=spark, graph=graph, sources={}, sinks=sinks, listeners=())
        self.outlet = LayerOutlet(self.program, self.journal, str(home))
        self.troubles, self.run, self.unshared, self.joining = Troubles(), self.journal.run, None, None
        self.leading = Leading(self.journal, self.disk, runner, self.troubles)
        self.upkeep = Upkeep(self.journal, self.disk, None, {"out": Terms("computed")}, self.outlet, {}, troubles=self.troubles)
        self.epochs: Any = SimpleNamespace(journal=self.journal, acknowledge=lambda: None, open_ahead=lambda: None)
        self.image, self.clock = self.journal.image, lambda: 0.0
        self.step: Callable[..., None] = lambda *_: None

    def recover(self, report: object) -> Any:
        return self

    def close(self) -> None:
        """Nothing to merge."""


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def steps(sink: Sink, tmp_path: Path) -> Steps:
    return Steps(tmp_path, sink)


@pytest.fixture
def loop(steps: Steps) -> Iterator[Callable[[], Loop]]:
    made: list[Loop] = []

    def begin() -> Loop:
        made.append(Loop(steps, Trigger()))  # type: ignore[arg-type]
        return made[-1]

    yield begin
    for one in made:
        one.ask_to_stop()
        one.thread.join(60)


def raising(error: BaseException) -> Callable[..., None]:
    def function(*_: object) -> None:
        raise error

    return function


def ended(loop: Loop) -> NosyncError | None:
    assert loop.wait_for(lambda: not loop.active, 30), "the run never ends"
    return loop.error


@pytest.mark.parametrize("error", RAISED, ids=repr)
def test_whatever_a_sink_raises_in_deliver_ends_the_run_in_its_name(loop: Any, sink: Sink, error: BaseException) -> None:
    sink.on_deliver = raising(error)
    found = ended(run := loop())
    assert isinstance(found, ns.Failed) and 'sink "out" did not take epoch 1' in found.message and "bye" in found.message
    assert run.phase == "failed" and sink.calls == ["open", "deliver 1", "close"]


@pytest.mark.parametrize("error", RAISED[:3], ids=repr)
def test_whatever_a_sink_raises_in_close_the_run_ends(loop: Any, sink: Sink, error: BaseException) -> None:
    sink.on_close = raising(error)
    run = loop()
    run.ask_to_stop()
    found = ended(run)
    assert isinstance(found, ns.Failed) and 'sink "out" cannot be closed' in found.message


@pytest.mark.parametrize("error", [SystemExit("bye"), KeyboardInterrupt("bye")], ids=repr)
def test_a_function_that_wants_the_process_to_end_fails_the_run(loop: Any, steps: Steps, error: BaseException) -> None:
    steps.step = raising(error)
    found = ended(run := loop())
    assert isinstance(found, ns.Failed) and "bye" in found.message and run.phase == "failed"


def test_what_fails_while_a_run_ends_leaves_nobody_waiting_and_sinks_closed(loop: Any, steps: Steps, sink: Sink) -> None:
    steps.close = raising(OSError("gone"))  # type: ignore[method-assign]
    run = loop()
    run.ask_to_stop()
    assert isinstance(ended(run), ns.NosyncError)
    assert sink.calls[-1] == "close"


@pytest.mark.parametrize("method", ["start", "available", "acknowledge", "reopen", "trim", "marks"])
@pytest.mark.parametrize("error", [KeyError("boom"), ConnectionError("boom")], ids=repr)
def test_errors_of_a_source_name_it(method: str, error: Exception) -> None:
    def function(*given: object) -> None:
        raise error

    def fine(*given: object) -> None:
        """Nothing."""

    functions: Any = dict.fromkeys(["start", "available", "read", "acknowledge", "reopen", "trim", "marks"], fine) | {method: function}
    source = BoundSource(append_only=True, **functions).guarded("orders")
    with pytest.raises(ns.Failed, match=f'source "orders" failed in {method}: {type(error).__name__}.*boom'):
        getattr(source, method)(*[{}] * (method == "marks"))


def test_a_source_may_say_not_now() -> None:
    functions: Any = dict.fromkeys(["start", "available", "read"], raising(ns.Unavailable("later")))
    with pytest.raises(ns.Unavailable, match="later"):
        BoundSource(append_only=True, **functions).guarded("orders").available()


def test_an_unforeseen_error_of_the_first_sweep_is_counted_and_ends_the_run(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps.upkeep, "clear_beginnings", raising(OSError("no such folder")))
    errors: list[NosyncError] = []
    tending = Tending(steps.journal, steps.upkeep, errors.append)
    until(lambda: errors)
    tending.stop()
    assert isinstance(errors[0], ns.Internal)
    assert [trouble.count for trouble in steps.troubles.all() if trouble.duty == "sweep"] == [1]


def test_a_sink_is_closed_only_after_the_delivery_under_way(loop: Any, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nosync.runtime.loop.DRAIN_SECONDS", 0.0)
    monkeypatch.setattr(Tending.stop, "__defaults__", (0.0,))
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go_on.wait(60)

    sink.on_deliver = wait
    run = loop()
    assert begun.wait(60)
    run.ask_to_stop()
    until(lambda: run.phase == "stopping" and not run.wait_for(lambda: not run.active, 0.2))
    assert sink.calls == ["open", "deliver 1"]
    go_on.set()
    ended(run)
    assert sink.calls == ["open", "deliver 1", "delivered 1", "close"]


def test_a_sink_that_never_comes_back_is_not_closed_and_status_says_so(loop: Any, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nosync.runtime.loop.DRAIN_SECONDS", 0.0)
    monkeypatch.setattr(Tending.stop, "__defaults__", (0.0,))
    monkeypatch.setattr(LayerOutlet.close, "__defaults__", (0.0,))
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go_on.wait(60)
        raise ValueError("too late to matter")

    sink.on_deliver = wait
    run = loop()
    assert begun.wait(60)
    run.ask_to_stop()
    assert ended(run) is None
    assert any('sink "out" was not closed' in trouble.message for trouble in run.live().troubles)
    go_on.set()
    for thread in run.tending.threads:
        thread.join(60)
    assert sink.calls == ["open", "deliver 1"] and run.error is None and run.phase == "stopped"


def test_nothing_is_delivered_to_a_sink_that_is_closed(steps: Steps, sink: Sink) -> None:
    assert steps.outlet.close() == ()
    with pytest.raises(ns.Fenced):
        steps.outlet.deliver("out", Epoch(1), Epoch(1))
    assert sink.calls == ["open", "close"]
