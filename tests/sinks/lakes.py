"""Tables of lakes for tests: made by our sinks, read and disturbed by their own libraries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

import nosync as ns
from nosync.sinks.lake import LakeSink
from tests.connectors.rows import IDENTITY

TOTALS = {"k": pa.string(), "n": pa.int64()}


class Place(Protocol):
    """Where a table is, or will be."""

    def sink(self, name: str = "spend", **more: Any) -> LakeSink: ...

    def read(self, name: str = "spend") -> pa.Table: ...

    def append(self, rows: pa.Table) -> None:
        """By somebody else."""

    def compact(self) -> bool:
        """By somebody else; False where there is no such tool."""

    def forget(self) -> None:
        """Old versions and files."""

    def restore(self) -> None:
        """The version before the newest."""

    def versions(self) -> int: ...

    def kinds(self, name: str = "spend") -> list[str]:
        """What each version did."""


@dataclass
class Delta:
    uri: Path | str
    options: dict[str, str] | None = None

    def sink(self, name: str = "spend", **more: Any) -> LakeSink:
        return ns.to_delta(f"{self.uri}/{name}", **more)

    def table(self, name: str = "spend") -> DeltaTable:
        return DeltaTable(f"{self.uri}/{name}", storage_options=self.options)

    def read(self, name: str = "spend") -> pa.Table:
        return self.table(name).to_pyarrow_table()

    def append(self, rows: pa.Table) -> None:
        write_deltalake(f"{self.uri}/spend", rows, mode="append")

    def compact(self) -> bool:
        self.table().optimize.compact()
        return True

    def forget(self) -> None:
        self.table().vacuum(0, dry_run=False, enforce_retention_duration=False)

    def restore(self) -> None:
        self.table().restore(self.versions() - 2)

    def versions(self) -> int:
        return self.table().version() + 1

    def kinds(self, name: str = "spend") -> list[str]:
        return [entry["operation"] for entry in self.table(name).history()]


@dataclass
class Iceberg:
    folder: Path | str
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def catalog(self) -> dict[str, str]:
        said = {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": f"file://{self.folder}/lake"}
        return said | dict(self.properties)

    def sink(self, name: str = "spend", **more: Any) -> LakeSink:
        return ns.to_iceberg(self.catalog, f"shop.{name}", **more)

    def table(self, name: str = "spend") -> Any:
        return load_catalog("default", **self.catalog).load_table(f"shop.{name}")

    def read(self, name: str = "spend") -> pa.Table:
        return self.table(name).scan().to_arrow()

    def append(self, rows: pa.Table) -> None:
        catalog = load_catalog("default", **self.catalog)
        catalog.create_namespace_if_not_exists("shop")
        catalog.create_table_if_not_exists("shop.spend", rows.schema).append(rows)

    def compact(self) -> bool:
        return False

    def forget(self) -> None:
        table = self.table()
        old = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot != table.current_snapshot()]
        if old:
            table.maintenance.expire_snapshots().by_ids(old).commit()

    def restore(self) -> None:
        table = self.table()
        table.manage_snapshots().rollback_to_snapshot(table.current_snapshot().parent_snapshot_id).commit()

    def versions(self) -> int:
        return len(self.table().snapshots())

    def kinds(self, name: str = "spend") -> list[str]:
        return [snapshot.summary.operation.value for snapshot in self.table(name).snapshots()]


def opened(
    place: Place, key: Any = "k", run: str = "1.a", identity: ns.Identity = IDENTITY, columns: Any = TOTALS, **more: Any
) -> LakeSink:
    """A sink as a run has it."""
    sink = place.sink(key=key, **more)
    sink.check_query("out", pa.schema(list(columns.items())), [])
    sink.open(run, identity)
    return sink


def rows(place: Place, name: str = "spend") -> list[tuple[Any, ...]]:
    """As the lake's own library reads it."""
    return sorted((tuple(row.values()) for row in place.read(name).to_pylist()), key=repr)
