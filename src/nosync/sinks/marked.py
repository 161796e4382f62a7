"""A folder that has the output of one history, written by its newest run.

    FOLDER/_nosync.json    whose output this is, and the run that writes it now; readers of such folders pass over names that begin so
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from nosync.model.errors import MALFORMED, Fenced, Invalid
from nosync.model.sink import Identity
from nosync.store.lasting import put

MARKER = "_nosync.json"


@dataclass
class MarkedFolder:
    """The folder of one sink. `outputs` is a glob of what a sink leaves there."""

    folder: Path
    outputs: str
    run: str = ""

    def open(self, run: str, identity: Identity) -> None:
        """Takes the folder over for a run; `Invalid` where it is another's, or cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._check(identity)
            for begun in self.folder.rglob(".begun-*"):  # by a run that was killed
                begun.unlink(missing_ok=True)
            put(self.folder / MARKER, json.dumps({**asdict(identity), "run": run}).encode())
        except OSError as error:
            words = f'sink "{identity.sink}": folder "{self.folder}" cannot be written: {error.strerror or error}'
            raise Invalid(words, hint="Choose another folder, or restore access.") from None
        self.run = run

    def _check(self, identity: Identity) -> None:
        """Two histories in one folder are nobody's output."""
        found = self._marked()
        if found is None and next(self.folder.glob(self.outputs), None) is None:
            return
        owner = Identity(found["flow"], found["sink"], found["history"]) if found else None
        if owner == identity:
            return
        whose = f'flow "{owner.flow}", sink "{owner.sink}"' if owner else "nobody knows whom"
        if owner and (owner.flow, owner.sink) == (identity.flow, identity.sink):
            whose = "the same flow on another home"
        raise Invalid(
            f'sink "{identity.sink}": folder "{self.folder}" has the output of {whose}',
            hint="Choose an empty folder, or move what is there away: two histories in one folder would be read as one.",
        )

    def _marked(self) -> dict[str, str] | None:
        try:
            found = json.loads((self.folder / MARKER).read_bytes())
            return {name: str(found[name]) for name in ("flow", "sink", "history", "run")}
        except FileNotFoundError:
            return None
        except MALFORMED:
            raise Invalid(f'"{self.folder / MARKER}" cannot be read', hint="Choose an empty folder, or move what is there away.") from None

    def check_run(self) -> None:
        """`Fenced` once a newer run writes here."""
        marked = self._marked()
        if marked is None:
            raise FileNotFoundError(f'"{MARKER}" is gone')
        if marked["run"] != self.run:
            raise Fenced(f'folder "{self.folder}" is now written by run "{marked["run"]}"', hint="Stop this process: that one took over.")
