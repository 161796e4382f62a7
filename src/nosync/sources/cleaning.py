"""What becomes of files that no failure can ask for again. Names are Spark's (`cleanSource`, `sourceArchiveDir`)."""

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nosync.model.errors import Invalid
from nosync.model.store import checked

KINDS = ("off", "archive", "delete")


@dataclass(frozen=True, slots=True)
class Cleaning:
    """For one folder of files."""

    folder: Path
    kind: str = "off"
    archive: Path | None = None

    def clean(self, relative: str) -> None:
        """Idempotent: a file that is gone was cleaned before."""
        file = self.folder / checked(relative)
        if self.kind == "delete":
            file.unlink(missing_ok=True)
        elif self.archive is not None:
            target = self.archive / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                shutil.move(file, target)


def cleaning_of(folder: Path, kind: str, archive: str | Path | None) -> Cleaning:
    if kind not in KINDS:
        raise Invalid(f'cleanSource="{kind}" is not one of {", ".join(KINDS)}', hint="Pass one of these, or leave it out.")
    if (kind == "archive") != (archive is not None):
        raise Invalid('cleanSource="archive" and sourceArchiveDir= belong together', hint="Pass both, or neither.")
    destination = None if archive is None else Path(archive)
    if destination is not None and destination.resolve().is_relative_to(folder.resolve()):
        hint = "Choose a folder outside: else archived files are read again."
        raise Invalid(f'sourceArchiveDir="{destination}" lies inside the source', hint=hint)
    return Cleaning(folder, kind, destination)
