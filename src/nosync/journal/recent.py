"""The records that some tier may lack, and what is known by those before: each question in a time that does not grow with their number.

During a long outage there are many of them, and every epoch asks. Called by the journal under its lock.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from nosync.journal.entries import Computed, Opened, Restored, TakenOver
from nosync.journal.image import Image
from nosync.journal.record import Record
from nosync.model.identifiers import Epoch, RecordNumber
from nosync.model.layers import LayerInfo


class Recent:
    """Neighbouring records, the newest at the end. `image` is the flow as of before them; what it has forgotten is on every tier."""

    def __init__(self, image: Image, records: Iterable[Record]) -> None:
        self._records: list[Record] = []
        self._bytes: list[int] = []  # of a record and all before it, with the layers that they are not whole without
        self._record_bytes: list[int] = []  # the same without the layers
        self._forgotten = (0, 0)
        self._computed, self._opened = Limits(image.computed_in), Limits(image.opened_in)
        for record in records:
            self.append(record)

    def __len__(self) -> int:
        return len(self._records)

    def append(self, record: Record) -> None:
        size = len(record.content)
        self._record_bytes.append(self._all_record_bytes + size)
        self._bytes.append(self._all_bytes + size + sum(layer.bytes for layer in layers_of(record)))
        self._records.append(record)
        for entry in record.entries:
            match entry:
                case Opened():
                    self._opened.add(record.number, entry.epoch - 1)
                case Computed():
                    self._computed.add(record.number, entry.epoch - 1)
                case Restored() | TakenOver() if entry.layers:
                    self._computed.add(record.number, min(layer.lower for layer in entry.layers) - 1)

    def after(self, number: RecordNumber, most: int | None = None) -> list[Record]:
        """Those behind a number, oldest first, `most` of them."""
        start = self._index(number)
        return self._records[start:] if most is None else self._records[start : start + most]

    def forget(self, number: RecordNumber) -> None:
        count = self._index(number)
        if count:
            self._forgotten = self._bytes[count - 1], self._record_bytes[count - 1]
        for known in (self._records, self._bytes, self._record_bytes):
            del known[:count]
        self._computed.forget(number)
        self._opened.forget(number)

    def bytes_after(self, number: RecordNumber) -> int:
        """Bytes of the records behind a number and of their layers."""
        return self._all_bytes - self._before(self._bytes, number, self._forgotten[0])

    def record_bytes_after(self, number: RecordNumber) -> int:
        """Bytes of the records behind a number."""
        return self._all_record_bytes - self._before(self._record_bytes, number, self._forgotten[1])

    def computed_by(self, number: RecordNumber, newest: Epoch) -> Epoch:
        """The newest epoch, up to the one given, that the records up to a number make known, with layers that they name."""
        return self._computed.by(number, newest)

    def opened_by(self, number: RecordNumber, newest: Epoch) -> Epoch:
        """The newest epoch, up to the one given, that was opened in the records up to a number, with all before it."""
        return self._opened.by(number, newest)

    def _index(self, number: RecordNumber) -> int:
        """How many of them are not behind the number."""
        return min(max(0, number - self._records[0].number + 1), len(self._records)) if self._records else 0

    def _before(self, sums: Sequence[int], number: RecordNumber, forgotten: int) -> int:
        count = self._index(number)
        return sums[count - 1] if count else forgotten

    @property
    def _all_bytes(self) -> int:
        return self._bytes[-1] if self._bytes else self._forgotten[0]

    @property
    def _all_record_bytes(self) -> int:
        return self._record_bytes[-1] if self._record_bytes else self._forgotten[1]


class Limits:
    """Epochs that records take beyond: whoever lacks the record knows epochs up to its limit at most. Of several, the lowest holds; so
    only those are kept that have no lower one behind them.
    """

    def __init__(self, known: dict[Epoch, RecordNumber]) -> None:
        self._numbers: list[RecordNumber] = []
        self._limits: list[Epoch] = []
        for epoch, number in sorted(known.items(), key=lambda item: item[1]):
            self.add(number, epoch - 1)

    def add(self, number: RecordNumber, limit: Epoch) -> None:
        while self._limits and self._limits[-1] >= limit:
            self._limits.pop()
            self._numbers.pop()
        self._numbers.append(number)
        self._limits.append(limit)

    def by(self, number: RecordNumber, newest: Epoch) -> Epoch:
        index = bisect_right(self._numbers, number)
        return min(newest, self._limits[index]) if index < len(self._limits) else newest

    def forget(self, number: RecordNumber) -> None:
        count = bisect_right(self._numbers, number)
        del self._numbers[:count], self._limits[:count]


def layers_of(record: Record) -> Iterable[LayerInfo]:
    """Layers that a record is not whole without."""
    for entry in record.entries:
        if isinstance(entry, Computed | Restored | TakenOver):
            yield from entry.layers
