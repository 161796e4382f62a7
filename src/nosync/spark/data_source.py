"""Views of a home as a Spark data source, in any session: batches as of an epoch, and the feed of their changes as a stream.

    spark.read.format("nosync").option("home", "state/shop").option("view", "spend").option("at", "1 hour ago").load()
    spark.readStream.format("nosync").option("home", "state/shop").option("view", "spend").option("changes", "true").load()

A batch has the view's columns; with `option("changes", "true")` the changes after `since` up to `until`, with `_epoch`, `_time` and
`_diff`. A stream is always one of changes (Spark asks for the columns before it says that it wants a stream, hence the option), of epochs
that are safe; it begins after `since`, else with everything. Whoever reads must see the home, or give the URL of a remote.

With `option("pushdown", "true")`, equality with all columns of a view's key is pushed down: then one shard's matching blocks are read. The
session must have `spark.sql.python.filterPushdown.enabled`: without it, Spark refuses every source that could take a filter, so it has to
be asked for. Python data sources are not told which columns are wanted: Spark drops the others itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, EqualTo, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from nosync.history.changes import ChangeStep, batches, changes_schema
from nosync.history.home import Home
from nosync.history.home import open as open_home
from nosync.history.stored_view import StoredView
from nosync.model.errors import Invalid
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_EPOCH, Epoch

NAME = "nosync"


@dataclass(frozen=True)
class Wanted:
    """What the options say."""

    home: str
    view: str
    at: str | None = None
    since: str | None = None
    until: str | None = None
    changes: bool = False
    pushdown: bool = False

    @staticmethod
    def of(options: Mapping[str, str]) -> "Wanted":
        given = {name.lower(): value for name, value in options.items()}
        for name in ("home", "view"):
            if name not in given:
                raise Invalid(f'the option "{name}" is missing', hint=f'Say .option("{name}", ...).')
        at, since, until = (given.get(name) for name in ("at", "since", "until"))
        changes, pushdown = (given.get(name, "false").lower() == "true" for name in ("changes", "pushdown"))
        return Wanted(given["home"], given["view"], at, since, until, changes, pushdown)


@dataclass
class ReadPartition(InputPartition):
    """One piece of a view, one key of it, or one step of its changes."""

    wanted: Wanted
    epoch: Epoch = NO_EPOCH
    piece: HashRange | None = None
    first: bool = False
    key: tuple[tuple[str, Any], ...] = ()
    step: ChangeStep | None = None


class NosyncDataSource(DataSource):
    """The format `nosync`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        wanted = Wanted.of(self.options)
        return _spark(open_home(wanted.home).schema(wanted.view), wanted.changes)

    def reader(self, schema: StructType) -> "DataSourceReader":
        wanted = Wanted.of(self.options)
        return KeyReader(wanted) if wanted.pushdown else Reader(wanted)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":  # noqa: N802 (PySpark's name)
        wanted = Wanted.of(self.options)
        if not wanted.changes:
            raise Invalid(f'view "{wanted.view}" can be streamed as its changes only', hint='Say .option("changes", "true").')
        return StreamReader(wanted)


class Reader(DataSourceReader):
    """A view as of one epoch, fixed when the query is planned."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.equal: dict[str, Any] = {}

    def partitions(self) -> Sequence[ReadPartition]:
        home = open_home(self.wanted.home)
        home.lend()
        if self.wanted.changes:
            steps = home.change_steps(self.wanted.view, self.wanted.since, self.wanted.until)
            return [ReadPartition(self.wanted, step=step) for step in steps]
        view = home.view(self.wanted.view, self.wanted.at)
        if view.key and set(view.key) <= self.equal.keys():
            return [ReadPartition(self.wanted, view.epoch, key=tuple((name, self.equal[name]) for name in view.key))]
        pieces = view.pieces
        return [ReadPartition(self.wanted, view.epoch, piece, number == 0) for number, piece in enumerate(pieces)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReadPartition)
        return read_part(partition)


class KeyReader(Reader):
    """One that takes notice of filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (PySpark's name)
        """Looks for equalities; Spark goes on to apply all filters itself."""
        self.equal = {one.attribute[0]: one.value for one in filters if isinstance(one, EqualTo) and len(one.attribute) == 1}
        return filters


class StreamReader(DataSourceStreamReader):
    """The changes of a view, epoch by epoch, as they become safe."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (PySpark's name)
        since = open_home(self.wanted.home).resolve(self.wanted.since) if self.wanted.since else 0
        return {"epoch": int(since or 0)}

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802 (PySpark's name)
        home = open_home(self.wanted.home)
        return {"epoch": int(min(home.epoch, *home.safe.values()))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[ReadPartition]:
        if start["epoch"] >= end["epoch"]:
            return []
        home = open_home(self.wanted.home)
        home.lend()
        steps = home.change_steps(self.wanted.view, start["epoch"] or None, end["epoch"])
        return [ReadPartition(self.wanted, step=step) for step in steps]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReadPartition)
        return read_part(partition)


def read_part(part: ReadPartition) -> Iterator[pa.RecordBatch]:
    """Called by tasks, which open the home as of then: later epochs change nothing in what a part says."""
    home = _opened(part.wanted.home, part.epoch)
    if part.step is not None:
        record = home.record(part.wanted.view)
        found: Iterable[pa.RecordBatch] = batches(record, part.step, home.layers)
        schema = changes_schema(record.schema)
    else:
        view: StoredView = home.view(part.wanted.view, part.epoch or None)
        schema = view.schema
        found = view.where(**dict(part.key)).to_batches() if part.key else view.piece(part.piece, part.first)
    for batch in found:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


@lru_cache(maxsize=4)
def _opened(home: str, epoch: Epoch) -> Home:
    """Kept by a worker for other parts of the same query."""
    return open_home(home)


def _spark(schema: pa.Schema, changes: bool) -> StructType:
    return from_arrow_schema(changes_schema(schema) if changes else schema)
