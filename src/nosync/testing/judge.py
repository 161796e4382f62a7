"""The judge: every view at every epoch is what Spark answers in batch over the input up to it. For whatever has filled a home."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from nosync.history.home import Home
from nosync.testing.batch import Batch
from nosync.testing.rows import Admissible, difference

BatchAt = Callable[[int], Batch]  # the program, declared over the input up to an epoch


def judge(home: Home, batch_at: BatchAt, epochs: Iterable[int] | None = None, views: Iterable[str] | None = None) -> None:
    """Raises AssertionError, naming view and epoch, where the home and Spark disagree. Without epochs, all of them are looked at."""
    for view, epoch, found in disagreements(home, batch_at, epochs, views):
        raise AssertionError(f'view "{view}" at epoch {epoch} of {home.epoch}: {found}')


def disagreements(
    home: Home,
    batch_at: BatchAt,
    epochs: Iterable[int] | None = None,
    views: Iterable[str] | None = None,
    tolerance: float = 1e-9,
    admissible: Mapping[str, Admissible] | None = None,
) -> Iterator[tuple[str, int, str]]:
    """Like `judge`, but gives everything that differs: the view, the epoch, and what is missing or too much.

    Spark is not asked again for a view none of whose tables has changed, where the batch says which those are.
    """
    answers: dict[str, tuple[Any, pa.Table]] = {}
    for epoch in epochs or range(1, home.epoch + 1):
        batch = batch_at(epoch)
        for view in views or batch.views:
            version = batch.version(view)
            if version is None or view not in answers or answers[view][0] != version:
                answers[view] = (version, batch.answer(view))
            found = difference(answers[view][1], home.view(view, at=epoch), tolerance, admissible)
            if found:
                yield view, epoch, found
