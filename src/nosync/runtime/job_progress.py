"""How far one long job of Spark's is, looked at from beside it; and giving it up when whoever is told has had enough."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

SECONDS = 0.5


class Watched(Protocol):
    """What is asked of an engine from another thread."""

    def tasks(self) -> tuple[int, int]:
        """How many tasks of the job that is running now are done, of how many."""

    def give_up(self) -> None:
        """The job fails as soon as may be."""


@contextmanager
def reporting(engine: Watched, report: Callable[[int, int], None]) -> Iterator[None]:
    """Around a job. What `report` raises is raised here, instead of what then becomes of the job."""
    over, raised = threading.Event(), list[BaseException]()

    def look() -> None:
        while not over.wait(SECONDS):
            found = engine.tasks()
            try:
                report(*found)
            except BaseException as error:
                raised.append(error)
                engine.give_up()
                return

    thread = threading.Thread(target=look, name="nosync rebuilding", daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        if raised:
            raise raised[0] from None
        raise
    finally:
        over.set()
        thread.join()
