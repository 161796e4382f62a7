"""The terminal: each epoch's first rows."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nosync.model.identifiers import Epoch
from nosync.model.sink import Promise


def console(rows: int = 20) -> "Console":
    """Prints each epoch's first rows."""
    return Console(rows)


@dataclass(frozen=True)
class Console:
    """See `console`."""

    rows: int

    @property
    def promise(self) -> Promise:
        return Promise("repeating", "what was printed before a crash cannot be taken back")

    def start(self, flow: str, sink: str) -> None:
        """A terminal needs nothing."""

    def deliver(self, epoch: Epoch, changes: Any) -> None:
        table: pa.Table = changes.table()
        print(f"-------- epoch {epoch}: {table.num_rows:,} changes")
        if table.num_rows:
            print(table.slice(0, self.rows).to_pandas().to_string(index=False))
