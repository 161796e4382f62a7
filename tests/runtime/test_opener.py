"""Opening ahead fails in the sight of all."""

from types import SimpleNamespace
from typing import Any

from nosync.duties.troubles import Troubles
from nosync.runtime.opener import Opener
from tests.crash.waiting import until


class Failing:
    """Epochs whose next one cannot be opened."""

    def __init__(self) -> None:
        self.journal: Any = SimpleNamespace(image=SimpleNamespace(epoch=0))

    def open_ahead(self) -> None:
        raise RuntimeError("no room to prepare")


def test_what_fails_while_the_next_epoch_is_opened_is_counted() -> None:
    epochs: Any = Failing()
    troubles = Troubles(lambda: 5.0)
    opener = Opener(epochs, troubles)
    for _ in range(3):
        with opener:
            if epochs.journal.image.epoch:
                until(lambda: any(trouble.count == epochs.journal.image.epoch for trouble in troubles.all()))
            epochs.journal.image.epoch += 1
    opener.stop()
    [trouble] = troubles.all()
    assert (trouble.duty, trouble.count, trouble.message, trouble.since) == ("opening ahead", 2, "RuntimeError: no room to prepare", 5.0)
