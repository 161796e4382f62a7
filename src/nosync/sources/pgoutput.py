"""PostgreSQL's logical decoding: the messages of pgoutput, protocol version 1, as the server's SQL functions give them. Pure.

A transaction comes whole, after its commit: begin, changes, commit. Tables are described before their first change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nosync.model.errors import Failed

KEPT = object()  # a large value that an update did not touch: it is not in the log
Table = tuple[str, str]
"""Schema and name."""
Described = tuple[str, int, int]
"""A column: its name, the number of its type, and the modifier of that."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """What happened to a row: `removed` and `added` are values by column; of what is removed maybe only those of the key."""

    table: Table
    removed: dict[str, str | None] | None
    added: dict[str, str | None] | None


@dataclass(frozen=True, slots=True)
class Transaction:
    """`end`: the position behind its commit."""

    end: int
    changes: tuple[RowChange, ...]


@dataclass
class Decoder:
    """Takes messages in their order. `tables` are those to follow; `columns` what they had when they last changed."""

    tables: frozenset[Table]
    columns: dict[Table, tuple[Described, ...]] = field(default_factory=dict)
    _relations: dict[int, tuple[Table, tuple[str, ...], tuple[bool, ...]]] = field(default_factory=dict)
    _changes: list[RowChange] = field(default_factory=list)

    def transactions(self, messages: Iterable[bytes]) -> list[Transaction]:
        found = []
        for message in messages:
            end = self._take(Reader(message))
            if end is not None:
                found.append(Transaction(end, tuple(self._changes)))
                self._changes = []
        return found

    def _take(self, message: "Reader") -> int | None:
        match message.text(1):
            case "B":
                self._changes = []
            case "C":
                message.skip(1 + 8)
                return message.number(8)
            case "R":
                self._relation(message)
            case "I" | "U" | "D":
                self._row(message)
            case "T":
                self._truncated(message)
        return None

    def _relation(self, message: "Reader") -> None:
        number, table = message.number(4), (message.name(), message.name())
        message.skip(1)
        described, keys = list[Described](), list[bool]()
        for _ in range(message.number(2)):
            keys.append(bool(message.number(1)))
            described.append((message.name(), message.number(4), message.number(4)))
        self._relations[number] = (table, tuple(name for name, _, _ in described), tuple(keys))
        if table in self.tables:
            self.columns[table] = tuple(described)

    def _row(self, message: "Reader") -> None:
        table, names, keys = self._relations[message.number(4)]
        if table not in self.tables:
            return
        old: dict[str, str | None] | None = None
        new: dict[str, object] | None = None
        while (what := message.text(1)) != "":
            values = message.values()
            if what == "N":
                new = dict(zip(names, values, strict=True))
            else:
                wanted = [what == "O" or key for key in keys]
                old = {name: value for name, value, there in zip(names, values, wanted, strict=True) if there}  # type: ignore[misc]
        self._changes.append(RowChange(table, old, None if new is None else _whole(table, new, old)))

    def _truncated(self, message: "Reader") -> None:
        count = message.number(4)
        message.skip(1)
        for _ in range(count):
            table = self._relations[message.number(4)][0]
            if table in self.tables:
                hint = "Delete rows instead. To begin anew: start on a new home, with another slot."
                raise Failed(f'table "{".".join(table)}" was truncated: which rows went is not in the log of changes', hint=hint)


def _whole(table: Table, new: dict[str, object], old: dict[str, str | None] | None) -> dict[str, str | None]:
    """The row after an update: large values that it did not touch are those of the row before, where the log has that."""
    found: dict[str, str | None] = {}
    for name, value in new.items():
        if value is KEPT and (old is None or name not in old):
            hint = f"alter table {'.'.join(table)} replica identity full, before the flow begins on a new home, with another slot."
            raise Failed(f'table "{".".join(table)}": an update left the large value of "{name}" out of the log', hint=hint)
        found[name] = old[name] if value is KEPT and old is not None else value  # type: ignore[assignment]
    return found


@dataclass
class Reader:
    """Reads a message from its front."""

    content: bytes
    place: int = 0

    def skip(self, count: int) -> None:
        self.place += count

    def number(self, size: int) -> int:
        self.place += size
        return int.from_bytes(self.content[self.place - size : self.place], "big")

    def text(self, size: int) -> str:
        self.place += size
        return self.content[self.place - size : self.place].decode()

    def name(self) -> str:
        end = self.content.index(b"\0", self.place)
        found, self.place = self.content[self.place : end].decode(), end + 1
        return found

    def values(self) -> Sequence[object]:
        found: list[object] = []
        for _ in range(self.number(2)):
            match self.text(1):
                case "n":
                    found.append(None)
                case "u":
                    found.append(KEPT)
                case _:
                    found.append(self.text(self.number(4)))
        return found


def position(text: str) -> int:
    """A position in the log as a number."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def spelled(place: int) -> str:
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"
