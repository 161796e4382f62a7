"""Durable, time-travelling state for PySpark streams, without the barrier."""

from nosync.flow.flow import Flow
from nosync.flow.fold import fold
from nosync.history.home import Home, open
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
from nosync.model.source import Source
from nosync.runtime.run import Run
from nosync.sinks.console import console
from nosync.sinks.foreach_epoch import foreachEpoch
from nosync.sinks.parquet import parquet
from nosync.sources.files import files
from nosync.sources.memory import memory
from nosync.sources.rate import rate

__all__ = [
    "Conflict",
    "Corrupt",
    "Failed",
    "Fenced",
    "Flow",
    "Home",
    "Internal",
    "Invalid",
    "NosyncError",
    "NotInHistory",
    "OutcomeUnknown",
    "Refused",
    "Run",
    "Source",
    "Unavailable",
    "console",
    "files",
    "fold",
    "foreachEpoch",
    "memory",
    "open",
    "parquet",
    "rate",
]
