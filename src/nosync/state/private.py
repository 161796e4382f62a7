"""Files and folders that only their owner reads: whatever this library makes for itself, on whatever umask.

What is there already keeps the permissions that somebody gave it.
"""

import os
from pathlib import Path

FILE, FOLDER = 0o600, 0o700


def open_private(path: str, flags: int) -> int:
    """For the `opener` of `open`."""
    return os.open(path, flags, FILE)


def make_folder(folder: Path) -> None:
    """The folder, with those above it that are missing."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent)
    folder.mkdir(FOLDER, exist_ok=True)
