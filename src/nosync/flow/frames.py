"""What is given in place of a DataFrame, and what to pass then."""

from collections.abc import Callable
from inspect import isroutine
from types import ModuleType
from typing import Any

from pyspark.sql import DataFrame

from nosync.model.errors import Invalid

INSTEAD: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda given: _is(given, "pandas", "polars", "pyarrow"), "Make it one of Spark's, as it is now: flow.spark.createDataFrame(df)."),
    (lambda given: type(given).__name__ == "Column", "Name the rows it is of: df.select(column)."),
    (lambda given: type(given).__name__ == "GroupedData", 'Say what is wanted of each group: .agg(F.count("*")), .count() or the like.'),
    (isroutine, "Call it, and pass what it returns."),
    (lambda given: type(given).__module__.startswith("nosync.sources."), 'Declare it first: flow.source("name", source) gives a frame.'),
)


def check_frame(owner: str, given: Any, otherwise: str, verb: str = "is") -> None:
    """`Invalid` unless it is a DataFrame of Spark's."""
    if isinstance(given, DataFrame):
        return
    way_out = next((hint for fits, hint in INSTEAD if not isinstance(given, str | ModuleType) and fits(given)), otherwise)
    raise Invalid(f"{owner} {verb} {kind_of(given)}, not a DataFrame{' of Spark' if _is(given, 'pandas') else ''}", hint=way_out)


def kind_of(given: Any) -> str:
    """With the library it is of, where that says something."""
    library = next((f"{name} " for name in ("pandas", "polars", "pyarrow") if _is(given, name)), "")
    return f"a {library}{type(given).__name__}"


def _is(given: Any, *libraries: str) -> bool:
    return type(given).__module__.partition(".")[0] in libraries
