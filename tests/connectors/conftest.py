"""Servers for the tests of connectors: each is started once, and killed and started again by the tests that are about that."""

from collections.abc import Iterator

import pytest

from tests.servers.kafka import Kafka, kafka
from tests.servers.postgres import Postgres, postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka(tmp_path_factory.mktemp("kafka") / "broker") as broker:
        yield broker
