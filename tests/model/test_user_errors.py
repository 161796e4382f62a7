"""What a function of the user's raises is told in its own words, with its own lines."""

import traceback
from collections.abc import Callable

import pytest

from nosync.model.arguments import check_takes
from nosync.model.errors import Failed, Invalid, said_by, user_code

OF_THE_JVM = (
    "An error occurred while calling o5501.save.\n"
    ": org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: nope.\n"
    "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.dataSourceNotFoundError(QueryExecutionErrors.scala:727)"
)
WITHIN: dict[str, object] = {"__name__": "pyspark.sql.readwriter"}
exec(compile("def save(function):\n    function()", "site-packages/pyspark/sql/readwriter.py", "exec"), WITHIN)
save: Callable[[Callable[[], None]], None] = WITHIN["save"]  # type: ignore[assignment]


def fail() -> None:
    raise ConnectionError(OF_THE_JVM)


def test_an_error_of_the_jvm_is_what_it_says() -> None:
    assert said_by(ConnectionError(OF_THE_JVM)) == "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: nope."
    assert said_by(ValueError("bye\nmore")) == "ValueError: bye"
    assert said_by(KeyError()) == "KeyError: "


def test_only_the_lines_of_the_function_are_shown_and_nothing_of_java() -> None:
    with pytest.raises(Failed) as failed, user_code('sink "out" did not take epoch 1', "Correct it."):
        save(fail)
    assert failed.value.message == 'sink "out" did not take epoch 1: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: nope.'
    cause = failed.value.__cause__
    assert cause is not None
    printed = "".join(traceback.format_exception(cause))
    assert "in fail" in printed and "readwriter.py" not in printed and "\tat org." not in printed


def two(df: object, epoch: int) -> None: ...
def more(df: object, epoch: int, rest: int = 0) -> None: ...
def any_number(*given: object) -> None: ...


@pytest.mark.parametrize("function", [two, more, any_number, print, max])
def test_a_function_that_takes_what_it_is_given_is_taken(function: Callable[..., None]) -> None:
    check_takes("the function", function, "df", "epoch")


def test_a_function_that_takes_something_else_is_refused_by_its_name() -> None:
    with pytest.raises(Invalid, match="the function is called with df, which two does not take") as error:
        check_takes("the function", two, "df")
    assert error.value.hint == "Write def two(df)."
