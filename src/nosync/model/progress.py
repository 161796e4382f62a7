"""What an epoch did, as PySpark's own progress of a streaming query: a dict that prints as JSON and has its fields as attributes too."""

import json
from html import escape
from typing import Any


class Progress(dict[str, Any]):
    """`progress["numInputRows"]`, or `progress.numInputRows`. Fields that PySpark's progress has mean the same here.

    Besides: `epoch` (PySpark's `batchId`), `rejectedRows` and `lateRows`, `safe`, `tiers` and `sinks`: how far they are.

    >>> run.lastProgress.numInputRows, run.lastProgress["epoch"]
    (1, 1)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f'progress has no "{name}": it has {", ".join(self)}') from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self})

    @property
    def json(self) -> str:
        """On one line."""
        return json.dumps(self, default=str)

    @property
    def prettyJson(self) -> str:  # noqa: N802 (PySpark's name)
        return json.dumps(self, indent=2, default=str)

    def __str__(self) -> str:
        return self.prettyJson

    def __repr__(self) -> str:
        return f"Progress({in_a_line(self)})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in self.items())
        return f"<table>{rows}</table>"


def in_a_line(progress: Progress) -> str:
    """For people."""
    millis = progress["durationMs"]
    parts = ", ".join(f"{name} {millis[name]:,}" for name in ("open", "compute", "seal") if name in millis)
    rejected = f", {progress['rejectedRows']:,} rejected" if progress["rejectedRows"] else ""
    late = f", {progress['lateRows']:,} late" if progress["lateRows"] else ""
    whole = f"{millis['triggerExecution']:,} ms ({parts})"
    return f"epoch {progress['epoch']}: {progress['numInputRows']:,} rows{rejected}{late} in {whole}"
