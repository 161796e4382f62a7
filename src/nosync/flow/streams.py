"""Streams of Spark's in a flow: what `spark.readStream....load()` returns is a source, under a name or without one.

A query over such a stream becomes the same query over the source's placeholder. A stream that a view reads without `flow.source` is a
source too, named after what it reads; the same stream in several views is one source.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from nosync.bridge.catalyst import Catalyst, Java, children, kind
from nosync.bridge.frames import analyzed
from nosync.bridge.streams import over, same_stream, streaming_leaves
from nosync.flow.watermarks import note
from nosync.model.errors import Invalid
from nosync.sources.streams import name_of

TRANSPARENT = ("SubqueryAlias", "View")
Declare = Callable[[str, Java], DataFrame]  # makes a source of a leaf, and gives its placeholder


@dataclass
class Streams:
    """Those of one flow, each with the rows that stand for it."""

    catalyst: Catalyst
    known: list[tuple[Java, DataFrame]] = field(default_factory=list)

    def declared(self, name: str, frame: DataFrame, declare: Declare, said: tuple[Any, ...]) -> DataFrame:
        """A stream, or a query over one, as a source of this name. `said`: all else that
        `flow.source` was given, which goes by the rows of the stream itself."""
        plan = analyzed(frame)
        leaves = streaming_leaves(plan)
        if not leaves:
            hint = "Tables that stay as they are need no source: use the DataFrame in queries. A stream comes from spark.readStream."
            raise Invalid(f'source "{name}" is a DataFrame that does not stream', hint=hint)
        if not all(same_stream(leaf, leaves[0]) for leaf in leaves):
            raise Invalid(f'source "{name}" reads {len(leaves)} streams', hint="Declare a source for each, and join them in a view.")
        bare = plan
        while kind(bare) in TRANSPARENT:
            bare = children(bare)[0]
        if any(given not in (None, True) for given in said) and children(bare):
            hint = "Pass what load() returned, and apply the query to what flow.source returns."
            raise Invalid(f'source "{name}" is a query over a stream: key= and the like go by the rows of the stream', hint=hint)
        self.known.append((leaves[0], declare(name, leaves[0])))
        return self.known[-1][1] if not children(bare) else self.replaced(frame, {name}, declare)

    def replaced(self, query: DataFrame, taken: set[str], declare: Declare) -> DataFrame:
        """The query over sources of the flow; itself where it reads no stream. `taken` are names that are not free."""

        def rows_of(leaf: Java) -> DataFrame:
            found = next((rows for known, rows in self.known if same_stream(known, leaf)), None)
            if found is None:
                found = declare(_free(name_of(leaf), taken), leaf)
                self.known.append((leaf, found))
            return found

        plan = analyzed(query)
        return self.catalyst.frame(over(self.catalyst, plan, rows_of, note)) if plan.isStreaming() else query


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found)
    return found
