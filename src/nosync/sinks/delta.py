"""A Delta table that follows a query's result.

An epoch that changes something is one version of the table, and has the number of the epoch as Delta's application transaction

    nosync/<flow>/<sink>/<history>         the newest epoch
    nosync/<flow>/<sink>/<history>/run     the run that writes now: a version of its own, when the run begins

Each version is written upon exactly the one that was looked at, so what a run has not seen cannot lie in between: an epoch never arrives
twice, a run that was replaced never gets in, and what others do to the rows is noticed. Properties of the table (`nosync.flow` and so on)
say whose it is.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from nosync.clients.delta import Lake, address_of, changes_data, deltalake, talking
from nosync.model.arguments import checked, did_you_mean
from nosync.model.columns import DIFF, EPOCH
from nosync.model.errors import Failed, Fenced, Invalid, Refused, Unavailable
from nosync.model.sink import Changes, Identity, Promise
from nosync.sinks.delta_files import DeltaFiles
from nosync.sinks.delta_types import table_schema
from nosync.sinks.replacing import Leaving, arriving, without
from nosync.sinks.rows import added

TableMode = Literal["state", "changes", "append"]
ATTEMPTS = 20
FILE_BYTES = 64 << 20
FOLD_AFTER = 32


@checked(partition_by="Pass partitionBy=.", outputMode='Pass mode="state", "changes" or "append".')
def to_delta(
    uri: str | Path, key: str | Sequence[str] | None = None, mode: TableMode = "state", partitionBy: str | Sequence[str] = (),  # noqa: N803
    file_bytes: int = FILE_BYTES, fold_after: int = FOLD_AFTER,
) -> "DeltaSink":  # fmt: skip
    """Keeps a Delta table equal to the query's result, precisely: an epoch is one version of the table.

    - `mode="state"`: the rows as of now. `key` are the columns by which they differ: a row replaces the one of the same key. Without a key
      rows are found by all their columns. Files that have such rows are written anew.
    - `mode="changes"`: rows are only added, with `_epoch`, and `_diff` (1 for a row that comes, -1 for one that goes).
    - `mode="append"`: the same without those two, where rows are only ever added.

    `uri` is a folder, or an address of an object store (with the credentials of `remote=`). The table is made by the sink, and is its own;
    everybody may read it, optimize it and vacuum it. Files get about `file_bytes`; once `fold_after` small ones stand in a partition they
    are folded together (0: never). Needs the extra: pip install 'nosync[delta]'.

    >>> ns.to_delta("lake/spend", key="user").promise.guarantee
    'precise'
    """
    if mode not in get_args(TableMode):
        hint = f'{did_you_mean(mode, get_args(TableMode))}Pass "state", "changes" or "append".'
        raise Invalid(f'ns.to_delta: mode="{mode}" is not known', hint=hint)
    if key and mode != "state":
        words = f'ns.to_delta: key= says which rows are replaced, and mode="{mode}" replaces none'
        raise Invalid(words, hint='Leave it out, or pass mode="state".')
    address = address_of(uri)
    deltalake(f'Delta table "{address}"')
    keys, parts = ((given,) if isinstance(given, str) else tuple(given or ()) for given in (key, partitionBy))
    return DeltaSink(address, keys, mode, parts, file_bytes, fold_after)


@dataclass
class DeltaSink:
    """See `to_delta`. The table is looked for when a run begins, and made with its first epoch at the latest."""

    address: str
    key: tuple[str, ...] = ()
    mode: TableMode = "state"
    partition_by: tuple[str, ...] = ()
    file_bytes: int = FILE_BYTES
    fold_after: int = FOLD_AFTER
    run: str = ""
    identity: Identity | None = None
    schema: pa.Schema | None = field(default=None, repr=False)
    lake: Lake = field(init=False, repr=False)
    files: DeltaFiles | None = field(default=None, repr=False)
    _checked: int = -1  # the version up to which all is known to be ours, or harmless

    def __post_init__(self) -> None:
        self.lake = Lake(self.address, self.what)

    def __repr__(self) -> str:
        return f'ns.to_delta("{self.address}", mode="{self.mode}")'

    @property
    def what(self) -> str:
        return f'Delta table "{self.address}"'

    @property
    def promise(self) -> Promise:
        return Promise("precise", "an epoch is one version of the table, and its number is in it", "atomic")

    def check_query(self, sink: str, schema: pa.Schema, corrects: Sequence[str]) -> None:
        """Refuses a query whose output has no place in such a table."""
        if self.mode == "append" and corrects:
            raise Refused(
                f'sink "{sink}": mode="append" needs rows that are only ever added, but "{corrects[0]}" takes back what it gave',
                hint='Pass mode="state" or mode="changes". Windows over a watermark give each row once: flow.view(..., emit="final").',
            )
        self.schema = table_schema(sink, schema, self.mode == "changes", self.key, self.partition_by)

    def open(self, run: str, identity: Identity) -> None:
        """A store that is out of reach now is waited for with the first epoch."""
        self.run, self.identity, self._checked, self.files = run, identity, -1, None
        self.lake = Lake(self.address, self.what)
        with suppress(Unavailable):
            self._claimed()

    def deliver(self, epoch: int, changes: Changes) -> None:
        if self.schema is None:
            self.check_query(self._owner.sink, pa.schema([column for column in changes.schema if column.name not in (EPOCH, DIFF)]), ())
        if changes.empty and self._checked >= 0:
            return
        table: pa.Table | None = None
        for _ in range(ATTEMPTS):
            self._claimed()
            if (self.lake.transaction(self._app) or 0) >= epoch or changes.empty:
                return
            table = self._rows(changes) if table is None else table
            actions = self._actions(epoch, table)
            if self._commit(actions, self._app, epoch):
                self._fold()
                return
        raise Unavailable(f"{self.what}: others write so often that no version of ours gets in", hint="It is tried again.")

    def _commit(self, actions: Sequence[Any], app: str, number: int) -> bool:
        assert self.schema is not None and self.files is not None
        said = {"flow": self._owner.flow, "sink": self._owner.sink, "history": self._owner.history, "run": self.run}
        if not self.lake.commit(actions, self.schema, self.partition_by, app, number, said):
            return False
        self.lake.load()
        self.lake.sync_log()
        return True

    @property
    def _owner(self) -> Identity:
        assert self.identity is not None
        return self.identity

    @property
    def _app(self) -> str:
        return f"nosync/{self._owner.flow}/{self._owner.sink}/{self._owner.history}"

    @property
    def _generation(self) -> int:
        return int(self.run.partition(".")[0])

    def _claimed(self) -> None:
        """The newest version is loaded, is fit to be written upon, and is this run's to write."""
        if not self.lake.load():
            if self.schema is None:
                return
            self.lake.create(self.schema, self.partition_by, self._properties())
        self._check_owner()
        self._check_foreign()
        if self.schema is None:
            return
        if self.files is None:
            self._check_schema(self.schema)
            self.files = DeltaFiles(self.lake, self.schema, self.partition_by, self.file_bytes)
        for _ in range(ATTEMPTS):
            run = self.lake.transaction(f"{self._app}/run") or 0
            if run > self._generation:
                raise Fenced(f"{self.what} is written by a newer run", hint="Stop this process: that one took over.")
            if run == self._generation or self._commit([], f"{self._app}/run", self._generation):
                return
            self.lake.load()
            self._check_foreign()

    def _properties(self) -> dict[str, str]:
        said = {"flow": self._owner.flow, "sink": self._owner.sink, "history": self._owner.history, "mode": self.mode}
        return {f"nosync.{name}": value for name, value in said.items()}

    def _check_owner(self) -> None:
        found, ours = dict(self.lake.table.metadata().configuration), self._properties()
        if all(found.get(name) == value for name, value in ours.items()):
            return
        whose = f'flow "{found["nosync.flow"]}", sink "{found["nosync.sink"]}"' if "nosync.flow" in found else "nobody of ours"
        if {name for name, value in ours.items() if found.get(name) != value} == {"nosync.history"}:
            whose = "the same flow on another home"
        elif {name for name, value in ours.items() if found.get(name) != value} == {"nosync.mode"}:
            whose = f'this sink in mode="{found["nosync.mode"]}"'
        raise Invalid(
            f'sink "{self._owner.sink}": {self.what} has the output of {whose}',
            hint="Choose another address: two histories in one table are nobody's.",
        )

    def _check_schema(self, schema: pa.Schema) -> None:
        library = deltalake(self.what)
        wanted, found = library.Schema.from_arrow(schema), self.lake.table.schema()
        parts = list(self.lake.table.metadata().partition_columns)
        if (wanted.to_json(), list(self.partition_by)) != (found.to_json(), parts):
            words = f"{self.what} has other columns than the query's result"
            raise Failed(words, hint="Write to another table: what is there was made of another query, or partitioned otherwise.")

    def _check_foreign(self) -> None:
        """Walks back from the newest version to the last of ours."""
        newest = version = self.lake.version
        while version > max(self._checked, 0):
            actions = self.lake.log(version)
            if any(action.get("commitInfo", {}).get("nosync", {}).get("history") == self._owner.history for action in actions):
                break
            if (not actions or changes_data(actions)) and not self._as_before(version):
                who = next((action["commitInfo"].get("operation", "") for action in actions if "commitInfo" in action), "") or "a write"
                hint = f"Restore it to what it was before version {version} (DeltaTable.restore), or write to another table."
                raise Failed(f"{self.what}: version {version} changed its rows, and is none of ours: {who}", hint=hint)
            version -= 1
        self._checked = newest

    def _as_before(self, version: int) -> bool:
        """Whether somebody has put everything back as it was."""
        while version > 0 and not any("nosync" in action.get("commitInfo", {}) for action in self.lake.log(version)):
            version -= 1
        return set(self.lake.at(version).file_uris()) == set(self.lake.table.file_uris())

    def _rows(self, changes: Changes) -> pa.Table:
        """The epoch's rows, as the table has them; in a table of the current state with `_diff` behind."""
        assert self.schema is not None
        table = changes.table()
        if self.mode != "changes":
            table = table.drop_columns([EPOCH])
        if self.mode == "append":
            table = added(table)
        behind = [pa.field(DIFF, pa.int64())] if self.mode == "state" else []
        table = table.cast(pa.schema([*self.schema, *behind]))
        for name in self.partition_by:
            if pa.types.is_string(table.schema.field(name).type):  # Delta has no empty text there
                place = table.schema.get_field_index(name)
                column = table.column(name)
                empty = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
                table = table.set_column(place, table.schema.field(name), empty)
        return table

    def _actions(self, epoch: int, table: pa.Table) -> list[Any]:
        """What the epoch adds to the log; its new files are written."""
        assert self.files is not None
        if self.mode != "state":
            return list(self.files.write(epoch, table))
        leaving, coming = Leaving(table, self.key, self.what), arriving(table, self.key)
        actions: list[Any] = []
        waiting = [coming]
        for path, file in self.files.live().items() if not leaving.none else ():
            going = leaving.among(self.files.identities(path, file, leaving.columns))
            if not len(going):
                continue
            actions.append(self.files.removal(path, file))
            if len(going) == file["num_records"]:
                continue
            waiting.append(without(self.files.rows(path, file), going))
            if sum(rows.nbytes for rows in waiting) > 4 * self.file_bytes:
                actions += self.files.write(epoch, pa.concat_tables(waiting))
                waiting.clear()
        leaving.check_all_found()
        if waiting:
            actions += self.files.write(epoch, pa.concat_tables(waiting))
        return actions

    def _fold(self) -> None:
        """Small files become larger ones, in a version that changes no rows; whoever is faster goes first."""
        assert self.files is not None
        if not self.fold_after:
            return
        parts = [f"partition.{name}" for name in self.partition_by]
        small: dict[tuple[Any, ...], int] = {}
        for file in self.files.live().values():
            if file["size_bytes"] < self.file_bytes // 2:
                place = tuple(file[name] for name in parts)
                small[place] = small.get(place, 0) + 1
        if max(small.values(), default=0) < self.fold_after:
            return
        library = deltalake(self.what)
        said = {"flow": self._owner.flow, "sink": self._owner.sink, "history": self._owner.history, "run": self.run}
        properties = library.CommitProperties(custom_metadata={"nosync": said}, max_commit_retries=0)
        with suppress(library.exceptions.CommitFailedError, Unavailable), talking(self.what):
            self.lake.table.optimize.compact(target_size=self.file_bytes, commit_properties=properties)

    def close(self) -> None:
        """Nothing is held."""

