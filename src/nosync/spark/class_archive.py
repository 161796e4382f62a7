"""An archive of the classes that Spark loads, for the sessions that we start: the JVM maps it instead of reading jars and checking each
class, and Spark is there in about half the time.

`nosync warm` makes it, once for each Java and each installation of PySpark. Another JVM takes no notice of it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from nosync.model.errors import Unavailable
from nosync.state.private import FILE, make_folder

MAKING = "NOSYNC_MAKES_CLASS_ARCHIVE"  # in the environment of the process that makes one
SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
SECONDS = 600
EXERCISE = """
import tempfile
from pathlib import Path
import nosync as ns
from pyspark.sql import functions as F
from nosync.spark.session import active_or_local
with tempfile.TemporaryDirectory() as place:
    spark = active_or_local()
    flow = ns.Flow("warm", spark)
    memory = ns.memory("item string, price double")
    orders = flow.source("orders", memory)
    flow.view("sums", orders.groupBy("item").agg(F.sum("price"), F.count("*")))
    flow.sql("create view dear as select o.item, o.price from orders o join (select max(price) p from orders) m on o.price = m.p")
    for way in ("wide", "narrow"):
        spark.conf.set("spark.nosync.way", way)
        with flow.start(Path(place) / way) as run:
            memory.add([("pot", 1.0)])
            run.processAllAvailable()
            run.view("sums").collect()
    spark.stop()
java = spark.sparkContext._gateway.proc
java.stdin.close()
java.wait()
"""


def options(folder: Path | None = None) -> list[str]:
    """What to start the JVM with, where there is an archive (in `kept_in()` if nothing else is said)."""
    archive = archive_in(folder or kept_in())
    if MAKING in os.environ:
        return [_quoted(f"-XX:ArchiveClassesAtExit={os.environ[MAKING]}"), *SILENT]
    return [_quoted(f"-XX:SharedArchiveFile={archive}"), *SILENT] if archive is not None and archive.is_file() else []


def kept_in() -> Path:
    """Where archives are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nosync" / "java"


def archive_in(folder: Path) -> Path | None:
    """Where the archive of this Java and this PySpark lies or would lie; None where there is no Java."""
    java = _java()
    if java is None:
        return None
    jars = Path(pyspark.__file__).parent / "jars"
    listed = sorted((entry.name, entry.stat().st_size) for entry in os.scandir(jars)) if jars.is_dir() else []
    modules = java.parents[1] / "lib" / "modules"
    facts = modules.stat() if modules.is_file() else java.stat()
    said = repr((str(java), facts.st_size, facts.st_mtime_ns, str(jars), listed))
    return folder / f"{hashlib.sha256(said.encode()).hexdigest()[:16]}.jsa"


def make(folder: Path) -> Path:
    """Starts a session in another process, runs a small flow in it, and keeps the classes that were loaded. Whoever looks for the archive
    meanwhile finds none."""
    target = archive_in(folder)
    if target is None:
        raise Unavailable("there is no Java here", hint="Install Java 17 or newer, or set JAVA_HOME.")
    make_folder(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / target.name
        environment = {**os.environ, MAKING: str(made)}
        command = [sys.executable, "-c", EXERCISE]
        done = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode or not made.is_file():
            words = (done.stderr.strip().splitlines() or ["Java wrote no archive"])[-1]
            raise Unavailable(f"no archive of classes could be made: {words}", hint="Everything works without it; Spark starts slower.")
        made.chmod(FILE)
        made.replace(target)
    return target


def _java() -> Path | None:
    """The one that PySpark starts."""
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    return Path(found).resolve() if found and os.path.exists(found) else None


def _quoted(option: str) -> str:
    """Spark splits options at spaces, but for those in quotes."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'
