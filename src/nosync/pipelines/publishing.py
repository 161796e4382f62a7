"""From the views of a flow to tables that anybody reads: the next edition.

A table of Parquet files follows its view: only what the epochs since its last edition have changed is written. Whatever else, and a table
whose view was rebuilt, is written whole. Datasets that cannot be maintained are computed by Spark from the tables of the very edition.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from nosync.bridge.relations import Named
from nosync.bridge.sessions import active
from nosync.history.home import Home
from nosync.model.columns import EPOCH, TIME
from nosync.model.errors import NotInHistory
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.pipelines.building import Building, fitted
from nosync.pipelines.catalog import TableLocation, create_view
from nosync.pipelines.definitions import TABLES, Key, Query
from nosync.pipelines.editions import Edition, Editions, Published
from nosync.pipelines.reading import names_known, resolving, with_settings
from nosync.pipelines.table_files import write_next, write_whole
from nosync.runtime.run import Run

Outcome = Literal["unchanged", "updated", "written whole", "recomputed whole"]


@dataclass
class Publishing:
    """One edition in the making. `home_name` is what editions call the home; `whole` are tables to be written anew whatever was there."""

    building: Building
    places: Mapping[Key, TableLocation]
    editions: Editions
    run: Run
    home: Home
    home_name: str
    whole: frozenset[Key] = frozenset()
    only: frozenset[Key] | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    frames: dict[Key, DataFrame] = field(default_factory=dict)
    before: Edition = field(default_factory=Edition)
    epoch: Epoch = NO_EPOCH

    def publish(self) -> Edition:
        """Makes the edition of the newest epoch, and shows it."""
        self.before = before = self.editions.newest()
        self.epoch = self.home.epoch  # whatever comes meanwhile: one for all tables
        number, tables = before.number + 1, dict(before.tables or {})
        project = self.building.project
        for key in self.building.maintained():
            if self._wanted(key):
                tables[self._name(key)] = self._maintained(key, before.of(self._name(key)), number)
        with active(self.run.spark), names_known():
            for key in self.building.reasons:
                if project.datasets[key].kind in TABLES and self._wanted(key):
                    self._recomputed(key, tables)
        there = {self._name(key) for key in self.places}
        tables = {name: published for name, published in tables.items() if name in there}
        edition = Edition(number, tables)
        if tables == before.tables:
            edition = before
        else:
            self.editions.publish(edition)
        for key, place in self.places.items():
            if self._name(key) in tables:
                place.register(self.editions, self._schema(key, tables))
        for dataset in project.datasets.values():
            if dataset.kind == "view":
                create_view(self.run.spark, dataset)
        self.editions.tidy(time.time())
        return edition

    def _wanted(self, key: Key) -> bool:
        return self.only is None or key in self.only or self.before.of(self._name(key)) is None

    def _name(self, key: Key) -> str:
        return self.building.name(key)

    def _schema(self, key: Key, tables: dict[str, Published]) -> StructType:
        if key in self.building.reasons and key not in self.frames:
            self.frames[key] = self._whole_rows(key, tables)
        return self.frames[key].schema if key in self.frames else self.building.frames[key].schema

    def _maintained(self, key: Key, before: Published | None, number: int) -> Published:
        name, place = self._name(key), self.places[key]
        record = self.home.record(name)
        now = Published(number, self.home_name, record.trace, self.epoch)
        following = before is not None and (before.home, before.trace) == (now.home, now.trace) and key not in self.whole
        if before is not None and following and before.epoch == now.epoch:
            self.outcomes[name] = "unchanged"
            return before
        if before is not None and following and place.format == "parquet":
            target = self.editions.begin(name, number)
            changes = self._changes(name, before.epoch)
            if changes is not None:
                changed = write_next(self.editions.version(name, before.version), target, number, changes, place.dataset.partition_by)
                self.outcomes[name] = "updated" if changed else "unchanged"
                return now if changed else Published(before.version, now.home, now.trace, now.epoch)
        self._write_whole(key, self.editions.begin(name, number))
        self.outcomes[name] = "written whole"
        return now

    def _changes(self, name: str, since: Epoch) -> pa.Table | None:
        """What the table lacks; None where nobody can tell any more."""
        try:
            found = self.home.changes(name, since=since or None, until=self.epoch)
        except NotInHistory:
            return None
        return found.drop_columns([EPOCH, TIME])

    def _write_whole(self, key: Key, target: Path) -> None:
        name, place = self._name(key), self.places[key]
        if place.format == "parquet":
            record = self.home.record(name)
            write_whole(target, record.schema, self.home.batches(name, at=self.epoch), place.dataset.partition_by)
        else:
            self._save(self.run.view(name, at=self.epoch), place, target)

    def _save(self, rows: DataFrame, place: TableLocation, target: Path) -> None:
        writer = rows.write.format(place.format).mode("overwrite")
        (writer.partitionBy(*place.dataset.partition_by) if place.dataset.partition_by else writer).save(str(target))

    def _recomputed(self, key: Key, tables: dict[str, Published]) -> None:
        """By Spark, over what this edition has of all others."""
        if key in self.frames:
            return
        rows = self._whole_rows(key, tables)
        number = self.before.number + 1
        target = self.editions.begin(self._name(key), number)
        self._save(rows, self.places[key], target)
        self.frames[key] = rows
        tables[self._name(key)] = Published(number)
        self.outcomes[self._name(key)] = "recomputed whole"

    def _whole_rows(self, key: Key, tables: dict[str, Published]) -> DataFrame:
        rows = self._rows(self.building.project.queries[key][0], tables)
        return fitted(rows, self.building.schema(self.building.project.datasets[key]))

    def _rows(self, query: Query, tables: dict[str, Published]) -> DataFrame:
        def resolve(named: Named) -> tuple[DataFrame, Key] | None:
            dataset = self.building.project.find(query.namespace, named.parts)
            if dataset is None:
                return None
            if dataset.kind not in TABLES:
                return self._rows(self.building.project.queries[dataset.key][0], tables), dataset.key
            if dataset.key in self.building.reasons and self._wanted(dataset.key):
                self._recomputed(dataset.key, tables)
            return self._published(dataset.key, tables), dataset.key

        with resolving(resolve), with_settings(self.run.spark, query.settings):
            return query.rows()

    def _published(self, key: Key, tables: dict[str, Published]) -> DataFrame:
        place, version = self.places[key], tables[self._name(key)].version
        reader = self.run.spark.read.format(place.format).schema(self._schema(key, tables))
        return reader.load(str(self.editions.version(self._name(key), version)))
