"""Which operations met which outcome, crashes on which side, and what else happened."""

from collections import Counter

from .world import FILLS, WRITES

OPERATIONS = (
    *(f"home.{name}" for name in ("create", "replace", "read", "exists", "sizes", "delete", "sync_files", "sync_folders")),
    *(f"remote.{name}" for name in ("create", "replace", "read", "exists", "sizes", "delete", "upload", "download")),
    *("sink.deliver", "source.available", "source.read", "source.trim"),
)
COLUMNS = (
    ("ok", "none"),
    ("failed", "none"),
    ("done in part", "none"),
    ("done, timed out", "none"),
    ("not done, timed out", "none"),
    ("done later", "none"),
    ("done, not synced", "none"),
    ("refused", "none"),
    ("crash", "before"),
    ("crash", "after"),
)
EVENTS = (
    *("handed over", "waited for a lock", "taken for dead", "cut", "partition", "full", "sink", "clock", "fail", "several", "standby"),
    *("not synced", "remote restarts", "remote left out", "damage", "read back", "status read back", "old epochs read"),
    *("alone at the end", "sink down at the end", "fold", "pin", "lease", "kept epoch read", "followed along", "segments given up"),
    "passed over",
)


def possible(operation: str, outcome: str) -> bool:
    """Only a write can be in doubt, only one to the remote can land later or be seen there without being synced, only a sync can be done in
    part. A link that is cut refuses all, a full disk what needs room, a sink that is down what it is given.
    """
    place, name = operation.split(".")
    sync = name.startswith("sync")
    return {
        "failed": not sync,
        "done in part": sync,
        "done, timed out": name in WRITES,
        "not done, timed out": name in WRITES,
        "done later": place == "remote" and name in WRITES and name != "download",
        "done, not synced": operation in ("remote.create", "remote.replace", "remote.upload"),
        "refused": place == "remote" or (place == "home" and name in FILLS) or place == "sink",
    }.get(outcome, True)


def missing(seen: Counter[tuple[str, str, str]], events: Counter[str]) -> list[object]:
    """What should have happened and did not."""
    found: list[object] = [
        (operation, outcome, side)
        for operation in OPERATIONS
        for outcome, side in COLUMNS
        if possible(operation, outcome) and not seen[operation, outcome, side]
    ]
    return found + [event for event in EVENTS if not events[event]]


def table(seen: Counter[tuple[str, str, str]], events: Counter[str]) -> str:
    """One line an operation, one column an outcome; then the events."""
    heads = [outcome if side == "none" else f"{outcome} {side}" for outcome, side in COLUMNS]
    lines = ["".join(f"{text:>20}" for text in ("operation", *heads))]
    for operation in OPERATIONS:
        counts = [f"{seen[operation, outcome, side]:,}" if possible(operation, outcome) else "-" for outcome, side in COLUMNS]
        lines.append("".join(f"{text:>20}" for text in (operation, *counts)))
    return "\n".join([*lines, ", ".join(f"{event}: {events[event]:,}" for event in EVENTS)])
