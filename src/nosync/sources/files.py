"""A folder of files as a source: each file belongs to exactly one epoch.

Files are taken in the order of their modification time, then their name; a file that appears later is picked up whatever its time.
Move files in whole (write elsewhere, then rename): size and modification time are recorded, and a file that changes afterwards is an error.
Rows that do not fit the schema go to the view `<source>.rejected`; they never stop the flow.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.bridge.arrow import arrow_schema
from nosync.bridge.frames import OBSERVED
from nosync.model.columns import DIFF, FILE, POSITION, RAW, REASON
from nosync.model.errors import Conflict, Invalid
from nosync.model.quoting import quoted
from nosync.model.source import Marks, Slice, Taken
from nosync.model.store import checked
from nosync.sources.cleaning import Cleaning, cleaning_of
from nosync.sources.positions import FILE_PATH, positions
from nosync.sources.rejection import UNREAD, reasons

FORMATS = ("parquet", "json", "csv", "text", "orc")
TEXTUAL = ("csv", "json")  # where a single row can be broken
MAX_BYTES = 128 << 20


def files(
    path: str | Path,
    format: str = "parquet",
    schema: str | StructType | None = None,
    maxFilesPerTrigger: int | None = None,  # noqa: N803 (Spark's name)
    maxBytesPerTrigger: int = MAX_BYTES,  # noqa: N803 (Spark's name)
    cleanSource: str = "off",  # noqa: N803 (Spark's name)
    sourceArchiveDir: str | Path | None = None,  # noqa: N803 (Spark's name)
    **options: Any,
) -> "Files":
    """New files in a folder, in any format Spark reads. `options` are those of `spark.read` for the format.

    An epoch takes at most `maxBytesPerTrigger` bytes (but always one file), so that a large backlog becomes many epochs.
    `cleanSource`: "archive" moves files that no failure can ask for again to `sourceArchiveDir`, "delete" deletes them; "off" leaves them.
    """
    if format not in FORMATS:
        raise Invalid(f'format "{format}" is not one of {", ".join(FORMATS)}', hint="Pass one of these as format=.")
    if maxFilesPerTrigger is not None and maxFilesPerTrigger < 1:
        raise Invalid(f"maxFilesPerTrigger={maxFilesPerTrigger} takes no files", hint="Pass 1 or more.")
    clean = cleaning_of(Path(str(path).removeprefix("file://")), cleanSource, sourceArchiveDir)
    kind = Files if cleanSource == "off" else CleanedFiles
    return kind(clean.folder, format, schema, maxFilesPerTrigger, maxBytesPerTrigger, options, clean)


@dataclass(eq=False)
class Files:
    """See `files`."""

    path: Path
    format: str
    given: str | StructType | None
    max_files: int | None
    max_bytes: int
    options: dict[str, Any] = field(repr=False)  # may hold passwords and keys
    cleaning: Cleaning
    append_only: bool = True
    seen: set[str] = field(default_factory=set)
    past: Marks | None = None

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name = name
        if not self.path.is_dir():
            raise Invalid(f'source "{name}": there is no folder "{self.path}"', hint="Create the folder, or correct the path.")
        self.schema = self._schema(spark)
        self.expected = arrow_schema(self.schema, f'source "{name}"')
        return self.schema

    def _schema(self, spark: SparkSession) -> StructType:
        if isinstance(self.given, StructType):
            return self.given
        if self.format == "text" and self.given is None:
            return StructType().add("value", "string")
        try:
            if self.given is not None:
                return spark.createDataFrame([], self.given).schema
            return spark.read.format(self.format).options(**self.options).load(str(self.path)).schema
        except PySparkException as error:
            what = f'the schema "{self.given}" cannot be read' if self.given else "it has no schema, and none can be found in the folder"
            raise Invalid(f'source "{self.name}": {what}: {_first_line(error)}', hint='Pass schema="column type, ...".') from None

    def start(self, folder: Path, taken: Taken) -> None:
        """Names that were taken are asked for as they are met in the folder, so that a long past costs nothing."""
        self.past, self.seen = taken.marks, set()

    def marks(self, slice: Slice) -> list[str]:
        """The names of its files: no file is taken twice."""
        return [entry[0] for entry in slice["files"]]

    def available(self) -> Slice | None:
        chosen: list[tuple[str, int, int]] = []
        total = 0
        for entry in sorted(self._new(), key=lambda entry: (entry[2], entry[0])):
            if chosen and (total + entry[1] > self.max_bytes or len(chosen) == self.max_files):
                break
            chosen.append(entry)
            total += entry[1]
        if not chosen:
            return None
        self.seen.update(entry[0] for entry in chosen)
        slice: Slice = {"files": [list(entry) for entry in chosen], "bytes": total}
        return self._with_footers(slice) if self.format == "parquet" else slice

    def _new(self) -> list[tuple[str, int, int]]:
        """Files not taken yet, each with its path below the folder, size and modification time in nanoseconds."""
        unseen = dict(self._unseen())
        taken = self.past.among(list(unseen)) if self.past is not None else set()
        self.seen |= taken
        facts = {name: entry.stat() for name, entry in unseen.items() if name not in taken}
        return [(name, found.st_size, found.st_mtime_ns) for name, found in facts.items()]

    def _unseen(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        pending = [str(self.path)]
        while pending:
            with os.scandir(pending.pop()) as found:
                for entry in found:
                    if entry.name.startswith(("_", ".")):
                        continue
                    if entry.is_dir():
                        pending.append(entry.path)
                    elif (relative := os.path.relpath(entry.path, self.path)) not in self.seen:
                        yield relative, entry

    def _with_footers(self, slice: Slice) -> Slice:
        """Rows by Parquet's own account; files that are no Parquet are set aside, with the reason."""
        rows, broken, plain = 0, {}, True
        for relative, _, _ in slice["files"]:
            try:
                footer = pq.read_metadata(self.path / relative)
            except (pa.ArrowException, OSError) as error:
                broken[relative] = f"not a Parquet file: {str(error).splitlines()[0]}"
                continue
            rows += footer.num_rows
            plain = plain and self._is_plain(footer)
        return slice | {"rows": rows, "plain": plain} | ({"broken": broken} if broken else {})

    def _is_plain(self, footer: pq.FileMetaData) -> bool:
        """Whether the file holds the declared columns in just the declared types, so that anybody reads the same values from it."""
        found = footer.schema.to_arrow_schema()
        if any(key.startswith(b"org.apache.spark.legacy") for key in found.metadata or {}):
            return False
        return all(found.get_all_field_indices(field.name) and found.field(field.name).type == field.type for field in self.expected)

    def direct(self, slice: Slice) -> list[str]:
        """The files, where tasks may read columns from them without Spark; else nothing."""
        return self._paths(slice) if slice.get("plain") and not self.options else []

    def _paths(self, slice: Slice) -> list[str]:
        """The files of a slice, after checking that they are what they were."""
        for relative, size, modified in slice["files"]:
            path = self.path / checked(relative)
            if not path.exists():
                raise Conflict(f'source "{self.name}": file "{path}" is gone', hint="Put it back: its epoch is needed again.")
            facts = path.stat()
            if (facts.st_size, facts.st_mtime_ns) != (size, modified):
                raise Conflict(
                    f'source "{self.name}": file "{path}" changed after it was taken',
                    hint="Restore the file, and add new rows in new files: files must be moved in whole and never changed.",
                )
        broken = slice.get("broken", {})
        return [str(self.path / relative) for relative, _, _ in slice["files"] if relative not in broken]

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        paths = self._paths(slice)
        if not paths:
            return spark.createDataFrame([], self.schema).withColumn(DIFF, F.lit(1).cast("bigint"))
        rows = self._scan(spark, paths, self._read_schema())
        if self.format != "parquet":
            rows = rows.observe(observation(self.name), *self._counts)
        if self.format in TEXTUAL:
            rows = rows.where(F.col(UNREAD).isNull())
        return rows.select(*self._columns)

    @cached_property
    def _columns(self) -> list[Column]:
        return [*(F.col(quoted(column)) for column in self.schema.names), F.lit(1).cast("bigint").alias(DIFF)]

    @cached_property
    def _counts(self) -> list[Column]:
        """Rows and rejected rows. Naming every column makes Spark read them all, for every view: else a row that is
        broken in one column would be good to a query that does not use it."""
        if self.format not in TEXTUAL:
            return [F.count(F.lit(1)).alias("rows")]
        every = F.struct(*(F.col(quoted(column)) for column in self.schema.names))
        return [F.count(F.lit(1)).alias("rows"), F.count(F.when(F.col(UNREAD).isNotNull(), every)).alias("rejected")]

    def _read_schema(self) -> StructType:
        schema = StructType(list(self.schema.fields))
        return schema.add(UNREAD, "string") if self.format in TEXTUAL else schema

    def _scan(self, spark: SparkSession, paths: list[str], schema: StructType) -> DataFrame:
        reader = spark.read.format(self.format).schema(schema).options(**self.options).option("basePath", str(self.path))
        if self.format in TEXTUAL:
            reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", UNREAD)
        return reader.load(paths)

    def rejects(self, slice: Slice) -> int:
        """Files that could not be read at all."""
        return len(slice.get("broken", {}))

    def rejected(self, spark: SparkSession, slice: Slice, epoch: int) -> DataFrame:
        """The rows of a slice that do not fit: raw text, reason, file."""
        broken = [(None, reason, str(self.path / relative)) for relative, reason in slice.get("broken", {}).items()]
        found = spark.createDataFrame(broken, "raw string, reason string, file string")
        paths = self._paths(slice)
        if self.format in TEXTUAL and paths:
            scanned = self._scan(spark, paths, self._read_schema()).withColumn(FILE, F.col(FILE_PATH))
            bad = scanned.observe(f"{observation(self.name)}.rejected.{epoch}", *self._counts).where(F.col(UNREAD).isNotNull())
            reason = reasons(self.format, self.schema, self.options).alias("reason")
            rows = bad.select(F.col(UNREAD).alias("raw"), reason, F.col(FILE).alias("file"))
            found = found.unionAll(rows) if broken else rows
        return found.withColumn("epoch", F.lit(epoch).cast("bigint")).withColumn(DIFF, F.lit(1).cast("bigint"))

    def events(self, spark: SparkSession, slice: Slice) -> DataFrame:
        """All rows of a slice for a ledger: those that do not fit have a reason; each knows its file and its position in the input."""
        paths, nothing = self._paths(slice), F.lit(None).cast("string")
        broken = [(reason, str(self.path / relative)) for relative, reason in slice.get("broken", {}).items()]
        empty = [F.lit(None).cast(column.dataType).alias(column.name) for column in self.schema.fields]
        nowhere = [F.lit(0).cast("bigint").alias(f"_p{i}") for i in range(3)]
        failed = spark.createDataFrame(broken, f"{REASON} string, {FILE} string")
        failed = failed.select(*empty, nothing.alias(RAW), REASON, FILE, *nowhere)
        if not paths:
            return failed.withColumn(DIFF, F.lit(1).cast("bigint"))
        rows = self._scan(spark, paths, self._read_schema()).select("*", F.col(FILE_PATH).alias(FILE), *positions(spark, paths))
        if self.format != "parquet":
            rows = rows.observe(observation(self.name), *self._counts)
        textual = self.format in TEXTUAL
        raw = F.col(UNREAD) if textual else nothing
        reason = F.when(raw.isNotNull(), reasons(self.format, self.schema, self.options)) if textual else nothing
        rows = rows.select(*self._columns[:-1], raw.alias(RAW), reason.alias(REASON), FILE, *POSITION)
        return (rows.unionAll(failed) if broken else rows).withColumn(DIFF, F.lit(1).cast("bigint"))

    def rows(self, slice: Slice) -> int | None:
        rows = slice.get("rows")
        return None if rows is None else int(rows)

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


def observation(source: str) -> str:
    """The name under which Spark counts a source's rows on the way."""
    return f"{OBSERVED}{source}"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
