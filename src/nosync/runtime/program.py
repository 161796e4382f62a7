"""What a flow says, ready to run: its graph and its sources. Made by `Flow`, run by `Run`."""

from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from nosync.catalyst.arrow import arrow_schema
from nosync.catalyst.graph import Graph, ViewNode
from nosync.catalyst.picture import boxes_of
from nosync.catalyst.timed import timed_traces
from nosync.catalyst.traces import above, feeders, is_recorded, records, stepwise, unrepeatable
from nosync.history.record import ViewRecord
from nosync.journal.entries import Declared
from nosync.model.errors import Invalid
from nosync.model.picture import Box, Picture
from nosync.model.safety import Release
from nosync.model.sink import Promise, Target
from nosync.model.source import Source
from nosync.recovery.plan import Shape
from nosync.spark.session import settings_of


@dataclass(frozen=True)
class Sink:
    """Where the changes of a query go, and when."""

    target: Target
    release: Release


@dataclass(frozen=True)
class Program:
    """A declared flow. `functions` maps the names of Python functions to the views that call them."""

    name: str
    spark: SparkSession
    graph: Graph
    sources: dict[str, Source]
    functions: dict[str, str]
    sinks: dict[str, Sink] = field(default_factory=dict)

    def declaration(self, shards: int) -> Declared:
        """What the journal records of the program, and compares it by."""
        operators = {operator.name: operator.fingerprint for operator in self.graph.operators}
        operators |= {view.operator: view.body.fingerprint for view in self.graph.queries if view.feed is not None}
        views = {view.name: record_of(view).to_json() for view in self.graph.views.values()}
        sinks = {name: {"operator": self.graph.sinks[name].operator, "release": sink.release} for name, sink in self.sinks.items()}
        feeding = {name: sorted(needed) for name, needed in feeders(self.graph).items()}
        told = self.picture().to_json(), self._stepwise(), unrepeatable(self.graph), records(self.graph)
        return Declared(self.name, shards, settings_of(self.spark), operators, views, sinks, feeding, *told)

    def picture(self) -> Picture:
        """What `explain` tells."""
        return Picture(self.name, tuple(self._promising(box) for box in boxes_of(self.graph)))

    def _promising(self, box: Box) -> Box:
        """A sink also says what it promises."""
        if box.sort != "sink" or box.name not in self.sinks:
            return box
        sink, promise = self.sinks[box.name], self.promises()[box.name]
        return replace(box, promises=f"{promise.guarantee}, released when {sink.release}: {promise.reason}")

    def promises(self) -> dict[str, Promise]:
        """What each sink's output promises after a failure, by its weakest link."""
        return {name: self._promise(name, sink) for name, sink in self.sinks.items()}

    def _promise(self, name: str, sink: Sink) -> Promise:
        unsure = [one.name for one in above(self.graph.sinks[name]) if is_recorded(one)]
        if not unsure or sink.release == "safe":
            return sink.target.promise
        why = f'"{unsure[0]}" is not deterministic: an epoch that is released, then lost with the host, comes out anew; "safe" would wait'
        return Promise("divergent", why)

    def _stepwise(self) -> list[str]:
        """Traces that come out right only epoch by epoch; those that go by event time are among them."""
        return sorted({*stepwise(self.graph), *timed_traces(self.graph)})

    def shape(self) -> Shape:
        """What a recovery must know."""
        sinks = {node.operator: name for name, node in self.graph.sinks.items()}
        unsure = frozenset(unrepeatable(self.graph)), frozenset(records(self.graph))
        return Shape(feeders(self.graph), sinks, frozenset(self._stepwise()), *unsure)


def record_of(view: ViewNode) -> ViewRecord:
    schema = arrow_schema(view.schema, f'view "{view.name}"')
    if view.backing is None:
        return ViewRecord(schema, view.operator, "diffs")
    return ViewRecord(schema, view.operator, "upserts", view.backing.node.spec, tuple(view.backing.columns))


def check_same(old: Declared, new: Declared) -> None:
    """Refuses to go on with a program that means something else than the one that made the state."""
    if old.flow != new.flow:
        raise Invalid(f'this home belongs to flow "{old.flow}", not to "{new.flow}"', hint="Give each flow a home of its own.")
    if old.shards != new.shards:
        raise Invalid(f"this home has {old.shards} shards, not {new.shards}", hint=f"Start with shards={old.shards}, or without shards=.")
    for name, value in old.settings.items():
        if new.settings.get(name) != value:
            raise Invalid(
                f'this home was made with {name}={value}, now it is {new.settings.get(name)}',
                hint=f'Set spark.conf.set("{name}", "{value}") before declaring the flow, or use a new home.',
            )
    changed = [name for name in old.operators | new.operators if old.operators.get(name) != new.operators.get(name)]
    if changed:
        names = ", ".join(f'"{name}"' for name in changed)
        hint = "Start the changed program on a new home."
        raise Invalid(f"the program has changed: {names} no longer match the state in this home", hint=hint)
