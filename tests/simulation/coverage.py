"""Which operations met which outcome, and crashes on which side."""

from collections import Counter

from .world import WRITES

OPERATIONS = (
    *(f"home.{name}" for name in ("create", "replace", "read", "exists", "sizes", "delete", "sync_files", "sync_folders")),
    *(f"remote.{name}" for name in ("create", "replace", "read", "exists", "sizes", "delete", "upload", "download")),
    "sink.deliver",
)
COLUMNS = (
    ("ok", "none"),
    ("failed", "none"),
    ("done, timed out", "none"),
    ("not done, timed out", "none"),
    ("crash", "before"),
    ("crash", "after"),
)


def possible(operation: str, outcome: str) -> bool:
    """Only a write can be in doubt."""
    return "timed out" not in outcome or operation.partition(".")[2] in WRITES


def missing(seen: Counter[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """What should have happened to some operation and did not."""
    return [
        (operation, outcome, side)
        for operation in OPERATIONS
        for outcome, side in COLUMNS
        if possible(operation, outcome) and not seen[operation, outcome, side]
    ]


def table(seen: Counter[tuple[str, str, str]]) -> str:
    """One line an operation, one column an outcome."""
    heads = [outcome if side == "none" else f"{outcome} {side}" for outcome, side in COLUMNS]
    lines = ["".join(f"{text:>21}" for text in ("operation", *heads))]
    for operation in OPERATIONS:
        counts = [f"{seen[operation, outcome, side]:,}" if possible(operation, outcome) else "-" for outcome, side in COLUMNS]
        lines.append("".join(f"{text:>21}" for text in (operation, *counts)))
    return "\n".join(lines)
