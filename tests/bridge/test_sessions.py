"""A session's settings."""

from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nosync.testing import Change, check

SETTING = "spark.sql.legacy.timeParserPolicy"


def test_tasks_of_a_flow_have_the_sessions_settings_as_those_of_a_query_have(quick: SparkSession, tmp_path: Path) -> None:
    session = quick.newSession()
    session.conf.set(SETTING, "LEGACY")

    @F.udf("string")
    def setting(of: str) -> str | None:
        context = TaskContext.get()
        return context and context.getLocalProperty(of)

    def program(flow: Any) -> None:
        flow.view("settings", flow.source("s").select(setting("name")))

    check(session, program, {"s": "name string"}, [Change({"s": [(SETTING,)]})], tmp_path)
    assert quick.sparkContext.getLocalProperty(SETTING) is None
