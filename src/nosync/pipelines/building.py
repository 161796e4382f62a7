"""From a project to a flow: each table becomes a view, each folder or table that is read from outside a source.

A dataset is built when it is first asked for, by whoever reads it: what `spark.table("orders")` gives inside of a definition is the view
"orders" of the flow. What cannot be maintained has a reason instead, and so has all that reads it: those are recomputed whole.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Catalyst, Java, children, kind
from nosync.bridge.columns import column_named
from nosync.bridge.errors import JavaError, no_traces_logged, words_of
from nosync.bridge.frames import analyzed, declared_schema
from nosync.bridge.relations import FileRelation, Named, Table, over_files, over_tables
from nosync.bridge.sessions import active
from nosync.bridge.streams import described, is_stream, over, same_stream
from nosync.flow.flow import Flow
from nosync.flow.watermarks import note
from nosync.model.errors import Invalid, Refused
from nosync.model.source import Source
from nosync.pipelines.capturing import captured
from nosync.pipelines.definitions import TABLES, Capture, Dataset, Key, Project, Query
from nosync.pipelines.delivering import sink_of
from nosync.pipelines.empty_source import EmptySource
from nosync.pipelines.paths import local
from nosync.pipelines.reading import names_known, resolving, with_settings
from nosync.sources.compared import ComparedTable
from nosync.sources.files import FORMATS
from nosync.sources.streams import name_of, stream_of
from nosync.sources.watched import WatchedFiles


class ReadsWhole(Exception):
    """A definition reads a dataset that is recomputed whole."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass
class Building:
    """`reasons` say why datasets are recomputed whole; `generations` how often the streams of a table have been begun anew. `passed` are
    streaming tables that pass a source's rows on as they are: whoever reads them as a stream builds on the source, whose watermark it may
    say. `compared` are what datasets read that is not files.
    """

    project: Project
    flow: Flow
    folder: Path
    generations: Mapping[str, int] = field(default_factory=dict)
    frames: dict[Key, DataFrame] = field(default_factory=dict)
    reasons: dict[Key, str] = field(default_factory=dict)
    passed: dict[Key, DataFrame] = field(default_factory=dict)
    compared: dict[Key, list[str]] = field(default_factory=dict)
    _tables: list[tuple[Table, DataFrame]] = field(default_factory=list)
    _sources: dict[str, DataFrame] = field(default_factory=dict)
    _streams: list[tuple[Java, int, DataFrame]] = field(default_factory=list)
    _under_way: list[Query] = field(default_factory=list)
    _streaming: list[bool] = field(default_factory=list)

    def build(self) -> None:
        """Everything that the project defines becomes part of the flow."""
        self.flow.source("(constants)", EmptySource())
        with active(self.flow.spark), names_known():
            for key, dataset in self.project.datasets.items():
                if dataset.kind == "sink":
                    self._sink(dataset)
                else:
                    with suppress(ReadsWhole):
                        self.frame(key)

    def name(self, key: Key) -> str:
        return self.project.namespace.short(key)

    def maintained(self) -> list[Key]:
        """The tables that are views of the flow."""
        return [key for key, dataset in self.project.datasets.items() if dataset.kind in TABLES and key not in self.reasons]

    def frame(self, key: Key) -> DataFrame:
        """The rows of a dataset, to build on; `ReadsWhole` for one that has none here."""
        if key in self.reasons:
            raise ReadsWhole(self.name(key))
        if key not in self.frames:
            if any(query.target == key for query in self._under_way):
                chain = " reads ".join(self.name(query.target) for query in self._under_way)
                raise Invalid(f"{chain} reads {self.name(key)}: a circle", hint="Let one of them read something else.")
            try:
                self.frames[key] = self._built(self.project.datasets[key])
            except (Refused, ReadsWhole) as error:
                self._whole(key, error)
        return self.frames[key]

    def _whole(self, key: Key, error: Refused | ReadsWhole) -> None:
        dataset = self.project.datasets[key]
        reason = f'it reads "{error.name}", which is recomputed whole' if isinstance(error, ReadsWhole) else error.message
        if dataset.kind == "streaming table":
            hint = error.hint if isinstance(error, Refused) else "Make it a materialized view."
            raise Invalid(f'streaming table "{self.name(key)}" ({dataset.where}): {reason}', hint=hint) from None
        self.reasons[key] = reason
        raise ReadsWhole(self.name(key)) from None

    def _built(self, dataset: Dataset) -> DataFrame:
        queries = self.project.queries[dataset.key]
        if dataset.kind == "streaming table":
            return self._streaming_table(dataset, queries)
        rows, streams = self._asked(queries[0])
        if dataset.kind == "materialized view":
            if streams:
                hint = "Read it by spark.read or spark.table, or make this a streaming table: @dp.table."
                raise Invalid(f'materialized view "{self.name(dataset.key)}" ({dataset.where}) reads a stream', hint=hint)
            return self._view(dataset, fitted(rows, self.schema(dataset)))
        return rows

    def _streaming_table(self, dataset: Dataset, queries: Sequence[Query]) -> DataFrame:
        if any(isinstance(query, Capture) for query in queries):
            return self._captured(dataset, queries)
        rows = self._appended([fitted(self._stream(query), self.schema(dataset)) for query in queries])
        if passes_on(analyzed(rows)):
            self.passed[dataset.key] = rows
        return self._view(dataset, rows, final=aggregates(analyzed(rows)))

    def _appended(self, found: Sequence[DataFrame]) -> DataFrame:
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), found)

    def _captured(self, dataset: Dataset, queries: Sequence[Query]) -> DataFrame:
        name = self.name(dataset.key)
        if len(queries) > 1 or not isinstance(queries[0], Capture):
            hint = "Give each flow a table of its own, or capture the union of their events."
            raise Invalid(f'streaming table "{name}" ({dataset.where}) has another flow besides auto CDC', hint=hint)
        events = self._stream(queries[0])
        with self._explained(queries[0].where, name):
            rows, rejected = captured(events, queries[0])
            self.flow.view(f"{name}.rejected", rejected)
        return self._view(dataset, fitted(rows, self.schema(dataset)))

    def _stream(self, query: Query) -> DataFrame:
        rows, streams = self._asked(query)
        if not streams:
            hint = "Read it by spark.readStream or STREAM(...), or make this a materialized view."
            raise Invalid(f'the flow "{query.name}" ({query.where}) fills a streaming table, and reads no stream', hint=hint)
        return rows

    def _view(self, dataset: Dataset, rows: DataFrame, final: bool = False) -> DataFrame:
        with self._explained(dataset.where, self.name(dataset.key)):
            return self.flow.view(self.name(dataset.key), rows, emit="final" if final else "early")

    def _sink(self, dataset: Dataset) -> None:
        """What all flows into a sink give goes there together."""
        queries = self.project.queries.get(dataset.key, [])
        try:
            found = [self._stream(query) for query in queries]
        except ReadsWhole as error:
            hint = "Only what is maintained can go to a sink."
            raise Invalid(f'sink "{dataset.key[-1]}" reads "{error.name}", which is recomputed whole', hint=hint) from None
        if found:
            with self._explained(dataset.where, dataset.key[-1]):
                self.flow.sink(f"sink {dataset.key[-1]}", self._appended(found), sink_of(dataset))

    def schema(self, dataset: Dataset) -> StructType | None:
        return None if dataset.schema is None else declared_schema(dataset.schema)

    def _asked(self, query: Query) -> tuple[DataFrame, bool]:
        """The rows of a query over sources and views of the flow, and whether it reads a stream."""
        self._under_way.append(query)
        self._streaming.append(False)
        try:
            with resolving(self._resolved), self._explained(query.where, query.name), with_settings(self.flow.spark, query.settings):
                rows = query.rows()
                if not isinstance(rows, DataFrame):
                    raise Invalid(f'the flow "{query.name}" gave a {type(rows).__name__}', hint="Let it return a DataFrame.")
                streams = self._streaming[-1] or is_stream(rows)
                rows = over_files(self._catalyst, self._over_streams(rows), self._of_files)
                return over_tables(self._catalyst, rows, self._of_table), streams
        finally:
            self._streaming.pop()
            self._under_way.pop()

    def _resolved(self, named: Named) -> tuple[DataFrame, Key] | None:
        query = self._under_way[-1]
        dataset = self.project.find(query.namespace, named.parts)
        if dataset is None:
            return None
        rows = self.frame(dataset.key)
        rows = self.passed.get(dataset.key, rows) if named.streaming else rows
        self._streaming[-1] = self._streaming[-1] or named.streaming
        anew = [column_named(name).alias(name) for name in rows.columns]  # columns of its own: a table may be joined with itself
        return rows.select(*anew), dataset.key

    @cached_property
    def _catalyst(self) -> Catalyst:
        return Catalyst(self.flow.spark)

    def _over_streams(self, rows: DataFrame) -> DataFrame:
        """The query over sources in the place of Spark's own streams."""
        if not is_stream(rows):
            return rows
        return self._catalyst.frame(over(self._catalyst, analyzed(rows), self._of_stream, note))

    def _of_stream(self, leaf: Java) -> DataFrame:
        """The source for a stream. Tables that were begun anew have one of their own, with all that is there now."""
        generation = self.generations.get(self.name(self._under_way[0].target), 0)
        known = next((rows for one, number, rows in self._streams if number == generation and same_stream(one, leaf)), None)
        if known is not None:
            return known
        found = described(leaf)
        paths = [*found.paths, *([found.options["path"]] if "path" in found.options else [])]
        roots = [local(path) for path in paths]
        name = self._named(name_of(leaf), repr((found.format, sorted(found.options.items()), paths, found.schema.json())))
        name += f"~{generation}" if generation else ""
        if found.old and found.format.lower() in FORMATS and len(roots) == 1 and roots[0]:
            source: Source = WatchedFiles((roots[0],), found.format.lower(), found.schema, found.options, append_only=True)
        else:
            source = stream_of(leaf)
        self._streams.append((leaf, generation, self.flow.source(name, source)))
        return self._streams[-1][2]

    def _of_files(self, found: FileRelation) -> DataFrame | None:
        """The source for files that a query reads in batch; None to leave them as they are."""
        roots = [local(path) for path in found.paths]
        if found.format not in FORMATS or not all(roots):
            return None
        said = repr((found.format, sorted(found.options.items()), found.paths, found.schema.json()))
        if said not in self._sources:
            files = WatchedFiles(tuple(root for root in roots if root), found.format, found.schema, found.options)
            self._sources[said] = self.flow.source(self._source_name(found, said), files, checked=False)
        return self._sources[said]

    def _of_table(self, found: Table) -> DataFrame | None:
        """The source for anything else that a query reads in batch. Two that are called the same are told apart by their order: what one
        has in the place of the other is no more than a difference."""
        said = self.compared.setdefault(self._under_way[-1].target, [])
        said += [repr(found)] if repr(found) not in said else []
        known = next((rows for one, rows in self._tables if one.same(found)), None)
        if known is None:
            words = re.sub(r"\W+", "_", repr(found).replace(str(self.folder), "")).strip("_")
            name = self._named(words[-40:], repr(found) + found.schema.json())
            name += f".{again}" if (again := sum(repr(one) == repr(found) for one, _ in self._tables)) else ""
            known = self.flow.source(name, ComparedTable(repr(found), found.schema, found.now), checked=False)
            self._tables.append((found, known))
        return known

    def _source_name(self, found: FileRelation, said: str) -> str:
        return self._named((found.table or Path(unquote(urlparse(found.paths[0]).path)).stem).rpartition(".")[2], said)

    def _named(self, name: str, said: str) -> str:
        """The same in every run, whatever else the project reads, and wherever the project lies."""
        return f"{name}-{sha256(said.replace(str(self.folder), '').encode()).hexdigest()[:4]}"

    @contextmanager
    def _explained(self, where: str, name: str) -> Iterator[None]:
        """Errors of Spark's name the definition."""
        with no_traces_logged():
            try:
                yield
            except (PySparkException, JavaError) as error:
                raise Invalid(f'"{name}" ({where}): {words_of(error)}', hint="Correct the query.") from None


def passes_on(plan: Java) -> bool:
    """Whether the rows are those of a source, columns chosen or made of them."""
    while kind(plan) in ("Project", "SubqueryAlias"):
        plan = children(plan)[0]
    return kind(plan) == "LogicalRDD"


def aggregates(plan: Java) -> bool:
    """Whether a streaming query adds rows up: then it gives what is final, since a streaming table takes nothing back."""
    return kind(plan) == "Aggregate" or any(aggregates(child) for child in children(plan))


def fitted(rows: DataFrame, schema: StructType | None) -> DataFrame:
    """The rows in the columns of a schema that the definition names."""
    if schema is None:
        return rows
    missing = [name for name in schema.names if name not in rows.columns]
    more = [name for name in rows.columns if name not in schema.names]
    if missing or more:
        what = f'lacks the column "{missing[0]}"' if missing else f'has a column "{more[0]}", which its schema has not'
        raise Invalid(f"the query {what}", hint="Let schema= and the query have the same columns.")
    return rows.select(*(column_named(field.name).cast(field.dataType).alias(field.name) for field in schema.fields))
