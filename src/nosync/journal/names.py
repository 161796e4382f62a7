"""Names of files in a home. Each carries the run that made it, so that no two ever meet."""

import uuid
from urllib.parse import quote


def layer_path(operator: str, shard: int, lower: int, upper: int, run: str) -> str:
    """A name that no other attempt will ever use."""
    return f"layers/{quote(operator, safe='')}/{shard}/{lower}-{upper}-{run}-{uuid.uuid4().hex[:8]}.arrow"


def source_folder(source: str) -> str:
    """Where a source keeps what it cannot read again."""
    return f"input/{quote(source, safe='')}"
