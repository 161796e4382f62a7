"""Errors of the JVM, in Python."""

from py4j.protocol import Py4JError, Py4JJavaError

JavaError = Py4JJavaError  # an exception was thrown in the JVM
BridgeError = Py4JError  # any failed call, also one that the JVM never got


def words_of(error: Exception) -> str:
    """The first line of Spark's message, without its plan and stack trace."""
    text = str(error.java_exception.getMessage()) if isinstance(error, JavaError) else str(error)
    return text.strip().splitlines()[0]


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
