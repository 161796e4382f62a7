"""Paths as Spark and a project's file say them."""

from pathlib import Path
from urllib.parse import unquote, urlparse


def local(path: str) -> Path | None:
    """A path of this machine; None for an object store."""
    parts = urlparse(path)
    return Path(unquote(parts.path)) if parts.scheme in ("", "file") else None
