"""A folder of Parquet files: one file an epoch, readable by anyone.

    FOLDER/epoch-<12 digits>.parquet    a file appears whole, by renaming; its bytes depend on the epoch alone
    FOLDER/_nosync.json                 whose output this is, and the run that writes it now
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet as pq

from nosync.model.errors import MALFORMED, Fenced, Invalid, Unavailable
from nosync.model.sink import Changes, Identity, Promise

MARKER = "_nosync.json"  # readers of Parquet folders pass over names that begin so


def parquet(path: str | Path) -> "ParquetFolder":
    """A folder with one file an epoch, readable by anyone: the query's columns, `_epoch` and `_diff`. An epoch without a change has none.

    The folder belongs to one sink of one home for good: it is refused to any other.
    """
    return ParquetFolder(Path(str(path).removeprefix("file://")))


@dataclass
class ParquetFolder:
    """See `parquet`."""

    folder: Path
    run: str = ""

    @property
    def promise(self) -> Promise:
        return Promise("precise", "one file an epoch: delivered again, it is replaced by the same rows", "checked")

    def open(self, run: str, identity: Identity) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._check(identity)
            for begun in self.folder.glob(".epoch-*.parquet.*"):  # by a run that was killed
                begun.unlink(missing_ok=True)
            self._write(MARKER, json.dumps({**asdict(identity), "run": run}).encode())
        except OSError as error:
            words = f'sink "{identity.sink}": folder "{self.folder}" cannot be written: {error.strerror or error}'
            raise Invalid(words, hint="Choose another folder, or restore access.") from None
        self.run = run

    def _check(self, identity: Identity) -> None:
        """Two histories in one folder are nobody's output."""
        found = self._marked()
        if found is None and next(self.folder.glob("epoch-*.parquet"), None) is None:
            return
        owner = Identity(found["flow"], found["sink"], found["history"]) if found else None
        if owner == identity:
            return
        whose = f'flow "{owner.flow}", sink "{owner.sink}"' if owner else "nobody knows whom"
        if owner and (owner.flow, owner.sink) == (identity.flow, identity.sink):
            whose = "the same flow on another home"
        raise Invalid(
            f'sink "{identity.sink}": folder "{self.folder}" has the output of {whose}',
            hint="Choose an empty folder, or move what is there away: two histories in one folder would be read as one.",
        )

    def _marked(self) -> dict[str, str] | None:
        try:
            found = json.loads((self.folder / MARKER).read_bytes())
            return {name: str(found[name]) for name in ("flow", "sink", "history", "run")}
        except FileNotFoundError:
            return None
        except MALFORMED:
            raise Invalid(f'"{self.folder / MARKER}" cannot be read', hint="Choose an empty folder, or move what is there away.") from None

    def deliver(self, epoch: int, changes: Changes) -> None:
        target = self.folder / f"epoch-{epoch:012d}.parquet"
        temporary = self.folder / f".{target.name}.{os.getpid()}"
        try:
            self._check_run()
            if changes.empty:
                return
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

    def _check_run(self) -> None:
        marked = self._marked()
        if marked is None:
            raise FileNotFoundError(f'"{MARKER}" is gone')
        if marked["run"] != self.run:
            raise Fenced(f'folder "{self.folder}" is now written by run "{marked["run"]}"', hint="Stop this process: that one took over.")

    def close(self) -> None:
        """Nothing is held."""

    def _write(self, name: str, content: bytes) -> None:
        temporary = self.folder / f".{name}.{os.getpid()}"
        temporary.write_bytes(content)
        _sync(temporary)
        temporary.replace(self.folder / name)
        _sync(self.folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
