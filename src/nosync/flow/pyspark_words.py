"""What PySpark users call things, and what to pass here instead; and words that are checked before a start."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from nosync.bridge.errors import no_traces_logged
from nosync.model.arguments import checked
from nosync.model.errors import Invalid
from nosync.runtime.change import CHOICES

Given = ParamSpec("Given")
Found = TypeVar("Found")

OUTPUT_MODE = "Leave it out: a view is its rows, and a sink gets what changes; ns.parquet(path, mode=...) says how a folder of files looks."
TRIGGER = 'Pass "1 second" for a time between epochs, or "availableNow" to end once all that is there is done.'
NAME_FIRST = 'The name comes first: flow.source("name", ns.files("in")).'
SOURCE_WORDS = {
    "name": NAME_FIRST,
    "watermark": 'Pass watermark=("at", "10 seconds"): the column of the event time, and how late a row may be.',
    "op": "Pass op_column=.",
    "schema": 'Say it to the source itself: ns.files("in", schema="user string, price double").',
    "format": 'Say it to the source itself: ns.files("in", format="json").',
    "path": NAME_FIRST,
    "withWatermark": 'Pass watermark=("at", "10 seconds").',
    "primaryKey": "Pass key=.",
    "keys": "Pass key=: one column, or a list of them.",
}
VIEW_WORDS = {
    "name": 'The name comes first: flow.view("name", df).',
    "outputMode": OUTPUT_MODE,
    "mode": OUTPUT_MODE,
    "df": "The query comes second: flow.view(name, df).",
    "sql": 'Write flow.sql("create view NAME as select ...").',
}
EXPLAIN_WORDS = {
    "extended": "Leave it out: flow.explain() prints all there is.",
    "mode": "Leave it out: flow.explain() prints all there is.",
    "path": "Pass svg= for a drawing, or home= for what a start there would do.",
}
SQL_WORDS = {
    "args": "Write the values into the statement: a flow declares its queries once.",
    "sqlQuery": "The statement comes first: flow.sql(\"select ...\").",
}
SINK_WORDS = {
    "name": 'The name comes first: flow.sink("name", df, ns.parquet("out")).',
    "outputMode": OUTPUT_MODE,
    "mode": "Say it to the sink itself: ns.parquet(path, mode=...).",
    "path": 'Pass a sink: flow.sink("out", df, ns.parquet("out")).',
    "format": 'Pass a sink of that format: flow.sink("out", df, ns.json("out")).',
    "checkpointLocation": "A sink needs none: the flow has its home, flow.start(home=...).",
    "processingTime": 'Pass trigger="10 seconds".',
    "every": 'Pass trigger="10 seconds".',
    "trigger": 'Pass trigger="10 seconds", or leave it out: then the sink has the pace of the epochs.',
    "availableNow": 'That is said of the whole run: flow.start(home, trigger="availableNow"). Sinks have all when it ends.',
}
START_WORDS = {
    "shards": 'Pass a whole number, or "auto". How often epochs come is trigger="1 second".',
    "rebuild": 'Pass on_change="rebuild".',
    **dict.fromkeys(("resume", "restart", "recover", "restore"), "Leave it out: a run goes on where the one before stopped."),
    "port": "Pass metrics_port=, for Prometheus.",
    "retention": 'Pass keep="7 days".',
    **dict.fromkeys(("segment_age", "segment_size", "dirty_ratio"), 'Pass compaction={"dirty ratio": 0.33}.'),
    "trigger": TRIGGER,
    "checkpointLocation": "Pass home=: the folder of the flow's state.",
    "checkpoint": "Pass home=: the folder of the flow's state.",
    "path": "Pass home=: the folder of the flow's state.",
    "outputMode": OUTPUT_MODE,
    "queryName": 'A flow has its name from the beginning: ns.Flow("name").',
    "processingTime": 'Pass trigger="1 second".',
    "availableNow": 'Pass trigger="availableNow".',
    "once": 'Pass trigger="availableNow".',
    "continuous": 'There is no continuous mode: epochs follow one another as fast as they can, or by trigger="1 second".',
    "partitions": "Pass shards=.",
    "numPartitions": "Pass shards=.",
}


def declaring(**elsewhere: str) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """Decorates a call that declares something: its arguments are checked, and what Spark has against it is said in one line alone."""
    return lambda function: checked(**elsewhere)(no_traces_logged()(function))


def check_words(home: object, on_change: str, on_other_settings: str) -> None:
    """What `flow.start` was told, word by word."""
    if on_change not in CHOICES:
        raise Invalid(f'on_change="{on_change}" is not known', hint='Pass "refuse", "rebuild" or "discard".')
    if on_other_settings not in ("refuse", "accept"):
        raise Invalid(f'on_other_settings="{on_other_settings}" is not known', hint='Pass "refuse" or "accept".')
    if str(home) in ("", "."):
        raise Invalid(f'home="{home}" names no folder of its own', hint='Pass one that is empty or not there yet: home="state/shop".')
    if "://" in str(home):
        raise Invalid(f'home="{home}" is no folder of this machine', hint=f'Pass a local folder, and remote="{home}" beside it.')
