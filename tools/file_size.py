"""Keeps files readable in one sitting: no Python file is longer than the limit.

Called by `make check`; prints each file that is too long and exits with 1.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

LIMIT = 350
FOLDERS = ("src", "tests", "bench", "tools", "examples")


def too_long(root: Path, limit: int) -> Iterator[tuple[Path, int]]:
    """Each file over the limit, with its number of lines."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > limit:
                yield path.relative_to(root), lines


def main() -> int:
    found = list(too_long(Path(__file__).resolve().parent.parent, LIMIT))
    for path, lines in found:
        print(f"{path}: {lines} lines, the limit is {LIMIT}; split it by noun or verb")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
