"""Durable, time-travelling state for PySpark streams, without the barrier."""

from nosync.compile.row_functions import row_by_row
from nosync.flow.flow import Flow
from nosync.flow.fold import fold
from nosync.history.home import Home, open
from nosync.journal.joining import NO_REMOTE
from nosync.model.absent import absent
from nosync.model.errors import (
    Conflict,
    Corrupt,
    Failed,
    Fenced,
    Internal,
    Invalid,
    NosyncError,
    NotInHistory,
    OutcomeUnknown,
    Refused,
    Unavailable,
)
from nosync.model.sink import Changes, Identity, Promise, Sink
from nosync.model.source import Slice, Source, Taken
from nosync.observe.tracing import tracing
from nosync.runtime.run import Run
from nosync.sinks.console import console
from nosync.sinks.delta import to_delta
from nosync.sinks.folders import csv, json, parquet
from nosync.sinks.foreach_batch import foreachBatch
from nosync.sinks.foreach_epoch import foreachEpoch
from nosync.sinks.iceberg import to_iceberg
from nosync.sinks.kafka import to_kafka
from nosync.sinks.postgres import to_postgres
from nosync.sources.delta import delta
from nosync.sources.files import files
from nosync.sources.iceberg import iceberg
from nosync.sources.kafka import kafka
from nosync.sources.memory import memory
from nosync.sources.postgres import postgres
from nosync.sources.rate import rate
from nosync.sources.streams import stream

__all__ = [
    "NO_REMOTE",
    "Changes",
    "Conflict",
    "Corrupt",
    "Failed",
    "Fenced",
    "Flow",
    "Home",
    "Identity",
    "Internal",
    "Invalid",
    "NosyncError",
    "NotInHistory",
    "OutcomeUnknown",
    "Promise",
    "Refused",
    "Run",
    "Sink",
    "Slice",
    "Source",
    "Taken",
    "Unavailable",
    "console",
    "csv",
    "delta",
    "files",
    "fold",
    "foreachBatch",
    "foreachEpoch",
    "iceberg",
    "json",
    "kafka",
    "memory",
    "open",
    "parquet",
    "postgres",
    "rate",
    "row_by_row",
    "stream",
    "to_delta",
    "to_iceberg",
    "to_kafka",
    "to_postgres",
    "tracing",
]


def __dir__() -> list[str]:
    """The public names only."""
    return sorted(__all__)


def __getattr__(name: str) -> object:
    raise absent(name, __all__)
