"""Spark's own way of running a project, for comparing: one Spark Connect session in a process of its own, which runs projects as
`spark-pipelines run` does, one command a line.

`{"spec": PATH, "full_refresh": [...], "full_refresh_all": false, "refresh": [...]}` runs a project: the answer is `{"seconds": ...}` or
`{"error": ...}`. `{"tables": [...]}` is answered by `{"rows": {TABLE: [[...], ...]}}`, sorted by their text.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


class SparksOwn:
    """The process, from the side of whoever asks. Its catalog lives as long as it does; its warehouse lies in `folder`."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "SETTINGS": json.dumps(settings or {})}
        command = [sys.executable, str(Path(__file__).resolve())]
        self.log = (folder / "sparks-own.log").open("w")
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )

    def run(self, spec: Path, **wanted: Any) -> float:
        return float(self._ask({"spec": str(spec), **wanted})["seconds"])

    def rows(self, tables: Sequence[str]) -> dict[str, list[list[Any]]]:
        found: dict[str, list[list[Any]]] = self._ask({"tables": list(tables)})["rows"]
        return found

    def sql(self, text: str) -> None:
        self._ask({"sql": text})

    def _ask(self, command: dict[str, Any]) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                said = json.loads(line)
                assert "error" not in said, said["error"]
                return said
        raise AssertionError(f"the process of Spark's own ended: {self.log.name}")

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(60)
        self.log.close()


@contextlib.contextmanager
def sparks_own(folder: Path, settings: dict[str, str] | None = None) -> Iterator[SparksOwn]:
    found = SparksOwn(folder, settings)
    try:
        yield found
    finally:
        found.close()


def plain(rows: Sequence[Any]) -> list[list[Any]]:
    """Rows as JSON has them, in an order of their own. Doubles are rounded: Spark adds them up in any order."""
    said = [[round(value, 6) if isinstance(value, float) else value if isinstance(value, int) else None if value is None else str(value)
             for value in row] for row in rows]  # fmt: skip
    return sorted(said, key=repr)


def main() -> None:
    from pyspark.pipelines import cli
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    for name, value in json.loads(os.environ["SETTINGS"]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()

    def run(spec: str, **wanted: Any) -> dict[str, Any]:
        begun = time.monotonic()
        found = cli.load_pipeline_spec(Path(spec))
        with contextlib.redirect_stdout(sys.stderr):
            graph = create_dataflow_graph(spark, found.catalog, found.database, found.configuration)
            cli.register_definitions(Path(spec), SparkConnectGraphElementRegistry(spark, graph), found, spark, graph)
            asked = {"full_refresh": [], "full_refresh_all": False, "refresh": [], **wanted}
            handle_pipeline_events(start_run(spark, graph, dry=False, storage=found.storage, **asked))
        return {"seconds": time.monotonic() - begun}

    def rows_of(name: str) -> list[list[Any]]:
        rows = spark.table(name)
        return plain(rows.select(sorted(rows.columns)).collect())

    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "tables" in command:
                said: dict[str, Any] = {"rows": {name: rows_of(name) for name in command["tables"]}}
            elif "sql" in command:
                said = {"done": len(spark.sql(command["sql"]).collect())}
            else:
                said = run(**command)
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {str(error)[:2000]}"}
        print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
