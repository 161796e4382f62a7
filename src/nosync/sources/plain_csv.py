"""Lines of CSV as Arrow reads them, wherever that is to the letter what Spark makes of them.

A piece of text is *odd* that has anything in it which one of the two reads in a way of its own: quotes, blanks beside a value, hexadecimal
numbers, infinities, times of day that a zone left out. Odd lines go to Spark's parser as they are; so do lines that Arrow refuses, of which
some are good to Spark and the others are rejects.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as t

BOM = b"\xef\xbb\xbf"
LINE_ENDS = re.compile(rb"\r\n|\r|\n")
BLANK_LINE = re.compile(rb"(?:^|\n) +\r?(?:\n|$)")
WHITE = bytes(range(33))  # what Java trims
BLANK, NEW_LINE = ord(" "), ord("\n")
# Java and Arrow may know different rules of zones for other years.
BEGINNING, END = datetime(1970, 1, 1, tzinfo=UTC), datetime(2037, 1, 1, tzinfo=UTC)
LOCAL = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")


def is_known(type: pa.DataType) -> bool:
    """Whether values of a column can be plain."""
    return t.is_signed_integer(type) or t.is_floating(type) or t.is_boolean(type) or t.is_string(type) or t.is_date32(type) or (
        t.is_decimal128(type) or type in (LOCAL, INSTANT)
    )  # fmt: skip


@dataclass(frozen=True)
class PlainCsv:
    """How the lines look: types of columns, what separates them, whether files begin with their names, and where the clocks stand.

    A piece of `smallest` bytes is not cut into halves any more, to part plain lines from odd ones.
    """

    types: tuple[pa.DataType, ...]
    separator: str
    header: bool
    zone: str
    smallest: int = 16 << 10

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(f"c{i}", type) for i, type in enumerate(self.types)])

    def table(self, content: bytes) -> pa.Table | None:
        """A whole file; None if any of it is odd."""
        content = self.beginning(content)
        batch = self.batch(content)
        return None if batch is None else pa.Table.from_batches([batch])

    def beginning(self, content: bytes) -> bytes:
        """The beginning of a file without what is no data."""
        content = content.removeprefix(BOM)
        while self.header and content:
            end = LINE_ENDS.search(content)
            first, content = (content, b"") if end is None else (content[: end.start()], content[end.end() :])
            if first.strip(WHITE):
                break
        return content

    def parts(self, content: bytes) -> Iterator[pa.RecordBatch | list[bytes]]:
        """Whole lines, as rows where they are plain."""
        found = self.batch(content)
        if found is not None:
            yield found
            return
        middle = content.find(b"\n", len(content) // 2) + 1
        if len(content) <= self.smallest or middle in (0, len(content)):
            yield lines(content)
            return
        yield from self.parts(content[:middle])
        yield from self.parts(content[middle:])

    def batch(self, content: bytes) -> pa.RecordBatch | None:
        """Whole lines as rows; None if any of them is odd."""
        if not content.strip(WHITE):
            return pa.RecordBatch.from_pylist([], self.schema)
        if self._is_odd(content):
            return None
        try:
            table = self._read(content)
            columns = [self._checked(column.combine_chunks(), type) for column, type in zip(table.columns, self.types, strict=True)]
        except pa.ArrowException:
            return None
        if any(column is None for column in columns):
            return None
        return pa.RecordBatch.from_arrays([c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns], schema=self.schema)

    def _read(self, content: bytes) -> pa.Table:
        kinds = {f"c{i}": LOCAL if type == INSTANT else type for i, type in enumerate(self.types)}
        return pyarrow.csv.read_csv(
            pa.BufferReader(content),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=max(len(content), 1 << 10), column_names=list(kinds)),
            pyarrow.csv.ParseOptions(delimiter=self.separator, quote_char=False, ignore_empty_lines=True),
            pyarrow.csv.ConvertOptions(
                column_types=kinds, null_values=[""], strings_can_be_null=True, true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"], timestamp_parsers=[pyarrow.csv.ISO8601],
            ),
        )  # fmt: skip

    def _is_odd(self, content: bytes) -> bool:
        separator = self.separator.encode()
        codes = np.frombuffer(content, np.uint8)
        returns, tabs = content.count(b"\r"), content.count(b"\t") if separator == b"\t" else 0
        control = int(np.count_nonzero(codes < 0x20)) - content.count(b"\n") - returns - tabs
        if control or (returns and returns != content.count(b"\r\n")) or b'"' in content or b"\\" in content or content.startswith(BOM):
            return True
        if tabs and _stands_after(codes, ord(separator), NEW_LINE):
            return True  # it may be a line of blanks, which is no row
        if all(t.is_string(type) for type in self.types):
            return len(self.types) == 1 and b" " in content and BLANK_LINE.search(content) is not None
        if any(t.is_integer(type) for type in self.types) and any(_stands_after(codes, ord(x), ord("0")) for x in "xX"):
            return True
        beside = (ord(separator), NEW_LINE, ord("\r"))
        return b" " in content and (_stands_after(codes, BLANK, *beside) or _stands_after(codes[::-1], BLANK, *beside))

    def _checked(self, column: pa.Array, type: pa.DataType) -> pa.Array | None:
        """The column, if its values are what Spark would read; times as instants."""
        column.validate(full=True)  # texts that are no UTF-8, decimals with too many digits
        if t.is_floating(type):
            return column if pc.all(pc.is_finite(column)).as_py() is not False else None
        return instants(column, self.zone) if type == INSTANT else column


def instants(column: pa.Array, zone: str) -> pa.Array | None:
    """Times of a zone's clocks as instants; None where Java and Arrow might not agree."""
    if zone in ("UTC", "Etc/UTC", "GMT", "Z"):
        return column.cast(INSTANT)
    found = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="raise").cast(INSTANT)
    bounds = pc.min_max(found)
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    return found if first is None or (first >= BEGINNING and last < END) else None


def lines(content: bytes) -> list[bytes]:
    """All that are not blank: those Spark does not see."""
    return [line for line in LINE_ENDS.split(content) if line.strip(WHITE)]


def _stands_after(codes: np.ndarray, code: int, *before: int) -> bool:
    """Whether a byte is the first one, or follows one of the others."""
    found = np.flatnonzero(codes == code)
    if not len(found):
        return False
    previous = codes[found - 1]
    return bool(found[0] == 0) or any(bool((previous == one).any()) for one in before)
