"""What all tests share: one SparkSession, a quicker face of it for a few rows, a mark on the tests that need it, a disk and a bucket."""

import logging
import os
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from nosync.model.errors import NosyncError
from nosync.spark import class_archive
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote
from tests import jvm, lookups
from tests.servers import installing
from tests.servers.s3 import Server, settings_for, versitygw
from tests.store.servers import BUCKET

# Spark's workers and other processes that tests start find the package as the tests do, installed or not.
ROOT = Path(__file__).parent.parent
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH"))))

SLOWEST = 10
LONG_BUILDS = "servers"
LONG = "long"
LEFT_OUT = pytest.StashKey[dict[str, str]]()  # why, by the name of the test
SERVERS = {"kafka_broker": "kafka", "postgres_server": "postgres"}  # by the fixture that starts one


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--servers", action="store_true", help="also what needs servers that take minutes to build (`make test-servers`)")
    parser.addoption("--long", action="store_true", help="also more of what the suite has shortly: seeds, ways, kills (`make test-long`)")
    parser.addoption("--connectors", action="store_true", help="also what needs servers that have to be installed (`make test-connectors`)")


def pytest_configure(config: pytest.Config) -> None:
    """Every JVM of a test starts quickly, also in processes that tests start. The whole suite makes what it needs for that first."""
    lookups.remember()
    cache = getattr(config, "cache", None)
    if hasattr(config, "workerinput") or cache is None:
        return
    folder, before = cache.mkdir("jvm"), os.environ.get("SPARK_SUBMIT_OPTS", "")
    archive = class_archive.archive_in(folder)
    if archive is not None and not archive.exists() and getattr(config.option, "numprocesses", None):
        os.environ["SPARK_SUBMIT_OPTS"] = f"{before} {jvm.SHORT_LIVED}".strip()
        with suppress(NosyncError):
            class_archive.make(folder)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{before} {jvm.options(folder)}".strip()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Workers collect, and say what they have left out."""
    node.config.stash.setdefault(LEFT_OUT, {}).update(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was left out, and why; the folders and the files that took longest, where there were many."""
    left_out = terminalreporter.config.stash.get(LEFT_OUT, {})
    for reason in sorted(set(left_out.values())):
        terminalreporter.write_line(f"left out, {reason}:", yellow=True)
        for test in sorted(test for test, why in left_out.items() if why == reason):
            terminalreporter.write_line(f"  {test}", yellow=True)
    files, folders = Counter[str](), Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                files[file] += report.duration
                folders[file.rpartition("/")[0]] += report.duration
    for what, seconds in (("folders", folders), ("files", files)):
        if len(seconds) > SLOWEST:
            terminalreporter.section(f"slowest of {len(seconds)} {what}, {sum(seconds.values()):.0f} s together")
            for name, spent in seconds.most_common(SLOWEST):
                terminalreporter.write_line(f"{spent:8.1f} s  {name}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that use Spark are marked, so that `-m "not spark"` is the quick part of the suite. Those with long builds, or with servers
    that are not installed, are left out. Several workers share the work evenly.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    left_out = {item: reason for item in items if (reason := why_left_out(config, item))}
    config.stash[LEFT_OUT] = {item.nodeid.partition("[")[0]: reason for item, reason in left_out.items()}
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = config.stash[LEFT_OUT]
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
    hands = int(getattr(config, "workerinput", {}).get("workercount", 1))
    if hands > 1:
        items[:] = dealt(items, hands)


def why_left_out(config: pytest.Config, item: pytest.Item) -> str:
    """The reason; nothing for a test that is to run."""
    if item.get_closest_marker(LONG_BUILDS) and not config.getoption("--servers"):
        return "a server that takes minutes to build: `make test-servers` runs it"
    if item.get_closest_marker(LONG) and not config.getoption("--long"):
        return "more of what other tests have shortly: `make test-long` runs it"
    if config.getoption("--connectors"):
        return ""
    if item.get_closest_marker("connectors"):
        return "servers are killed and waited for: `make test-connectors` runs it"
    return next(
        (reason for name in getattr(item, "fixturenames", ()) if name in SERVERS and (reason := installing.missing(SERVERS[name]))), ""
    )


def dealt(items: list[pytest.Item], hands: int) -> list[pytest.Item]:
    """Each worker begins with one part of the list, and takes from others when it is done: files that take long are dealt out one by one,
    and come first in each part, so that at the end there are small tests to take.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    marks = ("slow", "spark")
    weights = {file: [sum(bool(item.get_closest_marker(mark)) for item in found) for mark in marks] for file, found in files.items()}
    heavy = sorted((file for file in files if any(weights[file])), key=lambda file: weights[file], reverse=True)
    parts = [[item for file in heavy[hand::hands] for item in files[file]] for hand in range(hands)]
    light = [item for file in files if file not in heavy for item in files[file]]
    size = -(-len(items) // hands)
    for part in parts:
        part += [light.pop() for _ in range(min(size - len(part), len(light)))]
    return [item for part in parts for item in part] + light


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session of two cores, set up as flows are run: FAIR pools, Unix domain sockets to the Python workers."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("nosync-tests")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-Xms1g -Xmn512m")  # little lives on from one test to the next
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.python.daemon.module", "tests.daemon")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.nosync.way", "mixed")  # epochs are narrow and wide in turn, whatever they bring
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def quick(spark: SparkSession) -> SparkSession:
    """The session of `spark` with code generation off and one partition after a shuffle; answers are the same."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A server that speaks S3 and has one bucket."""
    from moto.server import ThreadedMotoServer  # a second that only tests of buckets shall pay for

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
    yield endpoint
    server.stop()


@pytest.fixture(scope="session")
def real_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of others, whose conditional put is atomic."""
    with versitygw(tmp_path_factory.mktemp("real") / "server") as server:
        yield server


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Objects]:
    """A remote in the bucket behind an endpoint, set up as a user does it: by the environment."""

    def remote(endpoint: str, bucket: str = BUCKET, key: str = "key", secret: str = "secret") -> Objects:
        for name, value in settings_for(endpoint, key, secret).items():
            monkeypatch.setenv(name, value)
        return open_remote(f"s3://{bucket}/flows/{uuid4().hex}")

    return remote


@pytest.fixture
def disk(tmp_path: Path) -> LocalDisk:
    return LocalDisk(tmp_path / "home")
