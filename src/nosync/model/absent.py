"""What is answered where there is no such name, of the library or of one of its objects: the nearest one, or what there is in its place."""

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from types import FunctionType
from typing import Any, Literal, TypeVar

from nosync.model.arguments import checked, did_you_mean
from nosync.model.errors import Invalid
from nosync.model.secrets import redacted

Found = TypeVar("Found")

INSTEAD = {
    "kinesis": "There is no connector for Kinesis; write one of your own, a page of Python: docs/extending.md.",
    "socket": 'Pass a stream of Spark\'s: flow.source("lines", spark.readStream.format("socket").option(...).load()).',
    "spark": "The session is SparkSession.builder.getOrCreate(), or that of the flow: flow.spark.",
    "readStream": 'A source is flow.source("name", ns.files("in", ...)): see docs/from-structured-streaming.md.',
    "Stream": 'A flow is ns.Flow("name").',
    "Pipeline": 'A flow is ns.Flow("name").',
    "source": 'A source belongs to a flow: flow = ns.Flow("name"); flow.source("orders", ns.files("in")).',
    "view": 'A view belongs to a flow: flow.view("name", df).',
    "sink": 'A sink belongs to a flow: flow.sink("name", df, ns.parquet("out")).',
    "start": 'A flow is started: flow.start(home="state/name").',
    "trigger": 'Pass it to the start: flow.start(home, trigger="1 second").',
}
OF_RUN = 'A run has it: run = flow.start(home="state/name"), then run.{}.'
ROWS = 'The rows of a view are a DataFrame: run.view("name"), with show(), toPandas() and all of PySpark.'
TABLE = "It has the methods of a pyarrow Table: to_pandas(), to_pylist(), sort_by(...); print(view.to_pandas()) shows it."
OF_OBJECTS: Mapping[str, Mapping[str, str]] = {
    "Flow": {
        "run": 'It is started: run = flow.start(home="state/name").',
        **dict.fromkeys(("read", "readStream", "load"), 'A source is flow.source("name", ns.files("in")), or a stream of Spark\'s.'),
        **dict.fromkeys(("write", "writeStream", "to"), 'A sink is flow.sink("name", df, ns.parquet("out")).'),
        **dict.fromkeys(("config", "option", "options"), "Settings of Spark are its session's; those of a run are said to flow.start."),
        "table": 'flow.view("name", df) gives the DataFrame to build on; SQL sees all of them: flow.sql("select ...").',
        "views": "print(flow) lists them; flow.explain() says what each keeps.",
        "sources": "print(flow) lists them; flow.explain() says what each gives.",
        **{name: OF_RUN.format(f"{name}()") for name in ("stop", "awaitTermination", "processAllAvailable", "why", "history", "pin")},
        **{name: OF_RUN.format(name) for name in ("status", "lastProgress", "isActive", "epoch", "safe")},
        **dict.fromkeys(("show", "collect", "toPandas", "to_pandas"), ROWS),
    },
    "Run": {
        "views": "They are run.status.views; run.view(name) has the rows of one.",
        "sql": 'Make the views visible to Spark: run.view("name").createOrReplaceTempView("name"); or ask ns.open(home).sql("select ...").',
        **dict.fromkeys(("table", "query", "get", "read", "select"), 'Its rows are run.view("name").'),
        "tables": "They are run.status.views; run.view(name) has the rows of one.",
        "wait": "It is run.processAllAvailable(), or run.awaitTermination().",
        "join": "It is run.awaitTermination().",
        "start": "It is running: flow.start(...) gave it.",
        "home": "repr(run) names it; ns.open(home) reads it.",
        "source": "It is declared on the flow, before the start.",
        **dict.fromkeys(("show", "collect", "toPandas", "to_pandas"), ROWS),
    },
    "Home": {
        "start": 'A flow is started on it: ns.Flow("name")...start(home=...).',
        **dict.fromkeys(("table", "query", "get", "read", "select"), 'The rows of a view are home.view("name").'),
        "tables": "They are home.views; home.view(name) has the rows of one.",
        **dict.fromkeys(("show", "to_pandas", "toPandas", "collect"), 'The rows of a view are home.view("name"), with to_pandas().'),
    },
    "StoredView": dict.fromkeys(("show", "collect", "toPandas", "count", "orderBy", "createOrReplaceTempView"), TABLE),
}
INDEXED = {
    "Flow": 'Its DataFrames are what flow.source and flow.view returned; rows are those of a run: run.view("name").',
    "Run": 'The rows of a view are run.view("name").',
    "Home": 'The rows of a view are home.view("name"); home.views are their names.',
}
ENTERED = {
    "Flow": 'A run is what ends: with flow.start(home="state/name") as run: ...',
    "Home": 'It needs no end: home = ns.open("state/name").',
}
CALL = "What it can be told are arguments of its call; help(ns.{}) has them."
FRAME = 'It has rows as part of a flow: rows = flow.source("name", source); flow.preview(rows).show().'
FRAMES = ("show", "collect", "select", "where", "filter", "groupBy", "toPandas", "withColumn", "withWatermark", "createOrReplaceTempView")
ROWS_IN = "Rows go in by add([...]), a list of tuples or dicts."
SENT = 'It is part of a flow, and starts with it: flow.sink("name", df, sink); run = flow.start(home="state/name").'
OF_CONNECTORS: Mapping[str, str] = {
    **dict.fromkeys(("option", "options", "format", "schema", "mode", "partitionBy", "outputMode"), CALL),
    **dict.fromkeys((*FRAMES, "load"), FRAME),
    **dict.fromkeys(("append", "insert", "extend", "put", "push", "send", "addRows"), ROWS_IN),
    **dict.fromkeys(("save", "trigger", "awaitTermination", "stop"), SENT),
}
VERB = re.compile(r"^(add|create|register|new|make|get|define|declare)_?(?=\w)", re.IGNORECASE)


class NoSuchName(Invalid, AttributeError):
    """An `AttributeError` too, so that `hasattr` answers."""


def absent(name: str, known: Iterable[str]) -> NoSuchName:
    """Of the library."""
    names = sorted(known)
    hint = INSTEAD.get(name) or did_you_mean(name, names, "ns.{}") or f"There are: {', '.join(names)}."
    return NoSuchName(f'nosync has no "{name}"', hint=hint.strip())


def public(kind: type[Found]) -> type[Found]:
    """Decorates a class: each of its public methods is a checked call, and a public name that it lacks is answered. What the class says to
    be `WITHIN` is for other rooms of the library: no completion and no reference shows it.
    """
    for name, found in list(vars(kind).items()):
        if not name.startswith("_") and isinstance(found, FunctionType) and "__wrapped__" not in vars(found):
            setattr(kind, name, checked()(found))
    if "__getattr__" not in vars(kind):
        setattr(kind, "__getattr__", _missing)  # noqa: B010 (a method is not assigned to)
    specials = {"__getitem__": (INDEXED, _unindexed), "__enter__": (ENTERED, _unentered), "__exit__": (ENTERED, _unentered)}
    for special, (table, answer) in specials.items():
        if kind.__name__ in table and special not in vars(kind):
            setattr(kind, special, answer)
    setattr(kind, "__dir__", lambda self: [*names_of(kind), *(name for name in vars(self) if name not in within(kind))])  # noqa: B010
    return kind


def within(kind: type) -> tuple[str, ...]:
    """What only looks public."""
    return ("WITHIN", *vars(kind).get("WITHIN", ()))


def names_of(kind: type) -> list[str]:
    """What a class has, for whoever asks for its names."""
    return [name for name in dir(kind) if name not in within(kind)]


def missing_from(kind: type, name: str) -> NoSuchName:
    """Of an object. Underscores and capitals are of no account, nor is a verb in front."""
    names = sorted(one for one in names_of(kind) if not one.startswith("_"))
    called = kind.__name__.removeprefix("Stored").lower()
    instead = {_plain(known): words for known, words in OF_OBJECTS.get(kind.__name__, {}).items()}
    meant = next((one for one in names if _plain(one) in (_plain(name), _plain(VERB.sub("", name)))), None)
    near = f"Did you mean {called}.{meant}?" if meant else did_you_mean(name, names, f"{called}.{{}}")
    hint = instead.get(_plain(name)) or near or f"It has: {', '.join(names)}."
    return NoSuchName(f'a {called} has no "{name}"', hint=hint.strip())


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def connector(noun: Literal["source", "sink"], call: str = "") -> Callable[[type[Found]], type[Found]]:
    """Decorates the class of what a call such as `ns.files` gives, a source or a sink: a public name that it lacks is answered, and it
    introduces itself in notebooks. Without `call`, its `repr` says which call that was.
    """

    def missing(self: Any, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        called = call or repr(self).partition("(")[0].removeprefix("ns.")
        hint = OF_CONNECTORS.get(name, CALL).format(called)
        raise NoSuchName(f'a {noun} of ns.{called} has no "{name}"', hint=hint)

    def decorate(kind: type[Found]) -> type[Found]:
        setattr(kind, "__getattr__", missing)  # noqa: B010 (a method is not assigned to)
        setattr(kind, "_repr_html_", _html_of_source if noun == "source" else _html_of_sink)  # noqa: B010
        return kind

    return decorate


def _html_of_source(self: Any) -> str:
    rows = "are only added" if self.append_only else "may go as well as come"
    return f"<p>{escape(redacted(repr(self)))}</p><p>source: rows {rows}</p>"


def _html_of_sink(self: Any) -> str:
    return f"<p>{escape(redacted(repr(self)))}</p><p>sink, {self.promise._repr_html_()}</p>"


def _unindexed(self: Any, key: Any) -> Any:
    called = type(self).__name__.lower()
    raise Invalid(f"a {called} is not asked by {called}[{key!r}]", hint=INDEXED[type(self).__name__])


def _unentered(self: Any, *_: Any) -> Any:
    raise Invalid(f"a {type(self).__name__.lower()} is nothing to begin and to end", hint=ENTERED[type(self).__name__])


def _missing(self: Any, name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    raise missing_from(type(self), name)
