"""A home that executors do not see: its layers are written where tasks run, served there, and brought home behind the stream.

Decided once, when a run starts: by whether every executor sees a file that was just made in the home, or by `spark.nosync.local.dir`. Where
the home is shared nothing of this is there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from nosync.journal.journal import Journal
from nosync.journal.names import IMPORTED
from nosync.model.bound import BoundSource
from nosync.model.errors import Invalid
from nosync.model.layers import LayerInfo
from nosync.model.places import MOST_BYTES, Sharing, Tls
from nosync.peers.arrivals import Arrivals
from nosync.peers.client import fetch, tell
from nosync.peers.home import HomeServer
from nosync.spark.session import is_one_host, sees_home
from nosync.store.disk import LocalDisk

FOLDER, BYTES = "spark.nosync.local.dir", "spark.nosync.local.bytes"
SHARED = "Use a home in a folder that the driver and all executors share."
TLS = ("spark.nosync.tls.certificate", "spark.nosync.tls.key", "spark.nosync.tls.authority")


@dataclass
class UnsharedHome:
    """What a run has where tasks do not write into its home."""

    server: HomeServer
    arrivals: Arrivals

    @property
    def sharing(self) -> Sharing:
        return self.server.sharing

    def close(self) -> None:
        self.arrivals.close()
        self.server.close(self.arrivals.places)


def is_unshared(spark: SparkSession, home: Path) -> bool:
    """Whether layers are to lie where tasks run. Asks every executor, which takes one that is free."""
    if is_one_host(spark):
        return False
    return bool(spark.conf.get(FOLDER, "")) or not sees_home(spark, home)


def check_unshared(sources: Mapping[str, BoundSource], disk: LocalDisk) -> None:
    """Refuses what tasks would look for in the home. The sources have been started."""
    if disk.sizes(IMPORTED):
        raise Invalid("state that was imported lies in the home, which the executors do not see", hint=SHARED)
    for name, source in sources.items():
        if source.fetches_into():
            words = f'source "{name}" is fetched into the home, which the executors do not see'
            raise Invalid(words, hint=SHARED)


def serve_layers(spark: SparkSession, journal: Journal, disk: LocalDisk) -> UnsharedHome:
    """For a run that has just begun: what its tasks write from here on is brought home."""
    conf, home = spark.conf, disk.root
    context = spark.sparkContext.getConf()
    address = context.get("spark.driver.host", "127.0.0.1") or ""
    bind = context.get("spark.driver.bindAddress", address) or address
    most = _bytes(str(conf.get(BYTES, str(MOST_BYTES))))
    server = HomeServer(journal.run, home, bind, address, str(conf.get(FOLDER, "")), most, _tls(spark))
    sharing = server.sharing

    def bring(layer: LayerInfo) -> None:
        fetch(sharing, layer.place, layer, home)

    def kept(place: str, paths: Iterable[str]) -> None:
        tell(sharing, place, "kept", list(paths))

    return UnsharedHome(server, Arrivals(journal, disk, bring, kept, journal.number))


def _bytes(text: str) -> int:
    if not text.isdigit():
        raise Invalid(f'{BYTES} is "{text}"', hint="Pass a number of bytes, as 10000000000.")
    return int(text)


def _tls(spark: SparkSession) -> Tls | None:
    given = [str(spark.conf.get(name, "")) for name in TLS]
    if any(given) and not all(given):
        lacking = ", ".join(name for name, value in zip(TLS, given, strict=True) if not value)
        raise Invalid(f"TLS between hosts lacks {lacking}", hint="Pass all three, as paths that every host has, or none.")
    return Tls(*given) if all(given) else None
