"""Options of `ns.files` for Spark's readers: a name that Spark does not know is refused, with the nearest known one, and so is one that
would make the source break what it promises.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nosync.model.arguments import did_you_mean
from nosync.model.errors import Invalid

OWN = ("format", "schema", "maxFilesPerTrigger", "maxBytesPerTrigger", "cleanSource", "sourceArchiveDir", "minFileAge")
USUAL = {"parquet": {"mergeschema"}, "csv": {"header", "sep", "inferschema"}, "json": {"multiline"}}
REJECTED = "Leave it out: rows that do not fit the schema go to the view <source>.rejected, and never stop the flow."
INSTEAD = {
    "latestfirst": "Leave it out: files are taken in the order of their time, and a file that comes later is taken whatever its time.",
    "maxfileage": "Leave it out: a file is taken whatever its age.",
    "filenameonly": "Leave it out: a file is known by its path below the folder.",
    "maxcachedfiles": "Leave it out: which files are new is found out anew each time.",
    "pathglobfilter": 'Write the glob into the path: ns.files("in/*.csv").',
    "basepath": "Leave it out: it is the folder of the source.",
    "path": "Pass the path first: ns.files(path, ...).",
    "mode": REJECTED,
    "columnnameofcorruptrecord": REJECTED,
    "badrecordspath": REJECTED,
}


def check_options(source: str, format: str, options: Mapping[str, Any], known: Callable[[], Iterable[str]]) -> None:
    """`known` gives the names that Spark has for the format; it is asked where one is not among the most usual."""
    for name in options:
        what = f'source "{source}": {name}={options[name]!r}' if name.lower() in INSTEAD else f'source "{source}": option "{name}"'
        if name.lower() in INSTEAD:
            raise Invalid(f"{what} is not possible", hint=INSTEAD[name.lower()])
        if name.lower() in USUAL.get(format, ()):
            continue
        names = list(known())
        if name.lower() not in {one.lower() for one in names}:
            meant = did_you_mean(name, [*OWN, *names], "{}=")
            hint = f"{meant}Other options are those of spark.read for {format}."
            raise Invalid(f"{what} is not known for {format} files", hint=hint)


def literal(path: str) -> str:
    """The path for Spark's readers, which take each for a glob: a file may be called "a*" or "[1].csv", and then that one is meant."""
    return "".join(f"\\{c}" if c in "{}[]*?\\" else c for c in path)
