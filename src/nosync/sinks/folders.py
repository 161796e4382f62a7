"""Folders of files that anybody reads: Parquet, JSON or CSV; what changes by epoch, what is added, or the newest rows.

    FOLDER/[COLUMN=VALUE/...]epoch-<12 digits>.parquet    changes, append: appears whole, by renaming; its bytes depend on the epoch alone
    FOLDER/current -> version-<12 digits>/                state: the rows as of that epoch, see `current`
    FOLDER/_nosync.json                                   see `marked`
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import getpid
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa

from nosync.model.absent import connector
from nosync.model.arguments import checked, did_you_mean
from nosync.model.columns import EPOCH
from nosync.model.errors import Invalid, Refused, Unavailable
from nosync.model.identifiers import Epoch
from nosync.model.sink import Changes, Identity, Promise
from nosync.sinks.current import Current
from nosync.sinks.formats import WRITERS, flat
from nosync.sinks.marked import MarkedFolder
from nosync.sinks.rows import added, partitions
from nosync.store.lasting import put_whole

Mode = Literal["changes", "append", "state"]
Columns = str | Sequence[str]
ELSEWHERE = {
    "outputMode": 'Pass mode="changes", "append" or "state".',
    "partition_by": "Pass partitionBy=.",
    "partitionColumns": "Pass partitionBy=.",
    "checkpointLocation": "Leave it out: the flow has its home.",
    "path": 'Pass a folder: ns.parquet("out").',
}


@checked(**ELSEWHERE)
def parquet(path: str | Path, mode: Mode = "changes", partitionBy: Columns = ()) -> "Folder":  # noqa: N803 (Spark's name)
    """A folder of Parquet files, readable by anyone. `partitionBy` makes a folder for each value of these columns, as Spark does.

    - `mode="changes"`: one file an epoch, with the query's columns, `_epoch`, and `_diff` (1 for a row that comes, -1 for one that goes).
    - `mode="append"`: the same without those two, where rows are only ever added: final windows, queries without state.
    - `mode="state"`: the rows as of now, in `path/current`, replaced whole by each epoch that changes them.

    An epoch without a change leaves nothing. The folder belongs to one sink of one home for good: it is refused to any other.

    >>> ns.parquet("out", mode="state", partitionBy="day")
    ns.parquet("out", mode="state", partitionBy=['day'])
    """
    return _folder(path, "parquet", mode, partitionBy)


@checked(**ELSEWHERE)
def json(path: str | Path, mode: Mode = "changes", partitionBy: Columns = ()) -> "Folder":  # noqa: N803 (Spark's name)
    """As `ns.parquet`, with one JSON object a line.

    >>> flow.sink("lines", purchases, ns.json("lines", mode="append"))
    """
    return _folder(path, "json", mode, partitionBy)


@checked(**ELSEWHERE)
def csv(path: str | Path, mode: Mode = "changes", partitionBy: Columns = ()) -> "Folder":  # noqa: N803 (Spark's name)
    """As `ns.parquet`, with CSV: a line of names, then a row a line. Lists, maps and structures have no place there.

    >>> flow.sink("table", purchases, ns.csv("table"))
    """
    return _folder(path, "csv", mode, partitionBy)


def _folder(path: str | Path, format: str, mode: str, partition_by: Columns) -> "Folder":
    said = str(path).removeprefix("file://")
    if "://" in said:
        hint = "Pass a local folder; ns.foreachBatch(function) writes wherever Spark can."
        raise Invalid(f'ns.{format} writes into folders of this machine, "{said}" is none', hint=hint)
    if mode not in get_args(Mode):
        hint = f'{did_you_mean(mode, get_args(Mode))}Pass "changes", "append" or "state".'
        raise Invalid(f'ns.{format}: mode="{mode}" is not known', hint=hint)
    if said in ("", "."):
        raise Invalid(f'ns.{format}: "{said}" names no folder of its own', hint=f'Pass a folder, such as ns.{format}("out").')
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    wrong = next((column for column in columns if not isinstance(column, str)), None)
    if wrong is not None:
        raise Invalid(f"ns.{format}: partitionBy={wrong!r} is no name of a column", hint='Pass names: partitionBy="day".')
    return Folder(Path(said).expanduser(), format, mode, columns)


@connector("sink", "parquet")
@dataclass
class Folder:
    """See `parquet`."""

    folder: Path
    format: str = "parquet"
    mode: str = "changes"
    partition_by: tuple[str, ...] = ()
    marked: MarkedFolder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.marked = MarkedFolder(self.folder, "version-*" if self.mode == "state" else f"**/epoch-*.{self.format}")
        self.current = Current(self.folder, self.format, self.partition_by)

    def __repr__(self) -> str:
        parts = f", partitionBy={list(self.partition_by)}" if self.partition_by else ""
        return f'ns.{self.format}("{self.folder}", mode="{self.mode}"{parts})'

    def addresses(self) -> tuple[str, ...]:
        return (str(self.folder.absolute() / f"epoch-000000000001.{self.format}"),)

    @property
    def every_epoch(self) -> bool:
        """Each file of changes is that of one epoch, as its rows say."""
        return self.mode == "changes"

    @property
    def promise(self) -> Promise:
        if self.mode == "state":
            return Promise("precise", "the rows as of an epoch: delivered again, they are as they were", "checked")
        return Promise("precise", "one file an epoch: delivered again, it is replaced by the same rows", "checked")

    def check_query(self, sink: str, schema: pa.Schema, corrects: Sequence[str]) -> None:
        """Refuses a query whose output has no place here. `corrects` names what takes back rows that it gave."""
        if self.folder.is_file():
            raise Invalid(f'sink "{sink}": "{self.folder}" is a file', hint="Pass a folder, one that is empty or not there yet.")
        if self.mode == "append" and corrects:
            raise Refused(
                f'sink "{sink}": mode="append" needs rows that are only ever added, but "{corrects[0]}" takes back what it gave',
                hint='Pass mode="state" or mode="changes". Windows over a watermark give each row once: flow.view(..., emit="final").',
            )
        names = list(schema.names)
        missing = next((column for column in self.partition_by if column not in names), None)
        if missing is not None:
            raise Invalid(f'sink "{sink}": partitionBy="{missing}" is no column of the query', hint=f"There are: {', '.join(names)}.")
        if self.partition_by and len(self.partition_by) >= len(names):
            raise Invalid(f'sink "{sink}": partitionBy= names all columns', hint="Leave one to be written into the files.")
        nested = next((column.name for column in schema if not flat(column.type)), None)
        if self.format == "csv" and nested is not None:
            raise Invalid(f'sink "{sink}": column "{nested}" has no place in CSV: {schema.field(nested).type}', hint="Use ns.json.")

    def open(self, run: str, identity: Identity) -> None:
        self.marked.open(run, identity)

    def deliver(self, epoch: Epoch, changes: Changes) -> None:
        try:
            self.marked.check_run()
            if changes.empty:
                return
            if self.mode == "state":
                self.current.advance(epoch, changes.table().drop_columns([EPOCH]))
            elif self.mode == "changes" and not self.partition_by:
                self._write("", epoch, changes.schema, changes)
            else:
                table = changes.table() if self.mode == "changes" else added(changes.table().drop_columns([EPOCH]))
                for name, part in partitions(table, self.partition_by):
                    self._write(name, epoch, part.schema, part)
        except OSError as error:
            hint = "Make room or restore access: it is tried again."
            raise Unavailable(f'epoch {epoch} could not be written to "{self.folder}": {error}', hint=hint) from error

    def _write(self, name: str, epoch: Epoch, schema: pa.Schema, rows: "Changes | pa.Table") -> None:
        target = self.folder / name / f"epoch-{epoch:012d}.{self.format}"
        temporary = target.with_name(f".begun-{target.name}.{getpid()}")
        if name:
            target.parent.mkdir(parents=True, exist_ok=True)
        try:
            WRITERS[self.format](temporary, schema, rows.to_batches() if isinstance(rows, pa.Table) else rows.batches())
            put_whole(temporary, target)
        except OSError:
            with suppress(OSError):  # the folder itself may be out of reach
                temporary.unlink()
            raise

    def close(self) -> None:
        """Nothing is held."""


