"""docs/from-declarative-pipelines.md: the project of the page runs as it stands, and the flow beside it has the same rows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nosync.pipelines.running import run_pipeline
from nosync.pipelines.spec import read_spec

PAGE = (Path(__file__).parents[2] / "docs" / "from-declarative-pipelines.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
TABLES = ("orders", "customers", "by_town", "seen", "best", "small", "events", "accounts", "account_history")


def write(path: str, *rows: dict[str, Any]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def events(*said: tuple[int, str, int, str]) -> list[dict[str, Any]]:
    return [dict(zip(("account", "holder", "version", "op"), one)) for one in said]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    prices = [3.0, 12.0, 20.0, 4.0]
    write("in/orders/1.json", *({"id": i, "customer": i % 2, "price": price, "day": "mon"} for i, price in enumerate(prices)))
    write("in/events/1.json", *events((1, "ann", 1, "UPSERT"), (1, "anna", 2, "UPSERT"), (2, "bob", 1, "UPSERT"), (2, "bob", 3, "DELETE")))
    Path("in/customers").mkdir()
    Path("in/customers/1.csv").write_text("customer,town\n0,Ulm\n1,Bern\n")
    return tmp_path


def test_each_construct_beside_a_flow(quick: SparkSession, folder: Path) -> None:
    blocks = BLOCK.findall(PAGE)
    (folder / "spark-pipeline.yml").write_text(next(text for language, text in blocks if language == "yaml") + "database: page\n")
    for _, text in blocks:
        if file := re.match(r"(?:#|--) (transformations/\S+)", text):
            Path(file[1]).parent.mkdir(exist_ok=True)
            Path(file[1]).write_text(text.replace('"in/', f'"{folder}/in/'))  # the JVM of the tests was started elsewhere
    session = quick.newSession()
    session.sql(f"CREATE DATABASE page LOCATION '{folder / 'warehouse'}'")
    run_pipeline(read_spec(folder / "spark-pipeline.yml"), session)
    names: dict[str, Any] = {}
    program = "".join(text for language, text in blocks if language == "python" and text.startswith("# as a flow"))
    exec(compile(program.replace('ns.Flow("same")', 'ns.Flow("same", spark)'), "page", "exec"), names | {"spark": session}, names)
    with names["flow"].start(home=folder / "same", quiet=True) as run:
        run.processAllAvailable()
        for name in TABLES:
            view = run.view(name)
            table = session.table(f"page.{name}").select(*view.columns)
            assert sorted(map(tuple, table.collect()), key=repr) == sorted(map(tuple, view.collect()), key=repr), name
