"""Calls that need a package which is not installed say which, and how to install it."""

import ast
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nosync as ns
from nosync.cli.table import where
from nosync.flow.listeners import all_listeners
from nosync.pipelines.loading import load_project
from nosync.pipelines.spec import read_spec
from nosync.sources.avro_types import avro_schema
from tests.security.homes import whole_home

ROOT = Path(__file__).parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys() - {"dev", "docs"}
AVRO = '{"type": "record", "name": "r", "fields": [{"name": "x", "type": "long"}]}'


def metrics() -> None:
    with all_listeners("shop", [], True, 0):
        pass


def pipeline() -> None:
    load_project(None, None)  # type: ignore[arg-type]


CALLS: list[tuple[str, str, str, Callable[[], Any]]] = [
    ("duckdb", "sql", "SQL without Spark", lambda: ns.open(whole_home()).sql("select 1")),
    ("duckdb", "sql", "--where", lambda: where(pa.table({"x": [1]}), "x > 0")),
    ("prometheus_client", "metrics", "metrics_port=", metrics),
    ("opentelemetry", "tracing", "ns.tracing", ns.tracing),
    ("confluent_kafka", "kafka", 'topic "orders" of Kafka', lambda: ns.to_kafka("localhost:1", "orders")),
    ("confluent_kafka", "kafka", "ns.kafka", lambda: ns.kafka("localhost:1", "orders")),
    ("fastavro", "kafka", "Avro", lambda: avro_schema(AVRO, "Avro")),
    ("psycopg", "postgres", 'table "spend" of PostgreSQL', lambda: ns.to_postgres("postgresql://u@localhost:1/d", "spend", key="user")),
    ("deltalake", "delta", 'Delta table "/orders"', lambda: ns.delta("/orders")),
    ("deltalake", "delta", 'Delta table "/spend"', lambda: ns.to_delta("/spend")),
    ("pyiceberg", "iceberg", 'Iceberg table "shop.orders"', lambda: ns.iceberg({}, "shop.orders")),
    ("pyiceberg", "iceberg", 'Iceberg table "shop.spend"', lambda: ns.to_iceberg({}, "shop.spend")),
    ("yaml", "pipelines", "a file of a pipeline", lambda: read_spec(Path("spark-pipeline.yml"))),
    *((package, "pipelines", "pyspark.pipelines", pipeline) for package in ("grpc", "grpc_status", "google", "zstandard")),
]


@pytest.mark.parametrize(("package", "extra", "what", "call"), CALLS, ids=lambda given: given if isinstance(given, str) else "")
def test_a_package_that_is_not_there_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, package: str, extra: str, what: str, call: Callable[[], Any]
) -> None:
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    with pytest.raises(ns.Invalid) as error:
        call()
    assert error.value.message == f"{what} needs the package {package}, which is not installed"
    assert error.value.hint == f"Install it: pip install 'nosync[{extra}]'"


def test_a_package_that_is_there_but_broken_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("import a_library_that_is_not_there")
    monkeypatch.delitem(sys.modules, "duckdb", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ns.Invalid, match="which cannot be imported: No module named 'a_library_that_is_not_there'"):
        where(pa.table({"x": [1]}), "x > 0")


def test_every_extra_is_asked_for_in_one_way() -> None:
    assert {extra for _, extra, _, _ in CALLS} == EXTRAS
    packages = {package for package, _, _, _ in CALLS} - {"google"}
    assert {f"{file.name}: {name}" for file in (ROOT / "src").rglob("*.py") for name in imported(file) if name in packages} == set()


def imported(file: Path) -> Iterator[str]:
    """Packages, but for those that only a checker of types sees."""
    tree = ast.parse(file.read_text())
    checked = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    unseen = {node for one in checked for node in ast.walk(one)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in unseen:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (name.partition(".")[0] for name in names)
