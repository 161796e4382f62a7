"""JVMs that start sooner: with the classes that Spark loads taken from an archive, and without thorough compilation.

A suite of tests starts some twenty JVMs, most of them for seconds. What they share is read from an archive (Java calls it class data
sharing), made once for each version of Java and PySpark and kept with pytest's cache. Without it tests are slower and nothing else.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

# Tests end before thorough compilation has paid for itself: without it the JVM takes half the CPU.
SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:MetaspaceSize=256m"
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
SECONDS = 600

WARM_UP = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.createDataFrame([(1, "a", 2.0), (2, "b", 3.0)], "k int, s string, d double")
rows.createOrReplaceTempView("t")
spark.sql("select s, sum(d) x from t join (select k as j from t) on j = k group by s order by x limit 3").toArrow()
spark.sql("select *, rank() over (partition by s order by d) r from t where k in (select k from t) union all select *, 1 from t").toArrow()
rows.mapInArrow(lambda batches: batches, rows.schema).toArrow()
spark.stop()
java = spark.sparkContext._gateway.proc
java.stdin.close()
java.wait()
"""


def options(archive: Path | None) -> str:
    """For every JVM that a test starts, in `SPARK_SUBMIT_OPTS`."""
    return SHORT_LIVED if archive is None else f'{SHORT_LIVED} -XX:SharedArchiveFile="{archive}" {SILENT}'


def archive_in(folder: Path) -> Path | None:
    """Where the archive of this Java and this PySpark lies or would lie; None without Java."""
    java = Path(os.environ.get("JAVA_HOME", ""), "bin", "java") if os.environ.get("JAVA_HOME") else Path("java")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = "".join(letter if letter.isalnum() else "-" for letter in answer.stderr.partition("\n")[0])
    found = folder / f"{version}-pyspark-{pyspark.__version__}.jsa"
    return None if answer.returncode else found


def make(archive: Path, environment: Mapping[str, str]) -> None:
    """Runs a little of everything and keeps the classes it took. Whoever looks for the archive meanwhile finds none."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        made = Path(scratch) / archive.name
        given = {"SPARK_SUBMIT_OPTS": f'{SHORT_LIVED} -XX:ArchiveClassesAtExit="{made}" {SILENT}', "SPARK_LOCAL_IP": "127.0.0.1"}
        given |= {"PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-c", WARM_UP]
        subprocess.run(command, env={**environment, **given}, cwd=scratch, capture_output=True, timeout=SECONDS, check=False)
        if made.exists():
            made.replace(archive)
