"""What a checkpoint of Structured Streaming says besides its state: which batch was committed last, how far each source was read, the
watermark.

    offsets/<batch>     "v1", a line of settings and the batch's watermark, a line for each source: where the batch ends
    commits/<batch>     "v1", a line with the watermark of the batch after it
    sources/<number>/   what a source keeps for itself; a source of files, the files of each of its batches

Everything is only read. What was planned and not committed counts as not read: the state is that of the last commit.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nosync.model.errors import LONGEST, MALFORMED, Invalid
from nosync.model.source import Position

VERSION = "v1"
NOWHERE = "-"  # what stands for a source that has had nothing yet
HINT = "Pass the checkpointLocation of the query; one in an object store must be copied to a folder first."


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """As of its last committed `batch`. `watermark` is that of the batch to come, in microseconds, 0 for none; `planned`: whether that
    batch had begun. `sources` in the order in which the query reads them; None for one that had read nothing.
    """

    path: Path
    batch: int
    watermark: int
    planned: bool
    sources: tuple[Position | None, ...]

    @property
    def said(self) -> str:
        return f"{self.path}, batch {self.batch}"


def read_checkpoint(path: Path) -> Checkpoint:
    """`Invalid` where there is none, or nothing was committed."""
    path = path.expanduser().absolute()
    if not (path / "offsets").is_dir() or not (path / "commits").is_dir():
        raise Invalid(f'"{path}" is no checkpoint of a streaming query: it has no offsets and commits', hint=HINT)
    try:
        return _read(path)
    except (OSError, *MALFORMED) as error:
        raise Invalid(f'"{path}" cannot be read: {error}'[:LONGEST], hint=HINT) from None


def _read(path: Path) -> Checkpoint:
    batches = _numbers(path / "commits")
    if not batches:
        raise Invalid(f'no batch of "{path}" was committed', hint="There is nothing to go on from: start the flow on a new home.")
    batch = max(batches)
    _, *offsets = _lines(path / "offsets" / str(batch))
    commit = _object(path / "commits" / str(batch), *_lines(path / "commits" / str(batch))[:1])
    watermark = int(commit.get("nextBatchWatermarkMs", 0)) * 1000
    sources = tuple(_position(path / "sources" / str(number), offset) for number, offset in enumerate(offsets))
    return Checkpoint(path, batch, watermark, max(_numbers(path / "offsets")) > batch, sources)


def _numbers(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.iterdir() if file.name.isdecimal()]


def _lines(file: Path) -> list[str]:
    """All but the first, which says the version."""
    try:
        version, *lines = file.read_text().splitlines()
    except (OSError, ValueError) as error:
        raise Invalid(f'"{file}" cannot be read: {error}', hint=HINT) from None
    if version != VERSION:
        raise Invalid(f'"{file}" has version {version[:20]!r}, and only "{VERSION}" is known', hint="Name no sources in the query.")
    return lines


def _object(file: Path, line: str = "{}") -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Invalid(f'"{file}" holds {line[:50]!r}, which is not understood', hint=HINT)
    return found


def _position(folder: Path, offset: str) -> Position | None:
    if offset == NOWHERE:
        return None
    last = _batch_of_files(offset)
    if last is not None:
        return Position(offset, tuple(dict.fromkeys(_files(folder, last))))
    kept = [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith(".")] if folder.is_dir() else []
    return Position(offset, kept={file.relative_to(folder).as_posix(): file.read_text(errors="replace") for file in kept})


def _batch_of_files(offset: str) -> int | None:
    """The last batch of a source of files, which counts them itself; None for another source."""
    try:
        return int(json.loads(offset)["logOffset"])
    except (KeyError, TypeError, ValueError):
        return None


def _files(folder: Path, last: int) -> Iterator[str]:
    """Addresses of all files up to a batch. A compacted log has those of all batches before."""
    logs = {int(file.name.partition(".")[0]): file for file in sorted(folder.iterdir()) if file.name.partition(".")[0].isdecimal()}
    for number in sorted(logs):
        if number <= last:
            entries = (_object(logs[number], line) for line in _lines(logs[number]))
            yield from (str(entry["path"]) for entry in entries if int(entry.get("batchId", 0)) <= last)
