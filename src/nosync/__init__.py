"""Durable, time-travelling state for PySpark streams, without the barrier."""

from nosync.flow.files import files
from nosync.flow.flow import Flow
from nosync.flow.fold import fold
from nosync.flow.memory import memory
from nosync.flow.rate import rate
from nosync.flow.sinks import console, foreachEpoch, parquet
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
