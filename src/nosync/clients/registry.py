"""A schema registry, through its plain HTTP API: the text of a schema by its number.

An address may have a user and a password in it (`http://user:password@host`); they are sent, and never shown.
"""

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from nosync.model.errors import Invalid, Unavailable

PATIENCE = 10.0  # seconds that it may take to answer
ACCEPTED = "application/vnd.schemaregistry.v1+json, application/json"


@dataclass(frozen=True)
class Written:
    """A schema as its writer registered it. `before`: those that it refers to, in an order in which they can be read."""

    text: str
    kind: str = "AVRO"
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Registry:
    """Asked by the driver whether it is there, and by tasks for schemas."""

    address: str = field(repr=False)

    @property
    def shown(self) -> str:
        """Without user and password."""
        parts = urlsplit(self.address)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def check(self, what: str) -> None:
        """Whether it may be asked: `Unavailable` where nobody answers."""
        if urlsplit(self.address).scheme not in ("http", "https") or not urlsplit(self.address).hostname:
            raise Invalid(f'{what}: "{self.shown}" is no address of a registry', hint='Pass registry="http://host:8081".')
        self._get("")

    def schema(self, number: int) -> Written | None:
        """None where it has no such schema."""
        found = self._get(f"/schemas/ids/{number}")
        return None if found is None else self._written(found)

    def _written(self, found: dict[str, Any]) -> Written:
        before: dict[str, None] = {}
        for reference in found.get("references") or ():
            version = self._get(f"/subjects/{quote(reference['subject'], safe='')}/versions/{int(reference['version'])}")
            inner = None if version is None else self._written(version)
            before |= dict.fromkeys((*inner.before, inner.text) if inner is not None else ())
        return Written(found["schema"], found.get("schemaType") or "AVRO", tuple(before))

    def _get(self, path: str) -> dict[str, Any] | None:
        parts = urlsplit(self.address)
        request = urllib.request.Request(self.shown.rstrip("/") + path, headers={"Accept": ACCEPTED})
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            request.add_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                found = json.load(answer) if path else None
                return found if isinstance(found, dict) else None
        except urllib.error.HTTPError as error:
            with error:
                self._check(error.code, bool(path))
                return None
        except (OSError, ValueError) as error:
            words = error.reason if isinstance(error, urllib.error.URLError) else error
            raise Unavailable(f"the schema registry {self.shown} does not answer: {words}", hint="It is asked again.") from None

    def _check(self, code: int, asked: bool) -> None:
        """Raises, unless it says that there is no such thing."""
        if code in (401, 403):
            hint = "Put user and password into its address: registry=\"http://user:password@host:8081\"."
            raise Invalid(f"the schema registry {self.shown} refuses (HTTP {code})", hint=hint)
        if asked and code != 404:
            raise Unavailable(f"the schema registry {self.shown} answers with HTTP {code}", hint="It is asked again.")
