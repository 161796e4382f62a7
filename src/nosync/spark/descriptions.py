"""What Spark's UI says of the jobs of a flow: `shop, epoch 12: views spend, whales; sink out`. Pure."""

from collections.abc import Iterable

from nosync.graph.graph import Graph
from nosync.graph.nodes import ViewNode
from nosync.graph.traces import traces_of
from nosync.graph.walk import reads_rejects, upstream
from nosync.model.engine import Targets

NAMED = 3  # views, or sinks: the UI has not much room


def described(graph: Graph, targets: Targets | None, rejects: bool) -> str:
    """The views and sinks that a job is about: those that `targets` are needed for, else all; of these the ones that depend on rejected
    rows, or the others: each have a job of their own.
    """

    def about(node: ViewNode) -> bool:
        if targets is None:
            return reads_rejects(node) == rejects
        return any(trace in targets for one in upstream([node]) for trace in traces_of(one))

    views = dict(sorted(graph.views.items(), key=lambda one: one[0].endswith(".rejected")))  # these last: nobody has declared them
    nouns = {"view": views, "sink": graph.sinks}
    return "; ".join(filter(None, (_named(noun, [name for name in found if about(found[name])]) for noun, found in nouns.items())))


def _named(noun: str, names: Iterable[str]) -> str:
    first, more = [*names][:NAMED], [*names][NAMED:]
    words = f"{noun}{'s' if len(first) > 1 else ''} {', '.join(first)}"
    return f"{words} and {len(more)} more" if more else words if first else ""
