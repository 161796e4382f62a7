"""The programs of docs/connectors.md are declared as they stand, but for the addresses: on servers, where they need some."""

import io
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.store.addresses import client_of
from tests.connectors.test_kafka_avro import READER
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres

PAGE = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text()
SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROGRAMS = {heading: found for heading, text in SECTION.findall(PAGE) if (found := BLOCK.findall(text))}
ORDERS = pa.table({"id": pa.array([1], pa.int64()), "price": [2.5]})

Declare = Callable[[str, Mapping[str, str]], None]


@pytest.fixture
def declare(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Each block of a section in a flow of its own, which has a query `spend`."""
    monkeypatch.chdir(tmp_path)

    def declared(heading: str, addresses: Mapping[str, str]) -> None:
        for number, text in enumerate(PROGRAMS[heading], start=1):
            flow = ns.Flow("page", quick)
            spend = flow.source("given", ns.memory("id bigint, customer int, spent decimal(19,2), day date"))
            for ours, theirs in addresses.items():
                text = text.replace(ours, theirs)
            names = {"ns": ns, "F": F, "spark": quick, "flow": flow, "spend": spend}
            exec(compile(text, f"connectors.md, {heading}, block {number}", "exec"), names)
            assert len(flow.program().sources) + len(flow.program().sinks) > 1

    return declared


def test_every_section_with_programs_is_here() -> None:
    assert PROGRAMS.keys() == {"Any stream of Spark's", "Kafka", "PostgreSQL", "Files in object stores", "Delta and Iceberg"}


def test_streams_of_spark(declare: Declare, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    declare("Any stream of Spark's", {'load("in")': f'load("{tmp_path}/in")'})  # Spark's own folder is another


def test_files_in_object_stores(declare: Declare) -> None:
    bucket = f"memory://{uuid4().hex}"
    file = io.BytesIO()
    pq.write_table(ORDERS, file)
    obstore.put(client_of(f"{bucket}/orders", os.environ), "1.parquet", file.getvalue())
    obstore.put(client_of(f"{bucket}/clicks", os.environ), "1.json", b'{"x": 1}\n')
    declare("Files in object stores", {"s3://bucket": bucket})


def test_tables_of_lakes(declare: Declare, tmp_path: Path) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    write_deltalake(tmp_path / "orders", ORDERS)
    catalog = load_catalog("default", **properties)
    catalog.create_namespace("shop")
    catalog.create_table("shop.prices", pa.schema([("item", pa.string()), ("price", pa.float64())]))
    there = '{"type": "rest", "uri": "http://catalog:8181"}'
    declare("Delta and Iceberg", {"s3://lake": str(tmp_path), there: repr(properties)})


def test_topics_of_kafka(declare: Declare, kafka_broker: Kafka, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(READER))
    orders, spend = (kafka_broker.create(f"{name}{uuid4().hex[:8]}") for name in ("orders", "spend"))
    declare("Kafka", {"broker:9092": kafka_broker.servers, '", "orders"': f'", "{orders}"', '", "spend"': f'", "{spend}"'})


def test_tables_of_postgres(declare: Declare, postgres_server: Postgres) -> None:
    customers, orders = (f"{name}{uuid4().hex[:8]}" for name in ("customers", "orders"))
    for name in (customers, orders):
        postgres_server.query(f"create table {name} (id int primary key, city text)")
    names = {'["customers", "orders"]': f'["{customers}", "{orders}"]', 'db["customers"]': f'db["{customers}"]'}
    declare("PostgreSQL", {"postgresql://user@host/shop": postgres_server.url(), **names, 'db["orders"]': f'db["{orders}"]'})
