"""The terminal: each epoch's first rows."""

from dataclasses import dataclass

from nosync.model.absent import connector
from nosync.model.arguments import checked
from nosync.model.errors import Invalid
from nosync.model.identifiers import Epoch
from nosync.model.sink import Changes, Identity, Promise


@checked(truncate="Leave it out: values are printed as they are.")
def console(numRows: int = 20) -> "Console":  # noqa: N803 (Spark's name)
    """Prints each epoch's first rows.

    >>> flow.sink("screen", purchases, ns.console(numRows=5))
    """
    if numRows < 1:
        raise Invalid(f"ns.console: numRows={numRows} would show nothing", hint="Pass 1 or more.")
    return Console(numRows)


@connector("sink", "console")
@dataclass(frozen=True)
class Console:
    """See `console`."""

    rows: int

    def __repr__(self) -> str:
        return f"ns.console(numRows={self.rows})"

    @property
    def promise(self) -> Promise:
        return Promise("repeating", "what was printed before a crash cannot be taken back")

    def open(self, run: str, identity: Identity) -> None:
        """A terminal needs nothing."""

    def deliver(self, epoch: Epoch, changes: Changes) -> None:
        table = changes.table()
        print(f"-------- epoch {epoch}: {table.num_rows:,} changes")
        if table.num_rows:
            print(table.slice(0, self.rows).to_pandas().to_string(index=False))

    def close(self) -> None:
        """Nothing is held."""
