"""What is answered where there is no such name, of the library or of one of its objects: the nearest one, or what there is in its place."""

from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any, TypeVar

from nosync.model.arguments import checked, did_you_mean
from nosync.model.errors import Invalid

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
        "read": 'A source is flow.source("name", ns.files("in")).',
        "readStream": 'A source is flow.source("name", ns.files("in")), or a stream of Spark\'s.',
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
        "table": 'Its rows are run.view("name").',
        "query": 'Its rows are run.view("name").',
        "wait": "It is run.processAllAvailable(), or run.awaitTermination().",
        "join": "It is run.awaitTermination().",
        "start": "It is running: flow.start(...) gave it.",
        "home": "repr(run) names it; ns.open(home) reads it.",
        "source": "It is declared on the flow, before the start.",
        **dict.fromkeys(("show", "collect", "toPandas", "to_pandas"), ROWS),
    },
    "Home": {
        "start": 'A flow is started on it: ns.Flow("name")...start(home=...).',
        "table": 'The rows of a view are home.view("name").',
        **dict.fromkeys(("show", "to_pandas", "toPandas", "collect"), 'The rows of a view are home.view("name"), with to_pandas().'),
    },
    "StoredView": dict.fromkeys(("show", "collect", "toPandas", "count", "orderBy", "createOrReplaceTempView"), TABLE),
}


class NoSuchName(Invalid, AttributeError):
    """An `AttributeError` too, so that `hasattr` answers."""


def absent(name: str, known: Iterable[str]) -> NoSuchName:
    """Of the library."""
    names = sorted(known)
    hint = INSTEAD.get(name) or did_you_mean(name, names, "ns.{}") or f"There are: {', '.join(names)}."
    return NoSuchName(f'nosync has no "{name}"', hint=hint.strip())


def public(kind: type[Found]) -> type[Found]:
    """Decorates a class: each of its public methods is a checked call, and a public name that it lacks is answered."""
    for name, found in list(vars(kind).items()):
        if not name.startswith("_") and isinstance(found, FunctionType) and "__wrapped__" not in vars(found):
            setattr(kind, name, checked()(found))
    if "__getattr__" not in vars(kind):
        setattr(kind, "__getattr__", _missing)  # noqa: B010 (a method is not assigned to)
    return kind


def missing_from(kind: type, name: str) -> NoSuchName:
    """Of an object."""
    names = sorted(one for one in dir(kind) if not one.startswith("_"))
    called = kind.__name__.removeprefix("Stored").lower()
    hint = OF_OBJECTS.get(kind.__name__, {}).get(name) or did_you_mean(name, names, f"{called}.{{}}") or f"It has: {', '.join(names)}."
    return NoSuchName(f'a {called} has no "{name}"', hint=hint.strip())


def _missing(self: Any, name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    raise missing_from(type(self), name)
