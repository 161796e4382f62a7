"""What a flow says, ready to run: its graph and its sources. Made by `Flow`, run by `Run`."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from nosync.bridge.arrow import arrow_schema
from nosync.graph.copying import copied
from nosync.graph.graph import Graph
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.part import without
from nosync.graph.picture import boxes_of
from nosync.graph.timed import timed_traces
from nosync.graph.traces import computed_from, feeders, keeps_its_output, records, stepwise, traces_of, unrepeatable
from nosync.graph.walk import behind_views, inputs, reads_past
from nosync.history.record import ViewRecord
from nosync.journal.entries import Declared
from nosync.journal.image import Begun
from nosync.journal.taken import MarksOf
from nosync.model.bound import BoundSource
from nosync.model.compaction import DEFAULT, Compaction
from nosync.model.events import Listening
from nosync.model.identifiers import TraceName
from nosync.model.ladder import Ladder
from nosync.model.picture import Box, Picture
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.policy import Policy
from nosync.model.scaling import FIXED, Scaling
from nosync.model.shards import shard_ranges
from nosync.model.sink import BoundSink, Promise
from nosync.recovery.plan import Shape
from nosync.runtime.change import OtherSettings, difference, names_for
from nosync.runtime.derived_views import derived_views
from nosync.runtime.rebuilding import ProgramChange
from nosync.spark.settings import settings_of


@dataclass(frozen=True)
class Program:
    """A declared flow. `functions` maps the names of Python functions to the views that call them. `on_other_settings`: whether it goes on
    where answers may come out differently than before. `keep`: which epochs it keeps, None for as before; `compaction`: when old layers are
    put together; `policy`: how its state is protected; `scaling`: how many shards it shall have; `listeners` hear what its runs do.
    `queries` are those of its views, over placeholders that `leaves` know by number. `formerly`: what the flow was called before.
    """

    name: str
    spark: SparkSession
    graph: Graph
    sources: dict[str, BoundSource]
    functions: dict[str, str]
    sinks: dict[str, BoundSink] = field(default_factory=dict)
    on_other_settings: OtherSettings = "refuse"
    keep: Ladder | None = None
    compaction: Compaction = DEFAULT
    policy: Policy = LOG_STRUCTURED
    scaling: Scaling = FIXED
    listeners: tuple[Listening, ...] = ()
    queries: Mapping[str, DataFrame] = field(default_factory=dict)
    leaves: Mapping[int, Node] = field(default_factory=dict)
    formerly: str | None = None

    def declaration(self, shards: int, retired: Iterable[str] = ()) -> Declared:
        """What the journal records of the program, and compares it by."""
        fingerprints = {name_of(node): mark for node, mark in self._states()}
        views = {view.name: record_of(view).to_json() for view in self.graph.views.values()}
        sinks = {name: {"trace": self.graph.sinks[name].trace, "release": sink.release} for name, sink in self.sinks.items()}
        feeding = {name: sorted(needed) for name, needed in feeders(self.graph).items()}
        more = self.picture().to_json(), self._stepwise(), unrepeatable(self.graph), records(self.graph), sorted(retired)
        tables = {table.name: table.version for table in self.graph.statics}
        folders = {name: folder for name, source in self.sources.items() if (folder := source.folder())}
        last = tables, folders, self.policy.name
        return Declared(self.name, shards, settings_of(self.spark), fingerprints, views, sinks, feeding, *more, *last)

    def _states(self) -> list[tuple[Operator | ViewNode, str]]:
        """What keeps state, with its fingerprint. The output of a sink is its own, whatever views there are."""
        sinks = {id(node): f"sink {name}" for name, node in self.graph.sinks.items()}
        found: list[tuple[Operator | ViewNode, str]] = [(node, f"{node.kind} {node.fingerprint}") for node in self.graph.operators]
        kept = [view for view in self.graph.queries if view.feed is not None]
        return found + [(view, f"{sinks.get(id(view), 'rows')} {view.fingerprint}") for view in kept]

    def named_after(self, old: Declared) -> "Program":
        """The same program under the names that a home has for the state of what did not change. This one stays as it is."""
        wanted = [(name_of(node), mark) for node, mark in self._states()]
        other = replace(self, graph=copied(self.graph))
        for (node, _), name in zip(other._states(), names_for(wanted, old.fingerprints, old.retired), strict=True):
            if isinstance(node, ViewNode):
                node.kept = name
            else:
                node.name = name
        return other

    def change(self, old: Declared, shards: int) -> ProgramChange:
        """What taking over from another program means. This one has its names."""
        gone = set(old.fingerprints) - {name_of(node) for node, _ in self._states()}
        left_behind = set(old.feeders) - set(feeders(self.graph))
        first_name = old.first_name or (old.flow if old.flow != self.name else "")
        declaration = replace(
            self.declaration(shards, {*old.retired, *gone, *left_behind}), first_name=first_name, origin=old.origin, imported=old.imported
        )
        found = difference(old, declaration)
        fresh = [node for node, _ in self._states() if name_of(node) in found.fresh]
        every = frozenset(shard_ranges(shards))
        targets = {trace: every for node in fresh for trace in traces_of(node)}
        upstream_of_them = [other for node in fresh for other in computed_from(node)]
        sinks = tuple(name for name, node in self.graph.sinks.items() if node.trace in found.fresh)
        views = [view for view in self.graph.views.values() if view.backing is None and view.trace in found.fresh]
        return ProgramChange(
            declaration, found, targets, {trace: every for node in upstream_of_them for trace in traces_of(node)},
            frozenset(node.name for node in upstream_of_them if isinstance(node, SourceNode)), sinks,
            bool({trace for node in upstream_of_them for trace in traces_of(node)} & set(self._stepwise())) or bool(old.origin),
            doubts={name_of(node): reason for node in fresh if (reason := _doubt(node, fresh))},
            recorded=tuple(node.name for node in upstream_of_them if isinstance(node, Operator) and keeps_its_output(node)),
            bare=tuple(name_of(node) for node in fresh if old.origin and reads_past(node, old.imported)),
            derived=derived_views(views, old.views, self.graph.views),
        )  # fmt: skip

    def without(self, traces: Container[TraceName]) -> "Program | None":
        """The program without what keeps these traces; None where other parts of it are computed from that."""
        part = without(self.graph, traces)
        return None if part is None else replace(self, graph=part)

    def picture(self) -> Picture:
        """What `explain` prints."""
        return Picture(self.name, tuple(self._promising(box) for box in boxes_of(self.graph)))

    def _promising(self, box: Box) -> Box:
        """A sink also says what it promises."""
        if box.sort != "sink" or box.name not in self.sinks:
            return box
        sink, promise = self.sinks[box.name], self.promises()[box.name]
        pace = f", every {sink.every:g} s at most" if sink.every else ""
        return replace(box, promises=f"{promise.guarantee}, released when {sink.release}{pace}: {promise.reason}")

    def promises(self, begun: Mapping[TraceName, Begun] | None = None) -> dict[str, Promise]:
        """What each sink's output promises after a failure, by its weakest link. `begun`: state that a changed program brought."""
        emptied = {trace: one.epoch for trace, one in (begun or {}).items() if one.empty}
        promises, needed = {name: self._promise(name, sink) for name, sink in self.sinks.items()}, feeders(self.graph)
        for name, node in self.graph.sinks.items():
            for trace in sorted(needed[node.trace] & emptied.keys()):
                promises[name] = Promise("divergent", f'"{trace}" began empty with epoch {emptied[trace]}, when the program changed')
        return promises

    def _promise(self, name: str, bound: BoundSink) -> Promise:
        unsure = [one.name for one in computed_from(self.graph.sinks[name]) if keeps_its_output(one)]
        return self.policy.promise(bound.sink.promise, bound.release, unsure)

    def _stepwise(self) -> list[TraceName]:
        """Traces that come out right only epoch by epoch; those that go by event time are among them."""
        return sorted({*stepwise(self.graph), *timed_traces(self.graph)})

    def shape(self) -> Shape:
        """What a recovery must know."""
        sinks = {node.trace: name for name, node in self.graph.sinks.items()}
        unsure = frozenset(unrepeatable(self.graph)), frozenset(records(self.graph))
        return Shape(feeders(self.graph), sinks, frozenset(self._stepwise()), *unsure, self.policy)


def marks_of(sources: Mapping[str, BoundSource]) -> MarksOf:
    """Of sources that know what they must not take twice."""
    return {name: source.marks for name, source in sources.items() if source.marks is not None}


def name_of(node: Operator | ViewNode) -> str:
    """The name under which it keeps state."""
    return node.trace if isinstance(node, ViewNode) else node.name


def _doubt(node: Operator | ViewNode, fresh: Sequence[Operator | ViewNode]) -> str:
    """Why an operator cannot begin without what was before; empty where it can."""
    for other in behind_views(inputs(node)):
        if isinstance(other, SourceNode) and other.static is not None:
            return "it reads a static table, which comes with epoch 1"
        if other not in fresh and isinstance(other, SourceNode | Operator) and not other.append_only:
            return f'"{other.name}" may take rows back that it never saw'
    return ""


def record_of(view: ViewNode) -> ViewRecord:
    schema = arrow_schema(view.schema, f'view "{view.name}"')
    if view.backing is None:
        places = tuple(view.stored.index(column) for column in range(len(schema)))
        return ViewRecord(schema, view.trace, "diffs", columns=places, keys=view.hashed, rows=view.rows, marks=view.marks)
    columns = tuple(view.backing.columns)
    return ViewRecord(schema, view.trace, "upserts", view.backing.node.spec, columns, rows=view.rows, marks=view.marks)
