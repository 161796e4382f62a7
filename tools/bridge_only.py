"""Fails where anything but the bridge speaks to Spark's JVM: py4j and PySpark's private handles belong there."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HANDLES = re.compile(r"\bpy4j\b|\._(jdf|jvm|jsparkSession|jsc|jc|jrdd|jreader)\b")


def main() -> int:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if path.parent.name != "bridge"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if HANDLES.search(line)
    ]
    print("\n".join(found) or "only the bridge speaks to the JVM")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
