"""Errors of the JVM, in Python."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.logger import PySparkLogger

CODES = re.compile(r" SQLSTATE: \w{5}|; line 1 pos \d+;?$")
LOGGERS = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]  # PySpark's own
JavaError = Py4JJavaError  # an exception was thrown in the JVM
BridgeError = Py4JError  # any failed call, also one that the JVM never got


def words_of(error: Exception) -> str:
    """The first line of Spark's message, without its plan and stack trace, and without the codes of the SQL standard."""
    text = str(error.java_exception.getMessage()) if isinstance(error, JavaError) else str(error)
    return CODES.sub("", text.strip().splitlines()[0]).rstrip("; ")


@contextmanager
def no_traces_logged() -> Iterator[None]:
    """PySpark also logs what it raises, with all of the JVM's stack: not for errors that we say in one line."""
    before = {logger: logger.level for logger in LOGGERS}
    try:
        silence()
        yield
    finally:
        for logger, level in before.items():
            logger.setLevel(level)


def silence() -> None:
    """For good: in a session of ours."""
    for logger in LOGGERS:
        logger.setLevel(logging.CRITICAL + 1)


def root_message(error: Exception) -> str:
    """The message of the innermost cause that says something."""
    if not isinstance(error, JavaError):
        return str(error)
    cause = error.java_exception
    text = str(cause.getMessage() or cause.toString())
    while cause.getCause() is not None:
        cause = cause.getCause()
        text = str(cause.getMessage() or cause.toString()) or text
    return text


def all_messages(error: Exception) -> list[str]:
    """The messages of an error and of all its causes, from the outside in."""
    if not isinstance(error, JavaError):
        return [str(error)]
    found, cause = [], error.java_exception
    while cause is not None:
        found.append(str(cause.getMessage() or cause.toString()))
        cause = cause.getCause()
    return found
