"""Projects of Declarative Pipelines in a folder of their own, each with a database of its own in the session's catalog."""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from nosync.pipelines.running import Report, Wanted, follow_pipeline, run_pipeline
from nosync.pipelines.spec import Spec, read_spec

Rows = list[dict[str, Any]]
WRITING = ((os, "link"), (os, "fsync"), (Path, "unlink"), (Path, "mkdir"), (Path, "symlink_to"), (Path, "replace"), (Path, "write_text"),
           (shutil, "rmtree"), (pq, "write_table"))  # fmt: skip
"""How publishing changes the disk."""


class Project:
    """Files below `folder/transformations`, input below `folder/in`, tables in the database of the project's name."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, files: Mapping[str, str], more: str = "") -> None:
        self.spark, self.folder, self.name = spark, folder / name, name
        self.clock = time.time_ns() - 10**12
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {name} LOCATION '{folder / name / 'warehouse'}'")
        (self.folder / "transformations").mkdir(parents=True)
        libraries = "libraries:\n  - glob:\n      include: transformations/**\n"
        text = f"name: {name}\nstorage: file://{self.folder / 'storage'}\ndatabase: {name}\n{more}{libraries}"
        (self.folder / "spark-pipeline.yml").write_text(text)
        self.define(files)

    def define(self, files: Mapping[str, str]) -> None:
        for file, content in files.items():
            (self.folder / "transformations" / file).write_text(dedent(content).replace("{in}", str(self.folder / "in")))

    @property
    def spec(self) -> Spec:
        return read_spec(self.folder / "spark-pipeline.yml")

    def put(self, file: str, rows: Rows) -> None:
        """A file of JSON lines or CSV, moved in whole, younger than all before."""
        path = self.folder / "in" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            lines = [",".join(rows[0]), *(",".join("" if value is None else str(value) for value in row.values()) for row in rows)]
        else:
            lines = [json.dumps(row) for row in rows]
        temporary = path.with_name(f".{path.name}")
        temporary.write_text("\n".join(lines) + "\n")
        self.clock += 10**9
        os.utime(temporary, ns=(self.clock, self.clock))
        temporary.rename(path)

    def remove(self, file: str) -> None:
        (self.folder / "in" / file).unlink()

    def run(self, **wanted: Any) -> Report:
        return run_pipeline(self.spec, self.spark.newSession(), Wanted(**wanted))

    def follow(self, on_report: Callable[[Report], None]) -> None:
        follow_pipeline(self.spec, self.spark.newSession(), on_report)

    def table(self, name: str) -> list[tuple[Any, ...]]:
        """What anybody reads now."""
        rows = self.spark.newSession().table(f"{self.name}.{name}").collect()
        return sorted((tuple(row) for row in rows), key=repr)
