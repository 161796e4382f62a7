"""Slices as the journal gives them back: what a source hands out is held to that before it is recorded or read.

A source must be able to read a slice years later, so it is never given one that it would not be given then. Pure.
"""

import json
from typing import Any

from nosync.model.errors import Failed
from nosync.model.source import Slice

HINT = "available() must give a dict with texts as keys, of texts, numbers, booleans, None, lists and dicts of those. Nothing was recorded."


def as_recorded(source: str, slice: Any) -> Slice:
    """The slice after a way through JSON, as every later run will see it; `Failed` where it has something that JSON has not."""
    if not isinstance(slice, dict):
        raise Failed(f'source "{source}" gave a slice that is a {type(slice).__name__}, not a dict', hint=HINT)
    try:
        _check_keys(slice)
        found: Slice = json.loads(json.dumps(slice, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise Failed(f'source "{source}" gave a slice that JSON cannot hold: {error}', hint=HINT) from None
    return found


def _check_keys(value: Any) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is no text")
            _check_keys(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_keys(inner)
