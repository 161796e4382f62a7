"""What a run takes: memory and files, measured now and then. A value."""

from dataclasses import dataclass
from typing import Any

from nosync.model.sizes import size


@dataclass(frozen=True, slots=True)
class Footprint:
    """`process_bytes`: of all processes of the run, pages that they share counted once (PSS); 0 where the system does not say. `heap_*`: of
    the JVM's heap what is used, garbage counted; what was live when it was last collected; and the most that it may become. `files` and
    `input_bytes`: of the home, and of its input log. `gives_up`: when the ladder will give up how many epochs next, if age decides that.
    """

    process_bytes: int = 0
    processes: int = 0
    heap_used: int = 0
    heap_live: int = 0
    heap_most: int = 0
    files: int = 0
    input_bytes: int = 0
    gives_up: tuple[str, int] | None = None

    @staticmethod
    def from_json(facts: dict[str, Any]) -> "Footprint":
        found = facts["gives_up"]
        return Footprint(**facts | {"gives_up": (found[0], found[1]) if found else None})

    def __str__(self) -> str:
        memory = [f"{size(self.process_bytes)} in {self.processes} processes"] if self.process_bytes else []
        heap = [f"JVM heap {size(self.heap_live)} live, {size(self.heap_used)} used of {size(self.heap_most)}"] if self.heap_most else []
        return ", ".join([*memory, *heap, f"{self.files:,} files"])
