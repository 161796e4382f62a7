"""Which folders may be the home of a flow, and where its remote may not be. Asked before anything is written there."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from nosync.journal.names import INPUT, LAYERS, LEASES, READERS, RECEIPTS, RUNS, STANDBYS, own
from nosync.model.errors import Invalid
from nosync.store.disk import BEGINNING

# what a folder may hold before its first run is recorded
OWN = {RUNS, "journal", LAYERS, INPUT, LEASES, STANDBYS, READERS, RECEIPTS, "synced", "suspect", "pace", "lost+found"}
WARM_UP = ".warm-up-"  # what folders begin with that nobody but their maker looks into


def refuse_foreign_folder(folder: Path) -> None:
    """Refuses a folder that holds something else and is not a home: files of ours come and go in there."""
    if own(f"{RUNS}/{path.name}" for path in folder.glob(f"{RUNS}/*")):
        return
    others = [path.name for path in folder.glob("*") if path.name not in OWN and not _is_beginning(path.name)]
    if others:
        raise Invalid(
            f'"{folder}" is not the home of a flow, and not empty: it holds "{min(others)}"',
            hint="Pass a folder of its own as home=, one that is empty or not there yet.",
        )


def _is_beginning(name: str) -> bool:
    return BEGINNING.fullmatch(name) is not None or name.startswith(WARM_UP)


def refuse_remote_at_home(home: Path, url: str) -> None:
    """Refuses a remote in the very folder of the home: it would be said to survive what it does not, and each would take the other's files
    for its own.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and Path(unquote(parts.path)).resolve().is_relative_to(home.resolve()):
        raise Invalid(
            f'remote "{url}" lies in the home "{home}": whatever takes the one takes the other',
            hint="Pass a folder of another machine that is mounted here, or an object store.",
        )
