"""Settings and static tables that answers depend on, from one start of a flow to the next."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.spark.settings import settings_of


@pytest.fixture
def session(quick: SparkSession) -> Iterator[SparkSession]:
    """One whose settings nobody else sees."""
    session = quick.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.mapKeyDedupPolicy", "LAST_WIN"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.parquet.int96RebaseModeInRead", "LEGACY"),
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
        ("spark.sql.files.ignoredPathSegmentRegex", "^[.]"),
        ("spark.sql.columnNameOfCorruptRecord", "_damaged"),
        ("spark.sql.orc.mergeSchema", "true"),
        ("spark.sql.parquet.mergeSchema", "true"),
        ("spark.sql.parquet.fieldId.read.enabled", "true"),
        ("spark.sql.parquet.respectSummaryFiles", "true"),
        ("spark.sql.readSideCharPadding", "false"),
        ("spark.sql.binaryOutputStyle", "HEX"),
        ("spark.sql.jsonGenerator.ignoreNullFields", "false"),
        ("spark.sql.variant.allowDuplicateKeys", "true"),
        ("spark.sql.collation.allowInMapKeys", "true"),
        ("spark.sql.legacy.castComplexTypesToString.enabled", "true"),
    ],
)
def test_whatever_may_change_an_answer_is_recorded(session: SparkSession, name: str, value: str) -> None:
    before = settings_of(session)
    session.conf.set(name, value)
    assert {key for key, found in settings_of(session).items() if before.get(key) != found} == {name}


def test_what_changes_no_answer_is_not_recorded(session: SparkSession) -> None:
    before = settings_of(session)
    session.conf.set("spark.sql.shuffle.partitions", "7")
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set("spark.sql.parquet.columnarReaderBatchSize", "100")
    assert settings_of(session) == before
    assert {before[f"version of {name}"].count(".") for name in ("Spark", "Python")} == {1} and before["version of Java"].isdigit()


def test_a_home_goes_on_under_other_settings_only_knowingly(session: SparkSession, tmp_path: Path) -> None:
    def flow() -> ns.Flow:
        flow = ns.Flow("maps", session)
        flow.view("v", flow.source("s", ns.memory("k int")))
        return flow

    flow().start(tmp_path / "home", shards=1).stop()
    session.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
    with pytest.raises(ns.Invalid, match=r"spark\.sql\.mapKeyDedupPolicy is LAST_WIN, it was EXCEPTION"):
        flow().start(tmp_path / "home").stop()
    flow().start(tmp_path / "home", on_other_settings="accept").stop()
    flow().start(tmp_path / "home").stop()  # on record since


def test_a_static_table_with_other_rows_changes_what_reads_it(session: SparkSession, tmp_path: Path) -> None:
    table, rows = str(tmp_path / "rates"), ns.memory("k int")

    def started(rates: list[tuple[int, str]], **options: str) -> ns.Run:
        session.createDataFrame(rates, "k int, rate string").coalesce(1).write.mode("overwrite").parquet(table)
        flow = ns.Flow("rates", session)
        flow.view("rated", flow.source("rows", rows).join(session.read.parquet(table), "k"))
        return flow.start(tmp_path / "home", shards=1, **options)

    with started([(1, "low"), (2, "high")]) as run:
        rows.add([(1,), (2,)])
        run.processAllAvailable()
    with started([(2, "high"), (1, "low")]):
        pass  # the same rows, written anew
    with pytest.raises(ns.Invalid, match=r'"rated/join" is changed.*static table "rated/static-1" has other rows'):
        started([(1, "low"), (2, "highest")]).stop()
    with started([(1, "low"), (2, "highest")], on_change="rebuild") as run:
        assert sorted(row.rate for row in run.view("rated").collect()) == ["highest", "low"]
