"""Why a row of a view is what it is: a value, as `run.why` gives it. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nosync.model.identifiers import Epoch
from nosync.model.text import iso_seconds

SHOWN = 10  # rows of each source, as text


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one source gave in one epoch: `rows` of its `slice` could have had a part; None where the input is not there any more."""

    source: str
    epoch: Epoch
    at: float
    slice: Mapping[str, Any]
    rows: int | None


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    """The rows of a view with some values as of an epoch, and what could have had a part in them: `parts`, oldest first, and the input
    `rows` by source, each with its `_epoch` and `_diff`. `notes` say what is not known, or not shown.
    """

    view: str
    values: Mapping[str, Any]
    epoch: Epoch
    result: tuple[Mapping[str, Any], ...]
    parts: tuple[Contribution, ...]
    rows: Mapping[str, tuple[Mapping[str, Any], ...]]
    notes: tuple[str, ...] = field(default=())

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        """Those that gave something."""
        return tuple(sorted({part.epoch for part in self.parts if part.rows}))

    @property
    def counts(self) -> dict[str, int]:
        """How many rows of each source, as far as they are known."""
        found: dict[str, int] = {}
        for part in self.parts:
            found[part.source] = found.get(part.source, 0) + (part.rows or 0)
        return found

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        said = f" where {said}" if said else ""
        lines = [f"{self.view}{said}, as of epoch {self.epoch}:", *(f"  {dict(row)}" for row in self.result or ())]
        lines += [] if self.result else ["  no row"]
        for source, count in self.counts.items():
            lines.append(f"from {source}: {count:,} {'row' if count == 1 else 'rows'}")
            for part in (part for part in self.parts if part.source == source and part.rows != 0):
                at = iso_seconds(part.at)
                many = "no longer there" if part.rows is None else f"{part.rows:,}"
                lines.append(f"  epoch {part.epoch}, {at}: {many} of {json.dumps(dict(part.slice), default=str)}")
            lines += [f"    {dict(row)}" for row in self.rows.get(source, ())[:SHOWN]]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])
