"""Where the files of a source are: a folder, and which of the files below it, as people write that: a folder, a glob, or one file.

A glob has `*` and `?` for parts of one name, `**` for any folders, `[ab]` and `{ab,cd}` for alternatives, as Spark's have; what it matches
may be a folder, with all that is below.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nosync.model.errors import Invalid

GLOB = re.compile(r"[*?\[{]")
ADDRESS = re.compile(r"([A-Za-z][\w+.-]*):(?://|[/\\])")
SUFFIXES = {
    ".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".tsv": "csv", ".txt": "text",
    ".log": "text", ".orc": "orc",
}  # fmt: skip
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".xz", ".snappy")
LOOKED_AT = 100  # names of a folder


@dataclass(frozen=True)
class Location:
    """A folder, and a glob of the files below it that are meant; without one, all are."""

    folder: Path
    pattern: str = ""

    @cached_property
    def fits(self) -> Callable[[str], bool]:
        """Whether a name below the folder is meant."""
        if not self.pattern:
            return lambda name: True
        expression = re.compile(f"{_expression(self.pattern)}(?:/.*)?")
        return lambda name: expression.fullmatch(name) is not None

    def holds(self, file: Path) -> bool:
        """Whether a file with this path would be read."""
        return file.is_relative_to(self.folder) and self.fits(str(file.relative_to(self.folder)))

    def __str__(self) -> str:
        return str(self.folder / self.pattern)


def location_of(path: str | Path) -> Location:
    """Reads `path=` of `ns.files`."""
    said = str(path).removeprefix("file://")
    if (address := ADDRESS.match(said)) is not None:
        hint = f"Mount it, or copy its files into a folder, and pass that: there is no reader for {address[0]} yet."
        raise Invalid(f'ns.files reads folders of this machine, "{said}" is none', hint=hint)
    if not said.strip():
        raise Invalid("ns.files was given no path", hint='Pass a folder, a file or a glob: ns.files("in/*.csv").')
    found = Path(said).absolute()
    if found.is_file():
        return Location(found.parent, "".join(f"[{c}]" if c in "*?[{" else c for c in found.name))
    if found.exists() or not GLOB.search(said):
        return Location(found)
    parts = found.parts
    first = next(number for number, part in enumerate(parts) if GLOB.search(part))
    return Location(Path(*parts[:first]), "/".join(parts[first:]))


def format_said_by(location: Location) -> str:
    """Where the user did not say it. What lies in a folder changes with time: it does not decide, but may show that it was forgotten."""
    found = format_of(location)
    if found is not None and found != "parquet" and not location.pattern:
        raise Invalid(f'the files in "{location}" are {found} by their names, and format= is not said', hint=f'Pass format="{found}".')
    return found or "parquet"


def format_of(location: Location) -> str | None:
    """What the names say: that of the glob or file, else those in the folder, where they agree."""
    if location.pattern:
        return _by_suffix(location.pattern)
    try:
        names = [path.name for path, _ in zip(location.folder.iterdir(), range(LOOKED_AT)) if not path.name.startswith(("_", "."))]
    except OSError:
        return None
    found = {_by_suffix(name) for name in names}
    return found.pop() if len(found) == 1 else None


def _by_suffix(name: str) -> str | None:
    path = Path(name.lower())
    return SUFFIXES.get(path.with_suffix("").suffix if path.suffix in PACKED else path.suffix)


def _expression(pattern: str) -> str:
    """A glob as a regular expression over a whole name."""
    found, position = [], 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            found.append("(?:.*/)?")
            position += 3
        elif (listed := re.compile(r"\[([^\]]+)\]|\{([^}]*)\}").match(pattern, position)) is not None:
            found.append(_one_of(listed[1]) if listed[1] else f"(?:{'|'.join(map(_expression, listed[2].split(',')))})")
            position = listed.end()
        else:
            letter = pattern[position]
            found.append({"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter)))
            position += 1
    return "".join(found)


def _one_of(letters: str) -> str:
    negated = letters.startswith(("!", "^")) and len(letters) > 1
    listed = re.sub(r"([\\^\[\]])", r"\\\1", letters[negated:])
    return f"[^{listed}]" if negated else f"[{listed}]"
