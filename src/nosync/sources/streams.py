"""Any stream of Spark's as a source: what `spark.readStream....load()` returns.

A slice is a pair of the source's own offsets, `{"start": ..., "end": ...}`, each the text that the source makes of it, and `kept`: the
small files that the source has written into its checkpoint folder, by name, so that another host reads the same rows from the same offsets.
A stream that cannot be read again (a socket, all of the older interface) gets an input log.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Java, children, kind
from nosync.bridge.errors import JavaError
from nosync.bridge.frames import OBSERVED, analyzed
from nosync.bridge.older_streams import OlderBatches
from nosync.bridge.streams import Described, MicroBatches, described, explained
from nosync.model import arguments
from nosync.model.columns import DIFF
from nosync.model.errors import Invalid
from nosync.model.source import Position, Slice, Source, Taken
from nosync.model.store import checked
from nosync.sources.files import FORMATS, MAX_BYTES, files
from nosync.state.private import make_folder
from nosync.store.disk import whole_file

FORGETFUL = ("TextSocketTable", "MemoryStreamTable", "MemoryStreamTableBase")  # forget what they have handed out
MOST_KEPT = 64 << 10  # bytes of a source's own files that go into slices
UNSUPPORTED = {
    "latestfirst": ("true", "Files are taken from the oldest to the newest."),
    "filenameonly": ("true", "Files are known by their paths."),
    "maxfileage": (None, "Every file is taken, however old."),
}
PASSED_OVER = ("path", "latestfirst", "filenameonly", "maxcachedfiles", "discardcachedinputratio")
SUFFIXES = {"k": 10, "m": 20, "g": 30, "t": 40}
Found = TypeVar("Found")


@arguments.checked()
def stream(frame: DataFrame, replayable: bool = True) -> Source:
    """A stream of Spark's, `spark.readStream...load()`, as a source; `flow.source(name, frame)` does the same.

    `replayable=False` for one that cannot read the same offsets again, for ever: its rows are written into the home.

    >>> ticks = flow.source("ticks", ns.stream(flow.spark.readStream.format("rate").load(), replayable=False))
    """
    if not isinstance(frame, DataFrame):
        raise Invalid(f"ns.stream was given a {type(frame).__name__}", hint="Pass what spark.readStream.format(...).load() returns.")
    plan = analyzed(frame)
    if not plan.isStreaming() or children(plan):
        raise Invalid("ns.stream takes what spark.readStream...load() returned", hint="Apply the query to what flow.source returns.")
    return stream_of(plan, replayable)


def stream_of(leaf: Java, replayable: bool = True) -> Source:
    """The source that reads a streaming leaf of a plan."""
    found = described(leaf)
    if found.old:
        return _files(found) if found.format.lower() in FORMATS else OlderStream(leaf, found)
    forgetful = not replayable or kind(leaf.table()) in FORGETFUL
    return ForgetfulStream(leaf, found) if forgetful else SparkStream(leaf, found)


def name_of(leaf: Java) -> str:
    """What a stream is called that nobody has named: after what it reads."""
    found = described(leaf)
    given = found.options
    text = given.get("subscribe") or given.get("subscribepattern") or given.get("path") or "".join(found.paths) or found.format
    return Path(text.rstrip("/")).name.partition(":")[0] or found.format


def _files(found: Described) -> Source:
    """A stream of files is the folder itself."""
    format, options, paths = found.format.lower(), dict(found.options), list(found.paths)
    for name, (value, why) in UNSUPPORTED.items():
        if name in options and value in (None, options[name].lower()):
            raise Invalid(f'the option "{name}" of a stream of files is not possible here', hint=f"Leave it out. {why}")
    paths += [options["path"]] if "path" in options else []
    if len(paths) != 1:
        raise Invalid(f"a stream of files reads one folder, not {', '.join(paths) or 'none'}", hint="Declare a source for each folder.")
    named: dict[str, Any] = {
        "maxFilesPerTrigger": int(options.pop("maxfilespertrigger")) if "maxfilespertrigger" in options else None,
        "maxBytesPerTrigger": _bytes(options.pop("maxbytespertrigger", str(MAX_BYTES))),
        "cleanSource": options.pop("cleansource", "off").lower(),
        "sourceArchiveDir": options.pop("sourcearchivedir", None),
    }
    named |= {name: value for name, value in options.items() if name not in PASSED_OVER}
    return files(paths[0].removeprefix("file:") if "://" not in paths[0] else paths[0], format, found.schema, **named)


def _bytes(text: str) -> int:
    """As Spark reads sizes: "512m"."""
    plain = text.strip().lower().removesuffix("b")
    try:
        return int(plain[:-1]) << SUFFIXES[plain[-1]] if plain[-1:] in SUFFIXES else int(plain)
    except ValueError:
        raise Invalid(f'maxBytesPerTrigger="{text}" is no size', hint='Pass a number of bytes, or "512m".') from None


@dataclass(eq=False, repr=False)
class SparkStream:
    """A stream of the DataSource V2 interface. It is opened when it is first asked, so that what it reads from may be out of reach."""

    leaf: Java
    found: Described
    append_only: bool = True
    position: str | None = None
    kept: dict[str, str] = field(default_factory=dict)
    place: Path = field(default_factory=Path)
    reader: type[MicroBatches] | type[OlderBatches] = MicroBatches
    _batches: MicroBatches | OlderBatches | None = None
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def __repr__(self) -> str:
        return f"ns.stream({self.found.format})"

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name, self.spark = name, spark
        return self.found.schema

    def start(self, folder: Path, taken: Taken) -> None:
        self.close()
        self.place, latest = folder / "stream", taken.latest
        make_folder(self.place)  # what Spark writes there has the permissions that it gives
        self.position, self.kept = (latest["end"], latest["kept"]) if latest else (None, {})

    def continue_from(self, position: Position) -> Slice:
        """Spark's own offsets, with what the source has kept beside them."""
        if position.files is not None:
            raise Invalid(f'source "{self.name}" reads no files, and the query did', hint="Let it read what the query has read.")
        if sum(len(text) for text in position.kept.values()) > MOST_KEPT:
            raise Invalid(f'source "{self.name}" ({self.found.format}) keeps more than {MOST_KEPT:,} bytes', hint="It cannot be continued.")
        return {"start": position.offset, "end": position.offset, "kept": dict(position.kept)}

    def available(self) -> Slice | None:
        return self._asked(self._available)

    def _available(self, batches: MicroBatches | OlderBatches) -> Slice | None:
        """The first slice is handed out even if it is empty: it says where the stream began, and some begin with being read."""
        first = self.position is None
        start = batches.initial() if self.position is None else self.position
        self.kept = self._remembered() if first else self.kept
        end = batches.latest(start) or start
        if end == start and not first:
            return None
        self.position = end
        return {"start": start, "end": end, "kept": self.kept}

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        parts = slice.get("parts", [slice])
        ranges = [(part["start"], part["end"]) for part in parts]
        frames: list[DataFrame] = self._asked(lambda batches: [batches.read(spark, *range) for range in ranges], parts[-1]["kept"])
        rows = reduce(DataFrame.unionAll, frames)
        counted = rows.observe(f"{OBSERVED}{self.name}", F.count(F.lit(1)).alias("rows"))
        return counted.withColumn(DIFF, F.lit(1).cast("bigint"))

    def together(self, slices: Sequence[Slice]) -> Slice:
        """Counted as one."""
        return {"parts": list(slices)}

    def close(self) -> None:
        with self._opening:
            batches, self._batches = self._batches, None
        if batches is not None:
            batches.stop()

    def _asked(self, ask: Callable[[Any], Found], kept: dict[str, str] | None = None) -> Found:
        try:
            with self._opening:
                if self._batches is None:
                    self._restore(self.kept or kept or {})
                    self._batches = self.reader(self.spark, self.leaf, self.place.as_uri())
            return ask(self._batches)
        except JavaError as error:
            raise explained(f'source "{self.name}" ({self.found.format})', error) from None

    def _restore(self, kept: dict[str, str]) -> None:
        """What the source has remembered on another host."""
        for name, text in kept.items():
            file = self.place / checked(name)
            if not file.exists():
                with whole_file(file) as written:
                    written.write(text.encode())

    def _remembered(self) -> dict[str, str]:
        found = [file for file in sorted(self.place.rglob("*")) if file.is_file() and not file.name.startswith(".")]
        if sum(file.stat().st_size for file in found) > MOST_KEPT:
            hint = "It cannot be read from another host: write a source that needs no files, docs/extending.md."
            raise Invalid(f'source "{self.name}" ({self.found.format}) keeps more than {MOST_KEPT:,} bytes of its own', hint=hint)
        return {file.relative_to(self.place).as_posix(): file.read_text() for file in found}


@dataclass(eq=False, repr=False)
class ForgetfulStream(SparkStream):
    """One that cannot be read again: a new run begins with what comes from then on."""

    def start(self, folder: Path, taken: Taken) -> None:
        super().start(folder, taken)
        self.position, self.kept = None, {}

    def acknowledge(self, slice: Slice) -> None:
        self._asked(lambda batches: batches.commit(slice["end"]))


@dataclass(eq=False, repr=False)
class OlderStream(SparkStream):
    """One of Spark's older interface, which reads a range again only until it is told that it is done with: its rows go into the home.

    What it remembers in its folder is not to be had on another host (files that it has seen): there it would begin anew, and is refused.
    """

    reader: type[MicroBatches] | type[OlderBatches] = OlderBatches

    def start(self, folder: Path, taken: Taken) -> None:
        super().start(folder, taken)
        if taken.latest is not None and taken.latest["remembers"] and not self._remembers():
            words = f'source "{self.name}" ({self.found.format}) has what it remembers in "{self.place}", and nothing is there'
            raise Invalid(words, hint="Go on where that folder is, or begin on a new home: here it would read everything once more.")

    def _remembers(self) -> bool:
        return any(file.is_file() for file in self.place.rglob("*"))

    def available(self) -> Slice | None:
        found = super().available()
        return None if found is None else {**found, "remembers": self._remembers()}

    def acknowledge(self, slice: Slice) -> None:
        self._asked(lambda batches: batches.commit(slice["end"]))
