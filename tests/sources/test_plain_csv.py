"""CSV that tasks read by themselves: row by row, and reject by reject, what Spark's reader makes of the same files."""

import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import nosync as ns
from nosync.sources.csv_task import csv_frame, plain_csv
from nosync.sources.rejection import UNREAD
from tests.ways import pinned

TIMES = """2024-01-01 00:00:00|2024-01-01T10:20:30|2024-01-01 10:20:30.123456|2024-01-01 10:20:30.1234567|2024-01-01|2024-01-01 10||x
2024-01-01 10:20|2024-01-01 10:20:30Z|2024-01-01 10:20:30+02:00|2024-03-31 02:30:00|2024-10-27 02:30:00|1850-01-01 00:00:00|24:00
2050-07-01 12:00:00|2024-01-01 24:00:00|2024-01-01 10:20:60"""
DOUBLES = """1.5|-0.0|1e5|1E-320|1e999|-1e999|NaN|nan|inf|Inf|-Infinity|.5|5.|.|1d|0x1p3|+2| 2|2\t||0.1|123456789012345678901234567890|1e|e1
2.2250738585072011e-308|9007199254740993"""
DATES = """2024-02-29|2023-02-29|2024-2-9|2024|0001-01-01|9999-12-31|10000-01-01|2024-01-01T00:00:00||1582-10-10|-0001-01-01|0000-01-01"""
TEXTS = """x|größe| x|x |a b||"q"|"a,b"|"a""b"|"|a\\b|null|\ufeff|#c|\0|\x7f|a\x01l|\u2028"""
VALUES = {
    type: text.replace("\n", "|").split("|")
    for type, text in {
        "string": TEXTS,
        "bigint": "1|-7|007|+1| 1|1 |0x1F|9223372036854775807|9223372036854775808|1.0|1e3|١|-|--1||1_0",
        "tinyint": "127|128|-128|-129||0",
        "double": DOUBLES,
        "float": "1.5|16777217|3.4028236e38|1e-46|0.1|",
        "decimal(10,2)": "1|1.5|1.55|1.555|-0.005|99999999.99|100000000|1e3|1E-2|.5|5.|+5.1|.|-||abc|1,5|0x10",
        "boolean": "true|false|TRUE|True|tRue|1|0||t",
        "date": DATES,
        "timestamp": TIMES,
        "timestamp_ntz": TIMES,
    }.items()
}
TYPES = list(VALUES)


def hostile(rng: random.Random, types: list[str], header: bool, separator: str) -> bytes:
    """A file in which most lines are well and the others are not."""
    out = [separator.join(f"n{i}" for i in range(len(types)))] if header else []
    calm = {type: VALUES[type][0] for type in types}
    for _ in range(rng.choice([0, 1, 30, 300])):
        values = [rng.choice(VALUES[type]) if rng.random() < 0.08 else calm[type] for type in types]
        if rng.random() < 0.05:
            values = rng.choice([values[:-1], [*values, "more"], [""], [" "], ["\x01"], ["\t"]])
        out.append(separator.join(values))
    end = rng.choice(["\n", "\n", "\n", "\r\n", "\r"])
    text = end.join(out) + (end if rng.random() < 0.8 else "")
    content = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        content = b"\xef\xbb\xbf" + content
    if rng.random() < 0.1:
        content = content.replace(b"x", b"\xff\xfe", 3)
    return content


def found_by(frame: DataFrame) -> Counter[str]:
    """The rows as texts: Python has no year 0."""
    return Counter(repr(tuple(row)) for row in frame.select(*(F.col(f"`{name}`").cast("string") for name in frame.columns)).collect())


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("seed", range(3))
def test_it_reads_what_spark_reads(quick: SparkSession, tmp_path: Path, seed: int, zone: str) -> None:
    rng = random.Random(f"{seed} {zone}")
    session = quick.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    separator, header = rng.choice([",", ";", "\t", "|"]), rng.random() < 0.5
    types = TYPES if seed == 0 else rng.sample(TYPES, rng.choice([1, 2, 5]))
    schema = StructType.fromDDL(", ".join(f"`a {i}'` {type}" for i, type in enumerate(types)))
    options = {"sep": separator, "header": str(header)}
    paths = []
    for number in range(12):
        paths.append(str(tmp_path / f"{number}.csv"))
        Path(paths[-1]).write_bytes(hostile(rng, types, header, separator))
    plain = plain_csv(session, schema, options)
    assert plain is not None
    asked = session.read.schema(StructType([*schema.fields]).add(UNREAD, "string")).options(**options).option("mode", "PERMISSIVE")
    expected = asked.option("columnNameOfCorruptRecord", UNREAD).csv(paths)
    rows = csv_frame(session, paths, replace(plain, smallest=rng.choice([1, 1, 1 << 14])), schema, smallest=rng.choice([500, 1 << 20]))
    assert rows.schema == expected.schema
    assert found_by(rows) == found_by(expected)


def test_it_leaves_to_spark_what_only_spark_knows(quick: SparkSession) -> None:
    texts = StructType.fromDDL("a string, n bigint")
    assert plain_csv(quick, texts, {"header": True, "sep": ";"}) is not None
    for options in ({"quote": "'"}, {"multiLine": True}, {"sep": "||"}, {"sep": '"'}, {"header": "perhaps"}, {"timestampFormat": "yyyy"}):
        assert plain_csv(quick, texts, options) is None
    assert plain_csv(quick, StructType.fromDDL("a binary"), {}) is None


def test_small_epochs_need_no_job(quick: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    flow = ns.Flow("small", quick)
    orders = flow.source("orders", ns.files(folder, "csv", "item string, n bigint, at timestamp", header=True, maxFilesPerTrigger=1))
    flow.view("sums", orders.groupBy("item").agg(F.sum("n").alias("n"), F.max("at").alias("at")))
    lines = ["tea,1,2024-01-01 10:00:00", 'tea,2,\npot,"3",', "pot,x,\ntea,4,2025-01-01 00:00:00", "", "cup,7,2024-02-02T00:00:00"]
    for number, text in enumerate(lines):
        (folder / f"{number}.csv").write_text(f"item,n,at\n{text}\n")
        os.utime(folder / f"{number}.csv", (number, number))
    with pinned(quick, "narrow"), flow.start(tmp_path / "home", shards=2) as run:
        run.processAllAvailable()
        assert [progress["numInputRows"] for progress in run.recentProgress] == [1, 2, 2, 0, 1]
        assert {row["item"]: row["n"] for row in run.view("sums").collect()} == {"tea": 7, "pot": 3, "cup": 7}
        assert [row["raw"] for row in run.view("orders.rejected").collect()] == ["pot,x,"]
