"""What Spark tests share: a session that interprets expressions instead of compiling them, which is quicker for a few rows."""

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def quick(spark: SparkSession) -> SparkSession:
    """The session of `spark` with code generation off and one partition after a shuffle; answers are the same."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session
