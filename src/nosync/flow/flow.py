"""A flow: sources, and views over them written in ordinary PySpark or Spark SQL."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Literal

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.declaring import Declaring
from nosync.bridge.errors import JavaError, words_of
from nosync.bridge.frames import analyzed
from nosync.compile.compiler import Compiler
from nosync.compile.refusal import check_analyzed
from nosync.flow import actions, watermarks
from nosync.flow.declared import of_changes, of_rows
from nosync.flow.functions import functions_in
from nosync.flow.in_use import IN_USE, check_first_use, check_may_start
from nosync.flow.listeners import all_listeners
from nosync.flow.names import asked, check_free, created_view
from nosync.flow.outputs import check_fits, check_no_cycle, check_output, check_preview, check_view
from nosync.flow.preview import Preview
from nosync.flow.pyspark_words import EXPLAIN_WORDS, SINK_WORDS, SOURCE_WORDS, SQL_WORDS, START_WORDS, VIEW_WORDS, check_words, declaring
from nosync.flow.statements import check_statement
from nosync.flow.streams import Streams
from nosync.graph.copying import copied
from nosync.history.home import open as open_home
from nosync.model.absent import public
from nosync.model.arguments import checked
from nosync.model.bound import BoundSource, bound
from nosync.model.compaction import Knobs, compaction_of
from nosync.model.connectors import check_abilities, check_source
from nosync.model.errors import Invalid
from nosync.model.events import Listener, Listening, listening
from nosync.model.ladder import Keep, ladder_of
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.quoting import check_name
from nosync.model.safety import Release
from nosync.model.sink import BoundSink, Promise, Sink, bound_sink
from nosync.model.source import Source
from nosync.observe.drawing import drawn, write_drawing
from nosync.observe.introductions import flow_in_a_line
from nosync.observe.news import logger, say_compiled, show_at_a_terminal
from nosync.observe.text import in_words
from nosync.runtime.change import OnChange, OtherSettings
from nosync.runtime.comparison import compare
from nosync.runtime.durability import durability_of
from nosync.runtime.program import Program
from nosync.runtime.rescaling import scaling_of
from nosync.runtime.run import Run
from nosync.runtime.trigger import Given, pace_of, trigger_of
from nosync.sources.change_log import ChangeLog, reading_of
from nosync.sources.fitting import fitting
from nosync.sources.input_log import logged
from nosync.sources.streams import stream_of
from nosync.spark.operators import RULES
from nosync.spark.session import active_or_local, checked_session


@public
class Flow:
    """A named set of sources and views; the unit of running. Declare everything, then `start` it on a home. One that was renamed goes on
    with its home if it says what it was called `formerly`.

    >>> flow = ns.Flow("shop")
    """

    WITHIN = ("program",)

    @checked()
    def __init__(self, name: str, spark: SparkSession | None = None, *, formerly: str | None = None) -> None:
        check_name(name, "a flow")
        check_name(name if formerly is None else formerly, "a flow")
        self.name, self._formerly = name, formerly
        show_at_a_terminal()
        self.spark = checked_session(spark or active_or_local())
        self._compiler = Compiler(Declaring(self.spark), RULES, name)
        watermarks.listen()
        actions.listen()
        self._sources: dict[str, BoundSource] = {}
        self._given: dict[str, Source] = {}
        self._frames: dict[str, DataFrame] = {}
        self._queries: dict[str, DataFrame] = {}
        self._functions: dict[str, str] = {}
        self._sinks: dict[str, BoundSink] = {}
        self._listeners: list[Listening] = []
        self._streams = Streams(self._compiler.catalyst)
        self._run: Run | None = None
        self._log = logger(name)

    def __repr__(self) -> str:
        run = self._run
        where = "" if run is None else f"{'running' if run.isActive else 'stopped'}, epoch {run.status.epoch}"
        return flow_in_a_line(self.name, self._given, self._compiler.graph.views, self._sinks, where)

    def _repr_html_(self) -> str:
        """In a notebook, the graph."""
        return f"<p>{escape(repr(self))}</p>{drawn(self.program().picture()) if self._sources else ''}"

    @declaring(**SOURCE_WORDS)
    def source(
        self,
        name: str,
        source: Source | DataFrame,
        key: str | Sequence[str] | None = None,
        op_column: str | None = None,
        sequence: str | None = None,
        watermark: tuple[str, str] | None = None,
        stamp: str | None = None,
        checked: bool = True,
    ) -> DataFrame:
        """Adds a source, or a stream of Spark's (`spark.readStream....load()`); returns an empty DataFrame that stands for it in queries.

        With a `key`, rows with equal keys replace one another: the newest counts. `op_column` names a column that says whether a row is
        inserted, updated or removed, `sequence` one that says which of two rows of a key is newer.

        What removes a row that is not there is rejected. For that the rows of a source that may remove some are counted, which keeps them
        once more; `checked=False` takes a source without a key at its word instead.

        `watermark=("at", "10 seconds")`, or `.withWatermark("at", "10 seconds")` on what is returned: the column of its event time, and
        how far behind the newest a row may be before the windows it belongs to have closed. `stamp="arrived_at"` adds a column with the
        recorded time of the epoch that brings the row.

        >>> orders = flow.source("orders", ns.files("in/*.csv", schema="user string, price double"))
        """
        self._check_name(name)
        reading = reading_of(name, key, op_column, sequence)
        if isinstance(source, DataFrame):
            said = key, op_column, sequence, watermark, stamp, checked
            self._frames[name] = self._streams.declared(name, source, lambda name, leaf: self.source(name, stream_of(leaf), *said), said)
            return self._frames[name]
        check_source(name, source)
        check_first_use(name, source, self._given)
        given = source.declare(name, self.spark)
        if not isinstance(given, StructType):
            raise Invalid(f'source "{name}": declare gave a {type(given).__name__}', hint="Let it return the StructType of the rows.")
        check_abilities(name, source, given.names)
        able = bound(source)
        reading, found = reading.by(able.keys()), logged(fitting(able, source, name, given), name, given, self.spark)
        if reading.carries_changes or (checked and not found.append_only):
            made = of_changes(self._compiler, self.spark, ChangeLog(name, found, given, reading), watermark, stamp)
        else:
            made = of_rows(self._compiler, name, found, given, watermark, stamp)
        self._sources[name], self._frames[name] = made.bound, made.frame
        if made.rejected is not None:
            self._add_view(f"{name}.rejected", made.rejected)
        self._given[name] = source
        return self._frames[name]

    @declaring(**VIEW_WORDS)
    def view(self, name: str, query: DataFrame, emit: Literal["early", "final"] = "early", late: str | None = None) -> DataFrame:
        """Keeps the query's result up to date under a name, and returns a DataFrame to build further views on.

        Windows over a watermarked column are emitted early, and corrected as rows arrive; with `emit="final"` once, when they have closed.
        `late` names a view of the rows that came too late for the query's windows.

        >>> spend = flow.view("spend", purchases.groupBy("user").agg(F.sum("price").alias("spent")))
        """
        self._check_name(name)
        check_view(name, query, emit)
        if late is not None:
            self._check_name(late)
        try:
            return self._add_view(name, query, emit == "final", late)
        except (PySparkException, JavaError) as error:
            raise Invalid(f'view "{name}": {words_of(error)}', hint="Correct the query.") from None

    def _add_view(self, name: str, query: DataFrame, final: bool = False, late: str | None = None) -> DataFrame:
        query = self._without_streams(name, query)
        node = self._compiler.view(name, query, final, late)
        if late is not None:
            found = self._compiler.graph.views[late]
            self._frames[late] = self._compiler.placeholder(found.schema, found)
        self._functions |= dict.fromkeys(functions_in(query, self._compiler.catalyst), name)
        self._queries[name] = query
        say_compiled(self._log, name, len(self._compiler.graph.views))
        self._frames[name] = self._compiler.placeholder(query.schema, node)
        return self._frames[name]

    def _without_streams(self, view: str, query: DataFrame) -> DataFrame:
        taken = {view, *self._frames, *self._sinks}
        return self._streams.replaced(query, taken, lambda name, leaf: self.source(name, stream_of(leaf)))

    @declaring(**SQL_WORDS)
    def sql(self, statement: str) -> DataFrame:
        """A query over sources, views and the session's own tables; `create view NAME as ...` declares a view.

        >>> whales = flow.sql("create view whales as select user from purchases where price > 1000")
        """
        check_statement(statement)
        name, query = created_view(statement) or ("", statement)
        found = asked(self.spark, query, self._frames)
        return self.view(name, found) if name else found

    @declaring(**SINK_WORDS)
    def sink(
        self, name: str, query: DataFrame, sink: Sink, release: Release = "safe", trigger: Given = None
    ) -> None:
        """Sends what each epoch adds to the query's result, and removes from it, to a sink.

        `release="safe"` holds an epoch back until it survives every failure that the run is protected against; `"computed"` only until it
        can be computed again in just the same way. `guarantees()` says what that promises.

        `trigger="10 seconds"` gives the sink a pace of its own, whatever the pace of epochs: as in PySpark, it gets what has changed since
        it was last served as one, and what came and went meanwhile not at all. Sinks that show epochs apart (`ns.foreachEpoch`,
        `mode="changes"`) get them one after another then. A run that ends serves all.

        >>> flow.sink("out", purchases, ns.parquet("out", mode="append"), trigger="10 seconds")
        """
        self._check_name(name)
        check_output(name, query, sink, release)
        able = bound_sink(sink, release, pace_of(name, trigger))
        try:
            query = self._without_streams(name, query)
            self._compiler.sink(name, query, partial(check_fits, name, able))
        except (PySparkException, JavaError) as error:
            raise Invalid(f'sink "{name}": {words_of(error)}', hint="Correct the query.") from None
        self._functions |= dict.fromkeys(functions_in(query, self._compiler.catalyst), name)
        self._sinks[name] = able

    @declaring()
    def preview(self, query: DataFrame, rows: int = 20) -> DataFrame:
        """The first rows of a query, answered once by Spark over the first thousand rows that each source has now. Nothing is taken from
        the sources, nothing is kept. To see what a source or a query looks like before the flow runs.

        >>> flow.preview(purchases).show()
        +----+-----+
        |user|price|
        +----+-----+
        +----+-----+
        <BLANKLINE>
        """
        check_preview(query, rows)
        check_analyzed(analyzed(query), "preview")
        return Preview(self._compiler, self._given, self._queries).of(query).limit(rows)

    def listen(self, listener: Listener | Listening) -> None:
        """Tells a listener what runs of this flow do, from the next start on: an object with some of the methods `onStarted`, `onProgress`,
        `onIdle` and `onTerminated`, or a function. Each is given an `Event`; a slow one holds up no epoch.

        >>> flow.listen(lambda event: print(event.kind, event.epoch))
        """
        self._listeners.append(listening(listener))

    def guarantees(self) -> dict[str, Promise]:
        """What each sink's output promises after a failure, and why.

        >>> flow.sink("out", purchases, ns.parquet("out"))
        >>> flow.guarantees()["out"].guarantee
        'precise'
        """
        return self.program().promises()

    @checked(**EXPLAIN_WORDS)
    def explain(self, *, svg: str | Path | None = None, home: str | Path | None = None) -> None:
        """Prints the graph: sources, operators, views and sinks, what each keeps and why, what an epoch costs it. `svg` names a file for
        a drawing of it. `run.explain()` adds the figures.

        With a `home`, or the URL of a remote, it says what a start there would do instead: what keeps its state, what is new or has
        changed, and why. Nothing is started, and a run that goes on there is not disturbed.

        >>> flow.explain(svg="flow.svg")
        Flow "shop"
        <BLANKLINE>
        source purchases
           rows   rows are only added
        """
        if home is not None:
            print(compare(self.program(), open_home(home)))
            return
        picture = self.program().picture()
        print(in_words(picture))
        if svg is not None:
            write_drawing(svg, drawn(picture))

    @checked(**START_WORDS)
    def start(
        self,
        home: str | Path,
        shards: int | Literal["auto"] | None = None,
        trigger: Given = None,
        remote: str | None = None,
        recover_within: str | None = None,
        max_unshipped_bytes: int = LOG_STRUCTURED.most_unshipped_bytes,
        on_change: OnChange = "refuse",
        on_other_settings: OtherSettings = "refuse",
        keep: Keep | None = None,
        compaction: Knobs | None = None,
        standby: bool = False,
        quiet: bool = False,
        metrics_port: int | None = None,
    ) -> Run:
        """Starts the flow on a home folder. One that was used before goes on where it stopped; a run still going there is fenced.

        `shards` (default: one per core, or as many as the home has) may be another number with each start, and `run.rescale` changes it
        meanwhile; with "auto" it follows cores and load. `trigger="1 second"` is the least time between epochs; with
        `{"latency": "1 second"}` they are as rare as lets rows be seen in that time; `"availableNow"` ends the run once all that is there
        is done; PySpark's own forms will do too. `remote` ("s3://...", "file://...") also keeps a copy that survives the loss of the disk;
        `recover_within="5s"` says how soon a recovery from it shall be done. The stream waits only when more than `max_unshipped_bytes`
        have yet to go there. A home that has a remote is not started without, but for `remote=ns.NO_REMOTE`.

        `on_change` says what becomes of operators whose query is new or changed since the home was used: "refuse" to start and list them,
        "rebuild" them from the input of all epochs, or "discard" what they had. A static table with other rows changes whatever reads it.
        A view with more columns, which are computed from those that it had, is no such change: it is taken as it is, with its past.

        `keep` says as of which epochs state stays readable: "all", the last so many epochs (100), a duration ("7 days"), or a ladder, by
        age: {"10 minutes": "every epoch", "1 day": "1 minute", "30 days": "1 hour"}, which is what a new home begins with. Without it a
        home goes on with what it has. What was given up once does not come back. `compaction` says when old layers are put together, as in
        Kafka and Samza: {"segment size": "64 MiB", "segment age": "1 minute", "dirty ratio": 0.33}. It needs none, and changes no answer.

        `on_other_settings="accept"` goes on where something else has changed that answers depend on: Spark's settings of time zones, ANSI
        mode, parsing and the like, or the versions of Spark, Java and Python.

        `standby=True` comes back once no other run leads: it waits, ready, until that one stops or gives no sign of life for two seconds.
        Any number may wait, on any host that reaches the remote (without one: the home); one of them goes on.

        It logs to `nosync.<flow>`, shown at a terminal unless logging is set up or `quiet=True`. `metrics_port`: figures for Prometheus.

        >>> with flow.start("state/second", trigger="availableNow") as run:
        ...     run.awaitTermination()
        """
        if not self._sources:
            raise Invalid(f'flow "{self.name}" has no source', hint="Add one with flow.source(...).")
        scaling, number = scaling_of(shards)
        check_may_start(self.name, self._run)
        durability = durability_of(remote, recover_within, max_unshipped_bytes, standby)
        check_words(home, on_change, on_other_settings)
        check_no_cycle(self._sources, self._sinks, home)
        ladder, knobs = None if keep is None else ladder_of(keep), compaction_of(compaction)
        program = replace(self.program(), on_other_settings=on_other_settings, policy=durability.policy, keep=ladder, scaling=scaling)
        wanted = trigger_of(trigger)
        with IN_USE.by(self.name, self._given) as use, all_listeners(self.name, self._listeners, quiet, metrics_port) as listeners:
            program = replace(program, compaction=knobs, listeners=listeners)
            self._run = use.run = Run(program, Path(home).expanduser(), number, wanted, durability, on_change)
        return self._run

    def program(self) -> Program:
        """What has been declared so far, ready to run. It is its own: running it changes nothing here, nor declaring more there."""
        graph, sources = copied(self._compiler.graph), {name: source.guarded(name) for name, source in self._sources.items()}
        program = Program(self.name, self.spark, graph, sources, dict(self._functions), dict(self._sinks))
        return replace(program, queries=dict(self._queries), leaves=dict(self._compiler.leaves), formerly=self._formerly)

    def _check_name(self, name: str) -> None:
        check_free(self.name, name, {*self._frames, *self._sinks}, self._run is not None and self._run.isActive, self.spark)
