"""Whether what `flow.source` and `flow.sink` are given is a source or a sink: found out when it is declared, not in its first epoch.

Any object with the right methods will do, so attributes that happen to have the name of one are the likely mistake. Pure.
"""

import re
from collections.abc import Iterable, Sequence
from inspect import isroutine
from os import PathLike
from typing import Any, get_args

from nosync.model.columns import DIFF, EPOCH
from nosync.model.errors import Invalid, Refused
from nosync.model.sink import Fencing, Guarantee, Promise
from nosync.model.source import ABILITIES

READERS = {
    "DataStreamReader": 'Call its load(): spark.readStream.format("rate").load().',
    "DataFrameReader": 'Pass ns.files("in", format="csv", schema="..."): files that come are read, each once.',
}
OF_ANOTHER_FLOW = 'What another flow has, it hands on by a sink: ns.parquet("out", mode="append") there, ns.files("out") here.'
READ_OTHERWISE = {
    "Flow": "A flow is no input of a flow. " + OF_ANOTHER_FLOW,
    "Run": OF_ANOTHER_FLOW,
    "Home": OF_ANOTHER_FLOW,
    "StoredView": OF_ANOTHER_FLOW,
    "Postgres": 'Pass one of its tables: db = ns.postgres(url, ["orders"]); flow.source("orders", db["orders"]).',
}
STATEMENT = re.compile(r"\s*(select|with|create)\s", re.IGNORECASE)
SEE = "docs/extending.md shows a whole one."


def check_source(name: str, source: Any) -> None:
    """Before `declare` is called."""
    if isinstance(source, str) and STATEMENT.match(source):
        raise Invalid(f'source "{name}" is a statement, not a source', hint='Queries come after sources: flow.sql("select ...").')
    if isinstance(source, str | PathLike):
        raise Invalid(f'source "{name}" is {str(source)!r}, a path and not a source', hint=f'Pass ns.files("{source}", format="...").')
    if type(source).__name__ == "DataFrame":
        hint = "Tables that stay as they are need no source: use the DataFrame in queries. What grows is read by ns.files and its like."
        raise Invalid(f'source "{name}" is a {_library(source)}DataFrame, which has no declare()', hint=hint)
    if type(source).__name__ in READ_OTHERWISE and _library(source) == "nosync ":
        words = f'source "{name}" is a {type(source).__name__}, which has no declare()'
        raise Invalid(words, hint=READ_OTHERWISE[type(source).__name__])
    if type(source).__name__ in READERS:
        hint = READERS[type(source).__name__]
        raise Invalid(f'source "{name}" is a {type(source).__name__}, which has yet to load something', hint=hint)
    if isinstance(source, list | tuple | dict):
        hint = 'Rows of the program go through ns.memory("user string, ..."): its add(rows).'
        raise Invalid(f'source "{name}" is a {type(source).__name__} of rows, not a source', hint=hint)
    _check_called(f'source "{name}"', source)
    if callable(_attribute(f'source "{name}"', source, "deliver")):
        hint = f'Pass it to flow.sink("{name}", df, ...).'
        raise Invalid(f'source "{name}" is a sink ({type(source).__name__}), not a source', hint=hint)
    if source is None:
        hint = 'Pass a source: ns.files("in"), ns.memory("user string"), ns.rate().'
        raise Invalid(f'source "{name}" is a NoneType, which has no declare()', hint=hint)
    _check_object(f'source "{name}"', source, ("declare", "start", "available", "read"), "append_only")


def check_schema(name: str, columns: Sequence[str]) -> None:
    """What `declare` gave: a query knows columns by their names, whatever their case, and the flow has names of its own."""
    met = set[str]()
    for column in columns:
        if column.lower() in met:
            raise Invalid(f'source "{name}": its schema has the column "{column}" twice', hint="Give each column a name of its own.")
        if column == DIFF:
            raise Invalid(f'source "{name}": its schema has the column "{column}"', hint="This name is taken here: choose another.")
        met.add(column.lower())


def check_abilities(name: str, source: Any, columns: Sequence[str] = ()) -> None:
    """After it: each column has a name of its own, and what a source has besides is a method, or None for nothing."""
    check_schema(name, columns)
    owner = f'source "{name}"'
    append_only = _attribute(owner, source, "append_only")
    if not isinstance(append_only, bool):
        raise Invalid(f"{owner}: append_only is {append_only!r}", hint="Say True where rows are only ever added, else False.")
    for ability in (ability for protocol in ABILITIES for ability in vars(protocol) if not ability.startswith("_")):
        found = _attribute(owner, source, ability)
        if found is not None and not callable(found):
            words = f'{owner} has an attribute "{ability}", a {type(found).__name__}: the name is that of a method'
            raise Invalid(words, hint=f"Give the attribute another name, such as _{ability}: {ability}(...) is an ability of sources.")


def check_sink(name: str, sink: Any) -> None:
    owner = f'sink "{name}"'
    if isinstance(sink, str | PathLike):
        raise Invalid(f"{owner} is {str(sink)!r}, a path and not a sink", hint=f'Pass ns.parquet("{sink}"), ns.json(...) or ns.csv(...).')
    _check_called(owner, sink)
    if isroutine(sink):
        hint = "Pass ns.foreachBatch(function), or ns.foreachEpoch(function)."
        raise Invalid(f"{owner} is the function {sink.__name__}, not a sink", hint=hint)
    if callable(_attribute(owner, sink, "available")):
        raise Invalid(f"{owner} is a source ({type(sink).__name__}), not a sink", hint=f'Pass it to flow.source("{name}", ...).')
    _check_object(owner, sink, ("open", "deliver", "close"), "promise")
    promise = _attribute(owner, sink, "promise")
    if not isinstance(promise, Promise):
        raise Invalid(f"{owner}: promise is {promise!r}", hint='Say promise = ns.Promise("repeating", "why"), or what it can promise.')
    for word, known in ((promise.guarantee, get_args(Guarantee)), (promise.fencing, get_args(Fencing))):
        if word not in known:
            raise Invalid(f'{owner} promises "{word}"', hint=f"It is one of {', '.join(known)}.")


def check_columns(name: str, columns: Sequence[str]) -> None:
    """What leaves the flow is known by the names of its columns: files, tables and messages have each name once."""
    met = set[str]()
    for column in (*columns, EPOCH, DIFF):
        if column.lower() in met:
            hint = "Give each column a name of its own: select a.k, b.k as other, ...; _epoch and _diff are added to them."
            raise Refused(f'sink "{name}" would have the column "{column}" twice', hint=hint)
        met.add(column.lower())


def _check_called(owner: str, given: Any) -> None:
    """`ns.rate` in place of `ns.rate()`."""
    if isroutine(given) and str(given.__module__).startswith("nosync."):
        raise Invalid(f"{owner} is the function ns.{given.__name__} itself", hint=f"Call it: ns.{given.__name__}(...).")


def _check_object(owner: str, given: Any, methods: Iterable[str], value: str) -> None:
    if isinstance(given, type):
        raise Invalid(f"{owner} is the class {given.__name__}", hint=f"Pass an object of it: {given.__name__}(...).")
    missing = [f"{method}()" for method in methods if not callable(_attribute(owner, given, method))]
    missing += [value] if _attribute(owner, given, value) is None else []
    if missing:
        raise Invalid(f"{owner} is a {type(given).__name__}, which has no {', '.join(missing)}", hint=SEE)


def _library(given: Any) -> str:
    """To be put before a name that several have."""
    found = type(given).__module__.partition(".")[0]
    return f"{found} " if found in ("pandas", "polars", "nosync") else ""


def _attribute(owner: str, given: Any, name: str) -> Any:
    try:
        return getattr(given, name, None)
    except Exception as error:
        words = f'{owner}: asking its {type(given).__name__} for "{name}" failed: {type(error).__name__}: {error}'
        raise Invalid(words, hint="It must answer as soon as it is declared.") from error
