"""Iceberg tables, through pyiceberg: catalogs, what their errors mean, and snapshots put upon exactly the one that was looked at.

A catalog is the name of one that pyiceberg is set up for (`~/.pyiceberg.yaml`, PYICEBERG_*), or its properties (with `name`,
unless it is called default). Credentials of object stores that it does not say are those of `remote=` (AWS_*).
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nosync.model.errors import Failed, Invalid, NosyncError, Unavailable
from nosync.model.extras import needed
from nosync.model.text import first_line

AGAIN = "It is tried again."
CREDENTIALS = {
    "AWS_ENDPOINT_URL": "s3.endpoint", "AWS_ACCESS_KEY_ID": "s3.access-key-id", "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
    "AWS_SESSION_TOKEN": "s3.session-token", "AWS_REGION": "s3.region",
}  # fmt: skip
METADATA = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "100"}
REFUSING = ("UnauthorizedError", "ForbiddenError", "AuthorizationExpiredError", "OAuthError", "BadRequestError")


def pyiceberg(module: str, what: str) -> Any:
    return needed(f"pyiceberg.{module}", "iceberg", what)


@contextmanager
def talking(what: str) -> Iterator[None]:
    """Around everything that pyiceberg does: `Invalid` where the catalog refuses for good, `Unavailable` where it may work later."""
    errors = pyiceberg("exceptions", what)
    try:
        yield
    except (NosyncError, errors.CommitFailedException):
        raise
    except errors.ValidationException as error:
        raise Failed(f"{what}: {first_line(error)}", hint="Write to another table.") from None
    except Exception as error:
        words = f"{what}: {type(error).__name__}: {first_line(error)}"
        if type(error).__name__ in REFUSING:
            raise Invalid(words, hint="Correct the catalog's properties or the rights of its user.") from None
        if isinstance(error, OSError | errors.RESTError | errors.CommitStateUnknownException) or _of_a_server(error):
            raise Unavailable(words, hint=AGAIN) from None
        raise


def _of_a_server(error: Exception) -> bool:
    """Whether it comes from what a catalog talks through: a database, HTTP."""
    return any(kind.__module__.startswith(("sqlalchemy", "requests", "botocore")) for kind in type(error).__mro__)



def _living(manifests: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
    """Without those that tell of deleted files only: each commit would add one, and every later reader would open them all."""
    return lambda: [one for one in manifests() if one.added_files_count != 0 or one.existing_files_count != 0]


class IcebergTable:
    """One table of one catalog. Not made for several threads at once."""

    def __init__(self, catalog: str | Mapping[str, str], name: str, what: str) -> None:
        self.said, self.name, self.what = catalog, name, what
        self.table: Any = None
        self._catalog: Any = None

    @property
    def address(self) -> str:
        """The same for all who mean the same table of the same catalog, in the same words."""
        catalog = self.said if isinstance(self.said, str) else self.said.get("uri", self.said.get("name", "default"))
        return f"iceberg:{catalog}/{self.name}"

    @property
    def catalog(self) -> Any:
        if self._catalog is None:
            found = {ours: os.environ[name] for name, ours in CREDENTIALS.items() if name in os.environ}
            more = {} if isinstance(self.said, str) else dict(self.said)
            name = self.said if isinstance(self.said, str) else more.pop("name", "default")
            with talking(self.what):
                try:
                    self._catalog = pyiceberg("catalog", self.what).load_catalog(name, **{**found, **more})
                except (ValueError, TypeError, pyiceberg("exceptions", self.what).NotInstalledError) as error:
                    hint = 'Pass its properties, such as {"type": "rest", "uri": "http://...", "warehouse": "..."}, or a configured name.'
                    raise Invalid(f"{self.what}: the catalog cannot be opened: {first_line(error)}", hint=hint) from None
        return self._catalog

    def load(self) -> bool:
        """As it is now; False where there is no table."""
        errors = pyiceberg("exceptions", self.what)
        with talking(self.what):
            try:
                if self.table is None:
                    self.table = self.catalog.load_table(self.name)
                else:
                    self.table.refresh()
            except (errors.NoSuchTableError, errors.NoSuchNamespaceError):
                self.table = None
                return False
            return True

    def create(self, schema: Any, partition_by: Sequence[str], properties: Mapping[str, str]) -> None:
        """An empty table, and its namespace. If somebody else was faster, theirs is loaded. Old files of metadata are not kept for ever."""
        errors = pyiceberg("exceptions", self.what)
        with talking(self.what):
            try:
                self.catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
                with self.catalog.create_table_transaction(self.name, schema, properties={**METADATA, **properties}) as transaction:
                    if partition_by:
                        with transaction.update_spec() as spec:
                            for column in partition_by:
                                spec.add_identity(column)
            except (errors.TableAlreadyExistsError, errors.CommitFailedException):
                pass
            self.table = self.catalog.load_table(self.name)

    def commit(self, removed: Sequence[Any], added: Sequence[Any], said: Mapping[str, str], moves_only: bool = False) -> bool:
        """One snapshot upon the one that was loaded; False where somebody else wrote that. After any other error it may have arrived."""
        errors, update = pyiceberg("exceptions", self.what), pyiceberg("table.update", self.what)
        snapshots = pyiceberg("table.snapshots", self.what)
        with talking(self.what):
            begun = self._transaction().update_snapshot(snapshot_properties=dict(said))
            producer = begun.overwrite() if removed else begun.fast_append()
            for file in added:
                producer.append_data_file(file)
            for file in removed:
                producer.delete_data_file(file)
            producer._existing_manifests = _living(producer._existing_manifests)
            updates, requirements = producer._commit()
            if moves_only:
                summary = updates[0].snapshot.summary.model_copy(update={"operation": snapshots.Operation.REPLACE})
                updates = (update.AddSnapshotUpdate(snapshot=updates[0].snapshot.model_copy(update={"summary": summary})), *updates[1:])
            updates += (update.SetPropertiesUpdate(updates=dict(said)),)
            requirements += (update.AssertTableUUID(uuid=self.table.metadata.table_uuid),)
            try:
                self.catalog.commit_table(self.table, requirements, updates)
            except errors.CommitFailedException:
                producer._clean_all_uncommitted()
                return False
            self.table.refresh()
        return True

    def _transaction(self) -> Any:
        """One that nothing is staged in: pyiceberg's own copies all the metadata, with every snapshot, each time that it looks at it."""
        found = pyiceberg("table", self.what).Transaction
        still = type("Transaction", (found,), {"table_metadata": property(lambda transaction: transaction._table.metadata)})
        return still(self.table)

    def history(self) -> Iterator[Any]:
        """Snapshots from the newest back, as far as they are kept."""
        snapshot = self.table.current_snapshot()
        while snapshot is not None:
            yield snapshot
            snapshot = self.table.metadata.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
