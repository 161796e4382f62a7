"""A folder of Parquet files: one file an epoch, readable by anyone."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from nosync.model.errors import Invalid, Unavailable
from nosync.model.identifiers import Epoch
from nosync.model.sink import Promise


def parquet(path: str | Path) -> "ParquetFolder":
    """A folder with one file an epoch, readable by anyone: the query's columns, `_epoch` and `_diff`. An epoch without a change has
    none.
    """
    return ParquetFolder(Path(str(path).removeprefix("file://")))


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

    def deliver(self, epoch: Epoch, changes: Any) -> None:
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
