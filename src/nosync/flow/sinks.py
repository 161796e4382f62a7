"""Where output can go: a folder of Parquet files, a function, the terminal."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from nosync.model.errors import Invalid, Unavailable
from nosync.model.sink import Promise


def parquet(path: str | Path) -> "ParquetFolder":
    """A folder with one file an epoch, readable by anyone: the query's columns, `_epoch` and `_diff`. An epoch without a change has
    none.
    """
    return ParquetFolder(Path(str(path).removeprefix("file://")))


def foreachEpoch(function: Callable[[DataFrame, int], Any], idempotent: bool = False) -> "ForeachEpoch":  # noqa: N802 (as PySpark's foreachBatch)
    """Calls the function with each epoch's changes and its number.

    The changes are a DataFrame of the query's columns, `_epoch` and `_diff`. After a crash an epoch may come again, always the same:
    say `idempotent=True` if the function makes nothing of that.
    """
    return ForeachEpoch(function, idempotent)


def console(rows: int = 20) -> "Console":
    """Prints each epoch's first rows."""
    return Console(rows)


@dataclass(frozen=True)
class ParquetFolder:
    """See `parquet`.

    FOLDER/epoch-<12 digits>.parquet; a file appears whole, by renaming; its bytes depend on the epoch alone.
    """

    folder: Path

    @property
    def promise(self) -> Promise:
        return Promise("precise", "one file an epoch: delivered again, it is replaced by the same rows")

    def start(self, flow: str, sink: str) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for begun in self.folder.glob(".epoch-*.parquet.*"):  # by a run that was killed
                begun.unlink(missing_ok=True)
        except OSError as error:
            words = f'sink "{sink}": folder "{self.folder}" cannot be made: {error.strerror}'
            raise Invalid(words, hint="Choose another folder.") from None

    def deliver(self, epoch: int, changes: Any) -> None:
        if not changes.layers:
            return
        target = self.folder / f"epoch-{epoch:012d}.parquet"
        temporary = self.folder / f".{target.name}.{os.getpid()}"
        try:
            with pq.ParquetWriter(temporary, changes.schema) as writer:
                for batch in changes.batches():
                    writer.write_batch(batch)
            _sync(temporary)
            temporary.replace(target)
            _sync(self.folder)
        except OSError as error:
            with suppress(OSError):  # the folder itself may be out of reach
                temporary.unlink()
            hint = "Make room or restore access: it is tried again."
            raise Unavailable(f'"{target}" could not be written: {error}', hint=hint) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class ForeachEpoch:
    """See `foreachEpoch`."""

    function: Callable[[DataFrame, int], Any]
    idempotent: bool

    @property
    def promise(self) -> Promise:
        if self.idempotent:
            return Promise("precise", "the function makes nothing of an epoch that it had before (idempotent=True)")
        return Promise("repeating", "a crash between the call and its record calls the function again with the same epoch")

    def start(self, flow: str, sink: str) -> None:
        """A function needs nothing."""

    def deliver(self, epoch: int, changes: Any) -> None:
        self.function(changes.frame(), epoch)


@dataclass(frozen=True)
class Console:
    """See `console`."""

    rows: int

    @property
    def promise(self) -> Promise:
        return Promise("repeating", "what was printed before a crash cannot be taken back")

    def start(self, flow: str, sink: str) -> None:
        """A terminal needs nothing."""

    def deliver(self, epoch: int, changes: Any) -> None:
        table: pa.Table = changes.table()
        print(f"-------- epoch {epoch}: {table.num_rows:,} changes")
        if table.num_rows:
            print(table.slice(0, self.rows).to_pandas().to_string(index=False))
