"""Durable, time-travelling state for PySpark streams, without the barrier."""

from nosync.compile.row_functions import row_by_row
from nosync.flow.flow import Flow
from nosync.flow.fold import fold
from nosync.history.home import Home, open
from nosync.journal.joining import NO_REMOTE
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
from nosync.runtime.run import Run
from nosync.sinks.console import console
from nosync.sinks.foreach_epoch import foreachEpoch
from nosync.sinks.parquet import parquet
from nosync.sources.files import files
from nosync.sources.memory import memory
from nosync.sources.rate import rate

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
    "files",
    "fold",
    "foreachEpoch",
    "memory",
    "open",
    "parquet",
    "rate",
    "row_by_row",
]
