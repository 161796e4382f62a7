"""PostgreSQL, through psycopg: connections, what their errors mean, and its types as Arrow's.

An address is a URI or a line of libpq ("host=... dbname=..."); it may hold a password, and is never shown.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from nosync.model.errors import Failed, Invalid, NosyncError, Unavailable
from nosync.model.extras import needed

if TYPE_CHECKING:
    from psycopg import Connection

# What the caller leaves open: a server that is silently gone is noticed within half a minute.
PATIENCE = {
    "connect_timeout": "10", "tcp_user_timeout": "30000", "keepalives": "1", "keepalives_idle": "10", "keepalives_interval": "5",
    "keepalives_count": "3", "application_name": "nosync",
}  # fmt: skip
SOON = ("starting up", "shutting down", "recovery mode", "too many", "remaining connection slots", "terminating connection")
AGAIN = "It is tried again."


def psycopg(what: str) -> Any:
    return needed("psycopg", "postgres", what)


def check_address(url: str, what: str) -> None:
    """Refuses what is no address before anything is asked of it."""
    library = psycopg(what)
    try:
        library.conninfo.conninfo_to_dict(url)
    except library.Error:
        hint = 'Pass "postgresql://user:password@host:5432/database", or what libpq reads: "host=... dbname=...".'
        raise Invalid(f"{what}: the address is not understood", hint) from None


def connected(url: str, what: str, **more: Any) -> "Connection[tuple[Any, ...]]":
    """A connection; `Unavailable` while nobody answers, `Invalid` where the server refuses for good."""
    library = psycopg(what)
    parts = library.conninfo.conninfo_to_dict(url)
    try:
        found: Connection[tuple[Any, ...]] = library.connect(**{**PATIENCE, **parts, **more})
    except library.OperationalError as error:
        words = f"{what}: {_first_line(error)}"
        if "FATAL" in str(error) and not any(word in str(error) for word in SOON):
            raise Invalid(words, hint="Correct the address, or the rights of its user.") from None
        raise Unavailable(words, hint=AGAIN) from None
    return found


@contextmanager
def talking(what: str, hint: str = "Correct it and start again.") -> Iterator[None]:
    """Around statements: `Unavailable` where the server or the connection failed, `Failed` where the statement did."""
    library = psycopg(what)
    try:
        yield
    except NosyncError:
        raise
    except (library.OperationalError, library.InterfaceError) as error:
        raise Unavailable(f"{what}: {_first_line(error)}", hint=AGAIN) from error
    except library.Error as error:
        raise Failed(f"{what}: {_first_line(error)}", hint=hint) from error


def _first_line(error: Exception) -> str:
    """What the server says; a refused connection says it once for each address that was tried."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def identifier(name: str) -> str:
    """A name in SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def table_name(name: str) -> tuple[str, str]:
    """Schema and table; "public" where there is none."""
    schema, dot, table = name.rpartition(".")
    return (schema, table) if dot else ("public", name)


def full_name(name: str) -> str:
    schema, table = table_name(name)
    return f"{identifier(schema)}.{identifier(table)}"


def shut(connection: "Connection[Any] | None") -> None:
    """Ends a connection, if there is one; it may be lost already."""
    if connection is not None:
        with suppress(Exception):
            connection.close()
