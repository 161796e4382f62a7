"""A followed run reports each epoch once and stops when asked."""

import os
import signal

import pytest

from nosync.cli.following import follow
from nosync.model.errors import Failed


class Script:
    """A run that ends as many epochs at each look as the script says, then ends, fails or goes on."""

    def __init__(self, looks, last="end", on_look=None):
        self.looks, self.last, self.on_look = list(looks), last, on_look
        self.recentProgress = []
        self.stopped = False

    def awaitTermination(self, timeout=None):
        if self.on_look:
            self.on_look(len(self.recentProgress))
        if not self.looks:
            if self.last == "fail":
                self._end(1)
                raise Failed("epoch broke")
            return True
        self._end(self.looks.pop(0))
        return not self.looks and self.last == "end"

    def stop(self):
        self.stopped = True
        self._end(1)

    def _end(self, count):
        for _ in range(count):
            self.recentProgress = (self.recentProgress + [{"epoch": self.epochs() + 1}])[-3:]

    def epochs(self):
        return self.recentProgress[-1]["epoch"] if self.recentProgress else 0


def followed(run):
    reported = []
    follow(run, lambda progress: reported.append(progress["epoch"]))
    return reported


def test_each_epoch_is_reported_once():
    assert followed(Script([1, 0, 2, 1])) == [1, 2, 3, 4]


def test_epochs_before_a_failure_are_reported_and_the_error_raised():
    reported = []
    with pytest.raises(Failed, match="epoch broke"):
        follow(Script([1, 1], last="fail"), lambda progress: reported.append(progress["epoch"]))
    assert reported == [1, 2, 3]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_after_its_epoch(number):
    def on_look(epochs):
        if epochs == 2:
            os.kill(os.getpid(), number)

    run = Script([1] * 100, on_look=on_look)
    reported = followed(run)
    assert run.stopped
    assert reported == list(range(1, run.epochs() + 1))


def test_a_second_interrupt_ends_at_once():
    run = Script([1] * 100, on_look=lambda epochs: [os.kill(os.getpid(), signal.SIGINT) for _ in range(2)])
    with pytest.raises(KeyboardInterrupt):
        followed(run)
    assert not run.stopped


def test_the_handlers_of_before_are_back_afterwards():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    followed(Script([1]))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
