"""A Delta table as the target of a sink (see `lake`).

The number of an epoch is Delta's application transaction, and so is the run that writes:

    nosync/<flow>/<sink>/<history>         the newest epoch
    nosync/<flow>/<sink>/<history>/run     the run that writes now

Properties of the table (`nosync.flow`, `nosync.sink`, `nosync.history`, `nosync.mode`) say whose it is.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from nosync.clients.delta import Lake, address_of, changes_data, deltalake, talking
from nosync.model.arguments import checked
from nosync.model.errors import Failed, Unavailable
from nosync.model.identifiers import Epoch
from nosync.model.run import generation_of
from nosync.model.sink import Identity
from nosync.sinks.delta_files import DeltaFiles
from nosync.sinks.lake import FILE_BYTES, FOLD_AFTER, LakeSink, TableMode, checked_mode, checked_pace, names


@checked(partition_by="Pass partitionBy=.", outputMode='Pass mode="state", "changes" or "append".')
def to_delta(
    uri: str | Path, key: str | Sequence[str] | None = None, mode: TableMode = "state", partitionBy: str | Sequence[str] = (),  # noqa: N803
    file_bytes: int = FILE_BYTES, fold_after: int = FOLD_AFTER, fold_every: str | None = None,
) -> LakeSink:  # fmt: skip
    """Keeps a Delta table equal to the query's result, precisely: an epoch is one version of the table.

    - `mode="state"`: the rows as of now. `key` are the columns by which they differ: a row replaces the one of the same key. Without a key
      rows are found by all their columns. Files that have such rows are written anew.
    - `mode="changes"`: rows are only added, with `_epoch`, and `_diff` (1 for a row that comes, -1 for one that goes).
    - `mode="append"`: the same without those two, where rows are only ever added.

    `uri` is a folder, or an address of an object store (with the credentials of `remote=`). The table is made by the sink, and is its own;
    everybody may read it, optimize it and vacuum it. Files get about `file_bytes`; once `fold_after` small ones stand in a partition they
    are folded together (0: never), and with `fold_every="1 hour"` any two, with the first epoch after each hour of a run. Needs the extra:
    pip install 'nosync[delta]'.

    >>> ns.to_delta("lake/spend", key="user").promise.guarantee
    'precise'
    """
    address = address_of(uri)
    deltalake(f'Delta table "{address}"')
    said = f'ns.to_delta("{address}", mode="{mode}")'
    how, sizes = checked_mode("to_delta", mode, key), (file_bytes, fold_after, checked_pace("to_delta", fold_every))
    return LakeSink(said, DeltaTarget(address), names(key), how, names(partitionBy), *sizes)


def app(owner: Identity) -> str:
    return f"nosync/{owner.flow}/{owner.sink}/{owner.history}"


class DeltaTarget:
    """One table, as `lake.Table` has it."""

    odd_names = False

    def __init__(self, address: str) -> None:
        self.what = f'Delta table "{address}"'
        self.lake = Lake(address, self.what)
        self.addresses: Sequence[str] = (address, f"{address}/part-0.parquet")
        self.files: DeltaFiles | None = None
        self._checked = 0  # the version up to which all is known to be ours, or harmless

    def stored(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def load(self) -> bool:
        return self.lake.load()

    def create(self, schema: pa.Schema, partition_by: Sequence[str], properties: dict[str, str]) -> None:
        self.lake.create(schema, partition_by, properties)

    def begin(self, schema: pa.Schema, partition_by: Sequence[str], file_bytes: int) -> None:
        wanted, found = deltalake(self.what).Schema.from_arrow(schema), self.lake.table.schema()
        if (wanted.to_json(), list(partition_by)) != (found.to_json(), list(self.lake.table.metadata().partition_columns)):
            words = f"{self.what} has other columns than the query's result"
            raise Failed(words, hint="Write to another table: what is there was made of another query, or partitioned otherwise.")
        self.files = DeltaFiles(self.lake, schema, partition_by, file_bytes)

    def properties(self) -> Mapping[str, str]:
        return dict(self.lake.table.metadata().configuration)

    def epoch(self, owner: Identity) -> Epoch:
        return Epoch(self.lake.transaction(app(owner)) or 0)

    def generation(self, owner: Identity) -> int:
        return self.lake.transaction(f"{app(owner)}/run") or 0

    def check_foreign(self, owner: Identity) -> None:
        """Walks back from the newest version to the last of ours."""
        newest = version = self.lake.version
        while version > self._checked:
            actions = self.lake.log(version)
            if _history(actions) == owner.history:
                break
            if (not actions or changes_data(actions)) and not self._as_before(version):
                who = next((action["commitInfo"].get("operation", "") for action in actions if "commitInfo" in action), "") or "a write"
                hint = f"Restore it to what it was before version {version} (DeltaTable.restore), or write to another table."
                raise Failed(f"{self.what}: version {version} changed its rows, and is none of ours: {who}", hint=hint)
            version -= 1
        self._checked = newest

    def _as_before(self, version: int) -> bool:
        """Whether somebody has put everything back as it was."""
        while version > 0 and not _history(self.lake.log(version)):
            version -= 1
        return set(self.lake.at(version).file_uris()) == set(self.lake.table.file_uris())

    @property
    def _files(self) -> DeltaFiles:
        assert self.files is not None
        return self.files

    def live(self) -> Mapping[str, int]:
        self._files.look()
        return {path: int(file["num_records"]) for path, file in self._files.live.items()}

    def ranges(self, path: str) -> Mapping[str, tuple[Any, Any]]:
        return self._files.ranges(path)

    def row_ids(self, path: str, columns: Sequence[str]) -> pa.Array:
        return self._files.row_ids(path, columns)

    def rows(self, path: str) -> pa.Table:
        return self._files.rows(path)

    def write(self, epoch: Epoch, rows: pa.Table) -> list[Any]:
        return self._files.write(epoch, rows)

    def commit(self, removed: Sequence[str], new: Sequence[Any], owner: Identity, run: str, epoch: Epoch | None) -> bool:
        name, number = (app(owner), epoch) if epoch is not None else (f"{app(owner)}/run", generation_of(run))
        actions = [*map(self._files.removal, removed), *new]
        if not self.lake.commit(actions, self._files.schema, self._files.partition_by, name, number, _said(owner, run)):
            return False
        self.lake.load()
        self.lake.sync_log()
        return True

    def fold(self, owner: Identity, run: str, after: int) -> None:
        """By deltalake's `optimize`; whoever is faster goes first."""
        self._files.look()
        small: dict[tuple[Any, ...], int] = {}
        for file in self._files.live.values():
            if file["size_bytes"] < self._files.file_bytes // 2:
                place = tuple(file[f"partition.{name}"] for name in self._files.partition_by)
                small[place] = small.get(place, 0) + 1
        if max(small.values(), default=0) < after:
            return
        library = deltalake(self.what)
        properties = library.CommitProperties(custom_metadata={"nosync": _said(owner, run)}, max_commit_retries=0)
        with suppress(library.exceptions.CommitFailedError, Unavailable), talking(self.what):
            self.lake.table.optimize.compact(target_size=self._files.file_bytes, commit_properties=properties)


def _said(owner: Identity, run: str) -> dict[str, str]:
    return {"flow": owner.flow, "sink": owner.sink, "history": owner.history, "run": run}


def _history(actions: Sequence[dict[str, Any]]) -> str | None:
    """Whose version it is, if it is one of ours."""
    said = [found for action in actions if isinstance(found := action.get("commitInfo", {}).get("nosync"), dict)]
    return str(said[0]["history"]) if said and "history" in said[0] else None
