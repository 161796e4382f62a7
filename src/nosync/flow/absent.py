"""What `ns.NAME` answers where there is no such name: the nearest one, or what there is in its place."""

from collections.abc import Iterable

from nosync.model.arguments import did_you_mean
from nosync.model.errors import Invalid

INSTEAD = {
    "kinesis": "There is no connector for Kinesis; write one of your own, a page of Python: docs/extending.md.",
    "socket": 'Pass a stream of Spark\'s: flow.source("lines", spark.readStream.format("socket").option(...).load()).',
    "spark": "The session is SparkSession.builder.getOrCreate(), or that of the flow: flow.spark.",
    "readStream": 'A source is flow.source("name", ns.files("in", ...)): see docs/from-structured-streaming.md.',
    "Stream": 'A flow is ns.Flow("name").',
    "Pipeline": 'A flow is ns.Flow("name").',
    "source": 'A source belongs to a flow: flow = ns.Flow("name"); flow.source("orders", ns.files("in")).',
    "view": 'A view belongs to a flow: flow.view("name", df).',
    "sink": 'A sink belongs to a flow: flow.sink("name", df, ns.parquet("out")).',
    "start": 'A flow is started: flow.start(home="state/name").',
    "trigger": 'Pass it to the start: flow.start(home, trigger="1 second").',
}


class NoSuchName(Invalid, AttributeError):
    """An `AttributeError` too, so that `hasattr` answers."""


def absent(name: str, known: Iterable[str]) -> NoSuchName:
    names = sorted(known)
    hint = INSTEAD.get(name) or did_you_mean(name, names, "ns.{}") or f"There are: {', '.join(names)}."
    return NoSuchName(f'nosync has no "{name}"', hint=hint.strip())
