"""Epochs as Spark jobs."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nosync.bridge.kept_plans import TooMany
from nosync.compile.ledger import LedgerNode
from nosync.graph.graph import Graph
from nosync.graph.nodes import SourceNode
from nosync.graph.operators import AccumulateNode, RegroupNode
from nosync.graph.timed import timed_sources
from nosync.graph.traces import feeders
from nosync.journal.entries import Opened
from nosync.journal.names import layer_path
from nosync.model.bound import BoundSource
from nosync.model.columns import DIFF
from nosync.model.engine import CoversOf, Outcome, Targets
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import Kind, LayerInfo
from nosync.model.shards import shard_ranges
from nosync.model.source import Rejecting, Slice
from nosync.model.watermark import History, newest, nothing_seen
from nosync.spark.descriptions import described
from nosync.spark.empty import empty_result
from nosync.spark.event_time import late_counts, observed, seen_times, stamped, time_of
from nosync.spark.failure import Job, explain
from nosync.spark.job import EpochJob
from nosync.spark.job_context import JobContext
from nosync.spark.narrow import NarrowJob
from nosync.spark.receipts import Receipt, agreed, clear
from nosync.spark.rewriting import Rewriting, rewritten
from nosync.spark.session import EPOCH_POOL, flow_session, set_shards
from nosync.spark.ways import SETTING, Way, Ways, rows_of
from nosync.state.layer import write_layer

REST_POOL = "default"  # of Spark
WIDE_BYTES = 1 << 20
ChangesBySource = dict[str, Callable[[], DataFrame]]


class EngineProgram(Protocol):
    """What the engine must know of a program. `functions` maps the names of Python functions to the views that call them."""

    @property
    def name(self) -> str: ...
    @property
    def spark(self) -> SparkSession: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def sources(self) -> Mapping[str, BoundSource]: ...
    @property
    def functions(self) -> Mapping[str, str]: ...


class SparkEngine:
    """Runs the jobs of one run of a flow, in a session of the flow's own."""

    def __init__(self, program: EngineProgram, home: str, run: str, shards: int, wide_bytes: int = WIDE_BYTES) -> None:
        self.program, self.wide_bytes = program, wide_bytes
        self.group = job_group(program.name)
        self.pool = EPOCH_POOL
        self.session = flow_session(program.spark, shards)
        graph = program.graph
        empties = {
            operator.name: empty_result(self.session, operator)
            for operator in graph.operators
            if isinstance(operator, RegroupNode) and operator.empty is not None
        }
        self.timed = timed_sources(graph)
        clear(home)
        self.context = JobContext(self.session, graph, home, program.name, run, shards, empties)
        self.ways = Ways(str(program.spark.conf.get(SETTING, "")))
        self._about = {rejects: described(graph, None, rejects) for rejects in (False, True)}
        self._preparing = threading.Lock()
        self._ahead: tuple[Opened, EpochJob] | None = None
        self._read_lately = frozenset[int]()

    @property
    def cores(self) -> int:
        """How many tasks can run at once, as Spark has it now."""
        return self.session.sparkContext.defaultParallelism

    def rescale(self, shards: int) -> None:
        """From the next job on there are so many shards. Called between epochs; what was prepared for the next one is done anew."""
        with self._preparing:
            self._ahead = None
            self.context.rescale(shards)
            set_shards(self.session, shards)

    def prepare(self, opened: Opened) -> None:
        """Puts together and analyses, while the epoch before computes, what can be of the next one's job."""
        with self._preparing:
            self._ahead = None
            if self._way([opened]) == "narrow":
                return  # its plans are made
            job = self._job([opened], lambda _: {})
            job.prepare(self._read_lately)
            self._ahead = (opened, job)

    def compute(
        self, openings: Sequence[Opened], covers: CoversOf, targets: Targets | None = None, seen: History = nothing_seen
    ) -> Outcome:
        """One job (and another where rows were rejected) over the input of all the openings."""
        if targets is not None and len(openings) == 1 and self._is_everything(targets):
            targets = None
        try:
            return self._compute(openings, covers, targets, seen)
        except Exception as error:
            job = Job(openings[0].epoch, openings[-1].epoch, tuple(sorted(targets or ())))
            raise explain(error, self.program.functions, list(self.program.graph.views), job) from None

    def _is_everything(self, targets: Targets) -> bool:
        """Whether nothing of an epoch is left out: then it is computed as epochs are, the quicker way."""
        ranges = frozenset(shard_ranges(self.context.shards))
        return all(ranges == targets.get(trace) for trace in feeders(self.program.graph))

    def rewrite(self, asked: Rewriting) -> list[LayerInfo]:
        """The layers of a view that is computed from the rows of an earlier one."""
        self.session.sparkContext.setJobGroup(self.group, f"{self.program.name}, rewriting view {asked.view.name}")
        try:
            return rewritten(self.context, asked)
        except Exception as error:
            job = Job(min(asked.first.values()), max(asked.first), (asked.view.trace,))
            raise explain(error, self.program.functions, [asked.view.name], job) from None

    def blank(self, trace: TraceName, range: HashRange, lower: Epoch, upper: Epoch, kind: Kind) -> LayerInfo:
        context = self.context
        path = layer_path(trace, range, lower, upper, context.run)
        return write_layer(
            context.home, path, [], flow=context.flow, trace=trace, range=range, lower=lower, upper=upper, kind=kind, run=context.run
        )

    def _job(
        self,
        openings: Sequence[Opened],
        covers: CoversOf,
        targets: Targets | None = None,
        seen: History = nothing_seen,
        more: ChangesBySource | None = None,
    ) -> EpochJob:
        """The job over the input of the openings; `more`: what else there is to read in it."""
        taken, sources = self._taken(openings), self.program.sources
        imported = {name: files for entry in openings for name, files in entry.imported.items()}
        changes: ChangesBySource = {name: partial(self._arrivals, name, openings) for name in taken}
        changes |= (self._statics() if openings[0].epoch == 1 else {}) | (more or {})
        wide = frozenset(name for name, found in taken.items() if sum(map(sources[name].weight, found)) >= self.wide_bytes)
        direct = {name: paths for name, found in taken.items() if (paths := self._direct(name, found))}
        return EpochJob(self.context, openings[0].epoch, openings[-1].epoch + 1, covers, changes, wide, direct, targets, seen, imported)

    def _taken(self, openings: Sequence[Opened]) -> dict[str, list[Slice]]:
        read = [entry for entry in openings if not entry.origin]
        slices = {name: [entry.slices[name] for entry in read if name in entry.slices] for name in self.program.sources}
        return {name: found for name, found in slices.items() if found}

    def _compute(self, openings: Sequence[Opened], covers: CoversOf, targets: Targets | None, seen: History) -> Outcome:
        self.session.sparkContext.setLocalProperty("spark.scheduler.pool", self.pool)
        self._describe(openings, targets)
        sources, taken = self.program.sources, self._taken(openings)
        began = time.perf_counter()
        first, receipts, way = self._first(openings, covers, targets, seen)
        took = (time.perf_counter() - began) * 1e3
        for name, found in taken.items():
            unread = name not in first.observed and any(sources[name].rows(slice) is None for slice in found)
            if unread or (name in self.timed and targets is None and time_of(name) not in first.observed):
                first.count(name)
        rows = {name: self._rows(name, found, first) for name, found in taken.items()}
        rejected = self._rejected(taken, first)
        rejected |= self._refused(taken, receipts)
        if self.context.of_rejects:
            self._describe(openings, targets, rejects=True)
            rest = self._job(openings, covers, targets, seen, self._rejected_rows(openings, rejected)).run(of_rejects=True)
            receipts = agreed(receipts + rest)
        if targets is None:
            self.ways.note(way, sum(rows.values()), max((self.context.lately or {}).values(), default=0), took)
        layers = tuple(receipt.layer for receipt in receipts if receipt.layer)
        seen_by_now = reduce(newest, [entry.seen for entry in openings], seen_times(first.observed))
        return Outcome(layers, rows, rejected, receipts, seen_by_now, late_counts(first.observed), way)

    def _first(
        self, openings: Sequence[Opened], covers: CoversOf, targets: Targets | None, seen: History
    ) -> tuple[EpochJob, list[Receipt], Way]:
        """Runs all but what depends on rejected rows, the one way or the other."""
        with self._preparing:
            ahead, self._ahead = self._ahead, None
        if targets is None and self._way(openings) == "narrow":
            narrow = self._narrow(openings, covers, seen)
            try:
                return narrow, narrow.run(), "narrow"
            except TooMany:
                pass  # layers that were written are nobody's: the sweeper finds them
        job = self._job(openings, covers, targets, seen)
        if ahead is not None and targets is None and [ahead[0]] == list(openings):
            job.use(ahead[1])
        receipts = job.run()
        self._read_lately = job.read
        return job, receipts, "wide"

    def _way(self, openings: Sequence[Opened]) -> Way:
        """Several epochs at once, and the first one where there are tables or imported state to read, go wide."""
        if len(openings) > 1 or openings[0].origin or (openings[0].epoch == 1 and self.program.graph.statics):
            return "wide"
        pairs = [(self.program.sources[name], slice) for name, found in self._taken(openings).items() for slice in found]
        rows = rows_of([source.rows(slice) for source, slice in pairs], [source.weight(slice) for source, slice in pairs])
        return self.ways.choose(openings[0].epoch, rows, partial(self._reads_directly, openings))

    def _reads_directly(self, openings: Sequence[Opened]) -> bool:
        """Whether some operator's tasks may read their input themselves."""
        taken, operators = self._taken(openings), self.program.graph.operators
        wanted = {node.source_columns.source for node in operators if isinstance(node, AccumulateNode) and node.source_columns}
        return any(self._direct(name, found) for name, found in taken.items() if name in wanted)

    def _narrow(self, openings: Sequence[Opened], covers: CoversOf, seen: History) -> NarrowJob:
        """Files of Parquet are read by workers also here: one that is cut off while it is mapped takes the process with it."""
        job, taken = self._job(openings, covers, None, seen), self._taken(openings)
        found = {name: self.program.sources[name].table for name in taken}
        tables = {name: partial(self._table, table, openings[0], name) for name, table in found.items() if table is not None}
        sources = {name: self.program.sources[name] for name in taken}
        unstamped = {name: source for name, source in sources.items() if self.program.graph.sources[name].stamp is None}
        shaped = {name: (source.shaped, openings[0].slices[name]) for name, source in unstamped.items() if source.shaped is not None}
        return NarrowJob(
            self.context, job.lower, job.upper, covers, job.changes, frozenset(), seen=seen, tables=tables, shaped=shaped
        )

    def _table(self, read: Callable[[Slice], pa.Table | None], opened: Opened, name: str) -> pa.Table | None:
        """The rows of a source that needs no Spark, with the time of their arrival where it is asked for."""
        table, stamp = read(opened.slices[name]), self.program.graph.sources[name].stamp
        if table is None or stamp is None:
            return table
        at = pa.array([round(opened.at * 1e6)] * len(table), pa.timestamp("us", "UTC"))
        return table.add_column(table.num_columns - 1, stamp, at)

    def _describe(self, openings: Sequence[Opened], targets: Targets | None, rejects: bool = False) -> None:
        """What Spark's UI says of the jobs to come. "again": of recorded epochs, some of what they were."""
        again = "" if targets is None else "again "
        about = described(self.program.graph, targets, rejects) if targets is not None else self._about[rejects]
        job = Job(openings[0].epoch, openings[-1].epoch)
        self.session.sparkContext.setJobGroup(self.group, f"{self.program.name}, {again}{job}: {about}")

    def yield_to_epochs(self, what: str) -> None:
        """From here on its jobs get the cores that the epochs of another engine leave idle, and are known apart from those."""
        self.group, self.pool = f"{job_group(self.program.name)}, {what}", REST_POOL

    def lead(self) -> None:
        """Its jobs are the epochs from here on."""
        self.group, self.pool = job_group(self.program.name), EPOCH_POOL

    def tasks(self) -> tuple[int, int]:
        """How many tasks of the job that is running now are done, of how many. May be asked from any thread."""
        tracker = self.session.sparkContext.statusTracker()
        jobs = [found for job in tracker.getJobIdsForGroup(self.group) if (found := tracker.getJobInfo(job)) and found.status == "RUNNING"]
        stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
        known = [stage for stage in stages if stage is not None]
        to_come = (len(stages) - len(known)) * self.context.shards
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known) + to_come

    def give_up(self) -> None:
        """The job that is running now fails. May be called from any thread."""
        self.session.sparkContext.cancelJobGroup(self.group)

    def _arrivals(self, name: str, openings: Sequence[Opened]) -> DataFrame:
        """The rows of a source, with the time of their arrival where it is asked for, their event time observed on the way."""
        node, found = self.program.graph.sources[name], [entry for entry in openings if name in entry.slices and not entry.origin]
        if node.stamp is None:
            rows = self._read(name, [entry.slices[name] for entry in found])
        else:
            rows = reduce(DataFrame.unionAll, [stamped(self._read(name, [entry.slices[name]]), node.stamp, entry.at) for entry in found])
        return observed(rows, name, node.time) if node.time is not None and name in self.timed else rows

    def rows_of(self, source: str, opened: Opened) -> DataFrame:
        """What a source gave in one epoch, as it was recorded."""
        rows, stamp = self._read(source, [opened.slices[source]]), self.program.graph.sources[source].stamp
        return rows if stamp is None else stamped(rows, stamp, opened.at)

    def _read(self, name: str, slices: Sequence[Slice]) -> DataFrame:
        source = self.program.sources[name]
        if source.together is not None and len(slices) > 1:
            return source.read(self.session, source.together(slices))
        return reduce(DataFrame.unionAll, [source.read(self.session, slice) for slice in slices])

    def _direct(self, name: str, slices: Sequence[Slice]) -> tuple[str, ...]:
        """Files of the slices that tasks may read themselves."""
        offer = self.program.sources[name].direct
        stamped = self.program.graph.sources[name].stamp is not None
        offered = [offer(slice) for slice in slices] if offer is not None and not stamped else []
        return tuple(path for paths in offered for path in paths) if offered and all(offered) else ()

    def _statics(self) -> ChangesBySource:
        return {node.name: partial(self._static, node) for node in self.program.graph.statics}

    def _static(self, node: SourceNode) -> DataFrame:
        return self.context.catalyst.frame(node.static).select("*", F.lit(1).cast("bigint").alias(DIFF))

    def _rows(self, name: str, slices: Sequence[Slice], job: EpochJob) -> int:
        known = [self.program.sources[name].rows(slice) for slice in slices]
        if all(count is not None for count in known):
            return sum(count for count in known if count is not None)
        return job.observed.get(name, {}).get("rows", 0)

    def _rejected(self, taken: Mapping[str, Sequence[Slice]], job: EpochJob) -> dict[str, int]:
        counts = {
            name: job.observed.get(name, {}).get("rejected", 0) + sum(map(rejecting.rejects, found))
            for name, found in taken.items()
            if (rejecting := self.program.sources[name].rejecting) is not None
        }
        return {name: count for name, count in counts.items() if count}

    def _refused(self, taken: Mapping[str, Sequence[Slice]], receipts: Sequence[Receipt]) -> dict[str, int]:
        """What ledgers have rejected: the rows that came to the views of it."""
        graph = self.program.graph
        traces = {graph.views[f"{node.view}.rejected"].trace: node.view for node in graph.operators if isinstance(node, LedgerNode)}
        counts = {name: 0 for name in traces.values() if name in taken}
        for receipt in receipts:
            if receipt.trace in traces:
                counts[traces[receipt.trace]] += receipt.rows
        return {name: count for name, count in counts.items() if count}

    def _rejected_rows(self, openings: Sequence[Opened], names: Mapping[str, int]) -> ChangesBySource:
        found: ChangesBySource = {}
        for name in names:
            rejecting = self.program.sources[name].rejecting
            if rejecting is not None:
                found[f"{name}.rejected"] = partial(self._rejected_frame, rejecting, name, openings)
        return found

    def _rejected_frame(self, source: Rejecting, name: str, openings: Sequence[Opened]) -> DataFrame:
        taken = [entry for entry in openings if name in entry.slices and not entry.origin]
        frames = [source.rejected(self.session, entry.slices[name], entry.epoch) for entry in taken]
        return reduce(DataFrame.unionAll, frames)


def job_group(flow: str) -> str:
    """What Spark knows the jobs of a flow by."""
    return f"nosync {flow}"
