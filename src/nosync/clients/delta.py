"""Delta tables, through deltalake: the newest version, commits upon exactly that version, the actions of the log, and what errors mean.

An address is a folder of this machine or one of an object store, reached by the credentials that `remote=` uses (AWS_* and the like).
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from nosync.model.errors import Failed, Invalid, NosyncError, Unavailable, reading
from nosync.model.extras import needed
from nosync.model.secrets import redacted
from nosync.model.text import first_line
from nosync.store.addresses import check_bucket, client_of
from nosync.store.disk import failing_as
from nosync.store.failures import from_remote
from nosync.store.lasting import sync

AGAIN = "It is tried again."
CLOUDS = ("s3", "s3a", "gs", "az", "abfs", "abfss")
FOR_GOOD = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "NoSuchBucket", "PermissionDenied")
Action = dict[str, Any]


def deltalake(what: str) -> Any:
    return needed("deltalake", "delta", what)


def address_of(uri: str | Path) -> str:
    """As deltalake takes it: an absolute path, or an address of an object store. `Invalid` for anything else."""
    said = str(uri)
    parts = urlsplit(said)
    if redacted(said) != said or parts.query or (parts.fragment and "://" in said):
        hint = "Give credentials in the environment (such as AWS_SECRET_ACCESS_KEY): addresses are recorded and shown."
        raise Invalid(f'the Delta table "{redacted(said)}" was given with credentials or options in its address', hint=hint)
    if parts.scheme == "file":
        return unquote(parts.path).rstrip("/")
    if "://" not in said:
        return str(Path(said).absolute())
    if parts.scheme not in CLOUDS:
        raise Invalid(f'"{said}" is no address of a Delta table', hint="Pass a folder, or s3://bucket/prefix, gs://..., az://...")
    check_bucket(parts)
    return said.rstrip("/")


@contextmanager
def talking(what: str) -> Iterator[None]:
    """Around everything that deltalake does: `Invalid` where the store refuses for good, `Unavailable` where it may work later."""
    library = deltalake(what).exceptions
    try:
        yield
    except (NosyncError, library.CommitFailedError):
        raise
    except (library.DeltaProtocolError, library.SchemaMismatchError) as error:
        raise Failed(f"{what}: {first_line(error)}", hint="Write to another table.") from None
    except (library.DeltaError, OSError) as error:
        words = f"{what}: {first_line(error)}"
        if any(word in str(error) for word in FOR_GOOD):
            raise Invalid(words, hint="Correct the address or the credentials.") from None
        raise Unavailable(words, hint=AGAIN) from None



class Lake:
    """One table. Not made for several threads at once."""

    def __init__(self, address: str, what: str) -> None:
        self.address, self.what = address, what
        self.table: Any = None

    @property
    def local(self) -> Path | None:
        """The folder, where the table is on this machine."""
        return None if "://" in self.address else Path(self.address)

    def opened(self, path: str) -> Any:
        """A file below the table, for Arrow to read. `FileNotFoundError` where there is none."""
        if self.local is not None:
            return pa.memory_map(str(self.local / path))
        try:
            return pa.BufferReader(bytes(obstore.get(self._client, path).bytes()))
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            raise from_remote(error, f"{self.what}: {path} could not be read", write=False) from None

    def put(self, path: str, content: pa.Buffer) -> None:
        """A new file below the table. On this machine it is on the disk afterwards."""
        if self.local is not None:
            with failing_as(f"{self.what}: {path} was not written"):
                (self.local / path).parent.mkdir(parents=True, exist_ok=True)
                (self.local / path).write_bytes(content)
                sync(self.local / path)
                sync((self.local / path).parent)
            return
        try:
            obstore.put(self._client, path, content.to_pybytes())
        except (BaseError, OSError) as error:
            raise Unavailable(from_remote(error, f"{self.what}: {path} was not written", write=False).message, AGAIN) from None

    @cached_property
    def _client(self) -> ObjectStore:
        return client_of(self.address, os.environ)

    @property
    def environment(self) -> dict[str, str]:
        """What of it is about object stores."""
        return {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))}

    @property
    def options(self) -> dict[str, str]:
        """What the environment says; a put that creates is atomic there, as the journal's is."""
        return self.environment | ({"conditional_put": "etag"} if self.address.startswith("s3") else {})

    def load(self) -> bool:
        """The newest version; False where there is no table."""
        with talking(self.what):
            if self.table is not None:
                self.table.update_incremental()
                return True
            library = deltalake(self.what)
            options = None if self.local is not None else self.options
            if self.local is not None and not (self.local / "_delta_log").is_dir():
                return False
            try:
                self.table = library.DeltaTable(self.address, storage_options=options)
            except library.exceptions.TableNotFoundError:
                return False
            return True

    def at(self, version: int) -> Any:
        """The table as of a version."""
        options = None if self.local is not None else self.options
        with talking(self.what):
            return deltalake(self.what).DeltaTable(self.address, version=version, storage_options=options)

    def create(self, schema: pa.Schema, partition_by: Sequence[str], properties: dict[str, str]) -> None:
        """An empty table. If somebody else was faster, theirs stays."""
        library = deltalake(self.what)
        if self.local is not None:
            self.local.mkdir(parents=True, exist_ok=True)
        with talking(self.what):
            self.table = library.DeltaTable.create(
                self.address, schema, mode="ignore", partition_by=list(partition_by), configuration=properties,
                storage_options=None if self.local is not None else self.options, raise_if_key_not_exists=False,
            )  # fmt: skip
            self.table.update_incremental()

    @property
    def version(self) -> int:
        return int(self.table.version())

    def transaction(self, app: str) -> int | None:
        found = self.table.transaction_version(app)
        return None if found is None else int(found)

    def commit(self, actions: Sequence[Any], schema: pa.Schema, partition_by: Sequence[str], app: str, number: int, said: Any) -> bool:
        """One version upon the one that was loaded, which has the application's number; False where somebody else wrote that version.

        After any other error it may have arrived: load, and look for the number.
        """
        library = deltalake(self.what)
        properties = library.CommitProperties(
            custom_metadata={"nosync": said}, max_commit_retries=0, app_transactions=[library.Transaction(app, number)]
        )
        try:
            with talking(self.what):
                self.table.create_write_transaction(list(actions), "append", schema, list(partition_by), commit_properties=properties)
        except library.exceptions.CommitFailedError:
            return False
        return True

    def log(self, version: int) -> list[Action]:
        """What a version did; none where the log does not go back that far."""
        with reading(f"{self.what}: the log of version {version}", "Restore it, or go on with another table."):
            try:
                lines = self.opened(f"_delta_log/{version:020d}.json").read().splitlines()
            except FileNotFoundError:
                return []
            return [_action(line) for line in lines if line.strip()]

    def sync_log(self) -> None:
        """On this machine: the newest version is on the disk."""
        if self.local is not None:
            log = self.local / "_delta_log"
            sync(log / f"{self.version:020d}.json")
            sync(log)



def _action(line: bytes) -> Action:
    """What a line of a log says; `ValueError` where that is nothing that could be done to a table."""
    found = json.loads(line)
    if not isinstance(found, dict) or not all(isinstance(facts, dict) for facts in found.values()):
        raise ValueError(f"no action: {line[:50]!r}")
    for facts in (found[kind] for kind in ("add", "remove", "cdc") if kind in found):
        size, values = facts.get("size"), facts.get("partitionValues")
        if not isinstance(facts.get("path"), str) or not isinstance(size, int | None) or not isinstance(values, dict | None):
            raise ValueError(f"no file: {line[:50]!r}")
    return found


def changes_data(actions: Sequence[Action]) -> bool:
    """Whether a version adds or removes rows, rather than moving them into other files."""
    return any(action[kind].get("dataChange", True) for action in actions for kind in ("add", "remove") if kind in action)
