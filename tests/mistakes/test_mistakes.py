"""What people get wrong in their first hours, call by call: what they are told, and that it is neither Spark's Java nor our insides.

`mistakes.txt` has three lines for each: the call, the first line of the error, and its hint. "..." at an end stands for more words.
`python -m tests.mistakes FILE` writes what is said now, to be read and compared.
"""

import logging
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.bridge.errors import LOGGERS
from nosync.model.absent import INSTEAD
from tests.mistakes.world import world

TABLE = (Path(__file__).parent / "mistakes.txt").read_text()
MISTAKES = [tuple(block.split("\n")) for block in re.sub(r"^#.*\n+", "", TABLE, flags=re.MULTILINE).strip().split("\n\n")]
INSIDE = re.compile(r"Traceback|Py4J|\bjava\.|\bat org\.|0x[0-9a-f]{6}")


@pytest.fixture(scope="module")
def names(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("mistakes")
    with world(spark, folder) as found:
        yield found | {"TMP": folder}


@pytest.fixture
def traces() -> Iterator[list[logging.LogRecord]]:
    """What PySpark logs of errors in the JVM, with all of Java's stack."""
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = found.append  # type: ignore[method-assign]
    for logger in LOGGERS:
        logger.addHandler(handler)
    yield found
    for logger in LOGGERS:
        logger.removeHandler(handler)


def shown(call: str, names: dict[str, Any]) -> tuple[str, str, str]:
    """First line, hint, and all that Python would print."""
    try:
        eval(call, dict(names))
    except ns.NosyncError as error:
        said = [text.replace(str(names["TMP"]), "TMP") for text in (error.message, error.hint)]
        return re.sub(r"#\d+", "#", said[0]), said[1], "".join(traceback.format_exception(error))
    raise AssertionError(f"nothing was wrong with {call}")


def as_far_as(known: str, said: str) -> str:
    """What was said, with "..." in place of what follows where the table has that."""
    begun = known.removesuffix("...")
    return f"{said[: len(begun)]}..." if known.endswith("...") else said


def test_nothing_that_there_is_is_said_to_be_absent() -> None:
    assert set(INSTEAD) & set(ns.__all__) == set()


def test_there_are_many_and_each_is_there_once() -> None:
    assert len(MISTAKES) >= 150 and len({call for call, *_ in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
def test_a_mistake_is_answered(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch, traces: list[logging.LogRecord], mistake: tuple[str, str, str]
) -> None:
    monkeypatch.chdir(names["TMP"])
    call, first, hint = mistake
    message, way_out, printed = shown(call, names)
    assert not traces
    assert (as_far_as(first, message.splitlines()[0]), as_far_as(hint, way_out)) == (first, hint)
    assert not INSIDE.search(message + way_out)
    assert len(printed.splitlines()) < 20, printed


def test_nothing_was_left_behind_by_all_of_them(names: dict[str, Any]) -> None:
    assert sorted(path.name for path in names["TMP"].iterdir()) == ["empty", "file", "in", "run_home", "stopped"]
    assert [*names["flow"]._frames] == ["s", "v"]
