"""One engine in a process of its own: `python -m bench.worker SPEC.json` writes the outcome beside the specification.

The parent (`bench.measure`) watches this process and all it starts, so nothing else happens here.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.engines import ENGINES, Task
from bench.inputs import Input
from bench.session import open_session


def main(path: Path) -> None:
    """Run what the specification asks for; a failure ends the process with its traceback."""
    spec: dict[str, Any] = json.loads(path.read_text())
    task = Task(Input(**spec["data"]), spec["query"], spec["state"], spec["levels"])
    session = open_session(spec["engine"], spec["heap"], path.parent / "scratch")
    outcome = ENGINES[spec["engine"]](session, task)
    path.with_name("outcome.json").write_text(json.dumps(asdict(outcome)))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
