"""Files and links outside of the home that last, whole, once a call comes back: other programs read them, and nobody syncs them behind."""

import os
from pathlib import Path

from nosync.state.private import make_folder, open_private


def sync(path: Path) -> None:
    """The content of a file, or the names in a folder, survive a restart of the host."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path, files: bool = True) -> None:
    """The folder with all below it; without `files` names alone, where their contents were synced before."""
    for here, _, names in os.walk(folder, topdown=False):
        for name in names if files else ():
            sync(Path(here) / name)
        sync(Path(here))


def put(target: Path, content: bytes) -> None:
    """The file with this content, in the place of what was there, at once."""
    temporary = target.with_name(f".begun-{target.name}.{os.getpid()}")
    temporary.write_bytes(content)
    put_whole(temporary, target)


def put_private(target: Path, content: bytes) -> None:
    """As `put`, for its owner alone, in a folder that is made."""
    make_folder(target.parent)
    temporary = target.with_name(f".begun-{target.name}.{os.getpid()}")
    with open(temporary, "wb", opener=open_private) as file:
        file.write(content)
    put_whole(temporary, target)


def put_whole(temporary: Path, target: Path) -> None:
    """A file that was written under another name, under its own."""
    sync(temporary)
    temporary.replace(target)
    sync(target.parent)


def point(link: Path, target: str) -> None:
    """A link to a folder, in the place of whatever link was there, at once."""
    temporary = link.with_name(f".begun-{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target, target_is_directory=True)
    temporary.replace(link)
    sync(link.parent)
