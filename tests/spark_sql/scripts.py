"""Spark's input files: statements between semicolons, settings and imports in comments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INPUTS = Path("sql/core/src/test/resources/sql-tests/inputs")
SETTING = re.compile(r"(spark\.[\w.]+)=([^,]*(?:,(?!\s*spark\.)[^,]*)*)")
DELIMITED = re.compile(r"^--QUERY-DELIMITER-START\n(.*?)^--QUERY-DELIMITER-END\n?", re.DOTALL | re.MULTILINE)
ASKS = ("select", "with", "from", "values", "table", "(")


@dataclass(frozen=True, slots=True)
class Script:
    """A file: what is set before its statements, and these in order."""

    name: str
    settings: tuple[tuple[str, str], ...]
    statements: tuple[str, ...]


def script(path: Path, inputs: Path) -> Script:
    text = path.read_text()
    notes = [line.strip() for line in text.splitlines() if line.strip().startswith("--")]
    settings = [pair for note in notes if note.startswith("--SET") for pair in SETTING.findall(note)]
    imported = [script(inputs / note.split()[1], inputs) for note in notes if note.startswith("--IMPORT")]
    statements = [one for other in imported for one in other.statements]
    return Script(str(path.relative_to(inputs)), tuple(settings), (*statements, *_statements(text)))


def _statements(text: str) -> Iterator[str]:
    rest = 0
    for found in DELIMITED.finditer(text):
        yield from _split(text[rest : found.start()])
        yield found[1].strip().removesuffix(";")
        rest = found.end()
    yield from _split(text[rest:])


def _split(text: str) -> Iterator[str]:
    code = "\n".join(line for line in text.splitlines() if not line.strip().startswith("--"))
    for part in re.split(r"(?<!\\);", code):
        if part.strip():
            yield part.strip()


def asks(statement: str) -> bool:
    """Whether a statement is a query, rather than a command."""
    words = re.sub(r"/\*.*?\*/|--[^\n]*", "", statement, flags=re.DOTALL).strip().lower()
    return words.startswith(ASKS) and not re.match(r"(with|from)\b.*\binsert\s+(into|overwrite)\b", words, re.DOTALL)
