"""Where reading a topic begins that was never read before."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from nosync.clients.kafka import Brokers, Offsets, Partition
from nosync.model.errors import Invalid

Starting = Any
"""What a user says: "earliest", "latest", a time, or offsets by topic and partition."""
HINT = 'Pass "earliest", "latest", a time ("2026-01-31T12:00:00Z"), or offsets: {"topic": {0: 17}}.'


def starting_offsets(given: Any) -> Starting:
    """As it is kept: a word, milliseconds since 1970, or offsets by topic and partition."""
    if given in ("earliest", "latest"):
        return given
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            raise Invalid(f'startingOffsets="{given}" is not understood', hint=HINT) from None
    if isinstance(given, datetime):
        return int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(given, Mapping):
        try:
            return {topic: {int(number): int(offset) for number, offset in offsets.items()} for topic, offsets in given.items()}
        except (AttributeError, TypeError, ValueError):
            pass
    raise Invalid(f"startingOffsets={given!r} is not understood", hint=HINT)


def offsets_in(what: str, text: str) -> dict[str, dict[int, int]]:
    """Offsets by topic and partition, as Spark writes them into a checkpoint."""
    try:
        return {topic: {int(number): int(offset) for number, offset in found.items()} for topic, found in json.loads(text).items()}
    except (AttributeError, TypeError, ValueError):
        raise Invalid(f"{what}: {text[:100]!r} is no offset of Kafka", hint="Say which source of the checkpoint it was.") from None


def starts_at(begin: Starting, partitions: Sequence[Partition], brokers: Brokers) -> Offsets:
    """The offset of each partition. Of one that is not named, its beginning; -1 and -2 mean the end and the beginning, as in Spark."""
    if begin == "latest":
        return brokers.latest(partitions)
    if isinstance(begin, int):
        return brokers.at(partitions, begin)
    first = brokers.earliest(partitions)
    if begin == "earliest":
        return first
    last = brokers.latest(partitions)
    said = {(topic, number): offset for topic, offsets in begin.items() for number, offset in offsets.items()}
    asked = {partition: said.get(partition, -2) for partition in partitions}
    for partition, offset in asked.items():
        if offset > last[partition]:
            topic, number = partition
            raise Invalid(f'startingOffsets: topic "{topic}", partition {number} ends at {last[partition]}, before {offset}', hint=HINT)
    special = {-1: last, -2: first}
    return {partition: special[offset][partition] if offset < 0 else offset for partition, offset in asked.items()}
