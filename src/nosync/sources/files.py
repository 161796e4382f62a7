"""Files as a source, of a folder or of a glob: each file belongs to exactly one epoch.

Files are taken in the order of their modification time, then their name; a file that appears later is picked up whatever its time.
Move files in whole (write elsewhere, then rename): size and modification time are recorded. A file that changes or vanishes before its
epoch is computed is recorded anew, as it is then; one that changes afterwards is an error whenever it is needed again. Rows that do not fit
the schema, and files that cannot be read, go to the view `<source>.rejected`; they never stop the flow.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.bridge.arrow import arrow_schema
from nosync.bridge.options import known_options
from nosync.model import arguments
from nosync.model.absent import connector
from nosync.model.arguments import did_you_mean
from nosync.model.columns import DIFF
from nosync.model.duration import microseconds
from nosync.model.errors import Invalid, Unavailable, Unreadable
from nosync.model.identifiers import Epoch
from nosync.model.source import Marks, Position, Slice, Taken
from nosync.model.store import checked
from nosync.sources.cleaning import Cleaning, cleaning_of
from nosync.sources.csv_task import content_of, is_text
from nosync.sources.footers import Footer, footer_of
from nosync.sources.listing import Entry, Looked, facts, name_below, new_entries, shown, unnamable
from nosync.sources.location import Location, format_said_by, location_of
from nosync.sources.options import check_options
from nosync.sources.plain_csv import PlainCsv
from nosync.sources.reading import TEXTUAL, Reading
from nosync.sources.schema import schema_of
from nosync.store.addresses import CLOUDS

FORMATS = ("parquet", "json", "csv", "text", "orc")
MAX_BYTES = 128 << 20
STORES = (*CLOUDS, "memory")
LATEST = 100  # files that are looked at again after they were taken
SKIPPED = "set aside by nosync skip"
GONE = "gone before it was read"
CHANGED = "changed after it was taken: what is new in it is not read; put new rows into new files"
UNFINISHED_NANOS = 10 * 10**9  # a file that is no Parquet may be one soon: it is looked at again while it is so young


@arguments.checked(
    path='Pass one folder, file or glob, such as "in/*/*.csv"; several are several sources, and a union of what they give.',
    pathGlobFilter='Write the glob into the path: ns.files("in/*.csv").',
)
def files(
    path: str | Path,
    format: str | None = None,
    schema: str | StructType | None = None,
    maxFilesPerTrigger: int | None = None,  # noqa: N803 (Spark's name)
    maxBytesPerTrigger: int = MAX_BYTES,  # noqa: N803 (Spark's name)
    cleanSource: str = "off",  # noqa: N803 (Spark's name)
    sourceArchiveDir: str | Path | None = None,  # noqa: N803 (Spark's name)
    minFileAge: str = "0 seconds",  # noqa: N803 (as Spark's maxFileAge)
    growing: bool = False,
    **options: Any,
) -> "Files":
    """New files in a folder or of a glob ("in/*.csv"), or one file. `options` are those of `spark.read` for the format.

    `format` is "parquet", "json", "csv", "text" or "orc"; without it, what the glob or the file's name says, else Parquet.
    An epoch takes at most `maxBytesPerTrigger` bytes (but always one file), so that a large backlog becomes many epochs.
    `cleanSource`: "archive" moves files that no failure can ask for again to `sourceArchiveDir`, "delete" deletes them; "off" leaves them.
    `minFileAge`: a file is taken when it was last changed so long ago, for writers that do not move files in whole.
    `path` may be that of an object store ("s3://bucket/prefix"); `growing=True` says that names there only ever grow: objects are taken in
    the order of their names, and what comes before the last one is not listed again.
    A Parquet file that lacks a declared column is rejected; with Spark's `mergeSchema=True` the column is null.
    >>> ns.files("in/*.csv", schema="user string, price double", header=True, maxFilesPerTrigger=1).format
    'csv'
    """
    if str(path).partition("://")[0] in STORES:
        from nosync.sources.objects import object_files  # which is made of what is here

        age = microseconds(minFileAge, "a duration for minFileAge")
        return object_files(str(path), format, schema, (maxFilesPerTrigger, maxBytesPerTrigger, age), cleanSource, growing, options)
    if growing:
        raise Invalid("growing=True is about names in an object store", hint="Leave it out: folders are listed whole.")
    location = location_of(path)
    format = (format or format_said_by(location)).lower()
    if format not in FORMATS:
        hint = f"{did_you_mean(format, FORMATS)}Pass one of these as format=."
        raise Invalid(f'format "{format}" is not one of {", ".join(FORMATS)}', hint=hint)
    for name, most in (("maxFilesPerTrigger", maxFilesPerTrigger), ("maxBytesPerTrigger", maxBytesPerTrigger)):
        if most is not None and most < 1:
            raise Invalid(f"{name}={most} takes no files", hint="Pass 1 or more.")
    clean = cleaning_of(location.folder, cleanSource, sourceArchiveDir)
    kind = Files if cleanSource == "off" else CleanedFiles
    age = microseconds(minFileAge, "a duration for minFileAge")
    return kind(location, format, schema, maxFilesPerTrigger, maxBytesPerTrigger, options, clean, age)


@connector("source", "files")
@dataclass(eq=False)
class Files:
    """See `files`."""

    location: Location
    format: str
    given: str | StructType | None
    max_files: int | None
    max_bytes: int
    options: dict[str, Any] = field(repr=False)  # may hold passwords and keys
    cleaning: Cleaning
    min_age: int = 0
    append_only: bool = True
    growing: bool = False  # names only ever grow: none is passed over for a later one
    seen: set[str] = field(default_factory=set)
    past: Marks | None = None
    skipped: frozenset[str] = frozenset()
    latest: dict[str, Entry] = field(default_factory=dict)
    plain: PlainCsv | None = None
    allowed: int | None = None
    looked: Looked = field(default_factory=Looked, repr=False)

    def __repr__(self) -> str:
        limit = f", maxFilesPerTrigger={self.max_files}" if self.max_files else ""
        return f'ns.files("{self.location}", format="{self.format}"{limit})'

    def would_read(self, address: str) -> bool:
        return "://" not in address and self.location.holds(Path(address))

    @property
    def path(self) -> Path:
        return self.location.folder

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name = name
        if not self.path.is_dir():
            raise Invalid(f'source "{name}": there is no folder "{self.path}"', hint="Create the folder, or correct the path.")
        if self.options:
            check_options(name, self.format, self.options, partial(known_options, spark, self.format))
        self.schema = schema_of(name, self.location, self.format, self.given, self.options, spark)
        self.expected = arrow_schema(self.schema, f'source "{name}"')
        self.reading = Reading(name, self.format, self.schema, self.options)
        return self.schema

    def folder(self) -> str:
        return str(self.path)

    def start(self, folder: Path, taken: Taken) -> None:
        """Names that were taken are asked for as they are met in the folder, so that a long past costs nothing."""
        self.past, self.seen, self.latest, self.skipped, self.plain, self.looked = taken.marks, set(), {}, taken.skipped, None, Looked()

    def _name_of(self, address: str) -> str | None:
        """What it calls a file that Spark has read; None for one that is nothing of its own."""
        return name_below(self.path, address)

    def allow(self, weight: int | None) -> None:
        self.allowed = weight

    def marks(self, slice: Slice) -> list[str]:
        """The names of its files, since no file is taken twice, and their facts, since none may change."""
        taken = slice["files"] + slice.get("before", [])
        return [entry[0] for entry in taken] + [_facts(Entry(*entry)) for entry in taken + slice.get("changed", [])]

    def continue_from(self, position: Position) -> Slice:
        """By the names of the files that were taken, with what they are now; of those that are gone, only the names."""
        if position.files is None:
            raise Invalid(f'source "{self.name}" reads files, and the query did not', hint="Let it read what the query has read.")
        names = [name for file in position.files if (name := self._name_of(file)) is not None]
        if not names and position.files:
            words = f'source "{self.name}" does not read "{position.files[0].rpartition("/")[0]}", as the query has'
            raise Invalid(words, hint="Let the source read the folder that the query has read.")
        known = [facts(self.path, name) or Entry(name, 0, 0) for name in names]
        return {"files": [], "bytes": 0, "rows": 0, "plain": False, "before": [list(entry) for entry in known]}

    def available(self) -> Slice | None:
        if self.looked.is_as_it_was():
            return None
        self.looked.begin()
        chosen, footers = list[Entry](), dict[str, Footer]()
        total, before, most = 0, len(self.seen), min(self.max_bytes, self.allowed or self.max_bytes)
        entries = new_entries(self.path, self.seen, self._taken, self.location.fits, self.looked)
        changed = self._changed(first=not before)
        for entry in self._old_enough(entries):
            if chosen and (total + entry.size > most or len(chosen) == self.max_files):
                break
            footer = self._footer(entry, failing=not chosen)
            if footer is not None:
                chosen.append(entry)
                footers[entry.name] = footer
                total += entry.size
            elif self.growing:
                break
        if not chosen and not changed:
            if not entries:
                self.looked.had_nothing()
            return None
        self.seen.update(entry.name for entry in chosen)
        self.latest = dict([*(self.latest | {entry.name: entry for entry in chosen + changed}).items()][-LATEST:])
        slice = self._slice(chosen, footers, {entry.name: CHANGED for entry in changed})
        return slice | ({"changed": [list(entry) for entry in changed]} if changed else {})

    def _changed(self, first: bool) -> list[Entry]:
        """Files that are not as they were when they were taken: looked for in all at first, then in the latest."""
        asked = [name for name in (self.seen if first else self.latest) if not self._is_skipped(name)]
        found = [now for name in asked if (now := facts(self.path, name)) is not None]
        known = self._taken([_facts(now) for now in found])
        return [now for now in found if self.latest.get(now.name, now) != now or (now.name not in self.latest and _facts(now) not in known)]

    def _taken(self, names: list[str]) -> set[str]:
        return (self.past.among(names) if self.past is not None else set[str]()) | {name for name in names if self._is_skipped(name)}

    def _is_skipped(self, name: str) -> bool:
        return name in self.skipped

    def _old_enough(self, entries: list[Entry]) -> list[Entry]:
        """Those that were not changed lately."""
        before = time.time_ns() - self.min_age * 1000
        return [entry for entry in entries if entry.modified <= before] if self.min_age else entries

    def _footer(self, entry: Entry, failing: bool) -> Footer | None:
        """What is known of a file before it is read; None to leave it for later. A file that cannot be reached holds up no other."""
        try:
            found = self._look_at(entry.name)
        except Unavailable:
            if failing:
                raise
            return None
        young = time.time_ns() - entry.modified < UNFINISHED_NANOS
        return None if found is None or (found.wrong and young) else found

    def _look_at(self, name: str) -> Footer | None:
        """The footer of a file. What a folder's name says (`column=value`) need not be in it."""
        if self.format != "parquet" or unnamable(name):
            return Footer(wrong=unnamable(name))
        merging = str(self.options.get("mergeSchema")).lower() == "true"
        said = {part.partition("=")[0].lower() for part in Path(name).parent.parts}
        return footer_of(self.path / name, self.expected, lambda column: merging or column.lower() in said)

    def _slice(self, entries: Sequence[Entry], footers: Mapping[str, Footer], broken: Mapping[str, str] | None = None) -> Slice:
        """Rows by Parquet's own account; files that cannot be read are set aside, with the reason."""
        wrong = {name: footer.wrong for name, footer in footers.items() if footer.wrong} | dict(broken or {})
        slice: Slice = {"files": [list(entry) for entry in entries], "bytes": sum(entry.size for entry in entries)}
        if self.format == "parquet":
            good = [footer for name, footer in footers.items() if name not in wrong]
            slice |= {"rows": sum(footer.rows for footer in good), "plain": all(footer.plain for footer in good)}
        return slice | ({"broken": wrong} if wrong else {})

    def reopen(self, slice: Slice, unreadable: Mapping[str, str]) -> Slice:
        """With the facts of now: what is gone, or could not be read, is set aside, what changed is taken as it is."""
        broken: dict[str, str] = dict(slice.get("broken", {}))
        old = [Entry(*entry) for entry in slice["files"]]
        now = {entry.name: facts(self.path, checked(entry.name)) for entry in old if entry.name not in broken}
        wrong = {name: GONE for name, found in now.items() if found is None}
        wrong |= {name: SKIPPED for name in now if self._is_skipped(name)}
        wrong |= {name: unreadable[path] for name in now if (path := str(self.path / name)) in unreadable}
        entries = [now.get(entry.name) or entry for entry in old]
        if entries == old and not wrong:
            return slice
        good = [entry for entry in entries if entry.name not in broken | wrong]
        self.latest |= {entry.name: entry for entry in good if entry.name in self.latest}
        looked = {entry.name: self._look_at(entry.name) for entry in good}
        footers = {name: footer or Footer(wrong=GONE) for name, footer in looked.items()}
        return self._slice(entries, footers, broken | wrong) | ({"changed": slice["changed"]} if "changed" in slice else {})

    def direct(self, slice: Slice) -> list[str]:
        """The files, where tasks may read columns from them without Spark; else nothing."""
        return self._paths(slice) if slice.get("plain") and not self.options else []

    def _paths(self, slice: Slice) -> list[str]:
        """The files of a slice, after checking that they are what they were."""
        broken = slice.get("broken", {})
        for relative, size, modified in slice["files"]:
            path = self.path / checked(relative)
            if relative in broken or self._is_skipped(relative):
                continue
            found = facts(self.path, relative)
            if found is None or found != (relative, size, modified):
                what = "is gone" if found is None else "changed after it was taken"
                way_out = f'nosync skip HOME "{self.name}" "{relative}"'
                hint = f"Put it back as it was: its epoch is needed again. Or set it aside for good: {way_out}"
                raise Unreadable(f'source "{self.name}": file "{path}" {what}', hint=hint)
        return [str(self.path / name) for name, _, _ in slice["files"] if name not in broken and not self._is_skipped(name)]

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        paths = self._paths(slice)
        if not paths:
            return spark.createDataFrame([], self.schema).withColumn(DIFF, F.lit(1).cast("bigint"))
        self.plain = self.reading.plain(spark, [name for name, _, _ in slice["files"]])
        return self.reading.rows(spark, paths, self.path, self.plain)

    def table(self, slice: Slice) -> pa.Table | None:
        """Of files that are read as the last ones were, which says how the run's session sets its clocks."""
        if self.plain is None or not all(is_text(name) for name, _, _ in slice["files"]):
            return None
        found = [self.plain.table(content) for content in map(content_of, self._paths(slice))]
        if any(table is None for table in found):
            return None
        table = pa.concat_tables([self.expected.empty_table(), *(table.rename_columns(self.expected.names) for table in found if table)])
        return table.append_column(DIFF, pa.array([1] * len(table), pa.int64()))

    def rejects(self, slice: Slice) -> int:
        """Files that could not be read at all."""
        return len(slice.get("broken", {}))

    def rejected(self, spark: SparkSession, slice: Slice, epoch: Epoch) -> DataFrame:
        """The rows of a slice that do not fit: raw text, reason, file."""
        broken = [(None, reason, shown(self.path / relative)) for relative, reason in slice.get("broken", {}).items()]
        found = spark.createDataFrame(broken, "raw string, reason string, file string")
        paths = self._paths(slice)
        if self.format in TEXTUAL and paths:
            rows = self.reading.rejected(spark, paths, self.path, epoch)
            found = found.unionAll(rows) if broken else rows
        return found.withColumn("epoch", F.lit(epoch).cast("bigint")).withColumn(DIFF, F.lit(1).cast("bigint"))

    def events(self, spark: SparkSession, slice: Slice) -> DataFrame:
        """All rows of a slice for a ledger: those that do not fit have a reason; each knows its file and its position in the input."""
        paths, broken = self._paths(slice), [(reason, shown(self.path / relative)) for relative, reason in slice.get("broken", {}).items()]
        failed = self.reading.failed(spark, broken)
        if paths:
            rows = self.reading.events(spark, paths, self.path)
            failed = rows.unionAll(failed) if broken else rows
        return failed.withColumn(DIFF, F.lit(1).cast("bigint"))

    def rows(self, slice: Slice) -> int | None:
        return None if (rows := slice.get("rows")) is None else int(rows)

    def weight(self, slice: Slice) -> int:
        return int(slice["bytes"])

    def together(self, slices: Sequence[Slice]) -> Slice:
        """One slice with the files of several."""
        joined: Slice = {"files": [entry for slice in slices for entry in slice["files"]], "bytes": sum(slice["bytes"] for slice in slices)}
        if all("rows" in slice for slice in slices):
            joined |= {"rows": sum(slice["rows"] for slice in slices), "plain": all(slice["plain"] for slice in slices)}
        broken = {name: reason for slice in slices for name, reason in slice.get("broken", {}).items()}
        return joined | ({"broken": broken} if broken else {})


class CleanedFiles(Files):
    """A folder of which files are moved away or deleted once nobody will ask for them again."""

    def trim(self, slice: Slice) -> None:
        for relative, _, _ in slice["files"]:
            self.cleaning.clean(relative)


def _facts(entry: Entry) -> str:
    return f"{entry.name}\0{entry.size}\0{entry.modified}"
