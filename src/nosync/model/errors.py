"""What can go wrong, by what the reader does next.

Every error names the object and quotes the user's text in one factual line; the hint is a full sentence to act on.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

from nosync.model.secrets import redacted

LONGEST = 1000  # characters of a message that quotes what was read
INSTALLED = ("site-packages", "dist-packages")  # frames there say nothing to whoever wrote a function that failed


class NosyncError(Exception):
    """Base of all errors of this library. `str()` gives the message and, on a line of its own, the hint; neither has passwords or keys."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(redacted(message))
        self.message = redacted(message)
        self.hint = redacted(hint)

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class Invalid(NosyncError):
    """Correct the request."""


class Refused(Invalid):
    """A piece of a query that cannot be maintained; the hint names a way out."""


class NotInHistory(Invalid):
    """The epoch asked for is not kept."""


class Conflict(NosyncError):
    """Somebody else is using the same thing: refresh and retry."""


class Unreadable(Conflict):
    """Recorded input is not there any more as it was. `files` names those that could not be read, with the reason: an epoch that was not
    computed yet goes on without them."""

    def __init__(self, message: str, hint: str = "", files: Mapping[str, str] | None = None) -> None:
        super().__init__(message, hint)
        self.files = dict(files or {})


class Fenced(NosyncError):
    """A newer run took over: stop this process."""


class Unavailable(NosyncError):
    """Retry; nothing was written."""


class OutcomeUnknown(NosyncError):
    """Read back first: it may or may not have happened."""


class Corrupt(NosyncError):
    """Bytes are missing or changed: recover from another tier."""


class Failed(NosyncError):
    """The user's own function or expression failed on the data: correct the program and start again."""


class Internal(NosyncError):
    """A broken promise of this library: report a bug."""


# What a duty behind the stream knows how to go on from, or to end with.
HANDLED: tuple[type[NosyncError], ...] = (Unavailable, OutcomeUnknown, Corrupt, Fenced, Failed)

# What taking bytes apart can run into when they are not what they should be.
MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, NotImplementedError, RecursionError, TypeError, ValueError)


@contextmanager
def reading(what: str, hint: str) -> Iterator[None]:
    """Around whatever takes apart bytes that somebody else may have written: what it trips over is `Corrupt`, and says of what."""
    try:
        yield
    except NosyncError:
        raise
    except MALFORMED as error:
        words = str(error).partition("\n")[0]
        raise Corrupt(f"{what} is not readable: {type(error).__name__}: {words}"[:LONGEST], hint) from error


@contextmanager
def user_code(what: str, hint: str, passed: tuple[type[NosyncError], ...] = (NosyncError,)) -> Iterator[None]:
    """Around every call of somebody's source or sink. What it raises, `SystemExit` too, is an error of theirs (`Failed`) that says what was
    called; errors that are `passed` mean the same whoever raises them. On the main thread, whoever wants the process to end has their way.
    """
    try:
        yield
    except passed:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
            raise
        if isinstance(error, NosyncError):
            raise Failed(f"{what}: {error.message}", hint=error.hint or hint) from error
        raise Failed(f"{what}: {said_by(error)}", hint=hint) from _of_their_own(error)


def said_by(error: BaseException) -> str:
    """Its kind and its first line; of an error of the JVM, what that says, not which call it came out of."""
    lines = str(error).splitlines() or [""]
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        return lines[1].removeprefix(": ").partition("Exception: ")[2] or lines[1].removeprefix(": ")
    return f"{type(error).__name__}: {lines[0]}"


def _of_their_own(error: BaseException) -> BaseException:
    """The error with the frames of their functions alone, if there are any, and without the stack of the JVM."""
    cause = error if said_by(error).startswith(type(error).__name__) else RuntimeError(said_by(error))
    found, step = [], error.__traceback__
    while step is not None:
        file, module = step.tb_frame.f_code.co_filename, str(step.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] != "nosync" and not any(folder in file for folder in INSTALLED):
            found.append(step)
        step = step.tb_next
    trace = None
    for step in reversed(found):
        trace = TracebackType(trace, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return cause.with_traceback(trace or error.__traceback__)


def unexpected(where: str, error: BaseException) -> NosyncError:
    """What ends a thread of ours although nobody foresaw it: a bug, or a function of the program that wants the process to end."""
    failure: NosyncError
    if isinstance(error, Exception):
        failure = Internal(f"{where}: {type(error).__name__}: {error}", hint="This is a bug of nosync: please report it.")
    else:
        hint = "A function of the program ended its thread by it: raise another error there, or call run.stop()."
        failure = Failed(f"{where}: {type(error).__name__}: {error}", hint=hint)
    failure.__cause__ = error
    return failure
