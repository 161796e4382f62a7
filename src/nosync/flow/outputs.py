"""Whether what a view, a preview or a sink is given can be one, and a query can go to its sink: found out when it is declared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from nosync.bridge.arrow import arrow_schema
from nosync.flow.frames import check_frame
from nosync.graph.nodes import SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.traces import computed_from
from nosync.model.bound import BoundSource
from nosync.model.connectors import check_columns, check_sink
from nosync.model.errors import Invalid
from nosync.model.safety import Release
from nosync.model.sink import BoundSink


def check_output(name: str, query: Any, sink: Any, release: str) -> None:
    """Before the query is taken over."""
    check_frame(f'sink "{name}"', query, 'The query comes second: flow.sink("name", df, ns.parquet("out")).')
    if release not in get_args(Release):
        raise Invalid(f'sink "{name}": release="{release}" is not known', hint='Pass "safe" or "computed".')
    check_sink(name, sink)
    check_columns(name, query.columns)


def check_view(name: str, query: Any, emit: str) -> None:
    """Before the query is taken over."""
    if emit not in ("early", "final"):
        raise Invalid(f'view "{name}": emit="{emit}" is not known', hint='Pass "early" or "final".')
    way_out = f'Write flow.sql("create view {name} as select ...").' if isinstance(query, str) else "Pass the DataFrame of the query."
    check_frame(f'view "{name}"', query, way_out)


def check_preview(query: Any, rows: int) -> None:
    """Before anything is asked of a source."""
    check_frame("flow.preview", query, "Pass the DataFrame of a query.", "was given")
    if rows < 1:
        raise Invalid(f"flow.preview: rows={rows} would show nothing", hint="Pass 1 or more.")


def check_no_cycle(sources: Mapping[str, BoundSource], sinks: Mapping[str, BoundSink], home: str | Path) -> None:
    """Whether no source would read what the flow itself writes, as input without end."""
    written: dict[str, Sequence[str]] = {"the home": (str(Path(home).expanduser().absolute() / "layers"),)}
    written |= {f'sink "{name}"': sink.addresses() for name, sink in sinks.items()}
    for name, source in sources.items():
        for what, addresses in written.items():
            found = next((address for address in addresses if source.would_read(address)), None)
            if found is not None:
                words = f'{what} would write "{found}", which source "{name}" reads'
                raise Invalid(words, hint="Write to another folder or table: else the flow would read its own output.")


def check_fits(name: str, sink: BoundSink, node: ViewNode) -> None:
    """`Invalid` or `Refused` by the sink's own judgement."""
    if sink.check_query is not None:
        sink.check_query(name, arrow_schema(node.schema, f'sink "{name}"'), corrects(node))


def corrects(node: ViewNode) -> list[str]:
    """What takes rows back that it gave, nearest to the output first; the source where its own rows come and go."""
    if node.append_only:
        return []
    behind = [other for other in computed_from(node) if isinstance(other, Operator | SourceNode) and not other.append_only]
    return [other.name for other in sorted(behind, key=lambda other: isinstance(other, SourceNode))] or [node.name]
