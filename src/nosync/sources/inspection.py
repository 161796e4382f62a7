"""Files that a start would read, and could not: so that `nosync fsck` can say it before. No Spark, no program; nothing is written."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.model.identifiers import Epoch, epochs
from nosync.recovery.plan import Plan
from nosync.sources.listing import Entry, entries_in, facts

GONE = "is gone"
CHANGED = "changed after it was taken"
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A file of the input that is not as it was recorded. Where its epoch was `computed` and is needed again, the start stops; else the
    file is recorded anew, or rejected.
    """

    source: str
    file: str
    epoch: Epoch
    reason: str
    computed: bool


def obstacles(image: Image, chosen: Plan, quick: bool = False) -> list[Obstacle]:
    """What stands in the way of a plan. `quick` compares sizes and times; otherwise every file is read."""
    again = {epoch for job in chosen.jobs for epoch in epochs(job.first, job.last)}
    needed = [entry for epoch, entry in sorted(image.opened.items()) if epoch in again or chosen.epoch < epoch <= chosen.opened]
    return [found for entry in needed for found in _in_the_way(image, entry, entry.epoch in again, quick)]


def _in_the_way(image: Image, opened: Opened, computed: bool, quick: bool) -> Iterator[Obstacle]:
    folders = image.declared.folders if image.declared else {}
    for source in [source for source in opened.slices if source in folders]:
        folder, skipped = Path(folders[source]), image.skipped.get(source, {})
        for entry in _read(entries_in(opened.slices[source]), skipped):
            reason = _reason(folder, entry, quick)
            if reason:
                yield Obstacle(source, str(folder / entry.name), opened.epoch, reason, computed)


def _read(entries: Iterable[Entry], skipped: Iterable[str]) -> list[Entry]:
    return [entry for entry in entries if entry.name not in skipped]


def _reason(folder: Path, entry: Entry, quick: bool) -> str:
    now = facts(folder, entry.name)
    if now is None:
        return GONE
    if now != entry:
        return CHANGED
    return "" if quick else _unreadable(folder / entry.name)


def _unreadable(path: Path) -> str:
    """Why the bytes of a file cannot be had; empty where they can."""
    try:
        with path.open("rb") as file:
            if file.read(4) in (b"PAR1", b"PARE"):
                file.seek(0)
                for _ in pq.ParquetFile(file).iter_batches():
                    pass
            else:
                while file.read(CHUNK):
                    pass
    except (pa.ArrowException, OSError) as error:
        return f"cannot be read: {str(error).splitlines()[0]}"
    return ""
