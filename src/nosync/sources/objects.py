"""Files in an object store as a source: `ns.files("s3://bucket/prefix")`, and whatever address a remote may have.

Objects are fetched into the home, `HOME/input/SOURCE/fetched/`, as they are taken, and read from there as files are; those of epochs that
are computed are removed again, and fetched anew if they are ever needed. A slice is that of `files`, and `etags`: an object that is not
the one that was taken is never read in its place.

A listing costs a request for every thousand names. Where names only ever grow, each look begins behind the last one that was taken and
ends when an epoch is full. Otherwise all names are listed; what is new among them is kept until epochs have taken it, and the next look
waits ten times as long as the last one took.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from nosync.model.errors import Invalid, Unavailable, Unreadable
from nosync.model.source import Position, Slice, Taken
from nosync.model.store import checked
from nosync.sources.cleaning import Cleaning
from nosync.sources.files import FORMATS, Files
from nosync.sources.listing import HIDDEN, Entry
from nosync.sources.location import Location
from nosync.state.private import make_folder
from nosync.store.addresses import address_of, client_of
from nosync.store.disk import whole_file
from nosync.store.failures import from_remote

LOOK_SECONDS = 1.0
REST = 10  # times as long as a listing of everything took
PAGE = 1000  # names in an answer of a store
KEPT_SLICES = 4  # whose objects stay fetched: epochs that are opened and not computed yet are among them


def object_files(
    address: str, format: str | None, schema: str | StructType | None, limits: tuple[int | None, int, int], clean: str, growing: bool,
    options: dict[str, Any],
) -> "ObjectFiles":
    """See `files`. `limits`: files and bytes of an epoch, and how old a file must be."""
    if (format or FORMATS[0]) not in FORMATS:
        raise Invalid(f'format "{format}" is not one of {", ".join(FORMATS)}', hint="Pass one of these as format=.")
    if clean != "off":
        raise Invalid(f'cleanSource="{clean}" is not possible in an object store', hint="Let the store expire objects.")
    most, size, age = limits
    nowhere = Path("/nonexistent")
    given = Location(nowhere), format or FORMATS[0], schema, most, size, options, Cleaning(nowhere), age
    return ObjectFiles(*given, growing=growing, address=address)


Found = tuple[Entry, str]
"""An object as it is listed, and its etag."""


@dataclass(eq=False)
class ObjectFiles(Files):
    """See `files`. `waiting` are new objects that were listed, the first one last; `fetched` those that no epoch has taken yet."""

    address: str = ""
    waiting: list[Found] = field(default_factory=list)
    fetched: dict[str, Found] = field(default_factory=dict)
    lately: list[list[str]] = field(default_factory=list)
    last: str = ""
    looked_at: float = 0.0
    pause: float = LOOK_SECONDS
    _client: ObjectStore | None = None

    def __repr__(self) -> str:
        return f'ns.files("{address_of(self.address)}", format="{self.format}")'

    def would_read(self, address: str) -> bool:
        return address.startswith(f"{self.address.rstrip('/')}/")

    folder = None  # type: ignore[assignment] # nobody else finds its files there

    def fetches_into(self) -> str:
        return str(self.path)

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.shown = address_of(self.address)
        self._client = client_of(self.address, os.environ)
        with tempfile.TemporaryDirectory() as folder:
            self.location = Location(Path(folder))
            if self.given is None and self.format != "text":
                first = next(self._listed(""), None)
                if first is None:
                    words = f'source "{name}": "{self.shown}" is empty, and no schema is given'
                    raise Invalid(words, hint='Pass schema="column type, ...".')
                self._fetch(first[0], first[1])
            return super().declare(name, spark)

    def start(self, folder: Path, taken: Taken) -> None:
        super().start(folder, taken)
        self.location, self.looked_at, self.pause = Location(folder / "fetched"), 0.0, LOOK_SECONDS
        self.waiting, self.fetched, self.lately = [], {}, []
        shutil.rmtree(self.path, ignore_errors=True)
        make_folder(self.path)
        self.last = taken.latest.get("last", "") if taken.latest else ""

    def available(self) -> Slice | None:
        due = bool(self.waiting) or time.monotonic() - self.looked_at >= self.pause
        if due:
            self._bring()
        found = super().available()
        if found is None:
            self.looked_at = time.monotonic() if due and self.growing else self.looked_at
            return None
        names = [entry[0] for entry in found["files"]]
        self.lately.append(names)
        self.last = max([self.last, *names])
        while len(self.lately) > KEPT_SLICES:
            for name in self.lately.pop(0):
                (self.path / checked(name)).unlink(missing_ok=True)
        return found | {"etags": {name: self.fetched.pop(name)[1] for name in names}, "last": self.last}

    def continue_from(self, position: Position) -> Slice:
        found = super().continue_from(position)
        return found | {"etags": {}, "last": max((name for name, _, _ in found["before"]), default="")}

    def _name_of(self, address: str) -> str | None:
        """Whatever the scheme is called: Spark says s3a."""
        found, own = urlsplit(address), urlsplit(self.address)
        path, prefix = unquote(found.path), f"{own.path.rstrip('/')}/"
        return path.removeprefix(prefix) if found.netloc == own.netloc and path.startswith(prefix) else None

    def _old_enough(self, entries: list[Entry]) -> list[Entry]:
        """Names that grow go by name, up to the first that was changed lately: `last` passes over none."""
        if not self.growing:
            return super()._old_enough(entries)
        in_order = sorted(entries, key=lambda entry: entry.name)
        return list(takewhile(lambda entry: bool(Files._old_enough(self, [entry])), in_order))

    def _bring(self) -> None:
        """Fetches what one epoch may take; the rest waits in the store."""
        most = min(self.max_bytes, self.allowed or self.max_bytes)
        count, total = len(self.fetched), sum(entry.size for entry, _ in self.fetched.values())
        for entry, etag in self._behind_the_last() if self.growing else self._from_the_first():
            if count and (total + entry.size > most or count == self.max_files):
                return
            if self._fetch(entry, etag):
                count, total = count + 1, total + entry.size
            elif self.growing:
                return  # it is listed again as it is now

    def _behind_the_last(self) -> Iterator[Found]:
        """What is new by name; no more is listed than is asked for."""
        for entry, etag in self._listed(self.last):
            if not self._old_enough([entry]):
                break
            if entry.name not in self.fetched and not self._is_skipped(entry.name):
                yield entry, etag
        self.looked_at = time.monotonic()

    def _from_the_first(self) -> Iterator[Found]:
        """What is new by time, of the last look or else of one now."""
        if not self.waiting:
            self._look()
        while self.waiting:
            yield self.waiting[-1]
            self.waiting.pop()

    def _look(self) -> None:
        begun = time.monotonic()
        new = [found for found in self._listed("") if found[0].name not in self.seen and found[0].name not in self.fetched]
        self.seen |= self._taken([entry.name for entry, _ in new])
        ready = {entry.name for entry in self._old_enough([entry for entry, _ in new])} - self.seen
        self.waiting = [found for found in new if found[0].name in ready]
        self.waiting.sort(key=lambda found: (found[0].modified, found[0].name), reverse=True)
        self.looked_at = time.monotonic()
        self.pause = max(LOOK_SECONDS, REST * (self.looked_at - begun))

    def _listed(self, after: str) -> Iterator[Found]:
        """All objects that are no hidden files, in the order of their names."""
        assert self._client is not None
        with self._failing("could not be listed"):
            for chunk in obstore.list(self._client, offset=after or None, chunk_size=PAGE):
                for found in chunk:
                    name = found["path"]
                    if not any(part.startswith(HIDDEN) for part in name.split("/")):
                        at = round(found["last_modified"].timestamp() * 1e6) * 1000
                        yield Entry(name, found["size"], at), str(found["e_tag"] or "")

    def _fetch(self, entry: Entry, etag: str) -> bool:
        """The object becomes a file with the facts of the object; whole or not at all. False where it changed after it was listed."""
        assert self._client is not None
        target = self.path / checked(entry.name)

        def dated(beginning: str, path: Path) -> None:
            os.utime(beginning, ns=(entry.modified, entry.modified))
            os.replace(beginning, path)

        with self._failing(f'"{entry.name}" could not be fetched'):
            try:
                found = obstore.get(self._client, entry.name, options={"if_match": etag} if etag else {})
                with whole_file(target, dated) as file:
                    for block in found.stream():
                        file.write(block)
            except FileNotFoundError:
                return True  # it is gone: `files` finds that out
            except BaseError as error:
                if "Precondition" in type(error).__name__:
                    return False
                raise
        self.fetched[entry.name] = entry, etag
        return True

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            failure = from_remote(error, f"{what} at {self.shown}", write=False)
            raise Unavailable(f'source "{self.name}": {failure.message}', failure.hint) from None

    def _paths(self, slice: Slice) -> list[str]:
        wanted = [Entry(*entry) for entry in slice["files"] if entry[0] not in slice.get("broken", {}) and entry[0] not in self.skipped]
        for entry in wanted:
            if not (self.path / checked(entry.name)).exists():
                self._fetch(entry, slice["etags"][entry.name])
                self.fetched.pop(entry.name, None)
            if not (self.path / entry.name).exists():
                way_out = f'nosync skip HOME "{self.name}" "{entry.name}"'
                words = f'source "{self.name}": object "{entry.name}" of {self.shown} is gone, or is not the one that was taken'
                raise Unreadable(words, f"Put it back as it was: its epoch is needed again. Or set it aside for good: {way_out}")
        return super()._paths(slice)

    def reopen(self, slice: Slice, unreadable: Mapping[str, str]) -> Slice:
        found = super().reopen(slice, unreadable)
        return found if found == slice else found | {"etags": slice["etags"], "last": slice["last"]}

    def together(self, slices: Any) -> Slice:
        return super().together(slices) | {"etags": {name: etag for slice in slices for name, etag in slice["etags"].items()}}
