"""A view as of one epoch, as it lies in a home: whole, block by block, or only the rows of a key."""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nosync.history.reader import of_groups, repeated, rows
from nosync.history.record import ViewRecord
from nosync.kernels.accumulate import state_of
from nosync.kernels.xxhash64 import hash_columns, hashable
from nosync.model.absent import TABLE, missing_from, public
from nosync.model.errors import Invalid, reading
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch
from nosync.model.layers import Covers
from nosync.state.canonical import rows_equal
from nosync.state.cover import layer_ranges
from nosync.state.layer import Layer
from nosync.state.search import rows_of

if TYPE_CHECKING:
    from nosync.history.home import Home

SHOWN = 20
FITS = "Its layers do not fit what the journal says of it. `nosync fsck HOME` says what is there."


@public
class StoredView:
    """The rows of a view as of `epoch`. Whatever takes Arrow data takes it as it is, and it has the methods of a `pyarrow.Table` (which
    then reads all of it); `get` and `where` read no more than they must.

    >>> home.view("spend")
    view "spend" as of epoch 1: user string, spent double
    """

    WITHIN = ("pieces", "piece")

    def __init__(self, home: "Home", name: str, record: ViewRecord, epoch: Epoch, covers: Covers) -> None:
        self._home, self.name, self._record, self.epoch, self._covers = home, name, record, epoch, covers
        self._table: pa.Table | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._record.schema

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which `get` finds rows without reading the others; none where there are none."""
        return tuple(self.schema.names[column] for column in sorted(self._record.hashed or ()))

    def to_arrow(self) -> pa.Table:
        """All rows, as a `pyarrow.Table`.

        >>> home.view("spend").to_arrow().num_rows
        1
        """
        if self._table is None:
            self._table = pa.Table.from_batches(self.batches(), self.schema)
        return self._table

    def to_pandas(self, **options: Any) -> Any:
        """All rows, as a DataFrame of pandas.

        >>> home.view("spend").to_pandas()
          user  spent
        0  ann    3.5
        """
        return self.to_arrow().to_pandas(**options)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows block by block, for views larger than memory.

        >>> sum(batch.num_rows for batch in home.view("spend").batches())
        1
        """
        for number, held in enumerate(self.pieces):
            yield from self.piece(held, first=number == 0)

    @property
    def pieces(self) -> list[HashRange]:
        """The parts in which it may be read, also by several at once."""
        if not self.epoch:
            return []
        held = sorted(self._covers)
        return held if any(one.contains(0) for one in held) else [HashRange(0, 1), *held]

    def piece(self, held: HashRange | None, first: bool) -> Iterator[pa.RecordBatch]:
        """The rows of one piece, block by block. The `first` one answers for an aggregate without a key."""
        layers = self._home.layers(layer_ranges(self._covers, held) if held else (), whole=True)
        with reading(f'view "{self.name}"', FITS):
            yield from rows(self._record, layers, owns_whole=first)

    def get(self, **values: Any) -> dict[str, Any] | None:
        """The row with these values, or None. `Invalid` where there are several: `where` gives them all.

        >>> home.view("spend").get(user="ann")
        {'user': 'ann', 'spent': 3.5}
        """
        found = self.where(**values)
        if found.num_rows > 1:
            said = ", ".join(f"{name}={value!r}" for name, value in values.items())
            words = f'view "{self.name}" has {found.num_rows} rows with {said}'
            raise Invalid(words, hint="Say more columns, or ask for all with .where(...).")
        row: dict[str, Any] | None = next(iter(found.to_pylist()), None)
        return row

    def where(self, **values: Any) -> pa.Table:
        """The rows with these values. Where they say the whole `key`, only the blocks of one shard that may have it are read.

        >>> home.view("spend").where(user="ann").to_pylist()
        [{'user': 'ann', 'spent': 3.5}]
        """
        wanted = {name: self._value(name, value) for name, value in values.items()}
        with reading(f'view "{self.name}"', FITS):
            batches = self._looked_up(wanted) if self.key and set(self.key) <= wanted.keys() else self.batches()
            return pa.Table.from_batches([_matching(batch, wanted) for batch in batches], self.schema)

    def _value(self, name: str, value: Any) -> pa.Array:
        """As an array of one."""
        if self.schema.get_all_field_indices(name) == []:
            raise Invalid(f'view "{self.name}" has no column "{name}"', hint=f"It has: {', '.join(self.schema.names)}.")
        type = self.schema.field(self.schema.get_all_field_indices(name)[0]).type
        try:
            return pa.array([value], type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise Invalid(f"{name}={value!r} is no {type}", hint=f'That is the type of the column in view "{self.name}".') from None

    def _looked_up(self, wanted: dict[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        keys = [wanted[self.schema.names[column]] for column in self._record.hashed or ()]
        if not all(hashable(key.type) for key in keys):
            yield from self.batches()
            return
        spec = self._record.spec
        if spec is not None:
            keys = [key.cast(type) for key, type in zip(keys, spec.keys, strict=True)]
        hashes = hash_columns(keys, 1)
        layers = self._layers_with(int(hashes[0]))
        if spec is not None:
            groups, _ = state_of(spec, layers, hashes, keys)
            yield of_groups(self._record, groups.take(np.flatnonzero(groups.n != 0)))
        elif (found := rows_of(layers, hashes)) is not None:
            yield repeated(self._record, found)

    def _layers_with(self, hash: int) -> Sequence[Layer]:
        return self._home.layers(layer_ranges(self._covers, HashRange(hash, hash + 1)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in dir(pa.Table):
            raise missing_from(type(self), name)
        found = getattr(self.to_arrow(), name)
        return self._answering(found) if callable(found) else found

    def __getitem__(self, key: Any) -> Any:
        return self._answering(self.to_arrow().__getitem__)(key)

    def _answering(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of the table, whose errors say what the view has."""

        @wraps(method)
        def call(*given: Any, **named: Any) -> Any:
            try:
                return method(*given, **named)
            except (pa.ArrowException, LookupError, TypeError, ValueError) as error:
                words = f'view "{self.name}": {(str(error.args[0]) if error.args else str(error)).splitlines()[0]}'
                raise Invalid(words, hint=f"Its columns are {', '.join(self.schema.names)}. {TABLE}") from None

        return call

    def __len__(self) -> int:
        return len(self.to_arrow())

    def __eq__(self, other: object) -> bool:
        return bool(self.to_arrow() == (other.to_arrow() if isinstance(other, StoredView) else other))

    __hash__ = None  # type: ignore[assignment]  # as of a table

    def __repr__(self) -> str:
        return f'view "{self.name}" as of epoch {self.epoch}: {", ".join(f"{field.name} {field.type}" for field in self.schema)}'

    def _repr_html_(self) -> str:
        """In a notebook, the first rows."""
        return f"<p>{escape(repr(self))}</p>{self._first(SHOWN).to_pandas().to_html(index=False)}"

    def _first(self, count: int) -> pa.Table:
        """No more is read than that takes."""
        found: list[pa.RecordBatch] = []
        for batch in self.batches():
            found.append(batch.slice(0, count))
            count -= found[-1].num_rows
            if not count:
                break
        return pa.Table.from_batches(found, self.schema)


def _matching(batch: pa.RecordBatch, wanted: dict[str, pa.Array]) -> pa.RecordBatch:
    if not wanted or not batch.num_rows:
        return batch
    columns = [batch.column(batch.schema.get_all_field_indices(name)[0]) for name in wanted]
    same = np.zeros(batch.num_rows, np.int64)
    others = [value.take(pa.array(same)) for value in wanted.values()]
    return batch.filter(pa.array(rows_equal(columns, others)))
