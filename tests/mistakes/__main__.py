"""`python -m tests.mistakes FILE`: the table with what is said now in place of what was said, to be read and compared."""

import os
import re
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from tests.mistakes.test_mistakes import TABLE, shown
from tests.mistakes.world import world

SPARKS = re.compile(r"(: \[[A-Z_.]+\]|: Sample).*")


def main(target: Path) -> None:
    folder = Path(tempfile.mkdtemp())
    found = []
    with world(SparkSession.builder.master("local[2]").config("spark.log.level", "ERROR").getOrCreate(), folder) as names:
        os.chdir(folder)
        for block in TABLE.strip().split("\n\n"):
            heading = [line for line in block.split("\n") if line.startswith("#")]
            call = block.split("\n")[len(heading)]
            first, hint, _ = shown(call, names | {"TMP": folder})
            found.append("\n".join([*heading, call, SPARKS.sub(r"\1...", first.splitlines()[0]), hint]))
    target.write_text("\n\n".join(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
