"""What a project of Declarative Pipelines defines: datasets, and the queries that fill them. Values, from Python and SQL alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from nosync.model.errors import Invalid

Key = tuple[str, ...]
"""The whole name of a dataset: catalog, database and table; of a temporary view or a sink, its name alone."""

Kind = Literal["materialized view", "streaming table", "temporary view", "view", "sink"]
TABLES: tuple[Kind, ...] = ("materialized view", "streaming table")


@dataclass(frozen=True)
class Namespace:
    """Where names without a catalog or a database belong. Upper and lower case are the same unless names are `exact`, as in the session."""

    catalog: str
    database: str
    exact: bool = False

    def alone(self, parts: Sequence[str]) -> Key:
        """The name of what has no database."""
        return tuple(part if self.exact else part.lower() for part in parts)

    def whole(self, parts: Sequence[str]) -> Key:
        parts = self.alone(parts)
        if len(parts) > 3:
            raise Invalid(f'"{".".join(parts)}" is no name of a table', hint="Name a table, with its database and its catalog if need be.")
        return (*(self.catalog, self.database)[: 3 - len(parts)], *parts)

    def short(self, key: Key) -> str:
        """As a person says it here."""
        if len(key) == 3 and key[0] == self.catalog:
            key = key[1:]
        return ".".join(key[1:] if len(key) == 2 and key[0] == self.database else key)


@dataclass(frozen=True)
class Dataset:
    """`where` is the place in the project that defines it. `text` is the query of a view of the catalog."""

    key: Key
    kind: Kind
    where: str
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    schema: StructType | str | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class Query:
    """What fills a dataset. `rows` gives the DataFrame when it is called, with names meant as in `namespace`."""

    name: str
    target: Key
    rows: Callable[[], DataFrame]
    namespace: Namespace
    where: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Capture(Query):
    """Changes captured elsewhere (auto CDC): `rows` are events, of which the newest by `sequence` counts for each key."""

    keys: tuple[str, ...] = ()
    sequence: Any = None
    deletes: Column | None = None
    columns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    history: bool = False
    tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


@dataclass
class Project:
    """All that the files of a project define."""

    namespace: Namespace
    datasets: dict[Key, Dataset] = field(default_factory=dict)
    queries: dict[Key, list[Query]] = field(default_factory=dict)

    def define(self, dataset: Dataset) -> None:
        known = self.datasets.get(dataset.key)
        if known is not None:
            name = self.namespace.short(dataset.key)
            raise Invalid(f'"{name}" is defined twice: {known.where} and {dataset.where}', hint="Give one of them another name.")
        self.datasets[dataset.key] = dataset

    def fill(self, query: Query) -> None:
        known = next((other for queries in self.queries.values() for other in queries if other.name == query.name), None)
        if known is not None:
            hint = "Name one of them: @dp.append_flow(target=..., name=...)."
            raise Invalid(f'the flow "{query.name}" is defined twice: {known.where} and {query.where}', hint=hint)
        self.queries.setdefault(query.target, []).append(query)

    def find(self, namespace: Namespace, parts: Sequence[str]) -> Dataset | None:
        """The dataset that a name means; None for what the project does not define."""
        alone = namespace.alone(parts)
        if alone in self.datasets:
            return self.datasets[alone]
        return self.datasets.get(namespace.whole(parts)) if len(parts) <= 3 else None

    def named(self, names: Sequence[str]) -> set[Key]:
        """The tables that a person has named; `Invalid` for one that is not there."""
        found: set[Key] = set()
        for name in names:
            dataset = self.find(self.namespace, [part.strip("`") for part in name.split(".")])
            if dataset is None or dataset.kind not in TABLES:
                there = ", ".join(self.namespace.short(one.key) for one in self.datasets.values() if one.kind in TABLES)
                raise Invalid(f'there is no table "{name}" in this pipeline', hint=f"There are: {there}.")
            found.add(dataset.key)
        return found

    def check(self) -> None:
        """What cannot be right, whatever the queries say."""
        for target, queries in self.queries.items():
            if target not in self.datasets:
                hint = "Define it: dp.create_streaming_table(...), or CREATE STREAMING TABLE."
                name = self.namespace.short(target)
                raise Invalid(f'the flow "{queries[0].name}" ({queries[0].where}) writes into "{name}", which is not defined', hint=hint)
        for key, dataset in self.datasets.items():
            name = self.namespace.short(key)
            if key not in self.queries and dataset.kind != "sink":
                hint = "Write a flow into it: @dp.append_flow(target=...), or CREATE FLOW."
                raise Invalid(f'nothing fills the {dataset.kind} "{name}" ({dataset.where})', hint=hint)
            if len(self.queries.get(key, [])) > 1 and dataset.kind not in ("streaming table", "sink"):
                raise Invalid(f'the {dataset.kind} "{name}" has several flows', hint="Only a streaming table and a sink may have several.")
