"""From the address of a remote to a client for it.

    s3://bucket/prefix  gs://bucket/prefix  az://container/prefix  file:///folder  memory://name

Clients take credentials, endpoints and regions from the environment, as `obstore` does: AWS_*, GOOGLE_*, AZURE_*. Their limits are short,
so that a remote that does not answer is known soon; AWS_TIMEOUT and the like lengthen them.
"""

import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from obstore.exceptions import BaseError
from obstore.store import MemoryStore, ObjectStore, from_url

from nosync.model.errors import Invalid
from nosync.model.secrets import redacted
from nosync.state.private import make_folder
from nosync.store.disk import failing_as

CLOUDS = {"s3": "AWS", "s3a": "AWS", "gs": "GOOGLE", "az": "AZURE", "abfs": "AZURE", "abfss": "AZURE"}
POSSIBLE = "Use s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, file:///folder or memory://name."

ENVIRONMENT = "Give them in the environment (such as AWS_SECRET_ACCESS_KEY): addresses are recorded and shown, and no client looks there."

LIMITS = {"connect_timeout": "5s", "timeout": "60s"}
SWITCHES = ("allow_http", "allow_invalid_certificates")
TEXTS = ("connect_timeout", "timeout", "proxy_url", "proxy_ca_certificate", "proxy_excludes", "user_agent")
RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=60)}

_memory: dict[str, MemoryStore] = {}
_memory_lock = threading.Lock()


def address_of(url: str) -> str:
    """The address as it may be shown and recorded: without passwords, keys or signatures."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    kept = f"{user}@{host}" if user and ":" not in user else host  # Azure has the container there
    return urlunsplit((parts.scheme, kept, parts.path.rstrip("/") if kept else parts.path, "", ""))


def client_of(url: str, environment: Mapping[str, str]) -> ObjectStore:
    """A client for the address. Nothing is sent yet. `Invalid` for an address that no client understands."""
    parts = urlsplit(url)
    if parts.scheme == "memory":
        with _memory_lock:
            return _memory.setdefault(parts.netloc + parts.path, MemoryStore())
    if parts.scheme not in CLOUDS:
        raise Invalid(f'remote "{address_of(url)}" is not an address', hint=POSSIBLE)
    check_bucket(parts)
    if redacted(url) != url or parts.query or parts.fragment:
        raise Invalid(f'remote "{address_of(redacted(url))}" was given with credentials or options in its address', hint=ENVIRONMENT)
    options = _client_options(CLOUDS[parts.scheme], environment)
    try:
        return cast(ObjectStore, from_url(url, client_options=options, retry_config=RETRIES))  # type: ignore[call-overload]
    except (BaseError, ValueError) as error:
        raise Invalid(f'remote "{address_of(url)}" cannot be opened: {str(error).splitlines()[0]}', hint=POSSIBLE) from None


def check_bucket(parts: SplitResult) -> None:
    """Of an address of an object store."""
    if not parts.netloc:
        noun = "container" if CLOUDS[parts.scheme] == "AZURE" else "bucket"
        raise Invalid(f'"{parts.scheme}://{parts.path}" names no {noun}', hint=f"Write {parts.scheme}://{noun}/prefix.")


def folder_of(parts: SplitResult, url: str) -> Path:
    """The folder of a file:// address; made if it is not there."""
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise Invalid(f'remote "{url}" does not name a folder from the root', hint="Write file:///folder, with three slashes.")
    folder = Path(unquote(parts.path))
    with failing_as(f'"{folder}" could not be made'):
        make_folder(folder)
    return folder


def _client_options(prefix: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Our limits and what the environment says. (A client that is given options does not look for them there.)"""
    given = {key: environment[f"{prefix}_{key.upper()}"] for key in SWITCHES + TEXTS if f"{prefix}_{key.upper()}" in environment}
    return LIMITS | {key: value.lower() in ("true", "1") if key in SWITCHES else value for key, value in given.items()}
