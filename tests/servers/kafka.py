"""A Kafka broker of one's own (KRaft, one process): on loopback, with a folder of its own; it can be killed and started again."""

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers import installing

HOST = "127.0.0.1"
START_SECONDS = 90.0
USER, SECRET = "nosync", "word-of-nobody"
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  user_{user}="{secret}";
log.dirs={folder}/data
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=500
log.cleaner.backoff.ms=500
"""


@dataclass
class Kafka:
    """A broker that is running, unless it was killed."""

    folder: Path
    port: int
    guarded: int
    _process: "subprocess.Popen[bytes] | None" = field(default=None)
    _clients: list[Any] = field(default_factory=list)

    @property
    def servers(self) -> str:
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        command = ["java", "-Xms192m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{installing.kafka()}/*"]
        with (self.folder / "log").open("ab") as log:
            command += ["kafka.Kafka", str(self.folder / "settings")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection((HOST, self.port), timeout=1.0).close()
                self.admin().list_topics(timeout=5.0)
                return
            except Exception:
                words = (self.folder / "log").read_text()[-2000:]
                assert self._process.poll() is None and time.monotonic() < end, f"the broker does not listen: {words}"
            time.sleep(0.05)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(START_SECONDS)

    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        if not self._clients:
            self._clients.append(AdminClient({"bootstrap.servers": self.servers, "log_level": 0}))
        return self._clients[0]

    def create(self, topic: str, partitions: int = 1, **config: str) -> str:
        from confluent_kafka.admin import NewTopic

        named = {name.replace("_", "."): value for name, value in config.items()}
        self.admin().create_topics([NewTopic(topic, partitions, 1, config=named)])[topic].result(30)
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        from confluent_kafka.admin import NewPartitions

        self.admin().create_partitions([NewPartitions(topic, partitions)])[topic].result(30)

    def produce(self, topic: str, messages: Sequence[Mapping[str, Any]], transaction: str = "", commit: bool = True) -> None:
        """Messages as `Producer.produce` takes them, in one transaction if it has a name."""
        from confluent_kafka import Producer

        named = {"transactional.id": transaction} if transaction else {}
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, "log_level": 0, **named})
        if transaction:
            producer.init_transactions(30)
            producer.begin_transaction()
        for message in messages:
            producer.produce(topic, **message)
        assert producer.flush(30) == 0
        if transaction:
            (producer.commit_transaction if commit else producer.abort_transaction)(30)

    def consume(self, topic: str) -> list[Any]:
        """All messages that are committed, by partition and offset."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({
            "bootstrap.servers": self.servers, "group.id": uuid.uuid4().hex, "enable.auto.commit": False, "log_level": 0,
            "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50,
        })  # fmt: skip
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found, ended = [], set[int]()
        while len(ended) < len(partitions):
            message = consumer.poll(10)
            assert message is not None, "the broker does not answer"
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
        consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))


@contextmanager
def kafka(folder: Path) -> Iterator[Kafka]:
    folder.mkdir(parents=True)
    ports = []
    sockets = [socket.socket() for _ in range(3)]
    for free in sockets:
        free.bind((HOST, 0))
        ports.append(free.getsockname()[1])
    for free in sockets:
        free.close()
    port, guarded, controller = ports
    settings = folder / "settings"
    settings.write_text(
        SETTINGS.format(port=port, guarded=guarded, controller=controller, folder=folder, user=USER, secret=SECRET)
    )  # fmt: skip
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{installing.kafka()}/*", "kafka.tools.StorageTool"]
    subprocess.run([*command, "format", "-t", cluster, "-c", str(settings)], check=True, capture_output=True, cwd=folder)
    broker = Kafka(folder, port, guarded)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
